//! Error pages, redirects, `try_files`, `return`, fields, listings and log lines, as in nginx.

use bolide_engine::{RequestRefusal, TlsFacts};
use bolide_http::{HttpVersion, Method, RequestBody, Scheme};
use bolide_world::{FuzzWorld, request};

/// A world in which `servers` stand inside an `http` block, with a few files.
fn world(servers: &str) -> FuzzWorld {
    let mut world = FuzzWorld::of(&format!(
        "events {{}} http {{ types {{ text/html html; text/css css; }} root /srv/www; {servers} }}"
    ));
    for (path, content) in [
        ("index.html", "index"),
        ("404.html", "lost"),
        ("50x.html", "sorry"),
        ("a.html", "a"),
        ("dir/index.html", "dir index"),
        ("bare/x.css", "x"),
        ("bare/sub/y.css", "yy"),
        ("app/main.html", "app"),
    ] {
        world.door.put(&format!("/srv/www/{path}"), content.as_bytes());
    }
    world
}

fn server(inside: &str) -> FuzzWorld {
    world(&format!("server {{ listen 80; server_name a.test; {inside} }}"))
}

#[test]
fn an_error_page_keeps_the_status_unless_told_otherwise() {
    for (directive, status, text) in [
        ("error_page 404 /404.html;", 404, "lost"),
        ("error_page 404 =200 /404.html;", 200, "lost"),
        ("error_page 404 = /404.html;", 200, "lost"),
        ("error_page 404 =410 /404.html;", 410, "lost"),
        ("error_page 403 404 /50x.html;", 404, "sorry"),
        ("error_page 404 @name; location @name { return 200 \"named $uri\"; }", 404, "named /x"),
        ("error_page 404 = @name; location @name { return 201 \"named\"; }", 201, "named"),
        ("error_page 404 /t; location /t { return 200 \"$request_method $args\"; }", 404, "GET "),
        ("error_page 404 /t?a=$uri; location /t { return 200 \"$args\"; }", 404, "a=/x"),
        ("error_page 404 /t; location /t { internal; return 200 in; }", 404, "in"),
    ] {
        let mut world = server(directive);
        let reply = world.ask(request(Method::Get, "a.test", "/x", &[]));
        assert_eq!((reply.status, reply.text().as_str()), (status, text), "{directive}");
    }
}

#[test]
fn an_error_page_may_be_an_address() {
    let mut world = server(
        "error_page 404 http://b.test/$uri; error_page 403 =301 https://c.test/;
        location /f { return 403; }",
    );
    let reply = world.get("a.test", "/x");
    assert_eq!((reply.status, reply.field("Location")), (302, "http://b.test//x"));
    assert!(reply.text().contains("<h1>302 Found</h1>"));
    let reply = world.get("a.test", "/f");
    assert_eq!((reply.status, reply.field("Location")), (301, "https://c.test/"));
}

#[test]
fn an_error_page_that_fails_gives_the_servers_own_page_of_the_new_error() {
    let mut world = server("error_page 404 /missing.html;");
    let reply = world.get("a.test", "/x");
    assert_eq!(reply.status, 404);
    assert!(reply.text().contains("<center><h1>404 Not Found</h1></center>"));
    let mut world = server("error_page 404 /f; location /f { return 403; }");
    assert_eq!(world.get("a.test", "/x").status, 403);
    let mut world = server("error_page 404 @none;");
    assert_eq!(world.get("a.test", "/x").status, 500);
    let log = world.take_log("/srv/logs/error.log");
    assert!(log.contains("[error] 12#13: *1 could not find named location \"@none\", client: "));
}

#[test]
fn recursive_error_pages_go_on_and_circles_end() {
    let inside = "error_page 404 /f; error_page 403 /404.html; location /f { return 403; }";
    assert_eq!(server(inside).get("a.test", "/x").status, 403);
    let mut world = server(&format!("recursive_error_pages on; {inside}"));
    assert_eq!(world.get("a.test", "/x").text(), "lost");
    let mut world = server("recursive_error_pages on; error_page 404 /y;");
    assert_eq!(world.get("a.test", "/x").status, 500);
    assert!(
        world.take_log("/srv/logs/error.log").contains(
            "rewrite or internal redirection cycle while internally redirecting to \"/y\""
        )
    );
    let mut world = server("location / { try_files /none /again; }");
    assert_eq!(world.get("a.test", "/x").status, 500);
}

#[test]
fn a_post_becomes_a_get_for_its_error_page() {
    let mut world = server(
        "error_page 405 /404.html; error_page 413 /50x.html;
        client_max_body_size 10;",
    );
    let mut head = request(Method::Post, "a.test", "/a.html", &[]);
    head.body = RequestBody::Length(5);
    let reply = world.ask(head);
    assert_eq!((reply.status, reply.text().as_str(), reply.discards), (405, "lost", true));
    let mut head = request(Method::Post, "a.test", "/a.html", &[]);
    head.body = RequestBody::Length(11);
    let reply = world.ask(head);
    assert_eq!((reply.status, reply.text().as_str(), reply.close), (413, "sorry", true));
    let log = world.take_log("/srv/logs/error.log");
    assert!(log.contains("client intended to send too large body: 11 bytes"), "{log}");
}

#[test]
fn directories_are_redirected_indexed_listed_or_forbidden() {
    let mut world = server("location /l/ { alias /srv/www/bare/; autoindex on; }");
    let reply = world.get("a.test", "/dir?x=1");
    assert_eq!((reply.status, reply.field("Location")), (301, "http://a.test/dir/?x=1"));
    assert_eq!(world.get("a.test", "/dir/").text(), "dir index");
    assert_eq!(world.get("a.test", "/").text(), "index");
    assert_eq!(world.get("a.test", "/bare/").status, 403);
    let log = world.take_log("/srv/logs/error.log");
    assert!(log.contains("[error] 12#13: *1 directory index of \"/srv/www/bare/\" is forbidden, "));
    assert_eq!(world.get("a.test", "/none/").status, 404);
    let log = world.take_log("/srv/logs/error.log");
    assert!(
        log.contains("\"/srv/www/none/index.html\" is not found (2: No such file or directory)"),
        "{log}"
    );
    let listing = world.get("a.test", "/l/");
    assert_eq!((listing.status, listing.field("Content-Type")), (200, "text/html"));
    assert!(listing.text().contains("<a href=\"sub/\">sub/</a>"), "{}", listing.text());
    assert!(listing.text().contains("<a href=\"x.css\">x.css</a>"));
    assert_eq!(world.ask(request(Method::Post, "a.test", "/l/", &[])).status, 403);
    assert_eq!(world.ask(request(Method::Put, "a.test", "/l/", &[])).status, 405);
    assert_eq!(world.get("a.test", "/l/none/").status, 404);
}

#[test]
fn redirects_are_as_absolute_as_configured() {
    let mut world = world(
        "server { listen 8080; server_name a.test; location /r/ { return 301 /to?x; } }
         server { listen 8080; server_name b.test; port_in_redirect off; }
         server { listen 8080; server_name c.test; absolute_redirect off; }
         server { listen 8080; server_name d.test e.test; server_name_in_redirect on; }",
    );
    world.listen(0);
    let mut location = |host, path| world.get(host, path).field("Location").to_owned();
    assert_eq!(location("a.test", "/dir"), "http://a.test:8080/dir/");
    assert_eq!(location("A.test:99", "/dir"), "http://a.test:8080/dir/");
    assert_eq!(location("a.test", "/r/"), "http://a.test:8080/to?x");
    assert_eq!(location("b.test", "/dir"), "http://b.test/dir/");
    assert_eq!(location("c.test", "/dir?q"), "/dir/?q");
    assert_eq!(location("e.test", "/dir"), "http://d.test:8080/dir/");
    let mut head = request(Method::Get, "", "/dir", &[]);
    head.version = HttpVersion::Http10;
    assert_eq!(world.ask(head).field("Location"), "http://127.0.0.1:8080/dir/");
}

#[test]
fn try_files_looks_in_order_and_falls_back_as_told() {
    let mut world = server(
        "location / { try_files $uri $uri/ $uri.html /app/main.html; }
         location /s/ { try_files $uri =404; }
         location /n/ { try_files /none @app; }
         location @app { return 200 \"app $uri $args\"; }
         location /q/ { try_files /none /t?from=$uri; }
         location = /t { return 200 \"$args\"; }
         location /al/ { alias /srv/www/; try_files $uri $uri/ /al/a.html; }
         location ~ ^/re/(.*)$ { alias /srv/www/; try_files $1 =404; }
         location /code { try_files /none =418; }
         location /quiet { try_files /none =444; }",
    );
    for (path, status, text) in [
        ("/a.html", 200, "a"),
        ("/a", 200, "a"),
        ("/dir/", 200, "dir index"),
        ("/nothing/here", 200, "app"),
        ("/s/none", 404, ""),
        ("/n/x?y=1", 200, "app /n/x y=1"),
        ("/q/x?lost=1", 200, "from=/q/x"),
        ("/al/dir/index.html", 200, "dir index"),
        ("/al/none", 200, "a"),
        ("/re/dir/index.html", 200, "dir index"),
        ("/re/none", 404, ""),
        ("/code", 418, ""),
        ("/quiet", 0, ""),
    ] {
        let reply = world.get("a.test", path);
        assert_eq!(reply.status, status, "{path}");
        if !text.is_empty() {
            assert_eq!(reply.text(), text, "{path}");
        }
    }
    assert_eq!(world.get("a.test", "/dir").field("Location"), "http://a.test/dir/");
}

#[test]
fn aliases_replace_the_prefix_or_spell_the_file() {
    let mut world = server(
        "location /x/ { alias /srv/www/dir/; }
         location ~ ^/u/(?<who>[a-z]+)/(.+)$ { alias /srv/www/$who/$2; }
         location /nest/ { alias /srv/www/bare/; location ~ css$ { add_header X-In nested; } }",
    );
    assert_eq!(world.get("a.test", "/x/index.html").text(), "dir index");
    assert_eq!(world.get("a.test", "/x/").text(), "dir index");
    assert_eq!(world.get("a.test", "/u/app/main.html").text(), "app");
    let reply = world.get("a.test", "/nest/x.css");
    assert_eq!((reply.text().as_str(), reply.field("X-In")), ("x", "nested"));
}

#[test]
fn return_answers_with_texts_redirects_and_silence() {
    let mut world = server(
        "location /t { default_type text/plain; return 200 \"hello $arg_n\\n\"; }
         location /e { return 404; }
         location /et { return 404 \"own text\"; }
         location /n { return 204; }
         location /r { return 301 http://b.test$request_uri; }
         location /r8 { return 308 /y; }
         location /u { return https://c.test/; }
         location /s { return 444; }
         location /t.html { return 200 page; }",
    );
    let reply = world.get("a.test", "/t?n=you");
    assert_eq!((reply.status, reply.text().as_str()), (200, "hello you\n"));
    assert_eq!(reply.field("Content-Type"), "text/plain");
    assert_eq!(world.get("a.test", "/t.html").field("Content-Type"), "text/html");
    assert!(world.get("a.test", "/e").text().contains("<hr><center>bolide/0.1.0</center>"));
    assert_eq!(world.get("a.test", "/et").text(), "own text");
    let reply = world.get("a.test", "/n");
    assert_eq!(
        (reply.status, reply.field("Content-Type"), reply.len),
        (204, "", bolide_http::BodyLen::None)
    );
    let reply = world.get("a.test", "/r?q");
    assert_eq!((reply.status, reply.field("Location")), (301, "http://b.test/r?q"));
    assert!(reply.text().contains("<title>301 Moved Permanently</title>"));
    let reply = world.get("a.test", "/r8");
    assert_eq!((reply.status, reply.field("Location")), (308, "http://a.test/y"));
    assert_eq!(world.get("a.test", "/u").status, 302);
    assert_eq!(world.get("a.test", "/s").status, 0);
    assert_eq!(world.ask(request(Method::Put, "a.test", "/t", &[])).status, 200);
    let log = world.take_log("/srv/logs/access.log");
    assert!(log.contains("\"GET /s HTTP/1.1\" 444 0 "), "{log}");
}

#[test]
fn added_fields_and_expires_follow_the_status() {
    let mut world = server(
        "add_header X-One 1; add_header X-All $status always; add_header X-Empty $arg_none;
         expires 1h;
         location /in/ { add_header X-In 2; expires off; alias /srv/www/; }
         location /max/ { alias /srv/www/; expires max; }
         location /epoch/ { alias /srv/www/; expires epoch; }
         location /minus/ { alias /srv/www/; expires -1; }
         location /mod/ { alias /srv/www/; expires modified 1d; }
         location /day/ { alias /srv/www/; expires @6h; }
         location /lm/ {
             alias /srv/www/; add_header ETag own; add_header Cache-Control no-store;
         }",
    );
    let reply = world.get("a.test", "/a.html");
    assert_eq!((reply.field("X-One"), reply.field("Cache-Control")), ("1", "max-age=3600"));
    assert_eq!(reply.field("Expires"), "Sat, 21 Nov 2026 06:40:36 GMT");
    assert!(reply.fields.iter().all(|(name, _)| name != "X-Empty"));
    let reply = world.get("a.test", "/none");
    assert_eq!((reply.field("X-One"), reply.field("Expires")), ("", ""));
    assert!(reply.fields.iter().any(|(name, _)| name == "X-All"));
    let reply = world.get("a.test", "/in/a.html");
    assert_eq!((reply.field("X-One"), reply.field("X-In"), reply.field("Expires")), ("", "2", ""));
    for (path, expires, control) in [
        ("/max/", "Thu, 31 Dec 2037 23:55:55 GMT", "max-age=315360000"),
        ("/epoch/", "Thu, 01 Jan 1970 00:00:01 GMT", "no-cache"),
        ("/minus/", "Sat, 21 Nov 2026 05:40:35 GMT", "no-cache"),
        ("/mod/", "Wed, 15 Nov 2023 22:13:20 GMT", "no-cache"),
        ("/day/", "Sat, 21 Nov 2026 06:00:00 GMT", "max-age=1164"),
    ] {
        let reply = world.get("a.test", &format!("{path}a.html"));
        assert_eq!(
            (reply.field("Expires"), reply.field("Cache-Control")),
            (expires, control),
            "{path}"
        );
    }
    let reply = world.get("a.test", "/lm/a.html");
    let tags = reply.fields.iter().filter(|(name, _)| name == "ETag").count();
    assert_eq!((reply.field("ETag"), tags), ("own", 1));
}

#[test]
fn charset_is_appended_to_the_types_it_is_for() {
    let mut world = server(
        "charset utf-8; charset_types text/css;
        location /v/ { alias /srv/www/; charset $arg_c; }",
    );
    assert_eq!(world.get("a.test", "/a.html").field("Content-Type"), "text/html; charset=utf-8");
    assert_eq!(world.get("a.test", "/bare/x.css").field("Content-Type"), "text/css; charset=utf-8");
    assert_eq!(world.get("a.test", "/none").field("Content-Type"), "text/html; charset=utf-8");
    assert_eq!(world.get("a.test", "/v/a.html?c=x").field("Content-Type"), "text/html; charset=x");
    assert_eq!(world.get("a.test", "/v/a.html").field("Content-Type"), "text/html");
}

#[test]
fn server_tokens_say_as_much_as_configured() {
    let mut world = server("server_tokens off;");
    let reply = world.get("a.test", "/none");
    assert_eq!(reply.field("Server"), "bolide");
    assert!(reply.text().contains("<center>bolide</center>"));
}

#[test]
fn alt_svc_is_sent_over_tls_where_quic_listens() {
    let mut world = world(
        "ssl_certificate c.pem; ssl_certificate_key k.pem;
         server { listen 443 ssl; listen 443 quic; server_name a.test; }
         server { listen 443 ssl; server_name b.test; }
         server { listen 443 ssl; listen 443 quic; server_name c.test; http3 off; }
         server { listen 443 ssl; listen 443 quic; server_name d.test;
                  add_header Alt-Svc own always; }
         server { listen 443 ssl; listen 443 quic; server_name f.test; http3_alt_svc off; }
         server { listen 443 ssl; listen 443 quic; server_name g.test; http3_alt_svc 8443; }
         server { listen 443 ssl; server_name h.test; http3_alt_svc 8443; }
         server { listen 80; server_name e.test; }",
    );
    let find = |world: &FuzzWorld, port: u16, quic: bool| {
        world.site().listens().iter().position(|listen| {
            let is_quic = listen.transport == bolide_conf::model::ListenTransport::Quic;
            listen.address.port() == port && is_quic == quic
        })
    };
    let tcp = find(&world, 443, false).unwrap();
    world.listen(tcp);
    world.conn.tls = Some(TlsFacts::default());
    let alt_svc = |world: &mut FuzzWorld, host: &str, path: &str| {
        world.get(host, path).field("Alt-Svc").to_owned()
    };
    assert_eq!(alt_svc(&mut world, "a.test", "/a.html"), "h3=\":443\"; ma=86400");
    assert_eq!(alt_svc(&mut world, "a.test", "/none"), "h3=\":443\"; ma=86400");
    assert_eq!(alt_svc(&mut world, "b.test", "/a.html"), "");
    assert_eq!(alt_svc(&mut world, "c.test", "/a.html"), "");
    assert_eq!(alt_svc(&mut world, "d.test", "/a.html"), "own");
    assert_eq!(alt_svc(&mut world, "f.test", "/a.html"), "");
    assert_eq!(alt_svc(&mut world, "g.test", "/a.html"), "h3=\":8443\"; ma=86400");
    assert_eq!(alt_svc(&mut world, "h.test", "/a.html"), "", "no QUIC listens there");
    let mut head = request(Method::Get, "a.test", "/a.html", &[]);
    head.version = HttpVersion::Http3;
    assert_eq!(world.ask(head).field("Alt-Svc"), "");
    let plain = find(&world, 80, false).unwrap();
    world.listen(plain);
    assert_eq!(world.conn.scheme, Scheme::Http);
    assert_eq!(alt_svc(&mut world, "e.test", "/a.html"), "");
}

#[test]
fn refused_requests_get_their_page_and_are_logged_once() {
    let mut world = server("error_log logs/error.log info;");
    for (status, shown, text) in [
        (400, 400, "<h1>400 Bad Request</h1>"),
        (414, 414, "<h1>414 Request-URI Too Large</h1>"),
        (494, 400, "<center>Request Header Or Cookie Too Large</center>"),
        (497, 400, "<center>The plain HTTP request was sent to HTTPS port</center>"),
        (505, 505, "<h1>505 HTTP Version Not Supported</h1>"),
    ] {
        let refusal = RequestRefusal { status, reason: "client sent something" };
        let head = request(Method::Get, "a.test", "/a.html", &[]);
        let reply = world.ask_refused(head, Some(refusal));
        assert_eq!((reply.status, reply.close), (shown, true));
        assert!(reply.text().contains(text), "{}", reply.text());
        let log = world.take_log("/srv/logs/error.log");
        assert_eq!(
            log,
            "2026/11/21 05:40:36 [info] 12#13: *1 client sent something while reading client \
             request headers, client: 192.0.2.1, server: a.test, \
             request: \"GET /a.html HTTP/1.1\", host: \"a.test\"\n"
        );
    }
    // As in nginx, who is late with a head is told nothing.
    let late = RequestRefusal { status: 408, reason: "client timed out" };
    let head = request(Method::Get, "a.test", "/a.html", &[]);
    let reply = world.ask_refused(head, Some(late));
    assert_eq!((reply.status, reply.text().as_str()), (0, ""));
    let mut world = server("error_page 497 https://$host$request_uri;");
    let refusal =
        RequestRefusal { status: 497, reason: "client sent plain HTTP request to HTTPS port" };
    let reply = world.ask_refused(request(Method::Get, "a.test", "/x", &[]), Some(refusal));
    assert_eq!((reply.status, reply.field("Location")), (302, "https://a.test/x"));
}

#[test]
fn unsafe_requests_in_early_data_are_told_to_wait() {
    let mut world = server("location /t { return 200 done; }");
    let mut head = request(Method::Post, "a.test", "/t", &[]);
    head.early = true;
    assert_eq!(world.ask(head).status, 425);
    let mut head = request(Method::Get, "a.test", "/t", &[]);
    head.early = true;
    assert_eq!(world.ask(head).status, 200);
}

#[test]
fn access_logs_have_their_formats_conditions_and_escapes() {
    let mut world = FuzzWorld::of(
        r#"events {} http {
            log_format short '$request_method $uri $status $body_bytes_sent $http_x';
            log_format js escape=json '{"ua":"$http_user_agent","x":"$http_x"}';
            log_format raw escape=none '$http_user_agent$http_x';
            access_log logs/a.log;
            server { listen 80; server_name a.test; access_log logs/s.log short;
                access_log logs/j.log js; access_log logs/r.log raw if=$arg_log;
                location / { return 200 "text"; }
                location /off { access_log off; return 200; }
                location /v { access_log logs/$host.log short; return 200; }
            }
            server { listen 80; server_name b.test; location / { return 200 "text"; } }
        }"#,
    );
    let fields = [("User-Agent", "a\"b\\c\u{1}"), ("Referer", "http://r/")];
    world.ask(request(Method::Get, "a.test", "/%20x?y", &fields));
    assert_eq!(world.take_log("/srv/logs/s.log"), "GET / x 200 4 -\n");
    world.ask(request(Method::Get, "a.test", "/", &fields));
    assert_eq!(world.take_log("/srv/logs/j.log"), "{\"ua\":\"a\\\"b\\\\c\\u0001\",\"x\":\"\"}\n");
    world.ask(request(Method::Get, "a.test", "/?log=0", &fields));
    assert_eq!(world.take_log("/srv/logs/r.log"), "");
    world.ask(request(Method::Get, "a.test", "/?log=1", &fields));
    assert_eq!(world.take_log("/srv/logs/r.log"), "a\"b\\c\u{1}\n");
    world.ask(request(Method::Get, "a.test", "/off", &fields));
    assert_eq!(world.take_log("/srv/logs/s.log"), "");
    world.ask(request(Method::Get, "a.test", "/v", &fields));
    assert_eq!(world.take_log("/srv/logs/a.test.log"), "GET /v 200 0 -\n");
    world.ask(request(Method::Get, "b.test", "/", &fields));
    assert_eq!(
        world.take_log("/srv/logs/a.log"),
        "192.0.2.1 - - [21/Nov/2026:05:40:36 +0000] \"GET / HTTP/1.1\" 200 4 \"http://r/\" \
         \"a\\x22b\\x5Cc\\x01\"\n"
    );
}

#[test]
fn a_missing_file_is_logged_unless_that_is_switched_off() {
    let mut world = server("location /q { log_not_found off; }");
    world.get("a.test", "/none");
    assert_eq!(
        world.take_log("/srv/logs/error.log"),
        "2026/11/21 05:40:36 [error] 12#13: *1 open() \"/srv/www/none\" failed (2: No such file \
         or directory), client: 192.0.2.1, server: a.test, request: \"GET /none HTTP/1.1\", host: \
         \"a.test\"\n"
    );
    world.get("a.test", "/q");
    assert_eq!(world.take_log("/srv/logs/error.log"), "");
}

#[test]
fn connections_close_when_their_time_or_number_is_over() {
    let mut world = server("keepalive_requests 2; location /c { keepalive_timeout 0; }");
    assert!(!world.get("a.test", "/a.html").close);
    assert!(world.get("a.test", "/a.html").close);
    let mut world = server("location /c { keepalive_timeout 0; return 200; }");
    assert!(world.get("a.test", "/c").close);
    assert!(!world.get("a.test", "/a.html").close);
    world.pass(std::time::Duration::from_secs(3600));
    assert!(world.get("a.test", "/a.html").close);
    let mut world = server("keepalive_timeout 75s 60s;");
    assert_eq!(world.get("a.test", "/a.html").field("Keep-Alive"), "timeout=60");
}
