//! ESI pages in all HTTP versions: the subrequests, the response to the client, and failing
//! fragments.

mod combined;
mod shared_parts;

use std::thread;

use bolide_testkit::app::AppSaid;
use bolide_testkit::server::LISTEN;
use bolide_testkit::{Proto, Response, TestApp, TestPhp, TestServer, site, wait_until};

use crate::http;

/// The `fastcgi_param` lines that Bolide ships.
const PARAMS: &str = concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/fastcgi.conf;");
const PAGE: &str = "X-LiteSpeed-Cache-Control: public,max-age=60,esi=on\nContent-Type: text/html";
const PUBLIC: &str = "X-LiteSpeed-Cache-Control: public,max-age=60\nContent-Type: text/html";
const PRIVATE: &str = "X-LiteSpeed-Cache-Control: private,max-age=60\nContent-Type: text/html";
const NO_CACHE: &str = "X-LiteSpeed-Cache-Control: no-cache,esi=on\nContent-Type: text/html";

/// A server whose pages come from `app`, with more directives.
fn serve(address: &str, more: &str) -> TestServer {
    http(&format!(
        "server {{ {LISTEN}
             location / {{ {PARAMS} fastcgi_pass {address}; page_cache auto; {more} }} }}"
    ))
}

fn say(app: &TestApp, uri: &str, head: &str, body: &str) {
    app.plan(uri, vec![AppSaid::head(head).body(body.as_bytes())]);
}

fn ask(server: &TestServer, path: &str, fields: &str) -> Response {
    server.connect().get(path, fields)
}

fn body(server: &TestServer, path: &str) -> String {
    let reply = server.get(path);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.text()
}

#[test]
fn a_page_is_put_together_by_all_versions_of_http() {
    let app = TestApp::start();
    let server = serve(&app.address(), "");
    say(
        &app,
        "/page",
        &format!("{PAGE}\nETag: \"a\""),
        "<p><esi:include src='/one'/>-\
         <a href=\"<esi:include src=\"/two?x=1&amp;y=2\"/>\"></a></p>",
    );
    say(&app, "/one", PAGE, "one[<esi:include src=\"three\" />]");
    say(&app, "/two?x=1&y=2", PUBLIC, "two");
    say(&app, "/three", PUBLIC, "three");
    let whole = "<p>one[three]-<a href=\"two\"></a></p>";
    for round in 0..2 {
        for proto in [Proto::H1, Proto::H2, Proto::H3, Proto::H2c] {
            let reply = server.fetch(proto, "/page");
            assert_eq!((reply.status, &*reply.text()), (200, whole), "{proto:?} {round}");
            for gone in ["content-length", "etag", "surrogate-control", "accept-ranges"] {
                assert_eq!(reply.header(gone), None, "{proto:?} {gone}");
            }
            assert_eq!(reply.header("content-type"), Some("text/html"));
        }
    }
    // https and http are different pages; each fragment was requested once for each.
    for uri in ["/page", "/one", "/two?x=1&y=2", "/three"] {
        assert_eq!(app.count(uri), 2, "{uri}");
    }
    assert_eq!(server.fetch(Proto::H2, "/page").header("x-litespeed-cache"), Some("hit"));
    let mut client = server.connect();
    client.send("HEAD /page HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let head = client.answer_to("HEAD");
    assert_eq!((head.status, head.text()), (200, String::new()));
    let part = ask(&server, "/page", "Range: bytes=0-2\r\nIf-None-Match: \"a\"\r\n");
    assert_eq!((part.status, &*part.text()), (200, whole), "a page has no parts of its own");
    // Its fragments get no range.
    let one = ask(&server, "/two?x=1&y=2", "Range: bytes=0-0\r\n");
    assert_eq!((one.status, &*one.text()), (206, "t"));
}

#[test]
fn a_fragment_that_is_another_file_for_others_is_looked_for_by_each_of_them() {
    let app = TestApp::start();
    let address = app.address();
    let pass = format!("{PARAMS} fastcgi_pass {address}; page_cache auto;");
    let server = http(&format!(
        "map $http_user_agent $device {{ default desk; ~Mobile hand; }}
         server {{ {LISTEN}
             location / {{ {pass} }}
             location /menu {{ try_files /for-$device.txt /app$uri; }}
             location /app {{ {pass} }} }}"
    ));
    std::fs::write(server.www("for-hand.txt"), "small").unwrap();
    say(&app, "/page", PAGE, "[<esi:include src='/menu'/>]");
    say(&app, "/menu", PUBLIC, "large");
    for turn in 0..9 {
        let (agent, menu) = if turn % 3 == 2 { ("Mobile", "[small]") } else { ("Desk", "[large]") };
        let reply = ask(&server, "/page", &format!("User-Agent: {agent}\r\n"));
        assert_eq!(reply.text(), menu, "turn {turn}");
    }
}

#[test]
fn a_page_that_is_not_stored_is_assembled_as_well() {
    let app = TestApp::start();
    let server = serve(&app.address(), "");
    let text = "a<esi:include src='/f'/>b";
    for head in [NO_CACHE, "Surrogate-Control: content=\"ESI/1.0\"\nCache-Control: no-store"] {
        say(&app, "/page", head, text);
        say(&app, "/f", PUBLIC, "f");
        for _ in 0..3 {
            assert_eq!(body(&server, "/page"), "afb");
        }
        assert_eq!(app.count("/page"), 3);
        assert_eq!(app.count("/f"), usize::from(head == NO_CACHE), "it is a hit by then");
    }
    let length = format!("{NO_CACHE}\nContent-Length: {}", text.len());
    say(&app, "/page", &length, text);
    assert_eq!(body(&server, "/page"), "afb");
    let off = serve(&app.address(), "page_cache_esi off;");
    assert_eq!(body(&off, "/page"), text);
    // A page that is not assembled may contain private inlines, so it is not cached.
    say(&app, "/page", PAGE, text);
    for count in 1..=2 {
        assert_eq!((body(&off, "/page"), app.count("/page")), (text.to_owned(), count));
    }
}

#[test]
fn fragments_of_one_session_reach_no_other() {
    let app = TestApp::start();
    let server = serve(&app.address(), "");
    let page = "<esi:include src='/cart' cache-control='private,no-vary'/>|<esi:include src='/n'/>";
    say(&app, "/page", PAGE, page);
    say(&app, "/n", PUBLIC, "n");
    let got = |cart: &str| AppSaid::head(PRIVATE).body(cart.as_bytes());
    app.plan("/cart", vec![got("one"), got("other"), got("nobody"), got("nobody")]);
    let one = "Cookie: lsc_private=aaaaaaaaaaaaaaaaaaaa\r\n";
    let other = "Cookie: lsc_private=bbbbbbbbbbbbbbbbbbbb\r\n";
    for _ in 0..2 {
        for (fields, cart) in [(one, "one|n"), (other, "other|n")] {
            let reply = ask(&server, "/page", fields);
            assert_eq!(reply.text(), cart);
        }
    }
    assert_eq!(app.count("/cart"), 2, "each session's was kept");
    for _ in 0..2 {
        assert_eq!(body(&server, "/page"), "nobody|n");
    }
    assert_eq!(app.count("/cart"), 4, "without a session nothing private is kept");
    assert_eq!((app.count("/page"), app.count("/n")), (1, 1));
}

#[test]
fn only_the_server_sets_the_esi_parameters_of_a_fragment() {
    let app = TestApp::start();
    let server = serve(&app.address(), "");
    say(&app, "/page?q=1", NO_CACHE, "<esi:include src='/f'/>");
    say(&app, "/f", NO_CACHE, "f<esi:include src='/g'/>");
    let fields = "Cookie: a=b\r\nUser-Agent: me\r\nAccept-Language: de\r\nRange: bytes=0-1\r\n\
                  If-None-Match: \"x\"\r\nAccept-Encoding: gzip\r\nESI-Referer: /forged\r\n\
                  Content-Type: text/plain\r\nContent-Length: 4\r\n";
    let mut client = server.connect();
    client.send(format!("POST /page?q=1 HTTP/1.1\r\nHost: localhost\r\n{fields}\r\nbody"));
    assert_eq!(client.answer().text(), "frun 1");
    let page = app.asked("/page?q=1").remove(0);
    assert_eq!((page.param("ESI_REFERER"), page.field("ESI-Referer")), (None, None));
    assert_eq!((page.method(), &page.body[..]), ("POST", &b"body"[..]));
    for uri in ["/f", "/g"] {
        let asked = app.asked(uri).remove(0);
        assert_eq!(asked.param("ESI_REFERER"), Some("/page?q=1"), "{uri}");
        assert_eq!(asked.param("ESI_CONTENT_TYPE"), Some("text/html"), "{uri}");
        assert_eq!((asked.method(), &asked.body[..]), ("GET", &b""[..]));
        for (name, value) in [("Cookie", "a=b"), ("User-Agent", "me"), ("Accept-Language", "de")] {
            assert_eq!(asked.field(name), Some(value), "{uri}");
        }
        for gone in ["Range", "If-None-Match", "Accept-Encoding", "ESI-Referer"] {
            assert_eq!(asked.field(gone), None, "{uri} {gone}");
        }
        assert_eq!(asked.param("X-LSCACHE"), Some("on,crawler,esi,combine"));
        assert_eq!(asked.param("REMOTE_ADDR"), page.param("REMOTE_ADDR"));
        assert_eq!(asked.param("CONTENT_LENGTH").unwrap_or_default(), "");
    }
    assert_eq!(server.access_lines(1).len(), 1, "fragments are not logged");
}

#[test]
fn a_failed_fragment_is_empty_or_its_alternative() {
    let app = TestApp::start();
    let server = serve(&app.address(), "");
    say(
        &app,
        "/page",
        PAGE,
        "a<esi:include src='/404'/>b<esi:include src='/302' alt='/good'/>\
         c<esi:include src='/500' onerror='continue'/>d<esi:include src='http://other/x'/>\
         ef<esi:include src='/empty'/>g<esi:include/>h",
    );
    say(&app, "/404", "Status: 404 Not Found", "no");
    say(&app, "/302", "Status: 302 Found\nLocation: /good", "no");
    say(&app, "/500", "Status: 500 Oops", "no");
    say(&app, "/good", PUBLIC, "good");
    say(&app, "/empty", "Status: 204 No Content", "");
    for _ in 0..2 {
        assert_eq!(body(&server, "/page"), "abgoodcdefgh");
    }
}

#[test]
fn a_fragment_that_breaks_breaks_the_page_unless_that_is_allowed() {
    let app = TestApp::start();
    let server = serve(&app.address(), "");
    let broken = AppSaid::head("Content-Length: 100").body(b"begun").cut();
    app.plan("/broken", vec![broken]);
    say(&app, "/page", PAGE, "a<esi:include src='/broken'/>b");
    for proto in [Proto::H1, Proto::H2, Proto::H3] {
        let reply = server.curl(proto).attempt(&server.url(proto, "/page"));
        assert_ne!(reply.exit, 0, "{proto:?}: {reply:?}");
        assert!("abegun.".starts_with(&reply.text()), "{reply:?}");
    }
    say(&app, "/more", PAGE, "a<esi:include src='/broken' onerror='continue'/>b");
    assert_eq!(body(&server, "/more"), "abegun.b");
    assert_eq!(server.get("/more").status, 200);
}

#[test]
fn inline_fragments_of_a_page_keep_their_scope() {
    let app = TestApp::start();
    let server = serve(&app.address(), "");
    let secret = "<esi:inline name='/cart' cache-control='private,no-vary,max-age=60' \
                  cache-tag='public:C'>cart of one</esi:inline>";
    let shared = "<esi:inline name=\"/menu\" cache-control=\"public,max-age=60\">menu</esi:inline>";
    let rest = "<html><esi:include src='/menu'/> <esi:include src='/cart' \
                cache-control='private,no-vary'/></html>";
    say(&app, "/page", PAGE, &format!("{secret}{shared}{rest}"));
    say(&app, "/cart", PRIVATE, "another cart");
    say(&app, "/menu", PUBLIC, "another menu");
    let one = "Cookie: lsc_private=aaaaaaaaaaaaaaaaaaaa\r\n";
    let other = "Cookie: lsc_private=bbbbbbbbbbbbbbbbbbbb\r\n";
    for _ in 0..2 {
        let got = ask(&server, "/page", one).text();
        assert_eq!(got, "<html>menu cart of one</html>");
        let got = ask(&server, "/page", other).text();
        assert_eq!(got, "<html>menu another cart</html>");
    }
    assert_eq!((app.count("/page"), app.count("/cart"), app.count("/menu")), (1, 1, 0));
    // An inline belongs to its page, and is never the response of its own address.
    assert_eq!(ask(&server, "/cart", one).text(), "another cart");
    assert_eq!(server.get("/menu").text(), "another menu");
    // A purge of the public tag reaches the private object.
    say(&app, "/purge", "X-LiteSpeed-Purge: tag=C", "");
    assert_eq!(server.get("/purge").status, 200);
    assert_eq!(ask(&server, "/page", one).text(), "<html>menu another cart</html>");
}

#[test]
fn fragments_set_cookies_for_clients_without_a_session() {
    let app = TestApp::start();
    let server = serve(&app.address(), "");
    say(&app, "/page", PAGE, "a<esi:include src='/cart'/><esi:include src='/menu'/>b");
    let cart = format!("{PRIVATE}\nSet-Cookie: PHPSESSID=1234567890abcdef; path=/");
    say(&app, "/cart", &cart, "cart<esi:include src='/no'/>");
    say(&app, "/page2", NO_CACHE, "<esi:include src='/nesting'/>");
    say(&app, "/nesting", NO_CACHE, "<esi:include src='/nested'/>");
    say(&app, "/nested", &format!("{NO_CACHE}\nSet-Cookie: n=1"), "x");
    say(&app, "/menu", &format!("{PUBLIC}\nLSC-Cookie: menu=1"), "menu");
    for proto in [Proto::H1, Proto::H2, Proto::H3] {
        for _ in 0..2 {
            let reply = server.fetch(proto, "/page");
            let set = reply.headers.iter().filter(|(name, _)| name == "set-cookie");
            let mut set: Vec<&str> = set.map(|(_, value)| &value[..]).collect();
            set.sort_unstable();
            let all = ["PHPSESSID=1234567890abcdef; path=/", "menu=1"];
            let text = "acart<esi:include src='/no'/>menub";
            assert_eq!((set, &*reply.text()), (all.to_vec(), text));
        }
    }
    assert_eq!(app.count("/no"), 0, "a fragment that does not ask for it is no page");
    let nested = server.get("/page2");
    assert_eq!((nested.header("set-cookie"), &*nested.text()), (Some("n=1"), "x"));
}

#[test]
fn freshly_fetched_fragments_do_not_bypass_access_checks() {
    let app = TestApp::start();
    let address = app.address();
    let server = http(&format!(
        "server {{ {LISTEN} page_cache auto; {PARAMS}
             location / {{ fastcgi_pass {address}; }}
             location /guarded {{ fastcgi_pass {address}; auth_basic x;
                 auth_basic_user_file @DIR@/users; }}
             location /told {{ if ($http_user_agent = other) {{ return 404; }}
                 fastcgi_pass {address}; }} }}"
    ));
    site::write(&server.home().dir().join("users"), b"me:{PLAIN}secret\n");
    say(
        &app,
        "/page",
        PAGE,
        "<esi:include src='/open'/>|<esi:include src='/guarded'/>|\
         <esi:include src='/told'/>|<esi:include src='/vary'/>|<esi:include src='/own'/>",
    );
    for uri in ["/open", "/guarded", "/told"] {
        say(&app, uri, &format!("{PUBLIC}\nX-LiteSpeed-Tag: T"), &uri[1..2]);
    }
    say(&app, "/vary", &format!("{PUBLIC}\nX-LiteSpeed-Vary: cookie=c"), "v");
    let own = ["p", "s"].map(|body| {
        AppSaid::head(if body == "p" { PUBLIC } else { PRIVATE }).body(body.as_bytes())
    });
    app.plan("/own", own.to_vec());
    let me = "Authorization: Basic bWU6c2VjcmV0\r\n";
    for _ in 0..5 {
        assert_eq!(ask(&server, "/page", me).text(), "o|g|t|v|p");
        assert_eq!(ask(&server, "/page", "").text(), "o||t|v|p");
        let other = "User-Agent: other\r\nCookie: _ga=1\r\n";
        assert_eq!(ask(&server, "/page", other).text(), "o|||v|p");
    }
    assert_eq!(app.count("/open"), 1);
    // Another variant for another cookie, and a private response.
    say(&app, "/vary", &format!("{PUBLIC}\nX-LiteSpeed-Vary: cookie=c"), "w");
    assert_eq!(ask(&server, "/page", "Cookie: c=1\r\n").text(), "o||t|w|p");
    assert_eq!(ask(&server, "/page", "").text(), "o||t|v|p");
    // A purged fragment disappears from all pages at once.
    say(&app, "/purge", "X-LiteSpeed-Purge: tag=T", "");
    say(&app, "/open", PUBLIC, "n");
    assert_eq!(server.get("/purge").status, 200);
    assert_eq!(ask(&server, "/page", "").text(), "n||t|v|p");
}

#[test]
fn a_page_that_repeats_itself_has_a_length_until_a_part_of_it_changes() {
    let app = TestApp::start();
    let coded = "gzip on; gzip_min_length 1; gzip_types text/html; brotli on; zstd on;";
    let server = serve(&app.address(), coded);
    let text = "a line of a page that repeats itself. ".repeat(300);
    let page = format!("<html>{text}<esi:include src='/f'/>{text}<esi:include src='/g'/></html>");
    say(&app, "/page", PAGE, &page);
    say(&app, "/f", &format!("{PUBLIC}\nX-LiteSpeed-Tag: F"), &text);
    say(&app, "/g", PUBLIC, "g");
    for coding in ["identity", "gzip", "br", "zstd"] {
        let field = format!("Accept-Encoding: {coding}");
        for proto in [Proto::H1, Proto::H2, Proto::H3] {
            let url = server.url(proto, "/page");
            let ask = || server.curl(proto).field(&field).args(["--compressed"]).get(&url);
            let whole = format!("<html>{text}{text}{text}g</html>");
            // A lookup result is reused for one second.
            wait_until("the page has a length", || {
                let reply = ask();
                assert!(reply.text() == whole, "{proto:?} {coding}");
                reply.header("content-length").is_some()
            });
            let raw = server.curl(proto).field(&field).get(&url);
            let got = raw.header("content-length").map(str::to_owned);
            assert!(got.is_none_or(|got| got == raw.body.len().to_string()), "{coding}");
            let head = server.curl(proto).field(&field).args(["-I"]).get(&url);
            assert_eq!(head.status, 200);
        }
    }
    // A client with a session does not get it.
    let own = "Cookie: PHPSESSID=abcdefghijklmnopqrst\r\n";
    assert_eq!(ask(&server, "/page", own).header("content-length"), None);
    say(&app, "/purge", "X-LiteSpeed-Purge: tag=F", "");
    say(&app, "/f", PUBLIC, "f");
    assert_eq!(server.get("/purge").status, 200);
    for _ in 0..4 {
        assert!(body(&server, "/page") == format!("<html>{text}f{text}g</html>"));
    }
    // Nor does an error response: it is requested each time.
    say(&app, "/g", "Status: 503 Oops\nX-LiteSpeed-Cache-Control: no-cache", "an error");
    let purged = server.connect().ask("PURGE /g HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(purged.status, 200);
    for _ in 0..4 {
        let reply = server.get("/page");
        assert_eq!((reply.header("content-length"), reply.status), (None, 200));
        assert!(reply.text() == format!("<html>{text}f{text}</html>"));
    }
}

#[test]
fn esi_elements_work() {
    let app = TestApp::start();
    let server = serve(&app.address(), "");
    app.plan("/nonce", ["n1", "n2"].map(|n| AppSaid::head(NO_CACHE).body(n.as_bytes())).to_vec());
    say(
        &app,
        "/page",
        NO_CACHE,
        "<esi:remove>gone</esi:remove><esi:comment text='x'/>\
         <!--esi <i>kept</i> --><script>x='<esi_include src=\"/nonce\" as-var=\"1\"/>'</script>\
         <p data-nonce='<esi:include src=\"/nonce\" as-var=\"1\" />'>",
    );
    let whole = " <i>kept</i> <script>x='n1'</script><p data-nonce='n1'>";
    assert_eq!(body(&server, "/page"), whole);
    assert_eq!(app.count("/nonce"), 1, "asked for once for both places");
}

#[test]
fn the_number_of_fragments_is_bounded() {
    let app = TestApp::start();
    let server = serve(&app.address(), "");
    say(&app, "/self", PAGE, "a<esi:include src='/self'/>b<esi:include src='/other'/>");
    say(&app, "/other", PAGE, "[<esi:include src='/self'/>]");
    assert_eq!(body(&server, "/self"), "ab[]");
    for depth in 0..9 {
        let text = format!("{depth}<esi:include src='/d{}'/>", depth + 1);
        say(&app, &format!("/d{depth}"), PAGE, &text);
    }
    assert_eq!(body(&server, "/d0"), "012345");
    // 200 fragments with 200 fragments each: 1,024 are requested.
    let many = |to: &str| (0..200).map(|n| format!("<esi:include src='/{to}?{n}'/>")).collect();
    let wide: String = many("w");
    say(&app, "/wide", PAGE, &wide);
    for n in 0..200 {
        let text: String = many("leaf");
        say(&app, &format!("/w?{n}"), PAGE, &text);
    }
    for n in 0..200 {
        say(&app, &format!("/leaf?{n}"), PUBLIC, "x");
    }
    let got = body(&server, "/wide");
    assert!(got.len() < 1024 && got.len() > 800, "{}", got.len());
    assert_eq!(body(&server, "/self"), "ab[]", "the server still serves");
}

#[test]
fn fragments_are_fetched_at_once_and_sent_in_their_order() {
    let app = TestApp::start();
    let server = serve(&app.address(), "");
    let includes: String = (0..6).map(|n| format!("<esi:include src='/f{n}'/>,")).collect();
    say(&app, "/page", PAGE, &format!("first,{includes}"));
    for n in 0..6 {
        say(&app, &format!("/f{n}"), NO_CACHE, &format!("f{n}"));
    }
    app.hold("/f0");
    let mut client = server.connect();
    client.send(
        "GET /page HTTP/1.1\r\nHost: localhost\r\nCookie: PHPSESSID=1234567890123456\r\n\r\n",
    );
    wait_until("the others are asked for", || (1..6).all(|n| app.count(&format!("/f{n}")) == 1));
    app.release();
    assert_eq!(client.answer().text(), "first,f0,f1,f2,f3,f4,f5,");
}

#[test]
fn a_coalesced_request_gets_an_assembled_page() {
    let app = TestApp::start();
    let server = serve(&app.address(), "");
    say(&app, "/page", PAGE, "a<esi:include src='/f'/>b");
    say(&app, "/f", PUBLIC, "f");
    app.hold("/page");
    thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(|| body(&server, "/page"))).collect();
        wait_until("one asks", || app.count("/page") == 1);
        app.release();
        for one in all {
            assert_eq!(one.join().unwrap(), "afb");
        }
    });
    assert_eq!((app.count("/page"), app.count("/f")), (1, 1));
}

#[test]
fn a_client_that_leaves_takes_the_fragments_with_it() {
    let app = TestApp::start();
    let server = serve(&app.address(), "");
    for proto in [Proto::H1, Proto::H2, Proto::H3] {
        let (page, fragment) = (format!("/page{proto:?}"), format!("/f{proto:?}"));
        say(&app, &page, PAGE, &format!("a<esi:include src='{fragment}'/>b"));
        say(&app, &fragment, NO_CACHE, "f");
        app.hold(&fragment);
        thread::scope(|scope| {
            let url = server.url(proto, &page);
            let curl = server.curl(proto).args(["--max-time", "1"]);
            let gone = scope.spawn(move || curl.attempt(&url));
            wait_until("it is asked for", || app.count(&fragment) == 1);
            assert_ne!(gone.join().unwrap().exit, 0);
        });
        app.release();
        assert_eq!(body(&server, &page), "afb");
    }
    let log = server.error_log();
    assert!(!log.contains("[alert]") && !log.contains("panicked"), "{log}");
}

#[test]
fn a_page_is_put_together_of_compressed_parts() {
    let app = TestApp::start();
    let coded = "gzip on; gzip_min_length 1; gzip_types text/html; brotli on; zstd on;";
    let server = serve(&app.address(), coded);
    let text = "a line of a page that repeats itself. ".repeat(300);
    let page = format!("<html>{text}<esi:include src='/f'/>{text}<esi:include src='/g'/></html>");
    let whole = format!("<html>{text}{text}short{text}short</html>");
    let named = |proto| format!("/page{proto:?}");
    for proto in [Proto::H1, Proto::H2, Proto::H3] {
        say(&app, &named(proto), PAGE, &page);
    }
    say(&app, "/kept-no", NO_CACHE, &page);
    say(&app, "/f", PAGE, &format!("{text}<esi:include src='/g'/>"));
    say(&app, "/g", PUBLIC, "short");
    for coding in ["gzip", "br", "zstd"] {
        for path in ["/kept-no".to_owned(), named(Proto::H1), named(Proto::H2), named(Proto::H3)] {
            for proto in [Proto::H1, Proto::H2, Proto::H3] {
                let field = format!("Accept-Encoding: {coding}");
                let raw = server.curl(proto).field(&field).get(&server.url(proto, &path));
                assert_eq!(raw.header("content-encoding"), Some(coding), "{path} {proto:?}");
                assert!(raw.body.len() < whole.len() / 4, "{path} {proto:?} {}", raw.body.len());
                let read = server.curl(proto).field(&field).args(["--compressed"]);
                assert!(read.get(&server.url(proto, &path)).text() == whole, "{path} {coding}");
            }
        }
    }
    assert_eq!(body(&server, "/pageH1"), whole);
}

/// Responds by its arguments: `c` is the cache control, `b` the body, `n` makes it longer.
const SCRIPT: &str = "<?php
    header('X-LiteSpeed-Cache-Control: ' . ($_GET['c'] ?? 'no-cache'));
    echo str_repeat('0123456789', (int) ($_GET['n'] ?? 0)), $_GET['b'] ?? '';
    echo isset($_GET['who']) ? ($_SERVER['ESI_REFERER'] ?? 'nobody') : '';";

#[test]
fn one_process_of_php_is_enough_for_a_page_and_its_fragments() {
    let php = TestPhp::start(1);
    let server = http(&format!(
        "server {{ {LISTEN} page_cache auto;
             location ~ \\.php$ {{ {PARAMS} fastcgi_pass {}; fastcgi_max_temp_file_size 0; }} }}",
        php.address()
    ));
    site::write(&server.www("e.php"), SCRIPT.as_bytes());
    // Escaped twice: the argument of the page contains the address of the fragment.
    let fragment = "/e.php?c%3Dpublic,max-age%253D60%26n%3D30000%26b%3Done";
    let include = format!("%3Cesi:include%20src%3D'{fragment}'/%3E");
    let who = "%3Cesi:include%20src%3D'/e.php?who%3D1'/%3E";
    let page = format!("/e.php?c=no-cache,esi%3Don&n=60000&b={include}-{who}");
    for _ in 0..2 {
        let got = server.get(&page).text();
        assert_eq!(got.len(), 600_000 + 300_000 + "one-".len() + page.len());
        assert!(got.ends_with(&format!("one-{page}")), "{}", &got[got.len() - 300..]);
    }
}
