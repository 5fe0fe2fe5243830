//! The use of root's rights: in which threads, and on which files of directories that other users
//! own. These tests need root; without it they pass without a check.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use bolide_testkit::server::{Home, is_root, prelude};
use bolide_testkit::{TestServer, run, wait_until};

use crate::BOLIDE;

/// The default user of workers.
const NOBODY: &str = "nobody";

fn id_of(flag: &str) -> u32 {
    run("id", [flag, NOBODY]).succeeded().text().trim().parse().unwrap()
}

/// The main block for workers with a user of their own.
fn unprivileged(workers: u32) -> String {
    prelude(workers).replace("user root;", "user nobody;")
}

/// The kernel's figures of a thread.
struct Thread {
    name: String,
    is_main: bool,
    status: String,
}

impl Thread {
    fn line(&self, key: &str) -> Vec<&str> {
        let line = self.status.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_default().split_whitespace().collect()
    }

    /// Whether it runs under the account `nobody` without any capability.
    fn has_given_up(&self, uid: &str, gid: &str) -> bool {
        let caps = ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"];
        self.line("Uid:") == [uid; 4]
            && self.line("Gid:") == [gid; 4]
            && self.line("Groups:").iter().all(|group| *group == gid)
            && caps.iter().all(|key| self.line(key).concat().trim_matches('0').is_empty())
    }
}

fn threads_of(pid: u32) -> Vec<Thread> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let all = tasks.filter_map(|task| {
        // A thread that ends meanwhile is skipped.
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let name = fs::read_to_string(task.path().join("comm")).ok()?.trim().to_owned();
        Some(Thread { name, is_main: *task.file_name() == *pid.to_string(), status })
    });
    all.collect()
}

#[test]
fn every_thread_but_the_control_thread_drops_roots_rights() {
    if !is_root() {
        return;
    }
    let home = Home::new(BOLIDE);
    let script = "openssl req -x509 -nodes -newkey rsa:2048 -subj /CN=authority -days 9 \
                  -keyout ca.key -out ca.pem && openssl req -x509 -nodes -newkey rsa:2048 \
                  -subj /CN=localhost -days 9 -CA ca.pem -CAkey ca.key -keyout s.key -out s.crt \
                  && cat s.crt ca.pem > s.pem";
    let script = format!("cd '{}' && {{ {script}; }} 2>&1", home.dir().display());
    let _quiet = run("bash", ["-ec", &script]).succeeded();
    let conf = format!(
        "{} http {{ page_cache_path @DIR@/pages; gzip on; gzip_types *; gzip_min_length 1;
         server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl; root @DIR@/www;
         page_cache on; ssl_certificate s.pem; ssl_certificate_key s.key;
         ssl_stapling on; ssl_stapling_responder http://127.0.0.1:@P2@/; }} }}",
        unprivileged(2)
    );
    let server = TestServer::start(home, &conf);
    assert_eq!(server.get("/hello.txt").status, 200);
    let (uid, gid) = (id_of("-u").to_string(), id_of("-g").to_string());
    let wanted = ["worker-0", "worker-1", "jobs", "disk-writer", "stapling"];
    // A thread exists for a moment before its first line runs.
    wait_until("all threads, without rights", || {
        let threads = threads_of(server.pid());
        wanted.iter().all(|name| threads.iter().any(|one| one.name == *name))
            && threads.iter().filter(|one| !one.is_main).all(|one| one.has_given_up(&uid, &gid))
    });
}

/// A directory of the workers' user with a symbolic link, and its target.
fn trap(home: &Home, name: &str, to: &Path) {
    let spool = home.dir().join("spool");
    fs::create_dir_all(&spool).unwrap();
    give(&spool);
    plant(&spool.join(name), to);
}

fn give(path: &Path) {
    chown(path, Some(id_of("-u")), Some(id_of("-g"))).unwrap();
}

fn plant(link: &Path, to: &Path) {
    symlink(to, link).unwrap();
    lchown(link, Some(id_of("-u")), Some(id_of("-g"))).unwrap();
}

/// A directory of root's with a file.
fn prize(home: &Home) -> PathBuf {
    let prize = home.dir().join("prize");
    fs::create_dir(&prize).unwrap();
    fs::write(prize.join("file"), "kept\n").unwrap();
    prize
}

/// Starts the program, which may fail: its message, and whether it serves.
fn attempt(home: &Home, conf: &str) -> (String, Option<Guard>) {
    let path = home.write("nginx.conf", conf);
    let log = fs::File::create(home.dir().join("said")).unwrap();
    let mut command = home.command(&["-c", path.to_str().unwrap(), "-e", "stderr"]);
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    let mut child = Guard(command.spawn().unwrap());
    let mut ended = false;
    wait_until("the start or its end", || {
        ended = child.0.try_wait().unwrap().is_some();
        ended || answers(home.port(0))
    });
    let text = fs::read_to_string(home.dir().join("said")).unwrap();
    (text, (!ended).then_some(child))
}

/// Whether a worker answers there: a port is open before the start has succeeded.
fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let sent = stream.write_all(b"GET / HTTP/1.0\r\n\r\n");
    sent.is_ok() && stream.read(&mut [0; 1]).is_ok_and(|read| read > 0)
}

struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

const REFUSED: &str = "failed (40: Too many levels of symbolic links)";

#[test]
fn a_directory_that_a_worker_linked_to_is_not_given_to_the_workers() {
    if !is_root() {
        return;
    }
    for (name, path) in [("body", "spool/body"), ("way", "spool/way/below")] {
        let home = Home::new(BOLIDE);
        let prize = prize(&home);
        fs::create_dir(prize.join("below")).unwrap();
        trap(&home, name, &prize);
        for directive in ["client_body_temp_path", "page_cache_path"] {
            let conf = format!(
                "{} http {{ {directive} @DIR@/{path}; server {{ listen 127.0.0.1:@HTTP@; }} }}",
                unprivileged(1)
            );
            let (said, child) = attempt(&home, &conf);
            for kept in [prize.clone(), prize.join("below")] {
                assert_eq!(fs::metadata(&kept).unwrap().uid(), 0, "{directive} {path}: {kept:?}");
            }
            assert!(child.is_none() && said.contains(REFUSED), "{directive} {path}: {said}");
        }
    }
}

#[test]
fn a_reload_gives_away_only_directories_that_are_there_and_follows_roots_own_links() {
    if !is_root() {
        return;
    }
    let home = Home::new(BOLIDE);
    let prize = prize(&home);
    for name in ["spool", "real"] {
        fs::create_dir(home.dir().join(name)).unwrap();
    }
    give(&home.dir().join("spool"));
    symlink(home.dir().join("real"), home.dir().join("linked")).unwrap();
    let conf = format!(
        "{} http {{ client_body_temp_path @DIR@/spool/body; proxy_temp_path @DIR@/linked;
         server {{ listen 127.0.0.1:@HTTP@; }} }}",
        unprivileged(1)
    );
    let server = TestServer::start(home, &conf);
    let body = server.home().dir().join("spool/body");
    let uid = id_of("-u");
    assert_eq!(fs::metadata(&body).unwrap().uid(), uid);
    assert_eq!(fs::metadata(server.home().dir().join("real")).unwrap().uid(), uid);
    fs::remove_dir(&body).unwrap();
    plant(&body, &prize);
    server.signal("HUP");
    let errors = || server.error_log();
    wait_until("the reload", || errors().contains(REFUSED) || errors().contains("reconfigured"));
    assert_eq!(fs::metadata(&prize).unwrap().uid(), 0, "{}", errors());
    assert!(errors().contains(REFUSED), "{}", errors());
}

#[test]
fn no_pid_and_no_line_is_written_where_a_workers_link_leads() {
    if !is_root() {
        return;
    }
    for (what, wanted) in [("pid", "spool/file\" failed (40"), ("log", "spool/file\" failed (40")] {
        let home = Home::new(BOLIDE);
        let prize = prize(&home);
        trap(&home, "file", &prize.join("file"));
        let conf = match what {
            "pid" => unprivileged(1).replace("@DIR@/logs/pid", "@DIR@/spool/file"),
            _ => unprivileged(1).replace("@DIR@/logs/error.log", "@DIR@/spool/file"),
        };
        let conf = format!("{conf} http {{ server {{ listen 127.0.0.1:@HTTP@; }} }}");
        let (said, child) = attempt(&home, &conf);
        let kept = fs::read_to_string(prize.join("file"));
        assert_eq!(kept.unwrap_or_default(), "kept\n", "{what}: {said}");
        assert!(child.is_none() && said.contains(wanted), "{what}: {said}");
    }
}

#[test]
fn a_stale_pid_file_is_replaced() {
    let home = Home::new(BOLIDE);
    fs::write(home.dir().join("logs/pid"), "999999999999999999999\n").unwrap();
    let conf =
        format!("{} http {{ server {{ listen 127.0.0.1:@HTTP@; return 204; }} }}", prelude(1));
    let server = TestServer::start(home, &conf);
    assert_eq!(server.get("/").status, 204);
    wait_until("the pid", || server.home().read("logs/pid") == format!("{}\n", server.pid()));
}

#[test]
fn a_pool_that_runs_like_the_workers_is_warned_of() {
    if !is_root() {
        return;
    }
    let home = Home::new(BOLIDE);
    let test = |user: &str| {
        let conf = format!(
            "{}http {{\nphp_pool main {{ binary /bin/true; {user} }}\nserver {{ listen \
             127.0.0.1:@HTTP@; location / {{ php_pass main; }} }} }}\n",
            unprivileged(1)
        );
        let path = home.write("nginx.conf", &conf);
        home.run(&["-t", "-c", path.to_str().unwrap(), "-e", "stderr"]).stderr
    };
    let line = unprivileged(1).lines().count() + 2;
    let place = format!("{}:{line}", home.dir().join("nginx.conf").display());
    for user in ["", "user nobody;"] {
        let said = test(user);
        let warned = said.lines().any(|line| {
            line.contains("[warn]")
                && line.contains("php_pool \"main\" runs as \"nobody\", like the workers")
                && line.ends_with(&format!("in {place}"))
        });
        assert!(warned && said.contains("test is successful"), "{user}: {said}");
    }
    let said = test("user www-data;");
    assert!(!said.contains("[warn]") && said.contains("test is successful"), "{said}");
}

#[test]
fn a_reload_keeps_the_account_that_the_workers_have_and_says_so() {
    if !is_root() {
        return;
    }
    let conf = |user: &str, n: u32| {
        format!(
            "{} http {{ client_body_temp_path @DIR@/body; client_body_buffer_size 1k;
             php_pool main {{ user games; children 2; env N {n}; }}
             php_pool own {{ children 2; env N {n}; }}
             server {{ listen 127.0.0.1:@HTTP@; client_max_body_size 9m; root @DIR@/www;
             location /up {{ proxy_pass http://127.0.0.1:@HTTP@/sink; }}
             location /sink {{ return 200 got; }} location = /n {{ return 200 {n}; }}
             location ~ ^/own/ {{ rewrite ^/own(.*) $1 break; php_pass own; }}
             location ~ \\.php$ {{ php_pass main; }} }} }}",
            unprivileged(1).replace("user nobody;", user)
        )
    };
    let server = TestServer::start(Home::new(BOLIDE), &conf("user nobody;", 1));
    fs::write(server.www("n.php"), "<?php echo getenv('N'), ' ', posix_geteuid();").unwrap();
    let body = server.home().write("sent", &"x".repeat(300_000));
    let url = |path: &str| format!("http://{}{path}", server.http());
    let curl = || server.curl(bolide_testkit::Proto::H1);
    let upload = || {
        let sent = curl().args(["--data-binary", &format!("@{}", body.display())]);
        sent.attempt(&url("/up")).status
    };
    let works = |n: u32| {
        let php = |path: &str| curl().attempt(&url(path)).text();
        let games = run("id", ["-u", "games"]).succeeded().text();
        let (games, own) = (format!("{n} {}", games.trim()), format!("{n} {}", id_of("-u")));
        wait_until("the new pools", || php("/n.php") == games && php("/own/n.php") == own);
        assert_eq!(upload(), 200);
    };
    works(1);
    let words = "\"user\" has changed, but a reload keeps what is in use; an upgrade (USR2, then \
                 QUIT to the old process) or a restart changes it";
    let warnings = || server.error_log().matches(words).count();
    // Said at each reload, and no more when the account is that of the start again.
    let rows = [("user www-data;", 1), ("user www-data nogroup;", 2), ("user nobody;", 2)];
    for (n, (user, warned)) in (2..).zip(rows) {
        server.rewrite(&conf(user, n));
        server.signal("HUP");
        wait_until("the reload", || curl().attempt(&url("/n")).text() == n.to_string());
        works(n);
        assert_eq!(warnings(), warned, "{}", server.error_log());
        let owner = fs::metadata(server.home().dir().join("body")).unwrap().uid();
        assert_eq!(owner, id_of("-u"));
    }
    server.rewrite(&conf("user no-such-user;", 9));
    server.signal("HUP");
    let refusal = "getpwnam(\"no-such-user\") failed in ";
    wait_until("the refusal", || server.error_log().contains(refusal));
    works(4);
}
