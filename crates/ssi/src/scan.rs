//! From bytes to texts and commands, for any split into pieces.
//!
//! ```text
//!   Text ──<──▶ Mark ──!--#──▶ Gap ──▶ Name ──▶ BeforeKey ──▶ Key ──▶ AfterKey ──=──▶ BeforeValue
//!    ▲            │ anything else              ▲    │ -                                  │ ' "
//!    │◀───────────┘                 AfterValue ┘    ▼            Quoted ◀──\──▶ Value ◀──┘
//!    │◀───────────────────── > ──── End(2) ◀── - ── End(1)                        │
//!    │◀───────────────────── > ──── Lost(2), after what has no form               └──▶ AfterValue
//! ```
//!
//! Easiest to break: bytes that may begin a command's mark are held back until they are known not
//! to; at the end of a page they are lost, as in nginx.

use std::mem;

use crate::SsiFault;

/// The beginning of a command.
const MARK: &[u8; 5] = b"<!--#";
/// As in nginx: bytes of the name of a command or parameter.
const NAME_MAX: usize = 32;
/// As in nginx: parameters of a command.
pub(crate) const PARAMS_MAX: usize = 16;

/// A command of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SsiCommand {
    /// `echo`
    pub name: Vec<u8>,
    /// Names and values in order, the latter with their backslashes; at most one more than allowed.
    pub params: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The constructs in a page beside text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SsiEvent {
    /// A well-formed command.
    Command(SsiCommand),
    /// A command is malformed; the message precedes its end.
    Fault(SsiFault),
    /// The end of such a command, where its replacement is sent.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    /// This many bytes of the mark are held back.
    Mark(u8),
    Gap,
    Name,
    BeforeKey,
    Key,
    AfterKey,
    BeforeValue,
    /// Until this quote.
    Value(u8),
    /// After a backslash in a value, until this quote.
    Quoted(u8),
    AfterValue,
    /// So many dashes of the end.
    End(u8),
    /// The same in a malformed command.
    Lost(u8),
}

/// Reads a page.
#[derive(Clone, Debug)]
pub struct SsiScanner {
    state: State,
    command: SsiCommand,
    value_max: usize,
}

impl SsiScanner {
    /// At the beginning of a page; values have at most `value_max` bytes.
    #[must_use]
    pub const fn new(value_max: usize) -> Self {
        let command = SsiCommand { name: Vec::new(), params: Vec::new() };
        Self { state: State::Text, command, value_max }
    }

    /// Reads `input` up to the next event, or all of it, and returns the bytes consumed. Text is
    /// appended to `text`; it precedes the event.
    pub fn read(&mut self, input: &[u8], text: &mut Vec<u8>) -> (usize, Option<SsiEvent>) {
        let mut at = 0;
        while at < input.len() {
            if self.state == State::Text {
                let rest = &input[at..];
                let end = memchr::memchr(b'<', rest).unwrap_or(rest.len());
                text.extend_from_slice(&rest[..end]);
                at += end;
                if at == input.len() {
                    break;
                }
            }
            let event = self.step(input[at], text);
            at += 1;
            if event.is_some() {
                return (at, event);
            }
        }
        (at, None)
    }

    fn step(&mut self, byte: u8, text: &mut Vec<u8>) -> Option<SsiEvent> {
        let is_blank = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match self.state {
            State::Text => self.state = State::Mark(1),
            State::Mark(held) => self.mark(held, byte, text),
            State::Gap
            | State::BeforeKey
            | State::AfterKey
            | State::BeforeValue
            | State::AfterValue
                if is_blank =>
            {
                if self.state == State::AfterValue {
                    self.state = State::BeforeKey;
                }
            }
            State::Gap => {
                self.command = SsiCommand { name: vec![byte], params: Vec::new() };
                self.state = State::Name;
            }
            State::Name | State::Key if is_blank => {
                self.state =
                    if self.state == State::Name { State::BeforeKey } else { State::AfterKey };
            }
            State::Name | State::BeforeKey | State::AfterValue if byte == b'-' => {
                self.state = State::End(1);
            }
            State::Name => return self.push_name(byte),
            State::BeforeKey => {
                if self.command.params.len() <= PARAMS_MAX {
                    self.command.params.push((vec![byte], Vec::new()));
                } else {
                    // There are too many; the last one stands for all further ones.
                    self.command.params[PARAMS_MAX] = (vec![byte], Vec::new());
                }
                self.state = State::Key;
            }
            State::Key | State::AfterKey if byte == b'=' => self.state = State::BeforeValue,
            State::Key if byte != b'-' => return self.push_key(byte),
            State::Key | State::AfterKey => return Some(self.unexpected(byte, b"after", b"")),
            State::BeforeValue if matches!(byte, b'"' | b'\'') => self.state = State::Value(byte),
            State::BeforeValue => return Some(self.unexpected(byte, b"before value of", b"")),
            State::Value(quote) if byte == quote => self.state = State::AfterValue,
            State::Value(quote) => {
                if byte == b'\\' {
                    self.state = State::Quoted(quote);
                }
                return self.push_value(byte);
            }
            State::Quoted(quote) => {
                self.state = State::Value(quote);
                return self.push_value(byte);
            }
            State::AfterValue => {
                let value = self.last().1.clone();
                let value = [b"\"", &value[..], b"\" value of "].concat();
                return Some(self.unexpected(byte, b"after", &value));
            }
            State::End(dashes) => return self.end(dashes, byte),
            State::Lost(dashes) => return self.lose(dashes, byte),
        }
        None
    }

    /// The last parameter; the caller has made one.
    fn last(&mut self) -> &mut (Vec<u8>, Vec<u8>) {
        if self.command.params.is_empty() {
            self.command.params.push(Default::default());
        }
        let last = self.command.params.len() - 1;
        &mut self.command.params[last]
    }

    fn mark(&mut self, held: u8, byte: u8, text: &mut Vec<u8>) {
        let held = usize::from(held);
        if byte == MARK[held] {
            let all = held + 1 == MARK.len();
            self.state = if all { State::Gap } else { State::Mark(held as u8 + 1) };
            return;
        }
        text.extend_from_slice(&MARK[..held]);
        if byte == b'<' {
            self.state = State::Mark(1);
        } else {
            text.push(byte);
            self.state = State::Text;
        }
    }

    fn push_name(&mut self, byte: u8) -> Option<SsiEvent> {
        let name = &mut self.command.name;
        name.push(byte);
        if name.len() <= NAME_MAX {
            return None;
        }
        self.state = State::Lost(0);
        Some(SsiEvent::Fault([b"the \"", &name[..], b"...\" SSI command is too long"].concat()))
    }

    fn push_key(&mut self, byte: u8) -> Option<SsiEvent> {
        let key = &mut self.last().0;
        key.push(byte);
        if key.len() <= NAME_MAX {
            return None;
        }
        let key = mem::take(key);
        self.state = State::Lost(0);
        let name = &self.command.name[..];
        let parts: [&[u8]; 5] =
            [b"too long \"", &key, b"...\" parameter in \"", name, b"\" SSI command"];
        Some(SsiEvent::Fault(parts.concat()))
    }

    fn push_value(&mut self, byte: u8) -> Option<SsiEvent> {
        let max = self.value_max;
        let (key, value) = self.last();
        value.push(byte);
        if value.len() <= max {
            return None;
        }
        let (key, value) = (mem::take(key), mem::take(value));
        self.state = State::Lost(0);
        let name = &self.command.name[..];
        let middle = b"\" parameter in \"";
        let parts: [&[u8]; 7] =
            [b"too long \"", &value, b"...\" value of \"", &key, middle, name, b"\" SSI command"];
        Some(SsiEvent::Fault(parts.concat()))
    }

    /// A byte that is not allowed at its place.
    fn unexpected(&mut self, byte: u8, place: &[u8], what: &[u8]) -> SsiEvent {
        let is_dash = byte == b'-';
        self.state = State::Lost(u8::from(is_dash));
        let key = mem::take(&mut self.last().0);
        let name = &self.command.name[..];
        let middle = b"\" parameter in \"";
        let parts: [&[u8]; 10] = [
            b"unexpected \"",
            &[byte],
            b"\" symbol ",
            place,
            b" ",
            what,
            b"\"",
            &key,
            middle,
            name,
        ];
        SsiEvent::Fault([&parts.concat()[..], b"\" SSI command"].concat())
    }

    fn end(&mut self, dashes: u8, byte: u8) -> Option<SsiEvent> {
        match (dashes, byte) {
            (1, b'-') => self.state = State::End(2),
            (2, b'>') => {
                self.state = State::Text;
                return Some(SsiEvent::Command(mem::take(&mut self.command)));
            }
            _ => {
                self.state = State::Lost(0);
                let name = &self.command.name[..];
                let parts: [&[u8]; 5] =
                    [b"unexpected \"", &[byte], b"\" symbol in \"", name, b"\" SSI command"];
                return Some(SsiEvent::Fault(parts.concat()));
            }
        }
        None
    }

    fn lose(&mut self, dashes: u8, byte: u8) -> Option<SsiEvent> {
        match (dashes, byte) {
            (0 | 1, b'-') => self.state = State::Lost(dashes + 1),
            (2, b'>') => {
                self.state = State::Text;
                self.command = SsiCommand::default();
                return Some(SsiEvent::Broken);
            }
            _ => self.state = State::Lost(0),
        }
        None
    }
}
