//! Files that the server makes: created, renamed, removed, appended to, listed a few at a time.

use std::ffi::CString;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;

use bolide_base::FileRef;

use crate::{Entries, FileFailure, Stat};

type Done<T> = Result<T, FileFailure>;

fn failure(call: &'static str) -> FileFailure {
    failed(call, &std::io::Error::last_os_error())
}

pub(crate) fn failed(call: &'static str, error: &std::io::Error) -> FileFailure {
    FileFailure { errno: error.raw_os_error().unwrap_or(libc::EIO), call }
}

fn c_path(path: &[u8]) -> Done<CString> {
    CString::new(path).map_err(|_| FileFailure { errno: libc::ENOENT, call: "open" })
}

fn open(path: &[u8], flags: i32, mode: u32) -> Done<FileRef> {
    let name = c_path(path)?;
    // SAFETY: the name is NUL-terminated and outlives the call.
    let fd = unsafe { libc::open(name.as_ptr(), flags | libc::O_CLOEXEC | libc::O_NOFOLLOW, mode) };
    if fd < 0 {
        return Err(failure("open"));
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(FileRef::new(unsafe { OwnedFd::from_raw_fd(fd) }))
}

pub(crate) fn create(path: &[u8], mode: u32) -> Done<FileRef> {
    open(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, mode)
}

pub(crate) fn open_journal(path: &[u8]) -> Done<FileRef> {
    open(path, libc::O_RDWR | libc::O_APPEND, 0)
}

pub(crate) fn append_journal(fd: i32, bytes: &[u8]) -> Done<usize> {
    loop {
        match super::file::write(fd, bytes) {
            Ok(0) if !bytes.is_empty() => {
                return Err(FileFailure { errno: libc::ENOSPC, call: "write" });
            }
            Ok(n) => return Ok(n),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed("write", &error)),
        }
    }
}

pub(crate) fn make_directory(path: &[u8], mode: u32) -> Done<()> {
    let name = c_path(path)?;
    // SAFETY: the name is NUL-terminated and outlives the call.
    let done = unsafe { libc::mkdir(name.as_ptr(), mode) };
    if done < 0 { Err(failure("mkdir")) } else { Ok(()) }
}

pub(crate) fn rename(from: &[u8], to: &[u8]) -> Done<()> {
    let (from, to) = (c_path(from)?, c_path(to)?);
    // SAFETY: both names are NUL-terminated and outlive the call.
    let done = unsafe { libc::rename(from.as_ptr(), to.as_ptr()) };
    if done < 0 { Err(failure("rename")) } else { Ok(()) }
}

pub(crate) fn unlink(path: &[u8]) -> Done<()> {
    let name = c_path(path)?;
    // SAFETY: the name is NUL-terminated and outlives the call.
    let done = unsafe { libc::unlink(name.as_ptr()) };
    if done < 0 { Err(failure("unlink")) } else { Ok(()) }
}

/// The kernel's name of an open file; for a file without a name, its last name with a suffix.
pub(crate) fn name_of(fd: i32) -> Option<Vec<u8>> {
    let name = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
    Some(name.into_os_string().into_encoded_bytes())
}

pub(crate) fn remove_directory(path: &[u8]) -> Done<()> {
    let name = c_path(path)?;
    // SAFETY: the name is NUL-terminated and outlives the call.
    let done = unsafe { libc::rmdir(name.as_ptr()) };
    if done < 0 { Err(failure("rmdir")) } else { Ok(()) }
}

pub(crate) fn set_access(fd: i32, mode: u32) -> Done<()> {
    // SAFETY: no pointers are involved.
    let done = unsafe { libc::fchmod(fd, mode) };
    if done < 0 { Err(failure("fchmod")) } else { Ok(()) }
}

/// A symbolic link is not followed.
pub(crate) fn set_modified(path: &[u8], seconds: i64) -> Done<()> {
    let name = c_path(path)?;
    let time = libc::timespec { tv_sec: seconds, tv_nsec: 0 };
    let flags = libc::AT_SYMLINK_NOFOLLOW;
    // SAFETY: the name is NUL-terminated, and it and the two times outlive the call.
    let done =
        unsafe { libc::utimensat(libc::AT_FDCWD, name.as_ptr(), [time, time].as_ptr(), flags) };
    if done < 0 { Err(failure("utimensat")) } else { Ok(()) }
}

pub(crate) fn sync(fd: i32) -> Done<()> {
    // SAFETY: no pointers are involved.
    let done = unsafe { libc::fdatasync(fd) };
    if done < 0 { Err(failure("fdatasync")) } else { Ok(()) }
}

pub(crate) fn lock_shared(fd: i32) -> Done<()> {
    // SAFETY: no pointers are involved.
    let done = unsafe { libc::flock(fd, libc::LOCK_SH) };
    if done < 0 { Err(failure("flock")) } else { Ok(()) }
}

pub(crate) fn lock_exclusive(fd: i32) -> bool {
    // SAFETY: no pointers are involved.
    let done = unsafe { libc::flock(fd, libc::LOCK_EX | libc::LOCK_NB) };
    done == 0
}

pub(crate) fn free_bytes(path: &[u8]) -> Done<u64> {
    let name = c_path(path)?;
    // SAFETY: all zeroes is a valid statvfs.
    let mut raw: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the name is NUL-terminated and the buffer outlives the call.
    let done = unsafe { libc::statvfs(name.as_ptr(), &raw mut raw) };
    if done < 0 { Err(failure("statvfs")) } else { Ok(raw.f_bavail.saturating_mul(raw.f_frsize)) }
}

pub(crate) fn entries(path: &[u8]) -> Done<Entries> {
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
    std::fs::read_dir(path).map(Entries::open).map_err(|error| failed("opendir", &error))
}

pub(crate) fn take_entries(
    directory: &mut std::fs::ReadDir,
    max: usize,
    out: &mut Vec<(Vec<u8>, Stat)>,
    unread: &mut Option<FileFailure>,
) -> Done<bool> {
    for _ in 0..max {
        let Some(entry) = directory.next() else { return unread.take().map_or(Ok(false), Err) };
        let entry = entry.map_err(|error| failed("readdir", &error))?;
        let own = match entry.metadata() {
            Ok(own) => own,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                *unread = Some(failed("stat", &error));
                continue;
            }
        };
        let stat = Stat {
            size: own.size(),
            mtime_seconds: own.mtime(),
            mtime_nanos: own.mtime_nsec() as u32,
            ctime_seconds: own.ctime(),
            ctime_nanos: own.ctime_nsec() as u32,
            inode: own.ino(),
            device: own.dev(),
            uid: own.uid(),
            mode: own.mode(),
            links: own.nlink(),
            is_dir: own.is_dir(),
            is_regular: own.is_file(),
        };
        out.push((entry.file_name().as_bytes().to_vec(), stat));
    }
    Ok(true)
}
