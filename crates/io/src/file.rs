//! File operations of the `Io` backend: their requests, results and failures.

use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Mutex, PoisonError};

use bolide_base::FileRef;

use crate::{Appended, sys};

/// The treatment of symbolic links in a path (`disable_symlinks`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SymlinkRule {
    /// Followed.
    #[default]
    Follow,
    /// Any link after the first `from` bytes of the path is refused.
    Refuse {
        /// Length of the trusted part.
        from: usize,
    },
    /// A link is refused when its owner differs from its target's.
    SameOwner {
        /// Length of the part that is trusted.
        from: usize,
    },
}

/// The file to open.
#[derive(Clone, Copy, Debug)]
pub struct OpenRequest<'a> {
    /// Absolute path without NUL.
    pub path: &'a [u8],
    /// Treatment of symbolic links.
    pub symlinks: SymlinkRule,
    /// Read the whole of a regular file up to this size; 0 reads nothing.
    pub content_max: u64,
    /// Only attributes are requested.
    pub stat_only: bool,
}

/// Attributes of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Size in bytes.
    pub size: u64,
    /// Modification time, seconds since 1970.
    pub mtime_seconds: i64,
    /// Its nanoseconds.
    pub mtime_nanos: u32,
    /// Change time, seconds since 1970.
    pub ctime_seconds: i64,
    /// Its nanoseconds.
    pub ctime_nanos: u32,
    /// Inode number.
    pub inode: u64,
    /// Device number.
    pub device: u64,
    /// Owner.
    pub uid: u32,
    /// Type and permission bits, as in `st_mode`.
    pub mode: u32,
    /// How many names it has.
    pub links: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Whether it is a regular file.
    pub is_regular: bool,
}

/// The result of an open.
#[derive(Clone, Debug)]
pub struct OpenedFile {
    /// The open file; directories and stat-only requests have none.
    pub file: Option<FileRef>,
    /// Its attributes.
    pub stat: Stat,
    /// Its whole content, if requested, small enough, and unchanged during the read.
    pub content: Option<Vec<u8>>,
}

/// The entries of a directory, taken a few at a time.
#[derive(Debug)]
pub struct Entries(Listing);

#[derive(Debug)]
enum Listing {
    Open(std::fs::ReadDir, Option<FileFailure>),
    Shown(std::fs::ReadDir),
    Known(std::vec::IntoIter<(Vec<u8>, Stat)>, Option<FileFailure>),
}

impl Entries {
    pub(crate) const fn open(directory: std::fs::ReadDir) -> Self {
        Self(Listing::Open(directory, None))
    }

    pub(crate) const fn shown(directory: std::fs::ReadDir) -> Self {
        Self(Listing::Shown(directory))
    }

    /// Known entries, and the error after them; for simulated backends.
    #[must_use]
    pub fn known(all: Vec<(Vec<u8>, Stat)>, failure: Option<FileFailure>) -> Self {
        Self(Listing::Known(all.into_iter(), failure))
    }

    /// Reads up to `max` entries and appends them; false if there are no more. Entries that
    /// vanished meanwhile are omitted.
    ///
    /// # Errors
    ///
    /// The rest of the directory cannot be read, or one of its entries could not.
    pub fn take(
        &mut self,
        max: usize,
        out: &mut Vec<(Vec<u8>, Stat)>,
    ) -> Result<bool, FileFailure> {
        match &mut self.0 {
            Listing::Open(directory, unread) => sys::take_entries(directory, max, out, unread),
            Listing::Shown(directory) => sys::take_shown(directory, max, out),
            Listing::Known(all, failure) => {
                out.extend(all.by_ref().take(max));
                match failure.take_if(|_| all.len() == 0) {
                    Some(failure) => Err(failure),
                    None => Ok(all.len() > 0),
                }
            }
        }
    }
}

/// The kernel's error number, with its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFailure {
    /// `errno`
    pub errno: i32,
    /// Which call failed, as the log names it: `open`, `stat`, `read`.
    pub call: &'static str,
}

/// Opens a log for appending, and creates a missing one. With root's rights, it follows links in
/// the path only if root or this process created them.
///
/// # Errors
///
/// The kernel's error.
pub fn open_append(path: &[u8]) -> std::io::Result<FileRef> {
    sys::open_append(path)
}

/// Replaces a small file, with links in the path treated as in [`open_append`].
///
/// # Errors
///
/// The kernel's error.
pub fn replace_small(path: &std::path::Path, text: &[u8]) -> std::io::Result<()> {
    sys::replace_small(path.as_os_str().as_bytes(), text)
}

/// Removes a name, with links in its path treated as in [`open_append`].
///
/// # Errors
///
/// The kernel's error.
pub fn remove(path: &std::path::Path) -> std::io::Result<()> {
    sys::unlink_trusted(path.as_os_str().as_bytes())
}

/// Renames a file, with links in the path treated as in [`open_append`].
///
/// # Errors
///
/// The kernel's error.
pub fn rename(from: &std::path::Path, to: &std::path::Path) -> std::io::Result<()> {
    sys::rename_trusted(from.as_os_str().as_bytes(), to.as_os_str().as_bytes())
}

/// Makes a directory where there is none, but not its parents, and gives it to `owner`. Links in
/// the path are treated as in [`open_append`].
///
/// # Errors
///
/// The failed call, by its name in the log, and the kernel's error.
pub fn make_owned_directory(
    path: &std::path::Path,
    mode: u32,
    owner: Option<(u32, u32)>,
) -> Result<(), (&'static str, std::io::Error)> {
    sys::make_owned_directory(path.as_os_str().as_bytes(), mode, owner)
}

/// Whether an open file is a regular one.
#[must_use]
pub fn is_regular(file: &FileRef) -> bool {
    sys::stat_fd(file.raw()).is_ok_and(|stat| stat.is_regular)
}

/// Reads a small file in one call, for a caller that cannot continue without it; the turn blocks
/// meanwhile.
///
/// # Errors
///
/// The kernel's error; anything but a regular file, or more than `max` bytes, is refused.
pub fn read_small(path: &std::path::Path, max: u64) -> std::io::Result<Vec<u8>> {
    sys::read_small(path, max)
}

/// Reads a file of any type to its end, and waits for it; for a start, a reload or a command.
///
/// # Errors
///
/// The kernel's error; EFBIG for more than `max` bytes.
pub fn read_bounded(path: &std::path::Path, max: u64) -> std::io::Result<Vec<u8>> {
    sys::read_bounded(path, max)
}

/// Opens a file of any type for reading; a pipe does not block. The caller checks the type.
///
/// # Errors
///
/// The kernel's error.
pub fn open_at_once(path: &std::path::Path) -> std::io::Result<std::fs::File> {
    sys::open_at_once(path)
}

/// Opens a regular file for reading. A link of that name is refused (ELOOP), and a pipe does not
/// block: for directories where an account with fewer rights writes.
///
/// # Errors
///
/// The kernel's error; EFBIG for anything but a regular file.
pub fn open_not_linked(path: &std::path::Path) -> std::io::Result<std::fs::File> {
    sys::open_not_linked(path)
}

/// Whether two open files are the same file.
#[must_use]
pub fn is_same(one: &FileRef, other: &FileRef) -> bool {
    let id = |file: &FileRef| sys::stat_fd(file.raw()).map(|stat| (stat.device, stat.inode));
    matches!((id(one), id(other)), (Ok(one), Ok(other)) if one == other)
}

/// The file open as [`standard_error`].
static STANDARD_ERROR: Mutex<Option<FileRef>> = Mutex::new(None);

/// Standard error, for [`append_shared`]. It is opened once: after giving up rights the process
/// might not be allowed to.
///
/// # Errors
///
/// Standard error is closed.
pub fn standard_error() -> std::io::Result<FileRef> {
    let mut known = STANDARD_ERROR.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(file) = &*known {
        return Ok(file.clone());
    }
    let file = sys::standard_error()?;
    *known = Some(file.clone());
    Ok(file)
}

/// Standard error is another file now.
pub(crate) fn forget_standard_error() {
    *STANDARD_ERROR.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Bytes that a pipe accepts whole when it is writable.
const PIPE_PIECE: usize = 4096;

/// Appends to a log that [`open_append`] opened, as far as that is possible without waiting.
pub fn append(log: &FileRef, bytes: &[u8]) -> Appended {
    append_with(bytes, |rest| sys::write(log.raw(), rest))
}

/// Appends to [`standard_error`], which other processes may have open too, as far as possible
/// without waiting.
pub fn append_shared(log: &FileRef, bytes: &[u8]) -> Appended {
    append_with(bytes, |rest| sys::write_unwaiting(log.raw(), &rest[..rest.len().min(PIPE_PIECE)]))
}

fn append_with(bytes: &[u8], mut write: impl FnMut(&[u8]) -> std::io::Result<usize>) -> Appended {
    let mut done = 0;
    loop {
        let errno = match write(&bytes[done..]) {
            Ok(n) => {
                done += n;
                if done < bytes.len() && n > 0 {
                    continue;
                }
                None
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => None,
            Err(error) => error.raw_os_error(),
        };
        return Appended { bytes: done, errno };
    }
}

/// Sends one datagram to an address without an open socket for it.
///
/// # Errors
///
/// The kernel's error.
pub fn send_datagram(to: crate::Callee<'_>, bytes: &[u8]) -> Result<(), FileFailure> {
    let socket = sys::connect_datagrams(to)?;
    match append(&socket, bytes).errno {
        None => Ok(()),
        Some(errno) => Err(FileFailure { errno, call: "send" }),
    }
}
