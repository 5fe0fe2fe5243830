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
use crate::cgi::{self, CgiLine, CgiPhase, StatusField};
use crate::outgoing::SendingState;
use crate::upstream_client::{Started, UpstreamCall, UpstreamClient, UpstreamProtocol};
use crate::{BodySource, OriginError, OriginEvent, Pull, StreamOwner};

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
pub type LsapiClient = UpstreamClient<LsapiProtocol>;

/// Requests and responses as packets.
#[derive(Debug)]
pub struct LsapiProtocol {
    /// Bytes of the body to pull.
    body_left: u64,
    reading: Reading,
    /// Content of a packet that is needed as a whole.
    content: Vec<u8>,
}

impl Default for LsapiProtocol {
    fn default() -> Self {
        Self { body_left: 0, reading: FRESH, content: Vec::new() }
    }
}

impl UpstreamProtocol for LsapiProtocol {
    type Message = Params;

    fn start(
        &mut self,
        call: &mut UpstreamCall,
        params: &Params,
        body_len: Option<u64>,
    ) -> Started {
        self.body_left = body_len.unwrap_or(0);
        let pushed = body_len.and_then(|len| request::push(&mut call.outgoing.buffer, params, len));
        match (pushed, self.body_left) {
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
        let start = out.len();
        call.outgoing.flush(out);
        while call.outgoing.pulls() {
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
            call.outgoing.sending = match pull {
                _ if self.body_left == 0 => SendingState::Sent,
                Pull::More | Pull::Pending => SendingState::Body,
                // A body that is shorter than its declared length cannot be completed.
                Pull::End | Pull::Broken => SendingState::Broken,
            };
            call.outgoing.is_pending = pull == Pull::Pending;
            if filled == 0 {
                return;
            }
        }
    }

    fn read(
        &mut self,
        call: &mut UpstreamCall,
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
                        self.begin_packet(call, bytes)?;
                    }
                }
                Reading::Content(header, left) => {
                    let (header, size) = (*header, input.len().min(*left));
                    *left -= size;
                    let (piece, rest) = input.split_at(size);
                    input = rest;
                    self.take_content(call, header, piece, rest.len(), events)?;
                }
            }
            if let Reading::Content(header, 0) = self.reading {
                self.reading = FRESH;
                self.end_packet(call, header, events)?;
            }
        }
        Ok(())
    }

    /// Queues an abort if the body was sent. The application would take bytes behind an incomplete
    /// body for the rest of it.
    fn abort(&mut self, call: &mut UpstreamCall) {
        if call.outgoing.sending == SendingState::Sent {
            PacketHeader::empty(PacketKind::AbortRequest).push(&mut call.outgoing.buffer);
        }
        call.outgoing.sending = SendingState::Stopped;
    }

    fn handle_eof(
        &mut self,
        call: &mut UpstreamCall,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        if matches!(
            self.reading,
            Reading::Content(PacketHeader { kind: PacketKind::StderrStream, .. }, _)
        ) {
            self.report_stderr(call, events);
        }
        if call.answer.phase() == CgiPhase::Body && call.answer.is_complete() {
            call.end(0, events);
            return Ok(());
        }
        let error = match call.answer.phase() {
            CgiPhase::None | CgiPhase::Over => return Ok(()),
            CgiPhase::Head => OriginError::ClosedBeforeHead,
            CgiPhase::Body => OriginError::ClosedWithinBody,
        };
        call.outgoing.stop();
        Err(error)
    }

    fn held(&self) -> usize {
        self.content.len()
    }
}

impl LsapiProtocol {
    /// Checks a packet header.
    fn begin_packet(
        &mut self,
        call: &mut UpstreamCall,
        bytes: [u8; HEADER_LEN],
    ) -> Result<(), OriginError> {
        let header = PacketHeader::parse(bytes)
            .ok_or_else(|| invalid("upstream sent invalid LSAPI packet"))?;
        let phase = call.answer.phase();
        match (header.kind, phase) {
            (PacketKind::RespHeader, CgiPhase::Head) if header.len > call.settings.head_max => {
                return Err(OriginError::HeadTooBig);
            }
            (PacketKind::RespStream, CgiPhase::Body)
            | (PacketKind::RespHeader, CgiPhase::Head)
            | (PacketKind::RespEnd, CgiPhase::Head | CgiPhase::Body)
            | (PacketKind::StderrStream | PacketKind::ReqReceived | PacketKind::ConnClose, _) => {}
            (PacketKind::RespHeader, CgiPhase::Body) | (_, CgiPhase::Over) => {
                call.is_spoiled = true;
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
        call: &mut UpstreamCall,
        header: PacketHeader,
        piece: &[u8],
        behind: usize,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        match (header.kind, call.answer.phase()) {
            (PacketKind::RespStream, CgiPhase::Body) => call.body(piece, behind, events),
            (PacketKind::RespHeader, CgiPhase::Head) => self.content.extend_from_slice(piece),
            (PacketKind::StderrStream, _) => {
                let mut piece = piece;
                while self.content.len() + piece.len() > STDERR_MAX {
                    let (now, later) = piece.split_at(STDERR_MAX - self.content.len());
                    self.content.extend_from_slice(now);
                    self.report_stderr(call, events);
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
        call: &mut UpstreamCall,
        header: PacketHeader,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        match (header.kind, call.answer.phase()) {
            (PacketKind::RespHeader, CgiPhase::Head) => {
                let content = std::mem::take(&mut self.content);
                call.answer.head(Box::new(parse_head(&content, header.order)?), events)?;
            }
            (PacketKind::StderrStream, _) => self.report_stderr(call, events),
            (PacketKind::RespEnd, CgiPhase::Head) => {
                return Err(invalid("upstream ended its answer before its header"));
            }
            (PacketKind::RespEnd, CgiPhase::Body) => {
                if call.answer.is_short() {
                    return Err(invalid("upstream prematurely ended its answer"));
                }
                call.end(0, events);
            }
            (PacketKind::ConnClose, _) => call.is_spoiled = true,
            _ => {}
        }
        Ok(())
    }

    fn report_stderr(&mut self, call: &mut UpstreamCall, events: &mut Vec<OriginEvent>) {
        let content = std::mem::take(&mut self.content);
        // A response reports nothing after its end.
        let is_over = call.answer.phase() == CgiPhase::Over;
        if !is_over && !content.is_empty() && !content.starts_with(PID_MARK) {
            call.answer.flush(events);
            events.push(OriginEvent::Stderr(Bytes::from(content)));
        }
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
    let mut has_field = false;
    for length in lengths.as_chunks::<2>().0 {
        let (mut line, rest) = text.split_at_checked(order.short(*length)).ok_or_else(cut)?;
        text = rest;
        while let [before @ .., 0 | b'\n'] = line {
            line = before;
        }
        if line.is_empty() {
            continue;
        }
        match cgi::parse_line(line)? {
            // As in LiteSpeed, it overrules the status of the packet: `header("Status: 503")`.
            CgiLine::Field(name, value) if name.eq_ignore_ascii_case(b"status") => {
                if !std::mem::replace(&mut has_field, true) {
                    cgi::take_status(&mut head, value, StatusField::Taken)?;
                }
            }
            CgiLine::Field(name, value) => head.fields.push_text(name, value),
            CgiLine::Ignored | CgiLine::End => {}
        }
    }
    Ok(head)
}

fn invalid(text: &str) -> OriginError {
    OriginError::Invalid(text.as_bytes().into())
}
