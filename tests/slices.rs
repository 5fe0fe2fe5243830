//! `slice`: large responses are fetched and kept in ranges of one size, by each protocol; slices of
//! two versions never make one response.

use bolide_testkit::origin::{TestPeer, answer_of};
use bolide_testkit::server::LISTEN;
use bolide_testkit::{Proto, TestServer, TestUpstream, wait_until};

use crate::{http, report};

/// Bytes of what is asked for in slices.
const SIZE: usize = 300_000;
const SLICE: usize = 16 * 1024;

fn text() -> String {
    (0..SIZE).map(|at| char::from(b'a' + (at / 7 % 26) as u8)).collect()
}

/// Answers each request with the part that it asks for, as `change` has its head.
fn give(peer: &mut TestPeer, change: impl Fn(usize, String) -> String) {
    let text = text();
    while let Ok(request) = peer.request() {
        let range = request.field("range").unwrap_or_default().to_owned();
        let mut ends = range.trim_start_matches("bytes=").split('-');
        let mut number = || ends.next().and_then(|end| end.parse::<usize>().ok());
        let (Some(start), Some(last)) = (number(), number()) else { return };
        let end = SIZE.min(last + 1);
        let head = format!("ETag: \"one\"\nContent-Range: bytes {start}-{}/{SIZE}", end - 1);
        let head = change(start, head);
        let (status, fields) = head.split_once('|').unwrap_or(("206 Partial Content", &head));
        if peer.send(answer_of(status, fields, &text[start..end])).is_err() {
            return;
        }
    }
}

/// A server that asks `origin` in slices and keeps them.
fn sliced(origin: &TestUpstream, more: &str) -> TestServer {
    http(&format!(
        "proxy_cache_path @DIR@/cache keys_zone=parts:1m;
         server {{
             {LISTEN} slice {SLICE}; proxy_set_header Range $slice_range;
             proxy_http_version 1.1; proxy_set_header Connection '';
             location / {{ proxy_pass http://{0}; {more} }}
             location /kept/ {{
                 proxy_pass http://{0}; proxy_cache parts; proxy_cache_valid 206 1h;
                 proxy_cache_key $uri$slice_range; {more}
             }}
         }}",
        origin.address()
    ))
}

#[test]
fn slices_make_one_response_by_each_protocol() {
    let origin = TestUpstream::scripted(|peer| give(peer, |_, head| head));
    let server = sliced(&origin, "");
    let text = text();
    let ranges = ["", "0-", "5-20", "16000-17000", "100000-", "-5", "-100000", "299999-299999"];
    let mut failures = Vec::new();
    for proto in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3] {
        for path in ["/passed", "/kept/one"] {
            for range in ranges {
                let mut curl = server.curl(proto);
                if !range.is_empty() {
                    curl = curl.args(["-r", range]);
                }
                let reply = curl.get(&server.url(proto, path));
                let wanted = match range.split_once('-') {
                    None => &text[..],
                    Some(("", last)) => &text[SIZE - last.parse::<usize>().unwrap()..],
                    Some((first, "")) => &text[first.parse().unwrap()..],
                    Some((first, last)) => {
                        &text[first.parse().unwrap()..=last.parse::<usize>().unwrap()]
                    }
                };
                let status = if range.is_empty() { 200 } else { 206 };
                if reply.status != status || reply.body != wanted.as_bytes() {
                    let (status, len) = (reply.status, reply.body.len());
                    failures.push(format!("{proto:?} {path} {range}: {status} {len}"));
                }
            }
        }
    }
    report(64, &failures);
    // What is kept was asked for once.
    assert_eq!(origin.count("/kept/one"), SIZE.div_ceil(SLICE));
}

#[test]
fn only_requested_slices_are_fetched() {
    let origin = TestUpstream::scripted(|peer| give(peer, |_, head| head));
    let server = sliced(&origin, "");
    let part = |range: &str| {
        let reply =
            server.curl(Proto::H1).args(["-r", range]).get(&server.url(Proto::H1, "/kept/a"));
        assert_eq!(reply.status, 206, "{range}");
        origin.count("/kept/a")
    };
    assert_eq!(part("40000-50000"), 2);
    assert_eq!(part("40000-50000"), 2);
    // The first one, for the length, and the last one.
    assert_eq!(part("-10"), 4);
    assert_eq!(part("60000-70000"), 5);
    let head = server.curl(Proto::H1).args(["-I"]).get(&server.url(Proto::H1, "/kept/a"));
    assert_eq!((head.status, origin.count("/kept/a")), (200, 5));
}

#[test]
fn an_ignored_range_gives_the_whole_body() {
    let origin = TestUpstream::scripted(|peer| give(peer, |_, head| head));
    let server = sliced(&origin, "max_ranges 0;");
    for path in ["/passed", "/kept/one"] {
        for proto in [Proto::H1, Proto::H2, Proto::H3] {
            let reply =
                server.curl(proto).args(["-r", "100000-100010"]).get(&server.url(proto, path));
            assert_eq!((reply.status, reply.body.len()), (200, SIZE), "{path} {proto:?}");
            assert!(reply.body == text().as_bytes(), "{path} {proto:?}");
        }
    }
}

#[test]
fn slices_that_do_not_match_break_the_response_and_are_not_stored() {
    let faults: [(&str, &str); 6] = [
        ("404 Not Found|X: y", "unexpected status code 404 in slice response"),
        ("ETag: \"two\"\nContent-Range: bytes 16384-32767/300000", "etag mismatch in slice"),
        ("ETag: \"one\"\nContent-Range: bytes 16384-32767/*", "no complete length in slice"),
        ("ETag: \"one\"\nContent-Range: bytes 16384-", "invalid range in slice response"),
        (
            "ETag: \"one\"\nContent-Range: bytes 0-16383/300000",
            "unexpected range in slice response: 0-16384, expected: 16384-16384",
        ),
        (
            "ETag: \"one\"\nContent-Range: bytes 16384-32767/400000",
            "unexpected range in slice response: 16384-32768, expected: 16384-32768",
        ),
    ];
    for (bad, line) in faults {
        let origin = TestUpstream::scripted(move |peer| {
            give(peer, |start, head| if start == SLICE { bad.to_owned() } else { head });
        });
        let server = sliced(&origin, "");
        for path in ["/passed", "/kept/one"] {
            for proto in [Proto::H1, Proto::H2, Proto::H3] {
                let reply = server.curl(proto).attempt(&server.url(proto, path));
                assert!(reply.body.len() <= SLICE, "{bad}: {path} {proto:?} {}", reply.body.len());
                assert!(text().as_bytes().starts_with(&reply.body), "{bad}: {path} {proto:?}");
            }
        }
        for path in ["/passed", "/kept/one"] {
            let within = format!("subrequest: \"{path}\"");
            let is_reported =
                |log: &str| log.lines().any(|said| said.contains(line) && said.contains(&within));
            wait_until(line, || is_reported(&server.error_log()));
        }
    }
}

#[test]
fn slices_of_different_arrivals_are_stored_separately() {
    let origin = TestUpstream::scripted(|peer| give(peer, |_, head| head));
    let server = sliced(&origin, "error_page 418 = /kept/one; if ($arg_member) { return 418; }");
    let get = |path: &str| {
        let reply = server.curl(Proto::H1).get(&server.url(Proto::H1, path));
        assert_eq!((reply.status, reply.body.len()), (200, SIZE), "{path}");
        origin.all().len()
    };
    let whole = SIZE.div_ceil(SLICE);
    assert_eq!(get("/passed?member=1"), whole);
    // None of what came by the other way.
    assert_eq!(get("/kept/one"), 2 * whole);
    assert_eq!(get("/kept/one"), 2 * whole);
}
