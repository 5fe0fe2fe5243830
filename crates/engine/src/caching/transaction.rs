//! What one exchange knows of the caches, and what it does about its key.
//!
//! Easiest to break: a permit that leads to no fetch is given up at once.

use std::sync::Arc;

use bolide_base::Instant;
use bolide_cache::rules::{CacheGate, Environment, StoreRefusal};
use bolide_cache::{FillPermit, Follower, KeyBuilder, Lookup, NamespaceId, Object};

use crate::explain::why::Why;
use crate::route::LocationIndex;
/// `$upstream_cache_status`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UpstreamCacheStatus {
    /// No cache has a part in it.
    #[default]
    No,
    /// The origin was asked.
    Miss,
    /// The cache was not asked.
    Bypass,
    /// What there was is too old; the origin was asked.
    Expired,
    /// Old, because the origin failed or is asked in the background.
    Stale,
    /// Old, because another exchange asks the upstream server.
    Updating,
    /// The origin said that it is still good.
    Revalidated,
    /// Fresh.
    Hit,
}

impl UpstreamCacheStatus {
    /// Whether the answer is one that was kept.
    pub(crate) const fn is_kept(self) -> bool {
        matches!(self, Self::Hit | Self::Stale | Self::Updating | Self::Revalidated)
    }

    /// nginx's word for it; none if no cache has a part.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::No => "",
            Self::Miss => "MISS",
            Self::Bypass => "BYPASS",
            Self::Expired => "EXPIRED",
            Self::Stale => "STALE",
            Self::Updating => "UPDATING",
            Self::Revalidated => "REVALIDATED",
            Self::Hit => "HIT",
        }
    }
}

/// Why a store had the part in an answer that it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheReason {
    /// Why it was asked, or was not.
    Why(Why),
    /// Why what the origin answered is not kept.
    Refusal(StoreRefusal),
    /// It waited for the answer to another request.
    Collapsed,
}

impl CacheReason {
    /// As `$page_cache_reason` has it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Why(why) => why.word(),
            Self::Refusal(refusal) => refusal.reason(),
            Self::Collapsed => "collapsed",
        }
    }
}

/// What becomes of an answer that an origin gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StoreIntent {
    /// It passes by.
    #[default]
    No,
    /// It passes by for want of a lifetime, or because the configuration says so.
    Unkept,
    /// It is kept.
    Yes,
}

/// What is noted of a way beside where it leads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CacheStatusFacts {
    /// The URL has several answers, and the one for this request was looked for.
    pub(crate) is_varied: bool,
    /// It waited for another one's answer.
    pub(crate) is_collapsed: bool,
    /// Only what is cached was wanted, and nothing is.
    pub(crate) is_refused: bool,
    /// The status that the origin answered; 0 if it did not.
    pub(crate) status: u16,
    /// Seconds that what is kept of the answer is fresh.
    pub(crate) ttl: Option<u32>,
    /// What stands in for an answer of an origin, and why.
    pub(crate) stand_in: Option<&'static [u8]>,
}

/// What an exchange does about its key between two steps. A hit is answered at once, so it is no
/// state.
#[derive(Debug, Default)]
pub(super) enum CacheState {
    /// The cache was not asked, or has no part in the answer.
    #[default]
    Passed,
    /// Another exchange asks the upstream server; this one waits (request coalescing).
    Waiting(Follower),
    /// This exchange asks the upstream server, and the answer is stored if it may be.
    Filling {
        /// The right to fill a key. Dropped without a fetch, it goes to another exchange.
        permit: FillPermit,
        /// Whether the key is one of this request alone, from where the fill moves.
        past: bool,
    },
}

/// What an exchange knows of the store. Buffers are kept between requests.
#[derive(Debug, Default)]
pub(crate) struct CacheTransaction {
    pub(super) keys: KeyBuilder,
    /// For copies that do not vary.
    pub(super) unvaried: KeyBuilder,
    pub(super) text: Vec<u8>,
    /// How the request arrived at the location whose turn it was.
    pub(super) arrival: Vec<u8>,
    pub(crate) session: Vec<u8>,
    pub(crate) head: bolide_http::OriginHead,
    /// The location whose turn it was.
    pub(super) looked: Option<LocationIndex>,
    pub(super) space: Option<NamespaceId>,
    pub(super) gate: Option<CacheGate>,
    pub(crate) environment: Environment,
    /// What the exchange does about the key.
    pub(super) state: CacheState,
    /// An old object that may stand in for an error, or be confirmed.
    pub(super) stale: Option<Arc<Object>>,
    pub(super) revalidates: bool,
    /// Fills that came to nothing while it waited.
    pub(super) rounds: u8,
    /// How long it waits in line.
    pub(super) until: Option<Instant>,
    /// Looks at the disk.
    pub(super) recalls: u8,
    /// Questions to other nodes.
    pub(super) shares: u8,
    /// Whether one of them is open.
    pub(super) is_asking_nodes: bool,
    /// The disk has nothing of the session either.
    pub(super) is_private_absent: bool,
    /// What becomes of the answer that comes.
    pub(super) keeping: StoreIntent,
    /// Whether the origin was asked without the client's conditions and ranges.
    pub(crate) is_whole: bool,
    /// Why the store has the part that it has.
    pub(crate) why: Why,
    /// What else there is to tell of it.
    pub(crate) way: CacheStatusFacts,
    /// Why the answer that came is not kept.
    pub(crate) refusal: Option<StoreRefusal>,
    /// Hash of the key that was looked up last.
    pub(crate) hash: u128,
}

impl CacheTransaction {
    /// Forgets the request; a permit that is left is dropped.
    pub(crate) fn clear(&mut self) {
        if self.looked.is_none() {
            debug_assert!(
                matches!(self.state, CacheState::Passed) && self.stale.is_none(),
                "what was not looked up holds no permit"
            );
            return;
        }
        self.looked = None;
        self.space = None;
        self.forget();
        self.environment = Environment::default();
        (self.rounds, self.recalls, self.shares) = (0, 0, 0);
        (self.is_private_absent, self.is_asking_nodes) = (false, false);
    }

    /// Gives up an unused right to ask.
    pub(crate) fn let_go(&mut self) {
        if matches!(self.state, CacheState::Filling { .. }) {
            self.state = CacheState::Passed;
        }
    }

    pub(super) fn forget(&mut self) {
        self.state = CacheState::Passed;
        (self.stale, self.revalidates) = (None, false);
        self.until = None;
        self.gate = None;
        self.keeping = StoreIntent::No;
        self.is_whole = false;
        self.why = Why::Asked;
        self.way = CacheStatusFacts::default();
        self.refusal = None;
        self.hash = 0;
    }

    /// The location whose turn it was, and its part of the store.
    pub(crate) const fn asked(&self) -> (Option<LocationIndex>, Option<NamespaceId>) {
        (self.looked, self.space)
    }

    /// Why the store did what it did for this request, if it might have done anything.
    pub(crate) fn reason(&self) -> Option<CacheReason> {
        self.looked?;
        Some(match (self.why, self.refusal) {
            (Why::Asked, Some(refusal)) if !self.is_kept() => CacheReason::Refusal(refusal),
            (Why::Asked, _) if self.way.is_collapsed => CacheReason::Collapsed,
            (why, _) => CacheReason::Why(why),
        })
    }

    /// The URL part of its key; empty if none was made.
    pub(crate) fn url(&self) -> &[u8] {
        if self.gate.is_some() { self.keys.public().url() } else { &[] }
    }

    /// What the request is known by, and its session.
    pub(crate) fn names(&self) -> (&KeyBuilder, &[u8]) {
        (&self.keys, &self.session)
    }
}

/// What came of a look at the disk, or of a question to other nodes.
#[derive(Debug)]
pub enum Recalled {
    /// It is in memory now, or something is: look up again.
    Kept,
    /// Found there, or missed there as well.
    Found(Lookup),
    /// Other nodes have nothing for this permit.
    Alone(FillPermit),
}
