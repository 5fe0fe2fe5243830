//! Lists the objects on a disk tree by reading its directories, for `bolide cache`.
//!
//! It uses no index, so neither an unfinished walk nor another process that writes to the tree
//! hides anything.

use bolide_cache::disk::format::Record;
use bolide_cache::disk::{DiskLookup, DiskTree};
use bolide_io::{Io, OpenRequest, SymlinkRule};

use crate::disk_lookup::read_head;

/// Entries of a directory per read.
const ENTRIES: usize = 512;

/// Calls `visit` with the head of each usable object on `tree` whose file name passes `is_meant`.
pub fn stored_pages(
    io: &mut impl Io,
    tree: &DiskTree,
    now_ms: u64,
    is_meant: impl Fn(u128) -> bool,
    mut visit: impl FnMut(u128, &Record<'_>),
) {
    let mut waiting = vec![Vec::new()];
    while let Some(inside) = waiting.pop() {
        let Ok(mut entries) = io.entries(&tree.own_file(&inside)) else { continue };
        let mut has_more = true;
        while has_more {
            let mut found = Vec::new();
            has_more = entries.take(ENTRIES, &mut found).unwrap_or(false);
            for (name, stat) in found {
                match tree.classify(&inside, &name, stat.is_dir) {
                    DiskLookup::Directory if inside.is_empty() => waiting.push(name),
                    DiskLookup::Directory => waiting.push([&inside, &b"/"[..], &name].concat()),
                    DiskLookup::File(hash) if is_meant(hash) => {
                        look(io, tree, now_ms, hash, &mut visit);
                    }
                    DiskLookup::File(_) | DiskLookup::Temporary | DiskLookup::Foreign => {}
                }
            }
        }
    }
}

fn look(
    io: &mut impl Io,
    tree: &DiskTree,
    now_ms: u64,
    hash: u128,
    visit: &mut impl FnMut(u128, &Record<'_>),
) {
    let path = tree.path(hash);
    let symlinks = SymlinkRule::Follow;
    let request = OpenRequest { path: &path, symlinks, content_max: 0, stat_only: false };
    let head = io.open(&request).ok().and_then(|opened| read_head(io, &opened.file?));
    if let Some(head) = head
        && let Ok((record, _)) = tree.judge(&head, None, now_ms)
    {
        visit(hash, &record);
    }
}
