//! Before the origin is asked: may this request be answered from the store, and from which spaces?

use bolide_http::cache_control::RequestControl;
use bolide_http::cookies::Cookies;
use bolide_http::lscache::{CacheScope, LsCacheControl};
use bolide_http::{Hops, Method, Name};

use crate::rules::claims;
use crate::rules::identity::Facts;
use crate::rules::policy::{CachePolicy, Mode};
use crate::rules::query::QueryRules;

/// What rewrite rules (`[E=…]`) or the attributes of an ESI element say about one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `Cache-Control:…` apart from `vary=`.
    pub control: LsCacheControl,
    /// `Cache-Vary:…`: cookies that the answer depends on.
    pub vary_cookies: Vec<Box<[u8]>>,
    /// `Cache-Control:vary=…`: what copies are told apart by.
    pub vary_value: Option<Box<[u8]>>,
    /// `cache-key-mod:…`
    pub query: QueryRules,
    /// `modcache:0`: no caching at all.
    pub is_off: bool,
    /// For whom an answer is kept that says nothing (`CacheEnable`); none is as the mode has it.
    pub by_default: Option<CacheScope>,
    /// Answers for everybody are neither looked up nor kept (`CacheDisable`).
    pub no_public: bool,
    /// Answers for one session are neither looked up nor kept.
    pub no_private: bool,
    /// It was found out who asks, and the application may know: as good as `Authorization`.
    pub is_vouched_for: bool,
}

/// LIMIT: vary cookies of one request.
const VARY_COOKIES_MAX: usize = 64;

impl Environment {
    /// Takes one variable that a rewrite rule set; whether it was one of those known here.
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

    /// Adds a cookie that the answer depends on.
    pub fn add_vary_cookie(&mut self, name: &[u8]) {
        let is_known = self.vary_cookies.iter().any(|known| **known == *name);
        if !name.is_empty() && !is_known && self.vary_cookies.len() < VARY_COOKIES_MAX {
            self.vary_cookies.push(name.into());
        }
    }
}

fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let value = value.trim_ascii();
    let value = value.strip_prefix(b"\"").unwrap_or(value);
    let value = value.strip_suffix(b"\"").unwrap_or(value);
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|word| !word.is_empty())
}

/// Why a request is neither looked up nor its answer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// `modcache:0`
    Off,
    /// The method.
    Method,
    /// It has a query, and those are not cached here.
    Query,
    /// It has cookies, and those are not cached here.
    Cookies,
    /// Rewrite rules said `no-cache`.
    Environment,
    /// The request said `no-store`, which counts here.
    NoStore,
    /// It says what no key can tell apart.
    Unkeyed,
    /// Neither space is open to it.
    NoSpace,
}

impl Bypass {
    /// For `Cache-Status` and `explain`.
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
        }
    }
}

/// Where a request is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// In the session's own space, first.
    pub private: bool,
    /// In everybody's space.
    pub public: bool,
}

/// Whether a request is looked up, and where. `has_session` says whether
/// [`session`](super::session) found one.
///
/// # Errors
///
/// Why it passes.
pub fn gate(policy: &CachePolicy, facts: &Facts<'_>, has_session: bool) -> Result<Gate, Bypass> {
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
    if !policy.with_query && !facts.query().is_empty() {
        return Err(Bypass::Query);
    }
    if !policy.with_cookies && facts.fields.get(Name::Cookie).is_some() {
        return Err(Bypass::Cookies);
    }
    if control.no_cache || control.no_store {
        return Err(Bypass::Environment);
    }
    // What cannot be seen cannot be told apart, and an override makes it another request.
    if !is_zone && (Cookies::of(facts.fields).is_cut() || claims::overrides_method(facts.fields)) {
        return Err(Bypass::Unkeyed);
    }
    // RFC 9110 §7.6.1: the origin is not told of what keys would tell apart.
    if Hops::of(facts.fields).hide_any(facts.fields) {
        return Err(Bypass::Unkeyed);
    }
    if policy.honour_request && RequestControl::of(facts.fields).no_store {
        return Err(Bypass::NoStore);
    }
    if is_zone {
        return Ok(Gate { private: false, public: true });
    }
    // An ESI element says which space; a word for one closes the other. An age alone, as a rewrite
    // rule may set it, only implies public and closes nothing.
    let wants_private = control.private || control.shared;
    let wants_public = control.public && control.lifetime().is_none();
    let (no_public, no_private) = (facts.environment.no_public, facts.environment.no_private);
    let gate = Gate {
        private: policy.private && !no_private && has_session && (wants_private || !wants_public),
        public: policy.public && !no_public && !wants_private,
    };
    if gate.private || gate.public { Ok(gate) } else { Err(Bypass::NoSpace) }
}

/// Whether a request drops its session's private objects: a POST that nobody exempted.
#[must_use]
pub fn autoflushes(policy: &CachePolicy, facts: &Facts<'_>) -> bool {
    policy.mode != Mode::Zone
        && policy.private
        && facts.method == Method::Post
        && !facts.environment.control.no_autoflush
        && !facts.environment.is_off
}
