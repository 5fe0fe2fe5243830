//! LSAPI packets: the header that each begins with.
//!
//! Integers have the order of bytes that the header's flag names; ours are little-endian.

/// Bytes of a packet's header.
pub const HEADER_LEN: usize = 8;
/// The most bytes of one request packet that PHP takes.
pub const REQUEST_MAX: usize = 256 * 1024;

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// A request; its body follows outside of packets.
    BeginRequest = 1,
    /// The request is not wanted any more.
    AbortRequest = 2,
    /// The head of the answer.
    RespHeader = 3,
    /// Part of the answer's body.
    RespStream = 4,
    /// The answer is complete.
    RespEnd = 5,
    /// Text for the error log.
    StderrStream = 6,
    /// The application took a request.
    ReqReceived = 7,
    /// The application closes the connection.
    ConnClose = 8,
    /// The application failed.
    InternalError = 9,
}

/// The order of the bytes of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Lowest first.
    Little,
    /// Highest first.
    Big,
}

impl ByteOrder {
    /// An integer of four bytes.
    #[must_use]
    pub const fn int(self, bytes: [u8; 4]) -> i32 {
        match self {
            Self::Little => i32::from_le_bytes(bytes),
            Self::Big => i32::from_be_bytes(bytes),
        }
    }

    /// A length of two bytes.
    #[must_use]
    pub const fn short(self, bytes: [u8; 2]) -> usize {
        match self {
            Self::Little => u16::from_le_bytes(bytes) as usize,
            Self::Big => u16::from_be_bytes(bytes) as usize,
        }
    }
}

/// A packet's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// What the packet carries.
    pub kind: PacketKind,
    /// How its integers are written.
    pub order: ByteOrder,
    /// Bytes of content, the header not counted.
    pub len: usize,
}

impl PacketHeader {
    /// The header of a packet of ours without content.
    #[must_use]
    pub const fn empty(kind: PacketKind) -> Self {
        Self { kind, order: ByteOrder::Little, len: 0 }
    }

    /// Appends it.
    pub fn push(self, out: &mut Vec<u8>) {
        debug_assert!(self.order == ByteOrder::Little, "ours are little-endian");
        out.extend_from_slice(&[b'L', b'S', self.kind as u8, 0]);
        out.extend_from_slice(&((self.len + HEADER_LEN) as u32).to_le_bytes());
    }

    /// Reads a header; none if it is none.
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
