//! URLs as users type them.

use bolide_http::Scheme;

/// A parsed URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// `http` or `https`
    pub scheme: Scheme,
    /// Host, and port if it was written, as in `Host`.
    pub authority: Vec<u8>,
    /// The host in lower case.
    pub host: Vec<u8>,
    /// The port, explicit or default.
    pub port: u16,
    /// Path and query; bytes that are invalid in a request line are escaped.
    pub target: Vec<u8>,
}

impl Url {
    /// Parses `http://host[:port][/path][?query]`, or the same with `https`.
    ///
    /// # Errors
    ///
    /// What is invalid, in words.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let shown = String::from_utf8_lossy(text).into_owned();
        let starts: [(&[u8], Scheme, u16); 2] =
            [(b"http://", Scheme::Http, 80), (b"https://", Scheme::Https, 443)];
        let start = starts.into_iter().find(|start| {
            text.get(..start.0.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start.0))
        });
        let Some((start, scheme, usual)) = start else {
            return Err(format!("\"{shown}\" does not begin with http:// or https://"));
        };
        let rest = &text[start.len()..];
        let rest = rest.split(|byte| *byte == b'#').next().unwrap_or_default();
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let mut host = Vec::new();
        let port = bolide_http::host::normalise(authority, &mut host)
            .map_err(|_| format!("\"{shown}\" has no host that could be one"))?;
        if host.is_empty() {
            return Err(format!("\"{shown}\" has no host"));
        }
        let mut target = Vec::with_capacity(path.len() + 1);
        if path.first() != Some(&b'/') {
            target.push(b'/');
        }
        for byte in path {
            match byte {
                0..=b' ' | 0x7f.. => target.extend_from_slice(format!("%{byte:02X}").as_bytes()),
                byte => target.push(*byte),
            }
        }
        let authority = authority.to_vec();
        Ok(Self { scheme, authority, host, port: port.unwrap_or(usual), target })
    }

    /// The URL as text.
    #[must_use]
    pub fn text(&self) -> String {
        let scheme = if self.scheme == Scheme::Https { "https" } else { "http" };
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        format!("{scheme}://{}{}", shown(&self.authority), shown(&self.target))
    }
}

#[cfg(test)]
mod tests {
    use super::Url;
    use bolide_http::Scheme;

    #[test]
    fn urls_are_taken_apart() {
        for (text, scheme, host, port, target) in [
            ("http://a.test", Scheme::Http, "a.test", 80, "/"),
            ("HTTPS://A.test/x?y=1#z", Scheme::Https, "a.test", 443, "/x?y=1"),
            ("http://a.test:8080?q", Scheme::Http, "a.test", 8080, "/?q"),
            ("http://[::1]:81/a b\u{e9}", Scheme::Http, "[::1]", 81, "/a%20b%C3%A9"),
        ] {
            let url = Url::parse(text.as_bytes()).unwrap();
            let parts = (url.scheme, url.port, String::from_utf8(url.host.clone()).unwrap());
            assert_eq!(parts, (scheme, port, host.to_owned()), "{text}");
            assert_eq!(String::from_utf8(url.target.clone()).unwrap(), target, "{text}");
            assert_eq!(Url::parse(url.text().as_bytes()).unwrap().target, url.target);
        }
        for text in ["", "/path", "ftp://a", "http://", "http:///x", "http://a:b/"] {
            assert!(Url::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
