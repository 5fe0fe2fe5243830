//! `bolide status`: the resources of a running server.

use std::io::Write as _;
use std::net::TcpStream;

use bolide_testkit::server::prelude;
use bolide_testkit::{TestPhp, TestServer, wait_until};

use crate::explain::ask;

/// The figures called `name`, one per worker. The figure of a slab is the number of used slots.
fn figures(json: &str, name: &str) -> Vec<u64> {
    let number = |rest: &str| {
        let rest = rest.strip_prefix("{\"used\":").unwrap_or(rest);
        rest.split(|byte: char| !byte.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    json.split(&format!("\"{name}\":")).skip(1).map(number).collect()
}

/// The status of a server when all workers have responded.
fn status(server: &TestServer) -> String {
    let mut json = String::new();
    wait_until("all workers have answered", || {
        json = ask(server, &["status", "--json"]).succeeded().text();
        !json.contains("\"answers\":false")
    });
    json
}

fn sum(server: &TestServer, name: &str) -> u64 {
    figures(&status(server), name).iter().sum()
}

#[test]
fn connections_are_counted_while_they_are_open() {
    let server = TestServer::workers(crate::BOLIDE, 2, "server { listen @HTTP@; root @DIR@/www; }");
    // Listeners open before the server accepts commands; workers respond only after that.
    let _ = server.get("/");
    wait_until("nobody is connected", || sum(&server, "tcp") == 0);
    let idle: Vec<TcpStream> = (0..5)
        .map(|_| {
            let mut idle = TcpStream::connect(server.http()).unwrap();
            idle.write_all(b"GET / HTTP/1.1\r\n").unwrap();
            idle
        })
        .collect();
    wait_until("all are taken", || sum(&server, "tcp") == 5);
    let json = status(&server);
    let (tcp, deadlines) = (figures(&json, "tcp"), figures(&json, "deadlines"));
    // Deadlines of closed connections stay until they fire.
    assert!(tcp.len() == 2 && deadlines.iter().sum::<u64>() >= 5, "{json}");
    assert!(figures(&json, "descriptors")[0] >= 5 && json.contains("\"state\":\"accepting\""));
    assert!(figures(&json, "resident_bytes")[0] > 1 << 20, "{json}");
    let mut text = String::new();
    wait_until("a row for each worker", || {
        text = ask(&server, &["status"]).succeeded().text();
        text.lines().filter(|row| row.ends_with("  accepting")).count() == 2
    });
    assert!(text.starts_with(&format!("process {}, ", server.pid())), "{text}");
    let head = text.lines().nth(1).unwrap();
    assert!(head.contains("tcp") && head.contains("deadlines"), "{text}");
    drop(idle);
    wait_until("all have left", || sum(&server, "tcp") == 0);
}

#[test]
fn requests_are_counted_with_their_origins_the_cache_and_the_pools() {
    let php = TestPhp::start(1);
    let server = crate::cache::serve(&php, "", "page_cache auto;");
    let kept = "/count.php?n=1&h[]=X-LiteSpeed-Cache-Control:public,max-age=60";
    assert_eq!(server.get(kept).status, 200);
    // The first figure is that of the whole cache, and the second that of its part.
    wait_until("the page is kept", || figures(&status(&server), "objects") == [1, 1]);
    let is_over = |name: &&str| sum(&server, name) == 0;
    wait_until("the request is over", || ["exchanges", "fetches", "queued"].iter().all(is_over));
    assert!(status(&server).contains("\"php\":[]"));
    let text = ask(&server, &["status"]).succeeded().text();
    assert!(text.contains("cache: 1 objects, "), "{text}");
}

#[test]
fn a_command_without_a_free_descriptor_gets_an_error() {
    let limits = "worker_rlimit_nofile 100;";
    let http = "http { server { listen @HTTP@; client_header_timeout 10m; root @DIR@/www; } }";
    let server = TestServer::conf(crate::BOLIDE, &format!("{limits} {} {http}", prelude(1)));
    let crowd: Vec<TcpStream> = (0..150)
        .map(|_| {
            let mut one = TcpStream::connect(server.http()).unwrap();
            // A connection within a head is not closed to make room.
            one.write_all(b"GET / HTTP/1.1\r\n").unwrap();
            one
        })
        .collect();
    wait_until("none is left", || server.error_log().contains("accept4() failed (24:"));
    // Once: the descriptors of a response are free again after it.
    let json = ask(&server, &["status", "--json"]).succeeded().text();
    let (held, most) = (figures(&json, "descriptors"), figures(&json, "descriptors_max"));
    // Some are kept from clients.
    assert!(matches!(held[..], [70..100]) && most == [100], "{json}");
    drop(crowd);
    wait_until("all have left", || sum(&server, "tcp") == 0);
}

#[test]
fn errors_are_printed() {
    let server = crate::site("");
    let wrong = ask(&server, &["status", "--all"]);
    assert!(wrong.code == 1 && wrong.stderr.contains("invalid option: \"--all\""), "{wrong}");
    let help = ask(&server, &["status", "--help"]);
    assert!(help.code == 0 && help.text().contains("bolide status"), "{help}");
    let home = bolide_testkit::server::Home::new(crate::BOLIDE);
    home.write("nginx.conf", "pid @DIR@/logs/pid; events {} http { server { listen @HTTP@; } }");
    let nobody = home.run(&["-c", "nginx.conf", "status"]);
    assert!(nobody.code == 1 && nobody.stderr.contains("no server runs here"), "{nobody}");
}
