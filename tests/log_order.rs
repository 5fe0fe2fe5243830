//! When the lines of a request are written: before its connection ends, and before the next request
//! of the connection is answered.

use std::fs;

use bolide_testkit::TestServer;

use crate::http;

/// Logs of each request. To open and write this many takes far longer than a client needs to look.
const LOGS: usize = 300;

/// A server whose requests log to many files, which have the argument `n` in their names.
fn server() -> TestServer {
    let logs: String =
        (0..LOGS).map(|log| format!("access_log @DIR@/logs/$arg_n-{log}.log;")).collect();
    http(&format!(
        "server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www; location / {{ {logs} }}
         location /limited {{ error_log @DIR@/logs/own.log; deny all; }} }}"
    ))
}

/// How many of its logs have the line of request `n` now.
fn written(server: &TestServer, n: &str) -> usize {
    let logs = server.home().dir().join("logs");
    let has_line = |log: &usize| {
        fs::read_to_string(logs.join(format!("{n}-{log}.log")))
            .is_ok_and(|text| text.lines().count() == 1)
    };
    (0..LOGS).filter(has_line).count()
}

#[test]
fn lines_are_written_before_the_connection_closes() {
    let server = server();
    for (n, rest) in [
        ("close", "HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
        ("old", "HTTP/1.0\r\n\r\n"),
        // What is left to read makes the server end its own side first, and wait.
        ("unread", "HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 9\r\n\r\n12"),
    ] {
        let mut client = server.connect();
        let answer = client.send(format!("GET /hello.txt?n={n} {rest}")).to_end();
        assert!(answer.is_ok(), "{n}: {answer:?}");
        assert_eq!(written(&server, n), LOGS, "{n}");
    }
}

#[test]
fn lines_of_a_request_are_written_before_the_next_response() {
    let server = server();
    let mut client = server.connect();
    let head = |n: &str| format!("GET /hello.txt?n={n} HTTP/1.1\r\nHost: a\r\n\r\n");
    for n in ["one", "two", "three"] {
        let _first = client.send(head(n)).answer();
        let _next = client.send(head(&format!("{n}-next"))).answer();
        assert_eq!(written(&server, n), LOGS, "{n}");
    }
    client.send(format!("{}{}", head("first"), head("second")));
    let _first = client.answer();
    let _second = client.answer();
    assert_eq!(written(&server, "first"), LOGS, "of a pipeline");
}

#[test]
fn error_log_lines_are_written_before_the_connection_closes() {
    let server = server();
    for round in 1..=200 {
        let head = "GET /limited HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let answer = server.connect().send(head).to_end().unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 403 "));
        let logged = server.home().read("logs/own.log");
        assert_eq!(logged.matches("access forbidden by rule").count(), round);
    }
}
