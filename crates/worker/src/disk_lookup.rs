//! File access of a turn for the disk cache: looks up objects, and writes journals of purges.

use bolide_base::errno::{ENOENT, ESTALE};
use bolide_base::{ChainStamp, FileRef};
use bolide_cache::disk::format::{FIXED, HEAD_MAX, head_size};
use bolide_cache::disk::journal::JournalAppend;
use bolide_cache::disk::{DiskTree, JOURNAL, TreeUse};
use bolide_cache::{FillPermit, Lookup, ObjectKind, Store, TagVerdict};
use bolide_io::{FileFailure, Io, OpenRequest, SymlinkRule};

/// Bytes of the first read of a file, which should contain its head.
const HEAD_READ: usize = 16 * 1024;
/// LIMIT: consecutive replacements of a journal by another process while it is written.
const REPLACED_MAX: u32 = 16;

/// Writes purges to the journals. Every thread that purges calls it before it acknowledges the
/// purge. If it fails, the disk writer logs and repeats it, and no later process trusts the older
/// files.
pub fn write_purges(io: &mut impl Io, store: &Store) {
    store.disk().flush_purges(|tree, tree_use| {
        let _ = match tree_use {
            TreeUse::Named => flush(io, tree),
            TreeUse::Left => drop_journal(io, tree),
        };
    });
}

/// Removes the journal of a tree, so that no later process trusts its files.
///
/// # Errors
///
/// The kernel's error.
pub(crate) fn drop_journal(io: &mut impl Io, tree: &DiskTree) -> Result<(), FileFailure> {
    match io.unlink(&tree.own_file(JOURNAL)) {
        Err(failure) if failure.errno != ENOENT => Err(failure),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Looks up an object on disk for a trial. It changes neither memory nor the disk.
pub fn glance(io: &mut impl Io, permit: FillPermit, now: bolide_base::Now) -> Lookup {
    let Some(disk_query) = permit.disk_query() else { return Lookup::Miss(permit) };
    let path = disk_query.path();
    let symlinks = SymlinkRule::Follow;
    let request = OpenRequest { path: &path, symlinks, content_max: 0, stat_only: false };
    let Ok(opened) = io.open(&request) else { return Lookup::Miss(permit) };
    let Some(file) = opened.file else { return Lookup::Miss(permit) };
    let Some(head) = read_head(io, &file) else { return Lookup::Miss(permit) };
    let now_ms = now.unix_millis;
    let Ok((record, verdict)) = disk_query.judge(&permit, &head, now_ms) else {
        return Lookup::Miss(permit);
    };
    if record.kind != ObjectKind::Content {
        return Lookup::Miss(permit);
    }
    let stamp = ChainStamp {
        size: opened.stat.size,
        mtime_seconds: opened.stat.mtime_seconds,
        mtime_nanos: opened.stat.mtime_nanos,
    };
    let seconds = (now.mono.as_nanos() / 1_000_000_000) as u32;
    let object = disk_query.outline(&permit, &record, (file, stamp), seconds);
    let times = object.times();
    if verdict == TagVerdict::Good && now_ms < times.expires_ms {
        Lookup::Hit(object)
    } else if now_ms < times.stale_until_ms() {
        Lookup::Stale(object, Some(permit))
    } else {
        Lookup::Miss(permit)
    }
}

/// The whole head of a file; none if the file is not ours.
pub(crate) fn read_head(io: &mut impl Io, file: &FileRef) -> Option<Vec<u8>> {
    let mut head = vec![0; HEAD_READ];
    let mut filled = read_full(io, file, 0, &mut head)?;
    if filled < FIXED {
        return None;
    }
    let size = head_size(&head).filter(|size| *size <= HEAD_MAX)?;
    if size > filled {
        head.resize(size, 0);
        filled += read_full(io, file, filled as u64, &mut head[filled..])?;
    }
    head.truncate(filled);
    Some(head)
}

/// Reads until `into` is full or the file ends.
pub(crate) fn read_full(
    io: &mut impl Io,
    file: &FileRef,
    offset: u64,
    into: &mut [u8],
) -> Option<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match io.read(file, offset + filled as u64, &mut into[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(_) => return None,
        }
    }
    Some(filled)
}

/// Appends pending purges to the journal of a tree. If that fails, it removes the journal, so that
/// no later process trusts the tree's files.
///
/// # Errors
///
/// The kernel's error.
pub(crate) fn flush(io: &mut impl Io, tree: &DiskTree) -> Result<(), FileFailure> {
    let path = tree.own_file(JOURNAL);
    if tree.is_purged_early() {
        let _ = io.unlink(&path);
    }
    tree.flush(|file, bytes| {
        // Removed before others find out that it cannot be written.
        append(io, &path, file, bytes).inspect_err(|_| {
            let _ = io.unlink(&path);
        })
    })
}

/// Appends to a journal, or to its replacement if another process has replaced it.
fn append(
    io: &mut impl Io,
    path: &[u8],
    file: &mut FileRef,
    bytes: &[u8],
) -> Result<JournalAppend, FileFailure> {
    for _ in 0..REPLACED_MAX {
        let mut rest = bytes;
        while !rest.is_empty() {
            let n = io.append_journal(file, rest)?;
            rest = &rest[n..];
        }
        if io.stat(file)?.links > 0 {
            return Ok(JournalAppend::Named);
        }
        match io.open_journal(path) {
            Ok(replacement) => *file = replacement,
            Err(failure) if failure.errno == ENOENT => return Ok(JournalAppend::Nameless),
            Err(failure) => return Err(failure),
        }
    }
    Err(FileFailure { errno: ESTALE, call: "write" })
}
