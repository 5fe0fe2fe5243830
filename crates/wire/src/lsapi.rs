//! The client of LSAPI, LiteSpeed's server API: one request at a time.
//!
//! A request is one packet and a raw body; a response is packets, which reads may split anywhere.
//! Requests that the protocol cannot encode are refused.
//!
//! ```text
//!  sending   Idle ──start──▶ Body ──length reached──▶ Sent   response ends ──▶ Stopped
//!  answer    None ──RESP_HEADER─▶ Head ▶ Body ──RESP_END──▶ Over ──(Sent, kept)──▶ idle
//! ```
//!
//! INVARIANT: the body has exactly its declared length, or the connection sends nothing else. The
//! application would take the next request's bytes for the missing ones.

pub mod packet;
mod request;
#[cfg(test)]
mod tests;

use bolide_base::SendChain;
use bolide_http::{OriginHead, Params};
use bytes::Bytes;

use self::packet::{ByteOrder, HEADER_LEN, PacketHeader, PacketKind};
use crate::cgi::{self, CgiAnswer, CgiPhase};
use crate::outgoing::{OutgoingBody, SendingState};
use crate::{BodySource, OriginConnSettings, OriginError, OriginEvent, Pull, StreamOwner};

/// LIMIT: bytes of the body that are pulled at once.
const PULL_MAX: usize = 64 * 1024;
/// A piece shorter than this is not pulled just because the room ends.
const CHUNK_MIN: usize = 256;
/// LIMIT: bytes of the error stream that one event has.
const STDERR_MAX: usize = 64 * 1024;
/// The first message of a child to a server that counts its children. It is not for the error log.
const PID_MARK: &[u8] = b"\0PID";

/// The position of the input within a packet.
#[derive(Clone, Copy, Debug)]
enum Reading {
    /// This many bytes of the header came.
    Header([u8; HEADER_LEN], usize),
    /// The content to come.
    Content(PacketHeader, usize),
}

const FRESH: Reading = Reading::Header([0; HEADER_LEN], 0);

/// A connection to an LSAPI application.
#[derive(Debug)]
pub struct LsapiClient {
    settings: OriginConnSettings,
    outgoing: OutgoingBody,
    /// Bytes of the body to pull.
    body_left: u64,
    reading: Reading,
    answer: CgiAnswer,
    /// Content of a packet that is needed as a whole.
    content: Vec<u8>,
    /// Whether the application closes the connection, or violated the protocol.
    is_spoiled: bool,
}

impl Default for LsapiClient {
    fn default() -> Self {
        Self::new()
    }
}

impl LsapiClient {
    /// A new connection.
    #[must_use]
    pub fn new() -> Self {
        Self {
            settings: OriginConnSettings::default(),
            outgoing: OutgoingBody::default(),
            body_left: 0,
            reading: FRESH,
            answer: CgiAnswer::default(),
            content: Vec::new(),
            is_spoiled: false,
        }
    }

    /// Begins a request, see [`crate::OriginConn::start`].
    pub fn start(&mut self, params: &Params, body_len: Option<u64>, settings: &OriginConnSettings) {
        assert!(self.is_idle(), "one request at a time");
        self.outgoing.begin();
        self.settings = *settings;
        self.answer = CgiAnswer::begun(settings.answers_head);
        self.body_left = body_len.unwrap_or(0);
        let pushed = body_len.and_then(|len| request::push(&mut self.outgoing.buffer, params, len));
        self.outgoing.sending = match (pushed, self.body_left) {
            (None, _) => SendingState::Broken,
            (Some(()), 0) => SendingState::Sent,
            (Some(()), 1..) => SendingState::Body,
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
            let space = room.saturating_sub((out.len() - start) as usize);
            if space < CHUNK_MIN.min(room) || space == 0 {
                return;
            }
            let left = usize::try_from(self.body_left).unwrap_or(usize::MAX);
            let max = space.min(PULL_MAX).min(left);
            let before = out.len();
            let pull = body.pull(user, max, out);
            let filled = out.len() - before;
            assert!(filled <= max as u64, "the body has exactly its declared length");
            self.body_left = self.body_left.saturating_sub(filled);
            self.outgoing.sending = match pull {
                _ if self.body_left == 0 => SendingState::Sent,
                Pull::More | Pull::Pending => SendingState::Body,
                // A body that is shorter than its declared length cannot be completed.
                Pull::End | Pull::Broken => SendingState::Broken,
            };
            self.outgoing.is_pending = pull == Pull::Pending;
            if filled == 0 {
                return;
            }
        }
    }

    /// A body that was `Pending` has bytes again, or ended.
    pub const fn body_ready(&mut self) {
        self.outgoing.is_pending = false;
    }

    /// Whether something can be sent now.
    #[must_use]
    pub const fn has_output(&self) -> bool {
        self.outgoing.has_output()
    }

    /// Whether the whole request was handed over.
    #[must_use]
    pub const fn is_request_sent(&self) -> bool {
        self.outgoing.is_sent()
    }

    /// Whether the request cannot be completed.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.outgoing.is_broken()
    }

    /// Queues an abort if the response is incomplete and the body was sent. The application would
    /// take bytes behind an incomplete body for the rest of it.
    pub fn abort(&mut self) {
        if !matches!(self.answer.phase(), CgiPhase::Head | CgiPhase::Body) {
            return;
        }
        self.is_spoiled = true;
        if self.outgoing.sending == SendingState::Sent {
            PacketHeader::empty(PacketKind::AbortRequest).push(&mut self.outgoing.buffer);
        }
        self.outgoing.sending = SendingState::Stopped;
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
        let received = self.receive_packets(input, events);
        // An error does not invalidate the bytes before it.
        self.answer.flush(events);
        if received.is_err() {
            self.is_spoiled = true;
            self.outgoing.stop();
        }
        received.map(|()| input.len())
    }

    fn receive_packets(
        &mut self,
        mut input: &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        while !input.is_empty() {
            match &mut self.reading {
                Reading::Header(bytes, have) => {
                    let size = input.len().min(HEADER_LEN - *have);
                    bytes[*have..*have + size].copy_from_slice(&input[..size]);
                    input = &input[size..];
                    *have += size;
                    if *have == HEADER_LEN {
                        let bytes = *bytes;
                        self.begin_packet(bytes)?;
                    }
                }
                Reading::Content(header, left) => {
                    let (header, size) = (*header, input.len().min(*left));
                    *left -= size;
                    let (piece, rest) = input.split_at(size);
                    input = rest;
                    self.take_content(header, piece, rest.len(), events)?;
                }
            }
            if let Reading::Content(header, 0) = self.reading {
                self.reading = FRESH;
                self.end_packet(header, events)?;
            }
        }
        Ok(())
    }

    /// Checks a packet header.
    fn begin_packet(&mut self, bytes: [u8; HEADER_LEN]) -> Result<(), OriginError> {
        let header = PacketHeader::parse(bytes)
            .ok_or_else(|| invalid("upstream sent invalid LSAPI packet"))?;
        let phase = self.answer.phase();
        match (header.kind, phase) {
            (PacketKind::RespHeader, CgiPhase::Head) if header.len > self.settings.head_max => {
                return Err(OriginError::HeadTooBig);
            }
            (PacketKind::RespStream, CgiPhase::Body)
            | (PacketKind::RespHeader, CgiPhase::Head)
            | (PacketKind::RespEnd, CgiPhase::Head | CgiPhase::Body)
            | (PacketKind::StderrStream | PacketKind::ReqReceived | PacketKind::ConnClose, _) => {}
            (PacketKind::RespHeader, CgiPhase::Body) | (_, CgiPhase::Over) => {
                self.is_spoiled = true;
            }
            (PacketKind::InternalError, _) => {
                return Err(invalid("upstream sent LSAPI internal error"));
            }
            _ => return Err(invalid("upstream sent unexpected LSAPI packet")),
        }
        self.reading = Reading::Content(header, header.len);
        Ok(())
    }

    fn take_content(
        &mut self,
        header: PacketHeader,
        piece: &[u8],
        behind: usize,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        match (header.kind, self.answer.phase()) {
            (PacketKind::RespStream, CgiPhase::Body) => {
                self.answer.body(piece, behind, events);
                if self.answer.phase() == CgiPhase::Over {
                    self.is_spoiled = true;
                    self.outgoing.stop();
                }
            }
            (PacketKind::RespHeader, CgiPhase::Head) => self.content.extend_from_slice(piece),
            (PacketKind::StderrStream, _) => {
                let mut piece = piece;
                while self.content.len() + piece.len() > STDERR_MAX {
                    let (now, later) = piece.split_at(STDERR_MAX - self.content.len());
                    self.content.extend_from_slice(now);
                    self.tell_stderr(events);
                    piece = later;
                }
                self.content.extend_from_slice(piece);
            }
            _ => {}
        }
        Ok(())
    }

    fn end_packet(
        &mut self,
        header: PacketHeader,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        match (header.kind, self.answer.phase()) {
            (PacketKind::RespHeader, CgiPhase::Head) => {
                let content = std::mem::take(&mut self.content);
                self.answer.head(Box::new(parse_head(&content, header.order)?), events)?;
            }
            (PacketKind::StderrStream, _) => self.tell_stderr(events),
            (PacketKind::RespEnd, CgiPhase::Head) => {
                return Err(invalid("upstream ended its answer before its header"));
            }
            (PacketKind::RespEnd, CgiPhase::Body) => {
                if self.answer.is_short() {
                    return Err(invalid("upstream prematurely ended its answer"));
                }
                self.answer.end(0, events);
                self.outgoing.stop();
            }
            (PacketKind::ConnClose, _) => self.is_spoiled = true,
            _ => {}
        }
        Ok(())
    }

    fn tell_stderr(&mut self, events: &mut Vec<OriginEvent>) {
        let content = std::mem::take(&mut self.content);
        // A response reports nothing after its end.
        let is_over = self.answer.phase() == CgiPhase::Over;
        if !is_over && !content.is_empty() && !content.starts_with(PID_MARK) {
            self.answer.flush(events);
            events.push(OriginEvent::Stderr(Bytes::from(content)));
        }
    }

    /// Bytes of the response that are buffered until the rest arrives.
    pub(crate) const fn held(&self) -> usize {
        self.content.len()
    }

    /// Handles the end of input, see [`crate::OriginConn::handle_eof`].
    ///
    /// # Errors
    ///
    /// [`OriginError`] if the response is incomplete.
    pub fn handle_eof(&mut self, events: &mut Vec<OriginEvent>) -> Result<(), OriginError> {
        self.is_spoiled = true;
        if matches!(
            self.reading,
            Reading::Content(PacketHeader { kind: PacketKind::StderrStream, .. }, _)
        ) {
            self.tell_stderr(events);
        }
        if self.answer.phase() == CgiPhase::Body && self.answer.is_complete() {
            self.answer.end(0, events);
            self.outgoing.stop();
            return Ok(());
        }
        let error = match self.answer.phase() {
            CgiPhase::None | CgiPhase::Over => return Ok(()),
            CgiPhase::Head => OriginError::ClosedBeforeHead,
            CgiPhase::Body => OriginError::ClosedWithinBody,
        };
        self.outgoing.stop();
        Err(error)
    }
}

/// Parses the content of RESP_HEADER: a count, a status, the lengths of lines, the lines.
fn parse_head(content: &[u8], order: ByteOrder) -> Result<OriginHead, OriginError> {
    let cut = || OriginError::InvalidHead(b"upstream sent cut LSAPI header".as_slice().into());
    let (count, rest) = content.split_first_chunk::<4>().ok_or_else(cut)?;
    let (status, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
    let count = usize::try_from(order.int(*count)).map_err(|_| cut())?;
    let lengths_size = count.checked_mul(2).ok_or_else(cut)?;
    let (lengths, mut text) = rest.split_at_checked(lengths_size).ok_or_else(cut)?;
    let status = u16::try_from(order.int(*status)).ok();
    // RFC 9110 §15.2.2: the request has no `Upgrade`, so 101 is invalid.
    let status = status.filter(|status| matches!(status, 0 | 100 | 102..1000));
    let status = status.ok_or_else(|| {
        OriginError::InvalidHead(b"upstream sent invalid status".as_slice().into())
    })?;
    let mut head = OriginHead {
        status,
        wire_size: u32::try_from(content.len() + HEADER_LEN).unwrap_or(u32::MAX),
        ..OriginHead::default()
    };
    for length in lengths.as_chunks::<2>().0 {
        let (mut line, rest) = text.split_at_checked(order.short(*length)).ok_or_else(cut)?;
        text = rest;
        while let [before @ .., 0 | b'\n'] = line {
            line = before;
        }
        if !line.is_empty() {
            cgi::push_line(&mut head, line)?;
        }
    }
    Ok(head)
}

fn invalid(text: &str) -> OriginError {
    OriginError::Invalid(text.as_bytes().into())
}
