//! Fills that go on under another key or beside another fill, and the memory of those that failed.
//!
//! Owns who may fill a key that is being filled. Easiest to break: of two fills of one key only the
//! one in the index is joined, and whichever ends last is kept.

use std::sync::Arc;

use crate::key::{CacheKey, KEY_SIZE_MAX};
use crate::object::{Object, ObjectKind};
use crate::permit::FillPermit;
use crate::store::{Lookup, Store};
use crate::tags::{TagVerdict, lock};

/// What is made of somebody else who fills the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rival {
    /// It goes first.
    Heeded,
    /// Both keep what they get.
    Ignored,
}

/// What a mark of failure says.
pub(crate) fn failed(marker: &Object) -> Lookup {
    marker.failed_status().map_or(Lookup::Pass, Lookup::Failed)
}

impl Store {
    /// A permit for another key with the age of a permit at hand; none if that key is being filled
    /// and `rival` says that this counts.
    pub(crate) fn regrant(
        self: &Arc<Self>,
        key: &CacheKey<'_>,
        generation: u64,
        rival: Rival,
    ) -> Option<FillPermit> {
        if key.text.len() > KEY_SIZE_MAX {
            return None;
        }
        let mut shard = lock(self.shard(key.url_hash));
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

    /// Remembers until `until_ms` that the origin failed to answer `key`, and what is said of it.
    pub(crate) fn remember_failure(&self, key: &CacheKey<'_>, status: u16, until_ms: u64) {
        let marker = Object::failure_marker(*key, status, until_ms, self.tags.generation());
        self.put(&Arc::new(marker), key.url_hash);
    }
}
