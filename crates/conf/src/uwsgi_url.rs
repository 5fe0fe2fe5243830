//! Splits the address of `uwsgi_pass`: a scheme, if there is one, before what other protocols have.

use crate::model::ProxyUrl;
use crate::proxy_url::read_address;

const UWSGI: &[u8] = b"uwsgi://";
const SUWSGI: &[u8] = b"suwsgi://";

/// The parts of an address. Whether they are valid is not checked; `written` has no scheme.
#[must_use]
pub fn read(text: &[u8]) -> ProxyUrl {
    read_address(text, UWSGI, SUWSGI)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_scheme_is_cut_and_says_whether_there_is_tls() {
        for (text, secure, written, host) in [
            ("127.0.0.1:1", false, "127.0.0.1:1", "127.0.0.1"),
            ("uwsgi://a:1", false, "a:1", "a"),
            ("SUWSGI://[::1]:1", true, "[::1]:1", "[::1]"),
            ("suwsgi://unix:/s", true, "unix:/s", "localhost"),
            ("suwsgi://group", true, "group", "group"),
            ("http://a", false, "http://a", "http"),
            ("uwsgi://", false, "", ""),
        ] {
            let url = read(text.as_bytes());
            assert_eq!((url.secure, &*url.written), (secure, written.as_bytes()), "{text}");
            assert_eq!(&*url.host, host.as_bytes(), "{text}");
        }
    }
}
