//! Response heads and bodies.

use bolide_http::{BodyLen, Name};

use super::super::code::INTERNAL_ERROR;
use super::{Bench, END, GET, Pull, get, headers, plain, post, rst, served, settings, with};

#[test]
fn a_response_is_a_head_and_its_data() {
    let mut bench = Bench::new();
    bench.send(&get(1));
    bench.bodies.0.insert(1, vec![(5, Pull::End)]);
    bench.respond(1, &served(200, BodyLen::Exact(5)));
    assert!(bench.conn.has_output());
    assert_eq!(
        bench.out(),
        [
            "HEADERS 1 :status=200 server=bolide content-type=text/html content-length=5",
            "DATA 1 5 end"
        ]
    );
    assert_eq!(bench.events()[1..], ["sent 1 5"]);
    assert!(bench.conn.is_idle() && !bench.conn.has_output());
}

#[test]
fn heads_without_a_body_end_the_stream() {
    for (method, status, body, expected) in [
        ("HEAD", 200, BodyLen::Exact(9), ":status=200 content-length=9"),
        ("HEAD", 200, BodyLen::Unknown, ":status=200"),
        ("GET", 204, BodyLen::None, ":status=204"),
        ("GET", 304, BodyLen::Exact(9), ":status=304"),
        ("GET", 200, BodyLen::Exact(0), ":status=200 content-length=0"),
        ("GET", 302, BodyLen::None, ":status=302"),
    ] {
        let mut bench = Bench::new();
        let fields = [&[(":method", method)][..], &GET[1..]].concat();
        bench.send(&headers(1, END, &super::block(&fields)));
        bench.respond(1, &plain(status, body));
        assert_eq!(bench.out(), [format!("HEADERS 1 {expected} end")]);
        assert_eq!(bench.events()[1..], ["sent 1 0"]);
    }
}

#[test]
fn connection_fields_stay_and_informational_heads_pass() {
    let mut bench = Bench::new();
    bench.send(&get(1));
    let mut head = plain(103, BodyLen::None);
    head.fields.push(Name::Link, b"</x>");
    bench.conn.announce(bench.streams[&1], &head);
    let mut head = plain(200, BodyLen::None);
    for name in [Name::Connection, Name::KeepAlive, Name::Upgrade, Name::TransferEncoding] {
        head.fields.push(name, b"x");
    }
    head.fields.push(Name::ProxyConnection, b"x");
    head.fields.push_text(b"X-Custom", b"Y");
    bench.respond(1, &head);
    assert_eq!(
        bench.out(),
        ["HEADERS 1 :status=103 link=</x>", "HEADERS 1 :status=200 x-custom=Y end"]
    );
    assert!(bench.conn.respond(bench.streams[&1], &head).is_err());
}

#[test]
fn repeated_heads_shrink_to_indices_and_follow_every_change() {
    let mut bench = Bench::new();
    let mut id = 1;
    for (table, length) in [(4096, 5), (4096, 5), (4096, 5), (4096, 6), (4096, 5), (0, 5), (0, 5)] {
        bench.send(&settings(&[(1, table)]));
        bench.send(&get(id));
        bench.bodies.0.insert(u64::from(id), vec![(length, Pull::End)]);
        bench.respond(id, &served(200, BodyLen::Exact(length as u64)));
        let fields = format!("server=bolide content-type=text/html content-length={length}");
        assert_eq!(
            bench.out(),
            [
                "SETTINGS ack".to_owned(),
                format!("HEADERS {id} :status=200 {fields}"),
                format!("DATA {id} {length} end")
            ]
        );
        id += 2;
    }
    // The peer's decoder stays in step, and the head is small: two indexes, status, length.
    bench.send(&settings(&[(1, 4096)]));
    for _ in 0..3 {
        bench.send(&get(id));
        bench.respond(id, &served(200, BodyLen::Exact(0)));
        bench.out();
        id += 2;
    }
    bench.send(&get(id));
    bench.respond(id, &served(200, BodyLen::Exact(0)));
    assert_eq!(bench.conn.output.size().0, 9 + 3 + 4);
}

#[test]
fn a_long_head_is_continued() {
    let mut bench = Bench::new();
    bench.send(&get(1));
    let mut head = plain(200, BodyLen::None);
    let long = "\u{1}".repeat(20_000);
    head.fields.push_text(b"x-long", long.as_bytes());
    bench.respond(1, &head);
    let mut out = bolide_base::SendChain::new(bolide_base::chain::CopyPolicy::Contiguous);
    bench.conn.transmit(bench.now, 100, &mut out, &mut bench.raw, &mut bench.bodies);
    let bytes = out.contiguous().unwrap();
    assert_eq!(bytes[..9], [0, 0x40, 0, 1, END, 0, 0, 0, 1]);
    let rest = &bytes[9 + 16_384..];
    assert_eq!(rest[3..9], [9, super::HEAD, 0, 0, 0, 1]);
    // Status, a literal whose name is five bytes in Huffman code, and a plain value.
    assert_eq!(rest.len() - 9, 1 + (1 + 1 + 5) + (1 + 3) + 20_000 - 16_384);
}

#[test]
fn a_body_of_unknown_length_ends_when_it_says_so() {
    let mut bench = Bench::new();
    bench.send(&get(1));
    bench.bodies.0.insert(1, vec![(5, Pull::More), (2, Pull::Pending), (0, Pull::End)]);
    bench.respond(1, &plain(200, BodyLen::Unknown));
    assert_eq!(bench.out(), ["HEADERS 1 :status=200", "DATA 1 7"]);
    assert!(!bench.conn.has_output());
    assert!(bench.out().is_empty());
    bench.conn.body_ready(bench.streams[&1]);
    assert!(bench.conn.has_output());
    assert_eq!(bench.out(), ["DATA 1 0 end"]);
    assert_eq!(bench.events()[1..], ["sent 1 7"]);
}

#[test]
fn a_body_that_breaks_or_falls_short_resets_its_stream() {
    for (steps, length) in [
        (vec![(3, Pull::End)], BodyLen::Exact(5)),
        (vec![(3, Pull::Pending), (0, Pull::Broken)], BodyLen::Exact(5)),
        (vec![(0, Pull::Broken)], BodyLen::Unknown),
    ] {
        let mut bench = Bench::new();
        bench.send(&get(1));
        bench.bodies.0.insert(1, steps);
        bench.respond(1, &plain(200, length));
        let mut out = bench.out();
        bench.conn.body_ready(bench.streams[&1]);
        out.extend(bench.out());
        assert_eq!(out.last(), Some(&format!("RST_STREAM 1 {INTERNAL_ERROR}")));
        let data: Vec<_> = out.iter().filter(|line| line.starts_with("DATA")).collect();
        assert_eq!(data, if length == BodyLen::Unknown { vec![] } else { vec!["DATA 1 3"] });
        assert_eq!(bench.events()[1..], ["reset 1"]);
        assert!(bench.conn.is_idle());
    }
}

#[test]
fn data_is_cut_by_chunk_size_room_and_turns() {
    let mut bench = Bench::new();
    bench.chunk_size = 1000;
    bench.send(&get(1));
    bench.answer(1, 2500);
    assert_eq!(bench.out()[1..], ["DATA 1 1000", "DATA 1 1000", "DATA 1 500 end"]);
    // Not incremental: in order. Room ends in the middle.
    let fields = with(&GET, &[("priority", "u=3")]);
    bench.send(&[headers(3, END, &fields), headers(5, END, &fields)].concat());
    bench.answer(5, 1500);
    bench.answer(3, 1500);
    bench.room = 2000;
    // Two heads of 16 bytes and three frame headers take part of it.
    assert_eq!(bench.out()[2..], ["DATA 3 1000", "DATA 3 500 end", "DATA 5 441"]);
    bench.room = 1 << 20;
    bench.out();
    // Incremental, or without a signal: in turns.
    let fields = with(&GET, &[("priority", "i")]);
    bench.send(&[headers(7, END, &fields), headers(9, END, &fields)].concat());
    bench.send(&[get(11), get(13)].concat());
    for (one, other) in [(7, 9), (11, 13)] {
        bench.answer(one, 2000);
        bench.answer(other, 2000);
        let turns = [(one, ""), (other, ""), (one, " end"), (other, " end")];
        let turns = turns.map(|(stream, end)| format!("DATA {stream} 1000{end}"));
        assert_eq!(bench.out()[2..], turns);
    }
}

#[test]
fn each_bound_stream_gets_one_end() {
    // The peer reset it before `bind`.
    let mut bench = Bench::new();
    bench.send(&[get(1), rst(1, 8)].concat());
    assert!(bench.conn.has_output());
    bench.out();
    assert_eq!(bench.events(), ["request 1 GET / HTTP/2.0", "reset 1"]);
    // The peer reset it after its end was queued.
    bench.send(&get(3));
    bench.respond(3, &plain(204, BodyLen::None));
    bench.send(&rst(3, 8));
    bench.out();
    assert_eq!(bench.events()[1..], ["reset 3"]);
    // The connection ended.
    bench.send(&[post(5), post(7)].concat());
    bench.respond(7, &plain(204, BodyLen::None));
    bench.send(&super::window(0, 0));
    bench.expect_goaway(7, 1);
    assert_eq!(bench.events()[2..], ["reset 5", "reset 7"]);
}

#[test]
fn an_idle_connection_is_small() {
    assert!(size_of::<super::H2Conn>() <= 720, "{}", size_of::<super::H2Conn>());
    let mut bench = Bench::new();
    for id in [1, 3, 5, 7] {
        bench.send(&get(id));
        bench.answer(id, 10);
        bench.out();
    }
    bench.conn.shrink();
    assert_eq!((bench.conn.output.size().1, bench.conn.deferred.capacity()), (0, 0));
    bench.send(&get(9));
    bench.answer(9, 10);
    assert_eq!(bench.out().len(), 2);
}

#[test]
fn fields_that_variables_and_origins_made_invalid_are_sent_valid() {
    let mut bench = Bench::new();
    bench.send(&get(1));
    let mut head = plain(302, BodyLen::None);
    head.fields.push(Name::Location, b"https://b/x\r\nEvil: 1\0");
    head.fields.push_text(b"X-Uri", b" \t/x ");
    head.fields.push_text("X-Ä".as_bytes(), b"1");
    head.fields.push_text(b"X Y", b"1");
    bench.respond(1, &head);
    assert_eq!(
        bench.out(),
        ["HEADERS 1 :status=302 location=https://b/x  Evil: 1 x-uri=/x end"],
        "RFC 9113 8.2.1"
    );
}
