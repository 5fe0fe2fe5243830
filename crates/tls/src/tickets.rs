//! The keys of session tickets, shared by all workers and kept across reloads.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::ProducesTickets;

/// Rotating ticket keys: a key seals for six hours and opens for twelve.
pub struct Tickets(pub(crate) Arc<dyn ProducesTickets>);

impl Tickets {
    /// Fresh keys.
    ///
    /// # Errors
    ///
    /// In words, when the system's randomness fails.
    pub fn new() -> Result<Self, String> {
        Ticketer::new().map(Self).map_err(|error| error.to_string())
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tickets")
    }
}
