//! QUIC within a turn: transport events become requests, responses become datagrams.

use bolide_base::limits::FILTERED_PER_TURN;
use bolide_base::{Bound, CopyPolicy, Instant, SlabKey};
use bolide_conf::model::LogLevel;
use bolide_io::Io;
use bolide_quic::{QuicEvent, QuicOutgoing, Rest};
use bolide_wire::ConnError;

use crate::bodies::Bodies;
use crate::env::Scratch;
use crate::exchange_table::Owner;
use crate::full_table::admit_quic;
use crate::quic_conn::{QuicConn, QuicStreamTable};
use crate::quic_output::TRAINS_MAX;
use crate::quic_side::{StreamRead, charge_wasters};
use crate::requests::Requests;
use crate::shortened;
use crate::worker::Worker;

/// The most bytes to pull from bodies for one connection in one turn.
const ROOM: usize = bolide_base::limits::SEND_PER_TURN;
/// Datagrams in one GSO train: what fits into 64 KiB.
const TRAIN_MAX: usize = 40;
/// H3_VERSION_FALLBACK (RFC 9114 §8.1).
const H3_VERSION_FALLBACK: u64 = 0x110;

impl<I: Io> Worker<I> {
    /// Receives and processes waiting datagrams.
    pub(crate) fn receive_datagrams(&mut self, slot: usize) {
        let (quic, env) = self.requests.quic();
        quic.receive_datagrams(slot, env);
        env.handle_late_changes();
        let mut woken = std::mem::take(&mut quic.scratch.woken);
        let mut outgoing = std::mem::take(&mut quic.scratch.outgoing);
        for (slot, id) in woken.drain(..) {
            let (quic, env) = self.requests.quic();
            if let Some(key) = quic.key(slot, id, env) {
                self.handle_quic(key);
                // PERF: as for stream sockets, while its exchanges are in the CPU's caches.
                self.send_quic(key, &mut outgoing);
            }
        }
        let (quic, env) = self.requests.quic();
        quic.send_trains(slot, &mut outgoing, env);
        quic.scratch.woken = woken;
        quic.scratch.outgoing = outgoing;
    }

    /// Passes the transport's events to the framing.
    pub(crate) fn handle_quic(&mut self, key: SlabKey<QuicConn>) {
        let conn = self.requests.clients.quic.conns.get_mut(key);
        if conn.is_some_and(|conn| !std::mem::replace(&mut conn.admitted, true)) {
            admit_quic(self, key);
        }
        self.handle_quic_events(key);
        self.requests.clients.quic.mark(key);
    }

    /// Handles every event of a transport; returns whether there was one.
    fn handle_quic_events(&mut self, key: SlabKey<QuicConn>) -> bool {
        let (mut had_some, mut bound) = (false, Bound::new());
        while bound.goes_on()
            && let Some(event) = self.requests.clients.quic.poll_event(key)
        {
            self.handle_quic_event(key, event);
            had_some = true;
        }
        self.start_early(key);
        had_some
    }

    /// Starts requests with bodies, together with the first bytes of these.
    fn start_early(&mut self, key: SlabKey<QuicConn>) {
        if self.requests.env.scratch.early.is_empty() {
            return;
        }
        let (quic, env) = self.requests.quic();
        if let Some(conn) = quic.conns.get_mut(key) {
            conn.h3.report_waiting(&mut env.scratch.events);
        }
        self.requests.handle_events(Owner::Quic(key));
        self.requests.start_early();
    }

    fn handle_quic_event(&mut self, key: SlabKey<QuicConn>, event: QuicEvent) {
        let (quic, env) = self.requests.quic();
        let Some(conn) = quic.conns.get_mut(key) else { return };
        let Some(transport) = quic.udp[conn.slot].endpoint.conn(conn.id) else {
            return self.requests.forget_quic(key);
        };
        let result = match event {
            QuicEvent::Connected { .. } => {
                if !conn.start(transport, &env.tally) {
                    // The library offers `h3` to every name; RFC 9114 §8.1: the client may retry
                    // over an older version.
                    return self.requests.close_quic_with(key, H3_VERSION_FALLBACK, "");
                }
                Ok(())
            }
            QuicEvent::StreamReadable(stream) => return self.read_stream(key, stream),
            QuicEvent::StreamWritable(stream) => {
                conn.h3.handle_writable(stream);
                Ok(())
            }
            QuicEvent::Stopped(stream, code) => {
                conn.h3.rest(env.now);
                let result = conn.h3.handle_stopped(stream, code, &mut env.scratch.events);
                result.and(charge_wasters(conn, env))
            }
            QuicEvent::UniAvailable => {
                conn.h3.handle_uni_available();
                Ok(())
            }
            QuicEvent::Confirmed => Ok(()),
            QuicEvent::Lost(lost) => {
                quic.lost += usize::from(!std::mem::replace(&mut conn.lost, true));
                conn.refused = lost.is_refusal();
                let subject = conn.subject();
                if let bolide_quic::Lost::Failed(..) = lost {
                    let _ = env.complain(&subject);
                    env.log_conn(LogLevel::Info, &subject, &format!("QUIC connection {lost}"));
                }
                self.start_early(key);
                return self.requests.orphan(Owner::Quic(key), false);
            }
            QuicEvent::Gone => return self.requests.forget_quic(key),
        };
        self.settle_quic(key, result);
    }

    /// Reads a stream and feeds the framing.
    fn read_stream(&mut self, key: SlabKey<QuicConn>, stream: u64) {
        let mut bound = Bound::new();
        while bound.goes_on() {
            let (quic, env) = self.requests.quic();
            let Some(StreamRead { result, has_more }) = quic.read_stream(key, stream, env) else {
                return;
            };
            self.settle_quic(key, result);
            if !has_more {
                return;
            }
        }
    }

    /// Handles the framing's events, or closes the connection with its error.
    fn settle_quic(&mut self, key: SlabKey<QuicConn>, result: Result<(), ConnError>) {
        self.requests.handle_events(Owner::Quic(key));
        if let Err(error) = result
            && let Some(conn) = self.requests.clients.quic.conns.get_mut(key)
        {
            let subject = conn.subject();
            self.start_early(key);
            self.requests.close_quic_with(key, error.code, error.reason);
            self.requests.env.log_conn(LogLevel::Info, &subject, error.reason);
        }
    }

    /// Checks whether a client has been waiting for an upstream.
    pub(crate) fn expire_ping(&mut self, key: SlabKey<QuicConn>) {
        let waits = self.requests.is_waited_for(Owner::Quic(key));
        let (quic, env) = self.requests.quic();
        quic.ping(key, waits, env);
    }

    /// Checks the deadline of a connection.
    pub(crate) fn expire_quic(&mut self, key: SlabKey<QuicConn>, at: Instant) {
        let (quic, env) = self.requests.quic();
        if quic.conns.get(key).is_some_and(|conn| conn.is_overdue(env.now.mono)) {
            self.requests.end_quic(key);
        }
        let (quic, env) = self.requests.quic();
        if quic.expire(key, at, env) {
            self.handle_quic(key);
        }
    }

    /// Frames and sends the output of every marked connection.
    pub(crate) fn transmit_quic(&mut self) {
        let (quic, env) = self.requests.quic();
        if quic.udp.is_leaving {
            quic.let_sockets_go(env);
        }
        if quic.dirty.is_empty() {
            return;
        }
        let mut outgoing = std::mem::take(&mut quic.scratch.outgoing);
        let mut dirty = std::mem::take(&mut quic.dirty);
        let mut last_slot = None;
        for key in dirty.drain(..) {
            let (quic, env) = self.requests.quic();
            let Some(conn) = quic.conns.get_mut(key) else { continue };
            if !conn.dirty {
                continue;
            }
            let slot = conn.slot;
            if let Some(last) = last_slot.filter(|last| *last != slot) {
                quic.send_trains(last, &mut outgoing, env);
            }
            last_slot = Some(slot);
            self.send_quic(key, &mut outgoing);
        }
        let (quic, env) = self.requests.quic();
        if let Some(slot) = last_slot {
            quic.send_trains(slot, &mut outgoing, env);
        }
        // Connections marked meanwhile are in the new list, for the next turn.
        dirty.append(&mut quic.dirty);
        quic.dirty = dirty;
        quic.scratch.outgoing = outgoing;
    }

    /// Frames and packs the output of one connection; sends trains when there are enough.
    fn send_quic(&mut self, key: SlabKey<QuicConn>, outgoing: &mut QuicOutgoing) {
        let (quic, env) = self.requests.quic();
        let Some(conn) = quic.conns.get_mut(key) else { return };
        conn.dirty = false;
        let slot = conn.slot;
        // Streams whose bytes the framing could not take before.
        let waiting = std::mem::take(&mut conn.waiting);
        if outgoing.trains().len() >= TRAINS_MAX {
            quic.send_trains(slot, outgoing, env);
        }
        for stream in waiting {
            self.read_stream(key, stream);
        }
        self.start_early(key);
        self.frame_quic(key);
        self.pack_quic(key, outgoing);
    }

    /// Writes HTTP/3 frames into QUIC streams.
    fn frame_quic(&mut self, key: SlabKey<QuicConn>) {
        let Requests { env, clients, exchanges, .. } = &mut self.requests;
        let Some(conn) = clients.quic.conns.get_mut(key) else { return };
        if !conn.started || conn.lost {
            return;
        }
        if conn.h3.has_output() {
            let endpoint = &mut clients.quic.udp[conn.slot].endpoint;
            let Some(transport) = endpoint.conn(conn.id) else { return };
            env.scratch.chain.configure(CopyPolicy::Shared(1024), false);
            debug_assert!(env.scratch.chain.is_empty(), "each connection has a chain of its own");
            let Scratch { chain, events, paced, .. } = &mut env.scratch;
            let mut work = FILTERED_PER_TURN;
            let mut bodies = Bodies {
                exchanges: &mut exchanges.live,
                io: &mut env.io,
                paced,
                roomy: &mut exchanges.roomy,
                resting: &mut exchanges.resting,
                truncated: &mut exchanges.truncated,
                work: &mut work,
                family: &mut exchanges.family,
                send_ctx: bolide_engine::SendCtx {
                    now: &env.now,
                    clock: &env.clock,
                    conn: &conn.info,
                    counters: &env.tallies,
                    pid: env.logs.pid(),
                },
            };
            let streams = &mut QuicStreamTable(transport);
            conn.h3.transmit(ROOM, chain, events, &mut bodies, streams);
            chain.clear();
            env.arm_paced();
            shortened::cut(&mut self.requests);
            self.settle_quic(key, Ok(()));
        }
        let (quic, env) = self.requests.quic();
        let closes = quic.conns.get(key).is_some_and(|conn| conn.h3.is_closing() && !conn.lost);
        if closes && quic.is_to_close(key, env) {
            self.requests.close_quic(key);
        }
    }

    /// Packs QUIC streams into datagrams.
    fn pack_quic(&mut self, key: SlabKey<QuicConn>, outgoing: &mut QuicOutgoing) {
        let (quic, env) = self.requests.quic();
        let Some(conn) = quic.conns.get_mut(key) else { return };
        let rest = quic.udp[conn.slot].endpoint.transmit(conn.id, env.now, TRAIN_MAX, outgoing);
        let framing_waits = conn.h3.has_output() && !conn.lost;
        if rest == Rest::More || framing_waits {
            quic.mark(key);
        }
        if self.handle_quic_events(key) {
            self.requests.clients.quic.mark(key);
        }
        let (quic, env) = self.requests.quic();
        quic.rearm(key, env);
    }
}
