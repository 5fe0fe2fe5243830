//! Certificates that nodes share by a real Valkey, from a real issuer: any of them answers its
//! questions, one orders, and all use what came.

use bolide_testkit::pebble::{Pebble, PebbleOptions};
use bolide_testkit::server::{Home, prelude};
use bolide_testkit::{Curl, Proto, TestServer, Valkey, wait_until};

use super::secrets::write_key;
use crate::BOLIDE;
use crate::acme::{issuer, root, serial, wait_served};

const PAIR: &str = "ssl_certificate $acme_certificate; ssl_certificate_key $acme_certificate_key;";

/// Nodes with a key and a Valkey in common.
struct Fleet {
    keys: Home,
    valkey: Valkey,
}

impl Fleet {
    fn new() -> Self {
        Self { keys: Home::new(BOLIDE), valkey: Valkey::default() }
    }

    fn block(&self, node: &str) -> String {
        let (port, key) = (self.valkey.port(), write_key(self.keys.dir(), "key", 'a'));
        format!("cluster valkey://127.0.0.1:{port} {{ node {node}; secrets_key {key}; }}")
    }

    fn conf(&self, node: &str, issuer: &str, name: &str) -> String {
        let (prelude, cluster) = (prelude(1), self.block(node));
        format!(
            "{prelude}http {{ {cluster} {issuer} server {{ listen 127.0.0.1:@HTTP@;
             listen 127.0.0.1:@HTTPS@ ssl; server_name {name}; acme_certificate ca; {PAIR}
             location / {{ return 200 ok; }} }} }}"
        )
    }

    /// Names of secrets in Valkey with this beginning.
    fn secrets(&self, start: &str) -> Vec<String> {
        let pattern = format!("bolide:{{bolide}}:secret:{start}*");
        let listed = self.valkey.cli(&["--scan", "--pattern", &pattern]).text();
        listed.lines().map(str::to_owned).collect()
    }
}

fn wait_joined(server: &TestServer) {
    wait_until("the keys to be shared", || {
        server.error_log().contains("the keys of TLS tickets are those of all servers")
    });
}

/// The issuer validates every name at the second node, and the first one orders: by requests and by
/// handshakes.
#[test]
fn a_node_answers_the_challenges_of_another_ones_order() {
    for challenge in ["", "challenge tls-alpn-01;"] {
        let (fleet, first, second) = (Fleet::new(), Home::new(BOLIDE), Home::new(BOLIDE));
        let pebble = Pebble::start(PebbleOptions::validating(second.port(0), second.port(1)));
        let issuer = issuer(&pebble, challenge);
        let text = fleet.conf("two", &issuer, "b.test");
        let two = TestServer::start(second, &text);
        let roots = root(&two, &pebble);
        wait_served(&two, "b.test", &roots);
        let text = fleet.conf("one", &issuer, "a.test");
        let one = TestServer::start(first, &text);
        wait_served(&one, "a.test", &roots);
        let log = one.error_log();
        assert!(log.contains("issued by \"ca\""), "{log}");
        assert!(!log.contains("next try in"), "the first try was good: {log}");
        // The challenges are over at both.
        wait_until("the table to be empty", || fleet.secrets("challenges").is_empty());
        let path = format!("http://{}/.well-known/acme-challenge/x", two.http());
        assert_eq!(Curl::new(Proto::H1).field("Host: a.test").get(&path).text(), "ok");
    }
}

#[test]
fn a_certificate_of_one_node_is_taken_over_by_the_others() {
    let (fleet, first, second) = (Fleet::new(), Home::new(BOLIDE), Home::new(BOLIDE));
    let pebble = Pebble::start(PebbleOptions::validating(first.port(0), first.port(1)));
    let issuer = issuer(&pebble, "");
    let text = fleet.conf("one", &issuer, "a.test");
    let one = TestServer::start(first, &text);
    let roots = root(&one, &pebble);
    wait_served(&one, "a.test", &roots);
    wait_until("the certificate to be in Valkey", || !fleet.secrets("certificate:").is_empty());
    let of_one = serial(&one, "a.test");
    // The name of the host in an order is that of the issuer: both nodes have the same order.
    let text = fleet.conf("two", &issuer, "a.test");
    let mut two = TestServer::start(second, &text);
    wait_served(&two, "a.test", &roots);
    assert_eq!(serial(&two, "a.test"), of_one);
    let log = two.error_log();
    assert!(log.contains("another server's is taken over"), "{log}");
    assert!(!log.contains("issued by"), "it has ordered nothing: {log}");
    // It is kept: without Valkey and issuer it is there again.
    let names = fleet.secrets("certificate:");
    let dump = fleet.valkey.cli(&["--no-raw", "get", &names[0]]).text();
    assert!(dump.contains("bolideK1") && !dump.contains("BEGIN"), "{dump}");
    assert!(fleet.secrets("order:").is_empty(), "no lease is left");
    drop(fleet.valkey);
    two.restart("TERM");
    assert_eq!(serial(&two, "a.test"), of_one);
}

/// Nodes that start at once order once.
#[test]
fn nodes_that_want_the_same_certificate_order_once() {
    let (fleet, first, second) = (Fleet::new(), Home::new(BOLIDE), Home::new(BOLIDE));
    let pebble = Pebble::start(PebbleOptions::validating(first.port(0), first.port(1)));
    let issuer = issuer(&pebble, "");
    let texts = ["one", "two"].map(|node| fleet.conf(node, &issuer, "a.test"));
    let one = TestServer::start(first, &texts[0]);
    let two = TestServer::start(second, &texts[1]);
    let roots = root(&one, &pebble);
    for node in [&one, &two] {
        wait_served(node, "a.test", &roots);
    }
    wait_until("both to have the same", || serial(&one, "a.test") == serial(&two, "a.test"));
    let issued = [&one, &two].map(|node| node.error_log().matches("issued by").count());
    assert_eq!(issued.iter().sum::<usize>(), 1, "{issued:?}");
}

/// Without Valkey each node orders, and a record that is none is not used.
#[test]
fn a_node_orders_for_itself_without_others() {
    let (mut fleet, first, second) = (Fleet::new(), Home::new(BOLIDE), Home::new(BOLIDE));
    fleet.valkey.kill();
    let pebble = Pebble::start(PebbleOptions::validating(first.port(0), first.port(1)));
    let issuer = issuer(&pebble, "");
    let text = fleet.conf("one", &issuer, "a.test");
    let one = TestServer::start(first, &text);
    let roots = root(&one, &pebble);
    wait_served(&one, "a.test", &roots);
    assert!(one.error_log().contains("issued by"), "{}", one.error_log());
    // What it got alone, others get when Valkey is back, but not if it was changed there.
    fleet.valkey.start_again();
    wait_joined(&one);
    wait_until("the certificate to be in Valkey", || !fleet.secrets("certificate:").is_empty());
    let spoil = "for _, key in ipairs(redis.call('KEYS', '*:secret:certificate:*')) do \
                 redis.call('SET', key, redis.call('GET', key) .. 'x') end";
    let _spoilt = fleet.valkey.cli(&["eval", spoil, "0"]).succeeded();
    let text = fleet.conf("two", &issuer, "a.test");
    let two = TestServer::start(second, &text);
    wait_until("a line in the log", || two.error_log().contains("in Valkey is not used"));
    wait_served(&two, "a.test", &roots);
    assert_ne!(serial(&two, "a.test"), serial(&one, "a.test"), "it has ordered its own");
}
