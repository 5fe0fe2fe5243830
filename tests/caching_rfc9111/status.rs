//! The statuses that are stored (RFC 9110 §15.1, RFC 9111 §3), and errors by configuration.

use super::{AUTO, Lab, keeps_all, run};

#[test]
fn any_final_status_with_explicit_freshness_is_stored() {
    let lab = Lab::auto();
    for status in [
        200, 201, 203, 204, 299, 300, 301, 302, 303, 307, 308, 399, 400, 403, 404, 405, 410, 414,
        418, 451, 499, 500, 501, 502, 503, 504, 599,
    ] {
        let extra = if status == 204 { "" } else { "\nLocation: /x" };
        let path = lab.page(&format!("Status: {status}\nCache-Control: max-age=60{extra}"));
        let first = lab.get(&path);
        let kept = lab.get(&path);
        assert_eq!((first.status, kept.status), (status, status));
        assert_eq!(lab.app.count(&path), 1, "{status}");
        assert_eq!(kept.body, first.body, "{status}");
    }
}

#[test]
fn an_unknown_status_is_not_stored_where_that_matters() {
    let rows = [
        ("Status: 299\nCache-Control: must-understand, max-age=60", false),
        ("Status: 599\nCache-Control: must-understand, max-age=60", false),
        ("Status: 299\nCache-Control: must-understand, no-store, max-age=60", false),
        ("Status: 404\nCache-Control: must-understand, no-store, max-age=60", true),
        ("Status: 206\nCache-Control: max-age=60", false),
        ("Status: 304\nCache-Control: max-age=60", false),
        ("Status: 416\nCache-Control: max-age=60", false),
    ];
    keeps_all(&Lab::auto(), &rows);
}

#[test]
fn no_status_is_stored_without_freshness() {
    let lab = Lab::auto();
    for status in [200, 301, 302, 404, 410, 500] {
        assert!(!lab.keeps(&format!("Status: {status}\nLocation: /x")), "{status}");
    }
}

#[test]
fn errors_are_stored_by_cache_valid() {
    let lab = Lab::new(&format!("{AUTO} page_cache_valid 404 410 1m; page_cache_valid 500 2s;"));
    let rows = [
        ("Status: 404", true),
        ("Status: 410", true),
        ("Status: 403", false),
        ("", false),
        ("Status: 404\nCache-Control: no-store", false),
        ("Status: 404\nCache-Control: private", false),
        ("Status: 404\nCache-Control: max-age=0", false),
        ("Status: 404\nSet-Cookie: a=b", false),
    ];
    keeps_all(&lab, &rows);
    let path = lab.page("Status: 500");
    assert_eq!((run(&lab.get(&path)), run(&lab.get(&path))), (1, 1));
    bolide_testkit::pause(2100);
    assert_eq!(run(&lab.get(&path)), 2);
    let any = Lab::new(&format!("{AUTO} page_cache_valid 302 0; page_cache_valid any 1m;"));
    assert!(any.keeps("Status: 403") && any.keeps("") && !any.keeps("Status: 302\nLocation: /x"));
    let short = Lab::new(&format!("{AUTO} page_cache_valid 1m;"));
    let rows = [("", true), ("Status: 301\nLocation: /x", true), ("Status: 404", false)];
    keeps_all(&short, &rows);
}
