//! What applications answer (RFC 3875 §6): a head of lines, a body, the length that binds them.
//!
//! Shared by all protocols of origins. Takes lines as nginx takes those of its upstreams, and looks
//! at no byte of an unfinished line twice. It does not interpret fields beyond `Status` and
//! `Content-Length`.
//!
//! ```text
//!  None ──begin──▶ Head ──final head──▶ Body ──end──▶ Over
//!                  ▲  │ 1xx               │            ▲
//!                  └──┘                   └── excess ──┘
//! ```
//!
//! INVARIANT: what is told depends on the bytes of the answer only, never on how they were cut.

use bolide_http::{Name, OriginHead};
use bytes::Bytes;
use memchr::{memchr, memchr3};

use crate::{OriginError, OriginEvent};

/// LIMIT: heads with a 1xx status before the answer's own.
const EARLY_HEADS_MAX: u8 = 32;
/// Bytes of a bad line that the error log shows.
const SHOWN_MAX: usize = 200;

/// The head that is arriving.
#[derive(Debug, Default)]
pub(crate) struct HeadParser {
    head: Option<Box<OriginHead>>,
    /// The unfinished line.
    partial: Vec<u8>,
    /// Bytes of finished lines.
    size: usize,
    has_status: bool,
    /// Whether a line of HTTP said the status; then `Status` is a field like others.
    has_line: bool,
}

/// What a line of a head is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CgiLine<'a> {
    End,
    Ignored,
    Field(&'a [u8], &'a [u8]),
}

impl HeadParser {
    /// The fields behind a status line of HTTP, which is `size` bytes long.
    pub(crate) fn behind_line(head: Box<OriginHead>, size: usize) -> Self {
        Self { head: Some(head), size, has_line: true, ..Self::default() }
    }

    /// Takes complete lines off `input`; says how many bytes it used, and gives a complete head.
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
                // It needs at least one byte more.
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

    /// Bytes of the unfinished line.
    pub(crate) const fn held(&self) -> usize {
        self.partial.len()
    }

    /// Takes a line without its LF; says whether it ends the head.
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
        if self.has_line || !name.eq_ignore_ascii_case(b"status") {
            head.fields.push_text(name, value);
            return Ok(());
        }
        // nginx goes by the first of several.
        if std::mem::replace(&mut self.has_status, true) {
            return Ok(());
        }
        let digits =
            value.first_chunk::<3>().filter(|digits| digits.iter().all(u8::is_ascii_digit));
        // RFC 9110 §15.2.2: nobody asked for another protocol, and no other would be spoken.
        let Some(digits) = digits.filter(|digits| digits[0] != b'0' && *digits != b"101") else {
            return Err(invalid_head(b"upstream sent invalid status \"", value, b"\""));
        };
        head.status = digits.iter().fold(0, |code, &digit| code * 10 + u16::from(digit - b'0'));
        let reason = value[3..].strip_prefix(b" ").unwrap_or_default();
        head.reason.extend_from_slice(trim(reason));
        Ok(())
    }
}

/// A field of a head whose lines arrive separately (LSAPI).
pub(crate) fn push_line(head: &mut OriginHead, line: &[u8]) -> Result<(), OriginError> {
    if let CgiLine::Field(name, value) = parse_line(line)?
        && !name.eq_ignore_ascii_case(b"status")
    {
        head.fields.push_text(name, value);
    }
    Ok(())
}

pub(crate) fn invalid_head(before: &[u8], shown: &[u8], after: &[u8]) -> OriginError {
    let shown = &shown[..shown.len().min(SHOWN_MAX)];
    OriginError::InvalidHead([before, shown, after].concat().into())
}

/// What nginx says of a line that is wrong at `at`.
fn invalid_line(line: &[u8], at: usize) -> OriginError {
    let hex = |digit: u8| b"0123456789abcdef"[usize::from(digit)];
    let byte = line.get(at).copied().unwrap_or(b'\n');
    let after = [b'\\', b'x', hex(byte >> 4), hex(byte & 15), b'.', b'.', b'.', b'"'];
    invalid_head(b"upstream sent invalid header: \"", &line[..at], &after)
}

/// A line without its LF, as nginx reads it.
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
    // Lines that arrive separately may have a LF inside, which would begin another for the client.
    let Some(end) = memchr3(0, b'\r', b'\n', rest) else {
        return Ok(CgiLine::Field(name, trim(rest)));
    };
    // Only more of the same may stand between a CR and the LF.
    let foreign = rest[end..].iter().position(|&byte| byte != b'\r');
    match foreign {
        Some(_) => Err(invalid_line(line, rest_at + end)),
        None => Ok(CgiLine::Field(name, trim(&rest[..end]))),
    }
}

/// Strips blanks and tabs from both ends (RFC 9110 §5.6.3: OWS).
const fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Where an answer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CgiPhase {
    /// No request was begun.
    #[default]
    None,
    /// The head is to come.
    Head,
    /// The body is to come.
    Body,
    /// It ended.
    Over,
}

/// What is done with the bytes of the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CgiRule {
    /// They are handed on.
    #[default]
    Any,
    /// So many are still to come.
    Left(u64),
    /// There should be none.
    Drop,
}

/// An answer on its way in.
#[derive(Debug, Default)]
pub(crate) struct CgiAnswer {
    phase: CgiPhase,
    rule: CgiRule,
    answers_head: bool,
    early_heads: u8,
    gathered: Vec<u8>,
}

impl CgiAnswer {
    /// An answer to a request that is being sent.
    pub(crate) const fn begun(answers_head: bool) -> Self {
        let (phase, rule) = (CgiPhase::Head, CgiRule::Any);
        Self { phase, rule, answers_head, early_heads: 0, gathered: Vec::new() }
    }

    /// Where it is.
    pub(crate) const fn phase(&self) -> CgiPhase {
        self.phase
    }

    /// Whether the body is shorter than announced.
    pub(crate) const fn is_short(&self) -> bool {
        matches!(self.rule, CgiRule::Left(1..))
    }

    /// Whether nothing of it is missing, whatever the framing says.
    pub(crate) const fn is_complete(&self) -> bool {
        matches!(self.rule, CgiRule::Left(0) | CgiRule::Drop)
    }

    /// Takes a complete head.
    pub(crate) fn head(
        &mut self,
        mut head: Box<OriginHead>,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        if is_early(head.status) {
            return self.early_head(head, events);
        }
        let rule = length_rule(&head)?;
        // Framing is the business of the side that the answer goes to.
        head.fields.remove(Name::TransferEncoding);
        self.begin_body(head, rule, events);
        Ok(())
    }

    /// Takes a head that another will follow.
    pub(crate) fn early_head(
        &mut self,
        head: Box<OriginHead>,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        self.early_heads += 1;
        if self.early_heads > EARLY_HEADS_MAX {
            return Err(invalid_head(b"upstream sent too many early headers", b"", b""));
        }
        events.push(OriginEvent::Head(head));
        Ok(())
    }

    /// Takes the head that a body follows; `rule` holds where neither method nor status forbid one.
    pub(crate) fn begin_body(
        &mut self,
        head: Box<OriginHead>,
        rule: CgiRule,
        events: &mut Vec<OriginEvent>,
    ) {
        self.phase = CgiPhase::Body;
        self.rule = match head.status {
            _ if self.answers_head => CgiRule::Drop,
            204 | 304 => CgiRule::Left(0),
            _ => rule,
        };
        events.push(OriginEvent::Head(head));
    }

    /// Takes the head behind which everything is handed on as it comes.
    pub(crate) fn begin_tunnel(&mut self, head: Box<OriginHead>, events: &mut Vec<OriginEvent>) {
        (self.phase, self.rule) = (CgiPhase::Body, CgiRule::Any);
        events.push(OriginEvent::Head(head));
    }

    /// Takes bytes of the body; `expected` is how many more may follow before [`Self::flush`].
    pub(crate) fn body(&mut self, piece: &[u8], expected: usize, events: &mut Vec<OriginEvent>) {
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

    /// Tells of the bytes that were taken.
    pub(crate) fn flush(&mut self, events: &mut Vec<OriginEvent>) {
        if !self.gathered.is_empty() {
            events.push(OriginEvent::Body(Bytes::from(std::mem::take(&mut self.gathered))));
        }
    }

    /// Ends the answer.
    pub(crate) fn end(&mut self, app_status: u32, events: &mut Vec<OriginEvent>) {
        self.flush(events);
        self.phase = CgiPhase::Over;
        events.push(OriginEvent::End { app_status });
    }
}

/// Whether a head with this status comes before the answer's own.
pub(crate) const fn is_early(status: u16) -> bool {
    matches!(status, 100 | 102..=199)
}

fn length_rule(head: &OriginHead) -> Result<CgiRule, OriginError> {
    let mut lengths = head.fields.all(Name::ContentLength);
    let Some(text) = lengths.next() else { return Ok(CgiRule::Any) };
    let length = parse_length(text)?;
    if let Some(again) = lengths.next() {
        return Err(duplicate_line(b"Content-Length", again, text));
    }
    if head.fields.get(Name::TransferEncoding).is_some() {
        return Err(length_and_coding());
    }
    Ok(CgiRule::Left(length))
}

/// What nginx says of a field that may come only once.
pub(crate) fn duplicate_line(name: &[u8], value: &[u8], previous: &[u8]) -> OriginError {
    let before = [b"upstream sent duplicate header line: \"", name, b": "].concat();
    let after = [b"\", previous value: \"", name, b": ", previous, b"\""].concat();
    invalid_head(&before, value, &after)
}

/// What nginx says of a body with two lengths.
pub(crate) fn length_and_coding() -> OriginError {
    let both = b"\"Content-Length\" and \"Transfer-Encoding\"";
    invalid_head(b"upstream sent ", both, b" headers at the same time")
}

/// The value of `Content-Length`.
pub(crate) fn parse_length(text: &[u8]) -> Result<u64, OriginError> {
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
