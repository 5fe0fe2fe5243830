//! Connections that a reload invalidates: their client was verified by CAs or lists that were
//! replaced, their port has changed between plain text and TLS, or their address is no longer
//! listened on. Requests on them have the configuration that accepted them, then they are closed. A
//! reload ends no other connections.

use bolide_engine::ConnInfo;

use crate::generation::Generation;

/// Why a connection is closed after its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outdated {
    /// Its client would be verified differently, or is in its handshake: it ends once it is idle.
    Rules,
    /// Its address is not listened on any more. Over HTTP/1 the response to its next request says
    /// that it is the last, so that no request is lost that is on its way.
    Address,
}

impl Generation {
    /// Why a connection that `older` accepted would not be accepted like this now.
    pub(crate) fn outdates(&self, older: &Self, info: &ConnInfo) -> Option<Outdated> {
        let Some(new) = self.same_listen(older, info.listen) else {
            return Some(Outdated::Address);
        };
        self.judges_otherwise(older, info, new).then_some(Outdated::Rules)
    }

    /// Whether a client of `older` would be verified differently by the listen `new`, or is in its
    /// handshake.
    fn judges_otherwise(&self, older: &Self, info: &ConnInfo, new: usize) -> bool {
        let had_tls = older.listens[info.listen].tls.is_some();
        // A request in plain text would be answered in plain text.
        if self.listens[new].tls.is_some() != had_tls {
            return true;
        }
        let asking = older.listens[info.listen].tls.as_ref().filter(|tls| tls.asks_clients());
        let Some(old) = asking else { return false };
        let name = match &info.tls {
            Some(facts) if facts.client.is_none() => return false,
            Some(facts) => facts.server_name.as_deref(),
            None => return true,
        };
        let new = self.listens[new].tls.as_ref();
        new.is_none_or(|new| !new.judges_like(old, name))
    }
}
