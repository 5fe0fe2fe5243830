//! Field blocks become heads, refusals or stream errors.

use bolide_http::{Method, RequestBody};

use super::super::code::PROTOCOL_ERROR;
use super::{Bench, END, GET, H2Settings, POST, block, data, frame, get, headers, with};

#[test]
fn a_head_is_what_nginx_would_make_of_it() {
    let mut bench = Bench::new();
    let fields = with(
        &[(":method", "GET"), (":path", "/a?b"), (":scheme", "https"), (":authority", "x:1")],
        &[
            ("cookie", "a=1"),
            ("accept", "*/*"),
            ("x_dropped", "1"),
            ("x!dropped", "1"),
            ("x-kept", "1"),
            ("cookie", "b=2"),
            ("te", "trailers"),
        ],
    );
    bench.send(&headers(1, END, &fields));
    assert_eq!(bench.events(), ["request 1 GET /a?b HTTP/2.0"]);
    assert_eq!(
        bench.fields(),
        ["Host: x:1", "Accept: */*", "x-kept: 1", "TE: trailers", "Cookie: a=1; b=2"]
    );
    let head = bench.head();
    assert_eq!((head.method, &head.method_text[..]), (Method::Get, &b"GET"[..]));
    assert_eq!((&head.target[..], &head.authority[..]), (&b"/a?b"[..], &b"x:1"[..]));
    assert_eq!((head.version, head.body), (bolide_http::HttpVersion::Http2, RequestBody::None));
    assert_eq!(head.wire_size as usize, fields.len());
    let settings = H2Settings { underscores_in_headers: true, ..H2Settings::default() };
    let mut bench = Bench::open(settings);
    bench.send(&headers(1, END, &with(&GET, &[("x_kept", "1"), ("x!", "1")])));
    assert_eq!(bench.fields(), ["Host: a", "x_kept: 1"]);
    let settings = H2Settings { ignore_invalid_headers: false, ..H2Settings::default() };
    let mut bench = Bench::open(settings);
    bench.send(&headers(1, END, &with(&GET, &[("x_kept", "1"), ("x!", "1")])));
    assert_eq!(bench.fields(), ["Host: a", "x_kept: 1", "x!: 1"]);
}

#[test]
fn the_host_comes_from_either_field() {
    let mut bench = Bench::new();
    bench.send(&headers(1, END, &with(&GET[..3], &[("host", "b"), ("accept", "x")])));
    assert_eq!(
        (bench.fields(), &bench.head().authority[..]),
        (vec!["Host: b".to_owned(), "Accept: x".to_owned()], &b"b"[..])
    );
    bench.send(&headers(3, END, &with(&GET, &[("host", "a")])));
    assert_eq!(
        (bench.fields(), &bench.head().authority[..]),
        (vec!["Host: a".to_owned()], &b"a"[..])
    );
}

#[test]
fn the_body_is_announced_by_length_and_flags() {
    let mut bench = Bench::new();
    bench.send(&headers(
        1,
        0,
        &with(&POST, &[("content-length", "7"), ("expect", "100-Continue")]),
    ));
    assert_eq!((bench.head().body, bench.head().expects_continue), (RequestBody::Length(7), true));
    assert_eq!(bench.fields(), ["Host: a", "Content-Length: 7", "Expect: 100-Continue"]);
    bench.send(&headers(3, 0, &block(&POST)));
    assert_eq!((bench.head().body, bench.head().expects_continue), (RequestBody::Unknown, false));
    bench.send(&headers(
        5,
        END,
        &with(&POST, &[("content-length", "0"), ("expect", "100-continue")]),
    ));
    assert_eq!((bench.head().body, bench.head().expects_continue), (RequestBody::None, false));
    assert!(bench.out().is_empty(), "whether the body is read is not known here");
    // RFC 9110 §10.1.1: no use where the whole body has come, or the response.
    bench.send(&headers(7, 0, &with(&POST, &[("expect", "100-continue")])));
    for id in [1, 5, 7] {
        bench.conn.send_continue(bench.streams[&id]);
    }
    assert_eq!(bench.out(), ["HEADERS 1 :status=100", "HEADERS 7 :status=100"]);
    bench.answer(1, 0);
    bench.conn.send_continue(bench.streams[&1]);
    assert!(!bench.out().iter().any(|frame| frame.contains(":status=100")));
}

fn check_malformed(fields: &[(&str, &str)]) {
    for flags in [END, 0] {
        let mut bench = Bench::new();
        let inserting = [&block(fields)[..], &[0x40, 1, b'x', 1, b'y']].concat();
        bench.send(&headers(1, flags, &inserting));
        let events = bench.events();
        assert!(events[0].starts_with("refused 1 ") && events[0].contains(" 400 "), "{events:?}");
        assert_eq!(bench.head().body, RequestBody::None);
        assert!(bench.out().is_empty());
        // What still comes is dropped, and the response is followed by a reset.
        bench.send(&data(1, 0, b"x")[..if flags == 0 { 10 } else { 0 }]);
        bench.answer(1, 5);
        let told = ["HEADERS 1 :status=200 content-length=5", "DATA 1 5 end"].map(str::to_owned);
        let reset = format!("RST_STREAM 1 {PROTOCOL_ERROR}");
        assert_eq!(bench.out_twice(), [&told[..], &[reset]].concat(), "{fields:?}");
        assert!(bench.events() == ["sent 1 5"] && bench.conn.is_idle());
        bench.send(&headers(3, END, &[&block(&GET)[..], &[0xbe]].concat()));
        assert_eq!(bench.fields(), ["Host: a", "x: y"], "the tables are in step");
    }
}

#[test]
fn the_first_flaw_of_a_head_is_told() {
    let mut bench = Bench::new();
    bench.send(&headers(1, END, &with(&GET, &[("content-length", "x"), ("X", "1")])));
    let line = "refused 1 GET / HTTP/2.0 400 client sent invalid \"Content-Length\" header";
    assert_eq!(bench.events(), [line]);
}

#[test]
fn regular_lines_are_counted() {
    let settings = || H2Settings { fields_max: 3, ..H2Settings::default() };
    let three = [("cookie", "a"), ("x", "1"), ("y", "1"), ("cookie", "b"), ("z_z", "1")];
    let told = |more: &[(&'static str, &'static str)]| {
        let mut bench = Bench::open(settings());
        bench.send(&headers(1, END, &with(&GET, more)));
        bench.events().remove(0)
    };
    assert!(told(&[&three[..], &[("host", "a")]].concat()).starts_with("request"));
    let four = told(&[&three[..], &[("accept", "x"), ("z", "1")]].concat());
    assert!(four.ends_with("494 client sent too many header lines"), "{four}");
}

#[test]
fn malformed_requests_are_answered_and_cost_their_stream() {
    let [method, scheme, path, authority] = GET;
    for fields in [
        vec![scheme, path, authority],
        vec![method, path, authority],
        vec![method, scheme, authority],
        vec![method, method, scheme, path, authority],
        vec![method, scheme, scheme, path, authority],
        vec![method, scheme, path, path, authority],
        vec![method, scheme, path, authority, authority],
        vec![method, scheme, ("a", "b"), path, authority],
        vec![(":method", ""), scheme, path, authority],
        vec![method, (":scheme", ""), path, authority],
        vec![method, scheme, (":path", ""), authority],
        vec![method, scheme, (":path", "x"), authority],
        vec![method, scheme, (":path", "*"), authority],
        vec![method, scheme, path, (":authority", "a\0")],
        vec![method, scheme, path],
        vec![method, (":scheme", "ht tp"), path, authority],
        vec![],
    ] {
        check_malformed(&fields);
    }
    for more in [
        (":status", "200"),
        (":protocol", "websocket"),
        (":unknown", ""),
        ("", "x"),
        ("Accept", "x"),
        ("x-Y", "x"),
        ("x y", "x"),
        ("x:y", "x"),
        ("accept", " x"),
        ("accept", "x\t"),
        ("accept", "x\ny"),
        ("accept", "x\0"),
        ("connection", "close"),
        ("keep-alive", "1"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "x"),
        ("te", "gzip"),
        ("te", "trailers, gzip"),
        ("content-length", "x"),
        ("content-length", "+0"),
        ("content-length", ""),
        ("content-length", "99999999999999999999"),
        ("host", "b"),
        ("host", "A"),
        ("host", "a:80"),
    ] {
        check_malformed(&[&GET[..], &[more]].concat());
    }
    check_malformed(&with_two("content-length", "0", "1"));
    check_malformed(&with_two("content-length", "0", "0"));
    check_malformed(&with_two("host", "a", "a"));
}

fn with_two<'a>(name: &'a str, one: &'a str, two: &'a str) -> Vec<(&'a str, &'a str)> {
    [&GET[..], &[(name, one), (name, two)]].concat()
}

#[test]
fn refusals_carry_nginx_statuses_and_what_could_be_read() {
    let long = "x".repeat(9000);
    let much = "y".repeat(7000);
    let [method, scheme, path, authority] = GET;
    for (fields, expected) in [
        (
            vec![(":method", "get"), scheme, path, authority],
            "get / HTTP/2.0 400 client sent invalid method",
        ),
        (
            vec![(":method", "G T"), scheme, path, authority],
            "G T / HTTP/2.0 400 client sent invalid method",
        ),
        (vec![(":method", "CONNECT"), authority], "CONNECT  HTTP/2.0 405 client sent CONNECT"),
        (
            vec![method, scheme, (":path", "/a b"), authority],
            "GET /a b HTTP/2.0 400 client sent invalid",
        ),
        (
            vec![method, scheme, path, (":authority", "u@h")],
            "GET / HTTP/2.0 400 client sent invalid host",
        ),
        (
            vec![method, scheme, (":path", &long), authority],
            "GET  HTTP/2.0 414 client sent too long URI",
        ),
        (
            vec![method, scheme, path, authority, ("a", &long)],
            "GET / HTTP/2.0 494 client sent too long",
        ),
        ([&GET[..], &[("a", &much[..]); 5]].concat(), "GET / HTTP/2.0 494 client sent too large"),
        ([&GET[..], &[("a", "b"); 1000]].concat(), "GET / HTTP/2.0 494 client sent too large"),
    ] {
        let mut bench = Bench::new();
        let block = block(&fields);
        let mut chunks = block.chunks(16_000);
        let flags = |last| if last { super::HEAD } else { 0 };
        let count = chunks.len();
        bench.send(&frame(1, END | flags(count == 1), 1, chunks.next().unwrap()));
        for (i, chunk) in chunks.enumerate() {
            bench.send(&frame(9, flags(i + 2 == count), 1, chunk));
        }
        let events = bench.events();
        assert_eq!(events.len(), 1, "{events:?}");
        assert!(events[0].starts_with(&format!("refused 1 {expected}")), "{}", events[0]);
        bench.answer(1, 3);
        bench.out();
        bench.send(&get(3));
        assert_eq!(bench.events().len(), 2, "the connection goes on");
    }
}

#[test]
fn a_repeated_block_gives_the_same_head_until_the_table_changes() {
    let mut bench = Bench::new();
    // Indexed method, scheme, path; authority inserted; user-agent inserted.
    let first = [&[0x82, 0x86, 0x84, 0x41, 1, b'a', 0x7a, 1, b'u'][..]].concat();
    let again = [0x82, 0x86, 0x84, 0xbf, 0xbe];
    let mut wanted = None;
    bench.send(&headers(1, END, &first));
    for id in [3, 5, 7, 9] {
        bench.send(&headers(id, END, &again));
        let head = bench.head();
        let got = (bench.fields(), head.line.clone(), head.authority.clone(), head.wire_size);
        assert_eq!(wanted.get_or_insert(got.clone()), &got);
    }
    // The same block has another meaning after an insertion.
    bench.send(&headers(
        11,
        END,
        &[&first[..7], &[1, b'v', 0x41, 1, b'b', 0x7a, 1, b'w']].concat(),
    ));
    let told = "refused 11 GET / HTTP/2.0 400 client sent out of order pseudo-headers";
    assert_eq!(bench.events().last().unwrap(), told);
    bench.send(&headers(13, END, &again));
    assert_eq!(bench.fields(), ["Host: b", "User-Agent: w"]);
    // With a body to come it is another request.
    bench.send(&headers(15, 0, &again));
    assert_eq!(bench.head().body, RequestBody::Unknown);
}

#[test]
fn priorities_order_responses_and_may_come_early_or_late() {
    let mut bench = Bench::new();
    bench.send(&frame(0x10, 0, 0, b"\0\0\0\x03u=0"));
    bench.send(
        &[get(1), get(3), headers(5, END, &with(&GET, &[("priority", "u=1")])), get(7)].concat(),
    );
    bench.send(&frame(0x10, 0, 0, b"\0\0\0\x07u=2"));
    for id in [1, 3, 5, 7] {
        bench.answer(id, 4);
    }
    let data: Vec<_> = bench.out().into_iter().filter(|line| line.starts_with("DATA")).collect();
    assert_eq!(data, ["DATA 3 4 end", "DATA 5 4 end", "DATA 7 4 end", "DATA 1 4 end"]);
}
