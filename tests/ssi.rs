//! SSI and `addition` in all HTTP versions, from files and from an application; caching of such
//! pages; failing subrequests.

use std::fs;

use bolide_testkit::server::LISTEN;
use bolide_testkit::{AppSaid, Proto, TestApp, TestServer, wait_until};

use crate::{http, report, site};

const ERROR: &str = "[an error occurred while processing the directive]";
const PARAMS: &str = "
    fastcgi_param REQUEST_URI $uri$is_args$args; fastcgi_param CLIENT_URI $request_uri;
    fastcgi_param REQUEST_METHOD $request_method; fastcgi_param CONTENT_LENGTH $content_length;";
const HTML: &str = "Content-Type: text/html";

/// A site with these files.
fn pages(directives: &str, files: &[(&str, &str)]) -> TestServer {
    let server = site(directives);
    for (name, text) in files {
        fs::write(server.www(name), text).unwrap();
    }
    server
}

fn body(server: &TestServer, path: &str) -> String {
    server.get(path).text()
}

#[test]
fn a_page_with_commands_is_the_same_by_all_versions_of_http() {
    let long = "x".repeat(150_000);
    let server = pages(
        "ssi on; gzip on; location /text { return 200 \"($uri $args)\"; }",
        &[
            (
                "page.html",
                &format!(
                    "<!--#set var=\"who\" value=\"you & $arg_me\"-->{long}<!--#echo var=\"who\" -->\
                     <!--#include virtual=\"/text?a=b\"-->{long}<!--#include file=\"inner.html\"-->\
                     <!--#if expr=\"$arg_me = /^(.)/\"-->[$<!--#echo var=\"1\"-->]<!--#else-->-\
                     <!--#endif--><!--#include virtual=\"/text\" set=\"t\"-->|\
                     <!--#echo var=\"t\"-->"
                ),
            ),
            ("inner.html", "<!--#include virtual=\"/text/in\"-->+<!--#echo var=\"who\"-->"),
        ],
    );
    let wanted =
        format!("{long}you &amp; me(/text a=b){long}(/text/in )+you &amp; me[$m]|(/text )");
    let mut failures = Vec::new();
    for proto in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3] {
        for coding in ["identity", "gzip"] {
            let url = server.url(proto, "/page.html?me=me");
            let accept = format!("Accept-Encoding: {coding}");
            let answer = server.curl(proto).field(&accept).args(["--compressed"]).get(&url);
            let is_right = answer.body == wanted.as_bytes()
                && answer.header("content-length").is_none()
                && answer.header("accept-ranges").is_none()
                && answer.header("etag").is_none()
                && answer.header("last-modified").is_none();
            if !is_right {
                failures.push(format!("{proto:?} {coding}: {:?}", answer.headers));
            }
        }
    }
    report(8, &failures);
    let mut client = server.connect();
    client.send("HEAD /page.html HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = client.answer_to("HEAD");
    assert_eq!((head.status, head.header("content-length")), (200, None));
    let ranged = client.get("/page.html?me=me", "Range: bytes=0-1\r\n");
    assert_eq!((ranged.status, ranged.body.len()), (200, wanted.len()));
}

#[test]
fn the_innermost_directives_hold_and_other_types_are_left_alone() {
    let page = "a<!--#foo-->b<!--#echo var=\"uri\"-->";
    let server = pages(
        "ssi on; ssi_last_modified on; ssi_min_file_chunk 1k; ssi_ignore_recycled_buffers on;
         location /off/ { ssi off; rewrite ^/off(.*) $1 break;
             location /off/if/ { if ($arg_x) { ssi on; } rewrite ^/off/if(.*) $1 break; } }
         location /quiet/ { ssi_silent_errors on; rewrite ^/quiet(.*) $1 break; }
         location /all/ { ssi_types *; rewrite ^/all(.*) $1 break; }
         location /html/ { ssi_types text/css; rewrite ^/html(.*) $1 break; }
         location /short/ { ssi_value_length 2; rewrite ^/short(.*) $1 break; }
         location /gone/ { ssi_last_modified off; rewrite ^/gone(.*) $1 break; }
         location /sub/ { sub_filter foo config; rewrite ^/sub(.*) $1 break; }",
        &[("p.html", page), ("p.txt", page)],
    );
    for (path, wanted) in [
        ("/p.html", format!("a{ERROR}b/p.html")),
        ("/p.txt", page.to_owned()),
        ("/off/p.html", page.to_owned()),
        ("/off/if/p.html", page.to_owned()),
        ("/off/if/p.html?x=1", format!("a{ERROR}b/p.html")),
        ("/quiet/p.html", "ab/p.html".to_owned()),
        ("/all/p.txt", format!("a{ERROR}b/p.txt")),
        ("/html/p.txt", page.to_owned()),
        ("/short/p.html", format!("a{ERROR}b{ERROR}")),
        ("/sub/p.html", "ab/p.html".to_owned()),
    ] {
        assert_eq!(body(&server, path), wanted, "{path}");
    }
    let kept = server.get("/p.html");
    assert!(kept.header("etag").is_some_and(|tag| tag.starts_with("W/\"")));
    assert!(kept.header("last-modified").is_some());
    let gone = server.get("/gone/p.html");
    assert_eq!((gone.header("etag"), gone.header("last-modified")), (None, None));
    let log = server.error_log();
    for line in [
        "invalid SSI command: \"foo\" while sending response to client, client: ",
        "too long \"uri...\" value of \"var\" parameter in \"echo\" SSI command while",
    ] {
        assert!(log.contains(line), "{line} in {log}");
    }
}

#[test]
fn answers_around_bodies_go_to_the_right_ones() {
    let server = pages(
        "location /t { return 200 \"[$uri]\"; } add_before_body /t1; add_after_body /t2;
         location /off/ { add_before_body \"\"; rewrite ^/off(.*) $1 break; }
         location /txt/ { addition_types text/plain; rewrite ^/txt(.*) $1 break; }
         location /own/ { add_after_body /t3; rewrite ^/own(.*) $1 break; }
         location /same { default_type text/html; return 201 same; }",
        &[("p.html", "<p>"), ("p.txt", "text"), ("none.html", "")],
    );
    for (path, status, wanted) in [
        ("/p.html", 200, "[/t1]<p>[/t2]"),
        ("/none.html", 200, "[/t1][/t2]"),
        ("/p.txt", 200, "text"),
        ("/txt/p.txt", 200, "[/t1]text[/t2]"),
        ("/off/p.html", 200, "<p>[/t2]"),
        ("/own/p.html", 200, "[/t1]<p>[/t3]"),
        ("/same", 201, "same"),
    ] {
        let reply = server.get(path);
        assert_eq!((reply.status, &*reply.text()), (status, wanted), "{path}");
    }
    let reply = server.get("/p.html");
    assert!(reply.header("etag").is_some_and(|tag| tag.starts_with("W/\"")));
    assert!(reply.header("last-modified").is_some() && reply.header("accept-ranges").is_none());
    let missing = server.get("/nowhere.html");
    assert!(missing.status == 404 && !missing.text().contains("/t1"), "{missing:?}");
}

#[test]
fn includes_pass_no_access_checks_and_missing_ones_are_logged() {
    let server = pages(
        "ssi on; location /secret/ { deny all; auth_basic x; auth_basic_user_file none; }
         location /inside { internal; return 200 inside; } location /no { return 403; }
         location /own404/ { error_page 404 /p.txt; }",
        &[
            ("p.txt", "text"),
            (
                "p.html",
                "<!--#include virtual=\"/secret.html\"-->|<!--#include virtual=\"/inside\"-->|\
                 <!--#include virtual=\"/own404/x\"-->|<!--#include virtual=\"/../p.txt\"-->|\
                 <!--#include virtual=\"/%2e%2e/p.txt\"-->|\
                 <!--#block name=\"b\"-->STUB<!--#endblock-->\
                 <!--#include virtual=\"/no\" stub=\"b\"-->|\
                 <!--#include virtual=\"/no\" set=\"v\"--><!--#echo var=\"v\"-->|\
                 <!--#include virtual=\"/missing\"-->",
            ),
            ("self.html", "<!--#include virtual=\"/self.html\"-->x"),
            (
                "twice.html",
                "<!--#include file=\"twice.html\"--><!--#include file=\"twice.html\"-->",
            ),
        ],
    );
    fs::create_dir(server.www("secret")).unwrap();
    fs::write(server.www("secret.html"), "<!--#include virtual=\"/secret/s.txt\"-->").unwrap();
    fs::write(server.www("secret/s.txt"), "secret").unwrap();
    assert_eq!(server.get("/secret/s.txt").status, 403);
    let text = body(&server, "/p.html");
    let start = format!("secret|inside|text|{ERROR}|{ERROR}|STUB||");
    assert!(text.starts_with(&start), "{text}");
    assert!(text[start.len()..].contains("<h1>404 Not Found</h1>"), "{text}");
    let text = body(&server, "/self.html");
    assert_eq!(text, format!("{ERROR}{}", "x".repeat(52)), "as deep as in nginx");
    let text = body(&server, "/twice.html");
    assert!(text.len() < 1_000_000, "an end to pages that double themselves");
    let log = server.error_log();
    for line in [
        "subrequests cycle while processing \"/self.html\" while sending response to client",
        "unsafe URI \"/../p.txt\" was detected while sending response to client",
        "subrequest: \"/missing\"",
    ] {
        assert!(log.contains(line), "{line}");
    }
}

#[test]
fn includes_of_an_upstream_page_are_fetched_from_the_upstream() {
    let app = TestApp::start();
    let address = app.address();
    let server = http(&format!(
        "server {{ {LISTEN} ssi on; location = /four {{ return 204; }}
             location / {{ {PARAMS} fastcgi_pass {address}; }} }}"
    ));
    app.plan(
        "/page",
        vec![AppSaid::head(HTML).body(
            b"<!--#include virtual=\"/one?x=1\"-->|<!--#include virtual=\"/two\" wait=\"yes\"-->|\
              <!--#include virtual=\"/three\" set=\"t\"--><!--#echo var=\"t\"-->|\
              <!--#block name=\"b\"-->nothing<!--#endblock-->\
              <!--#include virtual=\"/four\" stub=\"b\"-->",
        )],
    );
    app.plan(
        "/one?x=1",
        vec![
            AppSaid::head("Content-Type: text/html\nSet-Cookie: a=b")
                .body(b"1<!--#echo var=\"request_uri\"-->"),
        ],
    );
    app.plan("/two", vec![AppSaid::head("Status: 404\nContent-Type: text/plain").body(b"2<!--#")]);
    app.plan("/three", vec![AppSaid::head("Content-Type: text/plain").body(b"3")]);
    for proto in [Proto::H1, Proto::H2, Proto::H3] {
        let reply = server.fetch(proto, "/page");
        assert_eq!(reply.text(), "1/page|2<!--#|3|nothing", "{proto:?}");
        assert_eq!(reply.header("set-cookie"), None);
    }
    let one = &app.asked("/one?x=1")[0];
    assert_eq!((one.method(), one.param("CLIENT_URI")), ("GET", Some("/page")));
    let mut client = server.connect();
    client.send("POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na=b");
    assert_eq!(client.answer().text(), "1/page|2<!--#|3|nothing");
    let page = app.asked("/page").pop().unwrap();
    assert_eq!((page.method(), &page.body[..]), ("POST", &b"a=b"[..]));
    app.plan("/two", vec![AppSaid::head(HTML).body(b"2").cut()]);
    let request = "GET /page HTTP/1.1\r\nHost: a\r\n\r\n";
    let broken = server.connect().send(request).try_answer("GET");
    assert!(broken.is_err(), "a page whose part breaks is cut: {broken:?}");
}

#[test]
fn includes_are_fetched_concurrently_and_sent_in_order() {
    let app = TestApp::start();
    let address = app.address();
    let server = http(&format!(
        "server {{ {LISTEN} ssi on; {PARAMS} location / {{ fastcgi_pass {address}; }} }}"
    ));
    let page = b"a<!--#include virtual=\"/one\"-->b<!--#include virtual=\"/two\"-->c";
    app.plan("/page", vec![AppSaid::head(HTML).body(page)]);
    app.plan("/one", vec![AppSaid::head(HTML).body(b"1")]);
    app.plan("/two", vec![AppSaid::head(HTML).body(b"2")]);
    app.hold("/one");
    let mut client = server.connect();
    client.send("GET /page HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("both are asked for", || app.count("/one") == 1 && app.count("/two") == 1);
    app.release();
    assert_eq!(client.answer().text(), "a1b2c");
    app.plan(
        "/page",
        vec![AppSaid::head(HTML).body(
            b"<!--#include virtual=\"/one\" wait=\"yes\"--><!--#include virtual=\"/two\"-->",
        )],
    );
    app.hold("/one");
    client.send("GET /page HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("one is asked for", || app.count("/one") == 2);
    assert_eq!(app.count("/two"), 1, "nothing else is before it is there");
    drop(client);
    app.release();
    assert_eq!(server.connect().get("/page", "").text(), "12");
}

#[test]
fn a_page_may_have_fragments_and_parts() {
    let app = TestApp::start();
    let address = app.address();
    let server = http(&format!(
        "server {{ {LISTEN} ssi on; gzip on; {PARAMS}
             location / {{ fastcgi_pass {address}; page_cache auto; }} }}"
    ));
    let page = "X-LiteSpeed-Cache-Control: public,max-age=60,esi=on\nContent-Type: text/html";
    let text = b"<esi:include src=\"/fragment\"/>|<!--#include virtual=\"/part\"-->|\
                 <esi:include src=\"/fragment\"/>|<!--#echo var=\"http_x\"-->";
    app.plan("/page", vec![AppSaid::head(page).body(text)]);
    app.plan("/fragment", vec![AppSaid::head(page).body(b"<!--#include virtual=\"/part\"-->!")]);
    app.plan("/part", vec![AppSaid::head(page).body(b"P<esi:include src=\"/fragment2\"/>")]);
    app.plan("/fragment2", vec![AppSaid::head(page).body(b"F")]);
    for round in 0..3 {
        for proto in [Proto::H1, Proto::H2] {
            let url = server.url(proto, "/page");
            let field = format!("X: {round}");
            let asked = server.curl(proto).field(&field).args(["--compressed"]);
            let answer = asked.get(&url);
            assert_eq!(answer.text(), format!("PF!|PF|PF!|{round}"), "{proto:?} {round}");
        }
    }
}

#[test]
fn the_cache_stores_the_page_before_ssi() {
    let app = TestApp::start();
    let address = app.address();
    let server = http(&format!(
        "fastcgi_cache_path zone levels=1 keys_zone=z:1m;
         server {{ {LISTEN} ssi on; gzip on; {PARAMS}
             location / {{ fastcgi_pass {address}; page_cache auto; }}
             location /zone/ {{ fastcgi_pass {address}; fastcgi_cache z; fastcgi_cache_key $uri;
                 fastcgi_cache_valid 1m; }} }}"
    ));
    let head = "Content-Type: text/html\nCache-Control: public, max-age=60";
    let page = b"<!--#echo var=\"http_x\"--><!--#include virtual=\"/part\"-->";
    for uri in ["/page", "/zone/page"] {
        app.plan(uri, vec![AppSaid::head(head).body(page)]);
    }
    app.plan("/part", vec![AppSaid::head(head).body(b"(<!--#echo var=\"http_x\"-->)")]);
    for uri in ["/page", "/zone/page"] {
        for round in 0..4 {
            let field = format!("X: {round}\r\n");
            let reply = server.connect().get(uri, &field);
            assert_eq!(reply.text(), format!("{round}({round})"), "{uri}");
        }
        assert_eq!(app.count(uri), 1, "{uri}");
    }
    assert_eq!(app.count("/part"), 1, "parts are pages of their own");
    assert_eq!(server.connect().get("/part", "X: 9\r\n").text(), "(9)");
    assert_eq!(app.count("/part"), 1, "by whomever they are asked for");
}

#[test]
fn a_client_that_leaves_or_waits_costs_nothing() {
    let server = pages(
        "ssi on; location /text { return 200 \"(0123456789)\"; }",
        &[
            ("many.html", &"<!--#include virtual=\"/text\"-->".repeat(3000)),
            ("wide.html", &format!("<!--#include virtual=\"/text\"-->{}", "y".repeat(8_000_000))),
        ],
    );
    assert_eq!(body(&server, "/many.html"), "(0123456789)".repeat(3000));
    let before = server.resident_kib();
    let mut slow: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for client in &mut slow {
        client.send("GET /wide.html HTTP/1.1\r\nHost: a\r\n\r\n");
        client.take(10_000).unwrap();
    }
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 24 * 1024, "{grown} KiB for 64 MB that are not read");
    drop(slow);
    assert_eq!(body(&server, "/wide.html").len(), 8_000_012);
}

#[test]
fn a_stub_is_parsed_like_the_response_that_it_replaces() {
    let app = TestApp::start();
    for path in ["/app/empty", "/plain/empty"] {
        app.plan(path, vec![AppSaid::head(HTML).body(b"")]);
    }
    app.plan("/app/sets", vec![AppSaid::head(HTML).body(b"<!--#set var=\"z\" value=\"1\"-->")]);
    let block = "<!--#block name=\"one\"-->[<!--#echo var=\"uri\"-->]<!--#endblock-->\
                 <!--#block name=\"two\"--><!--#set var=\"y\" value=\"2\"--><!--#endblock-->";
    let page = |path: &str| {
        let include = |stub| format!("<!--#include virtual=\"{path}\" stub=\"{stub}\"-->");
        format!("{block}A{}B{}C", include("one"), include("two"))
    };
    let location = |path: &str, ssi: &str| {
        let address = app.address();
        format!("location {path} {{ ssi {ssi}; {PARAMS} fastcgi_pass {address}; }}")
    };
    let names = ["/app/empty", "/plain/empty", "/app/sets", "/empty.html", "/gone", "/fails"];
    let files: Vec<(String, String)> =
        names.iter().enumerate().map(|(n, path)| (format!("{n}.html"), page(path))).collect();
    let mut files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (&a[..], &b[..])).collect();
    files.push(("empty.html", ""));
    let places = [location("/app/", "on"), location("/plain/", "off")].concat();
    let server = pages(&format!("ssi on; {places} location /fails {{ return 503; }}"), &files);
    let source = "[<!--#echo var=\"uri\" -->]";
    let wanted = [
        "A[/app/empty]BC".to_owned(),
        format!("A{source}B<!--#set var=\"y\" value=\"2\" -->C"),
        "ABC".to_owned(),
        format!("A{source}B<!--#set var=\"y\" value=\"2\" -->C"),
        "A[/gone]BC".to_owned(),
        "A[/fails]BC".to_owned(),
    ];
    let mut failures = Vec::new();
    for (n, wanted) in wanted.iter().enumerate() {
        let text = body(&server, &format!("/{n}.html"));
        if text != *wanted {
            failures.push(format!("{}: {text}\nand not {wanted}", names[n]));
        }
    }
    report(wanted.len(), &failures);
}
