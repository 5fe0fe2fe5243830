//! Servers that share purges by a real Valkey: every purge reaches every node, whatever ends or
//! hangs meanwhile.

mod certificates;
mod connections;
mod histories;
mod hostile_valkey;
mod leases;
mod limits;
mod lost_purges;
mod objects;
mod purge_methods;
mod quic;
mod rings;
mod secrets;
mod simulated;

use bolide_testkit::server::{Home, TYPES, prelude};
use bolide_testkit::{TestApp, TestServer, Valkey, wait_until};

use crate::BOLIDE;
use crate::explain::ask;

const PAGE: &str = "X-LiteSpeed-Cache-Control: public,max-age=3600\nX-LiteSpeed-Tag: menu";
const ME: &str = "Cookie: PHPSESSID=0123456789abcdef0123\r\n";

/// What a node caches: in memory, or on disk as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    InMemory,
    OnDisk,
}

/// The configuration of a node; `cluster` is a whole block.
pub(crate) fn conf(app: &TestApp, keeps: Keeps, cluster: &str) -> String {
    let (prelude, address) = (prelude(2), app.address());
    let path = if keeps == Keeps::OnDisk { "page_cache_path @DIR@/cache;" } else { "" };
    format!(
        "{prelude}http {{{TYPES} {path} {cluster}
         server {{ listen 127.0.0.1:@HTTP@; root /srv/shop; location / {{
             fastcgi_param REQUEST_URI $request_uri; fastcgi_param REQUEST_METHOD $request_method;
             fastcgi_pass {address}; page_cache auto; }} }} }}\n"
    )
}

/// A block for this Valkey.
pub(crate) fn block(valkey: &Valkey, node: &str, more: &str) -> String {
    format!("cluster valkey://127.0.0.1:{} {{ node {node}; {more} }}", valkey.port())
}

/// A node that has an application of its own, so that its pages are its own.
pub(crate) struct Node {
    pub(crate) server: TestServer,
    pub(crate) app: TestApp,
}

impl Node {
    pub(crate) fn start(keeps: Keeps, cluster: &str) -> Self {
        let app = TestApp::start();
        let server = TestServer::start(Home::new(BOLIDE), &conf(&app, keeps, cluster));
        Self { server, app }
    }

    /// One that is connected.
    pub(crate) fn joined(valkey: &Valkey, name: &str, more: &str) -> Self {
        let node = Self::start(Keeps::InMemory, &block(valkey, name, more));
        node.wait_joined();
        node
    }

    pub(crate) fn wait_joined(&self) {
        wait_until("the node to be connected", || self.status().contains("\"caught_up\":true"));
    }

    pub(crate) fn status(&self) -> String {
        ask(&self.server, &["cluster", "status", "--json"]).text()
    }

    /// The body of a page.
    pub(crate) fn page(&self, path: &str) -> String {
        self.page_with(path, "")
    }

    pub(crate) fn page_with(&self, path: &str, fields: &str) -> String {
        let reply = self.server.connect().get(path, &format!("{fields}Connection: close\r\n"));
        reply.text()
    }

    /// Has a page cached; returns its body.
    pub(crate) fn fill(&self, path: &str, head: &str) -> String {
        self.app.say(path, head);
        let body = self.page(path);
        assert_eq!(self.page(path), body, "{path} is cached");
        body
    }

    /// Waits until the page is fetched again.
    pub(crate) fn wait_purged(&self, path: &str, before: &str) {
        wait_until(&format!("{path} to be purged"), || self.page(path) != before);
    }

    pub(crate) fn purge(&self, args: &[&str]) -> bolide_testkit::ToolRun {
        ask(&self.server, &[&["cache", "purge"], args].concat())
    }

    /// Purges, which succeeds.
    pub(crate) fn purged(&self, args: &[&str]) {
        let _printed = self.purge(args).succeeded();
    }

    fn reload(&self, conf: &str) {
        self.server.rewrite(conf);
        let _quiet = ask(&self.server, &["reload"]).succeeded();
    }

    pub(crate) fn log(&self) -> String {
        self.server.error_log()
    }
}

#[test]
fn a_purge_by_tag_reaches_the_other_node() {
    let valkey = Valkey::default();
    let (one, two) = (Node::joined(&valkey, "one", ""), Node::joined(&valkey, "two", ""));
    let before = two.fill("/a", PAGE);
    let other = two.fill("/b", "X-LiteSpeed-Cache-Control: public,max-age=3600");
    one.purged(&["--tag", "menu"]);
    two.wait_purged("/a", &before);
    assert_eq!(two.page("/b"), other, "what has another tag stays");
    // Those that come from the stream are not sent again.
    let sent = valkey.cli(&["xlen", "bolide:{bolide}:purges"]).text();
    bolide_testkit::pause(300);
    assert_eq!(valkey.cli(&["xlen", "bolide:{bolide}:purges"]).text(), sent);
}

#[test]
fn a_purge_waits_for_the_requested_number_of_nodes() {
    let valkey = Valkey::default();
    let nodes = ["one", "two", "three"].map(|name| Node::joined(&valkey, name, ""));
    let before: Vec<_> = nodes.iter().map(|node| node.fill("/a", PAGE)).collect();
    nodes[0].purged(&["--tag", "menu", "--wait", "3"]);
    for (node, before) in nodes.iter().zip(&before) {
        assert_ne!(node.page("/a"), *before, "every node has it when the command ends");
    }
    let output = nodes[1].purge(&["--tag", "menu", "--wait", "0"]);
    assert!(output.code != 0 && output.stderr.contains("\"0\" is no number of nodes"), "{output}");
    nodes[2].server.signal("STOP");
    let output = nodes[0].purge(&["--tag", "menu", "--wait", "3"]);
    nodes[2].server.signal("CONT");
    assert!(output.code != 0 && output.stderr.contains("2 of 3 nodes have it"), "{output}");
    assert!(output.stderr.contains("these have not: three"), "{output}");
}

#[test]
fn a_killed_node_carries_out_missed_purges_before_the_first_request() {
    let valkey = Valkey::default();
    let mut two = Node::start(Keeps::OnDisk, &block(&valkey, "two", ""));
    two.wait_joined();
    let one = Node::joined(&valkey, "one", "");
    let (before, kept) =
        (two.fill("/a", PAGE), two.fill("/b", "X-LiteSpeed-Cache-Control: public"));
    wait_until("the pages are files", || {
        let listed = ask(&two.server, &["cache", "list"]).text();
        listed.matches("and on disk").count() == 2
    });
    bolide_testkit::pause(1500);
    let pid = two.server.pid();
    two.server.signal("KILL");
    two.server.wait_exit();
    one.purged(&["--tag", "menu", "--wait", "1"]);
    two.server.start_again();
    assert_ne!(two.server.pid(), pid);
    assert_ne!(two.page("/a"), before, "purged while the node was away");
    assert_eq!(two.page("/b"), kept, "what was not purged is still there: {}", two.log());
}

#[test]
fn purges_without_valkey_reach_the_others_when_it_is_back() {
    let mut valkey = Valkey::default();
    let (one, two) = (Node::joined(&valkey, "one", ""), Node::joined(&valkey, "two", ""));
    let before = two.fill("/a", PAGE);
    let own = one.fill("/a", PAGE);
    valkey.kill();
    wait_until("the node to notice", || one.log().contains("this node goes on alone"));
    one.purged(&["--tag", "menu"]);
    assert_ne!(one.page("/a"), own, "here it is purged at once");
    let output = one.purge(&["--tag", "menu", "--wait", "2"]);
    assert!(output.stderr.contains("not connected"), "{output}");
    assert_eq!(two.page("/a"), before, "the other node goes on with what it has");
    valkey.start_again();
    two.wait_purged("/a", &before);
    for node in [&one, &two] {
        let log = node.log();
        assert_eq!(log.matches("this node goes on alone").count(), 1, "one line: {log}");
        assert!(!log.contains("pages are dropped: purges"), "nothing was lost: {log}");
    }
}

#[test]
fn a_valkey_that_hangs_delays_no_request() {
    let valkey = Valkey::default();
    let (one, two) =
        (Node::joined(&valkey, "one", "reply_timeout 10s;"), Node::joined(&valkey, "two", ""));
    let before = two.fill("/a", PAGE);
    let own = one.fill("/a", PAGE);
    valkey.signal("STOP");
    let start = std::time::Instant::now();
    one.purged(&["--tag", "menu"]);
    assert_ne!(one.page("/a"), own);
    assert!(start.elapsed().as_secs() < 8, "nothing waits for Valkey");
    wait_until("the node to notice", || one.log().contains("no answer in time"));
    valkey.signal("CONT");
    two.wait_purged("/a", &before);
}

#[test]
fn a_node_that_was_disconnected_for_too_long_drops_its_cache() {
    let valkey = Valkey::default();
    let cluster = block(&valkey, "two", "purge_keep_count 1000;");
    let mut two = Node::start(Keeps::OnDisk, &cluster);
    two.wait_joined();
    let one = Node::joined(&valkey, "one", "purge_keep_count 1000;");
    let before = two.fill("/b", "X-LiteSpeed-Cache-Control: public,max-age=3600");
    wait_until("the page is a file", || {
        ask(&two.server, &["cache", "list"]).text().contains("and on disk")
    });
    two.server.signal("QUIT");
    two.server.wait_exit();
    one.purged(&["--tag", "menu", "--wait", "1"]);
    // It is sent again and again: what was sent before it is no longer there in the end.
    let script = "local all = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
        for _ = 1, 999 do redis.call('XADD', KEYS[1], '*', unpack(all[1][2])) end
        return redis.call('XLEN', KEYS[1])";
    let _sent = valkey.cli(&["eval", script, "1", "bolide:{bolide}:purges"]).succeeded();
    wait_until("the other one to have all", || {
        let output = valkey.cli(&["xinfo", "stream", "bolide:{bolide}:purges"]).text();
        let last = output.lines().skip_while(|line| !line.contains("last-generated-id")).nth(1);
        let last = last.unwrap_or_default().trim().trim_matches('"').to_owned();
        !last.is_empty() && one.status().contains(&format!("\"position\":\"{last}\""))
    });
    one.purged(&["--tag", "menu", "--wait", "1"]);
    assert_eq!(valkey.cli(&["xlen", "bolide:{bolide}:purges"]).text().trim(), "1000");
    two.server.start_again();
    assert_ne!(two.page("/b"), before, "nobody knows whether it was purged");
    let log = two.log();
    assert!(log.contains("dropped: this node was away for longer than purges are kept"), "{log}");
}

#[test]
fn a_configuration_without_the_block_or_with_another_one_is_followed() {
    let valkey = Valkey::default();
    let (one, two) = (Node::joined(&valkey, "one", ""), Node::joined(&valkey, "two", ""));
    let before = two.fill("/a", PAGE);
    one.reload(&conf(&one.app, Keeps::InMemory, ""));
    one.purged(&["--tag", "menu"]);
    let output = ask(&one.server, &["cluster", "status"]);
    assert!(output.stderr.contains("there is no \"cluster\" block"), "{output}");
    bolide_testkit::pause(300);
    assert_eq!(two.page("/a"), before, "a node without a cluster purges alone");
    let again = block(&valkey, "one", "purge_queue 5;");
    one.reload(&conf(&one.app, Keeps::InMemory, &again));
    one.wait_joined();
    one.purged(&["--tag", "menu", "--wait", "2"]);
    assert_ne!(two.page("/a"), before);
    let other = block(&valkey, "one", "purge_queue 6;");
    one.reload(&conf(&one.app, Keeps::InMemory, &other));
    let before = two.page("/a");
    wait_until("the new thread to serve", || {
        one.purge(&["--tag", "menu", "--wait", "2"]).code == 0
    });
    assert_ne!(two.page("/a"), before);
}

/// However long a thread takes to end that waits for Valkey, the next one begins after it.
#[test]
fn a_cluster_block_removed_and_added_again_has_one_thread_of_each_kind() {
    let (home, valkey) = (Home::new(BOLIDE), Valkey::default());
    let key = secrets::write_key(home.dir(), "key", 'a');
    let with = block(&valkey, "one", &format!("secrets_key {key}; reply_timeout 3s;"));
    let one = Node::start(Keeps::InMemory, &with);
    one.wait_joined();
    let port = format!(":{:04X} 01 ", valkey.port());
    let connections = || {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let of = |line: &str| line.split_whitespace().nth(2).map(str::to_owned);
        let to_valkey = table.lines().filter(|line| {
            of(line).is_some_and(|to| to.ends_with(&port[..5])) && line.contains(&port)
        });
        to_valkey.count()
    };
    wait_until("the connections of both threads", || connections() == 4);
    valkey.signal("STOP");
    // Each is in the middle of a new connection.
    wait_until("both to notice", || {
        let log = one.log();
        log.contains("goes on alone") && log.contains("nothing but what is known here is used")
    });
    wait_until("both to try again", || connections() == 2);
    let most = (0..6).map(|round| {
        let cluster = if round % 2 == 0 { "" } else { &*with };
        one.reload(&conf(&one.app, Keeps::InMemory, cluster));
        bolide_testkit::pause(100);
        connections()
    });
    let most = most.max().unwrap();
    assert!(most <= 2, "{most} connections at once");
    valkey.signal("CONT");
    one.wait_joined();
}

#[test]
fn the_status_includes_secrets_and_limits() {
    let (home, valkey) = (Home::new(BOLIDE), Valkey::default());
    let key = secrets::write_key(home.dir(), "key", 'a');
    let zone = "limit_req_zone $arg_a zone=a:1m rate=1r/m shared;";
    let text = format!(
        "{}http {{ {zone} {} server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www;
         limit_req zone=a; }} }}",
        prelude(1),
        block(&valkey, "one", &format!("secrets_key {key};"))
    );
    // Nothing is cached: there is no thread for purges.
    let server = TestServer::start(Home::new(BOLIDE), &text);
    let json = || ask(&server, &["cluster", "status", "--json"]).text();
    wait_until("limits to be shared", || json().contains("\"limits\":{\"zones\":1,"));
    let _one = server.get("/hello.txt?a=x");
    wait_until("a report", || json().contains("\"limits\":{\"zones\":1,\"sent\":1,"));
    let output = json();
    assert!(
        output.starts_with("{\"schema\":1,\"namespace\":\"bolide\",\"node\":\"one\""),
        "{output}"
    );
    assert!(output.contains("\"purges\":false") && output.contains("\"ticket_keys\":"), "{output}");
    let text = ask(&server, &["cluster", "status"]).succeeded().text();
    for wanted in [
        "state      no purges are shared: nothing is cached\n",
        "secrets    keys of TLS tickets are ",
        "limits     1 zone, 1 report sent, 0 heard, 0 not used\n",
        "of these   connected to 127.0.0.1:",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

#[test]
fn the_cluster_status_is_printed_as_text_and_json() {
    let valkey = Valkey::default();
    let (one, two) = (Node::joined(&valkey, "one", ""), Node::joined(&valkey, "two", ""));
    one.purged(&["--tag", "menu", "--wait", "2"]);
    let status = ask(&two.server, &["cluster", "status"]).succeeded().text();
    assert!(status.contains("cluster    bolide, node two, 127.0.0.1:"), "{status}");
    assert!(status.contains("state      connected to 127.0.0.1:"), "{status}");
    assert!(status.contains("received   1 purge\n"), "{status}");
    assert!(one.status().contains("\"sent\":1,\"waiting\":0"), "{}", one.status());
    let peers = ask(&one.server, &["cluster", "peers"]).succeeded().text();
    assert!(peers.contains("one: this node, at ") && peers.contains("two: up to date"), "{peers}");
    let json = ask(&one.server, &["cluster", "peers", "--json"]).succeeded().text();
    assert!(json.contains("\"name\":\"two\",\"state\":\"up to date\""), "{json}");
    let purges = ask(&two.server, &["cluster", "purges"]).succeeded().text();
    assert!(purges.contains(" one: tag menu (page:"), "{purges}");
    let json = ask(&two.server, &["cluster", "purges", "--json", "--limit", "1"]).succeeded();
    assert!(json.text().contains("\"node\":\"one\",\"purges\":[\"tag menu"), "{json}");
    let metrics = ask(&two.server, &["metrics"]).succeeded().text();
    for line in [
        "bolide_cluster_connected 1\n",
        "bolide_cluster_purges_total{direction=\"received\"} 1\n",
        "bolide_cluster_purges_waiting 0\n",
        "bolide_cluster_losses_total 1\n",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}
