//! The thread that looks after the trees of the cache: opens, writes, walks, evicts, tidies up.
//!
//! ```text
//!   per tree:  closed ──open──▶ open ──walk──▶ whole
//!                                 │ ▲ a minute later, or room was made
//!              cannot be written  ▼ │
//!                                 off: hits go on, nothing is written, one line in the log
//! ```
//! Owns files and their names, decides nothing: trees say what is to be done. Each step is small,
//! so that an order to end is heard. Easiest to break: a number that purges are counted by must
//! stand in every journal before it is used.

mod journals;
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
use bolide_io::{FileFailure, Interest, Io, Readiness};

use crate::disk_lookup::drop_journal;
use walk::{DiskWalkCheck, Walk};

/// How long a tree that could not be written is left alone.
const REST: Duration = Duration::from_secs(60);
/// How often trees are looked at without a call.
const ROUND: Duration = Duration::from_secs(1);
/// The pause between two steps of a walk.
const BREATH: Duration = Duration::from_millis(2);
/// Files that go in one step at most.
const EVICTIONS: usize = 256;
/// Places of memory that are looked at in one step.
const REVIEWED: usize = 512;

/// A tree and how far its work is.
#[derive(Debug)]
struct Charge {
    tree: Arc<DiskTree>,
    walk: Option<Walk>,
    check: Option<DiskWalkCheck>,
    /// Written again from then on.
    off_until: Option<Instant>,
    /// What is off was told.
    is_told: bool,
    /// The journal that was read last, and how many bytes of it.
    heard: Option<FileRef>,
    read: u64,
    /// Locked together with other processes that use the tree.
    lock: Option<FileRef>,
    /// Others used it during the walk: what they write is not known here.
    is_shared: bool,
    /// When the free room was asked for.
    asked: Option<Instant>,
    is_short: bool,
}

/// Whether a disk writer goes on after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turned {
    /// It does.
    On,
    /// It has done what was left.
    Over,
}

/// The disk writer, whatever thread it is on.
#[derive(Debug)]
pub struct DiskWriter<I> {
    io: I,
    store: Arc<Store>,
    prng: Prng,
    charges: Vec<Charge>,
    now: Now,
    /// Numbers that this process has begun to count at, their upper halves.
    own: Vec<u64>,
    /// Where the review of what is in memory is: part, place, when it began (seconds).
    review: (usize, u32, u64),
    last_review: u64,
    notes: Vec<(LogLevel, String)>,
    buffer: Vec<u8>,
    ready: Vec<Readiness>,
    /// When the next turn is due; none if only a call leads to one.
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
            own: Vec::new(),
            review: (0, 0, 0),
            last_review: 0,
            notes: Vec::new(),
            buffer: Vec::new(),
            ready: Vec::new(),
            until: None,
        }
    }

    /// Has `bell` wake it.
    pub fn attend(&mut self, bell: &Bell) {
        let watched = self.io.watch(bell.fd(), 0, Interest::Level);
        debug_assert!(watched, "a new epoll instance takes a descriptor");
    }

    /// One turn: sleeps until it is called or something is due, then works a little, or does what
    /// is left if `is_over` says so.
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

    /// Lines for the error log, to be written.
    pub fn take_notes(&mut self) -> Vec<(LogLevel, String)> {
        std::mem::take(&mut self.notes)
    }

    /// Opens the trees that are new and lets go of those that are not named any more. Those lose
    /// their journals: what is purged from now on does not reach their files.
    pub fn settle(&mut self, now: Now) {
        self.now = now;
        let trees = self.store.disk().trees();
        self.charges.retain(|charge| trees.iter().any(|tree| Arc::ptr_eq(tree, &charge.tree)));
        self.drop_left();
        let is_known = |tree: &Arc<DiskTree>| {
            self.charges.iter().any(|charge| Arc::ptr_eq(&charge.tree, tree))
        };
        let new: Vec<_> = trees.into_iter().filter(|tree| !is_known(tree)).collect();
        if !new.is_empty() {
            self.open(new);
        }
    }

    /// Removes the journals of trees that were left; tries again in the next turn if that fails.
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

    /// A small part of the work: when the next one is due; none if only a call leads to more.
    fn step(&mut self, now: Now) -> Option<Instant> {
        self.settle(now);
        let mut charges = std::mem::take(&mut self.charges);
        let mut next: Option<Instant> = None;
        let mut sooner = |at: Instant| next = Some(next.map_or(at, |known| known.min(at)));
        for charge in &mut charges {
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
        if !charges.is_empty() && self.review_some(&charges) {
            sooner(now.mono.after(BREATH));
        }
        self.charges = charges;
        if !self.store.disk().left().is_empty() {
            sooner(now.mono.after(ROUND));
        }
        next
    }

    /// Writes what waits to be written, before the end.
    fn finish(&mut self, now: Now) {
        self.settle(now);
        let mut charges = std::mem::take(&mut self.charges);
        for charge in &mut charges {
            self.tend_journal(charge);
            while self.write_some(charge) {}
        }
        self.charges = charges;
    }

    fn seconds(&self) -> u32 {
        (self.now.mono.as_nanos() / 1_000_000_000) as u32
    }

    /// A tree cannot be written: one line, and another try later.
    fn turn_off(&mut self, charge: &mut Charge, failure: FileFailure) {
        charge.tree.set_off(true);
        charge.off_until = Some(self.now.mono.after(REST));
        if !std::mem::replace(&mut charge.is_told, true) {
            let (call, why) = (failure.call, reason(failure.errno));
            let root = String::from_utf8_lossy(charge.tree.root());
            self.notes.push((
                LogLevel::Crit,
                format!("{call}() in cache \"{root}\" failed ({why}), not written for now"),
            ));
        }
    }

    /// The file of one object cannot be written: one line.
    fn tell_one(&mut self, path: &[u8], failure: FileFailure) {
        let (call, why) = (failure.call, reason(failure.errno));
        let path = String::from_utf8_lossy(path);
        let text = format!("{call}() \"{path}\" failed ({why}), the object is not kept");
        self.notes.push((LogLevel::Crit, text));
    }

    fn turn_on(&mut self, charge: &mut Charge) {
        charge.off_until = None;
        charge.tree.set_off(false);
    }

    /// Takes away what is too much or was not used for too long; whether there is more.
    fn evict_some(&mut self, charge: &mut Charge) -> bool {
        let tree = Arc::clone(&charge.tree);
        if !tree.is_open() {
            return false;
        }
        let is_due = charge.asked.is_none_or(|asked| self.now.mono >= asked.after(ROUND));
        if tree.min_free() > 0 && (is_due || charge.is_short) {
            charge.asked = Some(self.now.mono);
            let free = self.io.free_bytes(tree.root()).unwrap_or(u64::MAX);
            charge.is_short = free < tree.min_free();
        }
        let now = self.seconds();
        // What is short is asked for again after a few.
        let budget = if charge.is_short { EVICTIONS / 16 } else { EVICTIONS };
        for _ in 0..budget {
            let Some(hash) = tree.next_victim(now, charge.is_short) else { return false };
            tree.note_gone(hash);
            let _ = self.io.unlink(&tree.path(hash));
        }
        true
    }

    /// Looks at what is in memory: what was used there was used on its tree, and what was not used
    /// for too long goes from both. Whether there is more.
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

/// Runs a disk writer until `is_over` says so; `log` writes its lines.
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
