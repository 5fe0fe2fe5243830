//! Sending: heads, bodies within room, ends, and failures.

use bolide_http::{BodyLen, Name};
use bytes::Bytes;
use proptest::prelude::*;

use super::super::frame::code;
use super::{GET, POST, Source, World, control, data, frames, headers, lines, response, told};
use crate::qpack::{QpackDecoder, Section};

fn pieces(parts: &[&'static [u8]]) -> Source {
    Source::Pieces(parts.iter().map(|part| Bytes::from_static(part)).collect())
}

fn status_and_length(section: &[u8]) -> (String, Option<String>) {
    let lines = lines(section);
    assert_eq!(lines[0].0, ":status");
    let length = lines.iter().find(|(name, _)| name == "content-length");
    (lines[0].1.clone(), length.map(|(_, value)| value.clone()))
}

#[test]
fn a_body_of_known_length_is_one_data_frame_and_large_pieces_are_not_copied() {
    let mut world = World::new();
    let stream = world.get(0, 1);
    let body = Bytes::from(vec![b'x'; 5000]);
    world.bodies.sources.insert(1, Source::Pieces(vec![body.clone()]));
    world.conn.respond(stream, &response(200, BodyLen::Exact(5000))).unwrap();
    assert!(world.conn.has_output());
    world.transmit();
    let sent = world.frames(0);
    assert_eq!(sent.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(status_and_length(&sent[0].1), ("200".into(), Some("5000".into())));
    assert_eq!(sent[1].1, body);
    assert!(world.quic.pieces.contains(&body.as_ptr()));
    assert_eq!(world.quic.pieces.len(), 3, "settings, head, body: three writes");
    assert_eq!(told(&world.take_events()), ["sent 1 5000"]);
    assert_eq!(world.quic.finished, [0]);
    assert!(world.quic.stops.is_empty() && world.conn.is_idle());
}

#[test]
fn a_body_of_unknown_length_is_one_data_frame_for_each_piece() {
    let mut world = World::new();
    let stream = world.get(0, 1);
    let large: &'static [u8] = &[b'y'; 2000];
    world.bodies.sources.insert(1, pieces(&[b"one", large, b"three"]));
    world.conn.respond(stream, &response(200, BodyLen::Unknown)).unwrap();
    world.transmit();
    let sent = world.frames(0);
    assert_eq!(status_and_length(&sent[0].1), ("200".into(), None));
    let bodies: Vec<_> = sent[1..].iter().map(|(_, body)| &body[..]).collect();
    assert_eq!(bodies, [&b"one"[..], large, b"three"]);
    assert_eq!(told(&world.take_events()), ["sent 1 2008"]);
}

#[test]
fn answers_without_content_have_no_data_and_the_right_length() {
    let head = [(":method", "HEAD"), GET[1], GET[2], GET[3]];
    for (request, status, body, length) in [
        (&GET, 204, BodyLen::Exact(5), None),
        (&GET, 304, BodyLen::Exact(5), None),
        (&GET, 200, BodyLen::None, None),
        (&GET, 200, BodyLen::Exact(0), Some("0")),
        (&head, 200, BodyLen::Exact(5), Some("5")),
        (&head, 200, BodyLen::Unknown, None),
        (&GET, 599, BodyLen::None, None),
    ] {
        let mut world = World::new();
        let (stream, _) = world.request(0, 1, &headers(request), true);
        world.bodies.sources.insert(1, Source::Breaks);
        world.conn.respond(stream, &response(status, body)).unwrap();
        world.transmit();
        let sent = world.frames(0);
        assert_eq!(sent.len(), 1);
        let expected = (status.to_string(), length.map(str::to_owned));
        assert_eq!(status_and_length(&sent[0].1), expected);
        assert_eq!(told(&world.take_events()), ["sent 1 0"]);
    }
}

#[test]
fn fields_leave_in_lower_case_without_those_of_connections() {
    let mut world = World::new();
    let stream = world.get(0, 1);
    let mut head = response(200, BodyLen::None);
    head.fields.push_text(b"X-Own", b"Some Value");
    head.fields.push(Name::Connection, b"close");
    head.fields.push(Name::TransferEncoding, b"chunked");
    head.fields.push(Name::Vary, b"accept-encoding");
    head.fields.push(Name::Expires, b"0");
    world.conn.respond(stream, &head).unwrap();
    world.transmit();
    let sent = lines(&world.frames(0)[0].1);
    let expected = [
        (":status", "200"),
        ("server", "bolide"),
        ("x-own", "Some Value"),
        ("vary", "accept-encoding"),
        ("expires", "0"),
    ];
    assert_eq!(sent, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn a_very_long_head_is_framed_right() {
    let mut world = World::new();
    let stream = world.get(0, 1);
    let mut head = response(200, BodyLen::Exact(1));
    head.fields.push_text(b"x-long", &[b'~'; 20_000]);
    world.bodies.sources.insert(1, pieces(&[b"z"]));
    world.conn.respond(stream, &head).unwrap();
    world.transmit();
    let sent = world.frames(0);
    assert_eq!(lines(&sent[0].1)[2].1.len(), 20_000);
    assert_eq!(sent[1], (0, b"z".to_vec()));
}

#[test]
fn a_repeated_head_is_encoded_once_and_a_changed_one_again() {
    let mut world = World::new();
    let mut send = |id: u64, head: &bolide_http::ResponseHead| {
        let stream = world.get(id, 1);
        world.conn.respond(stream, head).unwrap();
        world.transmit();
        (*world.quic.pieces.last().unwrap(), world.written(id).to_vec())
    };
    let first = response(200, BodyLen::None);
    let (address, bytes) = send(0, &first);
    assert_eq!(send(4, &first), (address, bytes.clone()));
    let mut other = response(200, BodyLen::None);
    other.fields.push(Name::Date, b"now");
    assert_ne!(send(8, &other).1, bytes);
    assert_ne!(send(12, &response(404, BodyLen::None)).1, bytes);
    assert_eq!(send(16, &first).1, bytes);
}

#[test]
fn a_body_that_fails_resets_the_stream() {
    for (source, body) in [
        (pieces(&[b"abc"]), BodyLen::Exact(5)),
        (pieces(&[b"abcdef"]), BodyLen::Exact(0)),
        (Source::Breaks, BodyLen::Exact(5)),
        (Source::Breaks, BodyLen::Unknown),
    ] {
        let mut world = World::new();
        let stream = world.get(0, 1);
        world.bodies.sources.insert(1, source);
        world.conn.respond(stream, &response(200, body)).unwrap();
        world.transmit();
        if body == BodyLen::Exact(0) {
            assert_eq!(told(&world.take_events()), ["sent 1 0"], "nothing was to be pulled");
            continue;
        }
        assert_eq!(told(&world.take_events()), ["reset 1"]);
        assert_eq!(world.quic.resets, [(0, code::INTERNAL_ERROR)]);
        assert!(world.quic.finished.is_empty() && world.conn.is_idle());
    }
}

#[test]
fn a_pending_body_goes_on_when_it_is_ready() {
    let mut world = World::new();
    let stream = world.get(0, 1);
    world.bodies.sources.insert(1, Source::Waits(Bytes::from_static(b"abc")));
    world.conn.respond(stream, &response(200, BodyLen::Unknown)).unwrap();
    world.transmit();
    assert_eq!(world.frames(0)[1], (0, b"abc".to_vec()));
    assert!(!world.conn.has_output() && world.quic.finished.is_empty());
    world.bodies.sources.insert(1, pieces(&[b"def"]));
    world.transmit();
    assert_eq!(world.frames(0).len(), 2, "the body is still pending");
    world.conn.body_ready(stream);
    world.transmit();
    assert_eq!(world.frames(0)[2], (0, b"def".to_vec()));
    assert_eq!(told(&world.take_events()), ["sent 1 6"]);
}

#[test]
fn interim_heads_come_before_the_answer_and_not_after_it() {
    let mut world = World::new();
    let (stream, _) = world.request(0, 1, &headers(&POST), false);
    world.conn.announce(stream, &response(103, BodyLen::None));
    world.conn.announce(stream, &response(103, BodyLen::None));
    world.conn.respond(stream, &response(200, BodyLen::None)).unwrap();
    world.conn.announce(stream, &response(103, BodyLen::None));
    assert!(world.conn.respond(stream, &response(200, BodyLen::None)).is_err());
    world.transmit();
    let sent: Vec<_> = world.frames(0).iter().map(|(_, head)| lines(head)[0].1.clone()).collect();
    assert_eq!(sent, ["103", "103", "200"]);
    // The request is incomplete, and no longer needed.
    assert_eq!(world.quic.stops, [(0, code::NO_ERROR)]);
}

#[test]
fn an_interim_head_may_leave_long_before_the_answer() {
    let mut world = World::new();
    let (stream, _) = world.request(0, 1, &headers(&POST), false);
    world.conn.announce(stream, &response(103, BodyLen::None));
    world.transmit();
    assert_eq!(world.frames(0).len(), 1);
    assert!(!world.conn.has_output());
    world.receive(0, &data(b"x"), true).unwrap();
    world.conn.respond(stream, &response(200, BodyLen::None)).unwrap();
    world.transmit();
    assert_eq!(told(&world.take_events()), ["body 1 x", "end 1", "sent 1 0"]);
}

#[test]
fn no_more_is_pulled_than_leaves() {
    let mut world = World::new();
    let stream = world.get(0, 1);
    world.bodies.sources.insert(1, Source::Pieces(vec![Bytes::from(vec![b'x'; 9000])]));
    world.conn.respond(stream, &response(200, BodyLen::Exact(9000))).unwrap();
    world.quic.room.insert(0, 10);
    world.transmit();
    assert!(world.bodies.asked.is_empty() && !world.conn.has_output());
    world.quic.room.insert(0, 3000);
    world.conn.handle_writable(0);
    world.transmit_within(1500);
    assert!(world.bodies.asked[&1] <= 1500 && world.conn.has_output());
    world.transmit();
    assert!(!world.conn.has_output(), "QUIC takes no more");
    world.quic.room.clear();
    world.conn.handle_writable(0);
    world.transmit();
    assert_eq!(told(&world.take_events()), ["sent 1 9000"]);
    assert_eq!(world.frames(0)[1].1.len(), 9000);
}

#[test]
fn incremental_answers_share_and_others_are_served_in_order() {
    let with = |text| headers(&[GET[0], GET[1], GET[2], GET[3], ("priority", text)]);
    let plain = headers(&GET);
    let (shared, ordered) = ([1, 2, 1, 2], [1, 1, 2, 2]);
    for (text, fields, order) in
        [("i", with("i"), shared), ("u=3", with("u=3"), ordered), ("no signal", plain, shared)]
    {
        let mut world = World::new();
        for user in 1..=2 {
            let (stream, _) = world.request(user * 4, user, &fields, true);
            let body = vec![b'x'; 128 * 1024];
            world.bodies.sources.insert(user, Source::Pieces(vec![Bytes::from(body)]));
            world.conn.respond(stream, &response(200, BodyLen::Exact(128 * 1024))).unwrap();
        }
        for _ in 0..5 {
            world.transmit_within(64 * 1024);
        }
        let mut seen = world.bodies.order.clone();
        seen.dedup_by(|a, b| a == b && order == shared);
        assert_eq!(seen[..2], order[..2], "{text}");
        assert_eq!(world.quic.finished.len(), 2);
    }
}

#[test]
fn a_stream_that_is_gone_is_told_once() {
    let mut world = World::new();
    let first = world.get(0, 1);
    let second = world.get(4, 2);
    world.conn.respond(first, &response(200, BodyLen::None)).unwrap();
    world.quic.gone.push(0);
    world.transmit();
    world.transmit();
    assert_eq!(told(&world.take_events()), ["reset 1"]);
    world.conn.handle_stopped(4, 1, &mut world.events).unwrap();
    world.conn.handle_reset(4, 1, &mut world.events).unwrap();
    assert!(world.conn.respond(second, &response(200, BodyLen::None)).is_err());
    world.transmit();
    assert_eq!(told(&world.take_events()), ["reset 2"]);
    assert_eq!(world.quic.resets, [(0, code::REQUEST_CANCELLED), (4, code::REQUEST_CANCELLED)]);
    assert!(world.conn.is_idle());
}

#[test]
fn a_reset_of_ours_is_silent() {
    let mut world = World::new();
    let (stream, _) = world.request(0, 1, &headers(&POST), false);
    world.conn.reset(stream, code::INTERNAL_ERROR, &mut world.quic);
    assert_eq!(world.quic.resets, [(0, code::INTERNAL_ERROR)]);
    assert_eq!(world.quic.stops, [(0, code::INTERNAL_ERROR)]);
    world.transmit();
    assert!(world.events.is_empty() && world.conn.streams_open() == 0);
}

#[test]
fn long_stable_fields_move_to_the_table_that_the_peer_allows() {
    let mut world = World::new();
    world.receive(2, &control(&[1, 4096]), false).unwrap();
    world.receive(6, &[0x03], false).unwrap();
    let mut head = response(200, BodyLen::None);
    let policy = "default-src 'self'; script-src 'self'; object-src 'none'; frame-src 'none'";
    head.fields.push(Name::ContentSecurityPolicy, policy.as_bytes());
    let mut decoder = QpackDecoder::new(4096);
    let mut sizes = Vec::new();
    for id in 0..5_u64 {
        let stream = world.get(id * 4, id);
        world.conn.respond(stream, &head).unwrap();
        world.transmit();
        // The encoder stream is our second.
        let instructions = world.quic.written.remove(&7).unwrap_or_default();
        let skipped = usize::from(instructions.first() == Some(&2));
        decoder.receive(&instructions[skipped..]).unwrap();
        let section = &world.frames(id * 4)[0].1;
        sizes.push(section.len());
        let mut seen = 0;
        let done = decoder.decode(section, |_, value| {
            seen += usize::from(value == policy.as_bytes());
        });
        let Ok(Section::Complete { required }) = done else { panic!("{done:?}") };
        assert_eq!(seen, 1);
        decoder.acknowledge(id * 4, required);
        let mut answers = Vec::new();
        decoder.poll_output(&mut answers);
        world.receive(6, &answers, false).unwrap();
    }
    assert_eq!((sizes[0], sizes[2]), (sizes[1], sizes[3]));
    assert!(sizes[2] + 40 < sizes[0] && sizes[4] == sizes[3]);
}

proptest! {
    #[test]
    fn any_room_carries_the_same_answers(
        rooms in proptest::collection::vec((0..4_u64, 0..3000_usize), 10..80),
        is_known in any::<bool>(),
        size in 0..6000_usize,
    ) {
        let mut world = World::new();
        let body: Vec<u8> = (0..size).map(|i| i as u8).collect();
        let length = if is_known { BodyLen::Exact(size as u64) } else { BodyLen::Unknown };
        for id in 0..4 {
            world.quic.room.insert(id * 4, 0);
            let stream = world.get(id * 4, id);
            let cut = size * id as usize / 4;
            let pieces = [&body[..cut], &body[cut..]].map(Bytes::copy_from_slice);
            let pieces = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
            world.bodies.sources.insert(id, Source::Pieces(pieces));
            world.conn.respond(stream, &response(200, length)).unwrap();
        }
        let rest = (0..40).map(|i| (i % 4, 5000));
        for (id, room) in rooms.into_iter().chain(rest) {
            world.quic.room.insert(id * 4, room);
            world.conn.handle_writable(id * 4);
            world.transmit_within(1 + room / 2);
        }
        for _ in 0..8 {
            world.transmit();
        }
        prop_assert_eq!(world.take_events().len(), 4);
        for id in 0..4 {
            let sent = frames(world.written(id * 4));
            let got: Vec<u8> = sent[1..].iter().flat_map(|(_, part)| part.clone()).collect();
            prop_assert_eq!(&got, &body);
        }
    }
}

#[test]
fn fields_that_variables_and_origins_made_invalid_are_sent_valid() {
    let mut world = World::new();
    let stream = world.get(0, 1);
    let mut head = response(302, BodyLen::None);
    head.fields.push(Name::Location, b"https://b/x\r\nEvil: 1\0");
    head.fields.push_text(b"X-Uri", b" \t/x ");
    head.fields.push_text("X-Ä".as_bytes(), b"1");
    head.fields.push_text(b"X Y", b"1");
    world.conn.respond(stream, &head).unwrap();
    world.transmit();
    let sent: Vec<_> = lines(&world.frames(0)[0].1).into_iter().skip(1).collect();
    let is = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let expected = [is("location", "https://b/x  Evil: 1"), is("x-uri", "/x")];
    assert_eq!(sent[sent.len() - 2..], expected, "RFC 9114 4.2, 10.3: {sent:?}");
}
