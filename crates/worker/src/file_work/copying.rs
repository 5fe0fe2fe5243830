//! Copies a file: to a temporary file in the destination directory, which is renamed at the end.

use bolide_base::FileRef;
use bolide_base::errno::{EEXIST, ENOENT};
use bolide_conf::model::LogLevel;
use bolide_io::{FileFailure, Io, OpenRequest, Stat, SymlinkRule};

use super::{Act, FileWork, parent};

/// Bytes copied in one step.
const PIECE: usize = 64 * 1024;
/// Names that are tried for one file.
const NAMES_TRIED: u64 = 64;

/// A copy in progress.
#[derive(Debug)]
pub(super) struct Copying {
    source: FileRef,
    target: FileRef,
    /// The path of the temporary file.
    temporary: Vec<u8>,
    /// The final path.
    to: Vec<u8>,
    at: u64,
    /// The modification time of the copy.
    modified: Option<i64>,
    /// The source's path, if it has to be removed.
    from: Option<(Vec<u8>, SourceFate)>,
}

/// When the source of a move is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceFate {
    /// When the copy has its final name.
    Moves,
    /// In any case.
    Temporary,
}

impl Copying {
    /// Removes the incomplete copy, and a temporary source.
    pub(super) fn give_up(self, io: &mut impl Io) {
        if let Some(path) = self.name(io) {
            let _ = io.unlink(&path);
        }
        if let Some((path, SourceFate::Temporary)) = self.from {
            let _ = io.unlink(&path);
        }
    }

    /// The current path of the copy: another request may have renamed a directory above it, and the
    /// old path may belong to another copy.
    fn name(&self, io: &mut impl Io) -> Option<Vec<u8>> {
        if self.has_name(&self.temporary, io) {
            return Some(self.temporary.clone());
        }
        let name = io.name_of(&self.target)?;
        self.has_name(&name, io).then_some(name)
    }

    fn has_name(&self, name: &[u8], io: &mut impl Io) -> bool {
        match (io.stat(&self.target), io.stat_link(name)) {
            (Ok(own), Ok(found)) => (own.device, own.inode) == (found.device, found.inode),
            _ => false,
        }
    }
}

impl FileWork {
    /// Begins to copy a regular file; `over` is the existing target.
    pub(super) fn copy_file(
        &mut self,
        from: &[u8],
        to: Vec<u8>,
        over: Option<Stat>,
        io: &mut impl Io,
    ) {
        // It may have become a link since it was checked.
        let symlinks = SymlinkRule::Refuse { from: parent(from).len() };
        let request = OpenRequest { path: from, symlinks, content_max: 0, stat_only: false };
        let (source, stat) = match io.open(&request) {
            Ok(opened) => match opened.file {
                Some(file) => (file, opened.stat),
                None => return self.fail_copy(from, FileFailure { errno: 22, call: "open" }),
            },
            Err(failure) => return self.fail_copy(from, failure),
        };
        self.copy_open(source, &stat, to, over, io);
    }

    /// As [`Self::copy_file`] for an open file.
    fn copy_open(
        &mut self,
        source: FileRef,
        stat: &Stat,
        to: Vec<u8>,
        over: Option<Stat>,
        io: &mut impl Io,
    ) {
        let (temporary, target) = match create_beside(&to, stat, io) {
            Ok(made) => made,
            Err(failure) => return self.fail_copy(&to, failure),
        };
        let modified = Some(stat.mtime_seconds);
        let copying = Copying { source, target, temporary, to, at: 0, modified, from: None };
        // As if its bytes had been replaced.
        if let Some(over) = over.filter(|over| over.is_regular)
            && let Err(failure) = io.set_access(&copying.target, over.mode & 0o777)
        {
            self.fail_copy(&copying.to, failure);
            return copying.give_up(io);
        }
        self.acts.push(Act::Copy(copying));
    }

    /// Begins to move a file to another file system; the source is removed at the end.
    pub(super) fn carry(
        &mut self,
        (from, fate): (&[u8], SourceFate),
        file: FileRef,
        to: Vec<u8>,
        modified: Option<i64>,
        io: &mut impl Io,
    ) {
        let made = io.stat(&file).and_then(|stat| {
            let (temporary, target) = create_beside(&to, &stat, io)?;
            match io.set_access(&target, stat.mode & 0o777) {
                Ok(()) => Ok((temporary, target)),
                Err(failure) => {
                    let _ = io.unlink(&temporary);
                    Err(failure)
                }
            }
        });
        match made {
            Ok((temporary, target)) => self.acts.push(Act::Copy(Copying {
                source: file,
                target,
                temporary,
                to,
                at: 0,
                modified,
                from: Some((from.to_vec(), fate)),
            })),
            Err(failure) => {
                self.fail_copy(&to, failure);
                if fate == SourceFate::Temporary {
                    let _ = io.unlink(from);
                }
            }
        }
    }

    /// Copies a piece; after the last one, renames the copy.
    pub(super) fn copy_on(&mut self, mut copying: Copying, io: &mut impl Io) {
        debug_assert!(
            !self.acts.iter().any(|act| matches!(act, Act::Copy(_))),
            "one file at a time"
        );
        match copy_piece(&mut copying, io) {
            Ok(true) => self.acts.push(Act::Copy(copying)),
            Ok(false) => {
                if let Some((path, fate)) = &copying.from
                    && let Err(failure) = io.unlink(path)
                {
                    self.log_failure(LogLevel::Crit, path, failure);
                    // A source that could not be removed was not moved.
                    if *fate == SourceFate::Moves {
                        self.fail(500);
                    }
                }
            }
            Err(failure) => {
                self.fail_copy(&copying.to, failure);
                copying.give_up(io);
            }
        }
    }

    /// A file of a tree is skipped; if the request is about this file alone, it fails.
    fn fail_copy(&mut self, path: &[u8], failure: FileFailure) {
        self.log_failure(LogLevel::Crit, path, failure);
        self.is_partial = true;
    }
}

/// Copies a piece; returns whether there is more.
fn copy_piece(copying: &mut Copying, io: &mut impl Io) -> Result<bool, FileFailure> {
    let mut buffer = vec![0; PIECE];
    let read = io.read(&copying.source, copying.at, &mut buffer)?;
    io.write_all_at(&copying.target, &mut copying.at, &buffer[..read])?;
    if read > 0 {
        return Ok(true);
    }
    if !copying.has_name(&copying.temporary, io) {
        return Err(FileFailure { errno: ENOENT, call: "rename" });
    }
    if let Some(modified) = copying.modified {
        io.set_modified(&copying.temporary, modified)?;
    }
    debug_assert_ne!(copying.temporary, copying.to, "a copy is complete before it has its name");
    io.rename(&copying.temporary, &copying.to)?;
    Ok(false)
}

/// Creates a file in the directory of `to`, with the permissions of the source.
fn create_beside(
    to: &[u8],
    stat: &Stat,
    io: &mut impl Io,
) -> Result<(Vec<u8>, FileRef), FileFailure> {
    let mut tried = 0;
    loop {
        let number = (stat.inode + tried) % 10_000_000_000;
        let path = [to, format!(".{number:010}").as_bytes()].concat();
        match io.create(&path, stat.mode & 0o777) {
            Ok(file) => return Ok((path, file)),
            Err(failure) if failure.errno == EEXIST && tried < NAMES_TRIED => tried += 1,
            Err(failure) => return Err(failure),
        }
    }
}
