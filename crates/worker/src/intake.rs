//! Reads from client sockets, and turns the bytes into requests.

use bolide_base::{Bound, SlabKey};
use bolide_conf::model::LogLevel;
use bolide_engine::{ConnProtocol, TallyCount};
use bolide_io::{Accepted, Io, ReceivedBytes, Reset, SocketPeers};

use crate::accepting::is_dearth;
use crate::descriptors::make_room_for_client;
use crate::exchange_table::Owner;
use crate::full_table::make_place;
use crate::tcp::TcpConn;
use crate::tcp_input::{AtEof, Received, Unsealed};
use crate::tcp_output::Flushed;
use crate::worker::Worker;

/// Idle connections that are examined to close one; some may turn out to be busy.
const SHEDS_TRIED: usize = 16;

impl<I: Io> Worker<I> {
    /// Accepts waiting connections, a bounded number per turn.
    pub(crate) fn accept(&mut self, slot: usize) {
        let Some(listener) = self.requests.env.listeners.at(slot) else { return };
        let (fd, listen, near) = (listener.fd(), listener.listen, listener.near.clone());
        let batch = listener.batch.len();
        let mut taken = 0;
        while taken < batch {
            match self.requests.env.io.accept(fd, near.as_ref()) {
                Accepted::Client(client) => {
                    self.requests.env.tally.add(TallyCount::Accepted, ConnProtocol::Unknown);
                    self.admit(listen, &client);
                }
                Accepted::QueueEmpty => break,
                Accepted::Gone => {}
                Accepted::Failed(errno) => {
                    self.requests.env.log_accept_failure(errno);
                    if !is_dearth(errno) || !make_room_for_client(self) {
                        return self.requests.env.rest_listeners();
                    }
                }
            }
            taken += 1;
        }
        self.requests.env.listeners.learn_batch(slot, taken);
    }

    /// Ends something that is worth less than a new connection; false if there is nothing.
    pub(crate) fn make_room(&mut self) -> bool {
        let (origins, env, exchanges) = self.requests.upstream();
        origins.end_last_unwaited(env, exchanges) || self.shed_idle()
    }

    /// Creates a connection for a client, if there is room.
    fn admit(&mut self, listen: usize, client: &SocketPeers) {
        if self.requests.is_full(0) && !make_place(self) {
            let env = &mut self.requests.env;
            env.log_server(LogLevel::Alert, "worker_connections are not enough");
            return env.io.close(client.fd, Reset::Yes);
        }
        let (tcp, env) = self.requests.tcp();
        let Ok(conn) = TcpConn::accepted(listen, client, env) else {
            return env.io.close(client.fd, Reset::Yes);
        };
        match tcp.insert(conn, env) {
            Ok(key) => {
                tcp.rearm(key, env);
                env.handle_late_changes();
                // In our protocols the client speaks first, and often has by now.
                self.receive(key);
            }
            Err(Some(key)) => self.requests.close(key, Reset::Yes),
            Err(None) => {}
        }
    }

    /// One read, if the connection can use it.
    pub(crate) fn receive(&mut self, key: SlabKey<TcpConn>) {
        let (tcp, env) = self.requests.tcp();
        match tcp.read(key, env) {
            Some(ReceivedBytes::Bytes(len)) => self.take_bytes(key, len),
            Some(ReceivedBytes::End) => self.handle_end(key),
            Some(ReceivedBytes::Dead) => {
                self.lose_head(key);
                self.requests.orphan(Owner::Tcp(key), true);
                self.requests.close(key, Reset::Yes);
            }
            Some(ReceivedBytes::Blocked) | None => {}
        }
    }

    /// Handles a reset within a request head.
    #[cold]
    fn lose_head(&mut self, key: SlabKey<TcpConn>) {
        let (tcp, env) = self.requests.tcp();
        let Some(conn) = tcp.conns.get_mut(key) else { return };
        if let Some(framing) = &mut conn.framing {
            let (heads, events) = (&mut env.heads, &mut env.scratch.events);
            framing.handle_departure(true, &conn.input, heads, events);
            debug_assert!(env.scratch.events.len() <= 1, "a connection reads one head at a time");
            self.requests.handle_events(Owner::Tcp(key));
        }
    }

    fn take_bytes(&mut self, key: SlabKey<TcpConn>, len: usize) {
        let (tcp, env) = self.requests.tcp();
        match tcp.open(key, len, env) {
            Received::Nothing => return,
            Received::Broken => return self.requests.close(key, Reset::No),
            Received::Sealed(len) => self.unseal(key, len),
            Received::Plain(len) => {
                let bytes = std::mem::take(&mut env.scratch.received);
                self.feed(key, &bytes[..len]);
                self.requests.env.scratch.received = bytes;
            }
        }
        let (tcp, env) = self.requests.tcp();
        tcp.after_input(key, env);
    }

    /// Decrypts TLS records and feeds the plain text to the framing.
    fn unseal(&mut self, key: SlabKey<TcpConn>, len: usize) {
        let (tcp, env) = self.requests.tcp();
        match tcp.unseal(key, len, env) {
            Unsealed::Nothing => {}
            Unsealed::Plain { has_some } => {
                if has_some {
                    let plain = std::mem::take(&mut env.scratch.plain);
                    self.feed(key, &plain);
                    self.requests.env.scratch.plain = plain;
                }
                if self.requests.clients.tcp.conns.get(key).is_some_and(TcpConn::has_end) {
                    self.handle_end(key);
                }
            }
            Unsealed::Failed => {
                let is_dead = tcp.flush(key, env) == Flushed::Dead;
                self.requests.close(key, if is_dead { Reset::Yes } else { Reset::No });
            }
        }
    }

    /// Feeds bytes to the framing and handles its events; the rest is kept.
    pub(crate) fn feed(&mut self, key: SlabKey<TcpConn>, bytes: &[u8]) {
        let (mut from, mut bound) = (0, Bound::new());
        while bound.goes_on() {
            let before = from;
            self.feed_some(key, bytes, &mut from);
            if self.requests.env.scratch.early.is_empty() {
                break;
            }
            self.requests.start_early();
            if from == before {
                break;
            }
        }
        debug_assert!(from <= bytes.len(), "a framing takes what there is");
        self.requests.clients.tcp.keep(key, &bytes[from..]);
    }

    fn feed_some(&mut self, key: SlabKey<TcpConn>, bytes: &[u8], from: &mut usize) {
        let mut bound = Bound::new();
        while *from < bytes.len() && bound.goes_on() {
            let (tcp, env) = self.requests.tcp();
            let Some(taken) = tcp.take(key, &bytes[*from..], env) else { return };
            *from += taken;
            self.requests.handle_events(Owner::Tcp(key));
        }
    }

    /// The client has closed its side.
    pub(crate) fn handle_end(&mut self, key: SlabKey<TcpConn>) {
        let (tcp, env) = self.requests.tcp();
        match tcp.handle_eof(key, env) {
            AtEof::Nothing => {}
            AtEof::Close => self.requests.close(key, Reset::No),
            AtEof::Told => {
                self.requests.handle_events(Owner::Tcp(key));
                self.requests.clients.tcp.mark_dirty(key);
                self.requests.leave_if_alone(key);
            }
        }
    }

    /// Closes an idle connection, after its last output: over HTTP/2 GOAWAY, which names the last
    /// processed request (RFC 9113 §6.8).
    fn dismiss(&mut self, key: SlabKey<TcpConn>) {
        if let Some(framing) =
            self.requests.clients.tcp.conns.get_mut(key).and_then(|conn| conn.framing.as_mut())
        {
            framing.shutdown();
        }
        self.transmit(key);
        self.requests.close(key, Reset::No);
    }

    /// Closes an idle connection to make room for a new one; false if all are busy. A request that
    /// has arrived meanwhile is read first, and keeps its connection.
    pub(crate) fn shed_idle(&mut self) -> bool {
        for _ in 0..SHEDS_TRIED {
            let now = self.requests.env.now.mono;
            let tcp = &mut self.requests.clients.tcp;
            let Some((_, key)) = tcp.find_idle(now) else { return false };
            if let Some(conn) = tcp.conns.get_mut(key) {
                conn.readable = true;
            }
            self.receive(key);
            let tcp = &self.requests.clients.tcp;
            if tcp.is_idle(key, now) {
                self.dismiss(key);
            } else if tcp.conns.get(key).is_some() {
                continue;
            }
            return true;
        }
        false
    }
}
