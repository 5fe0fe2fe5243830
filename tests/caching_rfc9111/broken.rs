//! Malformed, truncated, contradictory or huge responses: nothing wrong is cached.

use std::thread;

use bolide_testkit::{AppSaid, TestApp};

use super::{Lab, run};

const KEEP: &str = "Cache-Control: max-age=60";

#[test]
fn a_truncated_response_is_not_stored() {
    let lab = Lab::auto();
    let long = vec![b'x'; 100_000];
    let rows = [
        AppSaid::head(KEEP).body(b"part").cut(),
        AppSaid::head(KEEP).body(&long).cut(),
        AppSaid::head(&format!("{KEEP}\nContent-Length: 10")).body(b"part"),
        AppSaid::head(&format!("{KEEP}\nContent-Length: 200000")).body(&long),
        AppSaid::head(&format!("{KEEP}\nContent-Length: 10")).body(b"part").cut(),
        AppSaid::head(&format!("{KEEP}\nContent-Length: 10")).body(b""),
    ];
    for said in rows {
        let path = lab.path();
        lab.app.plan(&path, vec![said.clone(), AppSaid::head(KEEP)]);
        let mut client = lab.server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let first = client.try_answer("GET");
        // The response must not look complete.
        assert!(first.is_err() || first.is_ok_and(|answer| answer.status == 502), "{}", said.head);
        bolide_testkit::wait_until("the next answer", || {
            lab.server.connect().get(&path, "").status == 200 && lab.app.count(&path) >= 2
        });
        assert_eq!(run(&lab.get(&path)), lab.app.count(&path), "{}", said.head);
    }
}

#[test]
fn bytes_after_the_declared_length_are_dropped() {
    let lab = Lab::auto();
    let path = lab.path();
    let head = format!("{KEEP}\nContent-Length: 4");
    lab.app.plan(&path, vec![AppSaid::head(&head).body(b"good and bad")]);
    for _ in 0..2 {
        let answer = lab.get(&path);
        assert_eq!((answer.status, &*answer.text()), (200, "good"));
    }
}

#[test]
fn a_follower_of_a_truncated_response_sees_the_error() {
    let lab = Lab::auto();
    let path = lab.path();
    let cut = AppSaid::head(&format!("{KEEP}\nContent-Length: 100000")).body(&[b'x'; 50_000]).cut();
    lab.app.plan(&path, vec![cut, AppSaid::head(KEEP)]);
    lab.app.hold(&path);
    thread::scope(|scope| {
        let all: Vec<_> = (0..4)
            .map(|_| {
                let mut client = lab.server.connect();
                let path = &path;
                scope.spawn(move || {
                    client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
                    client.try_answer("GET")
                })
            })
            .collect();
        bolide_testkit::wait_until("the application to be asked", || lab.app.count(&path) >= 1);
        bolide_testkit::pause(100);
        lab.app.release();
        for one in all {
            // Either truncated, or a complete response of a later fetch.
            match one.join().unwrap() {
                Ok(answer) => {
                    assert!(matches!(answer.status, 200 | 502) && answer.body.len() < 999);
                }
                Err(why) => assert!(why.contains("closed after"), "{why}"),
            }
        }
    });
    bolide_testkit::wait_until("a good answer", || {
        lab.server.connect().get(&path, "").status == 200
    });
}

#[test]
fn malformed_fields_store_nothing_and_break_nothing() {
    let lab = Lab::auto();
    let huge = "x".repeat(30_000);
    let many = "max-age=60, ".repeat(2_000);
    let rows = [
        ("Cache-Control: \u{1}\u{2}max-age=60".to_owned(), false),
        ("Cache-Control: =60, =, \"".into(), false),
        ("Cache-Control: max-age==60".into(), false),
        ("Cache-Control: \"max-age=60\"".into(), false),
        (format!("Cache-Control: {huge}=1, max-age=60"), true),
        (format!("Cache-Control: {many}no-store"), false),
        (format!("Cache-Control: {many}max-age=60"), true),
        (format!("{KEEP}\nVary: {huge}"), false),
        (format!("{KEEP}\nETag: \"{}\"", "e".repeat(9_000)), true),
        (format!("{KEEP}\nETag: unquoted"), true),
        (format!("{KEEP}\nLast-Modified: never"), true),
        (format!("{KEEP}\nSurrogate-Key: {}", "\u{7f}"), true),
        (format!("{KEEP}\nCache-Groups: \"unfinished"), true),
        (format!("{KEEP}\nAge: 18446744073709551616"), false),
        (format!("{KEEP}\nNo-Vary-Search: params=(\"a"), true),
    ];
    let lab_large = Lab::new(&format!(
        "{} fastcgi_buffer_size 256k; fastcgi_buffers 8 256k; fastcgi_busy_buffers_size 512k;",
        super::AUTO
    ));
    let mut failures = Vec::new();
    for (head, expected) in &rows {
        if lab_large.keeps(head) != *expected {
            failures.push(format!("{expected}: {}", head.get(..80).unwrap_or(head)));
        }
    }
    crate::report(rows.len(), &failures);
    // A head larger than any list of tags is an error and is not cached.
    let path = lab.page(&format!("{KEEP}\nX-Long: {}", "x".repeat(700_000)));
    assert_eq!(lab.get(&path).status, 502);
    assert_eq!(lab.get(&path).status, 502);
    assert_eq!(lab.app.count(&path), 2);
}

#[test]
fn two_hundred_kilobytes_of_tags_all_count() {
    let lab = Lab::new(&format!(
        "{} fastcgi_buffer_size 512k; fastcgi_buffers 8 512k; fastcgi_busy_buffers_size 1m;",
        super::AUTO
    ));
    let tags: Vec<String> = (0..20_000).map(|n| format!("tag_{n:05}")).collect();
    for field in ["Surrogate-Key", "X-LiteSpeed-Tag"] {
        let separator = if field == "Surrogate-Key" { " " } else { "," };
        // A page with fewer tags is cached with all of them; a page with too many is not cached at
        // all.
        for count in [4_000, 20_000] {
            let list = tags[..count].join(separator);
            let mark = "X-LiteSpeed-Cache-Control: public,max-age=60";
            let path = lab.page(&format!("{mark}\n{field}: {list}"));
            assert_eq!(run(&lab.get(&path)), 1);
            let again = run(&lab.get(&path));
            let purge = lab.page(&format!("X-LiteSpeed-Purge: tag={}", tags[count - 1]));
            lab.send("POST", &purge, "x");
            assert_eq!(run(&lab.get(&path)), again + 1, "{field} {count}");
        }
    }
}

#[test]
fn a_response_that_is_too_large_is_not_stored() {
    let lab = Lab::new(&format!("{} page_cache_max_object 10k;", super::AUTO));
    for (size, length, kept) in
        [(9_000, true, true), (9_000, false, true), (20_000, true, false), (20_000, false, false)]
    {
        let path = lab.path();
        let head = if length { format!("{KEEP}\nContent-Length: {size}") } else { KEEP.to_owned() };
        lab.app.plan(&path, vec![AppSaid::head(&head).body(&vec![b'x'; size])]);
        for _ in 0..2 {
            assert_eq!(lab.get(&path).body.len(), size);
        }
        assert_eq!(lab.app.count(&path) == 1, kept, "{size} {length}");
    }
}

#[test]
fn an_unreachable_application_gives_502() {
    let lab = Lab::auto();
    let path = lab.page(KEEP);
    lab.app.vanish();
    assert_eq!(lab.get(&path).status, 502);
    assert_eq!(lab.get(&path).status, 502);
    drop(TestApp::start());
}

#[test]
fn unkeyed_fields_do_not_poison_responses_with_a_correct_vary() {
    let lab = Lab::auto();
    let path = lab.page(&format!("{KEEP}\nVary: X-Forwarded-Host"));
    assert_eq!(run(&lab.get_with(&path, "X-Forwarded-Host: evil\r\n")), 1);
    assert_eq!(run(&lab.get(&path)), 2);
    // A path with another spelling is another page: an application may distinguish them.
    lab.app.say("/page%41", KEEP);
    lab.app.say("/pageA", KEEP);
    assert_eq!((run(&lab.get("/page%41")), run(&lab.get("/pageA"))), (1, 1));
    assert_eq!((lab.app.count("/page%41"), lab.app.count("/pageA")), (1, 1));
}
