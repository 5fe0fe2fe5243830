//! The path on disk that a request is looked for at.

/// What an exchange knows of the files that may answer it. Its buffer is kept between requests.
#[derive(Debug, Default)]
pub(crate) struct FileSearch {
    /// A path on disk.
    pub(crate) path: Vec<u8>,
    /// Whether a listing was asked for already.
    pub(crate) waited_for_listing: bool,
    /// A part of a video that was made; it is taken in the same turn, and says of which file it is.
    pub(crate) video: Option<Box<bolide_files::Mp4Made>>,
}
