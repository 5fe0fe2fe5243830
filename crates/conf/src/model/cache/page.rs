//! The settings of the page cache, which the application controls.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::zone::CacheValid;
use crate::model::access::AccessRule;
use crate::vars::Template;

/// `page_cache*`: the cache that the application controls.
#[derive(Clone, Debug, PartialEq)]
pub struct PageCache {
    /// `page_cache`
    pub mode: PageMode,
    /// Whether an outer block has it on while this one has it off: purges of applications count
    /// then.
    pub accepts_purges: bool,
    /// `page_cache_lookup`
    pub lookup: PageScopes,
    /// `page_cache_private`: whether private responses are stored.
    pub private: bool,
    /// `page_cache_default_ttl`: of a response without cache directives; only in [`PageMode::On`],
    /// or when the application allows caching without a lifetime.
    pub default_ttl: Duration,
    /// `page_cache_max_ttl`: the upper limit of any lifetime; `None` is no limit.
    pub max_ttl: Option<Duration>,
    /// `page_cache_valid`: the lifetime of responses without one.
    pub valid: Arc<Vec<CacheValid>>,
    /// `page_cache_heuristic`
    pub heuristic: Option<HeuristicFreshness>,
    /// `page_cache_max_object`: the largest body in bytes.
    pub max_object: u64,
    /// `page_cache_stale`: how long a stale response may be served while a new one is fetched,
    /// unless the response itself says so.
    pub stale: Duration,
    /// Whether the directive was given; the default applies only to responses that use LSCache or
    /// whose lifetime the configuration sets.
    pub has_stale: bool,
    /// `page_cache_stale … error=`: the same, when none can be fetched.
    pub stale_error: Duration,
    /// `page_cache_control`: words that apply to a request and to a response without cache control.
    pub control: Arc<Vec<Template>>,
    /// `page_cache_vary`
    pub vary: Arc<Vec<VaryBy>>,
    /// `page_cache_drop_query`
    pub drop_query: Arc<DropQuery>,
    /// `page_cache_key`; none is scheme, host, port, path and query.
    pub key: Option<Template>,
    /// `page_cache_bypass`: no lookup and no storing when one is neither empty nor `0`.
    pub bypass: Arc<Vec<Template>>,
    /// `page_cache_purge_allow`: clients that may PURGE and REFRESH; the first match applies. The
    /// default is the local machine: see [`Self::may_purge`].
    pub purge_allow: Option<Arc<Vec<AccessRule>>>,
    /// `page_cache_purge_uri`: the path where a request's `X-LiteSpeed-Purge` takes effect.
    pub purge_uri: Option<Arc<[u8]>>,
    /// `page_cache_esi`: whether pages that request ESI are processed.
    pub esi: bool,
    /// `page_cache_crawler`: whether applications learn that they may warm the cache.
    pub crawler: bool,
    /// `page_cache_autoflush`: whether a POST purges the private objects of its session.
    pub autoflush: bool,
    /// `page_cache_status_header`
    pub status_header: StatusHeader,
    /// `cache_status`: the name in `Cache-Status` (RFC 9211); `None` sends no field. It applies to
    /// zones as well.
    pub cache_status: Option<Arc<str>>,
    /// `page_cache_trusted`: front ends whose `X-LSCACHE` is trusted, and which receive fields that
    /// clients do not.
    pub trusted: Arc<Vec<AccessRule>>,
    /// `page_cache_respect_request`: whether a request's `Cache-Control` and `Pragma` apply.
    pub respect_request: bool,
    /// `page_cache_session`: cookies that name a session; the first one present counts.
    pub session: Arc<Vec<QueryPattern>>,
    /// `page_cache_preset`: requests that are never cached, whatever the response allows.
    pub never: Option<Arc<NeverCached>>,
    /// `CacheEnable`, `CacheDisable`: the last one whose path is a prefix of the request's applies.
    pub prefixes: Arc<Vec<PagePrefix>>,
    /// `lscache_compat litespeed`: whether `SERVER_SOFTWARE` is `LiteSpeed` for applications.
    pub is_litespeed: bool,
    /// `LiteMage on`: whether applications get `X-LITEMAGE`.
    pub litemage: bool,
    /// `magento_cache_hide`: whether the `Server`, `Via` and `Link` of Magento are removed.
    pub magento_hide: bool,
}

impl Default for PageCache {
    fn default() -> Self {
        let session = SESSIONS.map(|name| QueryPattern::new(name.as_bytes()));
        Self {
            mode: PageMode::Off,
            accepts_purges: false,
            lookup: PageScopes { public: true, private: true },
            private: true,
            default_ttl: Duration::from_secs(3600),
            max_ttl: None,
            valid: Arc::default(),
            heuristic: None,
            max_object: 10 << 20,
            stale: Duration::from_secs(200),
            has_stale: false,
            stale_error: Duration::from_secs(200),
            control: Arc::default(),
            vary: Arc::default(),
            drop_query: Arc::default(),
            key: None,
            bypass: Arc::default(),
            purge_allow: None,
            purge_uri: None,
            esi: true,
            crawler: true,
            autoflush: true,
            status_header: StatusHeader::LiteSpeed,
            cache_status: None,
            trusted: Arc::default(),
            respect_request: false,
            session: Arc::new(session.into()),
            never: None,
            prefixes: Arc::default(),
            is_litespeed: false,
            litemage: false,
            magento_hide: true,
        }
    }
}

/// Cookies that name a session in common applications.
const SESSIONS: [&str; 6] = [
    "lsc_private",
    "xf_session",
    "frontend",
    "wp_woocommerce_session_*",
    "wordpress_logged_in_*",
    "PHPSESSID",
];

/// The heuristic freshness of a page with `Last-Modified` (RFC 9111 §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeuristicFreshness {
    /// Share of the time since the last modification, in per cent; 1 to 100.
    pub percent: u8,
    /// At most.
    pub max: Duration,
}

/// `page_cache`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageMode {
    /// No caching.
    Off,
    /// Only responses that allow storing by a shared cache, with `X-LiteSpeed-Cache-Control`,
    /// `Surrogate-Control`, `CDN-Cache-Control`, or a lifetime in `Cache-Control` or `Expires`.
    Auto,
    /// Also responses without cache directives, for `page_cache_default_ttl`.
    On,
    /// `magento_cache`: as Magento 2 expects of the Varnish in front of it.
    Magento,
}

/// The responses that it applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageScopes {
    /// Public ones.
    pub public: bool,
    /// Private ones.
    pub private: bool,
}

/// A component of the key beside the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VaryBy {
    /// `cookie=NAME`
    Cookie(Arc<[u8]>),
    /// `cookie=TEXT` with variables: names with commas between them.
    Cookies(Template),
    /// `value=TEXT`
    Value(Template),
    /// `header=NAME`, in lower case.
    Header(Arc<[u8]>),
}

/// Which query parameters the cache key ignores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DropQuery {
    /// Their names.
    pub names: Vec<QueryPattern>,
}

impl DropQuery {
    /// Whether the argument `name` is dropped.
    #[must_use]
    pub fn covers(&self, name: &[u8]) -> bool {
        self.names.iter().any(|pattern| pattern.matches(name))
    }
}

/// A text, or with a trailing `*` all texts that begin with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryPattern {
    /// The text without the star.
    pub text: Box<[u8]>,
    /// Whether more may follow.
    pub is_prefix: bool,
}

impl QueryPattern {
    /// Reads `text` or `text*`.
    #[must_use]
    pub fn new(written: &[u8]) -> Self {
        match written.split_last() {
            Some((b'*', text)) => Self { text: text.into(), is_prefix: true },
            _ => Self { text: written.into(), is_prefix: false },
        }
    }

    /// Whether `text` matches, case-sensitive.
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        if self.is_prefix { text.starts_with(&self.text) } else { *text == *self.text }
    }

    /// Whether `text` matches, case-insensitive.
    #[must_use]
    pub fn matches_in_any_case(&self, text: &[u8]) -> bool {
        let text = if self.is_prefix { text.get(..self.text.len()) } else { Some(text) };
        text.is_some_and(|text| text.eq_ignore_ascii_case(&self.text))
    }
}

/// A request or response that matches one of these is not cached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NeverCached {
    /// Cookies of the request.
    pub cookies: Vec<QueryPattern>,
    /// Paths of the request, as sent.
    pub paths: Vec<QueryPattern>,
    /// Arguments of the request.
    pub args: Vec<QueryPattern>,
}

impl NeverCached {
    /// Whether a path matches, wherever the application's directory is: a rule for `/cart` covers
    /// `/shop/cart`.
    #[must_use]
    pub fn covers_path(&self, path: &[u8]) -> bool {
        let slashes = (0..path.len()).filter(|at| path[*at] == b'/');
        slashes.map(|at| &path[at..]).any(|rest| self.paths.iter().any(|one| one.matches(rest)))
    }

    /// Whether a cookie of the request matches.
    #[must_use]
    pub fn covers_cookie(&self, name: &[u8]) -> bool {
        self.cookies.iter().any(|one| one.matches_in_any_case(name))
    }

    /// Whether a query parameter of the request matches.
    #[must_use]
    pub fn covers_arg(&self, name: &[u8]) -> bool {
        self.args.iter().any(|one| one.matches(name))
    }
}

/// A `CacheEnable` or `CacheDisable`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagePrefix {
    /// The prefix of a request's path.
    pub path: Box<[u8]>,
    /// The responses that it applies to.
    pub scopes: PageScopes,
    /// Whether they are cached.
    pub enabled: bool,
}

/// How clients see the decision of the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusHeader {
    /// Not at all.
    Off,
    /// `X-Cache: HIT`, `MISS`, `STALE`, `BYPASS`
    XCache,
    /// `X-LiteSpeed-Cache: hit`, `hit,private`, `miss`
    LiteSpeed,
}

/// Where the page cache stores responses: one store for all servers.
#[derive(Clone, Debug, PartialEq)]
pub struct PageStore {
    /// `page_cache_path`: the directory; `None` stores responses in memory only.
    pub path: Option<PathBuf>,
    /// `max_size=`: bytes on disk; `None` is no limit but the disk's.
    pub max_size: Option<u64>,
    /// `levels=`: as of a zone.
    pub levels: Vec<u8>,
    /// `inactive=`: files unused for this long are removed from disk.
    pub inactive: Duration,
    /// `page_cache_memory`, or `memory=`: bytes in memory, of zones as well; `None` derives it from
    /// the machine's.
    pub memory: Option<u64>,
}

impl PageStore {
    /// Bytes of memory for responses, on a machine with `ram` bytes.
    #[must_use]
    pub fn memory_limit(&self, ram: u64) -> u64 {
        self.memory.unwrap_or_else(|| (ram / 4).clamp(16 << 20, 4 << 30))
    }
}

impl Default for PageStore {
    fn default() -> Self {
        let inactive = Duration::from_secs(7 * 86_400);
        Self { path: None, max_size: None, levels: vec![2, 2], inactive, memory: None }
    }
}

#[cfg(test)]
mod tests {
    use super::{PageStore, QueryPattern};

    #[test]
    fn a_trailing_star_matches_any_suffix() {
        let prefix = QueryPattern::new(b"utm_*");
        assert!(prefix.matches(b"utm_source") && prefix.matches(b"utm_"));
        assert!(!prefix.matches(b"utm") && !prefix.matches(b"UTM_x"));
        assert!(prefix.matches_in_any_case(b"UTM_x") && !prefix.matches_in_any_case(b"ut"));
        let exact = QueryPattern::new(b"gclid");
        assert!(exact.matches(b"gclid") && !exact.matches(b"gclid2") && !exact.matches(b""));
    }

    #[test]
    fn memory_is_a_quarter_within_bounds() {
        let store = PageStore::default();
        assert_eq!(store.memory_limit(8 << 30), 2 << 30);
        assert_eq!(store.memory_limit(1 << 40), 4 << 30);
        assert_eq!(PageStore { memory: Some(5), ..store }.memory_limit(1 << 30), 5);
    }
}
