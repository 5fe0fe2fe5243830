//! What a pull from a body gives.

use bolide_base::FileRef;
use bolide_files::Meta;

/// What one pull gave.
#[derive(Clone, Debug)]
pub enum BodyPiece {
    /// Something was appended; ask again.
    More,
    /// Nothing now; `Effect::Ready` will tell when there is.
    Pending,
    /// Nothing now, though there is more: what was taken until now is enough for one turn. Ask
    /// again in another one.
    Later,
    /// That was the last byte; something may have been appended.
    End,
    /// The body cannot be completed; cut the stream.
    Broken,
    /// Read this part of a file and call `Exchange::feed` with what was read, then ask again.
    Read {
        /// The open file.
        file: FileRef,
        /// First byte to read.
        offset: u64,
        /// Bytes to read; fewer may be fed.
        len: u64,
        /// Whose file it is.
        whose: FileOwner,
    },
    /// Pull from the exchange of this name, give what came to `Exchange::take_fragment`, then ask
    /// again.
    Fragment(u64),
    /// Send this part of a file, then call `Exchange::advanced` with what was sent.
    File {
        /// The open file.
        file: FileRef,
        /// First byte to send.
        offset: u64,
        /// Bytes to send, at most what was asked for.
        len: u64,
        /// Whose file it is. One of a body in transit must be read, not referred to: it may be
        /// written over once it was read.
        whose: FileOwner,
    },
}

/// Whose file the bytes of a body come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOwner {
    /// A body in transit, without a name.
    Transit,
    /// The site, which may change it meanwhile: as with nginx, what is there is sent, as far as the
    /// length that was stated.
    Site,
    /// The cache, which never changes it: what it must still look like.
    Cache(Meta),
}
