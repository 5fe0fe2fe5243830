//! Service managers (systemd): notifications of start, reload and end, keep-alive messages,
//! sockets.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::Duration;

use bolide_testkit::server::{Home, prelude};
use bolide_testkit::{TestServer, run, tool, wait_until};

use crate::BOLIDE;
use crate::explain::ask;
use crate::watchdog::hold;

const ACTIVATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/activate.py");

/// The manager's end.
struct Manager {
    socket: UnixDatagram,
    name: String,
}

impl Manager {
    fn at(path: &Path) -> Self {
        Self::new(UnixDatagram::bind(path).unwrap(), path.display().to_string())
    }

    fn new(socket: UnixDatagram, name: String) -> Self {
        socket.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        Self { socket, name }
    }

    /// The next message.
    fn next_message(&self) -> String {
        let mut buffer = [0; 4096];
        let len = self.socket.recv(&mut buffer).expect("a message within a minute");
        String::from_utf8_lossy(&buffer[..len]).into_owned()
    }

    /// Whether there is no message; what waits is taken.
    fn is_silent(&self) -> bool {
        self.socket.set_nonblocking(true).unwrap();
        let silent = self.socket.recv(&mut [0; 4096]).is_err();
        self.socket.set_nonblocking(false).unwrap();
        silent
    }

    /// The next message that is no keep-alive message.
    fn news(&self) -> String {
        loop {
            let next_message = self.next_message();
            if next_message != "WATCHDOG=1" {
                return next_message;
            }
        }
    }
}

fn conf(directive: &str) -> String {
    let (directive, prelude) = (directive, prelude(1));
    format!(
        "{directive} {prelude} http {{ server {{ listen 127.0.0.1:@HTTP@; return 200 $pid; }} }}"
    )
}

fn started(home: Home, manager: &Manager, more: &[&str]) -> TestServer {
    let name = format!("NOTIFY_SOCKET={}", manager.name);
    let mut words = vec!["/usr/bin/env", &name];
    words.extend(more);
    TestServer::start(home.launched_by(&words), &conf(""))
}

#[test]
fn the_manager_is_notified_of_start_reload_and_end() {
    let home = Home::new(BOLIDE);
    let manager = Manager::at(&home.dir().join("notify"));
    let server = started(home, &manager, &[]);
    assert_eq!(manager.next_message(), "READY=1\nSTATUS=Serving");
    server.rewrite(&conf("worker_rlimit_core 0;"));
    server.signal("HUP");
    let reloading = manager.next_message();
    let time = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect(&reloading);
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
    let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
    let time = time.parse::<f64>().unwrap() / 1e6;
    assert!(time > 0.0 && time <= uptime + 1.0, "{time} of {uptime}");
    assert_eq!(manager.next_message(), "READY=1\nSTATUS=Serving");

    server.rewrite("what is this;");
    server.signal("HUP");
    assert!(manager.next_message().starts_with("RELOADING=1\n"));
    let next_message = manager.next_message();
    let refused =
        "READY=1\nSTATUS=Serving; the last reload was refused: unknown directive \"what\"";
    assert!(next_message.starts_with(refused), "{next_message}");

    assert_eq!(server.stop("QUIT").code, 0);
    assert!(manager.next_message().starts_with("STOPPING=1"));
    assert!(manager.is_silent());
}

#[test]
fn an_abstract_name_is_an_address_too() {
    let home = Home::new(BOLIDE);
    let name = format!("bolide-notify-{}", home.port(0));
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let socket = UnixDatagram::bind_addr(&address).unwrap();
    let manager = Manager::new(socket, format!("@{name}"));
    let _server = started(home, &manager, &[]);
    assert!(manager.next_message().starts_with("READY=1"));
}

#[test]
fn a_hanging_worker_ends_the_keep_alive_messages() {
    let home = Home::new(BOLIDE);
    let manager = Manager::at(&home.dir().join("notify"));
    let server = started(home, &manager, &["WATCHDOG_USEC=300000"]);
    assert!(manager.next_message().starts_with("READY=1"));
    for _ in 0..3 {
        assert_eq!(manager.next_message(), "WATCHDOG=1");
    }
    let held = hold(&server);
    wait_until("the alert", || server.error_log().contains("stands still"));
    while !manager.is_silent() {}
    bolide_testkit::pause(1000);
    assert!(manager.is_silent(), "no sign of life as long as a worker stands");
    drop(held);
    assert_eq!(manager.next_message(), "WATCHDOG=1");
}

#[test]
fn a_configuration_that_is_not_read_to_its_end_holds_nothing_up() {
    let home = Home::new(BOLIDE);
    let manager = Manager::at(&home.dir().join("notify"));
    let server = started(home, &manager, &["WATCHDOG_USEC=300000"]);
    assert!(manager.next_message().starts_with("READY=1"));
    // A pipe without a writer is as slow as a name server that does not answer.
    let slow = server.home().dir().join("slow.conf");
    let _made = run("mkfifo", [slow.to_str().unwrap()]).succeeded();
    server.rewrite(&conf("include @DIR@/slow.conf;"));
    server.signal("HUP");
    assert!(manager.news().starts_with("RELOADING=1\n"));
    for _ in 0..5 {
        assert_eq!(manager.next_message(), "WATCHDOG=1");
    }
    // Without a process ID, a command would read the configuration itself.
    let pid = server.pid().to_string();
    let text = ask(&server, &["status", "--pid", &pid]).succeeded().text();
    assert!(text.contains("worker"), "{text}");
    let refused = ask(&server, &["reload", "--pid", &pid]);
    assert!(refused.stderr.contains("is being read already"), "{refused}");
    std::fs::write(&slow, "worker_rlimit_core 0;").unwrap();
    assert_eq!(manager.news(), "READY=1\nSTATUS=Serving");
    server.signal("HUP");
    assert!(manager.news().starts_with("RELOADING=1\n"));
    server.signal("HUP");
    assert_eq!(manager.next_message(), "WATCHDOG=1");
    let exit = server.stop("TERM");
    assert_eq!(exit.code, 0, "{exit:?}");
    assert!(exit.error_log.contains("the new configuration is not read: the server ends"));
}

#[test]
fn keep_alive_messages_for_another_process_are_not_sent() {
    let home = Home::new(BOLIDE);
    let manager = Manager::at(&home.dir().join("notify"));
    let server = started(home, &manager, &["WATCHDOG_USEC=3000", "WATCHDOG_PID=1"]);
    assert!(manager.next_message().starts_with("READY=1"));
    bolide_testkit::pause(300);
    assert_eq!(server.stop("TERM").code, 0);
    assert!(manager.next_message().starts_with("STOPPING=1"));
}

#[test]
fn an_upgrade_makes_the_successor_the_main_process() {
    let home = Home::new(BOLIDE);
    let manager = Manager::at(&home.dir().join("notify"));
    let mut server = started(home, &manager, &["WATCHDOG_USEC=3000000"]);
    assert!(manager.news().starts_with("READY=1"));
    server.signal("USR2");
    assert!(manager.news().starts_with("READY=1"), "the successor serves");
    let successor = server.home().read("logs/pid").trim().to_owned();
    assert_ne!(successor, server.pid().to_string());
    server.signal("QUIT");
    assert_eq!(manager.news(), format!("MAINPID={successor}"), "and not that the service stops");
    assert_eq!(server.wait_exit().code, 0);
    while !manager.is_silent() {}
    assert_eq!(manager.next_message(), "WATCHDOG=1", "the successor is watched as well");
    assert_eq!(server.get("/").text(), successor);
    let _sent = run("kill", ["-s", "QUIT", &successor]).succeeded();
    assert!(manager.news().starts_with("STOPPING=1"));
}

/// The words that start a program with sockets for these addresses.
fn activated(home: Home, addresses: &[&str]) -> Home {
    let python = tool("python").display().to_string();
    let mut words = vec![python.as_str(), ACTIVATE];
    words.extend(addresses);
    words.push("--");
    home.launched_by(&words)
}

#[test]
fn sockets_that_the_configuration_names_are_taken_over() {
    let addresses = ["127.0.0.1:@HTTP@", "@DIR@/given", "127.0.0.1:@P3@", "udp:127.0.0.1:@P4@"];
    let home = activated(Home::new(BOLIDE), &addresses);
    let http = "http { server { listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@P2@; \
                listen unix:@DIR@/given; return 200 $pid; } }";
    let full = format!("{} {http}", prelude(2));
    let mut server = TestServer::start(home, &full);
    let log = server.error_log();
    let useless = format!(
        "the service manager passes a socket for 127.0.0.1:{}, which no \"listen\" names; it is \
         closed",
        server.home().port(3)
    );
    assert!(server.home().read("stderr").contains(&useless), "{log}");
    assert!(server.home().read("stderr").contains("passes descriptor 6, which is no listening"));
    assert!(std::net::TcpStream::connect(server.addr(3)).is_err());
    // A path that exists can be listened on only by the socket that was passed.
    let given = server.home().dir().join("given");
    let by_path = |path: &Path| {
        let curl = run(
            "curl",
            [
                "-s".as_ref(),
                "--unix-socket".as_ref(),
                path.as_os_str(),
                "http://localhost/".as_ref(),
            ],
        );
        curl.succeeded().text()
    };
    let pid = server.pid().to_string();
    assert_eq!(by_path(&given), pid);
    for n in [0, 2] {
        let mut client = bolide_testkit::H1TestClient::connect(server.addr(n));
        assert_eq!(client.get("/", "").text(), pid);
    }
    server.signal("HUP");
    wait_until("a reload", || server.error_log().contains("reconfigured"));
    assert_eq!(by_path(&given), pid);

    server.signal("USR2");
    wait_until("a successor", || {
        server.home().read("logs/pid").trim().parse().is_ok_and(|other: u32| other != server.pid())
    });
    server.signal("QUIT");
    assert_eq!(server.wait_exit().code, 0);
    let successor = server.home().read("logs/pid").trim().to_owned();
    assert_eq!((server.get("/").text(), by_path(&given)), (successor.clone(), successor.clone()));
    let _sent = run("kill", ["-s", "QUIT", &successor]).succeeded();
    wait_until("its end", || std::fs::metadata(format!("/proc/{successor}")).is_err());
    assert!(given.exists(), "the name belongs to the service manager");
}

#[test]
fn sockets_for_another_process_are_left_alone() {
    let home = Home::new(BOLIDE).launched_by(&["/usr/bin/env", "LISTEN_FDS=4", "LISTEN_PID=1"]);
    let server = TestServer::start(home, &conf(""));
    assert_eq!(server.get("/").text(), server.pid().to_string());
    assert!(!server.home().read("stderr").contains("service manager"));
}
