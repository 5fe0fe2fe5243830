//! The state of a pool, as text and as JSON.

use std::fmt;
use std::path::PathBuf;

use super::demand::PoolLoad;

/// The state of a pool.
#[derive(Clone, Debug)]
pub(crate) struct PoolReport {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) state: PoolState,
    pub(crate) pid: Option<u32>,
    pub(crate) children: usize,
    pub(crate) children_max: u32,
    /// The age of its process.
    pub(crate) seconds: u64,
    /// Starts in a row that failed.
    pub(crate) failures: u32,
    /// Processes that ended unexpectedly.
    pub(crate) ended: u64,
    /// Older processes that finish their requests.
    pub(crate) finishing: usize,
    pub(crate) is_configured: bool,
    pub(crate) load: PoolLoad,
    /// Requests that may wait.
    pub(crate) queue_max: u32,
    /// All its masters, those that finish included.
    pub(crate) masters: Vec<u32>,
}

/// The state of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolState {
    Running,
    Starting,
    /// It has no process until a request comes.
    Idle,
    Down,
}

impl PoolState {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Down => "down",
        }
    }
}

impl fmt::Display for PoolReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, state, program) = (&self.name, self.state.word(), self.program.display());
        write!(f, "{name}: {state}, {program}")?;
        match self.pid {
            Some(pid) => {
                let (children, max, seconds) = (self.children, self.children_max, self.seconds);
                write!(f, " pid {pid}, {children} of {max} children, {seconds} s")?;
            }
            None if self.state == PoolState::Idle => f.write_str(", no process")?,
            None => write!(f, ", failed {} times in a row", self.failures)?,
        }
        if self.ended > 0 {
            write!(f, ", ended {} times", self.ended)?;
        }
        if self.finishing > 0 {
            write!(f, ", {} finishing", self.finishing)?;
        }
        if !self.is_configured {
            f.write_str(", no longer configured")?;
        }
        Ok(())
    }
}
