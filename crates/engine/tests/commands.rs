//! Pages with SSI: how much of what they order is done before another request has its turn.

use bolide_http::Method;
use bolide_world::{FuzzWorld, Say, request};

const CONFIG: &str = "events {} http { server { listen 80; error_log logs/error.log;
    location / { fastcgi_pass 127.0.0.1:9000; ssi on; } } }";

/// What a client gets of a page, and in how many rounds its commands are done.
fn show(page: &str) -> (String, usize) {
    let mut world = FuzzWorld::of(CONFIG);
    let head = Say::head(200, &["Content-Type: text/html"]);
    world.origin.answers = vec![vec![head, Say::body(page), Say::End]];
    let reply = world.ask(request(Method::Get, "a.test", "/", &[]));
    (reply.text(), world.fragments.rounds)
}

#[test]
fn commands_that_copy_much_or_search_long_are_done_one_by_one() {
    let double = "<!--#set var='a' value='$a$a'-->".repeat(14);
    let large = format!("<!--#set var='a' value='0123456789abcdef'-->{double}");
    let echo = "<!--#if expr='$b = $a'-->yes<!--#endif-->";
    let copies = "<!--#set var='b' value='$a'-->".repeat(50);
    let (text, rounds) = show(&format!("{large}{copies}{echo}"));
    assert_eq!(text, "yes");
    assert!(rounds > 50, "{rounds}");
    let searches = "<!--#if expr='$a = /f0123\\$/'-->no<!--#endif-->".repeat(50);
    let (text, rounds) = show(&format!("{large}{searches}."));
    assert_eq!(text, ".");
    assert!(rounds > 50, "{rounds}");
}

#[test]
fn cheap_commands_are_done_together() {
    let (text, rounds) = show(&format!("{}.", "<!--#set var='a' value='b'-->".repeat(500)));
    assert_eq!(text, ".");
    assert!(rounds < 10, "{rounds}");
}
