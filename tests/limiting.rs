//! Limits on requests and connections (`limit_req`, `limit_conn`), signed links (`secure_link`),
//! methods (`limit_except`), `stub_status` and `empty_gif`.

use std::time::{Duration, Instant};

use bolide_testkit::server::LISTEN;
use bolide_testkit::{Proto, TestApp, TestServer, wait_until};

use crate::{BOLIDE, http, report};

/// A server with zones by the arguments `a` (one request per minute) and `c`.
fn zones(server: &str) -> TestServer {
    http(&block(server))
}

fn block(server: &str) -> String {
    format!(
        "limit_req_zone $arg_a zone=a:1m rate=1r/m; limit_req_zone $arg_t zone=t:1m rate=2r/s;
         limit_req_zone $arg_s zone=s:1m rate=30r/m; limit_conn_zone $arg_c zone=c:1m;
         server {{ {LISTEN} {server} }}"
    )
}

/// The statuses of sequential requests for `path`.
fn statuses(server: &TestServer, path: &str, count: usize) -> Vec<u16> {
    let mut client = server.connect();
    (0..count).map(|_| client.get(path, "").status).collect()
}

#[test]
fn requests_beyond_the_burst_are_refused_for_their_key_alone() {
    let server = zones("limit_req zone=a burst=2 nodelay;");
    assert_eq!(statuses(&server, "/hello.txt?a=1", 5), [200, 200, 200, 503, 503]);
    assert_eq!(statuses(&server, "/hello.txt?a=2", 2), [200, 200]);
    assert_eq!(statuses(&server, "/hello.txt", 5), [200; 5], "an empty key is not counted");
    let log = server.error_log();
    assert!(log.contains("[error]"), "{log}");
    assert!(log.contains("limiting requests, excess: ") && log.contains("by zone \"a\", client"));
}

#[test]
fn a_block_with_limits_of_its_own_drops_those_around_it() {
    let server = zones(
        "limit_req zone=a; limit_req_status 429;
         location /in/ { alias @DIR@/www/; } 
         location /own/ { alias @DIR@/www/; limit_req zone=t burst=9 nodelay; }
         location /status/ { alias @DIR@/www/; limit_req_status 418; }",
    );
    assert_eq!(statuses(&server, "/in/hello.txt?a=1", 2), [200, 429]);
    assert_eq!(statuses(&server, "/own/hello.txt?a=2", 3), [200; 3]);
    assert_eq!(statuses(&server, "/status/hello.txt?a=3", 2), [200, 418]);
}

#[test]
fn a_zone_is_shared_by_all_workers() {
    let server = TestServer::workers(BOLIDE, 4, &block("limit_req zone=a burst=7 nodelay;"));
    // Any worker may accept a connection.
    let passed = (0..40).filter(|_| server.get("/hello.txt?a=1").status == 200).count();
    assert_eq!(passed, 8);
}

#[test]
fn a_zone_outlives_a_reload_unless_its_size_changes_and_may_not_change_its_key() {
    let text = |n: u32, size: &str, key: &str| {
        format!(
            "limit_req_zone {key} zone=a:{size} rate=1r/m; server {{ {LISTEN}
             location /hello.txt {{ limit_req zone=a; }} location /n {{ return 200 {n}; }} }}"
        )
    };
    let server = http(&text(1, "1m", "$arg_a"));
    let is = |n: u32| server.get("/n").text() == n.to_string();
    assert_eq!(statuses(&server, "/hello.txt?a=1", 2), [200, 503]);
    server.reload(&text(2, "1m", "$arg_a"));
    wait_until("the second", || is(2));
    assert_eq!(statuses(&server, "/hello.txt?a=1", 1), [503]);
    server.reload(&text(3, "1m", "$arg_b"));
    let text_of_fault =
        "limit_req \"a\" uses the \"$arg_b\" key while previously it used the \"$arg_a\" key";
    wait_until("the refusal", || server.error_log().contains(text_of_fault));
    assert!(is(2));
    server.reload(&text(4, "2m", "$arg_a"));
    wait_until("the fourth", || is(4));
    assert_eq!(statuses(&server, "/hello.txt?a=1", 2), [200, 503]);
}

#[test]
fn a_request_is_held_back_until_its_rate_allows_it_and_others_are_not() {
    let server = zones(
        "location / { limit_req zone=t burst=5; add_header X-Told $limit_req_status always; }
         location /free { return 200 free; }",
    );
    let begun = Instant::now();
    let mut held = server.connect();
    assert_eq!(held.get("/hello.txt?t=1", "").header("x-told"), Some("PASSED"));
    held.send("GET /hello.txt?t=1 HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("the delay", || server.error_log().contains("delaying request, excess: "));
    // The worker is free meanwhile.
    assert_eq!(server.get("/free").text(), "free");
    let answer = held.answer();
    assert_eq!((answer.status, answer.header("x-told")), (200, Some("DELAYED")));
    assert!(begun.elapsed() >= Duration::from_millis(450), "{:?}", begun.elapsed());
    assert!(server.error_log().contains("by zone \"t\""));
}

#[test]
fn a_request_may_be_held_back_for_longer_than_a_body_may_be_late() {
    let server = zones("client_body_timeout 1s; limit_req zone=s burst=5;");
    assert_eq!(statuses(&server, "/hello.txt?s=1", 2), [200; 2]);
    assert!(server.error_log().contains("delaying request, excess: "));
}

#[test]
fn a_client_that_leaves_while_it_is_held_back_is_logged_as_499() {
    let server = zones("location / { limit_req zone=a burst=5; }");
    let mut held = server.connect();
    assert_eq!(held.get("/hello.txt?a=1", "").status, 200);
    held.send("GET /hello.txt?a=1 HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("the delay", || server.error_log().contains("delaying request, excess: "));
    drop(held);
    wait_until("499 in the log", || server.access_log().contains("\" 499 "));
    assert!(server.error_log().contains("client prematurely closed connection, client: "));
}

#[test]
fn dry_runs_log_and_pass_requests() {
    let server = zones(
        "limit_req_dry_run on; limit_conn_dry_run on;
         location / { limit_req zone=a; limit_conn c 1; add_header X-Told $limit_req_status; }",
    );
    assert_eq!(statuses(&server, "/hello.txt?a=1", 3), [200; 3]);
    assert!(server.error_log().contains("limiting requests, dry run, excess: "));
    let answer = server.get("/hello.txt?a=1");
    assert_eq!(answer.header("x-told"), Some("REJECTED_DRY_RUN"));
}

#[test]
fn a_limited_request_may_get_an_error_page_without_being_counted_again() {
    let server = zones(
        "limit_req zone=a; error_page 503 = /sorry;
         location = /sorry { return 200 $limit_req_status; }",
    );
    assert_eq!(server.get("/hello.txt?a=1").status, 200);
    let answer = server.get("/hello.txt?a=1");
    assert_eq!((answer.status, &*answer.text()), (200, "REJECTED"));
}

#[test]
fn requests_in_progress_count_until_they_end() {
    let server = zones(
        "limit_conn_status 429; location /slow/ { alias @DIR@/www/; limit_conn c 2; limit_rate 1k; }
         location /fast/ { alias @DIR@/www/; limit_conn c 2; }",
    );
    let mut slow: Vec<_> = (0..2).map(|_| server.connect()).collect();
    for client in &mut slow {
        client.send("GET /slow/big.bin?c=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        client.take(100).unwrap();
    }
    assert_eq!(server.get("/fast/hello.txt?c=1").status, 429);
    assert_eq!(server.get("/fast/hello.txt?c=2").status, 200);
    assert!(server.error_log().contains("limiting connections by zone \"c\", client: "));
    slow.pop();
    wait_until("a place is free", || server.get("/fast/hello.txt?c=1").status == 200);
    // Requests that came and went meanwhile left no count.
    assert_eq!(statuses(&server, "/fast/hello.txt?c=1", 20), [200; 20]);
    drop(slow);
    wait_until("two are free", || {
        let mut one = server.connect();
        one.send("GET /slow/big.bin?c=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        let begun = one.take(12).unwrap();
        let other = server.get("/fast/hello.txt?c=1").status;
        begun.ends_with(b" 200") && other == 200
    });
}

#[test]
fn a_script_is_counted_until_it_ends_though_its_client_left() {
    let app = TestApp::start();
    let address = app.address();
    let server = zones(&format!(
        "location / {{ limit_conn c 1; fastcgi_pass {address};
           fastcgi_param REQUEST_URI $document_uri; }}
         location /goes/on {{ limit_conn c 1; fastcgi_ignore_client_abort on;
           fastcgi_pass {address}; fastcgi_param REQUEST_URI $document_uri; }}
         location /kept {{ limit_conn c 1; page_cache on;
           fastcgi_pass {address}; fastcgi_param REQUEST_URI $document_uri; }}"
    ));
    for path in ["/goes/on", "/kept"] {
        app.hold(path);
        let url = server.url(Proto::H2, &format!("{path}?c=1"));
        // A client that has no connection within a second tries again.
        wait_until("the request", || {
            let left = server.curl(Proto::H2).args(["--max-time", "1"]).attempt(&url);
            assert_eq!(left.status, 0, "{path}");
            app.count(path) > 0
        });
        assert_eq!(app.count(path), 1);
        let line = format!("{path}?c=1 HTTP/2.0\" 499 ");
        wait_until("499 in the log", || server.access_log().contains(&line));
        assert_eq!(server.get("/other?c=1").status, 503, "{path}");
        app.release();
        wait_until("the script has ended", || server.get("/other?c=1").status == 200);
    }
    app.hold("/left");
    let mut leaver = server.connect();
    leaver.send("GET /left?c=1 HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("the script runs", || app.count("/left") == 1);
    drop(leaver);
    wait_until("it is given up with its client", || server.get("/other?c=1").status == 200);
    app.release();
}

#[test]
fn each_stream_counts_as_one() {
    let server = zones("location / { limit_conn c 1; limit_rate 1k; }");
    let mut slow = server.connect();
    slow.send("GET /big.bin?c=1 HTTP/1.1\r\nHost: a\r\n\r\n");
    slow.take(100).unwrap();
    for proto in Proto::TLS {
        assert_eq!(server.fetch(proto, "/hello.txt?c=1").status, 503, "{proto:?}");
        assert_eq!(server.fetch(proto, "/hello.txt?c=2").status, 200, "{proto:?}");
        assert_eq!(server.fetch(proto, "/hello.txt?c=2").status, 200, "{proto:?}");
    }
}

#[test]
fn wrong_arguments_are_refused_with_nginxs_messages() {
    let home = bolide_testkit::server::Home::new(BOLIDE);
    let zone = "limit_req_zone $uri zone=z:1m rate=1r/s; limit_conn_zone $uri zone=c:1m;";
    let mut failures = Vec::new();
    let rows = [
        ("limit_req zone=no;", "zero size shared memory zone \"no\""),
        ("limit_req zone=c;", "\"c\" is already declared for a different use"),
        ("limit_req zone=z burst=0;", "invalid burst value \"burst=0\""),
        ("limit_req zone=z delay=x;", "invalid delay value \"delay=x\""),
        ("limit_req burst=1;", "\"limit_req\" must have \"zone\" parameter"),
        ("limit_req zone=z; limit_req zone=z;", "\"limit_req\" directive is duplicate"),
        ("limit_req_zone $uri zone=y:1k rate=1r/s;", "zone \"zone=y:1k\" is too small"),
        ("limit_req_zone $uri zone=y:1m rate=0r/s;", "invalid rate \"rate=0r/s\""),
        ("limit_req_zone $host zone=z:1m rate=1r/s;", "is already bound to key \"$uri\""),
        ("limit_req_status 200;", "value must be between 400 and 599"),
        ("limit_req_log_level debug;", "invalid value \"debug\""),
        ("limit_req_dry_run maybe;", "it must be \"on\" or \"off\""),
        ("limit_conn_zone $uri zone=d;", "invalid zone size \"zone=d\""),
        ("limit_conn c 0;", "invalid number of connections \"0\""),
        ("limit_conn c 65536;", "connection limit must be less 65536"),
        ("limit_conn_status x;", "\"limit_conn_status\" directive invalid number"),
        ("limit_conn_log_level x;", "invalid value \"x\""),
        ("limit_conn_dry_run x;", "invalid value \"x\" in \"limit_conn_dry_run\" directive"),
        ("secure_link;", "invalid number of arguments in \"secure_link\" directive"),
        ("secure_link_md5 a; secure_link_md5 b;", "\"secure_link_md5\" directive is duplicate"),
        ("secure_link_secret a; secure_link b;", "\"secure_link_secret\" cannot be mixed with"),
        ("empty_gif;", "\"empty_gif\" directive is not allowed here"),
        ("stub_status;", "\"stub_status\" directive is not allowed here"),
        ("limit_except GET { }", "\"limit_except\" directive is not allowed here"),
        ("server { location / { limit_except GEET { } } }", "invalid method \"GEET\""),
    ];
    for (text, wanted) in rows {
        home.write("t.conf", &format!("events {{}}\nhttp {{ {zone}\n{text}\n}}\n"));
        let done = home.run(&["-t", "-c", "t.conf"]);
        if done.code != 1 || !done.stderr.contains(wanted) {
            failures.push(format!("{text}: {}", done.stderr));
        }
    }
    report(rows.len(), &failures);
}

#[test]
fn a_link_proves_itself_by_its_hash_and_may_end() {
    let server = http(&format!(
        "server {{ {LISTEN} secure_link_secret word; location /s/ {{ secure_link $arg_md5,$arg_e;
         secure_link_md5 \"$secure_link_expires$uri word\";
         if ($secure_link = \"\") {{ return 403; }} if ($secure_link = 0) {{ return 410; }}
         return 200 $secure_link_expires; }}
         location /p/ {{ return 200 $secure_link; }}
         location /out/ {{ secure_link $arg_md5; return 200 [$secure_link]; }}
         location /self/ {{ secure_link $arg_md5; secure_link_md5 \"$secure_link$uri word\";
         return 200 [$secure_link]; }} }}"
    ));
    // Created with: printf '2000000000/s/a word' | openssl md5 -binary | openssl base64 | tr +/ -_
    for (path, status, text) in [
        ("/s/a?md5=jopQbrRRoFkKQAyGzXy1Gg&e=2000000000", 200, "2000000000"),
        ("/s/b?md5=jopQbrRRoFkKQAyGzXy1Gg&e=2000000000", 403, ""),
        ("/s/a?md5=jopQbrRRoFkKQAyGzXy1Gg&e=2000000001", 403, ""),
        ("/s/a?md5=YsVelyT72dbY7GK7-9bLtQ&e=1000000000", 410, ""),
        ("/s/a", 403, ""),
        ("/p/29245bdc2d04a9e0e729927ed0f84e26/link", 200, "link"),
        ("/p/29245bdc2d04a9e0e729927ed0f84e26/else", 200, ""),
        ("/out/29245bdc2d04a9e0e729927ed0f84e26/link", 200, "[]"),
        ("/self/a?md5=9y10zKzGfm7K1j3bWAgsow", 200, "[]"),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, status, "{path}");
        assert!(status != 200 || answer.text() == text, "{path}: {}", answer.text());
    }
    let text = "cycle while evaluating variable \"secure_link\"";
    wait_until("the cycle is logged", || server.error_log().contains(text));
}

#[test]
fn empty_gif_is_a_picture_with_a_date() {
    let server = http(&format!("server {{ {LISTEN} location /g {{ empty_gif; }} }}"));
    let answer = server.get("/g");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("image/gif")));
    assert_eq!((answer.body.len(), &answer.body[..6]), (43, &b"GIF89a"[..]));
    let date = answer.header("last-modified").unwrap();
    let mut client = server.connect();
    assert_eq!(client.get("/g", &format!("If-Modified-Since: {date}\r\n")).status, 304);
    let refused = client.ask("POST /g HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(refused.status, 405);
}

#[test]
fn limit_except_applies_its_rules_to_other_methods() {
    let server = http(&format!(
        "server {{ {LISTEN} location /get {{ limit_except GET {{ deny all; }} return 200 $uri;
         location /get/in {{ return 200 in; }} }}
         location /post {{ limit_except post {{ deny all; }} return 200 $request_method; }} }}"
    ));
    let mut client = server.connect();
    for (request, status) in [
        ("GET /get", 200),
        ("HEAD /get", 200),
        ("POST /get", 403),
        ("PROPFIND /get", 403),
        ("DELETE /get/in", 200),
        ("POST /post", 200),
        ("GET /post", 403),
        ("HEAD /post", 403),
    ] {
        let head = format!("{request} HTTP/1.1\r\nHost: a\r\nContent-Length: 0");
        assert_eq!(client.ask(&head).status, status, "{request}");
    }
    assert!(server.error_log().contains("access forbidden by rule"));
}

#[test]
fn stub_status_counts_connections_and_requests_of_all_workers() {
    let block = format!("server {{ {LISTEN} location /status {{ stub_status; }} }}");
    let server = TestServer::workers(BOLIDE, 3, &block);
    let mut idle: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for client in &mut idle {
        assert_eq!(client.get("/hello.txt", "").status, 200);
    }
    let mut half = server.connect();
    half.send("GET /hello.txt HTTP/1.1\r\nHo");
    let mut asking = server.connect();
    let numbers = |text: &str| -> Vec<u64> {
        text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
    };
    let mut last = String::new();
    wait_until("the numbers", || {
        let answer = asking.get("/status", "");
        assert_eq!(answer.header("content-type"), Some("text/plain"));
        last = answer.text();
        // Active, then reading, writing, waiting.
        let all = numbers(&last);
        (all[0], &all[4..]) == (10, &[1, 1, 8][..])
    });
    let before = numbers(&last);
    assert!(before[1] >= 10 && before[1] == before[2] && before[3] >= 9, "{last}");
    drop((idle, half));
    wait_until("all others left", || {
        last = asking.get("/status", "").text();
        let all = numbers(&last);
        (all[0], &all[4..]) == (1, &[0, 1, 0][..])
    });
    assert!(last.starts_with("Active connections: 1 \nserver accepts handled requests\n "));
    assert_eq!(asking.ask("POST /status HTTP/1.1\r\nHost: a\r\nContent-Length: 0").status, 405);
}
