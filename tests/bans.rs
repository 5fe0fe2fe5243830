//! Bans: `BAN` requests as plugins send them to Varnish, `X-Purge-Method: regex`, and
//! `bolide cache ban`. A ban hits what is older, in memory and on disk, and nothing else.

use bolide_testkit::server::{Home, LISTEN, TYPES, prelude};
use bolide_testkit::{Response, TestApp, TestServer, wait_until};

use crate::BOLIDE;
use crate::explain::ask;

const PUBLIC: &str = "X-LiteSpeed-Cache-Control: public,max-age=3600";
const PAGES: [&str; 5] = ["/shop/1", "/shop/2", "/blog/1", "/blog/2", "/gone"];

/// A site with pages of two hosts, tags, types and statuses, that are also on disk.
fn serve(app: &TestApp) -> TestServer {
    app.say("/shop/1", &format!("{PUBLIC}\nX-Cache-Tags: shop,node-1\nX-Area: shop"));
    app.say("/shop/2", &format!("{PUBLIC}\nX-Cache-Tags: shop,node-12\nX-Area: shop"));
    app.say("/blog/1", &format!("{PUBLIC}\nX-Cache-Tags: blog\nContent-Type: text/css"));
    app.say("/blog/2", &format!("{PUBLIC}\nX-Cache-Tags: blog"));
    app.say("/gone", &format!("Status: 404 Not Found\n{PUBLIC}"));
    let (prelude, address) = (prelude(2), app.address());
    let conf = format!(
        "{prelude}http {{{TYPES} page_cache_path @DIR@/cache;
         server {{ {LISTEN} server_name localhost a.test; location / {{
             fastcgi_param REQUEST_URI $request_uri; fastcgi_param REQUEST_METHOD $request_method;
             fastcgi_pass {address}; page_cache auto; }} }} }}\n"
    );
    TestServer::start(Home::new(BOLIDE), &conf)
}

fn get(server: &TestServer, host: &str, path: &str) -> Response {
    let text = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    server.connect().ask(&text)
}

fn request(server: &TestServer, line: &str, fields: &str) -> Response {
    let text = format!("{line} HTTP/1.1\r\nHost: localhost\r\n{fields}Connection: close\r\n\r\n");
    server.connect().ask(&text)
}

/// Fills all pages.
fn fill(server: &TestServer) {
    PAGES.iter().for_each(|page| drop(get(server, "localhost", page)));
}

/// The pages that are not in the cache any more.
fn missing(server: &TestServer) -> Vec<&'static str> {
    let is_miss = |page: &&&str| {
        get(server, "localhost", page).header("x-litespeed-cache").is_none_or(|said| said != "hit")
    };
    PAGES.iter().filter(is_miss).copied().collect()
}

#[test]
fn a_ban_matches_only_objects_that_its_fields_select() {
    let app = TestApp::start();
    let server = serve(&app);
    for (line, fields, hit) in [
        ("BAN /shop/1", "", &["/shop/1"][..]),
        ("BAN /", "X-Ban-Url: ^/shop/\r\n", &["/shop/1", "/shop/2"]),
        (
            "BAN /",
            "X-Host: ^localhost$\r\nX-Url: ^/blog\r\nX-Content-Type: .*\r\n",
            &["/blog/1", "/blog/2"],
        ),
        ("BAN /", "X-Content-Type: ^text/css\r\nX-Url: .*\r\n", &["/blog/1"]),
        ("BAN /", "X-Host: ^b\\.test$\r\n", &[]),
        (
            "BAN /",
            "X-Cache-Tags: (^|,)(node\\-1|blog)(,|$)\r\n",
            &["/shop/1", "/blog/1", "/blog/2"],
        ),
        ("BAN /", "Cache-Tags: node-1\r\n", &["/shop/1", "/shop/2"]),
        ("BAN /", "X-Ban: obj.status == 404\r\n", &["/gone"]),
        (
            "BAN /",
            "X-Ban: req.url ~ ^/shop && obj.http.x-area == shop && req.url !~ 2$\r\n",
            &["/shop/1"],
        ),
        ("PURGE /blog/.*", "X-Purge-Method: regex\r\n", &["/blog/1", "/blog/2"]),
    ] {
        fill(&server);
        assert_eq!(missing(&server), [""; 0], "before {line} {fields}");
        let reply = request(&server, line, fields);
        assert_eq!(reply.status, 200, "{line} {fields}: {}", reply.text());
        assert_eq!(missing(&server), hit, "{line} {fields}");
    }
}

#[test]
fn a_ban_that_is_not_understood_or_not_allowed_drops_nothing() {
    let app = TestApp::start();
    let server = serve(&app);
    fill(&server);
    for (fields, why) in [
        ("X-Ban-Method: GET\r\n", "the field \"X-Ban-Method\" is not understood"),
        ("X-Ban: req.http.cookie ~ a\r\n", "\"req.http.cookie\" cannot be banned by"),
        ("X-Ban: obj.http.xkey ~ a\r\n", "\"xkey\" is not stored"),
        ("X-Ban-Url: (\r\n", "not a ban: \"(\""),
        ("X-Cache-Tags: (\r\n", "not a ban: "),
    ] {
        let reply = request(&server, "BAN /", fields);
        assert_eq!(reply.status, 400, "{fields}");
        assert!(reply.text().starts_with("Nothing is purged: "), "{}", reply.text());
        assert!(reply.text().contains(why), "{}", reply.text());
    }
    let behind_a_proxy =
        request(&server, "BAN /", "X-Ban-Url: .*\r\nX-Forwarded-For: 192.0.2.1\r\n");
    assert_eq!(behind_a_proxy.status, 403);
    assert_eq!(missing(&server), [""; 0]);
}

#[test]
fn a_ban_by_command_hits_files_too_and_outlives_the_process() {
    let app = TestApp::start();
    let mut server = serve(&app);
    fill(&server);
    for page in PAGES {
        wait_until("the page is a file", || {
            ask(&server, &["cache", "list", "--url", page]).text().contains("and on disk")
        });
    }
    let ban = ["cache", "ban", "req.url", "~", "^/shop/", "&&", "obj.status", "==", "200"];
    assert_eq!(ask(&server, &ban).succeeded().text(), "ban added: 1 site\n");
    let listed = ask(&server, &["cache", "bans"]).succeeded().text();
    assert!(listed.ends_with("  dead  req.url ~ ^/shop/ && obj.status == 200\n"), "{listed}");
    let json = ask(&server, &["cache", "bans", "--json"]).succeeded().text();
    assert!(json.contains("\"condition\":\"req.url ~ ^/shop/ && obj.status == 200\""), "{json}");
    let tags = request(&server, "BAN /", "X-Cache-Tags: ^blo\r\n");
    assert_eq!(tags.header("x-purged-objects"), Some("2"));
    server.restart("KILL");
    assert_eq!(missing(&server), ["/shop/1", "/shop/2", "/blog/1", "/blog/2"]);
    let wrong = ask(&server, &["cache", "ban", "req.url", "=", "/"]).to_string();
    assert!(wrong.contains("not a ban: \"=\" is none of the operators"), "{wrong}");
}

#[test]
fn objects_of_a_soft_ban_are_served_stale_during_the_refresh() {
    let app = TestApp::start();
    let server = serve(&app);
    fill(&server);
    let old = get(&server, "localhost", "/shop/1").text();
    let soft = ["cache", "ban", "--stale", "req.url == /shop/1"];
    assert_eq!(ask(&server, &soft).succeeded().text(), "ban added: 1 site\n");
    assert_eq!(get(&server, "localhost", "/shop/1").text(), old, "stale, and renewed behind it");
    wait_until("the new page", || get(&server, "localhost", "/shop/1").text() != old);
}
