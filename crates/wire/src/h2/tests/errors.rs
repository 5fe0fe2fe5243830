//! Stream errors and connection errors.

use super::super::code::{
    COMPRESSION_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, PROTOCOL_ERROR, STREAM_CLOSED,
};
use super::{
    Bench, END, GET, H2Settings, HEAD, PREFACE, block, data, frame, get, headers, number, post,
    rst, settings, window, with,
};

#[test]
fn the_preface_is_checked_from_its_first_wrong_byte() {
    let mut bench = Bench::with(H2Settings::default());
    bench.send(b"");
    assert_eq!(bench.out(), ["SETTINGS 4", "WINDOW_UPDATE 0 2147418112"]);
    bench.send(&PREFACE[..10]);
    assert_eq!((bench.held.len(), bench.error), (10, None));
    bench.send(&PREFACE[10..]);
    bench.send(&settings(&[]));
    assert_eq!(bench.out(), ["SETTINGS ack"]);

    let mut bench = Bench::with(H2Settings::default());
    bench.send(b"PRI * HTTP/2.1");
    bench.expect_goaway(0, PROTOCOL_ERROR);
}

#[test]
fn any_frame_may_come_first_as_in_nginx() {
    for first in [frame(6, 0, 0, &[0; 8]), frame(4, 1, 0, &[]), window(0, 1), get(1)] {
        let mut bench = Bench::with(H2Settings::default());
        bench.send(&[PREFACE, &first, &get(3)].concat());
        assert_eq!(bench.error, None);
        assert_eq!(bench.events().last().unwrap(), "request 3 GET / HTTP/2.0");
        bench.answer(3, 70_000);
        let sent = bench.out().iter().filter(|line| line.starts_with("DATA 3")).count();
        assert_eq!(sent, 4, "the protocol's own window holds");
        bench.send(&[settings(&[(4, 100_000)]), window(0, 100_000)].concat());
        assert_eq!(bench.out().last().unwrap(), "DATA 3 4465 end");
    }
}

/// Each script ends the connection with its code. The last stream is 1 if the script opens one.
fn check_connection_errors(scripts: &[(Vec<Vec<u8>>, u32)]) {
    for (i, (frames, code)) in scripts.iter().enumerate() {
        let mut bench = Bench::new();
        bench.send(&frames.concat());
        assert!(bench.error.is_some(), "script {i} is wrong");
        let opened = bench.log.iter().any(|line| line.starts_with("request 1"));
        bench.expect_goaway(u32::from(opened), *code);
        let resets = bench.events().iter().filter(|line| *line == "reset 1").count();
        assert_eq!(resets, usize::from(opened), "script {i} strands its stream");
    }
}

#[test]
fn frames_of_the_wrong_size_or_on_the_wrong_stream_end_the_connection() {
    check_connection_errors(&[
        (vec![data(1, 0, b"x")], PROTOCOL_ERROR),
        (vec![data(0, 0, b"x")], PROTOCOL_ERROR),
        (vec![data(2, 0, b"x")], PROTOCOL_ERROR),
        (vec![headers(0, END, &block(&GET))], PROTOCOL_ERROR),
        (vec![headers(2, END, &block(&GET))], PROTOCOL_ERROR),
        (vec![frame(1, END | HEAD | 8, 1, &[9, 0, 0])], PROTOCOL_ERROR),
        (vec![frame(1, END | HEAD | 0x20, 1, &[0, 0, 0])], FRAME_SIZE_ERROR),
        (vec![frame(2, 0, 0, &[0; 5])], PROTOCOL_ERROR),
        (vec![rst(0, 0)], PROTOCOL_ERROR),
        (vec![rst(1, 0)], PROTOCOL_ERROR),
        (vec![get(1), frame(3, 0, 1, &[0; 3])], FRAME_SIZE_ERROR),
        (vec![frame(4, 0, 1, &[])], PROTOCOL_ERROR),
        (vec![frame(4, 0, 0, &[0; 5])], FRAME_SIZE_ERROR),
        (vec![frame(4, 1, 0, &[0; 6])], FRAME_SIZE_ERROR),
        (vec![frame(5, HEAD, 1, &[0; 8])], PROTOCOL_ERROR),
        (vec![frame(6, 0, 0, &[0; 7])], FRAME_SIZE_ERROR),
        (vec![frame(6, 0, 1, &[0; 8])], PROTOCOL_ERROR),
        (vec![frame(7, 0, 1, &[0; 8])], PROTOCOL_ERROR),
        (vec![frame(7, 0, 0, &[0; 7])], FRAME_SIZE_ERROR),
        (vec![frame(8, 0, 0, &[0; 3])], FRAME_SIZE_ERROR),
        (vec![window(0, 0)], PROTOCOL_ERROR),
        (vec![window(1, 1)], PROTOCOL_ERROR),
        (vec![window(0, 0x7fff_ffff)], FLOW_CONTROL_ERROR),
        (vec![frame(9, HEAD, 1, &[])], PROTOCOL_ERROR),
        (vec![get(1), frame(9, HEAD, 1, &[])], PROTOCOL_ERROR),
        (vec![frame(0x10, 0, 1, b"\0\0\0\x01u=1")], PROTOCOL_ERROR),
        (vec![frame(0x10, 0, 0, b"\0\0\0")], FRAME_SIZE_ERROR),
        (vec![frame(0x10, 0, 0, b"\0\0\0\0u=1")], PROTOCOL_ERROR),
        (vec![frame(0xee, 0, 0, &[0; 16_385])], FRAME_SIZE_ERROR),
        (vec![post(1), data(1, 0, &[0; 16_385])], FRAME_SIZE_ERROR),
        (vec![post(1), frame(0, 8, 1, &[2, 0])], PROTOCOL_ERROR),
        (vec![post(1), frame(0, 8, 1, &[])], PROTOCOL_ERROR),
    ]);
}

#[test]
fn settings_outside_their_ranges_end_the_connection_and_unknown_ones_do_not() {
    check_connection_errors(&[
        (vec![settings(&[(2, 2)])], PROTOCOL_ERROR),
        (vec![settings(&[(4, 0x8000_0000)])], FLOW_CONTROL_ERROR),
        (vec![settings(&[(5, 16_383)])], PROTOCOL_ERROR),
        (vec![settings(&[(5, 16_777_216)])], PROTOCOL_ERROR),
        (vec![settings(&[(9, 2)])], PROTOCOL_ERROR),
        (vec![get(1), window(1, 0x7fff_0000), settings(&[(4, 0x7fff_ffff)])], FLOW_CONTROL_ERROR),
    ]);
    let mut bench = Bench::new();
    bench.send(&settings(&[(0xff, 7), (1, 0), (2, 0), (3, 1), (5, 20_000), (6, 1), (9, 1)]));
    bench.send(&frame(0xfe, 0xff, 5, b"unknown"));
    assert_eq!(bench.out(), ["SETTINGS ack"]);
}

#[test]
fn a_header_block_may_be_continued_but_not_interrupted() {
    let whole = with(&GET, &[("x-long", "value")]);
    let (first, rest) = whole.split_at(20);
    let start = frame(1, END, 1, first);
    check_connection_errors(&[
        (vec![start.clone(), frame(6, 0, 0, &[0; 8])], PROTOCOL_ERROR),
        (vec![start.clone(), frame(9, HEAD, 3, rest)], PROTOCOL_ERROR),
        (vec![start.clone(), data(1, 0, b"x")], PROTOCOL_ERROR),
        (vec![start.clone(), frame(0xee, 0, 0, b"x")], PROTOCOL_ERROR),
        (vec![headers(1, END, &[0x80])], COMPRESSION_ERROR),
        (vec![headers(1, END, &[0x82, 0x20])], COMPRESSION_ERROR),
    ]);
    let mut bench = Bench::new();
    let (second, third) = rest.split_at(3);
    bench.send(&[start, frame(9, 0, 1, second), frame(9, HEAD, 1, third)].concat());
    assert_eq!(bench.events(), ["request 1 GET / HTTP/2.0"]);
    assert_eq!(bench.fields(), ["Host: a", "x-long: value"]);
    assert_eq!(bench.head().wire_size as usize, whole.len());
}

#[test]
fn ids_must_grow_and_closed_streams_stay_closed() {
    let mut bench = Bench::new();
    bench.send(&[get(5), get(3)].concat());
    bench.expect_goaway(5, PROTOCOL_ERROR);
    // Half-closed (remote): a stream error.
    for late in [data(1, END, b"x"), get(1)] {
        let mut bench = Bench::new();
        bench.send(&[get(1), late].concat());
        assert_eq!(bench.out(), [format!("RST_STREAM 1 {STREAM_CLOSED}")]);
        assert_eq!(bench.events()[1..], ["reset 1"]);
    }
    // Ended in both directions: a connection error.
    for late in [data(1, END, b"x"), get(1)] {
        let mut bench = Bench::new();
        bench.send(&get(1));
        bench.answer(1, 0);
        bench.out();
        bench.send(&late);
        bench.expect_goaway(1, STREAM_CLOSED);
    }
    // Reset by the peer: the first late frame gets an error, and the tables stay in step.
    let mut bench = Bench::new();
    let inserting = [&[0x40, 1, b'x', 1, b'y'][..]].concat();
    bench.send(&[post(1), rst(1, 8), headers(1, END, &inserting), data(1, 0, b"x")].concat());
    assert_eq!(bench.out(), [format!("RST_STREAM 1 {STREAM_CLOSED}")]);
    bench.send(&headers(3, END, &[&block(&GET)[..], &[0xbe]].concat()));
    assert_eq!(bench.fields(), ["Host: a", "x: y"]);
    // Harmless on closed streams.
    bench.send(&[rst(1, 8), window(1, 5), frame(2, 0, 1, &[0, 0, 0, 3, 1])].concat());
    assert!(bench.out().is_empty());
}

#[test]
fn after_our_reset_what_was_on_its_way_is_ignored() {
    let mut bench = Bench::new();
    bench.send(&post(1));
    let stream = bench.streams[&1];
    bench.conn.reset(stream, 2);
    bench.conn.reset(stream, 2);
    assert!(bench.conn.has_output());
    assert_eq!(bench.out(), ["RST_STREAM 1 2"]);
    assert_eq!(bench.events(), ["request 1 POST / HTTP/2.0", "reset 1"]);
    assert!(bench.conn.respond(stream, &super::plain(200, bolide_http::BodyLen::None)).is_err());
    bench.send(&[data(1, 0, b"x"), headers(1, END, &block(&[("a", "b")])), window(1, 1)].concat());
    assert!(bench.out().is_empty() && bench.events().is_empty() && bench.error.is_none());
}

#[test]
fn a_stream_is_reset_once_whatever_comes_for_it() {
    let closed = format!("RST_STREAM 1 {STREAM_CLOSED}");
    let wrong = || [frame(2, 0, 1, &[0; 4]), frame(2, 0, 1, &[0, 0, 0, 1, 0])].concat();
    // Reset by us for a stream error.
    let mut bench = Bench::new();
    bench.send(&[get(1), data(1, END, b"x"), wrong(), get(1), data(1, 0, b"x")].concat());
    assert_eq!(bench.out(), [closed.as_str()]);
    // Reset by the peer, and closed for us from its first late frame on.
    let mut bench = Bench::new();
    let late = [data(1, 0, b"x"), data(1, 0, b"y"), wrong(), data(1, END, b"z")];
    bench.send(&[post(1), rst(1, 8), late.concat()].concat());
    assert_eq!(bench.out(), [closed]);
    // Ended by both sides: it is the connection's error.
    let mut bench = Bench::new();
    bench.send(&get(1));
    bench.answer(1, 0);
    bench.out();
    bench.send(&wrong());
    bench.expect_goaway(1, FRAME_SIZE_ERROR);
    // Reset behind its response, which an error follows, before the reset leaves and after.
    for leaves in [false, true] {
        for late in [wrong(), window(1, 0), window(1, 0x7fff_ffff)] {
            let mut bench = Bench::new();
            bench.send(&post(1));
            bench.answer(1, 0);
            let mut out = bench.out();
            out.extend(leaves.then(|| bench.out()).into_iter().flatten());
            bench.send(&late);
            bench.conn.reset(bench.streams[&1], 2);
            out.extend(bench.out_twice());
            assert_eq!(out[1..], ["RST_STREAM 1 0"]);
        }
    }
}

#[test]
fn a_stream_that_its_peer_closes_is_not_reset_behind_its_response() {
    for (body, end) in [(post(1), data(1, END, b"")), (post(1), rst(1, 8))] {
        let mut bench = Bench::new();
        bench.send(&body);
        bench.answer(1, 0);
        assert_eq!(bench.out().len(), 1);
        bench.send(&end);
        assert_eq!((bench.out(), bench.error), (vec![], None));
    }
}

#[test]
fn an_error_of_a_priority_frame_on_an_idle_stream_ends_the_connection() {
    check_connection_errors(&[
        (vec![frame(2, 0, 1, &[0, 0, 0, 1, 0])], PROTOCOL_ERROR),
        (vec![frame(2, 0, 2, &[0, 0, 0, 1])], FRAME_SIZE_ERROR),
        (vec![get(1), frame(2, 0, 3, &[0, 0, 0, 1])], FRAME_SIZE_ERROR),
    ]);
}

#[test]
fn self_dependency_and_short_priority_frames_cost_the_stream() {
    let mut bench = Bench::new();
    bench.send(&[get(1), frame(2, 0, 1, &[0, 0, 0, 1, 0])].concat());
    bench.send(&[get(3), frame(2, 0, 3, &[0, 0, 0, 1])].concat());
    let priority = [&[0x80, 0, 0, 5, 9][..], &block(&GET)].concat();
    bench.send(&frame(1, END | HEAD | 0x20, 5, &priority));
    bench.send(&frame(1, END | HEAD | 0x28, 7, &[&[2][..], &priority, &[0, 0]].concat()));
    bench.send(&frame(2, 0, 7, &[0, 0, 0, 0, 0]));
    assert_eq!(
        bench.out(),
        [
            format!("RST_STREAM 1 {PROTOCOL_ERROR}"),
            format!("RST_STREAM 3 {FRAME_SIZE_ERROR}"),
            format!("RST_STREAM 5 {PROTOCOL_ERROR}"),
        ]
    );
    let told = bench.events();
    assert_eq!(told[3..], ["reset 3", "request 7 GET / HTTP/2.0"]);
}

#[test]
fn pings_are_answered_also_after_the_clients_goaway() {
    let mut bench = Bench::new();
    bench.send(&[get(1), frame(6, 0, 0, b"12345678"), frame(6, 1, 0, b"12345678")].concat());
    assert_eq!(bench.out(), ["PING 1 31323334"]);
    bench.send(&frame(7, 0, 0, &[0; 12]));
    assert!(!bench.conn.is_closing());
    bench.answer(1, 3);
    assert_eq!(bench.out().len(), 2);
    bench.send(&frame(6, 0, 0, b"87654321"));
    assert_eq!(bench.out(), ["PING 1 38373635"]);
    // The client closes the connection when it is done.
    assert!(!bench.conn.is_closing());
}

#[test]
fn shutdown_serves_what_is_open_and_ignores_what_comes_later() {
    let mut bench = Bench::new();
    bench.send(&post(1));
    bench.conn.shutdown();
    bench.conn.shutdown();
    assert_eq!(bench.out(), ["GOAWAY 1 0"]);
    bench.send(&[get(3), data(1, END, b"x"), data(3, END, b"x")].concat());
    bench.answer(1, 2);
    assert!(!bench.conn.is_closing());
    assert_eq!(bench.out()[1], "DATA 1 2 end");
    assert!(bench.conn.is_closing() && bench.error.is_none());
    assert_eq!(bench.events(), ["request 1 POST / HTTP/2.0", "body 1 1", "end 1", "sent 1 2"]);
}

#[test]
fn the_last_request_of_a_connection_announces_its_end() {
    let mut bench = Bench::open(H2Settings { keepalive_requests: 2, ..H2Settings::default() });
    bench.send(&[get(1), get(3), get(5)].concat());
    assert_eq!((bench.conn.requests(), bench.out()), (2, vec!["GOAWAY 3 0".to_owned()]));
    assert_eq!(bench.events().len(), 2);
}

#[test]
fn streams_beyond_the_limit_are_refused_and_the_tables_stay_in_step() {
    let mut bench = Bench::open(H2Settings { max_concurrent_streams: 2, ..H2Settings::default() });
    let inserting = [&block(&GET)[..], &[0x40, 1, b'x', 1, b'y']].concat();
    bench.send(&[get(1), get(3), headers(5, END, &inserting)].concat());
    assert_eq!(bench.out(), ["RST_STREAM 5 7"]);
    bench.answer(1, 1);
    bench.out();
    bench.send(&headers(7, END, &[&block(&GET)[..], &[0xbe]].concat()));
    assert_eq!(bench.fields(), ["Host: a", "x: y"]);
    assert_eq!(bench.conn.streams_open(), 2);
}

#[test]
fn trailers_must_be_well_formed_and_end_the_stream() {
    let trailers = |flags, fields: &[(&str, &str)]| {
        let mut bench = Bench::new();
        bench.send(&[post(1), data(1, 0, b"x"), headers(1, flags, &block(fields))].concat());
        bench.out();
        let told = bench.events().pop().unwrap_or_default();
        bench.answer(1, 0);
        let is_reset = bench.out_twice().last() == Some(&format!("RST_STREAM 1 {PROTOCOL_ERROR}"));
        assert_eq!(is_reset, told != "end 1", "{told}");
        told
    };
    assert_eq!(trailers(END, &[("x-sum", "1")]), "end 1");
    assert_eq!(trailers(0, &[("x-sum", "1")]), "body refused 1");
    assert_eq!(trailers(END, &[(":path", "/")]), "body refused 1");
    assert_eq!(trailers(END, &[("X-Sum", "1")]), "body refused 1");
    assert_eq!(trailers(END, &[("connection", "x")]), "body refused 1");
}

#[test]
fn a_stream_error_on_windows_costs_the_stream() {
    let mut bench = Bench::new();
    bench.send(&[get(1), window(1, 0)].concat());
    bench.send(&[get(3), window(3, 0x7fff_ffff)].concat());
    bench.send(&number(8, 3, 1));
    assert_eq!(
        bench.out(),
        [format!("RST_STREAM 1 {PROTOCOL_ERROR}"), format!("RST_STREAM 3 {FLOW_CONTROL_ERROR}"),]
    );
    assert!(bench.conn.is_idle() && bench.error.is_none());
}
