//! `ranges` of a `geo`: the value of each address, from ranges as written.
//!
//! As in nginx, overlaps are checked within each 65,536 addresses: a range inside another one takes
//! its part of it, the same range again replaces it, and any other overlap is an error.

use std::collections::BTreeMap;

use crate::model::Spans;

/// First and last address within its 65,536, and the number of the text.
type Piece = (u16, u16, u32);

/// Ranges by the upper half of their addresses; pieces in order, none overlaps another.
#[derive(Debug, Default)]
pub(super) struct Ranges(BTreeMap<u16, Vec<Piece>>);

/// The parts of a range, one for each upper half.
fn parts(start: u32, end: u32) -> impl Iterator<Item = (u16, u16, u16)> {
    let (first, last) = (start >> 16, end >> 16);
    (first..=last).map(move |high| {
        let from = if high == first { start as u16 } else { 0 };
        let to = if high == last { end as u16 } else { u16::MAX };
        (high as u16, from, to)
    })
}

impl Ranges {
    /// Adds a range; the numbers of the values that it replaces go to `replaced`.
    ///
    /// # Errors
    ///
    /// The range that it overlaps without being inside it.
    pub(super) fn add(
        &mut self,
        start: u32,
        end: u32,
        value: u32,
        replaced: &mut Vec<u32>,
    ) -> Result<(), (u32, u32)> {
        for (high, from, to) in parts(start, end) {
            let pieces = self.0.entry(high).or_default();
            let after = pieces.partition_point(|piece| piece.0 <= to);
            let Some(at) = after.checked_sub(1).filter(|at| pieces[*at].1 >= from) else {
                pieces.insert(after, (from, to, value));
                continue;
            };
            let (old_from, old_to, old) = pieces[at];
            if (from, to) == (old_from, old_to) {
                replaced.push(old);
                pieces[at].2 = value;
                continue;
            }
            if from < old_from || to > old_to {
                let whole = |low: u16| u32::from(high) << 16 | u32::from(low);
                return Err((whole(old_from), whole(old_to)));
            }
            let before = (from > old_from).then(|| (old_from, from - 1, old));
            let behind = (to < old_to).then(|| (to + 1, old_to, old));
            let middle = Some((from, to, value));
            pieces.splice(at..=at, [before, middle, behind].into_iter().flatten());
        }
        Ok(())
    }

    /// Removes a range; false if some part of it was not defined as such.
    pub(super) fn delete(&mut self, start: u32, end: u32) -> bool {
        let mut is_whole = true;
        for (high, from, to) in parts(start, end) {
            let pieces = self.0.get_mut(&high);
            let found = pieces.and_then(|pieces| {
                let at = pieces.iter().position(|piece| (piece.0, piece.1) == (from, to))?;
                Some(pieces.remove(at))
            });
            is_whole &= found.is_some();
        }
        is_whole
    }

    /// The value of each address; all others have `default`.
    pub(super) fn spans(self, default: u32) -> Spans<u32> {
        let mut spans = Spans::new(default);
        for (high, pieces) in self.0 {
            let whole = |low: u16| u32::from(high) << 16 | u32::from(low);
            for (from, to, value) in pieces {
                spans.begin(whole(from), value);
                if let Some(next) = whole(to).checked_add(1) {
                    spans.begin(next, default);
                }
            }
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Ranges;

    #[test]
    fn a_range_inside_another_takes_its_part_and_halves_do_not_meet() {
        let mut ranges = Ranges::default();
        let mut replaced = Vec::new();
        assert_eq!(ranges.add(10, 0x2_0005, 1, &mut replaced), Ok(()));
        assert_eq!(ranges.add(20, 30, 2, &mut replaced), Ok(()));
        assert_eq!(ranges.add(0x2_0004, 0x2_0009, 3, &mut replaced), Err((0x2_0000, 0x2_0005)));
        assert_eq!(ranges.add(5, 12, 3, &mut replaced), Err((10, 19)));
        assert!(replaced.is_empty());
        assert_eq!(ranges.add(20, 30, 4, &mut replaced), Ok(()));
        assert_eq!(replaced, [2]);
        assert!(!ranges.delete(10, 30));
        assert!(ranges.delete(0x1_0000, 0x1_FFFF));
        let spans = ranges.spans(0);
        let found = [9, 10, 19, 20, 30, 31, 0xFFFF, 0x1_0000, 0x2_0000, 0x2_0005, 0x2_0006]
            .map(|at| *spans.find(at));
        assert_eq!(found, [0, 1, 1, 4, 4, 1, 1, 0, 1, 1, 0]);
    }

    proptest! {
        /// Every address has the value of the last accepted range that contains it.
        #[test]
        fn each_address_has_the_last_range_over_it(
            all in prop::collection::vec((0_u32..300, 0_u32..80), 0..24),
        ) {
            let base = 0xFF00;
            let mut ranges = Ranges::default();
            let mut model = vec![0; 600];
            for (number, (start, len)) in all.iter().enumerate() {
                let (start, end) = (base + start, base + start + len);
                let is_one_half = start >> 16 == end >> 16;
                let added = ranges.add(start, end, number as u32 + 1, &mut Vec::new());
                if added.is_ok() {
                    model[(start - base) as usize..=(end - base) as usize].fill(number as u32 + 1);
                } else if !is_one_half {
                    // A part of it may have been added; the whole configuration is refused then.
                    return Ok(());
                }
            }
            let spans = ranges.spans(0);
            for (at, wanted) in model.iter().enumerate() {
                prop_assert_eq!(spans.find(base + at as u32), wanted);
            }
        }
    }
}
