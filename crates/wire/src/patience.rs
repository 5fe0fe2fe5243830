//! How many wasted requests a connection may have: those that cost us a request, perhaps an
//! origin's work as well, and the client nothing.
//!
//! A request that the client breaks, or that it takes back in the same breath, is a waste as no
//! honest client makes; one that it takes back later is what browsers do whose user goes elsewhere.
//! Answers that left and time pay for both.

/// LIMIT: requests of one connection that were broken or taken back at once, beyond what was paid.
pub(crate) const WASTES_MAX: u32 = 20;
/// LIMIT: requests of one connection that were taken back later, beyond what was paid.
pub(crate) const CANCELS_MAX: u32 = 100;
/// What a waste costs in cancels.
const WASTE_COSTS: u32 = CANCELS_MAX / WASTES_MAX;
/// Cancels that a second pays for.
const SECOND_PAYS: u32 = 20;

/// How a request came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waste {
    /// The client broke it, so that we had to reset its stream.
    Broken,
    /// The client took it back with the bytes that it came with.
    AtOnce,
    /// The client took it back before its answer began, or opened more than it may.
    Later,
}

/// The client went too far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exhausted;

/// What is left of the patience with one connection.
#[derive(Debug, Default)]
pub(crate) struct WastePatience {
    spent: u32,
    /// The second up to which time has paid.
    paid_until: u64,
    /// Wasted requests since the last `take_untold`.
    untold: u32,
}

impl WastePatience {
    /// Lets the time until `now` pay.
    pub(crate) fn rest(&mut self, now: bolide_base::Now) {
        let second = now.mono.as_nanos() / 1_000_000_000;
        let seconds = second.saturating_sub(self.paid_until).min(u64::from(CANCELS_MAX)) as u32;
        if seconds > 0 {
            self.paid_until = second;
            self.spent = self.spent.saturating_sub(seconds * SECOND_PAYS);
        }
    }

    /// An answer left completely.
    #[inline]
    pub(crate) const fn complete(&mut self) {
        self.spent = self.spent.saturating_sub(WASTE_COSTS);
    }

    /// A request came to nothing.
    ///
    /// # Errors
    ///
    /// There were too many.
    pub(crate) fn waste(&mut self, waste: Waste) -> Result<(), Exhausted> {
        self.spent += match waste {
            Waste::Broken | Waste::AtOnce => {
                self.untold += 1;
                WASTE_COSTS
            }
            Waste::Later => 1,
        };
        if self.spent > CANCELS_MAX { Err(Exhausted) } else { Ok(()) }
    }

    /// Wastes since the last call, but for what browsers do.
    pub(crate) fn take_untold(&mut self) -> u32 {
        std::mem::take(&mut self.untold)
    }
}

#[cfg(test)]
mod tests {
    use super::{CANCELS_MAX, Exhausted, WASTES_MAX, Waste, WastePatience};
    use bolide_base::{Instant, Now};

    fn at(seconds: u64) -> Now {
        Now { mono: Instant::from_nanos(seconds * 1_000_000_000), unix_millis: 0 }
    }

    fn endured(patience: &mut WastePatience, waste: Waste) -> u32 {
        (0..).find(|_| patience.waste(waste) == Err(Exhausted)).unwrap_or(0)
    }

    #[test]
    fn broken_requests_cost_more_than_cancelled_ones() {
        assert_eq!(endured(&mut WastePatience::default(), Waste::Broken), WASTES_MAX);
        assert_eq!(endured(&mut WastePatience::default(), Waste::AtOnce), WASTES_MAX);
        assert_eq!(endured(&mut WastePatience::default(), Waste::Later), CANCELS_MAX);
    }

    #[test]
    fn answers_and_time_pay() {
        let mut patience = WastePatience::default();
        for second in 1..1000 {
            patience.rest(at(second));
            for _ in 0..4 {
                assert_eq!(patience.waste(Waste::AtOnce), Ok(()), "{second}");
            }
        }
        for _ in 0..1000 {
            assert_eq!(patience.waste(Waste::Broken), Ok(()));
            patience.complete();
        }
        assert_eq!((patience.take_untold(), patience.take_untold()), (4996, 0));
    }
}
