//! WordPress under a mixed load while php-fpm's children and master, MariaDB and the configuration
//! come and go: only requests inside killed processes fail, and nothing leaks.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bolide_testkit::php::kill;
use bolide_testkit::{H1TestClient, Proto, SetOnDrop, TestPhp, TestServer, pause, wait_until};

use crate::BOLIDE;
use crate::wordpress::Site;

/// Counts of results.
#[derive(Default)]
struct Tally(Mutex<BTreeMap<String, usize>>);

impl Tally {
    fn note(&self, what: String) {
        *self.0.lock().unwrap().entry(what).or_default() += 1;
    }

    fn of(&self, what: &str) -> usize {
        self.0.lock().unwrap().get(what).copied().unwrap_or_default()
    }

    fn total(&self) -> usize {
        self.0.lock().unwrap().values().sum()
    }

    /// All counts but these, as text.
    fn except(&self, fine: &[&str]) -> String {
        let all = self.0.lock().unwrap();
        let odd = all.iter().filter(|(what, _)| !fine.contains(&what.as_str()));
        odd.map(|(what, count)| format!("{count} x {what}\n")).collect()
    }
}

/// The requests of visitors: pages, the API, a login, a file, a search with a body.
const REQUESTS: [(&str, &str); 6] = [
    ("GET", "/"),
    ("GET", "/?p=1"),
    ("GET", "/index.php?rest_route=/wp/v2/posts"),
    ("GET", "/wp-login.php"),
    ("POST", "/wp-login.php"),
    ("GET", "/wp-includes/css/buttons.css"),
];

/// Sends requests in sequence until told to stop; each response is complete or visibly truncated.
fn visit_h1(server: &TestServer, over: &AtomicBool, tally: &Tally, first: usize) {
    let mut client: Option<H1TestClient> = None;
    let port = server.http().port();
    for turn in first.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let (method, path) = REQUESTS[turn % REQUESTS.len()];
        let to = client.get_or_insert_with(|| server.connect());
        let body = if method == "POST" { "log=nobody&pwd=wrong" } else { "" };
        to.send(format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Length: {}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n\r\n{body}",
            body.len()
        ));
        match to.try_answer(method) {
            Ok(answer) => {
                if answer.header("connection") == Some("close") {
                    client = None;
                }
                let is_file = path.contains(".css");
                tally.note(format!("{}{}", answer.status, if is_file { " file" } else { "" }));
            }
            Err(why) => {
                client = None;
                let is_cut = why.starts_with("closed after");
                tally.note(if is_cut {
                    "cut".to_owned()
                } else {
                    format!("{method} {path}: {why}")
                });
            }
        }
    }
}

/// The same over HTTP/2 and HTTP/3, with curl.
fn visit_by(server: &TestServer, proto: Proto, over: &AtomicBool, tally: &Tally) {
    for turn in 0.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let (method, path) = REQUESTS[turn % REQUESTS.len()];
        let mut curl = server.curl(proto);
        if method == "POST" {
            curl = curl.args(["-d", "log=nobody&pwd=wrong"]);
        }
        let reply = curl.attempt(&server.url(proto, path));
        let is_file = path.contains(".css");
        match (reply.exit, reply.status) {
            (0, status) => tally.note(format!("{status}{}", if is_file { " file" } else { "" })),
            (28, _) => tally.note("silent".to_owned()),
            (_, 200) => tally.note("cut".to_owned()),
            (exit, status) => tally.note(format!("curl {exit} {status} {}", reply.stderr)),
        }
    }
}

/// Runs visitors of every protocol during `trouble`.
fn under_load(server: &TestServer, trouble: impl FnOnce(&Tally)) -> Tally {
    let (tally, over) = (Tally::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        for first in 0..4 {
            let (tally, over) = (&tally, &over);
            scope.spawn(move || visit_h1(server, over, tally, first));
        }
        for proto in [Proto::H2, Proto::H3] {
            let (tally, over) = (&tally, &over);
            scope.spawn(move || visit_by(server, proto, over, tally));
        }
        let _over = SetOnDrop(&over);
        wait_until("the load to begin", || tally.of("200") > 10);
        trouble(&tally);
    });
    tally
}

const HOME: &str = "<?php
    $home = (isset($_SERVER['HTTPS']) ? 'https://' : 'http://') . $_SERVER['HTTP_HOST'];
    define('WP_HOME', $home); define('WP_SITEURL', $home);\n";

/// Installs WordPress with its own script, as the wizard does.
fn install(server: &TestServer) {
    let fields = "weblog_title=Chaos&user_name=editor&admin_password=long+secret+words&\
                  admin_password2=long+secret+words&admin_email=a%40example.org&language=";
    let curl = server.curl(Proto::H2).args(["-d", fields]);
    let reply = curl.get(&server.url(Proto::H2, "/wp-admin/install.php?step=2"));
    assert!(reply.text().contains("Success!"), "{}", reply.text());
}

/// The handbook's configuration with one server in the group: with two, a failure disables one for
/// ten seconds.
fn configuration(site: &Site) -> String {
    site.handbook().replace("server 127.0.0.1:@P9@ backup;", "")
}

fn start(children: u32) -> (Site, TestServer) {
    let site = Site::new(children);
    // The site URL follows the scheme of the request.
    let config = site.wordpress.dir().join("wp-config.php");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(config, text.replacen("<?php\n", HOME, 1)).unwrap();
    let server = TestServer::with(BOLIDE, &configuration(&site));
    install(&server);
    (site, server)
}

fn open_files(server: &TestServer) -> usize {
    fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count()
}

/// Checks that all resources of the load are released.
fn check_baseline(server: &TestServer, php: &TestPhp, files: usize, memory: u64) {
    wait_until("php to be idle", || {
        let status = php.status();
        status.active == 0 && status.waiting == 0
    });
    wait_until("files and connections to be closed", || open_files(server) <= files + 2);
    let grown = server.resident_kib().saturating_sub(memory);
    assert!(grown < 12_000, "grew by {grown} KiB");
}

/// Runs the load alone, so that one-time allocations precede the measurement.
fn warm_up(server: &TestServer) -> (usize, u64) {
    let tally = under_load(server, |_| pause(1500));
    assert_eq!(tally.except(&["200", "200 file"]), "", "before any trouble");
    let mut last = usize::MAX;
    wait_until("the connections of the warm-up to be closed", || {
        pause(100);
        let now = open_files(server);
        std::mem::replace(&mut last, now) == now
    });
    (last, server.resident_kib())
}

#[test]
fn killed_children_of_php_take_only_their_own_requests_along() {
    let (site, server) = start(4);
    let (files, memory) = warm_up(&server);
    let mut killed = 0;
    let tally = under_load(&server, |_| {
        for round in 0..8 {
            for child in site.php.children().into_iter().skip(round % 3).take(2) {
                kill(child);
                killed += 1;
            }
            wait_until("new children", || site.php.children().len() == 4);
            pause(200);
        }
    });
    assert_eq!(tally.except(&["200", "200 file", "502", "cut"]), "");
    let lost = tally.of("502") + tally.of("cut");
    assert!(lost <= killed, "{lost} requests lost in {killed} children");
    assert!(tally.of("200") > 30, "{} pages", tally.of("200"));
    check_baseline(&server, &site.php, files, memory);
}

#[test]
fn a_killed_master_of_php_is_a_502_until_it_is_back() {
    let (mut site, server) = start(4);
    let (files, memory) = warm_up(&server);
    let tally = under_load(&server, |tally| {
        site.php.kill_all();
        wait_until("clear answers without php", || tally.of("502") >= 10);
        let so_far = tally.of("200");
        site.php.restart();
        wait_until("pages again", || tally.of("200") > so_far + 10);
        // Without its master a pool continues with its children.
        site.php.kill_master();
        let so_far = tally.of("200");
        wait_until("pages by orphans", || tally.of("200") > so_far + 10);
        site.php.restart();
        let so_far = tally.of("200");
        wait_until("pages again", || tally.of("200") > so_far + 10);
    });
    assert_eq!(tally.except(&["200", "200 file", "502", "cut"]), "");
    assert!(tally.of("200 file") > 5, "files need no php");
    let log = server.error_log();
    let why = ["(2: No such file or directory)", "(111: Connection refused)"];
    assert!(why.iter().any(|why| log.contains(&format!("failed {why} while connecting"))), "{log}");
    check_baseline(&server, &site.php, files, memory);
}

#[test]
fn a_killed_database_is_wordpress_own_error_until_it_is_back() {
    let (mut site, server) = start(4);
    let (files, memory) = warm_up(&server);
    let tally = under_load(&server, |tally| {
        site.db.kill();
        // WordPress sends "Error establishing a database connection" with 500.
        wait_until("WordPress to complain", || tally.of("500") >= 10);
        site.db.restart();
        let so_far = tally.of("200");
        wait_until("pages again", || tally.of("200") > so_far + 10);
    });
    assert_eq!(tally.except(&["200", "200 file", "500"]), "");
    check_baseline(&server, &site.php, files, memory);
}

#[test]
fn reloads_lose_no_request_to_php() {
    let (site, server) = start(4);
    let (files, memory) = warm_up(&server);
    let tally = under_load(&server, |tally| {
        for round in 0..10 {
            let mark = format!("{} # {round}\n", configuration(&site));
            server.reload(&mark.replace("index index.php;", "index index.php; etag on;"));
            let so_far = tally.total();
            wait_until("requests after the reload", || tally.total() > so_far + 5);
        }
    });
    assert_eq!(tally.except(&["200", "200 file"]), "");
    check_baseline(&server, &site.php, files, memory);
}
