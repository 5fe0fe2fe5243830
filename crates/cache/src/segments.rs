//! An array that only grows, and that readers use without a lock meanwhile.
//!
//! Row `k` has `BASE << k` cells. So an index keeps its cell, and nothing moves.

use std::sync::OnceLock;

/// LIMIT: rows. With 16 cells in the first row this exceeds any index.
const ROWS: usize = 28;

/// Cells that are created row by row, each with its default value.
#[derive(Debug)]
pub(crate) struct Segments<T> {
    base: usize,
    rows: [OnceLock<Box<[T]>>; ROWS],
}

impl<T: Default> Segments<T> {
    /// An empty array whose first row has `base` cells, a power of two.
    pub(crate) const fn new(base: usize) -> Self {
        Self { base, rows: [const { OnceLock::new() }; ROWS] }
    }

    const fn place(&self, index: usize) -> (usize, usize) {
        debug_assert!(self.base.is_power_of_two(), "a row is found by the bits of an index");
        let group = index / self.base + 1;
        let row = group.ilog2() as usize;
        (row, index - self.base * ((1 << row) - 1))
    }

    /// The cell at `index`, if its row exists.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let (row, column) = self.place(index);
        self.rows.get(row)?.get().map(|cells| &cells[column])
    }

    /// The cell at `index`, whose row is created if needed; `None` beyond the last row.
    pub(crate) fn make(&self, index: usize) -> Option<&T> {
        let (row, column) = self.place(index);
        let size = self.base << row;
        let cells = self.rows.get(row)?.get_or_init(|| (0..size).map(|_| T::default()).collect());
        Some(&cells[column])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_index_has_its_own_cell() {
        let cells: super::Segments<AtomicUsize> = super::Segments::new(4);
        for index in 0..1000 {
            assert!(
                index % 4 != 0 || cells.get(index).is_none_or(|c| c.load(Ordering::Relaxed) == 0)
            );
            cells.make(index).unwrap().store(index + 1, Ordering::Relaxed);
        }
        for index in 0..1000 {
            assert_eq!(cells.get(index).unwrap().load(Ordering::Relaxed), index + 1);
        }
    }
}
