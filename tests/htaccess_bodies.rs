//! Bodies that `.htaccess` files have searched: files, answers of PHP, coded ones.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use bolide_testkit::server::LISTEN;
use bolide_testkit::{Proto, TestPhp, TestServer, wait_until};

use crate::htaccess::PARAMS;
use crate::{http, site};

fn put(server: &TestServer, path: &str, text: &str) {
    let path = server.www(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// What `gzip` makes of a coded body.
fn gunzip(body: &[u8]) -> String {
    let mut child = Command::new("gzip")
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gzip runs");
    child.stdin.take().unwrap().write_all(body).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut child = Command::new("gzip")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gzip runs");
    child.stdin.take().unwrap().write_all(text).unwrap();
    child.wait_with_output().unwrap().stdout
}

const RULES: &str = "AddOutputFilterByType SUBSTITUTE;DEFLATE text/html\n\
                     Substitute \"s|http://old.test|https://new.test|\"\nSubstitute \"s/(foo) (bar)/$2-$1/i\"\n";

#[test]
fn lines_of_a_file_are_searched_before_it_is_compressed() {
    let server = site("apache_htaccess on; gzip_min_length 1;");
    let page = "<a href=http://old.test/>\nFoo Bar foo bar\n".repeat(3);
    let wanted = "<a href=https://new.test/>\nBar-Foo bar-foo\n".repeat(3);
    put(&server, "a.html", &page);
    put(&server, "a.txt", &page);
    put(&server, ".htaccess", RULES);
    let answer = server.get("/a.html");
    assert_eq!((answer.status, answer.text()), (200, wanted.clone()));
    assert!(answer.header("etag").unwrap().starts_with("W/"), "{answer:?}");
    assert!(answer.header("last-modified").is_some());
    assert_eq!(answer.header("accept-ranges"), None);
    assert_eq!(server.get("/a.txt").text(), page);
    let mut client = server.connect();
    let coded = client.get("/a.html", "Accept-Encoding: gzip\r\n");
    assert_eq!(coded.header("content-encoding"), Some("gzip"));
    assert_eq!(gunzip(&coded.body), wanted);
    let cut = client.get("/a.html", "Range: bytes=0-3\r\n");
    assert_eq!((cut.status, cut.text()), (200, wanted));
    let head = client.ask("HEAD /a.html HTTP/1.1\r\nHost: localhost");
    assert_eq!((head.status, head.header("content-length")), (200, None));
    let same = format!("If-None-Match: {}\r\n", answer.header("etag").unwrap());
    assert_eq!(client.get("/a.html", &same).status, 304);
    // A change of the file with the rules counts at once.
    put(&server, ".htaccess", "SetOutputFilter SUBSTITUTE\nSubstitute s/o/0/n\n");
    assert_eq!(server.get("/a.txt").text(), page.replace('o', "0"));
    put(&server, ".htaccess", "");
    assert_eq!(server.get("/a.html").text(), page);
}

#[test]
fn a_line_that_cannot_be_sent_fails_the_request_and_is_logged() {
    let server = site("apache_htaccess on;");
    put(&server, "a.html", &"a".repeat(5000));
    put(&server, "b.html", &("b\n".repeat(100_000) + &"a".repeat(5000)));
    let atomic = [&"a".repeat(4000), "b"].concat().repeat(20);
    put(&server, "c.html", &atomic);
    put(&server, ".htaccess", "SetOutputFilter SUBSTITUTE\nSubstitute s/b/c/\n");
    assert_eq!(server.get("/a.html").text().len(), 5000);
    let rows = [
        ("SubstituteMaxLineLength 4k\nSubstitute s/b/c/", "a line is too long"),
        ("Substitute s/x*/y/", "finds an empty text again and again"),
        ("Substitute s/a+/$0$0$0/\nSubstituteMaxLineLength 14k", "a line is too long"),
        ("Substitute s/(a+)+[cd]/x/", "took too many steps"),
    ];
    for (rule, why) in rows {
        put(&server, ".htaccess", &format!("SetOutputFilter SUBSTITUTE\n{rule}\n"));
        let before = server.error_log().matches(why).count();
        assert_eq!(server.get("/a.html").status, 500, "{rule}");
        assert_eq!(server.error_log().matches(why).count(), before + 1, "{rule}");
    }
    // An expression that takes long is no reason to cut a page off.
    put(&server, ".htaccess", "SetOutputFilter SUBSTITUTE\nSubstitute s/(.*)a(.*)/$1$2/\n");
    assert_eq!(server.get("/a.html").text().len(), 4999);
    // What has left cannot be taken back.
    put(
        &server,
        ".htaccess",
        "SetOutputFilter SUBSTITUTE\nSubstituteMaxLineLength 4k\nSubstitute s/b/d/\n",
    );
    let before = server.error_log().matches("a line is too long").count();
    let mut client = server.connect();
    client.send("GET /b.html HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(client.try_answer("GET").is_err());
    wait_until("the log says why", || {
        server.error_log().matches("a line is too long").count() > before
    });
    let document = "ErrorDocument 500 /a.html\nSetOutputFilter SUBSTITUTE\nSubstitute s/x*/y/\n";
    put(&server, ".htaccess", document);
    let logged = || server.error_log().matches("finds an empty text again and again").count();
    let before = logged();
    assert_eq!(server.get("/c.html").status, 500);
    assert_eq!(logged(), before + 1, "once for the page and that of the error");
}

#[test]
fn precompressed_files_are_not_sent_where_bodies_are_substituted() {
    let server = site("apache_htaccess on; gzip_static on; gzip off;");
    put(&server, "a.html", "foo");
    fs::write(server.www("a.html.gz"), gzip(b"foo of the other")).unwrap();
    let gzips = "Accept-Encoding: gzip\r\n";
    let mut client = server.connect();
    assert_eq!(gunzip(&client.get("/a.html", gzips).body), "foo of the other");
    put(&server, ".htaccess", "SetOutputFilter SUBSTITUTE\nSubstitute s/foo/bar/\n");
    let answer = client.get("/a.html", gzips);
    assert_eq!((answer.header("content-encoding"), answer.text()), (None, "bar".to_owned()));
    let etag = answer.header("etag").unwrap().to_owned();
    let same = client.get("/a.html", &format!("If-None-Match: {etag}\r\n"));
    assert_eq!((same.status, same.header("etag")), (304, Some(&etag[..])));
}

#[test]
fn substitutions_apply_to_upstream_responses_cached_or_not() {
    let php = TestPhp::start(1);
    let pass = php.address();
    let server = http(&format!(
        "server {{ {LISTEN} apache_htaccess on; gzip_min_length 1;
             location ~ ^/kept/.*\\.php$ {{ {PARAMS} page_cache auto;
                 fastcgi_pass {pass}; }}
             location ~ \\.php$ {{ {PARAMS} fastcgi_pass {pass}; }} }}"
    ));
    let said = "echo \"<p>foo bar</p>\\nfoo bar\"";
    let wanted = "<p>bar-foo</p>\nbar-foo";
    put(&server, ".htaccess", RULES);
    put(&server, "a.php", &format!("<?php header('ETag: \"x\"'); {said};"));
    put(&server, "z.php", "<?php header('Content-Encoding: gzip'); echo gzencode('foo bar');");
    let kept = format!("<?php header('X-LiteSpeed-Cache-Control: public,max-age=60'); {said};");
    put(&server, "kept/k.php", &kept);
    put(&server, "text.php", &format!("<?php header('Content-Type: text/plain'); {said};"));
    let answer = server.get("/a.php");
    assert_eq!((answer.status, answer.text()), (200, wanted.to_owned()));
    assert_eq!(answer.header("etag"), Some("W/\"x\""));
    assert_eq!(server.get("/text.php").text(), "<p>foo bar</p>\nfoo bar");
    let mut client = server.connect();
    let coded = client.get("/a.php", "Accept-Encoding: gzip\r\n");
    assert_eq!(coded.header("content-encoding"), Some("gzip"));
    assert_eq!(gunzip(&coded.body), wanted);
    assert_eq!(gunzip(&client.get("/z.php", "Accept-Encoding: gzip\r\n").body), "foo bar");
    for _ in 0..3 {
        assert_eq!(server.get("/kept/k.php").text(), wanted);
    }
    let part =
        format!("<?php http_response_code(206); header('Content-Range: bytes 0-30/99'); {said};");
    put(&server, "part.php", &part);
    let answer = server.get("/part.php");
    assert_eq!((answer.status, answer.text()), (206, wanted.to_owned()));
    let filters = "SetOutputFilter INFLATE;SUBSTITUTE;DEFLATE\nSubstitute s/foo/baz/\n";
    put(&server, ".htaccess", filters);
    assert_eq!(server.get("/z.php").text(), "baz bar");
    let coded = client.get("/z.php", "Accept-Encoding: gzip\r\n");
    assert_eq!(coded.header("content-encoding"), Some("gzip"));
    assert_eq!(gunzip(&coded.body), "baz bar");
    assert_eq!(server.get("/kept/k.php").text(), "<p>baz bar</p>\nbaz bar", "kept as it came");
    // A page that is kept is whole, though a client could not get it.
    put(&server, "kept/n.php", &kept);
    put(&server, ".htaccess", "SetOutputFilter SUBSTITUTE\nSubstitute s/x*/y/\n");
    assert_eq!(server.get("/kept/k.php").status, 500);
    for path in ["/kept/n.php", "/a.php"] {
        assert_eq!(server.get(path).status, 500, "{path}");
    }
    put(&server, ".htaccess", filters);
    for path in ["/kept/k.php", "/kept/n.php", "/a.php"] {
        assert_eq!(server.get(path).text(), "<p>baz bar</p>\nbaz bar", "{path}");
    }
}

/// What is wrong with the first of a body is known before its head leaves.
#[test]
fn an_answer_whose_first_line_cannot_be_sent_is_a_500() {
    let php = TestPhp::start(2);
    let pass = php.address();
    let server = http(&format!(
        "server {{ {LISTEN} apache_htaccess on; gzip_min_length 1;
             location ~ \\.php$ {{ {PARAMS} fastcgi_pass {pass}; fastcgi_read_timeout 2s; }} }}"
    ));
    let limited = "SubstituteMaxLineLength 4k\nSetOutputFilter SUBSTITUTE\nSubstitute s/foo/baz/\n";
    put(&server, "a/.htaccess", limited);
    put(&server, "a/long.php", "<?php header('X-Own: yes'); echo str_repeat('a', 9000);");
    // More than `fastcgi_buffers` have room for comes at once.
    put(&server, "a/burst.php", "<?php header('X-Own: yes'); echo str_repeat('a', 50000);");
    // The line comes in pieces, and its end is not there for a while.
    let slow =
        "<?php foreach (range(0, 8) as $_) { echo str_repeat('a', 1000); flush(); usleep(9000); }";
    put(&server, "a/slow.php", slow);
    put(
        &server,
        "a/behind.php",
        "<?php echo str_repeat(\"foo\\n\", 99999), str_repeat('a', 9000);",
    );
    put(&server, "a/empty.php", "<?php header('X-Own: yes');");
    put(&server, "b/.htaccess", "SetOutputFilter INFLATE;SUBSTITUTE\nSubstitute s/foo/baz/\n");
    let broken = "<?php header('Content-Encoding: gzip');
        echo substr(gzencode(str_repeat('foo', 99)), 0, 15);";
    put(&server, "b/broken.php", broken);
    for (path, why) in [
        ("/a/long.php", "a line is too long"),
        ("/a/burst.php", "a line is too long"),
        ("/a/slow.php", "a line is too long"),
        ("/b/broken.php", "a body cannot be inflated"),
    ] {
        for proto in [Proto::H1, Proto::H2, Proto::H3] {
            let before = server.error_log().matches(why).count();
            let answer = server.fetch(proto, path);
            assert_eq!((answer.status, answer.header("x-own")), (500, None), "{path} {proto:?}");
            assert_eq!(server.error_log().matches(why).count(), before + 1, "{path} {proto:?}");
        }
        let coded = server.connect().get(path, "Accept-Encoding: gzip\r\n");
        assert_eq!(coded.status, 500, "{path}");
    }
    // What broke off before there was a line of it is no answer.
    put(&server, "a/less.php", "<?php header('Content-Length: 99'); echo 'foo';");
    assert_eq!(server.get("/a/less.php").status, 502);
    assert!(server.error_log().contains("a body broke off before its first line"));
    put(&server, "a/hung.php", "<?php echo 'foo'; flush(); sleep(9);");
    assert_eq!(server.get("/a/hung.php").status, 504, "as where there was no head");
    // Its body is not asked for.
    let head = server.connect().ask("HEAD /a/long.php HTTP/1.1\r\nHost: localhost");
    assert_eq!((head.status, head.header("x-own")), (200, Some("yes")));
    let answer = server.get("/a/empty.php");
    assert_eq!(
        (answer.status, answer.text(), answer.header("x-own")),
        (200, String::new(), Some("yes"))
    );
    // Behind a good beginning it is cut off.
    let mut client = server.connect();
    client.send("GET /a/behind.php HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(client.try_answer("GET").is_err());
}

/// A head waits for no more than the first line.
#[test]
fn lines_of_a_page_that_takes_its_time_leave_when_they_come() {
    let php = TestPhp::start(2);
    let pass = php.address();
    let server = http(&format!(
        "server {{ {LISTEN} apache_htaccess on; gzip_min_length 1; gzip_types text/html;
             location ~ \\.php$ {{ {PARAMS} fastcgi_pass {pass}; }} }}"
    ));
    put(&server, ".htaccess", "SetOutputFilter SUBSTITUTE\nSubstitute s/foo/baz/\n");
    let page = "<?php header('X-Accel-Buffering: no'); echo \"foo\\nfoo\"; flush();
        while (!file_exists(__DIR__ . '/go')) { usleep(2000); clearstatcache(); }
        echo \"bar\\nfoo\";";
    put(&server, "a.php", page);
    for fields in ["", "Accept-Encoding: gzip\r\n"] {
        let mut client = server.connect();
        client.send(format!("GET /a.php HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
        let begun = client.take(12).unwrap();
        assert_eq!(begun, b"HTTP/1.1 200", "it comes while the page is made");
        let mut seen = Vec::new();
        while !seen.ends_with(b"\r\n\r\n") {
            seen.extend(client.take(1).unwrap());
        }
        // A piece of the body, which the page goes on behind.
        assert!(client.take(4).is_ok());
        put(&server, "go", "");
        if fields.is_empty() {
            let mut rest = Vec::new();
            while !rest.ends_with(b"0\r\n\r\n") {
                rest.extend(client.take(1).unwrap());
            }
            assert!(rest.windows(6).any(|part| part == b"bazbar"), "{}", rest.escape_ascii());
        }
        fs::remove_file(server.www("go")).unwrap();
    }
}

/// RFC 9110 §15.4.5
#[test]
fn a_304_has_the_tag_of_the_200() {
    let php = TestPhp::start(1);
    let pass = php.address();
    let server = http(&format!(
        "server {{ {LISTEN} apache_htaccess on;
             location ~ \\.php$ {{ {PARAMS} fastcgi_pass {pass}; }} }}"
    ));
    let page = "<?php header('ETag: \"x\"');
        if (isset($_SERVER['HTTP_IF_NONE_MATCH'])) { http_response_code(304); exit; }
        echo 'foo';";
    put(&server, "a/a.php", page);
    put(&server, "b/b.php", page);
    put(&server, "a/.htaccess", "SetOutputFilter SUBSTITUTE\nSubstitute s/foo/baz/\n");
    // Their 304 do not say what type and coding the 200 has.
    let bare = page.replace("304);", "304); ini_set('default_mimetype', '');");
    let coded =
        bare.replace("echo 'foo'", "header('Content-Encoding: gzip'); echo gzencode('foo')");
    for (directory, page) in [("c", &bare), ("d", &bare), ("e", &coded), ("f", &bare)] {
        put(&server, &format!("{directory}/{directory}.php"), page);
    }
    let by_type = "AddOutputFilterByType SUBSTITUTE";
    put(&server, "c/.htaccess", &format!("{by_type} text/html\nSubstitute s/foo/baz/\n"));
    put(&server, "d/.htaccess", &format!("{by_type} text/html\n"));
    put(&server, "e/.htaccess", "SetOutputFilter INFLATE\n");
    put(&server, "f/.htaccess", "Substitute s/foo/baz/\n");
    for (path, tag) in [
        ("/a/a.php", "W/\"x\""),
        ("/b/b.php", "\"x\""),
        ("/c/c.php", "W/\"x\""),
        ("/d/d.php", "\"x\""),
        ("/e/e.php", "W/\"x\""),
        ("/f/f.php", "\"x\""),
    ] {
        assert_eq!(server.get(path).header("etag"), Some(tag));
        let same = server.connect().get(path, "If-None-Match: W/\"x\"\r\n");
        assert_eq!((same.status, same.header("etag")), (304, Some(tag)), "{path}");
    }
}

/// Whatever an application says, its fields are edited.
#[test]
fn statuses_beyond_those_of_http_pass() {
    let php = TestPhp::start(1);
    let pass = php.address();
    let server = http(&format!(
        "server {{ {LISTEN} apache_htaccess on;
             location ~ \\.php$ {{ {PARAMS} fastcgi_pass {pass}; }} }}"
    ));
    put(&server, "a.php", "<?php http_response_code(999); echo 'foo';");
    put(&server, ".htaccess", "Header always set X-A b\n");
    let answer = server.get("/a.php");
    assert_eq!((answer.status, answer.header("x-a")), (999, Some("b")));
}

/// As by Apache, `(?m)` is about all line feeds.
#[test]
fn an_end_of_a_line_is_where_the_expression_says() {
    let server = site("apache_htaccess on; gzip off;");
    put(&server, "a.txt", "foo\na\nba\nlast a");
    let rows = [
        ("(?m)a$", "foo\nX\nbX\nlast X"),
        ("a$", "foo\na\nba\nlast X"),
        ("(?m)^a$", "foo\nX\nba\nlast a"),
        ("(?m)a\\n?$", "foo\nXbXlast X"),
        ("a[$]?$", "foo\na\nba\nlast X"),
        ("a.", "foo\na\nba\nlXt a"),
        ("(?s)a.", "foo\nXbXlXt a"),
    ];
    for (source, wanted) in rows {
        let rule = format!("SetOutputFilter SUBSTITUTE\nSubstitute \"s/{source}/X/\"\n");
        put(&server, ".htaccess", &rule);
        assert_eq!(server.get("/a.txt").text(), wanted, "{source}");
    }
}

/// Pages in one long line, as programs write them, and many rules: what Apache sends whole.
#[test]
fn long_lines_and_many_rules_are_searched_to_their_end() {
    let server = site("apache_htaccess on; gzip off;");
    put(
        &server,
        "a/.htaccess",
        "SetOutputFilter SUBSTITUTE\nSubstitute \"s/'([a-z]+)':/$1 : /\"\n",
    );
    let page = "{'abc':1,'de':2},".repeat(18_000);
    put(&server, "a/a.js", &page);
    let wanted = page.replace("'abc':", "abc : ").replace("'de':", "de : ");
    assert!(server.get("/a/a.js").text() == wanted, "one line");
    let rules = "SetOutputFilter SUBSTITUTE\n".to_owned()
        + &(0..50).map(|n| format!("Substitute s/x{n}y+z/-/\n")).collect::<String>();
    put(&server, "b/.htaccess", &rules);
    let page = "some words of a line, and x7yyz among them as long as others are\n".repeat(30_000);
    put(&server, "b/a.txt", &page);
    assert!(server.get("/b/a.txt").text() == page.replace("x7yyz", "-"), "50 rules");
}
