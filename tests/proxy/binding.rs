//! The local address of upstream connections: `proxy_bind` and `fastcgi_bind`.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bolide_testkit::server::{Home, LISTEN};
use bolide_testkit::{TestApp, TestServer, wait_until};

use crate::{BOLIDE, http, report};

/// An HTTP upstream that responds with the client's address, and counts its requests.
fn mirror() -> (String, Arc<AtomicUsize>) {
    use std::io::{Read, Write};

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    std::thread::spawn(move || {
        for mut peer in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            let from = peer.peer_addr().unwrap();
            let mut head = [0; 4096];
            let _ = peer.read(&mut head);
            let (ip, len) = (from.ip().to_string(), from.ip().to_string().len());
            let answer =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\nConnection: close\r\n");
            let _ = peer.write_all(format!("{answer}\r\n{ip}").as_bytes());
        }
    });
    (address, calls)
}

fn serve(address: &str) -> TestServer {
    http(&format!(
        "server {{ {LISTEN} proxy_bind 127.0.0.9;
             add_header X \"$upstream_addr|$upstream_status|$upstream_connect_time\" always;
             location /in/ {{ proxy_pass http://{address}; }}
             location /off/ {{ proxy_bind off; proxy_pass http://{address}; }}
             location /var/ {{ proxy_bind $arg_from; proxy_pass http://{address}; }}
             location /unix/ {{ proxy_pass http://unix:/nowhere/at/all; }}
             location /page/ {{ proxy_bind 192.0.2.1; proxy_pass http://{address};
                                error_page 500 /err; }}
             location /err {{ return 200 \"instead of $status\"; }} }}"
    ))
}

#[test]
fn origins_are_called_by_the_address_that_is_wanted() {
    let (address, _) = mirror();
    let server = serve(&address);
    let mut failures = Vec::new();
    let rows = [
        ("/in/", "127.0.0.9"),
        ("/off/", "127.0.0.1"),
        ("/var/?from=127.0.0.7", "127.0.0.7"),
        ("/var/?from=", "127.0.0.1"),
        ("/var/?from=nonsense", "127.0.0.1"),
        ("/var/?from=127.0.0.7:0", "127.0.0.1"),
        ("/var/?from=off", "127.0.0.1"),
    ];
    for (path, wanted) in rows {
        let text = server.get(path).text();
        if text != wanted {
            failures.push(format!("{path}: {text} and not {wanted}"));
        }
    }
    report(rows.len(), &failures);
    wait_until("the complaint", || {
        let log = server.error_log();
        log.contains("[error] ") && log.contains("invalid local address \"nonsense\", client: ")
    });
}

#[test]
fn a_foreign_bind_address_is_a_server_error() {
    let (address, calls) = mirror();
    let server = serve(&address);
    let rows = [
        ("/var/?from=192.0.2.1", "bind(192.0.2.1) failed (99: Cannot assign requested address)"),
        ("/var/?from=::1", "bind(::1) failed (97: Address family not supported by protocol)"),
        ("/unix/", "bind(127.0.0.9) failed (22: Invalid argument)"),
    ];
    for (path, text) in rows {
        let reply = server.get(path);
        assert_eq!((reply.status, reply.header("x")), (500, Some("|-|-")), "{path}");
        wait_until("the line", || server.error_log().contains(text));
        let log = server.error_log();
        let line = log.lines().find(|line| line.contains(text)).unwrap_or_default();
        let is_right = line.contains("[crit] ") && line.contains(" while connecting to upstream");
        assert!(is_right && line.contains("upstream: \"http://"), "{log}");
    }
    let reply = server.get("/page/");
    assert_eq!((reply.status, reply.text().as_str()), (500, "instead of 500"));
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[test]
fn proxy_bind_may_have_a_port_and_fastcgi_bind_too() {
    let (address, _) = mirror();
    let app = TestApp::start();
    let server = http(&format!(
        "server {{ {LISTEN} location /port {{ proxy_bind 127.0.0.9:@P5@; proxy_pass http://{address}; }}
             location /app {{ fastcgi_bind 127.0.0.9; fastcgi_pass {}; }}
             location /plain {{ proxy_bind 127.0.0.9; fastcgi_pass {}; }} }}",
        app.address(),
        app.address()
    ));
    assert_eq!(server.get("/port").text(), "127.0.0.9");
    assert_eq!(server.get("/app").status, 500, "a unix socket has no such address");
    assert_eq!(server.get("/plain").status, 200, "each family has its own");
}

#[test]
fn wrong_arguments_are_refused_as_nginx_does() {
    let home = Home::new(BOLIDE);
    let rows = [
        ("_bind;", "invalid number of arguments in \"@_bind\" directive"),
        ("_bind 1.2.3.4 a b;", "invalid number of arguments in \"@_bind\" directive"),
        ("_bind bad;", "invalid address \"bad\""),
        ("_bind '';", "invalid address \"\""),
        ("_bind unix:/x;", "invalid address \"unix:/x\""),
        ("_bind 1.2.3.4:0;", "invalid address \"1.2.3.4:0\""),
        ("_bind off x;", "invalid address \"off\""),
        ("_bind 1.2.3.4 x;", "invalid parameter \"x\""),
        ("_bind 1.2.3.4 transparent;", "\"@_bind … transparent\" is not implemented yet"),
        ("_bind off; @_bind off;", "\"@_bind\" directive is duplicate"),
    ];
    let mut failures = Vec::new();
    for family in ["proxy", "fastcgi"] {
        for (text, wanted) in rows {
            let text = format!("@{text}").replace('@', family);
            let conf = home.write("bad.conf", &format!("events {{}}\nhttp {{\n{text}\n}}\n"));
            let done = home.run(&["-t", "-c", conf.to_str().unwrap(), "-e", "logs/start.log"]);
            let wanted = format!("{} in {}:3", wanted.replace('@', family), conf.display());
            if done.code != 1 || !done.stderr.contains(&wanted) {
                failures.push(format!("{text}\n{done}"));
            }
        }
    }
    report(2 * rows.len(), &failures);
}
