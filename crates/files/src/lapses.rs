//! Lapses: paths whose watched results became invalid.
//!
//! Owns the counters by which users of a result detect that. Paths share counters: a lapse may be
//! reported for another path as well, but is never missed.

use std::hash::BuildHasher;

use crate::hash::Seeded;

/// LIMIT: counters of paths; each has four bytes.
const PLACES: usize = 4096;

/// The counts of lapses.
#[derive(Debug)]
pub(crate) struct Lapses {
    total: u64,
    places: Box<[u32]>,
    hasher: Seeded,
}

/// The count of a path's lapses at a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LapseMark {
    place: u32,
    count: u32,
}

impl Lapses {
    pub(crate) fn new(hasher: Seeded) -> Self {
        Self { total: 0, places: vec![0; PLACES].into(), hasher }
    }

    /// The number of all lapses.
    #[inline]
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// Counts a lapse of `path`.
    pub(crate) fn note(&mut self, path: &[u8]) {
        self.total += 1;
        let place = self.place(path);
        self.places[place] = self.places[place].wrapping_add(1);
    }

    /// Counts a lapse of every path.
    pub(crate) fn count_all(&mut self) {
        self.total += 1;
        self.places.iter_mut().for_each(|count| *count = count.wrapping_add(1));
    }

    pub(crate) fn mark(&self, path: &[u8]) -> LapseMark {
        let place = self.place(path);
        LapseMark { place: place as u32, count: self.places[place] }
    }

    /// Whether the path has not lapsed since it was marked.
    pub(crate) fn stands(&self, mark: LapseMark) -> bool {
        debug_assert!((mark.place as usize) < PLACES, "a mark is of one of the places");
        self.places[mark.place as usize] == mark.count
    }

    fn place(&self, path: &[u8]) -> usize {
        (self.hasher.hash_one(path) % PLACES as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::Lapses;
    use crate::hash::Seeded;

    #[test]
    fn a_path_lapses_alone_or_with_all() {
        let mut lapses = Lapses::new(Seeded::new(7));
        let marks = |lapses: &Lapses| [lapses.mark(b"/a/x"), lapses.mark(b"/b/x")];
        let before = marks(&lapses);
        assert_ne!(before[0].place, before[1].place, "the seed keeps them apart");
        lapses.note(b"/a/x");
        assert_eq!(before.map(|mark| lapses.stands(mark)), [false, true]);
        let before = marks(&lapses);
        assert!(before.iter().all(|mark| lapses.stands(*mark)));
        lapses.count_all();
        assert!(!before.iter().any(|mark| lapses.stands(*mark)));
        assert_eq!(lapses.total(), 2);
    }
}
