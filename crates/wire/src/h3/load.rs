//! How much useless work a peer may cause: one purse per connection.
//!
//! Legitimate odd things (unknown frames, cancelled requests) cost a little; every response that
//! leaves gives some back. A peer that only costs runs out and is told so (RFC 9114 §10.5).

use super::frame::code;
use crate::ConnError;
use crate::patience::{CANCELS_MAX, WASTES_MAX};

/// What a connection may cost beyond what its responses give back.
const PURSE: u32 = 2000;
/// What a response gives back.
const REFUND: u32 = 20;

/// An unknown or empty frame, a control frame, a QPACK instruction, an unknown stream.
pub(super) const ODD: u32 = 1;
/// A request that is broken: it cost us a head, perhaps an exchange.
pub(super) const WASTED: u32 = PURSE / WASTES_MAX;
/// A request that is cancelled before its answer began, as browsers do whose user goes elsewhere.
pub(super) const CANCELLED: u32 = PURSE / CANCELS_MAX;
/// Bytes of unknown frames that cost as much as one frame.
pub(super) const SKIPPED: u64 = 4096;

/// What a client is told that costs too much, over one connection or over many.
pub const EXCESSIVE_LOAD: ConnError =
    ConnError { code: code::EXCESSIVE_LOAD, reason: "client causes excessive load" };

/// The purse.
#[derive(Debug, Default)]
pub(super) struct H3Load {
    spent: u32,
    /// Malformed requests since the last `take_wasted`.
    wasted: u32,
}

impl H3Load {
    /// Takes `cost` out.
    #[inline]
    pub(super) fn charge(&mut self, cost: u32) -> Result<(), ConnError> {
        self.spent = self.spent.saturating_add(cost);
        self.wasted += u32::from(cost == WASTED);
        if self.spent > PURSE {
            return Err(EXCESSIVE_LOAD);
        }
        Ok(())
    }

    /// Broken requests since the last call.
    pub(super) const fn take_wasted(&mut self) -> u32 {
        std::mem::replace(&mut self.wasted, 0)
    }

    /// Notes that a response has left.
    #[inline]
    pub(super) const fn refund(&mut self) {
        self.spent = self.spent.saturating_sub(REFUND);
    }
}
