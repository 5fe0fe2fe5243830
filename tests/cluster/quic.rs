//! QUIC clients that a balancer moves to another node: tokens of one node are those of all with the
//! same `secrets_key`, resets only with a `quic_host_key`, and early data is never taken twice.

use bolide_testkit::server::{Home, TYPES, prelude};
use bolide_testkit::tools::python;
use bolide_testkit::{TestServer, Valkey};

use super::secrets::write_key;
use crate::BOLIDE;
use crate::framing::seen;

const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster_quic.py");

/// A node with the certificate of `cert`. Nodes need no Valkey for this: what is secret follows
/// from the key.
fn node(cert: &Home, workers: u32, cluster: &str, more: &str) -> TestServer {
    let (prelude, dir) = (prelude(workers), cert.dir().display());
    let conf = format!(
        "{prelude}http {{ {TYPES} {cluster}
         ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/cert.key;
         server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ quic reuseport;
         root @DIR@/www; server_name localhost a.test; {more} }} }}\n"
    );
    TestServer::start(Home::new(BOLIDE), &conf)
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

/// RFC 9000, section 21.11: who has seen the id of a connection could have any node end it that
/// knows the reset.
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
fn a_reset_of_one_node_is_what_another_one_with_its_quic_host_key_told_its_client() {
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
        bolide_testkit::wait_until("keys to be shared", || {
            node.error_log().contains("the keys of TLS tickets are those of all servers")
        });
    }
    let said = asked(&home, "early", &[&one, &two]);
    assert_eq!(
        said,
        ["status 200 anew not early", "status 200 resumed early", "status 200 anew not early"]
    );
}
