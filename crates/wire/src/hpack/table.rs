//! The dynamic table (RFC 7541 §2.3.2, §4): entries in a ring, their text in one arena.
//!
//! Owns eviction. It keeps token and traits of each entry, so that an indexed field is neither
//! parsed nor checked again. INVARIANT: the entries lie in the arena in order and without gaps,
//! from `dead` bytes after its start to its end.

use std::collections::VecDeque;

use super::FieldToken;
use crate::Traits;

/// Bytes that an entry counts beyond its text (RFC 7541 §4.1).
pub const ENTRY_OVERHEAD: usize = 32;
/// LIMIT: the largest table size, so that lengths fit in 16 bits.
pub const SIZE_MAX: u32 = u16::MAX as u32;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The offset of its name in the unbounded stream of all names and values; it wraps.
    start: u32,
    name_len: u16,
    value_len: u16,
    token: FieldToken,
    traits: Traits,
}

impl Entry {
    const fn len(&self) -> usize {
        self.name_len as usize + self.value_len as usize
    }
}

/// One entry, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticRow<'a> {
    /// The meaning of the name.
    pub token: FieldToken,
    /// The traits of the characters.
    pub traits: Traits,
    /// The name.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

/// The result of a search. Positions count from the newest entry, which is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableMatch {
    /// An entry with the same name and value.
    pub exact: Option<usize>,
    /// The newest entry with the same name.
    pub name: Option<usize>,
    /// The number of entries with that name, if none is exact.
    pub same_name: usize,
}

/// A dynamic table. It has no memory until the first insertion.
#[derive(Debug)]
pub struct HpackTable {
    /// Oldest first.
    entries: VecDeque<Entry>,
    arena: Vec<u8>,
    /// The offset of the arena's first byte, as [`Entry::start`] counts.
    base: u32,
    size: u32,
    size_max: u32,
    generation: u32,
}

impl HpackTable {
    /// An empty table of at most `size_max` bytes as RFC 7541 §4.1 counts them.
    #[must_use]
    pub const fn new(size_max: u32) -> Self {
        let size_max = if size_max > SIZE_MAX { SIZE_MAX } else { size_max };
        Self {
            entries: VecDeque::new(),
            arena: Vec::new(),
            base: 0,
            size: 0,
            size_max,
            generation: 0,
        }
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes used, as RFC 7541 §4.1 counts them.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// LIMIT: the largest value of [`Self::size`].
    #[must_use]
    pub const fn size_max(&self) -> u32 {
        self.size_max
    }

    /// Changes with the contents and the limit. While it stays the same, the table does.
    #[must_use]
    #[inline]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// The entry at `position`; 0 is the newest.
    #[must_use]
    #[inline]
    pub fn row(&self, position: usize) -> Option<StaticRow<'_>> {
        let at = self.entries.len().checked_sub(position + 1)?;
        self.entries.get(at).map(|entry| self.row_of(entry))
    }

    /// Searches a field. `name` may be in any case; it matters only for unknown names.
    #[must_use]
    pub fn find(&self, token: FieldToken, name: &[u8], value: &[u8]) -> TableMatch {
        let mut found = TableMatch::default();
        let by_text = token == FieldToken::Field(bolide_http::Name::Other);
        for (position, entry) in self.entries.iter().rev().enumerate() {
            if entry.token != token {
                continue;
            }
            let row = self.row_of(entry);
            if by_text && !row.name.eq_ignore_ascii_case(name) {
                continue;
            }
            if row.value == value {
                found.exact = Some(position);
                return found;
            }
            found.name.get_or_insert(position);
            found.same_name += 1;
        }
        found
    }

    /// Inserts a field as the newest entry, its name in lower case, and evicts old entries.
    ///
    /// A field larger than the table empties it and is not inserted (RFC 7541 §4.4).
    pub fn insert(&mut self, token: FieldToken, traits: Traits, name: &[u8], value: &[u8]) {
        self.generation = self.generation.wrapping_add(1);
        let need = name.len() + value.len() + ENTRY_OVERHEAD;
        if need > self.size_max as usize {
            self.clear();
            return;
        }
        while self.size as usize + need > self.size_max as usize {
            self.evict();
        }
        self.make_room(name.len() + value.len());
        let start = self.base.wrapping_add(self.arena.len() as u32);
        self.arena.extend(name.iter().map(u8::to_ascii_lowercase));
        self.arena.extend_from_slice(value);
        let (name_len, value_len) = (name.len() as u16, value.len() as u16);
        self.entries.push_back(Entry { start, name_len, value_len, token, traits });
        self.size += need as u32;
        self.check();
    }

    /// Changes the limit and evicts the entries above it.
    pub fn resize(&mut self, size_max: u32) {
        let size_max = size_max.min(SIZE_MAX);
        if size_max == self.size_max {
            return;
        }
        self.size_max = size_max;
        self.generation = self.generation.wrapping_add(1);
        while self.size > size_max {
            self.evict();
        }
        self.check();
    }

    /// Checks in debug builds that size and arena are those of the entries.
    fn check(&self) {
        debug_assert!(self.size <= self.size_max, "the table stays within its limit");
        debug_assert_eq!(
            self.entries.iter().map(|entry| entry.len() + ENTRY_OVERHEAD).sum::<usize>(),
            self.size as usize,
            "the size is that of the entries"
        );
        debug_assert_eq!(
            self.dead() + self.entries.iter().map(Entry::len).sum::<usize>(),
            self.arena.len(),
            "the entries lie in the arena without gaps"
        );
    }

    /// Frees unused memory.
    pub fn shrink(&mut self) {
        self.compact();
        self.arena.shrink_to_fit();
        self.entries.shrink_to_fit();
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.compact();
        self.size = 0;
    }

    fn evict(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            self.size -= (entry.len() + ENTRY_OVERHEAD) as u32;
        }
    }

    /// Bytes of evicted entries at the start of the arena.
    fn dead(&self) -> usize {
        match self.entries.front() {
            Some(oldest) => oldest.start.wrapping_sub(self.base) as usize,
            None => self.arena.len(),
        }
    }

    /// Moves the live text down instead of growing, if enough of the arena is dead.
    fn make_room(&mut self, need: usize) {
        let dead = self.dead();
        let live = self.arena.len() - dead;
        if self.arena.len() + need > self.arena.capacity() && dead * 2 >= live {
            self.compact();
        }
    }

    fn compact(&mut self) {
        let dead = self.dead();
        self.arena.drain(..dead);
        self.base = self.base.wrapping_add(dead as u32);
    }

    #[inline]
    fn row_of(&self, entry: &Entry) -> StaticRow<'_> {
        let start = entry.start.wrapping_sub(self.base) as usize;
        let text = &self.arena[start..start + entry.len()];
        let (name, value) = text.split_at(usize::from(entry.name_len));
        StaticRow { token: entry.token, traits: entry.traits, name, value }
    }
}
