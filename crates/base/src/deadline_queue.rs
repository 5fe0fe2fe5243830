//! Deadlines of many owners, earliest first.
//!
//! An owner keeps its true deadline and re-arms only when it moves *earlier*; if an entry fires
//! early, its owner re-arms it. A keep-alive deadline that moves later with every request therefore
//! costs nothing, which is why this is a heap and not a timer wheel.
//!
//! Easiest to break: a pass over due entries must end, whatever owners do meanwhile. A pass
//! therefore takes only entries armed before it began; a deadline armed after it has passed fires
//! after the pass.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use std::time::Duration;

use crate::Instant;

/// How far behind a pass a deadline is placed that had passed when it was armed.
const BEHIND: Duration = Duration::from_millis(1);

/// A queue of `(deadline, token)` pairs.
#[derive(Debug, Default)]
pub struct DeadlineQueue {
    heap: BinaryHeap<Reverse<(Instant, u64)>>,
    /// The moment of the last pass.
    passed: Option<Instant>,
}

/// The entries of an owner that stand in the queue: the earliest, and a late one behind it.
///
/// An owner whose deadline is by turns near and far, as that of a connection which retransmits and
/// idles, would else leave a far entry behind each time. Others between the two are forgotten; they
/// fire early.
#[derive(Clone, Copy, Debug, Default)]
pub struct Armed {
    first: Option<Instant>,
    late: Option<Instant>,
}

impl Armed {
    /// Records that the entry of `at` has fired.
    pub fn fired(&mut self, at: Instant) {
        if self.first == Some(at) {
            self.first = self.late.take();
        }
    }
}

impl DeadlineQueue {
    /// Makes `token` fire at `deadline` or earlier, but not in the current pass.
    pub fn arm(&mut self, armed: &mut Armed, deadline: Instant, token: u64) {
        let deadline = self.ahead(deadline);
        if armed.first.is_some_and(|at| at <= deadline) {
            return;
        }
        armed.late = armed.late.or(armed.first);
        armed.first = Some(deadline);
        self.heap.push(Reverse((deadline, token)));
    }

    /// Makes `token` fire at `deadline`, in addition to its other entries.
    pub fn arm_once(&mut self, deadline: Instant, token: u64) {
        let deadline = self.ahead(deadline);
        self.heap.push(Reverse((deadline, token)));
    }

    /// The deadline, or a moment after the last pass if it lies before that.
    fn ahead(&self, deadline: Instant) -> Instant {
        match self.passed {
            Some(passed) if deadline <= passed => passed.after(BEHIND),
            _ => deadline,
        }
    }

    /// When the next entry fires.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes one entry that is due at `now` and returns its deadline and token. Calls with the
    /// same `now` form one pass, and a pass ends.
    pub fn expire(&mut self, now: Instant) -> Option<(Instant, u64)> {
        self.passed = self.passed.max(Some(now));
        let due = self.heap.peek().is_some_and(|Reverse((at, _))| *at <= now);
        if due { self.heap.pop().map(|Reverse(entry)| entry) } else { None }
    }

    /// Entries held, stale ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no entry is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{Armed, DeadlineQueue};
    use crate::Instant;

    #[test]
    fn a_later_deadline_costs_no_entry_and_an_earlier_one_fires_first() {
        let (mut wheel, mut armed) = (DeadlineQueue::default(), Armed::default());
        let at = Instant::from_nanos;
        wheel.arm(&mut armed, at(10), 1);
        wheel.arm(&mut armed, at(20), 1);
        assert_eq!(wheel.len(), 1);
        wheel.arm(&mut armed, at(5), 1);
        assert_eq!(wheel.next(), Some(at(5)));
        assert_eq!(wheel.expire(at(4)), None);
        assert_eq!(wheel.expire(at(5)), Some((at(5), 1)));
        armed.fired(at(5));
        wheel.arm(&mut armed, at(20), 1);
        assert_eq!(wheel.len(), 1);
        assert_eq!(wheel.expire(at(10)), Some((at(10), 1)));
        armed.fired(at(10));
        wheel.arm(&mut armed, at(20), 1);
        assert_eq!(wheel.len(), 1);
    }

    #[test]
    fn a_deadline_that_is_near_and_far_by_turns_costs_one_far_entry() {
        let (mut wheel, mut armed) = (DeadlineQueue::default(), Armed::default());
        let at = Instant::from_nanos;
        for now in (10..10_000).step_by(10) {
            wheel.arm(&mut armed, at(now + 5_000), 1);
            wheel.arm(&mut armed, at(now + 7), 1);
            wheel.arm(&mut armed, at(now + 5), 1);
            while let Some((due, token)) = wheel.expire(at(now + 9)) {
                assert_eq!(token, 1);
                armed.fired(due);
            }
            assert!(wheel.len() <= 1, "{} entries at {now}", wheel.len());
        }
        // The deadline that stands is not missed.
        let last = wheel.next().unwrap();
        assert!(last <= at(14_990), "{last:?}");
    }

    #[test]
    fn a_pass_ends_though_every_owner_arms_what_has_passed() {
        let (mut wheel, mut armed) = (DeadlineQueue::default(), Armed::default());
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        wheel.arm(&mut armed, at(1), 1);
        wheel.arm_once(at(2), 2);
        let mut fired = Vec::new();
        while let Some((due, token)) = wheel.expire(at(5)) {
            fired.push(token);
            if token == 1 {
                armed.fired(due);
                wheel.arm(&mut armed, at(1), 1);
            } else {
                wheel.arm_once(at(5), 2);
            }
        }
        assert_eq!(fired, [1, 2]);
        // The entry is not lost: it is due right after the pass.
        assert_eq!(wheel.next(), Some(at(6)));
        assert_eq!(wheel.expire(at(6)), Some((at(6), 1)));
        armed.fired(at(6));
        wheel.arm(&mut armed, at(9), 1);
        assert_eq!(wheel.expire(at(6)), Some((at(6), 2)));
        assert_eq!(wheel.next(), Some(at(9)));
    }
}
