//! Malicious clients: their requests cost little and disturb no other client.

use std::net::UdpSocket;

use bolide_testkit::site::{HELLO, noise};
use bolide_testkit::{H1TestClient, Proto, TestServer, TestUpstream};

use crate::site;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const ENHANCE_YOUR_CALM: u32 = 0xb;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// `GET /hello.txt` from the static table, with the path as a literal.
fn request_fields() -> Vec<u8> {
    let mut fields = vec![0x82, 0x86, 0x04, 10];
    fields.extend(b"/hello.txt");
    fields.extend([0x01, 9]);
    fields.extend(b"localhost");
    fields
}

fn open(server: &TestServer) -> H1TestClient {
    let mut client = server.connect();
    client.send(PREFACE).send(frame(SETTINGS, 0, 0, &[]));
    client
}

/// Reads frames until GOAWAY or the end. Returns the error code of GOAWAY, if one came.
fn goaway(client: &mut H1TestClient) -> Option<u32> {
    loop {
        let head = client.take(9).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let payload = client.take(length).ok()?;
        if head[3] == GOAWAY {
            return Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
        }
    }
}

/// Sends the bytes of `make` many times, and returns how the server closed the connection.
fn flood(server: &TestServer, times: u32, make: impl Fn(u32) -> Vec<u8>) -> Option<u32> {
    let mut client = open(server);
    for batch in 0..times / 100 {
        let bytes: Vec<u8> = (0..100).flat_map(|n| make(batch * 100 + n)).collect();
        client.send(bytes);
    }
    goaway(&mut client)
}

fn still_serves(server: &TestServer) {
    assert_eq!(server.get("/hello.txt").body, HELLO);
    for proto in [Proto::H2, Proto::H3] {
        assert_eq!(server.fetch(proto, "/hello.txt").body, HELLO);
    }
}

#[test]
fn floods_of_h2_frames_end_the_connection() {
    let server = site("");
    let request = request_fields();
    let reset = |n: u32| {
        let stream = 2 * n + 1;
        let mut out = frame(HEADERS, 5, stream, &request);
        out.extend(frame(RST_STREAM, 0, stream, &8u32.to_be_bytes()));
        out
    };
    assert_eq!(flood(&server, 20_000, reset), Some(ENHANCE_YOUR_CALM), "rapid reset");
    let ping = |n: u32| frame(PING, 0, 0, &[n.to_be_bytes(), [0; 4]].concat());
    assert_eq!(flood(&server, 50_000, ping), Some(ENHANCE_YOUR_CALM), "pings");
    let settings = |n: u32| frame(SETTINGS, 0, 0, &[[0, 4].as_slice(), &n.to_be_bytes()].concat());
    assert_eq!(flood(&server, 50_000, settings), Some(ENHANCE_YOUR_CALM), "settings");
    let empty = |n: u32| match n {
        0 => frame(HEADERS, 0, 1, &request),
        1 => frame(CONTINUATION, 4, 1, &[]),
        _ => frame(0, 0, 1, &[]),
    };
    assert_eq!(flood(&server, 50_000, empty), Some(ENHANCE_YOUR_CALM), "empty data");
    let endless = |n: u32| match n {
        0 => frame(HEADERS, 1, 1, &request),
        _ => frame(CONTINUATION, 0, 1, &[0x00, 1, b'a', 1, b'b'].repeat(200)),
    };
    assert!(flood(&server, 5_000, endless).is_some(), "endless continuation");
    let empty_continuation = |n: u32| match n {
        0 => frame(HEADERS, 1, 1, &request),
        _ => frame(CONTINUATION, 0, 1, &[]),
    };
    assert!(flood(&server, 50_000, empty_continuation).is_some(), "empty continuation");
    let window = |_| frame(WINDOW_UPDATE, 0, 0, &1u32.to_be_bytes());
    assert!(flood(&server, 200_000, window).is_some(), "window updates");
    still_serves(&server);
}

#[test]
fn a_full_worker_sends_goaway_to_the_idle_http2_connection_that_it_closes() {
    let prelude = bolide_testkit::server::prelude(1).replace("2048", "32");
    let conf = format!(
        "{prelude}http {{ server {{ listen 127.0.0.1:@HTTP@; http2 on; return 200 ok; }} }}"
    );
    let server = TestServer::conf(crate::BOLIDE, &conf);
    let mut idle = open(&server);
    idle.send(frame(HEADERS, 5, 1, &request_fields()));
    loop {
        let head = idle.take(9).unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        idle.take(length).unwrap();
        if (head[3], head[4] & 1) == (0, 1) {
            break;
        }
    }
    // They say nothing, so that none of them is idle.
    let crowd: Vec<H1TestClient> = (0..40).map(|_| server.connect()).collect();
    assert_eq!(goaway(&mut idle), Some(0));
    drop(crowd);
}

#[test]
fn a_field_table_bomb_is_refused_in_little_memory() {
    let server = site("");
    let before = server.resident_kib();
    for _ in 0..20 {
        let mut client = open(&server);
        // One entry of 4000 bytes, then references to it: 60 MB of fields in 16 KB.
        let mut fields = request_fields();
        fields.extend([0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
        fields.extend(vec![b'y'; 4000]);
        fields.extend(vec![0xbe; 12_000]);
        client.send(frame(HEADERS, 5, 1, &fields));
        let _refused = client.take(30);
    }
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 20_000, "grew by {grown} KiB");
    still_serves(&server);
}

#[test]
fn clients_that_never_read_cost_little() {
    let server = site("");
    let before = server.resident_kib();
    let idle: Vec<H1TestClient> = (0..100)
        .map(|_| {
            let mut client = server.connect();
            client.send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n".repeat(50));
            client
        })
        .collect();
    let streams: Vec<H1TestClient> = (0..50)
        .map(|_| {
            let mut client = open(&server);
            for n in 0..100 {
                client.send(frame(HEADERS, 5, 2 * n + 1, &request_fields()));
            }
            client
        })
        .collect();
    still_serves(&server);
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 60_000, "grew by {grown} KiB");
    drop((idle, streams));
    still_serves(&server);
}

#[test]
fn bodies_in_single_bytes_cost_little_more_than_their_size() {
    let server = crate::http(&format!(
        "server {{ {} location / {{ proxy_pass http://127.0.0.1:9; }} }}",
        bolide_testkit::server::LISTEN
    ));
    // POST of the same path; the body does not end.
    let fields = [&[0x83], &request_fields()[1..]].concat();
    let pieces = frame(0, 0, 1, b"x");
    let before = server.resident_kib();
    let waiting: Vec<H1TestClient> = (0..8)
        .map(|_| {
            let mut client = open(&server);
            for stream in (0..40).map(|n| 2 * n + 1) {
                let mut bytes = frame(HEADERS, 4, stream, &fields);
                for _ in 0..8000 {
                    let at = bytes.len();
                    bytes.extend(&pieces);
                    bytes[at + 5..at + 9].copy_from_slice(&u32::to_be_bytes(stream));
                }
                client.send(bytes);
            }
            client
        })
        .collect();
    server.wait_until_it_rests();
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 40_000, "grew by {grown} KiB");
    drop(waiting);
}

#[test]
fn a_thousand_slow_heads_leave_room_for_others() {
    let server = site("");
    let mut slow: Vec<H1TestClient> = (0..1000).map(|_| server.connect()).collect();
    for (n, client) in slow.iter_mut().enumerate() {
        client.send(&b"GET /hello.txt HTTP/1.1\r\nHost: a\r\nX: "[..n % 37]);
    }
    still_serves(&server);
    for client in slow.iter_mut().take(50) {
        client.send("x");
    }
    still_serves(&server);
}

#[test]
fn noise_on_every_port_disturbs_no_client() {
    let server = site("");
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    for seed in 1..400u64 {
        let bytes = noise(1 + (seed as usize * 37) % 1400, seed);
        let _sent = udp.send_to(&bytes, server.https());
        // Long headers of QUIC version 1 with garbage behind them.
        let mut initial = bytes.clone();
        initial.resize(1200, 0);
        initial[..6].copy_from_slice(&[0xc3, 0, 0, 0, 1, 8]);
        let _sent = udp.send_to(&initial, server.https());
        if seed % 8 == 0 {
            let mut client = server.connect();
            client.send(&bytes).finish();
            let _whatever = client.to_end();
            let mut client = server.connect();
            client.send(PREFACE).send(&bytes).finish();
            let _whatever = client.to_end();
        }
    }
    still_serves(&server);
}

#[test]
fn requests_within_requests_are_not_smuggled() {
    let server = site("");
    // A body that looks like a request must never get a response.
    for framing in ["Content-Length: 43\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n2b\r\n"] {
        let mut client = server.connect();
        client.send(format!("POST /hello.txt HTTP/1.1\r\nHost: a\r\n{framing}"));
        let inner = "GET /style.css HTTP/1.1\r\nHost: smuggled\r\n\r\n";
        assert_eq!(inner.len(), 43);
        client.send(inner);
        if framing.contains("chunked") {
            client.send("\r\n0\r\n\r\n");
        }
        assert_eq!(client.answer().status, 405);
        assert_eq!(client.get("/hello.txt", "").body, HELLO, "{framing}");
    }
    assert!(!server.access_log().contains("style.css"));
}

/// The requests that reached `origin` while a connection wasted `times` of them, and how the
/// connection ended.
fn wasted(
    server: &TestServer,
    origin: &TestUpstream,
    times: u32,
    spoil: &[u8],
) -> (usize, Option<u32>) {
    let before = origin.connections();
    let mut client = open(server);
    let bytes: Vec<u8> = (0..times)
        .flat_map(|n| {
            let stream = 2 * n + 1;
            let mut out = frame(HEADERS, 5, stream, &request_fields());
            out.extend(frame(spoil[0], 0, stream, &spoil[1..]));
            out
        })
        .collect();
    client.send(bytes).send(frame(PING, 0, 0, &[7; 8]));
    // The first answer may be sent before a GOAWAY of the same turn, the second may not.
    let mut pings = 0;
    let end = loop {
        let Ok(head) = client.take(9) else { break None };
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let Ok(payload) = client.take(length) else { break None };
        match head[3] {
            GOAWAY => break Some(u32::from_be_bytes(payload[4..8].try_into().unwrap())),
            PING if pings == 1 => break None,
            PING => {
                pings += 1;
                client.send(frame(PING, 0, 0, &[8; 8]));
            }
            _ => {}
        }
    };
    (origin.connections() - before, end)
}

#[test]
fn requests_that_are_made_only_to_be_reset_are_few() {
    let origin = TestUpstream::scripted(|peer| {
        // No request gets a response.
        let _asked = peer.request();
        peer.to_end();
    });
    let server = crate::http(&format!(
        "server {{ {} location / {{ proxy_pass http://{}; }} }}",
        bolide_testkit::server::LISTEN,
        origin.address()
    ));
    // Rapid reset: RST_STREAM. MadeYouReset: WINDOW_UPDATE with increment 0.
    for spoil in [[RST_STREAM, 0, 0, 0, 8], [WINDOW_UPDATE, 0, 0, 0, 0]] {
        let (reached, end) = wasted(&server, &origin, 1000, &spoil);
        assert_eq!(end, Some(ENHANCE_YOUR_CALM), "{spoil:?}");
        assert!(reached <= 60, "{spoil:?}: {reached} reached the origin");
    }
    // All connections of one address waste no more than a hundred requests, and some more as time
    // passes. Connections without waste stay open.
    let mut good = open(&server);
    let mut ends = 0;
    let mut rounds = 0;
    while ends == 0 {
        let (_, end) = wasted(&server, &origin, 3, &[WINDOW_UPDATE, 0, 0, 0, 0]);
        ends += u32::from(end == Some(ENHANCE_YOUR_CALM));
        rounds += 1;
        assert!(rounds < 1000, "no ENHANCE_YOUR_CALM");
    }
    good.send(frame(PING, 0, 0, &[7; 8]));
    loop {
        let head = good.take(9).expect("the other connection lives");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let _payload = good.take(length).unwrap();
        if head[3] == PING {
            break;
        }
    }
}

#[test]
fn a_browser_that_resets_many_streams_keeps_its_connection() {
    let origin = TestUpstream::scripted(|peer| {
        let _asked = peer.request();
        peer.to_end();
    });
    let server = crate::http(&format!(
        "server {{ {} location /slow {{ proxy_pass http://{}; }} }}",
        bolide_testkit::server::LISTEN,
        origin.address()
    ));
    let mut client = open(&server);
    let mut fields = vec![0x82, 0x86, 0x04, 5];
    fields.extend(b"/slow");
    fields.extend([0x01, 9]);
    fields.extend(b"localhost");
    for n in 0..60 {
        client.send(frame(HEADERS, 5, 2 * n + 1, &fields));
    }
    bolide_testkit::wait_until("all to reach the origin", || origin.count("/slow") == 60);
    for n in 0..60 {
        client.send(frame(RST_STREAM, 0, 2 * n + 1, &8_u32.to_be_bytes()));
    }
    client.send(frame(HEADERS, 5, 121, &request_fields()));
    loop {
        let head = client.take(9).expect("the connection lives");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let _payload = client.take(length).unwrap();
        assert_ne!(head[3], GOAWAY);
        if head[3] == HEADERS && head[5..9] == 121_u32.to_be_bytes() {
            break;
        }
    }
}
