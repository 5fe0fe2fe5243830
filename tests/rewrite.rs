//! The rewrite phase, `if`, `set` and `map` for clients and administrators.

use bolide_testkit::server::{Home, prelude};

use crate::{BOLIDE, http, report, site};

/// Path, status, and the text or Location of the response.
type Rows<'a> = &'a [(&'a str, u16, &'a str)];

fn check(server: &bolide_testkit::TestServer, rows: Rows<'_>) {
    let mut failures = Vec::new();
    for (path, status, wanted) in rows {
        let answer = server.get(path);
        let got = match answer.status {
            300..400 => answer.header("location").unwrap_or_default().to_owned(),
            _ => answer.text(),
        };
        if answer.status != *status || !got.contains(wanted) {
            failures.push(format!("{path}: {} {got:?}, want {status} {wanted:?}", answer.status));
        }
    }
    report(rows.len(), &failures);
}

#[test]
fn wordpress_habits_work_unchanged() {
    let server = http(
        r#"
        map $http_user_agent $bad_bot { default 0; ~*(evil|scrape) 1; }
        map $sent_http_content_type $expires { default off; text/plain 1h; }
        server {
            listen 127.0.0.1:@HTTP@;
            root @DIR@/www;
            expires $expires;
            if ($bad_bot) { return 444; }
            if ($request_method !~ ^(GET|HEAD|POST)$) { return 405; }
            set $skip_cache 0;
            if ($query_string != "") { set $skip_cache 1; }
            if ($http_cookie ~* "wordpress_logged_in|comment_author") { set $skip_cache 1; }
            rewrite ^/sitemap\.xml$ /index.php?sitemap=1 last;
            rewrite /wp-admin$ $scheme://$host$uri/ permanent;
            location / { try_files $uri $uri/ /index.php?$args; }
            location ~ \.php$ { return 200 "php $uri $args $skip_cache"; }
            location ~* /(?:uploads|files)/.*\.php$ { deny all; }
            location ~ /\. { deny all; access_log off; log_not_found off; }
        }
        "#,
    );
    check(
        &server,
        &[
            ("/hello.txt", 200, "hello, bolide"),
            ("/a/post/?p=1", 200, "php /index.php p=1 1"),
            ("/a/post/", 200, "php /index.php  0"),
            ("/sitemap.xml", 200, "php /index.php sitemap=1 0"),
            ("/wp-admin", 301, "http://localhost/wp-admin/"),
            ("/.git/config", 403, "403 Forbidden"),
        ],
    );
    let hello = server.get("/hello.txt");
    assert!(hello.header("cache-control").is_some_and(|value| value.contains("3600")));
    let mut client = server.connect();
    assert_eq!(client.ask("PUT /a HTTP/1.1\r\nHost: a").status, 405);
    let cookie = client.get("/", "Cookie: wordpress_logged_in_x=1\r\n");
    assert!(cookie.status == 200);
}

#[test]
fn rewrite_log_logs_rewrites() {
    let server = site(
        "error_log @DIR@/logs/notice.log notice; rewrite_log on; \
         location /a { rewrite ^/a/(.*)$ /b/$1; rewrite ^/x /y; } \
         location /b { return 200 $uri; } location /r { rewrite ^ /z permanent; } \
         location /u { set $never_mind $unset_thing; return 200 ok; } \
         location /never { set $unset_thing 1; } \
         location /quiet { uninitialized_variable_warn off; return 200 \"$unset_thing\"; }",
    );
    assert_eq!(server.get("/a/1").text(), "/b/1");
    assert_eq!(server.get("/r").status, 301);
    assert_eq!(server.get("/u").status, 200);
    let wanted = [
        "[notice]",
        "\"^/a/(.*)$\" matches \"/a/1\"",
        "rewritten data: \"/b/1\", args: \"\"",
        "\"^/x\" does not match \"/b/1\"",
        "rewritten redirect: \"/z\"",
        "[warn]",
        "using uninitialized \"unset_thing\" variable",
    ];
    bolide_testkit::wait_until("the lines are there", || {
        let log = server.home().read("logs/notice.log");
        wanted.iter().all(|line| log.contains(line))
    });
    let before = server.home().read("logs/notice.log").matches("uninitialized").count();
    assert_eq!(server.get("/quiet").status, 200);
    assert_eq!(server.get("/hello.txt").status, 200);
    let after = server.home().read("logs/notice.log").matches("uninitialized").count();
    assert_eq!(before, after);
}

#[test]
fn a_hostile_match_blocks_no_other_client() {
    let server = site("location /re { if ($arg_k ~ ^(a+)+$) { return 200 yes; } return 200 no; }");
    let started = std::time::Instant::now();
    let long = "a".repeat(4000) + "b";
    for _ in 0..4 {
        assert_eq!(server.get(&format!("/re?k={long}")).status, 500);
    }
    assert!(server.get("/re?k=abC").text() == "no");
    assert!(started.elapsed().as_secs() < 20, "bounded work");
    let log = server.error_log();
    assert!(log.contains("pcre2_match() failed: -47 on \"aaaa"), "{log}");
}

/// The library counts anew at each place where a match may begin, of which a long text has many.
#[test]
fn the_work_of_a_match_is_that_of_all_its_starts() {
    let server = site(
        "location /re { if ($arg_k ~ \"a{0,900}a{0,900}[bc]\") { return 200 yes; } return 200 no; }
         location /far { if ($arg_k ~ \"a(?>[^z]*)[zy]\") { return 200 yes; } return 200 no; }",
    );
    let long = "a".repeat(7000);
    for (path, status) in [
        (format!("/re?k={long}"), 500),
        (format!("/re?k={}c", &long[..500]), 200),
        (format!("/re?k={}", "a".repeat(100)), 200),
        (format!("/far?k={long}"), 500),
        (format!("/far?k={long}zz"), 200),
    ] {
        assert_eq!(server.get(&path).status, status, "{path:.20}");
    }
}

#[test]
fn mistakes_are_refused_with_their_line() {
    let home = Home::new(BOLIDE);
    let mut failures = Vec::new();
    let rows = [
        ("if ($a) {}", "unknown \"a\" variable"),
        ("if (a) {}", "invalid condition \"a\" in"),
        ("if ($host == a) {}", "unexpected \"==\" in condition in"),
        ("if ($host) { if ($uri) {} }", "\"if\" directive is not allowed here in"),
        ("if ($host) { deny all; }", "\"deny\" directive is not allowed here in"),
        ("set host a;", "invalid variable name \"host\" in"),
        ("set $host a;", "the duplicate \"host\" variable in"),
        ("rewrite a b c;", "invalid parameter \"c\" in"),
        ("rewrite a \"\";", "empty replacement in"),
        ("rewrite (a b;", "pcre2_compile() failed: missing closing parenthesis in \"(a\" in"),
        ("break 1;", "invalid number of arguments in \"break\" directive in"),
    ];
    for (text, wanted) in rows {
        let full = format!(
            "{}http {{ server {{ listen 127.0.0.1:@HTTP@; location / {{ {text} }} }} }}\n",
            prelude(1)
        );
        let path = home.write("mistake.conf", &full);
        let done = home.run(&["-t", "-c", path.to_str().unwrap()]);
        if done.code != 1 || !done.stderr.contains(wanted) {
            failures.push(format!("{text}: {done}"));
        }
    }
    report(rows.len(), &failures);
}
