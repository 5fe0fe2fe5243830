//! Revalidation of stale responses (RFC 9111 §4.3).

use bolide_testkit::{AppSaid, H1TestClient, Response};

use super::{Lab, run};

const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

/// Requests once, waits until the response is stale, and requests again.
fn twice(lab: &Lab, answers: &[&str], fields: &str) -> (String, Response) {
    let path = lab.pages(answers);
    assert_eq!(lab.get(&path).status, 200);
    bolide_testkit::pause(1100);
    let second = lab.get_with(&path, fields);
    (path, second)
}

#[test]
fn a_stale_answer_is_confirmed_by_its_tag() {
    let lab = Lab::auto();
    let first = "Cache-Control: max-age=1\nETag: \"a\"\nX-Test: 1\nX-Old: 1\nContent-Type: a/b";
    let confirmed = "Status: 304\nCache-Control: max-age=60\nETag: \"a\"\nX-Test: 2\nX-New: 1\n\
                     Content-Type: c/d\nContent-Encoding: x\nContent-Range: bytes 0-1/2\n\
                     Content-Length: 0";
    let (path, second) = twice(&lab, &[first, confirmed, "Status: 500"], "");
    assert_eq!(lab.app.asked(&path)[1].field("If-None-Match"), Some("\"a\""));
    for answer in [second, lab.get(&path)] {
        assert_eq!((answer.status, run(&answer)), (200, 1));
        for (name, value) in [
            ("cache-control", Some("max-age=60")),
            ("x-test", Some("2")),
            ("x-new", Some("1")),
            ("x-old", Some("1")),
            ("content-type", Some("a/b")),
            ("content-length", Some("5")),
            ("content-encoding", None),
            ("content-range", None),
            ("etag", Some("\"a\"")),
        ] {
            assert_eq!(answer.header(name), value, "{name}");
        }
        let age: u32 = answer.header("age").unwrap_or("0").parse().unwrap();
        assert!(age < 10, "{age}");
    }
    assert_eq!(lab.app.count(&path), 2);
}

#[test]
fn a_stale_answer_is_confirmed_by_its_date() {
    let lab = Lab::auto();
    let first = format!("Cache-Control: max-age=1\nLast-Modified: {MODIFIED}");
    let (path, second) =
        twice(&lab, &[&first, "Status: 304\nCache-Control: max-age=60", "Status: 500"], "");
    assert_eq!(run(&second), 1);
    let asked = lab.app.asked(&path);
    assert_eq!(asked[1].field("If-Modified-Since"), Some(MODIFIED));
    assert_eq!(asked[1].field("If-None-Match"), None);
    assert_eq!((run(&lab.get(&path)), lab.app.count(&path)), (1, 2));
}

#[test]
fn a_new_answer_takes_the_place_of_the_stale_one() {
    let lab = Lab::auto();
    let (path, second) = twice(
        &lab,
        &[
            "Cache-Control: max-age=1\nETag: \"a\"\nX-Old: 1",
            "Cache-Control: max-age=60\nETag: \"b\"",
            "Status: 500",
        ],
        "",
    );
    assert_eq!((run(&second), second.header("etag")), (2, Some("\"b\"")));
    let kept = lab.get(&path);
    assert_eq!((run(&kept), kept.header("x-old"), lab.app.count(&path)), (2, None, 2));
}

#[test]
fn a_304_that_is_about_something_else_confirms_nothing() {
    let lab = Lab::auto();
    let first = "Cache-Control: max-age=1\nETag: \"a\"";
    let other = "Status: 304\nCache-Control: max-age=60\nETag: \"b\"";
    let third = "Cache-Control: max-age=60\nETag: \"b\"";
    let (path, second) = twice(&lab, &[first, other, third, "Status: 500"], "");
    assert_eq!((second.status, run(&second), second.header("etag")), (200, 3, Some("\"b\"")));
    let asked = lab.app.asked(&path);
    assert_eq!(asked[2].field("If-None-Match"), None);
    assert_eq!((run(&lab.get(&path)), lab.app.count(&path)), (3, 3));
}

#[test]
fn after_an_unfit_304_waiting_requests_share_the_full_response() {
    let lab = Lab::auto();
    let first = "Cache-Control: max-age=1\nETag: \"a\"";
    let other = "Status: 304\nCache-Control: max-age=60\nETag: \"b\"";
    let third = "Cache-Control: max-age=60\nETag: \"b\"";
    let path = lab.pages(&[first, other, third, "Status: 500"]);
    assert_eq!(lab.get(&path).status, 200);
    bolide_testkit::pause(1100);
    lab.app.hold(&path);
    let runs: Vec<usize> = std::thread::scope(|scope| {
        let ask = |mut client: H1TestClient| {
            let path = &path;
            scope.spawn(move || run(&client.get(path, "")))
        };
        let all: Vec<_> = (0..6).map(|_| ask(lab.server.connect())).collect();
        bolide_testkit::wait_until("the first question", || lab.app.count(&path) >= 2);
        // The others join it meanwhile, or find what it brings.
        bolide_testkit::pause(300);
        lab.app.release();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!((runs, lab.app.count(&path)), (vec![3; 6], 3));
}

#[test]
fn after_an_unfit_304_each_request_fetches_itself_if_the_full_request_fails() {
    let lab = Lab::auto();
    let first = "Cache-Control: max-age=1\nETag: \"a\"";
    let other = "Status: 304\nCache-Control: max-age=60\nETag: \"b\"";
    let path = lab.pages(&[first, other, "Status: none"]);
    assert_eq!(lab.get(&path).status, 200);
    bolide_testkit::pause(1100);
    lab.app.hold(&path);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let ask = |mut client: H1TestClient| {
            let path = &path;
            scope.spawn(move || client.get(path, "").status)
        };
        let all: Vec<_> = (0..3).map(|_| ask(lab.server.connect())).collect();
        bolide_testkit::wait_until("the first question", || lab.app.count(&path) >= 2);
        bolide_testkit::pause(300);
        lab.app.release();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(statuses, [502; 3]);
    let asked = lab.app.asked(&path);
    let with_tag = asked.iter().filter(|one| one.field("If-None-Match").is_some()).count();
    assert_eq!((with_tag, asked.len()), (1, 5), "the second question fails for each");
}

#[test]
fn a_304_with_more_vary_fields_than_the_object_does_not_validate_it() {
    let lab = Lab::auto();
    let first = "Cache-Control: max-age=1\nETag: \"a\"";
    let more = "Status: 304\nCache-Control: max-age=60\nETag: \"a\"\nVary: X-Lang";
    let rest = "Cache-Control: max-age=60\nETag: \"a\"\nVary: X-Lang";
    let (path, second) = twice(&lab, &[first, more, rest, rest, "Status: 500"], "X-Lang: a\r\n");
    assert_eq!((second.status, run(&second)), (200, 3));
    assert_eq!(lab.app.asked(&path)[2].field("If-None-Match"), None);
    let runs =
        ["a", "b", "a"].map(|lang| run(&lab.get_with(&path, &format!("X-Lang: {lang}\r\n"))));
    assert_eq!((runs, lab.app.count(&path)), ([3, 4, 3], 4));
    // What is kept without a coding is for those who accept codings, too.
    let codings = more.replace("X-Lang", "Accept-Encoding");
    let (path, second) = twice(&lab, &[first, &codings, "Status: 500"], "");
    assert_eq!((run(&second), run(&lab.get(&path)), lab.app.count(&path)), (1, 1, 2));
}

#[test]
fn validators_of_the_client_do_not_replace_those_of_the_cache() {
    let lab = Lab::auto();
    let first = "Cache-Control: max-age=1\nETag: \"a\"";
    let confirmed = "Status: 304\nCache-Control: max-age=60";
    for (fields, status) in [
        ("If-None-Match: \"a\"\r\n", 304),
        ("If-None-Match: \"x\"\r\n", 200),
        ("If-Modified-Since: Sun, 06 Nov 2044 08:49:37 GMT\r\n", 200),
    ] {
        let (path, second) = twice(&lab, &[first, confirmed, "Status: 500"], fields);
        assert_eq!(second.status, status, "{fields}");
        let asked = lab.app.asked(&path);
        assert_eq!(asked[1].field("If-None-Match"), Some("\"a\""), "{fields}");
        assert_eq!(asked[1].field("If-Modified-Since"), None, "{fields}");
        assert_eq!((run(&lab.get(&path)), lab.app.count(&path)), (1, 2), "{fields}");
    }
    let (path, part) = twice(&lab, &[first, confirmed], "Range: bytes=0-2\r\n");
    assert_eq!((part.status, &*part.text()), (206, "run"));
    assert_eq!(lab.app.asked(&path)[1].field("Range"), None);
}

#[test]
fn a_304_may_forbid_to_store() {
    let lab = Lab::auto();
    let first = "Cache-Control: max-age=1\nETag: \"a\"";
    let (path, second) = twice(
        &lab,
        &[first, "Status: 304\nCache-Control: no-store", "Cache-Control: max-age=60"],
        "",
    );
    assert_eq!((second.status, run(&second)), (200, 1));
    assert_eq!((run(&lab.get(&path)), lab.app.count(&path)), (3, 3));
}

#[test]
fn without_a_validator_a_stale_page_is_fetched_unconditionally() {
    let lab = Lab::auto();
    let (path, second) = twice(&lab, &["Cache-Control: max-age=1"], "");
    assert_eq!(run(&second), 2);
    let asked = lab.app.asked(&path);
    assert_eq!(
        (asked[1].field("If-None-Match"), asked[1].field("If-Modified-Since")),
        (None, None)
    );
}

#[test]
fn a_failed_revalidation_is_an_error_unless_stale_is_allowed() {
    let lab = Lab::auto();
    for status in [500, 503, 404] {
        let failed = format!("Status: {status}");
        let (path, second) =
            twice(&lab, &["Cache-Control: max-age=1, must-revalidate\nETag: \"a\"", &failed], "");
        assert_eq!(second.status, status);
        assert_eq!(lab.app.count(&path), 2);
    }
}

#[test]
fn a_revalidated_object_keeps_its_tags_beside_those_of_the_304() {
    let lab = Lab::auto();
    let first = "Cache-Control: max-age=1\nETag: \"a\"\nSurrogate-Key: one\nxkey: two";
    let rows = [
        ("Status: 304\nCache-Control: max-age=60", "one"),
        ("Status: 304\nCache-Control: max-age=60", "two"),
        ("Status: 304\nCache-Control: max-age=60\nxkey: three", "three"),
        ("Status: 304\nCache-Control: max-age=60\nxkey: three", "one"),
        ("Status: 304\nCache-Control: max-age=60\nxkey: three", "two"),
    ];
    for (confirmed, tag) in rows {
        let (path, second) = twice(&lab, &[first, confirmed, "Cache-Control: max-age=60"], "");
        assert_eq!((run(&second), run(&lab.get(&path))), (1, 1));
        let purge = lab.page(&format!("X-LiteSpeed-Purge: tag={tag}"));
        lab.send("POST", &purge, "x");
        assert_eq!(run(&lab.get(&path)), 3, "{tag} {confirmed}");
    }
}

#[test]
fn many_confirmations_leave_the_body_alone() {
    let lab = Lab::auto();
    let path = lab.path();
    let whole = |control: &str| AppSaid::head(&format!("Cache-Control: {control}\nETag: \"a\""));
    let body: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let confirmed = AppSaid::head("Status: 304\nCache-Control: max-age=1\nETag: \"a\"");
    let plan = vec![whole("max-age=1").body(&body), confirmed.clone(), confirmed];
    lab.app.plan(&path, plan);
    assert_eq!(lab.get(&path).body, body);
    for _ in 0..2 {
        bolide_testkit::pause(1100);
        assert_eq!(lab.get(&path).body, body);
    }
    assert_eq!(lab.app.count(&path), 3);
}

#[test]
fn each_copy_of_a_page_is_confirmed_for_itself() {
    let lab = Lab::auto();
    let first = "Cache-Control: max-age=1\nVary: X-A\nNo-Vary-Search: params\nETag: \"a\"";
    let confirmed = "Status: 304\nCache-Control: max-age=60\nETag: \"a\"";
    let path = lab.path();
    let (one, other) = (format!("{path}?a=1"), format!("{path}?a=2"));
    let plan = vec![AppSaid::head(first), AppSaid::head(first), AppSaid::head(confirmed)];
    lab.app.plan(&one, plan);
    lab.app.plan(&other, vec![AppSaid::head(confirmed)]);
    assert_eq!(run(&lab.get_with(&one, "X-A: 1\r\n")), 1);
    assert_eq!(run(&lab.get_with(&one, "X-A: 2\r\n")), 2);
    bolide_testkit::pause(1100);
    // The query is excluded from the key: one address revalidates the other's object.
    assert_eq!(run(&lab.get_with(&other, "X-A: 1\r\n")), 1);
    assert_eq!(run(&lab.get_with(&one, "X-A: 1\r\n")), 1);
    assert_eq!((lab.app.count(&one), lab.app.count(&other)), (2, 1));
    assert_eq!(lab.app.asked(&other)[0].field("If-None-Match"), Some("\"a\""));
    assert_eq!(run(&lab.get_with(&one, "X-A: 2\r\n")), 2);
    assert_eq!(run(&lab.get_with(&other, "X-A: 2\r\n")), 2);
    assert_eq!((lab.app.count(&one), lab.app.count(&other)), (3, 1));
}
