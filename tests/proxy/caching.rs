//! Caching of responses of HTTP upstreams, with `proxy_cache` and with `page_cache`.

use std::thread;

use bolide_testkit::origin::{answer, answer_of};
use bolide_testkit::server::LISTEN;
use bolide_testkit::{Response, TestServer, TestUpstream, wait_until};

use crate::http;

const KEEP: &str = "proxy_cache one; proxy_cache_valid 200 1m;
    add_header X-Status $upstream_cache_status always;";

/// A server with `proxy_cache`, with more directives of the location.
fn keep(origin: &TestUpstream, location: &str) -> TestServer {
    http(&format!(
        "proxy_cache_path @DIR@/cache keys_zone=one:1m;
         upstream app {{ server {}; keepalive 4; }}
         server {{ {LISTEN} location / {{ proxy_pass http://app; {KEEP} {location} }} }}",
        origin.address()
    ))
}

/// A server with the page cache.
fn pages(origin: &TestUpstream, location: &str) -> TestServer {
    http(&format!(
        "server {{ {LISTEN} page_cache auto;
             location / {{ proxy_pass http://{}; {location} }} }}",
        origin.address()
    ))
}

/// The cache status and the body.
fn status_and_body(reply: &Response) -> (String, String) {
    let said = reply.header("x-status").or_else(|| reply.header("x-litespeed-cache"));
    (said.unwrap_or_default().to_owned(), reply.text())
}

fn seen(server: &TestServer, path: &str) -> (String, String) {
    status_and_body(&server.get(path))
}

fn with(server: &TestServer, method: &str, path: &str, fields: &str) -> Response {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}");
    server.connect().ask(head.trim_end())
}

fn pair(status: &str, body: &str) -> (String, String) {
    (status.to_owned(), body.to_owned())
}

#[test]
fn a_response_is_stored_and_purged() {
    let origin = TestUpstream::start();
    let server = keep(&origin, "proxy_cache_purge PURGE from 127.0.0.1;");
    assert_eq!(seen(&server, "/a"), pair("MISS", "run 1"));
    assert_eq!(seen(&server, "/a"), pair("HIT", "run 1"));
    assert_eq!(seen(&server, "/a?b"), pair("MISS", "run 1"), "the query is part of the key");
    assert_eq!(with(&server, "PURGE", "/a", "").status, 200);
    assert_eq!(seen(&server, "/a"), pair("MISS", "run 2"));
    assert_eq!(origin.count("/a"), 2, "nobody asks the origin to purge");
}

#[test]
fn the_innermost_block_decides_which_clients_may_purge() {
    let origin = TestUpstream::start();
    let pass = format!("proxy_pass http://{}; {KEEP}", origin.address());
    let server = http(&format!(
        "proxy_cache_path @DIR@/cache keys_zone=one:1m; proxy_cache_purge PURGE from 127.0.0.1;
         server {{ {LISTEN} location / {{ {pass} }}
             location /off/ {{ proxy_cache_purge off; {pass} }}
             location /no/ {{ proxy_cache_purge PURGE from 192.0.2.1; {pass}
                 location /no/yes/ {{ proxy_cache_purge DROP from 127.0.0.1; {pass} }} }} }}"
    ));
    // A request that purges nothing is an ordinary one, and is passed upstream.
    for (path, method, status, is_passed, cache) in [
        ("/", "PURGE", 200, false, "MISS"),
        ("/off/", "PURGE", 200, true, "HIT"),
        ("/no/", "PURGE", 403, false, "HIT"),
        ("/no/", "DROP", 200, true, "HIT"),
        ("/no/yes/", "PURGE", 200, true, "HIT"),
        ("/no/yes/", "DROP", 200, false, "MISS"),
    ] {
        let _kept = server.get(path);
        assert_eq!(with(&server, method, path, "").status, status, "{method} {path}");
        let asked = origin.asked(path).iter().any(|asked| asked.method() == method);
        assert_eq!((asked, &*seen(&server, path).0), (is_passed, cache), "{method} {path}");
    }
}

#[test]
fn cacheable_requests_are_forwarded_without_ranges_and_conditions() {
    let origin = TestUpstream::start();
    origin.say("/", answer("ETag: \"x\"\nAccept-Ranges: bytes", "0123456789"));
    let part = "Range: bytes=2-3\r\nIf-None-Match: \"x\"\r\nIf-Range: \"y\"\r\n\
                If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT\r\n";
    for (method, fields) in [("HEAD", ""), ("GET", part)] {
        let server = keep(&origin, "");
        origin.say("/", answer("ETag: \"x\"\nAccept-Ranges: bytes", "0123456789"));
        let first = with(&server, method, "/", fields);
        assert_eq!(first.status, if method == "HEAD" { 200 } else { 304 }, "{method}");
        let asked = origin.asked("/").pop().unwrap();
        assert_eq!(asked.method(), "GET");
        for name in ["range", "if-none-match", "if-range", "if-modified-since"] {
            assert_eq!(asked.field(name), None, "{name}");
        }
        assert_eq!(seen(&server, "/"), pair("HIT", "0123456789"), "{method}");
        let range = with(&server, "GET", "/", "Range: bytes=2-3\r\n");
        assert_eq!((range.status, &*range.text()), (206, "23"));
    }
}

#[test]
fn an_answer_to_head_never_becomes_that_to_get() {
    let origin = TestUpstream::start();
    let server = keep(&origin, "proxy_cache_convert_head off;");
    let head = with(&server, "HEAD", "/", "");
    assert_eq!((head.status, head.header("content-length")), (200, Some("5")));
    assert_eq!(origin.asked("/")[0].method(), "HEAD");
    assert_eq!(server.get("/").text(), "run 2");
    assert_eq!(seen(&server, "/"), pair("HIT", "run 2"));
    assert_eq!(with(&server, "HEAD", "/", "").header("x-status"), Some("HIT"));
}

#[test]
fn private_responses_are_not_stored() {
    let origin = TestUpstream::start();
    let server = keep(&origin, "");
    for fields in [
        "Set-Cookie: session=1",
        "Cache-Control: private",
        "Cache-Control: no-store",
        "Cache-Control: no-cache",
        "Vary: *",
        "X-Accel-Expires: 0",
        "Expires: Thu, 01 Jan 1970 00:00:01 GMT",
    ] {
        origin.plan("/", vec![answer(fields, "one"), answer(fields, "two")]);
        assert_eq!(seen(&server, "/"), pair("MISS", "one"), "{fields}");
        assert_eq!(seen(&server, "/"), pair("MISS", "two"), "{fields}");
    }
    origin.say("/post", answer("Cache-Control: max-age=60", "kept?"));
    let order = "Content-Length: 0\r\n";
    for _ in 0..2 {
        assert_eq!(with(&server, "POST", "/post", order).status, 200);
    }
    assert_eq!(origin.count("/post"), 2);
    assert_eq!(seen(&server, "/post"), pair("MISS", "kept?"));
}

#[test]
fn vary_of_the_upstream_separates_responses() {
    let origin = TestUpstream::start();
    origin.plan("/", vec![answer("Vary: X-Lang", "en"), answer("Vary: X-Lang", "de")]);
    let server = keep(&origin, "");
    let ask =
        |lang: &str| status_and_body(&with(&server, "GET", "/", &format!("X-Lang: {lang}\r\n")));
    assert_eq!(ask("en"), pair("MISS", "en"));
    assert_eq!(ask("de"), pair("MISS", "de"));
    assert_eq!(ask("de"), pair("HIT", "de"));
}

#[test]
fn a_truncated_response_is_not_stored() {
    let origin = TestUpstream::scripted(|peer| {
        let Ok(request) = peer.request() else { return };
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";
        let rest = match request.target() {
            "/length" => "Content-Length: 100\r\n\r\nhalf",
            "/chunks" => "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
            _ => "Content-Length: 0100\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n\r\n",
        };
        let _left = peer.send(format!("{head}{rest}"));
    });
    let server = keep(&origin, "");
    for path in ["/length", "/chunks", "/both"] {
        for run in 1..=2 {
            let mut client = server.connect();
            client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
            let reply = client.try_answer("GET");
            assert!(reply.is_err() || reply.is_ok_and(|reply| reply.status == 502), "{path}");
            wait_until("the question", || origin.count(path) == run);
        }
    }
}

#[test]
fn a_stale_response_is_served_and_updated_in_the_background() {
    let origin = TestUpstream::start();
    let old = |body| answer("Cache-Control: max-age=1", body);
    origin.plan("/", vec![old("old"), answer("Cache-Control: max-age=60", "new")]);
    let server = keep(
        &origin,
        "proxy_cache_use_stale updating error http_500; proxy_cache_background_update on;",
    );
    assert_eq!(seen(&server, "/"), pair("MISS", "old"));
    origin.hold("/");
    let mut first = String::new();
    wait_until("it to be old", || {
        let (status, body) = seen(&server, "/");
        assert_eq!(body, "old");
        first = status;
        first != "HIT"
    });
    assert_eq!(first, "STALE");
    assert_eq!(seen(&server, "/"), pair("UPDATING", "old"));
    origin.release();
    wait_until("the new one", || seen(&server, "/").1 == "new");
    assert_eq!(seen(&server, "/"), pair("HIT", "new"));
    assert_eq!(origin.count("/"), 2);

    origin.plan("/broken", vec![old("old"), answer_of("500 Oh", "", "oh")]);
    assert_eq!(seen(&server, "/broken"), pair("MISS", "old"));
    wait_until("it to be old", || seen(&server, "/broken").0 == "STALE");
    wait_until("the error", || origin.count("/broken") >= 2);
    wait_until("the error to be over", || seen(&server, "/broken") == pair("STALE", "old"));
    origin.vanish();
    assert_eq!(seen(&server, "/broken").1, "old");
}

#[test]
fn cache_lock_coalesces_requests() {
    let origin = TestUpstream::start();
    origin.hold("/");
    let server = keep(&origin, "proxy_cache_lock on; proxy_cache_lock_timeout 20s;");
    let addr = server.http();
    let clients: Vec<_> = (0..6)
        .map(|_| {
            thread::spawn(move || bolide_testkit::H1TestClient::connect(addr).get("/", "").text())
        })
        .collect();
    wait_until("the question", || origin.count("/") == 1);
    assert_eq!(seen(&server, "/else").1, "run 1", "others do not wait");
    origin.release();
    for client in clients {
        assert_eq!(client.join().unwrap(), "run 1");
    }
    assert_eq!(origin.count("/"), 1);
}

#[test]
fn an_old_answer_is_confirmed() {
    let origin = TestUpstream::start();
    let fields = "Cache-Control: max-age=1\nETag: \"v1\"\n\
                  Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT";
    let same = b"HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nETag: \"v1\"\r\n\r\n";
    origin.plan("/", vec![answer(fields, "the page"), same.to_vec()]);
    let server = keep(&origin, "proxy_cache_revalidate on;");
    assert_eq!(seen(&server, "/"), pair("MISS", "the page"));
    wait_until("it to be old", || {
        let (status, body) = seen(&server, "/");
        assert_eq!(body, "the page");
        status == "REVALIDATED"
    });
    assert_eq!(seen(&server, "/"), pair("HIT", "the page"));
    let asked = origin.asked("/").pop().unwrap();
    assert_eq!(asked.field("if-none-match"), Some("\"v1\""));
    assert_eq!(asked.field("if-modified-since"), Some("Tue, 14 Nov 2023 22:13:20 GMT"));
}

#[test]
fn the_key_has_the_host_of_the_upstream() {
    let (one, other) = (TestUpstream::start(), TestUpstream::start());
    one.say("/", answer("", "one"));
    other.say("/", answer("", "other"));
    let server = http(&format!(
        "proxy_cache_path @DIR@/cache keys_zone=one:1m; {KEEP}
         server {{ {LISTEN}
             location /one/ {{ proxy_pass http://{}/; }}
             location /other/ {{ proxy_pass http://{}/; }} }}",
        one.address(),
        other.address()
    ));
    assert_eq!(seen(&server, "/one/"), pair("MISS", "one"));
    assert_eq!(seen(&server, "/other/"), pair("MISS", "other"));
    assert_eq!(seen(&server, "/one/"), pair("HIT", "one"));
}

#[test]
fn an_http_upstream_controls_the_page_cache() {
    let origin = TestUpstream::start();
    let public = "X-LiteSpeed-Cache-Control: public,max-age=60\nX-LiteSpeed-Tag: a,b";
    origin.plan("/", vec![answer(public, "one"), answer(public, "two"), answer(public, "three")]);
    origin.say("/purge", answer("X-LiteSpeed-Purge: tag=b", ""));
    let server = pages(&origin, "");
    assert_eq!(seen(&server, "/"), pair("miss", "one"));
    let hit = server.get("/");
    assert_eq!(status_and_body(&hit), pair("hit", "one"));
    assert_eq!(hit.header("x-litespeed-tag"), None);
    assert!(hit.header("age").is_some());
    assert_eq!(server.get("/purge").status, 200);
    assert_eq!(seen(&server, "/"), pair("miss", "two"));
    // The server decides on purges, and a client cannot pretend to be the application.
    let forged = "X-LiteSpeed-Purge: *\r\nX-LSCACHE: 1\r\n";
    assert_eq!(status_and_body(&with(&server, "GET", "/", forged)), pair("hit", "two"));
    assert_eq!(with(&server, "GET", "/plain", forged).status, 200);
    assert_ne!(origin.asked("/plain")[0].field("x-lscache"), Some("1"));
}

#[test]
fn the_page_cache_stores_no_private_responses() {
    let origin = TestUpstream::start();
    let server = pages(&origin, "");
    let public = "Cache-Control: public, max-age=60";
    let get = |path: &str, fields: &str| with(&server, "GET", path, fields).text();
    origin.plan(
        "/cookie",
        vec![
            answer(&format!("{public}\nSet-Cookie: session=1"), "one"),
            answer(&format!("{public}\nSet-Cookie: session=2"), "two"),
        ],
    );
    assert_eq!((get("/cookie", ""), get("/cookie", "")), ("one".into(), "two".into()));
    let open = "Cache-Control: max-age=60";
    origin.plan("/who", vec![answer(open, "of carla"), answer(open, "of nobody")]);
    assert_eq!(get("/who", "Authorization: Basic YTpi\r\n"), "of carla");
    assert_eq!(get("/who", ""), "of nobody");
    origin.plan("/vary", vec![answer(&format!("{open}\nVary: *"), "a"), answer(open, "b")]);
    assert_eq!((get("/vary", ""), get("/vary", "")), ("a".into(), "b".into()));
    origin.plan(
        "/part",
        vec![
            answer_of("206 Partial Content", &format!("{open}\nContent-Range: bytes 2-3/10"), "23"),
            answer(open, "0123456789"),
        ],
    );
    let _partial = with(&server, "GET", "/part", "Range: bytes=2-3\r\n");
    assert_eq!(get("/part", ""), "0123456789");
}

#[test]
fn esi_pages_may_come_from_an_http_upstream() {
    let origin = TestUpstream::start();
    let esi = "Content-Type: text/html\nX-LiteSpeed-Cache-Control: public,max-age=60,esi=on";
    origin.say("/page", answer(esi, "[<esi:include src=\"/part?x=%0d%0aEvil:1\"/>]"));
    let server = pages(&origin, "");
    origin.say("/part?x=%0d%0aEvil:1", answer("Content-Type: text/html", "the part"));
    for _ in 0..2 {
        assert_eq!(server.get("/page").text(), "[the part]");
    }
    assert_eq!((origin.count("/page"), origin.count("/part?x=%0d%0aEvil:1")), (1, 2));
    assert!(origin.all().iter().all(|asked| asked.field("evil").is_none()));
}

#[test]
fn an_error_page_is_not_stored_under_the_failed_address() {
    let origin = TestUpstream::start();
    let server = http(&format!(
        "server {{ {LISTEN} page_cache auto; proxy_intercept_errors on; cache_status on;
             location / {{ proxy_pass http://{0}; error_page 503 = /sorry; }}
             location /sorry {{ proxy_pass http://{0}; }} }}",
        origin.address()
    ));
    let good = |body: &str| answer("Cache-Control: max-age=60", body);
    let bad = answer_of("503", "", "down");
    origin.plan("/shop", vec![bad.clone(), bad, good("shop")]);
    origin.say("/sorry", good("sorry"));
    for wanted in ["sorry", "sorry", "shop", "shop"] {
        let reply = server.get("/shop");
        assert_eq!(reply.text(), wanted);
        let status = reply.header("cache-status").unwrap_or_default().to_owned();
        assert_eq!(status.contains("detail=stands-in"), wanted == "sorry", "{status}");
    }
    assert_eq!(origin.count("/shop"), 3, "the shop is kept once it is there");
    assert_eq!(seen(&server, "/sorry").1, "sorry");
    assert_eq!(seen(&server, "/sorry"), pair("hit", "sorry"), "asked for itself, it may be kept");
}

#[test]
fn proxy_pass_header_does_not_add_server_and_date() {
    let origin = TestUpstream::scripted(|peer| {
        while peer.request().is_ok() {
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nCache-Control: max-age=9\r\n";
            peer.send(format!("{head}\r\nx")).unwrap();
        }
    });
    let server = http(&format!(
        "proxy_cache_path @DIR@/cache keys_zone=one:1m;
         server {{ {LISTEN} location / {{ proxy_pass http://{0}; }}
             location /pass/ {{ proxy_pass http://{0}; proxy_pass_header Server; }}
             location /both/ {{ proxy_pass http://{0}; proxy_pass_header Server;
                                proxy_pass_header Date; proxy_cache one; }} }}",
        origin.address()
    ));
    for (path, has_server, has_date) in
        [("/", true, true), ("/pass/", false, true), ("/both/", false, false)]
    {
        for _ in 0..3 {
            for proto in
                [bolide_testkit::Proto::H1, bolide_testkit::Proto::H2, bolide_testkit::Proto::H3]
            {
                let reply = server.fetch(proto, path);
                let has = |name| reply.header(name).is_some();
                assert_eq!(
                    (has("server"), has("date")),
                    (has_server, has_date),
                    "{path} {proto:?}"
                );
            }
        }
    }
}
