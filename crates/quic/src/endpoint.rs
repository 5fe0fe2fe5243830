//! All QUIC connections of one worker on one port: it routes datagrams, accepts connections, sends
//! stateless responses, and passes events between the library's endpoint and its connections.
//!
//! ```text
//!   datagram ─▶ receive ─┬─▶ a connection ─▶ poll_event, transmit, deadline
//!                        ├─▶ a new connection (or Retry, or a refusal)
//!                        └─▶ a stateless response in `out`, or nothing
//! ```
//!
//! INVARIANT: the library reuses a handle as soon as its connection is drained. So `by_handle` is
//! cleared at that moment, before the [`ConnId`] becomes stale.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bolide_base::{Bound, Instant, Now, Slab, SlabKey};
use bytes::BytesMut;
use quinn_proto::crypto::HandshakeTokenKey;
use quinn_proto::{DatagramEvent, EcnCodepoint, EndpointEvent, Incoming, ServerConfig, Transmit};

use crate::clock::CivilTime;
use crate::flow::RecvWindows;
use crate::settings::{self, GsoCutting, PathMtu};
use crate::token::{self, TokenKeys};
use crate::{
    QuicClock, QuicConnection, QuicEvent, QuicOutgoing, QuicSettings, QuicStats, Retry,
    SettingsError, SharedKeys,
};

/// Identifies a connection of an endpoint. It becomes stale with [`QuicEvent::Gone`].
pub type ConnId = SlabKey<QuicConnection>;

/// LIMIT: trains of one connection in one `transmit`.
const TRAINS_PER_TURN: usize = 4;

/// LIMIT: datagrams of one connection in one `transmit`, where they are sent one by one.
const SINGLES_PER_TURN: usize = 64;

/// LIMIT: bytes of a train, which one UDP send call takes.
const TRAIN_SIZE_MAX: usize = 65_000;

/// Bytes of the buffer for copies of received datagrams.
const ARENA_SIZE: usize = 16 * 1024;

/// The addresses of a received datagram.
#[derive(Clone, Copy, Debug)]
pub struct QuicArrival {
    /// The sender.
    pub remote: SocketAddr,
    /// Our address, if the socket reports it.
    pub local: Option<IpAddr>,
    /// The two ECN bits.
    pub ecn: u8,
}

/// Whether a connection has more to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// No. A datagram, a deadline or a write may change that.
    Nothing,
    /// Yes. It has used its share of this turn.
    More,
}

/// The connections of one worker.
pub struct Endpoint {
    inner: quinn_proto::Endpoint,
    conns: Slab<QuicConnection>,
    by_handle: Vec<Option<ConnId>>,
    clock: QuicClock,
    civil: Arc<CivilTime>,
    keys: SharedKeys,
    /// The key of tokens before the last settings.
    former_token_key: Option<Arc<dyn HandshakeTokenKey>>,
    arena: BytesMut,
    server: Server,
    handshaking: u32,
    ended: EndedStats,
    /// The kernel has refused to cut, whatever the settings say.
    kernel_refuses: bool,
}

/// The configuration of new connections.
struct Server {
    config: Arc<ServerConfig>,
    retry: Retry,
    handshake_timeout: Duration,
    conns_max: u32,
    send_window_min: u64,
    send_window_max: u64,
    recv_windows: RecvWindows,
    door: Admission,
    cutting: GsoCutting,
}

/// Whether new connections are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admission {
    Open,
    Shut,
}

impl Server {
    fn new(
        settings: &QuicSettings,
        tls: Arc<rustls::ServerConfig>,
        keys: &SharedKeys,
        civil: &Arc<CivilTime>,
    ) -> Result<Self, SettingsError> {
        Ok(Self {
            config: settings::server_config(settings, tls, keys, civil)?,
            retry: settings.retry,
            handshake_timeout: settings.handshake_timeout,
            conns_max: settings.conns_max,
            send_window_min: settings.send_window_min,
            send_window_max: settings.send_window_max.max(settings.send_window_min),
            recv_windows: RecvWindows::new(settings),
            door: Admission::Open,
            cutting: settings.cutting,
        })
    }
}

/// Whether a datagram begins with a Retry packet (RFC 9000 §17.2.5). Only servers send those. The
/// library closes the connection that one names, although nothing in it proves its sender.
fn is_retry(datagram: &[u8]) -> bool {
    const VERSION_1: [u8; 4] = [0, 0, 0, 1];
    datagram.first().is_some_and(|first| first & 0xf0 == 0xf0)
        && datagram.get(1..5) == Some(&VERSION_1)
}

/// The figures of connections that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedStats {
    /// How many there were whose handshake was complete.
    pub connections: u64,
    /// UDP datagrams that they had sent.
    pub datagrams_sent: u64,
    /// Their packets that were declared lost.
    pub packets_lost: u64,
    /// Their last smoothed round trips together.
    pub round_trips: Duration,
}

impl EndedStats {
    const NONE: Self =
        Self { connections: 0, datagrams_sent: 0, packets_lost: 0, round_trips: Duration::ZERO };

    fn add(&mut self, stats: &QuicStats, was_handshaking: bool) {
        self.datagrams_sent += stats.datagrams_sent;
        self.packets_lost += stats.packets_lost;
        // Before that a round trip is a guess.
        if !was_handshaking {
            self.connections += 1;
            self.round_trips += stats.rtt;
        }
    }
}

impl Endpoint {
    /// Creates the endpoint of worker number `worker`. `tls` is `tls::Acceptor::quic()`.
    ///
    /// # Errors
    ///
    /// The TLS configuration does not support QUIC, or a setting is out of bounds.
    pub fn new(
        settings: &QuicSettings,
        tls: Arc<rustls::ServerConfig>,
        worker: u8,
        keys: &SharedKeys,
        clock: QuicClock,
    ) -> Result<Self, SettingsError> {
        let civil = Arc::new(CivilTime::default());
        let server = Server::new(settings, tls, keys, &civil)?;
        let inner = quinn_proto::Endpoint::new(
            settings::endpoint_config(worker, keys),
            Some(Arc::clone(&server.config)),
            settings.path_mtu == PathMtu::Discovered,
            settings.seed.map(|mut seed| {
                seed[0] ^= worker;
                seed
            }),
        );
        Ok(Self {
            inner,
            conns: Slab::with_capacity(u32::MAX),
            by_handle: Vec::new(),
            clock,
            civil,
            keys: keys.clone(),
            former_token_key: None,
            arena: BytesMut::new(),
            server,
            handshaking: 0,
            ended: EndedStats::NONE,
            kernel_refuses: false,
        })
    }

    /// Sets settings, certificates and the key of tokens for new connections; open connections keep
    /// theirs. The other keys stay what they are.
    ///
    /// # Errors
    ///
    /// As [`Self::new`]; the old settings then stay.
    pub fn set_server_config(
        &mut self,
        settings: &QuicSettings,
        tls: Arc<rustls::ServerConfig>,
        keys: &SharedKeys,
    ) -> Result<(), SettingsError> {
        self.server = Server::new(settings, tls, keys, &self.civil)?;
        let former = std::mem::replace(&mut self.keys.token, Arc::clone(&keys.token));
        if !token::is_same_key(&*former, &*keys.token) {
            self.former_token_key = Some(former);
        }
        self.inner.set_server_config(Some(Arc::clone(&self.server.config)));
        Ok(())
    }

    /// Refuses new connections from now on; for a graceful shutdown.
    pub fn stop_accepting(&mut self) {
        self.server.door = Admission::Shut;
    }

    /// Receives one datagram. Returns the connection that it concerns or opens; then call
    /// `poll_event` and `transmit` for it. Stateless responses go to `out`.
    pub fn receive(
        &mut self,
        now: Now,
        from: QuicArrival,
        datagram: &[u8],
        out: &mut QuicOutgoing,
    ) -> Option<ConnId> {
        if is_retry(datagram) {
            return None;
        }
        // The library checks the age of a token before it reports the datagram with it.
        self.civil.set(now);
        let at = self.clock.library(now.mono);
        let data = self.copied(datagram);
        let ecn = EcnCodepoint::from_bits(from.ecn);
        let buffer = out.vacant();
        match self.inner.handle(at, from.remote, from.local, ecn, data, buffer)? {
            DatagramEvent::ConnectionEvent(handle, event) => {
                let id = self.by_handle.get(handle.0).copied().flatten()?;
                self.conns.get_mut(id)?.inner.handle_event(event);
                self.exchange_events(id);
                Some(id)
            }
            DatagramEvent::NewConnection(incoming) => {
                self.welcome(now, from, datagram, incoming, out)
            }
            DatagramEvent::Response(transmit) => {
                out.commit(&transmit);
                None
            }
        }
    }

    /// PERF: the library takes ownership of a datagram. All copies share one buffer, which is
    /// reused when no part of it is referenced, so that a datagram costs no allocation.
    fn copied(&mut self, datagram: &[u8]) -> BytesMut {
        if self.arena.capacity() < datagram.len() {
            self.arena.reserve(datagram.len().max(ARENA_SIZE));
        }
        self.arena.extend_from_slice(datagram);
        self.arena.split()
    }

    /// Accepts, validates or refuses a new connection.
    fn welcome(
        &mut self,
        now: Now,
        from: QuicArrival,
        datagram: &[u8],
        incoming: Incoming,
        out: &mut QuicOutgoing,
    ) -> Option<ConnId> {
        let full = self.conns.live() >= self.server.conns_max as usize;
        if full || self.server.door == Admission::Shut {
            let transmit = self.inner.refuse(incoming, out.vacant());
            out.commit(&transmit);
            return None;
        }
        let answer = out.vacant();
        let keys = TokenKeys { own: &*self.keys.token, former: self.former_token_key.as_deref() };
        if token::refuse(datagram, keys, &*self.server.config.crypto, answer) {
            let (destination, src_ip, size) = (from.remote, from.local, answer.len());
            let refusal = Transmit { destination, ecn: None, size, segment_size: None, src_ip };
            out.commit(&refusal);
            self.inner.ignore(incoming);
            return None;
        }
        let checks = match self.server.retry {
            Retry::Always => true,
            Retry::UnderLoad(handshakes) => self.handshaking >= handshakes,
        };
        let incoming = if checks && !incoming.remote_address_validated() {
            match self.inner.retry(incoming, out.vacant()) {
                Ok(transmit) => {
                    out.commit(&transmit);
                    return None;
                }
                Err(refused) => refused.into_incoming(),
            }
        } else {
            incoming
        };
        let at = self.clock.library(now.mono);
        match self.inner.accept(incoming, at, out.vacant(), None) {
            Ok((handle, conn)) if conn.is_closed() => {
                // The client gave up in its first packet. The library has no timer for the end of
                // such a connection, so it would stay until its idle timeout.
                let _none = self.inner.handle_event(handle, EndpointEvent::drained());
                None
            }
            Ok((handle, conn)) => {
                let shaken_by = now.mono.after(self.server.handshake_timeout);
                self.adopt(QuicConnection::new(
                    conn,
                    handle,
                    self.clock,
                    shaken_by,
                    self.server.recv_windows,
                ))
            }
            Err(refused) => {
                if let Some(transmit) = refused.response {
                    out.commit(&transmit);
                }
                None
            }
        }
    }

    /// The connections that the library has.
    #[cfg(test)]
    pub(crate) fn library_connections(&self) -> usize {
        self.inner.open_connections()
    }

    fn adopt(&mut self, conn: QuicConnection) -> Option<ConnId> {
        let handle = conn.handle.0;
        let id = self.conns.insert(conn).ok()?;
        if self.by_handle.len() <= handle {
            self.by_handle.resize(handle + 1, None);
        }
        self.by_handle[handle] = Some(id);
        self.handshaking += 1;
        self.exchange_events(id);
        Some(id)
    }

    /// Passes events between the library's endpoint and one connection until neither has any.
    fn exchange_events(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        let mut bound = Bound::new();
        while bound.goes_on()
            && let Some(event) = conn.inner.poll_endpoint_events()
        {
            let drained = event.is_drained();
            if let Some(event) = self.inner.handle_event(conn.handle, event) {
                conn.inner.handle_event(event);
            }
            if drained {
                self.by_handle[conn.handle.0] = None;
                conn.drained();
            }
        }
    }

    /// The connection, unless it is gone.
    pub fn conn(&mut self, id: ConnId) -> Option<&mut QuicConnection> {
        self.conns.get_mut(id)
    }

    /// Appends the output of the connection to `out`, in trains of at most `max_segments`
    /// datagrams, or of one where GSO is off.
    pub fn transmit(
        &mut self,
        id: ConnId,
        now: Now,
        max_segments: usize,
        out: &mut QuicOutgoing,
    ) -> Rest {
        let at = self.clock.library(now.mono);
        let Some(conn) = self.conns.get_mut(id) else { return Rest::Nothing };
        let window = conn.inner.congestion_state().window().saturating_mul(2);
        let (min, max) = (self.server.send_window_min, self.server.send_window_max);
        conn.inner.set_send_window(window.clamp(min, max));
        let fit = TRAIN_SIZE_MAX / usize::from(conn.inner.current_mtu().max(1200));
        let (max_segments, trains) = match self.server.cutting {
            GsoCutting::Kernel if !self.kernel_refuses => {
                (max_segments.clamp(1, fit.max(1)), TRAINS_PER_TURN)
            }
            GsoCutting::Kernel | GsoCutting::Ourselves => (1, SINGLES_PER_TURN),
        };
        let mut rest = Rest::More;
        for _ in 0..trains {
            match conn.inner.poll_transmit(at, max_segments, out.vacant()) {
                Some(transmit) => out.commit(&transmit),
                None => {
                    rest = Rest::Nothing;
                    break;
                }
            }
        }
        self.exchange_events(id);
        rest
    }

    /// The kernel refuses to cut trains: from now on they are of one datagram. Whether that is new.
    pub const fn give_up_trains(&mut self) -> bool {
        !std::mem::replace(&mut self.kernel_refuses, true)
    }

    /// The time for [`Self::handle_deadline`]; every other call may change it.
    pub fn deadline(&mut self, id: ConnId) -> Option<Instant> {
        self.conns.get_mut(id)?.deadline()
    }

    /// Handles expired timers; harmless if there are none. Then call `poll_event` and `transmit`.
    pub fn handle_deadline(&mut self, id: ConnId, now: Now) {
        if let Some(conn) = self.conns.get_mut(id) {
            conn.handle_deadline(now);
            self.exchange_events(id);
        }
    }

    /// The next event of the connection. Call it until there is none. [`QuicEvent::Gone`] removes
    /// the connection.
    pub fn poll_event(&mut self, id: ConnId) -> Option<QuicEvent> {
        let conn = self.conns.get_mut(id)?;
        let was_handshaking = conn.is_handshaking();
        let event = conn.poll_event();
        let is_handshaking = conn.is_handshaking() && event != Some(QuicEvent::Gone);
        if was_handshaking && !is_handshaking {
            self.handshaking -= 1;
        }
        if event == Some(QuicEvent::Gone)
            && let Some(conn) = self.conns.remove(id)
        {
            self.ended.add(&conn.stats(), was_handshaking);
        }
        event
    }

    /// The figures of connections that have ended since the last call.
    pub const fn take_ended(&mut self) -> EndedStats {
        std::mem::replace(&mut self.ended, EndedStats::NONE)
    }

    /// The ids of all connections; for a graceful shutdown.
    pub fn ids(&self) -> impl Iterator<Item = ConnId> + '_ {
        self.conns.keys()
    }

    /// The number of connections, closing ones included.
    #[must_use]
    pub const fn live(&self) -> usize {
        self.conns.live()
    }

    /// The number of connections in their handshake.
    #[must_use]
    pub const fn handshaking(&self) -> u32 {
        self.handshaking
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("live", &self.live())
            .field("handshaking", &self.handshaking)
            .finish_non_exhaustive()
    }
}
