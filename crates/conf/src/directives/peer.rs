//! Addresses of upstream servers, as `server` of a group and the `…_pass` directives write them.
//! This module splits and resolves them; the directives report the errors.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use crate::model::PeerAddress;
use crate::reader::ConfReader;
use crate::value as values;

/// The longest path of a socket that the system accepts.
pub(super) const UNIX_PATH_MAX: usize = 107;

/// An address, split but not resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerAddressText {
    /// `unix:PATH`
    Unix(Arc<Path>),
    /// `HOST`, `HOST:PORT`
    Inet {
        /// A name, an address, or `[…]`, as written.
        host: String,
        /// The port, if there is one.
        port: Option<u16>,
    },
}

/// Splits an address.
///
/// # Errors
///
/// It is none; nginx's words.
pub fn cut(word: &[u8]) -> Result<PeerAddressText, &'static str> {
    if let Some(path) = strip_unix(word) {
        return match path.len() {
            0 => Err("no path in the unix domain socket"),
            1..=UNIX_PATH_MAX => {
                Ok(PeerAddressText::Unix(Path::new(OsStr::from_bytes(path)).into()))
            }
            _ => Err("too long path in the unix domain socket"),
        };
    }
    let text = std::str::from_utf8(word).map_err(|_| "invalid host")?;
    if text.starts_with('[') {
        return cut_inet6(text);
    }
    if text.contains(['/', '?']) {
        return Err("invalid host");
    }
    let (host, port) = match text.split_once(':') {
        Some((host, digits)) => (host, Some(port(digits)?)),
        None => (text, None),
    };
    if host.is_empty() {
        return Err("no host");
    }
    Ok(PeerAddressText::Inet { host: host.to_owned(), port })
}

/// The path after `unix:`, which may be in capitals.
pub(super) fn strip_unix(word: &[u8]) -> Option<&[u8]> {
    let (scheme, path) = word.split_at_checked(5)?;
    scheme.eq_ignore_ascii_case(b"unix:").then_some(path)
}

fn cut_inet6(text: &str) -> Result<PeerAddressText, &'static str> {
    let end = text.find(']').ok_or("invalid host")?;
    let (host, rest) = text.split_at(end + 1);
    let port = match rest.strip_prefix(':') {
        Some(digits) => Some(port(digits)?),
        None if rest.is_empty() => None,
        None => return Err("invalid host"),
    };
    if host == "[]" {
        return Err("no host");
    }
    if inet6(host).is_none() {
        return Err("invalid IPv6 address");
    }
    Ok(PeerAddressText::Inet { host: host.to_owned(), port })
}

fn inet6(host: &str) -> Option<Ipv6Addr> {
    host.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

fn port(digits: &str) -> Result<u16, &'static str> {
    match values::number(digits.as_bytes()).and_then(|port| u16::try_from(port).ok()) {
        None | Some(0) => Err("invalid port"),
        Some(port) => Ok(port),
    }
}

/// The addresses of a host; an error when there are none.
pub(super) fn look_up(
    r: &ConfReader,
    host: &str,
    port: u16,
) -> Result<Vec<PeerAddress>, &'static str> {
    let inet = |ip: IpAddr| PeerAddress::Inet(SocketAddr::new(ip, port));
    if let Some(ip) = inet6(host) {
        return Ok(vec![inet(ip.into())]);
    }
    let mut addresses = Vec::new();
    for ip in r.addresses(host) {
        let address = inet(ip);
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() { Err("host not found") } else { Ok(addresses) }
}

#[cfg(test)]
mod tests {
    use super::{PeerAddressText, cut};

    fn inet(host: &str, port: Option<u16>) -> PeerAddressText {
        PeerAddressText::Inet { host: host.to_owned(), port }
    }

    #[test]
    fn addresses_are_cut_as_nginx_cuts_them() {
        let rows: [(&str, Result<PeerAddressText, &str>); 16] = [
            ("127.0.0.1:9000", Ok(inet("127.0.0.1", Some(9000)))),
            ("a", Ok(inet("a", None))),
            ("[::1]:80", Ok(inet("[::1]", Some(80)))),
            ("[::1]", Ok(inet("[::1]", None))),
            ("unix:/a:b/c", Ok(PeerAddressText::Unix(std::path::Path::new("/a:b/c").into()))),
            ("unix:", Err("no path in the unix domain socket")),
            ("", Err("no host")),
            (":80", Err("no host")),
            (":x", Err("invalid port")),
            ("a:0", Err("invalid port")),
            ("a:65536", Err("invalid port")),
            ("a:", Err("invalid port")),
            ("http://a", Err("invalid host")),
            ("[::1]x", Err("invalid host")),
            ("[::1", Err("invalid host")),
            ("[::x]", Err("invalid IPv6 address")),
        ];
        for (text, expected) in rows {
            assert_eq!(cut(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(cut(b"[]"), Err("no host"));
        let long = [&b"unix:/"[..], &[b'a'; 107]].concat();
        assert_eq!(cut(&long), Err("too long path in the unix domain socket"));
        assert!(cut(&long[..long.len() - 1]).is_ok());
    }
}
