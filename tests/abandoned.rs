//! The cost of clients that request cacheable pages and leave at once, for the upstream and for
//! other clients.

use std::io::ErrorKind::{TimedOut, WouldBlock};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bolide_testkit::server::LISTEN;
use bolide_testkit::{TestServer, wait_until};

/// An upstream that responds only on command, and knows which clients are still connected.
#[derive(Clone, Default)]
struct Mute {
    asked: Arc<AtomicUsize>,
    live: Arc<AtomicUsize>,
    answers: Arc<AtomicBool>,
}

impl Mute {
    fn start() -> (Self, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mute = Self::default();
        let owner = mute.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mute = owner.clone();
                std::thread::spawn(move || mute.listen(stream));
            }
        });
        (mute, port)
    }

    fn listen(&self, mut stream: TcpStream) {
        let mut bytes = [0; 4096];
        if !stream.read(&mut bytes).is_ok_and(|n| n > 0) {
            return;
        }
        self.live.fetch_add(1, Ordering::SeqCst);
        self.asked.fetch_add(1, Ordering::SeqCst);
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        loop {
            match stream.read(&mut bytes) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if matches!(error.kind(), WouldBlock | TimedOut) => {
                    if self.answers.load(Ordering::SeqCst) {
                        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate";
                        let _gone = stream.write_all(answer);
                        break;
                    }
                }
                Err(_) => break,
            }
        }
        self.live.fetch_sub(1, Ordering::SeqCst);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn live(&self) -> usize {
        self.live.load(Ordering::SeqCst)
    }
}

const CLIENTS: usize = 300;
/// LIMIT: fills without a follower that one worker allows per upstream.
const BOUND: usize = bolide_base::limits::UNWAITED_FILLS_PER_ORIGIN_MAX;

fn serve(port: u16, connections: u32) -> TestServer {
    let prelude = bolide_testkit::server::prelude(1)
        .replace("worker_connections 2048", &format!("worker_connections {connections}"));
    let types = bolide_testkit::server::TYPES;
    // So few descriptors that the fills of all clients would leave none for files.
    let conf = format!(
        "worker_rlimit_nofile 300; {prelude}http {{{types} page_cache on;
           server {{ {LISTEN}
             location /slow {{ proxy_pass http://127.0.0.1:{port}; proxy_read_timeout 1h; }} }} }}"
    );
    TestServer::start(bolide_testkit::server::Home::new(crate::BOLIDE), &conf)
}

fn ask(server: &TestServer, path: &str) -> TcpStream {
    let mut client = TcpStream::connect(server.http()).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    client.write_all(head.as_bytes()).unwrap();
    client
}

/// Lets `count` clients request pages of their own, and leave when all requests are upstream.
fn ask_and_leave(server: &TestServer, origin: &Mute, group: usize, count: usize) {
    let before = origin.asked();
    let ask = |number| ask(server, &format!("/slow/{group}/{number}"));
    let open: Vec<_> = (0..count).map(ask).collect();
    wait_until("the origin is asked", || origin.asked() >= before + count);
    drop(open);
}

/// A figure of the worker's status.
fn figure(server: &TestServer, name: &str) -> usize {
    let status = crate::explain::ask(server, &["status", "--json"]).succeeded().text();
    crate::explain::field(&status, name).parse().unwrap()
}

#[test]
fn clients_that_abort_at_once_leave_few_fills() {
    let (origin, port) = Mute::start();
    let server = serve(port, 2048);
    for group in 0..CLIENTS / 50 {
        ask_and_leave(&server, &origin, group, 50);
        wait_until("what they left ends", || origin.live() <= BOUND);
        assert_eq!(server.get("/hello.txt").status, 200, "after {group} groups");
    }
    assert!(origin.live() > 0, "some may end for the next visitor");
    wait_until("the figure to be the real one", || {
        figure(&server, "unwaited_fills") == origin.live()
    });
    assert!(figure(&server, "ended_fills") >= CLIENTS - 2 * BOUND);
}

#[test]
fn a_coalesced_request_is_answered_after_the_first_client_left() {
    let (origin, port) = Mute::start();
    let server = serve(port, 2048);
    ask_and_leave(&server, &origin, 0, BOUND);
    let first = ask(&server, "/slow/joined");
    wait_until("the origin is asked", || origin.asked() == BOUND + 1);
    let mut second = ask(&server, "/slow/joined");
    drop(first);
    ask_and_leave(&server, &origin, 1, BOUND);
    origin.answers.store(true, Ordering::SeqCst);
    let mut answer = String::new();
    second.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("late"), "{answer}");
}

#[test]
fn abandoned_fills_give_way_to_clients() {
    let (origin, port) = Mute::start();
    let server = serve(port, 20);
    ask_and_leave(&server, &origin, 0, 15);
    wait_until("their fills are left", || figure(&server, "unwaited_fills") == 15);
    // These and the abandoned fills exceed the connection limit.
    let stay: Vec<_> =
        (0..15).map(|number| ask(&server, &format!("/slow/stays/{number}"))).collect();
    wait_until("all reach the origin", || origin.asked() == 30);
    assert_eq!(server.get("/hello.txt").status, 200);
    wait_until("abandoned fills end", || origin.live() < 20);
    assert!(!server.error_log().contains("worker_connections are not enough"));
    drop(stay);
}
