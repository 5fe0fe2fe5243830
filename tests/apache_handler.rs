//! `apache_handler`: the handler of a file, as `apache_directory` and `.htaccess` files say,
//! decides which location runs it, and whether one does.

use bolide_testkit::server::LISTEN;
use bolide_testkit::{TestPhp, TestServer};

use crate::htaccess::{PARAMS, check, put, put_all};
use crate::http;

const SHOWN: &str = "<?php echo $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['PATH_INFO'] ?? '', ' ', \
     basename($_SERVER['SCRIPT_FILENAME']);";

/// A server whose scripts have handlers.
fn served(php: &TestPhp, lines: &str) -> TestServer {
    http(&format!(
        "server {{ {LISTEN} apache_htaccess on; index index.php; {lines}
             apache_handler Of-App @app; apache_handler application/x-httpd-php @app;
             location /alias/ {{ alias @DIR@/www/a.b/; }}
             location @app {{ {PARAMS} fastcgi_param SCRIPT_NAME $fastcgi_script_name;
                 fastcgi_param PATH_INFO $fastcgi_path_info; fastcgi_pass {}; }} }}",
        php.address()
    ))
}

#[test]
fn the_file_is_what_has_the_handler_and_path_info_follows_it() {
    let php = TestPhp::start(1);
    let server = served(&php, "apache_directory - '<Files *.php>' 'SetHandler of-app' '</Files>';");
    let files = [
        ("index.php", SHOWN),
        ("a.b/x.php", SHOWN),
        ("a.b/dir.php/x.php", SHOWN),
        ("evil.jpg", SHOWN),
        ("plain.txt", "text"),
    ];
    put_all(&server, &files);
    let rows = [
        ("/", "/index.php  index.php"),
        ("/index.php/a.c/d", "/index.php /a.c/d index.php"),
        ("/a.b/x.php", "/a.b/x.php  x.php"),
        ("/a.b/dir.php/x.php/y.php", "/a.b/dir.php/x.php /y.php x.php"),
        ("/alias/x.php/info", "/alias/x.php /info x.php"),
        ("/plain.txt", "text"),
    ];
    // Once more by the ruling that is kept.
    for (path, wanted) in rows.iter().chain(&rows) {
        assert_eq!(server.get(path).text(), *wanted, "{path}");
    }
    // PHP would run the image.
    check(&server, &[("/evil.jpg/x.php", 404), ("/evil.jpg/", 404), ("/none.php", 404)]);
    assert_eq!(server.connect().get("/x.php", "").status, 404);
}

#[test]
fn handlers_of_files_and_types_are_heeded_and_sources_are_not_sent() {
    let php = TestPhp::start(1);
    let server = served(&php, "apache_directory - 'AddType application/x-httpd-php .php';");
    let rows = [
        ("plain", "", 200),
        ("none", "AddType text/plain .php\n", 403),
        ("removed", "RemoveType .php\n", 403),
        ("forced", "ForceType text/plain\n", 403),
        ("usual", "SetHandler default-handler\n", 403),
        ("off", "php_flag engine off\n", 403),
        ("other", "SetHandler of-another\n", 403),
        ("cgi", "AddHandler cgi-script .php\n", 403),
        ("set", "SetHandler Of-App\n", 200),
        ("rule", "RewriteEngine on\nRewriteRule x - [H=of-app]\n", 200),
        ("typed", "RewriteEngine on\nRewriteRule x - [T=text/plain]\n", 403),
    ];
    for (directory, rules, status) in rows {
        put(server.www(&format!("{directory}/x.php")), SHOWN);
        put(server.www(&format!("{directory}/.htaccess")), rules);
        for _ in 0..2 {
            let answer = server.get(&format!("/{directory}/x.php"));
            assert_eq!(answer.status, status, "{directory}: {answer:?}");
            assert!(!answer.text().contains("<?php"), "{directory}");
        }
    }
    // A handler of a place is that of all its files.
    put_all(&server, &[("set/f.txt", "text"), ("cgi/f.php.txt", "source"), ("none/f.txt", "text")]);
    check(&server, &[("/set/f.txt", 403), ("/none/f.txt", 200), ("/set/", 404)]);
}

#[test]
fn what_the_server_switches_off_for_good_no_file_switches_on() {
    let php = TestPhp::start(1);
    let lines = "apache_directory - 'AddHandler of-app .php';
        apache_directory @DIR@/www/up 'php_value engine never';";
    let server = served(&php, lines);
    let on = "php_flag engine on\n";
    let deeper = format!("{on}<If \"true\">\n{on}</If>\n<Files *.php>\n{on}</Files>\n");
    put_all(&server, &[("x.php", SHOWN), ("up/x.php", SHOWN), ("up/on/x.php", SHOWN)]);
    put(server.www("up/on/.htaccess"), &deeper);
    check(&server, &[("/x.php", 200), ("/up/x.php", 403), ("/up/on/x.php", 403)]);
}

#[test]
fn the_innermost_block_names_locations_for_handlers() {
    let php = TestPhp::start(1);
    let server = http(&format!(
        "apache_define PROD; apache_modules rewrite authz_core;
         server {{ {LISTEN} apache_htaccess on; apache_handler of-app @app;
             apache_directory - 'SetHandler of-app';
             location /inner/ {{ apache_handler of-app @other; }}
             location /empty/ {{ apache_handler of-app @empty; }}
             location @app {{ {PARAMS} fastcgi_param PLACE app; fastcgi_pass {0}; }}
             location @other {{ {PARAMS} fastcgi_param PLACE other; fastcgi_pass {0}; }}
             location @empty {{ return 200 empty; }} }}",
        php.address()
    ));
    let denied = "Require all denied\n";
    put_all(
        &server,
        &[
            ("a.php", "<?php echo $_SERVER['PLACE'];"),
            ("empty/a.php", "<?php echo $_SERVER['PLACE'];"),
            ("inner/a.php", "<?php echo $_SERVER['PLACE'];"),
            ("defined/.htaccess", &format!("<IfDefine PROD>\n{denied}</IfDefine>\n")),
            ("defined/a.php", "<?php echo $_SERVER['PLACE'];"),
            ("loaded/.htaccess", &format!("<IfModule mod_rewrite.c>\n{denied}</IfModule>\n")),
            ("loaded/a.php", "<?php echo $_SERVER['PLACE'];"),
            ("missing/.htaccess", &format!("<IfModule mod_headers.c>\n{denied}</IfModule>\n")),
            ("missing/a.php", "<?php echo $_SERVER['PLACE'];"),
        ],
    );
    for (path, wanted) in [("/a.php", "app"), ("/inner/a.php", "other"), ("/missing/a.php", "app")]
    {
        assert_eq!(server.get(path).text(), wanted, "{path}");
    }
    // A location without an upstream would send the source.
    check(&server, &[("/empty/a.php", 503), ("/defined/a.php", 403), ("/loaded/a.php", 403)]);
}
