//! HPACK, the field compression of HTTP/2 (RFC 7541), both directions.
//!
//! Owns code tables, dynamic tables and their synchronisation. It does not know which fields make
//! a valid request: it tells a [`Sink`] what it read, with what it learned of the characters.

pub mod decode;
pub mod encode;
pub mod fuzz;
pub mod huffman;
pub mod prefix;
pub mod statics;
pub mod table;

pub use crate::Traits;
pub use decode::{HpackDecoder, HpackError, Sink};
pub use encode::HpackEncoder;
pub use fuzz::fuzz;
pub use table::HpackTable;

use bolide_http::Name;

/// What a field name means, known without comparing text.
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
    /// A field that is no pseudo-field, or an unknown pseudo-field ([`Name::Other`]).
    Field(Name),
}

impl FieldToken {
    /// The token of a lower-case name.
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
mod tests;
