//! The truth table of methods, preconditions and ranges.

use super::{Answer, Rules, answer};
use http::Method;
use http::conditional::{Conditions, ModifiedSince, Validator};
use http::date::http_date;
use http::range::ByteRange;

const ETAG: &[u8] = b"\"2ebc98a1-3e8\"";
const MODIFIED: u64 = 784_111_777;
const LENGTH: u64 = 1000;

type Text = Option<&'static [u8]>;

struct Dates {
    same: [u8; 29],
    earlier: [u8; 29],
}

/// The representation has an `ETag` and a date, 1000 bytes; `same` and `earlier` are dates.
fn run(method: Method, conditions: &Conditions<'_>, rules: Rules) -> (Answer, Vec<ByteRange>) {
    let validator = Validator { etag: Some(ETAG), last_modified: Some(MODIFIED) };
    let mut ranges = vec![ByteRange { start: 1, end: 2 }];
    let answer = answer(method, conditions, validator, LENGTH, rules, &mut ranges);
    (answer, ranges)
}

const RANGES: [(Text, Answer); 6] = [
    (None, Answer::Whole),
    (Some(b"bytes=0-99"), Answer::Partial),
    (Some(b"bytes=-1"), Answer::Partial),
    (Some(b"bytes=1000-"), Answer::Unsatisfiable),
    (Some(b"bytes=x"), Answer::Unsatisfiable),
    (Some(b"bytes=0-,0-"), Answer::Whole),
];

#[test]
fn method_then_preconditions_then_range_decide() {
    let dates = Dates { same: http_date(MODIFIED as i64), earlier: http_date(MODIFIED as i64 - 1) };
    let (same, earlier): (&[u8], &[u8]) = (&dates.same, &dates.earlier);
    let proceed = None;
    let failed = Some(Answer::PreconditionFailed);
    let fresh = Some(Answer::NotModified);
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
                        (Method::Get | Method::Head, None) => Answer::Whole,
                        _ => Answer::NotAllowed,
                    };
                    let (found, ranges) = run(method, &conditions, Rules::default());
                    assert_eq!(found, expected, "{method:?} {conditions:?}");
                    assert_eq!(found == Answer::Partial, !ranges.is_empty());
                }
            }
        }
    }
}

#[test]
fn locations_may_switch_dates_and_ranges_off() {
    let same = http_date(MODIFIED as i64);
    let since = Conditions { if_modified_since: Some(&same), ..Conditions::default() };
    let rules = Rules { since: ModifiedSince::Off, ..Rules::default() };
    assert_eq!(run(Method::Get, &since, rules).0, Answer::Whole);
    let range = Conditions { range: Some(b"bytes=0-1"), ..Conditions::default() };
    let rules = Rules { max_ranges: 0, ..Rules::default() };
    assert_eq!(run(Method::Get, &range, rules).0, Answer::Whole);
    let range = Conditions { range: Some(b"bytes=0-1,3-4"), ..Conditions::default() };
    let rules = Rules { max_ranges: 1, ..Rules::default() };
    assert_eq!(run(Method::Get, &range, rules).0, Answer::Whole);
}

#[test]
fn each_answer_has_its_status() {
    let answers = [
        (Answer::Whole, 200),
        (Answer::Partial, 206),
        (Answer::NotModified, 304),
        (Answer::NotAllowed, 405),
        (Answer::PreconditionFailed, 412),
        (Answer::Unsatisfiable, 416),
    ];
    for (answer, status) in answers {
        assert_eq!(answer.status(), status);
    }
}
