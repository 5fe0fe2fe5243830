//! The truth table of preconditions.

use super::{Comparison, Conditions, ModifiedSince, Precondition, Validator, matches};
use crate::{FieldMap, Name, date};
use proptest::prelude::{any, prop, proptest};

const MODIFIED: u64 = 784_111_777;
const ETAG: &[u8] = b"\"2ebc9ca1-400\"";

fn validator() -> Validator<'static> {
    Validator { etag: Some(ETAG), last_modified: Some(MODIFIED) }
}

#[test]
fn lists_of_tags_match_weakly_or_strongly() {
    use Comparison::{Strong, Weak};
    let cases: [(&str, &str, bool, bool); 14] = [
        ("\"a\"", "\"a\"", true, true),
        ("W/\"a\"", "\"a\"", false, true),
        ("\"a\"", "W/\"a\"", false, true),
        ("W/\"a\"", "W/\"a\"", false, true),
        ("\"b\"", "\"a\"", false, false),
        ("\"b\", \"a\"", "\"a\"", true, true),
        ("\"b\",\"a\"", "\"a\"", true, true),
        (" , ,\"a\" , ", "\"a\"", true, true),
        ("*", "\"a\"", true, true),
        (" * ", "\"a\"", true, true),
        ("\"*\"", "\"a\"", false, false),
        ("\"b,\"a\"\"", "\"a\"", false, false),
        ("\"x,\", \"a\"", "\"a\"", true, true),
        ("\"a\"b", "\"a\"", false, false),
    ];
    for (list, etag, strong, weak) in cases {
        let (list_bytes, etag_bytes) = (list.as_bytes(), Some(etag.as_bytes()));
        assert_eq!(matches(list_bytes, etag_bytes, Strong), strong, "{list} {etag}");
        assert_eq!(matches(list_bytes, etag_bytes, Weak), weak, "{list} {etag}");
    }
    assert!(matches(b"*", None, Strong));
    assert!(!matches(b"\"a\"", None, Weak));
}

/// Every combination of the four preconditions being absent, true or false.
#[test]
fn preconditions_are_judged_in_nginxs_order() {
    let (same, later, earlier) =
        (date::http_date(784_111_777), date::http_date(784_111_778), date::http_date(1));
    let tags: [Option<&[u8]>; 3] = [None, Some(ETAG), Some(b"\"x\"")];
    let dates: [Option<&[u8]>; 3] = [None, Some(&same), Some(&earlier)];
    for row in 0..81 {
        let pick = |place: u32| row / 3_usize.pow(place) % 3;
        let conditions = Conditions {
            if_match: tags[pick(0)],
            if_none_match: tags[pick(1)],
            if_modified_since: dates[pick(2)],
            if_unmodified_since: dates[pick(3)],
            ..Conditions::default()
        };
        let expected = match (pick(3), pick(0), pick(1), pick(2)) {
            (2, _, _, _) | (_, 2, _, _) => Precondition::PreconditionFailed,
            (_, _, 1, _) | (_, _, 0, 1) => Precondition::NotModified,
            _ => Precondition::Proceed,
        };
        let verdict = conditions.evaluate(validator(), ModifiedSince::Exact);
        assert_eq!(verdict, expected, "{conditions:?}");
        let undated = Validator { last_modified: None, ..validator() };
        assert_eq!(conditions.evaluate(undated, ModifiedSince::Exact), Precondition::Proceed);
    }
    let since = |text, mode| {
        let conditions = Conditions { if_modified_since: Some(text), ..Conditions::default() };
        conditions.evaluate(validator(), mode)
    };
    assert_eq!(since(&later, ModifiedSince::Exact), Precondition::Proceed);
    assert_eq!(since(&later, ModifiedSince::Before), Precondition::NotModified);
    assert_eq!(since(&same, ModifiedSince::Before), Precondition::NotModified);
    assert_eq!(since(&earlier, ModifiedSince::Before), Precondition::Proceed);
    assert_eq!(since(&same, ModifiedSince::Off), Precondition::Proceed);
    assert_eq!(since(b"yesterday", ModifiedSince::Before), Precondition::Proceed);
    let unmodified = |text| {
        let conditions = Conditions { if_unmodified_since: Some(text), ..Conditions::default() };
        conditions.evaluate(validator(), ModifiedSince::Exact)
    };
    assert_eq!(unmodified(&later), Precondition::Proceed);
    assert_eq!(unmodified(b"yesterday"), Precondition::PreconditionFailed);
}

#[test]
fn a_range_applies_only_to_the_very_same_representation() {
    let (same, later) = (date::http_date(784_111_777), date::http_date(784_111_778));
    let applies = |if_range, validator| {
        Conditions { if_range, ..Conditions::default() }.range_applies(validator)
    };
    assert!(applies(None, validator()));
    assert!(applies(Some(ETAG), validator()));
    assert!(applies(Some(&same), validator()));
    assert!(!applies(Some(&later), validator()));
    assert!(!applies(Some(b"\"x\""), validator()));
    assert!(!applies(Some(b"never"), validator()));
    assert!(!applies(Some(b"never"), Validator { last_modified: None, ..validator() }));
    assert!(!applies(Some(ETAG), Validator { etag: None, ..validator() }));
    let weak: &[u8] = b"W/\"a\"";
    assert!(!applies(Some(weak), Validator { etag: Some(weak), ..validator() }));
}

#[test]
fn the_first_field_of_each_kind_counts() {
    let mut fields = FieldMap::new();
    fields.push(Name::Host, b"a");
    fields.push(Name::IfNoneMatch, b"\"a\"");
    fields.push(Name::IfNoneMatch, b"\"b\"");
    fields.push(Name::Range, b"bytes=0-");
    fields.push(Name::IfRange, b"\"r\"");
    fields.push(Name::IfMatch, b"\"m\"");
    fields.push(Name::IfModifiedSince, b"1");
    fields.push(Name::IfUnmodifiedSince, b"2");
    let found = Conditions::of(&fields);
    assert_eq!(found.if_none_match, Some(&b"\"a\""[..]));
    assert_eq!(found.range, Some(&b"bytes=0-"[..]));
    assert_eq!(found.if_range, Some(&b"\"r\""[..]));
    assert_eq!(found.if_match, Some(&b"\"m\""[..]));
    assert_eq!(found.if_modified_since, Some(&b"1"[..]));
    assert_eq!(found.if_unmodified_since, Some(&b"2"[..]));
}

proptest! {
    #[test]
    fn a_tag_is_found_in_every_list_that_names_it(
        before in prop::collection::vec("(W/)?\"[a-z,]{0,4}\"", 0..4),
        after in prop::collection::vec("(W/)?\"[a-z,]{0,4}\"", 0..4),
        bytes in any::<Vec<u8>>(),
    ) {
        let tag = "\"the one\"".to_owned();
        let with: Vec<_> = before.iter().chain([&tag]).chain(&after).cloned().collect();
        let without: Vec<_> = before.into_iter().chain(after).collect();
        let etag = Some(tag.as_bytes());
        assert!(matches(with.join(", ").as_bytes(), etag, Comparison::Strong));
        assert!(!matches(without.join(",").as_bytes(), etag, Comparison::Weak));
        crate::fuzz::conditional(&bytes);
    }
}
