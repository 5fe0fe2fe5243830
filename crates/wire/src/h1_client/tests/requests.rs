//! Requests that are sent, and those that cannot be.

use bolide_http::{UpstreamHead, UpstreamVersion};

use super::{Pieces, begun, transmit};
use crate::Pull;
use crate::origin::fuzz::http_head;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[test]
fn fields_leave_verbatim_and_in_order() {
    let mut head = UpstreamHead::new(
        UpstreamVersion::V10,
        |method| method.extend_from_slice(b"POST"),
        |target| target.extend_from_slice(b"/a b?c=\xc3\xa4"),
    );
    for (name, value) in
        [("x-lower", "1"), ("X-Empty", ""), ("x-lower", "2"), ("Content-Length", "2")]
    {
        head.push(name.as_bytes(), value.as_bytes());
    }
    let mut client = begun(&head, Some(2));
    let sent = transmit(&mut client, &mut Pieces(vec![(b"h", Pull::More), (b"i", Pull::More)]));
    let lines = "POST /a b?c=ä HTTP/1.0\r\nx-lower: 1\r\nX-Empty: \r\nx-lower: 2\r\n";
    assert_eq!(sent, format!("{lines}Content-Length: 2\r\n\r\nhi"));
    assert!(client.is_request_sent() && !client.has_output());
}

#[test]
fn a_body_of_unknown_length_leaves_in_chunks() {
    let mut client = begun(&http_head(b"POST", b"/"), None);
    let mut pieces = vec![(&b"hello"[..], Pull::More), (b"", Pull::Pending)];
    let sent = transmit(&mut client, &mut Pieces(std::mem::take(&mut pieces)));
    assert_eq!(sent, "POST / HTTP/1.1\r\n\r\n5\r\nhello\r\n");
    assert!(!client.has_output() && !client.is_request_sent());
    client.body_ready();
    let sent = transmit(&mut client, &mut Pieces(vec![(b"0123456789abcdefg", Pull::End)]));
    assert_eq!(sent, "11\r\n0123456789abcdefg\r\n0\r\n\r\n");
    assert!(client.is_request_sent());
    // What is there at a time is one chunk.
    let mut client = begun(&http_head(b"POST", b"/"), None);
    let mut pieces = Pieces(vec![(b"hello", Pull::More), (b"world!", Pull::End)]);
    let sent = transmit(&mut client, &mut pieces);
    assert_eq!(sent, "POST / HTTP/1.1\r\n\r\nb\r\nhelloworld!\r\n0\r\n\r\n");
    let mut client = begun(&http_head(b"POST", b"/"), None);
    let sent = transmit(&mut client, &mut Pieces(vec![(b"", Pull::End)]));
    assert_eq!(sent, "POST / HTTP/1.1\r\n\r\n0\r\n\r\n");
}

#[test]
fn a_request_that_would_break_its_lines_does_not_leave() {
    for bad in [&b"\r"[..], b"\n", b"\0", b"a\r\nX: y"] {
        let mut head = http_head(b"GET", b"/");
        head.push(b"X", bad);
        assert!(begun(&head, Some(0)).is_broken());
        let mut head = http_head(b"GET", b"/");
        head.push(bad, b"X");
        assert!(begun(&head, Some(0)).is_broken());
        assert!(begun(&http_head(b"GET", bad), Some(0)).is_broken());
        let mut client = begun(&http_head(bad, b"/"), Some(0));
        assert!(client.is_broken());
        assert_eq!(transmit(&mut client, &mut Pieces(Vec::new())), "");
    }
    assert!(begun(&http_head(b"GET", b""), Some(0)).is_broken());
    assert!(begun(&http_head(b"", b"/"), Some(0)).is_broken());
}

#[test]
fn a_body_that_is_shorter_than_announced_breaks_the_request() {
    for pull in [Pull::End, Pull::Broken] {
        let mut client = begun(&http_head(b"POST", b"/"), Some(3));
        transmit(&mut client, &mut Pieces(vec![(b"hi", pull)]));
        assert!(client.is_broken() && !client.is_request_sent());
    }
    let mut client = begun(&http_head(b"POST", b"/"), None);
    transmit(&mut client, &mut Pieces(vec![(b"hi", Pull::Broken)]));
    assert!(client.is_broken());
}

#[test]
fn a_connection_carries_one_request_after_the_other() {
    let head = http_head(b"GET", b"/");
    let mut client = begun(&head, Some(0));
    let settings = client.call.settings;
    for _ in 0..3 {
        transmit(&mut client, &mut Pieces(Vec::new()));
        assert!(!client.is_idle());
        let mut events = Vec::new();
        assert_eq!(client.receive(ANSWER, &mut events), Ok(ANSWER.len()));
        assert_eq!(events.len(), 2);
        assert!(client.is_idle());
        client.start(&head, Some(0), &settings);
    }
}

#[test]
fn an_aborted_request_says_nothing_more() {
    let mut client = begun(&http_head(b"POST", b"/"), Some(3));
    transmit(&mut client, &mut Pieces(vec![(b"h", Pull::Pending)]));
    client.abort();
    client.body_ready();
    assert!(!client.has_output() && !client.is_idle());
    assert_eq!(transmit(&mut client, &mut Pieces(Vec::new())), "");
}

#[test]
fn bytes_before_a_request_are_refused() {
    let mut client = super::H1Client::new();
    assert!(client.receive(b"x", &mut Vec::new()).is_err());
    assert!(!client.is_idle());
}
