//! The HTTP/2 client: one request at a time over a connection to an upstream (RFC 9113).
//!
//! It encodes a head and a body that is pulled as far as the windows permit, and reads a response
//! that reads may split anywhere; it answers SETTINGS and PING meanwhile. As in nginx, the windows
//! of the upstream are as large as can be: what is held is bounded by when the caller reads.
//!
//! ```text
//!  sending   Idle ──start──▶ Body ──end of body──▶ Sent      response ends ──▶ Stopped
//!  answer    None ──▶ Head ──final head──▶ Body ──END_STREAM──▶ Over ──(Sent, kept)──▶ idle
//!                     ▲  │ 1xx
//!                     └──┘
//! ```
//!
//! INVARIANT: field blocks leave and are decoded in order, all of them, or the connection carries
//! no further request. The events depend on the bytes of the response only.

mod control;
mod fields;
mod flaw;
mod reader;
mod receive;
mod request;
mod send;
#[cfg(test)]
mod tests;
mod windows;

use bolide_base::SendChain;
use bolide_http::Http2Head;

use self::reader::FrameReader;
use self::windows::ClientWindows;
use crate::cgi::{CgiAnswer, CgiPhase};
use crate::h2::frame::{FrameKind, code, push_u32};
use crate::hpack::{HpackDecoder, HpackEncoder};
use crate::outgoing::SendingState;
use crate::{BodySource, OriginConnSettings, OriginError, OriginEvent, StreamOwner};

/// LIMIT: the streams of a connection; the last ids are left alone.
const STREAM_MAX: u32 = 0x7fff_ff00;
/// LIMIT: capacity of a buffer that a connection keeps between requests.
const BUFFER_KEPT: usize = 4096;

/// A connection to an HTTP/2 upstream.
#[derive(Debug)]
pub struct H2Client {
    settings: OriginConnSettings,
    /// The current or last stream; 0 before the first.
    stream: u32,
    sending: SendingState,
    /// The body source has no bytes available.
    is_pending: bool,
    /// The rest of the declared length of the request body.
    body_left: Option<u64>,
    answer: CgiAnswer,
    /// The rest of the declared length of the response body.
    left: Option<u64>,
    /// Whether the connection cannot carry another request.
    is_spoiled: bool,
    windows: ClientWindows,
    /// The upstream's `SETTINGS_MAX_CONCURRENT_STREAMS`.
    streams_max: u32,
    encoder: HpackEncoder,
    decoder: HpackDecoder,
    reader: FrameReader,
    /// The preface and the head, until they are handed over.
    head: Vec<u8>,
    /// Frames that answer those of the upstream.
    answers: Vec<u8>,
}

impl Default for H2Client {
    fn default() -> Self {
        Self::new()
    }
}

impl H2Client {
    /// A new connection.
    #[must_use]
    pub fn new() -> Self {
        Self {
            settings: OriginConnSettings::default(),
            stream: 0,
            sending: SendingState::Idle,
            is_pending: false,
            body_left: None,
            answer: CgiAnswer::default(),
            left: None,
            is_spoiled: false,
            windows: ClientWindows::new(),
            streams_max: u32::MAX,
            encoder: request::encoder(),
            decoder: HpackDecoder::default(),
            reader: FrameReader::default(),
            head: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Begins a request, see [`crate::OriginConn::start`].
    pub fn start(
        &mut self,
        asked: &Http2Head,
        body_len: Option<u64>,
        settings: &OriginConnSettings,
    ) {
        assert!(self.is_idle(), "one request at a time");
        self.settings = *settings;
        (self.is_pending, self.body_left, self.left) = (false, body_len, None);
        self.answer = CgiAnswer::begun(settings.answers_head);
        if !asked.is_encodable() {
            (self.sending, self.is_spoiled) = (SendingState::Broken, true);
            return;
        }
        if self.stream == 0 {
            request::push_preface(&mut self.head);
        }
        self.stream = if self.stream == 0 { 1 } else { self.stream + 2 };
        self.windows.begin_stream();
        self.reader.begin_response();
        let ends = body_len == Some(0);
        let frame_size = self.windows.frame_size();
        request::push_head(
            &mut self.head,
            &mut self.encoder,
            asked,
            (self.stream, ends),
            frame_size,
        );
        self.sending = if ends { SendingState::Sent } else { SendingState::Body };
    }

    /// Appends what can be sent, see [`crate::OriginConn::transmit`].
    pub fn transmit(
        &mut self,
        room: usize,
        out: &mut SendChain,
        user: StreamOwner,
        body: &mut impl BodySource,
    ) {
        let start = out.len();
        for queue in [&mut self.head, &mut self.answers] {
            if !queue.is_empty() {
                out.push_slice(queue);
                queue.clear();
                queue.shrink_to(BUFFER_KEPT);
            }
        }
        self.send_body(room, start, out, user, body);
    }

    /// A body that was `Pending` has bytes again or ended.
    pub const fn body_ready(&mut self) {
        self.is_pending = false;
    }

    /// Whether something can be sent now.
    #[must_use]
    pub const fn has_output(&self) -> bool {
        !self.head.is_empty() || !self.answers.is_empty() || self.pulls() && self.windows.room() > 0
    }

    /// Whether the body waits for the windows of the upstream.
    #[must_use]
    pub const fn is_blocked(&self) -> bool {
        self.pulls() && self.windows.room() == 0
    }

    /// Whether the whole request was handed over.
    #[must_use]
    pub const fn is_request_sent(&self) -> bool {
        matches!(self.sending, SendingState::Sent) && self.head.is_empty()
    }

    /// Whether the request cannot be completed.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        matches!(self.sending, SendingState::Broken)
    }

    /// Whether the connection may carry a request.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        match self.answer.phase() {
            CgiPhase::None => !self.is_spoiled,
            CgiPhase::Over => {
                self.settings.keep
                    && self.is_request_sent()
                    && !self.is_spoiled
                    // The rest of a frame would count for the next request.
                    && self.reader.is_between_frames()
                    && self.streams_max > 0
                    && self.stream < STREAM_MAX
            }
            CgiPhase::Head | CgiPhase::Body => false,
        }
    }

    /// Queues an abort, see [`crate::OriginConn::abort`].
    pub fn abort(&mut self) {
        if !self.is_running() {
            return;
        }
        debug_assert!(self.stream > 0, "what runs has a stream");
        self.is_spoiled = true;
        self.stop();
        if self.head.is_empty() {
            push_u32(&mut self.answers, FrameKind::RstStream, self.stream, code::CANCEL);
        } else {
            // Nothing of the request was handed over.
            self.head.clear();
            self.answers.clear();
        }
    }

    /// Receives bytes of the upstream, see [`crate::OriginConn::receive`]. Those behind a response
    /// are about the connection: what is wrong with them only ends its use.
    ///
    /// # Errors
    ///
    /// [`OriginError`]; the connection must then be closed.
    pub fn receive(
        &mut self,
        input: &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<usize, OriginError> {
        if self.stream == 0 {
            self.is_spoiled = true;
            let text = b"upstream sent data before a request".as_slice();
            return Err(OriginError::Invalid(text.into()));
        }
        let read = self.read(input, events);
        // An error does not invalidate the bytes before it.
        self.answer.flush(events);
        if let Err(error) = read {
            self.is_spoiled = true;
            self.reader.give_up();
            let was_running = self.is_running();
            self.stop();
            if was_running {
                return Err(error);
            }
        }
        Ok(input.len())
    }

    /// Handles the end of input, see [`crate::OriginConn::handle_eof`].
    ///
    /// # Errors
    ///
    /// [`OriginError`] if the response is incomplete.
    pub fn handle_eof(&mut self, _events: &mut Vec<OriginEvent>) -> Result<(), OriginError> {
        self.is_spoiled = true;
        let error = match self.answer.phase() {
            CgiPhase::None | CgiPhase::Over => return Ok(()),
            CgiPhase::Head => OriginError::ClosedBeforeHead,
            CgiPhase::Body => OriginError::ClosedWithinBody,
        };
        self.stop();
        Err(error)
    }

    /// Bytes of the response that are buffered until the rest arrives.
    #[must_use]
    pub fn held(&self) -> usize {
        self.reader.held()
    }

    const fn is_running(&self) -> bool {
        matches!(self.answer.phase(), CgiPhase::Head | CgiPhase::Body)
    }

    const fn pulls(&self) -> bool {
        matches!(self.sending, SendingState::Body) && !self.is_pending
    }

    /// Sends no more of the request.
    const fn stop(&mut self) {
        if matches!(self.sending, SendingState::Body) {
            self.sending = SendingState::Stopped;
            self.is_spoiled = true;
        }
    }
}
