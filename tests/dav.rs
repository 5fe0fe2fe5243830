//! `dav_methods`: files and directories that clients put, remove, make, copy and move.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use bolide_testkit::{H1TestClient, Proto, Response, TestServer};

use crate::{http, site};

const ALL: &str = "dav_methods PUT DELETE MKCOL COPY MOVE;";

fn ask(client: &mut H1TestClient, line: &str, fields: &str, body: &str) -> Response {
    let length = match line.starts_with("PUT") {
        true => format!("Content-Length: {}\r\n", body.len()),
        false => String::new(),
    };
    client.send(format!("{line} HTTP/1.1\r\nHost: a\r\n{length}{fields}\r\n{body}")).answer()
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn temporary_files(server: &TestServer) -> usize {
    fs::read_dir(server.home().dir().join("bodies")).map_or(0, Iterator::count)
}

#[test]
fn a_file_is_there_at_once_and_whole() {
    let server = http(&format!(
        "client_body_temp_path @DIR@/bodies;
         server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www; {ALL} client_max_body_size 10m;
             dav_access user:rw group:rw all:r;
             location /inner/ {{ create_full_put_path on; dav_access user:r; }}
             location /shut/ {{ dav_methods off; }} }}"
    ));
    let mut client = server.connect();
    let large = "0123456789".repeat(200_000);
    for (round, body) in ["first", "", &large, "last"].into_iter().enumerate() {
        assert_eq!(client.get("/new.txt", "").status, if round == 0 { 404 } else { 200 });
        let answer =
            ask(&mut client, "PUT /new.txt", "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", body);
        assert_eq!(answer.status, if round == 0 { 201 } else { 204 });
        assert_eq!(answer.header("location").is_some(), round == 0);
        // On this connection and another one, which may be another worker's.
        assert_eq!(client.get("/new.txt", "").text(), body);
        assert_eq!(server.get("/new.txt").text(), body);
    }
    let stat = fs::metadata(server.www("new.txt")).unwrap();
    assert_eq!((stat.mode() & 0o777, stat.mtime()), (0o664, 784_111_777));
    assert_eq!(ask(&mut server.connect(), "PUT /none/a", "", "x").status, 500);
    assert_eq!(ask(&mut client, "PUT /inner/a/b/c", "", "x").status, 201);
    assert_eq!(mode(server.www("inner/a/b/c")), 0o400);
    assert_eq!(ask(&mut client, "PUT /shut/a", "", "x").status, 405);
    assert_eq!(temporary_files(&server), 0, "what is not stored is removed");
    assert!(server.error_log().contains("failed (2: No such file or directory)"));
}

#[test]
fn every_protocol_puts_and_deletes() {
    let server = site(&format!("{ALL} client_max_body_size 10m;"));
    let body = "x".repeat(1_000_000);
    let source = server.home().write("body", &body);
    let upload = source.to_str().unwrap();
    for proto in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3] {
        // Of no declared length: in chunks, or until the stream ends.
        let unknown = match proto {
            Proto::H1 => "Transfer-Encoding: chunked",
            _ => "Content-Length:",
        };
        for (field, status) in [(unknown, 201), ("X-Of: known-length", 204)] {
            let curl = server.curl(proto).args(["-T", upload]).field(field);
            assert_eq!(curl.get(&server.url(proto, "/up")).status, status, "{proto:?}");
            assert_eq!(fs::read_to_string(server.www("up")).unwrap(), body, "{proto:?}");
        }
        // A declared length of zero makes an empty file.
        let empty = server.curl(proto).args(["-X", "PUT", "-d", ""]);
        assert_eq!(empty.get(&server.url(proto, "/up")).status, 204, "{proto:?}");
        assert_eq!(fs::read_to_string(server.www("up")).unwrap(), "", "{proto:?}");
        let gone = server.curl(proto).args(["-X", "DELETE"]).get(&server.url(proto, "/up"));
        assert_eq!(gone.status, 204, "{proto:?}");
        assert_eq!(server.fetch(proto, "/up").status, 404, "{proto:?}");
    }
}

#[test]
fn a_refused_body_leaves_nothing() {
    let server = http(&format!(
        "client_body_temp_path @DIR@/bodies; {ALL} root @DIR@/www;
         server {{ listen 127.0.0.1:@HTTP@; client_max_body_size 5;
             location /read/ {{ limit_except GET {{ deny all; }} }}
             location /mine/ {{ create_full_put_path on;
                 limit_except GET {{ allow 127.0.0.1; deny all; }} }}
             location /secret/ {{ auth_basic x; auth_basic_user_file @DIR@/users; }} }}"
    ));
    server.home().write("users", "u:{PLAIN}p\n");
    let chunked = "PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                   9\r\nabcabcabc\r\n0\r\n\r\n";
    assert_eq!(server.connect().send(chunked).answer().status, 413);
    for (line, fields, body, status) in [
        ("PUT /a", "", "too much", 413),
        ("PUT /a", "Content-Range: bytes 0-1/2\r\n", "x", 501),
        ("PUT /read/a", "", "x", 403),
        ("PUT /secret/a", "", "x", 401),
        ("PUT /secret/a", "Authorization: Basic dTpw\r\n", "x", 500),
        ("DELETE /read/a", "", "", 403),
        ("PUT /mine/a", "", "x", 201),
        ("PUT /mine/", "", "x", 409),
        ("PUT /mine", "", "x", 409),
    ] {
        assert_eq!(ask(&mut server.connect(), line, fields, body).status, status, "{line}");
    }
    assert_eq!(temporary_files(&server), 0);
    assert!(!server.www("a").exists() && server.www("mine/a").exists());
}

#[test]
fn links_are_removed_and_never_followed() {
    let server = site(&format!(
        "{ALL} location /strict/ {{ alias @DIR@/www/; disable_symlinks on from=@DIR@/www; }}"
    ));
    let outside = server.home().dir().join("outside");
    let fill = || {
        fs::create_dir_all(outside.join("deep")).unwrap();
        fs::write(outside.join("deep/file"), "precious").unwrap();
        fs::create_dir_all(server.www("tree/inner")).unwrap();
        fs::write(server.www("tree/inner/file"), "x").unwrap();
        for (to, name) in [("deep", "tree/link"), ("deep/file", "tree/file"), ("none", "tree/bad")]
        {
            symlink(outside.join(to), server.www(name)).unwrap();
        }
    };
    fill();
    let mut client = server.connect();
    assert_eq!(ask(&mut client, "COPY /tree/", "Destination: /copy/\r\n", "").status, 201);
    let copied = |name: &str| server.www("copy").join(name).symlink_metadata().is_ok();
    assert!(copied("inner/file") && !copied("link") && !copied("file") && !copied("bad"));
    assert_eq!(ask(&mut client, "COPY /tree/file", "Destination: /f\r\n", "").status, 403);
    assert_eq!(ask(&mut client, "DELETE /tree/link/", "", "").status, 409);
    assert_eq!(ask(&mut client, "PUT /tree/file", "", "own").status, 204);
    assert_eq!(fs::read_to_string(server.www("tree/file")).unwrap(), "own");
    assert_eq!(ask(&mut client, "PUT /strict/tree/link/file", "", "x").status, 403);
    assert_eq!(ask(&mut client, "DELETE /strict/tree/link/file", "", "").status, 403);
    assert_eq!(ask(&mut client, "DELETE /tree/", "", "").status, 204);
    assert!(server.www("tree").symlink_metadata().is_err());
    assert_eq!(fs::read_to_string(outside.join("deep/file")).unwrap(), "precious");
}

#[test]
fn a_tree_is_moved_elsewhere_and_never_into_itself() {
    let server = site(ALL);
    for directory in ["src/a/b", "src/c"] {
        fs::create_dir_all(server.www(directory)).unwrap();
        for file in 0..100 {
            fs::write(server.www(directory).join(file.to_string()), format!("{file}")).unwrap();
        }
    }
    fs::set_permissions(server.www("src/a"), fs::Permissions::from_mode(0o750)).unwrap();
    let mut client = server.connect();
    let files = |name: &str| {
        let count =
            |inner: &str| fs::read_dir(server.www(name).join(inner)).map_or(0, Iterator::count);
        (count("a/b"), count("c"))
    };
    for (from, to, status) in [
        ("/src/", "/src/sub/", 403),
        ("/src/", "/src/", 403),
        ("/src/a/", "/src/", 403),
        ("/", "/src/new/", 403),
        ("/src/", "/dst/", 201),
        ("/src/", "/dst/", 201),
    ] {
        let fields = format!("Destination: {to}\r\n");
        assert_eq!(ask(&mut client, &format!("COPY {from}"), &fields, "").status, status, "{to}");
        assert_eq!(files("src"), (100, 100), "{from} {to}");
    }
    assert_eq!((files("dst"), mode(server.www("dst/a"))), ((100, 100), 0o750));
    assert_eq!(server.get("/dst/c/99").text(), "99");
    assert_eq!(ask(&mut client, "MOVE /src/", "Destination: /there/\r\n", "").status, 201);
    assert_eq!((files("there"), server.www("src").exists()), ((100, 100), false));
    assert_eq!(server.get("/there/c/7").text(), "7");
    assert_eq!(ask(&mut client, "DELETE /there/", "", "").status, 204);
    assert!(!server.www("there").exists());
    assert_eq!(server.get("/there/c/7").status, 404);
}

#[test]
fn bodies_on_another_file_system_are_copied() {
    let shared = Path::new("/dev/shm").join(format!("bolide-dav-{}", std::process::id()));
    let server = http(&format!(
        "client_body_temp_path {}; server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www; {ALL}
         dav_access user:rw all:r; client_max_body_size 10m; }}",
        shared.display()
    ));
    let body = "0123456789".repeat(500_000);
    let mut client = server.connect();
    for status in [201, 204] {
        let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
        assert_eq!(ask(&mut client, "PUT /far", date, &body).status, status);
        assert_eq!(server.get("/far").text(), body);
        let stat = fs::metadata(server.www("far")).unwrap();
        assert_eq!((stat.mode() & 0o777, stat.mtime()), (0o604, 784_111_777));
    }
    assert_eq!(ask(&mut client, "PUT /none/far", "", &body).status, 500);
    assert_eq!(fs::read_dir(&shared).unwrap().count(), 0, "what is temporary goes");
    let left = fs::read_dir(server.www("")).unwrap();
    let left = left
        .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with("far."));
    assert_eq!(left.count(), 0);
    fs::remove_dir_all(shared).unwrap();
}
