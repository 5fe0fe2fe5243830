//! Limits that nodes share by a real Valkey: together they let pass about what one of them would.
//!
//! Nothing here rests on how long a report takes: a node has received all that another one counted
//! before a key of its own, once it refuses that key.

use std::time::Instant;

use bolide_testkit::server::{Home, TYPES, prelude};
use bolide_testkit::{TestApp, TestServer, Valkey, wait_until};

use super::secrets::write_key;
use crate::BOLIDE;

/// Requests that one node lets pass at once: the first one, and the burst.
const AT_ONCE: usize = 20;

/// A node that counts by the argument `a`, and requests in work by `c`; by `p` to find out what it
/// has received.
fn node(valkey: &Valkey, name: &str, more: &str, app: &TestApp) -> TestServer {
    TestServer::start(Home::new(BOLIDE), &conf(valkey, name, more, app))
}

fn conf(valkey: &Valkey, name: &str, more: &str, app: &TestApp) -> String {
    let (prelude, port, address) = (prelude(2), valkey.port(), app.address());
    format!(
        "{prelude}http {{ {TYPES} cluster valkey://127.0.0.1:{port} {{ node {name}; {more} }}
         limit_req_zone $arg_a zone=a:1m rate=1r/m shared;
         limit_req_zone $arg_p zone=p:1m rate=1r/m shared;
         limit_req_zone $arg_a zone=own:1m rate=1r/m;
         limit_conn_zone $arg_c zone=c:1m shared;
         server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www;
         location /own/ {{ alias @DIR@/www/; limit_req zone=own burst=19 nodelay; }}
         location /a/ {{ alias @DIR@/www/; limit_req zone=a burst=19 nodelay; }}
         location /p/ {{ alias @DIR@/www/; limit_req zone=p; }}
         location /c/ {{ limit_conn c 3; fastcgi_param REQUEST_URI $document_uri;
             fastcgi_pass {address}; }} }} }}\n"
    )
}

struct Pair {
    valkey: Valkey,
    nodes: [TestServer; 2],
    app: TestApp,
    marks: usize,
}

impl Pair {
    fn start(more: &str) -> Self {
        let (valkey, app) = (Valkey::default(), TestApp::start());
        let nodes = ["one", "two"].map(|name| node(&valkey, name, more, &app));
        let pair = Self { valkey, nodes, app, marks: 0 };
        pair.nodes.iter().for_each(|node| pair.wait_shared(node));
        pair
    }

    fn wait_shared(&self, node: &TestServer) {
        wait_until("limits to be shared", || {
            node.error_log().contains("limits are counted with all servers")
        });
    }

    fn status(&self, node: usize, path: &str) -> u16 {
        self.nodes[node].get(path).status
    }

    /// How many of so many requests at once a node lets pass.
    fn passed(&self, node: usize, path: &str, count: usize) -> usize {
        let mut client = self.nodes[node].connect();
        (0..count).filter(|_| client.get(path, "").status == 200).count()
    }

    /// Waits until a node has received all counts of the other one so far.
    fn wait_heard(&mut self, from: usize, to: usize) {
        // A key that is unknown to the other node passes here as well, so the next one is used.
        let what = format!("node {to} to receive the counts of node {from}");
        wait_until(&what, || {
            self.marks += 1;
            let path = format!("/p/hello.txt?p=mark-{}", self.marks);
            assert_eq!(self.status(from, &path), 200);
            bolide_testkit::pause(300);
            self.status(to, &path) == 503
        });
    }
}

impl Pair {
    /// Reloads a node with something else in place of a part of its configuration.
    fn reload(&self, node: usize, (part, other): (&str, &str)) {
        let conf = conf(&self.valkey, ["one", "two"][node], "", &self.app);
        assert!(conf.contains(part), "{conf}");
        self.nodes[node].rewrite(&conf.replace(part, other));
        self.nodes[node].signal("HUP");
    }

    /// Has Valkey carry out a script on the stream of reports.
    fn script(&self, text: &str) -> String {
        let text = self.valkey.cli(&["eval", text, "1", "bolide:{bolide}:limits"]).text();
        assert!(!text.contains("ERR"), "{text}");
        text
    }
}

/// Adds all reports once more.
const COPY: &str = "local all = redis.call('XRANGE', KEYS[1], '-', '+') \
                    for _, it in ipairs(all) do \
                    redis.call('XADD', KEYS[1], '*', it[2][1], it[2][2]) end return #all";

/// What the rate of one a minute lets pass meanwhile, as long as a slow machine may take.
fn meanwhile(start: Instant) -> usize {
    1 + start.elapsed().as_secs() as usize / 60
}

#[test]
fn two_nodes_pass_as_many_requests_as_one() {
    let mut pair = Pair::start("");
    let start = Instant::now();
    assert_eq!(pair.passed(0, "/a/hello.txt?a=1", 30), AT_ONCE);
    pair.wait_heard(0, 1);
    let second = pair.passed(1, "/a/hello.txt?a=1", 30);
    assert!(second <= meanwhile(start), "{second} more: {}", pair.nodes[1].error_log());
    assert_eq!(pair.passed(1, "/a/hello.txt?a=2", 30), AT_ONCE, "another key is another one");
    // The same without "shared": each lets pass as much.
    for node in [0, 1] {
        assert_eq!(pair.passed(node, "/own/hello.txt?a=1", 30), AT_ONCE);
    }
    // As a balancer would: five here, five there, each hearing of what the other one let pass.
    let (start, mut all) = (Instant::now(), 0);
    for round in 0..12 {
        let (at, other) = (round % 2, 1 - round % 2);
        all += pair.passed(at, "/a/hello.txt?a=3", 5);
        pair.wait_heard(at, other);
    }
    assert!((AT_ONCE..=AT_ONCE + meanwhile(start)).contains(&all), "{all} of 60");
}

/// The error budget: nodes without reports of each other pass as many requests as each does alone,
/// and not more; and they compensate the excess once they receive the reports.
#[test]
fn requests_that_pass_before_reports_arrive_are_compensated_later() {
    let mut pair = Pair::start("");
    let start = Instant::now();
    let at_once: Vec<usize> = std::thread::scope(|scope| {
        let pair = &pair;
        let ask = |node| scope.spawn(move || pair.passed(node, "/a/hello.txt?a=1", 40));
        [ask(0), ask(1)].map(|asked| asked.join().unwrap()).into()
    });
    let all: usize = at_once.iter().sum();
    assert!(at_once.iter().all(|passed| *passed <= AT_ONCE + meanwhile(start)), "{at_once:?}");
    assert!((AT_ONCE..=2 * AT_ONCE + 2 * meanwhile(start)).contains(&all), "{at_once:?}");
    pair.wait_heard(0, 1);
    pair.wait_heard(1, 0);
    for node in [0, 1] {
        let more = pair.passed(node, "/a/hello.txt?a=1", 10);
        assert!(more <= meanwhile(start), "node {node}: {more}");
    }
}

#[test]
fn nodes_without_valkey_limit_as_each_does_alone() {
    let mut pair = Pair::start("");
    assert_eq!(pair.passed(0, "/a/hello.txt?a=1", 30), AT_ONCE);
    pair.wait_heard(0, 1);
    pair.valkey.kill();
    for node in [0, 1] {
        assert_eq!(pair.passed(node, "/a/hello.txt?a=2", 30), AT_ONCE, "alone, and no more");
    }
    assert!(pair.passed(1, "/a/hello.txt?a=1", 30) < AT_ONCE, "it still has the received counts");
    pair.valkey.start_again();
    // Counts of the meantime are not reported later.
    let message = "limits are not shared";
    let lone = "nothing but what is known here is used";
    wait_until("a node to notice", || {
        let log = pair.nodes[0].error_log();
        log.contains(message) || log.contains(lone)
    });
    pair.wait_heard(0, 1);
    assert_eq!(pair.passed(0, "/a/hello.txt?a=4", 30), AT_ONCE);
    pair.wait_heard(0, 1);
    assert!(pair.passed(1, "/a/hello.txt?a=4", 30) < AT_ONCE, "they share again");
}

#[test]
fn requests_in_progress_count_on_all_nodes() {
    let mut pair = Pair::start("");
    pair.app.say("/c/slow", "");
    pair.app.hold("/c/slow");
    let mut held: Vec<_> = (0..2).map(|_| pair.nodes[0].connect()).collect();
    for client in &mut held {
        client.send("GET /c/slow?c=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    let refused = |pair: &Pair| pair.status(1, "/c/quick?c=1") == 503;
    let mut last = pair.nodes[1].connect();
    last.send("GET /c/slow?c=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_until("three to be in work", || pair.app.count("/c/slow") == 3);
    wait_until("three in all to be as many as there may be", || refused(&pair));
    assert_ne!(pair.status(1, "/c/quick?c=2"), 503, "another key is another one");
    pair.nodes[0].signal("KILL");
    pair.nodes[0].wait_exit();
    wait_until("what was in work on a node that died to be forgotten", || !refused(&pair));
    drop(last);
}

#[test]
fn a_zone_of_another_size_after_a_reload_is_charged_as_well() {
    let mut pair = Pair::start("");
    let start = Instant::now();
    assert_eq!(pair.passed(1, "/a/hello.txt?a=1", 30), AT_ONCE);
    pair.wait_heard(1, 0);
    let (old, new) = ("zone=a:1m rate=1r/m shared;", "zone=a:2m rate=1r/m shared;");
    pair.reload(0, (old, new));
    // Its zone is empty.
    wait_until("the new configuration", || pair.passed(0, "/a/hello.txt?a=1", 1) == 1);
    assert_eq!(pair.passed(1, "/a/hello.txt?a=3", 30), AT_ONCE);
    pair.wait_heard(1, 0);
    let more = pair.passed(0, "/a/hello.txt?a=3", 30);
    assert!(more <= meanwhile(start), "{more} more: {}", pair.nodes[0].error_log());
    assert_eq!(pair.passed(0, "/a/hello.txt?a=4", 30), AT_ONCE);
    pair.wait_heard(0, 1);
    let more = pair.passed(1, "/a/hello.txt?a=4", 30);
    assert!(more <= meanwhile(start), "{more} more: {}", pair.nodes[1].error_log());
}

#[test]
fn a_refused_reload_keeps_the_counts_of_other_nodes() {
    let mut pair = Pair::start("");
    let start = Instant::now();
    assert_eq!(pair.passed(0, "/a/hello.txt?a=1", 15), 15);
    pair.wait_heard(0, 1);
    let rate = "zone=a:1m rate=1r/m shared;";
    let broken = "zone=a:1m rate=100000r/s shared; server { listen unix:@DIR@/t.sock ssl; \
                  ssl_certificate none.crt; ssl_certificate_key none.key; }";
    pair.reload(1, (rate, broken));
    wait_until("a refusal", || pair.nodes[1].error_log().contains("none.crt"));
    assert_eq!(pair.passed(0, "/a/hello.txt?a=1", 15), 5);
    pair.wait_heard(0, 1);
    let more = pair.passed(1, "/a/hello.txt?a=1", 30);
    assert!(more <= meanwhile(start), "{more} more: {}", pair.nodes[1].error_log());
}

#[test]
fn a_copy_of_a_report_is_not_charged() {
    let keys = Home::new(BOLIDE);
    let key = write_key(keys.dir(), "key", 'a');
    let mut pair = Pair::start(&format!("secrets_key {key};"));
    assert_eq!(pair.passed(0, "/a/hello.txt?a=1", 5), 5);
    pair.wait_heard(0, 1);
    for _ in 0..3 {
        assert_ne!(pair.script(COPY), "0");
    }
    pair.wait_heard(0, 1);
    let rest = pair.passed(1, "/a/hello.txt?a=1", 30);
    assert!(rest >= AT_ONCE - 5, "{rest}: {}", pair.nodes[1].error_log());
    wait_until("a line in the log", || pair.nodes[1].error_log().contains("it was heard before"));
}

/// After a connection is lost, others know a node as the one that it was.
#[test]
fn a_node_is_one_on_all_of_its_connections() {
    let mut pair = Pair::start("");
    let lives = "local all, seen, count = redis.call('XRANGE', KEYS[1], '-', '+'), {}, 0 \
                 for _, it in ipairs(all) do local life = string.sub(it[2][2], 17, 24) \
                 if not seen[life] then seen[life] = true count = count + 1 end end return count";
    pair.wait_heard(0, 1);
    pair.wait_heard(1, 0);
    assert_eq!(pair.script(lives).trim(), "2");
    let _killed = pair.valkey.cli(&["client", "kill", "type", "normal"]).text();
    // Reports from now on come by other connections.
    pair.wait_heard(0, 1);
    pair.wait_heard(1, 0);
    assert_eq!(pair.script(lives).trim(), "2");
}

/// Whatever is in the stream, nodes let pass what each does alone, and go on.
#[test]
fn malformed_reports_are_not_counted() {
    let mut pair = Pair::start("");
    for report in
        ["x", "", "bolideL1", "bolideL1\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}\u{7}\u{8}", "bolideL9"]
    {
        let add = ["xadd", "bolide:{bolide}:limits", "*", "counts", report];
        let _id = pair.valkey.cli(&add).succeeded();
    }
    let _id = pair.valkey.cli(&["xadd", "bolide:{bolide}:limits", "*", "other", "x"]).succeeded();
    let copy = "local all = redis.call('XREVRANGE', KEYS[1], '+', '-') \
                for _, it in ipairs(all) do if #it[2][2] > 40 then \
                redis.call('XADD', KEYS[1], '*', 'counts', string.sub(it[2][2], 1, -2)) end end";
    pair.wait_heard(0, 1);
    let _cut = pair.valkey.cli(&["eval", copy, "1", "bolide:{bolide}:limits"]).succeeded();
    for node in 0..2 {
        wait_until("a line in the log", || {
            pair.nodes[node].error_log().contains("a report of limits in Valkey is not used")
        });
    }
    assert_eq!(pair.passed(0, "/a/hello.txt?a=1", 30), AT_ONCE);
    pair.wait_heard(0, 1);
    assert!(pair.passed(1, "/a/hello.txt?a=1", 30) < AT_ONCE);
    let log = pair.nodes[1].error_log();
    assert_eq!(log.matches("a report of limits").count(), 1, "one line a minute: {log}");
    // Another kind of value in the place of the stream.
    let _gone = pair.valkey.cli(&["del", "bolide:{bolide}:limits"]).succeeded();
    let _other = pair.valkey.cli(&["set", "bolide:{bolide}:limits", "x"]).succeeded();
    wait_until("a line in the log", || pair.nodes[0].error_log().contains("limits are not shared"));
    for node in [0, 1] {
        assert_eq!(pair.passed(node, "/a/hello.txt?a=9", 30), AT_ONCE);
    }
    let _gone = pair.valkey.cli(&["del", "bolide:{bolide}:limits"]).succeeded();
    pair.wait_heard(0, 1);
}

/// Any client may add an entry of 40 MB. Nodes ignore it, and miss nothing after it: neither a
/// connected node, nor one that connects then and finds it as the newest entry.
#[test]
fn a_report_that_is_too_large_is_passed() {
    let mut pair = Pair::start("");
    let script = "return server.call('xadd', 'bolide:{bolide}:limits', '*', 'counts', \
                  string.rep('x', 40000000))";
    let add = |pair: &Pair| drop(pair.valkey.cli(&["eval", script, "0"]).succeeded());
    add(&pair);
    pair.wait_heard(0, 1);
    for node in &pair.nodes {
        node.signal("TERM");
    }
    for node in &mut pair.nodes {
        let _ended = node.wait_exit();
    }
    add(&pair);
    for node in &mut pair.nodes {
        node.start_again();
    }
    pair.wait_heard(0, 1);
    pair.wait_heard(1, 0);
    let log = pair.nodes[0].error_log();
    // On a busy machine Valkey may be late with so much.
    let mut faults = log.lines().filter(|line| line.contains("limits are not shared"));
    assert!(faults.all(|line| line.ends_with("no answer in time")), "{log}");
}

#[test]
fn reports_are_sealed_where_there_is_a_key() {
    let keys = Home::new(BOLIDE);
    let key = write_key(keys.dir(), "key", 'a');
    let mut pair = Pair::start(&format!("secrets_key {key};"));
    assert_eq!(pair.passed(0, "/a/hello.txt?a=visitor", 30), AT_ONCE);
    pair.wait_heard(0, 1);
    assert!(pair.passed(1, "/a/hello.txt?a=visitor", 30) < AT_ONCE);
    let listed = pair.valkey.cli(&["xrange", "bolide:{bolide}:limits", "-", "+"]).text();
    assert!(listed.contains("bolideK1") && !listed.contains("visitor"), "{listed}");
    // A node without the key neither sends nor uses any report.
    let other = node(&pair.valkey, "three", "", &pair.app);
    pair.wait_shared(&other);
    assert_eq!(other.get("/a/hello.txt?a=visitor").status, 200);
    wait_until("a line in the log", || {
        pair.nodes[0].error_log().contains("a report of limits in Valkey is not used")
    });
}

#[test]
fn a_zone_is_shared_only_with_a_cluster() {
    let home = Home::new(BOLIDE);
    let message = |http: &str| {
        let conf = format!("events {{}} http {{\n{http}\n server {{ listen 127.0.0.1:1; }} }}");
        let path = home.write("l.conf", &conf);
        home.run(&["-t", "-c", path.to_str().unwrap()]).stderr
    };
    let alone = "is \"shared\", but there is no \"cluster\" block in ";
    for zone in [
        "limit_req_zone $arg_a zone=a:1m rate=1r/m shared;",
        "limit_conn_zone $arg_a zone=a:1m shared;",
    ] {
        let text = message(zone);
        assert!(
            text.contains(&format!("zone \"a\" {alone}")) && text.contains("l.conf:2"),
            "{text}"
        );
        let text = message(&format!("{zone} cluster unix:/none {{ }}"));
        assert!(!text.contains("emerg"), "{text}");
    }
    let text = message("limit_conn_zone $arg_a zone=a:1m common; cluster unix:/none { }");
    assert!(text.contains("invalid number of arguments in \"limit_conn_zone\""), "{text}");
}
