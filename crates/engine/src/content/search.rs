//! The path on disk that a request is looked for at.

use crate::ctx::JobResult;

/// What an exchange knows of the files that may answer it. Its buffer is kept between requests.
#[derive(Debug, Default)]
pub(crate) struct FileSearch {
    /// A path on disk.
    pub(crate) path: Vec<u8>,
    /// Whether a listing was asked for already.
    pub(crate) waited_for_listing: bool,
    /// What was made beside the worker; it is taken in the same turn.
    pub(crate) made: Option<JobResult>,
}

impl FileSearch {
    /// Forgets what the request before it was waiting for.
    pub(crate) fn begin(&mut self) {
        (self.waited_for_listing, self.made) = (false, None);
    }
}
