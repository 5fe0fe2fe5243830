//! What a client gets of a response that cannot be completed, or whose temporary file cannot be
//! written.

use std::fs;

use bolide_testkit::origin::{TestUpstream, answer};
use bolide_testkit::pause;

use crate::http;

/// As in nginx: a disk that is full makes responses slow for slow clients, and breaks none.
#[test]
fn responses_are_complete_without_their_temporary_files() {
    let origin = TestUpstream::start();
    let to = origin.address();
    let server = http(&format!(
        "proxy_temp_path @DIR@/parts; proxy_cache_path @DIR@/cache keys_zone=z:1m;
         server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www;
             location / {{ proxy_pass http://{to}; }}
             location /small/ {{ proxy_buffers 4 4k; proxy_pass http://{to}; }}
             location /kept/ {{ proxy_cache z; proxy_cache_valid 1h; proxy_pass http://{to}; }}
             location /stored/ {{ proxy_store on; proxy_pass http://{to}; }} }}"
    ));
    let place = server.www("../parts");
    fs::remove_dir_all(&place).unwrap();
    fs::write(&place, "in the way").unwrap();
    for (path, size) in [
        ("/x", 300_000),
        ("/y", 5_000_000),
        ("/small/x", 60_000),
        ("/kept/x", 300_000),
        ("/stored/x", 300_000),
    ] {
        let body = "0123456789".repeat(size / 10);
        origin.say(path, answer("", &body));
        let mut fast = server.connect();
        assert_eq!(fast.get(path, "").text().len(), size, "{path}");
        let mut slow = server.connect();
        slow.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        pause(300);
        assert!(slow.answer().text() == body, "{path}: slow");
    }
}

/// A reset would discard what the client has not read. Only where the end of the connection is that
/// of the body does it have to tell.
#[test]
fn what_was_sent_before_a_truncated_response_arrives() {
    const SIZE: usize = 2_000_000;
    let origin = TestUpstream::start();
    let server = http(&format!(
        "server {{ listen 127.0.0.1:@HTTP@; location / {{ proxy_pass http://{}; }} }}",
        origin.address()
    ));
    origin.say("/whole", answer("", &"w".repeat(SIZE)));
    origin.say(
        "/cut",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\nbegun".to_vec(),
    );
    let mut client = server.connect();
    let requests = ["/whole", "/cut"].map(|path| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    client.send(requests.concat());
    pause(1000);
    let all = client.to_end().unwrap();
    assert!(all.len() > SIZE && all.ends_with(b"begun"), "{}", all.len());
    // HTTP/1.0 has no chunks: without a reset this would be a whole response.
    origin.say(
        "/chunks",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n9\r\n".to_vec(),
    );
    let mut old = server.connect();
    old.send("GET /chunks HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let end = old.to_end();
    assert!(end.is_err(), "{end:?}");
}
