//! Moves a temporary file to its path: by renaming, or by a copy if that is on another file system.

use bolide_base::errno::{EEXIST, EISDIR, ENOENT, EXDEV};
use bolide_conf::model::{FileAccess, LogLevel};
use bolide_engine::FilePlacement;
use bolide_io::{FileFailure, Io, OpenRequest, SymlinkRule};

use super::copying::SourceFate;
use super::{FileWork, errno_text};

impl FileWork {
    /// Moves a file to its path.
    pub(super) fn place(&mut self, placement: FilePlacement, io: &mut impl Io) {
        let FilePlacement { temporary, file, to, access, modified, makes_directories } = placement;
        self.status = match kind_at(&to, io) {
            None => 201,
            Some(false) => 204,
            Some(true) => {
                let text =
                    [b"\"", &to[..], b"\" could not be created ", &errno_text(EISDIR)].concat();
                let _ = io.unlink(&temporary);
                return self.refuse(409, text);
            }
        };
        let prepared = io.set_access(&file, access.file()).and_then(|()| match modified {
            Some(seconds) => io.set_modified(&temporary, seconds),
            None => Ok(()),
        });
        let placed = prepared.map_err(|failure| (failure, None)).and_then(|()| {
            let directories = makes_directories.then_some(access);
            rename(&temporary, &to, directories, io).map_err(|failure| (failure, Some(())))
        });
        match placed {
            Ok(()) => {}
            Err((failure, Some(()))) if failure.errno == EXDEV => {
                self.carry((&temporary, SourceFate::Temporary), file, to, modified, io);
            }
            Err((failure, Some(()))) if failure.call == "rename" => {
                self.fail_rename(&temporary, &to, failure);
                let _ = io.unlink(&temporary);
            }
            Err((failure, at)) => {
                let path = if at.is_some() { &to[..] } else { &temporary };
                self.log_failure(LogLevel::Crit, path, failure);
                let _ = io.unlink(&temporary);
                self.fail(500);
            }
        }
    }

    /// Handles a failed rename.
    pub(super) fn fail_rename(&mut self, from: &[u8], to: &[u8], failure: FileFailure) {
        let words = errno_text(failure.errno);
        let text = [b"rename() \"", from, b"\" to \"", to, b"\" failed ", &words].concat();
        self.note(LogLevel::Crit, text);
        self.fail(500);
    }
}

/// Whether a directory is there; `None` if nothing is.
fn kind_at(path: &[u8], io: &mut impl Io) -> Option<bool> {
    let symlinks = SymlinkRule::Follow;
    let found = io.open(&OpenRequest { path, symlinks, content_max: 0, stat_only: true });
    found.ok().map(|found| found.stat.is_dir)
}

/// Renames a file; creates missing directories if their permissions are given.
pub(super) fn rename(
    from: &[u8],
    to: &[u8],
    directories: Option<FileAccess>,
    io: &mut impl Io,
) -> Result<(), FileFailure> {
    match (io.rename(from, to), directories) {
        (Err(failure), Some(access)) if failure.errno == ENOENT => {
            make_directories(to, access, io)?;
            io.rename(from, to)
        }
        (renamed, _) => renamed,
    }
}

/// Creates the directories of `path`.
fn make_directories(path: &[u8], access: FileAccess, io: &mut impl Io) -> Result<(), FileFailure> {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').skip(1);
    for (slash, _) in ends {
        match io.make_directory(&path[..slash], access.directory()) {
            Err(failure) if failure.errno != EEXIST && failure.errno != super::EACCES => {
                return Err(failure);
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}
