//! The static table (RFC 9204 Appendix A), and the search for a response field in it.

use bolide_http::Name;

use crate::pseudo::Label;

/// One entry of the static table.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownRow {
    /// The label of the name.
    pub(super) label: Label<'static>,
    /// The name in lower case.
    pub(super) name: &'static str,
    /// The value; empty where the table gives only a name.
    pub(super) value: &'static str,
}

const fn row(label: Label<'static>, name: &'static str, value: &'static str) -> KnownRow {
    KnownRow { label, name, value }
}

/// RFC 9204 Appendix A, by index.
pub(super) static ROWS: [KnownRow; 99] = [
    row(Label::Authority, ":authority", ""),
    row(Label::Path, ":path", "/"),
    row(Label::Known(Name::Age), "age", "0"),
    row(Label::Known(Name::ContentDisposition), "content-disposition", ""),
    row(Label::Known(Name::ContentLength), "content-length", "0"),
    row(Label::Known(Name::Cookie), "cookie", ""),
    row(Label::Known(Name::Date), "date", ""),
    row(Label::Known(Name::Etag), "etag", ""),
    row(Label::Known(Name::IfModifiedSince), "if-modified-since", ""),
    row(Label::Known(Name::IfNoneMatch), "if-none-match", ""),
    row(Label::Known(Name::LastModified), "last-modified", ""),
    row(Label::Known(Name::Link), "link", ""),
    row(Label::Known(Name::Location), "location", ""),
    row(Label::Known(Name::Referer), "referer", ""),
    row(Label::Known(Name::SetCookie), "set-cookie", ""),
    row(Label::Method, ":method", "CONNECT"),
    row(Label::Method, ":method", "DELETE"),
    row(Label::Method, ":method", "GET"),
    row(Label::Method, ":method", "HEAD"),
    row(Label::Method, ":method", "OPTIONS"),
    row(Label::Method, ":method", "POST"),
    row(Label::Method, ":method", "PUT"),
    row(Label::Scheme, ":scheme", "http"),
    row(Label::Scheme, ":scheme", "https"),
    row(Label::WrongPseudo, ":status", "103"),
    row(Label::WrongPseudo, ":status", "200"),
    row(Label::WrongPseudo, ":status", "304"),
    row(Label::WrongPseudo, ":status", "404"),
    row(Label::WrongPseudo, ":status", "503"),
    row(Label::Known(Name::Accept), "accept", "*/*"),
    row(Label::Known(Name::Accept), "accept", "application/dns-message"),
    row(Label::Known(Name::AcceptEncoding), "accept-encoding", "gzip, deflate, br"),
    row(Label::Known(Name::AcceptRanges), "accept-ranges", "bytes"),
    row(
        Label::Text(b"access-control-allow-headers"),
        "access-control-allow-headers",
        "cache-control",
    ),
    row(
        Label::Text(b"access-control-allow-headers"),
        "access-control-allow-headers",
        "content-type",
    ),
    row(Label::Known(Name::AccessControlAllowOrigin), "access-control-allow-origin", "*"),
    row(Label::Known(Name::CacheControl), "cache-control", "max-age=0"),
    row(Label::Known(Name::CacheControl), "cache-control", "max-age=2592000"),
    row(Label::Known(Name::CacheControl), "cache-control", "max-age=604800"),
    row(Label::Known(Name::CacheControl), "cache-control", "no-cache"),
    row(Label::Known(Name::CacheControl), "cache-control", "no-store"),
    row(Label::Known(Name::CacheControl), "cache-control", "public, max-age=31536000"),
    row(Label::Known(Name::ContentEncoding), "content-encoding", "br"),
    row(Label::Known(Name::ContentEncoding), "content-encoding", "gzip"),
    row(Label::Known(Name::ContentType), "content-type", "application/dns-message"),
    row(Label::Known(Name::ContentType), "content-type", "application/javascript"),
    row(Label::Known(Name::ContentType), "content-type", "application/json"),
    row(Label::Known(Name::ContentType), "content-type", "application/x-www-form-urlencoded"),
    row(Label::Known(Name::ContentType), "content-type", "image/gif"),
    row(Label::Known(Name::ContentType), "content-type", "image/jpeg"),
    row(Label::Known(Name::ContentType), "content-type", "image/png"),
    row(Label::Known(Name::ContentType), "content-type", "text/css"),
    row(Label::Known(Name::ContentType), "content-type", "text/html; charset=utf-8"),
    row(Label::Known(Name::ContentType), "content-type", "text/plain"),
    row(Label::Known(Name::ContentType), "content-type", "text/plain;charset=utf-8"),
    row(Label::Known(Name::Range), "range", "bytes=0-"),
    row(
        Label::Known(Name::StrictTransportSecurity),
        "strict-transport-security",
        "max-age=31536000",
    ),
    row(
        Label::Known(Name::StrictTransportSecurity),
        "strict-transport-security",
        "max-age=31536000; includesubdomains",
    ),
    row(
        Label::Known(Name::StrictTransportSecurity),
        "strict-transport-security",
        "max-age=31536000; includesubdomains; preload",
    ),
    row(Label::Known(Name::Vary), "vary", "accept-encoding"),
    row(Label::Known(Name::Vary), "vary", "origin"),
    row(Label::Known(Name::XContentTypeOptions), "x-content-type-options", "nosniff"),
    row(Label::Text(b"x-xss-protection"), "x-xss-protection", "1; mode=block"),
    row(Label::WrongPseudo, ":status", "100"),
    row(Label::WrongPseudo, ":status", "204"),
    row(Label::WrongPseudo, ":status", "206"),
    row(Label::WrongPseudo, ":status", "302"),
    row(Label::WrongPseudo, ":status", "400"),
    row(Label::WrongPseudo, ":status", "403"),
    row(Label::WrongPseudo, ":status", "421"),
    row(Label::WrongPseudo, ":status", "425"),
    row(Label::WrongPseudo, ":status", "500"),
    row(Label::Known(Name::AcceptLanguage), "accept-language", ""),
    row(
        Label::Text(b"access-control-allow-credentials"),
        "access-control-allow-credentials",
        "FALSE",
    ),
    row(
        Label::Text(b"access-control-allow-credentials"),
        "access-control-allow-credentials",
        "TRUE",
    ),
    row(Label::Text(b"access-control-allow-headers"), "access-control-allow-headers", "*"),
    row(Label::Text(b"access-control-allow-methods"), "access-control-allow-methods", "get"),
    row(
        Label::Text(b"access-control-allow-methods"),
        "access-control-allow-methods",
        "get, post, options",
    ),
    row(Label::Text(b"access-control-allow-methods"), "access-control-allow-methods", "options"),
    row(
        Label::Text(b"access-control-expose-headers"),
        "access-control-expose-headers",
        "content-length",
    ),
    row(
        Label::Text(b"access-control-request-headers"),
        "access-control-request-headers",
        "content-type",
    ),
    row(Label::Text(b"access-control-request-method"), "access-control-request-method", "get"),
    row(Label::Text(b"access-control-request-method"), "access-control-request-method", "post"),
    row(Label::Known(Name::AltSvc), "alt-svc", "clear"),
    row(Label::Known(Name::Authorization), "authorization", ""),
    row(
        Label::Known(Name::ContentSecurityPolicy),
        "content-security-policy",
        "script-src 'none'; object-src 'none'; base-uri 'none'",
    ),
    row(Label::Known(Name::EarlyData), "early-data", "1"),
    row(Label::Text(b"expect-ct"), "expect-ct", ""),
    row(Label::Known(Name::Forwarded), "forwarded", ""),
    row(Label::Known(Name::IfRange), "if-range", ""),
    row(Label::Known(Name::Origin), "origin", ""),
    row(Label::Text(b"purpose"), "purpose", "prefetch"),
    row(Label::Known(Name::Server), "server", ""),
    row(Label::Text(b"timing-allow-origin"), "timing-allow-origin", "*"),
    row(Label::Known(Name::UpgradeInsecureRequests), "upgrade-insecure-requests", "1"),
    row(Label::Known(Name::UserAgent), "user-agent", ""),
    row(Label::Known(Name::XForwardedFor), "x-forwarded-for", ""),
    row(Label::Known(Name::XFrameOptions), "x-frame-options", "deny"),
    row(Label::Known(Name::XFrameOptions), "x-frame-options", "sameorigin"),
];

/// The first row and the number of rows of each known name. Its rows are adjacent; a test checks
/// it.
const BY_NAME: [(u8, u8); Name::Other as usize] = {
    let mut spans = [(0_u8, 0_u8); Name::Other as usize];
    let mut i = 0;
    while i < ROWS.len() {
        if let Label::Known(name) = ROWS[i].label {
            let (first, count) = spans[name as usize];
            spans[name as usize] = (if count == 0 { i as u8 } else { first }, count + 1);
        }
        i += 1;
    }
    spans
};

/// The result of a search in the static table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StaticMatch {
    /// This row has name and value.
    Whole(u64),
    /// This row has the name.
    Name(u64),
    /// No row has the name.
    None,
}

/// Searches a field. `text` (in any case) matters for [`Name::Other`] only.
pub(super) fn find(name: Name, text: &[u8], value: &[u8]) -> StaticMatch {
    let value_is = |row: &KnownRow| row.value.as_bytes() == value;
    if let Some(&(first, count)) = BY_NAME.get(name as usize) {
        let (first, count) = (usize::from(first), usize::from(count));
        return match ROWS[first..first + count].iter().position(value_is) {
            Some(at) => StaticMatch::Whole((first + at) as u64),
            None if count > 0 => StaticMatch::Name(first as u64),
            None => StaticMatch::None,
        };
    }
    let mut found = StaticMatch::None;
    for (index, row) in ROWS.iter().enumerate().skip(33) {
        let Label::Text(spelled) = row.label else { continue };
        if spelled.len() == text.len() && spelled.eq_ignore_ascii_case(text) {
            if value_is(row) {
                return StaticMatch::Whole(index as u64);
            }
            if found == StaticMatch::None {
                found = StaticMatch::Name(index as u64);
            }
        }
    }
    found
}

/// The row of `:status` with this code, or else a row with the name `:status`.
pub(super) const fn find_status(status: u16) -> StaticMatch {
    StaticMatch::Whole(match status {
        100 => 63,
        103 => 24,
        200 => 25,
        204 => 64,
        206 => 65,
        302 => 66,
        304 => 26,
        400 => 67,
        403 => 68,
        404 => 27,
        421 => 69,
        425 => 70,
        500 => 71,
        503 => 28,
        _ => return StaticMatch::Name(24),
    })
}

#[cfg(test)]
mod tests {
    use super::{Label, Name, ROWS, StaticMatch, find, find_status};

    #[test]
    fn every_row_is_found_where_it_stands_with_the_label_of_its_text() {
        for (index, row) in ROWS.iter().enumerate() {
            let text = row.name.as_bytes();
            assert_eq!(row.label, Label::parse(text), "row {index}");
            if let Ok(status) = row.value.parse()
                && row.name == ":status"
            {
                assert_eq!(find_status(status), StaticMatch::Whole(index as u64));
            }
            if text[0] != b':' {
                let upper = text.to_ascii_uppercase();
                let whole = find(Name::parse(text), &upper, row.value.as_bytes());
                assert_eq!(whole, StaticMatch::Whole(index as u64));
                let StaticMatch::Name(near) = find(Name::parse(text), &upper, b"\x01") else {
                    panic!("row {index} has no name");
                };
                assert_eq!(ROWS[near as usize].name, row.name);
            }
        }
    }

    #[test]
    fn names_that_the_table_lacks_are_not_found() {
        assert_eq!(find(Name::Expires, b"", b"0"), StaticMatch::None);
        assert_eq!(find(Name::Other, b"x-nothing", b"0"), StaticMatch::None);
        assert_eq!(find_status(299), StaticMatch::Name(24));
    }
}
