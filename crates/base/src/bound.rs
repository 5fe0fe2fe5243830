//! How often a loop may go round that ends when what it follows falls silent.
//!
//! Owns the count of one loop. A loop over what is at hand, a slice or a buffer, ends by itself and
//! needs none; one that asks a machine for what comes next ends only if the machine is right.
//! Easiest to break: a loop that a bound ends must leave its work where the next turn finds it.

/// Rounds of one loop: far more than any of ours has work for, so that only a loop which would not
/// end comes there, and does so within a second or two.
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

    /// Takes a round. False when none is left: a fault of ours, at which debug builds stop.
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
