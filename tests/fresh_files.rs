//! Files are as fresh as the disk: what changed before a request came is in its answer.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use bolide_testkit::{H1TestClient, Proto, Response};

use crate::site;

const ROUNDS: usize = 200;

fn put(path: impl AsRef<Path>, text: &str) {
    fs::write(path, text).unwrap();
}

/// Puts a file in the place of another in one step.
fn replace(path: &Path, text: &str) {
    let fresh = path.with_extension("fresh");
    put(&fresh, text);
    fs::rename(fresh, path).unwrap();
}

fn get(client: &mut H1TestClient, path: &str) -> Response {
    client.get(path, "")
}

/// The status, and the content if it is a good one.
fn status_and_text(answer: &Response) -> (u16, String) {
    (answer.status, if answer.status == 200 { answer.text() } else { String::new() })
}

#[test]
fn a_file_that_changes_between_two_requests_is_served_as_it_is() {
    let server = site("");
    let path = server.www("page.txt");
    put(&path, "first");
    let mut client = server.connect();
    for round in 0..ROUNDS {
        // Of one length, so that only the content differs.
        let text = format!("round {round:09}");
        match round % 4 {
            0 => put(&path, &text),
            1 => replace(&path, &text),
            2 => {
                fs::remove_file(&path).unwrap();
                assert_eq!(get(&mut client, "/page.txt").status, 404, "{round}");
                put(&path, &text);
            }
            _ => put(&path, &format!("longer {text}")),
        }
        let answer = get(&mut client, "/page.txt");
        assert!(answer.status == 200 && answer.text().ends_with(&text), "{round}: {answer:?}");
        let length = answer.header("content-length").unwrap().parse::<usize>().unwrap();
        assert_eq!(length, answer.text().len());
        assert_eq!(get(&mut client, "/page.txt").text(), answer.text(), "nothing changed");
        let anew = server.connect().get("/page.txt", "");
        assert_eq!(anew.text(), answer.text(), "on another connection");
    }
}

#[test]
fn a_large_file_and_its_validators_are_those_of_the_moment() {
    let server = site("");
    let path = server.www("large.bin");
    let mut client = server.connect();
    let mut tags = Vec::new();
    for size in [300_000, 400_000, 300_001] {
        replace(&path, &"x".repeat(size));
        let answer = get(&mut client, "/large.bin");
        assert_eq!((answer.status, answer.body.len()), (200, size));
        tags.push(answer.header("etag").unwrap().to_owned());
    }
    tags.dedup();
    assert_eq!(tags.len(), 3);
}

#[test]
fn every_protocol_sees_a_change() {
    let server = site("");
    let path = server.www("page.txt");
    for round in 0..3 {
        for proto in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3] {
            let text = format!("{proto:?} {round}");
            put(&path, &text);
            assert_eq!(server.fetch(proto, "/page.txt").text(), text);
        }
    }
}

#[test]
fn precompressed_siblings_of_a_file_may_appear_and_disappear() {
    let server = site(
        "gzip_static on; error_page 404 /gone.html;
         location /try/ { alias @DIR@/www/; try_files one.txt two.txt =410; }
         location /if/ { if (-f @DIR@/www/flag) { return 200 flag; } return 200 none; }",
    );
    let mut client = server.connect();
    put(server.www("a.txt"), "plain");
    for _ in 0..5 {
        let answer = client.get("/a.txt", "Accept-Encoding: gzip\r\n");
        assert_eq!(answer.header("content-encoding"), None);
        put(server.www("a.txt.gz"), "packed");
        let answer = client.get("/a.txt", "Accept-Encoding: gzip\r\n");
        assert_eq!(answer.header("content-encoding"), Some("gzip"));
        fs::remove_file(server.www("a.txt.gz")).unwrap();

        fs::create_dir_all(server.www("kin")).unwrap();
        assert_eq!(get(&mut client, "/kin/").status, 403);
        put(server.www("kin/index.html"), "index");
        assert_eq!(status_and_text(&get(&mut client, "/kin/")), (200, "index".to_owned()));
        fs::remove_dir_all(server.www("kin")).unwrap();
        assert_eq!(get(&mut client, "/kin/").status, 404);

        assert_eq!(get(&mut client, "/try/").status, 410);
        put(server.www("two.txt"), "two");
        assert_eq!(status_and_text(&get(&mut client, "/try/")), (200, "two".to_owned()));
        put(server.www("one.txt"), "one");
        assert_eq!(status_and_text(&get(&mut client, "/try/")), (200, "one".to_owned()));
        fs::remove_file(server.www("one.txt")).unwrap();
        assert_eq!(status_and_text(&get(&mut client, "/try/")), (200, "two".to_owned()));
        fs::remove_file(server.www("two.txt")).unwrap();

        assert_eq!(get(&mut client, "/if/").text(), "none");
        put(server.www("flag"), "");
        assert_eq!(get(&mut client, "/if/").text(), "flag");
        fs::remove_file(server.www("flag")).unwrap();

        put(server.www("gone.html"), "an own page");
        assert_eq!(get(&mut client, "/nothing").text(), "an own page");
        put(server.www("gone.html"), "another page");
        assert_eq!(get(&mut client, "/nothing").text(), "another page");
        fs::remove_file(server.www("gone.html")).unwrap();
        assert!(!get(&mut client, "/nothing").text().contains("another"));
    }
}

#[test]
fn a_link_that_leads_to_another_release_is_followed_at_once() {
    let server = site("location /app/ { alias @DIR@/www/current/; }");
    for release in ["r1", "r2"] {
        fs::create_dir_all(server.www(release).join("deep")).unwrap();
        put(server.www(release).join("deep/a.txt"), release);
    }
    put(server.www("target.txt"), "target");
    symlink("target.txt", server.www("linked.txt")).unwrap();
    let mut client = server.connect();
    for round in 0..20 {
        let release = ["r1", "r2"][round % 2];
        symlink(release, server.www("next")).unwrap();
        fs::rename(server.www("next"), server.www("current")).unwrap();
        assert_eq!(get(&mut client, "/app/deep/a.txt").text(), release, "{round}");
        assert_eq!(get(&mut client, "/app/deep/a.txt").text(), release, "{round}");
        let text = format!("target {round}");
        put(server.www("target.txt"), &text);
        assert_eq!(get(&mut client, "/linked.txt").text(), text);
    }
    // A directory on the way that moves away, and one that takes its place.
    fs::rename(server.www("r2"), server.www("old")).unwrap();
    assert_eq!(get(&mut client, "/app/deep/a.txt").status, 404);
    fs::rename(server.www("r1"), server.www("r2")).unwrap();
    assert_eq!(get(&mut client, "/app/deep/a.txt").text(), "r1");
}

#[test]
fn a_file_of_passwords_and_a_file_with_another_name_are_read_as_they_are() {
    let server = site(
        "open_file_cache max=100; open_file_cache_valid 1h;
         location /closed/ { alias @DIR@/www/; auth_basic x; auth_basic_user_file @DIR@/users; }
         location /open/ { open_file_cache off; alias @DIR@/www/; }
         location /kept/ { alias @DIR@/www/; }",
    );
    let users = server.home().dir().join("users");
    let mut client = server.connect();
    for round in 0..20 {
        // anna:secret
        let word = if round % 2 == 0 { "{PLAIN}secret" } else { "{PLAIN}other" };
        put(&users, &format!("anna:{word}\n"));
        let answer = client.get("/closed/hello.txt", "Authorization: Basic YW5uYTpzZWNyZXQ=\r\n");
        assert_eq!(answer.status, if round % 2 == 0 { 200 } else { 401 }, "{round}");
    }
    put(server.www("one.txt"), "before");
    fs::hard_link(server.www("one.txt"), server.home().dir().join("other")).unwrap();
    assert_eq!(get(&mut client, "/open/one.txt").text(), "before");
    put(server.home().dir().join("other"), "behind");
    assert_eq!(get(&mut client, "/open/one.txt").text(), "behind");
    // What `open_file_cache` keeps, it keeps.
    put(server.www("kept.txt"), "old text");
    assert_eq!(get(&mut client, "/kept/kept.txt").text(), "old text");
    replace(&server.www("kept.txt"), "new text");
    assert_eq!(get(&mut client, "/kept/kept.txt").text(), "old text");
}

#[test]
fn a_tree_that_is_removed_leaves_the_server_at_rest() {
    let server = site("");
    let root = server.www("");
    assert_eq!(server.get("/hello.txt").status, 200);
    server.wait_until_it_rests();
    // The directory goes, and with it all that is watched.
    let aside = root.with_file_name("aside");
    fs::rename(&root, &aside).unwrap();
    fs::remove_dir_all(&aside).unwrap();
    assert_eq!(server.get("/hello.txt").status, 404);
    server.wait_until_it_rests();
    fs::create_dir(&root).unwrap();
    put(root.join("hello.txt"), "again");
    assert_eq!(server.get("/hello.txt").text(), "again");
    server.wait_until_it_rests();
}
