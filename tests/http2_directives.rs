//! Directives of HTTP/2 and HTTP/3 connections: the protocols of each server, the lifetime of a
//! connection, and the obsolete spellings.

use bolide_testkit::curl::{Curl, CurlReply};
use bolide_testkit::server::Home;
use bolide_testkit::{Proto, TestServer};

use crate::{BOLIDE, report};

/// Servers `a.test` (the default) and others on one port, over TLS and QUIC.
fn servers(listed: &[(&str, &str)]) -> TestServer {
    let blocks: Vec<String> = listed
        .iter()
        .map(|(name, text)| {
            format!(
                "server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl;
                 listen 127.0.0.1:@HTTPS@ quic; server_name {name}; {text}
                 location / {{ return 200 \"$server_protocol $connection_requests\"; }} }}"
            )
        })
        .collect();
    let text = format!("ssl_certificate @CERT@; ssl_certificate_key @KEY@; {}", blocks.concat());
    TestServer::with(BOLIDE, &text)
}

fn curl(server: &TestServer, proto: Proto, name: &str) -> (Curl, String) {
    let port = server.home().port(1);
    let curl = Curl::new(proto).args(["--resolve".to_owned(), format!("{name}:{port}:127.0.0.1")]);
    (curl, format!("https://{name}:{port}"))
}

fn ask(server: &TestServer, proto: Proto, name: &str, host: &str) -> CurlReply {
    let (curl, url) = curl(server, proto, name);
    curl.field(&format!("Host: {host}")).attempt(&format!("{url}/"))
}

#[test]
fn a_server_is_reached_by_its_configured_versions() {
    let server = servers(&[
        ("a.test", "http2 on;"),
        ("b.test", "http2 off; http3 off;"),
        ("*.c.test", "http2 on;"),
        ("~^d[0-9]\\.test$", "http3 off;"),
    ]);
    let rows: &[(Proto, &str, &str, u16, &str)] = &[
        (Proto::H2, "a.test", "a.test", 200, "2"),
        (Proto::H3, "a.test", "a.test", 200, "3"),
        (Proto::H2, "x.c.test", "x.c.test", 200, "2"),
        // ALPN offers the protocols of the requested server.
        (Proto::H2, "b.test", "b.test", 200, "1.1"),
        (Proto::H2, "d1.test", "d1.test", 200, "1.1"),
        (Proto::H1, "b.test", "b.test", 200, "1.1"),
        // A connection for one server cannot be used for another.
        (Proto::H2, "a.test", "b.test", 421, "2"),
        (Proto::H3, "a.test", "b.test", 421, "3"),
        (Proto::H2, "a.test", "x.c.test", 200, "2"),
        (Proto::H1, "b.test", "a.test", 200, "1.1"),
        (Proto::H2, "a.test", "unknown.test", 200, "2"),
    ];
    let mut failures = Vec::new();
    for (proto, name, host, status, version) in rows {
        let reply = ask(&server, *proto, name, host);
        if (reply.status, reply.version.as_str()) != (*status, *version) {
            failures.push(format!("{proto:?} {name} {host}: {} {}", reply.status, reply.version));
        }
    }
    for name in ["b.test", "d7.test"] {
        let reply = ask(&server, Proto::H3, name, name);
        if reply.exit == 0 {
            failures.push(format!("{name} over HTTP/3: {}", reply.status));
        }
    }
    report(rows.len(), &failures);
    assert!(server.error_log().contains(
        "client attempted to request the server name for which the negotiated protocol is disabled"
    ));
}

#[test]
fn listen_http2_counts_for_all_servers_of_the_address_with_a_warning() {
    let home = Home::new(BOLIDE);
    let server = TestServer::start(
        home,
        &format!(
            "{}http {{ ssl_certificate @CERT@; ssl_certificate_key @KEY@;
             server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl http2;
                       server_name a.test; return 200 a; }}
             server {{ listen 127.0.0.1:@HTTPS@ ssl; server_name b.test; http2 off;
                       return 200 b; }} }}",
            bolide_testkit::server::prelude(1)
        ),
    );
    assert!(server.error_log().contains("the \"listen ... http2\" directive is deprecated"));
    assert_eq!(ask(&server, Proto::H2, "b.test", "b.test").version, "2");
    assert_eq!(ask(&server, Proto::H2, "a.test", "b.test").text(), "b");
}

/// The number of connections that `count` requests to a server take, and of responses.
fn connections(server: &TestServer, proto: Proto, name: &str, count: usize) -> (usize, usize) {
    let port = server.home().port(1);
    let version = if proto == Proto::H3 { "--http3-only" } else { "--http2" };
    let (resolve, url) =
        (format!("{name}:{port}:127.0.0.1"), format!("https://{name}:{port}/[1-{count}]"));
    let line_format = "%{num_connects} %{http_code}\n";
    let args = [
        "-sk",
        "-m",
        "20",
        version,
        "--resolve",
        &resolve,
        "-o",
        "/dev/null",
        "-w",
        line_format,
        &url,
    ];
    let said = bolide_testkit::run("curl-h3", args).succeeded().text();
    let connects = said.lines().filter(|line| line.starts_with("1 ")).count();
    (connects, said.lines().filter(|line| line.ends_with(" 200")).count())
}

#[test]
fn a_connection_ends_after_its_requests_and_no_answer_is_lost() {
    let server = servers(&[("a.test", "http2 on;"), ("b.test", "http2 on; keepalive_requests 3;")]);
    for proto in [Proto::H2, Proto::H3] {
        assert_eq!(connections(&server, proto, "a.test", 6), (1, 6), "{proto:?}");
        assert_eq!(connections(&server, proto, "b.test", 6), (2, 6), "{proto:?}");
    }
}

#[test]
fn a_connection_ends_with_the_request_after_keepalive_time() {
    let server = servers(&[("a.test", "http2 on;"), ("b.test", "http2 on; keepalive_time 0;")]);
    for proto in [Proto::H2, Proto::H3] {
        assert_eq!(connections(&server, proto, "a.test", 3), (1, 3), "{proto:?}");
        // The first request may come with the first bytes, when no time has passed.
        let (connects, answers) = connections(&server, proto, "b.test", 4);
        assert!(connects >= 2 && answers == 4, "{proto:?}: {connects} {answers}");
    }
}

#[test]
fn over_http1_the_location_sets_the_idle_timeout() {
    let server = crate::http(
        "server { listen 127.0.0.1:@HTTP@; keepalive_timeout 1h; location /a { return 200 a; }
         location /b { keepalive_timeout 50ms; return 200 b; } }",
    );
    let mut long = server.connect();
    let mut short = server.connect();
    assert_eq!(long.get("/a", "").status, 200);
    assert_eq!(short.get("/b", "").status, 200);
    assert!(short.is_closed());
    assert_eq!(long.get("/a", "").status, 200);
}

#[test]
fn a_host_key_must_be_there_and_hold_something() {
    let home = Home::new(BOLIDE);
    home.write("key", "0123456789abcdef0123456789abcdef");
    home.write("empty", "");
    let rows: &[(&str, &str)] = &[
        ("quic_host_key key;", ""),
        (
            "quic_host_key none;",
            "open() \"DIR/none\" failed (2: No such file or directory) in DIR/h.conf:3",
        ),
        ("quic_host_key empty;", "\"DIR/empty\" zero key size in DIR/h.conf:3"),
        ("http3_hq off;", ""),
        ("http3_hq on;", "\"http3_hq on\" is not implemented in DIR/h.conf:3"),
        (
            "http3_hq x;",
            "invalid value \"x\" in \"http3_hq\" directive, it must be \"on\" or \"off\" in DIR/h.conf:3",
        ),
        (
            "http2_max_requests 5;",
            "the \"http2_max_requests\" directive is obsolete, use the \"keepalive_requests\" directive instead in DIR/h.conf:3",
        ),
        (
            "http2_recv_timeout 5;",
            "the \"http2_recv_timeout\" directive is obsolete, use the \"client_header_timeout\" directive instead in DIR/h.conf:3",
        ),
        (
            "http2_idle_timeout 5;",
            "the \"http2_idle_timeout\" directive is obsolete, use the \"keepalive_timeout\" directive instead in DIR/h.conf:3",
        ),
        (
            "http2_max_field_size 5;",
            "the \"http2_max_field_size\" directive is obsolete, use the \"large_client_header_buffers\" directive instead in DIR/h.conf:3",
        ),
        (
            "http2_max_header_size 5;",
            "the \"http2_max_header_size\" directive is obsolete, use the \"large_client_header_buffers\" directive instead in DIR/h.conf:3",
        ),
        (
            "http2_push_preload on;",
            "the \"http2_push_preload\" directive is obsolete, ignored in DIR/h.conf:3",
        ),
        ("http2_chunk_size 0;", "the http2 chunk size cannot be zero in DIR/h.conf:3"),
    ];
    let mut failures = Vec::new();
    for (line, wanted) in rows {
        home.write("h.conf", &format!(
            "events {{}} http {{\nserver {{ listen 127.0.0.1:@HTTPS@ quic; ssl_certificate @CERT@; ssl_certificate_key @KEY@;\n{line}\n}} }}"
        ));
        let done = home.run(&["-t", "-q", "-c", "h.conf"]);
        let wanted = wanted.replace("DIR", home.dir().to_str().unwrap());
        let is_warning = wanted.contains("obsolete");
        let is_fine = done.code == 0 && (done.stderr.is_empty() == wanted.is_empty());
        if !done.stderr.contains(&wanted) || is_fine != (wanted.is_empty() || is_warning) {
            failures.push(format!("{line}: {done}"));
        }
    }
    report(rows.len(), &failures);
}
