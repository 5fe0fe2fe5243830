//! The purges that objects of other nodes are judged by, and where each stands in the stream.
//!
//! ```text
//!   fill here   its purge number ──▶ the last entry whose purges have no greater number: its place
//!   object      its place ──▶ purges of later entries, and of this node that have no place yet
//! ```
//! INVARIANT: an object is taken only if its place is an entry that this log has, so that all
//! entries behind it are here as well. What the log cannot tell is a miss.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::bans::BanPattern;
use crate::disk::DiskPurge;
use crate::disk::format::Record;
use crate::disk::purges::Purges;
use crate::tags::TagVerdict;

/// LIMIT: entries of the stream that are remembered.
const ENTRIES_MAX: usize = 1 << 16;
/// LIMIT: purges that are remembered.
const PURGES_MAX: usize = 1 << 17;

/// An entry of the stream: its id, and what tells it from another one with that id, which comes
/// after a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamPlace {
    /// Its first half.
    pub ms: u64,
    /// Its second half.
    pub number: u64,
    /// The checksum of its bytes.
    pub sum: u64,
}

/// An entry whose purges are carried out.
#[derive(Clone, Copy, Debug)]
struct Row {
    place: StreamPlace,
    /// The smallest purge number of its purges; the greatest number there is if it has none.
    first: u64,
    /// A fill with this purge number or a greater one began after its purges and all before.
    after: u64,
}

/// A purge of this node whose entry has not come back from the stream.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// The number by which others will hear of it, or by which they have heard of it.
    told: u64,
    sequence: u64,
}

/// The log. It is empty until it begins.
#[derive(Debug, Default)]
pub(super) struct PurgeLog {
    purges: Purges,
    rows: VecDeque<Row>,
    pending: VecDeque<Pending>,
    /// Entries before this place are not remembered.
    fence: StreamPlace,
    /// Nothing is remembered before the purge of this number has come back.
    barrier: u64,
    /// The number up to which purges of this node have come back.
    confirmed: u64,
}

impl PurgeLog {
    /// Entries from `fence` on count, once the purge of this node with the number `barrier` has
    /// come back: it may have been before this log.
    pub(super) fn begin(&mut self, fence: StreamPlace, barrier: u64) {
        self.rows.clear();
        if self.confirmed >= self.barrier {
            self.barrier = 0;
        }
        self.barrier = self.barrier.max(barrier);
        (self.fence, self.confirmed) = (fence, 0);
    }

    /// Remembers a purge that this node carries out. One that others are told of has a number;
    /// others may hear of it at any place.
    pub(super) fn note_purge(&mut self, order: &DiskPurge<'_>, told: Option<u64>) {
        self.purges.add(order);
        if let Some(told) = told {
            let sequence = order.sequence;
            debug_assert!(
                self.pending.back().is_none_or(|last| last.told <= told),
                "purges are told in order"
            );
            self.pending.push_back(Pending { told, sequence });
        }
        if self.purges.len() > PURGES_MAX || self.pending.len() > PURGES_MAX {
            self.shorten();
        }
    }

    /// The purges of an entry are carried out; those of this node up to `confirmed` have come back.
    /// An entry of another node came after the number `before`, and no number is greater than
    /// `now`. The two differ even if it has no purges, so that fills from before it do not seem to
    /// come after it.
    pub(super) fn note_entry(
        &mut self,
        place: StreamPlace,
        (before, now): (Option<u64>, u64),
        confirmed: u64,
    ) {
        debug_assert!(before.is_none_or(|before| before < now), "an entry has a number");
        self.confirmed = self.confirmed.max(confirmed);
        let first = before.map_or(u64::MAX, |before| before + 1);
        let mut row = Row { place, first, after: before.map_or(0, |_| now) };
        while let Some(own) = self.pending.front().filter(|own| own.told <= confirmed) {
            row.first = row.first.min(own.sequence);
            row.after = row.after.max(own.sequence);
            self.pending.pop_front();
        }
        if !self.counts(place) {
            return;
        }
        let last = self.rows.back();
        if last.is_some_and(|last| last.place >= place) {
            debug_assert!(false, "entries come in the order of the stream");
            return self.rows.clear();
        }
        // Without one before it, purges of others may have come with any number so far.
        row.after = last.map_or(now, |last| row.after.max(last.after));
        self.rows.push_back(row);
        if self.rows.len() > ENTRIES_MAX {
            self.shorten();
        }
    }

    fn counts(&self, place: StreamPlace) -> bool {
        place >= self.fence && self.confirmed >= self.barrier
    }

    /// Purges were missed, and all was dropped: nothing before `place` is known.
    pub(super) fn reset(&mut self, place: StreamPlace, now: u64) {
        self.rows.clear();
        if self.counts(place) {
            self.rows.push_back(Row { place, first: u64::MAX, after: now });
        }
    }

    /// Forgets the older half.
    fn shorten(&mut self) {
        let half = self.rows.len() / 2;
        self.rows.drain(..half);
        if self.pending.len() > PURGES_MAX {
            // None of them has a place, so no place can be trusted before all have come back.
            self.barrier = self.pending.back().map_or(self.barrier, |last| last.told);
            self.pending.clear();
            self.rows.clear();
        }
        self.forget();
        if self.purges.len() > PURGES_MAX {
            self.rows.clear();
            self.forget();
        }
        debug_assert!(self.rows.len() <= ENTRIES_MAX, "the log is bounded");
    }

    /// Forgets purges that no object is judged by any more.
    fn forget(&mut self) {
        let oldest = self.rows.iter().skip(1).map(|row| row.first).min().unwrap_or(u64::MAX);
        let oldest = self.oldest_pending().min(oldest);
        self.purges.forget_until(oldest.saturating_sub(1));
    }

    fn oldest_pending(&self) -> u64 {
        self.pending.iter().map(|own| own.sequence).min().unwrap_or(u64::MAX)
    }

    /// The place of a fill that began with this purge number.
    pub(super) fn place_of(&self, sequence: u64) -> Option<StreamPlace> {
        let known = self.rows.partition_point(|row| row.after <= sequence);
        self.rows.get(known.checked_sub(1)?).map(|row| row.place)
    }

    /// Whether others have yet to hear of a purge that came before a fill with this number.
    pub(super) fn is_ahead(&self, sequence: u64) -> bool {
        self.oldest_pending() <= sequence
    }

    /// The last entry.
    pub(super) fn last(&self) -> Option<StreamPlace> {
        self.rows.back().map(|row| row.place)
    }

    /// The bans that may have hit an object since its place, if no other purge has; none if one
    /// has, or that is not known. Whether they match is told without the log: a purge that comes
    /// meanwhile reaches the permit that the object is for.
    pub(super) fn spares(
        &self,
        place: StreamPlace,
        record: &Record<'_>,
    ) -> Option<Vec<Arc<BanPattern>>> {
        let at = self.rows.binary_search_by_key(&place, |row| row.place).ok()?;
        let first = self.rows.iter().skip(at + 1).map(|row| row.first).min().unwrap_or(u64::MAX);
        let first = first.min(self.oldest_pending());
        debug_assert!(first > 0, "purges are numbered from one");
        let record = Record { sequence: first.saturating_sub(1), ..*record };
        let is_good = self.purges.verdict_but_bans(&record) == TagVerdict::Good;
        is_good.then(|| self.purges.newer_bans(&record))
    }
}

#[cfg(test)]
mod tests;
