//! The sieve beside PCRE: it may ask too much and must never leave out what matches.

use bolide_conf::regex::{LetterCase, Regex};
use proptest::prelude::{ProptestConfig, Strategy, prop_assert, prop_assert_eq, proptest};

use super::outline::PatternDetail;
use super::sieve::Sieve;
use super::{CapturePattern, Captures, Patterns, Sieves};

fn regex(source: &str, case: LetterCase) -> Option<Regex> {
    Regex::new(source.as_bytes(), case).ok()
}

fn sieve(sources: &[&str], detail: PatternDetail) -> Sieve {
    let regexes: Vec<Regex> =
        sources.iter().map(|source| regex(source, LetterCase::Sensitive).unwrap()).collect();
    Sieve::new(regexes.iter(), detail, &mut 10_000).unwrap()
}

#[test]
fn only_what_might_match_is_asked() {
    let sources = [
        r"\.php$",
        r"^/user/([0-9]+)/profile$",
        r"\.(?:jpe?g|png)$",
        r"^/a{2,3}$",
        r"(?i)readme",
        r"^(?!/x)/[a-z]+$",
        r"^$",
        r"/(a|b)\1/",
        r"\.\Qx\E",
        r"[^a-z/]",
    ];
    let sieve = sieve(&sources, PatternDetail::Whole);
    for (text, numbers) in [
        ("/index.php", &[0, 8, 9][..]),
        ("/index.php7", &[8, 9]),
        ("/user/42/profile", &[1, 8, 9]),
        ("/user/x/profile", &[8]),
        ("/p.jpg", &[2, 8, 9]),
        ("/p.jpeg", &[2, 8, 9]),
        ("/aa", &[3, 5, 8]),
        ("/aaaa", &[5, 8]),
        ("/ReadMe", &[4, 8, 9]),
        ("", &[6, 8]),
        ("/bb/", &[7, 8]),
    ] {
        let wanted = numbers.iter().fold(0, |bits, number| bits | 1_u64 << number);
        assert_eq!(sieve.sift(text.as_bytes()), wanted, "{text}");
    }
}

#[test]
fn what_only_looks_like_a_named_group_is_asked() {
    let sources = [r"^/(?<*/)admin|^/x(?<id>\d+)", "^/b$", "^/c$", "^/d$"];
    let sieve = sieve(&sources, PatternDetail::Whole);
    assert_eq!(sieve.sift(b"/admin") & 1, 1);
}

#[test]
fn gaps_behind_many_heads_do_not_multiply_the_states() {
    let ends = (0..40).map(|n| format!(r"^/part{n}/(.*)\.(?:html?|php{n})$"));
    let more = ["/vendor/.*\\.php$", "(^|/)\\.", "\\.(?:css|js)$", "/private/"].map(String::from);
    let sources: Vec<String> = ends.chain(more).collect();
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let sieve = sieve(&sources, PatternDetail::Heads);
    assert_eq!(sieve.sift(b"/part7/x/y.html"), 1 << 7);
    assert_eq!(sieve.sift(b"/part39/vendor/z.php"), 1 << 39 | 1 << 40);
    assert!(sieve.size() < 90_000, "{}", sieve.size());
}

#[test]
fn the_first_in_order_wins_whatever_the_parts_are() {
    let mut patterns = Patterns::default();
    for n in 0..150_u32 {
        let source = format!("^/{}[a-z]*$", (b'a' + (n % 26) as u8) as char);
        patterns.push(
            CapturePattern::new(&regex(&source, LetterCase::Sensitive).unwrap(), &[""; 0]),
            n,
        );
    }
    patterns.push(
        CapturePattern::new(&regex("([0-9]+)", LetterCase::Sensitive).unwrap(), &[""; 0]),
        150,
    );
    patterns.seal(&mut Sieves::default());
    let mut captures = Captures::default();
    assert_eq!(patterns.capture(b"/zoo", &mut captures), Some(&25));
    assert_eq!(patterns.capture(b"/a", &mut captures), Some(&0));
    assert_eq!(patterns.capture(b"/A42", &mut captures), Some(&150));
    assert_eq!(captures.numbered(1), Some(&b"42"[..]));
    assert_eq!(patterns.capture(b"/A", &mut captures), None);
    assert_eq!(patterns.capture(b"/zoo\n", &mut captures), Some(&25));
}

/// Texts that are expressions more often than not.
fn source() -> impl Strategy<Value = String> {
    let atom = r"(a|b|\^aaab|\.|/|[ab]|[^a]|[a-c/]|\\d|\\w|\\s|\\W|\\.|\(a\||\(|\)|\(\?:|\(\?i\)|\(\?=|\(\?!|\(\?<=|\(\?<x>|\^|\$|\||\[\]a\]|\[a-|\\b|\\A|\\z|\\Z|\\1|\\K|\\Q|\\E|-|\(\?i:|\(\?x\)|\(\?m\)|B|\\x61|\[\[:alpha:\]\]|\[\^\\d\])";
    let count = r"(\*|\+|\?|\{2\}|\{1,2\}|\{0,1\}|\{2,\}|\*\?|\+\+|\{,2\}|)";
    proptest::collection::vec((proptest::string::string_regex(atom).unwrap(), count), 1..8)
        .prop_map(|parts| parts.into_iter().map(|(atom, count)| atom + &count).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    #[test]
    fn what_matches_is_never_sifted_out(
        sources in proptest::collection::vec((source(), proptest::bool::ANY), 1..6),
        heads in proptest::bool::ANY,
        texts in proptest::collection::vec(r"[abcAB./1\n\r -]{0,7}", 8),
    ) {
        let case = |insensitive| match insensitive {
            true => LetterCase::Insensitive,
            false => LetterCase::Sensitive,
        };
        let regexes: Vec<Regex> =
            sources.iter().filter_map(|(source, any)| regex(source, case(*any))).collect();
        let detail = if heads { PatternDetail::Heads } else { PatternDetail::Whole };
        let Some(sieve) = Sieve::new(regexes.iter(), detail, &mut 10_000) else { return Ok(()) };
        for text in &texts {
            let sifted = sieve.sift(text.as_bytes());
            for (number, regex) in regexes.iter().enumerate() {
                let may = sifted >> number & 1 == 1;
                prop_assert!(may || !regex.is_match(text.as_bytes()), "{:?} {:?}", regex, text);
            }
        }
    }

    #[test]
    fn a_sifted_search_finds_what_asking_one_by_one_finds(
        sources in proptest::collection::vec(source(), 4..12),
        text in r"[abcAB./1 -]{0,7}",
    ) {
        let mut patterns = Patterns::default();
        for (number, source) in sources.iter().enumerate() {
            if let Some(regex) = regex(source, LetterCase::Sensitive) {
                patterns.push(CapturePattern::new(&regex, &[""; 0]), number);
            }
        }
        let mut captures = Captures::default();
        let plain = patterns.capture(text.as_bytes(), &mut captures).copied();
        patterns.seal(&mut Sieves::default());
        let sifted = patterns.capture(text.as_bytes(), &mut captures).copied();
        prop_assert_eq!(sifted, plain);
    }
}
