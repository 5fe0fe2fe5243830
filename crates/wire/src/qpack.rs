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

/// Properties for any input, for fuzzing and for replaying its findings.
pub mod fuzz {
    use super::{QpackDecoder, QpackEncoder, Section};

    /// Decodes arbitrary bytes as instructions and sections in turn.
    pub fn decode(data: &[u8]) {
        let mut decoder = QpackDecoder::new(256);
        for (turn, part) in data.chunks(17).enumerate() {
            if turn % 2 == 0 {
                if decoder.receive(part).is_err() {
                    return;
                }
                continue;
            }
            let mut lines = 0;
            match decoder.decode(part, |_, _| lines += 1) {
                Ok(Section::Complete { required }) => {
                    assert!(required <= decoder.inserted());
                    assert!(lines <= part.len(), "a line takes at least one byte");
                    decoder.acknowledge(turn as u64, required);
                }
                Ok(Section::Blocked { required }) => assert!(required > decoder.inserted()),
                Err(_) => return,
            }
            assert!(decoder.table_size() <= 256);
        }
    }

    /// Gives arbitrary bytes to an encoder as the peer's instructions.
    pub fn encode(data: &[u8]) {
        let mut encoder = QpackEncoder::default();
        encoder.allow(600);
        let long = [b'v'; 60];
        for (stream, part) in data.chunks(5).enumerate() {
            let mut lines = Vec::new();
            let fields = [(bolide_http::Name::Link, &b"Link"[..], &long[..part.len() * 12])];
            let encoded = encoder.encode(200, None, || fields.iter().copied(), &mut lines);
            encoder.track(stream as u64, encoded.references);
            assert!(encoder.table_size() <= 600);
            if encoder.receive(part).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
