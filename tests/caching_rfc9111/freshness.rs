//! The freshness lifetime (RFC 9111 §4.2) and the age (§4.2.3) of responses.

use bolide_testkit::app::http_date;

use super::{Lab, keeps_all};

#[test]
fn lifetimes_have_an_order() {
    let (future, past) = (http_date(3600), http_date(-3600));
    let rows = [
        (String::new(), false),
        ("Cache-Control: max-age=60".into(), true),
        ("Cache-Control: max-age=0".into(), false),
        ("Cache-Control: s-maxage=60".into(), true),
        ("Cache-Control: s-maxage=60, max-age=0".into(), true),
        ("Cache-Control: max-age=60, s-maxage=0".into(), false),
        (format!("Expires: {future}"), true),
        (format!("Expires: {past}"), false),
        (format!("Expires: {}", http_date(0)), false),
        (format!("Cache-Control: max-age=60\nExpires: {past}"), true),
        (format!("Cache-Control: max-age=0\nExpires: {future}"), false),
        (format!("Cache-Control: s-maxage=60\nExpires: {past}"), true),
        (format!("Cache-Control: public\nExpires: {future}"), true),
        (format!("Cache-Control: foo=1\nExpires: {future}"), true),
        ("Cache-Control: public".into(), false),
        ("Cache-Control: immutable".into(), false),
        ("Cache-Control: stale-while-revalidate=60".into(), false),
    ];
    keeps_all(&Lab::auto(), &rows.each_ref().map(|(head, kept)| (&**head, *kept)));
}

#[test]
fn expires_is_a_date_or_the_past() {
    let future = http_date(3600);
    let rows = [
        ("Expires: Sun, 06 Nov 2094 08:49:37 GMT".to_owned(), true),
        ("Expires: Sat Nov  6 08:49:37 2094".into(), true),
        ("Expires: Saturday, 06-Nov-50 08:49:37 GMT".into(), true),
        ("Expires: Sat, 06 Nov 2094 08:49:37 AEST".into(), false),
        ("Expires: Sat, 06 Nov 2094 08:49:37 gmt".into(), false),
        ("Expires: Sat, 06 Nov 2094 08:49:37".into(), false),
        ("Expires: Sat, 06 NOV 2094 08:49:37 GMT".into(), false),
        ("Expires: SAT, 06 Nov 2094 08:49:37 GMT".into(), false),
        ("Expires: 0".into(), false),
        ("Expires: -1".into(), false),
        ("Expires: tomorrow".into(), false),
        ("Expires:".into(), false),
        ("Expires: 99999999999999999999".into(), false),
        ("Expires: Sun, 06 Nov 99999 08:49:37 GMT".into(), false),
        // RFC 9111 §4.2.1: of two, the first may count; as in nginx it does.
        (format!("Expires: {future}\nExpires: 0"), true),
        (format!("Expires: 0\nExpires: {future}"), false),
        // The lifetime counts from the response's own date.
        (format!("Expires: {}\nDate: {}", http_date(600), http_date(1200)), false),
        (format!("Expires: {}\nDate: {}", http_date(600), http_date(-5)), true),
        (format!("Expires: {}\nDate: {}", http_date(-5), http_date(-3600)), false),
        (format!("Expires: {future}\nDate: nonsense"), true),
    ];
    keeps_all(&Lab::auto(), &rows.each_ref().map(|(head, kept)| (&**head, *kept)));
}

#[test]
fn numbers_are_digits_and_nothing_else() {
    let rows = [
        ("max-age=2147483647", true),
        ("max-age=2147483648", true),
        ("max-age=4294967296", true),
        ("max-age=99999999999999999999999999", true),
        ("max-age=0060", true),
        ("max-age=-60", false),
        ("max-age=+60", false),
        ("max-age=60.0", false),
        ("max-age=60s", false),
        ("max-age=1e3", false),
        ("max-age=0x60", false),
        ("max-age", false),
        ("max-age=", false),
        ("max-age= 60", false),
        ("max-age =60", false),
        ("max-age='60'", false),
        ("max-age=\"60\"", true),
        ("max-age=60, max-age=60", true),
        ("max-age=60, max-age=0", false),
        ("max-age=0, max-age=60", false),
        ("max-age=60\nCache-Control: max-age=0", false),
        ("s-maxage=60, s-maxage=x", false),
    ];
    let heads = rows.map(|(control, kept)| (format!("Cache-Control: {control}"), kept));
    keeps_all(&Lab::auto(), &heads.each_ref().map(|(head, kept)| (&**head, *kept)));
}

#[test]
fn the_age_of_an_answer_counts() {
    let sixty = "Cache-Control: max-age=60";
    let rows = [
        (format!("{sixty}\nAge: 30"), true),
        (format!("{sixty}\nAge: 60"), false),
        (format!("{sixty}\nAge: 61"), false),
        (format!("{sixty}\nAge: 4294967296"), false),
        (format!("{sixty}\nAge: 99999999999999999999"), false),
        (format!("{sixty}\nAge: -70"), true),
        (format!("{sixty}\nAge: 70.5"), true),
        (format!("{sixty}\nAge: abc"), true),
        (format!("{sixty}\nAge:"), true),
        (format!("{sixty}\nAge: 70, 0"), false),
        (format!("{sixty}\nAge: 0, 70"), true),
        (format!("{sixty}\nAge: 70\nAge: 0"), false),
        // Without `Age` the date counts.
        (format!("{sixty}\nDate: {}", http_date(-120)), false),
        (format!("{sixty}\nDate: {}", http_date(-20)), true),
        (format!("{sixty}\nDate: {}", http_date(120)), true),
        (format!("{sixty}\nDate: nonsense"), true),
        (format!("{sixty}\nAge: 10\nDate: {}", http_date(-120)), false),
        (format!("{sixty}\nAge: 70\nDate: {}", http_date(0)), false),
    ];
    keeps_all(&Lab::auto(), &rows.each_ref().map(|(head, kept)| (&**head, *kept)));
}

#[test]
fn a_cached_response_has_an_age() {
    let lab = Lab::auto();
    let path = lab.page("Cache-Control: max-age=600\nAge: 100");
    assert_eq!(lab.get(&path).header("age"), Some("100"));
    let kept = lab.get(&path);
    let age: u32 = kept.header("age").unwrap().parse().unwrap();
    assert!((100..110).contains(&age), "{age}");
    assert_eq!(kept.headers.iter().filter(|(name, _)| name == "Age").count(), 1);
    let path = lab.page("Cache-Control: max-age=600");
    assert_eq!(lab.get(&path).header("age"), None);
    let age: u32 = lab.get(&path).header("age").unwrap().parse().unwrap();
    assert!(age < 10, "{age}");
    // A downstream cache must see the original lifetime, so dates are unchanged.
    let expires = http_date(500);
    let path = lab.page(&format!("Expires: {expires}\nDate: {}", http_date(-100)));
    let first = lab.get(&path);
    let kept = lab.get(&path);
    assert_eq!(kept.header("date"), first.header("date"));
    assert_eq!(kept.header("expires"), Some(&*expires));
    let age: u32 = kept.header("age").unwrap().parse().unwrap();
    assert!((99..110).contains(&age), "{age}");
}

#[test]
fn a_stale_response_is_fetched_again() {
    let lab = Lab::auto();
    let rows = [
        "Cache-Control: max-age=1".to_owned(),
        "Cache-Control: max-age=100\nAge: 99".into(),
        "Cache-Control: max-age=60, s-maxage=1".into(),
        format!("Expires: {}\nDate: {}", http_date(1), http_date(0)),
    ];
    let paths: Vec<String> = rows.iter().map(|head| lab.page(head)).collect();
    for path in &paths {
        lab.get(path);
    }
    bolide_testkit::pause(2100);
    for (path, head) in paths.iter().zip(rows) {
        assert_eq!(super::run(&lab.get(path)), 2, "{head}");
    }
}

#[test]
fn heuristic_freshness_needs_configuration() {
    let (old, new) = (http_date(-36_000), http_date(0));
    let rows = [
        (format!("Last-Modified: {old}"), true),
        (format!("Last-Modified: {new}"), false),
        (format!("Last-Modified: {}", http_date(3600)), false),
        ("Last-Modified: nonsense".to_owned(), false),
        (format!("Last-Modified: {old}\nCache-Control: max-age=0"), false),
        (format!("Last-Modified: {old}\nCache-Control: no-store"), false),
        (format!("Last-Modified: {old}\nExpires: 0"), false),
        (format!("Last-Modified: {old}\nStatus: 404"), true),
        (format!("Last-Modified: {old}\nStatus: 410"), true),
        (format!("Last-Modified: {old}\nStatus: 403"), false),
        (format!("Last-Modified: {old}\nStatus: 500"), false),
        (format!("Last-Modified: {old}\nStatus: 403\nCache-Control: public"), true),
    ];
    let guessing = Lab::new(&format!("{} page_cache_heuristic 10%;", super::AUTO));
    keeps_all(&guessing, &rows.each_ref().map(|(head, kept)| (&**head, *kept)));
    let strict = Lab::auto();
    assert!(!strict.keeps(&format!("Last-Modified: {old}")));
    let held = Lab::new(&format!("{} page_cache_heuristic 10% max=5m;", super::AUTO));
    for (lab, expected) in [(&guessing, 3600), (&held, 300)] {
        let path = lab.page(&format!("Last-Modified: {old}"));
        lab.get(&path);
        let cache_status = lab.get(&path).header("cache-status").unwrap().to_owned();
        let ttl: u32 = cache_status.rsplit("ttl=").next().unwrap().parse().unwrap();
        assert!((expected - 20..=expected).contains(&ttl), "{cache_status}");
    }
}

#[test]
fn a_response_without_freshness_is_stored_where_the_default_is_to_cache() {
    let lab = Lab::new("page_cache on; page_cache_default_ttl 1m; page_cache_stale off;");
    let rows = [
        ("", true),
        ("Cache-Control: public", true),
        ("Cache-Control: max-age=0", false),
        ("Cache-Control: no-store", false),
        ("Cache-Control: no-cache", false),
        ("Cache-Control: private", false),
        ("Expires: 0", false),
        ("Vary: *", false),
        ("Set-Cookie: a=b", false),
        ("Status: 404", false),
        ("Status: 500", false),
        ("Status: 404\nCache-Control: max-age=60", true),
    ];
    keeps_all(&lab, &rows);
}
