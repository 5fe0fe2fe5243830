//! The truth table of deliveries: sources, statuses, methods, preconditions, ranges and codings.
//!
//! Each row of preconditions and ranges carries what RFC 9110 makes of it; each source carries
//! which of them it evaluates. The table multiplies them, some 600,000 rows.

use bolide_http::conditional::{Conditions, ModifiedSince, Validator};
use bolide_http::date::http_date;
use bolide_http::{BodyLen, Method};

use super::{
    DeliveredBytes, Delivery, DeliveryRefusal, DeliveryRules, RangeDate, Representation,
    RepresentationSource, Transfer, decide,
};

const ETAG: &[u8] = b"\"2ebc98a1-3e8\"";
const WEAK: &[u8] = b"W/\"2ebc98a1-3e8\"";
const OTHER: &[u8] = b"\"x\"";
const MODIFIED: u64 = 784_111_777;
const LENGTH: u64 = 1000;

/// What a representation with a tag and a date makes of preconditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Met {
    Proceed,
    NotModified,
    Failed,
}

/// What 1,000 bytes make of a `Range` field, with 2 ranges at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    One,
    Two,
    TooMany,
    Impossible,
}

/// What a source evaluates: preconditions, and how many ranges.
const SOURCES: [(RepresentationSource, bool, u32); 11] = [
    (RepresentationSource::File, true, u32::MAX),
    (RepresentationSource::CodedFile, true, 0),
    (RepresentationSource::Pixel, true, 0),
    (RepresentationSource::Text, false, 0),
    (RepresentationSource::Cached { page: true }, true, u32::MAX),
    (RepresentationSource::Cached { page: false }, true, u32::MAX),
    (RepresentationSource::Filling { page: true }, true, 0),
    (RepresentationSource::Filling { page: false }, true, 0),
    (RepresentationSource::Upstream, false, 1),
    (RepresentationSource::UpstreamWhole { page: true }, true, 1),
    (RepresentationSource::UpstreamWhole { page: false }, true, 1),
];

const RANGES: [(Option<&[u8]>, Asked); 8] = [
    (None, Asked::Nothing),
    (Some(b"bytes=0-99"), Asked::One),
    (Some(b"bytes=-1"), Asked::One),
    (Some(b"bytes=0-1,3-4"), Asked::Two),
    (Some(b"bytes=0-1,3-4,6-7"), Asked::TooMany),
    (Some(b"bytes=1000-"), Asked::Impossible),
    // As in nginx, what cannot be read is not satisfiable, and other units are ignored.
    (Some(b"bytes=x"), Asked::Impossible),
    (Some(b"lines=0-1"), Asked::Nothing),
];

const TRANSFERS: [Transfer; 4] = [
    Transfer::Identity,
    Transfer::Coded { length: Some(400) },
    Transfer::Coded { length: None },
    Transfer::Filtered,
];

struct Dates {
    same: [u8; 29],
    earlier: [u8; 29],
}

impl Dates {
    fn new() -> Self {
        Self { same: http_date(MODIFIED as i64), earlier: http_date(MODIFIED as i64 - 1) }
    }
}

fn preconditions(dates: &Dates) -> Vec<(Conditions<'_>, Met)> {
    let none = Conditions::default();
    let (same, earlier) = (&dates.same[..], &dates.earlier[..]);
    vec![
        (none, Met::Proceed),
        (Conditions { if_none_match: Some(ETAG), ..none }, Met::NotModified),
        (Conditions { if_none_match: Some(WEAK), ..none }, Met::NotModified),
        (Conditions { if_none_match: Some(b"*"), ..none }, Met::NotModified),
        (Conditions { if_none_match: Some(OTHER), ..none }, Met::Proceed),
        (Conditions { if_none_match: Some(b"\"x\", \"2ebc98a1-3e8\""), ..none }, Met::NotModified),
        (Conditions { if_modified_since: Some(same), ..none }, Met::NotModified),
        (Conditions { if_modified_since: Some(earlier), ..none }, Met::Proceed),
        // RFC 9110 §13.1.3: a tag makes the date irrelevant.
        (
            Conditions { if_none_match: Some(OTHER), if_modified_since: Some(same), ..none },
            Met::Proceed,
        ),
        (
            Conditions { if_none_match: Some(ETAG), if_modified_since: Some(earlier), ..none },
            Met::NotModified,
        ),
        (Conditions { if_match: Some(ETAG), ..none }, Met::Proceed),
        (Conditions { if_match: Some(b"*"), ..none }, Met::Proceed),
        // RFC 9110 §13.1.1: the comparison is strong.
        (Conditions { if_match: Some(WEAK), ..none }, Met::Failed),
        (Conditions { if_match: Some(OTHER), ..none }, Met::Failed),
        (Conditions { if_unmodified_since: Some(same), ..none }, Met::Proceed),
        (Conditions { if_unmodified_since: Some(earlier), ..none }, Met::Failed),
        (Conditions { if_match: Some(OTHER), if_none_match: Some(ETAG), ..none }, Met::Failed),
        (Conditions { if_match: Some(ETAG), if_none_match: Some(ETAG), ..none }, Met::NotModified),
    ]
}

fn file() -> Representation<'static> {
    Representation {
        source: RepresentationSource::File,
        status: 200,
        length: Some(LENGTH),
        transfer: Transfer::Identity,
        validator: Validator { etag: Some(ETAG), last_modified: Some(MODIFIED) },
        range_date: RangeDate::Own,
        rules: DeliveryRules { since: ModifiedSince::Exact, max_ranges: u32::MAX },
        advertises_ranges: true,
    }
}

fn run(
    representation: &Representation<'_>,
    method: Method,
    conditions: &Conditions<'_>,
) -> Result<Delivery, DeliveryRefusal> {
    let mut ranges = vec![bolide_http::range::ByteRange { start: 1, end: 2 }];
    let decided = decide(representation, method, conditions, &mut ranges);
    let parts = decided.is_ok_and(|delivery| delivery.bytes == DeliveredBytes::Parts);
    assert_eq!(ranges.len() > 1, parts, "several ranges are found exactly if they leave");
    for range in &ranges {
        assert!(range.start < range.end && range.end <= LENGTH, "{range:?}");
    }
    decided
}

/// The status that the table says.
fn expected(
    representation: &Representation<'_>,
    evaluated: (bool, u32),
    met: Met,
    asked: Asked,
) -> u16 {
    if representation.status != 200 {
        return representation.status;
    }
    match met {
        Met::NotModified if evaluated.0 => return 304,
        Met::Failed if evaluated.0 => return 412,
        _ => {}
    }
    let max = evaluated.1.min(representation.rules.max_ranges);
    let is_divisible =
        representation.transfer == Transfer::Identity && representation.length.is_some() && max > 0;
    match asked {
        _ if !is_divisible => 200,
        Asked::Nothing => 200,
        Asked::One => 206,
        Asked::Two => {
            if max >= 2 {
                206
            } else {
                200
            }
        }
        Asked::TooMany => {
            if max >= 3 {
                206
            } else {
                200
            }
        }
        Asked::Impossible => 416,
    }
}

/// What must hold of any delivery.
fn check(delivery: &Delivery, representation: &Representation<'_>, method: Method) {
    let Delivery { status, bytes, length, accept_ranges, is_not_modified } = *delivery;
    assert_eq!(bytes == DeliveredBytes::Nothing, matches!(status, 204 | 304));
    assert_eq!(delivery.is_partial(), status == 206 && representation.status == 200);
    assert_eq!(is_not_modified, status == 304 && representation.status == 200);
    assert!(!accept_ranges || status == 200 && representation.advertises_ranges);
    let unknown = if method == Method::Head { BodyLen::None } else { BodyLen::Unknown };
    let whole = match representation.transfer {
        Transfer::Identity | Transfer::Filtered => representation.length,
        Transfer::Coded { length } => length,
    };
    let expected = match bytes {
        DeliveredBytes::Nothing => BodyLen::None,
        DeliveredBytes::Part(range) => BodyLen::Exact(range.end - range.start),
        DeliveredBytes::Parts => unknown,
        DeliveredBytes::Whole => whole.map_or(unknown, BodyLen::Exact),
    };
    assert_eq!(length, expected);
}

#[test]
fn the_truth_table() {
    let dates = Dates::new();
    let preconditions = preconditions(&dates);
    let if_ranges: [(Option<&[u8]>, bool); 6] = [
        (None, true),
        (Some(ETAG), true),
        (Some(&dates.same), true),
        (Some(OTHER), false),
        (Some(WEAK), false),
        (Some(&dates.earlier), false),
    ];
    let mut rows = 0;
    for (source, evaluates, ranges_max) in SOURCES {
        for (status, length, max_ranges, transfer) in variants() {
            let rules = DeliveryRules { max_ranges, ..file().rules };
            let representation =
                Representation { source, status, length, transfer, rules, ..file() };
            for &(conditions, met) in &preconditions {
                for (if_range, applies) in if_ranges {
                    for (range, asked) in RANGES {
                        let asked = if applies { asked } else { Asked::Nothing };
                        let conditions = Conditions { if_range, range, ..conditions };
                        let evaluated = (evaluates, ranges_max);
                        let expected = expected(&representation, evaluated, met, asked);
                        for method in [Method::Get, Method::Head] {
                            let found = run(&representation, method, &conditions);
                            let status = match found {
                                Ok(delivery) => delivery.status,
                                Err(DeliveryRefusal::PreconditionFailed) => 412,
                                Err(DeliveryRefusal::RangeNotSatisfiable(LENGTH)) => 416,
                                Err(other) => panic!("{other:?}"),
                            };
                            assert_eq!(status, expected, "{representation:?} {conditions:?}");
                            if let Ok(delivery) = found {
                                check(&delivery, &representation, method);
                            }
                            rows += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(rows > 500_000, "{rows} rows");
}

/// Statuses, lengths, limits of ranges, and codings.
fn variants() -> Vec<(u16, Option<u64>, u32, Transfer)> {
    let mut variants = Vec::new();
    for transfer in TRANSFERS {
        for max_ranges in [0, 1, 2] {
            variants.push((200, Some(LENGTH), max_ranges, transfer));
        }
        variants.push((200, None, 2, transfer));
        for status in [204, 206, 304, 403, 404] {
            variants.push((status, Some(LENGTH), 2, transfer));
        }
    }
    variants
}

#[test]
fn without_a_date_nginx_compares_no_tag_of_a_file() {
    let by_tag = Conditions { if_none_match: Some(ETAG), ..Conditions::default() };
    let by_any = Conditions { if_none_match: Some(b"*"), ..Conditions::default() };
    let status = |source, etag, conditions: &Conditions<'_>| {
        let validator = Validator { etag, last_modified: None };
        let representation = Representation { source, validator, ..file() };
        run(&representation, Method::Get, conditions).map(|delivery| delivery.status)
    };
    let page = RepresentationSource::Cached { page: true };
    let zone = RepresentationSource::Cached { page: false };
    assert_eq!(status(RepresentationSource::File, Some(ETAG), &by_tag), Ok(200));
    assert_eq!(status(page, Some(ETAG), &by_tag), Ok(304));
    assert_eq!(status(zone, Some(ETAG), &by_tag), Ok(304));
    assert_eq!(status(page, None, &by_any), Ok(200), "no tag, nothing to compare");
    assert_eq!(status(zone, None, &by_any), Ok(304), "nginx compares with no tag, too");
}

#[test]
fn the_page_cache_takes_later_dates_for_not_modified() {
    let later = http_date(MODIFIED as i64 + 60);
    let conditions = Conditions { if_modified_since: Some(&later), ..Conditions::default() };
    let status = |source, since| {
        let rules = DeliveryRules { since, ..file().rules };
        let representation = Representation { source, rules, ..file() };
        run(&representation, Method::Get, &conditions).map(|delivery| delivery.status)
    };
    let page = RepresentationSource::Cached { page: true };
    let zone = RepresentationSource::Cached { page: false };
    assert_eq!(status(page, ModifiedSince::Exact), Ok(304));
    assert_eq!(status(zone, ModifiedSince::Exact), Ok(200), "nginx wants equal dates");
    assert_eq!(status(zone, ModifiedSince::Before), Ok(304));
    assert_eq!(status(page, ModifiedSince::Off), Ok(200));
}

#[test]
fn a_date_that_was_added_is_that_of_ranges_and_of_nothing_else() {
    let (own, added) = (http_date(MODIFIED as i64), http_date(MODIFIED as i64 + 60));
    let status = |range_date, if_range, if_modified_since| {
        let range = Some(&b"bytes=0-1"[..]);
        let conditions = Conditions { range, if_range, if_modified_since, ..Conditions::default() };
        let representation = Representation { range_date, ..file() };
        run(&representation, Method::Get, &conditions).map(|delivery| delivery.status)
    };
    let date = RangeDate::Added(Some(MODIFIED + 60));
    assert_eq!(status(date, Some(&added), None), Ok(206));
    assert_eq!(status(date, Some(&own), None), Ok(200));
    assert_eq!(status(date, Some(ETAG), None), Ok(206));
    assert_eq!(status(date, None, Some(&own)), Ok(304));
    assert_eq!(status(RangeDate::Added(None), Some(&own), None), Ok(200));
    assert_eq!(status(RangeDate::Added(None), None, None), Ok(206));
}

#[test]
fn an_assembled_page_hears_nothing() {
    let conditions = Conditions {
        if_none_match: Some(b"*"),
        if_match: Some(OTHER),
        range: Some(b"bytes=0-1"),
        ..Conditions::default()
    };
    let page = Representation::assembled(200, None);
    let delivery = run(&page, Method::Get, &conditions).unwrap();
    assert_eq!((delivery.status, delivery.length), (200, BodyLen::Unknown));
    let delivery = run(&page, Method::Head, &conditions).unwrap();
    assert_eq!((delivery.status, delivery.length), (200, BodyLen::None));
}
