//! A compact map from addresses to numbers, searched by bisection.

/// Numbers over a whole address space; each applies from its start to the next one's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spans<T> {
    starts: Vec<T>,
    values: Vec<u32>,
}

impl<T: Copy + Ord + From<u8>> Spans<T> {
    /// The same number everywhere.
    #[must_use]
    pub fn new(value: u32) -> Self {
        Self { starts: vec![T::from(0)], values: vec![value] }
    }

    /// From `start` on, `value` applies. Starts come in order; of two equal ones the last counts.
    pub fn begin(&mut self, start: T, value: u32) {
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.values.pop();
        }
        if self.values.last() != Some(&value) {
            self.starts.push(start);
            self.values.push(value);
        }
    }

    /// The number of the address `at`.
    #[must_use]
    pub fn find(&self, at: T) -> &u32 {
        let after = self.starts.partition_point(|start| *start <= at);
        &self.values[after.saturating_sub(1)]
    }

    /// How many stretches there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are no spans, which is never the case.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }
}

/// Numbers that addresses are.
pub trait SpanAddress: Copy + Ord + From<u8> {
    /// The next one, if there is one.
    fn next(self) -> Option<Self>;
}

impl SpanAddress for u32 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl SpanAddress for u128 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl<T: SpanAddress> Spans<T> {
    /// Builds spans from ranges (first, last, number), any two of which are disjoint or nested; the
    /// innermost counts, and 0 outside all ranges.
    #[must_use]
    pub fn nested(mut ranges: Vec<(T, T, u32)>) -> Self {
        ranges.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        let mut spans = Self::new(0);
        let mut open: Vec<(T, u32)> = Vec::new();
        for (start, end, value) in ranges {
            spans.close(&mut open, Some(start));
            spans.begin(start, value);
            open.push((end, value));
        }
        spans.close(&mut open, None);
        spans.starts.shrink_to_fit();
        spans.values.shrink_to_fit();
        spans
    }

    /// Closes the ranges that end before `until`, or all.
    fn close(&mut self, open: &mut Vec<(T, u32)>, until: Option<T>) {
        while let Some((end, _)) = open.last().copied()
            && until.is_none_or(|until| end < until)
        {
            open.pop();
            let below = open.last().map_or(0, |(_, value)| *value);
            if let Some(next) = end.next() {
                self.begin(next, below);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Spans;

    proptest! {
        /// The longest prefix counts, wherever its neighbours end.
        #[test]
        fn the_innermost_range_counts(
            nets in prop::collection::btree_map((0_u32..64, 24_u32..33), 1_u32..9, 0..30),
        ) {
            let range = |address: u32, bits: u32| {
                let size = u32::MAX.checked_shr(bits).unwrap_or(0);
                (address & !size, address & !size | size)
            };
            let mut exact = std::collections::BTreeMap::new();
            for ((address, bits), value) in nets {
                exact.insert((range(address << 4, bits), bits), value);
            }
            let all = exact.iter().map(|((range, _), value)| (range.0, range.1, *value));
            let spans = Spans::nested(all.collect());
            for at in 0..2048_u32 {
                let over = exact.iter().filter(|((range, _), _)| range.0 <= at && at <= range.1);
                let wanted = over.max_by_key(|((_, bits), _)| *bits).map_or(0, |(_, value)| *value);
                prop_assert_eq!(*spans.find(at), wanted);
            }
            prop_assert_eq!(*spans.find(u32::MAX), 0);
        }
    }

    #[test]
    fn the_last_address_of_all_may_be_named() {
        let spans = Spans::nested(vec![(u128::MAX, u128::MAX, 2), (0, u128::MAX, 1)]);
        assert_eq!((*spans.find(0), *spans.find(u128::MAX)), (1, 2));
        assert_eq!(spans.len(), 2);
    }
}
