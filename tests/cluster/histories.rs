//! Random histories: nodes fetch, share and purge while Valkey and nodes are killed, stopped and
//! started, cut off from one another, and have their clocks set.
//!
//! No node serves what it has received a purge for, and no visitor gets a private page of
//! another one. `BOLIDE_CLUSTER_SEED=N` runs the history of one seed.

use std::collections::BTreeSet;

use bolide_testkit::server::Home;
use bolide_testkit::{TcpLink, TestApp, TestServer, Valkey, WallClock, Way, wait_until};

use super::{Keeps, conf};
use crate::BOLIDE;
use crate::explain::ask;

const PAGES: usize = 4;
const STEPS: usize = 60;
const VISITORS: usize = 2;
/// Seconds that a wall clock is away from the real one. Pages are fresh for an hour.
const CLOCKS: [i64; 9] = [-90 * 86_400, -86_400, -3_700, -30, 0, 30, 3_700, 86_400, 90 * 86_400];

/// What Valkey does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Up,
    Stopped,
    Dead,
}

/// A node, its clock and its way to Valkey.
struct Member {
    server: TestServer,
    clock: WallClock,
    link: TcpLink,
    is_paused: bool,
    /// Answers up to this one were purged as far as it knows for sure, by page.
    received: [usize; PAGES],
}

/// A cluster whose nodes have one application, which counts the fetches of each page.
struct History {
    chance: u64,
    valkey: Valkey,
    valkey_clock: WallClock,
    state: State,
    app: TestApp,
    nodes: Vec<Member>,
    seed: u64,
    /// Answers up to this one were purged, by page.
    purged: [usize; PAGES],
    /// Which answers each visitor got of the page that each has for itself.
    own: [BTreeSet<usize>; VISITORS],
    events: Vec<String>,
}

impl Member {
    fn start(valkey: &Valkey, app: &TestApp, number: usize, objects: &str) -> Self {
        let (clock, link) = (WallClock::default(), TcpLink::to(valkey.port()));
        let cluster = format!(
            "cluster valkey://127.0.0.1:{port} {{
                 node node-{number}; reply_timeout 300ms; {objects} }}",
            port = link.port()
        );
        // Keys have no port, which differs.
        let keyed = "page_cache auto; page_cache_key $request_uri;";
        let conf = conf(app, Keeps::OnDisk, &cluster).replace("page_cache auto;", keyed);
        let home = Home::new(BOLIDE).launched_by(&clock.words().each_ref().map(String::as_str));
        let server = TestServer::start(home, &conf);
        Self { server, clock, link, is_paused: false, received: [0; PAGES] }
    }

    fn pause(&mut self, is_paused: bool) {
        if self.is_paused != is_paused {
            self.server.signal(if is_paused { "STOP" } else { "CONT" });
            self.is_paused = is_paused;
        }
    }
}

impl History {
    /// Each tenth seed has eight nodes.
    fn new(seed: u64, objects: &str) -> Self {
        let (valkey_clock, app) = (WallClock::default(), TestApp::start());
        let valkey = Valkey::launched_by(&valkey_clock.words(), &[]);
        for page in 0..PAGES {
            let head = "X-LiteSpeed-Cache-Control: public,max-age=3600\nX-LiteSpeed-Tag: page-";
            app.say(&format!("/{page}"), &format!("{head}{page}"));
        }
        app.say("/own", "X-LiteSpeed-Cache-Control: private,max-age=3600\nX-LiteSpeed-Tag: own");
        let count = if seed.is_multiple_of(10) { 8 } else { 3 };
        let nodes =
            (0..count).map(|number| Member::start(&valkey, &app, number, objects)).collect();
        let (chance, state) = (seed << 8 | 1, State::Up);
        let (purged, own, events) = ([0; PAGES], Default::default(), Vec::new());
        Self { chance, valkey, valkey_clock, state, app, nodes, seed, purged, own, events }
    }

    fn chance(&mut self, below: usize) -> usize {
        // xorshift64*
        self.chance ^= self.chance >> 12;
        self.chance ^= self.chance << 25;
        self.chance ^= self.chance >> 27;
        (self.chance.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % below
    }

    /// Which fetch of a page a node serves.
    fn run(&self, node: usize, path: &str, fields: &str) -> usize {
        let server = &self.nodes[node].server;
        let reply = server.connect().get(path, &format!("{fields}Connection: close\r\n"));
        let text = reply.text();
        let run = text.trim().strip_prefix("run ").and_then(|run| run.parse().ok());
        run.unwrap_or_else(|| {
            panic!("seed {}: node {node}, {path}: {text}: {}", self.seed, server.error_log())
        })
    }

    fn fetch(&self, node: usize, page: usize) -> usize {
        let run = self.run(node, &format!("/{page}"), "");
        let (seed, events, log) = (self.seed, &self.events, self.nodes[node].server.error_log());
        let received = self.nodes[node].received[page];
        assert!(run > received, "seed {seed}: node {node} has {page} of {run}: {events:#?}\n{log}");
        run
    }

    /// A visitor asks for its own page.
    fn fetch_own(&mut self, node: usize, visitor: usize) {
        let cookie = format!("Cookie: PHPSESSID=0123456789abcdef012{visitor}\r\n");
        let run = self.run(node, "/own", &cookie);
        self.own[visitor].insert(run);
        let (seed, events) = (self.seed, &self.events);
        let is_shared = self.own.iter().filter(|runs| runs.contains(&run)).count() > 1;
        assert!(!is_shared, "seed {seed}: node {node} has {run} for both: {events:#?}");
    }

    fn purge(&mut self, node: usize, page: usize) {
        self.purged[page] = self.app.count(&format!("/{page}"));
        let text = format!("PURGE / HTTP/1.1\r\nHost: localhost\r\nCache-Tag: page-{page}\r\n");
        assert_eq!(self.nodes[node].server.connect().ask(&text).status, 200);
        self.nodes[node].received[page] = self.purged[page];
    }

    /// Whether the purges of a node are in the stream.
    fn is_sent(&self, node: usize) -> bool {
        let tag = ["cache", "purge", "--tag", "none", "--wait", "1"];
        self.state == State::Up && ask(&self.nodes[node].server, &tag).code == 0
    }

    /// Kills a node, unless its purges wait: they would end with it.
    fn kill(&mut self, node: usize) {
        if self.is_sent(node) {
            self.nodes[node].server.restart("KILL");
        }
    }

    fn set(&mut self, state: State) {
        match (self.state, state) {
            (State::Stopped, State::Up) => self.valkey.signal("CONT"),
            (State::Dead, State::Up) => self.valkey.start_again(),
            (State::Up, State::Stopped) => self.valkey.signal("STOP"),
            (State::Up, State::Dead) => self.valkey.kill(),
            _ => return,
        }
        self.state = state;
    }

    fn step(&mut self) {
        let (node, page) = (self.chance(self.nodes.len()), self.chance(PAGES));
        let (what, clock) = (self.chance(30), CLOCKS[self.chance(CLOCKS.len())]);
        self.events.push(format!("{what} node {node} page {page} clock {clock}"));
        if what < 19 && self.nodes[node].is_paused {
            // It would not answer.
            self.nodes[node].pause(false);
        }
        match what {
            0..=8 => {
                let _run = self.fetch(node, page);
            }
            9..=15 => self.purge(node, page),
            16..=17 => self.fetch_own(node, page % VISITORS),
            18 => self.kill(node),
            19 => self.set(State::Stopped),
            20 => self.set(State::Dead),
            21..=22 => self.set(State::Up),
            23 => self.nodes[node].clock.set(clock),
            24 => self.valkey_clock.set(clock),
            25 => self.nodes[node].pause(true),
            26 => self.nodes[node].link.set(Way::Cut),
            27 => self.nodes[node].link.set(Way::Silent),
            _ => self.nodes[node].link.set(Way::Open),
        }
    }

    /// All nodes have received all purges; nothing that was purged is left.
    fn check(&mut self) {
        self.events.push("the end".to_owned());
        self.set(State::Up);
        for node in &mut self.nodes {
            node.pause(false);
            node.link.set(Way::Open);
        }
        let count = self.nodes.len().to_string();
        let tag = ["cache", "purge", "--tag", "none", "--wait", &count];
        for node in &self.nodes {
            wait_until(&format!("seed {}: all nodes to have all", self.seed), || {
                ask(&node.server, &tag).code == 0
            });
        }
        self.nodes.iter_mut().for_each(|node| node.received = self.purged);
        for node in 0..self.nodes.len() {
            for page in 0..PAGES {
                let _run = self.fetch(node, page);
            }
            (0..VISITORS).for_each(|visitor| self.fetch_own(node, visitor));
        }
    }
}

/// Timeouts are those of Valkeys that hang for some steps.
const OBJECTS: &str = "objects public; objects_timeout 50ms; objects_lease_time 300ms;";

#[test]
fn no_node_serves_what_it_has_received_a_purge_for() {
    run("");
}

#[test]
fn no_node_serves_purged_objects_of_other_nodes() {
    run(OBJECTS);
}

fn run(objects: &str) {
    let one = std::env::var("BOLIDE_CLUSTER_SEED").ok().map(|text| text.parse().unwrap());
    for seed in one.map_or(1..=2, |seed: u64| seed..=seed) {
        let mut history = History::new(seed, objects);
        let last = format!("node-{}: ", history.nodes.len() - 1);
        for node in &history.nodes {
            wait_until("the node to be connected", || {
                ask(&node.server, &["cluster", "peers"]).text().contains(&last)
            });
        }
        (0..STEPS).for_each(|_| history.step());
        history.check();
    }
}

#[test]
fn the_clock_of_a_node_is_its_own() {
    let (valkey_clock, app) = (WallClock::default(), TestApp::start());
    let valkey = Valkey::launched_by(&valkey_clock.words(), &[]);
    let node = Member::start(&valkey, &app, 0, "");
    let year = || {
        let date = node.server.get("/").header("date").unwrap_or_default().to_owned();
        date.split(' ').nth(3).and_then(|year| year.parse::<i64>().ok()).expect("a year")
    };
    let (before, events) = (year(), valkey.cli(&["time"]).text());
    node.clock.set(800 * 86_400);
    valkey_clock.set(-800 * 86_400);
    wait_until("the node to see it", || year() >= before + 2);
    let seconds = |text: &str| text.lines().next().unwrap().parse::<i64>().unwrap();
    assert!(seconds(&valkey.cli(&["time"]).text()) < seconds(&events) - 700 * 86_400);
}
