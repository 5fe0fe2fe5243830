//! Whether a client wants its connection kept (RFC 9112 §9.3).

use bolide_http::{HttpVersion, Name, RequestHead};

/// Whether an HTTP/1 client wants its connection kept.
pub(crate) fn stays(head: &RequestHead) -> bool {
    let asks = |option: &[u8]| {
        head.fields.iter().filter(|field| field.name == Name::Connection).any(|field| {
            let mut options = field.value.split(|&byte| byte == b',');
            options.any(|item| item.trim_ascii().eq_ignore_ascii_case(option))
        })
    };
    match head.version {
        HttpVersion::Http11 => !asks(b"close"),
        HttpVersion::Http10 => asks(b"keep-alive") && !asks(b"close"),
        _ => false,
    }
}
