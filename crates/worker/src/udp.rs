//! The UDP side of a worker: datagrams in, QUIC connections, datagrams out.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bolide_base::{Bound, CopyPolicy, Instant, SlabKey};
use bolide_conf::model::LogLevel;
use bolide_engine::{ClientAddress, ConnInfo, TallyCount};
use bolide_http::Scheme;
use bolide_io::listen::Listener;
use bolide_io::{DatagramOut, Interest, Io, UdpBatch};
use bolide_quic::{ConnId, Endpoint, QuicArrival, QuicEvent, QuicOutgoing, ReadEnd, Rest};
use bolide_wire::{StreamId, h3};
use bytes::Bytes;

use crate::exchange_table::Owner;
use crate::framing::StreamAct;
use crate::mail::{Mail, Strayed};
use crate::quic_conn::{QuicConn, QuicStreamTable};
use crate::settings::Profile;
use crate::token::PollToken;
use crate::udp_sockets::UdpSocket;
use crate::worker::Worker;

/// Receive calls on one socket in one turn.
const BATCHES_PER_TURN: usize = 4;
/// Datagrams in one GSO train: what 64 KiB hold.
const TRAIN_MAX: usize = 40;
/// Bytes read from one stream at a time.
const READ_MAX: usize = 256 * 1024;
/// Bytes pulled from bodies for one connection in one turn.
const ROOM: usize = bolide_base::limits::SEND_PER_TURN;
/// How often a client that waits for an origin is asked for a sign of life: well within the idle
/// timeouts of browsers.
const PING_EVERY: Duration = Duration::from_secs(10);
/// Trains gathered before they are sent.
const TRAINS_MAX: usize = 32;
/// H3_NO_ERROR (RFC 9114 §8.1).
const H3_NO_ERROR: u64 = 0x100;
/// H3_REQUEST_INCOMPLETE (RFC 9114 §8.1).
const H3_REQUEST_INCOMPLETE: u64 = 0x10d;

/// Buffers of the UDP side.
#[derive(Debug, Default)]
pub(crate) struct UdpScratch {
    batch: UdpBatch,
    outgoing: QuicOutgoing,
    chunks: Vec<Bytes>,
    woken: Vec<(usize, ConnId)>,
}

impl<I: Io> Worker<I> {
    /// Listens on a UDP socket, or refreshes what is listened on already.
    pub(crate) fn listen_udp(&mut self, listen: usize, socket: &Arc<Listener>) {
        let settings = &self.env.generation.listens[listen];
        let Some(tls) = settings.tls.as_ref().and_then(bolide_tls::Acceptor::quic) else {
            return self
                .env
                .log_server(LogLevel::Error, "no TLS 1.3 certificate for a quic listener");
        };
        if let Some(known) = self.udp.find_mut(|udp| udp.socket.fd() == socket.fd()) {
            (known.listen, known.wanted) = (listen, true);
            if let Err(error) = known.endpoint.set_server_config(&settings.quic, tls) {
                self.env.log_server(LogLevel::Error, &error.to_string());
            }
            return;
        }
        let number = u8::try_from(self.env.number).unwrap_or(u8::MAX);
        let (keys, clock) = (&self.env.generation.quic_keys, self.quic_clock);
        let endpoint = match Endpoint::new(&settings.quic, tls, number, keys, clock) {
            Ok(endpoint) => endpoint,
            Err(error) => return self.env.log_server(LogLevel::Error, &error.to_string()),
        };
        let token = PollToken::Udp(self.udp.vacancy() as u32).pack();
        if self.env.io.watch(socket.fd(), token, Interest::Level) {
            let (socket, at) = (socket.clone(), socket.local().ok());
            let keys = Vec::new();
            self.udp.insert(UdpSocket { socket, at, listen, endpoint, keys, wanted: true });
        }
    }

    /// Takes waiting datagrams and does what they lead to.
    pub(crate) fn receive_datagrams(&mut self, slot: usize) {
        let mut scratch = std::mem::take(&mut self.udp_scratch);
        for _ in 0..BATCHES_PER_TURN {
            let Some(udp) = self.udp.get_mut(slot) else { break };
            let received = self.env.io.receive_datagrams(udp.socket.fd(), &mut scratch.batch);
            let workers = self.env.news.posts.len() as u8;
            for (message, bytes) in scratch.batch.messages() {
                let from =
                    QuicArrival { remote: message.remote, local: message.local, ecn: message.ecn };
                for datagram in bytes.chunks(message.stride.max(1)) {
                    let owner =
                        bolide_quic::owner(datagram, &self.env.generation.quic_keys, workers);
                    if let Some(owner) = owner.filter(|owner| u16::from(*owner) != self.env.number)
                    {
                        stray(&self.env.news.posts, owner, udp.at, message, datagram);
                        continue;
                    }
                    let out = &mut scratch.outgoing;
                    crate::handshake_client::set_datagram_sender(&self.env.generation, udp, from);
                    if let Some(id) = udp.endpoint.receive(self.env.now, from, datagram, out)
                        && scratch.woken.last() != Some(&(slot, id))
                    {
                        scratch.woken.push((slot, id));
                    }
                }
            }
            self.send_trains(slot, &mut scratch.outgoing);
            if received < UdpBatch::CAPACITY {
                break;
            }
        }
        let mut woken = std::mem::take(&mut scratch.woken);
        let mut outgoing = std::mem::take(&mut scratch.outgoing);
        self.udp_scratch = scratch;
        for (slot, id) in woken.drain(..) {
            if let Some(key) = self.quic_key(slot, id) {
                self.handle_quic(key);
                // PERF: as for stream sockets, while its exchanges are warm.
                self.send_quic(key, &mut outgoing);
            }
        }
        self.send_trains(slot, &mut outgoing);
        self.udp_scratch.woken = woken;
        self.udp_scratch.outgoing = outgoing;
    }

    /// Takes a datagram that another worker received for us.
    pub(crate) fn handle_strayed(&mut self, strayed: Strayed) {
        let Strayed { at, message, bytes } = strayed;
        let Some(slot) = self.udp.position(|udp| udp.at == at) else { return };
        let from = QuicArrival { remote: message.remote, local: message.local, ecn: message.ecn };
        crate::handshake_client::set_datagram_sender(&self.env.generation, &self.udp[slot], from);
        let mut outgoing = std::mem::take(&mut self.udp_scratch.outgoing);
        let id = self.udp[slot].endpoint.receive(self.env.now, from, &bytes, &mut outgoing);
        self.send_trains(slot, &mut outgoing);
        self.udp_scratch.outgoing = outgoing;
        if let Some(key) = id.and_then(|id| self.quic_key(slot, id)) {
            self.handle_quic(key);
        }
    }

    /// The worker's connection of an endpoint's; made when it is new.
    fn quic_key(&mut self, slot: usize, id: ConnId) -> Option<SlabKey<QuicConn>> {
        let udp = &mut self.udp[slot];
        if let Some(key) = udp.key(id)
            && self.quics.get(key).is_some_and(|conn| conn.id == id)
        {
            return Some(key);
        }
        let conn = udp.endpoint.conn(id)?;
        let serial = self.env.next_serial();
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
            proxy: None,
            started: self.env.now,
        });
        let conn = QuicConn {
            slot,
            id,
            info,
            generation: self.env.generation.clone(),
            profile: Profile::default(),
            close_at: None,
            told_last: false,
            h3: h3::H3Conn::new(),
            started: false,
            dirty: false,
            lost: false,
            waiting: Vec::new(),
            armed: Default::default(),
            lateness: Default::default(),
            pings: false,
            moved: false,
            exchanges: 0,
            post_actions: 0,
        };
        let key = self.quics.insert(conn).ok()?;
        for count in [TallyCount::Accepted, TallyCount::Handled, TallyCount::Active] {
            self.env.tally.add(count);
        }
        udp.set_key(id, Some(key));
        Some(key)
    }

    /// Carries the transport's events to the framing.
    pub(crate) fn handle_quic(&mut self, key: SlabKey<QuicConn>) {
        let mut bound = Bound::new();
        while bound.goes_on() {
            let Some(conn) = self.quics.get_mut(key) else { return };
            let (slot, id) = (conn.slot, conn.id);
            let Some(event) = self.udp[slot].endpoint.poll_event(id) else { break };
            self.handle_quic_event(key, event);
        }
        self.mark_quic(key);
    }

    fn handle_quic_event(&mut self, key: SlabKey<QuicConn>, event: QuicEvent) {
        let Some(conn) = self.quics.get_mut(key) else { return };
        let Some(transport) = self.udp[conn.slot].endpoint.conn(conn.id) else {
            return self.forget_quic(key);
        };
        let result = match event {
            QuicEvent::Connected { .. } => {
                let settings = &conn.generation.listens[conn.info.listen];
                conn.info.tls = Some(crate::quic_conn::tls_facts(transport, settings.tls.as_ref()));
                conn.profile = conn.generation.profile(&conn.info);
                if !settings.limits(conn.profile).http3 {
                    // The library offers `h3` to every name; RFC 9114 §8.1: the client may retry
                    // over an older version.
                    return self.close_quic_with(key, H3_VERSION_FALLBACK, "");
                }
                conn.h3.start(&settings.limits(conn.profile).h3, &mut QuicStreamTable(transport));
                conn.started = true;
                Ok(())
            }
            QuicEvent::StreamReadable(stream) => return self.read_stream(key, stream),
            QuicEvent::StreamWritable(stream) => {
                conn.h3.handle_writable(stream);
                Ok(())
            }
            QuicEvent::Stopped(stream, code) => {
                conn.h3.handle_stopped(stream, code, &mut self.env.scratch.events)
            }
            QuicEvent::Confirmed | QuicEvent::UniAvailable => Ok(()),
            QuicEvent::Lost(lost) => {
                conn.lost = true;
                if let bolide_quic::Lost::Failed(..) = lost {
                    let subject = conn.subject();
                    let _ = self.env.complain(&subject);
                    self.env.log_conn(LogLevel::Info, &subject, &format!("QUIC connection {lost}"));
                }
                return self.orphan(Owner::Quic(key));
            }
            QuicEvent::Gone => return self.forget_quic(key),
        };
        self.settle_quic(key, result);
    }

    /// Reads what a stream has and gives it to the framing.
    fn read_stream(&mut self, key: SlabKey<QuicConn>, stream: u64) {
        let mut bound = Bound::new();
        while bound.goes_on() {
            let Some(conn) = self.quics.get_mut(key) else { return };
            if !conn.started || conn.lost {
                return;
            }
            if !conn.h3.wants_stream(stream) {
                if !conn.waiting.contains(&stream) {
                    conn.waiting.push(stream);
                }
                return;
            }
            let Some(transport) = self.udp[conn.slot].endpoint.conn(conn.id) else { return };
            if !conn.moved && conn.info.remote.ip() != Some(transport.remote().ip()) {
                // Who may come in was settled by the old address. What is under way goes on; what
                // is asked from now on is rejected unprocessed and can be asked anew (RFC 9114
                // §4.1.1), over a connection whose address the handshake proves.
                conn.moved = true;
                conn.h3.shutdown(&mut QuicStreamTable(transport));
                conn.h3.shutdown(&mut QuicStreamTable(transport));
            }
            let early = transport.is_early();
            let mut chunks = std::mem::take(&mut self.udp_scratch.chunks);
            let end = transport.read(stream, READ_MAX, &mut chunks);
            let settings = &conn.generation.listens[conn.info.listen].limits(conn.profile).h3;
            let (heads, events) = (&mut self.env.heads, &mut self.env.scratch.events);
            let mut result = Ok(());
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
            self.udp_scratch.chunks = chunks;
            let wasted = conn.h3.take_wasted();
            if wasted > 0 && self.env.wasters.are_too_many(conn.info.remote, wasted, self.env.now) {
                result = result.and(Err(h3::EXCESSIVE_LOAD));
            }
            let failed = result.is_err();
            self.settle_quic(key, result);
            if failed || end != ReadEnd::Full {
                return;
            }
        }
    }

    /// Handles what the framing told, or closes the connection for its offence.
    fn settle_quic(&mut self, key: SlabKey<QuicConn>, result: Result<(), bolide_wire::ConnError>) {
        self.handle_events(Owner::Quic(key));
        if let Err(error) = result
            && let Some(conn) = self.quics.get_mut(key)
        {
            let subject = conn.subject();
            self.close_quic_with(key, error.code, error.reason);
            self.env.log_conn(LogLevel::Info, &subject, error.reason);
        }
    }

    /// Closes a connection for good, politely.
    pub(crate) fn close_quic(&mut self, key: SlabKey<QuicConn>) {
        self.close_quic_with(key, H3_NO_ERROR, "");
    }

    fn close_quic_with(&mut self, key: SlabKey<QuicConn>, code: u64, reason: &'static str) {
        let Some(conn) = self.quics.get_mut(key) else { return };
        if let Some(transport) = self.udp[conn.slot].endpoint.conn(conn.id) {
            transport.close(self.env.now, code, Bytes::from_static(reason.as_bytes()));
        }
        conn.lost = true;
        self.mark_quic(key);
        self.orphan(Owner::Quic(key));
    }

    fn forget_quic(&mut self, key: SlabKey<QuicConn>) {
        self.orphan(Owner::Quic(key));
        if let Some(conn) = self.quics.remove(key) {
            self.env.tally.remove(TallyCount::Active);
            self.udp[conn.slot].set_key(conn.id, None);
        }
    }

    /// Puts the connection among those that may send this turn.
    pub(crate) fn mark_quic(&mut self, key: SlabKey<QuicConn>) {
        if let Some(conn) = self.quics.get_mut(key)
            && !conn.dirty
        {
            conn.dirty = true;
            self.dirty_quic.push(key);
        }
    }

    /// Sees to it that a client that waits for an origin does not count its connection idle.
    pub(crate) fn ping_while_waiting(&mut self, key: SlabKey<QuicConn>) {
        let Some(conn) = self.quics.get_mut(key) else { return };
        if !std::mem::replace(&mut conn.pings, true) {
            let at = self.env.now.mono.after(PING_EVERY);
            self.env.wheel.arm_once(at, PollToken::Ping(key).pack());
        }
    }

    /// A client may have been waiting for an origin for a while.
    pub(crate) fn expire_ping(&mut self, key: SlabKey<QuicConn>) {
        let waits = self.is_waited_for(Owner::Quic(key));
        let Some(conn) = self.quics.get_mut(key) else { return };
        conn.pings = false;
        if !waits || conn.lost {
            return;
        }
        if let Some(transport) = self.udp[conn.slot].endpoint.conn(conn.id) {
            transport.ping();
        }
        self.mark_quic(key);
        self.ping_while_waiting(key);
    }

    /// Cuts a request off that did not arrive in time.
    pub(crate) fn reset_quic(&mut self, key: SlabKey<QuicConn>, stream: StreamId) {
        let Some(conn) = self.quics.get_mut(key) else { return };
        if let Some(transport) = self.udp[conn.slot].endpoint.conn(conn.id) {
            conn.h3.reset(stream, H3_REQUEST_INCOMPLETE, &mut QuicStreamTable(transport));
        }
        self.mark_quic(key);
    }

    /// Does one thing to one stream.
    pub(crate) fn quic_stream(&mut self, key: SlabKey<QuicConn>, stream: StreamId, act: StreamAct) {
        let Some(conn) = self.quics.get_mut(key) else { return };
        match act {
            StreamAct::Continue => conn.h3.send_continue(stream),
            StreamAct::Ready => conn.h3.body_ready(stream),
            // QUIC's own windows are open from the first.
            StreamAct::Wanted(_) => {}
            StreamAct::Consumed(bytes) => conn.h3.body_consumed(stream, bytes),
            StreamAct::Discard => {
                if let Some(transport) = self.udp[conn.slot].endpoint.conn(conn.id) {
                    conn.h3.discard_body(stream, &mut QuicStreamTable(transport));
                }
            }
        }
    }

    /// Lets every marked connection frame and send what it has.
    pub(crate) fn transmit_quic(&mut self) {
        if self.udp.is_leaving {
            self.let_sockets_go();
        }
        if self.dirty_quic.is_empty() {
            return;
        }
        let mut outgoing = std::mem::take(&mut self.udp_scratch.outgoing);
        let mut dirty = std::mem::take(&mut self.dirty_quic);
        let mut last_slot = None;
        for key in dirty.drain(..) {
            let Some(conn) = self.quics.get_mut(key) else { continue };
            if !conn.dirty {
                continue;
            }
            let slot = conn.slot;
            if let Some(last) = last_slot.filter(|last| *last != slot) {
                self.send_trains(last, &mut outgoing);
            }
            last_slot = Some(slot);
            self.send_quic(key, &mut outgoing);
        }
        if let Some(slot) = last_slot {
            self.send_trains(slot, &mut outgoing);
        }
        // Connections marked meanwhile stand in the new list, for the next turn.
        dirty.append(&mut self.dirty_quic);
        self.dirty_quic = dirty;
        self.udp_scratch.outgoing = outgoing;
    }

    /// Lets one connection frame and pack what it has; trains leave when enough of them wait.
    fn send_quic(&mut self, key: SlabKey<QuicConn>, outgoing: &mut QuicOutgoing) {
        let Some(conn) = self.quics.get_mut(key) else { return };
        conn.dirty = false;
        let slot = conn.slot;
        if outgoing.trains().len() >= TRAINS_MAX {
            self.send_trains(slot, outgoing);
        }
        self.reread_waiting(key);
        self.frame_quic(key);
        self.pack_quic(key, outgoing);
    }

    /// Streams whose bytes the framing would not take before.
    fn reread_waiting(&mut self, key: SlabKey<QuicConn>) {
        let Some(conn) = self.quics.get_mut(key) else { return };
        if conn.waiting.is_empty() {
            return;
        }
        for stream in std::mem::take(&mut conn.waiting) {
            self.read_stream(key, stream);
        }
    }

    /// HTTP/3 frames into QUIC streams.
    fn frame_quic(&mut self, key: SlabKey<QuicConn>) {
        let Some(conn) = self.quics.get_mut(key) else { return };
        if !conn.started || conn.lost {
            return;
        }
        if conn.h3.has_output() {
            let Some(transport) = self.udp[conn.slot].endpoint.conn(conn.id) else { return };
            let mut bodies = crate::bodies::Bodies {
                exchanges: &mut self.exchanges.live,
                io: &mut self.env.io,
                paced: &mut self.env.scratch.paced,
                roomy: &mut self.exchanges.roomy,
                family: &mut self.exchanges.family,
                around: bolide_engine::Around {
                    now: &self.env.now,
                    clock: &self.env.clock,
                    conn: &conn.info,
                    counters: &self.env.tallies,
                    pid: self.env.logs.pid(),
                },
            };
            let settings = &conn.generation.listens[conn.info.listen].limits(conn.profile).h3;
            self.env.scratch.chain.configure(CopyPolicy::Shared(1024), false);
            let (chain, events) = (&mut self.env.scratch.chain, &mut self.env.scratch.events);
            let streams = &mut QuicStreamTable(transport);
            conn.h3.transmit(settings, ROOM, chain, events, &mut bodies, streams);
            chain.clear();
            self.env.arm_paced();
            self.settle_quic(key, Ok(()));
        }
        if self.quics.get(key).is_some_and(|conn| conn.h3.is_closing() && !conn.lost) {
            self.close_served(key);
        }
    }

    /// Closes a connection whose client was told to go away and has all that it asked for. What it
    /// may have asked before it heard of that is waited for.
    fn close_served(&mut self, key: SlabKey<QuicConn>) {
        let is_served = self.is_served(key);
        let Some(conn) = self.quics.get_mut(key) else { return };
        let Some(transport) = self.udp[conn.slot].endpoint.conn(conn.id) else { return };
        match conn.close_at {
            _ if !is_served => conn.close_at = None,
            None => {
                let grace = 2 * transport.round_trip() + ACK_DELAY;
                conn.close_at = Some(self.env.now.mono.after(grace));
            }
            Some(at) if at > self.env.now.mono => {}
            Some(_) if !std::mem::replace(&mut conn.told_last, true) => {
                // RFC 9114 §5.2: at last the client learns which requests were processed.
                conn.h3.shutdown(&mut QuicStreamTable(transport));
                let grace = 2 * transport.round_trip() + ACK_DELAY;
                conn.close_at = Some(self.env.now.mono.after(grace));
            }
            Some(_) => {
                conn.close_at = None;
                self.close_quic(key);
            }
        }
    }

    /// Whether the client has all that it asked for.
    fn is_served(&mut self, key: SlabKey<QuicConn>) -> bool {
        let Some(conn) = self.quics.get(key) else { return true };
        let transport = self.udp[conn.slot].endpoint.conn(conn.id);
        conn.h3.is_idle() && transport.is_none_or(|transport| !transport.owes())
    }

    /// QUIC streams into datagrams.
    fn pack_quic(&mut self, key: SlabKey<QuicConn>, outgoing: &mut QuicOutgoing) {
        let Some(conn) = self.quics.get_mut(key) else { return };
        let (slot, id) = (conn.slot, conn.id);
        let rest = self.udp[slot].endpoint.transmit(id, self.env.now, TRAIN_MAX, outgoing);
        let framing_waits = conn.h3.has_output() && !conn.lost;
        if rest == Rest::More || framing_waits {
            self.mark_quic(key);
        }
        let mut bound = Bound::new();
        while bound.goes_on()
            && let Some(event) = self.udp[slot].endpoint.poll_event(id)
        {
            self.handle_quic_event(key, event);
            self.mark_quic(key);
        }
        self.rearm_quic(key);
    }

    fn rearm_quic(&mut self, key: SlabKey<QuicConn>) {
        let Some(conn) = self.quics.get_mut(key) else { return };
        let deadline = self.udp[conn.slot].endpoint.deadline(conn.id);
        // One that has come is acted on when the connection writes, which it is marked for.
        let close_at = conn.close_at.filter(|at| !conn.lost && *at > self.env.now.mono);
        if let Some(deadline) = [deadline, close_at].into_iter().flatten().min() {
            self.env.wheel.arm(&mut conn.armed, deadline, PollToken::Quic(key).pack());
        }
        if conn.h3.streams_open() > 0 {
            self.watch_for_late(Owner::Quic(key));
        }
    }

    pub(crate) fn expire_quic(&mut self, key: SlabKey<QuicConn>, at: Instant) {
        let Some(conn) = self.quics.get_mut(key) else { return };
        conn.armed.fired(at);
        let (slot, id) = (conn.slot, conn.id);
        if conn.close_at.is_some_and(|at| at <= self.env.now.mono) && !conn.lost {
            self.mark_quic(key);
        }
        let endpoint = &mut self.udp[slot].endpoint;
        if endpoint.deadline(id).is_some_and(|deadline| deadline <= self.env.now.mono) {
            endpoint.handle_deadline(id, self.env.now);
            self.handle_quic(key);
        } else {
            self.rearm_quic(key);
        }
    }

    fn send_trains(&mut self, slot: usize, outgoing: &mut QuicOutgoing) {
        if outgoing.is_empty() {
            return;
        }
        let Some(udp) = self.udp.get_mut(slot) else { return outgoing.clear() };
        for trains in outgoing.trains().chunks(TRAINS_MAX) {
            let mut out = [EMPTY; TRAINS_MAX];
            for (to, train) in out.iter_mut().zip(trains) {
                *to = DatagramOut {
                    bytes: &train.bytes,
                    segment: train.segment,
                    remote: train.remote,
                    local: train.local,
                    ecn: train.ecn,
                };
            }
            // What the socket does not take is lost, as on any network; the protocol repairs it.
            let _ = self.env.io.send_datagrams(udp.socket.fd(), &out[..trains.len()]);
        }
        outgoing.clear();
    }

    /// Refuses new connections and ends the others with their requests.
    pub(crate) fn drain_quic(&mut self, spares_fresh: bool) {
        for udp in self.udp.iter_mut() {
            udp.endpoint.stop_accepting();
        }
        for key in self.quics.keys().collect::<Vec<_>>() {
            let Some(conn) = self.quics.get_mut(key) else { continue };
            if !spares_fresh || conn.h3.requests() > 0 {
                self.end_quic(key);
            }
        }
    }

    /// Ends a connection with its requests.
    pub(crate) fn end_quic(&mut self, key: SlabKey<QuicConn>) {
        let Some(conn) = self.quics.get_mut(key) else { return };
        if !conn.started {
            return self.close_quic(key);
        }
        // A request may be on its way: the client is told before the connection closes.
        if let Some(transport) = self.udp[conn.slot].endpoint.conn(conn.id) {
            conn.h3.shutdown(&mut QuicStreamTable(transport));
            self.mark_quic(key);
        }
    }
}

/// How long a client may take to confirm what it got (RFC 9000 §18.2).
const ACK_DELAY: Duration = Duration::from_millis(25);

/// RFC 9114 §8.1.
const H3_VERSION_FALLBACK: u64 = 0x110;

const EMPTY: DatagramOut<'static> = DatagramOut {
    bytes: &[],
    segment: 0,
    remote: SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::UNSPECIFIED, 0)),
    local: None,
    ecn: 0,
};

fn stray(
    posts: &[crate::mail::Post],
    owner: u8,
    at: Option<SocketAddr>,
    message: bolide_io::DatagramIn,
    datagram: &[u8],
) {
    if let Some(post) = posts.get(usize::from(owner)) {
        let strayed = Strayed { at, message, bytes: datagram.to_vec() };
        // A full box loses a datagram, as a full socket does.
        let _ = post.send(Mail::Datagram(Box::new(strayed)));
    }
}
