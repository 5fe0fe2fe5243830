//! Conditional requests for cached responses (RFC 9110 §13, RFC 9111 §4.3.2).

use bolide_testkit::AppSaid;

use super::{Lab, run};
use crate::report;

const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

#[test]
fn a_cached_response_evaluates_conditions() {
    let lab = Lab::auto();
    let both = lab.page(&format!(
        "Cache-Control: max-age=60\nETag: \"a\"\nLast-Modified: {MODIFIED}\nVary: X-A"
    ));
    let weak = lab.page("Cache-Control: max-age=60\nETag: W/\"a\"");
    let dated = lab.page(&format!("Cache-Control: max-age=60\nLast-Modified: {MODIFIED}"));
    let bare = lab.page("Cache-Control: max-age=60");
    let odd = lab.page("Cache-Control: max-age=60\nETag: \"a,b c\"");
    let (same, later, earlier) =
        (MODIFIED, "Sun, 06 Nov 1994 08:49:38 GMT", "Sun, 06 Nov 1994 08:49:36 GMT");
    let rows = [
        (&both, "If-None-Match: \"a\"".to_owned(), 304),
        (&both, "If-None-Match: W/\"a\"".into(), 304),
        (&both, "If-None-Match: *".into(), 304),
        (&both, "If-None-Match: \"b\", \"a\"".into(), 304),
        (&both, "If-None-Match: \"b\",W/\"a\" , \"c\"".into(), 304),
        (&both, "If-None-Match: \"b\"".into(), 200),
        (&both, "If-None-Match: a".into(), 200),
        (&both, "If-None-Match: \"A\"".into(), 200),
        (&both, "If-None-Match: \"a".into(), 200),
        (&both, "If-None-Match: \"\"".into(), 200),
        (&both, format!("If-None-Match: \"b\"\r\nIf-Modified-Since: {same}"), 200),
        (&both, format!("If-None-Match: \"a\"\r\nIf-Modified-Since: {earlier}"), 304),
        (&both, format!("If-Modified-Since: {same}"), 304),
        (&both, format!("If-Modified-Since: {later}"), 304),
        (&both, format!("If-Modified-Since: {earlier}"), 200),
        (&both, "If-Modified-Since: nonsense".into(), 200),
        (&both, "If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT".into(), 304),
        (&both, "If-Match: \"a\"".into(), 200),
        (&both, "If-Match: *".into(), 200),
        (&both, "If-Match: \"b\"".into(), 412),
        (&both, "If-Match: W/\"a\"".into(), 412),
        (&both, format!("If-Unmodified-Since: {same}"), 200),
        (&both, format!("If-Unmodified-Since: {earlier}"), 412),
        (&weak, "If-None-Match: \"a\"".into(), 304),
        (&weak, "If-None-Match: W/\"a\"".into(), 304),
        (&weak, "If-Match: W/\"a\"".into(), 412),
        (&dated, "If-None-Match: \"a\"".into(), 200),
        (&dated, format!("If-Modified-Since: {same}"), 304),
        (&dated, format!("If-Modified-Since: {earlier}"), 200),
        (&bare, "If-None-Match: \"a\"".into(), 200),
        (&bare, format!("If-Modified-Since: {same}"), 200),
        (&odd, "If-None-Match: \"a\", \"b c\"".into(), 200),
        (&odd, "If-None-Match: \"x\", \"a,b c\"".into(), 304),
    ];
    for path in [&both, &weak, &dated, &bare, &odd] {
        assert_eq!(run(&lab.get(path)), 1);
    }
    let mut failures = Vec::new();
    for (path, fields, expected) in &rows {
        let found = lab.get_with(path, &format!("{fields}\r\n"));
        if found.status != *expected {
            failures.push(format!("{fields}: {} instead of {expected}", found.status));
        }
        assert_eq!(lab.app.count(path), 1, "{fields}");
    }
    report(rows.len(), &failures);
}

#[test]
fn a_304_has_validators_and_no_representation_metadata() {
    let lab = Lab::auto();
    let path = lab.page(&format!(
        "Cache-Control: max-age=60\nETag: \"a\"\nLast-Modified: {MODIFIED}\nVary: X-A\n\
         Content-Location: /other\nExpires: Sun, 06 Nov 2094 08:49:37 GMT\n\
         Content-Type: text/html\nContent-Language: en"
    ));
    lab.get(&path);
    let found = lab.get_with(&path, "If-None-Match: \"a\"\r\n");
    assert_eq!((found.status, found.text()), (304, String::new()));
    for name in ["etag", "cache-control", "vary", "content-location", "expires", "date", "age"] {
        assert!(found.header(name).is_some(), "{name}: {found:?}");
    }
    for name in ["content-length", "content-type", "transfer-encoding"] {
        assert_eq!(found.header(name), None, "{name}");
    }
    assert_eq!(lab.app.count(&path), 1);
}

#[test]
fn conditions_are_about_answers_that_went_well() {
    let lab = Lab::auto();
    for status in [404, 410, 302] {
        let path = lab.page(&format!(
            "Status: {status}\nLocation: /x\nCache-Control: max-age=60\nETag: \"a\""
        ));
        lab.get(&path);
        let found = lab.get_with(&path, "If-None-Match: \"a\"\r\n");
        assert_eq!((found.status, lab.app.count(&path)), (status, 1));
    }
}

#[test]
fn conditions_of_the_first_request_are_evaluated_by_the_cache() {
    let lab = Lab::auto();
    // Cacheable or not, the upstream request is unconditional.
    for control in ["max-age=60", "no-store"] {
        let path = lab.page(&format!("Cache-Control: {control}\nETag: \"a\""));
        let found = lab.get_with(&path, "If-None-Match: \"a\"\r\n");
        assert_eq!((found.status, found.text()), (304, String::new()), "{control}");
        let asked = lab.app.asked(&path);
        assert_eq!(asked[0].field("If-None-Match"), None, "{control}");
    }
    let path = lab.page("Cache-Control: max-age=60\nETag: \"a\"");
    assert_eq!(lab.get_with(&path, "If-None-Match: \"b\"\r\n").status, 200);
    assert_eq!(lab.get_with(&path, "If-None-Match: \"a\"\r\n").status, 304);
    assert_eq!(run(&lab.get(&path)), 1);
    // The preconditions of a coalesced request are evaluated, too.
    let path = lab.page("Cache-Control: max-age=60\nETag: \"a\"");
    lab.app.hold(&path);
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n");
    let (mut first, mut second) = (lab.server.connect(), lab.server.connect());
    first.send(format!("{request}\r\n"));
    bolide_testkit::wait_until("the application to be asked", || lab.app.count(&path) == 1);
    second.send(format!("{request}If-None-Match: \"a\"\r\n\r\n"));
    assert_eq!(lab.get("/other").status, 200);
    lab.app.release();
    assert_eq!((run(&first.answer()), second.answer().status), (1, 304));
    assert_eq!(lab.app.count(&path), 1);
    // A large body is cached even if the client does not get it.
    let path = lab.path();
    let large = AppSaid::head("Cache-Control: max-age=60\nETag: \"a\"").body(&[b'x'; 300_000]);
    lab.app.plan(&path, vec![large]);
    assert_eq!(lab.get_with(&path, "If-None-Match: \"a\"\r\n").status, 304);
    bolide_testkit::wait_until("the whole answer to be kept", || {
        let whole = lab.get(&path);
        assert_eq!(whole.body.len(), 300_000);
        whole.header("cache-status").is_some_and(|value| value.contains("; hit"))
    });
    assert_eq!(lab.app.count(&path), 1);
}
