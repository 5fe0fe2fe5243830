//! The index of a store: its shards, each with a lock, and walks over all of them.
//!
//! Owns which shard a URL belongs to and which one gives the next victim. INVARIANT: no two shards
//! are locked at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::key::CacheKey;
use crate::object::Object;
use crate::shard::Shard;
use crate::tags::{TagPurge, lock};

/// The number of shards.
pub(crate) const SHARDS: usize = 64;

/// All entries and fills of a store.
#[derive(Debug)]
pub struct StoreIndex {
    shards: Vec<Mutex<Shard>>,
    /// The shard that is next to give something up.
    victim: AtomicUsize,
}

impl StoreIndex {
    pub(crate) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::new(Shard::new())).collect();
        Self { shards, victim: AtomicUsize::new(0) }
    }

    pub(crate) fn shards(&self) -> &[Mutex<Shard>] {
        &self.shards
    }

    /// The shard of a URL.
    #[inline]
    pub(crate) fn shard(&self, url_hash: u64) -> &Mutex<Shard> {
        &self.shards[(url_hash >> 58) as usize % SHARDS]
    }

    /// Takes what `evict` finds, shard by shard, and hands it to `release`, until it is no longer
    /// `full` or no shard has anything left.
    pub(crate) fn evict_while(
        &self,
        full: impl Fn() -> bool,
        evict: impl Fn(&mut Shard) -> Option<Arc<Object>>,
        release: impl Fn(&Arc<Object>),
    ) {
        let mut fruitless = 0;
        while fruitless < SHARDS && full() {
            let shard = self.victim.fetch_add(1, Ordering::Relaxed) % SHARDS;
            let victim = evict(&mut lock(&self.shards[shard]));
            match victim {
                Some(object) => {
                    release(&object);
                    fruitless = 0;
                }
                None => fruitless += 1,
            }
        }
    }

    /// Purges the fills in progress for which `what` returns a purge.
    pub(crate) fn doom_fills(&self, what: impl Fn(&CacheKey<'_>) -> Option<TagPurge>) {
        for shard in &self.shards {
            for growing in lock(shard).fills.iter() {
                match what(&growing.key.key()) {
                    Some(TagPurge::Dead) => growing.doom(),
                    Some(TagPurge::Stale) => growing.soften(),
                    None => {}
                }
            }
        }
    }

    /// The least of `generation` and those at which fills in progress began.
    pub(crate) fn floor(&self, generation: u64) -> u64 {
        let mut floor = generation;
        for shard in &self.shards {
            let shard = lock(shard);
            floor = shard.fills.iter().map(|fill| fill.generation).fold(floor, u64::min);
        }
        floor
    }

    /// Visits the objects of one part of the index, in no order; false past the last part. For
    /// `bolide cache list`, one part per turn.
    pub fn list(&self, part: usize, visit: &mut impl FnMut(&Arc<Object>)) -> bool {
        let Some(shard) = self.shards.get(part) else { return false };
        let shard = lock(shard);
        (0..shard.places() as u32).filter_map(|place| shard.at(place)).for_each(visit);
        true
    }

    /// All variants of the URL of `key`, for the command line.
    #[must_use]
    pub fn copies(&self, key: &CacheKey<'_>) -> Vec<Arc<Object>> {
        let shard = lock(self.shard(key.url_hash));
        shard.copies(key).into_iter().filter_map(|place| shard.at(place).cloned()).collect()
    }
}
