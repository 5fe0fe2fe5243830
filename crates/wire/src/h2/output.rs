//! What is sent before bodies: control frames and field blocks, in the order in which they must
//! leave.
//!
//! Owns the encoder, whose table follows that order, and the count of control frames that the peer
//! has not let leave.

use bolide_base::SendChain;
use bolide_http::hop_by_hop::is_no_trailer;
use bolide_http::{BodyLen, FieldMap, ResponseHead, status};

use super::abuse::CONTROL_QUEUED_MAX;
use super::frame::{self, FRAME_SIZES, FrameHeader, FrameKind, HEADER_LEN, flag};
use super::replay::Responses;
use crate::hpack::HpackEncoder;
use crate::sendable::sendable;

/// LIMIT: capacity that the queue keeps between uses.
const QUEUE_KEPT: usize = 8192;

/// The queue of a connection, with what encodes into it.
#[derive(Debug)]
pub(super) struct H2Output {
    queue: Vec<u8>,
    /// Streams and codes of resets behind responses, see [`Self::reset_behind`].
    late: Vec<(u32, u32)>,
    /// Control frames queued since the last [`Self::drain`].
    control_queued: u32,
    /// The peer's `SETTINGS_MAX_FRAME_SIZE`.
    frame_size: u32,
    encoder: HpackEncoder,
    known: Responses,
}

impl H2Output {
    pub(super) fn new() -> Self {
        Self {
            queue: Vec::new(),
            late: Vec::new(),
            control_queued: 0,
            frame_size: *FRAME_SIZES.start(),
            encoder: HpackEncoder::new(),
            known: Responses::default(),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.late.is_empty()
    }

    /// Whether the peer made us queue too many control frames, which it does not read.
    pub(super) const fn is_crowded(&self) -> bool {
        self.control_queued > CONTROL_QUEUED_MAX
    }

    /// The longest payload that the peer takes.
    pub(super) const fn frame_size(&self) -> u32 {
        self.frame_size
    }

    pub(super) const fn set_frame_size(&mut self, size: u32) {
        self.frame_size = size;
    }

    /// Limits the encoder's table to the peer's.
    pub(super) fn limit_table(&mut self, size: u32) {
        self.encoder.limit_table(size);
    }

    /// The queue, for one more control frame.
    fn control(&mut self) -> &mut Vec<u8> {
        self.control_queued += 1;
        &mut self.queue
    }

    /// Queues our SETTINGS, the first frame of all.
    pub(super) fn settings(&mut self, ours: &[(u16, u32)]) {
        self.queue.reserve_exact(64);
        frame::push_settings(self.control(), ours);
    }

    /// Queues the answer to a frame of the peer's.
    pub(super) fn ack(&mut self, kind: FrameKind, payload: &[u8]) {
        frame::push(self.control(), kind, flag::ACK, 0, payload);
    }

    /// Queues a `WINDOW_UPDATE`, for the connection if `stream` is 0.
    pub(super) fn window_update(&mut self, stream: u32, credit: u32) {
        debug_assert!(credit > 0, "RFC 9113 §6.9.1: an increment of 0 is an error");
        frame::push_u32(self.control(), FrameKind::WindowUpdate, stream, credit);
    }

    /// Queues a `RST_STREAM`.
    pub(super) fn reset(&mut self, stream: u32, code: u32) {
        frame::push_u32(self.control(), FrameKind::RstStream, stream, code);
    }

    /// Queues a `RST_STREAM` behind a complete response, for the write after the one that ends
    /// that. Clients that read both at once (libcurl before 8) take the response for lost.
    pub(super) fn reset_behind(&mut self, stream: u32, code: u32) {
        debug_assert!(
            self.late.iter().all(|(other, _)| *other != stream),
            "RFC 9113 §5.4.2: one reset for each stream"
        );
        self.control_queued += 1;
        self.late.push((stream, code));
    }

    /// The peer closed a stream: a reset that has not been queued is not sent.
    pub(super) fn withhold_reset(&mut self, stream: u32) {
        self.late.retain(|(other, _)| *other != stream);
    }

    /// Queues what was to wait for another write, before what was queued since.
    #[inline]
    pub(super) fn release_late(&mut self) {
        if !self.late.is_empty() {
            self.queue_late();
        }
    }

    #[cold]
    fn queue_late(&mut self) {
        let since = std::mem::take(&mut self.queue);
        for (stream, code) in self.late.drain(..) {
            frame::push_u32(&mut self.queue, FrameKind::RstStream, stream, code);
        }
        self.queue.extend_from_slice(&since);
    }

    /// Queues a GOAWAY that names `last` as the last stream that was processed.
    pub(super) fn goaway(&mut self, last: u32, code: u32) {
        frame::push_goaway(self.control(), last, code);
    }

    /// Queues the HEADERS frame of a response; returns how many bytes it takes.
    #[inline]
    pub(super) fn head(&mut self, id: u32, head: &ResponseHead, flags: u8) -> u64 {
        let start = self.begin_block();
        let generation = self.encoder.generation();
        if let Some(block) = self.known.find(generation, head) {
            debug_assert!(generation.is_some(), "a cached block belongs to a settled table");
            self.queue.extend_from_slice(block);
        } else {
            self.encode(head);
            if let (Some(before), after) = (generation, self.encoder.generation())
                && after == Some(before)
            {
                self.known.note(before, head, &self.queue[start + HEADER_LEN..]);
            }
        }
        self.end_block(start, id, flags)
    }

    /// Queues trailers, which end their stream; returns how many bytes they take.
    #[cold]
    pub(super) fn trailers(&mut self, id: u32, fields: &FieldMap) -> u64 {
        let start = self.begin_block();
        let Self { encoder, queue, .. } = self;
        encoder.begin(queue);
        for field in sendable(fields).iter().filter(|field| !is_no_trailer(field.name)) {
            encoder.field(field.name, field.text, field.value, queue);
        }
        self.end_block(start, id, flag::END_STREAM)
    }

    fn encode(&mut self, head: &ResponseHead) {
        let Self { encoder, queue, .. } = self;
        encoder.begin(queue);
        encoder.status(head.status, queue);
        for field in sendable(&head.fields).iter() {
            encoder.field(field.name, field.text, field.value, queue);
        }
        // RFC 9110 §8.6: no content-length in 1xx and 204. nginx sends none in 304, either.
        if let (BodyLen::Exact(length), false) = (head.body, status::is_bodiless(head.status)) {
            encoder.content_length(length, queue);
        }
    }

    /// Reserves room for a frame header.
    fn begin_block(&mut self) -> usize {
        let start = self.queue.len();
        self.queue.extend_from_slice(&[0; HEADER_LEN]);
        start
    }

    /// Completes the frame that starts at `start`, and returns its bytes. It continues in
    /// CONTINUATION frames if it exceeds the peer's frame size.
    fn end_block(&mut self, start: usize, id: u32, flags: u8) -> u64 {
        debug_assert!(id != 0, "a field block belongs to a stream");
        let len = self.queue.len() - start - HEADER_LEN;
        let frame_size = self.frame_size as usize;
        let flags = if len <= frame_size { flags | flag::END_HEADERS } else { flags };
        let first = len.min(frame_size);
        let header = FrameHeader { len: first as u32, kind: FrameKind::Headers, flags, stream: id };
        self.queue[start..start + HEADER_LEN].copy_from_slice(&header.bytes());
        if len > frame_size {
            let rest = self.queue.split_off(start + HEADER_LEN + first);
            let mut chunks = rest.chunks(frame_size).peekable();
            while let Some(chunk) = chunks.next() {
                let flags = if chunks.peek().is_none() { flag::END_HEADERS } else { 0 };
                frame::push(&mut self.queue, FrameKind::Continuation, flags, id, chunk);
            }
        }
        (self.queue.len() - start) as u64
    }

    /// Moves the queue to the output.
    pub(super) fn drain(&mut self, out: &mut SendChain) {
        self.control_queued = 0;
        if !self.queue.is_empty() {
            out.push_slice(&self.queue);
            self.queue.clear();
            self.queue.shrink_to(QUEUE_KEPT);
        }
    }

    /// Frees memory while nothing is queued.
    pub(super) fn shrink(&mut self) {
        self.encoder.shrink();
        self.known.shrink();
        self.queue = Vec::new();
        self.late = Vec::new();
    }

    /// Bytes in the queue, and its capacity.
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        (self.queue.len(), self.queue.capacity())
    }
}
