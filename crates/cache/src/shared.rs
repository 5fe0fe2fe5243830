//! Objects that the nodes of a cluster share through Valkey ("the shared store"): questions,
//! offers, and checks of received objects.
//!
//! ```text
//!   miss in memory and on disk ──▶ question (with its permit) ──▶ (thread) ──▶ reply of Valkey
//!       usable ──▶ stored in memory: look up again    unusable, absent, late ──▶ permit given back
//!   committed ──▶ offer ──▶ (thread) ──▶ Valkey, for as long as the object may be served
//! ```
//! It does no I/O: the cluster thread transports questions and offers. INVARIANT: a question always
//! gives its permit back, and a lease is returned or used.

mod log;
mod orders;
mod record;

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use log::PurgeLog;
pub use log::StreamPlace;
pub(crate) use orders::offer;
pub use orders::{
    AskedBy, SharedAnswer, SharedAsk, SharedLease, SharedOffer, SharedOrder, SharedQuestion,
    SharedUnfit,
};

use bolide_base::limits::{SHARED_OFFERED_MAX, SHARED_ORDERS_MAX};

use crate::disk::DiskPurge;
use crate::tags::lock;

/// The sharing of objects on this node.
#[derive(Debug, Default)]
pub struct Sharing {
    /// Whether purges are recorded.
    is_on: AtomicBool,
    /// Whether the shared store responds in time, so that questions may be sent.
    answers: AtomicBool,
    /// LIMIT: the body size of an offered object, in bytes.
    size_max: AtomicU64,
    /// How long to wait for the reply to a question, in milliseconds.
    patience_ms: AtomicU64,
    /// Bytes of all offers, including those that the thread is sending.
    offered: AtomicU64,
    log: Mutex<PurgeLog>,
    desk: Mutex<Desk>,
    /// The leases of this node: their tokens, and their keys.
    leases: Mutex<HashMap<Box<[u8]>, u128>>,
    figures: Figures,
}

#[derive(Debug, Default)]
struct Desk {
    orders: VecDeque<SharedOrder>,
    /// The number of waiting orders of each kind.
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

/// Questions and offers since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharingCounts {
    /// Misses for which the shared store was asked.
    pub asked: u64,
    /// Objects of other nodes that were accepted.
    pub taken: u64,
    /// Objects that were rejected: purged, too old, foreign or damaged.
    pub unfit: u64,
    /// Objects of this node that the shared store accepted.
    pub offered: u64,
    /// Commands or questions that timed out.
    pub late: u64,
}

/// The events that the thread counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharingCount {
    /// The shared store accepted an object.
    Offered,
    /// A timeout.
    Late,
}

impl Sharing {
    /// Sets how long to wait for the reply to a question.
    pub fn set_patience(&self, patience: Duration) {
        self.patience_ms.store(patience.as_millis() as u64, Ordering::Relaxed);
    }

    /// Starts sharing; objects with more than `size_max` bytes are not shared.
    pub fn open(&self, size_max: u64) {
        self.size_max.store(size_max, Ordering::Relaxed);
        self.is_on.store(true, Ordering::Release);
    }

    /// Stops sharing.
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

    /// Whether the shared store is asked.
    #[must_use]
    pub fn is_answering(&self) -> bool {
        self.answers.load(Ordering::Acquire)
    }

    /// Sets whether the shared store responds in time. If not, waiting questions give their permits
    /// back.
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
        // Dropping a question gives its permit back.
        drop(left);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Queues an order for the thread. If there is no room, the order is dropped, which replies to
    /// it.
    fn push(&self, order: SharedOrder) {
        let kind = order.kind();
        let (refused, waker) = {
            let mut desk = lock(&self.desk);
            // Orders of one kind do not use up the room of another.
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

    /// Takes all leases from their fills, for their release: the thread ends, and what is filled
    /// is offered without.
    #[must_use = "other nodes wait until they are released"]
    pub fn take_leases(&self) -> Vec<(u128, Box<[u8]>)> {
        lock(&self.leases).drain().map(|(token, key)| (key, token)).collect()
    }

    /// Whether a body of this size may be offered.
    pub(crate) fn has_size(&self, bytes: u64) -> bool {
        bytes <= self.size_max.load(Ordering::Relaxed)
    }

    /// Reserves `bytes` for an offer; false if there is no room. The end of the offer frees them.
    fn take_room(&self, bytes: u64) -> bool {
        let take = |all: u64| {
            let sum = all.saturating_add(bytes);
            (all == 0 || sum <= SHARED_OFFERED_MAX).then_some(sum)
        };
        self.offered.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// The next order; none if the shared store does not respond.
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

    /// Records a purge of this node or another one; `send` sends it to the other nodes, and returns
    /// its number there. The caller holds the lock that numbers purges.
    pub(crate) fn record_purge(&self, order: &DiskPurge<'_>, send: impl FnOnce() -> Option<u64>) {
        let mut log = lock(&self.log);
        let number = send();
        log.record_purge(order, number);
    }

    /// The thread starts: entries of the stream from `fence` on are recorded, once the purge of
    /// this node with the number `barrier` has been received from the stream.
    pub fn begin(&self, fence: StreamPlace, barrier: u64) {
        lock(&self.log).begin(fence, barrier);
    }

    /// The purges of an entry have been carried out.
    pub(crate) fn record_entry(
        &self,
        place: StreamPlace,
        numbers: (Option<u64>, u64),
        confirmed: u64,
    ) {
        lock(&self.log).record_entry(place, numbers, confirmed);
    }

    /// Everything was purged, with purge numbers up to `now`: nothing before `place` is known.
    pub fn reset(&self, place: StreamPlace, now: u64) {
        if self.is_open() {
            lock(&self.log).reset(place, now);
        }
    }

    /// Counts an event.
    pub fn count(&self, what: SharingCount) {
        let counter = match what {
            SharingCount::Offered => &self.figures.offered,
            SharingCount::Late => &self.figures.late,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts of questions and offers.
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
