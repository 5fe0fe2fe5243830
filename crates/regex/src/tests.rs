//! Counted and uncounted matches: that they are the same, and that both end.

use proptest::prelude::*;

use super::{
    GroupSpans, JIT_FIRST, JIT_TIMES_MAX, JIT_WORK_MAX, MatchError, MatchWork, Pcre, PcreOptions,
    compiled_here, jit_share,
};

const OPTIONS: PcreOptions = PcreOptions { attempt: 8192, ..PcreOptions::trusted() };
/// As many steps as ten bytes may take at most.
const PLENTY: MatchWork = MatchWork { quick: 1 << 30, steps: 1 << 30, jit: 1 << 30 };
/// Whatever matches is counted.
const COUNTED: MatchWork = MatchWork { quick: 0, steps: 1 << 30, jit: 0 };

fn pcre(source: &str) -> Pcre {
    Pcre::new(source.as_bytes(), OPTIONS).unwrap()
}

fn found(pcre: &Pcre, text: &[u8], mut work: MatchWork) -> Result<Option<GroupSpans>, MatchError> {
    let mut spans = GroupSpans::default();
    Ok(pcre.find(text, &mut spans, &mut work)?.then_some(spans))
}

/// Expressions with all that repeats, looks around, refers and is tried in turn.
fn expression() -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        Just("a".to_owned()),
        Just("b".to_owned()),
        Just(".".to_owned()),
        Just("[ab]".to_owned()),
        Just("[^b]".to_owned()),
        Just("\\b".to_owned()),
        Just("^".to_owned()),
        Just("$".to_owned()),
        Just("(?<=a)".to_owned()),
    ];
    atom.prop_recursive(3, 24, 4, |inner| {
        let repeat = prop::sample::select(vec!["", "", "*", "+", "?", "*?", "*+", "{2}", "{1,3}"]);
        let group = prop::sample::select(vec!["(", "(?:", "(?=", "(?!", "(?>"]);
        let ways = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            (group, ways, repeat).prop_map(|(group, ways, repeat)| {
                format!("{group}{}){repeat}", ways.join("|"))
            }),
            prop::collection::vec(inner, 1..4).prop_map(|parts| parts.concat()),
        ]
    })
}

proptest! {
    /// Counting changes no match, and none of its groups.
    #[test]
    fn a_counted_match_is_the_one_that_is_not(
        source in expression(),
        reference in prop::sample::select(vec!["", "", "(a*)", "(a|b)x?\\1"]),
        text in "[abc\n]{0,12}",
    ) {
        let source = format!("{reference}{source}");
        if let Ok(pcre) = Pcre::new(source.as_bytes(), OPTIONS) {
            let plain = found(&pcre, text.as_bytes(), PLENTY);
            let counted = found(&pcre, text.as_bytes(), COUNTED);
            prop_assert_eq!(&plain, &counted, "{}", source);
            let is_match = pcre.is_match(text.as_bytes(), &mut { PLENTY });
            prop_assert_eq!(is_match.ok(), plain.ok().map(|spans| spans.is_some()));
        }
    }
}

#[test]
fn a_match_ends_when_its_steps_are_taken() {
    let (a, many) = (b"a".repeat(7000), b"a".repeat(200_000));
    let twice = b"a".repeat(4999).into_iter().chain(*b"z").cycle().take(200_000).collect();
    let rows: [(&str, &Vec<u8>); 8] = [
        ("^(a|aa)+$", &[a.clone(), b"c".to_vec()].concat()),
        ("a{0,900}a{0,900}[bc]", &a),
        ("a*a*[bc]", &a),
        ("a(?>[^z]*)[zy]", &many),
        ("(a*)\\1[bc]", &a),
        (".*.*.*[xy]", &a),
        // What fails within an item is seen by no callout.
        ("(a*)a{5000}[bc]", &a),
        ("(?:a|a)(?:a*)a{5000}", &twice),
    ];
    for (source, text) in rows {
        let pcre = pcre(source);
        let mut work = MatchWork { quick: 0, steps: 100_000, jit: 0 };
        let failed = pcre.is_match(text, &mut work);
        assert_eq!((failed, work.steps), (Err(MatchError { code: -47 }), 0), "{source}");
        // What is left to the uncounted attempt is bounded, too.
        let mut work = MatchWork { quick: 3_000_000, steps: 100_000, jit: 0 };
        assert_eq!(pcre.is_match(text, &mut work).ok(), None, "{source}");
    }
}

#[test]
fn what_no_callout_sees_has_its_part_in_the_bound() {
    let properties =
        ["Greek", "Arabic", "Han", "Thai", "Lu", "Nd"].map(|name| format!("\\p{{{name}}}"));
    let set = format!("[^{}]+[yz]", properties.concat().repeat(700));
    let flags = "\u{1f1e6}".repeat(1500);
    let (run, text) = ("(*UTF)(*sr:[^z]*)[yz]", "a".repeat(8000));
    for (source, text) in [(&*set, &text), (run, &text), ("(*UTF)\\X*[yz]", &flags)] {
        let pcre = pcre(source);
        for quick in [0, 8_000_000] {
            let mut work = MatchWork { quick, steps: 1_000_000, jit: 0 };
            let failed = pcre.is_match(text.as_bytes(), &mut work);
            assert_eq!((failed, work.steps), (Err(MatchError { code: -47 }), 0), "{source:.20}");
        }
    }
    let options = PcreOptions { is_trusted: false, ..OPTIONS };
    assert!(Pcre::new(b"(*UTF)a", options).is_err());
    assert!(Pcre::new(b"(*NO_JIT)a", options).is_ok());
}

#[test]
fn items_that_fail_late_count_in_what_an_attempt_may_do() {
    let ways: Vec<String> = (0..300).map(|number| format!("a{{999}}x{number}")).collect();
    let pcre = pcre(&format!("^(?:{})", ways.join("|")));
    let mut work = MatchWork { quick: 1_000_000, steps: 1_000_000, jit: 1 << 20 };
    assert_eq!(pcre.is_match(&[b'a'; 998], &mut work), Ok(false));
    assert_eq!(work.quick, 1_000_000, "it was no attempt");
    assert!(work.steps < 1_000_000 - 300 * 60, "each way is paid for: {work:?}");
}

/// Lists of thousands of names, as sites have them of robots.
#[test]
fn what_is_too_large_to_be_counted_is_matched() {
    let names: Vec<String> = (0..2000).map(|number| format!("robot{number}x")).collect();
    let source = format!("(?:{})", names.join("|"));
    let agent = "Mozilla/5.0 (compatible; robot of no name) ".repeat(8);
    let other = format!("{agent} robot1999x");
    for is_trusted in [true, false] {
        let pcre = Pcre::new(source.as_bytes(), PcreOptions { is_trusted, ..OPTIONS }).unwrap();
        for (text, is_match) in [(&agent, false), (&other, true)] {
            let mut work = MatchWork { quick: 0, ..MatchWork::default() };
            let found = pcre.is_match(text.as_bytes(), &mut work);
            match found {
                Ok(found) => assert_eq!(found, is_match),
                Err(error) => assert_eq!((error.code, is_trusted), (-47, false)),
            }
        }
        let slow = format!("(a+)+[xy]|{source}");
        let pcre = Pcre::new(slow.as_bytes(), PcreOptions { is_trusted, ..OPTIONS }).unwrap();
        let mut work = MatchWork { quick: 0, ..MatchWork::default() };
        assert!(pcre.is_match(&[b'a'; 300], &mut work).is_err());
    }
}

#[test]
fn many_matches_in_a_row_pay_for_what_they_go_through() {
    let (pcre, text) = (pcre("'([a-z]+)':"), "{'abc':1,'de':2},".repeat(20_000));
    let (mut spans, mut at, mut found) = (GroupSpans::default(), 0, 0);
    let mut work = MatchWork { quick: 0, steps: 2_000_000, jit: 0 };
    while pcre.find(&text.as_bytes()[at..], &mut spans, &mut work) == Ok(true) {
        at += spans.get(0).unwrap().1;
        found += 1;
    }
    assert_eq!(found, 40_000, "{work:?}");
}

#[test]
fn ordinary_matches_need_no_count_and_next_to_no_steps() {
    let rows = [
        ("^/(.*)\\.(jpg|jpeg|png|gif)$", "/wp-content/uploads/2024/05/some-picture-name.png", 1),
        ("^(?:index\\.php|admin|login|wp-[a-z]+)$", "wp-content", 1),
        ("(bot|crawl|spider|slurp|facebook)", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537", 0),
        ("(.*)foo(.*)", &"a".repeat(8000), 0),
        ("(?:^|; )session=([^;]+)", &"name=value; ".repeat(600), 0),
        ("([a-z0-9]{2000,})", &"name=value&".repeat(400), 0),
    ];
    for (source, text, is_match) in rows {
        let pcre = pcre(source);
        let mut work = MatchWork::default();
        assert_eq!(pcre.is_match(text.as_bytes(), &mut work), Ok(is_match == 1), "{source}");
        let is_short = text.len() < 100;
        assert_eq!(work.steps == MatchWork::default().steps, is_short, "{source}");
        let mut work = MatchWork { quick: 0, steps: 600_000, jit: 0 };
        assert_eq!(pcre.is_match(text.as_bytes(), &mut work), Ok(is_match == 1), "{source}");
    }
}

#[test]
fn what_others_wrote_is_compiled_for_jit_when_it_is_used() {
    let options = PcreOptions { is_trusted: false, ..OPTIONS };
    let before = compiled_here();
    for source in ["^old/p(\\d+)/([^/]+)$", "(a|b)+c", "(.*)foo(.*)", "([a-z]{2,9}\\.){3}"] {
        let pcre = Pcre::new(source.as_bytes(), options).unwrap();
        for text in ["old/p7/x", "abababc", "a foo b", "aa.bb.cc.", ""] {
            let mut spans = [GroupSpans::default(), GroupSpans::default()];
            let mut none = MatchWork { jit: 0, ..PLENTY };
            let mut some = MatchWork { jit: 1 << 20, ..PLENTY };
            let interpreted = pcre.find(text.as_bytes(), &mut spans[0], &mut none);
            assert_eq!(interpreted, pcre.find(text.as_bytes(), &mut spans[1], &mut some));
            assert_eq!(spans[0], spans[1], "{source} {text}");
            assert_eq!(some.jit < 1 << 20, text == "old/p7/x", "once: {source} {text}");
        }
    }
    let noted = compiled_here() - before;
    assert!(noted > 4 * JIT_FIRST, "what JIT may take counts from the beginning: {noted}");
}

/// JIT would make 17 MB of code of the first, in a third of a second.
#[test]
fn compiling_what_others_wrote_has_a_bound() {
    let nested = |depth: usize, inner: &str, more: &str| {
        let text = format!("{}{inner}{}{more}", "(".repeat(depth), ")".repeat(depth));
        Pcre::new(text.as_bytes(), PcreOptions { is_trusted: false, ..OPTIONS })
    };
    let again: String = (1..40).map(|group| format!("(?{group})?")).collect();
    for (inner, text) in [("(b)?".repeat(1500), "bbb"), ("a".to_owned(), "aaa")] {
        let pcre = nested(39, &inner, &again).unwrap();
        let mut work = MatchWork { jit: 1 << 20, ..PLENTY };
        // Interpreted, the first has too little memory.
        let found = pcre.is_match(text.as_bytes(), &mut work);
        assert!(found.is_err() || found == Ok(true), "{found:?}");
        let taken = (1 << 20) - work.jit;
        assert!(taken > 0 && taken <= JIT_WORK_MAX + pcre.plain.size(), "{taken}");
        let kept = pcre.jit.get().unwrap().as_ref().map_or(0, |code| code.jit_size());
        assert!(kept <= JIT_TIMES_MAX * jit_share(&pcre.plain), "{kept}");
        let _ = pcre.is_match(text.as_bytes(), &mut MatchWork { jit: 1 << 20, ..COUNTED });
        let counted = pcre.counted.get().unwrap().as_ref();
        assert!(counted.is_none_or(|code| !code.has_jit()), "it is in no account");
    }
    let fault = nested(60, "a", "").unwrap_err();
    assert_eq!(fault.message, "parentheses are too deeply nested");
}

#[test]
fn a_match_that_jit_has_no_stack_for_is_interpreted() {
    let pcre = pcre("^(a|b)+$");
    for (end, is_match) in [(&b"a"[..], true), (b"c", false)] {
        let text = [&b"ab".repeat(4000)[..], end].concat();
        assert_eq!(pcre.is_match(&text, &mut MatchWork::default()), Ok(is_match));
    }
}

#[test]
fn groups_lie_where_they_matched() {
    let (digits, mut spans) = (pcre("(?<year>\\d+)-(?<day>\\d+)?(x)?"), GroupSpans::default());
    assert_eq!(digits.groups(), 4);
    assert_eq!(digits.names().collect::<Vec<_>>(), [(1, "year"), (2, "day")]);
    let text = b"ab 12-3 \xff 45-";
    assert_eq!(digits.find(text, &mut spans, &mut MatchWork::default()), Ok(true));
    assert_eq!((spans.get(0), spans.get(1), spans.get(3)), (Some((3, 7)), Some((3, 5)), None));
    assert_eq!(digits.find(&text[7..], &mut spans, &mut MatchWork::default()), Ok(true));
    assert_eq!((spans.get(0), spans.get(2), spans.len()), (Some((3, 6)), None, 4));
    for from in [12, 13] {
        assert_eq!(digits.find(&text[from..], &mut spans, &mut MatchWork::default()), Ok(false));
    }
    assert_eq!(spans.get(0), Some((3, 6)), "what does not match leaves them");
    let many = pcre(&"(a)?".repeat(400));
    for _ in 0..2 {
        assert_eq!(many.find(b"aaa", &mut spans, &mut MatchWork::default()), Ok(true));
        assert_eq!((spans.len(), spans.get(3), spans.get(4)), (401, Some((2, 3)), None));
    }
    assert_eq!(pcre("^$").find(b"", &mut spans, &mut MatchWork::default()), Ok(true));
    assert_eq!((spans.get(0), spans.len()), (Some((0, 0)), 1));
}

#[test]
fn bytes_that_are_no_text_stand_in_expressions() {
    let options = PcreOptions { caseless: true, dotall: true, ..OPTIONS };
    let pcre = Pcre::new(b"^A\xe9.$", options).unwrap();
    assert_eq!(pcre.is_match(b"a\xe9\n", &mut MatchWork::default()), Ok(true));
    let error = Pcre::new(b"a(b", OPTIONS).unwrap_err();
    assert_eq!((&*error.message, error.offset), ("missing closing parenthesis", 3));
}

#[test]
fn threads_match_by_one_expression() {
    let pcre = pcre("(a+)(b+)c{0,900}c{0,900}d");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let text = [b"aab".as_slice(), &b"c".repeat(40), b"d"].concat();
                for quick in [0, 1 << 20] {
                    let spans =
                        found(&pcre, &text, MatchWork { quick, steps: 1 << 20, jit: 0 }).unwrap();
                    assert_eq!(spans.unwrap().get(1), Some((0, 2)));
                }
            });
        }
    });
}
