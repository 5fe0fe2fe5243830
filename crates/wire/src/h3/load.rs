//! Limits the useless work that a peer may cause: one budget per connection.
//!
//! Unusual but legal input (unknown frames, cancelled requests) costs a little. Every completed
//! response and every second refund some. A peer that exceeds the budget gets H3_EXCESSIVE_LOAD
//! (RFC 9114 §10.5).

use bolide_base::Now;

use super::frame::code;
use crate::ConnError;
use crate::patience::{CANCELS_MAX, PREMATURE_FOR, SECOND_PAYS, WASTES_MAX};

/// LIMIT: the budget of a connection.
const PURSE: u32 = 2000;
/// The refund of a completed response.
const REFUND: u32 = 20;

/// The cost of an unknown or empty frame, a control frame, a QPACK instruction, an unknown stream.
pub(super) const ODD: u32 = 1;
/// The cost of a malformed request, which took a head and perhaps an exchange, and of one that is
/// cancelled in the turn that brought it.
pub(super) const WASTED: u32 = PURSE / WASTES_MAX;
/// The cost of a request that is cancelled within [`PREMATURE_FOR`] and before its response began,
/// as browsers do when the user navigates away.
pub(super) const CANCELLED: u32 = PURSE / CANCELS_MAX;
/// Bytes of unknown frames that cost as much as one frame.
pub(super) const SKIPPED: u64 = 4096;

/// The error for a client that exceeds the budget of one connection or of many.
pub const EXCESSIVE_LOAD: ConnError =
    ConnError { code: code::EXCESSIVE_LOAD, reason: "client causes excessive load" };

/// The budget of one connection.
#[derive(Debug, Default)]
pub(super) struct H3Load {
    spent: u32,
    /// Such requests since the last `take_wasted`.
    wasted: u32,
    /// The second up to which time was credited.
    paid_until: u64,
    /// The turn in which it reads: their times differ.
    turn: u64,
}

impl H3Load {
    /// Before each event of a turn: credits the time until `now`, as over HTTP/2.
    #[inline]
    pub(super) fn rest(&mut self, now: Now) {
        self.turn = now.mono.as_nanos();
        let second = now.mono.as_nanos() / 1_000_000_000;
        if second > self.paid_until {
            let seconds = u32::try_from(second - self.paid_until).unwrap_or(u32::MAX);
            self.paid_until = second;
            self.spent = self.spent.saturating_sub(seconds.saturating_mul(SECOND_PAYS * CANCELLED));
        }
    }

    /// The turn in which it reads.
    pub(super) const fn turn(&self) -> u64 {
        self.turn
    }

    /// The cost of cancelling a request that began in this turn and has no response yet.
    pub(super) const fn cost_of_cancelling(&self, announced_in: u64) -> u32 {
        debug_assert!(self.turn >= announced_in, "a request is cancelled after it began");
        match self.turn - announced_in {
            0 => WASTED,
            1..PREMATURE_FOR => CANCELLED,
            PREMATURE_FOR.. => 0,
        }
    }

    /// Charges `cost`.
    #[inline]
    pub(super) fn charge(&mut self, cost: u32) -> Result<(), ConnError> {
        self.spent = self.spent.saturating_add(cost);
        self.wasted += u32::from(cost == WASTED);
        if self.spent > PURSE {
            return Err(EXCESSIVE_LOAD);
        }
        Ok(())
    }

    /// Returns the requests that cost [`WASTED`] since the last call.
    pub(super) const fn take_wasted(&mut self) -> u32 {
        std::mem::replace(&mut self.wasted, 0)
    }

    /// Refunds a completed response.
    #[inline]
    pub(super) const fn refund(&mut self) {
        self.spent = self.spent.saturating_sub(REFUND);
    }
}
