//! Objects that the nodes of a cluster share: what is asked of and offered to their store, and what
//! of it this node takes.
//!
//! ```text
//!   missed in memory and on disk ──▶ question (with its permit) ──▶ (thread) ──▶ the store's bytes
//!       taken ──▶ in memory: look up again        useless, absent, late ──▶ the permit comes back
//!   committed ──▶ offer ──▶ (thread) ──▶ the store, for as long as the object may be served
//! ```
//! It does no I/O: the thread of the cluster carries questions and offers. INVARIANT: a question
//! gives its permit back, whatever becomes of it, and a lease is returned or used up.

mod log;
mod orders;
mod record;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use log::PurgeLog;
pub use log::StreamPlace;
pub(crate) use orders::offer;
pub use orders::{
    SharedAnswer, SharedAsk, SharedLease, SharedOffer, SharedOrder, SharedQuestion, SharedUnfit,
};

use bolide_base::limits::{SHARED_OFFERED_MAX, SHARED_ORDERS_MAX};

use crate::disk::DiskPurge;
use crate::tags::lock;

/// What is shared, as far as this node knows.
#[derive(Debug, Default)]
pub struct Sharing {
    /// Whether purges are remembered.
    is_on: AtomicBool,
    /// Whether the store of the cluster answers in time: questions are taken.
    answers: AtomicBool,
    /// LIMIT: bytes of a body that is offered.
    size_max: AtomicU64,
    /// For how many milliseconds a question is waited for.
    patience_ms: AtomicU64,
    /// Bytes of all offers, those that the thread has among them.
    offered: AtomicU64,
    log: Mutex<PurgeLog>,
    desk: Mutex<Desk>,
    figures: Figures,
}

#[derive(Debug, Default)]
struct Desk {
    orders: VecDeque<SharedOrder>,
    /// How many of each kind are among them.
    waiting: [usize; SharedOrder::KINDS],
    waker: Option<Waker>,
}

#[derive(Debug, Default)]
struct Figures {
    asked: AtomicU64,
    taken: AtomicU64,
    unfit: AtomicU64,
    offered: AtomicU64,
    late: AtomicU64,
}

/// What was asked and offered since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharingCounts {
    /// Misses that were asked for.
    pub asked: u64,
    /// Pages of other nodes that were taken.
    pub taken: u64,
    /// Objects that were not: purged, too old, foreign or damaged.
    pub unfit: u64,
    /// Objects that the store of the cluster has taken from this node.
    pub offered: u64,
    /// Commands or questions without an answer in time.
    pub late: u64,
}

/// What is counted by the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharingCount {
    /// An object was taken by the store of the cluster.
    Offered,
    /// There was no answer in time.
    Late,
}

impl Sharing {
    /// How long a question is waited for at most, whatever becomes of it.
    pub fn set_patience(&self, patience: Duration) {
        self.patience_ms.store(patience.as_millis() as u64, Ordering::Relaxed);
    }

    /// Objects are shared from now on; those with more bytes are not.
    pub fn open(&self, size_max: u64) {
        self.size_max.store(size_max, Ordering::Relaxed);
        self.is_on.store(true, Ordering::Release);
    }

    /// Objects are not shared from now on.
    pub fn close(&self) {
        self.set_answering(false);
        self.is_on.store(false, Ordering::Release);
        *lock(&self.log) = PurgeLog::default();
    }

    /// Whether objects are shared.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Whether the store of the cluster is asked.
    #[must_use]
    pub fn is_answering(&self) -> bool {
        self.answers.load(Ordering::Acquire)
    }

    /// Whether the store of the cluster answers in time. If it does not, what waits goes back.
    pub fn set_answering(&self, answers: bool) {
        self.answers.store(answers, Ordering::Release);
        if answers {
            return;
        }
        let (left, waker) = {
            let mut desk = lock(&self.desk);
            desk.waiting = Default::default();
            (std::mem::take(&mut desk.orders), desk.waker.take())
        };
        // Each gives its permit back.
        drop(left);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Leaves an order to the thread. One that has no room is dropped, which answers it.
    fn push(&self, order: SharedOrder) {
        let kind = order.kind();
        let (refused, waker) = {
            let mut desk = lock(&self.desk);
            // Many of one kind keep none of another out.
            let has_room = desk.waiting[kind] < SHARED_ORDERS_MAX;
            if has_room && self.is_answering() {
                desk.waiting[kind] += 1;
                desk.orders.push_back(order);
                (None, desk.waker.take())
            } else {
                (Some(order), None)
            }
        };
        waker.into_iter().for_each(Waker::wake);
        drop(refused);
    }

    /// Whether a body may be offered by its size.
    pub(crate) fn has_size(&self, bytes: u64) -> bool {
        bytes <= self.size_max.load(Ordering::Relaxed)
    }

    /// Takes room for an offer of so many bytes, which is given back when it has ended.
    fn take_room(&self, bytes: u64) -> bool {
        let take = |all: u64| {
            let sum = all.saturating_add(bytes);
            (all == 0 || sum <= SHARED_OFFERED_MAX).then_some(sum)
        };
        self.offered.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// The next order; none if the store of the cluster does not answer.
    pub fn poll_order(&self, context: &Context<'_>) -> Poll<Option<SharedOrder>> {
        let mut desk = lock(&self.desk);
        match desk.orders.pop_front() {
            Some(order) => {
                desk.waiting[order.kind()] -= 1;
                Poll::Ready(Some(order))
            }
            None if !self.is_answering() => Poll::Ready(None),
            None => {
                desk.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// A purge of this node or another one; `tell` tells others of it, and returns the number by
    /// which they hear of it, or heard. The caller holds the lock that numbers purges.
    pub(crate) fn note_purge(&self, order: &DiskPurge<'_>, tell: impl FnOnce() -> Option<u64>) {
        let mut log = lock(&self.log);
        let told = tell();
        log.note_purge(order, told);
    }

    /// The thread begins: entries of the stream from `fence` on are evidence, once the purge of
    /// this node with the number `barrier` has come back.
    pub fn begin(&self, fence: StreamPlace, barrier: u64) {
        lock(&self.log).begin(fence, barrier);
    }

    /// The purges of an entry are carried out.
    pub(crate) fn note_entry(
        &self,
        place: StreamPlace,
        numbers: (Option<u64>, u64),
        confirmed: u64,
    ) {
        lock(&self.log).note_entry(place, numbers, confirmed);
    }

    /// Nothing before `place` is known: all was dropped, with purge numbers up to `now`.
    pub fn reset(&self, place: StreamPlace, now: u64) {
        if self.is_open() {
            lock(&self.log).reset(place, now);
        }
    }

    /// Counts.
    pub fn count(&self, what: SharingCount) {
        let counter = match what {
            SharingCount::Offered => &self.figures.offered,
            SharingCount::Late => &self.figures.late,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// What was asked and offered.
    #[must_use]
    pub fn counts(&self) -> SharingCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SharingCounts {
            asked: read(&self.figures.asked),
            taken: read(&self.figures.taken),
            unfit: read(&self.figures.unfit),
            offered: read(&self.figures.offered),
            late: read(&self.figures.late),
        }
    }
}

#[cfg(test)]
mod tests;
