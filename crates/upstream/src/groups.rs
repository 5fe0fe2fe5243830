//! The groups of a configuration with their state shared by all workers.
//!
//! Owns the servers of a group and its counters, which outlive a reload for a group of the same
//! name and a server of the same address. The balancer chooses.

use std::collections::{HashMap, HashSet};
use std::mem::Discriminant;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use bolide_base::Instant;
use bolide_conf::model::{
    Balance, Keepalive, PeerAddress, Queue, Upstream, UpstreamId, UpstreamKind, UpstreamServer,
};

use crate::hash::{self, Point};
use crate::health::{Health, HealthRule, Lease};
use crate::resolved::ResolvedGroup;
use crate::sticky::{GroupBond, peer_id};

/// Number of a group that is not in the configuration: it has no pool.
const UNPOOLED: u32 = u32::MAX;

/// Numbers of peers that were found while serving have this bit: a worker keeps what it knows of
/// them by group, as they come and go.
pub(crate) const FOUND: u32 = 1 << 31;

/// Workers that can be notified of a free place.
pub const WORKERS_MAX: usize = 256;

/// The groups of one configuration.
#[derive(Debug, Default)]
pub struct UpstreamGroups {
    groups: Vec<GroupPlace>,
    /// Peers with keep-alive, by number; those that were found while serving are not among them.
    kept: HashSet<u32>,
    /// Numbers that no group or peer had, in this configuration and earlier ones.
    next_group: u32,
    next_peer: u32,
    /// The same for peers that are found while serving.
    next_found: Arc<AtomicU32>,
}

/// A group of a configuration.
#[derive(Debug)]
enum GroupPlace {
    Fixed(Arc<Group>),
    /// Names of its servers are looked up while serving.
    Resolved(Arc<ResolvedGroup>),
}

/// Servers of which one is chosen for each request.
#[derive(Debug)]
pub struct Group {
    name: Arc<str>,
    kind: UpstreamKind,
    /// Its number; the same for a group of this name after a reload.
    pub(crate) number: u32,
    pub(crate) balance: Balance,
    /// How clients are bound to its servers, if they are.
    pub(crate) bond: Option<GroupBond>,
    /// Backups come last.
    pub(crate) peers: Vec<UpstreamPeer>,
    primary: usize,
    pub(crate) keepalive: Keepalive,
    pub(crate) queue: Option<Queue>,
    /// How long a request to a pool may take, by its settings.
    pub(crate) request_timeout: Option<Duration>,
    pub(crate) waiting: Arc<PeerWait>,
    /// For `hash … consistent`, in order.
    pub(crate) points: Vec<Point>,
    /// Counts up when peers are found while serving; 0 if they never are.
    pub(crate) version: u64,
}

/// One address of a group.
#[derive(Clone, Debug)]
pub struct UpstreamPeer {
    /// Its number; the same for this address in a group of this name after a reload.
    pub(crate) number: u32,
    /// Where it listens.
    pub address: PeerAddress,
    /// The address as text, for logs.
    pub name: Arc<str>,
    /// The index of its `server` line; lines of the same name share one.
    pub(crate) server: u32,
    pub(crate) server_name: Arc<str>,
    /// Its id for clients that are bound to it.
    pub(crate) id: Arc<[u8]>,
    pub(crate) weight: u32,
    pub(crate) max_conns: u32,
    pub(crate) down: bool,
    /// Whether only clients that are bound to it ask it.
    pub(crate) drain: bool,
    pub(crate) rule: HealthRule,
    pub(crate) health: Arc<Health>,
}

/// Requests of all workers that wait for a place in a group.
#[derive(Debug)]
pub(crate) struct PeerWait {
    count: AtomicU32,
    /// The workers that have some: one bit each.
    workers: [AtomicU64; WORKERS_MAX / 64],
    /// The worker that had the last turn.
    last: AtomicU32,
}

impl UpstreamGroups {
    /// The groups of a configuration; they inherit the counters of the same servers from
    /// `previous`.
    #[must_use]
    pub fn new(upstreams: &[Upstream], previous: Option<&Self>) -> Self {
        let mut made = Self::default();
        if let Some(previous) = previous {
            made.next_group = previous.next_group;
            made.next_peer = previous.next_peer;
            made.next_found = Arc::clone(&previous.next_found);
        }
        let old = previous.map(Self::by_name).unwrap_or_default();
        for upstream in upstreams {
            let known = (Arc::clone(&upstream.name), std::mem::discriminant(&upstream.kind));
            let zone = previous.and_then(|previous| previous.session_zone(upstream));
            let bond = GroupBond::new(upstream, zone.as_deref());
            made.add(upstream, bond, old.get(&known).map(|old| &**old));
        }
        made
    }

    /// The group of the configuration with this index, with the servers that it has now.
    #[must_use]
    pub fn group(&self, id: UpstreamId) -> Option<Arc<Group>> {
        self.groups.get(id.index()).map(GroupPlace::now)
    }

    /// All groups in the order of the configuration, with the servers that they have now.
    pub fn iter(&self) -> impl Iterator<Item = Arc<Group>> {
        self.groups.iter().map(GroupPlace::now)
    }

    /// Whether connections to the peer with this number are kept.
    pub(crate) fn keeps(&self, peer: u32) -> bool {
        if peer & FOUND == 0 {
            return self.kept.contains(&peer);
        }
        let has = |group: Arc<Group>| group.keepalive.idle_max > 0 && group.has_number(peer);
        self.resolved().any(|group| has(group.now()))
    }

    /// The groups with servers whose names are looked up while serving.
    pub(crate) fn resolved(&self) -> impl Iterator<Item = &Arc<ResolvedGroup>> {
        self.groups.iter().filter_map(|place| match place {
            GroupPlace::Fixed(_) => None,
            GroupPlace::Resolved(group) => Some(group),
        })
    }

    /// Groups by name and kind; of several the first.
    fn by_name(&self) -> HashMap<(Arc<str>, Discriminant<UpstreamKind>), Arc<Group>> {
        let mut found = HashMap::new();
        for group in self.iter() {
            let known = (Arc::clone(&group.name), std::mem::discriminant(&group.kind));
            found.entry(known).or_insert(group);
        }
        found
    }

    fn add(&mut self, upstream: &Upstream, bond: Option<GroupBond>, old: Option<&Group>) {
        let group = Group { bond, ..self.group_of(upstream, old) };
        if group.keepalive.idle_max > 0 {
            self.kept.extend(group.peers.iter().map(|peer| peer.number));
        }
        let is_resolved = upstream.servers.iter().any(|server| server.resolve.is_some());
        self.groups.push(if is_resolved {
            let numbers = Arc::clone(&self.next_found);
            GroupPlace::Resolved(Arc::new(ResolvedGroup::new(upstream, group, old, numbers)))
        } else {
            GroupPlace::Fixed(Arc::new(group))
        });
    }

    /// A group with the servers that the configuration gives addresses of.
    fn group_of(&mut self, upstream: &Upstream, old: Option<&Group>) -> Group {
        let number = old.map_or_else(|| next(&mut self.next_group), |old| old.number);
        let mut peers = Vec::new();
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut primary = 0;
        for backup in [false, true] {
            for server in upstream.servers.iter().filter(|server| server.backup == backup) {
                let line = names.iter().position(|name| *name == server.name);
                let line = line.unwrap_or_else(|| {
                    names.push(Arc::clone(&server.name));
                    names.len() - 1
                });
                for address in &server.addresses {
                    let nth = peers
                        .iter()
                        .filter(|peer: &&UpstreamPeer| peer.address == *address)
                        .count();
                    let known = old.and_then(|old| old.peer_of(address, nth));
                    let number = known.map(|known| known.number);
                    let number = number.unwrap_or_else(|| next(&mut self.next_peer));
                    peers.push(UpstreamPeer::new(server, address, (number, line as u32), known));
                }
            }
            if !backup {
                primary = peers.len();
            }
        }
        let points = points_of(&upstream.balance, &peers[..primary]);
        Group {
            name: Arc::clone(&upstream.name),
            kind: upstream.kind,
            number,
            balance: upstream.balance.clone(),
            bond: None,
            peers,
            primary,
            keepalive: upstream.keepalive,
            queue: upstream.queue,
            request_timeout: upstream.request_timeout,
            waiting: old.map_or_else(Arc::default, |old| Arc::clone(&old.waiting)),
            points,
            version: 0,
        }
    }
}

impl GroupPlace {
    fn now(&self) -> Arc<Group> {
        match self {
            Self::Fixed(group) => Arc::clone(group),
            Self::Resolved(group) => group.now(),
        }
    }
}

impl Group {
    /// A group of one address that is not in the configuration.
    #[must_use]
    pub fn of_address(address: &PeerAddress) -> Self {
        Self::of_addresses(address.to_string().into(), std::slice::from_ref(address))
    }

    /// A group of addresses that is not in the configuration: equal ones, asked in their order.
    #[must_use]
    pub fn of_addresses(name: Arc<str>, addresses: &[PeerAddress]) -> Self {
        let peer = |address: &PeerAddress| UpstreamPeer {
            number: UNPOOLED,
            address: address.clone(),
            name: address.to_string().into(),
            server: 0,
            server_name: Arc::clone(&name),
            weight: 1,
            max_conns: 0,
            id: Arc::default(),
            down: false,
            drain: false,
            rule: HealthRule { max_fails: 1, fail_timeout: Duration::from_secs(10) },
            health: Arc::default(),
        };
        let peers: Vec<UpstreamPeer> = addresses.iter().map(peer).collect();
        Self {
            kind: UpstreamKind::Address,
            number: UNPOOLED,
            balance: Balance::RoundRobin,
            bond: None,
            primary: peers.len(),
            peers,
            keepalive: Keepalive {
                idle_max: 0,
                requests: 0,
                time: Duration::ZERO,
                timeout: Duration::ZERO,
            },
            queue: None,
            request_timeout: None,
            waiting: Arc::default(),
            points: Vec::new(),
            version: 0,
            name,
        }
    }

    /// The same group with other peers: `peers`, of which the first `primary` are no backups.
    pub(crate) fn with_peers(&self, peers: Vec<UpstreamPeer>, primary: usize) -> Self {
        let points = points_of(&self.balance, &peers[..primary]);
        Self {
            name: Arc::clone(&self.name),
            kind: self.kind,
            number: self.number,
            balance: self.balance.clone(),
            bond: self.bond.clone(),
            peers,
            primary,
            keepalive: self.keepalive,
            queue: self.queue,
            request_timeout: self.request_timeout,
            waiting: Arc::clone(&self.waiting),
            points,
            version: self.version + 1,
        }
    }

    /// Its name as written.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// All addresses, backups last.
    #[must_use]
    pub fn peers(&self) -> &[UpstreamPeer] {
        &self.peers
    }

    /// What made it.
    #[must_use]
    pub const fn kind(&self) -> UpstreamKind {
        self.kind
    }

    /// Requests that its servers handle now.
    #[must_use]
    pub fn conns(&self) -> u32 {
        self.peers.iter().map(|peer| peer.health.conns()).sum()
    }

    /// Requests of all workers that wait for a place.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.waiting.count()
    }

    /// Whether it has a pool of idle connections.
    pub(crate) const fn is_pooled(&self) -> bool {
        self.number != UNPOOLED
    }

    /// Whether it is the only server, which is why it is never marked as failed.
    pub(crate) const fn is_single(&self) -> bool {
        self.peers.len() == 1
    }

    pub(crate) const fn primaries(&self) -> Range<usize> {
        0..self.primary
    }

    pub(crate) const fn backups(&self) -> Range<usize> {
        self.primary..self.peers.len()
    }

    /// Whether `peer`, one of its servers, may be chosen now.
    #[must_use]
    pub fn is_up(&self, peer: &UpstreamPeer, now: Instant) -> bool {
        !peer.down && (self.is_single() || !peer.health.is_resting(peer.rule, now))
    }

    /// Whether a server is available now for a request that has tried none yet.
    pub(crate) fn has_place(&self, now: Instant) -> bool {
        self.peers.iter().any(|peer| self.is_up(peer, now) && !peer.drain && !peer.is_busy())
    }

    /// How often one request may try: once per server that is neither `down` nor drained.
    pub(crate) fn tries(&self) -> u32 {
        if self.is_single() {
            return 1;
        }
        self.peers.iter().filter(|peer| !peer.down && !peer.drain).count() as u32
    }

    fn peer_of(&self, address: &PeerAddress, nth: usize) -> Option<&UpstreamPeer> {
        let same = |peer: &&UpstreamPeer| peer.address == *address && !peer.is_found();
        self.peers.iter().filter(same).nth(nth)
    }

    /// Whether it has the peer with this number.
    pub(crate) fn has_number(&self, number: u32) -> bool {
        self.peers.iter().any(|peer| peer.number == number)
    }
}

impl UpstreamPeer {
    /// A server at one of its addresses, with its number and that of its line; what is known of it
    /// is taken over.
    pub(crate) fn new(
        server: &UpstreamServer,
        address: &PeerAddress,
        (number, line): (u32, u32),
        known: Option<&Self>,
    ) -> Self {
        let name: Arc<str> = address.to_string().into();
        Self {
            number,
            address: address.clone(),
            id: peer_id(server, &name),
            name,
            server: line,
            server_name: Arc::clone(&server.name),
            weight: server.weight.max(1),
            max_conns: server.max_conns,
            down: server.down,
            drain: server.drain,
            rule: HealthRule { max_fails: server.max_fails, fail_timeout: server.fail_timeout },
            health: known.map_or_else(Arc::default, |known| Arc::clone(&known.health)),
        }
    }

    /// Whether its address was found while serving.
    pub(crate) const fn is_found(&self) -> bool {
        self.number & FOUND != 0 && self.number != UNPOOLED
    }

    /// Active requests, and failures that count.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.health
    }

    pub(crate) fn lease(&self) -> Option<Lease> {
        Lease::take(&self.health, self.max_conns)
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.max_conns > 0 && self.health.conns() >= self.max_conns
    }
}

impl Default for PeerWait {
    fn default() -> Self {
        Self {
            count: AtomicU32::new(0),
            workers: [const { AtomicU64::new(0) }; WORKERS_MAX / 64],
            last: AtomicU32::new(0),
        }
    }
}

impl PeerWait {
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }

    /// Joins the queue; returns its previous length, or `None` when it is full.
    pub(crate) fn join(&self, len: u32) -> Option<u32> {
        let one_more = |count: u32| (count < len).then(|| count + 1);
        self.count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more).ok()
    }

    /// Counts one less.
    pub(crate) fn leave(&self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
    }

    /// Records whether `worker` has waiting requests.
    pub(crate) fn mark(&self, worker: usize, waits: bool) {
        let bit = 1 << (worker % 64);
        let Some(word) = self.workers.get(worker / 64) else { return };
        if waits {
            word.fetch_or(bit, Ordering::SeqCst);
        } else {
            word.fetch_and(!bit, Ordering::SeqCst);
        }
    }

    /// The worker that gets the offer of a free place: each with queued requests, in turn.
    pub(crate) fn next_worker(&self) -> Option<usize> {
        let last = self.last.load(Ordering::Relaxed) as usize;
        let after = (last + 1..WORKERS_MAX).chain(0..=last.min(WORKERS_MAX - 1));
        let waits = |&worker: &usize| {
            self.workers[worker / 64].load(Ordering::SeqCst) & (1 << (worker % 64)) != 0
        };
        let next = after.into_iter().find(waits)?;
        self.last.store(next as u32, Ordering::Relaxed);
        Some(next)
    }
}

/// The circle of servers, if the method needs one.
fn points_of(balance: &Balance, peers: &[UpstreamPeer]) -> Vec<Point> {
    match balance {
        Balance::Hash { consistent: true, .. } => {
            hash::points(peers.iter().map(|peer| (&*peer.server_name, peer.server, peer.weight)))
        }
        _ => Vec::new(),
    }
}

const fn next(number: &mut u32) -> u32 {
    let taken = *number;
    *number += 1;
    taken
}
