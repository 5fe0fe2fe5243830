//! inotify and statfs: changes below directories, and file systems that do not report all changes.

use std::ffi::CString;
use std::fs::File;
use std::io::{Error, Read as _, Result};
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd};

use crate::changes::{DirChange, DirDepth};

/// Bytes of one read: some hundred changes.
const READ_SIZE: usize = 16 * 1024;
/// Names that appear, disappear or get other permissions.
const NAMES: u32 = libc::IN_CREATE
    | libc::IN_DELETE
    | libc::IN_MOVED_FROM
    | libc::IN_MOVED_TO
    | libc::IN_ATTRIB
    | libc::IN_DELETE_SELF
    | libc::IN_MOVE_SELF
    | libc::IN_ONLYDIR
    | libc::IN_MASK_ADD;
/// Names that go.
const LOSSES: u32 = libc::IN_DELETE
    | libc::IN_MOVED_FROM
    | libc::IN_DELETE_SELF
    | libc::IN_MOVE_SELF
    | libc::IN_ONLYDIR
    | libc::IN_MASK_ADD;
/// The directory itself was removed, moved, or got other permissions.
const GONE: u32 = libc::IN_DELETE_SELF | libc::IN_MOVE_SELF | libc::IN_UNMOUNT | libc::IN_IGNORED;
/// File systems that others can change without an event of this kernel, by `f_type`: NFS, SMB and
/// similar ones, AFS, Ceph, 9p, FUSE, OCFS2, GFS2, Lustre, Coda; proc, sysfs and cgroups.
const FOREIGN: [u64; 17] = [
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x5346_414f,
    0x00c3_6400,
    0x0102_1997,
    0x6573_5546,
    0x7461_636f,
    0x0116_1970,
    0x0bd0_0bd0,
    0x7375_7245,
    0x6b41_4653,
    0x9fa0,
    0x6265_6572,
    0x0027_e0eb,
    0x6367_7270,
];

/// An inotify instance.
#[derive(Debug)]
pub(crate) struct Inotify(File);

impl Inotify {
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: no pointers are involved.
        let fd = check(unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) })?;
        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }

    pub(crate) fn fd(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Watches a directory; a second watch adds to the first.
    pub(crate) fn add(&self, path: &[u8], depth: DirDepth) -> Result<u32> {
        let name = CString::new(path)?;
        if is_foreign(&name)? {
            return Err(Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        let mask = match depth {
            DirDepth::Names => NAMES,
            DirDepth::Files => NAMES | libc::IN_MODIFY,
            DirDepth::Losses => LOSSES,
        };
        // SAFETY: the name is NUL-terminated and outlives the call.
        let watch = check(unsafe { libc::inotify_add_watch(self.fd(), name.as_ptr(), mask) })?;
        Ok(watch as u32)
    }

    pub(crate) fn remove(&self, watch: u32) {
        // SAFETY: no pointers are involved. The watch may have ended by itself.
        let _ = unsafe { libc::inotify_rm_watch(self.fd(), watch as i32) };
    }

    /// Appends the pending changes.
    pub(crate) fn read(&self, out: &mut Vec<DirChange>) {
        let mut buffer = [0; READ_SIZE];
        loop {
            let Ok(n) = (&self.0).read(&mut buffer) else { return };
            take_changes(&buffer[..n], out);
            // A change that did not fit takes less than this.
            if n + size_of::<libc::inotify_event>() + 256 < READ_SIZE {
                return;
            }
        }
    }
}

fn take_changes(mut bytes: &[u8], out: &mut Vec<DirChange>) {
    const HEADER: usize = size_of::<libc::inotify_event>();
    while let Some((header, rest)) = bytes.split_at_checked(HEADER) {
        let word =
            |at: usize| header[at..at + 4].first_chunk().map_or(0, |b| u32::from_ne_bytes(*b));
        let (watch, mask, len) = (word(0), word(4), word(12) as usize);
        let Some((name, rest)) = rest.split_at_checked(len) else { return };
        bytes = rest;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(len);
        out.push(if mask & libc::IN_Q_OVERFLOW != 0 {
            DirChange::Unknown
        } else if mask & GONE != 0 {
            DirChange::Gone { watch }
        } else if end == 0 {
            // Its own attributes: the right to enter it.
            DirChange::Gone { watch }
        } else {
            DirChange::Entry { watch, name: name[..end].into() }
        });
    }
}

fn check(result: libc::c_int) -> Result<libc::c_int> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

fn is_foreign(path: &CString) -> Result<bool> {
    // SAFETY: all zeroes is a valid value.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path is NUL-terminated; both outlive the call.
    check(unsafe { libc::statfs(path.as_ptr(), &raw mut about) })?;
    Ok(FOREIGN.contains(&(about.f_type as u64)))
}

#[cfg(test)]
mod tests {
    use bolide_testkit::site::TempDir;

    use super::{DirChange, DirDepth, Inotify};

    #[test]
    fn what_happens_below_a_directory_is_told_in_order() {
        let dir = TempDir::new();
        let inotify = Inotify::new().unwrap();
        let watch = inotify.add(dir.to_str().unwrap().as_bytes(), DirDepth::Files).unwrap();
        let file = dir.join("a");
        std::fs::write(&file, "one").unwrap();
        std::fs::rename(&file, dir.join("b")).unwrap();
        std::fs::remove_dir_all(&*dir).unwrap();
        let mut changes = Vec::new();
        inotify.read(&mut changes);
        let entry = |name: &str| DirChange::Entry { watch, name: name.as_bytes().into() };
        assert_eq!(changes.first(), Some(&entry("a")));
        assert!(changes.contains(&entry("b")));
        assert_eq!(changes.last(), Some(&DirChange::Gone { watch }));
        let mut none = Vec::new();
        inotify.read(&mut none);
        assert!(none.is_empty(), "each change is reported once: {none:?}");
    }

    #[test]
    fn a_loss_is_all_that_is_reported() {
        let dir = TempDir::new();
        let inotify = Inotify::new().unwrap();
        let watch = inotify.add(dir.to_str().unwrap().as_bytes(), DirDepth::Losses).unwrap();
        std::fs::write(dir.join("draft"), "one").unwrap();
        std::fs::write(dir.join("old"), "two").unwrap();
        std::fs::rename(dir.join("draft"), dir.join("old")).unwrap();
        std::fs::write(dir.join("old"), "three").unwrap();
        std::fs::remove_file(dir.join("old")).unwrap();
        let mut changes = Vec::new();
        inotify.read(&mut changes);
        let entry = |name: &str| DirChange::Entry { watch, name: name.as_bytes().into() };
        assert_eq!(changes, [entry("draft"), entry("old")]);
    }
}
