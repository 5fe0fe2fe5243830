//! A purge of a URL reaches its pages in whichever way it is said, and whatever location, port or
//! key lies between: an older page is never served again.

use bolide_testkit::app::AppSaid;
use bolide_testkit::origin::{TestUpstream, answer, answer_of};
use bolide_testkit::server::{Home, LISTEN, TYPES, prelude};
use bolide_testkit::{Response, TestApp, TestServer, wait_until};

use crate::explain::ask;
use crate::{BOLIDE, http};

/// The `fastcgi_param` lines that Bolide ships.
const PARAMS: &str = concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/fastcgi.conf;");
const PAGE: &str = "Cache-Control: max-age=3600";
const ME: &str = "Cookie: cur=eur; PHPSESSID=0123456789abcdef0123\r\n";

fn body(server: &TestServer, path: &str, fields: &str) -> String {
    server.connect().get(path, fields).text()
}

fn body_at(server: &TestServer, port: usize, path: &str) -> String {
    let mut client = bolide_testkit::H1TestClient::connect(server.addr(port));
    client.get(path, "").text()
}

fn send(server: &TestServer, method: &str, path: &str, fields: &str) -> Response {
    let text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}");
    server.connect().ask(&text)
}

fn order(server: &TestServer, args: &[&str]) -> String {
    ask(server, &[&["cache", "purge"], args].concat()).succeeded().text()
}

fn prefix(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}

/// Purges `path` in one way.
fn purge(server: &TestServer, app: &TestApp, way: &str, path: &str) {
    let url = format!("http://localhost:{}{path}", server.home().port(0));
    let reply = match way {
        "PURGE" | "BAN" | "REFRESH" => send(server, way, path, ""),
        "PUT" => {
            app.say(path, "Status: 204");
            send(server, "PUT", path, "Content-Length: 0\r\n")
        }
        "field" => {
            app.say("/do", &format!("X-LiteSpeed-Purge: {path}"));
            send(server, "GET", "/do", "")
        }
        "Location" => {
            app.say("/form", &format!("Status: 303\nLocation: {path}"));
            send(server, "POST", "/form", "Content-Length: 0\r\n")
        }
        "--url" => return drop(order(server, &["--url", &url])),
        "--prefix" => return drop(order(server, &["--prefix", prefix(&url)])),
        "--prefix of a path" => return drop(order(server, &["--prefix", prefix(path)])),
        other => panic!("no way: {other}"),
    };
    assert!(reply.status < 400, "{way} {path}: {}", reply.status);
}

/// The page is a new one; after a `REFRESH`, which makes it stale, as soon as it was revalidated.
fn assert_new(server: &TestServer, way: &str, path: &str) {
    let is_new = || body(server, path, ME) == "new";
    match way {
        "REFRESH" => wait_until("a new page", is_new),
        _ => assert!(is_new(), "{path} is an old page after {way}"),
    }
}

const WAYS: [&str; 9] = [
    "PURGE",
    "BAN",
    "REFRESH",
    "PUT",
    "field",
    "Location",
    "--url",
    "--prefix",
    "--prefix of a path",
];

/// Two locations whose keys have other URLs than those of the rest.
fn serve_keys(app: &TestApp) -> TestServer {
    let pass = format!("{PARAMS} fastcgi_pass {};", app.address());
    http(&format!(
        "server {{ {LISTEN} page_cache auto; page_cache_stale off;
             location / {{ {pass} }}
             location /keyed/ {{ page_cache_key $host$uri:$cookie_cur; {pass} }}
             location /drop/ {{ page_cache_drop_query utm; {pass} }} }}"
    ))
}

#[test]
fn purges_of_urls_reach_pages_with_other_directives_for_keys() {
    let app = TestApp::start();
    let server = serve_keys(&app);
    let private = "X-LiteSpeed-Cache-Control: private,max-age=3600";
    for way in WAYS {
        let own = way.replace(' ', "-");
        let mut rows = vec![
            (format!("/keyed/{own}"), PAGE),
            (format!("/keyed/{own}%c3%a4"), PAGE),
            (format!("/drop/{own}?utm=1&a=2"), PAGE),
            (format!("/drop/{own}?a=3"), PAGE),
            (format!("/plain/{own}?utm=1"), PAGE),
        ];
        if way.starts_with("--") {
            // Other purges know the public pages and those of their own session.
            rows.push((format!("/keyed/mine/{own}"), private));
        }
        for (path, head) in rows {
            let say = |text: &str| {
                app.plan(&path, vec![AppSaid::head(head).body(text.as_bytes())]);
            };
            say("old");
            assert_eq!(body(&server, &path, ME), "old");
            assert_eq!(body(&server, &path, ME), "old");
            assert_eq!(app.count(&path), 1, "{path}");
            purge(&server, &app, way, &path);
            say("new");
            assert_new(&server, way, &path);
        }
    }
}

#[test]
fn a_purge_of_one_url_leaves_other_urls_of_a_key() {
    let app = TestApp::start();
    let server = serve_keys(&app);
    let path = "/keyed/x?a=1";
    app.say(path, PAGE);
    let old = body(&server, path, "");
    // With the cookie their own key is another one, too.
    for other in ["/keyed/x", "/keyed/x?a=2", "/keyed/x/y", "/x"] {
        assert_eq!(send(&server, "PURGE", other, ME).status, 200);
        assert_eq!(body(&server, path, ""), old, "{other}");
    }
}

#[test]
fn purges_of_urls_reach_all_ports_of_a_site() {
    let app = TestApp::start();
    let server = http(&format!(
        "server {{ {LISTEN} listen 127.0.0.1:@P2@; page_cache auto; page_cache_stale off;
             location / {{ {PARAMS} fastcgi_pass {}; }} }}",
        app.address()
    ));
    for way in ["PURGE", "field", "--url", "--prefix of a path"] {
        let path = format!("/{}", way.replace(' ', "-"));
        app.say(&path, PAGE);
        for count in [2, 2, 4] {
            if count == 4 {
                purge(&server, &app, way, &path);
            }
            let _both = [0, 2].map(|port| body_at(&server, port, &path));
            assert_eq!(app.count(&path), count, "{way}");
        }
    }
}

/// The URLs in keys have ports, and with a twin also addresses.
#[test]
fn pages_do_not_outlive_a_time_in_which_their_urls_were_other_ones() {
    let app = TestApp::start();
    let server_of = |listens: &str, more: &str| {
        format!(
            "server {{ {listens} server_name localhost; page_cache auto; {more}
                 location / {{ {PARAMS} fastcgi_pass {}; }} }}",
            app.address()
        )
    };
    let both = "listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@P2@;";
    let number = |number: usize| format!("location = /number {{ return 200 {number}; }}");
    let server = http(&server_of(both, &number(0)));
    let reload = |conf: &str, number: usize| {
        server.reload(conf);
        let is_there = || body(&server, "/number", "") == number.to_string();
        wait_until("the configuration", is_there);
    };
    let twin = "server { listen 127.0.0.2:@HTTP@; server_name localhost; }";
    let rows = [
        (server_of("listen 127.0.0.1:@HTTP@;", &number(1)), "/listen"),
        (server_of(both, &number(2)) + twin, "/twin"),
        (server_of(both, &(number(3) + "page_cache_key K$uri;")), "/key"),
        (server_of(both, &(number(4) + "page_cache_drop_query utm;")), "/drop?utm=1"),
    ];
    for (at, (conf, path)) in rows.iter().enumerate() {
        app.say(path, PAGE);
        let _old = [0, 2].map(|port| body_at(&server, port, path));
        assert_eq!(app.count(path), 2);
        reload(conf, at + 1);
        assert_eq!(send(&server, "PURGE", path, "").status, 200);
        reload(&server_of(both, &number(0)), 0);
        let _new = [0, 2].map(|port| body_at(&server, port, path));
        assert_eq!(app.count(path), 4, "{conf}");
    }
}

/// The next process knows what purges reached by the journal.
#[test]
fn pages_on_disk_do_not_outlive_a_process_in_which_purges_had_no_effect() {
    let app = TestApp::start();
    let conf_of = |listens: &str, page_cache: &str, root: &str| {
        format!(
            "{}http {{{TYPES} page_cache_path @DIR@/cache;
             server {{ {listens} server_name localhost; root @DIR@/{root}; page_cache {page_cache};
                 location / {{ {PARAMS} fastcgi_pass {}; }} }} }}",
            prelude(1),
            app.address()
        )
    };
    let (one, both) = ("listen 127.0.0.1:@HTTP@;", "listen 127.0.0.1:@HTTP@; listen [::1]:@P2@;");
    let usual = conf_of(one, "auto", "www");
    let mut server = TestServer::start(Home::new(BOLIDE), &usual);
    let rows = [
        (usual.clone(), "/same", 1),
        (conf_of(one, "off", "www"), "/off", 2),
        (conf_of(one, "auto", "other"), "/root", 2),
        (conf_of(both, "auto", "www"), "/listens", 2),
    ];
    for (conf, path, count) in rows {
        app.say(path, PAGE);
        let old = body(&server, path, "");
        wait_until("the page is a file", || {
            ask(&server, &["cache", "list", "--url", path]).text().contains("and on disk")
        });
        for conf in [&conf, &usual] {
            server.rewrite(conf);
            server.restart("KILL");
            // It listens before it serves.
            let _any = body(&server, "/other", "");
        }
        let is_old = body(&server, path, "") == old;
        assert_eq!((app.count(path), is_old), (count, count == 1), "{path}");
    }
}

const NARROW: &str = "Cache-Control: max-age=3600\nNo-Vary-Search: params, except=(\"id\")";

/// Which parameters count is known only from a response.
#[test]
fn purges_reach_pages_by_no_vary_search_without_their_rule() {
    let app = TestApp::start();
    let conf = format!(
        "{}http {{{TYPES} page_cache_path @DIR@/cache;
             server {{ {LISTEN} page_cache auto; page_cache_stale off;
             location / {{ {PARAMS} fastcgi_pass {}; }} }} }}",
        prelude(1),
        app.address()
    );
    let mut server = TestServer::start(Home::new(BOLIDE), &conf);
    for way in WAYS.into_iter().filter(|way| *way != "PUT") {
        let path = |at: usize| format!("/{}?utm={at}&id=1", way.replace(' ', "-"));
        let other = path(3).replace("id=1", "id=2");
        for at in 0..4 {
            app.plan(&path(at), vec![AppSaid::head(NARROW).body(b"old")]);
        }
        app.say(&other, NARROW);
        assert_eq!(body(&server, &path(0), ""), "old");
        assert_eq!(body(&server, &path(1), ""), "old");
        assert_eq!(app.count(&path(1)), 0);
        wait_until("the page is a file", || {
            let at = format!("/{}", way.replace(' ', "-"));
            ask(&server, &["cache", "list", "--url", &at]).text().contains("and on disk")
        });
        server.restart("TERM");
        purge(&server, &app, way, &path(2));
        // This brings the rule back.
        let _other = body(&server, &other, "");
        for at in 0..4 {
            app.plan(&path(at), vec![AppSaid::head(NARROW).body(b"new")]);
        }
        assert_new(&server, way, &path(3));
    }
}

#[test]
fn a_purge_during_the_first_fetch_with_no_vary_search_is_kept() {
    let app = TestApp::start();
    let server = serve_keys(&app);
    let (first, other) = ("/n?utm=1&id=1", "/n?id=1");
    app.plan(first, vec![AppSaid::head(NARROW).body(b"old")]);
    app.plan(other, vec![AppSaid::head(NARROW).body(b"new")]);
    app.hold(first);
    std::thread::scope(|all| {
        let client = all.spawn(|| body(&server, first, ""));
        wait_until("the application is asked", || app.count(first) > 0);
        assert_eq!(send(&server, "PURGE", other, "").status, 200);
        app.release();
        assert_eq!(client.join().unwrap(), "old");
    });
    assert_eq!(body(&server, other, ""), "new");
}

/// nginx's documentation asks for this key where HEAD is not converted.
#[test]
fn purges_of_a_zone_find_keys_with_the_method() {
    let origin = TestUpstream::start();
    let server = http(&format!(
        "proxy_cache_path @DIR@/zone keys_zone=one:1m;
         server {{ {LISTEN} proxy_cache one; proxy_cache_convert_head off;
             proxy_cache_purge PURGE;
             location / {{ proxy_cache_key $request_method$uri; proxy_pass http://{}; }} }}",
        origin.address()
    ));
    for (path, command) in [("/x", false), ("/y", true)] {
        let cached = |text: &str| answer("Cache-Control: max-age=60", text);
        origin.plan(path, vec![cached("old"), cached("new")]);
        assert_eq!(body(&server, path, ""), "old");
        assert_eq!(body(&server, path, ""), "old");
        if command {
            let url = format!("http://localhost:{}{path}", server.home().port(0));
            assert_eq!(order(&server, &["--url", &url]), "purged: 1 object\n");
        } else {
            let reply = send(&server, "PURGE", path, "");
            assert_eq!((reply.status, &*reply.text()), (200, "Purged: 1\n"), "{path}");
        }
        assert_eq!(body(&server, path, ""), "new", "{path}");
    }
}

/// Wherever the head of an application's response arrives, its purges count.
#[test]
fn purges_in_responses_that_no_client_gets_count() {
    let app = TestApp::start();
    let web = TestUpstream::start();
    let busy = "503 Service Unavailable";
    let tries = vec![answer_of(busy, "X-LiteSpeed-Purge: tag=T", "busy"), answer("", "there")];
    web.plan("/tried/a", tries);
    let pass = format!("{PARAMS} fastcgi_pass {};", app.address());
    let order = format!("{pass} fastcgi_param REQUEST_URI /order;");
    let web = web.address();
    let server = http(&format!(
        "upstream two {{ server {web}; server {web} backup; }}
         server {{ {LISTEN} page_cache auto;
             location / {{ {pass} }}
             location /asks/ {{ auth_request /order; {pass} }}
             location = /order {{ internal; {order} }}
             location /copied/ {{ mirror /order; {pass} }}
             location /then/ {{ post_action /order; return 200 x; }}
             location /off/ {{ auth_request /uncached; {pass} }}
             location = /uncached {{ internal; page_cache off; {order} }}
             location /tried/ {{ proxy_pass http://two; proxy_next_upstream http_503; }} }}"
    ));
    app.say("/page", &format!("{PAGE}\nX-LiteSpeed-Tag: T"));
    for (path, status) in [
        ("/asks/a", 204),
        ("/asks/b", 401),
        ("/asks/c", 500),
        ("/copied/a", 200),
        ("/then/a", 200),
        ("/off/a", 204),
        ("/tried/a", 503),
    ] {
        app.say("/order", &format!("Status: {status}\nX-LiteSpeed-Purge: tag=T"));
        let before = body(&server, "/page", ME);
        assert_eq!(body(&server, "/page", ME), before);
        let _answer = server.connect().get(path, "");
        wait_until(path, || body(&server, "/page", ME) != before);
    }
}
