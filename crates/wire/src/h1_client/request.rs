//! Encodes a request: request line, fields, and a body by length, in chunks, or unframed in a
//! tunnel.
//!
//! The caller chooses the fields. Only texts with CR, LF or NUL are refused, because they would
//! allow request splitting.

use bolide_base::SendChain;
use bolide_http::UpstreamHead;

use crate::outgoing::SendingState;
use crate::{BodySource, Pull, StreamOwner};

/// LIMIT: bytes of the body that are pulled at once.
const PULL_MAX: usize = 64 * 1024;
/// A piece shorter than this is not pulled just because the room ends.
const CHUNK_MIN: usize = 256;
/// Bytes around the content of a chunk, whose size has at most five digits.
const CHUNK_OVERHEAD: usize = 5 + 2 + 2;
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
/// Bytes around a field, and around the parts of the request line.
const FIELD_OVERHEAD: usize = 4;
const LINE_OVERHEAD: usize = 16;

/// How the rest of a body is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UploadFraming {
    /// This many bytes.
    Length(u64),
    /// In chunks.
    Chunked,
    /// Unframed, until its end: the connection carries another protocol.
    Tunnel,
}

/// Appends the head; `None` if HTTP/1 cannot encode the request.
pub(super) fn push_head(out: &mut Vec<u8>, head: &UpstreamHead) -> Option<()> {
    if !head.is_encodable() {
        return None;
    }
    let (method, target) = (head.method(), head.target());
    out.reserve(head.size() + FIELD_OVERHEAD * head.len() + LINE_OVERHEAD);
    for part in [method, b" ", target, b" ", head.version().text(), b"\r\n"] {
        out.extend_from_slice(part);
    }
    for (name, value) in head.fields() {
        for part in [name, b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    out.extend_from_slice(b"\r\n");
    Some(())
}

impl UploadFraming {
    /// Pulls one piece into the rest of `room`. Returns the state of sending and whether bytes were
    /// appended; `None` if the room is too small.
    pub(super) fn send(
        &mut self,
        room: usize,
        out: &mut SendChain,
        user: StreamOwner,
        body: &mut impl BodySource,
    ) -> Option<(Pull, SendingState, bool)> {
        let overhead = if *self == Self::Chunked { CHUNK_OVERHEAD } else { 0 };
        let max = room.saturating_sub(overhead).min(PULL_MAX);
        if max == 0 {
            return None;
        }
        let before = out.len();
        let (pull, sending) = match self {
            Self::Length(left) => {
                let pull = body.pull(user, shortest(max, *left), out);
                assert!(out.len() - before <= *left, "the body has exactly its declared length");
                *left = left.saturating_sub(out.len() - before);
                let sending = match pull {
                    _ if *left == 0 => SendingState::Sent,
                    // A body that is shorter than its declared length cannot be completed.
                    Pull::End => SendingState::Broken,
                    _ => sending_of(pull),
                };
                (pull, sending)
            }
            Self::Chunked => {
                let pull = send_chunk(max, out, user, body);
                (pull, sending_of(pull))
            }
            Self::Tunnel => {
                let pull = body.pull(user, max, out);
                (pull, sending_of(pull))
            }
        };
        Some((pull, sending, out.len() > before))
    }

    /// Whether to pull for `left` bytes of room, of `room` at first.
    pub(super) fn is_worth(left: usize, room: usize) -> bool {
        left > 0 && left >= CHUNK_MIN.min(room)
    }
}

const fn sending_of(pull: Pull) -> SendingState {
    match pull {
        Pull::More | Pull::Pending => SendingState::Body,
        Pull::End => SendingState::Sent,
        Pull::Broken => SendingState::Broken,
    }
}

fn shortest(max: usize, left: u64) -> usize {
    usize::try_from(left).map_or(max, |left| left.min(max))
}

/// Appends one chunk of all that is there, and the last chunk if that is the end.
fn send_chunk(
    max: usize,
    out: &mut SendChain,
    user: StreamOwner,
    body: &mut impl BodySource,
) -> Pull {
    let chunk = out.begin_chunk(max);
    let start = out.len();
    let pull = loop {
        let before = out.len();
        let pull = body.pull(user, max - (before - start) as usize, out);
        let has_room = out.len() - start < max as u64;
        if pull != Pull::More || out.len() == before || !has_room {
            break pull;
        }
    };
    assert!(out.len() - start <= max as u64, "a chunk has no more than was asked for");
    out.end_chunk(chunk);
    if pull == Pull::End {
        out.push_slice(LAST_CHUNK);
    }
    pull
}
