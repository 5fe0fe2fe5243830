//! A page with ESI as it left last: its text and what it was put together from.
//!
//! Owns until when that is how the page leaves. Easiest to break: one part that was purged,
//! replaced or is too old takes the whole with it, and nothing for one session is ever a part.

use std::sync::Arc;

use bytes::Bytes;

use crate::object::Object;
use crate::store::{Freshness, judge};
use crate::tags::TagTable;

/// A page that was put together, as references to the texts of which it consists.
#[derive(Debug)]
pub struct Whole {
    pieces: Box<[Bytes]>,
    len: u64,
    parts: Box<[Arc<Object>]>,
    until_ms: u64,
}

impl Whole {
    /// The page that `pieces` are, made of `parts`; not to be sent from `until_ms` on. None if a
    /// part is for one session only.
    #[must_use]
    pub fn new(pieces: Vec<Bytes>, parts: Vec<Arc<Object>>, until_ms: u64) -> Option<Self> {
        let is_private = parts.iter().any(|part| part.session().is_some());
        let len = pieces.iter().map(|piece| piece.len() as u64).sum();
        let (pieces, parts) = (pieces.into_boxed_slice(), parts.into_boxed_slice());
        (!is_private).then_some(Self { pieces, len, parts, until_ms })
    }

    /// Its bytes, in their order.
    #[must_use]
    pub const fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }

    /// How many bytes that are.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many kept answers stand in it.
    pub(crate) const fn count(&self) -> u64 {
        self.parts.len() as u64
    }

    /// Whether it is what would be put together now. Takes no lock.
    pub(crate) fn is_good(&self, tags: &TagTable, now_ms: u64) -> bool {
        now_ms < self.until_ms
            && self.parts.iter().all(|part| judge(part, tags, now_ms) == Freshness::Fresh)
    }

    /// Notes a use of each part for eviction.
    pub(crate) fn touch(&self, now_ms: u64) {
        self.parts.iter().for_each(|part| part.touch(now_ms));
    }

    /// Whether a part has left the index.
    pub(crate) fn is_retired(&self) -> bool {
        self.parts.iter().any(|part| part.is_retired())
    }
}
