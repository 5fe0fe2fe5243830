//! Tables of directives and their meanings.

use super::{
    AccelExpires, CacheControl, RequestControl, SECONDS_MAX, accel_expires, age, expires,
    surrogate, targeted,
};
use crate::{FieldMap, Name};
use proptest::prelude::{any, proptest};

fn control(line: &str) -> CacheControl {
    CacheControl::of(std::iter::once(line.as_bytes()))
}

#[test]
fn the_lifetime_is_the_smallest_number_and_zero_where_there_is_none() {
    let rows: [(&str, Option<u32>); 20] = [
        ("", None),
        ("max-age=60", Some(60)),
        ("MAX-AGE=60", Some(60)),
        ("max-age=\"60\"", Some(60)),
        ("max-age='60'", Some(0)),
        ("max-age=60, max-age=10", Some(10)),
        ("max-age=10, max-age=60", Some(10)),
        ("max-age=060", Some(60)),
        ("max-age=-1", Some(0)),
        ("max-age=1.5", Some(0)),
        ("max-age=1e3", Some(0)),
        ("max-age=", Some(0)),
        ("max-age", Some(0)),
        ("max-age = 60", Some(0)),
        ("max-age=2147483648", Some(SECONDS_MAX)),
        ("max-age=99999999999999999999", Some(SECONDS_MAX)),
        ("max-age=60, s-maxage=5", Some(5)),
        ("s-maxage=70, max-age=5", Some(70)),
        ("x=\"a, max-age=5\", max-age=60", Some(60)),
        ("x=\"a\\\", max-age=5\", max-age=60", Some(60)),
    ];
    for (line, lifetime) in rows {
        assert_eq!(control(line).shared_lifetime(), lifetime, "{line}");
    }
    let two = CacheControl::of([&b"max-age=60"[..], b"no-store"].into_iter());
    assert!(two.no_store && two.max_age == Some(60));
}

#[test]
fn flags_count_with_any_argument_and_in_any_case() {
    assert!(control("No-Store").no_store && control("no-store=1").no_store);
    assert!(control(",, no-cache=\"Set-Cookie, X\" ,").no_cache);
    assert!(control("private=\"x\"").private && !control("privately").private);
    assert!(control("must-revalidate").forbids_stale() && control("s-maxage=1").forbids_stale());
    assert!(!control("max-age=1, stale-while-revalidate=9").forbids_stale());
    assert_eq!(control("stale-if-error=30").stale_if_error, Some(30));
    assert_eq!(control("an-extension-of-a-length-nobody-knows=1"), CacheControl::default());
}

fn request(lines: &[(Name, &str)]) -> RequestControl {
    let mut fields = FieldMap::new();
    for (name, value) in lines {
        fields.push(*name, value.as_bytes());
    }
    RequestControl::of(&fields)
}

#[test]
fn pragma_counts_only_where_there_is_no_cache_control() {
    assert!(request(&[(Name::Pragma, "x, No-Cache")]).no_cache);
    assert!(!request(&[(Name::Pragma, "no-cache"), (Name::CacheControl, "max-age=1")]).no_cache);
    let all = request(&[(
        Name::CacheControl,
        "no-cache, no-store, only-if-cached, max-age=3, min-fresh=4, max-stale=x",
    )]);
    assert!(all.no_cache && all.no_store && all.only_if_cached);
    assert_eq!((all.max_age, all.min_fresh, all.max_stale), (Some(3), Some(4), Some(0)));
    assert_eq!(request(&[(Name::CacheControl, "max-stale")]).max_stale, Some(SECONDS_MAX));
}

#[test]
fn a_targeted_field_is_a_dictionary_or_ignored() {
    let read = |line: &'static str| targeted(std::iter::once(line.as_bytes()));
    assert_eq!(read("max-age=60").unwrap().max_age, Some(60));
    assert_eq!(
        read("max-age=60;x=\"y\", no-store").map(|c| (c.max_age, c.no_store)),
        Some((Some(60), true))
    );
    for ignored in ["", " ", "Max-Age=60", "max-age=60,", "max-age: 60", "&&&"] {
        assert_eq!(read(ignored), None, "{ignored}");
    }
    assert_eq!(read("max-age=\"60\"").unwrap().max_age, None);
    assert_eq!(read("max-age=1.5").unwrap().max_age, None);
    assert_eq!(read("max-age=-5").unwrap().max_age, Some(0));
    assert_eq!(read("max-age=999999999999999").unwrap().max_age, Some(SECONDS_MAX));
    assert!(!read("no-store=?0").unwrap().no_store && read("no-store=x").unwrap().no_store);
    assert_eq!(targeted(std::iter::empty()), None);
    let joined = targeted([&b"max-age=1"[..], b"private"].into_iter()).unwrap();
    assert!(joined.private && joined.max_age == Some(1));
}

#[test]
fn surrogate_control_has_lifetime_grace_and_content() {
    let read = |line: &'static str| surrogate(std::iter::once(line.as_bytes())).unwrap();
    let both = read("max-age=30+60, content=\"ESI/1.0\"");
    assert_eq!(both.control.max_age, Some(30));
    assert_eq!(both.control.stale_while_revalidate, Some(60));
    assert!(both.esi);
    assert!(read("no-store;edge").control.no_store);
    assert_eq!(read("max-age=5;edge").control.max_age, Some(5));
    assert_eq!(surrogate(std::iter::empty()), None);
}

#[test]
fn dates_and_ages_that_are_none_are_the_past_and_nothing() {
    let fields = |lines: &[(Name, &str)]| {
        let mut fields = FieldMap::new();
        lines.iter().for_each(|(name, value)| fields.push(*name, value.as_bytes()));
        fields
    };
    assert_eq!(expires(&fields(&[])), None);
    for past in ["0", "-1", "Thu, 18 Aug 2050 02:01:18 CET+1", "never"] {
        let expected = if past.starts_with('T') { Some(2_544_400_878) } else { Some(0) };
        let found = expires(&fields(&[(Name::Expires, past)]));
        assert!(found == Some(0) || found == expected, "{past}: {found:?}");
    }
    let two = fields(&[(Name::Expires, "Sun, 06 Nov 1994 08:49:37 GMT"), (Name::Expires, "0")]);
    assert_eq!(expires(&two), Some(0));
    for (text, seconds) in [("7", 7), ("7, 9", 7), ("-7", 0), ("7.0", 0), ("a", 0), ("", 0)] {
        assert_eq!(age(&fields(&[(Name::Age, text)])), seconds, "{text}");
    }
    assert_eq!(age(&fields(&[(Name::Age, "7200"), (Name::Age, "1")])), 7200);
    assert_eq!(age(&fields(&[(Name::Age, "99999999999")])), SECONDS_MAX);
}

#[test]
fn accel_expires_is_read_as_nginx_reads_it() {
    let rows = [
        ("0", Some(AccelExpires::Off)),
        ("5", Some(AccelExpires::Seconds(5))),
        ("@5000000000", Some(AccelExpires::Until(5_000_000_000))),
        ("off", None),
        ("-1", None),
        ("@", None),
        ("@x", None),
        ("", None),
    ];
    for (text, meant) in rows {
        assert_eq!(accel_expires(text.as_bytes()), meant, "{text}");
    }
}

proptest! {
    #[test]
    fn the_order_of_directives_does_not_matter(
        mut parts in proptest::collection::vec(
            "(no-store|private|max-age=[0-9]{1,3}|s-maxage=[0-9]{1,3}|x=\"[a,]{0,3}\")", 0..6),
        bytes in any::<Vec<u8>>(),
    ) {
        let forth = control(&parts.join(","));
        parts.reverse();
        assert_eq!(forth, control(&parts.join(" , ")));
        let _ = CacheControl::of(std::iter::once(&bytes[..]));
        let _ = (targeted(std::iter::once(&bytes[..])), surrogate(std::iter::once(&bytes[..])));
    }
}
