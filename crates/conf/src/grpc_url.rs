//! Splits the address of `grpc_pass`: a scheme, if there is one, before what other protocols have.

use crate::model::ProxyUrl;
use crate::proxy_url::{read_address, strip};

const GRPC: &[u8] = b"grpc://";
const GRPCS: &[u8] = b"grpcs://";

/// The parts of an address. Whether they are valid is not checked; `written` has no scheme. The
/// host is that of `:authority`: with the port, if there is one.
#[must_use]
pub fn read(text: &[u8]) -> ProxyUrl {
    let url = read_address(text, GRPC, GRPCS);
    match strip(&url.written, b"unix:") {
        Some(_) => url,
        None => ProxyUrl { host: url.written.clone(), ..url },
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_scheme_is_cut_and_the_authority_has_the_port() {
        for (text, secure, written, host) in [
            ("127.0.0.1:1", false, "127.0.0.1:1", "127.0.0.1:1"),
            ("grpc://a:1", false, "a:1", "a:1"),
            ("GRPCS://[::1]:1", true, "[::1]:1", "[::1]:1"),
            ("grpcs://unix:/s", true, "unix:/s", "localhost"),
            ("grpcs://group", true, "group", "group"),
            ("http://a", false, "http://a", "http://a"),
            ("grpc://", false, "", ""),
        ] {
            let url = read(text.as_bytes());
            assert_eq!((url.secure, &*url.written), (secure, written.as_bytes()), "{text}");
            assert_eq!(&*url.host, host.as_bytes(), "{text}");
        }
    }
}
