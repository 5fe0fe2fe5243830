//! A child process between fork and exec, and after its end.

use std::ffi::CString;
use std::io::{Error, Result};
use std::mem;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::process::{GROUPS_MAX, check_call};
use super::{check, check_size};
use crate::child::{ChildAccount, ChildEnd, ChildResource};

/// The changes that a child makes to itself before it executes the program; prepared before the
/// fork, since a child must not allocate after it.
pub(crate) struct CleanSlate {
    ids: Option<(u32, u32)>,
    groups: [u32; GROUPS_MAX],
    group_count: usize,
    keep: Option<i32>,
    parent: i32,
    /// The open file of a control group.
    joins: Option<i32>,
    limits: Vec<(ChildResource, libc::rlimit)>,
}

impl CleanSlate {
    pub(crate) fn new(account: Option<&ChildAccount>, keep: Option<i32>) -> Result<Self> {
        // SAFETY: no pointers are involved.
        let parent = unsafe { libc::getpid() };
        let mut slate = Self {
            ids: None,
            groups: [0; GROUPS_MAX],
            group_count: 0,
            keep,
            parent,
            joins: None,
            limits: Vec::new(),
        };
        let Some(account) = account else { return Ok(slate) };
        let name = CString::new(account.name.as_str())
            .map_err(|_| Error::from_raw_os_error(libc::EINVAL))?;
        let mut count = GROUPS_MAX as libc::c_int;
        let list = slate.groups.as_mut_ptr();
        // SAFETY: the name is NUL-terminated, and the list holds `count` numbers.
        let fits = unsafe { libc::getgrouplist(name.as_ptr(), account.gid, list, &raw mut count) };
        slate.group_count = if fits < 0 { GROUPS_MAX } else { usize::try_from(count).unwrap_or(0) };
        slate.ids = Some((account.uid, account.gid));
        Ok(slate)
    }

    /// The same for a process that joins a control group and has limits of its own.
    pub(crate) fn limited(
        mut self,
        joins: Option<i32>,
        limits: &[(ChildResource, Option<u64>)],
    ) -> Self {
        let row = |&(resource, most): &(ChildResource, Option<u64>)| {
            let most = most.unwrap_or(libc::RLIM_INFINITY);
            (resource, libc::rlimit { rlim_cur: most, rlim_max: most })
        };
        self.limits = limits.iter().map(row).collect();
        self.joins = joins;
        self
    }

    /// Applies limits while the process still has its parent's rights.
    fn be_limited(&self) -> Result<()> {
        if let Some(fd) = self.joins {
            // The kernel takes 0 for the process that writes it.
            // SAFETY: the buffer is valid for its length.
            check_size(unsafe { libc::write(fd, c"0".as_ptr().cast(), 1) })?;
        }
        for (resource, limit) in &self.limits {
            let resource = match resource {
                ChildResource::AddressSpace => libc::RLIMIT_AS,
                ChildResource::Core => libc::RLIMIT_CORE,
                ChildResource::FileSize => libc::RLIMIT_FSIZE,
                ChildResource::Files => libc::RLIMIT_NOFILE,
                ChildResource::Processes => libc::RLIMIT_NPROC,
                ChildResource::Stack => libc::RLIMIT_STACK,
            };
            // SAFETY: the limit outlives the call.
            check(unsafe { libc::setrlimit(resource, &raw const *limit) })?;
        }
        Ok(())
    }

    /// Only calls that are safe in the child of a process with threads.
    fn wipe(&self) -> Result<()> {
        // SAFETY: all zeroes is overwritten by sigemptyset.
        let mut none: libc::sigset_t = unsafe { mem::zeroed() };
        // SAFETY: the set outlives the call.
        unsafe { libc::sigemptyset(&raw mut none) };
        // SAFETY: the set outlives the call; no old set is requested.
        let _ =
            unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) };
        for ignored in [libc::SIGPIPE, libc::SIGXFSZ] {
            // SAFETY: restoring a default installs no handler.
            let _ = unsafe { libc::signal(ignored, libc::SIG_DFL) };
        }
        // SAFETY: the option takes four numbers. The setting of the server's own process is not
        // inherited.
        let _ = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 0, 0, 0, 0) };
        self.be_limited()?;
        if let Some((uid, gid)) = self.ids {
            let list = self.groups.as_ptr();
            // SAFETY: the list holds at least `group_count` numbers and outlives the call.
            check_call(unsafe { libc::syscall(libc::SYS_setgroups, self.group_count, list) })?;
            // SAFETY: no pointers are involved.
            check_call(unsafe { libc::syscall(libc::SYS_setresgid, gid, gid, gid) })?;
            // SAFETY: no pointers are involved.
            check_call(unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) })?;
        }
        // Descriptors that the server inherited from a shell or a supervisor are not for its
        // children. A kernel without the call leaves them open. SAFETY: no pointers are involved;
        // the flags are of this process's descriptors only.
        let _ = unsafe {
            libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
        };
        if let Some(fd) = self.keep {
            // SAFETY: no pointers are involved; the flag is of this process's descriptor only.
            check(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) })?;
        }
        // After the change of account, which would clear it.
        // SAFETY: the option takes a number.
        check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM, 0, 0, 0) })?;
        // SAFETY: no pointers are involved.
        if unsafe { libc::getppid() } != self.parent {
            return Err(Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    }
}

pub(crate) fn prepare_child(command: &mut Command, slate: CleanSlate) {
    // SAFETY: the closure makes system calls only; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(move || slate.wipe()) };
}

pub(crate) fn adopt_orphans() -> Result<()> {
    // SAFETY: the option takes a number.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// A child of the calling thread that has ended; it is not reaped. Those of other threads have
/// their own waiters.
pub(crate) fn ended_child() -> Option<u32> {
    // SAFETY: all zeroes is a valid report and means that there is none.
    let mut report: libc::siginfo_t = unsafe { mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WNOTHREAD;
    // SAFETY: the report outlives the call.
    check(unsafe { libc::waitid(libc::P_ALL, 0, &raw mut report, flags) }).ok()?;
    // SAFETY: waitid fills in the fields of the child.
    let pid = unsafe { report.si_pid() };
    u32::try_from(pid).ok().filter(|pid| *pid != 0)
}

pub(crate) fn reap(pid: u32) -> Option<(u32, ChildEnd)> {
    let mut status = 0;
    let number = i32::try_from(pid).ok()?;
    // SAFETY: the number outlives the call.
    let reaped = unsafe { libc::waitpid(number, &raw mut status, libc::WNOHANG) };
    if reaped != number {
        return None;
    }
    let end = if libc::WIFSIGNALED(status) {
        ChildEnd::Signal(libc::WTERMSIG(status))
    } else {
        ChildEnd::Exit(libc::WEXITSTATUS(status))
    };
    Some((pid, end))
}

pub(crate) fn kill_group(group: u32, number: i32) -> bool {
    // 0 and 1 would mean other groups than the child's.
    let Some(group) = i32::try_from(group).ok().filter(|group| *group > 1) else { return false };
    // SAFETY: no pointers are involved.
    unsafe { libc::kill(-group, number) == 0 }
}

pub(crate) fn is_readable(fd: i32) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, which outlives the call; it does not wait.
    unsafe { libc::poll(&raw mut poll, 1, 0) > 0 }
}
