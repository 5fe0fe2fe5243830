//! Scripts and properties: bytes in, events and bytes out, as PHP's lsphp does.

use bolide_base::SendChain;
use bolide_base::chain::CopyPolicy;
use bolide_http::Params;
use proptest::prelude::{
    Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

use super::LsapiClient;
use crate::origin::fuzz::{First, FuzzAsk, UpstreamStory, body, cgi_params, read_lsapi};
use crate::{BodySource, OriginConn, OriginConnSettings, OriginEvent, Pull, StreamOwner};

fn packet(kind: u8, content: &[u8]) -> Vec<u8> {
    let size = (content.len() as u32 + 8).to_le_bytes();
    [&[b'L', b'S', kind, 0], &size[..], content].concat()
}

fn head(status: i32, lines: &[&str]) -> Vec<u8> {
    let mut content = (lines.len() as i32).to_le_bytes().to_vec();
    content.extend_from_slice(&status.to_le_bytes());
    for line in lines {
        content.extend_from_slice(&(line.len() as u16 + 1).to_le_bytes());
    }
    for line in lines {
        content.extend_from_slice(line.as_bytes());
        content.push(0);
    }
    packet(3, &content)
}

fn stream(text: &str) -> Vec<u8> {
    packet(4, text.as_bytes())
}

fn end() -> Vec<u8> {
    packet(5, b"")
}

fn tell(ask: &FuzzAsk, bytes: &[u8]) -> UpstreamStory {
    let whole = UpstreamStory::tell(OriginConn::lsapi, ask, &[bytes]);
    for size in [1, 2, 5, 8, 13] {
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        assert_eq!(
            whole,
            UpstreamStory::tell(OriginConn::lsapi, ask, &pieces),
            "in pieces of {size}"
        );
    }
    whole
}

fn told(bytes: &[u8]) -> Vec<String> {
    tell(&FuzzAsk::default(), bytes).told
}

#[test]
fn an_answer_is_head_body_end() {
    let bytes = [
        packet(6, b"\0PID\x01\x02\0\0"),
        packet(7, b""),
        head(404, &["X-A: b", "Set-Cookie: c", "Set-Cookie: d"]),
        stream("hel"),
        packet(6, b"oops\n"),
        stream(""),
        stream("lo"),
        end(),
    ];
    let head = "head 404, X-A: b, Set-Cookie: c, Set-Cookie: d";
    let story = tell(&FuzzAsk::default(), &bytes.concat());
    assert_eq!(story.told, [head, "body hel", "stderr oops\\n", "body lo", "end 0"]);
    assert!(story.is_idle);
}

#[test]
fn a_status_field_overrules_the_packets_and_is_not_passed_on() {
    let first = |lines: &[&str]| told(&[head(200, lines), end()].concat()).remove(0);
    assert_eq!(first(&["X-A: b", "Status: 503"]), "head 503, X-A: b");
    assert_eq!(first(&["status: 404 Nope", "Status: 500"]), "head 404 Nope");
    for bad in ["", "abc", "20", "099", "101", "1000"] {
        let said = format!("Status: {bad}");
        let text = format!("invalid upstream sent invalid status \\\"{bad}\\\"");
        assert_eq!(first(&[&said]), text);
    }
    let early = [head(200, &["Status: 103", "Link: </a>"]), head(200, &[]), end()].concat();
    assert_eq!(told(&early), ["head 103, Link: </a>", "head 200", "end 0"]);
}

#[test]
fn integers_have_the_order_that_the_flag_names() {
    let content = [&[0, 0, 0, 1, 0, 0, 1, 0x94, 0, 7], b"X-A: b\0".as_slice()].concat();
    let big = |kind, content: &[u8]| {
        let size = (content.len() as u32 + 8).to_be_bytes();
        [&[b'L', b'S', kind, 1], &size[..], content].concat()
    };
    let bytes = [big(3, &content), big(4, b"x"), big(5, b"")].concat();
    assert_eq!(told(&bytes), ["head 404, X-A: b", "body x", "end 0"]);
}

#[test]
fn packets_that_make_no_sense_are_refused() {
    let cases: [(Vec<u8>, &str); 9] = [
        (b"HTTP/1.1".to_vec(), "upstream sent invalid LSAPI packet"),
        (packet(77, b""), "upstream sent invalid LSAPI packet"),
        (b"LS\x05\0\x07\0\0\0".to_vec(), "upstream sent invalid LSAPI packet"),
        (b"LS\x05\0\xff\xff\xff\xff".to_vec(), "upstream sent invalid LSAPI packet"),
        (packet(1, b""), "upstream sent unexpected LSAPI packet"),
        (stream("x"), "upstream sent unexpected LSAPI packet"),
        (end(), "upstream ended its answer before its header"),
        (packet(9, b""), "upstream sent LSAPI internal error"),
        (packet(3, &[0; 9000]), "upstream sent too big header"),
    ];
    for (bytes, text) in cases {
        assert_eq!(told(&bytes), [format!("invalid {text}")]);
    }
}

#[test]
fn heads_whose_numbers_do_not_fit_are_refused() {
    let cut = "invalid upstream sent cut LSAPI header";
    for content in [
        &b""[..],
        b"\x01\0\0\0\xc8\0\0\0",
        b"\xff\xff\xff\x7f\xc8\0\0\0",
        b"\xff\xff\xff\xff\xc8\0\0\0",
        b"\x01\0\0\0\xc8\0\0\0\x05\0X: a",
    ] {
        assert_eq!(told(&packet(3, content)), [cut], "{content:?}");
    }
    assert_eq!(told(&head(-1, &[])), ["invalid upstream sent invalid status"]);
    let text = "invalid upstream sent invalid header: \\\"X-A\\\\x20...\\\"";
    assert_eq!(told(&head(200, &["X-A : b"])), [text]);
    for line in ["X-A: b\r\nX-B: c", "X-A: b\nX-B: c", "X-A: b\n\n<p>", "X-A\nX-B: c"] {
        let story = told(&head(200, &[line]));
        assert!(matches!(&story[..], [text] if text.starts_with("invalid ")), "{story:?}");
    }
    for status in [1, 99, 101] {
        assert_eq!(told(&head(status, &[])), ["invalid upstream sent invalid status"]);
    }
}

#[test]
fn a_coding_that_the_answer_does_not_have_is_an_error() {
    let unknown = "invalid upstream sent unknown \\\"Transfer-Encoding\\\": \\\"gzip\\\"";
    assert_eq!(told(&head(200, &["Transfer-Encoding: gzip"])), [unknown]);
    assert_eq!(
        told(&head(200, &["Transfer-Encoding: gzip", "Transfer-Encoding: chunked"])),
        [unknown]
    );
    let chunked = [head(200, &["Transfer-Encoding: chunked"]), stream("ab"), end()].concat();
    assert_eq!(told(&chunked), ["head 200", "body ab", "end 0"]);
}

#[test]
fn an_answer_ends_as_it_says_or_is_an_error() {
    let closed = "error upstream prematurely closed connection";
    let length = || head(200, &["Content-Length: 3"]);
    let first = "head 200, Content-Length: 3";
    assert_eq!(told(b""), [closed]);
    assert_eq!(told(&packet(8, b"")), [closed]);
    assert_eq!(told(&head(200, &[])), ["head 200", closed]);
    assert_eq!(told(&[length(), stream("ab")].concat()), [first, "body ab", closed]);
    let story = told(&[length(), stream("ab"), end()].concat());
    assert_eq!(story, [first, "body ab", "invalid upstream prematurely ended its answer"]);
    assert_eq!(told(&[length(), stream("abc")].concat()), [first, "body abc", "end 0"]);
    let story = tell(&FuzzAsk::default(), &[length(), stream("abcd"), end()].concat());
    assert_eq!(story.told, [first, "body abc", "excess", "end 0"]);
    assert!(!story.is_idle);
    assert_eq!(told(&packet(6, b"I die")[..11]), ["stderr I d", closed]);
}

#[test]
fn a_connection_is_used_again_only_when_nothing_is_left_of_its_request() {
    let bytes = [head(200, &[]), end()].concat();
    let mut ask = FuzzAsk { body_len: 3000, ..FuzzAsk::default() };
    let story = tell(&ask, &bytes);
    assert!(story.is_idle && read_lsapi(&story.output).is_whole);
    assert!(!tell(&ask, &[bytes.clone(), packet(8, b"")].concat()).is_idle);
    assert!(!tell(&ask, &[packet(8, b""), bytes.clone()].concat()).is_idle);
    let story = tell(&ask, &[bytes.clone(), packet(7, b""), packet(6, b"late")].concat());
    assert!(story.is_idle && story.told == ["head 200", "end 0"], "words behind it do not matter");
    ask.first = First::Receive;
    assert!(!tell(&ask, &bytes).is_idle);
    ask = FuzzAsk::default();
    ask.settings.keep = false;
    assert!(!tell(&ask, &bytes).is_idle);
}

#[test]
fn a_child_may_speak_before_it_is_asked() {
    let (ask, mut conn, mut events) = (FuzzAsk::default(), LsapiClient::new(), Vec::new());
    assert!(conn.receive(&packet(6, b"\0PID\x01\x02\0\0"), &mut events).is_ok());
    assert!(conn.is_idle() && events.is_empty());
    for _ in 0..3 {
        conn.start(&cgi_params(), Some(0), &ask.settings);
        conn.transmit(9, &mut SendChain::new(CopyPolicy::Contiguous), 7, &mut Nothing);
        conn.receive(&[head(200, &[]), stream("x"), end()].concat(), &mut events).unwrap();
        assert!(matches!(events.last(), Some(OriginEvent::End { .. })) && conn.is_idle());
    }
}

struct Nothing;

impl BodySource for Nothing {
    fn pull(&mut self, _user: StreamOwner, _max: usize, _out: &mut SendChain) -> Pull {
        Pull::End
    }
}

#[test]
fn a_body_that_ends_early_breaks_the_request() {
    let mut conn = LsapiClient::new();
    conn.start(&cgi_params(), Some(5), &OriginConnSettings::default());
    let mut out = SendChain::new(CopyPolicy::Contiguous);
    conn.transmit(1000, &mut out, 7, &mut Nothing);
    assert!(conn.is_broken() && !conn.has_output() && !conn.is_request_sent());
    conn.abort();
    assert!(!conn.has_output(), "nothing may stand where the body should");
}

#[test]
fn an_abort_follows_a_complete_body_only() {
    let mut conn = LsapiClient::new();
    let mut out = SendChain::new(CopyPolicy::Contiguous);
    conn.start(&cgi_params(), Some(0), &OriginConnSettings::default());
    conn.abort();
    conn.transmit(1000, &mut out, 7, &mut Nothing);
    assert!(read_lsapi(out.contiguous().unwrap()).is_aborted && !conn.is_idle());
}

#[test]
fn what_the_protocol_cannot_carry_is_not_sent() {
    let mut params = cgi_params();
    params.push(b"HTTP_X", &vec![b'x'; 195_000]);
    params.push(b"X", &vec![b'x'; 65_534]);
    assert!(!tell(&FuzzAsk::of(params.clone()), b"").is_broken);
    params.push(b"HTTP_Y", &[b'x'; 1500]);
    let story = tell(&FuzzAsk::of(params), b"");
    assert!(story.is_broken && story.output.is_empty());
    for name in [b"X".as_slice(), b"HTTP_COOKIE"] {
        let mut params = cgi_params();
        params.push(name, &vec![b'x'; 65_536]);
        assert!(tell(&FuzzAsk::of(params), b"").is_broken, "a length of two bytes");
    }
    let mut conn = LsapiClient::new();
    conn.start(&cgi_params(), None, &OriginConnSettings::default());
    assert!(conn.is_broken() && !conn.has_output(), "the length of a body is needed");
}

#[test]
fn fields_of_the_client_become_fields_again() {
    let mut params = cgi_params();
    for (name, value) in [
        ("SCRIPT_FILENAME", "/a.php"),
        ("EMPTY", ""),
        ("HTTP_COOKIE", "a=b"),
        ("HTTP_X_REAL_IP", "::1"),
        ("CONTENT_TYPE", "a/b"),
        ("CONTENT_LENGTH", "99"),
        ("HTTP_REFERER", ""),
    ] {
        params.push(name.as_bytes(), value.as_bytes());
    }
    let output = tell(&FuzzAsk { body_len: 7, ..FuzzAsk::of(params) }, b"").output;
    let pairs = read_lsapi(&output).pairs;
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", name.escape_ascii(), value.escape_ascii()))
        .collect();
    let variables = ["REQUEST_METHOD=GET", "SCRIPT_FILENAME=/a.php", "EMPTY="];
    let known = ["known 6=a/b", "known 7=7", "known 8=a=b", "known 12=", "HTTP_X_REAL_IP=::1"];
    assert_eq!(pairs, [&variables[..], &known].concat());
    assert!(output.windows(14).any(|part| part == b"X-Real-Ip: ::1"), "spelled as usual");
    let script = usize::from(output[16]) + 256 * usize::from(output[17]);
    assert_eq!(&output[script..script + 7], b"/a.php\0");
}

fn any_packet() -> impl Strategy<Value = Vec<u8>> {
    let line =
        prop_oneof![Just("Content-Length: 12".to_owned()), "[ -~]{0,20}", "X-[A-Z]: [a-z]{0,5}"];
    prop_oneof![
        (prop_oneof![Just(103), Just(200), 0..1100], prop::collection::vec(line, 0..4)).prop_map(
            |(status, lines)| head(status, &lines.iter().map(String::as_str).collect::<Vec<_>>())
        ),
        "[a-z]{0,20}".prop_map(|text| stream(&text)),
        (0..10_u8, "[a-z]{0,10}").prop_map(|(kind, text)| packet(kind, text.as_bytes())),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|content| packet(3, &content)),
        Just(end()),
    ]
}

proptest! {
    #[test]
    fn no_cut_of_the_input_changes_what_is_told(
        packets in prop::collection::vec(any_packet(), 0..10),
        cuts in prop::collection::vec(0..300_usize, 0..10),
        keep in any::<bool>(),
    ) {
        let bytes = [vec![head(200, &["X-A: b"]); usize::from(keep)], packets].concat().concat();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        let settings = OriginConnSettings { head_max: 120, keep, answers_head: false };
        let ask = FuzzAsk { settings, ..FuzzAsk::default() };
        let whole = UpstreamStory::tell(OriginConn::lsapi, &ask, &[&bytes]);
        prop_assert_eq!(whole, UpstreamStory::tell(OriginConn::lsapi, &ask, &pieces));
    }

    #[test]
    fn variables_fields_and_body_arrive_as_they_were(
        variables in prop::collection::vec(("[A-G][A-Z_]{0,8}", "[ -~]{0,200}"), 0..20),
        fields in prop::collection::vec(("HTTP_Q[A-Z0-9_]{0,8}", "[ -~]{0,200}"), 0..20),
        body_len in prop_oneof![Just(0_usize), 1..200_usize, 1..200_000_usize],
        room in 1..100_000_usize,
    ) {
        let mut params = Params::new();
        let mut expected = Vec::new();
        for (name, value) in variables.iter().chain(&fields) {
            params.push(name.as_bytes(), value.as_bytes());
            expected.push((name.clone().into_bytes(), value.clone().into_bytes()));
        }
        if body_len > 0 {
            let length = (b"known 7".to_vec(), body_len.to_string().into_bytes());
            expected.insert(variables.len(), length);
        }
        let ask = FuzzAsk { body_len, room, ..FuzzAsk::of(params) };
        let request = read_lsapi(&UpstreamStory::tell(OriginConn::lsapi, &ask, &[]).output);
        prop_assert_eq!(request.pairs, expected);
        prop_assert!(request.is_whole && request.body == body(body_len));
    }
}
