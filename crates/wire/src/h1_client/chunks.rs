//! Decodes chunked responses (RFC 9112 §7.1), as nginx does for upstreams.
//!
//! Lines end with CRLF only. Extensions are skipped. Trailers are kept if they are valid fields and
//! within the limit. Content is not copied.
//!
//! ```text
//!  Start ─hex▶ Size ─CR▶ SizeLf ─LF▶ Data ─▶ DataCr ─▶ DataLf ─▶ Start
//!                │ ; blank ▲     │ (size 0)
//!                ▼         │CR   ▼
//!              Extension ──┘   LineStart ─▶ Line ─CR▶ LineLf ─LF─▶ LineStart
//!                                  └──CR─▶ LastLf ─LF▶ End
//! ```

use bolide_http::FieldMap;

use crate::cgi::{CgiLine, parse_line};

/// LIMIT: bytes of a chunk, so that sums cannot overflow.
const SIZE_MAX: u64 = 1 << 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    LineStart,
    Line,
    LineLf,
    LastLf,
    End,
}

/// The decoder of a chunked body.
#[derive(Debug)]
pub(super) struct ChunkReader {
    state: State,
    /// The size while it is read, then the rest of the chunk.
    left: u64,
    /// The incomplete trailer line.
    line: Vec<u8>,
    /// Bytes that trailers may still have.
    room: usize,
    trailers: FieldMap,
}

/// The result of decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkPiece<'a> {
    /// Content.
    Data(&'a [u8]),
    /// The input is used up.
    Starved,
    /// The body is complete; these bytes came behind it.
    End(&'a [u8]),
}

impl ChunkReader {
    /// The start of a body whose trailers may have `room` bytes.
    pub(super) const fn new(room: usize) -> Self {
        Self { state: State::Start, left: 0, line: Vec::new(), room, trailers: FieldMap::new() }
    }

    /// Returns the trailer fields.
    pub(super) fn take_trailers(&mut self) -> FieldMap {
        std::mem::take(&mut self.trailers)
    }

    /// Bytes of the incomplete line.
    pub(super) const fn held(&self) -> usize {
        self.line.len()
    }

    /// Consumes `input` up to the end of the next content; `None` means invalid framing.
    pub(super) fn receive<'a>(&mut self, input: &mut &'a [u8]) -> Option<ChunkPiece<'a>> {
        loop {
            if self.state == State::End {
                return Some(ChunkPiece::End(input));
            }
            let Some((&byte, rest)) = input.split_first() else { return Some(ChunkPiece::Starved) };
            if self.state == State::Data {
                let max = usize::try_from(self.left).unwrap_or(usize::MAX);
                let (data, rest) = input.split_at(input.len().min(max));
                *input = rest;
                debug_assert!(!data.is_empty(), "a chunk with content has bytes left");
                self.left -= data.len() as u64;
                if self.left == 0 {
                    self.state = State::DataCr;
                }
                return Some(ChunkPiece::Data(data));
            }
            self.state = self.step(byte)?;
            *input = rest;
        }
    }

    /// Consumes one byte of framing; `None` if it is invalid here.
    fn step(&mut self, byte: u8) -> Option<State> {
        match (self.state, byte) {
            (State::Start | State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.left = self.left << 4 | u64::from(char::from(byte).to_digit(16)?);
                (self.left < SIZE_MAX).then_some(State::Size)
            }
            (State::Size, b';' | b' ' | b'\t') => Some(State::Extension),
            (State::Size | State::Extension, b'\r') => Some(State::SizeLf),
            (State::Extension, b'\n') => None,
            (State::Extension, _) => Some(State::Extension),
            (State::SizeLf, b'\n') if self.left > 0 => Some(State::Data),
            (State::SizeLf, b'\n') => Some(State::LineStart),
            (State::DataCr, b'\r') => Some(State::DataLf),
            (State::DataLf, b'\n') => Some(State::Start),
            (State::LineStart, b'\r') => Some(State::LastLf),
            (State::Line, b'\r') => Some(State::LineLf),
            (State::LineStart | State::Line, b'\n') => None,
            (State::LineStart | State::Line, _) => {
                self.keep(byte);
                Some(State::Line)
            }
            (State::LineLf, b'\n') => {
                self.end_line();
                Some(State::LineStart)
            }
            (State::LastLf, b'\n') => Some(State::End),
            _ => None,
        }
    }

    /// Keeps a byte of a trailer. Trailers over the limit are dropped altogether.
    fn keep(&mut self, byte: u8) {
        if self.room > 0 {
            self.room -= 1;
            self.line.push(byte);
        } else {
            (self.line, self.trailers) = (Vec::new(), FieldMap::new());
        }
    }

    fn end_line(&mut self) {
        // An invalid line is skipped, as in nginx.
        if self.room > 0
            && let Ok(CgiLine::Field(name, value)) = parse_line(&self.line)
        {
            self.trailers.push_text(name, value);
        }
        self.line.clear();
    }
}
