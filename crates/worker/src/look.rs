//! Looks at the disk for the table of open files, through the door.

use bolide_files::{DirEntry, FileKind, Meta, OpenFailure, Probe, Probed, SymlinkPolicy, Want};
use bolide_io::{Io, OpenRequest, Stat, SymlinkRule};
use bytes::Bytes;

/// Looks at the disk as `files` asks.
pub fn look(io: &mut impl Io, probe: &Probe) -> Probed {
    let result = match probe.want {
        Want::Stat => open(io, probe, true, 0).map(|(meta, _, _)| Probed::Seen(meta)),
        Want::List => list(io, probe),
        Want::Open { content_max } => open_whole(io, probe, content_max),
    };
    result.unwrap_or_else(|failure| Probed::Failed(OpenFailure::from_errno(failure.errno)))
}

type FileLookupDone<T> = Result<T, bolide_io::FileFailure>;

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

/// The door's word for what `disable_symlinks` says.
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
    Ok(match open(io, probe, false, content_max)? {
        (meta, _, Some(content)) => Probed::Content(meta, Bytes::from(content)),
        (meta, Some(file), None) => Probed::Open(meta, file),
        (meta, None, None) => Probed::Seen(meta),
    })
}

fn list(io: &mut impl Io, probe: &Probe) -> FileLookupDone<Probed> {
    let (own, _, _) = open(io, probe, true, 0)?;
    let entries = io.list(&probe.path)?.into_iter().map(|(name, stat)| DirEntry {
        name: name.into_boxed_slice(),
        kind: kind(&stat),
        size: stat.size,
        mtime_secs: stat.mtime_seconds,
    });
    Ok(Probed::Listing(own, entries.collect()))
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
