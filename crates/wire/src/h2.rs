//! The HTTP/2 server machine (RFC 9113, RFC 9218): it takes bytes, reports events and pulls
//! response bodies.
//!
//! Owns frames, streams, flow-control windows, field compression and the limits on abusive peers.
//! It refuses server push, RFC 7540 priorities and upgrades from HTTP/1.1. Prior knowledge in
//! cleartext uses the same machine.
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
//! INVARIANT: every encoded or received field block changes a dynamic table. So each one is sent or
//! decoded in order, whatever happens to its stream.

mod abuse;
mod control;
pub(crate) mod frame;
mod head;
mod headers;
mod output;
mod recv;
mod replay;
mod send;
mod streams;
mod windows;

pub use frame::code;

use std::time::Duration;

use bolide_base::Instant;
use bolide_base::limits::{BODY_WINDOW, FIELDS_MAX, HEAD_SIZE_MAX, STREAMS_PER_CONN_MAX};
use bolide_http::Scheme;

use crate::conn::UNBOUND;
use crate::hpack::HpackDecoder;
use crate::sched::Priority;
use crate::{Awaiting, ConnError, StreamId, StreamOwner, WireEvent};
use abuse::Abuse;
use frame::{WINDOW_INITIAL, WINDOW_MAX};
use output::H2Output;
use replay::ReplayH2;
use streams::{Closed, H2Sending, H2Streams, HeldHead, Receiving};
use windows::ConnRecvWindow;

/// LIMIT: priorities kept for streams that are not open yet (RFC 9218 §7.1).
const EARLY_MAX: usize = 16;

/// The settings of a connection. They stay the same for its whole life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct H2Settings {
    /// The scheme of the listener; the `:scheme` of requests is not trusted.
    pub scheme: Scheme,
    /// LIMIT: streams that the peer may have open; more are refused.
    pub max_concurrent_streams: u32,
    /// LIMIT: bytes of a decoded head: names, values and 32 per field.
    pub head_size_max: usize,
    /// LIMIT: bytes of a name or a value as it is encoded.
    pub field_size_max: usize,
    /// LIMIT: `max_headers`: field lines of a head, without cookies.
    pub fields_max: u32,
    /// The initial flow-control window of a stream: body bytes that the peer may send before the
    /// body is wanted.
    pub recv_window: u32,
    /// `underscores_in_headers`: whether names with `_` are valid.
    pub underscores_in_headers: bool,
    /// `ignore_invalid_headers`: whether fields with unusual but harmless names are dropped.
    pub ignore_invalid_headers: bool,
    /// `keepalive_requests`: requests after which the connection shuts down gracefully.
    pub keepalive_requests: u64,
    /// `keepalive_time`: the age of the connection after which its next request is the last.
    pub keepalive_time: Duration,
}

impl Default for H2Settings {
    fn default() -> Self {
        Self {
            scheme: Scheme::Http,
            max_concurrent_streams: STREAMS_PER_CONN_MAX,
            head_size_max: HEAD_SIZE_MAX,
            field_size_max: 8 * 1024,
            fields_max: FIELDS_MAX as u32,
            recv_window: BODY_WINDOW,
            underscores_in_headers: false,
            ignore_invalid_headers: true,
            keepalive_requests: 1000,
            keepalive_time: Duration::from_hours(1),
        }
    }
}

/// The state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Neither side has sent anything.
    New,
    /// Our SETTINGS is queued, and the client's preface has not come.
    Preface,
    /// All frames are allowed. As in nginx, the first one need not be SETTINGS (RFC 9113 §3.4).
    Open,
    /// A connection error occurred. Only the queue is still sent.
    Dead,
}

/// The rest of a DATA frame that came in pieces, or of an ignored frame.
#[derive(Clone, Copy, Debug, Default)]
struct Partial {
    /// The stream of the data; it may be closed by now.
    stream: Option<StreamId>,
    /// Data bytes to come.
    data: u32,
    /// Padding bytes to come.
    padding: u32,
    /// Bytes of an ignored frame to come. They do not count for flow control.
    ignored: u32,
    /// Whether the data ends the stream.
    ends: bool,
}

impl Partial {
    /// Data bytes of a stream that are on their way.
    fn coming(&self, stream: StreamId) -> u32 {
        if self.stream == Some(stream) { self.data } else { 0 }
    }
}

/// An incomplete field block.
#[derive(Debug)]
struct Block {
    stream: u32,
    ends_stream: bool,
    /// RFC 9113 §5.3.1: the stream depends on itself.
    is_self_dependent: bool,
    frames: u32,
    bytes: Vec<u8>,
}

/// The peer's settings, and the flow-control windows of the connection in both directions.
#[derive(Debug)]
struct Flow {
    /// The connection window for sending.
    send: u32,
    /// The initial window of new streams for sending.
    send_initial: u32,
    /// The connection window for receiving.
    recv: ConnRecvWindow,
    /// The initial window of new streams for receiving. Until the peer has acknowledged a smaller
    /// one than the default, it may open no stream with a body.
    recv_initial: u32,
}

/// One HTTP/2 connection. It is small while idle: tables and buffers are allocated on first use.
#[derive(Debug)]
pub struct H2Conn {
    phase: Phase,
    is_going_away: bool,
    settings_are_acked: bool,
    /// The highest stream that the peer opened, and the highest that we processed.
    last_seen: u32,
    last_taken: u32,
    /// The time of the first bytes.
    started: Option<Instant>,
    requests: u64,
    flow: Flow,
    partial: Partial,
    block: Option<Box<Block>>,
    decoder: HpackDecoder,
    output: H2Output,
    streams: H2Streams,
    /// Streams whose `END_STREAM` is in the queue.
    ended: Vec<StreamId>,
    /// Events that arose outside `receive` and `transmit`.
    deferred: Vec<WireEvent>,
    early: Vec<(u32, Priority)>,
    known_requests: ReplayH2,
    abuse: Abuse,
}

impl Default for H2Conn {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether a field block has begun on a connection and not ended.
#[must_use]
pub const fn is_within_block(conn: &H2Conn) -> bool {
    conn.block.is_some()
}

impl H2Conn {
    /// A new connection. It allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            phase: Phase::New,
            is_going_away: false,
            settings_are_acked: false,
            last_seen: 0,
            last_taken: 0,
            started: None,
            requests: 0,
            flow: Flow {
                send: WINDOW_INITIAL,
                send_initial: WINDOW_INITIAL,
                recv: ConnRecvWindow::new(),
                recv_initial: WINDOW_INITIAL,
            },
            partial: Partial::default(),
            block: None,
            decoder: HpackDecoder::default(),
            output: H2Output::new(),
            streams: H2Streams::default(),
            ended: Vec::new(),
            deferred: Vec::new(),
            early: Vec::new(),
            known_requests: ReplayH2::default(),
            abuse: Abuse::default(),
        }
    }

    /// Sets the owner of a stream. The next `receive` or `transmit` reports body bytes that came
    /// before, or the reset of a stream that is gone.
    pub fn bind(&mut self, stream: StreamId, user: StreamOwner) {
        let Some(slot) = self.streams.slot(stream) else {
            self.deferred.push(WireEvent::Reset { user });
            return;
        };
        let bound = self.streams.at(slot);
        bound.user = user;
        if let Some(held) = bound.held.take() {
            let HeldHead { bytes, is_complete, refusal } = *held;
            self.deferred.extend(bytes.into_iter().map(|bytes| WireEvent::Body { user, bytes }));
            if let Some(refusal) = refusal {
                self.deferred.push(WireEvent::BodyRefused { user, refusal });
            } else if is_complete {
                self.deferred.push(WireEvent::BodyEnd { user });
            }
        }
    }

    /// The owners of the streams whose responses are incomplete.
    pub fn users(&self) -> impl Iterator<Item = StreamOwner> {
        self.streams.users()
    }

    /// Streams that cannot proceed until the peer sends something.
    pub fn awaiting(&self) -> impl Iterator<Item = Awaiting> {
        self.streams.awaiting(self.flow.send == 0)
    }

    /// Discards the request body: no more of it is reported, and its window is returned at once.
    pub fn discard_body(&mut self, stream: StreamId) {
        let Some(slot) = self.streams.slot(stream) else { return };
        let discarded = self.streams.at(slot);
        discarded.discards = true;
        discarded.held = None;
        let bytes = discarded.outstanding;
        self.give_back(slot, bytes);
    }

    /// Returns the window of consumed body bytes to the peer.
    pub fn body_consumed(&mut self, stream: StreamId, bytes: usize) {
        let Some(slot) = self.streams.slot(stream) else { return };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let bytes = bytes.min(self.streams.at(slot).outstanding);
        self.give_back(slot, bytes);
    }

    /// The owner reads the request body from now on: the peer may send `window` bytes ahead of it.
    pub fn body_wanted(&mut self, stream: StreamId, window: u32) {
        let Some(slot) = self.streams.slot(stream) else { return };
        let (id, coming) = (self.streams.id(slot), self.partial.coming(stream));
        let wanted = self.streams.at(slot);
        wanted.recv_full = window.min(WINDOW_MAX);
        wanted.open_window(id, coming, &mut self.output);
    }

    /// Whether the peer can send nothing of any body until we consume what came.
    #[must_use]
    pub const fn is_shut(&self) -> bool {
        self.flow.recv.is_shut()
    }

    /// Resets a stream. The next `receive` or `transmit` reports its `Reset` event.
    pub fn reset(&mut self, stream: StreamId, code: u32) {
        let Some(slot) = self.streams.slot(stream) else { return };
        let user = self.reset_slot(slot, code);
        self.deferred.extend(user.map(|user| WireEvent::Reset { user }));
    }

    /// Shuts the connection down gracefully: no new streams; open ones are served.
    pub fn shutdown(&mut self) {
        if self.is_going_away || matches!(self.phase, Phase::Dead) {
            return;
        }
        self.is_going_away = true;
        // RFC 9113 §3.4: the first frame that the peer expects is our SETTINGS, not a GOAWAY.
        if self.phase != Phase::New {
            self.output.goaway(self.last_taken, code::NO_ERROR);
        }
    }

    /// Whether `transmit` would append bytes or report events.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
            || !self.deferred.is_empty()
            || !self.ended.is_empty()
            || (self.flow.send > 0 && !self.streams.sched.is_empty())
    }

    /// Whether no response is outstanding.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.streams.active() == 0
    }

    /// Whether the connection closes after the output is sent.
    #[must_use]
    pub const fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Dead) || (self.is_going_away && self.is_idle())
    }

    /// The number of streams whose response is incomplete.
    #[must_use]
    pub const fn streams_open(&self) -> u32 {
        self.streams.active()
    }

    /// Requests accepted on this connection.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.requests
    }

    /// Frees memory that the next request would allocate again; for connections that are idle for
    /// some time.
    pub fn shrink(&mut self) {
        if !self.is_idle() || self.has_output() {
            return;
        }
        self.streams.shrink();
        self.decoder.shrink();
        self.known_requests.shrink();
        self.output.shrink();
        self.ended = Vec::new();
        self.deferred = Vec::new();
    }

    /// Counts `bytes` of a stream as consumed.
    fn give_back(&mut self, slot: u32, bytes: u32) {
        let (id, coming) = (self.streams.id(slot), self.partial.coming(self.streams.name(slot)));
        let stream = self.streams.at(slot);
        debug_assert!(bytes <= stream.outstanding, "only reported bytes are consumed");
        stream.outstanding -= bytes;
        stream.credit(id, bytes, coming, &mut self.output);
        self.flow.recv.credit(bytes, &mut self.output);
    }

    /// Removes a stream. Returns the owner if it needs a `Reset` event.
    fn drop_stream(&mut self, slot: u32, why: Closed) -> Option<StreamOwner> {
        let unread = self.streams.at(slot).outstanding;
        self.streams.unschedule(slot);
        self.flow.recv.credit(unread, &mut self.output);
        self.streams.remove(slot, why)
    }

    /// Removes a stream and has it reset. Returns the owner if it needs a `Reset` event.
    fn reset_slot(&mut self, slot: u32, code: u32) -> Option<StreamOwner> {
        let id = self.streams.id(slot);
        debug_assert!(id % 2 == 1, "RFC 9113 §5.1.1: clients' streams are odd, and none is pushed");
        // RFC 9113 §5.4.2: one reset for each stream. That of one that lingers is on its way.
        let is_first = self.streams.at(slot).is_active();
        let user = self.drop_stream(slot, Closed::ByUs);
        if is_first {
            self.output.reset(id, code);
        }
        user
    }

    /// Fails the connection: every owner gets a `Reset` event, and GOAWAY is the last frame.
    fn fail(&mut self, error: ConnError, events: &mut Vec<WireEvent>) {
        for slot in 0..self.streams.slots() {
            if self.streams.is_open(slot) {
                let user = self.drop_stream(slot, Closed::ByUs);
                events.extend(user.map(|user| WireEvent::Reset { user }));
            }
        }
        self.ended.clear();
        self.block = None;
        self.output.goaway(self.last_taken, error.code as u32);
        self.phase = Phase::Dead;
    }

    /// Returns the requests that the client broke, or cancelled at once, since the last call.
    pub fn take_wasted(&mut self) -> u32 {
        self.abuse.take_wasted()
    }

    /// Closes the connection of a client whose other connections wasted too many requests.
    pub fn calm_down(&mut self, events: &mut Vec<WireEvent>) {
        if self.phase != Phase::Dead {
            self.fail(abuse::calm("client cancelled too many requests"), events);
        }
    }

    /// RFC 9113 §5.4.2: resets one stream because of a stream error.
    fn stream_error(
        &mut self,
        id: u32,
        code: u32,
        events: &mut Vec<WireEvent>,
    ) -> Result<(), ConnError> {
        match self.streams.find(id) {
            Some(slot) => {
                let user = self.reset_slot(slot, code);
                events.extend(user.map(|user| WireEvent::Reset { user }));
            }
            // RFC 9113 §5.1: a closed stream gets nothing, but for what its peer sends behind a
            // reset of its own.
            None if matches!(self.streams.closed(id), Some(Closed::ByUs | Closed::Ended)) => {}
            None => {
                self.streams.forget(id, Closed::ByUs);
                self.output.reset(id, code);
            }
        }
        self.abuse.waste(code)
    }

    /// The response is complete: reports it. The stream closes; where the peer has not ended its
    /// side, or the request was malformed, by a reset.
    fn finish(&mut self, slot: u32, events: &mut Vec<WireEvent>) {
        let id = self.streams.id(slot);
        let stream = self.streams.at(slot);
        let (user, body_bytes, unread) = (stream.user, stream.sent, stream.outstanding);
        let (head_bytes, is_malformed) = (stream.head_bytes, stream.is_malformed);
        debug_assert!(matches!(stream.sending, H2Sending::Ended | H2Sending::Body));
        debug_assert!(
            matches!(stream.send_left, 0 | streams::UNKNOWN),
            "a response has its declared length"
        );
        debug_assert!(!stream.is_scheduled, "a complete response has nothing to write");
        stream.outstanding = 0;
        stream.discards = true;
        stream.held = None;
        let has_ended = stream.receiving == Receiving::Ended;
        self.streams.complete(slot);
        self.flow.recv.credit(unread, &mut self.output);
        if is_malformed || has_ended {
            let why = if is_malformed { Closed::ByUs } else { Closed::Ended };
            self.streams.remove(slot, why);
        }
        if is_malformed || !has_ended {
            // RFC 9113 §8.1, §8.1.1: the rest of the request is of no use, or it was malformed.
            let code = if is_malformed { code::PROTOCOL_ERROR } else { code::NO_ERROR };
            self.output.reset_behind(id, code);
        }
        if !is_malformed {
            // A malformed request was wasted, whatever the response to it.
            self.abuse.complete();
        }
        if user != UNBOUND {
            events.push(WireEvent::Sent { user, body_bytes, head_bytes });
        }
    }
}

/// Checks in debug builds that no byte of the connection window is lost or credited twice, and
/// that the scheduler has exactly the streams that are marked as scheduled.
fn check_accounts(conn: &H2Conn) {
    if matches!(conn.phase, Phase::Dead) {
        return;
    }
    debug_assert_eq!(
        conn.flow.recv.granted() + conn.streams.unread() + conn.partial.data + conn.partial.padding,
        WINDOW_MAX,
        "the connection window is granted, credited, unread or still to come"
    );
    debug_assert!(
        conn.flow.recv.is_fair(),
        "credit is not kept back from a peer that can send nothing"
    );
    debug_assert_eq!(
        conn.streams.sched.len(),
        conn.streams.scheduled(),
        "exactly the scheduled streams are in the scheduler"
    );
    debug_assert!(
        conn.last_taken <= conn.last_seen,
        "GOAWAY names no stream that the peer has not opened"
    );
}

#[cfg(test)]
#[path = "../../fuzz-entries/src/h2.rs"]
pub mod fuzz;
#[cfg(test)]
mod tests;
