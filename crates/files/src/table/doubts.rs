//! Events of watched directories, and which paths are looked up again because of them.

use bolide_base::Instant;

use super::FileTable;
use super::entry::{FileEntry, State};
use crate::resolve;
use crate::watches::Trails;

impl FileTable {
    /// Handles a change of a name in a watched directory.
    pub fn hear_changed(&mut self, watch: u32, name: &[u8], now: Instant) {
        let doubts = self.watches.changed(watch, name, now);
        self.doubt_trails(&doubts.lost);
        doubts.behind.iter().for_each(|prefix| self.doubt_name(prefix, name));
    }

    /// Handles a watched directory that was moved or removed.
    pub fn hear_gone(&mut self, watch: u32) {
        let lost = self.watches.gone(watch);
        self.doubt_trails(&lost);
    }

    /// Handles an overflow: anything may have changed.
    pub fn hear_unknown(&mut self) {
        self.lapses.count_all();
        self.watches.clear();
        self.slots.iter_mut().flatten().for_each(|entry| entry.watched = false);
        self.real.clear();
    }

    fn doubt_trails(&mut self, lost: &Trails) {
        if lost.is_empty() {
            return;
        }
        for entry in self.slots.iter_mut().flatten() {
            if entry.watched && lost.contains(resolve::trail(&entry.path)) {
                self.lapses.note(&entry.path);
                entry.watched = false;
            }
        }
        self.real.doubt(|trail| lost.contains(trail));
    }

    fn doubt_name(&mut self, prefix: &[u8], name: &[u8]) {
        let mut path = [prefix, name].concat();
        self.doubt(&path);
        if let Some(base) = resolve::base_of_sibling(&path)
            && let Some(FileEntry { state: State::File(file), .. }) = self.entry(base)
        {
            file.forget_siblings();
        }
        path.push(b'/');
        self.doubt(&path);
    }

    fn doubt(&mut self, path: &[u8]) {
        if let Some(&slot) = self.index.get(path)
            && let Some(entry) = &mut self.slots[slot as usize]
        {
            if entry.watched {
                self.lapses.note(&entry.path);
            }
            entry.watched = false;
        }
    }
}
