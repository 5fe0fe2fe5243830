//! `auth_request`: a subrequest authorizes the request; by each protocol, with files, texts and
//! applications as its target; caching of its response; `satisfy`; inheritance.

use bolide_testkit::{AppSaid, Proto, TestApp};

use crate::{http, report, site};

const LOCATIONS: &str = "
    location /files/ { auth_request /hello.txt; rewrite ^/files(.*) $1 break; }
    location /yes/ { auth_request /says/204; rewrite ^/yes(.*) $1 break;
        location /yes/off/ { auth_request off; rewrite ^/yes/off(.*) $1 break; }
        location /yes/no/ { auth_request /says/403; rewrite ^/yes/no(.*) $1 break; } }
    location /no/ { auth_request /says/401; rewrite ^/no(.*) $1 break;
        location /no/inner/ { rewrite ^/no/inner(.*) $1 break; } }
    location /odd/ { auth_request /says/302; rewrite ^/odd(.*) $1 break; }
    location /gone/ { auth_request /nowhere; rewrite ^/gone(.*) $1 break; }
    location /any/ { satisfy any; deny all; auth_request /says/204;
        rewrite ^/any(.*) $1 break;
        location /any/no/ { auth_request /says/401; deny all; rewrite ^/any/no(.*) $1 break; } }
    location /all/ { deny all; auth_request /says/204; rewrite ^/all(.*) $1 break; }
    location /says/204 { internal; return 204; }
    location /says/401 { internal; return 401; }
    location /says/403 { internal; return 403; }
    location /says/302 { internal; return 302 /elsewhere; }
";

#[test]
fn the_status_of_the_auth_subrequest_decides_for_each_protocol() {
    let server = site(LOCATIONS);
    let mut failures = Vec::new();
    for proto in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3] {
        for (path, wanted) in [
            ("/files/page.html", 200),
            ("/yes/page.html", 200),
            ("/yes/off/page.html", 200),
            ("/yes/no/page.html", 403),
            ("/no/page.html", 401),
            ("/no/inner/page.html", 401),
            ("/odd/page.html", 500),
            ("/gone/page.html", 500),
            ("/any/page.html", 200),
            ("/any/no/page.html", 401),
            ("/all/page.html", 403),
            ("/says/204", 404),
        ] {
            let reply = server.curl(proto).get(&server.url(proto, path));
            if reply.status != wanted {
                failures.push(format!("{proto:?} {path}: {}, want {wanted}", reply.status));
            }
        }
    }
    report(48, &failures);
    let log = server.error_log();
    for status in ["302", "404"] {
        assert!(log.contains(&format!("auth request unexpected status: {status}")), "{log}");
    }
    assert!(log.contains(", subrequest: \"/nowhere\""), "{log}");
}

#[test]
fn an_auth_subrequest_has_the_fields_of_the_request_and_auth_request_set_stores_its_variables() {
    let app = TestApp::start();
    app.say("/auth", "X-User: alice\nX-Group: staff");
    let denies = AppSaid::head("Status: 401\nWWW-Authenticate: Bearer\nWWW-Authenticate: Basic");
    app.plan("/denied", vec![denies]);
    let server = http(&format!(
        "server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www;
           location /in/ {{ auth_request /auth; auth_request_set $user $upstream_http_x_user;
             auth_request_set $group \"$upstream_http_x_group/$upstream_status\";
             add_header X-Who \"$user of $group\"; rewrite ^/in(.*) $1 break; }}
           location /out/ {{ auth_request /denied; }}
           location = /auth {{ internal; fastcgi_pass unix:{0};
             fastcgi_param REQUEST_URI /auth; fastcgi_param ASKED $request_uri;
             fastcgi_param REQUEST_METHOD $request_method; }}
           location = /denied {{ fastcgi_pass unix:{0}; fastcgi_param REQUEST_URI /denied; }}
         }}",
        app.address().trim_start_matches("unix:")
    ));
    let mut client = server.connect();
    let let_in = client.get("/in/hello.txt?a=b", "Cookie: key=1\r\nRange: bytes=0-3\r\n");
    assert_eq!((let_in.status, let_in.text().as_str()), (206, "hell"));
    assert_eq!(let_in.header("x-who"), Some("alice of staff/200"));
    let asked = app.asked("/auth");
    let [asked] = &asked[..] else { panic!("asked once: {asked:?}") };
    assert_eq!(asked.param("ASKED"), Some("/in/hello.txt?a=b"));
    assert_eq!(asked.param("HTTP_COOKIE"), Some("key=1"));
    let kept_out = client.get("/out/hello.txt", "");
    assert_eq!((kept_out.status, kept_out.header("www-authenticate")), (401, Some("Bearer")));
    let head = "POST /in/hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    assert_eq!(client.send(head).answer().status, 405, "a body waits for the verdict and is read");
    assert_eq!(client.get("/in/hello.txt", "").status, 200);
}

#[test]
fn a_question_is_no_page_and_ends_with_its_client() {
    let app = TestApp::start();
    let server = http(&format!(
        "server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www; page_cache on;
           auth_request /auth;
           location / {{ fastcgi_pass unix:{0}; fastcgi_param REQUEST_URI $request_uri; }}
           location = /auth {{ fastcgi_pass unix:{0}; fastcgi_param REQUEST_URI /auth; }} }}",
        app.address().trim_start_matches("unix:")
    ));
    app.plan(
        "/auth",
        vec![AppSaid::head("Cache-Control: max-age=60").body(b"the secret of /auth")],
    );
    app.plan("/page", vec![AppSaid::head("Cache-Control: max-age=60").body(b"the page")]);
    let mut client = server.connect();
    for turn in 1..4 {
        assert_eq!(client.get("/page", "").text(), "the page");
        assert_eq!(app.count("/auth"), turn, "each request is asked about");
    }
    app.hold("/auth");
    let mut leaver = server.connect();
    leaver.send("GET /page HTTP/1.1\r\nHost: a\r\n\r\n");
    bolide_testkit::wait_until("the question is asked", || app.count("/auth") == 4);
    drop(leaver);
    app.release();
    assert_eq!(client.get("/page", "").text(), "the page");
}

#[test]
fn a_cached_page_is_served_only_after_its_auth_subrequest() {
    let app = TestApp::start();
    let address = app.address();
    let server = http(&format!(
        "fastcgi_cache_path @DIR@/zone keys_zone=z:1m;
         server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www; fastcgi_cache z;
           location / {{ auth_request /auth; fastcgi_pass {address};
             fastcgi_param REQUEST_URI $request_uri; }}
           location /own/ {{ auth_request /own-auth; fastcgi_pass {address};
             fastcgi_param REQUEST_URI $request_uri; }}
           location = /auth {{ fastcgi_pass {address}; fastcgi_param REQUEST_URI /auth; }}
           location = /own-auth {{ fastcgi_cache_key $uri; fastcgi_pass {address};
             fastcgi_param REQUEST_URI /own-auth; }} }}"
    ));
    let kept = |text: &[u8]| AppSaid::head("Cache-Control: max-age=60").body(text);
    app.plan("/auth", vec![AppSaid::head("Cache-Control: no-store"), AppSaid::head("Status: 401")]);
    app.plan("/page", vec![kept(b"the page")]);
    assert_eq!(server.get("/page").text(), "the page");
    assert_eq!(server.get("/page").status, 401, "the page is kept, and is no verdict");
    assert_eq!((app.count("/auth"), app.count("/page")), (2, 1));
    app.plan("/auth", vec![kept(b"the secret of /auth")]);
    assert_eq!(server.get("/page").text(), "the page");
    app.plan("/other", vec![kept(b"the other page")]);
    assert_eq!(server.get("/other").text(), "the other page", "nor is the verdict a page");
    // With a key of its own, the response of the subrequest may be cached.
    app.plan("/own-auth", vec![kept(b"yes")]);
    app.plan("/own/a", vec![kept(b"a")]);
    bolide_testkit::wait_until("both are kept", || {
        let before = (app.count("/own-auth"), app.count("/own/a"));
        assert_eq!(server.get("/own/a").text(), "a");
        before.0 > 0 && (app.count("/own-auth"), app.count("/own/a")) == before
    });
}

#[test]
fn a_page_for_an_authorized_user_is_not_cached_for_others() {
    let app = TestApp::start();
    let address = app.address();
    let server = http(&format!(
        "server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www; page_cache on;
           location / {{ auth_request /auth; auth_request_set $user $upstream_http_x_user;
             fastcgi_pass {address}; fastcgi_param REQUEST_URI $request_uri;
             fastcgi_param REMOTE_USER $user; }}
           location = /auth {{ fastcgi_pass {address}; fastcgi_param REQUEST_URI /auth; }} }}"
    ));
    let says = |control: &str| {
        let head = format!("Cache-Control: {control}");
        vec![AppSaid::head(&head).body(b"for alice"), AppSaid::head(&head).body(b"for nobody")]
    };
    for (path, control, second) in [
        ("/a", "max-age=60", "for nobody"),
        ("/b", "public, max-age=60", "for alice"),
        ("/c", "s-maxage=60", "for alice"),
    ] {
        app.plan("/auth", vec![AppSaid::head("X-User: alice"), AppSaid::head("X-User: nobody")]);
        app.plan(path, says(control));
        assert_eq!(server.get(path).text(), "for alice", "{path}");
        assert_eq!(server.get(path).text(), second, "{path}");
    }
    let [first, second] = &app.asked("/a")[..] else { panic!("asked twice") };
    let users = [first, second].map(|asked| asked.param("REMOTE_USER"));
    assert_eq!(users, [Some("alice"), Some("nobody")]);
}

#[test]
fn a_question_is_counted_where_its_request_was_not_and_for_as_long() {
    let server = http(
        "limit_req_zone $http_a zone=a:1m rate=1r/m; limit_req_zone $http_q zone=q:1m rate=1r/m;
         limit_conn_zone $http_c zone=c:1m;
         server { listen 127.0.0.1:@HTTP@; root @DIR@/www;
           add_header X-Told $limit_req_status always;
           location / { limit_conn c 9; limit_req zone=a burst=9 nodelay; auth_request /asks; }
           location = /asks { limit_req zone=q; alias @DIR@/www/hello.txt; }
           location /slow/ { auth_request /holds; limit_rate 1k; alias @DIR@/www/; }
           location /fast/ { auth_request /holds; alias @DIR@/www/; }
           location = /holds { limit_conn c 1; alias @DIR@/www/hello.txt; } }",
    );
    let result = |fields: &str| {
        let answer = server.connect().get("/hello.txt", fields);
        (answer.status, answer.header("x-told").map(str::to_owned))
    };
    let passed = (200, Some("PASSED".to_owned()));
    assert_eq!(result(""), (200, None));
    assert_eq!(result("C: 1\r\nQ: 1\r\n"), passed, "by the question");
    assert_eq!(result("C: 1\r\nQ: 1\r\n"), (500, Some("REJECTED".to_owned())));
    for _ in 0..2 {
        assert_eq!(result("A: 1\r\nQ: 2\r\n"), passed, "by the request, and not again");
    }
    assert!(server.error_log().contains("auth request unexpected status: 503"));
    let mut slow = server.connect();
    slow.send("GET /slow/big.bin HTTP/1.1\r\nHost: a\r\nC: 2\r\n\r\n");
    slow.take(100).unwrap();
    let status = || server.connect().get("/fast/hello.txt", "C: 2\r\n").status;
    assert_eq!(status(), 500);
    drop(slow);
    bolide_testkit::wait_until("a place is free", || status() == 200);
}

#[test]
fn a_question_is_a_get_with_the_number_of_its_request() {
    let app = TestApp::start();
    let server = http(&format!(
        "server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www; client_body_timeout 1s;
           location /x/ {{ auth_request /auth; add_header X-Id $request_id; alias @DIR@/www/; }}
           location = /auth {{ fastcgi_pass {}; fastcgi_param REQUEST_URI /auth;
             fastcgi_param ID $request_id; }}
           location /z/ {{ auth_request /file; alias @DIR@/www/; }}
           location = /file {{ limit_except GET {{ deny all; }} try_files /hello.txt =404; }} }}",
        app.address()
    ));
    let mut client = server.connect();
    let answer = client.get("/x/hello.txt", "");
    assert_eq!(answer.header("x-id"), app.asked("/auth")[0].param("ID"));
    let post = "POST /z/hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(client.send(post).answer().status, 405, "by the file, not by the question");
    // A client may wait for the subrequest longer than `send_timeout`.
    app.hold("/auth");
    client.send("GET /x/hello.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    bolide_testkit::wait_until("the question is asked", || app.count("/auth") == 2);
    bolide_testkit::pause(1500);
    app.release();
    assert_eq!(client.answer().status, 200);
}
