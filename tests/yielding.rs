//! WINCH and the way back: the same workers serve again, while requests from before go on.

use std::fs;
use std::thread;

use bolide_testkit::curl::Curl;
use bolide_testkit::h1::H1TestClient;
use bolide_testkit::origin::TestUpstream;
use bolide_testkit::server::LISTEN;
use bolide_testkit::{Proto, wait_until};

use crate::process::{Daemon, MAIN, count, kill, pid_in};

/// Logged by a worker without requests.
const WAITS: &str = "all requests have ended, waiting";
/// Logged when a worker that has yielded serves again.
const SERVES: &str = "accepting connections again";

impl Daemon {
    /// Accepts no connections, though requests go on.
    fn yields(&self) {
        let before = count(&self.log(), "gracefully shutting down");
        self.signal("WINCH");
        wait_until("WINCH", || count(&self.log(), "gracefully shutting down") == before + 2);
    }

    /// The same, and waits until they have ended.
    fn rests(&self) {
        let before = count(&self.log(), WAITS);
        self.signal("WINCH");
        wait_until("the end of all requests", || count(&self.log(), WAITS) == before + 2);
    }

    fn serves_again(&self) {
        let before = count(&self.log(), SERVES);
        self.signal("HUP");
        wait_until("service", || count(&self.log(), SERVES) == before + 2);
    }

    fn connect(&self) -> H1TestClient {
        H1TestClient::connect(([127, 0, 0, 1], self.home.port(0)).into())
    }

    /// Ten requests over as many HTTP/3 connections.
    fn answers_http3(&self) {
        let url = format!("https://127.0.0.1:{}/", self.home.port(1));
        for _ in 0..10 {
            assert_eq!(Curl::new(Proto::H3).args(["-m", "20"]).get(&url).text(), "here");
        }
    }
}

#[test]
fn a_response_that_began_before_winch_reaches_the_requests_after_it() {
    const HALF: usize = 100_000;
    let origin = TestUpstream::scripted(|peer| {
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 200000\r\n\r\n";
        if peer.request().is_ok() && peer.send(head).and(peer.send("a".repeat(HALF))).is_ok() {
            peer.wait("/page");
            let _ = peer.send("b".repeat(HALF));
        }
    });
    let server = format!(
        "listen 127.0.0.1:@HTTP@;
         location = /page {{ page_cache on; proxy_pass http://{}; }}",
        origin.address()
    );
    let daemon = Daemon::start(MAIN, &server);
    let ask = || {
        let mut client = daemon.connect();
        client.send("GET /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert_eq!(client.take(12).unwrap(), b"HTTP/1.1 200");
        client
    };
    origin.hold("/page");
    let mut clients: Vec<_> = (0..2).map(|_| ask()).collect();
    for _ in 0..2 {
        daemon.yields();
        daemon.serves_again();
        clients.extend((0..4).map(|_| ask()));
    }
    origin.release();
    for mut client in clients {
        let rest = client.to_end().unwrap();
        assert!(rest.ends_with(&[b'b'; HALF]), "{} bytes", rest.len());
    }
    assert_eq!(origin.count("/page"), 1, "all had the same response");
}

#[test]
fn http3_goes_on_when_a_server_serves_again() {
    let slow = "location = /big.bin { limit_rate 300k; }";
    let daemon = Daemon::start(MAIN, &format!("{LISTEN} {slow}"));
    let big = fs::read(daemon.home.dir().join("www/big.bin")).unwrap();
    let url = format!("https://127.0.0.1:{}/big.bin", daemon.home.port(1));
    let transfers: Vec<_> = (0..4)
        .map(|number| {
            let copy = daemon.home.dir().join(format!("copy{number}"));
            let curl = Curl::new(Proto::H3).args(["-o", copy.to_str().unwrap()]);
            let url = url.clone();
            (copy, thread::spawn(move || curl.get(&url).status))
        })
        .collect();
    wait_until("a part of each response", || {
        transfers.iter().all(|(copy, _)| fs::metadata(copy).is_ok_and(|copy| copy.len() > 0))
    });
    daemon.yields();
    daemon.serves_again();
    daemon.answers_http3();
    for (copy, transfer) in transfers {
        assert_eq!(transfer.join().unwrap(), 200);
        assert!(fs::read(&copy).unwrap() == big, "{}", copy.display());
    }
    daemon.answers_http3();
    // Without connections the sockets were closed meanwhile.
    daemon.rests();
    daemon.serves_again();
    daemon.answers_http3();
}

#[test]
fn http3_comes_back_to_a_process_whose_successor_ends() {
    let daemon = Daemon::start(MAIN, LISTEN);
    for signal in ["KILL", "QUIT"] {
        let successor = daemon.yields_to_a_successor();
        daemon.answers_http3();
        let before = count(&daemon.log(), SERVES);
        kill(successor, signal);
        wait_until("service", || count(&daemon.log(), SERVES) == before + 2);
        daemon.answers_http3();
    }
    // Both serve, and the successor ends.
    let successor = daemon.yields_to_a_successor();
    daemon.serves_again();
    daemon.answers_http3();
    kill(successor, "QUIT");
    daemon.answers_http3();
}

#[test]
fn first_datagrams_follow_a_successor_that_yields_and_serves_again() {
    let own = format!("{LISTEN} location = /pid {{ return 200 $pid; }}");
    let daemon = Daemon::start(MAIN, &own);
    daemon.signal("USR2");
    wait_until("a successor", || pid_in(&daemon.home, "pid").is_some_and(|pid| pid != daemon.pid));
    let successor = pid_in(&daemon.home, "pid").unwrap();
    let url = format!("https://127.0.0.1:{}/pid", daemon.home.port(1));
    let answers = |pid: u32| {
        let ask = || Curl::new(Proto::H3).args(["-m", "20"]).attempt(&url).text();
        wait_until("its answer", || ask() == pid.to_string());
        (0..6).for_each(|_| assert_eq!(ask(), pid.to_string()));
    };
    answers(successor);
    kill(successor, "WINCH");
    answers(daemon.pid);
    kill(successor, "HUP");
    answers(successor);
    kill(successor, "QUIT");
    answers(daemon.pid);
}

#[test]
fn a_server_that_has_yielded_quits() {
    let daemon = Daemon::start(MAIN, LISTEN);
    daemon.rests();
    daemon.signal("QUIT");
    wait_until("the end", || !daemon.is_running());
    let log = daemon.log();
    assert_eq!(count(&log, "gracefully shutting down"), 2, "{log}");
    assert_eq!(count(&log, "exited with code 0"), 2, "{log}");
}

#[test]
fn worker_shutdown_timeout_cuts_the_requests_of_workers_that_stay() {
    let main = MAIN.replace("events", "worker_shutdown_timeout 1s; events");
    let daemon = Daemon::start(&main, &format!("{LISTEN} location /1k.txt {{ limit_rate 1; }}"));
    fs::write(daemon.home.dir().join("www/1k.txt"), vec![b'x'; 1000]).unwrap();
    let mut held = daemon.connect();
    held.send(b"GET /1k.txt HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(held.take(12).unwrap(), b"HTTP/1.1 200");
    daemon.rests();
    daemon.serves_again();
    daemon.answers_http3();
}
