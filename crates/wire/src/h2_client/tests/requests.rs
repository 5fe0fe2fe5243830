//! Requests: heads, bodies and windows.

use super::*;
use crate::hpack::{FieldToken, HpackDecoder, Sink, Traits};

/// Decoded fields as text.
#[derive(Default)]
struct Fields(Vec<String>);

impl Sink for Fields {
    fn field(&mut self, _: FieldToken, _: Traits, name: &[u8], value: &[u8]) {
        self.0.push(format!("{}: {}", name.escape_ascii(), value.escape_ascii()));
    }
}

fn decoded(decoder: &mut HpackDecoder, block: &[u8]) -> Vec<String> {
    let mut fields = Fields::default();
    decoder.decode(block, 100_000, &mut Vec::new(), &mut fields).expect("the block is valid");
    fields.0
}

#[test]
fn a_connection_begins_with_settings_and_large_windows() {
    let mut client = begun(Some(0));
    assert!(!client.is_request_sent() && client.has_output());
    let frames = transmit(&mut client, &mut Pushed::default());
    let window = [0x7f, 0xff, 0xff, 0xff];
    let settings = [&[0, 2, 0, 0, 0, 0, 0, 4][..], &window].concat();
    assert_eq!(frames[0], (SETTINGS, 0, 0, settings));
    assert_eq!(frames[1], (WINDOW_UPDATE, 0, 0, vec![0x7f, 0xff, 0, 0]));
    assert_eq!((frames[2].0, frames[2].1, frames[2].2), (HEADERS, WHOLE | END, 1));
    assert!(client.is_request_sent() && !client.has_output());
}

#[test]
fn a_head_has_pseudo_fields_first_and_none_of_a_connection() {
    let mut asked = http2_head(b"PUT", b"/a?b");
    for (name, value) in [
        ("te", "trailers"),
        ("X-Own", " me "),
        ("Connection", "close"),
        ("Transfer-Encoding", "chunked"),
        ("content-length", "3"),
        ("cookie", "a=1; b=2"),
    ] {
        asked.head.push(name.as_bytes(), value.as_bytes());
    }
    let mut client = H2Client::new();
    client.start(&asked, Some(3), &OriginConnSettings::default());
    let frames = transmit(&mut client, &mut Pushed::default());
    assert_eq!(
        decoded(&mut HpackDecoder::default(), &frames[2].3),
        [
            ":method: PUT",
            ":scheme: http",
            ":path: /a?b",
            ":authority: origin.test",
            "te: trailers",
            "x-own: me",
            "content-length: 3",
            "cookie: a=1; b=2",
        ]
    );
}

#[test]
fn nothing_of_one_client_is_in_the_table_when_another_one_asks() {
    let mut client = H2Client::new();
    let mut sizes = Vec::new();
    for stream in [1, 3, 5] {
        let mut asked = http2_head(b"POST", b"/a.B/C");
        asked.head.push(b"x-token", b"a secret of one client");
        let settings = OriginConnSettings { keep: true, ..OriginConnSettings::default() };
        client.start(&asked, Some(0), &settings);
        let frames = transmit(&mut client, &mut Pushed::default());
        let head = frames.iter().find(|it| it.0 == HEADERS).expect("a head is sent");
        sizes.push(head.3.len());
        // A larger table of the upstream changes nothing.
        let table = frame(SETTINGS, 0, 0, &[0, 1, 0, 1, 0, 0]);
        let end = frame(HEADERS, WHOLE | END, stream, &block(&[(":status", "200")]));
        receive(&mut client, &[table, end].concat());
    }
    assert_eq!((sizes[0], sizes[2]), (sizes[1] + 1, sizes[1]), "the first tells the size 0");
}

#[test]
fn a_head_that_would_mean_something_else_is_not_sent() {
    for (name, value) in [(":path", "/x"), ("a b", "c"), ("a", "b\r\nc"), ("", "x")] {
        let mut asked = http2_head(b"GET", b"/");
        asked.head.push(name.as_bytes(), value.as_bytes());
        let mut client = H2Client::new();
        client.start(&asked, Some(0), &OriginConnSettings::default());
        assert!(client.is_broken() && !client.has_output(), "{name}");
    }
}

#[test]
fn a_large_head_is_continued() {
    let mut asked = http2_head(b"GET", b"/");
    for at in 0..400 {
        asked.head.push(b"cookie", format!("{at}{}", "~".repeat(99)).as_bytes());
    }
    let mut client = H2Client::new();
    client.start(&asked, Some(0), &OriginConnSettings::default());
    let frames = transmit(&mut client, &mut Pushed::default());
    let kinds: Vec<(u8, u8)> = frames[2..].iter().map(|frame| (frame.0, frame.1)).collect();
    assert_eq!(kinds[0], (HEADERS, END));
    assert_eq!(kinds.last(), Some(&(CONTINUATION, WHOLE)));
    assert!(kinds.len() > 2 && kinds[1..kinds.len() - 1].iter().all(|it| *it == (CONTINUATION, 0)));
    let whole: Vec<u8> = frames[2..].iter().flat_map(|frame| frame.3.clone()).collect();
    assert_eq!(decoded(&mut HpackDecoder::default(), &whole).len(), 404);
}

#[test]
fn messages_leave_as_they_come_and_the_end_follows() {
    let mut client = begun(None);
    let mut body = Pushed::default();
    assert_eq!(transmit(&mut client, &mut body).len(), 3);
    assert!(!client.has_output(), "the body is pending");
    body.bytes.extend_from_slice(b"one");
    client.body_ready();
    assert_eq!(transmit(&mut client, &mut body), [(DATA, 0, 1, b"one".to_vec())]);
    assert_eq!(receive(&mut client, &[ok(), data(b"uno")].concat()).len(), 2);
    body.bytes.extend_from_slice(b"two");
    client.body_ready();
    assert_eq!(transmit(&mut client, &mut body), [(DATA, 0, 1, b"two".to_vec())]);
    body.is_complete = true;
    client.body_ready();
    assert_eq!(transmit(&mut client, &mut body), [(DATA, END, 1, Vec::new())]);
    assert!(client.is_request_sent() && !client.is_idle());
    receive(&mut client, &trailers());
    assert!(client.is_idle());
}

#[test]
fn a_body_is_as_long_as_declared_or_broken() {
    let mut client = begun(Some(5));
    let mut body = Pushed { bytes: b"abc".to_vec(), is_complete: true };
    transmit(&mut client, &mut body);
    assert!(client.is_broken() && !client.is_idle());
    let mut client = begun(Some(3));
    let mut body = Pushed { bytes: b"abcdef".to_vec(), is_complete: false };
    let frames = transmit(&mut client, &mut body);
    assert_eq!(frames[3], (DATA, END, 1, b"abc".to_vec()));
}

#[test]
fn a_body_fits_the_windows_and_frames_of_the_upstream() {
    let mut client = begun(Some(200_000));
    let mut body = Pushed { bytes: vec![b'x'; 200_000], is_complete: true };
    let sent = |frames: &[(u8, u8, u32, Vec<u8>)]| {
        frames.iter().filter(|it| it.0 == DATA).map(|it| it.3.len()).collect::<Vec<_>>()
    };
    let first = transmit(&mut client, &mut body);
    assert_eq!(sent(&first), [16_384, 16_384, 16_384, 16_383]);
    assert!(client.is_blocked() && !client.has_output());
    // The window of the stream alone does not help.
    receive(&mut client, &frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0x80, 0]));
    assert!(client.is_blocked());
    receive(&mut client, &frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 100]));
    assert!(client.has_output());
    assert_eq!(sent(&transmit(&mut client, &mut body)), [100]);
    // A lower initial window makes the window of the stream negative.
    let settings = [0, 4, 0, 0, 0, 0, 0, 5, 0, 0, 0x80, 0];
    let wide = frame(WINDOW_UPDATE, 0, 0, &[0, 0x10, 0, 0]);
    receive(&mut client, &[frame(SETTINGS, 0, 0, &settings), wide].concat());
    let frames = transmit(&mut client, &mut body);
    assert_eq!(shape(&frames), [(SETTINGS, END, 0)]);
    assert!(client.is_blocked());
    let settings = [0, 4, 0, 1, 0, 0];
    receive(&mut client, &frame(SETTINGS, 0, 0, &settings));
    assert_eq!(sent(&transmit(&mut client, &mut body)), [32_669]);
    receive(&mut client, &frame(WINDOW_UPDATE, 0, 1, &[0, 2, 0, 0]));
    let last = transmit(&mut client, &mut body);
    assert_eq!(sent(&last).iter().sum::<usize>(), 200_000 - 65_535 - 100 - 32_669);
    assert!(sent(&last).iter().all(|size| *size <= 32_768));
    assert_eq!(last.last().map(|it| it.1), Some(END));
}
