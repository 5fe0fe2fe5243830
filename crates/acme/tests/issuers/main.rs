//! The service with Pebble and with simulated issuers that lie and die.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::too_many_lines,
    reason = "tests live in real time, fail by panicking, and a table is as long as it is"
)]

mod chaos;
mod dying;
mod host;
mod pebble;
mod revocations;

/// Held by tests that want all cores: beside each other they are too slow for Pebble's patience.
pub(crate) static HEAVY: std::sync::Mutex<()> = std::sync::Mutex::new(());
