//! `apache_htaccess`: `.htaccess` files are obeyed, live, and what is not understood is refused.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use bolide_testkit::server::LISTEN;
use bolide_testkit::{Proto, Response, TestPhp, TestServer, wait_until};

use crate::{http, report, site};

pub(crate) const ON: &str = "apache_htaccess on; index index.html index.php;";

/// The `fastcgi_param` lines that Bolide ships.
pub(crate) const PARAMS: &str =
    concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/fastcgi.conf;");

/// A site with these files.
pub(crate) fn tree(directives: &str, files: &[(&str, &str)]) -> TestServer {
    let server = site(directives);
    put_all(&server, files);
    server
}

pub(crate) fn put_all(server: &TestServer, files: &[(&str, &str)]) {
    for (path, text) in files {
        put(server.www(path), text);
    }
}

pub(crate) fn put(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // As editors do: no request sees half of it.
    let fresh = path.with_extension("fresh");
    fs::write(&fresh, text).unwrap();
    fs::rename(fresh, path).unwrap();
}

pub(crate) fn check(server: &TestServer, rows: &[(&str, u16)]) {
    let mut failures = Vec::new();
    for (path, status) in rows {
        let answer = server.get(path);
        if answer.status != *status {
            failures.push(format!("{path}: {} instead of {status}", answer.status));
        }
    }
    report(rows.len(), &failures);
}

#[test]
fn rules_of_access_hold_for_a_directory_and_all_below_it() {
    let server = tree(
        ON,
        &[
            ("private/.htaccess", "Require all denied\n"),
            ("private/deep/a.txt", "secret"),
            ("old/.htaccess", "Order deny,allow\nDeny from all\n"),
            ("old/a.txt", "secret"),
            ("old/open/.htaccess", "Require all granted\n"),
            ("old/open/a.txt", "secret"),
            (
                "some/.htaccess",
                "<FilesMatch \"\\.(sql|inc)$\">\nRequire all denied\n</FilesMatch>\n",
            ),
            ("some/dump.sql", "secret"),
            ("some/page.html", "page"),
            ("limit/.htaccess", "<LimitExcept GET>\nRequire all denied\n</LimitExcept>\n"),
            ("limit/a.txt", "a"),
        ],
    );
    check(
        &server,
        &[
            ("/private/deep/a.txt", 403),
            ("/private/none", 403),
            ("/private/", 403),
            ("/old/a.txt", 403),
            ("/old/open/a.txt", 403),
            ("/some/dump.sql", 403),
            ("/some/page.html", 200),
            ("/private/.htaccess", 403),
            ("/some/.htpasswd", 403),
            ("/limit/a.txt", 200),
        ],
    );
    let refused =
        server.connect().ask("POST /limit/a.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0");
    assert_eq!(refused.status, 403);
}

#[test]
fn the_innermost_block_decides_whether_files_are_read() {
    let deny = "Require all denied\n";
    let server = tree(
        "apache_htaccess on; location /off { apache_htaccess off; } location /on { }",
        &[("off/.htaccess", deny), ("off/x.txt", "x"), ("on/.htaccess", deny), ("on/x.txt", "x")],
    );
    check(&server, &[("/off/x.txt", 200), ("/on/x.txt", 403)]);
}

#[test]
fn blocks_add_directives_for_directories() {
    let server = tree(
        "apache_directory @DIR@/www \"AllowOverride None\" \"Require all denied\";
         location /on/ { apache_directory @DIR@/www/on \"Require all granted\"; }
         location /files/ {
             apache_directory @DIR@/www/files \"AllowOverride AuthConfig\" \"Require all granted\";
             apache_directory ~ \"/shut/\" \"Require all denied\";
             apache_directory - \"<Files *.bak>\" \"Require all denied\" \"</Files>\";
         }",
        &[
            ("off/x.txt", "x"),
            ("on/x.txt", "x"),
            ("on/.htaccess", "Require all denied\n"),
            ("files/a.txt", "a"),
            ("files/a.bak", "a"),
            ("files/shut/x.txt", "x"),
            ("files/own/.htaccess", "Require all denied\n"),
            ("files/own/x.txt", "x"),
            ("files/beyond/.htaccess", "RewriteEngine on\n"),
            ("files/beyond/x.txt", "x"),
        ],
    );
    check(&server, &[("/off/x.txt", 403), ("/on/x.txt", 200), ("/files/a.txt", 200)]);
    check(&server, &[("/files/a.bak", 403), ("/files/shut/x.txt", 403)]);
    check(&server, &[("/files/own/x.txt", 403), ("/files/beyond/x.txt", 500)]);
}

#[test]
fn dav_cannot_write_htaccess_files() {
    let server = tree(&format!("{ON} dav_methods PUT COPY;"), &[("a/x.txt", "x")]);
    let ask = |head: &str| server.connect().ask(&format!("{head}\r\nHost: localhost")).status;
    let copy = "COPY /a/x.txt HTTP/1.1\r\nDestination: /a/.htaccess";
    assert_eq!(ask(copy), 403);
    assert_eq!(ask("PUT /a/.htaccess HTTP/1.1\r\nContent-Length: 0"), 403);
    assert!(!server.www("a/.htaccess").exists());
}

#[test]
fn files_of_the_served_path_are_read() {
    let deny = "Require all denied\n";
    let server = tree(
        "location /files { alias @DIR@/www/files; apache_htaccess on; }
         location = /one { alias @DIR@/www/shut/f.txt; apache_htaccess on; }
         location = /two { alias @DIR@/www/open/f.txt; apache_htaccess on; }",
        &[
            ("files/a.txt", "a"),
            ("files-secret/.htaccess", deny),
            ("files-secret/x.txt", "secret"),
            ("shut/.htaccess", deny),
            ("shut/f.txt", "secret"),
            ("open/f.txt", "f"),
        ],
    );
    check(
        &server,
        &[("/files/a.txt", 200), ("/files-secret/x.txt", 500), ("/one", 403), ("/two", 200)],
    );
}

#[test]
fn the_source_of_a_script_that_a_type_runs_is_not_sent() {
    let server = tree(
        ON,
        &[
            ("a/.htaccess", "AddType application/x-httpd-php .phtml\nAddType text/x-own .own\n"),
            ("a/x.phtml", "<?php secret"),
            ("a/x.own", "own"),
            ("b/.htaccess", "ForceType application/x-httpd-php\n"),
            ("b/x", "<?php secret"),
        ],
    );
    check(&server, &[("/a/x.phtml", 503), ("/a/x.own", 200), ("/b/x", 503)]);
}

#[test]
fn settings_of_php_that_load_code_are_refused() {
    let server = tree(
        ON,
        &[
            ("a/.htaccess", "php_value extension /srv/x.so\n"),
            ("a/x.txt", "x"),
            ("b/.htaccess", "php_value Open_BaseDir /\n"),
            ("b/x.txt", "x"),
            ("c/.htaccess", "php_value memory_limit 64M\n"),
            ("c/x.txt", "x"),
        ],
    );
    check(&server, &[("/a/x.txt", 500), ("/b/x.txt", 500), ("/c/x.txt", 200)]);
    assert!(server.error_log().contains("'extension' can be set by the server only"));
}

#[test]
fn without_the_directive_files_of_apache_mean_nothing() {
    let files = [("a/.htaccess", "Require all denied\n"), ("a/x.txt", "x")];
    let server = tree("", &files);
    assert_eq!(server.get("/a/x.txt").status, 200);
}

#[test]
fn a_tree_whose_files_are_not_read_is_logged_once() {
    let mut server = tree("location /more/ { }", &[(".htaccess", "Require all denied\n")]);
    server.restart("TERM");
    let log = server.error_log();
    let message = "www/.htaccess\" is not read: \"apache_htaccess on\" has .htaccess files obeyed";
    assert_eq!(log.matches(message).count(), 1, "{log}");
    let conf = server.home().dir().join("nginx.conf");
    let result = server.home().run(&["check", conf.to_str().unwrap()]);
    assert_eq!(result.text().matches(message).count(), 1, "{}", result.text());
    let silent = tree(ON, &[(".htaccess", "# nothing\n")]);
    assert!(!silent.error_log().contains("is not read"));
}

#[test]
fn a_file_that_is_not_understood_or_cannot_be_read_refuses() {
    let server = tree(
        ON,
        &[
            ("bad/.htaccess", "Options -Indexes\n\nRequiere all granted\n"),
            ("bad/x.txt", "x"),
            ("open/.htaccess", "<Files secret.txt>\nRequire all denied\n"),
            ("open/x.txt", "x"),
            ("dir/x.txt", "x"),
        ],
    );
    fs::create_dir(server.www("dir/.htaccess")).unwrap();
    check(
        &server,
        &[("/bad/x.txt", 500), ("/bad/none", 500), ("/open/x.txt", 500), ("/dir/x.txt", 403)],
    );
    let log = server.error_log();
    assert!(log.contains("/bad/.htaccess:3: Invalid command 'Requiere'"), "{log}");
    assert!(log.contains("/open/.htaccess:1: <Files> was not closed."), "{log}");
}

#[test]
fn a_change_counts_for_the_next_request() {
    let server = tree(ON, &[("d/x.txt", "x")]);
    let file = server.www("d/.htaccess");
    let get = |path: &str| server.get(path).status;
    for round in 0..50 {
        assert_eq!(get("/d/x.txt"), 200, "{round}");
        put(file.clone(), "Require all denied\n");
        assert_eq!(get("/d/x.txt"), 403, "{round}");
        put(file.clone(), "# nothing\n");
        assert_eq!(get("/d/x.txt"), 200, "{round}");
        put(file.clone(), "Nonsense\n");
        assert_eq!(get("/d/x.txt"), 500, "{round}");
        fs::remove_file(&file).unwrap();
    }
    // In a directory that comes later, too.
    assert_eq!(get("/new/x.txt"), 404);
    put_all(&server, &[("new/.htaccess", "Require all denied\n"), ("new/x.txt", "x")]);
    assert_eq!(get("/new/x.txt"), 403);
}

#[test]
fn every_protocol_is_under_the_same_rules() {
    let server = tree(ON, &[("a/.htaccess", "Require all denied\n"), ("a/x.txt", "x")]);
    for proto in Proto::TLS {
        assert_eq!(server.fetch(proto, "/a/x.txt").status, 403, "{proto:?}");
    }
}

#[test]
fn header_fields_may_use_variables_of_the_connection() {
    let fields = "Header set X-A \"%{SSL_PROTOCOL}s %{HTTPS}s %{REQUEST_URI}s %{NOPE}s\"\n";
    let server = tree(ON, &[("a/.htaccess", fields), ("a/x.txt", "x")]);
    for (proto, wanted) in
        [(Proto::H2c, "(null) off /a/x.txt (null)"), (Proto::H2, "TLSv1.3 on /a/x.txt (null)")]
    {
        let answer = server.fetch(proto, "/a/x.txt");
        assert_eq!(answer.header("x-a"), Some(wanted), "{proto:?}");
    }
    put_all(&server, &[("a/.htaccess", "Header set X-A %{SSL_SESSION_ID}s\n")]);
    assert_eq!(server.get("/a/x.txt").status, 500);
    assert!(server.error_log().contains("a/.htaccess:1: %{SSL_SESSION_ID} is not available"));
}

/// As by Apache, `DPI` counts where a rule leads to the file that was asked for.
#[test]
fn a_rule_may_discard_path_info() {
    let server = tree(
        ON,
        &[
            ("a/.htaccess", "RewriteEngine On\nRewriteRule ^ x.txt [DPI]\n"),
            ("a/x.txt", "x"),
            ("b/.htaccess", "RewriteEngine On\nRewriteRule ^ x.txt\n"),
            ("b/x.txt", "x"),
            (
                "c/.htaccess",
                "AcceptPathInfo Off\nRewriteEngine On\nRewriteRule ^ x.txt?n=1 [DPI]\n",
            ),
            ("c/x.txt", "x"),
        ],
    );
    let rows = [
        ("/a/x.txt/more", 200),
        ("/a/x.txt/more?q", 200),
        ("/b/x.txt/more", 404),
        ("/c/x.txt/more", 200),
        ("/c/x.txt", 200),
    ];
    for (path, status) in rows {
        assert_eq!(server.get(path).status, status, "{path}");
    }
}

/// What an edit that takes too long would have taken out does not leave.
#[test]
fn an_edit_that_cannot_be_made_fails_the_request() {
    let slow = "Header set X-A aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac\n\
                Header edit X-A ^(a|aa)+$ b\nHeader set X-Secret none\n";
    let root = ("a/.htaccess", slow);
    let server = tree(ON, &[root, ("a/x.txt", "x"), ("b/.htaccess", slow)]);
    let document = format!("{slow}ErrorDocument 500 /a/x.txt\n");
    put_all(&server, &[("b/.htaccess", &document), ("b/x.txt", "x")]);
    for path in ["/a/x.txt", "/b/x.txt"] {
        let before = server.error_log().matches("a match took too many steps").count();
        let answer = server.get(path);
        assert_eq!(answer.status, 500, "{answer:?}");
        let result = server.error_log().matches("a match took too many steps").count();
        assert_eq!(result, before + 1, "{path}");
    }
    // An error's own fields are edited as far as they can be.
    let always = slow.replace("Header ", "Header always ");
    put_all(&server, &[("a/.htaccess", &always)]);
    assert_eq!(server.get("/a/gone.txt").status, 500);
}

#[test]
fn authentication_comes_before_any_rule() {
    let server = site(ON);
    let root = server.www("").display().to_string();
    put_all(
        &server,
        &[
            (".htpasswd", "bob:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=\n"),
            (
                "a/.htaccess",
                &format!(
                    "AuthType Basic\nAuthName \"staff\"\nAuthUserFile {root}/.htpasswd\n\
                     Require valid-user\nRewriteEngine On\nRewriteRule ^gone$ - [G]\n"
                ),
            ),
            ("a/x.txt", "x"),
            ("b/.htaccess", "AuthType Basic\nAuthName x\nRequire valid-user\n"),
            ("b/x.txt", "x"),
        ],
    );
    let ask = |path: &str, fields: &str| server.connect().get(path, fields);
    let right = "Authorization: Basic Ym9iOnB3\r\n";
    let first = ask("/a/x.txt", "");
    assert_eq!(first.status, 401);
    assert_eq!(first.header("www-authenticate"), Some("Basic realm=\"staff\""));
    assert_eq!(ask("/a/x.txt", right).status, 200);
    assert_eq!(ask("/a/x.txt", "Authorization: Basic Ym9iOnh4\r\n").status, 401);
    assert_eq!(ask("/a/gone", "").status, 401);
    assert_eq!(ask("/a/gone", right).status, 410);
    assert_eq!(ask("/b/x.txt", right).status, 500);
}

#[test]
fn a_listing_shows_what_the_client_may_ask_for() {
    let server = http(&format!(
        "server {{ {LISTEN} apache_htaccess on; autoindex on; autoindex_format json;
             location /all/own/ {{ deny all; }} }}"
    ));
    let root = server.www("").display().to_string();
    let auth = format!(
        "AuthType Basic\nAuthName \"staff\"\nAuthUserFile {root}/.htpasswd\nRequire valid-user\n"
    );
    put_all(
        &server,
        &[
            (".htpasswd", "bob:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=\n"),
            (
                "all/.htaccess",
                "<Files secret.txt>\nRequire all denied\n</Files>\n\
                 <FilesMatch \"^hid\">\nRequire all denied\n</FilesMatch>\n",
            ),
            ("all/a.txt", "a"),
            ("all/secret.txt", "s"),
            ("all/hidden.txt", "h"),
            ("all/closed/.htaccess", "Require all denied\n"),
            ("all/far/.htaccess", "Require ip 192.0.2.1\n"),
            ("all/near/.htaccess", "Require ip 127.0.0.1\n"),
            ("all/pw/.htaccess", &auth),
            ("all/own/x.txt", "the configuration decides there"),
            ("all/plain/x.txt", "x"),
            ("all/broken/.htaccess", "No such directive\n"),
            ("staff/.htaccess", &auth),
            ("staff/a.txt", "a"),
            ("staff/more/.htaccess", "Require valid-user\n"),
            ("staff/eve/.htaccess", "Require user eve\n"),
            ("bald/b.txt", "b"),
            ("bald/closed/.htaccess", "Order allow,deny\nDeny from all\n"),
        ],
    );
    let right = "Authorization: Basic Ym9iOnB3\r\n";
    let names = |path: &str, fields: &str| {
        let text = server.connect().get(path, fields).text();
        let lines = text.lines().filter_map(|line| line.split("\"name\":\"").nth(1));
        lines.map(|rest| rest.split('"').next().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    for _ in 0..2 {
        assert_eq!(names("/all/", ""), "near own plain a.txt");
        assert_eq!(names("/staff/", right), "more a.txt");
        assert_eq!(names("/bald/", ""), "b.txt");
    }
    // A change takes effect at once.
    put(server.www("all/closed/.htaccess"), "Require all granted\n");
    put(server.www("all/near/.htaccess"), "Require all denied\n");
    assert_eq!(names("/all/", ""), "closed own plain a.txt");
    for at in 0..300 {
        fs::create_dir_all(server.www(&format!("many/{at:03}"))).unwrap();
        let rule = if at % 3 == 0 { "Require all denied\n" } else { "Require all granted\n" };
        put(server.www(&format!("many/{at:03}/.htaccess")), rule);
    }
    assert_eq!(names("/many/", "").split(' ').count(), 200);
}

#[test]
fn an_expression_about_the_user_asks_for_a_password() {
    let server = http(&format!(
        "set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP; server {{ {LISTEN} {ON} }}"
    ));
    let root = server.www("").display().to_string();
    let auth = format!("AuthType Basic\nAuthName \"staff\"\nAuthUserFile {root}/.htpasswd\n");
    let one = "Require expr \"%{REMOTE_USER} == 'bob'\"";
    let rules = [
        ("is", one.to_owned(), [401, 200, 401]),
        ("set", "Require expr -n %{REMOTE_USER}".to_owned(), [401, 200, 200]),
        ("all", format!("<RequireAll>\nRequire valid-user\n{one}\n</RequireAll>"), [401, 200, 401]),
        ("any", format!("<RequireAny>\nRequire all denied\n{one}\n</RequireAny>"), [401, 200, 401]),
        ("no", "Require expr \"%{REMOTE_USER} != 'bob'\"".to_owned(), [200, 200, 200]),
        ("other", "Require expr \"%{REQUEST_METHOD} == 'PUT'\"".to_owned(), [403, 403, 403]),
    ];
    let hash = "{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=";
    put(server.www(".htpasswd"), &format!("bob:{hash}\neve:{hash}\n"));
    let users = ["", "Authorization: Basic Ym9iOnB3\r\n", "Authorization: Basic ZXZlOnB3\r\n"];
    for (name, rule, statuses) in rules {
        put(server.www(&format!("{name}/.htaccess")), &format!("{auth}{rule}\n"));
        put(server.www(&format!("{name}/x.txt")), "x");
        let path = format!("/{name}/x.txt");
        let found = users.map(|fields| server.connect().get(&path, fields).status);
        assert_eq!(found, statuses, "{rule}");
    }
    // The address of the connection is not the one that a proxy reports.
    for (name, address) in [("near", "127.0.0.1"), ("far", "10.0.0.9")] {
        let rule = format!("Require expr \"%{{CONN_REMOTE_ADDR}} == '{address}'\"\n");
        put(server.www(&format!("{name}/.htaccess")), &rule);
        put(server.www(&format!("{name}/x.txt")), "x");
    }
    let ask = |path: &str| server.connect().get(path, "X-Real-IP: 10.0.0.9\r\n").status;
    assert_eq!((ask("/near/x.txt"), ask("/far/x.txt")), (200, 403));
}

#[test]
fn internal_rewrites_are_repeated_up_to_a_limit() {
    let server = tree(
        ON,
        &[
            (
                ".htaccess",
                "RewriteEngine On\nRewriteRule ^short$ real.txt [L]\n\
                 RewriteRule ^away/(.*)$ /there/$1 [R=301,L]\nRewriteRule ^loop(.*)$ loop$1x\n\
                 RewriteRule ^(a|aa)+$ - [F]\n",
            ),
            ("real.txt", "real"),
        ],
    );
    assert_eq!(server.get("/short").text(), "real");
    let moved = server.get("/away/a%20b?c=d");
    assert_eq!(moved.status, 301);
    assert!(moved.header("location").unwrap().ends_with("/there/a%20b?c=d"));
    assert_eq!(server.get("/loop").status, 500);
    let long = format!("/{}b", "a".repeat(60));
    assert_eq!(server.get(&long).status, 500, "an expression that gives up refuses");
}

#[test]
fn fields_errors_and_indexes_are_those_of_the_directory() {
    let server = tree(
        "apache_htaccess on; autoindex on; index index.html;",
        &[
            (
                ".htaccess",
                "Options -Indexes\nDirectoryIndex start.txt\nErrorDocument 404 /lost.txt\n\
                 Header set X-A a\nHeader always set X-B b\nExpiresActive On\nExpiresDefault A60\n\
                 FileETag None\nAddType text/x-own .own\n",
            ),
            ("start.txt", "start"),
            ("lost.txt", "lost"),
            ("a.own", "own"),
            ("list/.htaccess", "Options +Indexes\nIndexIgnore *.bak\n"),
            ("list/shown.txt", "x"),
            ("list/hidden.bak", "x"),
            ("closed/x.txt", "x"),
        ],
    );
    let start = server.get("/");
    assert_eq!((start.status, start.text()), (200, "start".to_owned()));
    assert_eq!(start.header("x-a"), Some("a"));
    assert_eq!(start.header("cache-control"), Some("max-age=60"));
    assert_eq!(start.header("etag"), None);
    let lost = server.get("/none");
    assert_eq!((lost.status, lost.text()), (404, "lost".to_owned()));
    assert_eq!(server.get("/a.own").header("content-type"), Some("text/x-own"));
    let list = server.get("/list/").text();
    assert!(list.contains("shown.txt") && !list.contains("hidden.bak"), "{list}");
    let closed = server.get("/closed/");
    assert_eq!(closed.status, 403);
    assert_eq!((closed.header("x-b"), closed.header("x-a")), (Some("b"), None));
}

#[test]
fn files_of_try_files_are_checked_as_well() {
    let server = tree(
        "apache_htaccess on; location / { try_files $uri.html $uri/start.txt $uri =404; }",
        &[
            (
                ".htaccess",
                "<Files no.html>\nRequire all denied\n</Files>\nRewriteEngine on\n\
                 RewriteRule ^gone\\.html$ - [R=410]\nRewriteRule ^never\\.html$ - [F]\n",
            ),
            ("no.html", "secret"),
            ("gone.html", "secret"),
            ("never.html", "secret"),
            ("yes.html", "yes"),
            ("closed/.htaccess", "Require all denied\n"),
            ("closed/start.txt", "secret"),
        ],
    );
    check(&server, &[("/no", 403), ("/yes", 200), ("/closed", 403), ("/none", 404)]);
    check(&server, &[("/gone.html", 410), ("/gone", 410), ("/never.html", 403), ("/never", 403)]);
}

/// A directory that may be passed but not be read is there all the same, with what it says.
#[test]
fn a_directory_that_cannot_be_listed_still_checks_access() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = tree(
        "apache_htaccess on; autoindex on;",
        &[
            (".htaccess", "Options +Indexes\n"),
            ("big/a.txt", "a"),
            ("big/admin/.htaccess", "Require all denied\n"),
            ("big/admin/a.txt", "secret"),
        ],
    );
    let closed = fs::Permissions::from_mode(0o711);
    fs::set_permissions(server.www("big"), closed).unwrap();
    let status = |path: &str| server.get(path).status;
    for _ in 0..3 {
        let mut client = server.connect();
        let ask = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        // Both are answered in one turn.
        client.send(ask("/big/") + &ask("/big/admin/a.txt"));
        let answers = [client.answer().status, client.answer().status];
        assert_eq!(answers[1], 403);
        assert!(matches!(answers[0], 200 | 403), "as root reads everything: {}", answers[0]);
    }
    assert_eq!(status("/big/admin/a.txt"), 403);
}

/// The type of an index may depend on the query; then it is not stored for other requests.
#[test]
fn an_index_type_that_depends_on_the_query_is_not_stored() {
    let server = tree(
        "apache_htaccess on; index index.html;",
        &[
            (
                ".htaccess",
                "RewriteEngine on\nRewriteCond %{QUERY_STRING} raw\n\
                 RewriteRule ^$ - [T=text/plain]\n",
            ),
            ("index.html", "page"),
        ],
    );
    let kind = |path: &str| server.get(path).header("Content-Type").map(str::to_owned);
    for _ in 0..3 {
        assert_eq!(kind("/?raw").as_deref(), Some("text/plain"));
        assert_eq!(kind("/").as_deref(), Some("text/html"));
    }
}

#[test]
fn a_fallback_resource_answers_after_a_directory_and_not_after_a_file() {
    let server = tree(
        "apache_htaccess on; index index.html;",
        &[
            (".htaccess", "FallbackResource /front.txt\n"),
            ("front.txt", "front"),
            ("page.txt", "page"),
            ("empty/x.txt", "x"),
            ("off/.htaccess", "FallbackResource disabled\n"),
        ],
    );
    for path in ["/none", "/none/", "/none/deep/", "/empty/", "/empty/none/", "/none/?a=b"] {
        let answer = server.get(path);
        assert_eq!((answer.status, &*answer.text()), (200, "front"), "{path}");
    }
    check(
        &server,
        &[("/page.txt/", 404), ("/page.txt/x", 404), ("/off/none/", 404), ("/off/", 403)],
    );
}

#[test]
fn responses_are_compressed_as_files_configure() {
    let long = "a line that is worth to be compressed\n".repeat(50);
    let server = tree(
        "apache_htaccess on; gzip off; types { text/plain txt; text/css css; image/png png; }",
        &[
            (
                ".htaccess",
                "<IfModule mod_deflate.c>\nAddOutputFilterByType DEFLATE text/plain\n</IfModule>\n\
                 BrowserMatch Old no-gzip\n",
            ),
            ("a.txt", &long),
            ("a.css", &long),
            ("all/.htaccess", "SetOutputFilter DEFLATE\n"),
            ("all/a.png", &long),
            ("br/.htaccess", "SetOutputFilter BROTLI_COMPRESS;DEFLATE\n"),
            ("br/a.css", &long),
            ("bad/.htaccess", "SetOutputFilter INCLUDES\n"),
            ("bad/a.txt", &long),
        ],
    );
    let coding = |path: &str, fields: &str| {
        let answer = server.connect().get(path, fields);
        assert_eq!(answer.status, 200, "{path}");
        answer.header("content-encoding").unwrap_or_default().to_owned()
    };
    let all = "Accept-Encoding: gzip, br\r\n";
    for (path, fields, wanted) in [
        ("/a.txt", all, "gzip"),
        ("/a.txt", "", ""),
        ("/a.txt", "Accept-Encoding: gzip\r\nUser-Agent: Old\r\n", ""),
        ("/a.css", all, ""),
        ("/all/a.png", all, "gzip"),
        ("/br/a.css", all, "br"),
        ("/br/a.css", "Accept-Encoding: gzip\r\n", "gzip"),
    ] {
        assert_eq!(coding(path, fields), wanted, "{path} {fields}");
    }
    let plain = server.connect().get("/a.txt", "");
    assert_eq!(plain.header("vary").map(str::to_ascii_lowercase), Some("accept-encoding".into()));
    assert_eq!(server.get("/bad/a.txt").status, 500);
    // Live, and for what was compressed a moment ago.
    put(server.www(".htaccess"), "SetEnv no-gzip 1\nSetOutputFilter DEFLATE\n");
    assert_eq!(coding("/a.txt", all), "");
    fs::remove_file(server.www(".htaccess")).unwrap();
    assert_eq!(coding("/a.txt", all), "");
}

/// The status for a request with a body.
fn sent(server: &TestServer, head: &str, body: &str) -> u16 {
    let mut client = server.connect();
    client.send(format!("{head}\r\n\r\n{body}"));
    client.answer().status
}

#[test]
fn files_limit_request_bodies() {
    let server = tree(
        "apache_htaccess on; dav_methods PUT;",
        &[(".htaccess", "LimitRequestBody 5\n"), ("any/.htaccess", "LimitRequestBody 0\n")],
    );
    let put_sized = |path: &str, body: &str| {
        let head =
            format!("PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}", body.len());
        sent(&server, &head, body)
    };
    let put_chunked = |path: &str, body: &str| {
        let head = format!("PUT {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked");
        let body = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        sent(&server, &head, &body)
    };
    for (path, body, wanted) in
        [("/a", "12345", 201), ("/b", "123456", 413), ("/any/c", "123456", 201)]
    {
        assert_eq!(put_sized(path, body), wanted, "{path}");
        assert_eq!(put_chunked(&format!("{path}2"), body), wanted, "{path}");
    }
    assert!(server.www("a").exists() && !server.www("b").exists() && !server.www("b2").exists());
}

#[test]
fn links_are_refused_where_options_do_not_permit_them() {
    let server = tree(ON, &[("a/.htaccess", "Options -FollowSymLinks\n"), ("a/x.txt", "x")]);
    put_all(&server, &[("b/.htaccess", "Options FollowSymLinks\n"), ("real.txt", "real")]);
    for directory in ["a", "b"] {
        symlink(server.www("real.txt"), server.www(&format!("{directory}/link.txt"))).unwrap();
    }
    check(&server, &[("/a/x.txt", 200), ("/a/link.txt", 403), ("/b/link.txt", 200)]);
}

#[test]
fn files_configure_slashes_languages_and_path_info() {
    let server = tree(
        ON,
        &[
            ("off/.htaccess", "DirectorySlash off\nOptions -Indexes\n"),
            ("off/x.txt", "x"),
            ("on/x.txt", "x"),
            ("long/.htaccess", "AcceptPathInfo on\n"),
            ("long/x.txt", "long"),
            ("words/.htaccess", "AddLanguage en .en\nAddLanguage fr .fr\nDefaultLanguage de\n"),
            ("words/x.txt", "x"),
            ("words/x.en.fr", "x"),
        ],
    );
    check(&server, &[("/off", 403), ("/on", 301), ("/on/x.txt/more", 404)]);
    assert_eq!(server.get("/long/x.txt/more").text(), "long");
    let language =
        |path: &str| server.get(path).header("content-language").unwrap_or_default().to_owned();
    assert_eq!(language("/words/x.txt"), "de");
    assert_eq!(language("/words/x.en.fr"), "en,fr");
    assert_eq!(language("/words/none"), "");
}

#[test]
fn the_real_apache_answers_the_same() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/apache/compare.py");
    let result = Command::new("python3").args([script, crate::BOLIDE]).output().unwrap();
    let text = String::from_utf8_lossy(&result.stdout);
    assert!(result.status.success(), "{text}{}", String::from_utf8_lossy(&result.stderr));
}

#[test]
fn the_real_apache_obeys_random_files_the_same() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/apache/explore.py");
    let search = [script, crate::BOLIDE, "--seeds", "150"];
    let result = Command::new("python3").args(search).output().unwrap();
    let text = String::from_utf8_lossy(&result.stdout);
    assert!(result.status.success(), "{text}{}", String::from_utf8_lossy(&result.stderr));
}

/// A site whose scripts run in `php`.
pub(crate) fn scripts(php: &TestPhp, files: &[(&str, &str)]) -> TestServer {
    let pass = php.address();
    let server = http(&format!(
        "server {{ {LISTEN} apache_htaccess on; index index.php;
             location ~ \\.php$ {{ {PARAMS} fastcgi_pass {pass}; }} }}"
    ));
    put_all(&server, files);
    server
}

pub(crate) fn json(answer: &Response) -> String {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.text()
}

#[test]
fn a_front_controller_in_php_gets_the_original_request() {
    let wordpress = "RewriteEngine On\n\
        RewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]\nRewriteBase /\n\
        RewriteRule ^index\\.php$ - [L]\nRewriteCond %{REQUEST_FILENAME} !-f\n\
        RewriteCond %{REQUEST_FILENAME} !-d\nRewriteRule . /index.php [L]\n\
        SetEnv SITE_MODE live\nSetEnvIf User-Agent Bot IS_BOT=yes\n\
        php_value memory_limit 77M\n";
    let shown = "<?php echo json_encode([$_SERVER['REQUEST_URI'], $_SERVER['QUERY_STRING'],
        $_SERVER['SITE_MODE'] ?? '', $_SERVER['IS_BOT'] ?? '', ini_get('memory_limit'),
        $_SERVER['HTTP_AUTHORIZATION'] ?? '', $_SERVER['REDIRECT_URL'] ?? '']);";
    let php = TestPhp::start(1);
    let server = scripts(
        &php,
        &[
            (".htaccess", wordpress),
            ("index.php", shown),
            ("style.css", "css"),
            ("up/.htaccess", "php_flag engine off\n"),
            ("up/evil.php", "<?php echo 'ran';"),
            ("handler/.htaccess", "SetHandler none\nSetHandler default-handler\n"),
            ("handler/evil.php", "<?php echo 'ran';"),
            ("text/.htaccess", "AddHandler application/x-httpd-php .html\n"),
            ("text/page.html", "<?php echo 'source';"),
            ("deny/.htaccess", "Require all denied\n"),
            ("deny/evil.php", "<?php echo 'ran';"),
        ],
    );
    let ask = |path: &str, fields: &str| server.connect().get(path, fields);
    let result = json(&ask("/2026/hello/?a=b", "User-Agent: Bot\r\nAuthorization: Basic x\r\n"));
    let wanted = r#"["\/2026\/hello\/?a=b","a=b","live","yes","77M","Basic x","\/2026\/hello\/"]"#;
    assert_eq!(result, wanted);
    assert_eq!(json(&ask("/", "")), r#"["\/","","live","","77M","",""]"#);
    assert_eq!(ask("/style.css", "").text(), "css");
    check(
        &server,
        &[
            ("/up/evil.php", 403),
            ("/handler/evil.php", 503),
            ("/text/page.html", 503),
            ("/deny/evil.php", 403),
        ],
    );
}

#[test]
fn a_script_of_fastcgi_index_is_under_the_rules_of_its_name() {
    let php = TestPhp::start(1);
    let pass = php.address();
    let server = http(&format!(
        "server {{ {LISTEN} apache_htaccess on;
             location / {{ {PARAMS} fastcgi_pass {pass}; fastcgi_index index.php; }} }}"
    ));
    let closed = "<Files index.php>\nRequire all denied\n</Files>\n";
    put_all(
        &server,
        &[
            ("shut/.htaccess", closed),
            ("shut/index.php", "<?php echo 'ran';"),
            ("open/index.php", "<?php echo 'ran';"),
        ],
    );
    check(&server, &[("/shut/", 403), ("/shut/index.php", 403), ("/open/", 200)]);
}

#[test]
fn fields_of_the_client_are_edited_once() {
    let php = TestPhp::start(1);
    let shown = "<?php echo $_SERVER['HTTP_X_ROLE'] ?? '-', '|', $_SERVER['HTTP_X_OLD'] ?? '-';";
    let server = scripts(
        &php,
        &[
            (".htaccess", "RequestHeader append X-Role a\nRequestHeader unset X-Old\n"),
            ("index.php", shown),
            ("sub/.htaccess", "RequestHeader add X-Role b\n"),
            ("sub/index.php", shown),
            ("out/.htaccess", "RequestHeader set X-Role c\nDirectoryIndex /sub/index.php\n"),
        ],
    );
    let ask = |path: &str, fields: &str| server.connect().get(path, fields).text();
    assert_eq!(ask("/", "X-Role: z\r\nX-Old: 1\r\n"), "z, a|-");
    assert_eq!(ask("/index.php", "X-Role: z\r\nX-Old: 1\r\n"), "z, a|-");
    assert_eq!(ask("/", ""), "a|-");
    // That of the last round holds.
    assert_eq!(ask("/out/", "X-Role: z\r\n"), ask("/sub/index.php", "X-Role: z\r\n"));
}

#[test]
fn a_change_under_load_is_seen_whole() {
    let server = tree(ON, &[("d/x.txt", "x")]);
    let file = server.www("d/.htaccess");
    let rules = "# a long file\n".repeat(2000) + "Require all denied\n";
    let mut client = server.connect();
    for _ in 0..20 {
        put(file.clone(), &rules);
        let mut denied = 0;
        wait_until("the change counts", || {
            let status = client.get("/d/x.txt", "").status;
            assert!(matches!(status, 200 | 403), "{status}");
            denied += u32::from(status == 403);
            denied > 3
        });
        fs::remove_file(&file).unwrap();
        wait_until("the file is gone", || client.get("/d/x.txt", "").status == 200);
    }
}

#[test]
fn responses_that_depend_on_conditions_are_not_cached_for_others() {
    let php = TestPhp::start(1);
    let pass = php.address();
    let server = http(&format!(
        "fastcgi_cache_path @DIR@/zone keys_zone=zone:1m;
         server {{ {LISTEN} apache_htaccess on;
             location ~ \\.php$ {{ {PARAMS} fastcgi_pass {pass}; fastcgi_cache zone;
                 fastcgi_cache_key $host$request_uri; fastcgi_cache_valid 200 1m;
                 fastcgi_ignore_headers Vary Cache-Control Expires; }} }}"
    ));
    let shown = "<?php echo $_SERVER['QUERY_STRING'], '|', $_SERVER['WHO'] ?? '', '|',
        $_SERVER['HTTP_X_ROLE'] ?? '';";
    let rule = "RewriteEngine On\nRewriteCond %{HTTP_USER_AGENT} Staff\n\
        RewriteRule ^x\\.php$ x.php?mode=staff\n";
    put_all(
        &server,
        &[
            ("query/.htaccess", rule),
            ("variable/.htaccess", "SetEnvIf User-Agent Staff WHO=staff\n"),
            (
                "field/.htaccess",
                "SetEnvIf User-Agent Staff S=\nRequestHeader set X-Role staff env=S\n",
            ),
            ("query/x.php", shown),
            ("variable/x.php", shown),
            ("field/x.php", shown),
        ],
    );
    let ask = |path: &str, agent: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: {agent}");
        server.connect().ask(&head).text()
    };
    for (path, staff) in [
        ("/query/x.php", "mode=staff||"),
        ("/variable/x.php", "|staff|"),
        ("/field/x.php", "||staff"),
    ] {
        assert_eq!(ask(path, "Staff"), staff, "{path}");
        assert_eq!(ask(path, "else"), "||", "{path}");
        assert_eq!(ask(path, "Staff"), staff, "{path}");
    }
}
