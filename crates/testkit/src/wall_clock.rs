//! A wall clock that one process has for itself, and that a test sets while the process runs.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::site;
use crate::tools::{finish, tool};

/// Stands between a process and the clock of the system.
const SHIM: &str = include_str!("wall_clock.c");

/// The clock of the processes that [`Self::words`] start. It begins as that of the system.
pub struct WallClock {
    dir: site::TempDir,
    told: File,
}

impl Default for WallClock {
    fn default() -> Self {
        let dir = site::TempDir::new();
        let told = File::create(dir.join("offset")).unwrap();
        let clock = Self { dir, told };
        clock.set(0);
        clock
    }
}

impl WallClock {
    /// The words to start a program by: see [`crate::server::Home::launched_by`].
    #[must_use]
    pub fn words(&self) -> [String; 3] {
        let offset = self.dir.join("offset");
        let preload = format!("LD_PRELOAD={}", shim().display());
        ["env".to_owned(), preload, format!("BOLIDE_TEST_CLOCK={}", offset.display())]
    }

    /// Sets it to this many seconds from the clock of the system.
    pub fn set(&self, seconds: i64) {
        let nanos = seconds * 1_000_000_000;
        self.told.write_all_at(&nanos.to_ne_bytes(), 0).unwrap();
    }
}

/// The shim, compiled once for all clocks of this process.
fn shim() -> PathBuf {
    static SHIM_BUILT: OnceLock<(site::TempDir, PathBuf)> = OnceLock::new();
    let (_dir, path) = SHIM_BUILT.get_or_init(|| {
        let dir = site::TempDir::new();
        let (source, built) = (dir.join("clock.c"), dir.join("clock.so"));
        fs::write(&source, SHIM).unwrap();
        let mut command = Command::new(tool("gcc"));
        command.args(["-O1", "-shared", "-fPIC", "-o"]).args([&built, &source]);
        let _quiet = finish("gcc", command, std::time::Duration::from_secs(60)).succeeded();
        (dir, built)
    });
    path.clone()
}
