//! An HTTP upstream behind `proxy_pass`: its requests, its responses, keepalive connections, and
//! failures.

mod attacks;
mod binding;
mod caching;
mod http2;
mod tunnels;

use std::fs;

use bolide_testkit::origin::{answer, answer_of};
use bolide_testkit::server::LISTEN;
use bolide_testkit::{H1TestClient, Proto, TestServer, TestUpstream, site, wait_until};

use crate::http;

/// A server that passes all requests to `origin` over keepalive connections, with more directives
/// of its location and the site.
fn serve(origin: &TestUpstream, location: &str, more: &str) -> TestServer {
    http(&format!(
        "upstream app {{ server {}; keepalive 8; }}
         server {{ {LISTEN} client_max_body_size 0; {more}
             location / {{ proxy_pass http://app; {location} }} }}",
        origin.address()
    ))
}

/// `POST path` with this body on a new connection.
fn post(server: &TestServer, path: &str, body: &str) -> bolide_testkit::Response {
    let len = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len}\r\n\r\n");
    server.connect().send(head + body).answer()
}

/// Bytes without repetition.
fn long_body(len: usize) -> Vec<u8> {
    site::noise(len, 1)
}

#[test]
fn an_origin_answers_by_each_protocol() {
    let origin = TestUpstream::start();
    let server = serve(&origin, "", "");
    for (at, proto) in Proto::TLS.into_iter().enumerate() {
        let curl = server.curl(proto).field("X-Own: 1").field("Cookie: a=b");
        let reply = curl.get(&server.url(proto, "/a%20b?c=d"));
        assert_eq!((reply.status, reply.text()), (200, format!("run {}", at + 1)), "{proto:?}");
        assert_eq!(reply.header("content-length"), Some("5"), "{proto:?}");
        let asked = origin.asked("/a%20b?c=d").pop().unwrap();
        assert_eq!(asked.line(), "GET /a%20b?c=d HTTP/1.1", "{proto:?}");
        assert_eq!(asked.all("host"), ["app"], "{proto:?}");
        assert_eq!((asked.all("x-own"), asked.all("cookie")), (vec!["1"], vec!["a=b"]));
        assert!(asked.body.is_empty(), "{proto:?}");
    }
    assert_eq!(server.connect().ask("HEAD /h HTTP/1.1\r\nHost: localhost").status, 200);
    assert_eq!(origin.asked("/h")[0].method(), "HEAD");
}

#[test]
fn connection_specific_fields_are_not_forwarded() {
    let origin = TestUpstream::start();
    let fields = "Connection: keep-alive, X-Named\nKeep-Alive: timeout=5\nUpgrade: h2c\n\
                  X-Named: 1\nX-Kept: yes";
    origin.say("/", answer(fields, "body"));
    let server = serve(&origin, "", "");
    for proto in Proto::TLS {
        let reply = server.fetch(proto, "/");
        assert_eq!((reply.status, &*reply.text()), (200, "body"), "{proto:?}");
        assert_eq!(reply.header("x-kept"), Some("yes"));
        for name in ["keep-alive", "transfer-encoding"] {
            assert_eq!(reply.header(name), None, "{proto:?} {name}");
        }
        // RFC 9110 §7.8: what an origin could speak instead; later versions have no such field.
        let upgrade = (proto == Proto::H1).then_some("h2c");
        assert_eq!(reply.header("upgrade"), upgrade, "{proto:?}");
    }
    let named = "Connection: close, X-Forwarded-For, Authorization\r\nKeep-Alive: 5\r\nTE: gzip\r\n\
                 Upgrade: h2c\r\nX-Forwarded-For: 1.2.3.4\r\nAuthorization: x\r\n";
    assert_eq!(server.connect().get("/named", named).status, 200);
    let asked = &origin.asked("/named")[0];
    for name in ["keep-alive", "te", "upgrade", "x-forwarded-for", "authorization"] {
        assert_eq!(asked.field(name), None, "{name}");
    }
    assert!(!asked.field("connection").unwrap_or_default().contains("X-Forwarded-For"));
}

#[test]
fn bodies_of_requests_arrive_whole() {
    let origin = TestUpstream::start();
    let body = long_body(3 << 20);
    for location in ["", "proxy_request_buffering off;", "proxy_http_version 1.0;"] {
        let server = serve(&origin, location, "");
        let file = server.home().dir().join("body");
        fs::write(&file, &body).unwrap();
        let data = format!("@{}", file.display());
        for proto in Proto::TLS {
            let path = format!("/{proto:?}");
            origin.plan(&path, Vec::new());
            let curl = server.curl(proto).args(["--data-binary", &data]);
            assert_eq!(curl.get(&server.url(proto, &path)).status, 200, "{location} {proto:?}");
            let asked = &origin.asked(&path)[0];
            assert!(asked.body == body, "{location} {proto:?}: {} bytes", asked.body.len());
            assert_eq!(asked.all("content-length"), ["3145728"], "{location} {proto:?}");
        }
        origin.plan("/chunks", Vec::new());
        let mut client = server.connect();
        client.send("POST /chunks HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        for piece in body.chunks(50_000) {
            client.send(format!("{:x};ext=1\r\n", piece.len())).send(piece).send("\r\n");
        }
        client.send("0\r\nTrailer: x\r\n\r\n");
        assert_eq!(client.answer().status, 200, "{location}");
        let asked = &origin.asked("/chunks")[0];
        assert!(asked.body == body, "{location}: {} bytes", asked.body.len());
        assert_eq!(asked.field("trailer"), None, "{location}");
        let is_streamed = location.contains("off");
        assert_eq!(asked.field("transfer-encoding").is_some(), is_streamed, "{location}");
        assert_eq!(asked.field("content-length").is_none(), is_streamed, "{location}");
    }
}

#[test]
fn a_body_is_passed_on_while_it_arrives() {
    let origin = TestUpstream::scripted(|peer| {
        let Ok(mut request) = peer.head() else { return };
        request.body = peer.take(5).unwrap();
        peer.remember(request);
        peer.take(6).unwrap();
        peer.send(answer("", "done")).unwrap();
        peer.to_end();
    });
    let server = serve(&origin, "proxy_request_buffering off;", "");
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nfirst");
    wait_until("the first half at the origin", || origin.count("/") == 1);
    assert_eq!(origin.asked("/")[0].body, b"first");
    client.send("second");
    assert_eq!(client.answer().text(), "done");
}

#[test]
fn a_partly_forwarded_body_is_never_sent_again() {
    let first = TestUpstream::scripted(|peer| {
        let Ok(request) = peer.head() else { return };
        let target = request.target().to_owned();
        peer.take(5).unwrap();
        peer.remember(request);
        match &*target {
            "/accel" => {
                peer.send(answer("X-Accel-Redirect: /inside\r\n", "")).unwrap();
                peer.to_end();
            }
            "/late" => {
                peer.take(6).unwrap();
            }
            _ => {}
        }
    });
    let second = TestUpstream::start();
    let other = second.address();
    let server = serve(
        &first,
        &format!(
            "proxy_request_buffering off; error_page 502 = @collected; \
             location /at_once {{ error_page 502 = @at_once; proxy_pass http://{}; }} \
             location /bare {{ error_page 502 = @bare; proxy_pass http://{}; }} \
             location /put {{ error_page 502 = @put; proxy_pass http://{}; }}",
            first.address(),
            first.address(),
            first.address(),
        ),
        &format!(
            "location @collected {{ proxy_request_buffering on; proxy_pass http://{other}; }} \
             location @at_once {{ proxy_request_buffering off; proxy_pass http://{other}; }} \
             location @bare {{ proxy_pass_request_body off; proxy_pass http://{other}; }} \
             location @put {{ dav_methods PUT; create_full_put_path on; root put; }} \
             location /inside {{ proxy_pass http://{other}; }}",
        ),
    );
    for (method, target, status) in [
        ("POST", "/", 502),
        ("POST", "/late", 502),
        ("POST", "/at_once", 502),
        ("PUT", "/put", 502),
        ("POST", "/bare", 200),
        ("POST", "/accel", 200),
    ] {
        let mut client = server.connect();
        client.send(format!("{method} {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n"));
        client.send("first");
        wait_until("the first half at the origin", || first.count(target) == 1);
        client.send("second");
        assert_eq!(client.answer().status, status, "{target}");
    }
    let asked = second.all();
    let seen: Vec<_> = asked.iter().map(|one| (one.line(), one.body.len())).collect();
    assert_eq!(seen, [("POST /bare HTTP/1.1", 0), ("GET /inside HTTP/1.1", 0)]);
    assert!(server.error_log().contains("the request body was passed on as it came and is gone"));
}

#[test]
fn a_streamed_body_of_which_nothing_was_sent_is_sent_to_the_target_of_error_page() {
    let second = TestUpstream::start();
    let other = second.address();
    let server = serve(
        &second,
        "proxy_request_buffering off;
         location /later { error_page 502 = @collected; proxy_pass http://127.0.0.1:1; }
         location /at_once { error_page 502 = @at_once; proxy_pass http://127.0.0.1:1; }
         location /twice { error_page 502 = @twice; proxy_pass http://127.0.0.1:1; }
         location /put { error_page 502 = @put; proxy_pass http://127.0.0.1:1; }
         location /none {
             error_page 502 = @at_once; proxy_pass_request_body off; proxy_pass http://127.0.0.1:1;
         }",
        &format!(
            "recursive_error_pages on; client_body_temp_path @DIR@/bodies;
             location @collected {{ proxy_request_buffering on; proxy_pass http://{other}; }}
             location @at_once {{ proxy_request_buffering off; proxy_pass http://{other}; }}
             location @twice {{
                 error_page 502 = @at_once; proxy_request_buffering off;
                 proxy_pass http://127.0.0.1:1;
             }}
             location @put {{ dav_methods PUT; create_full_put_path on; root @DIR@/www; }}"
        ),
    );
    for (method, target, status) in [
        ("POST", "/later", 200),
        ("POST", "/at_once", 200),
        ("POST", "/twice", 200),
        ("PUT", "/put/a", 201),
    ] {
        // A body of which nothing came with the head is streamed.
        for (coding, body) in [
            ("Content-Length: 11", "firstsecond"),
            ("Transfer-Encoding: chunked", "5\r\nfirst\r\n6\r\nsecond\r\n0\r\n\r\n"),
        ] {
            let mut client = server.connect();
            let head = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{coding}\r\n");
            client.send(format!("{head}Expect: 100-continue\r\n\r\n"));
            assert_eq!(client.answer().status, 100);
            client.send(body);
            let status = if (status, coding.len()) == (201, 26) { 204 } else { status };
            assert_eq!(client.answer().status, status, "{target} {coding}");
        }
    }
    let large = "x".repeat(300_000);
    let mut client = server.connect();
    client.send(format!(
        "POST /at_once HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n{large}"
    ));
    assert_eq!(client.answer().status, 200);
    let bodies: Vec<_> = second.all().into_iter().map(|one| one.body).collect();
    assert_eq!(bodies.len(), 7);
    assert!(bodies[..6].iter().all(|body| body == b"firstsecond"), "{bodies:?}");
    assert_eq!(bodies[6].len(), large.len());
}

#[test]
fn an_answer_counts_that_came_before_the_origin_closed_on_the_request() {
    let origin = TestUpstream::scripted(|peer| {
        // What is not read has the close reset the connection.
        if peer.head().is_ok() {
            let _sent = peer.send(answer_of("413 Too Large", "", "too much"));
        }
    });
    for directives in ["", "proxy_request_buffering off;"] {
        let server = serve(&origin, directives, "");
        for run in 0..20 {
            let mut client = server.connect();
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n");
            client.send(long_body(4_000_000));
            let reply = client.answer();
            assert_eq!((reply.status, &*reply.text()), (413, "too much"), "{directives} {run}");
        }
    }
}

// As in nginx: with `off` no request is sent twice, also if a kept connection was closed on it.
#[test]
fn proxy_next_upstream_off_forbids_a_second_connection() {
    for (directives, status, count) in [
        ("", 200, 2),
        ("proxy_next_upstream off;", 502, 1),
        ("proxy_next_upstream timeout;", 502, 1),
    ] {
        // Closes a connection on its second request.
        let origin = TestUpstream::scripted(|peer| {
            let first = peer.request().is_ok();
            if first && peer.send(answer("", "first")).is_ok() {
                let _second = peer.request();
            }
        });
        let server = serve(&origin, directives, "");
        let mut client = server.connect();
        for (target, status) in [("/first", 200), ("/second", status)] {
            client.send(format!("DELETE {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
            assert_eq!(client.answer().status, status, "{directives} {target}");
        }
        assert_eq!(origin.count("/second"), count, "{directives}");
    }
}

#[test]
fn a_response_truncated_by_a_reset_is_incomplete_and_not_stored() {
    // It ends with its connection, which is reset, for the request's body was not read.
    let origin = TestUpstream::scripted(|peer| {
        if let Ok(request) = peer.head() {
            let len = if request.line().starts_with("GET") { 5 } else { 600_000 };
            let _sent = peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
            let _sent = peer.send(vec![b'x'; len]);
        }
    });
    for directives in ["", "proxy_request_buffering off;"] {
        let server = http(&format!(
            "proxy_cache_path @DIR@/zone keys_zone=z:1m;
             server {{ {LISTEN} client_max_body_size 0; location / {{
                 proxy_pass http://{}; proxy_cache z; proxy_cache_valid 1h; proxy_cache_key $uri;
                 proxy_cache_methods POST; {directives} }} }}",
            origin.address()
        ));
        let file = server.home().dir().join("upload");
        fs::write(&file, long_body(3_000_000)).unwrap();
        let data = format!("@{}", file.display());
        for run in 0..10 {
            let path = format!("/{run}");
            let curl = server.curl(Proto::H1).args(["--data-binary", &data]);
            let reply = curl.attempt(&server.url(Proto::H1, &path));
            let is_whole = reply.exit == 0 && reply.status == 200;
            assert!(!is_whole || reply.body.len() == 600_000, "{directives} {run}: {reply:?}");
            let kept = server.get(&path).body.len();
            assert!(matches!(kept, 5 | 600_000), "{directives} {run}: {kept} bytes were kept");
        }
    }
}

#[test]
fn an_answer_is_passed_on_while_it_arrives() {
    let origin = TestUpstream::scripted(|peer| {
        while let Ok(request) = peer.request() {
            peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
                .unwrap();
            peer.wait(request.target());
            peer.send("6\r\nsecond\r\n0\r\n\r\n").unwrap();
        }
    });
    origin.hold("/");
    let server = serve(&origin, "proxy_buffering off;", "");
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut head = Vec::new();
    while !head.ends_with(b"first") {
        head.extend(client.take(1).unwrap());
    }
    origin.release();
    let rest = client.take("\r\n6\r\nsecond\r\n0\r\n\r\n".len()).unwrap();
    assert!(String::from_utf8(rest).unwrap().ends_with("6\r\nsecond\r\n0\r\n\r\n"));
}

#[test]
fn connections_are_used_again_and_stale_ones_are_no_error() {
    let origin = TestUpstream::start();
    let server = serve(&origin, "", "");
    for run in 1..=5 {
        assert_eq!(server.get("/kept").text(), format!("run {run}"));
    }
    assert_eq!(post(&server, "/kept", "x").text(), "run 6");
    assert_eq!(origin.connections(), 1, "one after the other");

    // It announces keepalive, and closes.
    let fickle = TestUpstream::scripted(|peer| {
        let _answered = peer.answer_as_planned();
    });
    let server = serve(&fickle, "", "");
    for run in 1..=4 {
        assert_eq!(server.get("/").text(), format!("run {run}"));
        wait_until("the connection to end", || fickle.closed() == fickle.connections());
    }
    assert_eq!(fickle.connections(), 4);

    // A POST is not asked again, so the server has to know of the end: it has closed its side.
    let known = TestUpstream::scripted(|peer| {
        let _answered = peer.answer_as_planned();
        peer.finish();
        let _ended = peer.request();
    });
    let server = serve(&known, "", "");
    for run in 1..=4 {
        assert_eq!(post(&server, "/", "body").text(), format!("run {run}"));
        wait_until("the connection to end", || known.closed() == known.connections());
    }
    assert_eq!(known.connections(), 4);
}

#[test]
fn a_post_that_may_have_been_processed_is_not_retried() {
    // The second request of a connection is read and gets no response.
    let origin = TestUpstream::scripted(|peer| {
        if peer.answer_as_planned().is_ok() {
            let _lost = peer.request();
        }
    });
    let server = serve(&origin, "", "");
    assert_eq!(server.get("/get").text(), "run 1");
    assert_eq!(server.get("/get").text(), "run 3", "the lost one was asked again");
    assert_eq!(post(&server, "/post", "pay").status, 502);
    assert_eq!(origin.count("/post"), 1);
    assert_eq!(post(&server, "/post", "pay").status, 200);
}

#[test]
fn the_next_server_is_tried_if_that_is_safe() {
    let dead = TestUpstream::scripted(|peer| {
        let _lost = peer.request();
    });
    let alive = TestUpstream::start();
    let group = |directives: &str| {
        http(&format!(
            "upstream app {{ server {}; server {} backup; }}
             server {{ {LISTEN} location / {{ proxy_pass http://app; {directives} }} }}",
            dead.address(),
            alive.address()
        ))
    };
    let server = group("");
    assert_eq!(server.get("/get").text(), "run 1");
    assert_eq!((dead.count("/get"), alive.count("/get")), (1, 1));
    drop(server);
    let server = group("");
    assert_eq!(post(&server, "/post", "x").status, 502);
    assert_eq!((dead.count("/post"), alive.count("/post")), (1, 0));
    drop(server);
    let server = group("proxy_next_upstream error non_idempotent;");
    assert_eq!(post(&server, "/again", "the body").status, 200);
    assert_eq!(alive.asked("/again")[0].body, b"the body");
    drop(server);
    // A peer that does not listen got no byte of the request.
    dead.vanish();
    let server = group("");
    assert_eq!(post(&server, "/unsaid", "the body").status, 200);
    assert_eq!(alive.asked("/unsaid")[0].body, b"the body");
}

#[test]
fn statuses_are_tried_elsewhere_where_they_are_named() {
    let (busy, other) = (TestUpstream::start(), TestUpstream::start());
    busy.say("/", answer_of("503 Busy", "", "busy"));
    other.say("/", answer("", "other"));
    let server = http(&format!(
        "upstream app {{ server {}; server {} backup; }}
         server {{ {LISTEN} location / {{ proxy_pass http://app; proxy_next_upstream http_503; }} }}",
        busy.address(),
        other.address()
    ));
    assert_eq!(server.get("/").text(), "other");
    busy.say("/x", answer_of("502 Bad", "", "bad"));
    let server = serve(&busy, "", "");
    assert_eq!((server.get("/x").status, &*server.get("/x").text()), (502, "bad"));
}

#[test]
fn an_upstream_that_is_slow_or_sends_too_much_is_abandoned() {
    let origin = TestUpstream::start();
    origin.say("/long", answer(&format!("X-Long: {}", "x".repeat(20_000)), "body"));
    let server = serve(&origin, "proxy_read_timeout 300ms;", "");
    assert_eq!(server.get("/long").status, 502);
    logged(&server, "upstream sent too big header");
    origin.hold("/slow");
    for proto in Proto::TLS {
        assert_eq!(server.fetch(proto, "/slow").status, 504, "{proto:?}");
    }
    origin.release();
    logged(&server, "upstream timed out");
    let patient = serve(&origin, "proxy_buffer_size 32k; proxy_buffers 8 32k;", "");
    assert_eq!(patient.get("/long").status, 200);
}

#[test]
fn an_origin_is_left_when_the_client_leaves() {
    let origin = TestUpstream::scripted(|peer| {
        if peer.request().is_ok() {
            peer.to_end();
        }
    });
    for proxy in ["", "proxy_buffering off;"] {
        let server = serve(&origin, proxy, "");
        let before = origin.closed();
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        wait_until("the request", || origin.connections() == before + 1);
        drop(client);
        wait_until("the origin to be left", || origin.closed() == before + 1);
    }
}

#[test]
fn errors_lead_to_an_origin_and_from_it() {
    let origin = TestUpstream::start();
    origin.say("/gone", answer_of("404 Not Found", "", "the origin's own"));
    origin.say("/gone?fallback", answer("", "from the fallback"));
    origin.say("/missing.txt", answer("", "not a file"));
    let address = origin.address();
    let server = http(&format!(
        "server {{ {LISTEN}
             location / {{ try_files $uri @app; }}
             location @app {{ proxy_pass http://{address}; }}
             location /gone {{ proxy_pass http://{address}; proxy_intercept_errors on;
                 error_page 404 = @other; }}
             location @other {{ proxy_pass http://{address}; set $args fallback; }}
             location /refused {{ error_page 403 = @app; deny all; }} }}"
    ));
    assert_eq!(server.get("/hello.txt").body, site::HELLO);
    assert_eq!(server.get("/missing.txt").text(), "not a file");
    let reply = server.get("/gone");
    assert_eq!((reply.status, &*reply.text()), (200, "from the fallback"));
    assert_eq!(server.get("/refused").text(), "run 1");
}

#[test]
fn auth_request_may_use_an_upstream() {
    let origin = TestUpstream::start();
    origin.say("/may", answer_of("204 No Content", "X-User: carla", ""));
    let address = origin.address();
    let server = http(&format!(
        "server {{ {LISTEN}
             location / {{ auth_request /ask; auth_request_set $user $upstream_http_x_user;
                 add_header X-Is $user always; proxy_pass http://{address}; }}
             location = /ask {{ internal; proxy_pass http://{address}/may;
                 proxy_pass_request_body off; proxy_set_header Content-Length \"\";
                 proxy_set_header X-Original-URI $request_uri; }} }}"
    ));
    for proto in Proto::TLS {
        let curl = server.curl(proto).args(["-d", "the body"]);
        let reply = curl.get(&server.url(proto, "/page?x"));
        assert_eq!((reply.status, reply.header("x-is")), (200, Some("carla")), "{proto:?}");
        let asked = origin.asked("/may").pop().unwrap();
        assert_eq!(asked.field("x-original-uri"), Some("/page?x"));
        assert_eq!((asked.field("content-length"), asked.body.len()), (None, 0));
        assert_eq!(origin.asked("/page?x").pop().unwrap().body, b"the body");
    }
    assert_eq!(server.get("/ask").status, 404);
    origin.say("/may", answer_of("403 No", "", "no"));
    assert_eq!(server.get("/page?x").status, 403);
    origin.say("/may", answer_of("500 Oh", "", ""));
    assert_eq!(server.get("/page?x").status, 500);
    assert_eq!(origin.count("/page?x"), 3, "nobody else was let through");
}

#[test]
fn addresses_and_cookies_become_those_of_the_site() {
    let origin = TestUpstream::start();
    let address = origin.address();
    let fields = format!(
        "Location: http://{address}/base/there?x\nSet-Cookie: a=b; Domain=inner; Path=/base/x\n\
         Set-Cookie: keep=1; Path=/else\nRefresh: 5; url=http://{address}/base/r"
    );
    origin.say("/base/go", answer_of("302 Found", &fields, ""));
    let server = http(&format!(
        "server {{ {LISTEN} location /out/ {{ proxy_pass http://{address}/base/;
             proxy_cookie_domain inner outer.test; proxy_cookie_path /base/ /out/;
             proxy_cookie_flags a secure samesite=lax; }} }}"
    ));
    for proto in Proto::TLS {
        let reply = server.curl(proto).get(&server.url(proto, "/out/go"));
        let there = format!("{}/out/there?x", server.url(proto, ""));
        assert_eq!(reply.header("location"), Some(&*there), "{proto:?}");
        assert_eq!(reply.header("refresh"), Some("5; url=/out/r"), "{proto:?}");
        let cookies: Vec<_> =
            reply.headers.iter().filter(|(name, _)| name == "set-cookie").collect();
        assert_eq!(
            cookies[0].1, "a=b; Domain=outer.test; Path=/out/x; Secure; SameSite=Lax",
            "{proto:?}"
        );
        assert_eq!(cookies[1].1, "keep=1; Path=/else", "{proto:?}");
    }
}

fn logged(server: &TestServer, text: &str) {
    wait_until(text, || server.error_log().contains(text));
}

/// Reads up to the end of the head.
fn head_of(client: &mut H1TestClient) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(client.take(1).unwrap());
    }
    String::from_utf8(head).unwrap()
}
