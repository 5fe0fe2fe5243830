//! `bolide reload`: its result for the person, and what it would change.

use bolide_testkit::server::{LISTEN, prelude};
use bolide_testkit::{TestServer, wait_until};

use crate::BOLIDE;
use crate::explain::ask;

fn conf(n: u32) -> String {
    format!("server {{ {LISTEN} server_name one.test; location /n {{ return 200 {n}; }} }}")
}

fn full(http: &str) -> String {
    format!("{}http {{\n{http}\n}}\n", prelude(1))
}

#[test]
fn a_reload_reports_whether_it_is_in_force() {
    let server = TestServer::conf(BOLIDE, &full(&conf(1)));
    assert_eq!(server.get("/n").text(), "1");
    server.rewrite(&full(&conf(2)));
    let done = ask(&server, &["reload"]).succeeded().text();
    assert_eq!(done, "configuration 2 is in force\n");
    wait_until("the new answer", || server.get("/n").text() == "2");
    let bad = format!("{} upstream nothing {{ }}", conf(3));
    server.rewrite(&full(&bad));
    for words in [&["reload"][..], &["reload", "--dry-run"]] {
        let refused = ask(&server, words);
        assert_eq!(refused.code, 1, "{refused}");
        assert!(refused.stderr.contains("no servers are inside upstream"), "{refused}");
        assert!(refused.stderr.contains("nginx.conf:"), "{refused}");
    }
    assert_eq!(server.get("/n").text(), "2");
}

#[test]
fn an_unreachable_server_is_an_error() {
    let server = TestServer::conf(BOLIDE, &full(&conf(1)));
    let gone = ask(&server, &["reload", "--pid", "4194305"]);
    assert!(gone.code == 1 && gone.stderr.contains("does not run"), "{gone}");
    let wrong = ask(&server, &["reload", "--now"]);
    assert!(wrong.code == 1 && wrong.stderr.contains("--now"), "{wrong}");
}

#[test]
fn a_dry_run_prints_each_difference_and_changes_nothing() {
    let server = TestServer::conf(BOLIDE, &full(&conf(1)));
    let preview = || ask(&server, &["reload", "--dry-run"]).succeeded().text();
    assert_eq!(preview(), "a reload would change nothing\n");
    let port = server.home().port(5);
    let more = format!(
        "upstream app {{ server 127.0.0.1:9; }} proxy_cache_path cache keys_zone=pages:1m;
         server {{ listen 127.0.0.1:{port}; server_name two.test; }}"
    );
    server.rewrite(&full(&(conf(2) + &more)));
    let text = preview();
    for line in [
        "~ server localhost one.test (",
        "    + location /n { return 200 2; }",
        "    - 1 directive",
        "+ upstream app (",
        "~ http (",
        "    + proxy_cache_path cache keys_zone=pages:1m;",
        "+ server two.test (",
        &format!("+ listen 127.0.0.1:{port}"),
        "+ cache zone pages",
    ] {
        assert!(text.lines().any(|one| one.starts_with(line)), "{line}: {text}");
    }
    assert_eq!(text.lines().count(), 9, "{text}");
    assert_eq!(server.get("/n").text(), "1");
    assert!(!server.home().dir().join("cache").exists(), "nothing is made");
    let _done = ask(&server, &["reload"]).succeeded();
    server.rewrite(&full(&conf(2)));
    let back = preview();
    for line in ["~ http (", "    - 1 directive", "- upstream app", "- server two.test"] {
        assert!(back.lines().any(|one| one.starts_with(line)), "{line}: {back}");
    }
    assert_eq!(back.lines().count(), 6, "{back}");
}

#[test]
fn a_dry_run_refuses_what_a_reload_refuses() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let zone = |key: &str| format!("limit_conn_zone {key} zone=a:1m;");
    let start = zone("$binary_remote_addr") + &conf(1);
    let server = TestServer::conf(BOLIDE, &full(&start));
    let rows = [
        (zone("$http_x") + &conf(2), "uses the \"$http_x\" key while previously it used"),
        (
            format!("{start} server {{ listen 127.0.0.1:{port}; }}"),
            "failed (98: Address already in use)",
        ),
        (format!("access_log @DIR@/none/a.log; {start}"), "none/a.log\" failed (2: No such file"),
    ];
    for (http, words) in rows {
        server.rewrite(&full(&http));
        let preview = ask(&server, &["reload", "--dry-run"]);
        assert!(preview.code == 1 && preview.stderr.contains(words), "{words}: {preview}");
        let reload = ask(&server, &["reload"]);
        assert_eq!(reload.code, 1, "{reload}");
        wait_until(words, || server.error_log().contains(words));
        assert_eq!(server.get("/n").text(), "1");
    }
    // A log that is there only with the new configuration is not left behind.
    server.rewrite(&full(&format!("access_log @DIR@/new.log; {start}")));
    let _fine = ask(&server, &["reload", "--dry-run"]).succeeded();
    assert!(!server.home().dir().join("new.log").exists());
}
