//! HTTP/2 with h2spec and curl, over TLS and with prior knowledge.

use std::fs;

use bolide_testkit::site::HELLO;
use bolide_testkit::{Proto, run};

use crate::site;

/// Where a request without its end is not answered: behind an answer its stream would be reset, and
/// what h2spec looks for on such streams is decided by which comes first.
const READ: &str = "location = /read { proxy_pass http://127.0.0.1:@HTTP@/page.html; }";

/// Runs h2spec and checks that each of its tests passed.
fn h2spec(server: &bolide_testkit::TestServer, port: u16, more: &[&str]) {
    let report = server.home().dir().join("h2spec.xml");
    let (port, file) = (port.to_string(), report.to_str().unwrap());
    let mut args = vec!["-h", "127.0.0.1", "-p", &port, "-P", "/read", "-o", "3", "-j", file];
    args.extend(more);
    let done = run("h2spec", args);
    let xml = fs::read_to_string(&report).unwrap_or_else(|e| panic!("no report: {e}\n{done}"));
    let tests = xml.matches("<testcase ").count();
    let failed: Vec<&str> = xml
        .split("<testcase ")
        .skip(1)
        .filter(|case| case.contains("<failure") || case.contains("<error"))
        .map(|case| case.split(" time=").next().unwrap_or(case))
        .collect();
    assert!(tests >= 140, "only {tests} tests ran:\n{done}");
    assert!(failed.is_empty(), "{} of {tests} failed:\n{}", failed.len(), failed.join("\n"));
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(server.get("/hello.txt").body, HELLO, "the server still serves");
}

#[test]
fn h2spec_passes_by_prior_knowledge() {
    let server = site(READ);
    h2spec(&server, server.http().port(), &[]);
}

#[test]
fn h2spec_passes_over_tls() {
    let server = site(READ);
    h2spec(&server, server.https().port(), &["-t", "-k"]);
}

#[test]
fn a_file_is_served_over_h2_and_h2c() {
    let server = site("");
    for proto in [Proto::H2, Proto::H2c] {
        let reply = server.fetch(proto, "/hello.txt");
        assert_eq!((reply.status, &reply.body[..]), (200, HELLO));
        assert_eq!(reply.header("etag"), Some(bolide_testkit::site::HELLO_ETAG));
        assert_eq!(reply.header("content-type"), Some("text/plain"));
        assert_eq!(reply.header("connection"), None);
    }
}

#[test]
fn fifty_streams_at_once_bring_fifty_whole_files() {
    let server = site("");
    let big = fs::read(server.www("big.bin")).unwrap();
    let dir = server.home().dir().join("got");
    let out = dir.join("#1");
    let url = server.url(Proto::H2, "/big.bin?[1-50]");
    let done = run(
        "curl-h3",
        ["-sSk4", "--http2", "-Z", "--parallel-max", "50", "--create-dirs", "-o"]
            .into_iter()
            .chain([out.to_str().unwrap(), &url]),
    );
    assert_eq!(done.code, 0, "{done}");
    for n in 1..=50 {
        assert!(fs::read(dir.join(n.to_string())).unwrap() == big, "copy {n}");
    }
}

#[test]
fn uploads_by_h2_are_taken_and_answered() {
    let server = site("client_max_body_size 4m;");
    let upload = server.home().dir().join("upload");
    fs::write(&upload, vec![b'x'; 3_000_000]).unwrap();
    for proto in [Proto::H2, Proto::H2c] {
        let reply = server
            .curl(proto)
            .args(["--data-binary", &format!("@{}", upload.display())])
            .attempt(&server.url(proto, "/hello.txt"));
        assert_eq!((reply.exit, reply.status), (0, 405), "{}", reply.stderr);
    }
}

#[test]
fn h2_is_off_unless_it_is_configured() {
    let server = crate::http(
        "server { listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl; root @DIR@/www;
                  ssl_certificate @CERT@; ssl_certificate_key @KEY@; }",
    );
    let reply = server.curl(Proto::H2).attempt(&server.url(Proto::H2, "/hello.txt"));
    assert_eq!((reply.status, reply.version.as_str()), (200, "1.1"));
}

#[test]
fn a_field_is_as_long_as_it_is_encoded() {
    let server = site("location /long { return 200 ok; }");
    // The Huffman code of `a` has five bits; `large_client_header_buffers` allows 8 KiB.
    for (len, cookie, target) in [(13_000, 200, 200), (13_200, 400, 414)] {
        let long = "a".repeat(len);
        for proto in [Proto::H2, Proto::H2c] {
            let get = |target: &str, field: &str| {
                server.curl(proto).field(field).get(&server.url(proto, target)).status
            };
            assert_eq!(get("/long", &format!("Cookie: {long}")), cookie, "{proto:?} {len}");
            assert_eq!(get(&format!("/long?{long}"), "X: y"), target, "{proto:?} {len}");
        }
    }
}
