//! The nginx language for a user: `-t` with real files and with mistakes.

use std::fs;
use std::path::Path;

use bolide_testkit::server::{Home, LISTEN, is_root, prelude};
use bolide_testkit::{TestServer, run};

use crate::{BOLIDE, report};

const CONFIGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/configs");

/// Copies `tests/configs` into the server's directory, and fills in ports and paths.
fn copy_configs(home: &Home, from: &Path, to: &str) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{to}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            copy_configs(home, &entry.path(), &format!("{name}/"));
        } else {
            home.write(&name, &fs::read_to_string(entry.path()).unwrap());
            names.push(name);
        }
    }
    names.sort();
    names
}

#[test]
fn realistic_configurations_are_accepted() {
    let home = Home::new(BOLIDE);
    let names = copy_configs(&home, Path::new(CONFIGS), "");
    let mut failures = Vec::new();
    for name in &names {
        let file = home.dir().join(name);
        let done = home.run(&["-t", "-c", file.to_str().unwrap()]);
        let wanted = format!(
            "{0} the configuration file {1} syntax is ok\n\
             {0} configuration file {1} test is successful\n",
            home.name(),
            file.display()
        );
        if done.code != 0 || done.stderr != wanted || !done.stdout.is_empty() {
            failures.push(format!("{name}: {done}"));
        }
    }
    assert!(names.len() >= 10);
    report(names.len(), &failures);
}

#[test]
fn realistic_configurations_are_served() {
    let requests: &[(&str, &str, &str, u16, &str)] = &[
        ("static.conf", "example.com", "/hello.txt", 200, "hello, bolide\n"),
        ("static.conf", "example.com", "/.git/config", 404, ""),
        ("static.conf", "example.com", "/style.css", 200, "body"),
        ("vhosts.conf", "example.com", "/x?y", 301, "http://www.example.com/x?y"),
        ("vhosts.conf", "www.example.com", "/hello.txt", 200, "hello, bolide\n"),
        ("vhosts.conf", "a.b.example.com", "/", 200, "wildcard a.b.example.com\n"),
        ("vhosts.conf", "mail.anything.test", "/", 200, "mail\n"),
        ("vhosts.conf", "anna.people.test", "/", 200, "user anna\n"),
        ("vhosts.conf", "sub.example.org", "/file.txt", 200, "file\n"),
        ("vhosts.conf", "example.org", "/file.txt", 200, "file\n"),
        ("redirects.conf", "old.test", "/a?b", 301, "https://new.test/a?b"),
        ("redirects.conf", "new.test", "/about.php", 301, "/about/"),
        ("redirects.conf", "new.test", "/blog/2024/a/b", 308, "/archive/2024/a/b"),
        ("redirects.conf", "new.test", "/shop/x", 302, "https://shop.test/"),
        ("redirects.conf", "new.test", "/gone", 410, "410 Gone"),
        ("redirects.conf", "new.test", "/teapot", 418, "short and stout"),
        ("redirects.conf", "new.test", "/try/x", 307, "/"),
        ("spa.conf", "app.test", "/deep/link", 200, "It works."),
        ("spa.conf", "app.test", "/hello.txt", 200, "hello, bolide\n"),
        ("spa.conf", "app.test", "/assets/none.js", 404, ""),
        ("spa.conf", "app.test", "/robots.txt", 200, "Disallow:"),
        ("spa.conf", "app.test", "/favicon.ico", 204, ""),
        ("errors.conf", "a", "/missing", 404, "404"),
        ("errors.conf", "a", "/private", 404, "404"),
        ("errors.conf", "a", "/errors/index.html", 404, "404"),
        ("errors.conf", "a", "/down", 404, ""),
        ("mirror.conf", "a", "/list/", 200, "Index of /list/"),
        ("mirror.conf", "a", "/api/", 200, "\"name\":\"a.txt\""),
        ("mirror.conf", "a", "/nolinks/list/", 403, ""),
        ("ipv6.conf", "localhost", "/", 200, "home\n"),
        ("ipv6.conf", "localhost", "/static/file.txt", 200, "file\n"),
        ("include.conf", "a", "/hello.txt", 200, "hello, bolide\n"),
        ("tls.conf", "secure.test", "/x?y", 301, "https://secure.test/x?y"),
    ];
    let mut failures = Vec::new();
    let mut names: Vec<&str> = requests.iter().map(|row| row.0).collect();
    names.dedup();
    for name in names {
        let home = Home::new(BOLIDE);
        copy_configs(&home, Path::new(CONFIGS), "");
        let text = fs::read_to_string(Path::new(CONFIGS).join(name)).unwrap();
        // The unchanged file, but in the foreground and (for nginx) with the right to read.
        let server = TestServer::start(home, &format!("daemon off; user root;\n{text}"));
        for (_, host, path, status, part) in requests.iter().filter(|row| row.0 == name) {
            let answer = server.connect().ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}"));
            let place = answer.header("location").unwrap_or_default();
            let found = place == *part || (place.is_empty() && answer.text().contains(part));
            if answer.status != *status || !found {
                let text = answer.text();
                failures.push(format!("{name} {host}{path}: {} {place} {text}", answer.status));
            }
        }
    }
    report(requests.len(), &failures);
}

#[test]
fn return_444_closes_without_a_response() {
    let home = Home::new(BOLIDE);
    copy_configs(&home, Path::new(CONFIGS), "");
    let text = fs::read_to_string(Path::new(CONFIGS).join("vhosts.conf")).unwrap();
    let server = TestServer::start(home, &format!("daemon off; user root;\n{text}"));
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: unknown.test\r\n\r\n");
    assert!(client.is_closed(), "444 closes without an answer");
}

/// The most common mistakes: a file, and nginx's line about it after `[emerg] `. `%F` is the file's
/// path.
#[rustfmt::skip]
const MISTAKES: &[(&str, &str)] = &[
    ("events {}\nhttp {\n    server {\n        lisen 80;\n    }\n}\n",
     "unknown directive \"lisen\" in %F:4"),
    ("events {}\nserver { listen 80; }\n",
     "\"server\" directive is not allowed here in %F:2"),
    ("events {}\nlocation / {}\n",
     "\"location\" directive is not allowed here in %F:2"),
    ("events {}\nhttp { server { root; } }\n",
     "invalid number of arguments in \"root\" directive in %F:2"),
    ("events {}\nhttp { server { root a b; } }\n",
     "invalid number of arguments in \"root\" directive in %F:2"),
    ("events {}\nhttp { server { root a; root b; } }\n",
     "\"root\" directive is duplicate in %F:2"),
    ("events {}\nhttp { server {\n root a\n index b;\n} }\n",
     "invalid number of arguments in \"root\" directive in %F:4"),
    ("events {}\nhttp { server { listen 80 } }\n",
     "unexpected \"}\" in %F:2"),
    ("events {}\nhttp {\n server {\n  listen 127.0.0.1:8080;\n }\n",
     "unexpected end of file, expecting \"}\" in %F:6"),
    ("events {}\nhttp {}\n}\n",
     "unexpected \"}\" in %F:3"),
    ("events {}\nhttp {}\nuser root",
     "unexpected end of file, expecting \";\" or \"}\" in %F:3"),
    ("events {}\nhttp { gzip yes; }\n",
     "invalid value \"yes\" in \"gzip\" directive, it must be \"on\" or \"off\" in %F:2"),
    ("events {}\nhttp { keepalive_timeout abc; }\n",
     "\"keepalive_timeout\" directive invalid value in %F:2"),
    ("events {}\nhttp { client_max_body_size 10x; }\n",
     "\"client_max_body_size\" directive invalid value in %F:2"),
    ("events {}\nhttp { server { listen 127.0.0.1:8080 root; } }\n",
     "invalid parameter \"root\" in %F:2"),
    ("events {}\nhttp { server { location / {} location / {} } }\n",
     "duplicate location \"/\" in %F:2"),
    ("events {}\nhttp { server { location /a { location /b {} } } }\n",
     "location \"/b\" is outside location \"/a\" in %F:2"),
    ("events {}\nhttp { server { listen 127.0.0.1:8080 default_server; }\n\
      server { listen 127.0.0.1:8080 default_server; } }\n",
     "a duplicate default server for 127.0.0.1:8080 in %F:3"),
    ("events {}\nhttp { server { listen 127.0.0.1:8080; listen 127.0.0.1:8080; } }\n",
     "a duplicate listen 127.0.0.1:8080 in %F:2"),
    ("events {}\nhttp { server { listen 127.0.0.1:8080 backlog=1; }\n\
      server { listen 127.0.0.1:8080 backlog=2; } }\n",
     "duplicate listen options for 127.0.0.1:8080 in %F:3"),
    ("events {}\nhttp { log_format a \"$foo\"; access_log logs/a a; server {} }\n",
     "unknown \"foo\" variable"),
    ("events {}\nhttp { server { location / { return 200 $nothing; } } }\n",
     "unknown \"nothing\" variable"),
    ("events {}\nhttp { access_log logs/a.log mian; }\n",
     "unknown log format \"mian\" in %F:2"),
    ("events { worker_connections 2; }\nhttp { server { listen 127.0.0.1:8080; listen 127.0.0.1:8081; } }\n",
     "2 worker_connections are not enough for 2 listening sockets"),
    ("http {}\n",
     "no \"events\" section in configuration"),
    ("events {}\nhttp { server { listen 127.0.0.1:8443 ssl; } }\n",
     "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive in %F:2"),
    ("events {}\nhttp { server { location ~ ^/(a {} } }\n",
     "pcre2_compile() failed: missing closing parenthesis in \"^/(a\" in %F:2"),
    ("events {}\nhttp { server { location / { root a; alias b; } } }\n",
     "\"alias\" directive is duplicate, \"root\" directive was specified earlier in %F:2"),
    ("events {}\nhttp { include nowhere.conf; }\n",
     "open() \"@DIR@/nowhere.conf\" failed (2: No such file or directory) in %F:2"),
    ("events {}\nhttp { server { server_name \"a\"b; } }\n",
     "unexpected \"b\" in %F:2"),
    ("events {}\nhttp { server { location ~ ^/a{2}$ {} } }\n",
     "unknown directive \"2}$\" in %F:2"),
    ("events {}\nhttp { server { error_page 404; } }\n",
     "invalid number of arguments in \"error_page\" directive in %F:2"),
    ("events {}\nhttp { server { error_page 200 /x; } }\n",
     "value \"200\" must be between 300 and 599 in %F:2"),
    ("events {}\nhttp { server { return 99999 x; } }\n",
     "invalid return code \"99999\" in %F:2"),
    ("events {}\nhttp { server { return 103; } }\n",
     "invalid return code \"103\" in %F:2"),
    ("events {}\nhttp { server { return 0 x; } }\n",
     "invalid return code \"0\" in %F:2"),
    ("events {}\nhttp { server { error_page 404 =199 /x; } }\n",
     "invalid value \"=199\" in %F:2"),
    ("events {}\nhttp { server { error_page 404 =1000 /x; } }\n",
     "invalid value \"=1000\" in %F:2"),
    ("events {}\nhttp { server { location / { try_files $uri =100; } } }\n",
     "invalid code \"=100\" in %F:2"),
    ("events {}\nhttp { server { location / { try_files $uri; } } }\n",
     "invalid number of arguments in \"try_files\" directive in %F:2"),
    ("events {}\nhttp { server { listen 127.0.0.1:99999; } }\n",
     "invalid port in \"127.0.0.1:99999\" of the \"listen\" directive in %F:2"),
    ("events {}\nhttp { server { listen 300.0.0.1:80; } }\n",
     "host not found in \"300.0.0.1:80\" of the \"listen\" directive in %F:2"),
    ("events {}\nhttp { server { listen 127.0.0.1:8443 ssl; ssl_certificate none.pem;\n\
      ssl_certificate_key none.key; } }\n",
     // The rest of nginx's line comes from OpenSSL.
     "cannot load certificate \"@DIR@/none.pem\": BIO_new_file() failed (…"),
    ("worker_processes many;\nevents {}\n",
     "\"worker_processes\" directive invalid value in %F:1"),
    ("events { worker_connections x; }\n",
     "invalid number \"x\" in %F:1"),
    ("events {}\nevents {}\n",
     "\"events\" directive is duplicate in %F:2"),
    ("events {}\nhttp { server { server_name ~^(a; } }\n",
     "pcre2_compile() failed: missing closing parenthesis in \"^(a\" in %F:2"),
    ("events {}\nhttp { server { location {} } }\n",
     "invalid number of arguments in \"location\" directive in %F:2"),
    ("events {}\nhttp { server { location ~~ /a {} } }\n",
     "invalid location modifier \"~~\" in %F:2"),
    ("events {}\nhttp { server { add_header X; } }\n",
     "invalid number of arguments in \"add_header\" directive in %F:2"),
    ("events {}\nhttp { server { location @a { location /b {} } } }\n",
     "location \"/b\" cannot be inside the named location \"@a\" in %F:2"),
    ("events {}\nhttp { error_log logs/e loud; }\n",
     "invalid log level \"loud\" in %F:2"),
    ("events {}\nhttp { ssl_protocols TLSv9; }\n",
     "invalid value \"TLSv9\" in %F:2"),
    ("events {}\nhttp { gzip_comp_level 12; }\n",
     "value must be between 1 and 9 in %F:2"),
];

#[test]
fn the_commonest_mistakes_get_nginxs_messages() {
    let home = Home::new(BOLIDE);
    let mut failures = Vec::new();
    for (n, (conf, wanted)) in MISTAKES.iter().enumerate() {
        let file = home.write(&format!("mistake-{n}.conf"), conf);
        let file = file.to_str().unwrap();
        let _fresh = fs::remove_file(home.dir().join("logs/error.log"));
        let done = home.run(&["-t", "-c", file, "-e", "logs/error.log"]);
        let wanted = home.expand(&wanted.replace("%F", file));
        let whole = format!(
            "{0} [emerg] {wanted}\n{0} configuration file {file} test failed\n",
            home.name()
        );
        // More diagnostics may follow; the first and the last line are nginx's.
        let first = done.stderr.lines().find(|line| line.contains("[emerg]"));
        let begin = wanted.strip_suffix('…');
        let same = match begin {
            Some(begin) => first.is_some_and(|line| line.contains(begin)),
            None => first == whole.lines().next(),
        } && done.stderr.lines().last() == whole.lines().last();
        if done.code != 1 || !same {
            failures.push(format!("want {whole}got exit {} {}", done.code, done.stderr));
        }
        let logged = home.read("logs/error.log");
        let mut emergencies = logged.lines().filter(|line| line.contains(" [emerg] "));
        let named = |line: &str| match begin {
            Some(begin) => line.contains(begin),
            None => line.ends_with(&wanted) && line.len() > wanted.len() + 28,
        };
        if !emergencies.any(named) {
            failures.push(format!("error log: want {wanted}, got {logged:?}"));
        }
    }
    assert!(MISTAKES.len() >= 25);
    report(MISTAKES.len(), &failures);
}

/// Warnings do not fail a test of the configuration.
#[rustfmt::skip]
const WARNINGS: &[(&str, &str)] = &[
    ("events {}\nhttp { server { listen 127.0.0.1:8080; server_name a; }\n\
      server { listen 127.0.0.1:8080; server_name a; } }\n",
     "conflicting server name \"a\" on 127.0.0.1:8080, ignored"),
    ("events {}\nhttp { types { text/html html; text/plain html; } server {} }\n",
     "duplicate extension \"html\", content type: \"text/plain\", previous content type: \
      \"text/html\" in %F:2"),
    ("events {}\nhttp { server { listen 127.0.0.1:8443 ssl http2;\nssl_certificate @CERT@; \
      ssl_certificate_key @KEY@; } }\n",
     "the \"listen ... http2\" directive is deprecated, use the \"http2\" directive instead \
      in %F:2"),
];

#[test]
fn doubtful_configurations_are_accepted_with_a_warning() {
    let home = Home::new(BOLIDE);
    let mut failures = Vec::new();
    for (n, (conf, wanted)) in WARNINGS.iter().enumerate() {
        let file = home.write(&format!("warning-{n}.conf"), conf);
        let file = file.to_str().unwrap();
        let done = home.run(&["-t", "-c", file, "-e", "logs/error.log"]);
        let line = format!("{} [warn] {}", home.name(), wanted.replace("%F", file));
        if done.code != 0 || !done.stderr.lines().any(|said| said == line) {
            failures.push(format!("want {line}\ngot exit {} {}", done.code, done.stderr));
        }
    }
    report(WARNINGS.len(), &failures);
}

#[test]
fn tokens_are_read_as_nginx_reads_them() {
    let server = crate::http(
        r#"server {
            listen 127.0.0.1:@HTTP@;
            location /quotes { return 200 "a \"b\" 'c' \\ \t|\n"; }
            location /single { return 200 'a "b" \'c\''; }
            location "/with space" { return 200 spaced; }
            location /hash#1 { return 200 hash#2; }
            location /braces { return 200 "{x};"; }
            location ~ "^/re{2}/\d+$" { return 200 regex; }
            location /var { return 200 ${uri}s; }
            location /comment { return 200 b; }  # a comment; { not a block
            location /line
            {
                return
                    200
                    lines;
            }
        }"#,
    );
    for (path, text) in [
        ("/quotes", "a \"b\" 'c' \\ \t|\n"),
        ("/single", "a \"b\" 'c'"),
        ("/with%20space", "spaced"),
        ("/hash%231", "hash#2"),
        ("/braces", "{x};"),
        ("/ree/12", "regex"),
        ("/var", "/vars"),
        ("/line", "lines"),
    ] {
        assert_eq!(server.get(path).text(), text, "{path}");
    }
}

#[test]
fn known_but_unsupported_directives_are_reported() {
    let home = Home::new(BOLIDE);
    let conf = "events {}\nhttp { server { location / { image_filter test; } } }\n";
    let file = home.write("later.conf", conf);
    let done = home.run(&["-t", "-c", file.to_str().unwrap()]);
    assert_eq!(done.code, 1, "{done}");
    assert!(done.stderr.contains("\"image_filter\"") && !done.stderr.contains("unknown directive"));
}

/// The user id of a server's worker.
fn worker_uid(server: &TestServer) -> String {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let of_worker = |task: fs::DirEntry| {
        let name = fs::read_to_string(task.path().join("comm")).unwrap();
        name.starts_with("worker-").then(|| fs::read_to_string(task.path().join("status")).unwrap())
    };
    let status = tasks.flatten().find_map(of_worker).expect("a server has a worker");
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    uids.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn workers_of_root_run_as_nobody_by_default() {
    if !is_root() {
        return;
    }
    let block = format!("http {{ server {{ {LISTEN} return 200 ok; }} }}");
    let untold = prelude(1).replace("user root;\n", "");
    for (prelude, user) in [(untold, "nobody"), (prelude(1), "root")] {
        let server = TestServer::start(Home::new(BOLIDE), &format!("{prelude}{block}"));
        assert_eq!(server.get("/").text(), "ok");
        let uid = run("id", ["-u", user]).succeeded().text();
        assert_eq!(worker_uid(&server), uid.trim());
    }
}

#[test]
fn the_default_access_log_is_opened_only_where_requests_are_logged_to_it() {
    let home = Home::new(BOLIDE);
    let elsewhere = home.dir().join("none");
    fs::create_dir(&elsewhere).unwrap();
    let prefix = elsewhere.to_str().unwrap();
    let test = |server: &str| {
        let conf = format!(
            "pid pid; error_log stderr; events {{}} http {{ server {{ listen 127.0.0.1:1; {server} }} }}"
        );
        let file = home.write("logs.conf", &conf);
        home.run(&["-t", "-p", prefix, "-c", file.to_str().unwrap()])
    };
    for server in ["access_log a.log;", "access_log off;"] {
        let done = test(server);
        assert_eq!(done.code, 0, "{server} {done}");
    }
    let done = test("location /a { access_log a.log; }");
    assert!(done.code == 1 && done.stderr.contains("logs/access.log\" failed (2:"), "{done}");
}
