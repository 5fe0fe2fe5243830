//! QPACK decoders and encoders with arbitrary bytes of a peer.

use bolide_wire::qpack::{QpackDecoder, QpackEncoder, Section};

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

/// Passes arbitrary bytes to an encoder as the peer's instructions.
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
