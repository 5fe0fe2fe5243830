//! A client connection over a stream socket: its buffers, its framing, its deadline.
//!
//! ```text
//!   Open ──framing closing, all sent──▶ Lingering ──EOF, deadline──▶ (closed)
//!     └────────── dead, broken, deadline ───────────────────────────▶ (closed)
//! ```
//! An idle connection holds no buffer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bolide_base::deadline_queue::Armed;
use bolide_base::{Instant, Segment};
use bolide_conf::model::CloseSettings;
use bolide_engine::{ConnInfo, ConnProtocol, Tally, TallyCount, TlsFacts, WorkerCount};
use bolide_io::Fd;

use crate::framing::ConnFraming;
use crate::generation::Generation;
use crate::lateness::Lateness;
use crate::outdated::Outdated;
use crate::patience::ClientPatience;
use crate::settings::{Profile, WorkerLimits};
use crate::subject::Subject;

/// Bytes of a connection's first write; it grows while the client takes everything at once.
pub(crate) const ROOM_MIN: usize = 32 * 1024;
/// The same in plain text, where most of what the socket does not take is kept without a copy.
pub(crate) const PLAIN_ROOM: usize = 64 * 1024;

/// What a connection waits for, which determines its timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TcpWait {
    /// The rest of a TLS handshake or of a request head.
    Head,
    /// The next request.
    Request,
    /// The rest of a request body, or the response.
    Exchange,
    /// Room in the client's window or socket.
    Room,
    /// The rest of the body of a request that was answered.
    Discarding,
    /// The client's end, after the last response.
    Linger,
}

/// The phase before the client's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// A header of the PROXY protocol is expected.
    Proxy,
    /// No byte of the client itself has arrived.
    First,
    /// The client has sent a byte.
    Over,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct TcpConn {
    pub(crate) fd: Fd,
    pub(crate) info: Box<ConnInfo>,
    pub(crate) generation: Arc<Generation>,
    /// The profile of its limits.
    pub(crate) profile: Profile,
    /// The profile for the rest of the arriving head, once its host is known.
    pub(crate) asked: Option<Profile>,
    /// How long it may idle after the last response.
    pub(crate) idle_max: Option<Duration>,
    /// How it is closed after the last response, where locations differ.
    pub(crate) manners: Option<CloseSettings>,
    /// The deadlines that its client's bytes do not move.
    pub(crate) patience: ClientPatience,
    pub(crate) session: Option<Box<bolide_tls::TlsSession>>,
    pub(crate) framing: Option<ConnFraming>,
    /// Plain text that the framing has not consumed.
    pub(crate) input: Vec<u8>,
    /// An incomplete TLS record.
    pub(crate) cipher: Vec<u8>,
    /// Bytes that the socket did not take.
    pub(crate) unsent: VecDeque<Segment>,
    /// The most bytes to pull in one turn.
    pub(crate) room: usize,
    /// Whether the socket may have more bytes to read.
    pub(crate) readable: bool,
    /// Whether the last send was incomplete.
    pub(crate) blocked: bool,
    /// Whether it is in the list of those that may write in this turn.
    pub(crate) dirty: bool,
    /// Whether the peer has closed its side.
    pub(crate) eof: bool,
    /// Whether epoll reported that the peer closed its side; unread bytes may precede that.
    pub(crate) hung_up: bool,
    /// Whether it only waits for the client's end.
    pub(crate) lingering: bool,
    /// Whether no byte has been received yet.
    pub(crate) fresh: bool,
    /// The phase before the client's first byte.
    pub(crate) opening: Opening,
    /// Plain HTTP on a TLS port; it gets one error response.
    pub(crate) plain_on_tls: bool,
    /// Whether it is closed when idle.
    pub(crate) draining: bool,
    /// Whether its configuration was replaced by one that would not have accepted it like this: it
    /// keeps its own, and is closed after its next request.
    pub(crate) outdated: Option<Outdated>,
    pub(crate) waiting: TcpWait,
    /// The counter that it is part of.
    pub(crate) counted: Option<(TallyCount, ConnProtocol)>,
    /// Its protocol.
    pub(crate) spoken: ConnProtocol,
    pub(crate) deadline: Instant,
    pub(crate) armed: Armed,
    /// The state of stalled streams.
    pub(crate) lateness: Lateness,
    /// Exchanges that it owns.
    pub(crate) exchanges: u32,
    /// Its exchanges that were detached and continue.
    pub(crate) post_actions: u32,
}

impl TcpConn {
    pub(crate) fn settings(&self) -> &WorkerLimits {
        self.generation.listens[self.info.listen].limits(self.profile)
    }

    /// Moves to a newer configuration; false if that has no listen for the client's address.
    pub(crate) fn follow(&mut self, newest: &Arc<Generation>) -> bool {
        debug_assert!(self.outdated.is_none(), "what is outdated keeps its configuration");
        let profile = newest.take_over(&mut self.info, &mut self.generation);
        if let Some(profile) = profile {
            // Profiles are those of a configuration; the rest of a head that names another server
            // has the limits of the default one.
            (self.profile, self.asked) = (profile, None);
        }
        profile.is_some()
    }

    /// Whether an outdated connection ends once it is idle. Over HTTP/1, that of an address which
    /// is gone says so in its next response instead; over HTTP/2, GOAWAY says what is lost.
    pub(crate) fn ends_outdated(&self) -> bool {
        match self.outdated {
            None => false,
            Some(Outdated::Rules) => true,
            Some(Outdated::Address) => !matches!(self.framing, Some(ConnFraming::H1(_))),
        }
    }

    /// The connection for log lines.
    pub(crate) fn subject(&self) -> Subject {
        Subject::of(&self.info, &self.generation)
    }

    /// How it is closed.
    pub(crate) fn manners(&self) -> &CloseSettings {
        self.manners.as_ref().unwrap_or(&self.settings().manners)
    }

    /// Applies the limits of the server that the head names to the rest of the head, but not to the
    /// next one.
    pub(crate) fn apply_host_settings(&mut self, is_over: bool) {
        if is_over {
            self.asked = None;
        } else if let Some(host) = self.framing.as_mut().and_then(ConnFraming::take_host) {
            let listen = &self.generation.listens[self.info.listen];
            let server = self.generation.site.server_asked(self.info.listen, host);
            self.asked = Some(listen.profile(server));
        }
    }

    /// Whether the next request waits for `post_action` or `mirror` of earlier ones.
    pub(crate) fn is_held(&self) -> bool {
        self.post_actions > 0
            && self.exchanges == 0
            && matches!(&self.framing, Some(ConnFraming::H1(framing)) if !framing.is_closing())
    }

    /// RFC 8446 §6.1: a close_notify precedes the end of our side, unless an alert was sent.
    pub(crate) fn close_notify(&mut self) -> Vec<u8> {
        let mut close_notify = Vec::new();
        if let Some(session) = self.session.as_mut().filter(|_| self.unsent.is_empty()) {
            session.close(&mut close_notify);
        }
        close_notify
    }

    /// What the connection waits for now.
    #[inline]
    pub(crate) fn now_waiting(&self) -> TcpWait {
        if self.lingering {
            return TcpWait::Linger;
        }
        if !self.unsent.is_empty() {
            return TcpWait::Room;
        }
        let Some(framing) = &self.framing else { return TcpWait::Head };
        // Meanwhile nothing of the next head is read, so that it cannot be late.
        if self.is_held() {
            return TcpWait::Exchange;
        }
        if framing.is_reading_head() {
            return TcpWait::Head;
        }
        if framing.is_draining() {
            return TcpWait::Discarding;
        }
        if !framing.is_idle() {
            return TcpWait::Exchange;
        }
        let between = self.input.is_empty() && self.cipher.is_empty() && framing.requests() > 0;
        // As in nginx, a blank line begins a head.
        if between && !framing.is_within_head() { TcpWait::Request } else { TcpWait::Head }
    }

    /// The counter of a connection that waits for `waiting`.
    pub(crate) fn counts_as(&self, waiting: TcpWait) -> Option<(TallyCount, ConnProtocol)> {
        let count = match (waiting, &self.framing) {
            (TcpWait::Request, _) => Some(TallyCount::Waiting),
            (TcpWait::Head, _) if self.fresh => Some(TallyCount::Waiting),
            (TcpWait::Head, Some(framing)) if framing.is_reading_head() => {
                Some(TallyCount::Reading)
            }
            (TcpWait::Head, Some(_)) => Some(TallyCount::Waiting),
            _ => None,
        };
        Some((count?, self.spoken))
    }

    /// Sets its protocol.
    pub(crate) fn settle(&mut self, framing: ConnFraming, tally: &Tally) {
        debug_assert!(self.framing.is_none(), "a connection speaks one protocol");
        let spoken = match &framing {
            ConnFraming::H1(_) => ConnProtocol::H1,
            ConnFraming::H2(_) => ConnProtocol::H2,
        };
        tally.remove(TallyCount::Active, self.spoken);
        tally.add(TallyCount::Active, spoken);
        tally.add(TallyCount::Settled, spoken);
        self.spoken = spoken;
        self.framing = Some(framing);
    }

    /// Counts its end, and that of an incomplete handshake.
    pub(crate) fn count_end(&self, tally: &Tally) {
        tally.remove(TallyCount::Active, self.spoken);
        if self.spoken == ConnProtocol::Unknown {
            tally.add(TallyCount::Settled, ConnProtocol::Unknown);
        }
        if let Some((count, of)) = self.counted {
            tally.remove(count, of);
        }
        if let Some(session) = &self.session
            && self.info.tls.is_none()
            && !self.fresh
        {
            let count = match session.is_refused() {
                true => WorkerCount::TlsRefused,
                false => WorkerCount::TlsAbandoned,
            };
            tally.count(count, 1);
        }
    }

    /// Ends the connection after the requests that have begun; returns whether one has. Before the
    /// first one it stays: its client was accepted.
    pub(crate) fn end_with_requests(&mut self) -> bool {
        let begun = self.framing.as_mut().filter(|framing| framing.requests() > 0);
        if let Some(framing) = begun {
            self.draining = true;
            framing.shutdown();
        }
        self.draining
    }

    /// Whether the framing can take more bytes from the socket now.
    #[inline]
    pub(crate) fn wants_input(&self) -> bool {
        // PERF: after most reads nothing is left to read.
        self.readable && (self.lingering || self.has_room_for_input())
    }

    fn has_room_for_input(&self) -> bool {
        let wants = self.framing.as_ref().is_none_or(ConnFraming::wants_input);
        wants && !self.is_held() && !self.has_next()
    }

    /// Whether a request waits until earlier responses are sent. Later bytes, including the end of
    /// the connection, must not be handled before it.
    fn has_next(&self) -> bool {
        let is_blocked = !self.unsent.is_empty() && !self.input.is_empty();
        is_blocked && matches!(&self.framing, Some(ConnFraming::H1(h1)) if h1.is_reading_head())
    }

    /// Whether to handle a close_notify now: one that came after requests is not handled before all
    /// of them.
    #[inline]
    pub(crate) fn has_end(&self) -> bool {
        // PERF: called for each read and each write, and nearly always answered here.
        let has_come = self.session.as_ref().is_some_and(|session| session.peer_closed());
        has_come && self.is_end_due()
    }

    /// Whether a received close_notify is the next thing to handle.
    #[cold]
    fn is_end_due(&self) -> bool {
        let takes_more = self.framing.as_ref().is_none_or(ConnFraming::wants_input);
        let is_last =
            self.input.is_empty() || takes_more && self.unsent.is_empty() && !self.is_held();
        !self.eof && !self.lingering && is_last
    }

    /// Whether an HTTP/1 response is in progress.
    pub(crate) fn is_answering(&self) -> bool {
        matches!(&self.framing, Some(ConnFraming::H1(h1)) if h1.is_answering())
    }

    /// Whether the regular end of our side follows what is sent now. What waits for it would be
    /// lost if it were a reset, as after a truncated response.
    pub(crate) fn ends_in_order(&self) -> bool {
        self.is_finished() && !self.framing.as_ref().is_some_and(ConnFraming::is_broken)
    }

    /// Whether all output was sent.
    pub(crate) fn is_finished(&self) -> bool {
        self.unsent.is_empty()
            && self
                .framing
                .as_ref()
                .is_some_and(|framing| framing.is_closing() && !framing.has_output())
    }
}

/// The results of a finished handshake.
pub(crate) fn tls_facts(session: &mut bolide_tls::TlsSession) -> TlsFacts {
    TlsFacts {
        protocol: session.protocol(),
        cipher: session.cipher(),
        curve: session.curve(),
        alpn: match session.alpn() {
            Some(b"h2") => "h2",
            Some(b"http/1.1") => "http/1.1",
            Some(b"http/1.0") => "http/1.0",
            _ => "",
        },
        server_name: session.server_name().map(Box::from),
        reused: session.is_resumed(),
        client: session.take_client_cert().map(Into::into),
        offers: session.take_offers().map(Box::new),
        session_id: session.take_session_id(),
        signature: session.signature(),
        client_signature: session.client_signature(),
    }
}

/// The counter of a finished handshake over TCP.
pub(crate) fn handshake_count(facts: &TlsFacts) -> WorkerCount {
    match (facts.protocol, facts.reused) {
        ("TLSv1.2", false) => WorkerCount::Tls12Full,
        ("TLSv1.2", true) => WorkerCount::Tls12Resumed,
        (_, false) => WorkerCount::Tls13Full,
        (_, true) => WorkerCount::Tls13Resumed,
    }
}
