//! Removes or copies directories with their contents.
//!
//! Symbolic links are removed and never copied. An entry that fails is logged and skipped.

use bolide_base::errno::ELOOP;
use bolide_conf::model::LogLevel;
use bolide_io::{Entries, FileFailure, Io, Stat};

use super::{Act, DEPTH_MAX, FileWork, stat_as_named};

/// Entries read at once.
const BATCH: usize = 64;

/// A directory in the course of a walk.
#[derive(Debug)]
pub(super) struct TreeWalk {
    /// Its path.
    path: Vec<u8>,
    /// Its attributes, where they matter.
    stat: Stat,
    entries: Entries,
    batch: Vec<(Vec<u8>, Stat)>,
    has_more: bool,
    /// Why entries are missing.
    failure: Option<FileFailure>,
    /// Whether the request named it.
    is_top: bool,
}

impl TreeWalk {
    fn open(path: Vec<u8>, stat: Stat, io: &mut impl Io) -> Result<Self, (Vec<u8>, FileFailure)> {
        match io.entries(&path) {
            Ok(entries) => {
                let batch = Vec::new();
                Ok(Self {
                    path,
                    stat,
                    entries,
                    batch,
                    has_more: true,
                    failure: None,
                    is_top: false,
                })
            }
            Err(failure) => Err((path, failure)),
        }
    }

    fn next(&mut self) -> Option<(Vec<u8>, Stat)> {
        while self.batch.is_empty() && self.has_more {
            let taken = self.entries.take(BATCH, &mut self.batch);
            self.has_more = taken.unwrap_or_else(|failure| {
                self.failure = Some(failure);
                false
            });
        }
        self.batch.pop()
    }

    fn inside(&self, name: &[u8]) -> Vec<u8> {
        join(&self.path, name)
    }
}

/// The path of an entry.
fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    debug_assert!(!name.contains(&b'/') && !matches!(name, b"." | b".."), "an entry is inside");
    let slash: &[u8] = if directory.ends_with(b"/") { b"" } else { b"/" };
    [directory, slash, name].concat()
}

impl FileWork {
    /// Begins to remove the directory that the request named.
    pub(super) fn remove_tree(&mut self, path: Vec<u8>, io: &mut impl Io) {
        match TreeWalk::open(path, Stat::default(), io) {
            Ok(walk) => self.acts.push(Act::Remove(TreeWalk { is_top: true, ..walk })),
            Err((path, failure)) => self.fail_as(&path, failure, 404),
        }
    }

    /// Removes one entry, or the directory if it is empty.
    pub(super) fn remove_on(&mut self, mut walk: TreeWalk, io: &mut impl Io) {
        let Some((name, stat)) = walk.next() else {
            let Err(failure) = io.remove_directory(&walk.path) else { return };
            return match walk.is_top {
                true => self.fail_as(&walk.path, failure, 404),
                false => self.log_failure(LogLevel::Crit, &walk.path, failure),
            };
        };
        let path = walk.inside(&name);
        self.acts.push(Act::Remove(walk));
        if !stat.is_dir {
            if let Err(failure) = io.unlink(&path) {
                self.log_failure(LogLevel::Crit, &path, failure);
            }
        } else if let Some(inner) = self.enter(path, stat, io) {
            self.acts.push(Act::Remove(inner));
        }
    }

    /// Begins to copy the entries of `from` to `to`, which exists.
    pub(super) fn copy_tree(&mut self, from: Vec<u8>, to: &[u8], io: &mut impl Io) {
        let made = io.stat_link(to);
        self.made = made.ok().map(|stat| (stat.device, stat.inode));
        let stat = stat_as_named(&from, io).unwrap_or_default();
        match TreeWalk::open(from, stat, io) {
            Ok(walk) => self.acts.push(Act::CopyTree(walk, to.to_vec())),
            Err((path, failure)) => self.fail_as(&path, failure, 404),
        }
    }

    /// Copies one entry; after the last one, sets the directory's time.
    pub(super) fn copy_tree_on(&mut self, mut walk: TreeWalk, to: Vec<u8>, io: &mut impl Io) {
        let Some((name, stat)) = walk.next() else {
            if let Some(failure) = walk.failure {
                self.is_partial = true;
                self.log_failure(LogLevel::Error, &walk.path, failure);
            }
            if let Err(failure) = io.set_modified(&to, walk.stat.mtime_seconds) {
                self.log_failure(LogLevel::Alert, &to, failure);
            }
            return;
        };
        let (path, target) = (walk.inside(&name), join(&to, &name));
        self.acts.push(Act::CopyTree(walk, to));
        if stat.is_regular {
            self.copy_file(&path, target, None, io);
        } else if !stat.is_dir {
            // A link may lead anywhere. A move then leaves the source complete.
            self.is_partial |= self.moves();
        } else if self.made != Some((stat.device, stat.inode)) {
            if let Err(failure) = io.make_directory(&target, stat.mode & 0o777) {
                self.is_partial = true;
                return self.log_failure(LogLevel::Error, &target, failure);
            }
            match self.enter(path, stat, io) {
                Some(inner) => self.acts.push(Act::CopyTree(inner, target)),
                None => self.is_partial = true,
            }
        }
    }

    fn moves(&self) -> bool {
        self.acts.iter().any(|act| matches!(act, Act::RemoveSource(_)))
    }

    fn enter(&mut self, path: Vec<u8>, stat: Stat, io: &mut impl Io) -> Option<TreeWalk> {
        if self.acts.len() >= DEPTH_MAX {
            let failure = FileFailure { errno: ELOOP, call: "opendir" };
            self.log_failure(LogLevel::Crit, &path, failure);
            return None;
        }
        match TreeWalk::open(path, stat, io) {
            Ok(walk) => Some(walk),
            Err((path, failure)) => {
                self.log_failure(LogLevel::Crit, &path, failure);
                None
            }
        }
    }
}
