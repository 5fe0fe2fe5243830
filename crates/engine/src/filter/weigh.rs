//! Conditions and ranges of a client against an answer that is kept, or that was asked for as if
//! nobody had any.

use files::Answer as Verdict;
use files::answer::Rules;
use http::conditional::{Conditions, ModifiedSince, Validator};
use http::range::ByteRange;
use http::{Fields, Method};

use crate::site::{Caching, Location};

/// What the conditions in `request` make of a 200 with these validators and a body of `len` bytes.
pub(super) fn weigh(
    request: &Fields,
    validator: Validator<'_>,
    len: u64,
    location: &Location,
    max_ranges: u32,
    ranges: &mut Vec<ByteRange>,
) -> Verdict {
    let conditions = Conditions::of(request);
    let (mut validator, mut since) = (validator, location.rules.since);
    // nginx, and so `evaluate`, weighs nothing of an answer without a date; the page cache knows
    // tags alone as well, and a date that is later than ours.
    if location.caching.as_ref().is_some_and(Caching::is_page) {
        let by_tag = conditions.if_none_match.is_some() || conditions.if_match.is_some();
        if validator.etag.is_some() && by_tag && validator.last_modified.is_none() {
            validator.last_modified = Some(0);
        }
        if since == ModifiedSince::Exact {
            since = ModifiedSince::Before;
        }
    }
    let max_ranges = location.rules.max_ranges.min(max_ranges);
    files::answer(Method::Get, &conditions, validator, len, Rules { since, max_ranges }, ranges)
}
