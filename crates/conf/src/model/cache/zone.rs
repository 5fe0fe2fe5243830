//! The zones of nginx's `fastcgi_cache_path`, and the settings for their use.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::model::SourcePlace;
use crate::model::access::AccessRule;
use crate::vars::Template;

/// An index into [`crate::model::Http::cache_zones`].
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
    pub place: SourcePlace,
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
