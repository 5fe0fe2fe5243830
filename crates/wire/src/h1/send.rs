//! The sending half: heads are encoded at once, bodies are pulled when they can be sent.

use bolide_base::SendChain;
use bolide_http::status::ends_exchange;
use bolide_http::{FieldMap, HttpVersion, ResponseHead};

use super::head::After;
use super::response::{BodyFraming, encode_interim, encode_trailers, frame};
use super::{
    Answer, DRAIN_SIZE_MAX, Expectation, H1Conn, Input, OUTPUT_KEPT_MAX, Reader, Replies, Source,
};
use crate::{BodySource, Pull, RespondError, StreamId, WireEvent};

/// LIMIT: framing bytes of one chunk: size, line ends, last chunk.
const CHUNK_OVERHEAD: usize = 8 + 2 + 2 + 5;
/// LIMIT: content bytes of a chunk, because its size has at most eight digits.
const CHUNK_SIZE_MAX: usize = 0x0fff_ffff;

/// What to do after a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// Pull again if there is room.
    On,
    /// There is no room, or no bytes are available.
    Wait,
    /// The body is complete.
    Complete,
    /// The body can never be complete.
    Broken,
}

impl H1Conn {
    /// Queues `100 (Continue)`. As in nginx, whether a body is to come or not.
    pub fn send_continue(&mut self, stream: StreamId) {
        if self.is_current(stream) && self.answer == Answer::Wanted {
            self.expectation = Expectation::None;
            self.output.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
    }

    /// Queues the head of an interim response (1xx except 101). They may come any number of times
    /// before the response; a 1.0 client gets none.
    pub fn announce(&mut self, stream: StreamId, head: &ResponseHead) {
        let is_due = self.is_current(stream) && self.answer == Answer::Wanted;
        // RFC 9110 §15.2: a 1.0 client would take it for the final response.
        if is_due && self.asked.version == HttpVersion::Http11 {
            encode_interim(&mut self.output, head);
        }
    }

    /// Queues the head of the response; [`Self::transmit`] pulls the body. `replies` caches encoded
    /// heads of this and other connections.
    ///
    /// 101 with a body of unknown length makes the connection a tunnel (RFC 9110 §7.8), if the
    /// request is complete. From then on the client's bytes are [`WireEvent::Body`] of that
    /// request, and [`WireEvent::BodyEnd`] when the client closes its side. The response body is
    /// sent without framing, and its end closes the connection.
    ///
    /// # Errors
    ///
    /// The request is gone, or its response has begun.
    pub fn respond(
        &mut self,
        stream: StreamId,
        head: &ResponseHead,
        replies: &mut Replies,
    ) -> Result<(), RespondError> {
        if !self.is_current(stream) || self.answer != Answer::Wanted {
            return Err(RespondError);
        }
        debug_assert!(ends_exchange(head.status), "{} announces a response", head.status);
        let (delimiter, mut framing, after) = frame(self.asked, head);
        if head.close || self.going || after == After::Close || !self.may_stay() {
            self.close_after_answer();
        }
        self.head_sent = 0;
        if self.asked.version != HttpVersion::Http09 {
            let before = self.output.len();
            replies.write(&mut self.output, head, delimiter, self.after);
            self.head_sent = (self.output.len() - before) as u32;
        }
        if head.status == 101 && framing == BodyFraming::UntilClose {
            framing = self.begin_tunnel();
        }
        self.answer = Answer::Sending(framing);
        (self.source, self.paced) = (Source::Ready, false);
        self.trailed = head.trailed && framing != BodyFraming::Empty;
        Ok(())
    }

    /// Switches the connection to another protocol. Not while the request is incomplete, nor for
    /// HTTP/0.9, which has no head: then this response is only the last.
    const fn begin_tunnel(&mut self) -> BodyFraming {
        if !matches!(
            (&self.input, self.asked.version),
            (Input::Complete, HttpVersion::Http10 | HttpVersion::Http11)
        ) {
            return BodyFraming::Empty;
        }
        (self.input, self.reader, self.ahead) = (Input::Tunnel, Reader::Exchange, 0);
        BodyFraming::UntilClose
    }

    /// Makes the current response the last. An HTTP/1.1 client that expected to continue may have
    /// sent more; 1.0 clients do not pipeline.
    pub(super) const fn close_after_answer(&mut self) {
        let unforeseen = matches!(self.after, After::KeepAlive);
        self.lingers |= unforeseen && matches!(self.asked.version, HttpVersion::Http11);
        self.after = After::Close;
    }

    /// Whether another request may follow on this connection, as far as is known now.
    const fn may_stay(&self) -> bool {
        // RFC 9110 §10.1.1: a client that got no 100 may or may not send its body, so the next
        // bytes would be ambiguous.
        let clear = matches!(self.expectation, Expectation::None);
        let readable = match (&self.input, self.reader) {
            (Input::Body(body), Reader::Discarded) => body.left() <= DRAIN_SIZE_MAX,
            (Input::Discarding, _) => false,
            _ => true,
        };
        clear && readable && !(self.ended && self.held == 0)
    }

    /// The response that was given to [`Self::respond`] has a pace: its head is sent as
    /// [`BodySource::admit`] allows.
    pub fn keep_pace(&mut self, stream: StreamId) {
        self.paced = self.is_current(stream) && matches!(self.answer, Answer::Sending(_));
    }

    /// The body source of `stream` has bytes again.
    pub fn body_ready(&mut self, stream: StreamId) {
        if self.is_current(stream) {
            self.source = Source::Ready;
        }
    }

    /// Appends queued heads and the bytes that `bodies` provides, about `room` bytes (a head is
    /// never split).
    ///
    /// A source is never asked for more than the length. A response that ends short of its length,
    /// or whose source fails, sets [`Self::is_broken`] and pushes [`WireEvent::Reset`].
    pub fn transmit(
        &mut self,
        room: usize,
        out: &mut SendChain,
        events: &mut Vec<WireEvent>,
        bodies: &mut impl BodySource,
    ) {
        let start = out.len();
        if !self.output.is_empty() {
            if self.paced {
                return self.transmit_paced(room, out, events, bodies);
            }
            out.push_slice(&self.output);
            self.output.clear();
        }
        let Answer::Sending(mut framing) = self.answer else { return };
        if self.is_tunnel() {
            // The client may have closed its side before the tunnel began.
            self.settle(events);
        }
        loop {
            let room = room.saturating_sub((out.len() - start) as usize);
            let flow = match &mut framing {
                BodyFraming::Empty => Flow::Complete,
                _ if room == 0 || self.source == Source::Pending => Flow::Wait,
                BodyFraming::Exact(left) => self.send_exact(left, room, out, bodies),
                BodyFraming::Chunked => self.send_chunk(room, out, bodies),
                BodyFraming::UntilClose => self.send_raw(room, out, bodies),
            };
            match flow {
                Flow::On => {}
                Flow::Wait => {
                    self.answer = Answer::Sending(framing);
                    return;
                }
                Flow::Complete => {
                    debug_assert!(
                        !matches!(framing, BodyFraming::Exact(1..)),
                        "a response has its declared length"
                    );
                    if std::mem::take(&mut self.trailed) {
                        // HTTP/1.0 cannot send trailers, but the log may contain them.
                        bodies.trailers(self.user, &mut FieldMap::new());
                    }
                    return self.complete(events);
                }
                Flow::Broken => return self.break_off(events),
            }
        }
    }

    /// Appends as much of the head as its pace allows, and what follows once all of it was.
    #[cold]
    fn transmit_paced(
        &mut self,
        room: usize,
        out: &mut SendChain,
        events: &mut Vec<WireEvent>,
        bodies: &mut impl BodySource,
    ) {
        let admitted = bodies.admit(self.user, self.output.len());
        debug_assert!(admitted <= self.output.len(), "no more is admitted than there is");
        out.push_slice(&self.output[..admitted]);
        self.output.drain(..admitted);
        if self.output.is_empty() {
            return self.transmit(room.saturating_sub(admitted), out, events, bodies);
        }
        self.source = Source::Held;
    }

    fn send_exact(
        &mut self,
        left: &mut u64,
        room: usize,
        out: &mut SendChain,
        bodies: &mut impl BodySource,
    ) -> Flow {
        let max = usize::try_from(*left).map_or(room, |left| left.min(room));
        let (appended, pull) = self.pull(max, out, bodies);
        match left.checked_sub(appended) {
            // The surplus bytes are appended already, and a client would parse them as the next
            // response.
            None => Flow::Broken,
            Some(0) if pull != Pull::Broken => {
                *left = 0;
                Flow::Complete
            }
            Some(rest) => {
                *left = rest;
                if pull == Pull::End { Flow::Broken } else { self.flow(appended, pull) }
            }
        }
    }

    fn send_raw(&mut self, room: usize, out: &mut SendChain, bodies: &mut impl BodySource) -> Flow {
        let (appended, pull) = self.pull(room, out, bodies);
        self.flow(appended, pull)
    }

    /// Appends one chunk.
    fn send_chunk(
        &mut self,
        room: usize,
        out: &mut SendChain,
        bodies: &mut impl BodySource,
    ) -> Flow {
        let max = room.saturating_sub(CHUNK_OVERHEAD).clamp(1, CHUNK_SIZE_MAX);
        let before = out.len();
        let chunk = out.begin_chunk(max);
        let (appended, pull) = self.pull(max, out, bodies);
        if appended > max as u64 {
            return Flow::Broken;
        }
        out.end_chunk(chunk);
        if pull == Pull::End {
            out.push_slice(b"0\r\n");
            if std::mem::take(&mut self.trailed) {
                let mut fields = FieldMap::new();
                bodies.trailers(self.user, &mut fields);
                out.push_writing(|out| encode_trailers(out, &fields));
            }
            out.push_slice(b"\r\n");
        }
        self.sent += (out.len() - before).saturating_sub(appended);
        self.flow(appended, pull)
    }

    fn pull(
        &mut self,
        max: usize,
        out: &mut SendChain,
        bodies: &mut impl BodySource,
    ) -> (u64, Pull) {
        let before = out.len();
        let pull = bodies.pull(self.user, max, out);
        let appended = out.len() - before;
        debug_assert!(appended <= max as u64, "a body source keeps to its bound");
        self.sent += appended;
        (appended, pull)
    }

    fn flow(&mut self, appended: u64, pull: Pull) -> Flow {
        match pull {
            Pull::More if appended > 0 => Flow::On,
            Pull::More | Pull::Pending => {
                self.source = Source::Pending;
                Flow::Wait
            }
            Pull::End => Flow::Complete,
            Pull::Broken => Flow::Broken,
        }
    }

    /// The last byte of the response was appended.
    fn complete(&mut self, events: &mut Vec<WireEvent>) {
        let head_bytes = u64::from(self.head_sent);
        events.push(WireEvent::Sent { user: self.user, body_bytes: self.sent, head_bytes });
        if self.output.capacity() > OUTPUT_KEPT_MAX {
            self.output = Vec::new();
        }
        match &self.input {
            Input::Body(body)
                if self.after == After::KeepAlive && body.left() <= DRAIN_SIZE_MAX =>
            {
                self.answer = Answer::Done;
                self.reader = Reader::Discarded;
            }
            Input::Body(_) | Input::Tunnel | Input::Silent => {
                self.stop_reading();
                self.answer = Answer::Idle;
            }
            Input::Discarding => self.answer = Answer::Idle,
            Input::Complete | Input::Head => self.next_request(),
        }
        self.settle(events);
    }

    fn break_off(&mut self, events: &mut Vec<WireEvent>) {
        self.broken = true;
        self.hides_break = matches!(self.answer, Answer::Sending(BodyFraming::UntilClose));
        self.input = Input::Discarding;
        self.answer = Answer::Idle;
        events.push(WireEvent::Reset { user: self.user });
    }
}
