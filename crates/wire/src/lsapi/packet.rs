//! The header of an LSAPI packet.
//!
//! A flag in the header names the byte order of its integers; ours are little-endian.

/// Bytes of a packet header.
pub const HEADER_LEN: usize = 8;
/// LIMIT: bytes of a request packet that PHP accepts.
pub const REQUEST_MAX: usize = 256 * 1024;

/// The type of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// A request; its body follows without framing.
    BeginRequest = 1,
    /// Aborts the request.
    AbortRequest = 2,
    /// The head of the response.
    RespHeader = 3,
    /// Bytes of the response body.
    RespStream = 4,
    /// The response is complete.
    RespEnd = 5,
    /// Text for the error log.
    StderrStream = 6,
    /// The application received the request.
    ReqReceived = 7,
    /// The application closes the connection.
    ConnClose = 8,
    /// The application failed.
    InternalError = 9,
}

/// The byte order of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Little-endian.
    Little,
    /// Big-endian.
    Big,
}

impl ByteOrder {
    /// A four-byte integer.
    #[must_use]
    pub const fn int(self, bytes: [u8; 4]) -> i32 {
        match self {
            Self::Little => i32::from_le_bytes(bytes),
            Self::Big => i32::from_be_bytes(bytes),
        }
    }

    /// A two-byte length.
    #[must_use]
    pub const fn short(self, bytes: [u8; 2]) -> usize {
        match self {
            Self::Little => u16::from_le_bytes(bytes) as usize,
            Self::Big => u16::from_be_bytes(bytes) as usize,
        }
    }
}

/// A packet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// The type of the packet.
    pub kind: PacketKind,
    /// The byte order of the packet's integers.
    pub order: ByteOrder,
    /// Bytes of content, without the header.
    pub len: usize,
}

impl PacketHeader {
    /// The header of a packet that we send without content.
    #[must_use]
    pub const fn empty(kind: PacketKind) -> Self {
        Self { kind, order: ByteOrder::Little, len: 0 }
    }

    /// Appends the encoded header.
    pub fn push(self, out: &mut Vec<u8>) {
        debug_assert!(self.order == ByteOrder::Little, "ours are little-endian");
        out.extend_from_slice(&[b'L', b'S', self.kind as u8, 0]);
        out.extend_from_slice(&((self.len + HEADER_LEN) as u32).to_le_bytes());
    }

    /// Parses a header; `None` if it is invalid.
    #[must_use]
    pub fn parse(bytes: [u8; HEADER_LEN]) -> Option<Self> {
        let [b'L', b'S', kind, flag, size @ ..] = bytes else { return None };
        let kind = match kind {
            1 => PacketKind::BeginRequest,
            2 => PacketKind::AbortRequest,
            3 => PacketKind::RespHeader,
            4 => PacketKind::RespStream,
            5 => PacketKind::RespEnd,
            6 => PacketKind::StderrStream,
            7 => PacketKind::ReqReceived,
            8 => PacketKind::ConnClose,
            9 => PacketKind::InternalError,
            _ => return None,
        };
        let order = if flag & 1 == 0 { ByteOrder::Little } else { ByteOrder::Big };
        let len = usize::try_from(order.int(size)).ok()?.checked_sub(HEADER_LEN)?;
        Some(Self { kind, order, len })
    }
}
