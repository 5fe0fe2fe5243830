//! The body of a request to an upstream: by length, in chunks, or unframed in a tunnel.
//!
//! It never sends more than the declared length, and an incomplete body is broken, not ended.

use bolide_base::SendChain;

use crate::outgoing::SendingState;
use crate::upstream_client::UpstreamCall;
use crate::{BodySource, Pull, StreamOwner};

/// LIMIT: bytes of the body that are pulled at once.
const PULL_MAX: usize = 64 * 1024;
/// A piece shorter than this is not pulled just because the room ends.
const CHUNK_MIN: usize = 256;
/// Bytes around the content of a chunk, whose size has at most five digits.
const CHUNK_OVERHEAD: usize = 5 + 2 + 2;
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// How the rest of a body is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UploadFraming {
    /// This many bytes.
    Length(u64),
    /// In chunks.
    Chunked,
    /// Unframed, until its end: the connection carries another protocol.
    Tunnel,
}

impl UploadFraming {
    /// Appends encoded bytes, then as much of the body as fits into `room`.
    pub(crate) fn pull(
        &mut self,
        call: &mut UpstreamCall,
        room: usize,
        out: &mut SendChain,
        user: StreamOwner,
        body: &mut impl BodySource,
    ) {
        let start = out.len();
        call.outgoing.flush(out);
        while call.outgoing.pulls() {
            let left = room.saturating_sub((out.len() - start) as usize);
            if !Self::is_worth(left, room) {
                return;
            }
            let Some((pull, sending, is_more)) = self.send(left, out, user, body) else { return };
            call.outgoing.sending = sending;
            call.outgoing.is_pending = pull == Pull::Pending;
            if !is_more {
                return;
            }
        }
    }

    /// Pulls one piece into the rest of `room`. Returns the state of sending and whether bytes were
    /// appended; `None` if the room is too small.
    fn send(
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
    fn is_worth(left: usize, room: usize) -> bool {
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
