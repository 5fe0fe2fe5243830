//! Journals: opened and replayed at the start, heard while others write, made anew when need be.

use std::sync::Arc;

use base::FileRef;
use cache::disk::journal::{self, Echo, Entry, HEAD};
use cache::disk::{Begun, JOURNAL, LOCK, Replay, Shelf, everything};
use io::{FileFailure, Io};

use super::walk::Walk;
use super::{Charge, Librarian};
use crate::recall::{flush, read_full};

/// Bytes of a journal that are read at once.
const READ: usize = 256 * 1024;
const ENOSPC: i32 = 28;
const EDQUOT: i32 = 122;
/// Files that make room for a journal.
const SACRIFICED: usize = 8;

/// A journal as it was found.
struct Opened {
    file: FileRef,
    seal: u64,
    replay: Replay,
    size: u64,
    lock: Option<FileRef>,
}

impl<I: Io> Librarian<I> {
    /// Opens shelves. Their journals, and those that are open already, are told the number that
    /// this process counts from before anybody uses it.
    pub(super) fn open(&mut self, shelves: Vec<Arc<Shelf>>) {
        // What this process has purged before it was told of them hits them as well.
        let are_late = self.store.has_purged();
        let mut opened = Vec::new();
        shelves.iter().filter(|_| are_late).for_each(|shelf| shelf.note_missed_purges());
        for shelf in shelves {
            match self.open_journal(&shelf) {
                Ok(found) => opened.push((shelf, Some(found))),
                Err(failure) => {
                    let mut charge = charge(Arc::clone(&shelf), 0, None);
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
            charge.shelf.note(&Entry::Start(start), unix_ms);
        }
        for (shelf, found) in opened {
            let Some(Opened { file, seal, replay, size, lock }) = found else { continue };
            shelf.open(file, seal, replay);
            shelf.note(&Entry::Start(start), unix_ms);
            self.charges.push(charge(shelf, size, lock));
        }
        let mut charges = std::mem::take(&mut self.charges);
        for charge in &mut charges {
            self.tell_start(charge);
        }
        self.store.begin_at(start);
        charges.iter_mut().for_each(|charge| self.begin(charge, start));
        self.charges = charges;
    }

    /// Has a shelf used, if its journal was just taken over.
    fn begin(&mut self, charge: &mut Charge, start: u64) {
        let Some(begun) = charge.shelf.begin(start, self.now.unix_millis) else { return };
        charge.walk = Some(Walk::new());
        if begun == Begun::Purged {
            self.renew_journal(charge, 0);
        }
    }

    /// Brings the number that is counted from to the medium: after a loss of power, nobody may use
    /// it again.
    fn tell_start(&mut self, charge: &mut Charge) {
        if flush(&mut self.io, &charge.shelf).is_err() || self.sync(&charge.shelf).is_err() {
            self.renew_journal(charge, 0);
        }
    }

    /// Brings a journal to the medium. One of which nobody knows what is there is given up.
    fn sync(&mut self, shelf: &Shelf) -> Result<(), FileFailure> {
        let Some(file) = shelf.journal_file() else { return Ok(()) };
        let synced = self.io.sync(&file);
        if synced.is_err() {
            let _ = self.io.unlink(&shelf.own_file(JOURNAL));
            shelf.give_up_journal();
        }
        synced
    }

    fn open_journal(&mut self, shelf: &Shelf) -> Result<Opened, FileFailure> {
        let path = shelf.own_file(JOURNAL);
        let file = self.io.open_journal(&path)?;
        let lock = self.io.open_journal(&shelf.own_file(LOCK)).ok();
        if let Some(lock) = &lock {
            let _ = self.io.lock_shared(lock);
        }
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
            // Its numbers are still not to be used again.
            let bound = replay.last();
            let opened = self.begin_journal(shelf, &path, lock)?;
            self.store.begin_at(bound);
            return Ok(opened);
        }
        self.begin_journal(shelf, &path, lock)
    }

    /// A journal of a cache that has nothing: what lies there belongs to none.
    fn begin_journal(
        &mut self,
        shelf: &Shelf,
        path: &[u8],
        lock: Option<FileRef>,
    ) -> Result<Opened, FileFailure> {
        let seal = self.prng.next_u64();
        let file = self.make_journal(shelf, path, &journal::head(seal))?;
        let size = HEAD as u64;
        Ok(Opened { file, seal, replay: Replay::default(), size, lock })
    }

    /// Puts a new journal in the place of an old one.
    fn make_journal(
        &mut self,
        shelf: &Shelf,
        path: &[u8],
        bytes: &[u8],
    ) -> Result<FileRef, FileFailure> {
        let mut temporary = shelf.own_file(JOURNAL);
        temporary.extend_from_slice(format!(".{:016x}", self.prng.next_u64()).as_bytes());
        let written = self.io.create(&temporary).and_then(|file| {
            self.write_all(&file, &mut 0, bytes)?;
            self.io.sync(&file)?;
            self.io.rename(&temporary, path)?;
            // The new name is to be there as well.
            self.io.sync(&file)
        });
        if let Err(failure) = written {
            let _ = self.io.unlink(&temporary);
            return Err(failure);
        }
        self.io.open_journal(path)
    }

    /// Hears what other processes have purged, and makes a journal that could not be written anew.
    pub(super) fn tend_journal(&mut self, charge: &mut Charge) {
        if !charge.shelf.is_open() {
            return self.open_late(charge);
        }
        if charge.shelf.lacks_journal() || flush(&mut self.io, &charge.shelf).is_err() {
            self.renew_journal(charge, 0);
        }
        let Some(file) = charge.shelf.journal_file() else { return };
        let Ok(stat) = self.io.stat(&file) else { return };
        if stat.size <= charge.read {
            return;
        }
        // A bounded part of it; a call or the next round goes on.
        let mut bytes = vec![0; READ.min((stat.size - charge.read) as usize)];
        let Some(n) = read_full(&mut self.io, &file, charge.read, &mut bytes) else { return };
        let (own, store, shelf) = (&self.own, &self.store, &charge.shelf);
        let read = journal::read(&bytes[..n], |entry| {
            if let Entry::Purge(order, Echo::First) = entry
                && !own.contains(&(order.sequence >> 32))
            {
                store.repeat(shelf, &order);
            }
        });
        // An entry larger than what is read at once is none.
        charge.read += if read.used == 0 && n == READ { n as u64 } else { read.used as u64 };
        if self.sync(&charge.shelf).is_err() {
            self.renew_journal(charge, 0);
        }
    }

    /// Tries again to open what could not be opened.
    fn open_late(&mut self, charge: &mut Charge) {
        if charge.off_until.is_some_and(|until| self.now.mono < until) {
            return;
        }
        match self.open_journal(&charge.shelf) {
            Ok(Opened { file, seal, replay, size, lock }) => {
                let start = self.store.next_start(replay.last());
                self.own.push(start >> 32);
                charge.shelf.open(file, seal, replay);
                (charge.read, charge.lock) = (size, lock);
                self.turn_on(charge);
                for shelf in self.store.shelves() {
                    shelf.note(&Entry::Start(start), self.now.unix_millis);
                    if !Arc::ptr_eq(&shelf, &charge.shelf) && flush(&mut self.io, &shelf).is_ok() {
                        let _ = self.sync(&shelf);
                    }
                }
                self.tell_start(charge);
                self.store.begin_at(start);
                self.begin(charge, start);
            }
            Err(failure) => self.turn_off(charge, failure),
        }
    }

    /// Writes a journal anew, without entries up to `cutoff`. Until that is done nothing is written
    /// to the shelf; what lies there is good for this process.
    fn renew_journal(&mut self, charge: &mut Charge, cutoff: u64) {
        let shelf = Arc::clone(&charge.shelf);
        if shelf.lacks_journal() && charge.off_until.is_some_and(|until| self.now.mono < until) {
            return;
        }
        let path = shelf.own_file(JOURNAL);
        let mut last = Err(FileFailure { errno: ENOSPC, call: "open" });
        for _ in 0..SACRIFICED {
            let mut size = 0;
            last = shelf.replace_journal(|old, due| {
                let bytes = self.old_entries(old, shelf.seal(), due, cutoff);
                let made = bytes.and_then(|bytes| {
                    size = bytes.len() as u64;
                    self.make_journal(&shelf, &path, &bytes)
                });
                made.inspect_err(|_| {
                    let _ = self.io.unlink(&path);
                })
            });
            charge.read = size;
            let Err(FileFailure { errno: ENOSPC | EDQUOT, .. }) = last else { break };
            let now = self.seconds();
            for hash in (0..8).map_while(|_| shelf.next_victim(now, true)) {
                shelf.note_gone(hash);
                let _ = self.io.unlink(&shelf.path(hash));
            }
        }
        if let Err(failure) = last {
            self.turn_off(charge, failure);
        }
    }

    /// Forgets entries up to `cutoff`.
    pub(super) fn shorten_journal(&mut self, charge: &mut Charge, cutoff: u64) {
        if self.is_alone(charge) {
            self.renew_journal(charge, cutoff);
        }
    }

    /// Whether no other process uses a shelf.
    pub(super) fn is_alone(&mut self, charge: &Charge) -> bool {
        let Some(lock) = &charge.lock else { return false };
        let is_alone = self.io.lock_exclusive(lock);
        let _ = self.io.lock_shared(lock);
        is_alone
    }

    /// The bytes of a journal that says what an old one said, and what is due.
    fn old_entries(
        &mut self,
        old: Option<&FileRef>,
        seal: u64,
        due: &[u8],
        cutoff: u64,
    ) -> Result<Vec<u8>, FileFailure> {
        let mut out = journal::head(seal).to_vec();
        let mut bytes = Vec::new();
        if let Some(old) = old {
            let size = self.io.stat(old)?.size;
            bytes.resize(size as usize, 0);
            let n = read_full(&mut self.io, old, 0, &mut bytes);
            bytes.truncate(n.ok_or(FileFailure { errno: 5, call: "read" })?);
        }
        let last = self.own.last().map_or(0, |own| own << 32);
        journal::push(&mut out, &Entry::Start(last), self.now.unix_millis);
        let bytes = bytes.get(HEAD..).unwrap_or_default();
        let read = journal::read(bytes, |entry| {
            if let Entry::Purge(order, echo) = entry
                && order.sequence > cutoff
            {
                journal::push(&mut out, &Entry::Purge(order, echo), self.now.unix_millis);
            }
        });
        // What was torn off by the failure that led here is due again. What else cannot be read may
        // have purged anything.
        if read.is_damaged || !due.starts_with(&bytes[read.used..]) {
            let all = everything(self.store.generation());
            journal::push(&mut out, &all, self.now.unix_millis);
        }
        out.extend_from_slice(due);
        Ok(out)
    }
}

fn charge(shelf: Arc<Shelf>, read: u64, lock: Option<FileRef>) -> Charge {
    Charge {
        walk: None,
        shelf,
        check: None,
        off_until: None,
        is_told: false,
        read,
        lock,
        is_shared: false,
        asked: None,
        is_short: false,
    }
}
