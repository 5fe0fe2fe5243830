//! RFC 9111 row by row: freshness, authorization, status, vary, stale, conditions, invalidation.

use bolide_http::cache_control::RequestControl;
use bolide_http::{Method, Name};

use crate::Times;

use super::{Case, DATE, EARLIER, LATER, NOW, fields};
use crate::rules::{
    CachePolicy, FreshState, Heuristic, Instructions, Mode, PurgeTarget, StoreRefusal, conditions,
    for_client, for_front, for_store, freshen, is_forged, is_keyed_by_more, is_same, judge,
    varies_by_more,
};

#[test]
fn freshness_is_read_strictly() {
    let rows: Vec<(String, Result<u32, StoreRefusal>)> = vec![
        (String::new(), Err(StoreRefusal::NoLifetime)),
        ("Cache-Control: max-age=60".into(), Ok(60)),
        ("Cache-Control: max-age=60, max-age=10".into(), Ok(10)),
        ("Cache-Control: max-age=0".into(), Err(StoreRefusal::Stale)),
        ("Cache-Control: max-age=x".into(), Err(StoreRefusal::Stale)),
        ("Cache-Control: max-age=99999999999".into(), Ok(1 << 31)),
        ("Cache-Control: s-maxage=9, max-age=60".into(), Ok(9)),
        ("Cache-Control: max-age=60|Expires: 0".into(), Ok(60)),
        ("Cache-Control: max-age=60|Age: 15".into(), Ok(45)),
        ("Cache-Control: max-age=60|Age: 60".into(), Err(StoreRefusal::Stale)),
        ("Cache-Control: max-age=60|Age: 99999999999".into(), Err(StoreRefusal::Stale)),
        ("Cache-Control: max-age=60|Age: -5".into(), Ok(60)),
        ("Cache-Control: max-age=60|Age: 7, 1".into(), Ok(53)),
        (format!("Cache-Control: max-age=300|Date: {EARLIER}"), Ok(200)),
        (format!("Cache-Control: max-age=300|Date: {EARLIER}|Age: 150"), Ok(150)),
        (format!("Cache-Control: max-age=300|Date: {LATER}"), Ok(300)),
        (format!("Expires: {LATER}"), Ok(100)),
        (format!("Expires: {LATER}|Date: {DATE}"), Ok(100)),
        (format!("Expires: {LATER}|Date: {EARLIER}"), Ok(100)),
        (format!("Expires: {EARLIER}"), Err(StoreRefusal::Stale)),
        ("Expires: 0".into(), Err(StoreRefusal::Stale)),
        ("Expires: soon".into(), Err(StoreRefusal::Stale)),
        (format!("Expires: {LATER}|Expires: 0"), Err(StoreRefusal::Stale)),
        (format!("Cache-Control: public|Expires: {LATER}"), Ok(100)),
        (format!("Last-Modified: {EARLIER}"), Err(StoreRefusal::NoLifetime)),
        ("Pragma: no-cache|Cache-Control: max-age=5".into(), Ok(5)),
        ("Pragma: no-cache".into(), Err(StoreRefusal::NoLifetime)),
        ("CDN-Cache-Control: max-age=5|Cache-Control: no-store".into(), Ok(5)),
        ("CDN-Cache-Control: no-store|Cache-Control: max-age=5".into(), Err(StoreRefusal::NoStore)),
        ("CDN-Cache-Control: Max-Age=9|Cache-Control: max-age=5".into(), Ok(5)),
        ("CDN-Cache-Control: |Cache-Control: max-age=5".into(), Ok(5)),
        (
            format!("CDN-Cache-Control: must-revalidate|Expires: {LATER}"),
            Err(StoreRefusal::NoLifetime),
        ),
        ("Bolide-Cache-Control: max-age=3|CDN-Cache-Control: max-age=5".into(), Ok(3)),
        ("Cache-Control: max-age=0, stale-while-revalidate=9".into(), Ok(0)),
    ];
    for (answer, expected) in rows {
        let case = Case { answer: &answer, ..Case::default() };
        let found = case.refusal().map_or_else(|| Ok(case.decide().ttl), Err);
        assert_eq!(found, expected, "{answer}");
    }
}

#[test]
fn directives_forbid() {
    let rows = [
        ("no-store, max-age=5", Some(StoreRefusal::NoStore)),
        ("no-cache, max-age=5", Some(StoreRefusal::NoCache)),
        ("no-cache=\"Set-Cookie\", max-age=5", Some(StoreRefusal::NoCache)),
        ("private, max-age=5", Some(StoreRefusal::Private)),
        ("private=\"X\", max-age=5", Some(StoreRefusal::Private)),
        ("NO-STORE, max-age=5", Some(StoreRefusal::NoStore)),
        ("no-store=\"\", max-age=5", Some(StoreRefusal::NoStore)),
        ("must-revalidate, max-age=5", None),
        ("unknown=\"no-store\", max-age=5", None),
        ("must-understand, max-age=5", None),
        ("must-understand, no-store, max-age=5", None),
    ];
    for (control, expected) in rows {
        let answer = format!("Cache-Control: {control}");
        let case = Case { answer: &answer, ..Case::default() };
        assert_eq!(case.refusal(), expected, "{control}");
    }
    let strange = Case {
        status: 299,
        answer: "Cache-Control: must-understand, max-age=5",
        ..Case::default()
    };
    assert_eq!(strange.refusal(), Some(StoreRefusal::Status));
    assert_eq!(Case { answer: "Cache-Control: max-age=5", ..strange }.refusal(), None);
}

#[test]
fn answers_to_those_who_proved_who_they_are_need_permission() {
    let rows = [
        ("max-age=5", Some(StoreRefusal::Authorization)),
        ("public, max-age=5", None),
        ("must-revalidate, max-age=5", None),
        ("s-maxage=5", None),
        ("proxy-revalidate, max-age=5", Some(StoreRefusal::Authorization)),
    ];
    for (control, expected) in rows {
        let answer = format!("Cache-Control: {control}");
        let case = Case { request: "Authorization: Basic x", answer: &answer, ..Case::default() };
        assert_eq!(case.refusal(), expected, "{control}");
    }
}

#[test]
fn guesses_are_made_only_when_asked_for() {
    let modified = "Last-Modified: Sun, 13 Sep 2020 11:26:40 GMT";
    let heuristic = Some(Heuristic { percent: 10, max: 300 });
    let policy = CachePolicy { heuristic, ..CachePolicy::default() };
    let guess = |status, answer: &str| {
        Case { policy: policy.clone(), status, answer, ..Case::default() }.decide().ttl
    };
    assert_eq!(guess(200, modified), 300);
    assert_eq!(guess(200, "Last-Modified: Sun, 13 Sep 2020 12:10:00 GMT"), 100);
    assert_eq!(guess(404, modified), 300);
    assert_eq!(guess(403, modified), 0);
    assert_eq!(guess(403, &format!("{modified}|Cache-Control: public")), 300);
    assert_eq!(guess(200, ""), 0);
    assert_eq!(guess(200, &format!("{modified}|Cache-Control: max-age=7")), 7);
}

#[test]
fn vary_is_honoured_without_lscache_fields() {
    let rows: [(&str, Result<&[&str], StoreRefusal>); 8] = [
        ("", Ok(&[])),
        ("Vary: Accept-Encoding", Ok(&[])),
        ("Vary: Accept-Encoding|Content-Encoding: GZIP", Ok(&["codings="])),
        ("Vary: Accept-Encoding|Content-Encoding: deflate", Ok(&["accept-encoding"])),
        ("Vary: Cookie, Origin", Ok(&["cookie", "origin"])),
        ("Vary: Foo|Vary: Bar, foo", Ok(&["bar", "foo"])),
        ("Vary: *", Err(StoreRefusal::Vary)),
        ("Vary: Foo, *", Err(StoreRefusal::Vary)),
    ];
    for (lines, expected) in rows {
        let answer = format!("Cache-Control: max-age=5|{lines}");
        let case = Case { answer: &answer, ..Case::default() };
        let decision = case.decide();
        let names: Vec<_> =
            decision.vary.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let found = case.refusal().map_or(Ok(names), Err);
        let expected =
            expected.map(|names| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(found, expected, "{lines}");
    }
}

#[test]
fn windows_after_freshness_end_where_revalidation_is_a_must() {
    let rows = [
        ("max-age=5, stale-while-revalidate=7, stale-if-error=9", (7, 9, false)),
        ("max-age=5, stale-while-revalidate=7, must-revalidate", (0, 0, true)),
        ("max-age=5, stale-if-error=7, proxy-revalidate", (0, 0, true)),
        ("s-maxage=5, stale-while-revalidate=7", (7, 0, true)),
        ("max-age=5", (0, 0, false)),
    ];
    for (control, expected) in rows {
        let answer = format!("Cache-Control: {control}");
        let found = Case { answer: &answer, ..Case::default() }.decide();
        let found = (found.stale_while_revalidate, found.stale_if_error, found.must_revalidate);
        assert_eq!(found, expected, "{control}");
    }
    for (control, expected) in [
        ("max-age=5, stale-while-revalidate=0", (true, false)),
        ("max-age=5, stale-if-error=0", (false, true)),
        ("max-age=5", (false, false)),
    ] {
        let answer = format!("Cache-Control: {control}");
        let found = Case { answer: &answer, ..Case::default() }.decide();
        assert_eq!((found.says_refreshable, found.says_for_errors), expected, "{control}");
    }
    let aged = "Cache-Control: max-age=5, stale-while-revalidate=10|Age: 9";
    let decision = Case { answer: aged, ..Case::default() }.decide();
    assert_eq!((decision.ttl, decision.stale_while_revalidate), (0, 6));
}

#[test]
fn times_say_what_an_object_is_good_for() {
    let answer = "Cache-Control: max-age=10, stale-while-revalidate=5, stale-if-error=20|Age: 3";
    let times = Case { answer, ..Case::default() }.decide().times(NOW);
    let rows = [
        (0, FreshState::Fresh, 3, 7),
        (6_999, FreshState::Fresh, 9, 0),
        (7_000, FreshState::Refreshable, 10, 0),
        (11_999, FreshState::Refreshable, 14, -5),
        (12_000, FreshState::ForErrors, 15, -5),
        (26_999, FreshState::ForErrors, 29, -20),
        (27_000, FreshState::Expired, 30, -20),
    ];
    for (passed, state, age, ttl) in rows {
        let now = NOW + passed;
        assert_eq!(
            (times.state(now), times.age_seconds(now), times.ttl_seconds(now)),
            (state, age, ttl)
        );
    }
    // A clock that jumps back makes objects younger, never dead.
    assert_eq!(times.age_seconds(NOW - 5000), 0);
}

#[test]
fn requests_that_may_speak_are_obeyed() {
    use Instructions::{Ask, Refuse, Serve};
    let times = Times { created_ms: NOW - 5000, expires_ms: NOW + 10_000, ..Times::default() };
    let rows = [
        ("", 0, Serve),
        ("Cache-Control: no-cache", 0, Ask),
        ("Pragma: no-cache", 0, Ask),
        ("Cache-Control: max-age=5", 0, Serve),
        ("Cache-Control: max-age=4", 0, Ask),
        ("Cache-Control: max-age=0", 0, Ask),
        ("Cache-Control: max-age=x", 0, Ask),
        ("Cache-Control: min-fresh=10", 0, Serve),
        ("Cache-Control: min-fresh=11", 0, Ask),
        ("Cache-Control: only-if-cached", 0, Serve),
        ("Cache-Control: only-if-cached, max-age=4", 0, Refuse),
        ("", 11, Ask),
        ("Cache-Control: max-stale", 11, Serve),
        ("Cache-Control: max-stale=5", 11, Serve),
        ("Cache-Control: max-stale=5", 16, Ask),
        ("Cache-Control: only-if-cached", 11, Refuse),
    ];
    for (request, seconds, expected) in rows {
        let control = RequestControl::of(&fields(request));
        let now = NOW + seconds * 1000;
        assert_eq!(judge(&control, Some(&times), false, now), expected, "{request} {seconds}");
    }
    let stale = RequestControl::of(&fields("Cache-Control: max-stale"));
    assert_eq!(judge(&stale, Some(&times), true, NOW + 11_000), Ask);
    let only = RequestControl::of(&fields("Cache-Control: only-if-cached"));
    assert_eq!(judge(&only, None, false, NOW), Refuse);
    assert_eq!(judge(&RequestControl::default(), None, false, NOW), Ask);
}

#[test]
fn unsafe_requests_drop_what_they_may_have_changed() {
    let paths = |method, status, answer| -> Vec<String> {
        let decision = Case { method, status, answer, ..Case::default() }.decide();
        let path = |target: &PurgeTarget| match target {
            PurgeTarget::Url(path) => String::from_utf8_lossy(path).into_owned(),
            other => panic!("{other:?}"),
        };
        decision.purges.iter().map(|order| path(&order.target)).collect()
    };
    let both = "Location: https://A.test/new#top|Content-Location: /other";
    assert_eq!(paths(Method::Post, 201, both), ["/page?x=1", "/new", "/other"]);
    assert_eq!(paths(Method::Post, 201, "Location: a|Content-Location: "), ["/page?x=1", "/a"]);
    assert_eq!(paths(Method::Delete, 204, ""), ["/page?x=1"]);
    assert_eq!(paths(Method::Put, 302, "Location: https://a.test:443/b"), ["/page?x=1", "/b"]);
    for elsewhere in [
        "Location: https://b.test/a",
        "Location: http://a.test/a",
        "Location: https://a.test:444/a",
        "Location: //b.test/a",
        "Location: mailto:a",
    ] {
        assert_eq!(paths(Method::Post, 200, elsewhere), ["/page?x=1"], "{elsewhere}");
    }
    assert!(paths(Method::Post, 404, both).is_empty() && paths(Method::Post, 500, both).is_empty());
    assert!(paths(Method::Get, 200, both).is_empty());
    assert!(paths(Method::Options, 200, both).is_empty());
    assert_eq!(paths(Method::Other, 200, ""), ["/page?x=1"]);
}

#[test]
fn a_confirmation_freshens_what_it_names() {
    let etag = |text: &'static str| Some(text.as_bytes());
    let date = bolide_http::date::parse(EARLIER.as_bytes());
    let rows = [
        (etag("\"a\""), date, "ETag: \"a\"".to_owned(), true),
        (etag("\"a\""), date, "ETag: \"b\"".to_owned(), false),
        (etag("W/\"a\""), date, "ETag: W/\"a\"".to_owned(), true),
        (etag("W/\"a\""), date, "ETag: \"a\"".to_owned(), false),
        (None, date, "ETag: \"a\"".to_owned(), false),
        (etag("\"a\""), date, String::new(), true),
        (None, date, format!("Last-Modified: {EARLIER}"), true),
        (None, date, format!("Last-Modified: {LATER}"), false),
        (None, date, format!("Last-Modified: {}", EARLIER.replace("GMT", "UTC")), true),
        (None, date, "Last-Modified: x".to_owned(), false),
    ];
    for (old_etag, modified, line, expected) in rows {
        assert_eq!(is_same(old_etag, modified, &fields(&line)), expected, "{line}");
    }
    for (told, more) in [("A", false), ("B", true), ("*", true), ("A, B", true), ("", false)] {
        let told = fields(&format!("Vary: {told}"));
        assert_eq!(varies_by_more(&fields("Vary: A"), &told), more, "{told:?}");
    }
    for (told, more) in [
        ("cookie=a", false),
        ("cookie=b, value=v", false),
        ("", false),
        ("cookie=c", true),
        ("cookie=A", true),
        ("value=w", true),
    ] {
        let told = fields(&format!("X-LiteSpeed-Vary: {told}"));
        let kept = fields("X-LiteSpeed-Vary: cookie=a,cookie=b|X-LiteSpeed-Vary: value=v");
        assert_eq!(is_keyed_by_more(&kept, &told), more, "{told:?}");
    }
    let mut kept = fields("A: 1|B: 2|B: 3|Content-Type: text/html|Content-Encoding: x|C: 4");
    freshen(
        &mut kept,
        &fields(
            "b: 5|b: 6|Content-Type: text/css|Content-Encoding: y|Content-Length: 0|\
                 Content-Range: bytes 0-1/2|Cache-Control: max-age=9",
        ),
    );
    let found: Vec<_> = kept.iter().map(|field| field.value.to_vec()).collect();
    let expected: [&[u8]; 7] = [b"1", b"text/html", b"x", b"4", b"5", b"6", b"max-age=9"];
    assert_eq!(found, expected);
}

#[test]
fn a_conditional_request_carries_the_objects_validators_only() {
    let mut request =
        fields("If-None-Match: \"x\"|If-Range: \"x\"|Range: bytes=0-|If-Match: *|A: 1");
    assert!(conditions(Some(b"\"a\""), Some(EARLIER.as_bytes()), &mut request));
    assert_eq!(request.get(Name::IfNoneMatch), Some(&b"\"a\""[..]));
    assert_eq!(request.get(Name::IfModifiedSince), Some(EARLIER.as_bytes()));
    assert_eq!(request.len(), 3);
    assert!(!conditions(None, None, &mut request));
    assert_eq!(request.len(), 1);
}

#[test]
fn fields_that_are_private_to_a_hop_or_a_cache_are_removed() {
    let all = "Connection: X-Hop, close|X-Hop: 1|Keep-Alive: 1|TE: x|Trailer: x|Upgrade: x|\
               Transfer-Encoding: chunked|Content-Length: 5|Age: 3|ETag: \"a\"|Date: d|\
               Last-Modified: d|Set-Cookie: a=1|LSC-Cookie: b=1|X-LiteSpeed-Tag: t|\
               X-LiteSpeed-Purge: p|X-LiteSpeed-Cache: hit|Surrogate-Key: k|\
               CDN-Cache-Control: max-age=1|Content-Type: text/html";
    let left = |mode| -> Vec<String> {
        let mut kept = fields(all);
        for_store(&mut kept, mode);
        kept.iter().map(|field| String::from_utf8_lossy(field.text).into_owned()).collect()
    };
    assert_eq!(left(Mode::Auto), ["CDN-Cache-Control", "Content-Type"]);
    let zone = left(Mode::Zone);
    assert!(zone.contains(&"Upgrade".to_owned()), "it is told from a zone, too");
    assert!(zone.contains(&"ETag".to_owned()) && zone.contains(&"Set-Cookie".to_owned()));
    assert!(!zone.contains(&"X-Hop".to_owned()) && !zone.contains(&"Connection".to_owned()));
    let mut sent = fields(all);
    for_client(&mut sent);
    assert!(sent.get_text(b"x-litespeed-tag").is_none() && sent.get_text(b"LSC-Cookie").is_none());
    assert!(sent.get(Name::SetCookie).is_some());
    let mut shared = fields("");
    for_front(&fields(all), &mut shared);
    assert_eq!(shared.len(), 1);
    for name in
        ["X-LSCACHE", "x_lscache_vary_value", "ESI-Referer", "X-LiteMage", "X-LiteSpeed-Purge"]
    {
        assert!(is_forged(name.as_bytes()), "{name}");
    }
    assert!(!is_forged(b"X-Lite") && !is_forged(b"x_other"));
}

#[test]
fn parts_of_bodies_are_never_kept() {
    let answer = "Cache-Control: max-age=60|Content-Range: bytes 0-4/10";
    let case = Case { status: 206, answer, ..Case::default() };
    assert_eq!(case.refusal(), Some(StoreRefusal::Status));
}

#[test]
fn a_redirect_to_its_own_key_is_not_stored() {
    let mut policy = CachePolicy::default();
    policy.query.add_all(b"-qs:utm_*");
    let own = Some(StoreRefusal::OwnRedirect);
    let rows = [
        ("/x?utm_source=a", "", "/x", own),
        ("/x?utm_source=a", "", "https://a.test/x", own),
        ("/x?utm_source=a", "", "HTTPS://A.TEST:443/x#top", own),
        ("/x?utm_source=a", "", "//a.test/x?utm_medium=b", own),
        ("/d/x?utm_source=a", "", "x", own),
        ("/x", "", "/x", own),
        // A browser removes dot segments, some spelled with `%2e`.
        ("/d/x?utm_source=a", "", "./x", own),
        ("/d/x?utm_source=a", "", "../d/x", own),
        ("/d/x?utm_source=a", "", "/d/%2E%2e/d/./x", own),
        ("/d/?utm_source=a", "", ".", own),
        ("/d/x?utm_source=a", "", "/d/../x", None),
        ("/x", "", "", own),
        ("/x?", "", "/x", None),
        ("/x?utm_source=a&p=1", "", "/x", None),
        ("/x", "", "/y", None),
        ("/x", "", "https://www.a.test/x", None),
        ("/x", "", "https://a.test:8443/x", None),
        // The client came by HTTPS, or its proxy says otherwise.
        ("/x", "", "http://a.test/x", None),
        ("/x", "X-Forwarded-Proto: http", "https://a.test/x", None),
        ("/x", "X-Forwarded-Proto: http", "http://a.test/x", own),
    ];
    for (target, request, location, expected) in rows {
        let answer = format!("Cache-Control: max-age=5|Location: {location}");
        let policy = policy.clone();
        let case =
            Case { target, request, status: 301, answer: &answer, policy, ..Case::default() };
        assert_eq!(case.refusal(), expected, "{target} to {location}");
        assert_eq!(Case { status: 200, ..case }.refusal(), None, "no redirect");
    }
}
