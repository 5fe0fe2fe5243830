//! The parts of keys, and the requests that are looked up.

use bolide_http::cookies::Cookies;
use bolide_http::message::Scheme;
use bolide_http::{FieldMap, Method};
use proptest::prelude::{any, proptest};

use super::{NOW, facts, fields};
use crate::rules::{
    AnswerFacts, Bypass, CacheGate, CachePolicy, Environment, Facts, KeyPiece, Mode, QueryRules,
    autoflushes, decide, gate, is_of_address, named, of_address, session, url, url_of, vary_base,
};

fn key(target: &str, policy: &CachePolicy, environment: &Environment) -> String {
    let mut out = Vec::new();
    url(&mut out, &facts(&FieldMap::new(), target, environment), policy);
    String::from_utf8(out).unwrap()
}

#[test]
fn the_url_holds_scheme_host_port_server_path_and_query() {
    let (policy, environment) = (CachePolicy::default(), Environment::default());
    let rows = [
        ("/", "https://a.test:443/"),
        ("/a%2Fb//c?x=1&b", "https://a.test:443/a%2Fb//c?x=1&b"),
        ("/?", "https://a.test:443/?"),
        ("/?b=2&a=1", "https://a.test:443/?b=2&a=1"),
    ];
    for (target, expected) in rows {
        assert_eq!(key(target, &policy, &environment), expected);
    }
    let none = FieldMap::new();
    let other = facts(&none, "/", &environment);
    let mut out = Vec::new();
    url(&mut out, &Facts { scheme: Scheme::Http, port: 8080, server: b"b", ..other }, &policy);
    assert_eq!(out, b"http://a.test:8080 b /");
    out.clear();
    url_of(&mut out, &other, b"/purged?x", &policy);
    assert_eq!(out, b"https://a.test:443/purged?x");
}

#[test]
fn parameters_are_dropped_by_name_and_prefix_until_cleared() {
    let mut policy = CachePolicy::default();
    policy.query.add_all(b"-qs:fbclid -qs:utm_*");
    let mut environment = Environment::default();
    assert!(environment.set(b"cache-key-mod", b"-qs:x"));
    let rows = [
        ("/?fbclid=1", "https://a.test:443/"),
        ("/?", "https://a.test:443/?"),
        ("/?fbclid=1&a=2&utm_source=3&utm_=4&fbclid2=5&x", "https://a.test:443/?a=2&fbclid2=5"),
        ("/?a=fbclid&utm=1", "https://a.test:443/?a=fbclid&utm=1"),
        ("/?a&a&x=1&a", "https://a.test:443/?a&a&a"),
    ];
    for (target, expected) in rows {
        assert_eq!(key(target, &policy, &environment), expected);
    }
    assert!(policy.query.add(b"clear") && policy.query.is_empty());
    let mut rules = QueryRules::default();
    assert!(!rules.add(b"qs:x") && !rules.add(b"-qs:") && rules.add(b"-QS:x"));
}

fn vary(
    policy: &CachePolicy,
    environment: &Environment,
    cookie: &str,
    value: Option<&[u8]>,
) -> String {
    let request = fields(&format!("Cookie: {cookie}"));
    let cookies = Cookies::of(&request);
    let mut out = Vec::new();
    vary_base(policy, environment, &cookies, value, |part| part.push(&mut out));
    String::from_utf8(out).unwrap()
}

#[test]
fn vary_cookies_and_values_tell_copies_apart() {
    let policy = CachePolicy::default();
    let plain = Environment::default();
    assert_eq!(vary(&policy, &plain, "a=1", None), "");
    assert_eq!(vary(&policy, &plain, "b=1; _lscache_vary=x", None), "c_lscache_vary=x;");
    let many = "_lscache_vary_b=2; _lscache_vary=1; _lscache_vary_a=3";
    let sorted = "c_lscache_vary=1;c_lscache_vary_a=3;c_lscache_vary_b=2;";
    assert_eq!(vary(&policy, &plain, many, None), sorted);
    let mut environment = Environment::default();
    environment.set(b"Cache-Vary", b"login,cookie=cart,login,_lscache_vary");
    environment.set(b"Cache-Control", b"vary=+ismobile");
    assert_eq!(vary(&policy, &environment, "cart=7", None), "clogin;ccart=7;v+ismobile");
    assert_eq!(vary(&policy, &environment, "login=", None), "clogin=;ccart;v+ismobile");
    assert_eq!(vary(&policy, &environment, "", Some(b"guest")), "clogin;ccart;vguest");
    environment.set(b"cache-ctrl", b"vary=+webp+ismobile");
    assert_eq!(vary(&policy, &environment, "", None), "clogin;ccart;v+webp+ismobile");
    environment.set(b"cache-ctrl", b"no-vary");
    assert_eq!(vary(&policy, &environment, "", None), "");
    let configured = CachePolicy { vary_cookies: vec![Box::from(*b"c")], ..CachePolicy::default() };
    assert_eq!(vary(&configured, &plain, "c=1", None), "cc=1;");
    assert!(!environment.set(b"PATH", b"x"));
}

#[test]
fn names_of_a_url_are_cookies_or_fields() {
    let request = fields("Cookie: a=1|Accept: x ,y");
    let cookies = Cookies::of(&request);
    let text = |name: &str| {
        let mut out = Vec::new();
        named(&mut out, name.as_bytes(), &request, &cookies);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(text("cookie=a"), "ca=1;");
    assert_eq!(text("cookie=b"), "cb;");
    assert_eq!(text("accept"), "naccept:x,y\n");
    assert_eq!(text("foo"), "nfoo\n");
}

#[test]
fn zones_tell_requests_apart_by_what_was_sent() {
    let text = |name: &str, request: &str| {
        let request = fields(request);
        let mut out = Vec::new();
        named(&mut out, format!("sent={name}").as_bytes(), &request, &Cookies::of(&request));
        String::from_utf8(out).unwrap()
    };
    for same in ["a, b", "a,b", ",a , ,b,", "a|Accept-Encoding: b", "a b"] {
        let request = format!("Accept-Encoding: {same}");
        assert_eq!(text("accept-encoding", &request), "saccept-encoding:a,b", "{same}");
    }
    for other in ["ab", "b,a", "A,b", ""] {
        let request = format!("Accept-Encoding: {other}");
        assert_ne!(text("accept-encoding", &request), "saccept-encoding:a,b", "{other}");
    }
    assert_eq!(text("accept-charset", "Accept-Charset: x , y"), "saccept-charset:x,y");
    assert_eq!(text("foo", "Foo: x , y|Foo: z"), "sfoo:x , y,z");
    assert_eq!(text("foo", "Foo: |Foo: z"), "sfoo:,z");
    assert_eq!((text("foo", "Foo: "), text("foo", "")), ("sfoo:".into(), "sfoo:".into()));
}

#[test]
fn a_page_that_sets_its_vary_cookie_is_kept_under_the_new_value() {
    let request = fields("Cookie: _lscache_vary=old; x=1");
    let answer = fields("Set-Cookie: _lscache_vary=new; path=/|Set-Cookie: y=1");
    let mut cookies = Cookies::of(&request);
    let url = bolide_http::cookies::CookieUrl { host: b"a.example", path: b"/" };
    cookies.merge(&answer, url, NOW / 1000);
    let (policy, environment) = (CachePolicy::default(), Environment::default());
    let mut out = Vec::new();
    vary_base(&policy, &environment, &cookies, None, |part| part.push(&mut out));
    assert_eq!(out, b"c_lscache_vary=new;");
}

#[test]
fn sessions_are_all_cookies_that_name_one_and_say_who_is_logged_in() {
    let long = "0123456789abcdef";
    let rows = [
        (format!("PHPSESSID={long}"), Some(format!("cPHPSESSID={long};"))),
        ("PHPSESSID=short".into(), None),
        (
            format!("PHPSESSID={long}; x=1; lsc_private={long}x"),
            Some(format!("cPHPSESSID={long};clsc_private={long}x;")),
        ),
        // A cookie that another host of the domain set, or a short one, is no session alone.
        (
            format!("lsc_private={long}; PHPSESSID=short"),
            Some(format!("cPHPSESSID=short;clsc_private={long};")),
        ),
        (
            format!("PHPSESSID=short; lsc_private={long}"),
            Some(format!("cPHPSESSID=short;clsc_private={long};")),
        ),
        (
            format!("PHPSESSID={long}; wordpress_logged_in_5=y"),
            Some(format!("cPHPSESSID={long};cwordpress_logged_in_5=y;")),
        ),
        (format!("wordpress_logged_in_5={long}"), None),
        (format!("other={long}"), None),
        (String::new(), None),
    ];
    for (cookie, expected) in rows {
        let request = fields(&format!("Cookie: {cookie}"));
        let mut text = Vec::new();
        let is_session = |name: &[u8]| matches!(name, b"PHPSESSID" | b"lsc_private");
        let found = session(&mut text, &Cookies::of(&request), is_session);
        let found = found.then(|| String::from_utf8(text).unwrap());
        assert_eq!(found, expected, "{cookie}");
    }
}

#[test]
fn a_host_is_a_piece_unless_it_is_a_name_in_lower_case() {
    let (request, environment) = (fields(""), Environment::default());
    let of = |authority: &str, host: &str| {
        let sent = fields(host);
        let fields = if host.is_empty() { &request } else { &sent };
        let own = facts(fields, "/", &environment);
        let own = Facts { authority: authority.as_bytes(), ..own };
        let mut out = Vec::new();
        of_address(&own, |piece| piece.push(&mut out));
        String::from_utf8(out).unwrap()
    };
    for (authority, host, expected) in [
        ("a.test", "", ""),
        ("a.test", "Host: a.test", ""),
        ("a.test:8080", "Host: a.test:8080", "ha.test:8080"),
        ("A.test.", "", "hA.test."),
        ("a.test", "Host: evil.test", "hevil.test"),
    ] {
        assert_eq!(of(authority, host), expected, "{authority} {host}");
    }
}

#[test]
fn pieces_of_the_address_are_known_among_others() {
    let mut keys = crate::KeyBuilder::default();
    assert!(is_of_address(keys.public().vary()));
    keys.push_vary_writing(|out| KeyPiece::Host(b"a:1").push(out));
    assert!(is_of_address(keys.public().vary()));
    for piece in [KeyPiece::Arrival(b"/x"), KeyPiece::Value(b"h"), KeyPiece::Cookie(b"h", None)] {
        let mark = keys.mark();
        keys.push_vary_writing(|out| piece.push(out));
        assert!(!is_of_address(keys.public().vary()), "{piece:?}");
        keys.rewind(mark);
    }
}

#[test]
fn the_gate_opens_spaces_or_says_why_not() {
    let policy = CachePolicy::default;
    let both = Ok(CacheGate { private: true, public: true });
    let (public, private) =
        (CacheGate { private: false, public: true }, CacheGate { private: true, public: false });
    let said = |name: &str, value: &str| {
        let mut environment = Environment::default();
        environment.set(name.as_bytes(), value.as_bytes());
        environment
    };
    let none = Environment::default;
    let rows = [
        (policy(), Method::Get, "", none(), true, both),
        (policy(), Method::Head, "", none(), true, both),
        (policy(), Method::Get, "", none(), false, Ok(public)),
        (policy(), Method::Post, "", none(), true, Err(Bypass::Method)),
        (policy(), Method::Purge, "", none(), true, Err(Bypass::Method)),
        (policy(), Method::Get, "Range: bytes=0-1|Cache-Control: no-cache", none(), true, both),
        (policy(), Method::Get, "", said("modcache", "0"), true, Err(Bypass::Off)),
        (
            policy(),
            Method::Get,
            "",
            said("Cache-Control", "no-cache"),
            true,
            Err(Bypass::Environment),
        ),
        (policy(), Method::Get, "", said("Cache-Control", "private"), true, Ok(private)),
        (policy(), Method::Get, "", said("Cache-Control", "private"), false, Err(Bypass::NoSpace)),
        (policy(), Method::Get, "", said("Cache-Control", "public"), true, Ok(public)),
        (policy(), Method::Get, "", said("Cache-Control", "max-age=9"), true, both),
        (CachePolicy { private: false, ..policy() }, Method::Get, "", none(), true, Ok(public)),
        (
            CachePolicy { public: false, ..policy() },
            Method::Get,
            "",
            none(),
            false,
            Err(Bypass::NoSpace),
        ),
        (
            CachePolicy { with_query: false, ..policy() },
            Method::Get,
            "",
            none(),
            true,
            Err(Bypass::Query),
        ),
        (
            CachePolicy { with_cookies: false, ..policy() },
            Method::Get,
            "Cookie: a=1",
            none(),
            true,
            Err(Bypass::Cookies),
        ),
        (
            CachePolicy { honour_request: true, ..policy() },
            Method::Get,
            "Cache-Control: no-store",
            none(),
            true,
            Err(Bypass::NoStore),
        ),
        (CachePolicy { mode: Mode::Zone, ..policy() }, Method::Get, "", none(), true, Ok(public)),
        (
            CachePolicy { mode: Mode::Zone, with_post: true, ..policy() },
            Method::Post,
            "",
            none(),
            true,
            Ok(public),
        ),
    ];
    for (index, (policy, method, request, environment, has_session, expected)) in
        rows.into_iter().enumerate()
    {
        let request = fields(request);
        let facts = Facts { method, ..facts(&request, "/?x", &environment) };
        assert_eq!(gate(&policy, &facts, has_session), expected, "row {index}");
    }
}

#[test]
fn a_post_flushes_its_session_unless_exempted() {
    let none = FieldMap::new();
    let mut environment = Environment::default();
    let flushes = |policy: &CachePolicy, method, environment: &Environment| {
        autoflushes(policy, &Facts { method, ..facts(&none, "/", environment) })
    };
    let policy = CachePolicy::default();
    assert!(flushes(&policy, Method::Post, &environment));
    assert!(!flushes(&policy, Method::Get, &environment));
    assert!(!flushes(
        &CachePolicy { mode: Mode::Zone, ..policy.clone() },
        Method::Post,
        &environment
    ));
    environment.set(b"Cache-Control", b"no-autoflush");
    assert!(!flushes(&policy, Method::Post, &environment));
}

proptest! {
    #[test]
    fn a_private_response_is_never_stored_as_public(
        words in proptest::collection::vec(
            "(X-LiteSpeed-Cache-Control|Cache-Control|CDN-Cache-Control|Surrogate-Control): \
             (private|private,max-age=9|no-store|max-age=9, private|public)", 0..4),
        status in 100_u16..600,
        is_on in any::<bool>(),
    ) {
        let (answer, request, environment) =
            (fields(&words.join("|")), FieldMap::new(), Environment::default());
        let mode = if is_on { Mode::LsCache } else { Mode::Auto };
        let policy = CachePolicy { mode, ..CachePolicy::default() };
        let answer =
            AnswerFacts { status, fields: &answer, body_len: Some(9), asked: NOW, arrived: NOW };
        let decision = decide(&policy, &facts(&request, "/", &environment), &answer, false);
        // The first source in order of precedence decides. Without a session only a public
        // directive or the configuration stores anything.
        if words.iter().all(|word| word.contains("private") || word.contains("no-store"))
            && !words.is_empty()
        {
            assert_eq!(decision.scope(), None, "{words:?}");
        }
    }
}
