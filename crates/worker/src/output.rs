//! From bodies to the socket: pull, frame, encrypt, one gathered write per turn.

use bolide_base::limits::FILTERED_PER_TURN;
use bolide_base::{Bound, CopyPolicy, SlabKey};
use bolide_engine::Due;
use bolide_io::Io;

use crate::bodies::Bodies;
use crate::exchange_table::Owner;
use crate::segments::SHARE_MIN;
use crate::shortened;
use crate::tcp::TcpConn;
use crate::tcp_output::Flushed;
use crate::worker::Worker;

/// How many responses one write may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    One,
    /// Those of a pipeline.
    Several,
}

impl<I: Io> Worker<I> {
    /// Writes the connection's output, once.
    pub(crate) fn transmit(&mut self, key: SlabKey<TcpConn>) {
        let (tcp, env) = self.requests.tcp();
        let Some(conn) = tcp.conns.get_mut(key) else { return };
        conn.dirty = false;
        if conn.lingering {
            return;
        }
        match tcp.flush(key, env) {
            Flushed::All => {}
            Flushed::Part => return,
            Flushed::Dead => return shortened::close_dead(&mut self.requests, key),
        }
        if self.gather(key) == Answers::Several {
            // The client must not have the second response before the line of the first is written.
            self.requests.env.write_logs(Due::Only);
        }
        let (tcp, env) = self.requests.tcp();
        if !env.scratch.chain.is_empty() {
            let is_alive = tcp.send(key, env);
            env.scratch.chain.clear();
            if !is_alive {
                return shortened::close_dead(&mut self.requests, key);
            }
        }
        self.after_output(key);
    }

    /// Collects the bytes of this turn in the scratch chain.
    fn gather(&mut self, key: SlabKey<TcpConn>) -> Answers {
        let mut answers = Answers::One;
        let Some(conn) = self.requests.clients.tcp.conns.get_mut(key) else { return answers };
        let Some(framing) = &conn.framing else { return answers };
        let plain = framing.is_plain_h1() && conn.session.is_none();
        let weave = if plain { CopyPolicy::Shared(SHARE_MIN) } else { CopyPolicy::Contiguous };
        self.requests.env.scratch.chain.configure(weave, plain);
        debug_assert!(
            self.requests.env.scratch.chain.is_empty(),
            "each write has a chain of its own"
        );
        let room = conn.room;
        let mut work = FILTERED_PER_TURN;
        let mut bound = Bound::new();
        while bound.goes_on()
            && let Some(conn) = self.requests.clients.tcp.conns.get_mut(key)
        {
            let Some(framing) = &mut conn.framing else { break };
            let left = (room as u64).saturating_sub(self.requests.env.scratch.chain.len()) as usize;
            let mut bodies = Bodies {
                exchanges: &mut self.requests.exchanges.live,
                io: &mut self.requests.env.io,
                paced: &mut self.requests.env.scratch.paced,
                roomy: &mut self.requests.exchanges.roomy,
                resting: &mut self.requests.exchanges.resting,
                truncated: &mut self.requests.exchanges.truncated,
                work: &mut work,
                family: &mut self.requests.exchanges.family,
                send_ctx: bolide_engine::SendCtx {
                    now: &self.requests.env.now,
                    clock: &self.requests.env.clock,
                    conn: &conn.info,
                    counters: &self.requests.env.tallies,
                    pid: self.requests.env.logs.pid(),
                },
            };
            let (chain, events) =
                (&mut self.requests.env.scratch.chain, &mut self.requests.env.scratch.events);
            framing.transmit(self.requests.env.now, left, chain, events, &mut bodies);
            let pipelined =
                !conn.input.is_empty() && framing.wants_input() && !framing.is_closing();
            self.requests.env.arm_paced();
            shortened::cut(&mut self.requests);
            self.requests.handle_events(Owner::Tcp(key));
            if !pipelined || self.requests.env.scratch.chain.len() >= room as u64 {
                break;
            }
            // The next request of a pipeline: its response is part of this turn's write.
            let Some(conn) =
                self.requests.clients.tcp.conns.get_mut(key).filter(|conn| !conn.is_held())
            else {
                break;
            };
            let input = std::mem::take(&mut conn.input);
            let before = input.len();
            answers = Answers::Several;
            self.feed(key, &input);
            let left = self.requests.clients.tcp.conns.get(key).map_or(0, |conn| conn.input.len());
            if left == before {
                break;
            }
        }
        answers
    }

    /// Decides what follows a write.
    fn after_output(&mut self, key: SlabKey<TcpConn>) {
        if self.requests.clients.tcp.conns.get(key).is_some_and(TcpConn::has_end) {
            self.handle_end(key);
        }
        let (tcp, env) = self.requests.tcp();
        if let Some(reset) = tcp.after_output(key, env) {
            self.requests.close(key, reset);
        }
    }
}
