//! The response fields that are stored, and those that are sent (RFC 9111 §3.1, §3.2).

use super::{Lab, run};

#[test]
fn fields_are_stored_unchanged() {
    let lab = Lab::auto();
    let path = lab.page(
        "Cache-Control: max-age=60\nX-One: 1\nX-Two: a\nX-Two: b\nX-Odd: \"\\;,= \u{e9}\n\
         Content-Type: text/html; charset=x\nContent-Language: en\nLink: </a>; rel=b\n\
         Access-Control-Allow-Origin: *\nClear-Site-Data: \"cache\"\nRefresh: 5\n\
         Strict-Transport-Security: max-age=1\nX-Frame-Options: DENY\nRetry-After: 5\n\
         Content-Disposition: inline\nWarning: 199 a b\nAllow: GET\nServer-Timing: a",
    );
    let first = lab.get(&path);
    let kept = lab.get(&path);
    assert_eq!((run(&kept), lab.app.count(&path)), (1, 1));
    let shown = |answer: &bolide_testkit::Response| {
        let own = ["date", "age", "cache-status", "connection", "content-length", "accept-ranges"];
        let mut fields: Vec<_> = answer.headers.clone();
        fields.retain(|(name, _)| {
            let name = name.to_ascii_lowercase();
            !own.contains(&&*name)
                && !name.starts_with("x-litespeed")
                && name != "transfer-encoding"
        });
        fields
    };
    assert_eq!(shown(&kept), shown(&first));
    assert_eq!(kept.headers.iter().filter(|(name, _)| name == "X-Two").count(), 2);
}

#[test]
fn connection_specific_fields_are_not_stored() {
    let lab = Lab::auto();
    let path = lab.page(
        "Cache-Control: max-age=60\nConnection: X-Hop, close\nX-Hop: 1\nX-Other: 1\n\
         Keep-Alive: timeout=5\nTE: trailers\nTrailer: X-T\nUpgrade: x\nProxy-Connection: close\n\
         Proxy-Authenticate: Basic\nProxy-Authentication-Info: x",
    );
    lab.get(&path);
    let kept = lab.get(&path);
    assert_eq!((run(&kept), lab.app.count(&path)), (1, 1));
    assert_eq!(kept.header("x-other"), Some("1"));
    for name in [
        "x-hop",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "proxy-connection",
        "proxy-authenticate",
        "proxy-authentication-info",
    ] {
        assert_eq!(kept.header(name), None, "{name}");
    }
    assert_eq!(kept.header("connection"), Some("close"));
}

#[test]
fn a_response_with_a_field_for_one_client_is_not_stored() {
    let lab = Lab::auto();
    for head in [
        "Cache-Control: max-age=60, private=\"X-A\"\nX-A: 1",
        "Cache-Control: max-age=60, no-cache=\"X-A\"\nX-A: 1",
        "Cache-Control: max-age=60, no-cache=\"Set-Cookie\"\nSet-Cookie: a=b",
        "Cache-Control: public, max-age=60\nSet-Cookie: a=b",
    ] {
        let path = lab.page(head);
        for turn in 1..=2 {
            let answer = lab.get(&path);
            assert_eq!(run(&answer), turn, "{head}");
            assert_eq!(answer.header("set-cookie").is_some(), head.contains("Set-Cookie:"));
        }
    }
}

#[test]
fn a_cookie_of_one_client_reaches_no_other() {
    let lab = Lab::auto();
    let path = lab.page("X-LiteSpeed-Cache-Control: public, max-age=60\nSet-Cookie: a=secret");
    assert!(lab.get(&path).header("set-cookie").is_some());
    let kept = lab.get(&path);
    assert_eq!((run(&kept), kept.header("set-cookie")), (1, None));
}

#[test]
fn fields_for_surrogate_caches_are_not_forwarded() {
    let lab = Lab::auto();
    let path = lab.page(
        "Bolide-Cache-Control: max-age=60\nCDN-Cache-Control: max-age=5\nSurrogate-Control: \
         max-age=9\nSurrogate-Key: a b\nxkey: c\nEdge-Cache-Tag: d\nCache-Groups: \"e\"\n\
         X-LiteSpeed-Tag: f\nCache-Control: no-store",
    );
    for _ in 0..2 {
        let answer = lab.get(&path);
        assert_eq!(run(&answer), 1);
        for name in [
            "bolide-cache-control",
            "surrogate-control",
            "surrogate-key",
            "xkey",
            "edge-cache-tag",
            "x-litespeed-tag",
        ] {
            assert_eq!(answer.header(name), None, "{name}");
        }
        assert_eq!(answer.header("cdn-cache-control"), Some("max-age=5"));
        assert_eq!(answer.header("cache-groups"), Some("\"e\""));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
}
