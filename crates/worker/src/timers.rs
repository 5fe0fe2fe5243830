//! Deadlines of connections: one entry each in the queue, rearmed lazily.

use bolide_base::limits::DEADLINES_PER_TURN;
use bolide_base::{Instant, SlabKey};
use bolide_engine::WorkerCount;
use bolide_io::{Io, Reset};

use crate::env::WorkerEnv;
use crate::exchange_table::Owner;
use crate::heartbeat::Doing;
use crate::naming::expire_names;
use crate::tcp::TcpConn;
use crate::tcp_side::TcpExpiry;
use crate::token::PollToken;
use crate::worker::Worker;

impl<I: Io> Worker<I> {
    /// Handles expired deadlines, a bounded number per turn: the rest in the next. Returns whether
    /// that was all.
    pub(crate) fn expire(&mut self) -> bool {
        let now = self.requests.env.now.mono;
        for _ in 0..DEADLINES_PER_TURN {
            let Some((at, word)) = self.requests.env.wheel.expire(now) else { return true };
            self.expire_one(at, PollToken::unpack(word));
        }
        false
    }

    /// The deadline of this owner has come.
    // PERF: out of line, as most turns have no deadline that is due.
    #[inline(never)]
    fn expire_one(&mut self, at: Instant, token: Option<PollToken>) {
        let now = self.requests.env.now.mono;
        debug_assert!(at <= now, "a deadline that fires has come");
        self.does(token.map_or(Doing::OtherDeadline, PollToken::deadline_doing));
        let late = now.since(at).as_nanos() as u64;
        self.requests.env.tally.set(WorkerCount::LagNanos, late);
        match token {
            Some(PollToken::Tcp(key)) => self.expire_tcp(key, at),
            Some(PollToken::Quic(key)) => self.expire_quic(key, at),
            Some(PollToken::Exchange(key)) => self.expire_exchange_of(key),
            Some(PollToken::Asked(key)) => self.stop_asking(key),
            Some(PollToken::Fetch(slot)) => {
                let (origins, env, exchanges) = self.requests.upstream();
                origins.expire_fetch(slot, at, env, exchanges);
            }
            Some(PollToken::Link(key)) => {
                let (origins, env, exchanges) = self.requests.upstream();
                origins.receive_link(key, env, exchanges);
            }
            Some(PollToken::Ping(key)) => self.expire_ping(key),
            Some(PollToken::Body(key)) => self.expire_body(key),
            Some(PollToken::Stall(key)) => self.expire_stall(key),
            Some(PollToken::Overtime) => self.end_overtime(),
            Some(PollToken::LateTcp(key)) => self.look_for_late(Owner::Tcp(key)),
            Some(PollToken::LateQuic(key)) => self.look_for_late(Owner::Quic(key)),
            Some(PollToken::Accepting) => {
                let WorkerEnv { listeners, wheel, .. } = &mut self.requests.env;
                if listeners.expire(at, now, wheel) {
                    self.requests.env.watch_listeners();
                }
            }
            Some(PollToken::NamesDue(place)) => {
                let (origins, env, _) = self.requests.upstream();
                expire_names(origins, place, at, env);
            }
            Some(PollToken::ServersDue) => {
                let (origins, env, _) = self.requests.upstream();
                origins.expire_servers(at, env);
            }
            Some(PollToken::Links) => {
                self.requests.origins.links.armed.fired(at);
                self.requests.origins.links.expire_links(&mut self.requests.env);
            }
            _ => debug_assert!(false, "listeners have no deadlines"),
        }
    }

    /// Checks the deadline of a connection.
    fn expire_tcp(&mut self, key: SlabKey<TcpConn>, at: Instant) {
        let (tcp, env) = self.requests.tcp();
        let expiry = tcp.expire(key, at, env);
        let doing = match expiry {
            TcpExpiry::Nothing => return,
            TcpExpiry::Exchange => return self.expire_exchange(key),
            TcpExpiry::Close => return self.requests.close(key, Reset::No),
            TcpExpiry::Head if self.refuse_late_head(key) => return,
            TcpExpiry::Head => {
                let conn = self.requests.clients.tcp.conns.get(key);
                conn.map_or("", crate::leavers::awaited)
            }
            TcpExpiry::Room => "",
        };
        let (tcp, env) = self.requests.tcp();
        tcp.log_timeout(key, doing, env);
        // A client that takes nothing would not take a GOAWAY either.
        let is_late_head = matches!(expiry, TcpExpiry::Head);
        if is_late_head && tcp.queue_goaway(key, env) {
            return;
        }
        self.requests.close_timed_out(key);
    }

    /// Responds to a head that was not completed in time; false if none has begun.
    fn refuse_late_head(&mut self, key: SlabKey<TcpConn>) -> bool {
        let (tcp, env) = self.requests.tcp();
        let Some(conn) = tcp.conns.get_mut(key) else { return false };
        let Some(framing) = &mut conn.framing else { return false };
        framing.handle_timeout(&conn.input, &mut env.heads, &mut env.scratch.events);
        if env.scratch.events.is_empty() {
            return false;
        }
        self.requests.handle_events(Owner::Tcp(key));
        let (tcp, env) = self.requests.tcp();
        tcp.mark_dirty(key);
        tcp.rearm(key, env);
        true
    }

    /// Checks whether the client is late, or an exchange waits for this server.
    fn expire_exchange(&mut self, key: SlabKey<TcpConn>) {
        let is_ours = self.requests.is_waited_for(Owner::Tcp(key));
        let (tcp, env) = self.requests.tcp();
        if tcp.expire_exchange(key, is_ours, env) {
            // As in nginx, only HTTP/1 is logged.
            if !tcp.speaks_h1(key) {
                tcp.log_timeout(key, "", env);
            }
            self.requests.send_away(Owner::Tcp(key));
            self.requests.close(key, Reset::No);
        }
    }
}
