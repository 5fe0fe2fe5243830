//! No client and no shortage blocks a worker: other clients are served, the CPU is idle, and the
//! process shuts down on request.

use bolide_testkit::site::HELLO;
use bolide_testkit::{Companion, H1TestClient, Proto, TestServer, wait_until};

use crate::{BOLIDE, site};

const STAYERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/h3_stayers.py");

/// HTTP/3 clients that reach a limit and stay connected; each case with its expected result.
fn stay(server: &TestServer, cases: &[(&str, &str)]) -> Companion {
    let cert = server.home().dir().join("cert.pem").to_str().unwrap().to_owned();
    let port = server.https().port();
    let names = cases.iter().map(|(name, _)| format!("{name}@{port}"));
    let stayers = Companion::start(STAYERS, [cert].into_iter().chain(names));
    for _ in cases {
        let line = stayers.line();
        let is_right = |(name, got): &(&str, &str)| {
            line == format!("{{\"case\": \"{name}\", \"got\": \"{got}\"}}")
        };
        assert!(cases.iter().any(is_right), "{line}");
    }
    stayers
}

/// Other clients are served, the CPU is idle, and the process shuts down.
fn is_alive(server: TestServer) {
    assert_eq!(server.get("/hello.txt").body, HELLO);
    server.wait_until_it_rests();
    for proto in [Proto::H2, Proto::H3] {
        assert_eq!(server.fetch(proto, "/hello.txt").body, HELLO);
    }
    assert_eq!(server.stop("TERM").code, 0);
}

#[test]
fn an_h3_connection_that_made_all_its_requests_and_stays_blocks_no_other() {
    let server = site("keepalive_requests 3;");
    let _stayers = stay(&server, &[("requests", "status 200 status 200 status 200")]);
    is_alive(server);
}

#[test]
fn an_h3_connection_that_became_too_old_and_stays_blocks_no_other() {
    let server = site("keepalive_time 1s;");
    let _stayers = stay(&server, &[("age", "status 200 and its last")]);
    is_alive(server);
}

/// Few descriptors, and a server that needs none for its responses.
fn poor_server() -> TestServer {
    let prelude = bolide_testkit::server::prelude(1);
    let http = "http { server { listen 127.0.0.1:@HTTP@; return 200 ok; } }";
    TestServer::conf(BOLIDE, &format!("worker_rlimit_nofile 120;\n{prelude}{http}"))
}

const REFUSED: &str = "[crit] ";
const WHY: &str = "accept4() failed (24: Too many open files)";

fn refusals(server: &TestServer) -> usize {
    let log = server.error_log();
    log.lines().filter(|line| line.contains(REFUSED) && line.contains(WHY)).count()
}

#[test]
fn a_server_without_descriptors_rests_until_there_are_some() {
    let server = poor_server();
    let timer = std::time::Instant::now();
    let crowd: Vec<H1TestClient> = (0..300).map(|_| server.connect()).collect();
    wait_until("the line in the log", || refusals(&server) > 0);
    server.wait_until_it_rests();
    // One line for each pause of half a second.
    let (lines, rests) = (refusals(&server), timer.elapsed().as_millis() / 500 + 2);
    assert!(lines as u128 <= rests, "{lines} lines for {rests} rests");
    drop(crowd);
    wait_until("an answer after the crowd", || {
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client.try_answer("GET").is_ok_and(|answer| answer.text() == "ok")
    });
    server.wait_until_it_rests();
    assert_eq!(server.stop("TERM").code, 0);
}

#[test]
fn idle_connections_make_room_for_new_ones_when_descriptors_are_few() {
    let server = poor_server();
    let mut crowd = Vec::new();
    for _ in 0..200 {
        let mut client = server.connect();
        assert_eq!(client.get("/", "").text(), "ok");
        crowd.push(client);
    }
    assert!(refusals(&server) > 0, "{}", server.error_log());
    assert_eq!(server.stop("TERM").code, 0);
}
