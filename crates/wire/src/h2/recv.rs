//! Receives bytes: the preface, frames, and DATA in pieces of any size.
//!
//! Owns the order in which frames are checked. DATA is reported as it arrives, so that no buffer
//! holds a whole frame of it. Every other frame is handled when it is complete.

use bolide_base::Now;
use bolide_base::limits::H2_FRAME_SIZE_MAX;

use super::abuse::{CountedFrame, calm};
use super::control::receive_goaway;
use super::frame::{FrameHeader, FrameKind, HEADER_LEN, PREFACE, WINDOW_INITIAL, WINDOW_MAX};
use super::frame::{code, flag, setting};
use super::streams::{Closed, Receiving, UNKNOWN};
use super::{H2Conn, H2Settings, Partial, Phase, check_accounts};
use crate::conn::UNBOUND;
use crate::pseudo::{CLOSED_EARLY, LARGER_THAN_DECLARED};
use crate::{ConnError, HeadPool, WireEvent, WireRefusal};

/// The arguments of the current call, for all handlers.
pub(super) struct H2RecvTurn<'a> {
    pub(super) settings: &'a H2Settings,
    pub(super) now: Now,
    pub(super) heads: &'a mut HeadPool,
    pub(super) events: &'a mut Vec<WireEvent>,
}

pub(super) const fn error(code: u32, reason: &'static str) -> ConnError {
    ConnError { code: code as u64, reason }
}

pub(super) const fn protocol(reason: &'static str) -> ConnError {
    error(code::PROTOCOL_ERROR, reason)
}

impl H2Conn {
    /// Consumes the peer's bytes, preface included, and returns how many. Offer the rest again with
    /// more bytes behind it (it never exceeds 16 KiB and a frame header).
    ///
    /// # Errors
    ///
    /// A connection error: a GOAWAY is queued, and every bound stream got its `Reset`.
    pub fn receive(
        &mut self,
        settings: &H2Settings,
        now: Now,
        input: &[u8],
        heads: &mut HeadPool,
        events: &mut Vec<WireEvent>,
    ) -> Result<usize, ConnError> {
        events.append(&mut self.deferred);
        self.started.get_or_insert(now.mono);
        self.abuse.begin(now, self.last_seen);
        let mut turn = H2RecvTurn { settings, now, heads, events };
        let result = match self.phase {
            // The error was reported once. Later bytes are ignored.
            Phase::Dead => return Ok(input.len()),
            Phase::New => {
                self.start(settings);
                self.receive_preface(&mut turn, input)
            }
            Phase::Preface => self.receive_preface(&mut turn, input),
            Phase::Open => self.receive_frames(&mut turn, input),
        };
        let result = result.inspect_err(|error| self.fail(*error, turn.events));
        check_accounts(self);
        result
    }

    /// Queues our preface (RFC 9113 §3.4), which need not wait for the client's.
    fn start(&mut self, settings: &H2Settings) {
        self.phase = Phase::Preface;
        let recv_window = settings.recv_window.min(WINDOW_MAX);
        self.flow.recv_initial = recv_window;
        self.decoder.bound_strings(settings.field_size_max);
        let head_size_max = u32::try_from(settings.head_size_max).unwrap_or(u32::MAX);
        let ours = [
            (setting::MAX_CONCURRENT_STREAMS, settings.max_concurrent_streams),
            (setting::INITIAL_WINDOW_SIZE, recv_window),
            (setting::MAX_HEADER_LIST_SIZE, head_size_max),
            (setting::NO_RFC7540_PRIORITIES, 1),
        ];
        self.output.settings(&ours);
        self.output.window_update(0, WINDOW_MAX - WINDOW_INITIAL);
        if self.is_going_away {
            self.output.goaway(0, code::NO_ERROR);
        }
    }

    fn receive_preface(
        &mut self,
        turn: &mut H2RecvTurn<'_>,
        input: &[u8],
    ) -> Result<usize, ConnError> {
        if let Some(rest) = input.strip_prefix(PREFACE) {
            self.phase = Phase::Open;
            return Ok(PREFACE.len() + self.receive_frames(turn, rest)?);
        }
        if PREFACE.starts_with(input) {
            return Ok(0);
        }
        Err(protocol("client sent invalid http2 preface"))
    }

    fn receive_frames(
        &mut self,
        turn: &mut H2RecvTurn<'_>,
        input: &[u8],
    ) -> Result<usize, ConnError> {
        let mut rest = input;
        loop {
            if !self.receive_partial(turn, &mut rest)? {
                break;
            }
            let Some(bytes) = rest.first_chunk::<HEADER_LEN>() else { break };
            let header = FrameHeader::parse(*bytes);
            self.check_header(&header)?;
            let used = match header.kind {
                FrameKind::Data => self.begin_data(turn, &header, &rest[HEADER_LEN..])?,
                FrameKind::Unknown => {
                    // RFC 9113 §5.5: frames of unknown types MUST be ignored.
                    self.abuse.charge(CountedFrame::Unknown)?;
                    self.partial.ignored = header.len;
                    Some(0)
                }
                _ => match rest[HEADER_LEN..].get(..header.len as usize) {
                    Some(payload) => {
                        self.receive_frame(turn, &header, payload)?;
                        Some(payload.len())
                    }
                    None => None,
                },
            };
            let Some(used) = used else { break };
            rest = &rest[HEADER_LEN + used..];
            // LIMIT: frames that a peer which does not read can make us queue.
            if self.output.is_crowded() {
                return Err(calm("client does not read what it makes us send"));
            }
        }
        Ok(input.len() - rest.len())
    }

    /// Checks a frame header before its payload is complete.
    #[inline]
    fn check_header(&self, header: &FrameHeader) -> Result<(), ConnError> {
        // RFC 9113 §4.2: we never raise SETTINGS_MAX_FRAME_SIZE.
        if header.len as usize > H2_FRAME_SIZE_MAX {
            return Err(error(code::FRAME_SIZE_ERROR, "client sent too large a frame"));
        }
        // RFC 9113 §4.3: no other frame may interrupt a field block.
        if let Some(block) = &self.block
            && (header.kind != FrameKind::Continuation || header.stream != block.stream)
        {
            return Err(protocol("client interrupted a header block"));
        }
        Ok(())
    }

    fn receive_frame(
        &mut self,
        turn: &mut H2RecvTurn<'_>,
        header: &FrameHeader,
        payload: &[u8],
    ) -> Result<(), ConnError> {
        match header.kind {
            FrameKind::Headers => self.receive_headers(turn, header, payload),
            FrameKind::Continuation => self.receive_continuation(turn, header, payload),
            FrameKind::Priority => self.receive_priority(turn, header, payload),
            FrameKind::RstStream => self.receive_reset(turn, header, payload),
            FrameKind::Settings => self.receive_settings(header, payload),
            FrameKind::Ping => self.receive_ping(header, payload),
            FrameKind::GoAway => receive_goaway(header, payload),
            FrameKind::WindowUpdate => self.receive_window_update(turn, header, payload),
            FrameKind::PriorityUpdate => self.receive_priority_update(header, payload),
            // RFC 9113 §8.4: a client cannot push.
            FrameKind::PushPromise => Err(protocol("client sent PUSH_PROMISE frame")),
            FrameKind::Data | FrameKind::Unknown => Ok(()),
        }
    }

    /// Begins a DATA frame (RFC 9113 §6.1); `None` if its pad length has not come.
    fn begin_data(
        &mut self,
        turn: &mut H2RecvTurn<'_>,
        header: &FrameHeader,
        payload: &[u8],
    ) -> Result<Option<usize>, ConnError> {
        let id = header.stream;
        if id.is_multiple_of(2) || id > self.last_seen {
            return Err(protocol("client sent DATA frame on an idle stream"));
        }
        let (used, padding) = match (header.has(flag::PADDED), header.len, payload.first()) {
            (false, ..) => (0, 0),
            (true, 1.., None) => return Ok(None),
            (true, 1.., Some(&padding)) if u32::from(padding) < header.len => {
                (1, u32::from(padding))
            }
            // RFC 9113 §6.1: padding as long as the payload is a connection error.
            (true, ..) => return Err(protocol("client sent padded DATA frame with wrong length")),
        };
        // RFC 9113 §6.9: the whole payload counts, padding included.
        if self.flow.recv.take(header.len).is_none() {
            return Err(error(code::FLOW_CONTROL_ERROR, "client violated connection flow control"));
        }
        self.flow.recv.credit(used, &mut self.output);
        let data = header.len - used - padding;
        let ends = header.has(flag::END_STREAM);
        if data == 0 && !ends {
            self.abuse.charge(CountedFrame::EmptyData)?;
        }
        debug_assert!(
            u64::from(self.partial.data) + u64::from(self.partial.padding) == 0,
            "a frame begins behind the whole payload of the previous one"
        );
        let slot = self.accept_data(turn, header, data)?;
        let stream = slot.map(|slot| self.streams.name(slot));
        self.partial = Partial { stream, data, padding, ignored: 0, ends };
        if let Some(slot) = slot {
            let stream = self.streams.at(slot);
            stream.credit(header.stream, used + padding, data, &mut self.output);
        }
        if data == 0 && padding == 0 {
            self.end_data(turn)?;
        }
        Ok(Some(used as usize))
    }

    /// Checks a DATA frame against its stream. Returns the slot that gets the data, if there is
    /// one.
    fn accept_data(
        &mut self,
        turn: &mut H2RecvTurn<'_>,
        header: &FrameHeader,
        data: u32,
    ) -> Result<Option<u32>, ConnError> {
        let id = header.stream;
        let Some(slot) = self.streams.find(id) else {
            self.abuse.charge(CountedFrame::Stray)?;
            return match self.streams.closed(id) {
                // RFC 9113 §5.1: after END_STREAM in both directions this is no race.
                Some(Closed::Ended) => {
                    Err(error(code::STREAM_CLOSED, "client sent DATA frame on a closed stream"))
                }
                // The frame may have been sent before the peer saw our reset.
                Some(Closed::ByUs) => Ok(None),
                Some(Closed::ByPeer) | None => {
                    self.stream_error(id, code::STREAM_CLOSED, turn.events).map(|()| None)
                }
            };
        };
        let stream = self.streams.at(slot);
        let wrong = if stream.receiving == Receiving::Ended {
            // RFC 9113 §5.1: half-closed (remote).
            Some(code::STREAM_CLOSED)
        } else {
            (stream.recv_window < header.len as i32).then_some(code::FLOW_CONTROL_ERROR)
        };
        if let Some(code) = wrong {
            return self.stream_error(id, code, turn.events).map(|()| None);
        }
        stream.recv_window -= header.len as i32;
        if stream.recv_left != UNKNOWN {
            match stream.recv_left.checked_sub(u64::from(data)) {
                Some(left) => stream.recv_left = left,
                None => return self.spoil(slot, LARGER_THAN_DECLARED, turn.events),
            }
        }
        Ok(Some(slot))
    }

    /// RFC 9113 §8.1.1: a request turns out to be malformed by what follows its head. As in nginx,
    /// the owner that reads the body responds with 400; the reset comes behind the response. The
    /// slot of the stream, if that goes on.
    #[cold]
    pub(super) fn spoil(
        &mut self,
        slot: u32,
        reason: &'static str,
        events: &mut Vec<WireEvent>,
    ) -> Result<Option<u32>, ConnError> {
        let stream = self.streams.at(slot);
        if !stream.is_active() {
            let id = self.streams.id(slot);
            return self.stream_error(id, code::PROTOCOL_ERROR, events).map(|()| None);
        }
        stream.recv_left = UNKNOWN;
        stream.is_malformed = true;
        if !std::mem::replace(&mut stream.discards, true) {
            let refusal = WireRefusal { status: 400, reason };
            match stream.user {
                UNBOUND => stream.held.get_or_insert_default().refusal = Some(refusal),
                user => events.push(WireEvent::BodyRefused { user, refusal }),
            }
        }
        self.abuse.waste(code::PROTOCOL_ERROR)?;
        Ok(Some(slot))
    }

    /// Continues a frame that comes in pieces; `false` if it needs more bytes.
    #[inline]
    fn receive_partial(
        &mut self,
        turn: &mut H2RecvTurn<'_>,
        rest: &mut &[u8],
    ) -> Result<bool, ConnError> {
        let Partial { data, padding, ignored, .. } = self.partial;
        if data | padding | ignored == 0 {
            return Ok(true);
        }
        let ignored_now = take(rest, ignored).len() as u32;
        self.partial.ignored -= ignored_now;
        let bytes = take(rest, data);
        if !bytes.is_empty() {
            self.partial.data -= bytes.len() as u32;
            self.receive_data(turn, bytes);
        }
        let padding_now = take(rest, padding).len() as u32;
        self.partial.padding -= padding_now;
        self.flow.recv.credit(padding_now, &mut self.output);
        let Partial { data: data_left, padding: padding_left, ignored: ignored_left, .. } =
            self.partial;
        if data_left | padding_left | ignored_left != 0 {
            return Ok(false);
        }
        if data | padding != 0 {
            self.end_data(turn)?;
        }
        Ok(true)
    }

    fn receive_data(&mut self, turn: &mut H2RecvTurn<'_>, bytes: &[u8]) {
        let len = bytes.len() as u32;
        let open = self.partial.stream.and_then(|stream| self.streams.slot(stream));
        let Some(slot) = open else {
            return self.flow.recv.credit(len, &mut self.output);
        };
        let stream = self.streams.at(slot);
        if !stream.discards {
            return stream.deliver(bytes, turn.events);
        }
        self.flow.recv.credit(len, &mut self.output);
    }

    /// A DATA frame is complete.
    fn end_data(&mut self, turn: &mut H2RecvTurn<'_>) -> Result<(), ConnError> {
        let Partial { stream, ends, .. } = std::mem::take(&mut self.partial);
        let open = stream.and_then(|stream| self.streams.slot(stream));
        match (open, ends) {
            (Some(slot), true) => self.end_body(slot, turn.events),
            _ => Ok(()),
        }
    }

    /// The peer ended its side of a stream.
    pub(super) fn end_body(
        &mut self,
        slot: u32,
        events: &mut Vec<WireEvent>,
    ) -> Result<(), ConnError> {
        let stream = self.streams.at(slot);
        stream.receiving = Receiving::Ended;
        if !matches!(stream.recv_left, 0 | UNKNOWN) {
            return self.spoil(slot, CLOSED_EARLY, events).map(|_| ());
        }
        if !stream.is_active() {
            let id = self.streams.id(slot);
            self.output.withhold_reset(id);
            self.streams.remove(slot, Closed::Ended);
        } else if !stream.discards {
            match stream.user {
                UNBOUND => stream.held.get_or_insert_default().is_complete = true,
                user => events.push(WireEvent::BodyEnd { user }),
            }
        }
        Ok(())
    }
}

/// Takes at most `len` bytes off the front.
fn take<'a>(rest: &mut &'a [u8], len: u32) -> &'a [u8] {
    let (taken, left) = rest.split_at(rest.len().min(len as usize));
    *rest = left;
    taken
}
