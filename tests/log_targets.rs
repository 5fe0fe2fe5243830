//! Access logs other than plain files: buffers, gzip, variable names, syslog, slow readers, full
//! disks; and that a reload or signal loses no line.

use std::fs;
use std::io::Read;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{Duration, Instant};

use bolide_testkit::server::Home;
use bolide_testkit::{TestServer, run, wait_until};

use crate::{BOLIDE, http};

/// A server with these locations, and `$uri` and status as the format `f`.
fn logging(locations: &str) -> TestServer {
    http(&format!(
        "log_format f '$uri $status'; access_log off;
         server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www; {locations} }}"
    ))
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A syslog server on UDP.
fn receiver(address: &str) -> (UdpSocket, String) {
    let socket = UdpSocket::bind(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let at = socket.local_addr().unwrap().to_string();
    (socket, at)
}

fn datagram(socket: &UdpSocket) -> String {
    let mut buffer = [0; 65536];
    let n = socket.recv(&mut buffer).unwrap();
    text_of(&buffer[..n])
}

/// The message without its time, whose form is checked.
fn timeless(message: &str) -> String {
    let (head, rest) = message.split_once('>').unwrap();
    let (time, rest) = rest.split_at(15);
    let dir = bolide_testkit::site::temp_dir();
    fs::write(dir.join("time"), time).unwrap();
    let form = "(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ 1-3][0-9] \
                [0-2][0-9]:[0-5][0-9]:[0-6][0-9]";
    let done = run("grep", ["-qxE", form, dir.join("time").to_str().unwrap()]);
    fs::remove_dir_all(&dir).unwrap();
    assert_eq!(done.code, 0, "no time of syslog: {time}");
    format!("{head}>{rest}")
}

fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_ascii_lowercase()
}

#[test]
fn syslog_messages_are_nginxs_over_udp_and_unix_sockets() {
    let (v4, at4) = receiver("127.0.0.1:0");
    let (v6, at6) = receiver("[::1]:0");
    let dir = bolide_testkit::site::temp_dir();
    let path = dir.join("log.sock");
    let unix = UnixDatagram::bind(&path).unwrap();
    unix.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let path = path.display();
    let server = logging(&format!(
        "location /a {{ access_log syslog:server={at4} f; return 200; }}
         location /b {{ return 200; access_log syslog:server={at6},nohostname,tag=six_6,\
            severity=warn,facility=local3 f; }}
         location /c {{ access_log syslog:server=unix:{path},tag= f; return 200; }}
         location /d {{ access_log syslog:server={at4},facility=kern,severity=emerg f if=$arg_l;
            access_log syslog:server={at4},tag=two f; return 200; }}"
    ));
    let host = host();
    server.get("/a");
    assert_eq!(timeless(&datagram(&v4)), format!("<190> {host} nginx: /a 200"));
    server.get("/b");
    assert_eq!(timeless(&datagram(&v6)), "<156> six_6: /b 200");
    server.get("/c");
    let mut buffer = [0; 1000];
    let n = unix.recv(&mut buffer).unwrap();
    assert_eq!(timeless(&text_of(&buffer[..n])), format!("<190> {host} : /c 200"));
    server.get("/d");
    server.get("/d?l=1");
    let mut all: Vec<String> = (0..3).map(|_| timeless(&datagram(&v4))).collect();
    all.sort();
    let two = format!("<190> {host} two: /d 200");
    assert_eq!(all, [format!("<0> {host} nginx: /d 200"), two.clone(), two]);
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn error_logs_go_to_syslog_with_their_own_severity() {
    let (socket, at) = receiver("127.0.0.1:0");
    let server = logging(&format!(
        "location /e {{ error_log syslog:server={at},facility=user,tag=e,nohostname error; }}
         location /w {{ rewrite_log on; rewrite ^ /hello.txt break;
            error_log syslog:server={at},severity=emerg,nohostname notice; }}"
    ));
    server.get("/e/x");
    let received = timeless(&datagram(&socket));
    let dir = server.home().dir().display();
    assert!(received.starts_with("<11> e: ") && received.contains(" [error] "), "{received}");
    let end = "host: \"localhost\"";
    let file = format!("open() \"{dir}/www/e/x\" failed (2: No such file or directory), client: ");
    assert!(received.contains(&file) && received.ends_with(end), "{received}");
    server.get("/w");
    let received = timeless(&datagram(&socket));
    assert!(
        received.starts_with("<189> nginx: ") && received.contains("\"^\" matches \"/w\""),
        "{received}"
    );
}

#[test]
fn an_unreachable_syslog_server_is_reported_and_tried_again() {
    let dir = bolide_testkit::site::temp_dir();
    let path = dir.join("log.sock");
    let at = path.display();
    let server = logging(&format!(
        "location / {{ access_log syslog:server=unix:{at},nohostname f; return 200; }}"
    ));
    server.get("/one");
    let wanted = format!(
        "connect() failed (2: No such file or directory) while logging to syslog, \
         server: unix:{at}"
    );
    wait_until("the complaint", || server.error_log().contains(&wanted));
    let unix = UnixDatagram::bind(&path).unwrap();
    unix.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut buffer = [0; 1000];
    server.get("/two");
    let n = unix.recv(&mut buffer).unwrap();
    assert!(text_of(&buffer[..n]).ends_with(" nginx: /two 200"));
    // Another socket replaces it: the sender opens it again.
    drop(unix);
    fs::remove_file(&path).unwrap();
    let unix = UnixDatagram::bind(&path).unwrap();
    unix.set_nonblocking(true).unwrap();
    wait_until("a line at the new one", || {
        server.get("/three");
        unix.recv(&mut buffer).is_ok_and(|n| text_of(&buffer[..n]).ends_with("/three 200"))
    });
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_slow_syslog_server_blocks_no_request_and_loses_no_line() {
    let dir = bolide_testkit::site::temp_dir();
    let path = dir.join("log.sock");
    let unix = UnixDatagram::bind(&path).unwrap();
    unix.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let at = path.display();
    let server = logging(&format!(
        "location / {{ access_log syslog:server=unix:{at},nohostname f; return 200; }}"
    ));
    let mut client = server.connect();
    for number in 0..500 {
        assert_eq!(client.get(&format!("/{number}"), "").status, 200);
    }
    let mut buffer = [0; 1000];
    for number in 0..500 {
        let n = unix.recv(&mut buffer).unwrap();
        let line = text_of(&buffer[..n]);
        assert!(line.ends_with(&format!(" nginx: /{number} 200")), "{number}: {line}");
    }
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_buffer_leaves_when_the_next_line_does_not_fit() {
    let server = logging(
        "location / { access_log @DIR@/logs/b.log f buffer=20; return 200; }
         location /too/ { access_log @DIR@/logs/b.log f; return 200; }",
    );
    let read = || server.home().read("logs/b.log");
    let mut client = server.connect();
    // Nine bytes each: two fit, and the third flushes the buffer.
    for path in ["/aaa", "/bbb"] {
        client.get(path, "");
    }
    client.get("/missing/but/logged", "");
    wait_until("the buffer", || !read().is_empty());
    assert_eq!(read(), "/aaa 200\n/bbb 200\n/missing/but/logged 200\n", "the long one is not held");
    client.get("/ccc", "");
    client.get("/too/", "");
    client.get("/ddd", "");
    wait_until("the buffer again", || read().ends_with("/too/ 200\n"));
    assert!(!read().contains("/ddd"), "a log without the word is gathered with the other");
    let home = server.home().dir().to_path_buf();
    let copy = home.join("logs/b.log");
    let kept = home.with_extension("kept");
    fs::hard_link(&copy, &kept).unwrap();
    assert_eq!(server.stop("QUIT").code, 0);
    assert!(fs::read_to_string(&kept).unwrap().ends_with("/ddd 200\n"), "nothing is lost at quit");
    fs::remove_file(&kept).unwrap();
}

#[test]
fn gathered_lines_leave_after_a_time() {
    let server = logging(
        "location / { access_log @DIR@/logs/b.log f buffer=1m flush=50ms; return 200; }
         location /never { access_log @DIR@/logs/n.log f buffer=1m; return 200; }",
    );
    server.get("/never");
    server.get("/soon");
    wait_until("the line", || server.home().read("logs/b.log") == "/soon 200\n");
    assert_eq!(server.home().read("logs/n.log"), "");
}

#[test]
fn a_gzipped_log_is_one_member_per_write_and_follows_usr1() {
    let server = logging(
        "location / { access_log @DIR@/logs/a.gz f gzip=9 buffer=100 flush=20ms; return 200; }",
    );
    let logs = server.home().dir().join("logs");
    let unpacked = |name: &str| run("gzip", ["-dc", logs.join(name).to_str().unwrap()]).text();
    let mut client = server.connect();
    let mut wanted = String::new();
    for number in 0..100 {
        client.get(&format!("/{number}"), "");
        wanted.push_str(&format!("/{number} 200\n"));
    }
    wait_until("all lines", || fs::metadata(logs.join("a.gz")).is_ok_and(|file| file.len() > 0));
    wait_until("the last line", || unpacked("a.gz") == wanted);
    let bytes = fs::read(logs.join("a.gz")).unwrap();
    let members = bytes.windows(3).filter(|magic| magic == b"\x1f\x8b\x08").count();
    assert!(members > 5, "{members}");
    fs::rename(logs.join("a.gz"), logs.join("old.gz")).unwrap();
    client.get("/before", "");
    server.signal("USR1");
    wait_until("the new file", || logs.join("a.gz").exists());
    wanted.push_str("/before 200\n");
    // A worker may get the signal after the file exists.
    wait_until("a line in it", || {
        client.get("/after", "");
        wanted.push_str("/after 200\n");
        unpacked("a.gz").contains("/after")
    });
    wait_until("all of them, once", || unpacked("old.gz") + &unpacked("a.gz") == wanted);
}

#[test]
fn names_with_variables_make_files_for_sites_that_exist() {
    let server = logging(
        "location / { access_log logs/v-$arg_a.log f; return 200; }
         location /gone { root @DIR@/none; access_log logs/v-$arg_a.log f; return 200; }
         location /file { root @DIR@/www/hello.txt; access_log logs/v-$arg_a.log f; return 200; }",
    );
    let mut client = server.connect();
    for path in ["/?a=x", "/?a=x", "/?a=", "/gone?a=y", "/file?a=z", "/?a=v/w"] {
        assert_eq!(client.get(path, "").status, 200);
    }
    let dir = server.home().dir().display().to_string();
    for (level, text, path) in [
        ("error", format!("testing \"{dir}/none\" existence failed (2: No such"), "/gone?a=y"),
        ("error", format!("testing \"{dir}/www/hello.txt\" existence failed (20: "), "/file?a=z"),
        ("crit", format!("open() \"{dir}/logs/v-v/w.log\" failed (2: No such file"), "/?a=v/w"),
    ] {
        let context = format!(
            ") while logging request, client: 127.0.0.1, server: , \
             request: \"GET {path} HTTP/1.1\", host: \"localhost\""
        );
        wait_until(&text, || {
            let log = server.error_log();
            let line = log.lines().find(|line| line.contains(&text)).unwrap_or_default();
            line.contains(&format!("[{level}]")) && line.ends_with(&context)
        });
    }
    let logs = server.home().dir().join("logs");
    assert_eq!(server.home().read("logs/v-x.log"), "/ 200\n/ 200\n");
    assert_eq!(server.home().read("logs/v-.log"), "/ 200\n");
    assert!(!logs.join("v-y.log").exists() && !logs.join("v-z.log").exists());
    fs::rename(logs.join("v-x.log"), logs.join("v-old.log")).unwrap();
    client.get("/again?a=x", "");
    wait_until("a new file at once", || server.home().read("logs/v-x.log") == "/again 200\n");
}

#[test]
fn files_with_variable_names_stay_open_where_they_may() {
    let server = logging(
        "location / { open_log_file_cache max=10 inactive=1h valid=1h;
            access_log logs/v-$arg_a.log f; return 200;
            location /off/ { open_log_file_cache off; access_log logs/v-$arg_a.log f;
                return 200; } }
         location /twice { open_log_file_cache max=10 min_uses=2 inactive=1h valid=1h;
            access_log logs/v-$arg_a.log f; return 200; }",
    );
    let mut client = server.connect();
    let logs = server.home().dir().join("logs");
    let log = |name: &str| server.home().read(&format!("logs/v-{name}.log"));
    for name in ["a", "b"] {
        client.get(&format!("/?a={name}"), "");
        wait_until("a file", || log(name) == "/ 200\n");
        fs::rename(logs.join(format!("v-{name}.log")), logs.join(format!("old-{name}"))).unwrap();
    }
    client.get("/still?a=a", "");
    wait_until("the same file", || server.home().read("logs/old-a").ends_with("/still 200\n"));
    client.get("/off/?a=c", "");
    wait_until("a third file", || log("c") == "/off/ 200\n");
    fs::rename(logs.join("v-c.log"), logs.join("old-c")).unwrap();
    client.get("/off/?a=c", "");
    wait_until("a new file", || log("c") == "/off/ 200\n");
    // The first use leaves it closed, the second one keeps it open.
    for times in 1..=2 {
        client.get("/twice?a=d", "");
        wait_until("a file", || log("d") == "/twice 200\n");
        fs::rename(logs.join("v-d.log"), logs.join(format!("old-d{times}"))).unwrap();
    }
    client.get("/twice?a=d", "");
    wait_until("the same file", || server.home().read("logs/old-d2").lines().count() == 2);
    server.signal("USR1");
    wait_until("a new file", || {
        client.get("/new?a=b", "");
        logs.join("v-b.log").exists()
    });
}

#[test]
fn a_file_that_means_another_one_is_found_when_it_is_looked_at() {
    let server = logging(
        "location / { open_log_file_cache max=1 inactive=1h valid=0;
            access_log logs/v-$arg_a.log f; return 200; }",
    );
    let logs = server.home().dir().join("logs");
    let mut client = server.connect();
    client.get("/one?a=a", "");
    wait_until("a file", || server.home().read("logs/v-a.log") == "/one 200\n");
    fs::rename(logs.join("v-a.log"), logs.join("old")).unwrap();
    fs::write(logs.join("v-a.log"), "").unwrap();
    wait_until("a line in the other file", || {
        client.get("/two?a=a", "");
        server.home().read("logs/v-a.log").contains("/two 200\n")
    });
    // Only one may stay open.
    client.get("/?a=b", "");
    fs::rename(logs.join("v-a.log"), logs.join("old2")).unwrap();
    client.get("/three?a=a", "");
    wait_until("a new file", || server.home().read("logs/v-a.log") == "/three 200\n");
}

#[test]
fn requests_that_outlive_their_configuration_use_its_logs() {
    let body = |name: &str| {
        format!(
            "log_format f '$uri $status'; server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www;
             access_log logs/{name}.log f buffer=1m; limit_rate 400k; }}"
        )
    };
    let server = http(&body("before"));
    let size = fs::metadata(server.www("big.bin")).unwrap().len();
    let mut slow = server.connect();
    slow.send("GET /big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    slow.take(1000).unwrap();
    server.get("/hello.txt");
    server.reload(&body("after"));
    wait_until("the new log", || server.home().dir().join("logs/after.log").exists());
    wait_until("what was gathered", || server.home().read("logs/before.log") == "/hello.txt 200\n");
    assert!(slow.to_end().unwrap().len() as u64 + 1000 > size);
    let home = server.home().dir().to_path_buf();
    let kept = home.with_extension("kept");
    fs::hard_link(home.join("logs/before.log"), &kept).unwrap();
    assert_eq!(server.stop("QUIT").code, 0);
    let text = fs::read_to_string(&kept).unwrap();
    fs::remove_file(&kept).unwrap();
    assert_eq!(text, "/hello.txt 200\n/big.bin 200\n");
}

#[test]
fn a_log_that_cannot_be_opened_again_stays_and_the_others_move() {
    let home = Home::new(BOLIDE);
    let logs = home.dir().join("logs");
    fs::create_dir_all(logs.join("sub")).unwrap();
    let conf = format!(
        "{} http {{ log_format f '$uri'; server {{ listen 127.0.0.1:@HTTP@; return 200;
         access_log logs/sub/a.log f; access_log logs/b.log f; }} }}",
        bolide_testkit::server::prelude(1)
    );
    let server = TestServer::start(home, &conf);
    let mut client = server.connect();
    client.get("/one", "");
    wait_until("lines", || server.home().read("logs/b.log") == "/one\n");
    fs::rename(logs.join("sub"), logs.join("moved")).unwrap();
    fs::rename(logs.join("b.log"), logs.join("old")).unwrap();
    server.signal("USR1");
    wait_until("the new file", || logs.join("b.log").exists());
    let text = format!("open() \"{}/sub/a.log\" failed (2: No such", logs.display());
    wait_until("the complaint", || server.error_log().contains(&text));
    let mut wanted = String::from("/one\n");
    // A worker may get the signal after the file exists.
    wait_until("lines again", || {
        client.get("/two", "");
        wanted.push_str("/two\n");
        server.home().read("logs/b.log").starts_with("/two\n")
    });
    wait_until("the old one", || server.home().read("logs/moved/a.log") == wanted);
}

#[test]
fn a_full_disk_is_reported_once() {
    let server = logging("location / { access_log /dev/full f; return 200; }");
    let mut client = server.connect();
    for _ in 0..50 {
        assert_eq!(client.get("/", "").status, 200);
    }
    let text = "write() to \"/dev/full\" failed (28: No space left on device)";
    wait_until("the complaint", || server.error_log().contains(text));
    let log = server.error_log();
    assert_eq!(log.matches(text).count(), 1, "{log}");
    assert!(log.contains("[alert] "), "{log}");
    assert_eq!(server.stop("QUIT").code, 0);
}

/// Reads a named pipe until `lines` lines have come.
fn read_pipe(path: &Path, lines: usize) -> String {
    let mut text = Vec::new();
    let mut pipe = fs::File::open(path).unwrap();
    let mut buffer = vec![0; 65536];
    while text.iter().filter(|byte| **byte == b'\n').count() < lines {
        let n = pipe.read(&mut buffer).unwrap();
        assert!(n > 0, "the pipe ended");
        text.extend_from_slice(&buffer[..n]);
    }
    text_of(&text)
}

#[test]
fn a_pipe_without_a_reader_blocks_no_request() {
    let home = Home::new(BOLIDE);
    let pipe = home.dir().join("pipe");
    let _made = run("mkfifo", [pipe.to_str().unwrap()]).succeeded();
    let conf = format!(
        "{} http {{ log_format f '$uri $status'; server {{ listen 127.0.0.1:@HTTP@;
         access_log @DIR@/pipe f; keepalive_requests 9999; return 200; }} }}",
        bolide_testkit::server::prelude(1)
    );
    let server = TestServer::start(home, &conf);
    let mut client = server.connect();
    let long = "x".repeat(200);
    let start = Instant::now();
    for number in 0..2000 {
        assert_eq!(client.get(&format!("/{number}/{long}"), "").status, 200);
    }
    assert!(start.elapsed() < Duration::from_secs(60), "the pipe takes a sixth of that");
    let text = read_pipe(&pipe, 2000);
    for (number, line) in text.lines().enumerate() {
        assert_eq!(line, format!("/{number}/{long} 200"));
    }
    assert_eq!(server.stop("QUIT").code, 0);
}
