//! Seeded random values in the forms that a simulation needs.

use bolide_base::prng::Prng;

/// A seeded source of random choices.
#[derive(Clone, Debug)]
pub struct Chance(Prng);

impl Chance {
    /// The source for `seed` and for one `part` of the simulation.
    #[must_use]
    pub const fn new(seed: u64, part: u64) -> Self {
        let mut first = Prng::new(seed ^ part.wrapping_mul(0xd6e8_feb8_6659_fd93));
        Self(Prng::new(first.next_u64()))
    }

    /// A number below `bound`; 0 when `bound` is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// An index into a sequence of `len` elements; `len` must not be 0.
    pub const fn index(&mut self, len: usize) -> usize {
        self.0.below(len as u64) as usize
    }

    /// A number from `low` to `high`, both inclusive.
    pub const fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// True once in `n` times; never if `n` is 0.
    pub const fn one_in(&mut self, n: u64) -> bool {
        n != 0 && self.0.below(n) == 0
    }

    /// A size from 1 to `max`; each order of magnitude is equally likely.
    pub const fn size(&mut self, max: usize) -> usize {
        let bits = self.0.below(max.ilog2() as u64 + 1);
        let span = 2_u64 << bits;
        let size = 1 + self.0.below(span);
        if size > max as u64 { max } else { size as usize }
    }

    /// Shuffles `items`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }
}
