//! RFC 9110's rules for intermediaries: hop-by-hop fields, interim responses, `Allow` in a 405,
//! requests without a host.

use bolide_testkit::origin::{answer, answer_of};
use bolide_testkit::server::LISTEN;
use bolide_testkit::{H1TestClient, Proto, TestApp, TestServer, TestUpstream};

use crate::{http, report, site};

const PARAMS: &str = concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/fastcgi.conf;");

#[test]
fn fields_that_connection_lists_reach_no_origin() {
    let (origin, app) = (TestUpstream::start(), TestApp::start());
    let server = http(&format!(
        "server {{ {LISTEN}
           location /http {{ proxy_pass http://{}; }}
           location /own {{ proxy_pass http://{0}; proxy_set_header X-One own; }}
           location /script {{ {PARAMS} fastcgi_pass {}; }} }}",
        origin.address(),
        app.address(),
    ));
    let fields = "Connection: X-One, x-two\r\nX-One: 1\r\nX-TWO: 2\r\nX-Kept: 3\r\n\
                  Proxy-Connection: keep-alive\r\nConnection: X-Three\r\nX-Three: 3\r\n";
    for path in ["/http", "/own", "/script"] {
        assert_eq!(server.connect().get(path, fields).status, 200, "{path}");
    }
    let asked = &origin.asked("/http")[0];
    for name in ["x-one", "x-two", "x-three", "proxy-connection", "keep-alive"] {
        assert_eq!(asked.field(name), None, "{name}");
    }
    assert_eq!(asked.field("x-kept"), Some("3"));
    assert!(!asked.all("connection").concat().to_ascii_lowercase().contains("x-"));
    // Fields of the configuration are ours.
    assert_eq!(origin.asked("/own")[0].all("x-one"), ["own"]);
    let got = &app.asked("/script")[0];
    for name in ["HTTP_X_ONE", "HTTP_X_TWO", "HTTP_X_THREE", "HTTP_PROXY_CONNECTION"] {
        assert_eq!(got.param(name), None, "{name}");
    }
    assert_eq!(got.param("HTTP_X_KEPT"), Some("3"));
}

#[test]
fn fields_that_an_origin_lists_reach_no_client() {
    let (origin, app) = (TestUpstream::start(), TestApp::start());
    let fields = "Connection: X-Secret, keep-alive\nX-Secret: 1\nProxy-Connection: close\n\
                  Keep-Alive: timeout=5\nTE: trailers\nX-Kept: 2";
    origin.say("/http", answer(fields, "body"));
    origin.say("/kept", answer(&format!("Cache-Control: max-age=60\n{fields}"), "body"));
    app.say("/script", fields);
    let server = http(&format!(
        "proxy_cache_path @DIR@/zone keys_zone=z:1m;
         server {{ {LISTEN}
           location /http {{ proxy_pass http://{}; }}
           location /kept {{ proxy_pass http://{0}; proxy_cache z; }}
           location /script {{ {PARAMS} fastcgi_pass {}; }} }}",
        origin.address(),
        app.address(),
    ));
    for path in ["/http", "/kept", "/kept", "/script"] {
        for proto in Proto::TLS {
            let reply = server.fetch(proto, path);
            assert_eq!((reply.status, reply.header("x-kept")), (200, Some("2")), "{path}");
            for name in ["x-secret", "proxy-connection", "keep-alive", "te"] {
                assert_eq!(reply.header(name), None, "{path} {proto:?} {name}");
            }
        }
    }
}

#[test]
fn a_request_with_hidden_fields_does_not_use_the_cache() {
    let origin = TestUpstream::start();
    origin.plan(
        "/page",
        vec![
            answer("Cache-Control: max-age=60\nVary: X-Kind", "without"),
            answer("Cache-Control: max-age=60\nVary: X-Kind", "with"),
        ],
    );
    let server = http(&format!(
        "server {{ {LISTEN} location / {{ proxy_pass http://{}; page_cache auto; }} }}",
        origin.address()
    ));
    let hidden = "X-Kind: a\r\nConnection: X-Kind\r\n";
    assert_eq!(server.connect().get("/page", hidden).text(), "without");
    for _ in 0..2 {
        assert_eq!(server.connect().get("/page", "X-Kind: a\r\n").text(), "with");
    }
    assert_eq!(origin.count("/page"), 2);
}

#[test]
fn a_405_has_allow() {
    let origin = TestUpstream::start();
    origin.say("/app/own", answer_of("405 No", "Allow: PURR", "no"));
    origin.say("/app/bare", answer_of("405 No", "", "no"));
    let server = http(&format!(
        "server {{ {LISTEN} error_page 418 =405 /hello.txt;
           location /app/ {{ proxy_pass http://{}; }}
           location /cached/ {{ proxy_pass http://{0}; page_cache on; page_cache_purge_allow off; }}
           location /refused/ {{ if ($request_method = DELETE) {{ return 405; }}
                                 proxy_pass http://{0}; }}
           location /said/ {{ add_header Allow QUERY always; return 405; }}
           location /text/ {{ return 405 text; }}
           location /page/ {{ error_page 405 /hello.txt; return 405; }}
           location /gif {{ empty_gif; }} }}",
        origin.address()
    ));
    let all = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
    let rows = [
        ("POST", "/hello.txt", vec!["GET, HEAD"]),
        ("OPTIONS", "/hello.txt", vec!["GET, HEAD"]),
        ("TRACE", "/hello.txt", vec!["GET, HEAD"]),
        ("POST", "/gif", vec!["GET, HEAD"]),
        ("POST", "/text/", vec!["GET, HEAD"]),
        ("POST", "/page/", vec!["GET, HEAD"]),
        ("HEAD", "/text/", vec!["GET"]),
        ("POST", "/said/", vec!["QUERY"]),
        ("PURGE", "/cached/", vec![all]),
        ("DELETE", "/refused/", vec!["GET, HEAD, POST, PUT, PATCH, OPTIONS"]),
        ("GET", "/app/own", vec!["PURR"]),
        // A 405 of the upstream is passed unchanged.
        ("GET", "/app/bare", vec![]),
    ];
    let mut failures = Vec::new();
    for (method, path, wanted) in &rows {
        let reply = server.connect().ask(&format!("{method} {path} HTTP/1.1\r\nHost: localhost"));
        let fields = reply.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("allow"));
        let found: Vec<&str> = fields.map(|(_, value)| value.as_str()).collect();
        if (reply.status, &found) != (405, wanted) {
            failures.push(format!("{method} {path}: {} {found:?}", reply.status));
        }
    }
    report(rows.len(), &failures);
    for proto in [Proto::H2, Proto::H3] {
        let reply = server.curl(proto).args(["-X", "POST"]).get(&server.url(proto, "/hello.txt"));
        assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD")), "{proto:?}");
    }
}

#[test]
fn heads_before_the_answer_go_on_to_clients_that_know_them() {
    let origin = TestUpstream::scripted(|peer| {
        while let Ok(request) = peer.request() {
            peer.remember(request);
            let sent = peer.send(
                "HTTP/1.1 102 Processing\r\nX-Step: one\r\n\r\n\
                 HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nX-Own: 1\r\n\
                 Connection: X-Gone\r\nX-Gone: 1\r\nKeep-Alive: x\r\nContent-Length: 7\r\n\r\n\
                 HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody",
            );
            if sent.is_err() {
                return;
            }
        }
    });
    let server = http(&format!(
        "server {{ {LISTEN} location / {{ early_hints 1; proxy_pass http://{}; }} }}",
        origin.address()
    ));
    for proto in Proto::TLS {
        let reply = server.fetch(proto, "/");
        assert_eq!((reply.status, &*reply.text()), (200, "body"), "{proto:?}");
        let before: Vec<String> = reply.before.iter().map(|it| it.to_ascii_lowercase()).collect();
        let [processing, hints] = &before[..] else { panic!("{proto:?}: {before:?}") };
        assert!(processing.contains(" 102") && processing.contains("x-step: one"), "{processing}");
        let has = |text: &str| hints.contains(text);
        assert!(has(" 103") && has("link: </a.css>; rel=preload") && has("x-own: 1"), "{hints}");
        assert!(!has("x-gone") && !has("keep-alive") && !has("content-length"), "{hints}");
    }
    let mut old = server.connect();
    old.send("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(old.answer().status, 200, "RFC 9110 §15.2: none for HTTP/1.0");
}

#[test]
fn expect_100_continue_is_answered_by_each_protocol() {
    let origin = TestUpstream::scripted(|peer| {
        while peer.request().is_ok() {
            if peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody").is_err() {
                return;
            }
        }
    });
    let server = http(&format!(
        "server {{ {LISTEN} location / {{ proxy_pass http://{0}; }}
             location /unbuffered {{ proxy_request_buffering off; proxy_pass http://{0}; }}
             location /refused {{ deny all; }} }}",
        origin.address()
    ));
    for proto in Proto::TLS {
        for (path, status) in [("/", 200), ("/unbuffered", 200), ("/refused", 403)] {
            let upload = ["-H", "Expect: 100-continue", "--expect100-timeout", "60", "-d", "abc"];
            let reply = server.curl(proto).args(upload).attempt(&server.url(proto, path));
            assert_eq!((reply.exit, reply.status), (0, status), "{proto:?} {path}");
            let goes_on = reply.before.iter().any(|head| head.contains(" 100"));
            assert_eq!(goes_on, status == 200, "{proto:?} {path}: {:?}", reply.before);
        }
    }
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;

/// The result of a request with these fields over HTTP/2: `head`, `reset CODE` or `goaway`.
fn h2_outcome(server: &TestServer, fields: &[(&str, &str)]) -> String {
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        out.extend([kind, flags]);
        out.extend(stream.to_be_bytes());
        out.extend(payload);
        out
    };
    let mut block = Vec::new();
    for (name, value) in fields {
        block.extend([0, name.len() as u8]);
        block.extend(name.bytes());
        block.push(value.len() as u8);
        block.extend(value.bytes());
    }
    let mut client: H1TestClient = server.connect();
    client.send(PREFACE).send(frame(4, 0, 0, &[])).send(frame(HEADERS, 5, 1, &block));
    let mut is_refused = false;
    loop {
        let head = client.take(9).expect("a frame");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let payload = client.take(length).expect("its payload");
        match head[3] {
            // The static table's entry of `:status: 400` (RFC 7541).
            HEADERS if payload[0] == 0x8c => is_refused = true,
            HEADERS => return "head".to_owned(),
            RST_STREAM if is_refused => return format!("400, reset {}", payload[3]),
            RST_STREAM => return format!("reset {}", payload[3]),
            GOAWAY => return "goaway".to_owned(),
            _ => {}
        }
    }
}

#[test]
fn requests_without_host_or_scheme_are_malformed_over_h2() {
    let server = site("");
    let head = |scheme: &'static str, more: &[(&'static str, &'static str)]| {
        let mut fields = vec![(":method", "GET"), (":scheme", scheme), (":path", "/hello.txt")];
        fields.extend(more);
        fields
    };
    let authority = (":authority", "localhost");
    let rows = [
        (head("http", &[authority]), "head"),
        (head("a+b-c.1", &[authority]), "head"),
        (head("http", &[("host", "localhost")]), "head"),
        (head("ht tp", &[authority]), "400, reset 1"),
        (head("1http", &[authority]), "400, reset 1"),
        (head("http:", &[authority]), "400, reset 1"),
        (head("", &[authority]), "400, reset 1"),
        (head("http", &[]), "400, reset 1"),
    ];
    let found: Vec<String> = rows.iter().map(|row| h2_outcome(&server, &row.0)).collect();
    assert_eq!(found, rows.each_ref().map(|row| row.1));
}
