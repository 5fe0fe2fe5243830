//! Hashing of paths: fast on short keys, and seeded so that a client cannot aim for one bucket.

use std::hash::{BuildHasher, Hasher};

const K1: u64 = 0x9e37_79b9_7f4a_7c15;
const K2: u64 = 0xd6e8_feb8_6659_fd93;

/// Makes hashers that all share one seed of the process.
#[derive(Clone, Copy, Debug)]
pub struct Seeded(u64);

impl Seeded {
    /// Hashing with `seed`, which should be secret.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }
}

impl BuildHasher for Seeded {
    type Hasher = PathHasher;

    #[inline]
    fn build_hasher(&self) -> PathHasher {
        PathHasher { state: self.0, seed: self.0.rotate_left(32) ^ K2 }
    }
}

/// A multiply-and-fold hasher that takes eight bytes at a time.
#[derive(Clone, Copy, Debug)]
pub struct PathHasher {
    state: u64,
    /// Secret too, so that a client cannot know the multiplier.
    seed: u64,
}

#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

impl Hasher for PathHasher {
    #[inline]
    fn finish(&self) -> u64 {
        fold(self.state, K1)
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let multiplier = self.seed | 1;
        let (words, tail) = bytes.as_chunks::<8>();
        for word in words {
            self.state = fold(self.state ^ u64::from_le_bytes(*word), multiplier).wrapping_add(K1);
        }
        if !tail.is_empty() {
            let mut last = [0; 8];
            last[..tail.len()].copy_from_slice(tail);
            self.state = fold(self.state ^ u64::from_le_bytes(last), multiplier).wrapping_add(K2);
        }
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.state ^= (number as u64).wrapping_mul(K1);
    }
}

#[cfg(test)]
mod tests {
    use super::Seeded;
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    #[test]
    fn similar_paths_spread_and_seeds_differ() {
        let (one, two) = (Seeded::new(1), Seeded::new(2));
        let paths = (0..10_000).map(|number| format!("/srv/www/img/{number}.jpg").into_bytes());
        let paths: Vec<_> = paths.collect();
        let full: HashSet<u64> = paths.iter().map(|path| one.hash_one(&path[..])).collect();
        assert_eq!(full.len(), paths.len());
        let low: HashSet<u64> = full.iter().map(|hash| hash & 0xffff).collect();
        assert!(low.len() > 8_500, "{}", low.len());
        let high: HashSet<u64> = full.iter().map(|hash| hash >> 57).collect();
        assert_eq!(high.len(), 128);
        assert_ne!(one.hash_one(&paths[0][..]), two.hash_one(&paths[0][..]));
        assert_ne!(one.hash_one(&b"a\0"[..]), one.hash_one(&b"a"[..]));
    }
}
