//! The index of the files in a disk tree, for eviction: 40 bytes and a bucket for each file.
//!
//! It has parts by hash. Each is a chained table over a slab, with a list in order of last use, and
//! has its own lock, which is held for one entry.
//!
//! INVARIANT: until the walk of the tree ends, the index knows only some files, and must not report
//! any file as missing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::disk::name::{first_of, shared_bits};
use crate::tags::lock;

/// The hash of a key, which names a file.
pub(crate) type FileHash = u128;

/// The number of session groups whose private files are counted.
const GROUPS: usize = 4096;
const PARTS: usize = 64;
const NONE: u32 = u32::MAX;
/// The allocation unit of most file systems in bytes.
pub(crate) const BLOCK: u64 = 4096;

#[derive(Clone, Copy, Debug)]
struct IndexEntry {
    hash: [u64; 2],
    /// The next entry of the bucket; for a free entry, the next free one.
    chain: u32,
    older: u32,
    newer: u32,
    blocks: u32,
    /// The last use, in seconds since 1970.
    used: u32,
}

#[derive(Debug)]
struct Part {
    entries: Vec<IndexEntry>,
    buckets: Vec<u32>,
    free: u32,
    oldest: u32,
    newest: u32,
    count: usize,
}

/// The end of the list at which a file is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    /// The file was just written or read.
    New,
    /// The walk found the file.
    Found,
}

/// The hash of a private file contains the group of its session. So most sessions are known to have
/// no files.
pub(crate) const fn private(hash: FileHash, session: u64) -> FileHash {
    let group = session % GROUPS as u64;
    hash & !(GROUPS as FileHash * 2 - 1) | (group as FileHash) << 1 | 1
}

/// Whether two files are both public, or belong to sessions of the same group.
pub(crate) const fn has_same_owner(a: FileHash, b: FileHash) -> bool {
    let group = GROUPS as FileHash * 2 - 1;
    if b & 1 == 0 { a & 1 == 0 } else { a & group == b & group }
}

/// The hash of a public file.
pub(crate) const fn public(hash: FileHash) -> FileHash {
    hash & !1
}

const fn split(hash: FileHash) -> [u64; 2] {
    [(hash >> 64) as u64, hash as u64]
}

impl Part {
    fn new() -> Self {
        Self {
            entries: Vec::new(),
            buckets: vec![NONE; 8],
            free: NONE,
            oldest: NONE,
            newest: NONE,
            count: 0,
        }
    }

    const fn bucket(&self, hash: [u64; 2]) -> usize {
        hash[1] as usize & (self.buckets.len() - 1)
    }

    fn find(&self, hash: [u64; 2]) -> Option<u32> {
        let mut place = self.buckets[self.bucket(hash)];
        while place != NONE {
            let entry = &self.entries[place as usize];
            if entry.hash == hash {
                return Some(place);
            }
            place = entry.chain;
        }
        None
    }

    fn link(&mut self, place: u32, age: Age) {
        let next = match age {
            Age::New => std::mem::replace(&mut self.newest, place),
            Age::Found => std::mem::replace(&mut self.oldest, place),
        };
        let entry = &mut self.entries[place as usize];
        (entry.older, entry.newer) = match age {
            Age::New => (next, NONE),
            Age::Found => (NONE, next),
        };
        match (self.entries.get_mut(next as usize), age) {
            (Some(next), Age::New) => next.newer = place,
            (Some(next), Age::Found) => next.older = place,
            (None, Age::New) => self.oldest = place,
            (None, Age::Found) => self.newest = place,
        }
    }

    fn unlink(&mut self, place: u32) {
        let IndexEntry { older, newer, .. } = self.entries[place as usize];
        match self.entries.get_mut(older as usize) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
        match self.entries.get_mut(newer as usize) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
    }

    fn insert(&mut self, entry: IndexEntry, age: Age) {
        debug_assert!(self.find(entry.hash).is_none(), "a file has one entry");
        if self.count >= self.buckets.len() * 2 {
            self.rehash();
        }
        let bucket = self.bucket(entry.hash);
        let entry = IndexEntry { chain: self.buckets[bucket], ..entry };
        let place = if self.free == NONE {
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        } else {
            let place = self.free;
            self.free = self.entries[place as usize].chain;
            self.entries[place as usize] = entry;
            place
        };
        self.buckets[bucket] = place;
        self.count += 1;
        self.link(place, age);
    }

    fn rehash(&mut self) {
        self.buckets = vec![NONE; self.buckets.len() * 2];
        let mut place = self.oldest;
        while let Some(entry) = self.entries.get(place as usize) {
            let bucket = self.bucket(entry.hash);
            let newer = entry.newer;
            self.entries[place as usize].chain =
                std::mem::replace(&mut self.buckets[bucket], place);
            place = newer;
        }
    }

    fn remove(&mut self, place: u32) -> IndexEntry {
        self.unlink(place);
        let entry = self.entries[place as usize];
        let bucket = self.bucket(entry.hash);
        if self.buckets[bucket] == place {
            self.buckets[bucket] = entry.chain;
        } else {
            let mut before = self.buckets[bucket] as usize;
            while self.entries[before].chain != place {
                before = self.entries[before].chain as usize;
            }
            self.entries[before].chain = entry.chain;
        }
        self.entries[place as usize].chain = self.free;
        self.free = place;
        self.count -= 1;
        debug_assert!(
            (self.count == 0) == (self.oldest == NONE)
                && (self.count == 0) == (self.newest == NONE),
            "the list by last use has every file"
        );
        entry
    }
}

/// The files of one disk tree.
#[derive(Debug)]
pub(crate) struct Index {
    parts: Vec<Mutex<Part>>,
    blocks: AtomicU64,
    count: AtomicU64,
    /// The number of private files per session group.
    private: Vec<AtomicU32>,
    is_whole: AtomicBool,
}

impl Index {
    pub(crate) fn new() -> Self {
        Self {
            parts: (0..PARTS).map(|_| Mutex::new(Part::new())).collect(),
            blocks: AtomicU64::new(0),
            count: AtomicU64::new(0),
            private: (0..GROUPS).map(|_| AtomicU32::new(0)).collect(),
            is_whole: AtomicBool::new(false),
        }
    }

    fn part(&self, hash: FileHash) -> &Mutex<Part> {
        &self.parts[(hash >> 122) as usize % PARTS]
    }

    fn count_private(&self, hash: FileHash, change: u32) {
        if hash & 1 == 1 {
            let group = (hash >> 1) as usize % GROUPS;
            let before = self.private[group].fetch_add(change, Ordering::Release);
            assert!(change == 1 || before > 0, "no private file is denied");
        }
    }

    /// Whether a session may have private files; takes no lock.
    pub(crate) fn may_have_private(&self, session: u64) -> bool {
        let group = (session % GROUPS as u64) as usize;
        !self.is_whole() || self.private[group].load(Ordering::Acquire) > 0
    }

    /// Changes the sums, each by one addition, so that no reader sees a replaced file twice.
    fn account(&self, blocks: i64, count: i64) {
        let before = self.blocks.fetch_add(blocks.cast_unsigned(), Ordering::Relaxed);
        assert!(before.checked_add_signed(blocks).is_some(), "the blocks are those of the files");
        let before = self.count.fetch_add(count.cast_unsigned(), Ordering::Relaxed);
        assert!(before.checked_add_signed(count).is_some(), "the count is that of the files");
    }

    /// Records a file of `bytes` bytes, used at `now` (seconds). A file that the walk found does
    /// not change a known entry.
    pub(crate) fn note(&self, hash: FileHash, bytes: u64, now: u32, age: Age) {
        let blocks = u32::try_from(bytes.div_ceil(BLOCK)).unwrap_or(u32::MAX);
        let mut part = lock(self.part(hash));
        let known = part.find(split(hash));
        if known.is_some() && age == Age::Found {
            return;
        }
        let replaced = known.map(|place| part.remove(place));
        if replaced.is_none() {
            self.count_private(hash, 1);
        }
        let hash = split(hash);
        let entry = IndexEntry { hash, chain: NONE, older: NONE, newer: NONE, blocks, used: now };
        part.insert(entry, age);
        // Under the lock: a removal must not be counted before the file is.
        let gone = replaced.map_or(0, |entry| entry.blocks);
        self.account(i64::from(blocks) - i64::from(gone), i64::from(replaced.is_none()));
    }

    /// Records a use of a file, if it is known.
    pub(crate) fn touch(&self, hash: FileHash, now: u32) {
        let mut part = lock(self.part(hash));
        if let Some(place) = part.find(split(hash))
            && part.entries[place as usize].used < now
        {
            part.unlink(place);
            part.entries[place as usize].used = now;
            part.link(place, Age::New);
        }
    }

    /// Removes a file from the index.
    pub(crate) fn remove(&self, hash: FileHash) {
        let mut part = lock(self.part(hash));
        if let Some(place) = part.find(split(hash)) {
            let gone = part.remove(place);
            drop(part);
            self.account(-i64::from(gone.blocks), -1);
            self.count_private(hash, u32::MAX);
        }
    }

    /// Whether a file may exist.
    pub(crate) fn may_have(&self, hash: FileHash) -> bool {
        !self.is_whole() || self.has(hash)
    }

    /// Whether the index has a file.
    pub(crate) fn has(&self, hash: FileHash) -> bool {
        lock(self.part(hash)).find(split(hash)).is_some()
    }

    /// The least recently used file, and the time of its last use.
    pub(crate) fn oldest(&self) -> Option<(FileHash, u32)> {
        let oldest = self.parts.iter().filter_map(|part| {
            let part = lock(part);
            let entry = part.entries.get(part.oldest as usize)?;
            Some((u128::from(entry.hash[0]) << 64 | u128::from(entry.hash[1]), entry.used))
        });
        oldest.min_by_key(|(_, used)| *used)
    }

    /// Appends up to `max` files of a part, beginning at a place. Returns the next place, or `None`
    /// at the end of the part.
    pub(crate) fn list(
        &self,
        part: usize,
        from: usize,
        max: usize,
        out: &mut Vec<FileHash>,
    ) -> Option<usize> {
        let part = lock(self.parts.get(part)?);
        let end = part.entries.len().min(from + max);
        for (place, entry) in (from..).zip(part.entries.get(from..end)?) {
            // A free entry keeps its old hash and is in no chain.
            if part.find(entry.hash) == Some(place as u32) {
                out.push(u128::from(entry.hash[0]) << 64 | u128::from(entry.hash[1]));
            }
        }
        (end < part.entries.len()).then_some(end)
    }

    /// The files whose names begin with the bits of a URL. It scans a whole part; for counts of
    /// purged files.
    pub(crate) fn copies(&self, url_bits: u64) -> Vec<FileHash> {
        let part = lock(self.part(first_of(url_bits)));
        let mut found = Vec::new();
        for (place, entry) in (0..).zip(&part.entries) {
            let hash = u128::from(entry.hash[0]) << 64 | u128::from(entry.hash[1]);
            // A free entry keeps its old hash and is in no chain.
            if shared_bits(hash) == url_bits && part.find(entry.hash) == Some(place) {
                found.push(hash);
            }
        }
        found
    }

    pub(crate) const PARTS: usize = PARTS;

    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.load(Ordering::Relaxed).saturating_mul(BLOCK)
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether the walk has ended.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole.load(Ordering::Acquire)
    }

    pub(crate) fn set_whole(&self) {
        self.is_whole.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::{Age, BLOCK, Index};

    #[test]
    fn an_entry_costs_forty_bytes() {
        assert_eq!(size_of::<super::IndexEntry>(), 40);
    }

    #[test]
    fn an_unwalked_index_denies_nothing() {
        let index = Index::new();
        assert!(index.may_have(7));
        index.set_whole();
        assert!(!index.may_have(7));
        index.note(7, 1, 0, Age::New);
        assert!(index.may_have(7) && !index.may_have(8));
    }

    #[test]
    fn a_file_that_is_removed_as_soon_as_it_is_found_was_counted_before() {
        let index = Index::new();
        index.set_whole();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..500_000).for_each(|now| index.note(7, 1, now, Age::New)));
            for _ in 0..500_000 {
                index.remove(7);
                assert!(index.bytes() <= BLOCK && index.count() <= 1);
            }
        });
        index.remove(7);
        assert_eq!((index.bytes(), index.count()), (0, 0));
    }

    #[derive(Clone, Copy, Debug)]
    enum Op {
        Note(u8, u16),
        Found(u8, u16),
        Touch(u8),
        Remove(u8),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (0..40_u8, any::<u16>()).prop_map(|(name, size)| Op::Note(name, size)),
            (0..40_u8, any::<u16>()).prop_map(|(name, size)| Op::Found(name, size)),
            (0..40_u8).prop_map(Op::Touch),
            (0..40_u8).prop_map(Op::Remove),
        ]
    }

    proptest! {
        /// All names are in one part, so that its list is the whole order.
        #[test]
        fn it_is_a_list_by_last_use(ops in proptest::collection::vec(op(), 1..300)) {
            let index = Index::new();
            let mut model: VecDeque<(u8, u64, u32)> = VecDeque::new();
            for (now, op) in (1_u32..).zip(ops) {
                match op {
                    Op::Note(name, size) => {
                        index.note(u128::from(name), u64::from(size), now, Age::New);
                        model.retain(|one| one.0 != name);
                        model.push_back((name, u64::from(size), now));
                    }
                    Op::Found(name, size) => {
                        index.note(u128::from(name), u64::from(size), now, Age::Found);
                        if !model.iter().any(|one| one.0 == name) {
                            model.push_front((name, u64::from(size), now));
                        }
                    }
                    Op::Touch(name) => {
                        index.touch(u128::from(name), now);
                        if let Some(at) = model.iter().position(|one| one.0 == name) {
                            let (name, size, _) = model.remove(at).unwrap();
                            model.push_back((name, size, now));
                        }
                    }
                    Op::Remove(name) => {
                        index.remove(u128::from(name));
                        model.retain(|one| one.0 != name);
                    }
                }
                let blocks: u64 = model.iter().map(|one| one.1.div_ceil(BLOCK)).sum();
                prop_assert_eq!(index.bytes(), blocks * BLOCK);
                prop_assert_eq!(index.count(), model.len() as u64);
                let mut all = Vec::new();
                prop_assert_eq!(index.list(0, 0, 100, &mut all), None);
                all.sort_unstable();
                let mut known: Vec<u128> = model.iter().map(|one| u128::from(one.0)).collect();
                known.sort_unstable();
                prop_assert_eq!(all, known);
            }
            while let Some((name, _, used)) = model.pop_front() {
                prop_assert_eq!(index.oldest(), Some((u128::from(name), used)));
                index.remove(u128::from(name));
            }
            prop_assert_eq!(index.oldest(), None);
        }
    }
}
