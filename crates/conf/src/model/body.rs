//! Where request bodies that exceed memory are stored.

use std::path::PathBuf;
use std::sync::Arc;

/// A directory for temporary files.
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
    /// `off`: only bodies that exceed memory, in a file without a name.
    Unnamed,
    /// `clean`: every body, until its request ends.
    Removed,
    /// `on`: every body, in files that the server never removes.
    Kept,
}
