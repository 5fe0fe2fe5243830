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
    say(app, sub, "Content-Type: text/html\nCache-Control: no-cache", "alone");
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
fn a_private_response_has_no_public_part_where_nothing_private_is_stored() {
    let app = TestApp::start();
    let server = serve(&app.address(), "page_cache_private off;");
    let private = "X-LiteSpeed-Cache-Control: private,max-age=60";
    plan_page(&app, &server, ("/main", "/sub"), (private, "max-age=60"));
    assert_eq!(ask(&server, "/page", ONE).text(), "[for 1]");
    assert_eq!(ask(&server, "/page", OTHER).text(), "[for 2]");
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
    let server = serve(&app.address(), "deny 192.0.2.66;");
    plan_page(&app, &server, ("/main", "/sub"), (NO_CACHE, "public,max-age=60"));
    for visitor in [ONE, OTHER, ""] {
        assert_eq!(ask(&server, "/page", visitor).text(), "[for 1]");
    }
    assert_eq!(app.count("/main"), 1);
}

/// The question of an `if` or of a `.htaccess` file may be about the path: another one for the
/// part, although both are asked in one location. The same goes for what is never cached.
#[test]
fn parts_of_a_response_that_was_asked_about_are_stored_for_nobody() {
    let deny = "map \"$uri:$cookie_member\" $deny { \"~^/members/.*:$\" 1; default 0; }";
    let test = "if ($deny) { return 403; }";
    let (member, stranger) = ("Cookie: member=1\r\n", "");
    for (server_rules, rules, main, other) in [
        (test, "", "/members/main", "[alone]"),
        ("", test, "/members/main", "[alone]"),
        ("", "apache_htaccess on; try_files $uri @app;", "/members/main", "[alone]"),
        ("", "page_cache_preset wordpress;", "/cart/main", "[for 2]"),
    ] {
        for control in ["public,max-age=60", "max-age=60"] {
            let app = TestApp::start();
            let pass = format!("{PARAMS} fastcgi_pass {}; page_cache auto;", app.address());
            let server = http(&format!(
                "{deny} server {{ {LISTEN} {server_rules} location / {{ {rules} {pass} }}
                     location @app {{ {pass} }} }}"
            ));
            let folder = server.www("members");
            std::fs::create_dir(&folder).unwrap();
            let file =
                "RewriteEngine On\nRewriteCond %{HTTP_COOKIE} !member=1\nRewriteRule ^ - [F]\n";
            std::fs::write(folder.join(".htaccess"), file).unwrap();
            plan_page(&app, &server, (main, "/sub"), (NO_CACHE, control));
            assert_eq!(ask(&server, "/page", member).text(), "[for 1]", "{rules}");
            assert_eq!(ask(&server, "/page", stranger).text(), other, "{rules} {control}");
        }
    }
}

/// Another location has other rules for keys, for storing and for what applications say.
#[test]
fn parts_of_a_response_of_another_location_are_not_stored() {
    for (rules, head) in [
        ("page_cache_bypass $cookie_member;", NO_CACHE),
        ("page_cache_key \"$uri|$cookie_lang\";", NO_CACHE),
        ("", "Cache-Control: private, no-store"),
    ] {
        let app = TestApp::start();
        let pass = format!("{PARAMS} fastcgi_pass {}; page_cache auto;", app.address());
        let server = http(&format!(
            "server {{ {LISTEN} location / {{ fastcgi_ignore_headers Cache-Control; {pass} }}
                 location /other/ {{ {rules} {pass} }} }}"
        ));
        plan_page(&app, &server, ("/other/main", "/sub"), (head, "max-age=60"));
        assert_eq!(ask(&server, "/page", "Cookie: member=1; lang=de\r\n").text(), "[for 1]");
        assert_eq!(ask(&server, "/page", "Cookie: lang=fr\r\n").text(), "[for 2]", "{rules}");
    }
}

/// A zone has no key for parts, and a location without a cache none at all.
#[test]
fn parts_are_stored_in_the_page_cache_only() {
    for words in ["fastcgi_cache z; fastcgi_cache_valid 1m; fastcgi_cache_key $uri;", ""] {
        let app = TestApp::start();
        let pass = format!("{PARAMS} fastcgi_pass {};", app.address());
        let server = http(&format!(
            "fastcgi_cache_path @DIR@/zone keys_zone=z:1m;
             server {{ {LISTEN} location / {{ page_cache auto; {pass} }}
                 location /sub {{ page_cache off; {words} {pass} }} }}"
        ));
        plan_page(&app, &server, ("/main", "/sub"), (NO_CACHE, "public,max-age=60"));
        assert_eq!(ask(&server, "/page", ONE).text(), "[for 1]", "{words}");
        assert_eq!(ask(&server, "/sub", OTHER).text(), "alone", "{words}");
        assert_eq!(ask(&server, "/page", OTHER).text(), "[for 2]", "{words}");
    }
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
