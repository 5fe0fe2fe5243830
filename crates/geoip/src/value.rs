//! A scalar value of a record; the contents of maps and arrays are not read.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A value of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GeoValue<'d> {
    Text(&'d str),
    Bytes(&'d [u8]),
    Float(f64),
    Unsigned(u64),
    /// An unsigned number of 128 bits.
    Wide(u128),
    Signed(i64),
    Bool(bool),
    /// A map or an array.
    Compound,
}

struct GeoValueVisitor;

impl<'d> Deserialize<'d> for GeoValue<'d> {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GeoValueVisitor)
    }
}

impl<'d> Visitor<'d> for GeoValueVisitor {
    type Value = GeoValue<'d>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of a record")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(GeoValue::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(GeoValue::Signed(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(GeoValue::Unsigned(value))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Self::Value, E> {
        Ok(GeoValue::Wide(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(GeoValue::Float(value))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'d str) -> Result<Self::Value, E> {
        Ok(GeoValue::Text(value))
    }

    fn visit_borrowed_bytes<E: Error>(self, value: &'d [u8]) -> Result<Self::Value, E> {
        Ok(GeoValue::Bytes(value))
    }

    fn visit_seq<A: SeqAccess<'d>>(self, _: A) -> Result<Self::Value, A::Error> {
        Ok(GeoValue::Compound)
    }

    fn visit_map<A: MapAccess<'d>>(self, _: A) -> Result<Self::Value, A::Error> {
        Ok(GeoValue::Compound)
    }
}
