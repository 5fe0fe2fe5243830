//! Accepted requests, and their heads.

use bolide_http::{HttpVersion, Method, Name, RequestBody};

use super::{Bench, refusal_of};
use crate::h1::H1Settings;

#[test]
fn a_request_head_arrives_as_it_was_sent_without_its_coding() {
    let mut bench = Bench::new();
    let input = b"POST /a%20b?c=d HTTP/1.1\r\nHost: Example.com:8080\r\nX-One: \t1 \r\n\
        content-length: 3\r\nTE: trailers\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\n\
        Connection: Upgrade\r\nUpgrade: websocket\r\nX-Empty:\r\n\r\n";
    let (_, head) = bench.request(input);
    assert_eq!((head.method, &head.method_text[..]), (Method::Post, &b"POST"[..]));
    assert_eq!(head.version, HttpVersion::Http11);
    assert_eq!(head.target, b"/a%20b?c=d");
    assert_eq!(head.authority, b"Example.com:8080");
    assert_eq!(head.line, b"POST /a%20b?c=d HTTP/1.1");
    assert_eq!(head.body, RequestBody::Length(3));
    assert_eq!(head.wire_size as usize, input.len());
    let fields: Vec<_> = head.fields.iter().map(|field| (field.text, field.value)).collect();
    let expected: [(&[u8], &[u8]); 9] = [
        (b"Host", b"Example.com:8080"),
        (b"X-One", b"1"),
        (b"Content-Length", b"3"),
        (b"TE", b"trailers"),
        (b"Keep-Alive", b"5"),
        (b"Proxy-Connection", b"x"),
        (b"Connection", b"Upgrade"),
        (b"Upgrade", b"websocket"),
        (b"X-Empty", b""),
    ];
    assert_eq!(fields, expected);
}

#[test]
fn bare_line_feeds_end_lines_and_empty_lines_before_a_request_are_skipped() {
    let mut bench = Bench::new();
    let (_, head) = bench.request(b"\r\n\n\r\nGET / HTTP/1.1\nHost: a\n\n");
    assert_eq!((&head.line[..], &head.authority[..]), (&b"GET / HTTP/1.1"[..], &b"a"[..]));
    assert_eq!(head.wire_size as usize, b"GET / HTTP/1.1\nHost: a\n\n".len());
}

#[test]
fn targets_of_every_form_become_origin_form() {
    let rows: [(&str, &str, &str); 8] = [
        ("GET http://h.example/p?q HTTP/1.1", "/p?q", "h.example"),
        ("GET HTTPS://h:1 HTTP/1.1", "/", "h:1"),
        ("GET http://h?q=/ HTTP/1.1", "/?q=/", "h"),
        ("OPTIONS * HTTP/1.1", "*", "field"),
        ("GET //x HTTP/1.1", "//x", "field"),
        ("GET /\u{e4}#f HTTP/1.1", "/\u{e4}#f", "field"),
        ("M-SEARCH /x HTTP/1.9", "/x", "field"),
        ("FOO_BAR /x HTTP/1.2", "/x", "field"),
    ];
    for (line, target, authority) in rows {
        let (_, head) = Bench::new().request(format!("{line}\r\nHost: field\r\n\r\n").as_bytes());
        assert_eq!(head.target, target.as_bytes(), "{line}");
        assert_eq!(head.authority, authority.as_bytes(), "{line}");
        assert_eq!(head.fields.get(Name::Host), Some(&b"field"[..]), "{line}");
        assert_eq!(head.version, HttpVersion::Http11, "{line}");
    }
    let (_, head) = Bench::new().request(b"M-SEARCH / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((head.method, &head.method_text[..]), (Method::Other, &b"M-SEARCH"[..]));
}

#[test]
fn old_requests_need_no_host() {
    let (_, head) = Bench::new().request(b"GET / HTTP/1.0\r\n\r\n");
    assert_eq!((head.version, &head.authority[..]), (HttpVersion::Http10, &b""[..]));
    let empty = refusal_of(&H1Settings::default(), b"GET / HTTP/1.0\r\nHost:\r\n\r\n");
    assert_eq!(empty.map(|refusal| refusal.status), Some(400));
    let (_, head) = Bench::new().request(b"GET /x\r\n");
    assert_eq!((head.version, &head.target[..]), (HttpVersion::Http09, &b"/x"[..]));
    let (_, head) = Bench::new().request(b"GET http://a/\r\n");
    assert_eq!((head.version, &head.authority[..]), (HttpVersion::Http09, &b"a"[..]));
    let bare = refusal_of(&H1Settings::default(), b"GET http://a\r\n");
    assert_eq!(bare.map(|refusal| refusal.status), Some(400));
}

#[test]
fn fields_with_unusual_names_are_dropped_or_taken_as_the_settings_say() {
    let input = b"GET / HTTP/1.1\r\nHost: a\r\na_b: 1\r\na.b: 2\r\n\r\n";
    let names = |settings: H1Settings| {
        let (_, head) = Bench::with(settings).request(input);
        head.fields.iter().skip(1).map(|field| field.text.to_vec()).collect::<Vec<_>>()
    };
    let lenient = H1Settings { ignore_invalid_headers: false, ..H1Settings::default() };
    let underscored = H1Settings { underscores_in_headers: true, ..H1Settings::default() };
    assert!(names(H1Settings::default()).is_empty());
    assert_eq!(names(underscored), [b"a_b"]);
    assert_eq!(names(lenient.clone()), [b"a_b", b"a.b"]);
    let foreign = b"GET / HTTP/1.1\r\nHost: a\r\na(b: 1\r\n\r\n";
    for settings in [H1Settings::default(), lenient] {
        assert_eq!(refusal_of(&settings, foreign).map(|refusal| refusal.status), Some(400));
    }
}

#[test]
fn heads_are_taken_from_the_pool() {
    let mut bench = Bench::new();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (stream, head) = bench.request(b"GET / HTTP/1.1\r\nHost: a\r\nX-Y: z\r\n\r\n");
        seen.push((&raw const *head, head.line.as_ptr()));
        bench.heads.put(head);
        bench.answer(stream, b"ok");
        bench.events.clear();
        seen.push((seen[0].0, seen[0].1));
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn no_byte_of_an_unfinished_line_is_searched_twice() {
    let mut bench = Bench::new();
    assert_eq!(bench.receive(b"GET / HTTP/1.1\r\nHost: a\r\nX-Long: 0123"), 25);
    // The parser does not scan bytes again that it has seen, so it misses a line end among them.
    assert_eq!(bench.receive(b"X-Long:\n0123456"), 0);
    assert_eq!(bench.receive(b"X-Long: 0123456789\r\n\r\n"), 22);
    assert_eq!(bench.event_names(), ["request"]);
}
