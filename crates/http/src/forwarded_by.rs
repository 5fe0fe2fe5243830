//! Request fields by which proxies and caches in front mark a forwarded request.

use crate::FieldMap;

/// Names of fields that only proxies add.
const NAMES: [&[u8]; 19] = [
    b"Forwarded",
    b"Via",
    b"True-Client-IP",
    b"Client-IP",
    b"Proxy-Client-IP",
    b"WL-Proxy-Client-IP",
    b"CF-Connecting-IP",
    b"CF-Connecting-IPv6",
    b"CF-Pseudo-IPv4",
    b"CF-Ray",
    b"CF-Visitor",
    b"CDN-Loop",
    b"Fastly-Client-IP",
    b"Front-End-Https",
    b"X-Cluster-Client-IP",
    b"X-ProxyUser-IP",
    b"X-Azure-ClientIP",
    b"X-Scheme",
    b"X-Varnish",
];
/// Prefixes of such names.
const BEGINNINGS: [&[u8]; 6] = [
    b"X-Forwarded",
    b"X-Original-Forwarded-",
    b"X-Real-",
    b"X-Client-",
    b"X-Remote-",
    b"CloudFront-",
];

/// Whether a field of this name marks a forwarded request.
#[must_use]
pub fn says_so(name: &[u8]) -> bool {
    let begins = |known: &&[u8]| {
        name.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known))
    };
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)) || BEGINNINGS.iter().any(begins)
}

/// Whether a request has a field that proxies add.
#[must_use]
pub fn is_forwarded(request: &FieldMap) -> bool {
    request.iter().any(|field| says_so(field.text))
}

#[cfg(test)]
mod tests {
    use super::says_so;

    #[test]
    fn proxies_are_distinguished_from_clients() {
        for name in ["Via", "x-forwarded-for", "X-Forwarded", "X-REAL-IP", "forwarded", "cf-ray"] {
            assert!(says_so(name.as_bytes()), "{name}");
        }
        for name in ["Host", "X-Requested-With", "User-Agent", "X-Forward", "Viaduct", "X-Tags"] {
            assert!(!says_so(name.as_bytes()), "{name}");
        }
    }
}
