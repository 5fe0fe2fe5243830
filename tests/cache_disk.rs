//! Owns: what is kept on disk: it outlives the process, however that ends, and is never wrong.

use std::fs;
use std::path::{Path, PathBuf};

use testkit::server::{Home, LISTEN, TYPES, prelude};
use testkit::{App, Response, Server, wait_until};

use crate::BOLIDE;

/// A configuration with these caches, and this in the location of `app`.
fn conf(caches: &str, app: &App, location: &str) -> String {
    let (prelude, address) = (prelude(2), app.address());
    format!(
        "{prelude}http {{{TYPES} {caches}
         server {{ {LISTEN} location / {{
             fastcgi_param REQUEST_URI $request_uri; fastcgi_param REQUEST_METHOD $request_method;
             fastcgi_pass {address}; {location} }} }} }}\n"
    )
}

const ZONE: &str = "fastcgi_cache_path @DIR@/cache levels=1:2 keys_zone=one:1m;";
const KEEP: &str = "fastcgi_cache one; fastcgi_cache_key $request_uri; fastcgi_cache_valid 200 1h;
    add_header X-Status $upstream_cache_status always;";

/// A server whose cache is looked at.
struct Site(Server);

impl Site {
    fn start(caches: &str, app: &App, location: &str) -> Self {
        Self(Server::start(Home::new(BOLIDE), &conf(caches, app, location)))
    }

    /// The files of objects, by path.
    fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        walk(&self.0.home().dir().join("cache"), &mut found);
        found.sort();
        found
    }

    /// Waits until so many objects are on disk.
    fn wait_files(&self, count: usize) {
        wait_until("objects to be written", || self.files().len() == count);
    }

    /// The status of the cache, and the body.
    fn told(&self, path: &str) -> (String, String) {
        let reply = self.0.get(path);
        (reply.header("x-status").unwrap_or_default().to_owned(), reply.text())
    }
}

fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.file_name().unwrap().len() == 32 {
            found.push(path);
        }
    }
}

fn pair(status: &str, body: &str) -> (String, String) {
    (status.to_owned(), body.to_owned())
}

fn private(server: &Server, path: &str, session: &str) -> Response {
    server.connect().get(path, &format!("Cookie: PHPSESSID={session}\r\nConnection: close\r\n"))
}

#[test]
fn what_was_kept_is_there_after_a_restart() {
    let app = App::start();
    app.say("/a?b", "ETag: \"one\"\nContent-Type: text/html");
    let mut site = Site::start(ZONE, &app, KEEP);
    assert_eq!(site.told("/a?b"), pair("MISS", "run 1"));
    site.wait_files(1);
    for signal in ["QUIT", "TERM", "KILL"] {
        site.0.restart(signal);
        let reply = site.0.get("/a?b");
        assert_eq!(reply.header("x-status"), Some("HIT"), "after {signal}");
        assert_eq!(reply.text(), "run 1");
        assert_eq!(reply.header("etag"), Some("\"one\""));
        assert_eq!(reply.header("content-type"), Some("text/html"));
        assert_eq!(site.told("/a?b"), pair("HIT", "run 1"));
    }
    assert_eq!(app.count("/a?b"), 1);
}

const PAGES: &str = "page_cache_path @DIR@/cache;";

#[test]
fn pages_and_what_they_vary_by_outlive_a_restart() {
    let app = App::start();
    let head = "X-LiteSpeed-Cache-Control: public,max-age=3600\nVary: Accept-Language";
    app.say("/page", head);
    let mut site = Site::start(PAGES, &app, "page_cache auto;");
    let ask = |site: &Site, language: &str| {
        let fields = format!("Accept-Language: {language}\r\nConnection: close\r\n");
        site.0.connect().get("/page", &fields).text()
    };
    assert_eq!((ask(&site, "de"), ask(&site, "en")), ("run 1".to_owned(), "run 2".to_owned()));
    // Two pages, and that they vary.
    site.wait_files(3);
    site.0.restart("KILL");
    assert_eq!((ask(&site, "en"), ask(&site, "de")), ("run 2".to_owned(), "run 1".to_owned()));
    assert_eq!(app.count("/page"), 2);
}

#[test]
fn a_private_page_comes_back_to_its_own_session_only() {
    let app = App::start();
    app.say("/cart", "X-LiteSpeed-Cache-Control: private,max-age=3600");
    let mut site = Site::start(PAGES, &app, "page_cache auto;");
    let (me, you) = ("0123456789abcdef0123", "fedcba9876543210fedc");
    assert_eq!(private(&site.0, "/cart", me).text(), "run 1");
    assert_eq!(private(&site.0, "/cart", me).text(), "run 1");
    site.wait_files(1);
    for _ in 0..2 {
        site.0.restart("KILL");
        assert_eq!(private(&site.0, "/cart", me).text(), "run 1");
    }
    assert_eq!(private(&site.0, "/cart", you).text(), "run 2");
    assert_eq!(site.0.get("/cart").text(), "run 3");
}

#[test]
fn what_was_purged_stays_purged_after_a_restart() {
    let app = App::start();
    for page in ["/1", "/2", "/3"] {
        let head = "X-LiteSpeed-Cache-Control: public,max-age=3600\nX-LiteSpeed-Tag: all,@";
        app.say(page, &head.replace('@', &page[1..]));
    }
    app.say("/purge", "X-LiteSpeed-Purge: tag=2");
    app.say("/purge-all", "X-LiteSpeed-Purge: *");
    let mut site = Site::start(PAGES, &app, "page_cache auto;");
    let all = |site: &Site| ["/1", "/2", "/3"].map(|page| site.0.get(page).text());
    assert_eq!(all(&site), ["run 1", "run 1", "run 1"]);
    site.wait_files(3);
    site.0.get("/purge");
    site.0.restart("KILL");
    // Told by one process, obeyed by the next, though no memory has seen the page.
    assert_eq!(all(&site), ["run 1", "run 2", "run 1"]);
    site.0.restart("KILL");
    site.0.connect().ask("PURGE /3 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    site.0.restart("KILL");
    assert_eq!(all(&site)[2], "run 2");
    site.wait_files(3);
    site.0.get("/purge-all");
    site.0.restart("KILL");
    assert!(all(&site).iter().all(|text| text != "run 1"));
}
