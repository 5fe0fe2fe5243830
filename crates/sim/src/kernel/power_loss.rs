//! The effects of a power loss, or of a flipped bit, on the cache files.
//!
//! Names change in order, as with a journaling file system: of the changes since the last flush, a
//! prefix survives. Bytes that were not flushed survive, are truncated, or are zeroes,
//! independently for each file. A removed name stays removed.

use std::rc::Rc;

use bolide_base::FileRef;

use super::disk::{SimDisk, is_stored};
use crate::chance::Chance;

/// Names and their inodes before a change.
pub(super) type UndoStep = Vec<(String, Option<u64>)>;

impl SimDisk {
    /// Records the inodes of cache names before a change that a power loss may undo.
    pub(super) fn record_rename(&mut self, names: &[&str]) {
        if names.iter().all(|name| is_stored(name)) {
            let before = |name: &&str| ((*name).to_owned(), self.paths.get(*name).copied());
            self.unsynced.push(names.iter().map(before).collect());
        }
    }

    /// Flushes a file and all names.
    pub fn sync(&mut self, file: &FileRef) {
        self.unsynced.clear();
        let number = self.open.get(&file.raw()).map(|(_, number)| *number);
        if let Some(inode) = number.and_then(|number| self.inodes.get_mut(&number)) {
            inode.flushed = inode.content.bytes.clone();
        }
    }

    /// Power is lost and returns.
    pub fn lose_power(&mut self, chance: &mut Chance) {
        let kept = chance.index(self.unsynced.len() + 1);
        for (path, number) in self.unsynced.drain(..).skip(kept).rev().flatten() {
            match number {
                Some(number) => drop(self.paths.insert(path, number)),
                None => drop(self.paths.remove(&path)),
            }
        }
        for (path, number) in &self.paths {
            if let Some(inode) = self.inodes.get_mut(number).filter(|_| is_stored(path)) {
                path.clone_into(&mut inode.path);
                inode.content.bytes = torn(&inode.flushed, &inode.content.bytes, chance);
                inode.flushed = inode.content.bytes.clone();
            }
        }
    }

    /// Flips a bit of a random cache file. Returns its path, if there is one.
    pub fn flip(&mut self, chance: &mut Chance) -> Option<String> {
        let journals = chance.one_in(3);
        let is_wanted = |path: &str| !journals || path.ends_with(".journal");
        let all = self.paths.iter().filter(|(path, _)| is_stored(path) && is_wanted(path));
        let all: Vec<_> = all.collect();
        let (path, number) = all.get(chance.index(all.len()))?;
        let inode = self.inodes.get_mut(number)?;
        let mut bytes = inode.content.bytes.to_vec();
        let at = chance.index(bytes.len());
        *bytes.get_mut(at)? ^= 1 << chance.below(8);
        inode.content.bytes = bytes.into();
        inode.flushed = inode.content.bytes.clone();
        Some((*path).clone())
    }

    /// The administrator deletes a file of the cache, or a journal.
    pub fn delete(&mut self, chance: &mut Chance) -> Option<String> {
        let all: Vec<_> = self.paths.keys().filter(|path| is_stored(path)).cloned().collect();
        let path = all.get(chance.index(all.len()))?;
        self.unlink(path).then(|| path.clone())
    }
}

/// The part of `now` that survives; `flushed` is safe.
fn torn(flushed: &Rc<[u8]>, now: &Rc<[u8]>, chance: &mut Chance) -> Rc<[u8]> {
    let Some(unsafe_len) = now.len().checked_sub(flushed.len()).filter(|len| *len > 0) else {
        return now.clone();
    };
    let end = flushed.len() + chance.index(unsafe_len);
    match chance.below(4) {
        0 | 1 => now.clone(),
        2 => now[..end].into(),
        _ => {
            let mut bytes = now.to_vec();
            let next = (end + chance.size(8192)).min(bytes.len());
            bytes[end..next].fill(0);
            bytes.into()
        }
    }
}
