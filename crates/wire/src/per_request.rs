//! The client of uwsgi and SCGI: each request has a connection of its own.
//!
//! A request is a head of variables and a raw body; a response is that of a CGI script or of HTTP,
//! and ends at its length or with the connection. As in nginx, what begins with no status line is
//! read as fields.
//!
//! ```text
//!  sending   Idle ──start──▶ Body ──length reached──▶ Sent    response ends ──▶ Stopped
//!  answer    None ──▶ Line ──▶ Fields ──▶ Plain ──▶ Over        101 ──▶ Tunnel ──end──▶ Over
//!                      ▲        │ 1xx
//!                      └────────┘
//! ```
//!
//! INVARIANT: the body has exactly the length that the head declares, or the connection sends
//! nothing else.

mod request;
#[cfg(test)]
mod tests;

use bolide_base::SendChain;
use bolide_http::AppMessage;

use crate::cgi::{self, CgiPhase, HeadParser};
use crate::status_line::{StatusLine, StatusStep};
use crate::upload::UploadFraming;
use crate::upstream_client::{Started, UpstreamCall, UpstreamClient, UpstreamProtocol};
use crate::{BodySource, OriginError, OriginEvent, StreamOwner};

/// What the next bytes of the response are.
#[derive(Debug)]
enum Reading {
    /// The status line, if there is one.
    Line(StatusLine),
    /// The fields of the head.
    Fields(HeadParser),
    /// The body, or no body.
    Plain,
}

/// A connection to an application over uwsgi or SCGI.
pub type PerRequestClient = UpstreamClient<PerRequestProtocol>;

/// Requests and responses, one of each.
#[derive(Debug)]
pub struct PerRequestProtocol {
    framing: UploadFraming,
    reading: Reading,
    /// Whether the request has `HTTP_UPGRADE`.
    asks_upgrade: bool,
}

impl Default for PerRequestProtocol {
    fn default() -> Self {
        Self { framing: UploadFraming::Length(0), reading: Reading::Plain, asks_upgrade: false }
    }
}

impl PerRequestClient {
    /// Whether the upstream switched to another protocol, see [`crate::OriginConn::is_tunnel`].
    #[must_use]
    pub const fn is_tunnel(&self) -> bool {
        matches!(self.protocol.framing, UploadFraming::Tunnel)
    }
}

impl UpstreamProtocol for PerRequestProtocol {
    type Message = AppMessage;

    fn start(
        &mut self,
        call: &mut UpstreamCall,
        asked: &AppMessage,
        body_len: Option<u64>,
    ) -> Started {
        call.is_spoiled = true;
        self.reading = Reading::Line(StatusLine::new());
        self.asks_upgrade =
            asked.params.get(b"HTTP_UPGRADE").is_some_and(|value| !value.is_empty());
        let Some(len) = body_len else { return Started::Unencodable };
        self.framing = UploadFraming::Length(len);
        match (request::push(&mut call.outgoing.buffer, asked, len), len) {
            (None, _) => Started::Unencodable,
            (Some(()), 0) => Started::Whole,
            (Some(()), 1..) => Started::BodyFollows,
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
                Reading::Line(_) => self.take_line(call, &mut input, events)?,
                Reading::Fields(_) => self.take_fields(call, &mut input, events)?,
                Reading::Plain => {
                    let piece = std::mem::take(&mut input);
                    call.answer.body(piece, 0, events);
                    call.end_if_complete(b"", events);
                }
            }
        }
        Ok(())
    }

    /// Only the end of the connection tells the upstream.
    fn abort(&mut self, call: &mut UpstreamCall) {
        call.outgoing.stop();
    }

    fn handle_eof(
        &mut self,
        call: &mut UpstreamCall,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        let error = match call.answer.phase() {
            CgiPhase::None | CgiPhase::Over => return Ok(()),
            CgiPhase::Body if !call.answer.is_short() => {
                call.end(0, events);
                return Ok(());
            }
            CgiPhase::Body => OriginError::ClosedWithinBody,
            CgiPhase::Head => OriginError::ClosedBeforeHead,
        };
        call.outgoing.stop();
        Err(error)
    }

    fn held(&self) -> usize {
        match &self.reading {
            Reading::Line(line) => line.len(),
            Reading::Fields(parser) => parser.held(),
            Reading::Plain => 0,
        }
    }
}

impl PerRequestProtocol {
    /// Parses bytes of a status line, or of the first field.
    fn take_line(
        &mut self,
        call: &mut UpstreamCall,
        input: &mut &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        debug_assert!(call.answer.phase() == CgiPhase::Head, "a line begins a head");
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
                    line.check_class()?;
                    self.reading =
                        Reading::Fields(HeadParser::behind_line(line.head(), line.len()));
                    return Ok(());
                }
                StatusStep::NoLine => {
                    let bytes = std::mem::replace(line, StatusLine::new()).into_bytes();
                    self.reading = Reading::Fields(HeadParser::keeping_status());
                    return self.take_fields(call, &mut &*bytes, events);
                }
            }
        }
        Ok(())
    }

    fn take_fields(
        &mut self,
        call: &mut UpstreamCall,
        input: &mut &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        debug_assert!(call.answer.phase() == CgiPhase::Head, "fields are those of a head");
        let Reading::Fields(parser) = &mut self.reading else { return Ok(()) };
        let (used, head) = parser.receive(input, call.settings.head_max)?;
        *input = &input[used..];
        let Some(head) = head else { return Ok(()) };
        if cgi::is_early(head.status) {
            self.reading = Reading::Line(StatusLine::new());
            return call.answer.early_head(head, events);
        }
        self.reading = Reading::Plain;
        if head.status == 101 {
            call.begin_tunnel(self.asks_upgrade, head, events)?;
            self.framing = UploadFraming::Tunnel;
            return Ok(());
        }
        call.answer.head(head, events)?;
        call.end_if_complete(input, events);
        Ok(())
    }
}
