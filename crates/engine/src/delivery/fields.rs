//! Fields that say which bytes of a representation are sent.

use bolide_http::range::push_content_range;
use bolide_http::{FieldMap, Name};

use super::Delivery;

/// Adds `Content-Range`, if one range is sent (RFC 9110 §14.4).
pub(crate) fn push_range(fields: &mut FieldMap, delivery: &Delivery, length: u64) {
    if let Some(range) = delivery.range() {
        fields.push_writing(Name::ContentRange, |out| push_content_range(out, range, length));
    }
}

/// Removes the content fields that a 304 must not have (RFC 9110 §15.4.5), as nginx's not-modified
/// filter does.
pub(crate) fn remove_content_fields(fields: &mut FieldMap) {
    for name in [Name::ContentType, Name::ContentEncoding, Name::AcceptRanges] {
        fields.remove(name);
    }
}
