//! Client connections over QUIC: their table, sockets and endpoints, deadlines, and those that send
//! in this turn.
//!
//! The events of the framing are in the scratch buffers; the caller passes them to exchanges.
//! Easiest to break: a connection that is lost or gone may still have exchanges, which end after
//! it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bolide_base::limits::CONNS_MAX;
use bolide_base::{Instant, Now, Slab, SlabKey};
use bolide_conf::model::LogLevel;
use bolide_engine::{ClientAddress, ConnInfo, ConnProtocol, ConnRelay, TallyCount, WorkerCount};
use bolide_http::Scheme;
use bolide_io::listen::Listener;
use bolide_io::{Interest, Io, UdpBatch};
use bolide_quic::{ConnId, Endpoint, QuicArrival, QuicClock, QuicEvent, QuicOutgoing, ReadEnd};
use bolide_wire::{ConnError, StreamId, h3};
use bytes::Bytes;

use crate::env::WorkerEnv;
use crate::framing::{ResetCause, StreamAct};
use crate::handshake_client::set_datagram_sender;
use crate::mail::{Mail, Strayed};
use crate::quic_conn::{QuicConn, QuicStreamTable};
use crate::settings::Profile;
use crate::token::PollToken;
use crate::udp_sockets::{UdpSocket, UdpSockets};

/// Receive calls on one socket in one turn.
const BATCHES_PER_TURN: usize = 4;
/// The interval of PINGs to a client that waits for an upstream: below idle timeouts of browsers.
/// Where our idle timeout is short, half of that.
const PING_EVERY: Duration = Duration::from_secs(10);
/// H3_GENERAL_PROTOCOL_ERROR and H3_INTERNAL_ERROR (RFC 9114 §8.1).
const H3_GENERAL_PROTOCOL_ERROR: u64 = 0x101;
const H3_INTERNAL_ERROR: u64 = 0x102;

/// Client connections over QUIC, and their sockets.
#[derive(Debug)]
pub(crate) struct QuicSide {
    pub(crate) conns: Slab<QuicConn>,
    pub(crate) udp: UdpSockets,
    /// Connections that may send in this turn.
    pub(crate) dirty: Vec<SlabKey<QuicConn>>,
    /// Connections in the table that are closed.
    pub(crate) lost: usize,
    clock: QuicClock,
    pub(crate) scratch: UdpScratch,
}

/// Buffers of the UDP path.
#[derive(Debug, Default)]
pub(crate) struct UdpScratch {
    batch: UdpBatch,
    pub(crate) outgoing: QuicOutgoing,
    chunks: Vec<Bytes>,
    pub(crate) woken: Vec<(usize, ConnId)>,
}

/// The result of one read of a stream.
#[derive(Debug)]
pub(crate) struct StreamRead {
    /// The framing's result.
    pub(crate) result: Result<(), ConnError>,
    /// Whether the stream may have more bytes.
    pub(crate) has_more: bool,
}

impl QuicSide {
    /// No sockets and connections.
    pub(crate) fn new(clock: QuicClock) -> Self {
        Self {
            conns: Slab::with_capacity(CONNS_MAX),
            udp: UdpSockets::default(),
            dirty: Vec::new(),
            lost: 0,
            clock,
            scratch: UdpScratch::default(),
        }
    }

    /// The next event of a connection's transport.
    pub(crate) fn poll_event(&mut self, key: SlabKey<QuicConn>) -> Option<QuicEvent> {
        let conn = self.conns.get(key)?;
        self.udp[conn.slot].endpoint.poll_event(conn.id)
    }

    /// Marks a connection to send in this turn.
    pub(crate) fn mark(&mut self, key: SlabKey<QuicConn>) {
        if let Some(conn) = self.conns.get_mut(key)
            && !conn.dirty
        {
            conn.dirty = true;
            self.dirty.push(key);
        }
    }

    /// Listens on a UDP socket, or updates one.
    pub(crate) fn listen<I: Io>(
        &mut self,
        listen: usize,
        socket: &Arc<Listener>,
        env: &mut WorkerEnv<I>,
    ) {
        let settings = &env.generation.listens[listen];
        let Some(tls) = settings.tls.as_ref().and_then(bolide_tls::Acceptor::quic) else {
            return env.log_server(LogLevel::Error, "no TLS 1.3 certificate for a quic listener");
        };
        if let Some(known) = self.udp.find_mut(|udp| udp.socket.fd() == socket.fd()) {
            (known.listen, known.wanted) = (listen, true);
            let keys = &env.generation.quic_keys;
            if let Err(error) = known.endpoint.set_server_config(&settings.quic, tls, keys) {
                env.log_server(LogLevel::Error, &error.to_string());
            }
            return;
        }
        let number = u8::try_from(env.number).unwrap_or(u8::MAX);
        let (keys, clock) = (&env.generation.quic_keys, self.clock);
        let endpoint = match Endpoint::new(&settings.quic, tls, number, keys, clock) {
            Ok(endpoint) => endpoint,
            Err(error) => return env.log_server(LogLevel::Error, &error.to_string()),
        };
        let token = PollToken::Udp(self.udp.vacancy() as u32).pack();
        if env.io.watch(socket.fd(), token, Interest::Level) {
            let (socket, at) = (socket.clone(), socket.local().ok());
            let keys = Vec::new();
            self.udp.insert(UdpSocket { socket, at, listen, endpoint, keys, wanted: true });
        }
    }

    /// Receives waiting datagrams; the connections that have events are in the scratch buffer.
    pub(crate) fn receive_datagrams<I: Io>(&mut self, slot: usize, env: &mut WorkerEnv<I>) {
        let mut scratch = std::mem::take(&mut self.scratch);
        for _ in 0..BATCHES_PER_TURN {
            let Some(udp) = self.udp.get_mut(slot) else { break };
            let received = env.io.receive_datagrams(udp.socket.fd(), &mut scratch.batch);
            let workers = env.news.posts.len() as u8;
            for (message, bytes) in scratch.batch.messages() {
                let from =
                    QuicArrival { remote: message.remote, local: message.local, ecn: message.ecn };
                let stride = message.stride.max(1);
                env.tally.count(WorkerCount::DatagramsIn, bytes.len().div_ceil(stride) as u64);
                env.tally.count(WorkerCount::DatagramBytesIn, bytes.len() as u64);
                for datagram in bytes.chunks(stride) {
                    let owner = bolide_quic::owner(datagram, &env.generation.quic_keys, workers);
                    if let Some(owner) = owner.filter(|owner| u16::from(*owner) != env.number) {
                        stray(&env.news.posts, owner, udp.at, message, datagram);
                        continue;
                    }
                    let out = &mut scratch.outgoing;
                    set_datagram_sender(&env.generation, udp, from);
                    if let Some(id) = udp.endpoint.receive(env.now, from, datagram, out)
                        && scratch.woken.last() != Some(&(slot, id))
                    {
                        scratch.woken.push((slot, id));
                    }
                }
            }
            self.send_trains(slot, &mut scratch.outgoing, env);
            if received < UdpBatch::CAPACITY {
                break;
            }
        }
        self.scratch = scratch;
    }

    /// Takes a datagram that another worker received for this one; returns the connection.
    pub(crate) fn take_strayed<I: Io>(
        &mut self,
        strayed: Strayed,
        env: &mut WorkerEnv<I>,
    ) -> Option<SlabKey<QuicConn>> {
        let Strayed { at, message, bytes } = strayed;
        let slot = self.udp.position(|udp| udp.at == at)?;
        let from = QuicArrival { remote: message.remote, local: message.local, ecn: message.ecn };
        set_datagram_sender(&env.generation, &self.udp[slot], from);
        let mut outgoing = std::mem::take(&mut self.scratch.outgoing);
        let id = self.udp[slot].endpoint.receive(env.now, from, &bytes, &mut outgoing);
        self.send_trains(slot, &mut outgoing, env);
        self.scratch.outgoing = outgoing;
        id.and_then(|id| self.key(slot, id, env))
    }

    /// The worker's key of an endpoint's connection; a new one if necessary.
    pub(crate) fn key<I: Io>(
        &mut self,
        slot: usize,
        id: ConnId,
        env: &mut WorkerEnv<I>,
    ) -> Option<SlabKey<QuicConn>> {
        let udp = &mut self.udp[slot];
        if let Some(key) = udp.key(id)
            && self.conns.get(key).is_some_and(|conn| conn.id == id)
        {
            return Some(key);
        }
        let conn = udp.endpoint.conn(id)?;
        let serial = env.next_serial();
        let ip = conn.local();
        let remote = conn.remote();
        let local = udp.local_end(ip);
        let info = Box::new(ConnInfo {
            serial,
            remote: ClientAddress::Inet(remote),
            local,
            listen: udp.listen,
            scheme: Scheme::Https,
            tls: None,
            relay: ConnRelay::Direct,
            started: env.now,
        });
        let conn = QuicConn {
            slot,
            id,
            info,
            generation: env.generation.clone(),
            profile: Profile::default(),
            idle_until: None,
            admitted: false,
            close_at: None,
            owing: None,
            said_goaway: false,
            h3: h3::H3Conn::new(),
            started: false,
            dirty: false,
            lost: false,
            refused: false,
            waiting: Vec::new(),
            armed: Default::default(),
            lateness: Default::default(),
            pings: false,
            moved: false,
            exchanges: 0,
            post_actions: 0,
        };
        let key = self.conns.insert(conn).ok()?;
        for count in
            [TallyCount::Accepted, TallyCount::Handled, TallyCount::Settled, TallyCount::Active]
        {
            env.tally.add(count, ConnProtocol::H3);
        }
        udp.set_key(id, Some(key));
        Some(key)
    }

    /// Reads a stream and feeds the framing; none if that takes nothing now.
    pub(crate) fn read_stream<I: Io>(
        &mut self,
        key: SlabKey<QuicConn>,
        stream: u64,
        env: &mut WorkerEnv<I>,
    ) -> Option<StreamRead> {
        let conn = self.conns.get_mut(key)?;
        if !conn.started || conn.lost {
            return None;
        }
        let transport = self.udp[conn.slot].endpoint.conn(conn.id)?;
        let wanted = conn.h3.wanted(stream);
        let mut reset = None;
        if wanted == 0 {
            reset = transport.received_reset(stream);
            let was_held = conn.waiting.len();
            conn.waiting.retain(|held| *held != stream);
            if reset.is_none() {
                conn.waiting.push(stream);
            }
            if conn.waiting.len() != was_held {
                transport.hold(conn.waiting.len());
            }
            reset?;
        }
        if !conn.moved && conn.info.remote.ip() != Some(transport.remote().ip()) {
            // Access was decided for the old address. Requests in progress continue; later ones are
            // rejected unprocessed and can be retried (RFC 9114 §4.1.1) over a connection whose
            // handshake proves the new address.
            conn.moved = true;
            conn.h3.shutdown(&mut QuicStreamTable(transport));
            conn.h3.shutdown(&mut QuicStreamTable(transport));
        }
        let early = transport.is_early();
        let mut chunks = std::mem::take(&mut self.scratch.chunks);
        let end = match reset {
            Some(code) => ReadEnd::Reset(code),
            None => transport.read(stream, wanted, &mut chunks),
        };
        let settings = &conn.generation.listens[conn.info.listen].limits(conn.profile).h3;
        let (heads, events) = (&mut env.heads, &mut env.scratch.events);
        let mut result = Ok(());
        conn.h3.rest(env.now);
        let count = chunks.len();
        for (number, chunk) in chunks.drain(..).enumerate() {
            let fin = end == ReadEnd::Finished && number + 1 == count;
            if result.is_ok() {
                result = conn.h3.receive(settings, stream, chunk, fin, early, heads, events);
            }
        }
        if count == 0 && end == ReadEnd::Finished && result.is_ok() {
            let nothing = Bytes::new();
            result = conn.h3.receive(settings, stream, nothing, true, early, heads, events);
        }
        if let (ReadEnd::Reset(code), Ok(())) = (end, result) {
            result = conn.h3.handle_reset(stream, code, events);
        }
        self.scratch.chunks = chunks;
        result = result.and(charge_wasters(conn, env));
        let has_more = result.is_ok() && end == ReadEnd::Full;
        Some(StreamRead { result, has_more })
    }

    /// Closes a connection for good; the caller ends its exchanges.
    pub(crate) fn close(
        &mut self,
        key: SlabKey<QuicConn>,
        code: u64,
        reason: &'static str,
        now: Now,
    ) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        if let Some(transport) = self.udp[conn.slot].endpoint.conn(conn.id) {
            transport.close(now, code, Bytes::from_static(reason.as_bytes()));
        }
        self.lost += usize::from(!std::mem::replace(&mut conn.lost, true));
        self.mark(key);
    }

    /// Removes a connection whose exchanges have ended.
    pub(crate) fn remove<I: Io>(&mut self, key: SlabKey<QuicConn>, env: &WorkerEnv<I>) {
        if let Some(conn) = self.conns.remove(key) {
            self.lost -= usize::from(conn.lost);
            debug_assert!(conn.exchanges == 0, "exchanges end before their connection");
            debug_assert!(
                self.udp[conn.slot].key(conn.id) == Some(key),
                "a socket knows its connections"
            );
            env.tally.remove(TallyCount::Active, ConnProtocol::H3);
            if conn.info.tls.is_none() {
                let count = match conn.refused {
                    true => WorkerCount::QuicRefused,
                    false => WorkerCount::QuicAbandoned,
                };
                env.tally.count(count, 1);
            }
            let udp = &mut self.udp[conn.slot];
            udp.set_key(conn.id, None);
            let ended = udp.endpoint.take_ended();
            env.tally.count(WorkerCount::PacketsSent, ended.datagrams_sent);
            env.tally.count(WorkerCount::PacketsLost, ended.packets_lost);
            env.tally.count(WorkerCount::RoundTrips, ended.connections);
            env.tally.count(WorkerCount::RoundTripMicros, ended.round_trips.as_micros() as u64);
        }
    }

    /// Schedules PINGs for a client that waits for an upstream, against the idle timeout.
    pub(crate) fn ping_while_waiting<I: Io>(
        &mut self,
        key: SlabKey<QuicConn>,
        env: &mut WorkerEnv<I>,
    ) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        if !std::mem::replace(&mut conn.pings, true) {
            let idle = conn.generation.listens[conn.info.listen].quic.idle_timeout;
            let at = env.now.mono.after(PING_EVERY.min(idle / 2));
            env.wheel.arm_once(at, PollToken::Ping(key).pack());
        }
    }

    /// Sends a PING if the client may have been waiting for an upstream, as `waits` tells.
    pub(crate) fn ping<I: Io>(
        &mut self,
        key: SlabKey<QuicConn>,
        waits: bool,
        env: &mut WorkerEnv<I>,
    ) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        conn.pings = false;
        if !waits || conn.lost {
            return;
        }
        if let Some(transport) = self.udp[conn.slot].endpoint.conn(conn.id) {
            transport.ping();
        }
        self.mark(key);
        self.ping_while_waiting(key, env);
    }

    /// Resets a request stream.
    pub(crate) fn reset(&mut self, key: SlabKey<QuicConn>, stream: StreamId, cause: ResetCause) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        debug_assert!(conn.started, "a stream is of a framing that has begun");
        let code = match cause {
            // As nginx does, whatever RFC 9114 §8.1 would suggest.
            ResetCause::ClientLate | ResetCause::Unanswered => H3_GENERAL_PROTOCOL_ERROR,
            ResetCause::Unserved => H3_INTERNAL_ERROR,
        };
        if let Some(transport) = self.udp[conn.slot].endpoint.conn(conn.id) {
            conn.h3.reset(stream, code, &mut QuicStreamTable(transport));
        }
        self.mark(key);
    }

    /// Applies an action to one stream.
    pub(crate) fn act(&mut self, key: SlabKey<QuicConn>, stream: StreamId, act: StreamAct) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        match act {
            StreamAct::Continue => conn.h3.send_continue(stream),
            StreamAct::Ready => conn.h3.body_ready(stream),
            // QUIC's own windows are open from the start.
            StreamAct::Wanted(_) => {}
            StreamAct::Consumed(bytes) => conn.h3.body_consumed(stream, bytes),
            StreamAct::Discard => {
                if let Some(transport) = self.udp[conn.slot].endpoint.conn(conn.id) {
                    conn.h3.discard_body(stream, &mut QuicStreamTable(transport));
                }
            }
        }
    }

    /// Sets the deadline of a connection.
    pub(crate) fn rearm<I: Io>(&mut self, key: SlabKey<QuicConn>, env: &mut WorkerEnv<I>) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        let deadline = self.udp[conn.slot].endpoint.deadline(conn.id);
        // A deadline that has come is handled when the connection sends; it is marked.
        let close_at = conn.close_at.filter(|at| !conn.lost && *at > env.now.mono);
        let idle_until = conn.idle_until(env.now.mono);
        if let Some(deadline) = [deadline, close_at, idle_until].into_iter().flatten().min() {
            env.wheel.arm(&mut conn.armed, deadline, PollToken::Quic(key).pack());
        }
        if conn.h3.streams_open() > 0 {
            let limits = conn.generation.listens[conn.info.listen].limits(conn.profile);
            if let Some(at) = conn.lateness.watch(limits, env.now.mono) {
                env.wake_at(at, PollToken::LateQuic(key));
            }
        }
    }

    /// Checks the deadline of a connection; returns whether its transport has events. One that has
    /// been without a request for too long was ended before.
    pub(crate) fn expire<I: Io>(
        &mut self,
        key: SlabKey<QuicConn>,
        at: Instant,
        env: &mut WorkerEnv<I>,
    ) -> bool {
        let Some(conn) = self.conns.get_mut(key) else { return false };
        conn.armed.fired(at);
        let (slot, id) = (conn.slot, conn.id);
        if conn.close_at.is_some_and(|at| at <= env.now.mono) && !conn.lost {
            self.mark(key);
        }
        let endpoint = &mut self.udp[slot].endpoint;
        if endpoint.deadline(id).is_some_and(|deadline| deadline <= env.now.mono) {
            endpoint.handle_deadline(id, env.now);
            return true;
        }
        self.rearm(key, env);
        false
    }
}

fn stray(
    posts: &[crate::mail::Post],
    owner: u8,
    at: Option<SocketAddr>,
    message: bolide_io::DatagramIn,
    datagram: &[u8],
) {
    if let Some(post) = posts.get(usize::from(owner)) {
        let strayed = Strayed { at, message, bytes: datagram.to_vec() };
        // A full mailbox loses a datagram, as a full socket does.
        let _ = post.send(Mail::Datagram(Box::new(strayed)));
    }
}

/// Charges the client's address for wasted requests.
///
/// # Errors
///
/// It has wasted too many, over all connections.
pub(crate) fn charge_wasters<I: Io>(
    conn: &mut QuicConn,
    env: &mut WorkerEnv<I>,
) -> Result<(), ConnError> {
    let wasted = conn.h3.take_wasted();
    let are_too_many = wasted > 0 && env.wasters.are_too_many(conn.info.opener(), wasted, env.now);
    if are_too_many { Err(h3::EXCESSIVE_LOAD) } else { Ok(()) }
}
