//! The journal of a tree: which purges it has, which are due, and how it is replaced.

use std::sync::atomic::Ordering;

use bolide_base::FileRef;

use super::{DiskSite, DiskTree};
use crate::disk::format::sum;
use crate::disk::journal::{self, Echo, JournalAppend, JournalEntry, OpenJournal, everything};
use crate::disk::purges::{DiskPurge, DiskPurgeTarget, Purges};
use crate::tags::{TagPurge, lock};

/// LIMIT: bytes of purges that the journal does not have.
const DUE_MAX: usize = 1 << 20;

impl DiskTree {
    /// Sets the sites of the configuration that [`Self::begin`] will be about.
    pub fn expect_sites(&self, sites: &[DiskSite]) {
        let with_id = |site: &DiskSite| {
            let len = (site.name.len() as u64).to_le_bytes();
            (site.clone(), sum(&[&len, &*site.name, &site.reach].concat()))
        };
        lock(&self.sites).own = sites.iter().map(with_id).collect();
    }

    /// Records the sites of a configuration that is in force from now on, after their purges that
    /// are due.
    pub fn record_sites(&self, sites: &[DiskSite]) {
        self.expect_sites(sites);
        if self.is_open() {
            let ids = lock(&self.sites).ids();
            self.note(&JournalEntry::Sites(&ids), 0);
        }
    }

    /// Purges the files of sites that purges did not reach during the last process, or whose URLs
    /// were other ones in keys; `start` is greater than the number of any file.
    pub(super) fn purge_new_sites(&self, purges: &mut Purges, start: u64, unix_ms: u64) {
        let sites = lock(&self.sites);
        for site in sites.new_ones() {
            for target in [DiskPurgeTarget::All, DiskPurgeTarget::Private] {
                let (namespace, session, how) = (&*site.name, &b""[..], TagPurge::Dead);
                let order = DiskPurge { namespace, session, target, how, sequence: start };
                purges.add(&order);
                self.note(&JournalEntry::Purge(order, Echo::First), unix_ms);
            }
        }
        self.note(&JournalEntry::Sites(&sites.ids()), unix_ms);
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
    pub fn assume_missed_purges(&self) {
        self.is_purged_early.store(!self.is_open(), Ordering::Relaxed);
    }

    /// Whether a purge came before it began. A crash could lose that purge, so the caller unlinks
    /// the journal: without it no process uses the files.
    #[must_use]
    pub fn is_purged_early(&self) -> bool {
        self.is_purged_early.load(Ordering::Relaxed)
    }

    /// Lets `append` write the due entries to the journal. On an error the file is given up: the
    /// caller unlinks it, so that no later process uses it, and replaces it. Where the file has
    /// lost its name, the entries stay due.
    ///
    /// # Errors
    ///
    /// The error of `append`.
    pub fn flush<E>(
        &self,
        append: impl FnOnce(&mut FileRef, &[u8]) -> Result<JournalAppend, E>,
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
        }
        if !matches!(appended, Ok(JournalAppend::Named)) {
            lock(&self.due).splice(0..0, due);
        }
        appended.map(drop)
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
        *journal = OpenJournal { file: Some(file), given_up: None };
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
}
