//! What others delete from a tree: administrators who purge by deleting, and their tools.
//!
//! ```text
//!   a file ───────▶ event ──▶ not ours, and gone ──▶ its page is purged
//!   a directory ──▶ event ──▶ each file of the index is looked for ──▶ likewise
//!   the journal ──▶ everything is purged; a moment later the tree is begun anew
//! ```
//!
//! Each directory is watched from before its entries are read or its first file is written. Where
//! that fails, the files are looked for in turns. Easiest to break: an own unlink must be recorded
//! before its event is read, and the event of a file is only a hint: the file may be there again.

use std::collections::HashMap;
use std::mem::take;

use bolide_base::Instant;
use bolide_base::errno::{ENOENT, ENOTDIR, reason};
use bolide_cache::disk::{DiskLookup, DiskTree, JOURNAL};
use bolide_cache::{purge_emptied, purge_removed};
use bolide_conf::model::LogLevel;
use bolide_io::{DirChange, DirDepth, Io};

use super::root_files::{journal_at, open_lock};
use super::{Charge, DiskWriter, ROUND};

/// The token of events of directories.
const TOKEN: u64 = 1;
/// LIMIT: directories of one tree that are watched; the files of others are looked for.
const WATCHES_MAX: usize = 16 * 1024;
/// Files that are looked for in one step.
const SOUGHT: usize = 1024;
/// The rounds in which each file of an unwatched tree is looked for once.
const ROUNDS: usize = 64;
/// How long an emptied directory is left alone, so that `rm -rf` can finish.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(500);
/// The pause between two comparisons of memory with deleted files.
const BETWEEN: std::time::Duration = std::time::Duration::from_millis(250);

/// Whether a directory was just made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MadeAnew {
    Yes,
    No,
}

/// The watches of a tree, and what was found deleted.
#[derive(Debug, Default)]
pub(super) struct Removals {
    /// The directories below the root by watch, and the other way round.
    directories: HashMap<u32, Vec<u8>>,
    watches: HashMap<Vec<u8>, u32>,
    /// Some directories are not watched.
    is_partly_blind: bool,
    is_told_blind: bool,
    /// Files that others have deleted.
    lost: Vec<u128>,
    /// The place in the index of a search for files.
    search: Option<(usize, usize)>,
    /// A search must follow this one.
    again: bool,
    /// What the search finds is purged already.
    is_emptied: bool,
    /// The next turn of looking for files in an unwatched tree.
    next_look: Option<Instant>,
    look_at: (usize, usize),
    /// Others have emptied the tree: it rests until then.
    pause: Option<Instant>,
    next_purge: Option<Instant>,
    /// Files that are not yet in the log, and when it was last written.
    unlogged: usize,
    logged_at: Option<Instant>,
}

impl Removals {
    /// As where no directory can be watched.
    #[cfg(test)]
    pub(super) fn go_blind(&mut self) {
        (self.is_partly_blind, self.next_look) = (true, None);
    }

    fn search(&mut self) {
        self.again |= self.search.is_some();
        self.search.get_or_insert((0, 0));
    }

    /// Forgets the watch of a directory and of those below it; returns their watches.
    fn forget(&mut self, inside: &[u8]) -> Vec<u32> {
        let is_below = |other: &[u8]| {
            let rest = other.strip_prefix(inside);
            rest.is_some_and(|rest| inside.is_empty() || rest.is_empty() || rest[0] == b'/')
        };
        let watches: Vec<_> = self
            .directories
            .extract_if(|_, other| is_below(other))
            .map(|(watch, _)| watch)
            .collect();
        self.watches.retain(|other, _| !is_below(other));
        watches
    }

    /// Ends the watches: the tree is not used any more.
    pub(super) fn end(&mut self, io: &mut impl Io) {
        self.forget(b"").into_iter().for_each(|watch| io.unwatch_directory(watch));
    }
}

impl Charge {
    /// Resumes writing to a tree whose root directory was made again.
    pub(super) fn come_back(&mut self, io: &mut impl Io, now: Instant) {
        if self.lacks_root && !is_missing(io, self.tree.root()) {
            self.lacks_root = false;
            self.off_until = self.off_until.map(|until| until.min(now));
        }
    }

    /// The line about deleted files, once a second at most.
    fn lost_line(&mut self, now: Instant) -> Option<String> {
        let removals = &mut self.removals;
        let is_due = removals.logged_at.is_none_or(|logged_at| now >= logged_at.after(ROUND));
        if removals.unlogged == 0 || !is_due {
            return None;
        }
        removals.logged_at = Some(now);
        let (count, root) = (take(&mut removals.unlogged), self.tree.root());
        let root = String::from_utf8_lossy(root);
        let files = if count == 1 { "1 file" } else { &format!("{count} files") };
        Some(format!("{files} of cache \"{root}\" deleted from outside, purged"))
    }

    /// Whether others have just emptied the tree.
    pub(super) const fn is_paused(&self) -> bool {
        self.removals.pause.is_some()
    }
}

impl<I: Io> DiskWriter<I> {
    /// Removes a file of a tree for this process's own reasons.
    pub(super) fn unlink_own(&mut self, tree: &DiskTree, hash: u128) {
        tree.unlink(hash, |path| self.io.unlink(path));
    }

    /// Watches a directory below the root of a tree.
    pub(super) fn watch(&mut self, charge: &mut Charge, inside: &[u8], made: MadeAnew) {
        let removals = &mut charge.removals;
        if made == MadeAnew::No && removals.watches.contains_key(inside) {
            return;
        }
        let path = match inside {
            b"" => charge.tree.root().to_vec(),
            _ => charge.tree.own_file(inside),
        };
        let watched = match removals.watches.len() >= WATCHES_MAX {
            false => self.io.watch_directory(&path, DirDepth::Losses, TOKEN),
            true => Err(0),
        };
        match watched {
            Ok(watch) => {
                removals.directories.insert(watch, inside.to_vec());
                removals.watches.insert(inside.to_vec(), watch);
                debug_assert!(removals.watches.len() <= WATCHES_MAX, "watches are bounded");
            }
            Err(ENOENT) => {}
            Err(errno) => {
                removals.is_partly_blind = true;
                if errno != 0 && !std::mem::replace(&mut removals.is_told_blind, true) {
                    let root = String::from_utf8_lossy(charge.tree.root());
                    let text = format!(
                        "directories of cache \"{root}\" cannot be watched ({}), deleted files \
                         are noticed late",
                        reason(errno)
                    );
                    self.notes.push((LogLevel::Notice, text));
                }
            }
        }
    }

    /// Watches the directories above a file.
    pub(super) fn watch_way(&mut self, charge: &mut Charge, hash: u128, made: MadeAnew) {
        let path = charge.tree.path(hash);
        let inside = inside_of(&charge.tree, &path);
        if made == MadeAnew::No && charge.removals.watches.contains_key(inside) {
            return;
        }
        self.watch(charge, b"", made);
        let ends = (0..inside.len()).filter(|at| inside[*at] == b'/').chain([inside.len()]);
        ends.filter(|end| *end > 0).for_each(|end| self.watch(charge, &inside[..end], made));
    }

    /// Leaves the upkeep of a tree to another process, or takes it over: files may have been
    /// deleted meanwhile.
    pub(super) fn settle_upkeep(&mut self, charge: &mut Charge, leaves: bool) {
        if std::mem::replace(&mut charge.leaves_upkeep, leaves) && !leaves {
            self.lose_unknown(charge);
        }
    }

    /// Reads what has happened in the directories.
    pub(super) fn hear_changes(&mut self, charges: &mut [Charge]) {
        let mut changes = take(&mut self.changes);
        self.io.take_changes(&mut changes);
        for change in changes.drain(..) {
            let watch = match &change {
                DirChange::Unknown => {
                    for charge in charges.iter_mut() {
                        charge.tree.forget_unlinks();
                        self.lose_unknown(charge);
                    }
                    continue;
                }
                DirChange::Entry { watch, .. } | DirChange::Gone { watch } => *watch,
            };
            let known = |charge: &&mut Charge| charge.removals.directories.contains_key(&watch);
            let Some(charge) = charges.iter_mut().find(known) else { continue };
            match change {
                DirChange::Entry { name, .. } => self.lose_entry(charge, watch, &name),
                DirChange::Gone { .. } | DirChange::Unknown => self.lose_directory(charge, watch),
            }
        }
        self.changes = changes;
    }

    /// A directory has lost a name.
    fn lose_entry(&mut self, charge: &mut Charge, watch: u32, name: &[u8]) {
        let Some(inside) = charge.removals.directories.get(&watch) else { return };
        if inside.is_empty() && name == JOURNAL {
            // Where another process has made a new one, that is followed.
            let is_own = charge.tree.lacks_journal();
            if !is_own && journal_at(&mut self.io, &charge.tree).is_none() {
                self.lose_all(charge);
            }
            return;
        }
        let DiskLookup::File(hash) = charge.tree.classify(inside, name, false) else { return };
        let is_own = charge.tree.take_unlink(hash);
        if !is_own && is_missing(&mut self.io, &charge.tree.path(hash)) {
            lose_file(charge, hash);
        }
    }

    /// A directory is gone, or has moved.
    fn lose_directory(&mut self, charge: &mut Charge, watch: u32) {
        let Some(inside) = charge.removals.directories.get(&watch).cloned() else { return };
        if charge.removals.watches.get(&inside) != Some(&watch) {
            // It was made again and is watched under another number.
            charge.removals.directories.remove(&watch);
            return;
        }
        for watch in charge.removals.forget(&inside) {
            self.io.unwatch_directory(watch);
        }
        if !is_missing(&mut self.io, &charge.tree.own_file(&inside)) {
            self.watch(charge, &inside, MadeAnew::No);
        }
        match inside.is_empty() {
            true => self.lose_all(charge),
            false => self.lose_unknown(charge),
        }
    }

    /// Files may be gone, it is not known which.
    fn lose_unknown(&mut self, charge: &mut Charge) {
        if charge.tree.is_walked() {
            charge.removals.search();
        } else if charge.tree.is_open() {
            self.lose_all(charge);
        }
    }

    /// Others have deleted the journal, or more than can be read: purges everything.
    pub(super) fn lose_all(&mut self, charge: &mut Charge) {
        if charge.is_paused() {
            return;
        }
        debug_assert!(charge.tree.is_open(), "only an open tree has files");
        purge_emptied(&self.store, &charge.tree);
        let removals = &mut charge.removals;
        removals.pause = Some(self.now.mono.after(PAUSE));
        removals.unlogged += take(&mut removals.lost).len();
        removals.is_emptied = true;
        removals.search();
        let root = String::from_utf8_lossy(charge.tree.root());
        let text = format!("cache \"{root}\" was emptied from outside, all of it is purged");
        self.notes.push((LogLevel::Notice, text));
    }

    /// Purges what others have deleted, and looks for more; returns whether that goes on soon.
    pub(super) fn tend_removals(&mut self, charge: &mut Charge) -> bool {
        if charge.removals.pause.is_some_and(|until| self.now.mono >= until) {
            self.begin_anew(charge);
        }
        if !charge.removals.watches.contains_key(&b""[..]) && charge.tree.is_open() {
            self.watch(charge, b"", MadeAnew::No);
        }
        self.look_for(charge);
        let removals = &mut charge.removals;
        let is_due = removals.next_purge.is_none_or(|next| self.now.mono >= next);
        if !removals.lost.is_empty() && is_due {
            removals.next_purge = Some(self.now.mono.after(BETWEEN));
            let mut lost = take(&mut removals.lost);
            let kin = purge_removed(&self.store, &charge.tree, &mut lost);
            charge.removals.unlogged += lost.len();
            kin.into_iter().for_each(|hash| self.unlink_own(&charge.tree, hash));
        }
        let line = charge.lost_line(self.now.mono);
        self.notes.extend(line.map(|line| (LogLevel::Notice, line)));
        let removals = &charge.removals;
        removals.search.is_some() || removals.pause.is_some() || !removals.lost.is_empty()
    }

    /// Purges what is known to be deleted, before the end.
    pub(super) fn end_removals(&mut self, charge: &mut Charge) {
        charge.removals.next_purge = None;
        charge.removals.search = None;
        charge.removals.pause = charge.removals.pause.map(|until| until.min(self.now.mono));
        let _ = self.tend_removals(charge);
    }

    /// Uses an emptied tree again.
    fn begin_anew(&mut self, charge: &mut Charge) {
        charge.removals.pause = None;
        match (journal_at(&mut self.io, &charge.tree), charge.tree.journal_file()) {
            (Some(file), Some(old)) => charge.tree.follow_journal(&old, file),
            _ => {
                charge.tree.give_up_journal();
                self.renew_journal(charge, 0);
            }
        }
        charge.lock = open_lock(&mut self.io, &charge.tree).ok();
    }

    /// Looks for files of the index after a directory was lost, and in turns where directories are
    /// not watched.
    fn look_for(&mut self, charge: &mut Charge) {
        if let Some(at) = charge.removals.search {
            let next = self.seek(charge, at, SOUGHT);
            let removals = &mut charge.removals;
            removals.search = next.or_else(|| take(&mut removals.again).then_some((0, 0)));
            removals.is_emptied &= removals.search.is_some();
        }
        let removals = &mut charge.removals;
        if !removals.is_partly_blind || removals.next_look.is_some_and(|at| self.now.mono < at) {
            return;
        }
        removals.next_look = Some(self.now.mono.after(ROUND));
        let (at, files) = (removals.look_at, charge.tree.files() as usize);
        let next = self.seek(charge, at, SOUGHT.max(files / ROUNDS));
        charge.removals.look_at = next.unwrap_or_default();
    }

    /// Looks for some files of the index, beginning at a place; returns the next place.
    fn seek(
        &mut self,
        charge: &mut Charge,
        at: (usize, usize),
        count: usize,
    ) -> Option<(usize, usize)> {
        debug_assert!(count > 0, "each look makes progress");
        let (mut hashes, mut next) = (Vec::new(), Some(at));
        while let Some(at) = next
            && hashes.len() < count
        {
            next = charge.tree.list(at, count - hashes.len(), &mut hashes);
        }
        for hash in hashes {
            let path = charge.tree.path(hash);
            if is_missing(&mut self.io, &path) && charge.tree.knows(hash) {
                lose_file(charge, hash);
            }
        }
        next
    }
}

/// Whether a path leads to nothing.
pub(super) fn is_missing(io: &mut impl Io, path: &[u8]) -> bool {
    let found = io.stat_link(path);
    found.is_err_and(|failure| matches!(failure.errno, ENOENT | ENOTDIR))
}

/// Others have deleted a file. It purges nothing where another process handles deletions: some of
/// them are that process's evictions.
fn lose_file(charge: &mut Charge, hash: u128) {
    charge.tree.forget(hash);
    match charge.removals.is_emptied || charge.is_paused() {
        _ if charge.leaves_upkeep => {}
        true => charge.removals.unlogged += 1,
        false => charge.removals.lost.push(hash),
    }
}

/// The directory of a file of a tree, below the root.
fn inside_of<'a>(tree: &DiskTree, path: &'a [u8]) -> &'a [u8] {
    debug_assert!(path.starts_with(tree.root()), "a file of a tree is below its root");
    let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    path.get(tree.root().len() + 1..end).unwrap_or_default()
}
