//! The process as scripts expect it of nginx: command lines, pid file, signals, log lines, daemon
//! mode, failing starts.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use bolide_testkit::server::{Home, is_root};
use bolide_testkit::{TestServer, wait_until};

use crate::{BOLIDE, report};

/// A daemon that ends with the test.
pub(crate) struct Daemon {
    pub(crate) home: Home,
    pub(crate) pid: u32,
}

/// The main block of [`Daemon::start`].
pub(crate) const MAIN: &str =
    "worker_processes 2; error_log logs/error.log notice; pid logs/pid; events {}";

fn conf(main: &str, server: &str) -> String {
    let user = if is_root() { "user root;" } else { "" };
    format!(
        "{user} {main} http {{ access_log logs/access.log; server {{ {server} \
         location / {{ return 200 here; }} }} }}\n"
    )
}

const LISTEN: &str = "listen 127.0.0.1:@HTTP@;";

impl Daemon {
    /// Starts it, and expects responses when the starting program has ended.
    pub(crate) fn start(main: &str, server: &str) -> Self {
        let home = Home::new(BOLIDE);
        home.write("nginx.conf", &conf(main, server));
        let done = home.run(&["-c", "nginx.conf"]);
        assert_eq!(done.code, 0, "{done}");
        assert_eq!(done.stderr, "");
        let pid = pid_in(&home, "pid").expect("the pid file is there when the parent has ended");
        Self { home, pid }
    }

    pub(crate) fn log(&self) -> String {
        self.home.read("logs/error.log")
    }

    pub(crate) fn signal(&self, signal: &str) {
        kill(self.pid, signal);
    }

    pub(crate) fn is_running(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
    }

    fn waits_for(&self, words: &str) {
        wait_until(words, || self.log().contains(words));
    }

    /// Starts a successor, which serves alone; returns its process id.
    pub(crate) fn yields_to_a_successor(&self) -> u32 {
        let waiting = count(&self.log(), "all requests have ended, waiting");
        self.signal("USR2");
        wait_until("a successor", || pid_in(&self.home, "pid").is_some_and(|pid| pid != self.pid));
        let successor = pid_in(&self.home, "pid").unwrap();
        self.signal("WINCH");
        wait_until("the workers' rest", || {
            count(&self.log(), "all requests have ended, waiting") == waiting + 2
        });
        successor
    }

    fn answers(&self) -> bool {
        let mut client =
            bolide_testkit::h1::H1TestClient::connect(([127, 0, 0, 1], self.home.port(0)).into());
        client.get("/", "Connection: close\r\n").status == 200
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.is_running() {
            kill(self.pid, "KILL");
        }
    }
}

pub(crate) fn kill(pid: u32, signal: &str) {
    let status = Command::new("kill").args(["-s", signal, &pid.to_string()]).status().unwrap();
    assert!(status.success(), "kill -s {signal} {pid}");
}

pub(crate) fn pid_in(home: &Home, name: &str) -> Option<u32> {
    home.read(&format!("logs/{name}")).trim().parse().ok()
}

pub(crate) fn count(log: &str, words: &str) -> usize {
    log.matches(words).count()
}

#[test]
fn command_lines_print_and_return_what_those_of_nginx_do() {
    let home = Home::new(BOLIDE);
    home.write("ok.conf", "daemon off; pid logs/pid; error_log logs/error.log; events {}");
    home.write("bad.conf", "foo;");
    home.write("stale.conf", "pid logs/stale; events {}");
    home.write("odd.conf", "pid logs/odd; events {}");
    home.write("logs/stale", "4194303\n");
    home.write("logs/odd", " 12\n");
    let dir = home.dir().display().to_string();
    let rows: &[(&[&str], i32, &str)] = &[
        (&["-x"], 1, "bolide: invalid option: \"x\"\n"),
        (&["-tx"], 1, "bolide: invalid option: \"x\"\n"),
        (&["word"], 1, "bolide: invalid option: \"word\"\n"),
        (&["--"], 1, "bolide: invalid option: \"-\"\n"),
        (&["-s"], 1, "bolide: option \"-s\" requires parameter\n"),
        (&["-s", "start"], 1, "bolide: invalid option: \"-s start\"\n"),
        (&["-c"], 1, "bolide: option \"-c\" requires file name\n"),
        (&["-e"], 1, "bolide: option \"-e\" requires file name\n"),
        (&["-g"], 1, "bolide: option \"-g\" requires parameter\n"),
        (&["-v"], 0, "bolide version: bolide/V\n"),
        (&["-c", "ok.conf", "-tq"], 0, ""),
        (&["-", "-c", "ok.conf", "-qt"], 0, ""),
        // A test of the configuration sends no signal.
        (&["-c", "ok.conf", "-q", "-t", "-s", "stop"], 0, ""),
        (
            &["-c", "ok.conf", "-vt"],
            0,
            "bolide version: bolide/V\n\
             bolide: the configuration file DIR/ok.conf syntax is ok\n\
             bolide: configuration file DIR/ok.conf test is successful\n",
        ),
        (
            &["-c", "bad.conf", "-tq"],
            1,
            "bolide: [emerg] unknown directive \"foo\" in DIR/bad.conf:1\n\
             bolide: configuration file DIR/bad.conf test failed\n",
        ),
        (&["-c", "bad.conf"], 1, "bolide: [emerg] unknown directive \"foo\" in DIR/bad.conf:1\n"),
        (
            &["-c", "ok.conf", "-qt", "-g", "foo;"],
            1,
            "bolide: [emerg] unknown directive \"foo\" in command line\n\
             bolide: configuration file DIR/ok.conf test failed\n",
        ),
        (
            &["-c", "ok.conf", "-qt", "-g", "events {}"],
            1,
            "bolide: [emerg] block directives are not supported in -g option in command line\n\
             bolide: configuration file DIR/ok.conf test failed\n",
        ),
        (
            &["-c", "ok.conf", "-qt", "-g", "daemon on;"],
            1,
            "bolide: [emerg] \"daemon\" directive is duplicate in DIR/ok.conf:1\n\
             bolide: configuration file DIR/ok.conf test failed\n",
        ),
        (
            &["-c", "ok.conf", "-s", "reload"],
            1,
            "bolide: [error] open() \"DIR/logs/pid\" failed (2: No such file or directory)\n",
        ),
        (
            &["-c", "stale.conf", "-s", "quit"],
            1,
            "bolide: [alert] kill(4194303, 3) failed (3: No such process)\n",
        ),
        (
            &["-c", "odd.conf", "-s", "stop"],
            1,
            "bolide: [error] invalid PID number \" 12\" in \"DIR/logs/odd\"\n",
        ),
        (
            &["-c", "ok.conf", "-qt", "-e", "none/x.log"],
            0,
            "bolide: [alert] could not open error log file: \
             open() \"DIR/none/x.log\" failed (2: No such file or directory)\n",
        ),
    ];
    let mut failures = Vec::new();
    for (args, code, wanted) in rows {
        let done = home.run(args);
        let said = done.stderr.replace(&dir, "DIR");
        let said: String = said
            .lines()
            .filter(|line| !line.starts_with("  help:"))
            .map(|line| {
                let is_version = line.starts_with("bolide version: bolide/");
                let line = if is_version { "bolide version: bolide/V" } else { line };
                format!("{line}\n")
            })
            .collect();
        if done.code != *code || said != *wanted {
            failures.push(format!("{args:?}: exit {}\n{said}", done.code));
        }
    }
    report(rows.len(), &failures);
    let log = home.read("logs/error.log");
    assert_eq!(count(&log, "[notice]"), 3, "signal process started: {log}");
}

#[test]
fn capital_v_prints_configure_arguments_that_scripts_look_for() {
    let home = Home::new(BOLIDE);
    let said = home.run(&["-V"]).stderr;
    let line = said.lines().find(|line| line.starts_with("configure arguments: ")).unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    for word in ["--with-http_ssl_module", "--with-http_v2_module", "--with-http_v3_module"] {
        assert!(words.contains(&word), "{line}");
    }
    for word in ["grpc", "memcached", "uwsgi", "scgi"] {
        assert!(!words.contains(&&*format!("--without-http_{word}_module")), "{line}");
    }
    assert!(said.contains("TLS SNI support"));
}

#[test]
fn a_dump_has_each_file_once_after_its_name() {
    let home = Home::new(BOLIDE);
    home.write("a.conf", "include b*.conf;\ninclude b1.conf;\nevents {}\n");
    home.write("b1.conf", "env A;");
    home.write("b2.conf", "env B=1;\n");
    let done = home.run(&["-c", "a.conf", "-T", "-q", "-g", "env C;"]).succeeded();
    let dir = home.dir().display();
    assert_eq!(
        done.text(),
        format!(
            "# configuration file {dir}/a.conf:\n\
             include b*.conf;\ninclude b1.conf;\nevents {{}}\n\n\
             # configuration file {dir}/b1.conf:\nenv A;\n\
             # configuration file {dir}/b2.conf:\nenv B=1;\n\n"
        )
    );
}

#[test]
fn with_e_stderr_lines_have_the_form_of_a_log() {
    let home = Home::new(BOLIDE);
    home.write("bad.conf", "foo;");
    let done = home.run(&["-c", "bad.conf", "-e", "stderr", "-t"]);
    let line = done.stderr.lines().next().unwrap();
    assert!(
        line.contains(" [emerg] ") && line.contains("#") && !line.starts_with("bolide"),
        "{line}"
    );
    assert!(!home.dir().join("stderr").exists() && !home.dir().join("logs/error.log").exists());
}

#[test]
fn a_server_in_the_background_lives_by_its_signals() {
    let daemon = Daemon::start(MAIN, LISTEN);
    assert!(daemon.answers());
    let log = daemon.log();
    assert_eq!(count(&log, "start worker process "), 2, "{log}");
    assert!(log.contains("using the \"epoll\" event method") && log.contains("[notice]"));

    daemon.signal("HUP");
    daemon.waits_for("[notice] ");
    daemon.waits_for("reconfigured");
    assert!(daemon.log().contains("signal 1 (SIGHUP) received from "), "{}", daemon.log());

    fs::rename(daemon.home.dir().join("logs/error.log"), daemon.home.dir().join("old")).unwrap();
    let _ = daemon.home.run(&["-c", "nginx.conf", "-s", "reopen"]).succeeded();
    wait_until("the log", || daemon.log().contains("reopening logs") || daemon.answers());
    wait_until("the last word of the old log", || {
        daemon.home.read("old").contains("signal 10 (SIGUSR1) received from ")
    });
    wait_until("a new log", || daemon.home.dir().join("logs/access.log").exists());

    let _ = daemon.home.run(&["-c", "nginx.conf", "-s", "quit"]).succeeded();
    wait_until("the end", || !daemon.is_running());
    let log = daemon.log();
    for (words, times) in [
        ("signal 3 (SIGQUIT) received from ", 1),
        (", shutting down", 1),
        ("gracefully shutting down", 2),
        ("exited with code 0", 2),
    ] {
        assert_eq!(count(&log, words), times, "{words}: {log}");
    }
    assert!(log.trim_end().ends_with(": exit"), "{log}");
    assert!(pid_in(&daemon.home, "pid").is_none());
}

#[test]
fn winch_lets_the_workers_wait_and_hup_lets_them_serve_again() {
    let daemon = Daemon::start(MAIN, LISTEN);
    daemon.signal("WINCH");
    let waiting = "all requests have ended, waiting";
    wait_until("both workers to wait", || count(&daemon.log(), waiting) == 2);
    assert!(daemon.log().contains("signal 28 (SIGWINCH)"), "{}", daemon.log());
    assert!(daemon.log().contains(", stop accepting connections"), "{}", daemon.log());
    assert!(daemon.is_running() && pid_in(&daemon.home, "pid") == Some(daemon.pid));
    // The address is still ours, so no connection is refused.
    let client = TcpStream::connect(("127.0.0.1", daemon.home.port(0))).unwrap();
    daemon.signal("HUP");
    wait_until("service", || count(&daemon.log(), "accepting connections again") == 2);
    assert!(daemon.answers());
    drop(client);
    daemon.signal("WINCH");
    wait_until("both workers to wait again", || count(&daemon.log(), waiting) == 4);
    daemon.signal("TERM");
    wait_until("the end", || !daemon.is_running());
    assert!(daemon.log().contains("signal 15 (SIGTERM)"), "{}", daemon.log());
}

#[test]
fn a_terminal_that_is_resized_stops_no_server_of_the_foreground() {
    let server = crate::http(&format!("server {{ {LISTEN} }}"));
    server.signal("WINCH");
    wait_until("the signal", || server.error_log().contains("signal 28 (SIGWINCH)"));
    assert!(!server.error_log().contains("stop accepting"));
    assert_eq!(server.get("/hello.txt").status, 404, "it still accepts");
}

#[test]
fn a_failed_start_is_reported_and_exits_with_one() {
    let port = |home: &Home| TcpListener::bind(("127.0.0.1", home.port(0))).unwrap();
    let rows: &[(&str, &str, &str)] = &[
        ("pid none/pid; events {}", LISTEN, "open() \"DIR/none/pid\" failed (2: No such file"),
        (
            "pid logs/pid; events {}",
            "listen 192.0.2.1:@HTTP@;",
            "bind() to 192.0.2.1:PORT failed (99: ",
        ),
        (
            "pid logs/pid; events {}",
            "listen unix:@DIR@/none/s;",
            "bind() to unix:DIR/none/s failed (2: ",
        ),
        (
            "pid logs/pid; events {}",
            "listen 127.0.0.1:@P2@; access_log none/a.log;",
            "open() \"DIR/none/a.log\" failed (2: No such file or directory)",
        ),
    ];
    let mut failures = Vec::new();
    for (main, server, wanted) in rows {
        let home = Home::new(BOLIDE);
        home.write("nginx.conf", &conf(&format!("error_log logs/error.log; {main}"), server));
        let wanted = wanted.replace("DIR", home.dir().to_str().unwrap());
        let wanted = wanted.replace("PORT", &home.port(0).to_string());
        let (tested, started) =
            (home.run(&["-t", "-c", "nginx.conf"]), home.run(&["-c", "nginx.conf"]));
        let log = home.read("logs/error.log");
        let is_reported = |text: &str| text.contains(&format!("[emerg] {wanted}"));
        if (tested.code, started.code) != (1, 1)
            || !(is_reported(&tested.stderr) && is_reported(&started.stderr))
            || !log.contains(&wanted)
            || pid_in(&home, "pid").is_some()
        {
            failures.push(format!("{main} {server}: {tested}\n{started}\n{log}"));
        }
    }
    report(rows.len(), &failures);

    let home = Home::new(BOLIDE);
    home.write("nginx.conf", &conf(MAIN, LISTEN));
    let taken = port(&home);
    let done = home.run(&["-c", "nginx.conf"]);
    assert_eq!(done.code, 1, "{done}");
    let words = format!("bind() to 127.0.0.1:{} failed (98: Address already in use)", home.port(0));
    assert_eq!(count(&done.stderr, &words), 5, "{done}");
    assert!(done.stderr.trim_end().ends_with("[emerg] still could not bind()"), "{done}");
    let log = home.read("logs/error.log");
    assert_eq!(count(&log, "[notice]"), count(&log, "try again to bind() after 500ms"), "{log}");
    // A test of the configuration ignores the conflict: the server to be reloaded has the address.
    let _ = home.run(&["-t", "-c", "nginx.conf"]).succeeded();
    drop(taken);
}

#[test]
fn an_address_that_becomes_free_while_it_is_tried_is_taken() {
    let home = Home::new(BOLIDE);
    home.write("nginx.conf", &conf(&MAIN.replace("events", "daemon off; events"), LISTEN));
    let taken = TcpListener::bind(("127.0.0.1", home.port(0))).unwrap();
    let mut child = home.command(&["-c", "nginx.conf"]).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the first try", || home.read("logs/error.log").contains("try again to bind()"));
    drop(taken);
    wait_until("the pid file", || pid_in(&home, "pid") == Some(child.id()));
    kill(child.id(), "TERM");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_unix_socket_goes_with_its_server() {
    for signal in ["TERM", "QUIT"] {
        let daemon = Daemon::start(MAIN, "listen unix:@DIR@/s; listen 127.0.0.1:@HTTP@;");
        let socket = daemon.home.dir().join("s");
        assert!(socket.exists());
        // Neither a test of the configuration nor a second server removes it.
        let _ = daemon.home.run(&["-c", "nginx.conf", "-t"]).succeeded();
        assert!(socket.exists());
        daemon.signal(signal);
        wait_until("the end", || !daemon.is_running());
        assert!(!socket.exists(), "{signal}");
    }
}

#[test]
fn ports_are_free_as_soon_as_a_server_gets_quit() {
    let quic = "listen 127.0.0.1:@HTTPS@ quic; ssl_certificate @CERT@; ssl_certificate_key @KEY@;";
    let slow = "location /slow { limit_rate 1; }";
    let daemon = Daemon::start(MAIN, &format!("{LISTEN} {quic} {slow}"));
    let path = daemon.home.dir().join("html");
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("slow"), vec![b'x'; 1000]).unwrap();
    let mut held =
        bolide_testkit::h1::H1TestClient::connect(([127, 0, 0, 1], daemon.home.port(0)).into());
    held.send(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(held.take(12).unwrap(), b"HTTP/1.1 200");
    daemon.signal("QUIT");
    wait_until("the port", || TcpListener::bind(("127.0.0.1", daemon.home.port(0))).is_ok());
    wait_until("QUIC's", || UdpSocket::bind(("127.0.0.1", daemon.home.port(1))).is_ok());
    assert!(daemon.is_running(), "it still answers: {}", daemon.log());
    daemon.signal("TERM");
    wait_until("the end", || !daemon.is_running());
}

#[test]
fn worker_shutdown_timeout_cuts_what_does_not_end() {
    let main = MAIN.replace("events", "worker_shutdown_timeout 1s; events");
    let daemon = Daemon::start(&main, &format!("{LISTEN} location /slow {{ limit_rate 1; }}"));
    let path = daemon.home.dir().join("html");
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("slow"), vec![b'x'; 1000]).unwrap();
    let mut held =
        bolide_testkit::h1::H1TestClient::connect(([127, 0, 0, 1], daemon.home.port(0)).into());
    held.send(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(held.take(12).unwrap(), b"HTTP/1.1 200");
    daemon.signal("QUIT");
    wait_until("the end", || !daemon.is_running());
}

#[test]
fn a_reload_moves_the_pid_file_and_refuses_one_that_cannot_be_written() {
    let daemon = Daemon::start(MAIN, LISTEN);
    daemon.home.write("nginx.conf", &conf(&MAIN.replace("logs/pid", "logs/other"), LISTEN));
    daemon.signal("HUP");
    wait_until("the new file", || pid_in(&daemon.home, "other") == Some(daemon.pid));
    wait_until("no old file", || !daemon.home.dir().join("logs/pid").exists());
    daemon.home.write("nginx.conf", &conf(&MAIN.replace("logs/pid", "none/pid"), LISTEN));
    daemon.signal("HUP");
    let dir = daemon.home.dir().display();
    daemon.waits_for(&format!("[emerg] {0}#{0}: open() \"{dir}/none/pid\"", daemon.pid));
    assert_eq!(pid_in(&daemon.home, "other"), Some(daemon.pid));
    assert!(daemon.answers());
    daemon.signal("TERM");
    wait_until("the end", || !daemon.is_running());
    assert!(!daemon.home.dir().join("logs/other").exists());
}

#[test]
fn a_pid_file_with_two_names_stays_whichever_a_reload_uses() {
    let daemon = Daemon::start(MAIN, LISTEN);
    std::os::unix::fs::symlink("logs", daemon.home.dir().join("linked")).unwrap();
    std::os::unix::fs::symlink("pid", daemon.home.dir().join("logs/name")).unwrap();
    let reconfigured = |times| {
        daemon.signal("HUP");
        wait_until("the reload", || count(&daemon.log(), "reconfigured") == times);
        assert_eq!(pid_in(&daemon.home, "pid"), Some(daemon.pid), "after reload {times}");
    };
    for (at, path) in ["linked/pid", "logs/name", "logs/pid"].iter().enumerate() {
        daemon.home.write("nginx.conf", &conf(&MAIN.replace("logs/pid", path), LISTEN));
        reconfigured(at + 1);
    }
    daemon.signal("QUIT");
    wait_until("the end", || !daemon.is_running());
    assert!(!daemon.home.dir().join("logs/pid").exists());
}

#[test]
fn a_refused_reload_leaves_the_pid_file_that_it_has_another_name_for() {
    let daemon = Daemon::start(MAIN, LISTEN);
    std::os::unix::fs::symlink("logs", daemon.home.dir().join("linked")).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("{LISTEN} listen {};", taken.local_addr().unwrap());
    daemon.home.write("nginx.conf", &conf(&MAIN.replace("logs/pid", "linked/pid"), &server));
    daemon.signal("HUP");
    daemon.waits_for("still could not bind()");
    // The next signal is handled after the reload.
    daemon.signal("USR1");
    daemon.waits_for("reopening logs");
    assert_eq!(pid_in(&daemon.home, "pid"), Some(daemon.pid));
    assert_eq!(count(&daemon.log(), "reconfigured"), 0);
}

#[test]
fn logs_whose_directory_is_missing_stay_open_and_a_reload_is_refused() {
    let daemon =
        Daemon::start(MAIN, &format!("{LISTEN} access_log more/a.log;").replace("more", "logs"));
    fs::create_dir(daemon.home.dir().join("more")).unwrap();
    let server = format!("{LISTEN} access_log more/a.log;");
    daemon.home.write("nginx.conf", &conf(MAIN, &server));
    daemon.signal("HUP");
    wait_until("the log", || daemon.home.dir().join("more/a.log").exists());
    daemon.waits_for("reconfigured");
    fs::remove_dir_all(daemon.home.dir().join("more")).unwrap();
    daemon.signal("USR1");
    let dir = daemon.home.dir().display();
    let words = format!("open() \"{dir}/more/a.log\" failed (2: No such file or directory)");
    daemon.waits_for(&words);
    assert!(daemon.answers());
    daemon.signal("HUP");
    wait_until("the refusal", || count(&daemon.log(), &words) == 2);
    assert!(daemon.answers());
}

#[test]
fn a_second_new_binary_is_refused_while_the_first_runs() {
    let daemon = Daemon::start(MAIN, LISTEN);
    daemon.signal("USR2");
    wait_until("a successor", || pid_in(&daemon.home, "pid").is_some_and(|pid| pid != daemon.pid));
    let successor = pid_in(&daemon.home, "pid").unwrap();
    daemon.signal("USR2");
    daemon.waits_for("[crit]");
    daemon.waits_for("the changing binary signal is ignored");
    // Back to the old one: the documented way out of a failed upgrade.
    daemon.signal("WINCH");
    wait_until("WINCH", || count(&daemon.log(), "gracefully shutting down") == 2);
    daemon.signal("HUP");
    wait_until("service", || count(&daemon.log(), "accepting connections again") == 2);
    kill(successor, "QUIT");
    wait_until("the old name", || pid_in(&daemon.home, "pid") == Some(daemon.pid));
    assert!(daemon.answers());
    daemon.signal("QUIT");
    wait_until("the end", || !daemon.is_running());
}

#[test]
fn the_old_process_serves_again_when_the_new_one_ends() {
    let daemon = Daemon::start(MAIN, LISTEN);
    for (round, signal) in (1..).zip(["KILL", "QUIT"]) {
        let successor = daemon.yields_to_a_successor();
        kill(successor, signal);
        wait_until("service", || count(&daemon.log(), "accepting connections again") == 2 * round);
        assert!(daemon.answers());
        assert_eq!(pid_in(&daemon.home, "pid"), Some(daemon.pid));
    }
}

#[test]
fn relative_arguments_mean_the_same_to_a_new_binary() {
    let home = Home::new(BOLIDE);
    fs::create_dir(home.dir().join("elsewhere")).unwrap();
    let main = MAIN.replace("events", "working_directory @DIR@/elsewhere; events");
    home.write("nginx.conf", &conf(&main, LISTEN));
    let mut command = Command::new(BOLIDE);
    command.args(["-p", ".", "-c", "nginx.conf"]).current_dir(home.dir()).stdin(Stdio::null());
    assert!(command.status().unwrap().success());
    let pid = pid_in(&home, "pid").unwrap();
    let daemon = Daemon { home, pid };
    let successor = daemon.yields_to_a_successor();
    assert!(daemon.answers(), "by the new binary");
    kill(successor, "QUIT");
    wait_until("the old name", || pid_in(&daemon.home, "pid") == Some(daemon.pid));
}

#[test]
fn hup_during_an_upgrade_lets_the_workers_serve_without_reading_the_file() {
    let daemon = Daemon::start(MAIN, LISTEN);
    let successor = daemon.yields_to_a_successor();
    // A directive of the new binary, and an address that it has.
    daemon.home.write("nginx.conf", &conf(MAIN, &format!("{LISTEN} of_the_new_binary on;")));
    daemon.signal("HUP");
    wait_until("service", || count(&daemon.log(), "accepting connections again") == 2);
    kill(successor, "QUIT");
    wait_until("the old name", || pid_in(&daemon.home, "pid") == Some(daemon.pid));
    assert!(daemon.answers());
    assert!(!daemon.log().contains("[emerg]"), "{}", daemon.log());
    daemon.signal("HUP");
    daemon.waits_for("unknown directive \"of_the_new_binary\"");
    assert!(daemon.answers());
}

#[test]
fn a_mistake_is_one_line_in_the_log() {
    let daemon = Daemon::start(MAIN, LISTEN);
    daemon.home.write("nginx.conf", &conf(MAIN, &format!("{LISTEN} retur 200;")));
    daemon.signal("HUP");
    daemon.waits_for("unknown directive \"retur\" in ");
    let log = daemon.log();
    let line = log.lines().find(|line| line.contains("\"retur\"")).unwrap();
    let end = line.rsplit(':').next().unwrap();
    assert!(end.bytes().all(|byte| byte.is_ascii_digit()), "{line}");
}

#[test]
fn the_unix_socket_of_a_killed_server_can_be_bound_again() {
    let conf =
        format!("server {{ {LISTEN} listen unix:@DIR@/s.sock; location / {{ return 204; }} }}");
    let mut server = crate::http(&conf);
    let socket = server.home().dir().join("s.sock");
    let answers = |socket: &Path| {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply.starts_with("HTTP/1.1 204 ")
    };
    assert!(answers(&socket));
    server.restart("KILL");
    assert!(answers(&socket));
    let other = Home::new(BOLIDE);
    let taken = format!("events {{}} http {{ server {{ listen unix:{}; }} }}", socket.display());
    other.write("nginx.conf", &taken);
    let done = other.run(&["-c", "nginx.conf"]);
    assert!(done.code != 0 && done.stderr.contains("98: Address already in use"), "{done}");
    assert!(answers(&socket));
}

#[test]
fn a_unix_socket_that_an_upgrade_drops_is_removed_with_the_old_process() {
    let daemon = Daemon::start(MAIN, &format!("{LISTEN} listen unix:@DIR@/s.sock;"));
    let socket = daemon.home.dir().join("s.sock");
    daemon.home.write("nginx.conf", &conf(MAIN, LISTEN));
    daemon.signal("USR2");
    wait_until("a successor", || pid_in(&daemon.home, "pid").is_some_and(|pid| pid != daemon.pid));
    let successor = pid_in(&daemon.home, "pid").unwrap();
    assert!(socket.exists(), "the old process serves it");
    daemon.signal("QUIT");
    wait_until("the name to go", || !daemon.is_running() && !socket.exists());
    assert!(daemon.answers());
    kill(successor, "QUIT");
}

#[test]
fn workers_have_the_configured_cores_and_priority() {
    let main = MAIN.replace(
        "events",
        "worker_priority 3; worker_cpu_affinity 01 11; env BOLIDE_SEEN=yes; \
         working_directory @DIR@/logs; worker_rlimit_nofile 512; worker_rlimit_core 4096; events",
    );
    let daemon = Daemon::start(&main, LISTEN);
    let threads: Vec<u32> = daemon
        .log()
        .lines()
        .filter_map(|line| line.split("start worker process ").nth(1)?.parse().ok())
        .collect();
    let status = |thread: u32, name: &str| -> String {
        let file = format!("/proc/{}/task/{thread}/status", daemon.pid);
        let text = fs::read_to_string(file).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        line.to_owned()
    };
    assert_eq!(status(threads[0], "Cpus_allowed_list:"), "0");
    assert_ne!(status(threads[1], "Cpus_allowed_list:"), "");
    for thread in threads {
        let stat = fs::read_to_string(format!("/proc/{}/task/{thread}/stat", daemon.pid)).unwrap();
        let nice = stat.rsplit(')').next().unwrap().split(' ').nth(17).unwrap();
        assert_eq!(nice, "3", "{stat}");
    }
    let limits = fs::read_to_string(format!("/proc/{}/limits", daemon.pid)).unwrap();
    let limit = |name: &str| -> Vec<String> {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(limit("Max open files")[..2], ["1024", "1024"], "512 for each of two workers");
    assert_eq!(limit("Max core file size")[..2], ["4096", "4096"]);
    let here = fs::read_link(format!("/proc/{}/cwd", daemon.pid)).unwrap();
    assert_eq!(here, daemon.home.dir().join("logs"));
}

#[test]
fn load_module_accepts_built_in_modules_only() {
    let home = Home::new(BOLIDE);
    let rows: &[(&str, i32, &str)] = &[
        ("load_module modules/ngx_http_brotli_static_module.so; events {}", 0, ""),
        (
            "load_module modules/ngx_http_none_module.so; events {}",
            1,
            "[emerg] module \"modules/ngx_http_none_module.so\" is not available: its work is not \
             built in, and no file is loaded in DIR/m.conf:1",
        ),
        (
            "load_module modules/ngx_stream_module.so; load_module modules/ngx_http_lua_module.so;
             events {}",
            0,
            "[notice] module \"ngx_http_lua_module\" is not available: its directives and \
             variables are unknown in DIR/m.conf:1",
        ),
        (
            "load_module modules/ngx_http_perl_module.so; events {}\nhttp { perl_modules x; }",
            1,
            "[emerg] \"perl_modules\" directive is not implemented yet in DIR/m.conf:2",
        ),
        (
            "events {}\nload_module modules/ngx_http_brotli_static_module.so;",
            1,
            "[emerg] \"load_module\" directive is specified too late in DIR/m.conf:2",
        ),
        (
            "load_module ngx_http_zstd_filter_module.so; load_module x/ngx_http_zstd_filter_module.so;",
            1,
            "[emerg] module \"ngx_http_zstd_filter_module\" is already loaded in DIR/m.conf:1",
        ),
    ];
    let mut failures = Vec::new();
    for (text, code, wanted) in rows {
        home.write("m.conf", text);
        let done = home.run(&["-t", "-c", "m.conf"]);
        if done.code != *code
            || !done.stderr.contains(&wanted.replace("DIR", home.dir().to_str().unwrap()))
        {
            failures.push(format!("{text}: {done}"));
        }
    }
    report(rows.len(), &failures);
}

#[test]
fn env_with_a_value_holds_for_the_server_itself() {
    let main = MAIN.replace("events", "env TZ=Pacific/Kiritimati; events");
    let daemon = Daemon::start(&main, LISTEN);
    assert!(daemon.answers());
    wait_until("the line", || daemon.home.read("logs/access.log").contains("+1400]"));
}

#[test]
fn int_stops_the_server_and_is_logged_by_name() {
    let server = TestServer::with(BOLIDE, &format!("server {{ {LISTEN} }}"));
    let exit = server.stop("INT");
    assert_eq!(exit.code, 0);
    assert!(exit.error_log.contains("signal 2 (SIGINT) received from "), "{}", exit.error_log);
}
