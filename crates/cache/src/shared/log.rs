//! The log of purges by which objects of other nodes are checked, with their places in the stream.
//!
//! ```text
//!   fill here   its purge number ──▶ the last entry whose purges have no greater number: its place
//!   object      its place ──▶ purges of later entries, and of this node that have no place yet
//! ```
//! INVARIANT: an object is accepted only if its place is an entry in this log, so that the log has
//! all later entries as well. In doubt, the result is a miss.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::bans::BanPattern;
use crate::disk::DiskPurge;
use crate::disk::format::Record;
use crate::disk::purges::Purges;
use crate::tags::TagVerdict;

/// LIMIT: recorded entries of the stream.
const ENTRIES_MAX: usize = 1 << 16;
/// LIMIT: recorded purges.
const PURGES_MAX: usize = 1 << 17;

/// An entry of the stream: its id, and a checksum, because after a loss of data another entry may
/// get the same id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamPlace {
    /// The first half of the id.
    pub ms: u64,
    /// The second half of the id.
    pub number: u64,
    /// The checksum of its bytes.
    pub sum: u64,
}

/// An entry whose purges have been carried out.
#[derive(Clone, Copy, Debug)]
struct Row {
    place: StreamPlace,
    /// The smallest number of its purges; `u64::MAX` if it has none.
    first: u64,
    /// A fill with this purge number or a greater one began after its purges and all earlier ones.
    after: u64,
}

/// A purge of this node that has not yet been received from the stream.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// Its number for other nodes.
    number: u64,
    sequence: u64,
}

/// The log; empty until [`Self::begin`].
#[derive(Debug, Default)]
pub(super) struct PurgeLog {
    purges: Purges,
    rows: VecDeque<Row>,
    pending: VecDeque<Pending>,
    /// Entries before this place are not recorded.
    fence: StreamPlace,
    /// Nothing is recorded until the purge with this number has been received from the stream.
    barrier: u64,
    /// Purges of this node up to this number have been received from the stream.
    confirmed: u64,
}

impl PurgeLog {
    /// Records entries from `fence` on, once the purge of this node with the number `barrier` has
    /// been received: it may be older than this log.
    pub(super) fn begin(&mut self, fence: StreamPlace, barrier: u64) {
        self.rows.clear();
        if self.confirmed >= self.barrier {
            self.barrier = 0;
        }
        self.barrier = self.barrier.max(barrier);
        (self.fence, self.confirmed) = (fence, 0);
    }

    /// Records a purge that this node carries out. If it is sent to other nodes, it has a number;
    /// its place in the stream is not known yet.
    pub(super) fn record_purge(&mut self, order: &DiskPurge<'_>, number: Option<u64>) {
        self.purges.add(order);
        if let Some(number) = number {
            let sequence = order.sequence;
            debug_assert!(
                self.pending.back().is_none_or(|last| last.number <= number),
                "purges are sent in the order of their numbers"
            );
            self.pending.push_back(Pending { number, sequence });
        }
        if self.purges.len() > PURGES_MAX || self.pending.len() > PURGES_MAX {
            self.shorten();
        }
    }

    /// The purges of an entry have been carried out; those of this node up to `confirmed` have been
    /// received. An entry of another node came after the number `before`, and no number is greater
    /// than `now`. The two differ even if the entry has no purges, so that a fill from before it
    /// does not appear to be later.
    pub(super) fn record_entry(
        &mut self,
        place: StreamPlace,
        (before, now): (Option<u64>, u64),
        confirmed: u64,
    ) {
        debug_assert!(before.is_none_or(|before| before < now), "an entry has a number");
        self.confirmed = self.confirmed.max(confirmed);
        let first = before.map_or(u64::MAX, |before| before + 1);
        let mut row = Row { place, first, after: before.map_or(0, |_| now) };
        while let Some(own) = self.pending.front().filter(|own| own.number <= confirmed) {
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
        // If it is the first entry, purges of other nodes may have any number up to `now`.
        row.after = last.map_or(now, |last| row.after.max(last.after));
        self.rows.push_back(row);
        if self.rows.len() > ENTRIES_MAX {
            self.shorten();
        }
    }

    fn counts(&self, place: StreamPlace) -> bool {
        place >= self.fence && self.confirmed >= self.barrier
    }

    /// Purges were lost, and everything was purged: nothing before `place` is known.
    pub(super) fn reset(&mut self, place: StreamPlace, now: u64) {
        self.rows.clear();
        if self.counts(place) {
            self.rows.push_back(Row { place, first: u64::MAX, after: now });
        }
    }

    /// Removes the older half.
    fn shorten(&mut self) {
        let half = self.rows.len() / 2;
        self.rows.drain(..half);
        if self.pending.len() > PURGES_MAX {
            // None of them has a place, so no place is valid until all have been received.
            self.barrier = self.pending.back().map_or(self.barrier, |last| last.number);
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

    /// Removes purges that no check needs any more.
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

    /// Whether a purge before a fill with this number has not reached the other nodes yet.
    pub(super) fn is_ahead(&self, sequence: u64) -> bool {
        self.oldest_pending() <= sequence
    }

    /// The last entry.
    pub(super) fn last(&self) -> Option<StreamPlace> {
        self.rows.back().map(|row| row.place)
    }

    /// The bans that may match an object since its place, if no other purge does; `None` if one
    /// does, or if that is unknown. The caller evaluates the bans without the lock of the log: a
    /// purge that comes meanwhile marks the permit of the object.
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
