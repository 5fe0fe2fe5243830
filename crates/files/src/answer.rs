//! Which part of a file is sent: method, preconditions and ranges, in nginx's order.

use bolide_http::Method;
use bolide_http::conditional::{Conditions, ModifiedSince, Precondition, Validator};
use bolide_http::range::{self, ByteRange, RangeOutcome};

/// The response for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAnswer {
    /// 200 with everything.
    Whole,
    /// 206 with these ranges.
    Partial,
    /// 304
    NotModified,
    /// 405: neither `GET` nor `HEAD`.
    NotAllowed,
    /// 412
    PreconditionFailed,
    /// 416
    Unsatisfiable,
}

impl FileAnswer {
    /// The status code.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::Whole => 200,
            Self::Partial => 206,
            Self::NotModified => 304,
            Self::NotAllowed => 405,
            Self::PreconditionFailed => 412,
            Self::Unsatisfiable => 416,
        }
    }
}

/// A location's settings for partial and conditional responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRules {
    /// `if_modified_since`
    pub since: ModifiedSince,
    /// `max_ranges`; 0 disables ranges, as does compression of the body.
    pub max_ranges: u32,
}

impl Default for FileRules {
    fn default() -> Self {
        Self { since: ModifiedSince::Exact, max_ranges: u32::MAX }
    }
}

/// Decides; `ranges` is filled only for [`FileAnswer::Partial`].
///
/// `validator` and `length` are those of the representation that would be sent.
#[must_use]
pub fn answer(
    method: Method,
    conditions: &Conditions<'_>,
    validator: Validator<'_>,
    length: u64,
    rules: FileRules,
    ranges: &mut Vec<ByteRange>,
) -> FileAnswer {
    ranges.clear();
    if !matches!(method, Method::Get | Method::Head) {
        return FileAnswer::NotAllowed;
    }
    match conditions.evaluate(validator, rules.since) {
        Precondition::NotModified => return FileAnswer::NotModified,
        Precondition::PreconditionFailed => return FileAnswer::PreconditionFailed,
        Precondition::Proceed => {}
    }
    let Some(field) = conditions.range else { return FileAnswer::Whole };
    if rules.max_ranges == 0 || !conditions.range_applies(validator) {
        return FileAnswer::Whole;
    }
    match range::parse(field, length, rules.max_ranges, ranges) {
        RangeOutcome::Whole => FileAnswer::Whole,
        RangeOutcome::Partial => FileAnswer::Partial,
        RangeOutcome::Unsatisfiable => FileAnswer::Unsatisfiable,
    }
}

#[cfg(test)]
mod tests;
