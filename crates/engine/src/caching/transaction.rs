//! The cache state of one exchange.
//!
//! Easiest to break: a permit that leads to no fetch is given up at once.

use std::sync::Arc;

use bolide_base::Instant;
use bolide_cache::rules::{CacheGate, Environment, StoreRefusal};
use bolide_cache::{FillPermit, Follower, KeyBuilder, Lookup, NamespaceId, Object};

use crate::caching::lookup::KeyUrl;
use crate::explain::why::Why;
use crate::route::LocationIndex;
/// `$upstream_cache_status`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UpstreamCacheStatus {
    /// The cache was not involved.
    #[default]
    No,
    /// Nothing was cached; the upstream was asked.
    Miss,
    /// The cache was bypassed.
    Bypass,
    /// The cached response was too old; the upstream was asked.
    Expired,
    /// Stale, because the upstream failed or is asked in the background.
    Stale,
    /// Stale, because another exchange is asking the upstream.
    Updating,
    /// The upstream confirmed the cached response.
    Revalidated,
    /// Fresh.
    Hit,
}

impl UpstreamCacheStatus {
    /// Whether the response is a cached one.
    pub(crate) const fn is_kept(self) -> bool {
        matches!(self, Self::Hit | Self::Stale | Self::Updating | Self::Revalidated)
    }

    /// nginx's word for it; empty if the cache was not involved.
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

/// The reason of a cache decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheReason {
    /// Why the cache was asked, or was not.
    Why(Why),
    /// Why the upstream response is not stored.
    Refusal(StoreRefusal),
    /// It waited for the response to another request.
    Collapsed,
}

impl CacheReason {
    /// The value of `$page_cache_reason`.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Why(why) => why.word(),
            Self::Refusal(refusal) => refusal.reason(),
            Self::Collapsed => "collapsed",
        }
    }
}

/// Whether an upstream response is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StoreIntent {
    /// It is not stored.
    #[default]
    No,
    /// It is not stored for lack of a lifetime, or because the configuration says so.
    Unkept,
    /// It is stored.
    Yes,
}

/// Facts for `Cache-Status` that do not follow from the decision.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CacheStatusFacts {
    /// The URL has variants, and the one for this request was looked up.
    pub(crate) is_varied: bool,
    /// It waited for the response to another request.
    pub(crate) is_collapsed: bool,
    /// `only-if-cached`, and nothing is cached.
    pub(crate) is_refused: bool,
    /// The status of the upstream response; 0 if there was none.
    pub(crate) status: u16,
    /// The freshness lifetime of the stored response in seconds.
    pub(crate) ttl: Option<u32>,
    /// Why a stale response replaces an upstream response.
    pub(crate) stand_in: Option<&'static [u8]>,
}

/// The state of an exchange's key between two steps. A hit is served at once, so it is no state.
#[derive(Debug, Default)]
pub(super) enum CacheState {
    /// The cache was not asked, or is not involved.
    #[default]
    Passed,
    /// Another exchange fetches; this one waits (request coalescing).
    Waiting(Follower),
    /// This exchange fetches, and the response is stored if that is permitted.
    Filling {
        /// The right to fill a key. Dropped without a fetch, it passes to another exchange.
        permit: FillPermit,
        /// Whether the key is unique to this request, so that the fill moves later.
        past: bool,
    },
}

/// The cache state of an exchange. Buffers are reused.
#[derive(Debug, Default)]
pub(crate) struct CacheTransaction {
    pub(super) keys: KeyBuilder,
    /// The key for pages with `no-vary`.
    pub(super) unvaried: KeyBuilder,
    /// The URL of `keys`.
    pub(super) url: KeyUrl,
    /// The query without marketing parameters, while it is cleaned.
    pub(super) query: Vec<u8>,
    /// How the request arrived at the location of the lookup.
    pub(super) arrival: Vec<u8>,
    pub(crate) session: Vec<u8>,
    pub(crate) head: bolide_http::OriginHead,
    /// The location of the lookup.
    pub(super) looked: Option<LocationIndex>,
    pub(super) space: Option<NamespaceId>,
    pub(super) gate: Option<CacheGate>,
    pub(crate) environment: Environment,
    /// The state of the key.
    pub(super) state: CacheState,
    /// A stale object that may replace an error, or be revalidated.
    pub(super) stale: Option<Arc<Object>>,
    pub(super) revalidates: bool,
    /// Abandoned fills that it has waited for.
    pub(super) rounds: u8,
    /// The deadline of the wait.
    pub(super) until: Option<Instant>,
    /// Disk lookups so far.
    pub(super) recalls: u8,
    /// Lookups at other nodes so far.
    pub(super) shares: u8,
    /// Whether one of them is pending.
    pub(super) is_asking_nodes: bool,
    /// The disk has no object of the session either.
    pub(super) is_private_absent: bool,
    /// Whether the upstream response is stored.
    pub(super) keeping: StoreIntent,
    /// Whether the upstream was asked without the client's preconditions and ranges.
    pub(crate) is_whole: bool,
    /// The reason of the decision.
    pub(crate) why: Why,
    /// Further facts for `Cache-Status`.
    pub(crate) way: CacheStatusFacts,
    /// Why the upstream response is not stored.
    pub(crate) refusal: Option<StoreRefusal>,
    /// The id of the response that is sent, for the includes of an ESI page.
    pub(crate) page: Vec<u8>,
    /// The hash of the last key that was looked up.
    pub(crate) hash: u128,
}

impl CacheTransaction {
    /// Clears the state of the request; a remaining permit is dropped.
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

    /// Gives up an unused permit.
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
        self.page.clear();
        self.hash = 0;
    }

    /// The location of the lookup, and its namespace.
    pub(crate) const fn asked(&self) -> (Option<LocationIndex>, Option<NamespaceId>) {
        (self.looked, self.space)
    }

    /// The reason of the decision, if the cache was involved.
    pub(crate) fn reason(&self) -> Option<CacheReason> {
        self.looked?;
        Some(match (self.why, self.refusal) {
            (Why::Asked, Some(refusal)) if !self.is_kept() => CacheReason::Refusal(refusal),
            (Why::Asked, _) if self.way.is_collapsed => CacheReason::Collapsed,
            (why, _) => CacheReason::Why(why),
        })
    }

    /// Records the id of the response that is sent.
    pub(super) fn set_page(&mut self, id: Option<&[u8]>) {
        self.page.clear();
        self.page.extend_from_slice(id.unwrap_or_default());
        debug_assert!(matches!(self.page.len(), 0 | 16), "the id of a response has 128 bits");
    }

    /// The key of the request, and its session.
    pub(crate) fn names(&self) -> (&KeyBuilder, &[u8]) {
        (&self.keys, &self.session)
    }
}

/// The result of a lookup on disk or at other nodes.
#[derive(Debug)]
pub enum Recalled {
    /// An object may be in memory now: look up again.
    Kept,
    /// The result of the disk: found, or missing there as well.
    Found(Lookup),
    /// Other nodes have no object for this permit.
    Alone(FillPermit),
}
