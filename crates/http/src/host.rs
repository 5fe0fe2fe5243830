//! The host of a request: checked, in lower case, without port and final dot.

/// Why a `Host` or authority gets a 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostError;

impl HostError {
    /// The text for the error log.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        "client sent invalid host header"
    }
}

/// Writes the name in `authority` to `name` (cleared first) and returns its port, if any.
///
/// Literals keep their brackets.
///
/// # Errors
///
/// As [`is_valid`] says.
pub fn normalise(authority: &[u8], name: &mut Vec<u8>) -> Result<Option<u16>, HostError> {
    name.clear();
    let (host, port) = split(authority)?;
    name.extend_from_slice(host);
    name.make_ascii_lowercase();
    Ok(port)
}

/// Whether `authority` is a host with or without a port, as nginx takes it: a name of unreserved
/// characters, `%` and sub-delimiters (RFC 3986 §3.2.2), or a literal in brackets of these and
/// colons; no two dots in a row, and no more than one at the end of a name; a port of any number of
/// digits that is at most 65535.
#[must_use]
pub fn is_valid(authority: &[u8]) -> bool {
    split(authority).is_ok()
}

/// Whether `authority` is valid and has the colon of a port, with or without digits.
#[must_use]
pub fn has_port(authority: &[u8]) -> bool {
    let colon = match authority.first() {
        Some(b'[') => memchr::memchr(b']', authority).map(|end| end + 1),
        _ => memchr::memchr(b':', authority),
    };
    colon.is_some_and(|at| authority.get(at) == Some(&b':')) && is_valid(authority)
}

/// The host without its final dot, and the port.
fn split(authority: &[u8]) -> Result<(&[u8], Option<u16>), HostError> {
    let len = match authority.first() {
        Some(b'[') => literal_len(authority)?,
        _ => name_len(authority)?,
    };
    let port = match authority[len..].split_first() {
        None | Some((b':', [])) => None,
        Some((b':', digits)) => Some(port(digits)?),
        Some(_) => return Err(HostError),
    };
    let host = &authority[..len];
    let host = host.strip_suffix(b".").unwrap_or(host);
    if host.is_empty() { Err(HostError) } else { Ok((host, port)) }
}

/// The role of a byte in a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Name,
    Dot,
    Colon,
    Other,
}

/// PERF: one table lookup per byte; comparing with each allowed byte costs four times as much.
const CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut byte = 0_u8;
    loop {
        classes[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => Class::Name,
            b'-' | b'_' | b'~' | b'%' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' => Class::Name,
            b'*' | b'+' | b',' | b';' | b'=' => Class::Name,
            b'.' => Class::Dot,
            b':' => Class::Colon,
            _ => Class::Other,
        };
        if byte == u8::MAX {
            break classes;
        }
        byte += 1;
    }
};

fn name_len(authority: &[u8]) -> Result<usize, HostError> {
    let mut previous = Class::Name;
    for (at, &byte) in authority.iter().enumerate() {
        let class = CLASSES[usize::from(byte)];
        match class {
            Class::Name => {}
            Class::Dot if previous != Class::Dot => {}
            Class::Colon => return Ok(at),
            Class::Dot | Class::Other => return Err(HostError),
        }
        previous = class;
    }
    Ok(authority.len())
}

/// RFC 3986 §3.2.2: an IPv6 address or an address of a future version, which is not parsed.
fn literal_len(authority: &[u8]) -> Result<usize, HostError> {
    let mut previous = Class::Name;
    for (at, &byte) in authority.iter().enumerate().skip(1) {
        let class = CLASSES[usize::from(byte)];
        match class {
            _ if byte == b'%' => return Err(HostError),
            Class::Name | Class::Colon => {}
            Class::Dot if previous != Class::Dot => {}
            Class::Other if byte == b']' => return Ok(at + 1),
            Class::Dot | Class::Other => return Err(HostError),
        }
        previous = class;
    }
    Err(HostError)
}

fn port(digits: &[u8]) -> Result<u16, HostError> {
    digits.iter().try_fold(0_u16, |port, &digit| {
        let digit = char::from(digit).to_digit(10).ok_or(HostError)?;
        port.checked_mul(10).and_then(|port| port.checked_add(digit as u16)).ok_or(HostError)
    })
}

#[cfg(test)]
mod tests {
    use super::{HostError, has_port, is_valid, normalise};
    use proptest::prelude::proptest;

    #[test]
    fn hosts_lose_case_port_and_final_dot() {
        let cases = [
            ("Example.COM", "example.com", None),
            ("example.com.", "example.com", None),
            ("example.com.:8080", "example.com", Some(8080)),
            ("example.com:", "example.com", None),
            ("[2001:DB8::1]:443", "[2001:db8::1]", Some(443)),
            ("[::1]", "[::1]", None),
            ("127.0.0.1:80", "127.0.0.1", Some(80)),
            ("a_b", "a_b", None),
            ("a%2e!$&'()*+,;=~", "a%2e!$&'()*+,;=~", None),
            ("[v1.FE80::a+en1]", "[v1.fe80::a+en1]", None),
            ("[a-._~!$&'()*+,;=z]:00080", "[a-._~!$&'()*+,;=z]", Some(80)),
            ("a:065535", "a", Some(65535)),
            ("[]", "[]", None),
        ];
        let mut name = Vec::new();
        for (authority, host, port) in cases {
            assert_eq!(normalise(authority.as_bytes(), &mut name), Ok(port), "{authority}");
            assert_eq!(name, host.as_bytes(), "{authority}");
        }
    }

    #[test]
    fn impossible_hosts_are_refused() {
        let cases = [
            "",
            ".",
            ":80",
            "a..b",
            "a/b",
            "a b",
            "u@h",
            "a:80:80",
            "a:x",
            "a:65536",
            "[::1",
            "[",
            "[::1]x",
            "a]",
            "[::1].",
            "[a..b::1]",
            "[a%b]",
            "[a/b]",
            "[a b]",
            "a\\b",
            "a\u{0}",
            "a\u{7f}",
            "a\u{e4}",
            "[\u{e4}]",
            "a..",
            "a?",
            "a#",
        ];
        for authority in cases {
            let result = normalise(authority.as_bytes(), &mut Vec::new());
            assert_eq!(result, Err(HostError), "{authority}");
            assert!(!is_valid(authority.as_bytes()), "{authority}");
        }
    }

    #[test]
    fn a_port_is_announced_by_its_colon() {
        for authority in ["a:80", "a:", "[::1]:80", "[::1]:"] {
            assert!(has_port(authority.as_bytes()), "{authority}");
        }
        for authority in ["a", "[::1]", "a:65536", "a:x", ":80", "a/b:80", "http://a", ""] {
            assert!(!has_port(authority.as_bytes()), "{authority}");
        }
    }

    proptest! {
        #[test]
        fn a_normal_host_stays_as_it_is(authority: Vec<u8>) {
            crate::fuzz::host(&authority);
        }

        #[test]
        fn a_likely_host_stays_as_it_is(authority in "[A-Za-z.:0-9\\[\\]-]{0,20}") {
            crate::fuzz::host(authority.as_bytes());
        }
    }
}
