//! Which script a pool runs for a path: the one that was checked, by `root`, `alias` and
//! parameters.

use bolide_testkit::server::LISTEN;
use bolide_testkit::{H1TestClient, TestServer, site, wait_until};

use crate::BOLIDE;
use crate::php_pool::user;

const TELL: &str = "<?php echo basename(__FILE__), '|', $_SERVER['SCRIPT_NAME'], '|',
    $_SERVER['PATH_INFO'] ?? '-', '|', $_SERVER['CONTENT_TYPE'] ?? '-';";

fn start(locations: &str) -> TestServer {
    let server = TestServer::with(
        BOLIDE,
        &format!("php_pool main {{ {} children 2; }} server {{ {LISTEN} {locations} }}", user()),
    );
    for name in ["env.php", "other.php", "sub/index.php", "l\nf.php"] {
        site::write(&server.www(name), TELL.as_bytes());
    }
    server
}

/// Checks the script, its name and the path behind it, or the status, of each path.
fn expect(server: &TestServer, rows: &[(&str, &str)]) {
    let first = rows.iter().find(|(_, text)| text.contains('|')).unwrap().0;
    wait_until("PHP", || server.get(first).status == 200);
    for (path, expected) in rows {
        let reply = server.get(path);
        let text = match reply.status {
            200 => reply.text().rsplit_once('|').unwrap().0.to_owned(),
            status => status.to_string(),
        };
        assert_eq!(text, *expected, "{path}\n{}", server.error_log());
    }
}

#[test]
fn the_parameters_say_which_script_is_checked_and_run() {
    let include = concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/fastcgi.conf;");
    let server = start(&format!(
        "location /front/ {{ {include}
             fastcgi_param SCRIPT_FILENAME $document_root/env.php; php_pass main; }}
         location /gone/ {{ {include}
             fastcgi_param SCRIPT_FILENAME $document_root/none.php; php_pass main; }}
         location /sub/ {{ {include}
             fastcgi_param SCRIPT_FILENAME $document_root/sub; php_pass main; }}
         location /text/ {{ {include}
             fastcgi_param SCRIPT_FILENAME $document_root$arg_f; php_pass main; }}
         location /maybe/ {{ {include}
             fastcgi_param SCRIPT_FILENAME $document_root/env.php;
             fastcgi_param SCRIPT_FILENAME $arg_f if_not_empty; php_pass main; }}
         location /without/ {{ fastcgi_param A b; php_pass main; }}
         location ~ \\.php$ {{ {include} php_pass main; }}"
    ));
    expect(
        &server,
        &[
            ("/front/a", "env.php|/front/a|-"),
            ("/front/", "env.php|/front/index.php|-"),
            // A file that is there is not what PHP is told to run.
            ("/gone/a", "404"),
            ("/sub/a", "403"),
            ("/text/a?f=/env.php", "env.php|/text/a|-"),
            ("/text/a?f=/none.php", "404"),
            ("/maybe/a", "env.php|/maybe/a|-"),
            ("/without/a", "404"),
            ("/env.php", "env.php|/env.php|-"),
            ("/none.php", "404"),
        ],
    );
    let log = server.error_log();
    for words in [
        "/none.php\" failed (2: No such file or directory)",
        "/sub\" is not a regular file",
        "the parameters of the pool have no \"SCRIPT_FILENAME\"",
    ] {
        assert!(log.contains(words), "{words}: {log}");
    }
}

#[test]
fn scripts_below_an_alias_are_run() {
    let include = concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/fastcgi.conf;");
    let server = start(&format!(
        "location /app/ {{ alias @DIR@/www/; location ~ \\.php(/|$) {{ php_pass main; }} }}
         location /said/ {{ alias @DIR@/www/; location ~ \\.php$ {{ {include} php_pass main; }} }}
         location ~ ^/re/(.+\\.php)$ {{ alias @DIR@/www/$1; php_pass main; }}
         location /dir/ {{ alias @DIR@/www/sub/; php_pass main; }}"
    ));
    expect(
        &server,
        &[
            ("/app/env.php", "env.php|/app/env.php|"),
            ("/app/env.php/x/y", "env.php|/app/env.php|/x/y"),
            ("/app/none.php", "404"),
            ("/said/env.php", "env.php|/said/env.php|-"),
            ("/said/none.php", "404"),
            ("/re/env.php", "env.php|/re/env.php|"),
            ("/re/none.php", "404"),
            ("/dir/", "index.php|/dir/index.php|"),
        ],
    );
}

#[test]
fn the_path_behind_a_script_is_its_path_info() {
    let server = start("location ~ \\.php { php_pass main; }");
    site::write(&server.www("zz.php/index.php"), TELL.as_bytes());
    expect(
        &server,
        &[
            ("/env.php", "env.php|/env.php|"),
            ("/env.php/", "env.php|/env.php|/"),
            ("/env.php/a.php/b", "env.php|/env.php|/a.php/b"),
            ("/env.php/a%0ab", "env.php|/env.php|/a\nb"),
            ("/env.php/a%0a", "env.php|/env.php|/a\n"),
            ("/l%0af.php/a", "l\nf.php|/l\nf.php|/a"),
            ("/env.php%0a", "404"),
            ("/none.php/", "404"),
            ("/zz.php/index.php", "403"),
        ],
    );
    assert!(server.error_log().contains("/zz.php\" is not a regular file"));
}

#[test]
fn several_types_of_a_body_are_one_value_as_in_nginx() {
    let server = start("location ~ \\.php$ { php_pass main; }");
    wait_until("PHP", || server.get("/env.php").status == 200);
    let mut client = H1TestClient::connect(server.http());
    for (fields, expected) in [
        ("", ""),
        ("Content-Type: a/b\r\n", "a/b"),
        ("Content-Type: a/b\r\ncontent-type: c/d\r\n", "a/b, c/d"),
        ("Content-Type:\r\nContent-Type: c/d\r\n", ", c/d"),
    ] {
        let reply = client.get("/env.php", fields);
        assert_eq!(reply.text().rsplit_once('|').unwrap().1, expected, "{fields}");
    }
}
