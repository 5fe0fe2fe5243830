//! Certificates that nodes share by a real Valkey, from a real issuer: any of them answers its
//! questions, one orders, and all use what came.

use bolide_testkit::pebble::{Pebble, PebbleOptions};
use bolide_testkit::server::{Home, prelude};
use bolide_testkit::tools::run;
use bolide_testkit::{Curl, Proto, TestServer, Valkey, WallClock, wait_until};

use super::secrets::write_key;
use crate::BOLIDE;
use crate::acme::{asker, issuer, root, serial, wait_served};
use crate::explain::ask;

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

    /// With keys by their digits.
    fn block(&self, node: &str, keys: &str) -> String {
        let key = |digit: char| write_key(self.keys.dir(), &digit.to_string(), digit);
        let keys = keys.chars().map(|digit| format!("secrets_key {};", key(digit)));
        let (port, keys) = (self.valkey.port(), keys.collect::<String>());
        format!("cluster valkey://127.0.0.1:{port} {{ node {node}; {keys} }}")
    }

    fn conf(&self, node: &str, issuer: &str, name: &str) -> String {
        self.conf_by("a", node, issuer, name)
    }

    fn conf_by(&self, keys: &str, node: &str, issuer: &str, name: &str) -> String {
        let (prelude, cluster) = (prelude(1), self.block(node, keys));
        format!(
            "{prelude}http {{ {cluster} {issuer} server {{ listen 127.0.0.1:@HTTP@;
             listen 127.0.0.1:@HTTPS@ ssl; server_name {name}; acme_certificate ca; {PAIR}
             location / {{ return 200 ok; }} }} }}"
        )
    }

    /// What names the keys that the only certificate and the only account are sealed with.
    fn sealed_by(&self) -> [String; 2] {
        ["certificate", "account"].map(|kind| {
            let code = "local keys = redis.call('KEYS', '*:secret:' .. ARGV[1] .. ':*') \
                        if #keys ~= 1 then return '' end \
                        return redis.sha1hex(string.sub(redis.call('GET', keys[1]), 9, 16))";
            self.valkey.cli(&["eval", code, "0", kind]).succeeded().text().trim().to_owned()
        })
    }

    /// The nodes that have published their first key.
    fn firsts(&self) -> String {
        self.valkey.cli(&["hkeys", "bolide:{bolide}:secret:keys"]).text()
    }

    /// Names of secrets in Valkey with this beginning.
    fn secrets(&self, start: &str) -> Vec<String> {
        let pattern = format!("bolide:{{bolide}}:secret:{start}*");
        let listed = self.valkey.cli(&["--scan", "--pattern", &pattern]).text();
        listed.lines().map(str::to_owned).collect()
    }
}

/// A certificate of 100 KB that is of the issuer of the last one of a chain.
fn large_issuer(dir: &std::path::Path, chain: &str) -> String {
    let last = dir.join("last.pem");
    std::fs::write(&last, &chain[chain.rfind("-----BEGIN").unwrap()..]).unwrap();
    let words = ["x509", "-noout", "-issuer", "-in", last.to_str().unwrap()];
    let issuer = run("openssl", words).succeeded().text();
    let (_, name) = issuer.split_once("CN").unwrap();
    let name = name.trim_start_matches([' ', '=']).trim();
    let conf = dir.join("large.conf");
    let text = format!(
        "[req]\nstring_mask = nombstr\nprompt = no\ndistinguished_name = name\n\
         [name]\nCN = {name}\n"
    );
    std::fs::write(&conf, text).unwrap();
    let comment = format!("nsComment=ASN1:UTF8String:{}", "x".repeat(100_000));
    let key = dir.join("large.key");
    let files = ["-config", conf.to_str().unwrap(), "-keyout", key.to_str().unwrap()];
    let words = ["req", "-x509", "-nodes", "-newkey", "rsa:2048", "-addext", &comment];
    run("openssl", words.into_iter().chain(files)).succeeded().text()
}

/// The same with a certificate of its own.
fn without_orders(text: &str) -> String {
    let own = "ssl_certificate cert.pem; ssl_certificate_key cert.key;";
    text.replace("acme_certificate ca;", "").replace(PAIR, own)
}

/// Puts another configuration in force.
fn reload(node: &TestServer, text: &str) {
    node.rewrite(text);
    node.signal("HUP");
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

/// A node whose clock is hours ahead leaves the challenges of the others alone, and answers them.
#[test]
fn a_clock_that_is_wrong_takes_no_challenge_away() {
    let (fleet, first, clock) = (Fleet::new(), Home::new(BOLIDE), WallClock::default());
    let words = clock.words();
    let second = Home::new(BOLIDE).launched_by(&words.each_ref().map(String::as_str));
    let pebble = Pebble::start(PebbleOptions::validating(second.port(0), second.port(1)));
    let issuer = issuer(&pebble, "");
    let text = fleet.conf("two", &issuer, "b.test");
    let two = TestServer::start(second, &text);
    let roots = root(&two, &pebble);
    wait_served(&two, "b.test", &roots);
    clock.set(2 * 3600);
    let text = fleet.conf("one", &issuer, "a.test");
    let one = TestServer::start(first, &text);
    wait_served(&one, "a.test", &roots);
    assert!(!one.error_log().contains("next try in"), "{}", one.error_log());
}

/// Two nodes with orders of their own have one account, and go on with it after its key was
/// changed by one of them.
#[test]
fn an_account_is_made_once() {
    let (fleet, first, second) = (Fleet::new(), Home::new(BOLIDE), Home::new(BOLIDE));
    // Both are validated at the second node.
    let pebble = Pebble::start(PebbleOptions::validating(second.port(0), second.port(1)));
    let issuer = issuer(&pebble, "");
    let texts =
        [("one", "a.test"), ("two", "b.test")].map(|(n, name)| fleet.conf(n, &issuer, name));
    // Both know each other before the first order, which begins on both at once.
    let [one, two] = [(first, &texts[0]), (second, &texts[1])]
        .map(|(home, text)| TestServer::start(home, &without_orders(text)));
    [&one, &two].into_iter().for_each(wait_joined);
    reload(&one, &texts[0]);
    reload(&two, &texts[1]);
    let roots = root(&one, &pebble);
    wait_served(&one, "a.test", &roots);
    wait_served(&two, "b.test", &roots);
    let account = |node: &TestServer| {
        let dir = std::fs::read_dir(node.home().dir().join("state")).unwrap();
        let mut paths = dir.map(|entry| entry.unwrap().path());
        let is_account = |path: &std::path::PathBuf| {
            path.file_name().unwrap().to_string_lossy().starts_with("account-")
                && path.extension().is_some_and(|end| end == "json")
        };
        std::fs::read_to_string(paths.find(is_account).expect("an account")).unwrap()
    };
    let before = account(&one);
    assert_eq!(account(&two), before, "{}", two.error_log());
    let names = fleet.secrets("account:");
    assert_eq!(names.len(), 1);
    let dump = fleet.valkey.cli(&["--no-raw", "get", &names[0]]).text();
    assert!(dump.contains("bolideK1") && !dump.contains("key_pkcs8"), "{dump}");
    let _quiet = ask(&one, &["acme", "rollover", "ca"]).succeeded();
    let changed = account(&one);
    assert_ne!(changed, before);
    // The other one orders with the new key.
    reload(&two, &fleet.conf("two", &issuer, "c.test"));
    wait_served(&two, "c.test", &roots);
    assert_eq!(account(&two), changed);
    assert!(!two.error_log().contains("next try in"), "{}", two.error_log());
}

/// What one node has ordered for the name of a client is the other one's as well, once its own
/// program allows the name.
#[test]
fn a_certificate_on_demand_of_one_node_is_taken_over_by_the_others() {
    let (fleet, first, second) = (Fleet::new(), Home::new(BOLIDE), Home::new(BOLIDE));
    let pebble = Pebble::start(PebbleOptions::validating(first.port(0), first.port(1)));
    let (url, _asked) = asker();
    let rest = format!("on_demand_ask {url}; on_demand_rate 10r/h; on_demand_names 3;");
    let issuer = issuer(&pebble, &rest);
    let conf = |node: &str| {
        let text = fleet.conf(node, &issuer, "_");
        text.replace("acme_certificate ca;", "acme_certificate ca on_demand;")
    };
    let one = TestServer::start(first, &conf("one"));
    wait_joined(&one);
    let roots = root(&one, &pebble);
    wait_served(&one, "yes-1.test", &roots);
    let of_one = serial(&one, "yes-1.test");
    wait_until("the certificate to be in Valkey", || !fleet.secrets("certificate:").is_empty());
    let mut two = TestServer::start(second, &conf("two"));
    wait_joined(&two);
    wait_served(&two, "yes-1.test", &roots);
    assert_eq!(serial(&two, "yes-1.test"), of_one, "{}", two.error_log());
    assert!(!two.error_log().contains("issued by"), "{}", two.error_log());
    assert_eq!(serial(&two, "no.test"), "", "one that is not allowed here");
    // What is kept is shared by the next process, too.
    let _gone = fleet.valkey.cli(&["flushall"]).succeeded();
    drop(one.stop("TERM"));
    two.restart("TERM");
    wait_until("the certificate to be in Valkey", || !fleet.secrets("certificate:").is_empty());
    assert_eq!(serial(&two, "yes-1.test"), of_one);
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

/// A certificate of so many bytes that no server would read its record is not put in Valkey.
#[test]
fn a_certificate_that_is_too_large_is_not_shared() {
    let (fleet, first) = (Fleet::new(), Home::new(BOLIDE));
    let pebble = Pebble::start(PebbleOptions::validating(first.port(0), first.port(1)));
    let issuer = issuer(&pebble, "");
    let mut one = TestServer::start(first, &fleet.conf("one", &issuer, "a.test"));
    wait_served(&one, "a.test", &root(&one, &pebble));
    wait_until("the certificate to be in Valkey", || !fleet.secrets("certificate:").is_empty());
    one.signal("TERM");
    let _ended = one.wait_exit();
    let _empty = fleet.valkey.cli(&["flushall"]).succeeded();
    let files = std::fs::read_dir(one.home().dir().join("state")).unwrap();
    let mut texts = files.filter_map(|file| {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).ok()?;
        text.contains("BEGIN CERTIFICATE").then_some((path, text))
    });
    let (path, text) = texts.next().expect("a certificate");
    // Its last certificate is followed by three of the issuer of it, each of 100 KB.
    let end = "-----END CERTIFICATE-----\n";
    let at = text.rfind(end).unwrap() + end.len();
    let above = large_issuer(one.home().dir(), &text[..at]).repeat(3);
    std::fs::write(&path, format!("{}{above}{}", &text[..at], &text[at..])).unwrap();
    one.start_again();
    let said = || one.error_log().matches("is not shared: its record has").count();
    wait_until("a line in the log", || said() > 0);
    bolide_testkit::pause(11_000);
    assert_eq!(said(), 1, "{}", one.error_log());
    assert!(fleet.secrets("certificate:").is_empty());
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
    let mut one = TestServer::start(first, &text);
    let roots = root(&one, &pebble);
    wait_served(&one, "a.test", &roots);
    assert!(one.error_log().contains("issued by"), "{}", one.error_log());
    // What it got alone, others get when Valkey is back, but not if it was changed there.
    fleet.valkey.start_again();
    wait_joined(&one);
    wait_until("the certificate to be in Valkey", || !fleet.secrets("certificate:").is_empty());
    // It begins anew without what it had: else it would mend the record.
    let before = serial(&one, "a.test");
    one.signal("TERM");
    let _ended = one.wait_exit();
    std::fs::remove_dir_all(one.home().dir().join("state")).unwrap();
    let spoil = "for _, key in ipairs(redis.call('KEYS', '*:secret:certificate:*')) do \
                 redis.call('SET', key, redis.call('GET', key) .. 'x') end";
    let _spoilt = fleet.valkey.cli(&["eval", spoil, "0"]).succeeded();
    one.start_again();
    wait_until("a line in the log", || one.error_log().contains("in Valkey is not used"));
    wait_served(&one, "a.test", &roots);
    assert_ne!(serial(&one, "a.test"), before, "it has ordered its own");
    // No other server would ever put something good in its place.
    let replaced = "which no key of this server opens, is replaced by the certificate in use here";
    wait_until("the record to be replaced", || one.error_log().contains(replaced));
    let text = fleet.conf("two", &issuer, "a.test");
    let two = TestServer::start(second, &text);
    wait_served(&two, "a.test", &roots);
    assert_eq!(serial(&two, "a.test"), serial(&one, "a.test"), "{}", two.error_log());
}

/// A node with the new key alone finds the certificate: what the old one sealed is sealed anew.
#[test]
fn another_key_takes_the_place_of_an_old_one() {
    let (fleet, first, second) = (Fleet::new(), Home::new(BOLIDE), Home::new(BOLIDE));
    let pebble = Pebble::start(PebbleOptions::validating(first.port(0), first.port(1)));
    let issuer = issuer(&pebble, "");
    let conf = |keys: &str| fleet.conf_by(keys, "one", &issuer, "a.test");
    let one = TestServer::start(first, &conf("a"));
    let roots = root(&one, &pebble);
    wait_served(&one, "a.test", &roots);
    wait_until("both to be in Valkey", || fleet.sealed_by().iter().all(|by| !by.is_empty()));
    let old = fleet.sealed_by();
    assert_eq!(old[0], old[1]);
    reload(&one, &conf("ab"));
    // A node that has the old key first keeps what is there as it is.
    let third =
        TestServer::start(Home::new(BOLIDE), &fleet.conf_by("ab", "three", &issuer, "a.test"));
    wait_until("its first key to be published", || fleet.firsts().contains("three"));
    reload(&one, &conf("ba"));
    wait_until("another first key to be seen", || {
        let output = ask(&third, &["cluster", "status", "--json"]).text();
        output.contains("\"other_first_keys\":1")
    });
    bolide_testkit::pause(11_000);
    assert_eq!(fleet.sealed_by(), old, "no turn and turn about");
    // It is gone, and its entry with it.
    drop(third);
    let _over = fleet.valkey.cli(&["hdel", "bolide:{bolide}:secret:keys", "three"]).succeeded();
    wait_until("both to be sealed anew", || {
        let [certificate, account] = fleet.sealed_by();
        certificate == account && certificate != old[0]
    });
    let of_b = fleet.sealed_by();
    let two = TestServer::start(second, &fleet.conf_by("b", "two", &issuer, "a.test"));
    wait_served(&two, "a.test", &roots);
    assert_eq!(serial(&two, "a.test"), serial(&one, "a.test"));
    assert!(!two.error_log().contains("issued by"), "{}", two.error_log());
    drop(two);
    // All at once, without the old one: a node that has the certificate replaces the record.
    reload(&one, &conf("c"));
    wait_until("the record to be replaced", || {
        one.error_log().contains("which no key of this server opens, is replaced")
    });
    assert_ne!(fleet.sealed_by()[0], of_b[0]);
}

/// A node that may order and cannot begin leaves the order to the others.
#[test]
fn a_node_that_cannot_begin_an_order_does_not_block_others() {
    let (fleet, first, second) = (Fleet::new(), Home::new(BOLIDE), Home::new(BOLIDE));
    let pebble = Pebble::start(PebbleOptions::validating(second.port(0), second.port(1)));
    let issuer = issuer(&pebble, "");
    // Where a file is to be that is locked.
    std::fs::create_dir_all(first.dir().join("state/lock")).unwrap();
    let text = fleet.conf("one", &issuer, "a.test");
    let one = TestServer::start(first, &text);
    wait_until("a line in the log", || one.error_log().contains("state/lock"));
    let text = fleet.conf("two", &issuer, "a.test");
    let two = TestServer::start(second, &text);
    wait_served(&two, "a.test", &root(&two, &pebble));
    assert!(two.error_log().contains("issued by"), "{}", two.error_log());
    assert!(!one.error_log().contains("issued by"), "{}", one.error_log());
}

/// A server releases the lease that it took when its next command gets no reply.
#[test]
fn a_lease_ends_with_a_claim_that_failed() {
    let (fleet, first) = (Fleet::new(), Home::new(BOLIDE));
    let parts = ["purges", "secret:order:*", "secret:tickets:*", "secret:challenges"];
    let parts = parts.map(|part| format!("~*:{part}"));
    let rule = ["acl", "setuser", "default", "resetkeys"];
    let rule: Vec<&str> = rule.into_iter().chain(parts.iter().map(String::as_str)).collect();
    assert!(fleet.valkey.cli(&rule).text().contains("OK"));
    // No issuer is there.
    let issuer = "acme_issuer ca { uri https://127.0.0.1:@P5@/dir; ssl_verify off;
                  state_path @DIR@/state; accept_terms_of_service; }";
    let text = fleet.conf("one", issuer, "a.test");
    let one = TestServer::start(first, &without_orders(&text));
    wait_joined(&one);
    // The order begins on a node that knows of the others.
    reload(&one, &text);
    wait_until("a claim to fail", || one.error_log().contains("certificates are not shared"));
    wait_until("the lease to be gone", || fleet.secrets("order:").is_empty());
    let stats = fleet.valkey.cli(&["info", "stats"]).text();
    assert!(stats.contains("expired_keys:0\r\n") || stats.contains("expired_keys:0\n"), "{stats}");
}

/// A server that orders no more while its order is under way leaves the account to the others.
#[test]
fn the_lease_of_an_account_ends_with_the_orders_of_it() {
    let (fleet, first) = (Fleet::new(), Home::new(BOLIDE));
    // An issuer that says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("https://127.0.0.1:{}/dir", silent.local_addr().unwrap().port());
    let issuer = format!(
        "acme_issuer ca {{ uri {uri}; ssl_verify off; state_path @DIR@/state;
         accept_terms_of_service; }}"
    );
    let text = fleet.conf("one", &issuer, "a.test");
    let one = TestServer::start(first, &without_orders(&text));
    wait_joined(&one);
    reload(&one, &text);
    wait_until("the order to begin", || fleet.secrets("order:").len() == 2);
    reload(&one, &without_orders(&text));
    wait_until("both leases to be gone", || fleet.secrets("order:").is_empty());
}

/// However long another profile's certificate is good for, it is not the one that is ordered.
#[test]
fn a_certificate_of_another_profile_is_another_one() {
    let (fleet, first, second) = (Fleet::new(), Home::new(BOLIDE), Home::new(BOLIDE));
    let mut options = PebbleOptions::validating(second.port(0), second.port(1));
    options.profiles.push(("short".into(), 86_400));
    let pebble = Pebble::start(options);
    let long = fleet.conf("one", &issuer(&pebble, "profile default require;"), "a.test");
    let short = fleet.conf("two", &issuer(&pebble, "profile short require;"), "a.test");
    let two = TestServer::start(second, &short);
    let roots = root(&two, &pebble);
    wait_served(&two, "a.test", &roots);
    let of_two = serial(&two, "a.test");
    let one = TestServer::start(first, &long);
    wait_served(&one, "a.test", &roots);
    assert_ne!(serial(&one, "a.test"), of_two);
    wait_until("both to be in Valkey", || fleet.secrets("certificate:").len() == 2);
    assert_eq!(serial(&two, "a.test"), of_two);
    let taken = [&one, &two].map(|node| node.error_log().contains("is taken over"));
    assert_eq!(taken, [false, false]);
}
