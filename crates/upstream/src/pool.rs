//! One worker's state of the groups: current weights, idle connections, queued requests.
//!
//! Owns the names (words chosen by the worker) of connections and fetches, never the things
//! themselves. Numbers of groups and peers outlive a reload, and so does this state. Easiest to
//! break: a place that became free is offered as long as a fetch waits; a fetch that leaves the
//! queue for another reason therefore passes its turn on.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bolide_base::Instant;
use bolide_conf::model::Keepalive;

use crate::groups::{FOUND, Group, PeerWait, UpstreamGroups, UpstreamPeer};
use crate::request::{LocalAddress, OriginRequest, Secure};

/// One worker's state of all groups.
#[derive(Debug)]
pub struct LinkPools {
    worker: usize,
    /// By number of the peer; those that were found while serving stand with their group.
    weights: Vec<Weight>,
    /// By number of the group.
    groups: Vec<Option<GroupPool>>,
    /// Groups for which a fetch of this worker must be woken, or other workers notified.
    due: Vec<u32>,
    /// Fetches that another fetch passed its turn to.
    called: Vec<u64>,
    notices: Vec<Notice>,
}

/// Another worker has a request that waits for a place, and one may be free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The worker to notify; it passes [`Self::group`] to [`LinkPools::handle_notice`].
    pub worker: usize,
    /// The number of the group.
    pub group: u32,
}

/// The fetches whose turn it is; see [`LinkPools::take_turns`].
#[derive(Debug, Default)]
pub struct Turns {
    /// Fetches of this worker to wake with `Turn`.
    pub wake: Vec<u64>,
    /// Notices for other workers.
    pub notices: Vec<Notice>,
}

/// A connection between two requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Idle {
    /// The worker's name for it.
    pub(crate) link: u64,
    /// Number of the peer.
    pub(crate) peer: u32,
    /// Its TLS identity: only requests with an equal one may use it.
    pub(crate) secure: Option<Arc<Secure>>,
    /// Its configured local address (`proxy_bind`), by which the server may decide about access:
    /// only requests with an equal one may use it.
    from: Option<LocalAddress>,
    /// Requests that it carried.
    pub(crate) served: u64,
    /// When it was made.
    pub(crate) born: Instant,
    /// When its idle timeout expires.
    until: Instant,
}

/// The round-robin state of one peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weight {
    /// As configured, to detect a change.
    of: u32,
    pub(crate) effective: i64,
    pub(crate) current: i64,
}

#[derive(Debug)]
struct GroupPool {
    /// The one used last comes first.
    idle: VecDeque<Idle>,
    /// In the order of arrival.
    queue: VecDeque<u64>,
    /// Turns not assigned yet.
    turns: usize,
    waiting: Arc<PeerWait>,
    /// The newest peers that a request of this worker saw; see [`Group::version`].
    version: u64,
    /// Of peers that were found while serving, by number.
    weights: HashMap<u32, Weight>,
}

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueFull;

impl LinkPools {
    /// Empty; `worker` is its index, below [`crate::groups::WORKERS_MAX`].
    #[must_use]
    pub const fn new(worker: usize) -> Self {
        Self {
            worker,
            weights: Vec::new(),
            groups: Vec::new(),
            due: Vec::new(),
            called: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// Lists the fetches whose turn it is, and the workers to notify that a turn of theirs may have
    /// come. Call it after steps, until both lists stay empty.
    pub fn take_turns(&mut self, turns: &mut Turns) {
        let mut bound = bolide_base::Bound::new();
        while bound.goes_on()
            && let Some(number) = self.due.pop()
        {
            let Some(Some(pool)) = self.groups.get_mut(number as usize) else { continue };
            let wanted = std::mem::take(&mut pool.turns);
            let given = wanted.min(pool.queue.len());
            turns.wake.extend(pool.queue.iter().take(given));
            let waiting = Arc::clone(&pool.waiting);
            for _ in given..wanted {
                self.offer(number, &waiting);
            }
        }
        turns.wake.append(&mut self.called);
        turns.notices.append(&mut self.notices);
    }

    /// A notice of another worker: a place of the group with this number may be free.
    pub fn handle_notice(&mut self, group: u32) {
        self.give_turn(group);
    }

    /// The connection of this name is gone, idle or not.
    pub fn forget(&mut self, link: u64) {
        for pool in self.groups.iter_mut().flatten() {
            pool.idle.retain(|idle| idle.link != link);
        }
    }

    /// When an idle connection reaches its timeout.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Instant> {
        let idle = self.groups.iter().flatten().flat_map(|pool| &pool.idle);
        idle.map(|idle| idle.until).min()
    }

    /// Removes a connection that has been idle for too long at `now`; the caller closes it.
    pub fn expire(&mut self, now: Instant) -> Option<u64> {
        self.groups.iter_mut().flatten().find_map(|pool| {
            let old = pool.idle.iter().position(|idle| idle.until <= now)?;
            pool.idle.remove(old).map(|idle| idle.link)
        })
    }

    /// Removes the connection whose timeout is next, because its descriptor is needed; the caller
    /// closes it.
    pub fn give_up(&mut self) -> Option<u64> {
        self.next_expiry().and_then(|until| self.expire(until))
    }

    /// Removes a connection that no group of the configuration can use; the caller closes it. Call
    /// it after a reload until it returns `None`.
    pub fn expire_unknown(&mut self, groups: &UpstreamGroups) -> Option<u64> {
        self.groups.iter_mut().flatten().find_map(|pool| {
            let unknown = pool.idle.iter().position(|idle| !groups.keeps(idle.peer))?;
            pool.idle.remove(unknown).map(|idle| idle.link)
        })
    }

    /// The number of idle connections.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.groups.iter().flatten().map(|pool| pool.idle.len()).sum()
    }

    /// Requests of this worker that wait.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.groups.iter().flatten().map(|pool| pool.queue.len()).sum()
    }

    /// The round-robin state of a peer.
    pub(crate) fn weight(&mut self, group: &Group, peer: &UpstreamPeer) -> &mut Weight {
        let weight = if peer.is_found() {
            self.pool(group).weights.entry(peer.number).or_default()
        } else {
            let index = peer.number as usize;
            if index >= self.weights.len() {
                self.weights.resize(index + 1, Weight::default());
            }
            &mut self.weights[index]
        };
        if weight.of != peer.weight {
            *weight = Weight { of: peer.weight, effective: i64::from(peer.weight), current: 0 };
        }
        weight
    }

    /// Forgets peers that a group no longer has; idle connections to them, which the caller closes.
    pub(crate) fn forget_peers(&mut self, group: &Group) -> Vec<u64> {
        let pool = self.pool(group);
        if pool.version >= group.version {
            return Vec::new();
        }
        pool.version = group.version;
        let has = |number: u32| number & FOUND == 0 || group.has_number(number);
        pool.weights.retain(|number, _| has(*number));
        let (kept, gone) = pool.idle.drain(..).partition(|idle| has(idle.peer));
        pool.idle = kept;
        let gone: VecDeque<Idle> = gone;
        gone.into_iter().map(|idle| idle.link).collect()
    }

    /// An idle connection to `peer` that `request` may use; the one used last.
    pub(crate) fn take_idle(
        &mut self,
        group: &Group,
        peer: &UpstreamPeer,
        request: &OriginRequest,
    ) -> Option<Idle> {
        let pool = self.groups.get_mut(group.number as usize)?.as_mut()?;
        let is_fit = |idle: &Idle| {
            idle.peer == peer.number && idle.secure == request.secure && idle.from == request.from
        };
        let found = pool.idle.iter().position(is_fit)?;
        pool.idle.remove(found)
    }

    /// Keeps a connection; returns the one unused for longest if that must make room.
    pub(crate) fn keep(&mut self, group: &Group, idle: Idle) -> Option<u64> {
        let most = group.keepalive.idle_max as usize;
        let pool = self.pool(group);
        pool.idle.push_front(idle);
        if pool.idle.len() > most { pool.idle.pop_back().map(|idle| idle.link) } else { None }
    }

    /// Whether a new request must queue behind others.
    pub(crate) fn is_queued(&self, group: &Group) -> bool {
        group.queue.is_some() && group.waiting.count() > 0
    }

    /// Queues a fetch for a place; returns how many waited before, over all workers.
    pub(crate) fn join(&mut self, group: &Group, fetch: u64, len: u32) -> Result<u32, QueueFull> {
        let worker = self.worker;
        let pool = self.pool(group);
        // The mark comes first: a worker that sees the count must find the mark.
        pool.waiting.mark(worker, true);
        if let Some(before) = pool.waiting.join(len) {
            pool.queue.push_back(fetch);
            return Ok(before);
        }
        if pool.queue.is_empty() {
            pool.waiting.mark(worker, false);
        }
        Err(QueueFull)
    }

    /// Whether a fetch of this worker is the first of its waiting ones.
    pub(crate) fn is_first(&self, group: &Group, fetch: u64) -> bool {
        let pool = self.groups.get(group.number as usize).and_then(Option::as_ref);
        pool.is_some_and(|pool| pool.queue.front() == Some(&fetch))
    }

    /// A fetch cannot use the free place: its turn passes to the next one.
    pub(crate) fn pass_turn(&mut self, group: &Group, fetch: u64) {
        let queue = &self.pool(group).queue;
        let behind = queue.iter().skip_while(|waiting| **waiting != fetch).nth(1).copied();
        self.called.extend(behind);
    }

    /// Ends the waiting of a fetch.
    pub(crate) fn leave(&mut self, group: &Group, fetch: u64) {
        let worker = self.worker;
        let pool = self.pool(group);
        let Some(place) = pool.queue.iter().position(|waiting| *waiting == fetch) else { return };
        pool.queue.remove(place);
        if pool.queue.is_empty() {
            pool.waiting.mark(worker, false);
        }
        pool.waiting.leave();
    }

    /// A place of the group may have become free: offers it to a waiting fetch.
    pub(crate) fn release(&mut self, group: &Group) {
        if group.queue.is_some() && group.waiting.count() > 0 {
            let _pool = self.pool(group);
            self.offer(group.number, &group.waiting);
        }
    }

    fn offer(&mut self, number: u32, waiting: &PeerWait) {
        match waiting.next_worker() {
            Some(worker) if worker == self.worker => self.give_turn(number),
            Some(worker) => self.notices.push(Notice { worker, group: number }),
            None => {}
        }
    }

    fn give_turn(&mut self, number: u32) {
        let Some(Some(pool)) = self.groups.get_mut(number as usize) else { return };
        pool.turns += 1;
        if !self.due.contains(&number) {
            self.due.push(number);
        }
    }

    fn pool(&mut self, group: &Group) -> &mut GroupPool {
        debug_assert!(group.is_pooled(), "a group outside the configuration keeps nothing");
        let index = group.number as usize;
        if index >= self.groups.len() {
            self.groups.resize_with(index + 1, || None);
        }
        self.groups[index].get_or_insert_with(|| GroupPool {
            idle: VecDeque::new(),
            queue: VecDeque::new(),
            turns: 0,
            waiting: Arc::clone(&group.waiting),
            version: 0,
            weights: HashMap::new(),
        })
    }
}

impl Idle {
    /// A connection that ends a request at `now` and was made at `born`; `None` if it is used up.
    pub(crate) fn of(
        link: u64,
        peer: &UpstreamPeer,
        request: &OriginRequest,
        served: u64,
        born: Instant,
    ) -> Self {
        let (secure, from) = (request.secure.clone(), request.from.clone());
        Self { link, peer: peer.number, secure, from, served, born, until: born }
    }

    /// The same, idle from `now` on; `None` if it is used up.
    pub(crate) fn keepable(self, rules: &Keepalive, now: Instant) -> Option<Self> {
        let fresh = self.served < rules.requests && now.since(self.born) < rules.time;
        (rules.idle_max > 0 && fresh).then(|| Self { until: now.after(rules.timeout), ..self })
    }
}

#[cfg(test)]
mod tests;
