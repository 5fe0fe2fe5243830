//! The LSCache protocol, row by row of its acceptance list, for an application and its clients:
//! storing, variants, purges, hidden fields. ESI has its own file.
//!
//! The application responds as a test defines, and with `run N`, where N counts the requests for
//! the address; so a body shows whether it was fetched.

mod keys;
mod private;
mod purging;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bolide_testkit::app::{AppRequest, AppSaid, TestApp};
use bolide_testkit::server::LISTEN;
use bolide_testkit::{Response, TestPhp, TestServer, site, wait_until};

use crate::http;

/// The `fastcgi_param` lines that Bolide ships.
const PARAMS: &str = concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/fastcgi.conf;");

/// An application for all requests, and the server in front of it.
struct Rig {
    app: TestApp,
    server: TestServer,
    orders: AtomicUsize,
}

impl Rig {
    /// With these directives in the server.
    fn new(directives: &str) -> Self {
        Self::with("", directives)
    }

    /// With these in `http` and in the server.
    fn with(block: &str, directives: &str) -> Self {
        let app = TestApp::start();
        let pass = format!("{PARAMS} fastcgi_pass {};", app.address());
        let block = block.replace("@PASS@", &pass);
        let directives = directives.replace("@PASS@", &pass);
        let server =
            http(&format!("{block} server {{ {LISTEN} {directives} location / {{ {pass} }} }}"));
        Self { app, server, orders: AtomicUsize::new(0) }
    }

    fn ask(&self, path: &str, fields: &str) -> Response {
        self.server.connect().get(path, fields)
    }

    /// The cache status and the body.
    fn seen(&self, path: &str, fields: &str) -> (String, String) {
        let reply = self.ask(path, fields);
        for hidden in HIDDEN {
            assert_eq!(reply.header(hidden), None, "{path}: {reply:?}");
        }
        (reply.header("x-litespeed-cache").unwrap_or_default().to_owned(), reply.text())
    }

    fn method(&self, method: &str, path: &str, fields: &str) -> Response {
        self.server
            .connect()
            .ask(format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}").trim_end())
    }

    /// The application responds to a POST of its own with these fields.
    fn order(&self, head: &str, fields: &str) -> Response {
        let path = format!("/order-{}", self.orders.fetch_add(1, Ordering::Relaxed));
        self.app.say(&path, &format!("Status: 302\nLocation: /done\n{head}"));
        self.method("POST", &path, &format!("Content-Length: 0\r\n{fields}"))
    }
}

/// Fields that no client gets.
const HIDDEN: [&str; 6] = [
    "x-litespeed-cache-control",
    "x-litespeed-tag",
    "x-litespeed-purge",
    "x-litespeed-purge2",
    "x-litespeed-vary",
    "lsc-cookie",
];

const PUBLIC: &str = "X-LiteSpeed-Cache-Control: public,max-age=60";
const PRIVATE: &str = "X-LiteSpeed-Cache-Control: private,max-age=60";

fn miss(run: usize) -> (String, String) {
    ("miss".to_owned(), format!("run {run}"))
}

fn hit(run: usize) -> (String, String) {
    ("hit".to_owned(), format!("run {run}"))
}

fn own(run: usize) -> (String, String) {
    ("hit,private".to_owned(), format!("run {run}"))
}

/// Neither stored nor a hit.
fn past(run: usize) -> (String, String) {
    (String::new(), format!("run {run}"))
}

// Row 1: public hit/miss headers.
#[test]
fn a_public_page_is_a_miss_and_then_a_hit_and_its_controls_stay_inside() {
    let rig = Rig::new("page_cache auto;");
    rig.app.say(
        "/",
        &format!(
            "{PUBLIC}\nX-LiteSpeed-Tag: a,b\nX-LiteSpeed-Tag: c\nX-LiteSpeed-Purge: x\n\
             X-LiteSpeed-Purge2: y\nX-LiteSpeed-Vary: cookie=v\nCache-Control: no-cache\n\
             X-LiteSpeed-Cache: hit\nLSC-Cookie: l=1"
        ),
    );
    assert_eq!(rig.seen("/", ""), miss(1));
    assert_eq!(rig.seen("/", ""), hit(1));
    let reply = rig.ask("/", "Cookie: other=1\r\n");
    assert_eq!(reply.header("x-litespeed-cache"), Some("hit"));
    assert_eq!(reply.header("cache-control"), Some("no-cache"), "what browsers do is its own");
    assert!(reply.header("age").is_some());
    // A response without directives is not stored, and has no cache status.
    assert_eq!(rig.seen("/plain", ""), past(1));
    assert_eq!(rig.seen("/plain", ""), past(2));
    // A body over HTTP/2 and HTTP/3 is the same.
    for proto in [bolide_testkit::Proto::H2, bolide_testkit::Proto::H3] {
        let over = rig.server.fetch(proto, "/");
        assert_eq!(over.text(), "run 2", "another scheme and port is another page");
    }
}

// §2: the grammar of cache control, contradictions included.
#[test]
fn controls_that_contradict_each_other_are_settled_as_litespeed_does() {
    let rig = Rig::new("page_cache auto;");
    let session = "Cookie: lsc_private=aaaaaaaaaaaaaaaa\r\n";
    let rows = [
        ("public,max-age=60,no-cache", ""),
        ("no-cache,max-age=60", "hit"),
        ("no-store,s-maxage=60", "hit"),
        ("max-age=60,no-store", ""),
        ("private,public,max-age=60", "hit"),
        ("public,private,max-age=60", "hit,private"),
        ("private,max-age=60", "hit,private"),
        ("max-age=60,private", "hit,private"),
        ("shared,private,max-age=60", "hit,private"),
        ("s-maxage=60,max-age=0", "hit"),
        ("max-age=0,s-maxage=60", "hit"),
        ("s-maxage=0,max-age=60", ""),
        ("max-age=60", "hit"),
        ("public", "hit"),
        ("PUBLIC, Max-Age=60", "hit"),
        ("public;max-age=60", "hit"),
        ("max-age=", ""),
        ("max-age=x", ""),
        ("nonsense", ""),
        ("esi=on", ""),
        ("no-cache,esi=on", ""),
        ("public,max-age=99999999999999999999", "hit"),
        ("public,max-age=60\nX-LiteSpeed-Cache-Control: no-cache", ""),
        ("no-cache\nX-LiteSpeed-Cache-Control: public,max-age=60", "hit"),
        ("public,max-age=60,reload-after,set-blank", "hit"),
    ];
    let mut failures = Vec::new();
    for (at, (control, expected)) in rows.iter().enumerate() {
        let path = format!("/{at}");
        rig.app.say(&path, &format!("X-LiteSpeed-Cache-Control: {control}"));
        let first = rig.seen(&path, session);
        let second = rig.seen(&path, session);
        let is_kept = if expected.is_empty() { "run 2" } else { "run 1" };
        if second != ((*expected).to_owned(), is_kept.to_owned()) {
            failures.push(format!("{control}: {first:?}, {second:?}, not {expected:?}"));
        }
    }
    crate::report(rows.len(), &failures);
}

// §2: the precedence of the sources.
#[test]
fn x_litespeed_cache_control_has_precedence_over_cache_control() {
    let rig = Rig::new("page_cache auto;");
    let rows = [
        ("X-LiteSpeed-Cache-Control: no-cache\nCache-Control: max-age=60", false),
        ("X-LiteSpeed-Cache-Control: max-age=60\nCache-Control: no-store", true),
        ("Surrogate-Control: max-age=60\nCache-Control: no-store", true),
        ("CDN-Cache-Control: no-store\nSurrogate-Control: max-age=60", false),
        ("X-LiteSpeed-Cache-Control: max-age=60\nCDN-Cache-Control: no-store", true),
        ("Cache-Control: max-age=60\nExpires: Thu, 01 Jan 1970 00:00:00 GMT", true),
        ("Cache-Control: private, max-age=60", false),
        ("Cache-Control: no-cache, max-age=60", false),
    ];
    for (at, (head, is_kept)) in rows.iter().enumerate() {
        let path = format!("/{at}");
        rig.app.say(&path, head);
        rig.seen(&path, "");
        let again = rig.seen(&path, "").1;
        assert_eq!(again, if *is_kept { "run 1" } else { "run 2" }, "{head}");
    }
}

// Row 12: 404 with the header is cached, without it is not.
#[test]
fn other_statuses_than_200_are_stored_only_at_the_applications_request() {
    let rig = Rig::new("page_cache on;");
    for status in [301, 403, 404, 410, 500] {
        let head = format!("Status: {status}\nLocation: /x");
        let (marked, silent) = (format!("/marked-{status}"), format!("/silent-{status}"));
        rig.app.say(&marked, &format!("{head}\n{PUBLIC}"));
        rig.app.say(&silent, &head);
        for path in [&marked, &silent] {
            assert_eq!(rig.ask(path, "").status, status);
        }
        let kept = rig.ask(&marked, "");
        assert_eq!((kept.status, &*kept.text()), (status, "run 1"), "{status}");
        assert_eq!(kept.header("location"), Some("/x"));
        assert_eq!(rig.seen(&silent, ""), past(2), "{status}");
    }
    for status in ["206", "304", "416"] {
        let path = format!("/part-{status}");
        rig.app.say(&path, &format!("Status: {status}\n{PUBLIC}"));
        rig.ask(&path, "");
        rig.ask(&path, "");
        assert_eq!(rig.app.count(&path), 2, "{status}");
    }
}

// Row 13: Set-Cookie is never replayed, LSC-Cookie is.
#[test]
fn set_cookie_is_for_its_client_and_lsc_cookie_for_every_hit() {
    let rig = Rig::new("page_cache auto;");
    let head =
        format!("{PUBLIC}\nSet-Cookie: sid=secret\nSet-Cookie: b=2\nLSC-Cookie: lsc=1; path=/");
    rig.app.say("/", &head);
    let cookies = |reply: &Response| -> Vec<String> {
        let all = reply.headers.iter().filter(|field| field.0.eq_ignore_ascii_case("set-cookie"));
        all.map(|field| field.1.clone()).collect()
    };
    let first = rig.ask("/", "");
    assert_eq!(cookies(&first), ["sid=secret", "b=2", "lsc=1; path=/"]);
    assert_eq!(first.header("lsc-cookie"), None);
    let later = rig.ask("/", "");
    assert_eq!((cookies(&later), &*later.text()), (vec!["lsc=1; path=/".to_owned()], "run 1"));
    // A coalesced request gets none of its cookies, either.
    rig.app.plan("/slow", vec![AppSaid::head(&head)]);
    rig.app.hold("/slow");
    thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(|| rig.ask("/slow", ""))).collect();
        wait_until("the application is asked", || rig.app.count("/slow") == 1);
        bolide_testkit::pause(100);
        rig.app.release();
        let all: Vec<_> = all.into_iter().map(|one| one.join().unwrap()).collect();
        let with_session = all.iter().filter(|reply| cookies(reply).contains(&"sid=secret".into()));
        assert_eq!(with_session.count(), 1);
        assert!(all.iter().all(|reply| reply.text() == "run 1"));
        assert!(all.iter().all(|reply| reply.header("x-litespeed-cache").is_some()), "{all:?}");
    });
    // Without LSCache's field, a cookie prevents storing.
    rig.app.say("/unmarked", "Cache-Control: max-age=60\nSet-Cookie: sid=secret");
    rig.seen("/unmarked", "");
    assert_eq!(rig.seen("/unmarked", ""), past(2));
}

// Row 16: HEAD, 304 and Range from the cache.
#[test]
fn a_cached_page_answers_head_conditions_and_ranges() {
    let rig = Rig::new("page_cache auto;");
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    rig.app.say("/", &format!("{PUBLIC}\nETag: \"v\"\nLast-Modified: {date}"));
    let head = rig.method("HEAD", "/", "");
    assert_eq!((head.status, head.header("x-litespeed-cache")), (200, None));
    assert_eq!(rig.seen("/", "Range: bytes=0-0\r\n").0, "miss", "the whole is fetched");
    let head = rig.method("HEAD", "/", "");
    assert_eq!(
        (head.header("x-litespeed-cache"), head.header("content-length")),
        (Some("hit"), Some("5"))
    );
    for fields in [
        "If-None-Match: \"v\"\r\n".to_owned(),
        "If-None-Match: \"x\", W/\"v\"\r\n".to_owned(),
        format!("If-Modified-Since: {date}\r\n"),
    ] {
        let kept = rig.ask("/", &fields);
        assert_eq!((kept.status, kept.header("x-litespeed-cache")), (304, Some("hit")), "{fields}");
        assert_eq!(kept.header("etag"), Some("\"v\""));
    }
    let part = rig.ask("/", "Range: bytes=1-2\r\n");
    assert_eq!((part.status, &*part.text()), (206, "un"));
    assert_eq!(rig.app.count("/"), 2, "once for HEAD and once for the page");
    assert_eq!(rig.app.asked("/")[1].field("Range"), None);
}

// Row 17: objects larger than the limit, with and without a length.
#[test]
fn too_large_and_empty_responses_bypass_the_cache() {
    let rig = Rig::new("page_cache auto; page_cache_max_object 1000;");
    let body = vec![b'x'; 1001];
    let large = |head: &str| vec![AppSaid::head(head).body(&body)];
    rig.app.plan("/told", large(&format!("{PUBLIC}\nContent-Length: 1001")));
    rig.app.plan("/untold", large(PUBLIC));
    rig.app.plan("/fits", vec![AppSaid::head(PUBLIC).body(&body[1..])]);
    for path in ["/told", "/untold", "/fits"] {
        for _ in 0..2 {
            assert!(rig.ask(path, "").body.len() >= 1000, "{path}");
        }
        assert_eq!(rig.app.count(path), if path == "/fits" { 1 } else { 2 }, "{path}");
    }
    rig.app.plan("/empty", vec![AppSaid::head(PUBLIC).body(b"")]);
    for _ in 0..2 {
        assert_eq!((rig.ask("/empty", "").status, rig.ask("/empty", "").body.len()), (200, 0));
    }
    assert_eq!(rig.app.count("/empty"), 4);
}

// Row 18: a truncated response of the application is not stored.
#[test]
fn a_response_that_breaks_off_is_not_stored() {
    let rig = Rig::new("page_cache auto;");
    let whole = AppSaid::head(PUBLIC).body(b"whole");
    rig.app.plan("/", vec![AppSaid::head(PUBLIC).body(b"half").cut(), whole]);
    let mut client = rig.server.connect();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(client.try_answer("GET").is_err(), "it is visible to who asked");
    assert_eq!(rig.seen("/", ""), ("miss".into(), "whole".into()));
    assert_eq!(rig.seen("/", ""), ("hit".into(), "whole".into()));
}

// Row 18, for clients: the page is stored although its client has left.
#[test]
fn a_page_is_stored_although_its_client_left() {
    let rig = Rig::new("page_cache auto;");
    rig.app.say("/", PUBLIC);
    rig.app.hold("/");
    let mut client = rig.server.connect();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_until("the application is asked", || rig.app.count("/") == 1);
    drop(client);
    rig.app.release();
    wait_until("the page is kept", || rig.seen("/", "").0 == "hit");
    assert_eq!(rig.app.count("/"), 1);
}

// §1 and row 19: how an application detects the cache, and that no client can pretend it.
#[test]
fn applications_get_x_lscache_and_clients_cannot_forge_it() {
    let rig = Rig::new(
        "page_cache auto; LiteMage on; page_cache_vary cookie=currency; underscores_in_headers on;
         page_cache_control vary=+$arg_v;
         location /off { page_cache off; @PASS@ }",
    );
    let forged = "X-LSCACHE: 1\r\nx_lscache: 1\r\nX-LiteMage: 1\r\nX-LSCACHE-Vary-Value: x\r\n\
                  ESI-Referer: /\r\nESI_Referer: /\r\nESI-Content-Type: a/b\r\n\
                  X-LiteSpeed-Purge: *\r\nX-LiteSpeed-Cache-Control: public\r\nX-Other: 1\r\n";
    rig.ask("/?v=m", forged);
    rig.ask("/off", forged);
    let asked = &rig.app.asked("/?v=m")[0];
    let value_of = |name: &str| asked.param(name);
    assert_eq!(value_of("LSCACHE_VARY_COOKIE"), Some("currency"));
    assert_eq!(value_of("LSCACHE_VARY_VALUE"), Some("+m"));
    assert_eq!(value_of("X-LITEMAGE"), Some("1"));
    let tokens: Vec<&str> = value_of("X-LSCACHE").unwrap().split(',').collect();
    assert!(tokens.contains(&"on") && tokens.contains(&"crawler"), "{tokens:?}");
    assert!(
        value_of("LSWS_EDITION").is_none()
            && !value_of("SERVER_SOFTWARE").unwrap().contains("LiteSpeed")
    );
    assert!(value_of("SCRIPT_URI").unwrap().starts_with("http://localhost"));
    assert_eq!(rig.app.asked("/off")[0].param("X-LSCACHE"), None);
    for asked in [asked, &rig.app.asked("/off")[0]] {
        assert_eq!(asked.field("X-Other"), Some("1"));
        let names = asked.params.keys().filter(|name| {
            name.starts_with("HTTP_X_L") || name.starts_with("HTTP_ESI") || name.starts_with("ESI")
        });
        assert_eq!(names.count(), 0, "{:?}", asked.params);
    }
}

// §1: the switch for plugins that require LiteSpeed's server name.
#[test]
fn lscache_compat_sets_the_server_software_parameter() {
    let rig = Rig::new("page_cache auto; lscache_compat litespeed; page_cache_crawler off;");
    let reply = rig.ask("/", "");
    assert_ne!(reply.header("server"), Some("LiteSpeed"), "clients get our own name");
    let asked = &rig.app.asked("/")[0];
    assert_eq!(asked.param("SERVER_SOFTWARE"), Some("LiteSpeed"));
    assert!(!asked.param("X-LSCACHE").unwrap().contains("crawler"));
}

// §1, §2: a trusted cache in front gets the fields that clients do not.
#[test]
fn a_trusted_front_controls_the_cache_and_gets_all_fields() {
    let rig = Rig::new("page_cache auto; page_cache_trusted 127.0.0.1;");
    rig.app.say("/", &format!("{PUBLIC}\nX-LiteSpeed-Tag: t\nX-LiteSpeed-Purge: other"));
    let front = "X-LSCACHE: 1\r\nX-LSCACHE-Vary-Value: mobile\r\n";
    let value_of = |reply: &Response, name: &str| reply.header(name).map(str::to_owned);
    let first = rig.ask("/", front);
    assert_eq!(value_of(&first, "x-litespeed-tag").as_deref(), Some("t"));
    assert_eq!(value_of(&first, "x-litespeed-purge").as_deref(), Some("other"));
    let asked = &rig.app.asked("/")[0];
    assert_eq!(asked.field("X-LSCACHE"), Some("1"));
    assert_eq!(asked.param("LSCACHE_VARY_VALUE"), Some("mobile"));
    let kept = rig.ask("/", front);
    assert_eq!((kept.header("x-litespeed-cache"), &*kept.text()), (Some("hit"), "run 1"));
    assert_eq!(value_of(&kept, "x-litespeed-tag").as_deref(), Some("t"));
    assert_eq!(kept.header("x-litespeed-purge"), None, "an order is given once");
    // Its value selects the variant; without the field it is a client like any other.
    assert_eq!(rig.seen("/", ""), miss(2));
    assert_eq!(rig.seen("/", ""), hit(2));
    // No client is a trusted cache by default.
    let rig = Rig::new("page_cache auto; page_cache_trusted 192.0.2.1;");
    rig.app.say("/", &format!("{PUBLIC}\nX-LiteSpeed-Tag: t"));
    assert_eq!((rig.seen("/", front), rig.seen("/", front)), (miss(1), hit(1)));
    assert_eq!(rig.app.asked("/")[0].field("X-LSCACHE"), None);
}

#[test]
fn only_trusted_fronts_get_cache_fields_of_a_cached_page() {
    let rig = Rig::new("page_cache auto; page_cache_trusted 127.0.0.1;");
    for path in ["/seen-by-clients-first", "/seen-by-the-front-first"] {
        rig.app.say(path, &format!("{PUBLIC}\nX-LiteSpeed-Tag: t"));
        let is_front_first = path.ends_with("front-first");
        for turn in 0..8 {
            let is_front = (turn / 2 % 2 == 0) == is_front_first;
            let reply = rig.ask(path, if is_front { "X-LSCACHE: 1\r\n" } else { "" });
            let value_of = reply.header("x-litespeed-tag");
            assert_eq!(value_of, is_front.then_some("t"), "{path}, turn {turn}");
            assert_eq!(reply.text(), "run 1");
        }
    }
}

// Row 20: the fields that crawlers of plugins need.
#[test]
fn a_crawler_sees_which_pages_are_cacheable() {
    let rig = Rig::new("page_cache auto;");
    rig.app.say("/page", PUBLIC);
    rig.app.say("/none", "X-LiteSpeed-Cache-Control: no-cache");
    let control = |path: &str, agent: &str| {
        let reply = rig.ask(path, &format!("User-Agent: {agent}\r\nCache-Control: max-age=0\r\n"));
        let get = |name: &str| reply.header(name).unwrap_or_default().to_owned();
        (get("x-litespeed-cache"), get("x-litespeed-cache-control"))
    };
    let say = |cache: &str, control: &str| (cache.to_owned(), control.to_owned());
    assert_eq!(control("/page", "lscache_runner"), say("miss", ""));
    assert_eq!(control("/page", "lscache_walker Mobile"), say("hit", ""));
    for path in ["/none", "/silent"] {
        assert_eq!(control(path, "lscache_runner iPhone"), say("", "no-cache"));
        assert_eq!(control(path, "Mozilla/5.0"), say("", ""));
    }
}

// §9: CacheEnable, CacheDisable.
#[test]
fn prefixes_open_and_close_the_cache_below_them() {
    let rig = Rig::new(
        "page_cache auto; CacheEnable public /open; CacheDisable /open/never;
         CacheDisable private /no-private; CacheEnable private /mine;",
    );
    let session = "Cookie: lsc_private=aaaaaaaaaaaaaaaa\r\n";
    let rows = [
        ("/open/a", "", "hit"),
        ("/open/never/a", PUBLIC, ""),
        ("/open/never/b", "", ""),
        // As the application sees the path, not as it is spelled.
        ("/open/%6eever/c", PUBLIC, ""),
        ("/open/./x/../never/d", PUBLIC, ""),
        ("//open//never//e", PUBLIC, ""),
        ("/closed", "", ""),
        ("/no-private/a", PRIVATE, ""),
        ("/no-private/b", PUBLIC, "hit"),
        ("/mine/a", "", "hit,private"),
        ("/mine/b", "Set-Cookie: a=1", ""),
        ("/open/c", "Cache-Control: no-store", ""),
    ];
    for (path, head, expected) in rows {
        rig.app.say(path, head);
        rig.seen(path, session);
        let run = if expected.is_empty() { "run 2" } else { "run 1" };
        assert_eq!(rig.seen(path, session), (expected.into(), run.into()), "{path}");
    }
    // Purges take effect even where nothing is cached.
    rig.app.say("/tagged", &format!("{PUBLIC}\nX-LiteSpeed-Tag: t"));
    assert_eq!((rig.seen("/tagged", ""), rig.seen("/tagged", "")), (miss(1), hit(1)));
    rig.app.say("/open/never/order", "X-LiteSpeed-Purge: t");
    rig.ask("/open/never/order", "");
    assert_eq!(rig.seen("/tagged", ""), miss(2));
}

// §5: purges take effect whatever the request's cacheability.
#[test]
fn purges_count_where_the_cache_is_off() {
    let rig = Rig::new(
        "page_cache auto; location /admin { page_cache off; @PASS@ }
         location /engine { CacheEngine off; @PASS@ }",
    );
    for path in ["/admin", "/engine"] {
        rig.app.say("/", &format!("{PUBLIC}\nX-LiteSpeed-Tag: T"));
        rig.order("X-LiteSpeed-Purge: *", "");
        assert_eq!((rig.seen("/", ""), rig.seen("/", "")), (miss(1), hit(1)));
        rig.app.say(path, &format!("{PUBLIC}\nX-LiteSpeed-Purge: T"));
        assert_eq!((rig.seen(path, ""), rig.seen(path, "")), (past(1), past(2)));
        assert_eq!(last(&rig, path).param("X-LSCACHE"), None);
        assert_eq!(rig.seen("/", ""), miss(2), "{path}");
    }
}

// §7: the requests of LiteMage's administration page.
#[test]
fn litemage_gets_statistics_if_it_may_purge() {
    for (allow, status) in [("127.0.0.1", 200), ("off", 403)] {
        let rig = Rig::new(&format!(
            "page_cache auto; LiteMage on; page_cache_purge_allow {allow};
             location /static/ {{ root @DIR@/www; }}"
        ));
        rig.app.say("/", PUBLIC);
        assert_eq!((rig.seen("/", ""), rig.seen("/", "")), (miss(1), hit(1)));
        for path in ["/__LSCACHE/STATS", "/static/__LSCACHE/STATS"] {
            let reply = rig.ask(path, "");
            assert_eq!(reply.status, status, "{path}");
            if status == 200 {
                assert_eq!(reply.header("content-type"), Some("application/json"));
                let text = reply.text();
                assert!(text.starts_with("{\"localhost\": {\"LITEMAGE_PLAN\": 3,"), "{text}");
                assert!(text.contains("\"LITEMAGE_OBJS\": 1}"), "{text}");
            }
        }
    }
    let rig = Rig::new("page_cache auto;");
    assert_eq!(rig.seen("/__LSCACHE/STATS", ""), past(1), "it is nobody's without LiteMage");
}

// §9: LiteSpeed's names for the rest.
#[test]
fn lookups_of_either_kind_can_be_disabled_while_responses_are_stored() {
    let rig = Rig::new(
        "CacheEngine on crawler; CacheMaxExpire 1; CacheStaleAge 0;
         location /public { CacheLookup public off; @PASS@ }
         location /private { CacheLookup private off; @PASS@ }",
    );
    let session = "Cookie: lsc_private=aaaaaaaaaaaaaaaa\r\n";
    let seen = |path: &str, head: &str| {
        rig.app.say(path, head);
        rig.seen(path, session);
        rig.seen(path, session).1
    };
    assert_eq!(seen("/public/a", PUBLIC), "run 2");
    assert_eq!(seen("/public/b", PRIVATE), "run 1");
    assert_eq!(seen("/private/a", PUBLIC), "run 1");
    assert_eq!(seen("/private/b", PRIVATE), "run 2");
    // `CacheMaxExpire` overrides the page.
    rig.app.say("/", PUBLIC);
    assert_eq!((rig.seen("/", ""), rig.seen("/", "")), (miss(1), hit(1)));
    wait_until("it is over", || rig.seen("/", "").1 == "run 2");
}

// §3, §9: rewrite rules in LiteSpeed, `page_cache_control` here.
#[test]
fn environment_variables_of_the_configuration_control_the_cache() {
    let rig = Rig::with(
        "map $http_user_agent $words { default ''; ~Bot no-cache; ~Long max-age=60; ~Own private; }",
        "page_cache auto; page_cache_control $words;
         location /if { @PASS@ if ($arg_no) { page_cache_control no-cache; } }",
    );
    let agent =
        |name: &str| format!("User-Agent: {name}\r\nCookie: lsc_private=aaaaaaaaaaaaaaaa\r\n");
    rig.app.say("/", PUBLIC);
    assert_eq!((rig.seen("/", ""), rig.seen("/", "")), (miss(1), hit(1)));
    assert_eq!(rig.seen("/", &agent("Bot")), past(2), "neither looked up nor kept");
    assert_eq!(rig.seen("/", ""), hit(1));
    // An age makes a response without directives public, `private` makes it private.
    assert_eq!(rig.seen("/silent", &agent("Long")), miss(1));
    assert_eq!(rig.seen("/silent", &agent("Long")), hit(1));
    assert_eq!(rig.seen("/own", &agent("Own")), miss(1));
    assert_eq!(rig.seen("/own", &agent("Own")), own(1));
    assert_eq!(rig.seen("/own", ""), past(2));
    rig.app.say("/if?no=1", PUBLIC);
    assert_eq!((rig.seen("/if?no=1", ""), rig.seen("/if?no=1", "")), (past(1), past(2)));
    rig.app.say("/if", PUBLIC);
    assert_eq!((rig.seen("/if", ""), rig.seen("/if", "")), (miss(1), hit(1)));
}

// Safe defaults: `auto`.
#[test]
fn auto_stores_nothing_that_could_be_private() {
    let rig = Rig::new("page_cache auto;");
    let aged = "Cache-Control: max-age=60";
    let rows: [(&str, &str, &str, bool); 10] = [
        (aged, "", "GET", true),
        ("", "", "GET", false),
        ("Cache-Control: max-age=60\nSet-Cookie: a=1", "", "GET", false),
        (aged, "Authorization: Basic YTpi\r\n", "GET", false),
        ("Cache-Control: public, max-age=60", "Authorization: Basic YTpi\r\n", "GET", true),
        ("Cache-Control: private, max-age=60", "", "GET", false),
        (aged, "", "POST", false),
        (PUBLIC, "", "POST", false),
        (PUBLIC, "", "PUT", false),
        ("Cache-Control: max-age=60\nVary: *", "", "GET", false),
    ];
    for (at, (head, fields, method, is_kept)) in rows.iter().enumerate() {
        let path = format!("/{at}");
        rig.app.say(&path, head);
        for _ in 0..2 {
            let body = if *method == "GET" { "" } else { "Content-Length: 0\r\n" };
            rig.method(method, &path, &format!("{fields}{body}"));
        }
        let count = if *is_kept { 1 } else { 2 };
        assert_eq!(rig.app.count(&path), count, "{head} {fields} {method}");
    }
}

// Safe defaults: the preset.
#[test]
fn a_preset_bypasses_logged_in_users_carts_and_admin_paths_in_any_spelling() {
    let rig = Rig::new("page_cache_preset wordpress;");
    for (path, cookie) in [
        ("/wp-admin/", ""),
        ("/blog/wp-admin/post.php", ""),
        ("/%77p-admin/", ""),
        ("/wp%2Dadmin/x", ""),
        ("//wp-admin//", ""),
        ("/wp-login.php?x", ""),
        ("/cart/", ""),
        ("/?preview=true", ""),
        ("/?%70review=true", ""),
        ("/?_wpnonce=1", ""),
        ("/?.wpnonce=1", ""),
        ("/?add-to-cart=5", ""),
        ("/?add%2Dto%2Dcart=5", ""),
        ("/a", "wordpress_logged_in_x=1"),
        ("/a", "wordpress.logged.in_x=1"),
        ("/a", "comment_author_x=1"),
        ("/a", "woocommerce_items_in_cart=1"),
        ("/a", "wordpress_no_cache=1; b=2"),
    ] {
        let fields = format!("Cookie: {cookie}\r\n");
        let fields = if cookie.is_empty() { "" } else { &fields };
        let first = rig.seen(path, fields);
        let second = rig.seen(path, fields);
        assert!(
            first.0.is_empty() && second.0.is_empty() && first.1 != second.1,
            "{path} {cookie}"
        );
    }
    rig.app.say("/a", "");
    assert_eq!((rig.seen("/a", ""), rig.seen("/a", "Cookie: _ga=1\r\n")), (miss(1), hit(1)));
    assert_eq!(rig.seen("/a?utm_source=x&fbclid=1", "").0, "hit", "tracking is no other page");
}

// §10: guest mode ends with a POST that sets the vary cookie.
#[test]
fn a_guest_becomes_a_user_by_a_post_that_sets_the_vary_cookie() {
    let php = TestPhp::start(2);
    let address = php.address();
    let server = http(&format!(
        "server {{ {LISTEN} page_cache auto; location / {{ {PARAMS} fastcgi_pass {address}; }} }}"
    ));
    site::write(
        &server.www("page.php"),
        b"<?php header('X-LiteSpeed-Cache-Control: public,max-age=60');
          $who = $_COOKIE['_lscache_vary'] ?? 'guest'; echo $who, ' ', uniqid();",
    );
    site::write(
        &server.www("guest.vary.php"),
        b"<?php header('X-LiteSpeed-Cache-Control: no-cache');
          setcookie('_lscache_vary', 'known', time() + 172800, '/', '', false, true);
          header('Content-Type: application/json'); echo '{\"reload\":\"yes\"}';",
    );
    let get = |fields: &str| server.connect().get("/page.php", fields).text();
    let guest = get("");
    assert!(guest.starts_with("guest ") && get("") == guest);
    let reply = server
        .connect()
        .ask("POST /guest.vary.php HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0");
    assert!(reply.header("set-cookie").unwrap().starts_with("_lscache_vary=known;"), "{reply:?}");
    assert_eq!(reply.text(), "{\"reload\":\"yes\"}");
    let known = get("Cookie: _lscache_vary=known\r\n");
    assert!(known.starts_with("known ") && get("Cookie: _lscache_vary=known\r\n") == known);
    assert_eq!(get(""), guest);
}

/// The application's view of the last request for an address.
fn last(rig: &Rig, path: &str) -> AppRequest {
    rig.app.asked(path).pop().unwrap()
}
