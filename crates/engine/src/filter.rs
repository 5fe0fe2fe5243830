//! What happens to an answer between its content and the wire: ranges, codings, fields.
//!
//! Filters compute; they neither wait nor act.

pub(crate) mod accel;
pub(crate) mod compress;
pub(crate) mod esi;
mod form;
pub(crate) mod headers;
pub(crate) mod kept;
pub(crate) mod proxied;
pub(crate) mod range;
mod rework;
pub(crate) mod told;
mod trailers;
mod tunnel;
mod warm;
mod weigh;
