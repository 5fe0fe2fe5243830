//! The types that all three HTTP framings share: events, the pulled body, errors.
//!
//! Method families: `receive` and `handle_*` take, `poll_*` give, plain verbs are ours.

use bolide_base::SendChain;
use bolide_http::{FieldMap, RequestHead};

/// Identifies one request on one connection. Opaque: only the machine that made it looks inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId(pub u64);

/// The caller's key for a stream. `bind` sets it; events and pulls carry it.
pub type StreamOwner = u64;

/// A stream that cannot proceed until its peer sends something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaiting {
    /// The stream.
    pub stream: StreamId,
    /// The owner of a response that the peer's flow-control windows block. `None` for a request
    /// head that is incomplete.
    pub user: Option<StreamOwner>,
    /// Changes whenever bytes of the stream are sent, or the peer had room for them.
    pub progress: u64,
}

/// The owner of a stream before `bind`.
pub const UNBOUND: StreamOwner = u64::MAX;

/// Reused request heads. With them a warm connection allocates nothing.
#[derive(Debug, Default)]
pub struct HeadPool {
    #[expect(clippy::vec_box, reason = "heads travel boxed; unboxing would copy 250 bytes twice")]
    free: Vec<Box<RequestHead>>,
    /// The buffer that field sections are decompressed into. Connections share it.
    pub(crate) scratch: Vec<u8>,
}

/// LIMIT: heads that the pool keeps, and the largest arena size of a head that it keeps.
const POOLED_MAX: usize = 256;
const POOLED_SIZE_MAX: usize = 16 * 1024;

impl HeadPool {
    /// Takes an empty head.
    pub fn take(&mut self) -> Box<RequestHead> {
        let head = self.free.pop().unwrap_or_default();
        debug_assert!(head.fields.is_empty(), "a pooled head has nothing of its last request");
        head
    }

    /// Returns a head to the pool.
    pub fn put(&mut self, mut head: Box<RequestHead>) {
        if self.free.len() < POOLED_MAX && head.fields.size() <= POOLED_SIZE_MAX {
            head.clear();
            self.free.push(head);
        }
    }
}

/// An error that the framing found in a request, with the status of the response to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireRefusal {
    /// The status that nginx uses: 400, 405, 408, 413, 414, 494 (header too large, sent as 400),
    /// 501, 505; 499 of a client that left within its head.
    pub status: u16,
    /// The text for the error log, as nginx writes it: `client sent invalid method`.
    pub reason: &'static str,
}

/// What the peer did.
#[derive(Debug)]
pub enum WireEvent {
    /// A complete request head arrived. Answer with `bind`, then `respond`.
    Request {
        /// The stream to respond on.
        stream: StreamId,
        /// The request.
        head: Box<RequestHead>,
    },
    /// A request that must be refused.
    Refused {
        /// The stream to respond on.
        stream: StreamId,
        /// The part of the head that could be parsed.
        head: Box<RequestHead>,
        /// The status to respond with and the reason to log.
        refusal: WireRefusal,
    },
    /// Content of a request, or bytes of a tunnel from the client. Return the room with
    /// `body_consumed`.
    Body {
        /// The owner of the stream.
        user: StreamOwner,
        /// The bytes.
        bytes: bytes::Bytes,
    },
    /// The request body is complete, or the client ended its side of a tunnel.
    BodyEnd {
        /// The owner of the stream.
        user: StreamOwner,
    },
    /// The request body is malformed or too large. Respond with this status if the response has not
    /// begun.
    BodyRefused {
        /// The owner of the stream.
        user: StreamOwner,
        /// The status to respond with and the reason to log.
        refusal: WireRefusal,
    },
    /// The peer cancelled the stream, or a protocol error ended it. Nothing more is sent on it.
    Reset {
        /// The owner of the stream.
        user: StreamOwner,
    },
    /// The last byte of a response was handed to the caller. The peer may not have received it yet.
    Sent {
        /// The owner of the stream.
        user: StreamOwner,
        /// Body bytes that were sent, including chunked framing.
        body_bytes: u64,
        /// Bytes of the head that were sent; in HTTP/2 and HTTP/3 frame headers count here, too.
        head_bytes: u64,
    },
}

/// A connection error. After the queued bytes are sent the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnError {
    /// An error code of the protocol.
    pub code: u64,
    /// The text for the error log. The peer never sees it.
    pub reason: &'static str,
}

/// The stream of the response no longer exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RespondError;

/// The result of pulling from a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// Bytes were appended. Pull again.
    More,
    /// No bytes are available now. The source calls `body_ready` when there are some.
    Pending,
    /// The body is complete. The last bytes may have been appended.
    End,
    /// The body cannot be completed. Reset the stream.
    Broken,
}

/// The source of response bodies. A framing pulls only when it can send at once.
pub trait BodySource {
    /// Appends at most `max` bytes of the body of `user` to `out`.
    fn pull(&mut self, user: StreamOwner, max: usize, out: &mut SendChain) -> Pull;

    /// Of `want` bytes in front of the body of `user`, whose response has a pace: how many may be
    /// sent now. If not all may, the response waits for `body_ready`.
    fn admit(&mut self, user: StreamOwner, want: usize) -> usize {
        let _ = user;
        want
    }

    /// Adds the trailer fields of the response of `user` to `fields`. The framing calls it once,
    /// after the last byte of a body whose head set `trailed`, even where the protocol cannot send
    /// trailers.
    fn trailers(&mut self, user: StreamOwner, fields: &mut FieldMap) {
        let _ = (user, fields);
    }
}
