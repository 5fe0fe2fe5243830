//! Parts of combined responses and inlines: none is stored for a visitor who might not have got the
//! response that it came in.

use bolide_testkit::app::AppSaid;
use bolide_testkit::server::LISTEN;
use bolide_testkit::{TestApp, TestServer};

use super::{NO_CACHE, PAGE, PARAMS, PUBLIC, ask, say, serve};
use crate::http;

const ONE: &str = "Cookie: lsc_private=aaaaaaaaaaaaaaaaaaaa\r\n";
const OTHER: &str = "Cookie: lsc_private=bbbbbbbbbbbbbbbbbbbb\r\n";
const USER: &str = "Authorization: Basic dTpw\r\n";

/// A stored page whose part `sub` comes in the response of `main`; it says with `control` how it
/// is stored, and its response is `for N`.
fn plan_page(app: &TestApp, server: &TestServer, (main, sub): (&str, &str), said: (&str, &str)) {
    let (head, control) = said;
    let text = format!(
        "[<esi:include src='{main}' combine='main'/><esi:include src='{sub}' combine='sub'/>]"
    );
    say(app, "/page", PAGE, &text);
    say(app, sub, "Content-Type: text/html", "alone");
    let part = |number: usize| {
        let inline =
            format!("<esi:inline name='{sub}' cache-control='{control}'>for {number}</esi:inline>");
        AppSaid::head(format!("{head}\nContent-Type: text/html").trim()).body(inline.as_bytes())
    };
    app.plan(main, (1..4).map(part).collect());
    assert_eq!(ask(server, "/page", "").text(), "[alone]", "while it comes");
}

#[test]
fn a_part_is_stored_for_no_wider_audience_than_its_response() {
    let vary = "X-LiteSpeed-Cache-Control: no-cache\nX-LiteSpeed-Vary: cookie=cur";
    let private = "X-LiteSpeed-Cache-Control: private,max-age=60";
    let (eur, usd) = ("Cookie: cur=EUR\r\n", "Cookie: cur=USD\r\n");
    let (german, french) = ("Accept-Language: de\r\n", "Accept-Language: fr\r\n");
    for (head, control, first, second, is_shared) in [
        ("", "max-age=60", ONE, OTHER, true),
        ("X-LiteSpeed-Cache-Control: public,max-age=60", "max-age=60", ONE, OTHER, true),
        ("Cache-Control: max-age=60", "max-age=60", ONE, OTHER, true),
        ("Vary: Accept-Encoding", "public,max-age=60", german, french, true),
        // What names its reader.
        ("", "max-age=60", USER, "", false),
        ("", "s-maxage=60", USER, "", false),
        ("", "public,max-age=60", USER, "", false),
        ("", "public,max-age=60,no-vary", USER, "", false),
        // What depends on more.
        (vary, "public,max-age=60", eur, usd, false),
        (vary, "public,max-age=60", eur, eur, true),
        (vary, "public,max-age=60,no-vary", eur, usd, false),
        ("Vary: Accept-Language", "public,max-age=60", german, french, false),
        ("Vary: Accept-Language", "public,max-age=60", german, german, true),
        ("Vary: *", "public,max-age=60", ONE, OTHER, false),
        ("Vary: Cookie", "public,max-age=60", ONE, OTHER, false),
        // What says that it is for one client; a part that says `public` is an exception.
        (private, "max-age=60", ONE, OTHER, false),
        (private, "max-age=60", ONE, ONE, true),
        (private, "public,max-age=60", ONE, OTHER, true),
        ("X-LiteSpeed-Cache-Control: no-cache", "max-age=60", ONE, OTHER, false),
        ("X-LiteSpeed-Cache-Control: no-cache", "public,max-age=60", ONE, OTHER, true),
        ("X-LiteSpeed-Cache-Control: no-store", "s-maxage=60", ONE, OTHER, false),
        ("Cache-Control: private, no-store", "max-age=60", ONE, OTHER, false),
        ("Cache-Control: no-cache", "max-age=60", ONE, OTHER, false),
        ("Surrogate-Control: no-store", "max-age=60", ONE, OTHER, false),
        ("Cache-Control: max-age=60\nSet-Cookie: a=b", "max-age=60", ONE, OTHER, false),
    ] {
        let app = TestApp::start();
        let server = serve(&app.address(), "");
        plan_page(&app, &server, ("/main", "/sub"), (head, control));
        assert_eq!(ask(&server, "/page", first).text(), "[for 1]", "{head} {control}");
        let expected = if is_shared { "[for 1]" } else { "[for 2]" };
        assert_eq!(ask(&server, "/page", second).text(), expected, "{head} {control} {second}");
    }
}

#[test]
fn parts_of_a_response_behind_checks_are_for_those_who_pass_them() {
    for (main, member) in [
        ("/password/main", USER),
        ("/either/main", USER),
        ("/asked/main", "Cookie: member=1\r\n"),
        ("/address/main", "X-Real-IP: 192.0.2.1\r\n"),
        ("/method/main", "X-Real-IP: 192.0.2.1\r\n"),
        ("/test/main", "Cookie: member=1\r\n"),
        ("/through/main", "X-Real-IP: 192.0.2.1\r\n"),
    ] {
        for control in ["public,max-age=60", "private,max-age=60", "max-age=60"] {
            let app = TestApp::start();
            let pass = format!("{PARAMS} fastcgi_pass {}; page_cache auto;", app.address());
            let server = http(&format!(
                "server {{ {LISTEN} set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP;
                     auth_basic_user_file @DIR@/users;
                     location / {{ {pass} }}
                     location /password/ {{ auth_basic x; {pass} }}
                     location /either/ {{ satisfy any; allow 192.0.2.9; deny all; auth_basic x;
                         {pass} }}
                     location /asked/ {{ auth_request /who; {pass} }}
                     location /who {{ if ($cookie_member = '') {{ return 403; }} return 204; }}
                     location /address/ {{ allow 192.0.2.0/24; deny all; {pass} }}
                     location /method/ {{
                         limit_except GET {{ allow 192.0.2.0/24; deny all; }} {pass} }}
                     location /test/ {{ if ($cookie_member = '') {{ return 403; }} {pass} }}
                     location /through/ {{ allow 192.0.2.0/24; deny all;
                         try_files /none /inner$uri; }}
                     location /inner/ {{ {pass} }} }}"
            ));
            server.home().write("users", "u:{PLAIN}p\n");
            plan_page(&app, &server, (main, "/sub"), ("", control));
            let session = "lsc_private=aaaaaaaaaaaaaaaaaaaa";
            let with_session = match member.strip_prefix("Cookie: ") {
                Some(cookies) => format!("Cookie: {session}; {cookies}"),
                None => format!("Cookie: {session}\r\n{member}"),
            };
            let text = ask(&server, "/page", &with_session).text();
            assert_eq!(text, "[for 1]", "{main}");
            for stranger in ["", ONE, OTHER] {
                let text = ask(&server, "/page", stranger).text();
                assert_eq!(text, "[alone]", "{main} {control} {stranger}");
            }
        }
    }
}

#[test]
fn checks_that_a_part_passes_as_well_keep_it_from_nobody() {
    let app = TestApp::start();
    let rules = "deny 192.0.2.66; if ($http_user_agent = evil) { return 403; }";
    let server = serve(&app.address(), rules);
    plan_page(&app, &server, ("/main", "/sub"), (NO_CACHE, "public,max-age=60"));
    for visitor in [ONE, OTHER, ""] {
        assert_eq!(ask(&server, "/page", visitor).text(), "[for 1]");
    }
    assert_eq!(app.count("/main"), 1);
}

#[test]
fn an_inline_needs_the_word_public_if_its_page_has_a_known_reader() {
    for (control, first, second) in [
        ("max-age=60", USER, "[alone]"),
        ("public,max-age=60", USER, "[inline]"),
        ("max-age=60", "", "[inline]"),
    ] {
        let app = TestApp::start();
        let server = serve(&app.address(), "");
        let inline = format!("<esi:inline name='/part' cache-control='{control}'>inline");
        let text = format!("{inline}</esi:inline>[<esi:include src='/part'/>]");
        say(&app, "/page", PAGE, &text);
        say(&app, "/part", PUBLIC, "alone");
        let _made = ask(&server, "/page", first);
        assert_eq!(ask(&server, "/page", "").text(), second, "{control} {first}");
        assert_eq!(app.count("/page"), 1, "{control} {first}");
    }
}
