//! The open-file table of one worker: cached lookup results, their validity, and eviction.
//!
//! Owns freshness and bounds. An entry younger than `valid` answers from memory. An older one is
//! checked again, and stays with its compressed forms if nothing has changed. Failures hold only
//! until the end of the turn unless the policy says otherwise. The result of a probe holds at least
//! for its own turn, so that a lookup after a probe never loops.
//!
//! ```text
//!            insert                    age ≥ valid
//!   Unknown ───────▶ File/Seen/Missing ───────────▶ Stale ── insert: same ──▶ kept, checked now
//!      ▲                  │                           └───── insert: other ──▶ replaced
//!      └──────────────────┴── eviction (CLOCK), sweep of the unused
//! ```
//!
//! The rule that is easiest to break: a file that changed within the clock's granularity before it
//! was read may change again without changing its times, so such an entry never counts as
//! unchanged.

mod doubts;
mod entry;
mod inserting;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use bolide_base::{Instant, Now, limits};

use crate::encode::EncodeError;
use crate::hash::Seeded;
use crate::lapses::{LapseMark, Lapses};
use crate::open::{DirEntry, FileBody, Meta, OpenFile};
use crate::probe::{Probe, ProbePolicy, Probed, SymlinkPolicy, Trust, Want};
use crate::real::RealPaths;
use crate::variant::{CompressJob, FileVariant, VariantKey, VariantRing};
use crate::watches::Watches;
use crate::{OpenFailure, resolve};
use entry::{FailedLook, FileEntry, State};

/// Bounds of a [`FileTable`].
#[derive(Clone, Copy, Debug)]
pub struct FileTableLimits {
    /// Paths remembered.
    pub entries: usize,
    /// Descriptors kept open.
    pub open: usize,
    /// Bytes of contents in memory.
    pub content: u64,
    /// Bytes of compressed forms in memory.
    pub variants: u64,
}

impl Default for FileTableLimits {
    fn default() -> Self {
        Self {
            entries: limits::FILES_KNOWN_MAX,
            open: limits::FILES_OPEN_MAX,
            content: limits::FILES_CONTENT_MAX,
            variants: limits::VARIANTS_SIZE_MAX,
        }
    }
}

/// The table's knowledge of a path.
#[derive(Clone, Debug)]
pub enum Known {
    /// An open regular file.
    File(Rc<OpenFile>),
    /// A directory.
    Directory(Meta),
    /// A special file, or a regular one that was only looked up for its meta.
    Seen(Meta),
    /// It cannot be had.
    Missing(OpenFailure),
    /// It is there, but cannot be opened.
    Closed(Meta, OpenFailure),
    /// Too old to rely on: probe.
    Stale,
    /// Not known: probe it.
    Unknown,
}

/// Capacity of the turn's own maps above which their memory is released.
const TURN_KEPT: usize = 1024;

/// The entries of a directory, or why they are unknown.
pub type Listed = Result<Arc<Vec<DirEntry>>, OpenFailure>;

/// Results that hold only until the end of the turn.
#[derive(Debug)]
struct Turn {
    at: Instant,
    missing: HashMap<Rc<[u8]>, (SymlinkPolicy, FailedLook), Seeded>,
    listings: HashMap<Rc<[u8]>, Listed, Seeded>,
}

impl Turn {
    fn begin(&mut self, at: Instant) {
        if self.at != at {
            self.at = at;
            self.missing.clear();
            self.listings.clear();
            if self.missing.capacity() > TURN_KEPT {
                self.missing.shrink_to(TURN_KEPT);
            }
        }
    }
}

/// The open-file table of one worker.
#[derive(Debug)]
pub struct FileTable {
    limits: FileTableLimits,
    index: HashMap<Rc<[u8]>, u32, Seeded>,
    slots: Vec<Option<FileEntry>>,
    free: Vec<u32>,
    hand: usize,
    sweep_hand: usize,
    content: u64,
    open: usize,
    turn: Turn,
    /// Counts watched results that became invalid.
    lapses: Lapses,
    /// Counts the points in this turn at which requests may have arrived.
    part: u32,
    /// The watched directories.
    pub watches: Watches,
    ring: VariantRing,
    /// The real paths of directories.
    pub real: RealPaths,
}

impl FileTable {
    /// An empty table with the default limits; `seed` should be secret and differ between
    /// processes.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with_limits(FileTableLimits::default(), seed)
    }

    /// Keeps at most so many descriptors open, and those that responses use.
    pub fn bound_descriptors(&mut self, max: usize) {
        self.limits.open = self.limits.open.min(max);
    }

    /// An empty table within `limits`; `seed` as in [`Self::new`].
    #[must_use]
    pub fn with_limits(limits: FileTableLimits, seed: u64) -> Self {
        let hasher = Seeded::new(seed);
        Self {
            limits,
            index: HashMap::with_hasher(hasher),
            slots: Vec::new(),
            free: Vec::new(),
            hand: 0,
            sweep_hand: 0,
            content: 0,
            open: 0,
            turn: Turn {
                at: Instant::default(),
                missing: HashMap::with_hasher(hasher),
                listings: HashMap::with_hasher(hasher),
            },
            lapses: Lapses::new(hasher),
            part: 0,
            watches: Watches::new(seed),
            ring: VariantRing::new(limits.variants),
            real: RealPaths::default(),
        }
    }

    /// The table's result for `path`. After `Stale` or `Unknown`: [`Self::probe`].
    #[inline]
    pub fn lookup(&mut self, path: &[u8], now: Now, policy: &ProbePolicy) -> Known {
        let Some(&slot) = self.index.get(path) else { return self.missing_now(path, now, policy) };
        let Some(entry) = &mut self.slots[slot as usize] else { return Known::Unknown };
        if !entry.satisfies(policy.symlinks) {
            return self.missing_now(path, now, policy);
        }
        if now.mono.since(entry.used) > policy.inactive {
            entry.uses = 0;
        }
        entry.used = now.mono;
        entry.uses = entry.uses.saturating_add(1);
        entry.referenced = true;
        let is_fresh = now.mono.since(entry.checked) < policy.valid
            && entry.uses >= policy.min_uses
            && (entry.watched || policy.trust == Trust::Young)
            || entry.checked == now.mono && entry.part == self.part;
        if is_fresh { entry.known() } else { Known::Stale }
    }

    /// Requests may have arrived since the last lookups on disk: they need lookups of their own, as
    /// at the start of a turn.
    pub fn part_turn(&mut self) {
        self.part = self.part.wrapping_add(1);
        self.turn.at = Instant::default();
        self.real.part_turn();
    }

    /// How often a looked-up result changed or became unknown.
    #[inline]
    #[must_use]
    pub const fn lapses(&self) -> u64 {
        self.lapses.total()
    }

    /// A mark for [`Self::stands`].
    #[must_use]
    pub fn mark(&self, path: &[u8]) -> LapseMark {
        self.lapses.mark(path)
    }

    /// Whether no change of the path is known since it was marked.
    #[must_use]
    pub fn stands(&self, mark: LapseMark) -> bool {
        self.lapses.stands(mark)
    }

    /// Until when the result for `path` is valid if [`Self::lapses`] does not grow; `None` if each
    /// request needs a lookup of its own.
    #[must_use]
    pub fn vouched_until(&self, path: &[u8], policy: &ProbePolicy) -> Option<Instant> {
        let entry = self.entry(path)?;
        let is_vouched = entry.watched && entry.satisfies(policy.symlinks);
        is_vouched.then(|| entry.checked.after(policy.valid))
    }

    /// A failure of the current turn.
    fn missing_now(&self, path: &[u8], now: Now, policy: &ProbePolicy) -> Known {
        if self.turn.at != now.mono || self.turn.missing.is_empty() {
            return Known::Unknown;
        }
        match self.turn.missing.get(path) {
            Some((rule, refusal)) if answers(*rule, refusal.failure, policy.symlinks) => {
                refusal.known()
            }
            _ => Known::Unknown,
        }
    }

    /// The entries of a directory, or why they are unknown, if it was read in this turn.
    #[must_use]
    pub fn listing(&self, path: &[u8], now: Now) -> Option<Listed> {
        (self.turn.at == now.mono).then(|| self.turn.listings.get(path).cloned()).flatten()
    }

    /// The file lookup that `path` needs.
    #[must_use]
    pub fn probe(&self, path: &[u8], want: Want, policy: &ProbePolicy) -> Probe {
        let entry = self.entry(path);
        let known = match entry {
            Some(FileEntry { state: State::File(file), racy: false, .. }) => Some(file.meta),
            _ => None,
        };
        let path = entry.map_or_else(|| Rc::from(path), |entry| entry.path.clone());
        let known = if matches!(want, Want::Open { .. }) { known } else { None };
        Probe { path, want, known, policy: *policy }
    }

    /// Stores the result of a probe, as [`Self::insert_probe`] does, if the directories on its path
    /// were watched before: it is valid until a change is reported.
    pub fn insert_watched(&mut self, probe: &Probe, probed: Probed, now: Now) -> Known {
        let known = self.store(probe, probed, now);
        if let Some(&slot) = self.index.get(&probe.path)
            && let Some(entry) = &mut self.slots[slot as usize]
        {
            entry.watched = match &entry.state {
                State::File(file) => !file.meta.is_shared,
                State::Seen(meta) => !meta.is_shared,
                // inotify reports when an absent file is created.
                State::Refused(_) => true,
            };
        }
        known
    }

    /// Stores the result of a probe, and returns the table's result for its path.
    pub fn insert_probe(&mut self, probe: &Probe, probed: Probed, now: Now) -> Known {
        if self.entry(&probe.path).is_some_and(|entry| entry.watched) {
            self.lapses.note(&probe.path);
        }
        self.store(probe, probed, now)
    }

    fn store(&mut self, probe: &Probe, probed: Probed, now: Now) -> Known {
        self.turn.begin(now.mono);
        match probed {
            Probed::Unchanged => self.keep(probe, now),
            Probed::Content(meta, content) => {
                // The file changed while it was read: serve the bytes read; the next check finds
                // another size.
                let meta = Meta { size: content.len() as u64, ..meta };
                self.insert_file(probe, meta, FileBody::Memory(content), now)
            }
            Probed::Open(meta, file) => self.insert_file(probe, meta, FileBody::Disk(file), now),
            Probed::Seen(meta) => self.insert_seen(probe, meta, now),
            Probed::Listing(meta, names) => {
                self.turn.listings.insert(probe.path.clone(), Ok(Arc::new(names)));
                self.insert_seen(probe, meta, now)
            }
            // A directory that cannot be listed exists all the same.
            Probed::Failed(failure) if probe.want == Want::List && !failure.is_absence() => {
                self.turn.listings.insert(probe.path.clone(), Err(failure));
                Known::Missing(failure)
            }
            Probed::Failed(failure) => {
                if probe.want == Want::List {
                    self.turn.listings.insert(probe.path.clone(), Err(failure));
                }
                self.insert_failure(probe, FailedLook { failure, seen: None }, now)
            }
            Probed::Closed(meta, failure) => {
                self.insert_failure(probe, FailedLook { failure, seen: Some(meta) }, now)
            }
        }
    }

    /// Starts a compressed form; `None` unless it is absent and the content is in memory.
    pub fn begin_variant(&mut self, file: &Rc<OpenFile>, key: VariantKey) -> Option<CompressJob> {
        VariantRing::begin(file, key)
    }

    /// Stores the result of a job within the budget, and returns it.
    pub fn finish_job(
        &mut self,
        job: &CompressJob,
        output: Result<Vec<u8>, EncodeError>,
    ) -> FileVariant {
        self.ring.finish(job, output)
    }

    /// Drops entries unused for their `inactive` time, among the next `visits` places. Called about
    /// once a second.
    pub fn sweep(&mut self, now: Now, visits: usize) {
        for _ in 0..visits.min(self.slots.len()) {
            self.sweep_hand = (self.sweep_hand + 1) % self.slots.len();
            let slot = self.sweep_hand;
            let is_idle = |entry: &FileEntry| now.mono.since(entry.used) > entry.inactive;
            if self.slots[slot].as_ref().is_some_and(is_idle) {
                self.remove(slot);
            }
        }
    }

    /// Drops all entries; files in use stay open until their last user is done.
    pub fn clear(&mut self) {
        for slot in 0..self.slots.len() {
            self.remove(slot);
        }
        self.turn.missing.clear();
        self.turn.listings.clear();
    }

    /// Paths remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Charges `bytes` for data parsed from the file at `path` to the budget of contents.
    pub fn weigh_reading(&mut self, path: &[u8], file: &Rc<OpenFile>, bytes: u64, now: Now) {
        let before = file.reading_weight.get();
        if before == bytes {
            return;
        }
        let slot = self.index.get(path).and_then(|&slot| self.slots[slot as usize].as_ref());
        if slot.is_some_and(|entry| entry.state.is(&State::File(file.clone()))) {
            file.reading_weight.set(bytes);
            self.content = self.content - before + bytes;
            self.enforce(now);
        }
    }

    /// Bytes of contents in memory, with the data parsed from them.
    #[must_use]
    pub const fn content_size(&self) -> u64 {
        self.content
    }

    /// Descriptors that the table keeps open.
    #[must_use]
    pub const fn open_count(&self) -> usize {
        self.open
    }

    /// Bytes of compressed forms in memory.
    #[must_use]
    pub fn variants_size(&self) -> u64 {
        self.ring.used()
    }

    fn entry(&self, path: &[u8]) -> Option<&FileEntry> {
        self.slots[*self.index.get(path)? as usize].as_ref()
    }

    fn enforce(&mut self, now: Now) {
        while self.content > self.limits.content && self.evict(now, |entry| entry.content_len() > 0)
        {
        }
        while self.open > self.limits.open && self.evict(now, FileEntry::holds_descriptor) {}
    }

    /// Evicts one entry that `fits` and was not used since the hand last passed. Entries of this
    /// turn are spared: a request is about to use them. False if there is none.
    fn evict(&mut self, now: Now, fits: impl Fn(&FileEntry) -> bool) -> bool {
        for _ in 0..2 * self.slots.len() {
            self.hand = (self.hand + 1) % self.slots.len();
            let slot = self.hand;
            let Some(entry) = &mut self.slots[slot] else { continue };
            if entry.checked == now.mono || !fits(entry) {
                continue;
            }
            if entry.referenced {
                entry.referenced = false;
                continue;
            }
            self.remove(slot);
            return true;
        }
        false
    }

    fn remove(&mut self, slot: usize) {
        if let Some(entry) = self.take(slot).filter(|entry| entry.watched) {
            self.lapses.note(&entry.path);
        }
    }

    fn take(&mut self, slot: usize) -> Option<FileEntry> {
        let entry = self.slots[slot].take()?;
        self.content -= entry.content_len();
        self.open -= usize::from(entry.holds_descriptor());
        self.index.remove(&entry.path);
        self.free.push(slot as u32);
        Some(entry)
    }
}

/// Whether a failure under `rule` is one under `wanted`. A path without links that is absent under
/// one rule is absent under the other.
fn answers(rule: SymlinkPolicy, failure: OpenFailure, wanted: SymlinkPolicy) -> bool {
    let is_laxer = wanted == SymlinkPolicy::Follow && failure == OpenFailure::NotFound;
    rule == wanted || is_laxer
}

impl FileTable {
    /// What the table knows about the precompressed sibling of `file`; `path` is scratch.
    ///
    /// A missing sibling is `Missing` until the next check of `file`: record it with
    /// [`OpenFile::record_missing_sibling`].
    pub fn lookup_sibling(
        &mut self,
        file: &OpenFile,
        coding: bolide_http::negotiate::Coding,
        path: &mut Vec<u8>,
        now: Now,
        policy: &ProbePolicy,
    ) -> Known {
        if file.lacks_sibling(coding) {
            return Known::Missing(OpenFailure::NotFound);
        }
        resolve::sibling(path, &file.path, coding);
        self.lookup(path, now, policy)
    }
}

#[cfg(test)]
mod tests;
