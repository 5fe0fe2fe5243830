//! HPACK, the field compression of HTTP/2 (RFC 7541), both directions.
//!
//! Owns the code tables, the dynamic tables and their synchronisation. It does not validate
//! requests: it passes fields to a [`Sink`], with the traits of their characters.

pub mod decode;
pub mod encode;
pub mod huffman;
pub mod prefix;
pub mod statics;
pub mod table;

pub use crate::Traits;
pub use decode::{HpackDecoder, HpackError, Sink};
pub use encode::HpackEncoder;
pub use table::HpackTable;

use bolide_http::Name;

/// The meaning of a field name, without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldToken {
    /// `:authority`
    Authority,
    /// `:method`
    Method,
    /// `:path`
    Path,
    /// `:scheme`
    Scheme,
    /// `:status`
    Status,
    /// A regular field. An unknown pseudo-header field is [`Name::Other`], too.
    Field(Name),
}

impl FieldToken {
    /// Parses a lower-case name.
    #[must_use]
    #[inline]
    pub fn parse(text: &[u8]) -> Self {
        if text.first() != Some(&b':') {
            return Self::Field(Name::parse(text));
        }
        match text {
            b":authority" => Self::Authority,
            b":method" => Self::Method,
            b":path" => Self::Path,
            b":scheme" => Self::Scheme,
            b":status" => Self::Status,
            _ => Self::Field(Name::Other),
        }
    }
}

#[cfg(test)]
#[path = "../../fuzz-entries/src/hpack.rs"]
pub mod fuzz;
#[cfg(test)]
mod tests;
