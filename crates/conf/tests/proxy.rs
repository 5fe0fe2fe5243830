//! `proxy_*`: the settings beyond `fastcgi_*`, their meaning, and their errors.

use std::time::Duration;

use bolide_conf::model::{
    self, Handler, Http, PassTo, PeerAddress, Protocol, ProxyUrl, Redirect, Replacement, ZoneUse,
};

use crate::support::{http, location, messages, outcome};

fn url(http: &Http, name: &str) -> ProxyUrl {
    match &location(http, &http.servers[0], name).handler {
        Handler::Pass(pass) => {
            assert_eq!(pass.protocol, Protocol::Http);
            (**pass.url.as_ref().expect("an address without variables")).clone()
        }
        other => panic!("{name} has {other:?}"),
    }
}

#[test]
fn an_address_is_a_group_and_what_stands_behind_it() {
    let http = http(
        "server { location /a/ { proxy_pass http://127.0.0.1:81/b?c; } \
           location /d { proxy_pass http://U; } location /e { proxy_pass http://unix:/s:/f; } \
           location /g { proxy_pass http://$host/h; } location /i { proxy_pass http://[::1]; } } \
         upstream u { server unix:/x; }",
    );
    let a = url(&http, "/a/");
    assert_eq!((&*a.host, &*a.port), (&b"127.0.0.1:81"[..], &b"81"[..]));
    assert_eq!((a.uri.as_deref(), &*a.replaces), (Some(&b"/b?c"[..]), &b"/a/"[..]));
    let d = url(&http, "/d");
    assert_eq!((&*d.host, &*d.port, d.uri), (&b"U"[..], &b"80"[..], None));
    let e = url(&http, "/e");
    assert_eq!(
        (&*e.host, &*e.port, e.uri.as_deref()),
        (&b"localhost"[..], &b""[..], Some(&b"/f"[..]))
    );
    let addresses = |name: &str| match &location(&http, &http.servers[0], name).handler {
        Handler::Pass(pass) => match &pass.to {
            PassTo::Group(id) => http.upstreams[id.index()].servers[0].addresses.clone(),
            PassTo::Text(_) => Vec::new(),
        },
        other => panic!("{other:?}"),
    };
    let unix = |path: &str| PeerAddress::Unix(std::path::Path::new(path).into());
    assert_eq!(addresses("/d"), [unix("/x")]);
    assert_eq!(addresses("/e"), [unix("/s")]);
    assert_eq!(addresses("/g"), []);
    assert_eq!(addresses("/i"), [PeerAddress::Inet("[::1]:80".parse().expect("an address"))]);
}

#[test]
fn both_families_keep_to_themselves_and_a_location_has_that_of_its_origin() {
    let http = http(
        "proxy_read_timeout 1s; fastcgi_read_timeout 2s; proxy_cache_path /p keys_zone=p:1m; \
         fastcgi_cache_path /f keys_zone=f:1m; proxy_cache p; fastcgi_cache f; \
         fastcgi_cache_key k; page_cache_default_ttl 7s; \
         server { location /p { proxy_pass http://127.0.0.1; location /p/f { \
             fastcgi_pass unix:/s; proxy_read_timeout 3s; location /p/f/p { \
             proxy_pass http://127.0.0.1; } } } location /n { } }",
    );
    let of = |name: &str| &location(&http, &http.servers[0], name).settings;
    let timeout = |name: &str| of(name).origin.read_timeout;
    assert_eq!(timeout("/p"), Duration::from_secs(1));
    assert_eq!(timeout("/p/f"), Duration::from_secs(2));
    assert_eq!(timeout("/p/f/p"), Duration::from_secs(3));
    let zone = |name: &str| match &of(name).cache.zone {
        ZoneUse::Zone(id) => http.cache_zones[id.index()].name.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!((zone("/p"), zone("/p/f")), ("p".to_owned(), "f".to_owned()));
    assert_eq!(of("/p").cache.page, of("/n").cache.page);
    let key = of("/p").cache.key.as_ref().expect("a default");
    assert_eq!(format!("{key:?}"), "\"http://${ProxyHost}${ProxyTarget}\"");
}

#[test]
fn lists_are_inherited_whole_or_not_at_all_and_off_empties_them() {
    let http = http(
        "proxy_set_header A 1; proxy_redirect / /x/; server { location /a { \
           proxy_pass http://127.0.0.1; } location /b { proxy_set_header B 2; \
           proxy_set_header b 3; proxy_redirect off; proxy_pass http://127.0.0.1; } } \
         server { location /c { proxy_pass http://127.0.0.1; } }",
    );
    let proxy = |server: usize, name: &str| {
        location(&http, &http.servers[server], name).settings.origin.proxy.clone()
    };
    let names = |name: &str| {
        let fields = proxy(0, name).fields.clone();
        fields.iter().map(|field| field.name.to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(names("/a"), [b"A"]);
    assert_eq!(names("/b"), [b"B", b"b"]);
    assert!(matches!(proxy(0, "/a").redirects[..], [Redirect::Rule(Replacement::Text { .. })]));
    assert!(proxy(0, "/b").redirects.is_empty());
    assert!(matches!(proxy(1, "/c").redirects[..], [Redirect::Rule(Replacement::Text { .. })]));
}

#[test]
fn errors_have_nginxs_words() {
    let uri = "\"proxy_pass\" cannot have URI part in location given by regular expression, or \
               inside named location, or inside \"if\" statement, or inside \"limit_except\" block";
    let placed = "\"proxy_redirect default\" should be placed after the \"proxy_pass\" directive";
    let rows = [
        ("proxy_pass a;", "invalid URL prefix"),
        ("proxy_pass ftp://a;", "invalid URL prefix"),
        ("proxy_pass http://;", "no host in upstream \"\""),
        ("proxy_pass http:///x;", "no host in upstream \"/x\""),
        ("proxy_pass http://127.0.0.1:99999;", "invalid port in upstream \"127.0.0.1:99999\""),
        ("proxy_pass http://127.0.0.1:x/;", "invalid port in upstream \"127.0.0.1:x/\""),
        ("proxy_pass http://[::1/;", "invalid host in upstream \"[::1/\""),
        ("proxy_pass https:///x;", "no host in upstream \"/x\""),
        ("proxy_ssl_protocols TLSv1.2; proxy_ssl_protocols TLSv1.3;", "ok"),
        (
            "proxy_ssl_conf_command Options x;",
            "\"proxy_ssl_conf_command Options\" is not implemented yet",
        ),
        ("proxy_pass http://unix:;", "no path in the unix domain socket in upstream \"unix:\""),
        ("if ($host) { proxy_pass http://127.0.0.1/; }", uri),
        ("location ~ x { proxy_pass http://127.0.0.1/; }", uri),
        (
            "proxy_pass http://127.0.0.1; proxy_pass http://127.0.0.1;",
            "\"proxy_pass\" directive is duplicate",
        ),
        ("proxy_redirect default; proxy_pass http://127.0.0.1;", placed),
        ("proxy_redirect a b; proxy_redirect default;", placed),
        (
            "proxy_pass http://$host; proxy_redirect default;",
            "\"proxy_redirect default\" cannot be used with \"proxy_pass\" directive with \
             variables",
        ),
        ("proxy_redirect a;", "invalid parameter \"a\""),
        ("proxy_redirect off; proxy_redirect a b;", "\"proxy_redirect\" directive is duplicate"),
        ("proxy_redirect a b; proxy_redirect off;", "\"proxy_redirect\" directive is duplicate"),
        ("proxy_redirect ~( b;", "pcre2_compile() failed: missing closing parenthesis in \"(\""),
        ("proxy_cookie_domain a;", "invalid parameter \"a\""),
        (
            "proxy_cookie_path a b; proxy_cookie_path off;",
            "\"proxy_cookie_path\" directive is duplicate",
        ),
        ("proxy_cookie_flags a;", "invalid parameter \"a\""),
        (
            "proxy_cookie_flags off; proxy_cookie_flags a secure;",
            "\"proxy_cookie_flags\" directive is duplicate",
        ),
        ("proxy_http_version 3;", "invalid value \"3\""),
        ("proxy_next_upstream x;", "invalid value \"x\""),
        ("fastcgi_next_upstream http_502;", "invalid value \"http_502\""),
        ("proxy_set_body a; proxy_set_body b;", "\"proxy_set_body\" directive is duplicate"),
        ("proxy_set_header a;", "invalid number of arguments in \"proxy_set_header\" directive"),
        ("proxy_next_upstream http_502 http_504; proxy_cache_use_stale http_502 http_504;", "ok"),
        ("proxy_set_header \"\" b; proxy_redirect \"\" b; proxy_redirect off off;", "ok"),
    ];
    for (text, expected) in rows {
        let text = format!("events {{}} http {{ server {{ location / {{ {text} }} }} }}");
        let expected = match expected {
            "ok" => Vec::new(),
            message => vec![format!("[emerg] {message} in /conf/nginx.conf:1")],
        };
        assert_eq!(messages(&outcome(&text)), expected, "{text}");
    }
    let sizes = messages(&outcome("events {} http { proxy_buffers 1 4k; server { } }"));
    assert_eq!(sizes, ["[emerg] there must be at least 2 \"proxy_buffers\" in /conf/nginx.conf:1"]);
    let text = "events {} http { proxy_cache_path /c keys_zone=a:1m; server { fastcgi_cache a; } }";
    assert_eq!(
        messages(&outcome(text)),
        ["[emerg] the shared memory zone \"a\" is already declared for a different use in \
          /conf/nginx.conf:1"]
    );
}

#[test]
fn an_address_without_a_port_has_that_of_its_scheme() {
    let http = http(
        "upstream app { server 127.0.0.3; } server {
             location /a { proxy_pass http://127.0.0.1; }
             location /b { proxy_pass https://127.0.0.1; proxy_ssl_verify on; }
             location /c { proxy_pass https://127.0.0.1:443; } location /d { proxy_pass https://app; }
             location /e { proxy_pass HTTPS://127.0.0.1/; } }",
    );
    let to = |name: &str| match &location(&http, &http.servers[0], name).handler {
        Handler::Pass(model::Pass { to: PassTo::Group(id), url: Some(url), .. }) => {
            (http.upstreams[id.index()].servers[0].addresses[0].to_string(), url.secure)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(to("/a"), ("127.0.0.1:80".to_owned(), false));
    for name in ["/b", "/c", "/e"] {
        assert_eq!(to(name), ("127.0.0.1:443".to_owned(), true), "{name}");
    }
    // As in nginx, a group does not depend on the location that uses it.
    assert_eq!(to("/d"), ("127.0.0.3:80".to_owned(), true));
    let tls = |name: &str| {
        let location = location(&http, &http.servers[0], name);
        location.settings.origin.proxy.tls.clone()
    };
    assert!(tls("/b").verify && !tls("/a").verify && tls("/a").session_reuse);
}
