//! epoll and eventfd.

use std::io::Result;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::c_long;

use super::check;
use crate::{Interest, Readiness};

#[derive(Debug)]
pub(crate) struct EpollFd(OwnedFd);

impl EpollFd {
    pub(crate) fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

pub(crate) struct EpollEvents {
    events: Vec<libc::epoll_event>,
    filled: usize,
}

impl std::fmt::Debug for EpollEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EpollEvents").field("filled", &self.filled).finish_non_exhaustive()
    }
}

impl EpollEvents {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { events: vec![libc::epoll_event { events: 0, u64: 0 }; capacity], filled: 0 }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Readiness> + '_ {
        self.events[..self.filled].iter().map(|event| {
            let bits = event.events as libc::c_int;
            Readiness {
                token: event.u64,
                readable: bits & libc::EPOLLIN != 0,
                writable: bits & libc::EPOLLOUT != 0,
                hangup: bits & (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) != 0,
            }
        })
    }
}

impl EpollFd {
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: no pointers are involved.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(crate) fn add(&self, fd: i32, token: u64, how: Interest) -> Result<()> {
        let bits = match how {
            Interest::Level => libc::EPOLLIN,
            Interest::Edge => libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET,
        };
        let mut event = libc::epoll_event { events: bits as u32, u64: token };
        // SAFETY: the event outlives the call, which copies it.
        let done =
            unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event) };
        check(done).map(drop)
    }

    pub(crate) fn remove(&self, fd: i32) {
        let (epoll, del) = (self.0.as_raw_fd(), libc::EPOLL_CTL_DEL);
        // SAFETY: a removal reads no event.
        let _ = unsafe { libc::epoll_ctl(epoll, del, fd, std::ptr::null_mut()) };
    }

    pub(crate) fn wait(&self, into: &mut EpollEvents, timeout_ms: i32) {
        let (epoll, max) = (c_long::from(self.0.as_raw_fd()), into.events.len());
        let (at, timeout) = (into.events.as_mut_ptr(), c_long::from(timeout_ms));
        // PERF: the bare system call, as for `recvfrom`; the name that every architecture has.
        // SAFETY: the buffer holds `max` events and outlives the call; no mask of signals is given.
        let n = unsafe {
            libc::syscall(libc::SYS_epoll_pwait, epoll, at, max, timeout, 0_usize, 0_usize)
        };
        // The only failure left is an interrupted wait, which is an empty one.
        into.filled = usize::try_from(n).unwrap_or(0);
    }
}

pub(crate) fn event_fd() -> Result<OwnedFd> {
    // SAFETY: no pointers are involved.
    let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
