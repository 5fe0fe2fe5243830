//! What each worker counts for `stub_status` and `$connections_*`.
//!
//! A tally belongs to one worker, which alone writes it; a reader adds up those of all. Nothing
//! here is exact while others are at work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TallyCount {
    /// Connections that were accepted.
    Accepted,
    /// Those of them that were taken.
    Handled,
    /// Requests, those that could not be read included.
    Requests,
    /// Open connections.
    Active,
    /// Connections that read a request head.
    Reading,
    /// Requests that are answered.
    Writing,
    /// Idle connections.
    Waiting,
}

/// One worker's counts, in cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Tally([AtomicU64; 7]);

impl Tally {
    /// One more.
    #[inline]
    pub fn add(&self, count: TallyCount) {
        let cell = &self.0[count as usize];
        // One writer: a load and a store do, without a locked instruction.
        cell.store(cell.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// One less.
    #[inline]
    pub fn remove(&self, count: TallyCount) {
        let cell = &self.0[count as usize];
        cell.store(cell.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Relaxed);
    }
}

/// The tallies of all workers.
#[derive(Clone, Debug, Default)]
pub struct RequestTallies(Arc<[Arc<Tally>]>);

impl RequestTallies {
    /// Those of all workers, by number.
    #[must_use]
    pub fn new(all: impl Iterator<Item = Arc<Tally>>) -> Self {
        Self(all.collect())
    }

    /// The tally of one worker; one that is never read, if there is no such.
    #[must_use]
    pub fn of(&self, worker: u16) -> Arc<Tally> {
        self.0.get(usize::from(worker)).cloned().unwrap_or_default()
    }

    /// What all have counted.
    #[must_use]
    pub fn sum(&self, count: TallyCount) -> u64 {
        let one = |tally: &Arc<Tally>| tally.0[count as usize].load(Ordering::Relaxed);
        self.0.iter().map(one).fold(0, u64::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{RequestTallies, Tally, TallyCount};

    #[test]
    fn what_all_workers_counted_is_added_up() {
        let tallies = RequestTallies::new((0..2).map(|_| Arc::new(Tally::default())));
        tallies.of(0).add(TallyCount::Active);
        tallies.of(1).add(TallyCount::Active);
        tallies.of(1).add(TallyCount::Active);
        tallies.of(0).remove(TallyCount::Active);
        tallies.of(9).add(TallyCount::Active);
        assert_eq!((tallies.sum(TallyCount::Active), tallies.sum(TallyCount::Reading)), (2, 0));
    }
}
