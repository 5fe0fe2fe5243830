//! A response that is fetched after a lookup elsewhere, on disk or by another request, is stored
//! under the URL of its request.

use std::fs;

use bolide_testkit::server::{Home, LISTEN, TYPES, prelude};
use bolide_testkit::{AppSaid, TestApp, TestServer, wait_until};

use crate::cache_disk::walk;
use crate::explain::ask;
use crate::{BOLIDE, report};

/// Kinds of stored responses: the directives of the location, and the fields of the response.
const KINDS: [(&str, &str); 9] = [
    ("page_cache auto;", "X-LiteSpeed-Cache-Control: public,max-age=600"),
    ("page_cache on;", "Content-Type: text/html\nCache-Control: max-age=600"),
    ("page_cache auto; page_cache_key $request_uri;", "Cache-Control: max-age=600"),
    ("page_cache auto; cache_rfc9111 on;", "Cache-Control: max-age=600\nVary: Accept-Language"),
    (
        "page_cache auto;",
        "X-LiteSpeed-Cache-Control: public,max-age=600\nX-LiteSpeed-Vary: cookie=lang",
    ),
    ("page_cache auto;", "X-LiteSpeed-Cache-Control: public,max-age=600,no-vary"),
    (
        "page_cache auto; cache_rfc9111 on;",
        "Cache-Control: max-age=600\nNo-Vary-Search: params=(\"x\")",
    ),
    (
        "magento_cache on;",
        "Content-Type: text/html\nCache-Control: public, max-age=600, s-maxage=600",
    ),
    ("fastcgi_cache one; fastcgi_cache_key $request_uri; fastcgi_cache_valid 1h;", "X: y"),
];
/// Marketing and order: `magento_cache` changes them.
const PATHS: [&str; 3] = ["/plain", "/args?a=1&b=2", "/sent?b=2&a=1&utm_source=x"];

fn conf(app: &TestApp, location: &str) -> String {
    let (prelude, address) = (prelude(2), app.address());
    format!(
        "{prelude}http {{{TYPES} page_cache_path @DIR@/cache;
         fastcgi_cache_path @DIR@/cache/zone keys_zone=one:1m;
         server {{ {LISTEN} location = /status {{ stub_status; }}
             location / {{ fastcgi_param REQUEST_URI $request_uri; fastcgi_pass {address};
                 fastcgi_param REQUEST_METHOD $request_method; {location} }} }} }}\n"
    )
}

/// What is wrong with a page that was just fetched a second time, if it is no hit under its URL.
fn fault(server: &TestServer, path: &str) -> Option<String> {
    let body = server.get(path).text();
    let listed = ask(server, &["cache", "list", "--json"]).text();
    // As the request asked, or as it is sent on.
    let url = path.split('?').next().unwrap();
    match body == "run 2" && listed.contains(url) && !listed.contains("\"url\":\"\"") {
        true => None,
        false => Some(format!("{path}: {body:?} of {listed}")),
    }
}

#[test]
fn a_page_whose_file_is_damaged_is_stored_again_under_its_url() {
    let mut failures = Vec::new();
    // Pages with `no-vary` and `No-Vary-Search` are looked up in memory only.
    let is_on_disk = |head: &str| !head.to_ascii_lowercase().contains("no-vary");
    for (location, head) in KINDS.into_iter().filter(|(_, head)| is_on_disk(head)) {
        let app = TestApp::start();
        let mut server = TestServer::start(Home::new(BOLIDE), &conf(&app, location));
        for path in PATHS {
            // As it is asked for, however parameters are sent on.
            app.say(path, head);
            app.say("/sent?a=1&b=2", head);
            assert_eq!(server.get(path).text(), "run 1", "{location} {path}");
        }
        wait_until("the pages to be files", || {
            let listed = ask(&server, &["cache", "list", "--json"]).text();
            let count = |is_there: &str| listed.matches(is_there).count();
            count("\"on_disk\":true") >= PATHS.len() && count("\"on_disk\":false") == 0
        });
        server.restart("QUIT");
        for path in PATHS {
            let body = server.get(path).text();
            if body != "run 1" {
                failures.push(format!("{location} {path}: {body:?} instead of its file"));
            }
        }
        server.signal("QUIT");
        let _ended = server.wait_exit();
        let mut files = Vec::new();
        walk(&server.home().dir().join("cache"), &mut files);
        for file in files {
            let mut bytes = fs::read(&file).unwrap();
            *bytes.last_mut().unwrap() ^= 4;
            fs::write(&file, bytes).unwrap();
        }
        server.start_again();
        for path in PATHS {
            assert_eq!(server.get(path).text(), "run 2", "{location} {path}: it is damaged");
            failures.extend(fault(&server, path).map(|fault| format!("{location} {fault}")));
        }
    }
    report(KINDS.len() * PATHS.len(), &failures);
}

#[test]
fn a_page_is_stored_under_its_url_after_the_fetch_that_it_waited_for_failed() {
    let mut failures = Vec::new();
    for (location, head) in KINDS {
        let app = TestApp::start();
        let server = TestServer::start(Home::new(BOLIDE), &conf(&app, location));
        let path = PATHS[1];
        app.plan(path, vec![AppSaid::head("Status: 500"), AppSaid::head(head)]);
        app.hold(path);
        std::thread::scope(|scope| {
            let asks: Vec<_> = (0..2).map(|_| scope.spawn(|| server.get(path).text())).collect();
            wait_until("both to wait", || server.get("/status").text().contains("Writing: 3"));
            app.release();
            let mut bodies: Vec<_> = asks.into_iter().map(|ask| ask.join().unwrap()).collect();
            bodies.sort();
            assert_eq!(bodies, ["run 1", "run 2"], "{location}");
        });
        failures.extend(fault(&server, path).map(|fault| format!("{location} {fault}")));
    }
    report(KINDS.len(), &failures);
}
