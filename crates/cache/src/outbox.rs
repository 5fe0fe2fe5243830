//! Purges on their way to the other nodes of a cluster.
//!
//! Owns their numbers and what waits, within limits. When more waits than may, all of it becomes
//! one purge of everything: no purge is lost, and nothing grows while no node can be reached.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use crate::disk::journal::{self, Echo, JournalEntry};
use crate::disk::{DiskPurge, DiskPurgeTarget};
use crate::tags::{TagPurge, lock};

/// LIMIT: bytes of purges that wait.
const BYTES_MAX: usize = 16 << 20;

/// The purges that wait.
#[derive(Debug, Default)]
pub struct PurgeOutbox {
    is_open: AtomicBool,
    /// Wall-clock time of the purges, for people who read the stream.
    unix_ms: AtomicU64,
    state: Mutex<OutboxState>,
}

#[derive(Debug, Default)]
struct OutboxState {
    /// Each as an entry of a journal, whose number is that of the purge.
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    /// LIMIT: purges that wait.
    max: usize,
    /// The number of the last purge.
    last: u64,
    /// How often more waited than may.
    overflows: u64,
    /// Who waits for purges.
    waker: Option<Waker>,
}

/// Purges that leave together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxBatch {
    /// The number of the first one.
    pub first: u64,
    /// The number of the last one; numbers have no gaps.
    pub last: u64,
    /// The purges, as entries of a journal.
    pub bytes: Vec<u8>,
}

/// What waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxCounts {
    /// Purges that wait.
    pub waiting: usize,
    /// The number of the last purge of this process.
    pub last: u64,
    /// How often more waited than may.
    pub overflows: u64,
}

impl PurgeOutbox {
    /// Keeps purges from now on, up to `max` of them.
    pub fn open(&self, max: usize) {
        lock(&self.state).max = max;
        self.is_open.store(true, Ordering::Release);
    }

    /// Keeps no purges from now on; those that wait are dropped.
    pub fn close(&self) {
        self.is_open.store(false, Ordering::Release);
        let mut state = lock(&self.state);
        state.waiting.clear();
        state.bytes = 0;
    }

    /// Whether it keeps purges.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Sets the time.
    pub fn set_time(&self, unix_ms: u64) {
        self.unix_ms.store(unix_ms, Ordering::Relaxed);
    }

    /// Keeps a purge, and gives it the next number. The caller holds the lock that orders purges.
    pub(crate) fn push(&self, order: &DiskPurge<'_>) -> u64 {
        let (number, waker) = {
            let mut state = lock(&self.state);
            let unix_ms = self.unix_ms.load(Ordering::Relaxed);
            state.push(order, unix_ms);
            if state.waiting.len() > state.max || state.bytes > BYTES_MAX {
                state.collapse(unix_ms);
            }
            (state.last, state.waker.take())
        };
        waker.into_iter().for_each(Waker::wake);
        number
    }

    /// Keeps a purge of all objects of all nodes, which takes the place of those that wait.
    pub fn push_everything(&self) {
        let waker = {
            let mut state = lock(&self.state);
            state.replace_all(self.unix_ms.load(Ordering::Relaxed));
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Waits until there are purges.
    pub fn poll_waiting(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = lock(&self.state);
        if state.waiting.is_empty() {
            state.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Takes the oldest purges, at least one, as many as `bytes` have room for.
    #[must_use]
    pub fn take(&self, bytes: usize) -> Option<OutboxBatch> {
        let mut state = lock(&self.state);
        let first = state.last + 1 - state.waiting.len() as u64;
        let mut batch = OutboxBatch { first, last: first, bytes: state.waiting.pop_front()? };
        while let Some(next) = state.waiting.front()
            && batch.bytes.len() + next.len() <= bytes
        {
            batch.bytes.extend_from_slice(next);
            batch.last += 1;
            state.waiting.pop_front();
        }
        assert!(batch.first <= batch.last, "a batch has purges");
        state.bytes -= batch.bytes.len();
        debug_assert!(
            state.waiting.is_empty() == (batch.last == state.last),
            "numbers have no gaps"
        );
        Some(batch)
    }

    /// What waits.
    #[must_use]
    pub fn counts(&self) -> OutboxCounts {
        let state = lock(&self.state);
        OutboxCounts { waiting: state.waiting.len(), last: state.last, overflows: state.overflows }
    }
}

impl OutboxState {
    fn push(&mut self, order: &DiskPurge<'_>, unix_ms: u64) {
        self.last += 1;
        let order = DiskPurge { sequence: self.last, ..*order };
        let mut entry = Vec::new();
        journal::push(&mut entry, &JournalEntry::Purge(order, Echo::First), unix_ms);
        self.bytes += entry.len();
        self.waiting.push_back(entry);
        debug_assert!(self.waiting.len() as u64 <= self.last, "what waits has numbers");
    }

    /// More purges wait than may. Receivers see by the number that purges are missing.
    fn collapse(&mut self, unix_ms: u64) {
        self.overflows += 1;
        self.replace_all(unix_ms);
    }

    fn replace_all(&mut self, unix_ms: u64) {
        self.waiting.clear();
        self.bytes = 0;
        self.push(&EVERYTHING, unix_ms);
        debug_assert_eq!(self.waiting.len(), 1, "one purge stands for all");
    }
}

/// All objects.
const EVERYTHING: DiskPurge<'static> = DiskPurge {
    namespace: b"",
    session: b"",
    target: DiskPurgeTarget::Everything,
    how: TagPurge::Dead,
    sequence: 0,
};

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::PurgeOutbox;
    use crate::disk::journal::{self, JournalEntry};
    use crate::disk::{DiskPurge, DiskPurgeTarget};
    use crate::tags::TagPurge;

    fn push(outbox: &PurgeOutbox, tag: &[u8]) {
        let (namespace, session, target) = (&b"page:a"[..], &b""[..], DiskPurgeTarget::Tag(tag));
        outbox.push(&DiskPurge { namespace, session, target, how: TagPurge::Dead, sequence: 9 });
    }

    /// The number and text of each purge.
    fn read(bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut found = Vec::new();
        let read = journal::read(bytes, |entry| {
            if let JournalEntry::Purge(order, _) = entry {
                let text = match order.target {
                    DiskPurgeTarget::Tag(tag) => tag.to_vec(),
                    other => format!("{other:?}").into_bytes(),
                };
                found.push((order.sequence, text));
            }
        });
        assert_eq!((read.used, read.is_damaged), (bytes.len(), false));
        found
    }

    #[test]
    fn purges_leave_in_order_with_numbers_that_have_no_gaps() {
        let outbox = PurgeOutbox::default();
        outbox.open(100);
        (b'a'..b'f').for_each(|tag| push(&outbox, &[tag]));
        let one = outbox.take(1).expect("a batch");
        assert_eq!((one.first, one.last), (1, 1), "one leaves however large it is");
        let rest = outbox.take(1 << 20).expect("a batch");
        assert_eq!((rest.first, rest.last), (2, 5));
        let texts: Vec<_> = read(&rest.bytes);
        assert_eq!(texts, [2, 3, 4, 5].map(|n| (n, vec![b'a' + n as u8 - 1])));
        assert_eq!(outbox.take(9), None);
        push(&outbox, b"z");
        assert_eq!(outbox.take(9).map(|batch| batch.first), Some(6));
    }

    #[test]
    fn more_than_may_wait_is_everything() {
        let outbox = PurgeOutbox::default();
        outbox.open(3);
        for _ in 0..4 {
            push(&outbox, b"tag");
        }
        let counts = outbox.counts();
        assert_eq!((counts.waiting, counts.last, counts.overflows), (1, 5, 1));
        let batch = outbox.take(9).expect("a batch");
        assert_eq!(read(&batch.bytes), [(5, b"Everything".to_vec())]);
        for _ in 0..3 {
            push(&outbox, &[b'x'; 900_000]);
        }
        assert_eq!(outbox.counts().overflows, 1);
        (0..30).for_each(|_| push(&PurgeOutbox::default(), &[b'x'; 900_000]));
    }

    #[test]
    fn who_waits_is_woken_and_nothing_is_kept_when_closed() {
        let outbox = PurgeOutbox::default();
        outbox.open(3);
        let context = Context::from_waker(Waker::noop());
        assert_eq!(outbox.poll_waiting(&context), Poll::Pending);
        outbox.push_everything();
        assert_eq!(outbox.poll_waiting(&context), Poll::Ready(()));
        outbox.close();
        assert!(!outbox.is_open() && outbox.counts().waiting == 0);
    }
}
