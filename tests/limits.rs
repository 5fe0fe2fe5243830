//! The limits of directives.

use bolide_testkit::H1TestClient;
use bolide_testkit::site::HELLO;

use crate::{http, site};

const H3_CROWD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/h3_crowd.py");

#[test]
fn heads_that_do_not_fit_get_400_or_414() {
    let server = site("client_header_buffer_size 1k; large_client_header_buffers 4 8k;");
    let long = |n: usize| "x".repeat(n);
    for (request, status, text) in [
        (format!("GET /?{} HTTP/1.1\r\nHost: a\r\n\r\n", long(7_000)), 200, ""),
        (format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", long(9_000)), 414, "414 Request-URI Too"),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", long(7_000)), 200, ""),
        (
            format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", long(9_000)),
            400,
            "Request Header Or Cookie Too Large",
        ),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
                format!("X: {}\r\n", long(5_000)).repeat(9)
            ),
            400,
            "Request Header Or Cookie Too Large",
        ),
    ] {
        let mut client = server.connect();
        let answer = client.send(&request).answer();
        let start: String = request.chars().take(30).collect();
        assert_eq!(answer.status, status, "{start}");
        assert!(answer.text().contains(text), "{start}: {}", answer.text());
    }
}

#[test]
fn a_body_beyond_client_max_body_size_gets_413() {
    let server = site(
        "client_max_body_size 1k; location /free/ { alias @DIR@/www/; client_max_body_size 0; }",
    );
    for (path, length, status) in
        [("", 1024, 405), ("", 1025, 413), ("/free", 5_000_000, 405), ("", 1 << 40, 413)]
    {
        let path = format!("{path}/hello.txt");
        let mut client = server.connect();
        client.send(format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"));
        if length < 1 << 30 {
            client.send(vec![b'x'; length]);
        }
        let answer = client.answer();
        assert_eq!(answer.status, status, "{path} {length}");
        if status == 413 {
            assert!(answer.text().contains("413 Request Entity Too Large"));
        }
    }
}

#[test]
fn a_client_of_http2_that_still_sends_sees_the_413() {
    let server = site("client_max_body_size 1k;");
    let body = server.www("body");
    std::fs::write(&body, vec![b'x'; 6_000_000]).unwrap();
    let (body, url) = (format!("@{}", body.display()), format!("https://{}/", server.https()));
    // The system's libcurl, which may be one that takes a response for lost if it reads the reset
    // of the stream together with it.
    for _ in 0..5 {
        let args = ["-sk", "--http2", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}"];
        let args = [&args[..], &["--data-binary", &body, &url]].concat();
        assert_eq!(bolide_testkit::run("curl", args).succeeded().text(), "413");
    }
}

#[test]
fn a_silent_client_is_closed_and_logged_as_408() {
    let server = site("client_header_timeout 1s; client_body_timeout 1s;");
    let mut half = server.connect();
    half.send("GET / HTTP/1.1\r\nHost: a\r\n");
    let mut body = server.connect();
    body.send("POST /hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
    // As in nginx, an incomplete request gets no response.
    assert_eq!(half.to_end().unwrap(), b"");
    bolide_testkit::wait_until("408 in the access log", || server.access_log().contains("\" 408 "));
    // The 405 of the file may come first; then the server waits for the rest of the body.
    if let Ok(answer) = body.try_answer("POST") {
        assert!([405, 408].contains(&answer.status));
    }
    assert!(body.is_closed());
}

#[test]
fn an_idle_connection_is_closed_after_keepalive_timeout() {
    let server = site("keepalive_timeout 1s;");
    let mut client = server.connect();
    assert_eq!(client.get("/hello.txt", "").body, HELLO);
    assert!(client.is_closed());
    let server = site("keepalive_timeout 0;");
    let mut client = server.connect();
    let answer = client.get("/hello.txt", "");
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(client.is_closed());
}

#[test]
fn the_header_half_of_keepalive_timeout_is_sent() {
    let server = site("keepalive_timeout 75s 30s;");
    let answer = server.connect().get("/hello.txt", "");
    assert_eq!(answer.header("keep-alive"), Some("timeout=30"));
}

#[test]
fn a_connection_ends_after_keepalive_requests() {
    let server = site("keepalive_requests 3;");
    let mut client = server.connect();
    for n in 1..=3 {
        let answer = client.get("/hello.txt", "");
        let wanted = if n == 3 { "close" } else { "keep-alive" };
        assert_eq!(answer.header("connection"), Some(wanted), "request {n}");
    }
    assert!(client.is_closed());
}

#[test]
fn limit_rate_slows_an_answer_down() {
    let server = site("location /slow/ { alias @DIR@/www/; limit_rate 200k; }");
    let timer = std::time::Instant::now();
    let mut client = server.connect();
    assert_eq!(client.get("/slow/big.bin", "").body.len(), bolide_testkit::site::BIG);
    // 1 MB at 200 KiB/s takes five seconds; less than two would mean no limit.
    assert!(timer.elapsed().as_secs() >= 2, "{:?}", timer.elapsed());
}

#[test]
fn more_connections_than_worker_connections_do_not_end_the_server() {
    let prelude = bolide_testkit::server::prelude(1).replace("2048", "64");
    let conf = format!("{prelude}http {{ server {{ listen 127.0.0.1:@HTTP@; return 200 ok; }} }}",);
    let server = bolide_testkit::TestServer::conf(crate::BOLIDE, &conf);
    let crowd: Vec<H1TestClient> = (0..200).map(|_| server.connect()).collect();
    drop(crowd);
    bolide_testkit::wait_until("an answer after the crowd", || {
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client.try_answer("GET").is_ok_and(|answer| answer.text() == "ok")
    });
}

#[test]
fn a_large_file_costs_bounded_memory() {
    let server = http(
        "server { listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl; http2 on;
                  listen 127.0.0.1:@HTTPS@ quic reuseport;
                  ssl_certificate @CERT@; ssl_certificate_key @KEY@; root @DIR@/www; }",
    );
    let size = 200 << 20;
    std::fs::File::create(server.www("huge")).unwrap().set_len(size).unwrap();
    let before = server.resident_kib();
    for proto in bolide_testkit::Proto::TLS {
        // A client that reads 300 KB per second holds the rest back.
        let url = server.url(proto, "/huge");
        let slow = server.curl(proto).args(["--limit-rate", "300k", "--max-time", "3"]);
        let reply = slow.attempt(&url);
        assert_eq!((reply.exit, reply.status), (28, 200), "{}", reply.stderr);
    }
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 30_000, "grew by {grown} KiB");
}

/// A server with `worker_connections 64` and one listener per protocol.
fn crowded() -> bolide_testkit::TestServer {
    let prelude = bolide_testkit::server::prelude(1).replace("2048", "64");
    let conf = format!(
        "{prelude}http {{ http2 on; ssl_certificate @CERT@; ssl_certificate_key @KEY@;
             server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl;
                 listen 127.0.0.1:@HTTPS@ quic; return 200 ok; }} }}"
    );
    bolide_testkit::TestServer::conf(crate::BOLIDE, &conf)
}

#[test]
fn silent_connections_give_way_when_worker_connections_are_reached() {
    let server = crowded();
    let connect = |addr| std::net::TcpStream::connect(addr).unwrap();
    let crowds: [Vec<std::net::TcpStream>; 2] =
        [server.http(), server.https()].map(|addr| (0..100).map(|_| connect(addr)).collect());
    let mut client = server.connect();
    assert_eq!(client.get("/", "").text(), "ok");
    drop(crowds);
}

#[test]
fn connections_over_quic_count_for_worker_connections_and_give_way() {
    let server = crowded();
    let mut first = server.connect();
    assert_eq!(first.get("/", "").text(), "ok");
    let port = server.https().port().to_string();
    let crowd = bolide_testkit::Companion::start(H3_CROWD, [port, "100".to_owned()]);
    assert_eq!(crowd.line(), "here");
    // The oldest idle connection gave way to those over QUIC, and the oldest of these to others.
    assert!(first.is_closed());
    for _ in 0..3 {
        assert_eq!(server.connect().get("/", "").text(), "ok");
    }
}

#[test]
fn connections_with_a_part_of_a_request_do_not_give_way() {
    let server = crowded();
    let mut begun: Vec<H1TestClient> = (0..30).map(|_| server.connect()).collect();
    for client in &mut begun {
        client.send("GET / HTTP/1.1\r\n");
    }
    let crowd: Vec<H1TestClient> = (0..100).map(|_| server.connect()).collect();
    for client in &mut begun {
        assert_eq!(client.send("Host: a\r\n\r\n").answer().text(), "ok");
    }
    drop(crowd);
}

#[test]
fn connections_whose_bodies_are_discarded_give_way() {
    let server = crowded();
    // Answered with 200 while the body is discarded, and with 413 before the connection lingers.
    for length in [1000, 2_000_000] {
        let post = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\nx");
        let mut crowd = Vec::new();
        for _ in 0..100 {
            let mut client = server.connect();
            client.send(&post);
            let _answered = client.try_answer("POST");
            crowd.push(client);
        }
        assert_eq!(server.connect().get("/", "").text(), "ok", "{length}");
    }
}
