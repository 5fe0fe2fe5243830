//! What the caches do for a request: the page cache and nginx's zones (RFC 9111).
//!
//! [`CacheTransaction`] is what one exchange knows of them, from the key to the answer. The rest of
//! the engine asks it few things: `look_up_cached` before an upstream server is asked,
//! `begin_fill` when it is, `stale_if_error` when it fails, `serve_kept` to answer. Keys are made
//! in `identity` alone; what may be stored is decided in `fill`.

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
mod policy;
pub(crate) mod purge;
pub(crate) mod request_cache_control;
pub(crate) mod revalidate;
pub(crate) mod shortcut;
mod transaction;
pub(crate) mod zone;

pub(crate) use arrival::{InternalRedirect, RequestArrival, varying_origin};
pub(crate) use policy::{CacheNamespaces, CacheSpace, Caching, STALE_FOR_EVER, StaleCause};
pub use transaction::Recalled;
pub(crate) use transaction::{CacheReason, CacheTransaction, StoreIntent, UpstreamCacheStatus};
