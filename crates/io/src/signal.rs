//! Signals as values: blocked everywhere, taken one at a time by the control thread.

use std::os::fd::{AsRawFd, OwnedFd};

use crate::{Fd, sys};

/// The meaning of a signal for the server, as in nginx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// TERM, INT: stop now.
    Stop,
    /// QUIT: finish requests, then stop.
    Quit,
    /// HUP: reload the configuration.
    Reload,
    /// USR1: open the logs again.
    Reopen,
    /// USR2: start a successor.
    Upgrade,
    /// WINCH: accept no new connections.
    Drain,
    /// CHLD: a child ended.
    Child,
}

impl Signal {
    /// The kernel's number.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Stop => libc::SIGTERM,
            Self::Quit => libc::SIGQUIT,
            Self::Reload => libc::SIGHUP,
            Self::Reopen => libc::SIGUSR1,
            Self::Upgrade => libc::SIGUSR2,
            Self::Drain => libc::SIGWINCH,
            Self::Child => libc::SIGCHLD,
        }
    }

    /// The meaning of a signal with the kernel's number.
    const fn from_number(number: i32) -> Option<Self> {
        Some(match number {
            libc::SIGTERM | libc::SIGINT => Self::Stop,
            libc::SIGQUIT => Self::Quit,
            libc::SIGHUP => Self::Reload,
            libc::SIGUSR1 => Self::Reopen,
            libc::SIGUSR2 => Self::Upgrade,
            libc::SIGWINCH => Self::Drain,
            libc::SIGCHLD => Self::Child,
            _ => return None,
        })
    }
}

const ALL: [i32; 8] = [
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGCHLD,
];

/// Blocks the signals above in this thread and all threads it starts, and ignores SIGPIPE and
/// SIGXFSZ.
pub fn block() {
    sys::block_signals(&ALL);
}

/// The signals above as a watchable descriptor.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// Opens the descriptor; call [`block`] first.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn open() -> std::io::Result<Self> {
        sys::signal_fd(&ALL).map(Self)
    }

    /// The descriptor to watch.
    #[must_use]
    pub fn fd(&self) -> Fd {
        Fd(self.0.as_raw_fd())
    }

    /// Takes one pending signal.
    #[must_use]
    pub fn take(&self) -> Option<Taken> {
        let (number, sender) = sys::take_signal(self.0.as_raw_fd())?;
        Some(Taken { signal: Signal::from_number(number)?, number, sender })
    }
}

/// A received signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The signal.
    pub signal: Signal,
    /// The kernel's number: TERM and INT mean the same.
    pub number: i32,
    /// The sender's process ID; 0 for the kernel.
    pub sender: u32,
}

impl Taken {
    /// The signal's name, as `SIGHUP`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self.number {
            libc::SIGTERM => "SIGTERM",
            libc::SIGINT => "SIGINT",
            libc::SIGQUIT => "SIGQUIT",
            libc::SIGHUP => "SIGHUP",
            libc::SIGUSR1 => "SIGUSR1",
            libc::SIGUSR2 => "SIGUSR2",
            libc::SIGWINCH => "SIGWINCH",
            _ => "SIGCHLD",
        }
    }
}

/// Sends a signal to a process.
///
/// # Errors
///
/// No such process, or no permission.
pub fn send(pid: u32, signal: Signal) -> std::io::Result<()> {
    sys::kill(pid, signal.number())
}
