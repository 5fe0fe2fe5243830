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
use crate::cgi::{CgiAnswer, CgiPhase, HeadParser};
use crate::outgoing::{OutgoingBody, SendingState};
use crate::{BodySource, OriginConnSettings, OriginError, OriginEvent, Pull, StreamOwner};

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
#[derive(Debug)]
pub struct FcgiClient {
    settings: OriginConnSettings,
    outgoing: OutgoingBody,
    reading: Reading,
    parser: HeadParser,
    answer: CgiAnswer,
    /// Framing bytes that came with the head; they count against its limit, as in nginx.
    overhead: usize,
    stderr: Vec<u8>,
    /// The content of END_REQUEST.
    end: [u8; 8],
    end_len: usize,
    /// Whether stdout ended; END_REQUEST is still to come.
    is_stdout_closed: bool,
    /// Whether the connection cannot carry another request.
    is_spoiled: bool,
}

impl Default for FcgiClient {
    fn default() -> Self {
        Self::new()
    }
}

impl FcgiClient {
    /// A new connection.
    #[must_use]
    pub fn new() -> Self {
        Self {
            settings: OriginConnSettings::default(),
            outgoing: OutgoingBody::default(),
            reading: FRESH,
            parser: HeadParser::default(),
            answer: CgiAnswer::default(),
            overhead: 0,
            stderr: Vec::new(),
            end: [0; 8],
            end_len: 0,
            is_stdout_closed: false,
            is_spoiled: false,
        }
    }

    /// Begins a request, see [`crate::OriginConn::start`].
    pub fn start(&mut self, params: &Params, body_len: Option<u64>, settings: &OriginConnSettings) {
        assert!(self.is_idle(), "one request at a time");
        let mut outgoing = std::mem::take(&mut self.outgoing);
        outgoing.begin();
        let output = &mut outgoing.buffer;
        // PERF: growing step by step costs more than a tenth of a small request.
        output.reserve(params.size() + PAIR_ROOM * params.len() + RECORDS_ROOM);
        record::push_begin(output, settings.keep);
        record::push_params(output, params);
        outgoing.sending = if body_len == Some(0) {
            RecordHeader::empty(RecordKind::Stdin).push(output);
            SendingState::Sent
        } else {
            SendingState::Body
        };
        let answer = CgiAnswer::begun(settings.answers_head);
        *self = Self { settings: *settings, outgoing, answer, ..Self::new() };
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
            let space = room.saturating_sub((out.len() - start) as usize + HEADER_LEN);
            if space < CHUNK_MIN.min(room.saturating_sub(HEADER_LEN)) || space == 0 {
                return;
            }
            if !self.write_stdin(space.min(STDIN_MAX), out, user, body) {
                return;
            }
        }
    }

    /// Writes one record of at most `max` bytes. Returns whether it has content.
    fn write_stdin(
        &mut self,
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
            Pull::Pending => self.outgoing.is_pending = true,
            Pull::End => {
                out.push_slice(&RecordHeader::empty(RecordKind::Stdin).bytes());
                self.outgoing.sending = SendingState::Sent;
            }
            Pull::Broken => self.outgoing.sending = SendingState::Broken,
        }
        filled > 0
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

    /// Whether the request body failed.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.outgoing.is_broken()
    }

    /// Queues FCGI_ABORT_REQUEST if the response is incomplete.
    pub fn abort(&mut self) {
        if !matches!(self.answer.phase(), CgiPhase::Head | CgiPhase::Body) {
            return;
        }
        self.outgoing.sending = SendingState::Stopped;
        self.is_spoiled = true;
        RecordHeader::empty(RecordKind::AbortRequest).push(&mut self.outgoing.buffer);
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
        let received = self.receive_records(input, events);
        // An error does not invalidate the bytes before it.
        self.answer.flush(events);
        if received.is_err() {
            self.is_spoiled = true;
            self.outgoing.stop();
        }
        received.map(|()| input.len())
    }

    fn receive_records(
        &mut self,
        mut input: &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        while !input.is_empty() {
            match self.answer.phase() {
                CgiPhase::Head | CgiPhase::Body => {}
                CgiPhase::None => return Err(invalid("upstream sent data before a request", None)),
                CgiPhase::Over => {
                    self.is_spoiled = true;
                    return Ok(());
                }
            }
            match &mut self.reading {
                Reading::Header(bytes, have) => {
                    let size = input.len().min(HEADER_LEN - *have);
                    bytes[*have..*have + size].copy_from_slice(&input[..size]);
                    input = &input[size..];
                    *have += size;
                    if *have == HEADER_LEN {
                        let header = parse_header(*bytes)?;
                        self.begin_record(header)?;
                    }
                }
                Reading::Content(kind, left, _) => {
                    let (kind, size) = (*kind, input.len().min(*left));
                    *left -= size;
                    let (piece, rest) = input.split_at(size);
                    input = rest;
                    self.content(kind, piece, rest.len(), events)?;
                }
                Reading::Padding(_, left) => {
                    let size = input.len().min(*left);
                    *left -= size;
                    input = &input[size..];
                }
            }
            self.advance(events)?;
        }
        Ok(())
    }

    /// Proceeds to the padding and to the next record where a part is complete.
    fn advance(&mut self, events: &mut Vec<OriginEvent>) -> Result<(), OriginError> {
        if let Reading::Content(kind, 0, padding) = self.reading {
            self.reading = Reading::Padding(kind, padding);
            if kind == RecordKind::Stderr {
                self.tell_stderr(events);
            }
        }
        if let Reading::Padding(kind, 0) = self.reading {
            self.reading = FRESH;
            if kind == RecordKind::EndRequest && self.answer.phase() != CgiPhase::Over {
                self.end_request(events)?;
            }
        }
        Ok(())
    }

    /// Checks a record header.
    fn begin_record(&mut self, header: RecordHeader) -> Result<(), OriginError> {
        let (len, padding) = (usize::from(header.len), usize::from(header.padding));
        self.reading = Reading::Content(header.kind, len, padding);
        let is_head = self.answer.phase() == CgiPhase::Head;
        match header.kind {
            RecordKind::Stdout if is_head && len == 0 => return Err(OriginError::StdoutClosed),
            RecordKind::Stdout if is_head => self.overhead += HEADER_LEN,
            RecordKind::Stdout if len == 0 => {
                if self.answer.is_short() {
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
        kind: RecordKind,
        piece: &[u8],
        behind: usize,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        match kind {
            RecordKind::Stdout => self.stdout(piece, behind, events),
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
        mut piece: &[u8],
        behind: usize,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        while self.answer.phase() == CgiPhase::Head && !piece.is_empty() {
            let max = self.settings.head_max.saturating_sub(self.overhead);
            let (used, head) = self.parser.receive(piece, max)?;
            piece = &piece[used..];
            if let Some(head) = head {
                self.answer.head(head, events)?;
            }
        }
        if !piece.is_empty() {
            self.answer.body(piece, behind, events);
            if self.answer.phase() == CgiPhase::Over {
                self.is_spoiled = true;
                self.outgoing.stop();
            }
        }
        Ok(())
    }

    fn tell_stderr(&mut self, events: &mut Vec<OriginEvent>) {
        if !self.stderr.is_empty() {
            self.answer.flush(events);
            events.push(OriginEvent::Stderr(Bytes::from(std::mem::take(&mut self.stderr))));
        }
    }

    fn end_request(&mut self, events: &mut Vec<OriginEvent>) -> Result<(), OriginError> {
        if self.answer.is_short() {
            return Err(OriginError::RequestClosed);
        }
        let [a, b, c, d, ..] = self.end;
        self.end(u32::from_be_bytes([a, b, c, d]), events);
        Ok(())
    }

    fn end(&mut self, app_status: u32, events: &mut Vec<OriginEvent>) {
        self.answer.end(app_status, events);
        self.outgoing.stop();
    }

    /// Bytes of the response that are buffered until the rest arrives.
    pub(crate) const fn held(&self) -> usize {
        self.parser.held() + self.stderr.len()
    }

    /// Handles the end of input, see [`crate::OriginConn::handle_eof`].
    ///
    /// # Errors
    ///
    /// [`OriginError`] if the response is incomplete.
    pub fn handle_eof(&mut self, events: &mut Vec<OriginEvent>) -> Result<(), OriginError> {
        self.is_spoiled = true;
        self.tell_stderr(events);
        let is_ending = matches!(
            self.reading,
            Reading::Content(RecordKind::EndRequest, ..)
                | Reading::Padding(RecordKind::EndRequest, _)
        );
        match self.answer.phase() {
            CgiPhase::None | CgiPhase::Over => return Ok(()),
            CgiPhase::Body if is_ending => return self.end_request(events),
            CgiPhase::Body if self.is_stdout_closed || self.answer.is_complete() => {
                self.end(0, events);
                return Ok(());
            }
            CgiPhase::Head | CgiPhase::Body => {}
        }
        self.outgoing.stop();
        // nginx accepts the end of a connection as the end of a body without a length, if the
        // connection is not kept. A child that crashes would then leave a page that looks complete.
        Err(match self.answer.phase() {
            CgiPhase::Head => OriginError::ClosedBeforeHead,
            _ => OriginError::ClosedWithinBody,
        })
    }
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
