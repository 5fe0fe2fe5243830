//! Connection errors and their codes.

use super::super::frame::{code, kind};
use super::{GET, POST, World, control, data, frame_of, headers, join, varints};
use crate::WireEvent;
use crate::h3::H3Settings;
use crate::qpack;

/// Bytes for streams in order, and the code of the last.
type Row<'a> = (&'a str, &'a [(u64, &'a [u8], bool)], u64);

fn check(rows: &[Row<'_>]) {
    for (what, steps, code) in rows {
        let mut world = World::new();
        let (last, before) = steps.split_last().unwrap();
        for (stream, bytes, fin) in before {
            assert_eq!(world.code(*stream, bytes, *fin), 0, "{what}: too early");
        }
        assert_eq!(world.code(last.0, last.1, last.2), *code, "{what}");
    }
}

#[test]
fn frames_stand_only_where_they_may() {
    let (get, post, settings) = (headers(&GET), headers(&POST), control(&[]));
    let trailers = join(&[&post, &headers(&[("x", "1")])]);
    let unexpected = code::FRAME_UNEXPECTED;
    let more = |frame: &[u8]| join(&[&get, frame]);
    let on_control = |kind| join(&[&settings, &frame_of(kind, &[])]);
    for reserved in [2, 6, 8, 9] {
        check(&[
            ("HTTP/2 on a request", &[(0, &frame_of(reserved, b""), false)], unexpected),
            ("HTTP/2 on control", &[(2, &on_control(reserved), false)], unexpected),
        ]);
    }
    for other in [3, 4, 5, 7, 13, kind::PRIORITY_UPDATE, kind::PRIORITY_UPDATE_PUSH] {
        check(&[
            ("foreign first", &[(0, &frame_of(other, b"\0"), false)], unexpected),
            ("foreign later", &[(0, &more(&frame_of(other, b"\0")), false)], unexpected),
        ]);
    }
    check(&[
        ("DATA first", &[(0, &data(b"x"), false)], unexpected),
        ("empty DATA first", &[(0, &data(b""), false)], unexpected),
        ("DATA after trailers", &[(0, &join(&[&trailers, &data(b"x")]), false)], unexpected),
        ("HEADERS after trailers", &[(0, &join(&[&trailers, &post]), false)], unexpected),
        ("DATA on control", &[(2, &on_control(0), false)], unexpected),
        ("HEADERS on control", &[(2, &on_control(1), false)], unexpected),
        ("PUSH_PROMISE on control", &[(2, &on_control(5), false)], unexpected),
        ("SETTINGS twice", &[(2, &on_control(4), false)], unexpected),
        ("unknown on both", &[(2, &on_control(0x21), false), (0, &more(&[0x21, 0]), true)], 0),
    ]);
}

#[test]
fn settings_come_first_once_and_clean() {
    let wrong = code::SETTINGS_ERROR;
    let cut = join(&[&[0], &frame_of(4, &[0x01])]);
    let missing = code::MISSING_SETTINGS;
    check(&[
        ("GOAWAY first", &[(2, b"\0\x07\x01\0", false)], missing),
        ("grease first", &[(2, b"\0\x21\0", false)], missing),
        ("DATA first", &[(2, b"\0\0\0", false)], missing),
        ("twice", &[(2, &control(&[6, 1, 6, 1]), false)], wrong),
        ("unknown twice", &[(2, &control(&[0x21, 1, 0x21, 2]), false)], wrong),
        ("CONNECT neither 0 nor 1", &[(2, &control(&[8, 2]), false)], wrong),
        ("datagrams neither 0 nor 1", &[(2, &control(&[0x33, 2]), false)], wrong),
        ("cut short", &[(2, &cut, false)], code::FRAME_ERROR),
        ("empty", &[(2, &control(&[]), false)], 0),
        ("usual", &[(2, &control(&[1, 4096, 7, 100, 6, 9000, 0x33, 1, 0x1f21, 7]), false)], 0),
    ]);
    for reserved in [0, 2, 3, 4, 5] {
        check(&[("HTTP/2", &[(2, &control(&[reserved, 1]), false)], wrong)]);
    }
}

#[test]
fn critical_streams_exist_once_and_never_end() {
    let creation = code::STREAM_CREATION_ERROR;
    let closed = code::CLOSED_CRITICAL_STREAM;
    let settings = control(&[]);
    check(&[
        ("two control", &[(2, &settings, false), (6, b"\0", false)], creation),
        ("two encoder", &[(2, b"\x02", false), (6, b"\x02", false)], creation),
        ("two decoder", &[(2, b"\x03", false), (6, b"\x03", false)], creation),
        ("push", &[(2, b"\x01", false)], creation),
        ("control ends", &[(2, &settings, true)], closed),
        ("encoder ends", &[(2, b"\x02", false), (2, b"", true)], closed),
        ("decoder ends", &[(2, b"\x03", true)], closed),
        ("untyped ends", &[(2, b"", true), (6, b"\x40", true)], 0),
        ("unknown ends", &[(2, b"\x21abc", false), (2, b"def", true)], 0),
    ]);
    for kind in 0..4_u8 {
        let mut world = World::new();
        let known = kind != 1;
        let _ = world.receive(2, &[if known { kind } else { 0x21 }], false);
        let done = world.conn.handle_reset(2, 0, &mut world.events);
        assert_eq!(done.map_err(|error| error.code), if known { Err(closed) } else { Ok(()) });
    }
    let mut world = World::new();
    let stopped = world.conn.handle_stopped(3, 0, &mut world.events);
    assert_eq!(stopped.map_err(|error| error.code), Err(closed));
    assert!(world.conn.handle_stopped(99, 0, &mut world.events).is_ok());
}

#[test]
fn unknown_streams_are_stopped_and_ignored() {
    let mut world = World::new();
    world.receive(2, &[0x54], false).unwrap();
    assert!(world.conn.has_output() || world.quic.stops.is_empty());
    world.receive(2, &[0x21], false).unwrap();
    world.receive(2, &data(b"whatever"), false).unwrap();
    world.transmit();
    assert_eq!(world.quic.stops, [(2, code::STREAM_CREATION_ERROR)]);
}

#[test]
fn ids_move_only_the_right_way() {
    let with = |frames: &[(u64, &[u64])]| {
        let frames: Vec<_> =
            frames.iter().map(|(kind, numbers)| frame_of(*kind, &varints(numbers))).collect();
        join(&[&control(&[]), &frames.concat()])
    };
    let wrong = code::ID_ERROR;
    check(&[
        ("MAX_PUSH_ID grows", &[(2, &with(&[(13, &[1]), (13, &[1]), (13, &[5])]), false)], 0),
        ("MAX_PUSH_ID shrinks", &[(2, &with(&[(13, &[5]), (13, &[4])]), false)], wrong),
        ("GOAWAY shrinks", &[(2, &with(&[(7, &[5]), (7, &[4])]), false)], 0),
        ("GOAWAY grows", &[(2, &with(&[(7, &[4]), (7, &[5])]), false)], wrong),
        ("CANCEL_PUSH", &[(2, &with(&[(13, &[5]), (3, &[1])]), false)], wrong),
        ("priority of a push", &[(2, &with(&[(kind::PRIORITY_UPDATE_PUSH, &[0])]), false)], wrong),
        ("priority of nothing", &[(2, &with(&[(kind::PRIORITY_UPDATE, &[2])]), false)], wrong),
        ("priority", &[(2, &with(&[(kind::PRIORITY_UPDATE, &[4])]), false)], 0),
    ]);
}

#[test]
fn frames_have_the_length_of_their_content() {
    let wrong = code::FRAME_ERROR;
    let with = |frame: &[u8]| join(&[&control(&[]), frame]);
    let get = headers(&GET);
    check(&[
        ("GOAWAY empty", &[(2, &with(&[7, 0]), false)], wrong),
        ("GOAWAY long", &[(2, &with(&[7, 2, 1, 1]), false)], wrong),
        ("GOAWAY cut", &[(2, &with(&[7, 1, 0x40]), false)], wrong),
        ("MAX_PUSH_ID long", &[(2, &with(&[13, 3, 0x40, 1, 1]), false)], wrong),
        ("CANCEL_PUSH empty", &[(2, &with(&[3, 0]), false)], wrong),
        ("priority empty", &[(2, &with(&frame_of(kind::PRIORITY_UPDATE, b"")), false)], wrong),
        ("priority cut", &[(2, &with(&frame_of(kind::PRIORITY_UPDATE, b"\x40")), false)], wrong),
        ("end in a header", &[(0, &[0x01], true)], wrong),
        ("end in a long header", &[(0, &get, false), (0, &[0x40], true)], wrong),
        ("end in HEADERS", &[(0, &get[..9], true)], wrong),
        ("end in DATA", &[(0, &join(&[&headers(&POST), &[0, 5, 1]]), true)], wrong),
        ("end in grease", &[(0, &join(&[&get, &[0x21, 5, 1]]), true)], wrong),
    ]);
}

#[test]
fn qpack_errors_have_codes_of_their_own() {
    check(&[
        ("encoder", &[(2, b"\x02\x3f\xff\xff\x7f", false)], qpack::ENCODER_STREAM_ERROR),
        ("decoder", &[(2, b"\x03\x84", false)], qpack::DECODER_STREAM_ERROR),
        ("increment", &[(2, b"\x03\x01", false)], qpack::DECODER_STREAM_ERROR),
    ]);
}

#[test]
fn a_section_that_cannot_be_decoded_costs_its_stream_as_in_nginx() {
    let (bad, trailers) = (frame_of(1, b"\0\0\xff\x24"), frame_of(1, b"\0\0\x80"));
    for (what, input, fin) in [
        ("section", bad.clone(), true),
        ("section of a stream that goes on", bad, false),
        ("no section", vec![1, 0], true),
        ("trailers", join(&[&headers(&POST), &trailers]), true),
    ] {
        let mut world = World::new();
        assert_eq!(world.code(0, &input, fin), 0, "{what}");
        for event in world.take_events() {
            let WireEvent::Request { stream, .. } = event else { continue };
            world.conn.bind(stream, 1);
        }
        world.transmit();
        assert_eq!(world.quic.resets, [(0, qpack::DECOMPRESSION_FAILED)], "{what}");
        assert_eq!(world.written(7), [0x03, 0x40], "{what}: the stream is cancelled once");
        world.take_events();
        assert_eq!(world.code(4, &headers(&GET), true), 0, "{what}");
        assert_eq!(world.take_events().len(), 1, "{what}: the connection goes on");
    }
}

#[test]
fn a_string_that_is_too_long_costs_its_stream_or_the_connection_as_in_nginx() {
    for (len, status) in [(100, 0), (101, code::EXCESSIVE_LOAD)] {
        let literal = |first: &[u8]| [first, &[len], &vec![b'a'; usize::from(len)][..]].concat();
        let mut world = World::with(H3Settings { field_size_max: 100, ..super::settings() });
        let section = join(&[&headers(&GET)[2..], &literal(b"\x21x")]);
        assert_eq!(world.code(0, &frame_of(1, &section), true), 0);
        world.transmit();
        let wanted: &[_] = if status == 0 { &[] } else { &[(0, status)] };
        assert_eq!(world.quic.resets, wanted, "{len} in a request");
        let inserts = join(&[b"\x02\x3f\xe1\x01", &literal(b"\x41x")]);
        assert_eq!(world.code(2, &inserts, false), status, "{len} in an instruction");
    }
}

/// The number of times that `step` succeeds before the connection ends, at most `max`.
fn endures(max: usize, mut step: impl FnMut(&mut World, u64) -> u64) -> (usize, u64) {
    let settings = H3Settings { keepalive_requests: u64::MAX, ..super::settings() };
    let mut world = World::with(settings);
    world.receive(2, &control(&[]), false).unwrap();
    for i in 0..max {
        let code = step(&mut world, i as u64);
        if code != 0 {
            return (i, code);
        }
        world.transmit();
        world.events.clear();
    }
    (max, 0)
}

#[test]
fn useless_work_is_not_done_for_ever() {
    let max = 5000;
    let error = code::EXCESSIVE_LOAD;
    let floods: [(&str, (usize, u64)); 9] = [
        ("unknown frames", endures(max, |world, _| world.code(0, &[0x21, 0], false))),
        (
            "empty DATA",
            endures(max, |world, i| {
                let bytes = if i == 0 { headers(&POST) } else { data(b"") };
                world.code(0, &bytes, false)
            }),
        ),
        ("control frames", endures(max, |world, _| world.code(2, &[13, 1, 1], false))),
        (
            "cancelled requests",
            endures(max, |world, i| {
                super::requests::begin_event(world, 2 * i);
                world.request(i * 4, i, &headers(&POST), false);
                super::requests::begin_event(world, 2 * i + 1);
                let done = world.conn.handle_reset(i * 4, 0, &mut world.events);
                done.map_or_else(|error| error.code, |()| 0)
            }),
        ),
        ("broken requests", endures(max, |world, i| world.code(i * 4, b"", true))),
        (
            "malformed requests that are answered",
            endures(max, |world, i| {
                let code = world.code(i * 4, &headers(&GET[1..]), true);
                if let Some(WireEvent::Refused { stream, .. }) = world.events.pop() {
                    let head = super::response(400, bolide_http::BodyLen::None);
                    world.conn.respond(stream, &head).unwrap();
                    world.transmit();
                }
                code
            }),
        ),
        (
            "table churn",
            endures(max, |world, i| {
                world.code(6, if i == 0 { b"\x02\x3f\xbd\x01" } else { b"\x3f\xbd\x01" }, false)
            }),
        ),
        (
            "requests that are never answered",
            endures(max, |world, i| world.code(i * 4, &headers(&POST), false)),
        ),
        ("unknown streams", endures(max, |world, i| world.code(i * 4 + 10, &[0x21], true))),
    ];
    for (what, (count, code)) in floods {
        assert_eq!(code, error, "{what}");
        let is_waste = what.starts_with("broken") || what.starts_with("malformed");
        let least = if is_waste { 19 } else { 99 };
        assert!(!is_waste || count < 30, "{what}: {count} are many");
        assert!(count >= least, "{what}: a little of it is no crime, {count}");
    }
    let huge = join(&[&[0x21], &varints(&[1 << 40])]);
    assert_eq!(World::new().code(0, &huge, false), error);
    let mut large = control(&[]);
    large.extend(frame_of(13, &[0; 3000]));
    assert_eq!(World::new().code(2, &large, false), error);
}

#[test]
fn answered_requests_earn_what_odd_ones_cost() {
    let (count, code) = endures(3000, |world, i| {
        let stream = world.get(i * 4, i);
        world.conn.respond(stream, &super::response(204, bolide_http::BodyLen::None)).unwrap();
        world.code(2, &frame_of(0x21, b"x"), false)
    });
    assert_eq!((count, code), (3000, 0));
}

#[test]
fn more_streams_than_quic_allows_are_rejected() {
    let settings = H3Settings { max_concurrent_streams: 1, ..super::settings() };
    let mut world = World::with(settings);
    for i in 0..70 {
        world.receive(i * 4, &headers(&GET), true).unwrap();
    }
    world.transmit();
    assert_eq!((world.events.len(), world.quic.resets.len()), (65, 5));
    assert!(world.quic.resets.iter().all(|(_, code)| *code == code::REQUEST_REJECTED));
}
