//! Each rule of Magento's mode, by a request and a response.

use bolide_http::cookies::Cookies;
use bolide_http::lscache::CacheScope;
use bolide_http::{FieldMap, Name};

use super::{MagentoDelivery, MagentoLook, deliver, variant};
use crate::rules::tests::facts;
use crate::rules::{
    AnswerFacts, Bypass, CachePolicy, Environment, Mode, StoreDecision, StoreRefusal, StoreVerdict,
    decide, gate,
};

fn fields(rows: &[(&str, &str)]) -> FieldMap {
    let mut fields = FieldMap::new();
    rows.iter().for_each(|row| fields.push_text(row.0.as_bytes(), row.1.as_bytes()));
    fields
}

fn policy() -> CachePolicy {
    CachePolicy {
        mode: Mode::Magento,
        private: false,
        invalidates: false,
        ..CachePolicy::default()
    }
}

fn bypass(target: &str, rows: &[(&str, &str)]) -> Option<Bypass> {
    let (fields, environment) = (fields(rows), Environment::default());
    gate(&policy(), &facts(&fields, target, &environment), false).err()
}

#[test]
fn private_pages_bypass_the_cache() {
    for target in [
        "/customer/account",
        "/de/checkout/cart?x=1",
        "/a?back=/customer",
        "/%63ustomer/account",
        "/de%2fc%75stomer/account",
        "/a%20b/check%6Fut",
        "/health_check.php",
        "/pub/health_check.php",
        "/media/a.png",
        "/pub/static/a.js",
    ] {
        assert_eq!(bypass(target, &[]), Some(Bypass::Magento), "{target}");
    }
    let named = [("Cookie", "PHPSESSID=0123456789abcdef"), ("Authorization", "Basic x")];
    for target in ["/", "/a.html", "/%zz/%", "/%63ustom", "/custom", "/mediated/a", "/a/media/x"] {
        assert_eq!(bypass(target, &named), None, "{target}");
    }
    let token = ("Authorization", "Bearer x");
    assert_eq!(bypass("/graphql?q=1", &[token]), Some(Bypass::Magento));
    assert_eq!(bypass("/graphql?q=1", &[token, ("X-Magento-Cache-Id", "c")]), None);
    assert_eq!(bypass("/graphql?q=1", &[]), None);
    // However it is spelled, the application understands it.
    assert_eq!(bypass("/%67raphql?q=1", &[token]), Some(Bypass::Magento));
    assert_eq!(bypass("/de/graph%71l?q=1", &[token]), Some(Bypass::Magento));
    assert_eq!(bypass("/%6dedia/a.png", &[]), Some(Bypass::Magento));
}

fn key(target: &str, rows: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let (fields, environment) = (fields(rows), Environment::default());
    let facts = facts(&fields, target, &environment);
    let mut pieces = Vec::new();
    variant(&facts, &Cookies::of(&fields), |piece| {
        let mut text = Vec::new();
        piece.push(&mut text);
        pieces.push(text);
    });
    pieces
}

#[test]
fn a_variant_is_its_cookie_and_of_graphql_what_its_client_says() {
    let vary = ("Cookie", "a=1; X-Magento-Vary=one");
    assert!(key("/a", &[("Cookie", "a=1"), ("Store", "de")]).is_empty());
    assert_eq!(key("/a", &[vary]), [b"mX-Magento-Vary=one"]);
    let plain = key("/graphql", &[]);
    let others = [
        key("/graphql", &[("Store", "de")]),
        key("/graphql", &[("Content-Currency", "de")]),
        key("/graphql", &[("X-Magento-Cache-Id", "de")]),
        key("/graphql", &[("X-Magento-Cache-Id", "de"), ("Authorization", "Bearer x")]),
        key("/graphql", &[vary]),
        plain,
    ];
    for (at, one) in others.iter().enumerate() {
        assert!(others.iter().skip(at + 1).all(|other| other != one), "{one:?}");
    }
    assert_eq!(key("/%67raphql", &[("Store", "de")]), key("/graphql", &[("Store", "de")]));
    let id = ("X-Magento-Cache-Id", "c");
    assert_eq!(key("/graphql", &[id, vary]), key("/graphql", &[id]), "the identifier says it all");
}

fn decision(
    target: &str,
    asked: &[(&str, &str)],
    status: u16,
    said: &[(&str, &str)],
) -> StoreDecision {
    let (fields, answer, environment) = (fields(asked), fields(said), Environment::default());
    let head = AnswerFacts { status, fields: &answer, body_len: Some(9), asked: 0, arrived: 0 };
    decide(&policy(), &facts(&fields, target, &environment), &head, false)
}

fn refusal(asked: &[(&str, &str)], status: u16, said: &[(&str, &str)]) -> (StoreRefusal, u32) {
    let decision = decision("/a", asked, status, said);
    match decision.verdict {
        StoreVerdict::Refuse(refusal) => (refusal, decision.remembered.unwrap_or(0)),
        StoreVerdict::Keep(_) => panic!("{status} {said:?} is stored"),
    }
}

fn ttl(asked: &[(&str, &str)], status: u16, said: &[(&str, &str)]) -> u32 {
    let decision = decision("/a", asked, status, said);
    assert_eq!(decision.verdict, StoreVerdict::Keep(CacheScope::Public), "{status} {said:?}");
    decision.ttl
}

const PUBLIC: (&str, &str) = ("Cache-Control", "public, max-age=60, s-maxage=60");

#[test]
fn refusals_are_remembered_for_as_long_as_their_rule_says() {
    for status in [403, 404, 500, 503] {
        assert_eq!(refusal(&[], status, &[PUBLIC]), (StoreRefusal::Status, 120), "{status}");
    }
    let private = [("Cache-Control", "private, max-age=60")];
    assert_eq!(refusal(&[], 200, &private), (StoreRefusal::Private, 86_400));
    for (said, expected) in [
        (("Cache-Control", "max-age=0"), StoreRefusal::Stale),
        (("Cache-Control", "no-cache, max-age=60"), StoreRefusal::NoCache),
        (("Cache-Control", "no-store, max-age=60"), StoreRefusal::NoStore),
        (("Surrogate-Control", "no-store"), StoreRefusal::NoStore),
        (("Vary", "*"), StoreRefusal::Vary),
        (("Expires", "0"), StoreRefusal::Stale),
    ] {
        assert_eq!(refusal(&[], 200, &[said]), (expected, 120), "{said:?}");
    }
    assert_eq!(refusal(&[], 302, &[]), (StoreRefusal::NoLifetime, 120));
    assert_eq!(refusal(&[], 201, &[PUBLIC]), (StoreRefusal::Status, 120));
    let basic = [("Authorization", "Basic x")];
    let aged = [("Cache-Control", "max-age=60")];
    assert_eq!(refusal(&basic, 200, &aged).0, StoreRefusal::Authorization);
    assert_eq!(ttl(&basic, 200, &[PUBLIC]), 60);
}

#[test]
fn lifetimes_are_those_of_varnish() {
    assert_eq!(ttl(&[], 200, &[]), 120);
    assert_eq!(ttl(&[], 302, &[("Cache-Control", "max-age=5")]), 5);
    assert_eq!(ttl(&[], 200, &[("Cache-Control", "max-age=5, s-maxage=7")]), 7);
    let dated =
        [("Date", "Thu, 01 Jan 1970 00:01:00 GMT"), ("Expires", "Thu, 01 Jan 1970 00:02:10 GMT")];
    assert_eq!(ttl(&[], 200, &dated), 70);
    // Cookies that the page sets are no obstacle.
    assert_eq!(
        ttl(&[("Cookie", "PHPSESSID=x")], 200, &[PUBLIC, ("Set-Cookie", "PHPSESSID=y")]),
        60
    );
}

#[test]
fn a_page_of_another_variant_belongs_to_neither() {
    let set = |value| [PUBLIC, ("Set-Cookie", value)];
    let one = [("Cookie", "X-Magento-Vary=one")];
    assert_eq!(ttl(&one, 200, &set("X-Magento-Vary=one; path=/")), 60);
    assert_eq!(ttl(&[], 200, &set("X-Magento-Vary=deleted; Max-Age=0")), 60);
    for (asked, value) in [
        (&[][..], "X-Magento-Vary=one"),
        (&one, "X-Magento-Vary=two"),
        (&one, "X-Magento-Vary=deleted; Max-Age=0"),
    ] {
        assert_eq!(refusal(asked, 200, &set(value)), (StoreRefusal::Variant, 120), "{value}");
    }
    let id = |value| ("X-Magento-Cache-Id", value);
    let graph = |said| decision("/graphql", &[id("one")], 200, &[PUBLIC, said]).scope();
    assert_eq!(graph(id("one")), Some(CacheScope::Public));
    assert_eq!((graph(id("two")), graph(("X-Other", "one"))), (None, None));
}

#[test]
fn clients_may_keep_nothing_but_what_is_their_own() {
    let delivered = |target: &str, look, rows: &[(&str, &str)]| {
        let mut fields = fields(rows);
        let target = target.as_bytes();
        deliver(&mut fields, &MagentoDelivery { target, look, hides: true });
        fields
    };
    let rows = [PUBLIC, ("X-Magento-Tags", "a"), ("Set-Cookie", "a"), ("Link", "x"), ("Age", "1")];
    let page = delivered("/a", MagentoLook::Shared, &rows);
    assert_eq!(page.get(Name::Pragma), Some(&b"no-cache"[..]));
    assert_eq!(page.get(Name::CacheControl), Some(super::delivery::NO_STORE));
    for name in ["X-Magento-Tags", "Set-Cookie", "Link", "Age"] {
        assert_eq!(page.get_text(name.as_bytes()), None, "{name}");
    }
    let passed = delivered("/a", MagentoLook::Passed, &rows);
    assert!(passed.get(Name::SetCookie).is_some());
    let private = ("Cache-Control", "private, max-age=9");
    for (target, said) in [("/a", private), ("/media/a", PUBLIC), ("/pub/static/a", PUBLIC)] {
        let kept = delivered(target, MagentoLook::Passed, &[said]);
        assert_eq!(kept.get(Name::CacheControl), Some(said.1.as_bytes()), "{target}");
    }
    let debugged = [PUBLIC, ("X-Magento-Debug", "1"), ("Age", "1")];
    let debugged = delivered("/a", MagentoLook::Shared, &debugged);
    assert_eq!(debugged.get_text(b"X-Magento-Cache-Control"), Some(PUBLIC.1.as_bytes()));
    assert!(debugged.get(Name::Age).is_some());
}
