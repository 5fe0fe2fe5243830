//! `magento_cache`: an invented Magento 2 behind it, whose purges come as they do to Varnish.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bolide_testkit::origin::{TestPeer, answer_of};
use bolide_testkit::server::{Home, LISTEN, TYPES, prelude};
use bolide_testkit::{Response, TestServer, TestUpstream, wait_until};

use crate::BOLIDE;
use crate::explain::ask;

const PUBLIC: &str = "Cache-Control: public, max-age=86400, s-maxage=86400\nPragma: cache";
const NO_STORE: &str = "no-store, no-cache, must-revalidate, max-age=0";
const HTML: &str = "Content-Type: text/html; charset=UTF-8";
/// What Magento's client may put into one field.
const BATCH: usize = 7680;

/// The shop: logged-in groups, and the number of its requests.
#[derive(Default)]
struct Shop {
    groups: Mutex<HashMap<String, String>>,
    asked: AtomicUsize,
}

fn shop() -> TestUpstream {
    let shop = Shop::default();
    TestUpstream::scripted(move |peer| while shop.answer(peer).is_ok() {})
}

/// The value of a cookie of a request.
fn cookie(cookies: &str, name: &str) -> Option<String> {
    let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|pair| pair.0 == name).map(|pair| pair.1.to_owned())
}

impl Shop {
    fn answer(&self, peer: &mut TestPeer) -> std::io::Result<()> {
        let request = peer.request()?;
        let number = self.asked.fetch_add(1, Ordering::AcqRel);
        let target = request.target().to_owned();
        let path = target.split('?').next().unwrap_or_default();
        let cookies = request.field("cookie").unwrap_or_default();
        let session = cookie(cookies, "PHPSESSID").unwrap_or_default();
        let group = match path.strip_prefix("/customer/login/") {
            Some(group) => {
                self.groups.lock().unwrap().insert(session, group.to_owned());
                group.to_owned()
            }
            None => self.groups.lock().unwrap().get(&session).cloned().unwrap_or_default(),
        };
        let (status, mut fields) = fields_of(path);
        // The cookie, where it differs from the default; else one that is there goes.
        if !group.is_empty() {
            let _ = write!(fields, "\nSet-Cookie: X-Magento-Vary=sha-{group}; path=/; HttpOnly");
        } else if cookie(cookies, "X-Magento-Vary").is_some() {
            fields.push_str("\nSet-Cookie: X-Magento-Vary=deleted; Max-Age=0; path=/");
        }
        if path == "/graphql" {
            let id = request.field("x-magento-cache-id").unwrap_or("guest");
            let id = if target.contains("moved") { "moved" } else { id };
            let _ = write!(fields, "\nX-Magento-Cache-Id: {id}");
        }
        let mut body = format!("target={target} group={group} n={number}.");
        if path == "/esi" {
            let host = request.field("host").unwrap_or_default();
            let _ = write!(
                body,
                "<html><esi:include src=\"http://{host}/page_cache/block/esi/blocks/%5B%22menu%22%5D/\" \
                 /><!-- BLOCK own -->own<!-- /BLOCK own --></html>"
            );
        }
        peer.send(answer_of(status, &fields, &body))
    }
}

/// The status and the fields of a page.
fn fields_of(path: &str) -> (&'static str, String) {
    let name = path.rsplit('/').next().unwrap_or_default();
    let page = format!("{PUBLIC}\n{HTML}\nX-Magento-Tags: cat_{name},FPC\nX-Pool: web1");
    let fields = match path {
        "/private" => "Cache-Control: private, max-age=60".to_owned(),
        "/no-store" => format!("Cache-Control: {NO_STORE}"),
        "/silent" => HTML.to_owned(),
        "/missing" => return ("404 Not Found", page),
        "/broken" => return ("500 Internal Server Error", page),
        "/short" => format!("Cache-Control: public, max-age=1\n{HTML}\nX-Magento-Tags: cat_short"),
        "/cookie" => format!("{page}\nSet-Cookie: PHPSESSID=1111; path=/\nSet-Cookie: a=b"),
        "/debug" | "/x/debug" => {
            format!("{page}\nX-Magento-Debug: 1\nX-Powered-By: PHP\nLink: <a>; rel=b")
        }
        "/big" => {
            let tags: String = (0..18_000).map(|number| format!("cat_p_{number},")).collect();
            assert!(tags.len() > 200_000, "{}", tags.len());
            format!("{PUBLIC}\n{HTML}\nX-Magento-Tags: {tags}last")
        }
        _ => page,
    };
    ("200 OK", fields)
}

fn conf(app: &TestUpstream, more: &str) -> String {
    let (prelude, at) = (prelude(2), app.address());
    format!(
        "{prelude}http {{{TYPES} {more}
         server {{ {LISTEN} magento_cache on; cache_status on;
             location / {{ proxy_pass http://{at}; proxy_set_header Host $http_host; }} }} }}\n"
    )
}

fn serve(app: &TestUpstream) -> TestServer {
    TestServer::start(Home::new(BOLIDE), &conf(app, ""))
}

fn get(server: &TestServer, path: &str, fields: &str) -> Response {
    server.connect().get(path, &format!("{fields}Connection: close\r\n"))
}

fn debug(reply: &Response) -> &str {
    reply.header("x-magento-cache-debug").unwrap_or("-")
}

/// The words that two requests get.
fn twice(server: &TestServer, path: &str, fields: &str) -> [String; 2] {
    [0; 2].map(|_| debug(&get(server, path, fields)).to_owned())
}

/// A `PURGE` as Magento's client sends it.
fn purge(server: &TestServer, fields: &str) -> Response {
    server
        .connect()
        .ask(&format!("PURGE / HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}Connection: close\r\n\r\n"))
}

/// Purges tags in fields as long as Magento's client makes them; how many that were.
fn purge_tags(server: &TestServer, tags: &[String]) -> usize {
    let mut batches = vec![String::new()];
    for tag in tags {
        let pattern = format!("((^|,){tag}(,|$))");
        if batches.last().unwrap().len() + pattern.len() + 1 > BATCH {
            batches.push(String::new());
        }
        let batch = batches.last_mut().unwrap();
        if !batch.is_empty() {
            batch.push('|');
        }
        batch.push_str(&pattern);
    }
    for batch in &batches {
        let reply = purge(server, &format!("X-Magento-Tags-Pattern: {batch}\r\n"));
        assert_eq!((reply.status, &*reply.text()), (200, "Purged"));
    }
    batches.len()
}

fn purge_tag(server: &TestServer, tag: &str) {
    assert_eq!(purge_tags(server, &[tag.to_owned()]), 1);
}

#[test]
fn a_page_is_cached_for_all_and_clients_do_not_store_it() {
    let app = shop();
    let server = serve(&app);
    assert_eq!(twice(&server, "/a", ""), ["MISS", "HIT"]);
    // Cookies and passwords do not prevent a look-up.
    let named =
        "Cookie: PHPSESSID=0123456789abcdef0123; form_key=x\r\nAuthorization: Basic eA==\r\n";
    assert_eq!(debug(&get(&server, "/a", named)), "HIT");
    assert_eq!(app.count("/a"), 1);
    for _ in 0..4 {
        let reply = get(&server, "/debug", "");
        assert_eq!(reply.header("cache-control"), Some(NO_STORE));
        assert_eq!(
            (reply.header("pragma"), reply.header("expires")),
            (Some("no-cache"), Some("-1"))
        );
        for name in
            ["x-magento-tags", "x-magento-debug", "x-powered-by", "link", "x-litespeed-cache"]
        {
            assert_eq!(reply.header(name), None, "{name}");
        }
        let said = reply.header("x-magento-cache-control").unwrap();
        assert_eq!(said, "public, max-age=86400, s-maxage=86400");
    }
    assert_eq!(get(&server, "/a", "").header("age"), None);
    let private = get(&server, "/private", "");
    assert_eq!(private.header("cache-control"), Some("private, max-age=60"));
}

#[test]
fn fields_that_reveal_the_stack_are_removed_unless_configured() {
    let app = shop();
    let wanting = "location /debug { magento_cache_hide off; proxy_pass http://APP; }";
    let text = conf(&app, "").replace("location / {", &format!("{wanting} location / {{"));
    let text = text.replace("APP", &app.address());
    let server = TestServer::start(Home::new(BOLIDE), &text);
    for _ in 0..2 {
        let reply = get(&server, "/debug", "");
        assert_eq!(reply.header("link"), Some("<a>; rel=b"));
        assert_eq!(reply.header("x-powered-by"), None, "that is never of use to a client");
        assert_eq!(get(&server, "/x/debug", "").header("link"), None);
    }
}

#[test]
fn the_order_of_arguments_and_marketing_make_no_other_page() {
    let app = shop();
    let server = serve(&app);
    let first = get(&server, "/a?p=2&color=7&utm_source=mail&gclid=x", "");
    assert!(first.text().contains("target=/a?color=7&p=2 "), "{}", first.text());
    for query in ["color=7&p=2", "p=2&color=7", "fbclid=1&p=2&mc_cid=2&color=7&hsa_acc=1"] {
        assert_eq!(get(&server, &format!("/a?{query}"), "").text(), first.text(), "{query}");
    }
    assert_eq!(twice(&server, "/a?p=3", ""), ["MISS", "HIT"]);
    assert_eq!(twice(&server, "/a?utm_campaign=x", ""), ["MISS", "HIT"]);
    assert_eq!(app.count("/a"), 1, "nothing is left of that query");
    // What passes before arguments are cut keeps them, in order.
    let passed = get(&server, "/customer/a?utm_source=x&b=1", "").text();
    assert!(passed.contains("target=/customer/a?b=1&utm_source=x "), "{passed}");
}

#[test]
fn private_pages_bypass_the_cache() {
    let app = shop();
    let server = serve(&app);
    for path in [
        "/customer/account",
        "/checkout/cart",
        "/%63heckout/cart",
        "/a?from=/customer",
        "/health_check.php",
        "/pub/health_check.php",
        "/media/a.png",
        "/pub/static/a.js",
        "/private",
        "/no-store",
        "/missing",
        "/broken",
    ] {
        assert_eq!(twice(&server, path, ""), ["UNCACHEABLE"; 2], "{path}");
    }
    let published = get(&server, "/media/a.png", "");
    assert_eq!(published.header("cache-control"), Some("public, max-age=86400, s-maxage=86400"));
    for method in ["POST", "DELETE", "PROPFIND"] {
        let reply = server.connect().ask(&format!(
            "{method} /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n"
        ));
        assert_eq!((reply.status, debug(&reply)), (200, "UNCACHEABLE"), "{method}");
    }
    // A response that says nothing is kept for two minutes.
    let silent = get(&server, "/silent", "");
    assert!(
        silent.header("cache-status").unwrap().contains("ttl=120"),
        "{:?}",
        silent.header("cache-status")
    );
    assert_eq!(debug(&get(&server, "/silent", "")), "HIT");
}

#[test]
fn cookies_of_a_page_for_all_reach_no_client() {
    let app = shop();
    let server = serve(&app);
    for word in ["MISS", "HIT"] {
        let reply = get(&server, "/cookie", "");
        assert_eq!((debug(&reply), reply.header("set-cookie")), (word, None));
    }
    let own = get(&server, "/customer/login/gold", "Cookie: PHPSESSID=one\r\n");
    assert!(own.header("set-cookie").unwrap().starts_with("X-Magento-Vary=sha-gold"));
}

#[test]
fn a_login_changes_the_variant_and_no_visitor_gets_anothers() {
    let app = shop();
    let server = serve(&app);
    let visitors = ["", "gold", "silver"];
    for group in &visitors[1..] {
        get(
            &server,
            &format!("/customer/login/{group}"),
            &format!("Cookie: PHPSESSID=s-{group}\r\n"),
        );
    }
    // What a browser sends: its session, and its own variant, another's, or none.
    for round in 0..3 {
        for group in visitors {
            for variant in visitors {
                let session = format!("PHPSESSID=s-{group}");
                let vary = match variant {
                    "" => String::new(),
                    variant => format!("; X-Magento-Vary=sha-{variant}"),
                };
                let reply = get(&server, "/audience", &format!("Cookie: {session}{vary}\r\n"));
                let text = reply.text();
                let got = text.split(' ').find_map(|word| word.strip_prefix("group=")).unwrap();
                // The variant that was asked for, or the visitor's own if none was kept.
                let is_asked = got == variant;
                let is_own = got == group && debug(&reply) == "UNCACHEABLE";
                assert!(is_asked || is_own, "{round}: {group} asked for {variant:?}: {text}");
                if got != variant {
                    assert!(reply.header("set-cookie").is_some(), "{group} gets its variant");
                }
            }
        }
    }
    for group in visitors {
        let vary =
            if group.is_empty() { String::new() } else { format!("; X-Magento-Vary=sha-{group}") };
        let reply = get(&server, "/audience", &format!("Cookie: PHPSESSID=s-{group}{vary}\r\n"));
        assert_eq!(debug(&reply), "HIT", "{group}");
        assert!(reply.text().contains(&format!("group={group} ")), "{}", reply.text());
    }
}

#[test]
fn graphql_requests_are_keyed_by_cache_id_store_and_currency() {
    let app = shop();
    let server = serve(&app);
    let bearer = "Authorization: Bearer x\r\n";
    let id = "X-Magento-Cache-Id: one\r\n";
    assert_eq!(twice(&server, "/graphql?q=1", bearer), ["UNCACHEABLE"; 2], "a token alone passes");
    assert_eq!(twice(&server, "/graphql?q=1", id), ["MISS", "HIT"]);
    assert_eq!(twice(&server, "/graphql?q=1", &format!("{id}{bearer}")), ["MISS", "HIT"]);
    assert_eq!(twice(&server, "/graphql?q=1", &format!("{id}Store: de\r\n")), ["MISS", "HIT"]);
    let currency = format!("{id}Content-Currency: EUR\r\n");
    assert_eq!(twice(&server, "/graphql?q=1", &currency), ["MISS", "HIT"]);
    assert_eq!(twice(&server, "/graphql?q=1", ""), ["MISS", "HIT"]);
    let moved = twice(&server, "/graphql?q=moved", id);
    assert_eq!(moved, ["UNCACHEABLE"; 2], "a response for another identifier is not kept");
    // With an identifier the cookie says nothing more.
    let both = format!("{id}Cookie: X-Magento-Vary=sha-x\r\n");
    assert_eq!(debug(&get(&server, "/graphql?q=1", &both)), "HIT");
}

#[test]
fn tags_are_purged_one_by_one_and_all_at_once() {
    let app = shop();
    let server = serve(&app);
    let fill = || {
        for path in ["/p_1", "/p_11", "/c_1"] {
            get(&server, path, "");
            assert_eq!(debug(&get(&server, path, "")), "HIT", "{path}");
        }
    };
    let state = || ["/p_1", "/p_11", "/c_1"].map(|path| debug(&get(&server, path, "")).to_owned());
    fill();
    purge_tag(&server, "cat_p_1");
    assert_eq!(state(), ["MISS", "HIT", "HIT"]);
    let tags: Vec<String> = (1..2000).map(|number| format!("cat_p_{number}")).collect();
    assert!(purge_tags(&server, &tags) > 5);
    assert_eq!(state(), ["MISS", "MISS", "HIT"]);
    purge_tag(&server, "FPC");
    assert_eq!(state(), ["MISS"; 3]);
    for fields in [
        "X-Magento-Tags-Pattern: .*\r\n",
        "X-Pool: web1\r\n",
        "X-Magento-Tags-Pattern: (^|,)cat_.*\r\n",
    ] {
        fill();
        assert_eq!(purge(&server, fields).status, 200);
        assert_eq!(state(), ["MISS"; 3], "{fields}");
    }
    for (fields, expected) in [
        ("X-Magento-Tags-Pattern: (^|,)cat_p_[0-9]+(,|$)\r\n", ["MISS", "MISS", "HIT"]),
        ("X-Magento-Tags-Pattern: cat_c\r\n", ["HIT", "HIT", "MISS"]),
        ("X-Pool: web2\r\n", ["HIT"; 3]),
        ("X-Pool: ^web\r\nX-Magento-Tags-Pattern: nothing\r\n", ["MISS"; 3]),
    ] {
        fill();
        // The same one as often as a deployment may send it.
        for _ in 0..100 {
            assert_eq!(purge(&server, fields).status, 200);
        }
        assert_eq!(state(), expected, "{fields}");
        assert_eq!(state(), ["HIT"; 3], "what came since is not hit: {fields}");
    }
    assert_eq!(purge(&server, "X-Magento-Tags-Pattern: (\r\n").status, 400);
    assert_eq!(state(), ["HIT"; 3]);
}

#[test]
fn a_purge_without_a_field_or_from_elsewhere_drops_nothing() {
    let app = shop();
    let server = serve(&app);
    get(&server, "/a", "");
    for fields in ["", "X-Magento-Purge-Soft: 1\r\n", "X-Ban-Url: /a\r\n"] {
        assert_eq!(purge(&server, fields).status, 400, "{fields:?}");
    }
    // A proxy on this machine may speak for any client.
    let all = "X-Magento-Tags-Pattern: .*\r\n";
    let handed_on = purge(&server, &format!("{all}X-Forwarded-For: 192.0.2.1\r\n"));
    assert_eq!((handed_on.status, &*handed_on.text()), (405, "Method not allowed"));
    assert_eq!(debug(&get(&server, "/a", "")), "HIT");
    let closed = conf(&app, "page_cache_purge_allow 192.0.2.1;");
    let closed = TestServer::start(Home::new(BOLIDE), &closed);
    get(&closed, "/a", "");
    let refused = purge(&closed, all);
    assert_eq!((refused.status, &*refused.text()), (405, "Method not allowed"));
    assert_eq!(debug(&get(&closed, "/a", "")), "HIT");
}

#[test]
fn a_soft_purge_serves_the_old_page_while_a_new_one_comes() {
    let app = shop();
    let server = serve(&app);
    let old = get(&server, "/p_1", "").text();
    let soft = "X-Magento-Tags-Pattern: ((^|,)cat_p_1(,|$))\r\nX-Magento-Purge-Soft: 1\r\n";
    assert_eq!(purge(&server, soft).status, 200);
    let stale = get(&server, "/p_1", "");
    assert_eq!(
        (stale.text(), stale.header("grace")),
        (old.clone(), Some("normal (healthy server)"))
    );
    wait_until("the new page", || {
        let reply = get(&server, "/p_1", "");
        reply.text() != old && reply.header("grace").is_none() && debug(&reply) == "HIT"
    });
}

#[test]
fn a_page_outlives_its_time_and_its_application() {
    let app = shop();
    let server = serve(&app);
    let first = get(&server, "/short", "").text();
    wait_until("the page to be too old", || {
        get(&server, "/short", "").header("grace") == Some("normal (healthy server)")
    });
    wait_until("a new page", || get(&server, "/short", "").text() != first);
    // Beyond the time that a healthy application is given, the page serves only while it fails.
    let strict = conf(&app, "page_cache_stale 0s error=3d;");
    let strict = TestServer::start(Home::new(BOLIDE), &strict);
    get(&strict, "/short", "");
    app.vanish();
    wait_until("the page to be too old", || {
        let reply = get(&strict, "/short", "");
        assert_eq!(reply.status, 200);
        reply.header("grace") == Some("unlimited (unhealthy server)")
    });
    assert_eq!(get(&strict, "/never-kept", "").status, 502);
}

#[test]
fn a_page_may_have_200_kilobytes_of_tags() {
    let app = shop();
    let server = serve(&app);
    for tag in ["cat_p_17999", "cat_p_0", "last"] {
        assert_eq!(twice(&server, "/big", ""), ["MISS", "HIT"], "{tag}");
        purge_tag(&server, "cat_p_18000");
        assert_eq!(debug(&get(&server, "/big", "")), "HIT");
        purge_tag(&server, tag);
    }
    assert_eq!(debug(&get(&server, "/big", "")), "MISS");
}

#[test]
fn blocks_come_from_this_server_whatever_scheme_they_are_named_by() {
    let app = shop();
    let server = serve(&app);
    let block = "target=/page_cache/block/esi/blocks/";
    let first = get(&server, "/esi", "").text();
    assert!(first.contains(block) && first.contains("<!-- BLOCK own -->own"), "{first}");
    let reply = get(&server, "/esi", "");
    assert_eq!((debug(&reply), reply.text()), ("HIT", first));
    assert_eq!(reply.header("cache-control"), Some(NO_STORE));
    let blocks = app.all().iter().filter(|asked| asked.target().contains("/esi/blocks/")).count();
    assert_eq!(blocks, 1, "a block is kept as a page of its own");
}

#[test]
fn a_purge_that_was_answered_outlives_kill_9() {
    let app = shop();
    let stored = conf(&app, "page_cache_path @DIR@/cache;");
    let mut server = TestServer::start(Home::new(BOLIDE), &stored);
    for fields in [
        "X-Magento-Tags-Pattern: ((^|,)cat_p_1(,|$))\r\n",
        "X-Magento-Tags-Pattern: .*\r\n",
        "X-Magento-Tags-Pattern: cat_[p]_1\r\n",
        "X-Pool: web.\r\n",
    ] {
        get(&server, "/p_1", "");
        let kept = get(&server, "/p_1", "").text();
        wait_until("the page is a file", || {
            ask(&server, &["cache", "list", "--url", "/p_1"]).text().contains("and on disk")
        });
        server.restart("KILL");
        assert_eq!(get(&server, "/p_1", "").text(), kept, "the file serves");
        assert_eq!(purge(&server, fields).status, 200);
        server.restart("KILL");
        assert_ne!(get(&server, "/p_1", "").text(), kept, "{fields} did not hold");
        purge(&server, "X-Magento-Tags-Pattern: .*\r\n");
    }
}

#[test]
fn a_purge_reaches_every_server_of_magento_and_no_other() {
    let app = shop();
    let at = app.address();
    let server = TestServer::start(
        Home::new(BOLIDE),
        &format!(
            "{}http {{{TYPES}
             server {{ listen 127.0.0.1:@HTTP@; server_name localhost; magento_cache on;
                 location / {{ proxy_pass http://{at}; }} }}
             server {{ listen 127.0.0.1:@HTTP@; server_name second.test; root /srv/second;
                 magento_cache on;
                 location / {{ proxy_pass http://{at}; }} }}
             server {{ listen 127.0.0.1:@HTTP@; server_name third.test; root /srv/third;
                 page_cache auto;
                 page_cache_status_header on; location / {{ proxy_pass http://{at}; }} }} }}\n",
            prelude(1)
        ),
    );
    let from = |host: &str| {
        let head = format!("GET /p_1 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        server.connect().ask(&head)
    };
    for _ in 0..2 {
        for host in ["localhost", "second.test", "third.test"] {
            from(host);
        }
    }
    purge_tag(&server, "cat_p_1");
    assert_eq!(debug(&from("localhost")), "MISS");
    assert_eq!(debug(&from("second.test")), "MISS");
    assert_eq!(from("third.test").header("x-cache"), Some("HIT"));
}
