//! Scripts and properties: bytes in, events and bytes out, as nginx 1.30 does.

use bolide_base::SendChain;
use bolide_base::chain::CopyPolicy;
use bolide_http::{AppForm, AppMessage, Params};
use proptest::prelude::{
    Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

use super::PerRequestClient;
use crate::origin::fuzz::{
    First, FuzzAsk, UpstreamStory, body, per_request, read_scgi, read_uwsgi, uwsgi,
};
use crate::{BodySource, OriginConn, OriginConnSettings, OriginEvent, Pull, StreamOwner};

fn params(pairs: &[(&str, &str)]) -> Params {
    let mut params = Params::new();
    pairs.iter().for_each(|(name, value)| params.push(name.as_bytes(), value.as_bytes()));
    params
}

fn asked(form: AppForm, pairs: &[(&str, &str)]) -> AppMessage {
    AppMessage { form, params: params(pairs) }
}

fn scgi(pairs: &[(&str, &str)]) -> FuzzAsk {
    FuzzAsk::of(asked(AppForm::Scgi, pairs))
}

/// Runs one response, whole and in pieces of several sizes.
fn tell(ask: &FuzzAsk, bytes: &[u8]) -> UpstreamStory {
    let mut whole = UpstreamStory::tell(OriginConn::per_request, ask, &[bytes]);
    let told = whole.told.clone();
    whole.forget_warnings();
    for size in [1, 2, 5, 8, 13] {
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        let mut pieces = UpstreamStory::tell(OriginConn::per_request, ask, &pieces);
        pieces.forget_warnings();
        assert_eq!(whole, pieces, "in pieces of {size}");
    }
    whole.told = told;
    assert!(!whole.is_idle, "a connection carries one request");
    whole
}

fn told(text: &str) -> Vec<String> {
    tell(&scgi(&[]), text.as_bytes()).told
}

#[test]
fn a_packet_has_modifiers_a_length_and_pairs_and_the_body_behind_it() {
    let form = AppForm::Uwsgi { modifiers: [30, 9], text: b"a$b".as_slice().into() };
    let mut ask = FuzzAsk::of(asked(form, &[("REQUEST_URI", "/x"), ("E", "")]));
    ask.body_len = 5;
    let story = tell(&ask, b"\r\n");
    let vars = b"\x0b\0REQUEST_URI\x02\0/x\x01\0E\0\0a$b";
    let expected = [b"\x1e\x19\0\x09".as_slice(), vars, &body(5)].concat();
    assert_eq!(story.output.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

#[test]
fn a_netstring_begins_with_the_length_and_has_every_header_twice_if_need_be() {
    let mut ask = scgi(&[("SCGI", "1"), ("CONTENT_LENGTH", ""), ("A", "b")]);
    ask.body_len = 3;
    let story = tell(&ask, b"\r\n");
    let expected = b"44:CONTENT_LENGTH\x003\0SCGI\x001\0CONTENT_LENGTH\0\0A\0b\0,abc";
    assert_eq!(story.output.escape_ascii().to_string(), expected.escape_ascii().to_string());
    assert_eq!(tell(&scgi(&[]), b"\r\n").output, b"17:CONTENT_LENGTH\x000\0,");
}

#[test]
fn what_cannot_be_encoded_is_not_sent() {
    let is_broken = |ask: &FuzzAsk| {
        let story = UpstreamStory::tell(OriginConn::per_request, ask, &[]);
        assert_eq!(story.is_broken, story.output.is_empty());
        story.is_broken
    };
    assert!(is_broken(&scgi(&[("A", "b\0C\0d")])), "a value is no two headers");
    assert!(is_broken(&scgi(&[("A\0", "b")])));
    let unknown = FuzzAsk { has_length: false, body_len: 3, ..scgi(&[]) };
    assert!(is_broken(&unknown), "the length comes first");
    let large = "x".repeat(65_535 - 5 - 4);
    let with = |value: &str| FuzzAsk::of(asked(uwsgi(0), &[("A", value)]));
    assert!(!is_broken(&with(&large)));
    assert!(is_broken(&with(&(large + "y"))), "a packet has two bytes of length");
}

#[test]
fn a_replaced_value_counts_as_it_is() {
    for form in [AppForm::Scgi, uwsgi(1)] {
        let mut message = asked(form.clone(), &[("REQUEST_METHOD", "HEAD"), ("B", "c")]);
        message.params.replace(b"REQUEST_METHOD", b"GET");
        let output = tell(&FuzzAsk::of(message), b"\r\n").output;
        let read = match form {
            AppForm::Scgi => read_scgi(&output),
            AppForm::Uwsgi { .. } => read_uwsgi(&output, 1, b"text"),
        };
        let pairs = params(&[("REQUEST_METHOD", "GET"), ("B", "c")]);
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| (a.to_vec(), b.to_vec())).collect();
        assert_eq!(read.pairs, pairs);
    }
}

#[test]
fn a_response_begins_with_a_status_line_or_with_fields() {
    let head = "head 404 Nope, X-A: b";
    for line in ["HTTP/1.1 404 Nope\r\n", "HTTP/1.0 404 Nope\n"] {
        assert_eq!(told(&format!("{line}X-A: b\r\n\r\nhello")), [head, "body hello", "end 0"]);
    }
    let fields = "head 404 Nope, Status: 404 Nope, X-A: b";
    assert_eq!(told("Status: 404 Nope\r\nX-A: b\r\n\r\nhello")[0], fields);
    assert_eq!(told("X-A: b\n\nhello"), ["head 0, X-A: b", "body hello", "end 0"]);
    assert_eq!(told("\r\n"), ["head 0", "end 0"]);
    let both = "HTTP/1.1 200 OK\r\nStatus: 404 Nope\r\n\r\n";
    assert_eq!(told(both), ["head 200 OK, Status: 404 Nope", "end 0"], "the line is the status");
}

#[test]
fn what_is_no_status_line_is_read_as_a_field() {
    for line in ["HTTP/1.1 xyz OK", "HTTP/9 200", "HTTP/1.1 2000 OK", "HTTP/"] {
        assert_eq!(told(&format!("{line}\r\nA: b\r\n\r\n")), ["head 0, A: b", "end 0"], "{line}");
    }
    assert_eq!(told("HTTPS: on\r\n\r\n"), ["head 0, HTTPS: on", "end 0"]);
    assert_eq!(told("H: 1\r\n\r\n"), ["head 0, H: 1", "end 0"]);
    assert_eq!(told("junk\r\n\r\n"), ["head 0, junk: ", "end 0"]);
    let invalid = "invalid upstream sent invalid header: \\\"junk\\\\x20...\\\"";
    assert_eq!(told("junk junk\r\n\r\n"), [invalid]);
    let status = "invalid upstream sent invalid status \\\"abc\\\"";
    assert_eq!(told("Status: abc\r\n\r\n"), [status]);
    assert_eq!(told("HTTP/1.1 099 OK\r\n\r\n"), [status.replace("abc", "099")]);
}

#[test]
fn a_body_ends_at_its_length_or_with_the_connection_and_is_never_too_short() {
    let of = |length: &str, body: &str| told(&format!("Content-Length: {length}\r\n\r\n{body}"));
    assert_eq!(of("5", "hello")[1..], ["body hello", "end 0"]);
    assert_eq!(of("3", "hello")[1..], ["body hel", "excess", "end 0"]);
    let short = "error upstream prematurely closed connection";
    assert_eq!(of("6", "hello")[1..], ["body hello", short]);
    assert_eq!(of("6", "")[1..], [short]);
    assert_eq!(told(""), [short]);
    assert_eq!(told("HTTP/1.1 2"), [short]);
    assert_eq!(told("Status: 200\r\nX-A: b\r\n"), [short]);
    let chunked =
        told("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    let raw = ["head 200 OK", "body 5\\r\\nhello\\r\\n0\\r\\n\\r\\n", "end 0"];
    assert_eq!(chunked, raw, "as in nginx, only the connection frames");
    for status in ["204", "304"] {
        assert_eq!(told(&format!("HTTP/1.1 {status} N\r\n\r\nx"))[1..], ["excess", "end 0"]);
    }
}

#[test]
fn a_head_ends_a_response_to_head_and_at_the_limit() {
    let mut ask = scgi(&[]);
    ask.settings.answers_head = true;
    let bytes = b"Content-Length: 5\r\n\r\nhello";
    assert_eq!(tell(&ask, bytes).told, ["head 0, Content-Length: 5", "end 0"]);
    ask.settings.head_max = 30;
    let big = "invalid upstream sent too big header";
    for text in ["HTTP/1.1 200 This is too long for it", "X-A: this is too long for it, as well"] {
        assert_eq!(tell(&ask, text.as_bytes()).told, [big]);
    }
    assert_eq!(tell(&ask, b"HTTP/1.1 200 OK\r\nX-A: bcdef\r\n\r\n").told, [big]);
    assert_eq!(tell(&ask, b"HTTP/1.1 200 OK\r\nX-A: bcde\r\n\r\n").told.len(), 2);
}

#[test]
fn interim_responses_come_before_the_final_one_in_either_form() {
    let line = "HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx";
    assert_eq!(told(line), ["head 103 Early, Link: a", "head 200 OK", "body x", "end 0"]);
    let fields = "Status: 103\r\n\r\nStatus: 200\r\n\r\nx";
    let heads = ["head 103, Status: 103", "head 200, Status: 200", "body x", "end 0"];
    assert_eq!(told(fields), heads);
}

#[test]
fn a_switch_of_protocols_makes_a_tunnel_for_who_asked() {
    let ask = scgi(&[("HTTP_UPGRADE", "echo")]);
    for (text, head) in [
        ("HTTP/1.1 101 Sw\r\nUpgrade: echo\r\n\r\n", "head 101 Sw, Upgrade: echo"),
        ("Status: 101\r\nUpgrade: echo\r\n\r\n", "head 101, Status: 101, Upgrade: echo"),
    ] {
        let bytes = [text, "HTTP/1.1 200 OK\r\n\r\n"].concat();
        let raw = "body HTTP/1.1 200 OK\\r\\n\\r\\n";
        assert_eq!(tell(&ask, bytes.as_bytes()).told, [head, raw, "end 0"]);
        let refused = ["invalid upstream sent invalid status \\\"101\\\""];
        assert_eq!(told(text), refused);
        assert_eq!(tell(&scgi(&[("HTTP_UPGRADE", "")]), text.as_bytes()).told, refused);
    }
}

/// A client's side of a tunnel.
struct Once(&'static [u8], Pull);

impl BodySource for Once {
    fn pull(&mut self, _user: StreamOwner, _max: usize, out: &mut SendChain) -> Pull {
        out.push_slice(std::mem::take(&mut self.0));
        self.1
    }
}

#[test]
fn what_the_client_says_leaves_raw_and_a_body_has_its_length_or_is_broken() {
    let transmit = |client: &mut PerRequestClient, body: &mut Once| {
        let mut out = SendChain::new(CopyPolicy::Contiguous);
        client.transmit(1 << 20, &mut out, 7, body);
        out.contiguous().expect("only slices were pushed").to_vec()
    };
    let begun = |len| {
        let mut client = PerRequestClient::new();
        let message = asked(AppForm::Scgi, &[("HTTP_UPGRADE", "echo")]);
        client.start(&message, Some(len), &OriginConnSettings::default());
        client
    };
    let mut client = begun(0);
    transmit(&mut client, &mut Once(b"", Pull::End));
    let mut events = Vec::new();
    client.receive(b"HTTP/1.1 101 S\r\n\r\none", &mut events).expect("a switch was asked for");
    assert!(client.is_tunnel() && !client.has_output());
    client.body_ready();
    assert_eq!(transmit(&mut client, &mut Once(b"raw", Pull::End)), b"raw");
    client.handle_eof(&mut events).expect("the end of a tunnel is no error");
    assert!(matches!(events.last(), Some(OriginEvent::End { app_status: 0 })));
    let mut client = begun(9);
    transmit(&mut client, &mut Once(b"short", Pull::End));
    assert!(client.is_broken() && !client.is_request_sent());
    let mut client = begun(9);
    client.abort();
    assert!(!client.has_output() && !client.is_idle());
}

/// Valid and invalid pieces of responses.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let text = |text: &'static [u8]| Just(text.to_vec());
    prop_oneof![
        3 => text(b"HTTP/1.1 200 OK\r\n"),
        2 => text(b"Status: 404 No\r\n"),
        1 => text(b"Status: 103\r\n\r\n"),
        1 => text(b"HTTP/1.1 101 Switch\r\n"),
        1 => text(b"HTTP/1.1 x\r\n"),
        3 => text(b"Content-Length: 9\r\n"),
        6 => text(b"\r\n"),
        2 => prop::collection::vec(any::<u8>(), 0..20),
    ]
}

proptest! {
    #[test]
    fn any_cut_of_any_input_tells_the_same(
        seed in any::<u8>(),
        parts in prop::collection::vec(part(), 0..12),
    ) {
        per_request(&[&[seed], &parts.concat()[..]].concat());
    }

    #[test]
    fn arbitrary_bytes_break_nothing(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        per_request(&bytes);
    }

    #[test]
    fn a_truncated_response_is_an_error(cut in 1..40_usize) {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nmy answer";
        let story = tell(&scgi(&[]), &whole[..whole.len() - cut]);
        let last = story.told.last().cloned().unwrap_or_default();
        prop_assert!(last.starts_with("error"), "{last}");
    }

    #[test]
    fn a_request_comes_back_whole(
        pairs in prop::collection::vec(("[A-Z_]{0,9}", "[^\0]{0,300}"), 0..20),
        body_len in 0..3000_usize,
        is_scgi in any::<bool>(),
    ) {
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let form = if is_scgi { AppForm::Scgi } else { uwsgi(7) };
        let first = First::Send;
        let ask = FuzzAsk { body_len, first, ..FuzzAsk::of(asked(form, &pairs)) };
        let output = tell(&ask, b"\r\n").output;
        let read = if is_scgi { read_scgi(&output) } else { read_uwsgi(&output, 7, b"text") };
        let read_pairs: Vec<_> = read.pairs.iter().map(|(a, b)| (&a[..], &b[..])).collect();
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| (a.as_bytes(), b.as_bytes())).collect();
        prop_assert_eq!(read_pairs, pairs);
        prop_assert_eq!(read.body, body(body_len));
    }
}
