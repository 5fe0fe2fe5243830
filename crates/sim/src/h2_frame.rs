//! HTTP/2 frames and literal field lines, written byte by byte, for clients and applications.

use bolide_wire::hpack::{FieldToken, HpackDecoder, Sink, Traits};

/// The connection preface.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Frame types.
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// END_STREAM.
pub(crate) const END_STREAM: u8 = 1;
/// ACK of SETTINGS and PING.
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;

/// A received frame.
#[derive(Debug)]
pub(crate) struct SimH2Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// Appends a frame.
pub(crate) fn push(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let len = payload.len() as u32;
    out.extend_from_slice(&len.to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// Takes a complete frame from the front of `input`.
pub(crate) fn take(input: &mut Vec<u8>) -> Option<SimH2Frame> {
    let head: [u8; 9] = input.get(..9)?.try_into().ok()?;
    let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let payload = input.get(9..9 + len)?.to_vec();
    input.drain(..9 + len);
    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    Some(SimH2Frame { kind: head[3], flags: head[4], stream, payload })
}

/// The first four bytes of a payload as an integer.
pub(crate) fn number(payload: &[u8]) -> u32 {
    let four = payload.get(..4).and_then(|four| <[u8; 4]>::try_from(four).ok());
    u32::from_be_bytes(four.unwrap_or_default())
}

/// Appends a literal field line that is not indexed (RFC 7541 §6.2.2), without Huffman codes.
pub(crate) fn push_field(block: &mut Vec<u8>, name: &str, value: &str) {
    block.push(0);
    for text in [name, value] {
        // RFC 7541 §5.1: a prefix of seven bits.
        if text.len() < 127 {
            block.push(text.len() as u8);
        } else {
            block.push(127);
            let mut rest = text.len() - 127;
            while rest >= 128 {
                block.push((rest % 128) as u8 | 128);
                rest /= 128;
            }
            block.push(rest as u8);
        }
        block.extend_from_slice(text.as_bytes());
    }
}

/// The field lines of a block, in their order.
pub(crate) fn decode_block(
    decoder: &mut HpackDecoder,
    block: &[u8],
) -> Result<Vec<(String, String)>, String> {
    struct Fields(Vec<(String, String)>);
    impl Sink for Fields {
        fn field(&mut self, _token: FieldToken, _traits: Traits, name: &[u8], value: &[u8]) {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            self.0.push((text(name), text(value)));
        }
    }
    let mut fields = Fields(Vec::new());
    match decoder.decode(block, 1 << 20, &mut Vec::new(), &mut fields) {
        Ok(()) => Ok(fields.0),
        Err(error) => Err(format!("fields cannot be decoded: {error:?}")),
    }
}
