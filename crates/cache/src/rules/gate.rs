//! Decides before the fetch whether a request may be served from the cache, public or private.

use bolide_http::cache_control::RequestControl;
use bolide_http::cookies::Cookies;
use bolide_http::lscache::{CacheScope, LsCacheControl};
use bolide_http::{Hops, Method, Name};

use crate::rules::claims;
use crate::rules::identity::Facts;
use crate::rules::magento;
use crate::rules::policy::{CachePolicy, Mode};
use crate::rules::query::QueryRules;

/// The variables of rewrite rules (`[E=…]`) or the attributes of an ESI element for one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `Cache-Control:…` without `vary=`.
    pub control: LsCacheControl,
    /// `Cache-Vary:…`: cookies that belong to the key.
    pub vary_cookies: Vec<Box<[u8]>>,
    /// `Cache-Control:vary=…`: the vary value of the key.
    pub vary_value: Option<Box<[u8]>>,
    /// `cache-key-mod:…`
    pub query: QueryRules,
    /// `modcache:0`: no caching.
    pub is_off: bool,
    /// The scope of a response without directives (`CacheEnable`); `None` leaves it to the mode.
    pub by_default: Option<CacheScope>,
    /// Disables the public cache, lookups and storing (`CacheDisable`).
    pub no_public: bool,
    /// Disables the private cache, lookups and storing.
    pub no_private: bool,
    /// Whether public and private objects are looked up, where a directory's `CacheLookup` decides
    /// it.
    pub lookup: [Option<bool>; 2],
    /// The longest lifetime of a response in seconds, and the longest time that it is sent while it
    /// is stale and refreshed (`CacheMaxExpire`, `CacheStaleAge` of a directory).
    pub times_max: [Option<u32>; 2],
    /// Whether applications get `X-LITEMAGE`, where a directory's `LiteMage` decides it.
    pub litemage: Option<bool>,
    /// The server authenticated the client, and the application may know the user: counts as
    /// `Authorization`.
    pub is_authorized: bool,
}

/// LIMIT: vary cookies of one request.
const VARY_COOKIES_MAX: usize = 64;

impl Environment {
    /// Sets a variable of a rewrite rule. Returns whether it is known.
    pub fn set(&mut self, name: &[u8], value: &[u8]) -> bool {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        if is(b"cache-vary") {
            for word in words(value) {
                let cookie = word.strip_prefix(b"cookie=").unwrap_or(word);
                self.add_vary_cookie(cookie);
            }
        } else if is(b"cache-control") || is(b"cache-ctrl") {
            for word in words(value) {
                match word.split_at_checked(5) {
                    Some((start, token)) if start.eq_ignore_ascii_case(b"vary=") => {
                        self.vary_value = (!token.is_empty()).then(|| token.into());
                    }
                    _ => self.control.add(word),
                }
            }
        } else if is(b"cache-key-mod") {
            self.query.add_all(value);
        } else if is(b"modcache") {
            self.is_off = value == b"0";
        } else {
            return false;
        }
        true
    }

    /// Stores no more, and for no more clients, than `other` permits as well.
    pub fn narrow(&mut self, other: &Self) {
        self.is_off |= other.is_off;
        self.no_public |= other.no_public;
        self.no_private |= other.no_private;
        self.is_authorized |= other.is_authorized;
        self.control.no_cache |= other.control.no_cache;
        self.control.no_store |= other.control.no_store;
        for (own, most) in self.times_max.iter_mut().zip(other.times_max) {
            *own = [*own, most].into_iter().flatten().min();
        }
        for cookie in &other.vary_cookies {
            self.add_vary_cookie(cookie);
            // The key has no room for it.
            self.is_off |= !self.vary_cookies.contains(cookie);
        }
        if other.vary_value.is_some() {
            // Equal values of two rules may mean different things.
            self.is_off |= self.vary_value.is_some() && self.vary_value != other.vary_value;
            self.vary_value.clone_from(&other.vary_value);
        }
    }

    /// Adds a cookie that belongs to the key.
    pub fn add_vary_cookie(&mut self, name: &[u8]) {
        let is_known = self.vary_cookies.iter().any(|known| **known == *name);
        if !name.is_empty() && !is_known && self.vary_cookies.len() < VARY_COOKIES_MAX {
            self.vary_cookies.push(name.into());
        }
        debug_assert!(self.vary_cookies.len() <= VARY_COOKIES_MAX, "a key has few cookies");
    }
}

fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let value = value.trim_ascii();
    let value = value.strip_prefix(b"\"").unwrap_or(value);
    let value = value.strip_suffix(b"\"").unwrap_or(value);
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|word| !word.is_empty())
}

/// Why a request bypasses the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bypass {
    /// `modcache:0`
    Off,
    /// The method.
    Method,
    /// It has a query, and the location does not cache such requests.
    Query,
    /// It has cookies, and the location does not cache such requests.
    Cookies,
    /// `no-cache` from rewrite rules.
    Environment,
    /// `no-store` in the request, which the location honours.
    NoStore,
    /// The key cannot represent part of it.
    Unkeyed,
    /// Neither the public nor the private cache is enabled for it.
    NoSpace,
    /// Magento's rules let it pass: customer, checkout, media, a token.
    Magento,
}

impl Bypass {
    /// The reason for `Cache-Status` and `explain`.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Method => "method",
            Self::Query => "query",
            Self::Cookies => "cookies",
            Self::Environment => "rewrite-no-cache",
            Self::NoStore => "request-no-store",
            Self::Unkeyed => "unkeyed",
            Self::NoSpace => "no-space",
            Self::Magento => "magento-pass",
        }
    }
}

/// The caches in which a request is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheGate {
    /// The private cache of its session, first.
    pub private: bool,
    /// The public cache.
    pub public: bool,
}

/// Decides whether and where a request is looked up. `has_session` is the result of
/// [`session`](super::session).
///
/// # Errors
///
/// The reason why the request bypasses the cache.
pub fn gate(
    policy: &CachePolicy,
    facts: &Facts<'_>,
    has_session: bool,
) -> Result<CacheGate, Bypass> {
    let control = &facts.environment.control;
    let is_zone = policy.mode == Mode::Zone;
    let is_method = match facts.method {
        Method::Get | Method::Head => true,
        Method::Post => is_zone && policy.with_post,
        _ => false,
    };
    if facts.environment.is_off {
        return Err(Bypass::Off);
    }
    if !is_method {
        return Err(Bypass::Method);
    }
    if policy.mode == Mode::Magento
        && let Some(bypass) = magento::passes(facts)
    {
        return Err(bypass);
    }
    if !policy.with_query && !facts.query().is_empty() {
        return Err(Bypass::Query);
    }
    if !policy.with_cookies && facts.fields.get(Name::Cookie).is_some() {
        return Err(Bypass::Cookies);
    }
    if control.no_cache || control.no_store {
        return Err(Bypass::Environment);
    }
    // Cut cookies cannot be part of a key, and a method override makes it another request.
    if !is_zone && (Cookies::of(facts.fields).is_cut() || claims::overrides_method(facts.fields)) {
        return Err(Bypass::Unkeyed);
    }
    // RFC 9110 §7.6.1: hop-by-hop fields are not sent upstream, so keys must not depend on them.
    if Hops::of(facts.fields).hide_any(facts.fields) {
        return Err(Bypass::Unkeyed);
    }
    if policy.honour_request && RequestControl::of(facts.fields).no_store {
        return Err(Bypass::NoStore);
    }
    if is_zone {
        return Ok(CacheGate { private: false, public: true });
    }
    // An ESI element names its cache, which excludes the other one. An age alone, as a rewrite rule
    // may set it, only implies public and excludes nothing.
    let wants_private = control.private || control.shared;
    let wants_public = control.public && control.lifetime().is_none();
    let (no_public, no_private) = (facts.environment.no_public, facts.environment.no_private);
    let gate = CacheGate {
        private: policy.private && !no_private && has_session && (wants_private || !wants_public),
        public: policy.public && !no_public && !wants_private,
    };
    if gate.private || gate.public { Ok(gate) } else { Err(Bypass::NoSpace) }
}

/// Whether a request flushes its session's private objects: a POST without an exemption.
#[must_use]
pub fn autoflushes(policy: &CachePolicy, facts: &Facts<'_>) -> bool {
    policy.mode != Mode::Zone
        && policy.private
        && facts.method == Method::Post
        && !facts.environment.control.no_autoflush
        && !facts.environment.is_off
}
