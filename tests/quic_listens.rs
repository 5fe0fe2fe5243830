//! `listen … quic` that a new configuration removes and restores: ports, connections.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread::{JoinHandle, spawn};

use bolide_testkit::curl::{Curl, CurlReply};
use bolide_testkit::{Proto, TestServer, wait_until};

use crate::BOLIDE;

/// A server that responds with its generation; over QUIC with `quic`. `/held` gets a slow response.
fn generation(number: u32, quic: &str, origin: u16) -> String {
    format!(
        "ssl_certificate @CERT@; ssl_certificate_key @KEY@;
         server {{ listen 127.0.0.1:@HTTP@; {quic}
                   location / {{ return 200 {number}; }}
                   location /held {{ proxy_pass http://127.0.0.1:{origin}; }} }}"
    )
}

const QUIC: &str = "listen 127.0.0.1:@HTTPS@ quic;";

fn ask(server: &TestServer, path: &str) -> CurlReply {
    Curl::new(Proto::H3).args(["-m", "20"]).attempt(&server.url(Proto::H3, path))
}

/// Waits until all workers use this configuration.
fn wait_for(server: &TestServer, number: u32) {
    wait_until("the new configuration", || {
        (0..8).all(|_| server.get("/").text() == number.to_string())
    });
}

fn is_free(server: &TestServer) -> bool {
    UdpSocket::bind(server.https()).is_ok()
}

#[test]
fn a_port_that_no_listen_names_is_closed_and_can_be_opened_again() {
    let server = TestServer::workers(BOLIDE, 3, &generation(1, QUIC, 9));
    assert_eq!(ask(&server, "/").text(), "1");
    for round in 1..4 {
        server.reload(&generation(2 * round, "", 9));
        wait_until("the port to be free", || is_free(&server));
        wait_for(&server, 2 * round);
        let reply = Curl::new(Proto::H3).args(["-m", "1"]).attempt(&server.url(Proto::H3, "/"));
        assert_ne!(reply.exit, 0, "nobody is there: {}", reply.text());
        let number = 2 * round + 1;
        server.reload(&generation(number, QUIC, 9));
        wait_for(&server, number);
        for _ in 0..6 {
            assert_eq!(ask(&server, "/").text(), number.to_string());
        }
    }
    assert!(!server.error_log().contains("[emerg]"), "{}", server.error_log());
}

/// A request over HTTP/3 whose response the test controls.
fn hold(server: &TestServer, origin: &TcpListener) -> (JoinHandle<CurlReply>, TcpStream) {
    let url = server.url(Proto::H3, "/held");
    let asking = spawn(move || Curl::new(Proto::H3).args(["-m", "30"]).attempt(&url));
    let (mut peer, _) = origin.accept().unwrap();
    let mut head = [0; 4096];
    assert!(peer.read(&mut head).unwrap() > 0);
    (asking, peer)
}

fn release(asking: JoinHandle<CurlReply>, mut origin: TcpStream) {
    origin.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nheld").unwrap();
    let reply = asking.join().unwrap();
    assert_eq!((reply.exit, reply.status, reply.text().as_str()), (0, 200, "held"));
}

#[test]
fn requests_of_a_removed_listener_are_answered_and_then_the_port_is_free() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = origin.local_addr().unwrap().port();
    let server = TestServer::workers(BOLIDE, 2, &generation(1, QUIC, port));
    let (asking, peer) = hold(&server, &origin);
    server.reload(&generation(2, "", port));
    wait_for(&server, 2);
    let reply = Curl::new(Proto::H3).args(["-m", "1"]).attempt(&server.url(Proto::H3, "/"));
    assert_ne!(reply.exit, 0, "no new connection is taken: {}", reply.text());
    release(asking, peer);
    wait_until("the port to be free", || is_free(&server));
}

#[test]
fn a_removed_listener_may_return_while_old_connections_are_served() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = origin.local_addr().unwrap().port();
    let server = TestServer::workers(BOLIDE, 2, &generation(1, QUIC, port));
    let held = [hold(&server, &origin), hold(&server, &origin)];
    server.reload(&generation(2, "", port));
    wait_for(&server, 2);
    server.reload(&generation(3, QUIC, port));
    wait_for(&server, 3);
    for _ in 0..8 {
        assert_eq!(ask(&server, "/").text(), "3");
    }
    for (asking, peer) in held {
        release(asking, peer);
    }
    for _ in 0..4 {
        assert_eq!(ask(&server, "/").text(), "3");
    }
    server.reload(&generation(4, "", port));
    wait_until("the port to be free", || is_free(&server));
    assert!(!server.error_log().contains("[emerg]"), "{}", server.error_log());
}

#[test]
fn another_address_on_the_same_port_may_be_added_and_removed() {
    let server = TestServer::workers(BOLIDE, 2, &generation(1, QUIC, 9));
    let both = format!("{QUIC} listen 127.0.0.2:@HTTPS@ quic;");
    for number in [2, 4] {
        server.reload(&generation(number, &both, 9));
        wait_for(&server, number);
        let second = format!("https://127.0.0.2:{}/", server.https().port());
        let reply = Curl::new(Proto::H3).args(["-m", "20"]).attempt(&second);
        assert_eq!(reply.text(), number.to_string());
        server.reload(&generation(number + 1, QUIC, 9));
        wait_for(&server, number + 1);
        wait_until("the second address to be free", || {
            UdpSocket::bind(("127.0.0.2", server.https().port())).is_ok()
        });
        assert_eq!(ask(&server, "/").text(), (number + 1).to_string());
    }
}
