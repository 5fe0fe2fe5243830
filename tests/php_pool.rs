//! The PHP pools of the server: start, replacement, restart, shutdown.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use bolide_testkit::load::{TestLoad, h2load_beside};
use bolide_testkit::server::{Home, LISTEN, TYPES, is_root, prelude};
use bolide_testkit::tools::finish;
use bolide_testkit::{Proto, TestServer, ToolRun, run, wait_until};

use crate::BOLIDE;

/// Reports its process, user and environment.
const WHO: &str = "<?php echo json_encode([
    'pid' => getmypid(), 'parent' => function_exists('posix_getppid') ? posix_getppid() : 0,
    'uid' => function_exists('posix_geteuid') ? posix_geteuid() : 0,
    'memory' => ini_get('memory_limit'), 'ini' => ini_get('user_agent'), 'env' => getenv(),
    'opcache' => ini_get('opcache.memory_consumption'), 'sapi' => PHP_SAPI,
]);";

/// A site with scripts in a pool.
fn php(pool: &str, server: &str) -> String {
    format!(
        "php_pool main {{ {} {pool} }}
         server {{ {LISTEN} {server}
             location ~ \\.php$ {{ try_files $uri =404; php_pass main; }} }}",
        user()
    )
}

/// PHP does not run as root, even where the tests do.
pub(crate) fn user() -> &'static str {
    if is_root() { "user nobody;" } else { "" }
}

fn start(pool: &str) -> TestServer {
    let server = TestServer::with(BOLIDE, &php(pool, ""));
    put(&server, "who.php", WHO);
    put(&server, "slow.php", "<?php usleep(1000 * $_GET['ms']); echo 'slept';");
    server
}

pub(crate) fn put(server: &TestServer, name: &str, text: &str) {
    fs::write(server.www(name), text).unwrap();
}

/// A value in the output of `WHO`.
fn who(server: &TestServer, path: &str, name: &str) -> String {
    let reply = server.get(path);
    let text = reply.text();
    let rest = text.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{text}")).1;
    let value = match rest.strip_prefix('"') {
        Some(text) => text.split('"').next(),
        None => rest.split([',', '}']).next(),
    };
    value.unwrap().to_owned()
}

fn answers(server: &TestServer) -> bool {
    let reply = server.get("/who.php");
    reply.status == 200 && reply.text().contains("\"pid\":")
}

/// The output of `bolide php …`.
pub(crate) fn command(server: &TestServer, args: &[&str]) -> ToolRun {
    let conf = server.home().dir().join("nginx.conf");
    let mut command = server.home().command(&["-c", conf.to_str().unwrap(), "php"]);
    command.args(args);
    finish("bolide php", command, Duration::from_secs(30))
}

/// The master of a pool, as the server reports it.
pub(crate) fn master(server: &TestServer, pool: &str) -> Option<u32> {
    let output = command(server, &["status"]).text();
    let line = output.lines().find(|line| line.starts_with(&format!("{pool}: running")))?;
    line.split_once(" pid ")?.1.split(',').next()?.parse().ok()
}

pub(crate) fn ready_master(server: &TestServer, pool: &str) -> u32 {
    let mut found = None;
    wait_until("the pool to run", || {
        found = master(server, pool);
        found.is_some()
    });
    found.unwrap()
}

/// Waits until exactly this many requests of a pool run, and this many wait for a child.
pub(crate) fn wait_for_load(server: &TestServer, pool: &str, active: u32, queued: u32) {
    let name = format!("\"pool\":\"{pool}\"");
    let numbers = [format!("\"active\":{active},"), format!("\"queued\":{queued},")];
    wait_until("the pool to have its requests", || {
        let text = command(server, &["top", "--json"]).text();
        let row = text.split('{').find(|row| row.contains(&name));
        row.is_some_and(|row| numbers.iter().all(|number| row.contains(number)))
    });
}

/// Sends a signal to a process.
pub(crate) fn kill(signal: &str, pid: u32) {
    let _done = run("kill", ["-s", signal, &pid.to_string()]);
}

/// Whether a process is alive; a zombie is not.
pub(crate) fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// A process and all its descendants.
pub(crate) fn family(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut next = 0;
    while next < all.len() {
        let pid = all[next];
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        all.extend(
            children
                .unwrap_or_default()
                .split_whitespace()
                .map(|word| word.parse::<u32>().unwrap()),
        );
        next += 1;
    }
    all
}

/// The private directory of a server.
pub(crate) fn runtime(server: &TestServer) -> PathBuf {
    let open = fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap();
    let lock = open
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .find(|path| path.ends_with("bolide.lock"));
    lock.expect("a server with pools has a directory").parent().unwrap().to_owned()
}

#[test]
fn a_pool_runs_scripts_with_its_settings() {
    let server = start(
        "children 3; memory 48m; max_requests 50; env GREETING \"hello 'you' ${x}\";
         ini user_agent 'a \"b\" $c; d'; ini opcache.memory_consumption 40;",
    );
    assert!(answers(&server));
    let ask = |name: &str| who(&server, "/who.php", name);
    assert_eq!(ask("memory"), (48 << 20).to_string());
    assert_eq!(ask("GREETING"), "hello 'you' ${x}");
    assert_eq!(ask("opcache"), "40");
    assert_eq!(ask("sapi"), "fpm-fcgi");
    assert!(server.get("/who.php").text().contains(r#""ini":"a \"b\" $c; d""#));
    assert!(!server.get("/who.php").text().contains("FPM_SOCKETS"), "the environment is clean");
    if is_root() {
        let nobody = run("id", ["-u", "nobody"]).succeeded().text().trim().to_owned();
        assert_eq!(ask("uid"), nobody);
    }
    let master = ready_master(&server, "main");
    assert_eq!(ask("parent"), master.to_string());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let dir = runtime(&server);
    assert_eq!(mode(&dir), if is_root() { 0o711 } else { 0o700 });
    for entry in fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        assert!(mode(&path) & 0o077 == 0, "{path:?}");
    }
}

#[test]
fn a_script_that_is_not_there_is_not_run() {
    let server = start("children 2;");
    fs::write(server.www("upload.txt"), "<?php echo 'owned';").unwrap();
    assert_eq!(server.get("/none.php").status, 404);
    for path in ["/upload.txt/x.php", "/upload.txt%00.php", "/hello.txt/.php"] {
        let reply = server.get(path);
        assert!(reply.status >= 400 && !reply.text().contains("owned"), "{path}");
    }
}

#[test]
fn a_killed_master_is_replaced_and_running_requests_end() {
    let server = start("children 3;");
    assert!(answers(&server));
    let old = ready_master(&server, "main");
    let url = format!("http://{}/slow.php?ms=1500", server.http());
    let slow = std::thread::spawn(move || run("curl", ["-s", &url]).text());
    wait_for_load(&server, "main", 1, 0);
    kill("KILL", old);
    // No request is needed for the restart.
    assert!(answers(&server));
    let new = ready_master(&server, "main");
    assert_ne!(new, old);
    assert_eq!(slow.join().unwrap(), "slept", "its child outlives its master");
    wait_until("children of the dead master to end", || {
        !run("pgrep", ["-g", &old.to_string()]).text().contains(char::is_numeric)
    });
    assert!(server.error_log().contains("[alert]"), "{}", server.error_log());
    assert!(server.error_log().contains("exited on signal 9, starting again"));
}

#[test]
fn masters_killed_again_and_again_under_load_cost_no_request() {
    let server = start("children 3;");
    assert!(answers(&server));
    let args = ["-D", "5", "-c", "8", "-m", "1"].map(str::to_owned).to_vec();
    let load = h2load_beside(Proto::H2c, server.url(Proto::H2c, "/slow.php?ms=10"), args);
    for _ in 0..4 {
        bolide_testkit::pause(800);
        kill("KILL", ready_master(&server, "main"));
    }
    let TestLoad { total, succeeded, failed, classes, report } = load.join().unwrap();
    let fine = succeeded > 0 && failed == 0 && classes == [succeeded, 0, 0, 0];
    assert!(fine, "{failed} of {total} failed:\n{report}\n{}", server.error_log());
}

#[test]
fn a_killed_child_fails_its_own_request_only() {
    let server = start("children 3;");
    assert!(answers(&server));
    let url = |ms: u32| format!("http://{}/slow.php?ms={ms}", server.http());
    let status = |url: String| {
        std::thread::spawn(move || run("curl", ["-s", "-w", "%{http_code}", &url]).text())
    };
    put(&server, "die.php", "<?php posix_kill(getmypid(), 9); sleep(5);");
    let slow = status(url(1000));
    assert_eq!(server.get("/die.php").status, 502);
    assert_eq!(slow.join().unwrap(), "slept200");
    (0..5).for_each(|_| assert!(answers(&server)));
}

#[test]
fn a_pool_that_cannot_start_is_logged_and_the_server_continues() {
    let home = Home::new(BOLIDE);
    let fake = home.write("fake-fpm", "#!/bin/sh\necho 'no good' >&2\nexit 3\n");
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    let block = php(&format!("binary {};", fake.display()), "");
    let server = TestServer::start(home, &format!("{}http {{{TYPES}{block}}}", prelude(1)));
    put(&server, "who.php", WHO);
    assert_eq!(server.get("/hello.txt").status, 200);
    wait_until("the server to give up waiting", || server.error_log().contains("does not start"));
    let log = server.error_log();
    for words in ["[error]", "php pool \"main\": no good", "exited with code 3"] {
        assert!(log.contains(words), "{words}:\n{log}");
    }
    assert!(matches!(server.get("/who.php").status, 502 | 503));
    assert!(command(&server, &["status"]).text().contains("main: down"));
    // Repaired, it starts by itself.
    let real = run("sh", ["-c", "ls /usr/sbin/php-fpm* | sort -V | tail -1"]).text();
    fs::write(&fake, format!("#!/bin/sh\nexec {} \"$@\"\n", real.trim())).unwrap();
    wait_until("the pool to run", || answers(&server));
}

#[test]
fn standard_error_of_scripts_is_in_the_error_log() {
    let server = start("children 2;");
    put(
        &server,
        "say.php",
        "<?php fwrite(fopen('php://stderr', 'w'), \"oh\\e[2J dear\\n\"); echo 1;",
    );
    assert_eq!(server.get("/say.php").status, 200);
    wait_until("the line", || {
        let log = server.error_log();
        log.lines().any(|line| {
            line.contains("[error]") && line.contains("php pool \"main\": oh\\u{1b}[2J dear")
        })
    });
}

#[test]
fn an_error_of_a_script_is_logged_once_with_its_request() {
    let server = start("children 2;");
    put(&server, "bad.php", "<?php function f() { g(); } f();");
    assert_eq!(server.get("/bad.php").status, 500);
    let count =
        |words: &str| server.error_log().lines().filter(|line| line.contains(words)).count();
    wait_until("both copies", || count("NOTICE: PHP message") == 1 && count("[error]") >= 1);
    let log = server.error_log();
    let errors: Vec<&str> = log.lines().filter(|line| line.contains("[error]")).collect();
    assert_eq!(errors.len(), 1, "{log}");
    assert!(errors[0].contains("FastCGI sent in stderr"), "{log}");
}

#[test]
fn pools_of_two_users_cannot_read_each_others_files() {
    if !is_root() {
        return;
    }
    let server = TestServer::with(
        BOLIDE,
        &format!(
            "php_pool a {{ user www-data; children 2; }}
             php_pool b {{ user nobody; children 2; }}
             server {{ {LISTEN}
                 location ~ ^/a/.+\\.php$ {{ php_pass a; }}
                 location ~ ^/b/.+\\.php$ {{ php_pass b; }} }}"
        ),
    );
    let read = "<?php echo @file_get_contents($_GET['f']) ?: 'refused';";
    for (pool, user) in [("a", "www-data"), ("b", "nobody")] {
        fs::create_dir(server.www(pool)).unwrap();
        put(&server, &format!("{pool}/read.php"), read);
        let id = run("id", ["-u", user]).succeeded().text().trim().parse().unwrap();
        let secret = server.www(pool).join("secret");
        fs::write(&secret, format!("of {pool}")).unwrap();
        chown(&secret, Some(id), None).unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let ask = |who: &str, whose: &str| {
        let secret = server.www(whose).join("secret");
        server.get(&format!("/{who}/read.php?f={}", secret.display())).text()
    };
    assert_eq!((ask("a", "a").as_str(), ask("b", "b").as_str()), ("of a", "of b"));
    assert_eq!((ask("a", "b").as_str(), ask("b", "a").as_str()), ("refused", "refused"));
    // Nor may they connect to each other's processes, or read their configuration.
    let connect = "<?php echo @stream_socket_client('unix://' . $_GET['f']) ? 'open' : 'refused';";
    put(&server, "a/connect.php", connect);
    for entry in fs::read_dir(runtime(&server)).unwrap() {
        let path = entry.unwrap().path();
        let shown = path.display();
        let refused = |script: &str| server.get(&format!("/a/{script}.php?f={shown}"));
        assert_eq!(refused("connect").text(), "refused", "{shown}");
        assert_eq!(refused("read").text(), "refused", "{shown}");
    }
}

#[test]
fn changed_settings_take_effect_and_unchanged_pools_are_left_alone() {
    let block = |stage: &str, more: &str| {
        php(&format!("children 2; env STAGE {stage};"), "location = /stage { return 200 $host; }")
            + &format!("php_pool other {{ {} children 2; }} {more}", user())
    };
    let server = TestServer::with(BOLIDE, &block("one", "php_pool third { children 2; }"));
    put(&server, "who.php", WHO);
    assert_eq!(who(&server, "/who.php", "STAGE"), "one");
    let before = ["main", "other", "third"].map(|name| ready_master(&server, name));
    server.reload(&block("two", ""));
    wait_until("the new setting", || who(&server, "/who.php", "STAGE") == "two");
    assert_ne!(ready_master(&server, "main"), before[0]);
    assert_eq!(ready_master(&server, "other"), before[1]);
    wait_until("the old processes to end", || !lives(before[0]) && !lives(before[2]));
    assert!(!command(&server, &["status"]).text().contains("third"));
    // A refused configuration changes nothing.
    let main = ready_master(&server, "main");
    server.reload(&block("three", "php_pool bad { user nobody-has-this-name; }"));
    wait_until("the refusal", || server.error_log().contains("there is no user"));
    assert_eq!(who(&server, "/who.php", "STAGE"), "two");
    assert_eq!(ready_master(&server, "main"), main);
}

#[test]
fn a_pool_that_is_no_longer_configured_ends_after_its_requests() {
    let server = start("children 2;");
    assert!(answers(&server));
    let all = family(ready_master(&server, "main"));
    let url = format!("http://{}/slow.php?ms=2000", server.http());
    let slow = std::thread::spawn(move || run("curl", ["-s", &url]).text());
    wait_for_load(&server, "main", 1, 0);
    server.reload(&format!("server {{ {LISTEN} }}"));
    wait_until("the reload", || !answers(&server));
    assert_eq!(slow.join().unwrap(), "slept");
    wait_until("every process to end", || !all.iter().any(|pid| lives(*pid)));
    server.reload(&php("children 2;", ""));
    wait_until("a pool again", || answers(&server));
}

#[test]
fn a_pool_configured_again_while_it_finishes_is_started_again() {
    let server = start("children 2;");
    put(
        &server,
        "late.php",
        "<?php echo 'ok'; fastcgi_finish_request();
        for ($i = 0; $i < 600; $i++) usleep(100000);",
    );
    assert_eq!(server.get("/late.php").text(), "ok");
    let old = ready_master(&server, "main");
    server.reload(&format!("server {{ {LISTEN} }}"));
    wait_until("the end to begin", || {
        command(&server, &["status"]).text().contains("1 finishing, no longer configured")
    });
    server.reload(&php("children 2;", ""));
    wait_until("a pool again", || master(&server, "main").is_some_and(|new| new != old));
    assert!(answers(&server));
}

#[test]
fn a_new_binary_takes_over_without_a_lost_request() {
    let mut server = start("children 4; queue 256;");
    assert!(answers(&server));
    let old = family(ready_master(&server, "main"));
    let args = ["-D", "5", "-c", "8", "-m", "2"].map(str::to_owned).to_vec();
    let load = h2load_beside(Proto::H2c, server.url(Proto::H2c, "/slow.php?ms=20"), args);
    bolide_testkit::pause(1000);
    server.signal("USR2");
    let pid = || server.home().read("logs/pid").trim().parse::<u32>().ok();
    wait_until("a successor", || pid().is_some_and(|pid| pid != server.pid()));
    let heir = pid().unwrap();
    assert_eq!(family(ready_master(&server, "main")).len(), old.len(), "it has its own");
    let TestLoad { total, succeeded, failed, classes, report } = load.join().unwrap();
    let fine = succeeded > 0 && failed == 0 && classes == [succeeded, 0, 0, 0];
    assert!(fine, "{failed} of {total} failed:\n{report}\n{}", server.error_log());
    server.signal("QUIT");
    let _exit = server.wait_exit();
    wait_until("the old processes to end", || !old.iter().any(|pid| lives(*pid)));
    assert!(answers(&server));
    kill("TERM", heir);
    wait_until("the successor to end", || !lives(heir));
}

/// Sends requests to a pool and takes `step` again and again, as long as they are sent; every
/// request must get a response. A busy machine takes fewer steps.
fn under_load(server: &TestServer, mut step: impl FnMut(u32)) {
    let args = ["-D", "6", "-c", "8", "-m", "2"].map(str::to_owned).to_vec();
    let load = h2load_beside(Proto::H2c, server.url(Proto::H2c, "/slow.php?ms=20"), args);
    bolide_testkit::pause(1000);
    for number in 1.. {
        step(number);
        bolide_testkit::pause(500);
        if load.is_finished() {
            break;
        }
    }
    let TestLoad { total, succeeded, failed, classes, report } = load.join().unwrap();
    let fine = succeeded > 0 && failed == 0 && classes == [succeeded, 0, 0, 0];
    assert!(fine, "{failed} of {total} failed:\n{report}\n{}", server.error_log());
}

fn restart_under_load(server: &TestServer) {
    under_load(server, |_| {
        let before = ready_master(server, "main");
        let done = command(server, &["restart", "main"]).succeeded();
        assert!(done.text().contains("main: restarted, pid"), "{done}");
        assert_ne!(ready_master(server, "main"), before);
    });
}

#[test]
fn a_restart_loses_no_request() {
    let server = start("children 4; queue 256 timeout=30s;");
    assert!(answers(&server));
    restart_under_load(&server);
    let none = command(&server, &["restart", "nobody"]);
    assert_eq!(none.code, 1);
    assert!(none.stderr.contains("there is no php pool \"nobody\""), "{none}");
}

#[test]
fn reloads_that_change_a_pool_lose_no_request() {
    let block = |n: u32| php(&format!("children 4; queue 256 timeout=30s; env N {n};"), "");
    let server = TestServer::with(BOLIDE, &block(0));
    put(&server, "who.php", WHO);
    put(&server, "slow.php", "<?php usleep(1000 * $_GET['ms']); echo 'slept';");
    assert!(answers(&server));
    under_load(&server, |number| {
        server.reload(&block(number));
        wait_until("the setting", || who(&server, "/who.php", "N") == number.to_string());
    });
}

#[test]
fn a_full_queue_is_answered_at_once() {
    let server = start("children 1; queue 1 timeout=10s;");
    assert!(answers(&server));
    let url = format!("http://{}/slow.php?ms=3000", server.http());
    let busy: Vec<_> = (0..2)
        .map(|queued| {
            let url = url.clone();
            let asked = std::thread::spawn(move || run("curl", ["-s", &url]).text());
            wait_for_load(&server, "main", 1, queued);
            asked
        })
        .collect();
    let refused = server.get("/who.php");
    assert_eq!(refused.status, 503);
    assert!(refused.header("retry-after").is_some_and(|after| after.parse::<u32>().is_ok()));
    for one in busy {
        assert_eq!(one.join().unwrap(), "slept");
    }
    assert!(answers(&server));
}

#[test]
fn a_child_that_hangs_is_replaced() {
    let server = start("children 1; request_timeout 1s;");
    assert!(answers(&server));
    assert!(server.get("/slow.php?ms=20000").status >= 500);
    assert!(answers(&server));
}

/// Leaves a child within a long request.
fn keep_busy(server: &TestServer) {
    let url = format!("http://{}/slow.php?ms=60000", server.http());
    std::thread::spawn(move || run("curl", ["-s", "-m", "20", &url]));
    wait_for_load(server, "main", 1, 0);
}

#[test]
fn nothing_is_left_when_the_server_ends() {
    for signal in ["TERM", "QUIT", "KILL"] {
        let server = start("children 3;");
        assert!(answers(&server));
        if signal != "QUIT" {
            keep_busy(&server);
        }
        let all = family(ready_master(&server, "main"));
        assert!(all.len() >= 4, "{all:?}");
        let dir = runtime(&server);
        server.stop(signal);
        wait_until("every process to end", || !all.iter().any(|pid| lives(*pid)));
        if signal == "KILL" {
            // The next server cleans up.
            let next = start("children 2;");
            assert!(answers(&next));
        }
        assert!(!dir.exists(), "{signal}");
    }
}

#[test]
fn ended_processes_do_not_stay_as_zombies() {
    let server = start("children 2;");
    assert!(answers(&server));
    for _ in 0..3 {
        let old = ready_master(&server, "main");
        kill("KILL", old);
        wait_until("another master", || master(&server, "main").is_some_and(|new| new != old));
    }
    wait_until("zombies to go", || family(server.pid()).iter().all(|pid| lives(*pid)));
}

#[test]
fn mistakes_are_found_by_the_test_of_a_configuration() {
    let home = Home::new(BOLIDE);
    let check = |pool: &str| {
        let text = format!("events {{}}\nhttp {{\n  php_pool x {{ {pool} }}\n}}\n");
        let conf = home.write("nginx.conf", &text);
        home.run(&["-t", "-c", conf.to_str().unwrap()])
    };
    let place = format!("in {}/nginx.conf:3", home.dir().display());
    for (pool, words) in [
        ("user nobody-has-this-name;", "there is no user \"nobody-has-this-name\""),
        ("user nobody no-such-group;", "there is no group \"no-such-group\""),
        ("binary /nowhere/php-fpm;", "\"/nowhere/php-fpm\" is not the full path of a program"),
    ] {
        let done = check(pool);
        assert_eq!(done.code, 1, "{done}");
        let expected = format!("php_pool \"x\": {words} {place}");
        assert!(done.stderr.contains(&expected), "{expected}:\n{done}");
    }
    assert_eq!(check("children 2;").code, 0);
    if is_root() {
        let conf = home.write("nginx.conf", "events {} http { php_pool x { user www-data; } }");
        fs::set_permissions(home.dir().join("logs"), fs::Permissions::from_mode(0o777)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", BOLIDE, "-t", "-c"]);
        command.arg(conf).args(["-p", home.dir().to_str().unwrap()]);
        let done = finish("setpriv", command, Duration::from_secs(30));
        assert!(done.stderr.contains("only root may run it as user \"www-data\""), "{done}");
    }
}

/// A server with a pool of lsphp.
fn start_lsphp(pool: &str) -> TestServer {
    let lsphp = bolide_testkit::tool("lsphp");
    // The lsphp of the tests is below a directory that only its owner may enter.
    let user_root = if is_root() { "user root;" } else { "" };
    let pool = format!("php_pool main {{ binary {}; {pool} {user_root}", lsphp.display());
    let block = php("", "").replace(user(), "").replace("php_pool main {", &pool);
    TestServer::with(BOLIDE, &block)
}

#[test]
fn one_process_of_lsphp_answers_request_after_request() {
    let server = start_lsphp("children 1;");
    put(&server, "who.php", WHO);
    wait_until("an answer", || answers(&server));
    for _ in 0..20 {
        assert_eq!(who(&server, "/who.php", "sapi"), "litespeed");
    }
}

#[test]
fn an_lsphp_pool_does_all_of_it_too() {
    let server = start_lsphp("children 4; queue 256; env GREETING hello;");
    put(&server, "who.php", WHO);
    put(&server, "slow.php", "<?php usleep(1000 * $_GET['ms']); echo 'slept';");
    wait_until("an answer", || answers(&server));
    assert_eq!(who(&server, "/who.php", "sapi"), "litespeed");
    assert_eq!(who(&server, "/who.php", "GREETING"), "hello");
    restart_under_load(&server);
    let old = ready_master(&server, "main");
    kill("KILL", old);
    wait_until("an answer", || answers(&server));
    keep_busy(&server);
    let all = family(ready_master(&server, "main"));
    server.stop("KILL");
    wait_until("every process to end", || !all.iter().any(|pid| lives(*pid)));
}

/// A typical application directory.
fn application(dir: &Path) {
    let write =
        |name: &str, text: &str| bolide_testkit::site::write(&dir.join(name), text.as_bytes());
    write(
        "index.php",
        "<?php echo 'front ', $_SERVER['REQUEST_URI'], ' ', $_SERVER['PATH_INFO'] ?: '-';",
    );
    write("sub/index.php", "<?php echo 'sub ', $_SERVER['SCRIPT_NAME'];");
    write("page.php", "<?php echo 'page ', $_SERVER['PATH_INFO'] ?: '-';");
    write("style.css", "body {}");
    for private in PRIVATE {
        let text = match private {
            ".htaccess" => "# secret\nRedirect 302 /moved /style.css\n",
            _ => "<?php echo 'secret'; // secret",
        };
        write(private, text);
    }
    write("staff/.htaccess", "Require all denied\n");
    write("staff/list.html", "staff");
}

/// Files that no client gets.
const PRIVATE: [&str; 18] = [
    ".env",
    ".user.ini",
    ".htaccess",
    ".git/config",
    "sub/.git/hook.php",
    "wp-config.php.bak",
    "wp-config.php~",
    "wp-config.phps",
    "wp-config.PHP",
    "old.Php",
    "backup.sql",
    "backup.sql.gz",
    "composer.json",
    "composer.lock",
    "inc/db.inc",
    "wp-content/uploads/2026/shell.php",
    "sites/default/files/shell.php",
    "vendor/tool/eval.php",
];

#[test]
fn a_directory_with_php_is_served_by_the_configuration_that_is_printed() {
    let home = Home::new(BOLIDE);
    let www = home.dir().join("project/public");
    application(&www);
    let (http, https) = (home.port(0).to_string(), home.port(1).to_string());
    let args = ["serve", "--php", "--print-config", "--http", &http, "--https", &https, "project"];
    let mut print = home.command(&args);
    print.env("XDG_STATE_HOME", home.dir());
    let printed = finish("bolide serve", print, Duration::from_secs(30)).succeeded().text();
    let conf = home.write("printed.conf", &printed);
    let tested = home.run(&["-t", "-c", conf.to_str().unwrap()]);
    assert_eq!(tested.code, 0, "{tested}");
    let server = TestServer::start(home, &format!("daemon off;\n{printed}"));
    wait_until("PHP", || server.get("/").status == 200);
    for (path, status, text) in [
        ("/", 200, "front / -"),
        ("/2026/11/hello-world/?a=b", 200, "front /2026/11/hello-world/?a=b -"),
        ("/index.php/news/1", 200, "front /index.php/news/1 /news/1"),
        ("/sub/", 200, "sub /sub/index.php"),
        ("/page.php", 200, "page -"),
        ("/page.php/x/y", 200, "page /x/y"),
        ("/style.css", 200, "body {}"),
        ("/style.css/x.php", 404, ""),
        ("/none.php", 404, ""),
        ("/moved", 302, ""),
        ("/staff/list.html", 403, ""),
    ] {
        let reply = server.get(path);
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
        assert!(status != 200 || reply.text() == text, "{path}: {}", reply.text());
    }
    for path in PRIVATE {
        let reply = server.get(&format!("/{path}"));
        assert_eq!(reply.status, 404, "{path}");
        assert!(!reply.text().contains("secret"), "{path}");
    }
    // An application's rules count from the next request on.
    let rules = server.home().dir().join("project/public/staff/.htaccess");
    fs::remove_file(rules).unwrap();
    assert_eq!(server.get("/staff/list.html").text(), "staff");
}

#[test]
fn a_printed_configuration_needs_no_directory_but_those_it_names() {
    let home = Home::new(BOLIDE);
    let www = home.dir().join("site");
    application(&www);
    let script =
        "<?php header('X-LiteSpeed-Cache-Control: public,max-age=100'); echo hrtime(true);";
    bolide_testkit::site::write(&www.join("kept.php"), script.as_bytes());
    let (http, https) = (home.port(0).to_string(), home.port(1).to_string());
    let mut words = vec!["serve", "--php", "--page-cache", "--print-config"];
    words.extend(["--http", &http, "--https", &https, "site"]);
    let mut print = home.command(&words);
    print.env("XDG_STATE_HOME", home.dir());
    let printed = finish("bolide serve", print, Duration::from_secs(30)).succeeded().text();
    let conf = home.write("printed.conf", &printed);
    let mut command = home.command(&["-c", conf.to_str().unwrap()]);
    command.args(["-p", "/no/such/prefix", "-e", "stderr", "-g", "daemon off;"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let _ends = Guard(child);
    let get = |path: &str| run("curl", ["-s", &format!("http://127.0.0.1:{http}{path}")]).text();
    wait_until("the site", || get("/some/where").starts_with("front /some/where"));
    // More than memory holds.
    let upload = home.write("upload", &"x".repeat(3_000_000));
    let data = format!("@{}", upload.display());
    let url = format!("http://127.0.0.1:{http}/page.php");
    let posted = run("curl", ["-s", "--data-binary", &data, &url]);
    assert_eq!(posted.text(), "page -");
    let kept = get("/kept.php");
    assert!(kept.parse::<u64>().is_ok(), "{kept}");
    assert_eq!(get("/kept.php"), kept);
}

/// A process that ends with a failed test.
struct Guard(std::process::Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

#[test]
fn serve_php_needs_nothing_else() {
    let home = Home::new(BOLIDE);
    application(&home.dir().join("site"));
    let (http, https) = (home.port(0).to_string(), home.port(1).to_string());
    let mut command = home.command(&["serve", "--php", "--http", &http, "--https", &https, "site"]);
    command.env("XDG_STATE_HOME", home.dir());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut child = Guard(child);
    let url = format!("http://127.0.0.1:{http}/some/where");
    wait_until("the site", || run("curl", ["-s", &url]).text().starts_with("front /some/where"));
    // More than memory holds.
    let upload = bolide_testkit::site::temp_dir().join("upload");
    fs::write(&upload, vec![b'x'; 300_000]).unwrap();
    let data = format!("@{}", upload.display());
    let posted = run("curl", ["-s", "--data-binary", &data, &url]);
    assert!(posted.text().starts_with("front /some/where"), "{posted}");
    let all = family(child.0.id());
    kill("INT", child.0.id());
    wait_until("the end", || child.0.try_wait().unwrap().is_some());
    wait_until("every process to end", || !all.iter().any(|pid| lives(*pid)));
}
