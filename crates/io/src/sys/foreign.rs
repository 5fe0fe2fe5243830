//! Another process by a descriptor: its own descriptors duplicated, signals to it.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The result of a call by number.
fn checked(result: libc::c_long) -> Result<i32> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result as i32) }
}

/// A descriptor that stands for a process, and for no later one with its number.
pub(crate) fn open_process(pid: u32) -> Result<OwnedFd> {
    // SAFETY: no pointers are involved.
    let fd = checked(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A duplicate of the descriptor `number` of a process; it is closed on exec.
pub(crate) fn duplicate_of(process: &OwnedFd, number: i32) -> Result<OwnedFd> {
    let process = process.as_raw_fd();
    // SAFETY: no pointers are involved.
    let fd = checked(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process, number, 0) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends a signal to a process; 0 only asks whether it is there.
pub(crate) fn signal_process(process: &OwnedFd, signal: i32) -> Result<()> {
    let (process, none) = (process.as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
    // SAFETY: no information is passed, as with kill().
    let done = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process, signal, none, 0) };
    checked(done).map(drop)
}
