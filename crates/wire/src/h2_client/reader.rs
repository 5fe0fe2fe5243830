//! How far the frames of an upstream were read.
//!
//! Owns the incomplete frame and field block, and the count of frames that bring nothing.

use crate::h2::frame::FrameHeader;

/// LIMIT: frames in a row that bring nothing of the response and let nothing of the request leave.
const IDLE_FRAMES_MAX: u32 = 1000;

/// The incomplete frame, and the incomplete block.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    pub(super) reading: ClientReading,
    /// The incomplete header or payload.
    pub(super) partial: Vec<u8>,
    pub(super) block: Option<Box<ClientBlock>>,
    /// Frames since the last one that brought something.
    idle_frames: u32,
    /// Field sections are decompressed into it.
    pub(super) scratch: Vec<u8>,
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum ClientReading {
    #[default]
    Header,
    /// The payload of a frame that is handled as a whole.
    Payload(FrameHeader),
    /// The pad length of a DATA frame with so many bytes.
    PadLength { len: u32, ends: bool },
    /// Content of this length, with padding behind it.
    Data { left: u32, padding: u32, ends: bool },
    /// So many bytes that mean nothing.
    Skip(u32),
    /// Nothing is read any more.
    Nothing,
}

/// An incomplete field block.
#[derive(Debug)]
pub(super) struct ClientBlock {
    pub(super) bytes: Vec<u8>,
    pub(super) continuations: u32,
    pub(super) ends: bool,
}

impl FrameReader {
    /// The next bytes may belong to another response.
    pub(super) const fn begin_response(&mut self) {
        self.idle_frames = 0;
    }

    /// The upstream let a part of the request leave.
    pub(super) const fn pay(&mut self) {
        self.idle_frames = 0;
    }

    /// Nothing that comes counts any more.
    pub(super) fn give_up(&mut self) {
        self.reading = ClientReading::Nothing;
        self.partial = Vec::new();
        self.block = None;
    }

    /// Whether the next byte begins a frame.
    pub(super) const fn is_between_frames(&self) -> bool {
        matches!(self.reading, ClientReading::Header)
            && self.partial.is_empty()
            && self.block.is_none()
    }

    /// Bytes of an incomplete frame or block.
    pub(super) fn held(&self) -> usize {
        self.partial.len() + self.block.as_ref().map_or(0, |block| block.bytes.len())
    }

    /// Gathers `len` bytes; whether they are complete.
    pub(super) fn gather(&mut self, len: usize, input: &mut &[u8]) -> bool {
        debug_assert!(self.partial.len() <= len, "no more is gathered than belongs together");
        let (taken, rest) = input.split_at(input.len().min(len - self.partial.len()));
        self.partial.extend_from_slice(taken);
        *input = rest;
        self.partial.len() == len
    }

    /// Counts a frame; whether there may be so many.
    pub(super) const fn count(&mut self) -> bool {
        debug_assert!(self.idle_frames <= IDLE_FRAMES_MAX, "who sends more is not read");
        self.idle_frames += 1;
        self.idle_frames <= IDLE_FRAMES_MAX
    }
}
