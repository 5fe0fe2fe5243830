//! Session resumption: ticket keys from files, session caches, timeouts.

use std::path::Path;

use bolide_testkit::server::Home;
use bolide_testkit::{TestServer, run};

use crate::BOLIDE;

const LISTEN: &str = "listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl; server_name localhost;
    location / { return 200 \"reused $ssl_session_reused\\n\"; }";

/// A server with the certificate `cert`, so that a client cannot distinguish two of them.
fn start(workers: u32, cert: &Path, directives: &str) -> TestServer {
    let prelude = bolide_testkit::server::prelude(workers);
    let (dir, home) = (cert.display(), Home::new(BOLIDE));
    let conf = format!(
        "{prelude}http {{ ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/cert.key;
         server {{ {LISTEN} {directives} }} }}"
    );
    TestServer::start(home, &conf)
}

fn fill(dir: &Path, name: &str, len: usize, seed: u8) {
    let bytes: Vec<u8> = (0..len).map(|at| seed.wrapping_add(at as u8)).collect();
    std::fs::write(dir.join(name), bytes).unwrap();
}

/// The server's view of a session: `.` for a new one, `r` for a resumed one. `more` shows
/// `s_client` where to save or load it.
pub(crate) fn ask(server: &TestServer, version: &str, more: &str) -> String {
    // With the response the client reads the ticket, which in 1.3 comes after the handshake.
    let script = format!(
        "(printf 'GET / HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n'; \
         sleep 0.3) | openssl s_client -quiet -{version} -connect {} -servername localhost {more} \
         2>/dev/null || true",
        server.https()
    );
    let text = run("sh", ["-c", &script]).text();
    let at = text.find("reused ").unwrap_or_else(|| panic!("{version} {more}: {text}"));
    text[at + 7..at + 8].to_owned()
}

pub(crate) const VERSIONS: [&str; 2] = ["tls1_2", "tls1_3"];

#[test]
fn two_servers_with_one_key_take_up_one_anothers_sessions() {
    let shared = Home::new(BOLIDE);
    let dir = shared.dir();
    fill(dir, "old", 48, 1);
    fill(dir, "new", 80, 2);
    let key = |name: &str| format!("ssl_session_ticket_key {}/{name};", dir.display());
    let old = start(1, dir, &key("old"));
    let mut both = start(2, dir, &format!("{}{}", key("new"), key("old")));
    let new = start(1, dir, &key("new"));
    for version in VERSIONS {
        let kept = format!("{}/session-{version}", dir.display());
        let (save, load) = (format!("-sess_out {kept}"), format!("-sess_in {kept}"));
        assert_eq!(ask(&old, version, &save), ".");
        assert_eq!(ask(&both, version, &load), "r", "{version}: the second key opens");
        assert_eq!(ask(&new, version, &load), ".", "{version}: another key does not");
        assert_eq!(ask(&both, version, &save), ".");
        assert_eq!(ask(&new, version, &load), "r", "{version}: the first key seals");
        assert_eq!(ask(&old, version, &load), ".", "{version}");
        both.restart("TERM");
        assert_eq!(ask(&both, version, &load), "r", "{version}: after a restart");
    }
}

#[test]
fn keys_of_our_own_end_with_the_process() {
    let shared = Home::new(BOLIDE);
    let mut server = start(2, shared.dir(), "");
    for version in VERSIONS {
        let kept = format!("{}/session-{version}", shared.dir().display());
        assert_eq!(ask(&server, version, &format!("-sess_out {kept}")), ".");
        let load = format!("-sess_in {kept}");
        assert_eq!(ask(&server, version, &load), "r", "{version}");
        server.signal("HUP");
        assert_eq!(ask(&server, version, &load), "r", "{version}: after a reload");
        server.restart("TERM");
        assert_eq!(ask(&server, version, &load), ".", "{version}: after a restart");
    }
}

#[test]
fn sessions_without_tickets_are_stored_in_the_configured_cache() {
    let shared = Home::new(BOLIDE);
    for (directives, no_ticket, reused) in [
        ("ssl_session_tickets off;", "", "."),
        ("ssl_session_tickets off; ssl_session_cache none;", "", "."),
        ("ssl_session_tickets off; ssl_session_cache shared:a:1m;", "", "r"),
        ("ssl_session_tickets off; ssl_session_cache builtin;", "", "r"),
        ("ssl_session_tickets off; ssl_session_cache builtin:100 shared:a:1m;", "", "r"),
        ("ssl_session_cache shared:a:1m;", "-no_ticket", "r"),
        ("ssl_session_cache off;", "", "r"),
    ] {
        let server = start(2, shared.dir(), directives);
        for version in VERSIONS {
            let kept = format!("{}/session", shared.dir().display());
            let _ = std::fs::remove_file(&kept);
            assert_eq!(ask(&server, version, &format!("{no_ticket} -sess_out {kept}")), ".");
            // A session that cannot be resumed may not be saved at all.
            let load = Path::new(&kept).exists().then(|| format!("-sess_in {kept}"));
            let more = format!("{no_ticket} {}", load.unwrap_or_default());
            let again = ask(&server, version, &more);
            assert_eq!(again, reused, "{directives} {version}");
        }
    }
}

#[test]
fn a_session_ends_with_its_time() {
    let shared = Home::new(BOLIDE);
    for directives in [
        "ssl_session_timeout 0;",
        "ssl_session_timeout 0; ssl_session_tickets off; ssl_session_cache shared:a:1m;",
    ] {
        let server = start(1, shared.dir(), directives);
        let kept = format!("{}/session", shared.dir().display());
        assert_eq!(ask(&server, "tls1_3", &format!("-sess_out {kept}")), ".");
        assert_eq!(ask(&server, "tls1_3", &format!("-sess_in {kept}")), ".", "{directives}");
    }
}

#[test]
fn wrong_keys_and_caches_are_refused() {
    let home = Home::new(BOLIDE);
    let dir = home.dir().display().to_string();
    fill(home.dir(), "short", 47, 0);
    fill(home.dir(), "good", 48, 0);
    for (directives, message) in [
        ("ssl_session_ticket_key short;", "\"@DIR@/short\" must be 48 or 80 bytes in @DIR@/a:7"),
        ("ssl_session_ticket_key logs;", "\"@DIR@/logs\" must be 48 or 80 bytes in @DIR@/a:7"),
        (
            "ssl_session_ticket_key good; ssl_session_ticket_key none;",
            "open() \"@DIR@/none\" failed (2: No such file or directory) in @DIR@/a:7",
        ),
        ("ssl_session_ticket_key;", "invalid number of arguments in \"ssl_session_ticket_key\""),
        ("ssl_session_tickets maybe;", "invalid value \"maybe\" in \"ssl_session_tickets\""),
        ("ssl_session_timeout -1;", "\"ssl_session_timeout\" directive invalid value in @DIR@/a:5"),
        ("ssl_session_cache shared:x;", "invalid session cache \"shared:x\" in @DIR@/a:5"),
        ("ssl_session_cache builtin:x;", "invalid session cache \"builtin:x\" in @DIR@/a:5"),
        ("ssl_session_cache shared:x:1k;", "session cache \"shared:x:1k\" is too small"),
        (
            "ssl_session_cache shared:x:1m shared:x:2m;",
            "the size 2097152 of shared memory zone \"x\" conflicts with already declared size \
             1048576",
        ),
        (
            "ssl_session_cache shared:taken:1m;",
            "the shared memory zone \"taken\" is already declared for a different use",
        ),
    ] {
        let conf = format!(
            "events {{ }}\npid p;\nhttp {{ limit_req_zone $uri zone=taken:1m rate=1r/s;\n\
             server {{ listen 127.0.0.1:@HTTPS@ ssl; ssl_certificate cert.pem;\n{directives}\n\
             ssl_certificate_key cert.key;\n}} }}\n"
        );
        home.write("a", &conf);
        let done = home.run(&["-t", "-c", &format!("{dir}/a")]);
        let message = message.replace("@DIR@", &dir);
        assert_eq!(done.code, 1, "{directives}");
        assert!(done.stderr.contains(&message), "{directives}: {}", done.stderr);
    }
}
