//! Identification of visitors, and chance: `userid`, `modern_browser`, `random_index`.
//! `tests/nginx/sites/visitors.py` compares them with nginx.

use std::collections::HashSet;

use bolide_testkit::server::LISTEN;
use bolide_testkit::{Proto, TestApp};

use crate::{http, site};

const GIVEN: &str = "AQAAf2sEcQKzHwMKAwMCAg==";

#[test]
fn a_client_without_an_identifier_gets_one_of_its_own() {
    let server = site(
        "userid on; userid_expires max; add_header U \"$uid_got|$uid_set\" always;
         location /none { userid_service 7; return 404; }
         location /v1 { userid v1; userid_service 7; return 200 x; }
         location /page { ssi on; ssi_types *;
             return 200 '<!--# include virtual=\"/none\" -->'; }",
    );
    let mut seen = HashSet::new();
    for proto in [Proto::H1, Proto::H2, Proto::H3] {
        for path in ["/hello.txt", "/hello.txt", "/none", "/v1", "/page"] {
            let reply = server.curl(proto).get(&server.url(proto, path));
            let cookies: Vec<_> =
                reply.headers.iter().filter(|(name, _)| name == "set-cookie").collect();
            assert_eq!(cookies.len(), 1, "{proto:?} {path}: {:?}", reply.headers);
            let cookie = &cookies[0].1;
            let rest = "==; expires=Thu, 31-Dec-37 23:55:55 GMT; path=/";
            let letters = cookie.strip_prefix("uid=").and_then(|text| text.strip_suffix(rest));
            let letters = letters.unwrap_or_else(|| panic!("{proto:?} {path}: {cookie}"));
            let start = match path {
                "/v1" => "BwAAA",
                "/none" => "AAAAB",
                _ => "fwAAA",
            };
            assert!(letters.len() == 22 && letters.starts_with(start), "{path}: {letters}");
            assert!(seen.insert(letters.to_owned()), "{letters} was given out twice");
            let value = reply.header("u").unwrap();
            assert!(value.starts_with("|uid=") && value.len() == 37, "{value}");
            let again = server.curl(proto).field(&format!("Cookie: uid={letters}=="));
            let again = again.get(&server.url(proto, path));
            assert_eq!(again.header("set-cookie"), None, "{proto:?} {path}");
            assert_eq!(again.header("u"), Some(&*format!("{}|", &value[1..])));
        }
    }
}

#[test]
fn a_cached_page_has_no_identifier_of_its_first_client() {
    let app = TestApp::start();
    let pass = format!(
        "fastcgi_param REQUEST_URI $request_uri; fastcgi_param REQUEST_METHOD $request_method;
         fastcgi_pass {};",
        app.address()
    );
    let server = http(&format!(
        "fastcgi_cache_path @DIR@/zone keys_zone=z:1m;
         server {{ {LISTEN} userid on;
             location / {{ page_cache on; {pass} }}
             location /zone/ {{
                 fastcgi_cache z; fastcgi_cache_key $request_uri; fastcgi_cache_valid 1m; {pass} }}
         }}"
    ));
    for path in ["/", "/zone/"] {
        app.say(path, "Cache-Control: max-age=600");
        let mut seen = HashSet::new();
        for _ in 0..4 {
            let reply = server.connect().get(path, "");
            assert_eq!(reply.text(), "run 1", "{path}");
            let cookie = reply.header("set-cookie").expect("each client gets one");
            assert!(seen.insert(cookie.to_owned()), "{path}: {cookie} twice");
        }
        let reply = server.connect().get(path, &format!("Cookie: uid={GIVEN}\r\n"));
        assert_eq!((reply.text(), reply.header("set-cookie")), ("run 1".to_owned(), None));
    }
}

#[test]
fn browsers_are_known_by_every_protocol() {
    let server = site(
        "modern_browser msie 7.0; modern_browser unlisted; modern_browser_value new;
         ancient_browser Lynx; ancient_browser_value old;
         location /in { ancient_browser links; modern_browser gecko 1.9;
             ancient_browser_value older; modern_browser_value newer;
             return 200 \"[$msie|$modern_browser|$ancient_browser]\"; }
         location / { return 200 \"[$msie|$modern_browser|$ancient_browser]\"; }",
    );
    for proto in [Proto::H1, Proto::H2, Proto::H3] {
        for (path, agent, wanted) in [
            ("/", "Mozilla/4.0 (compatible; MSIE 6.0; Windows)", "[1||old]"),
            ("/", "Mozilla/4.0 (compatible; MSIE 8.0; Windows)", "[1|new|]"),
            ("/", "Lynx/2.8", "[||old]"),
            ("/", "Mozilla/5.0 (X11) Firefox/120", "[|new|]"),
            ("/in", "Mozilla/5.0 (X11) Firefox/120", "[||older]"),
            ("/in", "Mozilla/5.0 (X11; rv:120.0) Firefox/120", "[|newer|]"),
        ] {
            let curl = server.curl(proto).field(&format!("User-Agent: {agent}"));
            let reply = curl.get(&server.url(proto, path));
            assert_eq!(reply.text(), wanted, "{proto:?} {path} {agent}");
        }
    }
}

#[test]
fn a_directory_is_answered_with_any_of_its_visible_files() {
    let server = site(
        "location /some/ { random_index on; location /some/off/ { random_index off; } }
         location /list/ { random_index on; }",
    );
    for name in ["a", "b", "c"] {
        bolide_testkit::site::write(&server.www(&format!("some/{name}")), name.as_bytes());
    }
    bolide_testkit::site::write(&server.www("some/.hidden"), b"hidden");
    bolide_testkit::site::write(&server.www("some/sub/d"), b"d");
    bolide_testkit::site::write(&server.www("some/off/e"), b"e");
    let mut seen = HashSet::new();
    // By chance, one of three stays away this often once in 10^50 times.
    for proto in [Proto::H1, Proto::H2, Proto::H3].into_iter().cycle().take(300) {
        let reply = server.curl(proto).get(&server.url(proto, "/some/"));
        assert!(["a", "b", "c"].contains(&&*reply.text()), "{proto:?}: {}", reply.text());
        seen.insert(reply.text());
        if seen.len() == 3 {
            break;
        }
    }
    assert_eq!(seen.len(), 3);
    assert_eq!(server.get("/some/off/").status, 403);
    assert_eq!(server.get("/some/sub/").text(), "d");
    std::fs::remove_file(server.www("some/a")).unwrap();
    std::fs::remove_file(server.www("some/b")).unwrap();
    for _ in 0..20 {
        assert_eq!(server.get("/some/").text(), "c");
    }
}

#[test]
fn flv_starts_at_the_requested_offset() {
    let server = site("location / { flv; }");
    let big = std::fs::read(server.www("big.bin")).unwrap();
    let video = |start: usize| [b"FLV\x01\x05\0\0\0\x09\0\0\0\0", &big[start..]].concat();
    for proto in [Proto::H1, Proto::H2, Proto::H3] {
        for start in [1, 500_000, 999_999] {
            let url = server.url(proto, &format!("/big.bin?start={start}"));
            let reply = server.curl(proto).get(&url);
            assert!(reply.body == video(start), "{proto:?} {start}: {} bytes", reply.body.len());
            let part = server.curl(proto).field("Range: bytes=10-29").get(&url);
            let end = video(start).len().min(30);
            assert!(part.status == 206 && part.body == video(start)[10..end], "{proto:?} {start}");
        }
        let whole = server.curl(proto).get(&server.url(proto, "/big.bin?start=1000000"));
        assert!(whole.body == big, "{proto:?}: {} bytes", whole.body.len());
    }
}
