//! The truth table of methods, preconditions and ranges.

use super::{FileAnswer, FileRules, answer};
use bolide_http::Method;
use bolide_http::conditional::{Conditions, ModifiedSince, Validator};
use bolide_http::date::http_date;
use bolide_http::range::ByteRange;

const ETAG: &[u8] = b"\"2ebc98a1-3e8\"";
const MODIFIED: u64 = 784_111_777;
const LENGTH: u64 = 1000;

type Text = Option<&'static [u8]>;

struct Dates {
    same: [u8; 29],
    earlier: [u8; 29],
}

/// The representation has an `ETag` and a date, 1000 bytes; `same` and `earlier` are dates.
fn run(
    method: Method,
    conditions: &Conditions<'_>,
    rules: FileRules,
) -> (FileAnswer, Vec<ByteRange>) {
    let validator = Validator { etag: Some(ETAG), last_modified: Some(MODIFIED) };
    let mut ranges = vec![ByteRange { start: 1, end: 2 }];
    let answer = answer(method, conditions, validator, LENGTH, rules, &mut ranges);
    (answer, ranges)
}

const RANGES: [(Text, FileAnswer); 6] = [
    (None, FileAnswer::Whole),
    (Some(b"bytes=0-99"), FileAnswer::Partial),
    (Some(b"bytes=-1"), FileAnswer::Partial),
    (Some(b"bytes=1000-"), FileAnswer::Unsatisfiable),
    (Some(b"bytes=x"), FileAnswer::Unsatisfiable),
    (Some(b"bytes=0-,0-"), FileAnswer::Whole),
];

#[test]
fn method_then_preconditions_then_range_decide() {
    let dates = Dates { same: http_date(MODIFIED as i64), earlier: http_date(MODIFIED as i64 - 1) };
    let (same, earlier): (&[u8], &[u8]) = (&dates.same, &dates.earlier);
    let proceed = None;
    let failed = Some(FileAnswer::PreconditionFailed);
    let fresh = Some(FileAnswer::NotModified);
    let none = Conditions::default();
    let weak: &[u8] = b"W/\"2ebc98a1-3e8\"";
    let preconditions = [
        (none, proceed),
        (Conditions { if_none_match: Some(ETAG), ..none }, fresh),
        (Conditions { if_none_match: Some(weak), ..none }, fresh),
        (Conditions { if_none_match: Some(b"*"), ..none }, fresh),
        (Conditions { if_none_match: Some(b"\"x\""), ..none }, proceed),
        (Conditions { if_none_match: Some(b"\"x\", \"2ebc98a1-3e8\""), ..none }, fresh),
        (Conditions { if_modified_since: Some(same), ..none }, fresh),
        (Conditions { if_modified_since: Some(earlier), ..none }, proceed),
        (
            Conditions { if_none_match: Some(b"\"x\""), if_modified_since: Some(same), ..none },
            proceed,
        ),
        (Conditions { if_none_match: Some(ETAG), if_modified_since: Some(earlier), ..none }, fresh),
        (Conditions { if_match: Some(ETAG), ..none }, proceed),
        (Conditions { if_match: Some(b"*"), ..none }, proceed),
        (Conditions { if_match: Some(weak), ..none }, failed),
        (Conditions { if_match: Some(b"\"x\""), ..none }, failed),
        (Conditions { if_unmodified_since: Some(same), ..none }, proceed),
        (Conditions { if_unmodified_since: Some(earlier), ..none }, failed),
        (Conditions { if_match: Some(b"\"x\""), if_none_match: Some(ETAG), ..none }, failed),
        (Conditions { if_match: Some(ETAG), if_none_match: Some(ETAG), ..none }, fresh),
    ];
    let if_ranges: [(Option<&[u8]>, bool); 5] = [
        (None, true),
        (Some(ETAG), true),
        (Some(same), true),
        (Some(b"\"x\""), false),
        (Some(earlier), false),
    ];
    let methods = [Method::Get, Method::Head, Method::Post, Method::Options, Method::Other];
    for method in methods {
        for (conditions, verdict) in preconditions {
            for (if_range, applies) in if_ranges {
                for (range, outcome) in RANGES {
                    let conditions = Conditions { if_range, range, ..conditions };
                    let expected = match (method, verdict) {
                        (Method::Get | Method::Head, Some(verdict)) => verdict,
                        (Method::Get | Method::Head, None) if applies => outcome,
                        (Method::Get | Method::Head, None) => FileAnswer::Whole,
                        _ => FileAnswer::NotAllowed,
                    };
                    let (found, ranges) = run(method, &conditions, FileRules::default());
                    assert_eq!(found, expected, "{method:?} {conditions:?}");
                    assert_eq!(found == FileAnswer::Partial, !ranges.is_empty());
                }
            }
        }
    }
}

#[test]
fn locations_may_switch_dates_and_ranges_off() {
    let same = http_date(MODIFIED as i64);
    let since = Conditions { if_modified_since: Some(&same), ..Conditions::default() };
    let rules = FileRules { since: ModifiedSince::Off, ..FileRules::default() };
    assert_eq!(run(Method::Get, &since, rules).0, FileAnswer::Whole);
    let range = Conditions { range: Some(b"bytes=0-1"), ..Conditions::default() };
    let rules = FileRules { max_ranges: 0, ..FileRules::default() };
    assert_eq!(run(Method::Get, &range, rules).0, FileAnswer::Whole);
    let range = Conditions { range: Some(b"bytes=0-1,3-4"), ..Conditions::default() };
    let rules = FileRules { max_ranges: 1, ..FileRules::default() };
    assert_eq!(run(Method::Get, &range, rules).0, FileAnswer::Whole);
}

#[test]
fn each_answer_has_its_status() {
    let answers = [
        (FileAnswer::Whole, 200),
        (FileAnswer::Partial, 206),
        (FileAnswer::NotModified, 304),
        (FileAnswer::NotAllowed, 405),
        (FileAnswer::PreconditionFailed, 412),
        (FileAnswer::Unsatisfiable, 416),
    ];
    for (answer, status) in answers {
        assert_eq!(answer.status(), status);
    }
}
