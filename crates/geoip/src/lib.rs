//! GeoIP databases in MaxMind's format: values of an address by path.
//!
//! The crate `maxminddb` parses the format; the caller reads the files.

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
