//! Client connections over stream sockets: their table, deadlines, and those that read or write in
//! this turn.
//!
//! It closes no connection itself, because the caller has to end its exchanges first: it returns
//! how to close it.

use std::time::Duration;

use bolide_base::limits::CONNS_MAX;
use bolide_base::{Instant, Slab, SlabKey};
use bolide_conf::model::LogLevel;
use bolide_engine::{ConnProtocol, TallyCount};
use bolide_http::RequestHead;
use bolide_io::{Interest, Io, Reset};
use bolide_wire::StreamOwner;

use crate::endings::{EndOfSocket, SocketEnd};
use crate::env::WorkerEnv;
use crate::framing::ConnFraming;
use crate::full_table::IDLE_COMPARED;
use crate::generation::Generation;
use crate::outdated::Outdated;
use crate::tcp::{TcpConn, TcpWait};
use crate::token::PollToken;

/// Connections of clients over stream sockets.
#[derive(Debug)]
pub(crate) struct TcpSide {
    pub(crate) conns: Slab<TcpConn>,
    /// Connections that may write in this turn.
    pub(crate) dirty: Vec<SlabKey<TcpConn>>,
    /// Connections that are read again without a report.
    pub(crate) again: Vec<SlabKey<TcpConn>>,
    /// Connections that write again without a report.
    pub(crate) again_output: Vec<SlabKey<TcpConn>>,
}

/// The consequence of an expired deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TcpExpiry {
    /// Nothing, or nothing any more.
    Nothing,
    /// Check its exchanges.
    Exchange,
    /// Close it without output.
    Close,
    /// The request head is late.
    Head,
    /// The client takes nothing.
    Room,
}

impl TcpSide {
    /// No connection yet.
    pub(crate) const fn new() -> Self {
        Self {
            conns: Slab::with_capacity(CONNS_MAX),
            dirty: Vec::new(),
            again: Vec::new(),
            again_output: Vec::new(),
        }
    }

    /// Whether the next turn has work without a report.
    pub(crate) const fn is_busy(&self) -> bool {
        !(self.again.is_empty() && self.again_output.is_empty() && self.dirty.is_empty())
    }

    /// Adds a connection and has epoll watch its socket.
    ///
    /// # Errors
    ///
    /// There is no room, or the kernel does not watch it; in the latter case it stays in the table.
    pub(crate) fn insert<I: Io>(
        &mut self,
        conn: TcpConn,
        env: &mut WorkerEnv<I>,
    ) -> Result<SlabKey<TcpConn>, Option<SlabKey<TcpConn>>> {
        let fd = conn.fd;
        let Ok(key) = self.conns.insert(conn) else {
            env.io.close(fd, Reset::Yes);
            return Err(None);
        };
        env.tally.add(TallyCount::Handled, ConnProtocol::Unknown);
        env.tally.add(TallyCount::Active, ConnProtocol::Unknown);
        if !env.io.watch(fd, PollToken::Tcp(key).pack(), Interest::Edge) {
            return Err(Some(key));
        }
        Ok(key)
    }

    /// Closes a connection without exchanges.
    pub(crate) fn remove<I: Io>(
        &mut self,
        key: SlabKey<TcpConn>,
        reset: Reset,
        env: &mut WorkerEnv<I>,
    ) {
        let Some(mut conn) = self.conns.remove(key) else { return };
        debug_assert!(conn.exchanges == 0, "exchanges end before their connection");
        // The end of the connection may mean the end of a body: a truncated one must not look
        // complete.
        let is_whole = |framing: &ConnFraming| framing.is_idle() || !framing.is_plain_h1();
        let is_whole = conn.is_finished() || conn.framing.as_ref().is_none_or(is_whole);
        let is_polite = reset == Reset::No && is_whole;
        let close_notify = if is_polite { conn.close_notify() } else { Vec::new() };
        conn.count_end(&env.tally);
        env.end(SocketEnd { fd: conn.fd, close_notify, how: EndOfSocket::Closed(reset) });
    }

    /// Marks the connection to write in this turn.
    pub(crate) fn mark_dirty(&mut self, key: SlabKey<TcpConn>) {
        if let Some(conn) = self.conns.get_mut(key)
            && !conn.dirty
        {
            conn.dirty = true;
            self.dirty.push(key);
        }
    }

    /// Marks the connections that write again without a report.
    #[inline]
    pub(crate) fn resume_output(&mut self) {
        for place in 0..self.again_output.len() {
            self.mark_dirty(self.again_output[place]);
        }
        self.again_output.clear();
    }

    /// Whether the connection may write this turn.
    pub(crate) fn is_dirty(&self, key: SlabKey<TcpConn>) -> bool {
        self.conns.get(key).is_some_and(|conn| conn.dirty)
    }

    /// Sets the deadline for what the connection waits for now.
    pub(crate) fn rearm<I: Io>(&mut self, key: SlabKey<TcpConn>, env: &mut WorkerEnv<I>) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        let waiting = conn.now_waiting();
        let counts = conn.counts_as(waiting);
        if counts != conn.counted {
            conn.counted.into_iter().for_each(|(count, of)| env.tally.remove(count, of));
            counts.into_iter().for_each(|(count, of)| env.tally.add(count, of));
            conn.counted = counts;
        }
        debug_assert!(
            !conn.blocked || !conn.unsent.is_empty(),
            "a socket that is full has something to take"
        );
        conn.waiting = waiting;
        let now = env.now.mono;
        conn.deadline = conn.deadline_of(waiting, now).max(now.after(Duration::from_millis(1)));
        debug_assert!(conn.deadline > env.now.mono, "a deadline lies ahead when it is set");
        env.wheel.arm(&mut conn.armed, conn.deadline, PollToken::Tcp(key).pack());
        if waiting == TcpWait::Exchange && matches!(conn.framing, Some(ConnFraming::H2(_))) {
            let limits = conn.generation.listens[conn.info.listen].limits(conn.profile);
            if let Some(at) = conn.lateness.watch(limits, env.now.mono) {
                env.wake_at(at, PollToken::LateTcp(key));
            }
        }
    }

    fn rearm_soon<I: Io>(&mut self, key: SlabKey<TcpConn>, env: &mut WorkerEnv<I>) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        conn.deadline = env.now.mono.after(conn.manners().lingering_timeout);
        env.wheel.arm(&mut conn.armed, conn.deadline, PollToken::Tcp(key).pack());
    }

    /// Queues the GOAWAY that names the last processed request; false if the protocol has none, or
    /// it was sent before.
    pub(crate) fn queue_goaway<I: Io>(
        &mut self,
        key: SlabKey<TcpConn>,
        env: &mut WorkerEnv<I>,
    ) -> bool {
        let has_goaway =
            self.conns.get_mut(key).and_then(|conn| conn.framing.as_mut()).is_some_and(|framing| {
                framing.shutdown();
                framing.has_output()
            });
        if has_goaway {
            self.mark_dirty(key);
            self.rearm_soon(key, env);
        }
        has_goaway
    }

    /// Checks the deadline of a connection; returns the consequence.
    pub(crate) fn expire<I: Io>(
        &mut self,
        key: SlabKey<TcpConn>,
        at: Instant,
        env: &mut WorkerEnv<I>,
    ) -> TcpExpiry {
        let Some(conn) = self.conns.get_mut(key) else { return TcpExpiry::Nothing };
        conn.armed.fired(at);
        if conn.deadline > env.now.mono {
            env.wheel.arm(&mut conn.armed, conn.deadline, PollToken::Tcp(key).pack());
            return TcpExpiry::Nothing;
        }
        let waiting = conn.waiting;
        match waiting {
            TcpWait::Request if self.queue_goaway(key, env) => TcpExpiry::Nothing,
            TcpWait::Request => TcpExpiry::Close,
            TcpWait::Exchange => TcpExpiry::Exchange,
            TcpWait::Discarding | TcpWait::Linger => TcpExpiry::Close,
            TcpWait::Head => TcpExpiry::Head,
            TcpWait::Room => TcpExpiry::Room,
        }
    }

    /// Checks whether the client is late: it takes or sends nothing, while no exchange waits for
    /// this server (`is_ours`).
    pub(crate) fn expire_exchange<I: Io>(
        &mut self,
        key: SlabKey<TcpConn>,
        is_ours: bool,
        env: &mut WorkerEnv<I>,
    ) -> bool {
        let Some(conn) = self.conns.get_mut(key) else { return false };
        conn.deadline = env.now.mono.after(conn.settings().body_timeout);
        // The response of this turn was not sent yet.
        let is_ours = is_ours || conn.dirty || conn.is_held();
        // Each stream of HTTP/2 has its own time, for its request body and its response.
        let listens = |framing: &ConnFraming| {
            framing.is_plain_h1() && (framing.wants_input() && !framing.is_tunnel())
                || framing.is_draining()
        };
        let waits_for_client = conn.framing.as_ref().is_some_and(listens) && !conn.readable;
        if waits_for_client && !is_ours {
            return true;
        }
        env.wheel.arm(&mut conn.armed, conn.deadline, PollToken::Tcp(key).pack());
        false
    }

    /// Logs that the client of a connection timed out.
    pub(crate) fn log_timeout<I: Io>(
        &self,
        key: SlabKey<TcpConn>,
        doing: &str,
        env: &mut WorkerEnv<I>,
    ) {
        let Some(conn) = self.conns.get(key) else { return };
        let text = format!("client timed out (110: Connection timed out){doing}");
        env.log_conn(LogLevel::Info, &conn.subject(), &text);
    }

    /// A connection that waits for its client's first or next request, if there is one, and for how
    /// long: the one that has waited longest among the first of them.
    pub(crate) fn find_idle(&self, now: Instant) -> Option<(Duration, SlabKey<TcpConn>)> {
        let idle = |key| Some((self.conns.get(key)?.idle_for(now)?, key));
        let all = self.conns.keys().filter_map(idle).take(IDLE_COMPARED);
        all.max_by_key(|(time, _)| *time)
    }

    /// Whether a connection waits for its client's first or next request.
    pub(crate) fn is_idle(&self, key: SlabKey<TcpConn>, now: Instant) -> bool {
        self.conns.get(key).is_some_and(|conn| conn.idle_for(now).is_some())
    }

    /// Whether a connection speaks HTTP/1.
    pub(crate) fn speaks_h1(&self, key: SlabKey<TcpConn>) -> bool {
        let framing = self.conns.get(key).and_then(|conn| conn.framing.as_ref());
        framing.is_some_and(ConnFraming::is_plain_h1)
    }

    /// Whether a connection with HTTP/1 has finished an exchange.
    pub(crate) fn is_h1_without(&self, conn: SlabKey<TcpConn>, user: StreamOwner) -> bool {
        let framing = self.conns.get(conn).and_then(|conn| conn.framing.as_ref());
        matches!(framing, Some(ConnFraming::H1(h1)) if h1.users().all(|other| other != user))
    }

    /// Whether the first line of a connection that may speak HTTP/2 in plain text is neither its
    /// preface nor like a request: three words, no path, no version. RFC 9113 §3.4: such a
    /// connection is closed; an HTTP/1 page would be read as a frame.
    pub(crate) fn is_broken_preface(&self, key: SlabKey<TcpConn>, head: &RequestHead) -> bool {
        let mut words = head.line.split(|&byte| byte == b' ');
        let shape = (words.next(), words.next(), words.next(), words.next());
        let (Some(_), Some(path), Some(version), None) = shape else { return false };
        let unlike = !path.contains(&b'/') && !version.contains(&b'/');
        unlike
            && self.conns.get(key).is_some_and(|conn| {
                let first = conn.framing.as_ref().is_some_and(|framing| framing.requests() <= 1);
                let clear = conn.session.is_none() && !conn.plain_on_tls;
                first && clear && conn.settings().http2
            })
    }

    /// Ends connections after their requests; those without a request so far may be spared.
    pub(crate) fn drain(&mut self, spares_fresh: bool) {
        for key in self.conns.keys().collect::<Vec<_>>() {
            let Some(conn) = self.conns.get_mut(key) else { continue };
            if spares_fresh && conn.framing.as_ref().is_none_or(|framing| framing.requests() == 0) {
                continue;
            }
            conn.draining = true;
            if let Some(framing) = &mut conn.framing {
                framing.shutdown();
            }
            self.mark_dirty(key);
        }
    }

    /// Ends connections, after their requests, whose clients `newest` would verify differently or
    /// not accept. One without a request so far was accepted, and gets a response.
    pub(crate) fn drain_outdated(&mut self, newest: &Generation) {
        for key in self.conns.keys().collect::<Vec<_>>() {
            let Some(conn) = self.conns.get_mut(key) else { continue };
            let Some(outdated) = newest.outdates(&conn.generation, &conn.info) else { continue };
            if conn.outdated != Some(Outdated::Rules) {
                conn.outdated = Some(outdated);
            }
            if conn.ends_outdated() && conn.end_with_requests() {
                self.mark_dirty(key);
            }
        }
    }
}
