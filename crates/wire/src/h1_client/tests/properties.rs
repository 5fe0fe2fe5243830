//! Properties for any bytes.

use proptest::prelude::{
    Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

use super::{get, tell};
use crate::origin::fuzz::{
    First, FuzzAsk, UpstreamStory, body, http, http_head, read_chunks, read_http,
};
use crate::{OriginConn, OriginConnSettings};

/// Valid and invalid pieces of responses.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let text = |text: &'static [u8]| Just(text.to_vec());
    prop_oneof![
        4 => text(b"HTTP/1.1 200 OK\r\n"),
        1 => text(b"HTTP/1.0 404\n"),
        1 => text(b"HTTP/1.1 103 Early\r\nLink: a\r\n\r\n"),
        1 => text(b"HTTP/1.1 101 Switch\r\n"),
        1 => text(b"HTTP/1.1 204 None\r\n"),
        3 => text(b"Content-Length: 9\r\n"),
        4 => text(b"Transfer-Encoding: chunked\r\n"),
        1 => text(b"Connection: close\r\n"),
        6 => text(b"\r\n"),
        3 => text(b"3;x\r\nabc\r\n"),
        2 => text(b"0\r\n"),
        1 => text(b"X-T: v\r\n"),
        2 => prop::collection::vec(any::<u8>(), 0..20),
    ]
}

fn answer() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(part(), 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_cut_of_any_input_tells_the_same(seed in any::<u8>(), bytes in answer()) {
        http(&[&[seed], &bytes[..]].concat());
    }

    #[test]
    fn arbitrary_bytes_break_nothing(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        http(&bytes);
    }

    #[test]
    fn chunked_bodies_come_back_whole(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..12),
        cuts in prop::collection::vec(1..30_usize, 1..8),
    ) {
        let mut bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for piece in &pieces {
            bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        let (mut rest, mut cut) = (bytes.as_slice(), Vec::new());
        for size in cuts.iter().cycle() {
            let (piece, behind) = rest.split_at(rest.len().min(*size));
            if piece.is_empty() {
                break;
            }
            cut.push(piece);
            rest = behind;
        }
        let story = UpstreamStory::tell(OriginConn::http, &get(), &cut);
        let all = pieces.concat();
        let body = (!all.is_empty()).then(|| format!("body {}", all.escape_ascii()));
        let told: Vec<String> = body.into_iter().chain(["end 0".to_owned()]).collect();
        prop_assert_eq!(&story.told[1..], &told[..]);
        prop_assert!(story.is_idle);
    }

    #[test]
    fn requests_come_back_whole(
        body_len in 0..50_000_usize,
        has_length in any::<bool>(),
        room in 300..100_000_usize,
        pairs in prop::collection::vec(("[!-9;-~]{1,20}", "[ -~]{0,40}"), 0..10),
    ) {
        let mut head = http_head(b"PUT", b"/x?y");
        for (name, value) in &pairs {
            head.push(name.as_bytes(), value.as_bytes());
        }
        let settings = OriginConnSettings { keep: true, ..OriginConnSettings::default() };
        let first = First::Send;
        let message = head.into();
        let ask = FuzzAsk { message, body_len, has_length, settings, first, room };
        let story = UpstreamStory::tell(OriginConn::http, &ask, &[b"HTTP/1.1 204 N\r\n\r\n"]);
        prop_assert!(story.is_idle && !story.is_broken);
        let mut read = read_http(&story.output);
        if !has_length {
            (read.body, read.is_whole) = read_chunks(&read.body);
        }
        prop_assert!(read.is_whole);
        prop_assert_eq!(read.body, body(body_len));
        prop_assert_eq!(read.line, b"PUT /x?y HTTP/1.1");
        let all = ask.message.pairs().map(|(a, b)| (a.to_vec(), b.to_vec())).collect::<Vec<_>>();
        prop_assert_eq!(read.pairs, all);
    }

    #[test]
    fn answers_with_a_length_come_back_whole(content in prop::collection::vec(any::<u8>(), 1..99)) {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", content.len());
        let story = tell(&get(), &[head.as_bytes(), &content].concat());
        prop_assert_eq!(&story.told[1], &format!("body {}", content.escape_ascii()));
        prop_assert!(story.is_idle);
    }
}
