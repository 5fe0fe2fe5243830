//! QPACK (RFC 9204): the field compression of HTTP/3, both directions of one connection.
//!
//! A [`Decoder`] reads what the peer's encoder sends, an [`Encoder`] writes for the peer's
//! decoder. Both are fed whole sections and instruction bytes and hold the bytes of their own
//! instruction stream until somebody takes them; neither knows frames or stream states.

pub mod decode;
pub mod encode;
pub mod integer;
pub mod table;

mod known;

pub use decode::{QpackDecoder, Section};
pub use encode::{EncodedSection, QpackEncoder, References};

/// RFC 9204 §6: `QPACK_DECOMPRESSION_FAILED`.
pub const DECOMPRESSION_FAILED: u64 = 0x0200;
/// RFC 9204 §6: `QPACK_ENCODER_STREAM_ERROR`.
pub const ENCODER_STREAM_ERROR: u64 = 0x0201;
/// RFC 9204 §6: `QPACK_DECODER_STREAM_ERROR`.
pub const DECODER_STREAM_ERROR: u64 = 0x0202;

/// RFC 9204 §3.2.1: what an entry counts beyond its name and value.
pub const ENTRY_OVERHEAD: usize = 32;

/// A field section that cannot be decoded; the connection ends with [`DECOMPRESSION_FAILED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecompressionFailed;

/// An instruction that breaks the rules; the connection ends with the code of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadInstruction;

/// Entry points for fuzzing and for replaying what it found.
pub mod fuzz {
    use super::{QpackDecoder, QpackEncoder, Section};

    /// Feeds arbitrary bytes to a decoder as instructions and sections, in turns.
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

    /// Feeds arbitrary bytes to an encoder as the peer's instructions.
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
