//! Databases of addresses in MaxMind's format: what they have for an address, by a path.
//!
//! The file format belongs to the crate `maxminddb`; reading files belongs to the caller.

#[cfg(test)]
extern crate self as bolide_geoip;

mod database;
#[cfg(test)]
#[path = "../../fuzz-entries/src/geoip.rs"]
pub mod fuzz;
mod live;
mod value;

pub use database::{Decimals, GeoDatabase, GeoDatabaseError, GeoPath};
pub use live::{GeoTimes, LiveGeoDatabase};
