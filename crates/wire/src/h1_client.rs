//! The HTTP/1 client: one request at a time over a connection to an upstream (RFC 9112).
//!
//! It encodes pseudo-header fields, fields and a pulled body, and parses a response that reads may
//! split anywhere. It accepts and refuses the same responses as nginx. It adds and removes no
//! field, and does not pipeline.
//!
//! ```text
//!  sending   Idle ──start──▶ Body ──end of body──▶ Sent       response ends ──▶ Stopped
//!  answer    None ──▶ Line ──▶ Fields ──▶ Plain │ Chunks ──▶ Over ──(Sent, kept)──▶ idle
//!                      ▲         │ 1xx
//!                      └─────────┘          │  101 to an Upgrade ──▶ Tunnel ──end──▶ Over
//! ```
//!
//! INVARIANT: a connection is idle again only when its last request was sent completely and no byte
//! came behind the response. The events depend on the bytes of the response only, with one
//! exception: the warnings about bytes behind a response need them to come in the same read as its
//! last bytes.

mod chunks;
mod request;
mod status;
#[cfg(test)]
mod tests;

use bolide_base::SendChain;
use bolide_http::{FieldMap, Name, OriginHead, Params};

use self::chunks::{ChunkPiece, ChunkReader};
use self::request::UploadFraming;
use self::status::{StatusLine, StatusStep};
use crate::cgi::{self, CgiAnswer, CgiPhase, CgiRule, HeadParser};
use crate::outgoing::{OutgoingBody, SendingState};
use crate::{BodySource, OriginConnSettings, OriginError, OriginEvent, Pull, StreamOwner};

/// What the next bytes of the response are.
#[derive(Debug)]
enum Reading {
    /// The status line.
    Line(StatusLine),
    /// The fields of the head.
    Fields(HeadParser),
    /// The body without framing, or no body.
    Plain,
    /// The chunked body.
    Chunks(ChunkReader),
}

/// A connection to an HTTP/1 upstream.
#[derive(Debug)]
pub struct H1Client {
    settings: OriginConnSettings,
    outgoing: OutgoingBody,
    framing: UploadFraming,
    reading: Reading,
    answer: CgiAnswer,
    /// Whether the request has an `Upgrade` field.
    asks_upgrade: bool,
    /// Whether the connection cannot carry another request.
    is_spoiled: bool,
}

impl Default for H1Client {
    fn default() -> Self {
        Self::new()
    }
}

impl H1Client {
    /// A new connection.
    #[must_use]
    pub fn new() -> Self {
        Self {
            settings: OriginConnSettings::default(),
            outgoing: OutgoingBody::default(),
            framing: UploadFraming::Length(0),
            reading: Reading::Plain,
            answer: CgiAnswer::default(),
            asks_upgrade: false,
            is_spoiled: false,
        }
    }

    /// Begins a request, see [`crate::OriginConn::start`]. The first pairs of `params` are
    /// `:method`, `:target` and `:version` (`1.1` or `1.0`); the others are the fields, framing
    /// fields included.
    pub fn start(&mut self, params: &Params, body_len: Option<u64>, settings: &OriginConnSettings) {
        assert!(self.is_idle(), "one request at a time");
        self.outgoing.begin();
        self.settings = *settings;
        self.framing = body_len.map_or(UploadFraming::Chunked, UploadFraming::Length);
        self.reading = Reading::Line(StatusLine::new());
        self.answer = CgiAnswer::begun(settings.answers_head);
        self.asks_upgrade = params.iter().any(|pair| pair.0.eq_ignore_ascii_case(b"upgrade"));
        let pushed = request::push_head(&mut self.outgoing.buffer, params);
        self.outgoing.sending = match (pushed, self.framing) {
            (None, _) => SendingState::Broken,
            (Some(()), UploadFraming::Length(0)) => SendingState::Sent,
            (Some(()), _) => SendingState::Body,
        };
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
        self.outgoing.flush(out);
        while self.outgoing.pulls() {
            let left = room.saturating_sub((out.len() - start) as usize);
            if !UploadFraming::is_worth(left, room) {
                return;
            }
            let Some(sent) = self.framing.send(left, out, user, body) else { return };
            let (pull, sending, is_more) = sent;
            self.outgoing.sending = sending;
            self.outgoing.is_pending = pull == Pull::Pending;
            if !is_more {
                return;
            }
        }
    }

    /// A body that was `Pending`, or the client's side of a tunnel, has bytes again or ended.
    pub const fn body_ready(&mut self) {
        self.outgoing.is_pending = false;
    }

    /// Whether something can be sent now.
    #[must_use]
    pub const fn has_output(&self) -> bool {
        self.outgoing.has_output()
    }

    /// Whether the whole request was handed over; of a tunnel, all bytes of the client.
    #[must_use]
    pub const fn is_request_sent(&self) -> bool {
        self.outgoing.is_sent()
    }

    /// Whether the request cannot be completed.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.outgoing.is_broken()
    }

    /// Whether the upstream switched to another protocol, see [`crate::OriginConn::is_tunnel`].
    #[must_use]
    pub const fn is_tunnel(&self) -> bool {
        matches!(self.framing, UploadFraming::Tunnel)
    }

    /// Stops sending. HTTP/1 can abort a request only by closing the connection.
    pub fn abort(&mut self) {
        if matches!(self.answer.phase(), CgiPhase::Head | CgiPhase::Body) {
            self.is_spoiled = true;
            self.outgoing.stop();
        }
    }

    /// Whether the connection may carry a request.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        match self.answer.phase() {
            CgiPhase::None => !self.is_spoiled,
            CgiPhase::Over => self.settings.keep && self.is_request_sent() && !self.is_spoiled,
            CgiPhase::Head | CgiPhase::Body => false,
        }
    }

    /// Receives bytes of the upstream, see [`crate::OriginConn::receive`].
    ///
    /// # Errors
    ///
    /// [`OriginError`]; the connection must then be closed.
    pub fn receive(
        &mut self,
        input: &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<usize, OriginError> {
        let received = self.receive_parts(input, events);
        // An error does not invalidate the bytes before it.
        self.answer.flush(events);
        if received.is_err() {
            self.is_spoiled = true;
            self.outgoing.stop();
        }
        received.map(|()| input.len())
    }

    fn receive_parts(
        &mut self,
        mut input: &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        while !input.is_empty() {
            match self.answer.phase() {
                CgiPhase::Head | CgiPhase::Body => {}
                CgiPhase::None => {
                    let text = b"upstream sent data before a request".as_slice();
                    return Err(OriginError::Invalid(text.into()));
                }
                CgiPhase::Over => {
                    self.is_spoiled = true;
                    return Ok(());
                }
            }
            match &mut self.reading {
                Reading::Line(_) => self.take_line(&mut input)?,
                Reading::Fields(parser) => {
                    let (used, head) = parser.receive(input, self.settings.head_max)?;
                    input = &input[used..];
                    if let Some(head) = head {
                        self.take_head(head, events)?;
                        self.end_if_complete(input, events);
                    }
                }
                Reading::Plain => {
                    self.is_spoiled |= self.answer.is_complete();
                    let piece = std::mem::take(&mut input);
                    self.answer.body(piece, 0, events);
                    self.end_if_complete(b"", events);
                }
                Reading::Chunks(_) => self.take_chunks(&mut input, events)?,
            }
        }
        Ok(())
    }

    /// Parses bytes of a status line.
    fn take_line(&mut self, input: &mut &[u8]) -> Result<(), OriginError> {
        let Reading::Line(line) = &mut self.reading else { return Ok(()) };
        while let Some((&byte, rest)) = input.split_first() {
            *input = rest;
            match line.take(byte) {
                // It needs at least one more byte.
                StatusStep::More if line.len() >= self.settings.head_max => {
                    return Err(OriginError::HeadTooBig);
                }
                StatusStep::More => {}
                StatusStep::Complete => {
                    // As in nginx, an HTTP/1.0 response is the last of its connection, whatever its
                    // fields say.
                    self.is_spoiled = !line.is_modern();
                    let head = line.head();
                    if head.status < 100 {
                        let code = format!("{:03}", head.status);
                        return Err(invalid_status(code.as_bytes()));
                    }
                    self.reading = Reading::Fields(HeadParser::behind_line(head, line.len()));
                    return Ok(());
                }
                // RFC 9112 §4: a response begins with a status line.
                StatusStep::NoLine => {
                    let text = b"upstream sent no valid HTTP/1.0 header";
                    return Err(cgi::invalid_head(text, b"", b""));
                }
            }
        }
        Ok(())
    }

    fn take_head(
        &mut self,
        head: Box<OriginHead>,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        if cgi::is_early(head.status) {
            self.reading = Reading::Line(StatusLine::new());
            return self.answer.early_head(head, events);
        }
        let length = read_length(&head.fields)?;
        self.reading = Reading::Plain;
        if head.status == 101 {
            return self.begin_tunnel(head, events);
        }
        self.is_spoiled |= head.fields.all(Name::Connection).any(has_close);
        let rule = match length {
            Length::Known(length) => CgiRule::Left(length),
            Length::Chunked | Length::UntilClose => CgiRule::Any,
        };
        self.answer.begin_body(head, rule, events);
        if length == Length::Chunked && !self.answer.is_complete() {
            self.reading = Reading::Chunks(ChunkReader::new(self.settings.head_max));
        }
        Ok(())
    }

    fn begin_tunnel(
        &mut self,
        head: Box<OriginHead>,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        // RFC 9110 §7.8: 101 is valid only for a request with `Upgrade` that was sent completely.
        let is_sent = self.outgoing.sending == SendingState::Sent;
        if !self.asks_upgrade || !is_sent {
            return Err(invalid_status(b"101"));
        }
        self.is_spoiled = true;
        self.framing = UploadFraming::Tunnel;
        // The client's side has bytes only after `body_ready`.
        (self.outgoing.sending, self.outgoing.is_pending) = (SendingState::Body, true);
        self.answer.begin_tunnel(head, events);
        Ok(())
    }

    fn take_chunks(
        &mut self,
        input: &mut &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        let Reading::Chunks(chunks) = &mut self.reading else { return Ok(()) };
        let text = b"upstream sent invalid chunked response".as_slice();
        let piece = chunks.receive(input).ok_or_else(|| OriginError::Invalid(text.into()))?;
        match piece {
            ChunkPiece::Starved => {}
            ChunkPiece::Data(data) => self.answer.body(data, input.len(), events),
            ChunkPiece::End(behind) => {
                let trailers = chunks.take_trailers();
                *input = &[];
                self.answer.flush(events);
                if !trailers.is_empty() {
                    events.push(OriginEvent::Trailers(Box::new(trailers)));
                }
                if !behind.is_empty() {
                    self.is_spoiled = true;
                    events.push(OriginEvent::ExcessChunk);
                }
                self.end(events);
            }
        }
        Ok(())
    }

    /// Ends a complete response, unless bytes behind it are still to be reported.
    fn end_if_complete(&mut self, behind: &[u8], events: &mut Vec<OriginEvent>) {
        match self.answer.phase() {
            CgiPhase::Over => {
                self.is_spoiled = true;
                self.outgoing.stop();
            }
            CgiPhase::Body if behind.is_empty() && self.answer.is_complete() => self.end(events),
            _ => {}
        }
    }

    fn end(&mut self, events: &mut Vec<OriginEvent>) {
        self.answer.end(0, events);
        self.outgoing.stop();
    }

    /// Bytes of the response that are buffered until the rest arrives.
    pub(crate) const fn held(&self) -> usize {
        match &self.reading {
            Reading::Line(line) => line.len(),
            Reading::Fields(parser) => parser.held(),
            Reading::Plain => 0,
            Reading::Chunks(chunks) => chunks.held(),
        }
    }

    /// Handles the end of input, see [`crate::OriginConn::handle_eof`].
    ///
    /// # Errors
    ///
    /// [`OriginError`] if the response is incomplete.
    pub fn handle_eof(&mut self, events: &mut Vec<OriginEvent>) -> Result<(), OriginError> {
        self.is_spoiled = true;
        let error = match (self.answer.phase(), &self.reading) {
            (CgiPhase::None | CgiPhase::Over, _) => return Ok(()),
            (CgiPhase::Body, Reading::Plain) if !self.answer.is_short() => {
                self.end(events);
                return Ok(());
            }
            (CgiPhase::Body, _) => OriginError::ClosedWithinBody,
            (CgiPhase::Head, _) => OriginError::ClosedBeforeHead,
        };
        self.outgoing.stop();
        Err(error)
    }
}

/// The length of a body according to its framing fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Known(u64),
    Chunked,
    UntilClose,
}

/// Checks the framing fields in their order, and stops at the first invalid one.
fn read_length(fields: &FieldMap) -> Result<Length, OriginError> {
    let (mut length, mut coding) = (None, None);
    for field in fields.iter() {
        let (before, other, name) = match field.name {
            Name::ContentLength => (&mut length, &coding, b"Content-Length".as_slice()),
            Name::TransferEncoding => (&mut coding, &length, b"Transfer-Encoding".as_slice()),
            _ => continue,
        };
        if let Some(before) = before.replace(field.value) {
            return Err(cgi::duplicate_line(name, field.value, before));
        }
        if other.is_some() {
            return Err(cgi::length_and_coding());
        }
        if field.name == Name::ContentLength {
            cgi::parse_length(field.value)?;
        } else if !field.value.eq_ignore_ascii_case(b"chunked") {
            let text = b"upstream sent unknown \"Transfer-Encoding\": \"";
            return Err(cgi::invalid_head(text, field.value, b"\""));
        }
    }
    Ok(match (length, coding) {
        (Some(text), _) => Length::Known(cgi::parse_length(text)?),
        (None, Some(_)) => Length::Chunked,
        (None, None) => Length::UntilClose,
    })
}

/// Whether a value of `Connection` contains `close` at any position, as in nginx.
fn has_close(value: &[u8]) -> bool {
    value.windows(5).any(|word| word.eq_ignore_ascii_case(b"close"))
}

fn invalid_status(code: &[u8]) -> OriginError {
    cgi::invalid_head(b"upstream sent invalid status \"", code, b"\"")
}
