//! Invalidation by unsafe requests (RFC 9111 §4.4).

use super::{Lab, run};

const KEEP: &str = "Cache-Control: max-age=60";

/// Whether a cached page survives a request that gets this status.
fn survives(lab: &Lab, method: &str, status: u16) -> bool {
    let path = lab.pages(&[KEEP, &format!("Status: {status}"), KEEP]);
    assert_eq!(run(&lab.get(&path)), 1);
    assert_eq!(lab.send(method, &path, "a=b").status, status, "{method}");
    match run(&lab.get(&path)) {
        1 => true,
        3 => false,
        other => panic!("run {other}"),
    }
}

#[test]
fn an_unsafe_request_that_went_well_drops_its_page() {
    let lab = Lab::auto();
    for method in ["POST", "PUT", "DELETE", "PATCH", "FOO"] {
        for status in [200, 201, 204, 302, 303] {
            assert!(!survives(&lab, method, status), "{method} {status}");
        }
        for status in [400, 403, 404, 412, 500, 503] {
            assert!(survives(&lab, method, status), "{method} {status}");
        }
    }
    assert!(survives(&lab, "OPTIONS", 200));
}

#[test]
fn lscache_applications_invalidate_by_themselves() {
    let lab = Lab::auto();
    for (said, stays) in [
        ("X-LiteSpeed-Cache-Control: no-cache", true),
        ("X-LiteSpeed-Purge: tag=another", true),
        ("X-Other: no-cache", false),
    ] {
        let path = lab.pages(&[KEEP, &format!("Status: 303\nLocation: /\n{said}"), KEEP]);
        assert_eq!(run(&lab.get(&path)), 1);
        assert_eq!(lab.send("POST", &path, "cart=add").status, 303);
        assert_eq!(run(&lab.get(&path)) == 1, stays, "{said}");
    }
}

#[test]
fn pages_that_the_answer_names_go_too() {
    let lab = Lab::auto();
    let port = lab.server.http().port();
    let rows = [
        ("Location: @", true),
        ("Content-Location: @", true),
        ("Location: http://localhost:PORT@", true),
        ("Location: http://LOCALHOST:PORT@", true),
        ("Location: http://localhost:PORT@#top", true),
        ("Location: NAME", true),
        ("Location: ./x/../NAME#top", true),
        ("Content-Location: NAME", true),
        ("Location: //localhost:PORT@", true),
        ("Location: x:NAME", false),
        ("Location: NAME/", false),
        ("Location: http://localhost:1@", false),
        ("Location: https://localhost:PORT@", false),
        ("Location: http://elsewhere:PORT@", false),
        ("Content-Location: http://elsewhere:PORT@", false),
        ("Location: //elsewhere@", false),
        ("Location: http://localhost:PORT", false),
        ("Location: ftp://localhost:PORT@", false),
    ];
    for (field, expected) in rows {
        let kept = lab.page(KEEP);
        assert_eq!(run(&lab.get(&kept)), 1);
        let name = kept.rsplit('/').next().unwrap();
        let field = field.replace("NAME", name).replace("PORT", &port.to_string());
        let field = field.replace('@', &kept);
        let other = lab.page(&format!("Status: 201\n{field}"));
        assert_eq!(lab.send("POST", &other, "x").status, 201);
        assert_eq!(run(&lab.get(&kept)) == 2, expected, "{field}");
        // An error response invalidates nothing.
        let kept = lab.page(KEEP);
        assert_eq!(run(&lab.get(&kept)), 1);
        let failed = lab.page(&format!("Status: 500\nLocation: {kept}"));
        assert_eq!(lab.send("POST", &failed, "x").status, 500);
        assert_eq!(run(&lab.get(&kept)), 1, "{field}");
    }
}

#[test]
fn all_copies_of_a_page_go() {
    let lab = Lab::auto();
    let vary = "Cache-Control: max-age=60\nVary: X-A";
    let path = lab.pages(&[vary, vary, "Status: 204", vary]);
    assert_eq!(run(&lab.get_with(&path, "X-A: 1\r\n")), 1);
    assert_eq!(run(&lab.get_with(&path, "X-A: 2\r\n")), 2);
    assert_eq!(lab.ask("DELETE", &path, "").status, 204);
    assert_eq!(run(&lab.get_with(&path, "X-A: 1\r\n")), 4);
    assert_eq!(run(&lab.get_with(&path, "X-A: 2\r\n")), 5);
}

#[test]
fn an_answer_on_its_way_does_not_outlive_the_change() {
    let lab = Lab::auto();
    let path = lab.pages(&[KEEP, "Status: 204", KEEP]);
    let other = lab.page(&format!("Status: 204\nLocation: {path}"));
    lab.app.hold(&path);
    std::thread::scope(|scope| {
        let mut client = lab.server.connect();
        let address = &path;
        let waiting = scope.spawn(move || client.get(address, ""));
        bolide_testkit::wait_until("the application to be asked", || lab.app.count(&path) == 1);
        assert_eq!(lab.send("POST", &other, "x").status, 204);
        lab.app.release();
        assert_eq!(run(&waiting.join().unwrap()), 1);
    });
    assert_eq!(lab.app.count(&path), 1);
    assert_eq!(lab.get(&path).status, 204, "the first answer is older than the change");
}
