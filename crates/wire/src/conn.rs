//! What all three framings have in common: events, the pulled body, errors.
//!
//! Method families: `receive` and `handle_*` take, `poll_*` give, plain verbs are ours.

use bolide_base::SendChain;
use bolide_http::{FieldMap, RequestHead};

/// Names one request on one connection. Opaque: only the machine that made it looks inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId(pub u64);

/// The owner's own name for a stream, given with `bind` and handed back with events and pulls.
pub type StreamOwner = u64;

/// A stream that can do nothing until its peer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaiting {
    /// Which one.
    pub stream: StreamId,
    /// Whose answer has no room in the peer's windows; none where it is the head of a request that
    /// is not complete.
    pub user: Option<StreamOwner>,
    /// Changes whenever bytes of the stream leave.
    pub progress: u64,
}

/// A user that nobody has bound yet.
pub const UNBOUND: StreamOwner = u64::MAX;

/// Request heads that are used again, so that a warm connection allocates nothing.
#[derive(Debug, Default)]
pub struct HeadPool {
    #[expect(clippy::vec_box, reason = "heads travel boxed; unboxing would copy 250 bytes twice")]
    free: Vec<Box<RequestHead>>,
    /// Where field sections are decompressed; no connection has such a buffer of its own.
    pub(crate) scratch: Vec<u8>,
}

/// Heads kept for reuse, and the arena size above which a head is not worth keeping.
const POOLED_MAX: usize = 256;
const POOLED_SIZE_MAX: usize = 16 * 1024;

impl HeadPool {
    /// An empty head.
    pub fn take(&mut self) -> Box<RequestHead> {
        self.free.pop().unwrap_or_default()
    }

    /// Gives a head back.
    pub fn put(&mut self, mut head: Box<RequestHead>) {
        if self.free.len() < POOLED_MAX && head.fields.size() <= POOLED_SIZE_MAX {
            head.clear();
            self.free.push(head);
        }
    }
}

/// Why a request is answered with an error before anything else looked at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireRefusal {
    /// The status nginx gives: 400, 405, 408, 413, 414, 494 (too large a header, shown as 400),
    /// 501, 505.
    pub status: u16,
    /// For the error log, in nginx's words: `client sent invalid method`.
    pub reason: &'static str,
}

/// What the peer did.
#[derive(Debug)]
pub enum WireEvent {
    /// A complete request head arrived. Answer with `bind`, then `respond`.
    Request {
        /// The stream to answer on.
        stream: StreamId,
        /// What is asked.
        head: Box<RequestHead>,
    },
    /// A request that must be refused; `head` holds what could be read of it.
    Refused {
        /// The stream to answer on.
        stream: StreamId,
        /// What could be read.
        head: Box<RequestHead>,
        /// What to answer and log.
        refusal: WireRefusal,
    },
    /// Part of a request body, or of what the client says in a tunnel; give the room back with
    /// `body_consumed`.
    Body {
        /// Whose body.
        user: StreamOwner,
        /// The bytes.
        bytes: bytes::Bytes,
    },
    /// The request body is complete, or the client's side of a tunnel.
    BodyEnd {
        /// Whose body.
        user: StreamOwner,
    },
    /// The request body broke the rules; answer with this status if that is still possible.
    BodyRefused {
        /// Whose body.
        user: StreamOwner,
        /// What to answer and log.
        refusal: WireRefusal,
    },
    /// The peer gave up on a stream, or a broken rule ended it; nothing more leaves on it.
    Reset {
        /// Whose stream.
        user: StreamOwner,
    },
    /// The last byte of a response was handed over (not: received by the peer).
    Sent {
        /// Whose response.
        user: StreamOwner,
        /// Body bytes that left, with the framing of chunks.
        body_bytes: u64,
        /// Bytes of the head that left, and of frames in HTTP/2 and 3.
        head_bytes: u64,
    },
}

/// The peer broke the protocol; after what is queued has left, the connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnError {
    /// One of the protocol's own error codes.
    pub code: u64,
    /// For the error log, never for the peer.
    pub reason: &'static str,
}

/// The stream of a response is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RespondError;

/// How a pull from a body went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// Appended something; ask again.
    More,
    /// Nothing now; `body_ready` will be called when there is.
    Pending,
    /// That was the last byte; something may have been appended.
    End,
    /// The body cannot be completed; cut the stream.
    Broken,
}

/// Where response bodies come from, asked only when a byte can really leave.
pub trait BodySource {
    /// Appends at most `max` bytes of `user`'s body to `out`.
    fn pull(&mut self, user: StreamOwner, max: usize, out: &mut SendChain) -> Pull;

    /// Adds the trailer fields of `user`'s answer to `fields`; asked once, behind the last byte of
    /// a body whose head said `trailed`, also where the protocol cannot send them.
    fn trailers(&mut self, user: StreamOwner, fields: &mut FieldMap) {
        let _ = (user, fields);
    }
}
