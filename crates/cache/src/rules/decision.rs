//! What is decided about a response: whether it is stored and how, or why not.

use bolide_http::lscache::CacheScope;
use bolide_http::no_vary_search::NoVarySearch;

use crate::object::Times;
use crate::rules::line_protocol::PurgeOrder;

/// The source of a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerSource {
    /// No source: the response has no directives, and no default applies.
    #[default]
    Unspecified,
    /// `X-LiteSpeed-Cache-Control`
    LiteSpeed,
    /// A targeted field.
    Targeted,
    /// `Surrogate-Control`
    Surrogate,
    /// `Cache-Control`
    CacheControl,
    /// `Expires`
    Expires,
    /// `X-Accel-Expires`
    AccelExpires,
    /// The heuristic (RFC 9111 §4.2.2).
    Heuristic,
    /// The configuration.
    Configuration,
}

/// Why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreRefusal {
    /// The method.
    Method,
    /// The status, or partial content.
    Status,
    /// `modcache:0`, or `no-cache` from a rewrite rule.
    Environment,
    /// The location does not cache requests with a query or cookies.
    Request,
    /// `no-store` in the request, which the location honours.
    RequestNoStore,
    /// `no-store`
    NoStore,
    /// `no-cache`
    NoCache,
    /// `private` in a shared cache.
    Private,
    /// The request was authenticated (`Authorization`), and the response does not allow to store
    /// it.
    Authorization,
    /// `Set-Cookie`
    SetCookie,
    /// The key cannot represent `Vary`.
    Vary,
    /// No freshness lifetime.
    NoLifetime,
    /// It is stale on arrival.
    Stale,
    /// The body exceeds the limit.
    TooLarge,
    /// The body is empty.
    Empty,
    /// It is private, and the request has no session.
    NoSession,
    /// The configuration disables the public or private cache.
    Space,
    /// It is an ESI page, but ESI is off: its inlines may be private.
    Unassembled,
    /// It is for another variant than the request asked for (Magento).
    Variant,
    /// It redirects to a URL that has the same key.
    OwnRedirect,
}

impl StoreRefusal {
    /// The reason for `Cache-Status` and `explain`.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Status => "status",
            Self::Environment => "rewrite-no-cache",
            Self::Request => "query-or-cookies",
            Self::RequestNoStore => "request-no-store",
            Self::NoStore => "no-store",
            Self::NoCache => "no-cache",
            Self::Private => "private",
            Self::Authorization => "authorization",
            Self::SetCookie => "set-cookie",
            Self::Vary => "vary",
            Self::NoLifetime => "no-lifetime",
            Self::Stale => "stale",
            Self::TooLarge => "too-large",
            Self::Empty => "empty",
            Self::NoSession => "no-session",
            Self::Space => "space-off",
            Self::Unassembled => "esi-off",
            Self::Variant => "other-variant",
            Self::OwnRedirect => "redirects-to-own-key",
        }
    }
}

/// Whether a response is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreVerdict {
    /// It is stored as public, or for the session of the request.
    Keep(CacheScope),
    /// It is not stored.
    Refuse(StoreRefusal),
}

/// What to do with a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreDecision {
    /// Whether it is stored.
    pub verdict: StoreVerdict,
    /// The source of the decision.
    pub source: AnswerSource,
    /// The freshness lifetime in seconds from its arrival on.
    pub ttl: u32,
    /// The age on arrival in seconds.
    pub age: u32,
    /// Seconds that it had expired for when it arrived, where it is stored all the same.
    pub expired_for: u64,
    /// Seconds after `ttl` in which it may be sent while it is revalidated.
    pub stale_while_revalidate: u32,
    /// Seconds after `ttl` in which it may be sent on an upstream error.
    pub stale_if_error: u32,
    /// Whether the response has `stale-while-revalidate`.
    pub says_refreshable: bool,
    /// Whether the response has `stale-if-error`.
    pub says_for_errors: bool,
    /// Whether it must not be sent stale, except for what it allows itself.
    pub must_revalidate: bool,
    /// Whether its body is ESI, stored or not.
    pub esi: bool,
    /// Whether its key has no vary part.
    pub no_vary: bool,
    /// The names that responses of this URL vary by beyond the base, in the order of keys:
    /// `cookie=NAME`, or a field name in lower case. Remember them for the URL.
    pub vary: Vec<Box<[u8]>>,
    /// The vary value in the key of this response, instead of the request's.
    pub vary_value: Option<Box<[u8]>>,
    /// Whether to build the key again: see [`vary_base`](super::vary_base), after merging the
    /// cookies that the response sets into those of the request.
    pub rekey: bool,
    /// `LSC-Cookie`: sent as `Set-Cookie` with every hit.
    pub cookies: Vec<Box<[u8]>>,
    /// The purges that it requests, stored or not.
    pub purges: Vec<PurgeOrder>,
    /// Its `No-Vary-Search`.
    pub search: Option<NoVarySearch>,
    /// Seconds that it is remembered that it is not stored, where a rule says so.
    pub remembered: Option<u32>,
}

impl StoreDecision {
    pub(crate) const fn new() -> Self {
        Self {
            verdict: StoreVerdict::Refuse(StoreRefusal::NoLifetime),
            source: AnswerSource::Unspecified,
            ttl: 0,
            expired_for: 0,
            age: 0,
            stale_while_revalidate: 0,
            stale_if_error: 0,
            says_refreshable: false,
            says_for_errors: false,
            must_revalidate: false,
            esi: false,
            no_vary: false,
            vary: Vec::new(),
            vary_value: None,
            rekey: false,
            cookies: Vec::new(),
            purges: Vec::new(),
            search: None,
            remembered: None,
        }
    }

    /// The scope of a stored response.
    #[must_use]
    pub const fn scope(&self) -> Option<CacheScope> {
        match self.verdict {
            StoreVerdict::Keep(scope) => Some(scope),
            StoreVerdict::Refuse(_) => None,
        }
    }

    /// The times of an object that arrived or was validated at `now_ms`.
    #[must_use]
    pub const fn times(&self, now_ms: u64) -> Times {
        Times {
            created_ms: now_ms.saturating_sub(self.age as u64 * 1000),
            expires_ms: now_ms
                .saturating_add(self.ttl as u64 * 1000)
                .saturating_sub(self.expired_for.saturating_mul(1000)),
            stale_seconds: self.stale_while_revalidate,
            error_seconds: self.stale_if_error,
        }
    }
}
