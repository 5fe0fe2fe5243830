//! Scripts and properties: bytes in, events and bytes out, as nginx 1.30 does.

use bolide_base::SendChain;
use bolide_base::chain::CopyPolicy;
use bolide_http::Params;
use bytes::Bytes;
use proptest::prelude::{
    Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

use super::record::HEADER_LEN;
use super::{FcgiClient, STDIN_MAX};
use crate::origin::fuzz::{First, FuzzAsk, UpstreamStory, body, read_fcgi};
use crate::{BodySource, OriginConn, OriginConnSettings, OriginEvent, Pull, StreamOwner};

const STDOUT: u8 = 6;
const STDERR: u8 = 7;
const HEAD: &[u8] = b"X-A: b\r\n\r\n";

fn padded(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    let header = [1, kind, 0, 1, high, low, padding, 0];
    [&header, content, &vec![0xee; usize::from(padding)]].concat()
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    padded(kind, content, 0)
}

fn end() -> Vec<u8> {
    record(3, &[0; 8])
}

fn answer(records: &[Vec<u8>]) -> Vec<u8> {
    records.concat()
}

/// Runs these bytes in one piece, and checks that no split changes the result.
fn tell(ask: &FuzzAsk, bytes: &[u8]) -> UpstreamStory {
    let whole = UpstreamStory::tell(OriginConn::fcgi, ask, &[bytes]);
    for size in [1, 2, 5, 8, 13] {
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        assert_eq!(
            whole,
            UpstreamStory::tell(OriginConn::fcgi, ask, &pieces),
            "in pieces of {size}"
        );
    }
    whole
}

fn told(bytes: &[u8]) -> Vec<String> {
    tell(&FuzzAsk::default(), bytes).told
}

fn stdout(text: &str) -> Vec<u8> {
    record(STDOUT, text.as_bytes())
}

#[test]
fn an_answer_is_head_body_end_in_any_framing() {
    let expected = ["head 0, X-A: b", "body hello", "end 0"];
    let whole = record(STDOUT, b"X-A: b\r\n\r\nhello");
    assert_eq!(told(&answer(&[whole.clone(), record(STDOUT, b""), end()])), expected);
    assert_eq!(told(&answer(&[whole, end()])), expected, "PHP does not end the stream");
    let head = [stdout("X-"), padded(STDOUT, b"A: b\r", 255), stdout("\n\r"), stdout("\nhe")];
    let rest = [padded(STDOUT, b"l", 1), stdout("lo"), padded(3, &[0; 8], 8)];
    assert_eq!(told(&[head.concat(), rest.concat()].concat()), expected);
}

#[test]
fn an_end_tells_the_status_of_the_application() {
    let bytes = answer(&[record(STDOUT, HEAD), record(3, &[0, 0, 1, 7, 2, 0, 0, 0])]);
    assert_eq!(told(&bytes), ["head 0, X-A: b", "end 263"], "the protocol's status does not count");
    assert_eq!(
        told(&answer(&[record(STDOUT, HEAD), record(3, &[9])])).last().unwrap(),
        "end 150994944"
    );
}

#[test]
fn the_error_stream_is_told_by_records_wherever_they_stand() {
    let bytes = answer(&[
        record(STDERR, b"one\ntwo"),
        stdout("X-A: b\r\n"),
        padded(STDERR, b"three", 3),
        stdout("\r\nhe"),
        record(STDERR, b"four"),
        stdout("llo"),
        record(STDOUT, b""),
        record(STDERR, b"late"),
        record(STDERR, b""),
        end(),
    ]);
    let head = ["stderr one\\ntwo", "stderr three", "head 0, X-A: b", "body he"];
    let rest = ["stderr four", "body llo", "stderr late", "end 0"];
    assert_eq!(told(&bytes), [head, rest].concat());
    let cut = &record(STDERR, b"I die")[..11];
    let expected = ["stderr I d", "error upstream prematurely closed connection"];
    assert_eq!(told(cut), expected, "what was said before the end is told");
}

#[test]
fn framing_that_nginx_refuses_is_refused_in_its_words() {
    let change = |at: usize, byte: u8| {
        let mut bytes = record(STDOUT, HEAD);
        bytes[at] = byte;
        bytes
    };
    let cases = [
        (change(0, 2), "unsupported FastCGI protocol version: 2"),
        (change(1, 11), "invalid FastCGI record type: 11"),
        (change(1, 5), "invalid FastCGI record type: 5"),
        (change(1, 0), "invalid FastCGI record type: 0"),
        (change(2, 2), "unexpected FastCGI request id high byte: 2"),
        (change(3, 0), "unexpected FastCGI request id low byte: 0"),
        (end(), "unexpected FastCGI record: 3"),
        ([stdout("X-A: b\r\n"), end()].concat(), "unexpected FastCGI record: 3"),
    ];
    for (bytes, text) in cases {
        assert_eq!(told(&bytes), [format!("invalid upstream sent {text}")]);
    }
    let bytes = [record(STDOUT, HEAD), stdout("x"), change(0, 3)].concat();
    let text = "invalid upstream sent unsupported FastCGI protocol version: 3";
    assert_eq!(told(&bytes), ["head 0, X-A: b", "body x", text], "good bytes stay good");
}

#[test]
fn an_answer_that_stops_before_its_end_is_an_error() {
    let closed = "error upstream prematurely closed connection";
    let stdout_closed = "invalid upstream prematurely closed FastCGI stdout";
    let request_closed = "invalid upstream prematurely closed FastCGI request";
    assert_eq!(told(b""), [closed]);
    assert_eq!(told(&stdout("X-A: b\r\n")), [closed]);
    assert_eq!(told(&answer(&[stdout("hello"), record(STDOUT, b"")])), [stdout_closed]);
    let head = "head 0, X-A: b";
    assert_eq!(told(&record(STDOUT, HEAD)), [head, closed]);
    let short = stdout("Content-Length: 5\r\n\r\nhell");
    let head = "head 0, Content-Length: 5";
    assert_eq!(told(&short), [head, "body hell", closed]);
    let bytes = answer(&[short.clone(), record(STDOUT, b""), end()]);
    assert_eq!(told(&bytes), [head, "body hell", stdout_closed]);
    assert_eq!(told(&answer(&[short, end()])), [head, "body hell", request_closed]);
}

#[test]
fn the_end_of_the_connection_ends_what_is_complete() {
    let head = ["head 0, X-A: b", "body x", "end 0"];
    let body = stdout("X-A: b\r\n\r\nx");
    assert_eq!(told(&answer(&[body.clone(), record(STDOUT, b"")])), head);
    assert_eq!(told(&[body, end()[..9].to_vec()].concat()), head);
    let expected = ["head 0, Content-Length: 1", "body x", "end 0"];
    assert_eq!(told(&stdout("Content-Length: 1\r\n\r\nx")), expected);
}

#[test]
fn a_body_is_cut_where_its_length_says() {
    let expected = ["head 0, Content-Length: 3", "body hel", "excess", "end 0"];
    let story =
        tell(&FuzzAsk::default(), &answer(&[stdout("Content-Length: 3\r\n\r\nhello"), end()]));
    assert_eq!(story.told, expected);
    assert!(!story.is_idle);
    let story = told(&answer(&[stdout("Content-Length: 3\r\n\r\nhel"), stdout("lo"), end()]));
    assert_eq!(story, expected);
    for status in [204, 304] {
        let bytes = answer(&[stdout(&format!("Status: {status}\r\n\r\nx")), end()]);
        assert_eq!(told(&bytes), [format!("head {status}"), "excess".into(), "end 0".into()]);
        let bytes = answer(&[stdout(&format!("Status: {status}\nContent-Length: 9\n\n")), end()]);
        let head = format!("head {status}, Content-Length: 9");
        assert_eq!(told(&bytes), [head, "end 0".into()]);
    }
}

#[test]
fn lengths_must_be_one_number() {
    let cases = [
        ("Content-Length: abc", "invalid \"Content-Length\" header: \"Content-Length: abc\""),
        ("Content-Length:", "invalid \"Content-Length\" header: \"Content-Length: \""),
        ("Content-Length: -1", "invalid \"Content-Length\" header: \"Content-Length: -1\""),
        (
            "Content-Length: 99999999999999999999",
            "invalid \"Content-Length\" header: \"Content-Length: 99999999999999999999\"",
        ),
        (
            "Content-Length: 5\nContent-Length: 6",
            "duplicate header line: \"Content-Length: 6\", previous value: \"Content-Length: 5\"",
        ),
        (
            "Content-Length: 5\nTransfer-Encoding: chunked",
            "\"Content-Length\" and \"Transfer-Encoding\" headers at the same time",
        ),
        (
            "Transfer-Encoding: chunked\nContent-Length: 5",
            "\"Content-Length\" and \"Transfer-Encoding\" headers at the same time",
        ),
        ("Transfer-Encoding: identity", "unknown \"Transfer-Encoding\": \"identity\""),
        ("Transfer-Encoding:", "unknown \"Transfer-Encoding\": \"\""),
        ("Transfer-Encoding: gzip, chunked", "unknown \"Transfer-Encoding\": \"gzip, chunked\""),
        (
            "Transfer-Encoding: gzip\nTransfer-Encoding: chunked",
            "unknown \"Transfer-Encoding\": \"gzip\"",
        ),
        (
            "Transfer-Encoding: chunked\nTransfer-Encoding: Chunked",
            "duplicate header line: \"Transfer-Encoding: Chunked\", previous value: \
             \"Transfer-Encoding: chunked\"",
        ),
    ];
    for (fields, text) in cases {
        let text = text.replace('"', "\\\"");
        let expected = format!("invalid upstream sent {text}");
        assert_eq!(told(&stdout(&format!("{fields}\n\n"))), [expected]);
    }
    let coded = answer(&[stdout("Transfer-Encoding: CHUNKED\n\n0\n"), end()]);
    assert_eq!(told(&coded), ["head 0", "body 0\\n", "end 0"], "the field means nothing here");
}

#[test]
fn an_answer_to_head_has_no_body() {
    let mut ask = FuzzAsk::default();
    ask.settings.answers_head = true;
    for rest in ["", "hello", "hello and more"] {
        let bytes = answer(&[stdout(&format!("Content-Length: 5\r\n\r\n{rest}")), end()]);
        let story = tell(&ask, &bytes);
        assert_eq!(story.told, ["head 0, Content-Length: 5", "end 0"]);
        assert!(story.is_idle);
    }
}

#[test]
fn early_heads_come_before_the_answers_own() {
    let bytes = stdout("Status: 103\nLink: </a>\n\nStatus: 100\n\nStatus: 404 N\n\nx");
    let expected = ["head 103, Link: </a>", "head 100", "head 404 N", "body x", "end 0"];
    assert_eq!(told(&answer(&[bytes, end()])), expected);
    let expected = ["invalid upstream sent invalid status \\\"101\\\""];
    assert_eq!(told(&answer(&[stdout("Status: 101\n\nx"), end()])), expected);
    let story = told(&stdout(&"Status: 103\n\n".repeat(40)));
    assert_eq!(story.len(), 33);
    assert_eq!(story[32], "invalid upstream sent too many early headers");
}

#[test]
fn the_limit_of_a_head_counts_the_framing_around_it() {
    let mut ask = FuzzAsk::default();
    ask.settings.head_max = 4096;
    for (more, passes) in [(0, true), (1, false)] {
        let name = "X: ".to_owned() + &"a".repeat(1000);
        let value = "a".repeat(4096 - 16 - 7 - 1000 + more) + "\r\n\r\n";
        let bytes = answer(&[stdout(&name), record(STDERR, &[b'e'; 9000]), stdout(&value), end()]);
        let story = tell(&ask, &bytes);
        assert_eq!(story.told.last().unwrap() == "end 0", passes);
        let is_too_big = story.told.last().unwrap() == "invalid upstream sent too big header";
        assert_eq!(is_too_big, !passes);
    }
}

#[test]
fn a_connection_is_used_again_only_when_nothing_is_left_of_its_request() {
    let bytes = answer(&[record(STDOUT, HEAD), end()]);
    let mut ask = FuzzAsk { body_len: 3000, ..FuzzAsk::default() };
    assert!(tell(&ask, &bytes).is_idle);
    assert!(!tell(&ask, &[bytes.clone(), stdout("more")].concat()).is_idle);
    assert!(!tell(&ask, &bytes[..bytes.len() - 1]).is_idle);
    ask.first = First::Receive;
    let story = tell(&ask, &bytes);
    assert_eq!(story.told, ["head 0, X-A: b", "end 0"], "an early answer is an answer");
    assert!(!story.is_idle && story.output.is_empty(), "nothing leaves behind it");
    ask = FuzzAsk::default();
    ask.settings.keep = false;
    let story = tell(&ask, &bytes);
    assert!(!story.is_idle && !read_fcgi(&story.output).keeps);
}

#[test]
fn one_connection_carries_one_request_after_the_other() {
    let (ask, mut conn, mut events) = (FuzzAsk::default(), FcgiClient::new(), Vec::new());
    for round in 1..4_u8 {
        conn.start(&Params::new(), Some(0), &ask.settings);
        let mut out = SendChain::new(CopyPolicy::Contiguous);
        conn.transmit(10, &mut out, 7, &mut Pieces::default());
        let request = read_fcgi(out.contiguous().unwrap());
        assert!(request.is_whole && request.keeps && conn.is_request_sent());
        let bytes = answer(&[record(STDOUT, HEAD), record(3, &[0, 0, 0, round, 0, 0, 0, 0])]);
        conn.receive(&bytes, &mut events).unwrap();
        let status = match events.pop() {
            Some(OriginEvent::End { app_status }) => app_status,
            other => panic!("{other:?}"),
        };
        assert!(status == u32::from(round) && conn.is_idle());
    }
    assert!(
        conn.receive(b"x", &mut events).is_ok() && !conn.is_idle(),
        "the bytes belong to no request"
    );
    let mut fresh = FcgiClient::new();
    assert!(fresh.receive(b"x", &mut events).is_err() && !fresh.is_idle());
}

/// A body of prepared pieces.
#[derive(Default)]
struct Pieces(Vec<(&'static [u8], Pull)>);

impl BodySource for Pieces {
    fn pull(&mut self, _user: StreamOwner, max: usize, out: &mut SendChain) -> Pull {
        assert!(!self.0.is_empty(), "a body that is pending is not asked");
        let (bytes, pull) = self.0.remove(0);
        assert!(bytes.len() <= max, "{} > {max}", bytes.len());
        out.push_bytes(&Bytes::from_static(bytes));
        pull
    }
}

fn started(body_len: Option<u64>) -> FcgiClient {
    let mut conn = FcgiClient::new();
    conn.start(&Params::new(), body_len, &OriginConnSettings::default());
    let mut out = SendChain::new(CopyPolicy::Contiguous);
    conn.transmit(1, &mut out, 7, &mut Pieces::default());
    assert_eq!(out.len(), if body_len == Some(0) { 32 } else { 24 }, "what is queued leaves");
    conn
}

fn transmit(conn: &mut FcgiClient, pieces: &mut Pieces) -> Vec<u8> {
    let mut out = SendChain::new(CopyPolicy::Contiguous);
    conn.transmit(1000, &mut out, 7, pieces);
    out.contiguous().unwrap().to_vec()
}

#[test]
fn a_body_is_framed_as_it_is_pulled_and_a_pause_is_no_end() {
    let mut conn = started(None);
    let mut pieces = Pieces(vec![
        (b"", Pull::Pending),
        (b"ab", Pull::More),
        (b"c", Pull::Pending),
        (b"", Pull::More),
        (b"d", Pull::End),
    ]);
    assert!(conn.has_output() && transmit(&mut conn, &mut pieces).is_empty());
    assert!(!conn.has_output() && !conn.is_request_sent());
    conn.body_ready();
    assert_eq!(transmit(&mut conn, &mut pieces), record(5, b"abc"));
    conn.body_ready();
    assert!(transmit(&mut conn, &mut pieces).is_empty(), "nothing was there");
    assert!(conn.has_output());
    assert_eq!(transmit(&mut conn, &mut pieces), [record(5, b"d"), record(5, b"")].concat());
    assert!(conn.is_request_sent() && !conn.has_output());
    let mut conn = started(Some(9));
    assert_eq!(transmit(&mut conn, &mut Pieces(vec![(b"", Pull::End)])), record(5, b""));
}

#[test]
fn a_broken_body_never_looks_complete() {
    let mut conn = started(None);
    let mut pieces = Pieces(vec![(b"ab", Pull::More), (b"", Pull::Broken)]);
    assert_eq!(transmit(&mut conn, &mut pieces), record(5, b"ab"));
    assert!(conn.is_broken() && !conn.has_output() && !conn.is_request_sent());
}

#[test]
fn an_abort_stands_between_records_and_only_where_an_answer_is_awaited() {
    let mut conn = started(None);
    assert_eq!(transmit(&mut conn, &mut Pieces(vec![(b"ab", Pull::Pending)])), record(5, b"ab"));
    conn.body_ready();
    conn.abort();
    assert!(conn.has_output());
    assert_eq!(transmit(&mut conn, &mut Pieces::default()), record(2, b""));
    assert!(!conn.has_output() && !conn.is_idle() && !conn.is_request_sent());
    let mut idle = FcgiClient::new();
    idle.abort();
    assert!(!idle.has_output() && idle.is_idle());
}

#[test]
fn shared_pieces_and_files_of_a_body_stay_what_they_are() {
    let mut conn = started(None);
    let mut out = SendChain::new(CopyPolicy::Shared(4));
    let mut pieces = Pieces(vec![(b"abc", Pull::More), (b"defgh", Pull::More), (b"i", Pull::End)]);
    conn.transmit(1000, &mut out, 7, &mut pieces);
    assert_eq!(out.segments().len(), 3, "the middle was not copied");
    assert_eq!(out.len(), 8 + 9 + 8);
    match out.segments()[0] {
        bolide_base::chain::Segment::Inline(start, end) => {
            let header = &out.inline(start, end)[..HEADER_LEN];
            assert_eq!(header, &record(5, b"abcdefghi")[..HEADER_LEN]);
        }
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_pair_goes_on_in_another_record_only_if_it_fits_in_none() {
    let mut params = Params::new();
    params.push(b"A", &[b'a'; 40_000]);
    params.push(b"B", &[b'b'; 40_000]);
    params.push(b"C", &[b'c'; 200_000]);
    params.push(b"", b"");
    let story = tell(&FuzzAsk::of(params.clone()), b"");
    let request = read_fcgi(&story.output);
    assert!(request.pairs.iter().map(|(n, v)| (&n[..], &v[..])).eq(params.iter()));
    let sizes: Vec<_> = request.records.iter().map(|&(_, len)| len).collect();
    let c = 200_006 - 3 * 65_535;
    assert_eq!(sizes, [8, 40_006, 40_006, 65_535, 65_535, 65_535, c + 2, 0, 0]);
}

/// A valid or almost valid record of an application.
fn any_record() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        Just("X-A: b\r\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("Content-Length: 12\n".to_owned()),
        Just("Status: 103\n\n".to_owned()),
        "[ -~\r\n]{0,30}",
    ];
    let kind = prop_oneof![6 => Just(6_u8), 2 => Just(7_u8), 1 => Just(3_u8), 1 => any::<u8>()];
    (kind, text, 0..9_u8).prop_map(|(kind, text, padding)| padded(kind, text.as_bytes(), padding))
}

proptest! {
    #[test]
    fn no_cut_of_the_input_changes_what_is_told(
        records in prop::collection::vec(any_record(), 0..12),
        cuts in prop::collection::vec(0..400_usize, 0..10),
        keep in any::<bool>(),
    ) {
        let bytes = [vec![record(STDOUT, HEAD); usize::from(keep)], records].concat().concat();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        let settings = OriginConnSettings { head_max: 120, keep, answers_head: false };
        let ask = FuzzAsk { settings, ..FuzzAsk::default() };
        let whole = UpstreamStory::tell(OriginConn::fcgi, &ask, &[&bytes]);
        prop_assert_eq!(whole, UpstreamStory::tell(OriginConn::fcgi, &ask, &pieces));
    }

    #[test]
    fn pairs_and_body_arrive_as_they_were(
        pairs in prop::collection::vec((0..300_usize, 0..300_usize), 0..50),
        large in prop::collection::vec(0..150_000_usize, 0..3),
        body_len in prop_oneof![Just(0_usize), 1..200_usize, 1..200_000_usize],
        room in 9..100_000_usize,
    ) {
        let mut params = Params::new();
        let sizes = pairs.into_iter().chain(large.into_iter().map(|len| (5, len)));
        for (at, (name, value)) in sizes.enumerate() {
            let letter = (at % 26) as u8;
            params.push(&vec![b'A' + letter; name], &vec![b'a' + letter; value]);
        }
        let ask = FuzzAsk { body_len, room, ..FuzzAsk::of(params.clone()) };
        let story = UpstreamStory::tell(OriginConn::fcgi, &ask, &[]);
        let request = read_fcgi(&story.output);
        prop_assert!(request.pairs.iter().map(|(n, v)| (&n[..], &v[..])).eq(params.iter()));
        prop_assert!(request.is_whole && request.body == body(body_len));
        let stdin_max = STDIN_MAX.min(room - HEADER_LEN);
        prop_assert!(request.records.iter().all(|&(kind, len)| kind != 5 || len <= stdin_max));
    }
}
