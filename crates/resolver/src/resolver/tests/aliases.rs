//! Names that stand for other names.

use super::{A, AAAA, Families, Play, ResolveFailure, address, alias, found, record, reply};

const NONE: super::Reply = super::Reply { flags: 0x8180, records: Vec::new(), count: 0 };

/// A resolver that asks for A alone.
fn play() -> Play {
    Play::with(1, None, Families::V4)
}

#[test]
fn an_alias_is_followed_and_each_step_is_kept() {
    let mut play = play();
    play.ask(1, "a");
    play.answer("a", A, &reply(&[alias("b")]));
    play.answer("b", A, &reply(&[alias("c")]));
    play.answer("c", A, &reply(&[address("127.0.0.1")]));
    assert_eq!(play.verdict(), found(&["127.0.0.1"]));
    assert_eq!(play.messages(), 3);
    play.ask(2, "A");
    assert_eq!(play.verdict(), found(&["127.0.0.1"]));
    play.ask(3, "c");
    assert_eq!((play.verdict(), play.messages()), (found(&["127.0.0.1"]), 0));
}

#[test]
fn who_follows_an_alias_joins_a_question_under_way() {
    let mut play = play();
    play.ask(1, "b");
    play.ask(2, "a");
    play.answer("a", A, &reply(&[alias("b")]));
    assert_eq!(play.messages(), 2);
    play.ask(3, "b");
    play.sent.clear();
    assert_eq!(play.told, []);
}

#[test]
fn all_who_wait_move_on_together_and_each_keeps_its_own_time() {
    let mut play = play();
    play.ask_for(1, "a", std::time::Duration::from_secs(2));
    play.pass(1000);
    play.ask_for(2, "a", std::time::Duration::from_secs(2));
    play.answer("a", A, &reply(&[alias("b")]));
    play.pass(1000);
    assert_eq!(play.verdicts(), [(1, Err(ResolveFailure::TimedOut))]);
    play.pass(999);
    assert_eq!(play.told, []);
    play.answer("b", A, &reply(&[address("127.0.0.1")]));
    assert_eq!(play.verdicts(), [(2, found(&["127.0.0.1"]))]);
}

#[test]
fn fifty_aliases_are_followed_and_not_one_more() {
    for (steps, wanted) in [(50, found(&["127.0.0.1"])), (51, Err(ResolveFailure::NotFound))] {
        let mut play = play();
        play.ask(1, "n0");
        for step in 0..steps {
            play.answer(&format!("n{step}"), A, &reply(&[alias(&format!("n{}", step + 1))]));
        }
        if wanted.is_ok() {
            play.answer("n50", A, &reply(&[address("127.0.0.1")]));
        }
        assert_eq!(play.verdict(), wanted);
        // The same out of what is kept.
        play.ask(2, "n0");
        assert_eq!(play.verdict(), wanted);
    }
}

#[test]
fn aliases_in_a_circle_come_to_an_end() {
    let mut play = play();
    play.ask(1, "a");
    play.answer("a", A, &reply(&[alias("b")]));
    play.answer("b", A, &reply(&[alias("a")]));
    assert_eq!(play.verdict(), Err(ResolveFailure::NotFound));
    play.ask(2, "self");
    play.answer("self", A, &reply(&[alias("self")]));
    assert_eq!(play.verdict(), Err(ResolveFailure::NotFound));
}

#[test]
fn an_alias_to_nothing_or_to_no_name_is_not_found() {
    for bad in ["".to_owned(), "a".repeat(63) + &".b".repeat(120)] {
        let mut play = play();
        play.ask(1, "a");
        play.answer("a", A, &reply(&[alias(&bad)]));
        assert_eq!(play.verdict(), Err(ResolveFailure::NotFound), "{bad}");
    }
}

#[test]
fn an_alias_that_cannot_be_read_is_thrown_away() {
    let mut play = Play::new();
    play.ask(1, "a");
    play.answer("a", A, &NONE);
    play.answer("a", AAAA, &reply(&[record(5, 300, b"\xc0\xff")]));
    assert_eq!(play.logged, ["name is out of DNS response"]);
    play.pass(29_999);
    assert_eq!(play.told, []);
    play.pass(1);
    assert_eq!(play.verdict(), Err(ResolveFailure::TimedOut));
}
