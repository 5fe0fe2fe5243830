//! WordPress behind the page cache, with a plugin that sends cache directives and purges
//! (`wordpress_cache/plugin.php`) and without any; `wordpress_cache/visitors.py` are the people.

use std::fs;
use std::path::{Path, PathBuf};

use bolide_testkit::certs::key_hash;
use bolide_testkit::{CurlReply, Proto, TestServer, run, tool, tools};

use crate::BOLIDE;
use crate::wordpress::Site;

const DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wordpress_cache");

/// Mobile devices, detected as by the plugin.
const MOBILE: &str = "map $http_user_agent $mobile { ~*(mobile|android|iphone) ismobile; }
    log_format cached '$upstream_cache_status $status $request';";

/// The handbook's configuration with cache directives.
fn configuration(site: &Site, caching: &str) -> String {
    let log = "access_log @DIR@/logs/cached.log cached;";
    let handbook = site.handbook();
    let conf = handbook.replace("index index.php;", &format!("index index.php; {log} {caching}"));
    assert_ne!(conf, handbook);
    format!("{MOBILE}\n{conf}")
}

fn plugin(site: &Site) -> PathBuf {
    site.wordpress.dir().join("wp-content/mu-plugins/tells-the-cache.php")
}

/// Installs the site and lets people write in it.
fn fill(site: &Site, server: &TestServer) {
    let plugin = plugin(site);
    fs::create_dir_all(plugin.parent().unwrap()).unwrap();
    fs::copy(format!("{DIR}/plugin.php"), plugin).unwrap();
    let script = format!("{DIR}/fill.php");
    let (root, url) = (site.wordpress.dir(), base(server));
    let mail = "sendmail_path=/bin/true";
    let done = run("php", ["-d", mail, &script, root.to_str().unwrap(), &url]).succeeded();
    assert_eq!(done.text(), "filled\n", "{}", done.stderr);
    // The first response purges the pages that changed meanwhile.
    assert_eq!(server.fetch(Proto::H2, "/wp-login.php").status, 200);
}

fn base(server: &TestServer) -> String {
    format!("https://localhost:{}", server.https().port())
}

/// The cache status of a response.
fn cached(reply: &CurlReply) -> &str {
    reply.header("x-litespeed-cache").unwrap_or_default()
}

/// The first visit reaches WordPress, all others do not, in any protocol.
fn look_at_it(server: &TestServer) {
    for (path, protos) in [
        ("/", Proto::TLS),
        ("/observation-1/", [Proto::H2, Proto::H3, Proto::H1]),
        ("/category/comets/", [Proto::H3, Proto::H1, Proto::H2]),
        ("/feed/", [Proto::H2, Proto::H1, Proto::H3]),
    ] {
        let replies = protos.map(|proto| server.fetch(proto, path));
        assert_eq!(replies.each_ref().map(cached), ["miss", "hit", "hit"], "{path}");
        let [first, rest @ ..] = &replies;
        for reply in rest {
            assert!(reply.body == first.body, "{path}: another page than the first time");
        }
        for name in ["x-litespeed-cache-control", "x-litespeed-tag", "x-litespeed-vary"] {
            assert_eq!(first.header(name), None, "{path}");
        }
    }
}

/// The directory for screenshots and the ratio, below Cargo's directory for test output.
fn pictures(part: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("wordpress-cache").join(part)
}

/// Runs one part of the visitors' script.
fn visit(server: &TestServer, part: &str) -> String {
    let shots = pictures(part);
    let cert = server.home().dir().join("cert.pem");
    let args = [
        part.to_owned(),
        format!("--base={}", base(server)),
        format!("--cert={}", cert.display()),
        format!("--chromium={}", tool("chromium").display()),
        format!("--shots={}", shots.display()),
        format!("--flag=--ignore-certificate-errors-spki-list={}", key_hash(&cert)),
    ];
    let done = tools::python(&format!("{DIR}/visitors.py"), args);
    assert_eq!(done.code, 0, "{}\n{}", done.text(), done.stderr);
    done.text()
}

#[test]
fn wordpress_with_a_caching_plugin_is_fast_fresh_and_discreet() {
    let site = Site::new(4);
    let caching = "page_cache auto; page_cache_vary value=$mobile;";
    let server = TestServer::workers(BOLIDE, 2, &configuration(&site, caching));
    fill(&site, &server);
    look_at_it(&server);
    let report = visit(&server, "plugin");
    // The server's own log of the same visits.
    let log = server.home().read("logs/cached.log");
    let count = |word: &str| log.lines().filter(|line| line.starts_with(word)).count();
    let (hits, misses) = (count("HIT "), count("MISS "));
    assert!(hits > 5 * misses, "{hits} hits and {misses} misses\n{report}");
    let stats = server.home().run(&["cache", "stats", "--pid", &server.pid().to_string()]);
    let stats = stats.succeeded().text();
    let story = format!("{report}\nof the whole day, {hits} hits, {misses} misses\n\n{stats}");
    println!("{story}");
    fs::write(pictures("plugin").join("ratio.txt"), story).unwrap();
    let ratio = stats.split("hit ratio ").nth(1).and_then(|rest| rest.split('%').next());
    assert!(ratio.and_then(|text| text.parse::<u32>().ok()) >= Some(85), "{stats}");
}

#[test]
fn wordpress_without_a_plugin_is_cached_for_strangers_only() {
    let site = Site::new(4);
    let server =
        TestServer::workers(BOLIDE, 2, &configuration(&site, "page_cache_preset wordpress;"));
    fill(&site, &server);
    fs::remove_file(plugin(&site)).unwrap();
    println!("{}", visit(&server, "preset"));
}
