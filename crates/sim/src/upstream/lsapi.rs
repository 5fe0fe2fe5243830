//! The same applications behind LSAPI: a request is converted to FastCGI params, and the output to
//! packets.

use super::{Conn, SimUpstream, push_pair};
use crate::fault_record::AppReaction;

/// Packet types.
const BEGIN: u8 = 1;
const HEAD: u8 = 3;
const STREAM: u8 = 4;
const END: u8 = 5;
const STDERR: u8 = 6;
const RECEIVED: u8 = 7;
const FAILED: u8 = 9;
/// Bytes of a packet's header.
const HEADER_LEN: usize = 8;
/// Integers behind the header of a request: where the body's length, the query and the method are.
const BODY_LEN: usize = 1;
const QUERY: usize = 4;
const METHOD: usize = 5;
/// Bytes of one packet of the response, at most.
const PACKET_MAX: usize = 16 * 1024;

/// The integer at this place.
fn integer(bytes: &[u8], at: usize) -> usize {
    let four = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    four.map_or(0, |four| u32::from_le_bytes(*four) as usize)
}

/// The text at this place, up to its NUL.
fn text(bytes: &[u8], at: usize) -> String {
    let rest = bytes.get(at..).unwrap_or_default();
    String::from_utf8_lossy(rest.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

/// Takes the bytes of the request from the input.
pub(super) fn parse(conn: &mut Conn) {
    if !conn.has_params && conn.input.len() >= HEADER_LEN {
        let size = integer(&conn.input, 4);
        if conn.input[2] != BEGIN || conn.input.len() < size {
            return;
        }
        let packet: Vec<u8> = conn.input.drain(..size).collect();
        let number = |at: usize| integer(&packet, HEADER_LEN + 4 * at);
        push_pair(&mut conn.params, "QUERY_STRING", &text(&packet, number(QUERY)));
        push_pair(&mut conn.params, "REQUEST_METHOD", &text(&packet, number(METHOD)));
        conn.has_params = true;
        conn.body_left = number(BODY_LEN);
    }
    if conn.has_params && !conn.has_body {
        let n = conn.body_left.min(conn.input.len());
        conn.body.extend(conn.input.drain(..n));
        conn.body_left -= n;
        conn.has_body = conn.body_left == 0;
    }
}

fn push(out: &mut Vec<u8>, kind: u8, content: &[u8]) {
    out.extend_from_slice(&[b'L', b'S', kind, 0]);
    out.extend_from_slice(&((content.len() + HEADER_LEN) as u32).to_le_bytes());
    out.extend_from_slice(content);
}

/// The content of the packet with the head.
fn head_content(head: &str) -> Vec<u8> {
    let status = head.split("\r\n").find_map(|line| line.strip_prefix("Status: "));
    let status = status.and_then(|status| status.get(..3)?.parse::<u32>().ok()).unwrap_or(200);
    let lines: Vec<&str> = head
        .split("\r\n")
        .filter(|line| !line.is_empty() && !line.starts_with("Status: "))
        .collect();
    let mut content = (lines.len() as u32).to_le_bytes().to_vec();
    content.extend_from_slice(&status.to_le_bytes());
    for line in &lines {
        content.extend_from_slice(&(line.len() as u16 + 1).to_le_bytes());
    }
    for line in lines {
        content.extend_from_slice(line.as_bytes());
        content.push(0);
    }
    content
}

impl SimUpstream {
    /// The application's output as packets.
    pub(super) fn packets(&mut self, answer: &[u8], reaction: AppReaction) -> Vec<u8> {
        let at = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(answer.len());
        let head = String::from_utf8_lossy(&answer[..at]).into_owned();
        let mut rest = answer.get(at + 4..).unwrap_or_default();
        let mut out = Vec::new();
        if self.chance.one_in(2) {
            push(&mut out, RECEIVED, b"");
            push(&mut out, STDERR, b"\0PID 4711");
        }
        self.push_noise(&mut out);
        let is_headless = reaction == AppReaction::EndEarly && self.chance.one_in(2);
        if !is_headless {
            push(&mut out, HEAD, &head_content(&head));
        }
        if reaction == AppReaction::EndEarly {
            rest = if is_headless { &[] } else { &rest[..self.chance.index(rest.len().max(1))] };
        }
        while !rest.is_empty() {
            self.push_noise(&mut out);
            let n = self.chance.size(rest.len().min(PACKET_MAX));
            push(&mut out, STREAM, &rest[..n]);
            rest = &rest[n..];
        }
        if reaction == AppReaction::Malformed {
            match self.chance.index(3) {
                0 => push(&mut out, FAILED, b""),
                1 => push(&mut out, BEGIN, b"what"),
                _ => out.extend_from_slice(b"SL no packet"),
            }
        }
        self.push_noise(&mut out);
        push(&mut out, END, b"");
        out
    }

    fn push_noise(&mut self, out: &mut Vec<u8>) {
        if self.chance.one_in(8) {
            let size = self.chance.size(100_000);
            push(out, STDERR, &vec![b'e'; size]);
        }
    }
}
