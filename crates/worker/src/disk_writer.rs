//! The disk writer: opens the trees of the disk cache, writes, walks and evicts.
//!
//! ```text
//!   per tree:  closed ──open──▶ open ──walk──▶ whole
//!                                 │ ▲ a minute later, or after eviction
//!              a write fails      ▼ │
//!                                 off: hits continue, nothing is written, one log line
//! ```
//!
//! Owns the files and their names; the trees make the decisions. Each step is short, so that it
//! ends soon when told to. Easiest to break: the start number of purges must be in every journal
//! before it is used.

mod journals;
mod removals;
mod root_files;
mod walk;
mod write;

use std::sync::Arc;
use std::time::Duration;

use bolide_base::errno::reason;
use bolide_base::prng::Prng;
use bolide_base::{FileRef, Instant, Now};
use bolide_cache::Store;
use bolide_cache::disk::{DiskTree, review_seconds};
use bolide_conf::model::LogLevel;
use bolide_io::wake::Bell;
use bolide_io::{DirChange, FileFailure, Interest, Io, Readiness};

use crate::disk_lookup::drop_journal;
use removals::{Removals, is_missing};
use walk::{DiskWalkCheck, Walk};

/// How long a tree is left alone after a failed write.
const REST: Duration = Duration::from_secs(60);
/// The interval of regular work on trees.
const ROUND: Duration = Duration::from_secs(1);
/// The pause between two steps of a walk.
const BREATH: Duration = Duration::from_millis(2);
/// The most files evicted in one step.
const EVICTIONS: usize = 256;
/// Index slots in memory that are reviewed in one step.
const REVIEWED: usize = 512;

/// A tree, and the state of the work on it.
#[derive(Debug)]
struct Charge {
    tree: Arc<DiskTree>,
    walk: Option<Walk>,
    check: Option<DiskWalkCheck>,
    /// Writing resumes at this time.
    off_until: Option<Instant>,
    /// Whether the failure was logged.
    is_logged: bool,
    /// The journal that was read last, and how many bytes of it.
    journal: Option<FileRef>,
    read: u64,
    /// The lock that other processes with the same tree share.
    lock: Option<FileRef>,
    /// Other processes used the tree during the walk: their files are not known here.
    is_shared: bool,
    /// When the free space was last queried.
    asked: Option<Instant>,
    is_short: bool,
    /// What others delete there.
    removals: Removals,
    /// Another process evicts, and handles deletions.
    leaves_upkeep: bool,
    /// It was turned off when its root directory was missing.
    lacks_root: bool,
}

/// Whether a disk writer continues after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turned {
    /// It continues.
    On,
    /// It has finished its work.
    Over,
}

/// The disk writer, on any thread.
#[derive(Debug)]
pub struct DiskWriter<I> {
    io: I,
    store: Arc<Store>,
    prng: Prng,
    charges: Vec<Charge>,
    now: Now,
    /// The upper halves of numbers that this process counts purges with. Zero is that of purges
    /// before the start number, whichever process made them: a purge of everything follows them.
    own: Vec<u64>,
    /// The position of the review of objects in memory: shard, slot, start time in seconds.
    review: (usize, u32, u64),
    last_review: u64,
    notes: Vec<(LogLevel, String)>,
    buffer: Vec<u8>,
    ready: Vec<Readiness>,
    changes: Vec<DirChange>,
    /// The time of the next turn; none if only the bell starts one.
    until: Option<Instant>,
}

impl<I: Io> DiskWriter<I> {
    /// A disk writer for the trees of `store`.
    pub fn new(io: I, store: Arc<Store>, seed: u64) -> Self {
        Self {
            io,
            store,
            prng: Prng::new(seed),
            charges: Vec::new(),
            now: Now::default(),
            own: vec![0],
            review: (0, 0, 0),
            last_review: 0,
            notes: Vec::new(),
            buffer: Vec::new(),
            ready: Vec::new(),
            changes: Vec::new(),
            until: None,
        }
    }

    /// Lets `bell` wake it.
    pub fn attend(&mut self, bell: &Bell) {
        let watched = self.io.watch(bell.fd(), 0, Interest::Level);
        debug_assert!(watched, "a new epoll instance takes a descriptor");
    }

    /// One turn: waits for the bell or a deadline, then does a part of the work, or all of it if
    /// `is_over` returns true.
    pub fn turn(&mut self, bell: &Bell, is_over: impl Fn() -> bool) -> Turned {
        self.ready.clear();
        let now = self.io.wait(self.until, &mut self.ready);
        if !self.ready.is_empty() {
            self.io.drain(bell.fd());
        }
        if is_over() {
            self.finish(now);
            return Turned::Over;
        }
        self.until = self.step(now);
        Turned::On
    }

    /// Takes the messages for the error log.
    pub fn take_notes(&mut self) -> Vec<(LogLevel, String)> {
        std::mem::take(&mut self.notes)
    }

    /// Opens new trees and releases those that are not configured any more. The latter lose their
    /// journals, because later purges do not reach their files.
    pub fn settle(&mut self, now: Now) {
        self.now = now;
        let trees = self.store.disk().trees();
        let is_named = |charge: &Charge| trees.iter().any(|tree| Arc::ptr_eq(tree, &charge.tree));
        let (kept, mut left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.charges).into_iter().partition(is_named);
        self.charges = kept;
        left.iter_mut().for_each(|charge| charge.removals.end(&mut self.io));
        self.drop_left();
        let is_known = |tree: &Arc<DiskTree>| {
            self.charges.iter().any(|charge| Arc::ptr_eq(&charge.tree, tree))
        };
        let new: Vec<_> = trees.into_iter().filter(|tree| !is_known(tree)).collect();
        if !new.is_empty() {
            self.open(new);
        }
    }

    /// Removes the journals of released trees; retries in the next turn if that fails.
    fn drop_left(&mut self) {
        for tree in self.store.disk().left() {
            if drop_journal(&mut self.io, &tree).is_ok() {
                self.store.disk().end_left(&tree);
                let root = String::from_utf8_lossy(tree.root());
                let text = format!("cache \"{root}\" is not named any more, its files are void");
                self.notes.push((LogLevel::Notice, text));
            }
        }
    }

    /// Does a part of the work; returns when the next turn is due; none: on the bell.
    fn step(&mut self, now: Now) -> Option<Instant> {
        self.settle(now);
        let mut charges = std::mem::take(&mut self.charges);
        self.hear_changes(&mut charges);
        let mut next: Option<Instant> = None;
        let mut sooner = |at: Instant| next = Some(next.map_or(at, |known| known.min(at)));
        let leaves_upkeep = self.store.disk().leaves_upkeep();
        for charge in &mut charges {
            self.settle_upkeep(charge, leaves_upkeep);
            charge.come_back(&mut self.io, now.mono);
            if self.tend_removals(charge) {
                sooner(now.mono.after(BREATH));
            }
            if charge.is_paused() {
                sooner(now.mono.after(ROUND));
                continue;
            }
            self.tend_journal(charge);
            if charge.is_shared && charge.walk.is_none() && self.is_alone(charge) {
                (charge.is_shared, charge.walk) = (false, Some(Walk::new()));
            }
            if self.write_some(charge) {
                sooner(now.mono);
            }
            if self.evict_some(charge) || self.walk_some(charge) || self.check_some(charge) {
                sooner(now.mono.after(BREATH));
            }
            charge.off_until.into_iter().for_each(&mut sooner);
            sooner(now.mono.after(ROUND));
        }
        if !charges.is_empty() && !leaves_upkeep && self.review_some(&charges) {
            sooner(now.mono.after(BREATH));
        }
        self.charges = charges;
        if !self.store.disk().left().is_empty() {
            sooner(now.mono.after(ROUND));
        }
        next
    }

    /// Writes what is still queued, before the end.
    fn finish(&mut self, now: Now) {
        self.settle(now);
        let mut charges = std::mem::take(&mut self.charges);
        self.hear_changes(&mut charges);
        for charge in &mut charges {
            self.end_removals(charge);
            self.tend_journal(charge);
            while self.write_some(charge) {}
        }
        self.charges = charges;
    }

    fn seconds(&self) -> u32 {
        (self.now.mono.as_nanos() / 1_000_000_000) as u32
    }

    /// Stops writing to a tree: logs one line, and retries later.
    fn turn_off(&mut self, charge: &mut Charge, failure: FileFailure) {
        charge.tree.set_off(true);
        charge.off_until = Some(self.now.mono.after(REST));
        charge.lacks_root = is_missing(&mut self.io, charge.tree.root());
        if !std::mem::replace(&mut charge.is_logged, true) {
            let (call, why) = (failure.call, reason(failure.errno));
            let root = String::from_utf8_lossy(charge.tree.root());
            self.notes.push((
                LogLevel::Crit,
                format!("{call}() in cache \"{root}\" failed ({why}), not written for now"),
            ));
        }
    }

    /// Logs that the file of one object cannot be written.
    fn log_unstored(&mut self, path: &[u8], failure: FileFailure) {
        let (call, why) = (failure.call, reason(failure.errno));
        let path = String::from_utf8_lossy(path);
        let text = format!("{call}() \"{path}\" failed ({why}), the object is not kept");
        self.notes.push((LogLevel::Crit, text));
    }

    fn turn_on(&mut self, charge: &mut Charge) {
        charge.off_until = None;
        charge.tree.set_off(false);
    }

    /// Evicts files beyond the limits or unused for too long; returns whether there is more.
    fn evict_some(&mut self, charge: &mut Charge) -> bool {
        let tree = Arc::clone(&charge.tree);
        if !tree.is_open() || charge.leaves_upkeep {
            return false;
        }
        let is_due = charge.asked.is_none_or(|asked| self.now.mono >= asked.after(ROUND));
        if tree.min_free() > 0 && (is_due || charge.is_short) {
            charge.asked = Some(self.now.mono);
            let free = self.io.free_bytes(tree.root()).unwrap_or(u64::MAX);
            charge.is_short = free < tree.min_free();
        }
        let now = self.seconds();
        // The free space is queried again after a few evictions.
        let budget = if charge.is_short { EVICTIONS / 16 } else { EVICTIONS };
        for _ in 0..budget {
            let Some(hash) = tree.next_victim(now, charge.is_short) else { return false };
            self.unlink_own(&tree, hash);
        }
        true
    }

    /// Reviews objects in memory: their use counts for their files, and unused ones are evicted
    /// from both. Returns whether there is more.
    fn review_some(&mut self, charges: &[Charge]) -> bool {
        let now_s = self.now.unix_millis / 1000;
        let inactive = charges.iter().map(|charge| charge.tree.inactive()).min().unwrap_or(600);
        let every = review_seconds(inactive);
        let (part, place, began) = &mut self.review;
        if (*part, *place) == (0, 0) {
            if now_s.saturating_sub(self.last_review) < every && now_s >= self.last_review {
                return false;
            }
            *began = now_s;
        }
        let mono = (self.now.mono.as_nanos() / 1_000_000_000) as u32;
        let since = self.last_review;
        match self.store.review_stored((*part, *place), REVIEWED, (since, now_s), mono) {
            Some(next) => {
                (*part, *place) = next;
                true
            }
            None => {
                self.last_review = *began;
                (*part, *place) = (0, 0);
                false
            }
        }
    }
}

/// Runs a disk writer until `is_over` returns true; `log` writes its messages.
pub fn run<I: Io>(
    disk_writer: &mut DiskWriter<I>,
    bell: &Bell,
    is_over: impl Fn() -> bool,
    log: impl Fn(LogLevel, &str),
) {
    disk_writer.attend(bell);
    while disk_writer.turn(bell, &is_over) == Turned::On {
        for (level, text) in disk_writer.take_notes() {
            log(level, &text);
        }
    }
}

#[cfg(test)]
mod tests;
