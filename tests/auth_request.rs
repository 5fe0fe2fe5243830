//! Owns: `auth_request`: another location says who may come in, by each protocol, by files, texts
//! and applications; what is kept of its answer; `satisfy`; inheritance.

use testkit::{App, Proto, Said};

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
fn what_another_location_says_decides_by_each_protocol() {
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
fn an_application_is_asked_with_the_fields_of_the_request_and_its_words_are_kept() {
    let app = App::start();
    app.say("/auth", "X-User: alice\nX-Group: staff");
    let denies = Said::head("Status: 401\nWWW-Authenticate: Bearer\nWWW-Authenticate: Basic");
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
    let app = App::start();
    let server = http(&format!(
        "server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www; page_cache on;
           auth_request /auth;
           location / {{ fastcgi_pass unix:{0}; fastcgi_param REQUEST_URI $request_uri; }}
           location = /auth {{ fastcgi_pass unix:{0}; fastcgi_param REQUEST_URI /auth; }} }}",
        app.address().trim_start_matches("unix:")
    ));
    app.plan("/auth", vec![Said::head("Cache-Control: max-age=60").body(b"the secret of /auth")]);
    app.plan("/page", vec![Said::head("Cache-Control: max-age=60").body(b"the page")]);
    let mut client = server.connect();
    for turn in 1..4 {
        assert_eq!(client.get("/page", "").text(), "the page");
        assert_eq!(app.count("/auth"), turn, "each request is asked about");
    }
    app.hold("/auth");
    let mut leaver = server.connect();
    leaver.send("GET /page HTTP/1.1\r\nHost: a\r\n\r\n");
    testkit::wait_until("the question is asked", || app.count("/auth") == 4);
    drop(leaver);
    app.release();
    assert_eq!(client.get("/page", "").text(), "the page");
}

#[test]
fn a_kept_page_does_not_say_who_may_come_in() {
    let app = App::start();
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
    let kept = |text: &[u8]| Said::head("Cache-Control: max-age=60").body(text);
    app.plan("/auth", vec![Said::head("Cache-Control: no-store"), Said::head("Status: 401")]);
    app.plan("/page", vec![kept(b"the page")]);
    assert_eq!(server.get("/page").text(), "the page");
    assert_eq!(server.get("/page").status, 401, "the page is kept, and is no verdict");
    assert_eq!((app.count("/auth"), app.count("/page")), (2, 1));
    app.plan("/auth", vec![kept(b"the secret of /auth")]);
    assert_eq!(server.get("/page").text(), "the page");
    app.plan("/other", vec![kept(b"the other page")]);
    assert_eq!(server.get("/other").text(), "the other page", "nor is the verdict a page");
    // With a key of its own, a verdict may be kept.
    app.plan("/own-auth", vec![kept(b"yes")]);
    app.plan("/own/a", vec![kept(b"a")]);
    testkit::wait_until("both are kept", || {
        let before = (app.count("/own-auth"), app.count("/own/a"));
        assert_eq!(server.get("/own/a").text(), "a");
        before.0 > 0 && (app.count("/own-auth"), app.count("/own/a")) == before
    });
}
