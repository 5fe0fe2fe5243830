//! Fragments that are asked for by one request (`combine`), and those that a session has by tag
//! (`shared`): who gets which, and what an application cannot place.

use bolide_testkit::app::AppSaid;
use bolide_testkit::{TestApp, TestServer};

use super::{NO_CACHE, PAGE, PRIVATE, ask, body, say, serve};

const ONE: &str = "Cookie: lsc_private=aaaaaaaaaaaaaaaaaaaa\r\n";
const OTHER: &str = "Cookie: lsc_private=bbbbbbbbbbbbbbbbbbbb\r\n";
const MAIN: &str = "<esi:include src='/combo' combine='main' cache-control='no-cache'/>";
/// A page of a public menu and a private cart.
const SUBS: &str = "[<esi:include src='/menu?a=1&amp;b=2' combine='sub' cache-control='public'/>|\
                    <esi:include src='/cart' combine='sub' cache-control='private,no-vary'/>]";

fn inline(name: &str, control: &str, text: &str) -> String {
    format!("<esi:inline name='{name}' cache-control='{control}' cache-tag='T'>{text}</esi:inline>")
}

fn answers(app: &TestApp, texts: &[String]) {
    let said = |text: &String| AppSaid::head(NO_CACHE).body(text.as_bytes());
    app.plan("/combo", texts.iter().map(said).collect());
}

const TAGGED: &str = "X-LiteSpeed-Tag: M\nX-LiteSpeed-Cache-Control: public,max-age=60\n\
                      Content-Type: text/html";

fn shop() -> (TestApp, TestServer) {
    let app = TestApp::start();
    let server = serve(&app.address(), "");
    say(&app, "/menu?a=1&b=2", TAGGED, "menu alone");
    say(&app, "/cart", NO_CACHE, "cart alone");
    say(&app, "/page", PAGE, &format!("{MAIN}{SUBS}"));
    assert_eq!(body(&server, "/page"), "[menu alone|cart alone]", "while it comes");
    assert_eq!(app.count("/combo"), 0, "what comes has its fragments one by one");
    say(&app, "/purge", "X-LiteSpeed-Purge: tag=M", "");
    assert_eq!(server.get("/purge").status, 200);
    for uri in ["/menu?a=1&b=2", "/cart"] {
        say(&app, uri, NO_CACHE, "alone");
    }
    (app, server)
}

#[test]
fn a_combined_request_fetches_missing_fragments_and_each_is_stored_for_its_audience() {
    let (app, server) = shop();
    let menu = inline("/menu?a=1&amp;b=2", "public,max-age=60", "menu");
    let cart = |whose: &str| inline("/cart", "private,no-vary,max-age=60", whose);
    answers(&app, &[format!("{menu} {}", cart("cart one")), cart("cart other")]);
    for _ in 0..2 {
        assert_eq!(ask(&server, "/page", ONE).text(), "[menu|cart one]");
        assert_eq!(ask(&server, "/page", OTHER).text(), "[menu|cart other]");
    }
    let asked = app.asked("/combo");
    assert_eq!(asked.len(), 2, "what is kept is not asked for again");
    assert_eq!((asked[0].method(), asked[0].param("ESI_REFERER")), ("POST", Some("/page")));
    assert_eq!(asked[0].param("CONTENT_TYPE"), Some("application/x-www-form-urlencoded"));
    let forms: Vec<_> = asked.iter().map(|asked| String::from_utf8_lossy(&asked.body)).collect();
    assert_eq!(forms[0], "esi_include%5B%5D=%2Fmenu%3Fa%3D1%26b%3D2&esi_include%5B%5D=%2Fcart");
    assert_eq!(forms[1], "esi_include%5B%5D=%2Fcart", "the menu is public");
    assert_eq!((app.count("/menu?a=1&b=2"), app.count("/cart")), (0, 0));
    // Other pages of the site have them as well; their own addresses have their own responses.
    say(&app, "/other", PAGE, &format!("{MAIN}{SUBS}"));
    let _first = ask(&server, "/other", ONE);
    assert_eq!(ask(&server, "/other", ONE).text(), "[menu|cart one]");
    assert_eq!(app.count("/combo"), 2);
    assert_eq!(body(&server, "/menu?a=1&b=2"), "alone");
    assert_eq!(ask(&server, "/cart", ONE).text(), "alone");
    // A purge of the tag reaches public ones.
    say(&app, "/purge", "X-LiteSpeed-Purge: tag=T", "");
    assert_eq!(server.get("/purge").status, 200);
    answers(&app, &[inline("/menu?a=1&amp;b=2", "public,max-age=60", "new menu")]);
    assert_eq!(ask(&server, "/page", ONE).text(), "[new menu|cart one]");
}

#[test]
fn a_combined_response_stores_only_requested_fragments() {
    let (app, server) = shop();
    say(&app, "/else", PAGE, "<esi:include src='/admin' combine='sub' cache-control='public'/>");
    say(&app, "/admin", NO_CACHE, "admin alone");
    let _first = body(&server, "/else");
    let text = inline("/admin", "public,max-age=60", "forged")
        + &inline("/page", "public,max-age=60", "forged")
        + &inline("/menu?a=1&amp;b=2", "public,max-age=60", "menu");
    answers(&app, &[text]);
    assert_eq!(ask(&server, "/page", ONE).text(), "[menu|alone]", "the cart was left out");
    assert_eq!(app.count("/cart"), 1);
    assert_eq!(body(&server, "/else"), "admin alone");
    assert_eq!(body(&server, "/admin"), "admin alone");
    assert_eq!(ask(&server, "/page", OTHER).text(), "[menu|alone]");
}

#[test]
fn an_address_of_another_page_brings_nothing_for_the_pages_of_the_site() {
    let (app, server) = shop();
    // A page that a visitor can write into may name an address that answers as he likes.
    let evil = "<esi:include src='/reflect' combine='main' cache-control='no-cache'/>";
    say(&app, "/evil", PAGE, &format!("{evil}{SUBS}"));
    let forged = inline("/menu?a=1&amp;b=2", "public,max-age=60", "forged")
        + &inline("/cart", "private,max-age=60", "forged cart");
    app.plan("/reflect", vec![AppSaid::head(NO_CACHE).body(forged.as_bytes())]);
    let _first = ask(&server, "/evil", ONE);
    for _ in 0..2 {
        assert_eq!(ask(&server, "/evil", ONE).text(), "[forged|forged cart]");
    }
    answers(&app, &[inline("/menu?a=1&amp;b=2", "public,max-age=60", "menu")]);
    assert_eq!(ask(&server, "/page", ONE).text(), "[menu|alone]");
    assert_eq!(ask(&server, "/page", OTHER).text(), "[menu|alone]");
    assert_eq!(body(&server, "/menu?a=1&b=2"), "alone");
}

#[test]
fn a_private_fragment_that_is_brought_as_public_stays_private() {
    let (app, server) = shop();
    let text = |whose: &str| inline("/cart", "public,max-age=60", whose);
    answers(&app, &[text("cart one"), text("cart other")]);
    for _ in 0..2 {
        assert_eq!(ask(&server, "/page", ONE).text(), "[alone|cart one]");
        assert_eq!(ask(&server, "/page", OTHER).text(), "[alone|cart other]");
    }
    // What comes with a cookie is for this client, and not kept.
    let (app, server) = shop();
    let menu = inline("/menu?a=1&amp;b=2", "public,max-age=60", "menu");
    let said =
        |n: u32| AppSaid::head(&format!("{NO_CACHE}\nSet-Cookie: a={n}")).body(menu.as_bytes());
    app.plan("/combo", vec![said(1), said(2)]);
    assert_eq!(ask(&server, "/page", ONE).text(), "[menu|alone]");
    assert_eq!(ask(&server, "/page", OTHER).text(), "[menu|alone]");
    assert_eq!(app.count("/combo"), 2);
}

#[test]
fn fragments_are_fetched_separately_if_the_combined_request_fails() {
    for said in [
        AppSaid::head("Status: 500"),
        AppSaid::head(NO_CACHE).body(b"<esi:inline name='/cart' cache-control='private'>cut"),
        AppSaid::head(NO_CACHE).body(inline("/cart", "private", "cart").as_bytes()).cut(),
        AppSaid::head(NO_CACHE).body(&vec![b' '; 3_000_000]),
    ] {
        let (app, server) = shop();
        app.plan("/combo", vec![said]);
        assert_eq!(ask(&server, "/page", ONE).text(), "[alone|alone]");
        assert_eq!(ask(&server, "/page", "").text(), "[alone|alone]");
    }
}

#[test]
fn asking_for_several_drops_nothing_of_the_session() {
    let (app, server) = shop();
    say(&app, "/mine", PRIVATE, "mine");
    assert_eq!(ask(&server, "/mine", ONE).text(), "mine");
    say(&app, "/mine", PRIVATE, "mine, once more");
    answers(&app, &[inline("/cart", "private,max-age=60", "cart")]);
    assert_eq!(ask(&server, "/page", ONE).text(), "[alone|cart]");
    assert_eq!(app.count("/combo"), 1);
    assert_eq!(ask(&server, "/mine", ONE).text(), "mine", "no visitor sent that form");
}

#[test]
fn a_shared_fragment_is_found_by_its_tag_within_the_session() {
    let app = TestApp::start();
    let server = serve(&app.address(), "");
    let page = |at: &str| {
        format!("<esi:include src='/cart?{at}' cache-control='shared,private' cache-tag='C'/>")
    };
    let tagged = |tag: &str| format!("{PRIVATE}\nX-LiteSpeed-Tag: {tag}");
    for at in ["a", "b"] {
        say(&app, &format!("/{at}"), PAGE, &page(at));
        say(&app, &format!("/cart?{at}"), &tagged("C"), &format!("cart of {at}"));
    }
    assert_eq!(ask(&server, "/a", ONE).text(), "cart of a");
    assert_eq!(ask(&server, "/b", ONE).text(), "cart of a", "one cart for all pages");
    assert_eq!(ask(&server, "/b", OTHER).text(), "cart of b", "and none of another visitor");
    assert_eq!(ask(&server, "/a", OTHER).text(), "cart of b");
    assert_eq!((app.count("/cart?a"), app.count("/cart?b")), (1, 1));
    // By its purge it goes.
    say(&app, "/purge", "X-LiteSpeed-Purge: private,C", "");
    let _purged = ask(&server, "/purge", ONE);
    say(&app, "/cart?b", &tagged("D"), "cart without the tag");
    assert_eq!(ask(&server, "/b", ONE).text(), "cart without the tag");
    assert_eq!(ask(&server, "/a", ONE).text(), "cart of a", "what lacks the tag is not shared");
}
