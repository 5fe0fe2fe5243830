//! The journals of purges: opened and replayed at start-up, followed while other processes write,
//! and rewritten when necessary.

use std::sync::Arc;

use bolide_base::FileRef;
use bolide_base::errno::{EDQUOT, ENOENT, ENOSPC};
use bolide_cache::disk::journal::{self, Echo, HEAD, JournalEntry, JournalRead};
use bolide_cache::disk::{Begun, DiskTree, JOURNAL, Replay, everything};
use bolide_conf::model::LogLevel;
use bolide_io::{FileFailure, Io};

use super::removals::Removals;
use super::root_files::{journal_at, open_lock};
use super::walk::Walk;
use super::write::{OWNER_ALONE, make_directory};
use super::{Charge, DiskWriter};
use crate::disk_lookup::{flush, read_full};

/// Bytes of one read of a journal.
const READ: usize = 256 * 1024;
/// Steps of the walk over a tree before the first request.
const FIRST_STEPS: usize = 16;
/// Files that are evicted to make room for a journal.
const SACRIFICED: usize = 8;

/// A journal as it was found.
struct Opened {
    file: FileRef,
    seal: u64,
    replay: Replay,
    size: u64,
    lock: Option<FileRef>,
}

/// A new journal in progress: it has the content of the old one up to a position, and was synced.
pub(super) struct JournalDraft {
    file: FileRef,
    path: Vec<u8>,
    size: u64,
    /// The old journal, and how many bytes of it are copied.
    old: Option<FileRef>,
    read: u64,
}

impl<I: Io> DiskWriter<I> {
    /// Opens trees. All journals, old and new, get the start number of this process before use.
    pub(super) fn open(&mut self, trees: Vec<Arc<DiskTree>>) {
        // Earlier purges of this process apply to them as well.
        let are_late = self.store.disk().has_purged();
        let mut opened = Vec::new();
        trees.iter().filter(|_| are_late).for_each(|tree| tree.assume_missed_purges());
        for tree in trees {
            match self.open_journal(&tree) {
                Ok(found) => opened.push((tree, Some(found))),
                Err(failure) => {
                    let mut charge = charge(Arc::clone(&tree), None, 0, None);
                    self.turn_off(&mut charge, failure);
                    self.charges.push(charge);
                }
            }
        }
        let last = opened.iter().filter_map(|(_, found)| found.as_ref()).map(|f| f.replay.last());
        let start = self.store.next_start(last.max().unwrap_or(0));
        self.own.push(start >> 32);
        let unix_ms = self.now.unix_millis;
        for charge in &self.charges {
            charge.tree.note(&JournalEntry::Start(start), unix_ms);
        }
        for (tree, found) in opened {
            let Some(Opened { file, seal, replay, size, lock }) = found else { continue };
            let journal = Some(file.clone());
            tree.open(file, seal, replay);
            tree.note(&JournalEntry::Start(start), unix_ms);
            self.charges.push(charge(tree, journal, size, lock));
        }
        let mut charges = std::mem::take(&mut self.charges);
        for charge in &mut charges {
            self.sync_start_number(charge);
        }
        self.store.begin_at(start);
        charges.iter_mut().for_each(|charge| self.begin(charge, start));
        self.charges = charges;
    }

    /// Starts to use a tree whose journal was replayed.
    fn begin(&mut self, charge: &mut Charge, start: u64) {
        let Some(begun) = charge.tree.begin(start, self.now.unix_millis) else { return };
        charge.walk = Some(Walk::new());
        // The next process has to know of this one even if nothing is purged.
        let is_noted = flush(&mut self.io, &charge.tree).is_ok();
        if begun == Begun::Purged || !is_noted {
            self.renew_journal(charge, 0);
        }
        // A small tree is fully known before the first request.
        let is_far = (0..FIRST_STEPS).all(|_| self.walk_some(charge));
        debug_assert!(is_far || charge.walk.is_none(), "a walk that has ended is forgotten");
    }

    /// Syncs the start number: after a loss of power, no process may use it again.
    fn sync_start_number(&mut self, charge: &mut Charge) {
        if flush(&mut self.io, &charge.tree).is_err() || self.sync(&charge.tree).is_err() {
            self.renew_journal(charge, 0);
        }
    }

    /// Syncs a journal. One with unknown content is discarded.
    fn sync(&mut self, tree: &DiskTree) -> Result<(), FileFailure> {
        let Some(file) = tree.journal_file() else { return Ok(()) };
        let synced = self.io.sync(&file);
        if synced.is_err() {
            let _ = self.io.unlink(&tree.own_file(JOURNAL));
            tree.give_up_journal();
        }
        synced
    }

    fn open_journal(&mut self, tree: &DiskTree) -> Result<Opened, FileFailure> {
        let path = tree.own_file(JOURNAL);
        let found = self.io.open_journal(&path);
        let lock = open_lock(&mut self.io, tree);
        let file = match found {
            Err(failure) if failure.errno == ENOENT => {
                return self.begin_journal(tree, Some(lock?));
            }
            found => found?,
        };
        let lock = lock.ok();
        let mut head = [0; HEAD];
        let found = read_full(&mut self.io, &file, 0, &mut head);
        let seal = journal::seal(&head[..found.unwrap_or(0)]);
        if let Some(seal) = seal {
            let mut replay = Replay::default();
            let mut at = HEAD as u64;
            let mut buffer = vec![0; READ];
            loop {
                let n = self.io.read(&file, at, &mut buffer)?;
                if n == 0 {
                    break;
                }
                replay.feed(&buffer[..n]);
                at += n as u64;
            }
            if !replay.is_damaged() {
                return Ok(Opened { file, seal, replay, size: at, lock });
            }
            self.log_damage(tree);
            // Its numbers must not be used again.
            let bound = replay.last();
            let opened = self.begin_journal(tree, lock)?;
            self.store.begin_at(bound);
            return Ok(opened);
        }
        if found != Some(0) {
            self.log_damage(tree);
        }
        self.begin_journal(tree, lock)
    }

    fn log_damage(&mut self, tree: &DiskTree) {
        let root = String::from_utf8_lossy(tree.root());
        let text = format!("the journal of cache \"{root}\" is damaged, its files are void");
        self.notes.push((LogLevel::Warn, text));
    }

    /// The journal of an empty cache: existing files belong to none.
    fn begin_journal(
        &mut self,
        tree: &DiskTree,
        lock: Option<FileRef>,
    ) -> Result<Opened, FileFailure> {
        let seal = self.prng.next_u64();
        let (temporary, _) = self.draft(tree, &journal::head(seal))?;
        let file = self.put_in_place(tree, &temporary)?;
        self.io.sync(&file)?;
        let size = HEAD as u64;
        Ok(Opened { file, seal, replay: Replay::default(), size, lock })
    }

    /// Writes the beginning of a journal under a temporary name, and syncs it.
    fn draft(&mut self, tree: &DiskTree, bytes: &[u8]) -> Result<(Vec<u8>, FileRef), FileFailure> {
        let mut path = tree.own_file(JOURNAL);
        path.extend_from_slice(format!(".{:016x}", self.prng.next_u64()).as_bytes());
        let created = match self.io.create(&path, OWNER_ALONE) {
            Err(failure) if failure.errno == ENOENT => {
                let made = make_directory(&mut self.io, tree.root());
                made.and_then(|()| self.io.create(&path, OWNER_ALONE))
            }
            created => created,
        };
        let written = created.and_then(|file| {
            self.write_all(&file, &mut 0, bytes)?;
            self.io.sync(&file)?;
            Ok(file)
        });
        if written.is_err() {
            let _ = self.io.unlink(&path);
        }
        written.map(|file| (path, file))
    }

    /// Renames a journal to its final name, which is durable only after a sync.
    fn put_in_place(&mut self, tree: &DiskTree, temporary: &[u8]) -> Result<FileRef, FileFailure> {
        // Opened before others can remove it.
        let opened = self.io.open_journal(temporary);
        let placed = opened.and_then(|file| {
            self.io.rename(temporary, &tree.own_file(JOURNAL))?;
            Ok(file)
        });
        placed.inspect_err(|_| {
            let _ = self.io.unlink(temporary);
        })
    }

    /// Follows purges of other processes, and rewrites a journal after a failed write.
    pub(super) fn tend_journal(&mut self, charge: &mut Charge) {
        if !charge.tree.is_open() {
            return self.open_late(charge);
        }
        if let Some(file) = charge.tree.journal_file()
            && self.io.stat(&file).is_ok_and(|stat| stat.links == 0)
        {
            // Before an entry goes to a file without a name, or makes an empty one.
            return self.follow_journal(charge, &file);
        }
        if charge.tree.lacks_journal() || flush(&mut self.io, &charge.tree).is_err() {
            self.renew_journal(charge, 0);
        }
        let Some(file) = charge.tree.journal_file() else { return };
        let Ok(stat) = self.io.stat(&file) else { return };
        if stat.links == 0 {
            return self.follow_journal(charge, &file);
        }
        if self.read_journal_part(charge, &file, stat.size) && self.sync(&charge.tree).is_err() {
            self.renew_journal(charge, 0);
        }
    }

    /// Reads a bounded part of a journal of `size` bytes; the next call continues. Returns whether
    /// there is more.
    fn read_journal_part(&mut self, charge: &mut Charge, file: &FileRef, size: u64) -> bool {
        if charge.journal.as_ref() != Some(file) {
            (charge.journal, charge.read) = (Some(file.clone()), HEAD as u64);
        }
        let mut bytes = vec![0; READ.min(size.saturating_sub(charge.read) as usize)];
        let Some(n) = read_full(&mut self.io, file, charge.read, &mut bytes) else { return false };
        let (own, store, tree) = (&self.own, &self.store, &charge.tree);
        let read = journal::read(&bytes[..n], |entry| {
            if let JournalEntry::Purge(order, Echo::First) = entry
                && !own.contains(&(order.sequence >> 32))
            {
                store.repeat(tree, &order);
            }
        });
        // An entry larger than the read buffer is invalid.
        let used = if read.used == 0 && n == READ { n } else { read.used };
        charge.read += used as u64;
        used > 0
    }

    /// Handles an open journal that has lost its name. If another process has created a new one, it
    /// is read from its beginning. If there is none, others have emptied the directory.
    fn follow_journal(&mut self, charge: &mut Charge, old: &FileRef) {
        match journal_at(&mut self.io, &charge.tree) {
            Some(file) => charge.tree.follow_journal(old, file),
            None => return self.lose_all(charge),
        }
        charge.lock = open_lock(&mut self.io, &charge.tree).ok();
    }

    /// Retries to open trees that could not be opened.
    fn open_late(&mut self, charge: &mut Charge) {
        if charge.off_until.is_some_and(|until| self.now.mono < until) {
            return;
        }
        match self.open_journal(&charge.tree) {
            Ok(Opened { file, seal, replay, size, lock }) => {
                let start = self.store.next_start(replay.last());
                self.own.push(start >> 32);
                charge.journal = Some(file.clone());
                charge.tree.open(file, seal, replay);
                (charge.read, charge.lock) = (size, lock);
                self.turn_on(charge);
                for tree in self.store.disk().trees() {
                    tree.note(&JournalEntry::Start(start), self.now.unix_millis);
                    if !Arc::ptr_eq(&tree, &charge.tree) && flush(&mut self.io, &tree).is_ok() {
                        let _ = self.sync(&tree);
                    }
                }
                self.sync_start_number(charge);
                self.store.begin_at(start);
                self.begin(charge, start);
            }
            Err(failure) => self.turn_off(charge, failure),
        }
    }

    /// Rewrites a journal without entries up to `cutoff`. Until that is done, nothing is written to
    /// the tree; its files remain valid for this process.
    pub(super) fn renew_journal(&mut self, charge: &mut Charge, cutoff: u64) {
        let tree = Arc::clone(&charge.tree);
        if tree.lacks_journal() && charge.off_until.is_some_and(|until| self.now.mono < until) {
            return;
        }
        let mut last = Err(FileFailure { errno: ENOSPC, call: "open" });
        for _ in 0..SACRIFICED {
            last = self.replace_journal(charge, &tree, cutoff);
            let Err(FileFailure { errno: ENOSPC | EDQUOT, .. }) = last else { break };
            let now = self.seconds();
            for hash in (0..8).map_while(|_| tree.next_victim(now, true)) {
                self.unlink_own(&tree, hash);
            }
        }
        if let Err(failure) = last {
            self.turn_off(charge, failure);
        }
    }

    /// Replaces a journal. Workers continue to write to the old one while that is copied and
    /// synced, and wait only while their latest entries are copied.
    fn replace_journal(
        &mut self,
        charge: &mut Charge,
        tree: &DiskTree,
        cutoff: u64,
    ) -> Result<(), FileFailure> {
        let old = tree.old_journal();
        if let Some((old, stat)) = old.as_ref().and_then(|old| Some((old, self.io.stat(old).ok()?)))
        {
            while self.read_journal_part(charge, old, stat.size) {}
        }
        let draft = self.draft_anew(tree, old, charge.read, cutoff);
        let mut read = 0;
        tree.replace_journal(|old, due| {
            let draft = match draft {
                Ok(draft) if draft.old.as_ref() != old => {
                    // A worker has followed another process meanwhile; nothing of its journal was
                    // read.
                    let _ = self.io.unlink(&draft.path);
                    read = HEAD as u64;
                    self.draft_anew(tree, old.cloned(), u64::MAX, cutoff)
                }
                draft => {
                    read = draft.as_ref().map_or(0, |draft| draft.size);
                    draft
                }
            };
            let made = draft.and_then(|draft| self.complete(tree, draft, due, cutoff));
            made.inspect_err(|_| {
                let _ = self.io.unlink(&tree.own_file(JOURNAL));
            })
        })?;
        (charge.journal, charge.read) = (tree.journal_file(), read);
        // The new name must be durable as well.
        self.sync(tree)
    }

    /// Drops entries up to `cutoff`.
    pub(super) fn shorten_journal(&mut self, charge: &mut Charge, cutoff: u64) {
        if self.is_alone(charge) {
            self.renew_journal(charge, cutoff);
        }
    }

    /// Whether no other process uses a tree.
    pub(super) fn is_alone(&mut self, charge: &Charge) -> bool {
        let Some(lock) = &charge.lock else { return false };
        let is_alone = self.io.lock_exclusive(lock);
        let _ = self.io.lock_shared(lock);
        is_alone
    }

    /// A copy of the first `read_len` bytes of a journal.
    pub(super) fn draft_anew(
        &mut self,
        tree: &DiskTree,
        old: Option<FileRef>,
        read_len: u64,
        cutoff: u64,
    ) -> Result<JournalDraft, FileFailure> {
        let mut out = journal::head(tree.seal()).to_vec();
        let mut bytes = Vec::new();
        if let Some(old) = &old {
            let size = self.io.stat(old)?.size.min(read_len.max(HEAD as u64));
            bytes = self.part(old, 0, size)?;
        }
        let entries = bytes.get(HEAD..).unwrap_or_default();
        let read = self.copy_entries(entries, cutoff, &mut out);
        // A journal with another seal does not list the purges of files with our seal.
        let is_ours = journal::seal(&bytes) == Some(tree.seal());
        if read.is_damaged || (old.is_some() && !is_ours) {
            self.push_everything(&mut out);
        }
        let (path, file) = self.draft(tree, &out)?;
        let (size, read) = (out.len() as u64, (HEAD + read.used) as u64);
        Ok(JournalDraft { file, path, size, old, read })
    }

    /// Adds the latest entries of the old journal and pending ones, and puts the new one in its
    /// place.
    pub(super) fn complete(
        &mut self,
        tree: &DiskTree,
        mut draft: JournalDraft,
        due: &[u8],
        cutoff: u64,
    ) -> Result<FileRef, FileFailure> {
        let added = self
            .rest_of(&draft, due, cutoff)
            .and_then(|bytes| self.write_all(&draft.file, &mut draft.size, &bytes));
        if let Err(failure) = added {
            let _ = self.io.unlink(&draft.path);
            return Err(failure);
        }
        self.put_in_place(tree, &draft.path)
    }

    /// The entries that a copy lacks.
    fn rest_of(
        &mut self,
        draft: &JournalDraft,
        due: &[u8],
        cutoff: u64,
    ) -> Result<Vec<u8>, FileFailure> {
        let (mut out, mut bytes) = (Vec::new(), Vec::new());
        if let Some(old) = &draft.old {
            let size = self.io.stat(old)?.size;
            bytes = self.part(old, draft.read, size.saturating_sub(draft.read))?;
        }
        let read = self.copy_entries(&bytes, cutoff, &mut out);
        // An entry that the failed write has truncated is pending again. Other unreadable entries
        // may have purged anything.
        if read.is_damaged || !due.starts_with(&bytes[read.used..]) {
            self.push_everything(&mut out);
        }
        out.extend_from_slice(due);
        Ok(out)
    }

    fn part(&mut self, file: &FileRef, at: u64, len: u64) -> Result<Vec<u8>, FileFailure> {
        let mut bytes = vec![0; len as usize];
        let n = read_full(&mut self.io, file, at, &mut bytes);
        bytes.truncate(n.ok_or(FileFailure { errno: 5, call: "read" })?);
        Ok(bytes)
    }

    /// Copies purges after `cutoff`, the greatest start number and the last sites.
    fn copy_entries(&self, bytes: &[u8], cutoff: u64, out: &mut Vec<u8>) -> JournalRead {
        let unix_ms = self.now.unix_millis;
        let mut last = self.own.last().map_or(0, |own| own << 32);
        let mut sites = None;
        let read = journal::read(bytes, |entry| match entry {
            JournalEntry::Start(start) => last = last.max(start),
            JournalEntry::Purge(order, _) if order.sequence > cutoff => {
                journal::push(out, &entry, unix_ms);
            }
            JournalEntry::Purge(..) => {}
            JournalEntry::Sites(_) => sites = Some(entry),
        });
        sites.iter().for_each(|sites| journal::push(out, sites, unix_ms));
        journal::push(out, &JournalEntry::Start(last), unix_ms);
        read
    }

    fn push_everything(&self, out: &mut Vec<u8>) {
        let all = everything(self.store.generation());
        journal::push(out, &all, self.now.unix_millis);
    }
}

fn charge(
    tree: Arc<DiskTree>,
    journal: Option<FileRef>,
    read: u64,
    lock: Option<FileRef>,
) -> Charge {
    Charge {
        walk: None,
        tree,
        check: None,
        off_until: None,
        is_logged: false,
        journal,
        read,
        lock,
        is_shared: false,
        asked: None,
        is_short: false,
        removals: Removals::default(),
        leaves_upkeep: false,
        lacks_root: false,
    }
}
