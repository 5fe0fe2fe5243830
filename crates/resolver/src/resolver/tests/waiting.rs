//! Who waits for what, how long, and what is kept for the next ones.

use std::time::Duration;

use super::{A, AAAA, Families, Play, ResolveFailure, address, alias, code, found, lasting, reply};

fn play() -> Play {
    Play::with(1, None, Families::V4)
}

#[test]
fn concurrent_lookups_of_a_name_share_one_query() {
    let mut play = play();
    for waiter in 1..=3 {
        play.ask(waiter, ["a.test", "A.Test", "a.test."][waiter as usize - 1]);
    }
    assert_eq!(play.sent.len(), 1);
    play.answer("a.test", A, &reply(&[address("127.0.0.1"), address("127.0.0.2")]));
    let wanted = found(&["127.0.0.1", "127.0.0.2"]);
    assert_eq!(play.verdicts(), [(1, wanted.clone()), (2, wanted.clone()), (3, wanted)]);
}

#[test]
fn who_leaves_takes_only_its_own_interest_away() {
    let mut play = play();
    play.ask(1, "a");
    play.ask(2, "a");
    play.leave(1);
    play.answer("a", A, &reply(&[address("127.0.0.1")]));
    assert_eq!(play.verdicts(), [(2, found(&["127.0.0.1"]))]);
    // A question that is of interest to none is not asked again.
    play.ask(3, "b");
    play.leave(3);
    play.sent.clear();
    play.pass(20_000);
    assert_eq!((play.messages(), play.resolver.next_deadline()), (0, None));
}

#[test]
fn who_left_and_asks_again_is_told_once() {
    let mut play = play();
    play.ask(1, "a");
    play.ask(2, "a");
    play.leave(1);
    play.ask(1, "b");
    play.answer("a", A, &reply(&[address("127.0.0.1")]));
    assert_eq!(play.verdicts(), [(2, found(&["127.0.0.1"]))]);
    play.answer("b", A, &reply(&[address("127.0.0.2")]));
    assert_eq!(play.verdicts(), [(1, found(&["127.0.0.2"]))]);
}

#[test]
fn a_name_that_all_have_left_is_asked_for_anew() {
    let mut play = play();
    play.ask(1, "a");
    let (_, _, first) = play.asked("a", A);
    play.leave(1);
    play.ask(2, "a");
    let (server, _, second) = play.asked("a", A);
    assert_ne!(first[..2], second[..2], "with another id");
    let old = Play::message(&first, &reply(&[address("127.0.0.9")]));
    play.resolver.receive_datagram(server, &old, play.now());
    play.settle();
    assert_eq!(play.told, []);
    assert!(play.logged[0].starts_with("wrong ident "), "{:?}", play.logged);
    play.answer("a", A, &reply(&[address("127.0.0.1")]));
    assert_eq!(play.verdict(), found(&["127.0.0.1"]));
}

#[test]
fn each_waits_for_its_own_time_and_the_question_goes_on() {
    let mut play = play();
    play.ask_for(1, "a", Duration::from_secs(1));
    play.ask_for(2, "a", Duration::from_secs(3));
    play.ask_for(3, "a", Duration::ZERO);
    play.pass(1000);
    assert_eq!(play.verdicts(), [(1, Err(ResolveFailure::TimedOut))]);
    play.pass(2000);
    assert_eq!(play.verdicts(), [(2, Err(ResolveFailure::TimedOut))]);
    play.pass(100_000);
    assert_eq!(play.told, []);
    play.answer("a", A, &reply(&[address("127.0.0.1")]));
    assert_eq!(play.verdicts(), [(3, found(&["127.0.0.1"]))]);
}

#[test]
fn answers_are_good_for_their_smallest_ttl() {
    let mut play = Play::new();
    play.ask(1, "a");
    play.answer("a", A, &reply(&[alias("x"), lasting("127.0.0.1", 9)]));
    play.answer("a", AAAA, &reply(&[lasting("::1", 3)]));
    play.messages();
    play.pass(3999 - play.millis % 1000);
    play.ask(2, "a");
    assert_eq!((play.verdicts().len(), play.messages()), (2, 0));
    play.pass(1);
    play.ask(3, "a");
    assert_eq!((play.verdicts().len(), play.messages()), (0, 2));
}

#[test]
fn valid_counts_in_place_of_the_ttl() {
    let mut play = Play::with(1, Some(20), Families::V4);
    play.ask(1, "a");
    play.answer("a", A, &reply(&[lasting("127.0.0.1", 1)]));
    play.pass(20_000);
    play.messages();
    play.ask(2, "a");
    assert_eq!((play.verdicts().len(), play.messages()), (2, 0));
    play.pass(1000);
    play.ask(3, "a");
    assert_eq!((play.verdicts().len(), play.messages()), (0, 1));
}

#[test]
fn failures_are_not_kept() {
    let mut play = play();
    for failing in [code(2), code(3), reply(&[])] {
        play.ask(1, "a");
        assert_eq!(play.messages_kept(), 1);
        play.answer("a", A, &failing);
        assert!(play.verdict().is_err());
    }
    play.ask(2, "a");
    play.answer("a", A, &reply(&[address("127.0.0.1")]));
    assert!(play.verdict().is_ok());
    play.sent.clear();
    play.ask(3, "CASE".to_owned().replace("CASE", "A").as_str());
    assert_eq!((play.verdict(), play.messages()), (found(&["127.0.0.1"]), 0));
}

impl Play {
    /// Queries since the last answer, kept for the next one.
    fn messages_kept(&mut self) -> usize {
        let last = self.sent.pop().expect("a query");
        let count = last.messages.len();
        self.sent = vec![last];
        count
    }
}

#[test]
fn several_addresses_that_are_kept_begin_at_any_place_of_their_ring() {
    let mut play = play();
    play.ask(0, "a");
    let all = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];
    play.answer("a", A, &reply(&all.map(address)));
    assert_eq!(play.verdict(), found(&all));
    let mut firsts = std::collections::HashSet::new();
    for waiter in 1..60 {
        play.ask(waiter, "a");
        let got = play.verdict().expect("it is kept");
        let first = all.iter().position(|text| *text == got[0]).expect("one of them");
        let wanted: Vec<&str> = (0..3).map(|step| all[(first + step) % 3]).collect();
        assert_eq!(got, wanted);
        firsts.insert(first);
    }
    assert_eq!(firsts.len(), 3);
}

#[test]
fn names_that_cannot_be_are_not_asked_for() {
    let mut play = play();
    let long = format!("{}.test", "a".repeat(64));
    for name in ["", ".", "a..b", ".a", "a..", &long] {
        play.ask(1, name);
        assert_eq!((play.verdict(), play.messages()), (Err(ResolveFailure::NotFound), 0), "{name}");
    }
}

#[test]
fn lists_do_not_grow_with_those_who_have_left() {
    let mut play = play();
    play.ask(0, "a");
    for waiter in 1..10_000 {
        play.ask(waiter, "a");
        play.leave(waiter);
    }
    let question = play.resolver.questions.values().next().expect("it is asked for");
    assert!(question.waiters.len() < 100, "{}", question.waiters.len());
    play.answer("a", A, &reply(&[address("127.0.0.1")]));
    assert_eq!(play.verdicts().len(), 1);
}
