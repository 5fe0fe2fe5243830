//! Rules that look ahead to what other requests would come to, and their bounds.

use std::fs;

use bolide_testkit::TestServer;

use crate::{report, site};

fn put(server: &TestServer, path: &str, text: &str) {
    let path = server.www(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text.replace("@DIR@", server.www("").to_str().unwrap())).unwrap();
}

const AUTH: &str = "AuthType Basic\nAuthName U\nAuthUserFile @DIR@/.htpasswd\n";
const BOB: &str = "Authorization: Basic Ym9iOnB3\r\n";

/// Asks with bob's password.
fn as_bob(server: &TestServer, path: &str) -> (u16, String) {
    let answer = server.connect().get(path, BOB);
    (answer.status, answer.text())
}

#[test]
fn lookahead_conditions_run_the_access_checks_of_another_request() {
    let server = site(
        "apache_htaccess on;
         location /guarded/ { deny all; }
         location /inner/ { internal; }
         location /told/ { auth_basic realm; auth_basic_user_file nowhere; }
         location /except/ { limit_except GET { deny all; } }
         location /if/ { if ($arg_x = \"\") { return 403; } }",
    );
    let guarded = ["guarded/x.txt", "told/x.txt", "except/x.txt", "if/x.txt"];
    for path in
        ["a.txt", "closed/x.txt", "users/u.txt", "d/x.txt", "inner/x.txt"].iter().chain(&guarded)
    {
        put(&server, path, path);
    }
    put(&server, ".htpasswd", "bob:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=\n");
    put(&server, "closed/.htaccess", "Require all denied\n");
    put(&server, "users/.htaccess", &format!("{AUTH}Require valid-user\n"));
    put(&server, "broken/.htaccess", "Nonsense\n");
    put(
        &server,
        "d/.htaccess",
        "RewriteEngine on\nRewriteRule ^gone - [G]\nRewriteRule ^r /x [R]\n",
    );
    put(
        &server,
        ".htaccess",
        "RewriteEngine on\n\
         RewriteCond %{QUERY_STRING} -U\nRewriteRule ^url$ - [R=410]\n\
         RewriteCond %{DOCUMENT_ROOT}%{QUERY_STRING} -F\nRewriteRule ^file$ - [R=410]\n",
    );
    let rows = [
        ("/a.txt", true, true),
        ("/none", true, false),
        ("/closed/x.txt", false, false),
        ("/closed/none", false, false),
        ("/users/u.txt", false, false),
        ("/broken/x", false, false),
        ("/d/x.txt", true, true),
        ("/d/gone", false, false),
        ("/d/r", true, false),
        ("/d", true, false),
        ("/inner/x.txt", false, false),
        ("/.htpasswd", false, false),
        ("/d/../../etc/passwd", false, false),
        ("/%00", false, false),
    ];
    let mut failures = Vec::new();
    for (path, is_url, is_file) in rows {
        for (name, holds) in [("url", is_url), ("file", is_file)] {
            let status = server.get(&format!("/{name}?{path}")).status;
            if status != if holds { 410 } else { 404 } {
                failures.push(format!("{name} {path}: {status}"));
            }
        }
    }
    // What the configuration says of a place is not known to a look.
    for path in guarded {
        for name in ["url", "file"] {
            let status = server.get(&format!("/{name}?/{path}")).status;
            if status != 500 {
                failures.push(format!("{name} {path}: {status}"));
            }
        }
    }
    report(2 * (rows.len() + guarded.len()), &failures);
    assert!(server.error_log().contains("where the configuration has checks or instructions"));
    assert_eq!(server.get("/url?").status, 404);
    assert_eq!(server.get("/users/u.txt").status, 401, "a look lets no one in");
    assert_eq!(server.get("/a.txt").status, 200);
}

#[test]
fn the_authenticated_user_is_available_to_rules() {
    let server = site("apache_htaccess on;");
    put(&server, ".htpasswd", "bob:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=\n");
    put(
        &server,
        ".htaccess",
        &format!(
            "{AUTH}Require valid-user\nRewriteEngine on\n\
             RewriteCond %{{LA-U:REMOTE_USER}} ^(.+)$\nRewriteRule ^home/(.*)$ of-%1/$1 [L]\n"
        ),
    );
    put(&server, "of-bob/x.txt", "bob's");
    put(&server, "of-/x.txt", "no one's");
    assert_eq!(as_bob(&server, "/home/x.txt"), (200, "bob's".to_owned()));
    assert_eq!(server.get("/home/x.txt").status, 401);
    // Other users than those who came in are not let in there.
    put(&server, "other/.htaccess", &AUTH.replace(".htpasswd", ".htother"));
    put(&server, ".htother", "bob:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=\n");
    put(
        &server,
        "ask/.htaccess",
        "RewriteEngine on\nRewriteCond %{QUERY_STRING} -U\nRewriteRule ^ - [G]\n",
    );
    assert_eq!(as_bob(&server, "/ask/?/other/x").0, 403, "no index, and not gone");
    assert_eq!(as_bob(&server, "/ask/?/of-bob/x.txt").0, 410);
}

#[test]
fn a_user_counts_only_where_the_same_file_authenticated_it() {
    let server = site("apache_htaccess on;");
    // A tenant who writes below "own" is bob there, by any password.
    put(&server, ".htmine", "bob:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=\n");
    put(&server, ".htpasswd", "bob:{SHA}AAAAAAAAAAAAAAAAAAAAAAAAAAA=\n");
    let mine = AUTH.replace(".htpasswd", ".htmine");
    put(
        &server,
        "own/.htaccess",
        &format!("{mine}Require valid-user\nRewriteEngine on\nRewriteRule ^ask$ /two/ask [L]\n"),
    );
    let ask = "RewriteEngine on\nRewriteCond %{QUERY_STRING} -U\nRewriteRule ^ask$ - [R=410]\n";
    put(&server, "two/.htaccess", &format!("{AUTH}{ask}"));
    put(&server, "closed/.htaccess", &format!("{AUTH}Require user bob\n"));
    put(&server, "mine/.htaccess", &format!("{mine}Require user bob\n"));
    for path in ["closed/x.txt", "mine/x.txt"] {
        put(&server, path, path);
    }
    assert_eq!(as_bob(&server, "/own/ask?/mine/x.txt").0, 410);
    assert_eq!(as_bob(&server, "/own/ask?/closed/x.txt").0, 404);
}

#[test]
fn a_look_into_a_location_has_what_its_expression_captures() {
    let server = site("apache_htaccess on;");
    let root = server.www("home").display().to_string();
    let server = site(&format!("apache_htaccess on; location ~ ^/u/(a|b)/ {{ root {root}/$1; }}"));
    let home = |path: &str, text: &str| {
        let path = std::path::Path::new(&root).join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    home("b/u/b/x.txt", "b's");
    home("a/u/a/x.txt", "a's");
    home("b/.htaccess", "Require all denied\n");
    home(
        "a/.htaccess",
        "RewriteEngine on\nRewriteCond %{QUERY_STRING} -U\nRewriteRule ask$ - [R=410]\n",
    );
    assert_eq!(server.get("/u/a/ask?/u/a/x.txt").status, 410);
    assert_eq!(server.get("/u/a/ask?/u/b/x.txt").status, 404);
    assert_eq!(server.get("/u/a/x.txt").text(), "a's", "captures are as they were");
}

#[test]
fn the_work_of_lookaheads_is_bounded() {
    let server = site("apache_htaccess on;");
    put(&server, "a.txt", "a");
    let rules = |looks: usize| {
        let many: String = (0..looks).map(|at| format!("RewriteCond /{at} -U\n")).collect();
        let value = "v".repeat(60_000);
        format!(
            "RewriteEngine on\nRewriteRule ^ - [E=A:{value},NS]\n{many}RewriteRule ^ - [G,NS]\n"
        )
    };
    put(&server, ".htaccess", &rules(5));
    assert_eq!(server.get("/a.txt").status, 410);
    put(&server, ".htaccess", &rules(30));
    assert_eq!(server.get("/a.txt").status, 500);
    assert!(server.error_log().contains("looks ahead come to too many texts"));
}

#[test]
fn looks_have_bounds() {
    let server = site("apache_htaccess on;");
    put(&server, "a.txt", "a");
    // Each look makes two more.
    put(
        &server,
        ".htaccess",
        "RewriteEngine on\nRewriteBase /\n\
         RewriteCond %{REQUEST_URI}x -U [OR]\nRewriteCond %{REQUEST_URI}y !-U\n\
         RewriteRule ^ - [E=A:1]\n",
    );
    assert_eq!(server.get("/a.txt").status, 200);
    let many: String = (0..40)
        .map(|number| format!("RewriteCond /{number} !-U [OR]\n"))
        .chain(["RewriteCond a b\nRewriteRule ^ - [G,NS]\n".to_owned()])
        .collect();
    put(&server, ".htaccess", &format!("RewriteEngine on\n{many}"));
    assert_eq!(server.get("/a.txt").status, 500);
    assert!(server.error_log().contains("rules look ahead too often in one pass"));
    put(
        &server,
        ".htaccess",
        "RewriteEngine on\nRewriteRule (.*) /x/%{LA-U:REQUEST_URI}/%{LA-U:REQUEST_FILENAME} [N]\n",
    );
    assert_eq!(server.get("/a.txt").status, 500);
}
