//! `worker_shutdown_timeout`: requests that a shutdown or reload leaves running are closed then, in
//! each protocol, and logged; invalid arguments.

use std::thread::JoinHandle;

use bolide_testkit::curl::CurlReply;
use bolide_testkit::server::{Home, LISTEN, TYPES, prelude};
use bolide_testkit::{H1TestClient, Proto, TestServer, TestUpstream, wait_until};

use crate::{BOLIDE, report};

/// A configuration whose requests may continue for `time` after it is replaced.
fn conf(time: &str, origin: &TestUpstream, name: &str) -> String {
    let time =
        if time.is_empty() { String::new() } else { format!("worker_shutdown_timeout {time};") };
    format!(
        "{time} {} http {{ {TYPES}
           log_format post '$request_uri $status $request_completion.'; server {{ {LISTEN}
             access_log @DIR@/logs/cut.log post;
             location = /name {{ access_log off; return 200 {name}; }}
             location = /told {{ post_action /tell; return 200 told; }}
             location / {{ proxy_pass http://{}; }} }} }}\n",
        prelude(1),
        origin.address()
    )
}

fn is(server: &TestServer, name: &str) -> bool {
    server.get("/name").text() == name
}

fn reload(server: &TestServer, text: &str, name: &str) {
    server.rewrite(text);
    server.signal("HUP");
    wait_until("the new configuration", || is(server, name));
}

fn lines(server: &TestServer, count: usize) -> Vec<String> {
    let read = || server.home().read("logs/cut.log");
    wait_until("lines in the log", || read().lines().count() >= count);
    let mut lines: Vec<String> = read().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Requests for `path`, one per protocol, when the upstream has all of them.
fn ask_by_each(
    server: &TestServer,
    origin: &TestUpstream,
    path: &'static str,
) -> Vec<JoinHandle<CurlReply>> {
    let threads = Proto::TLS.map(|proto| {
        let (curl, url) = (server.curl(proto), server.url(proto, path));
        std::thread::spawn(move || curl.attempt(&url))
    });
    wait_until("the origin is asked", || origin.count(path) == threads.len());
    threads.into()
}

#[test]
fn worker_shutdown_timeout_closes_older_requests_after_a_reload_and_no_newer_ones() {
    let origin = TestUpstream::start();
    let server = TestServer::conf(BOLIDE, &conf("500ms", &origin, "one"));
    let mut kept = server.connect();
    assert_eq!(kept.get("/name", "").text(), "one");
    origin.hold("/held");
    let asked = ask_by_each(&server, &origin, "/held");
    assert_eq!(server.get("/told").text(), "told");
    reload(&server, &conf("500ms", &origin, "two"), "two");
    assert_eq!(kept.get("/name", "").text(), "two", "connections outlive it");
    for thread in asked {
        assert_ne!(thread.join().unwrap().status, 200);
    }
    assert_eq!(lines(&server, 4)[..3], ["/held 000 ."; 3]);
    assert_eq!(kept.get("/name", "").text(), "two");
    origin.release();
    assert_eq!(kept.get("/held", "").status, 200, "what came behind the reload is not cut");
}

#[test]
fn post_actions_and_tunnels_are_closed_too() {
    let origin = TestUpstream::start();
    let server = TestServer::conf(BOLIDE, &conf("300ms", &origin, "one"));
    origin.hold("/tell");
    let mut client = server.connect();
    assert_eq!(client.get("/told", "").text(), "told");
    wait_until("the request of the post action", || origin.count("/tell") == 1);
    reload(&server, &conf("", &origin, "two"), "two");
    assert_eq!(lines(&server, 1), ["/told 200 OK."]);
    assert_eq!(client.get("/name", "").text(), "two", "its connection was never at stake");
    origin.release();
}

#[test]
fn without_a_limit_of_the_older_configuration_requests_continue() {
    let origin = TestUpstream::start();
    let server = TestServer::conf(BOLIDE, &conf("", &origin, "one"));
    origin.hold("/held");
    let asked = ask_by_each(&server, &origin, "/held");
    reload(&server, &conf("100ms", &origin, "two"), "two");
    let mut second = server.connect();
    origin.hold("/second");
    origin.release();
    for thread in asked {
        assert_eq!(thread.join().unwrap().status, 200);
    }
    origin.hold("/second");
    second.send("GET /second HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("the origin is asked", || origin.count("/second") == 1);
    reload(&server, &conf("", &origin, "three"), "three");
    assert!(second.is_closed());
    assert_eq!(lines(&server, 4).last().unwrap(), "/second 000 .");
    origin.release();
}

#[test]
fn the_end_of_the_server_cuts_and_logs() {
    let origin = TestUpstream::start();
    let mut server = TestServer::conf(BOLIDE, &conf("300ms", &origin, "one"));
    origin.hold("/held");
    let asked = ask_by_each(&server, &origin, "/held");
    let mut held_client = H1TestClient::connect(server.http());
    held_client.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("the origin is asked", || origin.count("/held") == 4);
    server.signal("QUIT");
    assert_eq!(server.wait_exit().code, 0);
    for thread in asked {
        assert_ne!(thread.join().unwrap().status, 200);
    }
    assert_eq!(server.home().read("logs/cut.log").lines().collect::<Vec<_>>(), ["/held 000 ."; 4]);
    origin.release();
}

#[test]
fn wrong_arguments_are_refused_as_nginx_does() {
    let home = Home::new(BOLIDE);
    let mut failures = Vec::new();
    let rows = [
        (
            "worker_shutdown_timeout;",
            "invalid number of arguments in \"worker_shutdown_timeout\" directive",
        ),
        (
            "worker_shutdown_timeout 1 2;",
            "invalid number of arguments in \"worker_shutdown_timeout\" directive",
        ),
        ("worker_shutdown_timeout x;", "\"worker_shutdown_timeout\" directive invalid value"),
        (
            "worker_shutdown_timeout 1s; worker_shutdown_timeout 2s;",
            "\"worker_shutdown_timeout\" directive is duplicate",
        ),
    ];
    for (text, wanted) in rows {
        let file = home.write("wrong.conf", &format!("events {{}}\n{text}\n"));
        let file = file.to_str().unwrap();
        let done = home.run(&["-t", "-e", "stderr", "-c", file]);
        let wanted = format!(": {wanted} in {file}:2\n");
        if !done.stderr.contains(&wanted) {
            failures.push(format!("{}, want {wanted}", done.stderr));
        }
    }
    report(rows.len(), &failures);
}
