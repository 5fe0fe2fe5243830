//! Compression on the fly: each coding decodes to the file.

use std::fs;

use bolide_testkit::Proto;

use crate::{report, site};

const ALL: &str = "
    gzip on; gzip_vary on; gzip_min_length 100; gzip_types text/css text/plain;
    brotli on; brotli_min_length 100; brotli_types text/css text/plain;
    zstd on; zstd_min_length 100; zstd_types text/css text/plain;
    gzip_buffers 4 4k; brotli_buffers 4 4k; zstd_buffers 4 4k; brotli_window 64k;
";

#[test]
fn each_coding_decodes_to_the_file_by_each_protocol() {
    let server = site(ALL);
    let mut failures = Vec::new();
    for proto in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3] {
        for coding in ["gzip", "br", "zstd"] {
            for path in ["/page.html", "/style.css"] {
                let url = server.url(proto, path);
                let accept = format!("Accept-Encoding: {coding}");
                let coded = server.curl(proto).field(&accept).get(&url);
                let plain = server.curl(proto).field(&accept).args(["--compressed"]).get(&url);
                let file = fs::read(server.www(&path[1..])).unwrap();
                let right = coded.header("content-encoding") == Some(coding)
                    && coded.body.len() * 3 < file.len()
                    && coded.header("vary") == Some("Accept-Encoding")
                    && plain.body == file;
                if !right {
                    let head = &coded.headers;
                    failures.push(format!("{proto:?} {coding} {path}: {head:?}"));
                }
            }
        }
    }
    report(24, &failures);
}

#[test]
fn responses_that_must_not_be_compressed_are_not() {
    let server = site(ALL);
    let mut client = server.connect();
    for (path, fields) in [
        ("/photo.jpg", "Accept-Encoding: gzip, br, zstd\r\n"),
        ("/hello.txt", "Accept-Encoding: gzip\r\n"),
        ("/page.html", ""),
        ("/page.html", "Accept-Encoding: identity\r\n"),
        ("/page.html", "Accept-Encoding: gzip;q=0, br;q=0\r\n"),
        ("/page.html", "Accept-Encoding: gzipp\r\n"),
        ("/page.html", "Accept-Encoding: gzip\r\nVia: 1.1 proxy\r\n"),
        ("/page.html", "Accept-Encoding: gzip\r\nRange: bytes=0-9\r\nX: identity ranges\r\n"),
    ] {
        let answer = client.get(path, fields);
        let ranged = fields.contains("Range");
        if !ranged {
            assert_eq!(answer.header("content-encoding"), None, "{path} {fields}");
            assert!(answer.body == fs::read(server.www(&path[1..])).unwrap(), "{path} {fields}");
        }
    }
    let plain = client.get("/page.html", "");
    assert_eq!(plain.header("vary"), Some("Accept-Encoding"), "the plain variant varies too");
    assert!(plain.header("etag").is_some_and(|tag| !tag.starts_with("W/")));
}

#[test]
fn a_compressed_variant_is_stored_and_follows_the_file() {
    let server = site(ALL);
    let path = server.www("notes.css");
    let text = |n: u32| format!("/* version {n} */\n").repeat(200);
    for n in 1..=3 {
        fs::write(&path, text(n)).unwrap();
        let url = server.url(Proto::H1, "/notes.css");
        bolide_testkit::wait_until("the new version", || {
            let fresh = server.curl(Proto::H1).args(["--compressed"]).get(&url);
            fresh.text() == text(n)
        });
        // The same bytes for all clients, compressed once.
        let again = |_| server.connect().get("/notes.css", "Accept-Encoding: gzip\r\n").body;
        let copies: Vec<_> = (0..5).map(again).collect();
        assert!(copies.iter().all(|copy| *copy == copies[0]));
    }
}

#[test]
fn error_pages_and_returned_text_are_coded_too() {
    let server = site(
        "gzip on; gzip_min_length 0; gzip_types text/plain;
         location /text { default_type text/plain; return 200 \"many many many many words\"; }",
    );
    for (path, status, part) in [("/missing", 404, "404 Not Found"), ("/text", 200, "many many")] {
        let url = server.url(Proto::H2, path);
        let coded = server.curl(Proto::H2).field("Accept-Encoding: gzip").get(&url);
        let plain = server.curl(Proto::H2).args(["--compressed"]).get(&url);
        assert_eq!((coded.status, coded.header("content-encoding")), (status, Some("gzip")));
        assert!(plain.text().contains(part), "{}", plain.text());
    }
}
