//! The same applications behind HTTP/1: a request is converted to FastCGI params, and the output
//! gets a status line and framing.
//!
//! They send no body that is delimited by a close: a truncation could not be detected.

use super::{After, Conn, SimUpstream, param, push_pair};
use crate::fault_record::AppReaction;

/// The rest of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coming {
    /// So many bytes.
    Length(usize),
    /// Chunks.
    Chunks,
}

/// Takes the bytes of the request from the input.
pub(super) fn parse(conn: &mut Conn) {
    if !matches!(conn.after, After::Read) || conn.has_body {
        return;
    }
    if !conn.has_params {
        let Some(at) = find(&conn.input, b"\r\n\r\n") else { return };
        let head: Vec<u8> = conn.input.drain(..at + 4).collect();
        take_head(conn, &String::from_utf8_lossy(&head[..at]));
    }
    match conn.coming {
        Coming::Length(left) => {
            let n = left.min(conn.input.len());
            conn.body.extend(conn.input.drain(..n));
            (conn.coming, conn.has_body) = (Coming::Length(left - n), left == n);
        }
        Coming::Chunks => while take_chunk(conn) {},
    }
}

fn take_head(conn: &mut Conn, head: &str) {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    push_pair(&mut conn.params, "REQUEST_METHOD", method);
    let query = target.split_once('?').map_or("", |(_, query)| query);
    push_pair(&mut conn.params, "QUERY_STRING", query);
    push_pair(&mut conn.params, "PATH", target.split('?').next().unwrap_or_default());
    conn.keeps = true;
    conn.coming = Coming::Length(0);
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        match &*name.to_ascii_lowercase() {
            "content-length" => conn.coming = Coming::Length(value.parse().unwrap_or(0)),
            "transfer-encoding" => conn.coming = Coming::Chunks,
            "connection" => conn.keeps &= value != "close",
            name => {
                let name = name.to_ascii_uppercase().replace('-', "_");
                push_pair(&mut conn.params, &format!("HTTP_{name}"), value);
            }
        }
    }
    conn.has_params = true;
}

/// Takes a complete chunk; false if there is none.
fn take_chunk(conn: &mut Conn) -> bool {
    let Some(at) = find(&conn.input, b"\r\n") else { return false };
    let size = String::from_utf8_lossy(&conn.input[..at]).into_owned();
    let size = usize::from_str_radix(&size, 16).unwrap_or(0);
    let (start, end) = (at + 2, at + 2 + size);
    if conn.input.len() < end + 2 {
        return false;
    }
    conn.body.extend_from_slice(&conn.input[start..end]);
    conn.input.drain(..end + 2);
    conn.has_body = size == 0;
    size > 0
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

impl SimUpstream {
    /// The application's output as an HTTP message.
    pub(super) fn message(
        &mut self,
        answer: &[u8],
        reaction: AppReaction,
        params: &[u8],
    ) -> Vec<u8> {
        let at = find(answer, b"\r\n\r\n").unwrap_or(answer.len());
        let (head, body) = (&answer[..at], answer.get(at + 4..).unwrap_or_default());
        let head = String::from_utf8_lossy(head);
        let early = ["", "", "", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Hints\r\n\r\n"];
        let mut out = early[self.chance.index(early.len())].as_bytes().to_vec();
        let status = head.split("\r\n").find_map(|line| line.strip_prefix("Status: "));
        out.extend_from_slice(format!("HTTP/1.1 {}\r\n", status.unwrap_or("200 OK")).as_bytes());
        for line in head.split("\r\n").filter(|line| !line.starts_with("Status: ")) {
            out.extend_from_slice(format!("{line}\r\n").as_bytes());
        }
        let is_bare = param(params, b"REQUEST_METHOD") == "HEAD"
            || status.is_some_and(|status| status.starts_with("304"));
        let has_length = head.contains("Content-Length: ");
        if !has_length && !is_bare {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        out.extend_from_slice(b"\r\n");
        let malformed: &[u8] =
            if reaction == AppReaction::Malformed { b"xyz no chunk\r\n" } else { b"" };
        if is_bare || has_length {
            out.extend_from_slice(body);
        } else {
            self.push_chunks(&mut out, body);
            out.extend_from_slice(malformed);
            let trailers = ["0\r\n\r\n", "00;last\r\nX-T: 1\r\n\r\n"];
            return [&*out, trailers[self.chance.index(2)].as_bytes()].concat();
        }
        out.extend_from_slice(malformed);
        out
    }

    fn push_chunks(&mut self, out: &mut Vec<u8>, mut rest: &[u8]) {
        while !rest.is_empty() {
            let (chunk, behind) = rest.split_at(self.chance.size(rest.len()));
            let extension = ["", ";a=b", " "][self.chance.index(3)];
            out.extend_from_slice(format!("{:x}{extension}\r\n", chunk.len()).as_bytes());
            out.extend_from_slice(chunk);
            out.extend_from_slice(b"\r\n");
            rest = behind;
        }
    }
}
