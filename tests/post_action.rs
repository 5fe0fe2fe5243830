//! `post_action`: the subrequest behind a response, and the log line after it; in each protocol,
//! with all kinds of targets, with clients that leave; inheritance, invalid arguments.

use bolide_testkit::origin::{answer, answer_of};
use bolide_testkit::server::{Home, LISTEN};
use bolide_testkit::{Proto, TestApp, TestServer, TestUpstream, wait_until};

use crate::{BOLIDE, http, report};

const FORMAT: &str = "log_format post '$request_uri $uri $args $status $body_bytes_sent \
    $request_completion $request_method $upstream_status $sent_http_x_own';";

/// A server with these directives, whose log shows the effect of `post_action`.
fn serve(directives: &str) -> TestServer {
    http(&format!(
        "{} server {{ {LISTEN} access_log @DIR@/logs/post.log post; {directives} }}",
        FORMAT
    ))
}

/// The lines of its log, once there are this many.
fn lines(server: &TestServer, count: usize) -> Vec<String> {
    let read = || server.home().read("logs/post.log");
    wait_until("lines in the log", || read().lines().count() >= count);
    read().lines().map(str::to_owned).collect()
}

#[test]
fn the_log_is_written_where_the_request_ends_by_each_protocol() {
    let server = serve(
        "location = /page.html { post_action /done; add_header X-Own page; }
         location = /done { add_header X-Own done; return 202 \"nobody reads this\"; }",
    );
    let size = std::fs::metadata(server.www("page.html")).unwrap().len();
    for proto in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3] {
        let reply = server.fetch(proto, "/page.html?a=b");
        assert_eq!((reply.status, reply.body.len() as u64), (200, size), "{proto:?}");
        assert_eq!(reply.header("x-own"), Some("page"), "{proto:?}");
    }
    for line in lines(&server, 4) {
        // The bytes sent to the client are still counted; the status is the last one.
        let mut words: Vec<&str> = line.split(' ').collect();
        assert!(words[4].parse::<u64>().unwrap() >= size, "{line}");
        words.remove(4);
        assert_eq!(words.join(" "), "/page.html?a=b /done - 202 OK GET - page");
    }
}

#[test]
fn the_target_is_taken_literally_and_ends_as_any_request_does() {
    let origin = TestUpstream::start();
    origin.say("/e500", answer_of("500 No", "", "no"));
    origin.say("/inside", answer("X-Accel-Redirect: /done", ""));
    let server = serve(&format!(
        "error_page 410 =411 /done;
         location = /query {{ post_action /done?x=1; return 200 ok; }}
         location = /variable {{ post_action /done$args; return 200 ok; }}
         location = /named {{ post_action @named; return 200 ok; }}
         location @named {{ return 204; }}
         location = /named-missing {{ post_action @none; return 200 ok; }}
         location = /off {{ post_action off; return 200 ok; }}
         location = /moved {{ post_action /done; return 301 /x; }}
         location = /denied {{ post_action /denied/in; return 200 ok; }}
         location = /denied/in {{ deny all; }}
         location = /closed {{ post_action /done; return 444; }}
         location = /to-closed {{ post_action /closed/in; return 200 ok; }}
         location = /closed/in {{ return 444; }}
         location = /to-error {{ post_action /gone; return 200 ok; }}
         location = /gone {{ return 410; }}
         location = /to-internal {{ post_action /internal; return 200 ok; }}
         location = /internal {{ internal; return 203 inside; }}
         location = /to-file {{ post_action /page.html; return 200 ok; }}
         location = /to-nothing {{ post_action /nothing; return 200 ok; }}
         location = /rewritten {{ post_action /rewrite; return 200 ok; }}
         location = /rewrite {{ rewrite ^ /done?k=v last; }}
         location = /tried {{ post_action /try; return 200 ok; }}
         location = /try {{ try_files /nothing @named; }}
         location = /chain {{ post_action /chain/2; return 200 ok; }}
         location = /chain/2 {{ post_action /done; return 203 ok; }}
         location = /round {{ post_action /round; return 200 ok; }}
         location = /cycle {{ post_action /done; rewrite ^ /cycle last; }}
         location = /to-origin {{ post_action /e500; return 200 ok; }}
         location = /e500 {{ proxy_pass http://{0}; }}
         location = /to-inside {{ post_action /inside; return 200 ok; }}
         location = /inside {{ proxy_pass http://{0}; }}
         location = /asked {{ post_action /ask; return 200 ok; }}
         location = /ask {{ auth_request /no; alias @DIR@/www/page.html; }}
         location = /no {{ return 403; }}
         location = /done {{ return 202; }}",
        origin.address()
    ));
    let mut failures = Vec::new();
    let rows = [
        ("/query?a=b", "/done?x=1 - 404 GET -"),
        ("/variable?a=b", "/done$args - 404 GET -"),
        ("/named?a=b", "/named a=b 204 GET -"),
        ("/named-missing", "/named-missing - 500 GET -"),
        ("/off", "/off - 500 GET -"),
        ("/moved", "/done - 301 GET -"),
        ("/denied", "/denied/in - 403 GET -"),
        ("/closed", "/closed - 444 GET -"),
        ("/to-closed", "/closed/in - 200 GET -"),
        ("/to-error", "/done - 411 GET -"),
        ("/to-internal", "/internal - 203 GET -"),
        ("/to-file", "/page.html - 200 GET -"),
        ("/to-nothing", "/nothing - 404 GET -"),
        ("/rewritten", "/done k=v 202 GET -"),
        ("/tried", "/try - 204 GET -"),
        ("/chain", "/done - 202 GET -"),
        ("/round", "/round - 500 GET -"),
        ("/cycle", "/done - 500 GET -"),
        ("/to-origin", "/e500 - 500 GET 500"),
        ("/to-inside", "/done - 202 GET 200"),
        ("/asked", "/ask - 403 GET -"),
    ];
    for (at, (target, wanted)) in rows.iter().enumerate() {
        let mut client = server.connect();
        client
            .send(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
        if let Ok(reply) = client.try_answer("GET")
            && !matches!((reply.status, *target), (200, _) | (301, "/moved") | (500, "/cycle"))
        {
            failures.push(format!("{target}: the client got {}", reply.status));
        }
        let line = lines(&server, at + 1).pop().unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let got = [words[1], words[2], words[3], words[6], words[7]].join(" ");
        if got != *wanted {
            failures.push(format!("{target}: {got}, want {wanted}"));
        }
    }
    report(rows.len(), &failures);
    let log = server.error_log();
    for text in [
        "could not find named location \"@none\"",
        "could not find named location \"off\"",
        "rewrite or internal redirection cycle while internally redirecting to \"/round\"",
        "rewrite or internal redirection cycle while redirect to named location \"@none\"",
        "access forbidden by rule",
    ] {
        assert!(log.contains(text), "{text}: {log}");
    }
}

#[test]
fn an_upstream_gets_the_post_action_and_no_client_waits_for_its_body() {
    let (origin, app) = (TestUpstream::start(), TestApp::start());
    let server = serve(&format!(
        "location = /told {{ post_action /tell; return 200 told; }}
         location = /tell {{ proxy_pass http://{0}; proxy_set_header X-Sent $body_bytes_sent;
             proxy_set_header X-Whole $request_completion; proxy_set_header X-Was $request_uri; }}
         location = /both {{ proxy_pass http://{0}; post_action /tell; }}
         location = /script {{ post_action /php; return 200 told; }}
         location = /php {{ fastcgi_pass unix:{1}; fastcgi_param REQUEST_URI /php;
             fastcgi_param REQUEST_METHOD $request_method; fastcgi_param LEN $content_length; }}",
        origin.address(),
        app.address().trim_start_matches("unix:")
    ));
    let mut client = server.connect();
    assert_eq!(client.get("/told?a=b", "").text(), "told");
    let asked = |count| {
        wait_until("the request of the post action", || origin.count("/tell") >= count);
        origin.asked("/tell").pop().unwrap()
    };
    let request = asked(1);
    assert_eq!(request.line(), "GET /tell HTTP/1.1");
    let fields = ["x-sent", "x-whole", "x-was", "content-length"].map(|name| request.field(name));
    assert_eq!(fields, [Some("4"), Some("OK"), Some("/told?a=b"), None]);
    assert_eq!(client.ask("HEAD /told HTTP/1.1\r\nHost: localhost").status, 200);
    let request = asked(2);
    assert_eq!((request.method(), request.field("x-sent")), ("HEAD", Some("0")));
    // A discarded body is gone; a body that another upstream got is sent again.
    let post = "HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabcde";
    assert_eq!(client.send(format!("POST /told {post}")).answer().status, 200);
    let request = asked(3);
    assert_eq!((request.method(), request.field("content-length")), ("POST", Some("0")));
    assert_eq!(client.send(format!("POST /both {post}")).answer().status, 200);
    let request = asked(4);
    assert_eq!((request.field("content-length"), &request.body[..]), (Some("5"), &b"abcde"[..]));
    assert_eq!(client.get("/script", "").text(), "told");
    wait_until("the request to the script", || app.count("/php") == 1);
    let statuses: Vec<String> = lines(&server, 5)
        .iter()
        .map(|line| line.split(' ').skip(7).take(3).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(statuses[..3], ["200 -", "200 -", "200 -"]);
    assert_eq!(statuses[3], "200 : 200", "both origins are known");
}

#[test]
fn a_client_that_leaves_early_is_accounted_for() {
    let origin = TestUpstream::start();
    let server = serve(&format!(
        "location = /slow {{ proxy_pass http://{0}; post_action /tell; }}
         location = /tell {{ proxy_pass http://{0}; proxy_set_header X-Sent $body_bytes_sent;
             proxy_set_header X-Whole \"[$request_completion]\"; }}",
        origin.address()
    ));
    origin.hold("/slow");
    for proto in [Proto::H1, Proto::H2, Proto::H3] {
        let before = origin.count("/tell");
        let curl = server.curl(proto).args(["--max-time", "0.3"]);
        assert_ne!(curl.attempt(&server.url(proto, "/slow")).status, 200);
        wait_until("the request of the post action", || origin.count("/tell") > before);
        let request = origin.asked("/tell").pop().unwrap();
        assert_eq!((request.field("x-sent"), request.field("x-whole")), (Some("0"), Some("[]")));
    }
    origin.release();
    for line in lines(&server, 3) {
        assert!(line.starts_with("/slow /tell - 200 0  GET "), "{line}");
    }
}

#[test]
fn the_next_request_of_a_connection_waits_and_others_do_not() {
    let origin = TestUpstream::start();
    let server = serve(&format!(
        "location = /first {{ post_action /tell; return 200 first; }}
         location = /second {{ return 200 second; }}
         location = /tell {{ proxy_pass http://{0}; }}",
        origin.address()
    ));
    origin.hold("/tell");
    let mut client = server.connect();
    client.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\nGET /second HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer().text(), "first", "the answer itself does not wait");
    wait_until("the request of the post action", || origin.count("/tell") == 1);
    assert_eq!(server.get("/second").text(), "second");
    // HTTP/2 and HTTP/3 continue, too, and a connection that must close closes at once.
    for proto in [Proto::H2c, Proto::H2, Proto::H3] {
        assert_eq!(server.fetch(proto, "/first").text(), "first", "{proto:?}");
    }
    let mut leaver = server.connect();
    leaver.send("GET /first HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(leaver.answer().text(), "first");
    assert!(leaver.is_closed());
    wait_until("all post actions", || origin.count("/tell") == 5);
    assert_eq!(lines(&server, 1), ["/second /second - 200 6 OK GET - -"], "no other has ended");
    origin.release();
    assert_eq!(client.answer().text(), "second");
    assert_eq!(client.get("/second", "").text(), "second");
    assert_eq!(lines(&server, 8).len(), 8);
}

#[test]
fn requests_that_wait_behind_it_are_not_late() {
    let origin = TestUpstream::start();
    let server = serve(&format!(
        "client_header_timeout 1s;
         location = /first {{ post_action /tell; return 200 first; }}
         location = /tell {{ proxy_pass http://{0}; }}",
        origin.address()
    ));
    origin.hold("/tell");
    let mut client = server.connect();
    client.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3));
    assert_eq!(client.answer().text(), "first");
    wait_until("the request of the post action", || origin.count("/tell") == 1);
    // Longer than a head may take.
    bolide_testkit::pause(2500);
    origin.release();
    for _ in 0..2 {
        assert_eq!(client.answer().text(), "first");
    }
    assert_eq!(lines(&server, 3).len(), 3);
}

#[test]
fn clients_that_are_late_are_logged() {
    let server = serve(
        "client_header_timeout 1s; client_body_timeout 1s; post_action @end;
         location / { proxy_pass http://127.0.0.1:1; } location @end { return 202; }",
    );
    let mut late = server.connect();
    late.send("GET /head HTTP/1.1\r\nHost: a\r\n");
    assert!(late.is_closed());
    assert!(lines(&server, 1)[0].contains(" - 408 0 "), "{:?}", lines(&server, 1));
    let mut late = server.connect();
    late.send("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
    assert!(late.is_closed());
    assert!(lines(&server, 2)[1].starts_with("/body "), "{:?}", lines(&server, 2));
}

/// A server whose `/first` has an endless `post_action`; `connections` is its limit.
fn crowd(origin: &TestUpstream, connections: &str) -> TestServer {
    origin.hold("/tell");
    let prelude = bolide_testkit::server::prelude(1).replace("2048", connections);
    let conf = format!(
        "{prelude} http {{ {FORMAT} server {{ {LISTEN}
             access_log @DIR@/logs/post.log post;
             location /first {{ post_action /tell; return 200 first; }}
             location = /tell {{ proxy_pass http://{0}; }} }} }}",
        origin.address()
    );
    TestServer::conf(BOLIDE, &conf)
}

#[test]
fn a_connection_with_too_many_post_actions_continues_without_further_ones() {
    let origin = TestUpstream::start();
    let server = crowd(&origin, "2048");
    for (proto, left_out) in [(Proto::H2, 12), (Proto::H3, 24)] {
        let reply = server.curl(proto).attempt(&server.url(proto, "/first/[1-140]"));
        assert_eq!((reply.exit, reply.status), (0, 200), "{proto:?}: {}", reply.stderr);
        assert_eq!(lines(&server, left_out).len(), left_out, "{proto:?}");
    }
    let log = server.error_log();
    assert_eq!(log.matches("too many post actions of one connection").count(), 24, "{log}");
    origin.release();
    assert_eq!(lines(&server, 280).len(), 280);
}

#[test]
fn a_worker_has_as_many_as_connections() {
    for proto in [Proto::H2, Proto::H3] {
        let origin = TestUpstream::start();
        let server = crowd(&origin, "64");
        // Clients that leave do not free their slots.
        for at in 0..5 {
            let reply = server.curl(proto).attempt(&server.url(proto, "/first/[1-20]"));
            let known = (reply.exit, reply.status);
            assert!(known == (0, 200) || at > 3, "{proto:?}: {known:?} {}", reply.stderr);
        }
        assert!(lines(&server, 16).len() >= 16);
        assert_eq!(origin.count("/tell").max(64), 64, "{proto:?}");
        let text = "worker_connections are not enough, post_action is left out";
        let log = server.error_log();
        assert!(log.lines().any(|line| line.contains("[alert]") && line.contains(text)), "{log}");
        origin.release();
    }
}

#[test]
fn a_server_that_ends_waits_for_post_actions() {
    let origin = TestUpstream::start();
    let mut server = serve(&format!(
        "location = /first {{ post_action /tell; return 200 first; }}
         location = /tell {{ proxy_pass http://{0}; }}",
        origin.address()
    ));
    origin.hold("/tell");
    for _ in 0..2 {
        assert_eq!(server.get("/first").text(), "first");
    }
    wait_until("the request of the post action", || origin.count("/tell") == 2);
    server.signal("QUIT");
    wait_until("it ends", || server.error_log().contains("gracefully shutting down"));
    assert!(!server.has_exited());
    origin.release();
    assert_eq!(server.wait_exit().code, 0);
    assert_eq!(server.home().read("logs/post.log").lines().count(), 2);
}

#[test]
fn it_is_inherited_and_replaced() {
    let server = http(&format!(
        "{} post_action /outer;
         server {{ {LISTEN} access_log @DIR@/logs/post.log post;
           location = /a {{ return 200 a; }}
           location = /b {{ post_action /inner; return 200 b; }}
           location = /c {{ set $on 1; if ($on) {{ post_action /inner; return 200 c; }} }}
           location = /inner {{ post_action \"\"; return 203; }}
           location = /outer {{ post_action @end; return 203; }}
           location @end {{ return 202; }} }}",
        FORMAT
    ));
    for (at, (path, wanted)) in [
        // A location without `post_action` inherits the outer one, even as its target: the loop
        // ends at the limit of internal redirects.
        ("/a", "/a /outer - 500"),
        ("/b", "/b /inner - 500"),
        ("/c", "/c /inner - 500"),
    ]
    .iter()
    .enumerate()
    {
        assert_eq!(server.get(path).status, 200);
        let line = lines(&server, at + 1).pop().unwrap();
        assert!(line.starts_with(wanted), "{line}, want {wanted}");
    }
    assert!(server.error_log().contains("could not find named location \"\""));
}

#[test]
fn malformed_requests_use_the_post_action_of_their_server() {
    let server = serve("post_action @end; location / { } location @end { return 202; }");
    assert_eq!(server.connect().ask("GET / HTTP/1.1").status, 400);
    assert_eq!(server.connect().ask("B\u{1}AD / HTTP/1.1").status, 400);
    for line in lines(&server, 2) {
        assert!(line.contains(" - 500 ") || line.contains(" - 400 "), "{line}");
    }
    assert!(server.error_log().contains("empty URI in redirect to named location \"@end\""));
}

#[test]
fn wrong_arguments_are_refused_as_nginx_does() {
    let home = Home::new(BOLIDE);
    let mut failures = Vec::new();
    let rows = [
        ("location / { post_action; }", "invalid number of arguments in \"post_action\" directive"),
        (
            "location / { post_action /a /b; }",
            "invalid number of arguments in \"post_action\" directive",
        ),
        ("post_action /a; post_action /b;", "\"post_action\" directive is duplicate"),
        ("if ($uri) { post_action /a; }", "\"post_action\" directive is not allowed here"),
        (
            "location / { limit_except GET { post_action /a; } }",
            "\"post_action\" directive is not allowed here",
        ),
    ];
    for (text, wanted) in rows {
        let text = format!("events {{}}\nhttp {{ server {{\nlisten 127.0.0.1:1;\n{text}\n}} }}\n");
        let file = home.write("wrong.conf", &text);
        let file = file.to_str().unwrap();
        let done = home.run(&["-t", "-e", "stderr", "-c", file]);
        let wanted = format!(": {wanted} in {file}:4\n");
        if !done.stderr.contains(&wanted) {
            failures.push(format!("{}, want {wanted}", done.stderr));
        }
    }
    report(rows.len(), &failures);
}
