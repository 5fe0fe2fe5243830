//! The static table (RFC 7541 appendix A), and the index of each known name.
//!
//! Both are constants.

use bolide_http::Name;

use super::FieldToken;

/// One entry of the static table.
#[derive(Clone, Copy, Debug)]
pub struct Static {
    /// The meaning of the name.
    pub token: FieldToken,
    /// The name.
    pub name: &'static str,
    /// The value; empty for most entries.
    pub value: &'static str,
}

/// The number of entries. Index `COUNT + 1` is the newest dynamic entry.
pub const COUNT: usize = 61;

const fn pseudo(token: FieldToken, name: &'static str, value: &'static str) -> Static {
    Static { token, name, value }
}

const fn field(known: Name, name: &'static str) -> Static {
    Static { token: FieldToken::Field(known), name, value: "" }
}

/// The entries. The first one has index 1 in the RFC.
#[rustfmt::skip]
pub static ENTRIES: [Static; COUNT] = [
    pseudo(FieldToken::Authority, ":authority", ""),
    pseudo(FieldToken::Method, ":method", "GET"),
    pseudo(FieldToken::Method, ":method", "POST"),
    pseudo(FieldToken::Path, ":path", "/"),
    pseudo(FieldToken::Path, ":path", "/index.html"),
    pseudo(FieldToken::Scheme, ":scheme", "http"),
    pseudo(FieldToken::Scheme, ":scheme", "https"),
    pseudo(FieldToken::Status, ":status", "200"),
    pseudo(FieldToken::Status, ":status", "204"),
    pseudo(FieldToken::Status, ":status", "206"),
    pseudo(FieldToken::Status, ":status", "304"),
    pseudo(FieldToken::Status, ":status", "400"),
    pseudo(FieldToken::Status, ":status", "404"),
    pseudo(FieldToken::Status, ":status", "500"),
    field(Name::AcceptCharset, "accept-charset"),
    Static {
        token: FieldToken::Field(Name::AcceptEncoding),
        name: "accept-encoding",
        value: "gzip, deflate",
    },
    field(Name::AcceptLanguage, "accept-language"),
    field(Name::AcceptRanges, "accept-ranges"),
    field(Name::Accept, "accept"),
    field(Name::AccessControlAllowOrigin, "access-control-allow-origin"),
    field(Name::Age, "age"),
    field(Name::Allow, "allow"),
    field(Name::Authorization, "authorization"),
    field(Name::CacheControl, "cache-control"),
    field(Name::ContentDisposition, "content-disposition"),
    field(Name::ContentEncoding, "content-encoding"),
    field(Name::ContentLanguage, "content-language"),
    field(Name::ContentLength, "content-length"),
    field(Name::ContentLocation, "content-location"),
    field(Name::ContentRange, "content-range"),
    field(Name::ContentType, "content-type"),
    field(Name::Cookie, "cookie"),
    field(Name::Date, "date"),
    field(Name::Etag, "etag"),
    field(Name::Expect, "expect"),
    field(Name::Expires, "expires"),
    field(Name::From, "from"),
    field(Name::Host, "host"),
    field(Name::IfMatch, "if-match"),
    field(Name::IfModifiedSince, "if-modified-since"),
    field(Name::IfNoneMatch, "if-none-match"),
    field(Name::IfRange, "if-range"),
    field(Name::IfUnmodifiedSince, "if-unmodified-since"),
    field(Name::LastModified, "last-modified"),
    field(Name::Link, "link"),
    field(Name::Location, "location"),
    field(Name::MaxForwards, "max-forwards"),
    field(Name::ProxyAuthenticate, "proxy-authenticate"),
    field(Name::ProxyAuthorization, "proxy-authorization"),
    field(Name::Range, "range"),
    field(Name::Referer, "referer"),
    field(Name::Refresh, "refresh"),
    field(Name::RetryAfter, "retry-after"),
    field(Name::Server, "server"),
    field(Name::SetCookie, "set-cookie"),
    field(Name::StrictTransportSecurity, "strict-transport-security"),
    field(Name::TransferEncoding, "transfer-encoding"),
    field(Name::UserAgent, "user-agent"),
    field(Name::Vary, "vary"),
    field(Name::Via, "via"),
    field(Name::WwwAuthenticate, "www-authenticate"),
];

/// Indexes by name; 0 for names that the static table does not have.
static INDEX: [u8; Name::Other as usize + 1] = {
    let mut index = [0; Name::Other as usize + 1];
    let mut i = COUNT;
    while i > 0 {
        if let FieldToken::Field(name) = ENTRIES[i - 1].token {
            index[name as usize] = i as u8;
        }
        i -= 1;
    }
    index
};

/// The static index of a name, if it has one.
#[must_use]
#[inline]
pub fn index_of(name: Name) -> Option<u32> {
    match INDEX[name as usize] {
        0 => None,
        index => Some(u32::from(index)),
    }
}

#[cfg(test)]
mod tests {
    use super::{ENTRIES, index_of};
    use crate::hpack::FieldToken;
    use bolide_http::Name;

    #[test]
    fn tokens_agree_with_texts_and_indices_lead_back() {
        for (i, entry) in ENTRIES.iter().enumerate() {
            assert_eq!(FieldToken::parse(entry.name.as_bytes()), entry.token);
            if let FieldToken::Field(name) = entry.token {
                assert_eq!(index_of(name), Some(i as u32 + 1));
            }
        }
        assert_eq!((index_of(Name::Accept), index_of(Name::WwwAuthenticate)), (Some(19), Some(61)));
        assert_eq!((index_of(Name::Other), index_of(Name::AltSvc)), (None, None));
    }
}
