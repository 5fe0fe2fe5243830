//! `bolide_console`: access to it, its actions and their effects, and its data beside the list of
//! all fields in `docs/status.md`.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use bolide_testkit::server::{Home, LISTEN, is_root, prelude};
use bolide_testkit::{CurlReply, Proto, TestServer, TestUpstream, wait_until};

use crate::explain::ask;
use crate::{BOLIDE, http};

/// Fields of every answer of the console.
const FIELDS: [(&str, &str); 4] = [
    ("cache-control", "no-store"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
];

/// A server with a console at `/bolide/`, and more.
fn console(more: &str) -> TestServer {
    http(&format!("server {{ {LISTEN} location /bolide/ {{ bolide_console; }} {more} }}"))
}

/// The secret that the page has from the server.
fn token(server: &TestServer) -> String {
    let page = server.get("/bolide/").text();
    let rest = page.split("name=\"token\" content=\"").nth(1).unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// What the page itself sends for an action.
fn act(server: &TestServer, path: &str) -> CurlReply {
    act_with(server, path, &good(server), &[])
}

fn good(server: &TestServer) -> Vec<String> {
    let token = token(server);
    vec![
        "Content-Type: application/json".to_owned(),
        "Sec-Fetch-Site: same-origin".to_owned(),
        format!("Bolide-Console: {token}"),
    ]
}

fn act_with(server: &TestServer, path: &str, fields: &[String], args: &[&str]) -> CurlReply {
    let mut curl = server.curl(Proto::H1).args(["-X", "POST"]).args(args.iter().copied());
    for field in fields {
        curl = curl.field(field);
    }
    curl.get(&server.url(Proto::H1, path))
}

#[test]
fn the_page_and_its_files_are_there_by_each_protocol() {
    let server = console("gzip on;");
    for proto in Proto::TLS {
        for (path, kind) in [
            ("/bolide/", "text/html; charset=utf-8"),
            ("/bolide/app.css", "text/css; charset=utf-8"),
            ("/bolide/app.js", "text/javascript; charset=utf-8"),
            ("/bolide/views.js", "text/javascript; charset=utf-8"),
            ("/bolide/icon.svg", "image/svg+xml"),
            ("/bolide/status.json", "application/json"),
        ] {
            let reply = server.fetch(proto, path);
            assert_eq!(reply.status, 200, "{path}: {reply:?}");
            assert_eq!(reply.header("content-type"), Some(kind), "{path}");
            for (name, value) in FIELDS {
                assert_eq!(reply.header(name), Some(value), "{path}: {name}");
            }
            let policy = reply.header("content-security-policy").unwrap();
            for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"] {
                assert!(policy.contains(part), "{policy}");
            }
            assert!(!policy.contains("unsafe"), "{policy}");
            let head = server.curl(proto).args(["-I"]).get(&server.url(proto, path));
            assert_eq!((head.status, head.header("content-type")), (200, Some(kind)), "{path}");
        }
        for path in ["/bolide/page.html", "/bolide/x/", "/bolide/app.css/"] {
            assert_eq!(server.fetch(proto, path).status, 404, "{path}");
        }
        let slashless = server.fetch(proto, "/bolide");
        assert_eq!(slashless.status, 301);
        assert!(slashless.header("location").unwrap().ends_with("/bolide/"));
        let put = server.curl(proto).args(["-X", "PUT"]).get(&server.url(proto, "/bolide/"));
        assert_eq!(put.status, 405);
    }
}

#[test]
fn without_rules_only_clients_of_this_machine_see_it_under_names_of_the_server() {
    let server = http(&format!(
        "server {{ {LISTEN} set_real_ip_from 127.0.0.1; real_ip_header X-Client;
             location /bolide/ {{ bolide_console; }}
             location /rules/ {{ bolide_console; allow 192.0.2.0/24; allow 127.0.0.1; deny all; }}
             location /ssi {{ ssi on; default_type text/html; root @DIR@/www; }}
             location /to {{ error_page 404 = /bolide/status.json; return 404; }} }}"
    ));
    let page = "<!--#include virtual=\"/bolide/status.json\" -->";
    std::fs::write(server.www("ssi"), page).unwrap();
    let of = |path: &str, field: &str| {
        let url = server.url(Proto::H1, path);
        server.curl(Proto::H1).field(field).get(&url).status
    };
    assert_eq!(of("/bolide/", "A: b"), 200);
    let far = "X-Client: 192.0.2.7";
    assert_eq!((of("/bolide/", far), of("/rules/", far)), (403, 200));
    assert_eq!(of("/rules/", "X-Client: 198.51.100.1"), 403);
    for field in [
        "X-Forwarded-For: 127.0.0.1",
        "X-Forwarded-Proto: https",
        "CF-Connecting-IP: 127.0.0.1",
        "Forwarded: for=127.0.0.1",
        "Via: 1.1 a",
    ] {
        assert_eq!((of("/bolide/", field), of("/rules/", field)), (403, 200), "{field}");
    }
    for (host, status) in
        [("evil.test", 403), ("localhost", 200), ("127.0.0.1", 200), ("[::1]:81", 200), ("a", 403)]
    {
        for path in ["/bolide/", "/bolide/status.json", "/rules/"] {
            assert_eq!(of(path, &format!("Host: {host}")), status, "{host}{path}");
        }
    }
    let why = "the console is not for this request: its Host is neither an address nor a name";
    assert!(server.error_log().contains(why));
    let included = server.get("/ssi").text();
    assert!(!included.contains("schema"), "{included}");
    // Led there inside the server, the client is judged as anywhere.
    assert_eq!((of("/to", "A: b"), of("/to", far)), (200, 403));
}

/// The status of an answer to these bytes.
fn raw(port: u16, bytes: &str) -> String {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(bytes.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ended = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn a_client_behind_a_proxy_is_not_local() {
    let server = http(&format!(
        "server {{ {LISTEN} listen 127.0.0.1:@P5@ proxy_protocol; ssl_verify_client on;
             ssl_client_certificate @CERT@; set_real_ip_from 127.0.0.1; real_ip_header X-Client;
             location /bolide/ {{ bolide_console; }} }}"
    ));
    let request = |version: &str, field: &str| {
        format!(
            "GET /bolide/ HTTP/{version}\r\nHost: localhost\r\n{field}Connection: close\r\n\r\n"
        )
    };
    let (plain, behind) = (server.http().port(), server.home().port(5));
    assert_eq!(raw(plain, &request("1.1", "")), "200");
    // Without TLS no certificate is asked for, so that the address decides.
    assert_eq!(raw(plain, &request("1.1", "X-Client: 192.0.2.7\r\n")), "403");
    assert_eq!(raw(plain, &request("1.0", "")), "403");
    for head in ["PROXY TCP4 192.0.2.1 127.0.0.1 1 2\r\n", "PROXY UNKNOWN\r\n"] {
        assert_eq!(raw(behind, &format!("{head}{}", request("1.1", ""))), "403", "{head}");
    }
}

#[test]
fn a_password_gives_access_to_the_page_and_to_actions() {
    let server = http(&format!(
        "server {{ {LISTEN} set_real_ip_from 127.0.0.1; real_ip_header X-Client;
             location /bolide/ {{ bolide_console; auth_basic x; auth_basic_user_file @DIR@/users; }}
             location /any/ {{ bolide_console; auth_basic x; auth_basic_user_file @DIR@/users;
                 satisfy any; allow 192.0.2.0/24; deny all; }} }}"
    ));
    server.home().write("users", "a:{PLAIN}b\n");
    let far = "X-Client: 192.0.2.7".to_owned();
    let of = |path: &str, args: &[&str]| {
        let curl = server.curl(Proto::H1).args(args.iter().copied()).field(&far);
        curl.get(&server.url(Proto::H1, path))
    };
    assert_eq!(of("/bolide/", &[]).status, 401);
    assert_eq!(of("/bolide/", &["-u", "a:c"]).status, 401);
    let page = of("/bolide/", &["-u", "a:b"]);
    assert!(
        page.status == 200 && page.text().contains("name=\"acts\" content=\"yes\""),
        "{page:?}"
    );
    let text = page.text();
    let token = text.split("name=\"token\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    let fields = [
        "Content-Type: application/json".to_owned(),
        "Sec-Fetch-Site: same-origin".to_owned(),
        format!("Bolide-Console: {token}"),
        far.clone(),
    ];
    assert_eq!(act_with(&server, "/bolide/reload", &fields, &[]).status, 401);
    assert_eq!(act_with(&server, "/bolide/reload", &fields, &["-u", "a:b"]).status, 200);
    // Let in by its address alone, it sees and does not act.
    let page = of("/any/", &[]);
    assert!(page.status == 200 && page.text().contains("name=\"acts\" content=\"no\""), "{page:?}");
    let refused = act_with(&server, "/any/reload", &fields, &["-u", "a:b"]);
    assert!(refused.status == 403 && refused.text().contains("prove who they are"), "{refused:?}");
}

#[test]
fn a_console_open_to_every_client_or_without_a_prefix_is_refused() {
    for (location, inner, wrong) in [
        ("/b/", "", None),
        ("/b/", "allow 127.0.0.1; deny all;", None),
        ("/b/", "auth_basic x; auth_basic_user_file f; allow all;", None),
        ("/b/", "auth_request /a;", None),
        ("^~ /b/", "", None),
        ("/b/", "allow all;", Some("every client would get to the console of location \"/b/\"")),
        ("/b/", "deny 192.0.2.1;", Some("every client would get to the console")),
        ("/b/", "auth_basic x; allow all;", Some("every client would get to the console")),
        (
            "/b/",
            "satisfy any; allow all; auth_basic x; auth_basic_user_file f;",
            Some("every client would get to the console"),
        ),
        ("/b", "", Some("needs a location whose prefix ends with a slash")),
        ("= /b/", "", Some("needs a location whose prefix ends with a slash")),
        ("~ /b/", "", Some("needs a location whose prefix ends with a slash")),
    ] {
        let home = Home::new(BOLIDE);
        let conf = format!(
            "events {{}}\nhttp {{ server {{ listen 127.0.0.1:@HTTP@;\nlocation {location} {{ {inner}\n\
             bolide_console;\n}} }} }}"
        );
        home.write("nginx.conf", &conf);
        let run = home.run(&["-t", "-c", "nginx.conf"]);
        assert_eq!(run.code != 0, wrong.is_some(), "{location} {inner}: {run}");
        let is_reported = |text| {
            let mut lines = run.stderr.lines();
            lines.any(|line| line.contains(text) && line.contains(":4") && line.contains("[emerg]"))
        };
        assert!(wrong.is_none_or(is_reported), "{location} {inner}: {run}");
    }
}

#[test]
fn only_actions_of_the_page_itself_are_carried_out() {
    let server = console("");
    let good = good(&server);
    let before = configuration(&server);
    for without in 0..good.len() {
        let mut some = good.clone();
        some.remove(without);
        assert_eq!(act_with(&server, "/bolide/reload", &some, &[]).status, 403, "{some:?}");
    }
    let port = server.home().port(1);
    for (at, field) in [
        (0, "Content-Type: text/plain"),
        (0, "Content-Type: application/x-www-form-urlencoded"),
        (1, "Sec-Fetch-Site: cross-site"),
        (1, "Sec-Fetch-Site: same-site"),
        (1, "Sec-Fetch-Site: none"),
        (1, "Origin: https://evil.test"),
        (1, "Origin: null"),
        (2, "Bolide-Console: 0"),
        (2, "Bolide-Console;"),
    ] {
        let mut other = good.clone();
        other[at] = field.to_owned();
        let reply = act_with(&server, "/bolide/reload", &other, &[]);
        assert!(
            reply.status == 403 && reply.text().starts_with("{\"error\":"),
            "{field}: {reply:?}"
        );
    }
    let host = [good.clone(), vec!["Host: evil.test".to_owned()]].concat();
    assert_eq!(act_with(&server, "/bolide/reload", &host, &[]).status, 403);
    // What reads has no effect, and what acts is not read.
    let fetched =
        server.curl(Proto::H1).field(&good[2]).get(&server.url(Proto::H1, "/bolide/reload"));
    assert_eq!(fetched.status, 404);
    assert_eq!(act_with(&server, "/bolide/status.json", &good, &[]).status, 405);
    assert_eq!(configuration(&server), before);
    let mut origin = good;
    origin[1] = format!("Origin: https://localhost:{port}");
    assert_eq!(act_with(&server, "/bolide/reload", &origin, &[]).status, 200);
    wait_until("it is in force", || configuration(&server) == before + 1);
}

fn configuration(server: &TestServer) -> u64 {
    number(&server.get("/bolide/status.json").text(), "configuration")
}

/// The first number of this name in a JSON text.
fn number(json: &str, name: &str) -> u64 {
    let rest =
        json.split(&format!("\"{name}\":")).nth(1).unwrap_or_else(|| panic!("{name}: {json}"));
    rest.split(|byte: char| !byte.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[test]
fn purges_have_their_effect() {
    let origin = TestUpstream::start();
    let server = console(&format!(
        "location /p/ {{ page_cache auto; proxy_pass http://{}; }}",
        origin.address()
    ));
    let tag = "X-LiteSpeed-Cache-Control: public,max-age=600\r\nX-LiteSpeed-Tag: news\r\n";
    for page in ["/p/a", "/p/b", "/p/c"] {
        let fields = if page == "/p/b" { tag } else { "Cache-Control: s-maxage=600\r\n" };
        origin.say(page, bolide_testkit::origin::answer(fields, page));
    }
    let port = server.home().port(0);
    let counts = || ["/p/a", "/p/b", "/p/c"].map(|page| origin.count(page));
    let fetch = || {
        for page in ["/p/a", "/p/b", "/p/c"] {
            let url = format!("http://localhost:{port}{page}");
            assert_eq!(server.curl(Proto::H1).get(&url).text(), page);
        }
    };
    fetch();
    fetch();
    assert_eq!(counts(), [1, 1, 1]);
    for (words, expected) in [
        (format!("url=http%3A%2F%2Flocalhost%3A{port}%2Fp%2Fa"), [2, 1, 1]),
        ("tag=news".to_owned(), [2, 2, 1]),
        ("tag=old".to_owned(), [2, 2, 1]),
        ("all=1".to_owned(), [3, 3, 2]),
    ] {
        let reply = act(&server, &format!("/bolide/purge?{words}"));
        assert!(
            reply.status == 200 && reply.text().starts_with("{\"said\":\"purged: "),
            "{reply:?}"
        );
        fetch();
        assert_eq!(counts(), expected, "{words}");
    }
    for (words, status) in [
        ("url=nonsense", 409),
        ("tag=*", 409),
        ("", 400),
        ("all=0", 400),
        ("url=http://localhost/&all=1", 400),
    ] {
        let reply = act(&server, &format!("/bolide/purge?{words}"));
        assert!(reply.status == status && reply.text().starts_with("{\"error\":"), "{reply:?}");
    }
    assert_eq!(counts(), [3, 3, 2]);
    let log = server.error_log();
    assert!(log.contains("a client of the console asks for a purge of the tag \"news\""), "{log}");
}

#[test]
fn a_reload_is_carried_out_or_refused_with_its_errors() {
    let server = console("");
    let reply = act(&server, "/bolide/reload");
    assert_eq!(reply.text(), "{\"said\":\"Configuration 2 is in force.\"}\n");
    wait_until("it is in force", || configuration(&server) == 2);
    server.rewrite("wrong");
    let reply = act(&server, "/bolide/reload");
    assert!(reply.status == 409 && reply.text().contains("was refused: "), "{reply:?}");
    let status = server.get("/bolide/status.json").text();
    assert_eq!((number(&status, "configuration"), number(&status, "failed")), (2, 1), "{status}");
    assert!(status.contains("\"has_failed\":true,\"errors\":[\""), "{status}");
    assert_eq!(act(&server, "/bolide/reload?more=1").status, 400);
}

#[test]
fn a_pool_starts_again() {
    let user = if is_root() { "user nobody;" } else { "" };
    let server = http(&format!(
        "php_pool main {{ {user} children 2; }}
         server {{ {LISTEN} location /bolide/ {{ bolide_console; }}
             location ~ \\.php$ {{ php_pass main; }} }}"
    ));
    let pool = || {
        let status = server.get("/bolide/status.json").text();
        status.split("\"php\":").nth(1).unwrap().to_owned()
    };
    wait_until("it runs", || pool().contains("\"state\":\"running\""));
    let first = number(&pool(), "pid");
    let reply = act(&server, "/bolide/pool?name=main&order=restart");
    assert!(reply.status == 200 && reply.text().contains("starts again"), "{reply:?}");
    wait_until("another process runs", || {
        let pool = pool();
        pool.contains("\"state\":\"running\"") && number(&pool, "pid") != first
    });
    let reply = act(&server, "/bolide/pool?name=other&order=restart");
    assert!(reply.status == 409 && reply.text().contains("no pool"), "{reply:?}");
    assert_eq!(act(&server, "/bolide/pool?name=main&order=burn").status, 400);
}

/// All paths of a JSON text.
fn paths(server: &TestServer, json: &str) -> BTreeSet<String> {
    let file = server.home().write("paths.json", "");
    std::fs::write(&file, json).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/json_paths.py");
    let text = bolide_testkit::tools::python(script, [&file]).succeeded().text();
    text.lines().map(str::to_owned).collect()
}

/// The fields that the document lists between this heading and the next.
fn listed(heading: &str) -> BTreeSet<String> {
    let document = include_str!("../docs/status.md");
    let part = document.split("\n## ").find(|part| part.starts_with(heading)).unwrap();
    let rows = part.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split('`').next()).map(str::to_owned).collect()
}

#[test]
fn the_document_lists_all_fields_and_no_others() {
    let user = if is_root() { "user nobody;" } else { "" };
    let origin = TestUpstream::start();
    for page in ["/slow", "/a"] {
        origin.say(page, bolide_testkit::origin::answer("Cache-Control: private\r\n", "x"));
    }
    let block = format!(
        "cluster unix:none.sock {{ objects public; }}
         php_pool main {{ {user} children 2; }} upstream app {{ server {}; }}
         server {{ {LISTEN} location /bolide/ {{ bolide_console; }}
             location ~ \\.php$ {{ php_pass main; }}
             location / {{ page_cache auto; proxy_pass http://app; }} }}",
        origin.address()
    );
    let server = TestServer::conf(BOLIDE, &format!("{} http {{ {block} }}", prelude(2)));
    origin.hold("/slow");
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| server.get("/slow").status);
        wait_until("it is asked", || origin.count("/slow") == 1);
        std::thread::sleep(Duration::from_millis(600));
        origin.release();
        assert_eq!(slow.join().unwrap(), 200);
    });
    for path in ["/a", "/a"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    server.rewrite("wrong");
    assert_eq!(act(&server, "/bolide/reload").status, 409);
    let mut by_command = String::new();
    wait_until("all workers have answered", || {
        by_command = ask_running(&server);
        !by_command.contains("\"answers\":false") && by_command.contains("\"cluster\":{")
    });
    let page = server.get("/bolide/status.json").text();
    for json in [&by_command, &page] {
        assert_eq!(number(json, "schema"), 1);
        assert!(number(json, "duration_us") >= 600_000, "{json}");
    }
    // No certificate is ordered here.
    let in_orders = |field: &String| field.starts_with("orders[].");
    let mut common = listed("Fields");
    assert_eq!(common.extract_if(.., in_orders).count(), 8);
    common.insert("orders[]".to_owned());
    assert!(common.len() > 80, "{common:?}");
    let all = |more: BTreeSet<String>| common.union(&more).cloned().collect::<BTreeSet<_>>();
    assert_eq!(paths(&server, &by_command), all(listed("Workers, by the command")));
    assert_eq!(paths(&server, &page), all(listed("Workers, on the page")));
}

/// What the command prints. The configuration of its server is faulty by now.
fn ask_running(server: &TestServer) -> String {
    let pid = server.pid().to_string();
    server.home().run(&["status", "--json", "--pid", &pid]).succeeded().text()
}

#[test]
fn the_command_prints_the_same_without_a_console() {
    let server = crate::site("");
    let json = ask(&server, &["status", "--json"]).succeeded().text();
    assert!(json.starts_with("{\"schema\":1,\"version\":\""), "{json}");
    assert!(json.contains("\"is_counted\":false") && json.contains("\"cache\":null"), "{json}");
}

#[test]
fn a_person_reads_and_works_the_page_by_keyboard_in_both_colour_schemes() {
    let user = if is_root() { "user nobody;" } else { "" };
    let origin = TestUpstream::start();
    origin.say("/a", bolide_testkit::origin::answer("Cache-Control: s-maxage=600\r\n", "x"));
    let server = http(&format!(
        "php_pool main {{ {user} children 2; }} upstream app {{ server {}; }}
         server {{ {LISTEN} location /bolide/ {{ bolide_console; }}
             location ~ \\.php$ {{ php_pass main; }}
             location / {{ page_cache auto; proxy_pass http://app; }} }}",
        origin.address()
    ));
    assert_eq!(server.get("/a").status, 200);
    let base = format!("http://localhost:{}/bolide/", server.home().port(0));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/console_page.py");
    let shots = concat!(env!("CARGO_MANIFEST_DIR"), "/target/tmp/console");
    let chromium = bolide_testkit::tool("chromium").display().to_string();
    let words = ["--base", &base, "--chromium", &chromium, "--shots", shots];
    let _steps = bolide_testkit::tools::python(script, words).succeeded();
}
