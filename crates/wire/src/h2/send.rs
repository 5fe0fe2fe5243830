//! Sends responses: heads through the queue, bodies pulled into DATA frames.
//!
//! Owns the choice of what is sent next. It pulls a byte only if the windows, the room and the
//! peer's frame size let it be sent at once.

use bolide_base::{Now, SendChain};
use bolide_http::{BodyLen, FieldMap, ResponseHead, status};

use super::frame::{FrameHeader, FrameKind, HEADER_LEN, code, flag};
use super::streams::{H2Sending, Receiving, UNKNOWN};
use super::{H2Conn, check_accounts};
use crate::{BodySource, Pull, RespondError, StreamId, WireEvent};

/// A frame shorter than this is not begun just because the room ends.
const CHUNK_MIN: usize = 256;

/// The result of writing one DATA frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// The stream has more bytes and may continue.
    More,
    /// The body has no bytes available.
    Pending,
    /// The stream has used its window.
    Blocked,
    /// The response is complete.
    End,
    /// The response is complete except for its trailers, which are in the queue.
    Trailed,
    /// The body failed.
    Broken,
}

impl H2Conn {
    /// Queues the head of an interim response (1xx except 101); the stream waits for another head.
    pub fn announce(&mut self, stream: StreamId, head: &ResponseHead) {
        let Some(slot) = self.streams.slot(stream) else { return };
        if self.streams.at(slot).sending == H2Sending::Waiting {
            let id = self.streams.id(slot);
            let len = self.output.head(id, head, 0);
            self.streams.at(slot).head_bytes += len;
        }
    }

    /// Queues the head of the response, and returns how many bytes it takes.
    ///
    /// # Errors
    ///
    /// [`RespondError`] if the stream is gone or its response has begun.
    pub fn respond(&mut self, stream: StreamId, head: &ResponseHead) -> Result<u64, RespondError> {
        let slot = self.streams.slot(stream).ok_or(RespondError)?;
        let id = self.streams.id(slot);
        let open = self.streams.at(slot);
        if open.sending != H2Sending::Waiting {
            return Err(RespondError);
        }
        let is_empty = matches!(head.body, BodyLen::None | BodyLen::Exact(0)) && !head.trailed;
        let ends = is_empty || open.is_head || status::is_bodiless(head.status);
        if ends {
            open.sending = H2Sending::Ended;
            self.ended.push(stream);
        } else {
            open.sending = H2Sending::Body;
            open.trailed = head.trailed;
            open.chunk_size = head.chunk_size.max(1);
            open.send_left = match head.body {
                BodyLen::Exact(length) => length,
                BodyLen::None | BodyLen::Unknown => UNKNOWN,
            };
            self.streams.schedule(slot);
        }
        let len = self.output.head(id, head, if ends { flag::END_STREAM } else { 0 });
        self.streams.at(slot).head_bytes += len;
        Ok(len)
    }

    /// Queues `100 (Continue)`, unless the client has sent the whole body or has its response.
    pub fn send_continue(&mut self, stream: StreamId) {
        let Some(slot) = self.streams.slot(stream) else { return };
        if self.streams.at(slot).receiving == Receiving::Open {
            let head = ResponseHead { status: 100, ..ResponseHead::default() };
            self.announce(stream, &head);
        }
    }

    /// A body that was `Pending` has bytes again.
    pub fn body_ready(&mut self, stream: StreamId) {
        if let Some(slot) = self.streams.slot(stream) {
            self.streams.at(slot).is_pending = false;
            self.streams.schedule(slot);
        }
    }

    /// Appends about `room` bytes of what can be sent now, and reports completed responses. `out`
    /// must be contiguous. Queued frames are sent even where `room` is less.
    pub fn transmit(
        &mut self,
        now: Now,
        room: usize,
        out: &mut SendChain,
        events: &mut Vec<WireEvent>,
        bodies: &mut impl BodySource,
    ) {
        // Nothing here depends on the time; all framings have the same signature.
        let _ = now;
        events.append(&mut self.deferred);
        let limit = out.mark() + room;
        self.output.release_late();
        self.flush_queue(out, events);
        let mut bound = bolide_base::Bound::new();
        while self.flow.send > 0 && bound.goes_on() {
            let Some(slot) = self.streams.sched.first() else { break };
            let space = limit.saturating_sub(out.mark() + HEADER_LEN);
            if space < CHUNK_MIN.min(room.saturating_sub(HEADER_LEN)) || space == 0 {
                break;
            }
            let before = out.mark();
            match self.write_data(slot, space, out, bodies) {
                Written::More => {
                    if out.mark() == before {
                        // A body that returns `More` without bytes waits for the next turn.
                        break;
                    }
                    self.streams.sched.rotate(slot);
                }
                Written::Pending => {
                    self.streams.unschedule(slot);
                    self.streams.at(slot).is_pending = true;
                }
                Written::Blocked => self.streams.unschedule(slot),
                Written::Trailed => self.streams.unschedule(slot),
                Written::End => {
                    self.streams.unschedule(slot);
                    self.finish(slot, events);
                }
                Written::Broken => {
                    let user = self.reset_slot(slot, code::INTERNAL_ERROR);
                    events.extend(user.map(|user| WireEvent::Reset { user }));
                }
            }
        }
        self.flush_queue(out, events);
        check_accounts(self);
    }

    /// Appends the queue, and reports the responses that end in it.
    fn flush_queue(&mut self, out: &mut SendChain, events: &mut Vec<WireEvent>) {
        self.output.drain(out);
        if self.ended.is_empty() {
            return;
        }
        let mut ended = std::mem::take(&mut self.ended);
        for stream in ended.drain(..) {
            // A stream that was reset after its head was queued has its `Reset` event already.
            if let Some(slot) = self.streams.slot(stream) {
                self.finish(slot, events);
            }
        }
        self.ended = ended;
        self.output.drain(out);
    }

    /// Writes one DATA frame with at most `space` bytes of payload.
    fn write_data(
        &mut self,
        slot: u32,
        space: usize,
        out: &mut SendChain,
        bodies: &mut impl BodySource,
    ) -> Written {
        let id = self.streams.id(slot);
        let stream = self.streams.at(slot);
        debug_assert!(stream.is_ready(), "only streams that may write are scheduled");
        let window = u32::try_from(stream.send_window).unwrap_or(0).min(self.flow.send);
        let frame_size = window.min(self.output.frame_size()).min(stream.chunk_size) as usize;
        let left = usize::try_from(stream.send_left).unwrap_or(usize::MAX);
        let max = frame_size.min(space).min(left);
        let mark = out.mark();
        out.push_slice(&[0; HEADER_LEN]);
        let (filled, pull) = fill(stream.user, max, out, bodies);
        let is_whole = stream.send_left != UNKNOWN && filled == left;
        let ends = is_whole || (pull == Pull::End && stream.send_left == UNKNOWN);
        // A body that is shorter than its declared length cannot be completed; what there is of it
        // comes before the reset.
        let is_broken = filled > max || (!ends && matches!(pull, Pull::End | Pull::Broken));
        if filled > max || (filled == 0 && !ends) {
            out.rewind(mark);
            return match pull {
                _ if is_broken => Written::Broken,
                Pull::Pending => Written::Pending,
                _ => Written::More,
            };
        }
        let is_trailed = ends && stream.trailed && self.queue_trailers(slot, bodies);
        let flags = if ends && !is_trailed { flag::END_STREAM } else { 0 };
        let header = FrameHeader { len: filled as u32, kind: FrameKind::Data, flags, stream: id };
        out.patch(mark, &header.bytes());
        let stream = self.streams.at(slot);
        debug_assert!(
            filled as u32 <= window && filled as u32 <= self.output.frame_size(),
            "DATA fits the windows and the peer's frame size"
        );
        stream.send_window -= filled as i32;
        stream.sent += filled as u64;
        stream.head_bytes += HEADER_LEN as u64;
        if stream.send_left != UNKNOWN {
            stream.send_left -= filled as u64;
        }
        let is_blocked = stream.send_window <= 0;
        self.flow.send -= filled as u32;
        self.abuse.pay_data(filled);
        match pull {
            _ if is_broken => Written::Broken,
            _ if is_trailed => Written::Trailed,
            _ if ends => Written::End,
            Pull::Pending => Written::Pending,
            _ if is_blocked => Written::Blocked,
            _ => Written::More,
        }
    }

    /// Queues the trailers, if there are any. They end the response once they are sent. Returns
    /// whether there are any.
    #[cold]
    fn queue_trailers(&mut self, slot: u32, bodies: &mut impl BodySource) -> bool {
        let stream = self.streams.at(slot);
        stream.trailed = false;
        let mut fields = FieldMap::new();
        bodies.trailers(stream.user, &mut fields);
        if fields.is_empty() {
            return false;
        }
        let len = self.output.trailers(self.streams.id(slot), &fields);
        let stream = self.streams.at(slot);
        (stream.sending, stream.head_bytes) = (H2Sending::Ended, stream.head_bytes + len);
        self.ended.push(self.streams.name(slot));
        true
    }
}

/// Pulls until `max` bytes are appended or the body has no more for now.
#[inline]
fn fill(
    user: crate::StreamOwner,
    max: usize,
    out: &mut SendChain,
    bodies: &mut impl BodySource,
) -> (usize, Pull) {
    let start = out.mark();
    loop {
        let before = out.mark();
        let pull = bodies.pull(user, max - (before - start), out);
        let filled = out.mark() - start;
        let goes_on = pull == Pull::More && filled < max && out.mark() > before;
        if !goes_on {
            return (filled, pull);
        }
    }
}
