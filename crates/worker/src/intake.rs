//! From the socket to events: a new connection, one read per turn, TLS, framing.

use std::collections::VecDeque;

use bolide_base::deadline_queue::Armed;
use bolide_base::limits::{ACCEPTS_PER_TURN, RECEIVE_SIZE};
use bolide_base::{Bound, SlabKey};
use bolide_conf::model::LogLevel;
use bolide_engine::{ConnInfo, TallyCount};
use bolide_http::Scheme;
use bolide_io::{Accepted, Interest, Io, ReceivedBytes, Reset, SocketPeers};

use crate::accepting::is_dearth;
use crate::exchange_table::Owner;
use crate::framing::{ConnFraming, FirstBytes, first_bytes};
use crate::lateness::Lateness;
use crate::proxy_preface::Opening;
use crate::settings::Profile;
use crate::tcp::{ROOM_MIN, TcpConn, TcpWait};
use crate::token::PollToken;
use crate::worker::Worker;

/// Idle connections that are looked at to close one, as some may turn out to be at work.
const SHEDS_TRIED: usize = 16;

impl<I: Io> Worker<I> {
    /// Takes waiting clients, a bounded number per turn.
    pub(crate) fn accept(&mut self, slot: usize) {
        let Some((fd, listen)) = self.env.listeners.at(slot) else { return };
        for _ in 0..ACCEPTS_PER_TURN {
            match self.env.io.accept(fd) {
                Accepted::Client(client) => {
                    self.env.tally.add(TallyCount::Accepted);
                    self.admit(listen, &client);
                }
                Accepted::QueueEmpty => return,
                Accepted::Gone => {}
                Accepted::Failed(errno) => {
                    self.env.tell_refused(errno);
                    let may_go_on = is_dearth(errno) && self.make_room();
                    if !may_go_on {
                        return self.env.rest_listeners();
                    }
                }
            }
        }
    }

    /// Ends something that a new connection is worth more than; false if there is nothing.
    fn make_room(&mut self) -> bool {
        let origins = &mut self.origins;
        origins.end_last_unwaited(&mut self.env, &mut self.exchanges) || self.shed_idle()
    }

    /// Makes a connection of a client, if there is room for one.
    pub(crate) fn admit(&mut self, listen: usize, client: &SocketPeers) {
        let max = self.env.generation.connections_max as usize;
        // As in nginx, upstream connections count; those of fills without a client give way.
        let live = self.conns.live() + self.post_actions.live();
        // The fills are counted one by one only where that decides.
        let full = live + self.origins.unwaited.at_most() >= max && {
            let more = self.origins.unwaited_fills();
            live + more >= max && self.clients() + more >= max
        };
        if full && !self.make_room() {
            self.env.log_server(LogLevel::Alert, "worker_connections are not enough");
            return self.env.io.close(client.fd, Reset::Yes);
        }
        let settings = &self.env.generation.listens[listen];
        let opening = if settings.proxy_protocol { Opening::Proxy } else { Opening::First };
        let session = match &settings.tls {
            Some(acceptor) => match bolide_tls::TlsSession::new(acceptor) {
                Ok(session) => Some(Box::new(session)),
                Err(_) => return self.env.io.close(client.fd, Reset::Yes),
            },
            None => None,
        };
        let serial = self.env.next_serial();
        let info = Box::new(ConnInfo {
            serial,
            remote: peer(&client.remote),
            local: peer(&client.local),
            listen,
            scheme: if session.is_some() { Scheme::Https } else { Scheme::Http },
            tls: None,
            proxy: None,
            started: self.env.now,
        });
        let conn = TcpConn {
            fd: client.fd,
            info,
            generation: self.env.generation.clone(),
            profile: Profile::default(),
            asked: None,
            idle_max: None,
            manners: None,
            linger_until: self.env.now.mono,
            framing: None,
            session,
            input: Vec::new(),
            cipher: Vec::new(),
            unsent: VecDeque::new(),
            room: ROOM_MIN,
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
            outdated: false,
            waiting: TcpWait::Head,
            counted: None,
            deadline: self.env.now.mono,
            armed: Armed::default(),
            lateness: Lateness::default(),
            exchanges: 0,
            post_actions: 0,
        };
        let key = match self.conns.insert(conn) {
            Ok(key) => key,
            Err(conn) => return self.env.io.close(conn.fd, Reset::Yes),
        };
        self.env.tally.add(TallyCount::Handled);
        self.env.tally.add(TallyCount::Active);
        if !self.env.io.watch(client.fd, PollToken::Tcp(key).pack(), Interest::Edge) {
            return self.close(key, Reset::Yes);
        }
        self.rearm(key);
        // A client that speaks first, as all of ours do, often has by now.
        self.receive(key);
    }

    /// One read, if the connection can use it.
    pub(crate) fn receive(&mut self, key: SlabKey<TcpConn>) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        if !conn.wants_input() {
            return;
        }
        let secured = conn.session.is_some();
        let kept = if secured { &mut conn.cipher } else { &mut conn.input };
        let held = kept.len();
        let (before, room) = self.env.scratch.received(0..held + RECEIVE_SIZE).split_at_mut(held);
        before.copy_from_slice(kept);
        match self.env.io.receive(conn.fd, room) {
            ReceivedBytes::Bytes(n) => {
                // The end of the stream is reported only once, maybe together with these bytes.
                conn.readable = n == RECEIVE_SIZE || conn.hung_up;
                // Nothing that was kept is needed twice; the memory goes back at once, so that an
                // idle connection holds none.
                *kept = Vec::new();
                self.take_bytes(key, held + n);
            }
            ReceivedBytes::Blocked => conn.readable = false,
            ReceivedBytes::End => self.handle_end(key),
            ReceivedBytes::Dead => self.close(key, Reset::Yes),
        }
    }

    fn take_bytes(&mut self, key: SlabKey<TcpConn>, mut len: usize) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        if conn.lingering {
            if conn.readable {
                self.again.push(key);
            }
            return self.rearm(key);
        }
        conn.fresh = false;
        if conn.opening == Opening::Proxy {
            let Some(left) = self.take_proxy(key, len) else { return };
            len = left;
        }
        let Some(conn) = self.conns.get_mut(key) else { return };
        if conn.opening == Opening::First {
            conn.opening = Opening::Over;
            let first = self.env.scratch.received[0];
            if conn.session.is_some() && !bolide_tls::opens_handshake(first) {
                conn.session = None;
                conn.plain_on_tls = true;
            }
        }
        if conn.session.is_some() {
            self.open(key, len);
        } else {
            let bytes = std::mem::take(&mut self.env.scratch.received);
            self.feed(key, &bytes[..len]);
            self.env.scratch.received = bytes;
        }
        self.after_input(key);
    }

    /// Opens TLS records and feeds what they hold.
    fn open(&mut self, key: SlabKey<TcpConn>, len: usize) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        let Some(session) = &mut conn.session else { return };
        let mut plain = std::mem::take(&mut self.env.scratch.plain);
        plain.clear();
        plain.extend_from_slice(&conn.input);
        let held = plain.len();
        conn.input.clear();
        let sealed = &mut self.env.scratch.sealed;
        sealed.clear();
        let cipher = &mut self.env.scratch.received[..len];
        let was_handshaking = session.is_handshaking();
        if was_handshaking {
            crate::handshake_client::set_connecting_client(&conn.generation, &conn.info);
        }
        let result = session.receive(cipher, &mut plain, sealed);
        if !sealed.is_empty() {
            let flight = bytes::Bytes::copy_from_slice(sealed);
            conn.unsent.push_back(bolide_base::Segment::Bytes(flight));
        }
        match result {
            Ok(received) => {
                if received.consumed < len {
                    conn.cipher = self.env.scratch.received[received.consumed..len].to_vec();
                }
                if was_handshaking && !session.is_handshaking() {
                    self.secured(key);
                }
                if plain.len() > held || held > 0 {
                    self.feed(key, &plain);
                }
                if self.conns.get(key).is_some_and(TcpConn::has_end) {
                    self.handle_end(key);
                }
            }
            Err(error) => {
                let subject = conn.subject();
                let text = self.env.complain(&subject).unwrap_or_else(|| error.to_string());
                self.env.log_conn(
                    LogLevel::Info,
                    &subject,
                    &format!("{text} while SSL handshaking"),
                );
                self.flush(key);
                self.close(key, Reset::No);
            }
        }
        self.env.scratch.plain = plain;
    }

    /// The handshake is done: the protocol is known, and who is called.
    fn secured(&mut self, key: SlabKey<TcpConn>) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        let Some(session) = &mut conn.session else { return };
        conn.info.tls = Some(crate::tcp::tls_facts(session));
        conn.profile = conn.generation.profile(&conn.info);
        let limits = conn.generation.listens[conn.info.listen].limits(conn.profile);
        session.limit_records(limits.record_size);
        conn.framing = Some(match session.alpn() {
            Some(b"h2") => ConnFraming::h2(),
            _ => ConnFraming::h1(),
        });
    }

    /// Gives the framing its bytes and handles what they meant; what is left is kept.
    pub(crate) fn feed(&mut self, key: SlabKey<TcpConn>, bytes: &[u8]) {
        let (mut from, mut bound) = (0, Bound::new());
        while bound.goes_on() {
            let before = from;
            self.feed_some(key, bytes, &mut from);
            if self.env.scratch.early.is_empty() {
                break;
            }
            self.start_early();
            if from == before {
                break;
            }
        }
        if let Some(conn) = self.conns.get_mut(key)
            && from < bytes.len()
        {
            conn.input.clear();
            conn.input.extend_from_slice(&bytes[from..]);
        }
    }

    fn feed_some(&mut self, key: SlabKey<TcpConn>, bytes: &[u8], from: &mut usize) {
        let mut bound = Bound::new();
        while *from < bytes.len() && bound.goes_on() {
            let Some(conn) = self.conns.get_mut(key) else { return };
            if conn.framing.is_none() {
                match choose(conn, &bytes[*from..]) {
                    Some(framing) => conn.framing = Some(framing),
                    None => return,
                }
            }
            let held = conn.is_held();
            let Some(framing) = &mut conn.framing else { return };
            if held || !framing.wants_input() {
                return;
            }
            let profile = conn.asked.unwrap_or(conn.profile);
            let settings = conn.generation.listens[conn.info.listen].limits(profile);
            let asks_host = settings.h1.asks_host;
            let (heads, events) = (&mut self.env.heads, &mut self.env.scratch.events);
            let taken = framing.receive(settings, self.env.now, &bytes[*from..], heads, events);
            let wasted = framing.take_wasted();
            if wasted > 0 && self.env.wasters.are_too_many(conn.info.remote, wasted, self.env.now) {
                framing.calm_down(events);
            }
            match taken {
                Ok(0) if self.env.scratch.events.is_empty() => return,
                Ok(n) => {
                    *from += n;
                    if asks_host {
                        conn.hear_host(!self.env.scratch.events.is_empty());
                    }
                }
                Err(error) => {
                    let subject = conn.subject();
                    self.env.log_conn(LogLevel::Info, &subject, error.reason);
                    *from = bytes.len();
                }
            }
            self.mark_dirty(key);
            self.handle_events(Owner::Tcp(key));
        }
    }

    /// The peer will send no more.
    pub(crate) fn handle_end(&mut self, key: SlabKey<TcpConn>) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        (conn.eof, conn.readable) = (true, false);
        let Some(framing) = &mut conn.framing else { return self.close(key, Reset::No) };
        let is_rest = framing.is_idle() && conn.unsent.is_empty();
        if conn.lingering || matches!(framing, ConnFraming::H2(_)) || is_rest {
            return self.close(key, Reset::No);
        }
        framing.handle_eof(&mut self.env.scratch.events);
        self.handle_events(Owner::Tcp(key));
        self.mark_dirty(key);
        self.leave_if_alone(key);
    }

    pub(crate) fn after_input(&mut self, key: SlabKey<TcpConn>) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        if !conn.unsent.is_empty() {
            self.mark_dirty(key);
        }
        let Some(conn) = self.conns.get_mut(key) else { return };
        if conn.wants_input() {
            self.again.push(key);
        }
        self.rearm(key);
    }

    /// Closes an idle connection to make room for a new one; false when all are at work. A request
    /// that has come meanwhile is read first, and keeps its connection.
    pub(crate) fn shed_idle(&mut self) -> bool {
        for _ in 0..SHEDS_TRIED {
            let is_idle = |conn: &TcpConn| conn.now_waiting() == TcpWait::Request;
            let idle = self.conns.keys().find(|&key| self.conns.get(key).is_some_and(is_idle));
            let Some(key) = idle else { return false };
            if let Some(conn) = self.conns.get_mut(key) {
                conn.readable = true;
            }
            self.receive(key);
            match self.conns.get(key) {
                Some(conn) if is_idle(conn) => self.close(key, Reset::No),
                Some(_) => continue,
                None => {}
            }
            return true;
        }
        false
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
