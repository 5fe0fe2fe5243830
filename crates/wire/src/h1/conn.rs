//! The receiving half: heads, bodies, and the end of input.

use bolide_base::limits::BODY_WINDOW;
use bolide_http::{Method, RequestBody, RequestHead};
use bytes::Bytes;

use super::body::{BodyDecoder, DecodeProgress};
use super::head::{After, HeadStep};
use super::response::{BodyFraming, RequestFacts, Wants};
use super::{Answer, DRAIN_SIZE_MAX, Expectation, H1Conn, H1Settings, Input, Reader, Source};
use crate::conn::UNBOUND;
use crate::{HeadPool, StreamId, WireEvent, WireRefusal};

const TIMED_OUT: WireRefusal =
    WireRefusal { status: 408, reason: "client timed out (110: Connection timed out)" };
const LEFT: WireRefusal =
    WireRefusal { status: 499, reason: "client prematurely closed connection" };
const RESET: WireRefusal =
    WireRefusal { status: 499, reason: "recv() failed (104: Connection reset by peer)" };
const INVALID_CHUNKS: WireRefusal =
    WireRefusal { status: 400, reason: "client sent invalid chunked body" };

impl H1Conn {
    /// Consumes bytes of `input` and returns how many. Offer the rest again with more bytes behind
    /// it. No further head is consumed while a response is outstanding. `settings` are the same in
    /// all calls; the limits on the rest of a head may change once its host is known.
    pub fn receive(
        &mut self,
        settings: &H1Settings,
        input: &[u8],
        heads: &mut HeadPool,
        events: &mut Vec<WireEvent>,
    ) -> usize {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let taken = match self.input {
                Input::Head => {
                    used += self.receive_head(settings, rest, heads, events);
                    break;
                }
                Input::Body(_) => self.receive_body(rest, events),
                Input::Tunnel => self.receive_raw(rest, events),
                Input::Complete => 0,
                Input::Discarding | Input::Silent => rest.len(),
            };
            used += taken;
            if taken == 0 {
                break;
            }
        }
        self.held = u32::try_from(input.len() - used).unwrap_or(u32::MAX);
        debug_assert!(self.ahead <= BODY_WINDOW, "unconsumed body bytes fit the body window");
        self.settle(events);
        used
    }

    /// Handles the peer's end of input. Requests that came before it still get their responses.
    pub fn handle_eof(&mut self, events: &mut Vec<WireEvent>) {
        self.ended = true;
        self.settle(events);
    }

    /// Handles the timeout of a head that has begun: it is refused with 408. `rest` is what
    /// [`Self::receive`] has left.
    pub fn handle_timeout(
        &mut self,
        rest: &[u8],
        heads: &mut HeadPool,
        events: &mut Vec<WireEvent>,
    ) {
        self.give_up_head(TIMED_OUT, rest, heads, events);
    }

    /// Whether a head, or a blank line before it, has begun and no answer is due.
    #[must_use]
    pub const fn is_within_head(&self) -> bool {
        matches!((&self.input, self.answer), (Input::Head, Answer::Idle)) && !self.parser.is_fresh()
    }

    /// Handles a client that leaves within a head, which is refused with 499: no
    /// answer would arrive.
    pub fn handle_departure(
        &mut self,
        is_reset: bool,
        rest: &[u8],
        heads: &mut HeadPool,
        events: &mut Vec<WireEvent>,
    ) {
        self.give_up_head(if is_reset { RESET } else { LEFT }, rest, heads, events);
    }

    /// Refuses a head that has begun and will not end.
    fn give_up_head(
        &mut self,
        refusal: WireRefusal,
        rest: &[u8],
        heads: &mut HeadPool,
        events: &mut Vec<WireEvent>,
    ) {
        debug_assert!(matches!(refusal.status, 408 | 499), "its client is late or gone");
        if !matches!((&self.input, self.answer), (Input::Head, Answer::Idle)) {
            return;
        }
        if let Some(head) = self.parser.give_up(rest, heads) {
            self.begin(&head, After::Close);
            self.input = Input::Discarding;
            events.push(WireEvent::Refused { stream: StreamId(self.requests), head, refusal });
        }
    }

    /// Returns the requested host of the incomplete head, once.
    pub fn take_host(&mut self) -> Option<&[u8]> {
        self.parser.take_host()
    }

    pub(super) const fn is_current(&self, stream: StreamId) -> bool {
        stream.0 == self.requests && matches!(self.answer, Answer::Wanted | Answer::Sending(_))
    }

    /// Body bytes that may be consumed now.
    pub(super) const fn body_room(&self) -> usize {
        match self.reader {
            Reader::Exchange => BODY_WINDOW.saturating_sub(self.ahead) as usize,
            Reader::Discarded => usize::MAX,
        }
    }

    fn receive_head(
        &mut self,
        settings: &H1Settings,
        input: &[u8],
        heads: &mut HeadPool,
        events: &mut Vec<WireEvent>,
    ) -> usize {
        let is_fresh = self.parser.is_fresh();
        let found = if is_fresh { self.said.find(input, heads) } else { None };
        let (used, step) = match found {
            Some((used, head, after)) => (used, HeadStep::Complete(head, after)),
            None => {
                let (used, step) = self.parser.receive(settings, input, heads);
                if is_fresh && let HeadStep::Complete(head, after) = &step {
                    self.said.note(&input[..used], head, *after);
                }
                (used, step)
            }
        };
        match step {
            HeadStep::Partial => used,
            HeadStep::Complete(mut head, after) => {
                head.pipelined = self.pipelined;
                self.begin(&head, after);
                if self.requests >= settings.keepalive_requests {
                    self.close_after_answer();
                }
                events.push(WireEvent::Request { stream: StreamId(self.requests), head });
                used
            }
            HeadStep::Refused(mut head, refusal) => {
                head.pipelined = self.pipelined;
                self.begin(&head, After::Close);
                self.input = Input::Discarding;
                self.lingers = true;
                events.push(WireEvent::Refused { stream: StreamId(self.requests), head, refusal });
                input.len()
            }
        }
    }

    /// Begins the request of `head`.
    fn begin(&mut self, head: &RequestHead, after: After) {
        assert!(
            matches!((&self.input, self.answer), (Input::Head, Answer::Idle)),
            "a head is parsed only behind the previous response and the end of its request body"
        );
        self.requests += 1;
        self.input = match head.body {
            RequestBody::None => Input::Complete,
            RequestBody::Length(length) => Input::Body(BodyDecoder::Length(length)),
            RequestBody::Unknown => Input::Body(BodyDecoder::chunked()),
        };
        self.answer = Answer::Wanted;
        self.asked = RequestFacts {
            version: head.version,
            wants: if head.method == Method::Head { Wants::HeadOnly } else { Wants::Body },
        };
        self.expectation = if head.expects_continue && head.body != RequestBody::None {
            Expectation::Waiting
        } else {
            Expectation::None
        };
        self.after = after;
        (self.user, self.reader, self.source) = (UNBOUND, Reader::Exchange, Source::Ready);
        (self.sent, self.drained, self.ahead) = (0, 0, 0);
    }

    fn receive_body(&mut self, input: &[u8], events: &mut Vec<WireEvent>) -> usize {
        let room = self.body_room();
        let Input::Body(decoder) = &mut self.input else { return 0 };
        if room == 0 {
            return 0;
        }
        let mut content = Content::default();
        let (used, progress) = decoder.decode(input, room, |piece| content.push(piece));
        if used > 0 {
            self.expectation = Expectation::None;
        }
        if self.reader == Reader::Exchange && content.len > 0 {
            self.ahead += content.len as u32;
            events.push(WireEvent::Body { user: self.user, bytes: content.into_bytes() });
        }
        match progress {
            DecodeProgress::More => self.drain(used),
            DecodeProgress::End => {
                self.input = Input::Complete;
                if self.answer == Answer::Done {
                    self.next_request();
                } else {
                    events.push(WireEvent::BodyEnd { user: self.user });
                }
            }
            DecodeProgress::Refused => {
                self.stop_reading();
                if self.answer == Answer::Done {
                    self.answer = Answer::Idle;
                } else {
                    events
                        .push(WireEvent::BodyRefused { user: self.user, refusal: INVALID_CHUNKS });
                }
                return input.len();
            }
        }
        used
    }

    /// Consumes the client's bytes of a tunnel.
    fn receive_raw(&mut self, input: &[u8], events: &mut Vec<WireEvent>) -> usize {
        let taken = input.len().min(self.body_room());
        if self.reader == Reader::Exchange && taken > 0 {
            self.ahead += taken as u32;
            let bytes = Bytes::copy_from_slice(&input[..taken]);
            events.push(WireEvent::Body { user: self.user, bytes });
        }
        taken
    }

    /// Counts the bytes that are drained after the response. A body over the limit closes the
    /// connection.
    fn drain(&mut self, bytes: usize) {
        if self.answer == Answer::Done {
            self.drained += bytes as u64;
            if self.drained > DRAIN_SIZE_MAX {
                self.stop_reading();
                self.answer = Answer::Idle;
            }
        }
    }

    /// Stops parsing the input, of which more may come.
    pub(super) const fn stop_reading(&mut self) {
        self.input = Input::Discarding;
        self.after = After::Close;
        self.expectation = Expectation::None;
        self.lingers = true;
    }

    /// Closes instead of a response; the responses before it still leave. Interim responses that
    /// have not left do not.
    pub fn close_without_response(&mut self) {
        debug_assert!(!self.is_answering(), "a response that has begun is cut, not left out");
        self.stop_reading();
        self.lingers = false;
        self.answer = Answer::Idle;
        self.output.clear();
        debug_assert!(self.is_closing(), "nothing follows");
    }

    /// Expects the next request after a response is complete and the request body was read to its
    /// end.
    pub(super) const fn next_request(&mut self) {
        assert!(
            matches!(self.input, Input::Complete | Input::Head),
            "the next request follows the end of this one's body"
        );
        self.answer = Answer::Idle;
        self.pipelined = self.held > 0;
        self.input = match self.after {
            After::KeepAlive => Input::Head,
            After::Close => Input::Discarding,
        };
    }

    /// Handles the end of input, once everything before it was parsed.
    #[inline]
    pub(super) fn settle(&mut self, events: &mut Vec<WireEvent>) {
        if self.ended {
            self.conclude(events);
        }
    }

    fn conclude(&mut self, events: &mut Vec<WireEvent>) {
        match self.input {
            Input::Head if self.held <= self.parser.scanned() => self.input = Input::Discarding,
            Input::Body(_) if self.held == 0 => self.lose_body(events),
            Input::Tunnel if self.held == 0 => {
                self.input = Input::Silent;
                events.push(WireEvent::BodyEnd { user: self.user });
            }
            _ => {}
        }
    }

    /// The request body will never be complete.
    fn lose_body(&mut self, events: &mut Vec<WireEvent>) {
        self.input = Input::Discarding;
        self.after = After::Close;
        match (self.answer, self.reader) {
            (Answer::Done, _) => self.answer = Answer::Idle,
            (_, Reader::Discarded) => {}
            (answer, Reader::Exchange) => {
                self.broken = matches!(answer, Answer::Sending(_));
                self.hides_break = matches!(answer, Answer::Sending(BodyFraming::UntilClose));
                self.answer = Answer::Idle;
                self.output.clear();
                events.push(WireEvent::Reset { user: self.user });
            }
        }
    }
}

/// The body content of one call: usually one slice; small chunks are gathered.
#[derive(Default)]
struct Content<'a> {
    first: &'a [u8],
    gathered: Vec<u8>,
    len: usize,
}

impl<'a> Content<'a> {
    fn push(&mut self, piece: &'a [u8]) {
        if self.len == 0 {
            self.first = piece;
        } else {
            if self.gathered.is_empty() {
                self.gathered.extend_from_slice(self.first);
            }
            self.gathered.extend_from_slice(piece);
        }
        self.len += piece.len();
    }

    fn into_bytes(self) -> Bytes {
        if self.gathered.is_empty() {
            Bytes::copy_from_slice(self.first)
        } else {
            Bytes::from(self.gathered)
        }
    }
}
