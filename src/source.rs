//! The file system and the resolver for the configuration reader.

use std::ffi::OsString;
use std::io::Result;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

/// The directory of a file.
pub(crate) fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("/")).to_path_buf()
}

/// The files of this machine.
#[derive(Debug)]
pub(crate) struct DiskSource;

impl bolide_conf::ConfSource for DiskSource {
    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<OsString>> {
        std::fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
    }

    fn resolve(&self, host: &str) -> Vec<IpAddr> {
        let found = (host, 0).to_socket_addrs();
        found.map(|all| all.map(|at| at.ip()).collect()).unwrap_or_default()
    }
}
