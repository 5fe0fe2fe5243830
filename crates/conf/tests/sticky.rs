//! `sticky`, and the ids of servers: what is read, and what nginx says of mistakes.

use std::time::Duration;

use bolide_conf::model::{Sticky, StickyExpires, StickyLearn};

use crate::support::{http, messages, outcome};

/// A block whose group `u` has these directives, beside zones of other purposes.
fn block(inside: &str) -> String {
    format!(
        "limit_req_zone $arg_a zone=lim:1m rate=1r/s; \
         upstream q {{ server 127.0.0.1:9; zone grp 64k; }} \
         upstream u {{ server 127.0.0.1:9; {inside} }}"
    )
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table is as long as it is")]
fn mistakes_have_the_messages_of_nginx() {
    let rows = [
        ("sticky;", "[emerg] invalid number of arguments in \"sticky\" directive"),
        ("sticky foo;", "[emerg] invalid number of arguments in \"sticky\" directive"),
        ("sticky foo b;", "[emerg] unknown parameter \"foo\""),
        ("sticky cookie;", "[emerg] invalid number of arguments in \"sticky\" directive"),
        ("sticky cookie a b;", "[emerg] unknown parameter \"b\""),
        ("sticky cookie \"\";", "[emerg] \"sticky\" directive empty cookie name"),
        ("sticky cookie $a;", ""),
        (
            "sticky cookie a expires=;",
            "[emerg] \"sticky\" directive invalid \"expires\" parameter value",
        ),
        (
            "sticky cookie a expires=x;",
            "[emerg] \"sticky\" directive invalid \"expires\" parameter value",
        ),
        (
            "sticky cookie a expires=-1;",
            "[emerg] \"sticky\" directive invalid \"expires\" parameter value",
        ),
        (
            "sticky cookie a expires=1h expires=2h;",
            "[emerg] \"sticky\" directive parameter \"expires\" is duplicate",
        ),
        ("sticky cookie a domain=;", "[emerg] \"sticky\" directive no value for \"domain\""),
        (
            "sticky cookie a domain=x domain=y;",
            "[emerg] \"sticky\" directive parameter \"domain\" is duplicate",
        ),
        ("sticky cookie a path=;", "[emerg] \"sticky\" directive no value for \"path\""),
        (
            "sticky cookie a path=/ path=/b;",
            "[emerg] \"sticky\" directive parameter \"path\" is duplicate",
        ),
        (
            "sticky cookie a httponly httponly secure secure;",
            "[emerg] \"sticky\" directive parameter \"httponly\" is duplicate",
        ),
        (
            "sticky cookie a samesite=;",
            "[emerg] \"sticky\" directive invalid \"samesite\" parameter value",
        ),
        (
            "sticky cookie a samesite=foo;",
            "[emerg] \"sticky\" directive invalid \"samesite\" parameter value",
        ),
        ("sticky cookie a samesite=LAX;", ""),
        ("sticky cookie a samesite=$arg_x;", ""),
        ("sticky cookie a samesite=a$arg_x;", ""),
        ("sticky cookie a samesite;", "[emerg] unknown parameter \"samesite\""),
        ("sticky cookie a httponly=1;", "[emerg] unknown parameter \"httponly=1\""),
        (
            "sticky cookie a samesite=lax samesite=none;",
            "[emerg] \"sticky\" directive parameter \"samesite\" is duplicate",
        ),
        ("sticky route;", "[emerg] invalid number of arguments in \"sticky\" directive"),
        ("sticky route x;", "[emerg] invalid variable name \"x\""),
        ("sticky route $;", "[emerg] invalid variable name \"$\""),
        ("sticky route $arg_a x;", "[emerg] invalid variable name \"x\""),
        ("sticky route $arg_a$arg_b;", ""),
        ("sticky route \"\";", "[emerg] invalid variable name \"\""),
        ("sticky learn;", "[emerg] invalid number of arguments in \"sticky\" directive"),
        (
            "sticky learn create=$arg_a;",
            "[emerg] \"sticky\" directive \"lookup\" parameter is not specified",
        ),
        (
            "sticky learn create=$arg_a lookup=$arg_b;",
            "[emerg] \"sticky\" directive \"zone\" parameter is not specified",
        ),
        (
            "sticky learn lookup=$arg_b zone=z:1m;",
            "[emerg] \"sticky\" directive \"create\" parameter is not specified",
        ),
        (
            "sticky learn zone=z:1m;",
            "[emerg] \"sticky\" directive \"lookup\" parameter is not specified",
        ),
        (
            "sticky learn create=$arg_a lookup=$arg_b zone=z;",
            "[emerg] \"sticky\" directive zone size is not specified",
        ),
        (
            "sticky learn create=$arg_a lookup=$arg_b zone=z:1k;",
            "[emerg] \"sticky\" directive zone is too small",
        ),
        (
            "sticky learn create=$arg_a lookup=$arg_b zone=z:8k;",
            "[emerg] \"sticky\" directive zone is too small",
        ),
        (
            "sticky learn create=$arg_a lookup=$arg_b zone=z:31k;",
            "[emerg] \"sticky\" directive zone is too small",
        ),
        ("sticky learn create=$arg_a lookup=$arg_b zone=z:32k;", ""),
        (
            "sticky learn create=$arg_a lookup=$arg_b zone=z:x;",
            "[emerg] \"sticky\" directive invalid zone size",
        ),
        (
            "sticky learn create=$arg_a lookup=$arg_b zone=:1m;",
            "[emerg] \"sticky\" directive zone name is not specified",
        ),
        (
            "sticky learn create=$arg_a lookup=$arg_b zone=;",
            "[emerg] \"sticky\" directive zone size is not specified",
        ),
        (
            "sticky learn create=$arg_a lookup=$arg_b zone=lim:1m;",
            "[emerg] the shared memory zone \"lim\" is already declared for a different use",
        ),
        (
            "sticky learn create=$arg_a lookup=$arg_b zone=grp:64k;",
            "[emerg] the shared memory zone \"grp\" is already declared for a different use",
        ),
        (
            "sticky learn create=$arg_a lookup=$arg_b zone=z:1m timeout=x;",
            "[emerg] \"sticky\" directive invalid timeout",
        ),
        (
            "sticky learn create=$arg_a lookup=$arg_b zone=z:1m timeout=0;",
            "[emerg] \"sticky\" directive invalid timeout",
        ),
        (
            "sticky learn create=$arg_a lookup=$arg_b zone=z:1m timeout=;",
            "[emerg] \"sticky\" directive invalid timeout",
        ),
        (
            "sticky learn create=$arg_a lookup=$arg_b zone=z:1m sync;",
            "[emerg] unknown parameter \"sync\"",
        ),
        ("sticky learn create=$arg_a lookup=$arg_b zone=z:1m header header;", ""),
        (
            "sticky learn create=x lookup=$arg_b zone=z:1m;",
            "[emerg] \"sticky\" directive missing variable in the \"create\" parameter",
        ),
        (
            "sticky learn create= lookup=$arg_b zone=z:1m;",
            "[emerg] \"sticky\" directive missing variable in the \"create\" parameter",
        ),
        (
            "sticky learn create=$arg_a lookup=x zone=z:1m;",
            "[emerg] \"sticky\" directive missing variable in the \"lookup\" parameter",
        ),
        (
            "sticky learn create=$arg_a lookup= zone=z:1m;",
            "[emerg] \"sticky\" directive missing variable in the \"lookup\" parameter",
        ),
        (
            "sticky learn create=$arg_a lookup=$arg_b zone=z:1m foo=1;",
            "[emerg] unknown parameter \"foo=1\"",
        ),
        (
            "sticky learn create=$arg_a lookup=$arg_b zone=z:1m zone=y:1m;",
            "[emerg] \"sticky\" directive duplicate zone",
        ),
        (
            "sticky learn create=$arg_a lookup=$arg_b zone=z:1m; } \
             upstream v { server 127.0.0.1:9; sticky learn create=$arg_a lookup=$arg_b zone=z:1m;",
            "[emerg] sticky zone \"z\" is already used in upstream \"u\"",
        ),
        (
            "sticky learn create=$arg_a lookup=$arg_b zone=z:1m; } \
             upstream v { server 127.0.0.1:9; sticky learn create=$arg_a lookup=$arg_b zone=z:2m;",
            "[emerg] the size 2097152 of shared memory zone \"z\" conflicts with \
             already declared size 1048576",
        ),
        ("sticky learn create=$arg_a$arg_b lookup=$arg_b zone=z:1m;", ""),
        ("sticky cookie a; sticky cookie b;", "[emerg] \"sticky\" directive is duplicate"),
        (
            "sticky cookie a; sticky foo;",
            "[emerg] invalid number of arguments in \"sticky\" directive",
        ),
        ("sticky cookie a; least_conn;", "[warn] load balancing method redefined"),
        ("least_conn; sticky cookie a;", ""),
        ("sticky cookie a; sticky route $arg_a;", "[emerg] \"sticky\" directive is duplicate"),
        ("sticky cookie a; keepalive 3; ip_hash;", "[warn] load balancing method redefined"),
        ("sticky cookie a; server 127.0.0.1:10 backup;", ""),
        (
            "ip_hash; sticky cookie a; server 127.0.0.1:10 backup;",
            "[emerg] balancing method does not support parameter \"backup\"",
        ),
        ("server 127.0.0.1:10 route=;", "[emerg] route is empty"),
        (
            "server 127.0.0.1:10 route=123456789012345678901234567890123;",
            "[emerg] route is longer than 32",
        ),
        ("server 127.0.0.1:10 route=12345678901234567890123456789012 drain;", ""),
        ("server 127.0.0.1:10 route=a route=b drain drain;", ""),
        ("server 127.0.0.1:10 drain=1;", "[emerg] invalid parameter \"drain=1\""),
        ("server 127.0.0.1:10 route;", "[emerg] invalid parameter \"route\""),
    ];
    for (text, expected) in rows {
        let found = messages(&outcome(&format!("events {{}} http {{ {} }}", block(text))));
        let expected = match expected {
            "" => Vec::new(),
            message => vec![format!("{message} in /conf/nginx.conf:1")],
        };
        assert_eq!(found, expected, "{text}");
    }
}

/// The `sticky` of the group `u`.
fn sticky(inside: &str) -> Sticky {
    let http = http(&block(inside));
    let group = http.upstreams.iter().find(|group| *group.name == *"u").expect("it is there");
    (**group.sticky.as_ref().expect("it has one")).clone()
}

#[test]
fn a_cookie_has_the_attributes_that_were_given() {
    let Sticky::Cookie(cookie) = sticky("sticky cookie a;") else { panic!("it is a cookie") };
    assert_eq!((&*cookie.name, cookie.expires), (&b"a"[..], StickyExpires::Session));
    assert!(!cookie.http_only && !cookie.secure);
    assert!(cookie.domain.is_none() && cookie.path.is_none() && cookie.same_site.is_none());
    let text = "sticky cookie a expires=1h domain=.b.c path=/$x httponly secure samesite=Lax;";
    let Sticky::Cookie(cookie) = sticky(text) else { panic!("it is a cookie") };
    assert_eq!(cookie.expires, StickyExpires::After(3600));
    assert_eq!(cookie.path.as_deref(), Some(&b"/$x"[..]), "it has no variables");
    assert!(cookie.http_only && cookie.secure);
    assert_eq!(cookie.domain.unwrap().as_text(), Some(&b".b.c"[..]));
    assert_eq!(cookie.same_site.unwrap().as_text(), Some(&b"Lax"[..]));
    let Sticky::Cookie(cookie) = sticky("sticky cookie a expires=max;") else { panic!() };
    assert_eq!(cookie.expires, StickyExpires::Max);
}

#[test]
fn sessions_are_known_for_ten_minutes_by_default() {
    let text = "sticky learn create=$arg_a create=$arg_b lookup=$arg_c zone=z:1m;";
    let Sticky::Learn(learn) = sticky(text) else { panic!("it learns") };
    let StickyLearn { create, lookup, zone, size, timeout, at_head } = learn;
    assert_eq!((create.len(), lookup.len(), &*zone, size), (2, 1, "z", 1 << 20));
    assert_eq!((timeout, at_head), (Duration::from_secs(600), false));
    let text = "sticky learn lookup=$arg_c zone=z:64k header timeout=1500ms create=$arg_a;";
    let Sticky::Learn(learn) = sticky(text) else { panic!("it learns") };
    assert_eq!((learn.size, learn.timeout), (64 << 10, Duration::from_millis(1500)));
    assert!(learn.at_head);
}

#[test]
fn servers_have_routes_and_may_be_drained() {
    let http = http("upstream u { server 127.0.0.1:1 route=a drain; server 127.0.0.1:2; }");
    let servers = &http.upstreams[0].servers;
    let found: Vec<_> =
        servers.iter().map(|server| (server.route.as_deref(), server.drain)).collect();
    assert_eq!(found, [(Some(&b"a"[..]), true), (None, false)]);
}
