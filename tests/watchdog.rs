//! The log of a worker that is stuck in a turn, and `worker_watchdog`.
//!
//! The test stops a worker with ptrace, which the system must permit.

use std::sync::atomic::{AtomicBool, Ordering};

use bolide_testkit::{Companion, SetOnDrop, TestServer, wait_until};

use crate::BOLIDE;

const STANDSTILL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/standstill.py");

fn server(directive: &str) -> TestServer {
    let prelude = bolide_testkit::server::prelude(1);
    let http = "http { server { listen 127.0.0.1:@HTTP@; return 200 ok; } }";
    TestServer::conf(BOLIDE, &format!("{directive}\n{prelude}{http}"))
}

/// Stops the worker where it accepts a client, until the returned value is dropped.
pub(crate) fn hold(server: &TestServer) -> Companion {
    // The sockets listen before there is a worker.
    server.get("/");
    let pid = server.pid().to_string();
    let holder = Companion::start(STANDSTILL, [pid.as_str(), "worker-0"]);
    let is_over = AtomicBool::new(false);
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Clients for the worker to accept, before and after the debugger attaches.
            for _ in 0..5000 {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                server.connect().send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
                bolide_testkit::pause(20);
            }
        });
        let _over = SetOnDrop(&is_over);
        holder.line()
    });
    assert_eq!(said, "held", "missing: the permission to ptrace a process of one's own");
    holder
}

fn has_logged(server: &TestServer, text: &str) -> bool {
    server.error_log().lines().any(|line| line.contains("[alert]") && line.contains(text))
}

const STANDS: &str = "stands still for 5s while ";

#[test]
fn a_hanging_worker_is_logged_and_continues_when_it_can() {
    let server = server("");
    let held = hold(&server);
    wait_until("the alert", || has_logged(&server, STANDS));
    drop(held);
    wait_until("an answer", || {
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client.try_answer("GET").is_ok_and(|answer| answer.text() == "ok")
    });
    assert_eq!(server.stop("TERM").code, 0);
}

#[test]
fn the_process_stops_although_a_worker_stands() {
    let server = server("worker_watchdog log;");
    let _held = hold(&server);
    let exit = server.stop("TERM");
    assert_eq!(exit.code, 0, "{}", exit.error_log);
    assert!(exit.error_log.contains("left behind"), "{}", exit.error_log);
}

#[test]
fn a_hanging_worker_ends_the_process_if_configured() {
    for (directive, code) in [("worker_watchdog restart;", 70), ("worker_watchdog abort;", -1)] {
        let mut server = server(directive);
        let _held = hold(&server);
        let exit = server.wait_exit();
        assert_eq!(exit.code, code, "{directive} {}", exit.error_log);
        assert!(exit.error_log.contains(STANDS), "{}", exit.error_log);
    }
}
