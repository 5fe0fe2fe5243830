//! The fills in progress of a shard, those that continue under another key or concurrently with
//! another fill, and markers of failed ones.
//!
//! Decides who may fill a key that is being filled. INVARIANT: of two fills of one key, requests
//! are coalesced only with the one that began last; the one that ends last is stored. A fill whose
//! response may still be stored is listed, so that every purge reaches it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::growing::GrowingObject;
use crate::key::{CacheKey, KEY_SIZE_MAX, KeyBuilder, NamespaceId};
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

/// The fills in progress of one shard.
#[derive(Debug, Default)]
pub(crate) struct ShardFills {
    /// Those that requests are coalesced with, by the hash of their key.
    joinable: HashMap<[u64; 2], Arc<GrowingObject>>,
    /// The others whose response may still be stored, by their address.
    superseded: HashMap<usize, Arc<GrowingObject>>,
}

impl ShardFills {
    fn address(growing: &Arc<GrowingObject>) -> usize {
        Arc::as_ptr(growing).addr()
    }

    /// The fill of a key that requests are coalesced with.
    pub(crate) fn joinable(&self, key: &CacheKey<'_>) -> Option<&Arc<GrowingObject>> {
        self.joinable.get(&key.hash)
    }

    /// Adds a fill. It supersedes another one of its key.
    pub(crate) fn begin(&mut self, growing: &Arc<GrowingObject>) {
        let hash = growing.key.key().hash;
        if let Some(other) = self.joinable.insert(hash, Arc::clone(growing)) {
            debug_assert!(!Arc::ptr_eq(&other, growing), "a fill begins once");
            self.superseded.insert(Self::address(&other), other);
        }
    }

    /// No request is coalesced with this fill from now on; its response may still be stored.
    pub(crate) fn supersede(&mut self, growing: &Arc<GrowingObject>) {
        if self.part(growing) {
            self.superseded.insert(Self::address(growing), Arc::clone(growing));
        }
    }

    /// Removes a fill whose response is stored or never will be.
    pub(crate) fn end(&mut self, growing: &Arc<GrowingObject>) {
        if !self.part(growing) {
            self.superseded.remove(&Self::address(growing));
        }
    }

    /// Whether requests were coalesced with this fill until now.
    fn part(&mut self, growing: &Arc<GrowingObject>) -> bool {
        let hash = growing.key.key().hash;
        debug_assert!(
            self.joinable.get(&hash).is_none_or(|other| other.key.key().hash == hash),
            "a fill is listed under its own key"
        );
        let is_joinable = self.joinable.get(&hash).is_some_and(|other| Arc::ptr_eq(other, growing));
        if is_joinable {
            self.joinable.remove(&hash);
            if let Some(stale) = &growing.stale {
                stale.marks().set_refreshing(false);
            }
        }
        is_joinable
    }

    /// All of them, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<GrowingObject>> {
        self.joinable.values().chain(self.superseded.values())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.joinable.len() + self.superseded.len()
    }
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
        let busy = shard.fills.joinable(key);
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

/// When an upstream request was sent whose response has parts to be stored under keys of their own:
/// purges since then count for them. It is a fill of a key that no lookup has.
#[derive(Debug)]
pub struct FillMoment(FillPermit);

impl FillMoment {
    /// The current moment.
    #[must_use]
    pub fn now(store: &Arc<Store>, namespace: NamespaceId) -> Self {
        Self::of(store, namespace, store.tags.generation())
    }

    /// The moment of a generation that a fill in progress holds.
    pub(crate) fn of(store: &Arc<Store>, namespace: NamespaceId, generation: u64) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut keys = KeyBuilder::default();
        keys.start(namespace);
        keys.push_vary(&COUNT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        let key = keys.public();
        debug_assert!(key.url().is_empty(), "no page has such a key");
        let mut shard = lock(store.index.shard(key.url_hash));
        Self(store.grant(&mut shard, &key, generation, None))
    }

    /// A permit for a part that no other node asks for, in place of any other fill of its key.
    #[must_use]
    pub fn permit(&self, key: &CacheKey<'_>) -> Option<FillPermit> {
        self.grant(key).map(FillPermit::here)
    }

    /// A permit of this moment, in place of any other fill of this key.
    pub(crate) fn grant(&self, key: &CacheKey<'_>) -> Option<FillPermit> {
        let store = &self.0.store;
        debug_assert!(store.tags.generation() >= self.0.generation(), "a moment lies in the past");
        let _floor_waits = lock(&store.moves);
        store.regrant(key, self.0.generation(), Rival::Ignored)
    }
}

impl Store {
    /// No request is coalesced with this fill from now on, and its response is not stored.
    pub(crate) fn end_storing(&self, growing: &Arc<GrowingObject>) {
        lock(self.index.shard(growing.key.key().url_hash)).fills.end(growing);
    }

    /// Ends a fill.
    pub(crate) fn end_fill(&self, growing: &Arc<GrowingObject>) {
        self.end_storing(growing);
        self.memory.free(growing.unsettled());
    }
}
