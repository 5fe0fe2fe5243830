//! The exchanges of one worker: their owners, the state of their request bodies, and pending work
//! for pages and their parts.
//!
//! Owns the exchanges and the tree of parents and children. It steps none, because that needs all
//! parts of a worker.

use std::time::Duration;

use bolide_base::{Instant, Slab, SlabKey};
use bolide_cache::SharedAsk;
use bolide_engine::{ConnProtocol, Exchange, StepEffect};
use bolide_wire::{StreamId, StreamOwner};

use crate::fetches::LiveFetch;
use crate::news::News;
use crate::quic_conn::QuicConn;
use crate::subject::Subject;
use crate::subrequest_tree::SubrequestTree;
use crate::tcp::TcpConn;
use crate::throttle::AnswerPace;

/// Pooled exchanges, so that a warm worker allocates none.
const SPARE_MAX: usize = 1024;

/// The owner of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A connection with HTTP/1 or HTTP/2.
    Tcp(SlabKey<TcpConn>),
    /// A connection with HTTP/3.
    Quic(SlabKey<QuicConn>),
    /// Another exchange: this is its subrequest.
    Parent(SlabKey<ActiveExchange>),
    /// None any more: its response is complete.
    PostAction(SlabKey<PostAction>),
}

/// An exchange in progress, and its owner.
#[derive(Debug)]
pub(crate) struct ActiveExchange {
    pub(crate) exchange: Box<Exchange>,
    pub(crate) owner: Owner,
    pub(crate) stream: StreamId,
    /// The protocol of its client, for the counters.
    pub(crate) spoken: ConnProtocol,
    /// The rate limit of its response, if there is one.
    pub(crate) pace: Option<AnswerPace>,
    /// Its running fetch.
    pub(crate) fetch: Option<SlabKey<LiveFetch>>,
    /// The fill for the next fetch.
    pub(crate) fill: Option<Box<bolide_engine::Fill>>,
    /// The file for the response to the next fetch.
    pub(crate) store: Option<Box<bolide_engine::StoreOrder>>,
    /// Whether the upstream is not read because the response has no room.
    pub(crate) paused: bool,
    /// When bytes of the response were sent last, while the upstream is not read.
    pub(crate) moved: Instant,
    /// Whether a check of `moved` is scheduled.
    pub(crate) watched: bool,
    pub(crate) upload: UploadState,
    /// The lookup at other nodes that it waits for.
    pub(crate) asked: Option<NodesQuestion>,
    /// Its subrequests.
    pub(crate) children: Vec<SlabKey<Self>>,
}

/// A pending lookup at other nodes. It is cancelled when the exchange ends, so that others do not
/// wait for a fetch that does not come.
#[derive(Debug)]
pub(crate) struct NodesQuestion(pub(crate) SharedAsk);

impl Drop for NodesQuestion {
    fn drop(&mut self) {
        drop(self.0.take_back());
    }
}

impl ActiveExchange {
    /// An exchange that begins at `now`, without a request body.
    pub(crate) const fn new(
        exchange: Box<Exchange>,
        owner: Owner,
        stream: StreamId,
        now: Instant,
    ) -> Self {
        Self {
            exchange,
            owner,
            stream,
            spoken: ConnProtocol::Unknown,
            pace: None,
            fetch: None,
            fill: None,
            store: None,
            paused: false,
            moved: now,
            watched: false,
            upload: UploadState::Over,
            asked: None,
            children: Vec::new(),
        }
    }
}

/// The state of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UploadState {
    /// It is complete or discarded.
    Over,
    /// More bytes are expected from the client.
    Coming {
        /// When the last bytes arrived.
        since: Instant,
        /// Bytes that are not credited to the client's window yet; while there are any, the client
        /// may be waiting for us.
        owed: usize,
    },
}

/// What remains of a connection for an exchange that was detached from it.
#[derive(Debug)]
pub(crate) struct PostAction {
    pub(crate) subject: Subject,
    /// Requests on the connection when the response was complete.
    pub(crate) requests: u64,
    /// The connection, which may be gone.
    pub(crate) conn: Owner,
}

/// The exchanges of one worker.
#[derive(Debug)]
pub(crate) struct Exchanges {
    pub(crate) live: Slab<ActiveExchange>,
    #[expect(clippy::vec_box, reason = "an exchange moves by pointer between slab and spares")]
    spare: Vec<Box<Exchange>>,
    pub(crate) effects: Vec<StepEffect>,
    /// Exchanges whose bodies made room while they were pulled.
    pub(crate) roomy: Vec<SlabKey<ActiveExchange>>,
    /// Exchanges whose bodies reached the limit of the turn and continue in the next one.
    pub(crate) resting: Vec<SlabKey<ActiveExchange>>,
    /// Log messages about files that became shorter while they were sent.
    pub(crate) truncated: Vec<(SlabKey<ActiveExchange>, String)>,
    /// Connections whose clients may have disconnected before the upstream request began.
    pub(crate) left: Vec<SlabKey<TcpConn>>,
    /// Pending work for pages and their parts.
    pub(crate) family: SubrequestTree,
}

impl Exchanges {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self {
            live: Slab::with_capacity(bolide_base::limits::EXCHANGES_MAX),
            spare: Vec::new(),
            effects: Vec::new(),
            roomy: Vec::new(),
            resting: Vec::new(),
            truncated: Vec::new(),
            left: Vec::new(),
            family: SubrequestTree::default(),
        }
    }

    /// An idle exchange, from the pool if possible.
    pub(crate) fn take_spare(&mut self) -> Box<Exchange> {
        self.spare.pop().unwrap_or_else(|| Box::new(Exchange::new()))
    }

    /// Returns an ended exchange to the pool.
    pub(crate) fn put_spare(&mut self, exchange: Box<Exchange>) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(exchange);
        }
    }

    /// Records received bytes of a request body.
    pub(crate) fn count_body_received(&mut self, user: StreamOwner, len: usize, now: Instant) {
        let live = self.live.get_mut(SlabKey::from_bits(user));
        if let Some(UploadState::Coming { since, owed }) = live.map(|live| &mut live.upload) {
            *since = now;
            *owed += len;
        }
    }

    /// Records that a request body is read from now on.
    pub(crate) fn begin_body_wait(&mut self, key: SlabKey<ActiveExchange>, now: Instant) {
        let live = self.live.get_mut(key);
        if let Some(UploadState::Coming { since, .. }) = live.map(|live| &mut live.upload) {
            *since = now;
        }
    }

    /// Changes an exchange, if it is still there.
    pub(crate) fn update(
        &mut self,
        key: SlabKey<ActiveExchange>,
        change: impl FnOnce(&mut ActiveExchange),
    ) {
        if let Some(live) = self.live.get_mut(key) {
            change(live);
        }
    }

    /// The fetch of an exchange.
    pub(crate) fn fetch_of(&self, key: SlabKey<ActiveExchange>) -> Option<SlabKey<LiveFetch>> {
        self.live.get(key)?.fetch
    }

    /// Records that bytes of a request body were credited to the client's window.
    pub(crate) fn count_body_consumed(
        &mut self,
        key: SlabKey<ActiveExchange>,
        len: usize,
        now: Instant,
    ) {
        let live = self.live.get_mut(key);
        if let Some(UploadState::Coming { since, owed }) = live.map(|live| &mut live.upload) {
            *since = now;
            debug_assert!(*owed >= len, "no more room is given back than was taken");
            *owed = owed.saturating_sub(len);
        }
    }

    /// The request body is complete or discarded.
    pub(crate) fn end_upload(&mut self, user: StreamOwner) {
        if let Some(live) = self.live.get_mut(SlabKey::from_bits(user)) {
            live.upload = UploadState::Over;
        }
    }

    /// The client has its response, or is gone: the fetch is over for the exchange.
    pub(crate) fn detach_fetch(&mut self, key: SlabKey<ActiveExchange>, fetch: SlabKey<LiveFetch>) {
        if let Some(waiting) = self.live.get_mut(key)
            && waiting.fetch == Some(fetch)
        {
            (waiting.fetch, waiting.paused) = (None, false);
        }
    }

    /// Whether there is work for exchanges before the turn goes on.
    #[inline]
    pub(crate) fn is_unsettled(&self) -> bool {
        !self.left.is_empty() || !self.family.is_idle()
    }

    /// Whether the next turn has work for exchanges without a report.
    pub(crate) fn is_busy(&self) -> bool {
        !self.roomy.is_empty() || !self.family.is_idle()
    }

    /// Whether an exchange continues after its client has disconnected.
    pub(crate) fn outlives(&self, key: SlabKey<ActiveExchange>) -> bool {
        let live = self.live.get(key);
        live.is_some_and(|live| matches!(live.owner, Owner::PostAction(_)))
    }

    /// The connection of an exchange's outermost parent.
    pub(crate) fn root_owner(&self, mut owner: Owner) -> Option<Owner> {
        while let Owner::Parent(page) = owner {
            owner = self.live.get(page)?.owner;
        }
        Some(owner)
    }

    /// The outermost parent, and whether the client gets bytes of `key` now.
    pub(crate) fn root(
        &self,
        mut key: SlabKey<ActiveExchange>,
    ) -> Option<(SlabKey<ActiveExchange>, bool)> {
        let mut is_pulled = true;
        while let Owner::Parent(page) = self.live.get(key)?.owner {
            debug_assert!(page != key, "an exchange is no part of itself");
            let parent = self.live.get(page)?;
            is_pulled &= parent.exchange.is_at_fragment(key.to_bits());
            key = page;
        }
        Some((key, is_pulled))
    }

    /// Whether an exchange, or one of its subrequests, waits for something else than its client.
    pub(crate) fn has_to_wait(&self, key: SlabKey<ActiveExchange>, news: &News) -> bool {
        self.live.get(key).is_some_and(|live| {
            live.fetch.is_some() && !live.paused
                || live.exchange.is_coalescing()
                || live.exchange.is_held_back()
                || live.upload != UploadState::Over
                || live.children.iter().any(|child| self.has_to_wait(*child, news))
                || news.has_for(key)
        })
    }

    /// Whether a part or its subrequests have a fetch or wait.
    pub(crate) fn asks_others(&self, key: SlabKey<ActiveExchange>, news: &News) -> bool {
        self.has_to_wait(key, news)
            || self.live.get(key).is_some_and(|live| {
                live.fetch.is_some()
                    || live.children.iter().any(|child| self.asks_others(*child, news))
            })
    }

    /// Begins to check whether the client takes a response whose upstream waits for that; returns
    /// when. None if a check is scheduled. The connection as a whole is no measure: its other
    /// streams may progress.
    pub(crate) fn watch_stall(
        &mut self,
        key: SlabKey<ActiveExchange>,
        now: Instant,
    ) -> Option<Instant> {
        let live = self.live.get_mut(key)?;
        live.moved = now;
        let was_watched = std::mem::replace(&mut live.watched, true);
        (!was_watched).then(|| now.after(live.send_timeout()))
    }
}

impl ActiveExchange {
    /// A subrequest.
    pub(crate) const fn part_of(
        page: SlabKey<Self>,
        exchange: Box<Exchange>,
        now: Instant,
    ) -> Self {
        Self::new(exchange, Owner::Parent(page), StreamId(0), now)
    }

    /// How long its client may take nothing (`send_timeout`).
    pub(crate) fn send_timeout(&self) -> Duration {
        let timeout = self.exchange.settings().map(|settings| settings.send_timeout);
        timeout.unwrap_or_default().max(Duration::from_millis(1))
    }

    /// How long its request body may stall (`client_body_timeout`).
    pub(crate) fn body_timeout(&self) -> Duration {
        let timeout = self.exchange.settings().map(|settings| settings.client_body_timeout);
        timeout.unwrap_or_default().max(Duration::from_millis(1))
    }
}
