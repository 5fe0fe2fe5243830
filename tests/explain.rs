//! `bolide explain`, whose result must be that of the next request, and the ring of decisions.

use bolide_testkit::tools::ToolRun;
use bolide_testkit::{Response, TestPhp, TestServer, site, wait_until};

use crate::cache::{KEEP, ZONE, serve};

/// Runs a command with the configuration of a running server.
pub(crate) fn ask(server: &TestServer, args: &[&str]) -> ToolRun {
    // The pid file is written when all sockets listen, which may be after the first response.
    wait_until("the pid file", || server.home().read("logs/pid").ends_with('\n'));
    server.home().run(&[&["-c", "nginx.conf"], args].concat())
}

/// The response to a client for the request of `explained`.
fn get(server: &TestServer, path: &str, fields: &str) -> Response {
    let host = format!("localhost:{}", server.home().port(0));
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{fields}");
    server.connect().ask(head.trim_end())
}

/// The result of `explain --json` for a path.
fn explained(server: &TestServer, path: &str, more: &[&str]) -> String {
    let url = format!("http://localhost:{}{path}", server.home().port(0));
    let done = ask(server, &[&["explain", "--json", &url], more].concat()).succeeded();
    done.text()
}

/// The text of a JSON field.
pub(crate) fn field<'a>(json: &'a str, name: &str) -> &'a str {
    let start = format!("\"{name}\":");
    let rest = json.rsplit(&start).next().filter(|rest| rest.len() < json.len());
    let rest = rest.unwrap_or_else(|| panic!("no {name} in {json}"));
    match rest.strip_prefix('"') {
        Some(text) => text.split('"').next().unwrap(),
        None => rest.split([',', '}']).next().unwrap(),
    }
}

fn decision(server: &TestServer, path: &str, more: &[&str]) -> (String, String) {
    let json = explained(server, path, more);
    // The last of each name; the earlier ones belong to previous decisions.
    (field(&json, "decision").to_owned(), field(&json, "upstream_cache_status").to_owned())
}

#[test]
fn an_explanation_predicts_the_next_request() {
    let php = TestPhp::start(2);
    let more = "fastcgi_cache_bypass $http_x_new; fastcgi_cache_use_stale updating;
        fastcgi_cache_background_update on; fastcgi_cache_min_uses 1;";
    let server = serve(&php, ZONE, &format!("{KEEP} {more}"));
    let mut rows = 0;
    let mut failures = Vec::new();
    let old = "/count.php?n=9&h[]=X-Accel-Expires:1";
    let table: &[(&str, &[&str], &str)] = &[
        ("/count.php?n=1", &[], "MISS"),
        ("/count.php?n=1", &[], "HIT"),
        ("/count.php?n=1", &["X-New: 1"], "BYPASS"),
        ("/count.php?n=1", &["Cookie: a=b"], "HIT"),
        ("/count.php?n=2&h[]=Set-Cookie:a=b", &[], "MISS"),
        ("/count.php?n=2&h[]=Set-Cookie:a=b", &[], "MISS"),
        ("/count.php?n=3&status=404", &[], "MISS"),
        ("/index.html", &[], ""),
        ("/nothing.html", &[], ""),
        (old, &[], "MISS"),
        (old, &[], "HIT"),
        ("pause", &[], ""),
        (old, &[], "STALE"),
    ];
    for (path, fields, expected) in table {
        if *path == "pause" {
            bolide_testkit::pause(1100);
            continue;
        }
        rows += 1;
        let options: Vec<&str> = fields.iter().flat_map(|line| ["--header", *line]).collect();
        let (_, cached) = decision(&server, path, &options);
        let again = decision(&server, path, &options).1;
        let lines: String = fields.iter().map(|line| format!("{line}\r\n")).collect();
        let reply = get(&server, path, &lines);
        let real = reply.header("x-status").unwrap_or_default();
        if real != *expected || cached != real || again != real {
            failures.push(format!("{path} {fields:?}: {cached}, {again}, really {real}"));
        }
    }
    crate::report(rows, &failures);
}

/// The client's view of the page cache, as a decision.
fn seen(server: &TestServer, path: &str, fields: &str) -> String {
    let before = std::fs::read_to_string(server.www("count-0")).unwrap_or_default();
    let reply = get(server, path, fields);
    let asked = std::fs::read_to_string(server.www("count-0")).unwrap_or_default() != before;
    let header = reply.header("x-litespeed-cache").unwrap_or_default();
    match (header, asked) {
        ("hit" | "hit,private", false) => "HIT".to_owned(),
        (_, true) => "asked".to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn an_explanation_of_the_page_cache_predicts_the_next_request() {
    let php = TestPhp::start(2);
    let conf = "page_cache auto; page_cache_vary cookie=currency header=x-device;
        page_cache_bypass $arg_preview; page_cache_drop_query utm_*;";
    let server = serve(&php, "", conf);
    let public = "h[]=X-LiteSpeed-Cache-Control:public,max-age=60";
    let private = "h[]=X-LiteSpeed-Cache-Control:private,max-age=60";
    let session = "lsc_private=aaaaaaaaaaaaaaaaaaaa";
    let mut failures = Vec::new();
    let page = format!("/count.php?{public}");
    let tracked = format!("{page}&utm_source=x");
    let own = format!("/count.php?a=1&{private}");
    let table: Vec<(&str, &str, &str, &str)> = vec![
        (&page, "", "", "MISS"),
        (&page, "", "", "HIT"),
        (&tracked, "", "", "HIT"),
        (&page, "currency=eur", "", "MISS"),
        (&page, "currency=eur", "", "HIT"),
        (&page, "currency=usd", "", "MISS"),
        (&page, "", "X-Device: phone", "MISS"),
        (&page, "", "X-Device: phone", "HIT"),
        (&own, session, "", "MISS"),
        (&own, session, "", "HIT"),
        (&own, "", "", "PASS"),
        ("/count.php?preview=1", "", "", "BYPASS"),
        ("/count.php?plain=1", "", "", "MISS"),
        ("/count.php?plain=1", "", "", "PASS"),
    ];
    for (path, cookie, header, expected) in &table {
        let mut options = Vec::new();
        let mut fields = String::new();
        if !cookie.is_empty() {
            options.extend(["--cookie", *cookie]);
            fields.push_str(&format!("Cookie: {cookie}\r\n"));
        }
        if !header.is_empty() {
            options.extend(["--header", *header]);
            fields.push_str(&format!("{header}\r\n"));
        }
        let (verdict, _) = decision(&server, path, &options);
        let real = seen(&server, path, &fields);
        let fits = if verdict == "HIT" { real == "HIT" } else { real == "asked" };
        if verdict != *expected || !fits {
            failures.push(format!("{path} {cookie} {header}: {verdict}, really {real}"));
        }
    }
    crate::report(table.len(), &failures);
}

#[test]
fn the_story_names_the_lines_that_made_it() {
    let php = TestPhp::start(1);
    let address = php.address();
    let conf = format!(
        "server {{ {}\npage_cache auto;\nset $a b;\n\
         rewrite ^/old/(.*)$ /new/$1;\n\
         location /new/ {{\ntry_files $uri /count.php?q=$uri;\n}}\n\
         location ~ \\.php$ {{\n{} fastcgi_pass {address}; }} }}",
        bolide_testkit::server::LISTEN,
        crate::cache::PARAMS
    );
    let server = crate::http(&conf);
    site::write(&server.www("count.php"), b"<?php echo 1;");
    let text = std::fs::read_to_string(server.home().dir().join("nginx.conf")).unwrap();
    let line = |word: &str| 1 + text.lines().position(|line| line.contains(word)).unwrap();
    let url = format!("http://localhost:{}/old/x", server.home().port(0));
    let story = ask(&server, &["explain", &url]).succeeded().text();
    for (said, word) in [
        ("set $a to \"b\"", "set $a b;"),
        ("makes it \"/new/x\"", "rewrite ^/old"),
        ("goes to location /new/: the longest prefix", "location /new/"),
        ("try_files: \"/new/x\" is not there", "try_files"),
        ("try_files: its last word holds", "try_files"),
        ("goes to location ~ \\.php$: the first regular expression", "location ~"),
        ("page_cache (auto), vhost localhost", "page_cache auto"),
    ] {
        let place = format!("nginx.conf:{})", line(word));
        let found = story.lines().any(|line| line.contains(said) && line.ends_with(&place));
        assert!(found, "no \"{said}\" with {place} in\n{story}");
    }
    assert!(story.contains("starts over with \"/count.php?q=/new/x\""), "{story}");
    assert!(story.contains("decision   MISS: nothing is stored under this key"), "{story}");
    assert!(story.contains(&format!("a request goes to upstream {address}")), "{story}");
}

#[test]
fn candidates_are_shown_with_their_tags_and_purges() {
    let php = TestPhp::start(1);
    let server = serve(&php, "", "page_cache auto;");
    let path = "/count.php?h[]=X-LiteSpeed-Cache-Control:public,max-age=60&h[]=X-LiteSpeed-Tag:A,B";
    assert_eq!(get(&server, path, "").status, 200);
    let json = explained(&server, path, &[]);
    for part in ["\"tags\":[\"A\",\"B\"]", "\"state\":\"fresh\"", "\"own\":true", "\"bytes\":5"] {
        assert!(json.contains(part), "{part} in {json}");
    }
    assert!(json.contains("\"decision\":\"HIT\"") && json.contains("\"for_a_hit\":[]"), "{json}");
    let _ = ask(&server, &["cache", "purge", "--tag", "B", "--stale"]).succeeded();
    let json = explained(&server, path, &[]);
    assert!(
        json.contains("\"state\":\"stale\"") && json.contains("\"decision\":\"STALE\""),
        "{json}"
    );
    let _ = ask(&server, &["cache", "purge", "--tag", "A"]).succeeded();
    let json = explained(&server, path, &[]);
    let is_gone = json.contains("\"state\":\"gone\",\"purged_by\":[\"A\"");
    assert!(is_gone || json.contains("\"candidates\":[]"), "{json}");
    assert_eq!(field(&json, "decision"), "MISS");
}

#[test]
fn reasons_name_the_obstacle() {
    let php = TestPhp::start(1);
    let server = serve(&php, "", "page_cache_preset wordpress; page_cache_bypass $arg_no;");
    let post: &[&str] = &["--method", "POST"];
    let login: &[&str] = &["--cookie", "wordpress_logged_in_x=1"];
    let rows: [(&str, &[&str], &str, &str); 5] = [
        ("/wp-admin/count.php", &[], "preset", "the path /wp-admin/count.php"),
        ("/count.php", login, "preset", "the cookie wordpress_logged_in_x"),
        ("/count.php?no=1", &[], "bypass", "page_cache_bypass ("),
        ("/count.php", post, "method", "request it with GET"),
        ("/index.html", &[], "no-cache-here", "files are served here"),
    ];
    for (path, options, why, words) in rows {
        let json = explained(&server, path, options);
        assert_eq!(field(&json, "why"), why, "{path} {json}");
        assert!(json.contains(words), "{words} in {json}");
    }
    // The reason why a response was not cached is remembered.
    let path = "/count.php?h[]=Cache-Control:no-store";
    assert_eq!(get(&server, path, "").status, 200);
    let json = explained(&server, path, &[]);
    assert!(json.contains("the response has no-store"), "{json}");
}

#[test]
fn a_trial_changes_nothing() {
    let php = TestPhp::start(1);
    let more = "fastcgi_cache_min_uses 2; fastcgi_cache_purge PURGE from 127.0.0.1;";
    let server = serve(&php, ZONE, &format!("{KEEP} {more}"));
    let path = "/count.php";
    for _ in 0..3 {
        assert_eq!(decision(&server, path, &[]).1, "MISS");
    }
    let status = || get(&server, path, "").header("x-status").unwrap_or_default().to_owned();
    assert_eq!((status(), status(), status()), ("MISS".into(), "MISS".into(), "HIT".into()));
    assert_eq!(decision(&server, path, &["--method", "PURGE"]).0, "PURGE");
    assert_eq!(status(), "HIT");
    let lines = server.access_lines(4);
    assert_eq!(lines.len(), 4, "{lines:?}");
}

#[test]
fn decisions_are_found_by_the_id_that_logs_show() {
    let php = TestPhp::start(1);
    let server = serve(&php, ZONE, &format!("{KEEP} add_header X-Id $request_id;"));
    let id = |path: &str| get(&server, path, "").header("x-id").unwrap().to_owned();
    let (miss, hit) = (id("/count.php?n=1"), id("/count.php?n=1"));
    let refused = id("/count.php?n=2&h[]=Set-Cookie:a=b");
    let found = |id: &str| {
        let mut json = String::new();
        wait_until("the decision is noted", || {
            let done = ask(&server, &["explain", "--json", "--request", id]);
            json = done.text();
            done.code == 0
        });
        json
    };
    let first = found(&miss);
    assert_eq!((field(&first, "decision"), field(&first, "kept")), ("MISS", "true"), "{first}");
    assert_eq!(field(&first, "target"), "/count.php?n=1");
    assert_eq!(field(&first, "space"), "zone one");
    assert_eq!(field(&found(&hit[..12]), "decision"), "HIT");
    assert_eq!(field(&found(&hit), "key"), field(&first, "key"));
    let refused = found(&refused);
    assert_eq!((field(&refused, "kept"), field(&refused, "refusal")), ("false", "set-cookie"));
    let none = ask(&server, &["explain", "--request", "ffff0000ffff0000"]);
    assert!(none.code == 1 && none.stderr.contains("no decision"), "{none}");
}

#[test]
fn a_configuration_can_be_explained_without_a_server() {
    let home = bolide_testkit::server::Home::new(crate::BOLIDE);
    home.write(
        "own.conf",
        "pid @DIR@/logs/none;\nevents {}\nhttp {\nserver {\nlisten 127.0.0.1:@HTTP@;\n\
         server_name a.test;\npage_cache auto;\nlocation / {\n\
         fastcgi_pass unix:/nowhere;\n}\n}\n}\n",
    );
    let url = format!("http://a.test:{}/x", home.port(0));
    let done = home.run(&["explain", "-c", "own.conf", &url]);
    assert_eq!(done.code, 0, "{done}");
    assert!(done.stderr.contains("by the configuration alone"), "{done}");
    let text = done.text();
    assert!(
        text.contains("page_cache (auto), vhost a.test") && text.contains("own.conf:7)"),
        "{text}"
    );
    assert!(text.contains("decision   MISS"), "{text}");
    let wrong = home.run(&["explain", "-c", "own.conf", "http://a.test:1/"]);
    assert!(wrong.code == 1 && wrong.stderr.contains("no listener on port 1"), "{wrong}");
}

#[test]
fn only_allowed_addresses_read_the_admin_location() {
    let php = TestPhp::start(1);
    let more = "add_header X-Id $request_id; }
        location = /open { bolide_admin; allow 127.0.0.1; deny all; }
        location = /other { bolide_admin; allow 127.0.0.2; }
        location = /nobody { bolide_admin;";
    let server = serve(&php, ZONE, &format!("{KEEP} {more}"));
    for path in ["/other", "/nobody", "/nobody?explain=http://localhost/"] {
        assert_eq!(get(&server, path, "").status, 403, "{path}");
    }
    // A site whose own name leads here (DNS rebinding).
    assert_eq!(server.connect().ask("GET /open HTTP/1.1\r\nHost: evil.test").status, 403);
    let id = get(&server, "/count.php?n=1", "").header("x-id").unwrap().to_owned();
    let open = |query: &str| {
        let reply = get(&server, &format!("/open{query}"), "");
        assert_eq!(reply.header("content-type"), Some("application/json"), "{query}");
        (reply.status, reply.text())
    };
    let (status, figures) = open("");
    assert!(status == 200 && figures.contains("\"parts\":[{\"kind\":\"zone\",\"name\":\"one\""));
    let (_, found) = open(&format!("?request={id}"));
    assert_eq!((field(&found, "decision"), field(&found, "request_id")), ("MISS", &*id));
    let port = server.home().port(0);
    // A disk access, a cached page, and an error.
    for (path, decision) in [("/dir/", "NONE"), ("/count.php?n=1", "HIT"), ("/open", "NONE")] {
        let url = format!("http://localhost:{port}{path}").replace('?', "%3F");
        let (status, story) = open(&format!("?explain={url}"));
        assert_eq!((status, field(&story, "decision")), (200, decision), "{path}: {story}");
        let args = ["explain", "--json", &format!("http://localhost:{port}{path}")];
        let explained = ask(&server, &args).succeeded().text();
        assert_eq!(field(&explained, "decision"), decision, "{path}");
    }
    let (status, wrong) = open("?explain=http://localhost:1/");
    assert!(status == 400 && wrong.contains("no listener on port 1"), "{wrong}");
    assert_eq!(
        server.connect().ask("POST /open HTTP/1.1\r\nHost: a\r\nContent-Length: 0").status,
        405
    );
}

#[test]
fn a_page_of_parts_is_explained_without_asking_for_the_parts() {
    let php = TestPhp::start(2);
    let server = serve(&php, "", "page_cache auto;");
    let page = "<?php header('X-LiteSpeed-Cache-Control: public,max-age=60,esi=on');
        echo 'with <esi:include src=\"/count.php?n=7\" cache-control=\"no-cache\"/>';";
    site::write(&server.www("esi.php"), page.as_bytes());
    let runs = || std::fs::read_to_string(server.www("count-7")).unwrap_or_default();
    assert_eq!(decision(&server, "/esi.php", &[]).0, "MISS");
    assert_eq!(get(&server, "/esi.php", "").text(), "with run 1");
    for _ in 0..3 {
        assert_eq!(decision(&server, "/esi.php", &[]).0, "HIT");
    }
    assert_eq!(runs(), "1");
    assert_eq!(get(&server, "/esi.php", "").text(), "with run 2");
}

#[test]
fn a_trial_finds_objects_that_only_the_disk_has() {
    let php = TestPhp::start(1);
    let zone = "fastcgi_cache_path @DIR@/cache keys_zone=one:1m;";
    let mut server = serve(&php, zone, KEEP);
    let path = "/count.php?n=1";
    assert_eq!(get(&server, path, "").text(), "run 1");
    wait_until("it is on disk", || explained(&server, path, &[]).contains("\"on_disk\":true"));
    server.restart("TERM");
    wait_until("the disk is looked at", || {
        explained(&server, path, &[]).contains("the disk has it")
    });
    for _ in 0..2 {
        let json = explained(&server, path, &[]);
        assert!(json.contains("the disk has it") && json.contains("\"candidates\":[]"), "{json}");
        assert_eq!(field(&json, "upstream_cache_status"), "HIT", "{json}");
    }
    let reply = get(&server, path, "");
    assert_eq!((reply.header("x-status"), &*reply.text()), (Some("HIT"), "run 1"));
}
