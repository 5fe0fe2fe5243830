//! Parses the status line of a response byte by byte, as nginx does (RFC 9112 §4).
//!
//! It rejects a line at the first invalid byte. The caller limits the length.
//!
//! ```text
//!  Name ─/▶ Major ─.▶ Minor ─blank▶ Code ─3rd digit▶ Behind ─blank . ▶ Reason
//!                                                       └──CR─▶ LastLf ◀─CR──┘    LF: complete
//! ```

use bolide_http::OriginHead;

use crate::{OriginError, cgi};

const NAME: &[u8] = b"HTTP/";
/// LIMIT: the major and the minor version number.
const VERSION_MAX: u16 = 999;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Name,
    Major,
    Minor,
    Code,
    Behind,
    Reason,
    LastLf,
}

/// The parser of a status line.
#[derive(Debug)]
pub(crate) struct StatusLine {
    state: State,
    /// Bytes counted in this state.
    counted: u8,
    /// The major and minor version.
    version: [u16; 2],
    code: u16,
    reason_at: usize,
    /// All bytes of the line so far.
    bytes: Vec<u8>,
}

/// The result of one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusStep {
    /// The line is incomplete.
    More,
    /// The line is complete.
    Complete,
    /// The line is invalid.
    NoLine,
}

impl StatusLine {
    pub(crate) const fn new() -> Self {
        Self {
            state: State::Name,
            counted: 0,
            version: [0; 2],
            code: 0,
            reason_at: 0,
            bytes: Vec::new(),
        }
    }

    /// Bytes consumed.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes consumed, where they are no status line.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Whether the upstream speaks HTTP/1.1 or later.
    pub(crate) const fn is_modern(&self) -> bool {
        self.version[0] > 1 || self.version[1] > 0
    }

    /// A head with the status of a complete line.
    pub(crate) fn head(&self) -> Box<OriginHead> {
        let reason = self.bytes[self.reason_at..].trim_ascii().to_vec();
        Box::new(OriginHead { status: self.code, reason, ..OriginHead::default() })
    }

    /// Refuses a complete line whose status has no class.
    pub(crate) fn check_class(&self) -> Result<(), OriginError> {
        if self.code < 100 {
            return Err(cgi::invalid_status(format!("{:03}", self.code).as_bytes()));
        }
        Ok(())
    }

    /// Consumes the next byte.
    pub(crate) fn take(&mut self, byte: u8) -> StatusStep {
        self.bytes.push(byte);
        let Some(next) = self.next(byte) else { return StatusStep::NoLine };
        if next != self.state {
            (self.state, self.counted) = (next, 0);
        }
        let ends = byte == b'\n' && matches!(next, State::Reason | State::LastLf);
        if ends { StatusStep::Complete } else { StatusStep::More }
    }

    /// The state after `byte`. A LF where the line may end leaves a state in which it ends.
    fn next(&mut self, byte: u8) -> Option<State> {
        match (self.state, byte) {
            (State::Name, _) => {
                let is_right = byte == *NAME.get(usize::from(self.counted))?;
                self.counted += 1;
                let is_last = usize::from(self.counted) == NAME.len();
                is_right.then_some(if is_last { State::Major } else { State::Name })
            }
            // A major version has no leading zero, which also excludes 0.9.
            (State::Major, b'0') if self.counted == 0 => None,
            (State::Major, b'0'..=b'9') => self.digit(0, byte, State::Major),
            (State::Major, b'.') if self.counted > 0 => Some(State::Minor),
            (State::Minor, b'0'..=b'9') => self.digit(1, byte, State::Minor),
            (State::Minor, b' ') if self.counted > 0 => Some(State::Code),
            (State::Code, b' ') => Some(State::Code),
            (State::Code, b'0'..=b'9') => {
                self.code = self.code * 10 + u16::from(byte - b'0');
                self.counted += 1;
                Some(if self.counted == 3 { State::Behind } else { State::Code })
            }
            // Some servers send a sub-status: `404.3`.
            (State::Behind, b' ' | b'.' | b'\n') => {
                self.reason_at = self.bytes.len() - usize::from(byte == b'.');
                Some(State::Reason)
            }
            (State::Behind, b'\r') => {
                self.reason_at = self.bytes.len();
                Some(State::LastLf)
            }
            (State::Reason, b'\r') => Some(State::LastLf),
            (State::Reason, _) => Some(State::Reason),
            (State::LastLf, b'\n') => Some(State::LastLf),
            _ => None,
        }
    }

    fn digit(&mut self, part: usize, byte: u8, state: State) -> Option<State> {
        self.counted = 1;
        let number = self.version[part] * 10 + u16::from(byte - b'0');
        self.version[part] = number;
        (number <= VERSION_MAX).then_some(state)
    }
}
