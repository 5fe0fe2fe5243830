//! What two halves come to, in either order.

use super::{A, AAAA, Play, Reply, ResolveFailure, address, alias, code, found, record, reply};

type Verdict = Result<Vec<String>, ResolveFailure>;

const A1: &str = "127.0.0.1";
const A2: &str = "127.0.0.2";
const B1: &str = "::1";
const B2: &str = "::2";

/// The verdict for `a.test` where `first` is the half that comes first.
fn outcome(first: u8, a: &Reply, aaaa: &Reply) -> Play {
    let mut play = Play::new();
    play.ask(1, "a.test");
    if first == A {
        play.answer("a.test", A, a);
        assert_eq!(play.told, [], "a half is not enough");
        play.answer("a.test", AAAA, aaaa);
    } else {
        play.answer("a.test", AAAA, aaaa);
        assert_eq!(play.told, [], "a half is not enough");
        play.answer("a.test", A, a);
    }
    play
}

fn check(a: &Reply, aaaa: &Reply, wanted: &Verdict) {
    for first in [A, AAAA] {
        let mut play = outcome(first, a, aaaa);
        assert_eq!(play.verdict(), *wanted, "first: {first}");
    }
}

/// The same, where `x.test` is asked for next.
fn check_follows(first: u8, a: &Reply, aaaa: &Reply) {
    let mut play = outcome(first, a, aaaa);
    assert_eq!(play.told, []);
    play.answer_both("x.test", &reply(&[address(A1)]), &reply(&[address(B1)]));
    assert_eq!(play.verdict(), found(&[A1, B1]));
}

#[test]
fn addresses_of_both_halves_count_a_first() {
    let none = reply(&[]);
    check(&none, &none, &Err(ResolveFailure::NotFound));
    check(&none, &reply(&[address(B1)]), &found(&[B1]));
    check(&reply(&[address(A1)]), &none, &found(&[A1]));
    check(&reply(&[address(A1)]), &reply(&[address(B1)]), &found(&[A1, B1]));
    let (four, six) = (reply(&[address(A2), address(A1)]), reply(&[address(B2), address(B1)]));
    check(&four, &six, &found(&[A2, A1, B2, B1]));
}

#[test]
fn an_alias_beside_addresses_is_ignored() {
    let both = [address(B1), address(B2)];
    let aliased = reply(&[alias("x.test"), both[0].clone(), both[1].clone()]);
    check(&reply(&[]), &aliased, &found(&[B1, B2]));
    let two = reply(&[address(A1), address(A2)]);
    check(&two, &aliased, &found(&[A1, A2, B1, B2]));
    check(&reply(&[address(A1)]), &reply(&[alias("x.test")]), &found(&[A1]));
    check(&reply(&[alias("x.test")]), &reply(&[address(B1)]), &found(&[B1]));
    let aliased = reply(&[alias("x.test"), address(A1), address(A2)]);
    check(&aliased, &reply(&[alias("x.test")]), &found(&[A1, A2]));
}

#[test]
fn a_code_of_one_half_is_the_verdict() {
    for (number, failure) in [
        (2, ResolveFailure::ServerFailure),
        (3, ResolveFailure::NotFound),
        (4, ResolveFailure::Unimplemented),
        (5, ResolveFailure::Refused),
    ] {
        for other in [
            reply(&[]),
            reply(&[address(B1)]),
            reply(&[alias("x.test")]),
            reply(&[alias("x.test"), address(B1)]),
            code(number),
        ] {
            check(&code(number), &other, &Err(failure));
        }
        for other in [reply(&[]), reply(&[address(A1)]), reply(&[alias("x.test")])] {
            check(&other, &code(number), &Err(failure));
        }
    }
}

#[test]
fn of_two_codes_the_later_one_counts() {
    let play = |first| outcome(first, &code(2), &code(5)).verdict();
    assert_eq!(play(A), Err(ResolveFailure::Refused));
    assert_eq!(play(AAAA), Err(ResolveFailure::ServerFailure));
}

#[test]
fn without_addresses_the_half_that_came_last_decides() {
    let (none, named) = (reply(&[]), reply(&[alias("x.test")]));
    check_follows(AAAA, &named, &none);
    check_follows(A, &none, &named);
    assert_eq!(outcome(A, &named, &none).verdict(), Err(ResolveFailure::NotFound));
    assert_eq!(outcome(AAAA, &none, &named).verdict(), Err(ResolveFailure::NotFound));
    check_follows(A, &reply(&[alias("y.test")]), &named);
    check_follows(AAAA, &named, &reply(&[alias("y.test")]));
}

#[test]
fn an_empty_half_with_an_alias_and_addresses_behind_it_is_found() {
    check_follows(A, &reply(&[]), &reply(&[alias("X.test")]));
}

#[test]
fn an_answer_without_addresses_and_alias_says_nothing() {
    let text = reply(&[record(16, 300, b"text")]);
    let mut play = outcome(A, &text, &reply(&[record(39, 300, b"x")]));
    assert_eq!(play.told, []);
    let lines = [
        "unexpected RR type 16 in DNS response",
        "no A or CNAME types in DNS response",
        "no A or CNAME types in DNS response",
    ];
    assert_eq!(play.logged, lines);
    play.pass(30_000);
    assert_eq!(play.verdict(), Err(ResolveFailure::TimedOut));
    // With addresses in the other half it is like an empty one.
    check(&text, &reply(&[address(B1)]), &found(&[B1]));
}
