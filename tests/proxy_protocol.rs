//! The PROXY protocol, in cleartext and before TLS.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use bolide_testkit::{TestServer, wait_until};

use crate::{http, report};

const SHOW: &str = "return 200 \"$proxy_protocol_addr|$proxy_protocol_port|\
    $proxy_protocol_server_addr|$proxy_protocol_server_port|$remote_addr|\
    $proxy_protocol_tlv_alpn|$proxy_protocol_tlv_0xea\";";

const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

fn server(more: &str) -> TestServer {
    http(&format!("server {{ listen 127.0.0.1:@HTTP@ proxy_protocol; {more} {SHOW} }}"))
}

/// All bytes of the response to these pieces, sent in sequence.
fn ask(server: &TestServer, pieces: &[&[u8]]) -> String {
    let mut peer = TcpStream::connect(server.http()).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    peer.set_nodelay(true).unwrap();
    for piece in pieces {
        let _gone = peer.write_all(piece);
    }
    let mut got = Vec::new();
    let _reset = peer.read_to_end(&mut got);
    String::from_utf8_lossy(&got).into_owned()
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

fn v2(version_command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let len = u16::try_from(rest.len()).unwrap().to_be_bytes();
    [&b"\r\n\r\n\0\r\nQUIT\n"[..], &[version_command, family], &len, rest].concat()
}

const V4: &[u8] = &[192, 0, 2, 1, 198, 51, 100, 7, 0, 80, 0, 90];

#[test]
fn both_versions_carry_the_client_address() {
    let server = server("");
    let with_fields = [V4, b"\x01\0\x02h2\xea\0\x04vpce"].concat();
    let rows: [(Vec<u8>, &str); 7] = [
        (
            b"PROXY TCP4 192.0.2.1 198.51.100.7 80 90\r\n".to_vec(),
            "192.0.2.1|80|198.51.100.7|90|127.0.0.1||",
        ),
        (b"PROXY TCP6 2001:db8::1 ::2 1 2\r\n".to_vec(), "2001:db8::1|1|::2|2|127.0.0.1||"),
        (b"PROXY UNKNOWN\r\n".to_vec(), "||||127.0.0.1||"),
        (v2(0x21, 0x11, V4), "192.0.2.1|80|198.51.100.7|90|127.0.0.1||"),
        (v2(0x21, 0x11, &with_fields), "192.0.2.1|80|198.51.100.7|90|127.0.0.1|h2|vpce"),
        (v2(0x20, 0x11, V4), "||||127.0.0.1||"),
        (v2(0x21, 0x31, &[0; 216]), "||||127.0.0.1||"),
    ];
    let mut failures = Vec::new();
    for (header, wanted) in &rows {
        let whole = [&header[..], ASK].concat();
        let drops: Vec<&[u8]> = whole.chunks(1).collect();
        for (how, pieces) in [("at once", vec![&whole[..]]), ("in drops", drops)] {
            let answer = ask(&server, &pieces);
            if body(&answer) != *wanted {
                failures.push(format!("{} {how}: {answer}", header.escape_ascii()));
            }
        }
    }
    report(rows.len(), &failures);
}

#[test]
fn a_malformed_proxy_header_closes_the_connection() {
    let server = server("");
    let rows: [(Vec<u8>, &str); 5] = [
        (
            ASK.to_vec(),
            "broken header: \"GET / HTTP/1.1\" while reading PROXY protocol, client: 127.0.0.1, \
             server: 127.0.0.1:",
        ),
        (
            b"PROXY TCP4 192.0.2.1 80\r\n".to_vec(),
            "broken header: \"PROXY TCP4 192.0.2.1 80\" while",
        ),
        (v2(0x31, 0x11, V4), "unknown PROXY protocol version: 3 while reading PROXY protocol"),
        (v2(0x21, 0x11, &[0; 5000]), "header is too large while reading PROXY protocol"),
        (v2(0x21, 0x11, &V4[..8]), ""),
    ];
    let mut failures = Vec::new();
    for (header, wanted) in &rows {
        let answer = ask(&server, &[&[&header[..], ASK].concat()]);
        if !answer.is_empty() {
            failures.push(format!("{}: {answer:?}", header.escape_ascii()));
        }
        wait_until(wanted, || server.error_log().contains(wanted));
    }
    report(rows.len(), &failures);
    assert!(ask(&server, &[b"PROXY UNKNOWN\r\n", ASK]).starts_with("HTTP/1.1 200"));
}

#[test]
fn a_proxy_header_must_arrive_in_time() {
    let server = server("client_header_timeout 1s;");
    assert_eq!(ask(&server, &[b"PROXY TCP4 192.0.2.1 "]), "");
    assert_eq!(ask(&server, &[]), "");
}

#[test]
fn real_ip_header_proxy_protocol_uses_the_header() {
    let server = http(
        "server { listen 127.0.0.1:@HTTP@ proxy_protocol; set_real_ip_from 127.0.0.1;
           real_ip_header proxy_protocol;
           return 200 \"$remote_addr $remote_port $realip_remote_addr\"; }",
    );
    for (header, wanted) in [
        ("PROXY TCP4 192.0.2.1 198.51.100.7 80 90\r\n", "192.0.2.1 80 127.0.0.1"),
        ("PROXY TCP4 192.0.2.1 198.51.100.7 0 90\r\n", "192.0.2.1  127.0.0.1"),
    ] {
        assert_eq!(body(&ask(&server, &[header.as_bytes(), ASK])), wanted);
    }
    let answer = ask(&server, &[b"PROXY TCP4 999.0.2.1 198.51.100.7 80 90\r\n", ASK]);
    assert!(body(&answer).starts_with("127.0.0.1 "), "{answer}");
}

#[test]
fn the_header_comes_before_the_handshake() {
    let server = http(&format!(
        "server {{ listen 127.0.0.1:@HTTP@ ssl http2 proxy_protocol; ssl_certificate @CERT@;
           ssl_certificate_key @KEY@; {SHOW} }}"
    ));
    for version in ["--http1.1", "--http2"] {
        let done = std::process::Command::new("curl")
            .args(["-sk", version, "--haproxy-protocol", "-w", " %{http_version}"])
            .arg(format!("https://{}/", server.http()))
            .output()
            .unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        assert!(text.starts_with("127.0.0.1|"), "{version}: {text}");
        let ends = if version == "--http2" { " 2" } else { " 1.1" };
        assert!(text.ends_with(ends), "{version}: {text}");
    }
}

#[test]
fn a_client_that_a_local_proxy_forwards_may_not_purge() {
    let server = http(
        "server { listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@P4@ proxy_protocol; page_cache on;
             location / { proxy_pass http://127.0.0.1:@P5@; } }
         server { listen 127.0.0.1:@P5@; return 200 page; }",
    );
    let status = |port: u16, header: &str, method: &str| {
        let mut peer = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let request =
            format!("{header}{method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        peer.write_all(request.as_bytes()).unwrap();
        let mut got = Vec::new();
        let _reset = peer.read_to_end(&mut got);
        String::from_utf8_lossy(&got).split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(status(server.http().port(), "", "PURGE"), "200");
    for header in [
        "PROXY TCP4 203.0.113.9 10.9.9.9 1 80\r\n",
        "PROXY TCP4 127.0.0.1 127.0.0.1 1 80\r\n",
        "PROXY UNKNOWN\r\n",
    ] {
        for method in ["PURGE", "BAN", "REFRESH"] {
            let got = status(server.home().port(4), header, method);
            assert_eq!(got, "403", "{method} after {header}");
        }
    }
}
