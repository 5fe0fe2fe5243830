//! `charset_map` in each protocol: what is recoded, what stays, and of which parts.

use std::fs;

use bolide_testkit::server::LISTEN;
use bolide_testkit::{CurlReply, Proto, TestServer, wait_until};

use crate::{http, report, site};

const PROTOCOLS: [Proto; 4] = [Proto::H1, Proto::H2, Proto::H2c, Proto::H3];
const MAPS: &str = "charset_map koi8-r windows-1251 { E1 C0; C1 E0; }
     charset_map koi8-r utf-8 { E1 D090; C1 D0B0; }";

/// A server with these locations, behind maps.
fn mapped(locations: &str) -> TestServer {
    let server = format!("{LISTEN} default_type text/html; gzip_min_length 1; {locations}");
    http(&format!("{MAPS} server {{ {server} }}"))
}

fn kind(answer: &CurlReply) -> &str {
    answer.header("content-type").unwrap_or("")
}

#[test]
fn large_files_are_recoded_by_each_protocol_whatever_their_pieces_are() {
    let server = mapped(
        "gzip on;
         location /wide/ { alias @DIR@/www/; charset utf-8; source_charset koi8-r; }
         location /narrow/ { alias @DIR@/www/; charset koi8-r; source_charset utf-8; }
         location /even/ { alias @DIR@/www/; charset windows-1251; source_charset koi8-r; }",
    );
    let koi: Vec<u8> = (0..300_000).map(|n| [0xe1, 0xc1, b'a'][n % 3]).collect();
    let utf: String = (0..300_000).map(|n| ['А', 'а', 'a'][n % 3]).collect();
    let win: Vec<u8> = (0..300_000).map(|n| [0xc0, 0xe0, b'a'][n % 3]).collect();
    fs::write(server.www("koi"), &koi).unwrap();
    fs::write(server.www("utf"), &utf).unwrap();
    let mut failures = Vec::new();
    for proto in PROTOCOLS {
        for coding in ["identity", "gzip"] {
            for (path, wanted, charset, is_sized) in [
                ("/wide/koi", utf.as_bytes(), "utf-8", false),
                ("/narrow/utf", &koi[..], "koi8-r", false),
                ("/even/koi", &win[..], "windows-1251", coding == "identity"),
            ] {
                let accept = format!("Accept-Encoding: {coding}");
                let url = server.url(proto, path);
                let answer = server.curl(proto).field(&accept).args(["--compressed"]).get(&url);
                let is_right = answer.body == wanted
                    && kind(&answer) == format!("text/html; charset={charset}")
                    && answer.header("content-length").is_some() == is_sized;
                if !is_right {
                    failures.push(format!("{proto:?} {path} {coding}: {:?}", answer.headers));
                }
            }
        }
    }
    report(24, &failures);
}

#[test]
fn ranges_apply_to_the_converted_body_if_its_length_is_known() {
    let server = mapped(
        "location /wide/ { alias @DIR@/www/; charset utf-8; source_charset koi8-r; }
         location /even/ { alias @DIR@/www/; charset windows-1251; source_charset koi8-r; }",
    );
    // More than what is kept in memory, so that parts are read of the file.
    let mut large = vec![0xe1; 3_000_000];
    large[2_999_999] = 0xc1;
    fs::write(server.www("large"), &large).unwrap();
    let mut failures = Vec::new();
    for proto in PROTOCOLS {
        let get = |path: &str, range: &str| {
            let field = format!("Range: bytes={range}");
            server.curl(proto).field(&field).get(&server.url(proto, path))
        };
        let one = get("/even/large", "2999998-");
        if one.status != 206 || one.body != [0xc0, 0xe0] {
            failures.push(format!("{proto:?}: {} {:?}", one.status, one.body));
        }
        let two = get("/even/large", "0-1,2999998-2999999");
        let text: String = two.body.iter().map(|byte| char::from(*byte)).collect();
        let has_parts = text.contains("\r\n\r\n\u{c0}\u{c0}\r\n")
            && text.contains("\r\n\r\n\u{c0}\u{e0}\r\n")
            && text.matches("Content-Type: text/html; charset=windows-1251\r\n").count() == 2;
        if two.status != 206 || !has_parts {
            failures.push(format!("{proto:?}: {} {text:?}", two.status));
        }
        let whole = get("/wide/large", "0-1");
        if whole.status != 200 || whole.body.len() != 6_000_000 {
            failures.push(format!("{proto:?}: {} {}", whole.status, whole.body.len()));
        }
    }
    report(12, &failures);
}

#[test]
fn a_charset_without_a_map_is_not_named() {
    let server =
        site("location / { default_type text/html; charset $arg_c; source_charset koi8-r; }");
    fs::write(server.www("page"), b"\xe1").unwrap();
    let answer = server.curl(Proto::H1).get(&server.url(Proto::H1, "/page?c=utf-8"));
    assert_eq!((answer.body.as_slice(), kind(&answer)), (&b"\xe1"[..], "text/html"));
    let line = "no \"charset_map\" between the charsets \"koi8-r\" and \"utf-8\"";
    wait_until(line, || server.error_log().contains(line));
}

/// Published for sites with files of many types.
#[test]
fn a_charset_may_depend_on_the_head_of_its_response() {
    let origin = bolide_testkit::origin::TestUpstream::start();
    for (path, kind) in [("/a", "text/html"), ("/b", "image/png")] {
        let fields = format!("Content-Type: {kind}\r\nX-Level: 7");
        origin.say(path, bolide_testkit::origin::answer(&fields, "x"));
    }
    let server = http(&format!(
        "map $sent_http_content_type $charset {{ ~^text/html utf-8; ~javascript koi8-r; }}
         map $sent_http_content_type $kept {{ ~^text/html no-cache; default max-age; }}
         map $status $of_status {{ 404 latin1; default utf-8; }}
         server {{ {LISTEN} charset_types *; charset $charset; add_header X-Kept $kept;
             location = /r.js {{ return 200 x; default_type application/javascript; }}
             location = /status {{ charset $of_status; return 404 x; }}
             location /a {{ proxy_pass http://{0}; }} location /b {{ proxy_pass http://{0}; }} }}",
        origin.address()
    ));
    fs::write(server.www("i.html"), "x").unwrap();
    for (path, wanted, kept) in [
        ("/i.html", "text/html; charset=utf-8", "no-cache"),
        ("/r.js", "application/javascript; charset=koi8-r", "max-age"),
        ("/a", "text/html; charset=utf-8", "no-cache"),
        ("/b", "image/png", "max-age"),
    ] {
        let reply = server.get(path);
        assert_eq!(reply.header("content-type"), Some(wanted), "{path}");
        assert_eq!(reply.header("x-kept"), Some(kept), "{path}");
    }
    let status = server.get("/status");
    assert_eq!(status.header("content-type"), Some("application/octet-stream; charset=latin1"));
}
