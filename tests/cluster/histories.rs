//! Random histories: three nodes fetch, share and purge while Valkey and nodes are killed, stopped
//! and started. What was purged is served by no node that has heard of it.

use bolide_testkit::server::Home;
use bolide_testkit::{TestApp, TestServer, Valkey, wait_until};

use super::{Keeps, block, conf};
use crate::BOLIDE;
use crate::explain::ask;

const PAGES: usize = 4;
const STEPS: usize = 40;

/// What Valkey does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Up,
    Stopped,
    Dead,
}

/// A cluster whose nodes have one application, which counts the fetches of each page.
struct History {
    chance: u64,
    valkey: Valkey,
    state: State,
    app: TestApp,
    nodes: Vec<TestServer>,
    seed: u64,
    /// Answers up to this one were purged, by page.
    purged: [usize; PAGES],
    /// Answers up to this one were purged as far as a node knows for sure.
    heard: [[usize; PAGES]; 3],
    told: Vec<String>,
}

impl History {
    fn new(seed: u64, objects: &str) -> Self {
        let (valkey, app) = (Valkey::default(), TestApp::start());
        for page in 0..PAGES {
            let head = "X-LiteSpeed-Cache-Control: public,max-age=3600\nX-LiteSpeed-Tag: page-";
            app.say(&format!("/{page}"), &format!("{head}{page}"));
        }
        let nodes = ["one", "two", "three"].map(|name| {
            let cluster = block(&valkey, name, &format!("reply_timeout 300ms; {objects}"));
            let conf = conf(&app, Keeps::OnDisk, &cluster);
            // Keys have no port, which differs.
            let keyed = "page_cache auto; page_cache_key $request_uri;";
            TestServer::start(Home::new(BOLIDE), &conf.replace("page_cache auto;", keyed))
        });
        let (nodes, told, purged) = (nodes.into(), Vec::new(), [0; PAGES]);
        let (chance, state, heard) = (seed << 8 | 1, State::Up, [[0; PAGES]; 3]);
        Self { chance, valkey, state, app, nodes, seed, purged, heard, told }
    }

    fn chance(&mut self, below: usize) -> usize {
        // xorshift64*
        self.chance ^= self.chance >> 12;
        self.chance ^= self.chance << 25;
        self.chance ^= self.chance >> 27;
        (self.chance.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % below
    }

    /// Which fetch of a page a node serves.
    fn fetch(&self, node: usize, page: usize) -> usize {
        let reply = self.nodes[node].connect().get(&format!("/{page}"), "Connection: close\r\n");
        let text = reply.text();
        let run = text.trim().strip_prefix("run ").and_then(|run| run.parse().ok());
        let run = run.unwrap_or_else(|| {
            panic!("node {node}, page {page}: {text}: {}", self.nodes[node].error_log())
        });
        let (heard, seed, told) = (self.heard[node][page], self.seed, &self.told);
        assert!(run > heard, "seed {seed}: node {node} has {page} of {run}: {told:#?}");
        run
    }

    fn purge(&mut self, node: usize, page: usize) {
        self.purged[page] = self.app.count(&format!("/{page}"));
        let text = format!("PURGE / HTTP/1.1\r\nHost: localhost\r\nCache-Tag: page-{page}\r\n");
        assert_eq!(self.nodes[node].connect().ask(&text).status, 200);
        self.heard[node][page] = self.purged[page];
    }

    /// Kills a node, unless its purges wait: they would end with it.
    fn kill(&mut self, node: usize) {
        let tag = ["cache", "purge", "--tag", "none", "--wait", "1"];
        if self.state == State::Up && ask(&self.nodes[node], &tag).code == 0 {
            self.nodes[node].restart("KILL");
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
        let (node, page) = (self.chance(3), self.chance(PAGES));
        let what = self.chance(20);
        self.told.push(format!("{what} node {node} page {page}"));
        match what {
            0..=8 => {
                let _run = self.fetch(node, page);
            }
            9..=14 => self.purge(node, page),
            15 => self.kill(node),
            16 => self.set(State::Stopped),
            17 => self.set(State::Dead),
            _ => self.set(State::Up),
        }
    }

    /// All have heard of all; nothing that was purged is left.
    fn check(&mut self, seed: u64) {
        self.set(State::Up);
        for node in 0..3 {
            let tag = ["cache", "purge", "--tag", "none", "--wait", "3"];
            wait_until("all nodes to have all", || ask(&self.nodes[node], &tag).code == 0);
        }
        self.heard = [self.purged; 3];
        for node in 0..3 {
            for page in 0..PAGES {
                let (run, purged) = (self.fetch(node, page), self.purged[page]);
                let log = self.nodes[node].error_log();
                let told = &self.told;
                assert!(run > purged, "seed {seed}: node {node} has {page}: {told:#?}\n{log}");
            }
        }
    }
}

/// Timeouts are those of Valkeys that hang for some steps.
const OBJECTS: &str = "objects public; objects_timeout 50ms; objects_lease_time 300ms;";

#[test]
fn what_was_purged_is_served_by_no_node_that_has_heard_of_it() {
    run("");
}

#[test]
fn what_was_purged_is_served_by_no_node_that_takes_objects_of_others() {
    run(OBJECTS);
}

fn run(objects: &str) {
    let one = std::env::var("BOLIDE_CLUSTER_SEED").ok().and_then(|text| text.parse().ok());
    for seed in one.map_or(1..=2, |seed| seed..=seed) {
        let mut history = History::new(seed, objects);
        for node in 0..3 {
            wait_until("the node to be connected", || {
                ask(&history.nodes[node], &["cluster", "peers"]).text().contains("three: ")
            });
        }
        (0..STEPS).for_each(|_| history.step());
        history.check(seed);
    }
}
