//! The values of variables in each protocol, and messages about unknown names.

use std::fs;
use std::os::unix::fs::symlink;

use bolide_testkit::Proto;
use bolide_testkit::server::Home;

use crate::{BOLIDE, http, report, site};

const ALL: [Proto; 4] = [Proto::H1, Proto::H2, Proto::H2c, Proto::H3];

#[test]
fn variables_have_values_over_each_protocol() {
    let server = site(
        "location / {
             add_header V \"$scheme|$server_protocol|$http2|$http3|$request_method|$uri|$args\";
             add_header C \"$connection_requests|$pipe|$sent_http_connection|$request_completion\";
             add_header H \"$host|$http_x|$cookie_c|$arg_a|$sent_http_content_length|$hostname\";
             add_header T \"$tcpinfo_rtt|$tcpinfo_rttvar|$tcpinfo_snd_cwnd|$tcpinfo_rcv_space\";
         }",
    );
    let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let hostname = hostname.trim().to_ascii_lowercase();
    for proto in ALL {
        let url = server.url(proto, "/hello.txt?b=1&A=2&a=3");
        let fields = ["-H", "X: 1", "-H", "x: 2", "-H", "Cookie: b=1;  c = 2 ; c=3"];
        let reply = server.curl(proto).args(fields).get(&url);
        let (scheme, version, h2, h3) = match proto {
            Proto::H1 => ("https", "HTTP/1.1", "", ""),
            Proto::H2 => ("https", "HTTP/2.0", "h2", ""),
            Proto::H2c => ("http", "HTTP/2.0", "h2c", ""),
            Proto::H3 => ("https", "HTTP/3.0", "", "h3"),
        };
        let scheme = if url.starts_with("https") { scheme } else { "http" };
        let wanted = format!("{scheme}|{version}|{h2}|{h3}|GET|/hello.txt|b=1&A=2&a=3");
        assert_eq!(reply.header("v"), Some(&*wanted), "{proto:?}");
        // As in nginx, a stream of HTTP/3 says it, too.
        let is_kept = matches!(proto, Proto::H1 | Proto::H3);
        let stays = if is_kept { "keep-alive" } else { "close" };
        assert_eq!(reply.header("c"), Some(&*format!("1|.|{stays}|")), "{proto:?}");
        let host = reply.header("h").unwrap();
        assert_eq!(host, format!("localhost|1, 2|2 |2|14|{hostname}"), "{proto:?}");
        let tcp = reply.header("t").unwrap();
        let figures = tcp.split('|').filter(|figure| figure.parse::<u32>().is_ok_and(|n| n > 0));
        assert_eq!(figures.count(), if proto == Proto::H3 { 0 } else { 4 }, "{proto:?}: {tcp}");
    }
}

#[test]
fn all_bytes_that_left_are_counted_and_pipelines_are_seen() {
    let server = http(
        "log_format b '$bytes_sent $body_bytes_sent $pipe $connection_requests';
         server {
             listen 127.0.0.1:@HTTP@; root @DIR@/www; access_log @DIR@/logs/access.log b;
             location /c { sub_filter hello bye; sub_filter_types *; alias @DIR@/www/hello.txt; }
         }",
    );
    let mut client = server.connect();
    client.send("GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    let first = client.answer();
    assert_eq!(first.status, 200);
    client.send("GET /c HTTP/1.1\r\nHost: a\r\n\r\nGET /none HTTP/1.1\r\nHost: a\r\n");
    client.send("Connection: close\r\n\r\n");
    let rest = client.to_end().unwrap();
    let lines = server.access_lines(3);
    let words: Vec<Vec<&str>> = lines.iter().map(|line| line.split(' ').collect()).collect();
    let marks: Vec<_> = words.iter().map(|words| (words[2], words[3])).collect();
    assert_eq!(marks, [(".", "1"), (".", "2"), ("p", "3")], "{lines:?}");
    let number = |row: usize, word: usize| words[row][word].parse::<usize>().unwrap();
    assert_eq!(number(1, 0) + number(2, 0), rest.len(), "{lines:?}");
    let (head, _) = std::str::from_utf8(&rest).unwrap().split_once("\r\n\r\n").unwrap();
    assert_eq!(number(1, 0) - number(1, 1), head.len() + 4, "chunks belong to the body");
    assert_eq!(number(0, 1), 14);
}

#[test]
fn the_real_root_follows_links_when_they_change() {
    let server = site(
        "location /r { root @DIR@/current; return 200 $realpath_root; }
         location /n { root @DIR@/nowhere; return 200 \"[$realpath_root]\"; }",
    );
    let dir = server.home().dir().to_owned();
    for release in ["one", "two"] {
        fs::create_dir(dir.join(release)).unwrap();
        let _ = fs::remove_file(dir.join("current"));
        symlink(release, dir.join("current")).unwrap();
        let wanted = dir.canonicalize().unwrap().join(release);
        bolide_testkit::wait_until("the link is seen", || {
            server.get("/r").text() == wanted.to_str().unwrap()
        });
    }
    assert_eq!(server.get("/n").text(), "[]");
    let wanted = format!(
        "realpath() \"{}/nowhere\" failed (2: No such file or directory), client: ",
        dir.display()
    );
    bolide_testkit::wait_until("the line in the log", || {
        let log = server.error_log();
        log.contains("[crit]") && log.contains(&wanted)
    });
}

#[test]
fn invalid_variable_names_and_circles_are_reported() {
    let home = Home::new(BOLIDE);
    let rows = [
        ("return 200 $nothing;", "unknown \"nothing\" variable"),
        ("return 200 ${uri;", "the closing bracket in \"uri\" variable is missing in "),
        ("return 200 $;", "invalid variable name in "),
        ("set uri 1;", "invalid variable name \"uri\" in "),
        ("set $uri 1;", "the duplicate \"uri\" variable in "),
        ("root /a/$realpath_root;", "the $realpath_root variable cannot be used in the"),
    ];
    let mut failures = Vec::new();
    for (line, wanted) in rows {
        let server = format!("server {{ listen 127.0.0.1:@HTTP@; location / {{\n{line}\n}} }}");
        home.write("wrong.conf", &format!("events {{}}\nhttp {{ {server} }}\n"));
        let file = home.dir().join("wrong.conf");
        let said = home.run(&["-t", "-e", "stderr", "-c", file.to_str().unwrap()]).stderr;
        if !said.contains(wanted) {
            failures.push(format!("{line}: {said}"));
        }
    }
    report(rows.len(), &failures);
    let server = http(
        "map $b $a { default $b; } map $a $b { default $a; }
         server { listen 127.0.0.1:@HTTP@; return 200 \"[$a]\"; }",
    );
    server.get("/");
    bolide_testkit::wait_until("the line in the log", || {
        server.error_log().contains("cycle while evaluating variable \"")
    });
}
