//! Caching of PHP's responses: nginx's zones and the page cache, with a real php-fpm that counts
//! its requests.

use std::thread;

use bolide_testkit::server::LISTEN;
use bolide_testkit::{Response, TestApp, TestPhp, TestServer, site, wait_until};

use crate::http;

/// The `fastcgi_param` lines that Bolide ships.
pub(crate) const PARAMS: &str =
    concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/fastcgi.conf;");

/// Responds with the number of its runs for the argument `n`, and with the fields of the arguments
/// `h`.
const COUNT: &str = "<?php
    foreach ($_GET['h'] ?? [] as $line) header($line, false);
    if (isset($_GET['status'])) http_response_code((int) $_GET['status']);
    $file = __DIR__ . '/count-' . ($_GET['n'] ?? '0');
    $lock = fopen($file, 'c+'); flock($lock, LOCK_EX);
    $count = (int) stream_get_contents($lock) + 1;
    ftruncate($lock, 0); rewind($lock); fwrite($lock, $count); fclose($lock);
    if (isset($_GET['none-from']) && $count >= $_GET['none-from']) header('X-None: 1');
    usleep((int) ($_GET['ms'] ?? 0) * 1000);
    if (file_exists(__DIR__ . '/down')) { posix_kill(getmypid(), 9); sleep(9); }
    echo 'run ', $count, str_repeat(' and more of it', (int) ($_GET['more'] ?? 0));";

/// A server with these directives in its `http` block and in the location of its scripts.
pub(crate) fn serve(php: &TestPhp, block: &str, location: &str) -> TestServer {
    let address = php.address();
    let server = http(&format!(
        "{block}
         server {{ {LISTEN}
             location ~ \\.php$ {{ {PARAMS} fastcgi_pass {address}; {location} }} }}"
    ));
    site::write(&server.www("count.php"), COUNT.as_bytes());
    let env =
        "<?php header('Cache-Control: no-store'); ksort($_SERVER); echo json_encode($_SERVER);";
    site::write(&server.www("env.php"), env.as_bytes());
    server
}

pub(crate) const ZONE: &str = "fastcgi_cache_path @DIR@/cache keys_zone=one:1m;";
pub(crate) const KEEP: &str =
    "fastcgi_cache one; fastcgi_cache_key $request_uri; fastcgi_cache_valid 200 1m;
    add_header X-Status $upstream_cache_status always;";

pub(crate) fn ask(server: &TestServer, path: &str, fields: &str) -> Response {
    server.connect().get(path, fields)
}

/// The cache status and the body.
pub(crate) fn status_and_body(server: &TestServer, path: &str) -> (String, String) {
    let reply = server.get(path);
    (reply.header("x-status").unwrap_or_default().to_owned(), reply.text())
}

pub(crate) fn pair(status: &str, body: &str) -> (String, String) {
    (status.to_owned(), body.to_owned())
}

#[test]
fn a_cached_response_is_compressed_for_each_accepted_coding() {
    let php = TestPhp::start(2);
    let coded = "gzip on; gzip_min_length 1; gzip_types text/html; brotli on; zstd on;";
    let server = serve(&php, ZONE, &format!("{KEEP} {coded}"));
    for coding in ["gzip", "br", "zstd"] {
        let path = format!("/count.php?n={coding}&more=3000");
        assert_eq!(status_and_body(&server, &path).0, "MISS");
        for _ in 0..3 {
            let reply = ask(&server, &path, &format!("Accept-Encoding: {coding}\r\n"));
            assert_eq!(reply.header("x-status"), Some("HIT"));
            assert_eq!(reply.header("content-encoding"), Some(coding));
            assert!(reply.body.len() < 3000, "{coding} {}", reply.body.len());
        }
    }
}

#[test]
fn a_zone_answers_the_second_request() {
    let php = TestPhp::start(2);
    let server = serve(&php, ZONE, KEEP);
    assert_eq!(status_and_body(&server, "/count.php?n=1"), pair("MISS", "run 1"));
    assert_eq!(status_and_body(&server, "/count.php?n=1"), pair("HIT", "run 1"));
    assert_eq!(status_and_body(&server, "/count.php?n=2"), pair("MISS", "run 1"));
    for (path, fields) in [
        ("/count.php?n=3&status=404", "no line for it"),
        ("/count.php?n=4&h[]=Set-Cookie:a=b", "a cookie"),
        ("/count.php?n=5&h[]=Cache-Control:private", "said so"),
        ("/count.php?n=6&h[]=X-Accel-Expires:0", "said so"),
    ] {
        assert_eq!(status_and_body(&server, path), pair("MISS", "run 1"), "{fields}");
        assert_eq!(status_and_body(&server, path), pair("MISS", "run 2"), "{fields}");
    }
}

#[test]
fn the_innermost_block_decides_which_clients_may_purge() {
    let app = TestApp::start();
    let pass = format!(
        "fastcgi_param REQUEST_URI $request_uri; fastcgi_param REQUEST_METHOD $request_method;
         fastcgi_pass {}; {KEEP}",
        app.address()
    );
    let server = http(&format!(
        "{ZONE} fastcgi_cache_purge PURGE from 127.0.0.1;
         server {{ {LISTEN} location / {{ {pass} }}
             location /no/ {{ fastcgi_cache_purge PURGE from 192.0.2.1; {pass}
                 location /no/yes/ {{ fastcgi_cache_purge PURGE; {pass} }} }} }}"
    ));
    for (path, status) in [("/", 200), ("/no/", 403), ("/no/yes/", 200)] {
        assert_eq!(status_and_body(&server, path), pair("MISS", "run 1"), "{path}");
        let purge = format!("PURGE {path} HTTP/1.1\r\nHost: localhost");
        assert_eq!(server.connect().ask(&purge).status, status, "{path}");
        let then = if status == 200 { pair("MISS", "run 2") } else { pair("HIT", "run 1") };
        assert_eq!(status_and_body(&server, path), then, "{path}");
    }
}

#[test]
fn a_cached_response_answers_conditions_ranges_and_head() {
    let php = TestPhp::start(1);
    let server = serve(&php, ZONE, KEEP);
    let date = "Sun,%2006%20Nov%201994%2008:49:37%20GMT";
    let path = &*format!("/count.php?h[]=ETag:%22a%22&h[]=Last-Modified:{date}");
    assert_eq!(status_and_body(&server, path), pair("MISS", "run 1"));
    let kept = ask(&server, path, "If-None-Match: \"a\"\r\n");
    assert_eq!((kept.status, kept.text()), (304, String::new()), "{kept:?}");
    assert_eq!(kept.header("x-status"), Some("HIT"));
    let part = ask(&server, path, "Range: bytes=0-2\r\n");
    assert_eq!((part.status, part.text()), (206, "run".to_owned()));
    assert_eq!(part.header("content-range"), Some("bytes 0-2/5"));
    assert_eq!(ask(&server, path, "Range: bytes=9-\r\n").status, 416);
    let mut client = server.connect();
    client.send(format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    let head = client.answer_to("HEAD");
    assert_eq!((head.status, head.header("content-length")), (200, Some("5")));
    assert_eq!(head.header("x-status"), Some("HIT"));
}

#[test]
fn concurrent_requests_are_coalesced_into_one_fetch() {
    let php = TestPhp::start(4);
    let server = serve(&php, ZONE, &format!("{KEEP} fastcgi_cache_lock on;"));
    thread::scope(|scope| {
        let all: Vec<_> =
            (0..8).map(|_| scope.spawn(|| server.get("/count.php?n=9&ms=300").text())).collect();
        for one in all {
            assert_eq!(one.join().unwrap(), "run 1");
        }
    });
}

#[test]
fn cache_bypass_stores_the_new_response_and_no_cache_stores_none() {
    let php = TestPhp::start(1);
    let more = "fastcgi_cache_bypass $http_x_new; fastcgi_no_cache $http_x_none;";
    let server = serve(&php, ZONE, &format!("{KEEP} {more}"));
    let path = "/count.php";
    let kept = |fields: &str| {
        let reply = ask(&server, path, fields);
        (reply.header("x-status").unwrap_or_default().to_owned(), reply.text())
    };
    assert_eq!(kept("X-None: 1\r\n"), pair("MISS", "run 1"));
    assert_eq!(kept(""), pair("MISS", "run 2"));
    assert_eq!(kept("X-New: 1\r\n"), pair("BYPASS", "run 3"));
    assert_eq!(kept(""), pair("HIT", "run 3"));
}

#[test]
fn a_stale_response_is_served_while_the_upstream_fails() {
    let php = TestPhp::start(1);
    let more = "fastcgi_cache_use_stale error invalid_header http_500;";
    let server = serve(&php, ZONE, &format!("{KEEP} {more}"));
    let path = "/count.php?h[]=X-Accel-Expires:1";
    assert_eq!(status_and_body(&server, path), pair("MISS", "run 1"));
    bolide_testkit::pause(1100);
    site::write(&server.www("down"), b"");
    assert_eq!(status_and_body(&server, path), pair("STALE", "run 1"));
    std::fs::remove_file(server.www("down")).unwrap();
    wait_until("PHP is back", || status_and_body(&server, path).0 == "EXPIRED");
    assert_eq!(status_and_body(&server, path).0, "HIT");
}

#[test]
fn an_old_answer_serves_while_a_new_one_is_fetched() {
    let php = TestPhp::start(1);
    let more = "fastcgi_cache_use_stale updating; fastcgi_cache_background_update on;";
    let server = serve(&php, ZONE, &format!("{KEEP} {more}"));
    let path = "/count.php?h[]=X-Accel-Expires:1&ms=200";
    assert_eq!(status_and_body(&server, path), pair("MISS", "run 1"));
    bolide_testkit::pause(1100);
    assert_eq!(status_and_body(&server, path), pair("STALE", "run 1"));
    assert_eq!(status_and_body(&server, path), pair("UPDATING", "run 1"));
    wait_until("the new one is there", || status_and_body(&server, path).1 == "run 2");
}

#[test]
fn a_cached_response_is_compressed_for_clients_that_accept_it() {
    let php = TestPhp::start(1);
    let server = serve(&php, ZONE, &format!("{KEEP} gzip on; gzip_min_length 1;"));
    let path = "/count.php?more=500";
    let plain = server.get(path).text();
    wait_until("the form is made", || {
        let coded = ask(&server, path, "Accept-Encoding: gzip\r\n");
        let is_coded = coded.header("content-encoding") == Some("gzip");
        is_coded && coded.header("content-length").is_some() && coded.body.len() < 500
    });
    assert_eq!(server.get(path).text(), plain);
}

fn page(server: &TestServer, path: &str, fields: &str) -> (String, String) {
    let reply = ask(server, path, fields);
    for hidden in ["x-litespeed-cache-control", "x-litespeed-tag", "x-litespeed-purge"] {
        assert_eq!(reply.header(hidden), None, "{path}");
    }
    (reply.header("x-litespeed-cache").unwrap_or_default().to_owned(), reply.text())
}

const PUBLIC: &str = "h[]=X-LiteSpeed-Cache-Control:public,max-age=60";

#[test]
fn an_application_controls_what_is_stored_and_purged() {
    let php = TestPhp::start(2);
    let server = serve(&php, "", "page_cache auto;");
    let tagged = format!("/count.php?n=1&{PUBLIC}&h[]=X-LiteSpeed-Tag:A,B");
    assert_eq!(page(&server, &tagged, ""), pair("miss", "run 1"));
    assert_eq!(page(&server, &tagged, ""), pair("hit", "run 1"));
    assert!(ask(&server, &tagged, "").header("age").is_some());
    let tag = format!("/count.php?n=4&{PUBLIC}&h[]=ETag:%22a%22");
    assert_eq!(page(&server, &tag, ""), pair("miss", "run 1"));
    assert_eq!(ask(&server, &tag, "If-None-Match: \"a\"\r\n").status, 304);
    assert_eq!(page(&server, "/count.php?n=2", ""), pair("", "run 1"));
    assert_eq!(page(&server, "/count.php?n=2", ""), pair("", "run 2"));
    // A purge takes effect in any response.
    let purge = "/count.php?n=3&status=302&h[]=X-LiteSpeed-Purge:tag%3DB";
    assert_eq!(ask(&server, purge, "").status, 302);
    assert_eq!(page(&server, &tagged, ""), pair("miss", "run 2"));
}

#[test]
fn a_private_page_is_for_its_session_only() {
    let php = TestPhp::start(2);
    let server = serve(&php, "", "page_cache auto;");
    let path = "/count.php?h[]=X-LiteSpeed-Cache-Control:private,max-age=60";
    let one = "Cookie: lsc_private=aaaaaaaaaaaaaaaaaaaa\r\n";
    let other = "Cookie: lsc_private=bbbbbbbbbbbbbbbbbbbb\r\n";
    assert_eq!(page(&server, path, one), pair("miss", "run 1"));
    assert_eq!(page(&server, path, one), pair("hit,private", "run 1"));
    assert_eq!(page(&server, path, other), pair("miss", "run 2"));
    assert_eq!(page(&server, path, one), pair("hit,private", "run 1"));
    assert_eq!(page(&server, path, ""), pair("", "run 3"));
}

#[test]
fn a_vary_cookie_that_the_answer_sets_names_its_copy() {
    let php = TestPhp::start(1);
    let server = serve(&php, "", "page_cache auto;");
    let path = format!("/count.php?{PUBLIC}&h[]=Set-Cookie:_lscache_vary%3Dx");
    assert_eq!(page(&server, &path, ""), pair("miss", "run 1"));
    let kept = ask(&server, &path, "Cookie: _lscache_vary=x\r\n");
    assert_eq!((kept.header("x-litespeed-cache"), &*kept.text()), (Some("hit"), "run 1"));
    assert_eq!(kept.header("set-cookie"), None, "cookies are not for others");
    assert_eq!(page(&server, &path, "Cookie: _lscache_vary=y\r\n"), pair("miss", "run 2"));
}

#[test]
fn purge_and_refresh_need_permission() {
    let php = TestPhp::start(1);
    let path = format!("/count.php?{PUBLIC}");
    let keyed = "127.0.0.1; page_cache_key k$request_uri";
    for (allow, status) in [("127.0.0.1", 200), (keyed, 200), ("off", 405)] {
        let server = serve(&php, "", &format!("page_cache auto; page_cache_purge_allow {allow};"));
        assert_eq!(page(&server, &path, ""), pair("miss", "run 1"));
        let purge = format!("PURGE {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let mut client = server.connect();
        client.send(purge);
        assert_eq!(client.answer().status, status, "{allow}");
        let then = if status == 200 { pair("miss", "run 2") } else { pair("hit", "run 1") };
        assert_eq!(page(&server, &path, ""), then, "{allow}");
    }
}

#[test]
fn only_the_server_sets_the_cache_parameters_of_an_application() {
    let php = TestPhp::start(1);
    let server = serve(&php, "", "page_cache auto;");
    let status_and_body =
        ask(&server, "/env.php", "X-LSCACHE: 1\r\nESI-Referer: /\r\nX-Other: 1\r\n").text();
    assert!(
        status_and_body.contains("\"X-LSCACHE\":\"on,crawler,esi,combine\""),
        "{status_and_body}"
    );
    assert!(
        !status_and_body.contains("HTTP_X_LSCACHE") && !status_and_body.contains("ESI_REFERER"),
        "{status_and_body}"
    );
    assert!(status_and_body.contains("HTTP_X_OTHER"));
}
