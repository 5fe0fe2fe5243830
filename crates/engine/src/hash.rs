//! A fast hash for tables whose keys come from the configuration only, and one that others share.
//!
//! Neither is keyed: never put what a client sends into a table that hashes with them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table from configured bytes to `V`.
pub(crate) type NameTable<V> = HashMap<Box<[u8]>, V, BuildHasherDefault<WordHasher>>;

/// A table from words to `V`.
pub(crate) type WordTable<V> = HashMap<u64, V, BuildHasherDefault<WordHasher>>;

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Eight bytes per multiplication.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WordHasher(u64);

impl WordHasher {
    #[inline]
    const fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER);
    }
}

impl Hasher for WordHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut tail = [0_u8; 8];
            tail[..rest.len()].copy_from_slice(rest);
            self.mix(u64::from_le_bytes(tail));
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The table takes its tag from the top bits and its slot from the bottom ones.
        self.0 ^ (self.0 >> 29)
    }
}

/// MurmurHash2 with the seed 0, as nginx has it: clients of `split_clients` stay in their parts.
pub(crate) fn murmur2(bytes: &[u8]) -> u32 {
    const MULTIPLIER: u32 = 0x5bd1_e995;
    let mut hash = bytes.len() as u32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let mut key = u32::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        key = (key ^ (key >> 24)).wrapping_mul(MULTIPLIER);
        hash = hash.wrapping_mul(MULTIPLIER) ^ key;
    }
    if !rest.is_empty() {
        let tail = rest.iter().rev().fold(0_u32, |tail, byte| tail << 8 | u32::from(*byte));
        hash = (hash ^ tail).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::NameTable;

    #[test]
    fn every_key_is_found_again_and_no_other_is() {
        let mut table = NameTable::default();
        for n in 0..1000_u32 {
            table.insert(format!("host-{n}.example").into_bytes().into_boxed_slice(), n);
        }
        for n in 0..1000_u32 {
            assert_eq!(table.get(format!("host-{n}.example").as_bytes()), Some(&n));
        }
        assert_eq!(table.get(&b"host-1000.example"[..]), None);
        assert_eq!(table.get(&b""[..]), None);
    }
}
