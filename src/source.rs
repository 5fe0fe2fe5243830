//! The file system and the resolver for the configuration reader.

use std::ffi::OsString;
use std::io::{Error, ErrorKind, Result};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

/// The directory of a file.
pub(crate) fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("/")).to_path_buf()
}

/// LIMIT: bytes of one configuration file. A device may have no end.
const CONF_FILE_MAX: u64 = 64 << 20;

/// Reads a configuration file.
///
/// # Errors
///
/// The kernel's error, or the file is too large.
pub(crate) fn read_conf(path: &Path) -> Result<Vec<u8>> {
    bolide_io::file::read_bounded(path, CONF_FILE_MAX).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => {
            let text = format!("a configuration file has {} MiB at most", CONF_FILE_MAX >> 20);
            Error::new(ErrorKind::FileTooLarge, text)
        }
        _ => error,
    })
}

/// The files of this machine.
#[derive(Debug)]
pub(crate) struct DiskSource;

impl bolide_conf::ConfSource for DiskSource {
    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        read_conf(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<OsString>> {
        std::fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
    }

    fn resolve(&self, host: &str) -> Vec<IpAddr> {
        let found = (host, 0).to_socket_addrs();
        found.map(|all| all.map(|at| at.ip()).collect()).unwrap_or_default()
    }
}
