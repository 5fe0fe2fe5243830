//! Files that others delete from a cache directory purge their pages.

use std::fs;
use std::path::{Path, PathBuf};

use bolide_testkit::server::{Home, LISTEN, TYPES, prelude};
use bolide_testkit::{TestApp, TestServer, wait_until};

use crate::BOLIDE;

struct Site(TestServer);

impl Site {
    fn start(cache: &str, app: &TestApp) -> Self {
        let (prelude, address) = (prelude(2), app.address());
        let conf = format!(
            "{prelude}http {{{TYPES} {cache}
             server {{ {LISTEN} location / {{
                 fastcgi_param REQUEST_URI $request_uri;
                 fastcgi_param REQUEST_METHOD $request_method;
                 fastcgi_pass {address}; fastcgi_cache one; fastcgi_cache_valid 200 1h;
                 fastcgi_cache_key \"$scheme$request_method$host$request_uri\";
                 add_header X-Status $upstream_cache_status always; }} }} }}\n"
        );
        Self(TestServer::start(Home::new(BOLIDE), &conf))
    }

    fn cache(&self) -> PathBuf {
        self.0.home().dir().join("cache")
    }

    /// The cache status and the body.
    fn status_and_body(&self, path: &str) -> (String, String) {
        let reply = self.0.get(path);
        (reply.header("x-status").unwrap_or_default().to_owned(), reply.text())
    }

    fn is(&self, path: &str, status: &str, body: &str) -> bool {
        self.status_and_body(path) == (status.to_owned(), body.to_owned())
    }

    /// Waits until there are `count` object files.
    fn wait_files(&self, count: usize) {
        wait_until("objects to be written", || files(&self.cache()).len() == count);
    }

    fn wait_line(&self, line: &str) {
        wait_until(line, || self.0.error_log().contains(line));
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(directory).into_iter().flatten().flatten().map(|it| it.path()) {
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.file_name().unwrap().len() == 32 {
            found.push(path);
        }
    }
    found
}

const ZONE: &str = "fastcgi_cache_path @DIR@/cache levels=1:2 keys_zone=one:1m;";
const EMPTIED: &str = "was emptied from outside, all of it is purged";

fn empty(directory: &Path) {
    for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => fs::remove_dir_all(path).unwrap(),
            false => fs::remove_file(path).unwrap(),
        }
    }
}

#[test]
fn a_deleted_file_is_a_purged_page() {
    let app = TestApp::start();
    let mut site = Site::start(ZONE, &app);
    assert!(site.is("/a", "MISS", "run 1") && site.is("/a", "HIT", "run 1"));
    site.wait_files(1);
    let file = files(&site.cache()).remove(0);
    assert!(site.is("/b", "MISS", "run 1"));
    site.wait_files(2);
    fs::remove_file(&file).unwrap();
    wait_until("the page to be purged", || site.status_and_body("/a").1 == "run 2");
    assert!(site.is("/a", "HIT", "run 2") && site.is("/b", "HIT", "run 1"));
    site.wait_line("1 file of cache");
    site.wait_files(2);
    // The new page outlives a death, and the old one does not come back.
    site.0.restart("KILL");
    assert!(site.is("/a", "HIT", "run 2") && site.is("/b", "HIT", "run 1"));
    fs::remove_file(&file).unwrap();
    wait_until("the page to be purged", || site.status_and_body("/a").1 == "run 3");
}

#[test]
fn an_emptied_directory_is_an_empty_cache_that_is_filled_again() {
    let app = TestApp::start();
    let mut site = Site::start(ZONE, &app);
    for (run, root_as_well) in [(2, false), (3, true), (4, false)] {
        site.status_and_body("/a");
        site.status_and_body("/b");
        site.wait_files(2);
        match root_as_well {
            true => fs::remove_dir_all(site.cache()).unwrap(),
            false => empty(&site.cache()),
        }
        wait_until(EMPTIED, || site.0.error_log().matches(EMPTIED).count() == run - 1);
        let body = format!("run {run}");
        wait_until("the pages to be purged", || {
            site.status_and_body("/a").1 == body && site.status_and_body("/b").1 == body
        });
        assert!(site.is("/a", "HIT", &body) && site.is("/b", "HIT", &body));
        site.wait_files(2);
    }
    site.0.restart("KILL");
    assert!(site.is("/a", "HIT", "run 4") && site.is("/b", "HIT", "run 4"));
    assert!(!site.0.error_log().contains("[crit]"));
}

#[test]
fn objects_evicted_from_the_disk_stay_in_memory() {
    let app = TestApp::start();
    // 16 files at most, and memory for more.
    let cache = "fastcgi_cache_path @DIR@/cache levels=1:2 keys_zone=one:1m max_size=64k;";
    let site = Site::start(cache, &app);
    let mut hits = 0;
    for page in 0..40 {
        assert_eq!(site.status_and_body(&format!("/{page}")).0, "MISS");
    }
    wait_until("files to be evicted", || (1..=16).contains(&files(&site.cache()).len()));
    for page in 0..40 {
        hits += usize::from(site.status_and_body(&format!("/{page}")).0 == "HIT");
    }
    assert!(!site.0.error_log().contains("from outside"), "{}", site.0.error_log());
    assert!(hits >= 16, "{hits}");
}

#[test]
fn deleting_the_file_with_nginxs_name_purges_a_page() {
    // The MD5 of `httpGETlocalhost/page`.
    const NAME: &str = "754493240be11f44de6078ff5f082556";
    let ask = |site: &Site, language: &str| {
        let fields = format!("Accept-Language: {language}\r\nConnection: close\r\n");
        site.0.connect().get("/page", &fields).text()
    };
    for (levels, inside) in [("", ""), (" levels=1:2", "6/55"), (" levels=2", "56")] {
        let app = TestApp::start();
        app.say("/page", "Vary: Accept-Language");
        let cache = format!("fastcgi_cache_path @DIR@/cache{levels} keys_zone=one:1m;");
        let site = Site::start(&cache, &app);
        assert_eq!([ask(&site, "de"), ask(&site, "en")], ["run 1", "run 2"], "{levels}");
        assert_eq!([ask(&site, "de"), ask(&site, "en")], ["run 1", "run 2"], "{levels}");
        // Two pages and what they vary by.
        site.wait_files(3);
        fs::remove_file(site.cache().join(inside).join(NAME)).unwrap();
        wait_until("every variant to be purged", || {
            [ask(&site, "de"), ask(&site, "en")].iter().all(|text| !text.ends_with(['1', '2']))
        });
        site.wait_files(3);
    }
}
