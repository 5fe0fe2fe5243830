//! The disk cache behind the store: writing, lookups, and purges of files.
//!
//! ```text
//!   filled ──▶ queue of its tree ──▶ (disk writer) file under a name derived from its key
//!   missed ──▶ permit ──▶ query ──▶ (worker) file ──▶ validated, restored: look up again
//!                            └──── missing, dead, corrupt ──▶ the permit goes upstream
//!   purge ───▶ table of its tree ──▶ journal (before the acknowledgment) ──▶ the store's tags
//! ```
//! This module decides and does no I/O: workers and the disk writer's thread access the files. The
//! hash of a key is its path, so that a lookup needs no index and works from the first request on.

mod filed;
pub mod format;
mod index;
pub mod journal;
mod name;
pub(crate) mod purges;
mod tree;
mod upkeep;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use bolide_base::{ChainStamp, FileRef};
use bytes::Bytes;

pub(crate) use filed::Filed;
pub use journal::{Replay, everything};
pub use name::{ZONE, file_hash, shared_bits, url_bits};
pub(crate) use name::{first_of, has_same_owner};
pub use purges::{DiskPurge, DiskPurgeTarget};
pub use tree::{
    Begun, DiskLookup, DiskSite, DiskTree, DiskTreeSettings, DiskWrite, JOURNAL, LOCK, Unfit,
    review_seconds,
};

use crate::disk::format::{Record, unpack_tags};
use crate::disk::journal::Echo;
use crate::growing::Wakes;
use crate::key::{CacheKey, NamespaceId, SessionKey};
use crate::namespaces::Namespaces;
use crate::object::{Object, ObjectKind, ObjectParts, Outside};
use crate::permit::FillPermit;
use crate::store::Store;
use crate::tags::{TagPurge, TagScope, TagVerdict, lock};

/// LIMIT: bytes of a body that is read into memory. Larger ones are sent from their files.
pub const READ_MAX: u64 = 512 * 1024;

/// All disk trees of a store.
#[derive(Debug, Default)]
pub struct DiskTier {
    trees: RwLock<Vec<Arc<DiskTree>>>,
    /// Trees that the configuration has ceased to name, until their journals are gone.
    left: Mutex<Vec<Arc<DiskTree>>>,
    /// Whether there was a purge, of any tree or none.
    has_purged: AtomicBool,
    /// The number of purges recorded for trees.
    noted: AtomicU64,
    /// The number of them that the journals have, in order. Neither number ever decreases: workers
    /// write concurrently, and a purge that two of them write counts once.
    written: AtomicU64,
    /// Whether the disk writer has work.
    calls: AtomicBool,
    /// The time of the last missed lookup.
    unix_ms: AtomicU64,
    /// Another process evicts, and handles deletions.
    leaves_upkeep: AtomicBool,
}

impl DiskTier {
    pub(crate) fn set_time(&self, now_ms: u64) {
        self.unix_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Leaves the trees whose directories are not among those of `all`. From now on their files
    /// miss purges. A tree that is named again before its journal is gone has missed some, too.
    fn leave<'a>(&self, all: &(impl Iterator<Item = &'a Arc<DiskTree>> + Clone)) {
        let is_named = |tree: &Arc<DiskTree>| all.clone().any(|other| other.root() == tree.root());
        let mut left = lock(&self.left);
        for tree in all.clone() {
            if left.iter().any(|other| other.root() == tree.root()) {
                tree.assume_missed_purges();
            }
        }
        left.extend(self.trees());
        left.retain(|tree| !is_named(tree));
    }

    /// The trees that the configuration has ceased to name and whose journals may still exist.
    #[must_use]
    pub fn left(&self) -> Vec<Arc<DiskTree>> {
        lock(&self.left).clone()
    }

    /// The journal of a tree that was left is gone, and nothing of this process makes it anew.
    pub fn end_left(&self, tree: &Arc<DiskTree>) {
        lock(&self.left).retain(|other| !Arc::ptr_eq(other, tree));
    }

    /// Replaces the disk trees.
    fn set(&self, all: impl Iterator<Item = Arc<DiskTree>>) {
        if let Ok(mut known) = self.trees.write() {
            known.clear();
            for tree in all {
                if !known.iter().any(|other| Arc::ptr_eq(other, &tree)) {
                    known.push(tree);
                }
            }
        }
        self.call();
    }

    /// The disk tree with these settings. A new one is unused until [`Store::set_trees`].
    #[must_use]
    pub fn tree(&self, settings: &DiskTreeSettings) -> Arc<DiskTree> {
        let known = self.trees().into_iter().find(|tree| tree.is(settings));
        known.unwrap_or_else(|| Arc::new(DiskTree::new(settings)))
    }

    /// All disk trees.
    #[must_use]
    pub fn trees(&self) -> Vec<Arc<DiskTree>> {
        self.trees.read().map(|all| all.clone()).unwrap_or_default()
    }

    /// Whether the disk writer has work. The call resets it.
    #[must_use]
    pub fn take_call(&self) -> bool {
        self.calls.load(Ordering::Relaxed) && self.calls.swap(false, Ordering::AcqRel)
    }

    /// Notifies the disk writer.
    pub fn call(&self) {
        self.calls.store(true, Ordering::Release);
    }

    /// Whether purges are not yet in the journals. Check it before a purge is acknowledged.
    #[inline]
    #[must_use]
    pub fn has_unwritten_purges(&self) -> bool {
        self.written.load(Ordering::Acquire) != self.noted.load(Ordering::Acquire)
    }

    /// Lets `flush` write the due entries to the journal of each tree, or remove the journal of one
    /// that was left: a later process would not know of the purge.
    pub fn flush_purges(&self, mut flush: impl FnMut(&DiskTree, TreeUse)) {
        let seen = self.noted.load(Ordering::Acquire);
        debug_assert!(
            self.written.load(Ordering::Acquire) <= self.noted.load(Ordering::Acquire),
            "the journals have no purge that was not recorded"
        );
        self.trees().iter().for_each(|tree| flush(tree, TreeUse::Named));
        // Read after the others: a tree that is not among them any more is among these.
        self.left().iter().for_each(|tree| flush(tree, TreeUse::Left));
        self.written.fetch_max(seen, Ordering::AcqRel);
    }

    /// Whether there was a purge since the process began, even one without a tree.
    #[must_use]
    pub fn has_purged(&self) -> bool {
        self.has_purged.load(Ordering::Acquire)
    }

    pub(crate) fn index_purge(&self, tree: &DiskTree, order: &DiskPurge<'_>, echo: Echo) {
        tree.purge(order, echo, self.unix_ms.load(Ordering::Relaxed));
        self.noted.fetch_add(1, Ordering::AcqRel);
        self.calls.store(true, Ordering::Release);
    }

    /// There is a purge without a tree; the namespace may have had one that was left.
    fn index_purge_elsewhere(&self) {
        if !lock(&self.left).is_empty() {
            self.noted.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// Whether the configuration names a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeUse {
    /// It does.
    Named,
    /// It did.
    Left,
}

/// A disk lookup for an object that is not in memory.
#[derive(Debug)]
pub struct DiskQuery {
    tree: Arc<DiskTree>,
    hash: u128,
    namespace: Box<[u8]>,
}

/// The result of a disk lookup.
#[derive(Debug)]
pub enum Recall {
    /// The object is in memory now, or was purged meanwhile: look up again.
    Restored(Wakes),
    /// The file is useless; the second field says whether to remove it.
    Unfit(FillPermit, Unfit),
}

impl DiskQuery {
    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> Vec<u8> {
        self.tree.path(self.hash)
    }

    /// The disk tree.
    #[must_use]
    pub const fn tree(&self) -> &Arc<DiskTree> {
        &self.tree
    }

    /// The file does not exist any more.
    pub fn forget(&self) {
        self.tree.forget(self.hash);
    }

    /// Lets `unlink` remove the file.
    pub fn unlink<E>(&self, unlink: impl FnOnce(&[u8]) -> Result<(), E>) {
        self.tree.unlink(self.hash, unlink);
    }

    /// Validates a file by its head.
    ///
    /// # Errors
    ///
    /// The file is useless.
    pub fn judge<'a>(
        &self,
        permit: &FillPermit,
        bytes: &'a [u8],
        now_ms: u64,
    ) -> Result<(Record<'a>, TagVerdict), Unfit> {
        self.tree.judge(bytes, Some((&permit.key(), &self.namespace)), now_ms)
    }

    /// Restores an object from a whole file; `now` is in seconds of a monotonic clock.
    pub fn restore(&self, permit: FillPermit, file: &Bytes, now_ms: u64, now: u32) -> Recall {
        let (record, verdict) = match self.judge(&permit, file, now_ms) {
            Ok(good) => good,
            Err(unfit) => return Recall::Unfit(permit, unfit),
        };
        let body = file.slice(record.size()..);
        if !record.has_body(&body) {
            return Recall::Unfit(permit, Unfit::Dead);
        }
        self.tree.record_use(self.hash, now);
        if record.kind != ObjectKind::Vary {
            permit.store.counters.recalled.fetch_add(1, Ordering::Relaxed);
        }
        Recall::Restored(permit.restore(&record, verdict, body))
    }

    /// An object whose body stays in its file. It is for one response and is not in the index.
    #[must_use]
    pub fn outline(
        &self,
        permit: &FillPermit,
        record: &Record<'_>,
        opened: (FileRef, ChainStamp),
        now: u32,
    ) -> Arc<Object> {
        self.tree.record_use(self.hash, now);
        let object = Object::new(ObjectParts {
            key: permit.key(),
            status: record.status,
            head: record.head,
            etag: record.etag,
            times: record.times,
            tags: &[],
            known: record.sequence,
            body: Vec::new(),
            held: None,
        });
        let (file, stamp) = opened;
        object.set_outside(Outside {
            file,
            stamp,
            at: record.size() as u64,
            len: record.body_len,
            sums: record.sums.into(),
            tree: Arc::clone(&self.tree),
            hash: self.hash,
        });
        Arc::new(object)
    }
}

impl FillPermit {
    /// The disk lookup for its object, if the disk may have it.
    #[must_use]
    pub fn disk_query(&self) -> Option<DiskQuery> {
        self.store.namespaces.disk_query(&self.key())
    }
}

impl Namespaces {
    /// The disk lookup for the object of a key.
    #[must_use]
    pub fn disk_query(&self, key: &CacheKey<'_>) -> Option<DiskQuery> {
        let (tree, namespace) = self.tree_of(key.namespace)?;
        let session = key.session.map_or(&b""[..], |session| session.text());
        let hash = file_hash(&namespace, key.url(), key.vary(), session);
        tree.may_have(hash).then_some(DiskQuery { tree, hash, namespace })
    }

    /// Whether the disk has an object with the same key, as far as the index knows; for the command
    /// line.
    #[must_use]
    pub fn is_on_disk(&self, object: &Object) -> bool {
        self.tree_of(object.namespace()).is_some_and(|(tree, name)| {
            let session = object.session().map_or(&b""[..], |session| session.text());
            tree.is_open() && tree.index.has(file_hash(&name, object.url(), object.vary(), session))
        })
    }

    /// The files of all variants of a URL, public ones or those of the session of `key`.
    pub(crate) fn copies_on_disk(&self, key: &CacheKey<'_>) -> Option<Filed> {
        let (tree, own) = self.tree_of(key.namespace).filter(|(tree, _)| tree.is_open())?;
        let session = key.session.map_or(&b""[..], |session| session.text());
        let base = file_hash(&own, key.url(), b"", session);
        let mut all = tree.index.copies(url_bits(&own, key.url()));
        all.retain(|hash| has_same_owner(&own, *hash, base));
        Some(Filed { tree, name: own, base, all })
    }

    /// The disk tree of a namespace and the namespace's name there; for the command line.
    #[must_use]
    pub fn tree_and_name(&self, namespace: NamespaceId) -> Option<(Arc<DiskTree>, Box<[u8]>)> {
        self.tree_of(namespace).filter(|(tree, _)| tree.is_open())
    }
}

/// Repeats a purge, and records it as a repetition. Returns whether there is such a namespace.
pub(crate) fn repeat_in_namespace(store: &Store, order: &DiskPurge<'_>, echo: Echo) -> bool {
    let Some(namespace) = store.namespaces.known(order.namespace) else { return false };
    let scope = SessionKey::new(order.session).map_or(TagScope::Public, TagScope::Session);
    store.carry_out(namespace, scope, order.target, order.how, echo);
    true
}

impl Store {
    /// Sets the disk trees of a configuration, each with its limits and namespaces. Other trees are
    /// left: their files are not used again.
    pub fn set_trees(&self, all: &[(DiskTreeSettings, Arc<DiskTree>, Vec<NamespaceId>)]) {
        // Before the first purge that their journals do not get.
        self.disk.leave(&all.iter().map(|(_, tree, _)| tree));
        for namespace in self.namespaces.all() {
            let tree = all.iter().find(|(_, _, of)| of.contains(&namespace));
            self.namespaces.attach_tree(namespace, tree.map(|(_, tree, _)| Arc::clone(tree)));
        }
        all.iter().for_each(|(settings, tree, _)| tree.limit(settings));
        self.disk.set(all.iter().map(|(_, tree, _)| Arc::clone(tree)));
    }

    /// The first purge number of a process whose trees know numbers up to `last`. It is greater
    /// than every number in use. Write it to every journal before [`Self::begin_at`].
    #[must_use]
    pub fn next_start(&self, last: u64) -> u64 {
        ((self.generation().max(last) >> 32) + 1) << 32
    }

    /// Numbers purges from `start` on.
    pub fn begin_at(&self, start: u64) {
        self.tags.raise_generation(start);
        debug_assert!(self.generation() >= start, "later purges have greater numbers");
    }

    /// Records a purge in the tree of a namespace, and for other nodes. The caller holds the lock
    /// that numbers purges.
    pub(crate) fn record_purge(
        &self,
        namespace: NamespaceId,
        scope: TagScope<'_>,
        (target, how): (DiskPurgeTarget<'_>, TagPurge),
        echo: Echo,
        sequence: u64,
    ) {
        let session = match scope {
            TagScope::Public => &b""[..],
            TagScope::Session(session) => session.text(),
        };
        self.nodes().note(namespace, session, (target, how), echo, sequence);
        // Set before the tree is read: a tree that is assigned later finds it.
        self.disk.has_purged.store(true, Ordering::Release);
        let Some((tree, name)) = self.namespaces.tree_of(namespace) else {
            return self.disk.index_purge_elsewhere();
        };
        let order = DiskPurge { namespace: &name, session, target, how, sequence };
        self.disk.index_purge(&tree, &order, echo);
    }

    /// Visits the URL and session of each object of a namespace that is not yet in memory or not
    /// yet on disk; for the command line. To miss nothing, call it before visiting memory, and
    /// visit memory before the disk.
    pub fn list_coming(
        &self,
        namespace: NamespaceId,
        visit: &mut impl FnMut(&[u8], Option<SessionKey<'_>>),
    ) {
        for shard in self.index.shards() {
            for growing in lock(shard).fills.iter() {
                let key = growing.key.key();
                if key.namespace == namespace {
                    visit(key.url(), key.session);
                }
            }
        }
        let Some((tree, _)) = self.namespaces.tree_of(namespace) else { return };
        tree.queued(&mut |object| {
            if object.namespace() == namespace {
                visit(object.url(), object.session());
            }
        });
    }

    /// Repeats a purge of another process from the journal of `tree`. It is recorded as a
    /// repetition; else two processes would repeat each other's purges for ever.
    pub fn repeat(&self, tree: &Arc<DiskTree>, order: &DiskPurge<'_>) {
        if order.target == DiskPurgeTarget::Everything {
            return self.purge_tree(tree, Echo::Again);
        }
        repeat_in_namespace(self, order, Echo::Again);
    }

    /// Visits up to `budget` objects in memory, beginning at a place. Objects used since `since`
    /// are recorded as used in their trees (at `mono`, in seconds of a monotonic clock); objects
    /// idle for too long are removed. Returns the next place, or `None` after the last one.
    pub fn review_stored(
        &self,
        at: (usize, u32),
        budget: usize,
        seconds: (u64, u64),
        mono: u32,
    ) -> Option<(usize, u32)> {
        let ((part, place), (since, now)) = (at, seconds);
        let (mut gone, mut used) = (Vec::new(), Vec::new());
        let mut shard = lock(self.index.shards().get(part)?);
        let places = shard.places() as u32;
        let end = places.min(place.saturating_add(budget as u32));
        for place in place..end {
            let Some(object) = shard
                .at(place)
                .filter(|object| matches!(object.kind(), ObjectKind::Content | ObjectKind::Vary))
            else {
                continue;
            };
            let Some((tree, name)) = self.namespaces.tree_of(object.namespace()) else { continue };
            let last = u64::from(object.used(now as u32));
            if now.saturating_sub(last) > tree.inactive() && !object.marks().is_refreshing() {
                gone.push(shard.take(place));
            } else if last >= since {
                used.push((tree, name, Arc::clone(object)));
            }
        }
        drop(shard);
        gone.iter().for_each(|object| self.let_go(object));
        for (tree, name, object) in used {
            let session = object.session().map_or(&b""[..], |session| session.text());
            tree.record_use(file_hash(&name, object.url(), object.vary(), session), mono);
        }
        if end < places {
            return Some((part, end));
        }
        (part + 1 < self.index.shards().len()).then_some((part + 1, 0))
    }

    /// Queues an object for the tree of its namespace, if it has one.
    pub(crate) fn spill(&self, object: &Arc<Object>, sequence: u64, tags: Box<[u8]>) {
        let Some((tree, namespace)) = self.namespaces.tree_of(object.namespace()) else { return };
        let object = Arc::clone(object);
        if tree.spill(DiskWrite { object, sequence, tags, namespace }) {
            self.disk.calls.store(true, Ordering::Release);
        }
    }
}

impl FillPermit {
    /// Restores the content of a file instead of fetching. Followers look up again.
    pub(crate) fn restore(self, record: &Record<'_>, verdict: TagVerdict, body: Bytes) -> Wakes {
        if record.kind == ObjectKind::Vary {
            let names: Vec<&[u8]> = record.head.split(|byte| *byte == b',').collect();
            self.store.restore_vary(&self.key(), &names);
            return self.abandon(crate::AbandonReason::Gone);
        }
        self.restore_content(record, verdict, body, &unpack_tags(record.tags))
    }
}
