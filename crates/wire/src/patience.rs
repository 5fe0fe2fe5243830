//! Limits the wasted requests of one connection. A wasted request costs the client nothing and the
//! server a request, perhaps an upstream fetch as well.
//!
//! No honest client sends a request that it breaks, or cancels together with the bytes that made
//! it. Browsers do cancel requests later, when the user navigates away. Completed responses and
//! time reduce the count of both. Requests that have waited are cancelled for nothing: deadlines of
//! gRPC do so at the rate of all calls, and the limit of concurrent streams bounds them.

/// LIMIT: requests of one connection that were malformed or cancelled at once, beyond its credit.
pub(crate) const WASTES_MAX: u32 = 20;
/// LIMIT: requests of one connection that were cancelled later, beyond its credit.
pub(crate) const CANCELS_MAX: u32 = 100;
/// The cost of a waste, in cancels.
const WASTE_COSTS: u32 = CANCELS_MAX / WASTES_MAX;
/// A request that was cancelled within this time, in nanoseconds, was cancelled prematurely.
pub(crate) const PREMATURE_FOR: u64 = 250_000_000;
/// The cancels that one second forgives.
pub(crate) const SECOND_PAYS: u32 = 20;

/// How a request was wasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waste {
    /// The client sent a malformed request, so that we reset its stream.
    Broken,
    /// The client cancelled the request in the same read that brought it.
    AtOnce,
    /// The client cancelled the request within [`PREMATURE_FOR`], before its response began, or
    /// exceeded the stream limit.
    Premature,
}

/// The client exceeded its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exhausted;

/// The waste account of one connection.
#[derive(Debug, Default)]
pub(crate) struct WastePatience {
    spent: u32,
    /// Wastes since the last `take_unreported`.
    unreported: u32,
}

impl WastePatience {
    /// Credits time.
    pub(crate) fn rest(&mut self, seconds: u32) {
        self.spent = self.spent.saturating_sub(seconds.saturating_mul(SECOND_PAYS));
    }

    /// Credits a completed response.
    #[inline]
    pub(crate) const fn complete(&mut self) {
        self.spent = self.spent.saturating_sub(WASTE_COSTS);
    }

    /// Records a wasted request.
    ///
    /// # Errors
    ///
    /// The connection exceeded its limit.
    pub(crate) fn waste(&mut self, waste: Waste) -> Result<(), Exhausted> {
        self.spent += match waste {
            Waste::Broken | Waste::AtOnce => {
                self.unreported += 1;
                WASTE_COSTS
            }
            Waste::Premature => 1,
        };
        debug_assert!(self.spent <= CANCELS_MAX + WASTE_COSTS, "an exhausted connection is closed");
        if self.spent > CANCELS_MAX { Err(Exhausted) } else { Ok(()) }
    }

    /// Returns the wastes since the last call, without the cancels that browsers make.
    pub(crate) fn take_unreported(&mut self) -> u32 {
        std::mem::take(&mut self.unreported)
    }
}

#[cfg(test)]
mod tests {
    use super::{CANCELS_MAX, Exhausted, WASTES_MAX, Waste, WastePatience};

    fn endured(patience: &mut WastePatience, waste: Waste) -> u32 {
        (0..).find(|_| patience.waste(waste) == Err(Exhausted)).unwrap_or(0)
    }

    #[test]
    fn broken_requests_cost_more_than_cancelled_ones() {
        assert_eq!(endured(&mut WastePatience::default(), Waste::Broken), WASTES_MAX);
        assert_eq!(endured(&mut WastePatience::default(), Waste::AtOnce), WASTES_MAX);
        assert_eq!(endured(&mut WastePatience::default(), Waste::Premature), CANCELS_MAX);
    }

    #[test]
    fn answers_and_time_pay() {
        let mut patience = WastePatience::default();
        for second in 1..1000 {
            patience.rest(1);
            for _ in 0..4 {
                assert_eq!(patience.waste(Waste::AtOnce), Ok(()), "{second}");
            }
        }
        for _ in 0..1000 {
            assert_eq!(patience.waste(Waste::Broken), Ok(()));
            patience.complete();
        }
        assert_eq!((patience.take_unreported(), patience.take_unreported()), (4996, 0));
    }
}
