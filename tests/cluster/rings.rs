//! The ring of ticket keys that nodes share: several make a key at once, one comes with an older
//! file of keys, and all end with the same ring.

use std::path::Path;

use bolide_testkit::server::{Home, prelude};
use bolide_testkit::{TestServer, Valkey, WallClock, wait_until};

use super::secrets::{SHARED, secrets, session, unix_seconds, write_key};
use crate::BOLIDE;
use crate::tls_keys::{VERSIONS, ask};

/// The seconds of `ssl_session_timeout`, and so those that a key of the ring encrypts for.
const DAY: u64 = 24 * 60 * 60;

/// A node with the certificate of `cert`.
fn conf(cert: &Path, valkey: &Valkey, name: &str, keys: &str) -> String {
    let (prelude, dir, port) = (prelude(1), cert.display(), valkey.port());
    format!(
        "{prelude}http {{ cluster valkey://127.0.0.1:{port} {{
             node {name}; {keys} }}
         ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/cert.key;
         ssl_session_timeout 1d;
         server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl; server_name localhost;
         location / {{ return 200 \"reused $ssl_session_reused\\n\"; }} }} }}"
    )
}

fn wait_shared(server: &TestServer) {
    wait_until("the keys to be shared", || server.error_log().contains(SHARED));
}

/// Whether Valkey takes a key that a node offers.
fn take_keys(valkey: &Valkey, takes: bool) {
    let rule = if takes { "+set" } else { "-set" };
    assert!(valkey.cli(&["acl", "setuser", "default", rule]).text().contains("OK"));
}

/// Waits until a node has made a key and offered it in vain.
fn wait_refused(node: &TestServer) {
    wait_until("a key to be offered", || node.error_log().contains("ticket keys are not shared: "));
}

/// The keys of the ring, by the number of their span.
fn spans(valkey: &Valkey) -> Vec<u64> {
    let prefix = format!("bolide:{{bolide}}:secret:tickets:{DAY}:");
    let all = secrets(valkey);
    let mut found: Vec<u64> =
        all.iter().filter_map(|name| name.strip_prefix(&*prefix)?.parse().ok()).collect();
    found.sort_unstable();
    found
}

fn record_name(span: u64) -> String {
    format!("bolide:{{bolide}}:secret:tickets:{DAY}:{span}")
}

/// The bytes of the ring's records.
fn records(valkey: &Valkey) -> Vec<String> {
    let names = spans(valkey).into_iter().map(record_name);
    names.map(|name| valkey.cli(&["dump", &name]).text()).collect()
}

/// Each of these resumes the sessions that the others have begun.
fn assert_one_ring(dir: &Path, nodes: &[&TestServer], when: &str) {
    for version in VERSIONS {
        for (from, one) in nodes.iter().enumerate() {
            let (save, load) = session(dir, "ring");
            assert_eq!(ask(one, version, &save), ".", "{when}: {version}");
            for (to, other) in nodes.iter().enumerate() {
                assert_eq!(ask(other, version, &load), "r", "{when}: {version}, {from} to {to}");
            }
        }
    }
}

#[test]
fn nodes_that_make_the_first_keys_at_once_have_one_ring() {
    let (home, valkey) = (Home::new(BOLIDE), Valkey::default());
    let dir = home.dir();
    let key = format!("secrets_key {};", write_key(dir, "key", 'a'));
    take_keys(&valkey, false);
    let start = |name| TestServer::start(Home::new(BOLIDE), &conf(dir, &valkey, name, &key));
    let (one, two) = (start("one"), start("two"));
    // Each has made one of its own by then.
    [&one, &two].into_iter().for_each(wait_refused);
    take_keys(&valkey, true);
    [&one, &two].into_iter().for_each(wait_shared);
    assert_one_ring(dir, &[&one, &two], "both offered");
    let three = start("three");
    wait_shared(&three);
    assert_one_ring(dir, &[&one, &two, &three], "a third one comes");
    assert!((2..=3).contains(&spans(&valkey).len()), "{:?}", spans(&valkey));
}

/// A process, its clock, and the name of its node.
fn start_by(clock: &WallClock, text: &str) -> TestServer {
    let words = clock.words();
    let home = Home::new(BOLIDE).launched_by(&words.each_ref().map(String::as_str));
    TestServer::start(home, text)
}

#[test]
fn nodes_that_rotate_concurrently_share_keys_and_decrypt_each_others_tickets() {
    let (home, valkey) = (Home::new(BOLIDE), Valkey::default());
    let dir = home.dir();
    let key = format!("secrets_key {};", write_key(dir, "key", 'a'));
    let clocks = [WallClock::default(), WallClock::default()];
    // The middle of a span, wherever the machine is in its own.
    let now = unix_seconds();
    let middle = (DAY / 2) as i64 - (now % DAY) as i64;
    let set = |seconds: i64| clocks.iter().for_each(|clock| clock.set(middle + seconds));
    set(0);
    let nodes: Vec<_> = clocks
        .iter()
        .zip(["one", "two"])
        .map(|(clock, name)| start_by(clock, &conf(dir, &valkey, name, &key)))
        .collect();
    nodes.iter().for_each(wait_shared);
    let span = (now as i64 + middle) as u64 / DAY;
    assert_eq!(spans(&valkey), [span, span + 1]);
    let before: Vec<_> = (0..2).map(|node| session(dir, &format!("before-{node}"))).collect();
    // A session of TLS 1.3 would be of one use.
    for (node, (save, _)) in nodes.iter().zip(&before) {
        assert_eq!(ask(node, "tls1_2", save), ".");
    }
    // Both see the new span, and each makes a key of its own for the one after it.
    take_keys(&valkey, false);
    set((DAY / 2) as i64 + 60);
    nodes.iter().for_each(wait_refused);
    for (_, load) in &before {
        for node in &nodes {
            assert_eq!(ask(node, "tls1_2", load), "r", "no handshake waits for Valkey");
        }
    }
    take_keys(&valkey, true);
    wait_until("the key of the span after it", || spans(&valkey) == [span, span + 1, span + 2]);
    for (_, load) in &before {
        for node in &nodes {
            assert_eq!(ask(node, "tls1_2", load), "r", "what either sealed before");
        }
    }
    assert_one_ring(dir, &[&nodes[0], &nodes[1]], "in the new span");
    // The key of the span before the last one opens nothing.
    set((DAY / 2 + DAY) as i64 + 60);
    wait_until("the next key", || spans(&valkey).contains(&(span + 3)));
    for (_, load) in &before {
        for node in &nodes {
            assert_eq!(ask(node, "tls1_2", load), ".", "it has left the ring");
        }
    }
    assert_one_ring(dir, &[&nodes[0], &nodes[1]], "in the span after it");
}

#[test]
fn a_node_with_an_older_key_file_overwrites_nothing_and_takes_the_ring_with_the_newer_file() {
    let (home, valkey) = (Home::new(BOLIDE), Valkey::default());
    let dir = home.dir();
    let [old, new] = [("old", 'a'), ("new", 'b')].map(|(name, digit)| {
        let path = write_key(dir, name, digit);
        format!("secrets_key {path};")
    });
    let newer = format!("{new} {old}");
    let start =
        |name, keys: &str| TestServer::start(Home::new(BOLIDE), &conf(dir, &valkey, name, keys));
    let one = start("one", &newer);
    wait_shared(&one);
    let ring = records(&valkey);
    // It has only the key from before.
    let mut late = start("late", &old);
    wait_until("it to say why it goes on alone", || {
        late.error_log().contains("is not used: it is sealed with a key that this server has not")
    });
    let (save, load) = session(dir, "resumed");
    assert_eq!(ask(&one, "tls1_2", &save), ".");
    assert_eq!(ask(&late, "tls1_2", &load), ".", "it cannot open it");
    let (own_save, own_load) = session(dir, "own");
    assert_eq!(ask(&late, "tls1_2", &own_save), ".");
    assert_eq!(ask(&late, "tls1_2", &own_load), "r", "it has keys of its own");
    assert_eq!(ask(&one, "tls1_2", &own_load), ".");
    // Nor does a process that begins with it.
    late.restart("TERM");
    wait_until("the new process to say so as well", || {
        late.error_log().matches("is not used").count() == 2
    });
    // One that knows the newer key, and still seals with the old one, takes the ring at once.
    let between = start("between", &format!("{old} {new}"));
    wait_shared(&between);
    assert_eq!(ask(&between, "tls1_2", &load), "r");
    assert_eq!(records(&valkey), ring, "the ring is what it was");
    // The file is replaced.
    late.rewrite(&conf(dir, &valkey, "late", &newer));
    late.signal("HUP");
    wait_shared(&late);
    assert_eq!(ask(&late, "tls1_2", &load), "r", "sessions of the newer ring are resumed");
    assert_eq!(records(&valkey), ring, "the ring is what it was");
    assert_one_ring(dir, &[&one, &between, &late], "with the newer file");
}

/// Valkey loses a key, gets another one for the same time, and then has the first one again, as
/// after a failover to a replica that is behind.
#[test]
fn a_key_that_valkey_has_again_is_that_of_all_nodes() {
    let (home, valkey) = (Home::new(BOLIDE), Valkey::default());
    let dir = home.dir();
    let key = format!("secrets_key {};", write_key(dir, "key", 'a'));
    let start = |name| TestServer::start(Home::new(BOLIDE), &conf(dir, &valkey, name, &key));
    let one = start("one");
    wait_shared(&one);
    let names: Vec<_> = spans(&valkey).into_iter().map(record_name).collect();
    let each = |code: &str| {
        for name in &names {
            let _done = valkey.cli(&["eval", code, "1", name]).succeeded();
        }
    };
    one.signal("STOP");
    each("return redis.call('RENAME', KEYS[1], KEYS[1] .. ':kept')");
    let two = start("two");
    wait_shared(&two);
    one.signal("CONT");
    let (save, load) = session(dir, "other");
    wait_until("the other key to be that of both", || {
        let _full = ask(&one, "tls1_2", &save);
        ask(&two, "tls1_2", &load) == "r"
    });
    each("return redis.call('RENAME', KEYS[1] .. ':kept', KEYS[1])");
    let three = start("three");
    wait_shared(&three);
    wait_until("the first key to be that of all", || {
        let resumes = |node: &TestServer| {
            let _full = ask(node, "tls1_2", &save);
            ask(&three, "tls1_2", &load) == "r"
        };
        resumes(&one) && resumes(&two)
    });
    assert_one_ring(dir, &[&one, &two, &three], "the first key is back");
}
