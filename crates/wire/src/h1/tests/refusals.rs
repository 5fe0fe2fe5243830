//! Refused requests, with status and reason.

use super::{Bench, refusal_of};
use crate::WireEvent;
use crate::h1::H1Settings;

/// Refusals of lines behind a valid request line and `Host`.
const FIELD_ROWS: &[(&str, u16, &str)] = &[
    ("Content-Length: 1\r\nTransfer-Encoding: chunked", 400, "at the same time"),
    ("Transfer-Encoding: chunked\r\nContent-Length: 1", 400, "at the same time"),
    ("Transfer-Encoding: chunked\r\nContent-Length: 0", 400, "at the same time"),
    ("Transfer-Encoding: xchunked\r\nContent-Length: 1", 501, "unknown \"Transfer-Encoding\""),
    ("Content-Length: 1\r\nContent-Length: 1", 400, "duplicate header line"),
    ("Content-Length: 1\r\nContent-Length: 2", 400, "duplicate header line"),
    ("Content-Length: 1, 1", 400, "invalid \"Content-Length\""),
    ("Content-Length: +1", 400, "invalid \"Content-Length\""),
    ("Content-Length: -1", 400, "invalid \"Content-Length\""),
    ("Content-Length: 0x1", 400, "invalid \"Content-Length\""),
    ("Content-Length:", 400, "invalid \"Content-Length\""),
    ("Content-Length: 1 1", 400, "invalid \"Content-Length\""),
    ("Content-Length: 9223372036854775808", 400, "invalid \"Content-Length\""),
    ("Content-Length: 99999999999999999999", 400, "invalid \"Content-Length\""),
    ("Transfer-Encoding: gzip, chunked", 501, "unknown \"Transfer-Encoding\""),
    ("Transfer-Encoding: chunked, identity", 501, "unknown \"Transfer-Encoding\""),
    ("Transfer-Encoding: identity", 501, "unknown \"Transfer-Encoding\""),
    ("Transfer-Encoding:", 501, "unknown \"Transfer-Encoding\""),
    ("Transfer-Encoding: \"chunked\"", 501, "unknown \"Transfer-Encoding\""),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400, "duplicate header line"),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: x", 400, "duplicate header line"),
    ("Transfer-Encoding : chunked", 400, "invalid header line"),
    ("Transfer-Encoding:\x0bchunked", 501, "unknown \"Transfer-Encoding\""),
    ("Transfer-Encoding\x0b: chunked", 400, "invalid header line"),
    ("Content-Length : 1", 400, "invalid header line"),
    ("X: 1\r\n folded: 2", 400, "invalid header line"),
    ("X: 1\r\n\tfolded", 400, "invalid header line"),
    ("X: a\rb", 400, "invalid header line"),
    ("X: a\r\rb", 400, "invalid header line"),
    ("X: a\0b", 400, "invalid header line"),
    ("no colon", 400, "invalid header line"),
    ("nocolon", 400, "invalid header line"),
    (": empty", 400, "invalid header line"),
    ("X y: 1", 400, "invalid header line"),
    ("Host: b", 400, "duplicate host"),
    ("Host: a", 400, "duplicate host"),
    ("If-Modified-Since: a\r\nIf-Modified-Since: a", 400, "duplicate header line"),
    ("Authorization: a\r\nAuthorization: b", 400, "duplicate header line"),
];

#[test]
fn every_ambiguous_field_is_refused() {
    for (fields, status, words) in FIELD_ROWS {
        let input = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
        let refusal = refusal_of(&H1Settings::default(), input.as_bytes());
        let refusal = refusal.unwrap_or_else(|| panic!("{fields:?} was accepted"));
        assert_eq!(refusal.status, *status, "{fields:?}");
        assert!(refusal.reason.contains(words), "{fields:?}: {}", refusal.reason);
    }
}

#[test]
fn every_broken_first_line_is_refused() {
    let rows: &[(&str, u16, &str)] = &[
        ("get / HTTP/1.1", 400, "client sent invalid method"),
        ("GEt / HTTP/1.1", 400, "client sent invalid method"),
        (" GET / HTTP/1.1", 400, "client sent invalid method"),
        ("GET", 400, "client sent invalid method"),
        ("\u{16}\u{3}\u{1}", 400, "client sent invalid method"),
        ("GET  / HTTP/1.1", 400, "client sent invalid request"),
        ("GET /  HTTP/1.1", 400, "client sent invalid request"),
        ("GET / HTTP/1.1 ", 400, "client sent invalid request"),
        ("GET /a b HTTP/1.1", 400, "client sent invalid request"),
        ("GET /a\tb HTTP/1.1", 400, "client sent invalid request"),
        ("GET /a\rb HTTP/1.1", 400, "client sent invalid request"),
        ("GET /a\0 HTTP/1.1", 400, "client sent invalid request"),
        ("GET x HTTP/1.1", 400, "client sent invalid request"),
        ("GET * HTTP/1.1", 400, "client sent invalid request"),
        ("GET ftp://a/ HTTP/1.1", 400, "client sent invalid request"),
        ("GET http:/a/ HTTP/1.1", 400, "client sent invalid request"),
        ("GET / http/1.1", 400, "client sent invalid request"),
        ("GET / HTTP/0.9", 400, "client sent invalid request"),
        ("GET / HTTP/1", 400, "client sent invalid request"),
        ("GET / HTTP/1.", 400, "client sent invalid request"),
        ("GET / HTTP/1.1x", 400, "client sent invalid request"),
        ("GET / HTTP/1.123", 400, "client sent invalid request"),
        ("GET http:/// HTTP/1.1", 400, "client sent invalid host in request line"),
        ("GET http://a@b/ HTTP/1.1", 400, "client sent invalid request"),
        ("POST /", 400, "client sent invalid method in HTTP/0.9 request"),
        ("GET / HTTP/2.5", 505, "client sent invalid version"),
        ("GET / HTTP/2", 505, "client sent invalid version"),
        ("GET / HTTP/11.1", 505, "client sent invalid version"),
        ("CONNECT a:443 HTTP/1.1", 405, "client sent CONNECT method"),
        ("TRACE / HTTP/1.1", 405, "client sent TRACE method"),
    ];
    for (line, status, words) in rows {
        let input = format!("{line}\r\nHost: a\r\n\r\n");
        let refusal = refusal_of(&H1Settings::default(), input.as_bytes());
        let refusal = refusal.unwrap_or_else(|| panic!("{line:?} was accepted"));
        assert_eq!((refusal.status, refusal.reason), (*status, *words), "{line:?}");
    }
}

#[test]
fn the_host_of_a_modern_request_must_be_there_and_be_one() {
    let rows = [
        ("HTTP/1.1\r\n\r\n", "client sent HTTP/1.1 request without \"Host\" header"),
        ("HTTP/1.1\r\nHost:\r\n\r\n", "client sent invalid host header"),
        ("HTTP/1.1\r\nHost: a/b\r\n\r\n", "client sent invalid host header"),
        ("HTTP/1.1\r\nHost: a b\r\n\r\n", "client sent invalid host header"),
        ("HTTP/1.0\r\nHost: a..b\r\n\r\n", "client sent invalid host header"),
        (
            "HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            "client sent HTTP/1.0 request with \"Transfer-Encoding\" header",
        ),
    ];
    for (rest, words) in rows {
        for target in ["/", "http://a/"] {
            let input = format!("GET {target} {rest}");
            let refusal = refusal_of(&H1Settings::default(), input.as_bytes());
            assert_eq!(refusal.map(|r| (r.status, r.reason)), Some((400, words)), "{input:?}");
        }
    }
}

#[test]
fn lines_and_heads_have_limits() {
    let settings = H1Settings::default();
    let line = |size: usize| format!("GET /{} HTTP/1.1\r\n", "a".repeat(size - 16));
    let field = |size: usize| format!("X: {}\r\n", "b".repeat(size - 5));
    let status = |input: String| refusal_of(&settings, input.as_bytes()).map(|r| r.status);
    assert_eq!(status(format!("{}Host: a\r\n\r\n", line(8192))), None);
    assert_eq!(status(line(8193)), Some(414));
    assert_eq!(status(format!("GET /{}", "a".repeat(8187))), Some(414));
    assert_eq!(status(format!("GET /{}", "a".repeat(8186))), None);
    let start = "GET / HTTP/1.1\r\nHost: a\r\n";
    assert_eq!(status(format!("{start}{}\r\n", field(8192))), None);
    assert_eq!(status(format!("{start}{}", field(8193))), Some(494));
    let three = format!("{start}{}{}{}", field(8192), field(8192), field(8192));
    // A line must fit in one buffer, and the empty line is a line, too.
    assert_eq!(status(format!("{three}{}\r\n", field(8190))), None);
    assert_eq!(status(format!("{start}X: y\r\n{}\r\n", &three[start.len()..])), None);
    let reason = refusal_of(&settings, format!("{three}{}\r\n", field(8191)).as_bytes());
    assert_eq!(reason.map(|r| r.reason), Some("client sent too large request"));
    assert_eq!(status(format!("{start}{}\r\n", "A: b\r\n".repeat(999))), None);
    assert_eq!(status(format!("{start}{}\r\n", "A: b\r\n".repeat(1000))), Some(494));
    assert_eq!(status("\r\n".repeat(33 * 512)), None);
    assert_eq!(status("\r\n".repeat(33 * 512 + 1)), Some(400));
}

#[test]
fn what_the_rest_of_a_head_is_held_to_depends_on_its_host_where_that_is_asked() {
    let settings = H1Settings { asks_host: true, ..H1Settings::default() };
    let strict = H1Settings { fields_max: 1, ..H1Settings::default() };
    for (head, host) in
        [("GET / HTTP/1.1\r\nX: y\r\nHost: a:80\r\n", "a:80"), ("GET http://b/ HTTP/1.0\r\n", "b")]
    {
        let mut bench = Bench::with(settings.clone());
        let rest = "Y: z\r\n\r\n";
        let all = format!("{head}{rest}");
        assert_eq!(bench.receive(all.as_bytes()), head.len());
        assert!(bench.events.is_empty());
        assert_eq!(bench.conn.take_host(), Some(host.as_bytes()));
        assert_eq!(bench.conn.take_host(), None);
        bench.settings = strict.clone();
        assert_eq!(bench.receive(rest.as_bytes()), rest.len());
        let is_refused = matches!(bench.events.pop(), Some(WireEvent::Refused { .. }));
        assert_eq!(is_refused, head.contains("Host"), "{head}");
    }
}

#[test]
fn garbage_is_refused_before_its_line_ends_and_the_rest_is_thrown_away() {
    let mut bench = Bench::new();
    assert_eq!(bench.receive(b"\x16\x03\x01\x02"), 4);
    let Some(WireEvent::Refused { stream, head, refusal }) = bench.events.pop() else {
        panic!("not refused")
    };
    assert_eq!((refusal.status, &head.line[..]), (400, &b"\x16\x03\x01\x02"[..]));
    assert!(!bench.conn.wants_input() && !bench.conn.is_closing());
    assert_eq!(bench.receive(b"more"), 4);
    let answer = bench.answer(stream, b"no");
    assert!(answer.contains("\r\nConnection: close\r\n") && answer.ends_with("\r\n\r\nno"));
    assert!(bench.conn.is_closing() && bench.conn.needs_lingering() && !bench.conn.is_broken());
    assert_eq!(bench.receive(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 27);
    assert_eq!(bench.event_names(), ["sent"]);
}
