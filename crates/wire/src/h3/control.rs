//! Receives the peer's unidirectional streams: control, QPACK, and unknown types (RFC 9114 §6.2).
//!
//! Owns the peer's settings and limits, and the rule that each critical stream exists once and
//! never ends. Frames that concern requests are reported as [`ControlNews`].
//!
//! ```text
//!   control:   Typing ──0x00──► Header ──SETTINGS──► Header ⇄ Payload, Skip   (never ends)
//! ```

use super::frame::{self, code, kind, setting, uni};
use super::load::{self, H3Load};
use super::recv::{charge_unknown, fatal};
use crate::sched::Priority;
use crate::{ConnError, qpack};

/// What the peer's control stream reports to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControlNews {
    /// The peer's `SETTINGS_QPACK_MAX_TABLE_CAPACITY`.
    TableCapacity(u64),
    /// `PRIORITY_UPDATE` for a request stream.
    Priority(u64, Priority),
}

/// The type of a unidirectional stream.
#[derive(Debug)]
pub(super) enum Uni {
    /// The first bytes of its type.
    Typing(Vec<u8>),
    Control,
    Encoder,
    Decoder,
    Ignored,
}

impl Uni {
    /// RFC 9114 §6.2.1, RFC 9204 §4.2: whether the stream must stay open.
    pub(super) const fn is_critical(&self) -> bool {
        matches!(self, Self::Control | Self::Encoder | Self::Decoder)
    }
}

/// The result of reading a stream type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// The type is incomplete.
    Not,
    /// The type is known; [`Uni`] has it.
    Known,
    /// The type is unknown: stop the stream and ignore it.
    Unknown,
}

#[derive(Clone, Copy, Debug, Default)]
enum Reading {
    #[default]
    Header,
    Payload(u64, usize),
    Skip(u64),
}

/// LIMIT: bytes of a known frame that are buffered.
const PAYLOAD_MAX: u64 = 2048;
/// LIMIT: settings in one frame.
const SETTINGS_MAX: usize = 64;

/// The peer's control stream, and the critical streams seen.
#[derive(Debug, Default)]
pub(super) struct H3ControlStream {
    seen: [bool; 4],
    has_settings: bool,
    reading: Reading,
    partial: Vec<u8>,
    push_id_max: Option<u64>,
    goaway: Option<u64>,
}

impl H3ControlStream {
    /// Reads the type of a new stream from the front of `input`.
    pub(super) fn identify(
        &mut self,
        uni: &mut Uni,
        input: &mut &[u8],
    ) -> Result<Typed, ConnError> {
        let Uni::Typing(partial) = uni else { return Ok(Typed::Known) };
        let kind = loop {
            if let Some((kind, _)) = frame::parse_varint(partial) {
                break kind;
            }
            let Some((&byte, rest)) = input.split_first() else { return Ok(Typed::Not) };
            partial.push(byte);
            *input = rest;
        };
        *uni = match kind {
            uni::CONTROL => Uni::Control,
            uni::ENCODER => Uni::Encoder,
            uni::DECODER => Uni::Decoder,
            // RFC 9114 §6.2.2: only servers push.
            uni::PUSH => return Err(creation("client opens a push stream")),
            _ => {
                *uni = Uni::Ignored;
                return Ok(Typed::Unknown);
            }
        };
        if std::mem::replace(&mut self.seen[kind as usize], true) {
            return Err(creation("client opens a critical stream twice"));
        }
        Ok(Typed::Known)
    }

    /// Receives bytes of the control stream.
    pub(super) fn receive(
        &mut self,
        mut input: &[u8],
        load: &mut H3Load,
        news: &mut Vec<ControlNews>,
    ) -> Result<(), ConnError> {
        while let Some((&byte, rest)) = input.split_first() {
            match self.reading {
                Reading::Header => {
                    self.partial.push(byte);
                    input = rest;
                    if let Some((kind, len, _)) = frame::parse_header(&self.partial) {
                        self.partial.clear();
                        self.frame(kind, len, load, news)?;
                    }
                }
                Reading::Payload(kind, len) => {
                    let taken = input.len().min(len - self.partial.len());
                    self.partial.extend_from_slice(&input[..taken]);
                    input = &input[taken..];
                    if self.partial.len() == len {
                        let payload = std::mem::take(&mut self.partial);
                        self.reading = Reading::Header;
                        self.payload(kind, &payload, news)?;
                    }
                }
                Reading::Skip(left) => {
                    let taken = left.min(input.len() as u64);
                    input = &input[taken as usize..];
                    self.reading = skip_to(left - taken);
                }
            }
        }
        Ok(())
    }

    /// RFC 9114 §6.2.1, §7.2: checks that a frame is allowed here.
    fn frame(
        &mut self,
        kind: u64,
        len: u64,
        load: &mut H3Load,
        news: &mut Vec<ControlNews>,
    ) -> Result<(), ConnError> {
        if !self.has_settings {
            if kind != kind::SETTINGS {
                let reason = "control stream does not begin with SETTINGS";
                return Err(fatal(code::MISSING_SETTINGS, reason));
            }
            self.has_settings = true;
        } else if kind == kind::SETTINGS {
            return Err(fatal(code::FRAME_UNEXPECTED, "second SETTINGS"));
        }
        match kind {
            kind::DATA | kind::HEADERS | kind::PUSH_PROMISE => {
                Err(fatal(code::FRAME_UNEXPECTED, "frame of a request on the control stream"))
            }
            _ if frame::is_forbidden(kind) => {
                Err(fatal(code::FRAME_UNEXPECTED, "frame type of HTTP/2"))
            }
            kind::CANCEL_PUSH
            | kind::SETTINGS
            | kind::GOAWAY
            | kind::MAX_PUSH_ID
            | kind::PRIORITY_UPDATE
            | kind::PRIORITY_UPDATE_PUSH => {
                load.charge(load::ODD)?;
                if len > PAYLOAD_MAX {
                    return Err(fatal(code::EXCESSIVE_LOAD, "too large a control frame"));
                }
                if len == 0 {
                    return self.payload(kind, &[], news);
                }
                self.reading = Reading::Payload(kind, len as usize);
                Ok(())
            }
            _ => {
                charge_unknown(load, len)?;
                self.reading = skip_to(len);
                Ok(())
            }
        }
    }

    fn payload(
        &mut self,
        kind: u64,
        payload: &[u8],
        news: &mut Vec<ControlNews>,
    ) -> Result<(), ConnError> {
        match kind {
            kind::SETTINGS => settings(payload, news),
            kind::PRIORITY_UPDATE => {
                let (id, used) = frame::parse_varint(payload).ok_or_else(misshapen)?;
                // RFC 9218 §7.2: only request streams have a priority.
                if id & 3 != 0 {
                    return Err(fatal(code::ID_ERROR, "PRIORITY_UPDATE for no request stream"));
                }
                news.push(ControlNews::Priority(id, Priority::parse(&payload[used..])));
                Ok(())
            }
            kind::PRIORITY_UPDATE_PUSH => {
                frame::parse_varint(payload).ok_or_else(misshapen)?;
                Err(fatal(code::ID_ERROR, "PRIORITY_UPDATE for a push that never was"))
            }
            kind::MAX_PUSH_ID => {
                let id = only_varint(payload)?;
                // RFC 9114 §7.2.7: it must not decrease.
                if self.push_id_max.is_some_and(|max| id < max) {
                    return Err(fatal(code::ID_ERROR, "MAX_PUSH_ID shrinks"));
                }
                self.push_id_max = Some(id);
                Ok(())
            }
            kind::GOAWAY => {
                let id = only_varint(payload)?;
                // RFC 9114 §5.2: it must not increase.
                if self.goaway.is_some_and(|max| id > max) {
                    return Err(fatal(code::ID_ERROR, "GOAWAY grows"));
                }
                self.goaway = Some(id);
                Ok(())
            }
            _ => {
                only_varint(payload)?;
                // RFC 9114 §7.2.3: we promised no push that could be cancelled.
                Err(fatal(code::ID_ERROR, "CANCEL_PUSH for a push that never was"))
            }
        }
    }
}

/// RFC 9114 §7.2.4: each identifier at most once, none of HTTP/2's, and booleans are 0 or 1.
fn settings(mut payload: &[u8], news: &mut Vec<ControlNews>) -> Result<(), ConnError> {
    let wrong = |reason| Err(fatal(code::SETTINGS_ERROR, reason));
    let mut seen = Vec::new();
    while !payload.is_empty() {
        let (id, value, used) = frame::parse_header(payload).ok_or_else(misshapen)?;
        payload = &payload[used..];
        if frame::is_forbidden_setting(id) {
            return wrong("setting of HTTP/2");
        }
        if seen.contains(&id) {
            return wrong("setting given twice");
        }
        if seen.len() == SETTINGS_MAX {
            return Err(fatal(code::EXCESSIVE_LOAD, "too many settings"));
        }
        seen.push(id);
        match id {
            setting::TABLE_CAPACITY => news.push(ControlNews::TableCapacity(value)),
            setting::CONNECT_PROTOCOL | setting::DATAGRAM if value > 1 => {
                return wrong("setting is neither 0 nor 1");
            }
            _ => {}
        }
    }
    Ok(())
}

/// RFC 9114 §7.1: a payload has its fields exactly.
fn only_varint(payload: &[u8]) -> Result<u64, ConnError> {
    match frame::parse_varint(payload) {
        Some((value, used)) if used == payload.len() => Ok(value),
        _ => Err(misshapen()),
    }
}

const fn misshapen() -> ConnError {
    fatal(code::FRAME_ERROR, "control frame with wrong length")
}

const fn creation(reason: &'static str) -> ConnError {
    fatal(code::STREAM_CREATION_ERROR, reason)
}

const fn skip_to(left: u64) -> Reading {
    if left == 0 { Reading::Header } else { Reading::Skip(left) }
}

/// The connection error for an invalid instruction on the peer's encoder stream.
pub(super) const fn encoder_stream(fault: qpack::QpackFault) -> ConnError {
    match fault {
        qpack::QpackFault::Invalid => {
            fatal(qpack::ENCODER_STREAM_ERROR, "invalid QPACK encoder instruction")
        }
        // As in nginx.
        qpack::QpackFault::TooLong => fatal(code::EXCESSIVE_LOAD, "too long a string"),
    }
}

/// The connection error for an invalid instruction on the peer's decoder stream.
pub(super) const fn decoder_stream(_: qpack::BadInstruction) -> ConnError {
    fatal(qpack::DECODER_STREAM_ERROR, "invalid QPACK decoder instruction")
}
