//! The queue of finished spans from workers to the exporting thread.
//!
//! INVARIANT: a worker never waits for the exporter: its lock is held for the length of a copy, and
//! a span without room is dropped and counted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::otlp::SpanWriter;

/// LIMIT: bytes of a batch.
const BATCH_BYTES: usize = 1 << 20;

/// The limits of a queue.
#[derive(Clone, Copy, Debug)]
pub struct SpanLimits {
    /// Spans per batch.
    pub batch_size: usize,
    /// Waiting batches per worker.
    pub batch_count: usize,
}

/// The spans of one export request.
#[derive(Debug, Default)]
pub struct SpanBatch {
    /// The encoded spans, for [`super::otlp::export_request`].
    pub bytes: Vec<u8>,
    /// The number of spans.
    pub spans: usize,
}

/// The waiting spans of one worker.
#[derive(Debug, Default)]
struct Waiting {
    open: SpanBatch,
    full: VecDeque<SpanBatch>,
}

/// The spans of all workers of one configuration.
#[derive(Debug)]
pub struct SpanQueue {
    workers: Box<[Mutex<Waiting>]>,
    limits: SpanLimits,
    dropped: AtomicU64,
    /// The worker whose batches are taken next (round robin).
    next: AtomicUsize,
    bell: std::sync::Arc<SpanBell>,
}

/// Wakes the exporting thread.
#[derive(Debug, Default)]
pub struct SpanBell {
    rung: Mutex<bool>,
    wake: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SpanBell {
    /// Wakes the exporting thread.
    pub fn ring(&self) {
        *lock(&self.rung) = true;
        self.wake.notify_one();
    }

    /// Waits for a wake, at most this long.
    pub fn wait(&self, at_most: Duration) {
        let rung = lock(&self.rung);
        let waited = self.wake.wait_timeout_while(rung, at_most, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

impl SpanQueue {
    /// An empty queue for this many workers.
    #[must_use]
    pub fn new(workers: usize, limits: SpanLimits, bell: std::sync::Arc<SpanBell>) -> Self {
        let workers = (0..workers.max(1)).map(|_| Mutex::default()).collect();
        Self { workers, limits, dropped: AtomicU64::new(0), next: AtomicUsize::new(0), bell }
    }

    /// Appends a span of the worker `number`; drops it if there is no room.
    pub fn push(&self, number: u16, span: &SpanWriter) {
        let mut waiting = lock(&self.workers[usize::from(number) % self.workers.len()]);
        let Waiting { open, full } = &mut *waiting;
        if full.len() >= self.limits.batch_count {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        span.push_to(&mut open.bytes);
        open.spans += 1;
        debug_assert!(open.spans <= self.limits.batch_size, "a full batch is closed at once");
        if open.spans >= self.limits.batch_size || open.bytes.len() >= BATCH_BYTES {
            full.push_back(std::mem::take(open));
            drop(waiting);
            self.bell.ring();
        }
    }

    /// Closes incomplete batches, so that [`Self::take`] returns them; without `all`, only those of
    /// workers without a closed batch, because small batches would use up the room of full ones.
    pub fn close_batches(&self, all: bool) {
        for worker in &self.workers {
            let mut waiting = lock(worker);
            if waiting.open.spans > 0 && (all || waiting.full.is_empty()) {
                let closed = std::mem::take(&mut waiting.open);
                waiting.full.push_back(closed);
            }
        }
    }

    /// The next closed batch, round robin over workers.
    pub fn take(&self) -> Option<SpanBatch> {
        let count = self.workers.len();
        debug_assert!(count > 0, "there is a worker");
        let first = self.next.fetch_add(1, Ordering::Relaxed) % count;
        (0..count).find_map(|at| lock(&self.workers[(first + at) % count]).full.pop_front())
    }

    /// The number of closed batches.
    #[must_use]
    pub fn closed(&self) -> usize {
        self.workers.iter().map(|worker| lock(worker).full.len()).sum()
    }

    /// The number of waiting spans.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let of = |waiting: &Waiting| {
            waiting.open.spans + waiting.full.iter().map(|batch| batch.spans).sum::<usize>()
        };
        self.workers.iter().map(|worker| of(&lock(worker))).sum()
    }

    /// Counts spans that could not be exported.
    pub fn drop_batch(&self, batch: &SpanBatch) {
        self.dropped.fetch_add(batch.spans as u64, Ordering::Relaxed);
    }

    /// Spans that were dropped since the last call.
    pub fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{SpanLimits, SpanQueue};
    use crate::tracing::otlp::{AttributeValue, SpanFacts, SpanWriter};

    fn span(len: usize) -> SpanWriter {
        let (trace, span, name) = ([1; 16], [1; 8], &b"n"[..]);
        let times = (1, 2);
        let mut made = SpanWriter::new(&SpanFacts {
            trace,
            span,
            parent: None,
            state: b"",
            name,
            started: times.0,
            ended: times.1,
            is_error: false,
        });
        made.attribute("text", AttributeValue::Text(&vec![b'a'; len]));
        made
    }

    #[test]
    fn a_worker_has_so_many_batches_and_drops_the_rest() {
        let limits = SpanLimits { batch_size: 3, batch_count: 2 };
        let queue = SpanQueue::new(2, limits, Arc::default());
        for _ in 0..10 {
            queue.push(0, &span(1));
        }
        queue.push(1, &span(1));
        assert_eq!((queue.waiting(), queue.take_dropped(), queue.take_dropped()), (7, 4, 0));
        assert_eq!(queue.take().map(|batch| batch.spans), Some(3));
        queue.push(0, &span(1));
        queue.close_batches(false);
        // That of the other worker alone, as the first one has a full one.
        assert_eq!(queue.closed(), 2);
        let both = [queue.take(), queue.take()].map(|batch| batch.map_or(0, |batch| batch.spans));
        assert_eq!(both, [1, 3]);
        assert!(queue.take().is_none());
        queue.close_batches(true);
        assert_eq!(queue.take().map(|batch| batch.spans), Some(1));
        assert!(queue.take().is_none());
        assert_eq!((queue.waiting(), queue.take_dropped()), (0, 0));
    }

    #[test]
    fn no_worker_is_forgotten_for_another() {
        let limits = SpanLimits { batch_size: 1, batch_count: 9 };
        let queue = SpanQueue::new(3, limits, Arc::default());
        for _ in 0..9 {
            (0..3).for_each(|worker| queue.push(worker, &span(1)));
        }
        for _ in 0..3 {
            let _three: Vec<_> = (0..3).map(|_| queue.take()).collect();
            let counts: Vec<usize> =
                queue.workers.iter().map(|one| super::lock(one).full.len()).collect();
            assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
        }
    }

    #[test]
    fn a_batch_of_long_spans_ends_early() {
        let limits = SpanLimits { batch_size: 1000, batch_count: 2 };
        let queue = SpanQueue::new(1, limits, Arc::default());
        for _ in 0..100 {
            queue.push(0, &span(100 << 10));
        }
        assert!(queue.take_dropped() > 70);
        assert!(queue.take().is_some_and(|batch| batch.bytes.len() < 2 << 20));
    }
}
