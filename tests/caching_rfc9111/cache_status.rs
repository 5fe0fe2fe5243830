//! `Cache-Status` (RFC 9211) for each way of a request.

use bolide_testkit::Response;

use super::{AUTO, Lab, run};

const KEEP: &str = "Cache-Control: max-age=60";

fn cache_status(answer: &Response) -> String {
    let all: Vec<&str> = answer
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("cache-status"))
        .map(|(_, value)| &**value)
        .collect();
    all.join(", ")
}

/// The same without the number of seconds.
fn kind(answer: &Response) -> String {
    let cache_status = cache_status(answer);
    match cache_status.split_once("ttl=") {
        Some((start, rest)) => {
            let end = rest.find(';').unwrap_or(rest.len());
            format!("{start}ttl{}{}", if rest.starts_with('-') { "-" } else { "" }, &rest[end..])
        }
        None => cache_status,
    }
}

#[test]
fn each_kind_of_lookup_has_its_parameters() {
    let lab = Lab::auto();
    let path = lab.page(KEEP);
    assert_eq!(kind(&lab.get(&path)), "bolide; fwd=uri-miss; fwd-status=200; ttl; stored");
    let hit = cache_status(&lab.get(&path));
    let ttl: u32 = hit.strip_prefix("bolide; hit; ttl=").unwrap().parse().unwrap();
    assert!((40..=60).contains(&ttl), "{hit}");
    let post = lab.send("POST", &path, "x");
    assert_eq!(cache_status(&post), "bolide; fwd=method; fwd-status=200");
    let path = lab.page("Cache-Control: no-store");
    assert_eq!(
        cache_status(&lab.get(&path)),
        "bolide; fwd=uri-miss; fwd-status=200; detail=no-store"
    );
    let path = lab.page("Status: 404");
    let found = cache_status(&lab.get(&path));
    assert_eq!(found, "bolide; fwd=uri-miss; fwd-status=404; detail=no-lifetime");
    let path = lab.page("Cache-Control: max-age=60\nVary: X-A");
    lab.get_with(&path, "X-A: 1\r\n");
    let other = lab.get_with(&path, "X-A: 2\r\n");
    assert_eq!(kind(&other), "bolide; fwd=vary-miss; fwd-status=200; ttl; stored");
    let path = lab.page(KEEP);
    let head = lab.ask("HEAD", &path, "");
    assert_eq!(cache_status(&head), "bolide; fwd=uri-miss; fwd-status=200; detail=method");
}

#[test]
fn stale_responses_have_their_parameters() {
    let lab = Lab::auto();
    let paths: Vec<String> = [
        ["Cache-Control: max-age=1, stale-while-revalidate=60", KEEP],
        ["Cache-Control: max-age=1, stale-if-error=60", "Status: 500"],
        ["Cache-Control: max-age=1\nETag: \"a\"", "Status: 304\nCache-Control: max-age=60"],
        ["Cache-Control: max-age=1", KEEP],
    ]
    .iter()
    .map(|answers| lab.pages(answers))
    .collect();
    for path in &paths {
        lab.get(path);
    }
    bolide_testkit::pause(1100);
    let found: Vec<String> = paths.iter().map(|path| kind(&lab.get(path))).collect();
    assert_eq!(
        found,
        [
            "bolide; hit; ttl-; detail=stale-while-revalidate",
            "bolide; hit; ttl-; detail=stale-if-error",
            "bolide; fwd=stale; fwd-status=304; ttl; stored",
            "bolide; fwd=stale; fwd-status=200; ttl; stored",
        ]
    );
}

#[test]
fn requests_with_directives_and_bypasses_have_their_forward_reason() {
    let lab = Lab::new(&format!(
        "{AUTO} page_cache_respect_request on; page_cache_bypass $http_x_bypass;"
    ));
    let path = lab.page(KEEP);
    lab.get(&path);
    let asked = lab.get_with(&path, "Cache-Control: no-cache\r\n");
    assert_eq!(kind(&asked), "bolide; fwd=request; fwd-status=200; ttl; stored");
    let past = lab.get_with(&path, "X-Bypass: 1\r\n");
    assert_eq!(cache_status(&past), "bolide; fwd=bypass; fwd-status=200");
    let none = lab.get_with(&lab.page(KEEP), "Cache-Control: only-if-cached\r\n");
    assert_eq!((none.status, &*cache_status(&none)), (504, "bolide; detail=only-if-cached"));
}

/// The responses to two equal requests, of which the second waits for the fetch of the first.
fn coalesced(lab: &Lab, path: &str, fields: &str) -> [Response; 2] {
    lab.app.hold(path);
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
    let (mut first, mut second) = (lab.server.connect(), lab.server.connect());
    first.send(&request);
    bolide_testkit::wait_until("the application to be asked", || lab.app.count(path) == 1);
    second.send(&request);
    // The only worker has read the second request once it has responded to later ones.
    for _ in 0..2 {
        assert_eq!(lab.get("/other").status, 200);
    }
    lab.app.release();
    [first.answer(), second.answer()]
}

#[test]
fn a_coalesced_request_says_so() {
    let lab = Lab::auto();
    let path = lab.page(KEEP);
    let found = coalesced(&lab, &path, "");
    assert_eq!(found.each_ref().map(run), [1, 1]);
    assert_eq!(kind(&found[0]), "bolide; fwd=uri-miss; fwd-status=200; ttl; stored");
    assert_eq!(kind(&found[1]), "bolide; fwd=uri-miss; fwd-status=200; ttl; collapsed");
    assert_eq!(lab.app.count(&path), 1);
}

#[test]
fn a_coalesced_request_gets_its_coding_like_all_others() {
    let lab = Lab::new(
        "page_cache auto; cache_status on; gzip on; gzip_vary on; gzip_types *; gzip_min_length 0;",
    );
    let path = lab.page(KEEP);
    let found = coalesced(&lab, &path, "Accept-Encoding: gzip\r\n");
    assert!(cache_status(&found[1]).contains("collapsed"), "{}", cache_status(&found[1]));
    for response in &found {
        assert_eq!(response.header("content-encoding"), Some("gzip"), "{response:?}");
        assert_eq!(response.header("vary"), Some("Accept-Encoding"));
    }
    assert_eq!(lab.app.count(&path), 1);
}

#[test]
fn earlier_caches_come_first_and_ours_has_the_configured_name() {
    let lab = Lab::new("page_cache auto; cache_status on \"my edge\";");
    let path = lab.page("Cache-Control: max-age=60\nCache-Status: origin; hit");
    let first = kind(&lab.get(&path));
    assert_eq!(first, "origin; hit, \"my edge\"; fwd=uri-miss; fwd-status=200; ttl; stored");
    assert_eq!(kind(&lab.get(&path)), "origin; hit, \"my edge\"; hit; ttl");
    let silent = Lab::new("page_cache auto;");
    let path = silent.page(KEEP);
    assert_eq!(
        (cache_status(&silent.get(&path)), cache_status(&silent.get(&path))),
        (String::new(), String::new())
    );
}

#[test]
fn zones_send_cache_status_as_well() {
    let lab = Lab::with(
        "fastcgi_cache_path @DIR@/zone keys_zone=one:1m;",
        "cache_status on; fastcgi_cache one; fastcgi_cache_key $request_uri;
         fastcgi_cache_valid 200 1m; fastcgi_cache_bypass $http_x_new;",
    );
    let path = lab.page("");
    assert_eq!(kind(&lab.get(&path)), "bolide; fwd=uri-miss; fwd-status=200; ttl; stored");
    assert_eq!(kind(&lab.get(&path)), "bolide; hit; ttl");
    let new = lab.get_with(&path, "X-New: 1\r\n");
    assert_eq!(kind(&new), "bolide; fwd=bypass; fwd-status=200; ttl; stored");
    assert_eq!(run(&lab.get(&path)), 2);
    let path = lab.pages(&["X-Accel-Expires: 1", ""]);
    lab.get(&path);
    bolide_testkit::pause(1100);
    assert_eq!(kind(&lab.get(&path)), "bolide; fwd=stale; fwd-status=200; ttl; stored");
    let path = lab.page("Set-Cookie: a=b");
    let found = kind(&lab.get(&path));
    assert_eq!(found, "bolide; fwd=uri-miss; fwd-status=200; detail=set-cookie");
    assert_eq!(cache_status(&lab.send("POST", &path, "x")), "bolide; fwd=method; fwd-status=200");
}

#[test]
fn a_failed_upstream_has_detail_failed() {
    let lab = Lab::auto();
    let path = lab.page(KEEP);
    lab.app.vanish();
    let answer = lab.get(&path);
    assert_eq!(
        (answer.status, &*cache_status(&answer)),
        (502, "bolide; fwd=uri-miss; detail=failed")
    );
}
