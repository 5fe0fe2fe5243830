//! Splits the URL of `proxy_pass`, at start-up or once variables are evaluated.

use crate::model::ProxyUrl;

const HTTP: &[u8] = b"http://";
const HTTPS: &[u8] = b"https://";

/// An address in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutUrl<'a> {
    /// Whether the scheme is `https`.
    pub secure: bool,
    /// Everything after the scheme, as messages show it.
    pub rest: &'a [u8],
    /// The server: `HOST`, `HOST:PORT`, `[ADDRESS]:PORT`, `unix:PATH`.
    pub origin: &'a [u8],
    /// `$proxy_host`
    pub host: &'a [u8],
    /// `$proxy_port`
    pub port: &'a [u8],
    /// From the first `/` or `?` on; `None` if there is none.
    pub uri: Option<&'a [u8]>,
}

/// Why a URL is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlError {
    /// It begins with neither `http://` nor `https://`.
    Scheme,
}

impl UrlError {
    /// nginx's words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Scheme => "invalid URL prefix",
        }
    }
}

pub(crate) fn strip<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Splits a URL. The host and port are not checked.
///
/// # Errors
///
/// [`UrlError`]
pub fn parse(text: &[u8]) -> Result<CutUrl<'_>, UrlError> {
    let (secure, rest) = match strip(text, HTTPS) {
        Some(rest) => (true, rest),
        None => (false, strip(text, HTTP).ok_or(UrlError::Scheme)?),
    };
    if strip(rest, b"unix:").is_some() {
        let end = rest[5..].iter().position(|byte| *byte == b':').map_or(rest.len(), |at| at + 5);
        let uri = rest.get(end + 1..).filter(|uri| !uri.is_empty());
        let origin = &rest[..end];
        return Ok(CutUrl { secure, rest, origin, host: b"localhost", port: b"", uri });
    }
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let (origin, uri) = rest.split_at(end);
    let (host, port) = cut_port(origin);
    let (usual, shown): (u16, &[u8]) = if secure { (443, b"443") } else { (80, b"80") };
    let is_default =
        port.is_empty() || std::str::from_utf8(port).is_ok_and(|port| port.parse() == Ok(usual));
    Ok(CutUrl {
        secure,
        rest,
        origin,
        host: if is_default { host } else { origin },
        port: if is_default { shown } else { port },
        uri: Some(uri).filter(|uri| !uri.is_empty()),
    })
}

/// The parts of an address without a URI, behind one of two schemes or none.
pub(crate) fn read_address(text: &[u8], plain: &[u8], with_tls: &[u8]) -> ProxyUrl {
    let (secure, origin) = match strip(text, with_tls) {
        Some(rest) => (true, rest),
        None => (false, strip(text, plain).unwrap_or(text)),
    };
    let (host, port) = match strip(origin, b"unix:") {
        Some(_) => (&b"localhost"[..], &b""[..]),
        None => cut_port(origin),
    };
    ProxyUrl {
        secure,
        host: host.into(),
        port: port.into(),
        uri: None,
        replaces: [].into(),
        written: origin.into(),
    }
}

/// Host and port of `HOST:PORT` or `[ADDRESS]:PORT`.
pub(crate) fn cut_port(origin: &[u8]) -> (&[u8], &[u8]) {
    let from = origin.iter().rposition(|byte| *byte == b']').unwrap_or(0);
    match origin[from..].iter().position(|byte| *byte == b':') {
        Some(at) => (&origin[..from + at], &origin[from + at + 1..]),
        None => (origin, b""),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{UrlError, parse};

    #[test]
    fn an_address_is_cut_as_nginx_cuts_it() {
        let rows: [(&str, [&str; 3], Option<&str>); 14] = [
            ("http://a", ["a", "a", "80"], None),
            ("HTTP://A:80", ["A:80", "A", "80"], None),
            ("http://a:8080/", ["a:8080", "a:8080", "8080"], Some("/")),
            ("http://a/b/c?d", ["a", "a", "80"], Some("/b/c?d")),
            ("http://a?x", ["a", "a", "80"], Some("?x")),
            ("http://[::1]", ["[::1]", "[::1]", "80"], None),
            ("http://[::1]:81/x", ["[::1]:81", "[::1]:81", "81"], Some("/x")),
            ("http://unix:/tmp/s", ["unix:/tmp/s", "localhost", ""], None),
            ("http://unix:/tmp/s:/x:y", ["unix:/tmp/s", "localhost", ""], Some("/x:y")),
            ("http://unix:/tmp/s:", ["unix:/tmp/s", "localhost", ""], None),
            ("http:///x", ["", "", "80"], Some("/x")),
            ("https://a/", ["a", "a", "443"], Some("/")),
            ("HTTPS://a:443", ["a:443", "a", "443"], None),
            ("https://a:80", ["a:80", "a:80", "80"], None),
        ];
        for (text, [origin, host, port], uri) in rows {
            let cut = parse(text.as_bytes()).unwrap();
            assert_eq!(cut.secure, text.to_ascii_lowercase().starts_with("https"), "{text}");
            assert_eq!(cut.origin, origin.as_bytes(), "{text}");
            assert_eq!((cut.host, cut.port), (host.as_bytes(), port.as_bytes()), "{text}");
            assert_eq!(cut.uri, uri.map(str::as_bytes), "{text}");
        }
        assert_eq!(parse(b"a"), Err(UrlError::Scheme));
    }

    proptest! {
        #[test]
        fn nothing_of_an_address_is_lost(rest in "[a-z0-9:/?.\\[\\]]{0,24}") {
            let text = format!("http://{rest}");
            let cut = parse(text.as_bytes()).unwrap();
            prop_assert_eq!(cut.rest, rest.as_bytes());
            if !rest.starts_with("unix:") {
                let uri = cut.uri.unwrap_or_default();
                prop_assert_eq!([cut.origin, uri].concat(), rest.as_bytes());
            }
        }
    }
}
