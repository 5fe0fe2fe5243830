//! The same rules in nginx's zones; each row is nginx's behaviour.

use bolide_testkit::AppSaid;
use bolide_testkit::app::http_date;

use super::{Lab, run};
use crate::report;

fn zone(more: &str) -> Lab {
    Lab::with(
        "fastcgi_cache_path @DIR@/zone keys_zone=one:1m;",
        &format!(
            "fastcgi_cache one; fastcgi_cache_key $request_uri;
             add_header X-Status $upstream_cache_status always; {more}"
        ),
    )
}

fn keeps(lab: &Lab, rows: &[(String, bool)]) {
    let mut failures = Vec::new();
    for (head, expected) in rows {
        let path = lab.page(head);
        let all: Vec<_> = (0..2).map(|_| lab.get(&path)).collect();
        let is_kept = lab.app.count(&path) == 1;
        if is_kept != *expected {
            failures.push(format!("{}kept: {head:?}", if *expected { "not " } else { "" }));
        }
        let status = all[1].header("x-status").unwrap_or_default();
        assert_eq!(status == "HIT", is_kept, "{head} {status}");
    }
    report(rows.len(), &failures);
}

#[test]
fn lifetimes_are_read_as_nginx_does() {
    let (future, past) = (http_date(3600), http_date(-3600));
    let rows = [
        ("", false),
        ("Cache-Control: max-age=60", true),
        ("Cache-Control: MAX-AGE=60", true),
        ("Cache-Control: public, max-age=60", true),
        ("Cache-Control: max-age=0", false),
        ("Cache-Control: max-age=x", false),
        ("Cache-Control: max-age=-1", false),
        ("Cache-Control: s-maxage=60", true),
        ("Cache-Control: s-maxage=60, max-age=0", true),
        ("Cache-Control: max-age=60, s-maxage=0", false),
        ("Cache-Control: public", false),
        ("Cache-Control: no-store, max-age=60", false),
        ("Cache-Control: no-cache, max-age=60", false),
        ("Cache-Control: private, max-age=60", false),
        ("Cache-Control: max-age=60\nCache-Control: no-store", false),
        ("Cache-Control: no-cache=\"X-A\", max-age=60", false),
        ("Cache-Control: must-revalidate, max-age=60", true),
        ("Cache-Control: max-age=60\nAge: 70", true),
        ("Cache-Control: max-age=60\nPragma: no-cache", true),
        ("Cache-Control: max-age=60\nSet-Cookie: a=b", false),
        ("Cache-Control: max-age=60\nVary: X-A", true),
        ("Cache-Control: max-age=60\nVary: *", false),
        ("Cache-Control: max-age=60\nStatus: 404", true),
        ("Cache-Control: max-age=60\nStatus: 500", true),
        ("X-Accel-Expires: 60", true),
        ("X-Accel-Expires: 0", false),
        ("X-Accel-Expires: @0", false),
        ("X-Accel-Expires: x\nCache-Control: max-age=60", true),
        ("X-Accel-Expires: 60\nCache-Control: no-store", true),
        ("Cache-Control: no-store\nX-Accel-Expires: 60", true),
        ("X-Accel-Expires: 0\nCache-Control: max-age=60", false),
        ("Expires: FUTURE", true),
        ("Expires: PAST", false),
        ("Expires: 0", false),
        ("Expires: nonsense", false),
        ("Expires: PAST\nCache-Control: max-age=60", true),
        ("Cache-Control: max-age=60\nExpires: PAST", true),
        ("Expires: FUTURE\nCache-Control: max-age=0", false),
        ("Expires: FUTURE\nCache-Control: no-cache", false),
        ("CDN-Cache-Control: max-age=60", false),
        ("Surrogate-Control: max-age=60", false),
        ("X-LiteSpeed-Cache-Control: public, max-age=60", false),
        ("Cache-Control: max-age=60\nDate: PAST", true),
        ("Last-Modified: PAST", false),
    ];
    let rows =
        rows.map(|(head, kept)| (head.replace("FUTURE", &future).replace("PAST", &past), kept));
    keeps(&zone(""), &rows);
}

#[test]
fn statuses_have_their_times() {
    let lab =
        zone("fastcgi_cache_valid 1m; fastcgi_cache_valid 404 1m; fastcgi_cache_valid 410 0;");
    let rows = [
        ("", true),
        ("Status: 301\nLocation: /x", true),
        ("Status: 302\nLocation: /x", true),
        ("Status: 303\nLocation: /x", false),
        ("Status: 404", true),
        ("Status: 410", false),
        ("Status: 500", false),
        ("Cache-Control: private", false),
        ("Cache-Control: public", true),
        ("Cache-Control: foo", true),
        ("Set-Cookie: a=b", false),
        ("Vary: *", false),
        ("Expires: 0", false),
        ("Status: 206", false),
        ("Status: 204", false),
    ];
    keeps(&lab, &rows.map(|(head, kept)| (head.to_owned(), kept)));
}

#[test]
fn conditions_are_evaluated_for_storable_responses() {
    const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    let lab = zone("fastcgi_cache_valid 1m;");
    let head = format!("ETag: \"a\"\nLast-Modified: {MODIFIED}\nContent-Length: 10");
    let rows = [
        ("If-None-Match: \"a\"".to_owned(), 304, ""),
        ("If-None-Match: W/\"a\"".into(), 304, ""),
        ("If-None-Match: \"b\"".into(), 200, "0123456789"),
        (format!("If-Modified-Since: {MODIFIED}"), 304, ""),
        ("If-Modified-Since: Sun, 06 Nov 1994 08:49:38 GMT".into(), 200, "0123456789"),
    ];
    let mut failures = Vec::new();
    for (fields, status, body) in &rows {
        let path = lab.path();
        lab.app.plan(&path, vec![AppSaid::head(&head).body(b"0123456789")]);
        for wanted in ["MISS", "HIT"] {
            let found = lab.get_with(&path, &format!("{fields}\r\n"));
            let text = if found.status < 400 { found.text() } else { String::new() };
            let cached = found.header("x-status").unwrap_or_default();
            if (found.status, &*text, cached) != (*status, *body, wanted) {
                failures.push(format!("{wanted} {fields}: {} {text:?} {cached}", found.status));
            }
        }
        let asked = &lab.app.asked(&path)[0];
        for name in ["If-None-Match", "If-Modified-Since"] {
            assert_eq!(asked.field(name), None, "{fields}");
        }
        assert_eq!(lab.app.count(&path), 1, "{fields}");
    }
    report(rows.len() * 2, &failures);
}

#[test]
fn cache_control_of_requests_is_ignored_in_zones() {
    let lab = zone("fastcgi_cache_valid 1m;");
    for fields in [
        "Cache-Control: no-cache",
        "Cache-Control: no-store",
        "Cache-Control: only-if-cached",
        "Pragma: no-cache",
        "Authorization: Basic YTpi",
        "Cookie: a=b",
    ] {
        let path = lab.page("");
        let runs: Vec<_> =
            (0..2).map(|_| run(&lab.get_with(&path, &format!("{fields}\r\n")))).collect();
        assert_eq!(runs, [1, 1], "{fields}");
    }
    // An unsafe request does not invalidate.
    let path = lab.page("");
    assert_eq!(run(&lab.get(&path)), 1);
    assert_eq!(run(&lab.send("POST", &path, "x")), 2);
    assert_eq!(run(&lab.get(&path)), 1);
}

#[test]
fn each_value_of_a_field_has_its_answer() {
    let lab = zone("fastcgi_cache_valid 1m;");
    let path = lab.page("Vary: X-A");
    let ask = |fields: &str| run(&lab.get_with(&path, fields));
    assert_eq!((ask("X-A: 1\r\n"), ask("X-A: 1\r\n")), (1, 1));
    assert_eq!((ask("X-A: 2\r\n"), ask("X-A: 2\r\n")), (2, 2));
    assert_eq!((ask("x-a: 1\r\n"), ask("")), (1, 3));
}

#[test]
fn strict_zones_store_what_nginx_does_not() {
    let lab = zone("fastcgi_cache_valid 1m; cache_rfc9111 on;");
    // RFC 9111 §3.5
    for (head, kept) in [
        ("Cache-Control: max-age=60", false),
        ("", false),
        ("Cache-Control: public, max-age=60", true),
        ("Cache-Control: max-age=60, must-revalidate", true),
        ("Cache-Control: s-maxage=60", true),
    ] {
        assert_eq!(lab.keeps_for(head, "Authorization: Basic YTpi\r\n"), kept, "{head}");
    }
    // RFC 9111 §4.2.3, §5.1
    assert!(!lab.keeps("Cache-Control: max-age=60\nAge: 70"));
    let date = http_date(-30);
    let path = lab.page(&format!("Cache-Control: max-age=600\nAge: 100\nDate: {date}"));
    assert_eq!(run(&lab.get(&path)), 1);
    let kept = lab.get(&path);
    assert_eq!((run(&kept), kept.header("date")), (1, Some(&*date)));
    let age: u32 = kept.header("age").expect("an age").parse().unwrap();
    assert!((100..400).contains(&age), "{age}");
    let fields = kept.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("date"));
    assert_eq!(fields.count(), 1);
    // RFC 9111 §4.4
    let renews = |method: &str, head: &str| {
        let path = lab.pages(&["Cache-Control: max-age=60", head, "Cache-Control: max-age=60"]);
        assert_eq!(run(&lab.get(&path)), 1);
        assert_eq!(run(&lab.send(method, &path, "x")), 2);
        run(&lab.get(&path)) == 3
    };
    assert!(renews("POST", "Status: 200") && renews("PUT", "Status: 201"));
    assert!(renews("DELETE", "Status: 303\nLocation: /x"));
    assert!(!renews("POST", "Status: 400") && !renews("POST", "Status: 500"));
}

#[test]
fn a_confirmation_renews_the_fields_at_once() {
    let lab = zone("fastcgi_cache_revalidate on;");
    let path = lab.pages(&[
        "Cache-Control: max-age=1\nETag: \"a\"\nX-New: no\nX-Old: stays",
        "Status: 304\nCache-Control: max-age=60\nX-New: yes",
    ]);
    assert_eq!(run(&lab.get(&path)), 1);
    bolide_testkit::pause(1100);
    for status in ["REVALIDATED", "HIT"] {
        let reply = lab.get(&path);
        assert_eq!((reply.status, run(&reply)), (200, 1));
        let shown = ["x-status", "x-new", "x-old", "etag"].map(|name| reply.header(name));
        assert_eq!(shown, [Some(status), Some("yes"), Some("stays"), Some("\"a\"")]);
    }
    // A 304 with `no-store` is valid for this client alone.
    let path = lab.pages(&[
        "Cache-Control: max-age=1\nETag: \"a\"\nX-New: no",
        "Status: 304\nCache-Control: no-store\nX-New: yes",
    ]);
    assert_eq!(run(&lab.get(&path)), 1);
    bolide_testkit::pause(1100);
    let reply = lab.get(&path);
    assert_eq!((reply.status, run(&reply), reply.header("x-new")), (200, 1, Some("yes")));
}

/// A page that is kept and stale; the origin's 304 will be about another one, which it then sends.
fn confirmed_as_another(lab: &Lab, other: &str) -> String {
    let path = lab.pages(&[
        "Cache-Control: max-age=1\nETag: \"a\"",
        &format!("Status: 304\nCache-Control: max-age=60\n{other}"),
        &format!("Cache-Control: max-age=60\n{other}"),
    ]);
    assert_eq!(run(&lab.get(&path)), 1);
    bolide_testkit::pause(1100);
    path
}

#[test]
fn a_background_refresh_with_an_unfit_304_fetches_the_full_response() {
    let lab = zone(
        "fastcgi_cache_revalidate on; fastcgi_cache_background_update on;
         fastcgi_cache_use_stale updating;",
    );
    for other in ["ETag: \"b\"", "ETag: \"a\"\nVary: X-Lang"] {
        let path = confirmed_as_another(&lab, other);
        bolide_testkit::wait_until("the new page", || run(&lab.get(&path)) == 3);
        assert_eq!(lab.app.count(&path), 3, "{other}");
        assert_eq!(lab.app.asked(&path)[2].field("If-None-Match"), None, "{other}");
    }
}

#[test]
fn a_stale_page_is_served_if_the_full_request_fails() {
    let lab = zone("fastcgi_cache_revalidate on; fastcgi_cache_use_stale http_500;");
    let path = lab.pages(&[
        "Cache-Control: max-age=1\nETag: \"a\"",
        "Status: 304\nCache-Control: max-age=60\nETag: \"b\"",
        "Status: 500",
    ]);
    assert_eq!(run(&lab.get(&path)), 1);
    bolide_testkit::pause(1100);
    let second = lab.get(&path);
    assert_eq!((second.status, run(&second), lab.app.count(&path)), (200, 1, 3));
}

#[test]
fn a_confirmation_of_something_else_renews_nothing() {
    let lab = zone("fastcgi_cache_revalidate on;");
    for other in ["ETag: \"b\"", "ETag: \"a\"\nVary: X-Lang"] {
        let path = confirmed_as_another(&lab, other);
        let runs = [run(&lab.get(&path)), run(&lab.get(&path))];
        assert_eq!((runs, lab.app.count(&path)), ([3, 3], 3), "{other}");
        assert_eq!(lab.app.asked(&path)[2].field("If-None-Match"), None, "{other}");
    }
}
