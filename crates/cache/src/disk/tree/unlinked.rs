//! Files that this process has unlinked itself, until the events of that have come: what is not
//! among them others have deleted.

use std::collections::HashMap;
use std::sync::Mutex;

use super::DiskTree;
use crate::disk::index::FileHash;
use crate::tags::lock;

/// LIMIT: own unlinks whose events are awaited.
const UNLINKED_MAX: usize = 64 * 1024;

/// How often each file was unlinked.
#[derive(Debug, Default)]
pub(super) struct Unlinked(Mutex<HashMap<FileHash, u32>>);

impl DiskTree {
    /// This process is about to unlink a file: it leaves the index, and its event says nothing.
    pub fn note_unlink(&self, hash: FileHash) {
        self.note_gone(hash);
        let mut all = lock(&self.unlinked.0);
        if all.len() >= UNLINKED_MAX {
            all.clear();
        }
        *all.entry(hash).or_default() += 1;
    }

    /// Whether an event is that of an own unlink, or the unlink has failed: it is no longer
    /// awaited.
    #[must_use]
    pub fn take_unlink(&self, hash: FileHash) -> bool {
        let mut all = lock(&self.unlinked.0);
        let Some(count) = all.get_mut(&hash) else { return false };
        *count -= 1;
        if *count == 0 {
            all.remove(&hash);
        }
        true
    }

    /// Events were lost: none is awaited.
    pub fn forget_unlinks(&self) {
        lock(&self.unlinked.0).clear();
    }
}
