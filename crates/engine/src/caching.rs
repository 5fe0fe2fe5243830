//! The caches from the view of a request: the page cache and nginx's cache zones (RFC 9111).
//!
//! [`CacheTransaction`] is the cache state of one exchange, from the key to the response. Its entry
//! points: `look_up_cached` before the upstream request, `begin_fill` with it, `stale_if_error`
//! when it fails, `serve_kept` to send a cached object. Only `identity` builds keys; `fill` decides
//! what is stored.

mod arrival;
pub(crate) mod cache_status;
pub(crate) mod cached_response;
pub(crate) mod cdn_cache_control;
mod coded_form;
pub(crate) mod disk_lookup;
pub(crate) mod fill;
pub(crate) mod fronts;
pub(crate) mod hit_memo;
pub(crate) mod identity;
pub(crate) mod lookup;
pub(crate) mod magento;
pub(crate) mod no_vary_search;
mod parts;
mod policy;
pub(crate) mod purge;
pub(crate) mod reach;
pub(crate) mod request_cache_control;
pub(crate) mod revalidate;
mod selectors;
mod server_addresses;
pub(crate) mod shortcut;
mod transaction;
pub(crate) mod zone;

pub(crate) use arrival::{InternalRedirect, RequestArrival, varying_origin};
pub(crate) use policy::{CacheNamespaces, CacheSpace, Caching, STALE_FOR_EVER, StaleCause};
pub(crate) use selectors::SentTexts;
pub use transaction::Recalled;
pub(crate) use transaction::{CacheReason, CacheTransaction, StoreIntent, UpstreamCacheStatus};
