//! What a worker owns for origins: requests to them, connections to them, and who is told what.
//!
//! News for an exchange never reach it from within a step of its own: they stand in a queue that is
//! emptied between two reports.

use std::collections::VecDeque;

use bolide_base::deadline_queue::Armed;
use bolide_base::limits::{EXCHANGES_MAX, LINKS_MAX};
use bolide_base::{Bound, CopyPolicy, SendChain, Slab, SlabKey};
use bolide_engine::{SpoolPlace, Wake};
use bolide_io::Io;
use bolide_upstream::{FetchEffect, LinkPools, Turns};
use bolide_wire::OriginEvent;

use crate::exchanges::ActiveExchange;
use crate::fetches::LiveFetch;
use crate::links::UpstreamLink;
use crate::tcp::TcpConn;
use crate::tls_conn::Secrets;
use crate::worker::Worker;

/// Requests to origins and connections to them.
#[derive(Debug)]
pub(crate) struct Origins {
    pub(crate) fetches: Slab<LiveFetch>,
    pub(crate) links: Slab<UpstreamLink>,
    pub(crate) pools: LinkPools,
    /// What TLS to origins is like.
    pub(crate) secrets: Secrets,
    /// A fetch was stepped since turns were taken.
    pub(crate) stepped: bool,
    /// The deadline of each slot of fetches.
    pub(crate) armed_slots: Vec<Armed>,
    /// When idle links are looked at.
    pub(crate) armed: Armed,
    /// What exchanges are to be woken with, in order.
    pub(crate) news: VecDeque<(SlabKey<ActiveExchange>, Wake)>,
    /// Links that may write this turn.
    pub(crate) dirty: Vec<SlabKey<UpstreamLink>>,
    /// Links that are read again though nothing is reported.
    pub(crate) again: Vec<SlabKey<UpstreamLink>>,
    /// Exchanges whose bodies made room while they were pulled.
    pub(crate) roomy: Vec<SlabKey<ActiveExchange>>,
    /// Exchanges whose bodies go to a file, and where that is made.
    pub(crate) spooling: Vec<(SlabKey<ActiveExchange>, SpoolPlace)>,
    /// The number in the name of the last file of a body.
    pub(crate) body_files: u32,
    /// Connections whose clients may have left before an origin was asked.
    pub(crate) left: Vec<SlabKey<TcpConn>>,
    /// Buffers for the length of one call.
    pub(crate) chain: SendChain,
    pub(crate) plain: Vec<u8>,
    pub(crate) effects: Vec<FetchEffect>,
    pub(crate) events: Vec<OriginEvent>,
    pub(crate) turns: Turns,
    /// News that did not fit into a mailbox: worker and exchange.
    pub(crate) unsent: Vec<bolide_cache::Waiter>,
    /// Fetches whose exchange has gone.
    pub(crate) unheard: Vec<SlabKey<LiveFetch>>,
    /// Fetches whose answers are for the store alone.
    pub(crate) unwaited: crate::abandoned_fills::AbandonedFills,
    /// What is to be done for pages and their fragments.
    pub(crate) family: crate::subrequests::SubrequestTree,
    /// Turns since the store was swept.
    pub(crate) unswept: u32,
}

impl Origins {
    /// Nothing yet, for the worker of this number.
    pub(crate) fn new(worker: u16) -> Self {
        Self {
            fetches: Slab::with_capacity(EXCHANGES_MAX),
            links: Slab::with_capacity(LINKS_MAX),
            pools: LinkPools::new(usize::from(worker)),
            secrets: Secrets::default(),
            stepped: false,
            armed_slots: Vec::new(),
            armed: Armed::default(),
            news: VecDeque::new(),
            dirty: Vec::new(),
            again: Vec::new(),
            roomy: Vec::new(),
            spooling: Vec::new(),
            body_files: 0,
            left: Vec::new(),
            chain: SendChain::new(CopyPolicy::Contiguous),
            plain: Vec::new(),
            effects: Vec::new(),
            events: Vec::new(),
            turns: Turns::default(),
            unsent: Vec::new(),
            unheard: Vec::new(),
            unwaited: crate::abandoned_fills::AbandonedFills::default(),
            family: crate::subrequests::SubrequestTree::default(),
            unswept: 0,
        }
    }

    /// Whether the next turn has something to do though nothing is reported.
    pub(crate) fn is_busy(&self) -> bool {
        !(self.again.is_empty()
            && self.dirty.is_empty()
            && self.spooling.is_empty()
            && self.roomy.is_empty()
            && self.news.is_empty()
            && self.unheard.is_empty()
            && !self.unwaited.has_grown()
            && self.family.is_idle()
            && self.unsent.is_empty())
    }

    /// Whether news waits for an exchange before the turn goes on.
    #[inline]
    fn is_unsettled(&self) -> bool {
        !self.news.is_empty()
            || self.stepped
            || !self.left.is_empty()
            || !self.unheard.is_empty()
            || !self.family.is_idle()
    }

    /// A fetch with its connection.
    pub(crate) fn with_link(
        &mut self,
        fetch: SlabKey<LiveFetch>,
    ) -> Option<(&mut LiveFetch, SlabKey<UpstreamLink>, &mut UpstreamLink)> {
        let live = self.fetches.get_mut(fetch)?;
        let key = live.link?;
        Some((live, key, self.links.get_mut(key)?))
    }
}

impl<I: Io> Worker<I> {
    /// Wakes the exchanges that origins have news for, and the fetches whose turn it is.
    #[inline]
    pub(crate) fn settle_origins(&mut self) {
        let mut bound = Bound::new();
        while self.origins.is_unsettled() && bound.goes_on() {
            self.settle_some();
        }
    }

    fn settle_some(&mut self) {
        let mut bound = Bound::new();
        while bound.goes_on()
            && let Some((key, wake)) = self.origins.news.pop_front()
        {
            self.step(key, wake);
        }
        while let Some(key) = self.origins.left.pop() {
            self.leave_if_alone(key);
        }
        while let Some(fetch) = self.origins.unheard.pop() {
            self.abandon_fetch(fetch);
        }
        if !self.origins.family.is_idle() {
            self.settle_family();
        }
        if std::mem::take(&mut self.origins.stepped) {
            self.take_turns();
        }
    }

    /// What origins are owed in this turn: reads that were put off, files, writes.
    pub(crate) fn turn_origins(&mut self) {
        if self.origins.unwaited.is_due() {
            self.end_unwaited();
        }
        self.settle_origins();
        if !self.origins.is_busy() {
            return;
        }
        for key in std::mem::take(&mut self.origins.roomy) {
            self.resume_fetch(key);
        }
        for key in std::mem::take(&mut self.origins.again) {
            if let Some(link) = self.origins.links.get_mut(key) {
                link.queued = false;
            }
            if !self.in_handshake(key, Self::receive_handshake) {
                self.receive_link(key);
            }
        }
        self.settle_origins();
        self.continue_spooling();
        self.settle_origins();
        for key in std::mem::take(&mut self.origins.dirty) {
            self.transmit_link(key);
        }
        self.settle_origins();
    }

    /// Closes idle connections.
    pub(crate) fn drain_origins(&mut self) {
        for key in self.origins.links.keys().collect::<Vec<_>>() {
            if self.origins.links.get(key).is_some_and(|link| link.fetch.is_none()) {
                self.origins.pools.forget(key.to_bits());
                self.close_link(key);
            }
        }
    }
}
