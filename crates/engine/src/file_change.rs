//! What a request wants changed on disk, as a value, and what came of it.

use bolide_base::FileRef;
use bolide_conf::model::{FileAccess, LogLevel};
use bolide_files::SymlinkPolicy;

/// A change of files. Paths are absolute.
#[derive(Debug)]
pub struct FileChange {
    /// What is done.
    pub kind: FileChangeKind,
    /// Which links on the way to a path are refused (`disable_symlinks`); no link is followed at
    /// its end.
    pub symlinks: SymlinkPolicy,
}

/// The kinds of changes, with WebDAV's meaning (RFC 4918 §9).
#[derive(Debug)]
pub enum FileChangeKind {
    /// `PUT`
    Place(FilePlacement),
    /// `DELETE` of a file, or with a slash at the end of the path of a directory and all in it.
    Delete {
        /// What goes.
        path: Vec<u8>,
        /// What `Depth` said.
        depth: DavDepth,
    },
    /// `MKCOL`
    MakeDirectory {
        /// The new directory, without a slash at the end.
        path: Vec<u8>,
        /// Its permissions.
        access: FileAccess,
    },
    /// `COPY`
    Copy(FileTransfer),
    /// `MOVE`
    Move(FileTransfer),
}

impl FileChangeKind {
    /// The path that it is about, and the second one of two.
    #[must_use]
    pub fn paths(&self) -> (&[u8], Option<&[u8]>) {
        match self {
            Self::Place(placement) => (&placement.to, None),
            Self::Delete { path, .. } | Self::MakeDirectory { path, .. } => (path, None),
            Self::Copy(transfer) | Self::Move(transfer) => (&transfer.from, Some(&transfer.to)),
        }
    }
}

/// The way of a temporary file to its place.
#[derive(Debug)]
pub struct FilePlacement {
    /// The temporary file: its name is gone afterwards, whatever comes of it.
    pub temporary: Box<[u8]>,
    /// The same, open.
    pub file: FileRef,
    /// Its place.
    pub to: Vec<u8>,
    /// Its permissions, and those of directories that are made for it.
    pub access: FileAccess,
    /// Its modification time, if one was told: seconds since 1970.
    pub modified: Option<i64>,
    /// Whether missing directories are made.
    pub makes_directories: bool,
}

/// From where to where.
#[derive(Debug)]
pub struct FileTransfer {
    /// What is there.
    pub from: Vec<u8>,
    /// Where it is to be; both end with a slash, or none does.
    pub to: Vec<u8>,
    /// The address of the first, for the log.
    pub from_uri: Vec<u8>,
    /// The address of the second.
    pub to_uri: Vec<u8>,
    /// Whether something may be there already.
    pub overwrites: bool,
    /// The permissions of directories that are made for a file that moves.
    pub access: FileAccess,
}

/// What `Depth` says (RFC 4918 §10.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DavDepth {
    /// Nothing.
    Absent,
    /// `0`
    Zero,
    /// `1`
    One,
    /// `infinity`
    Infinity,
    /// Something else.
    Invalid,
}

/// What came of a change.
#[derive(Debug)]
pub struct FileOutcome {
    /// The status that says so: 201, 204 or an error.
    pub status: u16,
    /// Lines for the log.
    pub notes: Vec<(LogLevel, Vec<u8>)>,
}

impl Default for FileOutcome {
    fn default() -> Self {
        Self { status: 204, notes: Vec::new() }
    }
}
