//! An upper bound on the rounds of a loop whose end depends on other code.
//!
//! Owns the count of one loop. A loop over a slice or a buffer ends by itself and needs no bound. A
//! loop that polls a machine for its next item ends only if the machine is correct. Easiest to
//! break: a loop that the bound ends must leave its work where the next turn finds it.

/// Rounds of one loop. No loop has that much work, so only an endless one reaches the bound; it
/// does so within a second or two.
const ROUNDS_MAX: u32 = 1 << 20;

/// The rounds that are left.
#[derive(Debug)]
pub struct Bound(u32);

impl Bound {
    /// For a loop that begins.
    #[must_use]
    pub const fn new() -> Self {
        Self(ROUNDS_MAX)
    }

    /// Takes a round. False when none is left, which is a bug: debug builds panic there.
    #[inline]
    #[must_use]
    pub const fn goes_on(&mut self) -> bool {
        debug_assert!(self.0 > 0, "a loop goes round and round and does not end");
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                true
            }
            None => false,
        }
    }
}

impl Default for Bound {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::{Bound, ROUNDS_MAX};

    #[test]
    fn a_loop_that_has_work_goes_on() {
        let mut bound = Bound::new();
        assert!((0..ROUNDS_MAX).all(|_| bound.goes_on()));
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "does not end"))]
    fn a_loop_that_does_not_end_is_ended() {
        let mut bound = Bound::new();
        while bound.goes_on() {}
    }
}
