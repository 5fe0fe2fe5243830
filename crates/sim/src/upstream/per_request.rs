//! The same applications behind uwsgi and SCGI: a request is converted to FastCGI params, and the
//! output gets a length.
//!
//! They send no body that is delimited by a close: a truncation could not be detected.

use super::{Conn, SimUpstream, param, push_pair};
use crate::fault_record::AppReaction;

/// Bytes of the header of a uwsgi packet.
const HEADER_LEN: usize = 4;

/// Takes the bytes of a uwsgi request from the input.
pub(super) fn parse_uwsgi(conn: &mut Conn) {
    if let [_, low, high, _, ..] = *conn.input
        && !conn.has_params
    {
        let size = HEADER_LEN + usize::from(u16::from_le_bytes([low, high]));
        if conn.input.len() < size {
            return;
        }
        let packet: Vec<u8> = conn.input.drain(..size).collect();
        let mut parts = Vec::new();
        let mut rest = &packet[HEADER_LEN..];
        while let [low, high, behind @ ..] = rest {
            let (part, after) = behind.split_at(usize::from(u16::from_le_bytes([*low, *high])));
            parts.push(String::from_utf8_lossy(part).into_owned());
            rest = after;
        }
        take_params(conn, &parts);
    }
    take_body(conn);
}

/// Takes the bytes of an SCGI request from the input.
pub(super) fn parse_scgi(conn: &mut Conn) {
    if let Some(at) = conn.input.iter().position(|byte| *byte == b':')
        && !conn.has_params
    {
        let size = String::from_utf8_lossy(&conn.input[..at]).parse().unwrap_or(0);
        let whole = at + 1 + size + 1;
        if conn.input.len() < whole {
            return;
        }
        let netstring: Vec<u8> = conn.input.drain(..whole).collect();
        let headers = netstring[at + 1..at + 1 + size].split(|byte| *byte == 0);
        let parts: Vec<_> =
            headers.map(|part| String::from_utf8_lossy(part).into_owned()).collect();
        take_params(conn, &parts);
    }
    take_body(conn);
}

fn take_params(conn: &mut Conn, parts: &[String]) {
    for pair in parts.as_chunks::<2>().0 {
        push_pair(&mut conn.params, &pair[0], &pair[1]);
    }
    conn.body_left = param(&conn.params, b"CONTENT_LENGTH").parse().unwrap_or(0);
    (conn.has_params, conn.keeps) = (true, false);
}

fn take_body(conn: &mut Conn) {
    if conn.has_params && !conn.has_body {
        let n = conn.body_left.min(conn.input.len());
        conn.body.extend(conn.input.drain(..n));
        conn.body_left -= n;
        conn.has_body = conn.body_left == 0;
    }
}

impl SimUpstream {
    /// The application's output, with its status in either form.
    pub(super) fn said(&mut self, answer: &[u8], reaction: AppReaction, params: &[u8]) -> Vec<u8> {
        if reaction == AppReaction::Malformed {
            return b"this is no head\r\n\r\n".to_vec();
        }
        let at = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(answer.len());
        let (head, body) = (&answer[..at], answer.get(at + 4..).unwrap_or_default());
        let head = String::from_utf8_lossy(head);
        let early = ["", "", "", "Status: 103\r\n\r\n", "HTTP/1.1 103 Hints\r\n\r\n"];
        let mut out = early[self.chance.index(early.len())].to_owned();
        let status = head.split("\r\n").find_map(|line| line.strip_prefix("Status: "));
        if self.chance.one_in(2) {
            out += &format!("HTTP/1.1 {}\r\n", status.unwrap_or("200 OK"));
        } else if let Some(status) = status {
            out += &format!("Status: {status}\r\n");
        }
        for line in head.split("\r\n").filter(|line| !line.starts_with("Status: ")) {
            out += &format!("{line}\r\n");
        }
        let is_bare = param(params, b"REQUEST_METHOD") == "HEAD"
            || status.is_some_and(|status| status.starts_with("304"));
        if !is_bare && !head.contains("Content-Length: ") {
            out += &format!("Content-Length: {}\r\n", body.len());
        }
        [out.as_bytes(), b"\r\n", body].concat()
    }
}
