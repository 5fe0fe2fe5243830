//! `uwsgi_pass` and `scgi_pass` with the real uWSGI, which speaks both, and with one that the test
//! plays.

use std::io::{Error, ErrorKind, Result};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use bolide_testkit::origin::{TestPeer, TestUpstream, UpstreamRequest};
use bolide_testkit::server::{Home, LISTEN};
use bolide_testkit::{TestServer, tools, wait_until};

use crate::{BOLIDE, http};

const UWSGI_PARAMS: &str = concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/uwsgi_params;");
const SCGI_PARAMS: &str = concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/scgi_params;");

/// The two families.
const FAMILIES: [&str; 2] = ["uwsgi", "scgi"];

/// uWSGI with a socket for each protocol.
struct Uwsgi {
    child: Child,
    home: Home,
}

impl Uwsgi {
    fn start() -> Self {
        let home = Home::new(BOLIDE);
        let app = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/uwsgi/app.py");
        let socket = |name: &str| home.dir().join(name).display().to_string();
        let child = Command::new(tools::tool("uwsgi"))
            .args(["--uwsgi-socket", &socket("uwsgi"), "--scgi-socket", &socket("scgi")])
            .args(["--chmod-socket=666", "--wsgi-file", app, "--need-app", "--disable-logging"])
            .args(["--buffer-size", "65535"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("uwsgi starts");
        let started = Self { child, home };
        for family in FAMILIES {
            wait_until("uWSGI", || UnixStream::connect(started.socket(family)).is_ok());
        }
        started
    }

    fn socket(&self, family: &str) -> PathBuf {
        self.home.dir().join(family)
    }

    /// A server that passes to it over `family`.
    fn serve(&self, family: &str, more: &str) -> TestServer {
        let params = if family == "uwsgi" { UWSGI_PARAMS } else { SCGI_PARAMS };
        let at = self.socket(family);
        http(&format!(
            "client_max_body_size 0; {more} server {{ {LISTEN} location / {{
                {family}_pass unix:{}; {params}
                {family}_param PATH_INFO $document_uri; }} }}",
            at.display()
        ))
    }
}

impl Drop for Uwsgi {
    fn drop(&mut self) {
        let _gone = (self.child.kill(), self.child.wait());
    }
}

#[test]
fn the_real_application_gets_the_request_and_its_response_arrives() {
    let app = Uwsgi::start();
    for family in FAMILIES {
        let server = app.serve(family, "");
        let reply = server.connect().get("/a/b?c=d", "X-Own: me\r\nCookie: a=1\r\nCookie: b=2\r\n");
        assert_eq!((reply.status, reply.header("x-app")), (200, Some("uWSGI")), "{family}");
        let text = reply.text();
        for line in [
            "REQUEST_METHOD=GET",
            "QUERY_STRING=c=d",
            "REQUEST_URI=/a/b?c=d",
            "PATH_INFO=/a/b",
            "HTTP_X_OWN=me",
            "HTTP_COOKIE=a=1; b=2",
            "SERVER_PROTOCOL=HTTP/1.1",
            "body of 0: d41d8cd98f00b204e9800998ecf8427e",
        ] {
            assert!(text.lines().any(|has| has == line), "{family}: {line} in\n{text}");
        }
        assert_eq!(server.get("/missing").status, 404, "{family}");
        let head = server.connect().send("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n").answer_to("HEAD");
        assert_eq!((head.status, head.text()), (200, String::new()), "{family}");
    }
}

#[test]
fn large_bodies_go_and_come_whole_whether_their_length_is_known_or_not() {
    let app = Uwsgi::start();
    let body = "0123456789abcdef".repeat(40_000);
    for family in FAMILIES {
        for buffering in ["on", "off"] {
            let more = format!("{family}_request_buffering {buffering};");
            let server = app.serve(family, &more);
            let sized = format!(
                "POST /up HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let chunks: String = body
                .as_bytes()
                .chunks(9999)
                .map(|piece| format!("{:x}\r\n{}\r\n", piece.len(), String::from_utf8_lossy(piece)))
                .collect();
            let chunked = format!(
                "POST /up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
                 {chunks}0\r\n\r\n"
            );
            let sums: Vec<String> = [sized, chunked]
                .iter()
                .map(|request| {
                    let text = server.connect().send(request).answer().text();
                    text.lines().last().unwrap_or_default().to_owned()
                })
                .collect();
            assert_eq!(sums[0], sums[1], "{family} {buffering}");
            assert!(sums[0].starts_with("body of 640000: "), "{family} {buffering}: {}", sums[0]);
        }
        let server = app.serve(family, "");
        let large = server.get("/large").text();
        assert_eq!((large.len(), &large[large.len() - 8..]), (3 << 20, "0393215\n"), "{family}");
    }
}

#[test]
fn a_response_that_the_application_leaves_is_an_error() {
    let app = Uwsgi::start();
    for family in FAMILIES {
        let server = app.serve(family, "");
        let said = server.connect().send("GET /dies HTTP/1.1\r\nHost: x\r\n\r\n").to_end();
        assert!(said.is_ok_and(|bytes| bytes.ends_with(b"half")), "{family}");
        let line = "upstream prematurely closed connection while reading upstream";
        let whose = format!("upstream: \"{family}://unix:{}:\"", app.socket(family).display());
        wait_until(line, || {
            server.error_log().lines().any(|has| has.contains(line) && has.contains(&whose))
        });
    }
}

/// Reads one request of either protocol and records its head, escaped, and its body.
fn read(peer: &mut TestPeer) -> Result<UpstreamRequest> {
    let mut head = peer.take(4)?;
    let mut body_len = 0;
    if head[0].is_ascii_digit() {
        while !head.contains(&b':') {
            head.extend(peer.take(1)?);
        }
        let at = head.iter().position(|byte| *byte == b':').unwrap_or_default();
        let size: usize = String::from_utf8_lossy(&head[..at]).parse().map_err(|_| bad())?;
        let behind = head.len() - at - 1;
        head.extend(peer.take(size + 1 - behind)?);
        let length = head[at + 1..].split(|byte| *byte == 0).nth(1).unwrap_or_default();
        body_len = String::from_utf8_lossy(length).parse().map_err(|_| bad())?;
    } else {
        let size = usize::from(u16::from_le_bytes([head[1], head[2]]));
        head.extend(peer.take(size)?);
        let mark = b"CONTENT_LENGTH\x01\0";
        if let Some(at) = head.windows(mark.len()).position(|bytes| bytes == mark) {
            body_len = usize::from(head[at + mark.len()] - b'0');
        }
    }
    let body = peer.take(body_len)?;
    let request = UpstreamRequest { head: head.escape_ascii().to_string(), body, connection: 0 };
    peer.remember(request.clone());
    Ok(request)
}

fn bad() -> Error {
    Error::from(ErrorKind::InvalidData)
}

/// An application that says `reply` to each request, and then closes.
fn play(reply: &'static [u8]) -> TestUpstream {
    TestUpstream::scripted(move |peer| {
        let _left = read(peer).and_then(|_| peer.send(reply));
    })
}

const HELLO: &[u8] = b"Status: 200 Fine\r\nContent-Type: text/plain\r\n\r\nhello";

#[test]
fn the_bytes_of_a_request_are_those_that_nginx_sends() {
    let app = play(HELLO);
    let own =
        "_param E $arg_e; @_param F $arg_f if_not_empty; @_param CONTENT_LENGTH $content_length;
        @_param HTTP_X_OWN own;";
    let params = |family: &str| format!("@{own}").replace('@', family);
    let at = app.address();
    let server = http(&format!(
        "server {{ {LISTEN} {} {}
            location / {{ uwsgi_pass {at}; }}
            location /m/ {{ uwsgi_pass uwsgi://{at}; uwsgi_modifier1 30; uwsgi_modifier2 255;
                uwsgi_string 'a$arg_e'; uwsgi_pass_request_headers off; }}
            location /s/ {{ scgi_pass {at}; }}
            location /n/ {{ scgi_pass {at}; scgi_pass_request_body off; }} }}",
        params("uwsgi"),
        params("scgi"),
    ));
    let sent = |line: &str, fields: &str| {
        let reply =
            server.connect().send(format!("{line} HTTP/1.1\r\nHost: h\r\n{fields}")).answer();
        assert_eq!((reply.status, reply.text()), (200, "hello".to_owned()), "{line}");
        let last = app.all().pop().expect("a request");
        (last.head, String::from_utf8_lossy(&last.body).into_owned())
    };
    let escaped = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let fields = "X-Own: c\r\nA: 1\r\na: 2\r\n\r\n";
    let vars = b"\0E\0\0\x01\0E\x01\0x\x0e\0CONTENT_LENGTH\0\0\x0a\0HTTP_X_OWN\x03\0own\
        \x09\0HTTP_HOST\x01\0h\x06\0HTTP_A\x04\x001, 2";
    assert_eq!(sent("GET /?e=x", fields), (escaped(vars), String::new()));
    let vars = b"\x1eD\0\xff\x01\0E\0\0\x01\0F\x01\0y\x0e\0CONTENT_LENGTH\x01\x003\
        \x0a\0HTTP_X_OWN\x03\0own\x09\0HTTP_HOST\x01\0ha$arg_e";
    let post = "Content-Length: 3\r\n\r\nabc";
    assert_eq!(sent("POST /m/?f=y", post), (escaped(vars), "abc".to_owned()));
    let headers =
        b"86:CONTENT_LENGTH\x003\0E\0\0CONTENT_LENGTH\x003\0HTTP_X_OWN\0own\0HTTP_HOST\0h\
        \0HTTP_CONTENT_LENGTH\x003\0,";
    assert_eq!(sent("POST /s/", post), (escaped(headers), "abc".to_owned()));
    let (head, body) = sent("POST /n/", post);
    assert!(head.starts_with("69:CONTENT_LENGTH\\x000\\x00E"), "{head}");
    assert!(!head.contains("\\x00CONTENT_LENGTH"), "one length, of what is sent: {head}");
    assert_eq!(body, "");
}

#[test]
fn a_status_is_a_line_or_a_field_and_only_uwsgi_shows_the_field() {
    for family in FAMILIES {
        let fields = play(b"Status: 404 Nope\r\nX-A: 1\r\n\r\nhello");
        let line = play(b"HTTP/1.0 404 Nope\r\nX-A: 1\r\n\r\nhello");
        let server = http(&format!(
            "server {{ {LISTEN} location /f {{ {family}_pass {}; }}
                 location /l {{ {family}_pass {}; }} }}",
            fields.address(),
            line.address()
        ));
        for path in ["/f", "/l"] {
            let reply = server.get(path);
            assert_eq!((reply.status, reply.text()), (404, "hello".to_owned()), "{family} {path}");
            assert_eq!(reply.header("x-a"), Some("1"));
            let shown = (family == "uwsgi" && path == "/f").then_some("404 Nope");
            assert_eq!(reply.header("status"), shown, "{family} {path}");
        }
    }
}

#[test]
fn failures_are_told_in_nginx_s_words_and_lead_to_the_next_server() {
    let said: [(&[u8], &str); 5] = [
        (b"", "upstream prematurely closed connection while reading response header"),
        (
            b"HTTP/1.1 200 OK\r\nX-A",
            "upstream prematurely closed connection while reading response",
        ),
        (
            b"X A: b\r\n\r\n",
            "upstream sent invalid header: \"X\\x20...\" while reading response header",
        ),
        (
            b"Status: abc\r\n\r\n",
            "upstream sent invalid status \"abc\" while reading response header",
        ),
        (&[b'x'; 5000], "upstream sent too big header while reading response header from upstream"),
    ];
    let good = play(HELLO);
    for family in FAMILIES {
        for (bytes, line) in said {
            let app = play(bytes);
            let server = http(&format!(
                "upstream two {{ server {}; server {} backup; }}
                 server {{ {LISTEN} location / {{ {family}_pass {}; }}
                     location /next {{ {family}_pass two;
                         {family}_next_upstream error invalid_header; }} }}",
                app.address(),
                good.address(),
                app.address()
            ));
            assert_eq!(server.get("/").status, 502, "{family}: {line}");
            assert_eq!(server.get("/next").text(), "hello", "{family}: {line}");
            let whose = format!("upstream: \"{family}://{}\"", app.address());
            wait_until(line, || {
                server.error_log().lines().any(|has| has.contains(line) && has.contains(&whose))
            });
        }
    }
}

#[test]
fn a_uwsgi_request_beyond_its_packet_is_an_error_and_scgi_has_no_such_limit() {
    let app = play(HELLO);
    let server = http(&format!(
        "large_client_header_buffers 8 64k;
         server {{ {LISTEN} location / {{ uwsgi_pass {0}; }} location /s {{ scgi_pass {0}; }} }}",
        app.address()
    ));
    let fields = |size: usize| {
        let value = "x".repeat(size);
        format!("A: {value}\r\nB: {value}\r\nC: {value}\r\n")
    };
    assert_eq!(server.connect().get("/", &fields(20_000)).status, 200);
    assert_eq!(server.connect().get("/", &fields(30_000)).status, 500);
    assert_eq!(server.connect().get("/s", &fields(30_000)).status, 200);
    let line = "[alert] ";
    let text = "uwsgi request is too big: 900";
    wait_until(text, || {
        server.error_log().lines().any(|has| has.contains(line) && has.contains(text))
    });
}

#[test]
fn an_application_may_switch_protocols_for_a_client_that_asks() {
    let app = TestUpstream::scripted(|peer| {
        let _left = read(peer).and_then(|request| {
            assert!(request.head.contains("HTTP_UPGRADE"), "{}", request.head);
            peer.send("HTTP/1.1 101 Switching\r\nUpgrade: echo\r\n\r\nfirst ")?;
            let said = peer.take(4)?;
            peer.send([b"got ", &said[..]].concat())
        });
    });
    for family in FAMILIES {
        let server = http(&format!(
            "server {{ {LISTEN} location / {{ {family}_pass {}; }} }}",
            app.address()
        ));
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
        let reply = client.answer();
        assert_eq!((reply.status, reply.header("upgrade")), (101, Some("echo")), "{family}");
        client.send("ping");
        assert_eq!(client.to_end().as_deref(), Ok(&b"first got ping"[..]), "{family}");
    }
}

#[test]
fn responses_are_cached_stored_intercepted_and_redirected() {
    let app = play(b"HTTP/1.1 200 OK\r\nETag: \"a\"\r\n\r\nhello");
    let broken = play(b"HTTP/1.1 500 No\r\n\r\nbroken");
    let accel = play(b"HTTP/1.1 200 OK\r\nX-Accel-Redirect: /inner\r\n\r\nnot this");
    for family in FAMILIES {
        let server = http(&format!(
            "{family}_cache_path @DIR@/zone keys_zone=Z:1m;
             add_header X-Cache $upstream_cache_status;
             server {{ {LISTEN}
                location /c {{ {family}_pass {0}; {family}_cache Z; {family}_cache_key $uri;
                    {family}_cache_valid 1m; }}
                location /s {{ {family}_pass {0}; {family}_store @DIR@/www$uri; }}
                location /e {{ {family}_pass {1}; {family}_intercept_errors on;
                    error_page 500 /own; }}
                location /a {{ {family}_pass {2}; }}
                location /own {{ return 200 own; }}
                location /inner {{ internal; return 200 inner; }} }}",
            app.address(),
            broken.address(),
            accel.address()
        ));
        let asked = app.connections();
        for state in ["MISS", "HIT", "HIT"] {
            let reply = server.get("/c");
            assert_eq!((reply.text().as_str(), reply.header("x-cache")), ("hello", Some(state)));
        }
        let range = server.connect().get("/c", "Range: bytes=1-2\r\n");
        assert_eq!((range.status, range.text()), (206, "el".to_owned()), "{family}");
        assert_eq!(app.connections() - asked, 1, "{family}");
        assert_eq!(server.get("/s").text(), "hello");
        wait_until("the file", || {
            std::fs::read(server.www("s")).is_ok_and(|file| file == b"hello")
        });
        assert_eq!((server.get("/e").status, server.get("/e").text()), (500, "own".to_owned()));
        assert_eq!(server.get("/a").text(), "inner", "{family}");
    }
}

#[test]
fn the_innermost_block_decides_which_clients_may_purge() {
    let app = play(HELLO);
    let at = app.address();
    let kept = |family: &str| {
        let words = "@_cache @; @_cache_key $uri; @_cache_valid 1m; @_pass";
        format!("{words} {at};").replace('@', family)
    };
    let (uwsgi, scgi) = (kept("uwsgi"), kept("scgi"));
    let server = http(&format!(
        "uwsgi_cache_path @DIR@/u keys_zone=uwsgi:1m; scgi_cache_path @DIR@/s keys_zone=scgi:1m;
         uwsgi_cache_purge PURGE from 127.0.0.1; scgi_cache_purge PURGE from 127.0.0.1;
         add_header X-Cache $upstream_cache_status;
         server {{ {LISTEN}
             location /uwsgi {{ {uwsgi} }} location /scgi {{ {scgi} }}
             location /no/uwsgi {{ uwsgi_cache_purge PURGE from 192.0.2.1; {uwsgi} }}
             location /no/scgi {{ scgi_cache_purge PURGE from 192.0.2.1; {scgi} }} }}"
    ));
    let state = |path: &str| server.get(path).header("x-cache").map(str::to_owned);
    for family in FAMILIES {
        for (path, status, then) in [("", 200, "MISS"), ("/no", 403, "HIT")] {
            let path = format!("{path}/{family}");
            assert_eq!(state(&path).as_deref(), Some("MISS"), "{path}");
            let purge = format!("PURGE {path} HTTP/1.1\r\nHost: localhost");
            assert_eq!(server.connect().ask(&purge).status, status, "{path}");
            assert_eq!(state(&path).as_deref(), Some(then), "{path}");
        }
    }
}
