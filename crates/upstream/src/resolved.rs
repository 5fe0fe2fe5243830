//! A group with `resolve` servers: its current addresses.
//!
//! Owns the last lookup results. A request uses the group as it was when its attempts began.
//! Easiest to break: a peer whose address remains keeps its number, and with it its health and
//! connections.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bolide_conf::model::{PeerAddress, Upstream, UpstreamServer};

use crate::groups::{FOUND, Group, UpstreamPeer};

/// A group whose peers change.
#[derive(Debug)]
pub(crate) struct ResolvedGroup {
    upstream: Upstream,
    /// The next numbers for new peers.
    numbers: Arc<AtomicU32>,
    /// Read by each request to the group, written when the addresses of a name change.
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

/// A current address of a server's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundPeer {
    pub(crate) address: SocketAddr,
    pub(crate) weight: u32,
    pub(crate) is_backup: bool,
}

impl FoundPeer {
    /// A peer with the settings of the `server` line.
    pub(crate) const fn of_line(server: &UpstreamServer, address: SocketAddr) -> Self {
        Self { address, weight: server.weight, is_backup: server.backup }
    }
}

impl ResolvedGroup {
    /// `fixed` has the peers of the other lines. The addresses that `old`, the group of an earlier
    /// configuration, has for a name are used until it is looked up again.
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

    /// The group with its current servers.
    pub(crate) fn now(&self) -> Arc<Group> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner).group)
    }

    /// The configuration of the group.
    pub(crate) const fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Whether the caller is the first: it then looks the names up, for all workers.
    pub(crate) fn claim(&self) -> bool {
        !self.is_claimed.swap(true, Ordering::SeqCst)
    }

    /// Sets the addresses of the server in this line.
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

/// `group` with the resolved peers; peers that `known` has keep their numbers.
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

/// Peers that remain are first, in their order, so that hashes select the same ones as before.
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
            // Skips the number of groups outside the configuration.
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

/// The number that all lines of this name share.
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

/// Whether both have the same addresses, in any order.
fn are_same(a: &[FoundPeer], b: &[FoundPeer]) -> bool {
    a.len() == b.len() && a.iter().all(|peer| b.contains(peer))
}

/// The addresses that an earlier configuration had for the name of a server.
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
