//! What answers a request: files, `return`, listings, error pages, origins, changes of files.

pub(crate) mod admin;
pub(crate) mod allow;
pub(crate) mod bind;
pub(crate) mod climbs;
pub(crate) mod confine;
pub(crate) mod dav;
pub(crate) mod early_hints;
pub(crate) mod error;
pub(crate) mod esi;
pub(crate) mod file;
mod flv;
pub(crate) mod listing;
pub(crate) mod memcached;
mod metrics;
mod mp4;
pub(crate) mod params;
pub(crate) mod parts;
pub(crate) mod pass;
pub(crate) mod pixel;
pub(crate) mod proxied;
mod random_index;
pub(crate) mod returned;
pub(crate) mod search;
pub(crate) mod static_answer;
pub(crate) mod store;
pub(crate) mod target;
pub(crate) mod upstream_tls;
