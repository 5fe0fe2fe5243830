//! The methods that are served from the cache, and those whose responses are stored.

use bolide_testkit::Proto;

use super::{Lab, run};

const KEEP: &str = "Cache-Control: max-age=60\nETag: \"a\"\nX-Test: 1";

#[test]
fn head_is_answered_from_a_stored_get() {
    let lab = Lab::auto();
    let path = lab.page(KEEP);
    let got = lab.get(&path);
    let head = lab.ask("HEAD", &path, "");
    assert_eq!((head.status, head.header("content-length")), (200, Some("5")));
    for name in ["etag", "x-test", "cache-control", "content-type"] {
        assert_eq!(head.header(name), got.header(name), "{name}");
    }
    assert!(head.header("age").is_some());
    assert_eq!(lab.ask("HEAD", &path, "If-None-Match: \"a\"\r\n").status, 304);
    assert_eq!(lab.app.count(&path), 1);
}

#[test]
fn head_leaves_nothing() {
    let lab = Lab::auto();
    let path = lab.pages(&[KEEP, "Cache-Control: max-age=60\nETag: \"b\""]);
    assert_eq!(lab.ask("HEAD", &path, "").status, 200);
    assert_eq!(lab.app.asked(&path)[0].method(), "HEAD");
    // HEAD has no body to store, and does not change the stored response.
    assert_eq!(run(&lab.get(&path)), 2);
    let head = lab.ask("HEAD", &path, "");
    assert_eq!((head.header("etag"), lab.app.count(&path)), (Some("\"b\""), 2));
    assert_eq!(run(&lab.get(&path)), 2);
}

#[test]
fn other_methods_reach_the_application_and_leave_nothing() {
    let lab = Lab::auto();
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "FOO"] {
        let path = lab.page(KEEP);
        for turn in 1..=2 {
            assert_eq!(run(&lab.send(method, &path, "x")), turn, "{method}");
            assert_eq!(lab.app.asked(&path)[turn - 1].method(), method);
        }
        assert_eq!(run(&lab.get(&path)), 3, "{method}");
    }
}

#[test]
fn a_get_with_a_body_does_not_share_the_response_of_a_plain_get() {
    let lab = Lab::auto();
    let path = lab.page(KEEP);
    assert_eq!(run(&lab.send("GET", &path, "poison")), 1);
    assert_eq!(run(&lab.get(&path)), 2, "the response to a body is not stored");
    assert_eq!(run(&lab.send("GET", &path, "other")), 3, "nor does it get what is kept");
    assert_eq!(lab.app.asked(&path)[2].body, b"other");
    assert_eq!(run(&lab.get(&path)), 2);
}

#[test]
fn every_protocol_is_answered_out_of_one_store() {
    let lab = Lab::auto();
    let tls = lab.page(KEEP);
    let plain = lab.page(KEEP);
    for proto in [Proto::H1, Proto::H2, Proto::H3, Proto::H2c] {
        let path = if proto == Proto::H2c { &plain } else { &tls };
        let url = lab.server.url(proto, path);
        let ask = || lab.server.curl(proto);
        let got = ask().get(&url);
        assert_eq!((got.status, &*got.text()), (200, "run 1"), "{proto:?}");
        let unchanged = ask().field("If-None-Match: \"a\"").get(&url);
        assert_eq!((unchanged.status, unchanged.body.len()), (304, 0), "{proto:?}");
        let part = ask().field("Range: bytes=0-2").get(&url);
        assert_eq!((part.status, &*part.text()), (206, "run"), "{proto:?}");
        let head = ask().args(["--head"]).get(&url);
        assert_eq!((head.status, head.header("content-length")), (200, Some("5")), "{proto:?}");
        assert!(head.header("cache-status").is_some_and(|value| value.contains("; hit")));
        assert_eq!(lab.app.count(path), 1, "{proto:?}");
    }
}

#[test]
fn queries_are_part_of_the_address() {
    let lab = Lab::auto();
    let path = lab.path();
    for query in ["?a=1", "?a=2", "?a=1&b=2", "?b=2&a=1", "?", "?A=1"] {
        lab.app.say(&format!("{path}{query}"), KEEP);
        assert_eq!(run(&lab.get(&format!("{path}{query}"))), 1, "{query}");
        assert_eq!(lab.app.count(&format!("{path}{query}")), 1, "{query}");
    }
    // Hosts never share.
    let other = lab.page(KEEP);
    let ask = |host: &str| {
        let mut client = lab.server.connect();
        client.ask(&format!("GET {other} HTTP/1.1\r\nHost: {host}"))
    };
    assert_eq!((run(&ask("a.test")), run(&ask("b.test")), run(&ask("a.test"))), (1, 2, 1));
    // Nor do two spellings of a host: the application sees the difference.
    assert_eq!((run(&ask("A.test")), run(&ask("A.test"))), (3, 3));
}
