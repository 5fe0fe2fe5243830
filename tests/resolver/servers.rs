//! `server NAME resolve`: the addresses of a name are the servers of a group, as they come and go.

use std::collections::BTreeSet;

use super::{A1, A2, NameReply, TestNames, address, has_logged, http, wait_until};
use crate::BOLIDE;
use bolide_testkit::TestServer;
use bolide_testkit::names::A;

const A3: &str = "127.0.0.3";

/// A server that passes `/` to a group of these lines; four addresses answer with their own one and
/// the number of the connection.
fn serve(names: &TestNames, group: &str, more: &str) -> TestServer {
    http(&format!(
        "upstream group {{ zone group 64k; resolver {} valid=1s ipv6=off; resolver_timeout 2s;
             {group} }}
         server {{ listen 127.0.0.1:@HTTP@; {more}
             location / {{ proxy_pass http://group; proxy_http_version 1.1;
                 proxy_set_header Connection \"\"; add_header X-Up $upstream_addr always; }} }}
         server {{ listen 127.0.0.1:@P2@; listen 127.0.0.2:@P2@; listen 127.0.0.3:@P2@;
             listen 127.0.0.4:@P2@; access_log off; return 200 \"$server_addr $connection\"; }}",
        names.address()
    ))
}

/// The address that answers, or what was tried.
fn up(server: &TestServer) -> String {
    let reply = server.get("/");
    let port = format!(":{}", server.home().port(2));
    reply.header("x-up").unwrap_or_default().replace(&port, "")
}

/// Which addresses answer twelve requests.
fn ups(server: &TestServer) -> BTreeSet<String> {
    (0..12).map(|_| up(server)).collect()
}

fn set(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn answers(names: &TestNames, ips: &[&str]) {
    let records: Vec<Vec<u8>> = ips.iter().map(|ip| address(ip, 300)).collect();
    names.plan("app.test", A, &[NameReply::of(&records)]);
}

/// Waits until the name was asked for twice more, so that the first answer had its effect.
fn asked_again(names: &TestNames) {
    let before = names.count("app.test", A);
    wait_until("two more questions", || names.count("app.test", A) >= before + 2);
}

#[test]
fn the_addresses_of_a_name_are_followed_without_a_reload() {
    let names = TestNames::start();
    let server = serve(&names, "server app.test:@P2@ resolve;", "");
    assert_eq!(up(&server), "group", "a name without an address is no error at the start");
    assert_eq!(server.get("/").status, 502);
    has_logged(&server, "app.test could not be resolved (3: Host not found)");
    has_logged(&server, "no live upstreams while connecting to upstream, client: 127.0.0.1");
    answers(&names, &[A1, A2]);
    wait_until("both addresses", || ups(&server) == set(&[A1, A2]));
    answers(&names, &[A2, A3, A3]);
    wait_until("one went and one came", || ups(&server) == set(&[A2, A3]));
    names.plan("app.test", A, &[NameReply::code(3)]);
    wait_until("no address", || ups(&server) == set(&["group"]));
    answers(&names, &[A1]);
    wait_until("an address again", || ups(&server) == set(&[A1]));
}

#[test]
fn a_question_without_an_answer_changes_nothing() {
    let names = TestNames::start();
    answers(&names, &[A2]);
    let server = serve(&names, "server app.test:@P2@ resolve;", "");
    wait_until("the address", || up(&server) == A2);
    names.plan("app.test", A, &[NameReply::code(2)]);
    asked_again(&names);
    assert_eq!(up(&server), A2);
    has_logged(&server, "app.test could not be resolved (2: Server failure)");
    names.plan("app.test", A, &[NameReply::silence()]);
    has_logged(&server, "app.test could not be resolved (110: Operation timed out)");
    assert_eq!(up(&server), A2);
    let lie = NameReply { id_shift: 1, ..NameReply::ips(&[A3]) };
    names.plan("app.test", A, &[lie]);
    asked_again(&names);
    assert_eq!(up(&server), A2);
}

#[test]
fn one_worker_resolves_for_all() {
    let names = TestNames::start();
    names.say("app.test", NameReply::ips(&[A1]), NameReply::ips(&[]));
    let block = format!(
        "resolver {};
         upstream group {{ zone group 64k; server app.test:@P2@ resolve; }}
         server {{ listen 127.0.0.1:@HTTP@; location / {{ proxy_pass http://group; }} }}
         server {{ listen 127.0.0.1:@P2@; return 200 x; }}",
        names.address()
    );
    let server = TestServer::workers(BOLIDE, 4, &block);
    wait_until("the address", || server.get("/").status == 200);
    for _ in 0..40 {
        assert_eq!(server.get("/").status, 200, "each worker knows it");
    }
    assert_eq!(names.asked("app.test").len(), 2, "A and AAAA, once");
}

#[test]
fn a_server_that_stays_keeps_its_state() {
    let names = TestNames::start();
    // Nothing listens at the second one.
    answers(&names, &[A1, "127.0.0.9"]);
    let line = "server app.test:@P2@ resolve max_fails=1 fail_timeout=1h;";
    let server = serve(&names, line, "");
    let is_disabled = || server.error_log().contains("temporarily disabled");
    wait_until("the dead one failed", || !ups(&server).is_empty() && is_disabled());
    assert_eq!(ups(&server), set(&[A1]));
    answers(&names, &["127.0.0.9", A1, A2]);
    wait_until("a new one", || up(&server) == A2);
    assert_eq!(ups(&server), set(&[A1, A2]), "the dead one is not asked again");
}

#[test]
fn connections_to_a_server_that_stays_are_reused() {
    let names = TestNames::start();
    answers(&names, &[A1, A2]);
    let server = serve(&names, "server app.test:@P2@ resolve; keepalive 8;", "");
    let of = |address: &str| {
        let mut texts = (0..12).map(|_| server.get("/").text());
        texts.find(|text| text.starts_with(&format!("{address} ")))
    };
    wait_until("the addresses", || of(A1).is_some());
    let before = of(A1);
    answers(&names, &[A1, A3]);
    wait_until("a new one", || ups(&server) == set(&[A1, A3]));
    assert_eq!(of(A1), before, "over the same connection");
}

#[test]
fn parameters_of_the_line_hold_for_each_address() {
    let names = TestNames::start();
    answers(&names, &[A1, A2]);
    let down = serve(&names, "server app.test:@P2@ resolve down; server 127.0.0.3:@P2@;", "");
    asked_again(&names);
    assert_eq!(ups(&down), set(&[A3]));
    let lines = "server app.test:@P2@ resolve backup; server 127.0.0.9:@P2@;";
    let backup = serve(&names, lines, "proxy_next_upstream error;");
    wait_until("a backup", || ups(&backup).is_subset(&set(&[A1, A2])));
    let lines = "server app.test:@P2@ resolve weight=2; server 127.0.0.3:@P2@;";
    let weighted = serve(&names, lines, "");
    wait_until("all", || ups(&weighted).len() == 3);
    let all: Vec<String> = (0..10).map(|_| up(&weighted)).collect();
    let count = |ip: &str| all.iter().filter(|up| *up == ip).count();
    assert_eq!((count(A1), count(A2), count(A3)), (4, 4, 2));
}

#[test]
fn a_reload_keeps_the_addresses_until_the_name_is_resolved() {
    let names = TestNames::start();
    answers(&names, &[A2]);
    let server =
        serve(&names, "server app.test:@P2@ resolve;", "location /which { return 200 old; }");
    wait_until("the address", || up(&server) == A2);
    names.hold("app.test", A);
    let file = server.home().dir().join("nginx.conf");
    let text = std::fs::read_to_string(&file).expect("the configuration");
    server.rewrite(&text.replace("return 200 old", "return 200 new"));
    server.signal("HUP");
    wait_until("the new configuration", || server.get("/which").text() == "new");
    assert_eq!(up(&server), A2);
    answers(&names, &[A1]);
    names.release("app.test", A);
    wait_until("the new address", || up(&server) == A1);
}
