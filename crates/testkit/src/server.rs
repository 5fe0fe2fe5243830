//! A running server with its own directory, site, certificates and ports.
//!
//! These words are replaced in a configuration: `@DIR@` (the server's directory, its prefix),
//! `@HTTP@` and `@HTTPS@` (ports), `@P2@` to `@P9@` (more ports), `@CERT@` and `@KEY@`.
//! `BOLIDE_TEST_BINARY` selects another program to test, for example nginx, to check the
//! expectations of the tables in `tests/` against it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::curl::{Curl, CurlReply, Proto};
use crate::h1::H1TestClient;
use crate::ports::TestPorts;
use crate::tools::{ToolRun, finish, run};
use crate::{certs, site, socket_tables, wait_until};

/// A running server. Dropping it kills it; a failing test prints its logs first.
pub struct TestServer {
    child: Child,
    home: Home,
    prelude: String,
}

/// The result of a server that ended.
#[derive(Debug)]
pub struct Exit {
    /// The exit status; -1 after a signal.
    pub code: i32,
    /// Its standard error.
    pub stderr: String,
    /// Its error log.
    pub error_log: String,
}

/// The directory and ports of a server, for tests that start the program themselves.
pub struct Home {
    program: PathBuf,
    dir: PathBuf,
    ports: TestPorts,
    launcher: Vec<String>,
}

impl Home {
    /// A new directory with a filled `www/`, a certificate and an empty `logs/`.
    #[must_use]
    pub fn new(program: &str) -> Self {
        let program = std::env::var_os("BOLIDE_TEST_BINARY").unwrap_or_else(|| program.into());
        let dir = site::temp_dir();
        fs::create_dir(dir.join("logs")).unwrap();
        site::fill(&dir.join("www"));
        certs::make(&dir, "cert", certs::CertKey::Ecdsa, &["localhost"]);
        Self { program: program.into(), dir, ports: TestPorts::claim(), launcher: Vec::new() }
    }

    /// Starts the program by these words in the same process, such as `env NAME=VALUE`.
    #[must_use]
    pub fn launched_by(mut self, words: &[&str]) -> Self {
        self.launcher = words.iter().map(|word| self.expand(word)).collect();
        self
    }

    /// The first word of the program's messages: its name and a colon.
    #[must_use]
    pub fn name(&self) -> &'static str {
        if self.program.to_string_lossy().contains("nginx") { "nginx:" } else { "bolide:" }
    }

    /// The directory, which is also the prefix.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Port number `n`; 0 is for plain HTTP, 1 for TLS and QUIC.
    #[must_use]
    pub fn port(&self, n: usize) -> u16 {
        self.ports.port(n)
    }

    /// Replaces the words that the header of this file lists.
    #[must_use]
    pub fn expand(&self, text: &str) -> String {
        let mut text = text
            .replace("@DIR@", self.dir.to_str().unwrap())
            .replace("@HTTP@", &self.port(0).to_string())
            .replace("@HTTPS@", &self.port(1).to_string())
            .replace("@CERT@", self.dir.join("cert.pem").to_str().unwrap())
            .replace("@KEY@", self.dir.join("cert.key").to_str().unwrap());
        for n in 2..crate::ports::PER_BLOCK {
            text = text.replace(&format!("@P{n}@"), &self.port(n).to_string());
        }
        text
    }

    /// Writes a file into the directory, with words replaced, and returns its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, self.expand(text)).unwrap();
        path
    }

    /// A command that runs the program with this directory as its prefix.
    #[must_use]
    pub fn command(&self, args: &[&str]) -> Command {
        let mut words = self.launcher.iter().map(OsStr::new).chain([self.program.as_os_str()]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).current_dir(&self.dir).arg("-p").arg(&self.dir).args(args);
        command
    }

    /// Runs the program with this prefix to its end.
    #[must_use]
    pub fn run(&self, args: &[&str]) -> ToolRun {
        finish("server", self.command(args), Duration::from_secs(120))
    }

    /// Starts the program with `nginx.conf`.
    fn spawn(&self) -> Child {
        let conf = self.dir.join("nginx.conf");
        let log = File::options().create(true).append(true).open(self.dir.join("stderr")).unwrap();
        let mut command = self.command(&["-c", conf.to_str().unwrap()]);
        // The log until the configuration is read.
        command.args(["-e", self.dir.join("logs/error.log").to_str().unwrap()]);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command.spawn().unwrap_or_else(|e| panic!("{:?}: {e}", self.program))
    }

    /// The text of a file; empty if there is none.
    #[must_use]
    pub fn read(&self, name: &str) -> String {
        let path = self.dir.join(name);
        // Reading a pipe would block for ever.
        let bytes = if path.is_file() { fs::read(path).unwrap_or_default() } else { Vec::new() };
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if std::env::var_os("BOLIDE_TEST_KEEP").is_none() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// Whether the tests run as root, as in a container.
#[must_use]
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

/// The part before `http` in the configurations of [`TestServer::with`].
#[must_use]
pub fn prelude(workers: u32) -> String {
    // As root, nginx would run workers under the account `nobody`; tests need no second account.
    let user = if is_root() { "user root;\n" } else { "" };
    format!(
        "{user}worker_processes {workers};\ndaemon off;\npid @DIR@/logs/pid;\n\
         error_log @DIR@/logs/error.log info;\nevents {{ worker_connections 2048; }}\n"
    )
}

/// The listeners of [`TestServer::site`].
pub const LISTEN: &str = "
    listen 127.0.0.1:@HTTP@;
    listen 127.0.0.1:@HTTPS@ ssl;
    listen 127.0.0.1:@HTTPS@ quic reuseport;
    http2 on; http3 on;
    server_name localhost;
    ssl_certificate @CERT@; ssl_certificate_key @KEY@;
    root @DIR@/www;
";

/// The media types of [`TestServer::with`].
pub const TYPES: &str = "
    default_type application/octet-stream;
    types {
        text/html html htm; text/css css; text/plain txt; application/javascript js;
        image/jpeg jpg; image/svg+xml svg; application/json json;
    }
    access_log @DIR@/logs/access.log;
";

impl Home {
    /// Waits until the other addresses of the configuration listen as well: they follow the first
    /// one. It asks the kernel, because the server would count a connection.
    fn wait_for_listeners(&self) {
        let conf = fs::read_to_string(self.dir().join("nginx.conf")).unwrap_or_default();
        let addresses: Vec<&str> = conf.split([';', '{', '}']).filter_map(stream_address).collect();
        for _ in 0..LOOKS {
            let (open, bound) = (socket_tables::listening(), socket_tables::listening_paths());
            let listens = |address: &&str| match address.strip_prefix("unix:") {
                Some(path) => bound.contains(path),
                None => port(address).is_none_or(|port| open.contains(&port)),
            };
            if addresses.iter().all(listens) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The number of polls of the addresses.
const LOOKS: u32 = 300;

/// The address of a `listen` for streams.
fn stream_address(statement: &str) -> Option<&str> {
    let words: Vec<&str> = statement.split_whitespace().collect();
    let is_stream = words.first() == Some(&"listen") && !words.contains(&"quic");
    words.get(1).filter(|_| is_stream).copied()
}

fn port(address: &str) -> Option<u16> {
    address.rsplit(':').next()?.parse().ok()
}

impl TestServer {
    /// Starts the program with this configuration file and waits until it responds.
    #[must_use]
    pub fn conf(program: &str, full: &str) -> Self {
        Self::start(Home::new(program), full)
    }

    /// Starts it with this `http` block; types and access log are preset.
    #[must_use]
    pub fn with(program: &str, http: &str) -> Self {
        Self::workers(program, 1, http)
    }

    /// [`TestServer::with`] with a number of workers.
    #[must_use]
    pub fn workers(program: &str, workers: u32, http: &str) -> Self {
        let prelude = prelude(workers);
        let mut server =
            Self::start(Home::new(program), &format!("{prelude}http {{{TYPES}{http}\n}}\n"));
        server.prelude = prelude;
        server
    }

    /// Starts it with one `server` on all listeners with these directives.
    #[must_use]
    pub fn site(program: &str, server: &str) -> Self {
        Self::with(program, &format!("server {{{LISTEN}{server}\n}}"))
    }

    /// Starts the program in `home` and waits until its first port responds.
    ///
    /// # Panics It ends instead.
    #[must_use]
    pub fn start(home: Home, full: &str) -> Self {
        home.write("nginx.conf", full);
        let child = home.spawn();
        let mut server = Self { child, home, prelude: String::new() };
        server.wait_ready();
        server
    }

    /// Ends it with a signal and starts it again with the same directory and file.
    pub fn restart(&mut self, signal: &str) {
        self.signal(signal);
        let _ended = self.wait_exit();
        self.start_again();
    }

    /// Starts it again with the same directory and file, after it has ended.
    pub fn start_again(&mut self) {
        self.child = self.home.spawn();
        self.wait_ready();
    }

    fn wait_ready(&mut self) {
        let addr = self.http();
        wait_until("the server to listen", || {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the server ended at once: {status}");
            }
            TcpStream::connect(addr).is_ok()
        });
        self.home.wait_for_listeners();
    }

    /// Writes a new `http` block (see [`TestServer::with`]) and sends HUP.
    pub fn reload(&self, http: &str) {
        self.rewrite(&format!("{}http {{{TYPES}{http}\n}}\n", self.prelude));
        self.signal("HUP");
    }

    /// Writes a new configuration file, without a signal.
    pub fn rewrite(&self, full: &str) {
        self.home.write("nginx.conf", full);
    }

    /// Sends a signal by name.
    pub fn signal(&self, signal: &str) {
        let _quiet = run("kill", ["-s", signal, &self.pid().to_string()]).succeeded();
    }

    /// Sends a signal and waits for the end.
    ///
    /// # Panics It does not end in 30 seconds.
    pub fn stop(mut self, signal: &str) -> Exit {
        self.signal(signal);
        self.wait_exit()
    }

    /// Waits for the end.
    ///
    /// # Panics It does not end in 30 seconds.
    pub fn wait_exit(&mut self) -> Exit {
        let mut status = None;
        wait_until("the server to end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let code = status.and_then(|s| s.code()).unwrap_or(-1);
        Exit { code, stderr: self.home.read("stderr"), error_log: self.error_log() }
    }

    /// Whether the process has ended.
    pub fn has_exited(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its directory, ports and files.
    #[must_use]
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The address for plain HTTP.
    #[must_use]
    pub fn http(&self) -> SocketAddr {
        self.addr(0)
    }

    /// The address for TLS and QUIC.
    #[must_use]
    pub fn https(&self) -> SocketAddr {
        self.addr(1)
    }

    /// The address of port number `n`.
    #[must_use]
    pub fn addr(&self, n: usize) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.home.port(n)))
    }

    /// The file of a path of the site.
    #[must_use]
    pub fn www(&self, name: &str) -> PathBuf {
        self.home.dir.join("www").join(name)
    }

    /// A new plain connection.
    #[must_use]
    pub fn connect(&self) -> H1TestClient {
        H1TestClient::connect(self.http())
    }

    /// `GET path` on a new plain connection.
    pub fn get(&self, path: &str) -> crate::Response {
        self.connect().get(path, "Connection: close\r\n")
    }

    /// The URL of `path` by `proto`.
    #[must_use]
    pub fn url(&self, proto: Proto, path: &str) -> String {
        match proto {
            Proto::H2c => format!("http://localhost:{}{path}", self.home.port(0)),
            _ => format!("https://localhost:{}{path}", self.home.port(1)),
        }
    }

    /// A request with `proto` that trusts this server's certificate.
    #[must_use]
    pub fn curl(&self, proto: Proto) -> Curl {
        Curl::new(proto).trusting(&self.home.dir.join("cert.pem"))
    }

    /// `GET path` by `proto`.
    #[must_use]
    pub fn fetch(&self, proto: Proto, path: &str) -> CurlReply {
        self.curl(proto).get(&self.url(proto, path))
    }

    /// The error log once it is complete: a worker writes its lines at the end of the turn, when a
    /// client may have its response already.
    #[must_use]
    pub fn error_log(&self) -> String {
        let mut log = self.home.read("logs/error.log");
        for _ in 0..40 {
            crate::pause(25);
            let now = self.home.read("logs/error.log");
            if now.len() == log.len() {
                break;
            }
            log = now;
        }
        log
    }

    /// The access log so far.
    #[must_use]
    pub fn access_log(&self) -> String {
        self.home.read("logs/access.log")
    }

    /// Waits until the access log has `lines` lines and returns them.
    #[must_use]
    pub fn access_lines(&self, lines: usize) -> Vec<String> {
        wait_until("lines in the access log", || self.access_log().lines().count() >= lines);
        self.access_log().lines().map(str::to_owned).collect()
    }

    /// CPU time of the process with all of its threads.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        // The program name, in parentheses, may contain anything.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let ticks = fields.split_whitespace().skip(11).take(2);
        // Linux reports CPU time in hundredths of a second (USER_HZ).
        ticks.map(|n| Duration::from_millis(10 * n.parse::<u64>().unwrap_or(0))).sum()
    }

    /// Waits until the process is idle: it uses less than a twentieth of a core for three seconds.
    /// CPU time is its own, so that other processes have no effect.
    ///
    /// # Panics It is not idle within a minute.
    pub fn wait_until_it_rests(&self) {
        let start = Instant::now();
        loop {
            let (before, since) = (self.cpu_time(), Instant::now());
            std::thread::sleep(Duration::from_secs(3));
            let used = self.cpu_time().saturating_sub(before);
            if used * 20 < since.elapsed() {
                return;
            }
            assert!(start.elapsed().as_secs() < 60, "the idle server used {used:?} of 3 seconds");
        }
    }

    /// Resident memory in KiB, the `VmRSS` of this process and its children.
    #[must_use]
    pub fn resident_kib(&self) -> u64 {
        let script = format!(
            "for p in {0} $(cat /proc/{0}/task/*/children); do \
             awk '/^VmRSS/ {{ print $2 }}' /proc/$p/status; done",
            self.pid()
        );
        let done = run("sh", ["-ec", &script]).succeeded();
        done.text().lines().filter_map(|line| line.trim().parse::<u64>().ok()).sum()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            // TERM first, because a killed master process of nginx would leave its workers running.
            let pid = self.child.id().to_string();
            let _ = Command::new("sh").args(["-c", "kill -s TERM \"$0\"", &pid]).status();
            for _ in 0..200 {
                if self.child.try_wait().is_ok_and(|status| status.is_some()) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            let clip = |text: String| {
                let lines: Vec<&str> = text.lines().collect();
                lines[lines.len().saturating_sub(12)..].join("\n")
            };
            let text = format!(
                "--- stderr\n{}\n--- error log\n{}\n---\n",
                clip(self.home.read("stderr")),
                clip(self.error_log())
            );
            let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
        }
    }
}
