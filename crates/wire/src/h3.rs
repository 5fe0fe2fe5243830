//! The HTTP/3 server machine (RFC 9114) over the streams of a QUIC implementation.
//!
//! Owns the streams of one connection, its control and QPACK streams, and the order of writing. It
//! knows no packets, timers and congestion control: each call that needs QUIC gets a
//! [`QuicStreams`].
//!
//! ```text
//!             receive                        respond                transmit
//!   QUIC ──────────────► Event::Request ──────────────► head, body ──────────► QUIC, Event::Sent
//!          reset, stop    ▲ (insertions)                pull ⇄ room
//! ```
//!
//! INVARIANT: calls without a `QuicStreams` only record orders for QUIC. [`H3Conn::transmit`]
//! executes them before anything else, so [`H3Conn::has_output`] is true until then.

pub mod frame;

mod cancelled;
mod conn;
mod control;
mod load;
mod recv;
mod send;
mod streams;

use bolide_base::limits::BODY_WINDOW;
use bolide_base::{Bound, SendChain};
use bolide_http::status::is_bodiless;
use bolide_http::{FieldMap, ResponseHead};
use bytes::Bytes;

use crate::qpack::{QpackDecoder, QpackEncoder};
use crate::sched::{Priority, Sched};
use crate::{
    Awaiting, BodySource, ConnError, HeadPool, RespondError, StreamId, StreamOwner, WireEvent,
};

use control::{ControlNews, H3ControlStream, Uni};
use frame::{code, kind, setting, uni};
pub use load::EXCESSIVE_LOAD;
use load::H3Load;
use recv::HeadCache;
use send::{H3SendTurn, Out, ReplyCache};
use streams::{H3Body, H3StreamFate, H3StreamPhase, H3Streams};

/// A stream that QUIC cannot write to any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamGone;

/// The QUIC connection, as far as HTTP/3 needs it.
///
/// Calls for streams that are gone have no effect.
pub trait QuicStreams {
    /// Opens a unidirectional stream; `None` while the peer's stream limit forbids it.
    fn open_uni(&mut self) -> Option<u64>;
    /// Writes as much of `bytes` as flow control allows, and advances it.
    ///
    /// A partial write arms a later [`H3Conn::handle_writable`].
    ///
    /// # Errors
    ///
    /// [`StreamGone`] if the stream was stopped or reset.
    fn write(&mut self, stream: u64, bytes: &mut Bytes) -> Result<usize, StreamGone>;
    /// Bytes that [`Self::write`] would accept now; 0 arms a later [`H3Conn::handle_writable`].
    fn room(&mut self, stream: u64) -> usize;
    /// Ends our side of the stream.
    fn finish(&mut self, stream: u64);
    /// Resets our side of the stream (`RESET_STREAM`).
    fn reset(&mut self, stream: u64, code: u64);
    /// Asks the peer to end its side (`STOP_SENDING`). Nothing more is received on the stream.
    fn stop(&mut self, stream: u64, code: u64);
    /// Sets the priority of a stream. Higher values go first; 0 is the default.
    fn set_priority(&mut self, stream: u64, priority: i32);
}

/// The configuration of HTTP/3 connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct H3Settings {
    /// LIMIT: concurrent requests. QUIC enforces it by its stream limit; here it sizes other
    /// limits.
    pub max_concurrent_streams: u32,
    /// LIMIT: bytes of one request head, compressed or not.
    pub head_size_max: usize,
    /// LIMIT: bytes of one field.
    pub field_size_max: usize,
    /// LIMIT: `max_headers`: field lines of a head, without cookies.
    pub fields_max: u32,
    /// LIMIT: bytes of the dynamic table that the peer's encoder may use.
    pub table_capacity: usize,
    /// LIMIT: streams that may wait for insertions into that table.
    pub blocked_streams: u32,
    /// `underscores_in_headers`.
    pub underscores_in_headers: bool,
    /// `ignore_invalid_headers`.
    pub ignore_invalid_headers: bool,
    /// `keepalive_requests`: the request with this number is the last.
    pub keepalive_requests: u64,
}

/// An order for QUIC that the next `transmit` executes.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// Reset and stop the stream in this slot.
    Abort(u32, u64),
    /// Reset and stop a stream that has no slot.
    Reject(u64),
    /// Reset a stream that the peer reset before any of it was read.
    Forsake(u64),
    /// Stop a unidirectional stream of an unknown type.
    StopUnknown(u64),
    /// Set the stream's priority, if the slot still has that stream.
    Prioritise(u32, u64),
}

/// LIMIT: priorities that came before their streams. A new one replaces the oldest.
const EARLY_PRIORITIES_MAX: usize = 32;
/// LIMIT: streams beyond `max_concurrent_streams` that may be open for us and closed for QUIC. More
/// are rejected.
const LINGERING_MAX: usize = 64;

/// The kind of a response head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum H3HeadKind {
    /// Another one follows.
    Interim,
    Final,
}

/// One HTTP/3 connection.
#[derive(Debug, Default)]
pub struct H3Conn {
    streams: H3Streams,
    sched: Sched,
    unis: Vec<(u64, Uni)>,
    control: H3ControlStream,
    decoder: QpackDecoder,
    encoder: QpackEncoder,
    control_out: Out,
    encoder_out: Out,
    decoder_out: Out,
    heads: HeadCache,
    replies: ReplyCache,
    load: H3Load,
    /// Slots of streams whose field section waits for insertions.
    blocked: Vec<u32>,
    /// Slots of streams that had unread body or an unread end at `bind`.
    resumed: Vec<u32>,
    /// Owners that were bound to streams that had been reset.
    late: Vec<StreamOwner>,
    orders: Vec<Order>,
    news: Vec<ControlNews>,
    early_priorities: Vec<(u64, Priority)>,
    /// The first stream id that is not accepted, once GOAWAY was sent.
    goaway: Option<u64>,
    /// The first stream id that no request has used.
    next_id: u64,
    requests: u64,
    streams_max: u32,
}

impl H3Conn {
    /// A connection before `start`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the control stream and sends SETTINGS. Call it once, before anything is received.
    pub fn start(&mut self, settings: &H3Settings, quic: &mut impl QuicStreams) {
        self.streams_max = settings.max_concurrent_streams;
        self.decoder = QpackDecoder::new(settings.table_capacity);
        self.decoder.bound_strings(settings.field_size_max);
        let mut payload = Vec::new();
        for (id, value) in [
            (setting::TABLE_CAPACITY, settings.table_capacity as u64),
            (setting::BLOCKED_STREAMS, u64::from(settings.blocked_streams)),
            (setting::FIELD_SECTION_SIZE, settings.head_size_max as u64),
        ] {
            frame::encode_header(&mut payload, id, value);
        }
        let pending = self.control_out.pending(uni::CONTROL);
        frame::encode_header(pending, kind::SETTINGS, payload.len() as u64);
        pending.extend_from_slice(&payload);
        self.control_out.flush(quic);
    }

    /// Receives bytes of a stream in order, and its end. `early` means that they came as 0-RTT
    /// data.
    ///
    /// The caller passes nothing of a stream after its end, its reset, or our stop.
    ///
    /// # Errors
    ///
    /// A connection error: close the connection with it.
    #[expect(clippy::too_many_arguments, reason = "one call per stream read, each part its own")]
    pub fn receive(
        &mut self,
        settings: &H3Settings,
        stream: u64,
        bytes: Bytes,
        fin: bool,
        early: bool,
        heads: &mut HeadPool,
        events: &mut Vec<WireEvent>,
    ) -> Result<(), ConnError> {
        match stream & 3 {
            0 => {}
            2 => return self.receive_uni(settings, stream, &bytes, fin, heads, events),
            _ => return Ok(()),
        }
        let slot = match self.streams.slot_of(stream) {
            Some(slot) => slot,
            None => match self.admit(settings, stream)? {
                Some(slot) => slot,
                None => return Ok(()),
            },
        };
        if let Some(stream) = self.streams.at(slot)
            && stream.recv.phase == H3StreamPhase::Head
        {
            stream.recv.is_early |= early;
        }
        self.read(settings, slot, Some((bytes, fin)), heads, events)
    }

    /// QUIC accepts bytes of this stream again.
    pub fn handle_writable(&mut self, stream: u64) {
        if let Some(slot) = self.streams.slot_of(stream) {
            if let Some(stream) = self.streams.at(slot) {
                stream.send.is_blocked = false;
                stream.send.turns = stream.send.turns.wrapping_add(1);
            }
            return self.queue(slot);
        }
        for out in [&mut self.control_out, &mut self.encoder_out, &mut self.decoder_out] {
            if out.is(stream) {
                out.unblock();
            }
        }
    }

    /// The peer allows more unidirectional streams.
    pub fn handle_uni_available(&mut self) {
        for out in [&mut self.control_out, &mut self.encoder_out, &mut self.decoder_out] {
            out.open_again();
        }
    }

    /// Sets the owner of a request. The next `transmit` reports body bytes that came before.
    pub fn bind(&mut self, stream: StreamId, user: StreamOwner) {
        let Some((slot, stream)) = self.streams.find(stream) else { return };
        stream.user = user;
        if stream.fate != H3StreamFate::Open {
            self.late.push(user);
            if stream.fate == H3StreamFate::Dead {
                self.forget(slot);
            }
        } else if stream.recv.unread.is_some() {
            self.resumed.push(slot);
        }
    }

    /// The owners of the requests on streams that are open.
    pub fn users(&self) -> impl Iterator<Item = StreamOwner> {
        self.streams.users()
    }

    /// Streams that cannot proceed until the peer sends something.
    pub fn awaiting(&self) -> impl Iterator<Item = Awaiting> {
        self.streams.awaiting()
    }

    /// Discards the rest of a request body, and asks the peer not to send it.
    pub fn discard_body(&mut self, stream: StreamId, quic: &mut impl QuicStreams) {
        let Some((slot, stream)) = self.streams.find(stream) else { return };
        stream.recv.wants_body = false;
        stream.recv.unread = None;
        stream.recv.window = 0;
        if stream.fate == H3StreamFate::Open && stream.recv.phase != H3StreamPhase::Ended {
            // RFC 9114 §4.1: a server may stop reading a request with H3_NO_ERROR.
            quic.stop(stream.id, code::NO_ERROR);
            stream.recv.phase = H3StreamPhase::Ended;
            stream.recv.held = None;
            self.decoder.cancel(stream.id);
            self.blocked.retain(|&other| other != slot);
        }
    }

    /// Returns the room of consumed body bytes.
    pub fn body_consumed(&mut self, stream: StreamId, bytes: usize) {
        if let Some((_, stream)) = self.streams.find(stream) {
            stream.recv.window = stream.recv.window.saturating_sub(bytes);
        }
    }

    /// How many bytes of a stream to read from QUIC. What is not wanted stays there, so that QUIC's
    /// flow control stops the peer. Ask again after `body_consumed` and after any `receive`.
    #[must_use]
    pub fn wanted(&self, stream: u64) -> usize {
        let found = self.streams.slot_of(stream).and_then(|slot| self.streams.look(slot));
        let held = found.map_or(0, |stream| {
            let rest = stream.recv.held.as_ref().map_or(0, |held| held.rest.len());
            stream.recv.window + rest
        });
        (BODY_WINDOW as usize).saturating_sub(held)
    }

    /// Announces a response by the head of an interim one (1xx except 101).
    pub fn announce(&mut self, stream: StreamId, head: &ResponseHead) {
        let _is_late = self.queue_head(stream, head, H3HeadKind::Interim);
    }

    /// Responds to a request.
    ///
    /// # Errors
    ///
    /// [`RespondError`] if the stream is gone or its response has begun.
    pub fn respond(&mut self, stream: StreamId, head: &ResponseHead) -> Result<(), RespondError> {
        self.queue_head(stream, head, H3HeadKind::Final)
    }

    fn queue_head(
        &mut self,
        stream: StreamId,
        head: &ResponseHead,
        kind: H3HeadKind,
    ) -> Result<(), RespondError> {
        let (slot, stream) = self.streams.find(stream).ok_or(RespondError)?;
        if stream.fate == H3StreamFate::Dead {
            self.forget(slot);
            return Err(RespondError);
        }
        if stream.fate == H3StreamFate::Aborted {
            stream.is_announced = false;
        }
        if stream.send.is_answered || !stream.is_announced {
            return Err(RespondError);
        }
        let encoded = self.replies.encode(&mut self.encoder, head, stream.is_head_request);
        self.encoder.track(stream.id, encoded.references);
        let send = &mut stream.send;
        send.head_bytes += encoded.bytes.len() as u64;
        if send.head.is_empty() && send.rest.is_empty() {
            send.head = encoded.bytes;
        } else {
            send.rest.push_back(encoded.bytes);
        }
        if kind == H3HeadKind::Final {
            send.is_answered = true;
            send.body = encoded.body;
            send.is_framed = encoded.body == H3Body::Unknown;
            send.is_trailed = head.trailed && !stream.is_head_request && !is_bodiless(head.status);
        }
        self.queue(slot);
        Ok(())
    }

    /// Queues `100 (Continue)`, unless the client has its response.
    pub fn send_continue(&mut self, stream: StreamId) {
        self.announce(stream, &ResponseHead { status: 100, ..ResponseHead::default() });
    }

    /// The response that was given to [`Self::respond`] has a pace: its head is sent as
    /// [`BodySource::admit`] allows.
    pub fn keep_pace(&mut self, stream: StreamId) {
        if let Some((_, stream)) = self.streams.find(stream) {
            stream.send.is_paced = stream.send.is_answered;
        }
    }

    /// A body that was pending has bytes again.
    pub fn body_ready(&mut self, stream: StreamId) {
        if let Some((slot, stream)) = self.streams.find(stream) {
            (stream.send.is_pending, stream.send.is_held) = (false, false);
            self.queue(slot);
        }
    }

    /// Resets both sides of a stream. No event follows.
    pub fn reset(&mut self, stream: StreamId, code: u64, quic: &mut impl QuicStreams) {
        let Some((slot, stream)) = self.streams.find(stream) else { return };
        if stream.fate == H3StreamFate::Open {
            quic.reset(stream.id, code);
            if stream.recv.phase != H3StreamPhase::Ended {
                quic.stop(stream.id, code);
                self.decoder.cancel(stream.id);
            }
            self.forget(slot);
        } else if stream.fate == H3StreamFate::Dead {
            self.forget(slot);
        } else {
            stream.is_announced = false;
        }
    }

    /// Writes what can be sent: about `room` bytes at most, urgent streams first.
    ///
    /// `scratch` is empty before and after.
    pub fn transmit(
        &mut self,
        room: usize,
        scratch: &mut SendChain,
        events: &mut Vec<WireEvent>,
        bodies: &mut impl BodySource,
        quic: &mut impl QuicStreams,
    ) {
        debug_assert!(scratch.is_empty(), "the scratch chain is lent empty");
        self.obey_orders(quic);
        self.report_waiting(events);
        let (mut room, mut bound) = (room, Bound::new());
        while bound.goes_on()
            && let Some(slot) = self.sched.first()
        {
            let Some(stream) = self.streams.at(slot) else {
                self.sched.remove(slot);
                continue;
            };
            if std::mem::take(&mut stream.has_new_priority) {
                quic.set_priority(stream.id, 3 - i32::from(stream.priority.urgency));
            }
            match send::serve(stream, &mut room, scratch, bodies, quic) {
                H3SendTurn::Done => self.complete(slot, events, quic),
                H3SendTurn::Trailers => {
                    let mut fields = FieldMap::new();
                    bodies.trailers(stream.user, &mut fields);
                    send::trail(stream, &mut self.encoder, &fields);
                }
                H3SendTurn::Blocked => {
                    stream.send.is_blocked = true;
                    self.unqueue(slot);
                }
                H3SendTurn::Pending => self.unqueue(slot),
                H3SendTurn::Spent if room == 0 => break,
                H3SendTurn::Spent => self.sched.rotate(slot),
                H3SendTurn::Gone => self.cut(slot, code::REQUEST_CANCELLED, events, quic),
                H3SendTurn::Broken => self.cut(slot, code::INTERNAL_ERROR, events, quic),
            }
        }
        self.flush_own(quic);
        debug_assert!(scratch.is_empty(), "no pulled byte stays in the scratch chain");
        debug_assert!(
            self.orders.is_empty() && self.late.is_empty() && self.resumed.is_empty(),
            "recorded orders and events are executed with the first `QuicStreams`"
        );
        debug_assert_eq!(
            self.sched.len(),
            self.streams.queued(),
            "exactly the queued streams are in the scheduler"
        );
    }

    /// Begins a graceful shutdown (RFC 9114 §5.2).
    ///
    /// The first call accepts requests that may be in flight; the second one does not.
    pub fn shutdown(&mut self, quic: &mut impl QuicStreams) {
        match self.goaway {
            // What may be in flight is accepted.
            None => self.send_goaway(self.next_id + 4 * u64::from(self.streams_max)),
            Some(id) if id > self.next_id => self.send_goaway(self.next_id),
            Some(_) => {}
        }
        self.control_out.flush(quic);
    }

    /// Whether `transmit` has work to do.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.sched.is_empty()
            || !self.orders.is_empty()
            || !self.resumed.is_empty()
            || !self.late.is_empty()
            || self.decoder.has_output()
            || self.encoder.has_output()
            || self.control_out.has_output()
            || self.encoder_out.has_output()
            || self.decoder_out.has_output()
    }

    /// Whether no request is open and no output waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.streams.live() == 0 && !self.has_output()
    }

    /// Whether GOAWAY was sent. Once idle, close the connection with `H3_NO_ERROR`.
    #[must_use]
    pub const fn is_closing(&self) -> bool {
        self.goaway.is_some()
    }

    /// The number of open requests.
    #[must_use]
    pub fn streams_open(&self) -> u32 {
        u32::try_from(self.streams.live()).unwrap_or(u32::MAX)
    }

    /// Requests received on this connection.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.requests
    }
}

#[cfg(test)]
#[path = "../../fuzz-entries/src/h3.rs"]
pub mod fuzz;
#[cfg(test)]
mod tests;
