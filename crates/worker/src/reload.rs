//! A worker goes over to another configuration.
//!
//! Easiest to break: nothing here may depend on how many servers a configuration has, nor may the
//! worker be the last who holds the old one, or it would free it in its turn; the poster of
//! configurations keeps them until it is the last owner.

use std::sync::Arc;

use bolide_engine::SiteRef;
use bolide_io::Io;

use crate::generation::Generation;
use crate::log::OpenLogs;
use crate::worker::Worker;

impl<I: Io> Worker<I> {
    /// Answers new requests by another configuration; connections stay.
    pub(crate) fn configure(&mut self, generation: Arc<Generation>, logs: OpenLogs) {
        self.begin_overtime();
        self.env.site = SiteRef::new(generation.site.clone(), generation.groups.clone());
        self.origins.secrets.learn(&generation);
        self.env.reads_tcp = generation.site.looks().tcp_info;
        while let Some(idle) = self.origins.pools.expire_unknown(&generation.groups) {
            self.origins.close_idle(idle, &mut self.env);
        }
        if self.env.kept.front.is_none() {
            self.env.kept.front = generation.site.store().map(|store| store.front(self.env.number));
        }
        self.env.write_logs(bolide_engine::Due::Everything);
        self.env.log_files.configure(&self.env.generation, logs);
        self.env.logs.set_buffers(generation.site.log_buffers());
        self.env.generation = generation;
        self.drain_outdated();
        self.bring_along();
        self.listen();
    }

    /// Lets connections that ask nothing just now go over at once: a quiet one would hold the old
    /// configuration for as long as it is kept.
    fn bring_along(&mut self) {
        let newest = self.env.generation.clone();
        let same = |older: &Generation, listen| newest.same_listen(older, listen);
        for key in self.conns.keys().collect::<Vec<_>>() {
            let Some(conn) = self.conns.get_mut(key) else { continue };
            if conn.exchanges == 0
                && !conn.outdated
                && let Some(listen) = same(&conn.generation, conn.info.listen)
                // What is still being agreed on was begun by the old one's terms.
                && (conn.framing.is_some()
                    || conn.session.is_none() && newest.listens[listen].tls.is_none())
            {
                conn.info.listen = listen;
                conn.generation = newest.clone();
                conn.profile = newest.profile(&conn.info);
            }
        }
        for key in self.quics.keys().collect::<Vec<_>>() {
            let Some(conn) = self.quics.get_mut(key) else { continue };
            if conn.exchanges == 0
                && conn.started
                && let Some(listen) = same(&conn.generation, conn.info.listen)
            {
                conn.info.listen = listen;
                conn.generation = newest.clone();
                conn.profile = newest.profile(&conn.info);
            }
        }
    }

    /// Watches the sockets of the configuration in force and forgets the others; those that it has
    /// in common with the one before stay as they are.
    pub(crate) fn listen(&mut self) {
        let generation = self.env.generation.clone();
        let sockets = generation.sockets.take(self.env.number);
        let (quic, tcp): (Vec<_>, Vec<_>) =
            sockets.iter().cloned().partition(|(listen, _)| generation.is_quic(*listen));
        for (listen, socket) in &quic {
            self.listen_udp(*listen, socket);
        }
        self.env.listeners.replace(&mut self.env.io, tcp.into_iter());
        self.env.watch_listeners();
        self.forget_udp(&sockets);
    }
}
