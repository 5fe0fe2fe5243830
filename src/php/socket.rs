//! The listening socket of a pool, which outlives the processes behind it.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use bolide_io::child;

use super::settle::{Settled, plain};

/// Clients that wait in the kernel beyond those that the pool counts: of another server that takes
/// over, of children that are being replaced.
const BACKLOG_SPARE: u32 = 64;

/// A listening socket with its path.
#[derive(Debug)]
pub(super) struct PoolSocket {
    path: PathBuf,
    /// `None` while no process can answer.
    pub(super) listener: Option<UnixListener>,
}

impl PoolSocket {
    /// Opens a socket for the workers only.
    ///
    /// # Errors
    ///
    /// In nginx's words.
    pub(super) fn open(path: PathBuf, settled: &Settled) -> Result<Self, String> {
        let mut socket = Self { path, listener: None };
        socket.listen(settled)?;
        Ok(socket)
    }

    /// Opens it again.
    ///
    /// # Errors
    ///
    /// In nginx's words.
    pub(super) fn listen(&mut self, settled: &Settled) -> Result<(), String> {
        let failed = |what: &str, path: &Path, error: &std::io::Error| {
            let why = bolide_base::errno::describe(error);
            format!("{what} to unix:{} failed ({why})", path.display())
        };
        let path = &self.path;
        let _ = fs::remove_file(path);
        let listener = UnixListener::bind(path).map_err(|error| failed("bind()", path, &error))?;
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(path, private)
            .and_then(|()| match settled.owner {
                Some((uid, gid)) => std::os::unix::fs::chown(path, Some(uid), Some(gid)),
                None => Ok(()),
            })
            .and_then(|()| child::set_backlog(&listener, backlog(settled)))
            .map_err(|error| failed("chown()", path, &error))?;
        self.listener = Some(listener);
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PoolSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Clients that may wait in the kernel.
pub(super) fn backlog(settled: &Settled) -> u32 {
    settled.children.saturating_add(settled.pool.queue.len).saturating_add(BACKLOG_SPARE)
}

/// The path of a pool's socket.
pub(super) fn socket_path(dir: &Path, name: &str, serial: u64) -> PathBuf {
    dir.join(format!("{}-{serial}.sock", plain(name)))
}
