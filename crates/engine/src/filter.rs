//! What happens to an answer between its content and the wire: ranges, codings, fields.
//!
//! Filters compute; they neither wait nor act.

pub(crate) mod accel;
pub(crate) mod body;
pub(crate) mod charset;
pub(crate) mod compress;
pub(crate) mod edits;
pub(crate) mod esi;
pub(crate) mod headers;
pub(crate) mod passed_fields;
pub(crate) mod proxied;
pub(crate) mod slice;
mod trailers;
mod tunnel;
pub(crate) mod upstream_response;
pub(crate) mod user_id;
