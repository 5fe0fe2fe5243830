//! Changes of the process itself: limits, user, background, clock.

use bolide_base::Now;

use crate::sys;

/// The time, for start-up and the control thread; workers get it from `wait`.
#[must_use]
pub fn now() -> Now {
    sys::now()
}

/// The zero of [`bolide_base::Instant`] on this process's monotonic clock.
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

/// The name of the local zone at a time: `CET`.
#[must_use]
pub fn zone_name(unix_seconds: u64) -> String {
    sys::zone_name(unix_seconds)
}

/// Sets the soft and hard limit of open files.
///
/// # Errors
///
/// Not permitted.
pub fn set_open_files_max(files: u64) -> std::io::Result<()> {
    sys::set_nofile(files)
}

/// Raises the soft limit of open files to the hard one; returns the limit in force.
#[must_use]
pub fn raise_open_files() -> u64 {
    sys::raise_nofile()
}

/// Reports to the original process that the background process serves; a drop without a report
/// means failure.
#[derive(Debug)]
pub struct ChildWait(std::io::PipeWriter);

impl ChildWait {
    /// Lets the original process exit with success.
    pub fn release(mut self) {
        // A process that has ended meanwhile needs no report.
        let _ = std::io::Write::write_all(&mut self.0, b"1");
    }
}

/// Goes into the background: forks, leaves the terminal, redirects stdin and stdout to /dev/null.
/// The original process exits when the child has reported that it is ready, or has ended.
///
/// # Errors
///
/// The kernel refuses to fork.
pub fn daemonize() -> std::io::Result<ChildWait> {
    sys::daemonize().map(ChildWait)
}

/// Ends the process at once, without ending its other threads first.
pub fn end(status: i32) -> ! {
    sys::end(status)
}

/// The kernel's number of the calling thread.
#[must_use]
pub fn thread_id() -> u32 {
    sys::thread_id()
}

/// Sets the priority of the calling thread, as `nice` does.
///
/// # Errors
///
/// Not permitted.
pub fn set_priority(priority: i32) -> std::io::Result<()> {
    sys::set_priority(priority)
}

/// Sets the size limit of a core file, in bytes.
///
/// # Errors
///
/// Not permitted.
pub fn set_core_max(bytes: u64) -> std::io::Result<()> {
    sys::set_core_max(bytes)
}

/// Allows core files although the user was changed.
pub fn allow_core() {
    sys::allow_core();
}

/// The soft and the hard limit of open files.
#[must_use]
pub fn open_files() -> (u64, u64) {
    sys::nofile()
}

/// How many descriptors are open; `None` if the count fails, as when no descriptor is left.
#[must_use]
pub fn descriptors() -> Option<u64> {
    // Without the descriptor of the count itself.
    Some((std::fs::read_dir("/proc/self/fd").ok()?.count() as u64).saturating_sub(1))
}

/// A spare descriptor, to be closed when no other is left.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "what is opened is nothing")]
pub fn spare_descriptor() -> Option<std::os::fd::OwnedFd> {
    std::fs::File::open("/dev/null").ok().map(Into::into)
}

/// Bytes of memory that are the process's own or mapped, and resident; `None` if the reading fails.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// The kernel's data on the time and the memory of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessUsage {
    /// Time of all cores, in seconds.
    pub cpu_seconds: f64,
    /// When it started, in seconds since 1970.
    pub started: f64,
    /// Bytes of address space.
    pub virtual_bytes: u64,
}

/// Units per second of the times in `/proc`, which do not depend on the kernel's clock.
const USER_HZ: f64 = 100.0;

/// The kernel's data on this process; `None` if the reading fails.
#[must_use]
pub fn usage() -> Option<ProcessUsage> {
    let own = std::fs::read_to_string("/proc/self/stat").ok()?;
    let system = std::fs::read_to_string("/proc/stat").ok()?;
    parse_usage(&own, &system)
}

fn parse_usage(own: &str, system: &str) -> Option<ProcessUsage> {
    // The program's name is the second field, in parentheses, and may contain any byte.
    let (_, behind) = own.rsplit_once(')')?;
    let fields: Vec<&str> = behind.split_ascii_whitespace().collect();
    // The field that proc(5) calls the third comes first here.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let booted = system.lines().find_map(|line| line.strip_prefix("btime "))?;
    let booted: u64 = booted.trim().parse().ok()?;
    Some(ProcessUsage {
        cpu_seconds: (field(14)? + field(15)?) as f64 / USER_HZ,
        started: booted as f64 + field(22)? as f64 / USER_HZ,
        virtual_bytes: field(23)?,
    })
}

/// The kernel's name and version.
#[must_use]
pub fn kernel() -> (String, String) {
    sys::kernel()
}

/// Sets an environment variable of this process; only before a thread is started.
pub fn set_environment(name: &str, value: &str) {
    sys::set_environment(name, value);
}

/// Removes an environment variable, so that no child process gets it; only before a thread is
/// started.
pub fn remove_environment(name: &str) {
    sys::remove_environment(name);
}

/// Whether this process runs as root.
#[must_use]
pub fn is_root() -> bool {
    sys::effective_uid() == 0
}

/// The user and group numbers of this process.
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

/// Changes the user of the calling thread for good. The control thread keeps its user, as nginx's
/// master does, so that it can open logs, read keys and bind ports on a reload.
///
/// # Errors
///
/// Not permitted.
pub fn become_user(user: &str, uid: u32, gid: u32) -> std::io::Result<()> {
    sys::become_user(user, uid, gid)
}

/// Binds the calling thread to these cores.
///
/// # Errors
///
/// A core does not exist.
pub fn pin_to_cores(cores: &[usize]) -> std::io::Result<()> {
    sys::pin_to_cores(cores)
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
pub fn replace_stderr(file: &bolide_base::FileRef) -> std::io::Result<()> {
    sys::dup_to(file.raw(), 2)?;
    crate::file::forget_standard_error();
    Ok(())
}

/// The machine's name; `localhost` when it has none.
#[must_use]
pub fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

/// Whether a process exists and has not ended; a zombie has.
#[must_use]
pub fn is_running(pid: u32) -> bool {
    let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { return false };
    // The name before the state may contain anything, parentheses included.
    let state = stat.rsplit(|&byte| byte == b')').next().and_then(|rest| rest.get(1));
    !matches!(state, None | Some(b'Z' | b'X'))
}

#[cfg(test)]
mod tests {
    use super::{ProcessUsage, parse_usage};

    #[test]
    fn usage_is_read_behind_a_name_with_any_bytes() {
        let own = "7 (a) 9 (b)) S 1 7 7 0 -1 4 1 2 3 4 250 50 0 0 20 0 3 0 1000 8192 99 1 2 3";
        let expected = ProcessUsage { cpu_seconds: 3.0, started: 110.0, virtual_bytes: 8192 };
        assert_eq!(parse_usage(own, "cpu 1 2\nbtime 100\nprocesses 3\n"), Some(expected));
        assert_eq!(parse_usage("", "btime 100\n"), None);
        assert_eq!(parse_usage(own, ""), None);
    }
}
