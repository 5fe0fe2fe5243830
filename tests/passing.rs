//! Answers that the page cache begins to keep and then does not, with a request that follows: what
//! is held of them while one of both is slow.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bolide_testkit::server::LISTEN;
use bolide_testkit::{TestServer, TestUpstream, wait_until};

const PIECE: usize = 100_000;
const PIECES: usize = 3000;
/// Kernel buffers of loopback are no memory of the server.
const GROWN_MAX_KIB: u64 = 60 * 1024;

/// An upstream server that begins a long answer of no stated length, and goes on when told.
fn origin(goes_on: &Arc<AtomicBool>) -> TestUpstream {
    let goes_on = Arc::clone(goes_on);
    TestUpstream::scripted(move |peer| {
        let Ok(_asked) = peer.request() else { return };
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nConnection: close\r\n\r\n";
        let _ = peer.send(head);
        let piece: Vec<u8> = (0..PIECE).map(|n| n as u8).collect();
        let _ = peer.send(&piece);
        wait_until("to be let go on", || goes_on.load(Ordering::Acquire));
        for _ in 1..PIECES {
            if peer.send(&piece).is_err() {
                return;
            }
        }
    })
}

fn serve(origin: &TestUpstream) -> TestServer {
    crate::http(&format!(
        "server {{ {LISTEN} page_cache auto; page_cache_max_object 1m;
         proxy_max_temp_file_size 0; send_timeout 60s;
         location / {{ proxy_pass http://{}; }} }}",
        origin.address()
    ))
}

/// A client that has got the head; without chunks, so that lengths can be compared.
fn ask(server: &TestServer) -> TcpStream {
    let mut client = TcpStream::connect(server.http()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    client.write_all(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n").unwrap();
    client.read_exact(&mut [0; 400]).unwrap();
    client
}

/// Bytes of the answer that come until its end.
fn rest(client: &mut TcpStream) -> usize {
    let (mut all, mut buffer) = (0, vec![0; 1 << 16]);
    loop {
        match client.read(&mut buffer) {
            Ok(0) => return all,
            Ok(n) => all += n,
            Err(why) => panic!("after {all} bytes: {why}"),
        }
    }
}

#[test]
fn an_answer_that_is_not_kept_after_all_costs_little_whoever_reads_it_slowly() {
    for slow in ["leader", "follower"] {
        let goes_on = Arc::new(AtomicBool::new(false));
        let origin = origin(&goes_on);
        let server = serve(&origin);
        let leader = ask(&server);
        let follower = ask(&server);
        assert_eq!(origin.connections(), 1, "the second request is coalesced with the first");
        let before = server.resident_kib();
        let (mut slow_one, mut quick) = match slow {
            "leader" => (leader, follower),
            _ => (follower, leader),
        };
        let quick = std::thread::spawn(move || rest(&mut quick));
        goes_on.store(true, Ordering::Release);
        server.wait_until_it_rests();
        let grown = server.resident_kib().saturating_sub(before);
        assert!(grown < GROWN_MAX_KIB, "a slow {slow}: {grown} KiB for an answer of 300 MB");
        let (slow_len, quick_len) = (rest(&mut slow_one), quick.join().unwrap());
        let heads = PIECE * PIECES - 400..PIECE * PIECES;
        assert!(heads.contains(&slow_len), "the slow {slow} gets all of it: {slow_len}");
        assert!(heads.contains(&quick_len), "the other one, too: {quick_len}");
    }
}
