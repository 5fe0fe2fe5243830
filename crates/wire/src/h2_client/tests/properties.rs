//! Properties for any bytes.

use proptest::prelude::{
    Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

use super::*;
use crate::origin::fuzz::{First, body, http2, read_h2};

/// Valid and invalid pieces of responses.
fn part() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => Just(ok()),
        1 => Just(head(&[(":status", "103")])),
        1 => Just(head(&[(":status", "204")])),
        1 => Just(head(&[(":status", "200"), ("content-length", "5")])),
        4 => Just(data(b"hello")),
        1 => Just(frame(DATA, 8, 1, b"\x02hello\0\0")),
        2 => Just(last_data(b"bye")),
        3 => Just(trailers()),
        1 => Just(frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 9])),
        1 => Just(frame(SETTINGS, 0, 0, &[0, 1, 0, 0, 0, 0, 0, 5, 0, 0, 0x40, 0])),
        1 => Just(frame(PING, 0, 0, b"12345678")),
        1 => Just(frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 9])),
        1 => Just(frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0])),
        1 => Just(frame(RST_STREAM, 0, 1, &[0, 0, 0, 7])),
        1 => Just(frame(HEADERS, 0, 1, &block(&[(":status", "200")]))),
        1 => Just(frame(CONTINUATION, WHOLE, 1, b"")),
        1 => (any::<u8>(), any::<u8>(), 0..4_u32, prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(kind, flags, stream, bytes)| frame(kind % 11, flags, stream, &bytes)),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ]
}

fn answer() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(part(), 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_cut_of_any_input_tells_the_same(seed in any::<u8>(), bytes in answer()) {
        http2(&[&[seed], &bytes[..]].concat());
    }

    #[test]
    fn arbitrary_bytes_break_nothing(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        http2(&bytes);
    }

    #[test]
    fn messages_come_back_whole(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..12),
        size in 1..30_usize,
    ) {
        let mut frames = vec![ok()];
        frames.extend(pieces.iter().map(|piece| data(piece)));
        frames.push(trailers());
        let bytes = frames.concat();
        let cut: Vec<&[u8]> = bytes.chunks(size).collect();
        let story = UpstreamStory::tell(OriginConn::http2, &call(), &cut);
        let all = pieces.concat();
        let body = (!all.is_empty()).then(|| format!("body {}", all.escape_ascii()));
        let end = ["trailers, grpc-status: 0".to_owned(), "end 0".to_owned()];
        let told: Vec<String> = body.into_iter().chain(end).collect();
        prop_assert_eq!(&story.told[1..], &told[..]);
        prop_assert!(story.is_idle);
    }

    #[test]
    fn requests_come_back_whole(
        body_len in 0..60_000_usize,
        has_length in any::<bool>(),
        room in 300..100_000_usize,
        pairs in prop::collection::vec(("[a-z0-9_-]{1,20}", "[!-~]{0,40}"), 0..10),
    ) {
        let mut asked = http2_head(b"PUT", b"/x?y");
        for (name, value) in &pairs {
            asked.head.push(name.as_bytes(), value.as_bytes());
        }
        let settings = OriginConnSettings { keep: true, ..OriginConnSettings::default() };
        let message = asked.into();
        let ask = FuzzAsk { message, body_len, has_length, settings, first: First::Send, room };
        let story = UpstreamStory::tell(OriginConn::http2, &ask, &[&ok(), &last_data(b"")]);
        prop_assert!(story.is_idle && !story.is_broken);
        let read = read_h2(&story.output);
        prop_assert!(read.is_whole);
        prop_assert_eq!(read.body, body(body_len));
    }
}
