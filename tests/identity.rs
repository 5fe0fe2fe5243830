//! Cache keys: no client gets a response that was made for another visitor, host or way, whatever
//! the fields of the request are.

use bolide_testkit::origin::{TestPeer, answer};
use bolide_testkit::server::LISTEN;
use bolide_testkit::{Response, TestApp, TestServer, TestUpstream};

use crate::http;

const HTML: &str = "Content-Type: text/html";

/// An application whose responses contain target, host, role and origin. Targets with the prefix
/// `/x` are redirected by `X-Accel-Redirect`.
fn app() -> TestUpstream {
    TestUpstream::scripted(|peer| while say(peer).is_ok() {})
}

fn say(peer: &mut TestPeer) -> std::io::Result<()> {
    let request = peer.request()?;
    let field = |name: &str| request.field(name).unwrap_or("-").to_owned();
    let body = format!(
        "target={} host={} role={} cookie={} origin={}",
        request.target(),
        field("host"),
        field("role"),
        field("cookie"),
        field("origin")
    );
    let path = request.target().split('?').next().unwrap_or_default();
    let fields = match path {
        "/allow" if field("role") == "member" => return peer.send(answer("", "")),
        "/allow" => return peer.send(bolide_testkit::origin::answer_of("401 Who", "", "")),
        "/x" => format!(
            "Cache-Control: private, no-store\nX-Accel-Redirect: /protected/{}.html",
            field("role")
        ),
        "/esi" => format!("X-LiteSpeed-Cache-Control: public,max-age=60,esi=on\n{HTML}"),
        "/reflects" => format!("X-LiteSpeed-Cache-Control: no-cache,esi=on\n{HTML}"),
        "/cors" => "X-LiteSpeed-Cache-Control: public,max-age=60\nVary: Origin".to_owned(),
        "/account" => "X-LiteSpeed-Cache-Control: private,max-age=60".to_owned(),
        "/varied" => "Cache-Control: public, max-age=60\nVary: Origin".to_owned(),
        _ => "Cache-Control: public, max-age=60".to_owned(),
    };
    let inline = "<esi:inline name=\"/lib/app.js\" cache-control=\"public,max-age=600\">evil\
                  </esi:inline>";
    let body = match path {
        "/reflects" => format!("<html>{inline}</html>"),
        "/esi" => format!("<html>{inline}<esi:include src=\"/lib/app.js\"/></html>"),
        _ => body,
    };
    peer.send(answer(&fields, &body))
}

/// A server that caches by the application's directives.
fn cached(app: &TestUpstream) -> TestServer {
    http(&format!(
        "server {{ {LISTEN} page_cache auto; location / {{ proxy_pass http://{}; }} }}",
        app.address()
    ))
}

fn ask(server: &TestServer, head: &str) -> Response {
    server.connect().ask(head)
}

/// The response to GET for `path` with more fields, each with its line end.
fn get(server: &TestServer, path: &str, fields: &str) -> String {
    server.connect().get(path, fields).text()
}

const MEMBER: &str = "Role: member\r\n";

#[test]
fn responses_after_a_refusal_do_not_use_the_cache() {
    let app = app();
    let at = app.address();
    let pass = format!("proxy_pass http://{at};");
    for caching in [
        "page_cache auto;",
        "page_cache on; page_cache_default_ttl 60s;",
        "proxy_cache z; proxy_cache_key $host$request_uri; proxy_cache_valid 60s;",
    ] {
        let server = http(&format!(
            "proxy_cache_path @DIR@/zone keys_zone=z:1m;
             server {{ {LISTEN} {caching}
                 location /members/ {{ auth_request /ask; error_page 401 = @login; {pass} }}
                 location /shown/ {{ auth_request /ask; error_page 401 /login; {pass} }}
                 location /closed/ {{ if ($http_role = '') {{ return 403; }}
                     error_page 403 = @login; {pass} }}
                 location = /ask {{ internal; proxy_cache off; page_cache off;
                     proxy_pass http://{at}/allow; }}
                 location /login {{ {pass} }}
                 location @login {{ rewrite ^ /login break; {pass} }} }}"
        ));
        for first in [MEMBER, ""] {
            for area in ["members", "shown", "closed"] {
                let path = format!("/{area}/{}", if first.is_empty() { "b" } else { "a" });
                for visitor in [first, MEMBER, "", MEMBER, ""] {
                    let got = get(&server, &path, visitor);
                    let is_own = got.starts_with(&format!("target={path} "));
                    let is_login = got.starts_with("target=/login ");
                    let expected = if visitor.is_empty() { is_login } else { is_own };
                    assert!(expected, "{caching} {path} {visitor:?}: {got}");
                }
            }
        }
    }
}

#[test]
fn a_page_is_known_by_the_way_that_led_to_it() {
    let app = app();
    let at = app.address();
    let other = TestUpstream::start();
    other.plan("/tests", vec![answer("Cache-Control: max-age=60", "target=/inner/tests")]);
    let pass = format!("proxy_pass http://{at};");
    let server = http(&format!(
        "map $http_role $place {{ member http://{at}/inner; default http://{at}/outer; }}
         server {{ {LISTEN} page_cache auto;
             location /x {{ {pass} }}
             location /protected/ {{ internal; {pass} }}
             location /turns {{ if ($http_role = member) {{ rewrite ^ /inner/turns last; }}
                 {pass} }}
             location /tests {{ if ($http_role = member) {{ proxy_pass http://{}; }}
                 {pass} }}
             location /named {{ proxy_pass $place; }}
             location /inner/ {{ internal; {pass} }} }}",
        other.address()
    ));
    for _ in 0..2 {
        for role in ["alice", "bob"] {
            let got = get(&server, "/x", &format!("Role: {role}\r\n"));
            assert!(got.starts_with(&format!("target=/protected/{role}.html ")), "{got}");
        }
        for path in ["/turns", "/tests", "/named"] {
            let inner = get(&server, path, MEMBER);
            assert!(inner.starts_with("target=/inner"), "{path}: {inner}");
            let outer = get(&server, path, "");
            assert!(!outer.starts_with("target=/inner"), "{path}: {outer}");
        }
    }
    // Each way has its page, and one purge of the address removes both.
    let asked = app.count("/inner/turns") + app.count("/turns");
    assert_eq!(asked, 2);
    let purged = ask(&server, "PURGE /turns HTTP/1.1\r\nHost: localhost");
    assert_eq!((purged.status, purged.header("x-purged-objects")), (200, Some("2")));
}

#[test]
fn what_the_configuration_sends_belongs_to_the_page() {
    let app = app();
    let address = app.address();
    let pass = format!("proxy_pass http://{address};");
    let server = http(&format!(
        "map $cookie_t $vh {{ b b.test; default a.test; }}
         map $cookie_t $role {{ b member; default guest; }}
         map $remote_addr $own {{ default \"$remote_addr $cookie_t\"; }}
         server {{ {LISTEN} page_cache auto;
             location /mapped-host {{ {pass} proxy_set_header Host $vh; }}
             location /cookie-host {{ {pass} proxy_set_header Host $cookie_t.test; }}
             location /role {{ {pass} proxy_set_header Role $role; }}
             location /edited {{ {pass} more_set_input_headers \"Role: $role\"; }}
             location /body {{ {pass} proxy_set_body $role; proxy_set_header Role $role; }}
             location /captured {{ if ($http_cookie ~ \"t=(\\w+)\") {{ break; }}
                 {pass} proxy_set_header Role $1; }}
             location /captured-host {{ if ($http_cookie ~ \"t=(\\w+)\") {{ break; }}
                 {pass} proxy_set_header X-Real-IP $own; proxy_set_header Host $1.test; }}
             location /address {{ if ($http_cookie ~ \"t=(\\w+)\") {{ break; }}
                 proxy_pass http://{address}/address/$1; }}
             location /trusted {{ {pass} proxy_set_header X-Forwarded-Host $cookie_t;
                 proxy_set_header Role $cookie_t; }}
             location /bearer {{ {pass} proxy_set_header Authorization \"Bearer $cookie_t\";
                 proxy_set_header Role $cookie_t; }}
             location /composed {{ {pass} proxy_set_header Cookie \"role=$role; $http_cookie\"; }}
             location /varied {{ {pass} proxy_set_header Origin $cookie_t; }}
             location /plain {{ {pass} proxy_set_header Host $http_host;
                 proxy_set_header X-Real-IP $own; proxy_set_header X-Trace-Id $own;
                 proxy_set_header X-Own \"$cookie_t\"; }} }}"
    ));
    let status = |path: &str, cookie: &str| {
        let got = server.connect().get(path, &format!("Cookie: t={cookie}\r\n"));
        let said = got.header("x-litespeed-cache").unwrap_or("miss").to_owned();
        (got.text(), said)
    };
    let all = [
        "/mapped-host",
        "/cookie-host",
        "/role",
        "/edited",
        "/body",
        "/captured",
        "/captured-host",
        "/address",
        "/trusted",
        "/bearer",
        "/composed",
    ];
    for path in all {
        let (of_a, _) = status(path, "a");
        let (of_b, said) = status(path, "b");
        assert_eq!(said, "miss", "{path}");
        assert_ne!(of_a.replace("cookie=t=a", ""), of_b.replace("cookie=t=b", ""), "{path}");
        for (cookie, expected) in [("a", &of_a), ("b", &of_b)] {
            let (text, said) = status(path, cookie);
            assert_eq!((&text, said.contains("hit")), (expected, true), "{path}");
        }
    }
    // The application varies by a field that is not the client's.
    for cookie in ["a", "b", "a"] {
        let (text, said) = status("/varied", cookie);
        let origin = text.ends_with(&format!("origin={cookie}"));
        assert!(origin && !said.contains("hit"), "{said}: {text}");
    }
    // What only says who the client is makes no page of its own.
    let first = status("/plain", "a");
    let second = status("/plain", "b");
    assert_eq!((second.0, second.1.contains("hit")), (first.0, true));
    let purged = ask(&server, "PURGE /role HTTP/1.1\r\nHost: localhost");
    assert_eq!((purged.status, purged.header("x-purged-objects")), (200, Some("2")));
}

#[test]
fn a_host_that_the_application_sees_belongs_to_the_page() {
    let app = app();
    let server = http(&format!(
        "server {{ {LISTEN} page_cache auto;
             location / {{ proxy_pass http://{}; proxy_set_header Host $http_host; }} }}",
        app.address()
    ));
    let plain = |head: &str| ask(&server, head).text();
    for (head, host) in [
        ("GET http://victim.test/p HTTP/1.1\r\nHost: evil.test", "evil.test"),
        ("GET /p HTTP/1.1\r\nHost: victim.test:1337", "victim.test:1337"),
        ("GET /p HTTP/1.1\r\nHost: VICTIM.test.", "VICTIM.test."),
        ("GET /p HTTP/1.1\r\nHost: victim.test", "victim.test"),
    ] {
        for _ in 0..2 {
            let got = plain(head);
            assert!(got.contains(&format!(" host={host} ")), "{head}: {got}");
        }
    }
    assert_eq!(app.count("/p"), 4);
}

#[test]
fn reflected_input_replaces_no_cached_page() {
    let app = app();
    let server = cached(&app);
    for page in ["/reflects", "/esi"] {
        let got = get(&server, page, "");
        assert!(got == "<html></html>" || got == "<html>evil</html>", "{got}");
        let script = get(&server, "/lib/app.js", "");
        assert!(script.starts_with("target=/lib/app.js "), "{page}: {script}");
        // Another page that includes it.
        let other = get(&server, "/esi?2", "");
        assert_eq!(other, "<html>evil</html>", "its own inline is its own business");
    }
}

#[test]
fn every_cookie_of_a_session_is_part_of_it() {
    let app = app();
    let server = cached(&app);
    let tossed = "lsc_private=0123456789abcdef";
    let shared = "frontend=fedcba9876543210";
    for (who, cookies) in [
        ("the victim", format!("{tossed}; PHPSESSID=aaaaaaaaaaaaaaaa")),
        ("who tossed it", format!("{tossed}; PHPSESSID=bbbbbbbbbbbbbbbb")),
        ("no other cookie", tossed.to_owned()),
        ("one of two", format!("{shared}; wordpress_logged_in_1=one")),
        ("the other", format!("{shared}; wordpress_logged_in_1=two")),
    ] {
        for _ in 0..2 {
            let got = get(&server, "/account", &format!("Cookie: {cookies}\r\n"));
            assert!(got.contains(&format!(" cookie={cookies} ")), "{who}: {got}");
        }
    }
    assert_eq!(app.count("/account"), 5, "each has a page of his own");
}

#[test]
fn marked_responses_that_vary_by_origin_are_stored_for_each_origin() {
    let app = app();
    let server = cached(&app);
    for _ in 0..2 {
        for origin in ["https://a.test", "https://b.test"] {
            let got = get(&server, "/cors", &format!("Origin: {origin}\r\n"));
            assert!(got.ends_with(&format!("origin={origin}")), "{got}");
        }
    }
    assert_eq!(app.count("/cors"), 2);
}

#[test]
fn a_field_writes_no_piece_of_a_cookie() {
    let app = app();
    let server = cached(&app);
    let forged = get(&server, "/p", "Forwarded: _lscache_vary=x\r\n");
    assert!(forged.contains(" cookie=- "), "{forged}");
    let got = get(&server, "/p", "Cookie: _lscache_vary=x\r\n");
    assert!(got.contains(" cookie=_lscache_vary=x "), "{got}");
}

#[test]
fn a_field_that_php_reads_by_the_name_of_another_one_is_not_passed() {
    let app = TestApp::start();
    let server = http(&format!(
        "server {{ {LISTEN} page_cache on; ignore_invalid_headers off; underscores_in_headers on;
             location / {{ fastcgi_param HTTP_X_ROLE nobody; fastcgi_param REQUEST_URI $request_uri;
                 fastcgi_pass {}; }} }}",
        app.address()
    ));
    let forged = "X.Forwarded.Host: evil\r\nX-Forwarded-Host: good\r\nX_Forwarded_Host: evil\r\n\
                  X.Role: admin\r\nX.Own: kept\r\n";
    let first = get(&server, "/p", forged);
    let asked = app.asked("/p");
    let param = |name: &str| asked[0].param(name);
    assert_eq!(param("HTTP_X_FORWARDED_HOST"), Some("good"));
    assert_eq!((param("HTTP_X_ROLE"), param("HTTP_X.ROLE")), (Some("nobody"), None));
    assert_eq!((param("HTTP_X.FORWARDED.HOST"), param("HTTP_X.OWN")), (None, Some("kept")));
    // A field that is passed upstream belongs to the key, whatever replaces its hyphen.
    let other = get(&server, "/p", "X.Forwarded.Host: evil\r\n");
    assert_ne!(first, other);
    assert_ne!(get(&server, "/p", ""), other);
}

#[test]
fn a_directory_that_variables_name_belongs_to_the_page() {
    let app = TestApp::start();
    let pass = format!(
        "fastcgi_param REQUEST_METHOD $request_method; fastcgi_param REQUEST_URI $request_uri;
         fastcgi_param SCRIPT_FILENAME $request_filename; fastcgi_pass {};",
        app.address()
    );
    let server = http(&format!(
        "server {{ {LISTEN} page_cache on;
             location /root/ {{ root @DIR@/$http_role; {pass} }}
             location ~ ^/alias/(.*)$ {{ alias @DIR@/$http_role/$1; {pass} }} }}"
    ));
    for path in ["/root/x", "/alias/x"] {
        for _ in 0..2 {
            for (role, run) in [("one", "run 1"), ("two", "run 2")] {
                let got = get(&server, path, &format!("Role: {role}\r\n"));
                assert_eq!(got, run, "{path} {role}");
            }
        }
    }
}
