//! What answers a request: files, `return`, listings, error pages, origins.

mod admin;
pub(crate) mod allow;
mod bind;
pub(crate) mod confine;
pub(crate) mod confirm;
pub(crate) mod controls;
pub(crate) mod error;
pub(crate) mod esi;
pub(crate) mod file;
pub(crate) mod listing;
pub(crate) mod origin;
pub(crate) mod page;
pub(crate) mod params;
pub(crate) mod parts;
mod pixel;
pub(crate) mod proxied;
pub(crate) mod purge;
pub(crate) mod recall;
pub(crate) mod returned;
pub(crate) mod search;
pub(crate) mod secured;
pub(crate) mod sent;
pub(crate) mod shortcut;
pub(crate) mod wishes;
pub(crate) mod zone;
