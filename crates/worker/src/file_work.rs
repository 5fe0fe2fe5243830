//! File changes of WebDAV methods, in bounded steps.
//!
//! Owns the system calls, their order, and nginx's messages for errors. Easiest to break: a
//! symbolic link is removed or replaced, never followed; a file is complete before it has its name.

mod copying;
mod placing;
mod transfer;
mod tree;

use bolide_base::errno::{
    EACCES, EEXIST, EISDIR, ENAMETOOLONG, ENOENT, ENOSPC, ENOTDIR, EPERM, EXDEV,
};
use bolide_conf::model::LogLevel;
use bolide_engine::{DavDepth, FileChange, FileChangeKind, FileOutcome};
use bolide_files::SymlinkPolicy;
use bolide_io::{FileFailure, Io, OpenRequest};

use crate::look::symlink_rule;
use copying::Copying;
use tree::TreeWalk;

/// LIMIT: depth of directories; each open one needs a descriptor.
const DEPTH_MAX: usize = 256;
/// LIMIT: log lines of one change.
const NOTES_MAX: usize = 16;

/// A pending action; the last one is next.
#[derive(Debug)]
enum Act {
    /// The whole change.
    Start(FileChange),
    /// Remove a directory with its contents.
    Remove(TreeWalk),
    /// Copy the entries of a directory to another one.
    CopyTree(TreeWalk, Vec<u8>),
    /// Copy the bytes of a file.
    Copy(Copying),
    /// Give the copy of a directory its name, once the old target is gone.
    Transplant { from: Vec<u8>, to: Vec<u8>, moves: bool },
    /// Remove the source of a copy, if the copy is complete.
    RemoveSource(Vec<u8>),
}

/// A change in progress.
#[derive(Debug)]
pub(crate) struct FileWork {
    acts: Vec<Act>,
    notes: Vec<(LogLevel, Vec<u8>)>,
    status: u16,
    /// Whether a part of a tree could not be copied.
    is_partial: bool,
    /// Device and inode of the destination directory of a tree, which is not part of the tree.
    made: Option<(u64, u64)>,
}

impl FileWork {
    /// A change that has not begun.
    pub(crate) fn new(change: FileChange) -> Self {
        Self {
            acts: vec![Act::Start(change)],
            notes: Vec::new(),
            status: 204,
            is_partial: false,
            made: None,
        }
    }

    /// Performs at most this many steps; returns the outcome if that was all.
    pub(crate) fn go_on(&mut self, io: &mut impl Io, steps: usize) -> Option<FileOutcome> {
        debug_assert!(steps > 0, "a piece of a change is not empty");
        for _ in 0..steps {
            let Some(act) = self.acts.pop() else { return Some(self.outcome()) };
            match act {
                Act::Start(change) => self.start(change, io),
                Act::Remove(walk) => self.remove_on(walk, io),
                Act::CopyTree(walk, to) => self.copy_tree_on(walk, to, io),
                Act::Copy(copying) => self.copy_on(copying, io),
                Act::Transplant { from, to, moves } => self.transplant(&from, &to, moves, io),
                Act::RemoveSource(path) => self.remove_source(path, io),
            }
        }
        self.acts.is_empty().then(|| self.outcome())
    }

    /// Ends it before it is complete.
    pub(crate) fn give_up(mut self, io: &mut impl Io) -> FileOutcome {
        for act in std::mem::take(&mut self.acts) {
            match act {
                Act::Start(FileChange { kind: FileChangeKind::Place(placement), .. }) => {
                    let _ = io.unlink(&placement.temporary);
                }
                Act::Copy(copying) => copying.give_up(io),
                _ => {}
            }
        }
        self.note(LogLevel::Alert, b"too many changes of files wait".to_vec());
        self.fail(503);
        self.outcome()
    }

    fn outcome(&mut self) -> FileOutcome {
        debug_assert!(self.acts.is_empty(), "what came of a change is known at its end");
        let status = if self.is_partial && self.status < 300 { 500 } else { self.status };
        FileOutcome { status, notes: std::mem::take(&mut self.notes) }
    }

    fn start(&mut self, change: FileChange, io: &mut impl Io) {
        debug_assert!(change.kind.paths().0.starts_with(b"/"), "paths are absolute");
        if let Err(failure) = check_links(&change, io) {
            let (path, _) = change.kind.paths();
            self.log_failure(LogLevel::Error, path, failure);
            if let FileChangeKind::Place(placement) = &change.kind {
                let _ = io.unlink(&placement.temporary);
            }
            return self.fail(403);
        }
        match change.kind {
            FileChangeKind::Place(placement) => self.place(placement, io),
            FileChangeKind::Delete { path, depth } => self.delete(path, depth, io),
            FileChangeKind::MakeDirectory { path, access } => {
                match io.make_directory(&path, access.directory()) {
                    Ok(()) => self.status = 201,
                    Err(failure) => self.fail_as(&path, failure, 409),
                }
            }
            FileChangeKind::Copy(transfer) => self.transfer(transfer, false, io),
            FileChangeKind::Move(transfer) => self.transfer(transfer, true, io),
        }
    }

    fn delete(&mut self, path: Vec<u8>, depth: DavDepth, io: &mut impl Io) {
        let stat = match stat_as_named(&path, io) {
            Ok(stat) => stat,
            Err(failure) => {
                let absent = if failure.errno == ENOTDIR { 409 } else { 404 };
                return self.fail_as(&path, failure, absent);
            }
        };
        if !stat.is_dir {
            if matches!(depth, DavDepth::One | DavDepth::Invalid) {
                return self.refuse(400, b"\"Depth\" header must be 0 or infinity".to_vec());
            }
            if let Err(failure) = io.unlink(&path) {
                self.fail_as(&path, failure, 404);
            }
            return;
        }
        if !path.ends_with(b"/") {
            let text = [b"DELETE \"", &path[..], b"\" failed ", &errno_text(EISDIR)].concat();
            return self.refuse(409, text);
        }
        if !matches!(depth, DavDepth::Absent | DavDepth::Infinity) {
            return self.refuse(400, b"\"Depth\" header must be infinity".to_vec());
        }
        self.remove_tree(path, io);
    }

    /// Stops with this status.
    fn fail(&mut self, status: u16) {
        debug_assert!((400..600).contains(&status), "a change that fails is an error");
        self.status = status;
        self.acts.clear();
    }

    fn refuse(&mut self, status: u16, text: Vec<u8>) {
        self.note(LogLevel::Error, text);
        self.fail(status);
    }

    /// Stops with nginx's status for the kernel's error; `absent` if the file does not exist.
    fn fail_as(&mut self, path: &[u8], failure: FileFailure, absent: u16) {
        let (level, status) = status_of(failure.errno, absent);
        self.log_failure(level, path, failure);
        self.fail(status);
    }

    fn log_failure(&mut self, level: LogLevel, path: &[u8], failure: FileFailure) {
        let call = failure.call.as_bytes();
        let words = errno_text(failure.errno);
        self.note(level, [call, b"() \"", path, b"\" failed ", &words].concat());
    }

    fn note(&mut self, level: LogLevel, text: Vec<u8>) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push((level, text));
        }
    }
}

/// The level and status of an error.
const fn status_of(errno: i32, absent: u16) -> (LogLevel, u16) {
    match errno {
        ENOENT | ENOTDIR | ENAMETOOLONG => (LogLevel::Error, absent),
        EACCES | EPERM => (LogLevel::Error, 403),
        EEXIST => (LogLevel::Error, 405),
        ENOSPC => (LogLevel::Crit, 507),
        _ => (LogLevel::Crit, 500),
    }
}

/// `(2: No such file or directory)`
fn errno_text(errno: i32) -> Vec<u8> {
    format!("({})", bolide_base::errno::reason(errno)).into_bytes()
}

/// The attributes of a path. As for the kernel, a path with a final slash is a directory, but a
/// link to one is not.
fn stat_as_named(path: &[u8], io: &mut impl Io) -> Result<bolide_io::Stat, FileFailure> {
    let stat = io.stat_link(path)?;
    let bare = trimmed(path);
    if bare.len() < path.len() && stat.is_dir && !io.stat_link(bare)?.is_dir {
        return Err(FileFailure { errno: ENOTDIR, call: "lstat" });
    }
    Ok(stat)
}

/// A path without final slashes.
fn trimmed(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(1, |last| last + 1);
    &path[..end.min(path.len())]
}

/// The directory of a path.
fn parent(path: &[u8]) -> &[u8] {
    let bare = trimmed(path);
    let slash = bare.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    &path[..slash.max(1).min(path.len())]
}

/// Refuses symbolic links on a path by `disable_symlinks`.
fn check_links(change: &FileChange, io: &mut impl Io) -> Result<(), FileFailure> {
    if change.symlinks == SymlinkPolicy::Follow {
        return Ok(());
    }
    let (one, other) = change.kind.paths();
    for path in [Some(one), other].into_iter().flatten() {
        let path = parent(path);
        let symlinks = symlink_rule(change.symlinks);
        match io.open(&OpenRequest { path, symlinks, content_max: 0, stat_only: true }) {
            // A missing component is no link.
            Err(failure) if failure.errno != ENOENT => return Err(failure),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
