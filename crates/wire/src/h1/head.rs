//! Parses a request head line by line: limits, fields, and the rules on the whole head.
//!
//! The parser consumes complete lines and scans no byte of an incomplete line twice. It refuses
//! every head that two recipients could parse differently.
//!
//! ```text
//!  blank lines ──▶ request line ──▶ field lines ──▶ empty line ──▶ Complete
//!       │               │ (0.9: Complete)  │             │
//!       └───────────────┴────── Refused ◀──┴─────────────┘
//! ```
//!
//! INVARIANT: whether and why a head is refused depends on its bytes only, never on how reads split
//! them. So an incomplete line fails a check only if the complete line fails the same check first.

use bolide_http::{HttpVersion, Method, Name, RequestBody, RequestHead};
use memchr::memchr;

use super::H1Settings;
use super::grammar::{
    FOREIGN, PLAIN, UNDERSCORE, has_line_control, list_has, parse_decimal, scan_name, trim,
};
use super::line::{self, METHOD_SIZE_MAX, TargetAuthority};
use crate::{HeadPool, WireRefusal, single_fields};

const fn bad(reason: &'static str) -> WireRefusal {
    WireRefusal { status: 400, reason }
}

const INVALID_METHOD: WireRefusal = bad("client sent invalid method");
const BLANK_FLOOD: WireRefusal = bad("client sent invalid request");
const INVALID_LINE: WireRefusal = bad("client sent invalid header line");
const DUPLICATE_LINE: WireRefusal = bad(single_fields::REPEATED);
const DUPLICATE_HOST: WireRefusal = bad("client sent duplicate host header");
const INVALID_HOST: WireRefusal = bad("client sent invalid host header");
const NO_HOST: WireRefusal = bad("client sent HTTP/1.1 request without \"Host\" header");
const INVALID_LENGTH: WireRefusal = bad("client sent invalid \"Content-Length\" header");
const CODING_IN_10: WireRefusal =
    bad("client sent HTTP/1.0 request with \"Transfer-Encoding\" header");
const LENGTH_AND_CODING: WireRefusal =
    bad("client sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time");
const UNKNOWN_CODING: WireRefusal =
    WireRefusal { status: 501, reason: "client sent unknown \"Transfer-Encoding\"" };
const CONNECT_METHOD: WireRefusal =
    WireRefusal { status: 405, reason: "client sent CONNECT method" };
const TRACE_METHOD: WireRefusal = WireRefusal { status: 405, reason: "client sent TRACE method" };
const TOO_LONG_TARGET: WireRefusal =
    WireRefusal { status: 414, reason: "client sent too long URI" };
const TOO_LONG_LINE: WireRefusal =
    WireRefusal { status: 494, reason: "client sent too long header line" };
const TOO_LARGE: WireRefusal = WireRefusal { status: 494, reason: "client sent too large request" };
const TOO_MANY_LINES: WireRefusal =
    WireRefusal { status: 494, reason: "client sent too many header lines" };

/// The properties seen in a head, beside its [`single_fields`].
mod marks {
    use crate::single_fields::FREE;

    pub(super) const ABSOLUTE: u16 = 1 << FREE;
    pub(super) const UNKNOWN_CODING: u16 = 1 << (FREE + 1);
    pub(super) const CLOSE: u16 = 1 << (FREE + 2);
    pub(super) const KEEP_ALIVE: u16 = 1 << (FREE + 3);
}

/// What happens to the connection after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Another request may follow.
    KeepAlive,
    /// The connection closes.
    Close,
}

/// The state of a head.
#[derive(Debug)]
pub(super) enum HeadStep {
    /// The head is incomplete.
    Partial,
    /// The head is complete.
    Complete(Box<RequestHead>, After),
    /// The head is invalid.
    Refused(Box<RequestHead>, WireRefusal),
}

/// The parser of one head.
#[derive(Debug, Default)]
pub(super) struct H1HeadParser {
    head: Option<Box<RequestHead>>,
    /// Bytes of the incomplete line that were searched for its end.
    scanned: u32,
    /// Bytes of complete lines.
    size: u32,
    lines: u16,
    marks: u16,
    /// Free bytes of the buffer of the last line, and the large buffers in use.
    room: u32,
    buffers: u16,
    /// Whether `take_host` has a host to return.
    names_host: bool,
}

impl H1HeadParser {
    /// Whether no byte of a head came yet.
    pub(super) const fn is_empty(&self) -> bool {
        self.head.is_none() && self.scanned == 0
    }

    /// Whether nothing was consumed since the last head, not even blank lines.
    pub(super) const fn is_fresh(&self) -> bool {
        self.is_empty() && self.size == 0
    }

    /// Bytes of the incomplete line.
    pub(super) const fn scanned(&self) -> u32 {
        self.scanned
    }

    /// Returns the incomplete head, if one has begun, and resets the parser. As in nginx, blank
    /// lines begin one, and what came of its first line is that line; it is in `rest`.
    pub(super) fn give_up(
        &mut self,
        rest: &[u8],
        heads: &mut HeadPool,
    ) -> Option<Box<RequestHead>> {
        if self.is_fresh() {
            return None;
        }
        let has_line = self.head.is_some();
        let mut head = self.reset(heads);
        if !has_line {
            let line = rest.split(|byte| matches!(byte, b'\r' | b'\n')).next();
            head.line.extend_from_slice(line.unwrap_or_default());
        }
        Some(head)
    }

    /// The requested host, once, before more lines are parsed.
    pub(super) fn take_host(&mut self) -> Option<&[u8]> {
        let head = self.head.as_ref()?;
        std::mem::take(&mut self.names_host).then_some(&head.authority)
    }

    /// Bytes that the next line may have without a large buffer.
    const fn room_for_next(&self, settings: &H1Settings) -> usize {
        if self.head.is_some() { self.room as usize } else { settings.header_buffer_size }
    }

    /// Consumes complete lines of `input`. Returns the number of consumed bytes and the state of
    /// the head.
    pub(super) fn receive(
        &mut self,
        settings: &H1Settings,
        input: &[u8],
        heads: &mut HeadPool,
    ) -> (usize, HeadStep) {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let scanned = (self.scanned as usize).min(rest.len());
            let Some(found) = memchr(b'\n', &rest[scanned..]) else {
                let checked = self.check_partial(settings, rest, scanned);
                self.scanned = u32::try_from(rest.len()).unwrap_or(u32::MAX);
                return match checked {
                    Ok(()) => (used, HeadStep::Partial),
                    Err(refusal) => (used, self.refuse(rest, refusal, heads)),
                };
            };
            self.scanned = 0;
            let size = scanned + found + 1;
            used += size;
            match self.take_line(settings, &rest[..size], heads) {
                Ok(None) if self.names_host => return (used, HeadStep::Partial),
                Ok(None) => {}
                Ok(Some(after)) => {
                    let head = self.reset(heads);
                    return (used, HeadStep::Complete(head, after));
                }
                Err(refusal) => return (used, self.refuse(&rest[..size], refusal, heads)),
            }
        }
    }

    /// Returns the head and resets the parser.
    fn reset(&mut self, heads: &mut HeadPool) -> Box<RequestHead> {
        let mut head = self.head.take().unwrap_or_else(|| heads.take());
        head.wire_size = self.size;
        *self = Self::default();
        head
    }

    fn refuse(&mut self, line: &[u8], refusal: WireRefusal, heads: &mut HeadPool) -> HeadStep {
        let had_line = self.head.is_some();
        let mut head = self.reset(heads);
        if !had_line {
            head.line.extend_from_slice(strip_end(line));
            head.version = HttpVersion::Http10;
        }
        HeadStep::Refused(head, refusal)
    }

    /// Accounts for a line of `len` bytes, its end included: behind the previous line, or in a
    /// large buffer.
    #[inline]
    const fn place(&mut self, settings: &H1Settings, len: usize) -> Result<(), WireRefusal> {
        if len <= self.room as usize {
            self.room -= len as u32;
            return Ok(());
        }
        self.place_apart(settings, len)
    }

    const fn place_apart(&mut self, settings: &H1Settings, len: usize) -> Result<(), WireRefusal> {
        if let Some(refusal) = self.beyond(settings, len) {
            return Err(refusal);
        }
        self.buffers += 1;
        debug_assert!(
            self.buffers <= settings.large_buffers && len <= settings.large_buffer_size,
            "a head fits `large_client_header_buffers`"
        );
        let room = settings.large_buffer_size - len;
        self.room = if room > u32::MAX as usize { u32::MAX } else { room as u32 };
        Ok(())
    }

    /// The refusal of a line of `len` bytes that gets no large buffer. The checks that do not
    /// depend on the end of the line come first.
    const fn beyond(&self, settings: &H1Settings, len: usize) -> Option<WireRefusal> {
        let is_full = self.buffers >= settings.large_buffers;
        if !is_full && len <= settings.large_buffer_size {
            return None;
        }
        Some(match (self.head.is_none(), is_full) {
            (true, _) => TOO_LONG_TARGET,
            (false, true) => TOO_LARGE,
            (false, false) => TOO_LONG_LINE,
        })
    }

    /// Refuses a line that cannot become valid; `scanned` bytes of it were checked before.
    fn check_partial(
        &self,
        settings: &H1Settings,
        line: &[u8],
        scanned: usize,
    ) -> Result<(), WireRefusal> {
        if self.head.is_none() && scanned <= METHOD_SIZE_MAX && line != b"\r" {
            line::method_end(&line[..line.len().min(METHOD_SIZE_MAX + 1)])?;
        }
        // Its end is still to come.
        let len = line.len() + 1;
        if len <= self.room_for_next(settings) {
            return Ok(());
        }
        self.beyond(settings, len).map_or(Ok(()), Err)
    }

    /// Parses one line with its end. Returns what happens after the response if the line ended the
    /// head.
    fn take_line(
        &mut self,
        settings: &H1Settings,
        line: &[u8],
        heads: &mut HeadPool,
    ) -> Result<Option<After>, WireRefusal> {
        let text = strip_end(line);
        if self.head.is_none() {
            return self.take_first_line(settings, line, heads);
        }
        let fits = self.place(settings, line.len());
        let Some(mut head) = self.head.take() else { return Ok(None) };
        self.size += line.len() as u32;
        let result = match fits {
            Ok(()) if text.is_empty() => self.finish(&mut head).map(Some),
            Ok(()) => self.take_field(settings, text, &mut head).map(|()| None),
            Err(refusal) => Err(refusal),
        };
        self.head = Some(head);
        result
    }

    fn take_first_line(
        &mut self,
        settings: &H1Settings,
        line: &[u8],
        heads: &mut HeadPool,
    ) -> Result<Option<After>, WireRefusal> {
        let text = strip_end(line);
        if text.is_empty() {
            // RFC 9112 §2.2: empty lines before a request line are ignored, up to a limit.
            self.size += line.len() as u32;
            let bounded = self.size as usize <= settings.head_size_max();
            return if bounded { Ok(None) } else { Err(BLANK_FLOOD) };
        }
        let method_end = line::method_end(&text[..text.len().min(METHOD_SIZE_MAX + 1)])?;
        self.room = u32::try_from(settings.header_buffer_size).unwrap_or(u32::MAX);
        self.place(settings, line.len())?;
        let mut head = heads.take();
        self.size = line.len() as u32;
        head.line.extend_from_slice(text);
        head.version = HttpVersion::Http10;
        let parsed = match method_end {
            Some(end) => line::parse(text, end, &mut head),
            None => Err(INVALID_METHOD),
        };
        let version = head.version;
        self.head = Some(head);
        if parsed? == TargetAuthority::Target {
            self.marks |= marks::ABSOLUTE;
            self.names_host = settings.asks_host;
        }
        Ok((version == HttpVersion::Http09).then_some(After::Close))
    }

    #[inline]
    fn take_field(
        &mut self,
        settings: &H1Settings,
        line: &[u8],
        head: &mut RequestHead,
    ) -> Result<(), WireRefusal> {
        // RFC 9112 §5.1, §5.2: no white space before the colon, no line folding.
        let Some((end, classes)) = scan_name(line) else { return Err(INVALID_LINE) };
        let (text, value) = (&line[..end], &line[end + 1..]);
        if has_line_control(value) || end > usize::from(u16::MAX) {
            return Err(INVALID_LINE);
        }
        if classes != PLAIN {
            // RFC 9110 §5.1: a name must be a token, whatever `ignore_invalid_headers` allows.
            if classes & FOREIGN != 0 {
                return Err(INVALID_LINE);
            }
            if !accepts_name(settings, classes) {
                return Ok(());
            }
        }
        self.lines = self.lines.saturating_add(1);
        if u32::from(self.lines) > settings.fields_max {
            return Err(TOO_MANY_LINES);
        }
        let (name, value) = (Name::parse(text), trim(value));
        self.check_unique(name)?;
        match name {
            Name::Host => {
                if let Err(refusal) = self.read_host(value, head) {
                    // What is logged of the request may tell what it was.
                    head.fields.push_parsed(name, text, value);
                    return Err(refusal);
                }
                self.names_host = settings.asks_host && self.marks & marks::ABSOLUTE == 0;
            }
            Name::ContentLength => {
                let length = parse_decimal(value).ok_or(INVALID_LENGTH)?;
                head.body =
                    if length == 0 { RequestBody::None } else { RequestBody::Length(length) };
            }
            Name::TransferEncoding => {
                if !value.eq_ignore_ascii_case(b"chunked") {
                    self.marks |= marks::UNKNOWN_CODING;
                }
                return Ok(());
            }
            Name::Connection => self.read_connection(value),
            Name::Expect => {
                head.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
            }
            _ => {}
        }
        head.fields.push_parsed(name, text, value);
        Ok(())
    }

    #[inline]
    fn check_unique(&mut self, name: Name) -> Result<(), WireRefusal> {
        let mark = single_fields::mark(name);
        if self.marks & mark != 0 {
            return Err(if name == Name::Host { DUPLICATE_HOST } else { DUPLICATE_LINE });
        }
        self.marks |= mark;
        Ok(())
    }

    fn read_host(&self, value: &[u8], head: &mut RequestHead) -> Result<(), WireRefusal> {
        if !bolide_http::host::is_valid(value) {
            return Err(INVALID_HOST);
        }
        if self.marks & marks::ABSOLUTE == 0 {
            head.authority.extend_from_slice(value);
        }
        Ok(())
    }

    fn read_connection(&mut self, value: &[u8]) {
        if list_has(value, b"close") {
            self.marks |= marks::CLOSE;
        }
        if list_has(value, b"keep-alive") {
            self.marks |= marks::KEEP_ALIVE;
        }
    }

    /// Checks the rules on the whole head.
    fn finish(&self, head: &mut RequestHead) -> Result<After, WireRefusal> {
        let has = |mark| self.marks & mark != 0;
        let modern = head.version == HttpVersion::Http11;
        if modern && !has(single_fields::HOST) {
            return Err(NO_HOST);
        }
        if has(single_fields::CODING) {
            // RFC 9112 §6.1, §6.3: each of these allows request smuggling.
            if !modern {
                return Err(CODING_IN_10);
            }
            if has(marks::UNKNOWN_CODING) {
                return Err(UNKNOWN_CODING);
            }
            if has(single_fields::LENGTH) {
                return Err(LENGTH_AND_CODING);
            }
            head.body = RequestBody::Unknown;
        }
        match head.method {
            Method::Connect => return Err(CONNECT_METHOD),
            Method::Trace => return Err(TRACE_METHOD),
            _ => {}
        }
        // RFC 9110 §10.1.1: the expectation of a 1.0 client is ignored.
        head.expects_continue &= modern;
        let stays = !has(marks::CLOSE) && (modern || has(marks::KEEP_ALIVE));
        Ok(if stays { After::KeepAlive } else { After::Close })
    }
}

/// Whether a field with unusual bytes in its name is kept; else the parser drops it silently.
const fn accepts_name(settings: &H1Settings, classes: u8) -> bool {
    classes == UNDERSCORE && settings.underscores_in_headers || !settings.ignore_invalid_headers
}

/// The line without its end; a bare LF ends a line, too (RFC 9112 §2.2).
#[inline]
const fn strip_end(line: &[u8]) -> &[u8] {
    match line {
        [text @ .., b'\r', b'\n'] | [text @ .., b'\n'] => text,
        _ => line,
    }
}
