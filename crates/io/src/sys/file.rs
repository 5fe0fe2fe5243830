//! Files: open with a symlink rule, attributes, positioned reads, sendfile.

use std::ffi::CString;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt as _;

use bolide_base::{FileRange, FileRef};

use super::store::failed;
use super::{check, check_size};
use crate::{FileFailure, OpenRequest, OpenedFile, Stat, SymlinkRule};

fn failure(call: &'static str) -> FileFailure {
    FileFailure { errno: Error::last_os_error().raw_os_error().unwrap_or(libc::EIO), call }
}

fn c_path(path: &[u8]) -> std::result::Result<CString, FileFailure> {
    CString::new(path).map_err(|_| FileFailure { errno: libc::ENOENT, call: "open" })
}

fn convert(raw: &libc::stat) -> Stat {
    let kind = raw.st_mode & libc::S_IFMT;
    Stat {
        size: u64::try_from(raw.st_size).unwrap_or(0),
        mtime_seconds: raw.st_mtime,
        mtime_nanos: raw.st_mtime_nsec as u32,
        ctime_seconds: raw.st_ctime,
        ctime_nanos: raw.st_ctime_nsec as u32,
        inode: raw.st_ino,
        device: raw.st_dev,
        uid: raw.st_uid,
        mode: raw.st_mode,
        links: raw.st_nlink,
        is_dir: kind == libc::S_IFDIR,
        is_regular: kind == libc::S_IFREG,
    }
}

fn stat_path(path: &[u8]) -> std::result::Result<Stat, FileFailure> {
    let name = c_path(path)?;
    // SAFETY: all zeroes is a valid stat.
    let mut raw: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the name is NUL-terminated and the buffer outlives the call.
    let done = unsafe { libc::stat(name.as_ptr(), &raw mut raw) };
    if done < 0 { Err(failure("stat")) } else { Ok(convert(&raw)) }
}

pub(crate) fn stat_fd(fd: i32) -> std::result::Result<Stat, FileFailure> {
    // SAFETY: all zeroes is a valid stat.
    let mut raw: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the buffer outlives the call.
    let done = unsafe { libc::fstat(fd, &raw mut raw) };
    if done < 0 { Err(failure("fstat")) } else { Ok(convert(&raw)) }
}

/// The attributes of a path; of a symbolic link its own.
pub(crate) fn stat_link(path: &[u8]) -> std::result::Result<Stat, FileFailure> {
    let found = stat_at(libc::AT_FDCWD, &c_path(path)?, libc::AT_SYMLINK_NOFOLLOW);
    found.map(|(own, _)| own).map_err(|failure| FileFailure { call: "lstat", ..failure })
}

/// Attributes of an entry of an open directory, a link itself or its target.
fn stat_at(dir: i32, name: &CString, flags: i32) -> std::result::Result<(Stat, bool), FileFailure> {
    // SAFETY: all zeroes is a valid stat.
    let mut raw: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the name is NUL-terminated and the buffer outlives the call.
    let done = unsafe { libc::fstatat(dir, name.as_ptr(), &raw mut raw, flags) };
    if done < 0 {
        return Err(failure("stat"));
    }
    Ok((convert(&raw), raw.st_mode & libc::S_IFMT == libc::S_IFLNK))
}

fn open_at(dir: i32, name: &CString, flags: i32) -> std::result::Result<OwnedFd, FileFailure> {
    // O_NONBLOCK: a FIFO among the files must not block the worker.
    let flags = flags | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: the name is NUL-terminated and outlives the call.
    let fd = unsafe { libc::openat(dir, name.as_ptr(), flags) };
    if fd < 0 {
        return Err(failure("open"));
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(crate) fn open(request: &OpenRequest<'_>) -> std::result::Result<OpenedFile, FileFailure> {
    let plain = request.symlinks == SymlinkRule::Follow;
    if request.stat_only && plain {
        let stat = stat_path(request.path)?;
        return Ok(OpenedFile { file: None, stat, content: None });
    }
    let fd = match request.symlinks {
        SymlinkRule::Follow => open_at(libc::AT_FDCWD, &c_path(request.path)?, libc::O_RDONLY)?,
        SymlinkRule::Refuse { from } => walk(request.path, from, LinkRule::Refuse)?,
        SymlinkRule::SameOwner { from } => walk(request.path, from, LinkRule::SameOwner)?,
    };
    let stat = stat_fd(fd.as_raw_fd())?;
    if !stat.is_regular || request.stat_only {
        return Ok(OpenedFile { file: None, stat, content: None });
    }
    let content = if request.content_max > 0 && stat.size <= request.content_max {
        read_whole(fd.as_raw_fd(), &stat)
    } else {
        None
    };
    Ok(OpenedFile { file: Some(FileRef::new(fd)), stat, content })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkRule {
    Refuse,
    SameOwner,
}

/// Opens component by component, so that each link is checked. As in the kernel, a path that ends
/// with a slash is a directory.
fn walk(path: &[u8], from: usize, rule: LinkRule) -> std::result::Result<OwnedFd, FileFailure> {
    let trusted = from.min(path.len());
    let start = if trusted == 0 { &b"/"[..] } else { &path[..trusted] };
    let mut dir = open_at(libc::AT_FDCWD, &c_path(start)?, libc::O_PATH | libc::O_DIRECTORY)?;
    let mut parts = path[trusted..].split(|&b| b == b'/').filter(|p| !p.is_empty()).peekable();
    while let Some(part) = parts.next() {
        let name = c_path(part)?;
        let last = parts.peek().is_none();
        let is_directory = !last || path.last() == Some(&b'/');
        let flags = match (last, is_directory) {
            (true, true) => libc::O_RDONLY | libc::O_DIRECTORY,
            (true, false) => libc::O_RDONLY,
            (false, _) => libc::O_PATH | libc::O_DIRECTORY,
        };
        let (own, is_link) = stat_at(dir.as_raw_fd(), &name, libc::AT_SYMLINK_NOFOLLOW)?;
        let follow = is_link && rule == LinkRule::SameOwner;
        if is_link && !follow {
            // The errno of the kernel for O_NOFOLLOW, with O_DIRECTORY and without.
            let errno = if is_directory { libc::ENOTDIR } else { libc::ELOOP };
            return Err(FileFailure { errno, call: "open" });
        }
        let extra = if follow { 0 } else { libc::O_NOFOLLOW };
        let next = open_at(dir.as_raw_fd(), &name, flags | extra)?;
        if follow && stat_fd(next.as_raw_fd())?.uid != own.uid {
            return Err(FileFailure { errno: libc::ELOOP, call: "open" });
        }
        if last {
            return Ok(next);
        }
        dir = next;
    }
    open_at(libc::AT_FDCWD, &c_path(path)?, libc::O_RDONLY)
}

/// Reads a small file in one piece; `None` when it changed meanwhile, so that no mixture is stored.
fn read_whole(fd: i32, stat: &Stat) -> Option<Vec<u8>> {
    let size = usize::try_from(stat.size).ok()?;
    let mut content = vec![0; size];
    let mut filled = 0;
    while filled < size {
        match read_at(fd, filled as u64, &mut content[filled..]) {
            Ok(n) if n > 0 => filled += n,
            _ => return None,
        }
    }
    (stat_fd(fd).ok()? == *stat).then_some(content)
}

pub(crate) fn read_at(
    fd: i32,
    offset: u64,
    into: &mut [u8],
) -> std::result::Result<usize, FileFailure> {
    let at = i64::try_from(offset).unwrap_or(i64::MAX);
    // SAFETY: the buffer is valid for its length.
    let n = unsafe { libc::pread(fd, into.as_mut_ptr().cast(), into.len(), at) };
    usize::try_from(n).map_err(|_| failure("read"))
}

pub(crate) fn write_at(
    fd: i32,
    offset: u64,
    bytes: &[u8],
) -> std::result::Result<usize, FileFailure> {
    let at = i64::try_from(offset).unwrap_or(i64::MAX);
    loop {
        // SAFETY: the buffer is valid for its length.
        let n = unsafe { libc::pwrite(fd, bytes.as_ptr().cast(), bytes.len(), at) };
        match usize::try_from(n) {
            Ok(0) if !bytes.is_empty() => {
                return Err(FileFailure { errno: libc::ENOSPC, call: "pwrite" });
            }
            Ok(n) => return Ok(n),
            Err(_) if Error::last_os_error().kind() == ErrorKind::Interrupted => {}
            Err(_) => return Err(failure("pwrite")),
        }
    }
}

/// A file without a name. Where the file system lacks those, one whose name is removed at once.
pub(crate) fn create_temp(dir: &[u8]) -> std::result::Result<FileRef, FileFailure> {
    match open_unnamed(dir) {
        Err(FileFailure { errno: libc::ENOENT, .. }) => {
            let path = std::path::Path::new(std::ffi::OsStr::from_bytes(dir));
            let mut builder = std::fs::DirBuilder::new();
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.recursive(true).create(path).map_err(|error| FileFailure {
                errno: error.raw_os_error().unwrap_or(libc::EIO),
                call: "mkdir",
            })?;
            open_unnamed(dir).or_else(|_| open_unlinked(dir))
        }
        Err(FileFailure { errno: libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL, .. }) => {
            open_unlinked(dir)
        }
        other => other,
    }
}

fn open_unnamed(dir: &[u8]) -> std::result::Result<FileRef, FileFailure> {
    let name = c_path(dir)?;
    let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC | libc::O_EXCL;
    // SAFETY: the name is NUL-terminated and outlives the call.
    let fd = unsafe { libc::open(name.as_ptr(), flags, 0o600) };
    if fd < 0 {
        return Err(failure("open"));
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(FileRef::new(unsafe { OwnedFd::from_raw_fd(fd) }))
}

fn open_unlinked(dir: &[u8]) -> std::result::Result<FileRef, FileFailure> {
    let mut path = dir.to_vec();
    path.extend_from_slice(b"/bolide-XXXXXX\0");
    // SAFETY: the template is NUL-terminated, writable, and outlives the call.
    let fd = unsafe { libc::mkostemp(path.as_mut_ptr().cast(), libc::O_CLOEXEC) };
    if fd < 0 {
        return Err(failure("mkostemp"));
    }
    // SAFETY: the name is NUL-terminated and outlives the call.
    let _ = unsafe { libc::unlink(path.as_ptr().cast()) };
    // SAFETY: the descriptor is new and has no other owner.
    Ok(FileRef::new(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// The most bytes that one call moves, so that one fast reader does not occupy the worker.
const SEND_FILE_MAX: u64 = 2 << 20;

pub(crate) fn send_file(socket: i32, range: &FileRange) -> Result<usize> {
    let mut offset = i64::try_from(range.offset).unwrap_or(i64::MAX);
    let count = range.len.min(SEND_FILE_MAX) as usize;
    // SAFETY: the offset outlives the call.
    check_size(unsafe { libc::sendfile(socket, range.file.raw(), &raw mut offset, count) })
}

pub(crate) fn list(path: &[u8]) -> std::result::Result<std::fs::ReadDir, FileFailure> {
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
    std::fs::read_dir(path).map_err(|error| failed("opendir", &error))
}

/// Reads up to `max` entries; those whose names begin with a dot are omitted.
pub(crate) fn take_shown(
    directory: &mut std::fs::ReadDir,
    max: usize,
    out: &mut Vec<(Vec<u8>, Stat)>,
) -> std::result::Result<bool, FileFailure> {
    for _ in 0..max {
        let Some(entry) = directory.next() else { return Ok(false) };
        let entry = entry.map_err(|error| failed("readdir", &error))?;
        let name = entry.file_name().as_bytes().to_vec();
        if name.first() == Some(&b'.') {
            continue;
        }
        let path = entry.path();
        let path = path.as_os_str().as_bytes();
        let stat = stat_path(path).or_else(|_| {
            // A dangling link is shown as the link itself, as in nginx.
            let name = c_path(path)?;
            stat_at(libc::AT_FDCWD, &name, libc::AT_SYMLINK_NOFOLLOW).map(|(own, _)| own)
        });
        // An entry that vanished is omitted.
        if let Ok(stat) = stat {
            out.push((name, stat));
        }
    }
    Ok(true)
}

/// Opens a log for appending, and creates a missing one.
pub(crate) fn open_append(path: &[u8]) -> Result<FileRef> {
    let flags = libc::O_APPEND | libc::O_CREAT | libc::O_NONBLOCK | libc::O_NOCTTY;
    match super::open_trusted(path, flags | libc::O_WRONLY, 0o644) {
        // A named pipe without a reader: opened for both directions, it holds the bytes until a
        // reader opens it.
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
            super::open_trusted(path, flags | libc::O_RDWR, 0o644).map_err(|_| error)
        }
        other => other,
    }
}

/// Reads a small file in one call.
pub(crate) fn open_not_linked(path: &std::path::Path) -> Result<std::fs::File> {
    let mut options = std::fs::File::options();
    let file = options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(Error::from_raw_os_error(libc::EFBIG));
    }
    Ok(file)
}

pub(crate) fn open_at_once(path: &std::path::Path) -> Result<std::fs::File> {
    std::fs::File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

pub(crate) fn read_small(path: &std::path::Path, max: u64) -> Result<Vec<u8>> {
    // A pipe of that name must not block the caller.
    let file = open_at_once(path)?;
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(Error::from_raw_os_error(libc::EISDIR));
    }
    if !about.is_file() || about.len() > max {
        return Err(Error::from_raw_os_error(libc::EFBIG));
    }
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(crate) fn read_bounded(path: &std::path::Path, max: u64) -> Result<Vec<u8>> {
    let file = std::fs::File::options().read(true).open(path)?;
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > max {
        true => Err(Error::from_raw_os_error(libc::EFBIG)),
        false => Ok(bytes),
    }
}

/// A copy of standard error.
pub(crate) fn standard_error() -> Result<FileRef> {
    open_unwaiting(2)
}

/// Another descriptor for the file of `fd`. For a pipe or a terminal it is a non-blocking one, if
/// this process may open it: other holders of `fd` must not be affected.
fn open_unwaiting(fd: i32) -> Result<FileRef> {
    let kind =
        stat_fd(fd).map_err(|failure| Error::from_raw_os_error(failure.errno))?.mode & libc::S_IFMT;
    let opened = if kind == libc::S_IFIFO || kind == libc::S_IFCHR {
        let name = CString::new(format!("/proc/self/fd/{fd}"))?;
        let flags = libc::O_WRONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
        // SAFETY: the name is NUL-terminated and outlives the call.
        check(unsafe { libc::open(name.as_ptr(), flags) }).ok()
    } else {
        None
    };
    let fd = match opened {
        Some(fd) => fd,
        // SAFETY: no pointers are involved.
        None => check(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) })?,
    };
    // SAFETY: the descriptor is new and has no other owner.
    Ok(FileRef::new(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Writes without waiting to a file that other processes may have open. A send to a socket carries
/// the flag, the descriptor that [`standard_error`] opened is non-blocking, and any other is polled
/// first.
pub(crate) fn write_unwaiting(fd: i32, bytes: &[u8]) -> Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the buffer is valid for its length.
    let sent = check_size(unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) });
    match sent {
        Err(error) if error.raw_os_error() == Some(libc::ENOTSOCK) => {
            if takes_bytes(fd) {
                write(fd, bytes)
            } else {
                Err(ErrorKind::WouldBlock.into())
            }
        }
        other => other,
    }
}

/// Whether a write of a small piece would not block; errors count as room, since the write reports
/// them.
fn takes_bytes(fd: i32) -> bool {
    let mut asked = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    // SAFETY: the one entry outlives the call.
    unsafe { libc::poll(&raw mut asked, 1, 0) != 0 }
}

pub(crate) fn write(fd: i32, bytes: &[u8]) -> Result<usize> {
    // SAFETY: the buffer is valid for its length.
    check_size(unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) })
}

pub(crate) fn read(fd: i32, into: &mut [u8]) -> Result<usize> {
    // SAFETY: the buffer is valid for its length.
    check_size(unsafe { libc::read(fd, into.as_mut_ptr().cast(), into.len()) })
}

/// It is placed here so that every descriptor operation on files is in this module.
pub(super) fn duplicate_to(from: i32, to: i32) -> Result<()> {
    // SAFETY: no pointers are involved.
    check(unsafe { libc::dup2(from, to) }).map(drop)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::os::fd::AsRawFd as _;

    use std::os::unix::fs::symlink;

    use bolide_testkit::site::TempDir;

    use super::{LinkRule, open_unwaiting, walk, write};

    #[test]
    fn the_error_numbers_are_those_of_the_system() {
        macro_rules! same {
            ($($name:ident)*) => { $(assert_eq!(bolide_base::errno::$name, libc::$name);)* };
        }
        same!(
            EPERM ENOENT EIO EBADF EAGAIN ENOMEM EACCES EBUSY EEXIST EXDEV ENOTDIR EISDIR EINVAL
            ENFILE EMFILE EFBIG ENOSPC EROFS EMLINK EPIPE ENAMETOOLONG ENOSYS ENOTEMPTY ELOOP
            EPROTO EADDRNOTAVAIL ENETUNREACH ECONNRESET ENOBUFS ETIMEDOUT ECONNREFUSED
            EHOSTUNREACH ESTALE EDQUOT
        );
    }

    #[test]
    fn what_ends_with_a_slash_is_a_directory() {
        let base = TempDir::new();
        std::fs::create_dir_all(base.join("dir")).unwrap();
        std::fs::write(base.join("file"), b"x").unwrap();
        symlink("file", base.join("to-file")).unwrap();
        symlink("dir", base.join("to-dir")).unwrap();
        let errno = |name: &str, rule| {
            let path = format!("{}/{name}", base.display());
            walk(path.as_bytes(), 0, rule).err().map(|failure| failure.errno)
        };
        let (refuse, same) = (LinkRule::Refuse, LinkRule::SameOwner);
        for (name, strictly, by_owner) in [
            ("file", None, None),
            ("file/", Some(libc::ENOTDIR), Some(libc::ENOTDIR)),
            ("to-file", Some(libc::ELOOP), None),
            ("to-file/", Some(libc::ENOTDIR), Some(libc::ENOTDIR)),
            ("dir/", None, None),
            ("to-dir", Some(libc::ELOOP), None),
            ("to-dir/", Some(libc::ENOTDIR), None),
        ] {
            assert_eq!((errno(name, refuse), errno(name, same)), (strictly, by_owner), "{name}");
        }
    }

    /// Another writer may fill the pipe at the same time.
    #[test]
    fn a_pipe_that_others_have_open_does_not_make_us_wait_and_stays_theirs() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let ours = open_unwaiting(writer.as_raw_fd()).unwrap();
        let end = loop {
            match write(ours.raw(), &[0; 4096]) {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(end.kind(), ErrorKind::WouldBlock);
        // SAFETY: no pointers are involved.
        let flags = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_GETFL) };
        assert_eq!(flags & libc::O_NONBLOCK, 0, "others write as they did");
    }
}
