//! Error logs by block and level, their lines about requests, and nginx's messages for mistakes in
//! log directives.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use bolide_testkit::server::{Home, prelude};
use bolide_testkit::{TestServer, wait_until};

use crate::{BOLIDE, report};

/// A server with the log `main` in the main block and these directives.
fn server(http: &str) -> TestServer {
    let full = prelude(1).replace("logs/error.log info", "logs/main.log notice");
    TestServer::start(
        Home::new(BOLIDE),
        &format!("{full} http {{ {http} }}").replace("@LISTEN@", "listen 127.0.0.1:@HTTP@;"),
    )
}

#[test]
fn each_block_has_its_logs_and_their_levels() {
    let server = server(
        "error_log logs/http.log;
         server { @LISTEN@ root @DIR@/www;
            location /own { error_log logs/own.log; location /own/deep { }
                location /own/two { error_log logs/a.log crit; error_log logs/b.log error;
                    error_log logs/c.log debug_http; } }
            location /deny { deny all; error_log logs/deny.log warn; }
            location /low { error_log logs/low.log emerg; }
            location /memory { error_log memory:64k; }
            location /rw { error_log logs/rw.log notice; rewrite_log on; rewrite ^ /none break; }
            location /rw/warn { error_log logs/warn.log warn; rewrite_log on; rewrite ^ /x break; }
         }
         server { @LISTEN@ server_name second; error_log logs/server.log; root @DIR@/www; }",
    );
    let mut client = server.connect();
    for path in
        ["/a", "/own/a", "/own/deep/a", "/own/two/a", "/deny", "/low", "/memory", "/rw", "/rw/warn"]
    {
        client.get(path, "");
    }
    client.send("GET /b HTTP/1.1\r\nHost: second\r\n\r\n").answer();
    let read = |name: &str| server.home().read(&format!("logs/{name}.log"));
    wait_until("the last line", || read("server").contains("/www/b"));
    let dir = server.home().dir().display().to_string();
    let mut failures = Vec::new();
    let rows: &[(&str, &[(&str, &str)])] = &[
        ("http", &[("error", "open() \"{}/a\"")]),
        ("own", &[("error", "open() \"{}/own/a\""), ("error", "open() \"{}/own/deep/a\"")]),
        ("a", &[]),
        ("b", &[("error", "open() \"{}/own/two/a\"")]),
        (
            "c",
            &[
                ("debug", " http request line: \"GET /own/two/a HTTP/1.1\""),
                ("debug", " using configuration \"/own/two\""),
                ("error", "open() \"{}/own/two/a\""),
                ("debug", " http finalize request: 404, \"/own/two/a\""),
                ("debug", " http close request"),
            ],
        ),
        ("deny", &[("error", "access forbidden by rule, client: ")]),
        ("low", &[]),
        (
            "rw",
            &[
                ("notice", "\"^\" matches \"/rw\", client: "),
                ("notice", "rewritten data: \"/none\", args: \"\", client: "),
                ("error", "open() \"{}/none\""),
            ],
        ),
        ("warn", &[("error", "open() \"{}/x\"")]),
        ("server", &[("error", "open() \"{}/b\"")]),
    ];
    for (name, wanted) in rows {
        let text = read(name);
        let lines: Vec<&str> = text.lines().collect();
        let fits = lines.len() == wanted.len()
            && lines.iter().zip(*wanted).all(|(line, (level, words))| {
                line.contains(&format!(" [{level}] "))
                    && line.contains(&words.replace("{}", &format!("{dir}/www")))
            });
        if !fits {
            failures.push(format!("{name}.log:\n{text}"));
        }
    }
    report(rows.len(), &failures);
    assert!(!read("main").contains("client: "), "{}", read("main"));
}

#[test]
fn standard_error_is_a_log_too() {
    let home = Home::new(BOLIDE);
    let full = prelude(1).replace("@DIR@/logs/error.log info", "stderr");
    let conf = format!(
        "{full} http {{ log_format f 'line $uri'; server {{ listen 127.0.0.1:@HTTP@;
         access_log \"\" f; root @DIR@/www; error_log stderr; }} }}"
    );
    let server = TestServer::start(home, &conf);
    server.get("/missing");
    let read = || server.home().read("stderr");
    wait_until("both lines", || {
        read().contains("/www/missing\" failed (2: ") && read().contains("line /missing\n")
    });
}

#[test]
fn bytes_of_clients_are_quoted_unchanged_except_control_characters() {
    let server = server(
        "server { @LISTEN@ root @DIR@/www; error_log logs/e.log info; server_name site.test; }",
    );
    let mut client = server.connect();
    let head = "GET /a\"\\\u{e9} HTTP/1.1\r\nHost: Site.test:80\r\nReferer: x\u{1b}[31m\ty\"z\r\n";
    client.send(format!("{head}\r\n")).answer();
    let end = ", client: 127.0.0.1, server: site.test, request: \"GET /a\"\\\u{e9} HTTP/1.1\", \
               host: \"Site.test:80\", referrer: \"x\\x1B[31m\\x09y\"z\"\n";
    wait_until("the line", || server.home().read("logs/e.log").ends_with(end));
}

#[test]
fn log_not_found_is_of_its_block() {
    let server = server(
        "error_log logs/e.log; log_not_found off;
         server { @LISTEN@ root @DIR@/www; location /on { log_not_found on; }
            location /on/off { log_not_found off; } }",
    );
    let mut client = server.connect();
    for path in ["/a", "/on/off/b", "/on/c"] {
        assert_eq!(client.get(path, "").status, 404);
    }
    wait_until("a line", || !server.home().read("logs/e.log").is_empty());
    let log = server.home().read("logs/e.log");
    assert!(log.lines().count() == 1 && log.contains("/on/c"), "{log}");
}

#[test]
fn mistakes_are_refused_with_nginxs_messages() {
    let rows = [
        ("access_log;", "invalid number of arguments in \"access_log\" directive"),
        ("access_log a nope;", "unknown log format \"nope\""),
        ("access_log off x;", "invalid parameter \"x\""),
        ("access_log a combined buffer=0;", "invalid buffer size \"0\""),
        ("access_log a combined flush=1s;", "no buffer is defined for access_log \"a\""),
        ("access_log a combined gzip=10;", "invalid compression level \"10\""),
        (
            "access_log a combined gzip; access_log a combined gzip=2;",
            "access_log \"a\" already defined with conflicting parameters",
        ),
        ("access_log $uri combined gzip;", "buffered logs cannot have variables in name"),
        ("access_log syslog:server=[::1] combined gzip;", "logs to syslog cannot be buffered"),
        ("access_log syslog:tag=a;", "no syslog server specified"),
        ("access_log syslog:server=;", "no host in syslog server \"\""),
        ("access_log syslog:server=a,server=b;", "host not found in syslog server \"a\""),
        ("access_log syslog:server=unix:;", "no path in the unix domain socket in syslog server"),
        ("access_log syslog:server=[::1],tag=a-b;", "syslog \"tag\" only allows alphanumeric"),
        ("access_log syslog:server=[::1],facility=x;", "unknown syslog facility \"x\""),
        ("access_log syslog:server=[::1],severity=x;", "unknown syslog severity \"x\""),
        ("access_log syslog:server=[::1],nohost;", "unknown syslog parameter \"nohost\""),
        ("open_log_file_cache max=0;", "\"open_log_file_cache\" must have \"max\" parameter"),
        ("open_log_file_cache max=1 valid=x;", "invalid \"open_log_file_cache\" parameter \"va"),
        ("log_format a escape=x y;", "unknown log format escaping \"x\""),
        ("log_format a x; log_format a y;", "duplicate \"log_format\" name \"a\""),
        ("log_subrequest maybe;", "invalid value \"maybe\" in \"log_subrequest\" directive"),
        ("log_not_found 1;", "invalid value \"1\" in \"log_not_found\" directive"),
        ("rewrite_log x;", "invalid value \"x\" in \"rewrite_log\" directive"),
        ("error_log e.log loud;", "invalid log level \"loud\""),
        ("error_log e.log warn error;", "duplicate log level \"error\""),
        ("error_log memory:1k;", "invalid buffer size \"1k\""),
    ];
    let home = Home::new(BOLIDE);
    let mut failures = Vec::new();
    for (text, wanted) in rows {
        let conf = home.write("bad.conf", &format!("events {{}}\nhttp {{\n{text}\n}}\n"));
        let conf = conf.to_str().unwrap();
        let done = home.run(&["-t", "-c", conf, "-e", "logs/start.log"]);
        let place = format!(" in {conf}:3");
        let said = done.stderr.lines().any(|line| line.contains(wanted) && line.ends_with(&place));
        if done.code != 1 || !said {
            failures.push(format!("{text}\n{done}"));
        }
    }
    report(rows.len(), &failures);
    let bad = "events {\ndebug_connection nobody.invalid; }\n";
    let conf = home.write("bad.conf", bad);
    let done = home.run(&["-t", "-c", conf.to_str().unwrap(), "-e", "logs/start.log"]);
    let wanted = "host not found in debug_connection \"nobody.invalid\" in ";
    assert!(done.code == 1 && done.stderr.contains(wanted), "{done}");
    let logged = fs::read_to_string(home.dir().join("logs/start.log")).unwrap();
    assert!(logged.contains(wanted), "{logged}");
}

/// A FastCGI application that responds with 204 and writes these bytes to its standard error.
fn complainer(port: u16, complaint: &'static [u8]) {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut asked = [0; 65536];
            let _ = client.read(&mut asked);
            let record = |kind: u8, body: &[u8]| {
                let mut record = vec![1, kind, 0, 1, 0, u8::try_from(body.len()).unwrap(), 0, 0];
                record.extend_from_slice(body);
                record
            };
            let all = [
                record(7, complaint),
                record(6, b"Status: 204\r\n\r\n"),
                record(6, b""),
                record(3, &[0; 8]),
            ];
            let _ = client.write_all(&all.concat());
        }
    });
}

#[test]
fn no_client_forges_a_line_or_controls_the_reader_s_terminal() {
    let syslog = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    syslog.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let home = Home::new(BOLIDE);
    complainer(home.port(2), b"PHP: a\n2026/01/01 [alert] forged \x1b[2J \xc2\x9b31m \x9b");
    home.write("users", "known:{PLAIN}x\n");
    let conf = format!(
        "{} http {{ error_log logs/e.log error; error_log syslog:server={} error;
         server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www;
         location /in {{ auth_basic x; auth_basic_user_file @DIR@/users; }}
         location /app {{ fastcgi_pass 127.0.0.1:@P2@; }} }} }}",
        prelude(1).replace("logs/error.log", "logs/main.log"),
        syslog.local_addr().unwrap(),
    );
    let server = TestServer::start(home, &conf);
    // `a LF forged ESC [ CSI` with a password, and the same in a path.
    let head = "GET /in HTTP/1.1\r\nHost: a\r\nAuthorization: Basic ";
    let credentials = "YQpmb3JnZWQbW8KbOng=";
    server.connect().send(format!("{head}{credentials}\r\n\r\n")).answer();
    let mut client = server.connect();
    client.get("/a%0a2026/01/01%20[alert]%20forged%1b[2J%7f%c2%9b%9b%c3%a9", "");
    client.get("/app", "");
    let read = || fs::read(server.home().dir().join("logs/e.log")).unwrap_or_default();
    let has = |log: &[u8], text: &str| log.windows(text.len()).any(|at| at == text.as_bytes());
    wait_until("the last line", || has(&read(), "sent in stderr"));
    let log = read();
    let shown = String::from_utf8_lossy(&log).into_owned();
    for wanted in [
        "user \"a\\x0Aforged\\x1B[\\xC2\\x9B\" was not found",
        "/a\\x0A2026/01/01 [alert] forged\\x1B[2J\\x7F\\xC2\\x9B\\x9B\u{e9}\" failed",
        "\"PHP: a\\x0A2026/01/01 [alert] forged \\x1B[2J \\xC2\\x9B31m \\x9B\" while",
    ] {
        assert!(has(&log, wanted), "{wanted}\n{shown}");
    }
    assert_eq!(shown.lines().filter(|line| !line.contains(", client: ")).count(), 0, "{shown}");
    assert_eq!(log.last(), Some(&b'\n'));
    let is_text = |c: char| c == '\n' || !c.is_control();
    assert!(shown.chars().all(is_text), "{shown:?}");
    let mut datagram = [0; 4096];
    for _ in 0..3 {
        let len = syslog.recv(&mut datagram).unwrap();
        let line = String::from_utf8_lossy(&datagram[..len]).into_owned();
        assert!(!line.contains(char::is_control), "{line:?}");
    }
}

#[test]
fn a_log_of_level_debug_has_the_phases_of_each_request() {
    let server = server(
        "server { @LISTEN@ error_log logs/d.log debug; error_log logs/i.log info;
            location = /exact { return 204; }
            location /page { error_page 404 /exact; return 404; }
            location /proxied { proxy_pass http://127.0.0.1:@HTTP@/exact; } }",
    );
    let mut client = server.connect();
    client.get("/page?x", "");
    client.send("GET /proxied HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").answer();
    let read = |name: &str| server.home().read(&format!("logs/{name}.log"));
    wait_until("the last line", || read("d").matches("http close request").count() == 3);
    let text = read("d");
    for wanted in [
        "http request line: \"GET /page?x HTTP/1.1\"\n",
        "using configuration \"/page\"\n",
        "using configuration \"=/exact\"\n",
        "http request line: \"GET /proxied HTTP/1.1\"\n",
        "using configuration \"/proxied\"\n",
        &server.home().expand("http upstream: \"127.0.0.1:@HTTP@\"\n"),
        "http finalize request: 204, \"/proxied\"\n",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(!read("i").contains("[debug]"));
}

#[test]
fn clients_of_debug_connection_have_lines_of_all_levels_in_every_log() {
    let request = b"GET /page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for (named, wanted) in [("unix:", "unix:"), ("127.0.0.0/30", "127.0.0.1"), ("10.0.0.1", "")] {
        let full = prelude(1).replace("events {", &format!("events {{ debug_connection {named};"));
        let server = TestServer::start(
            Home::new(BOLIDE),
            &format!(
                "{full} http {{ access_log logs/a.log; error_log logs/one.log crit;
                    error_log logs/two.log error;
                    server {{ listen 127.0.0.1:@HTTP@; listen unix:@DIR@/s.sock; root none; }} }}"
            ),
        );
        let mut unix = UnixStream::connect(server.home().dir().join("s.sock")).unwrap();
        unix.write_all(request).unwrap();
        unix.read_to_end(&mut Vec::new()).unwrap();
        server.connect().send(str::from_utf8(request).unwrap()).answer();
        let read = |name: &str| server.home().read(&format!("logs/{name}.log"));
        wait_until("both lines", || read("a").matches("/page").count() == 2);
        let debugged = usize::from(!wanted.is_empty());
        for name in ["one", "two"] {
            // Each log is a file of its own, written at a time of its own.
            let is_there = |text: &str| {
                text.matches("[debug]").count() == 4 * debugged
                    && text.matches("[error]").count() == if name == "one" { debugged } else { 2 }
            };
            wait_until(&format!("the lines of {named} in {name}"), || is_there(&read(name)));
            let text = read(name);
            let own = format!("client: {wanted}");
            let errors = text.lines().filter(|line| line.contains("[error]"));
            let about = errors.filter(|line| line.contains(&own)).count();
            // A log of level `crit` has the errors of those clients only.
            assert_eq!(
                about,
                if wanted.is_empty() && name == "one" { 0 } else { 2 - debugged },
                "{text}"
            );
        }
    }
}
