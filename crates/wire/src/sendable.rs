//! Makes fields that a framing may carry.
//!
//! Variables and upstream servers write what they like into fields. HTTP/2 and HTTP/3 delimit
//! values by length, so nothing but this keeps a line end out of them: who passes such a field on
//! over HTTP/1 would send two lines (RFC 9113 §10.3).

use std::borrow::Cow;

use bolide_http::fields::Field;
use bolide_http::{FieldMap, Name};

use crate::traits::Traits;

/// The fields that HTTP/2 and HTTP/3 may carry (RFC 9113 §8.2.1, RFC 9114 §4.2): without those
/// whose names are invalid, and with values that are valid.
pub(crate) fn sendable(fields: &FieldMap) -> Cow<'_, FieldMap> {
    let is_sendable = |field: Field<'_>| {
        !Traits::of_value(field.value).has(Traits::BAD_VALUE) && has_valid_name(&field)
    };
    if fields.iter().all(is_sendable) { Cow::Borrowed(fields) } else { Cow::Owned(mended(fields)) }
}

#[cold]
fn mended(fields: &FieldMap) -> FieldMap {
    let mut mended = FieldMap::new();
    let mut value = Vec::new();
    for field in fields.iter().filter(has_valid_name) {
        value.clear();
        value.extend(field.value.iter().map(|byte| blank(*byte)));
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let end = value.iter().rposition(|byte| !is_blank(byte)).map_or(0, |last| last + 1);
        let start = value[..end].iter().position(|byte| !is_blank(byte)).unwrap_or(end);
        mended.push_parsed(field.name, field.text, &value[start..end]);
    }
    mended
}

fn has_valid_name(field: &Field<'_>) -> bool {
    let is_valid = |byte: &u8| !matches!(byte, 0..=b' ' | b':' | 0x7f..);
    field.name != Name::Other || !field.text.is_empty() && field.text.iter().all(is_valid)
}

/// RFC 9110 §5.5: a byte that would end a field line becomes a blank.
pub(crate) const fn blank(byte: u8) -> u8 {
    match byte {
        b'\r' | b'\n' | 0 => b' ',
        other => other,
    }
}
