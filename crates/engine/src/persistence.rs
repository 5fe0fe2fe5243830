//! Whether an HTTP/1 connection may persist (RFC 9112 §9.3).

use bolide_conf::model::KeepaliveDisable;
use bolide_http::{HttpVersion, Method, Name, RequestHead};
use memchr::memmem;

/// `keepalive_disable`: whether the client is a browser that cannot reuse connections: an old
/// Safari, or an old MSIE after a POST.
#[inline]
pub(crate) fn is_distrusted(disable: KeepaliveDisable, head: &RequestHead) -> bool {
    // PERF: almost no request gets beyond this check.
    if !(disable.safari || disable.msie6 && head.method == Method::Post) {
        return false;
    }
    let Some(agent) = head.fields.get(Name::UserAgent) else { return false };
    match Browser::of(agent) {
        Browser::Msie6 => disable.msie6 && head.method == Method::Post,
        Browser::Safari => disable.safari,
        Browser::Other => false,
    }
}

/// The classification of a `User-Agent`, as in nginx.
#[derive(Debug, PartialEq, Eq)]
enum Browser {
    /// MSIE 4, 5, or 6 without its second service pack.
    Msie6,
    /// On a Mac.
    Safari,
    Other,
}

impl Browser {
    fn of(agent: &[u8]) -> Self {
        let has = |word: &[u8]| memmem::find(agent, word).is_some();
        if has(b"Opera") {
            return Self::Other;
        }
        let behind = memmem::find(agent, b"MSIE ").map(|at| &agent[at + b"MSIE ".len()..]);
        if let Some(version) = behind.filter(|version| version.len() > 2) {
            return match version {
                [b'4' | b'5', b'.', ..] => Self::Msie6,
                [b'6', b'.', _, rest @ ..] if memmem::find(rest, b"SV1").is_none() => Self::Msie6,
                _ => Self::Other,
            };
        }
        let is_safari = has(b"Safari/") && has(b"Mac OS X");
        match is_safari && !has(b"Gecko/") && !has(b"Chrome/") {
            true => Self::Safari,
            false => Self::Other,
        }
    }
}

/// Whether an HTTP/1 client wants a persistent connection.
pub(crate) fn stays(head: &RequestHead) -> bool {
    let asks = |option: &[u8]| {
        head.fields.all(Name::Connection).any(|value| {
            let mut options = value.split(|&byte| byte == b',');
            options.any(|item| item.trim_ascii().eq_ignore_ascii_case(option))
        })
    };
    match head.version {
        HttpVersion::Http11 => !asks(b"close"),
        HttpVersion::Http10 => asks(b"keep-alive") && !asks(b"close"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::Browser;

    #[test]
    fn browsers_are_known_by_words() {
        for (agent, browser) in [
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", Browser::Msie6),
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1)", Browser::Other),
            ("Mozilla/4.0 (compatible; MSIE 5.5)", Browser::Msie6),
            ("MSIE 4.0", Browser::Msie6),
            ("MSIE 4.", Browser::Other),
            ("MSIE 7.0", Browser::Other),
            ("MSIE 60.0", Browser::Other),
            ("Mozilla/4.0 (compatible; MSIE 6.0) Opera 9", Browser::Other),
            ("Mozilla/5.0 (Macintosh; Mac OS X) Version/5 Safari/53", Browser::Safari),
            ("Mozilla/5.0 (Macintosh; Mac OS X) Chrome/9 Safari/53", Browser::Other),
            ("Mozilla/5.0 (Macintosh; Mac OS X) Gecko/2 Safari/53", Browser::Other),
            ("Safari/53 Mac OS X MSIE 7.0", Browser::Other),
            ("Safari/53", Browser::Other),
            ("", Browser::Other),
        ] {
            assert_eq!(Browser::of(agent.as_bytes()), browser, "{agent}");
        }
    }
}
