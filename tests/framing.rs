//! Directives of HTTP/2, HTTP/3 and TLS below the responses: sizes of frames and records, windows,
//! transport parameters, address validation. `tests/framing.py` is the client.

use bolide_testkit::TestServer;
use bolide_testkit::server::Home;
use bolide_testkit::tools::python;

use crate::{BOLIDE, report};

const ASK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/framing.py");
const CERTIFIED: &str = "ssl_certificate @CERT@; ssl_certificate_key @KEY@;";

/// The server's behaviour on `port` in each case, one line each.
pub(crate) fn seen(port: u16, cases: &[&str]) -> Vec<String> {
    let port = port.to_string();
    let args = std::iter::once(port.as_str()).chain(cases.iter().copied());
    python(ASK, args).succeeded().text().lines().map(str::to_owned).collect()
}

/// Checks rows of (port number, case, expected behaviour).
fn expect(server: &TestServer, rows: &[(usize, &str, &str)]) {
    let mut failures = Vec::new();
    for number in 0..3 {
        let rows: Vec<_> = rows.iter().filter(|row| row.0 == number).collect();
        let cases: Vec<&str> = rows.iter().map(|row| row.1).collect();
        if cases.is_empty() {
            continue;
        }
        let found = seen(server.home().port(number), &cases);
        assert_eq!(found.len(), rows.len(), "{found:?}");
        failures.extend(
            found
                .iter()
                .zip(rows)
                .filter(|(found, row)| *found != row.2)
                .map(|(found, row)| format!("{}: {found}, but wanted: {}", row.1, row.2)),
        );
    }
    report(rows.len(), &failures);
}

#[test]
fn http2_chunk_size_is_the_largest_data_frame_of_the_location_that_answers() {
    let server = crate::http(
        "http2_chunk_size 5000;
         server { listen 127.0.0.1:@HTTP@; http2 on; root @DIR@/www;
           location /own/ { http2_chunk_size 1000; alias @DIR@/www/;
                            location /own/more/ { alias @DIR@/www/; } }
           location /moved { http2_chunk_size 7; rewrite ^ /own/big.bin; }
           location /one { http2_chunk_size 1; return 200 0123456789; }
           location /large/ { http2_chunk_size 40000; alias @DIR@/www/; } }
         server { listen 127.0.0.1:@HTTPS@; http2 on; root @DIR@/www;
           location /usual/ { http2_chunk_size 16k; alias @DIR@/www/; }
           location /server/ { alias @DIR@/www/; } }",
    );
    let len = std::fs::metadata(server.www("big.bin")).unwrap().len();
    let all = |largest: u32| format!("largest {largest}; bytes {len}");
    expect(
        &server,
        &[
            (0, "h2 data /big.bin", &all(5000)),
            (0, "h2 data /own/big.bin", &all(1000)),
            (0, "h2 data /own/more/big.bin", &all(1000)),
            (0, "h2 data /moved", &all(1000)),
            (0, "h2 data /one", "largest 1; bytes 10"),
            // The client's limit decides.
            (0, "h2 data /large/big.bin", &all(16_384)),
            (0, "h2 data /large/big.bin 20000", &all(20_000)),
            (0, "h2 data /large/big.bin 1000000", &all(40_000)),
            (0, "h2 data /own/big.bin 1000000", &all(1000)),
            (1, "h2 data /server/big.bin", &all(5000)),
            (1, "h2 data /usual/big.bin 1000000", &all(16_384)),
        ],
    );
}

#[test]
fn without_http2_chunk_size_frames_are_as_large_as_every_client_takes() {
    let server = crate::http("server { listen 127.0.0.1:@HTTP@; http2 on; root @DIR@/www; }");
    let len = std::fs::metadata(server.www("big.bin")).unwrap().len();
    let all = format!("largest 16384; bytes {len}");
    expect(&server, &[(0, "h2 data /big.bin", &all), (0, "h2 data /big.bin 1000000", &all)]);
}

/// Servers with locations that respond at once, read bodies first, or pass them on unbuffered.
fn bodies(preread: &str) -> String {
    format!(
        "server {{ listen 127.0.0.1:@HTTP@; http2 on; {preread} client_max_body_size 0;
           location /answers {{ return 200 ok; }}
           location /reads {{ proxy_pass http://127.0.0.1:@HTTPS@; }}
           location /passes {{ proxy_request_buffering off;
                               proxy_pass http://127.0.0.1:@HTTPS@; }} }}
         server {{ listen 127.0.0.1:@HTTPS@; client_max_body_size 0;
           location / {{ proxy_pass http://unix:@DIR@/last; }} }}
         server {{ listen unix:@DIR@/last; client_max_body_size 0;
           location / {{ return 204; }} }}"
    )
}

#[test]
fn http2_body_preread_size_is_the_window_before_a_body_is_read() {
    for (size, shown) in [("0", "0"), ("100", "100")] {
        let server = crate::http(&bodies(&format!("http2_body_preread_size {size};")));
        expect(
            &server,
            &[
                (0, "h2 settings", &format!("streams 128; window {shown}")),
                // The body is not read: the client need not send it.
                (0, "h2 upload /answers -", "status 200; reset 0"),
                (0, "h2 upload /answers 300", "status 200; reset 0"),
                // The body is read: its window opens.
                (0, "h2 upload /reads -", "window opens; status 204"),
                (0, "h2 upload /reads 300", "window opens; status 204"),
                (0, "h2 upload /reads 500000", "window opens; status 204"),
                (0, "h2 upload /passes 300", "window opens; status 204"),
            ],
        );
    }
}

#[test]
fn http2_body_preread_size_is_64k_or_that_of_the_level_above() {
    let server = crate::http(&bodies(""));
    expect(
        &server,
        &[
            (0, "h2 settings", "streams 128; window 65536"),
            (0, "h2 upload /reads 1000000", "window opens; status 204"),
        ],
    );
    let server = crate::http(&format!("http2_body_preread_size 3m; {}", bodies("")));
    expect(&server, &[(0, "h2 settings", "streams 128; window 3145728")]);
}

#[test]
fn http2_settings_are_those_of_the_server_that_the_client_named() {
    let server = crate::http(&format!(
        "{CERTIFIED} http2_max_concurrent_streams 7;
         server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl; http2 on;
                   server_name a.test; }}
         server {{ listen 127.0.0.1:@HTTPS@ ssl; http2 on; server_name b.test;
                   http2_max_concurrent_streams 9; http2_body_preread_size 5000; }}"
    ));
    expect(
        &server,
        &[
            (0, "h2 settings", "streams 7; window 65536"),
            (1, "h2 settings a.test", "streams 7; window 65536"),
            (1, "h2 settings b.test", "streams 9; window 5000"),
            (1, "h2 settings c.test", "streams 7; window 65536"),
        ],
    );
}

#[test]
fn requests_above_http2_max_concurrent_streams_are_refused() {
    let server = crate::http(&bodies("http2_max_concurrent_streams 3;"));
    expect(
        &server,
        &[
            (0, "h2 many 2 /reads", "refused 0"),
            (0, "h2 many 3 /reads", "refused 0"),
            (0, "h2 many 5 /reads", "refused 2"),
        ],
    );
}

#[test]
fn ssl_buffer_size_is_the_largest_record_of_the_server_that_the_client_named() {
    let server = crate::http(&format!(
        "{CERTIFIED} ssl_buffer_size 3000;
         server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl; root @DIR@/www;
                   server_name a.test; }}
         server {{ listen 127.0.0.1:@HTTPS@ ssl; root @DIR@/www; server_name b.test;
                   ssl_buffer_size 1k; }}
         server {{ listen 127.0.0.1:@HTTPS@ ssl; root @DIR@/www; server_name c.test;
                   ssl_buffer_size 64k; }}"
    ));
    let len = std::fs::metadata(server.www("big.bin")).unwrap().len();
    for version in ["1.2", "1.3"] {
        for (name, largest) in [("a", 3000), ("b", 1024), ("c", 16_384), ("d", 3000)] {
            let case = format!("tls records {name}.test /big.bin {version}");
            expect(&server, &[(1, &case, &format!("largest {largest}; body {len}"))]);
        }
    }
}

#[test]
fn a_session_is_called_as_the_client_knows_it_or_by_a_name_of_its_connection() {
    let server = crate::http(&format!(
        "{CERTIFIED} server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl;
           ssl_session_tickets off; ssl_session_cache shared:names:1m;
           return 200 \"[$ssl_session_id]\"; }}"
    ));
    let known = "length 64; again same; resumed True; length 64; then same; wire True";
    let made_up = "length 64; again same; resumed True; length 64; then other; wire True";
    expect(&server, &[(1, "tls session a 1.2", known), (1, "tls session a 1.3", made_up)]);
    assert_eq!(server.get("/").text(), "[]", "in the clear there is none");
}

/// A QUIC server, and another one on its port whose settings have no effect.
fn quic(text: &str) -> String {
    format!(
        "{CERTIFIED} server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ quic;
                              root @DIR@/www; server_name a.test; {text} }}
         server {{ listen 127.0.0.1:@HTTPS@ quic; root @DIR@/www; server_name b.test;
                   http3_max_concurrent_streams 9; http3_stream_buffer_size 9k;
                   quic_active_connection_id_limit 4; }}"
    )
}

const ALLOWS: &str = "quic allows a.test streams stream data ids";

#[test]
fn limits_of_http3_clients_are_configurable() {
    let rows = [
        ("", "streams 128; stream 262144; data 1048576; ids 2"),
        ("http3_stream_buffer_size 64k;", "streams 128; stream 65536; data 1048576; ids 2"),
        (
            "http3_max_concurrent_streams 7; http3_stream_buffer_size 10k;",
            "streams 7; stream 10240; data 102400; ids 2",
        ),
        (
            "http3_stream_buffer_size 8m; quic_active_connection_id_limit 3;",
            "streams 128; stream 8388608; data 8388608; ids 3",
        ),
        // More than five are never kept.
        ("quic_active_connection_id_limit 100;", "streams 128; stream 262144; data 1048576; ids 5"),
    ];
    for (text, wanted) in rows {
        let server = crate::http(&quic(text));
        let other = "quic allows b.test streams stream data ids";
        expect(&server, &[(1, ALLOWS, wanted), (1, other, wanted)]);
    }
    let above = "http3_max_concurrent_streams 8; http3_stream_buffer_size 20k;
                 quic_active_connection_id_limit 5;";
    let server = crate::http(&format!("{above} {}", quic("")));
    expect(&server, &[(1, ALLOWS, "streams 8; stream 20480; data 225280; ids 5")]);
}

#[test]
fn quic_gso_controls_whether_datagrams_are_sent_together() {
    for (text, trains) in [("", "yes"), ("quic_gso on;", "yes"), ("quic_gso off;", "no")] {
        let server = crate::http(&quic(text));
        let len = std::fs::metadata(server.www("big.bin")).unwrap().len();
        let wanted = format!("status 200 of {len}; retries 0; trains {trains}");
        expect(&server, &[(1, "quic get a.test /big.bin", &wanted)]);
    }
    let server = crate::http(&format!("quic_gso off; {}", quic("")));
    let found = seen(server.home().port(1), &["quic get a.test /big.bin"]);
    assert!(found[0].ends_with("trains no"), "{found:?}");
}

#[test]
fn quic_retry_has_clients_prove_their_addresses_once() {
    for (above, text, wanted) in [
        ("", "", "retries 0; tokens no"),
        ("", "quic_retry off;", "retries 0; tokens no"),
        ("", "quic_retry on;", "retries 1; tokens yes; then 0"),
        ("quic_retry on;", "", "retries 1; tokens yes; then 0"),
        ("quic_retry on;", "quic_retry off;", "retries 0; tokens no"),
    ] {
        let server = crate::http(&format!("{above} {}", quic(text)));
        expect(&server, &[(1, "quic again a.test", wanted)]);
    }
}

#[test]
fn tokens_outlive_a_restart_with_the_same_quic_host_key() {
    // As in nginx, a token that cannot be decrypted ends its connection: INVALID_TOKEN.
    for (key, wanted) in [("first", "retries 0; tokens yes"), ("other", "retries 0; tokens no")] {
        let home = Home::new(BOLIDE);
        home.write("key", "first");
        let text = quic("quic_retry on; quic_host_key @DIR@/key;");
        let full = format!("{}http {{ {text} }}", bolide_testkit::server::prelude(2));
        let mut server = TestServer::start(home, &full);
        let token = seen(server.home().port(1), &["quic token a.test"]).remove(0);
        server.home().write("key", key);
        server.restart("QUIT");
        let case = format!("quic again a.test {token}");
        let found = seen(server.home().port(1), &[&case]).remove(0);
        assert!(found.starts_with(wanted), "{key}: {found}");
    }
}

#[test]
fn directives_of_framing_refuse_what_nginx_refuses() {
    let home = Home::new(BOLIDE);
    let places = |text: &str| {
        [
            format!("http {{ access_log off;\n{text}\n}}"),
            format!("http {{ access_log off; server {{\n{text}\n}} }}"),
            format!("http {{ access_log off; server {{ location / {{\n{text}\n}} }} }}"),
        ]
    };
    let not_here = "directive is not allowed here";
    let invalid = "directive invalid value";
    let number = "directive invalid number";
    let switch = "it must be \"on\" or \"off\"";
    let rows: &[(&str, [&str; 3])] = &[
        ("http2_chunk_size 0;", ["the http2 chunk size cannot be zero"; 3]),
        ("http2_chunk_size x;", [invalid; 3]),
        ("http2_chunk_size 1024m;", [""; 3]),
        ("http2_body_preread_size 2147483647;", ["", "", not_here]),
        (
            "http2_body_preread_size 2048m;",
            [
                "the maximum body preread buffer size is 2147483647",
                "the maximum body preread buffer size is 2147483647",
                not_here,
            ],
        ),
        ("http2_body_preread_size x;", [invalid, invalid, not_here]),
        ("http2_recv_buffer_size 16;", ["directive value is too small", not_here, not_here]),
        ("http2_recv_buffer_size 17;", ["", not_here, not_here]),
        ("http2_recv_buffer_size x;", [invalid, not_here, not_here]),
        ("http2_max_concurrent_streams x;", [number, number, not_here]),
        ("ssl_buffer_size x;", [invalid, invalid, not_here]),
        ("quic_gso yes;", [switch, switch, not_here]),
        ("quic_retry yes;", [switch, switch, not_here]),
        ("quic_active_connection_id_limit x;", [number, number, not_here]),
        ("http3_max_concurrent_streams -1;", [number, number, not_here]),
        ("http3_stream_buffer_size x;", [invalid, invalid, not_here]),
        ("quic_gso on; quic_gso off;", ["is duplicate", "is duplicate", not_here]),
        ("http2_chunk_size 1; http2_chunk_size 2;", ["is duplicate"; 3]),
        (
            "http2_body_preread_size 1 2;",
            ["invalid number of arguments", "invalid number", not_here],
        ),
    ];
    let mut failures = Vec::new();
    for (text, wanted) in rows {
        for (place, wanted) in places(text).iter().zip(wanted) {
            home.write("f.conf", &format!("events {{}} {place}"));
            let done = home.run(&["-t", "-q", "-c", "f.conf"]);
            let said_where = wanted.is_empty() || done.stderr.contains("f.conf:2");
            if !done.stderr.contains(wanted) || (done.code == 0) != wanted.is_empty() || !said_where
            {
                failures.push(format!("{place}: {done}"));
            }
        }
    }
    report(rows.len() * 3, &failures);
}
