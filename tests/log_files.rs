//! Open log files and their lifetime, the configuration that a line uses, many concurrent logs, and
//! a standard error that is not read.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bolide_testkit::load::h2load;
use bolide_testkit::server::{Home, prelude};
use bolide_testkit::{Proto, TestServer, run, wait_until};

use crate::{BOLIDE, http};

const O_NONBLOCK: i32 = 0o4000;

/// The open files of a process, by their current names.
fn open_files(pid: u32) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()).collect()
}

fn is_open(pid: u32, path: &Path) -> bool {
    open_files(pid).iter().any(|open| open == path)
}

#[test]
fn no_process_holds_a_moved_log_after_a_reopen() {
    let server = http(
        "fastcgi_cache_path @DIR@/cache keys_zone=one:1m;
         server { listen 127.0.0.1:@HTTP@; root @DIR@/www; fastcgi_cache one;
         fastcgi_cache_key $uri; location /app { fastcgi_pass 127.0.0.1:@P2@; } }",
    );
    let logs = server.home().dir().join("logs");
    let old = ["access", "error"].map(|name| logs.join(format!("{name}.old")));
    let new = ["access", "error"].map(|name| logs.join(format!("{name}.log")));
    for (old, new) in old.iter().zip(&new) {
        fs::rename(new, old).unwrap();
        assert!(is_open(server.pid(), old), "{}", old.display());
    }
    server.signal("USR1");
    wait_until("the old ones are closed", || {
        old.iter().all(|old| !is_open(server.pid(), old))
            && new.iter().all(|new| is_open(server.pid(), new))
    });
}

/// Writes to a named pipe until it is full.
fn fill(pipe: &mut fs::File) {
    loop {
        match pipe.write(&[b'x'; 1024]) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_standard_error_without_a_reader_blocks_no_request() {
    let home = Home::new(BOLIDE);
    let path = home.dir().join("stderr");
    let _made = run("mkfifo", [path.to_str().unwrap()]).succeeded();
    let mut options = fs::File::options();
    let mut pipe = options.read(true).write(true).custom_flags(O_NONBLOCK).open(&path).unwrap();
    let full = prelude(1).replace("error_log", "error_log stderr info; error_log");
    let conf = format!(
        "{full} http {{ server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www; \
         access_log @DIR@/logs/access.log; }} }}"
    );
    let server = TestServer::start(home, &conf);
    let mut logged = Vec::new();
    wait_until("the start to be logged", || {
        // An empty pipe is no error.
        let _ = pipe.read_to_end(&mut logged);
        String::from_utf8_lossy(&logged).contains("start worker process")
    });
    fill(&mut pipe);
    server.signal("HUP");
    wait_until("the reload", || server.error_log().contains("reconfigured"));
    assert_eq!(server.get("/missing").status, 404);
    server.signal("QUIT");
    wait_until("the end", || {
        server.error_log().contains("[notice]") && {
            server.error_log().trim_end().ends_with(": exit")
        }
    });
}

#[test]
fn six_hundred_logs_lose_nothing_in_one_turn() {
    let place = |n: usize| {
        format!("location /{n}/ {{ access_log logs/{n}.log f buffer=4k; return 200; }}\n")
    };
    let places: String = (0..600).map(place).collect();
    let server = http(&format!(
        "log_format f $uri; server {{ listen 127.0.0.1:@HTTP@; keepalive_requests 9999; {places} }}"
    ));
    let mut client = server.connect();
    for n in 0..600 {
        assert_eq!(client.get(&format!("/{n}/"), "").status, 200);
    }
    server.signal("USR1");
    let read = |n: usize| server.home().read(&format!("logs/{n}.log"));
    wait_until("every line", || (0..600).all(|n| read(n) == format!("/{n}/\n")));
}

#[test]
fn requests_of_one_turn_are_all_logged_however_long_their_lines_are() {
    let server = http("server { listen 127.0.0.1:@HTTP@; http2 on; return 200; }");
    let url = format!("http://{}/", server.http());
    let field = format!("referer: http://a.test/{}", "x".repeat(2000));
    let args = ["-n", "20000", "-c", "50", "-m", "100", "-H", &field];
    h2load(Proto::H2c, &url, &args).expect_flawless();
    let lines = || server.home().read("logs/access.log").lines().count();
    wait_until("every line", || lines() >= 20_000);
    assert_eq!(lines(), 20_000);
    assert!(!server.error_log().contains("were lost"), "{}", server.error_log());
}

#[test]
fn log_lines_of_a_connection_use_its_own_configuration() {
    let block = |port: &str, log: &str| {
        format!(
            "server {{ listen 127.0.0.1:{port} ssl; ssl_certificate @CERT@;
             ssl_certificate_key @KEY@; error_log @DIR@/logs/{log}.log info; }}\n"
        )
    };
    let plain = "server { listen 127.0.0.1:@HTTP@; error_log @DIR@/logs/plain.log info; }\n";
    let server = http(&format!("{}{plain}", block("@HTTPS@", "before")));
    let mut client = TcpStream::connect(server.https()).unwrap();
    // A later client is served, so the first one has been accepted.
    wait_until("a connection", || server.fetch(Proto::H1, "/").status > 0);
    server.reload(&format!("{plain}{}", block("@HTTPS@", "after")));
    wait_until("the reload", || server.error_log().contains("reconfigured"));
    wait_until("the new one", || server.home().dir().join("logs/after.log").exists());
    client.write_all(b"\x16\x03\x01\x00\x05garbage, which is no hello").unwrap();
    let _ = client.read_to_end(&mut Vec::new());
    let at = format!(", server: 127.0.0.1:{}", server.https().port());
    wait_until("the line", || {
        server.home().read("logs/before.log").contains("while SSL handshaking")
    });
    let line = server.home().read("logs/before.log");
    assert!(line.contains(&at), "{line}");
    assert!(!server.home().read("logs/plain.log").contains("SSL"), "a number of another log");
}
