//! From a path to its representation on disk, without doing the I/O.
//!
//! Owns the table of open files with their compressed forms, the decision which part of a file
//! answers a request, directory listings, and the mapping of URIs to paths. It requests file
//! lookups ([`Probe`]) and receives their results ([`Probed`]); it opens and reads nothing itself.

#[cfg(test)]
extern crate self as bolide_files;

pub mod decode;
pub mod encode;
pub mod failure;
#[cfg(test)]
#[path = "../../fuzz-entries/src/files.rs"]
pub mod fuzz;
pub mod hash;
mod lapses;
pub mod listing;
pub mod mp4;
pub mod open;
pub mod probe;
pub mod real;
pub mod resolve;
pub mod table;
pub mod variant;
pub mod watches;

pub use decode::{CodingDecoder, CodingError};
pub use encode::{CodingEncoder, EncodeError, compress, stream_cost};
pub use failure::OpenFailure;
pub use lapses::LapseMark;
pub use mp4::{Mp4Cut, Mp4Fault, Mp4Job, Mp4Made, Mp4Outcome, Mp4Parts};
pub use open::{DirEntry, Etag, FileBody, FileKind, Meta, OpenFile};
pub use probe::{Probe, ProbePolicy, Probed, Remember, SymlinkPolicy, Trust, Want};
pub use real::{Real, RealPaths};
pub use table::{FileTable, FileTableLimits, Known};
pub use variant::{CompressJob, FileVariant, VariantKey};
pub use watches::{Trail, TrailStanding, Watches};
