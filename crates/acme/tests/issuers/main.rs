//! The service with Pebble and with invented issuers that lie and die.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests live in real time and fail by panicking"
)]

mod dying;
mod host;
mod pebble;
