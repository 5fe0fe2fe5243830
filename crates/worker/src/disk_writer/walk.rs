//! Walks over a tree: finds its files, and removes purged ones.

use std::sync::Arc;

use bolide_cache::disk::{DiskLookup, Unfit};
use bolide_io::{Entries, Io, OpenRequest, SymlinkRule};

use super::removals::MadeAnew;
use super::{Charge, DiskWriter};
use crate::disk_lookup::read_head;

/// Entries of directories in one step.
const ENTRIES: usize = 512;
/// Directories opened in one step.
const DIRECTORIES: usize = 64;
/// Files whose heads are read in one step.
const CHECKED: usize = 64;
/// Seconds after which an incomplete file is removed.
const UNFINISHED: i64 = 60;
/// Purges that are always kept.
const PURGES: usize = 4096;

/// A walk over all files of a tree.
#[derive(Debug)]
pub(super) struct Walk {
    /// Open directories: their names below the root, and their remaining entries.
    open: Vec<(Vec<u8>, Entries)>,
    /// Directories that are not opened yet.
    waiting: Vec<Vec<u8>>,
}

impl Walk {
    pub(super) fn new() -> Self {
        Self { open: Vec::new(), waiting: vec![Vec::new()] }
    }
}

/// A check of the head of every file, after which old purges are dropped.
#[derive(Debug)]
pub(super) struct DiskWalkCheck {
    at: (usize, usize),
    /// Files with smaller numbers are checked against the purges.
    cutoff: u64,
}

impl<I: Io> DiskWriter<I> {
    /// Continues the walk; returns whether there is more.
    pub(super) fn walk_some(&mut self, charge: &mut Charge) -> bool {
        let Some(mut walk) = charge.walk.take() else { return false };
        let mut found = Vec::new();
        for _ in 0..DIRECTORIES {
            if walk.open.is_empty() {
                let Some(inside) = walk.waiting.pop() else {
                    charge.tree.end_walk();
                    charge.is_shared = charge.lock.is_some() && !self.is_alone(charge);
                    return false;
                };
                let path = charge.tree.own_file(&inside);
                // Before its entries are read: what is deleted afterwards is told.
                self.watch(charge, &inside, MadeAnew::No);
                if let Ok(entries) = self.io.entries(&path) {
                    walk.open.push((inside, entries));
                }
                continue;
            }
            let Some((inside, mut entries)) = walk.open.pop() else { continue };
            found.clear();
            let has_more = entries.take(ENTRIES, &mut found).unwrap_or(false);
            for (name, stat) in &found {
                self.look(charge, &mut walk, &inside, name, stat);
            }
            let is_much = found.len() >= ENTRIES / 2;
            if has_more {
                walk.open.push((inside, entries));
            }
            if is_much {
                break;
            }
        }
        charge.walk = Some(walk);
        true
    }

    fn look(
        &mut self,
        charge: &Charge,
        walk: &mut Walk,
        inside: &[u8],
        name: &[u8],
        stat: &bolide_io::Stat,
    ) {
        let below = |name: &[u8]| match inside {
            b"" => name.to_vec(),
            _ => [inside, b"/", name].concat(),
        };
        if !stat.is_dir && !stat.is_regular {
            return;
        }
        let seconds = self.seconds();
        match charge.tree.classify(inside, name, stat.is_dir) {
            DiskLookup::Directory => walk.waiting.push(below(name)),
            DiskLookup::File(hash) => charge.tree.record_found(hash, stat.size, seconds),
            DiskLookup::Temporary => {
                let now = i64::try_from(self.now.unix_millis / 1000).unwrap_or(i64::MAX);
                if now.saturating_sub(stat.mtime_seconds) > UNFINISHED {
                    let _ = self.io.unlink(&charge.tree.own_file(&below(name)));
                }
            }
            DiskLookup::Foreign => {}
        }
    }

    /// Checks more heads, if a check is in progress; returns whether there is more.
    pub(super) fn check_some(&mut self, charge: &mut Charge) -> bool {
        let tree = Arc::clone(&charge.tree);
        let Some(mut check) = charge.check.take() else {
            let bound = PURGES.max(tree.files() as usize / 8);
            if charge.walk.is_none() && tree.purges() > bound && self.is_alone(charge) {
                let queued = tree.queued_floor().unwrap_or(u64::MAX);
                let cutoff = self.store.floor().min(queued);
                charge.check = Some(DiskWalkCheck { at: (0, 0), cutoff });
                return true;
            }
            return false;
        };
        let mut hashes = Vec::new();
        let next = tree.list(check.at, CHECKED, &mut hashes);
        for hash in hashes {
            self.check(charge, hash);
        }
        match next {
            Some(next) => {
                check.at = next;
                charge.check = Some(check);
                true
            }
            None => {
                tree.forget_purges(check.cutoff);
                self.shorten_journal(charge, check.cutoff);
                false
            }
        }
    }

    fn check(&mut self, charge: &Charge, hash: u128) {
        let path = charge.tree.path(hash);
        let request = OpenRequest {
            path: &path,
            symlinks: SymlinkRule::Follow,
            content_max: 0,
            stat_only: false,
        };
        let file = match self.io.open(&request) {
            Ok(opened) => opened.file,
            Err(_) => return charge.tree.forget(hash),
        };
        let Some(file) = file else { return };
        let head = read_head(&mut self.io, &file);
        let judged = head.as_deref().map_or(Err(Unfit::Dead), |head| {
            charge.tree.judge(head, None, self.now.unix_millis).map(drop)
        });
        if judged.is_err() {
            self.unlink_own(&charge.tree, hash);
        }
    }
}
