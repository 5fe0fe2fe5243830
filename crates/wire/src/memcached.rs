//! The client of memcached's text protocol: `get` of one key at a time.
//!
//! It reads a `VALUE` line, as many bytes as that says, and `END` behind them; `END` alone is a key
//! that is not there. What a line has too much or too little makes it invalid, as in nginx.
//!
//! ```text
//!  answer   None ──start──▶ Line ──VALUE──▶ Value ──length reached──▶ Trailer ──END──▶ Over
//!                            └─────────────────END─────────────────────────────────────▲
//! ```

use bolide_base::SendChain;
use bolide_http::{MemcachedGet, Name, OriginHead};
use bytes::Bytes;

use crate::outgoing::{OutgoingBody, SendingState};
use crate::{BodySource, OriginConnSettings, OriginError, OriginEvent, StreamOwner};

/// What follows a value.
const TRAILER: &[u8] = b"\r\nEND\r\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemcachedReply {
    None,
    /// The first line is read.
    Line,
    /// So many bytes of the value are missing.
    Value(u64),
    /// So many bytes of what follows it came.
    Trailer(usize),
    Over,
}

/// A connection to memcached.
#[derive(Debug)]
pub struct MemcachedClient {
    settings: OriginConnSettings,
    outgoing: OutgoingBody,
    get: MemcachedGet,
    reply: MemcachedReply,
    /// The first line as far as it came.
    line: Vec<u8>,
    /// Whether the connection ended or did what it should not.
    is_spoiled: bool,
}

impl Default for MemcachedClient {
    fn default() -> Self {
        Self::new()
    }
}

impl MemcachedClient {
    /// A new connection.
    #[must_use]
    pub fn new() -> Self {
        Self {
            settings: OriginConnSettings::default(),
            outgoing: OutgoingBody::default(),
            get: MemcachedGet::default(),
            reply: MemcachedReply::None,
            line: Vec::new(),
            is_spoiled: false,
        }
    }

    /// Begins a request, see [`crate::OriginConn::start`]. There is no body.
    pub fn start(&mut self, get: &MemcachedGet, settings: &OriginConnSettings) {
        assert!(self.is_idle(), "one request at a time");
        self.outgoing.begin();
        self.settings = *settings;
        self.get.clone_from(get);
        self.reply = MemcachedReply::Line;
        self.line.clear();
        // A space or an end of a line within the key would begin another word or command.
        if self.get.key.is_empty() || self.get.key.iter().any(|byte| *byte <= b' ') {
            self.outgoing.sending = SendingState::Broken;
            return;
        }
        self.outgoing.buffer.extend_from_slice(b"get ");
        self.outgoing.buffer.extend_from_slice(&self.get.key);
        self.outgoing.buffer.extend_from_slice(b"\r\n");
        self.outgoing.sending = SendingState::Sent;
    }

    /// Appends what can be sent, see [`crate::OriginConn::transmit`].
    pub fn transmit(
        &mut self,
        _: usize,
        out: &mut SendChain,
        _: StreamOwner,
        _: &mut impl BodySource,
    ) {
        self.outgoing.flush(out);
    }

    /// There is no body that could have bytes again.
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

    /// Whether the key cannot be asked for.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.outgoing.is_broken()
    }

    /// The response is no longer needed: the rest of it spoils the connection.
    pub fn abort(&mut self) {
        if !matches!(self.reply, MemcachedReply::None | MemcachedReply::Over) {
            self.is_spoiled = true;
            self.outgoing.stop();
        }
    }

    /// Whether the connection may carry a request.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        match self.reply {
            MemcachedReply::None => !self.is_spoiled,
            MemcachedReply::Over => {
                self.settings.keep && self.is_request_sent() && !self.is_spoiled
            }
            _ => false,
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
        let received = self.receive_reply(input, events);
        if received.is_err() {
            self.is_spoiled = true;
            self.outgoing.stop();
        }
        received.map(|()| input.len())
    }

    fn receive_reply(
        &mut self,
        mut input: &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        while let Some((&first, behind)) = input.split_first() {
            match self.reply {
                MemcachedReply::None => {
                    return Err(OriginError::Invalid(
                        b"memcached sent a response unasked"[..].into(),
                    ));
                }
                MemcachedReply::Line => {
                    debug_assert!(self.line.len() <= self.settings.head_max, "a line has a limit");
                    let end = memchr::memchr(b'\n', input);
                    let (piece, rest) = input.split_at(end.map_or(input.len(), |end| end + 1));
                    let room = self.settings.head_max - self.line.len();
                    // As in nginx, the line has to end within the buffer.
                    if piece.len() > room || end.is_none() && piece.len() == room {
                        return Err(OriginError::HeadTooBig);
                    }
                    self.line.extend_from_slice(piece);
                    input = rest;
                    if end.is_some() {
                        self.take_line(events)?;
                    }
                }
                MemcachedReply::Value(left) => {
                    let size = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
                    let (piece, rest) = input.split_at(size);
                    events.push(OriginEvent::Body(Bytes::copy_from_slice(piece)));
                    self.reply = match left - size as u64 {
                        0 => MemcachedReply::Trailer(0),
                        left => MemcachedReply::Value(left),
                    };
                    input = rest;
                }
                MemcachedReply::Trailer(at) if TRAILER.get(at) == Some(&first) => {
                    self.reply = MemcachedReply::Trailer(at + 1);
                    input = behind;
                    if at + 1 == TRAILER.len() {
                        self.end(events);
                    }
                }
                MemcachedReply::Trailer(_) => {
                    events.push(OriginEvent::BadTrailer);
                    self.is_spoiled = true;
                    self.end(events);
                }
                MemcachedReply::Over => {
                    self.is_spoiled = true;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, events: &mut Vec<OriginEvent>) {
        debug_assert!(self.reply != MemcachedReply::Over, "a response ends once");
        self.reply = MemcachedReply::Over;
        self.outgoing.stop();
        events.push(OriginEvent::End { app_status: 0 });
    }

    /// The first line is complete.
    fn take_line(&mut self, events: &mut Vec<OriginEvent>) -> Result<(), OriginError> {
        let line = std::mem::take(&mut self.line);
        debug_assert!(line.ends_with(b"\n"), "a line is whole");
        let wire_size = u32::try_from(line.len()).unwrap_or(u32::MAX);
        let ended = line.strip_suffix(b"\r\n").ok_or(&line[..line.len() - 1]);
        let line = ended.map_err(invalid_response)?;
        if line == b"END" {
            events.push(OriginEvent::Missing(Bytes::copy_from_slice(&self.get.key)));
            let head = OriginHead { status: 404, wire_size, ..OriginHead::default() };
            events.push(OriginEvent::Head(Box::new(head)));
            self.end(events);
            return Ok(());
        }
        let head = self.read_value(line)?;
        let length = head.fields.get(Name::ContentLength).and_then(number).unwrap_or_default();
        events.push(OriginEvent::Head(Box::new(OriginHead { wire_size, ..head })));
        self.reply = match length {
            0 => MemcachedReply::Trailer(0),
            length => MemcachedReply::Value(length),
        };
        if self.settings.answers_head {
            // As in nginx, what is not wanted is not read.
            self.is_spoiled = true;
            self.end(events);
        }
        Ok(())
    }

    /// Reads `VALUE KEY FLAGS LENGTH`.
    fn read_value(&self, line: &[u8]) -> Result<OriginHead, OriginError> {
        let wrong = |what: &str| {
            let start = format!("memcached sent invalid {what} in response \"").into_bytes();
            let text = [&start, line, b"\" for key \"", &self.get.key, b"\""].concat();
            OriginError::InvalidHead(text.into())
        };
        let rest = line.strip_prefix(b"VALUE ").ok_or_else(|| invalid_response(line))?;
        let rest = rest.strip_prefix(&*self.get.key).ok_or_else(|| wrong("key"))?;
        let rest = rest.strip_prefix(b" ").ok_or_else(|| invalid_response(line))?;
        let space = memchr::memchr(b' ', rest).ok_or_else(|| invalid_response(line))?;
        let (flags, length) = (&rest[..space], &rest[space + 1..]);
        let flags = match self.get.gzip_flag {
            0 => 0,
            _ => number(flags).ok_or_else(|| wrong("flags"))?,
        };
        number(length).ok_or_else(|| wrong("length"))?;
        let mut head = OriginHead { status: 200, ..OriginHead::default() };
        if !self.get.kind.is_empty() {
            head.fields.push(Name::ContentType, &self.get.kind);
        }
        head.fields.push(Name::ContentLength, length);
        if flags & u64::from(self.get.gzip_flag) != 0 {
            head.fields.push(Name::ContentEncoding, b"gzip");
        }
        head.fields.push(Name::AcceptRanges, b"bytes");
        Ok(head)
    }

    /// Bytes of the response that are buffered until the rest arrives.
    pub(crate) const fn held(&self) -> usize {
        self.line.len()
    }

    /// Handles the end of input, see [`crate::OriginConn::handle_eof`].
    ///
    /// # Errors
    ///
    /// [`OriginError`] if the response is incomplete.
    pub fn handle_eof(&mut self, _: &mut Vec<OriginEvent>) -> Result<(), OriginError> {
        self.is_spoiled = true;
        let error = match self.reply {
            MemcachedReply::None | MemcachedReply::Over => return Ok(()),
            MemcachedReply::Line => OriginError::ClosedBeforeHead,
            MemcachedReply::Value(_) | MemcachedReply::Trailer(_) => OriginError::ClosedWithinBody,
        };
        self.outgoing.stop();
        Err(error)
    }
}

/// A number in decimal digits, and nothing else.
fn number(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).ok().filter(|_| is_number)?;
    text.parse().ok().filter(|number| *number <= i64::MAX as u64)
}

fn invalid_response(line: &[u8]) -> OriginError {
    let text = [b"memcached sent invalid response: \"", line, b"\""].concat();
    OriginError::InvalidHead(text.into())
}

#[cfg(test)]
mod tests;
