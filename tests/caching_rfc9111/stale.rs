//! Serving stale responses (RFC 9111 §4.2.4, RFC 5861).

use std::thread;

use bolide_testkit::app::http_date;

use super::{Lab, run};

/// Requests these pages, waits until they are stale, and returns their paths.
fn staled(lab: &Lab, pages: &[&[&str]]) -> Vec<String> {
    let paths: Vec<String> = pages.iter().map(|answers| lab.pages(answers)).collect();
    for path in &paths {
        assert_eq!(lab.get(path).status, 200, "{path}");
    }
    bolide_testkit::pause(1100);
    paths
}

#[test]
fn a_stale_page_serves_while_one_request_renews_it() {
    let lab = Lab::auto();
    let paths = staled(
        &lab,
        &[&["Cache-Control: max-age=1, stale-while-revalidate=60", "Cache-Control: max-age=60"]],
    );
    let path = &paths[0];
    lab.app.hold(path);
    thread::scope(|scope| {
        let all: Vec<_> = (0..6)
            .map(|_| {
                let mut client = lab.server.connect();
                scope.spawn(move || client.get(path, ""))
            })
            .collect();
        for one in all {
            let answer = one.join().unwrap();
            assert_eq!(run(&answer), 1);
            assert!(answer.header("age").unwrap().parse::<u32>().unwrap() >= 1);
        }
    });
    lab.app.release();
    bolide_testkit::wait_until("the new page", || run(&lab.get(path)) == 2);
    assert_eq!(lab.app.count(path), 2);
}

#[test]
fn an_error_is_hidden_for_as_long_as_the_page_allows() {
    let lab = Lab::auto();
    let allowed = "Cache-Control: max-age=1, stale-if-error=60";
    let rows = [(500, 200), (502, 200), (503, 200), (504, 200), (404, 404), (403, 403), (501, 501)];
    let failures: Vec<String> = rows.iter().map(|row| format!("Status: {}", row.0)).collect();
    let pages: Vec<[&str; 2]> = failures.iter().map(|failure| [allowed, failure]).collect();
    let pages: Vec<&[&str]> = pages.iter().map(|page| &page[..]).collect();
    let paths = staled(&lab, &pages);
    for (path, (status, expected)) in paths.iter().zip(rows) {
        let answer = lab.get(path);
        assert_eq!((answer.status, lab.app.count(path)), (expected, 2), "{status}");
        assert_eq!(run(&answer), if expected == 200 { 1 } else { 2 }, "{status}");
    }
}

#[test]
fn an_origin_that_is_gone_is_hidden_too() {
    let lab = Lab::auto();
    let paths = staled(
        &lab,
        &[
            &["Cache-Control: max-age=1, stale-if-error=60"],
            &["Cache-Control: max-age=1"],
            &["Cache-Control: max-age=1, stale-if-error=60, must-revalidate"],
            &["Cache-Control: max-age=1, stale-if-error=60, proxy-revalidate"],
            &["Cache-Control: max-age=60"],
        ],
    );
    lab.app.vanish();
    let found: Vec<u16> = paths.iter().map(|path| lab.get(path).status).collect();
    assert_eq!(found, [200, 502, 502, 502, 200]);
}

#[test]
fn must_revalidate_is_obeyed() {
    // The configuration would serve stale responses for an hour.
    let lab = Lab::new("page_cache auto; page_cache_stale 1h;");
    let next = "Cache-Control: max-age=60";
    let paths = staled(
        &lab,
        &[
            &["Cache-Control: max-age=1, must-revalidate", next],
            &["Cache-Control: max-age=1, proxy-revalidate", next],
            &["Cache-Control: max-age=1, must-revalidate, stale-while-revalidate=60", next],
            &["Cache-Control: s-maxage=1", next],
            &["Cache-Control: max-age=1, stale-while-revalidate=0", next],
            &["Cache-Control: max-age=1", next],
        ],
    );
    let found: Vec<usize> = paths.iter().map(|path| run(&lab.get(path))).collect();
    assert_eq!(found, [2, 2, 2, 2, 2, 1]);
}

#[test]
fn an_expired_stale_window_does_not_count() {
    let lab = Lab::auto();
    let paths = staled(
        &lab,
        &[
            &["Cache-Control: max-age=10, stale-while-revalidate=2\nAge: 11"],
            &["Cache-Control: max-age=10, stale-while-revalidate=60\nAge: 11"],
        ],
    );
    assert_eq!(run(&lab.get(&paths[0])), 2);
    assert_eq!(run(&lab.get(&paths[1])), 1);
}

#[test]
fn a_renewal_that_fails_leaves_the_old_page() {
    let lab = Lab::auto();
    let stale = "Cache-Control: max-age=1, stale-while-revalidate=60, stale-if-error=60";
    let paths = staled(&lab, &[&[stale, "Status: 500"]]);
    assert_eq!(run(&lab.get(&paths[0])), 1);
    bolide_testkit::wait_until("the renewal", || lab.app.count(&paths[0]) == 2);
    for _ in 0..3 {
        let answer = lab.get(&paths[0]);
        assert_eq!((answer.status, run(&answer)), (200, 1));
    }
}

#[test]
fn a_page_is_renewed_by_a_confirmation_in_the_background() {
    let lab = Lab::auto();
    let stale = "Cache-Control: max-age=1, stale-while-revalidate=60\nETag: \"a\"";
    let confirmed = "Status: 304\nCache-Control: max-age=60\nX-New: 1";
    let paths = staled(&lab, &[&[stale, confirmed, "Status: 500"]]);
    assert_eq!(run(&lab.get(&paths[0])), 1);
    bolide_testkit::wait_until("the confirmation", || {
        let answer = lab.get(&paths[0]);
        assert_eq!(run(&answer), 1);
        answer.header("x-new") == Some("1")
    });
    let asked = lab.app.asked(&paths[0]);
    assert_eq!((asked.len(), asked[1].field("If-None-Match")), (2, Some("\"a\"")));
}

#[test]
fn stale_if_error_covers_silent_and_malformed_upstreams() {
    let lab = Lab::new(&format!("{} fastcgi_read_timeout 1s;", super::AUTO));
    let good = "Cache-Control: max-age=1, stale-if-error=60\nETag: \"a\"";
    let paths = staled(&lab, &[&[good, "no field at all"], &[good, ""], &[good, "Status: 500"]]);
    lab.app.hold(&paths[1]);
    for path in &paths {
        let answer = lab.get(path);
        assert_eq!((answer.status, run(&answer), lab.app.count(path)), (200, 1, 2));
        let cache_state = answer.header("cache-status").unwrap();
        assert!(cache_state.ends_with("; detail=stale-if-error"), "{cache_state}");
    }
    lab.app.release();
}

#[test]
fn by_default_a_server_sends_nothing_stale_without_permission() {
    let lab = Lab::new("page_cache auto; cache_status on;");
    let next = "Cache-Control: max-age=60";
    let expires = format!("Date: {}\nExpires: {}", http_date(0), http_date(1));
    let paths = staled(
        &lab,
        &[
            &["Cache-Control: max-age=1", next],
            &[&expires, next],
            &["CDN-Cache-Control: max-age=1", next],
            &["Surrogate-Control: max-age=1", next],
            &["Cache-Control: max-age=1, stale-while-revalidate=60", next],
            &["X-LiteSpeed-Cache-Control: public, max-age=1", next],
            &["Cache-Control: max-age=1\nX-LiteSpeed-Tag: a", next],
        ],
    );
    // `Expires` has a resolution of one second.
    bolide_testkit::pause(1000);
    let found: Vec<usize> = paths.iter().map(|path| run(&lab.get(path))).collect();
    assert_eq!(found, [2, 2, 2, 2, 1, 1, 1]);
    let gone = staled(&lab, &[&["Cache-Control: max-age=1"], &["Cache-Control: max-age=60"]]);
    lab.app.vanish();
    let found: Vec<u16> = gone.iter().map(|path| lab.get(path).status).collect();
    assert_eq!(found, [502, 200]);
}
