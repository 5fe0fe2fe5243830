//! How much useless work a peer may cause: one purse per connection.
//!
//! Legitimate odd things (unknown frames, cancelled requests) cost a little; every response that
//! leaves gives some back. A peer that only costs runs out and is told so (RFC 9114 §10.5).

use super::frame::code;
use crate::ConnError;

/// What a connection may cost beyond what its responses give back.
const PURSE: u32 = 2000;
/// What a response gives back.
const REFUND: u32 = 20;

/// An unknown or empty frame, a control frame, a QPACK instruction, an unknown stream.
pub(super) const ODD: u32 = 1;
/// A request that is cancelled or broken: it cost us a head, perhaps an exchange.
pub(super) const WASTED: u32 = 10;
/// Bytes of unknown frames that cost as much as one frame.
pub(super) const SKIPPED: u64 = 4096;

/// The purse.
#[derive(Debug, Default)]
pub(super) struct Load {
    spent: u32,
}

impl Load {
    /// Takes `cost` out.
    #[inline]
    pub(super) fn charge(&mut self, cost: u32) -> Result<(), ConnError> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > PURSE {
            let reason = "client causes excessive load";
            return Err(ConnError { code: code::EXCESSIVE_LOAD, reason });
        }
        Ok(())
    }

    /// Notes that a response has left.
    #[inline]
    pub(super) const fn refund(&mut self) {
        self.spent = self.spent.saturating_sub(REFUND);
    }
}
