//! Input of stream sockets: a new connection, one read per turn, TLS, the framing.

use std::collections::VecDeque;

use bolide_base::deadline_queue::Armed;
use bolide_base::limits::RECEIVE_SIZE;
use bolide_base::{Segment, SlabKey};
use bolide_conf::model::LogLevel;
use bolide_engine::{ConnInfo, ConnProtocol, ConnRelay, Tally};
use bolide_http::Scheme;
use bolide_io::{Io, ReceivedBytes, SocketPeers};
use bytes::Bytes;

use crate::env::{Scratch, WorkerEnv};
use crate::framing::{ConnFraming, FirstBytes, first_bytes};
use crate::handshake_client::set_connecting_client;
use crate::lateness::Lateness;
use crate::leavers::Departure;
use crate::patience::ClientPatience;
use crate::settings::Profile;
use crate::tcp::{Opening, PLAIN_ROOM, ROOM_MIN, TcpConn, TcpWait};
use crate::tcp_side::TcpSide;

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// Nothing to process.
    Nothing,
    /// This many bytes of TLS records.
    Sealed(usize),
    /// This many bytes for the framing.
    Plain(usize),
    /// The start of the connection was invalid.
    Broken,
}

/// The result of decrypting TLS records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsealed {
    /// The connection is plain text, or gone.
    Nothing,
    /// The plain text is in the scratch buffer.
    Plain {
        /// Whether there is plain text for the framing.
        has_some: bool,
    },
    /// The session has failed.
    Failed,
}

/// The consequence of the client's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtEof {
    /// The connection is gone.
    Nothing,
    /// It is closed.
    Close,
    /// The framing has handled it.
    Told,
}

impl TcpConn {
    /// Creates a connection for an accepted client.
    ///
    /// # Errors
    ///
    /// No TLS session can be created.
    pub(crate) fn accepted<I: Io>(
        listen: usize,
        client: &SocketPeers,
        env: &mut WorkerEnv<I>,
    ) -> Result<Self, bolide_tls::TlsError> {
        let settings = &env.generation.listens[listen];
        let opening = if settings.proxy_protocol { Opening::Proxy } else { Opening::First };
        let session = match &settings.tls {
            Some(acceptor) => Some(Box::new(bolide_tls::TlsSession::new(acceptor)?)),
            None => None,
        };
        let (serial, is_plain) = (env.next_serial(), session.is_none());
        let info = Box::new(ConnInfo {
            serial,
            remote: peer(&client.remote),
            local: peer(&client.local),
            listen,
            scheme: if session.is_some() { Scheme::Https } else { Scheme::Http },
            tls: None,
            relay: ConnRelay::Direct,
            started: env.now,
        });
        Ok(Self {
            fd: client.fd,
            info,
            generation: env.generation.clone(),
            profile: Profile::default(),
            asked: None,
            idle_max: None,
            manners: None,
            patience: ClientPatience::default(),
            framing: None,
            session,
            input: Vec::new(),
            cipher: Vec::new(),
            unsent: VecDeque::new(),
            room: if is_plain { PLAIN_ROOM } else { ROOM_MIN },
            readable: true,
            blocked: false,
            dirty: false,
            eof: false,
            hung_up: false,
            lingering: false,
            fresh: true,
            opening,
            plain_on_tls: false,
            draining: false,
            outdated: None,
            waiting: TcpWait::Head,
            counted: None,
            spoken: ConnProtocol::Unknown,
            deadline: env.now.mono,
            armed: Armed::default(),
            lateness: Lateness::default(),
            exchanges: 0,
            post_actions: 0,
        })
    }
}

impl TcpSide {
    /// One read, if the connection can use it: after its kept bytes, into the scratch buffer.
    pub(crate) fn read<I: Io>(
        &mut self,
        key: SlabKey<TcpConn>,
        env: &mut WorkerEnv<I>,
    ) -> Option<ReceivedBytes> {
        let conn = self.conns.get_mut(key).filter(|conn| conn.wants_input())?;
        let secured = conn.session.is_some();
        let kept = if secured { &mut conn.cipher } else { &mut conn.input };
        let held = kept.len();
        let (before, room) = env.scratch.received(0..held + RECEIVE_SIZE).split_at_mut(held);
        before.copy_from_slice(kept);
        Some(match env.io.receive(conn.fd, room) {
            ReceivedBytes::Bytes(n) => {
                debug_assert!(n > 0 && n <= RECEIVE_SIZE, "a read gives bytes that have room");
                // The end of the stream is reported only once, perhaps together with these bytes.
                conn.readable = n == RECEIVE_SIZE || conn.hung_up;
                // The kept bytes are not needed twice; the memory is freed at once, so that an idle
                // connection holds none.
                *kept = Vec::new();
                ReceivedBytes::Bytes(held + n)
            }
            ReceivedBytes::Blocked => {
                conn.readable = false;
                ReceivedBytes::Blocked
            }
            ReceivedBytes::Dead => {
                env.log_disconnect(conn, Departure::Reset);
                ReceivedBytes::Dead
            }
            ReceivedBytes::End => ReceivedBytes::End,
        })
    }

    /// Handles the PROXY header and the first byte in `len` bytes in the scratch buffer.
    pub(crate) fn open<I: Io>(
        &mut self,
        key: SlabKey<TcpConn>,
        mut len: usize,
        env: &mut WorkerEnv<I>,
    ) -> Received {
        let Some(conn) = self.conns.get_mut(key) else { return Received::Nothing };
        if conn.lingering {
            if conn.readable {
                self.again.push(key);
            }
            self.rearm(key, env);
            return Received::Nothing;
        }
        conn.fresh = false;
        if conn.opening == Opening::Proxy {
            match conn.take_proxy(len, env) {
                Ok(Some(left)) => len = left,
                Ok(None) => {
                    self.after_input(key, env);
                    return Received::Nothing;
                }
                Err(()) => return Received::Broken,
            }
        }
        let Some(conn) = self.conns.get_mut(key) else { return Received::Nothing };
        if conn.opening == Opening::First {
            conn.opening = Opening::Over;
            let first = env.scratch.received[0];
            if conn.session.is_some() && !bolide_tls::opens_handshake(first) {
                conn.session = None;
                conn.plain_on_tls = true;
                conn.info.scheme = Scheme::Http;
            }
        }
        if conn.session.is_some() { Received::Sealed(len) } else { Received::Plain(len) }
    }

    /// Decrypts TLS records: `len` bytes in the scratch buffer.
    pub(crate) fn unseal<I: Io>(
        &mut self,
        key: SlabKey<TcpConn>,
        len: usize,
        env: &mut WorkerEnv<I>,
    ) -> Unsealed {
        let Some(conn) = self.conns.get_mut(key) else { return Unsealed::Nothing };
        let Some(session) = &mut conn.session else { return Unsealed::Nothing };
        let Scratch { plain, received, .. } = &mut env.scratch;
        plain.clear();
        plain.extend_from_slice(&conn.input);
        let held = plain.len();
        conn.input.clear();
        let mut replies = Vec::new();
        let cipher = &mut received[..len];
        let was_handshaking = session.is_handshaking();
        if was_handshaking {
            set_connecting_client(&conn.generation, &conn.info);
        }
        let result = session.receive(cipher, plain, &mut replies);
        if !replies.is_empty() {
            conn.unsent.push_back(Segment::Bytes(Bytes::from(replies)));
        }
        match result {
            Ok(done) => {
                debug_assert!(done.consumed <= len, "a session takes what there is");
                if done.consumed < len {
                    conn.cipher = received[done.consumed..len].to_vec();
                }
                let has_some = plain.len() > held || held > 0;
                if was_handshaking && !session.is_handshaking() {
                    conn.secured(&env.tally);
                    if conn.session.as_ref().is_some_and(|one| one.proves_name()) {
                        // RFC 8737 §3: the connection ends after its handshake.
                        return Unsealed::Failed;
                    }
                }
                Unsealed::Plain { has_some }
            }
            Err(error) => {
                let subject = conn.subject();
                let text = env.complain(&subject).unwrap_or_else(|| error.to_string());
                env.log_conn(LogLevel::Info, &subject, &format!("{text} while SSL handshaking"));
                Unsealed::Failed
            }
        }
    }

    /// Feeds `bytes` to the framing; returns how many it took. None if it takes nothing now.
    pub(crate) fn take<I: Io>(
        &mut self,
        key: SlabKey<TcpConn>,
        bytes: &[u8],
        env: &mut WorkerEnv<I>,
    ) -> Option<usize> {
        debug_assert!(!bytes.is_empty(), "a framing is given something");
        let conn = self.conns.get_mut(key)?;
        if conn.framing.is_none() {
            let framing = choose(conn, bytes)?;
            conn.settle(framing, &env.tally);
        }
        let held = conn.is_held();
        let framing = conn.framing.as_mut()?;
        if held || !framing.wants_input() {
            return None;
        }
        let profile = conn.asked.unwrap_or(conn.profile);
        let settings = conn.generation.listens[conn.info.listen].limits(profile);
        let asks_host = settings.h1.asks_host;
        let (heads, events) = (&mut env.heads, &mut env.scratch.events);
        let taken = framing.receive(settings, env.now, bytes, heads, events);
        let wasted = framing.take_wasted();
        if wasted > 0 && env.wasters.are_too_many(conn.info.opener(), wasted, env.now) {
            framing.calm_down(events);
        }
        let taken = match taken {
            Ok(0) if env.scratch.events.is_empty() => return None,
            Ok(n) => {
                debug_assert!(n <= bytes.len(), "a framing takes what there is");
                if asks_host {
                    conn.apply_host_settings(!env.scratch.events.is_empty());
                }
                // An HTTP/1 response says that it is the last, if its head has not left; GOAWAY can
                // follow the responses.
                if (env.draining || conn.outdated.is_some())
                    && matches!(&conn.framing, Some(ConnFraming::H1(h1)) if h1.owes_head())
                {
                    conn.end_with_requests();
                }
                n
            }
            Err(error) => {
                let subject = conn.subject();
                env.log_conn(LogLevel::Info, &subject, error.reason);
                bytes.len()
            }
        };
        self.mark_dirty(key);
        Some(taken)
    }

    /// Keeps plain text that the framing has not taken.
    pub(crate) fn keep(&mut self, key: SlabKey<TcpConn>, rest: &[u8]) {
        if let Some(conn) = self.conns.get_mut(key)
            && !rest.is_empty()
        {
            debug_assert!(!conn.lingering, "after the last answer nothing is kept");
            conn.input.clear();
            conn.input.extend_from_slice(rest);
        }
    }

    /// The peer has closed its side.
    pub(crate) fn handle_eof<I: Io>(
        &mut self,
        key: SlabKey<TcpConn>,
        env: &mut WorkerEnv<I>,
    ) -> AtEof {
        let Some(conn) = self.conns.get_mut(key) else { return AtEof::Nothing };
        if !conn.eof {
            env.log_disconnect(conn, Departure::End);
        }
        (conn.eof, conn.readable) = (true, false);
        let Some(framing) = &mut conn.framing else { return AtEof::Close };
        let is_rest = framing.is_idle() && !framing.is_within_head() && conn.unsent.is_empty();
        if conn.lingering || matches!(framing, ConnFraming::H2(_)) || is_rest {
            return AtEof::Close;
        }
        let (heads, events) = (&mut env.heads, &mut env.scratch.events);
        framing.handle_departure(false, &conn.input, heads, events);
        framing.handle_eof(&mut env.scratch.events);
        AtEof::Told
    }

    /// Decides after a read whether to write, and whether to read again.
    pub(crate) fn after_input<I: Io>(&mut self, key: SlabKey<TcpConn>, env: &mut WorkerEnv<I>) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        if !conn.unsent.is_empty() {
            self.mark_dirty(key);
        }
        let Some(conn) = self.conns.get_mut(key) else { return };
        if conn.wants_input() {
            self.again.push(key);
        }
        let writes = conn.dirty && !conn.lingering;
        if writes && let Some(framing) = conn.framing.as_ref().filter(|one| !one.is_reading_head())
        {
            // The write of this turn sets the deadline.
            if !framing.is_idle() && !framing.is_draining() {
                conn.waiting = TcpWait::Exchange;
            }
            return;
        }
        self.rearm(key, env);
    }
}

impl TcpConn {
    /// The handshake is complete: sets the protocol and the profile of limits.
    fn secured(&mut self, tally: &Tally) {
        let Some(session) = &mut self.session else { return };
        let facts = crate::tcp::tls_facts(session);
        tally.count(crate::tcp::handshake_count(&facts), 1);
        self.info.tls = Some(facts);
        self.profile = self.generation.profile(&self.info);
        let limits = self.generation.listens[self.info.listen].limits(self.profile);
        session.limit_records(limits.record_size);
        debug_assert!(self.framing.is_none(), "nothing was read in the clear before");
        let framing = match session.alpn() {
            Some(b"h2") => ConnFraming::h2(),
            _ => ConnFraming::h1(),
        };
        self.settle(framing, tally);
    }
}

fn choose(conn: &TcpConn, bytes: &[u8]) -> Option<ConnFraming> {
    if conn.plain_on_tls || !conn.settings().http2 {
        return Some(ConnFraming::h1());
    }
    match first_bytes(bytes) {
        FirstBytes::Http1 => Some(ConnFraming::h1()),
        FirstBytes::Http2 => Some(ConnFraming::h2()),
        FirstBytes::Unclear => None,
    }
}

const fn peer(end: &bolide_io::SocketPeer) -> bolide_engine::ClientAddress {
    match end {
        bolide_io::SocketPeer::Inet(at) => bolide_engine::ClientAddress::Inet(*at),
        bolide_io::SocketPeer::Unix => bolide_engine::ClientAddress::Unix,
    }
}
