//! Rows of the grammar of `X-LiteSpeed-*`.

use super::{
    CacheScope, LsCacheControl, LsPurge, LsTag, LsTarget, LsVary, PurgeEffect, purges, tags, varies,
};
use proptest::prelude::{any, proptest};

#[test]
fn control_has_an_audience_and_a_lifetime() {
    use CacheScope::{Private, Public};
    let rows: [(&str, Option<CacheScope>, Option<u32>); 24] = [
        ("", None, None),
        ("public,max-age=604800", Some(Public), Some(604_800)),
        ("public,no-vary,max-age=60", Some(Public), Some(60)),
        ("private,max-age=1800", Some(Private), Some(1800)),
        ("max-age=1800,private", Some(Private), Some(1800)),
        ("shared,private,max-age=5", Some(Private), Some(5)),
        ("shared,max-age=5", Some(Private), Some(5)),
        ("max-age=60", Some(Public), Some(60)),
        ("private,public,max-age=1", Some(Public), Some(1)),
        ("no-cache", None, None),
        ("no-store", None, None),
        ("no-cache,esi=on", None, None),
        ("no-cache,max-age=60", Some(Public), Some(60)),
        ("no-store,s-maxage=60", Some(Public), Some(60)),
        ("max-age=60,no-cache", None, Some(60)),
        ("s-maxage=5,max-age=60", Some(Public), Some(5)),
        ("max-age=60,s-maxage=5", Some(Public), Some(5)),
        ("MAX-AGE=60 , Private", Some(Private), Some(60)),
        ("max-age=abc", None, None),
        ("no-cache,max-age=abc", None, None),
        ("max-age=60abc", Some(Public), Some(60)),
        ("max-age=\"60\"", Some(Public), Some(60)),
        ("max-age=99999999999", Some(Public), Some(1 << 31)),
        ("privateer,max-age=1", Some(Private), Some(1)),
    ];
    for (line, scope, seconds) in rows {
        let control = LsCacheControl::of(line.as_bytes());
        assert_eq!((control.scope(), control.lifetime()), (scope, seconds), "{line}");
    }
}

#[test]
fn control_knows_the_other_words() {
    let all = LsCacheControl::of(b"no-vary,no-autoflush,set-blank,reload-after,max-stale=7,ESI=On");
    assert!(all.no_vary && all.no_autoflush && all.set_blank && all.reload_after);
    assert_eq!((all.max_stale, all.esi), (Some(7), Some(true)));
    assert_eq!(LsCacheControl::of(b"esi=off").esi, Some(false));
    assert_eq!(LsCacheControl::of(b"esi=perhaps").esi, None);
    let mut merged = LsCacheControl::of(b"private,max-age=9");
    merged.add(b"public");
    assert_eq!((merged.scope(), merged.lifetime()), (Some(CacheScope::Public), Some(9)));
}

#[test]
fn tags_are_trimmed_may_be_empty_and_may_be_public() {
    let found: Vec<_> = tags(b" a_F,, public:a_W.1 ,Public: b", CacheScope::Private).collect();
    let tag = |scope, text| LsTag { scope, text };
    let expected = [
        tag(CacheScope::Private, &b"a_F"[..]),
        tag(CacheScope::Private, b""),
        tag(CacheScope::Public, b"a_W.1"),
        tag(CacheScope::Public, b"b"),
    ];
    assert_eq!(found, expected);
    assert_eq!(tags(b"", CacheScope::Public).next(), Some(tag(CacheScope::Public, b"")));
}

fn orders(line: &str) -> Vec<LsPurge<'_>> {
    let mut found = Vec::new();
    purges(line.as_bytes(), |purge| found.push(purge));
    found
}

type Order<'a> = (CacheScope, PurgeEffect, LsTarget<'a>);

#[test]
fn purges_have_sections_prefixes_and_targets() {
    use CacheScope::{Private, Public};
    use LsTarget::{All, Prefix, Tag, Url};
    use PurgeEffect::{Dead, Stale};
    let rows: Vec<(&str, Vec<Order<'_>>)> = vec![
        ("*", vec![(Public, Dead, All)]),
        ("public,*", vec![(Public, Dead, All)]),
        ("private,*", vec![(Private, Dead, All)]),
        ("tag=*", vec![(Public, Dead, All)]),
        ("a, b", vec![(Public, Dead, Tag(b"a")), (Public, Dead, Tag(b"b"))]),
        ("tag=a,tag=b", vec![(Public, Dead, Tag(b"a")), (Public, Dead, Tag(b"b"))]),
        ("TAG=a", vec![(Public, Dead, Tag(b"a"))]),
        ("tag=A", vec![(Public, Dead, Tag(b"A"))]),
        ("tag=", vec![(Public, Dead, Tag(b""))]),
        ("stale,a", vec![(Public, Stale, Tag(b"a"))]),
        (
            "public,stale,a_1,a_2;private,p_1",
            vec![
                (Public, Stale, Tag(b"a_1")),
                (Public, Stale, Tag(b"a_2")),
                (Private, Dead, Tag(b"p_1")),
            ],
        ),
        ("private , stale , a", vec![(Private, Stale, Tag(b"a"))]),
        (
            "a~s,b~stale,c",
            vec![(Public, Stale, Tag(b"a")), (Public, Stale, Tag(b"b")), (Public, Dead, Tag(b"c"))],
        ),
        ("a*,*b", vec![(Public, Dead, Prefix(b"a")), (Public, Dead, Tag(b"*b"))]),
        ("*~s", vec![(Public, Stale, All)]),
        ("/a/b?c=1,2,3", vec![(Public, Dead, Url(b"/a/b?c=1,2,3"))]),
        ("stale,/a;/b", vec![(Public, Stale, Url(b"/a")), (Public, Dead, Url(b"/b"))]),
        ("a,/x,y", vec![(Public, Dead, Tag(b"a")), (Public, Dead, Url(b"/x,y"))]),
        ("/a~s", vec![(Public, Stale, Url(b"/a"))]),
        ("tag=/a", vec![(Public, Dead, Tag(b"/a"))]),
        ("private", vec![(Public, Dead, Tag(b"private"))]),
        ("", vec![]),
        (" ; ,, ;", vec![]),
    ];
    for (line, expected) in rows {
        let found: Vec<_> =
            orders(line).iter().map(|purge| (purge.scope, purge.effect, purge.target)).collect();
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn vary_names_cookies_and_a_value() {
    let found: Vec<_> = varies(b"cookie=a, value=v ,Cookie= b,c,cookie=").collect();
    assert_eq!(found, [LsVary::Cookie(b"a"), LsVary::Value(b"v"), LsVary::Cookie(b"b")]);
}

proptest! {
    #[test]
    fn nothing_breaks_the_readers(line in any::<Vec<u8>>()) {
        let _ = LsCacheControl::of(&line);
        let mut count = 0;
        purges(&line, |_| count += 1);
        assert!(count <= line.len());
        assert!(tags(&line, CacheScope::Public).count() <= line.len() + 1);
        let _ = varies(&line).count();
    }

    #[test]
    fn control_in_two_lines_is_control_in_one(
        first in "(no-cache|private|public|max-age=[0-9]{1,3}|shared|,){0,4}",
        second in "(no-cache|private|public|s-maxage=[0-9]{1,3}|,){0,4}",
    ) {
        let mut two = LsCacheControl::of(first.as_bytes());
        two.add(second.as_bytes());
        assert_eq!(two, LsCacheControl::of(format!("{first},{second}").as_bytes()));
    }
}
