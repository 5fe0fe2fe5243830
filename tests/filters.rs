//! Body filters in each protocol: `sub_filter`, `gunzip`; and the inheritance of field lists.

use std::fs;

use bolide_testkit::{Proto, TestServer};

use crate::{http, report, site};

/// A text of many pieces whose words may cross any boundary.
fn large() -> String {
    (0..20_000).map(|n| format!("<p>word{n} old.example</p>\n")).collect()
}

#[test]
fn texts_are_replaced_in_large_files_by_each_protocol() {
    let server = site(
        "sub_filter OLD.example new.test; sub_filter word $scheme-; sub_filter_once off; gzip on;",
    );
    fs::write(server.www("large.html"), large()).unwrap();
    let mut failures = Vec::new();
    for proto in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3] {
        for coding in ["identity", "gzip"] {
            let url = server.url(proto, "/large.html");
            let scheme = url.split(':').next().unwrap();
            let wanted = large().replace("old.example", "new.test");
            let wanted = wanted.replace("word", &format!("{scheme}-"));
            let accept = format!("Accept-Encoding: {coding}");
            let answer = server.curl(proto).field(&accept).args(["--compressed"]).get(&url);
            let is_right = answer.body == wanted.as_bytes()
                && answer.header("content-length").is_none()
                && answer.header("etag").is_none()
                && answer.header("last-modified").is_none();
            if !is_right {
                let len = answer.body.len();
                failures.push(format!("{proto:?} {coding}: {len} {:?}", answer.headers));
            }
        }
    }
    report(8, &failures);
}

#[test]
fn a_long_text_for_many_takes_little_memory() {
    let server = site("sub_filter a $arg_x; sub_filter_once off; gzip on;");
    fs::write(server.www("many.html"), "a".repeat(16 * 1024)).unwrap();
    fs::write(server.www("some.html"), "ab".repeat(500)).unwrap();
    let long = "x".repeat(6000);
    for coding in ["identity", "gzip"] {
        let url = format!("{}?x={long}", server.url(Proto::H1, "/some.html"));
        let accept = format!("Accept-Encoding: {coding}");
        let answer = server.curl(Proto::H1).field(&accept).args(["--compressed"]).get(&url);
        assert!(answer.body == format!("{long}b").repeat(500).as_bytes(), "{coding}");
    }
    let before = server.resident_kib();
    let mut slow = server.connect();
    slow.send(format!("GET /many.html?x={long} HTTP/1.1\r\nHost: a\r\n\r\n"));
    slow.take(100_000).unwrap();
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KiB for an answer of 96 MiB");
}

#[test]
fn the_innermost_filters_hold_and_other_types_are_left_alone() {
    let server = site(
        "sub_filter hello outer; sub_filter_once off; sub_filter_types text/plain;
         location /inner/ { rewrite ^/inner(.*) $1 break; sub_filter bolide inner; }
         location /once/ { rewrite ^/once(.*) $1 break; sub_filter_once on; sub_filter l L; }
         location /html/ { rewrite ^/html(.*) $1 break; sub_filter_types text/html; }
         location /kept/ { rewrite ^/kept(.*) $1 break; sub_filter_last_modified on; }",
    );
    let mut client = server.connect();
    for (path, wanted) in [
        ("/hello.txt", "outer, bolide\n"),
        ("/inner/hello.txt", "hello, inner\n"),
        ("/once/hello.txt", "heLlo, bolide\n"),
        ("/html/hello.txt", "hello, bolide\n"),
        ("/kept/hello.txt", "outer, bolide\n"),
    ] {
        let answer = client.get(path, "");
        assert_eq!(String::from_utf8_lossy(&answer.body), wanted, "{path}");
    }
    let kept = client.get("/kept/hello.txt", "");
    assert!(kept.header("etag").is_some_and(|tag| tag.starts_with("W/\"")));
    assert!(kept.header("last-modified").is_some());
    let ranged = client.get("/hello.txt", "Range: bytes=0-3\r\n");
    assert_eq!((ranged.status, ranged.header("accept-ranges")), (200, None));
    let untouched = client.get("/html/hello.txt", "Range: bytes=0-3\r\n");
    assert_eq!((untouched.status, &untouched.body[..]), (206, &b"hell"[..]));
}

#[test]
fn gunzip_decodes_for_clients_that_do_not_accept_gzip() {
    let server = site("gzip_static always; gunzip on; gzip_vary on; sub_filter_types text/plain;");
    let text = large();
    let path = server.www("large.txt");
    fs::write(&path, &text).unwrap();
    bolide_testkit::run("gzip", [&path]);
    fs::write(server.www("broken.txt.gz"), b"this is not gzip").unwrap();
    let mut client = server.connect();
    let plain = client.get("/large.txt", "");
    assert!(plain.body == text.as_bytes(), "{} bytes", plain.body.len());
    assert_eq!(plain.header("content-encoding"), None);
    assert_eq!(plain.header("vary"), Some("Accept-Encoding"));
    assert!(plain.header("etag").is_some_and(|tag| tag.starts_with("W/\"")));
    let coded = client.get("/large.txt", "Accept-Encoding: gzip\r\n");
    assert_eq!(coded.header("content-encoding"), Some("gzip"));
    assert!(coded.body.len() < text.len() / 5);
    let request = "GET /broken.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    let broken = client.send(request).try_answer("GET");
    assert!(broken.is_err(), "a body that is no gzip is cut: {broken:?}");
}

#[test]
fn fields_of_outer_blocks_are_inherited_replaced_or_dropped() {
    let server = http(
        "add_header A 1; server { listen 127.0.0.1:@HTTP@; add_header_inherit merge; add_header B 2;
           location /off { add_header_inherit off; return 200;
             location /off/own { add_header C 3; return 200; } }
           location /on { add_header_inherit on; add_header C 3; return 200; }
           location / { add_header C 3; return 200; } }",
    );
    let mut client = server.connect();
    for (path, wanted) in [
        ("/", [Some("1"), Some("2"), Some("3")]),
        ("/on", [None, None, Some("3")]),
        ("/off", [None, None, None]),
        ("/off/own", [None, None, Some("3")]),
    ] {
        let answer = client.get(path, "");
        assert_eq!(["a", "b", "c"].map(|name| answer.header(name)), wanted, "{path}");
    }
}

/// Turns of all workers until now.
fn turns(server: &TestServer) -> u64 {
    let pid = server.pid().to_string();
    let figures = server.home().run(&["metrics", "--pid", &pid]).succeeded().text();
    let lines = figures.lines().filter(|line| line.starts_with("bolide_worker_turns_total{"));
    lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

#[test]
fn a_large_body_of_which_filters_leave_nothing_takes_many_turns() {
    const SIZE: usize = 24 * 1024 * 1024;
    let server = site(
        "sub_filter aaaaaaaaaaaaaaaa ''; sub_filter_once off; gunzip on; gzip_static always; ssi on;
         ssi_last_modified off;",
    );
    let text = vec![b'a'; SIZE];
    fs::write(server.www("gone.html"), &text).unwrap();
    fs::write(server.www("zipped.html"), &text).unwrap();
    bolide_testkit::run("gzip", [&server.www("zipped.html")]);
    let hidden =
        [b"<!--#if expr=\"a = b\" -->".to_vec(), vec![b'b'; SIZE], b"<!--#endif -->".to_vec()];
    fs::write(server.www("hidden.html"), hidden.concat()).unwrap();
    let mut failures = Vec::new();
    for proto in [Proto::H1, Proto::H2, Proto::H3] {
        for path in ["/gone.html", "/zipped.html", "/hidden.html"] {
            let before = turns(&server);
            let answer = server.curl(proto).get(&server.url(proto, path));
            let taken = turns(&server) - before;
            // What is read at once of a compressed file may become two megabytes.
            if answer.status != 200 || !answer.body.is_empty() || taken < 12 {
                let len = answer.body.len();
                failures.push(format!(
                    "{proto:?} {path}: {} {len} bytes, {taken} turns",
                    answer.status
                ));
            }
        }
    }
    report(9, &failures);
}
