//! Connections for secrets and limits: a node replaces a connection that has become useless.

use std::path::Path;

use bolide_testkit::server::Home;
use bolide_testkit::{TestServer, Valkey, wait_until};

use super::secrets::{joined, write_key};
use crate::BOLIDE;

fn node(home: &Path, valkey: &Valkey) -> TestServer {
    let key = format!("secrets_key {};", write_key(home, "key", 'a'));
    joined(home, valkey, &key)
}

/// The connections on which challenges are looked for, by their numbers.
fn lookers(valkey: &Valkey) -> Vec<String> {
    let listed = valkey.cli(&["client", "list"]).text();
    let lines =
        listed.lines().filter(|line| line.contains("cmd=eval") || line.contains("cmd=time"));
    lines.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// Two nodes of a cluster of Valkey; the first one has all slots.
fn pair() -> (Valkey, Valkey) {
    let options = ["--cluster-enabled", "yes", "--cluster-port", "@P1@"];
    let (one, two) = (Valkey::start(&options), Valkey::start(&options));
    let (port, bus) = (two.port().to_string(), two.expand("@P1@"));
    assert!(one.cli(&["cluster", "meet", "127.0.0.1", &port, &bus]).text().contains("OK"));
    assert!(one.cli(&["cluster", "addslotsrange", "0", "16383"]).text().contains("OK"));
    wait_until("the cluster to be whole", || {
        let knows = |node: &Valkey| {
            let cluster_info = node.cli(&["cluster", "info"]).text();
            cluster_info.contains("state:ok") && cluster_info.contains("known_nodes:2")
        };
        knows(&one) && knows(&two)
    });
    (one, two)
}

#[test]
fn a_node_follows_moved_keys_to_their_new_server() {
    let ((one, two), home) = (pair(), Home::new(BOLIDE));
    let _node = node(home.dir(), &one);
    wait_until("a connection", || !lookers(&one).is_empty());
    let slot = one.cli(&["cluster", "keyslot", "bolide:{bolide}:purges"]).text();
    let id = two.cli(&["cluster", "myid"]).text();
    let moved = ["cluster", "setslot", slot.trim(), "node", id.trim()];
    wait_until("the keys to move", || {
        // A slot moves without its keys only if it has none at the moment.
        let _gone = one.cli(&["flushall"]);
        one.cli(&moved).text().contains("OK")
    });
    assert!(two.cli(&moved).text().contains("OK"));
    wait_until("the node to follow them", || !lookers(&two).is_empty());
    wait_until("its connection to be gone", || lookers(&one).is_empty());
}

/// What a connection has not answered is not waited for on it: it would get all of it later.
#[test]
fn a_silent_connection_is_replaced() {
    let (valkey, home) = (Valkey::default(), Home::new(BOLIDE));
    let node = node(home.dir(), &valkey);
    wait_until("a connection", || !lookers(&valkey).is_empty());
    let before = lookers(&valkey);
    valkey.signal("STOP");
    wait_until("the node to notice", || node.error_log().contains("no answer in time"));
    valkey.signal("CONT");
    wait_until("another connection", || {
        let now = lookers(&valkey);
        !now.is_empty() && now.iter().all(|one| !before.contains(one))
    });
}
