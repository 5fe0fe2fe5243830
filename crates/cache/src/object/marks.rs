//! What of an object changes while workers hold it: one byte of marks.
//!
//! Owns the meaning of the bits. Retired and stale are never taken back.

use std::sync::atomic::{AtomicU8, Ordering};

use bolide_http::negotiate::Coding;

use crate::tags::TagVerdict;

/// Removed from the index.
const RETIRED: u8 = 1;
/// Hit by a soft purge.
const STALE: u8 = 2;
/// Being revalidated.
const REFRESHING: u8 = 4;
/// In the main queue of S3-FIFO; else in the small one.
const MAIN: u8 = 8;
/// The first of three bits: a compressed variant is being made.
const CLAIMED: u8 = 16;
/// Its body is assembled from ESI fragments when it is sent.
const ASSEMBLED: u8 = 128;

/// The marks of one object.
#[derive(Debug)]
pub(crate) struct ObjectMarks(AtomicU8);

impl ObjectMarks {
    /// The marks of a new object.
    pub(crate) const fn new(is_assembled: bool) -> Self {
        Self(AtomicU8::new(if is_assembled { ASSEMBLED } else { 0 }))
    }

    fn mark(&self, mark: u8) {
        self.0.fetch_or(mark, Ordering::AcqRel);
    }

    #[inline]
    fn has(&self, mark: u8) -> bool {
        self.0.load(Ordering::Acquire) & mark != 0
    }

    /// Whether it was removed from the index.
    #[inline]
    pub(crate) fn is_retired(&self) -> bool {
        self.has(RETIRED)
    }

    /// Its holder may finish serving it; no lookup finds it any more.
    pub(crate) fn retire(&self) {
        self.mark(RETIRED);
    }

    /// Whether a soft purge hit it.
    #[inline]
    pub(crate) fn is_stale(&self) -> bool {
        self.has(STALE)
    }

    pub(crate) fn soften(&self) {
        self.mark(STALE);
    }

    /// What they allow.
    #[inline]
    pub(crate) fn verdict(&self) -> TagVerdict {
        let marks = self.0.load(Ordering::Acquire);
        if marks & RETIRED != 0 {
            TagVerdict::Dead
        } else if marks & STALE != 0 {
            TagVerdict::Stale
        } else {
            TagVerdict::Good
        }
    }

    pub(crate) fn is_refreshing(&self) -> bool {
        self.has(REFRESHING)
    }

    pub(crate) fn set_refreshing(&self, on: bool) {
        if on {
            self.mark(REFRESHING);
        } else {
            self.0.fetch_and(!REFRESHING, Ordering::AcqRel);
        }
    }

    /// Whether it is in the main queue of its shard, whose lock the caller holds.
    pub(crate) fn is_main(&self) -> bool {
        self.0.load(Ordering::Relaxed) & MAIN != 0
    }

    pub(crate) fn set_main(&self) {
        self.mark(MAIN);
    }

    /// Claims the making of a compressed variant. True once, until [`Self::unclaim`].
    pub(crate) fn claim(&self, coding: Coding) -> bool {
        let bit = CLAIMED << coding.index();
        self.0.load(Ordering::Relaxed) & bit == 0
            && self.0.fetch_or(bit, Ordering::AcqRel) & bit == 0
    }

    pub(crate) fn unclaim(&self, coding: Coding) {
        self.0.fetch_and(!(CLAIMED << coding.index()), Ordering::AcqRel);
    }

    /// Whether its body is ESI.
    #[inline]
    pub(crate) fn is_assembled(&self) -> bool {
        self.0.load(Ordering::Relaxed) & ASSEMBLED != 0
    }
}
