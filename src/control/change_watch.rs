//! `reload_on_change`: whether files of the configuration or certificates have changed since they
//! were read.
//!
//! A change counts once it has been the same for two checks. Directories are watched as well, so
//! that a new file for an `include` is noticed.

use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bolide_base::Instant;

/// The interval of checks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The identity of a file's content: device, inode, size, and modification time in seconds and
/// nanoseconds. `None` for a missing file.
pub(super) type FileMark = Option<(u64, u64, u64, i64, i64)>;

fn mark(path: &Path) -> FileMark {
    let of = std::fs::metadata(path).ok()?;
    // For a directory, the time is enough.
    let size = if of.is_dir() { 0 } else { of.size() };
    Some((of.dev(), of.ino(), size, of.mtime(), of.mtime_nsec()))
}

/// The files of the running configuration, with their marks.
#[derive(Debug, Default)]
pub(super) struct ChangeWatch {
    seen: Vec<(PathBuf, FileMark)>,
    /// The marks of the last check, if they differed.
    other: Option<Vec<FileMark>>,
    looked: Instant,
}

impl ChangeWatch {
    /// The current marks of the watched files, for [`Self::settle`]: taken before the files are
    /// read.
    pub(super) fn marks(&self) -> Vec<FileMark> {
        self.seen.iter().map(|(path, _)| mark(path)).collect()
    }

    /// Watches these files and their directories from now on. `before` are the marks of the
    /// previously watched files: later changes were not read.
    pub(super) fn settle(&mut self, files: impl Iterator<Item = PathBuf>, before: Vec<FileMark>) {
        let mut paths = BTreeSet::new();
        for file in files {
            paths.extend(file.parent().map(Path::to_path_buf));
            paths.insert(file);
        }
        let old = std::mem::take(&mut self.seen).into_iter().map(|(path, _)| path);
        let old: HashMap<PathBuf, FileMark> = old.zip(before).collect();
        self.seen = paths
            .into_iter()
            .map(|path| {
                let mark = old.get(&path).copied().unwrap_or_else(|| mark(&path));
                (path, mark)
            })
            .collect();
        self.other = None;
    }

    /// Whether the files differ from those that were read, and did at the last check as well.
    pub(super) fn has_changed(&mut self, now: Instant) -> bool {
        if now.since(self.looked) < LOOK_EVERY {
            return false;
        }
        self.looked = now;
        let found = self.marks();
        if found.iter().eq(self.seen.iter().map(|(_, mark)| mark)) {
            self.other = None;
            return false;
        }
        let has_lasted = self.other.as_ref() == Some(&found);
        self.other = Some(found);
        has_lasted
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use bolide_base::Instant;
    use bolide_testkit::site::TempDir;

    use super::ChangeWatch;

    #[test]
    fn a_change_counts_when_it_has_lasted_and_only_once() {
        let dir = TempDir::new();
        let (file, other) = (dir.join("a.conf"), dir.join("b.conf"));
        std::fs::write(&file, "a").unwrap();
        let mut watch = ChangeWatch::default();
        let settle = |watch: &mut ChangeWatch| {
            let before = watch.marks();
            watch.settle([file.clone()].into_iter(), before);
        };
        settle(&mut watch);
        let mut now = Instant::from_nanos(0);
        let mut look = |watch: &mut ChangeWatch| {
            now = now.after(Duration::from_secs(1));
            watch.has_changed(now)
        };
        assert!(!look(&mut watch) && !look(&mut watch));
        let steps: [(&dyn Fn(), &str); 4] = [
            (&|| std::fs::write(&file, "another").unwrap(), "another text"),
            (&|| std::fs::write(&other, "b").unwrap(), "a file more"),
            (&|| std::fs::rename(&other, &file).unwrap(), "another file"),
            (&|| std::fs::remove_file(&file).unwrap(), "no file"),
        ];
        for (step, what) in steps {
            step();
            assert!(!look(&mut watch), "{what} may still change");
            assert!(look(&mut watch), "{what}");
            settle(&mut watch);
            assert!(!look(&mut watch) && !look(&mut watch), "{what} has been read");
        }
        // What changes while it is read has not been read.
        let before = watch.marks();
        std::fs::write(&file, "c").unwrap();
        watch.settle([PathBuf::from(&file)].into_iter(), before);
        assert!(!look(&mut watch) && look(&mut watch));
    }
}
