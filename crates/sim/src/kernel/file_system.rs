//! The rules of `rename`, `mkdir`, `rmdir` and `unlink` for the files of WebDAV and stored
//! responses.
//!
//! Each change is recorded in the history of its path. A part of the tree, and request bodies, may
//! be on another file system.

use bolide_base::errno::{
    EBUSY, EEXIST, EINVAL, EISDIR, ENOENT, ENOSPC, ENOTDIR, ENOTEMPTY, EXDEV,
};
use bolide_io::FileFailure;

use super::Kernel;
use super::disk::{EPOCH_SECONDS, PathState, SimDisk};
use crate::webdav::request::MOUNT;

/// Whether a path is that of a WebDAV file or of a stored response.
#[must_use]
pub fn is_dav(path: &str) -> bool {
    ["/dav", "/store"].iter().any(|top| {
        path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Whether a path is that of an incomplete copy.
#[must_use]
pub fn is_partial_copy(path: &str) -> bool {
    let end = path.rsplit_once('.').map_or("", |(_, end)| end);
    is_dav(path) && end.len() == 10 && end.bytes().all(|byte| byte.is_ascii_digit())
}

impl Kernel {
    /// Injects errors of the disk for request bodies and WebDAV.
    pub(crate) fn body_fault(&mut self, call: &'static str) -> Result<(), FileFailure> {
        if !self.chance.one_in(self.fault_rates.spool_in) {
            return Ok(());
        }
        self.fault_record.temp_file_errors += 1;
        self.trace(|| format!("{call} for a body: ENOSPC"));
        Err(FileFailure { errno: ENOSPC, call })
    }

    /// Runs a call for a WebDAV path, or injects an error.
    pub(crate) fn call_dav(
        &mut self,
        call: &'static str,
        act: impl FnOnce(&mut SimDisk, u64) -> Result<(), i32>,
    ) -> Result<(), FileFailure> {
        self.body_fault(call)?;
        let nanos = self.nanos;
        act(&mut self.disk, nanos).map_err(|errno| FileFailure { errno, call })
    }
}

impl SimDisk {
    /// Creates a directory.
    pub(crate) fn dav_mkdir(&mut self, path: &str, now: u64) -> Result<(), i32> {
        self.check_parents(path)?;
        if !matches!(self.lookup(path), PathState::Absent) {
            return Err(EEXIST);
        }
        self.add_directory(path, now);
        Ok(())
    }

    /// Removes an empty directory.
    pub(crate) fn dav_rmdir(&mut self, path: &str, now: u64) -> Result<(), i32> {
        self.check_directory(path)?;
        if self.has_mount && path == MOUNT {
            return Err(EBUSY);
        }
        if !self.entries(path).is_empty() {
            return Err(ENOTEMPTY);
        }
        self.remove_directory(path);
        self.record_state(path, now, PathState::Absent);
        Ok(())
    }

    /// Removes a file.
    pub(crate) fn dav_unlink(&mut self, path: &str, now: u64) -> Result<(), i32> {
        match self.lookup(path) {
            PathState::Directory => Err(EISDIR),
            PathState::File(_) => {
                self.remove(path, now);
                Ok(())
            }
            _ => Err(ENOENT),
        }
    }

    /// Renames a file or a directory.
    pub(crate) fn dav_rename(&mut self, from: &str, to: &str, now: u64) -> Result<(), i32> {
        self.check_parents(from)?;
        self.check_parents(to)?;
        let (source, target) = (self.lookup(from), self.lookup(to));
        let is_directory = match (source, target) {
            (PathState::Absent | PathState::Failed(_), _) => return Err(ENOENT),
            (PathState::File(_), PathState::Directory) => return Err(EISDIR),
            (PathState::Directory, PathState::File(_)) => return Err(ENOTDIR),
            (PathState::Directory, _) => true,
            (PathState::File(_), _) => false,
        };
        if self.has_mount && [from, to].contains(&MOUNT) {
            return Err(EBUSY);
        }
        if self.device(from) != self.device(to) {
            return Err(EXDEV);
        }
        if !is_directory {
            self.move_file(from, to, now);
            return Ok(());
        }
        let start = format!("{from}/");
        if to.starts_with(&start) {
            return Err(EINVAL);
        }
        if !self.entries(to).is_empty() {
            return Err(ENOTEMPTY);
        }
        self.remove_directory(to);
        for directory in self.directories_from(from) {
            self.remove_directory(&directory);
            self.record_state(&directory, now, PathState::Absent);
            self.add_directory(&format!("{to}{}", &directory[from.len()..]), now);
        }
        let inner: Vec<String> = self.below(&start).map(str::to_owned).collect();
        for path in inner {
            self.move_file(&path, &format!("{to}{}", &path[from.len()..]), now);
        }
        Ok(())
    }

    fn move_file(&mut self, from: &str, to: &str, now: u64) {
        self.rename(from, to);
        self.record_state(from, now, PathState::Absent);
        let seen = self.lookup(to);
        self.record_state(to, now, seen);
    }

    /// Sets the modification time of a file.
    pub(crate) fn dav_touch(&mut self, path: &str, seconds: i64) {
        let number = self.paths.get(path);
        if let Some(inode) = number.and_then(|number| self.inodes.get_mut(number)) {
            let since = seconds.unsigned_abs().saturating_sub(EPOCH_SECONDS);
            inode.content.modified = since * 1_000_000_000;
        }
    }

    /// Whether a directory exists; else the error of a call for it.
    pub(crate) fn check_directory(&self, path: &str) -> Result<(), i32> {
        self.check_parents(path)?;
        match self.lookup(path) {
            PathState::Directory => Ok(()),
            PathState::File(_) => Err(ENOTDIR),
            _ => Err(ENOENT),
        }
    }

    /// Whether all parents of a path are directories; else the error of a call for it.
    pub(crate) fn check_parents(&self, path: &str) -> Result<(), i32> {
        let above = path.match_indices('/').skip(1).map(|(at, _)| &path[..at]);
        for above in above {
            match self.lookup(above) {
                PathState::Directory => {}
                PathState::File(_) => return Err(ENOTDIR),
                _ => return Err(ENOENT),
            }
        }
        Ok(())
    }

    fn device(&self, path: &str) -> u8 {
        match path {
            _ if !self.has_mount => 0,
            _ if path.starts_with("/bodies/") => 1,
            _ if path.starts_with("/dav/f/") => 2,
            _ => 0,
        }
    }
}
