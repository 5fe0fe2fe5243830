//! Leases of pages, and pages under keys of their own: no visitor waits for a page of another node
//! that this node cannot get.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bolide_testkit::origin::answer;
use bolide_testkit::server::{Home, TYPES, prelude};
use bolide_testkit::{H1TestClient, TestServer, TestUpstream, Valkey, wait_until};

use super::block;
use crate::explain::ask;
use crate::{BOLIDE, report};

const CONTROL: &str = "X-LiteSpeed-Cache-Control";
const SESSIONS: [&str; 2] = [
    "Cookie: PHPSESSID=aaaaaaaaaaaaaaaaaaaaaaaa\r\n",
    "Cookie: PHPSESSID=bbbbbbbbbbbbbbbbbbbbbbbb\r\n",
];
/// Nodes wait for each other for as long as a test lasts.
const SHARE: &str = "objects public; objects_timeout 20s; objects_lease_time 1h;";

/// An application which sends the head of its first response at once, and the rest of it after as
/// many requests as [`App::rest`] says.
#[derive(Clone, Default)]
struct App {
    asked: Arc<AtomicUsize>,
    rest: Arc<AtomicUsize>,
}

impl App {
    fn new(rest: usize) -> Self {
        Self { rest: Arc::new(rest.into()), ..Self::default() }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Acquire)
    }

    fn start(&self, head: &str, body: &str) -> TestUpstream {
        let (app, head, body) = (self.clone(), head.to_owned(), body.to_owned());
        TestUpstream::scripted(move |peer| {
            while peer.request().is_ok() {
                let number = app.asked.fetch_add(1, Ordering::AcqRel) + 1;
                let answer = answer(&head, &body.replace('@', &number.to_string()));
                let (begin, rest) = answer.split_at(answer.len() - 1);
                peer.send(begin).unwrap();
                wait_until("the requests for the rest", || {
                    number > 1 || app.asked() >= app.rest.load(Ordering::Acquire)
                });
                peer.send(rest).unwrap();
            }
        })
    }
}

/// Nodes whose keys are the same, because they listen on the same port.
struct Fleet {
    nodes: Vec<TestServer>,
    valkey: Valkey,
    port: u16,
    upstream: TestUpstream,
}

impl Fleet {
    fn start(upstream: TestUpstream) -> Self {
        let (valkey, homes) = (Valkey::default(), [0; 2].map(|_| Home::new(BOLIDE)));
        let port = homes[0].port(2);
        let mut fleet = Self { nodes: Vec::new(), valkey, port, upstream };
        for (node, home) in homes.into_iter().enumerate() {
            let cluster = block(&fleet.valkey, &format!("node-{node}"), SHARE);
            fleet.nodes.push(TestServer::start(home, &fleet.conf(node, &cluster)));
        }
        wait_until("the nodes to be connected", || {
            (0..2).all(|node| {
                let status = fleet.status(node);
                status.contains("\"caught_up\":true") && status.contains("\"answering\":true")
            })
        });
        fleet
    }

    fn conf(&self, node: usize, cluster: &str) -> String {
        let (prelude, app, at, port) = (prelude(2), self.upstream.address(), node + 2, self.port);
        format!(
            "{prelude}http {{{TYPES} {cluster} server {{
             listen 127.0.0.{at}:{port}; server_name shop.test; root /srv/shop;
             location / {{ proxy_pass http://{app}; page_cache auto;
             proxy_set_header Host $host; }} }} server {{ listen 127.0.0.1:@HTTP@; }} }}\n"
        )
    }

    fn status(&self, node: usize) -> String {
        ask(&self.nodes[node], &["cluster", "status", "--json"]).text()
    }

    /// The body that a visitor gets.
    fn page(&self, node: usize, path: &str, field: &str) -> String {
        let mut client = H1TestClient::connect(([127, 0, 0, node as u8 + 2], self.port).into());
        client.send(format!("GET {path} HTTP/1.1\r\nHost: shop.test\r\n{field}\r\n"));
        client.try_answer("GET").map_or_else(|why| why, |answer| answer.text())
    }

    /// The number of objects in Valkey.
    fn offered(&self) -> usize {
        let listed = self.valkey.cli(&["--scan", "--pattern", "bolide:{bolide}:object:*"]).text();
        listed.lines().count()
    }
}

/// The second visitor's request ends the response to the first one.
#[test]
fn no_visitor_waits_for_the_rest_of_a_page_that_other_nodes_do_not_get() {
    let languages = ["Accept-Language: de\r\n", "Accept-Language: fr\r\n"];
    let cookies = ["Cookie: lang=de\r\n", "Cookie: lang=fr\r\n"];
    let rows = [
        ("private,max-age=600", "X: y", SESSIONS),
        ("no-cache", "X: y", SESSIONS),
        ("public,max-age=600,no-vary", "X: y", SESSIONS),
        ("public,max-age=600", "No-Vary-Search: params", SESSIONS),
        ("public,max-age=600", "Set-Cookie: _lscache_vary=x; path=/", SESSIONS),
        ("public,max-age=600", "X-LiteSpeed-Vary: cookie=lang", cookies),
        ("public,max-age=600", "Vary: Accept-Language", languages),
    ];
    let mut failures = Vec::new();
    for (control, field, visitors) in rows {
        let app = App::new(2);
        let fleet = Fleet::start(app.start(&format!("{CONTROL}: {control}\n{field}"), "run @"));
        let bodies = std::thread::scope(|scope| {
            let first = scope.spawn(|| fleet.page(0, "/a", visitors[0]));
            wait_until("the first request", || app.asked() == 1);
            let second = scope.spawn(|| fleet.page(1, "/a", visitors[1]));
            [first, second].map(|page| page.join().unwrap())
        });
        if bodies != ["run 1", "run 2"] {
            failures.push(format!("{control}, {field}: {bodies:?}"));
        }
    }
    report(rows.len(), &failures);
}

/// The node with the lease stops sharing, or shares otherwise.
#[test]
fn a_reload_releases_the_leases_of_the_configuration_before() {
    for more in [None, Some("objects public; objects_timeout 19s;"), Some("")] {
        let app = App::new(2);
        let fleet = Fleet::start(app.start(&format!("{CONTROL}: public,max-age=600"), "run @"));
        let bodies = std::thread::scope(|scope| {
            let first = scope.spawn(|| fleet.page(0, "/a", ""));
            wait_until("the first request", || app.asked() == 1);
            let second = scope.spawn(|| fleet.page(1, "/a", ""));
            wait_until("the other node to wait", || fleet.status(1).contains("\"asked\":1,"));
            let cluster = more.map(|more| block(&fleet.valkey, "node-0", more));
            fleet.nodes[0].rewrite(&fleet.conf(0, &cluster.unwrap_or_default()));
            let _done = ask(&fleet.nodes[0], &["reload"]).succeeded();
            [first, second].map(|page| page.join().unwrap())
        });
        assert_eq!(bodies, ["run 1", "run 2"], "{more:?}");
    }
}

#[test]
fn a_variant_that_two_nodes_miss_at_once_is_fetched_once() {
    for field in ["Vary: Accept-Language", "X: y"] {
        let app = App::new(2);
        let head = format!("{CONTROL}: public,max-age=600\n{field}");
        let fleet = Fleet::start(app.start(&head, "run @"));
        std::thread::scope(|scope| {
            let pages: Vec<_> = (0..2)
                .map(|node| {
                    let fleet = &fleet;
                    let page =
                        scope.spawn(move || fleet.page(node, "/a", "Accept-Language: de\r\n"));
                    wait_until("the first request", || app.asked() == 1);
                    page
                })
                .collect();
            let wanted = if field.starts_with("Vary") { "\"asked\":2," } else { "\"asked\":1," };
            wait_until("the other node to wait", || fleet.status(1).contains(wanted));
            app.rest.store(0, Ordering::Release);
            pages.into_iter().for_each(|page| assert_eq!(page.join().unwrap(), "run 1", "{field}"));
        });
        assert_eq!(app.asked(), 1, "{field}");
    }
}

#[test]
fn what_no_other_node_looks_up_is_not_offered() {
    let inline = "<esi:inline name='/i' cache-control='public,max-age=60'>x</esi:inline>";
    for (control, body, count) in [
        ("public,max-age=600,no-vary", "run @", 0),
        ("public,max-age=600,esi=on", &*format!("run @{inline}"), 1),
        ("public,max-age=600", "run @", 1),
    ] {
        let head = format!("{CONTROL}: {control}\nContent-Type: text/html");
        let fleet = Fleet::start(App::default().start(&head, body));
        for _ in 0..2 {
            assert_eq!(fleet.page(0, "/a", ""), "run 1", "{control}: it is cached");
        }
        let offered = format!("\"offered\":{count},");
        wait_until("the offers", || fleet.status(0).contains(&offered));
        bolide_testkit::pause(100);
        assert_eq!(fleet.offered(), count, "{control}");
    }
}

#[test]
fn a_page_with_no_vary_search_is_shared_once_its_path_is_known_to_have_it() {
    let head = format!("{CONTROL}: public,max-age=600\nNo-Vary-Search: params=(\"x\")");
    let fleet = Fleet::start(App::default().start(&head, "run @"));
    assert_eq!(fleet.page(0, "/a?id=1&x=1", ""), "run 1");
    assert_eq!(fleet.page(0, "/a?id=2&x=2", ""), "run 2");
    wait_until("the offers", || fleet.status(0).contains("\"offered\":2,"));
    assert_eq!(fleet.page(1, "/a?id=1&x=3", ""), "run 3", "nothing is known of the path");
    assert_eq!(fleet.page(1, "/a?id=2&x=4", ""), "run 2");
}
