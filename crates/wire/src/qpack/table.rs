//! The dynamic table (RFC 9204 §3.2): entries by absolute index, evicted oldest first.
//!
//! It keeps sizes and order. The encoder decides which entries it may evict.

use std::collections::VecDeque;

use super::ENTRY_OVERHEAD;
use crate::pseudo::Label;

/// One entry.
#[derive(Clone, Debug)]
pub struct QpackEntry {
    /// [`Label::Text`] has no text here; see [`Self::label`].
    label: Label<'static>,
    bytes: Box<[u8]>,
    name_len: usize,
}

impl QpackEntry {
    fn new(name: &[u8], value: &[u8]) -> Self {
        let label = match Label::parse(name) {
            Label::Method => Label::Method,
            Label::Scheme => Label::Scheme,
            Label::Authority => Label::Authority,
            Label::Path => Label::Path,
            Label::WrongPseudo => Label::WrongPseudo,
            Label::Known(known) => Label::Known(known),
            Label::Text(_) => Label::Text(b""),
        };
        let mut bytes = Vec::with_capacity(name.len() + value.len());
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(value);
        Self { label, bytes: bytes.into_boxed_slice(), name_len: name.len() }
    }

    /// The name as text.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.bytes[..self.name_len]
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.bytes[self.name_len..]
    }

    /// The label of the name.
    #[must_use]
    pub fn label(&self) -> Label<'_> {
        if matches!(self.label, Label::Text(_)) { Label::Text(self.name()) } else { self.label }
    }

    /// RFC 9204 §3.2.1: name, value and overhead.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len() + ENTRY_OVERHEAD
    }
}

/// A dynamic table; at first empty and without capacity.
#[derive(Clone, Debug, Default)]
pub struct QpackTable {
    entries: VecDeque<QpackEntry>,
    /// The absolute index of the oldest entry.
    dropped: u64,
    size: usize,
    capacity: usize,
}

impl QpackTable {
    /// The insert count, which is the absolute index of the next entry.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.dropped + self.entries.len() as u64
    }

    /// The absolute index of the oldest entry.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Bytes in use.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// LIMIT: bytes of all entries.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// The entry with absolute index `index`, if it is in the table.
    #[must_use]
    pub fn entry(&self, index: u64) -> Option<&QpackEntry> {
        let at = index.checked_sub(self.dropped)?;
        self.entries.get(usize::try_from(at).ok()?)
    }

    /// The entries with their absolute indexes, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = (u64, &QpackEntry)> {
        (self.dropped..).zip(&self.entries)
    }

    /// Changes the capacity and evicts the entries above it.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.make_room(0);
        self.check();
    }

    /// Inserts a copy of name and value. `false` if they exceed the table, which stays unchanged.
    pub fn insert(&mut self, name: &[u8], value: &[u8]) -> bool {
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        if size > self.capacity {
            return false;
        }
        // RFC 9204 §3.2.2: name and value may come from an entry that the insertion evicts.
        let entry = QpackEntry::new(name, value);
        self.make_room(size);
        self.size += size;
        self.entries.push_back(entry);
        self.check();
        true
    }

    /// Inserts the entry `index` again, or its name with another value. `false` if there is no such
    /// entry or it exceeds the table.
    pub fn insert_from(&mut self, index: u64, value: Option<&[u8]>) -> bool {
        let Some(entry) = self.entry(index) else { return false };
        let entry =
            value.map_or_else(|| entry.clone(), |value| QpackEntry::new(entry.name(), value));
        let size = entry.size();
        if size > self.capacity {
            return false;
        }
        self.make_room(size);
        self.size += size;
        self.entries.push_back(entry);
        self.check();
        true
    }

    /// Checks in debug builds that the size is that of the entries and within the capacity.
    fn check(&self) {
        debug_assert!(self.size <= self.capacity, "the table stays within its capacity");
        debug_assert_eq!(
            self.entries.iter().map(QpackEntry::size).sum::<usize>(),
            self.size,
            "the size is that of the entries"
        );
    }

    fn make_room(&mut self, size: usize) {
        while self.size + size > self.capacity {
            let Some(oldest) = self.entries.pop_front() else { return };
            self.size -= oldest.size();
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::QpackTable;

    #[test]
    fn the_oldest_entries_go_first_and_indexes_never_come_back() {
        let mut table = QpackTable::default();
        assert!(!table.insert(b"a", b"b"));
        table.set_capacity(80);
        assert!(table.insert(b"a", b"1") && table.insert(b"b", b"2"));
        assert_eq!((table.size(), table.inserted()), (68, 2));
        assert!(table.insert_from(0, None));
        assert!(table.entry(0).is_none());
        assert_eq!(table.entry(2).map(|entry| entry.value()), Some(&b"1"[..]));
        table.set_capacity(40);
        assert_eq!((table.dropped(), table.inserted()), (2, 3));
        assert!(!table.insert(b"long", b"value"));
        assert_eq!(table.inserted(), 3);
    }
}
