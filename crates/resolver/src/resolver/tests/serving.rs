//! Servers: in turn, silent, lying, with streams.

use std::time::Duration;

use super::{
    A, AAAA, Families, Play, ResolveFailure, Transport, address, code, found, record, reply,
    truncated,
};

fn servers(play: &Play) -> Vec<usize> {
    play.sent.iter().map(|query| query.server).collect()
}

#[test]
fn both_halves_are_asked_at_once_with_different_ids() {
    let mut play = Play::new();
    for name in 0..500 {
        play.ask(name, &format!("n{name}"));
        let messages = &play.sent.last().expect("a query").messages;
        assert_eq!(messages.len(), 2);
        assert!(messages.iter().all(|(transport, _)| *transport == Transport::Datagram));
        assert_ne!(messages[0].1[..2], messages[1].1[..2]);
    }
}

#[test]
fn only_enabled_address_families_are_queried() {
    for (families, kind) in [(Families::V4, A), (Families::V6, AAAA)] {
        let mut play = Play::with(1, None, families);
        play.ask(1, "a");
        assert_eq!(play.asked("a", kind).0, 0);
        assert_eq!(play.messages(), 1);
    }
}

#[test]
fn each_new_question_goes_to_the_next_server() {
    let mut play = Play::with(3, None, Families::Both);
    for name in ["a", "b", "c", "d"] {
        play.ask(1, name);
        play.leave(1);
    }
    assert_eq!(servers(&play), [0, 1, 2, 0]);
}

#[test]
fn a_question_that_cannot_be_sent_goes_to_the_next_server_once() {
    let mut play = Play::with(3, None, Families::Both);
    play.ask(1, "a");
    for _ in 0..3 {
        let last = play.sent.last().expect("a query").clone();
        play.resolver.handle_unsent(&last);
        play.settle();
    }
    assert_eq!(servers(&play), [0, 1]);
    play.pass(5000);
    let last = play.sent.last().expect("a query").clone();
    play.resolver.handle_unsent(&last);
    play.settle();
    assert_eq!(servers(&play), [0, 1, 2]);
}

#[test]
fn what_has_no_answer_is_asked_again_every_five_seconds() {
    let mut play = Play::with(2, None, Families::Both);
    play.ask(1, "a");
    play.pass(4999);
    assert_eq!(play.sent.len(), 1);
    play.pass(1);
    assert_eq!(servers(&play), [0, 1]);
    assert_eq!(play.sent[0].messages, play.sent[1].messages, "the same question");
    // Only the half that has no answer.
    play.answer("a", A, &reply(&[address("127.0.0.1")]));
    play.pass(5000);
    assert_eq!(play.sent[2].messages, play.sent[0].messages[1..]);
    play.answer("a", AAAA, &reply(&[]));
    assert_eq!(play.verdict(), found(&["127.0.0.1"]));
    play.sent.clear();
    play.pass(60_000);
    assert_eq!(play.messages(), 0);
}

#[test]
fn answers_that_belong_to_no_question_are_thrown_away() {
    let mut play = Play::with(2, None, Families::V4);
    play.ask(1, "a");
    let (server, _, question) = play.asked("a", A);
    let good = Play::message(&question, &reply(&[address("127.0.0.1")]));
    let changed = |at: usize, by: u8| {
        let mut bytes = good.clone();
        bytes[at] ^= by;
        bytes
    };
    let id = u16::from_be_bytes([good[0], good[1]]);
    for (bytes, line) in [
        (changed(1, 1), format!("wrong ident {} in DNS response for a, expect {id}", id ^ 1)),
        (changed(13, 3), "unexpected DNS response for b".to_owned()),
        (changed(16, 29), "unexpected DNS response for a".to_owned()),
        (good[..11].to_vec(), "short DNS response".to_owned()),
    ] {
        play.resolver.receive_datagram(server, &bytes, play.now());
        play.settle();
        assert_eq!(play.logged, [line]);
        play.logged.clear();
    }
    // The other server was not asked.
    play.resolver.receive_datagram(1, &good, play.now());
    play.settle();
    assert_eq!(play.logged, ["unexpected DNS response for a"]);
    assert_eq!(play.told, []);
    // Once it was, both may answer.
    play.pass(5000);
    play.resolver.receive_datagram(0, &good, play.now());
    play.settle();
    assert_eq!(play.verdict(), found(&["127.0.0.1"]));
    play.resolver.receive_datagram(0, &good, play.now());
    play.settle();
    assert_eq!(play.logged[1], "unexpected DNS response for a");
}

#[test]
fn a_wrong_id_is_put_right_by_asking_again() {
    let mut play = Play::with(1, None, Families::V4);
    play.ask(1, "a");
    play.pass(5000);
    play.answer("a", A, &reply(&[address("127.0.0.1")]));
    assert_eq!(play.verdict(), found(&["127.0.0.1"]));
}

#[test]
fn format_errors_are_logged_with_the_name_and_waited_out() {
    let mut play = Play::with(1, None, Families::V4);
    play.ask_for(1, "a.test", Duration::from_secs(2));
    let (_, _, question) = play.asked("a.test", A);
    let id = u16::from_be_bytes([question[0], question[1]]);
    play.answer("a.test", A, &code(1));
    play.answer("a.test", A, &code(6));
    assert_eq!(
        play.logged,
        [
            format!("DNS error (1: Format error), query id:{id}, name:\"a.test\""),
            format!("DNS error (6: Unknown error), query id:{id}"),
        ]
    );
    play.pass(2000);
    assert_eq!(play.verdict(), Err(ResolveFailure::TimedOut));
}

#[test]
fn malformed_records_leave_the_question_waiting() {
    let mut play = Play::with(1, None, Families::V4);
    play.ask(1, "a");
    play.answer("a", A, &reply(&[record(1, 300, &[1, 2, 3, 4, 5])]));
    play.answer("a", A, &reply(&[record(28, 300, &[0; 16])]));
    assert_eq!(
        play.logged,
        ["invalid A record in DNS response", "unexpected AAAA record in DNS response"]
    );
    play.pass(5000);
    play.answer("a", A, &reply(&[address("127.0.0.1")]));
    assert_eq!(play.verdict(), found(&["127.0.0.1"]));
}

#[test]
fn what_was_cut_is_asked_for_over_a_stream_of_the_same_server() {
    let mut play = Play::with(2, None, Families::Both);
    play.ask(1, "a");
    play.answer("a", A, &truncated());
    play.answer("a", AAAA, &reply(&[]));
    let (server, transport, question) = play.asked("a", A);
    assert_eq!((server, transport), (0, Transport::Stream));
    let sent = &play.sent.last().expect("a query").messages;
    assert_eq!(sent[0].1[..2], (question.len() as u16).to_be_bytes());
    // A second one that was cut is late.
    let cut = Play::message(&question, &truncated());
    play.resolver.receive_datagram(0, &cut, play.now());
    play.settle();
    assert_eq!((play.sent.len(), play.logged.len()), (2, 0));
    play.answer("a", A, &reply(&[address("127.0.0.1")]));
    assert_eq!(play.verdict(), found(&["127.0.0.1"]));
}

#[test]
fn a_stream_that_brings_nothing_is_asked_again_at_the_next_server() {
    let mut play = Play::with(2, None, Families::Both);
    play.ask(1, "a");
    play.pass(3000);
    play.answer("a", AAAA, &truncated());
    play.resolver.handle_written(0, play.now());
    play.pass(4999);
    assert_eq!((play.sent.len(), play.closed.len()), (2, 0));
    play.pass(1);
    assert_eq!(play.closed, [0]);
    let last = play.sent.last().expect("a query");
    let how: Vec<Transport> = last.messages.iter().map(|(transport, _)| *transport).collect();
    assert_eq!((last.server, how), (1, vec![Transport::Datagram, Transport::Stream]));
    // What is cut again, over a stream, is no answer.
    play.answer("a", AAAA, &truncated());
    assert!(play.logged[0].starts_with("invalid TCP DNS response "), "{:?}", play.logged);
}

#[test]
fn messages_of_streams_come_in_any_pieces() {
    let mut play = Play::with(1, None, Families::V4);
    let mut bytes = Vec::new();
    for (waiter, name) in [(1, "a"), (2, "b")] {
        play.ask(waiter, name);
        play.answer(name, A, &truncated());
        let (_, _, question) = play.asked(name, A);
        let message = Play::message(&question, &reply(&[address("127.0.0.1")]));
        bytes.extend_from_slice(&(message.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&message);
    }
    for byte in bytes {
        play.resolver.receive_stream(0, &[byte], play.now());
        play.settle();
    }
    let told: Vec<u64> = play.verdicts().iter().map(|(waiter, _)| *waiter).collect();
    assert_eq!(told, [1, 2]);
    // What was begun before a stream was closed is no part of the next one.
    play.ask(3, "c");
    play.answer("c", A, &truncated());
    play.resolver.receive_stream(0, &[0], play.now());
    play.resolver.handle_closed(0);
    play.answer("c", A, &reply(&[address("127.0.0.1")]));
    assert_eq!(play.verdict(), found(&["127.0.0.1"]));
    play.resolver.receive_stream(0, &[0; 4000], play.now());
    play.settle();
    assert_eq!((play.logged, play.closed), (vec!["short DNS response".to_owned()], vec![0]));
}
