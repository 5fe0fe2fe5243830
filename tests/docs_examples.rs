//! The example configurations in the documents: each one works as its page says, unchanged.

use std::fs;

use bolide_testkit::origin::answer;
use bolide_testkit::server::{Home, is_root, prelude};
use bolide_testkit::{H1TestClient, Response, TestServer, TestUpstream, wait_until};

use crate::BOLIDE;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The nginx configurations in a document, in order.
fn examples(document: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("{ROOT}/docs/{document}")).unwrap();
    let blocks = text.split("```nginx\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// The pages with examples of nginx's language, and how many each has: all are tested here.
const PAGES: [(&str, usize); 12] = [
    ("certificates.md", 5),
    ("htaccess.md", 4),
    ("metrics.md", 1),
    ("moving-from/apache.md", 1),
    ("moving-from/caddy.md", 1),
    ("moving-from/litespeed.md", 1),
    ("moving-from/nginx.md", 1),
    ("moving-from/varnish.md", 2),
    ("operation.md", 3),
    ("page-cache.md", 2),
    ("php.md", 2),
    ("status.md", 1),
];

#[test]
fn no_example_of_the_documents_is_left_out() {
    let mut found = Vec::new();
    for directory in ["", "decisions/", "moving-from/"] {
        for entry in fs::read_dir(format!("{ROOT}/docs/{directory}")).unwrap().flatten() {
            let name = format!("{directory}{}", entry.file_name().to_string_lossy());
            let count = if name.ends_with(".md") { examples(&name).len() } else { 0 };
            if count > 0 {
                found.push((name, count));
            }
        }
    }
    found.sort();
    assert_eq!(found, PAGES.map(|(name, count)| (name.to_owned(), count)));
}

#[test]
fn the_example_of_htaccess_files_is_valid() {
    for example in examples("htaccess.md") {
        let home = Home::new(BOLIDE);
        home.write("fastcgi.conf", "");
        let path = home.write("nginx.conf", &format!("{}http {{ {example} }}", prelude(1)));
        let tested = home.run(&["-t", "-c", path.to_str().unwrap()]);
        assert_eq!(tested.code, 0, "{}", tested.text());
    }
}

#[test]
fn the_examples_of_operation_are_valid() {
    let all = examples("operation.md");
    let [watch, change, probes] = &all[..] else { panic!("three examples") };
    let home = Home::new(BOLIDE);
    let text = format!("{watch}{change}{}http {{ server {{ {probes} }} }}", prelude(1));
    let path = home.write("nginx.conf", &text);
    let tested = home.run(&["-t", "-c", path.to_str().unwrap()]);
    assert_eq!(tested.code, 0, "{}", tested.text());
}

#[test]
fn the_examples_of_certificates_are_valid_before_there_are_any() {
    let all = examples("certificates.md");
    let [short, long, private, authority, demand] = &all[..] else { panic!("five examples") };
    let [caddy] = &examples("moving-from/caddy.md")[..] else { panic!("one example") };
    let within = |text: &str| format!("http {{ {text} }}");
    let private = format!("{authority} {private}");
    for http in [within(short), within(long), within(&private), within(demand), caddy.clone()] {
        let home = Home::new(BOLIDE);
        home.write("mime.types", "types { }");
        // Where packages have made the directory, the rest of its path is there.
        let http = http.replace("/var/lib/bolide", home.dir().to_str().unwrap());
        let path = home.write("nginx.conf", &format!("{}{http}", prelude(1)));
        let tested = home.run(&["-t", "-c", path.to_str().unwrap()]);
        assert_eq!(tested.code, 0, "{http}: {}", tested.text());
    }
}

/// Serves an `http` block with the test's own paths and user.
fn start(example: &str) -> TestServer {
    let home = Home::new(BOLIDE);
    let root = home.dir().join("www");
    fs::create_dir_all(root.join(".well-known")).unwrap();
    let script = "<?php header('X-LiteSpeed-Cache-Control: public,max-age=60');
                  echo 'front ', getenv('APP_ENV'), $_SERVER['REQUEST_URI'];";
    // The account is "ann" with the password "secret".
    fs::write(home.dir().join("members"), "ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n").unwrap();
    for (name, text) in [
        ("index.php", script),
        ("style.css", "p { color: red }"),
        (".env", "secret"),
        (".litespeed_conf.dat", "secret"),
        (".well-known/security.txt", "known"),
    ] {
        fs::write(root.join(name), text).unwrap();
    }
    fs::copy(format!("{ROOT}/conf/mime.types"), home.dir().join("mime.types")).unwrap();
    let user = if is_root() { "user nobody;" } else { "" };
    let http = example
        .replace("/srv/shop/public", "@DIR@/www")
        .replace("/srv/magento/pub", "@DIR@/www")
        .replace("/var/cache/bolide", "@DIR@/cache")
        .replace("user shop;", user)
        .replace("user magento;", user)
        .replace("server {", "server { listen 127.0.0.1:@HTTP@;");
    TestServer::start(home, &format!("{}{http}", prelude(1)))
}

/// Sends a request with one more field.
fn ask(server: &TestServer, request: &str, field: &str) -> Response {
    server.connect().ask(&format!("{request} HTTP/1.1\r\nHost: localhost\r\n{field}"))
}

#[test]
fn sites_of_the_documents_serve_pages_and_styles_and_hide_private_files() {
    for (document, is_cached) in [
        ("page-cache.md", true),
        ("php.md", false),
        ("moving-from/nginx.md", true),
        ("moving-from/litespeed.md", true),
        ("moving-from/apache.md", false),
    ] {
        let example = examples(document).remove(0);
        let server = start(&example);
        wait_until("the pool to run", || server.get("/").status == 200);
        assert!(server.get("/").text().starts_with("front "), "{document}");
        let style = server.get("/style.css");
        assert_eq!((style.status, style.header("content-type")), (200, Some("text/css")));
        for hidden in ["/.env", "/.litespeed_conf.dat", "/.well-known/../.env"] {
            assert_eq!(server.get(hidden).status, 403, "{document} {hidden}");
        }
        assert_eq!(server.get("/.well-known/security.txt").text(), "known", "{document}");
        let page = || server.get("/some/product?x=1");
        assert!(page().text().ends_with("/some/product?x=1"), "{document}");
        let said = page().header("x-litespeed-cache").map(str::to_owned);
        assert_eq!(said.as_deref(), is_cached.then_some("hit"), "{document}");
    }
}

#[test]
fn the_console_of_the_document_is_there() {
    let location = examples("status.md").remove(0);
    let server = crate::site(&location);
    assert_eq!(server.get("/bolide/").status, 200);
    assert!(server.get("/bolide/status.json").text().starts_with("{\"schema\":1,"));
}

#[test]
fn metrics_are_served_as_their_page_describes() {
    let location = examples("metrics.md").remove(0);
    let server = start(&format!("http {{ server {{ {location} }} }}"));
    let reply = server.get("/metrics");
    assert!(reply.status == 200 && reply.text().starts_with("# HELP bolide_"), "{reply:?}");
}

#[test]
fn figures_are_shown_to_the_addresses_of_the_example() {
    let example = examples("page-cache.md").remove(1);
    let here = example.replace("10.0.0.5", "127.0.0.1");
    for (text, status) in [(&example, 403), (&here, 200)] {
        let server = crate::http(&format!(
            "page_cache auto; server {{ {} {text} }}",
            bolide_testkit::server::LISTEN
        ));
        assert_eq!(server.get("/bolide").status, status);
    }
}

#[test]
fn replacements_of_apache_directives_do_the_same() {
    let server = start(&examples("moving-from/apache.md").remove(0));
    wait_until("the pool to run", || server.get("/").status == 200);
    let moved = server.get("/old/page");
    assert_eq!(moved.status, 301);
    assert!(moved.header("location").unwrap().ends_with("/new/page"));
    assert_eq!(server.get("/private/x").status, 401);
    let known = ask(&server, "GET /private/x", "Authorization: Basic YW5uOnNlY3JldA==");
    assert_eq!(known.status, 404);
}

#[test]
fn magento_purges_at_the_listener_of_the_example() {
    let example = examples("moving-from/varnish.md").remove(1);
    let example = example.replace("listen 80;", "");
    let server = start(&example.replace("127.0.0.1:6081", "127.0.0.1:@HTTPS@"));
    wait_until("the pool to run", || server.get("/").status == 200);
    let look = || {
        let reply = server.get("/some/product?utm_source=a&x=1");
        assert!(reply.text().ends_with("/some/product?x=1"), "{}", reply.text());
        reply.header("x-magento-cache-debug").unwrap_or_default().to_owned()
    };
    assert_eq!([look(), look()], ["MISS", "HIT"]);
    let purge = "PURGE / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Magento-Tags-Pattern: .*\r\n\r\n";
    let reply = H1TestClient::connect(server.addr(1)).ask(purge);
    assert_eq!((reply.status, &*reply.text()), (200, "Purged"));
    assert_eq!(look(), "MISS");
}

#[test]
fn replacements_of_vcl_cache_pass_and_purge() {
    let origin = TestUpstream::start();
    let fields = "Cache-Control: s-maxage=60\r\nSurrogate-Key: p1\r\n";
    origin.say("/a", answer(fields, "page"));
    let example = examples("moving-from/varnish.md").remove(0);
    let server = start(&example.replace("127.0.0.1:8080", &origin.address()));
    let says = |field: &str, target: &str| {
        let reply = ask(&server, &format!("GET {target}"), field);
        assert_eq!(reply.text(), "page", "{field} {target}");
        reply.header("cache-status").unwrap_or_default().to_owned()
    };
    let is_hit = |said: &str| said.contains("; hit");
    assert!(!is_hit(&says("X-None: 1", "/a")));
    assert!(is_hit(&says("Cookie: any=1", "/a?utm_source=letter")));
    assert!(says("Cookie: admin=1", "/a").contains("fwd=bypass"));
    assert!(!is_hit(&says("User-Agent: a Mobile", "/a")), "another device");
    let asked = ask(&server, "PURGE /", "xkey: p1");
    assert_eq!((asked.status, asked.header("x-purged-objects")), (200, Some("2")));
    assert!(!is_hit(&says("X-None: 1", "/a")));
}
