//! Parses the request line: method, target in its four forms, version (RFC 9112 §3).
//!
//! Invalid lines are refused with nginx's texts. Exactly one space separates the parts.

use bolide_http::{HttpVersion, Method, RequestHead, host};
use memchr::{memchr, memchr2};

use super::grammar::has_control;
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

/// LIMIT: bytes of a method. A fixed bound keeps the check of an incomplete line constant.
pub(super) const METHOD_SIZE_MAX: usize = 64;

/// The source of a request's authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetAuthority {
    /// The `Host` field.
    Field,
    /// The absolute-form target; `Host` is ignored (RFC 9112 §3.2.2).
    Target,
}

/// The end of the method; `None` while `line` is too short.
///
/// # Errors
///
/// A byte is invalid in a method, so that the rest of the line need not be read.
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

/// Parses a complete line, without its end, whose method ends at `method_end`.
///
/// # Errors
///
/// The status and reason of the refusal; `head` then holds what was parsed before.
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
    if version.is_none() {
        if head.method != Method::Get {
            return Err(INVALID_METHOD_09);
        }
        // As in nginx, a host alone is no target without a version.
        if authority == TargetAuthority::Target
            && memchr2(b'/', b'?', after_scheme(target)).is_none()
        {
            head.version = HttpVersion::Http10;
            return Err(INVALID_REQUEST);
        }
    }
    Ok(authority)
}

fn parse_target(target: &[u8], head: &mut RequestHead) -> Result<TargetAuthority, WireRefusal> {
    let absolute = match target {
        // RFC 9112 §3.2.3: CONNECT has a target in authority form only.
        [b'/', ..] if head.method == Method::Connect => return Err(INVALID_REQUEST),
        [b'/', ..] => None,
        b"*" if head.method == Method::Options => None,
        // What is right is refused with its method, once the head is complete.
        [_, ..] if head.method == Method::Connect => {
            if !host::has_port(target) {
                return Err(INVALID_REQUEST);
            }
            None
        }
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
    if !host::is_valid(authority) {
        return Err(INVALID_HOST);
    }
    head.authority.extend_from_slice(authority);
    if path.first() != Some(&b'/') {
        head.target.push(b'/');
    }
    head.target.extend_from_slice(path);
    Ok(TargetAuthority::Target)
}

/// Whether the host of a target has only the usual bytes. As in nginx, a target is checked more
/// strictly than `Host`.
fn is_spelled_plainly(authority: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
    let (name, port) = match memchr(b':', authority).filter(|_| authority[0] != b'[') {
        Some(colon) => (&authority[..colon], &authority[colon + 1..]),
        None => (authority, &[][..]),
    };
    let is_name = authority.first() == Some(&b'[') || name.iter().all(is_plain);
    is_name && port.iter().all(u8::is_ascii_digit)
}

/// What stands behind the scheme of an absolute target.
fn after_scheme(target: &[u8]) -> &[u8] {
    strip_scheme(target).unwrap_or_default()
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
        // RFC 9110 §2.5: a higher minor version is treated as the highest known one. RFC 9112 §2.3:
        // it is one digit.
        [b'1', b'.', b'0'..=b'9'] => Ok(HttpVersion::Http11),
        [b'2'..=b'9', ..] | [b'1', b'0'..=b'9', ..] => Err(INVALID_VERSION),
        _ => Err(INVALID_REQUEST),
    }
}
