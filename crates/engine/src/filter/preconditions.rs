//! Conditions and ranges of a client against an answer that is kept, or that was asked for as if
//! nobody had any.

use bolide_files::FileAnswer as Verdict;
use bolide_files::answer::FileRules;
use bolide_http::conditional::{Conditions, ModifiedSince, Validator};
use bolide_http::range::ByteRange;
use bolide_http::{FieldMap, Method};

use crate::site::CompiledLocation;

/// What the conditions in `request` make of a 200 with these validators and a body of `len` bytes.
pub(super) fn evaluate_preconditions(
    request: &FieldMap,
    validator: Validator<'_>,
    len: u64,
    location: &CompiledLocation,
    max_ranges: u32,
    ranges: &mut Vec<ByteRange>,
) -> Verdict {
    let conditions = Conditions::of(request);
    let (mut validator, mut since) = (validator, location.rules.since);
    // `evaluate` weighs nothing of an answer without a date, as files have one; what is kept may
    // have a tag alone. The page cache also knows a date that is later than ours.
    if let Some(caching) = &location.caching {
        let by_tag = conditions.if_none_match.is_some() || conditions.if_match.is_some();
        let has_tag = validator.etag.is_some() || !caching.is_page();
        if has_tag && by_tag && validator.last_modified.is_none() {
            validator.last_modified = Some(0);
        }
        if caching.is_page() && since == ModifiedSince::Exact {
            since = ModifiedSince::Before;
        }
    }
    let max_ranges = location.rules.max_ranges.min(max_ranges);
    bolide_files::answer(
        Method::Get,
        &conditions,
        validator,
        len,
        FileRules { since, max_ranges },
        ranges,
    )
}
