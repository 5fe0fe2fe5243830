//! The compiled cache directives of a location: the policy for the rules, and the namespace.
//!
//! Owns the translation of directives into the policy of `bolide_cache::rules`. It knows no store
//! but the site's own.

use std::collections::{HashMap, HashSet};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Arc, Mutex, PoisonError};

use bolide_cache::disk::{DiskSite, DiskTree, DiskTreeSettings, ZONE};
use bolide_cache::rules::magento::{ERROR_SECONDS, STALE_SECONDS};
use bolide_cache::rules::{
    self, CachePolicy, Heuristic, Ignore, Mode, StoreDecision, Valid, Valids,
};
use bolide_cache::{NamespaceId, Object, Store};
use bolide_conf::Template;
use bolide_conf::model::{
    self, CacheSettings, CacheZone, Http, LocationId, PageCache, PageMode, VaryBy, ZoneUse,
};
use bolide_http::FieldMap;
use bolide_upstream::Cause;

use crate::caching::fill::fields_of;
use crate::caching::reach::{KeyText, SiteReach, query_rules_of};
use crate::caching::server_addresses::{address_texts, names_in_keys, origins};

/// LIMIT: keys whose uses are counted for `fastcgi_cache_min_uses`.
const USES_MAX: usize = 65_536;
/// How long an object of a zone is stored after its expiry, for stale use and revalidation: until
/// it is evicted. 136 years, so that this holds even if it expired in 1970.
pub(crate) const STALE_FOR_EVER: u32 = u32::MAX;

/// The failure that a stale object may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StaleCause {
    /// A response with this status.
    Status(u16),
    /// No response.
    Failed(Cause),
}

/// The use of a stale response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ControlTarget {
    Updating,
    Errors,
}

/// The namespace of a location.
#[derive(Debug)]
pub(crate) enum CacheSpace {
    /// A `fastcgi_cache_path` or its kin.
    Zone(usize),
    /// The zone that a text with variables names.
    Named(Template),
    /// The server's page cache.
    Page,
}

/// A location that caches responses.
#[derive(Debug)]
pub(crate) struct Caching {
    /// The directives as configured.
    pub(crate) conf: Arc<CacheSettings>,
    /// The same for the rules.
    pub(crate) policy: CachePolicy,
    /// The namespace of its objects.
    pub(crate) space: CacheSpace,
    /// Whether HEAD is fetched as GET, so that the response can be stored.
    pub(crate) converts_head: bool,
    uses: Mutex<HashMap<u128, u32>>,
}

impl Caching {
    /// Compiles `settings`; none if nothing is cached.
    pub(crate) fn new(settings: &model::LocationSettings) -> Option<Self> {
        let conf = &settings.cache;
        let space = match &conf.zone {
            ZoneUse::Zone(id) => CacheSpace::Zone(id.index()),
            ZoneUse::Text(text) => CacheSpace::Named(text.clone()),
            ZoneUse::Off if conf.page.mode != PageMode::Off || conf.page.accepts_purges => {
                CacheSpace::Page
            }
            ZoneUse::Off => return None,
        };
        let policy = match space {
            CacheSpace::Page => page_policy(settings),
            CacheSpace::Zone(_) | CacheSpace::Named(_) => zone_policy(settings),
        };
        let converts_head =
            !matches!(space, CacheSpace::Page) && settings.origin.proxy.convert_head;
        let conf = conf.clone();
        Some(Self { conf, policy, space, converts_head, uses: Mutex::default() })
    }

    /// Whether it is the page cache.
    pub(crate) const fn is_page(&self) -> bool {
        matches!(self.space, CacheSpace::Page)
    }

    /// What keys of this location say about URLs.
    pub(super) fn key_text(&self, was_narrow: bool) -> KeyText {
        let needs_url_tag = self.is_page() && self.conf.page.key.is_some();
        KeyText { needs_url_tag, was_narrow: was_narrow && self.is_page() }
    }

    /// Whether responses keep their original `Date` and have an `Age`.
    pub(crate) const fn sends_age(&self) -> bool {
        self.is_page() && !self.is_magento() || self.policy.is_strict
    }

    /// Whether `old` is served in place of this failure.
    pub(crate) fn may_serve_stale(&self, old: &Object, trouble: StaleCause, now_ms: u64) -> bool {
        if self.is_page() {
            // RFC 5861 §4: these statuses are failures.
            let is_failure = match trouble {
                StaleCause::Status(status) => matches!(status, 500 | 502 | 503 | 504),
                StaleCause::Failed(_) => true,
            };
            return is_failure && now_ms < old.times().error_until_ms();
        }
        let stale = &self.conf.use_stale;
        let is_covered = match trouble {
            // As in nginx, the response's own directive applies to missing responses only.
            StaleCause::Status(status) => return stale.covers(status),
            StaleCause::Failed(Cause::Error) => stale.error,
            StaleCause::Failed(Cause::Timeout) => stale.timeout,
            StaleCause::Failed(Cause::InvalidHead) => stale.invalid_header,
            StaleCause::Failed(Cause::Busy) => stale.error || stale.http_503,
            // As in nginx, this is no failure of an upstream server.
            StaleCause::Failed(Cause::Unresolved) => return false,
        };
        is_covered || now_ms < self.said_until(old, ControlTarget::Errors)
    }

    /// Whether `old` is served while it is being revalidated.
    pub(crate) fn serves_updating(&self, old: &Object, now_ms: u64) -> bool {
        self.conf.use_stale.updating || now_ms < self.said_until(old, ControlTarget::Updating)
    }

    /// Whether `old` can be revalidated.
    pub(crate) fn can_revalidate(&self, old: &Object) -> bool {
        let has_validator = old.etag().is_some() || old.last_modified().is_some();
        match self.is_page() {
            _ if old.is_disowned() => false,
            true => self.conf.revalidate || has_validator && old.status() == 200,
            // As in nginx, validators of other statuses are not stored.
            false => self.conf.revalidate && matches!(old.status(), 200 | 206),
        }
    }

    /// Whether a 304 is about `old`.
    pub(crate) fn is_about(&self, old: &Object, confirmation: &FieldMap) -> bool {
        let kept = fields_of(old);
        let hears_lscache = self.is_page() && !self.is_magento();
        rules::is_same(old.etag(), old.last_modified(), confirmation)
            && (self.policy.ignore.vary || !rules::varies_by_more(&kept, confirmation))
            && !(hears_lscache && rules::is_keyed_by_more(&kept, confirmation))
    }

    /// Until when the response itself permits stale use (RFC 5861).
    fn said_until(&self, old: &Object, what: ControlTarget) -> u64 {
        if self.policy.ignore.cache_control {
            return 0;
        }
        let mut fields = FieldMap::new();
        old.fields(&mut fields);
        let (updating, errors) = rules::grace(&fields);
        let seconds = match what {
            ControlTarget::Updating => updating,
            ControlTarget::Errors => errors,
        };
        let millis = u64::from(seconds) * 1000;
        old.times().expires_ms.saturating_add(millis)
    }

    /// Counts a use of a key; returns whether it was used often enough to be stored.
    pub(crate) fn count_use(&self, key: u128) -> bool {
        if self.conf.min_uses <= 1 {
            return true;
        }
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if uses.len() >= USES_MAX {
            uses.clear();
        }
        let count = uses.entry(key).or_insert(0);
        debug_assert!(*count < u32::MAX, "uses are forgotten before they overflow");
        *count += 1;
        *count >= self.conf.min_uses
    }

    /// The result that [`Self::count_use`] would have, without counting.
    pub(crate) fn would_keep(&self, key: u128) -> bool {
        let uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        uses.get(&key).copied().unwrap_or(0) + 1 >= self.conf.min_uses
    }
}

impl Caching {
    /// Whether it follows Magento's rules.
    pub(crate) const fn is_magento(&self) -> bool {
        matches!(self.policy.mode, Mode::Magento)
    }

    /// Sets how long a page may be served stale.
    pub(super) fn set_grace(&self, decision: &mut StoreDecision) {
        let page = &self.conf.page;
        let (stale, error) = match page.has_stale {
            true => (seconds(page.stale), seconds(page.stale_error)),
            false => (STALE_SECONDS, ERROR_SECONDS),
        };
        decision.stale_while_revalidate = stale;
        decision.stale_if_error = error;
    }
}

fn seconds(time: std::time::Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

fn ignored(settings: &model::LocationSettings) -> Ignore {
    let ignored = settings.origin.ignore_headers;
    Ignore {
        accel_expires: ignored.accel_expires,
        expires: ignored.expires,
        cache_control: ignored.cache_control,
        set_cookie: ignored.set_cookie,
        vary: ignored.vary,
    }
}

fn valids(lines: &[model::CacheValid]) -> Valids {
    let valid = |line: &model::CacheValid| Valid {
        statuses: line.status.into_iter().collect(),
        seconds: seconds(line.time),
    };
    Valids(lines.iter().map(valid).collect())
}

fn zone_policy(settings: &model::LocationSettings) -> CachePolicy {
    let conf = &settings.cache;
    CachePolicy {
        mode: Mode::Zone,
        valid: valids(&conf.valid),
        ignore: ignored(settings),
        object_max: u64::MAX,
        with_post: conf.methods.post,
        with_ranges: conf.key.as_ref().is_some_and(Template::follows_range),
        is_strict: conf.rfc9111,
        private: false,
        esi: false,
        invalidates: false,
        ..CachePolicy::default()
    }
}

fn page_policy(settings: &model::LocationSettings) -> CachePolicy {
    let page = &settings.cache.page;
    let cookie = |by: &VaryBy| match by {
        VaryBy::Cookie(name) => Some(Box::from(&**name)),
        VaryBy::Cookies(_) | VaryBy::Value(_) | VaryBy::Header(_) => None,
    };
    // Private parts are fetched by scripts of the page, and purged by tags only.
    let is_magento = page.mode == PageMode::Magento;
    CachePolicy {
        invalidates: !is_magento,
        mode: match page.mode {
            PageMode::Off | PageMode::Auto => Mode::Auto,
            PageMode::On => Mode::LsCache,
            PageMode::Magento => Mode::Magento,
        },
        private: page.private && !is_magento,
        ttl: seconds(page.default_ttl),
        private_ttl: seconds(page.default_ttl),
        max_stale: seconds(page.stale),
        valid: valids(&page.valid),
        heuristic: page
            .heuristic
            .map(|guess| Heuristic { percent: guess.percent, max: seconds(guess.max) }),
        ignore: ignored(settings),
        object_max: page.max_object,
        honour_request: page.respect_request,
        esi: page.esi,
        query: query_rules_of(page),
        vary_cookies: page.vary.iter().filter_map(cookie).collect(),
        ..CachePolicy::default()
    }
}

/// The identity of a server's pages across reloads. The same name and the same files make the same
/// site, over HTTP and HTTPS: a purge in one applies to the other.
fn site_name(http: &Http, server: &model::ServerConf) -> String {
    let root = &http.location(server.root).settings.root;
    let name = server.names.first().map(ToString::to_string).unwrap_or_default();
    format!("page:{name} {:?}", root.path)
}

/// Whether a location, or one nested in it, has such settings of the page cache.
fn has_pages(http: &Http, id: LocationId, are_meant: fn(&PageCache) -> bool) -> bool {
    let location = http.location(id);
    are_meant(&location.settings.cache.page)
        || location.nested.iter().any(|inner| has_pages(http, *inner, are_meant))
}

/// Whether a location of the page cache follows Magento's rules.
fn is_magento(page: &PageCache) -> bool {
    page.mode == PageMode::Magento
}

/// Whether purges of applications and clients reach the page cache.
fn takes_purges(page: &PageCache) -> bool {
    page.mode != PageMode::Off || page.accepts_purges
}

/// The store of a site, and its namespaces.
#[derive(Debug)]
pub(crate) struct CacheNamespaces {
    pub(crate) store: Arc<Store>,
    /// The namespaces of zones.
    pub(crate) zones: Vec<NamespaceId>,
    /// The namespaces of servers.
    pub(crate) pages: Vec<NamespaceId>,
    /// Those of servers without a name: another node may have another site there.
    own_to_node: Vec<NamespaceId>,
    /// The namespaces whose pages purges reach.
    attended: HashSet<NamespaceId>,
    /// The names of servers in keys.
    pub(crate) servers: Vec<Arc<str>>,
    /// What URLs are in the keys of each namespace.
    reach: HashMap<NamespaceId, SiteReach>,
    /// The namespaces of servers with `magento_cache`; a purge of Magento reaches all of them.
    pub(crate) magento: Vec<NamespaceId>,
    /// The disk tree of the page cache.
    pub(crate) page_tree: Option<Arc<DiskTree>>,
    /// All disk trees, with their namespaces.
    pub(crate) trees: Vec<(DiskTreeSettings, Arc<DiskTree>, Vec<NamespaceId>)>,
}

impl CacheNamespaces {
    /// Finds or creates the namespaces of `http` in `store`.
    pub(crate) fn new(http: &Http, store: Arc<Store>) -> Self {
        let zone = |zone: &CacheZone| store.namespace(&[ZONE, zone.name.as_bytes()].concat());
        let zones: Vec<_> = http.cache_zones.iter().map(zone).collect();
        let unnamed = http.servers.iter().filter(|server| server.primary_name.is_empty()).count();
        let texts = if unnamed > 1 { address_texts(http) } else { Vec::new() };
        let mut own_to_node = Vec::new();
        let pages = http.servers.iter().enumerate().map(|(at, server)| {
            // Two servers without a name may be different sites: their addresses distinguish them.
            match texts.get(at).filter(|_| server.primary_name.is_empty()) {
                Some(text) => {
                    let own = store.namespace(format!("page:{text}").as_bytes());
                    own_to_node.push(own);
                    own
                }
                None => store.namespace(site_name(http, server).as_bytes()),
            }
        });
        let pages: Vec<_> = pages.collect();
        let servers = names_in_keys(http, &pages);
        let reach = SiteReach::of_all(http, &pages, origins(http, &pages, &servers));
        let sites = http.servers.iter().zip(&pages);
        let attended =
            sites.clone().filter(|(server, _)| has_pages(http, server.root, takes_purges));
        let attended = attended.map(|(_, id)| *id).collect();
        let magento = sites.filter(|(server, _)| has_pages(http, server.root, is_magento));
        let mut magento: Vec<_> = magento.map(|(_, id)| *id).collect();
        magento.sort_unstable();
        magento.dedup();
        let mut trees = Vec::new();
        for (zone, id) in http.cache_zones.iter().zip(&zones) {
            let settings = DiskTreeSettings {
                root: zone.path.as_os_str().as_bytes().into(),
                levels: zone.levels.as_slice().into(),
                max_size: zone.max_size.unwrap_or(0),
                inactive: zone.inactive.as_secs(),
                min_free: zone.min_free,
            };
            let tree = store.disk().tree(&settings);
            trees.push((settings, tree, vec![*id]));
        }
        let page_tree = http.page_store.path.as_ref().map(|path| {
            let settings = DiskTreeSettings {
                root: path.as_os_str().as_bytes().into(),
                levels: http.page_store.levels.as_slice().into(),
                max_size: http.page_store.max_size.unwrap_or(0),
                inactive: http.page_store.inactive.as_secs(),
                min_free: 0,
            };
            let tree = store.disk().tree(&settings);
            trees.push((settings, Arc::clone(&tree), pages.clone()));
            tree
        });
        Self {
            store,
            zones,
            pages,
            own_to_node,
            attended,
            servers,
            reach,
            magento,
            page_tree,
            trees,
        }
    }

    /// Sets the limits of the namespaces. They are shared with the configuration in force, so this
    /// one has replaced it.
    pub(crate) fn limit(&self, http: &Http) {
        for (zone, id) in http.cache_zones.iter().zip(&self.zones) {
            self.store.namespaces().set_limit(*id, zone.max_size.unwrap_or(0));
        }
        self.own_to_node.iter().for_each(|id| self.store.namespaces().keep_here(*id));
    }

    /// Purges the pages that purges reach now, but did not where `last` was in force: what was
    /// missed is not known. Purges of URLs missed the pages whose keys had other URLs. Exchanges
    /// that go on with `last` may store such pages even now, so URLs that come back count as well.
    pub(crate) fn purge_unattended(&self, last: Option<&Self>) {
        let was_left = |id: &&NamespaceId| {
            last.is_none_or(|last| {
                !last.attended.contains(id) || last.reach(**id).text() != self.reach(**id).text()
            })
        };
        for id in self.attended.iter().filter(was_left) {
            bolide_cache::purge_here(&self.store, *id);
        }
        if let Some(tree) = &self.page_tree {
            tree.record_sites(&self.disk_sites());
        }
    }

    /// The sites whose purges reach the files of pages.
    pub(crate) fn disk_sites(&self) -> Vec<DiskSite> {
        let site = |id: &NamespaceId| DiskSite {
            name: self.store.namespaces().name(*id).unwrap_or_default().into(),
            reach: self.reach(*id).text(),
        };
        self.attended.iter().map(site).collect()
    }

    /// What URLs are in the keys of a namespace; nothing for a zone.
    pub(crate) fn reach(&self, namespace: NamespaceId) -> &SiteReach {
        static NONE: SiteReach = SiteReach::none();
        self.reach.get(&namespace).unwrap_or(&NONE)
    }
}
