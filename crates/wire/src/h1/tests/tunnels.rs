//! Responses with 101, which switch the connection to another protocol.

use bolide_base::limits::BODY_WINDOW;
use bolide_http::{BodyLen, Name, ResponseHead};

use super::{Bench, Pieces, head};
use crate::{Pull, WireEvent};

const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
const SWITCHED: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";

fn switch() -> ResponseHead {
    let mut head = head(101, BodyLen::Unknown);
    head.fields.push(Name::Connection, b"Upgrade");
    head.fields.push(Name::Upgrade, b"echo");
    head
}

/// A connection whose request got a 101; no byte came since.
fn switched(request: &[u8]) -> (Bench, crate::StreamId) {
    let mut bench = Bench::new();
    let (stream, _) = bench.request(request);
    bench.respond(stream, &switch()).unwrap();
    assert_eq!(bench.transmit(&mut Pieces(vec![(b"", Pull::Pending)])), SWITCHED);
    assert!(bench.conn.is_tunnel() && !bench.conn.has_output());
    (bench, stream)
}

/// Takes the bytes of body events; any other event fails.
fn heard(bench: &mut Bench) -> Vec<u8> {
    let mut all = Vec::new();
    for event in bench.events.drain(..) {
        match event {
            WireEvent::Body { user: 7, bytes } => all.extend_from_slice(&bytes),
            other => panic!("not a body: {other:?}"),
        }
    }
    all
}

#[test]
fn both_sides_speak_raw_until_the_answer_ends() {
    let (mut bench, stream) = switched(ASK);
    assert_eq!(bench.receive(b"GET / HTTP/1.1\r\n\r\n"), 18);
    assert_eq!(heard(&mut bench), b"GET / HTTP/1.1\r\n\r\n");
    bench.conn.body_ready(stream);
    assert_eq!(
        bench.transmit(&mut Pieces(vec![(b"\0raw", Pull::More), (b"", Pull::Pending)])),
        "\0raw"
    );
    bench.conn.body_ready(stream);
    assert!(!bench.conn.is_closing());
    assert_eq!(bench.transmit(&mut Pieces(vec![(b"last", Pull::End)])), "last");
    assert_eq!(bench.event_names(), ["sent"]);
    assert!(bench.conn.is_closing() && !bench.conn.is_broken() && !bench.conn.is_tunnel());
    assert!(bench.conn.needs_lingering(), "the client may be speaking");
    assert_eq!(bench.receive(b"more"), 4);
    assert_eq!(bench.event_names(), [""; 0]);
}

#[test]
fn what_came_with_the_request_is_said_in_the_tunnel() {
    let mut bench = Bench::new();
    let early = [ASK, b"early"].concat();
    assert_eq!(bench.receive(&early), ASK.len());
    let Some(WireEvent::Request { stream, .. }) = bench.events.pop() else { panic!("no request") };
    bench.conn.bind(stream, 7);
    assert_eq!(bench.receive(b"early"), 0, "nothing is taken before the answer");
    assert!(!bench.conn.wants_input());
    bench.respond(stream, &switch()).unwrap();
    bench.transmit(&mut Pieces(vec![(b"", Pull::Pending)]));
    assert!(bench.conn.wants_input());
    assert_eq!(bench.receive(b"early"), 5);
    assert_eq!(heard(&mut bench), b"early");
}

#[test]
fn the_end_of_the_client_is_told_and_the_answer_goes_on() {
    let (mut bench, stream) = switched(ASK);
    bench.conn.handle_eof(&mut bench.events);
    assert_eq!(bench.event_names(), ["end"]);
    assert!(!bench.conn.is_closing() && !bench.conn.wants_input() && bench.conn.is_tunnel());
    bench.conn.body_ready(stream);
    assert_eq!(bench.transmit(&mut Pieces(vec![(b"bye", Pull::End)])), "bye");
    assert_eq!(bench.event_names(), ["sent"]);
    assert!(bench.conn.is_closing() && !bench.conn.needs_lingering());
}

#[test]
fn an_end_before_the_switch_is_told_behind_it() {
    let mut bench = Bench::new();
    let (stream, _) = bench.request(ASK);
    bench.conn.handle_eof(&mut bench.events);
    assert_eq!(bench.event_names(), [""; 0]);
    bench.respond(stream, &switch()).unwrap();
    bench.transmit(&mut Pieces(vec![(b"", Pull::Pending)]));
    assert_eq!(bench.event_names(), ["end"]);
}

#[test]
fn no_more_is_taken_than_there_is_room_for() {
    let (mut bench, stream) = switched(ASK);
    let window = BODY_WINDOW as usize;
    let bytes = vec![b'x'; window + 10];
    assert_eq!(bench.receive(&bytes), window);
    assert!(!bench.conn.wants_input());
    assert_eq!(heard(&mut bench).len(), window);
    bench.conn.body_consumed(stream, 3);
    assert_eq!(bench.receive(&bytes[window..]), 3);
}

#[test]
fn a_request_with_a_body_switches_behind_it() {
    let post = b"POST / HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\nContent-Length: 2\r\n\r\n";
    let mut bench = Bench::new();
    let (stream, _) = bench.request(post);
    bench.receive(b"hiraw");
    assert_eq!(bench.event_names(), ["body", "end"]);
    bench.respond(stream, &switch()).unwrap();
    bench.transmit(&mut Pieces(vec![(b"", Pull::Pending)]));
    bench.receive(b"raw");
    assert_eq!(heard(&mut bench), b"raw");
}

#[test]
fn within_a_request_or_without_a_head_no_protocol_is_switched() {
    let post = b"POST / HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\nContent-Length: 2\r\n\r\n";
    for (request, sent) in [(&post[..], SWITCHED), (b"GET /\r\n", "")] {
        let mut bench = Bench::new();
        let (stream, _) = bench.request(request);
        bench.respond(stream, &switch()).unwrap();
        assert_eq!(bench.transmit(&mut Pieces::default()), sent);
        assert!(!bench.conn.is_tunnel() && bench.conn.is_closing());
    }
}

#[test]
fn a_tunnel_that_breaks_resets_the_connection() {
    let (mut bench, stream) = switched(ASK);
    bench.conn.body_ready(stream);
    bench.transmit(&mut Pieces(vec![(b"", Pull::Broken)]));
    assert_eq!(bench.event_names(), ["reset"]);
    assert!(bench.conn.is_broken());
}

#[test]
fn discarded_bytes_of_a_switched_stream_are_dropped_until_its_end() {
    let (mut bench, stream) = switched(ASK);
    bench.conn.discard_body(stream);
    let bytes = vec![b'x'; BODY_WINDOW as usize + 10];
    assert_eq!(bench.receive(&bytes), bytes.len());
    assert_eq!(bench.event_names(), [""; 0]);
    bench.conn.handle_eof(&mut bench.events);
    assert_eq!(bench.event_names(), ["end"]);
}
