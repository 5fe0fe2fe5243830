//! Local addresses of `proxy_bind`: numeric, with a port or without.

use std::net::{IpAddr, SocketAddr};

/// The address that `text` denotes; `None` if it is invalid. Port 0, which cannot be written, means
/// any.
#[must_use]
pub fn parse(text: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some(SocketAddr::new(ip, 0));
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (ip, rest) = rest.split_once(']')?;
        let ip = IpAddr::V6(ip.parse().ok()?);
        return match rest.strip_prefix(':') {
            Some(port) => Some(SocketAddr::new(ip, self::port(port)?)),
            None => rest.is_empty().then(|| SocketAddr::new(ip, 0)),
        };
    }
    let (ip, port) = text.split_once(':')?;
    Some(SocketAddr::new(IpAddr::V4(ip.parse().ok()?), self::port(port)?))
}

fn port(text: &str) -> Option<u16> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_number && *port > 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parse;

    #[test]
    fn addresses_are_numbers_with_a_port_or_without() {
        let rows = [
            ("127.0.0.1", Some("127.0.0.1:0")),
            ("127.0.0.1:5", Some("127.0.0.1:5")),
            ("::1", Some("[::1]:0")),
            ("[::1]", Some("[::1]:0")),
            ("[::1]:5", Some("[::1]:5")),
            ("127.0.0.1:0", None),
            ("127.0.0.1:+5", None),
            ("127.0.0.1:65536", None),
            ("127.0.0.1:", None),
            ("[::1]x", None),
            ("[127.0.0.1]:5", None),
            ("localhost", None),
            ("unix:/x", None),
            ("off", None),
            ("", None),
        ];
        for (text, wanted) in rows {
            let found = parse(text.as_bytes()).map(|at| at.to_string());
            assert_eq!(found.as_deref(), wanted, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(ip: std::net::IpAddr, port in 1_u16..) {
            let at = std::net::SocketAddr::new(ip, port);
            prop_assert_eq!(parse(at.to_string().as_bytes()), Some(at));
        }

        #[test]
        fn nothing_breaks_it(text: Vec<u8>) {
            let _ = parse(&text);
        }
    }
}
