//! Many pools of PHP on one machine: on demand, limited, watched, apart from each other, and with
//! one tenant that wants everything.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use bolide_testkit::load::h2load_beside;
use bolide_testkit::server::{Home, LISTEN, TYPES, is_root, prelude};
use bolide_testkit::{Proto, TestServer, run, wait_until};

use crate::BOLIDE;
use crate::php_pool::{command, family, kill, lives, put, ready_master, runtime, user};

/// A pool for each of `names`, whose scripts are in the directory of that name.
fn sites(names: &[String], pool: impl Fn(&str) -> String) -> String {
    let one = |name: &String| format!("php_pool {name} {{ {} }}\n", pool(name));
    let location =
        |name: &String| format!("location ~ ^/{name}/.+\\.php$ {{ php_pass {name}; }}\n");
    let pools: String = names.iter().map(one).collect();
    let locations: String = names.iter().map(location).collect();
    format!("{pools} server {{ {LISTEN} {locations} }}")
}

fn one_site(pool: &str) -> String {
    sites(&["main".to_owned()], |_| format!("{} {pool}", user()))
}

fn start(http: &str, names: &[&str]) -> TestServer {
    let server = TestServer::with(BOLIDE, http);
    for name in names {
        scripts(&server, name);
    }
    server
}

fn scripts(server: &TestServer, name: &str) {
    fs::create_dir(server.www(name)).unwrap();
    put(server, &format!("{name}/pid.php"), "<?php echo getmypid();");
    put(
        server,
        &format!("{name}/slow.php"),
        "<?php usleep(1000 * ($_GET['ms'] ?? 20)); echo 'slept';",
    );
    let burn = "<?php $t = microtime(true); while (microtime(true) - $t < 0.3) sha1('a');";
    put(server, &format!("{name}/burn.php"), burn);
}

fn status(server: &TestServer) -> String {
    command(server, &["status"]).text()
}

/// Children of the server, which are masters of pools.
fn masters(server: &TestServer) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{0}/task/{0}/children", server.pid())).unwrap();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).filter(|pid| lives(*pid)).collect()
}

fn wait_for_rest(server: &TestServer, pool: &str) {
    let resting = format!("{pool}: idle,");
    wait_until("the pool to have no process", || {
        masters(server).is_empty() && status(server).contains(&resting)
    });
}

#[test]
fn a_pool_on_demand_has_processes_only_while_it_has_requests() {
    let server = start(&one_site("idle 1s; children 4;"), &["main"]);
    assert_eq!(masters(&server), Vec::<u32>::new());
    assert!(status(&server).contains("main: idle,"), "{}", status(&server));
    let pid = server.get("/main/pid.php");
    assert_eq!(pid.status, 200);
    let master = ready_master(&server, "main");
    assert!(family(master).contains(&pid.text().parse().unwrap()));
    // A request that lasts longer than the pool may be idle is one.
    assert_eq!(server.get("/main/slow.php?ms=3000").text(), "slept");
    assert_eq!(ready_master(&server, "main"), master);
    let all = family(master);
    wait_for_rest(&server, "main");
    assert!(!all.iter().any(|pid| lives(*pid)));
    assert_eq!(server.get("/main/pid.php").status, 200);
    assert_ne!(ready_master(&server, "main"), master);
}

#[test]
fn concurrent_requests_to_a_resting_pool_are_all_answered() {
    let server = start(&one_site("idle 1s; children 4; queue 256;"), &["main"]);
    for _ in 0..3 {
        let args = ["-n", "200", "-c", "16", "-m", "4"].map(str::to_owned).to_vec();
        let url = server.url(Proto::H2c, "/main/slow.php");
        h2load_beside(Proto::H2c, url, args).join().unwrap().expect_flawless();
        wait_for_rest(&server, "main");
    }
}

#[test]
fn requests_that_meet_the_end_of_an_idle_pool_are_answered() {
    let server = start(&one_site("idle 300ms; children 2;"), &["main"]);
    // Pauses around the time at which the pool ends.
    for ms in (0..30).map(|n| 300 + 30 * n) {
        assert_eq!(server.get("/main/pid.php").status, 200, "{}", server.error_log());
        bolide_testkit::pause(ms);
    }
}

#[test]
fn a_pool_on_demand_that_cannot_start_is_tried_a_few_times_per_request() {
    let home = Home::new(BOLIDE);
    let starts = home.dir().join("starts");
    let fake = home.write(
        "fake-fpm",
        &format!("#!/bin/sh\necho x >>{}\necho 'no good' >&2\nexit 3\n", starts.display()),
    );
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    let block = one_site(&format!("idle 1s; binary {};", fake.display()));
    let server = TestServer::start(home, &format!("{}http {{{TYPES}{block}}}", prelude(1)));
    scripts(&server, "main");
    let count = || fs::read_to_string(&starts).unwrap_or_default().lines().count();
    assert_eq!(count(), 0, "nothing is started without a request");
    assert!(matches!(server.get("/main/pid.php").status, 502 | 503));
    wait_until("the server to give up", || server.error_log().contains("does not start"));
    let log = server.error_log();
    for words in ["[error]", "php pool \"main\": no good", "exited with code 3"] {
        assert!(log.contains(words), "{words}:\n{log}");
    }
    let tried = count();
    assert!((1..=5).contains(&tried), "{tried}");
    assert!(matches!(server.get("/main/pid.php").status, 502 | 503));
    wait_until("the socket to be watched again", || status(&server).contains("main: idle,"));
    assert_eq!(count(), tried, "without a request there is no further try");
    let real = run("sh", ["-c", "ls /usr/sbin/php-fpm* | sort -V | tail -1"]).text();
    fs::write(&fake, format!("#!/bin/sh\nexec {} \"$@\"\n", real.trim())).unwrap();
    wait_until("an answer", || server.get("/main/pid.php").status == 200);
}

/// A php-fpm whose output arrives a second late: its children accept requests long before its ready
/// line is read.
fn late_fpm(home: &Home) -> PathBuf {
    let real = run("sh", ["-c", "ls /usr/sbin/php-fpm* | sort -V | tail -1"]).text();
    let text = format!("#!/bin/bash\nexec {} \"$@\" 2> >(sleep 1; exec cat >&2)\n", real.trim());
    let late = home.write("late-fpm", &text);
    fs::set_permissions(&late, fs::Permissions::from_mode(0o755)).unwrap();
    late
}

#[test]
fn a_pool_that_is_changed_before_its_new_master_is_ready_loses_no_request() {
    let home = Home::new(BOLIDE);
    let late = late_fpm(&home);
    let full = |n: u32| {
        let pool = format!("children 4; queue 64; binary {}; env N {n};", late.display());
        format!("{}http {{{TYPES}{}}}", prelude(1), one_site(&pool))
    };
    let server = TestServer::start(home, &full(0));
    scripts(&server, "main");
    let url = server.url(Proto::H1, "/main/slow.php?ms=40");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let replies = std::thread::scope(|scope| {
        let client = || {
            let mut replies = Vec::new();
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                replies.push(server.curl(Proto::H1).attempt(&url).status);
            }
            replies
        };
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(client)).collect();
        for n in 1..25 {
            server.rewrite(&full(n));
            server.signal("HUP");
            bolide_testkit::pause(if n % 8 == 0 { 1300 } else { 150 });
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    let wrong: Vec<_> = replies.iter().filter(|status| **status != 200).collect();
    assert!(wrong.is_empty() && replies.len() > 100, "{wrong:?} {}", server.error_log());
    wait_until("one master", || masters(&server).len() == 1);
}

#[test]
fn reloads_leave_pools_on_demand_as_they_are() {
    let names = ["a".to_owned(), "b".to_owned()];
    let block = |more: &str| sites(&names, |_| format!("{} idle 60s; children 2;", user())) + more;
    let server = start(&block(""), &["a", "b"]);
    assert_eq!(server.get("/a/pid.php").status, 200);
    let running = ready_master(&server, "a");
    server.reload(&block("php_pool c { idle 60s; children 2; }"));
    wait_until("the reload", || status(&server).contains("c: idle,"));
    assert_eq!(masters(&server), [running], "one runs on, and none was started");
    let output = command(&server, &["restart", "b"]).succeeded().text();
    assert!(output.contains("b: has no process"), "{output}");
    assert_eq!(server.get("/b/pid.php").status, 200);
    assert_eq!(masters(&server).len(), 2);
    // One that is resting when it is no longer configured still serves nothing, and one that loses
    // its `idle` is started.
    server.reload(&sites(&names, |_| format!("{} children 2;", user())));
    wait_until("both pools", || {
        let output = status(&server);
        output.contains("a: running") && output.contains("b: running") && !output.contains("c:")
    });
}

#[test]
fn a_master_on_demand_that_dies_is_started_again_for_the_next_request() {
    let server = start(&one_site("idle 60s; children 2;"), &["main"]);
    assert_eq!(server.get("/main/pid.php").status, 200);
    let old = ready_master(&server, "main");
    kill("KILL", old);
    wait_until("the end", || !lives(old));
    assert_eq!(server.get("/main/pid.php").status, 200);
    wait_until("the report", || {
        server.error_log().contains("exited on signal 9, starting again for the next request")
    });
}

#[test]
fn php_gets_the_files_directories_and_limits_of_its_pool() {
    let home = Home::new(BOLIDE);
    let (tmp, www) = (home.dir().join("tmp-of-main"), home.dir().join("www"));
    let ini = home.write("php.ini", "precision = 9\n");
    let secret = home.write("secret", "secret");
    fs::create_dir(&tmp).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    if is_root() {
        let uid = run("id", ["-u", "nobody"]).text().trim().parse().unwrap();
        chown(&tmp, Some(uid), None).unwrap();
    }
    let pool = format!(
        "children 2; ini_file {}; open_basedir {}; tmp {}; rlimit nofile 321; rlimit core 0;",
        ini.display(),
        www.display(),
        tmp.display()
    );
    let block = one_site(&pool);
    let server = TestServer::start(home, &format!("{}http {{{TYPES}{block}}}", prelude(1)));
    scripts(&server, "main");
    let script = "<?php $limits = posix_getrlimit();
        echo json_encode([ini_get('precision'), sys_get_temp_dir(), getenv('TMPDIR'),
            ini_get('upload_tmp_dir'), ini_get('session.save_path'), dirname(tempnam('', 'x')),
            $limits['hard openfiles'], $limits['hard core'],
            @file_get_contents($_GET['f']) ?: 'refused'], JSON_UNESCAPED_SLASHES);";
    put(&server, "main/tell.php", script);
    let path = format!("/main/tell.php?f={}", secret.display());
    wait_until("an answer", || server.get(&path).status == 200);
    let tmp = tmp.display();
    let expected = format!(r#"["9","{tmp}","{tmp}","{tmp}","{tmp}","{tmp}",321,0,"refused"]"#);
    assert_eq!(server.get(&path).text(), expected);
}

#[test]
fn files_that_a_pool_may_not_rely_on_are_refused() {
    let home = Home::new(BOLIDE);
    let check = |pool: &str| {
        let text = format!("events {{}}\nhttp {{\n  php_pool x {{ {pool} }}\n}}\n");
        let conf = home.write("nginx.conf", &text);
        home.run(&["-t", "-c", conf.to_str().unwrap()])
    };
    let refused = |pool: &str, words: &str| {
        let done = check(pool);
        assert!(done.code == 1 && done.stderr.contains(words), "{pool}: {done}");
        assert!(done.stderr.contains("nginx.conf:3"), "{done}");
    };
    refused("tmp /no/such;", "\"tmp\": /no/such is not a directory of");
    refused("ini_file /no/such.ini;", "\"ini_file\": /no/such.ini is not a file");
    refused("open_basedir a;", "invalid value");
    refused("rlimit nonsense 1;", "invalid value \"nonsense\"");
    refused("rlimit nofile 1; rlimit nofile 2;", "is duplicate");
    refused("limit_cpu 50;", "invalid value");
    refused("limit_tasks 1;", "value must be equal to or greater than 2");
    refused("limit_io 0;", "value must be between 1 and 10000");
    refused("idle 0;", "invalid value");
    if is_root() {
        let ini = home.write("other.ini", "");
        chown(&ini, Some(65_534), None).unwrap();
        let pool = format!("user nobody; ini_file {};", ini.display());
        refused(&pool, "accounts other than root can change");
        let link = home.dir().join("link");
        std::os::unix::fs::symlink("/tmp", &link).unwrap();
        let pool = format!("user nobody; tmp {};", link.display());
        refused(&pool, "is not a directory of user \"nobody\"");
    }
}

/// The controllers of version 2 that groups of this test may have.
fn controllers() -> String {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mounted = mounts.lines().find(|line| line.contains(" - cgroup2 "));
    let Some(root) = mounted.and_then(|line| line.split(' ').nth(4)) else { return String::new() };
    fs::read_to_string(format!("{root}/cgroup.controllers")).unwrap_or_default()
}

#[test]
fn a_control_group_limits_a_pool_or_the_configuration_is_refused_with_the_line() {
    let has = controllers();
    for (controller, line, file, value) in [
        ("memory", "limit_memory 200m;", "memory.max", "209715200"),
        ("cpu", "limit_cpu 150%;", "cpu.max", "150000 100000"),
        ("pids", "limit_tasks 40;", "pids.max", "40"),
        ("io", "limit_io 50;", "io.weight", "default 50"),
    ] {
        // A kernel may have the controller without the file.
        let find = ["/sys/fs/cgroup", "-maxdepth", "4", "-name", file];
        let has_file = controller != "io" || run("find", find).text().contains(file);
        if has.split_whitespace().any(|name| name == controller) && has_file && is_root() {
            let server = start(&one_site(&format!("children 2; {line}")), &["main"]);
            let pid = server.get("/main/pid.php").text();
            let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
            let group = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap();
            assert!(group.ends_with("/bolide-php-main"), "{groups}");
            let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
            let mounted = mounts.lines().find(|line| line.contains(" - cgroup2 ")).unwrap();
            let group = PathBuf::from(mounted.split(' ').nth(4).unwrap()).join(&group[1..]);
            let text = fs::read_to_string(group.join(file)).unwrap();
            assert!(text.starts_with(value), "{file}: {text}");
            server.stop("TERM");
            wait_until("the group to go", || !group.exists());
        } else {
            let home = Home::new(BOLIDE);
            let text = format!("events {{}}\nhttp {{\n php_pool x {{\n{line}\n}} }}\n");
            let conf = home.write("nginx.conf", &text);
            let done = home.run(&["-e", "stderr", "-c", conf.to_str().unwrap()]);
            let name = line.split(' ').next().unwrap();
            let words = format!("php_pool \"x\": \"{name}\" needs ");
            assert!(done.code == 1 && done.stderr.contains(&words), "{done}");
            assert!(done.stderr.contains("nginx.conf:4"), "{done}");
        }
    }
}

#[test]
fn top_shows_the_requests_and_costs_of_each_pool() {
    let names = ["busy".to_owned(), "resting".to_owned()];
    let http = sites(&names, |_| format!("{} idle 60s; children 1; queue 9;", user()));
    let server = start(&http, &["busy", "resting"]);
    let url = format!("http://{}/busy/burn.php?[1-40]", server.http());
    let load = std::thread::spawn(move || run("curl", ["-s", "-Z", "--parallel-max", "3", &url]));
    let output = || command(&server, &["top", "--json"]).succeeded().text();
    wait_until("a busy pool", || {
        let text = output();
        let row = |name: &str| {
            let at = text.find(&format!("\"pool\":\"{name}\"")).unwrap_or_else(|| panic!("{text}"));
            text[at..].split('}').next().unwrap().to_owned()
        };
        let (busy, resting) = (row("busy"), row("resting"));
        let number = |name: &str| -> u64 {
            let rest = busy.split_once(&format!("\"{name}\":")).unwrap().1;
            rest.split(',').next().unwrap().parse().unwrap()
        };
        assert!(
            resting.contains("\"state\":\"idle\",\"processes\":0,\"memory_bytes\":0"),
            "{text}"
        );
        number("processes") >= 2
            && number("memory_bytes") > 1 << 20
            && number("cpu_percent") > 0
            && number("cpu_milliseconds") > 0
            && number("active") == 1
            && number("queued") >= 1
            && number("requests") > 0
            && busy.contains("\"children_limit\":1")
            && busy.contains("\"queue_limit\":9")
            && text.find("busy") < text.find("resting")
    });
    let table = command(&server, &["top"]).succeeded().text();
    assert!(table.starts_with("POOL ") && table.contains("2 pools, "), "{table}");
    let _done = load.join().unwrap();
}

#[test]
fn advice_of_php_fpm_names_our_directives() {
    let server = start(&one_site("idle 60s; children 3; request_timeout 9s;"), &["main"]);
    let url = format!("http://{}/main/slow.php?ms=15000&[1-4]", server.http());
    let load = std::thread::spawn(move || run("curl", ["-s", "-Z", &url]));
    for words in ["all 3 children are busy", "longer than \"request_timeout\""] {
        wait_until(words, || server.error_log().contains(words));
    }
    assert!(!server.error_log().contains("pm.max_children"), "{}", server.error_log());
    let _done = load.join().unwrap();
}

#[test]
fn two_versions_of_php_run_side_by_side() {
    let lsphp = bolide_testkit::tool("lsphp");
    // The lsphp of the tests is below a directory that only its owner may enter.
    let owner = if is_root() { "user root;" } else { "" };
    let names = ["one".to_owned(), "two".to_owned()];
    let http = sites(&names, |name| match name {
        "one" => format!("{} children 2; idle 2s;", user()),
        _ => format!("{owner} binary {}; children 2; idle 2s;", lsphp.display()),
    });
    let server = start(&http, &["one", "two"]);
    let version = "<?php echo PHP_SAPI, ' ', PHP_MAJOR_VERSION, '.', PHP_MINOR_VERSION;";
    for _ in 0..2 {
        let [one, two] = ["one", "two"].map(|name| {
            put(&server, &format!("{name}/version.php"), version);
            server.get(&format!("/{name}/version.php")).text()
        });
        assert!(one.starts_with("fpm-fcgi ") && two.starts_with("litespeed "), "{one}, {two}");
        wait_until("both to rest", || masters(&server).is_empty());
    }
}

/// Tries everything on a list, and prints the results.
const BURGLAR: &str = "<?php
    foreach (json_decode(file_get_contents('php://input')) as [$how, $what]) {
        $got = match ($how) {
            'read' => @file_get_contents($what),
            'list' => @scandir($what),
            'write' => @file_put_contents($what, 'x', FILE_APPEND),
            'connect' => (bool) @stream_socket_client('unix://' . $what),
            'kill' => @posix_kill((int) $what, 10),
        };
        echo $how, ' ', $what, ': ', $got === false ? 'refused' : 'open', \"\\n\";
    }";

#[test]
fn scripts_of_one_account_reach_nothing_of_another() {
    if !is_root() {
        return;
    }
    let home = Home::new(BOLIDE);
    let id = |user: &str| run("id", ["-u", user]).succeeded().text().trim().parse::<u32>().unwrap();
    let own = |path: &Path, user: &str, mode: u32| {
        chown(path, Some(id(user)), None).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let logs = home.dir().join("logs");
    let cache = home.dir().join("cache");
    let (a, b) = ("games", "mail");
    let names = ["a".to_owned(), "b".to_owned()];
    let tmp = |name: &str| home.dir().join(format!("tmp-{name}"));
    for (name, user) in [("a", a), ("b", b)] {
        fs::create_dir(tmp(name)).unwrap();
        own(&tmp(name), user, 0o700);
    }
    let (tmp_a, tmp_b) = (tmp("a"), tmp("b"));
    let http = sites(&names, |name| {
        let (user, tmp) = if name == "a" { (a, &tmp_a) } else { (b, &tmp_b) };
        format!("user {user}; children 2; idle 60s; tmp {};", tmp.display())
    })
    .replace(
        "php_pass b;",
        "php_pass b; fastcgi_cache one; fastcgi_cache_key $uri; fastcgi_cache_valid 200 1h;",
    );
    let zone = format!("fastcgi_cache_path {} keys_zone=one:1m;", cache.display());
    let server = TestServer::start(home, &format!("{}http {{{TYPES}{zone}{http}}}", prelude(1)));
    // As the package makes them: a directory of logs that only root and its group enter.
    fs::set_permissions(&logs, fs::Permissions::from_mode(0o750)).unwrap();
    for (name, user) in [("a", a), ("b", b)] {
        scripts(&server, name);
        put(&server, &format!("{name}/burglar.php"), BURGLAR);
        put(&server, &format!("{name}/secret.php"), "<?php echo 'page';");
        let secret = server.www(name).join("secret");
        fs::write(&secret, "secret").unwrap();
        own(&secret, user, 0o600);
        let dir = server.www(name).join("data");
        fs::create_dir(&dir).unwrap();
        own(&dir, user, 0o700);
        assert_eq!(server.get(&format!("/{name}/secret.php")).text(), "page");
    }
    let kept = || {
        let found = run("find", [cache.to_str().unwrap(), "-type", "f"]).text();
        found.lines().find(|line| !line.contains("journal")).map(str::to_owned)
    };
    wait_until("the page on disk", || kept().is_some());
    let master = ready_master(&server, "b");
    let child = *family(master).last().unwrap();
    let worker = server.pid();
    let text = |path: &Path| path.display().to_string();
    let mut tries = vec![
        ("read", text(&server.www("b").join("secret"))),
        ("write", text(&server.www("b").join("secret"))),
        ("list", text(&server.www("b").join("data"))),
        ("list", text(&tmp_b)),
        ("write", text(&tmp_b.join("x"))),
        ("read", text(&logs.join("error.log"))),
        ("list", text(&logs)),
        ("read", kept().unwrap()),
        ("list", text(&cache)),
        ("list", text(&runtime(&server))),
        ("read", format!("/proc/{child}/environ")),
        ("read", format!("/proc/{child}/mem")),
        ("list", format!("/proc/{child}/fd")),
        ("read", format!("/proc/{worker}/environ")),
        ("list", format!("/proc/{worker}/fd")),
        ("kill", child.to_string()),
        ("kill", master.to_string()),
        ("kill", worker.to_string()),
    ];
    for entry in fs::read_dir(runtime(&server)).unwrap() {
        let path = text(&entry.unwrap().path());
        tries.extend([("connect", path.clone()), ("read", path.clone()), ("write", path)]);
    }
    let body: Vec<String> =
        tries.iter().map(|(how, what)| format!("[\"{how}\",\"{what}\"]")).collect();
    let data = format!("[{}]", body.join(","));
    let ask = |name: &str, data: &str| {
        let url = format!("http://{}/{name}/burglar.php", server.http());
        run("curl", ["-s", "-d", data, &url]).text()
    };
    let output = ask("a", &data);
    assert_eq!(output.lines().count(), tries.len(), "{output}");
    let open: Vec<&str> = output.lines().filter(|line| !line.ends_with(": refused")).collect();
    assert!(open.is_empty(), "{open:#?}");
    // The same script can do all that to what is its own.
    let own = [
        ("read", text(&server.www("a").join("secret"))),
        ("write", text(&tmp_a.join("x"))),
        ("list", text(&server.www("a").join("data"))),
    ];
    let body: Vec<String> =
        own.iter().map(|(how, what)| format!("[\"{how}\",\"{what}\"]")).collect();
    let output = ask("a", &format!("[{}]", body.join(",")));
    assert_eq!(output.matches(": open").count(), own.len(), "{output}");
    assert!(lives(master) && lives(child));
}

/// Sites of the test below; `BOLIDE_HOSTER_SITES=100` for the whole of it.
fn site_count() -> usize {
    let asked = std::env::var("BOLIDE_HOSTER_SITES").ok();
    asked.map_or(6, |text| text.parse().expect("a number"))
}

/// The last line of `bolide php top`: pools, processes, memory.
fn totals(server: &TestServer) -> String {
    let table = command(server, &["top"]).succeeded().text();
    table.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn one_hostile_tenant_costs_the_others_no_request() {
    let lsphp = bolide_testkit::tool("lsphp");
    let owner = if is_root() { "user root;" } else { "" };
    let names: Vec<String> = (0..site_count()).map(|n| format!("s{n}")).collect();
    let pools = |idle: &str| {
        sites(&names, |name| {
            // Every second site has the other version.
            let is_odd = name[1..].parse::<usize>().unwrap() % 2 == 1;
            let binary = match is_odd {
                true => format!("{owner} binary {};", lsphp.display()),
                false => user().to_owned(),
            };
            format!("{binary} {idle} children 2; queue 8 timeout=60s;")
        })
    };
    let server = start(&pools("idle 3s;"), &[]);
    for name in &names {
        scripts(&server, name);
    }
    assert!(masters(&server).is_empty());
    let at_rest = totals(&server);
    // The hostile one asks for more than it may, all the time.
    let args = ["-D", "10", "-c", "64", "-m", "1"].map(str::to_owned).to_vec();
    let attack = h2load_beside(Proto::H2c, server.url(Proto::H2c, "/s0/burn.php"), args);
    let mut answered = 0;
    let mut under_load = String::new();
    while !attack.is_finished() {
        for name in &names[1..] {
            let reply = server.get(&format!("/{name}/pid.php"));
            assert_eq!(reply.status, 200, "{name}:\n{}", server.error_log());
            answered += 1;
        }
        under_load = totals(&server);
    }
    let attack = attack.join().unwrap();
    assert!(answered >= names.len() - 1);
    let [fine, _, none, refused] = attack.classes;
    assert!(fine > 0 && none == 0 && refused > 0, "it gets what it may have:\n{}", attack.report);
    let log = server.error_log();
    assert!(log.contains("upstream queue is full"), "{log}");
    wait_until("every pool to rest", || masters(&server).is_empty());
    let after = totals(&server);
    // The same pools without `idle`.
    server.reload(&pools(""));
    wait_until("every pool to run", || {
        status(&server).matches(": running,").count() == names.len()
    });
    println!(
        "at rest: {at_rest}\nunder load: {under_load}; {answered} requests of others answered\n\
         afterwards: {after}\nwithout idle: {}",
        totals(&server)
    );
}

/// Clients that ask for a script that runs until it is stopped, and leave: how many times it ran
/// in the end.
fn runs_for_leavers(pool: &str) -> usize {
    let block = format!(
        "php_pool main {{ {pool} children 2; queue 5 timeout=30s; }}
         server {{ {LISTEN} location ~ \\.php$ {{ php_pass main; }} }}"
    );
    let server = TestServer::with(BOLIDE, &block);
    let dir = server.www("").canonicalize().unwrap();
    let (gone_on, ran) = (dir.join("go"), dir.join("runs"));
    fs::create_dir(&ran).unwrap();
    fs::set_permissions(&ran, fs::Permissions::from_mode(0o777)).unwrap();
    let script = format!(
        "<?php touch('{}/'.uniqid('', true)); while (!file_exists('{}')) {{
             usleep(20000); clearstatcache(); }} echo 'done';",
        ran.display(),
        gone_on.display()
    );
    put(&server, "long.php", &script);
    put(&server, "short.php", "<?php echo 'short';");
    wait_until("an answer", || server.get("/short.php").text() == "short");
    for _ in 0..12 {
        let mut client = server.connect();
        client.send("GET /long.php HTTP/1.1\r\nHost: a\r\n\r\n");
        bolide_testkit::pause(40);
    }
    let runs = || fs::read_dir(&ran).unwrap().count();
    wait_until("both processes to work", || runs() == 2);
    fs::write(&gone_on, "").unwrap();
    wait_until("an answer", || server.get("/short.php").text() == "short");
    runs()
}

#[test]
fn clients_that_leave_do_not_get_around_children_and_queue() {
    assert_eq!(runs_for_leavers(user()), 2, "no other request reached a process");
    let lsphp = bolide_testkit::tool("lsphp");
    let whom = if is_root() { "user root;" } else { "" };
    let lsphp = format!("{whom} binary {};", lsphp.display());
    assert_eq!(runs_for_leavers(&lsphp), 2, "no other request reached a process");
}
