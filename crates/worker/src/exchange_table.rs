//! The exchanges of one worker: who each belongs to, how its body comes in, and what is to be done
//! for pages and their parts.
//!
//! Owns them and the tree of parents and children. Steps none: that takes all parts of a worker.

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

/// Exchanges kept for reuse, so that a warm worker allocates none.
const SPARE_MAX: usize = 1024;

/// Which connection an exchange answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// HTTP/1 or HTTP/2.
    Tcp(SlabKey<TcpConn>),
    /// HTTP/3.
    Quic(SlabKey<QuicConn>),
    /// None: it is part of this one's answer.
    Parent(SlabKey<ActiveExchange>),
    /// None any more: its answer is over.
    PostAction(SlabKey<PostAction>),
}

/// An exchange in flight, and where its answer goes.
#[derive(Debug)]
pub(crate) struct ActiveExchange {
    pub(crate) exchange: Box<Exchange>,
    pub(crate) owner: Owner,
    pub(crate) stream: StreamId,
    /// What its client speaks, for those that are counted.
    pub(crate) spoken: ConnProtocol,
    /// The pace of its answer, if that is limited.
    pub(crate) pace: Option<AnswerPace>,
    /// The request to an origin that is under way for it.
    pub(crate) fetch: Option<SlabKey<LiveFetch>>,
    /// What listens for the store to the fetch that is about to begin.
    pub(crate) fill: Option<Box<bolide_engine::Fill>>,
    /// Where the answer to the fetch that is about to begin is stored.
    pub(crate) store: Option<Box<bolide_engine::StoreOrder>>,
    /// The origin is not read because the answer has no room.
    pub(crate) paused: bool,
    /// When bytes of the answer left last, while the origin is not read.
    pub(crate) moved: Instant,
    /// Whether a look is due at how long that was ago.
    pub(crate) watched: bool,
    pub(crate) upload: UploadState,
    /// The question to other nodes that it waits for.
    pub(crate) asked: Option<NodesQuestion>,
    /// The fragments that it waits for.
    pub(crate) children: Vec<SlabKey<Self>>,
}

/// A question to other nodes of an exchange that waits. It is taken back when the exchange ends, so
/// that others do not wait for what is not fetched.
#[derive(Debug)]
pub(crate) struct NodesQuestion(pub(crate) SharedAsk);

impl Drop for NodesQuestion {
    fn drop(&mut self) {
        drop(self.0.take_back());
    }
}

impl ActiveExchange {
    /// One that begins at `now`, without a request body.
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

/// How the request body of an exchange comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UploadState {
    /// Nothing more comes, or it is discarded.
    Over,
    /// More is wanted of the client.
    Coming {
        /// When bytes came last.
        since: Instant,
        /// Bytes that we have not given the room back of; as long as there are any, the client
        /// may be waiting for us.
        owed: usize,
    },
}

/// What is remembered of a connection for an exchange that it is rid of.
#[derive(Debug)]
pub(crate) struct PostAction {
    pub(crate) subject: Subject,
    /// Requests on the connection when its answer was over.
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
    /// Exchanges whose bodies took as much as a turn may, and go on in the next one.
    pub(crate) resting: Vec<SlabKey<ActiveExchange>>,
    /// What is to be logged of files that became too short while they were sent.
    pub(crate) truncated: Vec<(SlabKey<ActiveExchange>, String)>,
    /// Connections whose clients may have left before an upstream server was asked.
    pub(crate) left: Vec<SlabKey<TcpConn>>,
    /// What is to be done for pages and their parts.
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

    /// An exchange that has not begun, from the pool if that has one.
    pub(crate) fn take_spare(&mut self) -> Box<Exchange> {
        self.spare.pop().unwrap_or_else(|| Box::new(Exchange::new()))
    }

    /// Takes an exchange back that is over.
    pub(crate) fn put_spare(&mut self, exchange: Box<Exchange>) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(exchange);
        }
    }

    /// Bytes of a request body came.
    pub(crate) fn note_body(&mut self, user: StreamOwner, len: usize, now: Instant) {
        let live = self.live.get_mut(SlabKey::from_bits(user));
        if let Some(UploadState::Coming { since, owed }) = live.map(|live| &mut live.upload) {
            *since = now;
            *owed += len;
        }
    }

    /// A request body is read from now on.
    pub(crate) fn note_wanted(&mut self, key: SlabKey<ActiveExchange>, now: Instant) {
        let live = self.live.get_mut(key);
        if let Some(UploadState::Coming { since, .. }) = live.map(|live| &mut live.upload) {
            *since = now;
        }
    }

    /// Room for more of a request body was given back.
    pub(crate) fn note_consumed(&mut self, key: SlabKey<ActiveExchange>, len: usize, now: Instant) {
        let live = self.live.get_mut(key);
        if let Some(UploadState::Coming { since, owed }) = live.map(|live| &mut live.upload) {
            *since = now;
            debug_assert!(*owed >= len, "no more room is given back than was taken");
            *owed = owed.saturating_sub(len);
        }
    }

    /// Nothing more comes of a request body, or it is discarded.
    pub(crate) fn end_upload(&mut self, user: StreamOwner) {
        if let Some(live) = self.live.get_mut(SlabKey::from_bits(user)) {
            live.upload = UploadState::Over;
        }
    }

    /// The client of an exchange has its answer, or has left: its fetch is over for it.
    pub(crate) fn note_fetch_over(
        &mut self,
        key: SlabKey<ActiveExchange>,
        fetch: SlabKey<LiveFetch>,
    ) {
        if let Some(waiting) = self.live.get_mut(key)
            && waiting.fetch == Some(fetch)
        {
            (waiting.fetch, waiting.paused) = (None, false);
        }
    }

    /// Whether something is to be done for exchanges before the turn goes on.
    #[inline]
    pub(crate) fn is_unsettled(&self) -> bool {
        !self.left.is_empty() || !self.family.is_idle()
    }

    /// Whether the next turn has something to do for exchanges though nothing is reported.
    pub(crate) fn is_busy(&self) -> bool {
        !self.roomy.is_empty() || !self.family.is_idle()
    }

    /// Whether an exchange goes on though its client has left.
    pub(crate) fn outlives(&self, key: SlabKey<ActiveExchange>) -> bool {
        let live = self.live.get(key);
        live.is_some_and(|live| matches!(live.owner, Owner::PostAction(_)))
    }

    /// Whose connection an answer leaves by in the end.
    pub(crate) fn root_owner(&self, mut owner: Owner) -> Option<Owner> {
        while let Owner::Parent(page) = owner {
            owner = self.live.get(page)?.owner;
        }
        Some(owner)
    }

    /// The page that has no page, and whether the client gets bytes of `key` now.
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

    /// Whether an exchange, or one that it waits for, can do nothing now whatever its client does.
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

    /// Whether an exchange that is part of another one, or a part of it, needs an origin or waits.
    pub(crate) fn asks_others(&self, key: SlabKey<ActiveExchange>, news: &News) -> bool {
        self.has_to_wait(key, news)
            || self.live.get(key).is_some_and(|live| {
                live.fetch.is_some()
                    || live.children.iter().any(|child| self.asks_others(*child, news))
            })
    }

    /// Begins to watch whether the client takes what its origin waits for it to take: when to look.
    /// None if it is watched. The connection as a whole is no measure: its other streams may be
    /// alive.
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
    /// One whose answer goes to another one.
    pub(crate) const fn part_of(
        page: SlabKey<Self>,
        exchange: Box<Exchange>,
        now: Instant,
    ) -> Self {
        Self::new(exchange, Owner::Parent(page), StreamId(0), now)
    }

    /// How long its client may take nothing.
    pub(crate) fn send_timeout(&self) -> Duration {
        let timeout = self.exchange.settings().map(|settings| settings.send_timeout);
        timeout.unwrap_or_default().max(Duration::from_millis(1))
    }

    /// How long its request body may stand still.
    pub(crate) fn body_timeout(&self) -> Duration {
        let timeout = self.exchange.settings().map(|settings| settings.client_body_timeout);
        timeout.unwrap_or_default().max(Duration::from_millis(1))
    }
}
