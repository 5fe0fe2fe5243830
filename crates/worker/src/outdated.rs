//! Connections whose client was judged by authorities or lists that a reload has replaced, or whose
//! port speaks TLS now and did not, or the reverse: what they asked is answered, and the client's
//! next connection is judged anew. Nothing else about a reload ends connections.

use bolide_engine::ConnInfo;
use bolide_io::Io;

use crate::generation::Generation;
use crate::worker::Worker;

impl Generation {
    /// Whether a client of `older` would be judged otherwise now, or maybe is being judged.
    fn judges_otherwise(&self, older: &Self, info: &ConnInfo) -> bool {
        let new = self.same_listen(older, info.listen);
        let had_tls = older.listens[info.listen].tls.is_some();
        // What was asked in the clear would be answered in the clear.
        if new.is_some_and(|listen| self.listens[listen].tls.is_some() != had_tls) {
            return true;
        }
        let asking = older.listens[info.listen].tls.as_ref().filter(|tls| tls.asks_clients());
        let Some(old) = asking else { return false };
        let name = match &info.tls {
            Some(facts) if facts.client.is_none() => return false,
            Some(facts) => facts.server_name.as_deref(),
            None => return true,
        };
        let new = new.and_then(|listen| self.listens[listen].tls.as_ref());
        new.is_none_or(|new| !new.judges_like(old, name))
    }
}

impl<I: Io> Worker<I> {
    /// Ends such connections with their requests. Over TCP, one that has asked nothing yet was
    /// promised an answer by being accepted, and gets one.
    pub(crate) fn drain_outdated(&mut self) {
        let newest = self.env.generation.clone();
        for key in self.conns.keys().collect::<Vec<_>>() {
            let Some(conn) = self.conns.get_mut(key) else { continue };
            if !newest.judges_otherwise(&conn.generation, &conn.info) {
                continue;
            }
            conn.outdated = true;
            if let Some(framing) = conn.framing.as_mut().filter(|framing| framing.requests() > 0) {
                conn.draining = true;
                framing.shutdown();
                self.mark_dirty(key);
            }
        }
        for key in self.quics.keys().collect::<Vec<_>>() {
            let Some(conn) = self.quics.get_mut(key) else { continue };
            if newest.judges_otherwise(&conn.generation, &conn.info) {
                self.end_quic(key);
            }
        }
    }
}
