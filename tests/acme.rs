//! Certificates from an issuer: ordered, validated, served, renewed and kept.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bolide_testkit::pebble::{Pebble, PebbleOptions};
use bolide_testkit::server::{Home, is_root, prelude};
use bolide_testkit::{Curl, CurlReply, Proto, TestServer, run, wait_until};

use crate::BOLIDE;

/// A server's directory, and an issuer that validates at its ports.
fn scene(change: impl FnOnce(&mut PebbleOptions)) -> (Home, Pebble) {
    let home = Home::new(BOLIDE);
    let mut options = PebbleOptions::validating(home.port(0), home.port(1));
    change(&mut options);
    (home, Pebble::start(options))
}

/// The block of an issuer.
pub(crate) fn issuer(pebble: &Pebble, rest: &str) -> String {
    let (uri, trusted) = (pebble.directory(), pebble.trusted());
    format!(
        "acme_issuer ca {{ uri {uri}; ssl_trusted_certificate {}; state_path @DIR@/state; \
         accept_terms_of_service; {rest} }}\n",
        trusted.display()
    )
}

const LISTEN: &str = "listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl; \
                      listen 127.0.0.1:@HTTPS@ quic reuseport; http2 on;";
const PAIR: &str = "ssl_certificate $acme_certificate; ssl_certificate_key $acme_certificate_key;";

/// A configuration with an issuer and one server.
pub(crate) fn conf(issuer: &str, names: &str, inside: &str) -> String {
    format!(
        "{}http {{ {issuer} server {{ {LISTEN} server_name {names}; acme_certificate ca; {PAIR} \
         location / {{ return 200 ok; }} {inside} }} }}",
        prelude(1)
    )
}

/// The root of the issuer in a file, for clients.
pub(crate) fn root(server: &TestServer, pebble: &Pebble) -> PathBuf {
    server.home().write("root.pem", &pebble.root(0))
}

/// A request to `name`, whose certificate must be of `root`.
fn ask(server: &TestServer, proto: Proto, name: &str, root: &Path) -> CurlReply {
    let port = server.https().port();
    Curl::new(proto)
        .trusting(root)
        .args(["--resolve", &format!("{name}:{port}:127.0.0.1")])
        .attempt(&format!("https://{name}:{port}/"))
}

/// Waits until `name` has a certificate of the issuer.
pub(crate) fn wait_served(server: &TestServer, name: &str, root: &Path) {
    wait_until("the certificate", || ask(server, Proto::H1, name, root).text() == "ok");
}

/// A handshake by `openssl s_client`: what it says.
fn handshake(server: &TestServer, name: &str, rest: &str) -> String {
    let script = format!(
        "openssl s_client -connect {} -servername {name} {rest} </dev/null 2>&1 || true",
        server.https()
    );
    run("sh", ["-c", &script]).text()
}

/// The serial number of the certificate for `name`; empty if a handshake is refused.
pub(crate) fn serial(server: &TestServer, name: &str) -> String {
    let script = format!(
        "openssl s_client -connect {} -servername {name} </dev/null 2>/dev/null \
         | openssl x509 -noout -serial 2>/dev/null || true",
        server.https()
    );
    run("sh", ["-c", &script]).text().trim().to_owned()
}

#[test]
fn a_certificate_is_ordered_by_requests_and_served_in_every_version() {
    let (home, pebble) = scene(|_| {});
    // What the server says of other requests keeps no issuer out.
    let inside = "if ($scheme = http) { return 403; } location /.well-known/ { return 200 site; }";
    let text = conf(&issuer(&pebble, ""), "a.test www.a.test", inside);
    let server = TestServer::start(home, &text);
    let root = root(&server, &pebble);
    wait_served(&server, "a.test", &root);
    for proto in Proto::TLS {
        for name in ["a.test", "www.a.test"] {
            let reply = ask(&server, proto, name, &root);
            assert_eq!((reply.text().as_str(), &*reply.version), ("ok", proto.version()), "{name}");
        }
    }
    // The challenges are over.
    let path = "/.well-known/acme-challenge/unknown";
    let port = server.https().port();
    let reply = Curl::new(Proto::H2)
        .args(["--resolve", &format!("a.test:{port}:127.0.0.1")])
        .get(&format!("https://a.test:{port}{path}"));
    assert_eq!(reply.text(), "site");
    let plain = Curl::new(Proto::H1).get(&format!("http://{}{path}", server.http()));
    assert_eq!(plain.status, 403);
}

#[test]
fn a_certificate_is_ordered_by_handshakes() {
    let (home, pebble) = scene(|_| {});
    let text = conf(&issuer(&pebble, "challenge tls-alpn-01;"), "a.test", "");
    let server = TestServer::start(home, &text);
    let root = root(&server, &pebble);
    wait_served(&server, "a.test", &root);
    for proto in Proto::TLS {
        assert_eq!(ask(&server, proto, "a.test", &root).text(), "ok", "{proto:?}");
    }
    // Without a challenge, such a handshake is refused, and another one is not.
    let refused = handshake(&server, "a.test", "-alpn acme-tls/1");
    assert!(refused.contains("alert") && refused.contains("no peer certificate"), "{refused}");
    let fine = handshake(&server, "a.test", "-alpn http/1.1,acme-tls/1");
    assert!(fine.contains("ALPN protocol: http/1.1"), "{fine}");
}

#[test]
fn auto_https_orders_redirects_and_serves() {
    let (home, pebble) = scene(|_| {});
    let text = format!(
        "{}http {{ {} auto_https ca; server {{ {LISTEN} server_name a.test; \
         location / {{ return 200 ok; }} }} \
         server {{ listen 127.0.0.1:@HTTP@; server_name localhost; \
         location / {{ return 200 plain; }} }} }}",
        prelude(1),
        issuer(&pebble, "")
    );
    let server = TestServer::start(home, &text);
    let root = root(&server, &pebble);
    wait_served(&server, "a.test", &root);
    let (http, https) = (server.http().port(), server.https().port());
    let plain = |path: &str, name: &str| {
        Curl::new(Proto::H1)
            .field(&format!("Host: {name}"))
            .get(&format!("http://127.0.0.1:{http}{path}"))
    };
    let reply = plain("/x?y=1", "a.test");
    assert_eq!(reply.status, 308);
    assert_eq!(reply.header("location"), Some(&*format!("https://a.test:{https}/x?y=1")));
    assert_eq!(plain("/x", "localhost").text(), "plain");
    // What another client of issuers puts there is found.
    assert_eq!(plain("/.well-known/acme-challenge/t", "a.test").text(), "ok");
    for proto in Proto::TLS {
        assert_eq!(ask(&server, proto, "a.test", &root).text(), "ok", "{proto:?}");
    }
}

#[test]
fn a_renewed_certificate_is_served_and_sessions_go_on() {
    let (home, pebble) = scene(|options| options.profiles = vec![("default".into(), 15)]);
    let server = TestServer::start(home, &conf(&issuer(&pebble, ""), "a.test", ""));
    let root = root(&server, &pebble);
    wait_served(&server, "a.test", &root);
    let first = serial(&server, "a.test");
    let session = server.home().dir().join("session");
    let kept = handshake(&server, "a.test", &format!("-tls1_2 -sess_out {}", session.display()));
    assert!(kept.contains("New, TLSv1.2"), "{kept}");
    wait_until("another certificate", || {
        // Each look is a program of its own, and the certificate lives for fifteen seconds.
        std::thread::sleep(std::time::Duration::from_millis(300));
        let now = serial(&server, "a.test");
        !now.is_empty() && now != first
    });
    assert_eq!(ask(&server, Proto::H3, "a.test", &root).text(), "ok");
    let again = handshake(&server, "a.test", &format!("-tls1_2 -sess_in {}", session.display()));
    assert!(again.contains("Reused, TLSv1.2"), "{again}");
}

#[test]
fn a_restart_a_reload_and_an_upgrade_keep_the_certificate_without_the_issuer() {
    let (home, mut pebble) = scene(|_| {});
    let text = conf(&issuer(&pebble, ""), "a.test", "");
    let mut server = TestServer::start(home, &text);
    let root = root(&server, &pebble);
    wait_served(&server, "a.test", &root);
    let first = serial(&server, "a.test");
    pebble.kill();
    server.restart("TERM");
    assert_eq!(serial(&server, "a.test"), first);
    // A name more: the old certificate serves until there is another one.
    server.rewrite(&text.replace("name a.test", "name a.test b.test"));
    server.signal("HUP");
    wait_until("the reload", || server.error_log().contains(": reconfigured"));
    assert_eq!(serial(&server, "a.test"), first);
    assert_eq!(serial(&server, "b.test"), first);
    server.rewrite(&text);
    server.signal("USR2");
    let pid = server.home().dir().join("logs/pid");
    let written = || fs::read_to_string(&pid).ok()?.trim().parse::<u32>().ok();
    wait_until("a successor", || written().is_some_and(|pid| pid != server.pid()));
    let heir = written().expect("a successor");
    server.signal("QUIT");
    let _old = server.wait_exit();
    assert_eq!(serial(&server, "a.test"), first);
    let _quiet = run("kill", ["-s", "TERM", &heir.to_string()]).succeeded();
    wait_until("its end", || fs::metadata(format!("/proc/{heir}")).is_err());
}

#[test]
fn a_name_that_a_reload_adds_is_ordered() {
    let (home, pebble) = scene(|_| {});
    let text = conf(&issuer(&pebble, ""), "a.test", "");
    let server = TestServer::start(home, &text);
    let root = root(&server, &pebble);
    wait_served(&server, "a.test", &root);
    assert_ne!(ask(&server, Proto::H2, "b.test", &root).text(), "ok");
    server.rewrite(&text.replace("name a.test", "name a.test b.test"));
    server.signal("HUP");
    wait_served(&server, "b.test", &root);
    assert_eq!(ask(&server, Proto::H3, "a.test", &root).text(), "ok");
}

#[test]
fn without_its_issuer_a_server_starts_and_logs_which_handshakes_it_refuses() {
    let (home, mut pebble) = scene(|_| {});
    pebble.kill();
    let server = TestServer::start(home, &conf(&issuer(&pebble, ""), "a.test", ""));
    let plain = Curl::new(Proto::H1).get(&format!("http://{}/", server.http()));
    assert_eq!(plain.text(), "ok");
    let refused = handshake(&server, "a.test", "");
    assert!(refused.contains("no peer certificate"), "{refused}");
    let missing = "handshakes are refused until certificates come, 1 in all: a.test";
    wait_until("the lines", || {
        let log = server.error_log();
        let has = |level: &str, text: &str| {
            log.lines().any(|line| line.contains(level) && line.contains(text))
        };
        has("[error]", missing) && has("[error]", "no certificate of \"ca ecdsa:256 a.test at ")
    });
}

#[test]
fn the_state_belongs_to_the_account_of_the_workers_and_to_no_other() {
    let (home, pebble) = scene(|_| {});
    let text = conf(&issuer(&pebble, ""), "a.test", "").replace("user root;", "user nobody;");
    // The account enters the directory, and that of the issuer's authority.
    for dir in [home.dir(), pebble.trusted().parent().expect("a directory")] {
        let _quiet = run("chmod", ["a+rx", dir.to_str().unwrap()]).succeeded();
    }
    let server = TestServer::start(home, &text);
    let root = root(&server, &pebble);
    wait_served(&server, "a.test", &root);
    let owner = |path: &Path| fs::metadata(path).map(|about| (about.uid(), about.mode() & 0o777));
    let expected =
        if is_root() { run("id", ["-u", "nobody"]).text() } else { run("id", ["-u"]).text() };
    let expected: u32 = expected.trim().parse().unwrap();
    let state = server.home().dir().join("state");
    assert_eq!(owner(&state).unwrap(), (expected, 0o700));
    let (mut open, mut files) = (vec![state], 0);
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap().flatten() {
            let (path, (uid, mode)) = (entry.path(), owner(&entry.path()).unwrap());
            assert_eq!(uid, expected, "{}", path.display());
            assert_eq!(mode & 0o077, 0, "{}", path.display());
            if path.is_dir() {
                open.push(path);
            } else {
                files += 1;
            }
        }
    }
    assert!(files >= 2, "an account and a certificate");
}

#[test]
fn after_a_failure_the_next_issuer_is_used_and_a_log_line_says_so() {
    let (home, pebble) = scene(|_| {});
    let text = format!(
        "{}http {{ acme_issuer gone {{ uri https://127.0.0.1:1/dir; state_path @DIR@/gone; \
         accept_terms_of_service; }} {} server {{ {LISTEN} server_name a.test; {PAIR} \
         acme_certificate gone fallback=ca; location / {{ return 200 ok; }} \
         location = /metrics {{ metrics on; allow all; }} }} }}",
        prelude(1),
        issuer(&pebble, "")
    );
    let server = TestServer::start(home, &text);
    let root = root(&server, &pebble);
    wait_served(&server, "a.test", &root);
    let conf = server.home().dir().join("nginx.conf");
    let run = |words: &[&str]| {
        let all = [words, &["-c", conf.to_str().unwrap()]].concat();
        server.home().run(&all).succeeded().text()
    };
    wait_until("the order to be over", || run(&["status"]).contains("certificate a.test of"));
    let figures = run(&["metrics"]);
    assert!(figures.contains("bolide_acme_certificates_issued_total 1"), "{figures}");
    let end = "file=\"acme:gone/a.test\"} ";
    assert!(figures.contains(end), "{figures}");
    let url = format!("http://a.test:{}/.well-known/acme-challenge/t", server.http().port());
    let explained = run(&["explain", &url]);
    assert!(
        explained.contains("no challenge of an issuer has this name and token now"),
        "{explained}"
    );
}

#[test]
fn auto_https_leads_no_client_to_a_handshake_that_is_refused() {
    let (_listener, uri) = silent();
    let text = format!(
        "{}http {{ acme_issuer ca {{ uri {uri}; accept_terms_of_service; state_path off; }} \
         auto_https ca; server {{ {LISTEN} server_name a.test; \
         location / {{ return 200 ok; }} }} }}",
        prelude(1)
    );
    let server = TestServer::conf(BOLIDE, &text);
    let url = format!("http://127.0.0.1:{}/", server.http().port());
    let plain = Curl::new(Proto::H1).field("Host: a.test").get(&url);
    assert_eq!((plain.status, plain.text().as_str()), (200, "ok"));
}

/// An address that takes connections and says nothing, and whether one came.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let uri = format!("https://{}/dir", listener.local_addr().unwrap());
    (listener, uri)
}

#[test]
fn a_check_sends_no_request_to_an_issuer() {
    let (listener, uri) = silent();
    let home = Home::new(BOLIDE);
    let issuer = format!(
        "acme_shared_zone zone=acme:1M; acme_issuer ca {{ uri {uri}; account_key ecdsa:256; \
         contact a@b.test; external_account_key kid eab.key; preferred_chain root; \
         profile short require; ssl_verify off; state_path @DIR@/state; challenge http; \
         accept_terms_of_service; }} auto_https ca;"
    );
    let text = conf(&issuer, "a.test", "");
    let path = home.write("nginx.conf", &text);
    home.write("eab.key", "a2V5");
    let path = path.to_str().unwrap();
    let tested = home.run(&["-t", "-c", path]);
    assert_eq!(tested.code, 0, "{}", tested.text());
    assert_eq!(home.run(&["check", path]).code, 0);
    assert!(listener.accept().is_err(), "the issuer was asked");
    let module = format!("load_module modules/ngx_http_acme_module.so; {text}");
    home.write("nginx.conf", &module);
    assert_eq!(home.run(&["-t", "-c", path]).code, 0);
}

#[test]
fn a_thousand_servers_start_while_their_issuer_is_silent() {
    let (_listener, uri) = silent();
    let home = Home::new(BOLIDE);
    let servers: String = (0..1000)
        .map(|at| {
            format!(
                "server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl; \
                 server_name s{at}.test; acme_certificate ca; return 200 $server_name; }}\n"
            )
        })
        .collect();
    let text = format!(
        "{}http {{ acme_issuer ca {{ uri {uri}; state_path @DIR@/state; }} {PAIR} {servers} }}",
        prelude(1)
    );
    let server = TestServer::start(home, &text);
    let reply =
        Curl::new(Proto::H1).field("Host: s999.test").get(&format!("http://{}/", server.http()));
    assert_eq!(reply.text(), "s999.test");
    wait_until("the line", || {
        server.error_log().contains("until certificates come, 1000 in all: s0.test, s1.test")
    });
}

/// Waits until the local authority of a server has a root: its place.
fn local_root(server: &TestServer) -> PathBuf {
    let root = server.home().dir().join("state/root.pem");
    wait_until("a root", || root.exists());
    root
}

#[test]
fn a_local_authority_certifies_private_names_in_every_version_and_keeps_its_root() {
    let home = Home::new(BOLIDE);
    let names = "localhost *.x.localhost nas a.internal a.test a.home.arpa a.local 127.0.0.1";
    let text = format!(
        "{}http {{ acme_issuer local {{ local lifetime=20s; state_path @DIR@/state; }} \
         auto_https on local; server {{ {LISTEN} server_name {names}; \
         location / {{ return 200 ok; }} }} }}",
        prelude(1)
    );
    let mut server = TestServer::start(home, &text);
    let root = local_root(&server);
    wait_served(&server, "localhost", &root);
    let all = names.replace("*.", "y.");
    for name in all.split(' ') {
        for proto in Proto::TLS {
            assert_eq!(ask(&server, proto, name, &root).text(), "ok", "{name} {proto:?}");
        }
    }
    // A client that does not know the root fails, and one that asks by HTTP is redirected.
    let port = server.https().port();
    let other = server.home().dir().join("other.pem");
    let script = "openssl req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 \
                  -subj /CN=other -keyout /dev/null -out";
    let _quiet = run("sh", ["-c", &format!("{script} {}", other.display())]).succeeded();
    assert_eq!(ask(&server, Proto::H2, "localhost", &other).exit, 60);
    for name in ["nas", "y.x.localhost"] {
        let plain = Curl::new(Proto::H1).field(&format!("Host: {name}"));
        let reply = plain.get(&format!("http://127.0.0.1:{}/", server.http().port()));
        assert_eq!(reply.header("location"), Some(&*format!("https://{name}:{port}/")));
    }
    // Another leaf comes without a reload; the root stays, over a restart, too.
    let (first, kept) = (serial(&server, "nas"), fs::read(&root).unwrap());
    wait_until("another certificate", || {
        let now = serial(&server, "nas");
        !now.is_empty() && now != first
    });
    server.restart("TERM");
    wait_served(&server, "nas", &root);
    assert_eq!(fs::read(&root).unwrap(), kept);
    let mode = |name: &str| fs::metadata(root.with_file_name(name)).unwrap().mode() & 0o777;
    assert_eq!((mode("root.pem"), mode("authority.pem")), (0o600, 0o600));
    let conf = server.home().dir().join("nginx.conf");
    let status = server.home().run(&["status", "-c", conf.to_str().unwrap()]).succeeded().text();
    assert!(status.contains(&format!("root {}", root.display())), "{status}");
    let log = server.error_log();
    assert_eq!(log.matches("has a new root").count(), 1, "{log}");
}

/// A program that allows names which begin with `yes`: its URL, and the names that it was asked
/// about.
pub(crate) fn asker() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/allowed?by=test", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let names = asked.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (mut head, mut part) = (Vec::new(), [0; 1024]);
            while !head.windows(4).any(|four| four == b"\r\n\r\n") {
                match stream.read(&mut part) {
                    Ok(length @ 1..) => head.extend_from_slice(&part[..length]),
                    _ => break,
                }
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let name = head.strip_prefix("GET /allowed?by=test&domain=").expect("a question");
            let name = name.split(' ').next().unwrap_or_default().to_owned();
            let status = if name.starts_with("yes") { "200 OK" } else { "403 No" };
            names.lock().unwrap().push(name);
            let reply = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            let _gone = stream.write_all(reply.as_bytes());
        }
    });
    (url, asked)
}

#[test]
fn a_name_of_a_client_gets_a_certificate_if_it_is_allowed() {
    let (home, mut pebble) = scene(|_| {});
    let (url, asked) = asker();
    let rest = format!("on_demand_ask {url}; on_demand_rate 10r/h; on_demand_names 3;");
    let text = conf(&issuer(&pebble, &rest), "_", "");
    let text = text.replace("acme_certificate ca;", "acme_certificate ca on_demand;");
    let mut server = TestServer::start(home, &text);
    let root = root(&server, &pebble);
    let asked = || asked.lock().unwrap().clone();
    // The first handshake is refused, and one soon after it is not.
    let first = ask(&server, Proto::H1, "yes-1.test", &root);
    assert_eq!(first.exit, 35, "{}", first.stderr);
    wait_served(&server, "yes-1.test", &root);
    for proto in Proto::TLS {
        assert_eq!(ask(&server, proto, "yes-1.test", &root).text(), "ok", "{proto:?}");
    }
    // One that is not allowed is asked about once.
    for _ in 0..5 {
        assert_ne!(ask(&server, Proto::H3, "no.test", &root).exit, 0);
        wait_until("the question", || asked().contains(&"no.test".to_owned()));
    }
    assert_eq!(asked(), ["yes-1.test", "no.test"]);
    // A flood of names has no more questions than the rate permits, and known names are served.
    for n in 0..30 {
        assert_ne!(ask(&server, Proto::H2, &format!("no-{n}.test"), &root).exit, 0);
    }
    assert!(asked().len() <= 11, "{:?}", asked());
    assert_eq!(ask(&server, Proto::H2, "yes-1.test", &root).text(), "ok");
    let before = asked().len();
    pebble.kill();
    server.restart("TERM");
    assert_eq!(ask(&server, Proto::H1, "yes-1.test", &root).text(), "ok");
    assert_eq!(asked().len(), before, "it was allowed before");
    // A reload that no longer wants such names serves them no more.
    let own = text.replace("ca on_demand;", "ca a.test;");
    server.rewrite(&own);
    server.signal("HUP");
    wait_until("the reload", || ask(&server, Proto::H1, "yes-1.test", &root).exit == 35);
}

#[test]
fn no_more_names_of_clients_than_their_number_get_certificates() {
    let home = Home::new(BOLIDE);
    let (url, asked) = asker();
    let text = format!(
        "{}http {{ acme_issuer own {{ local; state_path @DIR@/state; on_demand_ask {url}; \
         on_demand_rate 100r/s; on_demand_names 2; }} server {{ {LISTEN} server_name *.test; \
         acme_certificate own on_demand; {PAIR} location / {{ return 200 ok; }} }} }}",
        prelude(1)
    );
    let server = TestServer::start(home, &text);
    let root = server.home().dir().join("state/root.pem");
    for name in ["yes-1.test", "yes-2.test"] {
        wait_until("a root", || {
            let _wish = handshake(&server, name, "");
            root.exists()
        });
        wait_served(&server, name, &root);
    }
    for _ in 0..3 {
        assert_eq!(ask(&server, Proto::H1, "yes-3.test", &root).exit, 35);
    }
    assert_eq!(*asked.lock().unwrap(), ["yes-1.test", "yes-2.test"]);
    assert_eq!(ask(&server, Proto::H2, "yes-1.test", &root).text(), "ok");
}

#[test]
fn an_account_gets_another_key_by_a_command() {
    let (home, pebble) = scene(|_| {});
    let text = conf(&issuer(&pebble, ""), "a.test", "");
    let server = TestServer::start(home, &text);
    let root = root(&server, &pebble);
    wait_served(&server, "a.test", &root);
    let account = || {
        let state = fs::read_dir(server.home().dir().join("state")).unwrap();
        let paths = state.map(|entry| entry.unwrap().path());
        let path = paths.filter(|path| path.extension().is_some_and(|end| end == "json")).last();
        fs::read_to_string(path.expect("an account")).unwrap()
    };
    let before = account();
    let conf = server.home().dir().join("nginx.conf");
    let command =
        |name: &str| server.home().run(&["acme", "rollover", name, "-c", conf.to_str().unwrap()]);
    let done = command("ca").succeeded();
    assert_eq!(done.text(), "the account at \"ca\" has another key\n");
    assert_ne!(account(), before);
    let unknown = command("x");
    assert!(unknown.code != 0 && unknown.stderr.contains("no issuer \"x\" is in use"));
    // It orders with the new one.
    server.rewrite(&text.replace("name a.test", "name a.test b.test"));
    server.signal("HUP");
    wait_served(&server, "b.test", &root);
}
