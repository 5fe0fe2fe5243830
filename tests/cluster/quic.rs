//! QUIC clients that a balancer moves to another node: tokens of one node are those of all with the
//! same `secrets_key`, resets only with a `quic_host_key`, and early data is never taken twice.

use bolide_testkit::server::{Home, TYPES, prelude};
use bolide_testkit::tools::{python, run};
use bolide_testkit::{TestServer, Valkey, wait_until};

use super::secrets::write_key;
use crate::BOLIDE;
use crate::framing::seen;

const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster_quic.py");

/// A node with the certificate of `cert`. Nodes need no Valkey for this: what is secret follows
/// from the key.
fn node(cert: &Home, workers: u32, cluster: &str, more: &str) -> TestServer {
    TestServer::start(Home::new(BOLIDE), &text(cert, workers, cluster, more))
}

fn text(cert: &Home, workers: u32, cluster: &str, more: &str) -> String {
    let (prelude, dir) = (prelude(workers), cert.dir().display());
    format!(
        "{prelude}http {{ {TYPES} {cluster}
         ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/cert.key;
         server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ quic reuseport;
         root @DIR@/www; server_name localhost a.test; {more} }} }}\n"
    )
}

fn cluster(valkey: &Valkey, namespace: &str, key: &str) -> String {
    let port = valkey.port();
    format!(
        "cluster valkey://127.0.0.1:{port} {{ node n; namespace {namespace}; secrets_key {key}; }}"
    )
}

fn asked(cert: &Home, what: &str, nodes: &[&TestServer]) -> Vec<String> {
    let cert = cert.dir().join("cert.pem").display().to_string();
    let ports: Vec<String> = nodes.iter().map(|node| node.https().port().to_string()).collect();
    let args = [what.to_owned(), cert].into_iter().chain(ports);
    python(PEER, args).succeeded().text().lines().map(str::to_owned).collect()
}

#[test]
fn a_token_of_one_node_proves_an_address_to_another() {
    let (home, valkey) = (Home::new(BOLIDE), Valkey::default());
    let (key, other) = (write_key(home.dir(), "key", 'a'), write_key(home.dir(), "other", 'b'));
    let retry = "quic_retry on;";
    let one = node(&home, 1, &cluster(&valkey, "shop", &key), retry);
    let token = seen(one.https().port(), &["quic token a.test"]).remove(0);
    let case = format!("quic again a.test {token}");
    for (cluster, wanted) in [
        (cluster(&valkey, "shop", &key), "retries 0; tokens yes"),
        (cluster(&valkey, "shop", &other), "retries 0; tokens no"),
        (cluster(&valkey, "stage", &key), "retries 0; tokens no"),
        (String::new(), "retries 0; tokens no"),
    ] {
        let two = node(&home, 3, &cluster, retry);
        let found = seen(two.https().port(), &[&case]).remove(0);
        assert!(found.starts_with(wanted), "{cluster}: {found}");
    }
}

/// A key that a configuration has in place of another one is in force after a reload, and after an
/// upgrade, whose process inherits the keys of connection ids.
#[test]
fn tokens_follow_the_key_of_the_configuration_in_force() {
    let (home, valkey) = (Home::new(BOLIDE), Valkey::default());
    let (key, other) = (write_key(home.dir(), "key", 'a'), write_key(home.dir(), "other", 'b'));
    let host = |key: &str| format!("quic_retry on; quic_host_key {key};");
    let by_key = cluster(&valkey, "shop", &key);
    for (before, after) in [
        (
            (cluster(&valkey, "shop", &other), "quic_retry on;".to_owned()),
            (by_key.clone(), "quic_retry on;".to_owned()),
        ),
        ((by_key.clone(), host(&other)), (by_key, host(&key))),
    ] {
        let one = node(&home, 1, &after.0, &after.1);
        let token = seen(one.https().port(), &["quic token a.test"]).remove(0);
        let case = format!("quic again a.test {token}");
        let mut two = node(&home, 2, &before.0, &before.1);
        let is_known = |two: &TestServer, wanted: &str| {
            seen(two.https().port(), &[&case]).remove(0).starts_with(wanted)
        };
        assert!(!is_known(&two, "retries 0; tokens yes"));
        two.rewrite(&text(&home, 2, &after.0, &after.1));
        two.signal("HUP");
        wait_until("the reload", || is_known(&two, "retries 0; tokens yes"));
        two.rewrite(&text(&home, 2, &before.0, &before.1));
        two.restart("TERM");
        assert!(!is_known(&two, "retries 0; tokens yes"));
        two.rewrite(&text(&home, 2, &after.0, &after.1));
        two.signal("USR2");
        let pid = two.home().dir().join("logs/pid");
        let written = || std::fs::read_to_string(&pid).ok()?.trim().parse::<u32>().ok();
        wait_until("a successor", || written().is_some_and(|pid| pid != two.pid()));
        let heir = written().expect("a successor");
        two.signal("QUIT");
        let _old = two.wait_exit();
        wait_until("the key to be in force", || is_known(&two, "retries 0; tokens yes"));
        let _quiet = run("kill", ["-s", "TERM", &heir.to_string()]).succeeded();
        wait_until("its end", || std::fs::metadata(format!("/proc/{heir}")).is_err());
    }
}

/// RFC 9000, section 21.11: an attacker who has seen a connection id could make any node end it
/// that knows the reset.
#[test]
fn no_node_resets_a_connection_of_another_one_with_the_same_secrets_key() {
    let (home, valkey) = (Home::new(BOLIDE), Valkey::default());
    let shared = cluster(&valkey, "shop", &write_key(home.dir(), "key", 'a'));
    let [one, two, three] = [2, 1, 4].map(|workers| node(&home, workers, &shared, ""));
    for said in asked(&home, "reset", &[&one, &two, &three]) {
        assert_ne!(said, "reset");
    }
}

#[test]
fn a_stateless_reset_of_a_node_with_the_same_quic_host_key_is_valid() {
    let (home, valkey) = (Home::new(BOLIDE), Valkey::default());
    let (key, other) = (write_key(home.dir(), "key", 'a'), write_key(home.dir(), "other", 'b'));
    let (shared, own) = (cluster(&valkey, "shop", &key), format!("quic_host_key {key};"));
    let one = node(&home, 2, &shared, &own);
    // Whatever numbers its workers have.
    let (two, three) = (node(&home, 1, &shared, &own), node(&home, 4, &shared, &own));
    let stranger = node(&home, 1, &shared, &format!("quic_host_key {other};"));
    let said = asked(&home, "reset", &[&one, &two, &three, &stranger]);
    assert_eq!(said[..2], ["reset", "reset"]);
    // One that has other keys does not take the id for one of its own.
    assert_ne!(said[2], "reset");
}

/// A ticket that allows early data is one session in the memory of the node that made it, whatever
/// keys are shared: there is nothing that another node could replay.
#[test]
fn early_data_is_taken_by_the_node_that_made_the_ticket_and_once() {
    let (home, valkey) = (Home::new(BOLIDE), Valkey::default());
    let shared = cluster(&valkey, "shop", &write_key(home.dir(), "key", 'a'));
    let [one, two] = [(); 2].map(|()| node(&home, 1, &shared, "ssl_early_data on;"));
    for node in [&one, &two] {
        wait_until("keys to be shared", || {
            node.error_log().contains("the keys of TLS tickets are those of all servers")
        });
    }
    let said = asked(&home, "early", &[&one, &two]);
    assert_eq!(
        said,
        ["status 200 anew not early", "status 200 resumed early", "status 200 anew not early"]
    );
}
