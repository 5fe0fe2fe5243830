//! What lies on a tree, looked up in its directories, for commands that people wait for.
//!
//! Owns nothing and asks no index: neither who still walks over the tree nor another process that
//! writes to it hides anything.

use bolide_cache::disk::format::Record;
use bolide_cache::disk::{DiskLookup, DiskTree};
use bolide_io::{Io, OpenRequest, SymlinkRule};

use crate::disk_lookup::read_head;

/// Entries of a directory that are taken at once.
const ENTRIES: usize = 512;

/// Shows `visit` what is said of each object on `tree` that may still be used, for which
/// `is_meant` says so by the name of its file.
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
