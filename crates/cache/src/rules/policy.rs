//! What the configuration of a location says about caching.

use crate::rules::query::QueryRules;

/// Whose rules decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Only what the application marks as cacheable is kept (`page_cache auto`).
    #[default]
    Auto,
    /// As `Auto`, and the configuration's defaults for answers that say nothing (`page_cache on`).
    LsCache,
    /// nginx's rules (`fastcgi_cache`).
    Zone,
}

/// What an answer with `Set-Cookie` means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetCookie {
    /// It is not kept.
    Prevents,
    /// It is kept, without the cookie, only if `X-LiteSpeed-Cache-Control` says so.
    #[default]
    NeedsMark,
    /// It is kept, without the cookie.
    Dropped,
}

/// Response fields that are not looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignore {
    /// `X-Accel-Expires`
    pub accel_expires: bool,
    /// `Expires`
    pub expires: bool,
    /// `Cache-Control` and the fields that stand in for it.
    pub cache_control: bool,
    /// `Set-Cookie`
    pub set_cookie: bool,
    /// `Vary`
    pub vary: bool,
}

/// How long answers of some statuses are kept that say nothing themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Valid {
    /// The statuses; none means any.
    pub statuses: Vec<u16>,
    /// Seconds; 0 is not at all.
    pub seconds: u32,
}

/// `fastcgi_cache_valid` and its kin, in the order written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Valids(pub Vec<Valid>);

impl Valids {
    /// The seconds for `status`: of the first line that names it or any.
    #[must_use]
    pub fn seconds(&self, status: u16) -> Option<u32> {
        let names = |valid: &&Valid| valid.statuses.is_empty() || valid.statuses.contains(&status);
        self.0.iter().find(names).map(|valid| valid.seconds)
    }
}

/// A guess for answers with `Last-Modified` that say nothing else (RFC 9111 §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristic {
    /// Part of the time since the last change, in per cent.
    pub percent: u8,
    /// Seconds at most.
    pub max: u32,
}

/// The settings of a location; the default keeps only what is marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePolicy {
    /// Whose rules decide.
    pub mode: Mode,
    /// Whether answers for everybody are looked up and kept.
    pub public: bool,
    /// Whether answers for one session are looked up and kept.
    pub private: bool,
    /// Seconds for public answers that are to be kept and do not say how long.
    pub ttl: u32,
    /// Seconds for private answers that are to be kept and do not say how long.
    pub private_ttl: u32,
    /// Seconds that an LSCache object may be sent after its time while it is made anew.
    pub max_stale: u32,
    /// Seconds by status for answers that say nothing.
    pub valid: Valids,
    /// Fields that are not looked at.
    pub ignore: Ignore,
    /// Bytes of the largest body.
    pub object_max: u64,
    /// Whether the request's `Cache-Control` counts.
    pub honour_request: bool,
    /// How to guess, if at all.
    pub heuristic: Option<Heuristic>,
    /// What `Set-Cookie` means.
    pub set_cookie: SetCookie,
    /// Whether requests with a query are looked up and kept.
    pub with_query: bool,
    /// Whether requests with cookies are looked up and kept.
    pub with_cookies: bool,
    /// Whether ESI is looked for where an answer asks for it.
    pub esi: bool,
    /// Whether a successful unsafe request drops what is kept of its URL (RFC 9111 §4.4).
    pub invalidates: bool,
    /// Targeted fields that count, the most specific first (RFC 9213 §2.2).
    pub targets: Vec<Box<[u8]>>,
    /// What is left out of queries in keys.
    pub query: QueryRules,
    /// Cookies that answers always depend on.
    pub vary_cookies: Vec<Box<[u8]>>,
    /// Whether answers to POST are looked up and kept too (zones only).
    pub with_post: bool,
    /// Whether RFC 9111 is kept where nginx does not (zones only).
    pub is_strict: bool,
}

impl Default for CachePolicy {
    fn default() -> Self {
        Self {
            mode: Mode::Auto,
            public: true,
            private: true,
            ttl: 3600,
            private_ttl: 3600,
            max_stale: 200,
            valid: Valids::default(),
            ignore: Ignore::default(),
            object_max: 10_000_000,
            honour_request: false,
            heuristic: None,
            set_cookie: SetCookie::NeedsMark,
            with_query: true,
            with_cookies: true,
            esi: true,
            invalidates: true,
            targets: vec![Box::from(*b"Bolide-Cache-Control"), Box::from(*b"CDN-Cache-Control")],
            query: QueryRules::default(),
            vary_cookies: Vec::new(),
            with_post: false,
            is_strict: false,
        }
    }
}
