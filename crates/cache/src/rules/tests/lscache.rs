//! The directives of LSCache applications, and their effects.

use bolide_http::Method;
use bolide_http::lscache::{CacheScope, PurgeEffect};

use super::{Case, fields};
use crate::rules::{
    AnswerSource, CachePolicy, Environment, Mode, PurgeTarget, SetCookie, StoreRefusal,
    StoreVerdict, tags,
};

fn environment(pairs: &[(&str, &str)]) -> Environment {
    let mut environment = Environment::default();
    for (name, value) in pairs {
        assert!(environment.set(name.as_bytes(), value.as_bytes()), "{name}");
    }
    environment
}

#[test]
fn control_decides_the_scope_and_the_lifetime() {
    use CacheScope::{Private, Public};
    type Kept = Result<(CacheScope, u32), StoreRefusal>;
    let rows: [(&str, Kept); 20] = [
        ("public,max-age=60", Ok((Public, 60))),
        ("private,max-age=60", Ok((Private, 60))),
        ("shared,private,max-age=60", Ok((Private, 60))),
        ("public", Ok((Public, 3600))),
        ("private", Ok((Private, 3600))),
        ("max-age=60", Ok((Public, 60))),
        ("max-age=60,s-maxage=5", Ok((Public, 5))),
        ("s-maxage=5,max-age=60", Ok((Public, 5))),
        ("no-cache,max-age=60", Ok((Public, 60))),
        ("max-age=60,no-cache", Err(StoreRefusal::NoCache)),
        ("max-age=60,no-store", Err(StoreRefusal::NoStore)),
        ("no-cache", Err(StoreRefusal::NoCache)),
        ("no-cache,esi=on", Err(StoreRefusal::NoCache)),
        ("esi=on", Err(StoreRefusal::NoLifetime)),
        ("no-vary", Err(StoreRefusal::NoLifetime)),
        ("max-age=0", Err(StoreRefusal::Stale)),
        ("public,max-age=0", Err(StoreRefusal::Stale)),
        ("max-age=x", Err(StoreRefusal::NoLifetime)),
        ("rubbish", Err(StoreRefusal::NoLifetime)),
        ("", Err(StoreRefusal::NoLifetime)),
    ];
    for (control, expected) in rows {
        let answer = format!("X-LiteSpeed-Cache-Control: {control}");
        let case = Case { answer: &answer, ..Case::default() };
        let decision = case.decide();
        let found =
            case.refusal().map_or_else(|| Ok((decision.scope().expect("kept"), decision.ttl)), Err);
        assert_eq!(found, expected, "{control}");
        assert_eq!(decision.source, AnswerSource::LiteSpeed);
    }
}

#[test]
fn the_applications_word_goes_before_every_other() {
    let rows = [
        ("X-LiteSpeed-Cache-Control: public,max-age=1", Some(1), AnswerSource::LiteSpeed),
        ("Bolide-Cache-Control: max-age=2", Some(2), AnswerSource::Targeted),
        ("CDN-Cache-Control: max-age=3", Some(3), AnswerSource::Targeted),
        ("Surrogate-Control: max-age=4", Some(4), AnswerSource::Surrogate),
        ("Cache-Control: max-age=5", Some(5), AnswerSource::CacheControl),
        ("Expires: Sun, 13 Sep 2020 12:28:20 GMT", Some(100), AnswerSource::Expires),
    ];
    for from in 0..rows.len() {
        let lines: Vec<&str> = rows[from..].iter().map(|row| row.0).rev().collect();
        let answer = lines.join("|");
        let decision = Case { answer: &answer, ..Case::default() }.decide();
        assert_eq!(Some(decision.ttl), rows[from].1, "{answer}");
        assert_eq!(decision.source, rows[from].2, "{answer}");
    }
    // PHP's own session fields do not override the application's.
    let answer = "X-LiteSpeed-Cache-Control: public,max-age=9|Pragma: no-cache|\
                  Cache-Control: no-store, no-cache, must-revalidate|Expires: 0";
    let decision = Case { answer, ..Case::default() }.decide();
    assert_eq!((decision.scope(), decision.ttl), (Some(CacheScope::Public), 9));
}

#[test]
fn several_lines_are_one_control() {
    let answer = "X-LiteSpeed-Cache-Control: private|X-LiteSpeed-Cache-Control: max-age=7,esi=on|\
                  X-LiteSpeed-Cache-Control: max-stale=3";
    let decision = Case { answer, ..Case::default() }.decide();
    assert_eq!((decision.scope(), decision.ttl), (Some(CacheScope::Private), 7));
    assert!(decision.esi);
    assert_eq!(decision.stale_while_revalidate, 3);
}

#[test]
fn stale_objects_may_be_sent_for_a_while() {
    let decide = |answer| Case { answer, ..Case::default() }.decide();
    assert_eq!(decide("X-LiteSpeed-Cache-Control: max-age=9").stale_while_revalidate, 200);
    let zero = decide("X-LiteSpeed-Cache-Control: max-age=9,max-stale=0");
    assert_eq!(zero.stale_while_revalidate, 0);
    // Behind it a page is gone, also where the application fails.
    let two = decide("X-LiteSpeed-Cache-Control: max-age=9,max-stale=2");
    assert_eq!((two.stale_while_revalidate, two.stale_if_error, two.says_for_errors), (2, 2, true));
}

#[test]
fn any_final_status_is_kept_on_the_applications_word_and_else_only_by_its_own() {
    let rows = [
        (200, true, true),
        (301, true, true),
        (302, true, true),
        (403, true, true),
        (404, true, true),
        (500, true, true),
        (503, true, true),
        (206, false, false),
        (304, false, false),
        (103, false, false),
    ];
    for (status, marked, standard) in rows {
        let answer = "X-LiteSpeed-Cache-Control: public,max-age=5";
        let case = Case { status, answer, ..Case::default() };
        assert_eq!(case.refusal().is_none(), marked, "{status}");
        let case = Case { status, answer: "Cache-Control: max-age=5", ..Case::default() };
        assert_eq!(case.refusal().is_none(), standard, "{status}");
        let policy = CachePolicy { mode: Mode::LsCache, ..CachePolicy::default() };
        let case = Case { status, policy, ..Case::default() };
        assert_eq!(case.refusal().is_none(), status == 200, "{status} by default");
    }
}

#[test]
fn what_is_never_kept() {
    let mark = "X-LiteSpeed-Cache-Control: public,max-age=5";
    let case = || Case { answer: mark, ..Case::default() };
    let policy = CachePolicy::default;
    let rows = [
        (case(), None),
        (Case { method: Method::Head, ..case() }, Some(StoreRefusal::Method)),
        (Case { method: Method::Post, ..case() }, Some(StoreRefusal::Method)),
        (Case { body_len: Some(0), ..case() }, Some(StoreRefusal::Empty)),
        (Case { body_len: None, ..case() }, None),
        (Case { body_len: Some(10_000_001), ..case() }, Some(StoreRefusal::TooLarge)),
        (Case { body_len: Some(10_000_000), ..case() }, None),
        (
            Case { policy: CachePolicy { public: false, ..policy() }, ..case() },
            Some(StoreRefusal::Space),
        ),
        (
            Case { policy: CachePolicy { with_query: false, ..policy() }, ..case() },
            Some(StoreRefusal::Request),
        ),
        (
            Case { policy: CachePolicy { with_query: false, ..policy() }, target: "/?", ..case() },
            None,
        ),
        (
            Case {
                policy: CachePolicy { with_cookies: false, ..policy() },
                request: "Cookie: a=1",
                ..case()
            },
            Some(StoreRefusal::Request),
        ),
        (
            Case { environment: environment(&[("modcache", "0")]), ..case() },
            Some(StoreRefusal::Environment),
        ),
        (
            // The response's max-age does not override the request's no-cache.
            Case { environment: environment(&[("Cache-Control", "no-cache")]), ..case() },
            Some(StoreRefusal::Environment),
        ),
        (Case { request: "Authorization: Basic x", ..case() }, None),
        (Case { request: "Cache-Control: no-store, no-cache", ..case() }, None),
        (
            Case {
                policy: CachePolicy { honour_request: true, ..policy() },
                request: "Cache-Control: no-store",
                ..case()
            },
            Some(StoreRefusal::RequestNoStore),
        ),
    ];
    for (index, (case, expected)) in rows.into_iter().enumerate() {
        assert_eq!(case.refusal(), expected, "row {index}");
    }
}

#[test]
fn private_needs_a_session_and_its_space() {
    let answer = "X-LiteSpeed-Cache-Control: private,max-age=5";
    let rows = [
        (true, true, None),
        (false, true, Some(StoreRefusal::NoSession)),
        (true, false, Some(StoreRefusal::Space)),
    ];
    for (has_session, private, expected) in rows {
        let policy = CachePolicy { private, ..CachePolicy::default() };
        let case = Case { answer, has_session, policy, ..Case::default() };
        assert_eq!(case.refusal(), expected);
    }
}

#[test]
fn a_cookie_that_is_set_changes_the_key_or_prevents() {
    use SetCookie::{Dropped, NeedsMark, Prevents};
    let marked = "X-LiteSpeed-Cache-Control: public,max-age=5|Set-Cookie: a=1";
    let plain = "Cache-Control: max-age=5|Set-Cookie: a=1";
    let rows = [
        (Prevents, marked, Some(StoreRefusal::SetCookie)),
        (Prevents, plain, Some(StoreRefusal::SetCookie)),
        (NeedsMark, marked, None),
        (NeedsMark, plain, Some(StoreRefusal::SetCookie)),
        (Dropped, plain, None),
    ];
    for (set_cookie, answer, expected) in rows {
        let policy = CachePolicy { set_cookie, ..CachePolicy::default() };
        let case = Case { policy, answer, ..Case::default() };
        assert_eq!(case.refusal(), expected, "{set_cookie:?} {answer}");
        assert_eq!(case.decide().rekey, expected.is_none());
    }
}

#[test]
fn vary_names_cookies_values_and_fields() {
    let decide = |lines: &str| {
        let answer = format!("X-LiteSpeed-Cache-Control: public,max-age=5|{lines}");
        Case { answer: &answer, ..Case::default() }.decide()
    };
    let names = |lines: &str| -> Vec<String> {
        let decision = decide(lines);
        decision.vary.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    };
    assert_eq!(names("X-LiteSpeed-Vary: cookie=a, cookie=b,cookie=a"), ["cookie=a", "cookie=b"]);
    assert_eq!(
        names("Vary: Accept-Encoding, Cookie, Origin, User-Agent"),
        ["origin", "user-agent"]
    );
    assert_eq!(names("X-LiteSpeed-Vary: cookie=a|Vary: Accept"), ["cookie=a", "accept"]);
    assert!(names("Vary: Accept|X-LiteSpeed-Cache-Control: no-vary").is_empty());
    let value = decide("X-LiteSpeed-Vary: value=mobile");
    assert_eq!(value.vary_value.as_deref(), Some(&b"mobile"[..]));
    assert!(value.rekey);
    let alone = decide("X-LiteSpeed-Cache-Control: no-vary|X-LiteSpeed-Vary: value=m,cookie=a");
    assert!(alone.no_vary && alone.rekey);
    assert_eq!((alone.vary.len(), alone.vary_value), (0, None));
    let refused = decide("Vary: Origin|X-LiteSpeed-Cache-Control: no-vary");
    assert_eq!(
        refused.verdict,
        StoreVerdict::Refuse(StoreRefusal::Vary),
        "one copy is not for all origins"
    );
    assert!(!decide("").rekey);
    assert_eq!(decide("Vary: *").scope(), None);
}

#[test]
fn esi_is_told_whether_kept_or_not() {
    let rows = [
        ("X-LiteSpeed-Cache-Control: no-cache,esi=on", true),
        ("X-LiteSpeed-Cache-Control: public,max-age=5,esi=on", true),
        ("X-LiteSpeed-Cache-Control: public,max-age=5", false),
        ("X-LiteSpeed-Cache-Control: esi=on,esi=off", false),
        ("Surrogate-Control: content=\"ESI/1.0\"", true),
        ("Surrogate-Control: max-age=5, content=\"ESI/1.0\"", true),
        ("", false),
    ];
    for (answer, expected) in rows {
        assert_eq!(Case { answer, ..Case::default() }.decide().esi, expected, "{answer}");
        let policy = CachePolicy { esi: false, ..CachePolicy::default() };
        let off = Case { answer, policy, ..Case::default() };
        assert!(!off.decide().esi);
        let is_public = answer.contains("max-age=5") && expected;
        assert_eq!(off.refusal() == Some(StoreRefusal::Unassembled), is_public, "{answer}");
    }
    let coded = "X-LiteSpeed-Cache-Control: public,max-age=5,esi=on|Content-Encoding: gzip";
    let refusal = Case { answer: coded, ..Case::default() }.refusal();
    assert_eq!(refusal, Some(StoreRefusal::Unassembled), "what cannot be read cannot be cut");
    let environment = environment(&[("cache-control", "esi=on")]);
    assert!(Case { environment, ..Case::default() }.decide().esi);
    let answer = "Surrogate-Control: content=\"ESI/1.0\"|Cache-Control: max-age=7";
    assert_eq!(Case { answer, ..Case::default() }.decide().ttl, 7);
}

#[test]
fn purges_are_carried_out_whatever_else_is_decided() {
    let answer = "X-LiteSpeed-Purge2: b|X-LiteSpeed-Purge: public,stale,a;private,*|\
                  X-LiteSpeed-Purge: /x?y=1,2|X-LiteSpeed-Cache-Control: no-cache";
    for (method, status) in [(Method::Get, 200), (Method::Post, 302), (Method::Other, 500)] {
        let policy = CachePolicy { invalidates: false, ..CachePolicy::default() };
        let decision = Case { method, status, answer, policy, ..Case::default() }.decide();
        let found: Vec<_> = decision
            .purges
            .iter()
            .map(|order| (order.scope, order.effect, order.target.clone()))
            .collect();
        let expected = [
            (CacheScope::Public, PurgeEffect::Stale, PurgeTarget::Tag(Box::from(*b"a"))),
            (CacheScope::Private, PurgeEffect::Dead, PurgeTarget::All),
            (CacheScope::Public, PurgeEffect::Dead, PurgeTarget::Url(Box::from(*b"/x?y=1,2"))),
            (CacheScope::Public, PurgeEffect::Dead, PurgeTarget::Tag(Box::from(*b"b"))),
        ];
        assert_eq!(found, expected);
    }
}

#[test]
fn groups_are_dropped_by_successful_unsafe_requests_only() {
    let answer = "Cache-Group-Invalidation: \"a\", \"b\"";
    for (method, status, count) in
        [(Method::Post, 200, 2), (Method::Get, 200, 0), (Method::Post, 500, 0)]
    {
        let policy = CachePolicy { invalidates: false, ..CachePolicy::default() };
        let case = Case { method, status, answer, policy, ..Case::default() };
        assert_eq!(case.decide().purges.len(), count);
    }
}

#[test]
fn all_dialects_of_tags_feed_one_list() {
    let answer = fields(
        "X-LiteSpeed-Tag: a,public:b,|Surrogate-Key: c d|xkey: e|Cache-Tag: f g,h|\
         Cache-Groups: \"i\"|Edge-Cache-Tag: j",
    );
    let mut found = Vec::new();
    tags(&answer, |tag| {
        found.push((String::from_utf8_lossy(tag.text).into_owned(), tag.public));
    });
    let expected = [
        ("a", false),
        ("b", true),
        ("", false),
        ("c", true),
        ("d", true),
        ("e", true),
        ("f g", true),
        ("h", true),
        ("j", true),
        ("i", true),
    ];
    assert_eq!(found, expected.map(|(text, public)| (text.to_owned(), public)));
    let mut count = 0;
    let long = fields(&format!("X-LiteSpeed-Tag: {}", "tag_number,".repeat(20_000)));
    tags(&long, |_| count += 1);
    assert_eq!(count, 20_001);
}

#[test]
fn cookies_of_the_object_are_kept_and_lifetimes_come_from_the_configuration_last() {
    let answer = "X-LiteSpeed-Cache-Control: max-age=5|LSC-Cookie: a=1; path=/|LSC-Cookie: b=2";
    let decision = Case { answer, ..Case::default() }.decide();
    assert_eq!(decision.cookies, [Box::from(*b"a=1; path=/"), Box::<[u8]>::from(*b"b=2")]);
    let on = || CachePolicy { mode: Mode::LsCache, ttl: 77, ..CachePolicy::default() };
    let by_default = Case { policy: on(), ..Case::default() }.decide();
    assert_eq!((by_default.ttl, by_default.source), (77, AnswerSource::Configuration));
    let rule = environment(&[("cache-control", "max-age=33")]);
    let by_rule = Case { policy: on(), environment: rule, ..Case::default() }.decide();
    assert_eq!(by_rule.ttl, 33);
    let private = environment(&[("cache-control", "private,max-age=33")]);
    let by_rule = Case { policy: on(), environment: private, ..Case::default() }.decide();
    assert_eq!(by_rule.scope(), Some(CacheScope::Private));
    let no = Case { policy: on(), answer: "Cache-Control: no-cache", ..Case::default() };
    assert_eq!(no.refusal(), Some(StoreRefusal::NoCache));
    assert_eq!(Case::default().refusal(), Some(StoreRefusal::NoLifetime));
}
