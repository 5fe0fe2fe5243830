//! Request bodies: framing, window, refusal, and bodies that are not read.

use bolide_base::limits::BODY_WINDOW;
use bolide_http::BodyLen;

use super::{Bench, Pieces, head};
use crate::h1::{DRAIN_SIZE_MAX, H1Settings};
use crate::{Pull, WireEvent};

const CHUNKED: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
const NEXT: &[u8] = b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n";

fn post(length: u64) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").into_bytes()
}

/// The body content, and how the body ended, for a chunked request followed by `input`.
fn chunks(input: &[u8]) -> (Vec<u8>, Vec<&'static str>) {
    let mut bench = Bench::new();
    bench.request(CHUNKED);
    bench.receive(input);
    let mut content = Vec::new();
    for event in &bench.events {
        if let WireEvent::Body { user, bytes } = event {
            assert_eq!(*user, 7);
            content.extend_from_slice(bytes);
        }
    }
    let mut names = bench.event_names();
    names.retain(|name| *name != "body");
    (content, names)
}

#[test]
fn chunks_are_joined_and_trailers_are_dropped() {
    let rows: [(&[u8], &[u8]); 4] = [
        (b"3\r\nabc\r\n0\r\n\r\n", b"abc"),
        (b"1\r\na\r\n02 ; x=\"y z\"\r\nbc\r\n000\r\nX-T: 1\r\nY:\r\n\r\n", b"abc"),
        (b"A;e\r\n0123456789\r\nb\r\n0123456789a\r\n0\r\n\r\n", b"01234567890123456789a"),
        (b"0\r\n\r\n", b""),
    ];
    for (input, content) in rows {
        assert_eq!(chunks(input), (content.to_vec(), vec!["end"]), "{}", input.escape_ascii());
    }
}

#[test]
fn every_broken_chunk_is_refused() {
    let long = format!("1;{}\r\na\r\n", "x".repeat(1025)).into_bytes();
    let trailers = format!("0\r\n{}\r\n", "X: y\r\n".repeat(2000)).into_bytes();
    let rows: [&[u8]; 26] = [
        b"\r\n",
        b"g\r\n",
        b" 1\r\n",
        b"-1\r\n",
        b"+1\r\n",
        b"0x1\r\n",
        b"1\na\r\n",
        b"1\r\na\n",
        b"1\r\nab\r\n",
        b"1\r\r\n",
        b"1 1\r\n",
        b"1;a\nb\r\n",
        b"1;a\rb\r\n",
        b"1;a\0b\r\n",
        b"8000000000000000\r\n",
        b"ffffffffffffffffff\r\n",
        b"00000000000000001\r\n",
        b"0\r\nX\r\n",
        b"0\r\nX: 1\n\r\n",
        b"0\r\n X: 1\r\n",
        b"0\r\nX : 1\r\n",
        b"0\r\nX: \0\r\n",
        b"0\r\n\n",
        b"0\n\r\n",
        &long,
        &trailers,
    ];
    for input in rows {
        let (_, names) = chunks(input);
        assert_eq!(names, ["body refused"], "{}", input.escape_ascii());
    }
}

#[test]
fn a_refused_body_is_answered_once_and_the_connection_closes() {
    let mut bench = Bench::new();
    let (stream, _) = bench.request(CHUNKED);
    let input = [b"x", NEXT].concat();
    assert_eq!(bench.receive(&input), input.len());
    assert_eq!(bench.event_names(), ["body refused"]);
    assert!(bench.answer(stream, b"").contains("Connection: close"));
    assert!(bench.conn.is_closing() && bench.conn.needs_lingering());
    assert_eq!(bench.event_names(), ["sent"]);
}

#[test]
fn a_body_runs_ahead_of_its_reader_by_one_window_only() {
    let mut bench = Bench::new();
    let window = BODY_WINDOW as usize;
    let (stream, _) = bench.request(&post(window as u64 + 10));
    let body = vec![b'x'; window + 10];
    assert_eq!(bench.receive(&body), window);
    assert!(!bench.conn.wants_input());
    assert_eq!(bench.receive(&body[window..]), 0);
    bench.conn.body_consumed(stream, 4);
    assert!(bench.conn.wants_input());
    assert_eq!(bench.receive(&body[window..]), 4);
    bench.conn.body_consumed(stream, window);
    assert_eq!(bench.receive(&body[window + 4..]), 6);
    assert_eq!(bench.event_names(), ["body", "body", "body", "end"]);
}

#[test]
fn a_discarded_body_has_an_end_but_no_content_and_no_window() {
    let mut bench = Bench::new();
    let length = 3 * u64::from(BODY_WINDOW);
    let (stream, _) = bench.request(&post(length));
    bench.conn.discard_body(stream);
    assert_eq!(bench.receive(&vec![0; length as usize]), length as usize);
    assert_eq!(bench.event_names(), ["end"]);
    assert!(bench.answer(stream, b"ok").contains("Connection: keep-alive"));
    assert!(bench.conn.is_idle());
}

#[test]
fn a_small_unread_body_is_drained_and_the_connection_stays() {
    let mut bench = Bench::new();
    let (stream, _) = bench.request(&post(10));
    assert!(bench.answer(stream, b"early").contains("Connection: keep-alive"));
    assert!(bench.conn.wants_input() && !bench.conn.is_closing() && !bench.conn.is_idle());
    assert_eq!(bench.receive(b"01234"), 5);
    let input = [b"56789", NEXT].concat();
    assert_eq!(bench.receive(&input), input.len());
    assert_eq!(bench.event_names(), ["sent", "request"]);
}

#[test]
fn a_large_unread_body_costs_the_connection() {
    let mut bench = Bench::new();
    let (stream, _) = bench.request(&post(DRAIN_SIZE_MAX + 1));
    bench.conn.discard_body(stream);
    assert!(bench.answer(stream, b"").contains("Connection: close"));
    assert!(bench.conn.is_closing() && bench.conn.needs_lingering());

    let mut bench = Bench::new();
    let (stream, _) = bench.request(CHUNKED);
    assert!(bench.answer(stream, b"").contains("Connection: keep-alive"));
    let chunk = [b"10000\r\n", &[b'x'; 0x10000][..], b"\r\n"].concat();
    for turn in 0..=DRAIN_SIZE_MAX / 0x10000 - 1 {
        assert!(!bench.conn.is_closing(), "{turn}");
        bench.receive(&chunk);
    }
    assert!(bench.conn.is_closing() && bench.conn.needs_lingering());
}

#[test]
fn a_waiting_client_is_told_to_continue_and_one_that_does_not_wait_too() {
    let input = b"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n";
    let mut bench = Bench::new();
    let (stream, asked) = bench.request(input);
    assert!(asked.expects_continue);
    bench.conn.send_continue(stream);
    assert!(bench.conn.has_output());
    let continued = "HTTP/1.1 100 Continue\r\n\r\n";
    assert_eq!(bench.transmit(&mut Pieces::default()), continued);
    bench.receive(b"x");
    assert!(bench.answer(stream, b"").contains("Connection: keep-alive"));

    let mut bench = Bench::new();
    let (stream, _) = bench.request(&[&input[..], b"x"].concat());
    bench.receive(b"x");
    bench.conn.send_continue(stream);
    assert_eq!(bench.transmit(&mut Pieces::default()), continued);
    assert!(bench.answer(stream, b"").contains("Connection: keep-alive"));
    bench.conn.send_continue(stream);
    assert!(!bench.conn.has_output(), "the answer is over");

    // Without a body there is nothing to wait for, and nothing that makes the next bytes unclear.
    let mut bench = Bench::new();
    let (stream, asked) =
        bench.request(b"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n");
    assert!(asked.expects_continue);
    assert!(bench.answer(stream, b"").contains("Connection: keep-alive"));

    // A client that got no 100 may or may not send its body.
    let mut bench = Bench::new();
    let (stream, _) = bench.request(input);
    assert!(bench.answer(stream, b"").contains("Connection: close"));
    assert!(bench.conn.is_closing() && bench.conn.needs_lingering());
}

#[test]
fn other_expectations_and_those_of_old_clients_are_ignored() {
    for head in [
        "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\nContent-Length: 1\r\n\r\n",
        "PUT / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
    ] {
        let (_, head) = Bench::new().request(head.as_bytes());
        assert!(!head.expects_continue);
    }
}

#[test]
fn a_body_cut_by_the_end_of_input_resets_its_exchange() {
    let mut bench = Bench::new();
    let (stream, _) = bench.request(&post(10));
    bench.receive(b"01234");
    bench.conn.handle_eof(&mut bench.events);
    assert_eq!(bench.event_names(), ["body", "reset"]);
    assert!(bench.conn.is_closing() && !bench.conn.needs_lingering());
    assert!(bench.respond(stream, &head(200, BodyLen::Exact(0))).is_err());

    // The body is discarded: the response continues.
    let mut bench = Bench::with(H1Settings::default());
    let (stream, _) = bench.request(&post(10));
    bench.conn.discard_body(stream);
    bench.respond(stream, &head(413, BodyLen::Exact(4))).unwrap();
    bench.transmit(&mut Pieces(vec![(b"to", Pull::Pending)]));
    bench.conn.handle_eof(&mut bench.events);
    assert!(!bench.conn.is_closing());
    bench.conn.body_ready(stream);
    assert_eq!(bench.transmit(&mut Pieces(vec![(b"o!", Pull::End)])), "o!");
    assert!(bench.conn.is_closing() && !bench.conn.is_broken());
    assert_eq!(bench.event_names(), ["sent"]);
}

#[test]
fn a_body_that_waits_for_room_survives_the_end_of_input() {
    let mut bench = Bench::new();
    let window = BODY_WINDOW as usize;
    let (stream, _) = bench.request(&post(window as u64 + 1));
    let body = vec![b'x'; window + 1];
    bench.receive(&body);
    bench.conn.handle_eof(&mut bench.events);
    bench.conn.body_consumed(stream, window);
    assert_eq!(bench.receive(&body[window..]), 1);
    assert_eq!(bench.event_names(), ["body", "body", "end"]);
    assert!(bench.answer(stream, b"ok").ends_with("ok"));
    assert!(bench.conn.is_closing());
}
