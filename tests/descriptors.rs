//! Where clients hold all descriptors: what fails for want of one fails as this server's own fault.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};

use bolide_testkit::origin::answer;
use bolide_testkit::server::{TYPES, prelude};
use bolide_testkit::{H1TestClient, Response, TestServer, TestUpstream, wait_until};

use crate::BOLIDE;

/// The clause of a log line.
const NONE_LEFT: &str = "failed (24: Too many open files)";
/// Requests that take more descriptors than are kept from clients.
const HOGS: usize = 40;

fn configuration(server: &str) -> String {
    let main = format!("worker_rlimit_nofile 120; {}", prelude(1));
    format!("{main}http {{ {TYPES} client_header_timeout 10m; {server} }}")
}

fn serve(server: &str) -> TestServer {
    TestServer::conf(BOLIDE, &configuration(server))
}

/// A client within a head, who is not let go to make room.
fn waits(server: &TestServer) -> H1TestClient {
    let mut client = server.connect();
    client.send("GET ");
    client
}

fn all(server: &TestServer, count: usize) -> Vec<H1TestClient> {
    (0..count).map(|_| waits(server)).collect()
}

/// Takes what descriptors the server has for clients.
fn crowd(server: &TestServer) -> Vec<TcpStream> {
    let refused = || server.error_log().contains(&format!("accept4() {NONE_LEFT}"));
    let one = |_| {
        let mut one = TcpStream::connect(server.http()).unwrap();
        one.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        one
    };
    let crowd = (0..200).map(one).collect();
    wait_until("none is left for clients", refused);
    crowd
}

/// Takes those that are left by requests to an origin that does not answer, at `/mute`.
fn hog(server: &TestServer, hogs: &mut [H1TestClient]) {
    for hog in hogs {
        hog.send("/mute HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    let line = format!("{NONE_LEFT} while connecting to upstream");
    wait_until("none is left at all", || server.error_log().contains(&line));
}

/// Goes on with the head of one that waits.
fn go_on(client: &mut H1TestClient, path: &str) -> Response {
    client.send(format!("{path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).answer()
}

#[test]
fn no_server_of_a_group_is_blamed_where_none_can_be_called() {
    let origins = [TestUpstream::start(), TestUpstream::start()];
    for origin in &origins {
        origin.say("/", answer("", "origin"));
    }
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let [one, other] = origins.each_ref().map(TestUpstream::address);
    let server = serve(&format!(
        "upstream u {{ server {one} fail_timeout=1h; server {other} fail_timeout=1h; }}
         server {{ listen 127.0.0.1:@HTTP@; location / {{ proxy_pass http://u; }}
             location = /mute {{ proxy_pass http://{}; }} }}",
        mute.local_addr().unwrap()
    ));
    let (mut hogs, mut waiting) = (all(&server, HOGS), all(&server, 10));
    let crowd = crowd(&server);
    hog(&server, &mut hogs);
    // Where one is let go, the next has its descriptor.
    let statuses: Vec<u16> = waiting.iter_mut().map(|client| go_on(client, "/").status).collect();
    let is_honest = statuses.iter().all(|status| matches!(status, 200 | 500));
    assert!(is_honest && statuses.contains(&500), "{statuses:?} {}", server.error_log());
    drop((hogs, crowd, waiting));
    wait_until("an answer after the crowd", || {
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client.try_answer("GET").is_ok_and(|answer| answer.text() == "origin")
    });
    let log = server.error_log();
    let line = format!("socket() {NONE_LEFT} while connecting to upstream, client: ");
    assert!(
        log.lines().any(|logged| logged.contains("[alert]") && logged.contains(&line)),
        "{log}"
    );
    assert!(!log.contains("temporarily disabled") && !log.contains("no live"), "{log}");
}

#[test]
fn a_file_that_cannot_be_opened_is_there_all_the_same() {
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = serve(&format!(
        "server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www; error_page 404 = /nowhere;
             location /t/ {{ try_files $uri /fallback.html; }}
             location /s/ {{ try_files $uri =404; }}
             location /i/ {{ index none.html index.html /fallback.html; }}
             location /f/ {{ if (!-f $request_filename) {{ return 204; }} }}
             location = /fallback.html {{ return 200 fallback; }}
             location = /nowhere {{ return 410; }}
             location = /mute {{ proxy_pass http://{}; }} }}",
        mute.local_addr().unwrap()
    ));
    let kinds = [("t", "a.txt"), ("s", "a.txt"), ("i", "index.html"), ("f", "a.txt")];
    let files: Vec<(String, String)> = kinds
        .iter()
        .flat_map(|(kind, name)| (0..4).map(move |n| (format!("/{kind}/{n}/"), (*name).to_owned())))
        .collect();
    for (directory, name) in &files {
        let directory = server.www(&directory[1..]);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(name), "there").unwrap();
    }
    let path = |(directory, name): &(String, String)| match &name[..] {
        "index.html" => directory.clone(),
        name => format!("{directory}{name}"),
    };
    let (mut hogs, mut waiting) = (all(&server, HOGS), all(&server, files.len()));
    let crowd = crowd(&server);
    hog(&server, &mut hogs);
    let mut failed = 0;
    for (client, file) in waiting.iter_mut().zip(&files) {
        let (answer, path) = (go_on(client, &path(file)), path(file));
        if answer.status == 500 {
            failed += 1;
            let name = server.www(&file.0[1..]).join(&file.1);
            let logged = format!("open() \"{}\" {NONE_LEFT}", name.display());
            let log = server.error_log();
            assert!(
                log.lines().any(|l| l.contains("[crit]") && l.contains(&logged)),
                "{logged}: {log}"
            );
        } else {
            assert_eq!((answer.status, answer.text()), (200, "there".to_owned()), "{path}");
        }
    }
    assert!(failed >= files.len() / 2, "{failed}");
    drop((hogs, crowd, waiting));
    wait_until("an answer after the crowd", || {
        files.iter().all(|file| {
            let mut client = server.connect();
            client.send(format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", path(file)));
            client.try_answer("GET").is_ok_and(|answer| answer.text() == "there")
        })
    });
}

#[test]
fn logs_are_opened_again_and_configurations_read_while_clients_hold_all() {
    let http = "listen 127.0.0.1:@HTTP@; access_log @DIR@/logs";
    let server = serve(&format!("server {{ {http}/first.log; return 200 before; }}"));
    let mut waiting = all(&server, 2);
    let crowd = crowd(&server);
    let log = server.home().dir().join("logs/error.log");
    std::fs::rename(&log, log.with_extension("old")).unwrap();
    server.signal("USR1");
    wait_until("the log is opened again", || log.exists());
    assert_eq!(go_on(&mut waiting[0], "/").text(), "before");
    server.rewrite(&configuration(&format!("server {{ {http}/other.log; return 200 after; }}")));
    server.signal("HUP");
    wait_until("the configuration is read", || server.error_log().contains("reconfigured"));
    assert_eq!(go_on(&mut waiting[1], "/").text(), "after");
    assert!(!server.error_log().contains("[emerg]"), "{}", server.error_log());
    drop(crowd);
}

/// A site with files that are kept open, and their number.
fn with_large_files(more: &str, count: usize) -> TestServer {
    let server = serve(&format!(
        "server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www; keepalive_requests 100000; {more} }}"
    ));
    for number in 0..count {
        std::fs::write(server.www(&format!("f{number}")), vec![b'x'; 300_000]).unwrap();
    }
    server
}

#[test]
fn idle_files_give_their_descriptors_to_clients() {
    let server = with_large_files("", 300);
    // Of two clients one is always there, so descriptors with low numbers stay taken.
    let mut clients = [waits(&server), waits(&server)];
    for number in 0..300 {
        let answer = go_on(&mut clients[number % 2], &format!("/f{number}"));
        assert_eq!((answer.status, answer.body.len()), (200, 300_000), "/f{number}");
        clients[number % 2] = waits(&server);
    }
    drop(clients);
    assert_eq!(server.get("/f1").status, 200, "a client gets in when all have left");
    let log = server.error_log();
    assert!(!log.contains("[crit]") && !log.contains("[alert]"), "{log}");
}

#[test]
fn idle_files_give_their_descriptors_to_origins() {
    const ORIGINS: usize = 40;
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = mute.local_addr().unwrap();
    let server =
        with_large_files(&format!("location = /mute {{ proxy_pass http://{address}; }}"), 24);
    let mut waiting = all(&server, ORIGINS);
    for number in 0..24 {
        assert_eq!(server.get(&format!("/f{number}")).status, 200);
    }
    for client in &mut waiting {
        client.send("/mute HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    mute.set_nonblocking(true).unwrap();
    let mut called = Vec::new();
    wait_until("all are passed on", || {
        called.extend(std::iter::from_fn(|| mute.accept().ok()));
        called.len() == ORIGINS
    });
    assert!(!server.error_log().contains(NONE_LEFT), "{}", server.error_log());
}
