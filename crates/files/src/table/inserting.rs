//! Inserts the result of a file lookup into the table.

use std::rc::Rc;

use bolide_base::Now;

use super::entry::{FailedLook, FileEntry, State};
use super::{FileTable, Known};
use crate::open::{FileBody, FileKind, Meta, OpenFile};
use crate::probe::{Probe, Remember};

/// A change this close to the reading may be followed by an invisible one. Kernels stamp times with
/// the tick, 10 ms at worst; file servers are coarser.
const RACY_MILLIS: i64 = 1_000;
/// Files closed at once when descriptors run out.
const SHED_MAX: usize = 64;

impl FileTable {
    /// The file is unchanged: its entry is valid for another period.
    pub(super) fn keep(&mut self, probe: &Probe, now: Now) -> Known {
        let slot = self.index.get(&probe.path).map(|&slot| slot as usize);
        let entry = slot.and_then(|slot| self.slots[slot].as_mut());
        let Some(entry) = entry else { return Known::Unknown };
        match &entry.state {
            State::File(file) if probe.known == Some(file.meta) => file.forget_siblings(),
            // The entry was replaced during the lookup; the present one is younger.
            _ => return entry.known(),
        }
        (entry.checked, entry.part, entry.watched) = (now.mono, self.part, false);
        entry.symlinks = probe.policy.symlinks;
        entry.known()
    }

    pub(super) fn insert_file(
        &mut self,
        probe: &Probe,
        meta: Meta,
        body: FileBody,
        now: Now,
    ) -> Known {
        debug_assert_eq!(meta.kind, FileKind::File, "only regular files are opened");
        let changed =
            meta.ctime_secs.saturating_mul(1000) + i64::from(meta.ctime_nanos / 1_000_000);
        let read = i64::try_from(now.unix_millis).unwrap_or(i64::MAX);
        let racy = read.saturating_sub(changed) < RACY_MILLIS;
        let same = self.entry(&probe.path).and_then(|entry| match &entry.state {
            State::File(old) => is_same(old, &meta, &body).then(|| old.clone()),
            State::Seen(_) | State::Refused(_) => None,
        });
        let file = same.unwrap_or_else(|| {
            let variants = self.ring.new_set();
            Rc::new(OpenFile::new(probe.path.clone(), body, meta, variants))
        });
        file.forget_siblings();
        self.insert(probe, State::File(file), racy, now)
    }

    pub(super) fn insert_seen(&mut self, probe: &Probe, meta: Meta, now: Now) -> Known {
        // A lookup of attributes must not cost an open file that is unchanged.
        let same = self.entry(&probe.path).and_then(|entry| match &entry.state {
            State::File(old) if old.meta == meta && !entry.racy => Some(old.clone()),
            _ => None,
        });
        let state = same.map_or(State::Seen(meta), State::File);
        self.insert(probe, state, false, now)
    }

    /// Closes some files that no response uses, because descriptors are needed; false if there are
    /// none. Those of this turn are spared: a request is about to use them.
    pub fn give_up_descriptors(&mut self, now: Now) -> bool {
        let before = self.open;
        while self.open > 0
            && before - self.open < SHED_MAX
            && self.evict(now, FileEntry::holds_spare_descriptor)
        {}
        self.open < before
    }

    pub(super) fn insert_failure(&mut self, probe: &Probe, refusal: FailedLook, now: Now) -> Known {
        match probe.policy.failures {
            Remember::Failures => self.insert(probe, State::Refused(refusal), false, now),
            Remember::Nothing => {
                if let Some(&slot) = self.index.get(&probe.path) {
                    self.remove(slot as usize);
                }
                let found = (probe.policy.symlinks, refusal);
                self.turn.missing.insert(probe.path.clone(), found);
                refusal.known()
            }
        }
    }

    fn insert(&mut self, probe: &Probe, state: State, racy: bool, now: Now) -> Known {
        let old = self.index.get(&probe.path).map(|&slot| slot as usize);
        let entry = old.and_then(|slot| self.slots[slot].as_ref());
        let uses = entry.map_or(1, |entry| entry.uses);
        let is_same = entry.is_some_and(|entry| entry.state.is(&state));
        if let Some(slot) = old {
            // A result that was found again did not lapse.
            match is_same {
                true => drop(self.take(slot)),
                false => self.remove(slot),
            }
        }
        if self.index.len() >= probe.policy.max.min(self.limits.entries) {
            self.evict(now, |_| true);
        }
        let entry = FileEntry {
            path: probe.path.clone(),
            state,
            checked: now.mono,
            used: now.mono,
            uses,
            referenced: old.is_some(),
            racy,
            watched: false,
            part: self.part,
            symlinks: probe.policy.symlinks,
            inactive: probe.policy.inactive,
        };
        let known = entry.known();
        self.content += entry.content_len();
        self.open += usize::from(entry.holds_descriptor());
        let slot = self.free.pop().map_or(self.slots.len(), |slot| slot as usize);
        self.index.insert(entry.path.clone(), slot as u32);
        match self.slots.get_mut(slot) {
            Some(place) => *place = Some(entry),
            None => self.slots.push(Some(entry)),
        }
        self.enforce(now);
        known
    }
}

/// Whether a newly opened file is the one that `old` already holds.
fn is_same(old: &OpenFile, meta: &Meta, body: &FileBody) -> bool {
    old.meta == *meta
        && match (&old.body, body) {
            (FileBody::Memory(old), FileBody::Memory(new)) => old == new,
            _ => false,
        }
}
