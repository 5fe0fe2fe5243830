//! From a path to its representation on disk, without doing the I/O.
//!
//! Owns the table of open files with their compressed forms, the decision which part of a file
//! answers a request, directory listings, and the joining of URIs to roots. It asks for looks at
//! the disk ([`Probe`]) and is told the results ([`Probed`]); it opens and reads nothing itself.

pub mod answer;
pub mod decode;
pub mod encode;
pub mod failure;
pub mod fuzz;
pub mod hash;
pub mod listing;
pub mod open;
pub mod probe;
pub mod real;
pub mod resolve;
pub mod table;
pub mod variant;

pub use answer::{Answer, answer};
pub use decode::{DecodeError, Decoder};
pub use encode::{EncodeError, Encoder, compress};
pub use failure::Failure;
pub use open::{Body, DirEntry, Kind, Meta, OpenFile};
pub use probe::{Policy, Probe, Probed, Remember, Symlinks, Want};
pub use real::{Real, RealPaths};
pub use table::{Known, Limits, Table};
pub use variant::{CompressJob, Variant, VariantKey};
