//! What a worker owns for origins: requests to them, connections to them, and who is told what.
//!
//! News for an exchange never reach it from within a step of its own: they stand in a queue that is
//! emptied between two reports.

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

/// Requests to origins and connections to them.
#[derive(Debug)]
pub(crate) struct Origins {
    pub(crate) fetches: Slab<LiveFetch>,
    pub(crate) links: OriginLinks,
    /// Names that are looked up.
    pub(crate) lookups: Lookups,
    /// Names of servers that this worker looks up for all.
    pub(crate) servers: ServerLookups,
    /// What fetches are to be woken with whose names were looked up.
    pub(crate) named: VecDeque<(SlabKey<LiveFetch>, FetchWake)>,
    /// What TLS to origins is like.
    pub(crate) tls_settings: UpstreamTlsSettings,
    /// A fetch was stepped since turns were taken.
    pub(crate) stepped: bool,
    /// The deadline of each slot of fetches.
    pub(crate) armed_slots: Vec<Armed>,
    /// Room of request bodies that left, to be given back to the streams of their clients.
    pub(crate) freed: Vec<(SlabKey<ActiveExchange>, usize)>,
    /// Buffers for the length of one call.
    pub(crate) chain: SendChain,
    pub(crate) plain: Vec<u8>,
    pub(crate) effects: Vec<FetchEffect>,
    pub(crate) events: Vec<OriginEvent>,
    pub(crate) turns: Turns,
    /// Fetches whose exchange has gone.
    pub(crate) unheard: Vec<SlabKey<LiveFetch>>,
    /// The number in the name of the last file of an answer.
    pub(crate) answer_files: u32,
    /// Files whose way to their place is long.
    pub(crate) placing: Vec<LongPlacement>,
    /// Fetches whose answers are for the store alone.
    pub(crate) unwaited: AbandonedFills,
}

impl Origins {
    /// Nothing yet, for the worker of this number; `token` is that of a socket to a name server.
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

    /// Whether the next turn has something to do though nothing is reported.
    pub(crate) fn is_busy(&self) -> bool {
        !(self.links.again.is_empty()
            && self.links.dirty.is_empty()
            && self.named.is_empty()
            && self.unheard.is_empty()
            && !self.unwaited.has_grown())
    }

    /// Whether something is to be done before the turn goes on.
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
    /// In the order in which they were left; some may be over, and some joined.
    pub(crate) all: Vec<SlabKey<LiveFetch>>,
    /// One was left since they were counted.
    pub(crate) has_grown: bool,
    /// They are to be counted.
    pub(crate) is_due: bool,
    /// How many were ended because there were too many.
    pub(crate) ended: usize,
}

impl AbandonedFills {
    /// The last client of `fetch` on this worker left.
    pub(crate) fn push(&mut self, fetch: SlabKey<LiveFetch>) {
        if !self.all.contains(&fetch) {
            self.all.push(fetch);
            (self.has_grown, self.is_due) = (true, true);
        }
    }

    /// Whether they are to be counted: one was left, or one that was joined may have lost its last
    /// reader.
    #[inline]
    pub(crate) const fn is_due(&self) -> bool {
        self.is_due
    }

    /// Whether one was left since they were counted.
    pub(crate) const fn has_grown(&self) -> bool {
        self.has_grown
    }

    /// An upper bound of their number, known without counting.
    pub(crate) const fn at_most(&self) -> usize {
        self.all.len()
    }

    /// How many were ended.
    pub(crate) const fn ended(&self) -> usize {
        self.ended
    }
}
