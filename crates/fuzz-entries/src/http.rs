//! The parsers of `bolide-http` with arbitrary bytes, and their invariants.
//!
//! A fuzz target and a replay test call these; each panics if an invariant is violated.

use bolide_http::conditional::{
    Comparison, Conditions, ModifiedSince, Precondition, Validator, matches,
};
use bolide_http::range::{self, RangeOutcome};
use bolide_http::uri::{self, MergeSlashes};
use bolide_http::{
    FieldMap, Name, cache_control, cache_groups, cookies, lscache, no_vary_search, vary,
};
use bolide_http::{date, host as hosts, negotiate, structured};

/// Drives all parsers; the first byte selects one.
pub fn all(data: &[u8]) {
    let Some((&pick, rest)) = data.split_first() else { return };
    if pick >= 0xe0 {
        return caching(rest);
    }
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

/// Drives [`date::parse`]: an accepted date is written back as the same second.
pub fn date(data: &[u8]) {
    if let Some(seconds) = date::parse(data) {
        let seconds_signed = i64::try_from(seconds).unwrap_or(i64::MAX);
        let written = date::http_date(seconds_signed);
        assert_eq!(date::parse(&written), Some(seconds));
        assert_eq!(date::parse_strictly(&written), Some(seconds));
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
    assert_eq!(outcome == RangeOutcome::Partial, !ranges.is_empty());
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
    let expected =
        if strong { Precondition::NotModified } else { Precondition::PreconditionFailed };
    assert_eq!(verdict, expected);
    let _ = conditions.range_applies(validator);
}

/// Drives [`hosts::normalise`]: a normalised host stays the same.
pub fn host(data: &[u8]) {
    let (mut name, mut again) = (Vec::new(), Vec::new());
    if hosts::normalise(data, &mut name).is_ok() {
        assert!(!name.is_empty());
        assert_eq!(hosts::normalise(&name, &mut again), Ok(None));
        assert_eq!(name, again);
    }
}

/// Drives the cache fields: one text as the value of every field that caches read.
pub fn caching(data: &[u8]) {
    let mut fields = FieldMap::new();
    for name in [Name::CacheControl, Name::Pragma, Name::Vary, Name::Expires, Name::Age] {
        fields.push(name, data);
    }
    fields.push(Name::Cookie, data);
    fields.push(Name::SetCookie, data);
    fields.push_text(b"No-Vary-Search", data);
    fields.push_text(b"Cache-Groups", data);
    let line = || std::iter::once(data);
    let control = cache_control::CacheControl::of(line());
    assert!(control.shared_lifetime().is_none_or(|age| age <= cache_control::SECONDS_MAX));
    let _ = cache_control::RequestControl::of(&fields);
    let _ = (cache_control::targeted(line()), cache_control::surrogate(line()));
    let _ = (cache_control::expires(&fields), cache_control::age(&fields));
    let _ = (cache_control::accel_expires(data), structured::list(data));
    let names = vary::VaryField::of(&fields);
    assert!(names.names().is_sorted() && names.names().len() <= vary::NAMES_MAX);
    cache_groups::groups(&fields, b"cache-groups", |name| {
        assert!(name.len() <= cache_groups::NAME_MAX);
    });
    let mut seen = cookies::Cookies::of(&fields);
    let url = cookies::CookieUrl { host: b"a.example", path: b"/a/b" };
    seen.merge(&fields, url, 0);
    assert!(seen.iter().all(|(name, _)| !name.is_empty()));
    if let Some(rule) = no_vary_search::NoVarySearch::of(&fields) {
        let (mut once, mut twice) = (Vec::new(), Vec::new());
        rule.push(&mut once, data);
        rule.push(&mut twice, &once);
        assert_eq!(once, twice, "what is left of a query stays");
    }
    let (mut orders, mut control) = (0, lscache::LsCacheControl::default());
    lscache::purges(data, |_| orders += 1);
    control.add(data);
    assert!(orders <= data.len());
    let _ =
        (lscache::tags(data, lscache::CacheScope::Public).count(), lscache::varies(data).count());
}
