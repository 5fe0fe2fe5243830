//! What `.htaccess` files say about PHP, with a real php-fpm and a real lsphp.

use bolide_testkit::server::LISTEN;
use bolide_testkit::{TestPhp, TestServer, wait_until};

use crate::htaccess::{PARAMS, check, json, put, put_all, scripts};
use crate::http;
use crate::php::Lsphp;

/// PHP reads `PHP_VALUE` like `php.ini`, where many characters mean something.
#[test]
fn values_of_php_settings_arrive_as_they_are_written() {
    const VALUES: [&str; 12] = [
        "tcp://h:6379?weight=1&auth=pw",
        "Mozilla/5.0 (X11)",
        "a;b",
        "a=b",
        "a|b",
        "~x",
        "!x",
        "${HOME}",
        "null",
        "it's",
        "back\\slash",
        "[x]",
    ];
    let php = TestPhp::start(1);
    let server = scripts(&php, &[("v.php", "<?php echo ini_get('user_agent');")]);
    for value in VALUES {
        put(server.www(".htaccess"), &format!("php_value user_agent \"{value}\"\n"));
        assert_eq!(server.get("/v.php").text(), value);
    }
    put(server.www(".htaccess"), "php_value user_agent none\n");
    assert_eq!(server.get("/v.php").text(), "");
}

#[test]
fn what_a_pool_fixes_no_file_changes() {
    let server = http(&format!(
        "php_pool main {{ children 1; {} ini memory_limit 132M; }}
         server {{ {LISTEN} apache_htaccess on; location ~ \\.php$ {{ php_pass main; }} }}",
        crate::php_pool::user()
    ));
    let rules = "php_value memory_limit 148M\nphp_value user_agent other\n";
    let shown = "<?php echo ini_get('memory_limit'), ' ', ini_get('user_agent');";
    put_all(&server, &[("a/.htaccess", rules), ("a/x.php", shown), ("b/x.php", shown)]);
    wait_until("an answer", || server.get("/a/x.php").status == 200);
    assert_eq!(server.get("/a/x.php").text(), "132M other");
    assert!(server.get("/b/x.php").text().starts_with("132M "));
}

/// A setting of php-fpm stays in its child: code that one directory names would run for all others.
#[test]
fn code_for_each_script_is_named_to_lsphp_alone() {
    let php = TestPhp::start(1);
    let files = [
        ("a/.htaccess", "php_value auto_prepend_file /srv/x.php\n"),
        ("a/x.php", "<?php echo 'ran';"),
    ];
    let server = scripts(&php, &files);
    check(&server, &[("/a/x.php", 500)]);
    let log = server.error_log();
    assert!(log.contains("\"php_value auto_prepend_file\": php-fpm would run the file"), "{log}");
}

#[test]
fn scripts_whose_handler_is_removed_do_not_run() {
    let php = TestPhp::start(1);
    let script = "<?php echo 'ran';";
    let mut files = vec![("x.php", script)];
    for (directory, rules) in [
        ("handler/.htaccess", "RemoveHandler .php .phtml\n"),
        ("type/.htaccess", "RemoveType .php\n"),
        ("back/.htaccess", "RemoveHandler .php\nAddHandler application/x-httpd-php .php\n"),
        ("none/.htaccess", "<FilesMatch \"\\.php$\">\nSetHandler none\n</FilesMatch>\n"),
        ("every/.htaccess", "<Files *>\nSetHandler None\n</Files>\n"),
        ("when/.htaccess", "<If \"true\">\nSetHandler None\n</If>\n"),
        ("other/.htaccess", "<Files *.html>\nSetHandler None\n</Files>\n"),
        // As in Apache, a server's section for scripts comes after what a directory says.
        ("early/.htaccess", "SetHandler None\n"),
        (
            "late/.htaccess",
            "<Files *>\nSetHandler None\n</Files>\n\
             <Files *.php>\nSetHandler application/x-httpd-php\n</Files>\n",
        ),
    ] {
        files.push((directory, rules));
    }
    let wanted = [
        ("/x.php", 200),
        ("/handler/x.php", 403),
        ("/type/x.php", 403),
        ("/back/x.php", 200),
        ("/none/x.php", 403),
        ("/every/x.php", 403),
        ("/when/x.php", 403),
        ("/other/x.php", 200),
        ("/early/x.php", 200),
        ("/late/x.php", 200),
    ];
    files.extend(wanted[1..].iter().map(|(path, _)| (&path[1..], script)));
    let server = scripts(&php, &files);
    check(&server, &wanted);
}

/// As in Apache: what the application learns of a rewritten or failed request.
#[test]
fn scripts_get_the_variables_of_rewritten_requests_and_error_documents() {
    let rules = "RewriteEngine On\nRewriteCond %{REQUEST_FILENAME} !-f\n\
        RewriteRule ^go/(.*)$ x.php/$1 [L]\nSetEnvIf X-Forwarded-Proto https HTTPS=on\n\
        ErrorDocument 404 /x.php\n<Files secret.txt>\nAuthType Basic\nAuthName x\n\
        AuthUserFile /nowhere\nRequire valid-user\n</Files>\nErrorDocument 401 /x.php\n";
    let shown = "<?php echo json_encode([$_SERVER['PATH_INFO'] ?? '', $_SERVER['HTTPS'] ?? '',
        $_SERVER['REDIRECT_STATUS'] ?? '', $_SERVER['REDIRECT_REQUEST_METHOD'] ?? '']);";
    let php = TestPhp::start(1);
    let files = [(".htaccess", rules), ("x.php", shown), ("secret.txt", "secret")];
    let server = http(&format!(
        "server {{ {LISTEN} apache_htaccess on; location ~ \\.php(/|$) {{
             fastcgi_split_path_info ^(.+\\.php)(/.*)$; {PARAMS}
             fastcgi_param PATH_INFO $fastcgi_path_info; fastcgi_pass {}; }} }}",
        php.address()
    ));
    put_all(&server, &files);
    let ask = |path: &str, fields: &str| server.connect().get(path, fields);
    let https = "X-Forwarded-Proto: https\r\n";
    assert_eq!(json(&ask("/go/a/b", https)), r#"["\/a\/b","on","200",""]"#);
    assert_eq!(ask("/none.txt", "").text(), r#"["","","404","GET"]"#);
    let refused = ask("/secret.txt", "");
    assert_eq!((refused.status, &*refused.text()), (401, r#"["","","401","GET"]"#));
    assert_eq!(refused.header("www-authenticate"), Some("Basic realm=\"x\""), "{refused:?}");
}

/// Over LSAPI a setting holds for its request only.
#[test]
fn lsphp_gets_settings_for_one_request() {
    let lsphp = Lsphp::start();
    let server: TestServer = http(&format!(
        "server {{ {LISTEN} apache_htaccess on; location ~ \\.php$ {{ lsapi_pass unix:{}; }} }}",
        lsphp.socket().display()
    ));
    let before = server.www("before.inc");
    let rules = format!(
        "php_value memory_limit 77M\nphp_value user_agent \"it's; (x)\"\n\
         php_value auto_prepend_file {}\n",
        before.display()
    );
    let shown = "<?php echo ini_get('memory_limit'), ' ', ini_get('user_agent');";
    put(before, "before ");
    put_all(&server, &[("a/.htaccess", &rules), ("a/x.php", shown), ("b/x.php", shown)]);
    let plain = server.get("/b/x.php").text();
    for _ in 0..4 {
        assert_eq!(server.get("/a/x.php").text(), "before 77M it's; (x)");
        assert_eq!(server.get("/b/x.php").text(), plain);
    }
}
