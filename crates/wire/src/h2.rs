//! HTTP/2 for servers (RFC 9113, RFC 9218): bytes in, events out, responses pulled.
//!
//! Owns frames, streams, windows, field compression and the defence against peers that cost more
//! than they ask. It refuses server push, RFC 7540 priorities and upgrades from HTTP/1.1; prior
//! knowledge in the clear is the same machine.
//!
//! ```text
//!   receive ─ preface ─► SETTINGS ─► open ──────── ConnError ───────► dead: GOAWAY, then close
//!                                     │  shutdown, keepalive_requests
//!                                     ▼
//!                                  going away: open streams are served, then close
//!
//!   respond ─► queue (heads and control frames, first in first out) ─► transmit ─► out
//!   bodies  ─────────────── pulled by the scheduler's choice ────────────┘
//! ```
//!
//! The invariant easiest to break: a field block that was encoded or received changes a table, so
//! it is sent or decoded whatever becomes of its stream, and in that order.

mod abuse;
mod control;
mod frame;
pub mod fuzz;
mod head;
mod headers;
mod recv;
mod replay;
mod send;
mod streams;

pub use frame::code;
pub use fuzz::fuzz;

use std::time::Duration;

use bolide_base::Instant;
use bolide_base::limits::{BODY_WINDOW, CONN_WINDOW, HEAD_SIZE_MAX, STREAMS_PER_CONN_MAX};
use bolide_http::Scheme;
use bytes::Bytes;

use crate::conn::UNBOUND;
use crate::hpack::{HpackDecoder, HpackEncoder};
use crate::sched::{Priority, Sched};
use crate::{Awaiting, ConnError, StreamId, StreamOwner, WireEvent};
use abuse::Abuse;
use frame::{FrameKind, WINDOW_INITIAL};
use replay::{ReplayH2, Responses};
use streams::{Closed, H2Sending, H2Streams, HeldHead, Receiving};

/// Request body bytes that are swallowed after the response is complete before the stream is
/// reset: a reset in the middle of an upload is an error to some clients, and most uploads are
/// shorter than this.
const LINGER_MAX: u32 = 1024 * 1024;
/// Capacity that the queue keeps between uses.
const QUEUE_KEPT: usize = 8192;
/// Priorities kept for streams that are not open yet (RFC 9218 §7.1).
const EARLY_MAX: usize = 16;

/// What the server allows on a connection; the same for the connection's whole life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct H2Settings {
    /// How the connection is made; the `:scheme` of requests is not trusted.
    pub scheme: Scheme,
    /// Streams the peer may have open; more are refused.
    pub max_concurrent_streams: u32,
    /// Bytes of one decoded head: names, values and 32 per field.
    pub head_size_max: usize,
    /// Bytes of one name and value.
    pub field_size_max: usize,
    /// Bytes a request body may run ahead of its reader, per stream, until it is wanted.
    pub recv_window: u32,
    /// Whether names with `_` are as good as others.
    pub underscores_in_headers: bool,
    /// Whether fields with odd but harmless names are dropped.
    pub ignore_invalid_headers: bool,
    /// Requests after which the connection is shut down gracefully.
    pub keepalive_requests: u64,
    /// Age of the connection after which its next request is the last.
    pub keepalive_time: Duration,
}

impl Default for H2Settings {
    fn default() -> Self {
        Self {
            scheme: Scheme::Http,
            max_concurrent_streams: STREAMS_PER_CONN_MAX,
            head_size_max: HEAD_SIZE_MAX,
            field_size_max: 8 * 1024,
            recv_window: BODY_WINDOW,
            underscores_in_headers: false,
            ignore_invalid_headers: true,
            keepalive_requests: 1000,
            keepalive_time: Duration::from_hours(1),
        }
    }
}

/// How far the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing was said by either side.
    New,
    /// Our settings are queued; the client's preface is awaited.
    Preface,
    /// The client's first SETTINGS is awaited (RFC 9113 §3.4).
    Settings,
    /// Frames of all kinds may come.
    Open,
    /// The connection broke; only the queue leaves.
    Dead,
}

/// The rest of a DATA frame whose payload did not arrive in one piece, or of an ignored frame.
#[derive(Clone, Copy, Debug, Default)]
struct Partial {
    /// The stream that gets the data, if it is still open.
    stream: Option<StreamId>,
    /// Data to come.
    data: u32,
    /// Padding to come.
    padding: u32,
    /// Bytes to come that mean nothing to us and are under no flow control.
    ignored: u32,
    /// Whether the data ends the stream.
    ends: bool,
}

/// A field block that is not complete.
#[derive(Debug)]
struct Block {
    stream: u32,
    ends_stream: bool,
    /// RFC 9113 §5.3.1: it asked to depend on itself.
    is_self_dependent: bool,
    frames: u32,
    bytes: Vec<u8>,
}

/// What the peer told us of itself, and what is left of the windows both ways.
#[derive(Debug)]
struct Flow {
    /// What the peer lets us send on the connection.
    send: u32,
    /// What new streams may send at first.
    send_initial: u32,
    /// The largest frame the peer takes.
    frame_size: u32,
    /// What we let the peer send on the connection.
    recv: u32,
    /// Consumed bytes that the peer has not been told of.
    credit: u32,
    /// What new streams may receive at first.
    recv_initial: u32,
    /// What our settings say of that, which counts once they are acknowledged.
    recv_announced: u32,
}

/// One HTTP/2 connection. Small while idle: tables and buffers come with the first use.
#[derive(Debug)]
pub struct H2Conn {
    phase: Phase,
    is_going_away: bool,
    settings_are_acked: bool,
    /// The highest stream the peer opened, and the highest we looked at.
    last_seen: u32,
    last_taken: u32,
    /// When the first bytes came.
    started: Option<Instant>,
    /// Control frames queued since the last transmit.
    control_queued: u32,
    requests: u64,
    flow: Flow,
    partial: Partial,
    block: Option<Box<Block>>,
    decoder: HpackDecoder,
    encoder: HpackEncoder,
    streams: H2Streams,
    sched: Sched,
    /// Control frames and response heads in the order in which they must leave.
    queue: Vec<u8>,
    /// Streams whose `END_STREAM` stands in the queue.
    ended: Vec<StreamId>,
    /// Events that came up where nobody could take them.
    deferred: Vec<WireEvent>,
    early: Vec<(u32, Priority)>,
    known_requests: ReplayH2,
    known_responses: Responses,
    abuse: Abuse,
}

impl Default for H2Conn {
    fn default() -> Self {
        Self::new()
    }
}

impl H2Conn {
    /// A connection on which nothing has been said. It allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            phase: Phase::New,
            is_going_away: false,
            settings_are_acked: false,
            last_seen: 0,
            last_taken: 0,
            started: None,
            control_queued: 0,
            requests: 0,
            flow: Flow {
                send: WINDOW_INITIAL,
                send_initial: WINDOW_INITIAL,
                frame_size: *frame::FRAME_SIZES.start(),
                recv: CONN_WINDOW,
                credit: 0,
                recv_initial: WINDOW_INITIAL,
                recv_announced: WINDOW_INITIAL,
            },
            partial: Partial::default(),
            block: None,
            decoder: HpackDecoder::default(),
            encoder: HpackEncoder::new(),
            streams: H2Streams::default(),
            sched: Sched::new(),
            queue: Vec::new(),
            ended: Vec::new(),
            deferred: Vec::new(),
            early: Vec::new(),
            known_requests: ReplayH2::default(),
            known_responses: Responses::default(),
            abuse: Abuse::default(),
        }
    }

    /// Says whose stream it is. What had arrived before, or the end of a stream that is gone
    /// already, comes with the next `receive` or `transmit`.
    pub fn bind(&mut self, stream: StreamId, user: StreamOwner) {
        let Some(slot) = self.streams.slot(stream) else {
            self.deferred.push(WireEvent::Reset { user });
            return;
        };
        let bound = self.streams.at(slot);
        bound.user = user;
        if let Some(held) = bound.held.take() {
            let HeldHead { bytes, is_complete } = *held;
            self.deferred.extend(bytes.into_iter().map(|bytes| WireEvent::Body { user, bytes }));
            if is_complete {
                self.deferred.push(WireEvent::BodyEnd { user });
            }
        }
    }

    /// Who owns the requests that are not answered to their ends.
    pub fn users(&self) -> impl Iterator<Item = StreamOwner> {
        self.streams.users()
    }

    /// Streams that can do nothing until the peer does.
    pub fn awaiting(&self) -> impl Iterator<Item = Awaiting> {
        self.streams.awaiting(self.flow.send == 0)
    }

    /// Nobody wants the request body: its window is given back by itself from now on, and no more
    /// of it is told.
    pub fn discard_body(&mut self, stream: StreamId) {
        let Some(slot) = self.streams.slot(stream) else { return };
        let discarded = self.streams.at(slot);
        discarded.discards = true;
        discarded.held = None;
        let bytes = discarded.outstanding;
        self.give_back(slot, bytes);
    }

    /// Gives the room of consumed body bytes back to the peer.
    pub fn body_consumed(&mut self, stream: StreamId, bytes: usize) {
        let Some(slot) = self.streams.slot(stream) else { return };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let bytes = bytes.min(self.streams.at(slot).outstanding);
        self.give_back(slot, bytes);
    }

    /// The request body is read from now on: the peer may send `window` bytes ahead of that.
    pub fn body_wanted(&mut self, stream: StreamId, window: u32) {
        let Some(slot) = self.streams.slot(stream) else { return };
        self.streams.at(slot).recv_full = window.min(CONN_WINDOW);
        self.open_window(slot);
    }

    /// Makes the window of a body that is read as large as it is to be.
    fn open_window(&mut self, slot: u32) {
        let wanted = self.streams.at(slot);
        // What is to come by `content-length` may fit into what the peer was told of already.
        let told = i64::from(wanted.recv_window);
        let fits = i64::try_from(wanted.recv_left).is_ok_and(|left| left <= told);
        if fits || wanted.receiving == Receiving::Ended {
            return;
        }
        let full = i64::from(wanted.recv_full);
        match u32::try_from(full - self.granted(slot)) {
            Ok(missing @ 1..) => {
                let credit = missing + std::mem::take(&mut self.streams.at(slot).recv_credit);
                self.widen(slot, credit);
            }
            // The peer may be owed so much that nothing else would let it go on.
            _ => self.credit_stream(slot, 0),
        }
    }

    /// Resets a stream; its `Reset` event comes with the next `receive` or `transmit`.
    pub fn reset(&mut self, stream: StreamId, code: u32) {
        let Some(slot) = self.streams.slot(stream) else { return };
        let id = self.streams.id(slot);
        if let Some(user) = self.drop_stream(slot, Closed::ByUs) {
            self.deferred.push(WireEvent::Reset { user });
        }
        frame::push_u32(self.control(), FrameKind::RstStream, id, code);
    }

    /// Ends the connection gracefully: no new streams; what is open is served.
    pub fn shutdown(&mut self) {
        if self.is_going_away || matches!(self.phase, Phase::Dead) {
            return;
        }
        self.is_going_away = true;
        // Before our preface a GOAWAY would be no frame the peer expects (RFC 9113 §3.4).
        if self.phase != Phase::New {
            let last = self.last_taken;
            frame::push_goaway(self.control(), last, code::NO_ERROR);
        }
    }

    /// Whether `transmit` would append or tell something.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.queue.is_empty()
            || !self.deferred.is_empty()
            || !self.ended.is_empty()
            || (self.flow.send > 0 && !self.sched.is_empty())
    }

    /// Whether no response is owed.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.streams.active() == 0
    }

    /// Whether the connection is over once the output has left.
    #[must_use]
    pub const fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Dead) || (self.is_going_away && self.is_idle())
    }

    /// Streams whose response is not complete.
    #[must_use]
    pub const fn streams_open(&self) -> u32 {
        self.streams.active()
    }

    /// Requests taken on this connection.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.requests
    }

    /// Gives memory back that the next request would take again; for connections that have been
    /// idle for a while.
    pub fn shrink(&mut self) {
        if !self.is_idle() || self.has_output() {
            return;
        }
        self.streams.shrink();
        self.sched.shrink();
        self.decoder.shrink();
        self.encoder.shrink();
        self.known_requests.shrink();
        self.known_responses.shrink();
        self.queue = Vec::new();
        self.ended = Vec::new();
        self.deferred = Vec::new();
    }

    /// The queue, for one more control frame.
    fn control(&mut self) -> &mut Vec<u8> {
        self.control_queued += 1;
        &mut self.queue
    }

    /// Notes that `bytes` of what a stream delivered are consumed.
    fn give_back(&mut self, slot: u32, bytes: u32) {
        let stream = self.streams.at(slot);
        stream.outstanding -= bytes;
        self.credit_stream(slot, bytes);
        self.credit_conn(bytes);
    }

    /// Tells the peer of consumed bytes once they are half of what it was granted: what it was not,
    /// though wanted, can never come back.
    fn credit_stream(&mut self, slot: u32, bytes: u32) {
        self.streams.at(slot).recv_credit += bytes;
        let half = (self.granted(slot) / 2).max(0);
        let stream = self.streams.at(slot);
        // A peer that is done needs no more room, and one whose body is to be reset gets none.
        let is_over = stream.receiving == Receiving::Ended
            || stream.discards && self.flow.recv_initial < WINDOW_INITIAL;
        if i64::from(stream.recv_credit) <= half || is_over {
            return;
        }
        let credit = std::mem::take(&mut stream.recv_credit);
        self.widen(slot, credit);
    }

    /// How large a stream's window would be if all that came were consumed and the peer told.
    fn granted(&mut self, slot: u32) -> i64 {
        let is_coming = self.partial.stream == Some(self.streams.name(slot));
        let coming = if is_coming { self.partial.data } else { 0 };
        let stream = self.streams.at(slot);
        let parts = [stream.recv_credit, stream.unread(), coming];
        i64::from(stream.recv_window) + parts.map(i64::from).iter().sum::<i64>()
    }

    /// Lets the peer send so many bytes more on a stream.
    fn widen(&mut self, slot: u32, credit: u32) {
        let stream = self.streams.at(slot);
        stream.recv_window = stream.recv_window.saturating_add_unsigned(credit);
        let id = self.streams.id(slot);
        frame::push_u32(self.control(), FrameKind::WindowUpdate, id, credit);
    }

    fn credit_conn(&mut self, bytes: u32) {
        self.flow.credit += bytes;
        if self.flow.credit > CONN_WINDOW / 2 {
            let credit = std::mem::take(&mut self.flow.credit);
            self.flow.recv += credit;
            frame::push_u32(self.control(), FrameKind::WindowUpdate, 0, credit);
        }
    }

    /// Takes a stream away; says who has to be told.
    fn drop_stream(&mut self, slot: u32, why: Closed) -> Option<StreamOwner> {
        let stream = self.streams.at(slot);
        let unread = stream.unread();
        if std::mem::take(&mut stream.is_scheduled) {
            self.sched.remove(slot);
        }
        self.credit_conn(unread);
        self.streams.remove(slot, why)
    }

    /// Lets a stream wait for its turn if it could write.
    fn schedule(&mut self, slot: u32) {
        let id = self.streams.id(slot);
        let stream = self.streams.at(slot);
        if stream.is_ready() && !stream.is_scheduled {
            stream.is_scheduled = true;
            self.sched.insert(slot, u64::from(id), stream.priority);
        }
    }

    /// Hands body bytes to whoever is bound, or keeps them.
    fn deliver(&mut self, slot: u32, data: &[u8], events: &mut Vec<WireEvent>) {
        let bytes = Bytes::copy_from_slice(data);
        let stream = self.streams.at(slot);
        stream.outstanding += data.len() as u32;
        match stream.user {
            UNBOUND => stream.held.get_or_insert_default().bytes.push(bytes),
            user => events.push(WireEvent::Body { user, bytes }),
        }
    }

    /// Breaks the connection: every user is told, and GOAWAY is the last frame.
    fn fail(&mut self, error: ConnError, events: &mut Vec<WireEvent>) {
        for slot in 0..self.streams.slots() {
            if self.streams.is_open(slot) {
                let user = self.drop_stream(slot, Closed::ByUs);
                events.extend(user.map(|user| WireEvent::Reset { user }));
            }
        }
        self.ended.clear();
        self.block = None;
        let last = self.last_taken;
        frame::push_goaway(self.control(), last, error.code as u32);
        self.phase = Phase::Dead;
    }

    /// Requests that the client broke, or took back at once, since the last call.
    pub fn take_wasted(&mut self) -> u32 {
        self.abuse.take_wasted()
    }

    /// Ends the connection of a client whose other connections have wasted too much.
    pub fn calm_down(&mut self, events: &mut Vec<WireEvent>) {
        if self.phase != Phase::Dead {
            self.fail(abuse::calm("client cancelled too many requests"), events);
        }
    }

    /// RFC 9113 §5.4.2: resets one stream because of what the peer sent on it.
    fn stream_error(
        &mut self,
        id: u32,
        code: u32,
        events: &mut Vec<WireEvent>,
    ) -> Result<(), ConnError> {
        match self.streams.find(id) {
            Some(slot) => {
                let user = self.drop_stream(slot, Closed::ByUs);
                events.extend(user.map(|user| WireEvent::Reset { user }));
            }
            None if self.streams.closed(id).is_none() => self.streams.forget(id, Closed::ByUs),
            None => {}
        }
        frame::push_u32(self.control(), FrameKind::RstStream, id, code);
        self.abuse.waste(code)
    }

    /// Ends a stream whose response is complete, and whose client may not send the rest of its
    /// request, for want of a window.
    fn refuse_rest(&mut self, slot: u32) {
        let id = self.streams.id(slot);
        self.drop_stream(slot, Closed::ByUs);
        frame::push_u32(self.control(), FrameKind::RstStream, id, code::NO_ERROR);
    }

    /// The response is complete: its user is told, and the stream goes or lingers.
    fn finish(&mut self, slot: u32, events: &mut Vec<WireEvent>) {
        let stream = self.streams.at(slot);
        let (user, body_bytes, unread) = (stream.user, stream.sent, stream.outstanding);
        let head_bytes = stream.told;
        debug_assert!(matches!(stream.sending, H2Sending::Ended | H2Sending::Body));
        stream.outstanding = 0;
        stream.discards = true;
        stream.held = None;
        self.streams.complete(slot);
        self.credit_conn(unread);
        if self.streams.at(slot).receiving == Receiving::Ended {
            self.streams.remove(slot, Closed::Ended);
        } else if self.flow.recv_initial < WINDOW_INITIAL {
            self.refuse_rest(slot);
        }
        self.abuse.complete();
        if user != UNBOUND {
            events.push(WireEvent::Sent { user, body_bytes, head_bytes });
        }
    }
}

#[cfg(test)]
mod tests;
