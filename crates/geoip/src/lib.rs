//! Databases of addresses in MaxMind's format: what they have for an address, by a path.
//!
//! The file format belongs to the crate `maxminddb`; reading files belongs to the caller.

mod database;
pub mod fuzz;
mod live;
mod value;

pub use database::{Decimals, GeoDatabase, GeoDatabaseError, GeoPath};
pub use live::{GeoTimes, LiveGeoDatabase};
