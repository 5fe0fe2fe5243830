//! Purges that come while a response is on its way, whose parts are stored under keys of their own:
//! an acknowledged purge counts for them, too. And who may get parts of a response.

use bolide_testkit::origin::{TestUpstream, answer};
use bolide_testkit::server::LISTEN;
use bolide_testkit::{TestApp, TestServer, wait_until};

use crate::http;
use crate::key_collisions::{get, page};

/// The `fastcgi_param` lines that Bolide ships.
const PARAMS: &str = concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/fastcgi.conf;");
const ESI: &str = "X-LiteSpeed-Cache-Control: public,max-age=60,esi=on\nContent-Type: text/html";
/// The session of a visitor.
const VISITOR: &str = "Cookie: PHPSESSID=alicealicealice1\r\n";

fn serve(app: &TestApp, more: &str) -> TestServer {
    http(&format!(
        "page_cache auto; server {{ {LISTEN} page_cache_stale off; {more}
             location / {{ {PARAMS} fastcgi_pass {}; }} }}",
        app.address()
    ))
}

/// Requests `path`, and purges by an application's response while it is on its way.
fn purge_meanwhile(app: &TestApp, server: &TestServer, (path, held): (&str, &str), order: &str) {
    app.plan("/order", vec![page(&format!("X-LiteSpeed-Purge: {order}"), "")]);
    let before = app.count(held);
    app.hold(held);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| get(server, path, VISITOR));
        wait_until("the request to arrive", || app.count(held) > before);
        assert_eq!(server.connect().get("/order", VISITOR).status, 200);
        app.release();
        assert!(!first.join().unwrap().is_empty(), "{path} {order}");
    });
}

#[test]
fn inlines_are_as_old_as_the_request_for_their_page() {
    let app = TestApp::start();
    let server = serve(&app, "");
    for (number, (scope, order)) in [
        ("public", "tag=menu"),
        ("public", "*"),
        ("public", "/part"),
        ("private", "private,tag=menu"),
        ("private", "private,*"),
        ("private", "private,/part"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/page{number}");
        let text = format!(
            "<esi:inline name=\"/part\" cache-control=\"{scope},max-age=60\" cache-tag=\"menu\">\
             old</esi:inline>[<esi:include src=\"/part\"/>]"
        );
        // `*` purges the page itself.
        app.plan(&path, vec![page(ESI, &text), page(ESI, &text.replace("old", "new"))]);
        app.plan("/part", vec![page("X-LiteSpeed-Cache-Control: no-cache", "new")]);
        purge_meanwhile(&app, &server, (&path, &path), order);
        assert!(!get(&server, &path, VISITOR).contains("old"), "{scope} {order}");
    }
}

#[test]
fn parts_of_a_combined_response_are_as_old_as_its_request() {
    let app = TestApp::start();
    let server = serve(&app, "");
    let include = "<esi:include src=\"/part\" cache-control=\"public\" combine=\"sub\"/>";
    let text = format!("[<esi:include src=\"/all\" combine=\"main\"/>{include}]");
    let part = "<esi:inline name=\"/part\" cache-control=\"public,max-age=60\" cache-tag=\"menu\">\
                old</esi:inline>";
    for (number, order) in ["tag=menu", "/part", "tag=all"].into_iter().enumerate() {
        let path = format!("/page{number}");
        app.plan(&path, vec![page(ESI, &text)]);
        app.plan(
            "/all",
            vec![page("Content-Type: text/html\nX-LiteSpeed-Cache-Control: no-cache", part)],
        );
        app.plan("/part", vec![page("X-LiteSpeed-Cache-Control: no-cache", "single")]);
        // The includes of a stored page are known.
        assert_eq!(get(&server, &path, VISITOR), "[single]");
        let order = if order == "tag=all" { "*" } else { order };
        purge_meanwhile(&app, &server, (&path, "/all"), order);
        app.plan("/all", vec![page("Content-Type: text/html", &part.replace("old", "new"))]);
        assert!(!get(&server, &path, VISITOR).contains("old"), "{order}");
        assert_eq!(server.connect().get("/order", VISITOR).status, 200);
    }
}

#[test]
fn a_private_page_that_was_purged_meanwhile_is_not_stored() {
    let app = TestApp::start();
    let server = serve(&app, "");
    let head = "X-LiteSpeed-Cache-Control: private,max-age=60";
    for (number, order) in ["private,/page0", "private,*"].into_iter().enumerate() {
        let path = format!("/page{number}");
        app.plan(&path, vec![page(head, "old"), page(head, "new")]);
        purge_meanwhile(&app, &server, (&path, &path), order);
        assert_eq!(get(&server, &path, VISITOR), "new", "{order}");
    }
}

/// ESI is what the body is, whichever field says how long it may be stored.
#[test]
fn markup_is_assembled_whatever_says_how_long_it_may_be_stored() {
    let app = TestApp::start();
    let surrogate = "Surrogate-Control: content=\"ESI/1.0\"\nContent-Type: text/html";
    let text = "<esi:inline name=\"/part\" cache-control=\"private,max-age=60\">for alice\
                </esi:inline>[<esi:include src=\"/part\"/>]";
    for (more, head) in [
        ("", "CDN-Cache-Control: max-age=60"),
        ("", "Bolide-Cache-Control: max-age=60"),
        ("", "X-LiteSpeed-Cache-Control: public,max-age=60"),
        ("page_cache on; fastcgi_ignore_headers Cache-Control;", ""),
    ] {
        let server = serve(&app, more);
        app.plan("/page", vec![page(format!("{surrogate}\n{head}").trim(), text)]);
        app.plan("/part", vec![page("X-LiteSpeed-Cache-Control: no-cache", "fetched")]);
        assert_eq!(get(&server, "/page", VISITOR), "[for alice]", "{head}");
        for _ in 0..2 {
            assert_eq!(get(&server, "/page", "Cookie: PHPSESSID=b\r\n"), "[fetched]", "{head}");
        }
    }
}

/// RFC 9111 §3.5 for both fields: a lifetime alone does not make it public.
#[test]
fn responses_for_authenticated_users_are_public_only_if_they_say_so() {
    let app = TestApp::start();
    let server = serve(&app, "page_cache on;");
    for (number, (head, is_kept)) in [
        ("max-age=60", false),
        ("esi=on", false),
        ("public,max-age=60", true),
        ("s-maxage=60", true),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/page{number}");
        let head = format!("X-LiteSpeed-Cache-Control: {head}");
        app.plan(&path, vec![page(&head, "for alice"), page(&head, "for bob")]);
        let ask = |user: &str| get(&server, &path, &format!("Authorization: Bearer {user}\r\n"));
        assert_eq!(ask("alice"), "for alice", "{head}");
        assert_eq!(ask("bob"), if is_kept { "for alice" } else { "for bob" }, "{head}");
    }
}

/// The settings of the page make the keys of its inlines, not those of the place of the fragment.
#[test]
fn inlines_are_found_where_settings_differ() {
    let (app, text) = (
        TestApp::start(),
        "<esi:inline name=\"/part?a=1&utm=2\" cache-control=\"public,max-age=60\">inline\
         </esi:inline>[<esi:include src=\"/part?a=1&utm=2\"/>]",
    );
    let pass = format!("{PARAMS} fastcgi_pass {};", app.address());
    for more in [
        "page_cache_key K$request_uri;".to_owned(),
        format!("location /part {{ page_cache_drop_query utm; {pass} }}"),
        format!("page_cache_vary cookie=x; location /part {{ page_cache_vary cookie=y; {pass} }}"),
        format!("location /part {{ page_cache_vary value=z; {pass} }}"),
        format!("location /part {{ page_cache_key K$request_uri; {pass} }}"),
        format!("location /page {{ page_cache_key K$request_uri; {pass} }}"),
    ] {
        let server = serve(&app, &more);
        app.plan("/page", vec![page(ESI, text)]);
        for _ in 0..2 {
            assert_eq!(get(&server, "/page", ""), "[inline]", "{more}");
        }
    }
}

#[test]
fn a_location_that_only_purges_purges_for_each_family() {
    let origin = TestUpstream::start();
    let app = TestApp::start();
    let server = http(&format!(
        "proxy_cache_path @DIR@/p keys_zone=p:1m; fastcgi_cache_path @DIR@/f keys_zone=f:1m;
         server {{ {LISTEN}
             location /p/ {{ proxy_cache p; proxy_cache_key $uri; proxy_cache_valid 1h;
                 proxy_pass http://{}; }}
             location /f/ {{ fastcgi_cache f; fastcgi_cache_key $uri; fastcgi_cache_valid 1h;
                 {PARAMS} fastcgi_pass {}; }}
             location ~ ^/purge(/p/.*) {{ proxy_cache_purge p $1; }}
             location ~ ^/purge(/f/.*) {{ fastcgi_cache_purge f $1; }} }}",
        origin.address(),
        app.address()
    ));
    origin.say("/p/x", answer("", "old"));
    app.plan("/f/x", vec![page("Content-Type: text/plain", "old"), page("", "new")]);
    for path in ["/p/x", "/f/x"] {
        assert_eq!(get(&server, path, ""), "old");
        origin.say("/p/x", answer("", "new"));
        assert_eq!(get(&server, path, ""), "old", "{path}");
        assert_eq!(server.get(&format!("/purge{path}")).status, 200, "{path}");
        assert_eq!(get(&server, path, ""), "new", "{path}");
    }
}

/// The application did what the client requested, whether the client waits for the response or not.
#[test]
fn purges_of_a_request_whose_client_leaves_are_carried_out() {
    let app = TestApp::start();
    let server = serve(&app, "");
    app.plan("/page", vec![page(ESI, "old"), page(ESI, "new")]);
    app.plan("/post", vec![page("X-LiteSpeed-Purge: /page", "")]);
    assert_eq!(
        (get(&server, "/page", ""), get(&server, "/page", "")),
        ("old".into(), "old".into())
    );
    app.hold("/post");
    let mut client = server.connect();
    client.send("POST /post HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\na=b");
    wait_until("the request to arrive", || app.count("/post") > 0);
    drop(client);
    wait_until("the server to notice", || server.error_log().contains("prematurely closed"));
    app.release();
    wait_until("the page to be purged", || get(&server, "/page", "") == "new");
}

/// What is for all may lie in a page that is not: its purges name no session.
#[test]
fn public_inlines_of_private_pages_are_reached_by_public_purges() {
    let app = TestApp::start();
    let server = serve(&app, "");
    let head = "X-LiteSpeed-Cache-Control: private,max-age=60,esi=on\nContent-Type: text/html";
    let text = "<esi:inline name=\"/part\" cache-control=\"public,max-age=60\" cache-tag=\"menu\">\
                old</esi:inline>[<esi:include src=\"/part\"/>]";
    for (number, order) in ["tag=menu", "/part"].into_iter().enumerate() {
        let path = format!("/page{number}");
        app.plan(&path, vec![page(head, text)]);
        app.plan("/part", vec![page("X-LiteSpeed-Cache-Control: no-cache", "new")]);
        for _ in 0..2 {
            assert_eq!(get(&server, &path, VISITOR), "[old]", "{order}");
        }
        app.plan("/order", vec![page(&format!("X-LiteSpeed-Purge: {order}"), "")]);
        assert_eq!(server.get("/order").status, 200);
        assert_eq!(get(&server, &path, VISITOR), "[new]", "{order}");
    }
}
