//! Pages and requests that look alike and are not: what keys must keep apart where two features of
//! the cache meet, and what a 304 must not change.

use bolide_testkit::app::AppSaid;
use bolide_testkit::origin::{TestUpstream, answer, answer_of};
use bolide_testkit::server::LISTEN;
use bolide_testkit::{Proto, Response, TestApp, TestServer};

use crate::http;

/// The `fastcgi_param` lines that Bolide ships.
const PARAMS: &str = concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/fastcgi.conf;");
const ESI: &str = "X-LiteSpeed-Cache-Control: public,max-age=60,esi=on\nContent-Type: text/html";

/// A page cache before `app`, with more directives in its server.
fn serve(app: &TestApp, more: &str) -> TestServer {
    http(&format!(
        "server {{ {LISTEN} page_cache auto; page_cache_stale off; {more}
             location / {{ {PARAMS} fastcgi_pass {}; }} }}",
        app.address()
    ))
}

pub(crate) fn page(head: &str, body: &str) -> AppSaid {
    AppSaid::head(head).body(body.as_bytes())
}

pub(crate) fn get(server: &TestServer, path: &str, fields: &str) -> String {
    server.connect().get(path, fields).text()
}

fn purge(server: &TestServer, path: &str, fields: &str) -> Response {
    server.connect().ask(&format!("PURGE {path} HTTP/1.1\r\nHost: localhost\r\n{fields}"))
}

#[test]
fn a_fragment_that_varies_is_found_by_requests_for_its_url() {
    let app = TestApp::start();
    let server = serve(&app, "");
    let include = "<esi:include src=\"/part\" cache-control=\"public,no-vary\"/>";
    app.plan("/page", vec![page(ESI, include)]);
    app.plan("/part", vec![page("Cache-Control: max-age=60\nVary: X-Lang", "part")]);
    for _ in 0..2 {
        assert_eq!(get(&server, "/page", ""), "part");
        assert_eq!(get(&server, "/part", ""), "part");
        assert_eq!(get(&server, "/part", "X-Lang: de\r\n"), "part");
    }
}

/// An intranet and a public site often have one name and one port.
#[test]
fn servers_of_one_name_at_other_addresses_share_no_page() {
    let (inside, outside) = (TestUpstream::start(), TestUpstream::start());
    inside.say("/", answer("Cache-Control: max-age=60", "inside"));
    outside.say("/", answer("Cache-Control: max-age=60", "outside"));
    let pass = |to: &TestUpstream| format!("location / {{ proxy_pass http://{}; }}", to.address());
    for name in ["server_name www.test;", ""] {
        let (one, two) = (pass(&inside), pass(&outside));
        let server = http(&format!(
            "page_cache auto;
             server {{ listen 127.0.0.1:@HTTP@; {name} {one} }}
             server {{ listen 127.0.0.2:@HTTP@; {name} {two} }}"
        ));
        let other = (std::net::Ipv4Addr::new(127, 0, 0, 2), server.http().port());
        for _ in 0..2 {
            let ask = "GET / HTTP/1.1\r\nHost: www.test";
            assert_eq!(server.connect().ask(ask).text(), "inside", "{name}");
            let mut client = bolide_testkit::H1TestClient::connect(other.into());
            assert_eq!(client.ask(ask).text(), "outside", "{name}");
        }
    }
}

#[test]
fn inlines_belong_to_one_variant_of_one_version_of_their_page() {
    let app = TestApp::start();
    let server = serve(&app, "");
    let with_inline = |text: &str| {
        format!(
            "{text} <esi:inline name=\"/part\" cache-control=\"public,max-age=60\">{text}\
             </esi:inline><esi:include src=\"/part\"/>"
        )
    };
    let head = format!("{ESI}\nX-LiteSpeed-Vary: cookie=group\nX-LiteSpeed-Tag: T");
    let answers = ["a", "b", "c"].map(|text| page(&head, &with_inline(text)));
    app.plan("/page", answers.into());
    app.plan("/part", vec![page("Cache-Control: no-store", "fetched")]);
    for _ in 0..2 {
        assert_eq!(get(&server, "/page", "Cookie: group=1\r\n"), "a a");
        assert_eq!(get(&server, "/page", "Cookie: group=2\r\n"), "b b");
    }
    // A new version of the page has its own.
    assert_eq!(purge(&server, "/page", "xkey-purge: T").status, 200);
    for _ in 0..2 {
        assert_eq!(get(&server, "/page", "Cookie: group=1\r\n"), "c c");
    }
}

#[test]
fn several_values_of_page_cache_vary_are_not_joined_to_one() {
    let app = TestApp::start();
    let vary = "page_cache_vary value=$http_x_one value=$http_x_two;";
    let server = serve(&app, vary);
    let texts = ["one", "two", "both", "none"];
    let answers = texts.map(|text| page("Cache-Control: max-age=60", text));
    app.plan("/page", answers.into());
    for _ in 0..2 {
        for (fields, text) in [
            ("X-One: 1\r\n", "one"),
            ("X-Two: 1\r\n", "two"),
            ("X-One: 1\r\nX-Two: 1\r\n", "both"),
            ("", "none"),
        ] {
            assert_eq!(get(&server, "/page", fields), text, "{fields}");
        }
    }
}

/// The files' value `1` is another one than the configuration's.
#[test]
fn vary_values_of_htaccess_files_are_apart_from_the_configuration() {
    let app = TestApp::start();
    let rules = "RewriteEngine on\n\
                 RewriteCond %{HTTP:X-File} 1\n\
                 RewriteRule .* - [E=Cache-Control:vary=1]\n";
    let server = serve(&app, "apache_htaccess on; page_cache_vary value=$http_x_one;");
    std::fs::write(server.www(".htaccess"), rules).unwrap();
    let texts = ["configured", "files", "both", "none"];
    let answers = texts.map(|text| page("Cache-Control: max-age=60", text));
    app.plan("/page", answers.into());
    for _ in 0..2 {
        for (fields, text) in [
            ("X-One: 1\r\n", "configured"),
            ("X-File: 1\r\n", "files"),
            ("X-One: 1\r\nX-File: 1\r\n", "both"),
            ("", "none"),
        ] {
            assert_eq!(get(&server, "/page", fields), text, "{fields}");
        }
    }
}

#[test]
fn no_vary_search_counts_as_long_as_responses_have_it() {
    let app = TestApp::start();
    let server = serve(&app, "");
    let rule = "Cache-Control: max-age=60\nNo-Vary-Search: params=(\"id\")";
    let plain = "Cache-Control: max-age=60";
    for id in 1..=2 {
        app.plan(&format!("/p?id={id}"), vec![page(rule, "any")]);
    }
    for id in 3..=6 {
        app.plan(&format!("/p?id={id}"), vec![page(plain, &id.to_string())]);
    }
    assert_eq!(get(&server, "/p?id=1", ""), "any");
    assert_eq!(get(&server, "/p?id=2", ""), "any");
    assert_eq!(app.count("/p?id=2"), 0);
    assert_eq!(purge(&server, "/p?id=1", "").status, 200);
    for _ in 0..2 {
        for id in 3..=6 {
            assert_eq!(get(&server, &format!("/p?id={id}"), ""), id.to_string());
        }
    }
    // Another value is another rule.
    let other = "Cache-Control: max-age=60\nNo-Vary-Search: params=(\"x\")";
    app.plan("/q?id=1&x=1", vec![page(rule, "first")]);
    app.plan("/q?id=1&x=2", vec![page(other, "second")]);
    app.plan("/q?id=2&x=2", vec![page(other, "third")]);
    assert_eq!(get(&server, "/q?id=1&x=1", ""), "first");
    assert_eq!(get(&server, "/q?id=7&x=1", ""), "first");
    assert_eq!(get(&server, "/q?id=1&x=2", ""), "second");
    assert_eq!(get(&server, "/q?id=2&x=2", ""), "third");
}

#[test]
fn a_304_without_the_fields_for_the_cache_alone_changes_no_lifetime() {
    for control in [
        "X-LiteSpeed-Cache-Control: public,max-age=1",
        "Surrogate-Control: max-age=1",
        "Bolide-Cache-Control: max-age=1",
        "CDN-Cache-Control: max-age=1",
    ] {
        let app = TestApp::start();
        let server = serve(&app, "");
        let head = format!("{control}\nCache-Control: max-age=36000\nETag: \"a\"");
        let answers = vec![page(&head, "old"), page("Status: 304\nETag: \"a\"", "")];
        app.plan("/page", answers);
        assert_eq!(get(&server, "/page", ""), "old");
        for asked in 2..4 {
            bolide_testkit::pause(1200);
            assert_eq!(get(&server, "/page", ""), "old", "{control}");
            assert_eq!(app.count("/page"), asked, "{control}");
        }
    }
}

/// What a 304 says of the audience counts as if a 200 had said it.
#[test]
fn a_304_that_narrows_the_audience_ends_the_public_page() {
    const SESSION: &str = "Cookie: lsc_private=aaaaaaaaaaaaaaaaaaaa; cur=EUR\r\n";
    const OTHER: &str = "Cookie: lsc_private=bbbbbbbbbbbbbbbbbbbb; cur=USD\r\n";
    let narrow = [
        "X-LiteSpeed-Cache-Control: private,max-age=60",
        "X-LiteSpeed-Cache-Control: no-cache",
        "X-LiteSpeed-Cache-Control: no-store",
        "X-LiteSpeed-Cache-Control: public,max-age=60\nX-LiteSpeed-Vary: cookie=cur",
        "X-LiteSpeed-Cache-Control: public,max-age=60\nX-LiteSpeed-Vary: value=new",
        "X-LiteSpeed-Cache-Control: public,max-age=60\nVary: Cookie, X-Other",
    ];
    for more in ["", "page_cache_private off;"] {
        let app = TestApp::start();
        let server = serve(&app, more);
        // Stale pages are sent while they are revalidated, or they are not.
        let rows = narrow.iter().flat_map(|said| [(said, 0), (said, 30)]);
        let rows: Vec<_> = rows.enumerate().map(|(at, row)| (format!("/{at}"), row)).collect();
        for (path, (said, stale)) in &rows {
            let public = "X-LiteSpeed-Cache-Control: public";
            let first = format!("{public},max-age=1,max-stale={stale}\nETag: \"a\"");
            let confirmed = format!("Status: 304\n{said}\nETag: \"a\"");
            let last = page(&format!("{said}\nETag: \"b\""), "new");
            app.plan(path, vec![page(&first, "old"), page(&confirmed, ""), last]);
            assert_eq!(get(&server, path, SESSION), "old");
        }
        bolide_testkit::pause(1200);
        for (path, _) in &rows {
            let _old = get(&server, path, SESSION);
            bolide_testkit::wait_until("it is revalidated", || app.count(path) >= 2);
        }
        bolide_testkit::pause(100);
        for (path, (said, stale)) in &rows {
            for _ in 0..2 {
                assert_eq!(get(&server, path, OTHER), "new", "{said} {more} {stale}");
            }
        }
    }
    // The same words as before narrow nothing.
    let app = TestApp::start();
    let server = serve(&app, "");
    let vary = "ETag: \"a\"\nX-LiteSpeed-Vary: cookie=lang,cookie=cur";
    let first = format!("X-LiteSpeed-Cache-Control: public,max-age=1,max-stale=0\n{vary}");
    let confirmed = "Status: 304\nX-LiteSpeed-Cache-Control: public,max-age=60\n\
                     X-LiteSpeed-Vary: cookie=cur\nETag: \"a\"";
    app.plan("/page", vec![page(&first, "old"), page(confirmed, ""), page(&first, "new")]);
    let _first = get(&server, "/page", SESSION);
    bolide_testkit::pause(1200);
    for _ in 0..2 {
        assert_eq!(get(&server, "/page", SESSION), "old");
    }
    assert_eq!(app.count("/page"), 2);
}

#[test]
fn a_304_takes_no_tag_from_a_page() {
    let app = TestApp::start();
    let server = serve(&app, "");
    let first = "Cache-Control: max-age=1\nETag: \"a\"\nSurrogate-Key: one\nCache-Tag: two\n\
                 X-LiteSpeed-Tag: three, four";
    for (confirmed, tag) in [
        ("", "one"),
        ("", "two"),
        ("", "three"),
        ("X-LiteSpeed-Tag: three\n", "four"),
        ("Surrogate-Key: five\n", "one"),
        ("Surrogate-Key: five\n", "five"),
    ] {
        let path = format!("/{tag}{}", confirmed.len());
        let head = format!("Status: 304\nCache-Control: max-age=60\nETag: \"a\"\n{confirmed}");
        let last = page("Cache-Control: max-age=60", "new");
        app.plan(&path, vec![page(first, "old"), page(head.trim_end(), ""), last]);
        assert_eq!(get(&server, &path, ""), "old");
        bolide_testkit::pause(1200);
        assert_eq!(get(&server, &path, ""), "old", "{confirmed}");
        assert_eq!(app.count(&path), 2);
        let ordered = format!("xkey-purge: {tag}");
        assert_eq!(purge(&server, &path, &ordered).status, 200);
        assert_eq!(get(&server, &path, ""), "new", "{confirmed} {tag}");
    }
}

#[test]
fn too_many_purges_in_one_response_purge_everything() {
    let app = TestApp::start();
    let server = serve(&app, "");
    let tagged = "X-LiteSpeed-Cache-Control: public,max-age=60\nX-LiteSpeed-Tag: last";
    app.plan("/page", vec![page(tagged, "old"), page(tagged, "new")]);
    assert_eq!(get(&server, "/page", ""), "old");
    let lines: String = (0..20)
        .map(|line| {
            let tags: Vec<String> = (0..1000).map(|at| format!("tag={line}x{at}")).collect();
            format!("X-LiteSpeed-Purge: {}\n", tags.join(", "))
        })
        .collect();
    let all = format!("{lines}X-LiteSpeed-Purge: tag=last\nCache-Control: no-store");
    app.plan("/purge", vec![page(&all, "done")]);
    assert_eq!(get(&server, "/purge", ""), "done");
    assert_eq!(get(&server, "/page", ""), "new");
}

#[test]
fn a_purge_of_a_url_reaches_its_copies_for_http_and_https() {
    let app = TestApp::start();
    let server = serve(&app, "");
    let head = "Cache-Control: max-age=60";
    app.plan("/page", vec![page(head, "1"), page(head, "2"), page(head, "3"), page(head, "4")]);
    assert_eq!(get(&server, "/page", ""), "1");
    assert_eq!(server.fetch(Proto::H2, "/page").text(), "2");
    assert_eq!(purge(&server, "/page", "").status, 200);
    assert_eq!(server.fetch(Proto::H2, "/page").text(), "3");
}

/// GraphQL, JSON-RPC and searches are cached like this.
#[test]
fn the_key_and_the_conditions_of_a_zone_may_depend_on_the_request_body() {
    let origin = TestUpstream::start();
    let cached = |text: &str| answer("Cache-Control: max-age=60", text);
    origin.plan("/g", ["1", "2", "3", "4"].map(cached).into());
    let server = http(&format!(
        "proxy_cache_path @DIR@/zone keys_zone=one:1m;
         map $request_body $changes {{ ~^change 1; default \"\"; }}
         server {{ {LISTEN} location / {{
             proxy_cache one; proxy_cache_methods GET POST; proxy_cache_key $uri|$request_body;
             proxy_cache_bypass $changes; proxy_no_cache $changes;
             add_header X-Body $request_body; proxy_pass http://{}; }} }}",
        origin.address()
    ));
    let post = |body: &str, framing: String| {
        let head = format!("POST /g HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n");
        let mut client = server.connect();
        client.send(head);
        // The body comes later than the head.
        bolide_testkit::pause(50);
        client.send(body);
        client.answer()
    };
    let plain = |body: &str| post(body, format!("Content-Length: {}", body.len()));
    for _ in 0..2 {
        for (body, text) in [("alice", "1"), ("bob", "2")] {
            let reply = plain(body);
            assert_eq!((&*reply.text(), reply.header("x-body")), (text, Some(body)));
        }
    }
    assert_eq!(post("5\r\nalice\r\n0\r\n\r\n", "Transfer-Encoding: chunked".into()).text(), "1");
    assert_eq!(plain("change").text(), "3");
    assert_eq!(plain("change").text(), "4");
    let bodies: Vec<_> = origin.all().into_iter().map(|asked| asked.body).collect();
    assert_eq!(bodies, [&b"alice"[..], b"bob", b"change", b"change"]);
}

#[test]
fn cache_rfc9111_applies_to_zones_of_proxies_too() {
    let origin = TestUpstream::start();
    let cached = |text: &str| answer("Cache-Control: max-age=60", text);
    origin.plan("/", ["1", "2"].map(cached).into());
    origin.say("/auth", answer_of("204 No Content", "", ""));
    let server = http(&format!(
        "proxy_cache_path @DIR@/zone keys_zone=one:1m;
         server {{ {LISTEN} cache_rfc9111 on; proxy_cache_key $uri$is_args$args;
             location / {{ proxy_cache one; proxy_pass http://{0}; }}
             location = /auth {{ internal; proxy_pass http://{0}; }}
             location /guarded {{ auth_request /auth; proxy_cache one; proxy_pass http://{0}; }} }}",
        origin.address()
    ));
    assert_eq!(get(&server, "/", "Authorization: Basic YTph\r\n"), "1");
    assert_eq!(get(&server, "/", "Authorization: Basic Yjpi\r\n"), "2");
    origin.plan("/guarded", ["1", "2"].map(cached).into());
    assert_eq!(get(&server, "/guarded", ""), "1");
    assert_eq!(get(&server, "/guarded", ""), "2");
}

/// `fetch(url, {method: "POST"})` in browsers declares a length of zero; strict origins want it.
#[test]
fn a_declared_length_is_passed_on_whatever_the_version_of_http() {
    let origin = TestUpstream::start();
    let server = http(&format!(
        "server {{ {LISTEN} location / {{ proxy_pass http://{};
             proxy_set_header X-Seen $http_content_length/$content_length; }} }}",
        origin.address()
    ));
    for proto in [Proto::H1, Proto::H2, Proto::H3] {
        for body in ["", "abc"] {
            let path = format!("/{proto:?}{}", body.len());
            let curl = server.curl(proto).args(["-X", "POST", "-d", body]);
            assert_eq!(curl.get(&server.url(proto, &path)).status, 200, "{path}");
            let len = body.len().to_string();
            let asked = origin.asked(&path).remove(0);
            assert_eq!(asked.all("content-length"), [&*len], "{path}");
            assert_eq!(asked.field("x-seen"), Some(&*format!("{len}/{len}")), "{path}");
        }
    }
}

#[test]
fn pages_do_not_outlive_a_time_in_which_purges_had_no_effect() {
    let app = TestApp::start();
    let conf = |number: usize, page_cache: &str, root: &str| {
        format!(
            "{}http {{ page_cache_path @DIR@/pages; server {{ listen 127.0.0.1:@HTTP@;
                 server_name a; root @DIR@/{root}; page_cache {page_cache};
                 location = /number {{ return 200 {number}; }}
                 location / {{ {PARAMS} fastcgi_pass {}; }} }} }}",
            bolide_testkit::server::prelude(1),
            app.address()
        )
    };
    let server = TestServer::conf(crate::BOLIDE, &conf(0, "auto", "one"));
    let reload = |number: usize, page_cache: &str, root: &str| {
        server.rewrite(&conf(number, page_cache, root));
        server.signal("HUP");
        let is_there = || get(&server, "/number", "") == number.to_string();
        bolide_testkit::wait_until("the configuration", is_there);
    };
    let head = "X-LiteSpeed-Cache-Control: public,max-age=3600\nX-LiteSpeed-Tag: T";
    app.plan("/page", (1..9).map(|version| page(head, &version.to_string())).collect());
    app.plan("/save", vec![page("X-LiteSpeed-Purge: tag=T", "saved")]);
    assert_eq!(get(&server, "/page", ""), "1");
    assert_eq!(get(&server, "/page", ""), "1");
    for (number, off, root, version) in [(1, "off", "one", "2"), (3, "auto", "two", "3")] {
        reload(number, off, root);
        assert_eq!(get(&server, "/save", ""), "saved");
        reload(number + 1, "auto", "one");
        for _ in 0..2 {
            assert_eq!(get(&server, "/page", ""), version, "{off} {root}");
        }
    }
}
