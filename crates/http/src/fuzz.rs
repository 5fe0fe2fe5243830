//! Every parser of this crate under arbitrary bytes, with what must hold whatever they are.
//!
//! A fuzz target and a replay test call these; each panics when an invariant is broken.

use crate::conditional::{Comparison, Conditions, ModifiedSince, Validator, Verdict, matches};
use crate::range::{self, Outcome};
use crate::uri::{self, MergeSlashes};
use crate::{date, host as hosts, negotiate};

/// Drives all parsers; the first byte picks one.
pub fn all(data: &[u8]) {
    let Some((&pick, rest)) = data.split_first() else { return };
    match pick % 6 {
        0 => uri(rest),
        1 => date(rest),
        2 => range(rest),
        3 => conditional(rest),
        4 => host(rest),
        _ => {
            let _ = negotiate::accepted(rest);
        }
    }
}

/// Drives [`uri::normalise`] with both settings of slash merging.
pub fn uri(data: &[u8]) {
    check_uri(data, MergeSlashes::On);
    check_uri(data, MergeSlashes::Off);
}

/// A path is absolute, without NUL, and holds no `.` or `..` segment.
pub fn check_uri(data: &[u8], merge: MergeSlashes) {
    let mut decoded = Vec::new();
    let Ok(target) = uri::normalise(data, merge, &mut decoded) else { return };
    let path = target.path(data, &decoded);
    assert_eq!(path.first(), Some(&b'/'));
    assert!(!path.contains(&0));
    assert!(decoded.len() <= data.len() + 1, "decoding never makes a path longer");
    for segment in path.split(|&byte| byte == b'/') {
        assert!(segment != b"." && segment != b"..");
    }
    assert!(merge == MergeSlashes::Off || !path.windows(2).any(|pair| pair == b"//"));
    assert!(!target.args(data).contains(&b'#'));
}

/// Drives [`date::parse`]: what it accepts is written back as the same second.
pub fn date(data: &[u8]) {
    if let Some(seconds) = date::parse(data) {
        let seconds_signed = i64::try_from(seconds).unwrap_or(i64::MAX);
        assert_eq!(date::parse(&date::http_date(seconds_signed)), Some(seconds));
    }
}

/// Drives [`range::parse`]; the first byte is the length of the representation.
pub fn range(data: &[u8]) {
    let Some((&length, rest)) = data.split_first() else { return };
    check_range(rest, u64::from(length), 8);
    check_range(&[b"bytes=", rest].concat(), u64::from(length), 8);
}

/// Ranges lie inside the representation, are not empty and together not longer than it.
pub fn check_range(field: &[u8], length: u64, max: u32) {
    let mut ranges = Vec::new();
    let outcome = range::parse(field, length, max, &mut ranges);
    assert_eq!(outcome == Outcome::Partial, !ranges.is_empty());
    assert!(ranges.len() <= max as usize);
    assert!(ranges.iter().all(|range| range.start < range.end && range.end <= length));
    assert!(ranges.iter().map(|range| range.len()).sum::<u64>() <= length);
}

/// Drives the comparison of entity tags and the preconditions: a strong match is a weak one too.
pub fn conditional(data: &[u8]) {
    let etag: Option<&[u8]> = Some(b"\"a\"");
    let (strong, weak) =
        (matches(data, etag, Comparison::Strong), matches(data, etag, Comparison::Weak));
    assert!(weak || !strong);
    let conditions = Conditions {
        if_match: Some(data),
        if_none_match: Some(data),
        if_range: Some(data),
        ..Conditions::default()
    };
    let validator = Validator { etag, last_modified: Some(1) };
    let verdict = conditions.evaluate(validator, ModifiedSince::Exact);
    let expected = if strong { Verdict::NotModified } else { Verdict::PreconditionFailed };
    assert_eq!(verdict, expected);
    let _ = conditions.range_applies(validator);
}

/// Drives [`hosts::normalise`]: a normal host is normal.
pub fn host(data: &[u8]) {
    let (mut name, mut again) = (Vec::new(), Vec::new());
    if hosts::normalise(data, &mut name).is_ok() {
        assert!(!name.is_empty());
        assert_eq!(hosts::normalise(&name, &mut again), Ok(None));
        assert_eq!(name, again);
    }
}
