//! A fast hash for tables whose keys come from the configuration only, and one that others share.
//!
//! Neither is keyed: never put what a client sends into a table that hashes with them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table from configured bytes to `V`. The length tells of most other keys that they are absent.
#[derive(Debug)]
pub(crate) struct NameTable<V> {
    entries: HashMap<Box<[u8]>, V, BuildHasherDefault<WordHasher>>,
    /// A bit per length of a key.
    lengths: u64,
}

impl<V> Default for NameTable<V> {
    fn default() -> Self {
        Self { entries: HashMap::default(), lengths: 0 }
    }
}

impl<V> NameTable<V> {
    /// The bit of a length; the last one is for all longer keys, too.
    const fn bit(len: usize) -> u64 {
        1 << if len < 63 { len } else { 63 }
    }

    /// Adds `key`; a later value replaces an earlier one.
    pub(crate) fn insert(&mut self, key: Box<[u8]>, value: V) {
        self.lengths |= Self::bit(key.len());
        self.entries.insert(key, value);
    }

    /// Adds `key`, unless it is there.
    pub(crate) fn insert_new(&mut self, key: Box<[u8]>, value: V) {
        self.lengths |= Self::bit(key.len());
        self.entries.entry(key).or_insert(value);
    }

    /// Whether a key of this length may be there.
    #[inline]
    pub(crate) const fn has_length(&self, len: usize) -> bool {
        self.lengths & Self::bit(len) != 0
    }

    /// Whether there is no key.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.lengths == 0
    }

    /// The value of `key`.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Option<&V> {
        if self.has_length(key.len()) { self.entries.get(key) } else { None }
    }
}

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
        match (rest, bytes) {
            ([], _) => {}
            // The length is mixed in before, so that bytes may count twice.
            (_, [.., a, b, c, d, e, f, g, h]) => {
                self.mix(u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]));
            }
            ([a, b, c, d, ..], [.., e, f, g, h]) => {
                self.mix(u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]));
            }
            ([first, .., last], _) => {
                let middle = rest[rest.len() / 2];
                self.mix(u64::from(*first) | u64::from(middle) << 8 | u64::from(*last) << 16);
            }
            ([only], _) => self.mix(u64::from(*only)),
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
    use proptest::collection::vec;
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::NameTable;

    #[test]
    fn every_key_is_found_again_and_no_other_is() {
        let mut table = NameTable::default();
        for n in 0..1000_u32 {
            table.insert(format!("host-{n}.example").into_bytes().into_boxed_slice(), n);
        }
        table.insert_new(b"host-7.example"[..].into(), 1000);
        for n in 0..1000_u32 {
            assert_eq!(table.get(format!("host-{n}.example").as_bytes()), Some(&n));
        }
        assert_eq!(table.get(b"host-1000.example"), None);
        assert_eq!(table.get(b""), None);
    }

    proptest! {
        #[test]
        fn keys_of_all_lengths_have_their_own_values(
            keys in vec(vec(b'a'..=b'c', 0..80), 0..60),
            other in vec(b'a'..=b'c', 0..80),
        ) {
            let mut table = NameTable::default();
            for (place, key) in keys.iter().enumerate() {
                table.insert(key.clone().into_boxed_slice(), place);
            }
            for key in keys.iter().chain([&other]) {
                let place = keys.iter().rposition(|one| one == key);
                prop_assert_eq!(table.get(key), place.as_ref());
            }
        }
    }
}
