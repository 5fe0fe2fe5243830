//! One directory tree of the disk cache: the paths of its files, its index, its journal and its
//! queues.
//!
//! This type makes every decision about the tree. Its callers do the I/O.
//!
//! INVARIANT: a purge is in this table before it is in the store's tags. A lookup that read the
//! table too early is then stopped by the tags.

mod journaling;
mod sites;
mod unlinked;
mod write;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::disk::format::{Record, sum};
use crate::disk::index::{Age, FileHash, Index};
use crate::disk::journal::{OpenJournal, Replay, everything};
use crate::disk::name::{hex, is_hex, parse_hex};
use crate::disk::purges::Purges;
use crate::key::{CacheKey, SessionKey};
use crate::object::{Object, ObjectKind};
use crate::tags::{TagVerdict, lock};
use bolide_base::FileRef;
pub use sites::DiskSite;
use sites::Sites;
use unlinked::Unlinked;

/// The file name of the journal in the root of the tree.
pub const JOURNAL: &[u8] = b"bolide.journal";
/// The name of the lock file in the root of the tree.
pub const LOCK: &[u8] = b"bolide.lock";

/// The configuration of a disk tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskTreeSettings {
    /// The root directory.
    pub root: Box<[u8]>,
    /// The lengths of the directory names below it, as in `levels=`: at most three of 1 or 2.
    pub levels: Box<[u8]>,
    /// LIMIT: bytes of all files; 0 means no limit.
    pub max_size: u64,
    /// Seconds without a use after which a file is removed.
    pub inactive: u64,
    /// Bytes to keep free on the file system.
    pub min_free: u64,
}

/// An object on its way to a file.
#[derive(Clone, Debug)]
pub struct DiskWrite {
    pub(crate) object: Arc<Object>,
    /// The purge number up to which no purge has hit it.
    pub(crate) sequence: u64,
    /// Its packed tags.
    pub(crate) tags: Box<[u8]>,
    pub(crate) namespace: Box<[u8]>,
}

#[derive(Debug, Default)]
struct Queue {
    /// The objects, each with its charge when it was queued, which compressed variants raise.
    spills: VecDeque<(DiskWrite, u64)>,
    bytes: u64,
}

/// The kind of a directory entry below the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskLookup {
    /// The file of this key.
    File(FileHash),
    /// A directory of the tree.
    Directory,
    /// An incomplete file; it can be removed if it is old.
    Temporary,
    /// Not part of the cache.
    Foreign,
}

/// Why a file is useless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is corrupt, foreign or purged: remove it.
    Dead,
    /// It is valid, but past every use.
    Old,
}

/// How a tree began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Its files are used as its journal says.
    Whole,
    /// A purge came earlier: none of its files is used, and its journal must be replaced.
    Purged,
}

/// One directory tree.
#[derive(Debug)]
pub struct DiskTree {
    root: Box<[u8]>,
    levels: Box<[u8]>,
    max_size: AtomicU64,
    inactive: AtomicU64,
    min_free: AtomicU64,
    seal: AtomicU64,
    /// The purges of the journal, until [`Self::begin`].
    replayed: Mutex<Option<Purges>>,
    sites: Mutex<Sites>,
    /// The first purge number at its beginning; 0 before.
    start: AtomicU64,
    /// Whether a purge came before it began.
    is_purged_early: AtomicBool,
    is_open: AtomicBool,
    /// Nothing is written: the disk is full, or its journal cannot be written.
    is_off: AtomicBool,
    pub(crate) index: Index,
    purges: Mutex<Purges>,
    /// Entries that the journal does not have.
    due: Mutex<Vec<u8>>,
    journal: Mutex<OpenJournal>,
    queue: Mutex<Queue>,
    /// Files to remove.
    doomed: Mutex<Vec<FileHash>>,
    unlinked: Unlinked,
    dropped: AtomicU64,
}

/// The interval in seconds at which uses in memory are recorded in the tree, for its `inactive`
/// time.
#[must_use]
pub fn review_seconds(inactive: u64) -> u64 {
    (inactive / 4).clamp(1, 60)
}

impl DiskTree {
    /// A tree that is not open.
    #[must_use]
    pub fn new(settings: &DiskTreeSettings) -> Self {
        let tree = Self {
            root: settings.root.clone(),
            levels: settings.levels.clone(),
            max_size: AtomicU64::new(0),
            inactive: AtomicU64::new(0),
            min_free: AtomicU64::new(0),
            seal: AtomicU64::new(0),
            replayed: Mutex::default(),
            sites: Mutex::default(),
            start: AtomicU64::new(0),
            is_purged_early: AtomicBool::new(false),
            is_open: AtomicBool::new(false),
            is_off: AtomicBool::new(false),
            index: Index::new(),
            purges: Mutex::default(),
            due: Mutex::default(),
            journal: Mutex::default(),
            queue: Mutex::default(),
            doomed: Mutex::default(),
            unlinked: Unlinked::default(),
            dropped: AtomicU64::new(0),
        };
        tree.limit(settings);
        tree
    }

    /// Sets the limits.
    pub fn limit(&self, settings: &DiskTreeSettings) {
        self.max_size.store(settings.max_size, Ordering::Relaxed);
        self.inactive.store(settings.inactive, Ordering::Relaxed);
        self.min_free.store(settings.min_free, Ordering::Relaxed);
    }

    /// Whether `settings` describe this tree.
    #[must_use]
    pub fn is(&self, settings: &DiskTreeSettings) -> bool {
        self.root == settings.root && self.levels == settings.levels
    }

    /// The root directory.
    #[must_use]
    pub fn root(&self) -> &[u8] {
        &self.root
    }

    /// The path of a file in the root directory.
    #[must_use]
    pub fn own_file(&self, name: &[u8]) -> Vec<u8> {
        [&self.root, &b"/"[..], name].concat()
    }

    /// Bytes to keep free on its file system.
    #[must_use]
    pub fn min_free(&self) -> u64 {
        self.min_free.load(Ordering::Relaxed)
    }

    /// Seconds without a use after which a file is removed.
    #[must_use]
    pub fn inactive(&self) -> u64 {
        self.inactive.load(Ordering::Relaxed)
    }

    /// Bytes of the files in the index.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.index.bytes()
    }

    /// The number of files in the index.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.index.count()
    }

    /// The number of objects that were not written because the queue was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// The number of remembered purges.
    #[must_use]
    pub fn purges(&self) -> usize {
        lock(&self.purges).len()
    }

    /// The path of the file of a key.
    #[must_use]
    pub fn path(&self, hash: FileHash) -> Vec<u8> {
        let name = hex(hash);
        let mut path = Vec::with_capacity(self.root.len() + 48);
        path.extend_from_slice(&self.root);
        let mut end = name.len();
        for level in &self.levels {
            let start = end - usize::from(*level);
            path.push(b'/');
            path.extend_from_slice(&name[start..end]);
            end = start;
        }
        path.push(b'/');
        path.extend_from_slice(&name);
        path
    }

    /// The directories of the file of a key, the outermost first, without the root.
    #[must_use]
    pub fn directories(&self, hash: FileHash) -> Vec<Vec<u8>> {
        let path = self.path(hash);
        let inside = (self.root.len() + 1..path.len()).filter(|at| path[*at] == b'/');
        inside.map(|at| path[..at].to_vec()).collect()
    }

    /// A unique path for a file that is being written.
    #[must_use]
    pub fn temporary(&self, hash: FileHash, chance: u64) -> Vec<u8> {
        let mut path = self.path(hash);
        path.push(b'.');
        path.extend_from_slice(&hex(FileHash::from(chance))[16..]);
        path
    }

    /// The kind of `name` in the directory `inside` (as in `c/29`, empty for the root).
    #[must_use]
    pub fn classify(&self, inside: &[u8], name: &[u8], is_dir: bool) -> DiskLookup {
        let depth = inside.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).count();
        if is_dir {
            let is_ours = self
                .levels
                .get(depth)
                .is_some_and(|len| name.len() == usize::from(*len) && is_hex(name));
            return if is_ours { DiskLookup::Directory } else { DiskLookup::Foreign };
        }
        let chance = name.strip_prefix(JOURNAL).and_then(|rest| rest.strip_prefix(b"."));
        if depth == 0 && chance.is_some_and(|chance| chance.len() == 16 && is_hex(chance)) {
            return DiskLookup::Temporary;
        }
        let (stem, tail) = name.split_at_checked(32).unwrap_or((name, b""));
        let Some(hash) = parse_hex(stem) else { return DiskLookup::Foreign };
        let path = self.path(hash);
        let directory = &path[self.root.len() + 1..path.len() - 32];
        let is_here = directory.strip_suffix(b"/").unwrap_or_default() == inside;
        match tail {
            _ if !is_here => DiskLookup::Foreign,
            b"" => DiskLookup::File(hash),
            [b'.', chance @ ..] if chance.len() == 16 && is_hex(chance) => DiskLookup::Temporary,
            _ => DiskLookup::Foreign,
        }
    }

    /// Sets its journal. Its caller writes the first purge number to it.
    pub fn open(&self, file: FileRef, seal: u64, replay: Replay) {
        lock(&self.sites).last = replay.sites();
        *lock(&self.replayed) = Some(replay.purges);
        self.seal.store(seal, Ordering::Relaxed);
        *lock(&self.journal) = OpenJournal { file: Some(file), given_up: None };
    }

    /// Opens the tree for lookups and writes; purges are numbered from `start` on. An earlier purge
    /// has a meaningless number: it counts as a purge of everything, and the journal must be
    /// replaced. `None` without a journal, or if the tree is open already.
    pub fn begin(&self, start: u64, unix_ms: u64) -> Option<Begun> {
        let replayed = lock(&self.replayed).take()?;
        let mut purges = lock(&self.purges);
        *purges = replayed;
        self.start.store(start, Ordering::Relaxed);
        let is_purged = self.is_purged_early.swap(false, Ordering::Relaxed);
        if is_purged {
            purges.raise(start);
            self.note(&everything(start), unix_ms);
        }
        self.purge_new_sites(&mut purges, start, unix_ms);
        self.is_open.store(true, Ordering::Release);
        Some(if is_purged { Begun::Purged } else { Begun::Whole })
    }

    /// Whether [`Self::begin`] was called.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// The seal of its objects.
    #[must_use]
    pub fn seal(&self) -> u64 {
        self.seal.load(Ordering::Relaxed)
    }

    /// Whether writing is disabled.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.is_off.load(Ordering::Relaxed)
    }

    /// Disables or enables writing.
    pub fn set_off(&self, is_off: bool) {
        self.is_off.store(is_off, Ordering::Relaxed);
        if is_off {
            *lock(&self.queue) = Queue::default();
        }
    }

    /// Whether the file of a key may exist.
    pub(crate) fn may_have(&self, hash: FileHash) -> bool {
        self.is_open() && self.index.may_have(hash)
    }

    /// Whether a session may have private files; takes no lock.
    #[must_use]
    pub fn may_have_private(&self, session: SessionKey<'_>) -> bool {
        self.is_open() && self.index.may_have_private(sum(session.text()))
    }

    /// Whether the index has a file.
    #[must_use]
    pub fn knows(&self, hash: FileHash) -> bool {
        self.index.has(hash)
    }

    /// Validates a file by its head, and against the key of the lookup, if there is one.
    ///
    /// # Errors
    ///
    /// The file is useless.
    pub fn judge<'a>(
        &self,
        start: &'a [u8],
        key: Option<(&CacheKey<'_>, &[u8])>,
        now_ms: u64,
    ) -> Result<(Record<'a>, TagVerdict), Unfit> {
        let record = Record::decode(start).ok_or(Unfit::Dead)?;
        let is_asked = key.is_none_or(|(key, namespace)| {
            record.namespace == namespace
                && record.url == key.url()
                && record.vary == key.vary()
                && record.session == key.session().map_or(&b""[..], |session| session.text())
        });
        if record.seal != self.seal() || !is_asked {
            return Err(Unfit::Dead);
        }
        let verdict = lock(&self.purges).verdict(&record);
        if verdict == TagVerdict::Dead {
            return Err(Unfit::Dead);
        }
        let is_old = now_ms >= record.times.expires_ms && now_ms >= record.times.error_until_ms();
        let is_old = is_old && now_ms >= record.times.stale_until_ms();
        if is_old && record.kind == ObjectKind::Content {
            return Err(Unfit::Old);
        }
        let verdict = if record.is_stale { TagVerdict::Stale } else { verdict };
        Ok((record, verdict))
    }

    /// Records a written file of `bytes` bytes, at `now` (seconds of a monotonic clock).
    pub fn record_write(&self, hash: FileHash, bytes: u64, now: u32) {
        self.index.note(hash, bytes, now, Age::New);
    }

    /// Queues a purged or corrupt file for removal.
    pub fn condemn(&self, hash: FileHash) {
        self.index.remove(hash);
        lock(&self.doomed).push(hash);
    }

    /// The next file to remove.
    #[must_use]
    pub fn next_doomed(&self) -> Option<FileHash> {
        lock(&self.doomed).pop()
    }

    /// Records a file that the walk found.
    pub fn record_found(&self, hash: FileHash, bytes: u64, now: u32) {
        self.index.note(hash, bytes, now, Age::Found);
    }

    /// Records a use of a file.
    pub fn record_use(&self, hash: FileHash, now: u32) {
        self.index.touch(hash, now);
    }

    /// Removes a missing file from the index.
    pub fn forget(&self, hash: FileHash) {
        self.index.remove(hash);
    }

    /// Lets `unlink` remove a file for this process's own reasons: its event says nothing.
    pub fn unlink<E>(&self, hash: FileHash, unlink: impl FnOnce(&[u8]) -> Result<(), E>) {
        self.forget(hash);
        self.unlinked.note(hash);
        if unlink(&self.path(hash)).is_err() {
            self.unlinked.take(hash);
        }
    }

    /// Whether an event is that of an own unlink; it is no longer awaited.
    #[must_use]
    pub fn take_unlink(&self, hash: FileHash) -> bool {
        self.unlinked.take(hash)
    }

    /// Events were lost: none is awaited.
    pub fn forget_unlinks(&self) {
        self.unlinked.clear();
    }

    /// Ends the walk: from now on a file that is not in the index does not exist.
    pub fn end_walk(&self) {
        self.index.set_whole();
    }

    /// Whether the walk has ended.
    #[must_use]
    pub fn is_walked(&self) -> bool {
        self.index.is_whole()
    }

    /// The next file to evict: the least recently used one, if it is idle for too long or the tree
    /// exceeds its size.
    #[must_use]
    pub fn next_victim(&self, now: u32, is_short: bool) -> Option<FileHash> {
        let (hash, used) = self.index.oldest()?;
        let max = self.max_size.load(Ordering::Relaxed);
        // The next review records uses in memory here, and idle objects leave memory first.
        let idle = u64::from(now.saturating_sub(used));
        let is_idle = idle > self.inactive() + review_seconds(self.inactive()) + 1;
        let is_full = max > 0 && self.index.bytes() > max;
        (is_short || is_idle || is_full).then_some(hash)
    }

    /// Appends files of the index, beginning at a place. Returns the next place.
    pub fn list(
        &self,
        at: (usize, usize),
        max: usize,
        out: &mut Vec<FileHash>,
    ) -> Option<(usize, usize)> {
        let (part, from) = at;
        match self.index.list(part, from, max, out) {
            Some(next) => Some((part, next)),
            None => (part + 1 < Index::PARTS).then_some((part + 1, 0)),
        }
    }

    /// Drops the purges up to `sequence`: every older file was checked against them.
    pub fn forget_purges(&self, sequence: u64) {
        lock(&self.purges).forget_until(sequence);
    }

    /// The purge number below which every object is dead.
    #[must_use]
    pub fn floor(&self) -> u64 {
        lock(&self.purges).floor()
    }
}

#[cfg(test)]
mod tests;
