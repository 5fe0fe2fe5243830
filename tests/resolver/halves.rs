//! What an A and an AAAA answer come to.

use super::{
    A, A1, A2, AAAA, B1, B2, NameReply, TestNames, address, alias, serve, tried, wait_until,
};

/// How two answers end: with these addresses, in any order of the answers.
struct Row(&'static str, NameReply, NameReply, &'static [&'static str]);

#[test]
fn addresses_of_both_answers_are_tried_in_turn() {
    let names = TestNames::start();
    let server = serve(&names, "");
    let of = |records: &[Vec<u8>]| NameReply::of(records);
    let cname = || alias("x.test", 300);
    names.say("x.test", NameReply::ips(&[A2]), NameReply::ips(&[B2]));
    let rows = [
        Row("empty", of(&[]), of(&[]), &[]),
        Row("six", of(&[]), NameReply::ips(&[B1]), &[B1]),
        Row("aliased-six", of(&[]), of(&[cname(), address(B1, 9), address(B2, 9)]), &[B1, B2]),
        Row("empty-failed", of(&[]), NameReply::code(2), &[]),
        Row("four", NameReply::ips(&[A1]), of(&[]), &[A1]),
        Row("four-alias", NameReply::ips(&[A1]), of(&[cname()]), &[A1]),
        Row(
            "all",
            NameReply::ips(&[A2, A1]),
            of(&[cname(), address(B2, 9), address(B1, 9)]),
            &[A2, A1, B2, B1],
        ),
        Row("four-failed", NameReply::ips(&[A1]), NameReply::code(2), &[]),
        Row("four-unknown", NameReply::ips(&[A1]), NameReply::code(3), &[]),
        Row("aliased", of(&[cname(), address(A1, 9), address(A2, 9)]), of(&[cname()]), &[A1, A2]),
        Row("alias-six", of(&[cname()]), NameReply::ips(&[B1]), &[B1]),
        Row("failed", NameReply::code(2), NameReply::ips(&[B1]), &[]),
        Row("failed-alias", NameReply::code(2), of(&[cname()]), &[]),
    ];
    for Row(name, a, aaaa, wanted) in rows {
        names.say(name, a, aaaa);
        let status = if wanted.is_empty() { 502 } else { 503 };
        let wanted: Vec<String> = wanted.iter().map(|ip| (*ip).to_owned()).collect();
        assert_eq!(tried(&server, name), (status, wanted), "{name}");
        assert_eq!((names.count(name, A), names.count(name, AAAA)), (1, 1), "{name}");
    }
}

#[test]
fn without_addresses_the_last_response_decides() {
    let names = TestNames::start();
    let server = serve(&names, "");
    names.say("x.test", NameReply::ips(&[A1]), NameReply::ips(&[B1]));
    let (none, cname) = (|| NameReply::of(&[]), || NameReply::of(&[alias("X.test", 300)]));
    let found = (503, vec![A1.to_owned(), B1.to_owned()]);
    let lost = (502, vec![]);
    for (name, a, aaaa, last, wanted) in [
        ("alias-none", cname(), none(), AAAA, &lost),
        ("none-alias", none(), cname(), AAAA, &found),
        ("alias-none-late", cname(), none(), A, &found),
        ("none-alias-late", none(), cname(), A, &lost),
        ("two", cname(), NameReply::of(&[alias("y.test", 9)]), A, &found),
        ("two-late", NameReply::of(&[alias("y.test", 9)]), cname(), AAAA, &found),
    ] {
        names.say(name, a, aaaa);
        names.hold(name, last);
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| tried(&server, name));
            let first = if last == A { AAAA } else { A };
            wait_until("both questions", || {
                names.count(name, A) > 0
                    && names.count(name, first) > 0
                    && names.count(name, last) > 0
            });
            // The first answer is on its way, over the same socket, before the last one leaves.
            names.release(name, last);
            let (status, mut got) = asking.join().expect("a reply");
            got.sort();
            assert_eq!((status, got), *wanted, "{name}");
        });
    }
}

#[test]
fn aliases_lead_from_name_to_name() {
    let names = TestNames::start();
    let server = serve(&names, "");
    names.plan("end.test", A, &[NameReply::ips(&[A1])]);
    for step in 0..3 {
        let next = if step == 2 { "end.test".to_owned() } else { format!("n{}.test", step + 1) };
        let reply = NameReply::of(&[alias(&next, 300)]);
        names.say(&format!("n{step}.test"), reply.clone(), reply);
    }
    assert_eq!(tried(&server, "n0.test"), (503, vec![A1.to_owned()]));
    assert_eq!(tried(&server, "n1.test"), (503, vec![A1.to_owned()]));
    assert_eq!(names.count("n1.test", A), 1, "each step is kept");
    let reply = NameReply::of(&[alias("circle.test", 300)]);
    names.say("circle.test", reply.clone(), reply);
    assert_eq!(tried(&server, "circle.test"), (502, vec![]));
    let reply = NameReply::of(&[alias("", 300)]);
    names.say("root.test", reply.clone(), reply);
    assert_eq!(tried(&server, "root.test"), (502, vec![]));
}
