//! Caching of responses: nginx's `fastcgi_cache*` with its zones, and the page cache that the
//! application controls.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::access::{AccessRule, AccessVerdict, Who};
use crate::vars::Template;

/// An index into [`super::Http::cache_zones`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheZoneId(pub u32);

impl CacheZoneId {
    /// The index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A `fastcgi_cache_path`.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheZone {
    /// `keys_zone=NAME:…`
    pub name: Arc<str>,
    /// `keys_zone=…:SIZE` in bytes.
    pub keys_size: u64,
    /// The directory.
    pub path: PathBuf,
    /// `levels`: lengths of directory names below it, 1 or 2 each; at most three, or none.
    pub levels: Vec<u8>,
    /// `use_temp_path`: whether files are created in `fastcgi_temp_path` and moved.
    pub use_temp_path: bool,
    /// `inactive`: objects unused for this long are removed.
    pub inactive: Duration,
    /// `max_size` in bytes; none is no limit.
    pub max_size: Option<u64>,
    /// `min_free`: bytes that stay free on the file system.
    pub min_free: u64,
    /// `manager_files`, `manager_sleep`, `manager_threshold`
    pub manager: CachePace,
    /// `loader_files`, `loader_sleep`, `loader_threshold`
    pub loader: CachePace,
    /// `purger`
    pub purger: bool,
    /// `purger_files`, `purger_sleep`, `purger_threshold`
    pub purger_pace: CachePace,
    /// Where it was written.
    pub place: super::SourcePlace,
}

/// The pace of work on a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachePace {
    /// Files per iteration.
    pub files: u32,
    /// The pause after it.
    pub sleep: Duration,
    /// The longest duration of one iteration.
    pub threshold: Duration,
}

/// The cache settings of a location, inheritance resolved.
///
/// The page cache ([`PageCache`]) and a zone ([`ZoneUse`]) are two syntaxes for one store; where
/// both are on, the zone answers.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheSettings {
    /// `fastcgi_cache`
    pub zone: ZoneUse,
    /// `fastcgi_cache_key`; `None`, the default, is that of [`PageCache::key`].
    pub key: Option<Template>,
    /// `fastcgi_cache_valid`: the first that matches a response's status applies.
    pub valid: Arc<Vec<CacheValid>>,
    /// `fastcgi_cache_methods`
    pub methods: CacheMethods,
    /// `fastcgi_cache_min_uses`: requests before a response is stored.
    pub min_uses: u32,
    /// `fastcgi_cache_bypass`: no lookup when one is neither empty nor `0`.
    pub bypass: Arc<Vec<Template>>,
    /// `fastcgi_no_cache`: no storing when one is neither empty nor `0`.
    pub no_cache: Arc<Vec<Template>>,
    /// `fastcgi_cache_lock`
    pub lock: bool,
    /// `fastcgi_cache_lock_age`: after which another request may go upstream.
    pub lock_age: Duration,
    /// `fastcgi_cache_lock_timeout`: after which a waiting request goes upstream, and stores
    /// nothing.
    pub lock_timeout: Duration,
    /// `fastcgi_cache_use_stale`
    pub use_stale: UseStale,
    /// `fastcgi_cache_background_update`
    pub background_update: bool,
    /// `fastcgi_cache_revalidate`
    pub revalidate: bool,
    /// `fastcgi_cache_max_range_offset`: ranges that begin after it are not cached; `None` is no
    /// limit.
    pub max_range_offset: Option<u64>,
    /// `fastcgi_cache_purge`
    pub purge: CachePurge,
    /// `cache_rfc9111`: whether zones follow RFC 9111 where nginx does not.
    pub rfc9111: bool,
    /// `page_cache*`
    pub page: PageCache,
}

/// A `fastcgi_cache`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneUse {
    /// `off`
    Off,
    /// This zone.
    Zone(CacheZoneId),
    /// A text with variables: the name of a zone; `off` and the empty text mean no zone.
    Text(Template),
}

/// One status of a `fastcgi_cache_valid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheValid {
    /// The status; none is `any`.
    pub status: Option<u16>,
    /// The freshness lifetime; zero means that it is not stored.
    pub time: Duration,
}

/// A `fastcgi_cache_methods`; GET and HEAD are always in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheMethods {
    /// `POST`
    pub post: bool,
}

/// A `fastcgi_cache_use_stale`: when to serve a stale response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UseStale {
    /// `error`
    pub error: bool,
    /// `timeout`
    pub timeout: bool,
    /// `invalid_header`
    pub invalid_header: bool,
    /// `updating`: while another request fetches a new one.
    pub updating: bool,
    /// `http_500`
    pub http_500: bool,
    /// `http_502`
    pub http_502: bool,
    /// `http_503`
    pub http_503: bool,
    /// `http_504`
    pub http_504: bool,
    /// `http_403`
    pub http_403: bool,
    /// `http_404`
    pub http_404: bool,
    /// `http_429`
    pub http_429: bool,
}

impl UseStale {
    /// Whether a stale response replaces one of this status.
    #[must_use]
    pub const fn covers(&self, status: u16) -> bool {
        match status {
            500 => self.http_500,
            502 => self.http_502,
            503 => self.http_503,
            504 => self.http_504,
            403 => self.http_403,
            404 => self.http_404,
            429 => self.http_429,
            _ => false,
        }
    }
}

/// A `fastcgi_cache_purge`, in any of its three syntaxes.
#[derive(Clone, Debug, PartialEq)]
pub enum CachePurge {
    /// No purges.
    Off,
    /// `fastcgi_cache_purge TEXT…`: a request purges its own key when a text is neither empty nor
    /// `0`. A key that ends in `*` purges all keys with that prefix.
    When(Arc<Vec<Template>>),
    /// `fastcgi_cache_purge METHOD [from ADDRESS…]`: a request of this method purges the key that
    /// it would have as a GET; `on` is `PURGE`.
    Method {
        /// The method.
        method: Arc<[u8]>,
        /// The clients allowed; the first match applies, all others are refused.
        from: Arc<Vec<AccessRule>>,
    },
    /// `fastcgi_cache_purge ZONE KEY`: every request to the location purges this key.
    Key {
        /// The zone of the keys.
        zone: CacheZoneId,
        /// Which one.
        key: Template,
    },
}

/// `page_cache*`: the cache that the application controls.
#[derive(Clone, Debug, PartialEq)]
pub struct PageCache {
    /// `page_cache`
    pub mode: PageMode,
    /// Whether an outer block has it on while this one has it off: purges of applications count
    /// then.
    pub is_heard: bool,
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
    pub heuristic: Option<Guess>,
    /// `page_cache_max_object`: the largest body in bytes.
    pub max_object: u64,
    /// `page_cache_stale`: how long a stale response may be served while a new one is fetched,
    /// unless the response itself says so.
    pub stale: Duration,
    /// Whether the directive was given; the default applies only to responses that use LSCache or
    /// whose lifetime the configuration sets.
    pub says_stale: bool,
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

/// The heuristic freshness of a page with `Last-Modified` (RFC 9111 §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guess {
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

/// Cookies that name a session in common applications.
const SESSIONS: [&str; 6] = [
    "lsc_private",
    "xf_session",
    "frontend",
    "wp_woocommerce_session_*",
    "wordpress_logged_in_*",
    "PHPSESSID",
];

impl Default for CacheSettings {
    fn default() -> Self {
        Self {
            zone: ZoneUse::Off,
            key: None,
            valid: Arc::default(),
            methods: CacheMethods { post: false },
            min_uses: 1,
            bypass: Arc::default(),
            no_cache: Arc::default(),
            lock: false,
            lock_age: Duration::from_secs(5),
            lock_timeout: Duration::from_secs(5),
            use_stale: UseStale::default(),
            background_update: false,
            revalidate: false,
            max_range_offset: None,
            purge: CachePurge::Off,
            rfc9111: false,
            page: PageCache::default(),
        }
    }
}

impl Default for PageCache {
    fn default() -> Self {
        let session = SESSIONS.map(|name| QueryPattern::new(name.as_bytes()));
        Self {
            mode: PageMode::Off,
            is_heard: false,
            lookup: PageScopes { public: true, private: true },
            private: true,
            default_ttl: Duration::from_secs(3600),
            max_ttl: None,
            valid: Arc::default(),
            heuristic: None,
            max_object: 10 << 20,
            stale: Duration::from_secs(200),
            says_stale: false,
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

impl PageCache {
    /// Whether a client whose connection comes from `peer` may purge; `None` is a unix socket. A
    /// configured list is matched against the client's address. Without one, the client and its
    /// connection must both be of this machine, and no proxy may have forwarded the request
    /// (`handed_on`), since a local proxy makes every client look local.
    #[must_use]
    pub fn may_purge(
        &self,
        client: Option<IpAddr>,
        peer: Option<IpAddr>,
        handed_on: HandedOn,
    ) -> Purger {
        let rules = match &self.purge_allow {
            Some(rules) if is_allowed(rules, client) => return Purger::Welcome,
            Some(_) => return Purger::Stranger,
            None => this_machine(),
        };
        match handed_on {
            _ if !is_allowed(&rules, client) || !is_allowed(&rules, peer) => Purger::Stranger,
            HandedOn::Yes => Purger::Unknown,
            HandedOn::No => Purger::Welcome,
        }
    }
}

/// Whether a request has a field that proxies add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandedOn {
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// The client of a `PURGE`, in terms of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purger {
    /// The client may purge.
    Welcome,
    /// The client may not purge.
    Stranger,
    /// A proxy on this machine forwarded the request: the client is unknown.
    Unknown,
}

/// Clients on the local machine.
fn this_machine() -> [AccessRule; 3] {
    use super::access::Network;
    use std::net::{Ipv4Addr, Ipv6Addr};
    let v4 = Network::V4(Ipv4Addr::new(127, 0, 0, 0), Ipv4Addr::new(255, 0, 0, 0));
    let v6 = Network::V6(Ipv6Addr::LOCALHOST, Ipv6Addr::from_bits(u128::MAX));
    [Who::Network(v4), Who::Network(v6), Who::Unix]
        .map(|who| AccessRule { who, verdict: AccessVerdict::Allow })
}

/// Whether `rules` allow a client; `ip` is `None` over a unix socket. Without a match, no.
#[must_use]
pub fn is_allowed(rules: &[AccessRule], ip: Option<IpAddr>) -> bool {
    let fits = |who: &Who| match (who, ip) {
        (Who::All, _) | (Who::Unix, None) => true,
        (Who::Network(network), Some(ip)) => network.contains(ip),
        (Who::Unix, Some(_)) | (Who::Network(_), None) => false,
    };
    rules
        .iter()
        .find(|rule| fits(&rule.who))
        .is_some_and(|rule| rule.verdict == AccessVerdict::Allow)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{HandedOn, PageCache, PageStore, Purger, QueryPattern, is_allowed, this_machine};

    #[test]
    fn a_star_at_the_end_stands_for_more() {
        let prefix = QueryPattern::new(b"utm_*");
        assert!(prefix.matches(b"utm_source") && prefix.matches(b"utm_"));
        assert!(!prefix.matches(b"utm") && !prefix.matches(b"UTM_x"));
        assert!(prefix.matches_in_any_case(b"UTM_x") && !prefix.matches_in_any_case(b"ut"));
        let exact = QueryPattern::new(b"gclid");
        assert!(exact.matches(b"gclid") && !exact.matches(b"gclid2") && !exact.matches(b""));
    }

    #[test]
    fn only_the_local_machine_may_purge_by_default() {
        let mut page = PageCache::default();
        let ip = |text: &str| text.parse().ok();
        let may = |page: &PageCache, client, peer| {
            page.may_purge(client, peer, HandedOn::No) == Purger::Welcome
        };
        let from = |text: &str| may(&page, ip(text), ip(text));
        assert!(from("127.0.0.1") && from("127.8.0.1") && from("::1") && may(&page, None, None));
        assert!(!from("10.0.0.1") && !from("::2"));
        assert!(!may(&page, ip("127.0.0.1"), ip("10.0.0.1")));
        assert!(!may(&page, ip("10.0.0.1"), ip("127.0.0.1")));
        let behind = |page: &PageCache, client| page.may_purge(ip(client), None, HandedOn::Yes);
        assert_eq!(behind(&page, "127.0.0.1"), Purger::Unknown);
        assert_eq!(behind(&page, "10.0.0.1"), Purger::Stranger);
        page.purge_allow = Some(Arc::default());
        assert!(!may(&page, None, None));
        page.purge_allow = Some(Arc::new(this_machine().to_vec()));
        assert_eq!(behind(&page, "127.0.0.1"), Purger::Welcome, "whoever wrote it knows");
        assert!(!is_allowed(&[], None));
    }

    #[test]
    fn memory_is_a_quarter_within_bounds() {
        let store = PageStore::default();
        assert_eq!(store.memory_limit(8 << 30), 2 << 30);
        assert_eq!(store.memory_limit(1 << 40), 4 << 30);
        assert_eq!(PageStore { memory: Some(5), ..store }.memory_limit(1 << 30), 5);
    }
}
