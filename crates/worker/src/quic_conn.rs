//! A QUIC connection with its HTTP/3 framing.

use std::sync::Arc;

use bolide_base::Instant;
use bolide_base::deadline_queue::Armed;
use bolide_engine::{ConnInfo, Tally, TlsFacts, WorkerCount};
use bolide_quic::{ConnId, Transferred};
use bolide_wire::h3::{self, QuicStreams, StreamGone};
use bytes::Bytes;

use crate::generation::Generation;
use crate::lateness::Lateness;
use crate::settings::{Profile, WorkerLimits};
use crate::subject::Subject;

/// A connection of one of the worker's UDP sockets.
#[derive(Debug)]
pub(crate) struct QuicConn {
    /// The index of its UDP socket.
    pub(crate) slot: usize,
    /// Its id at that socket's endpoint.
    pub(crate) id: ConnId,
    pub(crate) info: Box<ConnInfo>,
    pub(crate) generation: Arc<Generation>,
    /// The profile of its limits.
    pub(crate) profile: Profile,
    pub(crate) h3: h3::H3Conn,
    /// Whether the framing has started.
    pub(crate) started: bool,
    /// Whether it is in the list of those that may send in this turn.
    pub(crate) dirty: bool,
    /// Whether the transport has ended; only its exchanges are left.
    pub(crate) lost: bool,
    /// Whether its handshake ended with an alert.
    pub(crate) refused: bool,
    /// Streams whose bytes stay in the transport until the framing takes them.
    pub(crate) waiting: Vec<u64>,
    pub(crate) armed: Armed,
    /// The state of stalled streams.
    pub(crate) lateness: Lateness,
    /// Until when it may be without a request; none while a request is in progress.
    pub(crate) idle_until: Option<Instant>,
    /// Whether it was counted against `worker_connections`.
    pub(crate) admitted: bool,
    /// When it closes, after GOAWAY and the last response: until then the client may receive them.
    pub(crate) close_at: Option<Instant>,
    /// The progress of the client when it last acknowledged data of its last responses, while some
    /// are not acknowledged; `close_at` is then the end of `send_timeout`.
    pub(crate) owing: Option<Transferred>,
    /// Whether the final GOAWAY was sent.
    pub(crate) said_goaway: bool,
    /// Whether a keep-alive check for a waiting client is scheduled.
    pub(crate) pings: bool,
    /// Whether its client has migrated to another address than that of its access checks.
    pub(crate) moved: bool,
    /// Exchanges that it owns.
    pub(crate) exchanges: u32,
    /// Its exchanges that were detached and continue.
    pub(crate) post_actions: u32,
}

impl QuicConn {
    pub(crate) fn settings(&self) -> &WorkerLimits {
        self.generation.listens[self.info.listen].limits(self.profile)
    }

    /// Moves to a newer configuration; false if that has no listen for the client's address.
    pub(crate) fn follow(&mut self, newest: &Arc<Generation>) -> bool {
        let profile = newest.take_over(&mut self.info, &mut self.generation);
        self.profile = profile.unwrap_or(self.profile);
        profile.is_some()
    }

    /// Starts the framing after the handshake; false if HTTP/3 is disabled here.
    pub(crate) fn start(
        &mut self,
        transport: &mut bolide_quic::QuicConnection,
        tally: &Tally,
    ) -> bool {
        debug_assert!(!self.started, "a handshake ends once");
        let settings = &self.generation.listens[self.info.listen];
        let facts = tls_facts(transport, settings.tls.as_ref());
        let count = if facts.reused { WorkerCount::QuicResumed } else { WorkerCount::QuicFull };
        tally.count(count, 1);
        self.info.tls = Some(facts);
        self.profile = self.generation.profile(&self.info);
        if !settings.limits(self.profile).http3 {
            return false;
        }
        self.h3.start(&settings.limits(self.profile).h3, &mut QuicStreamTable(transport));
        self.started = true;
        true
    }

    /// The connection for log lines.
    pub(crate) fn subject(&self) -> Subject {
        Subject::of(&self.info, &self.generation)
    }
}

/// The streams of a QUIC connection as the framing sees them.
pub(crate) struct QuicStreamTable<'a>(pub(crate) &'a mut bolide_quic::QuicConnection);

impl QuicStreams for QuicStreamTable<'_> {
    fn open_uni(&mut self) -> Option<u64> {
        self.0.open_uni()
    }

    fn write(&mut self, stream: u64, bytes: &mut Bytes) -> Result<usize, StreamGone> {
        self.0.write(stream, bytes).map_err(|_| StreamGone)
    }

    fn room(&mut self, stream: u64) -> usize {
        self.0.room(stream)
    }

    fn finish(&mut self, stream: u64) {
        // A stream that the peer has stopped needs no end.
        let _ = self.0.finish(stream);
    }

    fn reset(&mut self, stream: u64, code: u64) {
        self.0.reset(stream, code);
    }

    fn stop(&mut self, stream: u64, code: u64) {
        self.0.stop(stream, code);
    }

    fn set_priority(&mut self, stream: u64, priority: i32) {
        self.0.set_priority(stream, priority);
    }
}

/// The results of a finished handshake.
pub(crate) fn tls_facts(
    conn: &bolide_quic::QuicConnection,
    acceptor: Option<&bolide_tls::Acceptor>,
) -> TlsFacts {
    let handshake = conn.handshake();
    TlsFacts {
        protocol: "TLSv1.3",
        cipher: handshake.cipher.map_or("", bolide_tls::names::cipher_name),
        curve: handshake.curve.map_or("", bolide_tls::names::curve_name),
        alpn: "h3",
        server_name: handshake.server_name.clone(),
        reused: handshake.is_resumed,
        client: acceptor
            .filter(|acceptor| acceptor.asks_clients())
            .and_then(|acceptor| {
                acceptor.client_cert(conn.server_name(), conn.client_chain().as_deref())
            })
            .map(Into::into),
        ..TlsFacts::default()
    }
}
