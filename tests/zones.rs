//! nginx's `fastcgi_cache*` directives, with the real php-fpm.

use bolide_testkit::{TestPhp, wait_until};

use crate::cache::{KEEP, ZONE, ask, pair, serve, status_and_body};

#[test]
fn no_cache_is_evaluated_when_the_response_arrives() {
    let php = TestPhp::start(1);
    let more = "fastcgi_no_cache $upstream_http_x_none $sent_http_x_own $late;
        add_header X-Own $sent_http_x_keep;";
    let zone = format!("{ZONE} map $upstream_status $late {{ 404 1; default 0; }}");
    let server = serve(&php, &zone, &format!("{KEEP} {more} fastcgi_cache_valid any 1m;"));
    for (at, query, kept) in [
        (1, "", true),
        (2, "&h[]=X-None:1", false),
        (3, "&h[]=X-None:0", true),
        (4, "&h[]=X-Keep:no", false),
        (5, "&status=404", false),
        (6, "&status=403", true),
    ] {
        let path = &*format!("/count.php?n={at}{query}");
        assert_eq!(status_and_body(&server, path), pair("MISS", "run 1"), "{path}");
        let second = if kept { pair("HIT", "run 1") } else { pair("MISS", "run 2") };
        assert_eq!(status_and_body(&server, path), second, "{path}");
    }
}

#[test]
fn no_cache_is_evaluated_for_background_fetches() {
    let php = TestPhp::start(1);
    let more = "fastcgi_cache_use_stale updating; fastcgi_cache_background_update on;
        fastcgi_no_cache $upstream_http_x_none;";
    let server = serve(&php, ZONE, &format!("{KEEP} {more}"));
    let path = "/count.php?h[]=X-Accel-Expires:1&none-from=2";
    assert_eq!(status_and_body(&server, path), pair("MISS", "run 1"));
    bolide_testkit::pause(1100);
    let runs = || std::fs::read_to_string(server.www("count-0")).unwrap_or_default();
    assert_eq!(status_and_body(&server, path), pair("STALE", "run 1"));
    wait_until("the second one was made", || runs() == "2");
    // The second response must not be stored, so the first one is still served.
    wait_until("it is over", || {
        status_and_body(&server, path) == pair("STALE", "run 1") && runs() != "2"
    });
    assert_eq!(ask(&server, path, "").text(), "run 1");
}
