//! Fills that continue under another key or concurrently with another fill, and markers of failed
//! ones.
//!
//! Decides who may fill a key that is being filled. INVARIANT: of two fills of one key, requests
//! are coalesced only with the one in the index; the one that ends last is stored.

use std::sync::Arc;

use crate::key::{CacheKey, KEY_SIZE_MAX};
use crate::object::{Object, ObjectKind};
use crate::permit::FillPermit;
use crate::store::{Lookup, Store};
use crate::tags::{TagVerdict, lock};

/// What to do if another fill of the key is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rival {
    /// Grant no permit.
    Heeded,
    /// Grant a permit; both fills are stored.
    Ignored,
}

/// The lookup result for a failure marker.
pub(crate) fn failed(marker: &Object) -> Lookup {
    marker.failed_status().map_or(Lookup::Pass, Lookup::Failed)
}

impl Store {
    /// A permit for another key, with the generation of an existing permit. `None` if that key is
    /// being filled and `rival` is `Heeded`.
    pub(crate) fn regrant(
        self: &Arc<Self>,
        key: &CacheKey<'_>,
        generation: u64,
        rival: Rival,
    ) -> Option<FillPermit> {
        if key.text.len() > KEY_SIZE_MAX {
            return None;
        }
        let mut shard = lock(self.index.shard(key.url_hash));
        let busy = shard.fills.get(&key.hash);
        let is_busy = busy.is_some_and(|growing| !growing.is_killed(&self.tags));
        if is_busy && rival == Rival::Heeded {
            return None;
        }
        let stale = shard.find(key).and_then(|place| shard.at(place).cloned());
        let stale = stale.filter(|object| {
            object.kind() == ObjectKind::Content && object.verdict(&self.tags) != TagVerdict::Dead
        });
        Some(self.grant(&mut shard, key, generation, stale))
    }

    /// Marks `key` as failed until `until_ms`; lookups get `status`.
    pub(crate) fn remember_failure(&self, key: &CacheKey<'_>, status: u16, until_ms: u64) {
        let marker = Object::failure_marker(*key, status, until_ms, self.tags.generation());
        self.put(&Arc::new(marker), key.url_hash);
    }
}
