//! `memcached_pass` with the real memcached, and with one that the test plays.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};

use bolide_testkit::{TestServer, wait_until};

use crate::http;

/// The real memcached on a port of its own.
struct Memcached {
    child: Child,
    port: u16,
}

impl Memcached {
    fn start() -> Self {
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = free.local_addr().expect("its address").port();
        drop(free);
        let mut command = Command::new("memcached");
        command.args(["-u", "root", "-l", "127.0.0.1", "-U", "0", "-p", &port.to_string()]);
        let child = command.spawn().expect("memcached is installed by scripts/setup.sh test");
        wait_until("memcached", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { child, port }
    }

    fn say(&self, command: &[u8]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("memcached");
        stream.write_all(command).expect("a command");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("a line");
        line
    }

    fn set(&self, key: &str, flags: u32, value: &[u8]) {
        let line = format!("set {key} {flags} 0 {}\r\n", value.len());
        assert_eq!(self.say(&[line.as_bytes(), value, b"\r\n"].concat()), "STORED\r\n");
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Answers each `get` over any connection with `reply`, in which `KEY` stands for the key and
/// `PEER` for the address of the client.
fn play(reply: &'static str) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let peer = stream.peer_addr().expect("a peer").ip().to_string();
                let mut lines = BufReader::new(stream.try_clone().expect("a stream"));
                let mut line = String::new();
                while lines.read_line(&mut line).is_ok_and(|len| len > 0) {
                    let key = line.trim_start_matches("get ").trim_end();
                    let _ = stream
                        .write_all(reply.replace("KEY", key).replace("PEER", &peer).as_bytes());
                    if !reply.ends_with('\n') {
                        return;
                    }
                    line.clear();
                }
            });
        }
    });
    port
}

fn serve(group: &str, more: &str) -> TestServer {
    http(&format!(
        "upstream cache {{ {group} }}
         server {{ listen 127.0.0.1:@HTTP@; default_type text/x-default;
             types {{ text/html html; }} set $memcached_key $uri$is_args$args;
             add_header X-Up \"$upstream_addr $upstream_status\" always;
             location / {{ memcached_pass cache; }} {more} }}"
    ))
}

#[test]
fn a_value_is_the_response_and_a_missing_one_is_not_found() {
    let cache = Memcached::start();
    cache.set("/a.html", 0, b"<p>value</p>");
    cache.set("/sp%20ace?x=1", 0, b"escaped");
    cache.set("/empty", 0, b"");
    let big = vec![b'x'; 700_000];
    cache.set("/big", 0, &big);
    let address = format!("127.0.0.1:{}", cache.port);
    let server = serve(&format!("server {address};"), "");
    let reply = server.get("/a.html");
    assert_eq!((reply.status, reply.text()), (200, "<p>value</p>".to_owned()));
    assert_eq!(reply.header("content-type"), Some("text/html"));
    assert_eq!(reply.header("content-length"), Some("12"));
    assert_eq!(reply.header("x-up"), Some(&*format!("{address} 200")));
    assert_eq!(server.get("/sp%20ace?x=1").text(), "escaped");
    let empty = server.get("/empty");
    assert_eq!((empty.status, empty.text()), (200, String::new()));
    assert_eq!(empty.header("content-type"), Some("text/x-default"));
    assert_eq!(server.get("/big").text().len(), big.len());
    let missing = server.get("/none");
    assert_eq!(missing.status, 404);
    assert_eq!(missing.header("x-up"), Some(&*format!("{address} 404")));
    assert!(missing.text().contains("404 Not Found"), "the server's own page");
    wait_until("the line about the key", || {
        server.error_log().contains("[info] ")
            && server
                .error_log()
                .contains("key: \"/none\" was not found by memcached while reading")
    });
}

#[test]
fn other_methods_and_requests_without_a_key_are_refused() {
    let cache = Memcached::start();
    cache.set("/a", 0, b"value");
    let more = "location /keyless { set $memcached_key ''; memcached_pass cache; }";
    let server = serve(&format!("server 127.0.0.1:{};", cache.port), more);
    let ask = |request: &str| server.connect().send(request).answer();
    let post = ask("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab");
    assert_eq!(post.status, 405);
    assert_eq!(ask("DELETE /a HTTP/1.1\r\nHost: x\r\n\r\n").status, 405);
    let with_body = ask("GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab");
    assert_eq!((with_body.status, with_body.text()), (200, "value".to_owned()));
    let range = ask("GET /a HTTP/1.1\r\nHost: x\r\nRange: bytes=1-2\r\n\r\n");
    assert_eq!((range.status, range.text()), (206, "al".to_owned()));
    assert_eq!(server.get("/keyless").status, 500);
    let line = "the \"$memcached_key\" variable is not set";
    wait_until(line, || server.error_log().contains(line));
}

#[test]
fn a_missing_value_leads_to_the_error_page_and_to_the_next_server() {
    let (first, second) = (Memcached::start(), Memcached::start());
    second.set("/b", 0, b"second");
    let group = format!("server 127.0.0.1:{}; server 127.0.0.1:{};", first.port, second.port);
    let more = "location /page { memcached_pass cache; error_page 404 = @made; }
        location @made { return 200 made; }
        location /b { memcached_pass cache; memcached_next_upstream not_found; }";
    let server = serve(&group, more);
    assert_eq!(server.get("/page").text(), "made");
    for _ in 0..4 {
        assert_eq!(server.get("/b").text(), "second");
    }
}

#[test]
fn a_flag_marks_values_in_gzip() {
    let cache = Memcached::start();
    cache.set("/z", 2, b"\x1f\x8b...");
    cache.set("/plain", 1, b"plain");
    let server = serve(
        &format!("server 127.0.0.1:{};", cache.port),
        "location /z { memcached_pass cache; memcached_gzip_flag 2; }
         location /plain { memcached_pass cache; memcached_gzip_flag 2; }",
    );
    assert_eq!(server.get("/z").header("content-encoding"), Some("gzip"));
    assert_eq!(server.get("/plain").header("content-encoding"), None);
}

#[test]
fn connections_are_reused_after_values_and_after_misses() {
    let cache = Memcached::start();
    cache.set("/a", 0, b"value");
    let server = serve(&format!("server 127.0.0.1:{}; keepalive 4;", cache.port), "");
    for path in ["/a", "/none", "/a", "/none", "/a"] {
        server.get(path);
    }
    let mut stream = TcpStream::connect(("127.0.0.1", cache.port)).expect("memcached");
    stream.write_all(b"stats\r\nquit\r\n").expect("a command");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("statistics");
    let total = text.lines().find_map(|line| line.strip_prefix("STAT total_connections "));
    let total: u32 = total.and_then(|total| total.trim().parse().ok()).expect("a number");
    // The one that waited for the port, the one of `set`, this one, and one of the server for each
    // of its workers; memcached counts one more.
    assert!(total <= 4 + 2, "{total} connections for five requests");
}

#[test]
fn nonsense_is_a_bad_gateway() {
    for (reply, line) in [
        ("ERROR\r\n", "memcached sent invalid response: \"ERROR\""),
        ("VALUE other 0 1\r\nx\r\nEND\r\n", "memcached sent invalid key in response"),
        ("VALUE KEY 0 x\r\n", "memcached sent invalid length in response"),
        ("VALUE KEY 0", "upstream prematurely closed connection while reading response header"),
    ] {
        let server = serve(&format!("server 127.0.0.1:{};", play(reply)), "");
        assert_eq!(server.get("/a").status, 502, "{reply:?}");
        wait_until(line, || server.error_log().contains(line));
    }
    let server = serve(&format!("server 127.0.0.1:{};", play("VALUE KEY 0 1\r\nx\r\nENX\r\n")), "");
    assert_eq!(server.get("/a").text(), "x");
    wait_until("the line", || server.error_log().contains("memcached sent invalid trailer"));
    assert_eq!(serve("server 127.0.0.1:1;", "").get("/a").status, 502);
}

#[test]
fn inner_blocks_override_memcached_bind_and_tries() {
    let port = play("VALUE KEY 0 9\r\nPEER\r\nEND\r\n");
    let more = "memcached_bind 127.0.0.9; memcached_socket_keepalive on; memcached_send_timeout 5s;
        memcached_next_upstream_tries 1; memcached_next_upstream_timeout 9s;
        location /own { memcached_bind 127.0.0.8; memcached_pass cache; }
        location /dead { memcached_pass dead; }
        location /dead/twice { memcached_pass dead; memcached_next_upstream_tries 2; }";
    let group = format!(
        "server 127.0.0.1:{port}; keepalive 0; }}
         upstream dead {{ server 127.0.0.1:1 max_fails=0; server 127.0.0.1:2 max_fails=0;
             server 127.0.0.1:3 max_fails=0;"
    );
    let server = serve(&group, more);
    assert_eq!(server.get("/a").text(), "127.0.0.9");
    assert_eq!(server.get("/own").text(), "127.0.0.8");
    let tried = |path: &str| {
        let reply = server.get(path);
        reply.header("x-up").unwrap_or_default().matches("127.0.0.1:").count()
    };
    assert_eq!((tried("/dead"), tried("/dead/twice")), (1, 2));
}
