//! What is dead or past every use is freed, a few entries at a time.

use super::{Freshness, Store, judge};
use crate::store_index::SHARDS;
use crate::tags::lock;

/// LIMIT: entries that a sweep visits under one lock.
const SWEEP_STEP: usize = 128;

impl Store {
    /// Visits up to `budget` entries and frees those that are dead or past every use. Returns how
    /// many. It also frees a 256th of the unused tags. Call it from an idle worker, or every few
    /// turns.
    pub fn sweep(&self, budget: usize, now_ms: u64) -> usize {
        let Ok(mut sweep) = self.sweep.try_lock() else { return 0 };
        let mut freed = 0;
        let (mut left, mut shards) = (budget, 0);
        while left > 0 && shards < SHARDS {
            let mut gone = Vec::new();
            let mut shard = lock(&self.index.shards()[sweep.shard]);
            let places = shard.places() as u32;
            let end = places.min(sweep.place.saturating_add(SWEEP_STEP.min(left) as u32));
            for place in sweep.place..end {
                let Some(object) = shard.at(place) else { continue };
                let useless = match judge(object, &self.tags, now_ms) {
                    Freshness::Gone => true,
                    Freshness::Old => now_ms >= object.times().error_until_ms(),
                    Freshness::Fresh | Freshness::Stale => false,
                };
                match object.marks().is_refreshing() {
                    false if useless => gone.push(shard.take(place)),
                    is_refreshing => sweep.is_partial |= useless && is_refreshing,
                }
            }
            drop(shard);
            left = left.saturating_sub((end.saturating_sub(sweep.place) as usize).max(8));
            freed += gone.len();
            gone.iter().for_each(|object| self.let_go(object));
            sweep.place = end;
            if end >= places {
                (sweep.place, sweep.shard) = (0, (sweep.shard + 1) % SHARDS);
                shards += 1;
                if sweep.shard == 0 && !std::mem::take(&mut sweep.is_partial) {
                    self.tags.bans.end_lap(self.floor());
                }
            }
        }
        sweep.stripe += 1;
        self.tags.reclaim(self.floor(), sweep.stripe);
        freed
    }

    /// No fill in progress began before this generation.
    #[must_use]
    pub fn floor(&self) -> u64 {
        let _none_moves = lock(&self.moves);
        self.index.floor(self.tags.generation())
    }
}
