//! Figures about the store.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::key::NamespaceId;
use crate::store::Lookup;

/// What a store holds and has done since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Entries of the index: answers, markers, and dead ones not yet swept.
    pub objects: u64,
    /// Bytes they are charged with.
    pub bytes: u64,
    /// The limit of that.
    pub bytes_max: u64,
    /// Fills in flight.
    pub fills: u64,
    /// Bytes of fills in flight.
    pub filling_bytes: u64,
    /// Tags known.
    pub tags: u64,
    /// Purges of any kind.
    pub purges: u64,
    /// Look-ups that found a fresh object (those of workers' own tables as far as they have told).
    pub hits: u64,
    /// Look-ups that found one to be served stale.
    pub stale: u64,
    /// Look-ups that got the permit.
    pub misses: u64,
    /// Look-ups that joined a fill.
    pub joins: u64,
    /// Look-ups that were told to pass.
    pub passes: u64,
    /// Objects and markers put in.
    pub inserted: u64,
    /// Objects evicted for room.
    pub evicted: u64,
    /// Objects that came back into memory from a disk.
    pub recalled: u64,
}

/// One namespace and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceStats {
    /// Its number in this process.
    pub id: NamespaceId,
    /// Its name.
    pub name: Vec<u8>,
    /// Bytes charged to it.
    pub bytes: u64,
    /// Entries of the index.
    pub objects: u64,
    /// Its limit in bytes; 0 if it has none.
    pub limit: u64,
    /// Requests answered by fresh objects.
    pub hits: u64,
    /// Requests answered by old ones.
    pub stale: u64,
    /// Requests for which an origin was asked, or somebody who asked it was waited for.
    pub misses: u64,
    /// Requests that the store had no part in.
    pub passes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) hits: AtomicU64,
    pub(crate) stale: AtomicU64,
    misses: AtomicU64,
    joins: AtomicU64,
    passes: AtomicU64,
    pub(crate) inserted: AtomicU64,
    pub(crate) evicted: AtomicU64,
    pub(crate) recalled: AtomicU64,
}

impl Counters {
    pub(crate) fn note(&self, found: &Lookup) {
        let counter = match found {
            Lookup::Hit(_) => &self.hits,
            Lookup::Stale(..) => &self.stale,
            Lookup::Miss(_) => &self.misses,
            Lookup::Join(_) => &self.joins,
            Lookup::Pass => &self.passes,
            Lookup::Failed(_) => &self.hits,
            Lookup::Vary(_) => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> StoreStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreStats {
            hits: read(&self.hits),
            stale: read(&self.stale),
            misses: read(&self.misses),
            joins: read(&self.joins),
            passes: read(&self.passes),
            inserted: read(&self.inserted),
            evicted: read(&self.evicted),
            recalled: read(&self.recalled),
            ..StoreStats::default()
        }
    }
}
