//! Names that change as a file system changes them; each change is recorded.
//!
//! Owns the rules of `rename`, `mkdir` and `rmdir` for the files of WebDAV and stored responses. A
//! part of the tree, and bodies in transit, may be on another file system.

use bolide_base::errno::{
    EBUSY, EEXIST, EINVAL, EISDIR, ENOENT, ENOSPC, ENOTDIR, ENOTEMPTY, EXDEV,
};
use bolide_io::FileFailure;

use super::Kernel;
use super::disk::{DiskSeen, EPOCH_SECONDS, SimDisk};

/// Where another file system may be.
pub const MOUNT: &str = "/dav/f";

/// Whether a path is one of those.
#[must_use]
pub fn is_dav(path: &str) -> bool {
    ["/dav", "/store"].iter().any(|top| {
        path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Whether it is where a copy is until it is complete.
#[must_use]
pub fn is_beside(path: &str) -> bool {
    let end = path.rsplit_once('.').map_or("", |(_, end)| end);
    is_dav(path) && end.len() == 10 && end.bytes().all(|byte| byte.is_ascii_digit())
}

impl Kernel {
    /// Errors of a disk that bodies are kept on under names.
    pub(crate) fn disturb_body(&mut self, call: &'static str) -> Result<(), FileFailure> {
        if !self.chance.one_in(self.faults.spool_in) {
            return Ok(());
        }
        self.deeds.full_disks += 1;
        self.tell(|| format!("{call} for a body: ENOSPC"));
        Err(FileFailure { errno: ENOSPC, call })
    }

    /// A call about one of those paths.
    pub(crate) fn call_dav(
        &mut self,
        call: &'static str,
        act: impl FnOnce(&mut SimDisk, u64) -> Result<(), i32>,
    ) -> Result<(), FileFailure> {
        self.disturb_body(call)?;
        let nanos = self.nanos;
        act(&mut self.disk, nanos).map_err(|errno| FileFailure { errno, call })
    }
}

impl SimDisk {
    /// Makes a directory.
    pub(crate) fn make_inside(&mut self, path: &str, now: u64) -> Result<(), i32> {
        self.check_way(path)?;
        if !matches!(self.look(path), DiskSeen::Absent) {
            return Err(EEXIST);
        }
        self.add_directory(path, now);
        Ok(())
    }

    /// Takes an empty directory away.
    pub(crate) fn remove_inside(&mut self, path: &str, now: u64) -> Result<(), i32> {
        self.check_directory(path)?;
        if self.is_apart && path == MOUNT {
            return Err(EBUSY);
        }
        if !self.entries(path).is_empty() {
            return Err(ENOTEMPTY);
        }
        self.remove_directory(path);
        self.note(path, now, DiskSeen::Absent);
        Ok(())
    }

    /// Takes the name of a file away.
    pub(crate) fn unlink_inside(&mut self, path: &str, now: u64) -> Result<(), i32> {
        match self.look(path) {
            DiskSeen::Directory => Err(EISDIR),
            DiskSeen::File(_) => {
                self.remove(path, now);
                Ok(())
            }
            _ => Err(ENOENT),
        }
    }

    /// Gives a file or a directory another name.
    pub(crate) fn move_inside(&mut self, from: &str, to: &str, now: u64) -> Result<(), i32> {
        self.check_way(from)?;
        self.check_way(to)?;
        let (source, target) = (self.look(from), self.look(to));
        let is_directory = match (source, target) {
            (DiskSeen::Absent | DiskSeen::Failed(_), _) => return Err(ENOENT),
            (DiskSeen::File(_), DiskSeen::Directory) => return Err(EISDIR),
            (DiskSeen::Directory, DiskSeen::File(_)) => return Err(ENOTDIR),
            (DiskSeen::Directory, _) => true,
            (DiskSeen::File(_), _) => false,
        };
        if self.is_apart && [from, to].contains(&MOUNT) {
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
            self.note(&directory, now, DiskSeen::Absent);
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
        self.note(from, now, DiskSeen::Absent);
        let seen = self.look(to);
        self.note(to, now, seen);
    }

    /// Sets when a file changed.
    pub(crate) fn touch_inside(&mut self, path: &str, seconds: i64) {
        let number = self.paths.get(path);
        if let Some(inode) = number.and_then(|number| self.inodes.get_mut(number)) {
            let since = seconds.unsigned_abs().saturating_sub(EPOCH_SECONDS);
            inode.content.modified = since * 1_000_000_000;
        }
    }

    /// Whether a directory is there.
    pub(crate) fn check_directory(&self, path: &str) -> Result<(), i32> {
        self.check_way(path)?;
        match self.look(path) {
            DiskSeen::Directory => Ok(()),
            DiskSeen::File(_) => Err(ENOTDIR),
            _ => Err(ENOENT),
        }
    }

    /// Whether directories lead to a path.
    pub(crate) fn check_way(&self, path: &str) -> Result<(), i32> {
        let above = path.match_indices('/').skip(1).map(|(at, _)| &path[..at]);
        for above in above {
            match self.look(above) {
                DiskSeen::Directory => {}
                DiskSeen::File(_) => return Err(ENOTDIR),
                _ => return Err(ENOENT),
            }
        }
        Ok(())
    }

    fn device(&self, path: &str) -> u8 {
        match path {
            _ if !self.is_apart => 0,
            _ if path.starts_with("/bodies/") => 1,
            _ if path.starts_with("/dav/f/") => 2,
            _ => 0,
        }
    }
}
