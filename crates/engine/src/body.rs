//! The request body: discarded, buffered for an upstream, or streamed to it.
//!
//! ```text
//!   Undecided ──▶ Collected   buffered in memory and a file; then the upstream request begins
//!       │    └──▶ Streamed    each piece is sent to the upstream, then its window is reopened
//!       │             └──▶ Returned   the upstream took nothing of it: another one may
//!       └───────▶ Refused     discarded
//! ```
//!
//! Owns the pieces that arrived before the decision, and the buffer. Easiest to break: the client's
//! window is reopened exactly once for each byte, and not before the byte is stored or sent.

mod room;

use std::collections::VecDeque;

use bolide_base::{FileRef, Retain, Spool, SpoolLimits, push_piece};
use bolide_http::RequestBody;
use bytes::Bytes;

use crate::connection::RequestRefusal;

/// The use of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Plan {
    /// Not decided yet.
    #[default]
    Undecided,
    /// Buffer it.
    Collected,
    /// Stream it to the upstream.
    Streamed,
    /// It was to be streamed, but the upstream took nothing: its use is decided anew.
    Returned,
    /// Discard it.
    Refused,
}

/// The body of one request.
#[derive(Debug, Default)]
pub struct RequestUpload {
    plan: Plan,
    /// The pieces that arrived before the decision, in order.
    early: VecDeque<Bytes>,
    /// The buffer.
    spool: Option<Box<Spool>>,
    /// The most bytes in memory of a body whose file must contain all of it.
    whole_above: Option<usize>,
    /// The file of a body that needs a file name.
    named: Option<Box<Named>>,
    /// Bytes that were taken and not yet credited to the client's window.
    owed: usize,
    /// Whether the body is complete.
    is_complete: bool,
    /// What arrived together with the head and follows [`Exchange::start`](crate::Exchange::start).
    foreseen: Foreseen,
    /// An error in the body, found before its use was decided.
    refusal: Option<RequestRefusal>,
}

/// What is known of a body before its bytes are passed on.
#[derive(Clone, Copy, Debug, Default)]
struct Foreseen {
    bytes: usize,
    is_whole: bool,
}

/// A file with a name.
#[derive(Debug)]
struct Named {
    /// Empty until the file is created.
    path: Box<[u8]>,
    /// Whether the file is removed with the request.
    is_removed: bool,
}

/// What the file of a body contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileHolds {
    /// What exceeds the memory buffer.
    Rest,
    /// The whole body if it exceeds the memory buffer: the file will be read.
    Everything,
    /// Every body as a whole, in a file with a name.
    Always {
        /// Whether the file is removed with the request.
        is_removed: bool,
    },
}

/// The state of buffering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UploadProgress {
    /// More bytes have to arrive.
    Waiting,
    /// A part has to be written to the file first.
    Writing,
    /// It is complete.
    Complete,
    /// The file could not be written.
    Failed,
}

impl RequestUpload {
    /// Clears the last body.
    pub(crate) fn clear(&mut self) {
        self.plan = Plan::Undecided;
        self.early.clear();
        self.spool = None;
        self.whole_above = None;
        self.named = None;
        self.owed = 0;
        self.is_complete = false;
        self.foreseen = Foreseen::default();
        self.refusal = None;
    }

    /// Records an error in the body, which counts only if the body is used.
    pub(crate) const fn record_refusal(&mut self, refusal: RequestRefusal) {
        self.refusal = Some(refusal);
    }

    /// The noted error, if there is one.
    pub(crate) const fn take_refusal(&mut self) -> Option<RequestRefusal> {
        self.refusal.take()
    }

    /// This many bytes of the body follow the head immediately.
    pub const fn foresee(&mut self, len: usize) {
        self.foreseen.bytes += len;
    }

    /// The whole body follows the head immediately.
    pub const fn foresee_end(&mut self) {
        self.foreseen.is_whole = true;
    }

    /// Whether the whole body has arrived and fits into nginx's pre-read buffer: a quarter more
    /// than `buffer` if the length was declared.
    pub(crate) fn is_at_hand(&self, declared: RequestBody, buffer: usize) -> bool {
        let len = match (self.foreseen.is_whole, self.is_complete) {
            (true, _) => self.foreseen.bytes,
            (false, true) => self.early.iter().map(Bytes::len).sum(),
            (false, false) => return false,
        };
        match declared {
            RequestBody::Length(_) => len < buffer.saturating_add(buffer / 4),
            RequestBody::Unknown | RequestBody::None => len <= buffer,
        }
    }

    /// Stores a piece until the use of the body is decided. The framing's window bounds the pieces.
    pub(crate) fn keep(&mut self, bytes: Bytes) {
        push_piece(&mut self.early, 0, bytes);
    }

    /// The lengths of the pieces that arrived before the decision.
    pub(crate) fn early_lengths(&self) -> impl Iterator<Item = u64> {
        self.early.iter().map(|bytes| bytes.len() as u64)
    }

    /// Records that the body is complete.
    pub(crate) const fn finish(&mut self) {
        self.is_complete = true;
    }

    /// Whether the body is complete.
    pub(crate) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether the body was collected and turned out to be empty.
    pub(crate) fn is_found_empty(&self) -> bool {
        self.is_complete && self.spool.as_ref().is_some_and(|spool| spool.received() == 0)
    }

    /// Whether the body is buffered or streamed; until then the client may wait for us.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.plan != Plan::Undecided
    }

    /// Whether pieces are sent to the upstream as they arrive.
    pub(crate) fn is_streamed(&self) -> bool {
        self.plan == Plan::Streamed
    }

    /// Appends a piece to the buffer.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        debug_assert_eq!(self.plan, Plan::Collected, "only what is collected takes pieces");
        self.owed += bytes.len();
        if let Some(spool) = &mut self.spool {
            if self.whole_above.is_some_and(|max| spool.in_memory() + bytes.len() > max) {
                spool.spill();
            }
            spool.push(bytes);
        }
    }

    /// The client's part is over: an incomplete body is dropped.
    pub(crate) fn close(&mut self) {
        if self.plan != Plan::Collected || !self.is_complete {
            self.plan = Plan::Refused;
            self.early.clear();
            self.spool = None;
        }
    }

    /// Whether the body was used, so that its bytes count in `$request_length`. nginx does not
    /// count what it discards over HTTP/1.
    pub(crate) const fn counts(&self) -> bool {
        !matches!(self.plan, Plan::Undecided)
    }

    /// Whether the body is discarded.
    pub(crate) fn is_refused(&self) -> bool {
        self.plan == Plan::Refused
    }

    /// Starts streaming; returns the spool that buffers for the upstream connection.
    pub(crate) fn stream(&mut self, memory: usize) -> Spool {
        debug_assert_ne!(self.plan, Plan::Refused, "what is discarded is not handed on");
        debug_assert!(self.spool.is_none(), "a body is collected or handed on, not both");
        self.plan = Plan::Streamed;
        let mut spool = Spool::new(SpoolLimits { memory, file: 0 }, Retain::No);
        for bytes in std::mem::take(&mut self.early) {
            spool.push(bytes);
        }
        if self.is_complete {
            spool.finish();
        }
        spool
    }

    /// The upstream took nothing of the streamed body: these pieces are all that arrived.
    pub fn give_back_unsent(&mut self, pieces: VecDeque<Bytes>) {
        // Another body may have been sent instead, or none.
        if self.plan == Plan::Streamed {
            let is_elsewhere = self.early.is_empty() && self.spool.is_none();
            debug_assert!(is_elsewhere, "the pieces of a streamed body are with the fetch");
            debug_assert_eq!(self.owed, 0, "what was credited is not given back");
            self.plan = Plan::Returned;
            self.early = pieces;
        }
    }

    /// The connection is a tunnel now: what the client sends from here on is streamed to the
    /// upstream.
    pub(crate) fn begin_tunnel(&mut self) {
        debug_assert!(self.early.is_empty() && self.owed == 0, "the body before it was sent");
        self.plan = Plan::Streamed;
        self.spool = None;
        self.is_complete = false;
    }

    /// Takes over the complete body of another request.
    pub(crate) fn share(&mut self, body: Spool) {
        debug_assert!(body.is_complete(), "what is shared has been collected");
        self.plan = Plan::Collected;
        self.spool = Some(Box::new(body));
        self.is_complete = true;
    }

    /// Records the name of the file that [`crate::SpoolPlace::Named`] requested.
    pub fn set_file_name(&mut self, path: Box<[u8]>) {
        debug_assert!(!path.is_empty(), "a file with a name has one");
        if let Some(named) = &mut self.named {
            named.path = path;
        }
    }

    /// The name of the body's file, if it has one.
    pub(crate) fn file_name(&self) -> Option<&[u8]> {
        self.named.as_ref().map(|named| &*named.path).filter(|path| !path.is_empty())
    }

    /// Hands out the named file of the complete body, which is then not removed with the request.
    pub(crate) fn hand_over(&mut self) -> Option<(Box<[u8]>, FileRef)> {
        let file = self.spool.as_ref()?.file()?.clone();
        debug_assert!(self.is_complete, "the file of a body is whole before it is given away");
        let named = self.named.take_if(|named| !named.path.is_empty())?;
        Some((named.path, file))
    }

    /// The named file to remove at the end of the request.
    #[inline]
    pub fn take_file(&mut self) -> Option<Box<[u8]>> {
        let named = self.named.take()?;
        (named.is_removed && !named.path.is_empty()).then_some(named.path)
    }

    /// The buffer, if there is one.
    pub(crate) fn spool(&self) -> Option<&Spool> {
        self.spool.as_deref()
    }

    /// As [`Self::spool`], mutable.
    pub(crate) fn spool_mut(&mut self) -> Option<&mut Spool> {
        self.spool.as_deref_mut()
    }
}
