//! A group with servers whose names are looked up while serving: the addresses that they have now.
//!
//! Owns what was found last; a request keeps the group as it was when its attempts began. Easiest
//! to break: a peer that stays keeps its number, and with it its health and its connections.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bolide_conf::model::{PeerAddress, Upstream, UpstreamServer};

use crate::groups::{FOUND, Group, UpstreamPeer};

/// A group whose peers come and go.
#[derive(Debug)]
pub(crate) struct ResolvedGroup {
    upstream: Upstream,
    /// Numbers that no peer had that was found while serving.
    numbers: Arc<AtomicU32>,
    /// Read by each request to the group, written when a name has other addresses.
    state: RwLock<ResolvedState>,
    /// Whether a worker looks its names up.
    is_claimed: AtomicBool,
}

#[derive(Debug)]
struct ResolvedState {
    group: Arc<Group>,
    /// By `server` line.
    found: Vec<Vec<FoundPeer>>,
}

/// An address that the name of a server has now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundPeer {
    pub(crate) address: SocketAddr,
    pub(crate) weight: u32,
    pub(crate) is_backup: bool,
}

impl FoundPeer {
    /// As the line of the server says.
    pub(crate) const fn of_line(server: &UpstreamServer, address: SocketAddr) -> Self {
        Self { address, weight: server.weight, is_backup: server.backup }
    }
}

impl ResolvedGroup {
    /// `fixed` has the peers of the other lines. What `old`, the group of an earlier configuration,
    /// found for a name counts until it is looked up again.
    pub(crate) fn new(
        upstream: &Upstream,
        mut fixed: Group,
        old: Option<&Group>,
        numbers: Arc<AtomicU32>,
    ) -> Self {
        let upstream = upstream.clone();
        let found: Vec<_> = upstream.servers.iter().map(|server| inherited(server, old)).collect();
        fixed.version = old.map_or(0, |old| old.version);
        let group = build(&upstream, &numbers, (&fixed, old.unwrap_or(&fixed)), &found);
        let state = RwLock::new(ResolvedState { group: Arc::new(group), found });
        Self { upstream, numbers, state, is_claimed: AtomicBool::new(false) }
    }

    /// The group with the servers that it has now.
    pub(crate) fn now(&self) -> Arc<Group> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner).group)
    }

    /// What the configuration says of it.
    pub(crate) const fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Whether the caller is the first to ask: it looks the names up, for all workers.
    pub(crate) fn claim(&self) -> bool {
        !self.is_claimed.swap(true, Ordering::SeqCst)
    }

    /// The name of the server in this line has these addresses now.
    pub(crate) fn learn(&self, line: usize, found: Vec<FoundPeer>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.found.get(line).is_none_or(|known| are_same(known, &found)) {
            return;
        }
        state.found[line] = found;
        let group = &state.group;
        let group = build(&self.upstream, &self.numbers, (group, group), &state.found);
        state.group = Arc::new(group);
    }
}

/// `group` with what was found; peers that `known` has stay what they are.
fn build(
    upstream: &Upstream,
    numbers: &AtomicU32,
    (group, known): (&Group, &Group),
    found: &[Vec<FoundPeer>],
) -> Group {
    let mut peers = Vec::new();
    let mut primary = 0;
    for is_backup in [false, true] {
        let range = if is_backup { group.backups() } else { group.primaries() };
        peers.extend(group.peers[range].iter().filter(|peer| !peer.is_found()).cloned());
        let more = found_peers(upstream, numbers, (known, &peers), found, is_backup);
        peers.extend(more);
        if !is_backup {
            primary = peers.len();
        }
    }
    group.with_peers(peers, primary)
}

/// Those that stay come first, in their order, so that hashes lead where they led.
fn found_peers(
    upstream: &Upstream,
    numbers: &AtomicU32,
    (known, before): (&Group, &[UpstreamPeer]),
    found: &[Vec<FoundPeer>],
    is_backup: bool,
) -> Vec<UpstreamPeer> {
    let mut made: Vec<(usize, UpstreamPeer)> = Vec::new();
    for (server, found) in upstream.servers.iter().zip(found) {
        for peer in found.iter().filter(|peer| peer.is_backup == is_backup) {
            let address = PeerAddress::Inet(peer.address);
            let taken = || before.iter().chain(made.iter().map(|(_, peer)| peer));
            let place = known.peers.iter().position(|known| {
                known.is_found()
                    && known.server_name == server.name
                    && known.address == address
                    && taken().all(|peer| peer.number != known.number)
            });
            let old = place.map(|place| &known.peers[place]);
            // The number of a group outside the configuration is left out.
            let next = || FOUND | (numbers.fetch_add(1, Ordering::SeqCst) % (FOUND - 1));
            let number = (old.map_or_else(next, |old| old.number), line_of(upstream, &server.name));
            let new = UpstreamPeer::new(server, &address, number, old);
            let new = UpstreamPeer { weight: peer.weight.max(1), ..new };
            made.push((place.unwrap_or(usize::MAX), new));
        }
    }
    made.sort_by_key(|(place, _)| *place);
    made.into_iter().map(|(_, peer)| peer).collect()
}

/// The number that lines of this name share.
fn line_of(upstream: &Upstream, name: &str) -> u32 {
    let mut names: Vec<&str> = Vec::new();
    for is_backup in [false, true] {
        for server in upstream.servers.iter().filter(|server| server.backup == is_backup) {
            if !names.contains(&&*server.name) {
                names.push(&server.name);
            }
        }
    }
    names.iter().position(|known| *known == name).unwrap_or_default() as u32
}

/// Whether both have the same addresses, in whatever order.
fn are_same(a: &[FoundPeer], b: &[FoundPeer]) -> bool {
    a.len() == b.len() && a.iter().all(|peer| b.contains(peer))
}

/// What an earlier configuration found for the name of a server.
fn inherited(server: &UpstreamServer, old: Option<&Group>) -> Vec<FoundPeer> {
    if server.resolve.is_none() {
        return Vec::new();
    }
    let peers = old.iter().flat_map(|old| &old.peers);
    let same = peers.filter(|peer| peer.is_found() && peer.server_name == server.name);
    same.filter_map(|peer| match &peer.address {
        PeerAddress::Inet(address) => Some(FoundPeer::of_line(server, *address)),
        PeerAddress::Unix(_) => None,
    })
    .collect()
}
