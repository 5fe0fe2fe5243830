//! Figures of the store.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::key::NamespaceId;
use crate::store::Lookup;

/// The contents of a store, and its counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Entries of the index: responses, markers, and dead ones that are not swept yet.
    pub objects: u64,
    /// Bytes charged for them.
    pub bytes: u64,
    /// The limit on these bytes.
    pub bytes_max: u64,
    /// Fills in progress.
    pub fills: u64,
    /// Bytes of fills in progress.
    pub filling_bytes: u64,
    /// Tags in the table.
    pub tags: u64,
    /// Purges of any kind.
    pub purges: u64,
    /// Lookups with a fresh object (from the tables of workers as far as they have reported).
    pub hits: u64,
    /// Lookups with a stale object that may be served.
    pub stale: u64,
    /// Lookups that got a permit.
    pub misses: u64,
    /// Lookups that were coalesced with a fill.
    pub joins: u64,
    /// Lookups that pass.
    pub passes: u64,
    /// Objects and markers inserted.
    pub inserted: u64,
    /// Objects evicted.
    pub evicted: u64,
    /// Objects loaded from disk.
    pub recalled: u64,
}

/// The figures of one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceStats {
    /// Its id in this process.
    pub id: NamespaceId,
    /// Its name.
    pub name: Vec<u8>,
    /// Bytes charged for its objects.
    pub bytes: u64,
    /// Entries of the index.
    pub objects: u64,
    /// LIMIT: its bytes; 0 means no limit.
    pub limit: u64,
    /// Requests served with fresh objects.
    pub hits: u64,
    /// Requests served with stale objects.
    pub stale: u64,
    /// Requests that were sent upstream or coalesced with a fill.
    pub misses: u64,
    /// Requests that bypassed the store.
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
