//! The inputs of the key, the irrelevant ones, and attacks on it.

use super::*;

// Row 7: a vary cookie in the response selects the variant.
#[test]
fn a_page_that_sets_its_vary_cookie_is_stored_for_clients_with_that_cookie() {
    let rig = Rig::new("page_cache auto;");
    rig.app.plan(
        "/",
        vec![
            AppSaid::head(&format!("{PUBLIC}\nSet-Cookie: _lscache_vary=xyz; path=/")),
            AppSaid::head(PUBLIC),
        ],
    );
    assert_eq!(rig.seen("/", ""), miss(1));
    assert_eq!(rig.seen("/", "Cookie: _lscache_vary=xyz\r\n"), hit(1));
    assert_eq!(rig.seen("/", ""), miss(2), "not for those without");
    assert_eq!(rig.seen("/", ""), hit(2));
    assert_eq!(rig.seen("/", "Cookie: _lscache_vary=other\r\n"), miss(3));
    // Every cookie with this prefix counts.
    assert_eq!(rig.seen("/", "Cookie: _lscache_vary_amp=1\r\n"), miss(4));
    assert_eq!(rig.seen("/", "Cookie: a=1; _lscache_vary_amp=1; b=2\r\n"), hit(4));
}

// Row 7, by fields of the response.
#[test]
fn an_answer_names_cookies_and_values_that_it_depends_on() {
    let rig = Rig::new("page_cache auto;");
    rig.app.say("/", &format!("{PUBLIC}\nX-LiteSpeed-Vary: cookie=lang,cookie=size"));
    let with = |cookie: &str| rig.seen("/", &format!("Cookie: {cookie}\r\n"));
    assert_eq!((with("lang=de"), with("lang=de")), (miss(1), hit(1)));
    assert_eq!((with("lang=fr"), with("lang=fr; x=1")), (miss(2), hit(2)));
    assert_eq!((with("lang=fr; size=2"), with("size=2; lang=fr")), (miss(3), hit(3)));
    assert_eq!((rig.seen("/", ""), rig.seen("/", ""), with("x=1")), (miss(4), hit(4), hit(4)));
    assert_eq!(with("lang=de"), hit(1));
    let rig = Rig::new("page_cache auto; page_cache_vary value=$arg_v;");
    rig.app.say("/?v=1", &format!("{PUBLIC}\nX-LiteSpeed-Vary: value=1"));
    assert_eq!((rig.seen("/?v=1", ""), rig.seen("/?v=1", "")), (miss(1), hit(1)));
}

// Row 8: `Cache-Vary` of rewrite rules, with and without the cookie.
#[test]
fn a_configured_cookie_varies_pages() {
    for vary in ["cookie=currency", "cookie=a,currency", "cookie=$names"] {
        let rig = Rig::with(
            "map $host $names { default 'x,currency'; }",
            &format!("page_cache auto; page_cache_vary {vary};")
                .replace("cookie=a,", "cookie=a cookie="),
        );
        rig.app.say("/", PUBLIC);
        let with = |cookie: &str| rig.seen("/", &format!("Cookie: {cookie}\r\n"));
        assert_eq!((rig.seen("/", ""), with("other=1")), (miss(1), hit(1)), "{vary}");
        assert_eq!((with("currency=USD"), with("z=1; currency=USD")), (miss(2), hit(2)), "{vary}");
        assert_eq!((with("currency=EUR"), with("currency=EUR")), (miss(3), hit(3)), "{vary}");
        assert_eq!((with("currency="), rig.seen("/", "")), (miss(4), hit(1)), "{vary}");
        assert!(last(&rig, "/").param("LSCACHE_VARY_COOKIE").unwrap().contains("currency"));
    }
}

// Row 9: the rewrite rules of plugins: four variants.
#[test]
fn webp_and_mobile_make_four_copies() {
    let rig = Rig::with(
        "map $http_accept $webp { default ''; ~image/webp '+webp'; }
         map $http_user_agent $mobile { default ''; ~Mobile '+ismobile'; }",
        "page_cache auto; page_cache_control no-autoflush vary=$mobile$webp;",
    );
    rig.app.say("/", PUBLIC);
    let agents = ["User-Agent: Desktop\r\n", "User-Agent: Mobile\r\n"];
    let accepts = ["Accept: text/html\r\n", "Accept: text/html,image/webp\r\n"];
    for round in 0..2 {
        for (a, agent) in agents.iter().enumerate() {
            for (b, accept) in accepts.iter().enumerate() {
                let run = a * 2 + b + 1;
                let expected = if round == 0 { miss(run) } else { hit(run) };
                assert_eq!(rig.seen("/", &format!("{agent}{accept}")), expected);
            }
        }
    }
    assert_eq!(last(&rig, "/").param("LSCACHE_VARY_VALUE"), Some("+ismobile+webp"));
}

// Row 10: `no-vary` is one copy for all.
#[test]
fn a_page_that_does_not_vary_has_one_copy() {
    let rig = Rig::new("page_cache auto; page_cache_vary cookie=currency;");
    let head = format!("{PUBLIC},no-vary\nX-LiteSpeed-Vary: cookie=x\nVary: User-Agent");
    rig.app.say("/", &head);
    assert_eq!(rig.seen("/", "Cookie: _lscache_vary=a; currency=USD\r\n"), miss(1));
    for fields in [
        "",
        "Cookie: _lscache_vary=b\r\n",
        "Cookie: currency=EUR; x=1\r\nUser-Agent: other\r\n",
        "Cookie: lsc_private=aaaaaaaaaaaaaaaa\r\n",
    ] {
        assert_eq!(rig.seen("/", fields), hit(1), "{fields}");
    }
    // A page that varies is not mixed up with one that does not.
    rig.app.say("/varies", PUBLIC);
    assert_eq!(rig.seen("/varies", ""), miss(1));
    assert_eq!(rig.seen("/varies", "Cookie: _lscache_vary=b\r\n"), miss(2));
    // For a session, too.
    let (one, two) = ("lsc_private=aaaaaaaaaaaaaaaa", "lsc_private=bbbbbbbbbbbbbbbb");
    rig.app.say("/own", &format!("{PRIVATE},no-vary"));
    assert_eq!(rig.seen("/own", &format!("Cookie: {one}; _lscache_vary=a\r\n")), miss(1));
    assert_eq!(rig.seen("/own", &format!("Cookie: {one}; _lscache_vary=b\r\n")), own(1));
    assert_eq!(rig.seen("/own", &format!("Cookie: {two}; _lscache_vary=b\r\n")), miss(2));
    // And where the configuration says so, whatever cookies there are.
    let rig = Rig::new("page_cache auto; page_cache_control no-vary;");
    rig.app.say("/", PUBLIC);
    assert_eq!(
        (rig.seen("/", "Cookie: _lscache_vary=b\r\n"), rig.seen("/", "")),
        (miss(1), hit(1))
    );
}

// Row 11: excluded query parameters: a name, a prefix, and those of outer blocks.
#[test]
fn arguments_that_do_not_matter_make_no_other_page() {
    let rig = Rig::with(
        "CacheKeyModify -qs:outer;",
        "page_cache auto; CacheKeyModify -qs:fbclid -qs:utm_*;
         location /clear { @PASS@ CacheKeyModify clear; }
         location /list { @PASS@ page_cache_drop_query -qs:ref sid*; }",
    );
    let same = |one: &str, other: &str| {
        rig.app.say(one, PUBLIC);
        rig.app.say(other, PUBLIC);
        assert_eq!(rig.seen(one, ""), miss(1), "{one}");
        rig.seen(other, "").0 == "hit"
    };
    for (other, is_same) in [
        ("?fbclid=1", true),
        ("?utm_source=1&utm_=2", true),
        ("?outer=1", true),
        ("?", false),
        ("?fbclid2=1", false),
        ("?utm=1", false),
        ("?FBCLID=1", false),
        ("?a=fbclid=1", false),
        ("?a=1", false),
    ] {
        let path =
            format!("/{}", other.len() * 100 + other.as_bytes().get(1).map_or(0, |b| *b as usize));
        assert_eq!(same(&path, &format!("{path}{other}")), is_same, "{other}");
    }
    assert!(same("/o?a=1&b=2", "/o?fbclid=1&a=1&utm_x=2&b=2"), "the order of the rest stays");
    assert!(!same("/p?a=1&b=2", "/p?b=2&a=1"), "as it is the client's");
    assert!(!same("/clear", "/clear?fbclid=1") && !same("/clear/2", "/clear/2?outer=1"));
    assert!(same("/list", "/list?ref=1&sid_x=2") && !same("/list/2", "/list/2?fbclid=1"));
    // The application gets the whole query.
    rig.app.say("/seen?fbclid=1", PUBLIC);
    rig.ask("/seen?fbclid=1", "");
    assert_eq!(last(&rig, "/seen?fbclid=1").param("QUERY_STRING"), Some("fbclid=1"));
}

// §3: a field in `Vary`, and fields that are never in a key.
#[test]
fn fields_in_vary_separate_pages_except_codings() {
    let rig = Rig::new("page_cache auto;");
    rig.app.say("/", &format!("{PUBLIC}\nVary: Accept-Encoding, X-Device, Cookie"));
    assert_eq!((rig.seen("/", ""), rig.seen("/", "")), (miss(1), hit(1)));
    assert_eq!(rig.seen("/", "Accept-Encoding: gzip\r\nCookie: a=1\r\n"), hit(1));
    assert_eq!(rig.seen("/", "X-Device: tv\r\n"), miss(2));
    assert_eq!((rig.seen("/", "X-Device: tv\r\n"), rig.seen("/", "")), (hit(2), hit(1)));
}

// Bad input: a `Vary` that no key can represent.
#[test]
fn a_page_with_too_many_vary_values_is_not_stored() {
    let rig = Rig::new("page_cache auto;");
    let names: Vec<String> = (0..2000).map(|at| format!("X-H{at}")).collect();
    let cookies: Vec<String> = (0..2000).map(|at| format!("cookie=c{at}")).collect();
    for (at, head) in [
        "Vary: *".to_owned(),
        format!("Vary: {}", names.join(",")),
        format!("X-LiteSpeed-Vary: {}", cookies.join(",")),
        format!("X-LiteSpeed-Vary: cookie={}", "n".repeat(5000)),
    ]
    .iter()
    .enumerate()
    {
        let path = format!("/{at}");
        rig.app.say(&path, &format!("{PUBLIC}\n{head}"));
        assert_eq!(
            (rig.ask(&path, "").text(), rig.ask(&path, "").text()),
            ("run 1".into(), "run 2".into())
        );
    }
    // A request that exceeds the key passes.
    rig.app.say("/cookie", &format!("{PUBLIC}\nX-LiteSpeed-Vary: cookie=big"));
    let fields = format!("Cookie: big={}\r\n", "v".repeat(6000));
    for fields in
        [fields.repeat(3), format!("X-Forwarded-Host: {}\r\n", "h".repeat(6000)).repeat(3)]
    {
        let before = rig.app.count("/cookie");
        assert_eq!(rig.ask("/cookie", &fields).status, 200);
        assert_eq!(rig.ask("/cookie", &fields).status, 200);
        assert_eq!(rig.app.count("/cookie"), before + 2);
    }
    assert_eq!(
        (rig.seen("/cookie", "").0, rig.seen("/cookie", "").0),
        ("miss".into(), "hit".into())
    );
}

// Cache poisoning: fields that applications trust and keys usually lack.
#[test]
fn a_page_that_a_client_s_fields_shaped_reaches_no_other_client() {
    let rig = Rig::new("page_cache auto; underscores_in_headers on;");
    rig.app.say("/", PUBLIC);
    for (at, claim) in [
        "X-Forwarded-Host: evil.test",
        "X-Forwarded-Host: other.test",
        "x_forwarded_host: evil.test",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Port: 1",
        "X-Forwarded-Prefix: /evil",
        "X-Forwarded-Server: evil.test",
        "Forwarded: for=1;host=evil.test",
        "X-Host: evil.test",
        "X-Original-URL: /admin",
        "X-Rewrite-URL: /admin",
        "CF-Visitor: {\"scheme\":\"https\"}",
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(rig.seen("/", &format!("{claim}\r\n")), miss(at + 1), "{claim}");
    }
    assert_eq!((rig.seen("/", ""), rig.seen("/", "")), (miss(13), hit(13)));
    assert_eq!(rig.seen("/", "X-Forwarded-Host: evil.test\r\n"), hit(1), "who says the same");
    // The forwarded client address is not part of the key.
    let clients =
        "X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\nX-Real-IP: 192.0.2.1\r\n";
    assert_eq!(rig.seen("/", clients), hit(13));
    // A request that overrides its method is neither looked up nor stored.
    for field in ["X-HTTP-Method-Override", "X-HTTP-Method", "x_method_override"] {
        assert_eq!(rig.seen("/", &format!("{field}: DELETE\r\n")).0, "", "{field}");
    }
    assert_eq!(rig.seen("/", ""), hit(13));
    // A purge by address removes all of them.
    rig.order("X-LiteSpeed-Purge: /", "");
    assert_eq!(rig.seen("/", "X-Forwarded-Host: evil.test\r\n").0, "miss");
}

// Cache poisoning: cookies that PHP reads as the ones in the key.
#[test]
fn a_vary_cookie_counts_under_every_name_that_php_accepts() {
    let php = TestPhp::start(1);
    let address = php.address();
    let server = http(&format!(
        "server {{ {LISTEN} page_cache auto; page_cache_vary cookie=woo_currency;
             location / {{ {PARAMS} fastcgi_pass {address}; }} }}"
    ));
    site::write(
        &server.www("page.php"),
        b"<?php header('X-LiteSpeed-Cache-Control: public,max-age=60');
          echo json_encode([$_COOKIE['woo_currency'] ?? '-', $_COOKIE['_lscache_vary'] ?? '-']);",
    );
    let get = |cookie: &str| {
        let field = if cookie.is_empty() { String::new() } else { format!("Cookie: {cookie}\r\n") };
        server.connect().get("/page.php", &field).text()
    };
    for name in ["woo_currency", "_lscache_vary"] {
        let attacks = [
            format!("{}=EVIL", name.replace('_', ".")),
            format!("{}=EVIL", name.replacen('_', "[", 1)),
            format!("{}=EVIL", name.replace('_', " ")),
            format!("{name}[]=EVIL"),
            format!("{name}[x]=EVIL; {name}=GOOD"),
            format!("{}=EVIL; {name}=GOOD", name.replace('_', ".")),
            format!("{name}=GOOD; {name}=EVIL"),
            format!("{name}=EVIL; {name}=GOOD"),
            format!("{}{name}=EVIL", "a=1;".repeat(600)),
        ];
        for attack in &attacks {
            get(attack);
            assert_eq!(get(""), "[\"-\",\"-\"]", "{attack}");
            assert!(!get(&format!("{name}=GOOD")).contains("EVIL"), "{attack}");
        }
    }
}

// Cache poisoning: an address with another spelling is another page.
#[test]
fn an_address_that_is_spelled_otherwise_is_another_page() {
    let rig = Rig::new("page_cache auto;");
    for path in
        ["/a/b", "/a/%62", "//a/b", "/a/./b", "/a/c/../b", "/a%2Fb", "/A/b", "/a/b?", "/a/b/"]
    {
        rig.app.say(path, PUBLIC);
    }
    assert_eq!(rig.seen("/a/b", ""), miss(1));
    for path in ["/a/%62", "//a/b", "/a/./b", "/a/c/../b", "/a%2Fb", "/A/b", "/a/b/"] {
        assert_eq!(rig.seen(path, ""), miss(1), "{path}");
    }
    // So is another host, whatever server responds, and another spelling of it.
    let host = |host: &str| {
        let reply = rig.server.connect().ask(&format!("GET /a/b HTTP/1.1\r\nHost: {host}"));
        reply.header("x-litespeed-cache").unwrap_or_default().to_owned()
    };
    assert_eq!(host("evil.test"), "miss");
    assert_eq!([host("LOCALHOST"), host("LOCALHOST")], ["miss", "hit"]);
    assert_eq!([host("localhost:1337"), host("localhost:1337")], ["miss", "hit"]);
    assert_eq!(rig.seen("/a/b", ""), hit(1));
}

// Whether a request of unknown length has content is known at its end, which HTTP/2 and HTTP/3
// clients may send behind the head.
#[test]
fn a_request_whose_body_turns_out_to_be_empty_has_none() {
    let rig = Rig::new("page_cache auto;");
    rig.app.say("/", PUBLIC);
    assert_eq!((rig.seen("/", ""), rig.seen("/", "")), (miss(1), hit(1)));
    let asked = |method: &str, pieces: &[&str]| {
        let mut client = rig.server.connect();
        let head = format!("{method} / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked");
        client.send(format!("{head}\r\n\r\n"));
        for piece in pieces {
            bolide_testkit::pause(50);
            client.send(piece);
        }
        let reply = client.answer_to(method);
        (reply.header("x-litespeed-cache").unwrap_or_default().to_owned(), reply.text())
    };
    assert_eq!(asked("GET", &["0\r\n", "\r\n"]), hit(1));
    assert_eq!(asked("HEAD", &["0\r\n\r\n"]).0, hit(1).0);
    assert_eq!(asked("GET", &["1\r\nx\r\n", "0\r\n\r\n"]), past(2));
    assert_eq!(rig.seen("/", ""), hit(1));
}
