//! One directory tree of the disk cache: the paths of its files, its index, its journal and its
//! queues.
//!
//! This type makes every decision about the tree. Its callers do the I/O.
//!
//! INVARIANT: a purge is in this table before it is in the store's tags. A lookup that read the
//! table too early is then stopped by the tags.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::disk::format::{CHUNK, Record, Summer, head_size, sum};
use crate::disk::index::{Age, FileHash, Index};
use crate::disk::journal::{self, Echo, JournalEntry};
use crate::disk::name::{file_hash, hex, is_hex, parse_hex};
use crate::disk::purges::{DiskPurge, DiskPurgeTarget, Purges};
use crate::key::{CacheKey, SessionKey};
use crate::object::{Object, ObjectKind};
use crate::tags::{TagPurge, TagVerdict, lock};
use bolide_base::FileRef;

/// LIMIT: bytes of objects that wait to be written; more are not written.
const QUEUE_BYTES_MAX: u64 = 64 << 20;
/// LIMIT: objects that wait to be written.
const QUEUE_MAX: usize = 4096;
/// LIMIT: bytes of purges that the journal does not have.
const DUE_MAX: usize = 1 << 20;
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

/// The contents of a journal.
#[derive(Debug, Default)]
pub struct Replay {
    purges: Purges,
    rest: Vec<u8>,
    last: u64,
    is_damaged: bool,
}

impl Replay {
    /// Parses the next bytes behind the head.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let (purges, mut last) = (&mut self.purges, self.last);
        let read = journal::read(&self.rest, |entry| match entry {
            JournalEntry::Start(sequence) => last = last.max(sequence),
            JournalEntry::Purge(order, _) => {
                last = last.max(order.sequence);
                purges.add(&order);
            }
        });
        self.last = last;
        self.is_damaged |= read.is_damaged;
        self.rest.drain(..read.used);
    }

    /// Whether part of it is unreadable. The lost entries may have purged anything: replace the
    /// journal with one that has another seal, so that no earlier object is used.
    #[must_use]
    pub const fn is_damaged(&self) -> bool {
        self.is_damaged || !self.rest.is_empty()
    }

    /// The greatest purge number in it.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.last
    }
}

/// An open journal, or one that could not be written.
#[derive(Debug, Default)]
struct Journal {
    file: Option<FileRef>,
    /// The journal that was given up, until it is replaced.
    given_up: Option<FileRef>,
}

impl Journal {
    fn give_up(&mut self) {
        if let Some(file) = self.file.take() {
            self.given_up = Some(file);
        }
    }
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
    journal: Mutex<Journal>,
    queue: Mutex<Queue>,
    /// Files to remove.
    doomed: Mutex<Vec<FileHash>>,
    dropped: AtomicU64,
}

/// A purge of every object with a smaller number.
#[must_use]
pub fn everything(sequence: u64) -> JournalEntry<'static> {
    let (namespace, session, target) = (&b""[..], &b""[..], DiskPurgeTarget::Everything);
    let order = DiskPurge { namespace, session, target, how: TagPurge::Dead, sequence };
    JournalEntry::Purge(order, Echo::First)
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
        *lock(&self.replayed) = Some(replay.purges);
        self.seal.store(seal, Ordering::Relaxed);
        *lock(&self.journal) = Journal { file: Some(file), given_up: None };
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

    /// Whether the journal could not be written, or was never opened.
    #[must_use]
    pub fn lacks_journal(&self) -> bool {
        lock(&self.journal).file.is_none()
    }

    /// Records a purge for the files and for the journal.
    pub(crate) fn purge(&self, order: &DiskPurge<'_>, echo: Echo, unix_ms: u64) {
        let mut purges = lock(&self.purges);
        let start = self.start.load(Ordering::Relaxed);
        // It was numbered before the tree began, and recorded after.
        let is_late = self.is_open() && order.sequence < start;
        let entry = if is_late { everything(start) } else { JournalEntry::Purge(*order, echo) };
        if let JournalEntry::Purge(order, _) = &entry {
            purges.add(order);
        }
        if !self.is_open() {
            self.is_purged_early.store(true, Ordering::Relaxed);
        }
        self.note(&entry, unix_ms);
    }

    /// Adds an entry to those that the journal does not have.
    pub fn note(&self, entry: &JournalEntry<'_>, unix_ms: u64) {
        let mut due = lock(&self.due);
        if due.len() > DUE_MAX
            && let JournalEntry::Purge(DiskPurge { sequence, .. }, _)
            | JournalEntry::Start(sequence) = entry
        {
            due.clear();
            journal::push(&mut due, &everything(*sequence), unix_ms);
        }
        journal::push(&mut due, entry, unix_ms);
    }

    /// Purges may have come before the tree was known: treats all of its files as purged.
    pub fn note_missed_purges(&self) {
        self.is_purged_early.store(!self.is_open(), Ordering::Relaxed);
    }

    /// Whether a purge came before it began. A crash could lose that purge, so the caller unlinks
    /// the journal: without it no process uses the files.
    #[must_use]
    pub fn is_purged_early(&self) -> bool {
        self.is_purged_early.load(Ordering::Relaxed)
    }

    /// Lets `append` write the due entries to the journal. On an error the file is given up: the
    /// caller unlinks it, so that no later process uses it, and replaces it.
    ///
    /// # Errors
    ///
    /// The error of `append`.
    pub fn flush<E>(
        &self,
        append: impl FnOnce(&mut FileRef, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        // The lock is held during the write: a caller that finds no due entries must not return
        // before they are written.
        let mut journal = lock(&self.journal);
        let Some(file) = &mut journal.file else { return Ok(()) };
        let due = std::mem::take(&mut *lock(&self.due));
        if due.is_empty() {
            return Ok(());
        }
        let appended = append(file, &due);
        if appended.is_err() {
            journal.give_up();
            lock(&self.due).splice(0..0, due);
        }
        appended
    }

    /// Lets `make` replace the journal as it was last open; the new file ends with the due entries.
    /// No entry is written meanwhile, so do slow work before.
    ///
    /// # Errors
    ///
    /// The error of `make`; then there is no journal.
    pub fn replace_journal<E>(
        &self,
        make: impl FnOnce(Option<&FileRef>, &[u8]) -> Result<FileRef, E>,
    ) -> Result<(), E> {
        let mut journal = lock(&self.journal);
        let due = lock(&self.due).clone();
        journal.give_up();
        let file = make(journal.given_up.as_ref(), &due)?;
        *journal = Journal { file: Some(file), given_up: None };
        let mut left = lock(&self.due);
        // If too many entries came meanwhile, they were replaced by a purge of everything, and some
        // of them may be in the journal twice.
        if left.starts_with(&due) {
            left.drain(..due.len());
        }
        Ok(())
    }

    /// The journal as it was last open, from which a new one is made.
    #[must_use]
    pub fn old_journal(&self) -> Option<FileRef> {
        let journal = lock(&self.journal);
        journal.file.as_ref().or(journal.given_up.as_ref()).cloned()
    }

    /// The contents of the journal are unknown: the caller unlinks it and replaces it.
    pub fn give_up_journal(&self) {
        lock(&self.journal).give_up();
    }

    /// The open journal.
    #[must_use]
    pub fn journal_file(&self) -> Option<FileRef> {
        lock(&self.journal).file.clone()
    }

    /// Another process has replaced `old` by `file`: writes to that one from now on, if `old` is
    /// still open.
    pub fn follow_journal(&self, old: &FileRef, file: FileRef) {
        let mut journal = lock(&self.journal);
        if journal.file.as_ref() == Some(old) {
            journal.file = Some(file);
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

    /// Queues an object to be written; false if the queue is full.
    pub(crate) fn spill(&self, spill: DiskWrite) -> bool {
        if !self.is_open() || self.is_off() {
            return false;
        }
        let mut queue = lock(&self.queue);
        let bytes = spill.object.charge();
        if queue.spills.len() >= QUEUE_MAX || queue.bytes + bytes > QUEUE_BYTES_MAX {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        queue.bytes += bytes;
        queue.spills.push_back((spill, bytes));
        true
    }

    /// The next object to write.
    #[must_use]
    pub fn next_spill(&self) -> Option<DiskWrite> {
        let mut queue = lock(&self.queue);
        let (spill, bytes) = queue.spills.pop_front()?;
        queue.bytes -= bytes;
        assert!(
            queue.bytes == 0 || !queue.spills.is_empty(),
            "the bytes of the queue are those of its objects"
        );
        Some(spill)
    }

    /// Visits the queued objects; for the command line.
    pub(crate) fn queued(&self, visit: &mut impl FnMut(&Arc<Object>)) {
        lock(&self.queue).spills.iter().for_each(|(spill, _)| visit(&spill.object));
    }

    /// The smallest purge number of the queued objects.
    #[must_use]
    pub fn queued_floor(&self) -> Option<u64> {
        lock(&self.queue).spills.iter().map(|(spill, _)| spill.sequence).min()
    }

    /// Records a written file of `bytes` bytes, at `now` (seconds of a monotonic clock).
    pub fn note_written(&self, hash: FileHash, bytes: u64, now: u32) {
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
    pub fn note_found(&self, hash: FileHash, bytes: u64, now: u32) {
        self.index.note(hash, bytes, now, Age::Found);
    }

    /// Records a use of a file.
    pub fn note_used(&self, hash: FileHash, now: u32) {
        self.index.touch(hash, now);
    }

    /// Removes a missing file from the index.
    pub fn note_gone(&self, hash: FileHash) {
        self.index.remove(hash);
    }

    /// Ends the walk: from now on a file that is not in the index does not exist.
    pub fn end_walk(&self) {
        self.index.set_whole();
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

impl DiskWrite {
    /// The name of its file.
    #[must_use]
    pub fn hash(&self) -> FileHash {
        let session = self.object.session().map_or(&b""[..], |session| session.text());
        file_hash(&self.namespace, self.object.url(), self.object.vary(), session)
    }

    /// Encodes the head of its file; the pieces of the object follow it. False if the format cannot
    /// hold it.
    #[must_use]
    pub fn encode(&self, seal: u64, out: &mut Vec<u8>) -> bool {
        let object = &self.object;
        let mut sums = Summer::default();
        if object.kind() == ObjectKind::Content {
            object.pieces().for_each(|piece| sums.add(piece));
        }
        let sums = sums.finish();
        debug_assert!(
            object.kind() != ObjectKind::Content
                || sums.len() as u64 == object.body_len().div_ceil(CHUNK as u64) * 8,
            "each chunk of a body has a checksum"
        );
        let is_content = object.kind() == ObjectKind::Content;
        let record = Record {
            seal,
            sequence: self.sequence,
            kind: object.kind(),
            is_stale: object.is_softly_purged(),
            status: if is_content { object.status() } else { 0 },
            times: object.times(),
            body_len: if is_content { object.body_len() } else { 0 },
            namespace: &self.namespace,
            url: object.url(),
            vary: object.vary(),
            session: object.session().map_or(&b""[..], |session| session.text()),
            etag: object.etag().unwrap_or_default(),
            tags: &self.tags,
            head: object.packed_head(),
            sums: &sums,
        };
        record.encode(out) && head_size(out) == Some(out.len())
    }

    /// The object.
    #[must_use]
    pub const fn object(&self) -> &Arc<Object> {
        &self.object
    }
}

#[cfg(test)]
mod tests;
