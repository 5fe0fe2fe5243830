//! What answers a request: files, `return`, listings, error pages, origins.

mod admin;
pub(crate) mod allow;
mod bind;
pub(crate) mod cdn_cache_control;
pub(crate) mod confine;
pub(crate) mod disk_lookup;
pub(crate) mod error;
pub(crate) mod esi;
pub(crate) mod file;
pub(crate) mod listing;
pub(crate) mod no_vary_search;
pub(crate) mod page;
pub(crate) mod params;
pub(crate) mod parts;
pub(crate) mod pass;
mod pixel;
pub(crate) mod proxied;
pub(crate) mod purge;
pub(crate) mod request_cache_control;
pub(crate) mod returned;
pub(crate) mod revalidate;
pub(crate) mod shortcut;
pub(crate) mod static_answer;
pub(crate) mod upstream_tls;
pub(crate) mod zone;
