//! `sticky`: clients keep their server by a cookie, by a route, or by a session that the group
//! learns; and what is shared between clients says nothing of one of them.
//! `tests/nginx/sites/sticky.py` compares it with nginx.

use std::thread;

use bolide_testkit::app::AppSaid;
use bolide_testkit::origin::{answer, answer_of};
use bolide_testkit::server::LISTEN;
use bolide_testkit::{Proto, Response, TestApp, TestServer, TestUpstream, wait_until};

use crate::{BOLIDE, http};

/// Two origins of one group, with the ids `one` and `two`.
struct Pair {
    one: TestUpstream,
    two: TestUpstream,
}

impl Pair {
    fn start() -> Self {
        Self { one: TestUpstream::start(), two: TestUpstream::start() }
    }

    /// The group, with this parameter of its second server.
    fn group(&self, sticky: &str, second: &str) -> String {
        format!(
            "upstream app {{ server {} route=one; server {} route=two {second}; {sticky} }}",
            self.one.address(),
            self.two.address()
        )
    }

    fn serve(&self, sticky: &str, location: &str) -> TestServer {
        http(&self.block(sticky, "", location))
    }

    fn block(&self, sticky: &str, second: &str, location: &str) -> String {
        let group = self.group(sticky, second);
        format!(
            "{group} server {{ {LISTEN}
                 location / {{ proxy_pass http://app; add_header X-From $upstream_addr always;
                     {location} }} }}"
        )
    }

    fn say(&self, target: &str, said: &[u8]) {
        self.one.say(target, said.to_vec());
        self.two.say(target, said.to_vec());
    }

    /// How often each of them was asked.
    fn counts(&self) -> [usize; 2] {
        [self.one.all().len(), self.two.all().len()]
    }
}

/// The server that a response comes from, after all that were tried.
fn from(reply: &Response) -> String {
    reply.header("x-from").expect("it has it").rsplit(", ").next().unwrap_or_default().to_owned()
}

fn cookies(reply: &Response) -> Vec<&str> {
    let all = reply.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    all.map(|(_, value)| &**value).collect()
}

#[test]
fn a_cookie_binds_its_client_by_each_protocol() {
    let pair = Pair::start();
    let server = pair.serve("sticky cookie srv;", "");
    for proto in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3] {
        let first = server.fetch(proto, "/");
        let cookie = first.header("set-cookie").expect("each client gets one").to_owned();
        let server_of = first.header("x-from").unwrap().to_owned();
        for _ in 0..3 {
            let curl = server.curl(proto).field(&format!("Cookie: a=b; {cookie}"));
            let reply = curl.get(&server.url(proto, "/"));
            assert_eq!(reply.header("x-from"), Some(&*server_of), "{proto:?}");
            assert_eq!(reply.header("set-cookie"), Some(&*cookie), "{proto:?}");
        }
    }
    let head = server.connect().ask("HEAD / HTTP/1.1\r\nHost: localhost\r\nCookie: srv=two");
    assert_eq!((from(&head), cookies(&head)), (pair.two.address(), vec!["srv=two"]));
}

#[test]
fn the_cookie_has_its_attributes_in_the_order_of_nginx_and_comes_first() {
    let pair = Pair::start();
    pair.say("/", &answer("X-Up: 1\nSet-Cookie: up=1\nX-After: 1", "x"));
    let sticky = "sticky cookie srv path=/$uri samesite=$http_x_site secure httponly
        domain=$http_x_domain expires=max;";
    let server = pair.serve(sticky, "add_header Set-Cookie own=1; proxy_cookie_path / /else/;");
    let start = "srv=two; expires=Thu, 31-Dec-37 23:55:55 GMT; max-age=315360000";
    for (fields, middle, site) in [
        ("", "", ""),
        ("X-Domain: .a.test\r\nX-Site: Lax\r\n", "; domain=.a.test", "; samesite=Lax"),
        ("X-Site: odd\r\n", "", "; samesite=strict"),
    ] {
        let reply = server.connect().get("/", &format!("Cookie: srv=two\r\n{fields}"));
        let cookie = format!("{start}{middle}; httponly; secure{site}; path=/$uri");
        assert_eq!(cookies(&reply), [&*cookie, "up=1", "own=1"]);
        let at = |name: &str| reply.headers.iter().position(|(known, _)| known == name);
        assert!(at("Set-Cookie") < at("X-Up"), "{:?}", reply.headers);
    }
}

#[test]
fn the_last_server_of_a_request_counts_whatever_becomes_of_it() {
    let pair = Pair::start();
    pair.say("/accel", &answer("X-Accel-Redirect: /inner\nSet-Cookie: up=1", ""));
    pair.say("/error", &answer_of("404 Not Found", "", ""));
    pair.one.say("/next", answer_of("503 Unavailable", "", ""));
    pair.two.vanish();
    let more = "proxy_next_upstream error http_503; proxy_intercept_errors on;
        error_page 404 /inner; } location /inner { return 200 in;";
    let server = pair.serve("sticky cookie srv;", more);
    let ask = |path: &str, id: &str| server.connect().get(path, &format!("Cookie: srv={id}\r\n"));
    let reply = ask("/", "two");
    assert_eq!((reply.status, cookies(&reply)), (200, vec!["srv=one"]));
    let reply = ask("/accel", "one");
    assert_eq!((reply.text(), cookies(&reply)), ("in".to_owned(), vec!["srv=one", "up=1"]));
    let reply = ask("/error", "one");
    assert_eq!((reply.text(), cookies(&reply)), ("in".to_owned(), vec!["srv=one"]));
    let reply = ask("/next", "one");
    assert_eq!((reply.status, cookies(&reply)), (502, vec!["srv=one"]));
}

#[test]
fn a_drained_server_keeps_its_clients_and_gets_no_others() {
    let pair = Pair::start();
    let server = http(&pair.block("sticky cookie srv;", "drain", ""));
    for _ in 0..4 {
        assert_eq!(from(&server.get("/")), pair.one.address());
        let reply = server.connect().get("/", "Cookie: srv=two\r\n");
        assert_eq!((from(&reply), cookies(&reply)), (pair.two.address(), vec!["srv=two"]));
    }
}

#[test]
fn the_first_route_that_is_not_empty_counts() {
    let pair = Pair::start();
    let server = pair.serve("sticky route $arg_a $arg_b;", "");
    for _ in 0..3 {
        for query in ["?a=two", "?a=two&b=one", "?a=&b=two"] {
            let reply = server.get(&format!("/{query}"));
            assert_eq!((from(&reply), cookies(&reply)), (pair.two.address(), vec![]), "{query}");
        }
    }
    let before = pair.counts();
    for _ in 0..12 {
        server.get("/?a=none&b=two");
    }
    let [one, two] = pair.counts();
    assert!(one > before[0] && two > before[1], "an unknown id binds to nothing");
}

/// Learns sessions from a field, and finds them by an argument.
const LEARN: &str = "sticky learn create=$upstream_http_x_new lookup=$arg_s lookup=$arg_t";

/// Asks for a session six times; whether all go to the server that made it.
fn is_bound(server: &TestServer, query: &str, address: &str) -> bool {
    (0..6).all(|_| from(&server.get(&format!("/?{query}"))) == address)
}

#[test]
fn a_session_is_learned_from_whatever_response_makes_it() {
    let pair = Pair::start();
    pair.say("/ok", &answer("X-New: ok", "x"));
    pair.say("/304", b"HTTP/1.1 304 Not Modified\r\nX-New: 304\r\n\r\n");
    pair.say("/500", &answer_of("500 Oops", "X-New: 500", ""));
    pair.say("/hidden", &answer_of("404 Not Found", "X-New: hidden", ""));
    pair.say("/accel", &answer("X-Accel-Redirect: /inner\nX-New: accel", ""));
    pair.say("/head", &answer("X-New: head", "long body"));
    // What its length promises does not come.
    let long = "HTTP/1.1 200 OK\r\nX-New: long\r\nContent-Length: 1000000\r\n\r\n";
    pair.say("/long", &[long.as_bytes(), &[b'x'; 5000]].concat());
    let more = "proxy_intercept_errors on; error_page 404 /inner; } location /inner {
        add_header X-From $upstream_addr always; return 200 in;";
    for header in ["", "header"] {
        let server = pair.serve(&format!("{LEARN} zone=z:1m {header};"), more);
        for name in ["ok", "304", "500", "hidden", "accel"] {
            let made = server.get(&format!("/{name}"));
            let address = from(&made);
            // As in nginx: a response that `error_page` replaces has no head of its own.
            let is_learned = name != "hidden" || header.is_empty();
            for query in [format!("s={name}"), format!("s=&t={name}")] {
                assert_eq!(is_bound(&server, &query, &address), is_learned, "{query} {header}");
            }
            assert!(!is_bound(&server, &format!("s=x&t={name}"), &address), "{name} {header}");
            assert_eq!(cookies(&made), [""; 0]);
        }
        let mut leaving = server.connect();
        leaving.send("GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let head = String::from_utf8(leaving.take(300).expect("its head")).expect("text");
        drop(leaving);
        let one = head.contains(&pair.one.address());
        let address = if one { pair.one.address() } else { pair.two.address() };
        wait_until("who leaves has a session", || is_bound(&server, "s=long", &address));
        let made = server.connect().ask("HEAD /head HTTP/1.1\r\nHost: localhost");
        assert!(is_bound(&server, "s=head", &from(&made)), "{header}");
    }
}

#[test]
fn sessions_are_known_to_all_workers_and_outlive_a_reload() {
    let pair = Pair::start();
    pair.say("/new", &answer("X-New: me", "x"));
    let block = |size: &str, more: &str| pair.block(&format!("{LEARN} zone=z:{size};"), more, "");
    let server = TestServer::workers(BOLIDE, 2, &block("1m", ""));
    let address = from(&server.get("/new"));
    assert!(is_bound(&server, "s=me", &address));
    server.reload(&block("1m", "weight=2"));
    wait_until("the new configuration", || server.error_log().contains("reconfigured"));
    assert!(is_bound(&server, "s=me", &address));
    server.reload(&block("2m", ""));
    wait_until("a zone of another size is another one", || !is_bound(&server, "s=me", &address));
}

#[test]
fn a_session_whose_server_is_down_is_bound_to_the_next_one_that_makes_it() {
    let pair = Pair::start();
    pair.say("/new", &answer("X-New: me", "x"));
    pair.say("/new?s=me", &answer("X-New: me", "x"));
    let block = |second: &str| pair.block(&format!("{LEARN} zone=z:1m;"), second, "");
    let server = http(&block(""));
    wait_until("the second one makes it", || from(&server.get("/new")) == pair.two.address());
    assert!(is_bound(&server, "s=me", &pair.two.address()));
    server.reload(&block("down"));
    wait_until("the new configuration", || from(&server.get("/?s=me")) == pair.one.address());
    server.get("/new?s=me");
    server.reload(&block(""));
    wait_until("the second one is up", || from(&server.get("/")) == pair.two.address());
    assert!(is_bound(&server, "s=me", &pair.one.address()));
}

/// The cookie of a visitor has its name as domain: no other one must get it.
const MARKED: &str = "sticky cookie srv domain=$http_x_visitor;";

/// Whether a response has no cookie, or only that of this visitor.
fn is_for(reply: &Response, visitor: &str) -> bool {
    cookies(reply).iter().all(|cookie| cookie.ends_with(&format!("; domain={visitor}")))
}

#[test]
fn what_is_stored_or_shared_has_no_cookie_of_a_visitor() {
    let pair = Pair::start();
    let more = "page_cache on; } location /zone/ {
        proxy_cache z; proxy_cache_key $uri; proxy_cache_lock on; proxy_cache_valid 1h;
        proxy_cache_use_stale error updating; proxy_pass http://app;";
    let block = pair.block(MARKED, "", more);
    let server = http(&format!("proxy_cache_path @DIR@/zone keys_zone=z:1m; {block}"));
    for path in ["/page", "/zone/page"] {
        pair.say(path, &answer("Cache-Control: max-age=600", "shared"));
        pair.one.hold(path);
        pair.two.hold(path);
        let asks: Vec<_> = (0..6)
            .map(|n| {
                let mut client = server.connect();
                let fields = format!("X-Visitor: v{n}\r\nCookie: srv=one\r\n");
                thread::spawn(move || client.get(path, &fields))
            })
            .collect();
        wait_until("one is asked", || pair.one.count(path) + pair.two.count(path) == 1);
        bolide_testkit::pause(200);
        pair.one.release();
        pair.two.release();
        let replies: Vec<Response> = asks.into_iter().map(|ask| ask.join().unwrap()).collect();
        let mut given = 0;
        for (n, reply) in replies.iter().enumerate() {
            assert_eq!(reply.text(), "shared", "{path}");
            assert!(is_for(reply, &format!("v{n}")), "{path} {n}: {:?}", cookies(reply));
            given += cookies(reply).len();
        }
        assert_eq!(given, 1, "{path}: the visitor whose request went to a server");
        let hit = server.connect().get(path, "X-Visitor: late\r\nCookie: srv=two\r\n");
        assert_eq!((hit.text(), cookies(&hit)), ("shared".to_owned(), vec![]), "{path}");
        assert_eq!(pair.one.count(path) + pair.two.count(path), 1, "{path} was stored");
    }
}

#[test]
fn the_parts_of_a_page_have_no_cookie_of_their_own() {
    let app = TestApp::start();
    let params = "fastcgi_param REQUEST_URI $uri; fastcgi_param REQUEST_METHOD GET;";
    let server = http(&format!(
        "upstream app {{ server {}; {MARKED} }} upstream other {{ server {0}; sticky cookie o; }}
         server {{ {LISTEN}
             location / {{ {params} fastcgi_pass app; page_cache auto; }}
             location /other/ {{ {params} fastcgi_pass other; page_cache auto; }}
             location /ssi/ {{ {params} fastcgi_pass app; ssi on; ssi_types *; }} }}",
        app.address()
    ));
    let head = "X-LiteSpeed-Cache-Control: public,max-age=60,esi=on\nContent-Type: text/html";
    let say = |uri: &str, head: &str, body: &str| {
        app.plan(uri, vec![AppSaid::head(head).body(body.as_bytes())]);
    };
    say("/page", head, "<esi:include src='/other/part'/>!");
    say("/ssi/page", "Content-Type: text/html", "<!--# include virtual=\"/other/part\" -->!");
    say("/other/part", "Content-Type: text/html", "part");
    for (path, is_kept) in [("/page", true), ("/ssi/page", false)] {
        let first = server.connect().get(path, "X-Visitor: a\r\n");
        assert_eq!((first.text(), cookies(&first).len()), ("part!".to_owned(), 1), "{path}");
        assert!(is_for(&first, "a"), "{path}: {:?}", cookies(&first));
        let second = server.connect().get(path, "X-Visitor: b\r\n");
        assert!(second.text() == "part!" && is_for(&second, "b"), "{path}");
        assert_eq!(cookies(&second).len(), usize::from(!is_kept), "{path}");
    }
}

#[test]
fn slices_and_stale_responses_say_only_which_server_was_asked_now() {
    let origin = TestUpstream::start();
    origin.say("/a", answer_of("206 Partial Content", "Content-Range: bytes 0-3/4", "abcd"));
    origin.say("/b", answer("Cache-Control: max-age=1", "old"));
    let server = http(&format!(
        "proxy_cache_path @DIR@/zone keys_zone=z:1m;
         upstream app {{ server {}; {MARKED} }}
         server {{ {LISTEN} proxy_cache z; proxy_cache_valid any 1h;
             location /a {{ slice 1k; proxy_set_header Range $slice_range;
                 proxy_cache_key $uri$slice_range; proxy_pass http://app; }}
             location /b {{ proxy_cache_use_stale error; proxy_pass http://app; }} }}",
        origin.address()
    ));
    let ask = |path: &str, visitor: &str| {
        let reply = server.connect().get(path, &format!("X-Visitor: {visitor}\r\n"));
        assert!(is_for(&reply, visitor), "{path}: {:?}", cookies(&reply));
        (reply.text(), cookies(&reply).len())
    };
    assert_eq!(ask("/a", "v1"), ("abcd".to_owned(), 1));
    assert_eq!(ask("/a", "v2"), ("abcd".to_owned(), 0));
    assert_eq!(ask("/b", "v3"), ("old".to_owned(), 1));
    bolide_testkit::pause(2100);
    origin.vanish();
    assert_eq!(ask("/b", "v4"), ("old".to_owned(), 1), "a server was chosen, in vain");
}

#[test]
fn a_tunnel_and_a_mirror() {
    let pair = Pair::start();
    let text = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n";
    pair.say("/up", text);
    let more = "mirror /mirror; proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection upgrade; proxy_http_version 1.1; }
        location /mirror { internal; proxy_pass http://app;";
    let server = pair.serve("sticky cookie srv;", more);
    let fields = "Cookie: srv=two\r\nUpgrade: x\r\nConnection: Upgrade\r\n";
    let reply = server.connect().get("/up", fields);
    assert_eq!((reply.status, cookies(&reply)), (101, vec!["srv=two"]));
}
