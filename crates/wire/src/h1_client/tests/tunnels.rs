//! Responses with 101, which switch the connection to another protocol.

use super::{Pieces, begun, body_of, tell, told, transmit};
use crate::origin::fuzz::{FuzzAsk, http_head};
use crate::{OriginEvent, Pull};
use bolide_http::UpstreamHead;

const SWITCH: &[u8] =
    b"HTTP/1.1 101 Switch\r\nUpgrade: echo\r\nConnection: upgrade\r\nContent-Length: 2\r\n\r\n";

fn upgrade_head() -> UpstreamHead {
    let mut head = http_head(b"GET", b"/");
    head.push(b"upgrade", b"echo");
    head.push(b"Connection", b"upgrade");
    head
}

fn upgrade() -> FuzzAsk {
    FuzzAsk::of(upgrade_head())
}

#[test]
fn everything_behind_101_is_the_body_until_the_end() {
    let head = "head 101 Switch, Upgrade: echo, Connection: upgrade, Content-Length: 2";
    let bytes = [SWITCH, b"HTTP/1.1 200 OK\r\n\r\nraw"].concat();
    let raw = "body HTTP/1.1 200 OK\\r\\n\\r\\nraw";
    let story = tell(&upgrade(), &bytes);
    assert_eq!(story.told, [head, raw, "end 0"]);
    assert!(!story.is_idle);
    assert_eq!(tell(&upgrade(), SWITCH).told, [head, "end 0"]);
    let mut ask = upgrade();
    ask.settings.answers_head = true;
    assert_eq!(tell(&ask, &bytes).told, [head, raw, "end 0"], "not even HEAD matters");
}

#[test]
fn a_switch_without_an_upgrade_field_is_refused() {
    let refused = "invalid upstream sent invalid status \\\"101\\\"";
    assert_eq!(told(SWITCH), [refused]);
}

#[test]
fn a_switch_before_the_request_was_sent_is_refused() {
    let mut head = http_head(b"POST", b"/");
    head.push(b"Upgrade", b"echo");
    let mut client = begun(&head, Some(3));
    transmit(&mut client, &mut Pieces(vec![(b"ab", Pull::Pending)]));
    assert!(client.receive(SWITCH, &mut Vec::new()).is_err());
    assert!(!client.is_tunnel());
}

#[test]
fn what_the_client_says_leaves_raw_once_it_is_there() {
    let mut client = begun(&upgrade_head(), Some(0));
    transmit(&mut client, &mut Pieces(Vec::new()));
    assert!(!client.is_tunnel() && client.is_request_sent());
    let mut events = Vec::new();
    client.receive(&[SWITCH, b"one"].concat(), &mut events).expect("a switch was asked for");
    assert!(client.is_tunnel() && !client.is_request_sent());
    assert!(!client.has_output(), "the client's side must be there first");
    client.body_ready();
    assert!(client.has_output());
    let sent = transmit(&mut client, &mut Pieces(vec![(b"raw", Pull::More), (b"", Pull::Pending)]));
    assert_eq!(sent, "raw");
    client.receive(b"two", &mut events).expect("a tunnel takes everything");
    assert_eq!(body_of(&events), b"onetwo");
    client.body_ready();
    let sent = transmit(&mut client, &mut Pieces(vec![(b"last", Pull::End)]));
    assert_eq!(sent, "last");
    assert!(client.is_request_sent() && client.is_tunnel() && !client.is_idle());
    client.handle_eof(&mut events).expect("the end of a tunnel is no error");
    assert!(matches!(events.last(), Some(OriginEvent::End { app_status: 0 })));
    assert!(!client.is_idle());
}

#[test]
fn another_answer_to_an_upgrade_is_an_answer_like_others() {
    let story = tell(&upgrade(), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(story.told[1..], ["body hi", "end 0"]);
    assert!(story.is_idle);
}
