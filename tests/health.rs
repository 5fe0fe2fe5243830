//! What orchestrators need: probes by `health`, a graceful end by `bolide drain`, and
//! `reload_on_change` for files that are replaced below the server.

use bolide_testkit::server::{Home, LISTEN, TYPES, prelude};
use bolide_testkit::{TestServer, wait_until};

use crate::BOLIDE;
use crate::explain::ask;

fn serve(main: &str, inside: &str) -> TestServer {
    let prelude = prelude(2);
    let conf = format!(
        "{prelude}{main}http {{{TYPES} server {{ {LISTEN}
         location = /alive {{ health alive; }} location = /ready {{ health ready; }}
         location = /none {{ health off; return 204; }} {inside} }} }}\n"
    );
    TestServer::start(Home::new(BOLIDE), &conf)
}

#[test]
fn probes_are_answered_and_other_methods_are_not() {
    let server = serve("", "");
    let alive = server.connect().get("/alive", "");
    assert_eq!((alive.status, &*alive.text()), (200, "alive\n"));
    assert_eq!(alive.header("content-type"), Some("text/plain"));
    assert_eq!(alive.header("cache-control"), Some("no-store"));
    let ready = server.connect().get("/ready", "");
    assert_eq!((ready.status, &*ready.text()), (200, "ready\n"));
    assert_eq!(server.connect().get("/none", "").status, 204);
    let post = "POST /ready HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(server.connect().ask(post).status, 405);
}

#[test]
fn a_server_that_drains_is_not_ready_serves_on_and_then_ends() {
    let mut server = serve("", "location / { return 200 served; }");
    let wrong = ask(&server, &["drain", "--after", "soon"]);
    assert!(wrong.to_string().contains("\"soon\" is not a number of seconds up to 3600"));
    assert_eq!(server.connect().get("/ready", "").status, 200);
    std::thread::scope(|scope| {
        let leaving = scope.spawn(|| ask(&server, &["drain", "--after", "2"]));
        wait_until("the server is not ready", || {
            server.connect().get("/ready", "Connection: close\r\n").status == 503
        });
        assert_eq!(server.connect().get("/ready", "").text(), "leaving\n");
        assert_eq!(server.connect().get("/alive", "").status, 200);
        assert_eq!(server.connect().get("/", "").text(), "served");
        // The command ends with the server.
        let _ended = leaving.join().unwrap().succeeded();
    });
    assert_eq!(server.wait_exit().code, 0);
    let log = server.home().read("logs/error.log");
    assert!(log.contains("leaving, quits in 2 seconds"), "{log}");
}

#[test]
fn files_that_change_are_read_again() {
    let server =
        serve("reload_on_change on;", "include more/*.conf; location / { return 200 one; }");
    let text = |path: &str| server.connect().get(path, "Connection: close\r\n").text();
    let conf = server.home().read("nginx.conf");
    assert_eq!(text("/"), "one");
    // In one step, as orchestrators replace files.
    server.home().write("nginx.conf.new", &conf.replace("return 200 one", "return 200 two"));
    let path = |name: &str| server.home().dir().join(name);
    std::fs::rename(path("nginx.conf.new"), path("nginx.conf")).unwrap();
    wait_until("the file is in force", || text("/") == "two");
    server.home().write("nginx.conf", &conf.replace("return 200 one", "return 20x one"));
    wait_until("the refusal", || {
        server.home().read("logs/error.log").contains("invalid return code \"20x\"")
    });
    assert_eq!(text("/"), "two");
    server.home().write("nginx.conf", &conf.replace("return 200 one", "return 200 three"));
    wait_until("the mended file is in force", || text("/") == "three");
    let reloads = server.home().read("logs/error.log").matches("files have changed").count();
    assert!((3..=4).contains(&reloads), "{reloads} reloads for three changes");
}
