//! What is kept of answers: nginx's `fastcgi_cache*` with its zones, and the page cache that the
//! application drives.

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
    /// `use_temp_path`: whether files are made in `fastcgi_temp_path` and moved.
    pub use_temp_path: bool,
    /// `inactive`: what was not asked for this long goes.
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

/// How fast work on a zone goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachePace {
    /// Files in one go.
    pub files: u32,
    /// The pause after it.
    pub sleep: Duration,
    /// The longest that one go takes.
    pub threshold: Duration,
}

/// What a location keeps of answers, nothing left to inherit.
///
/// The page cache ([`PageCache`]) and a zone ([`ZoneUse`]) are two spellings for one store; where
/// both are on, the zone answers.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheSettings {
    /// `fastcgi_cache`
    pub zone: ZoneUse,
    /// `fastcgi_cache_key`; none, when it was not written, is that of [`PageCache::key`].
    pub key: Option<Template>,
    /// `fastcgi_cache_valid`: the first that fits an answer's status holds.
    pub valid: Arc<Vec<CacheValid>>,
    /// `fastcgi_cache_methods`
    pub methods: CacheMethods,
    /// `fastcgi_cache_min_uses`: asked for so often before it is kept.
    pub min_uses: u32,
    /// `fastcgi_cache_bypass`: not answered from the cache when one is neither empty nor `0`.
    pub bypass: Arc<Vec<Template>>,
    /// `fastcgi_no_cache`: not kept when one is neither empty nor `0`.
    pub no_cache: Arc<Vec<Template>>,
    /// `fastcgi_cache_lock`
    pub lock: bool,
    /// `fastcgi_cache_lock_age`: after which another one may ask the origin.
    pub lock_age: Duration,
    /// `fastcgi_cache_lock_timeout`: after which one that waited asks, and keeps nothing.
    pub lock_timeout: Duration,
    /// `fastcgi_cache_use_stale`
    pub use_stale: UseStale,
    /// `fastcgi_cache_background_update`
    pub background_update: bool,
    /// `fastcgi_cache_revalidate`
    pub revalidate: bool,
    /// `fastcgi_cache_max_range_offset`: ranges that begin behind it are not cached; none is no
    /// limit.
    pub max_range_offset: Option<u64>,
    /// `fastcgi_cache_purge`
    pub purge: CachePurge,
    /// `cache_rfc9111`: whether zones keep RFC 9111 where nginx does not.
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
    /// A text with variables: the name of a zone; `off` and the empty text are none.
    Text(Template),
}

/// One status of a `fastcgi_cache_valid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheValid {
    /// The status; none is `any`.
    pub status: Option<u16>,
    /// How long it is fresh; zero is not kept.
    pub time: Duration,
}

/// A `fastcgi_cache_methods`; GET and HEAD are always in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheMethods {
    /// `POST`
    pub post: bool,
}

/// A `fastcgi_cache_use_stale`: when an old answer is better than none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UseStale {
    /// `error`
    pub error: bool,
    /// `timeout`
    pub timeout: bool,
    /// `invalid_header`
    pub invalid_header: bool,
    /// `updating`: while somebody fetches a new one.
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
    /// Whether an old answer stands in for one of this status.
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

/// A `fastcgi_cache_purge`, in any of the three spellings that are about.
#[derive(Clone, Debug, PartialEq)]
pub enum CachePurge {
    /// Nothing is purged.
    Off,
    /// `fastcgi_cache_purge TEXT…`: a request is a purge of its own key when a text is neither
    /// empty nor `0`. A key that ends in `*` names all keys with that beginning.
    When(Arc<Vec<Template>>),
    /// `fastcgi_cache_purge METHOD [from ADDRESS…]`: a request of this method is a purge of the key
    /// that it would have as a GET; `on` is `PURGE`.
    Method {
        /// The method.
        method: Arc<[u8]>,
        /// Who may; the first that fits holds, others may not.
        from: Arc<Vec<AccessRule>>,
    },
    /// `fastcgi_cache_purge ZONE KEY`: every request to the location purges this key.
    Key {
        /// Whose keys.
        zone: CacheZoneId,
        /// Which one.
        key: Template,
    },
}

/// `page_cache*`: the cache that the application drives.
#[derive(Clone, Debug, PartialEq)]
pub struct PageCache {
    /// `page_cache`
    pub mode: PageMode,
    /// Whether it is on around a block where it is off: what applications purge there counts.
    pub is_heard: bool,
    /// `page_cache_lookup`
    pub lookup: PageScopes,
    /// `page_cache_private`: whether answers for one session are kept.
    pub private: bool,
    /// `page_cache_default_ttl`: of an answer that says nothing; only in [`PageMode::On`], or when
    /// the application says that an answer may be kept but not how long.
    pub default_ttl: Duration,
    /// `page_cache_max_ttl`: whatever an answer says; none is no limit.
    pub max_ttl: Option<Duration>,
    /// `page_cache_valid`: how long answers are fresh that do not say.
    pub valid: Arc<Vec<CacheValid>>,
    /// `page_cache_heuristic`
    pub heuristic: Option<Guess>,
    /// `page_cache_max_object`: the largest body in bytes.
    pub max_object: u64,
    /// `page_cache_stale`: how long after its time an answer still serves while a new one is
    /// fetched, where the answer does not say.
    pub stale: Duration,
    /// Whether configuration says so; unsaid, it holds only for answers that speak LSCache or whose
    /// lifetime is the configuration's.
    pub says_stale: bool,
    /// `page_cache_stale … error=`: the same, when none can be fetched.
    pub stale_error: Duration,
    /// `page_cache_control`: words that hold for a request and for an answer that says nothing.
    pub control: Arc<Vec<Template>>,
    /// `page_cache_vary`
    pub vary: Arc<Vec<VaryBy>>,
    /// `page_cache_drop_query`
    pub drop_query: Arc<DropQuery>,
    /// `page_cache_key`; none is scheme, host, port, path and query.
    pub key: Option<Template>,
    /// `page_cache_bypass`: neither looked up nor kept when one is neither empty nor `0`.
    pub bypass: Arc<Vec<Template>>,
    /// `page_cache_purge_allow`: who may PURGE and REFRESH; the first that fits holds. Where it is
    /// not written, the machine itself: see [`Self::may_purge`].
    pub purge_allow: Option<Arc<Vec<AccessRule>>>,
    /// `page_cache_purge_uri`: the path where a request's `X-LiteSpeed-Purge` is carried out.
    pub purge_uri: Option<Arc<[u8]>>,
    /// `page_cache_esi`: whether pages that ask for it are assembled.
    pub esi: bool,
    /// `page_cache_crawler`: whether applications are told that they may warm the cache.
    pub crawler: bool,
    /// `page_cache_autoflush`: whether a POST drops what is kept for its session.
    pub autoflush: bool,
    /// `page_cache_status_header`
    pub status_header: StatusHeader,
    /// `cache_status`: the name in `Cache-Status` (RFC 9211); none sends none. It is about zones as
    /// well.
    pub cache_status: Option<Arc<str>>,
    /// `page_cache_trusted`: front ends whose `X-LSCACHE` is believed, and which get the fields
    /// that clients do not.
    pub trusted: Arc<Vec<AccessRule>>,
    /// `page_cache_respect_request`: whether a request's `Cache-Control` and `Pragma` hold.
    pub respect_request: bool,
    /// `page_cache_session`: cookies that name a session, the first one that is there holds.
    pub session: Arc<Vec<QueryPattern>>,
    /// `page_cache_preset`: what is never cached, whatever an answer says.
    pub never: Option<Arc<NeverCached>>,
    /// `CacheEnable`, `CacheDisable`: the last whose path a request's begins with holds.
    pub prefixes: Arc<Vec<PagePrefix>>,
    /// `lscache_compat litespeed`: whether `SERVER_SOFTWARE` is `LiteSpeed` for applications.
    pub is_litespeed: bool,
    /// `LiteMage on`: whether applications get `X-LITEMAGE`.
    pub litemage: bool,
}

/// How long a page with `Last-Modified` is fresh that does not say (RFC 9111 §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guess {
    /// Part of the time since it was changed, in per cent; 1 to 100.
    pub percent: u8,
    /// At most.
    pub max: Duration,
}

/// `page_cache`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageMode {
    /// Nothing is cached.
    Off,
    /// Only what the application says may be cached by a shared cache, with `X-LiteSpeed-Cache-
    /// Control`, `Surrogate-Control`, `CDN-Cache-Control`, or a lifetime in `Cache-Control` or
    /// `Expires`.
    Auto,
    /// Also what says nothing, for `page_cache_default_ttl`.
    On,
}

/// Which answers are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageScopes {
    /// Those for everybody.
    pub public: bool,
    /// Those for one session.
    pub private: bool,
}

/// What a key has beside the address.
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

/// Which arguments do not count for a key.
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

    /// Whether `text` is meant; letters of either case are different.
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        if self.is_prefix { text.starts_with(&self.text) } else { *text == *self.text }
    }

    /// Whether `text` is meant in any case.
    #[must_use]
    pub fn matches_in_any_case(&self, text: &[u8]) -> bool {
        let text = if self.is_prefix { text.get(..self.text.len()) } else { Some(text) };
        text.is_some_and(|text| text.eq_ignore_ascii_case(&self.text))
    }
}

/// A request or answer that has one of these is not cached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NeverCached {
    /// Cookies of the request.
    pub cookies: Vec<QueryPattern>,
    /// Paths of the request, as asked for.
    pub paths: Vec<QueryPattern>,
    /// Arguments of the request.
    pub args: Vec<QueryPattern>,
}

impl NeverCached {
    /// Whether a path is meant, wherever the application's directory is: what is said of `/cart` is
    /// said of `/shop/cart`.
    #[must_use]
    pub fn covers_path(&self, path: &[u8]) -> bool {
        let slashes = (0..path.len()).filter(|at| path[*at] == b'/');
        slashes.map(|at| &path[at..]).any(|rest| self.paths.iter().any(|one| one.matches(rest)))
    }

    /// Whether a cookie of the request is meant.
    #[must_use]
    pub fn covers_cookie(&self, name: &[u8]) -> bool {
        self.cookies.iter().any(|one| one.matches_in_any_case(name))
    }

    /// Whether an argument of the request is meant.
    #[must_use]
    pub fn covers_arg(&self, name: &[u8]) -> bool {
        self.args.iter().any(|one| one.matches(name))
    }
}

/// A `CacheEnable` or `CacheDisable`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagePrefix {
    /// What a request's path begins with.
    pub path: Box<[u8]>,
    /// Which answers are meant.
    pub scopes: PageScopes,
    /// Whether they are cached.
    pub enabled: bool,
}

/// How clients learn what the page cache did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusHeader {
    /// Not at all.
    Off,
    /// `X-Cache: HIT`, `MISS`, `STALE`, `BYPASS`
    XCache,
    /// `X-LiteSpeed-Cache: hit`, `hit,private`, `miss`
    LiteSpeed,
}

/// Where the page cache keeps answers: one for all servers.
#[derive(Clone, Debug, PartialEq)]
pub struct PageStore {
    /// `page_cache_path`: the directory; none keeps answers in memory only.
    pub path: Option<PathBuf>,
    /// `max_size=`: bytes on disk; none is no limit but the disk's.
    pub max_size: Option<u64>,
    /// `levels=`: as of a zone.
    pub levels: Vec<u8>,
    /// `inactive=`: what was not asked for this long goes from disk.
    pub inactive: Duration,
    /// `page_cache_memory`, or `memory=`: bytes in memory, of zones as well; none is by the
    /// machine's.
    pub memory: Option<u64>,
}

impl PageStore {
    /// How many bytes answers may take in memory, on a machine of `ram` bytes.
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
        }
    }
}

impl PageCache {
    /// Whether a client may purge whose connection comes from `peer`; none stands for a unix
    /// socket. A configured list is matched against the client's address. Without one, the client
    /// and its connection must both be of this machine, and no proxy may have forwarded the request
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

/// The client of a `PURGE`, as the rules judge it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purger {
    /// The client may purge.
    Welcome,
    /// The client may not purge.
    Stranger,
    /// A proxy on this machine forwarded the request: the client is unknown.
    Unknown,
}

/// Clients on the machine itself.
fn this_machine() -> [AccessRule; 3] {
    use super::access::Network;
    use std::net::{Ipv4Addr, Ipv6Addr};
    let v4 = Network::V4(Ipv4Addr::new(127, 0, 0, 0), Ipv4Addr::new(255, 0, 0, 0));
    let v6 = Network::V6(Ipv6Addr::LOCALHOST, Ipv6Addr::from_bits(u128::MAX));
    [Who::Network(v4), Who::Network(v6), Who::Unix]
        .map(|who| AccessRule { who, verdict: AccessVerdict::Allow })
}

/// Whether `rules` let a client in: `ip` is none over a unix socket. Without a rule that fits, no.
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
    fn only_the_machine_itself_may_purge_unless_told_otherwise() {
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
