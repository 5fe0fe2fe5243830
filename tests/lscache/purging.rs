//! Purges: their targets, permissions, and the responses meanwhile.

use super::*;

// Row 2: a purge in the redirect after a POST.
#[test]
fn a_purge_counts_in_whatever_answer_it_comes() {
    let rig = Rig::new("page_cache auto;");
    rig.app.say("/", &format!("{PUBLIC}\nX-LiteSpeed-Tag: F,H"));
    let kept = |run| assert_eq!((rig.seen("/", ""), rig.seen("/", "")), (miss(run), hit(run)));
    kept(1);
    assert_eq!(rig.order("X-LiteSpeed-Purge: F", "").status, 302);
    kept(2);
    for status in [200, 204, 304, 403, 404, 500] {
        rig.app.say("/order", &format!("Status: {status}\nX-LiteSpeed-Purge: H"));
        rig.ask("/order", "");
        assert_eq!(rig.seen("/", "").0, "miss", "{status}");
        assert_eq!(rig.seen("/", "").0, "hit", "{status}");
    }
    rig.app.say("/order", "X-LiteSpeed-Purge: H");
    rig.method("HEAD", "/order", "");
    assert_eq!(rig.seen("/", "").0, "miss");
}

// Row 3: the purge of a tag removes three addresses, and nothing else.
#[test]
fn a_tag_takes_every_page_with_it() {
    let rig = Rig::new("page_cache auto;");
    for (path, tags) in [
        ("/a", "T.1,X"),
        ("/b", "X , T.1"),
        ("/c", "Y\nX-LiteSpeed-Tag: Z,T.1"),
        ("/d", "T.11,t.1"),
        ("/e", ""),
    ] {
        rig.app.say(path, &format!("{PUBLIC}\nX-LiteSpeed-Tag: {tags}"));
        assert_eq!((rig.seen(path, ""), rig.seen(path, "")), (miss(1), hit(1)), "{path}");
    }
    rig.order("X-LiteSpeed-Purge: T.1", "");
    for (path, expected) in
        [("/a", miss(2)), ("/b", miss(2)), ("/c", miss(2)), ("/d", hit(1)), ("/e", hit(1))]
    {
        assert_eq!(rig.seen(path, ""), expected, "{path}");
    }
}

// §2, §6: each form of a purge.
#[test]
fn an_order_is_understood_in_all_its_forms() {
    let rig = Rig::new("page_cache auto;");
    let rows = [
        ("X-LiteSpeed-Purge: tag", "miss"),
        ("X-LiteSpeed-Purge: tag=tag", "miss"),
        ("X-LiteSpeed-Purge: public,tag", "miss"),
        ("X-LiteSpeed-Purge: public, tag=x, tag=tag", "miss"),
        ("X-LiteSpeed-Purge: x;tag", "miss"),
        ("X-LiteSpeed-Purge: private,x;public,tag", "miss"),
        ("X-LiteSpeed-Purge: x\nX-LiteSpeed-Purge: tag", "miss"),
        ("X-LiteSpeed-Purge: x\nX-LiteSpeed-Purge2: tag", "miss"),
        ("X-LiteSpeed-Purge2: tag", "miss"),
        ("X-LiteSpeed-Purge: *", "miss"),
        ("X-LiteSpeed-Purge: public,*", "miss"),
        ("X-LiteSpeed-Purge: t*", "miss"),
        ("X-LiteSpeed-Purge: /page?a=1,2", "miss"),
        ("X-LiteSpeed-Purge: private,tag", "hit"),
        ("X-LiteSpeed-Purge: private,*", "hit"),
        ("X-LiteSpeed-Purge: TAG", "hit"),
        ("X-LiteSpeed-Purge: ta", "hit"),
        ("X-LiteSpeed-Purge: /page", "hit"),
        ("X-LiteSpeed-Purge: /page?a=1", "hit"),
        ("X-LiteSpeed-Purge: ,;,,", "hit"),
        ("X-LiteSpeed-Purge:", "hit"),
    ];
    for (order, expected) in rows {
        rig.app.say("/page?a=1,2", &format!("{PUBLIC}\nX-LiteSpeed-Tag: tag,other"));
        rig.order("X-LiteSpeed-Purge: *", "");
        assert_eq!((rig.seen("/page?a=1,2", ""), rig.seen("/page?a=1,2", "")), (miss(1), hit(1)));
        rig.order(order, "Cookie: lsc_private=aaaaaaaaaaaaaaaa\r\n");
        assert_eq!(rig.seen("/page?a=1,2", "").0, expected, "{order}");
    }
    // An empty tag is a tag: the prefix of a site alone.
    rig.app.say("/page", &format!("{PUBLIC}\nX-LiteSpeed-Tag: abc_,abc_F"));
    assert_eq!((rig.seen("/page", ""), rig.seen("/page", "")), (miss(1), hit(1)));
    rig.order("X-LiteSpeed-Purge: abc_", "");
    assert_eq!(rig.seen("/page", ""), miss(2));
}

// Row 4: a soft purge: one request revalidates, the others get the old page.
#[test]
fn stale_purged_pages_are_served_until_one_request_has_refreshed_them() {
    for order in ["public,stale,T", "stale,T", "T~s", "T~stale", "tag=T~s", "stale,*", "stale,/"] {
        let rig = Rig::new("page_cache auto;");
        rig.app.say("/", &format!("{PUBLIC}\nX-LiteSpeed-Tag: T"));
        assert_eq!((rig.seen("/", ""), rig.seen("/", "")), (miss(1), hit(1)));
        rig.order(&format!("X-LiteSpeed-Purge: {order}"), "");
        rig.app.hold("/");
        let all: Vec<_> = thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| rig.seen("/", ""))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(all.iter().all(|seen| *seen == hit(1)), "{order}: {all:?}");
        wait_until("one asks", || rig.app.count("/") == 2);
        rig.app.release();
        wait_until("the new page is there", || rig.seen("/", "") == hit(2));
        assert_eq!(rig.app.count("/"), 2, "{order}");
    }
}

// Row 14: the purge of an address removes all its variants.
#[test]
fn the_purge_of_an_address_removes_each_of_its_copies() {
    let rig = Rig::new("page_cache auto; page_cache_vary cookie=currency;");
    rig.app.say("/p?x=1", &format!("{PUBLIC}\nX-LiteSpeed-Vary: cookie=later"));
    rig.app.say("/p?x=2", PUBLIC);
    let copies =
        ["", "Cookie: currency=USD\r\n", "Cookie: later=1\r\n", "Cookie: _lscache_vary=m\r\n"];
    for (at, fields) in copies.iter().enumerate() {
        assert_eq!(rig.seen("/p?x=1", fields), miss(at + 1), "{fields}");
    }
    for (at, fields) in copies.iter().enumerate() {
        assert_eq!(rig.seen("/p?x=1", fields), hit(at + 1), "{fields}");
    }
    assert_eq!((rig.seen("/p?x=2", ""), rig.seen("/p?x=2", "")), (miss(1), hit(1)));
    rig.order("X-LiteSpeed-Purge: /p?x=1", "");
    for (at, fields) in copies.iter().enumerate() {
        assert_eq!(rig.seen("/p?x=1", fields), miss(at + 5), "{fields}");
    }
    assert_eq!(rig.seen("/p?x=2", ""), hit(1));
}

// Row 14, where the key is another text.
#[test]
fn an_address_is_purged_though_the_key_is_another_text() {
    let rig = Rig::new("page_cache auto; page_cache_key $arg_id; page_cache_autoflush off;");
    let session = "Cookie: lsc_private=aaaaaaaaaaaaaaaa\r\n";
    rig.app.say("/a?id=1", PUBLIC);
    rig.app.say("/b?id=2", PUBLIC);
    rig.app.say("/own?id=3", PRIVATE);
    for path in ["/a?id=1", "/b?id=2"] {
        assert_eq!((rig.seen(path, ""), rig.seen(path, "")), (miss(1), hit(1)));
    }
    assert_eq!((rig.seen("/own?id=3", session), rig.seen("/own?id=3", session)), (miss(1), own(1)));
    rig.order("X-LiteSpeed-Purge: /a?id=1", "");
    assert_eq!((rig.seen("/a?id=1", ""), rig.seen("/b?id=2", "")), (miss(2), hit(1)));
    assert_eq!(rig.method("PURGE", "/b?id=2", "").status, 200);
    assert_eq!(rig.seen("/b?id=2", ""), miss(2));
    assert_eq!(rig.seen("/own?id=3", session), own(1));
    rig.order("X-LiteSpeed-Purge: private,/own?id=3", session);
    assert_eq!(rig.seen("/own?id=3", session), miss(2));
}

// §6: an address with non-ASCII letters, whose escapes may be in lower case.
#[test]
fn an_address_is_purged_in_either_spelling_of_its_escapes() {
    let rig = Rig::new("page_cache auto;");
    for path in ["/caf%C3%A9/", "/caf%c3%a9/"] {
        rig.app.say(path, PUBLIC);
        assert_eq!((rig.seen(path, ""), rig.seen(path, "")), (miss(1), hit(1)));
    }
    rig.order("X-LiteSpeed-Purge: /caf%c3%a9/", "");
    for path in ["/caf%C3%A9/", "/caf%c3%a9/"] {
        assert_eq!(rig.seen(path, ""), miss(2), "{path}");
    }
}

// Row 15: a purge in one virtual host does not affect another.
#[test]
fn a_site_purges_nothing_of_another_site() {
    let app = TestApp::start();
    let pass = format!("{PARAMS} fastcgi_pass {};", app.address());
    let sites = [("@HTTP@", "a"), ("@HTTP@", "b"), ("@P2@", "a")].map(|(port, name)| {
        let names = format!("listen 127.0.0.1:{port}; server_name {name}.test; root @DIR@/www;");
        format!("server {{ {names} location / {{ {pass} }} }}")
    });
    let server = http(&format!("page_cache auto; {}", sites.join("\n")));
    app.say("/", &format!("{PUBLIC}\nX-LiteSpeed-Tag: T"));
    let get = |port: usize, host: &str, path: &str| {
        let mut client = bolide_testkit::H1TestClient::connect(server.addr(port));
        let session = "Cookie: lsc_private=aaaaaaaaaaaaaaaa";
        let reply = client.ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{session}"));
        reply.header("x-litespeed-cache").unwrap_or_default().to_owned()
    };
    let places = [(0, "a.test"), (0, "b.test"), (2, "a.test")];
    for (port, host) in places {
        assert_eq!((get(port, host, "/"), get(port, host, "/")), ("miss".into(), "hit".into()));
    }
    for order in ["T", "*", "/", "T*", "private,*"] {
        app.say("/order", &format!("X-LiteSpeed-Purge: {order}"));
        get(0, "a.test", "/order");
        assert_eq!(get(0, "b.test", "/"), "hit", "{order}");
        get(0, "a.test", "/");
    }
    // The same site on another port is the same site.
    app.say("/order", "X-LiteSpeed-Purge: T");
    assert_eq!(get(2, "a.test", "/"), "miss", "it was purged above");
    assert_eq!(get(2, "a.test", "/"), "hit");
    get(0, "a.test", "/order");
    assert_eq!(get(2, "a.test", "/"), "miss");
}

// §7: PURGE and REFRESH.
#[test]
fn purge_and_refresh_methods_need_permission() {
    let rig = Rig::new("page_cache auto;");
    let session = "Cookie: lsc_private=aaaaaaaaaaaaaaaa\r\n";
    rig.app.say("/?a=1", PUBLIC);
    rig.app.say("/own", PRIVATE);
    assert_eq!((rig.seen("/?a=1", ""), rig.seen("/?a=1", "")), (miss(1), hit(1)));
    assert_eq!((rig.seen("/own", session), rig.seen("/own", session)), (miss(1), own(1)));
    let reply = rig.method("PURGE", "/?a=1", "");
    assert_eq!((reply.status, reply.text().trim_end()), (200, "Processed PURGE by \"/?a=1\""));
    assert_eq!(rig.seen("/?a=1", ""), miss(2));
    assert_eq!(rig.method("REFRESH", "/?a=1", "").status, 200);
    assert_eq!(rig.seen("/?a=1", ""), hit(2), "served once more");
    wait_until("it is renewed", || rig.seen("/?a=1", "") == hit(3));
    assert_eq!(rig.method("PURGE", "/own", "").status, 200);
    assert_eq!(rig.seen("/own", session), own(1), "not this caller's");
    assert_eq!(rig.method("PURGE", "/own", session).status, 200);
    assert_eq!(rig.seen("/own", session), miss(2));
    assert_eq!(rig.app.count("/?a=1"), 3, "the application gets none of it");
}

// §7: permissions, and the purge of a directory that is searched for files first.
#[test]
fn purging_needs_an_address_or_a_password() {
    let open = "page_cache auto; page_cache_purge_allow";
    let password = "auth_basic x; auth_basic_user_file @DIR@/users;";
    let rows = [
        (format!("{open} 127.0.0.1;"), "", 200),
        (format!("{open} off;"), "", 405),
        (format!("{open} 192.0.2.0/24;"), "", 405),
        (format!("{open} off; {password}"), "Authorization: Basic YTpi\r\n", 200),
        (format!("{open} off; {password}"), "Authorization: Basic YTpj\r\n", 401),
        (
            format!("{open} off; {password} satisfy any; allow all;"),
            "Authorization: Basic YTpi\r\n",
            405,
        ),
        (format!("{open} off; auth_basic off; auth_basic_user_file @DIR@/users;"), "", 405),
    ];
    for (directives, fields, status) in rows {
        let rig = Rig::new(&directives);
        std::fs::write(rig.server.home().dir().join("users"), "a:{PLAIN}b\n").unwrap();
        for method in ["PURGE", "REFRESH"] {
            assert_eq!(rig.method(method, "/", fields).status, status, "{method} {directives}");
        }
        assert_eq!(rig.app.count("/"), 0, "{directives}");
    }
    let app = TestApp::start();
    let pass = format!("{PARAMS} fastcgi_pass {};", app.address());
    let server = http(&format!(
        "server {{ {LISTEN} page_cache auto; index index.php;
             location / {{ try_files $uri $uri/ /index.php$is_args$args; }}
             location ~ \\.php$ {{ {pass} }} }}"
    ));
    site::write(&server.www("index.php"), b"");
    for path in ["/", "/post/"] {
        app.say(path, PUBLIC);
        let seen = || server.get(path).header("x-litespeed-cache").unwrap_or_default().to_owned();
        assert_eq!((seen(), seen()), ("miss".into(), "hit".into()), "{path}");
        let purge = format!("PURGE {path} HTTP/1.1\r\nHost: localhost");
        assert_eq!(server.connect().ask(&purge).status, 200, "{path}");
        assert_eq!(seen(), "miss", "{path}");
    }
}

// §7: purges at their own address.
#[test]
fn page_cache_purge_uri_purges_for_allowed_clients() {
    for (allow, status, expected) in [("127.0.0.1", 200, "miss"), ("off", 405, "hit")] {
        let rig = Rig::new(&format!(
            "page_cache auto; page_cache_purge_uri /.purge; page_cache_purge_allow {allow};"
        ));
        for path in ["/a", "/b"] {
            rig.app.say(path, &format!("{PUBLIC}\nX-LiteSpeed-Tag: T{path}"));
            assert_eq!((rig.seen(path, ""), rig.seen(path, "")), (miss(1), hit(1)));
        }
        let order = "X-LiteSpeed-Purge: T/a\r\n";
        assert_eq!(rig.ask("/.purge", order).status, status);
        assert_eq!(rig.seen("/a", "").0, expected);
        assert_eq!(rig.seen("/b", "").0, "hit");
        // Elsewhere it is an ordinary field, and the application does not get it.
        rig.ask("/a", order);
        rig.ask("/else", "X-LiteSpeed-Purge: *\r\n");
        assert_eq!(rig.seen("/b", "").0, "hit");
        assert_eq!(last(&rig, "/else").field("X-LiteSpeed-Purge"), None);
    }
}

// A purge during a fetch: the response is older than the purge.
#[test]
fn a_page_that_is_purged_during_its_fetch_is_delivered_and_not_stored() {
    let rig = Rig::new("page_cache auto;");
    for order in ["T", "*", "/", "T*"] {
        rig.app.say("/", &format!("{PUBLIC}\nX-LiteSpeed-Tag: T"));
        rig.order("X-LiteSpeed-Purge: *", "");
        rig.app.hold("/");
        thread::scope(|scope| {
            let first = scope.spawn(|| rig.seen("/", ""));
            wait_until("the application is asked", || rig.app.count("/") == 1);
            rig.order(&format!("X-LiteSpeed-Purge: {order}"), "");
            rig.app.release();
            assert_eq!(first.join().unwrap().1, "run 1", "{order}");
        });
        assert_eq!(rig.seen("/", ""), miss(2), "{order}");
        assert_eq!(rig.seen("/", ""), hit(2), "{order}");
    }
}

// Bad input: 200 KB of tags.
#[test]
fn a_page_with_200_kilobytes_of_tags_is_stored_and_each_tag_purges_it() {
    let rig = Rig::new("page_cache auto;");
    // As LiteMage sends them: in fields of at most 7500 bytes.
    let tags: Vec<String> = (0..20_000).map(|at| format!("P_{at:08}")).collect();
    let lines: Vec<String> =
        tags.chunks(650).map(|some| format!("X-LiteSpeed-Tag: {}", some.join(","))).collect();
    let head = format!("{PUBLIC}\n{}", lines.join("\n"));
    assert!(head.len() > 200_000);
    rig.app.say("/", &head);
    assert_eq!((rig.seen("/", ""), rig.seen("/", "")), (miss(1), hit(1)));
    for (at, tag) in [&tags[0], &tags[9_999], &tags[19_999]].into_iter().enumerate() {
        rig.order(&format!("X-LiteSpeed-Purge: x,{tag}"), "");
        assert_eq!((rig.seen("/", ""), rig.seen("/", "")), (miss(at + 2), hit(at + 2)), "{tag}");
    }
    // Above the limit: the page is sent or refused, and never stored without its tags.
    let many: Vec<String> = (0..40_000).map(|at| at.to_string()).collect();
    let lines: Vec<String> =
        many.chunks(1000).map(|some| format!("X-LiteSpeed-Tag: {}", some.join(","))).collect();
    rig.app.say("/many", &format!("{PUBLIC}\n{}", lines.join("\n")));
    assert_eq!(rig.ask("/many", "").text(), "run 1");
    assert_eq!(rig.ask("/many", "").text(), "run 2");
    let huge = format!("X-LiteSpeed-Tag: {}", "x".repeat(700_000));
    rig.app.say("/huge", &format!("{PUBLIC}\n{huge}"));
    assert_eq!(rig.ask("/huge", "").status, 502);
    assert_eq!(rig.seen("/", ""), hit(4), "nobody else is the worse for it");
}

// Bad input: a purge as long as a list of tags can be.
#[test]
fn an_order_of_thousands_of_tags_is_carried_out_to_its_end() {
    let rig = Rig::new("page_cache auto;");
    rig.app.say("/", &format!("{PUBLIC}\nX-LiteSpeed-Tag: last"));
    assert_eq!((rig.seen("/", ""), rig.seen("/", "")), (miss(1), hit(1)));
    let tags: Vec<String> = (0..10_000).map(|at| format!("tag=P_{at}")).collect();
    rig.order(&format!("X-LiteSpeed-Purge: {},last", tags.join(",")), "");
    assert_eq!(rig.seen("/", ""), miss(2));
}
