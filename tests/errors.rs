//! `error_page` and related directives, statuses that only nginx has, several access rules
//! together, and endless matches.

use bolide_testkit::server::Home;

use crate::{BOLIDE, http, report, site};

#[test]
fn error_pages_replace_responses_as_configured() {
    let server = site(
        "error_page 404 /page; error_page 403 =200 /page; error_page 405 = /teapot;
         error_page 410 @named; error_page 500 http://elsewhere.test/$arg_a;
         location /page { return 200 \"page $status $request_method $uri\"; }
         location /teapot { return 418 teapot; } location @named { return 200 \"named $uri\"; }
         location /404 { return 404; } location /403 { return 403; } location /405 { return 405; }
         location /410 { return 410; } location /500 { return 500; }
         location /own { error_page 404 =201 /page; return 404; location /own/in { return 403; } }
         location /loop { error_page 404 /loop; recursive_error_pages on; return 404; }
         location /lead { error_page 404 /403; recursive_error_pages on; return 404; }
         location /once { error_page 404 /403; return 404; }",
    );
    let rows = [
        ("/404", 404, "page 404 GET /page"),
        ("/403", 200, "page 200 GET /page"),
        ("/405", 418, "teapot"),
        ("/410", 410, "named /410"),
        ("/500?a=b", 302, "<html>"),
        ("/own", 201, "page 201 GET /page"),
        ("/own/in", 403, "<html>"),
        ("/loop", 500, "<html>"),
        ("/once", 403, "<html>"),
    ];
    let mut failures = Vec::new();
    for (path, status, text) in rows {
        let reply = server.get(path);
        if reply.status != status || !reply.text().starts_with(text) {
            failures.push(format!("{path}: {} {}", reply.status, reply.text()));
        }
    }
    report(rows.len(), &failures);
    let elsewhere = server.get("/500?a=b");
    assert_eq!(elsewhere.header("location"), Some("http://elsewhere.test/b"));
}

#[test]
fn statuses_of_nginx_itself_are_shown_as_others() {
    let server = site(
        "location /444 { return 444; } location /494 { return 494; } location /495 { return 495; }
         location /496 { return 496; } location /497 { return 497; } location /499 { return 499; }",
    );
    for (path, status) in [("/494", 400), ("/495", 400), ("/496", 400), ("/497", 400)] {
        assert_eq!(server.get(path).status, status, "{path}");
    }
    for path in ["/444", "/499"] {
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(client.is_closed(), "{path} says nothing");
    }
}

#[test]
fn satisfy_any_and_all_work_and_the_innermost_server_tokens_applies() {
    let server = site(
        "location /any { satisfy any; allow 127.0.0.1; deny all; auth_basic x;
             auth_basic_user_file @DIR@/none; return 200 in; alias @DIR@/www/hello.txt; }
         location /all/ { alias @DIR@/www/; satisfy all; deny all; }
         location /any/ { alias @DIR@/www/; satisfy any; allow all; auth_basic x;
             auth_basic_user_file @DIR@/none; location /any/deny/ { deny all; } }
         server_tokens off;
         location /on { server_tokens on; return 404; } location /off { return 404; }",
    );
    assert_eq!(server.get("/all/hello.txt").status, 403);
    assert_eq!(server.get("/any/hello.txt").status, 200);
    assert!(server.get("/on").text().contains("<center>bolide/"));
    assert!(server.get("/off").text().contains("<center>bolide</center>"));
    assert_eq!(server.get("/off").header("server"), Some("bolide"));
}

#[test]
fn a_match_without_end_holds_no_worker_wherever_it_stands() {
    let server = http(
        "map $arg_m $mapped { default none; \"~^(a+)+$\" hit; }
         server { listen 127.0.0.1:@HTTP@ default_server; server_name first;
             location ~ ^/loc/(a+)+$ { return 200 loc; }
             location /if { if ($arg_a ~ \"^(a+)+$\") { return 200 yes; } return 200 no; }
             location /x { if ($arg_a ~ \"^(x+x+)+y\") { return 200 yes; } return 200 no; }
             location /rw { rewrite \"^/rw/(a+)+$\" /x last; return 200 none; }
             location /told { proxy_set_header Role $mapped; proxy_pass http://127.0.0.1:@HTTP@; }
             location /map { return 200 \"[$mapped]\"; }
             location /ref { valid_referers ~^(a+)+$; if ($invalid_referer) { return 403; }
                 return 200 ok; }
         }
         server { listen 127.0.0.1:@HTTP@; server_name \"~^(a+)+$\"; return 200 named; }",
    );
    let long = "a".repeat(200) + "!";
    let exes = "x".repeat(2000);
    let (first, host) = ("first".to_owned(), "a".repeat(200) + "b");
    let rows = [
        (format!("/loc/{long}"), first.clone(), String::new(), 500, "^/loc/(a+)+$"),
        (format!("/if?a={long}"), first.clone(), String::new(), 500, "^(a+)+$"),
        (format!("/x?a={exes}z"), first.clone(), String::new(), 200, ""),
        (format!("/rw/{long}"), first.clone(), String::new(), 500, "^/rw/(a+)+$"),
        (format!("/map?m={long}"), first.clone(), String::new(), 500, "^(a+)+$"),
        (format!("/told?m={long}"), first.clone(), String::new(), 500, "^(a+)+$"),
        ("/ref".to_owned(), first, format!("Referer: http://{long}"), 403, "^(a+)+$"),
        ("/".to_owned(), host, String::new(), 500, "^(a+)+$"),
    ];
    let mut failures = Vec::new();
    for (path, host, field, status, pattern) in &rows {
        let before = server.error_log().len();
        let mut client = server.connect();
        let field = if field.is_empty() { String::new() } else { format!("{field}\r\n") };
        client.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{field}\r\n"));
        let answer = client.answer();
        if answer.status != *status {
            failures.push(format!("{path:.20}: {}", answer.status));
        }
        if !pattern.is_empty() {
            bolide_testkit::wait_until(path, || {
                let log = server.error_log();
                let new = &log[before..];
                new.contains("[alert]")
                    && new.contains("pcre2_match() failed: -47 on \"")
                    && new.contains(&format!("\" using \"{pattern}\""))
            });
        }
        assert_eq!(server.get("/x?a=xxy").text(), "yes", "the worker goes on");
    }
    report(rows.len(), &failures);
}

#[test]
fn wrong_arguments_get_nginxs_messages() {
    let home = Home::new(BOLIDE);
    let rows = [
        ("error_page 404;", "invalid number of arguments in \"error_page\" directive in "),
        ("error_page 299 /x;", "value \"299\" must be between 300 and 599 in "),
        ("error_page 499 /x;", "invalid value \"499\" in "),
        ("error_page x /y;", "invalid value \"x\" in "),
        ("error_page 404 =a /x;", "invalid value \"=a\" in "),
        ("recursive_error_pages maybe;", "invalid value \"maybe\" in \"recursive_error_pages\""),
        ("server_tokens maybe;", "invalid value \"maybe\" in "),
        ("satisfy some;", "invalid value \"some\" in "),
        ("lingering_close maybe;", "invalid value \"maybe\" in "),
        ("lingering_time x;", "\"lingering_time\" directive invalid value in "),
        ("client_max_body_size x;", "\"client_max_body_size\" directive invalid value in "),
        ("if_modified_since maybe;", "invalid value \"maybe\" in "),
    ];
    let mut failures = Vec::new();
    for (line, wanted) in rows {
        let server = format!("server {{ listen 127.0.0.1:@HTTP@; location / {{\n{line}\n}} }}");
        home.write("wrong.conf", &format!("events {{}}\nhttp {{ {server} }}\n"));
        let file = home.dir().join("wrong.conf");
        let done = home.run(&["-t", "-e", "stderr", "-c", file.to_str().unwrap()]);
        if done.code != 1 || !done.stderr.contains(wanted) {
            failures.push(format!("{line}: {} {}", done.code, done.stderr));
        }
    }
    report(rows.len(), &failures);
}
