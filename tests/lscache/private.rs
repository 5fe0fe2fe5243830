//! No byte of one session reaches another one.

use super::*;

const ONE: &str = "Cookie: lsc_private=aaaaaaaaaaaaaaaa\r\n";
const TWO: &str = "Cookie: lsc_private=bbbbbbbbbbbbbbbb\r\n";

// Row 5: private pages belong to their session.
#[test]
fn a_private_page_answers_its_own_session_only() {
    let rig = Rig::new("page_cache auto;");
    rig.app.say("/", PRIVATE);
    assert_eq!((rig.seen("/", ONE), rig.seen("/", ONE)), (miss(1), own(1)));
    assert_eq!((rig.seen("/", TWO), rig.seen("/", TWO)), (miss(2), own(2)));
    assert_eq!(rig.seen("/", ONE), own(1));
    // Without a session there is no private cache, and nothing is stored.
    assert_eq!((rig.seen("/", ""), rig.seen("/", "")), (past(3), past(4)));
    assert_eq!(rig.seen("/", "Cookie: lsc_private=short\r\n"), past(5));
    assert_eq!(rig.seen("/", "Cookie: other=aaaaaaaaaaaaaaaa\r\n"), past(6));
    assert_eq!(rig.seen("/", "Cookie: lsc_private=aaaaaaaaaaaaaaaA\r\n"), miss(7));
}

// A session whose cookies are longer than a key may be has no private cache: what is private to it
// is stored nowhere, least of all where every client finds it.
#[test]
fn a_session_that_is_too_long_for_a_key_has_no_private_cache() {
    let rig = Rig::new("page_cache auto;");
    rig.app.say("/", PRIVATE);
    let long = format!("Cookie: lsc_private={}\r\n", "l".repeat(1500));
    assert_eq!((rig.seen("/", &long), rig.seen("/", &long)), (past(1), past(2)));
    assert_eq!((rig.seen("/", ""), rig.seen("/", ONE)), (past(3), miss(4)));
    assert_eq!((rig.seen("/", &long), rig.seen("/", ONE)), (past(5), own(4)));
}

// The cookies are those of a browser; `Authorization` may name another user in each request.
#[test]
fn a_request_with_authorization_has_no_private_cache() {
    let rig = Rig::new("page_cache auto;");
    rig.app.say("/", PRIVATE);
    let [alice, bob] = ["alice", "bob"].map(|user| format!("{ONE}Authorization: Basic {user}\r\n"));
    assert_eq!((rig.seen("/", &alice), rig.seen("/", &alice)), (past(1), past(2)));
    assert_eq!((rig.seen("/", &bob), rig.seen("/", ONE)), (past(3), miss(4)));
    assert_eq!((rig.seen("/", &bob), rig.seen("/", ONE)), (past(5), own(4)));
}

// §3: the session cookies and their precedence.
#[test]
fn a_session_is_known_by_all_of_its_cookies() {
    let rig = Rig::new("page_cache auto;");
    rig.app.say("/", PRIVATE);
    let value = "vvvvvvvvvvvvvvvv";
    for (at, name) in [
        "lsc_private",
        "xf_session",
        "frontend",
        "wp_woocommerce_session_abc",
        "wordpress_logged_in_abc",
        "PHPSESSID",
    ]
    .into_iter()
    .enumerate()
    {
        let cookie = format!("Cookie: {name}={value}\r\n");
        assert_eq!(
            (rig.seen("/", &cookie), rig.seen("/", &cookie)),
            (miss(2 * at + 1), own(2 * at + 1)),
            "{name}"
        );
        // Each of them counts: one alone may belong to another host or client.
        let both = format!("Cookie: PHPSESSID=other-other-other; {name}={value}\r\n");
        assert_eq!(rig.seen("/", &both).0, "miss", "{name}");
        assert_eq!(rig.seen("/", &cookie).0, "hit,private", "{name}");
    }
    let rig = Rig::new("page_cache auto; page_cache_session sid my_*;");
    rig.app.say("/", PRIVATE);
    for (at, name) in ["sid", "my_session"].into_iter().enumerate() {
        let cookie = format!("Cookie: {name}={value}\r\n");
        assert_eq!((rig.seen("/", &cookie), rig.seen("/", &cookie)), (miss(at + 1), own(at + 1)));
    }
    assert_eq!(rig.seen("/", &format!("Cookie: PHPSESSID={value}\r\n")), past(3));
    let rig = Rig::new("page_cache auto; page_cache_private off;");
    rig.app.say("/", PRIVATE);
    assert_eq!((rig.seen("/", ONE), rig.seen("/", ONE)), (past(1), past(2)));
}

// Row 6: a POST flushes its session's pages, unless it is exempt.
#[test]
fn a_post_drops_the_private_pages_of_its_session_unless_disabled() {
    for (directives, is_flushed) in [
        ("", true),
        ("page_cache_autoflush off;", false),
        ("page_cache_control no-autoflush;", false),
        ("page_cache_control $arg_none no-autoflush;", false),
    ] {
        let rig = Rig::new(&format!("page_cache auto; {directives}"));
        rig.app.say("/", PRIVATE);
        rig.app.say("/public", PUBLIC);
        assert_eq!((rig.seen("/", ONE), rig.seen("/", TWO)), (miss(1), miss(2)));
        assert_eq!((rig.seen("/public", ""), rig.seen("/public", "")), (miss(1), hit(1)));
        rig.order("", ONE);
        assert_eq!(rig.seen("/", ONE), if is_flushed { miss(3) } else { own(1) }, "{directives}");
        assert_eq!(rig.seen("/", TWO), own(2), "{directives}");
        assert_eq!(rig.seen("/public", ""), hit(1), "{directives}");
        // A GET flushes nothing.
        rig.ask("/else", TWO);
        assert_eq!(rig.seen("/", TWO), own(2));
    }
}

// Row 6, concurrently: a response made during the POST may be older than its effect.
#[test]
fn pages_fetched_during_a_post_are_dropped_with_it() {
    let rig = Rig::new("page_cache auto;");
    rig.app.say("/cart", PRIVATE);
    rig.app.hold("/add");
    thread::scope(|scope| {
        let post =
            scope.spawn(|| rig.method("POST", "/add", &format!("Content-Length: 0\r\n{ONE}")));
        wait_until("the application has the POST", || rig.app.count("/add") == 1);
        assert_eq!((rig.seen("/cart", ONE), rig.seen("/cart", ONE)), (miss(1), own(1)));
        rig.app.release();
        assert_eq!(post.join().unwrap().status, 200);
    });
    assert_eq!(rig.seen("/cart", ONE), miss(2));
}

// §6: private purges reach the session of the request; `public:` tags reach all.
#[test]
fn private_orders_reach_their_own_session_and_public_tags_reach_all() {
    let rig = Rig::new("page_cache auto; page_cache_autoflush off;");
    rig.app.say("/", &format!("{PRIVATE}\nX-LiteSpeed-Tag: cart,public:P"));
    let fill = || {
        rig.seen("/", ONE);
        rig.seen("/", TWO);
    };
    for (order, one, two) in [
        ("private,cart", "miss", "hit,private"),
        ("private,tag=cart", "miss", "hit,private"),
        ("private,c*", "miss", "hit,private"),
        ("private,*", "miss", "hit,private"),
        ("private,/", "miss", "hit,private"),
        ("public,x;private,cart", "miss", "hit,private"),
        ("cart", "hit,private", "hit,private"),
        ("*", "hit,private", "hit,private"),
        ("/", "hit,private", "hit,private"),
        ("private,P", "hit,private", "hit,private"),
        ("P", "miss", "miss"),
        ("private,stale,cart", "miss", "hit,private"),
    ] {
        fill();
        assert_eq!(
            (rig.seen("/", ONE).0, rig.seen("/", TWO).0),
            ("hit,private".into(), "hit,private".into())
        );
        rig.order(&format!("X-LiteSpeed-Purge: {order}"), ONE);
        assert_eq!((&*rig.seen("/", ONE).0, &*rig.seen("/", TWO).0), (one, two), "{order}");
    }
}

// Login and logout: the response that ends a session purges that session.
#[test]
fn a_session_that_an_answer_begins_or_ends_is_purged_with_both_names() {
    let old = "Cookie: PHPSESSID=aaaaaaaaaaaaaaaaaaaa\r\n";
    for (set, what) in [
        ("PHPSESSID=cccccccccccccccccccc", "renewed"),
        ("PHPSESSID=deleted; Max-Age=0", "ended"),
        ("PHPSESSID=x; expires=Thu, 01 Jan 1970 00:00:01 GMT", "ended"),
    ] {
        let rig = Rig::new("page_cache auto; page_cache_autoflush off;");
        rig.app.say("/", PRIVATE);
        assert_eq!((rig.seen("/", old), rig.seen("/", old)), (miss(1), own(1)));
        rig.order(&format!("X-LiteSpeed-Purge: private,*\nSet-Cookie: {set}"), old);
        assert_eq!(rig.seen("/", old), miss(2), "{what}");
    }
}

// A response that renews the session: the page belongs to the new session only.
#[test]
fn a_page_whose_answer_renews_the_session_belongs_to_the_new_one() {
    let rig = Rig::new("page_cache auto;");
    let old = "Cookie: PHPSESSID=aaaaaaaaaaaaaaaaaaaa\r\n";
    let new = "Cookie: PHPSESSID=cccccccccccccccccccc\r\n";
    rig.app.plan(
        "/",
        vec![
            AppSaid::head(&format!(
                "{PRIVATE}\nSet-Cookie: PHPSESSID=cccccccccccccccccccc; path=/"
            )),
            AppSaid::head(PRIVATE),
        ],
    );
    assert_eq!(rig.seen("/", old), miss(1));
    assert_eq!(rig.seen("/", old), miss(2), "the old one has no page any more");
    let kept = rig.ask("/", new);
    assert_eq!((&*kept.text(), kept.header("set-cookie")), ("run 1", None));
    // The same without an earlier session; and when it ends, nothing is stored.
    rig.app.say("/first", &format!("{PRIVATE}\nSet-Cookie: PHPSESSID=dddddddddddddddddddd"));
    rig.ask("/first", "");
    assert_eq!(rig.seen("/first", "Cookie: PHPSESSID=dddddddddddddddddddd\r\n"), own(1));
    assert_eq!(rig.ask("/first", "").text(), "run 2");
    rig.app.say("/last", &format!("{PRIVATE}\nSet-Cookie: PHPSESSID=; Max-Age=0"));
    assert_eq!((rig.seen("/last", old), rig.seen("/last", old)), (past(1), past(2)));
}

// Requests coalesced with a fetch that turns out to be private.
#[test]
fn a_coalesced_request_for_a_private_page_fetches_its_own() {
    let rig = Rig::new("page_cache auto;");
    let heads = [PRIVATE, "X-LiteSpeed-Cache-Control: no-cache", "Cache-Control: private", ""];
    for (round, head) in heads.into_iter().enumerate() {
        rig.app.say("/", head);
        rig.order("X-LiteSpeed-Purge: *;private,*", ONE);
        rig.app.hold("/");
        let all: Vec<String> = thread::scope(|scope| {
            let first = scope.spawn(|| rig.ask("/", ONE).text());
            wait_until("the application is asked", || rig.app.count("/") == 1);
            let others: Vec<_> = (0..6)
                .map(|at| {
                    let rig = &rig;
                    let cookie = format!("Cookie: lsc_private=cccccccccccccccc{round}{at}\r\n");
                    scope.spawn(move || rig.ask("/", if at == 5 { "" } else { &cookie }).text())
                })
                .collect();
            bolide_testkit::pause(100);
            rig.app.release();
            [first].into_iter().chain(others).map(|one| one.join().unwrap()).collect()
        });
        let mut different = all.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), all.len(), "{head}: {all:?}");
    }
}

// The same for a page whose variant only its response selects.
#[test]
fn a_coalesced_request_for_a_varying_page_gets_the_right_variant() {
    let php = TestPhp::start(4);
    let address = php.address();
    let server = http(&format!(
        "server {{ {LISTEN} page_cache auto; location / {{ {PARAMS} fastcgi_pass {address}; }} }}"
    ));
    site::write(
        &server.www("page.php"),
        b"<?php usleep(200000); header('X-LiteSpeed-Cache-Control: public,max-age=60');
          header('X-LiteSpeed-Vary: cookie=who'); echo $_COOKIE['who'] ?? 'nobody';",
    );
    thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|at| {
                let server = &server;
                let ask = move || {
                    let cookie = format!("Cookie: who={}\r\n", at % 3);
                    (at % 3, server.connect().get("/page.php", &cookie).text())
                };
                scope.spawn(ask)
            })
            .collect();
        for one in all {
            let (who, text) = one.join().unwrap();
            assert_eq!(text, who.to_string());
        }
    });
}

// An address that is public for some clients and private for others.
#[test]
fn a_page_may_be_public_for_some_and_private_for_others() {
    let rig = Rig::new("page_cache auto;");
    rig.app.plan("/", vec![AppSaid::head(PRIVATE), AppSaid::head(PUBLIC), AppSaid::head(PRIVATE)]);
    assert_eq!(rig.seen("/", ONE), miss(1));
    assert_eq!(rig.seen("/", ""), miss(2), "kept, though the last answer was not for all");
    assert_eq!((rig.seen("/", ""), rig.seen("/", TWO)), (hit(2), hit(2)));
    assert_eq!(rig.seen("/", ONE), own(1), "his own goes before everybody's");
    rig.order("X-LiteSpeed-Purge: *;private,*", ONE);
    assert_eq!(rig.seen("/", ONE), miss(3));
    assert_eq!(rig.seen("/", TWO), miss(4));
    assert_eq!((rig.seen("/", ONE), rig.seen("/", TWO)), (own(3), own(4)));
}

// A login meanwhile: the guest's fetch stays the guest's.
#[test]
fn a_login_during_a_fetch_mixes_no_pages() {
    let php = TestPhp::start(4);
    let address = php.address();
    let server = http(&format!(
        "server {{ {LISTEN} page_cache auto; location / {{ {PARAMS} fastcgi_pass {address}; }} }}"
    ));
    // As plugins do: public for guests, private for users, who have a vary cookie.
    site::write(
        &server.www("page.php"),
        b"<?php usleep(150000); $who = $_COOKIE['PHPSESSID'] ?? '';
          $kind = strlen($who) ? 'private' : 'public';
          header('X-LiteSpeed-Cache-Control: ' . $kind . ',max-age=60');
          if (isset($_GET['in'])) { header('Set-Cookie: PHPSESSID=' . $_GET['in']); }
          echo '[', $who, ']';",
    );
    let names: Vec<String> = (0..4).map(|at| format!("session-number-{at:08}")).collect();
    for round in 0..3 {
        thread::scope(|scope| {
            let mut all = Vec::new();
            for at in 0..8 {
                let (server, names) = (&server, &names);
                all.push(scope.spawn(move || {
                    // Half of them are guests; every fourth one is just logging in.
                    let name = &names[at % 4];
                    let path = format!("/page.php?r={round}");
                    let (path, cookie, expected) = match at % 4 {
                        0 | 1 => (path, String::new(), "[]".to_owned()),
                        _ => {
                            let cookies = format!("PHPSESSID={name}; _lscache_vary=user");
                            (path, format!("Cookie: {cookies}\r\n"), format!("[{name}]"))
                        }
                    };
                    let text = server.connect().get(&path, &cookie).text();
                    assert_eq!(text, expected);
                    let again = server.connect().get(&path, &cookie).text();
                    assert_eq!(again, expected);
                }));
            }
            all.into_iter().for_each(|one| one.join().unwrap());
        });
    }
    // The response to the login itself is a guest's page that begins a session.
    let path = "/page.php?in=session-of-the-new-one";
    assert_eq!(server.connect().get(path, "").text(), "[]");
    let again = server.connect().get(path, "");
    assert_eq!((again.text(), again.header("set-cookie")), ("[]".to_owned(), None));
}

// Many sessions on several workers, with concurrent purges and POSTs: each gets its own bytes.
#[test]
fn many_sessions_on_several_workers_get_their_own_pages_only() {
    let php = TestPhp::start(6);
    let address = php.address();
    let pass = format!("location / {{ {PARAMS} fastcgi_pass {address}; }}");
    let block = format!("server {{ {LISTEN} page_cache auto; {pass} }}");
    let server = TestServer::workers(crate::BOLIDE, 3, &block);
    // Private with a session, which some requests renew; without one the response has no
    // directives.
    site::write(
        &server.www("page.php"),
        b"<?php usleep(random_int(0, 4000)); $who = $_COOKIE['PHPSESSID'] ?? '';
          if ($who !== '') header('X-LiteSpeed-Cache-Control: private,max-age=60');
          else if (isset($_GET['p'])) header('X-LiteSpeed-Cache-Control: public,max-age=60');
          header('X-LiteSpeed-Tag: own,public:all');
          if (isset($_GET['purge'])) header('X-LiteSpeed-Purge: ' . $_GET['purge']);
          echo '[', $who, '] ', str_repeat($who . ' ', 200);",
    );
    thread::scope(|scope| {
        let mut all = Vec::new();
        for at in 0..12 {
            let server = &server;
            all.push(scope.spawn(move || {
                let who = if at % 4 == 3 { String::new() } else { format!("session-{at:012}") };
                let cookie = match &*who {
                    "" => String::new(),
                    _ => format!("Cookie: PHPSESSID={who}; _lscache_vary=user\r\n"),
                };
                for turn in 0..60 {
                    let path = match (turn + at) % 10 {
                        9 => "/page.php?purge=private,*".to_owned(),
                        8 => "/page.php?purge=all;private,own".to_owned(),
                        some => format!("/page.php?p={}", some % 3),
                    };
                    let method = if turn % 13 == 12 { "POST" } else { "GET" };
                    let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
                    let head =
                        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{cookie}{length}");
                    let text = server.connect().ask(head.trim_end()).text();
                    let own = format!("[{who}] {}", format!("{who} ").repeat(200));
                    assert_eq!(text, own, "turn {turn} of {who}");
                }
            }));
        }
        all.into_iter().for_each(|one| one.join().unwrap());
    });
}

// A vary value cannot imitate a session, nor can one session imitate another.
#[test]
fn no_cookie_can_be_written_so_that_it_is_taken_for_another_session() {
    let rig = Rig::new("page_cache auto; page_cache_vary cookie=v;");
    rig.app.say("/", PRIVATE);
    assert_eq!((rig.seen("/", ONE), rig.seen("/", ONE)), (miss(1), own(1)));
    for cookie in [
        "lsc_private=aaaaaaaaaaaaaaa",
        "lsc_private=aaaaaaaaaaaaaaaa;aaaaaaaa",
        "lsc_private=\"aaaaaaaaaaaaaaaa\"",
        "lsc_private=aaaaaaaaaaaaaaaa%00",
        "lsc_private=aaaaaaaaaaaaaaaab",
        "lsc_privat=eaaaaaaaaaaaaaaaa",
        "xf_session=aaaaaaaaaaaaaaaa",
        "v=lsc_private=aaaaaaaaaaaaaaaa",
        "v=;lsc_private%3Daaaaaaaaaaaaaaaa",
        "_lscache_vary=lsc_private=aaaaaaaaaaaaaaaa",
        "x=lsc_private=aaaaaaaaaaaaaaaa",
    ] {
        let is_same = cookie.starts_with("lsc_private=aaaaaaaaaaaaaaaa;");
        let seen = rig.seen("/", &format!("Cookie: {cookie}\r\n"));
        assert_eq!(seen.1 == "run 1", is_same, "{cookie}: {seen:?}");
    }
    // With two session cookies the choice of the application is unknown: no page of the other
    // comes.
    let two = "Cookie: lsc_private=short; lsc_private=bbbbbbbbbbbbbbbb\r\n";
    assert_ne!(rig.seen("/", two).1, "run 1");
    assert_eq!(rig.seen("/", ONE), own(1));
}

// Conditional and range requests for a private page are limited to the session, too.
#[test]
fn conditions_ranges_and_head_of_a_private_page_are_answered_for_its_session_only() {
    let rig = Rig::new("page_cache auto;");
    rig.app.say("/", &format!("{PRIVATE}\nETag: \"mine\""));
    rig.seen("/", ONE);
    let condition = "If-None-Match: \"mine\"\r\n";
    assert_eq!(rig.ask("/", &format!("{ONE}{condition}")).status, 304);
    assert_eq!(rig.app.count("/"), 1);
    rig.ask("/", &format!("{TWO}{condition}"));
    assert_eq!(rig.app.count("/"), 2, "another session's page confirms nothing");
    assert_eq!(rig.ask("/", &format!("{ONE}Range: bytes=0-1\r\n")).status, 206);
    assert_eq!(rig.app.count("/"), 2);
    rig.ask("/", "Range: bytes=0-1\r\n");
    assert_eq!(rig.app.count("/"), 3);
    let head = rig.method("HEAD", "/", ONE);
    assert_eq!(head.header("x-litespeed-cache"), Some("hit,private"));
    assert_eq!(rig.method("HEAD", "/", "").header("x-litespeed-cache"), None);
}

// A public page that becomes private.
#[test]
fn a_page_that_becomes_private_is_no_longer_served_to_others() {
    let rig = Rig::new("page_cache auto; page_cache_stale off;");
    let soon = "X-LiteSpeed-Cache-Control: public,max-age=1,max-stale=0";
    rig.app.plan("/", vec![AppSaid::head(soon), AppSaid::head(PRIVATE)]);
    assert_eq!((rig.seen("/", ""), rig.seen("/", ONE)), (miss(1), hit(1)));
    wait_until("it is over", || rig.seen("/", ONE).1 == "run 2");
    assert_eq!(rig.seen("/", ONE), own(2));
    assert_eq!(rig.seen("/", TWO), miss(3));
    assert_eq!(rig.seen("/", ""), past(4));
}
