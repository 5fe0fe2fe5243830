//! Deadlines of connections: one wheel entry each, re-armed lazily.

use std::time::Duration;

use bolide_base::SlabKey;
use bolide_base::limits::DEADLINES_PER_TURN;
use bolide_conf::model::LogLevel;
use bolide_io::{Io, Reset};

use crate::env::WorkerEnv;
use crate::exchange_table::Owner;
use crate::framing::ConnFraming;
use crate::heartbeat::Doing;
use crate::tcp::{TcpConn, TcpWait};
use crate::token::PollToken;
use crate::worker::Worker;

impl<I: Io> Worker<I> {
    /// Sets the deadline that belongs to what the connection waits for now.
    pub(crate) fn rearm(&mut self, key: SlabKey<TcpConn>) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        let waiting = conn.now_waiting();
        let counts = conn.counts_as(waiting);
        if counts != conn.counted {
            conn.counted.into_iter().for_each(|count| self.env.tally.remove(count));
            counts.into_iter().for_each(|count| self.env.tally.add(count));
            conn.counted = counts;
        }
        // A head must be complete within one timeout, however slowly its bytes drip.
        if waiting == TcpWait::Head && conn.waiting == TcpWait::Head && !conn.fresh {
            return;
        }
        conn.waiting = waiting;
        let settings = conn.settings();
        let timeout = match waiting {
            TcpWait::Head => settings.header_timeout,
            TcpWait::Request => conn.idle_max.unwrap_or(settings.keepalive_timeout),
            TcpWait::Exchange => settings.body_timeout,
            TcpWait::Room => conn.manners().send_timeout,
            TcpWait::Linger => {
                let left = conn.linger_until.since(self.env.now.mono);
                conn.manners().lingering_timeout.min(left)
            }
        };
        conn.deadline = self.env.now.mono.after(timeout.max(Duration::from_millis(1)));
        self.env.wheel.arm(&mut conn.armed, conn.deadline, PollToken::Tcp(key).pack());
        if waiting == TcpWait::Exchange && matches!(conn.framing, Some(ConnFraming::H2(_))) {
            self.watch_for_late(Owner::Tcp(key));
        }
    }

    /// Handles what is due, a bounded number per turn: the rest is due in the next. Whether that
    /// was all.
    pub(crate) fn expire(&mut self) -> bool {
        let now = self.env.now.mono;
        for _ in 0..DEADLINES_PER_TURN {
            let Some((at, word)) = self.env.wheel.expire(now) else { return true };
            let token = PollToken::unpack(word);
            self.does(token.map_or(Doing::OtherDeadline, PollToken::deadline_doing));
            match token {
                Some(PollToken::Tcp(key)) => self.expire_tcp(key, at),
                Some(PollToken::Quic(key)) => self.expire_quic(key, at),
                Some(PollToken::Exchange(key)) => self.expire_exchange_of(key),
                Some(PollToken::Fetch(slot)) => {
                    self.origins.expire_fetch(slot, at, &mut self.env, &mut self.exchanges);
                }
                Some(PollToken::Link(key)) => {
                    self.origins.receive_link(key, &mut self.env, &mut self.exchanges);
                }
                Some(PollToken::Ping(key)) => self.expire_ping(key),
                Some(PollToken::Body(key)) => self.expire_body(key),
                Some(PollToken::Stall(key)) => self.expire_stall(key),
                Some(PollToken::Overtime) => self.end_overtime(),
                Some(PollToken::LateTcp(key)) => self.look_for_late(Owner::Tcp(key)),
                Some(PollToken::LateQuic(key)) => self.look_for_late(Owner::Quic(key)),
                Some(PollToken::Accepting) => {
                    let WorkerEnv { listeners, wheel, .. } = &mut self.env;
                    if listeners.expire(at, now, wheel) {
                        self.env.watch_listeners();
                    }
                }
                Some(PollToken::Links) => {
                    self.origins.armed.fired(at);
                    self.origins.expire_links(&mut self.env);
                }
                _ => debug_assert!(false, "listeners have no deadlines"),
            }
        }
        false
    }

    fn expire_tcp(&mut self, key: SlabKey<TcpConn>, at: bolide_base::Instant) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        conn.armed.fired(at);
        if conn.deadline > self.env.now.mono {
            self.env.wheel.arm(&mut conn.armed, conn.deadline, PollToken::Tcp(key).pack());
            return;
        }
        let waiting = conn.waiting;
        match waiting {
            // A quiet end: HTTP/2 clients are told by GOAWAY which requests were served.
            TcpWait::Request => {
                let ends_politely = conn.framing.as_mut().is_some_and(|framing| {
                    framing.shutdown();
                    framing.has_output()
                });
                if ends_politely {
                    self.mark_dirty(key);
                    self.rearm_soon(key);
                } else {
                    self.close(key, Reset::No);
                }
            }
            TcpWait::Exchange => self.expire_exchange(key),
            TcpWait::Linger => self.close(key, Reset::No),
            TcpWait::Head if self.refuse_late_head(key) => {}
            waiting @ (TcpWait::Head | TcpWait::Room) => {
                let waits = waiting == TcpWait::Head;
                self.log_timeout(key, if waits { " while waiting for request" } else { "" });
                self.close_timed_out(key);
            }
        }
    }

    /// Answers a head that did not end in time; false when none has begun.
    fn refuse_late_head(&mut self, key: SlabKey<TcpConn>) -> bool {
        let Some(framing) = self.conns.get_mut(key).and_then(|conn| conn.framing.as_mut()) else {
            return false;
        };
        framing.handle_timeout(&mut self.env.heads, &mut self.env.scratch.events);
        if self.env.scratch.events.is_empty() {
            return false;
        }
        self.handle_events(Owner::Tcp(key));
        self.mark_dirty(key);
        self.rearm(key);
        true
    }

    /// The client takes nothing or sends nothing, or an exchange waits for something of ours.
    fn expire_exchange(&mut self, key: SlabKey<TcpConn>) {
        let is_ours = self.is_waited_for(Owner::Tcp(key));
        let Some(conn) = self.conns.get_mut(key) else { return };
        conn.deadline = self.env.now.mono.after(conn.settings().body_timeout);
        // What was answered in this turn has not left.
        let is_ours = is_ours || conn.dirty || conn.is_held();
        let listens = |framing: &ConnFraming| {
            (framing.wants_input() && !framing.is_tunnel()) || framing.is_draining()
        };
        let waits_for_client = conn.framing.as_ref().is_some_and(listens) && !conn.readable;
        if waits_for_client && !is_ours {
            self.log_timeout(key, "");
            self.send_away(Owner::Tcp(key));
            return self.close(key, Reset::No);
        }
        self.env.wheel.arm(&mut conn.armed, conn.deadline, PollToken::Tcp(key).pack());
    }

    /// Closes a connection whose client is late.
    pub(crate) fn close_timed_out(&mut self, key: SlabKey<TcpConn>) {
        let Some(conn) = self.conns.get(key) else { return };
        let reset = if conn.manners().resets { Reset::Yes } else { Reset::No };
        self.send_away(Owner::Tcp(key));
        self.close(key, reset);
    }

    fn log_timeout(&mut self, key: SlabKey<TcpConn>, doing: &str) {
        let Some(conn) = self.conns.get(key) else { return };
        let subject = conn.subject();
        let text = format!("client timed out (110: Connection timed out){doing}");
        self.env.log_conn(LogLevel::Info, &subject, &text);
    }

    fn rearm_soon(&mut self, key: SlabKey<TcpConn>) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        conn.deadline = self.env.now.mono.after(conn.manners().lingering_timeout);
        self.env.wheel.arm(&mut conn.armed, conn.deadline, PollToken::Tcp(key).pack());
    }
}
