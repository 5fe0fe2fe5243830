//! Sections as lists of lines, and the resulting heads or flaws.

use bolide_http::{HttpVersion, Method, Name, RequestBody, RequestHead};
use proptest::prelude::*;

use super::{Flaw, Following, Label, PseudoAssembly, PseudoRules, check_trailer};

const RULES: PseudoRules = PseudoRules {
    version: HttpVersion::Http3,
    head_size_max: 1000,
    fields_max: 1000,
    underscores_in_headers: false,
    ignore_invalid_headers: true,
};

const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/x?y")];

fn assemble(
    rules: &PseudoRules,
    following: Following,
    lines: &[(&str, &str)],
) -> (RequestHead, Result<(), Flaw>) {
    let mut head = RequestHead::default();
    let mut assembly = PseudoAssembly::new(rules, &mut head);
    for (name, value) in lines {
        assembly.field(Label::parse(name.as_bytes()), value.as_bytes());
    }
    let done = assembly.finish(following);
    (head, done)
}

fn get_with(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    GET.iter().chain(more).copied().collect()
}

fn malformed(lines: &[(&str, &str)]) -> bool {
    matches!(assemble(&RULES, Following::Nothing, lines).1, Err(Flaw::Malformed(_)))
}

fn status(lines: &[(&str, &str)]) -> u16 {
    match assemble(&RULES, Following::Nothing, lines).1 {
        Err(Flaw::Refused(refusal)) => refusal.status,
        other => panic!("{lines:?} gives {other:?}"),
    }
}

#[test]
fn a_head_has_target_line_host_and_one_cookie() {
    let lines = get_with(&[
        ("cookie", "a=1"),
        ("user-agent", "t"),
        ("x-own", "v"),
        ("cookie", "b=2"),
        ("te", "trailers"),
    ]);
    let (head, done) = assemble(&RULES, Following::Nothing, &lines);
    assert_eq!(done, Ok(()));
    assert_eq!((head.method, &head.method_text[..]), (Method::Get, &b"GET"[..]));
    assert_eq!((&head.target[..], &head.authority[..]), (&b"/x?y"[..], &b"a.example"[..]));
    assert_eq!(head.line, b"GET /x?y HTTP/3.0");
    assert_eq!(head.body, RequestBody::None);
    let fields: Vec<_> = head.fields.iter().map(|field| (field.text, field.value)).collect();
    assert_eq!(
        fields,
        [
            (&b"Host"[..], &b"a.example"[..]),
            (b"User-Agent", b"t"),
            (b"x-own", b"v"),
            (b"TE", b"trailers"),
            (b"Cookie", b"a=1; b=2"),
        ]
    );
}

#[test]
fn a_head_without_fields_has_a_host_too() {
    let (head, done) = assemble(&RULES, Following::Perhaps, &GET);
    assert_eq!(done, Ok(()));
    assert_eq!(head.fields.get(Name::Host), Some(&b"a.example"[..]));
    assert_eq!(head.body, RequestBody::Unknown);
}

#[test]
fn host_may_stand_in_for_authority_or_agree_with_it() {
    let lines = [(":method", "GET"), (":scheme", "https"), (":path", "/"), ("host", "b:1")];
    let (head, done) = assemble(&RULES, Following::Nothing, &lines);
    assert_eq!((done, &head.authority[..]), (Ok(()), &b"b:1"[..]));
    let (head, done) = assemble(&RULES, Following::Nothing, &get_with(&[("host", "a.example")]));
    assert_eq!((done, head.fields.all(Name::Host).count()), (Ok(()), 1));
}

#[test]
fn content_length_becomes_the_body_and_expect_is_known_with_one() {
    let lines = get_with(&[("content-length", "12"), ("expect", "100-Continue")]);
    let (head, done) = assemble(&RULES, Following::Perhaps, &lines);
    assert_eq!((done, head.body), (Ok(()), RequestBody::Length(12)));
    assert!(head.expects_continue && head.fields.get(Name::ContentLength).is_some());
    let lines = get_with(&[("content-length", "0"), ("expect", "100-continue")]);
    let (head, done) = assemble(&RULES, Following::Nothing, &lines);
    assert_eq!((done, head.body, head.expects_continue), (Ok(()), RequestBody::None, false));
}

#[test]
fn malformed_messages_are_told_apart() {
    for more in [
        (":path", "/again"),
        ("connection", "close"),
        ("keep-alive", "1"),
        ("proxy-connection", "1"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "x"),
        ("te", "gzip"),
        ("X-Upper", "1"),
        ("Accept", "1"),
        ("", "1"),
        ("a b", "1"),
        ("a:b", "1"),
        ("\u{e9}", "1"),
        ("x", "a\nb"),
        ("x", "a\rb"),
        ("x", "a\0b"),
        ("x", " a"),
        ("x", "a\t"),
        ("content-length", "1x"),
        ("content-length", ""),
        ("content-length", "+1"),
        ("content-length", "9223372036854775808"),
        ("content-length", "5"),
        ("host", "other"),
        (":unknown", "1"),
        (":status", "200"),
    ] {
        assert!(malformed(&get_with(&[more])), "{more:?}");
    }
    assert!(malformed(&get_with(&[("content-length", "0"), ("content-length", "1")])));
    assert!(malformed(&get_with(&[("content-length", "0"), ("content-length", "0")])));
    assert!(malformed(&get_with(&[("host", "A.example")])));
    assert!(malformed(&get_with(&[("host", "a.example"), ("host", "a.example")])));
    for missing in 0..4 {
        let mut lines = GET.to_vec();
        lines.remove(missing);
        assert!(malformed(&lines), "{lines:?}");
    }
    for (at, value) in [(1, ""), (1, "ht tp"), (1, "1x"), (1, "http:"), (3, ""), (3, "x"), (3, "*")]
    {
        let mut lines = GET;
        lines[at].1 = value;
        assert!(malformed(&lines), "{lines:?}");
    }
    assert!(malformed(&[("x", "1"), GET[0], GET[1], GET[2], GET[3]]));
}

#[test]
fn what_a_user_may_have_meant_is_answered_with_an_error() {
    let with = |at: usize, value| {
        let mut lines = GET;
        lines[at].1 = value;
        lines
    };
    assert_eq!(status(&with(0, "get")), 400);
    assert_eq!(status(&with(0, "G T")), 400);
    assert_eq!(status(&with(2, "")), 400);
    assert_eq!(status(&with(2, "a/b")), 400);
    assert_eq!(status(&with(2, "me@a")), 400);
    assert_eq!(status(&with(3, "/a b")), 400);
    assert_eq!(status(&[(":method", "CONNECT"), GET[2]]), 405);
    let long = "x".repeat(1001);
    assert_eq!(status(&[GET[0], GET[1], GET[2], (":path", &long)]), 494);
    assert_eq!(status(&[GET[0], GET[1], GET[2], GET[3], ("x", &long)]), 494);
    let many: Vec<_> = GET.iter().copied().chain([("x", "1"); 40]).collect();
    assert_eq!(status(&many), 494);
    let many: Vec<_> = GET.iter().copied().chain([("", "1"); 3]).collect();
    assert!(malformed(&many));
    let mut options = with(0, "OPTIONS");
    options[3].1 = "*";
    assert!(malformed(&options));
}

#[test]
fn what_comes_twice_over_http1_in_vain_does_so_here() {
    let twice = |name| [(name, "a"), (name, "a")];
    for name in ["authorization", "expect", "if-match", "if-none-match", "if-range"] {
        assert_eq!(status(&get_with(&twice(name))), 400, "{name}");
    }
    for name in ["if-modified-since", "if-unmodified-since", "content-range"] {
        assert_eq!(status(&get_with(&twice(name))), 400, "{name}");
    }
    for name in ["accept", "cookie", "range", "x-own"] {
        let (_, done) = assemble(&RULES, Following::Nothing, &get_with(&twice(name)));
        assert_eq!(done, Ok(()), "{name}");
    }
}

#[test]
fn the_first_flaw_counts_and_leaves_no_body() {
    let long = "x".repeat(1001);
    let lines = [GET[0], GET[1], GET[2], GET[3], ("x", &long), ("X", "1")];
    assert_eq!(status(&lines), 494);
    let lines = [GET[0], GET[1], GET[2], GET[3], ("X", "1"), ("x", &long)];
    assert!(malformed(&lines));
    let (head, done) =
        assemble(&RULES, Following::Perhaps, &get_with(&[("content-length", "5"), ("X", "1")]));
    assert!(done.is_err() && head.body == RequestBody::None);
}

#[test]
fn lines_that_are_kept_count_but_for_cookies() {
    let rules = PseudoRules { fields_max: 2, ..RULES };
    let count = |more: &[(&'static str, &'static str)]| {
        assemble(&rules, Following::Nothing, &get_with(more)).1.is_ok()
    };
    assert!(count(&[("cookie", "a"), ("cookie", "b"), ("a_b", "1"), ("x", "1"), ("y", "1")]));
    assert!(count(&[("content-length", "0"), ("host", "a.example")]));
    assert!(!count(&[("content-length", "0"), ("host", "a.example"), ("x", "1")]));
}

#[test]
fn odd_names_are_dropped_or_kept_as_configured() {
    let lines = get_with(&[("a_b", "1"), ("a!b", "2")]);
    let names = |rules: &PseudoRules| {
        let (head, done) = assemble(rules, Following::Nothing, &lines);
        assert_eq!(done, Ok(()));
        head.fields.iter().skip(1).map(|field| field.text.to_vec()).collect::<Vec<_>>()
    };
    assert!(names(&RULES).is_empty());
    assert_eq!(names(&PseudoRules { underscores_in_headers: true, ..RULES }), [b"a_b"]);
    assert_eq!(names(&PseudoRules { ignore_invalid_headers: false, ..RULES }), [b"a_b", b"a!b"]);
}

#[test]
fn trailers_have_no_pseudo_fields_and_good_names() {
    let check = |name: &str, value: &str| {
        let label = Label::parse(name.as_bytes());
        check_trailer(label, label.traits(value.as_bytes())).is_ok()
    };
    assert!(check("x-sum", "1") && check("content-type", "x"));
    for (name, value) in [(":path", "/"), ("X", "1"), ("", "1"), ("connection", "x"), ("x", "\n")] {
        assert!(!check(name, value), "{name}");
    }
}

proptest! {
    #[test]
    fn no_lines_break_the_limits_of_a_head(
        lines in proptest::collection::vec(
            (":?[a-zA-Z_-]{0,12}", "[ -~\u{0}]{0,40}"), 0..60,
        ),
    ) {
        let lines: Vec<_> = lines.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        let lines: Vec<_> = GET.iter().copied().chain(lines).collect();
        let (head, done) = assemble(&RULES, Following::Nothing, &lines);
        if done.is_ok() {
            prop_assert!(head.fields.size() <= RULES.head_size_max + 60);
            for field in head.fields.iter() {
                prop_assert!(!field.value.contains(&0));
            }
        }
    }
}
