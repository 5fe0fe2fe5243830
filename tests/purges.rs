//! An acknowledged purge holds: from every client, for pages in memory and on disk, and after any
//! end of the process.

use bolide_testkit::server::{Home, LISTEN, TYPES, prelude};
use bolide_testkit::{Response, TestApp, TestServer, wait_until};

use crate::BOLIDE;
use crate::explain::ask;

const PAGE: &str = "X-LiteSpeed-Cache-Control: public,max-age=3600\nX-LiteSpeed-Tag: menu";
const ME: &str = "Cookie: PHPSESSID=0123456789abcdef0123\r\n";

/// A site whose pages are also on disk.
fn serve(app: &TestApp) -> TestServer {
    let (prelude, address) = (prelude(2), app.address());
    let conf = format!(
        "{prelude}http {{{TYPES} page_cache_path @DIR@/cache;
         server {{ {LISTEN} location / {{
             fastcgi_param REQUEST_URI $request_uri; fastcgi_param REQUEST_METHOD $request_method;
             fastcgi_pass {address}; page_cache auto; }} }} }}\n"
    );
    TestServer::start(Home::new(BOLIDE), &conf)
}

fn purge(server: &TestServer, args: &[&str]) -> String {
    ask(server, &[&["cache", "purge"], args].concat()).succeeded().text()
}

fn url(server: &TestServer, path: &str) -> String {
    format!("http://localhost:{}{path}", server.home().port(0))
}

/// The response to `path` with `fields`.
fn body(server: &TestServer, path: &str, fields: &str) -> String {
    server.connect().get(path, &format!("{fields}Connection: close\r\n")).text()
}

/// The number of objects that `PURGE` reports.
fn purged_by_http(server: &TestServer, path: &str, fields: &str) -> String {
    let text = format!("PURGE {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
    let reply = server.connect().ask(&text);
    assert_eq!(reply.status, 200);
    reply.header("x-purged-objects").unwrap_or_default().to_owned()
}

#[test]
fn a_purge_by_command_outlives_the_death_that_follows_it() {
    let app = TestApp::start();
    for page in ["/url", "/from/a", "/tag", "/all"] {
        app.say(page, PAGE);
    }
    let mut server = serve(&app);
    for (page, way) in [
        ("/url", &["--url", "@"][..]),
        ("/from/a", &["--prefix", "/from"]),
        ("/tag", &["--tag", "menu"]),
        ("/all", &["--all"]),
    ] {
        let before = body(&server, page, "");
        wait_until("the page is a file", || {
            ask(&server, &["cache", "list", "--url", page]).text().contains("and on disk")
        });
        // The periodic writes of the journal have ended.
        bolide_testkit::pause(400);
        let at = url(&server, page);
        let way: Vec<_> = way.iter().map(|word| if *word == "@" { &at } else { *word }).collect();
        purge(&server, &way);
        server.restart("KILL");
        assert_ne!(body(&server, page, ""), before, "{page} came back after {way:?}");
        purge(&server, &["--all"]);
    }
}

#[test]
fn pages_that_are_only_on_disk_are_purged_and_counted() {
    let app = TestApp::start();
    let varied = format!("{PAGE}\nVary: Accept-Language");
    app.say("/shop/many", &varied);
    app.say("/shop/one", PAGE);
    app.say("/own", "X-LiteSpeed-Cache-Control: private,max-age=3600");
    let mut server = serve(&app);
    let fill = |server: &TestServer| {
        ["/shop/many", "/shop/one", "/own"].map(|path| {
            body(server, path, &format!("{ME}Accept-Language: en\r\n"));
            body(server, path, &format!("{ME}Accept-Language: de\r\n"))
        })
    };
    // Two variants and their `Vary` entry, one page, one private page.
    let mut before = fill(&server);
    for (way, wanted, changed) in [
        (["--url", "/shop/many"], "2 objects", [true, false, false]),
        (["--url", "/shop/one"], "1 object", [false, true, false]),
        (["--url", "/own"], "1 object", [false, false, true]),
        (["--prefix", "/shop/"], "3 objects", [true, true, false]),
        (["--prefix", "/own"], "1 object", [false, false, true]),
        (["PURGE", "/shop/many"], "2", [true, false, false]),
        (["PURGE", "/shop/one"], "1", [false, true, false]),
        (["PURGE", "/own"], "1", [false, false, true]),
    ] {
        // Queued objects are written before the end.
        server.restart("QUIT");
        let [how, path] = way;
        let count = match how {
            "PURGE" => purged_by_http(&server, path, ME),
            "--url" => purge(&server, &[how, &url(&server, path)]),
            _ => purge(&server, &[how, path]),
        };
        let said = if how == "PURGE" { wanted.to_owned() } else { format!("purged: {wanted}\n") };
        assert_eq!(count, said, "{way:?}");
        server.restart("KILL");
        let now = fill(&server);
        let is_new: Vec<_> = now.iter().zip(&before).map(|(now, before)| now != before).collect();
        assert_eq!(is_new, changed, "{way:?}");
        before = now;
    }
}

#[test]
fn a_page_that_is_purged_during_its_fetch_is_not_stored() {
    let app = TestApp::start();
    app.say("/slow", PAGE);
    let server = serve(&app);
    for way in ["--url", "--prefix"] {
        let first = app.count("/slow");
        app.hold("/slow");
        std::thread::scope(|all| {
            let client = all.spawn(|| body(&server, "/slow", ""));
            wait_until("the application is asked", || app.count("/slow") > first);
            purge(&server, &[way, &url(&server, "/slow")]);
            app.release();
            client.join().unwrap();
        });
        body(&server, "/slow", "");
        assert_eq!(app.count("/slow"), first + 2, "kept although it was purged by {way}");
        purge(&server, &["--all"]);
    }
}

/// The response to a `PURGE` with these fields.
fn purge_with(server: &TestServer, method: &str, fields: &str) -> Response {
    let text = format!("{method} /page HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
    server.connect().ask(&text)
}

#[test]
fn a_purge_that_is_not_understood_is_refused_with_the_reason() {
    let app = TestApp::start();
    app.say("/page", PAGE);
    let server = serve(&app);
    let before = body(&server, "/page", "");
    for field in [
        "X-Magento-Tags-Pattern: ((^|,)menu(,|$))",
        "X-Pool: cat",
        "X-Ban-Url: /page",
        "X-Url: /page",
        "Fastly-Soft-Purge: 1",
        "X-Magento-Tags: menu\r\nX-Magento-Purge-Soft: 1",
    ] {
        for method in ["PURGE", "REFRESH"] {
            let reply = purge_with(&server, method, &format!("{field}\r\n"));
            assert_eq!(reply.status, 400, "{method} {field}");
            let name = field.rsplit("\r\n").next().unwrap().split(':').next().unwrap();
            assert!(reply.text().contains(&format!("\"{name}\"")), "{}", reply.text());
            assert_eq!(body(&server, "/page", ""), before, "{field}");
        }
    }
    // The usual fields of a request select nothing.
    let usual = "User-Agent: a\r\nAccept: */*\r\nCookie: a=b\r\nCache-Control: no-cache\r\n\
                 X-Requested-With: a\r\nX-Request-ID: 7\r\nX-Purge-Method: default\r\n";
    assert_eq!(purge_with(&server, "PURGE", usual).header("x-purged-objects"), Some("1"));
    assert_ne!(body(&server, "/page", ""), before);
    let tag = purge_with(&server, "PURGE", "X-Magento-Tags: menu\r\n");
    assert_eq!(tag.header("x-purged-objects"), Some("1"));
}

#[test]
fn a_proxy_on_the_same_machine_may_purge_only_by_configuration() {
    let app = TestApp::start();
    let params = concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/fastcgi.conf;");
    app.say("/page", PAGE);
    let server = crate::http(&format!(
        "server {{ {LISTEN} page_cache auto;
           location / {{ {params} fastcgi_pass {pass}; }}
           location /said {{ page_cache_purge_allow 127.0.0.1; {params} fastcgi_pass {pass}; }} }}
         server {{ listen 127.0.0.1:@P2@; location / {{ proxy_pass http://127.0.0.1:@HTTP@;
           proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }} }}",
        pass = app.address(),
    ));
    let before = body(&server, "/page", "");
    for field in [
        "X-Forwarded-For",
        "Forwarded",
        "X-Real-IP",
        "Via",
        "True-Client-IP",
        "CF-Connecting-IP",
        "X-Forwarded-Proto",
    ] {
        for method in ["PURGE", "REFRESH"] {
            let reply = purge_with(&server, method, &format!("{field}: 127.0.0.1\r\n"));
            assert_eq!(reply.status, 403, "{method} with {field}");
        }
    }
    // So do proxies that speak HTTP/1.0.
    let old = "PURGE /page HTTP/1.0\r\nHost: localhost\r\n\r\n";
    assert_eq!(server.connect().ask(old).status, 403);
    let purge = "PURGE /page HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut client = bolide_testkit::H1TestClient::connect(server.addr(2));
    assert_eq!(client.ask(purge).status, 403, "through a proxy");
    assert_eq!(body(&server, "/page", ""), before);
    let mut client = bolide_testkit::H1TestClient::connect(server.addr(2));
    assert_eq!(client.ask(&purge.replace("/page", "/said")).status, 200);
    assert_eq!(purge_with(&server, "PURGE", "").status, 200);
    assert_ne!(body(&server, "/page", ""), before);
}
