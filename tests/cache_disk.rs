//! The disk cache survives any end of the process, and never serves a wrong object.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bolide_cache::disk::format::Record;
use bolide_cache::disk::{DiskTree, DiskTreeSettings, file_hash};

use bolide_testkit::server::{Home, LISTEN, TYPES, prelude};
use bolide_testkit::{AppSaid, Proto, Response, SetOnDrop, TestApp, TestServer, run, wait_until};

use crate::BOLIDE;

/// A configuration with these caches, and these directives in the location of `app`.
fn conf(caches: &str, app: &TestApp, location: &str) -> String {
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

/// A server whose cache files are checked.
struct Site(TestServer);

impl Site {
    fn start(caches: &str, app: &TestApp, location: &str) -> Self {
        Self(TestServer::start(Home::new(BOLIDE), &conf(caches, app, location)))
    }

    /// The paths of the object files.
    fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        walk(&self.0.home().dir().join("cache"), &mut found);
        found.sort();
        found
    }

    /// Waits until there are `count` object files.
    fn wait_files(&self, count: usize) {
        wait_until("objects to be written", || self.files().len() == count);
    }

    /// The cache status and the body.
    fn status_and_body(&self, path: &str) -> (String, String) {
        let reply = self.0.get(path);
        (reply.header("x-status").unwrap_or_default().to_owned(), reply.text())
    }
}

pub(crate) fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
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

fn private(server: &TestServer, path: &str, session: &str) -> Response {
    server.connect().get(path, &format!("Cookie: PHPSESSID={session}\r\nConnection: close\r\n"))
}

#[test]
fn cached_pages_survive_a_restart() {
    let app = TestApp::start();
    app.say("/a?b", "ETag: \"one\"\nContent-Type: text/html");
    let mut site = Site::start(ZONE, &app, KEEP);
    assert_eq!(site.status_and_body("/a?b"), pair("MISS", "run 1"));
    site.wait_files(1);
    for signal in ["QUIT", "TERM", "KILL"] {
        site.0.restart(signal);
        let reply = site.0.get("/a?b");
        assert_eq!(reply.header("x-status"), Some("HIT"), "after {signal}");
        assert_eq!(reply.text(), "run 1");
        assert_eq!(reply.header("etag"), Some("\"one\""));
        assert_eq!(reply.header("content-type"), Some("text/html"));
        assert_eq!(site.status_and_body("/a?b"), pair("HIT", "run 1"));
    }
    assert_eq!(app.count("/a?b"), 1);
}

const PAGES: &str = "page_cache_path @DIR@/cache;";

#[test]
fn pages_and_what_they_vary_by_outlive_a_restart() {
    let app = TestApp::start();
    let head = "X-LiteSpeed-Cache-Control: public,max-age=3600\nVary: Accept-Language";
    app.say("/page", head);
    let mut site = Site::start(PAGES, &app, "page_cache auto;");
    let ask = |site: &Site, language: &str| {
        let fields = format!("Accept-Language: {language}\r\nConnection: close\r\n");
        site.0.connect().get("/page", &fields).text()
    };
    assert_eq!((ask(&site, "de"), ask(&site, "en")), ("run 1".to_owned(), "run 2".to_owned()));
    // Two pages and their `Vary` entry.
    site.wait_files(3);
    site.0.restart("KILL");
    assert_eq!((ask(&site, "en"), ask(&site, "de")), ("run 2".to_owned(), "run 1".to_owned()));
    assert_eq!(app.count("/page"), 2);
}

#[test]
fn litespeeds_name_of_the_path_keeps_pages_there() {
    let app = TestApp::start();
    app.say("/page", "X-LiteSpeed-Cache-Control: public,max-age=3600");
    let mut site = Site::start("CacheRoot @DIR@/cache;", &app, "page_cache auto;");
    assert_eq!(site.status_and_body("/page").1, "run 1");
    site.wait_files(1);
    site.0.restart("QUIT");
    assert_eq!(site.status_and_body("/page").1, "run 1");
}

#[test]
fn a_private_page_survives_a_restart_for_its_own_session_only() {
    let app = TestApp::start();
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
fn purges_survive_a_restart() {
    let app = TestApp::start();
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
    // One process purges and the next one obeys, although it never had the page in memory.
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

#[test]
fn a_broken_file_is_a_miss_and_never_wrong() {
    let app = TestApp::start();
    let mut site = Site::start(ZONE, &app, KEEP);
    assert_eq!(site.status_and_body("/a"), pair("MISS", "run 1"));
    site.wait_files(1);
    let path = site.files().remove(0);
    let good = fs::read(&path).unwrap();
    let mut asked = 1;
    let mut break_by = |site: &mut Site, bytes: &[u8], what: &str| {
        // The page in memory ends with the process.
        site.0.signal("KILL");
        let _ended = site.0.wait_exit();
        fs::write(&path, bytes).unwrap();
        site.0.start_again();
        asked += 1;
        assert_eq!(site.status_and_body("/a"), pair("MISS", &format!("run {asked}")), "{what}");
        site.wait_files(1);
        wait_until("the page to be written anew", || fs::read(&path).is_ok_and(|now| now != bytes));
    };
    for at in [0, 9, 17, 25, 40, 60, 100, good.len() - 3] {
        let mut bad = good.clone();
        bad[at] ^= 4;
        break_by(&mut site, &bad, &format!("byte {at}"));
    }
    for len in [0, 1, 50, 112, good.len() - 1] {
        break_by(&mut site, &good[..len], &format!("{len} bytes"));
    }
    break_by(&mut site, &[&good[..], b"more"].concat(), "too long");
    break_by(&mut site, &vec![0; good.len()], "zeroes");
}

#[test]
fn a_file_under_the_name_of_another_page_is_not_that_page() {
    let app = TestApp::start();
    app.plan("/a", vec![AppSaid::head("").body(b"this is a")]);
    app.plan("/b", vec![AppSaid::head("").body(b"this is b")]);
    let mut site = Site::start(ZONE, &app, KEEP);
    assert_eq!(site.status_and_body("/a"), pair("MISS", "this is a"));
    site.wait_files(1);
    let a = site.files().remove(0);
    assert_eq!(site.status_and_body("/b"), pair("MISS", "this is b"));
    site.wait_files(2);
    let b = site.files().into_iter().find(|path| *path != a).unwrap();
    fs::copy(&a, &b).unwrap();
    site.0.restart("KILL");
    assert_eq!(site.status_and_body("/b"), pair("MISS", "this is b"));
    assert_eq!(site.status_and_body("/a"), pair("HIT", "this is a"));
}

/// A body in which every part contains its position.
fn numbered(len: usize) -> Vec<u8> {
    let mut body: Vec<u8> =
        (0..len / 8 + 1).flat_map(|at| format!("{at:07}\n").into_bytes()).collect();
    body.truncate(len);
    body
}

#[test]
fn a_large_page_is_sent_from_its_file_and_broken_off_where_that_is_bad() {
    let app = TestApp::start();
    let body = numbered(3_000_001);
    app.plan("/large", vec![AppSaid::head("ETag: \"l\"").body(&body)]);
    let mut site = Site::start(ZONE, &app, KEEP);
    assert_eq!(site.0.get("/large").body, body);
    site.wait_files(1);
    site.0.restart("KILL");
    for proto in [Proto::H1, Proto::H2, Proto::H3] {
        let reply = site.0.fetch(proto, "/large");
        assert_eq!(reply.header("x-status"), Some("HIT"));
        assert!(reply.body == body, "{proto:?}");
    }
    for (from, to) in [(0, 0), (65_530, 65_545), (131_072, 400_000), (2_999_990, 3_000_000)] {
        let range = format!("Range: bytes={from}-{to}\r\n");
        let part = site.0.connect().get("/large", &range);
        assert_eq!((part.status, part.body == body[from..=to]), (206, true), "{range}");
    }
    let same = site.0.connect().get("/large", "If-None-Match: \"l\"\r\n");
    assert_eq!((same.status, same.header("x-status")), (304, Some("HIT")));
    // In the middle of the body.
    let path = site.files().remove(0);
    let mut bytes = fs::read(&path).unwrap();
    bytes[1_500_000] ^= 1;
    fs::write(&path, bytes).unwrap();
    let cut = site.0.connect().send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n").to_end();
    let cut = cut.unwrap_or_default();
    let start = cut.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    assert!(cut.len() - start < body.len() && body.starts_with(&cut[start..]));
    wait_until("the bad file to go", || site.files().is_empty());
    assert_eq!(site.0.get("/large").body, body);
    assert_eq!(app.count("/large"), 2);
}

#[test]
fn a_zone_keeps_what_is_larger_than_a_page_may_be() {
    let app = TestApp::start();
    // More than `page_cache_max_object`, and than may wait for the disk writer.
    let body = numbered(70_000_001);
    app.plan("/huge", vec![AppSaid::head("").body(&body)]);
    let mut site = Site::start(ZONE, &app, KEEP);
    for status in ["MISS", "HIT"] {
        let reply = site.0.get("/huge");
        assert_eq!(reply.header("x-status"), Some(status));
        assert!(reply.body == body);
    }
    site.wait_files(1);
    site.0.restart("KILL");
    assert!(site.0.get("/huge").body == body);
    assert_eq!(app.count("/huge"), 1);
}

#[test]
fn beyond_max_size_the_oldest_files_are_evicted() {
    let app = TestApp::start();
    let cache = "fastcgi_cache_path @DIR@/cache keys_zone=one:1m max_size=200k;";
    let mut site = Site::start(cache, &app, KEEP);
    for page in 0..30 {
        app.plan(&format!("/{page}"), vec![AppSaid::head("").body(&vec![b'x'; 20_000])]);
        assert_eq!(site.status_and_body(&format!("/{page}")).0, "MISS");
        if matches!(page, 0 | 28) {
            // Uses have a resolution of one second.
            bolide_testkit::pause(1100);
        }
    }
    // Five blocks each. The last one is the last to be written.
    let has_last = |file: &PathBuf| {
        let text = fs::read(file).unwrap_or_default();
        text.windows(3).any(|at| at == b"/29")
    };
    wait_until("the cache to shrink", || {
        let files = site.files();
        (1..=10).contains(&files.len()) && files.iter().any(has_last)
    });
    site.0.restart("QUIT");
    assert_eq!(site.status_and_body("/29").0, "HIT");
    assert_eq!(site.status_and_body("/0").0, "MISS");
}

#[test]
fn inactive_objects_are_removed() {
    let app = TestApp::start();
    let cache = "fastcgi_cache_path @DIR@/cache keys_zone=one:1m inactive=3s;";
    let site = Site::start(cache, &app, KEEP);
    assert_eq!(site.status_and_body("/used"), pair("MISS", "run 1"));
    assert_eq!(site.status_and_body("/idle"), pair("MISS", "run 1"));
    site.wait_files(2);
    wait_until("what is idle to go", || {
        assert_eq!(site.status_and_body("/used"), pair("HIT", "run 1"));
        site.files().len() == 1
    });
    assert_eq!(site.status_and_body("/used"), pair("HIT", "run 1"));
    assert_eq!(site.status_and_body("/idle"), pair("MISS", "run 2"));
}

#[test]
fn a_path_that_cannot_be_created_is_reported_as_by_nginx() {
    let home = Home::new(BOLIDE);
    let app = TestApp::start();
    let text = conf("fastcgi_cache_path @DIR@/no/such keys_zone=one:1m;", &app, KEEP);
    let conf = home.write("nginx.conf", &text);
    let done = home.run(&["-t", "-c", conf.to_str().unwrap()]);
    let wanted = format!(
        "mkdir() \"{}/no/such\" failed (2: No such file or directory)",
        home.dir().display()
    );
    assert!(done.code != 0 && done.stderr.contains(&wanted), "{}", done.stderr);
}

/// A file system that is unmounted with the test.
struct Mount(PathBuf);

impl Mount {
    fn tmpfs(path: PathBuf, size: &str) -> Self {
        assert!(bolide_testkit::server::is_root(), "only root can mount a tmpfs for this test");
        fs::create_dir_all(&path).unwrap();
        let options = format!("size={size}");
        let shown = path.to_str().unwrap();
        let _done = run("mount", ["-t", "tmpfs", "-o", &options, "tmpfs", shown]).succeeded();
        Self(path)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _gone = run("umount", ["-l", self.0.to_str().unwrap()]);
    }
}

#[test]
fn a_full_disk_costs_one_line_and_nothing_else() {
    let app = TestApp::start();
    let home = Home::new(BOLIDE);
    let _mount = Mount::tmpfs(home.dir().join("cache"), "16m");
    let mut site = Site(TestServer::start(home, &conf(PAGES, &app, "page_cache auto;")));
    let body = numbered(100_000);
    for page in 0..250 {
        let head =
            format!("X-LiteSpeed-Cache-Control: public,max-age=3600\nX-LiteSpeed-Tag: {page}");
        app.plan(&format!("/{page}"), vec![AppSaid::head(&head).body(&body)]);
        assert!(site.0.get(&format!("/{page}")).body == body, "page {page}");
    }
    wait_until("the disk to be full", || site.0.error_log().contains("No space left"));
    for page in 0..250 {
        assert!(site.0.get(&format!("/{page}")).body == body, "page {page}");
        assert_eq!(app.count(&format!("/{page}")), 1, "page {page}");
    }
    let lines = site.0.error_log().matches("No space left").count();
    assert_eq!(lines, 1, "{}", site.0.error_log());
    // A purge survives the process although there is no space to record it.
    for page in 0..20 {
        app.say("/purge", &format!("X-LiteSpeed-Purge: tag={page}"));
        assert_eq!(site.0.get("/purge").status, 200);
    }
    site.0.restart("KILL");
    for page in 0..250 {
        assert!(site.0.get(&format!("/{page}")).body == body, "page {page}");
        let asked = app.count(&format!("/{page}"));
        assert!(asked == 2 || page >= 20 && asked == 1, "page {page} was asked for {asked} times");
    }
}

/// Pages whose versions all differ, and the versions that may be served.
struct Pages {
    bodies: Vec<Vec<Vec<u8>>>,
    /// The first version that a new request may get.
    floors: Vec<AtomicUsize>,
    served: AtomicUsize,
    hits: AtomicUsize,
}

const PAGES_MAX: usize = 12;
const VERSIONS: usize = 400;

/// Contains page and version; its length and bytes differ from those of every other one.
fn version(page: usize, version: usize) -> Vec<u8> {
    let mut text = format!("page {page} version {version}: ").into_bytes();
    let mut state = (page * 7919 + version) as u64 | 1 << 40;
    for _ in 0..(page * 611 + version * 37) % 3000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        text.push(b'a' + (state >> 60) as u8);
    }
    text
}

impl Pages {
    fn new(app: &TestApp) -> Self {
        let bodies: Vec<Vec<Vec<u8>>> = (0..PAGES_MAX)
            .map(|page| (0..VERSIONS).map(|number| version(page, number)).collect())
            .collect();
        for (page, all) in bodies.iter().enumerate() {
            let head = format!(
                "X-LiteSpeed-Cache-Control: public,max-age=3600\nX-LiteSpeed-Tag: page-{page}"
            );
            let answers = all.iter().map(|body| AppSaid::head(&head).body(body)).collect();
            app.plan(&format!("/{page}"), answers);
            app.say(&format!("/purge/{page}"), &format!("X-LiteSpeed-Purge: tag=page-{page}"));
        }
        let floors = (0..PAGES_MAX).map(|_| AtomicUsize::new(0)).collect();
        Self { bodies, floors, served: AtomicUsize::new(0), hits: AtomicUsize::new(0) }
    }

    /// Requests a page; false if the server is gone. The version must not be older than the last
    /// purge that was acknowledged before.
    fn ask(&self, addr: SocketAddr, page: usize) -> bool {
        let floor = self.floors[page].load(Ordering::SeqCst);
        let Some((head, body)) = whole(addr, &format!("/{page}")) else { return false };
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let found = self.bodies[page].iter().position(|known| *known == body);
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        let found = found.unwrap_or_else(|| panic!("page {page} was never so: {shown}"));
        assert!(found >= floor, "page {page}: version {found} was purged before {floor}");
        self.served.fetch_add(1, Ordering::SeqCst);
        let is_hit = head.to_ascii_lowercase().contains("x-litespeed-cache: hit");
        self.hits.fetch_add(usize::from(is_hit), Ordering::SeqCst);
        true
    }

    fn purge(&self, addr: SocketAddr, page: usize, app: &TestApp) -> bool {
        let asked = app.count(&format!("/{page}"));
        if asked + 20 > VERSIONS || whole(addr, &format!("/purge/{page}")).is_none() {
            return false;
        }
        self.floors[page].fetch_max(asked, Ordering::SeqCst);
        true
    }
}

/// The head and body of a complete response.
fn whole(addr: SocketAddr, path: &str) -> Option<(String, Vec<u8>)> {
    let mut socket = TcpStream::connect(addr).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).ok()?;
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).ok()?;
    let end = bytes.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let body = bytes.split_off(end);
    let lower = head.to_ascii_lowercase();
    if let Some(rest) = lower.split("content-length: ").nth(1) {
        let len: usize = rest.split("\r\n").next()?.parse().ok()?;
        return (body.len() == len).then_some((head, body));
    }
    // Chunked; the last chunk must be there.
    let mut rest = &body[..];
    let mut joined = Vec::new();
    loop {
        let line = rest.windows(2).position(|end| end == b"\r\n")?;
        let len = usize::from_str_radix(std::str::from_utf8(&rest[..line]).ok()?, 16).ok()?;
        let chunk = rest.get(line + 2..line + 2 + len)?;
        joined.extend_from_slice(chunk);
        rest = rest.get(line + 4 + len..)?;
        if len == 0 {
            return Some((head, joined));
        }
    }
}

#[test]
fn a_hundred_deaths_in_the_middle_of_writing_leave_no_wrong_page() {
    let app = TestApp::start();
    let pages = Pages::new(&app);
    let mut site = Site::start(PAGES, &app, "page_cache auto;");
    for round in 0..100 {
        let addr = site.0.http();
        let is_over = AtomicBool::new(false);
        let before = pages.served.load(Ordering::SeqCst);
        std::thread::scope(|scope| {
            for client in 0..3 {
                let (pages, is_over) = (&pages, &is_over);
                scope.spawn(move || {
                    let mut page = client + round;
                    while !is_over.load(Ordering::SeqCst) && pages.ask(addr, page % PAGES_MAX) {
                        page += 5;
                    }
                });
            }
            let _over = SetOnDrop(&is_over);
            wait_until("pages to be served", || {
                pages.purge(addr, (round * 5 + 1) % PAGES_MAX, &app);
                pages.purge(addr, (round * 7) % PAGES_MAX, &app);
                pages.served.load(Ordering::SeqCst) > before + 10 + round % 17
            });
            site.0.signal("KILL");
        });
        let _ended = site.0.wait_exit();
        site.0.start_again();
        // Every surviving object is right.
        (0..PAGES_MAX).for_each(|page| assert!(pages.ask(site.0.http(), page)));
    }
    let (served, hits) = (pages.served.into_inner(), pages.hits.into_inner());
    assert!(hits > 300 && hits < served, "{hits} hits among {served}");
}

#[test]
fn a_start_with_very_many_objects_answers_at_once() {
    const COUNT: u32 = 200_000;
    let app = TestApp::start();
    let mut site = Site::start(ZONE, &app, KEEP);
    assert_eq!(site.status_and_body("/first"), pair("MISS", "run 1"));
    site.wait_files(1);
    let model = fs::read(site.files().remove(0)).unwrap();
    let model = Record::decode(&model).unwrap();
    site.0.signal("KILL");
    let _ended = site.0.wait_exit();
    let root = site.0.home().dir().join("cache");
    let settings = DiskTreeSettings {
        root: root.to_str().unwrap().as_bytes().into(),
        levels: [1, 2].into(),
        max_size: 0,
        inactive: 0,
        min_free: 0,
    };
    let tree = DiskTree::new(&settings);
    for first in 0..16 {
        for second in 0..256 {
            fs::create_dir_all(root.join(format!("{first:x}/{second:02x}"))).unwrap();
        }
    }
    let mut file = Vec::new();
    for number in 0..COUNT {
        let url = format!("/many/{number}");
        let record = Record { url: url.as_bytes(), ..model };
        assert!(record.encode(&mut file));
        file.extend_from_slice(b"run 1");
        let path = tree.path(file_hash(record.namespace, record.url, b"", b""));
        fs::write(std::ffi::OsStr::from_bytes(&path), &file).unwrap();
    }
    site.0.start_again();
    for number in [COUNT - 1, 0, COUNT / 2] {
        assert_eq!(site.status_and_body(&format!("/many/{number}")), pair("HIT", "run 1"));
    }
    assert_eq!(site.status_and_body("/few"), pair("MISS", "run 1"));
    assert_eq!(site.status_and_body("/first"), pair("HIT", "run 1"));
    assert!(app.asked("/many/0").is_empty());
}
