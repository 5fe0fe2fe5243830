//! The upgrade of the binary: no connection is refused, no response is truncated, and a binary that
//! does not start changes nothing.

use std::fs;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use bolide_testkit::server::{Home, LISTEN, prelude};
use bolide_testkit::{Proto, TestServer, wait_until};

use crate::BOLIDE;

/// A site that responds with its process id.
fn block() -> String {
    format!(
        "server {{ {LISTEN} location = /pid {{ return 200 $pid; }}
                   location /slow/ {{ alias @DIR@/www/; limit_rate 2m; }}
                   location /drip/ {{ alias @DIR@/www/; limit_rate 100k; }} }}"
    )
}

/// The contents of a server's pid file.
fn written_pid(server: &TestServer, name: &str) -> Option<u32> {
    fs::read_to_string(server.home().dir().join("logs").join(name)).ok()?.trim().parse().ok()
}

/// The successor of a server; it ends with the test.
struct Successor(u32);

impl Successor {
    /// Sends USR2 and waits until the pid file has another process id.
    fn of(server: &TestServer) -> Self {
        server.signal("USR2");
        wait_until("a successor", || {
            written_pid(server, "pid").is_some_and(|pid| pid != server.pid())
        });
        assert_eq!(written_pid(server, "pid.oldbin"), Some(server.pid()));
        Self(written_pid(server, "pid").unwrap())
    }

    fn signal(&self, signal: &str) {
        let mut kill = std::process::Command::new("kill");
        assert!(kill.args(["-s", signal, &self.0.to_string()]).status().unwrap().success());
    }

    fn is_running(&self) -> bool {
        fs::metadata(format!("/proc/{}", self.0)).is_ok()
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        if self.is_running() {
            self.signal("KILL");
        }
    }
}

/// Requests repeatedly over new connections until told to end; returns the process ids.
fn ask(server: &TestServer, proto: Proto, end: &Arc<AtomicBool>) -> JoinHandle<Vec<String>> {
    let (end, url) = (end.clone(), server.url(proto, "/pid"));
    let curl = move || bolide_testkit::curl::Curl::new(proto).args(["-k"]);
    thread::spawn(move || {
        let mut pids = Vec::new();
        while !end.load(Ordering::Relaxed) {
            pids.push(curl().get(&url).text());
        }
        pids
    })
}

fn transfer(server: &TestServer, proto: Proto) -> JoinHandle<Vec<u8>> {
    let (curl, url) = (server.curl(proto), server.url(proto, "/slow/big.bin"));
    thread::spawn(move || curl.get(&url).body)
}

#[test]
fn an_upgrade_refuses_no_connection_and_truncates_no_response() {
    let mut server = TestServer::workers(BOLIDE, 2, &block());
    let big = fs::read(server.www("big.bin")).unwrap();
    let end = Arc::new(AtomicBool::new(false));
    let askers: Vec<_> = Proto::TLS.into_iter().map(|proto| ask(&server, proto, &end)).collect();
    let early: Vec<_> = Proto::TLS.into_iter().map(|proto| transfer(&server, proto)).collect();
    bolide_testkit::pause(300);

    let successor = Successor::of(&server);
    wait_until("an answer of the successor by each protocol", || {
        Proto::TLS
            .into_iter()
            .all(|proto| server.fetch(proto, "/pid").text() == successor.0.to_string())
    });
    let late: Vec<_> = Proto::TLS.into_iter().map(|proto| transfer(&server, proto)).collect();
    server.signal("QUIT");
    for one in early {
        assert!(one.join().unwrap() == big, "what the elder had begun, it finished");
    }
    assert_eq!(server.wait_exit().code, 0);
    for one in late {
        assert!(one.join().unwrap() == big, "what the successor had begun outlived the elder");
    }
    for proto in Proto::TLS {
        assert_eq!(server.fetch(proto, "/pid").text(), successor.0.to_string());
    }
    let environment = fs::read(format!("/proc/{}/environ", successor.0)).unwrap();
    let is_long = |word: &&[u8]| word.len() >= 32 && word.iter().all(u8::is_ascii_hexdigit);
    let words = environment.split(|byte| !byte.is_ascii_alphanumeric());
    assert_eq!(words.filter(is_long).count(), 0, "keys do not travel where others can read them");
    end.store(true, Ordering::Relaxed);
    let known = [server.pid().to_string(), successor.0.to_string()];
    for asker in askers {
        let pids = asker.join().unwrap();
        assert!(pids.len() > 5 && pids.iter().all(|pid| known.contains(pid)), "{pids:?}");
    }
    successor.signal("QUIT");
    wait_until("the successor to end", || !successor.is_running());
}

#[test]
fn two_hand_overs_in_a_row_work_as_one() {
    let mut server = TestServer::workers(BOLIDE, 2, &block());
    let first = Successor::of(&server);
    server.signal("QUIT");
    assert_eq!(server.wait_exit().code, 0);
    wait_until("a second successor", || {
        // Refused until it has taken over the places in the reuseport groups, and while a successor
        // starts.
        first.signal("USR2");
        written_pid(&server, "pid").is_some_and(|pid| pid != first.0)
    });
    let second = Successor(written_pid(&server, "pid").unwrap());
    first.signal("QUIT");
    wait_until("the first successor to end", || !first.is_running());
    for proto in Proto::TLS.into_iter().cycle().take(12) {
        assert_eq!(server.fetch(proto, "/pid").text(), second.0.to_string());
    }
}

#[test]
fn commands_find_the_server_while_its_successor_has_no_pid_file_yet() {
    let server = TestServer::workers(BOLIDE, 1, &block());
    let logs = server.home().dir().join("logs");
    wait_until("the pid file", || written_pid(&server, "pid") == Some(server.pid()));
    fs::rename(logs.join("pid"), logs.join("pid.oldbin")).unwrap();
    let run = |args: &[&str]| server.home().run(&[&["-c", "nginx.conf"], args].concat());
    for args in [&["status"][..], &["metrics"], &["-s", "reopen"]] {
        let _fine = run(args).succeeded();
    }
    // What ends the server waits for the file: the successor would live on.
    for signal in ["stop", "quit"] {
        let done = run(&["-s", signal]);
        assert!(done.code == 1 && done.stderr.contains("logs/pid\" failed (2"), "{done}");
    }
    fs::rename(logs.join("pid.oldbin"), logs.join("pid")).unwrap();
}

#[test]
fn a_successor_that_does_not_start_changes_nothing() {
    let server = TestServer::workers(BOLIDE, 2, &block());
    let good = server.home().read("nginx.conf");
    server.rewrite("events {} http { server { listen 80");
    server.signal("USR2");
    wait_until("the alert", || server.error_log().contains("the new binary ended"));
    assert_eq!(written_pid(&server, "pid"), Some(server.pid()));
    assert_eq!(written_pid(&server, "pid.oldbin"), None);
    for proto in Proto::TLS.into_iter().cycle().take(9) {
        assert_eq!(server.fetch(proto, "/pid").text(), server.pid().to_string());
    }
    server.rewrite(&good);
    let successor = Successor::of(&server);
    successor.signal("QUIT");
    wait_until("the successor to end", || written_pid(&server, "pid") == Some(server.pid()));
    for proto in Proto::TLS.into_iter().cycle().take(9) {
        assert_eq!(server.fetch(proto, "/pid").text(), server.pid().to_string());
    }
}

#[test]
fn a_successor_that_ends_first_leaves_new_connections_to_the_old_process() {
    let server = TestServer::workers(BOLIDE, 2, &block());
    let big = fs::read(server.www("big.bin")).unwrap();
    let successor = Successor::of(&server);
    wait_until("an answer of the successor", || {
        server.fetch(Proto::H3, "/pid").text() == successor.0.to_string()
    });
    let (curl, url) = (server.curl(Proto::H3), server.url(Proto::H3, "/drip/big.bin"));
    let copy = server.home().dir().join("copy");
    let curl = curl.args(["-o", copy.to_str().unwrap()]);
    let late = thread::spawn(move || curl.get(&url).status);
    wait_until("a part of a response", || fs::metadata(&copy).is_ok_and(|copy| copy.len() > 0));
    successor.signal("QUIT");
    wait_until("an answer of the old process by each protocol", || {
        let own = server.pid().to_string();
        Proto::TLS.into_iter().all(|proto| server.fetch(proto, "/pid").text() == own)
    });
    let mut beside = 0;
    for proto in Proto::TLS.into_iter().cycle().take(24) {
        assert_eq!(server.fetch(proto, "/pid").text(), server.pid().to_string());
        beside += usize::from(successor.is_running());
    }
    assert!(beside >= 3, "its transfer goes on meanwhile");
    assert_eq!(late.join().unwrap(), 200);
    assert!(fs::read(&copy).unwrap() == big);
    wait_until("the successor to end", || written_pid(&server, "pid") == Some(server.pid()));
}

#[test]
fn an_upgrade_changes_the_number_of_workers_and_a_reload_reports_that_it_does_not() {
    let mut server = TestServer::workers(BOLIDE, 3, &block());
    let text = server.home().read("nginx.conf");
    let other =
        |workers: u32| text.replace("worker_processes 3", &format!("worker_processes {workers}"));
    server.rewrite(&other(1));
    server.signal("HUP");
    let words = "\"worker_processes\" asks for 1 workers, but a reload keeps the 3 there are; an \
                 upgrade (USR2, then QUIT to the old process) or a restart changes their number";
    wait_until("the warning", || {
        server.error_log().lines().any(|line| line.contains("[warn] ") && line.ends_with(words))
    });
    let successor = Successor::of(&server);
    let pid = successor.0.to_string();
    server.signal("QUIT");
    assert_eq!(server.wait_exit().code, 0);
    // The kernel distributes connections to the sockets of three workers; one worker serves all.
    for _ in 0..30 {
        let url = format!("http://{}/pid", server.http());
        let reply = server.curl(Proto::H1).args(["--max-time", "5"]).attempt(&url);
        assert_eq!((reply.status, reply.text()), (200, pid.clone()));
    }
    for proto in Proto::TLS.into_iter().cycle().take(9) {
        assert_eq!(server.fetch(proto, "/pid").text(), pid);
    }
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let names = threads.map(|task| fs::read_to_string(task.path().join("comm")).unwrap());
    assert_eq!(names.filter(|name| name.starts_with("worker-")).count(), 1);
    successor.signal("QUIT");
    wait_until("the successor to end", || !successor.is_running());
}

/// The successor of a process that is not the first.
fn heir_of(server: &TestServer, elder: &Successor) -> Successor {
    wait_until("a successor", || {
        // Refused until it has taken over the places in the reuseport groups, and while a successor
        // starts.
        elder.signal("USR2");
        written_pid(server, "pid").is_some_and(|pid| pid != elder.0)
    });
    Successor(written_pid(server, "pid").unwrap())
}

#[test]
fn after_each_way_back_the_files_that_the_configuration_watches_are_watched() {
    let home = Home::new(BOLIDE);
    let write = |dir: &std::path::Path, code: &str| {
        fs::write(dir.join("new"), crate::geoip::countries(code).bytes()).unwrap();
        fs::rename(dir.join("new"), dir.join("country.mmdb")).unwrap();
    };
    write(home.dir(), "AA");
    let conf = format!(
        "{} http {{ geoip2 country.mmdb {{ auto_reload 1s; $code country iso_code; }}
         server {{ listen 127.0.0.1:@HTTP@; add_header Pid $pid; return 200 $code; }} }}",
        prelude(1)
    );
    let mut server = TestServer::start(home, &conf);
    // Only a server in the background heeds WINCH.
    let first = Successor::of(&server);
    server.signal("QUIT");
    assert_eq!(server.wait_exit().code, 0);
    let serves = |one: &Successor| {
        let pid = one.0.to_string();
        server.get("/").header("pid") == Some(pid.as_str())
    };
    for (code, way) in [("BB", "HUP"), ("CC", "its successor ends"), ("DD", "HUP")] {
        let second = heir_of(&server, &first);
        first.signal("WINCH");
        wait_until("the successor alone", || (0..9).all(|_| serves(&second)));
        if way == "HUP" {
            first.signal("HUP");
            wait_until("the workers again", || (0..9).any(|_| serves(&first)));
        }
        second.signal("QUIT");
        wait_until("the old process", || written_pid(&server, "pid") == Some(first.0));
        write(server.home().dir(), code);
        wait_until(way, || serves(&first) && server.get("/").text() == code);
    }
}

#[test]
fn nothing_of_a_refused_configuration_comes_into_force_when_a_successor_fails() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let conf = |names: &str, more: &str| {
        format!(
            "{} http {{ acme_issuer local {{ state_path @DIR@/acme; local lifetime=1d; }}
             server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl;
             server_name {names}; auto_https local; location / {{ return 200 x; }} }} {more} }}",
            prelude(1)
        )
    };
    let server = TestServer::start(Home::new(BOLIDE), &conf("a.test b.test", ""));
    let redirects = || {
        let curl = server.curl(Proto::H1).args(["-H", "Host: a.test"]);
        curl.attempt(&format!("http://{}/", server.http())).status == 308
    };
    wait_until("the first certificate", redirects);
    let port = taken.local_addr().unwrap().port();
    let other = format!("server {{ listen 127.0.0.1:{port}; }}");
    server.rewrite(&conf("c.test", &other));
    server.signal("HUP");
    wait_until("the refusal", || server.error_log().contains("still could not bind()"));
    assert!(redirects());
    server.signal("USR2");
    wait_until("the alert", || server.error_log().contains("the new binary ended"));
    for _ in 0..20 {
        assert!(redirects(), "{}", server.error_log());
        thread::sleep(std::time::Duration::from_millis(50));
    }
    server.rewrite(&conf("a.test c.test", ""));
    server.signal("HUP");
    wait_until("the good one", || server.error_log().contains("reconfigured"));
    wait_until("both", redirects);
}
