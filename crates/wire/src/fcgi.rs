//! The FastCGI 1.0 client: one request at a time over one connection.
//!
//! It encodes params and a pulled body as records, and parses a response from records that reads
//! may split anywhere. It refuses the same responses as nginx. It does not multiplex: every record
//! has the request id 1.
//!
//! ```text
//!  sending   Idle ──start──▶ Body ──end of body──▶ Sent   response ends ──▶ Stopped
//!  answer    None ─────────▶ Head ──▶ Body ──▶ Over ──(Sent, kept, nothing behind it)──▶ idle
//! ```
//!
//! INVARIANT: a connection is idle again only when its last request was sent completely. After an
//! early response the upstream still reads stdin records, and would take the next request for them.

pub mod record;
#[cfg(test)]
mod tests;

use bolide_base::SendChain;
use bolide_http::Params;
use bytes::Bytes;

use self::record::{CONTENT_MAX, HEADER_LEN, RecordHeader, RecordKind};
use crate::cgi::{CgiPhase, HeadParser};
use crate::outgoing::{OutgoingBody, SendingState};
use crate::upstream_client::{Started, UpstreamCall, UpstreamClient, UpstreamProtocol};
use crate::{BodySource, OriginError, OriginEvent, Pull, StreamOwner};

/// LIMIT: bytes of a stdin record, which an application reads at once.
const STDIN_MAX: usize = 32 * 1024;
/// A record shorter than this is not begun just because the room ends.
const CHUNK_MIN: usize = 256;
/// Bytes reserved for the lengths of a pair, and for the record headers around all pairs.
const PAIR_ROOM: usize = 2;
const RECORDS_ROOM: usize = 8 * HEADER_LEN;

/// The position of the input within a record.
#[derive(Clone, Copy, Debug)]
enum Reading {
    /// This many bytes of the header came.
    Header([u8; HEADER_LEN], usize),
    /// The content to come, then the padding to come.
    Content(RecordKind, usize, usize),
    /// The padding to come.
    Padding(RecordKind, usize),
}

const FRESH: Reading = Reading::Header([0; HEADER_LEN], 0);

/// A connection to a FastCGI application.
pub type FcgiClient = UpstreamClient<FcgiProtocol>;

/// Requests and responses as records.
#[derive(Debug)]
pub struct FcgiProtocol {
    reading: Reading,
    parser: HeadParser,
    /// Framing bytes that came with the head; they count against its limit, as in nginx.
    overhead: usize,
    stderr: Vec<u8>,
    /// The content of END_REQUEST.
    end: [u8; 8],
    end_len: usize,
    /// Whether stdout ended; END_REQUEST is still to come.
    is_stdout_closed: bool,
}

impl Default for FcgiProtocol {
    fn default() -> Self {
        Self {
            reading: FRESH,
            parser: HeadParser::default(),
            overhead: 0,
            stderr: Vec::new(),
            end: [0; 8],
            end_len: 0,
            is_stdout_closed: false,
        }
    }
}

impl UpstreamProtocol for FcgiProtocol {
    type Message = Params;

    fn start(
        &mut self,
        call: &mut UpstreamCall,
        params: &Params,
        body_len: Option<u64>,
    ) -> Started {
        *self = Self::default();
        let output = &mut call.outgoing.buffer;
        // PERF: growing step by step costs more than a tenth of a small request.
        output.reserve(params.size() + PAIR_ROOM * params.len() + RECORDS_ROOM);
        record::push_begin(output, call.settings.keep);
        record::push_params(output, params);
        if body_len == Some(0) {
            RecordHeader::empty(RecordKind::Stdin).push(output);
            Started::Whole
        } else {
            Started::BodyFollows
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
            let space = room.saturating_sub((out.len() - start) as usize + HEADER_LEN);
            if space < CHUNK_MIN.min(room.saturating_sub(HEADER_LEN)) || space == 0 {
                return;
            }
            if !write_stdin(&mut call.outgoing, space.min(STDIN_MAX), out, user, body) {
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
        while !input.is_empty() && call.expects_bytes()? {
            match &mut self.reading {
                Reading::Header(bytes, have) => {
                    let size = input.len().min(HEADER_LEN - *have);
                    bytes[*have..*have + size].copy_from_slice(&input[..size]);
                    input = &input[size..];
                    *have += size;
                    if *have == HEADER_LEN {
                        let header = parse_header(*bytes)?;
                        self.begin_record(call, header)?;
                    }
                }
                Reading::Content(kind, left, _) => {
                    let (kind, size) = (*kind, input.len().min(*left));
                    *left -= size;
                    let (piece, rest) = input.split_at(size);
                    input = rest;
                    self.content(call, kind, piece, rest.len(), events)?;
                }
                Reading::Padding(_, left) => {
                    let size = input.len().min(*left);
                    *left -= size;
                    input = &input[size..];
                }
            }
            self.advance(call, events)?;
        }
        Ok(())
    }

    /// Queues FCGI_ABORT_REQUEST.
    fn abort(&mut self, call: &mut UpstreamCall) {
        call.outgoing.sending = SendingState::Stopped;
        RecordHeader::empty(RecordKind::AbortRequest).push(&mut call.outgoing.buffer);
    }

    fn handle_eof(
        &mut self,
        call: &mut UpstreamCall,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        self.report_stderr(call, events);
        let is_ending = matches!(
            self.reading,
            Reading::Content(RecordKind::EndRequest, ..)
                | Reading::Padding(RecordKind::EndRequest, _)
        );
        match call.answer.phase() {
            CgiPhase::None | CgiPhase::Over => return Ok(()),
            CgiPhase::Body if is_ending => return self.end_request(call, events),
            CgiPhase::Body if self.is_stdout_closed || call.answer.is_complete() => {
                call.end(0, events);
                return Ok(());
            }
            CgiPhase::Head | CgiPhase::Body => {}
        }
        call.outgoing.stop();
        // nginx accepts the end of a connection as the end of a body without a length, if the
        // connection is not kept. A child that crashes would then leave a page that looks complete.
        Err(match call.answer.phase() {
            CgiPhase::Head => OriginError::ClosedBeforeHead,
            _ => OriginError::ClosedWithinBody,
        })
    }

    fn held(&self) -> usize {
        self.parser.held() + self.stderr.len()
    }
}

impl FcgiProtocol {
    /// Proceeds to the padding and to the next record where a part is complete.
    fn advance(
        &mut self,
        call: &mut UpstreamCall,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        if let Reading::Content(kind, 0, padding) = self.reading {
            self.reading = Reading::Padding(kind, padding);
            if kind == RecordKind::Stderr {
                self.report_stderr(call, events);
            }
        }
        if let Reading::Padding(kind, 0) = self.reading {
            self.reading = FRESH;
            if kind == RecordKind::EndRequest && call.answer.phase() != CgiPhase::Over {
                self.end_request(call, events)?;
            }
        }
        Ok(())
    }

    /// Checks a record header.
    fn begin_record(
        &mut self,
        call: &UpstreamCall,
        header: RecordHeader,
    ) -> Result<(), OriginError> {
        let (len, padding) = (usize::from(header.len), usize::from(header.padding));
        self.reading = Reading::Content(header.kind, len, padding);
        let is_head = call.answer.phase() == CgiPhase::Head;
        match header.kind {
            RecordKind::Stdout if is_head && len == 0 => return Err(OriginError::StdoutClosed),
            RecordKind::Stdout if is_head => self.overhead += HEADER_LEN,
            RecordKind::Stdout if len == 0 => {
                if call.answer.is_short() {
                    return Err(OriginError::StdoutClosed);
                }
                self.is_stdout_closed = true;
            }
            RecordKind::EndRequest if is_head => {
                return Err(invalid("upstream sent unexpected FastCGI record: ", Some(3)));
            }
            _ => {}
        }
        Ok(())
    }

    fn content(
        &mut self,
        call: &mut UpstreamCall,
        kind: RecordKind,
        piece: &[u8],
        behind: usize,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        match kind {
            RecordKind::Stdout => self.stdout(call, piece, behind, events),
            RecordKind::Stderr => {
                self.stderr.extend_from_slice(piece);
                Ok(())
            }
            _ => {
                let size = piece.len().min(self.end.len() - self.end_len);
                self.end[self.end_len..self.end_len + size].copy_from_slice(&piece[..size]);
                self.end_len += size;
                Ok(())
            }
        }
    }

    fn stdout(
        &mut self,
        call: &mut UpstreamCall,
        mut piece: &[u8],
        behind: usize,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        while call.answer.phase() == CgiPhase::Head && !piece.is_empty() {
            let max = call.settings.head_max.saturating_sub(self.overhead);
            let (used, head) = self.parser.receive(piece, max)?;
            piece = &piece[used..];
            if let Some(head) = head {
                call.answer.head(head, events)?;
            }
        }
        if !piece.is_empty() {
            call.body(piece, behind, events);
        }
        Ok(())
    }

    fn report_stderr(&mut self, call: &mut UpstreamCall, events: &mut Vec<OriginEvent>) {
        if !self.stderr.is_empty() {
            call.answer.flush(events);
            events.push(OriginEvent::Stderr(Bytes::from(std::mem::take(&mut self.stderr))));
        }
    }

    fn end_request(
        &self,
        call: &mut UpstreamCall,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        if call.answer.is_short() {
            return Err(OriginError::RequestClosed);
        }
        let [a, b, c, d, ..] = self.end;
        call.end(u32::from_be_bytes([a, b, c, d]), events);
        Ok(())
    }
}

/// Writes one record of at most `max` bytes. Returns whether it has content.
fn write_stdin(
    outgoing: &mut OutgoingBody,
    max: usize,
    out: &mut SendChain,
    user: StreamOwner,
    body: &mut impl BodySource,
) -> bool {
    let mark = out.mark();
    out.push_slice(&[0; HEADER_LEN]);
    let (filled, pull) = fill(user, max, out, body);
    if filled == 0 {
        out.rewind(mark);
    } else {
        out.patch(mark, &RecordHeader::new(RecordKind::Stdin, filled).bytes());
    }
    assert!(filled <= max, "a record has the length in its header");
    match pull {
        Pull::More => {}
        Pull::Pending => outgoing.is_pending = true,
        Pull::End => {
            out.push_slice(&RecordHeader::empty(RecordKind::Stdin).bytes());
            outgoing.sending = SendingState::Sent;
        }
        Pull::Broken => outgoing.sending = SendingState::Broken,
    }
    filled > 0
}

/// Pulls until `max` bytes are appended or the body has no more for now.
fn fill(
    user: StreamOwner,
    max: usize,
    out: &mut SendChain,
    body: &mut impl BodySource,
) -> (usize, Pull) {
    let start = out.len();
    loop {
        let before = out.len();
        let pull = body.pull(user, max - (before - start) as usize, out);
        let filled = (out.len() - start) as usize;
        let goes_on = pull == Pull::More && filled < max && out.len() > before;
        if !goes_on {
            return (filled, pull);
        }
    }
}

/// Parses a record header that an application may send.
fn parse_header(bytes: [u8; HEADER_LEN]) -> Result<RecordHeader, OriginError> {
    let [version, kind, id_high, id_low, ..] = bytes;
    if version != record::VERSION {
        let text = "upstream sent unsupported FastCGI protocol version: ";
        return Err(invalid(text, Some(version)));
    }
    if id_high != 0 {
        let text = "upstream sent unexpected FastCGI request id high byte: ";
        return Err(invalid(text, Some(id_high)));
    }
    if id_low != record::REQUEST_ID as u8 {
        let text = "upstream sent unexpected FastCGI request id low byte: ";
        return Err(invalid(text, Some(id_low)));
    }
    RecordHeader::parse(bytes)
        .filter(|header| {
            matches!(header.kind, RecordKind::Stdout | RecordKind::Stderr | RecordKind::EndRequest)
        })
        .ok_or_else(|| invalid("upstream sent invalid FastCGI record type: ", Some(kind)))
}

fn invalid(text: &str, number: Option<u8>) -> OriginError {
    let number = number.map(|number| number.to_string()).unwrap_or_default();
    OriginError::Invalid([text, &number].concat().into_bytes().into())
}

const _: () = assert!(STDIN_MAX <= CONTENT_MAX, "a record's length has two bytes");
