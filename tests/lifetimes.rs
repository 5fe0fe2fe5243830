//! Every limit that ends a connection or request, by protocol. A client reaches the limit and stays
//! connected; then other clients are served, the CPU is idle, and the process shuts down on
//! request.
//!
//! A row is a client in `tests/lifetimes.py` or `tests/h3_stayers.py`. All run concurrently against
//! one server. Only rows that reach a limit on purpose have a short one, so that no row depends on
//! the load of the machine.

use std::net::TcpListener;

use bolide_testkit::site::HELLO;
use bolide_testkit::{Companion, Proto, TestServer};

use crate::http;

const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lifetimes.py");
/// A listener whose queue is full: the kernel leaves further connections to it unanswered.
const FULL_LISTENER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/full_listener.py");
const H3_CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/h3_stayers.py");

/// A limit, the ports of its server (cleartext, and TLS with QUIC), and the results of its clients:
/// over HTTP/1 in cleartext and over TLS, over HTTP/2, over HTTP/3.
struct Row {
    name: &'static str,
    ports: (usize, usize),
    h1: &'static str,
    h2: &'static str,
    h3: &'static str,
}

const fn row(
    name: &'static str,
    ports: (usize, usize),
    h1: &'static str,
    h2: &'static str,
    h3: &'static str,
) -> Row {
    Row { name, ports, h1, h2, h3 }
}

const MAIN: (usize, usize) = (0, 1);
const HEADS: (usize, usize) = (2, 3);
const REQUESTS: (usize, usize) = (4, 5);
const AGE: (usize, usize) = (6, 7);
const IDLE: (usize, usize) = (8, 9);

/// Empty where a limit does not apply to a protocol, or another row reaches it.
const ROWS: &[Row] = &[
    // client_header_timeout
    row("silence", HEADS, "end", "goaway end", "end"),
    row("head", HEADS, "end", "goaway end", ""),
    row("half_head", HEADS, "", "", "reset"),
    // client_body_timeout
    row("body", MAIN, "end", "reset", "reset"),
    // send_timeout
    row("window", MAIN, "", "reset", "reset"),
    row("connection_window", MAIN, "", "reset", ""),
    // A slow client within the limit.
    row("slow", MAIN, "", "whole", ""),
    // keepalive_timeout
    row("idle", IDLE, "200 end", "whole end", "end"),
    row("pings", IDLE, "", "", "end"),
    // keepalive_requests
    row("requests", REQUESTS, "[200, 200, 200] end", "goaway", "status 200 status 200 status 200"),
    // keepalive_time
    row("age", AGE, "its last end", "goaway", "status 200 and its last"),
    // client_max_body_size, lingering_time and lingering_timeout
    row("large_body", MAIN, "413 end", "whole", "status 413"),
    // large_client_header_buffers
    row("large_head", MAIN, "400 end", "", ""),
    // proxy_read_timeout and fastcgi_read_timeout
    row("origin", MAIN, "504", "whole", "status 504"),
    row("fastcgi", MAIN, "504", "", ""),
    // proxy_connect_timeout and fastcgi_connect_timeout
    row("unreachable", MAIN, "504", "whole", "status 504"),
    row("unreachable_fastcgi", MAIN, "504", "", ""),
    // proxy_send_timeout and fastcgi_send_timeout
    row("send", MAIN, "504", "", ""),
    row("send_fastcgi", MAIN, "504", "", ""),
    // proxy_next_upstream_timeout and fastcgi_next_upstream_timeout
    row("next", MAIN, "504 few", "", ""),
    row("next_fastcgi", MAIN, "504 few", "", ""),
    // limit_rate
    row("rate", MAIN, "200", "some", "some"),
    // limit_conn
    row("conns", MAIN, "held", "", ""),
    // limit_req
    row("pace", MAIN, "200 503", "", ""),
    // http2_max_concurrent_streams
    row("streams", MAIN, "", "reset", ""),
];

/// The socket takes a whole connection window of HTTP/2 (`sndbuf`), so that its client, however
/// busy, is late with room in the window only.
fn conf(silent: u16, full: &str) -> String {
    let listens = |(plain, tls): (usize, usize)| {
        let port = |n: usize| ["@HTTP@".to_owned(), "@HTTPS@".to_owned()].get(n).cloned();
        let port = |n: usize| port(n).unwrap_or_else(|| format!("@P{n}@"));
        let (plain, tls) = (port(plain), port(tls));
        format!(
            "listen 127.0.0.1:{plain}; listen 127.0.0.1:{tls} ssl sndbuf=128k;
             listen 127.0.0.1:{tls} quic;
             server_name localhost; root @DIR@/www;"
        )
    };
    let [main, heads, requests, age, idle] = [MAIN, HEADS, REQUESTS, AGE, IDLE].map(listens);
    format!(
        "http2 on; ssl_certificate @CERT@; ssl_certificate_key @KEY@;
         keepalive_timeout 300s; large_client_header_buffers 4 8k;
         limit_conn_zone $server_port zone=alone:1m;
         limit_req_zone $server_port zone=seldom:1m rate=1r/m;
         upstream silent {{ {} }}
         server {{ {main}
             http2_max_concurrent_streams 8;
             location /upload {{
                 client_body_timeout 1s; proxy_pass http://127.0.0.1:{silent};
             }}
             location /brief/ {{
                 alias @DIR@/www/; send_timeout 1s; reset_timedout_connection on;
             }}
             location /slowly/ {{ alias @DIR@/www/; send_timeout 5s; }}
             location /small {{
                 client_max_body_size 1k; lingering_time 2s; lingering_timeout 1s;
                 proxy_pass http://127.0.0.1:{silent};
             }}
             location /silent {{ proxy_read_timeout 1s; proxy_pass http://127.0.0.1:{silent}; }}
             location /application {{
                 fastcgi_read_timeout 1s; fastcgi_pass 127.0.0.1:{silent};
             }}
             location = /unreachable {{ proxy_connect_timeout 1s; proxy_pass http://{full}; }}
             location = /unreachable_fastcgi {{ fastcgi_connect_timeout 1s; fastcgi_pass {full}; }}
             client_max_body_size 0;
             location = /send {{
                 proxy_request_buffering off; proxy_send_timeout 1s; proxy_pass http://silent;
             }}
             location = /send_fastcgi {{
                 fastcgi_request_buffering off; fastcgi_send_timeout 1s; fastcgi_pass silent;
             }}
             add_header X-Tried $upstream_addr always;
             location = /next {{
                 proxy_next_upstream_timeout 1s; proxy_read_timeout 600ms;
                 proxy_pass http://silent;
             }}
             location = /next_fastcgi {{
                 fastcgi_next_upstream_timeout 1s; fastcgi_read_timeout 600ms;
                 fastcgi_pass silent;
             }}
             location /paced/ {{ alias @DIR@/www/; limit_rate 1k; }}
             location /alone/ {{ alias @DIR@/www/; limit_rate 1k; limit_conn alone 1; }}
             location /seldom {{ limit_req zone=seldom; try_files /hello.txt =404; }} }}
         server {{ {heads} client_header_timeout 1s; }}
         server {{ {requests} keepalive_requests 3; }}
         server {{ {age} keepalive_time 1s; }}
         server {{ {idle} keepalive_timeout 1s; }}",
        format!("server 127.0.0.1:{silent} max_fails=0;").repeat(6),
    )
}

/// Starts clients and reads their results.
fn stay(
    server: &TestServer,
    script: &str,
    cases: &[(String, usize, &str)],
) -> (Companion, Vec<String>) {
    let cert = server.home().dir().join("cert.pem").to_str().unwrap().to_owned();
    let names = cases.iter().map(|(name, n, _)| format!("{name}@{}", server.home().port(*n)));
    let clients = Companion::start(script, [cert].into_iter().chain(names));
    let results: Vec<String> = cases.iter().map(|_| clients.line()).collect();
    let line = |name: &str, got: &str| format!("{{\"case\": \"{name}\", \"got\": \"{got}\"}}");
    let wanted: Vec<String> = cases.iter().map(|(name, _, got)| line(name, got)).collect();
    (clients, results.into_iter().filter(|results| !wanted.contains(results)).collect())
}

#[test]
fn a_connection_that_stays_at_a_limit_blocks_no_other() {
    // Accepts connections into its queue, and never responds.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let full = Companion::start(FULL_LISTENER, [""; 0]);
    let server = http(&conf(silent.local_addr().unwrap().port(), &full.line()));
    // More than the kernel buffers for a client that reads nothing.
    std::fs::File::create(server.www("huge")).unwrap().set_len(200 << 20).unwrap();
    let (mut stream, mut quic) = (Vec::new(), Vec::new());
    for &Row { name, ports: (plain, tls), h1, h2, h3 } in ROWS {
        let by = |proto: &str| format!("{proto}.{name}");
        let all = [("h1", plain, h1), ("h1s", tls, h1), ("h2", tls, h2)];
        let all = all.into_iter().filter(|(.., wanted)| !wanted.is_empty());
        stream.extend(all.map(|(proto, port, wanted)| (by(proto), port, wanted)));
        quic.extend((!h3.is_empty()).then(|| (name.to_owned(), tls, h3)));
    }
    stream.push(("h1.window".to_owned(), MAIN.0, "end"));
    stream.push(("h1s.handshake".to_owned(), HEADS.1, "end"));
    let ((_clients, wrong), (_h3_clients, h3_wrong)) = std::thread::scope(|scope| {
        let by_quic = scope.spawn(|| stay(&server, H3_CLIENTS, &quic));
        (stay(&server, CLIENTS, &stream), by_quic.join().unwrap())
    });
    assert!(wrong.is_empty() && h3_wrong.is_empty(), "{wrong:#?} {h3_wrong:#?}");
    assert_eq!(server.get("/hello.txt").body, HELLO);
    server.wait_until_it_rests();
    for proto in Proto::TLS {
        assert_eq!(server.fetch(proto, "/hello.txt").body, HELLO);
    }
    assert_eq!(server.stop("TERM").code, 0);
}
