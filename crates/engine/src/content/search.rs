//! The path on disk of a request.

use crate::ctx::JobResult;
use crate::htaccess::listed::JudgedListing;

/// The state of the search for a file. Its buffer is reused.
#[derive(Debug, Default)]
pub(crate) struct FileSearch {
    /// A path on disk.
    pub(crate) path: Vec<u8>,
    /// Whether a listing was requested already.
    pub(crate) waited_for_listing: bool,
    /// A finished job of the thread; it is used in the same turn.
    pub(crate) made: Option<JobResult>,
    /// The listing that is being judged.
    pub(crate) judged: JudgedListing,
}

impl FileSearch {
    /// Clears the state of the last request.
    pub(crate) fn begin(&mut self) {
        (self.waited_for_listing, self.made) = (false, None);
        self.judged = JudgedListing::default();
    }
}
