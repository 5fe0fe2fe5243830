//! `bolide adopt` takes over from a real nginx under requests, and goes back to it.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use bolide_testkit::server::{Home, prelude};
use bolide_testkit::{Curl, H1TestClient, Proto, SetOnDrop, ToolRun, run, tools, wait_until};

use crate::BOLIDE;

/// nginx in the background with one directory, and the Bolide that may follow it.
struct Host {
    home: Home,
    nginx: u32,
}

impl Host {
    /// Starts nginx with this server on a shared and on separate sockets, with TLS and QUIC.
    fn start(server: &str) -> Self {
        let home = Home::new(tools::tool("nginx-sid").to_str().unwrap());
        home.write("nginx.conf", &conf("daemon on;", server));
        let done = home.run(&["-c", "nginx.conf", "-e", "logs/error.log"]);
        assert_eq!(done.code, 0, "{done}");
        let host = Self { nginx: pid_in(&home, "logs/pid"), home };
        wait_until("nginx", || TcpStream::connect(host.at(0)).is_ok());
        // The kernel takes connections before there is a worker.
        wait_until("a worker of nginx", || host.name(0).is_ok());
        host
    }

    fn at(&self, port: usize) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.home.port(port)))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(BOLIDE);
        command.current_dir(self.home.dir()).args(words).arg("-p").arg(self.home.dir());
        command.args(["-c", "nginx.conf", "-e", "logs/error.log"]);
        command
    }

    /// Runs `bolide adopt` to its end.
    fn adopt(&self, words: &[&str]) -> ToolRun {
        let command = self.command(&[&["adopt"], words].concat());
        tools::finish("bolide", command, std::time::Duration::from_secs(120))
    }

    /// The name of the server that answers, by a connection of its own.
    fn name(&self, port: usize) -> Result<String, String> {
        let mut client = H1TestClient::connect(self.at(port));
        client.send("GET /n HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = client.try_answer("GET")?;
        match (answer.status, answer.header("server")) {
            (200, Some(name)) => Ok(name.split('/').next().unwrap_or_default().to_owned()),
            (status, name) => Err(format!("{status} by {name:?}")),
        }
    }

    /// Whether all that answers is this server.
    fn is_all(&self, name: &str) -> bool {
        (0..8).all(|_| self.name(0).as_deref() == Ok(name) && self.name(2).as_deref() == Ok(name))
    }

    fn nginx_runs(&self) -> bool {
        is_running(self.nginx)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Ends what this test has started, by the numbers that it wrote down.
        for pid in ["logs/bolide.pid.oldbin", "logs/bolide.pid", "logs/pid"] {
            let pid = self.home.read(pid);
            if let Ok(pid) = pid.trim().parse::<u32>() {
                kill(pid, "TERM");
                wait_until("the end of a server", || !is_running(pid));
            }
        }
    }
}

fn conf(main: &str, server: &str) -> String {
    let prelude =
        prelude(2).replace("daemon off;", main).replace("error.log info", "error.log notice");
    format!(
        "{prelude}http {{
            access_log off;
            client_body_temp_path @DIR@/temp-body; proxy_temp_path @DIR@/temp-proxy;
            fastcgi_temp_path @DIR@/temp-fcgi; uwsgi_temp_path @DIR@/temp-uwsgi;
            scgi_temp_path @DIR@/temp-scgi;
            server {{
                listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@P2@ reuseport;
                listen 127.0.0.1:@HTTPS@ ssl; listen 127.0.0.1:@HTTPS@ quic reuseport;
                http2 on;
                ssl_certificate @CERT@; ssl_certificate_key @KEY@;
                root @DIR@/www;
                location /slow/ {{ alias @DIR@/www/; limit_rate 100k; }}
                {server}
            }}
        }}\n"
    )
}

const GOOD: &str = "location /n { return 200 here; }";

fn pid_in(home: &Home, file: &str) -> u32 {
    wait_until("a pid file", || home.read(file).ends_with('\n'));
    home.read(file).trim().parse().unwrap()
}

fn kill(pid: u32, signal: &str) {
    let _ended_already = run("kill", [&format!("-{signal}"), &pid.to_string()]);
}

fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

/// What clients have got.
#[derive(Debug, Default)]
struct Got {
    by: BTreeMap<String, u64>,
    failed: Vec<String>,
}

/// Runs `body` while two clients ask, each request by a connection of its own.
fn under_requests<T>(host: &Host, body: impl FnOnce() -> T) -> (T, Got) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients: Vec<_> = [0, 2]
            .map(|port| {
                let is_over = &is_over;
                scope.spawn(move || {
                    let mut got = Got::default();
                    while !is_over.load(Ordering::SeqCst) {
                        match host.name(port) {
                            Ok(name) => *got.by.entry(name).or_default() += 1,
                            Err(why) => got.failed.push(why),
                        }
                        // There are always some under way, and others' tests have the machine, too.
                        std::thread::sleep(std::time::Duration::from_millis(2));
                    }
                    got
                })
            })
            .into();
        let done = {
            let _over = SetOnDrop(&is_over);
            body()
        };
        let mut all = Got::default();
        for client in clients {
            let got = client.join().unwrap();
            got.by.into_iter().for_each(|(name, count)| *all.by.entry(name).or_default() += count);
            all.failed.extend(got.failed);
        }
        (done, all)
    })
}

#[test]
fn a_running_nginx_hands_over_and_no_request_fails() {
    let host = Host::start(GOOD);
    let big = bolide_testkit::site::noise(400_000, 7);
    fs::write(host.home.dir().join("www/big"), &big).unwrap();
    let slow = format!("https://127.0.0.1:{}/slow/big", host.home.port(1));
    let ((output, body), got) = under_requests(&host, || {
        std::thread::scope(|scope| {
            let long = scope.spawn(|| Curl::new(Proto::H2).get(&slow).body);
            wait_until("some answers", || host.is_all("nginx"));
            let output = host.adopt(&["--watch", "2s"]);
            wait_until("all answers", || host.is_all("bolide"));
            (output, long.join().unwrap())
        })
    });
    let text = output.succeeded().text();
    assert!(got.failed.is_empty(), "{:?} {:?}", got.failed, got.by);
    assert!(got.by["nginx"] > 0 && got.by["bolide"] > 0, "{:?}", got.by);
    assert!(body == big, "a download that nginx began is whole");
    let pid = pid_in(&host.home, "logs/bolide.pid");
    for part in [
        format!("nginx is process {}; taken over from it: ", host.nginx),
        format!("127.0.0.1:{} quic", host.home.port(1)),
        format!("bolide serves as process {pid}\n"),
        "nginx accepts no more; watching for 2s until it is ended\n".to_owned(),
        "; nginx ends with its last requests\n".to_owned(),
        format!("bolide goes on as process {pid}; its pid file is "),
    ] {
        assert!(text.contains(&part), "{part}: {text}");
    }
    assert!(!text.contains("opened:") && text.contains(" 0 of "), "{text}");
    wait_until("the end of nginx", || !host.nginx_runs());
    assert_eq!(host.home.read("logs/pid"), "", "nginx has removed its own pid file");
    let by_tls = || {
        for proto in Proto::TLS {
            let url = format!("https://127.0.0.1:{}/n", host.home.port(1));
            let reply = Curl::new(proto).get(&url);
            assert!(reply.header("server").is_some_and(|name| name.starts_with("bolide")));
        }
    };
    by_tls();
    // It is a server like any other: it reloads, and keeps its pid file.
    host.home.write("nginx.conf", &conf("daemon on;", "location /n { return 200 again; }"));
    let command = host.command(&["reload", "--pid", &pid.to_string()]);
    let done = tools::finish("bolide", command, std::time::Duration::from_secs(60));
    assert_eq!(done.succeeded().text(), "configuration 2 is in force\n");
    assert_eq!(pid_in(&host.home, "logs/bolide.pid"), pid);
    assert_eq!(host.home.read("logs/pid"), "");
    // And it hands over to a new binary.
    kill(pid, "USR2");
    let new_pid =
        || host.home.read("logs/bolide.pid").trim().parse::<u32>().ok().filter(|new| *new != pid);
    wait_until("a successor", || new_pid().is_some());
    kill(pid, "QUIT");
    wait_until("the end of the older one", || !is_running(pid));
    by_tls();
    assert!(host.is_all("bolide"));
}

#[test]
fn nginx_serves_again_if_too_much_fails() {
    let version = run(tools::tool("nginx-sid").to_str().unwrap(), ["-v"]).stderr;
    let version = version.trim().rsplit('/').next().unwrap().to_owned();
    // What only nginx itself answers well.
    let host = Host::start(&format!(
        "location /n {{ if ($nginx_version = \"{version}\") {{ return 200 here; }} return 500; }}"
    ));
    let (output, got) = under_requests(&host, || {
        let output = host.adopt(&["--watch", "100s"]);
        wait_until("nginx's answers", || host.is_all("nginx"));
        output
    });
    assert_eq!(output.code, 1, "{output}");
    let end = "nginx serves again; the server ends with its last requests\n";
    assert!(output.stderr.contains(" requests ended with 5xx\n"), "{output}");
    assert!(output.stderr.ends_with(end), "{output}");
    // Answers of 500 are ours; no connection was refused, cut or left without an answer.
    let cut: Vec<_> =
        got.failed.iter().filter(|why| !why.contains("500 by Some(\"bolide")).collect();
    assert!(cut.is_empty() && !got.failed.is_empty(), "{cut:?} {:?}", got.by);
    wait_until("the end of the server", || host.home.read("logs/bolide.pid").is_empty());
    assert!(host.nginx_runs() && host.is_all("nginx"));
    assert_eq!(pid_in(&host.home, "logs/pid"), host.nginx);
}

#[test]
fn an_interrupted_command_returns_to_nginx() {
    let host = Host::start(GOOD);
    let (output, got) = under_requests(&host, || {
        let mut command = host.command(&["adopt", "--watch", "100s"]);
        let child: Child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the server alone", || host.is_all("bolide"));
        kill(child.id(), "INT");
        let output = child.wait_with_output().unwrap();
        wait_until("nginx's answers", || host.is_all("nginx"));
        output
    });
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("the command was told to stop\n"), "{text}");
    assert!(got.failed.is_empty(), "{:?}", got.failed);
    wait_until("the end of the server", || host.home.read("logs/bolide.pid").is_empty());
}

#[test]
fn a_dry_run_prints_the_plan_and_changes_nothing_and_an_impossible_one_is_refused() {
    let host = Host::start(GOOD);
    let output = host.adopt(&["--dry-run"]).succeeded().text();
    let taken = format!("nginx is process {}; taken over from it: ", host.nginx);
    assert!(output.contains(" directives: ") && output.contains(&taken), "{output}");
    let with_more = format!("{GOOD} listen 127.0.0.1:@P3@;");
    host.home.write("nginx.conf", &conf("daemon on;", &with_more));
    let output = host.adopt(&["--dry-run"]).succeeded().text();
    assert!(output.contains(&format!("\nopened: {}\n", host.at(3))), "{output}");
    assert!(TcpStream::connect(host.at(3)).is_err(), "nothing is opened");
    // What Bolide refuses, what nginx does not run with, and what is no nginx.
    let refused = |conf: &str, words: &[&str]| {
        host.home.write("nginx.conf", conf);
        let output = host.adopt(words);
        assert_eq!(output.code, 1, "{output}");
        output.stderr
    };
    let output = refused(&conf("daemon on;", "image_filter test;"), &[]);
    assert_eq!(output, "bolide: nothing was changed: nginx serves on\n");
    let other = conf("daemon on;", GOOD).replace("listen 127.0.0.1:@P2@ reuseport;", "");
    let output = refused(&other, &[]);
    let line = format!("bolide: nginx listens on {}, which the configuration does not", host.at(2));
    assert!(output.starts_with(&line), "{output}");
    let good = conf("daemon on;", GOOD);
    host.home.write("own.pid", &format!("{}\n", std::process::id()));
    let output = refused(&good, &["--nginx-pid", "own.pid"]);
    assert!(output.contains(" of \"own.pid\" is no nginx, but \""), "{output}");
    let output = refused(&good, &["--nginx-pid", "none.pid"]);
    assert!(output.contains("open() \"none.pid\" failed (2: "), "{output}");
    // A server that does not start leaves all as it was.
    let output = refused(&good.replace("@CERT@", "@DIR@/none.pem"), &[]);
    assert!(output.ends_with("bolide: the server did not start; nginx serves on\n"), "{output}");
    assert!(host.nginx_runs() && host.is_all("nginx"));
}

#[test]
fn an_nginx_in_the_foreground_is_left_alone() {
    let home = Home::new(tools::tool("nginx-sid").to_str().unwrap());
    home.write("nginx.conf", &conf("daemon off;", GOOD));
    let mut command = home.command(&["-c", "nginx.conf", "-e", "logs/error.log"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let host = Host { nginx: pid_in(&home, "logs/pid"), home };
    wait_until("nginx", || TcpStream::connect(host.at(0)).is_ok());
    let (output, got) = under_requests(&host, || host.adopt(&[]));
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("\"daemon off\""), "{output}");
    assert!(got.failed.is_empty(), "{:?}", got.failed);
    wait_until("nginx's answers", || host.is_all("nginx"));
    kill(host.nginx, "TERM");
    let _ended = child.wait().unwrap();
}
