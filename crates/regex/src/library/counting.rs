//! Counts the steps of a match: each callout reports the current position of the match, and the
//! next item.

use std::ffi::{c_int, c_void};

use super::TOO_LONG;

/// Scanned bytes that count as one step.
pub(crate) const BYTES_PER_STEP: usize = 16;

/// The argument of a callout: the fields up to the last one that is used.
#[repr(C)]
pub(super) struct CalloutBlock {
    version: u32,
    callout_number: u32,
    capture_top: u32,
    capture_last: u32,
    offset_vector: *mut usize,
    mark: *const u8,
    subject: *const u8,
    subject_length: usize,
    start_match: usize,
    current_position: usize,
    pattern_position: usize,
    next_item_length: usize,
}

/// The cost of items.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ItemCosts<'p> {
    /// The expression as written.
    pub(crate) source: &'p [u8],
    /// The cost of a scanned character relative to a byte.
    pub(crate) set: usize,
    /// Bytes that an item may scan before it fails, without a callout.
    pub(crate) unseen: usize,
    /// Whether any item may, or only those with a large repetition count.
    pub(crate) is_unseen_anywhere: bool,
}

impl ItemCosts<'_> {
    /// The steps of scanning this many bytes.
    fn of(&self, bytes: usize) -> u32 {
        u32::try_from((bytes / BYTES_PER_STEP).saturating_mul(self.set)).unwrap_or(u32::MAX)
    }

    /// The steps of the item at `position` of the expression, without scanned bytes.
    fn of_item(&self, position: usize, len: usize) -> u32 {
        let own = u32::try_from(self.set).unwrap_or(u32::MAX);
        if self.unseen < BYTES_PER_STEP {
            return own;
        }
        let item = self.source.get(position..position.saturating_add(len)).unwrap_or_default();
        // Its last byte shows this, however long it is.
        let is_repeated = matches!(item, [.., b'}'] | [.., b'}', b'+' | b'?']);
        match self.is_unseen_anywhere || is_repeated {
            true => own.saturating_add(self.of(self.unseen)),
            false => own,
        }
    }
}

/// The remaining steps of a match.
pub(super) struct StepCounter<'p> {
    pub(super) left: u32,
    /// The position at the last callout.
    pub(super) at: usize,
    pub(super) costs: ItemCosts<'p>,
}

impl StepCounter<'_> {
    const fn take(&mut self, steps: u32) {
        self.left = self.left.saturating_sub(steps);
    }

    /// Takes the steps of a search for a first byte over this many bytes.
    pub(super) fn take_rest(&mut self, bytes: usize) {
        self.take(self.costs.of(bytes / BYTES_PER_STEP));
    }
}

/// Takes the steps since the last callout.
///
/// # Safety
///
/// The library calls it with its block and the [`StepCounter`] of the match.
pub(super) unsafe extern "C" fn count(block: *mut CalloutBlock, counter: *mut c_void) -> c_int {
    // SAFETY: the library's block lives as long as the call.
    let block = unsafe { &*block };
    // SAFETY: `search_counted` gave its own counter, and uses it only when the match is over.
    let counter = unsafe { &mut *counter.cast::<StepCounter<'_>>() };
    let moved = counter.costs.of(counter.at.abs_diff(block.current_position));
    counter.at = block.current_position;
    let item = counter.costs.of_item(block.pattern_position, block.next_item_length);
    counter.take(moved.saturating_add(item));
    if counter.left == 0 { TOO_LONG } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::{BYTES_PER_STEP, ItemCosts};

    #[test]
    fn items_that_are_repeated_cost_what_they_may_go_through() {
        let rows = [
            ("a{20}", true),
            ("[ab]{20,}", true),
            ("a{20}+", true),
            ("a{20}?", true),
            ("){20}", true),
            ("[a{]", false),
            ("a+", false),
            ("", false),
        ];
        for (source, is_dear) in rows {
            let costs = ItemCosts {
                source: source.as_bytes(),
                set: 1,
                unseen: 10 * BYTES_PER_STEP,
                is_unseen_anywhere: false,
            };
            let steps = costs.of_item(0, source.len());
            assert_eq!(steps, if is_dear { 11 } else { 1 }, "{source}");
        }
    }
}
