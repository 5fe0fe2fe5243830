//! What lies on a shelf, looked up in its directories, for commands that people wait for.
//!
//! Owns nothing and asks no index: neither who still walks over the shelf nor another process that
//! writes to it hides anything.

use cache::disk::format::Record;
use cache::disk::{Found, Shelf};
use io::{Io, OpenRequest, SymlinkRule};

use crate::recall::read_head;

/// Entries of a directory that are taken at once.
const ENTRIES: usize = 512;

/// Shows `visit` what is said of each object on `shelf` that may still be used, for which
/// `is_meant` says so by the name of its file.
pub fn shelved(
    io: &mut impl Io,
    shelf: &Shelf,
    now_ms: u64,
    is_meant: impl Fn(u128) -> bool,
    mut visit: impl FnMut(u128, &Record<'_>),
) {
    let mut waiting = vec![Vec::new()];
    while let Some(inside) = waiting.pop() {
        let Ok(mut entries) = io.entries(&shelf.own_file(&inside)) else { continue };
        let mut has_more = true;
        while has_more {
            let mut found = Vec::new();
            has_more = entries.take(ENTRIES, &mut found);
            for (name, stat) in found {
                match shelf.classify(&inside, &name, stat.is_dir) {
                    Found::Directory if inside.is_empty() => waiting.push(name),
                    Found::Directory => waiting.push([&inside, &b"/"[..], &name].concat()),
                    Found::File(hash) if is_meant(hash) => {
                        look(io, shelf, now_ms, hash, &mut visit);
                    }
                    Found::File(_) | Found::Temporary | Found::Foreign => {}
                }
            }
        }
    }
}

fn look(
    io: &mut impl Io,
    shelf: &Shelf,
    now_ms: u64,
    hash: u128,
    visit: &mut impl FnMut(u128, &Record<'_>),
) {
    let path = shelf.path(hash);
    let symlinks = SymlinkRule::Follow;
    let request = OpenRequest { path: &path, symlinks, content_max: 0, stat_only: false };
    let head = io.open(&request).ok().and_then(|opened| read_head(io, &opened.file?));
    if let Some(head) = head
        && let Ok((record, _)) = shelf.judge(&head, None, now_ms)
    {
        visit(hash, &record);
    }
}
