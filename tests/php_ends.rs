//! Masters of PHP pools that end while requests run and wait: none of the requests is lost.

use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use bolide_testkit::server::{LISTEN, is_root};
use bolide_testkit::{TestServer, run, wait_until};

use crate::BOLIDE;
use crate::php_pool::{command, family, kill, lives, put, ready_master, user, wait_for_load};

/// The time that the control thread may compute in a second of rest.
const REST_MAX: Duration = Duration::from_millis(300);

/// A site whose scripts run in the pool `rem`.
fn site(pool: &str) -> String {
    format!(
        "php_pool rem {{ {} {pool} }}
         server {{ {LISTEN} location ~ \\.php$ {{ php_pass rem; fastcgi_read_timeout 30s; }} }}",
        user()
    )
}

fn start(http: &str) -> TestServer {
    let server = TestServer::with(BOLIDE, http);
    put(&server, "pid.php", "<?php echo getmypid();");
    // A signal ends one long sleep, but not these short ones.
    let busy = "<?php $end = microtime(true) + $_GET['s'];
        while (microtime(true) < $end) usleep(20000);
        echo 'busy';";
    put(&server, "busy.php", busy);
    server
}

/// A request in the background: its body and status.
fn ask(server: &TestServer, path: &str) -> JoinHandle<String> {
    let url = format!("http://{}{path}", server.http());
    spawn(move || run("curl", ["-s", "-w", " %{http_code}", &url]).text())
}

fn is_removed(server: &TestServer) -> bool {
    command(server, &["status"]).text().contains("no longer configured")
}

#[test]
fn a_removed_pool_whose_master_dies_serves_its_queue_without_spinning() {
    for idle in ["", "idle 60s;"] {
        let server = start(&site(&format!("children 1; request_timeout 0; queue 8; {idle}")));
        wait_until("PHP", || server.get("/pid.php").status == 200);
        let old = ready_master(&server, "rem");
        let running = ask(&server, "/busy.php?s=5");
        wait_for_load(&server, "rem", 1, 0);
        let waiting = ask(&server, "/pid.php");
        wait_for_load(&server, "rem", 1, 1);
        server.reload(&format!("server {{ {LISTEN} }}"));
        wait_until("the reload", || is_removed(&server));
        kill("KILL", old);
        wait_until("the end", || !lives(old));
        let before = server.cpu_time();
        bolide_testkit::pause(1000);
        let used = server.cpu_time() - before;
        assert!(used < REST_MAX, "{idle} {used:?} of a second");
        assert_eq!(running.join().unwrap(), "busy 200", "{idle}");
        let waited = waiting.join().unwrap();
        assert!(waited.ends_with(" 200"), "{idle} {waited}: {}", server.error_log());
        wait_until("the pool to end", || !command(&server, &["status"]).text().contains("rem:"));
    }
}

/// The master of lsphp below its keeper.
fn below(keeper: u32) -> u32 {
    let text = std::fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children"));
    text.unwrap().split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn children_of_lsphp_finish_their_requests_without_their_master() {
    let lsphp = bolide_testkit::tool("lsphp");
    // The lsphp of the tests is below a directory that only its owner may enter.
    let user_root = if is_root() { "user root;" } else { "" };
    let pool = format!("binary {}; children 3; {user_root}", lsphp.display());
    let server = start(&site(&pool).replace(user(), ""));
    wait_until("PHP", || server.get("/pid.php").status == 200);
    let keeper = ready_master(&server, "rem");
    let running = ask(&server, "/busy.php?s=4");
    wait_for_load(&server, "rem", 1, 0);
    let all = family(keeper);
    kill("KILL", below(keeper));
    wait_until("a new master", || {
        command(&server, &["status"]).text().contains("ended 1 times, 1 finishing")
    });
    assert!(!running.is_finished(), "the new master does not wait for the old one's children");
    wait_until("PHP again", || server.get("/pid.php").status == 200);
    assert_ne!(ready_master(&server, "rem"), keeper);
    assert_eq!(running.join().unwrap(), "busy 200");
    wait_until("the children to end", || !all.iter().any(|pid| lives(*pid)));
    let log = server.error_log();
    assert!(log.contains("lost its master, which exited on signal 9, starting again"), "{log}");
}

#[test]
fn children_of_lsphp_without_their_master_end_with_the_server() {
    let lsphp = bolide_testkit::tool("lsphp");
    let user_root = if is_root() { "user root;" } else { "" };
    for signal in ["TERM", "KILL"] {
        let pool = format!("binary {}; children 3; {user_root}", lsphp.display());
        let server = start(&site(&pool).replace(user(), ""));
        wait_until("PHP", || server.get("/pid.php").status == 200);
        let keeper = ready_master(&server, "rem");
        let _running = ask(&server, "/busy.php?s=60");
        wait_for_load(&server, "rem", 1, 0);
        let all = family(keeper);
        kill("KILL", below(keeper));
        wait_until("a new master", || {
            command(&server, &["status"]).text().contains("ended 1 times, 1 finishing")
        });
        server.stop(signal);
        wait_until("the children to end", || !all.iter().any(|pid| lives(*pid)));
    }
}
