//! A QUIC connection with its HTTP/3 framing: events of one become calls of the other.

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

/// One connection of one of the worker's UDP sockets.
#[derive(Debug)]
pub(crate) struct QuicConn {
    /// The worker's UDP socket that it lives on.
    pub(crate) slot: usize,
    /// Its name at that socket's endpoint.
    pub(crate) id: ConnId,
    pub(crate) info: Box<ConnInfo>,
    pub(crate) generation: Arc<Generation>,
    /// Whose limits of the listen hold.
    pub(crate) profile: Profile,
    pub(crate) h3: h3::H3Conn,
    /// The framing has been started.
    pub(crate) started: bool,
    /// It stands in the list of those that may send this turn.
    pub(crate) dirty: bool,
    /// The transport is over; only the end of its exchanges is left.
    pub(crate) lost: bool,
    /// Whether its handshake ended with an alert of either side.
    pub(crate) refused: bool,
    /// Streams whose bytes were left in the transport until the framing wants them.
    pub(crate) waiting: Vec<u64>,
    pub(crate) armed: Armed,
    /// Its streams that wait for the client.
    pub(crate) lateness: Lateness,
    /// When it closes, once told to go away and served: until then the client may hear of it.
    pub(crate) close_at: Option<Instant>,
    /// What had moved when the client last confirmed something of what it is still owed behind its
    /// last answer; `close_at` is then when it is late.
    pub(crate) owing: Option<Transferred>,
    /// The client was told which of its requests are the last.
    pub(crate) told_last: bool,
    /// A moment is set at which it is looked whether its client waits for an origin.
    pub(crate) pings: bool,
    /// Its client has another address than the one that requests are judged by.
    pub(crate) moved: bool,
    /// Exchanges that it owns.
    pub(crate) exchanges: u32,
    /// Those that it is rid of and that go on.
    pub(crate) post_actions: u32,
}

impl QuicConn {
    pub(crate) fn settings(&self) -> &WorkerLimits {
        self.generation.listens[self.info.listen].limits(self.profile)
    }

    /// Starts the framing, as the handshake is over; false if HTTP/3 is not spoken here.
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

    /// As the log tells of it.
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

/// What a finished handshake settled, as the engine names it.
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
