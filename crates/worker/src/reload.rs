//! A worker goes over to another configuration.
//!
//! Easiest to break: nothing here may depend on how many servers a configuration has, nor may the
//! worker be the last who holds the old one, or it would free it in its turn; the poster of
//! configurations keeps them until it is the last owner.

use std::collections::HashMap;
use std::sync::Arc;

use bolide_engine::SiteRef;
use bolide_io::{Fd, Io};

use crate::worker::ListenSlot;
use crate::{Generation, OpenLogs, Worker};

impl<I: Io> Worker<I> {
    /// Answers new requests by another configuration; connections stay.
    pub(crate) fn configure(&mut self, generation: Arc<Generation>, logs: OpenLogs) {
        self.begin_overtime();
        self.site = SiteRef::new(generation.site.clone(), generation.groups.clone());
        self.origins.secrets.learn(&generation);
        self.reads_tcp = generation.site.looks().tcp_info;
        while let Some(idle) = self.origins.pools.expire_unknown(&generation.groups) {
            self.close_idle(idle);
        }
        if self.core.cache.is_none() {
            self.core.cache = generation.site.store().map(|store| store.front(self.number));
        }
        self.write_logs(bolide_engine::Due::Everything);
        self.log_files.configure(&self.generation, logs);
        self.core.logs.set_buffers(generation.site.log_buffers());
        self.generation = generation;
        self.drain_outdated();
        self.bring_along();
        self.listen();
    }

    /// Lets connections that ask nothing just now go over at once: a quiet one would hold the old
    /// configuration for as long as it is kept.
    fn bring_along(&mut self) {
        let newest = self.generation.clone();
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
        let generation = self.generation.clone();
        let sockets = generation.sockets.take(self.number);
        let known = self.listeners.iter().enumerate();
        let known = known.filter_map(|(slot, known)| Some((known.as_ref()?.socket.fd(), slot)));
        let mut old: HashMap<Fd, usize> = known.collect();
        let mut fresh = Vec::new();
        for &(listen, ref socket) in &sockets {
            if generation.is_quic(listen) {
                self.listen_udp(listen, socket);
            } else if let Some(slot) = old.remove(&socket.fd()) {
                if let Some(known) = &mut self.listeners[slot] {
                    (known.socket, known.listen) = (socket.clone(), listen);
                }
            } else {
                let is_watched = false;
                fresh.push(ListenSlot { socket: socket.clone(), listen, is_watched });
            }
        }
        for (fd, slot) in old {
            self.io.unwatch(fd);
            self.listeners[slot] = None;
        }
        let mut free = 0;
        for slot in fresh {
            free += self.listeners[free..].iter().take_while(|known| known.is_some()).count();
            match self.listeners.get_mut(free) {
                Some(place) => *place = Some(slot),
                None => self.listeners.push(Some(slot)),
            }
        }
        self.watch_listeners();
        self.forget_udp(&sockets);
    }
}
