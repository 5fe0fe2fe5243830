//! The balancer: nginx's methods to choose a server of a group.
//!
//! Owns the choice and the state of one request's choices; callers supply counts and health.
//! Primaries come first, then backups in turn.

use std::ops::Range;

use bolide_base::Instant;
use bolide_base::prng::Prng;
use bolide_conf::model::Balance;

use crate::groups::{Group, UpstreamPeer};
use crate::hash::{self, Crc};
use crate::health::Lease;
use crate::pool::LinkPools;

/// After this many unavailable servers, the remaining ones are tried in turn.
const DRAWS_MAX: u32 = 20;

/// The outcome of a choice.
#[derive(Debug)]
pub(crate) enum PeerChoice {
    /// This one, by index; counted.
    Peer(usize, Lease),
    /// Some servers are up, but all of these are busy.
    Busy,
    /// No server is available.
    NoServer,
}

/// The choices that one request has made.
#[derive(Debug, Default)]
pub(crate) struct BalanceCursor {
    /// Servers already tried: one bit for each.
    tried: Vec<u64>,
    /// The hash so far, and how often it was continued.
    hash: Option<u32>,
    rounds: u32,
    draws: u32,
    /// Whether all primaries were tried.
    backups: bool,
}

/// The inputs of a choice.
#[derive(Debug)]
pub(crate) struct Scales<'a> {
    pub(crate) group: &'a Group,
    pub(crate) pools: &'a mut LinkPools,
    pub(crate) prng: &'a mut Prng,
    pub(crate) now: Instant,
    /// The key of `hash` and `ip_hash`.
    pub(crate) affinity: &'a [u8],
    /// The id of the server that the client is bound to; empty for none.
    pub(crate) bound: &'a [u8],
}

impl BalanceCursor {
    /// Whether it has led to no server yet.
    pub(crate) const fn is_fresh(&self) -> bool {
        self.tried.is_empty()
    }

    fn was_tried(&self, index: usize) -> bool {
        self.tried.get(index / 64).is_some_and(|word| word & (1 << (index % 64)) != 0)
    }

    fn mark_tried(&mut self, index: usize) {
        if self.tried.len() <= index / 64 {
            self.tried.resize(index / 64 + 1, 0);
        }
        self.tried[index / 64] |= 1 << (index % 64);
    }
}

impl Scales<'_> {
    /// Chooses a server that this request has not tried yet.
    pub(crate) fn choose(&mut self, cursor: &mut BalanceCursor) -> PeerChoice {
        let group = self.group;
        if group.is_single() {
            return self.only();
        }
        // A peer can become busy between the choice and the count: one more round for each.
        for _ in 0..=group.peers.len() {
            let Some(index) = self.find(cursor) else { break };
            let peer = &group.peers[index];
            if let Some(lease) = peer.lease()
                && peer.health.claim(peer.rule, self.now)
            {
                cursor.mark_tried(index);
                return PeerChoice::Peer(index, lease);
            }
        }
        let busy = |(index, peer): (usize, &UpstreamPeer)| {
            peer.is_busy()
                && self.may_be_asked(peer)
                && !cursor.was_tried(index)
                && !peer.health.is_resting(peer.rule, self.now)
        };
        let is_busy = group.peers.iter().enumerate().any(busy);
        if is_busy { PeerChoice::Busy } else { PeerChoice::NoServer }
    }

    /// Records a failure of the server with this index; true when it is unavailable from now on.
    pub(crate) fn record_failure(&mut self, index: usize) -> bool {
        let peer = &self.group.peers[index];
        if self.group.is_single() {
            return false;
        }
        let rests = peer.health.record_failure(peer.rule, self.now);
        if !self.group.is_pooled() {
            return rests;
        }
        if let Some(loss) = peer.weight.checked_div(peer.rule.max_fails) {
            let weight = self.pools.weight(self.group, peer);
            weight.effective = 0.max(weight.effective - i64::from(loss));
        }
        rests
    }

    /// Whether the configuration lets this client ask it.
    fn may_be_asked(&self, peer: &UpstreamPeer) -> bool {
        !peer.down && (!peer.drain || *peer.id == *self.bound)
    }

    fn only(&self) -> PeerChoice {
        let peer = &self.group.peers[0];
        match peer.lease() {
            _ if !self.may_be_asked(peer) => PeerChoice::NoServer,
            Some(lease) => PeerChoice::Peer(0, lease),
            None => PeerChoice::Busy,
        }
    }

    fn find(&mut self, cursor: &mut BalanceCursor) -> Option<usize> {
        let group = self.group;
        if !cursor.backups {
            let range = group.primaries();
            if let Some(bound) = self.bound_peer(cursor, range.clone()) {
                return Some(bound);
            }
            let found = match &group.balance {
                Balance::RoundRobin => None,
                Balance::LeastConn => self.least_conn(cursor),
                Balance::IpHash => self.by_hash(cursor, Self::ip_round),
                Balance::Hash { consistent: false, .. } => self.by_hash(cursor, Self::key_round),
                Balance::Hash { consistent: true, .. } => self.by_point(cursor),
                Balance::Random { two } => self.by_chance(cursor, *two),
            };
            let found = found.or_else(|| self.in_turn(cursor, range, |_, _| true));
            if found.is_some() || group.backups().is_empty() {
                return found;
            }
            cursor.backups = true;
        }
        let bound = self.bound_peer(cursor, group.backups());
        bound.or_else(|| self.in_turn(cursor, group.backups(), |_, _| true))
    }

    /// The server that the client is bound to. As in nginx, the choice counts in the round robin.
    fn bound_peer(&mut self, cursor: &BalanceCursor, range: Range<usize>) -> Option<usize> {
        if self.bound.is_empty() {
            return None;
        }
        let is_it = |&index: &usize| {
            *self.group.peers[index].id == *self.bound && self.is_at_hand(cursor, index)
        };
        let index = range.clone().find(is_it)?;
        self.take_turn(cursor, range, index);
        Some(index)
    }

    /// Moves the weights as if round robin had chosen the server with this index, unless that was
    /// charged for the current round already.
    fn take_turn(&mut self, cursor: &BalanceCursor, range: Range<usize>, chosen: usize) {
        let group = self.group;
        if !group.is_pooled() {
            return;
        }
        let takes_part =
            |scales: &Self, index| index == chosen || scales.can_be_asked(cursor, index);
        let askable: Vec<usize> = range.filter(|&index| takes_part(self, index)).collect();
        let mut total = 0;
        for &index in &askable {
            total += self.pools.weight(group, &group.peers[index]).effective;
        }
        let own = self.pools.weight(group, &group.peers[chosen]);
        if own.current <= own.effective - total {
            return;
        }
        own.current -= total;
        for &index in &askable {
            let weight = self.pools.weight(group, &group.peers[index]);
            weight.current += weight.effective;
        }
    }

    fn can_be_asked(&self, cursor: &BalanceCursor, index: usize) -> bool {
        !self.group.peers[index].drain && self.is_at_hand(cursor, index)
    }

    /// Whether a client that is bound to it can ask it.
    fn is_at_hand(&self, cursor: &BalanceCursor, index: usize) -> bool {
        let peer = &self.group.peers[index];
        !peer.down
            && !cursor.was_tried(index)
            && !peer.is_busy()
            && !peer.health.is_resting(peer.rule, self.now)
    }

    /// Smooth weighted round robin among the servers of `wanted`.
    fn in_turn(
        &mut self,
        cursor: &BalanceCursor,
        range: Range<usize>,
        wanted: impl Fn(&Self, usize) -> bool,
    ) -> Option<usize> {
        let group = self.group;
        if !group.is_pooled() {
            // One request knows them, so that there is no turn to remember.
            let mut range = range;
            return range.find(|&index| self.can_be_asked(cursor, index) && wanted(self, index));
        }
        let mut best: Option<(usize, i64)> = None;
        let mut total = 0;
        for index in range {
            if !self.can_be_asked(cursor, index) || !wanted(self, index) {
                continue;
            }
            let peer = &group.peers[index];
            let weight = self.pools.weight(group, peer);
            weight.current += weight.effective;
            total += weight.effective;
            if weight.effective < i64::from(peer.weight) {
                weight.effective += 1;
            }
            if best.is_none_or(|(_, most)| weight.current > most) {
                best = Some((index, weight.current));
            }
        }
        let (index, _) = best?;
        self.pools.weight(group, &group.peers[index]).current -= total;
        Some(index)
    }

    /// The fewest connections for its weight; equal servers in turn.
    fn least_conn(&mut self, cursor: &BalanceCursor) -> Option<usize> {
        let group = self.group;
        let load = |index: usize| {
            let peer = &group.peers[index];
            (u64::from(peer.health.conns()), u64::from(peer.weight))
        };
        let less = |a: (u64, u64), b: (u64, u64)| a.0 * b.1 < b.0 * a.1;
        let askable = group.primaries().filter(|&index| self.can_be_asked(cursor, index));
        let least = askable.map(load).reduce(|a, b| if less(b, a) { b } else { a })?;
        let ties = |_: &Self, index: usize| !less(least, load(index));
        self.in_turn(cursor, group.primaries(), ties)
    }

    /// The server that a hash selects; while it is unavailable, the hash continues.
    fn by_hash(
        &self,
        cursor: &mut BalanceCursor,
        round: fn(&Self, &mut BalanceCursor) -> u32,
    ) -> Option<usize> {
        let keyless =
            matches!(self.group.balance, Balance::Hash { .. }) && self.affinity.is_empty();
        while cursor.draws <= DRAWS_MAX && !keyless {
            let hash = round(self, cursor);
            let index = self.at_weight(u64::from(hash))?;
            if self.can_be_asked(cursor, index) {
                return Some(index);
            }
            cursor.draws += 1;
        }
        None
    }

    fn ip_round(&self, cursor: &mut BalanceCursor) -> u32 {
        let address = match self.affinity {
            [] => &[0; 3],
            [network @ .., _host] if self.affinity.len() == 4 => network,
            address => address,
        };
        let hash = hash::ip_round(cursor.hash.unwrap_or(89), address);
        *cursor.hash.insert(hash)
    }

    fn key_round(&self, cursor: &mut BalanceCursor) -> u32 {
        let mut crc = Crc::new();
        if cursor.rounds > 0 {
            crc = crc.add(cursor.rounds.to_string().as_bytes());
        }
        cursor.rounds += 1;
        let round = (crc.add(self.affinity).value() >> 16) & 0x7fff;
        *cursor.hash.insert(cursor.hash.unwrap_or(0).wrapping_add(round))
    }

    /// The server whose share of the weights contains `draw`.
    fn at_weight(&self, draw: u64) -> Option<usize> {
        let peers = &self.group.peers[self.group.primaries()];
        let total: u64 = peers.iter().map(|peer| u64::from(peer.weight)).sum();
        let mut rest = draw.checked_rem(total)?;
        for (index, peer) in peers.iter().enumerate() {
            match rest.checked_sub(u64::from(peer.weight)) {
                Some(less) => rest = less,
                None => return Some(index),
            }
        }
        None
    }

    /// The next point on the circle whose server is available.
    fn by_point(&mut self, cursor: &mut BalanceCursor) -> Option<usize> {
        let group = self.group;
        if group.points.is_empty() || self.affinity.is_empty() {
            return None;
        }
        let hash = match cursor.hash {
            Some(at) => at as usize,
            None => hash::point_at(&group.points, Crc::new().add(self.affinity).value()),
        };
        let mut at = hash;
        while cursor.draws <= DRAWS_MAX {
            let server = group.points[at % group.points.len()].server;
            let same = |scales: &Self, index: usize| scales.group.peers[index].server == server;
            let found = self.in_turn(cursor, group.primaries(), same);
            cursor.hash = Some(at as u32);
            if found.is_some() {
                return found;
            }
            at += 1;
            cursor.draws += 1;
        }
        None
    }

    /// A random server by weight, or the less busy one of two.
    fn by_chance(&mut self, cursor: &mut BalanceCursor, two: bool) -> Option<usize> {
        let total: u64 =
            self.group.peers[self.group.primaries()].iter().map(|p| u64::from(p.weight)).sum();
        let mut first: Option<usize> = None;
        let mut draws = 0;
        while draws <= DRAWS_MAX {
            let draw = self.prng.below(total);
            let index = self.at_weight(draw)?;
            if first == Some(index) || !self.can_be_asked(cursor, index) {
                draws += 1;
                continue;
            }
            match first {
                None if two => first = Some(index),
                None => return Some(index),
                Some(other) => return Some(self.less_busy(other, index)),
            }
        }
        None
    }

    fn less_busy(&self, a: usize, b: usize) -> usize {
        let load = |index: usize| {
            let peer = &self.group.peers[index];
            (u64::from(peer.health.conns()), u64::from(peer.weight))
        };
        let ((conns_a, weight_a), (conns_b, weight_b)) = (load(a), load(b));
        if conns_b * weight_a > conns_a * weight_b { a } else { b }
    }
}

#[cfg(test)]
mod tests;
