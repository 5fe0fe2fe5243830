//! Orders for the cache over the rounds of a request.

use super::{
    CacheLine, CacheOrders, CachePrefix, CacheScopes, CacheVariable, LsCacheControl, TEXT_MAX,
};

fn said(words: &[(&str, &str)]) -> CacheOrders {
    let mut orders = CacheOrders::default();
    for (name, value) in words {
        let variable = CacheVariable::parse(name.as_bytes()).expect(name);
        orders.hear(variable, value.as_bytes(), false);
    }
    orders
}

#[test]
fn words_add_up_and_the_vary_value_is_the_last_one() {
    let orders = said(&[
        ("Cache-Control", "no-autoflush"),
        ("cache-ctrl", "vary=+a, max-age=5"),
        ("CACHE-CONTROL", "vary=+a+b"),
        ("Cache-Vary", ",one"),
        ("cache-vary", "cookie=two,"),
        ("cache-key-mod", "-qs:x"),
    ]);
    assert_eq!(&*orders.control(), b"no-autoflush,max-age=5");
    assert_eq!(&*orders.vary_value(), b"+a+b");
    assert_eq!(orders.vary_cookies(), b"one,two");
    assert_eq!(orders.key_words(), b"-qs:x");
    assert!(!orders.is_off());
    assert!(CacheVariable::parse(b"Cache-Controls").is_none());
}

#[test]
fn a_round_cannot_take_back_what_the_one_before_told_apart() {
    let mut orders = said(&[("Cache-Control", "vary=+a+b")]);
    orders.enter_round(true);
    assert_eq!(orders.variable(b"LSCACHE_VARY_VALUE"), None, "rules begin anew");
    assert_eq!(&*orders.vary_value(), b"+a+b");
    for (next, wanted) in
        [("vary=+a", "+a+b\0+a"), ("vary=+a+b", "+a+b"), ("vary=+a+b+c", "+a+b+c")]
    {
        let mut orders = orders.clone();
        orders.hear(CacheVariable::Control, next.as_bytes(), false);
        assert_eq!(&*orders.vary_value(), wanted.as_bytes());
        orders.enter_round(true);
        orders.enter_round(false);
        assert_eq!(&*orders.vary_value(), wanted.as_bytes());
    }
}

#[test]
fn what_permits_more_counts_for_the_path_that_was_sent() {
    let grants = "max-age=9,Public,s-maxage=1,max-stale=1,shared,no-vary";
    let mut orders = CacheOrders::default();
    orders.enter_round(false);
    orders.hear(CacheVariable::Control, grants.as_bytes(), false);
    orders.hear(CacheVariable::Key, b"-qs:a", false);
    assert!(orders.is_empty() && orders.asks_whether_path_is_asked());
    orders.hear(CacheVariable::Control, b"no-cache,private,vary=x,no-autoflush", false);
    orders.hear(CacheVariable::Cookies, b"a", false);
    assert_eq!(&*orders.control(), b"no-cache,private,no-autoflush");
    assert_eq!((orders.vary_cookies(), &*orders.vary_value()), (&b"a"[..], &b"x"[..]));
    // A condition about that path is enough, unless its own rules were asked already.
    let mut orders = CacheOrders::default();
    orders.enter_round(false);
    orders.conclude();
    orders.hear(CacheVariable::Control, b"max-age=9", true);
    assert_eq!(&*orders.control(), b"max-age=9");
    let mut orders = CacheOrders::default();
    orders.enter_round(true);
    orders.hear(CacheVariable::Control, b"max-age=9", false);
    orders.conclude();
    orders.enter_round(false);
    orders.hear(CacheVariable::Control, b"max-age=99", true);
    assert_eq!(&*orders.control(), b"max-age=9");
}

#[test]
fn a_round_cannot_permit_what_the_one_before_forbade() {
    let mut orders = said(&[("Cache-Control", "private,no-cache")]);
    let both = CacheScopes { public: true, private: true };
    let path = |path: &[u8], enabled| {
        CacheLine::Prefix(CachePrefix { path: path.into(), scopes: both, enabled })
    };
    let first = [CacheLine::Lookup(both, false), path(b"/a", false), path(b"/a/b", true)];
    let second = [CacheLine::Lookup(both, true), path(b"/", true)];
    orders.obey(first.iter());
    assert_eq!(&*orders.control(), b"private,no-cache");
    for directives in [&second[..], &second, &first] {
        orders.enter_round(true);
        orders.hear(CacheVariable::Control, b"max-age=5,public", false);
        orders.obey(directives.iter());
        let control = LsCacheControl::of(&orders.control());
        assert!(control.no_cache && control.private, "{orders:?}");
        assert_eq!(orders.lookup(), [Some(false); 2]);
    }
    let lists: Vec<_> = orders.prefixes().map(<[_]>::len).collect();
    assert_eq!(lists, [2, 1], "the same list is there once");
}

#[test]
fn what_is_beyond_a_limit_keeps_the_request_out() {
    for name in ["Cache-Control", "Cache-Vary", "cache-key-mod", "LSCACHE_VARY_VALUE"] {
        let orders = said(&[(name, &"x".repeat(TEXT_MAX + 1))]);
        assert!(orders.is_off(), "{name}");
    }
    assert!(said(&[("modcache", "0")]).is_off());
    assert!(!said(&[("modcache", "1")]).is_off());
}
