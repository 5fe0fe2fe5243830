//! A worker's upstream state: fetches, connections, name lookups.
//!
//! Events for an exchange never reach it from within one of its own steps: they are queued, and the
//! queue is emptied between two reports.

use std::collections::VecDeque;

use bolide_base::deadline_queue::Armed;
use bolide_base::limits::EXCHANGES_MAX;
use bolide_base::{CopyPolicy, SendChain, Slab, SlabKey};
use bolide_upstream::{FetchEffect, FetchWake, Turns};
use bolide_wire::OriginEvent;

use crate::exchange_table::ActiveExchange;
use crate::fetches::LiveFetch;
use crate::lookups::Lookups;
use crate::name_sockets::NameSocket;
use crate::origin_links::OriginLinks;
use crate::server_lookups::ServerLookups;
use crate::stored_answers::LongPlacement;
use crate::tls_conn::UpstreamTlsSettings;
use crate::upstream_link::UpstreamLink;

/// Fetches and upstream connections.
#[derive(Debug)]
pub(crate) struct Origins {
    pub(crate) fetches: Slab<LiveFetch>,
    pub(crate) links: OriginLinks,
    /// Name lookups.
    pub(crate) lookups: Lookups,
    /// Lookups of servers with `resolve` that this worker does for all.
    pub(crate) servers: ServerLookups,
    /// Queued wakes of fetches whose name lookups have ended.
    pub(crate) named: VecDeque<(SlabKey<LiveFetch>, FetchWake)>,
    /// The TLS settings for upstreams.
    pub(crate) tls_settings: UpstreamTlsSettings,
    /// Whether a fetch was stepped since `take_turns`.
    pub(crate) stepped: bool,
    /// The deadline of each slot of fetches.
    pub(crate) armed_slots: Vec<Armed>,
    /// Sent bytes of request bodies, to be credited to the clients' windows.
    pub(crate) freed: Vec<(SlabKey<ActiveExchange>, usize)>,
    /// Buffers for one call.
    pub(crate) chain: SendChain,
    pub(crate) plain: Vec<u8>,
    pub(crate) effects: Vec<FetchEffect>,
    pub(crate) events: Vec<OriginEvent>,
    pub(crate) turns: Turns,
    /// Fetches whose exchange is gone.
    pub(crate) unheard: Vec<SlabKey<LiveFetch>>,
    /// The number in the name of the last response file.
    pub(crate) answer_files: u32,
    /// Files to be placed by the background thread.
    pub(crate) placing: Vec<LongPlacement>,
    /// Fetches whose responses are for the store alone.
    pub(crate) unwaited: AbandonedFills,
}

impl Origins {
    /// No state, for the worker with this number; `token` makes tokens of sockets to name servers.
    pub(crate) fn new(worker: u16, token: fn(NameSocket) -> u64) -> Self {
        Self {
            fetches: Slab::with_capacity(EXCHANGES_MAX),
            links: OriginLinks::new(worker),
            lookups: Lookups::new(token),
            servers: ServerLookups::default(),
            named: VecDeque::new(),
            tls_settings: UpstreamTlsSettings::default(),
            stepped: false,
            armed_slots: Vec::new(),
            freed: Vec::new(),
            chain: SendChain::new(CopyPolicy::Contiguous),
            plain: Vec::new(),
            effects: Vec::new(),
            events: Vec::new(),
            turns: Turns::default(),
            unheard: Vec::new(),
            answer_files: 0,
            placing: Vec::new(),
            unwaited: AbandonedFills::default(),
        }
    }

    /// Whether the next turn has work without a report.
    pub(crate) fn is_busy(&self) -> bool {
        !(self.links.again.is_empty()
            && self.links.dirty.is_empty()
            && self.named.is_empty()
            && self.unheard.is_empty()
            && !self.unwaited.has_grown())
    }

    /// Whether there is work before the turn goes on.
    #[inline]
    pub(crate) fn is_unsettled(&self) -> bool {
        debug_assert!(self.stepped || self.placing.is_empty(), "only a step places files");
        self.stepped || !self.unheard.is_empty() || !self.named.is_empty()
    }

    /// A fetch with its connection.
    pub(crate) fn with_link(
        &mut self,
        fetch: SlabKey<LiveFetch>,
    ) -> Option<(&mut LiveFetch, SlabKey<UpstreamLink>, &mut UpstreamLink)> {
        let live = self.fetches.get_mut(fetch)?;
        let key = live.link?;
        debug_assert!(
            self.links.table.get(key).is_none_or(|link| link.fetch == Some(fetch)),
            "a link and its fetch name each other"
        );
        Some((live, key, self.links.table.get_mut(key)?))
    }
}

/// The fills of this worker that none of its clients waits for.
#[derive(Debug, Default)]
pub(crate) struct AbandonedFills {
    /// In the order in which their clients disconnected; some have ended or have followers again.
    pub(crate) all: Vec<SlabKey<LiveFetch>>,
    /// Whether one was added since the last count.
    pub(crate) has_grown: bool,
    /// Whether they have to be counted.
    pub(crate) is_due: bool,
    /// How many were ended because there were too many.
    pub(crate) ended: usize,
}

impl AbandonedFills {
    /// Adds `fetch`, whose last client on this worker is gone.
    pub(crate) fn push(&mut self, fetch: SlabKey<LiveFetch>) {
        if !self.all.contains(&fetch) {
            self.all.push(fetch);
            (self.has_grown, self.is_due) = (true, true);
        }
    }

    /// Whether they have to be counted: one was added, or one that had a follower may have lost it.
    #[inline]
    pub(crate) const fn is_due(&self) -> bool {
        self.is_due
    }

    /// Whether one was added since the last count.
    pub(crate) const fn has_grown(&self) -> bool {
        self.has_grown
    }

    /// An upper bound of their number, without counting.
    pub(crate) const fn at_most(&self) -> usize {
        self.all.len()
    }

    /// How many were ended.
    pub(crate) const fn ended(&self) -> usize {
        self.ended
    }
}
