//! RFC 9112's rules for both sides of HTTP/1: ambiguous lines are refused.

use bolide_testkit::TestUpstream;
use bolide_testkit::origin::answer;
use bolide_testkit::server::LISTEN;

use crate::{http, report, site};

const HOST: &str = "Host: localhost\r\n";

#[test]
fn a_version_has_one_digit_on_each_side() {
    let server = site("");
    let rows =
        [("1.1", 200), ("1.2", 200), ("1.9", 200), ("1.10", 400), ("1.01", 400), ("1.00", 400)];
    let mut failures = Vec::new();
    for (version, status) in rows {
        let mut client = server.connect();
        let found = client.ask(&format!("GET /hello.txt HTTP/{version}\r\n{HOST}X: y")).status;
        if found != status {
            failures.push(format!("{version}: {found}"));
        }
    }
    report(rows.len(), &failures);
}

#[test]
fn a_response_without_a_status_line_is_an_error() {
    let good = TestUpstream::start();
    good.say("/next", answer("", "from the next"));
    let bad = TestUpstream::scripted(|peer| {
        let Ok(request) = peer.request() else { return };
        let text = match request.target() {
            "/icy" => "ICY 200 OK\r\n\r\nbody",
            "/blank" => "\r\nHTTP/1.1 200 OK\r\n\r\nbody",
            "/short" => "HTTP/1.1 20 OK\r\n\r\nbody",
            _ => "garbage instead of a status line\r\n\r\nbody",
        };
        peer.send(text).unwrap();
        peer.finish();
        peer.to_end();
    });
    let server = http(&format!(
        "upstream both {{ server {}; server {} backup; }}
         server {{ {LISTEN}
           location / {{ proxy_pass http://{0}; }}
           location /next {{ proxy_pass http://both; proxy_next_upstream invalid_header; }} }}",
        bad.address(),
        good.address()
    ));
    for path in ["/garbage", "/icy", "/blank", "/short"] {
        let reply = server.get(path);
        assert_eq!(reply.status, 502, "{path}: {:?}", reply.text());
    }
    assert!(server.error_log().contains("upstream sent no valid HTTP/1.0 header while reading"));
    assert_eq!(server.get("/next").text(), "from the next");
}

#[test]
fn a_chunk_line_follows_the_grammar() {
    let server = site("");
    let rows = [
        ("5", 405),
        ("5;a", 405),
        ("5 ; a = b ;c", 405),
        ("5;a=\"x;\\\"y\";b=c", 405),
        ("5 ", 400),
        ("5\t", 400),
        ("5;a=\"", 400),
        ("5;a=\"x", 400),
        ("5;a=\"x\\\"", 400),
        ("5;a=\"x\"y", 400),
        ("5;", 400),
        ("5;=b", 400),
        ("5;a=", 400),
        ("5;a ", 400),
        ("5;a(b", 400),
        ("5;a b", 400),
    ];
    let mut failures = Vec::new();
    for (line, status) in rows {
        let mut client = server.connect();
        let head = format!("POST /hello.txt HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n");
        client.send(format!("{head}{line}\r\nabcde\r\n0\r\n\r\n"));
        // The 405 may be sent before the chunk is parsed; then the connection shows the refusal.
        let first = client.answer_to("POST").status;
        let found = match client.send(format!("GET / HTTP/1.1\r\n{HOST}\r\n")).try_answer("GET") {
            Ok(next) if next.status == 200 => 405,
            _ if first == 400 || first == 405 => 400,
            other => panic!("{line:?}: {first}, then {other:?}"),
        };
        if found != status {
            failures.push(format!("{line:?}: {first}, read as {found}"));
        }
    }
    report(rows.len(), &failures);
}

#[test]
fn a_name_that_is_no_token_is_refused_whatever_is_overlooked() {
    let rows: [(&[u8], u16); 7] = [
        (b"X(Y", 400),
        (b"X\xffY", 400),
        (b"X\xc3\xa9", 400),
        (b"X\"", 400),
        (b"X/Y", 400),
        (b"X_Y", 200),
        (b"X!Y", 200),
    ];
    for directives in ["", "ignore_invalid_headers off;", "ignore_invalid_headers on;"] {
        let server = site(directives);
        for (name, status) in rows {
            let mut client = server.connect();
            client.send("GET /hello.txt HTTP/1.1\r\nHost: localhost\r\n");
            client.send(name).send(": y\r\n\r\n");
            let found = client.answer().status;
            assert_eq!(found, status, "{directives} {}", name.escape_ascii());
        }
    }
}

#[test]
fn bytes_beyond_ascii_in_a_target_are_taken_as_they_are() {
    let origin = TestUpstream::start();
    let server = http(&format!(
        "server {{ {LISTEN} location / {{ proxy_pass http://{}; }} }}",
        origin.address()
    ));
    let mut client = server.connect();
    client.send(b"GET /caf\xc3\xa9 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    assert_eq!(origin.all()[0].target(), "/caf\u{e9}");
}
