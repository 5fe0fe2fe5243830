//! An assembled ESI page: its text, and the objects that it was assembled from.
//!
//! INVARIANT: one purged, replaced or expired part invalidates the whole page, and no part is
//! private.

use std::sync::Arc;

use bytes::Bytes;

use crate::object::Object;
use crate::store::{Freshness, judge};
use crate::tags::TagTable;

/// An assembled page, as references to the texts of its parts.
#[derive(Debug)]
pub struct Whole {
    pieces: Box<[Bytes]>,
    len: u64,
    parts: Box<[Arc<Object>]>,
    until_ms: u64,
}

impl Whole {
    /// The page of `pieces`, assembled from `parts`, valid before `until_ms`. `None` if a part is
    /// private.
    #[must_use]
    pub fn new(pieces: Vec<Bytes>, parts: Vec<Arc<Object>>, until_ms: u64) -> Option<Self> {
        let is_private = parts.iter().any(|part| part.session().is_some());
        let len = pieces.iter().map(|piece| piece.len() as u64).sum();
        let (pieces, parts) = (pieces.into_boxed_slice(), parts.into_boxed_slice());
        (!is_private).then_some(Self { pieces, len, parts, until_ms })
    }

    /// The bytes of the page, in order.
    #[must_use]
    pub const fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }

    /// The length of the page in bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether the page is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of objects in it.
    pub(crate) const fn count(&self) -> u64 {
        self.parts.len() as u64
    }

    /// Whether assembling it now would give the same page. Takes no lock.
    pub(crate) fn is_good(&self, tags: &TagTable, now_ms: u64) -> bool {
        now_ms < self.until_ms
            && self.parts.iter().all(|part| judge(part, tags, now_ms) == Freshness::Fresh)
    }

    /// Records a use of each part for eviction.
    pub(crate) fn touch(&self, now_ms: u64) {
        debug_assert!(
            self.parts.iter().all(|part| part.session().is_none()),
            "an assembled page has no private part"
        );
        self.parts.iter().for_each(|part| part.touch(now_ms));
    }

    /// Whether a part was removed from the index.
    pub(crate) fn is_retired(&self) -> bool {
        self.parts.iter().any(|part| part.is_retired())
    }
}
