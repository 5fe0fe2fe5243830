//! The request line: method, target in its four forms, version (RFC 9112 §3).
//!
//! It refuses what the grammar does not know, with nginx's words, and takes no second blank.

use bolide_http::{HttpVersion, Method, RequestHead};
use memchr::{memchr, memchr2};

use super::grammar::{has_control, is_host};
use crate::WireRefusal;

const INVALID_METHOD: WireRefusal =
    WireRefusal { status: 400, reason: "client sent invalid method" };
const INVALID_REQUEST: WireRefusal =
    WireRefusal { status: 400, reason: "client sent invalid request" };
const INVALID_HOST: WireRefusal =
    WireRefusal { status: 400, reason: "client sent invalid host in request line" };
const INVALID_VERSION: WireRefusal =
    WireRefusal { status: 505, reason: "client sent invalid version" };
const INVALID_METHOD_09: WireRefusal =
    WireRefusal { status: 400, reason: "client sent invalid method in HTTP/0.9 request" };

/// Bytes of the longest method; a fixed bound keeps the check of an unfinished line constant.
pub(super) const METHOD_SIZE_MAX: usize = 64;

/// Where the authority of a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetAuthority {
    /// From `Host`.
    Field,
    /// From the target, which had absolute form; `Host` does not matter (RFC 9112 §3.2.2).
    Target,
}

/// Where the method ends; `None` while `line` is too short to tell.
///
/// # Errors
///
/// A byte that no method holds: such a line need not be read to its end.
pub(super) fn method_end(line: &[u8]) -> Result<Option<usize>, WireRefusal> {
    for (at, byte) in line.iter().enumerate() {
        match byte {
            b' ' if at > 0 => return Ok(Some(at)),
            b'A'..=b'Z' | b'_' | b'-' if at < METHOD_SIZE_MAX => {}
            _ => return Err(INVALID_METHOD),
        }
    }
    Ok(None)
}

/// Takes a complete line, without its end, whose method ends at `method_end`.
///
/// # Errors
///
/// What to answer and log; `head` then holds what had been read until there.
pub(super) fn parse(
    line: &[u8],
    method_end: usize,
    head: &mut RequestHead,
) -> Result<TargetAuthority, WireRefusal> {
    let (method, rest) = (&line[..method_end], &line[method_end + 1..]);
    head.method = Method::parse(method);
    head.method_text.extend_from_slice(method);
    if has_control(rest) {
        return Err(INVALID_REQUEST);
    }
    let (target, version) = match memchr(b' ', rest) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let authority = parse_target(target, head)?;
    head.version = match version {
        Some(text) => parse_version(text)?,
        None => HttpVersion::Http09,
    };
    if version.is_none() && head.method != Method::Get {
        return Err(INVALID_METHOD_09);
    }
    Ok(authority)
}

fn parse_target(target: &[u8], head: &mut RequestHead) -> Result<TargetAuthority, WireRefusal> {
    let absolute = match target {
        // RFC 9112 §3.2.3: its target has authority form, and no other.
        [b'/', ..] if head.method == Method::Connect => return Err(INVALID_REQUEST),
        [b'/', ..] => None,
        b"*" if head.method == Method::Options => None,
        // The authority form is refused with its method, once the head is complete.
        [_, ..] if head.method == Method::Connect => None,
        _ => Some(strip_scheme(target).ok_or(INVALID_REQUEST)?),
    };
    let Some(absolute) = absolute else {
        head.target.extend_from_slice(target);
        return Ok(TargetAuthority::Field);
    };
    let end = memchr2(b'/', b'?', absolute).unwrap_or(absolute.len());
    let (authority, path) = absolute.split_at(end);
    if !is_spelled_plainly(authority) {
        return Err(INVALID_REQUEST);
    }
    if !is_host(authority) {
        return Err(INVALID_HOST);
    }
    head.authority.extend_from_slice(authority);
    if path.first() != Some(&b'/') {
        head.target.push(b'/');
    }
    head.target.extend_from_slice(path);
    Ok(TargetAuthority::Target)
}

/// Whether a name in a target has no other bytes than names in use have: as in nginx, it is held to
/// more than `Host` is.
fn is_spelled_plainly(authority: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
    let (name, port) = match memchr(b':', authority).filter(|_| authority[0] != b'[') {
        Some(colon) => (&authority[..colon], &authority[colon + 1..]),
        None => (authority, &[][..]),
    };
    let is_name = authority.first() == Some(&b'[') || name.iter().all(is_plain);
    is_name && port.iter().all(u8::is_ascii_digit)
}

fn strip_scheme(target: &[u8]) -> Option<&[u8]> {
    [&b"http://"[..], b"https://"].into_iter().find_map(|scheme| {
        let (start, rest) = target.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}

fn parse_version(text: &[u8]) -> Result<HttpVersion, WireRefusal> {
    let numbers = text.strip_prefix(b"HTTP/").ok_or(INVALID_REQUEST)?;
    match numbers {
        b"1.1" => Ok(HttpVersion::Http11),
        b"1.0" => Ok(HttpVersion::Http10),
        // RFC 9110 §2.5: a higher minor version is answered as the highest we know; RFC 9112 §2.3:
        // it is one digit.
        [b'1', b'.', b'0'..=b'9'] => Ok(HttpVersion::Http11),
        [b'2'..=b'9', ..] | [b'1', b'0'..=b'9', ..] => Err(INVALID_VERSION),
        _ => Err(INVALID_REQUEST),
    }
}
