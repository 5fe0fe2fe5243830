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
use crate::settings::{Profile, WorkerLimits};
use crate::subject::Subject;

/// Bytes of the first write of a connection; it grows while the client takes all at once.
pub(crate) const ROOM_MIN: usize = 32 * 1024;
/// The same in the clear, where most of what the socket does not take is kept without a copy.
pub(crate) const PLAIN_ROOM: usize = 64 * 1024;

/// What a connection waits for, and so which of its timeouts runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TcpWait {
    /// A TLS handshake or a request head to be completed.
    Head,
    /// The next request.
    Request,
    /// More of a request body, or the answer to be made.
    Exchange,
    /// The client to take bytes.
    Room,
    /// The client to stop sending after the last answer.
    Linger,
}

/// How far a connection has come before its client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// A header of the PROXY protocol is due.
    Proxy,
    /// No byte of the client itself was seen.
    First,
    /// The client has spoken.
    Over,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct TcpConn {
    pub(crate) fd: Fd,
    pub(crate) info: Box<ConnInfo>,
    pub(crate) generation: Arc<Generation>,
    /// Whose limits of the listen hold.
    pub(crate) profile: Profile,
    /// The same for the rest of the head that is arriving, once its host is known.
    pub(crate) asked: Option<Profile>,
    /// How long it may idle after what was answered last.
    pub(crate) idle_max: Option<Duration>,
    /// How it ends after what was answered last, where locations differ.
    pub(crate) manners: Option<CloseSettings>,
    /// When it closes although the client still sends.
    pub(crate) linger_until: Instant,
    pub(crate) session: Option<Box<bolide_tls::TlsSession>>,
    pub(crate) framing: Option<ConnFraming>,
    /// Plaintext that the framing has not consumed yet.
    pub(crate) input: Vec<u8>,
    /// Part of a TLS record.
    pub(crate) cipher: Vec<u8>,
    /// What the socket did not take.
    pub(crate) unsent: VecDeque<Segment>,
    /// Bytes that may be pulled in one turn.
    pub(crate) room: usize,
    /// The socket may hold more bytes to read.
    pub(crate) readable: bool,
    /// The last send was not taken whole.
    pub(crate) blocked: bool,
    /// It stands in the list of those that may write this turn.
    pub(crate) dirty: bool,
    /// The peer will send no more.
    pub(crate) eof: bool,
    /// The peer was reported to have ended its side; what says so may stand behind its last bytes.
    pub(crate) hung_up: bool,
    /// Nothing is answered any more.
    pub(crate) lingering: bool,
    /// No byte has been received yet.
    pub(crate) fresh: bool,
    /// What comes before the client's own bytes.
    pub(crate) opening: Opening,
    /// HTTP spoken in the clear to a TLS socket; answered once, with an error.
    pub(crate) plain_on_tls: bool,
    /// The server wants to be rid of idle connections.
    pub(crate) draining: bool,
    /// Its client was judged by what is no longer in force; it drains once it has asked something.
    pub(crate) outdated: bool,
    pub(crate) waiting: TcpWait,
    /// As what it is counted.
    pub(crate) counted: Option<(TallyCount, ConnProtocol)>,
    /// What it speaks.
    pub(crate) spoken: ConnProtocol,
    pub(crate) deadline: Instant,
    pub(crate) armed: Armed,
    /// Its streams that wait for the client.
    pub(crate) lateness: Lateness,
    /// Exchanges that it owns.
    pub(crate) exchanges: u32,
    /// Those that it is rid of and that go on.
    pub(crate) post_actions: u32,
}

impl TcpConn {
    pub(crate) fn settings(&self) -> &WorkerLimits {
        self.generation.listens[self.info.listen].limits(self.profile)
    }

    /// As the log tells of it.
    pub(crate) fn subject(&self) -> Subject {
        Subject::of(&self.info, &self.generation)
    }

    /// How it ends.
    pub(crate) fn manners(&self) -> &CloseSettings {
        self.manners.as_ref().unwrap_or(&self.settings().manners)
    }

    /// What the rest of a head is held to is what the server says that it asks for; the next head
    /// is not its.
    pub(crate) fn hear_host(&mut self, is_over: bool) {
        if is_over {
            self.asked = None;
        } else if let Some(host) = self.framing.as_mut().and_then(ConnFraming::take_host) {
            let listen = &self.generation.listens[self.info.listen];
            let server = self.generation.site.server_asked(self.info.listen, host);
            self.asked = Some(listen.profile(server));
        }
    }

    /// Whether what comes next waits for what is done behind earlier answers.
    pub(crate) fn is_held(&self) -> bool {
        self.post_actions > 0
            && self.exchanges == 0
            && matches!(&self.framing, Some(ConnFraming::H1(framing)) if !framing.is_closing())
    }

    /// RFC 8446 §6.1: a close_notify is sent before the end of our side, unless an alert was.
    pub(crate) fn close_notify(&mut self) -> Vec<u8> {
        let mut close_notify = Vec::new();
        if let Some(session) = self.session.as_mut().filter(|_| self.unsent.is_empty()) {
            session.close(&mut close_notify);
        }
        close_notify
    }

    /// What the connection waits for, as its parts say.
    #[inline]
    pub(crate) fn now_waiting(&self) -> TcpWait {
        if self.lingering {
            return TcpWait::Linger;
        }
        if !self.unsent.is_empty() {
            return TcpWait::Room;
        }
        let Some(framing) = &self.framing else { return TcpWait::Head };
        // Nothing is read of the next head meanwhile, so that it cannot be late.
        if self.is_held() {
            return TcpWait::Exchange;
        }
        if framing.is_reading_head() {
            return TcpWait::Head;
        }
        if !framing.is_idle() {
            return TcpWait::Exchange;
        }
        let between = self.input.is_empty() && self.cipher.is_empty() && framing.requests() > 0;
        if between { TcpWait::Request } else { TcpWait::Head }
    }

    /// As what a connection that waits so is counted.
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

    /// What it speaks is known from now on.
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

    /// Counts its end, and that of a handshake that it was in.
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

    /// Whether the framing can use more bytes from the socket now.
    #[inline]
    pub(crate) fn wants_input(&self) -> bool {
        // PERF: after most reads nothing is left to read.
        self.readable && (self.lingering || self.has_room_for_input())
    }

    fn has_room_for_input(&self) -> bool {
        let wants = self.framing.as_ref().is_none_or(ConnFraming::wants_input);
        wants && !self.is_held() && !self.has_next()
    }

    /// Whether a request is here that waits for earlier answers to leave. What comes behind it, the
    /// end of all requests included, must not be seen before it.
    fn has_next(&self) -> bool {
        let is_blocked = !self.unsent.is_empty() && !self.input.is_empty();
        is_blocked && matches!(&self.framing, Some(ConnFraming::H1(h1)) if h1.is_reading_head())
    }

    /// Whether a close_notify is to be seen now: one that came with requests is not before all of
    /// them have been.
    #[inline]
    pub(crate) fn has_end(&self) -> bool {
        // PERF: asked at each read and each write, and nearly always answered here.
        let has_come = self.session.as_ref().is_some_and(|session| session.peer_closed());
        has_come && self.is_end_due()
    }

    /// Whether the close_notify that has come is the next thing to be seen.
    #[cold]
    fn is_end_due(&self) -> bool {
        let takes_more = self.framing.as_ref().is_none_or(ConnFraming::wants_input);
        let is_last =
            self.input.is_empty() || takes_more && self.unsent.is_empty() && !self.is_held();
        !self.eof && !self.lingering && is_last
    }

    /// Whether an HTTP/1 response is on its way.
    pub(crate) fn is_answering(&self) -> bool {
        matches!(&self.framing, Some(ConnFraming::H1(h1)) if h1.is_answering())
    }

    /// Whether the end of our side follows what is sent now. What waits for it would be lost if it
    /// were a reset, as behind an answer that is cut.
    pub(crate) fn ends_in_order(&self) -> bool {
        self.is_finished() && !self.framing.as_ref().is_some_and(ConnFraming::is_broken)
    }

    /// Whether everything that was to be said has left.
    pub(crate) fn is_finished(&self) -> bool {
        self.unsent.is_empty()
            && self
                .framing
                .as_ref()
                .is_some_and(|framing| framing.is_closing() && !framing.has_output())
    }
}

/// What a finished handshake settled, as the engine names it.
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

/// As what a finished handshake over TCP counts.
pub(crate) fn handshake_count(facts: &TlsFacts) -> WorkerCount {
    match (facts.protocol, facts.reused) {
        ("TLSv1.2", false) => WorkerCount::Tls12Full,
        ("TLSv1.2", true) => WorkerCount::Tls12Resumed,
        (_, false) => WorkerCount::Tls13Full,
        (_, true) => WorkerCount::Tls13Resumed,
    }
}
