//! The pid file: written when every socket listens, removed when the server ends.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bolide_base::errno::describe;

/// The extension of the file of a process whose successor has the name.
const OLD: &str = "oldbin";

/// A pid file that is removed when the server ends.
#[derive(Debug)]
pub(crate) struct PidFile {
    path: PathBuf,
}

impl PidFile {
    /// Writes our pid to `path`.
    ///
    /// # Errors
    ///
    /// In nginx's words.
    pub(crate) fn write(path: &Path) -> Result<Self, Vec<String>> {
        let failed = |error: std::io::Error| {
            vec![format!("open() \"{}\" failed ({})", path.display(), describe(&error))]
        };
        let text = format!("{}\n", std::process::id());
        bolide_io::file::replace_small(path, text.as_bytes()).map_err(failed)?;
        Ok(Self { path: path.to_path_buf() })
    }

    /// Writes our pid where a new configuration wants it; `None` when it is there already. The old
    /// file goes when the new one takes its place.
    ///
    /// # Errors
    ///
    /// In nginx's words.
    pub(crate) fn written_to(&self, path: &Path) -> Result<Option<Self>, Vec<String>> {
        // As long as a successor has the name, ours has another one.
        let is_ours = self.path == path || self.path.with_extension("") == path;
        if is_ours { Ok(None) } else { Self::write(path).map(Some) }
    }

    /// Replaces our file by that of a new configuration. Our file is removed, unless both names,
    /// one maybe through symbolic links, lead to one file.
    pub(crate) fn give_way(&mut self, newer: Self) {
        let file = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let ours = std::fs::symlink_metadata(&self.path).ok().map(file);
        let theirs = std::fs::metadata(&newer.path).ok().map(file);
        let older = std::mem::replace(self, newer);
        if ours.is_some() && ours == theirs {
            older.forget();
        }
    }

    /// Drops the file of a refused configuration; it stays if it is ours by another name.
    pub(crate) fn keep_from(&self, newer: Self) {
        let file = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let ours = std::fs::metadata(&self.path).ok().map(file);
        let theirs = std::fs::metadata(&newer.path).ok().map(file);
        if ours.is_some() && ours == theirs {
            newer.forget();
        }
    }

    /// Leaves the file to its other owner.
    fn forget(mut self) {
        self.path.clear();
    }

    /// Makes room for a successor's file: ours becomes `PATH.oldbin`.
    ///
    /// # Errors
    ///
    /// The file system refuses.
    pub(crate) fn step_aside(&mut self) -> std::io::Result<()> {
        let aside = aside(&self.path);
        bolide_io::file::rename(&self.path, &aside)?;
        self.path = aside;
        Ok(())
    }

    /// Takes the name back from a successor that did not start.
    ///
    /// # Errors
    ///
    /// The file system refuses.
    pub(crate) fn step_back(&mut self) -> std::io::Result<()> {
        if self.path.extension() != Some(OLD.as_ref()) {
            return Ok(());
        }
        let name = self.path.with_extension("");
        bolide_io::file::rename(&self.path, &name)?;
        self.path = name;
        Ok(())
    }
}

/// The file of a process whose successor has `path`.
pub(crate) fn aside(path: &Path) -> PathBuf {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".");
    aside.push(OLD);
    aside.into()
}

/// Whether the pid file could be written; a file created for the check is removed.
///
/// # Errors
///
/// In nginx's words.
pub(crate) fn check(path: &Path) -> Result<(), Vec<String>> {
    let is_new = !path.exists();
    let opened = bolide_io::file::open_append(path.as_os_str().as_encoded_bytes());
    match opened {
        Ok(_) if is_new => {
            // A file that cannot be removed now is overwritten later.
            let _ = bolide_io::file::remove(path);
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(error) => {
            Err(vec![format!("open() \"{}\" failed ({})", path.display(), describe(&error))])
        }
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // A file that was removed already needs no removal.
        let _ = bolide_io::file::remove(&self.path);
    }
}
