//! `.htaccess` rules that reach beyond their tree: maps of the configuration, and other servers
//! that it allows.

use std::fs;

use bolide_testkit::server::Home;
use bolide_testkit::{TestServer, TestUpstream};

use crate::{BOLIDE, report, site};

fn put(server: &TestServer, path: &str, text: &str) {
    let path = server.www(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn check(server: &TestServer, rows: &[(&str, u16, &str)]) {
    let mut failures = Vec::new();
    for (path, status, wanted) in rows {
        let answer = server.get(path);
        let said = match answer.status {
            300..400 => answer.header("location").unwrap_or_default().to_owned(),
            _ => answer.text(),
        };
        if answer.status != *status || !said.contains(wanted) {
            failures
                .push(format!("{path}: {} {said:?} instead of {status} {wanted}", answer.status));
        }
    }
    report(rows.len(), &failures);
}

/// What is said about a directive that is not accepted.
fn refusal(directive: &str) -> String {
    let home = Home::new(BOLIDE);
    let server = format!("server {{ listen 127.0.0.1:8080; {directive} }}");
    home.write("nginx.conf", &format!("events {{}} http {{ {server} }}"));
    home.run(&["-t"]).stderr
}

#[test]
fn maps_are_texts_chances_and_functions() {
    let server = site(
        "apache_htaccess on;
         apache_directory - 'RewriteMap lower int:tolower' 'RewriteMap up int:toupper'
             'RewriteMap places txt:@DIR@/map.txt' 'RewriteMap one rnd:@DIR@/map.txt'
             'RewriteMap gone txt:/nonexistent/m';",
    );
    let places = "# places\nhome a.txt\nshop   b.txt  and more\nboth a.txt|b.txt\n";
    server.home().write("map.txt", places);
    for name in ["a.txt", "b.txt"] {
        put(&server, name, name);
    }
    put(
        &server,
        ".htaccess",
        "RewriteEngine on\n\
         RewriteRule ^go/(.*)$ /${places:$1|none.txt} [L]\n\
         RewriteRule ^deep/(.*)$ /${places:${lower:$1}|a.txt} [L]\n\
         RewriteRule ^any/(.*)$ /${one:$1} [L]\n\
         RewriteCond ${places:$1} ^b\n\
         RewriteRule ^is/(.*)$ - [G]\n\
         RewriteRule ^up/(.*)$ /${up:$1} [R,L]\n\
         RewriteRule ^gone/(.*)$ /${gone:$1} [L]\n\
         RewriteRule ^unknown/(.*)$ /${nowhere:$1} [L]\n\
         RewriteRule ^text/(.*)$ /${places} [R,L]\n",
    );
    check(
        &server,
        &[
            ("/go/home", 200, "a.txt"),
            ("/go/shop", 200, "b.txt"),
            ("/go/else", 404, ""),
            ("/deep/SHOP", 200, "b.txt"),
            ("/deep/else", 200, "a.txt"),
            ("/any/both", 200, ".txt"),
            ("/is/shop", 410, ""),
            ("/is/home", 404, ""),
            ("/up/ab", 302, "/AB"),
            ("/gone/x", 500, ""),
            ("/unknown/x", 500, ""),
            ("/text/x", 302, "/$%7bplaces%7d"),
        ],
    );
    let log = server.error_log();
    assert!(log.contains(".htaccess:8: the file of a RewriteMap cannot be read"), "{log}");
    assert!(log.contains(".htaccess:9: there is no such RewriteMap"), "{log}");
    server.home().write("map.txt", "home b.txt\n");
    check(&server, &[("/go/home", 200, "b.txt"), ("/go/shop", 404, "")]);
}

#[test]
fn maps_that_run_programs_are_refused_by_name() {
    for (source, why) in [
        ("prg:/bin/sh", "maps of the kind 'prg' are not available here"),
        ("dbm:/x", "maps of the kind 'dbm' are not available here"),
        ("txt:x", "is not an absolute path"),
    ] {
        let conf = format!("apache_directory - 'RewriteMap m {source}';");
        let message = refusal(&conf);
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn a_rule_proxies_only_to_servers_that_the_configuration_allows() {
    let origin = TestUpstream::start();
    let address = origin.address();
    let server = site(&format!(
        "apache_htaccess on;
         apache_proxy http://{address}/app/ @app;
         location / {{ apache_proxy http://{address}/open @app; }}
         location @app {{ proxy_pass http://{address}; }}"
    ));
    put(
        &server,
        ".htaccess",
        &format!(
            "RewriteEngine on\n\
             RewriteRule ^a/(.*)$ http://{address}/app/$1?from=rule [P,QSA]\n\
             RewriteRule ^b/(.*)$ http://{address}/open/$1 [P]\n\
             RewriteRule ^c/(.*)$ http://{address}/other/$1 [P]\n\
             RewriteRule ^d/(.*)$ http://127.0.0.1:1/$1 [P]\n\
             RewriteRule ^e/(.*)$ http://{address}/app/../$1 [P]\n\
             RewriteRule ^f/(.*)$ /app/$1 [P]\n"
        ),
    );
    put(&server, "g/.htaccess", "Require all denied\nRewriteEngine on\nRewriteOptions Inherit\n");
    origin.say("/app/x%20y?from=rule&own=1", bolide_testkit::origin::answer("", "of the app"));
    check(
        &server,
        &[
            ("/a/x%20y?own=1", 200, "of the app"),
            ("/b/x", 200, "run"),
            ("/c/x", 500, ""),
            ("/d/x", 500, ""),
            ("/e/x", 500, ""),
            ("/f/x", 500, ""),
            ("/g/a/x", 403, ""),
        ],
    );
    let log = server.error_log();
    assert!(
        log.contains("no \"apache_proxy\" allows RewriteRule [P] to \"http://127.0.0.1:1/x\""),
        "{log}"
    );
    let asked: Vec<_> = origin.all().iter().map(|one| one.target().to_owned()).collect();
    assert_eq!(asked, ["/app/x%20y?from=rule&own=1", "/open/x"]);
}

#[test]
fn apache_proxy_takes_urls_and_named_locations() {
    for (words, why) in [
        ("http:/x @a", "a URL begins with its scheme"),
        ("http:///x @a", "a URL has a host"),
        ("http://a/?x @a", "neither"),
        ("http://a b", "needs a named location"),
    ] {
        let message = refusal(&format!("apache_proxy {words};"));
        assert!(message.contains(why), "{words}: {message}");
    }
}
