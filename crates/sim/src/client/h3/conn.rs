//! One QUIC connection of a client: the library's state machine, driven by the simulated clock over
//! the simulated network.

#![expect(clippy::disallowed_types, reason = "the library's vocabulary; no clock is read here")]

use std::io::Cursor;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId, DatagramEvent, Dir,
    EcnCodepoint, Endpoint, EndpointConfig, Event, FixedLengthConnectionIdParser, IdleTimeout,
    LongType, MtuDiscoveryConfig, ProtectedHeader, ReadError, StreamEvent, StreamId,
    TransportConfig, VarInt, WriteError,
};

use crate::chance::Chance;
use crate::kernel::Kernel;
use crate::time::MILLI;

/// Datagrams sent per step.
const DATAGRAMS_MAX: usize = 40;
/// Larger than any response.
const WINDOW_MAX: usize = 1 << 20;

/// The parameters of a new connection.
pub(super) struct H3ConnectParams {
    pub(super) tls: Arc<QuicClientConfig>,
    pub(super) port: u16,
}

/// Random transport parameters of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimH3Transport {
    /// The receive window of a stream, in bytes.
    pub(super) window: u32,
    /// The receive window of the connection, in bytes.
    pub(super) window_all: u32,
    /// Nanoseconds between PINGs; 0 for none.
    pub(super) pings: u64,
    /// Whether path MTU discovery is on.
    pub(super) probes: bool,
    /// Unidirectional streams that the server may open.
    pub(super) unis: u32,
}

impl SimH3Transport {
    pub(super) fn any(chance: &mut Chance) -> Self {
        let window = 1000 + chance.size(WINDOW_MAX) as u32;
        let window = if chance.one_in(3) { WINDOW_MAX as u32 } else { window };
        Self {
            window,
            // The server's own streams need a part of it.
            window_all: (window.saturating_mul(chance.between(1, 4) as u32)).max(1024),
            pings: [0, 0, 0, 700 * MILLI, 5000 * MILLI][chance.index(5)],
            probes: chance.one_in(2),
            unis: [3, 3, 100][chance.index(3)],
        }
    }

    fn config(self) -> TransportConfig {
        let mut config = TransportConfig::default();
        let idle = IdleTimeout::from(VarInt::from_u32(600_000));
        let pings = (self.pings > 0).then(|| Duration::from_nanos(self.pings));
        config
            .max_idle_timeout(Some(idle))
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .max_concurrent_uni_streams(VarInt::from_u32(self.unis))
            .stream_receive_window(VarInt::from_u32(self.window))
            .receive_window(VarInt::from_u32(self.window_all))
            .mtu_discovery_config(self.probes.then(MtuDiscoveryConfig::default))
            .datagram_receive_buffer_size(None)
            .keep_alive_interval(pings);
        config
    }
}

/// An event on a connection.
#[derive(Debug)]
pub(super) enum H3ConnEvent {
    /// The client may open streams; during the handshake if `early` (0-RTT).
    Ready {
        /// The server may reject all that is sent now.
        early: bool,
    },
    /// The server has rejected the early data: its streams do not exist.
    EarlyRefused,
    /// The handshake is complete, and the server has accepted the early data.
    Confirmed,
    /// A stream has bytes to read.
    Readable(u64),
    /// A stream has room for writing.
    Writable,
    /// The server sent STOP_SENDING.
    Stopped(u64),
    /// The connection is closed.
    Lost(ConnectionError),
}

/// The result of a read.
#[derive(Debug)]
pub(super) enum SimH3Read {
    /// Bytes, and whether there may be more.
    Bytes(Vec<u8>, SimH3More),
    /// The last bytes of the stream.
    End(Vec<u8>),
    /// The server reset the stream.
    Reset(u64),
    /// The stream does not exist any more.
    Gone,
}

/// Whether more bytes can be read now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimH3More {
    /// Possibly.
    Perhaps,
    /// No.
    No,
}

/// One connection.
pub(super) struct SimH3Conn {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    pub(super) quic: Connection,
    /// The client's host in the simulated network.
    pub(super) host: usize,
    pub(super) port: u16,
    /// When the last datagram of the connection arrived.
    pub(super) last_received_at: u64,
    /// Streams were opened during the handshake (0-RTT).
    is_early: bool,
    has_begun: bool,
    client_finished: FinishedState,
    out: Vec<u8>,
}

/// The client's last handshake message (Finished) after early data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FinishedState {
    /// No message is due.
    None,
    /// The message is due.
    Due,
    /// The message was sent once.
    Sent,
}

impl std::fmt::Debug for SimH3Conn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conn").field("host", &self.host).field("port", &self.port).finish()
    }
}

/// The origin of the library's clock. All clients share one reading, because two readings differ.
static EPOCH: LazyLock<std::time::Instant> = LazyLock::new(bolide_io::process::epoch);

fn library(nanos: u64) -> std::time::Instant {
    *EPOCH + Duration::from_nanos(nanos)
}

fn seed(chance: &mut Chance) -> [u8; 32] {
    let mut seed = [0; 32];
    for part in seed.chunks_mut(4) {
        part.copy_from_slice(&(chance.below(1 << 32) as u32).to_be_bytes());
    }
    seed
}

impl SimH3Conn {
    /// Connects to the server from a new host.
    pub(super) fn new(
        kernel: &mut Kernel,
        call: &H3ConnectParams,
        transport: SimH3Transport,
        chance: &mut Chance,
    ) -> Result<Self, String> {
        let mut config = EndpointConfig::default();
        config.rng_seed(Some(seed(chance)));
        let mut endpoint = Endpoint::new(Arc::new(config), None, transport.probes, None);
        let mut config = ClientConfig::new(call.tls.clone());
        config.transport_config(Arc::new(transport.config()));
        let (first, size) = (chance.below(u64::MAX), chance.between(8, 20) as usize);
        let drawn = AtomicU64::new(first);
        config.initial_dst_cid_provider(Arc::new(move || {
            let number = drawn.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
            let mut bytes = [0; 20];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            bytes[8..16].copy_from_slice(&number.rotate_left(17).to_be_bytes());
            ConnectionId::new(&bytes[..size])
        }));
        let at = Kernel::server_at(call.port);
        let connected = endpoint.connect(library(kernel.nanos), config, at, "site");
        let (handle, quic) = connected.map_err(|error| error.to_string())?;
        Ok(Self {
            endpoint,
            handle,
            quic,
            host: kernel.add_host(),
            port: call.port,
            last_received_at: kernel.nanos,
            is_early: false,
            has_begun: false,
            client_finished: FinishedState::None,
            out: Vec::new(),
        })
    }

    /// Processes received datagrams and expired timers. Returns whether there were any.
    pub(super) fn receive(&mut self, kernel: &mut Kernel) -> bool {
        let now = library(kernel.nanos);
        let mut any = false;
        while let Some(datagram) = kernel.client_take(self.host) {
            any = true;
            let ecn = EcnCodepoint::from_bits(datagram.ecn);
            let data = BytesMut::from(&datagram.bytes[..]);
            self.out.clear();
            let event = self.endpoint.handle(now, datagram.from, None, ecn, data, &mut self.out);
            match event {
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    self.quic.handle_event(event);
                    // A stateless reset comes from a server that has lost the connection.
                    if !self.quic.is_drained() {
                        self.last_received_at = kernel.nanos;
                    }
                }
                Some(DatagramEvent::Response(transmit)) => {
                    let bytes = self.out[..transmit.size].to_vec();
                    kernel.client_datagram(self.host, self.port, 0, &bytes);
                }
                Some(DatagramEvent::NewConnection(_)) | None => {}
            }
            self.exchange_events();
        }
        if self.quic.poll_timeout().is_some_and(|at| at <= now) {
            self.quic.handle_timeout(now);
            self.exchange_events();
            any = true;
        }
        any
    }

    fn exchange_events(&mut self) {
        while let Some(event) = self.quic.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.quic.handle_event(event);
            }
        }
    }

    /// The next event.
    pub(super) fn poll(&mut self) -> Option<H3ConnEvent> {
        if !self.has_begun && self.quic.has_0rtt() {
            (self.has_begun, self.is_early) = (true, true);
            return Some(H3ConnEvent::Ready { early: true });
        }
        loop {
            match self.quic.poll()? {
                Event::Connected if std::mem::take(&mut self.is_early) => {
                    self.client_finished = FinishedState::Due;
                    let is_taken = self.quic.accepted_0rtt();
                    return Some(match is_taken {
                        true => H3ConnEvent::Confirmed,
                        false => H3ConnEvent::EarlyRefused,
                    });
                }
                Event::Connected => {
                    self.has_begun = true;
                    return Some(H3ConnEvent::Ready { early: false });
                }
                Event::ConnectionLost { reason } => return Some(H3ConnEvent::Lost(reason)),
                Event::Stream(StreamEvent::Opened { dir }) => {
                    // A stream's bytes are reported once the stream is accepted.
                    if let Some(id) = self.quic.streams().accept(dir) {
                        return Some(H3ConnEvent::Readable(id.into()));
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => {
                    return Some(H3ConnEvent::Readable(id.into()));
                }
                Event::Stream(StreamEvent::Writable { .. } | StreamEvent::Available { .. }) => {
                    return Some(H3ConnEvent::Writable);
                }
                Event::Stream(StreamEvent::Stopped { id, .. }) => {
                    return Some(H3ConnEvent::Stopped(id.into()));
                }
                Event::Stream(StreamEvent::Finished { .. })
                | Event::HandshakeDataReady
                | Event::DatagramReceived
                | Event::DatagramsUnblocked => {}
            }
        }
    }

    /// The next stream that the server has opened; streams that open together are reported once.
    pub(super) fn accept(&mut self) -> Option<u64> {
        self.quic.streams().accept(Dir::Uni).map(u64::from)
    }

    /// Sends pending datagrams. Returns whether there were any.
    pub(super) fn transmit(&mut self, kernel: &mut Kernel) -> bool {
        let now = library(kernel.nanos);
        let mut any = false;
        for _ in 0..DATAGRAMS_MAX {
            self.out.clear();
            let Some(transmit) = self.quic.poll_transmit(now, 1, &mut self.out) else { break };
            let ecn = transmit.ecn.map_or(0, |ecn| ecn as u8);
            let bytes = std::mem::take(&mut self.out);
            if self.client_finished == FinishedState::Due && has_handshake(&bytes[..transmit.size])
            {
                self.client_finished = FinishedState::Sent;
            }
            kernel.client_datagram(self.host, self.port, ecn, &bytes[..transmit.size]);
            self.out = bytes;
            any = true;
        }
        self.exchange_events();
        any
    }

    /// Whether the client holds back its last handshake message, so that the server can neither
    /// complete the handshake nor read later packets (RFC 9001 §5.7).
    ///
    /// The library lets early data fill the congestion window, and then sends a Handshake packet
    /// only as a probe; it sends probes in a packet number space with packets in flight, which is
    /// only that of early data. By RFC 9002 §6.2.2.1 a client probes with a Handshake packet until
    /// one of those is acknowledged. The server has acknowledged the early data in packets that
    /// arrived before their keys. (<https://github.com/quicwg/base-drafts/issues/2984>)
    pub(super) fn holds_back_finished(&self) -> bool {
        self.client_finished == FinishedState::Due
    }

    /// Whether the server has confirmed the handshake (RFC 9001 §4.1.2). Until then a client may
    /// probe with Handshake packets only.
    pub(super) fn is_confirmed(&self) -> bool {
        self.quic.stats().frame_rx.handshake_done > 0
    }

    /// The number of RESET_STREAM frames received, repeated ones included.
    pub(super) fn resets_received(&self) -> u64 {
        self.quic.stats().frame_rx.reset_stream
    }

    /// When the next timer expires.
    pub(super) fn deadline(&mut self) -> Option<u64> {
        let at = self.quic.poll_timeout()?;
        Some(at.saturating_duration_since(*EPOCH).as_nanos() as u64)
    }

    /// Opens a stream.
    pub(super) fn open(&mut self, dir: Dir) -> Option<u64> {
        self.quic.streams().open(dir).map(u64::from)
    }

    /// Writes to a stream. Returns how many bytes were accepted, or `None` after STOP_SENDING.
    pub(super) fn write(&mut self, stream: u64, bytes: &[u8]) -> Option<usize> {
        match self.quic.send_stream(id(stream)).write(bytes) {
            Ok(taken) => Some(taken),
            Err(WriteError::Blocked) => Some(0),
            Err(WriteError::Stopped(_) | WriteError::ClosedStream) => None,
        }
    }

    /// Ends the sending side of a stream. A closed stream needs no end.
    pub(super) fn finish(&mut self, stream: u64) {
        let _ = self.quic.send_stream(id(stream)).finish();
    }

    /// Cancels a stream in both directions.
    pub(super) fn cancel(&mut self, stream: u64, code: u64) {
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        // A closed stream needs neither frame.
        let _ = self.quic.send_stream(id(stream)).reset(code);
        let _ = self.quic.recv_stream(id(stream)).stop(code);
    }

    /// Resets the sending side of a stream.
    pub(super) fn reset(&mut self, stream: u64, code: u64) {
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        let _ = self.quic.send_stream(id(stream)).reset(code);
    }

    /// Reads at most `max` bytes of a stream.
    pub(super) fn read(&mut self, stream: u64, max: usize) -> SimH3Read {
        let mut recv = self.quic.recv_stream(id(stream));
        let Ok(mut chunks) = recv.read(true) else { return SimH3Read::Gone };
        let mut bytes = Vec::new();
        let read = loop {
            if bytes.len() >= max {
                break SimH3Read::Bytes(bytes, SimH3More::Perhaps);
            }
            match chunks.next(max - bytes.len()) {
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk.bytes),
                Ok(None) => break SimH3Read::End(bytes),
                Err(ReadError::Blocked) => break SimH3Read::Bytes(bytes, SimH3More::No),
                Err(ReadError::Reset(code)) => break SimH3Read::Reset(code.into()),
            }
        };
        // The next `transmit` sends flow-control updates in any case.
        let _ = chunks.finalize();
        read
    }

    /// Sends CONNECTION_CLOSE with a code.
    pub(super) fn close(&mut self, kernel: &mut Kernel, code: u64) {
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        self.quic.close(library(kernel.nanos), code, Bytes::new());
        self.transmit(kernel);
    }
}

/// Whether a datagram of this client has a Handshake packet (RFC 9000 §17.2.4).
fn has_handshake(datagram: &[u8]) -> bool {
    // The length of the connection id matters only in short headers, which come last in a datagram.
    let ids = FixedLengthConnectionIdParser::new(0);
    let mut rest = datagram;
    while !rest.is_empty() {
        let mut at = Cursor::new(BytesMut::from(rest));
        let len = match ProtectedHeader::decode(&mut at, &ids, &[1], true) {
            Ok(ProtectedHeader::Long { ty: LongType::Handshake, .. }) => return true,
            Ok(ProtectedHeader::Long { len, .. }) => len,
            Ok(ProtectedHeader::Initial(initial)) => initial.len,
            _ => return false,
        };
        let end = at.position().saturating_add(len);
        rest = usize::try_from(end).ok().and_then(|end| rest.get(end..)).unwrap_or_default();
    }
    false
}

fn id(stream: u64) -> StreamId {
    StreamId::from(VarInt::from_u64(stream).unwrap_or(VarInt::MAX))
}
