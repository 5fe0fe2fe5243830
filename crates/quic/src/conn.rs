//! One QUIC connection: its streams by stream id, its events, its end.
//!
//! ```text
//!   Handshaking ──Connected{early}──▶ Open ──Lost──▶ Closing ──Gone──▶ (the id is stale)
//!        │                                              ▲
//!        └───────────────────────Lost───────────────────┘
//! ```
//!
//! INVARIANT: after a partial write, `Writable` must come. So a partial write is repeated until the
//! library reports that the stream is blocked.

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bolide_base::{Bound, Instant, Now};
use bytes::Bytes;
use quinn_proto::{
    Connection, ConnectionHandle, Dir, Event, FinishError, ReadError, Side, StreamEvent, StreamId,
    VarInt, WriteError,
};
use rustls::pki_types::CertificateDer;

use crate::QuicClock;
pub use crate::crypto::Handshake;
use crate::events::{Lost, QuicEvent};
use crate::flow::{RecvWindows, Transferred};

/// Bytes to offer to a stream that is not blocked.
const ROOM: usize = bolide_base::limits::SEND_PER_TURN;
/// Bytes to offer while many streams are blocked: the payload of a datagram.
const ROOM_MIN: usize = 1200;

/// The result of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadEnd {
    /// No bytes are available. [`QuicEvent::StreamReadable`] follows.
    Blocked,
    /// The requested amount was read; there may be more.
    Full,
    /// The stream is complete.
    Finished,
    /// The peer reset the stream with this code.
    Reset(u64),
    /// There is no such stream, or its end was read before.
    Gone,
}

/// The stream or connection accepts no bytes any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// Figures for the log and the status page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuicStats {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Congestion window in bytes.
    pub congestion_window: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Packets that were declared lost.
    pub packets_lost: u64,
    /// Bytes of the largest datagram that the path supports.
    pub mtu: u16,
}

/// The state of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Handshaking,
    /// Streams with early data may be read.
    Early,
    Open,
}

/// One connection of an [`crate::Endpoint`].
pub struct QuicConnection {
    pub(crate) inner: Box<Connection>,
    pub(crate) handle: ConnectionHandle,
    clock: QuicClock,
    /// The deadline of the handshake.
    shaken_by: Instant,
    phase: Phase,
    handshake: Handshake,
    /// Directions with new streams that are not reported yet.
    opened: [bool; 2],
    /// Streams whose last write was partial.
    blocked: Vec<u64>,
    /// Bytes that the library took to be sent.
    written: u64,
    /// The number of streams that we opened; they never end.
    own: usize,
    windows: RecvWindows,
    /// Events that the library does not queue.
    events: VecDeque<QuicEvent>,
}

impl QuicConnection {
    pub(crate) fn new(
        inner: Connection,
        handle: ConnectionHandle,
        clock: QuicClock,
        shaken_by: Instant,
        windows: RecvWindows,
    ) -> Self {
        Self {
            inner: Box::new(inner),
            handle,
            clock,
            shaken_by,
            phase: Phase::Handshaking,
            handshake: Handshake::default(),
            opened: [false; 2],
            blocked: Vec::new(),
            written: 0,
            own: 0,
            windows,
            events: VecDeque::new(),
        }
    }

    /// Appends at most `max` bytes of `stream` to `chunks`, in order.
    pub fn read(&mut self, stream: u64, max: usize, chunks: &mut Vec<Bytes>) -> ReadEnd {
        let Some(id) = self.receiving(stream) else { return ReadEnd::Gone };
        let mut recv = self.inner.recv_stream(id);
        let Ok(mut reading) = recv.read(true) else { return ReadEnd::Gone };
        let mut left = max;
        let end = loop {
            if left == 0 {
                break ReadEnd::Full;
            }
            match reading.next(left) {
                Ok(Some(chunk)) => {
                    left -= chunk.bytes.len();
                    chunks.push(chunk.bytes);
                }
                Ok(None) => break ReadEnd::Finished,
                Err(ReadError::Blocked) => break ReadEnd::Blocked,
                Err(ReadError::Reset(code)) => break ReadEnd::Reset(code.into()),
            }
        };
        // The next `transmit` sends what the peer needs to know.
        let _ = reading.finalize();
        end
    }

    /// The code of the peer's reset of `stream`, once; a stream that is held may be reset as well.
    pub fn received_reset(&mut self, stream: u64) -> Option<u64> {
        let id = self.receiving(stream)?;
        self.inner.recv_stream(id).received_reset().ok().flatten().map(Into::into)
    }

    /// Records how many streams are held: their bytes stay here until they are wanted. They take
    /// nothing from the window of the connection, so that the others go on.
    pub fn hold(&mut self, streams: usize) {
        if let Some(window) = self.windows.hold(streams) {
            self.inner.set_receive_window(window);
        }
    }

    /// Whether received data came before the end of the handshake and may be a replay.
    #[must_use]
    pub fn is_early(&self) -> bool {
        self.phase == Phase::Early
    }

    /// Opens a unidirectional stream; `None` while the peer's stream limit forbids it.
    pub fn open_uni(&mut self) -> Option<u64> {
        let opened = self.inner.streams().open(Dir::Uni)?;
        self.own += 1;
        Some(u64::from(opened))
    }

    /// The smoothed round-trip time.
    #[must_use]
    pub fn round_trip(&self) -> Duration {
        self.inner.rtt()
    }

    /// Whether the client has not acknowledged everything on the streams that it opened.
    /// [`Self::close`] would discard the rest.
    #[must_use]
    pub fn owes(&mut self) -> bool {
        !self.inner.is_closed() && self.inner.streams().send_streams() > self.own
    }

    /// Moves bytes from the front of `bytes` to the stream, without copying, and returns how many.
    /// The rest must wait for [`QuicEvent::StreamWritable`].
    ///
    /// # Errors
    ///
    /// The peer stopped the stream, or the stream or the connection is closed.
    pub fn write(&mut self, stream: u64, bytes: &mut Bytes) -> Result<usize, Gone> {
        let id = self.sending(stream).ok_or(Gone)?;
        let (mut written, mut bound) = (0, Bound::new());
        while !bytes.is_empty() && bound.goes_on() {
            let result = self.inner.send_stream(id).write_chunks(std::slice::from_mut(bytes));
            match result {
                Ok(part) => {
                    written += part.bytes;
                    self.written += part.bytes as u64;
                }
                Err(WriteError::Blocked) if self.inner.is_closed() => return Err(Gone),
                Err(WriteError::Blocked) => {
                    if !self.blocked.contains(&stream) {
                        self.blocked.push(stream);
                    }
                    break;
                }
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return Err(Gone),
            }
        }
        Ok(written)
    }

    /// What has moved so far.
    #[must_use]
    pub fn moved(&self) -> Transferred {
        let stats = self.inner.stats();
        let (sent, acknowledged) = (stats.frame_tx.stream, stats.frame_rx.acks);
        Transferred { written: self.written, sent, acknowledged }
    }

    /// How many bytes to produce for a stream: none while it is blocked. [`Self::write`] may accept
    /// fewer.
    ///
    /// The library does not report a stream's flow-control credit, and bytes that it does not
    /// accept are buffered. So the more streams are blocked, the less is produced for others: a
    /// peer that opens many streams and reads none makes us buffer little.
    #[must_use]
    pub fn room(&self, stream: u64) -> usize {
        // PERF: the list is empty unless the client is slow.
        if self.blocked.is_empty() {
            return ROOM;
        }
        if self.blocked.contains(&stream) {
            return 0;
        }
        (ROOM / (self.blocked.len() + 1)).max(ROOM_MIN)
    }

    /// Ends a stream after the written bytes.
    ///
    /// # Errors
    ///
    /// The peer stopped the stream, or it is closed.
    pub fn finish(&mut self, stream: u64) -> Result<(), Gone> {
        let id = self.sending(stream).ok_or(Gone)?;
        self.unblock(stream);
        match self.inner.send_stream(id).finish() {
            Ok(()) => Ok(()),
            Err(FinishError::Stopped(_) | FinishError::ClosedStream) => Err(Gone),
        }
    }

    /// Resets a stream. Written bytes may never arrive.
    pub fn reset(&mut self, stream: u64, code: u64) {
        self.unblock(stream);
        if let (Some(id), Ok(code)) = (self.sending(stream), VarInt::from_u64(code)) {
            // A closed stream needs no reset.
            let _ = self.inner.send_stream(id).reset(code);
        }
    }

    /// Sends `STOP_SENDING` for a stream and drops its received bytes.
    pub fn stop(&mut self, stream: u64, code: u64) {
        if let (Some(id), Ok(code)) = (self.receiving(stream), VarInt::from_u64(code)) {
            // A complete stream needs no stop.
            let _ = self.inner.recv_stream(id).stop(code);
        }
    }

    /// Sets the priority of a stream. Higher values go first; equal ones share round robin.
    pub fn set_priority(&mut self, stream: u64, priority: i32) {
        if let Some(id) = self.sending(stream) {
            // A closed stream has no priority.
            let _ = self.inner.send_stream(id).set_priority(priority);
        }
    }

    /// Sends a PING with the next packet, so that neither side reaches its idle timeout.
    pub fn ping(&mut self) {
        self.inner.ping();
    }

    /// Closes the connection with an application error code. `reason` is for the peer's log.
    pub fn close(&mut self, now: Now, code: u64, reason: Bytes) {
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        self.inner.close(self.clock.library(now.mono), code, reason);
        self.blocked.clear();
    }

    /// Whether either side closed the connection.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// Whether the handshake is incomplete.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.phase != Phase::Open
    }

    /// The peer's address; it changes when the peer migrates.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        self.inner.remote_address()
    }

    /// Our address, if the socket reports it.
    #[must_use]
    pub fn local(&self) -> Option<IpAddr> {
        self.inner.local_ip()
    }

    /// The requested server name; known from [`QuicEvent::Connected`] on.
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        self.handshake.server_name.as_deref()
    }

    /// The result of the handshake; known from [`QuicEvent::Connected`] on.
    #[must_use]
    pub const fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    /// The certificate chain of the client, its own certificate first. A resumed session restores
    /// it.
    #[must_use]
    pub fn client_chain(&self) -> Option<Vec<CertificateDer<'static>>> {
        let identity = self.inner.crypto_session().peer_identity()?;
        identity.downcast().ok().map(|chain| *chain)
    }

    /// The current figures.
    #[must_use]
    pub fn stats(&self) -> QuicStats {
        let stats = self.inner.stats();
        QuicStats {
            rtt: stats.path.rtt,
            congestion_window: stats.path.cwnd,
            datagrams_sent: stats.udp_tx.datagrams,
            datagrams_received: stats.udp_rx.datagrams,
            packets_lost: stats.path.lost_packets,
            mtu: stats.path.current_mtu,
        }
    }

    /// Initiates a key update (RFC 9001 §6).
    pub fn update_keys(&mut self) {
        if self.phase == Phase::Open && !self.inner.is_closed() {
            self.inner.force_key_update();
        }
    }

    /// The deadline of the handshake, while it is incomplete and the connection is open.
    fn handshake_deadline(&self) -> Option<Instant> {
        (self.is_handshaking() && !self.inner.is_closed()).then_some(self.shaken_by)
    }

    pub(crate) fn deadline(&mut self) -> Option<Instant> {
        let inner = self.inner.poll_timeout().map(|at| self.clock.ours(at));
        inner.into_iter().chain(self.handshake_deadline()).min()
    }

    pub(crate) fn handle_deadline(&mut self, now: Now) {
        self.inner.handle_timeout(self.clock.library(now.mono));
        if self.handshake_deadline().is_some_and(|at| at <= now.mono) {
            self.close(now, 0, Bytes::from_static(b"handshake timeout"));
            self.events.push_back(QuicEvent::Lost(Lost::TimedOut));
        }
    }

    /// The library removed the connection.
    pub(crate) fn drained(&mut self) {
        self.events.push_back(QuicEvent::Gone);
    }

    pub(crate) fn poll_event(&mut self) -> Option<QuicEvent> {
        let mut bound = Bound::new();
        while bound.goes_on() {
            if let Some(id) = self.poll_opened() {
                return Some(QuicEvent::StreamReadable(id));
            }
            let Some(event) = self.inner.poll() else { return self.events.pop_front() };
            match event {
                Event::HandshakeDataReady => {
                    self.read_handshake();
                    if self.inner.has_0rtt() {
                        self.phase = Phase::Early;
                        return Some(QuicEvent::Connected { early: true });
                    }
                }
                Event::Connected => {
                    self.read_handshake();
                    let before = std::mem::replace(&mut self.phase, Phase::Open);
                    return Some(match before {
                        Phase::Early => QuicEvent::Confirmed,
                        Phase::Handshaking | Phase::Open => QuicEvent::Connected { early: false },
                    });
                }
                Event::ConnectionLost { reason } => return Some(QuicEvent::Lost(reason.into())),
                Event::Stream(event) => {
                    if let Some(event) = self.stream_event(&event) {
                        return Some(event);
                    }
                }
                Event::DatagramReceived | Event::DatagramsUnblocked => {}
            }
        }
        None
    }

    fn stream_event(&mut self, event: &StreamEvent) -> Option<QuicEvent> {
        match *event {
            StreamEvent::Opened { dir } => {
                self.opened[dir as usize] = true;
                None
            }
            StreamEvent::Readable { id } => Some(QuicEvent::StreamReadable(id.into())),
            StreamEvent::Writable { id } => {
                self.unblock(id.into());
                Some(QuicEvent::StreamWritable(id.into()))
            }
            StreamEvent::Stopped { id, error_code } => {
                self.unblock(id.into());
                Some(QuicEvent::Stopped(id.into(), error_code.into()))
            }
            StreamEvent::Available { dir: Dir::Uni } => Some(QuicEvent::UniAvailable),
            StreamEvent::Available { dir: Dir::Bi } | StreamEvent::Finished { .. } => None,
        }
    }

    fn poll_opened(&mut self) -> Option<u64> {
        for dir in [Dir::Uni, Dir::Bi] {
            if self.opened[dir as usize] {
                if let Some(id) = self.inner.streams().accept(dir) {
                    return Some(id.into());
                }
                self.opened[dir as usize] = false;
            }
        }
        None
    }

    fn read_handshake(&mut self) {
        let data = self.inner.crypto_session().handshake_data();
        if let Some(Ok(data)) = data.map(|data| data.downcast::<Handshake>()) {
            self.handshake = *data;
        }
    }

    fn unblock(&mut self, stream: u64) {
        if let Some(at) = self.blocked.iter().position(|blocked| *blocked == stream) {
            self.blocked.swap_remove(at);
        }
    }

    /// The stream, if the client can send on it.
    fn receiving(&self, stream: u64) -> Option<StreamId> {
        let id = stream_id(stream)?;
        (id.dir() == Dir::Bi || id.initiator() == Side::Client).then_some(id)
    }

    /// The stream, if we can send on it.
    fn sending(&self, stream: u64) -> Option<StreamId> {
        let id = stream_id(stream)?;
        (id.dir() == Dir::Bi || id.initiator() == Side::Server).then_some(id)
    }
}

fn stream_id(stream: u64) -> Option<StreamId> {
    VarInt::from_u64(stream).ok().map(StreamId::from)
}

impl fmt::Debug for QuicConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conn")
            .field("remote", &self.remote())
            .field("phase", &self.phase)
            .field("server_name", &self.handshake.server_name)
            .field("is_closed", &self.is_closed())
            .field("blocked", &self.blocked.len())
            .finish_non_exhaustive()
    }
}
