//! Client fields that applications may trust: about the requested address, and about the method.
//!
//! A page that such a field influenced must not be served to other clients. Fields about the
//! address belong to the key; fields about the method make a request bypass the cache.

use bolide_http::fields::Field;
use bolide_http::{FieldMap, Name};

/// Fields about the requested address, besides those with the prefix `X-Forwarded-`.
const ADDRESSES: [&[u8]; 15] = [
    b"X-Host",
    b"X-Original-Host",
    b"X-HTTP-Host-Override",
    b"X-Original-URL",
    b"X-Original-URI",
    b"X-Original-Path",
    b"X-Envoy-Original-Path",
    b"X-Real-Host",
    b"X-Rewrite-URL",
    b"X-Scheme",
    b"X-Url-Scheme",
    b"X-ARR-SSL",
    b"Front-End-Https",
    b"CF-Visitor",
    b"CloudFront-Forwarded-Proto",
];
/// Fields that override the method.
const METHODS: [&[u8]; 3] = [b"X-HTTP-Method-Override", b"X-HTTP-Method", b"X-Method-Override"];

/// Whether an application reads the field `name` as `known`: `_` counts as `-`, and for PHP so does
/// `.`.
fn is_seen_as(name: &[u8], known: &[u8]) -> bool {
    name.len() == known.len() && begins_as(name, known)
}

/// Whether an application reads `known` as a prefix of the field `name`.
pub(crate) fn begins_as(name: &[u8], known: &[u8]) -> bool {
    let shaped = |byte: &u8| match byte {
        b'_' | b'.' => b'-',
        byte => byte.to_ascii_lowercase(),
    };
    name.get(..known.len())
        .is_some_and(|start| start.iter().map(shaped).eq(known.iter().map(shaped)))
}

/// Whether a request overrides its method.
#[must_use]
pub(crate) fn overrides_method(request: &FieldMap) -> bool {
    let is_one = |field: &Field<'_>| {
        matches!(field.text, [b'x' | b'X', ..])
            && METHODS.iter().any(|known| is_seen_as(field.text, known))
    };
    request.iter().any(|field| is_one(&field))
}

/// A field about the requested address.
#[derive(Clone, Copy, Debug)]
pub struct ForwardedClaim<'a>(Field<'a>);

impl ForwardedClaim<'_> {
    /// Appends it as `name=value;`, and of `Forwarded` (RFC 7239) all pairs but `for` and `by`.
    pub fn push(&self, out: &mut Vec<u8>) {
        if self.0.name == Name::Forwarded {
            for pair in pairs(self.0.value) {
                out.extend_from_slice(pair);
                out.push(b';');
            }
            return;
        }
        out.extend(self.0.text.iter().map(u8::to_ascii_lowercase));
        out.push(b'=');
        out.extend_from_slice(self.0.value);
        out.push(b';');
    }
}

/// Calls `take` with each field about the address.
pub(super) fn claims<'a>(request: &'a FieldMap, mut take: impl FnMut(ForwardedClaim<'a>)) {
    for field in request.iter() {
        // PERF: almost no field begins with these.
        if matches!(field.text, [b'x' | b'X' | b'f' | b'F' | b'c' | b'C', ..]) && is_claim(&field) {
            take(ForwardedClaim(field));
        }
    }
}

fn is_claim(field: &Field<'_>) -> bool {
    match field.name {
        Name::Forwarded => pairs(field.value).next().is_some(),
        _ => states_address(field.text),
    }
}

/// Whether a field of this name states the requested address.
#[must_use]
pub fn states_address(name: &[u8]) -> bool {
    let is_of_client = is_seen_as(name, b"X-Forwarded-For");
    let is_one = begins_as(name, b"X-Forwarded-") || is_seen_as(name, b"Forwarded");
    !is_of_client && (is_one || ADDRESSES.iter().any(|known| is_seen_as(name, known)))
}

/// The pairs of `Forwarded` (RFC 7239) except `for` and `by`.
fn pairs(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let all = value.split(|byte| matches!(byte, b',' | b';')).map(<[u8]>::trim_ascii);
    all.filter(|pair| !pair.is_empty() && !begins_as(pair, b"for=") && !begins_as(pair, b"by="))
}

#[cfg(test)]
mod tests {
    use bolide_http::FieldMap;

    use super::{claims, overrides_method};

    fn of(rows: &[(&str, &str)]) -> FieldMap {
        let mut fields = FieldMap::new();
        rows.iter().for_each(|row| fields.push_text(row.0.as_bytes(), row.1.as_bytes()));
        fields
    }

    #[test]
    fn what_is_said_of_the_address_is_told_and_what_of_the_client_is_not() {
        let fields = of(&[
            ("Cookie", "a"),
            ("X-Forwarded-For", "192.0.2.1"),
            ("x_forwarded_for", "192.0.2.1"),
            ("X-Requested-With", "x"),
            ("X-Forwarded-Host", "evil.test"),
            ("x_forwarded_proto", "https"),
            ("Forwarded", "for=192.0.2.1;proto=https, by=x;Host=evil.test"),
            ("X-Original-URL", "/admin"),
            ("X-Original-URI", "/admin"),
            ("X-Envoy-Original-Path", "/admin"),
        ]);
        let mut lines = Vec::new();
        claims(&fields, |claim| {
            let mut text = Vec::new();
            claim.push(&mut text);
            lines.push(String::from_utf8(text).unwrap());
        });
        let expected = [
            "x-forwarded-host=evil.test;",
            "x_forwarded_proto=https;",
            "proto=https;Host=evil.test;",
            "x-original-url=/admin;",
            "x-original-uri=/admin;",
            "x-envoy-original-path=/admin;",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn another_method_is_seen_however_it_is_spelled() {
        assert!(overrides_method(&of(&[("X-HTTP-Method-Override", "DELETE")])));
        assert!(overrides_method(&of(&[("x_http_method_override", "DELETE")])));
        assert!(!overrides_method(&of(&[("X-HTTP-Methods", "DELETE"), ("Host", "x")])));
    }
}
