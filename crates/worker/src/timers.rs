//! Deadlines of connections: one wheel entry each, re-armed lazily.

use std::time::Duration;

use base::Key;
use base::limits::DEADLINES_PER_TURN;
use conf::model::Level;
use io::{Io, Reset};

use crate::exchanges::Owner;
use crate::framing::Framing;
use crate::pulse::Doing;
use crate::tcp::{TcpConn, Waiting};
use crate::token::Token;
use crate::worker::Worker;

impl<I: Io> Worker<I> {
    /// Sets the deadline that belongs to what the connection waits for now.
    pub(crate) fn rearm(&mut self, key: Key<TcpConn>) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        let waiting = conn.now_waiting();
        let counts = conn.counts_as(waiting);
        if counts != conn.counted {
            conn.counted.into_iter().for_each(|count| self.tally.remove(count));
            counts.into_iter().for_each(|count| self.tally.add(count));
            conn.counted = counts;
        }
        // A head must be complete within one timeout, however slowly its bytes drip.
        if waiting == Waiting::Head && conn.waiting == Waiting::Head && !conn.fresh {
            return;
        }
        conn.waiting = waiting;
        let settings = conn.settings();
        let timeout = match waiting {
            Waiting::Head => settings.header_timeout,
            Waiting::Request => conn.idle_max.unwrap_or(settings.keepalive_timeout),
            Waiting::Exchange => settings.body_timeout,
            Waiting::Room => conn.manners().send_timeout,
            Waiting::Linger => {
                let left = conn.linger_until.since(self.now.mono);
                conn.manners().lingering_timeout.min(left)
            }
        };
        conn.deadline = self.now.mono.after(timeout.max(Duration::from_millis(1)));
        self.wheel.arm(&mut conn.armed, conn.deadline, Token::Tcp(key).pack());
        if waiting == Waiting::Exchange && matches!(conn.framing, Some(Framing::H2(_))) {
            self.watch_for_late(Owner::Tcp(key));
        }
    }

    /// Handles what is due, a bounded number per turn: the rest is due in the next. Whether that
    /// was all.
    pub(crate) fn expire(&mut self) -> bool {
        for _ in 0..DEADLINES_PER_TURN {
            let Some((at, word)) = self.wheel.expire(self.now.mono) else { return true };
            let token = Token::unpack(word);
            self.does(token.map_or(Doing::OtherDeadline, Token::deadline_doing));
            match token {
                Some(Token::Tcp(key)) => self.expire_tcp(key, at),
                Some(Token::Quic(key)) => self.expire_quic(key, at),
                Some(Token::Exchange(key)) => self.expire_exchange_of(key),
                Some(Token::Fetch(slot)) => self.expire_fetch(slot, at),
                Some(Token::Link(key)) => self.receive_link(key),
                Some(Token::Ping(key)) => self.expire_ping(key),
                Some(Token::Body(key)) => self.expire_body(key),
                Some(Token::Stall(key)) => self.expire_stall(key),
                Some(Token::Overtime) => self.end_overtime(),
                Some(Token::LateTcp(key)) => self.look_for_late(Owner::Tcp(key)),
                Some(Token::LateQuic(key)) => self.look_for_late(Owner::Quic(key)),
                Some(Token::Accepting) => self.expire_accepting(at),
                Some(Token::Links) => {
                    self.origins.armed.fired(at);
                    self.expire_links();
                }
                _ => debug_assert!(false, "listeners have no deadlines"),
            }
        }
        false
    }

    fn expire_tcp(&mut self, key: Key<TcpConn>, at: base::Instant) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        conn.armed.fired(at);
        if conn.deadline > self.now.mono {
            self.wheel.arm(&mut conn.armed, conn.deadline, Token::Tcp(key).pack());
            return;
        }
        let waiting = conn.waiting;
        match waiting {
            // A quiet end: HTTP/2 clients are told by GOAWAY which requests were served.
            Waiting::Request => {
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
            Waiting::Exchange => self.expire_exchange(key),
            Waiting::Linger => self.close(key, Reset::No),
            Waiting::Head if self.refuse_late_head(key) => {}
            waiting @ (Waiting::Head | Waiting::Room) => {
                let waits = waiting == Waiting::Head;
                self.log_timeout(key, if waits { " while waiting for request" } else { "" });
                self.close_timed_out(key);
            }
        }
    }

    /// Answers a head that did not end in time; false when none has begun.
    fn refuse_late_head(&mut self, key: Key<TcpConn>) -> bool {
        let Some(framing) = self.conns.get_mut(key).and_then(|conn| conn.framing.as_mut()) else {
            return false;
        };
        framing.handle_timeout(&mut self.core.heads, &mut self.scratch.events);
        if self.scratch.events.is_empty() {
            return false;
        }
        self.handle_events(Owner::Tcp(key));
        self.mark_dirty(key);
        self.rearm(key);
        true
    }

    /// The client takes nothing or sends nothing, or an exchange waits for something of ours.
    fn expire_exchange(&mut self, key: Key<TcpConn>) {
        let is_ours = self.is_waited_for(Owner::Tcp(key));
        let Some(conn) = self.conns.get_mut(key) else { return };
        conn.deadline = self.now.mono.after(conn.settings().body_timeout);
        // What was answered in this turn has not left.
        let is_ours = is_ours || conn.dirty || conn.is_held();
        let listens = |framing: &Framing| {
            (framing.wants_input() && !framing.is_tunnel()) || framing.is_draining()
        };
        let waits_for_client = conn.framing.as_ref().is_some_and(listens) && !conn.readable;
        if waits_for_client && !is_ours {
            self.log_timeout(key, "");
            self.send_away(Owner::Tcp(key));
            return self.close(key, Reset::No);
        }
        self.wheel.arm(&mut conn.armed, conn.deadline, Token::Tcp(key).pack());
    }

    /// Closes a connection whose client is late.
    pub(crate) fn close_timed_out(&mut self, key: Key<TcpConn>) {
        let Some(conn) = self.conns.get(key) else { return };
        let reset = if conn.manners().resets { Reset::Yes } else { Reset::No };
        self.send_away(Owner::Tcp(key));
        self.close(key, reset);
    }

    fn log_timeout(&mut self, key: Key<TcpConn>, doing: &str) {
        let Some(conn) = self.conns.get(key) else { return };
        let subject = conn.subject();
        let text = format!("client timed out (110: Connection timed out){doing}");
        self.log_conn(Level::Info, &subject, &text);
    }

    fn rearm_soon(&mut self, key: Key<TcpConn>) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        conn.deadline = self.now.mono.after(conn.manners().lingering_timeout);
        self.wheel.arm(&mut conn.armed, conn.deadline, Token::Tcp(key).pack());
    }
}
