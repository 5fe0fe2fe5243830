//! File lookups for the table of open files.

use bolide_base::errno::EFBIG;
use bolide_base::limits;
use bolide_files::{DirEntry, FileKind, Meta, OpenFailure, Probe, Probed, SymlinkPolicy, Want};
use bolide_io::{Entries, FileFailure, Io, OpenRequest, Stat, SymlinkRule};
use bytes::Bytes;

/// Performs a file lookup.
pub fn look(io: &mut impl Io, probe: &Probe) -> Probed {
    let result = match probe.want {
        Want::Stat => open(io, probe, true, 0).map(|(meta, _, _)| Probed::Seen(meta)),
        Want::List => DirectoryScan::begin(io, probe).map(|mut scan| {
            loop {
                if let Some(found) = scan.go_on(SCANNED_AT_ONCE) {
                    break found;
                }
            }
        }),
        Want::Open { content_max } => open_whole(io, probe, content_max),
    };
    result.unwrap_or_else(|failure| Probed::Failed(OpenFailure::from_errno(failure.errno)))
}

/// Directory entries that one turn reads.
pub(crate) const SCANNED_AT_ONCE: usize = 512;

type FileLookupDone<T> = Result<T, FileFailure>;

fn open(
    io: &mut impl Io,
    probe: &Probe,
    stat_only: bool,
    content_max: u64,
) -> FileLookupDone<(Meta, Option<bolide_base::FileRef>, Option<Vec<u8>>)> {
    let symlinks = symlink_rule(probe.policy.symlinks);
    let request = OpenRequest { path: &probe.path, symlinks, content_max, stat_only };
    let opened = io.open(&request)?;
    Ok((meta(&opened.stat), opened.file, opened.content))
}

/// Converts the policy of `disable_symlinks`.
pub(crate) const fn symlink_rule(policy: SymlinkPolicy) -> SymlinkRule {
    match policy {
        SymlinkPolicy::Follow => SymlinkRule::Follow,
        SymlinkPolicy::Refuse { from } => SymlinkRule::Refuse { from },
        SymlinkPolicy::RefuseForeign { from } => SymlinkRule::SameOwner { from },
    }
}

fn open_whole(io: &mut impl Io, probe: &Probe, content_max: u64) -> FileLookupDone<Probed> {
    if let Some(known) = probe.known {
        let (now, _, _) = open(io, probe, true, 0)?;
        if now == known {
            return Ok(Probed::Unchanged);
        }
    }
    let opened = match open(io, probe, false, content_max) {
        Ok(opened) => opened,
        Err(failure) => return look_again(io, probe, failure),
    };
    Ok(match opened {
        (meta, _, Some(content)) => Probed::Content(meta, Bytes::from(content)),
        (meta, Some(file), None) => Probed::Open(meta, file),
        (meta, None, None) => Probed::Seen(meta),
    })
}

/// Whether something exists at a path that could not be opened.
fn look_again(io: &mut impl Io, probe: &Probe, failure: FileFailure) -> FileLookupDone<Probed> {
    let why = OpenFailure::from_errno(failure.errno);
    if why.is_absence() {
        return Err(failure);
    }
    open(io, probe, true, 0).map(|(meta, _, _)| Probed::Closed(meta, why))
}

/// A directory that is being read in bounded steps.
#[derive(Debug)]
pub(crate) struct DirectoryScan {
    own: Meta,
    entries: Entries,
    batch: Vec<(Vec<u8>, Stat)>,
    found: Vec<DirEntry>,
    most: usize,
}

impl DirectoryScan {
    /// Opens the directory of a probe.
    pub(crate) fn begin(io: &mut impl Io, probe: &Probe) -> FileLookupDone<Self> {
        debug_assert_eq!(probe.want, Want::List, "others are not scanned");
        let (own, _, _) = open(io, probe, true, 0)?;
        let entries = io.list(&probe.path)?;
        Ok(Self::of(own, entries, limits::ENTRIES_LISTED_MAX))
    }

    const fn of(own: Meta, entries: Entries, most: usize) -> Self {
        Self { own, entries, batch: Vec::new(), found: Vec::new(), most }
    }

    /// Reads at most this many entries; after the last one, returns all of them, sorted.
    pub(crate) fn go_on(&mut self, entries: usize) -> Option<Probed> {
        debug_assert!(entries > 0, "a piece of a directory is not empty");
        let taken = self.entries.take(entries, &mut self.batch);
        let read = self.batch.drain(..).map(|(name, stat)| DirEntry {
            name: name.into_boxed_slice(),
            kind: kind(&stat),
            size: stat.size,
            mtime_secs: stat.mtime_seconds,
        });
        self.found.extend(read);
        match taken {
            Err(failure) => Some(Probed::Failed(OpenFailure::from_errno(failure.errno))),
            Ok(_) if self.found.len() > self.most => {
                Some(Probed::Failed(OpenFailure::from_errno(EFBIG)))
            }
            Ok(true) => None,
            Ok(false) => {
                let mut found = std::mem::take(&mut self.found);
                bolide_files::listing::sort(&mut found);
                Some(Probed::Listing(self.own, found))
            }
        }
    }
}

const fn kind(stat: &Stat) -> FileKind {
    if stat.is_dir {
        FileKind::Directory
    } else if stat.is_regular {
        FileKind::File
    } else {
        FileKind::Other
    }
}

/// Attributes as `files` names them.
pub(crate) const fn meta(stat: &Stat) -> Meta {
    Meta {
        kind: kind(stat),
        size: stat.size,
        mtime_secs: stat.mtime_seconds,
        mtime_nanos: stat.mtime_nanos,
        ctime_secs: stat.ctime_seconds,
        ctime_nanos: stat.ctime_nanos,
        inode: stat.inode,
        dev: stat.device,
        mode: stat.mode,
        is_shared: stat.is_regular && stat.links > 1,
    }
}

#[cfg(test)]
mod tests {
    use bolide_base::errno::EFBIG;
    use bolide_files::{OpenFailure, Probed};
    use bolide_io::{Entries, FileFailure, Stat};

    use super::{DirectoryScan, meta};

    fn scan(count: usize, failure: Option<FileFailure>, most: usize) -> (usize, Probed) {
        let all = (0..count).rev().map(|n| (format!("{n:04}").into_bytes(), Stat::default()));
        let entries = Entries::known(all.collect(), failure);
        let mut scan = DirectoryScan::of(meta(&Stat::default()), entries, most);
        (1..).find_map(|piece| Some((piece, scan.go_on(10)?))).unwrap()
    }

    #[test]
    fn a_directory_is_read_in_pieces_and_sorted() {
        let (pieces, Probed::Listing(_, found)) = scan(95, None, 95) else { panic!() };
        assert_eq!((pieces, found.len()), (10, 95));
        assert!(found.is_sorted_by(|one, two| one.name < two.name));
    }

    #[test]
    fn one_that_is_too_large_or_cannot_be_read_to_its_end_is_none() {
        let (pieces, found) = scan(95, None, 42);
        let Probed::Failed(failure) = found else { panic!() };
        assert_eq!((pieces, failure.errno()), (5, EFBIG));
        let broken = FileFailure { errno: 5, call: "readdir" };
        let (_, found) = scan(95, Some(broken), 95);
        assert!(matches!(found, Probed::Failed(failure) if failure == OpenFailure::from_errno(5)));
    }
}
