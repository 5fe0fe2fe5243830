//! `reload_watch`: a configuration under which clearly more fails than before is taken back.

use std::net::TcpListener;

use bolide_testkit::server::{LISTEN, prelude};
use bolide_testkit::{Proto, TestServer, certs, run, wait_until};

use crate::BOLIDE;
use crate::explain::ask;

/// A configuration that watches for that long, with these servers.
fn conf(time: &str, servers: &str) -> String {
    let prelude = prelude(1).replace("error.log info", "error.log notice");
    format!("{prelude}reload_watch {time};\nhttp {{\n{servers}\n}}\n")
}

/// A server on all listeners that answers with `status` and `text`.
fn answers(status: u16, text: &str) -> String {
    format!("server {{ {LISTEN} location /n {{ return {status} {text}; }} }}")
}

/// Enough requests, by one connection each; all get `status`.
fn ask_often(server: &TestServer, status: u16) {
    for _ in 0..20 {
        assert_eq!(server.get("/n").status, status);
    }
}

/// Asks until the server with the text `text` answers: meanwhile all that fails is counted.
fn ask_until(server: &TestServer, text: &str) {
    wait_until(&format!("an answer {text}"), || server.get("/n").text() == text);
}

#[test]
fn a_configuration_that_answers_with_errors_is_taken_back_and_reported() {
    let server = TestServer::conf(BOLIDE, &conf("300s", &answers(200, "first")));
    ask_often(&server, 200);
    let port = server.home().port(5);
    let bad = format!("{} server {{ listen 127.0.0.1:{port}; }}", answers(502, "second"));
    server.rewrite(&conf("300s", &bad));
    let output = ask(&server, &["reload"]).succeeded().text();
    assert!(output.starts_with("configuration 2 is in force\nit is watched for "), "{output}");
    let state = ask(&server, &["status"]).succeeded().text();
    assert!(state.contains("\nconfiguration 2 is watched for "), "{state}");
    ask_until(&server, "first");
    let log = server.error_log();
    assert!(log.contains(": watching configuration 2 for 300s\n"), "{log}");
    let line = log.lines().find(|line| line.contains("[alert]")).expect("an alert");
    assert!(line.contains("configuration 2 fails more often than configuration 1: "), "{line}");
    // The last of the first ones may be counted after the reload.
    assert!(line.contains(" requests ended with 5xx, 0 of "), "{line}");
    assert!(line.ends_with("; putting configuration 1 back"), "{line}");
    assert!(log.contains("configuration 1 is in force again, as configuration 3\n"), "{log}");
    assert!(std::net::TcpStream::connect(server.addr(5)).is_err(), "its listener is closed");
    let state = ask(&server, &["status"]).succeeded().text();
    let line = "\nthe last reload was taken back: configuration 2 fails more often than ";
    assert!(state.contains(line) && !state.contains("is watched for"), "{state}");
    let json = ask(&server, &["status", "--json"]).succeeded().text();
    let part = "\"taken_back\":1,\"was_taken_back\":true,\"watched_until_s\":0";
    assert!(json.contains(part), "{json}");
    let figures = ask(&server, &["metrics"]).succeeded().text();
    for line in ["bolide_config_reloads_taken_back_total 1", "bolide_config_generation 3"] {
        assert!(figures.lines().any(|one| one == line), "{line}: {figures}");
    }
    // The restored configuration is not watched; the next reload is reported like any other.
    server.rewrite(&conf("300s", &answers(200, "third")));
    assert_eq!(ask(&server, &["reload", "--dry-run"]).succeeded().text().matches('~').count(), 1);
    let _told = ask(&server, &["reload"]).succeeded();
    ask_until(&server, "third");
    let json = ask(&server, &["status", "--json"]).succeeded().text();
    assert!(json.contains("\"taken_back\":1,\"was_taken_back\":false"), "{json}");
}

#[test]
fn a_configuration_that_answers_as_before_stays_and_a_command_may_wait_for_that() {
    let server = TestServer::conf(BOLIDE, &conf("1s", &answers(200, "first")));
    ask_often(&server, 200);
    server.rewrite(&conf("1s", &answers(404, "second")));
    let output = std::thread::scope(|scope| {
        let output = scope.spawn(|| ask(&server, &["reload", "--wait"]));
        while !output.is_finished() {
            let _answered = server.get("/n");
        }
        output.join().unwrap().succeeded().text()
    });
    assert!(output.starts_with("configuration 2 stays in force: 0 of "), "{output}");
    assert_eq!(server.get("/n").text(), "second");
    // Without the directive on both sides nothing is watched.
    server.rewrite(&conf("0", &answers(500, "third")));
    let output = ask(&server, &["reload", "--wait"]).succeeded().text();
    assert_eq!(output, "configuration 3 is in force\n");
    ask_until(&server, "third");
    server.rewrite(&conf("300s", &answers(500, "fourth")));
    let output = ask(&server, &["reload"]).succeeded().text();
    assert_eq!(output, "configuration 4 is in force\n");
}

#[test]
fn a_terminal_shows_the_waiting_time_of_a_command_and_a_script_does_not() {
    let server = TestServer::conf(BOLIDE, &conf("6s", &answers(200, "first")));
    let _asked = ask(&server, &["status"]);
    let command =
        format!("{BOLIDE} reload --wait -p {} -c nginx.conf", server.home().dir().display());
    let shown = run("script", ["-qec", &command, "/dev/null"]).succeeded().text();
    assert!(shown.contains("\rwaiting for the server: "), "{shown:?}");
    assert!(shown.contains(" \rconfiguration 2 stays in force: "), "{shown:?}");
    let output = ask(&server, &["reload", "--wait"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
}

#[test]
fn a_command_that_waits_fails_if_the_configuration_is_taken_back() {
    let server = TestServer::conf(BOLIDE, &conf("300s", &answers(200, "first")));
    ask_often(&server, 200);
    server.rewrite(&conf("300s", &answers(500, "second")));
    let output = std::thread::scope(|scope| {
        let output = scope.spawn(|| ask(&server, &["reload", "--wait"]));
        while !output.is_finished() {
            let _answered = server.get("/n");
        }
        output.join().unwrap()
    });
    assert_eq!(output.code, 1, "{output}");
    let end = "configuration 1 is in force again, as configuration 3\n";
    assert!(output.stderr.ends_with(end), "{output}");
    assert_eq!(server.get("/n").text(), "first");
}

#[test]
fn another_reload_ends_the_watch_and_a_rollback_restores_the_last_good_configuration() {
    let server = TestServer::conf(BOLIDE, &conf("300s", &answers(200, "first")));
    ask_often(&server, 200);
    for (status, text) in [(200, "second"), (503, "third")] {
        server.rewrite(&conf("300s", &answers(status, text)));
        let _told = ask(&server, &["reload"]).succeeded();
        if status == 200 {
            ask_until(&server, text);
        }
    }
    ask_until(&server, "first");
    let log = server.error_log();
    assert!(log.contains("the watch over configuration 2 ends: another reload\n"), "{log}");
    assert!(log.contains("configuration 1 is in force again, as configuration 4\n"), "{log}");
}

#[test]
fn a_refused_reload_leaves_the_watch_as_it_was() {
    let server = TestServer::conf(BOLIDE, &conf("300s", &answers(200, "first")));
    ask_often(&server, 200);
    server.rewrite(&conf("300s", &answers(500, "second")));
    let _told = ask(&server, &["reload"]).succeeded();
    server.rewrite(&conf("300s", "nothing;"));
    assert_eq!(ask(&server, &["reload"]).code, 1);
    ask_until(&server, "first");
}

#[test]
fn a_failed_rollback_is_reported() {
    let with_port = format!("{} server {{ listen 127.0.0.1:@P5@; }}", answers(200, "first"));
    let server = TestServer::conf(BOLIDE, &conf("300s", &with_port));
    ask_often(&server, 200);
    server.rewrite(&conf("300s", &answers(500, "second")));
    let _told = ask(&server, &["reload"]).succeeded();
    let mut taken = None;
    wait_until("the port to be free", || {
        taken = TcpListener::bind(server.addr(5)).ok();
        taken.is_some()
    });
    wait_until("the end of the watch", || {
        let _answered = server.get("/n");
        server.error_log().contains("cannot be put back in force, configuration 2 stays: ")
    });
    let log = server.error_log();
    assert!(log.contains(&format!("bind() to {} failed (98: ", server.addr(5))), "{log}");
    assert_eq!(server.get("/n").text(), "second");
    let state = ask(&server, &["status"]).succeeded().text();
    assert!(state.contains("\nthe last reload failed: configuration 2 fails "), "{state}");
    assert!(state.contains("configuration 1 cannot be put back in force"), "{state}");
    let json = ask(&server, &["status", "--json"]).succeeded().text();
    assert!(json.contains("\"taken_back\":0,\"was_taken_back\":false"), "{json}");
}

#[test]
fn failed_handshakes_count_and_a_rollback_restores_certificates() {
    let server = TestServer::conf(BOLIDE, &conf("300s", &answers(200, "first")));
    let cert = server.home().dir().join("cert.pem");
    let kept = server.home().dir().join("kept.pem");
    let _copied = std::fs::copy(&cert, &kept).unwrap();
    let attempt = || server.curl(Proto::H1).trusting(&kept).attempt(&server.url(Proto::H1, "/n"));
    for _ in 0..12 {
        assert_eq!(attempt().text(), "first");
    }
    // The files are others by now, and handshakes are refused.
    let _made = certs::make(server.home().dir(), "cert", certs::CertKey::Ecdsa, &["other.test"]);
    let bad = answers(200, "second") + "\n";
    server.rewrite(&conf(
        "300s",
        &bad.replace("server_name", "ssl_reject_handshake on; server_name"),
    ));
    let _told = ask(&server, &["reload"]).succeeded();
    wait_until("the old certificate", || attempt().text() == "first");
    let log = server.error_log();
    assert!(log.contains(" handshakes failed, 0 of 12 before; putting configuration 1"), "{log}");
    let fresh = run("openssl", ["x509", "-in", cert.to_str().unwrap(), "-noout", "-subject"]);
    assert!(fresh.succeeded().text().contains("other.test"));
}

#[test]
fn garbage_and_clients_that_leave_take_nothing_back() {
    let server = TestServer::conf(BOLIDE, &conf("3s", &answers(200, "first")));
    let home = server.home().dir();
    let kept = home.join("cert.pem");
    let _made = certs::make(home, "other", certs::CertKey::Ecdsa, &["other.test"]);
    let other = home.join("other.pem");
    for _ in 0..12 {
        let good = server.curl(Proto::H1).trusting(&kept).attempt(&server.url(Proto::H1, "/n"));
        assert_eq!(good.text(), "first");
    }
    server.rewrite(&conf("3s", &answers(200, "second")));
    let _told = ask(&server, &["reload"]).succeeded();
    // A record of a handshake with nonsense, and the beginning of one.
    let (nonsense, half) = (b"\x16\x03\x01\x00\x04abcd", b"\x16\x03\x01\x00\x10ab");
    for sent in [&nonsense[..], half].iter().cycle().take(60) {
        let mut client = bolide_testkit::H1TestClient::connect(server.https());
        client.send(sent);
        drop(client);
    }
    wait_until("the end of the watch", || {
        server.error_log().contains("configuration 2 stays in force")
    });
    let failures = |transport: &str, cause: &str| {
        let name = "bolide_tls_handshake_failures_total";
        let line = format!("{name}{{transport=\"{transport}\",cause=\"{cause}\"}} ");
        let all = ask(&server, &["metrics"]).succeeded().text();
        let of_it = all.lines().find_map(|row| row.strip_prefix(&line)).map(str::to_owned);
        of_it.and_then(|count| count.parse::<u64>().ok()).unwrap_or_default()
    };
    wait_until("sixty to be counted", || failures("tcp", "abandoned") == 60);
    assert_eq!(failures("tcp", "refused"), 0);
    // This client does not know the authority, and says so by an alert; curl leaves without one.
    let at = server.https().to_string();
    let words = ["s_client", "-verify_return_error", "-CAfile", other.to_str().unwrap()];
    let refusing = run("openssl", words.into_iter().chain(["-connect", &at]));
    assert_eq!(refusing.code, 1, "{refusing}");
    wait_until("the refusal to be counted", || failures("tcp", "refused") == 1);
    let leaving = server.curl(Proto::H3).trusting(&other);
    assert_eq!(leaving.attempt(&server.url(Proto::H3, "/n")).exit, 60);
    wait_until("the other to be counted", || failures("quic", "abandoned") == 1);
    assert_eq!(failures("quic", "refused"), 0);
    assert_eq!(server.get("/n").text(), "second");
}
