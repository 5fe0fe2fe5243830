//! An array that only grows, read without a lock while it grows.
//!
//! Row `k` holds `BASE << k` cells, so an index names its cell for ever and nothing moves.

use std::sync::OnceLock;

/// Rows; with a base of 16 cells this is more than any count that fits an index.
const ROWS: usize = 28;

/// Cells made on demand, row by row, each with its default value.
#[derive(Debug)]
pub(crate) struct Segments<T> {
    base: usize,
    rows: [OnceLock<Box<[T]>>; ROWS],
}

impl<T: Default> Segments<T> {
    /// An empty array whose first row will have `base` cells, a power of two.
    pub(crate) const fn new(base: usize) -> Self {
        Self { base, rows: [const { OnceLock::new() }; ROWS] }
    }

    const fn place(&self, index: usize) -> (usize, usize) {
        let group = index / self.base + 1;
        let row = group.ilog2() as usize;
        (row, index - self.base * ((1 << row) - 1))
    }

    /// The cell at `index` if its row was ever made.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let (row, column) = self.place(index);
        self.rows.get(row)?.get().map(|cells| &cells[column])
    }

    /// The cell at `index`, its row made if need be; none beyond the last row.
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
