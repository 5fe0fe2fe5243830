//! `worker_shutdown_timeout`: cuts off requests of replaced configurations.
//!
//! Owns which requests these are, and their deadline. As in nginx, the configuration that they
//! began with determines the time. Easiest to break: connections move to the newer configuration,
//! so only requests are cut off; over HTTP/1 that means the connection.

use bolide_base::{Instant, SlabKey};
use bolide_engine::Wake;
use bolide_io::{Io, Reset};

use crate::exchange_table::{ActiveExchange, Owner};
use crate::framing::{Cut, ResetCause};
use crate::tcp::TcpConn;
use crate::token::PollToken;
use crate::worker::Worker;

/// The requests of a replaced configuration.
#[derive(Debug)]
pub(crate) struct Overtime {
    ends: Instant,
    exchanges: Vec<SlabKey<ActiveExchange>>,
}

impl<I: Io> Worker<I> {
    /// Starts the timeout of the configuration that is being replaced.
    pub(crate) fn begin_overtime(&mut self) {
        let limit = self.requests.env.generation.site.config().main.worker_shutdown_timeout;
        let Some(limit) = limit.filter(|_| self.requests.exchanges.live.live() > 0) else { return };
        let (ends, exchanges) = (
            self.requests.env.now.mono.after(limit),
            self.requests.exchanges.live.keys().collect(),
        );
        debug_assert!(ends >= self.requests.env.now.mono, "what is under way may go on");
        self.overtime.push(Overtime { ends, exchanges });
        self.requests.env.wheel.arm_once(ends, PollToken::Overtime.pack());
    }

    /// Cuts off requests whose time is over.
    pub(crate) fn end_overtime(&mut self) {
        let now = self.requests.env.now.mono;
        let over = self.overtime.extract_if(.., |overtime| overtime.ends <= now);
        for key in over.flat_map(|overtime| overtime.exchanges).collect::<Vec<_>>() {
            self.cut(key);
        }
    }

    /// Ends every request, whatever its state.
    pub(crate) fn cut_all(&mut self) {
        for key in self.requests.exchanges.live.keys().collect::<Vec<_>>() {
            self.cut(key);
        }
    }

    /// Ends a request, whatever its state, and logs it; subrequests end with their parents.
    fn cut(&mut self, key: SlabKey<ActiveExchange>) {
        let Some(live) = self.requests.exchanges.live.get(key) else { return };
        let (owner, stream) = (live.owner, live.stream);
        if matches!(owner, Owner::Parent(_)) {
            return;
        }
        // If only the fetch of a complete response runs, newer requests may follow it.
        let tcp = &self.requests.clients.tcp;
        let has_left = matches!(owner, Owner::Tcp(conn) if tcp.is_h1_without(conn, key.to_bits()));
        let cut = if has_left {
            Cut::Stream
        } else {
            self.requests.clients.reset_stream(owner, stream, ResetCause::Unserved)
        };
        self.requests.step(key, Wake::TimeUp);
        match owner {
            Owner::Tcp(key) if cut == Cut::Connection => {
                // The end of the connection may mean the end of the response (RFC 9112 §6.3): a
                // truncated one must not look complete.
                let conn = self.requests.clients.tcp.conns.get(key);
                let is_begun = conn.is_some_and(TcpConn::is_answering);
                self.requests.close(key, if is_begun { Reset::Yes } else { Reset::No });
            }
            Owner::Tcp(conn) => self.requests.clients.tcp.mark_dirty(conn),
            Owner::Quic(_) | Owner::Parent(_) | Owner::PostAction(_) => {}
        }
    }
}
