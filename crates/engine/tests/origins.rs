//! Answers that origins give, as nginx passes them on; request bodies, parameters, variables.

use bolide_http::{BodyLen, HttpVersion, Method, RequestBody};
use bolide_world::{FuzzWorld, Say, WorldReply, request};

const PASS: &str = "fastcgi_pass unix:/run/x.sock;";

/// A world in which `http` stands in an `http` block, with a few files.
fn world(http: &str) -> FuzzWorld {
    let mut world = FuzzWorld::of(&format!(
        "events {{}} http {{ types {{ text/html html; }} root /srv/www; {http} }}"
    ));
    for (path, content) in
        [("index.html", "index"), ("sorry.html", "sorry"), ("x.html", "static"), ("a.php", "<?php")]
    {
        world.door.put(&format!("/srv/www/{path}"), content.as_bytes());
    }
    world
}

/// A server whose every request goes to an origin, with more inside of its location.
fn passing(inside: &str) -> FuzzWorld {
    world(&format!(
        "server {{ listen 80; server_name a.test; http2 on; location / {{ {PASS} {inside} }}
         location /own/ {{ internal; alias /srv/www/; }}
         location @name {{ return 200 named; }} location @again {{ {PASS} }} }}"
    ))
}

/// What a client gets when the origin says a head of these lines and this text.
fn reply(world: &mut FuzzWorld, status: u16, lines: &[&str], text: &str) -> WorldReply {
    world.origin.answers = vec![vec![Say::head(status, lines), Say::body(text), Say::End]];
    world.get("a.test", "/p")
}

fn shown(reply: &WorldReply) -> Vec<String> {
    let own = |name: &str| matches!(name, "Server" | "Date");
    reply.fields.iter().filter(|f| !own(&f.0)).map(|f| format!("{}: {}", f.0, f.1)).collect()
}

#[test]
fn an_answer_passes_with_its_fields_and_without_those_that_are_for_us() {
    let mut world = passing("");
    let all = [
        "Content-Type: text/html",
        "X-One: 1",
        "X-One: 2",
        "Set-Cookie: a=b",
        "X-Accel-Expires: 5",
        "X-Accel-Buffering: no",
        "Connection: close",
        "Keep-Alive: 5",
        "Transfer-Encoding: chunked",
        "Upgrade: h2",
        "Trailer: x",
    ];
    let got = reply(&mut world, 0, &all, "hello");
    assert_eq!((got.status, got.text().as_str(), got.len), (200, "hello", BodyLen::Unknown));
    let expected = [
        "Content-Type: text/html",
        "X-One: 1",
        "X-One: 2",
        "Set-Cookie: a=b",
        "Upgrade: h2",
        "Trailer: x",
    ];
    assert_eq!(shown(&got), expected);
    assert_eq!(shown(&reply(&mut world, 0, &["Content-Type: "], "hello")), [""; 0]);
    let got = reply(&mut passing("fastcgi_hide_header Upgrade;"), 426, &["Upgrade: h2"], "");
    assert_eq!(shown(&got), [""; 0]);
    let got = reply(&mut world, 404, &["Content-Length: 5", "ETag: \"x\""], "hello");
    assert_eq!((got.status, got.len), (404, BodyLen::Exact(5)));
    assert_eq!(shown(&got), ["ETag: \"x\""]);
    let got = reply(&mut world, 0, &["Server: PHP", "Date: Thu, 01 Jan 1970 00:00:01 GMT"], "");
    assert_eq!((got.field("Server"), got.fields.len()), ("PHP", 2));
}

#[test]
fn the_status_is_what_the_origin_says_or_what_its_location_means() {
    let mut world = passing("");
    for (said, lines, status) in [
        (0, &["Location: /local"][..], 302),
        (0, &["Location: http://b.test/"], 302),
        (201, &["Location: /new"], 201),
        (0, &[], 200),
        (500, &[], 500),
    ] {
        let got = reply(&mut world, said, lines, "text");
        assert_eq!((got.status, got.text().as_str()), (status, "text"), "{said} {lines:?}");
        assert_eq!(shown(&got), lines, "a Location passes as it is");
    }
    for said in [204, 304] {
        let got = reply(&mut world, said, &["Content-Type: text/html", "ETag: \"x\""], "text");
        assert_eq!((got.status, got.len), (said, BodyLen::None));
        assert_eq!(shown(&got), ["Content-Type: text/html", "ETag: \"x\""]);
        assert!(!world.origin.got.last().unwrap().dropped, "the script may finish");
    }
}

#[test]
fn a_head_request_gets_the_head_and_nobody_waits_for_the_body() {
    let mut world = passing("");
    let says = [Say::head(0, &["Content-Length: 5"]), Say::body("hello"), Say::End];
    world.origin.answers = vec![says.to_vec()];
    let got = world.ask(request(Method::Head, "a.test", "/p", &[]));
    assert_eq!((got.status, got.len, got.body.len()), (200, BodyLen::Exact(5), 0));
    assert!(world.origin.got[0].dropped);
    world.origin.answers = vec![vec![Say::head(0, &[]), Say::body("hello"), Say::End]];
    let got = world.ask(request(Method::Head, "a.test", "/p", &[]));
    assert_eq!(got.len, BodyLen::None);
}

#[test]
fn what_ends_early_is_cut_and_what_fails_before_its_head_is_an_error() {
    let mut world = passing("");
    for says in [
        vec![Say::head(0, &[]), Say::body("hello"), Say::Fail(502, None)],
        vec![Say::head(0, &["Content-Length: 10"]), Say::body("hello"), Say::End],
        vec![Say::head(0, &["Content-Length: 10"]), Say::Fail(504, None)],
    ] {
        world.origin.answers = vec![says.clone()];
        let got = world.get("a.test", "/p");
        assert!(got.is_broken && got.status == 200, "{says:?}");
    }
    let got = reply(&mut world, 0, &["Content-Length: 3"], "hello");
    assert_eq!((got.text().as_str(), got.is_broken), ("hel", false));
    for (status, page) in [(502, "502 Bad Gateway"), (504, "504 Gateway Time-out")] {
        world.origin.answers = vec![vec![Say::Fail(status, None)]];
        let got = world.get("a.test", "/p");
        assert_eq!(got.status, status);
        assert!(got.text().contains(page), "{}", got.text());
    }
    world.origin.answers = vec![vec![Say::Fail(503, Some(7))]];
    let got = world.get("a.test", "/p");
    assert_eq!((got.status, got.field("Retry-After")), (503, "7"));
}

#[test]
fn error_pages_stand_in_for_origins_that_fail_and_for_answers_if_told_so() {
    let mut world = passing("error_page 502 503 /own/sorry.html;");
    world.origin.answers = vec![vec![Say::Fail(503, Some(3))]];
    let got = world.get("a.test", "/p");
    assert_eq!((got.status, got.text().as_str(), got.field("Retry-After")), (503, "sorry", "3"));
    let got = reply(&mut world, 502, &[], "as it is");
    assert_eq!((got.status, got.text().as_str()), (502, "as it is"));
    let mut world = passing("fastcgi_intercept_errors on; error_page 401 404 /own/sorry.html;");
    let got = reply(&mut world, 404, &["X-Mine: 1"], "not here");
    assert_eq!((got.status, got.text().as_str(), got.field("X-Mine")), (404, "sorry", ""));
    assert!(world.origin.got[0].dropped);
    let got = reply(&mut world, 401, &["WWW-Authenticate: Basic"], "");
    assert_eq!((got.status, got.field("WWW-Authenticate")), (401, "Basic"));
    let got = reply(&mut world, 500, &[], "as it is");
    assert_eq!(got.text(), "as it is");
}

#[test]
fn an_error_page_may_be_an_origin_which_gets_the_body_again() {
    let mut world = passing("error_page 502 = @again;");
    let answers = [
        vec![Say::Tried("unix:/dead".to_owned(), 502), Say::Fail(502, None)],
        vec![
            Say::Tried("unix:/run/x.sock".to_owned(), 200),
            Say::head(0, &[]),
            Say::body("second"),
            Say::End,
        ],
    ];
    world.origin.answers = answers.to_vec();
    let mut head = request(Method::Post, "a.test", "/p?q", &[]);
    head.body = RequestBody::Length(6);
    let got = world.ask_with_body(head, &[b"abc", b"def"]);
    assert_eq!((got.status, got.text().as_str()), (200, "second"));
    let bodies: Vec<String> = world.origin.got.iter().map(bolide_world::FuzzGot::text).collect();
    assert_eq!(bodies, ["abcdef", "abcdef"]);
    assert!(!world.origin.got[0].is_idempotent);
    let mut world = passing(
        "error_page 404 = /q?x=1; fastcgi_intercept_errors on;
        fastcgi_param M $request_method; fastcgi_param Q $query_string; fastcgi_param U $uri;",
    );
    world.origin.answers = vec![
        vec![Say::head(404, &[]), Say::End],
        vec![Say::head(0, &[]), Say::body("page"), Say::End],
    ];
    let got = world.ask(request(Method::Post, "a.test", "/p", &[]));
    assert_eq!((got.status, got.text().as_str()), (200, "page"));
    let second = &world.origin.got[1];
    let told = ["M", "Q", "U"].map(|name| second.param(name).unwrap());
    assert_eq!(told, ["GET", "x=1", "/q"]);
}

#[test]
fn x_accel_redirect_leads_to_an_answer_of_ours_with_some_of_the_fields() {
    let mut world = passing("");
    let lines = [
        "X-Accel-Redirect: /own/x.html",
        "Content-Type: text/x-own",
        "Content-Disposition: attachment",
        "Set-Cookie: q=1",
        "Set-Cookie: r=2",
        "Cache-Control: no-cache",
        "ETag: \"mine\"",
        "X-Own: lost",
        "Content-Length: 3",
    ];
    let got = reply(&mut world, 404, &lines, "abc");
    assert_eq!((got.status, got.text().as_str()), (200, "static"));
    let fields = shown(&got);
    assert_eq!(fields.len(), 8, "{fields:?}");
    assert_eq!(fields[0], "Content-Type: text/x-own");
    assert!(fields[1].starts_with("Last-Modified: "));
    assert_eq!(fields[2..6], [lines[2], lines[3], lines[4], lines[5]]);
    assert!(world.origin.got[0].dropped);
    let got = reply(&mut world, 0, &["X-Accel-Redirect: @name"], "");
    assert_eq!(got.text(), "named");
    for target in ["/own/../x.html", "/own/%2e%2e/x.html", "nope"] {
        let got = reply(&mut world, 0, &[&format!("X-Accel-Redirect: {target}")], "");
        assert_eq!(got.status, 404, "{target}");
    }
    let log = world.take_log("/srv/logs/error.log");
    let text = "unsafe URI \"/own/../x.html\" was detected while reading response header from \
        upstream, client: 192.0.2.1, server: a.test";
    assert!(log.contains(text), "{log}");
}

#[test]
fn x_accel_redirect_may_lead_to_an_origin_as_a_get_with_the_body() {
    let mut world = passing(
        "fastcgi_param M $request_method; fastcgi_param U $uri;
        fastcgi_param Q $args; fastcgi_param L $content_length;",
    );
    world.origin.answers = vec![
        vec![Say::head(0, &["X-Accel-Redirect: /f/%41?echo&a=b"])],
        vec![Say::head(0, &[]), Say::body("second"), Say::End],
    ];
    let mut head = request(Method::Post, "a.test", "/p", &[]);
    head.body = RequestBody::Length(3);
    let got = world.ask_with_body(head, &[b"abc"]);
    assert_eq!(got.text(), "second");
    let second = &world.origin.got[1];
    let told = ["M", "U", "Q", "L"].map(|name| second.param(name).unwrap());
    assert_eq!((told, second.text().as_str()), (["GET", "/f/A", "echo&a=b", "3"], "abc"));
}

#[test]
fn x_accel_fields_can_be_ignored_passed_and_hidden() {
    let mut world = passing(
        "fastcgi_ignore_headers X-Accel-Redirect X-Accel-Charset;
        fastcgi_pass_header X-Accel-Redirect; fastcgi_hide_header X-Test; charset utf-8;",
    );
    let lines = [
        "X-Accel-Redirect: /own/x.html",
        "X-Test: 1",
        "Content-Type: text/html",
        "X-Accel-Charset: koi8-r",
    ];
    let got = reply(&mut world, 0, &lines, "origin");
    assert_eq!(got.text(), "origin");
    let expected = ["Content-Type: text/html; charset=utf-8", "X-Accel-Redirect: /own/x.html"];
    assert_eq!(shown(&got), expected);
}

#[test]
fn types_get_a_charset_where_they_have_none_and_dates_what_expires_says() {
    let mut world = passing("charset utf-8; expires 1h; add_header X-A $upstream_http_x_test;");
    for (sent, got) in [
        ("text/html", "text/html; charset=utf-8"),
        ("text/html; charset=iso-8859-1", "text/html; charset=iso-8859-1"),
        ("application/json", "application/json"),
    ] {
        let lines = [&format!("Content-Type: {sent}"), "Cache-Control: no-store", "X-Test: 7"];
        let reply = reply(&mut world, 0, &lines, "x");
        assert_eq!(reply.field("Content-Type"), got);
        assert_eq!(reply.field("Cache-Control"), "max-age=3600");
        assert_eq!(reply.field("X-A"), "7");
    }
    assert_eq!(reply(&mut world, 0, &[], "x").field("Content-Type"), "");
}

#[test]
fn what_an_origin_makes_is_compressed_on_its_way() {
    let mut world = passing(
        "gzip on; gzip_vary on; gzip_min_length 10;
        fastcgi_param A 1;",
    );
    let ask = |world: &mut FuzzWorld, lines: &[&str], text: &str, via: bool| {
        world.origin.answers =
            vec![vec![Say::head(0, lines), Say::body(text), Say::body(text), Say::End]];
        let all = [("Accept-Encoding", "gzip"), ("Via", "1.1 x")];
        let fields = if via { &all[..] } else { &all[..1] };
        world.ask(request(Method::Get, "a.test", "/p", fields))
    };
    let html = "Content-Type: text/html; charset=x";
    let got = ask(&mut world, &[html, "ETag: \"e\"", "Accept-Ranges: bytes"], "hello", false);
    assert_eq!(got.len, BodyLen::Unknown);
    assert_eq!(
        shown(&got),
        [
            "Content-Type: text/html; charset=x",
            "Vary: Accept-Encoding",
            "ETag: W/\"e\"",
            "Content-Encoding: gzip"
        ]
    );
    assert_eq!(got.body[..2], [0x1f, 0x8b]);
    let plain = |got: &WorldReply| got.field("Content-Encoding").is_empty();
    assert!(plain(&ask(&mut world, &[html, "Content-Length: 8"], "abcd", false)));
    assert!(!plain(&ask(&mut world, &[html, "Content-Length: 10"], "abcde", false)));
    assert!(plain(&ask(&mut world, &["Content-Type: image/png"], "hello", false)));
    assert!(plain(&ask(&mut world, &[html], "hello", true)));
    let got = ask(&mut world, &[html, "Content-Encoding: br"], "hello", false);
    assert_eq!((got.field("Content-Encoding"), got.text().as_str()), ("br", "hellohello"));
    let mut world = passing("gzip on; gzip_proxied no-cache expired;");
    let no_cache = ["Content-Type: text/html", "Cache-Control: private, no-cache"];
    assert!(!plain(&ask(&mut world, &no_cache, "long enough for gzip", true)));
    let public = ["Content-Type: text/html", "Cache-Control: public"];
    assert!(plain(&ask(&mut world, &public, "long enough for gzip", true)));
}

#[test]
fn ranges_are_cut_only_where_that_is_forced_and_conditions_are_the_applications() {
    let fields = [("Range", "bytes=1-2"), ("If-None-Match", "\"e\"")];
    let lines = ["Content-Length: 5", "ETag: \"e\"", "Content-Type: text/html"];
    let says = vec![Say::head(0, &lines), Say::body("he"), Say::body("llo"), Say::End];
    let mut world = passing("");
    world.origin.answers = vec![says.clone()];
    let got = world.ask(request(Method::Get, "a.test", "/p", &fields));
    assert_eq!((got.status, got.text().as_str()), (200, "hello"));
    let mut world = passing("fastcgi_force_ranges on;");
    world.origin.answers = vec![says];
    let got = world.ask(request(Method::Get, "a.test", "/p", &fields));
    assert_eq!((got.status, got.text().as_str()), (206, "el"));
    assert_eq!(got.field("Content-Range"), "bytes 1-2/5");
    assert_eq!(world.get("a.test", "/p").field("Accept-Ranges"), "bytes");
    let got = world.ask(request(Method::Get, "a.test", "/p", &[("Range", "bytes=9-")]));
    assert_eq!((got.status, got.field("Content-Range")), (416, "bytes */5"));
}

#[test]
fn a_charset_is_added_where_none_is_and_not_to_redirects() {
    let mut world = passing("charset utf-8;");
    let mut kind = |status, lines: &[&str]| {
        reply(&mut world, status, lines, "").field("Content-Type").to_owned()
    };
    let (html, other) = ("Content-Type: text/html", "X-Accel-Charset: x");
    assert_eq!(kind(200, &[html]), "text/html; charset=utf-8");
    assert_eq!(kind(303, &[html]), "text/html; charset=utf-8");
    for status in [301, 302] {
        assert_eq!(kind(status, &[html]), "text/html");
        assert_eq!(kind(status, &[html, other]), "text/html");
    }
    // As in nginx, a type with parameters is not one of `charset_types`.
    assert_eq!(kind(200, &["Content-Type: text/html; a=b", other]), "text/html; a=b");
    let named = "Content-Type: text/html; a=b; Charset=y";
    assert_eq!(kind(200, &[named, other]), "text/html; a=b; Charset=y");
}

#[test]
fn a_part_says_which_one_it_is_in_our_words_only() {
    let lines = ["Content-Length: 5", "Content-Range: bytes 0-4/9", "Content-Type: text/html"];
    let says = vec![Say::head(0, &lines), Say::body("hello"), Say::End];
    let mut world = passing("fastcgi_force_ranges on;");
    world.origin.answers = vec![says];
    let got = world.ask(request(Method::Get, "a.test", "/p", &[("Range", "bytes=1-2")]));
    let told = got.fields.iter().filter(|field| field.0 == "Content-Range").count();
    assert_eq!((got.status, got.field("Content-Range"), told), (206, "bytes 1-2/5", 1));
    assert_eq!(world.get("a.test", "/p").field("Content-Range"), "bytes 0-4/9");
}

#[test]
fn heads_before_the_answer_go_ahead_without_what_is_hidden() {
    let ask = |inside: &str, fields: &[(&str, &str)]| {
        let mut world = passing(inside);
        world.origin.answers = vec![vec![
            Say::early(&["Link: </a.css>; rel=preload", "X-Accel-Expires: 1", "Keep-Alive: x"]),
            Say::early(&["X-Step: 1", "Content-Length: 5"]),
            Say::early(&[&format!("X-Long: {}", "x".repeat(900))]),
            Say::head(0, &[]),
            Say::End,
        ]];
        let got = world.ask(request(Method::Get, "a.test", "/p", fields));
        assert_eq!(got.status, 200);
        got.interim
    };
    let line = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    let two = [line("Link", "</a.css>; rel=preload"), line("X-Step", "1")];
    let no = Vec::<Vec<(String, String)>>::new();
    assert_eq!(ask("", &[]), no, "nothing asks for hints");
    assert_eq!(ask("fastcgi_buffer_size 900; early_hints 0 $http_e;", &[]), no);
    assert_eq!(ask("fastcgi_buffer_size 900; early_hints 0 $http_e;", &[("E", "1")]), two);
    let all = ask("early_hints on;", &[]);
    assert_eq!((&all[..2], all.len()), (&two[..], 3), "all of them fit into 4k");
}

#[test]
fn a_rate_that_an_origin_named_goes_with_the_request_and_the_last_word_counts() {
    let rate = |inside: &str, lines: &[&str]| {
        let mut world = world(&format!(
            "server {{ listen 80; server_name a.test; location / {{ {PASS} {inside} }}
             location /own/ {{ internal; limit_rate 7; return 200 $limit_rate; }}
             location /set/ {{ internal; set $limit_rate 3; return 200 $limit_rate; }} }}"
        ));
        reply(&mut world, 200, lines, "").text()
    };
    let (own, set) = ("X-Accel-Redirect: /own/a", "X-Accel-Redirect: /set/a");
    assert_eq!(rate("", &[own]), "0");
    assert_eq!(rate("", &[own, "X-Accel-Limit-Rate: 20000"]), "20000");
    assert_eq!(rate("set $limit_rate 5;", &[own, "X-Accel-Limit-Rate: 20000"]), "20000");
    assert_eq!(rate("set $limit_rate 5;", &[own, "X-Accel-Limit-Rate: +2"]), "5");
    assert_eq!(rate("", &[set, "X-Accel-Limit-Rate: 20000"]), "3");
    let ignores = "set $limit_rate 5; fastcgi_ignore_headers X-Accel-Limit-Rate;";
    assert_eq!(rate(ignores, &[own, "X-Accel-Limit-Rate: 20000"]), "5");
}

#[test]
fn parameters_are_what_configuration_says_then_what_the_client_sent() {
    let mut world = passing(
        "fastcgi_param A $uri; fastcgi_param E \"\"; fastcgi_param N \"\" if_not_empty;
         fastcgi_param V $args if_not_empty; fastcgi_param HTTP_PROXY \"\";
         fastcgi_param HTTP_X_A over; fastcgi_param HTTP_X_B \"\" if_not_empty;",
    );
    world.origin.answers = vec![vec![Say::head(0, &[]), Say::End]];
    let fields = [
        ("Proxy", "evil"),
        ("X-A", "1"),
        ("x-b", "2"),
        ("X-C", "a"),
        ("Cookie", "a=1"),
        ("x-c", "b"),
        ("Cookie", "b=2"),
        ("Authorization", "Basic x"),
        ("X-Empty", ""),
    ];
    world.ask(request(Method::Get, "a.test", "/p?q", &fields));
    let got = &world.origin.got[0];
    let lines: Vec<String> = got.params.iter().map(|(n, v)| format!("{n}={v}")).collect();
    assert_eq!(
        lines,
        [
            "A=/p",
            "E=",
            "V=q",
            "HTTP_X_A=over",
            "HTTP_HOST=a.test",
            "HTTP_X_C=a, b",
            "HTTP_COOKIE=a=1; b=2",
            "HTTP_AUTHORIZATION=Basic x",
            "HTTP_X_EMPTY="
        ]
    );
    let mut world = passing(
        "fastcgi_param L $content_length; fastcgi_pass_request_headers off;
         fastcgi_pass_request_body off;",
    );
    world.origin.answers = vec![vec![Say::head(0, &[]), Say::End]];
    let mut head = request(Method::Post, "a.test", "/p", &[("X-A", "1")]);
    head.body = RequestBody::Length(3);
    world.ask_with_body(head, &[b"abc"]);
    let got = &world.origin.got[0];
    assert_eq!((got.params.len(), got.param("L"), got.body_len), (2, Some("3"), Some(0)));
}

#[test]
fn a_path_is_cut_into_script_and_path_info() {
    let inside = "fastcgi_param S $fastcgi_script_name; fastcgi_param P $fastcgi_path_info;";
    for (more, path, script, info) in [
        ("", "/a.php/b", "/a.php/b", ""),
        ("fastcgi_index i.php;", "/d/", "/d/i.php", ""),
        ("fastcgi_index i.php;", "/d", "/d", ""),
        ("fastcgi_split_path_info ^(.+?\\.php)(/.*)$;", "/a.php/b%20c", "/a.php", "/b c"),
        ("fastcgi_split_path_info ^(.+?\\.php)(/.*)$;", "/a.php", "/a.php", ""),
    ] {
        let mut world = passing(&format!("{inside} {more}"));
        world.origin.answers = vec![vec![Say::head(0, &[]), Say::End]];
        world.get("a.test", path);
        let got = &world.origin.got[0];
        assert_eq!((got.param("S"), got.param("P")), (Some(script), Some(info)), "{more} {path}");
    }
}

/// A `POST` of so many bytes, or of an unknown number.
fn post(path: &str, body: RequestBody) -> Box<bolide_http::RequestHead> {
    let mut head = request(Method::Post, "a.test", path, &[]);
    head.body = body;
    head
}

#[test]
fn a_body_is_collected_in_memory_and_in_a_file() {
    let big: Vec<u8> = (0..50_000_u32).map(|at| (at % 251) as u8).collect();
    let pieces: Vec<&[u8]> = big.chunks(1777).collect();
    for (body, inside) in [
        (RequestBody::Length(50_000), "client_body_buffer_size 8k;"),
        (RequestBody::Unknown, "client_body_buffer_size 8k;"),
        (RequestBody::Unknown, "client_body_buffer_size 64k;"),
        (RequestBody::Length(50_000), "fastcgi_request_buffering off;"),
    ] {
        let mut world = passing(&format!("fastcgi_param L $content_length; {inside}"));
        let says = [Say::AwaitBody, Say::head(0, &[]), Say::body("done"), Say::End];
        world.origin.answers = vec![says.to_vec()];
        let reply = world.ask_with_body(post("/p", body), &pieces);
        let got = &world.origin.got[0];
        assert!(got.body == big, "{body:?} {inside}: {} bytes", got.body.len());
        assert_eq!((reply.text().as_str(), reply.discards), ("done", false), "{inside}");
        assert_eq!(got.body_len, Some(50_000), "{body:?} {inside}");
        assert_eq!(got.param("L"), Some("50000"), "{body:?} {inside}");
    }
}

#[test]
fn a_body_that_is_all_there_is_collected_though_it_might_be_streamed() {
    let (small, large) = ([&b"one"[..], b"two"], [&[b'x'; 4100][..], &[b'x'; 4100]]);
    for (body, pieces, at_once, told, text) in [
        (RequestBody::Unknown, small, true, Some(6), "onetwo"),
        (RequestBody::Length(6), small, true, Some(6), "onetwo"),
        (RequestBody::Unknown, small, false, None, ""),
        (RequestBody::Length(6), small, false, Some(6), ""),
        // It does not fit in the buffer, where a declared length may be somewhat longer.
        (RequestBody::Unknown, large, true, None, ""),
        (RequestBody::Length(8200), large, true, Some(8200), &"x".repeat(8200)),
    ] {
        let mut world = passing(
            "fastcgi_request_buffering off; client_body_buffer_size 8k;
             client_body_in_file_only on;
             add_header X-B $request_body; add_header X-F $request_body_file;
             fastcgi_param L $content_length if_not_empty;",
        );
        world.sends_at_once = at_once;
        let says = [Say::AwaitBody, Say::head(0, &[]), Say::body("done"), Say::End];
        world.origin.answers = vec![says.to_vec()];
        let reply = world.ask_with_body(post("/p", body), &pieces);
        let got = &world.origin.got[0];
        assert_eq!(got.body, pieces.concat(), "{body:?} {at_once}");
        assert_eq!(got.body_len, told, "{body:?} {at_once}");
        let declared = told.map(|told| told.to_string());
        assert_eq!(got.param("L"), declared.as_deref(), "{body:?} {at_once}");
        assert_eq!(reply.field("X-B"), text, "{body:?} {at_once}");
        assert_eq!(reply.field("X-F"), "", "it is in memory or nowhere");
    }
}

#[test]
fn a_body_that_is_too_large_is_refused_before_or_while_it_comes() {
    let mut world = passing("client_max_body_size 10;");
    let got = world.ask_with_body(post("/p", RequestBody::Length(11)), &[b"x"]);
    assert_eq!((got.status, got.discards, world.origin.got.len()), (413, true, 0));
    let got = world.ask_with_body(post("/p", RequestBody::Unknown), &[b"01234", b"567890"]);
    assert_eq!((got.status, got.close, world.origin.got.len()), (413, true, 0));
    let log = world.take_log("/srv/logs/error.log");
    assert!(log.contains("client intended to send too large body: 11 bytes, client: "), "{log}");
    let text = "client intended to send too large chunked body: 5+6 bytes, client: ";
    assert!(log.contains(text), "{log}");
    let mut world = passing("client_max_body_size 10; fastcgi_request_buffering off;");
    let mut head = post("/p", RequestBody::Unknown);
    head.version = HttpVersion::Http2;
    let got = world.ask_with_body(head, &[b"01234", b"567890"]);
    assert_eq!((got.status, world.origin.got.len()), (413, 1));
    assert!(world.origin.got[0].dropped, "it was asked while the body came");
}

#[test]
fn a_full_disk_is_an_error_and_a_client_that_leaves_ends_everything() {
    let mut world = passing("client_body_buffer_size 8;");
    world.origin.disk_is_full = true;
    let got = world.ask_with_body(post("/p", RequestBody::Length(20)), &[&[b'x'; 20]]);
    assert_eq!((got.status, world.origin.got.len()), (500, 0));
    let mut world = passing("access_log logs/a.log;");
    world.origin.answers = vec![vec![Say::ClientLeaves]];
    let got = world.get("a.test", "/p");
    assert_eq!((got.status, world.origin.got[0].dropped), (0, true));
    assert!(world.take_log("/srv/logs/a.log").contains("\" 499 0 "));
    world.origin.answers = vec![vec![Say::head(0, &[]), Say::body("x"), Say::ClientLeaves]];
    world.get("a.test", "/p");
    let log = world.take_log("/srv/logs/error.log");
    assert!(!log.contains("prematurely"), "that is told at the level info: {log}");
    let mut world = passing("error_log logs/i.log info; access_log logs/a.log;");
    world.origin.answers = vec![vec![Say::ClientLeaves]];
    world.get("a.test", "/p");
    let log = world.take_log("/srv/logs/i.log");
    let text = "[info] 12#13: *1 epoll_wait() reported that client prematurely closed connection, \
        so upstream connection is closed too while sending request to upstream, client: 192.0.2.1,";
    assert!(log.contains(text), "{log}");
    let mut world = passing("fastcgi_ignore_client_abort on;");
    world.origin.answers = vec![vec![Say::ClientLeaves]];
    world.get("a.test", "/p");
    assert!(!world.origin.got[0].dropped, "the fetch ends by itself");
}

#[test]
fn the_body_is_a_variable_as_long_as_it_is_in_memory() {
    let inside = "client_body_buffer_size 16; fastcgi_param B $request_body;
        fastcgi_param F $request_body_file if_not_empty;";
    let mut world = passing(inside);
    world.origin.answers = vec![vec![Say::head(0, &[]), Say::End]];
    world.ask_with_body(post("/p", RequestBody::Length(6)), &[b"abc", b"def"]);
    let got = &world.origin.got[0];
    assert_eq!((got.param("B"), got.param("F")), (Some("abcdef"), None));
    world.ask_with_body(post("/p", RequestBody::Unknown), &[&[b'x'; 10], &[b'x'; 10]]);
    let got = &world.origin.got[1];
    assert_eq!((got.param("B"), got.text().as_str()), (Some(""), "xxxxxxxxxxxxxxxxxxxx"));
    assert!(got.param("F").unwrap().starts_with("/proc/12/fd/"), "{:?}", got.param("F"));
}

#[test]
fn large_answers_wait_in_memory_then_in_a_file_and_come_in_order() {
    let body: String = (0..20_000).map(|at| char::from(b'a' + (at % 23) as u8)).collect();
    for inside in [
        "fastcgi_buffers 2 1k; fastcgi_buffer_size 1k; fastcgi_busy_buffers_size 1k;",
        "fastcgi_buffers 2 1k; fastcgi_buffer_size 1k; fastcgi_busy_buffers_size 1k;
         fastcgi_max_temp_file_size 0;",
        "fastcgi_buffering off;",
        "gzip on; fastcgi_buffering off;",
    ] {
        let mut world = passing(inside);
        world.pull_max = 300;
        let mut says = vec![Say::head(0, &["Content-Type: text/html"])];
        says.extend(
            body.as_bytes().chunks(900).map(|piece| Say::body(std::str::from_utf8(piece).unwrap())),
        );
        says.push(Say::End);
        world.origin.answers = vec![says];
        assert!(world.get("a.test", "/p").text() == body, "{inside}");
    }
}

#[test]
fn variables_tell_of_all_attempts() {
    let format = "log_format up '$upstream_addr|$upstream_status|$upstream_response_time|\
        $upstream_connect_time|$upstream_header_time|$upstream_response_length|\
        $upstream_bytes_received|$upstream_bytes_sent|$upstream_http_x_a|$upstream_cookie_b';";
    let mut world = world(&format!(
        "{format} access_log logs/a.log up;
         server {{ listen 80; server_name a.test; location /s {{ return 200 x; }}
         location / {{ {PASS} }} }}"
    ));
    let tried = |peer: &str, status| Say::Tried(peer.to_owned(), status);
    world.origin.answers = vec![
        vec![tried("unix:/a", 502), tried("unix:/b", 200), Say::head(0, &["X-Accel-Redirect: /q"])],
        vec![
            tried("1.2.3.4:9", 200),
            Say::head(0, &["X-A: 1", "X-A: 2", "Set-Cookie: b=c; Path=/"]),
            Say::End,
        ],
    ];
    world.get("a.test", "/p");
    assert_eq!(
        world.take_log("/srv/logs/a.log"),
        "unix:/a, unix:/b : 1.2.3.4:9|502, 200 : 200|1.300, 1.300 : 1.300|-, 0.001 : 0.001|\
         -, 0.020 : 0.020|5, 5 : 5|60, 60 : 60|700, 700 : 700|1, 2|c\n"
    );
    world.get("a.test", "/s");
    assert_eq!(world.take_log("/srv/logs/a.log"), "-|-|-|-|-|-|-|-|-|-\n");
}

#[test]
fn what_is_said_of_origins_is_logged_with_the_request_and_the_peer() {
    let mut world = passing("");
    world.origin.answers = vec![vec![
        Say::Log("text".to_owned(), Some("unix:/run/x.sock".to_owned())),
        Say::Log("text".to_owned(), Some("127.0.0.1:9000".to_owned())),
        Say::Log("text".to_owned(), None),
        Say::head(0, &[]),
        Say::End,
    ]];
    world.get("a.test", "/p");
    let log = world.take_log("/srv/logs/error.log");
    let lines: Vec<&str> = log.lines().map(|line| line.split("*1 ").nth(1).unwrap()).collect();
    let start = "text while reading response header from upstream, client: 192.0.2.1, \
        server: a.test, request: \"GET /p HTTP/1.1\"";
    assert_eq!(
        lines,
        [
            format!("{start}, upstream: \"fastcgi://unix:/run/x.sock:\", host: \"a.test\""),
            format!("{start}, upstream: \"fastcgi://127.0.0.1:9000\", host: \"a.test\""),
            format!("{start}, host: \"a.test\""),
        ]
    );
}

#[test]
fn a_target_with_variables_is_a_group_an_address_or_an_error() {
    let mut world = world(
        "upstream g { server unix:/run/x.sock; }
         server { listen 80; server_name a.test; location / { fastcgi_pass $arg_to; } }",
    );
    world.origin.answers = vec![vec![Say::head(0, &[]), Say::End]];
    for (to, group) in [("g", Some(0)), ("unix:/x.sock", None), ("127.0.0.1:9", None)] {
        assert_eq!(world.get("a.test", &format!("/?to={to}")).status, 200, "{to}");
        assert_eq!(world.origin.got.last().unwrap().group, group, "{to}");
    }
    assert_eq!(world.get("a.test", "/?to=php.test:9").status, 502);
    let log = world.take_log("/srv/logs/error.log");
    assert!(log.contains("no resolver defined to resolve php.test, client: "), "{log}");
}

#[test]
fn a_pool_runs_only_files_below_the_root() {
    let mut world = world(
        "php_pool main { } server { listen 80; server_name a.test;
         location / { php_pass main; } location /i/ { internal; php_pass main; } }",
    );
    world.door.put("/srv/www/pic.jpg", b"jpeg");
    world.door.put("/srv/www/dir/x.php", b"<?php");
    world.origin.answers = vec![vec![Say::head(0, &[]), Say::body("ran"), Say::End]];
    for (path, status) in [
        ("/a.php", 200),
        ("/a.php/info", 200),
        ("/none.php", 404),
        ("/pic.jpg/x.php", 404),
        ("/dir/", 404),
        ("/dir", 403),
        ("/i/a.php", 404),
    ] {
        assert_eq!(world.get("a.test", path).status, status, "{path}");
    }
    assert_eq!(world.origin.got.len(), 2);
    let asked = &world.origin.got[1];
    assert_eq!(asked.param("SCRIPT_FILENAME"), Some("/srv/www/a.php"));
    assert_eq!(asked.param("PATH_INFO"), Some("/info"));
    assert_eq!(asked.param("SCRIPT_URL"), Some("/a.php/info"));
    assert_eq!(asked.param("SCRIPT_URI"), Some("http://a.test/a.php/info"));
}

#[test]
fn a_post_for_a_file_is_still_refused_and_its_body_thrown_away() {
    let mut world = world("server { listen 80; server_name a.test; }");
    let got = world.ask_with_body(post("/x.html", RequestBody::Length(3)), &[b"abc"]);
    assert_eq!((got.status, got.discards), (405, true));
}

#[test]
fn a_streamed_body_that_grows_too_large_behind_the_head_cuts_the_answer() {
    let mut world = passing("client_max_body_size 10; fastcgi_request_buffering off;");
    world.origin.answers = vec![vec![Say::head(0, &[]), Say::body("begun"), Say::AwaitBody]];
    world.sends_late = true;
    let pieces: Vec<&[u8]> = vec![b"0123"; 3];
    let got = world.ask_with_body(post("/p", RequestBody::Length(10)), &pieces);
    assert_eq!((got.status, got.is_broken), (200, true));
    assert!(world.origin.got[0].dropped);
}

#[test]
fn a_script_that_stands_in_for_a_413_is_asked_without_the_body() {
    for body in [RequestBody::Unknown, RequestBody::Length(20)] {
        for more in ["", "client_body_buffer_size 4;", "fastcgi_request_buffering off;"] {
            let inside = format!(
                "client_max_body_size 10; {more} error_page 413 /e; fastcgi_param U $uri;
                 fastcgi_param L $content_length;"
            );
            let mut world = passing(&inside);
            let says = [Say::AwaitBody, Say::head(0, &[]), Say::body("too much"), Say::End];
            world.origin.answers = vec![says.to_vec()];
            let pieces: Vec<&[u8]> = vec![b"01234567"; 3];
            let got = world.ask_with_body(post("/p", body), &pieces);
            assert_eq!((got.status, got.text().as_str()), (413, "too much"), "{body:?} {more}");
            // What is streamed is told only while it comes that it is too much.
            let last = world.origin.got.last().unwrap();
            assert_eq!(last.param("U"), Some("/e"), "{body:?} {more}");
            assert_eq!(last.text(), "", "{body:?} {more}");
        }
    }
}

#[test]
fn a_path_that_lacks_the_slash_of_an_origins_location_is_redirected_as_nginx_does() {
    let mut world = world(&format!(
        "server {{ listen 80; server_name a.test; root /srv/www;
         location /a/ {{ {PASS} }} location /a {{ return 200 a; }}
         location = /e/ {{ {PASS} }}
         location /b/ {{ {PASS} location /b/c/ {{ {PASS} }} }}
         location ^~ /d/ {{ {PASS} }}
         location '/sp ace/' {{ {PASS} }}
         location /m/ {{ return 200 m; }}
         location /q/ {{ if ($arg_x) {{ {PASS} }} }}
         location ~ /(b|d)$ {{ return 200 regex; }}
         location /n/ {{ error_page 301 =200 /m/; {PASS} }}
         location /r/ {{ deny all; {PASS} }}
         location /w/ {{ internal; {PASS} }}
         location /x/ {{ location /x/y/ {{ {PASS} }} }}
         location /z/ {{ client_max_body_size 2; {PASS} }} }}"
    ));
    for (path, status, location) in [
        ("/a", 200, ""),
        ("/e", 301, "/e/"),
        ("/b", 301, "/b/"),
        ("/b?x=y&z", 301, "/b/?x=y&z"),
        ("/b/c", 301, "/b/c/"),
        ("/d", 301, "/d/"),
        ("/sp%20ace", 301, "/sp%20ace/"),
        ("/sp%20ace?q", 301, "/sp%20ace/?q"),
        ("/m", 404, ""),
        ("/q?x=1", 404, ""),
        ("/n", 200, "/n/"),
        ("/r", 301, "/r/"),
        ("/w", 404, ""),
        ("/x", 404, ""),
        ("/x/y", 301, "/x/y/"),
    ] {
        let got = world.get("a.test", path);
        let wanted =
            if location.is_empty() { String::new() } else { format!("http://a.test{location}") };
        assert_eq!((got.status, got.field("Location")), (status, &*wanted), "{path}");
    }
    let got = world.ask_with_body(post("/z", RequestBody::Length(6)), &[b"aaaaaa"]);
    assert_eq!((got.status, got.field("Location")), (413, ""));
    let got = world.ask(request(Method::Post, "a.test", "/d", &[]));
    assert_eq!((got.status, got.field("Location")), (301, "http://a.test/d/"));
    assert!(world.origin.got.is_empty());
}
