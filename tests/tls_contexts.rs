//! No client reaches a server whose TLS rules its handshake did not satisfy: random sites and
//! random visitors of `tests/tls_contexts.py`, which has the rules. A failure prints its seed;
//! `BOLIDE_TLS_SEED` runs that one alone.

use std::fs;
use std::path::Path;

use bolide_testkit::server::{Home, prelude};
use bolide_testkit::tools::python;
use bolide_testkit::{TestServer, run};

use crate::BOLIDE;

const ORACLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls_contexts.py");
const CERTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nginx/client_certs.sh");
/// Sites; each has its own address, and all share one process.
const SEEDS: u32 = 30;
/// The results that must occur over TLS and QUIC; else the test would prove nothing.
const HAPPENED: [&str; 5] =
    ["resumed by certificate", "let in", "let in by certificate", "refused", "rejected"];

#[test]
fn no_client_reaches_a_server_whose_rules_its_handshake_did_not_meet() {
    let only = std::env::var("BOLIDE_TLS_SEED").ok().map(|seed| seed.parse::<u32>().unwrap());
    let (from, to) = only.map_or((0, SEEDS), |seed| (seed, seed + 1));
    let (from, to) = (from.to_string(), to.to_string());
    let home = Home::new(BOLIDE);
    let clients = home.dir().join("clients");
    let _made = run("sh", [Path::new(CERTS), &clients]).succeeded();
    let read = |name: &str| fs::read_to_string(clients.join(name)).unwrap();
    fs::write(clients.join("both.crt"), read("root.crt") + &read("other.crt")).unwrap();
    let sites = python(ORACLE, ["conf", &from, &to]).succeeded().text();
    let prelude = prelude(1);
    let certificate = "ssl_certificate @CERT@; ssl_certificate_key @KEY@;";
    let server = TestServer::start(home, &format!("{prelude}http {{ {certificate}\n{sites} }}"));
    let port = server.https().port().to_string();
    let args = ["visit", &port, clients.to_str().unwrap(), &from, &to];
    let output = python(ORACLE, args).succeeded().text();
    let (faults, counts): (Vec<&str>, Vec<&str>) =
        output.lines().partition(|line| line.starts_with("seed "));
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    assert_eq!(counts.len(), 2, "{output}");
    for kind in HAPPENED {
        let happened = counts.iter().all(|line| line.contains(&format!("{kind}: ")));
        assert!(happened || only.is_some(), "{kind}: never: {counts:?}");
    }
    assert!(counts[1].contains("0-RTT: ") || only.is_some(), "{counts:?}");
}
