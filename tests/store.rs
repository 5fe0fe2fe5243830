//! `proxy_store`: responses of upstream servers that become files.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use bolide_testkit::origin::{TestUpstream, answer, answer_of};
use bolide_testkit::{Proto, TestApp, TestServer, wait_until};

use crate::{http, site};

const MODIFIED: &str = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

fn mirror(origin: &TestUpstream, more: &str, outer: &str, inner: &str) -> TestServer {
    let to = origin.address();
    http(&format!(
        "proxy_temp_path @DIR@/parts; {outer}
         server {{
             listen 127.0.0.1:@HTTP@; root @DIR@/www; {more}
             location / {{ proxy_pass http://{to}; proxy_store on; }}
             location /own/ {{ proxy_pass http://{to}; proxy_store @DIR@/www/kept$arg_at;
                 {inner} }}
             location /off/ {{ proxy_pass http://{to}; }}
             location /direct/ {{ proxy_pass http://{to}; proxy_store on; proxy_buffering off; }}
             location /mirror/ {{ error_page 404 = /fetch$uri; }}
             location /fetch/ {{ internal; alias @DIR@/www/; proxy_store on;
                 proxy_pass http://{to}/; }}
             location /tried/ {{ try_files $uri @fetch; }}
             location @fetch {{ internal; proxy_store on; proxy_pass http://{to}; }}
         }}"
    ))
}

fn parts(server: &TestServer) -> usize {
    fs::read_dir(server.home().dir().join("parts")).map_or(0, Iterator::count)
}

#[test]
fn a_whole_response_to_get_is_a_file_with_its_time() {
    let origin = TestUpstream::start();
    let packs = "gzip on; gzip_min_length 1; gzip_types *;";
    let outer = "proxy_store_access user:rw group:rw all:r;";
    let inner = "proxy_store_access user:r;";
    let server = mirror(&origin, packs, outer, inner);
    let large = "0123456789".repeat(200_000);
    for (path, body) in [("/a/b/c", "small"), ("/empty", ""), ("/large", &*large)] {
        origin.say(path, answer(MODIFIED, body));
        let reply = server.connect().get(path, "Accept-Encoding: gzip\r\n");
        assert_eq!(reply.status, 200, "{path}");
        let file = server.www(&path[1..]);
        wait_until("the file is there", || file.exists());
        assert_eq!(fs::read_to_string(&file).unwrap(), body, "{path}");
        let stat = fs::metadata(&file).unwrap();
        assert_eq!((stat.mode() & 0o777, stat.mtime()), (0o664, 784_111_777), "{path}");
    }
    origin.say("/own/x?at=/d/e", answer("", "own"));
    assert_eq!(server.get("/own/x?at=/d/e").text(), "own");
    let own = server.www("kept/d/e");
    wait_until("the file is there", || own.exists());
    assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o400);
    assert_eq!(parts(&server), 0);
}

#[test]
fn only_complete_200_responses_to_get_are_stored() {
    let origin = TestUpstream::start();
    let server = mirror(&origin, "", "", "");
    let short = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10\r\n\r\nabc".to_vec();
    let torn =
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc"
            .to_vec();
    let head_of_200 = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n".to_vec();
    origin.say("/short", short);
    origin.say("/torn", torn);
    origin
        .say("/partial", answer_of("206 Partial Content", "Content-Range: bytes 0-2/9\r\n", "abc"));
    origin.say("/missing", answer_of("404 Not Found", "", "abc"));
    origin.say("/posted", answer("", "abc"));
    origin.say("/head", head_of_200);
    origin.say("/live", answer("X-Accel-Buffering: no\r\n", "abc"));
    origin.say("/away", answer("X-Accel-Redirect: /off/here\r\n", "abc"));
    for path in ["/off/here", "/direct/x", "/own/x?at=/../../up"] {
        origin.say(path, answer("", "abc"));
    }
    for path in [
        "/short",
        "/torn",
        "/partial",
        "/missing",
        "/live",
        "/away",
        "/off/here",
        "/direct/x",
        "/own/x?at=/../../up",
    ] {
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let _maybe_broken = client.try_answer("GET");
    }
    assert_eq!(server.connect().ask("HEAD /head HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
    let post = "POST /posted HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(server.connect().send(post).answer().status, 200);
    // What comes last is stored, so all else has been decided.
    origin.say("/last", answer("", "abc"));
    assert_eq!(server.get("/last").status, 200);
    wait_until("the last one is there", || server.www("last").exists());
    for name in [
        "short", "torn", "partial", "missing", "posted", "head", "live", "away", "off/here",
        "direct/x", "kept",
    ] {
        assert!(!server.www(name).exists(), "{name}");
    }
    assert!(!server.home().dir().join("up").exists());
    wait_until("nothing temporary is left", || parts(&server) == 0);
}

#[test]
fn a_mirror_fetches_each_file_once() {
    let origin = TestUpstream::start();
    let server = mirror(&origin, "", "", "");
    let mut client = server.connect();
    for (path, asked) in [("/mirror/a", "/mirror/a"), ("/tried/b", "/tried/b")] {
        origin.say(asked, answer(MODIFIED, "mirrored"));
        for _ in 0..3 {
            assert_eq!(client.get(path, "").text(), "mirrored", "{path}");
            assert_eq!(server.get(path).text(), "mirrored", "{path}");
        }
        assert_eq!(origin.count(asked), 1, "{path}");
    }
}

#[test]
fn every_protocol_has_the_answer_and_the_file() {
    let origin = TestUpstream::start();
    let to = origin.address();
    let server = site(&format!("location / {{ proxy_pass http://{to}; proxy_store on; }}"));
    for proto in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3] {
        let path = format!("/{proto:?}");
        let body = "x".repeat(300_000);
        origin.say(&path, answer("", &body));
        assert_eq!(server.fetch(proto, &path).text(), body);
        let file = server.www(&path[1..]);
        wait_until("the file is there", || file.exists());
        assert_eq!(fs::read_to_string(file).unwrap(), body);
    }
}

#[test]
fn a_client_that_leaves_does_not_stop_the_file() {
    let origin = TestUpstream::start();
    let server = mirror(&origin, "", "", "");
    origin.say("/slow", answer("", "late"));
    origin.hold("/slow");
    let mut client = server.connect();
    client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("the origin is asked", || origin.count("/slow") == 1);
    drop(client);
    assert!(!server.www("slow").exists(), "a file is not there before it is whole");
    origin.release();
    wait_until("the file is there", || server.www("slow").exists());
    assert_eq!(fs::read_to_string(server.www("slow")).unwrap(), "late");
}

#[test]
fn a_disk_that_refuses_costs_the_client_nothing() {
    let origin = TestUpstream::start();
    let server = mirror(&origin, "", "", "");
    fs::write(server.www("blocked"), "a file").unwrap();
    origin.say("/blocked/x", answer("", "abc"));
    assert_eq!(server.get("/blocked/x").text(), "abc");
    wait_until("the log says so", || {
        server
            .error_log()
            .contains("blocked/x\" failed (20: Not a directory) while reading upstream")
    });
    assert_eq!(parts(&server), 0);
    let place = server.home().dir().join("parts");
    fs::remove_dir_all(&place).unwrap();
    fs::write(&place, "in the way").unwrap();
    origin.say("/free", answer("", "abc"));
    assert_eq!(server.get("/free").text(), "abc");
    wait_until("the log says so", || server.error_log().contains("of a temporary file in"));
    assert!(!server.www("free").exists());
}

#[test]
fn a_temporary_file_on_another_file_system_is_copied() {
    let shared = Path::new("/dev/shm").join(format!("bolide-store-{}", std::process::id()));
    let origin = TestUpstream::start();
    let to = origin.address();
    let server = http(&format!(
        "proxy_temp_path {}; server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www;
         proxy_store_access user:rw all:r;
         location / {{ proxy_pass http://{to}; proxy_store on; }} }}",
        shared.display()
    ));
    let body = "0123456789".repeat(500_000);
    origin.say("/far", answer(MODIFIED, &body));
    assert_eq!(server.get("/far").text(), body);
    let file = server.www("far");
    wait_until("the file is there", || file.exists());
    assert_eq!(fs::read_to_string(&file).unwrap(), body);
    let stat = fs::metadata(file).unwrap();
    assert_eq!((stat.mode() & 0o777, stat.mtime()), (0o604, 784_111_777));
    wait_until("what is temporary goes", || fs::read_dir(&shared).unwrap().count() == 0);
    fs::remove_dir_all(shared).unwrap();
}

#[test]
fn fastcgi_store_writes_files_where_the_innermost_block_configures() {
    let app = TestApp::start();
    let to = app.address();
    let server = http(&format!(
        "fastcgi_temp_path @DIR@/parts; fastcgi_store @DIR@/www/outer$uri;
         fastcgi_store_access user:r;
         server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www;
             fastcgi_param REQUEST_URI $request_uri; fastcgi_param REQUEST_METHOD $request_method;
             location / {{ fastcgi_pass {to}; }}
             location /inner/ {{ fastcgi_pass {to}; fastcgi_store on;
                 fastcgi_store_access group:rw; }}
             location /off/ {{ fastcgi_pass {to}; fastcgi_store off; }} }}"
    ));
    for path in ["/off/a", "/a", "/inner/a"] {
        app.say(path, "Status: 200 OK\r\nContent-Type: text/plain\r\n");
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    for (file, mode) in [("outer/a", 0o400), ("inner/a", 0o660)] {
        let path = server.www(file);
        wait_until("the file is there", || path.exists());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode, "{file}");
    }
    assert!(!server.www("off").exists() && !server.www("outer/off").exists());
}
