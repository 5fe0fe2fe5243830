//! Moves a worker to another configuration, or lets it serve again under the same one.
//!
//! Easiest to break: nothing here may depend on the number of servers, nor may the worker drop the
//! last reference to the old configuration, which would free it within a turn; the sender keeps
//! configurations until it is the last owner.

use std::sync::Arc;

use bolide_engine::SiteRef;
use bolide_io::Io;

use crate::generation::Generation;
use crate::log::OpenLogs;
use crate::outdated::Outdated;
use crate::quic_conn::QuicConn;
use crate::worker::Worker;

impl<I: Io> Worker<I> {
    /// Uses another configuration for new requests; connections stay.
    pub(crate) fn configure(&mut self, generation: Arc<Generation>, logs: OpenLogs) {
        self.begin_overtime();
        self.requests.env.site = SiteRef::new(generation.site.clone(), generation.groups.clone());
        self.requests.origins.tls_settings.learn(&generation);
        self.requests.origins.claim_names(&generation.groups, &mut self.requests.env);
        self.requests.env.reads_tcp = generation.site.on_demand_vars().tcp_info;
        while let Some(idle) = self.requests.origins.links.pools.expire_unknown(&generation.groups)
        {
            self.requests.origins.links.close_idle(idle, &mut self.requests.env);
        }
        if self.requests.env.kept.front.is_none() {
            self.requests.env.kept.front =
                generation.site.store().map(|store| store.front(self.requests.env.number));
        }
        self.requests.env.write_logs(bolide_engine::Due::Everything);
        self.requests.env.log_files.configure(&self.requests.env.generation, logs);
        self.requests.env.logs.set_buffers(generation.site.log_buffers());
        self.requests.env.generation = generation;
        self.drain_outdated();
        self.requests.clients.bring_along(&self.requests.env.generation);
        self.after_drain.serve_again(&mut self.requests);
        self.listen();
    }

    /// Serves again under the same configuration. Connections that were told to end still do, and
    /// requests in progress have the time of those of a replaced configuration.
    pub(crate) fn resume(&mut self) {
        self.begin_overtime();
        self.after_drain.serve_again(&mut self.requests);
        self.listen();
    }

    /// Watches the sockets of the current configuration and closes the others; those that it shares
    /// with the previous one stay as they are.
    pub(crate) fn listen(&mut self) {
        let generation = self.requests.env.generation.clone();
        let sockets = generation.sockets.take(self.requests.env.number);
        let (quic, tcp): (Vec<_>, Vec<_>) =
            sockets.iter().cloned().partition(|(listen, _)| generation.is_quic(*listen));
        for (listen, socket) in &quic {
            self.requests.clients.quic.listen(*listen, socket, &mut self.requests.env);
        }
        self.requests.env.listeners.replace(&mut self.requests.env.io, tcp.into_iter());
        self.requests.env.watch_listeners();
        for key in self.requests.clients.quic.forget_others(&sockets) {
            self.requests.end_quic(key);
        }
    }

    /// Ends connections, after their requests, whose clients would be verified differently now.
    fn drain_outdated(&mut self) {
        let newest = self.requests.env.generation.clone();
        self.requests.clients.tcp.drain_outdated(&newest);
        for key in self.requests.clients.quic.conns.keys().collect::<Vec<_>>() {
            let conn = self.requests.clients.quic.conns.get(key);
            let is_judged = |conn: &QuicConn| {
                newest.outdates(&conn.generation, &conn.info) == Some(Outdated::Rules)
            };
            if conn.is_some_and(is_judged) {
                self.requests.end_quic(key);
            }
        }
    }
}
