//! Configurations in the published styles of well-known applications. They start unchanged and work
//! as intended, with a real php-fpm.
//!
//! `tests/published/NAME.conf` is the content of an `http` block. `NAME.txt` lists the files of the
//! application and the requests: a request line with fields, then the expected status, fields
//! (`field`), absent fields (`absent`), and what the body contains (`has`) and does not contain
//! (`not`). The comparison with the real nginx sends the same requests
//! (`tests/nginx/sites/published.py`).

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use bolide_testkit::server::{Home, TYPES, prelude};
use bolide_testkit::{Curl, CurlReply, Proto, TestPhp, TestServer};

use crate::{BOLIDE, report};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// The output of every script: its parameters.
const SCRIPT: &str = include_str!("published/env.php");
/// The password is `wonder`.
const USERS: &str = "alice:$apr1$abcdefgh$YoZRc15qZGhK2NX/RWmro.\n";

/// An application: its files and requests.
#[derive(Default)]
struct Plan {
    /// The server name for TLS; without it plain HTTP.
    tls: Option<String>,
    cases: Vec<Case>,
}

struct Case {
    /// `METHOD target` and fields.
    ask: String,
    expected: Vec<String>,
}

/// Parses `NAME.txt` and creates its files below `root`.
fn plan(name: &str, root: &Path) -> Plan {
    let text = fs::read_to_string(format!("{ROOT}/tests/published/{name}.txt")).unwrap();
    let mut plan = Plan::default();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let make = |file: &str, content: &str| {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        if let Some(expected) = line.strip_prefix("  ") {
            plan.cases.last_mut().unwrap().expected.push(expected.to_owned());
            continue;
        }
        match line.split_once(' ').unwrap() {
            ("php", file) => make(file, SCRIPT),
            ("file", file) => make(file, &format!("this is {file}\n")),
            ("users", file) => make(file, USERS),
            ("tls", host) => plan.tls = Some(host.to_owned()),
            _ => plan.cases.push(Case { ask: line.to_owned(), expected: Vec::new() }),
        }
    }
    plan
}

/// Starts the application's configuration.
fn start(name: &str, php: &TestPhp) -> (TestServer, Plan) {
    let home = Home::new(BOLIDE);
    for file in ["fastcgi_params", "mime.types"] {
        home.write(file, &fs::read_to_string(format!("{ROOT}/conf/{file}")).unwrap());
    }
    let root = home.dir().join("site");
    let plan = plan(name, &root);
    let read = |name: &str| {
        let text = fs::read_to_string(format!("{ROOT}/tests/published/{name}.conf")).unwrap();
        let rules = home.dir().join("rules.conf");
        text.replace("@ROOT@", root.to_str().unwrap())
            .replace("@PHP@", &php.address())
            .replace("@RULES@", rules.to_str().unwrap())
    };
    if name == "magento" {
        home.write("rules.conf", &read("magento-rules"));
    }
    let conf = format!("{}http {{{TYPES}{}\n}}\n", prelude(1), read(name));
    (TestServer::start(home, &conf), plan)
}

/// Sends a request of a plan.
fn ask(server: &TestServer, plan: &Plan, proto: Proto, ask: &str) -> CurlReply {
    let mut parts = ask.split(" | ");
    let (method, target) = parts.next().unwrap().split_once(' ').unwrap();
    let fields = parts.flat_map(|field| ["-H", field]);
    let mut curl = Curl::new(proto).args(["--path-as-is"]).args(fields);
    curl = match method {
        "HEAD" => curl.args(["-I"]),
        _ => curl.args(["-X", method]),
    };
    let Some(host) = &plan.tls else {
        // The port of a test is not the port of a site.
        if !ask.contains(" | Host: ") {
            curl = curl.field("Host: localhost");
        }
        return curl.get(&format!("http://127.0.0.1:{}{target}", server.http().port()));
    };
    let port = server.https().port();
    curl.args(["--connect-to", &format!("{host}:{port}:127.0.0.1:{port}")])
        .get(&format!("https://{host}:{port}{target}"))
}

/// The faults of a response.
fn faults(server: &TestServer, expected: &[String], reply: &CurlReply) -> String {
    let mut faults = String::new();
    for line in expected {
        let line = server.home().expand(line);
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let is_right = match word {
            "field" => {
                let (name, value) = rest.split_once(' ').unwrap();
                let name = name.to_ascii_lowercase();
                reply.headers.iter().any(|(n, v)| *n == name && v == value)
            }
            "absent" => reply.header(&rest.to_ascii_lowercase()).is_none(),
            "has" => reply.text().contains(rest),
            "not" => !reply.text().contains(rest),
            status => reply.status.to_string() == status,
        };
        if !is_right {
            let _ = writeln!(faults, "  {line}");
        }
    }
    faults
}

/// Sends all requests in each HTTP version of the application.
fn check(name: &str) {
    let php = TestPhp::start(2);
    let (server, plan) = start(name, &php);
    let protos = if plan.tls.is_some() { &[Proto::H1, Proto::H2][..] } else { &[Proto::H1] };
    let (mut rows, mut failures) = (0, Vec::new());
    for proto in protos {
        for case in &plan.cases {
            assert!(!case.expected.is_empty(), "{name}: {} expects nothing", case.ask);
            rows += 1;
            let reply = ask(&server, &plan, *proto, &case.ask);
            let faults = faults(&server, &case.expected, &reply);
            if !faults.is_empty() {
                let got = format!("{} {:?}\n{}", reply.status, reply.headers, reply.text());
                failures.push(format!("{proto:?} {}: expected\n{faults}got {got}", case.ask));
            }
        }
    }
    report(rows, &failures);
}

#[test]
fn a_wordpress_site_behaves() {
    check("wordpress");
}

#[test]
fn a_wordpress_network_with_pages_on_disk_behaves() {
    check("network");
}

#[test]
fn a_nextcloud_behaves() {
    check("nextcloud");
}

#[test]
fn a_laravel_application_behaves() {
    check("laravel");
}

#[test]
fn a_drupal_site_behaves() {
    check("drupal");
}

#[test]
fn a_magento_shop_behaves() {
    check("magento");
}

#[test]
fn a_hardened_site_behaves() {
    check("hardened");
}

#[test]
fn a_hardened_site_closes_on_strangers_and_old_protocols() {
    let php = TestPhp::start(1);
    let (server, plan) = start("hardened", &php);
    let mut stranger = server.connect();
    assert!(stranger.send("GET / HTTP/1.1\r\nHost: other\r\n\r\n").is_closed(), "444 closes");
    let plain = server.curl(Proto::H1).field("Host: secure.test");
    let reply = plain.get(&format!("http://127.0.0.1:{}/a?b", server.http().port()));
    assert_eq!(reply.status, 301);
    assert_eq!(reply.header("location"), Some("https://secure.test/a?b"));
    let unknown = server.curl(Proto::H1).attempt(&server.url(Proto::H1, "/"));
    assert_ne!(unknown.exit, 0, "a name that nobody has is refused in the handshake");
    let host = plan.tls.unwrap();
    let port = server.https().port();
    let old = Curl::new(Proto::H1)
        .args(["--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"])
        .args(["--connect-to", &format!("{host}:{port}:127.0.0.1:{port}")])
        .attempt(&format!("https://{host}:{port}/"));
    assert_ne!(old.exit, 0, "TLS 1.1 is refused");
}
