//! `mirror`: copies of requests with their bodies, in each protocol; answers do not wait for them,
//! the next request of an HTTP/1.1 connection does.

use bolide_testkit::origin::answer;
use bolide_testkit::{Proto, TestUpstream, wait_until};

use crate::{report, site};

#[test]
fn copies_have_the_method_the_query_and_the_body_by_each_protocol() {
    let (origin, copies) = (TestUpstream::start(), TestUpstream::start());
    let server = site(&format!(
        "location / {{ mirror /copy; proxy_pass http://{}; client_body_buffer_size 16k; }}
         location = /copy {{ internal; proxy_pass http://{}$request_uri; }}",
        origin.address(),
        copies.address()
    ));
    // More than fits in memory.
    let body = "0123456789".repeat(20_000);
    let file = server.home().write("body", &body);
    let data = format!("@{}", file.display());
    let mut failures = Vec::new();
    for proto in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3] {
        let target = format!("/{proto:?}?a=b");
        let url = server.url(proto, &target);
        let reply = server.curl(proto).args(["--data-binary", &data]).get(&url);
        let is_there = |at: &TestUpstream| {
            let asked = at.asked(&target);
            asked.iter().any(|asked| asked.method() == "POST" && asked.body == body.as_bytes())
        };
        wait_until("a copy", || is_there(&copies));
        if reply.status != 200 || !is_there(&origin) {
            failures.push(format!("{proto:?}: {}", reply.status));
        }
    }
    report(4, &failures);
}

#[test]
fn an_answer_does_not_wait_for_copies_and_the_next_request_does() {
    let copies = TestUpstream::start();
    let server = site(&format!(
        "location = /one {{ mirror /copy; empty_gif; }}
         location = /copy {{ proxy_pass http://{}; }}",
        copies.address()
    ));
    copies.hold("/copy");
    let mut client = server.connect();
    assert_eq!(client.get("/one", "").status, 200);
    wait_until("the copy", || copies.count("/copy") == 1);
    client.send("GET /one HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(server.get("/one").status, 200, "other connections go on");
    wait_until("its copy", || copies.count("/copy") == 2);
    copies.release();
    assert_eq!(client.answer().status, 200);
    wait_until("the copy of the second one", || copies.count("/copy") == 3);
}

#[test]
fn only_admitted_requests_are_mirrored_and_mirrors_do_not_use_the_cache() {
    let origin = TestUpstream::start();
    for target in ["/page", "/copied"] {
        origin.say(target, answer("Cache-Control: public, max-age=600", "kept"));
    }
    let server = site(&format!(
        "page_cache on;
         location /page {{ mirror /copied; proxy_pass http://{0}; }}
         location /denied {{ mirror /copied; deny all; }}
         location /copied {{ proxy_pass http://{0}; }}",
        origin.address()
    ));
    assert_eq!(server.get("/denied").status, 403);
    assert_eq!(server.get("/page").status, 200);
    wait_until("the copy", || origin.count("/copied") == 1);
    assert_eq!(server.get("/page").status, 200);
    wait_until("a copy of a hit", || origin.count("/copied") == 2);
    assert_eq!(origin.count("/page"), 1);
    // What copies were answered is no page.
    assert_eq!(server.get("/copied").status, 200);
    assert_eq!(origin.count("/copied"), 3);
}
