//! Where request bodies are stored (`client_body_*`), and how a connection closes while its client
//! still sends (`lingering_*`, `reset_timedout_connection`, `send_timeout`), by location.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bolide_testkit::origin::TestUpstream;
use bolide_testkit::{H1TestClient, Proto, TestServer, wait_until};

use crate::{http, site};

/// A server that passes bodies to `origin` and reports their files.
fn passing(origin: &TestUpstream, more: &str) -> TestServer {
    let to = origin.address();
    http(&format!(
        "client_body_temp_path @DIR@/bodies 1 2; {more}
         server {{
             listen 127.0.0.1:@HTTP@; add_header X-File $request_body_file;
             location / {{ proxy_pass http://{to}; proxy_set_header X-File $request_body_file; }}
             location /clean {{ client_body_in_file_only clean; proxy_pass http://{to};
                 proxy_set_header X-File $request_body_file; }}
             location /off {{ client_body_in_file_only off; proxy_pass http://{to}; }}
         }}"
    ))
}

fn post(client: &mut H1TestClient, path: &str, body: &str) -> String {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}");
    let answer = client.send(head).answer();
    assert_eq!(answer.status, 200, "{path}");
    answer.header("x-file").unwrap_or_default().to_owned()
}

#[test]
fn body_in_file_only_keeps_or_removes_the_file_as_configured() {
    let origin = TestUpstream::start();
    let server = passing(&origin, "client_body_in_file_only on;");
    let bodies = server.home().dir().join("bodies");
    let mut client = server.connect();
    let large = "0123456789".repeat(30_000);
    for body in ["short", "", &large] {
        let file = post(&mut client, "/kept", body);
        // As in nginx: ten digits, in directories named after the last ones.
        let name = file.strip_prefix(bodies.to_str().unwrap()).unwrap();
        let (one, two, digits) = (&name[1..2], &name[3..5], &name[6..]);
        assert_eq!(digits.len(), 10, "{name}");
        assert_eq!((one, two), (&digits[9..], &digits[7..9]), "{name}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), body);
    }
    let uploads = origin.asked("/kept");
    assert_eq!(
        uploads.iter().map(|request| request.body.len()).collect::<Vec<_>>(),
        [5, 0, 300_000]
    );
    let removed = post(&mut client, "/clean", "for a while");
    assert_eq!(origin.asked("/clean")[0].field("x-file"), Some(&*removed));
    wait_until("the file goes with its request", || !std::path::Path::new(&removed).exists());
    assert_eq!(post(&mut client, "/off", "in memory"), "");
}

#[test]
fn files_of_an_earlier_server_are_left_alone() {
    let origin = TestUpstream::start();
    let mut server = passing(&origin, "client_body_in_file_only on;");
    let first = post(&mut server.connect(), "/", "first");
    server.restart("QUIT");
    let second = post(&mut server.connect(), "/", "second");
    assert_ne!(first, second);
    assert_eq!(std::fs::read_to_string(first).unwrap(), "first");
    assert_eq!(std::fs::read_to_string(second).unwrap(), "second");
}

#[test]
fn a_body_that_cannot_be_written_is_a_500() {
    let origin = TestUpstream::start();
    let server = passing(&origin, "client_body_in_file_only on;");
    let bodies = server.home().dir().join("bodies");
    std::fs::remove_dir_all(&bodies).unwrap();
    std::fs::write(&bodies, "in the way").unwrap();
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(server.connect().send(head).answer().status, 500);
    let is_logged = || server.error_log().contains("failed (20: Not a directory)");
    wait_until("the reason in the log", is_logged);
    let log = server.error_log();
    let line = log.lines().find(|line| line.contains("failed (20:")).unwrap_or_default();
    assert!(line.contains("[crit]") && line.contains(", request: \"POST / HTTP/1.1\""), "{log}");
    assert_eq!(origin.count("/"), 0);
}

/// How long the server reads a client's bytes after the end of its response.
fn takes_for(server: &TestServer, path: &str, wait: Duration) -> Duration {
    let mut socket = TcpStream::connect(server.http()).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 99999\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).unwrap();
    let mut all = Vec::new();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let _ended = socket.read_to_end(&mut all);
    assert!(all.starts_with(b"HTTP/1.1 200 "), "{path}");
    let begun = Instant::now();
    // A closed socket resets the connection, which the next write reports.
    while begun.elapsed() < wait {
        if socket.write_all(b"x").is_err() {
            return begun.elapsed();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    wait
}

#[test]
fn lingering_time_of_the_location_limits_how_long_a_body_is_discarded() {
    let server = site(
        "lingering_timeout 300ms; lingering_time 900ms;
         location = /on { return 200 x; }
         location = /off { lingering_close off; return 200 x; }
         location = /long { lingering_time 30s; lingering_timeout 20s; return 200 x; }",
    );
    let long = Duration::from_secs(3);
    assert!(takes_for(&server, "/off", long) < Duration::from_millis(600));
    // Each byte is in time, but their total time is limited.
    let on = takes_for(&server, "/on", long);
    assert!(on > Duration::from_millis(600) && on < long, "{on:?}");
    assert_eq!(takes_for(&server, "/long", long), long);
}

#[test]
fn a_body_of_the_configuration_takes_the_place_of_one_that_would_be_streamed() {
    let origin = TestUpstream::start();
    let to = origin.address();
    let server = site(&format!(
        "client_max_body_size 0; proxy_request_buffering off;
         location / {{ proxy_set_body set; proxy_pass http://{to}; }}"
    ));
    let large = server.home().write("large", &"x".repeat(1_000_000));
    for proto in Proto::TLS {
        let path = format!("/{proto:?}");
        let curl = server.curl(proto).field("Expect:");
        let sent = ["--data-binary".to_owned(), format!("@{}", large.display())];
        assert_eq!(curl.args(sent).get(&server.url(proto, &path)).status, 200, "{path}");
        assert_eq!(origin.asked(&path)[0].body, b"set", "{path}");
    }
}

#[test]
fn reset_timedout_connection_resets_a_connection_that_444_closes() {
    let server = site(
        "location = /reset { reset_timedout_connection on; return 444; }
         location = /end { return 444; }",
    );
    for (path, ends_by) in [("/reset", Some(ErrorKind::ConnectionReset)), ("/end", None)] {
        let mut socket = TcpStream::connect(server.http()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(socket, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let end = socket.read(&mut [0; 10]);
        assert_eq!(end.as_ref().err().map(std::io::Error::kind), ends_by, "{path}: {end:?}");
    }
}

#[test]
fn a_client_that_takes_nothing_is_left_after_the_send_timeout_of_its_location() {
    let server = site("location = /big.bin { send_timeout 300ms; } location = /other { }");
    let big = vec![b'x'; 40 << 20];
    std::fs::write(server.www("big.bin"), &big).unwrap();
    std::fs::write(server.www("other"), &big).unwrap();
    let ask = |path: &str| {
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        client
    };
    let (mut late, mut other) = (ask("/big.bin"), ask("/other"));
    wait_until("the end of the answer in the log", || server.access_log().contains("/big.bin"));
    assert!(late.to_end().map_or(0, |got| got.len()) < big.len());
    assert!(other.to_end().is_ok_and(|got| got.len() > big.len()));
}
