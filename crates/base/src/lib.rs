//! The vocabulary of all layers: time, generational keys, gather lists, the deadline queue, random
//! numbers, limits, errors in words.
//!
//! Nothing here does I/O or knows HTTP.

pub mod base64;
mod bound;
pub mod chain;
pub mod client_cert;
pub mod deadline_queue;
pub mod errno;
pub mod file;
pub mod limits;
mod pieces;
pub mod prng;
pub mod slab;
pub mod spool;
mod tcp_info;
pub mod time;

pub use bound::Bound;
pub use chain::{ChainStamp, CopyPolicy, FileRange, Segment, SendChain};
pub use client_cert::ClientCert;
pub use file::FileRef;
pub use pieces::push_piece;
pub use slab::{Slab, SlabKey};
pub use spool::{Retain, Spool, SpoolLimits, SpoolPiece, SpoolWrite};
pub use tcp_info::TcpInfo;
pub use time::{Instant, Now};
