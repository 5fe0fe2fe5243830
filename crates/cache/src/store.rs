//! The store: index, tags, namespaces, limits, and what is done with several of them at once.

mod sweeping;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bolide_http::negotiate::Coding;

use crate::decisions::DecisionRing;
use crate::disk::DiskTier;
use crate::fills::failed;
use crate::front::Front;
use crate::growing::{Follower, GrowingObject, Orphans};
use crate::held::FillMemory;
use crate::key::{CacheKey, KEY_SIZE_MAX, NamespaceId, url_hash};
use crate::namespaces::Namespaces;
use crate::object::{Object, ObjectKind, ObjectVariant, Times};
use crate::outbox::PurgeOutbox;
use crate::permit::FillPermit;
use crate::sessions::SessionCounts;
use crate::shard::Shard;
use crate::shared::{AskedBy, Sharing, offer};
use crate::stats::{Counters, StoreStats};
use crate::store_index::StoreIndex;
use crate::tags::{TagCount, TagTable, TagVerdict, lock};

/// LIMIT: names in the `Vary` of one URL, and their bytes.
const VARY_NAMES_MAX: usize = 16;
const VARY_SIZE_MAX: usize = 1024;

/// The limits of a store.
#[derive(Clone, Copy, Debug)]
pub struct StoreLimits {
    /// LIMIT: bytes of all objects, with their overhead.
    pub bytes: u64,
    /// LIMIT: bytes of a stored body.
    pub object_bytes: u64,
    /// LIMIT: entries of each worker's table of hits; a power of two.
    pub front_entries: usize,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self { bytes: 256 << 20, object_bytes: 10_000_000, front_entries: 4096 }
    }
}

/// The result of a lookup.
#[derive(Debug)]
pub enum Lookup {
    /// A fresh object.
    Hit(Arc<Object>),
    /// A stale object that may be served. With a permit the caller must revalidate it in the
    /// background.
    Stale(Arc<Object>, Option<FillPermit>),
    /// The URL has variants: push the values of [`Object::vary_names`] to the key and look up
    /// again.
    Vary(Arc<Object>),
    /// A miss: the caller must fetch the response.
    Miss(FillPermit),
    /// A fill is in progress: the request is coalesced with it.
    Join(Follower),
    /// Known to be uncacheable, or the key is too long: pass the request.
    Pass,
    /// The upstream has failed. Send this status without a request to it.
    Failed(u16),
}

#[derive(Debug, Default)]
struct Sweep {
    shard: usize,
    place: u32,
    stripe: usize,
    /// Whether an object that is purged had to stay.
    is_partial: bool,
}

/// The store of a process.
#[derive(Debug)]
pub struct Store {
    pub(crate) index: StoreIndex,
    pub(crate) tags: TagTable,
    pub(crate) limits: StoreLimits,
    bytes: AtomicU64,
    pub(crate) memory: FillMemory,
    pub(crate) namespaces: Namespaces,
    pub(crate) orphans: Orphans,
    sweep: Mutex<Sweep>,
    private: SessionCounts,
    /// Held while a fill goes from one shard to another, so that the walk of [`Self::floor`] does
    /// not miss it in both. It is taken before the lock of a shard.
    pub(crate) moves: Mutex<()>,
    pub(crate) disk: DiskTier,
    pub(crate) outbox: PurgeOutbox,
    pub(crate) sharing: Sharing,
    /// How many objects have left the index.
    pub(crate) retired: AtomicU64,
    pub(crate) counters: Counters,
    pub(crate) rings: Mutex<Vec<Arc<DecisionRing>>>,
}

impl Store {
    /// A store within `limits`. `seed` should be secret; it seeds all keys of the process.
    #[must_use]
    pub fn new(limits: StoreLimits, seed: u64) -> Arc<Self> {
        crate::key::set_seed(seed);
        Arc::new(Self {
            index: StoreIndex::new(),
            tags: TagTable::new(),
            limits,
            bytes: AtomicU64::new(0),
            memory: FillMemory::new(limits.bytes),
            namespaces: Namespaces::new(),
            orphans: Orphans::default(),
            sweep: Mutex::default(),
            private: SessionCounts::new(),
            moves: Mutex::default(),
            disk: DiskTier::default(),
            outbox: PurgeOutbox::default(),
            sharing: Sharing::default(),
            retired: AtomicU64::new(0),
            counters: Counters::default(),
            rings: Mutex::default(),
        })
    }

    /// The namespace with this name, created on its first use. It never changes.
    #[must_use]
    pub fn namespace(&self, name: &[u8]) -> NamespaceId {
        self.namespaces.id(name)
    }

    /// What its namespaces have and may have.
    #[must_use]
    pub const fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }

    /// Its entries, for the command line.
    #[must_use]
    pub const fn index(&self) -> &StoreIndex {
        &self.index
    }

    /// Its tags, for the command line.
    #[must_use]
    pub const fn tags(&self) -> &TagTable {
        &self.tags
    }

    /// What lies behind it on disk.
    #[must_use]
    pub const fn disk(&self) -> &DiskTier {
        &self.disk
    }

    /// The purges to send to other nodes.
    #[must_use]
    pub const fn outbox(&self) -> &PurgeOutbox {
        &self.outbox
    }

    /// What nodes of a cluster share.
    #[must_use]
    pub const fn sharing(&self) -> &Sharing {
        &self.sharing
    }

    /// Creates the table of hits of one worker.
    #[must_use]
    pub fn front(self: &Arc<Self>, worker: u16) -> Front {
        let ring = Arc::new(DecisionRing::new());
        lock(&self.rings).push(Arc::clone(&ring));
        Front::new(Arc::clone(self), worker, ring)
    }

    /// Looks up `key` in the index. [`Front::lookup`] searches its own table first.
    #[must_use]
    pub fn lookup(self: &Arc<Self>, key: &CacheKey<'_>, now_ms: u64) -> Lookup {
        if key.text.len() > KEY_SIZE_MAX {
            return Lookup::Pass;
        }
        self.disk.set_time(now_ms);
        let mut gone = None;
        let found = self.lookup_locked(key, now_ms, &mut gone);
        if let Some(object) = gone {
            self.let_go(&object);
        }
        self.counters.note(&found);
        found
    }

    /// What is known under `key` now: a fresh response, or the names of a `Vary`. It never returns
    /// a permit.
    #[must_use]
    pub fn find_known(&self, key: &CacheKey<'_>, now_ms: u64) -> Option<Arc<Object>> {
        if key.session.is_some_and(|session| !self.private.may_have(session)) {
            return None;
        }
        let shard = lock(self.index.shard(key.url_hash));
        let object = shard.at(shard.find(key)?)?.clone();
        assert!(object.is_for(key.session), "a private object answers its own session only");
        if judge(&object, &self.tags, now_ms) != Freshness::Fresh
            || !matches!(object.kind(), ObjectKind::Content | ObjectKind::Vary)
        {
            return None;
        }
        object.touch(now_ms);
        Some(object)
    }

    fn lookup_locked(
        self: &Arc<Self>,
        key: &CacheKey<'_>,
        now_ms: u64,
        gone: &mut Option<Arc<Object>>,
    ) -> Lookup {
        let mut shard = lock(self.index.shard(key.url_hash));
        let generation = self.tags.generation();
        let mut old = None;
        if let Some(place) = shard.find(key) {
            let Some(object) = shard.at(place).cloned() else { return Lookup::Pass };
            assert!(object.is_for(key.session), "a private object answers its own session only");
            match judge(&object, &self.tags, now_ms) {
                Freshness::Fresh => {
                    object.touch(now_ms);
                    return match object.kind() {
                        ObjectKind::Content => Lookup::Hit(object),
                        ObjectKind::Vary => Lookup::Vary(object),
                        ObjectKind::Pass => Lookup::Pass,
                        ObjectKind::Failed => failed(&object),
                    };
                }
                Freshness::Gone => *gone = Some(shard.take(place)),
                Freshness::Stale => {
                    object.touch(now_ms);
                    let busy = match shard.fills.joinable(key) {
                        Some(growing) if growing.is_killed(&self.tags) => false,
                        Some(_) => true,
                        None => shard.is_resting(key, now_ms),
                    };
                    if busy {
                        return Lookup::Stale(object, None);
                    }
                    object.marks().set_refreshing(true);
                    let permit = self.grant(&mut shard, key, generation, Some(object.clone()));
                    return Lookup::Stale(object, Some(permit));
                }
                Freshness::Old => old = Some(object),
            }
        }
        match shard.fills.joinable(key) {
            Some(growing) if !growing.is(key) => return Lookup::Pass,
            Some(growing) if !growing.is_killed(&self.tags) => {
                return Lookup::Join(Follower::new(Arc::clone(growing), generation));
            }
            _ => {}
        }
        Lookup::Miss(self.grant(&mut shard, key, generation, old))
    }

    pub(crate) fn grant(
        self: &Arc<Self>,
        shard: &mut Shard,
        key: &CacheKey<'_>,
        generation: u64,
        stale: Option<Arc<Object>>,
    ) -> FillPermit {
        let growing = Arc::new(GrowingObject::new(key, generation, stale));
        shard.fills.begin(&growing);
        FillPermit::new(Arc::clone(self), growing)
    }

    /// No request is coalesced with this fill from now on: a lookup may get the next permit.
    pub(crate) fn supersede(&self, growing: &Arc<GrowingObject>) {
        lock(self.index.shard(growing.key.key().url_hash)).fills.supersede(growing);
    }

    /// The tags of `old`, with new references. `None` if the index does not have `old` under `key`.
    pub(crate) fn inherit_tags(&self, key: &CacheKey<'_>, old: &Arc<Object>) -> Option<Vec<u32>> {
        let shard = lock(self.index.shard(key.url_hash));
        // The lock keeps it in the index, so it holds references to its tags.
        let current = shard.find(key).and_then(|place| shard.at(place));
        current.filter(|current| Arc::ptr_eq(current, old))?;
        let ids: Vec<u32> = old.tags().collect();
        ids.iter().for_each(|id| self.tags.retain(*id));
        Some(ids)
    }

    /// Inserts a filled object, unless a purge hit its fill.
    pub(crate) fn put_fill(&self, object: &Arc<Object>, growing: &Arc<GrowingObject>) -> bool {
        assert!(object.is_named(&growing.key.key()), "a fill stores an object under its own key");
        if growing.is_softened() {
            object.marks().soften();
        }
        let url_hash = growing.key.key().url_hash;
        self.charge(object);
        self.tags.count(object.tags(), object.known(), TagCount::In);
        let mut shard = lock(self.index.shard(url_hash));
        // The lock is needed because a purge of the URL dooms fills under it.
        let doomed = growing.is_killed(&self.tags);
        let out = if doomed { [None, None] } else { shard.insert(Arc::clone(object), url_hash) };
        drop(shard);
        if doomed {
            object.marks().retire();
            self.let_go(object);
            return false;
        }
        out.iter().flatten().for_each(|object| self.let_go(object));
        self.counters.inserted.fetch_add(1, Ordering::Relaxed);
        self.make_room(object.namespace());
        true
    }

    /// Inserts `object`, whose tags have their references already.
    pub(crate) fn put(&self, object: &Arc<Object>, url_hash: u64) {
        self.charge(object);
        self.tags.count(object.tags(), object.known(), TagCount::In);
        let out = lock(self.index.shard(url_hash)).insert(Arc::clone(object), url_hash);
        out.iter().flatten().for_each(|object| self.let_go(object));
        self.counters.inserted.fetch_add(1, Ordering::Relaxed);
        self.make_room(object.namespace());
    }

    fn charge(&self, object: &Object) {
        let bytes = object.charge();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(session) = object.session() {
            self.private.add(session);
        }
        self.namespaces.charge(object.namespace(), bytes);
    }

    /// Releases an object that was just removed from the index.
    pub(crate) fn let_go(&self, object: &Arc<Object>) {
        assert!(object.is_retired(), "what the index has is not released");
        self.retired.fetch_add(1, Ordering::Relaxed);
        if let Some(session) = object.session() {
            self.private.remove(session);
        }
        let bytes = object.charge();
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "the store's bytes are those of its objects");
        self.namespaces.release(object.namespace(), bytes);
        self.tags.count(object.tags(), object.known(), TagCount::Out);
        object.tags().for_each(|id| self.tags.release(id));
    }

    /// Evicts until the store and the namespace are within their limits.
    fn make_room(&self, namespace: NamespaceId) {
        let release = |object: &Arc<Object>| {
            self.let_go(object);
            self.counters.evicted.fetch_add(1, Ordering::Relaxed);
        };
        self.index.evict_while(|| self.bytes() > self.limits.bytes, Shard::evict, release);
        self.index.evict_while(
            || self.namespaces.is_over(namespace),
            |shard| shard.evict_of(namespace),
            release,
        );
    }

    /// Adds a compressed variant of an object, after [`Object::claim_variant`]. False if the object
    /// was removed from the index meanwhile.
    pub fn set_variant(
        &self,
        object: &Arc<Object>,
        coding: Coding,
        variant: ObjectVariant,
    ) -> bool {
        let url = url_hash(object.namespace(), object.session(), object.url());
        let mut shard = lock(self.index.shard(url));
        if object.is_retired() {
            return false;
        }
        let key = object.key(url);
        let current = shard.find(&key).and_then(|place| shard.at(place));
        if !current.is_some_and(|current| Arc::ptr_eq(current, object)) {
            return false;
        }
        let bytes = object.add_variant(coding, variant);
        shard.enlarge(object.marks().is_main(), bytes);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.namespaces.enlarge(object.namespace(), bytes);
        drop(shard);
        self.make_room(object.namespace());
        true
    }

    /// Stores the `Vary` of a URL; `base` is its key without the values. The names are in lower
    /// case. False if they exceed the limit; then the response must not be stored.
    #[must_use]
    pub fn remember_vary(
        self: &Arc<Self>,
        base: &CacheKey<'_>,
        names: &[&[u8]],
        asked_by: AskedBy,
    ) -> bool {
        let size: usize = names.iter().map(|name| name.len() + 1).sum();
        if names.len() > VARY_NAMES_MAX || size > VARY_SIZE_MAX || base.text.len() > KEY_SIZE_MAX {
            return false;
        }
        let joined = names.join(&b","[..]);
        let generation = self.tags.generation();
        let marker = Arc::new(Object::vary_marker(*base, &joined, generation));
        self.put(&marker, base.url_hash);
        self.spill(&marker, generation, Box::default());
        if asked_by != AskedBy::NoNode {
            offer(self, &marker, generation, &[], None);
        }
        true
    }

    /// As [`Self::remember_vary`], for an entry from disk.
    pub(crate) fn restore_vary(&self, base: &CacheKey<'_>, names: &[&[u8]]) {
        let joined = names.join(&b","[..]);
        let marker = Object::vary_marker(*base, &joined, self.tags.generation());
        self.put(&Arc::new(marker), base.url_hash);
    }

    /// Marks `key` as uncacheable until `until_ms` (Varnish: hit-for-pass).
    pub fn remember_pass(&self, key: &CacheKey<'_>, until_ms: u64) {
        let marker = Object::pass_marker(*key, until_ms, self.tags.generation());
        self.put(&Arc::new(marker), key.url_hash);
    }

    /// The purge generation; every purge increments it.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.tags.generation()
    }

    /// Bytes charged for all objects.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The contents and counters of the store.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        let mut stats = self.counters.read();
        stats.bytes = self.bytes();
        stats.bytes_max = self.limits.bytes;
        stats.filling_bytes = self.memory.filling();
        stats.tags = self.tags.len() as u64;
        // The upper half counts earlier processes with the same disk trees, see `begin_at`.
        let generation = self.tags.generation();
        stats.purges = (generation & u64::from(u32::MAX)) - u64::from(generation >> 32 == 0);
        for shard in self.index.shards() {
            let shard = lock(shard);
            stats.objects += shard.count() as u64;
            stats.fills += shard.fills.len() as u64;
        }
        stats
    }

    /// The freshness of an object at `now_ms`, for the command line.
    #[must_use]
    pub fn judge(&self, object: &Object, now_ms: u64) -> Freshness {
        judge(object, &self.tags, now_ms)
    }
}

/// The freshness of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// It may be served.
    Fresh,
    /// It may be served while it is revalidated.
    Stale,
    /// It may be revalidated and, within stale-if-error, served on an error.
    Old,
    /// Purged, or an expired marker.
    Gone,
}

/// The freshness of `object` now. Takes no lock.
#[inline]
pub(crate) fn judge(object: &Object, tags: &TagTable, now_ms: u64) -> Freshness {
    let times: Times = object.times();
    let verdict = object.verdict(tags);
    let fresh = now_ms < times.expires_ms;
    match verdict {
        TagVerdict::Dead => Freshness::Gone,
        TagVerdict::Good if fresh => Freshness::Fresh,
        _ if object.kind() != ObjectKind::Content => Freshness::Gone,
        _ if fresh || now_ms < times.stale_until_ms() => Freshness::Stale,
        _ => Freshness::Old,
    }
}
