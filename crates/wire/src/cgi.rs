//! Parses CGI responses (RFC 3875 §6): a head of lines, and a body with or without a length.
//!
//! All upstream protocols share it. It accepts the lines that nginx accepts from upstreams, and
//! scans no byte of an incomplete line twice. The only fields that it interprets are `Status`,
//! `Content-Length` and `Transfer-Encoding`.
//!
//! ```text
//!  None ──begin──▶ Head ──final head──▶ Body ──end──▶ Over
//!                  ▲  │ 1xx               │            ▲
//!                  └──┘                   └── excess ──┘
//! ```
//!
//! INVARIANT: the events depend on the bytes of the response only, never on how reads split them.

use bolide_http::{FieldMap, Name, OriginHead};
use bytes::Bytes;
use memchr::{memchr, memchr3};

use crate::{OriginError, OriginEvent};

/// LIMIT: interim responses (1xx) before the final one.
const EARLY_HEADS_MAX: u8 = 32;
/// LIMIT: bytes of an invalid line in the error log.
const SHOWN_MAX: usize = 200;

/// The parser of a response head.
#[derive(Debug, Default)]
pub(crate) struct HeadParser {
    head: Option<Box<OriginHead>>,
    /// The incomplete line.
    partial: Vec<u8>,
    /// Bytes of complete lines.
    size: usize,
    has_status: bool,
    status_field: StatusField,
}

/// What the field `Status` of a head is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StatusField {
    /// The status, and no field.
    #[default]
    Taken,
    /// The status, and a field as well. It may switch protocols.
    Kept,
    /// A field as any other: the head has an HTTP status line.
    Ordinary,
}

/// The contents of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CgiLine<'a> {
    End,
    Ignored,
    Field(&'a [u8], &'a [u8]),
}

impl HeadParser {
    /// Parses the fields behind an HTTP status line of `size` bytes.
    pub(crate) fn behind_line(head: Box<OriginHead>, size: usize) -> Self {
        let status_field = StatusField::Ordinary;
        Self { head: Some(head), size, status_field, ..Self::default() }
    }

    /// Parses a head whose `Status` stays a field.
    pub(crate) fn keeping_status() -> Self {
        Self { status_field: StatusField::Kept, ..Self::default() }
    }

    /// Consumes complete lines of `input`. Returns the number of consumed bytes, and the head once
    /// it is complete.
    pub(crate) fn receive(
        &mut self,
        input: &[u8],
        max: usize,
    ) -> Result<(usize, Option<Box<OriginHead>>), OriginError> {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let Some(end) = memchr(b'\n', rest) else {
                self.partial.extend_from_slice(rest);
                // It needs at least one more byte.
                let is_too_big = self.size + self.partial.len() >= max;
                return if is_too_big {
                    Err(OriginError::HeadTooBig)
                } else {
                    Ok((input.len(), None))
                };
            };
            used += end + 1;
            self.size += self.partial.len() + end + 1;
            if self.size > max {
                return Err(OriginError::HeadTooBig);
            }
            let is_complete = if self.partial.is_empty() {
                self.take_line(&rest[..end])?
            } else {
                let mut line = std::mem::take(&mut self.partial);
                line.extend_from_slice(&rest[..end]);
                self.take_line(&line)?
            };
            if is_complete {
                let Self { head, size, .. } = std::mem::take(self);
                let mut head = head.unwrap_or_default();
                head.wire_size = u32::try_from(size).unwrap_or(u32::MAX);
                return Ok((used, Some(head)));
            }
        }
    }

    /// Bytes of the incomplete line.
    pub(crate) const fn held(&self) -> usize {
        self.partial.len()
    }

    /// Parses a line without its LF. Returns whether it ends the head.
    fn take_line(&mut self, line: &[u8]) -> Result<bool, OriginError> {
        match parse_line(line)? {
            CgiLine::End => return Ok(true),
            CgiLine::Ignored => {}
            CgiLine::Field(name, value) => self.push(name, value)?,
        }
        Ok(false)
    }

    fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), OriginError> {
        let head = self.head.get_or_insert_default();
        if self.status_field == StatusField::Ordinary || !name.eq_ignore_ascii_case(b"status") {
            head.fields.push_text(name, value);
            return Ok(());
        }
        // nginx uses the first `Status`.
        if std::mem::replace(&mut self.has_status, true) {
            return Ok(());
        }
        if self.status_field == StatusField::Kept {
            head.fields.push_text(name, value);
        }
        take_status(head, value, self.status_field)
    }
}

/// Takes the status out of a `Status` field. As in nginx it is the first three digits, whatever
/// stands behind them.
pub(crate) fn take_status(
    head: &mut OriginHead,
    value: &[u8],
    field: StatusField,
) -> Result<(), OriginError> {
    let invalid = || invalid_status(value);
    let (digits, rest) = value.split_first_chunk::<3>().ok_or_else(invalid)?;
    if digits[0] == b'0' || !digits.iter().all(u8::is_ascii_digit) {
        return Err(invalid());
    }
    let status = digits.iter().fold(0, |code, &digit| code * 10 + u16::from(digit - b'0'));
    // A longer number is no interim response, behind which the final head would come. RFC 9110
    // §15.2.2: a request without `Upgrade` has no 101.
    let is_alone = matches!(rest, [] | [b' ' | b'\t', ..]);
    let is_switch = status == 101;
    if is_switch && field == StatusField::Taken || (is_switch || is_early(status)) && !is_alone {
        return Err(invalid());
    }
    head.status = status;
    head.reason.clear();
    head.reason.extend_from_slice(trim(rest.strip_prefix(b" ").unwrap_or_default()));
    Ok(())
}

pub(crate) fn invalid_head(before: &[u8], shown: &[u8], after: &[u8]) -> OriginError {
    let shown = &shown[..shown.len().min(SHOWN_MAX)];
    OriginError::InvalidHead([before, shown, after].concat().into())
}

pub(crate) fn invalid_status(code: &[u8]) -> OriginError {
    invalid_head(b"upstream sent invalid status \"", code, b"\"")
}

/// nginx's message for a line with an invalid byte at `at`.
fn invalid_line(line: &[u8], at: usize) -> OriginError {
    let hex = |digit: u8| b"0123456789abcdef"[usize::from(digit)];
    let byte = line.get(at).copied().unwrap_or(b'\n');
    let after = [b'\\', b'x', hex(byte >> 4), hex(byte & 15), b'.', b'.', b'.', b'"'];
    invalid_head(b"upstream sent invalid header: \"", &line[..at], &after)
}

/// Parses a line without its LF as nginx does.
pub(crate) fn parse_line(line: &[u8]) -> Result<CgiLine<'_>, OriginError> {
    if matches!(line, [] | [b'\r']) {
        return Ok(CgiLine::End);
    }
    let mut name_end = None;
    for (at, &byte) in line.iter().enumerate() {
        match byte {
            b':' if at > 0 => name_end = Some(at),
            b'/' if at == 4 && line.starts_with(b"HTTP") => return Ok(CgiLine::Ignored),
            b'\r' if at > 0 => name_end = Some(at),
            0..=b' ' | 0x7f | b':' => return Err(invalid_line(line, at)),
            _ => continue,
        }
        break;
    }
    let (name, rest) = line.split_at(name_end.unwrap_or(line.len()));
    if name.len() > usize::from(u16::MAX) {
        return Err(invalid_head(b"upstream sent too long header name \"", name, b"...\""));
    }
    let rest = rest.strip_prefix(b":").unwrap_or(rest);
    let rest_at = line.len() - rest.len();
    // A line of an LSAPI packet may contain a LF, which would inject a field.
    let Some(end) = memchr3(0, b'\r', b'\n', rest) else {
        return Ok(CgiLine::Field(name, trim(rest)));
    };
    // Between a CR and the LF only CRs are allowed.
    let foreign = rest[end..].iter().position(|&byte| byte != b'\r');
    match foreign {
        Some(_) => Err(invalid_line(line, rest_at + end)),
        None => Ok(CgiLine::Field(name, trim(&rest[..end]))),
    }
}

/// Strips spaces and tabs from both ends (RFC 9110 §5.6.3: OWS).
pub(crate) const fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// The state of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CgiPhase {
    /// No request was sent.
    #[default]
    None,
    /// The head is incomplete.
    Head,
    /// The body is incomplete.
    Body,
    /// The response ended.
    Over,
}

/// What happens to the bytes of the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CgiRule {
    /// They are reported.
    #[default]
    Any,
    /// This many bytes are reported; more are in excess.
    Left(u64),
    /// They are dropped.
    Drop,
}

/// A response that is being received.
#[derive(Debug, Default)]
pub(crate) struct CgiAnswer {
    phase: CgiPhase,
    rule: CgiRule,
    answers_head: bool,
    early_heads: u8,
    gathered: Vec<u8>,
}

impl CgiAnswer {
    /// The response to a request that is being sent.
    pub(crate) const fn begun(answers_head: bool) -> Self {
        let (phase, rule) = (CgiPhase::Head, CgiRule::Any);
        Self { phase, rule, answers_head, early_heads: 0, gathered: Vec::new() }
    }

    /// The state of the response.
    pub(crate) const fn phase(&self) -> CgiPhase {
        self.phase
    }

    /// Whether the body is shorter than its declared length.
    pub(crate) const fn is_short(&self) -> bool {
        matches!(self.rule, CgiRule::Left(1..))
    }

    /// Whether the body has its full length, whatever the framing says.
    pub(crate) const fn is_complete(&self) -> bool {
        matches!(self.rule, CgiRule::Left(0) | CgiRule::Drop)
    }

    /// Handles a complete head.
    pub(crate) fn head(
        &mut self,
        mut head: Box<OriginHead>,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        if is_early(head.status) {
            return self.early_head(head, events);
        }
        let rule = match read_framing(&head.fields)? {
            BodyLength::Known(length) => CgiRule::Left(length),
            BodyLength::Chunked | BodyLength::Open => CgiRule::Any,
        };
        // As in nginx, it is checked and means nothing here: records frame the body.
        head.fields.remove(Name::TransferEncoding);
        self.begin_body(head, rule, events);
        Ok(())
    }

    /// Handles an interim response.
    pub(crate) fn early_head(
        &mut self,
        head: Box<OriginHead>,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        debug_assert!(self.phase == CgiPhase::Head, "interim responses precede the final one");
        self.early_heads += 1;
        if self.early_heads > EARLY_HEADS_MAX {
            return Err(invalid_head(b"upstream sent too many early headers", b"", b""));
        }
        events.push(OriginEvent::Head(head));
        Ok(())
    }

    /// Handles the head of a final response. `rule` applies unless method or status forbid a body.
    pub(crate) fn begin_body(
        &mut self,
        head: Box<OriginHead>,
        rule: CgiRule,
        events: &mut Vec<OriginEvent>,
    ) {
        debug_assert!(self.phase == CgiPhase::Head, "a response has one final head");
        self.phase = CgiPhase::Body;
        self.rule = match head.status {
            _ if self.answers_head => CgiRule::Drop,
            204 | 304 => CgiRule::Left(0),
            _ => rule,
        };
        events.push(OriginEvent::Head(head));
    }

    /// Handles the head of a response that opens a tunnel.
    pub(crate) fn begin_tunnel(&mut self, head: Box<OriginHead>, events: &mut Vec<OriginEvent>) {
        debug_assert!(self.phase == CgiPhase::Head, "a response has one final head");
        (self.phase, self.rule) = (CgiPhase::Body, CgiRule::Any);
        events.push(OriginEvent::Head(head));
    }

    /// Handles bytes of the body. `expected` is how many more may follow before [`Self::flush`].
    pub(crate) fn body(&mut self, piece: &[u8], expected: usize, events: &mut Vec<OriginEvent>) {
        debug_assert!(self.phase == CgiPhase::Body, "the body follows the head");
        let mut taken = piece;
        match &mut self.rule {
            CgiRule::Any => {}
            CgiRule::Drop => return,
            CgiRule::Left(left) => {
                let max = usize::try_from(*left).unwrap_or(usize::MAX);
                taken = &piece[..piece.len().min(max)];
                *left -= taken.len() as u64;
            }
        }
        if self.gathered.capacity() == 0 {
            self.gathered.reserve_exact(taken.len() + expected);
        }
        self.gathered.extend_from_slice(taken);
        if taken.len() < piece.len() {
            self.flush(events);
            events.push(OriginEvent::Excess);
            self.end(0, events);
        }
    }

    /// Reports the gathered bytes.
    pub(crate) fn flush(&mut self, events: &mut Vec<OriginEvent>) {
        if !self.gathered.is_empty() {
            events.push(OriginEvent::Body(Bytes::from(std::mem::take(&mut self.gathered))));
        }
    }

    /// Ends the response.
    pub(crate) fn end(&mut self, app_status: u32, events: &mut Vec<OriginEvent>) {
        debug_assert!(self.phase == CgiPhase::Body, "a response ends once, behind its head");
        debug_assert!(!self.is_short(), "a response has its declared length");
        self.flush(events);
        self.phase = CgiPhase::Over;
        events.push(OriginEvent::End { app_status });
    }
}

/// Whether a response with this status is interim.
pub(crate) const fn is_early(status: u16) -> bool {
    matches!(status, 100 | 102..=199)
}

/// The length of a body according to its framing fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLength {
    Known(u64),
    Chunked,
    /// Until the response ends.
    Open,
}

/// Checks the framing fields in their order, and stops at the first invalid one.
pub(crate) fn read_framing(fields: &FieldMap) -> Result<BodyLength, OriginError> {
    let (mut length, mut coding) = (None, None);
    for field in fields.iter() {
        let (before, other, name) = match field.name {
            Name::ContentLength => (&mut length, &coding, b"Content-Length".as_slice()),
            Name::TransferEncoding => (&mut coding, &length, b"Transfer-Encoding".as_slice()),
            _ => continue,
        };
        if let Some(before) = before.replace(field.value) {
            return Err(duplicate_line(name, field.value, before));
        }
        if other.is_some() {
            return Err(length_and_coding());
        }
        if field.name == Name::ContentLength {
            parse_length(field.value)?;
        } else if !field.value.eq_ignore_ascii_case(b"chunked") {
            let text = b"upstream sent unknown \"Transfer-Encoding\": \"";
            return Err(invalid_head(text, field.value, b"\""));
        }
    }
    Ok(match (length, coding) {
        (Some(text), _) => BodyLength::Known(parse_length(text)?),
        (None, Some(_)) => BodyLength::Chunked,
        (None, None) => BodyLength::Open,
    })
}

/// nginx's message for a field that may come only once.
fn duplicate_line(name: &[u8], value: &[u8], previous: &[u8]) -> OriginError {
    let before = [b"upstream sent duplicate header line: \"", name, b": "].concat();
    let after = [b"\", previous value: \"", name, b": ", previous, b"\""].concat();
    invalid_head(&before, value, &after)
}

/// nginx's message for a body with two lengths.
fn length_and_coding() -> OriginError {
    let both = b"\"Content-Length\" and \"Transfer-Encoding\"";
    invalid_head(b"upstream sent ", both, b" headers at the same time")
}

/// Parses the value of `Content-Length`.
fn parse_length(text: &[u8]) -> Result<u64, OriginError> {
    read_length(text).ok_or_else(|| {
        let before = b"upstream sent invalid \"Content-Length\" header: \"Content-Length: ";
        invalid_head(before, text, b"\"")
    })
}

fn read_length(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let value = text.iter().try_fold(0_u64, |value, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })?;
    (value <= i64::MAX as u64).then_some(value)
}

#[cfg(test)]
mod tests;
