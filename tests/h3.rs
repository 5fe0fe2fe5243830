//! HTTP/3: malformed input with aioquic, curl, and load on many workers.

use std::fs;

use bolide_testkit::load::h2load;
use bolide_testkit::server::LISTEN;
use bolide_testkit::site::HELLO;
use bolide_testkit::tools::{Companion, python};
use bolide_testkit::{Proto, TestServer, run};

use crate::{BOLIDE, report, site};

const BATTERY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/h3_battery.py");
const WINDOWS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/h3_windows.py");
const LEAVERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/h3_leavers.py");

#[test]
fn malformed_http3_gets_the_error_that_the_rfc_prescribes() {
    let server = site("location /slow/ { alias @DIR@/www/; limit_rate 100; }");
    let cert = server.home().dir().join("cert.pem");
    let port = server.https().port().to_string();
    let done = python(BATTERY, [port.as_str(), cert.to_str().unwrap()]).succeeded();
    let lines = done.text();
    let failed: Vec<String> =
        lines.lines().filter(|line| !line.contains("\"ok\": true")).map(str::to_owned).collect();
    let cases = lines.lines().count();
    assert!(cases > 90, "only {cases} cases ran: {done}");
    report(cases, &failed);
    assert_eq!(server.fetch(Proto::H3, "/hello.txt").body, HELLO, "the server still serves");
}

#[test]
fn clients_that_take_nothing_of_many_streams_cost_little() {
    let server = site("http3_max_concurrent_streams 128;");
    // The memory of a connection is measured after the first ones.
    assert_eq!(server.fetch(Proto::H3, "/big.bin").status, 200);
    let before = server.resident_kib();
    let port = server.https().port().to_string();
    let clients = Companion::start(WINDOWS, [port.as_str(), "/big.bin"]);
    assert_eq!(clients.line(), "open");
    assert_eq!(server.fetch(Proto::H3, "/hello.txt").body, HELLO, "others are served");
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 64 * 1024, "2000 streams hold {grown} KiB");
    drop(clients);
    assert_eq!(server.fetch(Proto::H3, "/hello.txt").body, HELLO);
}

#[test]
fn clients_that_vanish_are_forgotten_though_no_connection_is_kept() {
    let server =
        site("keepalive_timeout 0; client_header_timeout 1s; location = /status { stub_status; }");
    let port = server.https().port().to_string();
    let _ = python(LEAVERS, [port.as_str(), "vanish"]).succeeded();
    bolide_testkit::wait_until("the connection is forgotten", || {
        server.get("/status").text().starts_with("Active connections: 1 ")
    });
}

#[test]
fn a_client_that_confirms_nothing_does_not_hold_up_the_end() {
    let server = site("send_timeout 1s;");
    let port = server.https().port().to_string();
    let client = Companion::start(LEAVERS, [port.as_str(), "deaf"]);
    assert_eq!(client.line(), "asked");
    assert_eq!(server.stop("QUIT").code, 0);
}

#[test]
fn a_file_is_served_over_h3() {
    let server = site("");
    let reply = server.fetch(Proto::H3, "/hello.txt");
    assert_eq!((reply.status, &reply.body[..]), (200, HELLO));
    assert_eq!(reply.header("etag"), Some(bolide_testkit::site::HELLO_ETAG));
    assert_eq!(reply.header("content-length"), Some("14"));
    let missing = server.fetch(Proto::H3, "/missing");
    assert_eq!(missing.status, 404);
    assert!(missing.text().contains("404 Not Found"));
}

#[test]
fn thirty_streams_at_once_bring_thirty_whole_files() {
    let server = site("");
    let big = fs::read(server.www("big.bin")).unwrap();
    let dir = server.home().dir().join("got");
    let out = dir.join("#1");
    let url = server.url(Proto::H3, "/big.bin?[1-30]");
    let done = run(
        "curl-h3",
        ["-sSk4", "--http3-only", "-Z", "--parallel-max", "30", "--create-dirs", "-o"]
            .into_iter()
            .chain([out.to_str().unwrap(), &url]),
    );
    assert_eq!(done.code, 0, "{done}");
    for n in 1..=30 {
        assert!(fs::read(dir.join(n.to_string())).unwrap() == big, "copy {n}");
    }
}

#[test]
fn an_upload_by_h3_is_taken_and_answered() {
    let server = site("client_max_body_size 4m;");
    let upload = server.home().dir().join("upload");
    fs::write(&upload, vec![b'x'; 3_000_000]).unwrap();
    let reply = server
        .curl(Proto::H3)
        .args(["--data-binary", &format!("@{}", upload.display())])
        .attempt(&server.url(Proto::H3, "/hello.txt"));
    assert_eq!((reply.exit, reply.status), (0, 405), "{}", reply.stderr);
}

#[test]
fn responses_over_tcp_advertise_h3() {
    let server = site("");
    for proto in [Proto::H1, Proto::H2] {
        let reply = server.fetch(proto, "/hello.txt");
        let alternative = reply.header("alt-svc").unwrap_or_default();
        let wanted = format!("h3=\":{}\"", server.https().port());
        assert!(alternative.starts_with(&wanted), "{proto:?}: {alternative:?}");
    }
    assert_eq!(server.get("/hello.txt").header("alt-svc"), None, "plain HTTP says nothing");
}

/// The listeners of another server, whose options have been said.
const OTHER: &str = "listen 127.0.0.1:@HTTPS@ ssl; listen 127.0.0.1:@HTTPS@ quic; root @DIR@/www;";

#[test]
fn the_port_of_h3_may_be_one_that_clients_know() {
    let server = TestServer::with(
        BOLIDE,
        &format!(
            "http3_alt_svc 443; ssl_certificate @CERT@; ssl_certificate_key @KEY@;
             server {{ {LISTEN} }}
             server {{ {OTHER} server_name own; http3_alt_svc on; }}
             server {{ {OTHER} server_name none; http3_alt_svc off; }}"
        ),
    );
    let advertised = |host: &str| {
        let curl = server.curl(Proto::H1).args(["-H", &format!("Host: {host}")]);
        curl.attempt(&server.url(Proto::H1, "/hello.txt")).header("alt-svc").map(str::to_owned)
    };
    let own = format!("h3=\":{}\"; ma=86400", server.https().port());
    assert_eq!(advertised("localhost").as_deref(), Some("h3=\":443\"; ma=86400"));
    assert_eq!(advertised("own"), Some(own));
    assert_eq!(advertised("none"), None);
}

#[test]
fn curl_follows_alt_svc_from_h2_to_h3() {
    let server = site("");
    let cache = server.home().dir().join("alt-svc.txt");
    let url = server.url(Proto::H2, "/hello.txt");
    for version in ["2", "3"] {
        let args = ["-sSk4", "--alt-svc", cache.to_str().unwrap(), "-o", "/dev/null"];
        let done = run("curl-h3", args.into_iter().chain(["-w", "%{http_version}", &url]));
        assert_eq!(done.succeeded().text(), version);
    }
}

#[test]
fn four_workers_on_one_port_lose_no_packet_of_each_other() {
    let server = TestServer::workers(
        BOLIDE,
        4,
        &format!("server {{ {} keepalive_requests 1000000; }}", LISTEN),
    );
    let url = server.url(Proto::H3, "/hello.txt");
    h2load(Proto::H3, &url, &["-n", "4000", "-c", "200", "-m", "4"]).expect_flawless();
    h2load(Proto::H3, &url, &["-n", "400", "-c", "400", "-m", "1"]).expect_flawless();
    let big = server.url(Proto::H3, "/big.bin");
    h2load(Proto::H3, &big, &["-n", "60", "-c", "20", "-m", "3"]).expect_flawless();
}

#[test]
fn four_workers_survive_rebinding_and_malformed_input() {
    let server = TestServer::workers(BOLIDE, 4, &format!("server {{ {} }}", LISTEN));
    let cert = server.home().dir().join("cert.pem");
    let port = server.https().port().to_string();
    for _ in 0..10 {
        let args = [port.as_str(), cert.to_str().unwrap(), "migration", "early_data"];
        let done = python(BATTERY, args).succeeded();
        assert!(!done.text().contains("\"ok\": false"), "{done}");
    }
}
