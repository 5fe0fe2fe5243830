//! The HTTP/1 client: one request at a time over a connection to an upstream (RFC 9112).
//!
//! It encodes a head and a pulled body, and parses a response that reads may
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
#[cfg(test)]
mod tests;

use bolide_base::SendChain;
use bolide_http::{Name, OriginHead, UpstreamHead};

use self::chunks::{ChunkPiece, ChunkReader};
use crate::cgi::{self, BodyLength, CgiPhase, CgiRule, HeadParser};
use crate::status_line::{StatusLine, StatusStep};
use crate::upload::UploadFraming;
use crate::upstream_client::{Started, UpstreamCall, UpstreamClient, UpstreamProtocol};
use crate::{BodySource, OriginError, OriginEvent, StreamOwner};

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
pub type H1Client = UpstreamClient<H1Protocol>;

/// Requests and responses as RFC 9112 has them.
#[derive(Debug)]
pub struct H1Protocol {
    framing: UploadFraming,
    reading: Reading,
    /// Whether the request has an `Upgrade` field.
    asks_upgrade: bool,
}

impl Default for H1Protocol {
    fn default() -> Self {
        Self { framing: UploadFraming::Length(0), reading: Reading::Plain, asks_upgrade: false }
    }
}

impl H1Client {
    /// Whether the upstream switched to another protocol, see [`crate::OriginConn::is_tunnel`].
    #[must_use]
    pub const fn is_tunnel(&self) -> bool {
        matches!(self.protocol.framing, UploadFraming::Tunnel)
    }
}

impl UpstreamProtocol for H1Protocol {
    type Message = UpstreamHead;

    fn start(
        &mut self,
        call: &mut UpstreamCall,
        head: &UpstreamHead,
        body_len: Option<u64>,
    ) -> Started {
        self.framing = body_len.map_or(UploadFraming::Chunked, UploadFraming::Length);
        self.reading = Reading::Line(StatusLine::new());
        self.asks_upgrade = head.fields().any(|field| field.0.eq_ignore_ascii_case(b"upgrade"));
        let pushed = request::push_head(&mut call.outgoing.buffer, head);
        match (pushed, self.framing) {
            (None, _) => Started::Unencodable,
            (Some(()), UploadFraming::Length(0)) => Started::Whole,
            (Some(()), _) => Started::BodyFollows,
        }
    }

    fn pull(
        &mut self,
        call: &mut UpstreamCall,
        room: usize,
        out: &mut SendChain,
        user: StreamOwner,
        body: &mut impl BodySource,
    ) {
        self.framing.pull(call, room, out, user, body);
    }

    fn read(
        &mut self,
        call: &mut UpstreamCall,
        mut input: &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        while !input.is_empty() && call.expects_bytes()? {
            match &mut self.reading {
                Reading::Line(_) => self.take_line(call, &mut input)?,
                Reading::Fields(parser) => {
                    let (used, head) = parser.receive(input, call.settings.head_max)?;
                    input = &input[used..];
                    if let Some(head) = head {
                        self.take_head(call, head, events)?;
                        call.end_if_complete(input, events);
                    }
                }
                Reading::Plain => {
                    call.is_spoiled |= call.answer.is_complete();
                    let piece = std::mem::take(&mut input);
                    call.answer.body(piece, 0, events);
                    call.end_if_complete(b"", events);
                }
                Reading::Chunks(_) => self.take_chunks(call, &mut input, events)?,
            }
        }
        Ok(())
    }

    /// HTTP/1 can abort a request only by closing the connection.
    fn abort(&mut self, call: &mut UpstreamCall) {
        call.outgoing.stop();
    }

    fn handle_eof(
        &mut self,
        call: &mut UpstreamCall,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        let error = match (call.answer.phase(), &self.reading) {
            (CgiPhase::None | CgiPhase::Over, _) => return Ok(()),
            (CgiPhase::Body, Reading::Plain) if !call.answer.is_short() => {
                call.end(0, events);
                return Ok(());
            }
            (CgiPhase::Body, _) => OriginError::ClosedWithinBody,
            (CgiPhase::Head, _) => OriginError::ClosedBeforeHead,
        };
        call.outgoing.stop();
        Err(error)
    }

    fn held(&self) -> usize {
        match &self.reading {
            Reading::Line(line) => line.len(),
            Reading::Fields(parser) => parser.held(),
            Reading::Plain => 0,
            Reading::Chunks(chunks) => chunks.held(),
        }
    }
}

impl H1Protocol {
    /// Parses bytes of a status line.
    fn take_line(&mut self, call: &mut UpstreamCall, input: &mut &[u8]) -> Result<(), OriginError> {
        let Reading::Line(line) = &mut self.reading else { return Ok(()) };
        while let Some((&byte, rest)) = input.split_first() {
            *input = rest;
            match line.take(byte) {
                // It needs at least one more byte.
                StatusStep::More if line.len() >= call.settings.head_max => {
                    return Err(OriginError::HeadTooBig);
                }
                StatusStep::More => {}
                StatusStep::Complete => {
                    // As in nginx, an HTTP/1.0 response is the last of its connection, whatever its
                    // fields say.
                    call.is_spoiled = !line.is_modern();
                    let head = line.head();
                    line.check_class()?;
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
        call: &mut UpstreamCall,
        head: Box<OriginHead>,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        if cgi::is_early(head.status) {
            self.reading = Reading::Line(StatusLine::new());
            return call.answer.early_head(head, events);
        }
        let length = cgi::read_framing(&head.fields)?;
        self.reading = Reading::Plain;
        if head.status == 101 {
            call.begin_tunnel(self.asks_upgrade, head, events)?;
            self.framing = UploadFraming::Tunnel;
            return Ok(());
        }
        call.is_spoiled |= head.fields.all(Name::Connection).any(has_close);
        let rule = match length {
            BodyLength::Known(length) => CgiRule::Left(length),
            BodyLength::Chunked | BodyLength::Open => CgiRule::Any,
        };
        call.answer.begin_body(head, rule, events);
        if length == BodyLength::Chunked && !call.answer.is_complete() {
            self.reading = Reading::Chunks(ChunkReader::new(call.settings.head_max));
        }
        Ok(())
    }

    fn take_chunks(
        &mut self,
        call: &mut UpstreamCall,
        input: &mut &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        let Reading::Chunks(chunks) = &mut self.reading else { return Ok(()) };
        let text = b"upstream sent invalid chunked response".as_slice();
        let piece = chunks.receive(input).ok_or_else(|| OriginError::Invalid(text.into()))?;
        match piece {
            ChunkPiece::Starved => {}
            ChunkPiece::Data(data) => call.answer.body(data, input.len(), events),
            ChunkPiece::End(behind) => {
                let trailers = chunks.take_trailers();
                *input = &[];
                call.answer.flush(events);
                if !trailers.is_empty() {
                    events.push(OriginEvent::Trailers(Box::new(trailers)));
                }
                if !behind.is_empty() {
                    call.is_spoiled = true;
                    events.push(OriginEvent::ExcessChunk);
                }
                call.end(0, events);
            }
        }
        Ok(())
    }
}

/// Whether a value of `Connection` contains `close` at any position, as in nginx.
fn has_close(value: &[u8]) -> bool {
    value.windows(5).any(|word| word.eq_ignore_ascii_case(b"close"))
}
