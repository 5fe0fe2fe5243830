//! `sticky`: the ids of servers, and which one a request is bound to.
//!
//! The exchange knows cookies and variables; here are ids and sessions.

use std::sync::Arc;

use bolide_base::Instant;
use bolide_conf::model::{Sticky, Upstream, UpstreamServer};
use md5::{Digest as _, Md5};

use crate::groups::{Group, UpstreamGroups, UpstreamPeer};
use crate::sessions::SessionZone;

/// How the clients of a group are bound to its servers.
#[derive(Clone, Debug)]
pub(crate) struct GroupBond {
    /// The sessions of `sticky learn`.
    sessions: Option<Arc<SessionZone>>,
}

/// The server of an attempt, for a group that binds its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerBond {
    /// The id of the server.
    pub id: Arc<[u8]>,
    /// The sessions of `sticky learn`.
    pub sessions: Option<Arc<SessionZone>>,
}

impl GroupBond {
    /// That of a group of the configuration; `old` is the zone of this name in an earlier one.
    pub(crate) fn new(upstream: &Upstream, old: Option<&SessionZone>) -> Option<Self> {
        let sessions = match upstream.sticky.as_deref()? {
            Sticky::Learn(learn) => {
                Some(SessionZone::new(&learn.zone, learn.size, learn.timeout, old).into())
            }
            Sticky::Cookie(_) | Sticky::Route(_) => None,
        };
        Some(Self { sessions })
    }
}

impl UpstreamGroups {
    /// The zone with the name of that which `upstream` has.
    pub(crate) fn session_zone(&self, upstream: &Upstream) -> Option<Arc<SessionZone>> {
        let Some(Sticky::Learn(learn)) = upstream.sticky.as_deref() else { return None };
        let mut zones = self.iter().filter_map(|group| group.bond.as_ref()?.sessions.clone());
        zones.find(|zone| *zone.name() == learn.zone)
    }
}

impl Group {
    /// The id of the server that a request is bound to; empty for none. `said` is that id or, for a
    /// group that learns, the name of a session.
    pub(crate) fn bound_id(&self, said: &[u8], now: Instant) -> Arc<[u8]> {
        let Some(bond) = self.bond.as_ref().filter(|_| !said.is_empty()) else {
            return Arc::default();
        };
        match &bond.sessions {
            Some(sessions) => sessions.find(said, now).unwrap_or_default(),
            None => said.into(),
        }
    }

    /// What the exchange needs to know about the server that was chosen.
    pub(crate) fn bond_to(&self, peer: &UpstreamPeer) -> Option<PeerBond> {
        let sessions = self.bond.as_ref()?.sessions.clone();
        Some(PeerBond { id: Arc::clone(&peer.id), sessions })
    }
}

/// The id of a server: its `route`, or the MD5 of its address.
pub(crate) fn peer_id(server: &UpstreamServer, name: &str) -> Arc<[u8]> {
    if let Some(route) = &server.route {
        return Arc::clone(route);
    }
    let digest = Md5::digest(name);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.as_bytes().into()
}

#[cfg(test)]
mod tests {
    use crate::tests::support::server;

    use super::peer_id;

    #[test]
    fn the_id_of_a_server_is_its_route_or_the_md5_of_its_address() {
        let mut one = server(28101);
        assert_eq!(&*peer_id(&one, "127.0.0.1:28101"), b"fbcb109d2187fb75bc71542f355ae919");
        one.route = Some(b"one"[..].into());
        assert_eq!(&*peer_id(&one, "127.0.0.1:28101"), b"one");
    }
}
