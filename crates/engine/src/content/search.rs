//! The path on disk that a request is looked for at.

use bytes::Bytes;

use crate::ctx::Made;

/// What an exchange knows of the files that may answer it. Its buffer is kept between requests.
#[derive(Debug, Default)]
pub(crate) struct FileSearch {
    /// A path on disk.
    pub(crate) path: Vec<u8>,
    /// Whether a listing was asked for already.
    pub(crate) waited_for_listing: bool,
    /// A part of a video that was made; it is taken in the same turn, and says of which file it is.
    pub(crate) video: Option<Box<bolide_files::Mp4Made>>,
    /// The listing of a large directory that was written; it is taken in the same turn.
    pub(crate) listed: Option<Bytes>,
}

impl FileSearch {
    /// Forgets what the request before it was waiting for.
    pub(crate) fn begin(&mut self) {
        (self.waited_for_listing, self.listed) = (false, None);
    }

    /// Takes what was made beside the worker.
    pub(crate) fn take_made(&mut self, made: Made) {
        match made {
            Made::Video(video) => self.video = Some(video),
            Made::Listing(text) => self.listed = Some(text),
        }
    }
}
