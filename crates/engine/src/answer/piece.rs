//! What a pull from a body returns.

use bolide_base::FileRef;
use bolide_files::Meta;

/// The result of one pull.
#[derive(Clone, Debug)]
pub enum BodyPiece {
    /// Something was appended; pull again.
    More,
    /// Nothing now; [`crate::StepEffect::BodyReady`] reports when there is.
    Pending,
    /// Nothing now, because the filters have processed their limit of bytes for this turn. Pull
    /// again in the next one.
    Later,
    /// The body is complete; the last bytes may have been appended.
    End,
    /// The body cannot be completed: reset the stream or close the connection.
    Broken,
    /// Read this part of a file, call `ResponseBody::feed` with the bytes, then pull again.
    Read {
        /// The open file.
        file: FileRef,
        /// First byte to read.
        offset: u64,
        /// Bytes to read; fewer may be fed.
        len: u64,
        /// Who may change the file.
        whose: FileOwner,
    },
    /// Pull from the exchange with this key, pass the bytes to `SubrequestParent::take`, then pull
    /// again.
    Fragment(u64),
    /// Send this part of a file, then call `ResponseBody::advance` with the count of bytes.
    File {
        /// The open file.
        file: FileRef,
        /// First byte to send.
        offset: u64,
        /// Bytes to send, at most what was asked for.
        len: u64,
        /// Who may change the file. A file in transit must be read into memory: it may be
        /// overwritten after the read.
        whose: FileOwner,
    },
}

/// Who may change the file that a body reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOwner {
    /// A spool's file, without a name.
    Transit,
    /// The site's owner, at any time: as in nginx, the current bytes are sent, up to the stated
    /// length.
    Site,
    /// The cache, which never changes it; the file must still have these properties.
    Cache(Meta),
}
