//! Receiving: heads, bodies, trailers, blocked sections, priorities.

use bolide_base::{Instant, Now};
use bolide_http::{Method, Name, RequestBody};
use proptest::prelude::*;

use super::super::frame::{code, kind};
use super::{
    CONTROL, GET, H3Conn, POST, Quic, Source, World, control, data, frame_of, frames, headers,
    join, section, settings, told, varints,
};
use crate::h3::H3Settings;
use crate::h3::fuzz;
use crate::patience::PREMATURE_FOR;
use crate::{StreamId, WireEvent};
use bolide_http::BodyLen;
use bytes::Bytes;

#[test]
fn the_control_stream_begins_with_our_settings() {
    let world = World::new();
    let bytes = world.written(CONTROL);
    assert_eq!(bytes[0], 0);
    assert_eq!(frames(&bytes[1..]), [(4, varints(&[1, 4096, 7, 2, 6, 4000]))]);
}

#[test]
fn a_get_in_one_piece_becomes_a_request_without_body() {
    let mut world = World::new();
    // `:method GET`, `:scheme https`, `:path /` by the static table, `:authority` by its name.
    let bytes = b"\x01\x0e\0\0\xd1\xd7\xc1\x50\x07example";
    world.receive(0, bytes, true).unwrap();
    let events = world.take_events();
    let [WireEvent::Request { head, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((head.method, head.body), (Method::Get, RequestBody::None));
    assert_eq!((&head.line[..], head.wire_size), (&b"GET / HTTP/3.0"[..], 14));
    assert_eq!(head.fields.get(Name::Host), Some(&b"example"[..]));
    assert_eq!((world.conn.requests(), world.conn.streams_open()), (1, 1));
}

#[test]
fn a_repeated_head_is_the_same_and_a_changed_one_is_not() {
    let mut world = World::new();
    let bytes = headers(&[GET[0], GET[1], GET[2], GET[3], ("cookie", "a"), ("x-a", "b")]);
    for stream in 0..3 {
        world.receive(stream * 4, &bytes, true).unwrap();
    }
    world.receive(12, &headers(&POST), true).unwrap();
    world.receive(16, &bytes, false).unwrap();
    let told = told(&world.take_events());
    assert_eq!(told[0], told[1]);
    assert_eq!(told[0], told[2]);
    assert!(told[3].starts_with("request POST /p"));
    // The same bytes on a stream that goes on: there may be a body.
    assert_eq!(told[4], told[0].replace("None", "Unknown"));
}

#[test]
fn early_data_marks_the_head_even_from_the_cache() {
    let mut world = World::new();
    for (stream, early) in [(0, false), (4, true), (8, false)] {
        let World { settings, conn, heads, events, .. } = &mut world;
        let bytes = Bytes::from(headers(&GET));
        conn.receive(settings, stream, bytes, true, early, heads, events).unwrap();
        let Some(WireEvent::Request { head, .. }) = events.pop() else { panic!() };
        assert_eq!(head.early, early);
    }
}

#[test]
fn a_body_that_came_before_bind_is_told_by_the_next_transmit() {
    let mut world = World::new();
    let bytes = join(&[&headers(&POST), &data(b"abc"), &data(b"def")]);
    let (stream, head) = world.request(0, 7, &bytes, true);
    assert_eq!(head.body, RequestBody::Unknown);
    assert!(world.events.is_empty() && world.conn.has_output());
    world.transmit();
    assert_eq!(told(&world.take_events()), ["body 7 abcdef", "end 7"]);
    world.transmit();
    assert!(world.events.is_empty());
    assert_eq!(world.conn.wanted(0), 65_530);
    world.conn.body_consumed(stream, 6);
}

#[test]
fn a_body_of_known_length_must_have_it() {
    let head = |length: &'static str| {
        headers(&[POST[0], POST[1], POST[2], POST[3], ("content-length", length)])
    };
    let mut world = World::new();
    world.request(0, 1, &head("3"), false);
    world.receive(0, &data(b"abc"), true).unwrap();
    assert_eq!(told(&world.take_events()), ["body 1 abc", "end 1"]);
    for (stream, body, fin) in [(4, &b"ab"[..], true), (8, b"abcd", false)] {
        world.request(stream, stream, &head("3"), false);
        world.receive(stream, &data(body), fin).unwrap();
        assert_eq!(told(&world.take_events()).last(), Some(&format!("body refused {stream}")));
    }
    world.receive(8, &data(b"more"), false).unwrap();
    assert!(world.take_events().is_empty(), "what still comes is dropped");
    assert_eq!(world.conn.streams_open(), 3);
}

#[test]
fn a_wrong_length_before_bind_is_told_after_it() {
    let head = headers(&[POST[0], POST[1], POST[2], POST[3], ("content-length", "4")]);
    let mut world = World::new();
    world.request(0, 7, &join(&[&head, &data(b"abc")]), true);
    world.transmit();
    assert_eq!(told(&world.take_events()), ["body 7 abc", "body refused 7"]);
}

#[test]
fn the_response_to_a_malformed_request_is_whole_and_ends_its_stream() {
    let mut world = World::new();
    let head = headers(&[POST[0], POST[1], POST[2], POST[3], ("content-length", "1")]);
    let (stream, _) = world.request(0, 1, &head, false);
    world.receive(0, &data(b"abc"), false).unwrap();
    world.conn.respond(stream, &super::response(400, BodyLen::None)).unwrap();
    world.transmit();
    assert_eq!(told(&world.take_events()), ["body refused 1", "sent 1 0"]);
    assert_eq!((&world.quic.finished[..], &world.quic.resets[..]), (&[0][..], &[][..]));
    assert_eq!(world.quic.stops, [(0, code::MESSAGE_ERROR)]);
}

#[test]
fn our_streams_open_when_the_peer_allows_them() {
    let mut world = World::new();
    world.conn = H3Conn::new();
    world.quic = Quic { is_at_limit: true, ..Quic::default() };
    world.conn.start(&world.settings, &mut world.quic);
    world.transmit();
    assert!(world.quic.written.is_empty() && !world.conn.has_output());
    world.quic.is_at_limit = false;
    world.conn.handle_uni_available();
    assert!(world.conn.has_output());
    world.transmit();
    assert_eq!(world.written(CONTROL)[..2], [0, 4]);
}

#[test]
fn a_full_window_leaves_the_rest_in_quic() {
    let mut world = World::new();
    let (stream, _) = world.request(0, 1, &headers(&POST), false);
    world.receive(0, &data(&[b'x'; 60_000]), false).unwrap();
    assert_eq!(world.conn.wanted(0), 5536);
    world.receive(0, &data(&[b'x'; 6000]), false).unwrap();
    assert_eq!((world.conn.wanted(0), world.conn.wanted(4)), (0, 65_536));
    world.conn.body_consumed(stream, 1000);
    assert_eq!(world.conn.wanted(0), 536);
}

#[test]
fn a_discarded_body_is_stopped_without_error() {
    let mut world = World::new();
    let (stream, _) = world.request(0, 1, &headers(&POST), false);
    world.conn.discard_body(stream, &mut world.quic);
    assert_eq!(world.quic.stops, [(0, code::NO_ERROR)]);
    world.receive(0, &data(b"late"), true).unwrap();
    world.conn.respond(stream, &super::response(200, BodyLen::None)).unwrap();
    world.transmit();
    assert_eq!(told(&world.take_events()), ["sent 1 0"]);
    assert_eq!(world.quic.stops.len(), 1);
}

#[test]
fn trailers_are_checked_and_dropped() {
    let mut world = World::new();
    let bytes = join(&[&data(b"a"), &headers(&[("x-sum", "1")]), &frame_of(0x21, b"grease")]);
    world.request(0, 1, &headers(&POST), false);
    world.receive(0, &bytes, true).unwrap();
    assert_eq!(told(&world.take_events()), ["body 1 a", "end 1"]);
    world.request(4, 2, &headers(&POST), false);
    world.receive(4, &headers(&[(":path", "/")]), true).unwrap();
    assert_eq!(told(&world.take_events()), ["body refused 2"]);
}

#[test]
fn malformed_heads_are_refused_with_400() {
    let mut world = World::new();
    for (stream, lines) in [
        &[GET[0], GET[1], GET[2]][..],
        &[GET[0], GET[1], GET[2], GET[3], ("connection", "close")],
        &[GET[0], GET[1], GET[2], GET[3], ("X-Upper", "1")],
        &[GET[0], GET[1], GET[2], GET[3], ("content-length", "1")],
        &[],
    ]
    .iter()
    .enumerate()
    {
        world.receive(stream as u64 * 4, &headers(lines), true).unwrap();
    }
    let events = world.take_events();
    assert_eq!(told(&events), ["refused 400"; 5]);
    for (event, user) in events.into_iter().zip(0..) {
        let WireEvent::Refused { stream, .. } = event else { panic!() };
        world.conn.bind(stream, user);
        world.conn.respond(stream, &super::response(400, BodyLen::None)).unwrap();
    }
    world.transmit();
    assert_eq!(world.quic.finished.len(), 5);
    assert!(world.quic.stops.is_empty(), "the peer's side was over");
    assert!(world.conn.is_idle());
}

#[test]
fn a_stream_without_a_request_is_incomplete() {
    let mut world = World::new();
    world.receive(0, b"", true).unwrap();
    world.receive(4, &frame_of(0x21, b"grease"), true).unwrap();
    world.transmit();
    world.quic.resets.sort_unstable();
    assert_eq!(world.quic.resets, [(0, code::REQUEST_INCOMPLETE), (4, code::REQUEST_INCOMPLETE)]);
}

#[test]
fn too_large_a_head_is_refused_with_494_compressed_or_not() {
    let mut world = World::new();
    let long = "x".repeat(1990);
    let lines = [GET[0], GET[1], GET[2], GET[3], ("a", &long), ("b", &long)];
    let mut rest = headers(&lines);
    rest.truncate(100);
    world.receive(0, &rest, false).unwrap();
    let mut indexed = section(&GET);
    indexed.resize(500, 0xc0 | 31);
    world.receive(4, &frame_of(1, &indexed), true).unwrap();
    let events = world.take_events();
    assert_eq!(told(&events), ["refused 494", "refused 494"]);
    let [WireEvent::Refused { stream, .. }, WireEvent::Refused { head, .. }] = &events[..] else {
        panic!()
    };
    assert_eq!(head.line, b"GET / HTTP/3.0");
    world.conn.bind(*stream, 9);
    world.conn.respond(*stream, &super::response(400, BodyLen::Exact(2))).unwrap();
    world.bodies.sources.insert(9, Source::Pieces(vec![Bytes::from_static(b"no")]));
    world.transmit();
    assert_eq!(told(&world.take_events()), ["sent 9 2"]);
    assert_eq!(world.quic.stops, [(0, code::NO_ERROR)]);
}

/// Encoder instructions: a table of 220 bytes with `:path /one` and `x-two: 2`.
fn insertions() -> [Vec<u8>; 2] {
    [
        join(&[&[0x02, 0x3f, 0xbd, 0x01, 0xc1, 0x04], b"/one"]),
        join(&[&[0x45], b"x-two", &[0x01], b"2"]),
    ]
}

fn waiting(required: u8, path: u8) -> Vec<u8> {
    let mut lines = section(&GET[..3]);
    lines[0] = required + 1;
    lines.push(path);
    frame_of(1, &lines)
}

#[test]
fn a_section_waits_for_its_insertions_and_holds_back_what_follows() {
    let mut world = World::new();
    world.receive(0, &waiting(1, 0x80), false).unwrap();
    world.receive(0, &data(b"body"), true).unwrap();
    world.receive(4, &headers(&GET), true).unwrap();
    assert_eq!(world.take_events().len(), 1, "others are not held up");
    let [first, second] = insertions();
    world.receive(2, &first, false).unwrap();
    let events = world.take_events();
    assert!(told(&events)[0].starts_with("request GET /one"));
    let WireEvent::Request { stream, .. } = &events[0] else { panic!() };
    world.conn.bind(*stream, 5);
    world.transmit();
    assert_eq!(told(&world.take_events()), ["body 5 body", "end 5"]);
    // A Section Acknowledgment of stream 0, which covers the insertion, too.
    assert_eq!(world.written(7), [0x03, 0x80]);
    world.receive(2, &second, false).unwrap();
    world.transmit();
    assert_eq!(world.written(7), [0x03, 0x80, 0x01]);
}

#[test]
fn a_stream_whose_body_is_discarded_blocks_no_more() {
    let mut world = World::with(H3Settings { blocked_streams: 1, ..settings() });
    let (stream, _) = world.request(0, 1, &headers(&POST), false);
    let trailers = [2, 0, 0x80];
    world.receive(0, &frame_of(1, &trailers), false).unwrap();
    world.conn.discard_body(stream, &mut world.quic);
    assert_eq!(world.code(4, &waiting(1, 0x80), true), 0, "the only blocked stream is another");
    world.receive(2, &insertions()[0], false).unwrap();
    assert!(told(&world.take_events())[0].starts_with("request GET /one"));
}

#[test]
fn a_stream_that_dies_waiting_is_cancelled_and_counted_no_more() {
    let mut world = World::new();
    world.receive(0, &waiting(2, 0x80), false).unwrap();
    world.receive(4, &waiting(2, 0x80), false).unwrap();
    world.conn.handle_reset(0, 1, &mut world.events).unwrap();
    assert_eq!(told(&world.take_events()), ["refused 400"]);
    world.receive(8, &waiting(1, 0x80), true).unwrap();
    let mut blocked = World::new();
    for stream in [0, 4] {
        blocked.receive(stream, &waiting(2, 0x80), false).unwrap();
    }
    assert_eq!(blocked.code(8, &waiting(2, 0x80), false), crate::qpack::DECOMPRESSION_FAILED);
    world.transmit();
    assert_eq!(world.written(7), [0x03, 0x40]);
    let [first, second] = insertions();
    world.receive(2, &first, false).unwrap();
    assert_eq!(world.take_events().len(), 1);
    world.receive(2, &second, false).unwrap();
    assert_eq!(told(&world.take_events()), ["refused 400"], "no path among the lines: malformed");
}

#[test]
fn a_request_given_up_before_any_of_it_was_read_ends_on_our_side_too() {
    let mut world = World::new();
    world.conn.handle_reset(4, 1, &mut world.events).unwrap();
    assert!(world.conn.has_output(), "QUIC is to be told");
    world.transmit();
    assert_eq!(world.quic.resets, [(4, code::REQUEST_CANCELLED)]);
    assert!(world.take_events().is_empty());
    assert!(world.conn.is_idle());
}

#[test]
fn the_cache_tells_sections_with_references_apart_by_what_was_inserted() {
    let mut world = World::new();
    let [first, _] = insertions();
    world.receive(2, &first, false).unwrap();
    world.receive(0, &waiting(1, 0x80), true).unwrap();
    world.receive(4, &waiting(1, 0x80), true).unwrap();
    world.transmit();
    // Both sections are acknowledged.
    assert_eq!(world.written(7), [0x03, 0x80, 0x84]);
    let events = told(&world.take_events());
    assert_eq!(events[0], events[1]);
}

#[test]
fn the_cache_forgets_sections_whose_references_a_capacity_evicts() {
    let mut world = World::new();
    let [first, _] = insertions();
    world.receive(2, &first, false).unwrap();
    world.receive(0, &waiting(1, 0x80), true).unwrap();
    // RFC 9204 §4.3.1: Set Dynamic Table Capacity, to 0.
    world.receive(2, &[0x20], false).unwrap();
    assert_eq!(told(&world.take_events()).len(), 1);
    world.receive(4, &waiting(1, 0x80), true).unwrap();
    world.transmit();
    assert_eq!(world.quic.resets, [(4, crate::qpack::DECOMPRESSION_FAILED)]);
}

#[test]
fn time_pays_for_cancelled_requests_as_over_http2() {
    let mut world = World::new();
    for number in 0..1000_u64 {
        let nanos = number * 300_000_000;
        world.conn.rest(Now { mono: Instant::from_nanos(nanos), unix_millis: 0 });
        world.get(number * 4, number);
        world.conn.handle_stopped(number * 4, 1, &mut world.events).expect("time pays");
        world.transmit();
    }
}

/// What the worker does before each event, in the turn with this number.
pub(super) fn begin_event(world: &mut World, turn: u64) {
    world.conn.rest(Now { mono: Instant::from_nanos(1 + turn), unix_millis: 0 });
}

#[test]
fn a_request_that_is_stopped_and_reset_is_charged_once() {
    let mut world = World::new();
    // RFC 9114 §4.1.1: this is how clients cancel an upload.
    let upload = headers(&GET);
    for number in 0..99 {
        begin_event(&mut world, 1);
        world.request(number * 4, number, &upload, false);
    }
    for number in 0..99 {
        begin_event(&mut world, 2);
        world.conn.handle_stopped(number * 4, 1, &mut world.events).expect("the limit is 100");
        begin_event(&mut world, 2);
        world.conn.handle_reset(number * 4, 1, &mut world.events).expect("the limit is 100");
    }
    assert_eq!(world.conn.take_wasted(), 0);
}

#[test]
fn a_request_that_is_cancelled_at_once_is_a_wasted_one_as_over_http2() {
    let mut world = World::new();
    let mut cancel = |number: u64| {
        begin_event(&mut world, 1);
        world.get(number * 4, number);
        begin_event(&mut world, 1);
        let done = world.conn.handle_stopped(number * 4, 1, &mut world.events);
        (done.is_ok(), world.conn.take_wasted())
    };
    assert!((0..20).all(|number| cancel(number) == (true, 1)));
    assert!(!cancel(20).0, "the limit is 20");
}

#[test]
fn requests_that_have_waited_are_cancelled_for_nothing_as_over_http2() {
    let mut world = World::new();
    let mut cancels = |round: u64, wait: u64| {
        begin_event(&mut world, round * PREMATURE_FOR);
        let numbers = || (0..100).map(move |n| 100 * round + n);
        for number in numbers() {
            world.get(number * 4, number);
        }
        begin_event(&mut world, round * PREMATURE_FOR + wait);
        let are_fine = numbers()
            .all(|number| world.conn.handle_stopped(number * 4, 1, &mut world.events).is_ok());
        world.transmit();
        are_fine
    };
    assert!((0..6).all(|round| cancels(round, PREMATURE_FOR)));
    let endured = (6..9).find(|&round| !cancels(round, PREMATURE_FOR - 1));
    assert!(endured.is_some(), "the limit is 100, and the credit of time 20 a second");
}

#[test]
fn a_priority_field_is_told_to_quic_and_an_update_overrides_it() {
    let mut world = World::new();
    world.receive(2, &control(&[]), false).unwrap();
    let update =
        |id: u64, text: &[u8]| frame_of(kind::PRIORITY_UPDATE, &[&varints(&[id]), text].concat());
    let with = |text| headers(&[GET[0], GET[1], GET[2], GET[3], ("priority", text)]);
    world.receive(2, &update(4, b"u=0"), false).unwrap();
    let urgent = world.request(0, 1, &with("u=1"), true).0;
    let pinned = world.request(4, 2, &with("u=6"), true).0;
    let plain = world.get(8, 3);
    for stream in [plain, urgent, pinned] {
        world.conn.respond(stream, &super::response(200, BodyLen::Exact(1))).unwrap();
    }
    for user in 1..=3 {
        world.bodies.sources.insert(user, Source::Waits(Bytes::new()));
    }
    world.transmit();
    assert_eq!(world.quic.priorities, [(4, 3), (0, 2)]);
    assert_eq!(world.bodies.order, [2, 1, 3]);
    world.receive(2, &update(8, b"u=7, i"), false).unwrap();
    assert!(world.conn.has_output());
    world.transmit();
    assert_eq!(world.quic.priorities[2..], [(8, -4)]);
}

#[test]
fn the_last_request_is_told_and_what_comes_behind_it_rejected() {
    let mut world = World::with(H3Settings { keepalive_requests: 2, ..settings() });
    let first = world.get(0, 1);
    world.transmit();
    assert!(!world.conn.is_closing());
    world.receive(4, &headers(&GET)[..3], false).unwrap();
    world.transmit();
    assert!(world.conn.is_closing(), "it begins");
    let told = frames(&world.written(CONTROL)[1..])[1..].to_vec();
    assert_eq!(told, [(kind::GOAWAY, varints(&[8]))]);
    world.receive(8, &headers(&GET), true).unwrap();
    world.transmit();
    assert_eq!(world.quic.resets, [(8, code::REQUEST_REJECTED)]);
    world.receive(4, &headers(&GET)[3..], true).unwrap();
    let Some(WireEvent::Request { stream: second, .. }) = world.events.pop() else { panic!() };
    world.conn.bind(second, 2);
    for stream in [first, second] {
        world.conn.respond(stream, &super::response(204, BodyLen::None)).unwrap();
    }
    world.transmit();
    assert!(world.conn.is_idle());
}

#[test]
fn a_request_that_is_reset_while_it_waits_is_answered() {
    let mut world = World::new();
    world.receive(0, &waiting(2, 0x80), false).unwrap();
    world.conn.handle_reset(0, 1, &mut world.events).unwrap();
    let Some(WireEvent::Refused { stream, refusal, .. }) = world.events.pop() else { panic!() };
    assert_eq!(refusal.status, 400);
    world.conn.bind(stream, 1);
    world.conn.respond(stream, &super::response(400, BodyLen::None)).unwrap();
    world.transmit();
    assert_eq!((&world.quic.finished[..], &world.quic.stops[..]), (&[0][..], &[][..]));
    assert_eq!(world.written(7), [0x03, 0x40], "the section is cancelled");
    assert!(world.conn.is_idle());
}

#[test]
fn a_graceful_end_lets_through_what_is_under_way_and_rejects_the_rest() {
    let mut world = World::new();
    let (first, second) = (world.get(0, 1), world.get(4, 2));
    world.conn.shutdown(&mut world.quic);
    let goaways = |world: &World| frames(&world.written(CONTROL)[1..])[1..].to_vec();
    assert_eq!(goaways(&world), [(kind::GOAWAY, varints(&[8 + 400]))]);
    let third = world.get(8, 3);
    world.conn.shutdown(&mut world.quic);
    world.conn.shutdown(&mut world.quic);
    assert_eq!(goaways(&world)[1..], [(kind::GOAWAY, varints(&[12]))]);
    world.receive(12, &headers(&GET), true).unwrap();
    world.receive(12, b"", true).unwrap();
    world.transmit();
    assert!(world.events.is_empty());
    assert_eq!(world.quic.resets, [(12, code::REQUEST_REJECTED)]);
    for stream in [first, second, third] {
        world.conn.respond(stream, &super::response(204, BodyLen::None)).unwrap();
    }
    world.transmit();
    assert!(world.conn.is_idle());
}

#[test]
fn nothing_of_a_body_overtakes_what_came_before_its_stream_had_an_owner() {
    let mut world = World::new();
    world.receive(0, &[headers(&POST), data(b"one")].concat(), false).unwrap();
    let Some(WireEvent::Request { stream, .. }) = world.events.pop() else { panic!() };
    world.conn.bind(stream, 3);
    world.receive(0, &data(b"two"), true).unwrap();
    assert!(world.take_events().is_empty(), "the first part was not told yet");
    world.transmit();
    assert_eq!(told(&world.take_events()), ["body 3 onetwo", "end 3"]);
}

#[test]
fn a_stream_that_died_before_bind_is_told_after_it() {
    let mut world = World::new();
    world.receive(0, &headers(&POST), false).unwrap();
    let Some(WireEvent::Request { stream, .. }) = world.events.pop() else { panic!() };
    world.conn.handle_reset(0, 1, &mut world.events).unwrap();
    world.transmit();
    assert!(world.events.is_empty());
    world.conn.bind(stream, 4);
    world.transmit();
    assert_eq!(told(&world.take_events()), ["reset 4"]);
    assert!(world.conn.respond(stream, &super::response(200, BodyLen::None)).is_err());
    assert!(world.conn.is_idle());
    // Without `bind`, the response finds no stream.
    world.receive(4, &headers(&POST), false).unwrap();
    let Some(WireEvent::Request { stream, .. }) = world.events.pop() else { panic!() };
    world.conn.handle_stopped(4, 1, &mut world.events).unwrap();
    world.transmit();
    assert!(world.conn.respond(stream, &super::response(200, BodyLen::None)).is_err());
    assert!(world.conn.is_idle());
}

/// Runs a whole connection, split into pieces of `cuts` lengths, and lists the events.
fn play(cuts: &[usize]) -> (Vec<String>, Vec<u8>) {
    let [first, second] = insertions();
    let expects = [POST[0], POST[1], POST[2], POST[3], ("expect", "100-continue")];
    let grease = frame_of(0x40, &[1; 70]);
    let script: [(u64, Vec<u8>, bool); 5] = [
        (6, join(&[&control(&[1, 100, 0x21, 5]), &grease, &frame_of(13, &varints(&[3]))]), false),
        (0, waiting(1, 0x80), true),
        (2, join(&[&first, &second]), false),
        (
            4,
            join(&[
                &grease,
                &headers(&expects),
                &data(&[b'a'; 100]),
                &data(b""),
                &data(b"end"),
                &headers(&[("x-sum", "1")]),
            ]),
            true,
        ),
        (8, headers(&[GET[0], GET[1], GET[2]]), true),
    ];
    let (mut world, mut all) = (World::new(), Vec::new());
    let mut cuts = cuts.iter().copied().cycle();
    for (stream, bytes, fin) in script {
        let mut rest = &bytes[..];
        loop {
            let (part, after) = rest.split_at(cuts.next().unwrap().min(rest.len()));
            rest = after;
            world.receive(stream, part, fin && rest.is_empty()).unwrap();
            for event in &world.events {
                if let WireEvent::Request { stream, head } = event {
                    world.conn.bind(*stream, head.line.len() as u64);
                }
            }
            all.append(&mut world.events);
            world.transmit();
            all.append(&mut world.events);
            if rest.is_empty() {
                break;
            }
        }
    }
    (told(&all), world.written(7).to_vec())
}

#[test]
fn the_script_tells_what_it_should() {
    let (told, instructions) = play(&[10_000]);
    assert_eq!(told.len(), 5);
    assert_eq!(told[4], "refused 400");
    assert!(told[0].starts_with("request GET /one HTTP/3.0"));
    assert!(told[1].starts_with("request POST /p HTTP/3.0"));
    assert_eq!(told[2], format!("body 16 {}end", "a".repeat(100)));
    assert_eq!(told[3], "end 16");
    assert_eq!(instructions, [0x03, 0x80, 0x01]);
}

proptest! {
    #[test]
    fn any_split_of_the_bytes_tells_the_same(
        cuts in proptest::collection::vec(1..40_usize, 1..30),
    ) {
        // The end may come after the head: only then may a body follow.
        let normal = |told: Vec<String>| {
            let told = told.into_iter().filter(|text| text != "end 17");
            told.map(|text| text.replace("Unknown", "None")).collect::<Vec<_>>()
        };
        prop_assert_eq!(normal(play(&cuts).0), normal(play(&[10_000]).0));
    }

    #[test]
    fn arbitrary_calls_do_no_harm(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        fuzz::conn(&data);
    }

    #[test]
    fn arbitrary_requests_do_no_harm(
        parts in proptest::collection::vec(
            (0..8_u8, 0..4_u8, prop_oneof![
                Just(headers(&GET)),
                Just(headers(&POST)),
                Just(data(b"body")),
                Just(control(&[1, 220])),
                Just(insertions()[0].clone()),
                Just(insertions()[1].clone()),
                Just(waiting(1, 0x80)),
                Just(vec![0x80]),
                Just(vec![0x03]),
            ]),
            0..60,
        ),
    ) {
        let mut script = Vec::new();
        for (what, place, bytes) in parts {
            let is_request = bytes.first() == Some(&1);
            let stream = place * 4 + if is_request { 0 } else { what / 7 * 2 };
            for part in bytes.chunks(31) {
                script.extend([what | (part.len() as u8) << 3, stream]);
                script.extend_from_slice(part);
            }
        }
        fuzz::conn(&script);
    }
}

#[test]
fn a_stale_name_does_nothing() {
    let mut world = World::new();
    let stale = StreamId(77);
    world.conn.bind(stale, 1);
    world.conn.body_ready(stale);
    world.conn.body_consumed(stale, 1);
    world.conn.reset(stale, 1, &mut world.quic);
    world.conn.discard_body(stale, &mut world.quic);
    assert!(world.conn.is_idle() && world.quic.resets.is_empty());
}
