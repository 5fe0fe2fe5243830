//! Connections that a 101 turns into tunnels.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bolide_testkit::origin::{TestPeer, answer};
use bolide_testkit::server::LISTEN;
use bolide_testkit::{H1TestClient, Proto, TestServer, TestUpstream, wait_until};

use super::{head_of, serve};
use crate::http;

const ASK: &str = "GET /t HTTP/1.1\r\nHost: a\r\nUpgrade: raw\r\nConnection: upgrade\r\n\r\n";
const SWITCH: &str =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: raw\r\nConnection: upgrade\r\n\r\n";
const PASS: &str = "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;";

/// An upstream that switches protocols, and runs `script` on the connection.
fn switching(script: impl Fn(&mut TestPeer) + Send + Sync + 'static) -> TestUpstream {
    TestUpstream::scripted(move |peer| {
        if peer.request().is_ok() && peer.send(SWITCH).is_ok() {
            script(peer);
        }
    })
}

/// An upstream that sends everything back twice.
fn echo() -> TestUpstream {
    switching(|peer| {
        while let Ok(line) = peer.until(b"\n") {
            let line = String::from_utf8(line).unwrap();
            if peer.send(format!("{line}{line}\n")).is_err() {
                return;
            }
        }
        let _left = peer.send("bye\n");
    })
}

fn open(server: &TestServer) -> H1TestClient {
    let mut client = server.connect();
    client.send(ASK);
    let head = head_of(&mut client);
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.to_ascii_lowercase().contains("\r\nupgrade: raw\r\n"), "{head}");
    assert!(head.to_ascii_lowercase().contains("\r\nconnection: upgrade\r\n"), "{head}");
    client
}

fn say(client: &mut H1TestClient, line: &str) {
    client.send(format!("{line}\n"));
    let back = client.take(2 * line.len() + 1).unwrap();
    assert_eq!(String::from_utf8(back).unwrap(), format!("{line}{line}\n"));
}

#[test]
fn the_rate_limits_of_responses_do_not_slow_a_tunnel() {
    const SIZE: usize = 200_000;
    let origin = switching(|peer| {
        peer.send(vec![b'x'; SIZE]).unwrap();
        peer.to_end();
    });
    // A limit would make each last minutes.
    for limit in ["limit_rate 1k;", "limit_rate 1k; limit_rate_after 1k;", "proxy_limit_rate 1k;"] {
        let server = serve(&origin, &format!("{PASS} {limit}"), "");
        assert_eq!(open(&server).take(SIZE).unwrap().len(), SIZE, "{limit}");
    }
}

#[test]
fn a_tunnel_carries_both_ways_and_ends_with_either_side() {
    let origin = echo();
    let server = serve(&origin, PASS, "");
    let mut client = open(&server);
    for line in ["one", "two", "three"] {
        say(&mut client, line);
    }
    // The end of the client reaches the upstream, whose last bytes still arrive.
    client.finish();
    assert_eq!(client.to_end().unwrap(), b"bye\n");
    wait_until("the origin's side to end", || origin.closed() == 1);

    let origin = switching(|peer| {
        peer.send("last words").unwrap();
        peer.finish();
        peer.to_end();
    });
    let server = serve(&origin, PASS, "");
    let mut client = open(&server);
    assert_eq!(client.to_end().unwrap(), b"last words");
    drop(client);
    wait_until("the origin's side to end", || origin.closed() == 1);
    let line = server.access_lines(1).remove(0);
    assert!(line.contains("\" 101 "), "{line}");
}

#[test]
fn bytes_right_after_the_request_reach_the_upgraded_protocol() {
    let origin = echo();
    let server = serve(&origin, PASS, "");
    let mut client = server.connect();
    client.send(format!("{ASK}early\n"));
    assert!(head_of(&mut client).starts_with("HTTP/1.1 101 "));
    assert_eq!(client.take(11).unwrap(), b"earlyearly\n");

    // Without a switch they are the next request.
    let plain = TestUpstream::start();
    let refuse = format!("location /secret {{ proxy_pass http://{}; deny all; }}", plain.address());
    let server = serve(&plain, PASS, &refuse);
    let mut client = server.connect();
    client.send(format!("{ASK}GET /secret HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_eq!(client.answer().status, 200);
    assert_eq!(client.answer().status, 403);
    assert_eq!(plain.count("/secret"), 0);
    assert_eq!(plain.all().len(), 1);
}

/// `docker exec` and others send their parameters in the body of the request that upgrades.
#[test]
fn a_request_with_a_body_begins_a_tunnel_once_the_body_is_complete() {
    const POST: &str = "POST /t HTTP/1.1\r\nHost: a\r\nUpgrade: raw\r\nConnection: upgrade\r\n";
    let origin = echo();
    let unbuffered = "proxy_http_version 1.1; proxy_request_buffering off;";
    for more in ["", "client_body_buffer_size 4k;", "client_body_in_file_only clean;", unbuffered] {
        let server = serve(&origin, &format!("{PASS} {more}"), "");
        for (fields, coded, body) in [
            ("Content-Length: 4\r\n", "body".to_owned(), "body".to_owned()),
            ("Content-Length: 0\r\n", String::new(), String::new()),
            ("Content-Length: 300000\r\n", "x".repeat(300_000), "x".repeat(300_000)),
            ("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n".into(), "abc".into()),
        ] {
            let mut client = server.connect();
            client.send(format!("{POST}{fields}\r\n{coded}early\n"));
            let head = head_of(&mut client);
            assert!(head.starts_with("HTTP/1.1 101 "), "{more} {fields}: {head}");
            assert_eq!(client.take(11).unwrap(), b"earlyearly\n", "{more} {fields}");
            assert_eq!(origin.all().pop().unwrap().body, body.as_bytes(), "{more} {fields}");
            say(&mut client, "later");
            client.finish();
            assert_eq!(client.to_end().unwrap(), b"bye\n");
        }
    }

    // A client that waits to be asked for its body is asked once.
    let server = serve(&origin, PASS, "");
    let mut client = server.connect();
    client.send(format!("{POST}Expect: 100-continue\r\nContent-Length: 4\r\n\r\n"));
    assert!(head_of(&mut client).starts_with("HTTP/1.1 100 "));
    client.send("body");
    assert!(head_of(&mut client).starts_with("HTTP/1.1 101 "));
    say(&mut client, "later");
}

#[test]
fn an_upstream_that_switches_before_it_has_the_body_begins_no_tunnel() {
    let origin = TestUpstream::scripted(|peer| {
        if peer.head().is_ok() && peer.send(SWITCH).is_ok() {
            peer.to_end();
        }
    });
    let unbuffered = "proxy_http_version 1.1; proxy_request_buffering off;";
    let server = serve(&origin, &format!("{PASS} {unbuffered}"), "");
    let mut client = server.connect();
    client.send(
        "POST /t HTTP/1.1\r\nHost: a\r\nUpgrade: raw\r\nConnection: upgrade\r\n\
                 Content-Length: 4\r\n\r\nbo",
    );
    assert_eq!(client.answer().status, 502);
}

#[test]
fn a_tunnel_carries_much_data_in_both_directions() {
    const LEN: usize = 2 << 20;
    let origin = switching(|peer| {
        peer.send(vec![b'd'; LEN]).unwrap();
        let up = peer.take(LEN).unwrap();
        assert!(up.iter().all(|byte| *byte == b'u'));
        peer.send("all").unwrap();
        peer.to_end();
    });
    let server = serve(&origin, PASS, "");
    let mut client = open(&server);
    assert!(client.take(LEN).unwrap().iter().all(|byte| *byte == b'd'));
    client.send(vec![b'u'; LEN]);
    assert_eq!(client.take(3).unwrap(), b"all");
}

#[test]
fn a_tunnel_holds_no_more_than_its_buffers() {
    let sent = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&sent);
    let origin = switching(move |peer| {
        while peer.send([0; 65_536]).is_ok() {
            counted.fetch_add(65_536, Ordering::AcqRel);
        }
    });
    let server = serve(&origin, PASS, "");
    let before = server.resident_kib();
    let client = open(&server);
    let mut last = u64::MAX;
    wait_until("the origin to be held back", || {
        bolide_testkit::pause(200);
        let now = sent.load(Ordering::Acquire);
        std::mem::replace(&mut last, now) == now
    });
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 8 * 1024, "{grown} KiB for a client that does not read");
    drop(client);
    wait_until("the origin to be left", || origin.closed() == 1);
}

#[test]
fn an_idle_tunnel_ends_and_one_in_use_does_not() {
    let origin = echo();
    let server = serve(&origin, &format!("{PASS} proxy_read_timeout 1s;"), "");
    let mut client = open(&server);
    for _ in 0..4 {
        bolide_testkit::pause(400);
        say(&mut client, "still here");
    }
    assert_eq!(client.to_end().unwrap(), b"", "idle for a second");
    wait_until("the origin to be left", || origin.closed() == 1);
}

#[test]
fn a_tunnel_outlives_a_reload_and_a_graceful_end() {
    let origin = echo();
    let conf = format!(
        "server {{ {LISTEN} location / {{ proxy_pass http://{}; {PASS} }} }}",
        origin.address()
    );
    let server = http(&conf);
    let mut client = open(&server);
    say(&mut client, "before");
    server.reload(&conf.replace("location / {", "location / { add_header X-New 1 always;"));
    wait_until("the new configuration", || {
        let mut other = server.connect();
        other.send(ASK);
        head_of(&mut other).contains("X-New")
    });
    say(&mut client, "behind the reload");
    server.signal("QUIT");
    wait_until("nobody to listen", || std::net::TcpStream::connect(server.http()).is_err());
    say(&mut client, "behind the quit");
    client.finish();
    assert_eq!(client.to_end().unwrap(), b"bye\n");
    let mut server = server;
    assert_eq!(server.wait_exit().code, 0);
}

#[test]
fn an_unsuitable_request_switches_no_connection() {
    let origin = echo();
    let asks = "proxy_set_header Upgrade raw; proxy_set_header Connection upgrade;";
    let server = serve(&origin, asks, "");
    for proto in [Proto::H2, Proto::H3] {
        assert_eq!(server.fetch(proto, "/t").status, 502, "{proto:?}");
    }
    let old = "GET /t HTTP/1.0\r\nHost: a\r\nUpgrade: raw\r\nConnection: upgrade";
    assert_eq!(server.connect().ask(old).status, 502);
    let server = serve(&origin, "", "");
    assert_eq!(server.get("/t").status, 502);
    assert_eq!(server.connect().get("/t", "Upgrade: raw\r\nConnection: upgrade\r\n").status, 502);
    // A response other than 101 makes no tunnel.
    let plain = TestUpstream::start();
    plain.say("/t", answer("Upgrade: raw", "plain"));
    let server = serve(&plain, PASS, "");
    let mut client = server.connect();
    client.send(ASK);
    assert_eq!(client.answer().text(), "plain");
    client.send(ASK);
    assert_eq!(client.answer().text(), "plain", "the connection is what it was");
}
