//! Cache directives of requests (RFC 9111 §5.2.1), and that they are ignored by default.

use super::{AUTO, Lab, run};

const KEEP: &str = "Cache-Control: max-age=100\nAge: 50";

fn respecting() -> Lab {
    Lab::new(&format!("{AUTO} page_cache_respect_request on;"))
}

/// The status and run number for these fields, with a cached page of 50 seconds that is fresh for
/// 50 more.
fn found(lab: &Lab, fields: &str) -> (u16, usize) {
    let path = lab.page(KEEP);
    assert_eq!(run(&lab.get(&path)), 1);
    let answer = lab.get_with(&path, &format!("{fields}\r\n"));
    let run = if answer.status == 200 { run(&answer) } else { 0 };
    (answer.status, run)
}

#[test]
fn cache_control_of_a_request_counts_where_it_is_respected() {
    let lab = respecting();
    let rows = [
        ("Cache-Control: no-cache", (200, 2)),
        ("Cache-Control: No-Cache", (200, 2)),
        ("Cache-Control: foo, no-cache", (200, 2)),
        ("Cache-Control: no-store", (200, 2)),
        ("Cache-Control: max-age=0", (200, 2)),
        ("Cache-Control: max-age=40", (200, 2)),
        ("Cache-Control: max-age=80", (200, 1)),
        ("Cache-Control: max-age=x", (200, 2)),
        ("Cache-Control: min-fresh=20", (200, 1)),
        ("Cache-Control: min-fresh=80", (200, 2)),
        ("Cache-Control: only-if-cached", (200, 1)),
        ("Cache-Control: only-if-cached, max-age=40", (504, 0)),
        ("Cache-Control: max-stale", (200, 1)),
        ("Cache-Control: foo", (200, 1)),
        ("Pragma: no-cache", (200, 2)),
        ("Pragma: no-cache\r\nCache-Control: foo", (200, 1)),
        ("Pragma: foo", (200, 1)),
    ];
    for (fields, expected) in rows {
        assert_eq!(found(&lab, fields), expected, "{fields}");
    }
}

#[test]
fn by_default_cache_control_of_a_request_is_ignored() {
    let lab = Lab::auto();
    for fields in [
        "Cache-Control: no-cache",
        "Cache-Control: no-store",
        "Cache-Control: max-age=0",
        "Cache-Control: min-fresh=1000",
        "Cache-Control: only-if-cached, max-age=0",
        "Pragma: no-cache",
    ] {
        assert_eq!(found(&lab, fields), (200, 1), "{fields}");
    }
    let path = lab.page(KEEP);
    assert_eq!(run(&lab.get_with(&path, "Cache-Control: only-if-cached\r\n")), 1);
}

#[test]
fn a_response_to_a_no_cache_request_is_stored_for_all_clients() {
    let lab = respecting();
    let path = lab.page(KEEP);
    assert_eq!(run(&lab.get(&path)), 1);
    assert_eq!(run(&lab.get_with(&path, "Cache-Control: no-cache\r\n")), 2);
    assert_eq!(run(&lab.get(&path)), 2);
    // `no-store` prevents storing, and leaves the stored response alone.
    assert_eq!(run(&lab.get_with(&path, "Cache-Control: no-store\r\n")), 3);
    assert_eq!(run(&lab.get(&path)), 2);
    let path = lab.page(KEEP);
    assert_eq!(run(&lab.get_with(&path, "Cache-Control: no-store\r\n")), 1);
    assert_eq!(run(&lab.get(&path)), 2);
}

#[test]
fn only_if_cached_gets_504_on_a_miss() {
    let lab = respecting();
    let path = lab.page(KEEP);
    assert_eq!(lab.get_with(&path, "Cache-Control: only-if-cached\r\n").status, 504);
    assert_eq!(lab.app.count(&path), 0);
    assert_eq!(run(&lab.get(&path)), 1);
    assert_eq!(lab.get_with(&path, "Cache-Control: only-if-cached\r\n").status, 200);
}

#[test]
fn max_stale_accepts_stale_responses() {
    let lab = respecting();
    let kept = |control: &str| lab.page(&format!("Cache-Control: max-age=1{control}\nETag: \"a\""));
    let (plain, strict) = (kept(""), kept(", must-revalidate"));
    let rows = [
        (&plain, "Cache-Control: max-stale=60", 1),
        (&plain, "Cache-Control: max-stale", 1),
        (&plain, "Cache-Control: only-if-cached, max-stale=60", 1),
        (&strict, "Cache-Control: max-stale=60", 2),
    ];
    for path in [&plain, &strict] {
        assert_eq!(run(&lab.get(path)), 1);
    }
    bolide_testkit::pause(1100);
    assert_eq!(lab.get_with(&plain, "Cache-Control: only-if-cached\r\n").status, 504);
    for (path, fields, expected) in rows {
        assert_eq!(run(&lab.get_with(path, &format!("{fields}\r\n"))), expected, "{fields}");
    }
    assert_eq!(run(&lab.get_with(&plain, "Cache-Control: max-stale=0\r\n")), 2);
}
