//! Connections: further requests, answers to the upstream, aborts and limits.

use super::*;
use crate::OriginError;

/// A client whose first call is complete.
fn used(more: &[Vec<u8>]) -> H2Client {
    let mut client = begun(Some(0));
    transmit(&mut client, &mut Pushed::default());
    let frames = [frame(SETTINGS, 0, 0, b""), ok(), last_data(b"x")].concat();
    receive(&mut client, &[frames, more.concat()].concat());
    client
}

#[test]
fn requests_of_a_connection_have_odd_streams_in_order() {
    let mut client = used(&[]);
    for stream in [3, 5, 7] {
        assert!(client.is_idle());
        begin(&mut client, Some(0));
        let frames = transmit(&mut client, &mut Pushed::default());
        let heads: Vec<u32> = frames.iter().filter(|it| it.0 == HEADERS).map(|it| it.2).collect();
        assert_eq!(heads, [stream]);
        let head = frame(HEADERS, WHOLE | END, stream, &block(&[(":status", "200")]));
        assert_eq!(receive(&mut client, &head).len(), 2);
    }
}

#[test]
fn settings_and_pings_are_answered_also_between_requests() {
    let mut client = used(&[frame(PING, 0, 0, b"12345678")]);
    let frames = transmit(&mut client, &mut Pushed::default());
    assert_eq!(frames[0], (SETTINGS, END, 0, Vec::new()));
    assert_eq!(frames[1], (PING, END, 0, b"12345678".to_vec()));
    assert!(receive(&mut client, &frame(PING, END, 0, &[0; 8])).is_empty());
    assert!(client.is_idle() && !client.has_output());
    receive(&mut client, &frame(PING, 0, 0, b"abcdefgh"));
    receive(&mut client, &frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]));
    assert!(client.is_idle() && client.has_output());
}

#[test]
fn what_ends_the_use_of_a_connection_does_not_spoil_its_response() {
    for frames in [
        vec![frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0])],
        vec![frame(GOAWAY, 0, 0, &[0; 8])],
        vec![frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 0])],
        vec![data(b"x")],
        vec![frame(HEADERS, WHOLE, 1, b"")],
        vec![frame(0x42, 0, 0, b""), frame(5, 4, 1, b"")],
        vec![b"HTTP/1.1 408 Request Timeout\r\n\r\n".to_vec()],
        // The rest would count for the next request.
        vec![frame(HEADERS, WHOLE, 3, b"\x88")[..5].to_vec()],
        vec![frame(PING, 0, 0, b"12345678")[..12].to_vec()],
    ] {
        let client = used(&frames);
        assert!(!client.is_idle(), "{frames:?}");
    }
    assert!(used(&[frame(RST_STREAM, 0, 1, &[0; 4])]).is_idle());
    let mut client = used(&[frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 0])]);
    receive(&mut client, &frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 1]));
    assert!(client.is_idle(), "a stream may be opened again");
}

#[test]
fn a_goaway_ends_the_use_of_a_connection_and_requests_above_it() {
    let goaway = |last: u8| frame(GOAWAY, 0, 0, &[0, 0, 0, last, 0, 0, 0, 2]);
    let story = tell(&call(), &[goaway(1), ok(), last_data(b"x")].concat());
    assert_eq!(story.told.last().map(String::as_str), Some("end 0"));
    assert!(!story.is_idle);
    let mut client = used(&[]);
    begin(&mut client, Some(0));
    let error = client.receive(&goaway(1), &mut Vec::new()).unwrap_err();
    let text = b"upstream sent goaway with error 2";
    assert_eq!(error, OriginError::Unprocessed(text.as_slice().into()));
}

#[test]
fn a_response_before_the_end_of_the_request_ends_both() {
    let mut client = begun(None);
    let mut body = Pushed { bytes: b"abc".to_vec(), is_complete: false };
    transmit(&mut client, &mut body);
    let events = receive(&mut client, &[ok(), last_data(b"x")].concat());
    assert!(matches!(events[..], [_, _, OriginEvent::End { .. }]));
    body.bytes.extend_from_slice(b"def");
    client.body_ready();
    assert!(!client.has_output() && !client.is_idle() && !client.is_request_sent());
    receive(&mut client, &frame(RST_STREAM, 0, 1, &[0; 4]));
    assert!(!client.is_idle());
}

#[test]
fn an_abort_cancels_the_stream() {
    let mut client = begun(None);
    client.abort();
    assert!(!client.has_output(), "nothing of it was sent");
    let mut client = begun(None);
    let mut body = Pushed { bytes: b"abc".to_vec(), is_complete: false };
    transmit(&mut client, &mut body);
    receive(&mut client, &ok());
    client.abort();
    let frames = transmit(&mut client, &mut body);
    assert_eq!(frames, [(RST_STREAM, 0, 1, vec![0, 0, 0, 8])]);
    assert!(!client.is_idle());
    let mut client = used(&[]);
    transmit(&mut client, &mut Pushed::default());
    client.abort();
    assert!(client.is_idle() && !client.has_output());
}

fn refused(client: &mut H2Client, bytes: &[u8]) -> String {
    let error = client.receive(bytes, &mut Vec::new()).unwrap_err();
    String::from_utf8_lossy(error.text()).into_owned()
}

#[test]
fn frames_that_bring_nothing_are_limited() {
    let rows = [
        // The answer to the first one leaves at once.
        (frame(SETTINGS, 0, 0, b""), "settings", 1001),
        (frame(PING, 0, 0, &[0; 8]), "ping", 1001),
        (frame(PING, END, 0, &[0; 8]), "ping", 1000),
        (frame(WINDOW_UPDATE, 0, 0, &[0; 4]), "window update", 1000),
        (frame(0x42, 0, 0, b""), "http2", 1000),
    ];
    for (idle, name, most) in rows {
        let mut client = begun(Some(0));
        transmit(&mut client, &mut Pushed::default());
        receive(&mut client, &idle.repeat(most));
        let text = format!("upstream sent too many {name} frames");
        assert_eq!(refused(&mut client, &idle), text);
    }
    let mut client = begun(Some(0));
    receive(&mut client, &[ok(), data(b"").repeat(1000)].concat());
    assert_eq!(refused(&mut client, &data(b"")), "upstream sent too many http2 frames");
    let mut client = begun(Some(0));
    let blocks = frame(CONTINUATION, 0, 1, b"").repeat(64);
    receive(&mut client, &[frame(HEADERS, 0, 1, b""), blocks].concat());
    let more = frame(CONTINUATION, 0, 1, b"");
    assert_eq!(refused(&mut client, &more), "upstream sent too many continuation frames");
}

#[test]
fn an_upstream_that_takes_the_answers_may_ask_for_days() {
    let mut client = begun(Some(0));
    transmit(&mut client, &mut Pushed::default());
    receive(&mut client, &ok());
    for _ in 0..5000 {
        receive(&mut client, &frame(PING, 0, 0, b"12345678"));
        let frames = transmit(&mut client, &mut Pushed::default());
        assert_eq!(frames, [(PING, END, 0, b"12345678".to_vec())]);
    }
}

#[test]
fn answers_that_the_upstream_does_not_take_are_limited() {
    let mut client = begun(Some(0));
    receive(&mut client, &ok());
    let mut events = Vec::new();
    let ping = [frame(PING, 0, 0, &[0; 8]), data(b"x")].concat();
    let fed = (0..10_000).find_map(|_| client.receive(&ping, &mut events).err());
    let text = b"upstream sent too many ping frames";
    assert_eq!(fed, Some(OriginError::Invalid(text.as_slice().into())));
}

#[test]
fn windows_are_opened_again_before_the_upstream_stands_still() {
    let mut client = begun(Some(0));
    transmit(&mut client, &mut Pushed::default());
    receive(&mut client, &ok());
    let piece = data(&[b'x'; 16_384]);
    let mut updates = Vec::new();
    for _ in 0..(1_u64 << 31) / 16_384 * 3 / 4 + 1 {
        drop(receive(&mut client, &piece));
        updates.extend(transmit(&mut client, &mut Pushed::default()));
    }
    let kinds: Vec<(u8, u32)> = updates.iter().map(|it| (it.0, it.2)).collect();
    assert_eq!(kinds, [(WINDOW_UPDATE, 0), (WINDOW_UPDATE, 1)]);
}
