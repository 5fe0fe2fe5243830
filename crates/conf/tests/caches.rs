//! Caches: zones, the settings of a location, and the page cache.

use std::path::Path;
use std::time::Duration;

use bolide_conf::model::{
    CachePurge, CacheSettings, CacheValid, Http, PageCache, PageMode, StatusHeader, VaryBy, ZoneUse,
};

use crate::support::{http, location, messages, outcome};

/// The cache settings of a location of the first server.
fn cache<'h>(http: &'h Http, name: &str) -> &'h CacheSettings {
    &location(http, &http.servers[0], name).settings.cache
}

/// The page cache of the first server's `/`.
fn page(inside: &str) -> PageCache {
    cache(&http(&format!("server {{ location / {{ {inside} }} }}")), "/").page.clone()
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn a_zone_has_what_was_written_and_defaults_for_the_rest() {
    let http = http(
        "fastcgi_cache_path a keys_zone=A:1m; \
         fastcgi_cache_path /b/ levels=1:2 keys_zone=B:10m inactive=60m max_size=1g min_free=5m \
         use_temp_path=off manager_files=7 loader_sleep=9ms purger=on purger_files=3;",
    );
    let [a, b] = &http.cache_zones[..] else { panic!("two zones") };
    assert_eq!((&*a.name, a.keys_size, &*a.path), ("A", 1 << 20, Path::new("/conf/a")));
    assert_eq!((&a.levels[..], a.use_temp_path, a.inactive), (&[][..], true, seconds(600)));
    assert_eq!((a.max_size, a.min_free, a.manager.files, a.purger), (None, 0, 100, false));
    assert_eq!((&*b.name, &b.levels[..], &*b.path), ("B", &[1, 2][..], Path::new("/b")));
    assert_eq!((b.max_size, b.min_free, b.use_temp_path), (Some(1 << 30), 5 << 20, false));
    assert_eq!((b.manager.files, b.loader.sleep.as_millis(), b.purger_pace.files), (7, 9, 3));
    assert!(b.purger && b.inactive == seconds(3600));
    assert_eq!(http.temp_paths, [Path::new("/conf/a"), Path::new("/b")]);
}

#[test]
fn zones_may_be_used_before_they_are_made() {
    let http = http(
        "fastcgi_cache_key k; fastcgi_cache B; fastcgi_cache_path a keys_zone=A:1m; \
         server { location /a { fastcgi_cache A; } location /b { } \
         location /c { fastcgi_cache off; \
         } location /d { fastcgi_cache $host; } } fastcgi_cache_path b keys_zone=B:1m;",
    );
    let name = |place: &str| match &cache(&http, place).zone {
        ZoneUse::Zone(id) => http.cache_zones[id.index()].name.to_string(),
        other => format!("{other:?}"),
    };
    assert_eq!([name("/a"), name("/b"), name("/c")], ["A", "B", "Off"]);
    assert!(matches!(&cache(&http, "/d").zone, ZoneUse::Text(text) if text.vars().count() == 1));
}

#[test]
fn lists_of_an_inner_block_replace_those_of_the_outer_one() {
    let http = http(
        "server { fastcgi_cache_valid 5m; fastcgi_cache_valid any 1m; fastcgi_cache_bypass $arg_a; \
           fastcgi_no_cache $arg_b; fastcgi_cache_use_stale error http_500; \
           fastcgi_cache_methods POST; fastcgi_cache_min_uses 3; \
           location /a { } location /b { fastcgi_cache_valid 404 0; fastcgi_cache_bypass 1; \
             fastcgi_cache_bypass $arg_c; fastcgi_cache_use_stale updating off; \
             fastcgi_cache_methods GET; fastcgi_cache_max_range_offset 5m; \
             fastcgi_cache_lock_timeout 1s500ms; fastcgi_cache_lock on; } }",
    );
    let (a, b) = (cache(&http, "/a"), cache(&http, "/b"));
    let valid = |status, time| CacheValid { status, time: seconds(time) };
    let five = [200, 301, 302].map(|status| valid(Some(status), 300));
    assert_eq!(a.valid[..3], five);
    assert_eq!(a.valid[3..], [valid(None, 60)]);
    assert_eq!((a.bypass.len(), a.no_cache.len(), a.min_uses), (1, 1, 3));
    assert!(a.use_stale.error && a.use_stale.covers(500) && !a.use_stale.covers(503));
    assert!(a.methods.post && !b.methods.post);
    assert_eq!(b.valid[..], [valid(Some(404), 0)]);
    assert_eq!((b.bypass.len(), b.no_cache.len(), b.min_uses), (2, 1, 3));
    assert_eq!(b.use_stale, bolide_conf::model::UseStale::default());
    assert_eq!((b.max_range_offset, b.lock), (Some(5 << 20), true));
    assert_eq!((a.lock_timeout, b.lock_timeout), (seconds(5), Duration::from_millis(1500)));
}

#[test]
fn purging_is_spelled_in_three_ways() {
    let http = http(
        "fastcgi_cache_path a keys_zone=A:1m; \
        server { fastcgi_cache_purge PURGE from 127.0.0.1 ::1; \
           location /a { } location /b { fastcgi_cache_purge off; } \
           location /c { fastcgi_cache_purge $purge; set $purge 1; } \
           location /d { fastcgi_cache_purge A \"$host$1\"; } \
           location /e { fastcgi_cache_purge on; \
           } }",
    );
    let purge = |name: &str| &cache(&http, name).purge;
    let CachePurge::Method { method, from } = purge("/a") else { panic!("a method") };
    assert_eq!((&**method, from.len()), (&b"PURGE"[..], 2));
    assert_eq!(*purge("/b"), CachePurge::Off);
    assert!(matches!(purge("/c"), CachePurge::When(texts) if texts.len() == 1));
    assert!(matches!(purge("/d"), CachePurge::Key { zone, .. } if zone.index() == 0));
    assert!(matches!(purge("/e"), CachePurge::Method { from, .. } if from.len() == 1));
}

#[test]
fn pages_are_not_cached_by_default() {
    let off = page("");
    assert_eq!((off.mode, off.status_header), (PageMode::Off, StatusHeader::LiteSpeed));
    assert!(off.esi && off.autoflush && !off.respect_request && off.never.is_none());
    assert_eq!(page("page_cache auto;").mode, PageMode::Auto);
    assert_eq!(page("page_cache on;").mode, PageMode::On);
}

#[test]
fn a_block_has_one_mode_and_an_inner_block_another() {
    assert_eq!(page("magento_cache on;").mode, PageMode::Magento);
    assert_eq!(page("magento_cache off; page_cache auto;").mode, PageMode::Auto);
    for text in ["magento_cache on; page_cache auto;", "page_cache on; magento_cache on;"] {
        let said = messages(&outcome(&format!("events {{}} http {{ {text} }}")));
        let expected = "\"magento_cache\" and \"page_cache\" are in one block";
        assert!(said.iter().any(|line| line.contains(expected)), "{text}: {said:?}");
    }
    let http = http(
        "magento_cache on; server { location /a { page_cache auto; } \
           location /b { magento_cache off; } location /c { magento_cache on; } \
           location /d { page_cache off; } }",
    );
    for (name, mode) in [
        ("/a", PageMode::Auto),
        ("/b", PageMode::Off),
        ("/c", PageMode::Magento),
        ("/d", PageMode::Off),
    ] {
        let page = &cache(&http, name).page;
        assert_eq!((page.mode, page.accepts_purges), (mode, true), "{name}");
    }
}

#[test]
fn everything_about_pages_can_be_said() {
    let page = page(
        "page_cache on; page_cache_lookup off; page_cache_private off; page_cache_default_ttl 5m; \
         page_cache_max_ttl 1d; page_cache_max_object 2g; page_cache_valid 404 1m; \
         page_cache_valid any 5s; page_cache_heuristic 20% max=1h; page_cache_stale 30s error=1h; \
         page_cache_vary cookie=currency header=X-Device; page_cache_vary value=$arg_v; \
         page_cache_drop_query -qs:ref sid_*; page_cache_drop_query tracking; \
         page_cache_key $host$uri; page_cache_bypass $cookie_a $arg_b; \
         page_cache_purge_allow 10.0.0.0/8 unix:; page_cache_purge_uri /.purge; \
         page_cache_esi off; \
         page_cache_crawler off; page_cache_autoflush off; page_cache_status_header on; \
         cache_status on edge; page_cache_trusted 10.0.0.1; page_cache_respect_request on; \
         page_cache_session sid a_*; lscache_compat litespeed;",
    );
    assert!(!page.lookup.public && !page.lookup.private && !page.private && !page.esi);
    assert_eq!((page.default_ttl, page.max_ttl), (seconds(300), Some(seconds(86_400))));
    assert_eq!((page.max_object, page.stale), (2 << 30, seconds(30)));
    assert_eq!(page.stale_error, seconds(3600));
    let valid: Vec<_> = page.valid.iter().map(|line| (line.status, line.time)).collect();
    assert_eq!(valid, [(Some(404), seconds(60)), (None, seconds(5))]);
    assert_eq!(page.heuristic.map(|guess| (guess.percent, guess.max)), Some((20, seconds(3600))));
    assert_eq!(page.vary[0], VaryBy::Cookie((*b"currency").into()));
    assert_eq!(page.vary[1], VaryBy::Header((*b"x-device").into()));
    assert!(matches!(&page.vary[2..], [VaryBy::Value(text)] if text.vars().count() == 1));
    for name in ["ref", "sid_", "sid_1", "utm_source", "fbclid"] {
        assert!(page.drop_query.covers(name.as_bytes()), "{name}");
    }
    assert!(!page.drop_query.covers(b"reference") && !page.drop_query.covers(b"id"));
    assert_eq!(
        (page.bypass.len(), page.purge_allow.as_ref().unwrap().len(), page.trusted.len()),
        (2, 2, 1)
    );
    assert_eq!(page.purge_uri.as_deref(), Some(&b"/.purge"[..]));
    assert_eq!((page.cache_status.as_deref(), page.session.len()), (Some("edge"), 2));
    assert!(page.key.is_some() && page.is_litespeed && page.respect_request);
    assert_eq!(page.status_header, StatusHeader::XCache);
}

#[test]
fn litespeeds_own_names_mean_the_same() {
    let page = page(
        "CacheEngine on esi crawler; CacheLookup private off; CacheMaxExpire 60; CacheStaleAge 7; \
         CacheIgnoreCacheControl Off; CacheKeyModify -qs:utm_* ; CacheKeyModify -qs:a -qs:b; \
         CacheEnable public /; CacheDisable /feed; LiteMage on;",
    );
    assert_eq!(
        (page.mode, page.max_ttl, page.stale),
        (PageMode::Auto, Some(seconds(60)), seconds(7))
    );
    assert!(page.lookup.public && !page.lookup.private && page.respect_request && page.litemage);
    assert!(page.drop_query.covers(b"utm_x") && page.drop_query.covers(b"b"));
    let [open, shut] = &page.prefixes[..] else { panic!("two prefixes") };
    assert!(open.enabled && open.scopes.public && !open.scopes.private && *open.path == *b"/");
    assert!(!shut.enabled && shut.scopes.public && shut.scopes.private && *shut.path == *b"/feed");
    let inner = http(
        "CacheKeyModify -qs:a; server { location /a { CacheKeyModify -qs:b; } \
         location /b { CacheKeyModify clear; CacheKeyModify -qs:c; } }",
    );
    let dropped = |place: &str| cache(&inner, place).page.drop_query.names.len();
    assert_eq!((dropped("/a"), dropped("/b")), (2, 1));
}

#[test]
fn a_preset_is_one_line_and_gives_way_to_what_its_block_says() {
    let plain = page("page_cache_preset wordpress;");
    assert_eq!((plain.mode, plain.default_ttl), (PageMode::On, seconds(60)));
    let never = plain.never.as_deref().expect("a preset has exceptions");
    for cookie in ["wordpress_logged_in_0123", "comment_author_0123", "woocommerce_cart_hash"] {
        assert!(never.covers_cookie(cookie.as_bytes()), "{cookie}");
    }
    for path in ["/wp-admin/", "/blog/wp-admin/post.php", "/wp-login.php", "/cart", "/shop/cart/x"]
    {
        assert!(never.covers_path(path.as_bytes()), "{path}");
    }
    assert!(!never.covers_path(b"/cartoons/") && !never.covers_path(b"/2026/hello/"));
    assert!(never.covers_arg(b"preview") && !never.covers_arg(b"p"));
    assert!(plain.drop_query.covers(b"utm_source"));
    for text in [
        "page_cache auto; page_cache_default_ttl 5s; page_cache_preset wordpress ttl=9s;",
        "page_cache_preset wordpress ttl=9s; page_cache_default_ttl 5s; page_cache auto;",
    ] {
        let page = page(text);
        assert_eq!((page.mode, page.default_ttl), (PageMode::Auto, seconds(5)), "{text}");
        assert!(page.never.is_some());
    }
    assert_eq!(page("page_cache_preset drupal ttl=9s;").default_ttl, seconds(9));
}

#[test]
fn the_store_is_in_memory_until_a_path_is_given() {
    let store = http("").page_store;
    assert_eq!((store.path.as_deref(), store.memory, store.max_size), (None, None, None));
    let store = http("page_cache_path p max_size=1g inactive=1d levels=1;").page_store;
    assert_eq!(store.path.as_deref(), Some(Path::new("/conf/p")));
    assert_eq!((store.max_size, store.inactive), (Some(1 << 30), seconds(86_400)));
    assert_eq!((&store.levels[..], store.memory), (&[1][..], None));
    assert_eq!(http("page_cache_memory 64m;").page_store.memory, Some(64 << 20));
    assert_eq!(http("page_cache_path p memory=5m;").page_store.memory, Some(5 << 20));
    let root = http("CacheRoot /var/lscache;").page_store.path;
    assert_eq!(root.as_deref(), Some(Path::new("/var/lscache")));
}

#[test]
fn the_shipped_zone_for_wordpress_is_understood() {
    let snippet = include_str!("../../../conf/snippets/wordpress-cache.conf");
    let http = http(&format!("server {{ {snippet} }}"));
    let page = &location(&http, &http.servers[0], "").settings.cache.page;
    assert_eq!(page.mode, PageMode::On);
    assert!(page.never.is_some());
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let taken = "\"/conf/a\" used in /conf/nginx.conf:1 and";
    let rows = [
        (
            "page_cache yes;",
            "invalid value \"yes\" in \"page_cache\" directive, it must be \"on\", \"off\" or \
             \"auto\"",
        ),
        ("page_cache on; page_cache off;", "\"page_cache\" directive is duplicate"),
        ("page_cache_path a size=1g;", "invalid parameter \"size=1g\""),
        ("page_cache_path a max_size=x;", "invalid parameter \"max_size=x\""),
        ("page_cache_path a levels=3;", "invalid parameter \"levels=3\""),
        ("page_cache_path a; page_cache_path b;", "\"page_cache_path\" directive is duplicate"),
        (
            "page_cache_path a; fastcgi_cache_path a keys_zone=A:1m;",
            &format!("the same path name {taken}"),
        ),
        ("page_cache_memory x;", "\"page_cache_memory\" directive invalid value"),
        ("page_cache_preset typo3;", "unknown page_cache_preset \"typo3\""),
        ("page_cache_preset wordpress 60s;", "invalid parameter \"60s\""),
        ("page_cache_stale 5ms;", "\"page_cache_stale\" directive invalid value"),
        ("page_cache_stale 5s 6s;", "invalid parameter \"6s\""),
        ("page_cache_vary currency;", "invalid parameter \"currency\""),
        ("page_cache_vary cookie=;", "invalid parameter \"cookie=\""),
        ("page_cache_drop_query -qs:;", "invalid parameter \"-qs:\""),
        ("page_cache_drop_query a=b;", "invalid parameter \"a=b\""),
        ("page_cache_purge_allow nobody;", "invalid parameter \"nobody\""),
        ("page_cache_purge_uri purge;", "invalid parameter \"purge\""),
        ("page_cache_status_header hit;", "invalid parameter \"hit\""),
        ("cache_status off edge;", "invalid parameter \"edge\""),
        ("cache_status on 'a\\\\b';", "invalid parameter \"a\\b\""),
        ("lscache_compat apache;", "invalid parameter \"apache\""),
        ("CacheEngine off esi;", "invalid parameter \"esi\""),
        ("CacheEnable all /;", "invalid parameter \"all\""),
        ("CacheDisable feed;", "invalid parameter \"feed\""),
        ("CacheKeyModify utm_source;", "invalid parameter \"utm_source\""),
        ("server { CacheRoot /x; }", "\"CacheRoot\" directive is not allowed here"),
        ("fastcgi_cache_purge maybe;", "invalid parameter \"maybe\""),
        ("fastcgi_cache_purge PURGE by all;", "invalid parameter \"by\""),
        ("fastcgi_cache_purge PURGE from;", "invalid parameter \"from\""),
        (
            "server { location / { fastcgi_cache_purge A $uri; } }",
            "\"fastcgi_cache_purge\" zone \"A\" is unknown",
        ),
    ];
    for (text, expected) in rows {
        let found = messages(&outcome(&format!("events {{}} http {{ {text} }}")));
        let expected = format!("[emerg] {expected} in /conf/nginx.conf:1");
        assert_eq!(found.first(), Some(&expected), "{text}");
    }
}
