//! The disk behind the store: what is written, what is asked for, what purges reach there.
//!
//! ```text
//!   filled ──▶ queue of its tree ──▶ (disk writer) file under a name that its key gives
//!   missed ──▶ permit ──▶ disk query ──▶ (worker) file ──▶ judged, restored: look up again
//!                            └──── not there, dead, torn ──▶ the permit goes to the origin
//!   purge ───▶ table of its tree ─▶ journal (before anybody is told) ──▶ the store's own tags
//! ```
//! Owns every decision and no door: files are touched by workers and by the disk writer's thread.
//! Refuses to find anything by an index: a key's hash is its path, so that a hit needs no start.

pub mod format;
pub mod fuzz;
mod index;
pub mod journal;
mod name;
mod purges;
mod tree;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use bolide_base::{ChainStamp, FileRef};
use bytes::Bytes;

pub use name::{file_hash, shared_bits, url_bits};
pub use purges::{DiskPurge, DiskPurgeTarget};
pub use tree::{
    Begun, DiskLookup, DiskTree, DiskTreeSettings, DiskWrite, JOURNAL, LOCK, Replay, Unfit,
    everything, review_seconds,
};

use crate::disk::format::{Record, unpack_tags};
use crate::disk::journal::Echo;
use crate::growing::Wakes;
use crate::key::{CacheKey, NamespaceId, SessionKey};
use crate::object::{Object, ObjectKind, ObjectParts, Outside};
use crate::permit::FillPermit;
use crate::store::Store;
use crate::tags::{TagPurge, TagRoot, TagScope, TagVerdict, lock};

/// Bodies up to this many bytes are read into memory; larger ones are sent from their files.
pub const READ_MAX: u64 = 512 * 1024;

/// All trees of a store.
#[derive(Debug, Default)]
pub(crate) struct DiskTier {
    trees: RwLock<Vec<Arc<DiskTree>>>,
    /// There was a purge, of whatever tree or none.
    has_purged: AtomicBool,
    /// Purges of what is on trees.
    noted: AtomicU64,
    /// Those that stand in journals, from the first one on. Neither is ever made smaller: workers
    /// write at the same time, and what two of them wrote counts once.
    written: AtomicU64,
    /// The disk writer has something to do.
    calls: AtomicBool,
    /// The time of the last look-up that missed.
    unix_ms: AtomicU64,
}

impl DiskTier {
    pub(crate) fn note_time(&self, now_ms: u64) {
        self.unix_ms.store(now_ms, Ordering::Relaxed);
    }

    fn all(&self) -> Vec<Arc<DiskTree>> {
        self.trees.read().map(|all| all.clone()).unwrap_or_default()
    }
}

/// The files of the copies of a URL.
#[derive(Debug)]
pub(crate) struct Filed {
    tree: Arc<DiskTree>,
    name: Box<[u8]>,
    /// The file without anything that visitors differ by.
    base: u128,
    all: Vec<u128>,
}

impl Filed {
    /// Has them taken away.
    pub(crate) fn doom(&self) {
        self.all.iter().for_each(|hash| self.tree.condemn(*hash));
    }

    /// How many answers there are that are not among these objects. Beside copies stands what the
    /// URL varies by, which is no answer.
    pub(crate) fn beside(&self, objects: &[Arc<Object>]) -> u64 {
        let file = |object: &Arc<Object>| {
            let session = object.session().map_or(&b""[..], |session| session.text());
            file_hash(&self.name, object.url(), object.vary(), session)
        };
        let known: Vec<_> = objects.iter().map(file).collect();
        let is_marker = |hash: u128| hash == self.base && self.all.len() > 1;
        self.all.iter().filter(|hash| !known.contains(hash) && !is_marker(**hash)).count() as u64
    }
}

/// A look at the disk for what memory does not have.
#[derive(Debug)]
pub struct DiskQuery {
    tree: Arc<DiskTree>,
    hash: u128,
    namespace: Box<[u8]>,
}

/// What became of a permit whose object was looked for on disk.
#[derive(Debug)]
pub enum Recall {
    /// It is in memory now, or was purged meanwhile: look up again.
    Restored(Wakes),
    /// It is of no use; whether its file should go.
    Unfit(FillPermit, Unfit),
}

impl DiskQuery {
    /// The file.
    #[must_use]
    pub fn path(&self) -> Vec<u8> {
        self.tree.path(self.hash)
    }

    /// The tree.
    #[must_use]
    pub const fn tree(&self) -> &Arc<DiskTree> {
        &self.tree
    }

    /// The file is not there, or was taken away.
    pub fn note_gone(&self) {
        self.tree.note_gone(self.hash);
    }

    /// Judges a file by its head.
    ///
    /// # Errors
    ///
    /// It is of no use.
    pub fn judge<'a>(
        &self,
        permit: &FillPermit,
        bytes: &'a [u8],
        now_ms: u64,
    ) -> Result<(Record<'a>, TagVerdict), Unfit> {
        self.tree.judge(bytes, Some((&permit.key(), &self.namespace)), now_ms)
    }

    /// Takes a whole file into memory, `now` in seconds of a clock that does not jump.
    pub fn restore(&self, permit: FillPermit, file: &Bytes, now_ms: u64, now: u32) -> Recall {
        let (record, verdict) = match self.judge(&permit, file, now_ms) {
            Ok(good) => good,
            Err(unfit) => return Recall::Unfit(permit, unfit),
        };
        let body = file.slice(record.size()..);
        if !record.has_body(&body) {
            return Recall::Unfit(permit, Unfit::Dead);
        }
        self.tree.note_used(self.hash, now);
        Recall::Restored(permit.restore(&record, verdict, body))
    }

    /// An object whose body stays in its file; it is for one answer and stands in no index.
    #[must_use]
    pub fn outline(
        &self,
        permit: &FillPermit,
        record: &Record<'_>,
        opened: (FileRef, ChainStamp),
        now: u32,
    ) -> Arc<Object> {
        self.tree.note_used(self.hash, now);
        let object = Object::new(ObjectParts {
            key: permit.key(),
            status: record.status,
            head: record.head,
            etag: record.etag,
            times: record.times,
            tags: &[],
            known: record.sequence,
            body: Vec::new(),
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
    /// Where its object may be on disk, if anywhere.
    #[must_use]
    pub fn disk_query(&self) -> Option<DiskQuery> {
        self.store.disk_query(&self.key())
    }
}

impl Store {
    /// Where the object of a key may be on disk.
    #[must_use]
    pub fn disk_query(&self, key: &CacheKey<'_>) -> Option<DiskQuery> {
        let (tree, namespace) = self.tree_of(key.namespace)?;
        let session = key.session.map_or(&b""[..], |session| session.text());
        let hash = file_hash(&namespace, key.url(), key.vary(), session);
        tree.may_have(hash).then_some(DiskQuery { tree, hash, namespace })
    }

    /// Whether the disk has an object of the same key, as far as is known, for people.
    #[must_use]
    pub fn is_on_disk(&self, object: &Object) -> bool {
        self.tree_of(object.namespace()).is_some_and(|(tree, name)| {
            let session = object.session().map_or(&b""[..], |session| session.text());
            tree.is_open() && tree.index.has(file_hash(&name, object.url(), object.vary(), session))
        })
    }

    /// The tree with these settings; a new one is not used before [`Self::set_trees`].
    #[must_use]
    pub fn tree(&self, settings: &DiskTreeSettings) -> Arc<DiskTree> {
        let known = self.trees().into_iter().find(|tree| tree.is(settings));
        known.unwrap_or_else(|| Arc::new(DiskTree::new(settings)))
    }

    /// Takes over the trees of a configuration: each with its limits and its namespaces. Others
    /// are let go.
    pub fn set_trees(&self, all: &[(DiskTreeSettings, Arc<DiskTree>, Vec<NamespaceId>)]) {
        for namespace in self.all_namespaces() {
            let tree = all.iter().find(|(_, _, of)| of.contains(&namespace));
            self.attach_tree(namespace, tree.map(|(_, tree, _)| Arc::clone(tree)));
        }
        all.iter().for_each(|(settings, tree, _)| tree.limit(settings));
        if let Ok(mut known) = self.disk.trees.write() {
            known.clear();
            for (_, tree, _) in all {
                if !known.iter().any(|other| Arc::ptr_eq(other, tree)) {
                    known.push(Arc::clone(tree));
                }
            }
        }
        self.call();
    }

    /// Every tree.
    #[must_use]
    pub fn trees(&self) -> Vec<Arc<DiskTree>> {
        self.disk.all()
    }

    /// Whether the disk writer has something to do: tells it once.
    #[must_use]
    pub fn take_call(&self) -> bool {
        self.disk.calls.load(Ordering::Relaxed) && self.disk.calls.swap(false, Ordering::AcqRel)
    }

    /// Calls the disk writer.
    pub fn call(&self) {
        self.disk.calls.store(true, Ordering::Release);
    }

    /// Whether purges wait to be written to journals: to be asked before anybody is told of one.
    #[inline]
    #[must_use]
    pub fn has_unwritten_purges(&self) -> bool {
        self.disk.written.load(Ordering::Acquire) != self.disk.noted.load(Ordering::Acquire)
    }

    /// Has `flush` write what is due to the journal of each tree.
    pub fn flush_purges(&self, mut flush: impl FnMut(&DiskTree)) {
        let seen = self.disk.noted.load(Ordering::Acquire);
        self.trees().iter().for_each(|tree| flush(tree));
        self.disk.written.fetch_max(seen, Ordering::AcqRel);
    }

    /// The number from which on a process counts whose trees know numbers up to `last`: greater
    /// than all that were ever used. To be written to every journal before [`Self::begin_at`].
    #[must_use]
    pub fn next_start(&self, last: u64) -> u64 {
        ((self.generation().max(last) >> 32) + 1) << 32
    }

    /// Counts purges from here on.
    pub fn begin_at(&self, start: u64) {
        self.tags.raise_generation(start);
    }

    /// Notes a purge on the tree of a namespace, under the lock that numbers it.
    pub(crate) fn purge_tree(
        &self,
        namespace: NamespaceId,
        scope: TagScope<'_>,
        (target, how): (DiskPurgeTarget<'_>, TagPurge),
        echo: Echo,
        sequence: u64,
    ) {
        // Before the look: who is given the tree after it finds this.
        self.disk.has_purged.store(true, Ordering::Release);
        let Some((tree, name)) = self.tree_of(namespace) else { return };
        let session = match scope {
            TagScope::Public => &b""[..],
            TagScope::Session(session) => session.text(),
        };
        let order = DiskPurge { namespace: &name, session, target, how, sequence };
        self.note_purge(&tree, &order, echo);
    }

    /// Whether there was any purge since the process began, even one that no tree was told of.
    #[must_use]
    pub fn has_purged(&self) -> bool {
        self.disk.has_purged.load(Ordering::Acquire)
    }

    fn note_purge(&self, tree: &DiskTree, order: &DiskPurge<'_>, echo: Echo) {
        tree.purge(order, echo, self.disk.unix_ms.load(Ordering::Relaxed));
        self.disk.noted.fetch_add(1, Ordering::AcqRel);
        self.disk.calls.store(true, Ordering::Release);
    }

    /// The files of all copies of a URL, for everybody or for the session of `key`.
    pub(crate) fn copies_on_disk(&self, key: &CacheKey<'_>) -> Option<Filed> {
        let (tree, name) = self.tree_of(key.namespace).filter(|(tree, _)| tree.is_open())?;
        let session = key.session.map_or(&b""[..], |session| session.text());
        let base = file_hash(&name, key.url(), b"", session);
        let mut all = tree.index.copies(url_bits(&name, key.url()));
        all.retain(|hash| index::has_same_owner(*hash, base));
        Some(Filed { tree, name, base, all })
    }

    /// Looks at what is not in memory yet, or not on its tree yet, of a namespace: the URL and the
    /// session of each. For people, who look here before memory and there before the disk, so that
    /// nothing passes them on its way.
    pub fn list_coming(
        &self,
        namespace: NamespaceId,
        visit: &mut impl FnMut(&[u8], Option<SessionKey<'_>>),
    ) {
        for shard in self.shards() {
            for growing in lock(shard).fills.values() {
                let key = growing.key.key();
                if key.namespace == namespace {
                    visit(key.url(), key.session);
                }
            }
        }
        let Some((tree, _)) = self.tree_of(namespace) else { return };
        tree.queued(&mut |object| {
            if object.namespace() == namespace {
                visit(object.url(), object.session());
            }
        });
    }

    /// The tree of a namespace and the name that the namespace has there, for people.
    #[must_use]
    pub fn tree_and_name(&self, namespace: NamespaceId) -> Option<(Arc<DiskTree>, Box<[u8]>)> {
        self.tree_of(namespace).filter(|(tree, _)| tree.is_open())
    }

    /// Notes what another process has purged, as the journal of `tree` says, and purges it here.
    /// Whoever reads of that is told that it is no news, or two processes would never come to rest.
    pub fn repeat(&self, tree: &Arc<DiskTree>, order: &DiskPurge<'_>) {
        if order.target == DiskPurgeTarget::Everything {
            return self.repeat_everything(tree);
        }
        let Some(namespace) = self.known_namespace(order.namespace) else { return };
        let scope = SessionKey::new(order.session).map_or(TagScope::Public, TagScope::Session);
        self.carry_out(namespace, scope, order.target, order.how, Echo::Again);
    }

    /// Purges whatever is on a tree, which is one purge for the journal.
    fn repeat_everything(&self, tree: &Arc<DiskTree>) {
        let (namespace, session, target) = (&b""[..], &b""[..], DiskPurgeTarget::Everything);
        self.tags.purge_by(|sequence| {
            let order = DiskPurge { namespace, session, target, how: TagPurge::Dead, sequence };
            self.note_purge(tree, &order, Echo::Again);
            0
        });
        for namespace in self.all_namespaces() {
            if self.tree_of(namespace).is_some_and(|(own, _)| Arc::ptr_eq(&own, tree)) {
                for root in [TagRoot::Public, TagRoot::Private] {
                    self.tags.purge_root(namespace, &root, TagPurge::Dead, |_| {});
                }
            }
        }
    }

    /// Looks at up to `budget` objects in memory from a place on: those that were asked for since
    /// the `since` of `seconds` are noted as used on their trees (at `mono`, in seconds of a
    /// clock that does not jump), those that nobody asked for too long are let go. The next place;
    /// none when all were seen.
    pub fn review_stored(
        &self,
        at: (usize, u32),
        budget: usize,
        seconds: (u64, u64),
        mono: u32,
    ) -> Option<(usize, u32)> {
        let ((part, place), (since, now)) = (at, seconds);
        let (mut gone, mut used) = (Vec::new(), Vec::new());
        let mut shard = lock(self.shards().get(part)?);
        let places = shard.places() as u32;
        let end = places.min(place.saturating_add(budget as u32));
        for place in place..end {
            let Some(object) = shard
                .at(place)
                .filter(|object| matches!(object.kind(), ObjectKind::Content | ObjectKind::Vary))
            else {
                continue;
            };
            let Some((tree, name)) = self.tree_of(object.namespace()) else { continue };
            let last = u64::from(object.used(now as u32));
            if now.saturating_sub(last) > tree.inactive() && !object.is_refreshing() {
                gone.push(shard.take(place));
            } else if last >= since {
                used.push((tree, name, Arc::clone(object)));
            }
        }
        drop(shard);
        gone.iter().for_each(|object| self.let_go(object));
        for (tree, name, object) in used {
            let session = object.session().map_or(&b""[..], |session| session.text());
            tree.note_used(file_hash(&name, object.url(), object.vary(), session), mono);
        }
        if end < places {
            return Some((part, end));
        }
        (part + 1 < self.shards().len()).then_some((part + 1, 0))
    }

    /// Queues an object for the tree of its namespace, if it has one.
    pub(crate) fn spill(&self, object: &Arc<Object>, sequence: u64, tags: Box<[u8]>) {
        let Some((tree, namespace)) = self.tree_of(object.namespace()) else { return };
        let object = Arc::clone(object);
        if tree.spill(DiskWrite { object, sequence, tags, namespace }) {
            self.disk.calls.store(true, Ordering::Release);
        }
    }
}

impl FillPermit {
    /// Puts what a file has into the store in place of an origin's answer. Followers look again.
    fn restore(self, record: &Record<'_>, verdict: TagVerdict, body: Bytes) -> Wakes {
        if record.kind == ObjectKind::Vary {
            let names: Vec<&[u8]> = record.head.split(|byte| *byte == b',').collect();
            self.store.restore_vary(&self.key(), &names);
            return self.abandon(crate::AbandonReason::Gone);
        }
        self.restore_content(record, verdict, body, &unpack_tags(record.tags))
    }
}
