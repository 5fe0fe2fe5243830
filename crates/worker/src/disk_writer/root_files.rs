//! The journal and the lock in the root directory of a tree: looks at them, and creates the lock
//! only. A journal gets its name by a rename, because others may be removing the directory.

use bolide_base::FileRef;
use bolide_cache::disk::journal::{self, HEAD};
use bolide_cache::disk::{DiskTree, JOURNAL, LOCK};
use bolide_io::{FileFailure, Io};

use super::write::OWNER_ALONE;
use crate::disk_lookup::read_full;

/// Opens the lock file of a tree and shares it with other processes.
pub(super) fn open_lock(io: &mut impl Io, tree: &DiskTree) -> Result<FileRef, FileFailure> {
    let path = tree.own_file(LOCK);
    let opened = io.open_journal(&path).or_else(|_| io.create(&path, OWNER_ALONE));
    // Another process may have created it in between.
    let lock = opened.or_else(|why| io.open_journal(&path).map_err(|_| why))?;
    let _ = io.lock_shared(&lock);
    Ok(lock)
}

/// The file that has the name of the journal of a tree, if it is one.
pub(super) fn journal_at(io: &mut impl Io, tree: &DiskTree) -> Option<FileRef> {
    let file = io.open_journal(&tree.own_file(JOURNAL)).ok()?;
    let mut head = [0; HEAD];
    let n = read_full(io, &file, 0, &mut head).unwrap_or(0);
    journal::seal(&head[..n]).map(|_| file)
}
