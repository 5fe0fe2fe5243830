//! Ranges of cached responses, and partial responses from upstream (RFC 9110 §14, RFC 9111 §3.3).

use bolide_testkit::AppSaid;

use super::{Lab, run};
use crate::report;

const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

#[test]
fn a_cached_response_answers_ranges() {
    let lab = Lab::auto();
    let path = lab.path();
    let head = format!("Cache-Control: max-age=60\nETag: \"a\"\nLast-Modified: {MODIFIED}");
    lab.app.plan(&path, vec![AppSaid::head(&head).body(b"0123456789")]);
    assert_eq!(lab.get(&path).text(), "0123456789");
    let whole = (200, "0123456789", None);
    let part = (206, "234", Some("bytes 2-4/10"));
    let rows = [
        ("Range: bytes=2-4".to_owned(), part),
        ("range: BYTES=2-4".into(), part),
        ("Range: bytes=2-".into(), (206, "23456789", Some("bytes 2-9/10"))),
        ("Range: bytes=-3".into(), (206, "789", Some("bytes 7-9/10"))),
        ("Range: bytes=0-99".into(), (206, "0123456789", Some("bytes 0-9/10"))),
        ("Range: bytes=10-".into(), (416, "", Some("bytes */10"))),
        ("Range: bytes=99-100".into(), (416, "", Some("bytes */10"))),
        ("Range: bytes=4-2".into(), (416, "", Some("bytes */10"))),
        ("Range: bytes=x-y".into(), (416, "", Some("bytes */10"))),
        ("Range: bytes".into(), whole),
        ("Range: lines=2-4".into(), whole),
        ("Range: bytes=2-4\r\nIf-Range: \"a\"".into(), part),
        ("Range: bytes=2-4\r\nIf-Range: \"b\"".into(), whole),
        ("Range: bytes=2-4\r\nIf-Range: W/\"a\"".into(), whole),
        (format!("Range: bytes=2-4\r\nIf-Range: {MODIFIED}"), part),
        ("Range: bytes=2-4\r\nIf-Range: Sun, 06 Nov 1994 08:49:38 GMT".into(), whole),
        ("Range: bytes=2-4\r\nIf-Range: nonsense".into(), whole),
        ("Range: bytes=2-4\r\nIf-None-Match: \"a\"".into(), (304, "", None)),
        ("Range: bytes=2-4\r\nIf-Match: \"b\"".into(), (412, "", None)),
    ];
    let mut failures = Vec::new();
    for (fields, expected) in &rows {
        let found = lab.get_with(&path, &format!("{fields}\r\n"));
        let text = if found.status < 300 { found.text() } else { String::new() };
        let found = (found.status, &*text, found.header("content-range"));
        if found != *expected {
            failures.push(format!("{fields}: {found:?} instead of {expected:?}"));
        }
    }
    report(rows.len(), &failures);
    let parts = lab.get_with(&path, "Range: bytes=0-1,4-5\r\n");
    let (kind, text) = (parts.header("content-type").unwrap_or_default(), parts.text());
    assert!(parts.status == 206 && kind.starts_with("multipart/byteranges; "), "{parts:?}");
    let [first, second] = ["0-1/10\r\n\r\n01\r\n--", "4-5/10\r\n\r\n45\r\n--"];
    assert!(text.contains(first) && text.contains(second), "{text}");
    assert_eq!(lab.app.count(&path), 1);
    let head = lab.ask("HEAD", &path, "Range: bytes=2-4\r\n");
    assert!(matches!(head.status, 200 | 206), "{head:?}");
}

#[test]
fn a_range_of_a_cacheable_page_is_fetched_whole() {
    let lab = Lab::auto();
    let path = lab.path();
    let head = "Cache-Control: max-age=60\nContent-Length: 10";
    lab.app.plan(&path, vec![AppSaid::head(head).body(b"0123456789")]);
    let first = lab.get_with(&path, "Range: bytes=2-4\r\n");
    assert_eq!((first.status, &*first.text()), (206, "234"), "{first:?}");
    assert_eq!(lab.app.asked(&path)[0].field("Range"), None);
    assert_eq!(lab.get(&path).text(), "0123456789");
    assert_eq!(lab.app.count(&path), 1);
}

#[test]
fn a_distant_range_is_forwarded_to_the_application() {
    let lab = Lab::new(&format!("{} page_cache_max_object 1k;", super::AUTO));
    let part = AppSaid::head("Status: 206\nCache-Control: max-age=60\nContent-Range: bytes 5-7/9");
    for range in ["bytes=1024-", "bytes=999999999999-", "bytes=-5", "lines=1-2"] {
        let path = lab.path();
        lab.app.plan(&path, vec![part.clone().body(b"far")]);
        let found = lab.get_with(&path, &format!("Range: {range}\r\nIf-Range: \"a\"\r\n"));
        assert_eq!((found.status, &*found.text()), (206, "far"), "{range}");
        let asked = lab.app.asked(&path);
        assert_eq!(
            (asked[0].field("Range"), asked[0].field("If-Range")),
            (Some(range), Some("\"a\""))
        );
        // A partial response is not sent to other clients.
        lab.app.say(&path, "Cache-Control: max-age=60");
        assert_eq!((run(&lab.get(&path)), run(&lab.get(&path))), (1, 1), "{range}");
        // Ranges of the stored response.
        let found = lab.get_with(&path, "Range: bytes=-1\r\n");
        assert_eq!((found.status, &*found.text(), lab.app.count(&path)), (206, "1", 1));
    }
    let path = lab.page("Cache-Control: max-age=60");
    lab.get_with(&path, "Range: bytes=1023-\r\n");
    assert_eq!(lab.app.asked(&path)[0].field("Range"), None);
}

#[test]
fn a_206_of_an_upstream_is_never_stored() {
    let lab = Lab::auto();
    let path = lab.path();
    let part = AppSaid::head(
        "Status: 206\nCache-Control: max-age=60\nContent-Range: bytes 2-4/10\nETag: \"a\"",
    );
    lab.app.plan(&path, vec![part.body(b"234"), AppSaid::head("Cache-Control: no-store")]);
    assert_eq!(lab.get_with(&path, "Range: bytes=2-4\r\n").status, 206);
    assert_eq!(run(&lab.get(&path)), 2);
    // A 200 with Content-Range is not partial; nor is a 206 complete for a bypass.
    let path = lab.page("Status: 206\nCache-Control: max-age=60");
    assert_eq!(run(&lab.get(&path)), 1);
    assert_eq!(run(&lab.get(&path)), 2);
    let path = lab.page("Status: 416\nCache-Control: max-age=60\nContent-Range: bytes */10");
    assert_eq!(run(&lab.get(&path)), 1);
    assert_eq!(run(&lab.get(&path)), 2);
}

#[test]
fn only_whole_bodies_have_parts() {
    let lab = Lab::auto();
    for status in [404, 301] {
        let path =
            lab.page(&format!("Status: {status}\nCache-Control: max-age=60\nLocation: /elsewhere"));
        lab.get(&path);
        let found = lab.get_with(&path, "Range: bytes=0-1\r\n");
        assert_eq!((found.status, run(&found)), (status, 1));
    }
}

#[test]
fn many_ranges_cost_no_more_than_the_whole() {
    let lab = Lab::auto();
    let path = lab.path();
    let body = bolide_testkit::site::noise(200_000, 3);
    lab.app.plan(&path, vec![AppSaid::head("Cache-Control: max-age=60").body(&body)]);
    lab.get(&path);
    let ranges: Vec<String> = (0..300).map(|n| format!("{n}-")).collect();
    let found = lab.get_with(&path, &format!("Range: bytes={}\r\n", ranges.join(",")));
    assert!(found.body.len() <= 2 * body.len(), "{}", found.body.len());
    assert!(matches!(found.status, 200 | 206 | 416), "{}", found.status);
}
