//! Properties for any input.

use bolide_base::SendChain;
use bolide_base::chain::CopyPolicy;
use bolide_http::{BodyLen, RequestBody};
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

use super::{Bench, head, text_of};
use crate::h1::fuzz::{H1Story, fuzz};
use crate::h1::{H1Settings, body};
use crate::{BodySource, Pull, StreamOwner, WireEvent};

/// Valid and invalid parts of requests.
const WORDS: &[&[u8]] = &[
    b"GET ",
    b"POST ",
    b"HEAD ",
    b"OPTIONS ",
    b"get ",
    b"/",
    b"/a?b",
    b"*",
    b"http://h/",
    b" ",
    b" HTTP/1.1\r\n",
    b" HTTP/1.0\r\n",
    b" HTTP/1.1\n",
    b" HTTP/2.0\r\n",
    b"\r\n",
    b"\n",
    b"\r",
    b"Host: a\r\n",
    b"Host: b\n",
    b"Content-Length: 3\r\n",
    b"Content-Length: 0\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"Connection: keep-alive\r\n",
    b"Expect: 100-continue\r\n",
    b"X-Y: z\r\n",
    b"Upgrade: echo\r\n",
    b"X_Y: z\r\n",
    b"X(: z\r\n",
    b": ",
    b"\t",
    b"3\r\nabc\r\n",
    b"0\r\n",
    b"0\r\n\r\n",
    b"abc",
    b"5;x\r\n",
    b"\0",
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
];

fn word() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        12 => (0..WORDS.len()).prop_map(|at| WORDS[at].to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 1..4),
        1 => (1..400_usize).prop_map(|len| vec![b'A'; len]),
    ]
}

/// A sequence of valid requests, each with the body that its reader gets.
fn conversation() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
    let body = proptest::collection::vec(any::<u8>(), 0..40);
    let request = (any::<bool>(), body, 1..9_usize).prop_map(|(chunked, body, cut)| {
        let mut text = b"POST /x HTTP/1.1\r\nHost: a\r\n".to_vec();
        if chunked {
            text.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
            for chunk in body.chunks(cut) {
                text.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
                text.extend_from_slice(chunk);
                text.extend_from_slice(b"\r\n");
            }
            text.extend_from_slice(b"0\r\n\r\n");
        } else {
            text.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            text.extend_from_slice(&body);
        }
        let mut told = body;
        if chunked || !told.is_empty() {
            told.push(b'.');
        }
        (text, told)
    });
    proptest::collection::vec(request, 1..6)
}

/// A body that comes in pieces of one length, or less where there is no room.
struct Source<'a> {
    left: &'a [u8],
    piece: usize,
}

impl BodySource for Source<'_> {
    fn pull(&mut self, _user: StreamOwner, max: usize, out: &mut SendChain) -> Pull {
        let (piece, left) = self.left.split_at(self.piece.min(max).min(self.left.len()));
        self.left = left;
        out.push_bytes(&bytes::Bytes::copy_from_slice(piece));
        if piece.is_empty() { Pull::End } else { Pull::More }
    }
}

/// Decodes a chunked body by lines, as a client would.
fn unchunk(mut text: &str) -> String {
    let mut content = String::new();
    loop {
        let (size, rest) = text.split_once("\r\n").unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        content.push_str(&rest[..size]);
        text = rest[size..].strip_prefix("\r\n").unwrap();
        if size == 0 {
            assert_eq!(text, "");
            return content;
        }
    }
}

proptest! {
    #[test]
    fn the_cut_of_the_input_never_changes_its_meaning(
        seed in any::<u8>(),
        words in proptest::collection::vec(word(), 0..30),
    ) {
        fuzz(&[vec![seed], words.concat()].concat());
    }

    #[test]
    fn random_bytes_never_panic(data in proptest::collection::vec(any::<u8>(), 0..600)) {
        fuzz(&data);
    }

    #[test]
    fn good_pipelined_requests_are_all_answered_whole(
        requests in conversation(),
        cut in 1..50_usize,
        seed in prop_oneof![Just(0_u8), Just(8), Just(13)],
    ) {
        let (texts, told): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
        let story = H1Story::tell(&H1Settings::default(), seed, &texts.concat(), cut);
        prop_assert_eq!((story.sent, story.broken), (texts.len(), false));
        let answers = story.output.windows(15).filter(|w| w == b"HTTP/1.1 200 OK").count();
        prop_assert_eq!(answers, texts.len());
        // Seeds without 8 respond before the body and never read it.
        prop_assert_eq!(story.bodies, if seed & 8 == 0 { Vec::new() } else { told.concat() });
    }

    #[test]
    fn chunked_answers_are_read_back_whole(
        content in "[a-z]{0,600}",
        cut in 1..99_usize,
        room in 1..400_usize,
        shared in any::<bool>(),
    ) {
        let mut bench = Bench::new();
        let (stream, _) = bench.request(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        bench.respond(stream, &head(200, BodyLen::Unknown)).unwrap();
        let mut source = Source { left: content.as_bytes(), piece: cut };
        let mut text = String::new();
        while bench.conn.has_output() {
            let weave = if shared { CopyPolicy::Shared(8) } else { CopyPolicy::Contiguous };
            let mut out = SendChain::new(weave);
            bench.conn.transmit(room, &mut out, &mut bench.events, &mut source);
            text.push_str(&text_of(&out));
        }
        let (_, chunks) = text.split_once("\r\n\r\n").unwrap();
        prop_assert_eq!(unchunk(chunks), content.clone());

        let mut decoder = body::BodyDecoder::chunked();
        let mut read = Vec::new();
        let (used, progress) =
            decoder.decode(chunks.as_bytes(), usize::MAX, |piece| read.extend_from_slice(piece));
        prop_assert_eq!((used, progress), (chunks.len(), body::DecodeProgress::End));
        prop_assert_eq!(read, content.into_bytes());
    }
}

proptest! {
    #[test]
    fn a_head_that_repeats_itself_is_read_as_the_first_time(
        fields in proptest::collection::vec(0..WORDS.len(), 0..4),
        plain in any::<bool>(),
        behind in proptest::collection::vec(any::<u8>(), 0..4),
    ) {
        let line: &[u8] = if plain { b"GET /a HTTP/1.1\r\n" } else { b"HEAD / HTTP/1.0\n" };
        let mut input = line.to_vec();
        for field in fields {
            input.extend_from_slice(WORDS[field]);
        }
        input.extend_from_slice(b"Host: h\r\nConnection: keep-alive\r\n\r\n");
        let tell = |bench: &mut Bench| {
            let used = bench.conn.receive(
                &bench.settings,
                &input,
                &mut bench.heads,
                &mut bench.events,
            );
            let story = match bench.events.pop() {
                Some(WireEvent::Request { stream, head }) if head.body == RequestBody::None => {
                    bench.conn.bind(stream, 7);
                    let story = format!("{used} {head:?}");
                    let answer = bench.answer(stream, b"x");
                    bench.heads.put(head);
                    bench.events.clear();
                    Some((story, answer))
                }
                _ => None,
            };
            (story, bench.conn.is_idle())
        };
        let mut bench = Bench::new();
        let first = tell(&mut bench);
        let mut last = first.clone();
        for _ in 0..4 {
            if !last.1 || last.0.is_none() {
                return Ok(());
            }
            last = tell(&mut bench);
            prop_assert_eq!(&last, &first);
        }
        // Bytes behind the same head in the same read are not consumed with it.
        let mut longer = input.clone();
        longer.extend_from_slice(&behind);
        let used = bench.receive(&longer);
        prop_assert_eq!(used, input.len());
    }
}
