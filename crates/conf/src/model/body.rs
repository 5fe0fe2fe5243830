//! Where request bodies that do not stay in memory are kept.

use std::path::PathBuf;
use std::sync::Arc;

/// A directory for files that come and go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TempPath {
    /// The directory.
    pub path: Arc<PathBuf>,
    /// How many letters name the directories below it, from the end of a file's name; files without
    /// names need none.
    pub levels: Vec<u8>,
}

/// `client_body_in_file_only`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFiles {
    /// `off`: only what memory does not hold, in a file without a name.
    Unnamed,
    /// `clean`: every body, as long as its request lasts.
    Removed,
    /// `on`: every body, and nobody removes it.
    Kept,
}
