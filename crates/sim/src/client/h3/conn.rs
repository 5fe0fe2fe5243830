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
use crate::scenario::MILLI;

/// Datagrams that leave in one action.
const DATAGRAMS_MAX: usize = 40;
/// Larger windows than any answer.
const WINDOW_MAX: usize = 1 << 20;

/// Who calls: a connection's beginnings.
pub(super) struct SimH3Call {
    pub(super) tls: Arc<QuicClientConfig>,
    pub(super) port: u16,
}

/// How the transport of one connection behaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimH3Transport {
    /// Bytes that a stream of the server may have on its way.
    pub(super) window: u32,
    /// The same of all streams.
    pub(super) window_all: u32,
    /// Nanoseconds between signs of life; 0: none.
    pub(super) pings: u64,
    /// Whether it looks for larger datagrams.
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
            // The server's own streams need some of it.
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

/// What is new on a connection.
#[derive(Debug)]
pub(super) enum Tidings {
    /// Streams may be used; before the handshake is over if `early`.
    Ready {
        /// What is sent now may be refused as a whole.
        early: bool,
    },
    /// The server has refused what was sent early: those streams never were.
    EarlyRefused,
    /// The handshake is over, and the server has taken what was sent early.
    Confirmed,
    /// There is something to read.
    Readable(u64),
    /// There is room again.
    Writable,
    /// The server wants no more of a stream.
    Stopped(u64),
    /// The connection is over.
    Lost(ConnectionError),
}

/// What a read gave.
#[derive(Debug)]
pub(super) enum SimH3Read {
    /// Bytes, and whether there may be more.
    Bytes(Vec<u8>, SimH3More),
    /// The stream is complete behind these.
    End(Vec<u8>),
    /// The server gave it up.
    Reset(u64),
    /// There is no such stream any more.
    Gone,
}

/// Whether there is more to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimH3More {
    /// Perhaps.
    Perhaps,
    /// Not now.
    No,
}

/// One connection.
pub(super) struct SimH3Conn {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    pub(super) quic: Connection,
    /// Where it lives.
    pub(super) host: usize,
    pub(super) port: u16,
    /// The last datagram of the connection came then.
    pub(super) heard: u64,
    /// Streams were used before the handshake was over.
    is_early: bool,
    has_begun: bool,
    last_word: LastWord,
    out: Vec<u8>,
}

/// What became of the client's last message of a handshake that began with early streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastWord {
    /// There is none to be sent.
    None,
    /// It is to be sent.
    Due,
    /// It has left once, and is the network's and the server's matter.
    Sent,
}

impl std::fmt::Debug for SimH3Conn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conn").field("host", &self.host).field("port", &self.port).finish()
    }
}

/// Where the library's time begins: one reading for all, as two differ.
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
    /// Calls the server from a new host.
    pub(super) fn new(
        kernel: &mut Kernel,
        call: &SimH3Call,
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
            heard: kernel.nanos,
            is_early: false,
            has_begun: false,
            last_word: LastWord::None,
            out: Vec::new(),
        })
    }

    /// Takes what arrived, and does what is due; whether anything was.
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
                    // A reset is the word of a server that has forgotten the connection.
                    if !self.quic.is_drained() {
                        self.heard = kernel.nanos;
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

    /// The next thing that happened.
    pub(super) fn poll(&mut self) -> Option<Tidings> {
        if !self.has_begun && self.quic.has_0rtt() {
            (self.has_begun, self.is_early) = (true, true);
            return Some(Tidings::Ready { early: true });
        }
        loop {
            match self.quic.poll()? {
                Event::Connected if std::mem::take(&mut self.is_early) => {
                    self.last_word = LastWord::Due;
                    let is_taken = self.quic.accepted_0rtt();
                    return Some(match is_taken {
                        true => Tidings::Confirmed,
                        false => Tidings::EarlyRefused,
                    });
                }
                Event::Connected => {
                    self.has_begun = true;
                    return Some(Tidings::Ready { early: false });
                }
                Event::ConnectionLost { reason } => return Some(Tidings::Lost(reason)),
                Event::Stream(StreamEvent::Opened { dir }) => {
                    // Their bytes are reported with them, once each is accepted.
                    if let Some(id) = self.quic.streams().accept(dir) {
                        return Some(Tidings::Readable(id.into()));
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => {
                    return Some(Tidings::Readable(id.into()));
                }
                Event::Stream(StreamEvent::Writable { .. } | StreamEvent::Available { .. }) => {
                    return Some(Tidings::Writable);
                }
                Event::Stream(StreamEvent::Stopped { id, .. }) => {
                    return Some(Tidings::Stopped(id.into()));
                }
                Event::Stream(StreamEvent::Finished { .. })
                | Event::HandshakeDataReady
                | Event::DatagramReceived
                | Event::DatagramsUnblocked => {}
            }
        }
    }

    /// Another stream of the server that has come; those that come together are reported once.
    pub(super) fn accept(&mut self) -> Option<u64> {
        self.quic.streams().accept(Dir::Uni).map(u64::from)
    }

    /// Sends what is to be sent; whether anything was.
    pub(super) fn transmit(&mut self, kernel: &mut Kernel) -> bool {
        let now = library(kernel.nanos);
        let mut any = false;
        for _ in 0..DATAGRAMS_MAX {
            self.out.clear();
            let Some(transmit) = self.quic.poll_transmit(now, 1, &mut self.out) else { break };
            let ecn = transmit.ecn.map_or(0, |ecn| ecn as u8);
            let bytes = std::mem::take(&mut self.out);
            if self.last_word == LastWord::Due && has_handshake(&bytes[..transmit.size]) {
                self.last_word = LastWord::Sent;
            }
            kernel.client_datagram(self.host, self.port, ecn, &bytes[..transmit.size]);
            self.out = bytes;
            any = true;
        }
        self.exchange_events();
        any
    }

    /// Whether the client keeps the last message of its handshake back, so that the server can
    /// never be done with the handshake, nor read what comes after it (RFC 9001 §5.7).
    ///
    /// The library lets early data fill the congestion window, and then sends no Handshake packet
    /// but as a probe; its probes go where packets are in flight, which is among the early ones
    /// alone. RFC 9002 §6.2.2.1 has a client probe with a Handshake packet until one of those is
    /// acknowledged. The server has acknowledged the early data, in packets that came before their
    /// keys. (<https://github.com/quicwg/base-drafts/issues/2984>)
    pub(super) fn is_stuck(&self) -> bool {
        self.last_word == LastWord::Due
    }

    /// Whether the server has confirmed the handshake (RFC 9001 §4.1.2). Until then a client may
    /// probe with packets of the handshake alone.
    pub(super) fn is_confirmed(&self) -> bool {
        self.quic.stats().frame_rx.handshake_done > 0
    }

    /// How many RESET_STREAM frames came, the same one again included.
    pub(super) fn resets_received(&self) -> u64 {
        self.quic.stats().frame_rx.reset_stream
    }

    /// When it wants to be woken though nothing arrives.
    pub(super) fn deadline(&mut self) -> Option<u64> {
        let at = self.quic.poll_timeout()?;
        Some(at.saturating_duration_since(*EPOCH).as_nanos() as u64)
    }

    /// Opens a stream.
    pub(super) fn open(&mut self, dir: Dir) -> Option<u64> {
        self.quic.streams().open(dir).map(u64::from)
    }

    /// Writes to a stream; how much was taken; nothing after STOP_SENDING.
    pub(super) fn write(&mut self, stream: u64, bytes: &[u8]) -> Option<usize> {
        match self.quic.send_stream(id(stream)).write(bytes) {
            Ok(taken) => Some(taken),
            Err(WriteError::Blocked) => Some(0),
            Err(WriteError::Stopped(_) | WriteError::ClosedStream) => None,
        }
    }

    /// Ends what we send on a stream; one that is over already needs no end.
    pub(super) fn finish(&mut self, stream: u64) {
        let _ = self.quic.send_stream(id(stream)).finish();
    }

    /// Gives a stream up, both ways.
    pub(super) fn cancel(&mut self, stream: u64, code: u64) {
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        // A stream that is over already needs neither.
        let _ = self.quic.send_stream(id(stream)).reset(code);
        let _ = self.quic.recv_stream(id(stream)).stop(code);
    }

    /// Gives up what we send on a stream.
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
        // What has to be told to the server leaves with the next `transmit` in any case.
        let _ = chunks.finalize();
        read
    }

    /// Closes with a code, and tells the server so.
    pub(super) fn close(&mut self, kernel: &mut Kernel, code: u64) {
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        self.quic.close(library(kernel.nanos), code, Bytes::new());
        self.transmit(kernel);
    }
}

/// Whether one of the packets of a datagram of ours is a Handshake packet (RFC 9000 §17.2.4).
fn has_handshake(datagram: &[u8]) -> bool {
    // Only short headers have an id whose length must be known; they are the last in a datagram.
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
