//! Encodes the packet of an LSAPI request: variables, a table of known fields, the fields.
//!
//! The client's fields come as `HTTP_*` and `CONTENT_*` params. They are sent as fields, because
//! the application derives these variables from them.
//!
//! ```text
//!  header, 9 integers │ settings, 0000 │ variables, 0000, to 8 │ table │ unknown fields │ lines
//! ```

use bolide_http::Params;
use bolide_http::params::PHP_SETTING;

use super::packet::{HEADER_LEN, PacketHeader, PacketKind, REQUEST_MAX};

/// Bytes of the packet header and the integers behind it.
const FIXED_LEN: usize = HEADER_LEN + 9 * 4;
/// The params of the known fields, in the order of the table.
const KNOWN: [&[u8]; 25] = [
    b"HTTP_ACCEPT",
    b"HTTP_ACCEPT_CHARSET",
    b"HTTP_ACCEPT_ENCODING",
    b"HTTP_ACCEPT_LANGUAGE",
    b"HTTP_AUTHORIZATION",
    b"HTTP_CONNECTION",
    b"CONTENT_TYPE",
    CONTENT_LENGTH,
    b"HTTP_COOKIE",
    b"HTTP_COOKIE2",
    b"HTTP_HOST",
    b"HTTP_PRAGMA",
    b"HTTP_REFERER",
    b"HTTP_USER_AGENT",
    b"HTTP_CACHE_CONTROL",
    b"HTTP_IF_MODIFIED_SINCE",
    b"HTTP_IF_MATCH",
    b"HTTP_IF_NONE_MATCH",
    b"HTTP_IF_RANGE",
    b"HTTP_IF_UNMODIFIED_SINCE",
    b"HTTP_KEEP_ALIVE",
    b"HTTP_RANGE",
    b"HTTP_X_FORWARDED_FOR",
    b"HTTP_VIA",
    b"HTTP_TRANSFER_ENCODING",
];
const CONTENT_LENGTH: &[u8] = b"CONTENT_LENGTH";
/// The index of `Content-Length` in the table.
const CONTENT_LENGTH_AT: usize = 7;
/// Bytes of the table: two-byte lengths, padded to four, then four-byte offsets.
const TABLE_LEN: usize = (KNOWN.len() * 2).next_multiple_of(4) + KNOWN.len() * 4;
/// The variables that the request header points to.
const POINTED: [&[u8]; 4] =
    [b"SCRIPT_FILENAME", b"SCRIPT_NAME", b"QUERY_STRING", b"REQUEST_METHOD"];
/// The body length for bodies over 2 GiB: the application uses `Content-Length`.
const SEE_FIELD: i32 = -2;

/// The offsets and lengths of a field's name and value in the lines.
#[derive(Clone, Copy, Default)]
struct Place {
    name: (usize, usize),
    value: (usize, usize),
}

/// Appends the packet. `None` if the protocol cannot encode it; `out` is then unchanged.
pub(super) fn push(out: &mut Vec<u8>, params: &Params, body_len: u64) -> Option<()> {
    let start = out.len();
    let pushed = push_packet(out, start, params, body_len);
    if pushed.is_none() {
        out.truncate(start);
    }
    pushed
}

fn push_packet(out: &mut Vec<u8>, start: usize, params: &Params, body_len: u64) -> Option<()> {
    out.resize(start + FIXED_LEN, 0);
    let mut setting_count = 0_i32;
    for (name, value) in params.iter().filter(|(name, _)| name.starts_with(PHP_SETTING)) {
        push_variable(out, name, value)?;
        setting_count += 1;
    }
    // A missing variable points at one of these zeros.
    let mut pointed = [out.len() - start; POINTED.len()];
    out.extend_from_slice(&[0; 4]);
    let (mut known, mut unknown) = ([Place::default(); KNOWN.len()], Vec::new());
    // Offset 0 means that the field is missing.
    let mut lines = b"\r\n".to_vec();
    let mut env_count = 0_i32;
    for (name, value) in params.iter() {
        if let Some(at) = KNOWN.iter().position(|known| *known == name) {
            if !(value.is_empty() && name.starts_with(b"CONTENT_")) && at != CONTENT_LENGTH_AT {
                known[at] = push_line(&mut lines, name, value);
            }
        } else if name.starts_with(b"HTTP_") {
            unknown.push(push_line(&mut lines, name, value));
        } else if !name.is_empty() && !name.starts_with(PHP_SETTING) {
            let value_at = push_variable(out, name, value)? - start;
            env_count += 1;
            if let Some(at) = POINTED.iter().position(|pointed| *pointed == name) {
                pointed[at] = value_at;
            }
        }
    }
    if body_len > 0 || params.get(CONTENT_LENGTH).is_some_and(|length| !length.is_empty()) {
        let value = body_len.to_string();
        known[CONTENT_LENGTH_AT] = push_line(&mut lines, CONTENT_LENGTH, value.as_bytes());
    }
    out.extend_from_slice(&[0; 4]);
    out.resize(start + (out.len() - start).next_multiple_of(8), 0);
    debug_assert!((out.len() - start).is_multiple_of(8), "the table is aligned to eight bytes");
    push_table(out, &known)?;
    for field in &unknown {
        for at in [field.name.0, field.name.1, field.value.0, field.value.1] {
            push_int(out, at as i32);
        }
    }
    out.extend_from_slice(&lines);
    let size = out.len() - start;
    if size > REQUEST_MAX {
        return None;
    }
    let mut fixed = Vec::with_capacity(FIXED_LEN);
    PacketHeader { len: size - HEADER_LEN, ..PacketHeader::empty(PacketKind::BeginRequest) }
        .push(&mut fixed);
    push_int(&mut fixed, lines.len() as i32);
    push_int(&mut fixed, i32::try_from(body_len).unwrap_or(SEE_FIELD));
    for at in pointed {
        push_int(&mut fixed, at as i32);
    }
    for count in [unknown.len() as i32, env_count, setting_count] {
        push_int(&mut fixed, count);
    }
    out[start..start + FIXED_LEN].copy_from_slice(&fixed);
    Some(())
}

fn push_int(out: &mut Vec<u8>, value: i32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a variable: two big-endian lengths, then name and value, each with a NUL that counts.
/// Returns the offset of the value.
fn push_variable(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Option<usize> {
    for text in [name, value] {
        out.extend_from_slice(&u16::try_from(text.len() + 1).ok()?.to_be_bytes());
    }
    out.extend_from_slice(name);
    out.push(0);
    let value_at = out.len();
    out.extend_from_slice(value);
    out.push(0);
    Some(value_at)
}

/// Appends the field line of a param.
fn push_line(lines: &mut Vec<u8>, param: &[u8], value: &[u8]) -> Place {
    let name_at = lines.len();
    let mut is_first = true;
    for &byte in param.strip_prefix(b"HTTP_").unwrap_or(param) {
        let byte = if byte == b'_' { b'-' } else { byte };
        lines.push(if is_first { byte } else { byte.to_ascii_lowercase() });
        is_first = byte == b'-';
    }
    let name = (name_at, lines.len() - name_at);
    lines.extend_from_slice(b": ");
    let place = Place { name, value: (lines.len(), value.len()) };
    lines.extend_from_slice(value);
    lines.extend_from_slice(b"\r\n");
    place
}

fn push_table(out: &mut Vec<u8>, known: &[Place; KNOWN.len()]) -> Option<()> {
    let end = out.len() + TABLE_LEN;
    for field in known {
        out.extend_from_slice(&u16::try_from(field.value.1).ok()?.to_le_bytes());
    }
    out.resize(end - KNOWN.len() * 4, 0);
    for field in known {
        push_int(out, field.value.0 as i32);
    }
    debug_assert_eq!(out.len(), end, "the table has its fixed length");
    Some(())
}
