//! The predefined log format `combined_json`: each line is JSON, whatever the request was.

use bolide_testkit::server::LISTEN;
use bolide_testkit::tools::python;
use bolide_testkit::{Proto, TestApp, TestServer};

use crate::http;

/// The members `names` of each of `lines` lines of the access log, read by a strict parser.
fn members(server: &TestServer, lines: usize, names: &[&str]) -> Vec<String> {
    let _lines = server.access_lines(lines);
    let log = server.home().dir().join("logs/access.log");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/json_lines.py");
    let args = [log.to_str().unwrap()].into_iter().chain(names.iter().copied());
    let read = python(script, args).succeeded().text();
    let found: Vec<String> = read.lines().map(str::to_owned).collect();
    assert_eq!(found.len(), lines, "{read}");
    found
}

fn json_site(block: &str, server: &str) -> TestServer {
    http(&format!(
        "{block} server {{ {LISTEN} access_log @DIR@/logs/access.log combined_json; {server} }}"
    ))
}

#[test]
fn every_protocol_has_lines_of_json() {
    let server = json_site("", "");
    for proto in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3] {
        let curl = server.curl(proto).args(["-A", "agent \"x\" \\ é", "-e", "http://r/"]);
        let _reply = curl.get(&server.url(proto, "/hello.txt?q=%22"));
    }
    let names = ["status", "scheme", "host", "request_uri", "server_protocol", "http_referer"];
    let of = |scheme: &str, version: &str| {
        format!("200|{scheme}|localhost|/hello.txt?q=%22|{version}|http://r/")
    };
    assert_eq!(
        members(&server, 4, &names),
        [
            of("https", "HTTP/1.1"),
            of("https", "HTTP/2.0"),
            of("http", "HTTP/2.0"),
            of("https", "HTTP/3.0"),
        ]
    );
    for line in members(&server, 4, &["http_user_agent", "body_bytes_sent"]) {
        assert_eq!(line, "agent \"x\" \\ é|14");
    }
    for line in members(&server, 4, &["ssl_protocol", "ssl_cipher", "scheme"]) {
        let is_secure = line.ends_with("|https");
        assert_eq!(line.starts_with("TLSv1.3|TLS_"), is_secure, "{line}");
    }
    for line in members(&server, 4, &["msec", "request_time", "request_length", "bytes_sent"]) {
        let numbers: Vec<f64> = line.split('|').map(|number| number.parse().unwrap()).collect();
        assert!(numbers[0] > 1.7e9 && numbers[2] > 0.0 && numbers[3] > 14.0, "{line}");
    }
}

#[test]
fn ugly_requests_have_lines_of_json() {
    let server = json_site("", "location /none { return 444; }");
    let ugly: [&[u8]; 8] = [
        b"GET /\xff\xfe\x80%00 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /%ff%22%5c HTTP/1.1\r\nHost: a\r\nUser-Agent: \xc3(\xe9\x80\"\t\xf0\r\n\r\n",
        b"junk\r\n\r\n",
        b"\x16\x03\x01\x00\xff\x00\"\\\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /none HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /hello.txt\r\n",
        b"GET / HTTP/1.1\r\nHost: \xed\xa0\x80\"\r\nAuthorization: Basic /w==\r\n\r\n",
    ];
    for bytes in ugly {
        let mut client = server.connect();
        client.send(bytes).finish();
        let _answer = client.to_end();
    }
    let found = members(&server, 8, &["status", "request_method", "server_protocol"]);
    for line in ["400||", "444|GET|HTTP/1.1", "200|GET|"] {
        assert!(found.iter().any(|one| one == line), "{line}: {found:?}");
    }
    let agents = members(&server, 8, &["http_user_agent"]);
    assert!(agents.contains(&"\u{fffd}(\u{fffd}\"\t\u{fffd}".to_owned()), "{agents:?}");
}

#[test]
fn lines_have_upstream_servers_and_the_reason_of_the_cache() {
    let app = TestApp::start();
    app.say("/kept", "Cache-Control: max-age=60");
    app.say("/private", "Cache-Control: private");
    let pass = format!(
        "fastcgi_param REQUEST_URI $request_uri; fastcgi_param REQUEST_METHOD $request_method;
         fastcgi_pass {};",
        app.address()
    );
    let server = json_site(
        "",
        &format!(
            "page_cache on; location / {{ {pass} }} location /by {{ page_cache_bypass 1; {pass} }}
             location = /hello.txt {{ page_cache off; }}"
        ),
    );
    for path in ["/kept", "/kept", "/private", "/by", "/hello.txt"] {
        let _answer = server.connect().get(path, "");
    }
    let names = ["request_uri", "upstream_cache_status", "page_cache_reason"];
    assert_eq!(
        members(&server, 5, &names),
        [
            "/kept|MISS|asked",
            "/kept|HIT|asked",
            "/private|MISS|private",
            "/by|BYPASS|bypass",
            "/hello.txt||",
        ]
    );
    let names = ["upstream_addr", "upstream_status", "upstream_response_time"];
    let asked = members(&server, 5, &names);
    let address = app.address();
    for (line, is_asked) in asked.iter().zip([true, false, true, true, false]) {
        match is_asked {
            true => assert!(line.starts_with(&format!("{address}|200|0.")), "{line}"),
            false => assert_eq!(line, "||"),
        }
    }
    for line in members(&server, 5, &["upstream_connect_time", "upstream_header_time"]) {
        assert!(line == "|" || line.starts_with("0.") && line.contains("|0."), "{line}");
    }
}

#[test]
fn a_format_of_ones_own_takes_its_place() {
    let server = json_site("log_format combined_json '[$status]';", "");
    server.get("/hello.txt");
    assert_eq!(server.access_lines(1), ["[200]"]);
}
