//! Files and directories that are opened, made or given away with root's rights.
//!
//! Owns the walk along a path whose directories may belong to accounts with fewer rights, workers
//! above all. It follows a link only if root or this process owns it, so that no other account
//! decides which file becomes a log or a pid file, or which directory gets a new owner. Between the
//! check of a name and its use nothing is resolved twice. Without root's rights there is nothing to
//! protect, and the kernel resolves the path.

use std::ffi::CString;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use bolide_base::FileRef;

use super::process::effective_uid;
use super::{check, check_size, file};

/// Links in one path, as many as the kernel follows.
const LINKS_MAX: usize = 40;
/// `f_type` of procfs, whose links (`/proc/self/fd/1`) have targets that no path names.
const PROC_SUPER_MAGIC: libc::c_long = 0x9fa0;

/// The last step of a walk.
struct Place {
    dir: OwnedFd,
    name: CString,
    /// The flag that refuses a link created since the check; 0 where the kernel may follow it.
    guard: i32,
}

fn name_of(part: &[u8]) -> Result<CString> {
    CString::new(part).map_err(|_| Error::from_raw_os_error(libc::EINVAL))
}

fn open_at(dir: i32, name: &CString, flags: i32, mode: libc::mode_t) -> Result<OwnedFd> {
    // SAFETY: the name is NUL-terminated and outlives the call.
    let fd = check(unsafe { libc::openat(dir, name.as_ptr(), flags | libc::O_CLOEXEC, mode) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn raw_stat(fd: &OwnedFd) -> Result<libc::stat> {
    // SAFETY: all zeroes is a valid stat.
    let mut raw: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the buffer outlives the call.
    check(unsafe { libc::fstat(fd.as_raw_fd(), &raw mut raw) })?;
    Ok(raw)
}

fn is_on_proc(fd: &OwnedFd) -> bool {
    // SAFETY: all zeroes is a valid statfs.
    let mut raw: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the buffer outlives the call.
    let done = unsafe { libc::fstatfs(fd.as_raw_fd(), &raw mut raw) };
    done == 0 && raw.f_type == PROC_SUPER_MAGIC
}

/// The target of an open link.
fn target_of(link: &OwnedFd) -> Result<Vec<u8>> {
    let mut target = vec![0; libc::PATH_MAX as usize];
    // SAFETY: the name is NUL-terminated, and the buffer is valid for its length.
    let len = check_size(unsafe {
        let into = target.as_mut_ptr().cast();
        libc::readlinkat(link.as_raw_fd(), c"".as_ptr(), into, target.len())
    })?;
    target.truncate(len);
    Ok(target)
}

/// Pushes the segments of `path`, the first on top; returns the start of an absolute path.
fn push_parts(todo: &mut Vec<Vec<u8>>, path: &[u8]) -> Result<Option<OwnedFd>> {
    let parts = path.rsplit(|&byte| byte == b'/');
    todo.extend(parts.filter(|part| !part.is_empty()).map(<[u8]>::to_vec));
    if path.first() == Some(&b'/') {
        return open_at(libc::AT_FDCWD, &name_of(b"/")?, libc::O_PATH | libc::O_DIRECTORY, 0)
            .map(Some);
    }
    Ok(None)
}

/// Walks to the last name of `path`, which need not exist.
fn walk(path: &[u8]) -> Result<Place> {
    let mut todo = Vec::new();
    let mut dir = match push_parts(&mut todo, path)? {
        Some(root) => root,
        None => open_at(libc::AT_FDCWD, &name_of(b".")?, libc::O_PATH | libc::O_DIRECTORY, 0)?,
    };
    let mut links = 0;
    while let Some(part) = todo.pop() {
        let name = name_of(&part)?;
        let is_last = todo.is_empty();
        let next = match open_at(dir.as_raw_fd(), &name, libc::O_PATH | libc::O_NOFOLLOW, 0) {
            Err(error) if is_last && error.raw_os_error() == Some(libc::ENOENT) => {
                return Ok(Place { dir, name, guard: libc::O_NOFOLLOW });
            }
            other => other?,
        };
        let stat = raw_stat(&next)?;
        let is_link = stat.st_mode & libc::S_IFMT == libc::S_IFLNK;
        if is_link && is_on_proc(&next) {
            if is_last {
                return Ok(Place { dir, name, guard: 0 });
            }
            dir = open_at(dir.as_raw_fd(), &name, libc::O_PATH | libc::O_DIRECTORY, 0)?;
        } else if is_link {
            links += 1;
            let is_trusted = stat.st_uid == 0 || stat.st_uid == effective_uid();
            if !is_trusted || links > LINKS_MAX {
                return Err(Error::from_raw_os_error(libc::ELOOP));
            }
            if let Some(root) = push_parts(&mut todo, &target_of(&next)?)? {
                dir = root;
            }
        } else if is_last {
            return Ok(Place { dir, name, guard: libc::O_NOFOLLOW });
        } else {
            dir = next;
        }
    }
    Ok(Place { dir, name: name_of(b".")?, guard: libc::O_NOFOLLOW })
}

fn place_of(path: &[u8]) -> Result<Place> {
    if effective_uid() == 0 {
        return walk(path);
    }
    let here = open_at(libc::AT_FDCWD, &name_of(b".")?, libc::O_PATH | libc::O_DIRECTORY, 0)?;
    Ok(Place { dir: here, name: name_of(path)?, guard: 0 })
}

/// Opens a file along a path that other users may control.
pub(crate) fn open_trusted(path: &[u8], flags: i32, mode: libc::mode_t) -> Result<FileRef> {
    let place = place_of(path)?;
    open_at(place.dir.as_raw_fd(), &place.name, flags | place.guard, mode).map(FileRef::new)
}

/// Makes a directory where there is none, and gives it to an account; an error names the call that
/// failed.
pub(crate) fn make_owned_directory(
    path: &[u8],
    mode: libc::mode_t,
    owner: Option<(u32, u32)>,
) -> std::result::Result<(), (&'static str, Error)> {
    let place = place_of(path).map_err(|error| ("mkdir()", error))?;
    // SAFETY: the name is NUL-terminated and outlives the call.
    let made = check(unsafe { libc::mkdirat(place.dir.as_raw_fd(), place.name.as_ptr(), mode) });
    match made {
        Err(error) if error.raw_os_error() != Some(libc::EEXIST) => return Err(("mkdir()", error)),
        Ok(_) | Err(_) => {}
    }
    let Some((uid, gid)) = owner else { return Ok(()) };
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NONBLOCK | place.guard;
    let directory =
        open_at(place.dir.as_raw_fd(), &place.name, flags, 0).map_err(|error| ("open()", error))?;
    let stat = raw_stat(&directory).map_err(|error| ("stat()", error))?;
    if stat.st_uid != uid {
        // SAFETY: no pointers are involved.
        check(unsafe { libc::fchown(directory.as_raw_fd(), uid, gid) })
            .map_err(|error| ("chown()", error))?;
    }
    Ok(())
}

/// Replaces a small file.
pub(crate) fn replace_small(path: &[u8], text: &[u8]) -> Result<()> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_NONBLOCK | libc::O_NOCTTY;
    let opened = open_trusted(path, flags, 0o644)?;
    let is_regular = file::stat_fd(opened.raw()).is_ok_and(|stat| stat.is_regular);
    if is_regular {
        // SAFETY: no pointers are involved.
        check(unsafe { libc::ftruncate(opened.raw(), 0) })?;
    }
    let mut rest = text;
    while !rest.is_empty() {
        match file::write(opened.raw(), rest) {
            Ok(done) => rest = &rest[done..],
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Removes a name.
pub(crate) fn unlink_trusted(path: &[u8]) -> Result<()> {
    let place = walk_to_name(path)?;
    // SAFETY: the name is NUL-terminated and outlives the call.
    check(unsafe { libc::unlinkat(place.dir.as_raw_fd(), place.name.as_ptr(), 0) }).map(drop)
}

/// Renames a file.
pub(crate) fn rename_trusted(from: &[u8], to: &[u8]) -> Result<()> {
    let (from, to) = (walk_to_name(from)?, walk_to_name(to)?);
    let (old, new) = (from.dir.as_raw_fd(), to.dir.as_raw_fd());
    // SAFETY: both names are NUL-terminated and outlive the call.
    check(unsafe { libc::renameat(old, from.name.as_ptr(), new, to.name.as_ptr()) }).map(drop)
}

/// Walks to the directory of the last name of `path`, which is not followed itself.
fn walk_to_name(path: &[u8]) -> Result<Place> {
    let mark = path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    let (above, last) = path.split_at(mark);
    if effective_uid() != 0 || last.is_empty() {
        let dir = open_at(libc::AT_FDCWD, &name_of(b".")?, libc::O_PATH | libc::O_DIRECTORY, 0)?;
        return Ok(Place { dir, name: name_of(path)?, guard: libc::O_NOFOLLOW });
    }
    let Place { dir, name, guard } = walk(if above.is_empty() { b"." } else { above })?;
    let flags = libc::O_PATH | libc::O_DIRECTORY | guard;
    let dir = open_at(dir.as_raw_fd(), &name, flags, 0)?;
    Ok(Place { dir, name: name_of(last)?, guard: libc::O_NOFOLLOW })
}

/// Grants all accounts access to a socket bound just now. A user who may write in its directory may
/// have replaced it since.
pub(crate) fn open_socket_to_all(path: &[u8]) -> Result<()> {
    let flags = libc::O_PATH | libc::O_NOFOLLOW;
    let found = open_at(libc::AT_FDCWD, &name_of(path)?, flags, 0)?;
    let stat = raw_stat(&found)?;
    let is_socket = stat.st_mode & libc::S_IFMT == libc::S_IFSOCK;
    if !is_socket || stat.st_uid != effective_uid() || stat.st_nlink != 1 {
        return Err(Error::from_raw_os_error(libc::EADDRINUSE));
    }
    let name = name_of(format!("/proc/self/fd/{}", found.as_raw_fd()).as_bytes())?;
    // SAFETY: the name is NUL-terminated and outlives the call.
    check(unsafe { libc::chmod(name.as_ptr(), 0o666) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::{make_owned_directory, open_trusted, replace_small, walk};
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{lchown, symlink};
    use std::path::Path;

    use bolide_testkit::site::TempDir;

    fn base() -> TempDir {
        let base = TempDir::new();
        fs::create_dir_all(base.join("a/b")).unwrap();
        fs::write(base.join("a/b/file"), "old text").unwrap();
        base
    }

    fn bytes(path: &Path) -> &[u8] {
        path.as_os_str().as_bytes()
    }

    #[test]
    fn links_of_ours_lead_where_the_kernel_would_go() {
        let base = base();
        symlink("a/../a/b", base.join("relative")).unwrap();
        symlink(base.join("a"), base.join("absolute")).unwrap();
        symlink("../relative/file", base.join("a/last")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        for name in ["a/b/file", "relative/file", "absolute/b/file", "absolute/last", "a//b/./file"]
        {
            replace_small(&[bytes(&base), b"/", name.as_bytes()].concat(), name.as_bytes())
                .unwrap();
            assert_eq!(fs::read_to_string(base.join("a/b/file")).unwrap(), name);
        }
        super::rename_trusted(bytes(&base.join("a/last")), bytes(&base.join("moved"))).unwrap();
        assert!(base.join("moved").is_symlink());
        super::unlink_trusted(bytes(&base.join("moved"))).unwrap();
        assert!(!base.join("moved").is_symlink() && base.join("a/b/file").exists());
        let fresh = base.join("relative/fresh");
        make_owned_directory(bytes(&fresh), 0o700, None).unwrap();
        assert!(base.join("a/b/fresh").is_dir());
        assert!(make_owned_directory(bytes(&fresh), 0o700, None).is_ok());
        let errno = |path: &Path| walk(bytes(path)).err().and_then(|error| error.raw_os_error());
        assert_eq!(errno(&base.join("loop")), Some(libc::ELOOP));
        assert_eq!(errno(&base.join("none/x")), Some(libc::ENOENT));
        assert_eq!(errno(&base.join("a/b/file/x")), Some(libc::ENOTDIR));
        assert!(walk(b"/").is_ok() && walk(b"/proc/self/fd/0").is_ok());
    }

    #[test]
    fn links_of_others_are_not_followed_with_roots_rights() {
        if super::effective_uid() != 0 {
            return;
        }
        let base = base();
        for (name, target) in [("way", "a"), ("last", "a/b/file")] {
            symlink(base.join(target), base.join(name)).unwrap();
            lchown(base.join(name), Some(65_534), None).unwrap();
        }
        for name in ["way/b/file", "last"] {
            let path = base.join(name);
            let refused = open_trusted(bytes(&path), libc::O_RDONLY, 0).err();
            assert_eq!(refused.and_then(|error| error.raw_os_error()), Some(libc::ELOOP), "{name}");
        }
        let refused = super::unlink_trusted(bytes(&base.join("way/b/file")));
        assert_eq!(refused.err().and_then(|error| error.raw_os_error()), Some(libc::ELOOP));
        let given = make_owned_directory(bytes(&base.join("way")), 0o700, Some((65_534, 65_534)));
        assert_eq!(given.err().and_then(|(_, error)| error.raw_os_error()), Some(libc::ELOOP));
    }
}
