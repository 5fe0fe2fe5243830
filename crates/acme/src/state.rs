//! The state directory: files with mode 0600 that are replaced as a whole, the lock that keeps two
//! processes from ordering at once, and the one that is held while a certificate is replaced.
//!
//! It follows no symbolic link and reads nothing that others can write. With `state_path off` the
//! same files are kept in memory.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::rand;

use crate::certificate::{BUNDLE_MAX, digest_hex};

/// The file whose lock a process holds while it orders.
const LOCK: &str = "lock";
/// The file whose lock is held while a certificate is replaced: by an attempt, which has the other
/// one as well, and by who takes over another server's.
const REPLACING: &str = "replacing";
/// How long that lock is waited for: so many steps of this length.
const REPLACING_STEPS: usize = 100;
const REPLACING_STEP: Duration = Duration::from_millis(20);
/// What names of files end with that are not whole yet.
const NEXT: &str = "new";
/// Seconds after which such a file was left behind by a process that died.
const LEFT_BEHIND: u64 = 3600;
/// LIMIT: names that are tried for a file that is not whole yet.
const NAMES_TRIED: usize = 8;
/// LIMIT: bytes of a file name's readable part; file systems take 255 with its ends.
const READABLE_MAX: usize = 100;

/// Where the files of an issuer are.
#[derive(Debug)]
pub enum AcmeStore {
    /// In a directory.
    Directory(PathBuf),
    /// In memory only.
    Memory(Mutex<BTreeMap<String, Vec<u8>>>),
}

/// Shows whether a file was replaced: inode, time in nanoseconds and length.
pub type FileStamp = (u64, i128, u64);

impl AcmeStore {
    /// The files below `path`; in memory without one.
    #[must_use]
    pub fn new(path: Option<&Path>) -> Self {
        match path {
            Some(path) => Self::Directory(path.to_owned()),
            None => Self::Memory(Mutex::default()),
        }
    }

    /// Makes the directory with mode 0700 if it is missing, and gives it to `owner`.
    ///
    /// # Errors
    ///
    /// It cannot be made, is no directory, or others can write to it.
    pub fn prepare(&self, owner: Option<(u32, u32)>) -> Result<(), String> {
        let Self::Directory(path) = self else { return Ok(()) };
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        let is_missing =
            matches!(&made, Err(error) if error.kind() != io::ErrorKind::AlreadyExists);
        if is_missing && !path.is_dir() {
            made.map_err(|error| describe("cannot make", path, &error))?;
        }
        check(path)?;
        if let Some((uid, gid)) = owner {
            chown(path, Some(uid), Some(gid))
                .map_err(|error| describe("cannot chown", path, &error))?;
        }
        Ok(())
    }

    /// The content of a file of at most `most` bytes; none if there is no such file.
    ///
    /// # Errors
    ///
    /// It cannot be read, is larger, is no file, or others can write to its directory.
    pub fn read(&self, name: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        let dir = match self {
            Self::Directory(dir) => dir,
            Self::Memory(files) => return Ok(held(files).get(name).cloned()),
        };
        let path = dir.join(name);
        // Workers own the directory, and the process may be root: one descriptor for everything.
        let file = match bolide_io::file::open_not_linked(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(describe("cannot open", &path, &error)),
        };
        check(dir)?;
        let about = file.metadata().map_err(|error| describe("cannot read", &path, &error))?;
        if about.len() > most as u64 {
            return Err(format!("\"{}\" is no file of at most {most} bytes", path.display()));
        }
        if about.mode() & 0o077 != 0 {
            // Best effort: the start-up may read files of another account.
            let _unchanged = file.set_permissions(Permissions::from_mode(0o600));
        }
        let mut content = Vec::new();
        let read = file.take(most as u64).read_to_end(&mut content);
        read.map_err(|error| describe("cannot read", &path, &error))?;
        Ok(Some(content))
    }

    /// Replaces a file: a crash leaves the old content or the new.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), String> {
        let dir = match self {
            Self::Directory(dir) => dir,
            Self::Memory(files) => {
                held(files).insert(name.to_owned(), content.to_vec());
                return Ok(());
            }
        };
        self.prepare(None)?;
        let path = dir.join(name);
        let failed = |error: &io::Error| describe("cannot write", &path, error);
        let (next, mut file) = new_file(dir, || next_name(name)).map_err(|error| failed(&error))?;
        let mut write = || {
            file.write_all(content)?;
            file.sync_all()?;
            fs::rename(&next, &path)?;
            OpenOptions::new().read(true).open(dir)?.sync_all()
        };
        write().map_err(|error| {
            let _gone = remove(&next);
            failed(&error)
        })
    }

    /// Removes what processes that died while they wrote have left behind.
    pub(crate) fn sweep(&self, now: u64) {
        let Self::Directory(dir) = self else { return };
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_next = path.extension().is_some_and(|end| end == NEXT);
            let about = if is_next { about(&path).ok().flatten() } else { None };
            let is_old = |about: fs::Metadata| {
                about.is_file() && u64::try_from(about.mtime()).unwrap_or(0) + LEFT_BEHIND < now
            };
            if about.is_some_and(is_old) {
                // It is in the way of nothing.
                let _stays = remove(&path);
            }
        }
    }

    /// Takes the lock under which a certificate is replaced; it is held for a moment.
    ///
    /// # Errors
    ///
    /// The directory is unusable, or another process has held the lock for too long.
    pub(crate) fn lock_replacing(&self) -> Result<StoreLock, String> {
        for _ in 0..REPLACING_STEPS {
            match self.try_lock(REPLACING)? {
                Some(lock) => return Ok(lock),
                None => std::thread::park_timeout(REPLACING_STEP),
            }
        }
        Err(format!("another process writes to {} for too long", self.shown(REPLACING)))
    }

    /// Removes a file if it exists.
    ///
    /// # Errors
    ///
    /// It cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), String> {
        match self {
            Self::Directory(dir) => {
                let path = dir.join(name);
                remove(&path).map_err(|error| describe("cannot remove", &path, &error))
            }
            Self::Memory(files) => {
                held(files).remove(name);
                Ok(())
            }
        }
    }

    /// Keeps what a file has now, if there is one, beside it: the name gets a part of its hash and
    /// the end `.old`, so that it replaces no other one.
    ///
    /// # Errors
    ///
    /// It cannot be read or written.
    pub(crate) fn keep_old(&self, name: &str) -> Result<(), String> {
        let Some(content) = self.read(name, BUNDLE_MAX)? else { return Ok(()) };
        self.write(&format!("{name}.{}.old", &digest_hex(&content)[..16]), &content)
    }

    /// Renames a file that is of no use, so that an administrator can look at it: the name gets
    /// the end `.damaged`, and replaces an earlier one.
    ///
    /// # Errors
    ///
    /// It cannot be renamed.
    pub fn set_aside(&self, name: &str) -> Result<(), String> {
        match self {
            Self::Directory(dir) => {
                let path = dir.join(name);
                let renamed = fs::rename(&path, dir.join(format!("{name}.damaged")));
                renamed.map_err(|error| describe("cannot rename", &path, &error))
            }
            Self::Memory(_) => self.remove(name),
        }
    }

    /// What changes with the content of a file; none if there is no file.
    #[must_use]
    pub fn stamp(&self, name: &str) -> Option<FileStamp> {
        let dir = match self {
            Self::Directory(dir) => dir,
            Self::Memory(files) => {
                let held = held(files);
                let content = held.get(name)?;
                let digest = digest_hex(content);
                let start = u64::from_str_radix(&digest[..16], 16).ok()?;
                return Some((start, 0, content.len() as u64));
            }
        };
        let about = about(&dir.join(name)).ok().flatten()?;
        let time = i128::from(about.mtime()) * 1_000_000_000 + i128::from(about.mtime_nsec());
        Some((about.ino(), time, about.len()))
    }

    /// Where a file is, for messages.
    #[must_use]
    pub fn shown(&self, name: &str) -> String {
        match self {
            Self::Directory(dir) => format!("\"{}\"", dir.join(name).display()),
            Self::Memory(_) => format!("\"{name}\" (in memory)"),
        }
    }

    /// Takes the lock of the directory; none if another process has it. It is free again when the
    /// value goes, also by a crash.
    ///
    /// # Errors
    ///
    /// The directory is unusable.
    pub fn lock(&self) -> Result<Option<StoreLock>, String> {
        self.try_lock(LOCK)
    }

    fn try_lock(&self, name: &str) -> Result<Option<StoreLock>, String> {
        let Self::Directory(dir) = self else { return Ok(Some(StoreLock(None))) };
        self.prepare(None)?;
        let path = dir.join(name);
        if about(&path)?.is_some_and(|about| !about.is_file()) {
            return Err(format!("\"{}\" is no file", path.display()));
        }
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let file = file.map_err(|error| describe("cannot open", &path, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(StoreLock(Some(file)))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(describe("cannot lock", &path, &error)),
        }
    }
}

/// The lock of a state directory.
#[derive(Debug)]
pub struct StoreLock(#[expect(dead_code, reason = "held, not used")] Option<File>);

/// A file name for any text: its harmless characters, and a part of its hash.
#[must_use]
pub fn file_stem(text: &str) -> String {
    let harmless = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' => c,
        _ => '_',
    };
    let readable: String = text.chars().map(harmless).take(READABLE_MAX).collect();
    let readable = readable.trim_start_matches('.');
    format!("{readable}-{}", &digest_hex(text.as_bytes())[..16])
}

/// A name that no other write has. It is by chance, as processes that share a directory may have
/// the same number, each in its container.
fn next_name(name: &str) -> String {
    let mut chance = [0; 8];
    // Without chance a name may be taken, which is an error and harms no other write.
    let _unlikely = rand::fill(&mut chance);
    format!("{name}.{:016x}.{NEXT}", u64::from_le_bytes(chance))
}

/// A file that nothing else writes to, at the first of these names that is free.
fn new_file(dir: &Path, name: impl Fn() -> String) -> io::Result<(PathBuf, File)> {
    let mut left = NAMES_TRIED;
    loop {
        left -= 1;
        let path = dir.join(name());
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && left > 0 => {}
            opened => return Ok((path, opened?)),
        }
    }
}

/// Refuses a directory to which others can write.
fn check(path: &Path) -> Result<(), String> {
    let found = fs::metadata(path).map_err(|error| describe("cannot read", path, &error))?;
    if !found.is_dir() {
        return Err(format!("\"{}\" is no directory", path.display()));
    }
    if found.mode() & 0o022 != 0 {
        return Err(format!("others than its owner can write to \"{}\"", path.display()));
    }
    Ok(())
}

/// What is at a path, without following a link.
fn about(path: &Path) -> Result<Option<fs::Metadata>, String> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(describe("cannot read", path, &error)),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn describe(what: &str, path: &Path, error: &io::Error) -> String {
    format!("{what} \"{}\": {error}", path.display())
}

fn held(files: &Mutex<BTreeMap<String, Vec<u8>>>) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
    files.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;

    fn store() -> (PathBuf, AcmeStore) {
        let path = bolide_testkit::site::temp_dir().join("state");
        let store = AcmeStore::new(Some(&path));
        (path, store)
    }

    #[test]
    fn files_are_private_and_replaced_as_a_whole() {
        let (path, store) = store();
        assert_eq!(store.read("a", 10), Ok(None));
        store.write("a", b"one").unwrap();
        let before = store.stamp("a");
        store.write("a", b"two").unwrap();
        assert_ne!(store.stamp("a"), before);
        assert_eq!(store.read("a", 10), Ok(Some(b"two".to_vec())));
        assert!(store.read("a", 2).is_err(), "larger than its limit");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&path), mode(&path.join("a"))), (0o700, 0o600));
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1, "nothing is left behind");
        for content in ["two", "three", "three"] {
            store.write("a", content.as_bytes()).unwrap();
            store.keep_old("a").unwrap();
        }
        assert_eq!(fs::read_dir(&path).unwrap().count(), 3, "none replaces another one");
        store.set_aside("a").unwrap();
        assert_eq!(store.read("a", 10), Ok(None));
        assert!(path.join("a.damaged").exists());
    }

    #[test]
    fn links_and_open_directories_are_refused() {
        let (path, store) = store();
        store.write("a", b"one").unwrap();
        let outside = path.with_file_name("outside");
        fs::write(&outside, b"untouched").unwrap();
        symlink(&outside, path.join("link")).unwrap();
        assert!(store.read("link", 100).is_err());
        store.write("link", b"new").unwrap();
        store.write("a", b"new").unwrap();
        assert_eq!(fs::read(&outside).unwrap(), b"untouched");
        fs::remove_file(path.join(LOCK)).unwrap_or_default();
        symlink(&outside, path.join(LOCK)).unwrap();
        assert!(store.lock().is_err());
        fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
        assert!(store.read("a", 10).is_err() && store.write("a", b"x").is_err());
    }

    #[test]
    fn a_readable_key_file_is_made_private() {
        let (path, store) = store();
        store.write("a", b"one").unwrap();
        fs::set_permissions(path.join("a"), Permissions::from_mode(0o644)).unwrap();
        store.read("a", 10).unwrap();
        assert_eq!(fs::metadata(path.join("a")).unwrap().mode() & 0o777, 0o600);
    }

    /// However many write at the same time: each content that is read is one that was written.
    #[test]
    fn writers_at_once_do_not_mix_what_they_write() {
        let (path, store) = store();
        store.write("a", b"0").unwrap();
        let is_whole = |found: &[u8]| found.iter().all(|byte| *byte == found[0]);
        std::thread::scope(|scope| {
            for writer in 1..=4_u8 {
                let own = AcmeStore::new(Some(&path));
                scope.spawn(move || {
                    for _ in 0..20 {
                        own.write("a", &vec![writer; 20_000 * usize::from(writer)]).unwrap();
                    }
                });
            }
            for _ in 0..200 {
                let found = store.read("a", 1 << 20).unwrap().unwrap();
                assert!(!found.is_empty() && is_whole(&found));
            }
        });
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1, "nothing is left behind");
    }

    #[test]
    fn a_file_that_another_one_writes_is_left_alone() {
        let (path, store) = store();
        store.write("a", b"one").unwrap();
        let taken = path.join("a.taken.new");
        fs::write(&taken, b"of another process").unwrap();
        let found = new_file(&path, || "a.taken.new".to_owned());
        assert_eq!(found.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&taken).unwrap(), b"of another process");
        assert_ne!(next_name("a"), next_name("a"));
    }

    #[test]
    fn what_a_dead_process_left_is_swept_and_what_is_being_written_is_not() {
        let (path, store) = store();
        store.write("a", b"one").unwrap();
        let next = path.join(next_name("a"));
        fs::write(&next, b"tw").unwrap();
        let now = u64::try_from(fs::metadata(&next).unwrap().mtime()).unwrap();
        store.sweep(now + 10);
        assert!(next.exists());
        store.sweep(now + LEFT_BEHIND + 1);
        assert!(!next.exists() && path.join("a").exists());
    }

    #[test]
    fn the_lock_is_one_process_at_a_time() {
        let (path, store) = store();
        let held = store.lock().unwrap();
        assert!(held.is_some());
        let other = AcmeStore::new(Some(&path));
        assert!(other.lock().unwrap().is_none());
        // Who orders does not keep others from taking over a certificate.
        let replacing = other.lock_replacing().unwrap();
        assert!(store.try_lock(REPLACING).unwrap().is_none());
        drop((held, replacing));
        assert!(other.lock().unwrap().is_some());
    }

    proptest! {
        #[test]
        fn names_of_files_are_harmless_and_their_own(a in "\\PC{0,300}", b in "\\PC{0,300}") {
            let (one, two) = (file_stem(&a), file_stem(&b));
            prop_assert_eq!(a == b, one == two);
            prop_assert!(one.len() <= 200 && !one.contains(['/', '\0']) && !one.starts_with('.'));
        }
    }
}
