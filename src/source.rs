//! Lends the file system to the configuration reader.

use std::io::Result;
use std::path::{Path, PathBuf};

/// The files of this machine.
#[derive(Debug)]
pub(crate) struct Disk;

impl conf::Source for Disk {
    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            names.push(entry?.path());
        }
        Ok(names)
    }
}
