//! The other directives of the page cache: the effect of each, and that the innermost block wins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bolide_testkit::h1::H1TestClient;
use bolide_testkit::origin::{TestUpstream, answer};
use bolide_testkit::server::LISTEN;
use bolide_testkit::{Proto, TestApp, TestServer, wait_until};

use crate::http;

/// A server with these directives in `http`, in the server and in its location `/in/`.
fn serve(app: &TestApp, block: &str, outer: &str, inner: &str) -> TestServer {
    let pass = format!(
        "fastcgi_param REQUEST_URI $request_uri; fastcgi_param REQUEST_METHOD $request_method;
         fastcgi_pass {};",
        app.address()
    );
    http(&format!(
        "{block} server {{ {LISTEN} page_cache on; {outer}
         location / {{ {pass} }} location /in/ {{ {inner} {pass} }} }}"
    ))
}

/// The bodies of two responses.
fn twice(server: &TestServer, path: &str, fields: &str) -> [String; 2] {
    [(); 2].map(|()| server.connect().get(path, fields).text())
}

fn runs(first: usize, second: usize) -> [String; 2] {
    [first, second].map(|run| format!("run {run}"))
}

#[test]
fn pages_are_looked_up_where_that_is_on() {
    let app = TestApp::start();
    let server = serve(&app, "page_cache_lookup off;", "", "page_cache_lookup on;");
    assert_eq!(twice(&server, "/", ""), runs(1, 2));
    assert_eq!(twice(&server, "/in/", ""), runs(1, 1));
    let server = serve(&app, "", "", "page_cache_lookup off;");
    assert_eq!(twice(&server, "/", ""), runs(3, 3));
    assert_eq!(twice(&server, "/in/", ""), runs(2, 3));
}

#[test]
fn requests_that_wait_for_a_fetch_that_fails_are_sent_at_once() {
    let (asked, fails, responds) =
        <(Arc<AtomicUsize>, Arc<AtomicBool>, Arc<AtomicBool>)>::default();
    let script = (asked.clone(), fails.clone(), responds.clone());
    let upstream = TestUpstream::scripted(move |peer| {
        let (asked, fails, responds) = &script;
        if peer.request().is_err() {
            return;
        }
        // The first one ends without a response, the others wait for one another.
        if asked.fetch_add(1, Ordering::Relaxed) == 0 {
            wait_until("the failure", || fails.load(Ordering::Relaxed));
            return;
        }
        wait_until("the responses", || responds.load(Ordering::Relaxed));
        let _ = peer.send(answer("Cache-Control: max-age=60", "late"));
    });
    let server = http(&format!(
        "server {{ {LISTEN} page_cache auto; location / {{ proxy_pass http://{}; }}
         location = /status {{ stub_status; }} }}",
        upstream.address()
    ));
    let client = |addr| std::thread::spawn(move || H1TestClient::connect(addr).get("/", "").status);
    let mut clients = vec![client(server.http())];
    wait_until("the first request", || asked.load(Ordering::Relaxed) == 1);
    clients.extend((0..4).map(|_| client(server.http())));
    wait_until("the others to wait", || server.get("/status").text().contains("Writing: 6"));
    fails.store(true, Ordering::Relaxed);
    wait_until("all requests", || asked.load(Ordering::Relaxed) == 5);
    responds.store(true, Ordering::Relaxed);
    let mut statuses: Vec<u16> = clients.into_iter().map(|it| it.join().unwrap()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 502]);
}

#[test]
fn no_page_is_fresh_for_longer_than_it_may_be() {
    let app = TestApp::start();
    for path in ["/", "/in/"] {
        app.say(path, "Cache-Control: max-age=600");
    }
    let outer = "page_cache_max_ttl 1s; page_cache_stale off;";
    let server = serve(&app, "", outer, "page_cache_max_ttl off;");
    assert_eq!(twice(&server, "/in/", ""), runs(1, 1));
    assert_eq!(server.get("/").text(), "run 1");
    wait_until("the page to be old", || server.get("/").text() != "run 1");
    assert_eq!(server.get("/in/").text(), "run 1");
}

#[test]
fn the_status_header_is_configurable() {
    let app = TestApp::start();
    for (outer, inner) in [("on", "lscache"), ("lscache", "off"), ("off", "on")] {
        let [block, location] =
            [outer, inner].map(|value| format!("page_cache_status_header {value};"));
        let server = serve(&app, &block, "", &location);
        for (path, value) in [("/", outer), ("/in/", inner)] {
            let _kept = server.get(path);
            let reply = server.get(path);
            let shown = [reply.header("x-cache"), reply.header("x-litespeed-cache")];
            let wanted = match value {
                "on" => [Some("HIT"), None],
                "lscache" => [None, Some("hit")],
                _ => [None, None],
            };
            assert_eq!(shown, wanted, "{path} {value}");
        }
    }
}

#[test]
fn litespeeds_directive_controls_whether_clients_may_request_a_fresh_page() {
    let app = TestApp::start();
    let fresh = "Cache-Control: no-cache\r\n";
    let server = serve(&app, "CacheIgnoreCacheControl Off;", "", "CacheIgnoreCacheControl On;");
    assert_eq!(twice(&server, "/", fresh), runs(1, 2));
    assert_eq!(twice(&server, "/in/", fresh), runs(1, 1));
    let server = serve(&app, "", "", "CacheIgnoreCacheControl Off;");
    assert_eq!(twice(&server, "/", fresh), runs(3, 3));
    assert_eq!(twice(&server, "/in/", fresh), runs(2, 3));
}

#[test]
fn pages_are_evicted_beyond_the_memory_limit() {
    const PAGES: usize = 20;
    let app = TestApp::start();
    let kept = |memory: &str| {
        let server = serve(&app, &format!("page_cache_memory {memory};"), "", "");
        let ask = |page| {
            let reply = server.get(&format!("/{page}"));
            assert_eq!(reply.body.len(), 100_000);
            reply.header("x-litespeed-cache") == Some("hit")
        };
        for page in 0..PAGES {
            assert!(!ask(page), "{page}");
        }
        // The last pages first, because a new fetch evicts others.
        (0..PAGES).rev().filter(|page| ask(*page)).count()
    };
    let body = vec![b'x'; 100_000];
    for page in 0..PAGES {
        app.plan(&format!("/{page}"), vec![bolide_testkit::AppSaid::head("").body(&body)]);
    }
    assert_eq!(kept("64m"), PAGES);
    let few = kept("1m");
    assert!((1..=10).contains(&few), "{few} pages of 100 kB are in 1 MiB");
}

/// Requests that wait for a fetch get the whole response, also if it is larger than the memory of
/// the cache, and its upstream faster than their clients.
#[test]
fn requests_that_wait_for_a_fetch_get_a_response_that_memory_cannot_hold() {
    const SIZE: usize = 24 << 20;
    const CLIENTS: usize = 3;
    let upstream = TestUpstream::start();
    let mut response = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=1000\r\n\
        Transfer-Encoding: chunked\r\n\r\n"
        .to_vec();
    for _ in 0..SIZE >> 16 {
        response.extend_from_slice(b"10000\r\n");
        response.resize(response.len() + (1 << 16), b'x');
        response.extend_from_slice(b"\r\n");
    }
    response.extend_from_slice(b"0\r\n\r\n");
    upstream.say("/large", response);
    upstream.hold("/large");
    let server = http(&format!(
        "page_cache_memory 1m; cache_status on; server {{ {LISTEN} page_cache auto;
             location = /status {{ page_cache off; stub_status; }}
             location / {{ proxy_pass http://{}; proxy_http_version 1.1; }} }}",
        upstream.address()
    ));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (curl, url) = (server.curl(Proto::H1), server.url(Proto::H1, "/large"));
            std::thread::spawn(move || curl.args(["--limit-rate", "10M"]).attempt(&url))
        })
        .collect();
    let writing = || -> Option<usize> {
        server.get("/status").text().split("Writing: ").nth(1)?.split(' ').next()?.parse().ok()
    };
    // The last one asks for the status.
    wait_until("all requests to wait", || writing() == Some(CLIENTS + 1));
    upstream.release();
    for client in clients {
        let reply = client.join().unwrap();
        assert_eq!((reply.exit, reply.status, reply.body.len()), (0, 200, SIZE));
    }
    assert_eq!(upstream.count("/large"), 1, "the requests waited for one fetch");
}
