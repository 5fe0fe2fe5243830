//! Name servers that are slow, silent, wrong or gone; who waits for them.

use std::time::Instant;

use super::{
    A, A1, A2, AAAA, NameReply, TestNames, address, has_logged, serve_with, tried, wait_until,
};
use bolide_testkit::names::record;

fn serve(names: &TestNames, words: &str) -> bolide_testkit::TestServer {
    let resolver = format!("resolver {} {words}; resolver_timeout 30s;", names.address());
    serve_with(&resolver, "location /short/ { resolver_timeout 200ms; proxy_pass http://$arg_h; }")
}

#[test]
fn concurrent_lookups_of_a_name_share_one_query() {
    let names = TestNames::start();
    let server = serve(&names, "");
    names.say("a.test", NameReply::ips(&[A1]), NameReply::ips(&[]));
    names.hold("a.test", A);
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..5).map(|_| scope.spawn(|| tried(&server, "a.test"))).collect();
        wait_until("the question", || names.count("a.test", A) == 1);
        // One more, which leaves again: its line is logged, and the others go on.
        let mut client = server.connect();
        client.send("GET /all?h=a.test HTTP/1.1\r\nHost: x\r\n\r\n");
        drop(client);
        wait_until("a client that left", || server.home().read("logs/tried.log").contains(" 499 "));
        names.release("a.test", A);
        for asking in asking {
            assert_eq!(asking.join().expect("a reply"), (503, vec![A1.to_owned()]));
        }
    });
    assert_eq!((names.count("a.test", A), names.count("a.test", AAAA)), (1, 1));
}

#[test]
fn a_lookup_that_times_out_gives_502() {
    let names = TestNames::start();
    let server = serve(&names, "");
    names.say("a.test", NameReply::silence(), NameReply::silence());
    assert_eq!(server.get("/short/?h=a.test").status, 502);
    has_logged(&server, "a.test could not be resolved (110: Operation timed out)");
}

#[test]
fn truncated_responses_are_requested_over_tcp() {
    let names = TestNames::start();
    let server = serve(&names, "ipv6=off");
    let cut = NameReply { flags: 0x0200, ..NameReply::default() };
    let many: Vec<Vec<u8>> = (0..60).map(|_| address(A1, 300)).collect();
    names.plan("a.test", A, &[cut.clone(), NameReply::of(&many)]);
    names.plan("b.test", A, &[cut, NameReply::ips(&[A2])]);
    let (status, found) = tried(&server, "a.test");
    assert_eq!((status, found.len()), (503, 60));
    assert_eq!(tried(&server, "b.test"), (503, vec![A2.to_owned()]));
    for name in ["a.test", "b.test"] {
        let asked = names.asked(name);
        assert_eq!(asked.iter().map(|asked| asked.is_stream).collect::<Vec<_>>(), [false, true]);
        assert_eq!(asked[0].id, asked[1].id, "the same question");
    }
}

#[test]
fn only_enabled_address_families_are_queried() {
    let names = TestNames::start();
    names.say("a.test", NameReply::ips(&[A1]), NameReply::ips(&["::1"]));
    for (words, asked) in [("ipv4=off", [0, 1]), ("ipv6=off", [1, 1]), ("status_zone=z", [2, 2])] {
        let server = serve(&names, words);
        assert_ne!(tried(&server, "a.test").1, [""; 0]);
        assert_eq!([names.count("a.test", A), names.count("a.test", AAAA)], asked, "{words}");
    }
}

#[test]
fn wrong_answers_are_discarded_and_the_query_is_repeated() {
    let names = TestNames::start();
    let server = serve(&names, "ipv6=off");
    let good = NameReply::ips(&[A1]);
    for (name, wrong, line) in [
        ("id", NameReply { id_shift: 1, ..good.clone() }, "wrong ident "),
        ("format", NameReply::code(1), "DNS error (1: Format error), query id:"),
        ("code", NameReply::code(7), "DNS error (7: Unknown error), query id:"),
        ("query", NameReply { flags: 0x8000, ..good.clone() }, "invalid UDP DNS response "),
        ("long", NameReply::of(&[record(A, 9, &[1; 5])]), "invalid A record in DNS response"),
        ("six", NameReply::ips(&["::1"]), "unexpected AAAA record in DNS response"),
    ] {
        names.plan(name, A, &[wrong, good.clone()]);
        // All at once, as each waits for five seconds.
        let mut client = server.connect();
        client.send(format!("GET /all?h={name} HTTP/1.1\r\nHost: x\r\n\r\n"));
        has_logged(&server, line);
        drop(client);
    }
    names.plan("late", A, &[NameReply { id_shift: 1, ..good.clone() }, good]);
    let began = Instant::now();
    assert_eq!(tried(&server, "late"), (503, vec![A1.to_owned()]));
    assert!(began.elapsed().as_millis() > 4500, "it is asked again after five seconds");
    assert_eq!(names.count("late", A), 2);
}

#[test]
fn a_server_that_is_not_there_is_passed_over() {
    let names = TestNames::start();
    let resolver =
        format!("resolver 127.0.0.1:@P5@ {} ipv6=off; resolver_timeout 30s;", names.address());
    let server = serve_with(&resolver, "");
    for name in ["a.test", "b.test", "c.test"] {
        names.plan(name, A, &[NameReply::ips(&[A1])]);
        assert_eq!(tried(&server, name), (503, vec![A1.to_owned()]));
        assert_eq!(names.count(name, A), 1);
    }
    has_logged(&server, "recv() failed (111: Connection refused) while resolving, resolver: ");
}

#[test]
fn answers_are_cached_for_their_ttl() {
    let names = TestNames::start();
    names.plan("ttl.test", A, &[NameReply::of(&[address(A1, 1)]), NameReply::ips(&[A2])]);
    names.plan("valid.test", A, &[NameReply::ips(&[A1]), NameReply::ips(&[A2])]);
    let server = serve(&names, "");
    assert_eq!(tried(&server, "ttl.test").1, [A1]);
    wait_until("the next address", || tried(&server, "ttl.test").1 == [A2]);
    let server = serve(&names, "valid=1s");
    assert_eq!(tried(&server, "valid.test").1, [A1]);
    wait_until("the next address", || tried(&server, "valid.test").1 == [A2]);
}
