//! Reads request streams: frames, field sections, bodies (RFC 9114 §4.1, §7.1, §7.2).
//!
//! Owns the order of frames on a stream and the checks of a message. Its results are events, stream
//! errors and connection errors; it writes nothing.

use bolide_http::{HttpVersion, Method, Name, RequestBody, RequestHead};
use bytes::{Buf, Bytes};

use super::H3Settings;
use super::frame::{self, code, kind};
use super::load::{self, H3Load};
use super::streams::{H3Frame, H3Stream, H3StreamPhase, HeldH3Head, Unread};
use crate::conn::UNBOUND;
use crate::pseudo::{self, Flaw, Following, PseudoAssembly, PseudoRules};
use crate::qpack::{self, QpackDecoder, Section};
use crate::sched::Priority;
use crate::{ConnError, HeadPool, StreamId, WireEvent, WireRefusal};

/// A stream error or a connection error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum H3Fault {
    /// Reset the stream with this code.
    Stream(u64),
    /// Close the connection.
    Conn(ConnError),
}

impl From<ConnError> for H3Fault {
    fn from(error: ConnError) -> Self {
        Self::Conn(error)
    }
}

pub(super) const fn fatal(code: u64, reason: &'static str) -> ConnError {
    ConnError { code, reason }
}

/// LIMIT: bytes of a field section in the cache.
const REMEMBERED_MAX: usize = 1024;

/// The previous request head. Clients often repeat a section byte for byte.
#[derive(Debug, Default)]
pub(super) struct HeadCache {
    section: Vec<u8>,
    /// The changes of the table before it was decoded. The same bytes mean the same until the next.
    changes: u64,
    required: u64,
    has_end: bool,
    head: RequestHead,
}

impl HeadCache {
    #[inline]
    fn holds(&self, section: &[u8], changes: u64, following: Following) -> bool {
        self.section == section
            && self.changes == changes
            && self.has_end == (following == Following::Nothing)
            && !section.is_empty()
    }

    fn remember(&mut self, section: &[u8], following: Following, head: &RequestHead) {
        self.section.clear();
        if section.len() <= REMEMBERED_MAX {
            self.section.extend_from_slice(section);
            self.has_end = following == Following::Nothing;
            self.head.copy_from(head);
        }
    }
}

/// The parts of the connection that reading a stream needs.
pub(super) struct H3Intake<'a> {
    pub(super) settings: &'a H3Settings,
    pub(super) name: StreamId,
    pub(super) decoder: &'a mut QpackDecoder,
    pub(super) cache: &'a mut HeadCache,
    pub(super) load: &'a mut H3Load,
    pub(super) heads: &'a mut HeadPool,
    pub(super) events: &'a mut Vec<WireEvent>,
}

impl H3Intake<'_> {
    /// Receives the next bytes of a stream, and its end.
    pub(super) fn receive(
        &mut self,
        stream: &mut H3Stream,
        mut input: Bytes,
        fin: bool,
    ) -> Result<(), H3Fault> {
        while !input.is_empty() {
            match stream.recv.phase {
                H3StreamPhase::Ended | H3StreamPhase::Ignored => break,
                H3StreamPhase::Blocked => {
                    if let Some(held) = &mut stream.recv.held {
                        held.rest.extend_from_slice(&input);
                    }
                    break;
                }
                H3StreamPhase::Head | H3StreamPhase::Body | H3StreamPhase::Trailed => {}
            }
            match stream.recv.frame {
                H3Frame::Header => self.header(stream, &mut input)?,
                H3Frame::Data(left) => self.data(stream, left, &mut input)?,
                H3Frame::Section(len) => self.section(stream, len, &mut input, fin)?,
                H3Frame::Skip(left) => {
                    let taken = left.min(input.len() as u64);
                    input.advance(taken as usize);
                    stream.recv.frame = skip_to(left - taken);
                }
            }
        }
        if fin { self.end(stream) } else { Ok(()) }
    }

    /// Decodes the section that waited for insertions, then the bytes behind it.
    pub(super) fn resume(&mut self, stream: &mut H3Stream) -> Result<(), H3Fault> {
        let Some(held) = stream.recv.held.take() else { return Ok(()) };
        let HeldH3Head { section, phase, rest, fin, .. } = *held;
        stream.recv.phase = phase;
        let following = following(rest.is_empty() && fin);
        self.fields(stream, &section, following)?;
        self.receive(stream, Bytes::from(rest), fin)
    }

    #[inline]
    fn header(&mut self, stream: &mut H3Stream, input: &mut Bytes) -> Result<(), H3Fault> {
        let partial = &mut stream.recv.partial;
        let parsed = if partial.is_empty() {
            let parsed = frame::parse_header(input);
            if let Some((_, _, used)) = parsed {
                input.advance(used);
            } else {
                partial.extend_from_slice(input);
                input.clear();
            }
            parsed
        } else {
            partial.push(input.get_u8());
            frame::parse_header(partial)
        };
        let Some((kind, len, _)) = parsed else { return Ok(()) };
        partial.clear();
        self.frame(stream, kind, len)
    }

    /// RFC 9114 §4.1, §7.2: checks that a frame is allowed here.
    fn frame(&mut self, stream: &mut H3Stream, kind: u64, len: u64) -> Result<(), H3Fault> {
        let recv = &mut stream.recv;
        match (kind, recv.phase) {
            (kind::DATA, H3StreamPhase::Body) => {
                let total = recv.received.checked_add(len);
                let is_larger =
                    recv.length.is_some_and(|length| total.is_none_or(|total| total > length));
                if len == 0 {
                    self.load.charge(load::ODD)?;
                } else {
                    recv.frame = H3Frame::Data(len);
                }
                if is_larger {
                    self.spoil(stream, pseudo::LARGER_THAN_DECLARED)?;
                }
                Ok(())
            }
            (kind::HEADERS, H3StreamPhase::Head | H3StreamPhase::Body) => self.headers(stream, len),
            (kind::DATA, _) => Err(unexpected("DATA without a request or after its trailers")),
            (kind::HEADERS, _) => Err(unexpected("HEADERS after trailers")),
            (
                kind::CANCEL_PUSH
                | kind::SETTINGS
                | kind::PUSH_PROMISE
                | kind::GOAWAY
                | kind::MAX_PUSH_ID
                | kind::PRIORITY_UPDATE
                | kind::PRIORITY_UPDATE_PUSH,
                _,
            ) => Err(unexpected("frame of another stream on a request stream")),
            _ if frame::is_forbidden(kind) => Err(unexpected("frame type of HTTP/2")),
            _ => {
                charge_unknown(self.load, len)?;
                recv.frame = skip_to(len);
                Ok(())
            }
        }
    }

    fn headers(&mut self, stream: &mut H3Stream, len: u64) -> Result<(), H3Fault> {
        if len <= self.settings.head_size_max as u64 {
            if len == 0 {
                return self.fields(stream, &Bytes::new(), Following::Perhaps);
            }
            stream.recv.frame = H3Frame::Section(len as usize);
            return Ok(());
        }
        if stream.recv.phase == H3StreamPhase::Body {
            return Err(H3Fault::Stream(code::EXCESSIVE_LOAD));
        }
        // RFC 9204 §2.2.2.2: the section is not decoded.
        self.decoder.cancel(stream.id);
        let mut head = self.heads.take();
        head.version = HttpVersion::Http3;
        head.early = stream.recv.is_early;
        self.refuse(stream, head, pseudo::TOO_LARGE_REFUSAL);
        Ok(())
    }

    #[inline]
    fn section(
        &mut self,
        stream: &mut H3Stream,
        len: usize,
        input: &mut Bytes,
        fin: bool,
    ) -> Result<(), H3Fault> {
        let have = stream.recv.partial.len();
        if have + input.len() < len {
            stream.recv.partial.extend_from_slice(input);
            input.clear();
            return Ok(());
        }
        let section = if have == 0 {
            input.split_to(len)
        } else {
            let mut whole = std::mem::take(&mut stream.recv.partial);
            whole.extend_from_slice(&input.split_to(len - have));
            Bytes::from(whole)
        };
        stream.recv.frame = H3Frame::Header;
        self.fields(stream, &section, following(fin && input.is_empty()))
    }

    fn fields(
        &mut self,
        stream: &mut H3Stream,
        section: &Bytes,
        following: Following,
    ) -> Result<(), H3Fault> {
        let done = if stream.recv.phase == H3StreamPhase::Body {
            self.trailers(stream, section)?
        } else {
            self.head(stream, section, following)?
        };
        if let Section::Blocked { required } = done {
            let phase = stream.recv.phase;
            stream.recv.phase = H3StreamPhase::Blocked;
            let held = HeldH3Head {
                required,
                section: section.clone(),
                phase,
                rest: Vec::new(),
                fin: false,
            };
            stream.recv.held = Some(Box::new(held));
        }
        Ok(())
    }

    fn head(
        &mut self,
        stream: &mut H3Stream,
        section: &[u8],
        following: Following,
    ) -> Result<Section, H3Fault> {
        let mut head = self.heads.take();
        if self.cache.holds(section, self.decoder.changes(), following) {
            head.copy_from(&self.cache.head);
            let required = self.cache.required;
            self.decoder.acknowledge(stream.id, required);
            self.announce(stream, head, section.len());
            return Ok(Section::Complete { required });
        }
        let rules = PseudoRules {
            version: HttpVersion::Http3,
            head_size_max: self.settings.head_size_max,
            // The decoder bounds each string.
            fields_max: self.settings.fields_max,
            underscores_in_headers: self.settings.underscores_in_headers,
            ignore_invalid_headers: self.settings.ignore_invalid_headers,
        };
        let mut assembly = PseudoAssembly::new(&rules, &mut head);
        let done = self.decoder.decode(section, |label, value| assembly.field(label, value));
        let required = match done {
            Ok(Section::Complete { required }) => required,
            Ok(blocked) => {
                self.heads.put(head);
                return Ok(blocked);
            }
            Err(fault) => {
                self.heads.put(head);
                return Err(undecodable(fault));
            }
        };
        self.decoder.acknowledge(stream.id, required);
        match assembly.finish(following) {
            Ok(()) => {
                self.cache.remember(section, following, &head);
                self.cache.changes = self.decoder.changes();
                self.cache.required = required;
                self.announce(stream, head, section.len());
            }
            Err(flaw) => {
                head.early = stream.recv.is_early;
                head.wire_size = section.len() as u32;
                stream.is_malformed = matches!(flaw, Flaw::Malformed(_));
                self.refuse(stream, head, flaw.refusal());
                if stream.is_malformed {
                    self.load.charge(load::WASTED)?;
                }
            }
        }
        Ok(Section::Complete { required })
    }

    #[inline]
    fn announce(&mut self, stream: &mut H3Stream, mut head: Box<RequestHead>, size: usize) {
        head.early = stream.recv.is_early;
        head.wire_size = size as u32;
        stream.recv.phase = H3StreamPhase::Body;
        stream.recv.wants_body = head.body != RequestBody::None;
        stream.recv.length = match head.body {
            RequestBody::Length(length) => Some(length),
            RequestBody::None => Some(0),
            RequestBody::Unknown => None,
        };
        stream.is_head_request = head.method == Method::Head;
        (stream.is_announced, stream.announced_in) = (true, self.load.turn());
        // RFC 9218 §7: a PRIORITY_UPDATE overrides the field, even one that came earlier.
        if !stream.is_priority_pinned
            && let Some(text) = head.fields.get(Name::Priority)
        {
            stream.prioritise(Priority::parse(text));
        }
        self.events.push(WireEvent::Request { stream: self.name, head });
    }

    fn refuse(&mut self, stream: &mut H3Stream, head: Box<RequestHead>, refusal: WireRefusal) {
        stream.recv.phase = H3StreamPhase::Ignored;
        stream.recv.wants_body = false;
        stream.is_head_request = head.method == Method::Head;
        stream.is_announced = true;
        self.events.push(WireEvent::Refused { stream: self.name, head, refusal });
    }

    /// RFC 9114 §4.1.2: a request turns out to be malformed by what follows its head. As in nginx,
    /// the owner that reads the body responds with 400.
    #[cold]
    fn spoil(&mut self, stream: &mut H3Stream, reason: &'static str) -> Result<(), ConnError> {
        debug_assert!(stream.is_announced, "only a request turns out to be malformed");
        stream.is_malformed = true;
        stream.recv.length = None;
        if std::mem::take(&mut stream.recv.wants_body) {
            let refusal = WireRefusal { status: 400, reason };
            if stream.user == UNBOUND || stream.recv.unread.is_some() {
                stream.recv.unread.get_or_insert_with(Box::<Unread>::default).refusal =
                    Some(refusal);
            } else {
                self.events.push(WireEvent::BodyRefused { user: stream.user, refusal });
            }
        }
        self.load.charge(load::WASTED)
    }

    /// RFC 9114 §4.3: trailers are decoded to keep QPACK in step, checked, and dropped.
    fn trailers(&mut self, stream: &mut H3Stream, section: &[u8]) -> Result<Section, H3Fault> {
        let mut flaw = Ok(());
        let done = self.decoder.decode(section, |label, value| {
            if flaw.is_ok() {
                flaw = pseudo::check_trailer(label, label.traits(value));
            }
        });
        match done {
            Ok(Section::Complete { required }) => {
                self.decoder.acknowledge(stream.id, required);
                stream.recv.phase = H3StreamPhase::Trailed;
                if flaw.is_err() {
                    self.spoil(stream, "client sent invalid trailers")?;
                }
                Ok(Section::Complete { required })
            }
            Ok(blocked) => Ok(blocked),
            Err(fault) => Err(undecodable(fault)),
        }
    }

    fn data(&mut self, stream: &mut H3Stream, left: u64, input: &mut Bytes) -> Result<(), H3Fault> {
        let taken = left.min(input.len() as u64);
        let bytes = input.split_to(taken as usize);
        let recv = &mut stream.recv;
        recv.frame = if left == taken { H3Frame::Header } else { H3Frame::Data(left - taken) };
        recv.received += taken;
        debug_assert!(
            recv.length.is_none_or(|length| recv.received <= length),
            "DATA stays within content-length"
        );
        if !recv.wants_body {
            return Ok(());
        }
        recv.window += bytes.len();
        // Chunks from before `bind` may be unreported still. The order of the body must not change.
        if stream.user == UNBOUND || recv.unread.is_some() {
            recv.unread.get_or_insert_with(Box::<Unread>::default).chunks.push(bytes);
        } else {
            self.events.push(WireEvent::Body { user: stream.user, bytes });
        }
        Ok(())
    }

    fn end(&mut self, stream: &mut H3Stream) -> Result<(), H3Fault> {
        let recv = &mut stream.recv;
        match recv.phase {
            H3StreamPhase::Ended => return Ok(()),
            H3StreamPhase::Ignored => {
                recv.phase = H3StreamPhase::Ended;
                return Ok(());
            }
            H3StreamPhase::Blocked => {
                if let Some(held) = &mut recv.held {
                    held.fin = true;
                }
                return Ok(());
            }
            H3StreamPhase::Head | H3StreamPhase::Body | H3StreamPhase::Trailed => {}
        }
        // RFC 9114 §7.1: a stream must not end within a frame.
        if recv.frame != H3Frame::Header || !recv.partial.is_empty() {
            return Err(fatal(code::FRAME_ERROR, "stream ends within a frame").into());
        }
        if recv.phase == H3StreamPhase::Head {
            return Err(H3Fault::Stream(code::REQUEST_INCOMPLETE));
        }
        // RFC 9114 §4.1.2: the sum of the DATA frames must equal content-length.
        recv.phase = H3StreamPhase::Ended;
        if recv.length.is_some_and(|length| length != recv.received) {
            return Ok(self.spoil(stream, pseudo::CLOSED_EARLY)?);
        }
        if recv.wants_body {
            if stream.user == UNBOUND || recv.unread.is_some() {
                recv.unread.get_or_insert_with(Box::<Unread>::default).is_ended = true;
            } else {
                self.events.push(WireEvent::BodyEnd { user: stream.user });
            }
        }
        Ok(())
    }
}

/// Charges an unknown frame to the connection.
pub(super) fn charge_unknown(load: &mut H3Load, len: u64) -> Result<(), ConnError> {
    let skipped = u32::try_from(len / load::SKIPPED).unwrap_or(u32::MAX);
    load.charge(load::ODD.saturating_add(skipped))
}

const fn skip_to(left: u64) -> H3Frame {
    if left == 0 { H3Frame::Header } else { H3Frame::Skip(left) }
}

const fn following(is_nothing: bool) -> Following {
    if is_nothing { Following::Nothing } else { Following::Perhaps }
}

const fn unexpected(reason: &'static str) -> H3Fault {
    H3Fault::Conn(fatal(code::FRAME_UNEXPECTED, reason))
}

/// As in nginx, a section that cannot be decoded costs its stream: it has changed nothing of the
/// table, though RFC 9204 §2.2.3 calls it an error of the connection.
const fn undecodable(fault: qpack::QpackFault) -> H3Fault {
    H3Fault::Stream(match fault {
        qpack::QpackFault::Invalid => qpack::DECOMPRESSION_FAILED,
        qpack::QpackFault::TooLong => code::EXCESSIVE_LOAD,
    })
}
