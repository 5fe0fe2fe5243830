//! Files that change, with their history.
//!
//! Owns the history of states of every path; the oracle checks responses against it. A file is
//! replaced by another (a new inode) or rewritten in place (the same one). Modification times have
//! the granularity of a kernel's tick for small files, as on a real system, so that equal times
//! prove nothing; files too large to be stored in memory get exact ones, because a server that
//! sends directly from the disk can check nothing else.

use std::collections::BTreeMap;
use std::rc::Rc;

use bolide_base::FileRef;
use bolide_io::Stat;

use super::file_system::is_partial_copy;
use super::inotify::InotifyWatches;
use super::power_loss::UndoStep;

/// Nanoseconds of a tick: the granularity of modification times.
const TICK: u64 = 4_000_000;
/// 2026-01-01 in seconds: civil time at the start of every run.
pub const EPOCH_SECONDS: u64 = 1_767_225_600;

/// The content of a file.
#[derive(Clone, Debug)]
pub struct Content {
    /// The bytes.
    pub bytes: Rc<[u8]>,
    /// When they were written, in simulated nanoseconds.
    pub modified: u64,
}

impl Content {
    /// Modification time in seconds since 1970.
    #[must_use]
    pub const fn mtime_seconds(&self) -> u64 {
        EPOCH_SECONDS + self.modified / 1_000_000_000
    }

    /// The entity tag that the server gives it.
    #[must_use]
    pub fn etag(&self) -> String {
        format!("\"{:x}-{:x}\"", self.mtime_seconds(), self.bytes.len())
    }
}

/// The state of a path.
#[derive(Clone, Debug)]
pub enum PathState {
    /// Nothing.
    Absent,
    /// A directory.
    Directory,
    /// A regular file.
    File(Content),
    /// The lookup failed with this error number.
    Failed(i32),
}

#[derive(Clone, Debug)]
pub(super) struct Inode {
    pub(super) content: Content,
    /// The bytes that survive a power loss.
    pub(super) flushed: Rc<[u8]>,
    /// The current path, if there is one.
    pub(super) path: String,
}

impl Inode {
    fn new(content: Content, path: &str) -> Self {
        Self { content, flushed: Rc::new([]), path: path.to_owned() }
    }
}

/// The path of files without a name.
pub const TEMP: &str = "(temporary)";

/// The directories of the caches.
pub const STORES: [&str; 3] = ["/cache", "/few", "/pages"];

/// Whether a path is that of a cache file.
#[must_use]
pub fn is_stored(path: &str) -> bool {
    STORES.iter().any(|store| path.strip_prefix(store).is_some_and(|rest| rest.starts_with('/')))
}

/// Whether a path is that of a stored request body.
#[must_use]
pub fn is_body(path: &str) -> bool {
    path.starts_with("/bodies/")
}

/// All files, their histories, and the open ones.
#[derive(Debug, Default)]
pub struct SimDisk {
    pub(super) paths: BTreeMap<String, u64>,
    /// Each with its inode number.
    directories: Vec<(String, u64)>,
    next_directory: u64,
    pub(super) inodes: BTreeMap<u64, Inode>,
    histories: BTreeMap<String, Vec<(u64, PathState)>>,
    /// Paths that were rewritten in place, and when.
    rewrites: Vec<(String, u64)>,
    pub(super) open: BTreeMap<i32, (FileRef, u64)>,
    next_inode: u64,
    /// Stored request bodies, and a part of the WebDAV files, are on file systems of their own.
    pub has_mount: bool,
    /// The inotify watches.
    pub watches: InotifyWatches,
    /// Changes of names that a power loss may undo.
    pub(super) unsynced: Vec<UndoStep>,
}

impl SimDisk {
    /// Creates a directory.
    pub fn make_directory(&mut self, path: &str) {
        self.add_directory(path, 0);
    }

    pub(super) fn add_directory(&mut self, path: &str, now: u64) {
        self.directories.push((path.to_owned(), self.next_directory));
        self.next_directory += 1;
        self.record_state(path, now, PathState::Directory);
    }

    /// A directory and its subdirectories.
    pub(super) fn directories_from(&self, path: &str) -> Vec<String> {
        let rest = |known: &str| {
            known.strip_prefix(path).map(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let all = self.directories.iter().filter(|(known, _)| rest(known) == Some(true));
        all.map(|(known, _)| known.clone()).collect()
    }

    /// Removes a directory; false if there is none.
    pub fn remove_directory(&mut self, path: &str) -> bool {
        let before = self.directories.len();
        self.directories.retain(|(known, _)| known != path);
        self.directories.len() < before
    }

    /// Puts a new file at `path`, as `rename` does; descriptors of the previous file stay open.
    pub fn replace(&mut self, path: &str, bytes: Vec<u8>, now: u64) {
        self.next_inode += 1;
        let content = Content { modified: stamp(&bytes, now), bytes: bytes.into() };
        let inode = Inode::new(content.clone(), path);
        self.inodes.insert(self.next_inode, inode);
        self.paths.insert(path.to_owned(), self.next_inode);
        self.record_state(path, now, PathState::File(content));
    }

    /// Writes other bytes into the file at `path`; open descriptors see them.
    pub fn rewrite(&mut self, path: &str, bytes: Vec<u8>, now: u64) {
        let Some(inode) = self.paths.get(path).and_then(|number| self.inodes.get_mut(number))
        else {
            return self.replace(path, bytes, now);
        };
        inode.content = Content { modified: stamp(&bytes, now), bytes: bytes.into() };
        let content = inode.content.clone();
        self.rewrites.push((path.to_owned(), now));
        self.record_state(path, now, PathState::File(content));
    }

    /// Whether the file at `path` was rewritten in place from `from` to `to`.
    #[must_use]
    pub fn was_rewritten(&self, path: &str, from: u64, to: u64) -> bool {
        self.rewrites.iter().any(|(known, at)| known == path && (from..=to).contains(at))
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &str, now: u64) {
        self.paths.remove(path);
        self.record_state(path, now, PathState::Absent);
    }

    /// Records that one lookup of `path` failed.
    pub fn record_failure(&mut self, path: &str, errno: i32, now: u64) {
        let before = self.histories.get(path).and_then(|all| all.last()).cloned();
        self.record_state(path, now, PathState::Failed(errno));
        let (_, seen) = before.unwrap_or((0, PathState::Absent));
        self.record_state(path, now, seen);
    }

    /// Records that one read of an open file failed.
    pub fn record_read_failure(&mut self, file: &FileRef, now: u64) {
        let path = self.inode(file).map(|inode| inode.path.clone());
        if let Some(path) = path.filter(|path| path != TEMP) {
            self.record_failure(&path, 5, now);
        }
    }

    /// Every state that `path` had from `from` to `to`.
    pub fn states(&self, path: &str, from: u64, to: u64) -> impl Iterator<Item = &PathState> {
        let all = self.histories.get(path).map_or(&[][..], |all| &all[..]);
        all.iter().enumerate().filter_map(move |(at, (since, seen))| {
            let until = all.get(at + 1).map_or(u64::MAX, |(next, _)| *next);
            (*since <= to && until >= from).then_some(seen)
        })
    }

    /// Every change of state of `path` from `from` to `to`.
    pub fn transitions(&self, path: &str, from: u64, to: u64) -> impl Iterator<Item = &PathState> {
        let all = self.histories.get(path).map_or(&[][..], |all| &all[..]);
        all.iter().filter(move |(at, _)| (from..=to).contains(at)).map(|(_, seen)| seen)
    }

    /// Every path with a history.
    pub fn known_paths(&self) -> impl Iterator<Item = &str> {
        self.histories.keys().map(String::as_str)
    }

    /// Whether `path` had more than one state from `from` to `to`.
    #[must_use]
    pub fn changed(&self, path: &str, from: u64, to: u64) -> bool {
        self.states(path, from, to).count() > 1
    }

    /// The current state of a path.
    #[must_use]
    pub fn lookup(&self, path: &str) -> PathState {
        if let Some(inode) = self.paths.get(path).and_then(|number| self.inodes.get(number)) {
            return PathState::File(inode.content.clone());
        }
        let is_directory = self.has_directory(path);
        if is_directory { PathState::Directory } else { PathState::Absent }
    }

    /// The attributes of `path`.
    #[must_use]
    pub fn stat(&self, path: &str) -> Option<Stat> {
        if let Some(number) = self.paths.get(path) {
            return self.inodes.get(number).map(|inode| attributes(*number, &inode.content));
        }
        let (_, number) = self.directories.iter().find(|(known, _)| known == path)?;
        Some(Stat { is_dir: true, mode: 0o040_755, inode: 1 << 32 | number, ..Stat::default() })
    }

    /// Names of the files directly inside a directory.
    #[must_use]
    pub fn list(&self, directory: &str) -> Vec<String> {
        let inside = self.paths.keys().filter_map(|path| path.strip_prefix(directory));
        let names = inside.filter_map(|rest| rest.strip_prefix('/'));
        names.filter(|name| !name.contains('/')).map(str::to_owned).collect()
    }

    /// Opens the file at `path` as `file`.
    pub fn open(&mut self, path: &str, file: FileRef) -> Option<FileRef> {
        let number = *self.paths.get(path)?;
        // Files that only this table holds are closed.
        self.open.retain(|_, (held, _)| held.holders() > 1);
        self.open.insert(file.raw(), (file.clone(), number));
        Some(file)
    }

    /// Creates and opens a file without a name as `file`.
    pub fn create_temp(&mut self, file: FileRef) -> FileRef {
        self.next_inode += 1;
        let content = Content { bytes: Rc::new([]), modified: 0 };
        self.inodes.insert(self.next_inode, Inode::new(content, TEMP));
        self.open.retain(|_, (held, _)| held.holders() > 1);
        self.open.insert(file.raw(), (file.clone(), self.next_inode));
        file
    }

    /// Writes into a file without a name; false if it has one.
    pub fn write_temp(&mut self, file: &FileRef, offset: u64, bytes: &[u8]) -> bool {
        let Some((_, number)) = self.open.get(&file.raw()) else { return false };
        let Some(inode) = self.inodes.get_mut(number).filter(|inode| inode.path == TEMP) else {
            return false;
        };
        let mut all = inode.content.bytes.to_vec();
        let end = offset as usize + bytes.len();
        all.resize(all.len().max(end), 0);
        all[offset as usize..end].copy_from_slice(bytes);
        inode.content.bytes = all.into();
        true
    }

    /// Creates a new file at `path` as `file`; `None` if the path exists.
    pub fn create(&mut self, path: &str, file: FileRef, now: u64) -> Option<FileRef> {
        if self.paths.contains_key(path) {
            return None;
        }
        self.record_rename(&[path]);
        self.next_inode += 1;
        let content = Content { bytes: Rc::new([]), modified: now };
        self.inodes.insert(self.next_inode, Inode::new(content, path));
        self.paths.insert(path.to_owned(), self.next_inode);
        self.open.retain(|_, (held, _)| held.holders() > 1);
        self.open.insert(file.raw(), (file.clone(), self.next_inode));
        Some(file)
    }

    /// Writes into a file that the server created; false if it did not create it.
    pub fn write(&mut self, file: &FileRef, offset: Option<u64>, bytes: &[u8]) -> bool {
        let Some((_, number)) = self.open.get(&file.raw()) else { return false };
        let Some(inode) = self.inodes.get_mut(number) else { return false };
        if !is_stored(&inode.path) && !is_body(&inode.path) && !is_partial_copy(&inode.path) {
            return false;
        }
        let mut all = inode.content.bytes.to_vec();
        let start = offset.map_or(all.len(), |offset| offset as usize);
        all.resize(all.len().max(start + bytes.len()), 0);
        all[start..start + bytes.len()].copy_from_slice(bytes);
        inode.content.bytes = all.into();
        true
    }

    /// Renames a file; false if there is none.
    pub fn rename(&mut self, from: &str, to: &str) -> bool {
        if !self.paths.contains_key(from) {
            return false;
        }
        self.record_rename(&[from, to]);
        let Some(number) = self.paths.remove(from) else { return false };
        if let Some(inode) = self.inodes.get_mut(&number) {
            to.clone_into(&mut inode.path);
        }
        self.paths.insert(to.to_owned(), number);
        true
    }

    /// Removes a name; false if there is none.
    pub fn unlink(&mut self, path: &str) -> bool {
        self.paths.remove(path).is_some()
    }

    /// The path of an open file, empty if it is not open.
    #[must_use]
    pub fn path_of(&self, file: &FileRef) -> &str {
        self.inode(file).map_or("", |inode| &inode.path)
    }

    /// Every cache file.
    pub fn stored(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.paths
            .iter()
            .filter(|(path, _)| is_stored(path))
            .filter_map(|(path, number)| Some((&**path, &*self.inodes.get(number)?.content.bytes)))
    }

    /// Whether the file at a path has these bytes.
    #[must_use]
    pub fn holds(&self, path: &str, bytes: &[u8]) -> bool {
        matches!(self.lookup(path), PathState::File(content) if *content.bytes == *bytes)
    }

    /// Paths of files with this prefix.
    pub fn below<'a>(&'a self, start: &'a str) -> impl Iterator<Item = &'a str> {
        self.paths.keys().map(String::as_str).filter(move |path| path.starts_with(start))
    }

    /// The number of names of an open file.
    #[must_use]
    pub fn links(&self, file: &FileRef) -> u64 {
        let number = self.open.get(&file.raw()).map(|(_, number)| *number);
        u64::from(self.paths.values().any(|known| Some(*known) == number))
    }

    /// The names in a directory; `true` marks directories.
    #[must_use]
    pub fn entries(&self, directory: &str) -> Vec<(String, bool)> {
        let names = |path: &str| {
            let rest = path.strip_prefix(directory)?.strip_prefix('/')?;
            (!rest.is_empty() && !rest.contains('/')).then(|| rest.to_owned())
        };
        let files = self.paths.keys().filter_map(|path| Some((names(path)?, false)));
        let inner = self.directories.iter().filter_map(|(path, _)| Some((names(path)?, true)));
        files.chain(inner).collect()
    }

    /// Whether a directory exists.
    #[must_use]
    pub fn has_directory(&self, path: &str) -> bool {
        self.directories.iter().any(|(known, _)| known == path)
    }

    /// The current content of an open file.
    #[must_use]
    pub fn content(&self, file: &FileRef) -> Option<Content> {
        self.inode(file).map(|inode| inode.content.clone())
    }

    /// The attributes of an open file.
    #[must_use]
    pub fn stat_open(&self, file: &FileRef) -> Option<Stat> {
        let (_, number) = self.open.get(&file.raw())?;
        self.inodes.get(number).map(|inode| attributes(*number, &inode.content))
    }

    /// Open files and the number of their holders, without this table; files without holders are
    /// left out.
    pub fn held(&self) -> impl Iterator<Item = (&str, usize)> {
        self.open.values().filter(|(file, _)| file.holders() > 1).map(|(file, number)| {
            let path = self.inodes.get(number).map_or("?", |inode| &*inode.path);
            (path, file.holders() - 1)
        })
    }

    fn inode(&self, file: &FileRef) -> Option<&Inode> {
        let (_, number) = self.open.get(&file.raw())?;
        self.inodes.get(number)
    }

    pub(super) fn record_state(&mut self, path: &str, now: u64, seen: PathState) {
        self.watches.note(path, matches!(seen, PathState::Absent));
        self.histories.entry(path.to_owned()).or_default().push((now, seen));
    }
}

/// Files above this size have exact modification times.
const EXACT_ABOVE: usize = bolide_base::limits::FILE_CONTENT_MAX as usize;

const fn stamp(bytes: &[u8], now: u64) -> u64 {
    if bytes.len() > EXACT_ABOVE { now } else { now / TICK * TICK }
}

fn attributes(inode: u64, content: &Content) -> Stat {
    let (seconds, nanos) = (content.mtime_seconds(), content.modified % 1_000_000_000);
    let (seconds, nanos) = (seconds.cast_signed(), nanos as u32);
    Stat {
        size: content.bytes.len() as u64,
        mtime_seconds: seconds,
        mtime_nanos: nanos,
        ctime_seconds: seconds,
        ctime_nanos: nanos,
        inode,
        device: 1,
        mode: 0o100_644,
        is_regular: true,
        ..Stat::default()
    }
}
