//! QPACK, the field compression of HTTP/3 (RFC 9204), both directions of one connection.
//!
//! A [`QpackDecoder`] reads the bytes of the peer's encoder, an [`QpackEncoder`] writes for the
//! peer's decoder. Both take whole field sections and instruction bytes, and buffer the output of
//! their own instruction stream. Neither knows frames or stream states.

pub mod decode;
pub mod encode;
pub mod integer;
pub mod table;

mod known;

pub use decode::{QpackDecoder, QpackFault, Section};
pub use encode::{EncodedSection, QpackEncoder, References};

/// RFC 9204 §6: `QPACK_DECOMPRESSION_FAILED`.
pub const DECOMPRESSION_FAILED: u64 = 0x0200;
/// RFC 9204 §6: `QPACK_ENCODER_STREAM_ERROR`.
pub const ENCODER_STREAM_ERROR: u64 = 0x0201;
/// RFC 9204 §6: `QPACK_DECODER_STREAM_ERROR`.
pub const DECODER_STREAM_ERROR: u64 = 0x0202;

/// RFC 9204 §3.2.1: bytes that an entry counts beyond its name and value.
pub const ENTRY_OVERHEAD: usize = 32;

/// An invalid instruction of a decoder. Close the connection with [`DECODER_STREAM_ERROR`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadInstruction;

#[cfg(test)]
#[path = "../../fuzz-entries/src/qpack.rs"]
pub mod fuzz;
#[cfg(test)]
mod tests;
