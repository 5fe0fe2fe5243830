//! One directory tree that objects are kept in: where each lies, what is known of it, what is due.
//!
//! Everything that decides about a tree is here; whoever has a door does what it says.
//!
//! The rule that is easiest to break: what a purge says must stand in the table before the store's
//! own tags say it, so that whoever has looked at the table is caught by the tags.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::disk::format::{Record, Summer, head_size, sum};
use crate::disk::index::{Age, FileHash, Index};
use crate::disk::journal::{self, Echo, JournalEntry};
use crate::disk::name::{file_hash, hex, is_hex, parse_hex};
use crate::disk::purges::{DiskPurge, DiskPurgeTarget, Purges};
use crate::key::{CacheKey, SessionKey};
use crate::object::{Object, ObjectKind};
use crate::tags::{TagPurge, TagVerdict, lock};
use bolide_base::FileRef;

/// LIMIT: bytes of objects that wait to be written; what comes on top is not written.
const QUEUE_BYTES_MAX: u64 = 64 << 20;
/// LIMIT: objects that wait to be written.
const QUEUE_MAX: usize = 4096;
/// LIMIT: bytes of purges that could not be written to the journal.
const DUE_MAX: usize = 1 << 20;
/// The name of the journal below the root of a tree.
pub const JOURNAL: &[u8] = b"bolide.journal";
/// The name of the file that processes hold locked below the root of a tree.
pub const LOCK: &[u8] = b"bolide.lock";

/// What a configuration says of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskTreeSettings {
    /// The directory.
    pub root: Box<[u8]>,
    /// Lengths of the names of directories below it, 1 or 2 each, three at most.
    pub levels: Box<[u8]>,
    /// Bytes of all files; 0 is no limit.
    pub max_size: u64,
    /// Seconds without a use after which a file goes.
    pub inactive: u64,
    /// Bytes that stay free on the file system.
    pub min_free: u64,
}

/// An object on its way to a file.
#[derive(Clone, Debug)]
pub struct DiskWrite {
    pub(crate) object: Arc<Object>,
    /// No purge up to this one has hit it.
    pub(crate) sequence: u64,
    /// Its tags, packed.
    pub(crate) tags: Box<[u8]>,
    pub(crate) namespace: Box<[u8]>,
}

#[derive(Debug, Default)]
struct Queue {
    spills: VecDeque<DiskWrite>,
    bytes: u64,
}

/// What is found below the root of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskLookup {
    /// A file of this key.
    File(FileHash),
    /// A directory of ours.
    Directory,
    /// A file that was not finished, if it is old.
    Temporary,
    /// Nothing of ours.
    Foreign,
}

/// Why a file is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is torn, changed, somebody else's or purged: away with it.
    Dead,
    /// It is good, and too old to be of any use.
    Old,
}

/// What a journal said.
#[derive(Debug, Default)]
pub struct Replay {
    purges: Purges,
    rest: Vec<u8>,
    last: u64,
    is_damaged: bool,
}

impl Replay {
    /// Takes the next bytes behind the head.
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

    /// Whether something in it could not be read. It may have purged anything: such a journal is
    /// replaced by one with another seal, and nothing of what came before is believed.
    #[must_use]
    pub const fn is_damaged(&self) -> bool {
        self.is_damaged || !self.rest.is_empty()
    }

    /// The greatest number that it names.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.last
    }
}

/// A journal that is open, or that could not be written.
#[derive(Debug, Default)]
struct Journal {
    file: Option<FileRef>,
    /// The one that was given up, until another takes its place.
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
    /// What lies there is believed as its journal says.
    Whole,
    /// A purge came earlier: nothing that lies there is believed, and its journal is no good.
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
    /// What the journal said, until it is believed.
    replayed: Mutex<Option<Purges>>,
    /// The number that purges were counted from when it began; 0 before.
    start: AtomicU64,
    /// There was a purge before it began.
    is_purged_early: AtomicBool,
    is_open: AtomicBool,
    /// Nothing is written: the disk is full, or its journal cannot be written.
    is_off: AtomicBool,
    pub(crate) index: Index,
    purges: Mutex<Purges>,
    /// Entries that the journal has not.
    due: Mutex<Vec<u8>>,
    journal: Mutex<Journal>,
    queue: Mutex<Queue>,
    /// Files that are to be taken away.
    doomed: Mutex<Vec<FileHash>>,
    dropped: AtomicU64,
}

/// A purge of whatever has a smaller number.
#[must_use]
pub fn everything(sequence: u64) -> JournalEntry<'static> {
    let (namespace, session, target) = (&b""[..], &b""[..], DiskPurgeTarget::Everything);
    let order = DiskPurge { namespace, session, target, how: TagPurge::Dead, sequence };
    JournalEntry::Purge(order, Echo::First)
}

/// How often memory is looked through for what was used there, where files go that nobody used for
/// so many seconds.
#[must_use]
pub fn review_seconds(inactive: u64) -> u64 {
    (inactive / 4).clamp(1, 60)
}

impl DiskTree {
    /// A tree that nobody has looked at yet.
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

    /// Takes over limits.
    pub fn limit(&self, settings: &DiskTreeSettings) {
        self.max_size.store(settings.max_size, Ordering::Relaxed);
        self.inactive.store(settings.inactive, Ordering::Relaxed);
        self.min_free.store(settings.min_free, Ordering::Relaxed);
    }

    /// Whether it is the one that `settings` mean.
    #[must_use]
    pub fn is(&self, settings: &DiskTreeSettings) -> bool {
        self.root == settings.root && self.levels == settings.levels
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &[u8] {
        &self.root
    }

    /// A file of its own, by its name below the root.
    #[must_use]
    pub fn own_file(&self, name: &[u8]) -> Vec<u8> {
        [&self.root, &b"/"[..], name].concat()
    }

    /// Bytes that must stay free on its file system.
    #[must_use]
    pub fn min_free(&self) -> u64 {
        self.min_free.load(Ordering::Relaxed)
    }

    /// Seconds without a use after which a file goes.
    #[must_use]
    pub fn inactive(&self) -> u64 {
        self.inactive.load(Ordering::Relaxed)
    }

    /// Bytes of the files that are known.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.index.bytes()
    }

    /// Files that are known.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.index.count()
    }

    /// Objects that were not written because too many waited.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Purges that are remembered.
    #[must_use]
    pub fn purges(&self) -> usize {
        lock(&self.purges).len()
    }

    /// Where the file of a key lies.
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

    /// The directories that the file of a key lies in, the outermost first, without the root.
    #[must_use]
    pub fn directories(&self, hash: FileHash) -> Vec<Vec<u8>> {
        let path = self.path(hash);
        let inside = (self.root.len() + 1..path.len()).filter(|at| path[*at] == b'/');
        inside.map(|at| path[..at].to_vec()).collect()
    }

    /// A name for a file that is being written, unlike any other.
    #[must_use]
    pub fn temporary(&self, hash: FileHash, chance: u64) -> Vec<u8> {
        let mut path = self.path(hash);
        path.push(b'.');
        path.extend_from_slice(&hex(FileHash::from(chance))[16..]);
        path
    }

    /// What stands under `name` in the directory `inside` (as in `c/29`, empty for the root).
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

    /// Takes over its journal, which is to be told of the number that is counted from.
    pub fn open(&self, file: FileRef, seal: u64, replay: Replay) {
        *lock(&self.replayed) = Some(replay.purges);
        self.seal.store(seal, Ordering::Relaxed);
        *lock(&self.journal) = Journal { file: Some(file), given_up: None };
    }

    /// From here on it is asked and filled; purges are counted from `start` already. One that came
    /// before had a number that means nothing here: it counts as one of everything, and the journal
    /// is to be made anew. None if its journal was not taken over, or if it began long ago.
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

    /// What its objects carry.
    #[must_use]
    pub fn seal(&self) -> u64 {
        self.seal.load(Ordering::Relaxed)
    }

    /// Whether nothing is written.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.is_off.load(Ordering::Relaxed)
    }

    /// Stops or resumes writing.
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

    /// Notes a purge for the files and for the journal.
    pub(crate) fn purge(&self, order: &DiskPurge<'_>, echo: Echo, unix_ms: u64) {
        let mut purges = lock(&self.purges);
        let start = self.start.load(Ordering::Relaxed);
        // It got its number before, and comes here after the tree began.
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

    /// Puts an entry among those that are due.
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

    /// Purges may have come before it was named: what lies there is as if all of it was purged.
    pub fn note_missed_purges(&self) {
        self.is_purged_early.store(!self.is_open(), Ordering::Relaxed);
    }

    /// Whether there was a purge before it began. Until it begins, that could be lost: the caller
    /// takes the journal's name away, so that no process believes what lies there.
    #[must_use]
    pub fn is_purged_early(&self) -> bool {
        self.is_purged_early.load(Ordering::Relaxed)
    }

    /// Lets `append` write what is due to the journal. If it cannot, the file is given up: the
    /// caller takes its name away, so that no later process believes it, and has it made anew.
    ///
    /// # Errors
    ///
    /// What `append` says.
    pub fn flush<E>(
        &self,
        append: impl FnOnce(&mut FileRef, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        // Held while it is written: who finds nothing due must not overtake who writes it.
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

    /// Has `make` put another file in the place of the journal as it was last open, which gets what
    /// is due at its end. Meanwhile nobody else writes: what takes long is done before.
    ///
    /// # Errors
    ///
    /// What `make` says; then there is none.
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
        // Too much may have come meanwhile: then what is due is something else, and stands there
        // twice in part.
        if left.starts_with(&due) {
            left.drain(..due.len());
        }
        Ok(())
    }

    /// The journal as it was last open, from which another is to be made.
    #[must_use]
    pub fn old_journal(&self) -> Option<FileRef> {
        let journal = lock(&self.journal);
        journal.file.as_ref().or(journal.given_up.as_ref()).cloned()
    }

    /// Nobody knows what the journal says: the caller takes its name away and has it made anew.
    pub fn give_up_journal(&self) {
        lock(&self.journal).give_up();
    }

    /// The journal as it is open.
    #[must_use]
    pub fn journal_file(&self) -> Option<FileRef> {
        lock(&self.journal).file.clone()
    }

    /// Another process has put `file` in the place of `old`: that one is written from here on, if
    /// `old` is still open.
    pub fn follow_journal(&self, old: &FileRef, file: FileRef) {
        let mut journal = lock(&self.journal);
        if journal.file.as_ref() == Some(old) {
            journal.file = Some(file);
        }
    }

    /// Whether the file of a key may be there.
    pub(crate) fn may_have(&self, hash: FileHash) -> bool {
        self.is_open() && self.index.may_have(hash)
    }

    /// Whether there may be private files of a session; a look without a lock.
    #[must_use]
    pub fn may_have_private(&self, session: SessionKey<'_>) -> bool {
        self.is_open() && self.index.may_have_private(sum(session.text()))
    }

    /// Whether a file is known to be there.
    #[must_use]
    pub fn knows(&self, hash: FileHash) -> bool {
        self.index.has(hash)
    }

    /// Judges a file by its head, against the key that it was looked up by, if there was one.
    ///
    /// # Errors
    ///
    /// It is of no use.
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

    /// Queues an object to be written; false when too many wait.
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
        queue.spills.push_back(spill);
        true
    }

    /// The next object to be written.
    #[must_use]
    pub fn next_spill(&self) -> Option<DiskWrite> {
        let mut queue = lock(&self.queue);
        let spill = queue.spills.pop_front()?;
        queue.bytes = queue.bytes.saturating_sub(spill.object.charge());
        Some(spill)
    }

    /// Looks at what waits to be written, for people.
    pub(crate) fn queued(&self, visit: &mut impl FnMut(&Arc<Object>)) {
        lock(&self.queue).spills.iter().for_each(|spill| visit(&spill.object));
    }

    /// The smallest number of an object that waits to be written.
    #[must_use]
    pub fn queued_floor(&self) -> Option<u64> {
        lock(&self.queue).spills.iter().map(|spill| spill.sequence).min()
    }

    /// A file of so many bytes was written, at `now` (seconds of a clock that does not jump).
    pub fn note_written(&self, hash: FileHash, bytes: u64, now: u32) {
        self.index.note(hash, bytes, now, Age::New);
    }

    /// Has a file taken away that was purged, or that turned out to be broken.
    pub fn condemn(&self, hash: FileHash) {
        self.index.remove(hash);
        lock(&self.doomed).push(hash);
    }

    /// The next file to be taken away.
    #[must_use]
    pub fn next_doomed(&self) -> Option<FileHash> {
        lock(&self.doomed).pop()
    }

    /// A file was found by the walk.
    pub fn note_found(&self, hash: FileHash, bytes: u64, now: u32) {
        self.index.note(hash, bytes, now, Age::Found);
    }

    /// A file was used.
    pub fn note_used(&self, hash: FileHash, now: u32) {
        self.index.touch(hash, now);
    }

    /// A file is gone.
    pub fn note_gone(&self, hash: FileHash) {
        self.index.remove(hash);
    }

    /// The walk is over: what is not in the index is not there.
    pub fn end_walk(&self) {
        self.index.set_whole();
    }

    /// The next file that has to go: the one that was not used longest, if it is too long or if
    /// there is too much.
    #[must_use]
    pub fn next_victim(&self, now: u32, is_short: bool) -> Option<FileHash> {
        let (hash, used) = self.index.oldest()?;
        let max = self.max_size.load(Ordering::Relaxed);
        // What was used in memory is noted here only at the next review of memory, and what is idle
        // goes from there first.
        let idle = u64::from(now.saturating_sub(used));
        let is_idle = idle > self.inactive() + review_seconds(self.inactive()) + 1;
        let is_full = max > 0 && self.index.bytes() > max;
        (is_short || is_idle || is_full).then_some(hash)
    }

    /// Files in a part of the index from a place on, and the next place.
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

    /// Every file that is older was held against the purges up to this one: forgets those.
    pub fn forget_purges(&self, sequence: u64) {
        lock(&self.purges).forget_until(sequence);
    }

    /// The number below which every object is dead.
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

    /// Writes the head of its file; the pieces of the object follow it. False if it has none.
    #[must_use]
    pub fn encode(&self, seal: u64, out: &mut Vec<u8>) -> bool {
        let object = &self.object;
        let mut sums = Summer::default();
        if object.kind() == ObjectKind::Content {
            object.pieces().for_each(|piece| sums.add(piece));
        }
        let sums = sums.finish();
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
mod tests {
    use super::{DiskLookup, DiskTree, DiskTreeSettings};

    fn tree(levels: &[u8]) -> DiskTree {
        DiskTree::new(&DiskTreeSettings {
            root: (*b"/cache").into(),
            levels: levels.into(),
            max_size: 0,
            inactive: 600,
            min_free: 0,
        })
    }

    #[test]
    fn files_lie_where_nginx_would_put_them() {
        let hash = 0xb7f5_4b2d_f777_3722_d382_f480_9d65_029c;
        let name = "b7f54b2df7773722d382f4809d65029c";
        for (levels, inside) in [
            (&[][..], String::new()),
            (&[1, 2], "c/29".to_owned()),
            (&[2, 2], "9c/02".to_owned()),
            (&[1, 1, 2], "c/9/02".to_owned()),
        ] {
            let tree = tree(levels);
            let wanted = if inside.is_empty() {
                format!("/cache/{name}")
            } else {
                format!("/cache/{inside}/{name}")
            };
            assert_eq!(String::from_utf8(tree.path(hash)).unwrap(), wanted);
            let is = |name: &[u8]| tree.classify(inside.as_bytes(), name, false);
            assert_eq!(is(name.as_bytes()), DiskLookup::File(hash));
            assert_eq!(is(format!("{name}.0123456789abcdef").as_bytes()), DiskLookup::Temporary);
            assert_eq!(is(format!("{name}.0123456789abcde").as_bytes()), DiskLookup::Foreign);
            assert_eq!(is(format!("{name}x").as_bytes()), DiskLookup::Foreign);
            assert_eq!(is(b"bolide.journal"), DiskLookup::Foreign);
            assert_eq!(tree.classify(b"d", name.as_bytes(), false), DiskLookup::Foreign);
            assert_eq!(tree.directories(hash).len(), levels.len());
        }
        let tree = tree(&[1, 2]);
        assert_eq!(tree.classify(b"", b"c", true), DiskLookup::Directory);
        assert_eq!(tree.classify(b"c", b"29", true), DiskLookup::Directory);
        for (inside, name) in [("", "cc"), ("", "g"), ("c", "2"), ("c/29", "c"), ("c", "2G")] {
            assert_eq!(
                tree.classify(inside.as_bytes(), name.as_bytes(), true),
                DiskLookup::Foreign
            );
        }
    }
}
