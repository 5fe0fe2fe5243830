//! What happens to an answer between its content and the wire: ranges, codings, fields.
//!
//! Filters compute; they neither wait nor act.

pub(crate) mod cache_status;
pub(crate) mod cached_response;
mod coded_form;
pub(crate) mod compress;
pub(crate) mod esi;
pub(crate) mod headers;
mod hit_memo;
mod preconditions;
pub(crate) mod proxied;
pub(crate) mod range;
mod rework;
mod trailers;
mod tunnel;
pub(crate) mod upstream_response;
