//! What the process does to itself: limits, user, background, clock.

use base::Now;

use crate::sys;

/// The time, for start-up and the control thread; workers get it from `wait`.
#[must_use]
pub fn now() -> Now {
    sys::now()
}

/// The zero of [`base::Instant`] on this process's monotonic clock.
#[must_use]
#[expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "the one clock reader")]
pub fn epoch() -> std::time::Instant {
    std::time::Instant::now() - std::time::Duration::from_nanos(sys::monotonic_nanos())
}

/// Seconds that local time is ahead of UTC at `unix_seconds`.
#[must_use]
pub fn utc_offset_seconds(unix_seconds: u64) -> i32 {
    sys::utc_offset_seconds(unix_seconds)
}

/// Sets the soft and hard limit of open files.
///
/// # Errors
///
/// Not permitted.
pub fn set_open_files_max(files: u64) -> std::io::Result<()> {
    sys::set_nofile(files)
}

/// Raises the soft limit of open files to the hard one; the limit in force afterwards.
#[must_use]
pub fn raise_open_files() -> u64 {
    sys::raise_nofile()
}

/// Goes into the background: forks, leaves the terminal, stdin and stdout become /dev/null.
///
/// # Errors
///
/// The kernel refuses to fork.
pub fn daemonize() -> std::io::Result<()> {
    sys::daemonize()
}

/// Whether we run as root.
#[must_use]
pub fn is_root() -> bool {
    sys::effective_uid() == 0
}

/// The numbers of the user and group that we are.
#[must_use]
pub fn own_ids() -> (u32, u32) {
    (sys::effective_uid(), sys::effective_gid())
}

/// The name of the user with this number.
#[must_use]
pub fn user_name(uid: u32) -> Option<String> {
    sys::user_name(uid)
}

/// The numbers of a user and, unless `group` names another, of its group.
#[must_use]
pub fn find_user(user: &str, group: Option<&str>) -> Option<(u32, u32)> {
    sys::find_user(user, group)
}

/// Makes the calling thread another user for good; the control thread stays what it is, as nginx's
/// master does, so that it can open logs, read keys and bind ports on a reload.
///
/// # Errors
///
/// Not permitted.
pub fn become_user(user: &str, uid: u32, gid: u32) -> std::io::Result<()> {
    sys::become_user(user, uid, gid)
}

/// Binds the calling thread to one core.
///
/// # Errors
///
/// There is no such core.
pub fn pin_to_core(core: usize) -> std::io::Result<()> {
    sys::pin_to_core(core)
}

/// Cores this process may use.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Makes a file the process's standard error.
///
/// # Errors
///
/// The kernel refuses.
pub fn replace_stderr(file: &base::FileRef) -> std::io::Result<()> {
    sys::dup_to(file.raw(), 2)
}

/// The machine's name; `localhost` when it has none.
#[must_use]
pub fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

/// Whether a process is there and has not ended; one that only waits to be reaped has.
#[must_use]
pub fn is_running(pid: u32) -> bool {
    let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { return false };
    // The name before the state may hold anything, parentheses included.
    let state = stat.rsplit(|&byte| byte == b')').next().and_then(|rest| rest.get(1));
    !matches!(state, None | Some(b'Z' | b'X'))
}
