//! Parses and writes HTTP/3 frame headers, variable-length integers and codes (RFC 9114 §7, §8,
//! §11).
//!
//! Owns the syntax only. The readers of a stream decide which frame is allowed.

/// Error codes (RFC 9114 §8.1).
pub mod code {
    /// No error.
    pub const NO_ERROR: u64 = 0x0100;
    /// A protocol violation without a code of its own.
    pub const GENERAL_PROTOCOL_ERROR: u64 = 0x0101;
    /// An internal error.
    pub const INTERNAL_ERROR: u64 = 0x0102;
    /// A stream that the peer must not open.
    pub const STREAM_CREATION_ERROR: u64 = 0x0103;
    /// A critical stream was closed.
    pub const CLOSED_CRITICAL_STREAM: u64 = 0x0104;
    /// A frame that is not allowed in this state or on this stream.
    pub const FRAME_UNEXPECTED: u64 = 0x0105;
    /// A frame with an invalid size or layout.
    pub const FRAME_ERROR: u64 = 0x0106;
    /// The peer causes excessive load.
    pub const EXCESSIVE_LOAD: u64 = 0x0107;
    /// An invalid use of a stream or push id.
    pub const ID_ERROR: u64 = 0x0108;
    /// An invalid SETTINGS frame.
    pub const SETTINGS_ERROR: u64 = 0x0109;
    /// The control stream does not begin with SETTINGS.
    pub const MISSING_SETTINGS: u64 = 0x010a;
    /// The request was not processed.
    pub const REQUEST_REJECTED: u64 = 0x010b;
    /// The request or its response is cancelled.
    pub const REQUEST_CANCELLED: u64 = 0x010c;
    /// The stream ended before the request was complete.
    pub const REQUEST_INCOMPLETE: u64 = 0x010d;
    /// The message is malformed.
    pub const MESSAGE_ERROR: u64 = 0x010e;
}

/// Frame types (RFC 9114 §7.2, RFC 9218 §7.2).
pub mod kind {
    /// `DATA`
    pub const DATA: u64 = 0x00;
    /// `HEADERS`
    pub const HEADERS: u64 = 0x01;
    /// `CANCEL_PUSH`
    pub const CANCEL_PUSH: u64 = 0x03;
    /// `SETTINGS`
    pub const SETTINGS: u64 = 0x04;
    /// `PUSH_PROMISE`
    pub const PUSH_PROMISE: u64 = 0x05;
    /// `GOAWAY`
    pub const GOAWAY: u64 = 0x07;
    /// `MAX_PUSH_ID`
    pub const MAX_PUSH_ID: u64 = 0x0d;
    /// `PRIORITY_UPDATE` for a request.
    pub const PRIORITY_UPDATE: u64 = 0x0f_0700;
    /// `PRIORITY_UPDATE` for a push.
    pub const PRIORITY_UPDATE_PUSH: u64 = 0x0f_0701;
}

/// Setting identifiers (RFC 9114 §7.2.4.1, RFC 9204 §5, RFC 9220, RFC 9297).
pub mod setting {
    /// `SETTINGS_QPACK_MAX_TABLE_CAPACITY`
    pub const TABLE_CAPACITY: u64 = 0x01;
    /// `SETTINGS_MAX_FIELD_SECTION_SIZE`
    pub const FIELD_SECTION_SIZE: u64 = 0x06;
    /// `SETTINGS_QPACK_BLOCKED_STREAMS`
    pub const BLOCKED_STREAMS: u64 = 0x07;
    /// `SETTINGS_ENABLE_CONNECT_PROTOCOL`
    pub const CONNECT_PROTOCOL: u64 = 0x08;
    /// `SETTINGS_H3_DATAGRAM`
    pub const DATAGRAM: u64 = 0x33;
}

/// Types of unidirectional streams (RFC 9114 §6.2, RFC 9204 §4.2).
pub mod uni {
    /// The control stream.
    pub const CONTROL: u64 = 0x00;
    /// A push stream, which only servers open.
    pub const PUSH: u64 = 0x01;
    /// The QPACK encoder stream.
    pub const ENCODER: u64 = 0x02;
    /// The QPACK decoder stream.
    pub const DECODER: u64 = 0x03;
}

/// LIMIT: bytes of a frame header: two eight-byte integers.
pub const HEADER_MAX: usize = 16;

/// Parses the variable-length integer at the front (RFC 9000 §16), and returns its length. `None`
/// means incomplete.
#[must_use]
#[inline]
pub fn parse_varint(input: &[u8]) -> Option<(u64, usize)> {
    let &first = input.first()?;
    if first < 0x40 {
        return Some((u64::from(first), 1));
    }
    let len = 1_usize << (first >> 6);
    let bytes = input.get(1..len)?;
    let high = u64::from(first & 0x3f);
    Some((bytes.iter().fold(high, |value, &byte| value << 8 | u64::from(byte)), len))
}

/// Appends `value`, which has at most 62 bits, in the shortest form.
#[inline]
pub fn encode_varint(out: &mut Vec<u8>, value: u64) {
    debug_assert!(value < 1 << 62, "a variable-length integer has 62 bits");
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Parses the frame header at the front: type, length, and the bytes of the header. `None` means
/// incomplete.
#[must_use]
#[inline]
pub fn parse_header(input: &[u8]) -> Option<(u64, u64, usize)> {
    let (kind, used) = parse_varint(input)?;
    let (len, more) = parse_varint(&input[used..])?;
    Some((kind, len, used + more))
}

/// Appends the header of a frame.
#[inline]
pub fn encode_header(out: &mut Vec<u8>, kind: u64, len: u64) {
    encode_varint(out, kind);
    encode_varint(out, len);
}

/// Whether a frame type is reserved for HTTP/2 and forbidden here (RFC 9114 §7.2.8).
#[must_use]
pub const fn is_forbidden(kind: u64) -> bool {
    matches!(kind, 0x02 | 0x06 | 0x08 | 0x09)
}

/// Whether a setting is reserved for HTTP/2 and forbidden here (RFC 9114 §7.2.4.1, §11.2.2).
#[must_use]
pub const fn is_forbidden_setting(id: u64) -> bool {
    matches!(id, 0x00 | 0x02..=0x05)
}

#[cfg(test)]
mod tests {
    use super::{encode_varint, parse_varint};
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_rfc_9000_a_1_come_out() {
        for (bytes, value) in [
            (&[0xc2_u8, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(parse_varint(bytes), Some((value, bytes.len())));
            let mut out = Vec::new();
            encode_varint(&mut out, value);
            assert_eq!(out, bytes);
        }
        assert_eq!(parse_varint(&[0x40, 0x25]), Some((37, 2)));
    }

    proptest! {
        #[test]
        fn an_integer_comes_back_and_its_beginnings_are_incomplete(
            value in prop_oneof![0..100_000_u64, 0..1_u64 << 62],
        ) {
            let mut out = Vec::new();
            encode_varint(&mut out, value);
            for end in 0..out.len() {
                prop_assert_eq!(parse_varint(&out[..end]), None);
            }
            prop_assert_eq!(parse_varint(&out), Some((value, out.len())));
        }
    }
}
