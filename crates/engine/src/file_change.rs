//! A requested change of files as a value, and its result.

use bolide_base::FileRef;
use bolide_conf::model::{FileAccess, LogLevel};
use bolide_files::SymlinkPolicy;

/// A change of files. Paths are absolute.
#[derive(Debug)]
pub struct FileChange {
    /// The operation.
    pub kind: FileChangeKind,
    /// Which symbolic links on the way are refused (`disable_symlinks`). A link as the last
    /// component is never followed.
    pub symlinks: SymlinkPolicy,
}

/// The kinds of changes, with WebDAV's meaning (RFC 4918 §9).
#[derive(Debug)]
pub enum FileChangeKind {
    /// `PUT`
    Place(FilePlacement),
    /// `DELETE` of a file, or of a directory with its contents if the path ends with a slash.
    Delete {
        /// The path to remove.
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
    /// The path of the operation, and the destination if there is one.
    #[must_use]
    pub fn paths(&self) -> (&[u8], Option<&[u8]>) {
        match self {
            Self::Place(placement) => (&placement.to, None),
            Self::Delete { path, .. } | Self::MakeDirectory { path, .. } => (path, None),
            Self::Copy(transfer) | Self::Move(transfer) => (&transfer.from, Some(&transfer.to)),
        }
    }
}

/// Moves a temporary file to its destination.
#[derive(Debug)]
pub struct FilePlacement {
    /// The temporary file; its name is gone afterwards, whatever the result.
    pub temporary: Box<[u8]>,
    /// The temporary file, open.
    pub file: FileRef,
    /// The destination.
    pub to: Vec<u8>,
    /// Its permissions, and those of directories that are made for it.
    pub access: FileAccess,
    /// The modification time if the client sent one: seconds since 1970.
    pub modified: Option<i64>,
    /// Whether missing directories are created.
    pub makes_directories: bool,
}

/// The source and destination of `COPY` or `MOVE`.
#[derive(Debug)]
pub struct FileTransfer {
    /// The source.
    pub from: Vec<u8>,
    /// The destination; both paths end with a slash, or neither does.
    pub to: Vec<u8>,
    /// The URI of the source, for the log.
    pub from_uri: Vec<u8>,
    /// The URI of the destination, for the log.
    pub to_uri: Vec<u8>,
    /// Whether an existing destination is replaced (`Overwrite`).
    pub overwrites: bool,
    /// The permissions of directories that `MOVE` creates for a file.
    pub access: FileAccess,
}

/// What `Depth` says (RFC 4918 §10.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DavDepth {
    /// No field.
    Absent,
    /// `0`
    Zero,
    /// `1`
    One,
    /// `infinity`
    Infinity,
    /// Another value.
    Invalid,
}

/// The result of a change.
#[derive(Debug)]
pub struct FileOutcome {
    /// 201, 204 or an error status.
    pub status: u16,
    /// Lines for the log.
    pub notes: Vec<(LogLevel, Vec<u8>)>,
}

impl Default for FileOutcome {
    fn default() -> Self {
        Self { status: 204, notes: Vec::new() }
    }
}
