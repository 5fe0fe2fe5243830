//! The private directory of a running server: sockets and files of its pools. A lock marks it as in
//! use, which distinguishes the leftovers of a killed server.

use std::fmt;
use std::fs::{self, File};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How its name begins.
const PREFIX: &str = "bolide-";
/// The file whose lock marks a live server; its open descriptor shows others where the directory
/// is.
const LOCK: &str = "bolide.lock";
/// The socket for commands.
const CONTROL: &str = "control";

/// The directory. It is removed when dropped.
#[derive(Debug)]
pub(crate) struct Runtime {
    path: PathBuf,
    _lock: File,
}

impl Runtime {
    /// Makes the directory, and removes those of dead servers.
    ///
    /// # Errors
    ///
    /// No place allows it.
    pub(crate) fn create() -> std::result::Result<Self, String> {
        let mut last = String::new();
        for base in places() {
            sweep(&base);
            match Self::below(&base) {
                Ok(made) => return Ok(made),
                Err(error) => {
                    last = format!("mkdir() below \"{}\" failed ({error})", base.display());
                }
            }
        }
        Err(last)
    }

    fn below(base: &Path) -> Result<Self> {
        let pid = std::process::id();
        for n in 0..1000 {
            let path = base.join(format!("{PREFIX}{pid}-{n}"));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            // Workers and pools of other accounts pass through; they cannot list it, and each file
            // in it is accessible to its owner only.
            let mode = if bolide_io::process::is_root() { 0o711 } else { 0o700 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
            let mut lock = File::options();
            // Any process that can open it can lock it.
            let lock = lock.create_new(true).append(true).mode(0o600).open(path.join(LOCK))?;
            // Another server that starts now may have removed it as a leftover.
            if lock.try_lock().is_ok() && path.join(LOCK).exists() {
                return Ok(Self { path, _lock: lock });
            }
        }
        Err(Error::from(ErrorKind::AlreadyExists))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The socket for commands.
    pub(crate) fn control(&self) -> PathBuf {
        self.path.join(CONTROL)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // The next server sweeps files that cannot be removed now.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// How long to wait for a server that has just started: its pid is known before its socket.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(20);

/// Why the command socket of a running process is not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoControl {
    /// The process has ended.
    Ended,
    /// It belongs to another account.
    Foreign,
    /// It has none: its directory was removed, or it is another program.
    Missing,
}

impl fmt::Display for NoControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "does not run",
            Self::Foreign => "is not ours to command: its owner or root may",
            Self::Missing => {
                "has no command socket: it is another program, or its directory was removed"
            }
        })
    }
}

/// The command socket of the running server `pid`.
///
/// # Errors
///
/// It cannot be found.
#[expect(clippy::disallowed_methods, reason = "a command is a process of its own")]
pub(crate) fn control_of(pid: u32) -> std::result::Result<PathBuf, NoControl> {
    let own = format!("{PREFIX}{}-", own_pid(pid));
    let mut waited = Duration::ZERO;
    loop {
        let open = fs::read_dir(format!("/proc/{pid}/fd"));
        let open = open.map_err(|_| match bolide_io::process::is_running(pid) {
            true => NoControl::Foreign,
            false => NoControl::Ended,
        })?;
        // A server that starts also opens the locks of others, to see whether they still run.
        let is_own = |path: &Path| {
            let directory = path.parent().and_then(Path::file_name);
            directory.is_some_and(|name| name.to_string_lossy().starts_with(&own))
        };
        let lock = open
            .flatten()
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .find(|path| path.file_name().is_some_and(|name| name == LOCK) && is_own(path));
        let control = lock.map(|lock| lock.with_file_name(CONTROL));
        if waited >= PATIENCE || control.as_ref().is_some_and(|path| path.exists()) {
            return control.ok_or(NoControl::Missing);
        }
        std::thread::sleep(PAUSE);
        waited += PAUSE;
    }
}

/// What the process calls itself: it may live in a pid namespace of its own.
fn own_pid(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    pids.and_then(|pids| pids.split_whitespace().last()?.parse().ok()).unwrap_or(pid)
}

/// Connects to the command socket of the running server `pid`, which may not listen on it yet.
#[expect(clippy::disallowed_methods, reason = "a command is a process of its own")]
pub(crate) fn connect(pid: u32, control: &Path) -> Result<UnixStream> {
    let mut waited = Duration::ZERO;
    loop {
        match UnixStream::connect(control) {
            Err(error)
                if error.kind() == ErrorKind::ConnectionRefused
                    && waited < PATIENCE
                    && bolide_io::process::is_running(pid) =>
            {
                std::thread::sleep(PAUSE);
                waited += PAUSE;
            }
            done => return done,
        }
    }
}

/// Candidates for the parent of the directory, best first.
#[expect(clippy::disallowed_methods, reason = "it is no test's directory")]
fn places() -> Vec<PathBuf> {
    let mut all = Vec::new();
    if bolide_io::process::is_root() {
        all.push(PathBuf::from("/run"));
    } else {
        all.extend(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from));
    }
    all.push(std::env::temp_dir());
    all
}

/// Removes the leftovers of our own killed servers.
fn sweep(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    let Ok(own) = fs::metadata("/proc/self").map(|me| me.uid()) else { return };
    for entry in entries.flatten() {
        let is_named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // No other user writes in our own directories, but all users may in `base`.
        let is_own = || entry.metadata().is_ok_and(|at| at.is_dir() && at.uid() == own);
        if !is_named || !is_own() {
            continue;
        }
        let lock = File::options().append(true).open(entry.path().join(LOCK));
        if let Ok(lock) = lock
            && lock.try_lock().is_ok()
        {
            // Another sweep may have removed it at the same time. The lock is held meanwhile: a
            // server that has just made this directory must not take it for its own.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{File, LOCK, NoControl, Runtime, sweep};
    use std::fs;
    use std::os::unix::fs::{chown, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_command_finds_no_other_server_by_a_lock_that_is_looked_at() {
        let base = bolide_testkit::site::temp_dir();
        let pid = std::process::id();
        let open = |name: String| {
            let directory = base.join(name);
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join(super::CONTROL), "").unwrap();
            fs::write(directory.join(LOCK), "").unwrap();
            File::options().read(true).open(directory.join(LOCK)).unwrap()
        };
        // The first descriptor that is found leads to another server.
        let _other = open(format!("bolide-{}-0", pid + 1));
        let _own = open(format!("bolide-{pid}-0"));
        let found = super::control_of(pid).unwrap();
        assert_eq!(found, base.join(format!("bolide-{pid}-0")).join(super::CONTROL));
    }

    #[test]
    fn a_command_does_not_wait_for_a_dead_server() {
        let path = bolide_testkit::site::temp_dir().join("control");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let refused = super::connect(999_999_999, &path).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_command_says_why_it_finds_no_socket() {
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(super::control_of(other.id()), Err(NoControl::Missing));
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(super::control_of(999_999_999), Err(NoControl::Ended));
    }

    #[test]
    fn servers_that_start_together_remove_nothing_of_one_another() {
        let base = bolide_testkit::site::temp_dir();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _over = bolide_testkit::SetOnDrop(&is_over);
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        sweep(&base);
                    }
                });
            }
            for _ in 0..5 {
                let make = |_| {
                    let made = Runtime::below(&base).unwrap();
                    fs::write(made.control(), "").unwrap();
                    made
                };
                let all: Vec<Runtime> = (0..100).map(make).collect();
                for made in &all {
                    assert!(made.path().join(LOCK).exists(), "{}", made.path().display());
                }
            }
        });
    }

    #[test]
    fn only_our_own_unlocked_directories_are_swept() {
        let base = bolide_testkit::site::temp_dir();
        let make = |name: &str| {
            fs::create_dir(base.join(name)).unwrap();
            fs::write(base.join(name).join(LOCK), "").unwrap();
        };
        ["bolide-1-0", "bolide-2-0", "bolide-3-0", "other"].iter().for_each(|name| make(name));
        let held = File::options().read(true).open(base.join("bolide-2-0").join(LOCK)).unwrap();
        held.lock().unwrap();
        symlink(base.join("other"), base.join("bolide-4-0")).unwrap();
        let is_root = bolide_io::process::is_root();
        if is_root {
            chown(base.join("bolide-3-0"), Some(65_534), None).unwrap();
        }
        sweep(&base);
        let mut left: Vec<_> = fs::read_dir(&base)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "bolide-3-0" || !is_root)
            .collect();
        left.sort();
        assert_eq!(left, ["bolide-2-0", "bolide-4-0", "other"]);
        assert_eq!(base.join("bolide-3-0").exists(), is_root, "what is somebody else's stays");
    }
}
