//! What a name of variables means: a group, an address, a name to look up; and what becomes of
//! requests whose name is not found.

use std::fs;

use super::{
    A1, A2, B1, NameReply, TestNames, has_logged, http, serve, serve_with, tried, wait_until,
};
use bolide_testkit::names::A;

#[test]
fn groups_have_precedence_over_the_resolver() {
    let names = TestNames::start();
    let server = http(&format!(
        "upstream Block {{ server 127.0.0.2:@P2@; }}
         server {{ listen 127.0.0.1:@HTTP@; resolver {};
             location /literal {{ proxy_pass http://Localhost:@P2@/x; }}
             location /usual {{ proxy_pass http://localhost; }}
             location /to/ {{ proxy_pass http://$arg_h/; add_header X-Up $upstream_addr always; }} }}
         server {{ listen 127.0.0.1:@P2@; listen 127.0.0.2:@P2@; return 200 $host; }}",
        names.address()
    ));
    let port = server.home().port(2);
    let to = |host: &str| {
        let reply = server.get(&format!("/to/?h={host}"));
        (reply.status, reply.header("x-up").unwrap_or_default().to_owned())
    };
    assert_eq!(to("block"), (200, format!("127.0.0.2:{port}")));
    assert_eq!(to(&format!("LOCALHOST:{port}")), (200, format!("127.0.0.1:{port}")));
    assert_eq!(to(&format!("127.0.0.2:{port}")), (200, format!("127.0.0.2:{port}")));
    // The group of the default port; it is there, but no server listens.
    assert_eq!(to("localhost").0, 502);
    assert!(names.asked("localhost").is_empty() && names.asked("block").is_empty());
    // An `upstream` block has no port, and another port is another host.
    assert_eq!(to(&format!("block:{port}")).0, 502);
    assert_eq!(to(&format!("localhost:{}", port + 1)).0, 502);
    assert_eq!((names.count("localhost", A), names.count("block", A)), (1, 1));
}

#[test]
fn a_name_that_no_resolver_looks_up_is_a_bad_gateway() {
    let server = serve_with("", "");
    assert_eq!(tried(&server, "a.test"), (502, vec![]));
    has_logged(&server, "no resolver defined to resolve a.test, client: ");
    assert_eq!(tried(&server, A2), (503, vec![A2.to_owned()]), "an address needs none");
}

#[test]
fn the_name_stays_the_name() {
    let names = TestNames::start();
    let server = serve(&names, "");
    names.say("A.test".to_lowercase().as_str(), NameReply::ips(&[A1]), NameReply::ips(&[]));
    let port = server.home().port(2);
    let reply = server.get("/ok?h=A.test.");
    assert_eq!(reply.status, 200);
    assert_eq!(reply.text(), format!("A.test.:{port} /ok?h=A.test."));
    assert_eq!(reply.header("x-up"), Some(&*format!("127.0.0.1:{port}")));
    // The same name in other letters is known.
    assert_eq!(server.get("/ok?h=a.TEST").status, 200);
    assert_eq!(names.count("a.test", A), 1);
    assert!(names.asked("A.test").is_empty());
}

#[test]
fn failures_are_reported_and_not_cached() {
    let names = TestNames::start();
    let server = serve(
        &names,
        "location /page { error_page 502 =299 /told; proxy_pass http://$arg_h; }
         location = /told { internal; return 200 told; }",
    );
    for (code, words) in [
        (2, "2: Server failure"),
        (3, "3: Host not found"),
        (4, "4: Unimplemented"),
        (5, "5: Operation refused"),
    ] {
        let name = format!("code{code}.test");
        names.plan(&name, A, &[NameReply::code(code), NameReply::ips(&[A1])]);
        assert_eq!(tried(&server, &name), (502, vec![]));
        has_logged(&server, &format!("{name} could not be resolved ({words}), client: 127.0.0.1"));
        assert_eq!(tried(&server, &name), (503, vec![A1.to_owned()]), "it is asked for again");
        assert_eq!(tried(&server, &name).0, 503);
        assert_eq!(names.count(&name, A), 2, "and then known");
    }
    let reply = server.get("/page?h=none.test");
    assert_eq!((reply.status, reply.text()), (299, "told".to_owned()));
    for bad in ["a..b", ".a", &"a".repeat(64)] {
        assert_eq!(tried(&server, bad), (502, vec![]), "{bad}");
        has_logged(&server, &format!("{bad} could not be resolved (3: Host not found)"));
        assert!(names.asked(bad).is_empty(), "{bad}");
    }
}

#[test]
fn fastcgi_finds_its_server_by_name() {
    let names = TestNames::start();
    let server = http(&format!(
        "server {{ listen 127.0.0.1:@HTTP@; resolver {};
             location / {{ fastcgi_pass $arg_h; fastcgi_next_upstream error;
                 add_header X-Up $upstream_addr always; }} }}",
        names.address()
    ));
    names.say("app.test", NameReply::ips(&[A1, A2]), NameReply::ips(&[B1]));
    let port = server.home().port(3);
    let reply = server.get(&format!("/?h=app.test:{port}"));
    let tried = format!("127.0.0.1:{port}, 127.0.0.2:{port}, [{B1}]:{port}");
    assert_eq!((reply.status, reply.header("x-up")), (502, Some(&*tried)));
    // There is no usual port.
    assert_eq!(server.get("/?h=app.test").status, 500);
    has_logged(&server, "no port in upstream \"app.test\"");
    assert_eq!(server.get("/?h=").status, 500);
}

#[test]
fn the_body_is_read_before_the_lookup() {
    let names = TestNames::start();
    let server = serve(&names, "");
    names.say("a.test", NameReply::ips(&[A1]), NameReply::ips(&[]));
    let mut client = server.connect();
    client.send("POST /ok?h=a.test HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbo");
    assert_eq!(server.get("/ok?h=127.0.0.2").status, 200);
    assert!(names.asked("a.test").is_empty());
    assert_eq!(client.send("dy").answer().status, 200);
    assert_eq!(names.count("a.test", A), 1);
}

#[test]
fn a_reload_forgets_names() {
    let names = TestNames::start();
    let server = serve(&names, "");
    names.plan("a.test", A, &[NameReply::ips(&[A1]), NameReply::ips(&[A2])]);
    for _ in 0..2 {
        assert_eq!(tried(&server, "a.test").1, [A1]);
    }
    let file = server.home().dir().join("nginx.conf");
    let same = fs::read_to_string(&file).expect("the configuration");
    server.rewrite(&same);
    server.signal("HUP");
    wait_until("the new address", || tried(&server, "a.test").1 == [A2]);
}
