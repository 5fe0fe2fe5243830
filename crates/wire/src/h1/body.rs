//! Finds the end of a request body: after its length or after its last chunk (RFC 9112 §6, §7).
//!
//! The decoder returns slices of its input and keeps no bytes. Lines of chunked framing end with
//! CRLF only, because lenience there allows request smuggling.
//!
//! ```text
//!  Start ─hex▶ Size ─BWS, ;▶ Extension ─CR▶ SizeEnd ─LF▶ Data ─▶ DataCr ─▶ DataLf ─▶ Start
//!                └───────────CR───────────────▲ │ (size 0)
//!                                               ▼
//!      End ◀─LF─ LastLf ◀──────CR────────── TrailerStart ─▶ Name ─:▶ Value ─CR▶ ValueLf ─┐
//!                                                ▲───────────────────────────────────────┘
//! ```

use super::grammar::is_token;

/// LIMIT: digits of a chunk size, leading zeros included.
const SIZE_DIGITS_MAX: u16 = 16;
/// LIMIT: bytes of the extensions of one chunk.
const EXTENSION_SIZE_MAX: u16 = 1024;
/// LIMIT: bytes of the trailer section.
const TRAILER_SIZE_MAX: u16 = 8 * 1024;

/// The rest of a body.
#[derive(Clone, Debug)]
pub(super) enum BodyDecoder {
    /// This many bytes.
    Length(u64),
    /// Chunks.
    Chunked(ChunkDecoder),
}

/// The state of the chunked framing.
#[derive(Clone, Debug)]
pub(super) struct ChunkDecoder {
    state: State,
    /// Digits, extension bytes or trailer bytes counted in this state.
    counted: u16,
    /// The size while it is read, then the rest of the chunk.
    left: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Size,
    Extension(Extension),
    SizeEnd,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    Name,
    Value,
    ValueLf,
    LastLf,
    End,
}

/// The state within a chunk extension (RFC 9112 §7.1.1). Two parsers that end the line in different
/// places find different chunks. So a quoted string must be closed, and white space must stand
/// before a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extension {
    /// White space before the `;`.
    Before,
    /// White space before the name.
    Start,
    Name,
    /// White space after the name.
    NameEnd,
    /// White space before the value.
    Equals,
    Value,
    Quoted,
    /// After a backslash.
    Escaped,
    /// After the closing quote.
    QuotedEnd,
}

impl Extension {
    /// The state after `byte`; `None` if the byte is invalid here.
    const fn step(self, byte: u8) -> Option<Self> {
        let is_blank = matches!(byte, b' ' | b'\t');
        Some(match (self, byte) {
            (Self::Quoted, b'"') => Self::QuotedEnd,
            (Self::Quoted, b'\\') => Self::Escaped,
            (Self::Quoted | Self::Escaped, b' '..=b'~' | b'\t' | 0x80..) => Self::Quoted,
            (Self::Before | Self::Start | Self::NameEnd | Self::Equals, _) if is_blank => self,
            (Self::Name, _) if is_blank => Self::NameEnd,
            (Self::Value | Self::QuotedEnd, _) if is_blank => Self::Before,
            (Self::Start | Self::Name, _) if is_token(byte) => Self::Name,
            (Self::Name | Self::NameEnd, b'=') => Self::Equals,
            (Self::Equals, b'"') => Self::Quoted,
            (Self::Equals | Self::Value, _) if is_token(byte) => Self::Value,
            (Self::Before | Self::Name | Self::NameEnd | Self::Value | Self::QuotedEnd, b';') => {
                Self::Start
            }
            _ => return None,
        })
    }

    /// Whether the line may end here.
    const fn may_end(self) -> bool {
        matches!(self, Self::Name | Self::Value | Self::QuotedEnd)
    }
}

/// The result of decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecodeProgress {
    /// The body is incomplete.
    More,
    /// The body is complete.
    End,
    /// The framing is invalid.
    Refused,
}

impl BodyDecoder {
    /// The start of a chunked body.
    pub(super) const fn chunked() -> Self {
        Self::Chunked(ChunkDecoder { state: State::Start, counted: 0, left: 0 })
    }

    /// Bytes that are known to be missing.
    pub(super) const fn left(&self) -> u64 {
        match self {
            Self::Length(left) => *left,
            Self::Chunked(chunks) => match chunks.state {
                State::Data => chunks.left,
                _ => 0,
            },
        }
    }

    /// Decodes `input` and gives the content to `sink`, at most `room` bytes of it. Returns the
    /// number of consumed bytes and whether the body is complete.
    pub(super) fn decode<'a>(
        &mut self,
        input: &'a [u8],
        room: usize,
        mut sink: impl FnMut(&'a [u8]),
    ) -> (usize, DecodeProgress) {
        match self {
            Self::Length(left) => {
                let taken = shortest(input.len().min(room), *left);
                sink(&input[..taken]);
                *left -= taken as u64;
                (taken, if *left == 0 { DecodeProgress::End } else { DecodeProgress::More })
            }
            Self::Chunked(chunks) => chunks.decode(input, room, sink),
        }
    }
}

fn shortest(here: usize, left: u64) -> usize {
    usize::try_from(left).map_or(here, |left| left.min(here))
}

impl ChunkDecoder {
    fn decode<'a>(
        &mut self,
        input: &'a [u8],
        mut room: usize,
        mut sink: impl FnMut(&'a [u8]),
    ) -> (usize, DecodeProgress) {
        let mut used = 0;
        while used < input.len() {
            if self.state == State::Data {
                debug_assert!(self.left > 0, "a chunk with content has bytes left");
                let taken = shortest(room.min(input.len() - used), self.left);
                if taken == 0 {
                    break;
                }
                sink(&input[used..used + taken]);
                (used, room, self.left) = (used + taken, room - taken, self.left - taken as u64);
                if self.left == 0 {
                    self.state = State::DataCr;
                }
                continue;
            }
            let Some(next) = self.step(input[used]) else { return (used, DecodeProgress::Refused) };
            used += 1;
            self.state = next;
            if next == State::End {
                return (used, DecodeProgress::End);
            }
        }
        (used, DecodeProgress::More)
    }

    /// Consumes one byte of framing; `None` if it is invalid here.
    fn step(&mut self, byte: u8) -> Option<State> {
        match (self.state, byte) {
            (State::Start, _) => {
                (self.left, self.counted) = (0, 0);
                self.digit(byte)
            }
            (State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.digit(byte),
            (State::Size, b' ' | b'\t' | b';') => {
                self.counted = 0;
                Extension::Before.step(byte).map(State::Extension)
            }
            (State::Size, b'\r') => Some(State::SizeEnd),
            (State::Extension(at), b'\r') if at.may_end() => Some(State::SizeEnd),
            (State::Extension(at), _) => self.count(State::Extension(at.step(byte)?)),
            (State::SizeEnd, b'\n') if self.left > 0 => Some(State::Data),
            (State::SizeEnd, b'\n') => {
                self.counted = 0;
                Some(State::TrailerStart)
            }
            (State::DataCr, b'\r') => Some(State::DataLf),
            (State::DataLf, b'\n') => Some(State::Start),
            (State::TrailerStart, b'\r') => Some(State::LastLf),
            (State::TrailerStart | State::Name, _) if is_token(byte) => self.count(State::Name),
            (State::Name, b':') => self.count(State::Value),
            (State::Value, b'\r') => self.count(State::ValueLf),
            (State::Value, b' '..=b'~' | b'\t' | 0x80..) => self.count(State::Value),
            (State::ValueLf, b'\n') => self.count(State::TrailerStart),
            (State::LastLf, b'\n') => Some(State::End),
            _ => None,
        }
    }

    fn digit(&mut self, byte: u8) -> Option<State> {
        let value = char::from(byte).to_digit(16)?;
        // Sixteen digits fit 64 bits. The sign bit stays free, so that sums cannot wrap.
        if self.counted >= SIZE_DIGITS_MAX || self.left > (i64::MAX as u64) >> 4 {
            return None;
        }
        self.counted += 1;
        self.left = self.left << 4 | u64::from(value);
        debug_assert!(self.left <= i64::MAX as u64, "sums of chunk sizes cannot wrap");
        Some(State::Size)
    }

    fn count(&mut self, next: State) -> Option<State> {
        let bound = match next {
            State::Extension(_) => EXTENSION_SIZE_MAX,
            _ => TRAILER_SIZE_MAX,
        };
        self.counted += 1;
        (self.counted <= bound).then_some(next)
    }
}
