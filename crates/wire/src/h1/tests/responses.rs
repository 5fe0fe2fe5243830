//! Encoded responses.

use bolide_base::chain::CopyPolicy;
use bolide_http::{BodyLen, Name};

use super::{Bench, Pieces, head};
use crate::Pull;

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const GET_10: &[u8] = b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
const GET_CLOSE: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const HEAD: &[u8] = b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn framing_fields_stand_where_nginx_puts_them() {
    let mut bench = Bench::new();
    let (stream, _) = bench.request(GET);
    let mut answer = head(200, BodyLen::Exact(5));
    answer.fields.push(Name::Server, b"bolide");
    answer.fields.push(Name::Date, b"now");
    answer.fields.push(Name::ContentType, b"text/plain");
    answer.fields.push(Name::LastModified, b"then");
    answer.fields.push(Name::Etag, b"\"e\"");
    answer.fields.push_text(b"x-lower", b"v");
    bench.respond(stream, &answer).unwrap();
    assert_eq!(
        bench.transmit(&mut Pieces(vec![(b"hello", Pull::End)])),
        "HTTP/1.1 200 OK\r\nServer: bolide\r\nDate: now\r\nContent-Type: text/plain\r\n\
         Content-Length: 5\r\nLast-Modified: then\r\nConnection: keep-alive\r\nETag: \"e\"\r\n\
         x-lower: v\r\n\r\nhello"
    );
    assert_eq!(bench.event_names(), ["sent"]);
    assert!(bench.conn.is_idle());
}

#[test]
fn an_offer_of_another_protocol_has_its_connection_option() {
    for (request, connection) in [(GET, "keep-alive, upgrade"), (GET_CLOSE, "close, upgrade")] {
        let mut bench = Bench::new();
        let (stream, _) = bench.request(request);
        let mut answer = head(426, BodyLen::Exact(0));
        answer.fields.push(Name::Upgrade, b"websocket");
        bench.respond(stream, &answer).unwrap();
        let sent = bench.transmit(&mut Pieces(vec![]));
        assert!(sent.contains("\r\nUpgrade: websocket\r\n"), "{sent}");
        assert!(sent.contains(&format!("\r\nConnection: {connection}\r\n")), "{sent}");
    }
}

#[test]
fn the_body_is_announced_as_version_method_and_status_demand() {
    use BodyLen::{Exact, None, Unknown};
    let keep = "Connection: keep-alive\r\n\r\n";
    let close = "Connection: close\r\n\r\n";
    let rows: [(&[u8], u16, BodyLen, String); 13] = [
        (GET, 299, Exact(0), format!("HTTP/1.1 299 \r\nContent-Length: 0\r\n{keep}")),
        (HEAD, 200, Exact(9), format!("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n{keep}")),
        (HEAD, 200, Unknown, format!("HTTP/1.1 200 OK\r\n{keep}")),
        (HEAD, 200, None, format!("HTTP/1.1 200 OK\r\n{keep}")),
        (GET, 204, None, format!("HTTP/1.1 204 No Content\r\n{keep}")),
        (GET, 204, Exact(3), format!("HTTP/1.1 204 No Content\r\n{keep}")),
        (GET, 304, Exact(3), format!("HTTP/1.1 304 Not Modified\r\n{keep}")),
        (GET, 304, Unknown, format!("HTTP/1.1 304 Not Modified\r\n{keep}")),
        (GET, 200, None, format!("HTTP/1.1 200 OK\r\n{close}")),
        (
            GET,
            101,
            None,
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\r\n".to_owned(),
        ),
        (GET_10, 200, Exact(0), format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{keep}")),
        (GET_10, 304, None, format!("HTTP/1.1 304 Not Modified\r\n{keep}")),
        (b"GET /\r\n", 200, Exact(0), String::new()),
    ];
    for (request, status, len, expected) in rows {
        let mut bench = Bench::new();
        let (stream, _) = bench.request(request);
        bench.respond(stream, &head(status, len)).unwrap();
        assert_eq!(bench.transmit(&mut Pieces::default()), expected);
        assert_eq!(bench.event_names(), ["sent"]);
        assert_eq!(bench.conn.is_closing(), !expected.contains("keep-alive"), "{expected}");
    }
}

#[test]
fn an_unknown_length_is_chunked_and_an_empty_pull_leaves_no_trace() {
    for weave in [CopyPolicy::Contiguous, CopyPolicy::Shared(4)] {
        let mut bench = Bench::new();
        let (stream, _) = bench.request(GET);
        bench.respond(stream, &head(200, BodyLen::Unknown)).unwrap();
        let mut pieces = Pieces(vec![(b"abc", Pull::More), (b"", Pull::Pending)]);
        let start = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\
                     Connection: keep-alive\r\n\r\n3\r\nabc\r\n";
        assert_eq!(bench.transmit_woven(weave, 4000, &mut pieces), start);
        assert!(!bench.conn.has_output());
        bench.conn.body_ready(stream);
        assert!(bench.conn.has_output());
        let mut pieces = Pieces(vec![(b"defghijklmnopqrs", Pull::End)]);
        let rest = "10\r\ndefghijklmnopqrs\r\n0\r\n\r\n";
        assert_eq!(bench.transmit_woven(weave, 40, &mut pieces), rest);
        assert_eq!(bench.event_names(), ["sent"]);
        assert!(bench.conn.is_idle());
    }
}

#[test]
fn an_unknown_length_for_an_old_client_ends_with_the_connection() {
    let mut bench = Bench::new();
    let (stream, _) = bench.request(GET_10);
    bench.respond(stream, &head(200, BodyLen::Unknown)).unwrap();
    let mut pieces = Pieces(vec![(b"abc", Pull::More), (b"def", Pull::End)]);
    let text = bench.transmit(&mut pieces);
    assert_eq!(text, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcdef");
    assert!(bench.conn.is_closing() && !bench.conn.is_broken() && !bench.conn.needs_lingering());
}

#[test]
fn the_oldest_clients_get_nothing_but_the_body() {
    let mut bench = Bench::new();
    let (stream, _) = bench.request(b"GET /x\n");
    assert_eq!(bench.answer(stream, b"body"), "body");
    assert!(bench.conn.is_closing());
}

#[test]
fn a_body_is_never_longer_than_announced_and_a_short_one_breaks_the_connection() {
    let mut bench = Bench::new();
    let (stream, _) = bench.request(GET);
    bench.respond(stream, &head(200, BodyLen::Exact(5))).unwrap();
    // The third piece is never asked for.
    let pieces = vec![(&b"abc"[..], Pull::More), (b"de", Pull::More), (b"f", Pull::End)];
    let mut pieces = Pieces(pieces);
    assert!(bench.transmit(&mut pieces).ends_with("\r\n\r\nabcde"));
    assert_eq!((pieces.0.len(), bench.event_names()), (1, vec!["sent"]));

    for (len, pull) in [
        (BodyLen::Exact(5), Pull::End),
        (BodyLen::Exact(5), Pull::Broken),
        (BodyLen::Exact(3), Pull::Broken),
        (BodyLen::Unknown, Pull::Broken),
    ] {
        let mut bench = Bench::new();
        let (stream, _) = bench.request(GET);
        bench.respond(stream, &head(200, len)).unwrap();
        let text = bench.transmit(&mut Pieces(vec![(b"abc", pull)]));
        assert!(!text.ends_with("0\r\n\r\n"));
        assert!(bench.conn.is_broken() && bench.conn.is_closing() && !bench.conn.has_output());
        assert_eq!(bench.event_names(), ["reset"]);
    }
}

#[test]
fn room_bounds_what_is_pulled() {
    let mut bench = Bench::new();
    let (stream, _) = bench.request(GET);
    bench.respond(stream, &head(200, BodyLen::Exact(6))).unwrap();
    let mut pieces = Pieces(vec![(b"abc", Pull::More), (b"def", Pull::End)]);
    assert!(bench.transmit_woven(CopyPolicy::Shared(1), 1, &mut pieces).ends_with("\r\n\r\n"));
    assert!(bench.conn.has_output());
    assert_eq!(bench.transmit_woven(CopyPolicy::Shared(1), 3, &mut pieces), "abc");
    assert_eq!(bench.transmit_woven(CopyPolicy::Shared(1), 3, &mut pieces), "def");
    assert!(bench.conn.is_idle());
}

#[test]
fn interim_heads_come_before_the_answer_and_not_to_old_clients() {
    let mut hints = head(103, BodyLen::None);
    hints.fields.push(Name::Link, b"</a>");
    let mut bench = Bench::new();
    let (stream, _) = bench.request(GET);
    bench.conn.announce(stream, &hints);
    let text = bench.transmit(&mut Pieces::default());
    assert_eq!(text, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    assert!(bench.answer(stream, b"x").starts_with("HTTP/1.1 200 OK\r\n"));
    let mut bench = Bench::new();
    let (stream, _) = bench.request(GET_10);
    bench.conn.announce(stream, &hints);
    assert!(!bench.conn.has_output());
    assert!(bench.answer(stream, b"x").starts_with("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn a_value_cannot_end_its_line() {
    let mut bench = Bench::new();
    let (stream, _) = bench.request(GET);
    let mut answer = head(302, BodyLen::Exact(0));
    answer.fields.push(Name::Location, b"/a\r\nSet-Cookie: x\0");
    bench.respond(stream, &answer).unwrap();
    assert_eq!(
        bench.transmit(&mut Pieces::default()),
        "HTTP/1.1 302 Moved Temporarily\r\nContent-Length: 0\r\nLocation: /a  Set-Cookie: x \r\n\
         Connection: keep-alive\r\n\r\n"
    );
}

#[test]
fn a_request_is_answered_once_and_only_while_it_lives() {
    let mut bench = Bench::new();
    let (stream, _) = bench.request(GET);
    let answer = head(200, BodyLen::Exact(0));
    bench.respond(stream, &answer).unwrap();
    assert!(bench.respond(stream, &answer).is_err());
    bench.transmit(&mut Pieces::default());
    assert!(bench.respond(stream, &answer).is_err());
}
