//! Header fields set and cleared: `more_set_headers`, `more_clear_headers`, and the same for
//! requests. What they mean was looked at in nginx 1.22 with version 0.34 of the module.

use bolide_testkit::server::{Home, LISTEN};
use bolide_testkit::{Proto, TestApp, TestServer};

use crate::{BOLIDE, http, report};

/// A server that shows what a request came to its origin with, at `/show`.
fn serve(directives: &str) -> TestServer {
    http(&format!(
        "more_set_headers 'X-Outer: o' 'X-Both: outer'; more_set_input_headers 'X-All: all';
         server {{ {LISTEN} {directives}
             location /show {{
                 return 200 \"in=$http_x_in all=$http_x_all ua=$http_user_agent host=$http_host
c=$http_cookie\";
             }}
             location /origin {{
                 add_header X-One 1; add_header X-One 2; add_header X-Other 3; add_header X-Z z;
                 add_header Set-Cookie a=1; add_header Set-Cookie b=2;
                 add_header Cache-Control max-age=3;
                 default_type 'text/html; charset=koi8-r'; return 200 origin;
             }}
         }}"
    ))
}

/// The fields of these names in their order, as `name: value`.
fn shown(server: &TestServer, proto: Proto, path: &str, names: &[&str]) -> String {
    let reply = server.curl(proto).get(&server.url(proto, path));
    let all = reply.headers.iter().filter(|(name, _)| names.contains(&&**name));
    all.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("|")
}

#[test]
fn fields_of_responses_are_set_in_their_place_before_others_are_added() {
    let server = serve(
        "location = /b { add_header X-Foo bar; more_set_headers 'X-Foo: set' 'X-Both: inner';
             return 200 b; }
         location = /built { more_set_headers 'Server: me' 'Date: now' 'ETag: t'; }
         location = /none { more_clear_headers Server Date Content-Type x-outer; return 200 c; }
         location = /type { more_set_headers 'Content-Type: text/foo'; return 200 d; }
         location = /l { proxy_pass http://127.0.0.1:@HTTP@/origin;
             more_clear_headers 'X-O*' cache-control;
             more_set_headers 'X-One: changed' 'Set-Cookie: only'; }
         location = /again { proxy_pass http://127.0.0.1:@HTTP@/origin;
             more_set_headers 'Cache-Control: x, $upstream_http_cache_control' 'X-Z'
                 'Content-Type: text/foo'; }
         location = /a { more_set_headers -a 'X-A: 1' 'X-A: 2' 'Refresh: 1' 'Refresh: 2';
             return 200 a; }
         location = /s { more_set_headers -s 404 'X-S: 404';
             more_set_headers -s '200 500' 'X-S: no';
             more_set_headers -t 'text/css text/html' 'X-T: y';
             more_set_headers -t TEXT/html 'X-T: n';
             return 404; }
         location = /charset { proxy_pass http://127.0.0.1:@HTTP@/origin;
             more_set_headers -t text/html 'X-T: y'; }
         location = /to { more_set_headers 'Location: /x$uri'; return 302 /foo; }
         location = /204 { more_set_headers 'Content-Type: text/x' 'X-T: y'; return 204; }
         location /uri { more_set_headers \"X-U: $uri\" \"X-E: $arg_e\"; return 200 x; }
         location = /if { more_set_headers 'X-P: p';
             if ($arg_x) { more_set_headers 'X-If: if'; return 200 if; } return 200 p; }
         location = /from { more_set_headers 'X-R: r'; error_page 404 /err; return 404; }
         location = /err { more_set_headers 'X-E: e'; return 200 err; }",
    );
    let rows: &[(&str, &[&str], &str)] = &[
        ("/b", &["x-foo", "x-both"], "x-both: inner|x-foo: set|x-foo: bar"),
        ("/l", &["x-one", "x-other", "x-outer", "set-cookie", "cache-control", "x-z"], {
            "x-one: changed|set-cookie: only|x-z: z"
        }),
        ("/again", &["cache-control", "x-z", "content-type"], {
            "content-type: text/foo; charset=koi8-r|cache-control: x, max-age=3"
        }),
        ("/built", &["server", "date", "etag"], "etag: t|server: me|date: now"),
        ("/none", &["server", "date", "content-type", "x-outer", "x-both"], "x-both: outer"),
        ("/type", &["content-type", "x-outer"], "content-type: text/foo|x-outer: o"),
        ("/a", &["x-a", "refresh"], "x-a: 1|x-a: 2|refresh: 2"),
        ("/s", &["x-s", "x-t"], "x-s: 404|x-t: y"),
        ("/charset", &["x-t"], "x-t: y"),
        ("/204", &["x-t", "content-type"], "x-t: y"),
        ("/uri/%0d%0aX:y", &["x-u", "x-e"], "x-u: /uri/  X:y"),
        ("/if", &["x-p", "x-if"], "x-p: p"),
        ("/if?x=1", &["x-p", "x-if"], "x-p: p|x-if: if"),
        ("/from", &["x-r", "x-e"], "x-e: e"),
    ];
    let mut failures = Vec::new();
    for proto in [Proto::H1, Proto::H2, Proto::H3] {
        for (path, names, wanted) in rows {
            let found = shown(&server, proto, path, names);
            let sorted = |text: &str| {
                let mut all: Vec<_> = text.split('|').map(str::to_owned).collect();
                all.sort();
                all
            };
            // What is set anew stands behind the rest; nothing depends on where.
            if sorted(&found) != sorted(wanted) {
                failures.push(format!("{proto:?} {path}: {found}"));
            }
        }
    }
    report(3 * rows.len(), &failures);
    assert!(shown(&server, Proto::H1, "/to", &["location"]).ends_with("/x/to"));
}

#[test]
fn fields_that_frame_a_message_cannot_be_edited() {
    let server = serve(
        "location = /big.bin { more_clear_headers 'C*' 'T*' 'K*'; }
         location = /page.html { gzip on; more_clear_headers 'Content-*' Vary 'X-*'; }
         location = /up { client_max_body_size 0; proxy_pass http://127.0.0.1:@HTTP@/show;
             more_clear_input_headers 'C*' 'T*' 'E*'; }",
    );
    for proto in [Proto::H1, Proto::H2, Proto::H3] {
        let reply = server.curl(proto).get(&server.url(proto, "/big.bin"));
        assert_eq!(reply.body.len(), bolide_testkit::site::BIG, "{proto:?}");
        assert_eq!(reply.header("content-length"), Some("1000000"), "{proto:?}");
        assert_eq!(reply.header("content-type"), None, "{proto:?}");
        let curl = server.curl(proto).args(["--compressed"]);
        let reply = curl.get(&server.url(proto, "/page.html"));
        assert_eq!(reply.text(), bolide_testkit::site::page(), "{proto:?}");
        assert_eq!(reply.header("content-encoding"), Some("gzip"), "{proto:?}");
    }
    let mut client = server.connect();
    client.send(
        "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\
         POST /up HTTP/1.1\r\nHost: a\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    );
    let all = String::from_utf8(client.to_end().unwrap()).unwrap();
    assert_eq!(all.matches("HTTP/1.1 200 OK").count(), 2, "{all}");
}

#[test]
fn fields_of_requests_are_set_when_the_rewrite_phase_ends() {
    let server = serve(
        "proxy_set_header Host $http_host; more_set_input_headers 'X-In: server';
         location = /1 { proxy_pass http://127.0.0.1:@HTTP@/show;
             more_set_input_headers 'X-In: a' 'X-In: $http_x_in-b' 'Cookie: c=1'; }
         location = /2 { set $v \"$http_x_all\"; more_set_input_headers \"X-In: <$v>\";
             proxy_pass http://127.0.0.1:@HTTP@/show; }
         location = /3 { more_set_input_headers -r 'X-In: r' 'X-No: n' 'User-Agent: me';
             proxy_pass http://127.0.0.1:@HTTP@/show; }
         location = /4 { more_clear_input_headers 'X-*' User-Agent;
             proxy_pass http://127.0.0.1:@HTTP@/show; }
         location = /5 { more_set_input_headers 'X-In: five' 'Host: New.test:99';
             rewrite ^ /show last; }
         location = /6 { more_set_input_headers -t text/plain 'X-In: t';
             proxy_pass http://127.0.0.1:@HTTP@/show; }
         location = /7 { more_set_input_headers 'X-In: seven'; error_page 404 = /show; root /none; }
         location = /8 { if ($arg_x) { more_set_input_headers 'X-In: if'; }
             proxy_pass http://127.0.0.1:@HTTP@/show; }
         location = /9 { more_set_input_headers 'Host: New.test:99'; try_files /no @host; }
         location @host { add_header X-Host $host; return 200 $http_host; }
         location = /hello.txt { more_clear_input_headers Range; }
         location = /empty.txt { more_set_input_headers 'X-In: '; auth_basic x;
             auth_basic_user_file @DIR@/users;
             more_set_input_headers 'Authorization: Basic dTpw'; }",
    );
    std::fs::write(server.home().dir().join("users"), "u:{PLAIN}p\n").unwrap();
    let rows: &[(&str, &str, &str)] = &[
        ("/1", "X-In: old\nX-In: old2\nCookie: z=1", "in=a-b all=all ua=- host=H\nc=c=1"),
        // Those of `show` itself come before it is asked: what it shows are an origin's.
        ("/2", "X-All: mine", "in=<mine> all=all ua=- host=H\nc="),
        ("/3", "X-In: old", "in=r all=all ua=- host=H\nc="),
        ("/3", "User-Agent: u", "in=r all=all ua=me host=H\nc="),
        ("/4", "X-In: old\nUser-Agent: u", "in= all= ua=- host=H\nc="),
        ("/5", "", "in=five all=all ua=- host=New.test:99\nc="),
        ("/6", "Content-Type: text/plain", "in=t all=all ua=- host=H\nc="),
        ("/6", "Content-Type: text/plain; charset=x", "in=server all=all ua=- host=H\nc="),
        ("/7", "", "in=seven all=all ua=- host=H\nc="),
        ("/8", "", "in=server all=all ua=- host=H\nc="),
        ("/8?x=1", "", "in=if all=all ua=- host=H\nc="),
        ("/9", "", "New.test:99"),
        ("/hello.txt", "Range: bytes=1-2", "hello, bolide"),
        ("/empty.txt", "", ""),
    ];
    let mut failures = Vec::new();
    for (path, fields, wanted) in rows {
        let lines = fields.split('\n').filter(|line| !line.is_empty());
        let lines: String = lines.map(|line| format!("{line}\r\n")).collect();
        let reply = server.connect().get(path, &lines);
        let text = reply.text().trim_end().replace("host=localhost", "host=H");
        let text = text.replace("ua= ", "ua=- ");
        if text != *wanted {
            failures.push(format!("{path} {fields:?}: {} {text:?}", reply.status));
        }
    }
    report(rows.len(), &failures);
}

#[test]
fn a_page_is_stored_without_edits_under_the_edited_request() {
    let app = TestApp::start();
    let server = http(&format!(
        "server {{ {LISTEN} page_cache on; page_cache_vary cookie=lang;
             fastcgi_param REQUEST_URI $request_uri; fastcgi_param REQUEST_METHOD $request_method;
             location / {{ more_set_headers \"X-Me: $arg_me\" 'X-Powered-By: $http_x_who';
                 fastcgi_pass {app}; }}
             location /one/ {{ more_clear_input_headers Cookie; fastcgi_pass {app}; }}
             location /lang/ {{ more_set_input_headers 'Cookie: lang=$http_x_lang';
                 fastcgi_pass {app}; }} }}",
        app = app.address()
    ));
    for path in ["/", "/one/", "/lang/"] {
        app.say(path, "Cache-Control: max-age=600\nX-Powered-By: app");
    }
    // Each client gets what its own request makes of the kept page.
    for who in ["a", "b"] {
        let reply = server.connect().get("/", &format!("X-Who: {who}\r\n"));
        assert_eq!((reply.text(), reply.header("x-powered-by")), ("run 1".into(), Some(who)));
    }
    // Cookies that edits remove do not vary pages; those that edits add do.
    let ask = |path: &str, fields: &str| server.connect().get(path, fields).text();
    assert_eq!(ask("/one/", "Cookie: lang=de\r\n"), "run 1");
    assert_eq!(ask("/one/", "Cookie: lang=en\r\n"), "run 1");
    assert_eq!(ask("/lang/", "X-Lang: de\r\n"), "run 1");
    assert_eq!(ask("/lang/", "X-Lang: en\r\n"), "run 2");
    assert_eq!(ask("/lang/", "X-Lang: de\r\n"), "run 1");
}

#[test]
fn mistakes_in_edits_are_reported_with_their_line() {
    let home = Home::new(BOLIDE);
    let rows = [
        ("more_set_headers;", "invalid number of arguments in \"more_set_headers\" directive"),
        ("more_set_headers -s;", "more_set_headers: option -s takes an argument"),
        ("more_clear_input_headers -t;", "more_clear_input_headers: option -t takes an argument"),
        ("more_set_headers -x foo;", "more_set_headers: invalid option name: \"-x\""),
        ("more_clear_headers -r X;", "more_clear_headers: invalid option name: \"-r\""),
        ("more_set_input_headers -s 404 'X: y';", {
            "more_set_input_headers: invalid option name: \"-s\""
        }),
        ("more_set_headers -s 4xx 'X: y';", {
            "more_set_headers: invalid digit \"x\" found in the status code list \"4xx\""
        }),
        ("more_clear_headers '*';", "more_clear_headers: wildcard key too short: *"),
        ("more_set_headers ': v';", "more_set_headers: invalid header name \"\""),
        ("more_set_headers 'X y: v';", "more_set_headers: invalid header name \"X y\""),
        ("more_set_headers 'X: $nosuch';", "unknown \"nosuch\" variable"),
        ("more_set_headers 'Content-Length: 9';", {
            "more_set_headers: the field \"Content-Length\" cannot be changed here"
        }),
        ("more_clear_headers Content-Encoding;", {
            "more_clear_headers: the field \"Content-Encoding\" cannot be changed here"
        }),
        ("more_clear_input_headers transfer-encoding;", {
            "more_clear_input_headers: the field \"transfer-encoding\" cannot be changed here"
        }),
    ];
    let mut failures = Vec::new();
    for (directive, wanted) in rows {
        let text =
            format!("events {{}}\nhttp {{\n{directive}\nserver {{ listen 127.0.0.1:1; }} }}\n");
        let file = home.write("wrong.conf", &text);
        let said = home.run(&["-t", "-e", "stderr", "-c", file.to_str().unwrap()]).stderr;
        let line = if directive.contains("nosuch") { "" } else { "wrong.conf:3" };
        if !(said.contains(wanted) && said.contains(line)) {
            failures.push(format!("{directive}: {said}"));
        }
    }
    report(rows.len(), &failures);
}
