//! Caching of responses: nginx's `fastcgi_cache*` with its zones, and the page cache that the
//! application controls.

mod page;
mod purge_access;
mod zone;

use std::sync::Arc;
use std::time::Duration;

use crate::vars::Template;
pub use page::{
    DropQuery, HeuristicFreshness, NeverCached, PageCache, PageMode, PagePrefix, PageScopes,
    PageStore, QueryPattern, StatusHeader, VaryBy,
};
pub use purge_access::{ForwardedByProxy, PurgeAccess, is_allowed};
pub use zone::{
    CacheMethods, CachePace, CachePurge, CacheValid, CacheZone, CacheZoneId, UseStale, ZoneUse,
};

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
