//! Where clients hold all descriptors: what fails for want of one fails as this server's own fault.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};

use bolide_testkit::origin::answer;
use bolide_testkit::server::{TYPES, prelude};
use bolide_testkit::{H1TestClient, Response, TestServer, TestUpstream, wait_until};

use crate::BOLIDE;

/// The clause of a log line.
const NONE_LEFT: &str = "failed (24: Too many open files)";
/// Requests that take more descriptors than are kept from clients.
const HOGS: usize = 40;

fn configuration(server: &str) -> String {
    let main = format!("worker_rlimit_nofile 120; {}", prelude(1));
    format!("{main}http {{ {TYPES} client_header_timeout 10m; {server} }}")
}

fn serve(server: &str) -> TestServer {
    TestServer::conf(BOLIDE, &configuration(server))
}

/// A client within a head, who is not let go to make room.
fn waits(server: &TestServer) -> H1TestClient {
    let mut client = server.connect();
    client.send("GET ");
    client
}

fn all(server: &TestServer, count: usize) -> Vec<H1TestClient> {
    (0..count).map(|_| waits(server)).collect()
}

/// Takes what descriptors the server has for clients.
fn crowd(server: &TestServer) -> Vec<TcpStream> {
    let refused = || server.error_log().contains(&format!("accept4() {NONE_LEFT}"));
    let one = |_| {
        let mut one = TcpStream::connect(server.http()).unwrap();
        one.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        one
    };
    let crowd = (0..200).map(one).collect();
    wait_until("none is left for clients", refused);
    crowd
}

/// Takes those that are left by requests to an origin that does not answer, at `/mute`.
fn hog(server: &TestServer, hogs: &mut [H1TestClient]) {
    for hog in hogs {
        hog.send("/mute HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    let line = format!("{NONE_LEFT} while connecting to upstream");
    wait_until("none is left at all", || server.error_log().contains(&line));
}

/// Goes on with the head of one that waits.
fn go_on(client: &mut H1TestClient, path: &str) -> Response {
    client.send(format!("{path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).answer()
}

#[test]
fn no_server_of_a_group_is_blamed_where_none_can_be_called() {
    let origins = [TestUpstream::start(), TestUpstream::start()];
    for origin in &origins {
        origin.say("/", answer("", "origin"));
    }
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let [one, other] = origins.each_ref().map(TestUpstream::address);
    let server = serve(&format!(
        "upstream u {{ server {one} fail_timeout=1h; server {other} fail_timeout=1h; }}
         server {{ listen 127.0.0.1:@HTTP@; location / {{ proxy_pass http://u; }}
             location = /mute {{ proxy_pass http://{}; }} }}",
        mute.local_addr().unwrap()
    ));
    let (mut hogs, mut waiting) = (all(&server, HOGS), all(&server, 10));
    let crowd = crowd(&server);
    hog(&server, &mut hogs);
    // Where one is let go, the next has its descriptor.
    let statuses: Vec<u16> = waiting.iter_mut().map(|client| go_on(client, "/").status).collect();
    let is_honest = statuses.iter().all(|status| matches!(status, 200 | 500));
    assert!(is_honest && statuses.contains(&500), "{statuses:?} {}", server.error_log());
    drop((hogs, crowd, waiting));
    wait_until("an answer after the crowd", || {
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client.try_answer("GET").is_ok_and(|answer| answer.text() == "origin")
    });
    let log = server.error_log();
    let line = format!("socket() {NONE_LEFT} while connecting to upstream, client: ");
    assert!(log.lines().any(|told| told.contains("[alert]") && told.contains(&line)), "{log}");
    assert!(!log.contains("temporarily disabled") && !log.contains("no live"), "{log}");
}
