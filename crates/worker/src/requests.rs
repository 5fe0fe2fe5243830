//! The requests in progress on one core, and everything that is needed to answer them.
//!
//! Owns the parts that the effects of exchanges concern: clients, exchanges, upstreams, background
//! jobs, spools. It reads no client socket and waits for nothing: `Worker` does.

use bolide_base::SlabKey;
use bolide_engine::Wake;
use bolide_io::{Io, Reset};

use crate::background::Background;
use crate::clients::Clients;
use crate::env::WorkerEnv;
use crate::exchange_table::{Exchanges, Owner};
use crate::holdings::{Holdings, IntakeState, Slots};
use crate::jobs::FinishedJob;
use crate::quic_conn::QuicConn;
use crate::quic_side::QuicSide;
use crate::spooling::Spooling;
use crate::tcp::TcpConn;
use crate::tcp_side::TcpSide;
use crate::upstream_groups::Origins;

/// H3_NO_ERROR (RFC 9114 §8.1).
const H3_NO_ERROR: u64 = 0x100;

/// The requests of a worker, with the parts that answer them.
#[derive(Debug)]
pub(crate) struct Requests<I> {
    pub(crate) env: WorkerEnv<I>,
    pub(crate) clients: Clients,
    pub(crate) exchanges: Exchanges,
    pub(crate) origins: Origins,
    pub(crate) background: Background,
    pub(crate) spooling: Spooling,
}

impl<I: Io> Requests<I> {
    /// The connections over stream sockets, and their environment.
    #[inline]
    pub(crate) const fn tcp(&mut self) -> (&mut TcpSide, &mut WorkerEnv<I>) {
        (&mut self.clients.tcp, &mut self.env)
    }

    /// The connections over QUIC, and their environment.
    #[inline]
    pub(crate) const fn quic(&mut self) -> (&mut QuicSide, &mut WorkerEnv<I>) {
        (&mut self.clients.quic, &mut self.env)
    }

    /// The upstream connections, and their environment.
    #[inline]
    pub(crate) const fn upstream(&mut self) -> (&mut Origins, &mut WorkerEnv<I>, &mut Exchanges) {
        (&mut self.origins, &mut self.env, &mut self.exchanges)
    }

    /// Whether the limit of connections is reached. As in nginx, upstream connections count; those
    /// of fills without a client give way. `added` connections were accepted already.
    pub(crate) fn is_full(&self, added: usize) -> bool {
        let max = self.env.generation.connections_max as usize + added;
        let Clients { tcp, quic, post_actions } = &self.clients;
        let live = tcp.conns.live() + quic.open() + post_actions.live();
        // These fills are counted one by one only where that decides.
        live + self.origins.unwaited.at_most() >= max && {
            let more = self.origins.unwaited_fills();
            live + more >= max && self.clients.count() + more >= max
        }
    }

    /// Closes a connection and ends its requests.
    pub(crate) fn close(&mut self, key: SlabKey<TcpConn>, reset: Reset) {
        self.orphan(Owner::Tcp(key), false);
        self.clients.tcp.remove(key, reset, &mut self.env);
    }

    /// Closes a connection whose client timed out.
    pub(crate) fn close_timed_out(&mut self, key: SlabKey<TcpConn>) {
        let Some(conn) = self.clients.tcp.conns.get(key) else { return };
        let reset = if conn.manners().resets { Reset::Yes } else { Reset::No };
        self.send_away(Owner::Tcp(key));
        self.close(key, reset);
    }

    /// Closes a QUIC connection for good, without an error.
    pub(crate) fn close_quic(&mut self, key: SlabKey<QuicConn>) {
        self.close_quic_with(key, H3_NO_ERROR, "");
    }

    /// Closes a QUIC connection for good.
    pub(crate) fn close_quic_with(
        &mut self,
        key: SlabKey<QuicConn>,
        code: u64,
        reason: &'static str,
    ) {
        self.clients.quic.close(key, code, reason, self.env.now);
        self.orphan(Owner::Quic(key), false);
    }

    /// Ends a QUIC connection after its requests.
    pub(crate) fn end_quic(&mut self, key: SlabKey<QuicConn>) {
        if self.clients.quic.end(key) {
            self.close_quic(key);
        }
    }

    /// A QUIC connection is gone; ends its requests.
    pub(crate) fn forget_quic(&mut self, key: SlabKey<QuicConn>) {
        self.orphan(Owner::Quic(key), false);
        self.clients.quic.remove(key, &self.env);
    }

    /// Whether there are no requests, connections and pending work.
    pub(crate) fn is_over(&self) -> bool {
        let Self { clients, origins, .. } = self;
        let live = clients.tcp.conns.live() + clients.quic.conns.live();
        live + clients.post_actions.live() + origins.fetches.live() == 0
    }

    /// Stores the result of a background job, and wakes the exchange that waits for it.
    pub(crate) fn handle_finished(&mut self, finished: FinishedJob) {
        if let Some((key, wake)) = self.background.finish(finished, &mut self.env) {
            self.step(key, wake);
        }
        for key in self.background.scan_next(&mut self.env, &self.exchanges) {
            self.step(key, Wake::Probed);
        }
    }

    /// Closes the connection of an owner, if it is one.
    pub(crate) fn close_owner(&mut self, owner: Owner, reset: Reset) {
        match owner {
            Owner::Tcp(key) => self.close(key, reset),
            Owner::Quic(key) => self.close_quic(key),
            Owner::Parent(_) | Owner::PostAction(_) => {}
        }
    }

    /// The resources in use.
    pub(crate) fn holdings(&mut self) -> Holdings {
        let Self { env, clients, exchanges, origins, .. } = self;
        Holdings {
            worker: env.number,
            generation: env.generation.number,
            tcp: Slots::of(&clients.tcp.conns),
            quic: Slots::of(&clients.quic.conns),
            quic_states: clients.quic.udp.iter_mut().map(|udp| udp.endpoint.ids().count()).sum(),
            exchanges: Slots::of(&exchanges.live),
            post_actions: Slots::of(&clients.post_actions),
            fetches: Slots::of(&origins.fetches),
            links: Slots::of(&origins.links.table),
            links_idle: origins.links.pools.idle(),
            unwaited_fills: origins.unwaited_fills(),
            ended_fills: origins.unwaited.ended(),
            queued: origins.links.pools.queued(),
            deadlines: env.wheel.len(),
            intake: match (env.draining, env.listeners.rests()) {
                (true, _) => IntakeState::Draining,
                (false, true) => IntakeState::Paused,
                (false, false) => IntakeState::Accepting,
            },
        }
    }
}
