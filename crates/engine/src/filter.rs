//! Processing of a response between its content handler and the framing: ranges, codings, fields.
//!
//! Filters compute; they never wait and cause no effects.

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
pub(crate) mod tunnel;
pub(crate) mod upstream_response;
pub(crate) mod user_id;
