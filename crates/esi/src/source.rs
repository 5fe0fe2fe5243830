//! URLs of fragments: from `src` to the path and query of a subrequest.
//!
//! Owns the decision which URLs are local; all others are refused, so that a page cannot make the
//! server fetch from elsewhere. Dot segments stay: the request pipeline resolves them as it does
//! for clients.

/// Why an address is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceError {
    /// Another site, or a scheme that is not HTTP.
    Foreign,
    /// An empty URL.
    Empty,
}

impl SourceError {
    /// For the log.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Foreign => "ESI: an include of another site",
            Self::Empty => "ESI: an include without address",
        }
    }
}

/// Path and query of `src` relative to a page whose target (path and query) is `parent`. `is_own`
/// checks the host and port of an absolute URL.
///
/// # Errors
///
/// [`SourceError`] when the URL is not local.
pub fn resolve(
    src: &[u8],
    parent: &[u8],
    is_own: impl FnOnce(&[u8]) -> bool,
) -> Result<Vec<u8>, SourceError> {
    let src = src.split(|&byte| byte == b'#').next().unwrap_or_default();
    let path_of = |target: &[u8]| -> usize {
        target.iter().position(|&byte| byte == b'?').unwrap_or(target.len())
    };
    if let Some(rest) = after_scheme(src) {
        let end = rest.iter().position(|&byte| matches!(byte, b'/' | b'?' | b'\\'));
        let (authority, path) = rest.split_at(end.unwrap_or(rest.len()));
        if authority.is_empty() || authority.contains(&b'@') || !is_own(authority) {
            return Err(SourceError::Foreign);
        }
        let slash: &[u8] = if path.starts_with(b"/") { b"" } else { b"/" };
        return Ok([slash, path].concat());
    }
    match src {
        [] => Err(SourceError::Empty),
        [b'/', ..] => Ok(src.to_vec()),
        [b'?', ..] => Ok([&parent[..path_of(parent)], src].concat()),
        _ if has_scheme(src) => Err(SourceError::Foreign),
        _ => {
            let path = &parent[..path_of(parent)];
            let directory = path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
            let directory = if directory == 0 { &b"/"[..] } else { &path[..directory] };
            Ok([directory, src].concat())
        }
    }
}

/// The text after `http://`, `https://` or `//`.
fn after_scheme(src: &[u8]) -> Option<&[u8]> {
    let rest = match src.iter().position(|&byte| byte == b':') {
        Some(at) if src[..at].eq_ignore_ascii_case(b"http") => &src[at + 1..],
        Some(at) if src[..at].eq_ignore_ascii_case(b"https") => &src[at + 1..],
        _ => src,
    };
    rest.strip_prefix(b"//")
}

/// Whether a colon precedes any slash or question mark.
fn has_scheme(src: &[u8]) -> bool {
    src.iter().find(|byte| matches!(byte, b':' | b'/' | b'?')) == Some(&b':')
}

#[cfg(test)]
mod tests {
    use super::{SourceError, resolve};

    #[test]
    fn addresses_are_ours_or_refused() {
        let rows: [(&str, Result<&str, SourceError>); 20] = [
            ("/a?b=1&c", Ok("/a?b=1&c")),
            ("a", Ok("/dir/a")),
            ("./a", Ok("/dir/./a")),
            ("../a", Ok("/dir/../a")),
            ("?x=1", Ok("/dir/page?x=1")),
            ("/a#part", Ok("/a")),
            ("http://own/a", Ok("/a")),
            ("HTTPS://own", Ok("/")),
            ("https://own?x", Ok("/?x")),
            ("//own/a//b", Ok("/a//b")),
            ("http://other/a", Err(SourceError::Foreign)),
            ("//other/a", Err(SourceError::Foreign)),
            ("http://own@other/", Err(SourceError::Foreign)),
            ("http://other\\@own/", Err(SourceError::Foreign)),
            ("http:///a", Err(SourceError::Foreign)),
            ("http:a", Err(SourceError::Foreign)),
            ("file:///etc/passwd", Err(SourceError::Foreign)),
            ("javascript:1", Err(SourceError::Foreign)),
            ("#part", Err(SourceError::Empty)),
            ("", Err(SourceError::Empty)),
        ];
        for (src, expected) in rows {
            let found = resolve(src.as_bytes(), b"/dir/page?q=/x", |host| host == b"own");
            let expected = expected.map(|path| path.as_bytes().to_vec());
            assert_eq!(found, expected, "{src}");
        }
        assert_eq!(resolve(b"a", b"*", |_| true), Ok(b"/a".to_vec()));
    }
}
