//! The cache configuration of a location.

use crate::rules::query::QueryRules;

/// The rules that decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Only responses that the application marks as cacheable are stored (`page_cache auto`).
    #[default]
    Auto,
    /// As `Auto`, with the configuration's defaults for responses without directives (`page_cache
    /// on`).
    LsCache,
    /// nginx's rules (`fastcgi_cache`).
    Zone,
    /// Those of Magento 2 behind Varnish (`magento_cache`).
    Magento,
}

/// The effect of `Set-Cookie` in a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetCookie {
    /// It is not stored.
    Prevents,
    /// It is stored, without the cookie, only with `X-LiteSpeed-Cache-Control`.
    #[default]
    NeedsMark,
    /// It is stored without the cookie.
    Dropped,
}

/// Response fields that are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignore {
    /// `X-Accel-Expires`
    pub accel_expires: bool,
    /// `Expires`
    pub expires: bool,
    /// `Cache-Control` and the fields that replace it.
    pub cache_control: bool,
    /// `Set-Cookie`
    pub set_cookie: bool,
    /// `Vary`
    pub vary: bool,
}

/// The lifetime of responses with some statuses that have no directives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Valid {
    /// The statuses; an empty list means any.
    pub statuses: Vec<u16>,
    /// Seconds; 0 means not stored.
    pub seconds: u32,
}

/// `fastcgi_cache_valid` and similar directives, in the order of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Valids(pub Vec<Valid>);

impl Valids {
    /// The seconds for `status`, from the first line with it or with any status.
    #[must_use]
    pub fn seconds(&self, status: u16) -> Option<u32> {
        let names = |valid: &&Valid| valid.statuses.is_empty() || valid.statuses.contains(&status);
        self.0.iter().find(names).map(|valid| valid.seconds)
    }
}

/// The heuristic lifetime of responses with `Last-Modified` and no directives (RFC 9111 §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristic {
    /// The percentage of the time since the last modification.
    pub percent: u8,
    /// LIMIT: seconds.
    pub max: u32,
}

/// The cache configuration of a location. The default stores only marked responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePolicy {
    /// The rules that decide.
    pub mode: Mode,
    /// Whether the public cache is used.
    pub public: bool,
    /// Whether the private cache is used.
    pub private: bool,
    /// The lifetime of public responses without one, in seconds.
    pub ttl: u32,
    /// The lifetime of private responses without one, in seconds.
    pub private_ttl: u32,
    /// Seconds in which a stale LSCache object may be sent while it is revalidated.
    pub max_stale: u32,
    /// The lifetime by status for responses without directives.
    pub valid: Valids,
    /// Ignored fields.
    pub ignore: Ignore,
    /// LIMIT: bytes of a body.
    pub object_max: u64,
    /// Whether the `Cache-Control` of requests is honoured.
    pub honour_request: bool,
    /// The heuristic, if it is enabled.
    pub heuristic: Option<Heuristic>,
    /// The effect of `Set-Cookie`.
    pub set_cookie: SetCookie,
    /// Whether requests with a query use the cache.
    pub with_query: bool,
    /// Whether requests with cookies use the cache.
    pub with_cookies: bool,
    /// Whether ESI is processed in responses that request it.
    pub esi: bool,
    /// Whether a successful unsafe request invalidates its URL (RFC 9111 §4.4).
    pub invalidates: bool,
    /// The targeted fields, the most specific first (RFC 9213 §2.2).
    pub targets: Vec<Box<[u8]>>,
    /// The query parameters that keys exclude.
    pub query: QueryRules,
    /// Cookies that always belong to the key.
    pub vary_cookies: Vec<Box<[u8]>>,
    /// Whether POST uses the cache, too (zones only).
    pub with_post: bool,
    /// Whether a 206 is stored, as its range belongs to the key (zones only).
    pub with_ranges: bool,
    /// Whether RFC 9111 applies where nginx differs (zones only).
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
            with_ranges: false,
            is_strict: false,
        }
    }
}
