//! `limit_rate`: which bytes of an answer take time.

use std::fs;
use std::time::{Duration, Instant};

use bolide_testkit::{Proto, TestServer};

use crate::site;

/// Bytes per second.
const RATE: usize = 100;

fn server() -> TestServer {
    let server = site("location /slow/ { alias @DIR@/www/; limit_rate 100; }");
    fs::write(server.www("hundred.txt"), [b'x'; RATE]).unwrap();
    server
}

/// The least time that so many bytes take. The clock knows whole seconds, and the first may end at
/// once; a busy machine makes an answer later, never earlier.
fn least(bytes: usize) -> Duration {
    Duration::from_secs((bytes.div_ceil(RATE) - 2) as u64)
}

#[test]
fn the_head_takes_its_time_as_the_body_does() {
    let server = server();
    std::thread::scope(|scope| {
        for method in ["GET", "HEAD"] {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.connect();
                let begun = Instant::now();
                let head = format!("{method} /slow/hundred.txt HTTP/1.1\r\nHost: a\r\n");
                client.send(format!("{head}Connection: close\r\n\r\n"));
                let answer = client.to_end().unwrap();
                assert!(answer.starts_with(b"HTTP/1.1 200 "));
                assert!(answer.ends_with(if method == "GET" { b"xx" } else { b"\r\n" }));
                assert!(least(answer.len()) > Duration::ZERO, "{method}: there is a time to see");
                assert!(begun.elapsed() >= least(answer.len()), "{method}");
            });
        }
        for proto in [Proto::H2, Proto::H2c, Proto::H3] {
            let server = &server;
            scope.spawn(move || {
                let begun = Instant::now();
                let reply = server.fetch(proto, "/slow/hundred.txt");
                assert_eq!((reply.status, reply.body.len()), (200, RATE), "{proto:?}");
                // No head of a file fits into a hundred bytes.
                assert!(begun.elapsed() >= least(2 * RATE + 1), "{proto:?}");
            });
        }
    });
}

#[test]
fn an_answer_within_its_pace_and_one_without_are_the_same() {
    let server = site(
        "location /after/ { alias @DIR@/www/; limit_rate 1; limit_rate_after 10m; }
         location /often/ { alias @DIR@/www/; limit_rate 1m; }
         location /by/ { alias @DIR@/www/; limit_rate $arg_none; }",
    );
    for proto in Proto::TLS {
        let plain = server.fetch(proto, "/big.bin");
        for place in ["after", "often", "by"] {
            let reply = server.fetch(proto, &format!("/{place}/big.bin"));
            assert!(reply.status == 200 && reply.body == plain.body, "{proto:?} {place}");
        }
    }
}
