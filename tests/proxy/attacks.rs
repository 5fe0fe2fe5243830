//! Attacks: clients that smuggle requests to an upstream, and upstreams that send responses to
//! wrong clients or exhaust memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bolide_testkit::origin::{answer, answer_of};
use bolide_testkit::server::LISTEN;
use bolide_testkit::{Proto, TestServer, TestUpstream, wait_until};

use super::{post, serve};
use crate::http;

/// A request that no client makes.
const INNER: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

const CHUNKED: &str = "Transfer-Encoding: chunked\r\n\r\n";

/// Ambiguous framing; `@` is the length of [`INNER`].
const REFUSED: [&str; 22] = [
    "Content-Length: @\r\nTransfer-Encoding: chunked\r\n",
    "Transfer-Encoding: chunked\r\nContent-Length: @\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    "Transfer-Encoding: identity, chunked\r\n",
    "Transfer-Encoding: xchunked\r\n",
    "Transfer-Encoding: \x0bchunked\r\n",
    "Transfer-Encoding: chunked\x0b\r\n",
    "Transfer-Encoding: \"chunked\"\r\n",
    "Transfer-Encoding: chunked;q=1\r\n",
    "Transfer-Encoding : chunked\r\n",
    "Transfer-Encoding\t: chunked\r\n",
    "Content-Length : @\r\n",
    "Content-Length: @\r\nContent-Length: 0\r\n",
    "Content-Length: 0\r\nContent-Length: @\r\n",
    "Content-Length: 0, @\r\n",
    "Content-Length: +@\r\n",
    "Content-Length: 0x10\r\n",
    "Content-Length: @ 0\r\n",
    "Content-Length: -1\r\n",
    "X: 1\r\n Transfer-Encoding: chunked\r\nContent-Length: @\r\n",
    "\tTransfer-Encoding: chunked\r\nContent-Length: @\r\n",
    "X: \x001\r\nContent-Length: @\r\n",
];

fn smuggled(origin: &TestUpstream) -> usize {
    origin.all().iter().filter(|asked| asked.line().contains("smuggled")).count()
}

#[test]
fn an_ambiguous_request_reaches_no_upstream() {
    let origin = TestUpstream::start();
    let lenient = "ignore_invalid_headers off; underscores_in_headers on;";
    for (location, more) in [("", ""), ("proxy_request_buffering off;", lenient)] {
        let server = serve(&origin, location, more);
        for framing in REFUSED {
            let framing = framing.replace('@', &INNER.len().to_string());
            let text = format!("POST /outer HTTP/1.1\r\nHost: a\r\n{framing}\r\n0\r\n\r\n{INNER}");
            let mut client = server.connect();
            let status = client.send(text).try_answer("POST").map(|reply| reply.status);
            assert!(matches!(status, Ok(400 | 501)), "{framing:?}: {status:?}");
            assert!(client.is_closed(), "{framing:?}");
        }
        assert!(origin.all().is_empty(), "{:?}", origin.all());
    }
}

#[test]
fn a_request_inside_a_body_is_not_a_request() {
    let origin = TestUpstream::start();
    let len = INNER.len();
    for location in [
        "",
        "proxy_request_buffering off;",
        "proxy_set_header Transfer-Encoding \"\";
        proxy_set_header Content-Length $http_x_len; proxy_request_buffering off;",
    ] {
        let server = serve(&origin, location, "underscores_in_headers on;");
        let mut client = server.connect();
        for method in ["GET", "POST", "DELETE", "OPTIONS"] {
            let outer = format!(
                "{method} /outer HTTP/1.1\r\nHost: a\r\nX-Len: 1\r\nContent_Length: 3\r\n\
                 Transfer_Encoding: chunked\r\n"
            );
            for framed in [
                format!("{outer}Content-Length: {len}\r\n\r\n{INNER}"),
                format!("{outer}{CHUNKED}{len:x};a=b\r\n{INNER}\r\n0\r\n\r\n"),
                format!("{outer}{CHUNKED}0\r\nContent-Length: 5\r\n\r\n"),
            ] {
                let body = if framed.contains("\r\n0\r\nC") { "" } else { INNER };
                client.send(framed);
                assert_eq!(client.answer().status, 200, "{location}");
                let asked = origin.all().pop().unwrap();
                assert_eq!(asked.line(), format!("{method} /outer HTTP/1.1"));
                assert_eq!(String::from_utf8_lossy(&asked.body), body, "{location} {}", asked.head);
                let lengths = asked.all("content-length").len();
                assert!(lengths + asked.all("transfer-encoding").len() <= 1, "{}", asked.head);
            }
        }
        assert_eq!(smuggled(&origin), 0);
    }
}

#[test]
fn a_body_that_is_not_passed_on_is_not_announced() {
    let origin = TestUpstream::start();
    for length in ["", "5", "$content_length"] {
        let location =
            format!("proxy_pass_request_body off; proxy_set_header Content-Length \"{length}\";");
        let server = serve(&origin, &location, "");
        for run in 0..3 {
            assert_eq!(post(&server, "/outer", INNER).status, 200, "{length} {run}");
            let asked = origin.all().pop().unwrap();
            assert_eq!((asked.field("content-length"), asked.body.len()), (None, 0));
        }
    }
    assert_eq!(smuggled(&origin), 0);
}

#[test]
fn the_target_is_a_path_for_every_request_form() {
    let origin = TestUpstream::start();
    let server = serve(&origin, "", "");
    for (line, target) in [
        ("GET http://other.test/abs?q HTTP/1.1", "/abs?q"),
        ("GET http://other.test HTTP/1.1", "/"),
        ("GET /a/../b HTTP/1.1", "/a/../b"),
        ("GET //x HTTP/1.1", "//x"),
    ] {
        assert_eq!(server.connect().ask(&format!("{line}\r\nHost: a")).status, 200, "{line}");
        assert_eq!(origin.all().pop().unwrap().target(), target, "{line}");
    }
    let before = origin.all().len();
    for line in
        ["GET /../a HTTP/1.1", "GET a HTTP/1.1", "CONNECT a:1 HTTP/1.1", "GET /%00 HTTP/1.1"]
    {
        let status = server.connect().ask(&format!("{line}\r\nHost: a")).status;
        assert!(matches!(status, 400 | 405), "{line}: {status}");
    }
    assert_eq!(origin.all().len(), before);
}

#[test]
fn line_ends_in_variables_begin_nothing() {
    let origin = TestUpstream::start();
    let address = origin.address();
    let server = http(&format!(
        "server {{ {LISTEN} set $to {address};
             location /field {{ proxy_pass http://{address}/x; proxy_set_header X-Uri \"$uri\";
                 proxy_set_header Host $uri; proxy_set_header Content-Length $uri; }}
             location /kept-body {{ proxy_pass http://{address}/x;
                 proxy_set_header X-Body $request_body; }}
             location /body {{ proxy_pass http://{address}/x; proxy_set_body \"$uri\"; }}
             location /text {{ proxy_pass http://$to$uri; }}
             location ~ ^/capture/([^x]*)$ {{ proxy_pass http://$to/$1?$1; }}
             location ~ ^/named/(?<rest>[^x]*)$ {{ proxy_pass http://{address}; proxy_method $rest; }}
             location /kept/ {{ proxy_pass http://{address}; }}
             location /base/ {{ proxy_pass http://{address}/other/; }}
             location /break/ {{ rewrite ^/break/([^x]*)$ /$1 break; proxy_pass http://{address}; }}
             location /last/ {{ rewrite ^/last/([^x]*)$ /kept/$1 last; }}
             location /query/ {{ rewrite ^/query/([^x]*)$ /x?a=$1? break; proxy_pass http://{address}; }} }}"
    ));
    for place in
        ["field", "body", "text", "capture", "named", "kept", "base", "break", "last", "query"]
    {
        for evil in [
            "%0d%0aEvil:%201",
            "%0aEvil:%201",
            "%0d%0a%0d%0aGET%20/smuggled%20HTTP/1.1%0d%0aA:%20b%0d%0a%0d%0a",
        ] {
            for proto in Proto::TLS {
                let path = format!("/{place}/{evil}");
                let reply = server.curl(proto).get(&server.url(proto, &path));
                assert!([200, 500, 502].contains(&reply.status), "{path}: {}", reply.status);
                assert_eq!(reply.header("evil"), None);
            }
        }
    }
    assert_eq!(post(&server, "/kept-body", "a\r\nEvil: 1\r\n\r\nGET /smuggled").status, 200);
    assert_eq!(origin.all().pop().unwrap().field("x-body"), Some("aEvil: 1GET /smuggled"));
    for asked in origin.all() {
        assert!(asked.field("evil").is_none(), "{}", asked.head);
        assert!(asked.line().ends_with(" HTTP/1.1"), "{}", asked.head);
        assert!(!asked.line().starts_with("GET /smuggled"), "{}", asked.head);
        assert!(
            asked.head.split("\r\n").all(|line| !line.contains(['\r', '\n'])),
            "{}",
            asked.head
        );
    }
}

// What a client asks is no failure of the servers: otherwise one request would disable them all.
#[test]
fn a_request_that_no_server_can_be_sent_disables_none() {
    let [one, two] = [TestUpstream::start(), TestUpstream::start()];
    let server = http(&format!(
        "upstream app {{ server {}; server {}; }}
         server {{ {LISTEN}
             location / {{ proxy_pass http://app$uri; }}
             location /named/ {{ error_page 404 /x?u=$uri; return 404; }}
             location /x {{ proxy_pass http://app; }}
             location ~ ^/method/(?<rest>[^x]*)$ {{ proxy_pass http://app; proxy_method $rest; }}
             location /set {{ set $args $uri; proxy_pass http://app; }} }}",
        one.address(),
        two.address()
    ));
    for path in ["/a%0ab", "/a%0d%0ab", "/named/%0a", "/method/%0aGET", "/set%0a"] {
        for _ in 0..3 {
            assert_eq!(server.get(path).status, 502, "{path}");
        }
        for _ in 0..4 {
            assert_eq!(server.get("/fine").status, 200, "behind {path}");
        }
    }
    let log = server.error_log();
    assert!(!log.contains("disabled") && !log.contains("no live upstreams"), "{log}");
    assert!([&one, &two].iter().all(|upstream| upstream.count("/fine") > 0), "{log}");
}

#[test]
fn line_ends_in_variables_split_no_answer() {
    let origin = TestUpstream::start();
    let address = origin.address();
    let fields = "Location: http://a/there\nSet-Cookie: a=b; Path=/; Domain=a";
    let server = http(&format!(
        "server {{ {LISTEN} location / {{ proxy_pass http://{address}/fixed;
             proxy_redirect http://a/ http://b/$uri; proxy_cookie_path / $uri;
             proxy_cookie_domain a $uri; add_header X-Uri $uri; }} }}"
    ));
    let path = "/x%0d%0aEvil:%201%0d%0a%0d%0a<script>";
    let target = "/fixedx%0D%0AEvil:%201%0D%0A%0D%0A%3Cscript%3E";
    origin.say(target, answer_of("302 Found", fields, "b"));
    for proto in Proto::TLS {
        let reply = server.curl(proto).args(["--globoff"]).attempt(&server.url(proto, path));
        assert_eq!(reply.exit, 0, "{proto:?}: {}", reply.stderr);
        assert_eq!(reply.header("evil"), None, "{proto:?}");
    }
    let mut client = server.connect();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    let text = String::from_utf8(client.to_end().unwrap()).unwrap();
    assert!(!text.contains("\nEvil"), "{text}");
    let asked = origin.all().pop().unwrap();
    assert!(text.starts_with("HTTP/1.1 302"), "the rules were not tried: {} {text}", asked.line());
}

#[test]
fn bytes_after_an_upstream_response_reach_no_client() {
    const EVIL: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    let origin = TestUpstream::scripted(|peer| {
        while let Ok(request) = peer.request() {
            let text = match request.target() {
                "/length" | "/late" => "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood",
                "/chunks" => {
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n0\r\n\r\n"
                }
                "/304" => "HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n",
                "/204" => "HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\n",
                "/empty" => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                _ => "HTTP/1.1 200 OK\r\nContent-Length: 45\r\n\r\n",
            };
            if request.target() == "/good" {
                peer.send(answer("", "good")).unwrap();
                continue;
            }
            if request.target() == "/late" {
                // Only once the response is complete and its connection kept.
                peer.send(text).unwrap();
                peer.wait("/late");
                let _left = peer.send(EVIL);
            } else {
                let _left = peer.send(format!("{text}{EVIL}"));
            }
        }
    });
    let server = serve(&origin, "", "");
    for (method, path) in [
        ("GET", "/length"),
        ("GET", "/chunks"),
        ("GET", "/304"),
        ("GET", "/204"),
        ("GET", "/empty"),
        ("HEAD", "/head"),
        ("HEAD", "/chunks"),
    ] {
        for _ in 0..3 {
            let head = format!("{method} {path} HTTP/1.1\r\nHost: a");
            let mut client = server.connect();
            let reply = client.ask(&head);
            assert!(matches!(reply.text().as_str(), "" | "good"), "{path}: {}", reply.text());
            // The next request gets its own response, over any connection.
            assert_eq!(client.get("/good", "").text(), "good", "behind {method} {path}");
            assert_eq!(server.get("/good").text(), "good", "behind {method} {path}");
        }
    }
    let made = origin.connections();
    origin.hold("/late");
    assert_eq!(server.get("/late").text(), "good");
    let closed = origin.closed();
    origin.release();
    wait_until("the connection to be given up", || origin.closed() > closed);
    assert_eq!(server.get("/good").text(), "good");
    assert!(origin.connections() > made);
}

#[test]
fn the_request_method_decides_whether_there_is_a_body() {
    // The body comes only when the next request may be in progress.
    let origin = TestUpstream::scripted(|peer| {
        while let Ok(request) = peer.request() {
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 46\r\n\r\n";
            if request.target() == "/good" {
                peer.send(answer("", "good")).unwrap();
            } else if request.method() == "HEAD" {
                peer.send(head).unwrap();
            } else {
                peer.send(head).unwrap();
                peer.wait("/x");
                let _left = peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nevil body.");
            }
        }
    });
    let as_get = "location /x { proxy_pass http://app; proxy_method GET; }";
    let server = serve(&origin, "", as_get);
    origin.hold("/x");
    let mut client = server.connect();
    assert_eq!(client.ask("HEAD /x HTTP/1.1\r\nHost: a").status, 200);
    assert_eq!(server.get("/good").text(), "good");
    origin.release();
    for _ in 0..3 {
        assert_eq!(server.get("/good").text(), "good");
    }
    let as_head = "location /x { proxy_pass http://app; proxy_method HEAD; }";
    let server = serve(&origin, "proxy_read_timeout 2s;", as_head);
    let mut client = server.connect();
    client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    // There is no body to send; no other bytes may take its place.
    let got = client.try_answer("GET");
    assert!(
        got.as_ref().is_err() || got.as_ref().is_ok_and(|reply| reply.body.is_empty()),
        "{got:?}"
    );
    assert_eq!(server.get("/good").text(), "good");
}

#[test]
fn a_connection_with_half_a_request_on_it_is_not_used_again() {
    let origin = TestUpstream::scripted(|peer| {
        while let Ok(request) = peer.head() {
            peer.remember(request);
            peer.send(answer("", "early")).unwrap();
        }
    });
    let server = serve(&origin, "proxy_request_buffering off;", "");
    for run in 1..=3 {
        let mut client = server.connect();
        let len = INNER.len() + 5;
        client
            .send(format!("POST /outer HTTP/1.1\r\nHost: a\r\nContent-Length: {len}\r\n\r\nfirst"));
        assert_eq!(client.answer().text(), "early");
        client.send(INNER);
        assert_eq!(server.get("/next").text(), "early");
        wait_until("the next request", || origin.count("/next") == run);
    }
    assert_eq!(smuggled(&origin), 0, "{:?}", origin.all());
}

#[test]
fn heads_that_are_read_in_two_ways_are_refused() {
    let origin = TestUpstream::start();
    let server = serve(&origin, "", "");
    for (at, fields) in [
        "X: a\rSet-Cookie: evil=1\r\n",
        "X: a\0b\r\n",
        "X: a\r\n folded: b\r\n",
        "X: a\r\n\tfolded\r\n",
        "Content-Length : 4\r\n",
        "Content-Length: 4\r\nContent-Length: 50\r\n",
        "Content-Length: 4, 4\r\n",
        "Content-Length: +4\r\n",
        "Content-Length: 0x4\r\n",
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        ": nameless\r\n",
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/{at}");
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n4\r\nevil\r\n0\r\n\r\n");
        origin.say(&path, text.into_bytes());
        for proto in Proto::TLS {
            let reply = server.fetch(proto, &path);
            assert_eq!(reply.status, 502, "{fields:?} {proto:?}");
            assert_eq!(reply.header("set-cookie"), None);
        }
        assert_eq!(server.get("/good").status, 200);
    }
}

#[test]
fn floods_of_interim_heads_and_empty_frames_end() {
    let origin = TestUpstream::scripted(|peer| {
        let Ok(request) = peer.request() else { return };
        match request.target() {
            "/early" => while peer.send("HTTP/1.1 100 Continue\r\n\r\n").is_ok() {},
            "/hints" => while peer.send("HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n").is_ok() {},
            "/head" => {
                let mut alive = peer.send("HTTP/1.1 200 OK\r\n").is_ok();
                while alive {
                    alive = peer.send("X-More: of the same\r\n").is_ok();
                }
            }
            "/line" => {
                let mut alive = peer.send("HTTP/1.1 200 ").is_ok();
                while alive {
                    alive = peer.send("OKOKOKOKOKOKOKOK").is_ok();
                }
            }
            _ => {
                let head =
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n";
                peer.send(head).unwrap();
                for _ in 0..300 {
                    let _left = peer.send(format!("X-{}: y\r\n", "x".repeat(20_000)));
                }
                let _left = peer.send("\r\n");
            }
        }
        peer.finish();
        peer.to_end();
    });
    let server = serve(&origin, "proxy_pass_trailers on;", "");
    for (at, path) in ["/early", "/hints", "/head", "/line"].into_iter().enumerate() {
        for proto in Proto::TLS {
            assert_eq!(server.fetch(proto, path).status, 502, "{path} {proto:?}");
        }
        wait_until("the origin to be left", || origin.closed() == 3 * (at + 1));
    }
    let before = server.resident_kib();
    assert_eq!(server.get("/trailers").text(), "body");
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 3 * 1024, "{grown} KiB");
}

#[test]
fn an_inner_address_is_for_origins_and_not_for_clients() {
    let origin = TestUpstream::start();
    let accel = "X-Accel-Redirect: /inner/hello.txt\nSet-Cookie: a=b\nX-Own: 1";
    origin.say("/give", answer(accel, "not this"));
    origin.say("/out", answer("X-Accel-Redirect: http://evil.test/", "b"));
    origin.say("/up", answer("X-Accel-Redirect: /inner/../../logs/error.log", "b"));
    origin.say("/ignored", answer(accel, "the body"));
    let more = "location /inner/ { internal; alias @DIR@/www/; }
        location /ignored { proxy_pass http://app; proxy_ignore_headers X-Accel-Redirect; }";
    let server = serve(&origin, "", more);
    let reply = server.get("/give");
    assert_eq!(reply.body, bolide_testkit::site::HELLO);
    assert_eq!((reply.header("set-cookie"), reply.header("x-own")), (Some("a=b"), None));
    assert_eq!(server.get("/inner/hello.txt").status, 404);
    let forged = "X-Accel-Redirect: /inner/hello.txt\r\n";
    assert_eq!(server.connect().get("/plain", forged).text(), "run 1");
    assert_ne!(server.get("/up").status, 200);
    assert!(!server.get("/out").text().contains("evil"));
    let ignored = server.get("/ignored");
    assert_eq!((&*ignored.text(), ignored.header("x-accel-redirect")), ("the body", None));
}

/// Waits until a counter stays the same for some time.
fn settled(counter: &AtomicU64) -> u64 {
    let mut last = u64::MAX;
    wait_until("the sender to be held back", || {
        bolide_testkit::pause(200);
        let now = counter.load(Ordering::Acquire);
        std::mem::replace(&mut last, now) == now && now > 0
    });
    last
}

#[test]
fn neither_side_fills_our_memory_for_the_other() {
    let sent = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&sent);
    let origin = TestUpstream::scripted(move |peer| {
        let Ok(request) = peer.head() else { return };
        let is_upload = request.method() == "POST";
        peer.remember(request);
        if is_upload {
            // Reads nothing until it is released.
            peer.wait("/up");
            return;
        }
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n").unwrap();
        while peer.send([0; 65_536]).is_ok() {
            counted.fetch_add(65_536, Ordering::AcqRel);
        }
    });
    for buffers in ["proxy_max_temp_file_size 0;", "proxy_buffering off;"] {
        let server = serve(&origin, buffers, "");
        let before = server.resident_kib();
        sent.store(0, Ordering::Release);
        let clients: Vec<_> = Proto::TLS
            .map(|_| {
                let mut client = server.connect();
                client.send("GET /down HTTP/1.1\r\nHost: a\r\n\r\n");
                client
            })
            .into_iter()
            .collect();
        let got = settled(&sent);
        let grown = server.resident_kib().saturating_sub(before);
        assert!(grown < 8 * 1024, "{buffers}: {grown} KiB, {got} bytes sent");
        drop(clients);
    }
    let server = serve(&origin, "proxy_request_buffering off;", "");
    let before = server.resident_kib();
    origin.hold("/up");
    let address = server.http();
    let sent = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&sent);
    let sender = std::thread::spawn(move || {
        use std::io::Write;
        let mut socket = std::net::TcpStream::connect(address).unwrap();
        let head = "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n";
        socket.write_all(head.as_bytes()).unwrap();
        while socket.write_all(&[0; 65_536]).is_ok() {
            counted.fetch_add(65_536, Ordering::AcqRel);
        }
    });
    let got = settled(&sent);
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 8 * 1024, "{grown} KiB, {got} bytes sent");
    origin.release();
    drop(server);
    sender.join().unwrap();
}

#[test]
fn a_group_with_two_protocols_does_not_mix_connections() {
    // The end of FastCGI's empty STDIN, and a response to it.
    const STDIN_END: [u8; 8] = [1, 5, 0, 1, 0, 0, 0, 0];
    let origin = TestUpstream::scripted(|peer| {
        if peer.number == 0 {
            while peer.until(&STDIN_END).is_ok() {
                let text = b"Content-Type: text/plain\r\n\r\nfastcgi";
                let mut out = vec![1, 6, 0, 1, 0, text.len() as u8, 0, 0];
                out.extend_from_slice(text);
                out.extend_from_slice(&[1, 6, 0, 1, 0, 0, 0, 0, 1, 3, 0, 1, 0, 8, 0, 0]);
                out.extend_from_slice(&[0; 8]);
                peer.send(out).unwrap();
            }
        } else {
            while peer.answer_as_planned().is_ok() {}
        }
    });
    let more = "location /app { fastcgi_pass app; fastcgi_keep_conn on; }";
    let server = serve(&origin, "", more);
    assert_eq!(server.get("/app").text(), "fastcgi");
    assert_eq!(server.get("/app").text(), "fastcgi");
    assert_eq!(origin.connections(), 1);
    assert_eq!(server.get("/http").text(), "run 1");
    assert_eq!(server.get("/http").text(), "run 2");
    assert_eq!(origin.connections(), 2);
}

#[test]
fn trailers_are_passed_on_where_that_is_wanted() {
    let origin = TestUpstream::start();
    let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n4\r\n\
                body\r\n0\r\n\
                X-T: one\r\nX-T: two\r\nX-Hide: x\r\nContent-Length: 3\r\nTransfer-Encoding: \
                chunked\r\nConnection: close\r\nServer: q\r\nX-Accel-Expires: 4\r\n\r\n";
    for path in ["/on", "/off", "/added"] {
        origin.say(path, text.as_bytes().to_vec());
    }
    origin.say("/length", answer("", "plain"));
    let more = "proxy_hide_header X-Hide;
        location /off { proxy_pass http://app; proxy_pass_trailers off; }
        location /added { proxy_pass http://app; add_trailer X-A a$upstream_trailer_x_t; }";
    let server = serve(&origin, "", &format!("proxy_pass_trailers on; {more}"));
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let passed = [("x-t", "one"), ("x-t", "two")];
    for proto in Proto::TLS {
        let on = server.fetch(proto, "/on");
        assert_eq!((&*on.text(), on.trailers), ("body", pairs(&passed)), "{proto:?}");
        let off = server.fetch(proto, "/off");
        assert_eq!((&*off.text(), off.trailers), ("body", Vec::new()), "{proto:?}");
        let added = server.fetch(proto, "/added");
        let all = [passed[0], passed[1], ("x-a", "aone, two")];
        assert_eq!(added.trailers, pairs(&all), "{proto:?}");
        let length = server.fetch(proto, "/length");
        assert_eq!((&*length.text(), length.trailers.len()), ("plain", 0), "{proto:?}");
        assert_eq!(length.header("content-length"), Some("5"));
    }
    let old: Vec<u8> = {
        let mut client = server.connect();
        client.send("GET /on HTTP/1.0\r\n\r\n").to_end().unwrap()
    };
    assert!(old.ends_with(b"\r\n\r\nbody"));
}

/// The server's message for an invalid word in its configuration.
fn complaint(directives: &str) -> String {
    let home = TestServer::site(crate::BOLIDE, "");
    let conf =
        format!("events {{}} http {{ server {{ listen 1; location / {{ {directives} }} }} }}");
    let path = home.home().write("bad.conf", &conf);
    home.home().run(&["-t", "-c", path.to_str().unwrap()]).stderr
}

#[test]
fn wrong_arguments_are_reported_with_their_line() {
    for (directives, text) in [
        ("proxy_pass ftp://a;", "invalid URL prefix"),
        (
            "proxy_pass_trailers yes;",
            "\"yes\" in \"proxy_pass_trailers\" directive, it must be \"on\" or \"off\"",
        ),
        ("proxy_http_version 3;", "invalid value \"3\""),
        ("proxy_redirect on;", "invalid parameter \"on\""),
        (
            "proxy_redirect default;",
            "\"proxy_redirect default\" should be placed after the \"proxy_pass\" directive",
        ),
        ("proxy_set_header a;", "invalid number of arguments in \"proxy_set_header\" directive"),
    ] {
        let message = complaint(directives);
        assert!(
            message.contains(text) && message.contains("bad.conf:1"),
            "{directives}: {message}"
        );
    }
}
