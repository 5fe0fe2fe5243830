//! How long a client may stay that keeps sending but never completes a request, and that the
//! deadlines of such clients do not end a slow request.
//!
//! A client that is to end sends until its connection has ended; only one that stays fails.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bolide_testkit::TestServer;
use bolide_testkit::origin::{TestUpstream, answer};

use crate::{http, site};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// The pause between two pieces: well within each timeout.
const PAUSE: Duration = Duration::from_millis(100);
/// More than ten times the longest timeout below.
const PATIENCE: Duration = Duration::from_secs(20);

const SHORT: &str = "client_header_timeout 1s; client_body_timeout 1s; send_timeout 1s;
     keepalive_timeout 1s; lingering_timeout 1s; lingering_time 1s;
     location = /answered { return 200 x; }";

/// Sends `first`, and then `more` again and again until the connection has ended.
fn ends(addr: SocketAddr, first: &[u8], more: &[u8]) -> bool {
    let mut socket = TcpStream::connect(addr).unwrap();
    socket.set_read_timeout(Some(PAUSE)).unwrap();
    socket.write_all(first).unwrap();
    let (begun, mut room) = (Instant::now(), [0; 4096]);
    while begun.elapsed() < PATIENCE {
        match socket.read(&mut room) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if socket.write_all(more).is_err() {
                    return true;
                }
            }
            Err(_) => return true,
        }
    }
    false
}

/// A client: its name, its first bytes, and those that it repeats.
type Sender = (&'static str, Vec<u8>, &'static [u8]);

fn all_end(server: &TestServer, senders: &[Sender]) {
    let addr = server.http();
    let stayed: Vec<&str> = std::thread::scope(|scope| {
        let run = |(name, first, more): &Sender| (!ends(addr, first, more)).then_some(*name);
        let all: Vec<_> = senders.iter().map(|one| scope.spawn(move || run(one))).collect();
        all.into_iter().filter_map(|one| one.join().unwrap()).collect()
    });
    assert!(stayed.is_empty(), "still connected: {stayed:?}");
}

#[test]
fn bytes_that_begin_no_request_do_not_keep_a_connection_open() {
    let server = site(SHORT);
    let h2 = |more: &[u8]| [PREFACE, more].concat();
    let request: &[u8] = b"GET /answered HTTP/1.1\r\nHost: a\r\n\r\n";
    let block = h2(b"\0\0\x01\x01\0\0\0\0\x01\x82");
    let senders: [Sender; 10] = [
        ("blank lines before a request", b"\r\n".to_vec(), b"\r\n"),
        ("blank lines after a request", request.to_vec(), b"\r\n"),
        ("a head in drops", b"GET /".to_vec(), b"a"),
        ("WINDOW_UPDATE", h2(b""), b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x01"),
        ("SETTINGS", h2(b""), b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64"),
        ("PING", h2(b""), b"\0\0\x08\x06\0\0\0\0\0abcdefgh"),
        ("frames of an unknown type", h2(b""), b"\0\0\0\xee\0\0\0\0\0"),
        ("a frame in drops", h2(b"\0\x20\0\xee\0\0\0\0\0"), b"a"),
        ("HEADERS in drops", h2(b"\0\x0f\xa0\x01\x05\0\0\0\x01\x82"), b"\x86"),
        ("CONTINUATION", block, b"\0\0\x01\x09\0\0\0\0\x01\x86"),
    ];
    all_end(&server, &senders);
}

#[test]
fn the_body_of_an_answered_request_is_read_for_lingering_time() {
    let server = site(SHORT);
    let post = |path: &str, framing: &str| {
        format!("POST {path} HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n").into_bytes()
    };
    let (length, chunked) = ("Content-Length: 99999", "Transfer-Encoding: chunked");
    let senders: [Sender; 3] = [
        ("length", post("/answered", length), b"a"),
        ("chunks", post("/answered", chunked), b"1\r\na\r\n"),
        ("405", post("/hello.txt", length), b"a"),
    ];
    all_end(&server, &senders);
}

#[test]
fn a_slow_request_is_not_ended_by_the_time_of_heads_and_idle_connections() {
    let origin = TestUpstream::start();
    let server = http(&format!(
        "client_header_timeout 1s; keepalive_timeout 1s; lingering_timeout 1s; lingering_time 1s;
         server {{ listen 127.0.0.1:@HTTP@; http2 on;
             location / {{ proxy_pass http://{}; }} }}",
        origin.address()
    ));
    let mut client = server.connect();
    for _ in 0..2 {
        client.send("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n");
        for _ in 0..20 {
            std::thread::sleep(PAUSE);
            client.send("x");
        }
        assert_eq!(client.answer().status, 200);
    }
}

// As in nginx, `client_body_timeout` is for clients that send a body.
#[test]
fn a_client_that_waits_for_work_of_this_server_is_not_late() {
    let server = site(
        "client_body_timeout 100ms;
         location = /paced { limit_rate 20k; alias @DIR@/www/paced; }
         location = /hashed { auth_basic x; auth_basic_user_file @DIR@/users; return 204; }",
    );
    let paced = "x".repeat(50_000);
    server.home().write("www/paced", &paced);
    server
        .home()
        .write("users", "a:$2y$14$GThHf8ly.hl5jBvxmg5UBe5.AobpTzFNUZ/1mfqn0Kn.Ru.BO8Jji\n");
    let mut client = server.connect();
    assert!(client.get("/paced", "").text() == paced, "the whole response");
    assert_eq!(client.get("/hashed", "Authorization: Basic YTpi\r\n").status, 204);
}

#[test]
fn the_time_for_trailers_does_not_end_the_response_behind_them() {
    const LEN: usize = 32 << 20;
    let origin = TestUpstream::start();
    origin.say("/", answer("", &"x".repeat(LEN)));
    let server = http(&format!(
        "client_header_timeout 1s; keepalive_timeout 1s;
         server {{ listen 127.0.0.1:@HTTP@; http2 on;
             location / {{ proxy_pass http://{}; proxy_max_temp_file_size 0; }} }}",
        origin.address()
    ));
    // POST / of http://a, with windows of 2 GiB; then an empty field `a` as trailers in two frames.
    let windows = b"\0\0\x06\x04\0\0\0\0\0\0\x04\x7f\xff\xff\xff\
                    \0\0\x04\x08\0\0\0\0\0\x7f\0\0\0";
    let request = b"\0\0\x06\x01\x04\0\0\0\x01\x83\x86\x84\x41\x01a";
    let trailers = b"\0\0\x01\x01\x01\0\0\0\x01\0";
    let mut socket = TcpStream::connect(server.http()).unwrap();
    socket.write_all(&[PREFACE, windows, request, trailers].concat()).unwrap();
    std::thread::sleep(PAUSE);
    socket.write_all(b"\0\0\x03\x09\x04\0\0\0\x01\x01a\0").unwrap();
    // Longer than a head may take, while the response waits for room.
    std::thread::sleep(20 * PAUSE);
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut room, mut got) = (vec![0; 1 << 20], 0);
    while got < LEN {
        match socket.read(&mut room).unwrap() {
            0 => panic!("the connection ended after {got} bytes"),
            len => got += len,
        }
    }
}

/// `client_body_timeout` is the time for request bodies, over HTTP/2 as over HTTP/1.
#[test]
fn a_download_over_http2_may_pause_as_long_as_send_timeout() {
    let server = site("client_body_timeout 1s; send_timeout 60s;");
    std::fs::write(server.www("large.txt"), "x".repeat(100_000)).unwrap();
    let mut socket = TcpStream::connect(server.http()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let settings = b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\x03\xe8";
    let block = b"\x82\x86\x04\x0a/large.txt\x01\x09localhost";
    let head = [&[0, 0, block.len() as u8, 1, 5, 0, 0, 0, 1][..], block].concat();
    socket
        .write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..], &head].concat())
        .unwrap();
    let mut data = 0;
    let mut read_data = |socket: &mut TcpStream, wanted: usize| {
        while data < wanted {
            let mut head = [0; 9];
            socket.read_exact(&mut head).unwrap();
            let len = usize::from(head[1]) << 8 | usize::from(head[2]);
            socket.read_exact(&mut vec![0; len]).unwrap();
            data += if head[3] == 0 { len } else { 0 };
        }
    };
    read_data(&mut socket, 1000);
    bolide_testkit::pause(2500);
    // The window of the stream.
    socket.write_all(b"\0\0\x04\x08\0\0\0\0\x01\0\0\x07\xd0").unwrap();
    read_data(&mut socket, 3000);
}
