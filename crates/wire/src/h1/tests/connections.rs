//! The life of a connection between and around requests.

use bolide_http::BodyLen;

use super::{Bench, Pieces, head};
use crate::h1::{H1Conn, H1Settings};
use crate::{Pull, WireEvent};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn a_fresh_connection_is_idle_and_holds_nothing() {
    let conn = H1Conn::new();
    assert!(conn.is_idle() && conn.wants_input() && !conn.has_output() && !conn.is_closing());
    assert_eq!((conn.requests(), conn.output.capacity()), (0, 0));
}

#[test]
fn pipelined_requests_are_answered_in_order_and_one_at_a_time() {
    let mut kept: Vec<u8> = (1..=3)
        .flat_map(|n| format!("GET /{n} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes())
        .collect();
    let mut bench = Bench::new();
    for n in 1..=3 {
        let used = bench.receive(&kept);
        kept.drain(..used);
        assert_eq!(bench.receive(&kept), 0);
        assert_eq!(bench.conn.wants_input(), n == 3);
        let Some(WireEvent::Request { stream, head }) = bench.events.pop() else { panic!("none") };
        assert_eq!(head.target, format!("/{n}").into_bytes());
        assert!(bench.answer(stream, b"ok").starts_with("HTTP/1.1 200 OK\r\n"));
        bench.events.clear();
    }
    assert!(kept.is_empty() && bench.conn.is_idle());
    assert_eq!(bench.conn.requests(), 3);
}

#[test]
fn an_answer_says_that_it_is_the_last_one_when_the_server_drains() {
    for before_the_request in [true, false] {
        let mut bench = Bench::new();
        if before_the_request {
            bench.conn.shutdown();
        }
        let (stream, _) = bench.request(GET);
        if !before_the_request {
            bench.conn.shutdown();
        }
        assert!(bench.answer(stream, b"x").contains("Connection: close\r\n"));
        assert!(bench.conn.is_closing());
    }
}

#[test]
fn connections_stay_or_close_as_both_sides_wish() {
    let rows = [
        ("HTTP/1.1\r\nHost: a", true),
        ("HTTP/1.1\r\nHost: a\r\nConnection: close", false),
        ("HTTP/1.1\r\nHost: a\r\nConnection: x, CLOSE", false),
        ("HTTP/1.1\r\nHost: a\r\nConnection: x\r\nConnection: close ", false),
        ("HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, close", false),
        ("HTTP/1.1\r\nHost: a\r\nConnection: closed", true),
        ("HTTP/1.0", false),
        ("HTTP/1.0\r\nConnection: Keep-Alive", true),
        ("HTTP/1.0\r\nConnection: keep-alive, close", false),
    ];
    for (rest, stays) in rows {
        let mut bench = Bench::new();
        let (stream, _) = bench.request(format!("GET / {rest}\r\n\r\n").as_bytes());
        let text = bench.answer(stream, b"x");
        assert_eq!(text.contains("Connection: keep-alive\r\n"), stays, "{rest:?}");
        assert_eq!(text.contains("Connection: close\r\n"), !stays, "{rest:?}");
        assert_eq!((bench.conn.is_idle(), bench.conn.is_closing()), (stays, !stays), "{rest:?}");
        assert!(!bench.conn.needs_lingering());
    }
    let mut bench = Bench::new();
    let (stream, _) = bench.request(GET);
    let mut answer = head(400, BodyLen::Exact(0));
    answer.close = true;
    bench.respond(stream, &answer).unwrap();
    assert!(bench.transmit(&mut Pieces::default()).contains("Connection: close\r\n"));
    assert!(bench.conn.is_closing());
}

#[test]
fn a_connection_closes_after_its_last_request_and_lingers_over_pipelined_ones() {
    let mut bench = Bench::with(H1Settings { keepalive_requests: 2, ..H1Settings::default() });
    let (stream, _) = bench.request(GET);
    assert!(bench.answer(stream, b"").contains("keep-alive"));
    let (stream, _) = bench.request(&[GET, GET].concat());
    assert_eq!(bench.receive(GET), 0);
    assert!(bench.answer(stream, b"").contains("close"));
    assert!(bench.conn.is_closing() && bench.conn.needs_lingering());
    bench.events.clear();
    assert_eq!(bench.receive(GET), GET.len());
    assert!(bench.events.is_empty());
}

#[test]
fn what_came_before_the_end_of_input_is_still_answered() {
    let mut bench = Bench::new();
    let mut kept = [GET, GET, b"GET / HT"].concat();
    for n in 0..2 {
        let used = bench.receive(&kept);
        kept.drain(..used);
        if n == 0 {
            bench.conn.handle_eof(&mut bench.events);
        }
        let Some(WireEvent::Request { stream, .. }) = bench.events.pop() else { panic!("none") };
        assert!(bench.answer(stream, b"ok").contains("keep-alive"));
        assert!(!bench.conn.is_closing());
        bench.events.clear();
    }
    bench.receive(&kept);
    assert!(bench.conn.is_closing() && bench.events.is_empty());
}

#[test]
fn the_end_of_input_closes_an_idle_connection_and_one_within_a_head() {
    for input in [&b""[..], b"\r", b"GET", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost"] {
        let mut bench = Bench::new();
        bench.receive(input);
        bench.conn.handle_eof(&mut bench.events);
        assert!(bench.conn.is_closing() && bench.events.is_empty());
        assert!(!bench.conn.needs_lingering() && !bench.conn.wants_input());
    }
}

#[test]
fn a_half_closed_client_gets_its_answer_and_the_end() {
    let mut bench = Bench::new();
    let (stream, _) = bench.request(GET);
    bench.conn.handle_eof(&mut bench.events);
    assert!(!bench.conn.is_closing());
    assert!(bench.answer(stream, b"ok").contains("Connection: close"));
    assert!(bench.conn.is_closing());
}

#[test]
fn a_connection_within_a_head_is_not_idle() {
    let mut bench = Bench::new();
    assert_eq!(bench.receive(b"GET /"), 0);
    assert!(!bench.conn.is_idle());
    assert_eq!(bench.receive(b"GET / HTTP/1.1\r\nHo"), 16);
    assert!(!bench.conn.is_idle() && bench.conn.wants_input());
}

#[test]
fn the_head_buffer_is_used_again_unless_it_grew() {
    let mut bench = Bench::new();
    let (stream, _) = bench.request(GET);
    bench.answer(stream, b"ok");
    let buffer = bench.conn.output.as_ptr();
    bench.events.clear();
    let (stream, _) = bench.request(GET);
    bench.answer(stream, b"ok");
    assert_eq!(bench.conn.output.as_ptr(), buffer);
    bench.events.clear();
    let (stream, _) = bench.request(GET);
    let mut answer = head(200, BodyLen::Exact(0));
    answer.fields.push_text(b"X-Large", &[b'x'; 4000]);
    bench.respond(stream, &answer).unwrap();
    bench.transmit(&mut Pieces(vec![(b"", Pull::End)]));
    assert_eq!(bench.conn.output.capacity(), 0);
}

#[test]
fn a_head_that_a_client_leaves_within_is_refused_once() {
    for (bytes, is_reset, line) in [
        (&b"GET /a HTTP/1.1\r\nHo"[..], false, &b"GET /a HTTP/1.1"[..]),
        (b"GET /a HTTP/1.1\r\nHost: a\r\n", true, b"GET /a HTTP/1.1"),
        (b"GE", false, b"GE"),
        (b"\r\n\r\nGET /\r", false, b"GET /"),
        (b"\r\n", true, b""),
    ] {
        let mut bench = Bench::new();
        bench.receive(bytes);
        for times in [1, 1] {
            let rest = bytes.strip_prefix(b"\r\n\r\n").unwrap_or(bytes);
            bench.conn.handle_departure(is_reset, rest, &mut bench.heads, &mut bench.events);
            assert_eq!(bench.events.len(), times);
        }
        let Some(WireEvent::Refused { head, refusal, .. }) = bench.events.pop() else {
            panic!("not refused")
        };
        assert_eq!((refusal.status, &head.line[..]), (499, line));
        assert_eq!(refusal.reason.starts_with("recv()"), is_reset);
    }
    let mut bench = Bench::new();
    bench.request(GET);
    bench.conn.handle_departure(false, b"", &mut bench.heads, &mut bench.events);
    assert!(bench.events.is_empty(), "a whole head is no concern of it");
}
