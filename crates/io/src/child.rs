//! Child processes that the server starts: each in its own process group with a clean state. The
//! kernel ends them when the server dies; they are reaped without waiting.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Fd, sys};

/// The account that a program runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildAccount {
    /// Its name, for the supplementary groups.
    pub name: String,
    /// User number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
}

/// A program to be started.
#[derive(Debug)]
pub struct SpawnOptions<'a> {
    /// Its path.
    pub program: &'a Path,
    /// Its arguments, without the name.
    pub args: &'a [OsString],
    /// All of its environment.
    pub env: &'a [(&'a str, OsString)],
    /// The account that it runs as; the server's own if absent.
    pub account: Option<&'a ChildAccount>,
    /// The file of a control group through which it joins the group.
    pub group: Option<&'a std::fs::File>,
    /// Limits of the process, and of those that it starts; `None` is no limit.
    pub limits: &'a [(ChildResource, Option<u64>)],
    /// The listening socket for it.
    pub socket: ChildDescriptor<'a>,
    /// Its standard output and error.
    pub output: OwnedFd,
}

/// What the kernel limits for one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildResource {
    /// Bytes of address space.
    AddressSpace,
    /// Bytes of a core file.
    Core,
    /// Bytes of a file that it writes.
    FileSize,
    /// Descriptors.
    Files,
    /// Processes of its user.
    Processes,
    /// Bytes of stack.
    Stack,
}

/// How a program receives a listening socket.
#[derive(Clone, Copy, Debug)]
pub enum ChildDescriptor<'a> {
    /// Under the same number as in this process.
    SameNumber(&'a UnixListener),
    /// As its standard input.
    Stdin(&'a UnixListener),
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildEnd {
    /// With this status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

impl std::fmt::Display for ChildEnd {
    /// nginx's words for the end of a worker: `exited with code 1`, `exited on signal 9`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exited with code {code}"),
            Self::Signal(number) => write!(f, "exited on signal {number}"),
        }
    }
}

/// The signal for a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildSignal {
    /// QUIT.
    Quit,
    /// USR1.
    User1,
    /// TERM.
    Terminate,
    /// KILL.
    Kill,
}

impl ChildSignal {
    const fn number(self) -> i32 {
        match self {
            Self::Quit => libc::SIGQUIT,
            Self::User1 => libc::SIGUSR1,
            Self::Terminate => libc::SIGTERM,
            Self::Kill => libc::SIGKILL,
        }
    }
}

/// Starts a program in its own process group; returns its process ID. The kernel sends it TERM when
/// the calling thread ends, however that ends.
///
/// # Errors
///
/// The program cannot be executed, or the account cannot be used.
pub fn spawn(order: SpawnOptions<'_>) -> std::io::Result<u32> {
    let mut command = Command::new(order.program);
    command.args(order.args).env_clear().process_group(0).current_dir("/");
    command.envs(order.env.iter().map(|(name, value)| (OsStr::new(name), value)));
    let keep = match order.socket {
        ChildDescriptor::SameNumber(socket) => {
            command.stdin(Stdio::null());
            Some(socket.as_raw_fd())
        }
        ChildDescriptor::Stdin(socket) => {
            command.stdin(OwnedFd::from(socket.try_clone()?));
            None
        }
    };
    command.stdout(order.output.try_clone()?).stderr(order.output);
    let joins = order.group.map(AsRawFd::as_raw_fd);
    let slate = sys::CleanSlate::new(order.account, keep)?.limited(joins, order.limits);
    sys::prepare_child(&mut command, slate);
    command.spawn().map(|child| child.id())
}

/// Has a program that the caller spawns and waits for start as in [`spawn`], in the server's own
/// account and this process's group.
///
/// # Errors
///
/// The kernel's.
pub fn prepare(command: &mut Command) -> std::io::Result<()> {
    sys::prepare_child(command, sys::CleanSlate::new(None, None)?);
    Ok(())
}

/// One child of the calling thread that has ended, except `except`; `None` if there is none.
#[must_use]
pub fn reap(except: Option<u32>) -> Option<(u32, ChildEnd)> {
    sys::ended_child().filter(|pid| Some(*pid) != except).and_then(sys::reap)
}

/// Makes this process the parent of descendants that lose theirs.
///
/// # Errors
///
/// The kernel does not support it.
pub fn adopt_orphans() -> std::io::Result<()> {
    sys::adopt_orphans()
}

/// Signals one process; one that is gone is ignored.
pub fn signal(pid: u32, what: ChildSignal) {
    let _ = sys::kill(pid, what.number());
}

/// Signals a process group; false when it is empty.
pub fn signal_group(group: u32, what: ChildSignal) -> bool {
    sys::kill_group(group, what.number())
}

/// Whether a process group has members.
#[must_use]
pub fn is_group_alive(group: u32) -> bool {
    sys::kill_group(group, 0)
}

/// Sets the backlog of a listening socket.
///
/// # Errors
///
/// The kernel refuses.
pub fn set_backlog(socket: &UnixListener, clients: u32) -> std::io::Result<()> {
    sys::listen(socket.as_raw_fd(), clients)
}

/// Whether a descriptor is readable now, its end included.
#[must_use]
pub fn is_readable(fd: Fd) -> bool {
    sys::is_readable(fd.0)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    use bolide_testkit::site::TempDir;

    use super::{ChildDescriptor, SpawnOptions, spawn};
    use crate::sys;

    #[test]
    fn a_program_gets_no_descriptor_that_is_not_meant_for_it() {
        const STRAY: i32 = 237;
        let dir = TempDir::new();
        let socket = UnixListener::bind(dir.join("socket")).unwrap();
        // A shell or a supervisor may have left one open.
        sys::dup_to(socket.as_raw_fd(), STRAY).unwrap();
        sys::set_inheritable(STRAY, true).unwrap();
        let (mut told, output) = std::io::pipe().unwrap();
        let order = SpawnOptions {
            program: Path::new("/bin/ls"),
            args: &["/proc/self/fd".into()],
            env: &[],
            account: None,
            group: None,
            limits: &[],
            socket: ChildDescriptor::SameNumber(&socket),
            output: output.into(),
        };
        let _pid = spawn(order).unwrap();
        let mut text = String::new();
        told.read_to_string(&mut text).unwrap();
        let numbers: Vec<i32> = text.lines().map(|line| line.parse().unwrap()).collect();
        assert!(numbers.contains(&socket.as_raw_fd()), "{text}");
        assert!(!numbers.contains(&STRAY), "{text}");
        sys::close(STRAY);
    }
}
