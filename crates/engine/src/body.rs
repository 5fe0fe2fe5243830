//! The body of a request: thrown away, collected for an origin, or handed on as it comes.
//!
//! ```text
//!   Undecided ──▶ Collected   all of it in memory and a file, then the origin is asked
//!       │    └──▶ Streamed    each piece goes to the origin, which gives its room back
//!       └───────▶ Refused     it is discarded
//! ```
//!
//! Owns what arrived before its use was decided, and what is collected. Easiest to break: the
//! client's room is given back exactly once for each byte, and not before the byte has found its
//! place.

mod room;

use std::collections::VecDeque;

use bolide_base::{FileRef, Retain, Spool, SpoolLimits, push_piece};
use bolide_http::RequestBody;
use bytes::Bytes;

use crate::connection::RequestRefusal;

/// What becomes of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Plan {
    /// Not known yet.
    #[default]
    Undecided,
    /// It is collected.
    Collected,
    /// It goes to the origin as it comes.
    Streamed,
    /// It is discarded.
    Refused,
}

/// The body of one request.
#[derive(Debug, Default)]
pub struct RequestUpload {
    plan: Plan,
    /// What came before the plan was made, in order.
    early: VecDeque<Bytes>,
    /// What is collected.
    spool: Option<Box<Spool>>,
    /// The most that may be in memory of a body whose file has to be the whole of it.
    whole_above: Option<usize>,
    /// The file of a body whose file has a name.
    named: Option<Box<Named>>,
    /// Bytes taken whose room was not given back.
    owed: usize,
    /// Whether all of it arrived.
    is_complete: bool,
    /// What came together with the head, and is handed over behind it.
    foreseen: Foreseen,
    /// What was wrong with it before its use was known.
    refusal: Option<RequestRefusal>,
}

/// What is known of a body before it is handed over.
#[derive(Clone, Copy, Debug, Default)]
struct Foreseen {
    bytes: usize,
    is_whole: bool,
}

/// A file with a name.
#[derive(Debug)]
struct Named {
    /// Nothing before it is made.
    path: Box<[u8]>,
    /// Whether it goes with the request.
    is_removed: bool,
}

/// What is in the file of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileHolds {
    /// What did not fit in memory.
    Rest,
    /// All of what does not fit in memory: the file will be read.
    Everything,
    /// All of any body, in a file with a name.
    Always {
        /// Whether the file goes with the request.
        is_removed: bool,
    },
}

/// How a collection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UploadProgress {
    /// More has to come.
    Waiting,
    /// A part has to be written to the file first.
    Writing,
    /// It is complete.
    Complete,
    /// It could not be written.
    Failed,
}

impl RequestUpload {
    /// Forgets the last body.
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

    /// Notes that the body is wrong, which counts if it is used.
    pub(crate) const fn note_refusal(&mut self, refusal: RequestRefusal) {
        self.refusal = Some(refusal);
    }

    /// What was noted to be wrong with the body.
    pub(crate) const fn take_refusal(&mut self) -> Option<RequestRefusal> {
        self.refusal.take()
    }

    /// So many bytes of the body follow the start at once.
    pub const fn foresee(&mut self, len: usize) {
        self.foreseen.bytes += len;
    }

    /// All of the body follows the start at once.
    pub const fn foresee_end(&mut self) {
        self.foreseen.is_whole = true;
    }

    /// Whether all of the body is there and fits in the buffer into which nginx reads what there
    /// is before it asks an origin: a quarter more of a body whose length was declared.
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

    /// Keeps a piece until it is known what becomes of the body. The framing's window bounds them.
    pub(crate) fn keep(&mut self, bytes: Bytes) {
        push_piece(&mut self.early, 0, bytes);
    }

    /// How long the pieces are that came before it is known what becomes of the body.
    pub(crate) fn early_lengths(&self) -> impl Iterator<Item = u64> {
        self.early.iter().map(|bytes| bytes.len() as u64)
    }

    /// Notes that nothing more comes.
    pub(crate) const fn finish(&mut self) {
        self.is_complete = true;
    }

    /// Whether all of it arrived.
    pub(crate) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether the body was used; until then its client may wait for us.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.plan != Plan::Undecided
    }

    /// Whether pieces go to the origin as they come.
    pub(crate) fn is_streamed(&self) -> bool {
        self.plan == Plan::Streamed
    }

    /// Takes a piece of a body that is collected.
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

    /// The client's part is over: what was not collected in full is nowhere.
    pub(crate) fn close(&mut self) {
        if self.plan != Plan::Collected || !self.is_complete {
            self.plan = Plan::Refused;
            self.early.clear();
            self.spool = None;
        }
    }

    /// Whether the body was used, so that its bytes belong to the request's length. What
    /// nginx throws away over HTTP/1 is not counted.
    pub(crate) const fn counts(&self) -> bool {
        !matches!(self.plan, Plan::Undecided)
    }

    /// Whether the body is discarded.
    pub(crate) fn is_refused(&self) -> bool {
        self.plan == Plan::Refused
    }

    /// Starts to hand pieces on; the spool that their sender fills.
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

    /// Takes the whole body of another request for its own.
    pub(crate) fn share(&mut self, body: Spool) {
        debug_assert!(body.is_complete(), "what is shared has been collected");
        self.plan = Plan::Collected;
        self.spool = Some(Box::new(body));
        self.is_complete = true;
    }

    /// Takes note of the file that [`crate::SpoolPlace::Named`] asked for.
    pub fn note_file(&mut self, path: Box<[u8]>) {
        debug_assert!(!path.is_empty(), "a file with a name has one");
        if let Some(named) = &mut self.named {
            named.path = path;
        }
    }

    /// Where the file of the body is, if it has a name.
    pub(crate) fn file_name(&self) -> Option<&[u8]> {
        self.named.as_ref().map(|named| &*named.path).filter(|path| !path.is_empty())
    }

    /// Gives away the file of the whole body, if that has a name: it does not go with the request
    /// any more.
    pub(crate) fn hand_over(&mut self) -> Option<(Box<[u8]>, FileRef)> {
        let file = self.spool.as_ref()?.file()?.clone();
        debug_assert!(self.is_complete, "the file of a body is whole before it is given away");
        let named = self.named.take_if(|named| !named.path.is_empty())?;
        Some((named.path, file))
    }

    /// The file that goes with the request, when that ends.
    #[inline]
    pub fn take_file(&mut self) -> Option<Box<[u8]>> {
        let named = self.named.take()?;
        (named.is_removed && !named.path.is_empty()).then_some(named.path)
    }

    /// What is or was collected.
    pub(crate) fn spool(&self) -> Option<&Spool> {
        self.spool.as_deref()
    }

    /// The same, for writing to its file.
    pub(crate) fn spool_mut(&mut self) -> Option<&mut Spool> {
        self.spool.as_deref_mut()
    }
}
