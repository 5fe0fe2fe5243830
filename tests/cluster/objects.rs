//! Objects that nodes share: a page is fetched once for all of them, and what was purged stays so.

use bolide_testkit::server::Home;
use bolide_testkit::{AppSaid, TestApp, TestServer, Valkey, wait_until};

use super::{Keeps, ME, PAGE, block, conf};
use crate::BOLIDE;
use crate::explain::ask;

/// Timings decide nothing here: the machine may be slow.
pub(super) const SHARE: &str = "objects public; objects_timeout 20s;";
const PUBLIC: &str = "X-LiteSpeed-Cache-Control: public,max-age=3600";

/// What is done to the record of a key.
type Change<'a> = &'a dyn Fn(&str);

/// Nodes with one application and one Valkey.
pub(super) struct Fleet {
    pub(super) valkey: Valkey,
    pub(super) app: TestApp,
    pub(super) nodes: Vec<TestServer>,
}

impl Fleet {
    pub(super) fn start(count: usize, more: &str) -> Self {
        let (valkey, app) = (Valkey::default(), TestApp::start());
        let mut fleet = Self { valkey, app, nodes: Vec::new() };
        (0..count).for_each(|_| fleet.add(more));
        fleet
    }

    /// One more node, which is connected. Keys have no port, which differs.
    fn add(&mut self, more: &str) {
        let name = format!("node-{}", self.nodes.len());
        let conf = conf(&self.app, Keeps::InMemory, &block(&self.valkey, &name, more));
        let page = "page_cache auto; page_cache_key $request_uri; page_cache_respect_request on;";
        let conf = conf.replace("page_cache auto;", page);
        self.nodes.push(TestServer::start(Home::new(BOLIDE), &conf));
        let node = self.nodes.len() - 1;
        wait_until("the node to be connected", || {
            let status = self.status(node);
            status.contains("\"caught_up\":true") && status.contains("\"answering\":true")
        });
    }

    pub(super) fn status(&self, node: usize) -> String {
        ask(&self.nodes[node], &["cluster", "status", "--json"]).text()
    }

    pub(super) fn page(&self, node: usize, path: &str) -> String {
        self.page_with(node, path, "")
    }

    fn page_with(&self, node: usize, path: &str, fields: &str) -> String {
        let reply = self.nodes[node].connect().get(path, &format!("{fields}Connection: close\r\n"));
        assert_eq!(reply.status, 200, "{}", self.nodes[node].error_log());
        reply.text()
    }

    fn purge(&self, node: usize, args: &[&str]) {
        let wait = self.nodes.len().to_string();
        let words = [&["cache", "purge"], args, &["--wait", &wait]].concat();
        let _printed = ask(&self.nodes[node], &words).succeeded();
    }

    /// Keys of objects in Valkey.
    fn keys(&self) -> Vec<String> {
        let listed = self.valkey.cli(&["--scan", "--pattern", "bolide:{bolide}:object:*"]).text();
        listed.lines().map(str::to_owned).collect()
    }

    /// Has a node fetch a page and offer it; its key in Valkey.
    pub(super) fn fill(&self, node: usize, path: &str, head: &str) -> String {
        self.app.say(path, head);
        let before = self.keys();
        let _body = self.page(node, path);
        let mut new = Vec::new();
        wait_until("it to be in Valkey", || {
            new = self.keys().into_iter().filter(|key| !before.contains(key)).collect();
            !new.is_empty()
        });
        new.remove(0)
    }
}

#[test]
fn nodes_that_miss_a_page_at_once_fetch_it_once() {
    let fleet = Fleet::start(4, SHARE);
    fleet.app.say("/a", PAGE);
    fleet.app.hold("/a");
    let bodies: Vec<_> = std::thread::scope(|scope| {
        let asks: Vec<_> = (0..4)
            .map(|node| {
                scope.spawn({
                    let fleet = &fleet;
                    move || fleet.page(node, "/a")
                })
            })
            .collect();
        wait_until("all to have asked", || {
            (0..4).all(|node| fleet.status(node).contains("\"asked\":1"))
        });
        wait_until("one to fetch", || fleet.app.count("/a") == 1);
        fleet.app.release();
        asks.into_iter().map(|ask| ask.join().unwrap()).collect()
    });
    assert_eq!(bodies, ["run 1"; 4]);
    assert_eq!(fleet.app.count("/a"), 1);
    let taken = (0..4).filter(|node| fleet.status(*node).contains("\"taken\":1")).count();
    assert_eq!(taken, 3);
    // What is there is not asked for.
    (0..4).for_each(|node| assert_eq!(fleet.page(node, "/a"), "run 1"));
    assert!((0..4).all(|node| fleet.status(node).contains("\"asked\":1")));
}

#[test]
fn a_new_node_takes_objects_from_valkey() {
    let mut fleet = Fleet::start(1, SHARE);
    let _key = fleet.fill(0, "/a", PAGE);
    // It reads the purges that are kept, and judges by them.
    fleet.purge(0, &["--tag", "other"]);
    let _key = fleet.fill(0, "/b", &format!("{PUBLIC}\nX-LiteSpeed-Tag: other"));
    fleet.purge(0, &["--tag", "other"]);
    fleet.add(SHARE);
    assert_eq!(fleet.page(1, "/a"), "run 1", "{}", fleet.status(1));
    assert_eq!(fleet.page(1, "/b"), "run 2", "it was purged before the node came");
    // After a restart, too.
    fleet.nodes[1].restart("QUIT");
    wait_until("the node to be connected", || fleet.status(1).contains("\"answering\":true"));
    wait_until("it to be caught up", || fleet.status(1).contains("\"caught_up\":true"));
    assert_eq!(
        (fleet.page(1, "/a"), fleet.page(1, "/b")),
        ("run 1".to_owned(), "run 2".to_owned())
    );
    assert_eq!((fleet.app.count("/a"), fleet.app.count("/b")), (1, 2));
}

#[test]
fn eight_nodes_fetch_each_page_once_and_a_ninth_fetches_none() {
    const PAGES: usize = 12;
    let mut fleet = Fleet::start(8, SHARE);
    let path = |page: usize| format!("/{page}");
    (0..PAGES).for_each(|page| fleet.app.say(&path(page), PAGE));
    for page in 0..PAGES {
        for node in 0..8 {
            assert_eq!(fleet.page((page + node) % 8, &path(page)), "run 1");
        }
    }
    fleet.add(SHARE);
    (0..PAGES).for_each(|page| assert_eq!(fleet.page(8, &path(page)), "run 1"));
    assert!((0..PAGES).all(|page| fleet.app.count(&path(page)) == 1));
    // After a purge of all, again.
    fleet.purge(3, &["--all"]);
    for page in 0..PAGES {
        (0..9).for_each(|node| assert_eq!(fleet.page(node, &path(page)), "run 2"));
        assert_eq!(fleet.app.count(&path(page)), 2);
    }
}

#[test]
fn no_way_to_purge_is_undone_by_an_object_of_another_node() {
    let fleet = Fleet::start(3, SHARE);
    for (number, args) in
        [&["--tag", "menu"][..], &["--tag", "me*"], &["--prefix", "/pa"], &["--all"]]
            .iter()
            .enumerate()
    {
        let path = format!("/page-{number}");
        let _key = fleet.fill(0, &path, PAGE);
        assert_eq!(fleet.page(1, &path), "run 1", "it is shared");
        // One that has the page, and one that has it not.
        fleet.purge(number % 2 + 1, args);
        for node in [2, 1, 0] {
            assert_eq!(fleet.page(node, &path), "run 2", "{args:?}, node {node}");
        }
        assert_eq!(fleet.app.count(&path), 2);
    }
}

#[test]
fn no_node_takes_a_fill_that_began_before_a_purge() {
    let fleet = Fleet::start(2, SHARE);
    for (path, args) in [("/a", &["--tag", "menu"]), ("/b", &["--tag", "other"])] {
        fleet.app.say(path, PAGE);
        fleet.app.hold(path);
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| fleet.page(0, path));
            wait_until("the fill to begin", || fleet.app.count(path) == 1);
            fleet.purge(1, args);
            fleet.app.release();
            assert_eq!(slow.join().unwrap(), "run 1");
        });
        let wanted = if args[1] == "menu" { "run 2" } else { "run 1" };
        assert_eq!(fleet.page(1, path), wanted, "{path}: {}", fleet.status(1));
    }
}

#[test]
fn variants_are_shared_each() {
    let fleet = Fleet::start(2, SHARE);
    fleet.app.say("/a", &format!("{PAGE}\nVary: Accept-Language"));
    let page =
        |node, language| fleet.page_with(node, "/a", &format!("Accept-Language: {language}\r\n"));
    assert_eq!((page(0, "de"), page(0, "en")), ("run 1".to_owned(), "run 2".to_owned()));
    wait_until("they are in Valkey", || fleet.keys().len() == 3);
    assert_eq!((page(1, "en"), page(1, "de")), ("run 2".to_owned(), "run 1".to_owned()));
    assert_eq!(page(1, "fr"), "run 3");
    assert_eq!(fleet.app.count("/a"), 3);
}

#[test]
fn private_and_large_pages_stay_where_they_are() {
    let fleet = Fleet::start(2, "objects public; objects_timeout 20s; objects_max_size 10k;");
    fleet.app.say("/me", "X-LiteSpeed-Cache-Control: private,max-age=3600");
    assert_eq!(fleet.page_with(0, "/me", ME), "run 1");
    assert_eq!(fleet.page_with(0, "/me", ME), "run 1", "it is cached");
    let large = |letter: u8| AppSaid::head(PUBLIC).body(&vec![letter; 10_241]);
    fleet.app.plan("/large", vec![large(b'1'), large(b'2')]);
    assert!(fleet.page(0, "/large").starts_with('1') && fleet.page(0, "/large").starts_with('1'));
    assert!(fleet.page(1, "/large").starts_with('2'));
    assert_eq!(fleet.page_with(1, "/me", ME), "run 2");
    assert_eq!(fleet.keys(), Vec::<String>::new());
}

/// A page is shared once it was missed often enough, whichever nodes missed it.
#[test]
fn a_page_is_shared_from_its_third_miss_on() {
    let fleet = Fleet::start(4, &format!("{SHARE} objects_min_uses 3;"));
    fleet.app.say("/often", PAGE);
    fleet.app.say("/once", PAGE);
    assert_eq!(fleet.page(0, "/once"), "run 1");
    for node in 0..2 {
        let body = format!("run {}", node + 1);
        assert_eq!(fleet.page(node, "/often"), body);
        assert_eq!(fleet.page(node, "/often"), body, "it is cached, and a hit is no miss");
        let status = fleet.status(node);
        assert!(status.contains("\"offered\":0"), "{status}");
        assert_eq!(fleet.keys(), Vec::<String>::new());
    }
    assert_eq!(fleet.page(2, "/often"), "run 3");
    wait_until("it to be in Valkey", || fleet.keys().len() == 1);
    assert_eq!(fleet.page(3, "/often"), "run 3", "it is taken");
    assert_eq!((fleet.app.count("/often"), fleet.app.count("/once")), (3, 1));
    // What was purged is popular all the same.
    fleet.purge(0, &["--tag", "menu"]);
    (0..4).for_each(|node| assert_eq!(fleet.page(node, "/often"), "run 4"));
    assert_eq!(fleet.page(1, "/once"), "run 2");
    // A count that is none begins again, as does one that is over.
    let listed = fleet.valkey.cli(&["--scan", "--pattern", "bolide:{bolide}:uses:*"]).text();
    let counts: Vec<_> = listed.lines().collect();
    assert_eq!(counts.len(), 2, "{listed}");
    for (count, key) in counts.iter().enumerate() {
        let left: u64 = fleet.valkey.cli(&["pttl", key]).text().trim().parse().unwrap();
        assert!(left > 0, "it has an end");
        let _gone = fleet.valkey.cli(&["del", key]).succeeded();
        let spoil: [&[&str]; 2] = [&["set", key, "x"], &["rpush", key, "x"]];
        let _odd = fleet.valkey.cli(spoil[count]).succeeded();
    }
    fleet.purge(0, &["--tag", "menu"]);
    for path in ["/often", "/once"] {
        let before = fleet.app.count(path);
        (0..4).for_each(|node| drop(fleet.page(node, path)));
        assert_eq!(fleet.app.count(path), before + 3, "{path} is shared from its third miss on");
    }
}

#[test]
fn a_page_that_is_not_storable_delays_no_request() {
    let fleet = Fleet::start(3, "objects public; objects_timeout 20s; objects_lease_time 1h;");
    fleet.app.say("/a", "X-LiteSpeed-Cache-Control: no-cache");
    fleet.app.hold("/a");
    std::thread::scope(|scope| {
        let fleet = &fleet;
        let asks: Vec<_> = (0..3).map(|node| scope.spawn(move || fleet.page(node, "/a"))).collect();
        wait_until("one to fetch", || fleet.app.count("/a") == 1);
        fleet.app.release();
        asks.into_iter().for_each(|ask| assert!(ask.join().unwrap().starts_with("run ")));
    });
    assert_eq!(fleet.app.count("/a"), 3);
}

#[test]
fn a_node_that_dies_with_the_lease_holds_others_up_for_its_time_only() {
    let fleet = Fleet::start(2, "objects public; objects_timeout 20s; objects_lease_time 1s;");
    fleet.app.say("/a", PAGE);
    fleet.app.hold("/a");
    let mut first = fleet.nodes[0].connect();
    first.send(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_until("the fill to begin", || fleet.app.count("/a") == 1);
    fleet.nodes[0].signal("KILL");
    std::thread::scope(|scope| {
        let second = scope.spawn(|| fleet.page(1, "/a"));
        wait_until("the other one to fetch", || fleet.app.count("/a") == 2);
        fleet.app.release();
        assert_eq!(second.join().unwrap(), "run 2");
    });
}

/// What is left of a lease is as long as Valkey's clock was set back, and longer than leases are.
#[test]
fn a_lease_from_before_valkeys_clock_was_set_back_delays_no_request() {
    let fleet = Fleet::start(2, "objects public; objects_timeout 20s; objects_lease_time 1h;");
    fleet.app.say("/a", PAGE);
    fleet.app.hold("/a");
    let mut first = fleet.nodes[0].connect();
    first.send(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_until("the fill to begin", || fleet.app.count("/a") == 1);
    fleet.nodes[0].signal("KILL");
    let lease = fleet.valkey.cli(&["--scan", "--pattern", "bolide:{bolide}:lease:*"]).text();
    let _ = fleet.valkey.cli(&["pexpire", lease.trim(), "7200000"]);
    std::thread::scope(|scope| {
        let second = scope.spawn(|| fleet.page(1, "/a"));
        wait_until("the other one to fetch", || fleet.app.count("/a") == 2);
        fleet.app.release();
        assert_eq!(second.join().unwrap(), "run 2");
    });
}

#[test]
fn a_valkey_that_hangs_costs_a_few_misses_their_wait_and_then_nothing() {
    let fleet = Fleet::start(2, "objects public; objects_timeout 30ms; reply_timeout 1m;");
    fleet.valkey.signal("STOP");
    for number in 0..20 {
        let path = format!("/{number}");
        fleet.app.say(&path, PAGE);
        assert_eq!(fleet.page(0, &path), "run 1");
        assert_eq!(fleet.page(0, &path), "run 1", "it is cached");
    }
    let status = fleet.status(0);
    assert!(status.contains("\"answering\":false"), "{status}");
    assert!(status.contains("\"asked\":3,") && status.contains("\"late\":3"), "{status}");
    let log = fleet.nodes[0].error_log();
    assert_eq!(log.matches("objects are not shared").count(), 1, "one line a minute: {log}");
    fleet.valkey.signal("CONT");
    wait_until("it is asked again", || fleet.status(0).contains("\"answering\":true"));
    wait_until("objects are shared again", || {
        let path = format!("/again-{}", fleet.app.count("/probe"));
        fleet.app.say(&path, PAGE);
        let _bodies = (fleet.page(0, "/probe"), fleet.page(0, &path));
        bolide_testkit::pause(100);
        fleet.page(1, &path) == "run 1" && fleet.app.count(&path) == 1
    });
}

#[test]
fn a_valkey_that_hangs_during_a_wait_for_another_node_delays_no_request() {
    let more = "objects public; objects_timeout 100ms; objects_lease_time 1h; reply_timeout 1m;";
    let fleet = Fleet::start(2, more);
    fleet.app.say("/a", PAGE);
    fleet.app.hold("/a");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| fleet.page(0, "/a"));
        wait_until("the fill to begin", || fleet.app.count("/a") == 1);
        let second = scope.spawn(|| fleet.page(1, "/a"));
        wait_until("the other one to ask", || fleet.status(1).contains("\"asked\":1,"));
        fleet.valkey.signal("STOP");
        wait_until("it to go on without", || fleet.app.count("/a") == 2);
        fleet.app.release();
        assert!(first.join().unwrap().starts_with("run "));
        assert!(second.join().unwrap().starts_with("run "));
    });
    fleet.valkey.signal("CONT");
}

const ANEW: &str = "Cache-Control: no-cache\r\n";

#[test]
fn no_cache_and_authorized_requests_do_not_wait_for_other_nodes() {
    let fleet = Fleet::start(2, "objects public; objects_timeout 20s; objects_lease_time 1h;");
    let _key = fleet.fill(0, "/a", PAGE);
    for (number, fields) in
        ["Authorization: Basic YTpi\r\n", ANEW, "Cache-Control: max-age=0\r\n"].iter().enumerate()
    {
        let path = format!("/{number}");
        fleet.app.say(&path, PAGE);
        let _body = fleet.page_with(1, &path, fields);
        assert_eq!(fleet.app.count(&path), 1);
    }
    let status = fleet.status(1);
    assert!(status.contains("\"asked\":0,"), "{status}");
    assert_eq!(fleet.page(1, "/a"), "run 1", "it is shared with others");
}

#[test]
fn foreign_records_are_misses() {
    let fleet = Fleet::start(2, SHARE);
    let other = fleet.fill(0, "/other", PAGE);
    let changes: [(&str, Change<'_>); 8] = [
        ("empty", &|key| drop(fleet.valkey.cli(&["set", key, ""]).succeeded())),
        ("rubbish", &|key| drop(fleet.valkey.cli(&["set", key, "rubbish"]).succeeded())),
        ("of another page", &|key| {
            drop(fleet.valkey.cli(&["copy", &other, key, "replace"]).succeeded());
        }),
        ("truncated", &|key| {
            let script = "local v = redis.call('get', KEYS[1])
                return redis.call('set', KEYS[1], string.sub(v, 1, #v - 1))";
            drop(fleet.valkey.cli(&["eval", script, "1", key]).succeeded());
        }),
        ("of another version", &|key| {
            drop(fleet.valkey.cli(&["setrange", key, "7", "1"]).succeeded());
        }),
        ("damaged", &|key| drop(fleet.valkey.cli(&["setrange", key, "150", "zzz"]).succeeded())),
        ("a list", &|key| {
            let _gone = fleet.valkey.cli(&["del", key]).succeeded();
            drop(fleet.valkey.cli(&["rpush", key, "a", "b"]).succeeded());
        }),
        ("huge", &|key| drop(fleet.valkey.cli(&["setrange", key, "60000000", "x"]).succeeded())),
    ];
    for (number, (name, change)) in changes.iter().enumerate() {
        let path = format!("/{number}");
        let key = fleet.fill(0, &path, PAGE);
        change(&key);
        assert_eq!(fleet.page(1, &path), "run 2", "{name}");
        assert_eq!(fleet.page(1, &path), "run 2", "{name}: it is cached");
    }
    let status = fleet.status(1);
    assert!(status.contains("\"answering\":true") && status.contains("\"taken\":0"), "{status}");
}

/// Wherever in a record a byte is another one, in its place among purges, its head or its body.
#[test]
fn a_page_whose_record_has_another_byte_anywhere_is_fetched_from_the_origin() {
    const PARTS: usize = 32;
    let fleet = Fleet::start(2, SHARE);
    for part in 0..PARTS {
        let path = format!("/{part}");
        let key = fleet.fill(0, &path, PAGE);
        let script = format!(
            "local it = redis.call('get', KEYS[1])
             local at = math.floor((#it - 1) * {part} / {last})
             local other = string.char((string.byte(it, at + 1) + 1) % 256)
             return redis.call('setrange', KEYS[1], at, other)",
            last = PARTS - 1
        );
        let _changed = fleet.valkey.cli(&["eval", &script, "1", &key]).succeeded();
        assert_eq!(fleet.page(1, &path), "run 2", "part {part} of {PARTS}");
        assert_eq!(fleet.app.count(&path), 2);
    }
    let status = fleet.status(1);
    assert!(status.contains("\"taken\":0"), "{status}");
    // What is fetched takes the place of the damaged record.
    wait_until("the other record", || fleet.status(1).contains(&format!("\"offered\":{PARTS}")));
}

#[test]
fn a_valkey_that_refuses_scripts_or_is_full_is_logged_once_a_minute() {
    let valkey = Valkey::default();
    let rules = ["acl", "setuser", "bolide", "on", ">secret", "~bolide:*", "+exists", "+xinfo"];
    let more = ["+xread", "+xrange", "+xrevrange", "+xadd", "+xtrim", "+hget", "+hset"];
    let rest = ["+hgetall", "+hdel", "+time"];
    let _made = valkey.cli(&[&rules[..], &more[..], &rest[..]].concat()).succeeded();
    let app = TestApp::start();
    let cluster = block(&valkey, "one", &format!("user bolide; password secret; {SHARE}"));
    let node = TestServer::start(Home::new(BOLIDE), &conf(&app, Keeps::InMemory, &cluster));
    let status = || ask(&node, &["cluster", "status", "--json"]).text();
    wait_until("the node to be connected", || status().contains("\"answering\":true"));
    for number in 0..10 {
        let path = format!("/{number}");
        app.say(&path, PAGE);
        let get = || node.connect().get(&path, "Connection: close\r\n").text();
        assert_eq!((get(), get()), ("run 1".to_owned(), "run 1".to_owned()));
    }
    let log = node.error_log();
    assert_eq!(log.matches("objects are not shared").count(), 1, "{log}");
    assert!(status().contains("\"connected\":\"127.0.0.1"), "purges go on: {}", status());
}
