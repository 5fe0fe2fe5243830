//! The process itself: clocks, signals, users, limits.

use std::ffi::CString;
use std::io::{Error, Result};
use std::mem;
use std::os::fd::{FromRawFd, OwnedFd};

use bolide_base::{Instant, Now};

use super::check;

fn clock(id: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the buffer outlives the call; these clocks exist on every Linux.
    let _ = unsafe { libc::clock_gettime(id, &raw mut time) };
    time
}

pub(crate) fn monotonic_nanos() -> u64 {
    let time = clock(libc::CLOCK_MONOTONIC);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub(crate) fn now() -> Now {
    let civil = clock(libc::CLOCK_REALTIME);
    Now {
        mono: Instant::from_nanos(monotonic_nanos()),
        unix_millis: civil.tv_sec as u64 * 1000 + civil.tv_nsec as u64 / 1_000_000,
    }
}

pub(crate) fn utc_offset_seconds(unix_seconds: u64) -> i32 {
    let time = i64::try_from(unix_seconds).unwrap_or(0);
    // SAFETY: all zeroes is a valid tm.
    let mut local: libc::tm = unsafe { mem::zeroed() };
    // SAFETY: both buffers outlive the call.
    let found = unsafe { libc::localtime_r(&raw const time, &raw mut local) };
    if found.is_null() { 0 } else { local.tm_gmtoff as i32 }
}

pub(crate) fn zone_name(unix_seconds: u64) -> String {
    let time = i64::try_from(unix_seconds).unwrap_or(0);
    // SAFETY: all zeroes is a valid tm.
    let mut local: libc::tm = unsafe { mem::zeroed() };
    // SAFETY: both buffers outlive the call.
    let found = unsafe { libc::localtime_r(&raw const time, &raw mut local) };
    if found.is_null() || local.tm_zone.is_null() {
        return "UTC".to_owned();
    }
    // SAFETY: the C library names a zone by a text with an end, which it keeps.
    let name = unsafe { std::ffi::CStr::from_ptr(local.tm_zone) };
    name.to_string_lossy().into_owned()
}

fn signal_set(numbers: &[i32]) -> libc::sigset_t {
    // SAFETY: all zeroes is overwritten by sigemptyset.
    let mut set: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: the set outlives the call.
    unsafe { libc::sigemptyset(&raw mut set) };
    for &number in numbers {
        // SAFETY: the set outlives the call.
        unsafe { libc::sigaddset(&raw mut set, number) };
    }
    set
}

pub(crate) fn block_signals(numbers: &[i32]) {
    let set = signal_set(numbers);
    // SAFETY: the set outlives the call; no old set is asked for.
    let _ = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    // A write beyond RLIMIT_FSIZE fails then, as one to a full disk does.
    for ignored in [libc::SIGPIPE, libc::SIGXFSZ] {
        // SAFETY: ignoring a signal installs no handler.
        let _ = unsafe { libc::signal(ignored, libc::SIG_IGN) };
    }
}

/// A descriptor that is readable while one of these signals is pending.
pub(crate) fn signal_fd(numbers: &[i32]) -> Result<OwnedFd> {
    let set = signal_set(numbers);
    let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
    // SAFETY: the set outlives the call; -1 asks for a new descriptor.
    let fd = check(unsafe { libc::signalfd(-1, &raw const set, flags) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The number of one pending signal, taken from a descriptor of [`signal_fd`], and its sender.
pub(crate) fn take_signal(fd: i32) -> Option<(i32, u32)> {
    let mut report = [0; size_of::<libc::signalfd_siginfo>()];
    let read = super::read(fd, &mut report).ok()?;
    let field = |at: usize| -> Option<u32> {
        Some(u32::from_ne_bytes(report.get(at..at + 4)?.try_into().ok()?))
    };
    let number = field(mem::offset_of!(libc::signalfd_siginfo, ssi_signo))?;
    let sender = field(mem::offset_of!(libc::signalfd_siginfo, ssi_pid))?;
    if read == report.len() { Some((i32::try_from(number).ok()?, sender)) } else { None }
}

pub(crate) fn end(status: i32) -> ! {
    // SAFETY: no pointers are involved, and no code of the process runs afterwards.
    unsafe { libc::_exit(status) }
}

pub(crate) fn thread_id() -> u32 {
    // SAFETY: no pointers are involved.
    u32::try_from(unsafe { libc::gettid() }).unwrap_or(0)
}

/// The priority of the calling thread only, as in Linux.
pub(crate) fn set_priority(priority: i32) -> Result<()> {
    // SAFETY: no pointers are involved; 0 means the caller.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, priority) }).map(drop)
}

pub(crate) fn set_core_max(bytes: u64) -> Result<()> {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: the limit outlives the call.
    check(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const limit) }).map(drop)
}

/// The soft and the hard limit of open files.
pub(crate) fn nofile() -> (u64, u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit outlives the call.
    let _ = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    (limit.rlim_cur, limit.rlim_max)
}

/// The lowest number that a new descriptor would get, determined by a copy of `fd`; `None` if there
/// is none.
pub(crate) fn lowest_free(fd: i32) -> Option<i32> {
    // SAFETY: no pointers are involved.
    let probe = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
    if probe < 0 {
        return None;
    }
    // SAFETY: the copy is new and has no other owner.
    unsafe { libc::close(probe) };
    Some(probe)
}

/// The kernel's name and version.
pub(crate) fn kernel() -> (String, String) {
    // SAFETY: all zeroes is a valid utsname of empty texts.
    let mut names: libc::utsname = unsafe { mem::zeroed() };
    // SAFETY: the buffer outlives the call.
    let _ = unsafe { libc::uname(&raw mut names) };
    let text = |field: &[libc::c_char]| -> String {
        field.iter().take_while(|byte| **byte != 0).map(|byte| char::from(*byte as u8)).collect()
    };
    (text(&names.sysname), text(&names.release))
}

/// After a change of user the kernel makes no core files unless the process allows it.
pub(crate) fn allow_core() {
    // SAFETY: the option takes numbers only.
    let _ = unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) };
}

pub(crate) fn set_environment(name: &str, value: &str) {
    // SAFETY: the control thread calls this before it starts any other.
    unsafe { std::env::set_var(name, value) };
}

pub(crate) fn remove_environment(name: &str) {
    // SAFETY: the control thread calls this before it starts any other.
    unsafe { std::env::remove_var(name) };
}

pub(crate) fn kill(pid: u32, number: i32) -> Result<()> {
    let pid = i32::try_from(pid).map_err(|_| Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: no pointers are involved.
    check(unsafe { libc::kill(pid, number) }).map(drop)
}

pub(crate) fn set_nofile(files: u64) -> Result<()> {
    let limit = libc::rlimit { rlim_cur: files, rlim_max: files };
    // SAFETY: the limit outlives the call.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }).map(drop)
}

pub(crate) fn raise_nofile() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit outlives the call.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    if known < 0 {
        return 1024;
    }
    let soft = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the limit outlives the call.
    let raised = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    if raised < 0 { soft } else { limit.rlim_max }
}

/// Runs before `main`, and so before the allocator touches the first page of its reservation: with
/// huge pages an idle worker held 16 MiB instead of 8 (decision 0006).
#[used]
// SAFETY: the section holds functions of this type, which the C runtime calls once at start; this
// one makes a single system call and relies on nothing that is set up later.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = refuse_huge_pages;

extern "C" fn refuse_huge_pages() {
    // SAFETY: the option takes four numbers; an old kernel that refuses changes nothing.
    let _ = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
}

pub(crate) fn effective_uid() -> u32 {
    // SAFETY: no pointers are involved.
    unsafe { libc::geteuid() }
}

pub(crate) fn effective_gid() -> u32 {
    // SAFETY: no pointers are involved.
    unsafe { libc::getegid() }
}

pub(crate) fn user_name(uid: u32) -> Option<String> {
    // SAFETY: no pointers go in; the control thread calls this.
    let entry = unsafe { libc::getpwuid(uid) };
    // SAFETY: a non-null answer points to static storage valid until the next call.
    let entry = unsafe { entry.as_ref() }?;
    // SAFETY: the name of an entry is NUL-terminated and lives as long as the entry.
    let name = unsafe { std::ffi::CStr::from_ptr(entry.pw_name) };
    name.to_str().ok().map(str::to_owned)
}

pub(crate) fn find_user(user: &str, group: Option<&str>) -> Option<(u32, u32)> {
    let name = CString::new(user).ok()?;
    // SAFETY: the name is NUL-terminated; the control thread calls this before any worker runs.
    let entry = unsafe { libc::getpwnam(name.as_ptr()) };
    // SAFETY: a non-null answer points to static storage valid until the next call.
    let entry = unsafe { entry.as_ref() }?;
    let (uid, own_group) = (entry.pw_uid, entry.pw_gid);
    let Some(group) = group else { return Some((uid, own_group)) };
    let name = CString::new(group).ok()?;
    // SAFETY: as for the user.
    let entry = unsafe { libc::getgrnam(name.as_ptr()) };
    // SAFETY: a non-null answer points to static storage valid until the next call.
    let entry = unsafe { entry.as_ref() }?;
    Some((uid, entry.gr_gid))
}

/// The raw calls change the calling thread only, where libc's would change all threads.
pub(crate) fn become_user(user: &str, uid: u32, gid: u32) -> Result<()> {
    let name = CString::new(user).map_err(|_| Error::from_raw_os_error(libc::EINVAL))?;
    let mut groups = [0_u32; GROUPS_MAX];
    let mut count = GROUPS_MAX as libc::c_int;
    // SAFETY: the name is NUL-terminated, and the list holds `count` numbers.
    let fits =
        unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut count) };
    let count = if fits < 0 { GROUPS_MAX } else { usize::try_from(count).unwrap_or(0) };
    // SAFETY: the list holds at least `count` numbers and outlives the call.
    check_call(unsafe { libc::syscall(libc::SYS_setgroups, count, groups.as_ptr()) })?;
    // SAFETY: no pointers are involved.
    check_call(unsafe { libc::syscall(libc::SYS_setresgid, gid, gid, gid) })?;
    // SAFETY: no pointers are involved.
    check_call(unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) })
}

/// Groups of one user; further ones are dropped.
pub(super) const GROUPS_MAX: usize = 256;

pub(super) fn check_call(result: libc::c_long) -> Result<()> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

pub(crate) fn pin_to_cores(cores: &[usize]) -> Result<()> {
    // SAFETY: all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    for &core in cores {
        if core >= libc::CPU_SETSIZE as usize {
            return Err(Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: the index is inside the set.
        unsafe { libc::CPU_SET(core, &mut set) };
    }
    let size = size_of_val(&set);
    // SAFETY: the set outlives the call.
    check(unsafe { libc::sched_setaffinity(0, size, &raw const set) }).map(drop)
}

pub(crate) fn dup_to(from: i32, to: i32) -> Result<()> {
    super::file::duplicate_to(from, to)
}

/// The rest of the original process of a background server: it waits until the child reports by one
/// byte that it is ready, and exits with a status that says whether it did.
fn see_off(mut ready: std::io::PipeReader) -> ! {
    let mut byte = [0; 1];
    let is_ready = std::io::Read::read_exact(&mut ready, &mut byte).is_ok();
    std::process::exit(i32::from(!is_ready));
}

pub(crate) fn daemonize() -> Result<std::io::PipeWriter> {
    let (ready, sender) = std::io::pipe()?;
    // SAFETY: called before any thread is started, so the child's memory is whole.
    if check(unsafe { libc::fork() })? > 0 {
        drop(sender);
        see_off(ready);
    }
    // SAFETY: no pointers are involved.
    check(unsafe { libc::setsid() })?;
    // SAFETY: the path is a NUL-terminated literal.
    let null = check(unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) })?;
    dup_to(null, 0)?;
    dup_to(null, 1)?;
    Ok(sender)
}
