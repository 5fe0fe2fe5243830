//! Connections whose client was judged by authorities or lists that a reload has replaced, or whose
//! port speaks TLS now and did not, or the reverse: what they asked is answered, and the client's
//! next connection is judged anew. Nothing else about a reload ends connections.

use bolide_engine::ConnInfo;

use crate::generation::Generation;

impl Generation {
    /// Whether a client of `older` would be judged otherwise now, or maybe is being judged.
    pub(crate) fn judges_otherwise(&self, older: &Self, info: &ConnInfo) -> bool {
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
