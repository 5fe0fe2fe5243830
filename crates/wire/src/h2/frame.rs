//! Parses and writes HTTP/2 frames (RFC 9113 §4, §6).
//!
//! Owns the numbers of the protocol. It knows no connection: the handlers decide what a frame
//! means.

/// Bytes of a frame header.
pub(crate) const HEADER_LEN: usize = 9;
/// The client's connection preface (RFC 9113 §3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The largest flow-control window (RFC 9113 §6.9.1).
pub(crate) const WINDOW_MAX: u32 = i32::MAX as u32;
/// The initial window by default (RFC 9113 §6.9.2).
pub(crate) const WINDOW_INITIAL: u32 = 65_535;
/// Bounds of `SETTINGS_MAX_FRAME_SIZE` (RFC 9113 §6.5.2).
pub(crate) const FRAME_SIZES: std::ops::RangeInclusive<u32> = 16_384..=16_777_215;

/// Error codes (RFC 9113 §7).
pub mod code {
    /// No error.
    pub const NO_ERROR: u32 = 0;
    /// A protocol violation.
    pub const PROTOCOL_ERROR: u32 = 1;
    /// An internal error.
    pub const INTERNAL_ERROR: u32 = 2;
    /// A window was exceeded or overflowed.
    pub const FLOW_CONTROL_ERROR: u32 = 3;
    /// A frame on a closed stream.
    pub const STREAM_CLOSED: u32 = 5;
    /// A frame of the wrong size.
    pub const FRAME_SIZE_ERROR: u32 = 6;
    /// The request was not processed and may be retried.
    pub const REFUSED_STREAM: u32 = 7;
    /// The response is no longer needed.
    pub const CANCEL: u32 = 8;
    /// The dynamic tables differ.
    pub const COMPRESSION_ERROR: u32 = 9;
    /// The peer causes excessive load.
    pub const ENHANCE_YOUR_CALM: u32 = 11;
}

/// Flags (RFC 9113 §6). The same bit has different meanings in different frames.
pub(crate) mod flag {
    pub(crate) const END_STREAM: u8 = 0x01;
    pub(crate) const ACK: u8 = 0x01;
    pub(crate) const END_HEADERS: u8 = 0x04;
    pub(crate) const PADDED: u8 = 0x08;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// Settings (RFC 9113 §6.5.2, RFC 9218 §2.1).
pub(crate) mod setting {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;
    pub(crate) const NO_RFC7540_PRIORITIES: u16 = 9;
}

/// Frame types (RFC 9113 §6, RFC 9218 §7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Data,
    Headers,
    Priority,
    RstStream,
    Settings,
    PushPromise,
    Ping,
    GoAway,
    WindowUpdate,
    Continuation,
    PriorityUpdate,
    Unknown,
}

impl FrameKind {
    const fn parse(byte: u8) -> Self {
        match byte {
            0 => Self::Data,
            1 => Self::Headers,
            2 => Self::Priority,
            3 => Self::RstStream,
            4 => Self::Settings,
            5 => Self::PushPromise,
            6 => Self::Ping,
            7 => Self::GoAway,
            8 => Self::WindowUpdate,
            9 => Self::Continuation,
            0x10 => Self::PriorityUpdate,
            _ => Self::Unknown,
        }
    }

    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::Data => 0,
            Self::Headers => 1,
            Self::Priority => 2,
            Self::RstStream => 3,
            Self::Settings => 4,
            Self::PushPromise => 5,
            Self::Ping => 6,
            Self::GoAway => 7,
            Self::WindowUpdate => 8,
            Self::Continuation => 9,
            Self::PriorityUpdate => 0x10,
            Self::Unknown => 0xff,
        }
    }
}

/// A frame header (RFC 9113 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// Bytes of payload, padding included.
    pub(crate) len: u32,
    pub(crate) kind: FrameKind,
    pub(crate) flags: u8,
    /// The stream; 0 means the connection.
    pub(crate) stream: u32,
}

impl FrameHeader {
    #[inline]
    pub(crate) fn parse(bytes: [u8; HEADER_LEN]) -> Self {
        let [a, b, c, kind, flags, s @ ..] = bytes;
        Self {
            len: u32::from_be_bytes([0, a, b, c]),
            kind: FrameKind::parse(kind),
            flags,
            // RFC 9113 §4.1: the reserved bit MUST be ignored.
            stream: u32::from_be_bytes(s) & WINDOW_MAX,
        }
    }

    #[inline]
    pub(crate) const fn bytes(self) -> [u8; HEADER_LEN] {
        debug_assert!(self.len < 1 << 24, "the length of a frame has three bytes");
        debug_assert!(self.stream <= WINDOW_MAX, "a stream id has 31 bits");
        let [_, a, b, c] = self.len.to_be_bytes();
        let [d, e, f, g] = self.stream.to_be_bytes();
        [a, b, c, self.kind.byte(), self.flags, d, e, f, g]
    }

    pub(crate) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame with a short payload.
pub(crate) fn push(out: &mut Vec<u8>, kind: FrameKind, flags: u8, stream: u32, payload: &[u8]) {
    let header = FrameHeader { len: payload.len() as u32, kind, flags, stream };
    out.extend_from_slice(&header.bytes());
    out.extend_from_slice(payload);
}

/// Appends a frame whose payload is one number.
pub(crate) fn push_u32(out: &mut Vec<u8>, kind: FrameKind, stream: u32, value: u32) {
    push(out, kind, 0, stream, &value.to_be_bytes());
}

/// Appends a SETTINGS frame.
pub(crate) fn push_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    let header = FrameHeader {
        len: settings.len() as u32 * 6,
        kind: FrameKind::Settings,
        flags: 0,
        stream: 0,
    };
    out.extend_from_slice(&header.bytes());
    for (id, value) in settings {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends a GOAWAY frame without debug data.
pub(crate) fn push_goaway(out: &mut Vec<u8>, last_stream: u32, code: u32) {
    let [a, b, c, d] = last_stream.to_be_bytes();
    let [e, f, g, h] = code.to_be_bytes();
    push(out, FrameKind::GoAway, 0, 0, &[a, b, c, d, e, f, g, h]);
}

/// The length of the payload without its padding (RFC 9113 §6.1); `None` if the padding exceeds the
/// payload.
pub(crate) fn strip_padding(header: &FrameHeader, payload: &[u8]) -> Option<usize> {
    debug_assert!(header.has(flag::PADDED), "only padded frames have a pad length");
    let pad = usize::from(*payload.first()?);
    (payload.len() - 1).checked_sub(pad)
}

/// The first four bytes as a number.
pub(crate) fn read_u32(payload: &[u8]) -> Option<u32> {
    payload.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::{FrameHeader, FrameKind, flag, strip_padding};

    #[test]
    fn a_header_survives_its_bytes_and_loses_the_reserved_bit() {
        let header =
            FrameHeader { len: 0x01_02_03, kind: FrameKind::Data, flags: 9, stream: 0x7fff_fffe };
        assert_eq!(FrameHeader::parse(header.bytes()), header);
        let bytes = [0, 0, 4, 8, 0, 0x80, 0, 0, 1];
        assert_eq!(FrameHeader::parse(bytes).stream, 1);
        for byte in 0..=255 {
            let kind = FrameHeader::parse([0, 0, 0, byte, 0, 0, 0, 0, 0]).kind;
            assert!(kind == FrameKind::Unknown || kind.byte() == byte);
        }
    }

    #[test]
    fn padding_may_fill_a_frame_but_not_more() {
        let header = FrameHeader { len: 3, kind: FrameKind::Data, flags: flag::PADDED, stream: 1 };
        assert_eq!(strip_padding(&header, &[2, 0, 0]), Some(0));
        assert_eq!(strip_padding(&header, &[3, 0, 0]), None);
        assert_eq!(strip_padding(&header, &[]), None);
    }
}
