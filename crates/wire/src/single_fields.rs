//! The fields that a request has at most once, over every protocol: as in nginx, a second line is
//! an error, so no two readers of the request can take different ones.

use bolide_http::Name;

pub(crate) const HOST: u16 = 1;
pub(crate) const LENGTH: u16 = 1 << 1;
pub(crate) const CODING: u16 = 1 << 2;
const EXPECT: u16 = 1 << 3;
const AUTHORIZATION: u16 = 1 << 4;
const IF_MATCH: u16 = 1 << 5;
const IF_NONE_MATCH: u16 = 1 << 6;
const IF_MODIFIED_SINCE: u16 = 1 << 7;
const IF_UNMODIFIED_SINCE: u16 = 1 << 8;
const IF_RANGE: u16 = 1 << 9;
const CONTENT_RANGE: u16 = 1 << 10;
/// The first bit that marks none of these fields.
pub(crate) const FREE: u32 = 11;

/// The reason why a request with a second line is refused.
pub(crate) const REPEATED: &str = "client sent duplicate header line";

/// The mark of a field that comes at most once; 0 for all others.
#[inline]
pub(crate) const fn mark(name: Name) -> u16 {
    match name {
        Name::Host => HOST,
        Name::ContentLength => LENGTH,
        Name::TransferEncoding => CODING,
        Name::Expect => EXPECT,
        Name::Authorization => AUTHORIZATION,
        Name::IfMatch => IF_MATCH,
        Name::IfNoneMatch => IF_NONE_MATCH,
        Name::IfModifiedSince => IF_MODIFIED_SINCE,
        Name::IfUnmodifiedSince => IF_UNMODIFIED_SINCE,
        Name::IfRange => IF_RANGE,
        Name::ContentRange => CONTENT_RANGE,
        _ => 0,
    }
}
