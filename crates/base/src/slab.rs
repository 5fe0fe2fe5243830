//! Fixed-capacity storage with keys that go stale instead of aliasing.

use std::fmt;
use std::marker::PhantomData;

/// A slab index with the generation of the entry that it was made for.
pub struct SlabKey<T> {
    index: u32,
    generation: u32,
    of: PhantomData<fn() -> T>,
}

impl<T> SlabKey<T> {
    /// Index and generation in one word, for tokens.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The inverse of [`Self::to_bits`]; an invented word gives a key without an entry.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> 32) as u32, of: PhantomData }
    }
}

impl<T> Clone for SlabKey<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SlabKey<T> {}

impl<T> PartialEq for SlabKey<T> {
    fn eq(&self, other: &Self) -> bool {
        self.to_bits() == other.to_bits()
    }
}

impl<T> Eq for SlabKey<T> {}

impl<T> fmt::Debug for SlabKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.index, self.generation)
    }
}

/// Storage for at most `capacity` entries; a full slab refuses, it does not grow.
#[derive(Debug)]
pub struct Slab<T> {
    entries: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
    capacity: u32,
}

impl<T> Slab<T> {
    /// An empty slab that never holds more than `capacity` entries.
    #[must_use]
    pub const fn with_capacity(capacity: u32) -> Self {
        Self { entries: Vec::new(), free: Vec::new(), capacity }
    }

    /// Stores `value`.
    ///
    /// # Errors
    ///
    /// Returns `value` when `capacity` entries are live.
    pub fn insert(&mut self, value: T) -> Result<SlabKey<T>, T> {
        if let Some(index) = self.free.pop() {
            let (generation, slot) = &mut self.entries[index as usize];
            *slot = Some(value);
            return Ok(SlabKey { index, generation: *generation, of: PhantomData });
        }
        let Ok(index) = u32::try_from(self.entries.len()) else { return Err(value) };
        if index >= self.capacity {
            return Err(value);
        }
        self.entries.push((0, Some(value)));
        Ok(SlabKey { index, generation: 0, of: PhantomData })
    }

    /// The entry, unless `key` has gone stale.
    #[must_use]
    pub fn get(&self, key: SlabKey<T>) -> Option<&T> {
        match self.entries.get(key.index as usize) {
            Some((generation, slot)) if *generation == key.generation => slot.as_ref(),
            _ => None,
        }
    }

    /// The entry, unless `key` has gone stale.
    pub fn get_mut(&mut self, key: SlabKey<T>) -> Option<&mut T> {
        match self.entries.get_mut(key.index as usize) {
            Some((generation, slot)) if *generation == key.generation => slot.as_mut(),
            _ => None,
        }
    }

    /// Takes the entry out and retires every copy of `key`.
    pub fn remove(&mut self, key: SlabKey<T>) -> Option<T> {
        let (generation, slot) = self.entries.get_mut(key.index as usize)?;
        if *generation != key.generation {
            return None;
        }
        if slot.is_some() {
            // 24 bits, so that a token can hold a kind next to the key.
            *generation = generation.wrapping_add(1) & 0x00ff_ffff;
            self.free.push(key.index);
        }
        // PERF: taken last, the value moves once.
        slot.take()
    }

    /// The key of the entry at this index.
    #[must_use]
    pub fn key_at(&self, index: u32) -> Option<SlabKey<T>> {
        let (generation, slot) = self.entries.get(index as usize)?;
        slot.as_ref().map(|_| SlabKey { index, generation: *generation, of: PhantomData })
    }

    /// How many entries are live.
    #[must_use]
    pub const fn live(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// How many slots have been made; they are reused, and never freed.
    #[must_use]
    pub const fn made(&self) -> usize {
        self.entries.len()
    }

    /// How many entries fit.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Whether an insert would be refused.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.free.is_empty() && self.entries.len() >= self.capacity as usize
    }

    /// Keys of all live entries, in index order.
    pub fn keys(&self) -> impl Iterator<Item = SlabKey<T>> + '_ {
        self.entries.iter().enumerate().filter(|(_, (_, slot))| slot.is_some()).map(
            |(index, (generation, _))| SlabKey {
                index: index as u32,
                generation: *generation,
                of: PhantomData,
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Slab;

    #[test]
    fn a_stale_key_finds_nothing_even_when_its_slot_is_let_again() {
        let mut slab = Slab::with_capacity(1);
        let old = slab.insert("a").unwrap();
        assert_eq!(slab.insert("b"), Err("b"));
        assert_eq!(slab.remove(old), Some("a"));
        let new = slab.insert("c").unwrap();
        assert_eq!(slab.get(old), None);
        assert_eq!(slab.remove(old), None);
        assert_eq!(slab.get(new), Some(&"c"));
        assert_eq!(slab.keys().collect::<Vec<_>>(), [new]);
        assert_eq!((slab.key_at(0), slab.key_at(1)), (Some(new), None));
        assert_eq!((slab.live(), slab.made(), slab.capacity()), (1, 1, 1));
    }
}
