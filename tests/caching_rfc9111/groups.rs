//! Tags that invalidate responses: `Cache-Groups` (RFC 9875) and similar fields.

use bolide_testkit::TestApp;

use super::{AUTO, Lab, PARAMS, run};

/// A cached page with these fields.
fn kept(lab: &Lab, head: &str) -> String {
    let path = lab.page(&format!("Cache-Control: max-age=60\n{head}"));
    assert_eq!(run(&lab.get(&path)), 1, "{head}");
    path
}

/// Whether it is still cached.
fn is_there(lab: &Lab, path: &str) -> bool {
    run(&lab.get(path)) == 1
}

#[test]
fn a_change_drops_the_groups_that_it_names() {
    let lab = Lab::auto();
    let rows = [
        ("POST", 200, "\"a\"", true),
        ("POST", 200, "\"x\", \"a\"", true),
        ("POST", 200, "\"a\";foo=1", true),
        ("POST", 302, "\"a\"", true),
        ("DELETE", 204, "\"a\"", true),
        ("POST", 500, "\"a\"", false),
        ("POST", 404, "\"a\"", false),
        ("GET", 200, "\"a\"", false),
        ("POST", 200, "\"A\"", false),
        ("POST", 200, "a", false),
        ("POST", 200, "\"a", false),
        ("POST", 200, "\"x\", a", false),
    ];
    for (method, status, groups, expected) in rows {
        let (one, other) = (kept(&lab, "Cache-Groups: \"a\", \"b\""), kept(&lab, ""));
        let head = format!("Status: {status}\nCache-Group-Invalidation: {groups}");
        let changed = lab.page(&head);
        assert_eq!(lab.ask(method, &changed, "").status, status);
        assert_eq!(!is_there(&lab, &one), expected, "{method} {head}");
        assert!(is_there(&lab, &other), "{head}");
    }
}

#[test]
fn all_names_are_in_one_index() {
    let lab = Lab::auto();
    let fields = [
        "Cache-Groups: \"x\", \"one\"",
        "Surrogate-Key: x one y",
        "xkey: one x",
        "xkey: x\nxkey: one",
        "Cache-Tag: x, one",
        "Cache-Tags: x,one",
        "Edge-Cache-Tag: one,x",
        "X-Cache-Tags: x one",
        "X-Magento-Tags: x,one",
        "X-LiteSpeed-Tag: x,one",
    ];
    for order in ["X-LiteSpeed-Purge: tag=one", "Cache-Group-Invalidation: \"one\""] {
        let paths: Vec<String> = fields.iter().map(|field| kept(&lab, field)).collect();
        let other = kept(&lab, "Cache-Groups: \"two\"\nSurrogate-Key: ones");
        let changed = lab.page(order);
        assert_eq!(lab.send("POST", &changed, "x").status, 200);
        for (path, field) in paths.iter().zip(fields) {
            assert!(!is_there(&lab, path), "{field} {order}");
        }
        assert!(is_there(&lab, &other));
    }
}

#[test]
fn purge_by_group_reports_its_count() {
    let lab = Lab::auto();
    let all = ["Surrogate-Key", "xkey", "Cache-Tag", "Cache-Tags", "X-Cache-Tags", "xkey-purge"];
    for field in all {
        let paths: Vec<String> =
            ["Surrogate-Key: a b", "xkey: a", "Cache-Groups: \"b\""].map(|f| kept(&lab, f)).into();
        let other = kept(&lab, "xkey: c");
        let answer = lab.ask("PURGE", "/", &format!("{field}: a\r\n"));
        assert_eq!(answer.status, 200, "{field}");
        assert_eq!(answer.header("x-purged-objects"), Some("2"), "{field} {answer:?}");
        let found: Vec<bool> = paths.iter().map(|path| is_there(&lab, path)).collect();
        assert_eq!(found, [false, false, true], "{field}");
        assert!(is_there(&lab, &other), "{field}");
        // Two were fetched again, one of them with the other tag.
        let answer = lab.ask("PURGE", "/", &format!("{field}: b\r\n"));
        assert_eq!(answer.header("x-purged-objects"), Some("2"), "{field}");
        let answer = lab.ask("PURGE", "/", &format!("{field}:\r\n"));
        assert_eq!(answer.header("x-purged-objects"), Some("0"), "{field}");
        let _gone = lab.ask("PURGE", "/", &format!("{field}: a\r\n"));
    }
    let path = kept(&lab, "");
    let answer = lab.ask("PURGE", &path, "");
    assert_eq!(answer.header("x-purged-objects"), Some("1"));
    assert_eq!(lab.ask("PURGE", &path, "").header("x-purged-objects"), Some("0"));
}

#[test]
fn a_soft_purge_makes_stale() {
    let lab = Lab::new("page_cache auto; page_cache_stale 1h;");
    for (method, field) in [("PURGE", "xkey-softpurge"), ("REFRESH", "Surrogate-Key")] {
        let path = kept(&lab, &format!("xkey: {field}"));
        let answer = lab.ask(method, "/", &format!("{field}: {field}\r\n"));
        assert_eq!(answer.header("x-purged-objects"), Some("1"), "{field}");
        assert_eq!(run(&lab.get(&path)), 1, "{field}");
        bolide_testkit::wait_until("the page to be renewed", || run(&lab.get(&path)) == 2);
    }
}

#[test]
fn names_reach_no_other_site() {
    let other = TestApp::start();
    let block = format!(
        "server {{ listen 127.0.0.1:@HTTP@; server_name other.test;
             location / {{ {PARAMS} fastcgi_pass {}; {AUTO} }} }}",
        other.address()
    );
    let lab = Lab::with(&block, AUTO);
    let path = kept(&lab, "xkey: a");
    other.say(&path, "Cache-Control: max-age=60\nxkey: a");
    let ask = |method: &str, fields: &str| {
        let mut client = lab.server.connect();
        client.ask(&format!("{method} {path} HTTP/1.1\r\nHost: other.test\r\nA: a{fields}"))
    };
    assert_eq!((run(&ask("GET", "")), other.count(&path)), (1, 1));
    assert_eq!(ask("PURGE", "\r\nxkey: a").header("x-purged-objects"), Some("1"));
    assert_eq!(run(&ask("GET", "")), 2);
    assert_eq!(ask("PURGE", "").header("x-purged-objects"), Some("1"));
    assert!(is_there(&lab, &path));
}
