//! Queued wakes of exchanges, on this worker and on others.
//!
//! A wake never reaches an exchange from within one of its own steps: it is queued, and the queue
//! is emptied between two reports. Exchanges of other workers are woken by mail.

use std::collections::VecDeque;
use std::sync::Arc;

use bolide_base::SlabKey;
use bolide_cache::{Waiter, Wakes};
use bolide_engine::Wake;
use bolide_upstream::OriginNews;

use crate::exchange_table::ActiveExchange;
use crate::mail::{Mail, Post};

/// Queued wakes, in order.
#[derive(Debug)]
pub(crate) struct News {
    /// The number of this worker.
    number: u16,
    /// The mailboxes of all workers, including this one.
    pub(crate) posts: Arc<Vec<Post>>,
    queue: VecDeque<(SlabKey<ActiveExchange>, Wake)>,
    /// Wakes that did not fit into a mailbox.
    unsent: Vec<Waiter>,
}

impl News {
    /// No wakes, for the worker with this number.
    pub(crate) fn new(number: u16, posts: Arc<Vec<Post>>) -> Self {
        debug_assert!(usize::from(number) < posts.len(), "a worker has a mailbox");
        Self { number, posts, queue: VecDeque::new(), unsent: Vec::new() }
    }

    /// Wakes an exchange later in this turn.
    pub(crate) fn wake(&mut self, key: SlabKey<ActiveExchange>, wake: Wake) {
        self.queue.push_back((key, wake));
    }

    /// Takes the oldest wake.
    pub(crate) fn take(&mut self) -> Option<(SlabKey<ActiveExchange>, Wake)> {
        self.queue.pop_front()
    }

    /// Whether no wakes are queued.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether every wake of other workers is in a mailbox.
    pub(crate) const fn is_sent(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Whether a wake is queued for this exchange.
    pub(crate) fn has_for(&self, key: SlabKey<ActiveExchange>) -> bool {
        self.queue.iter().any(|(woken, _)| *woken == key)
    }

    /// Drops the queued events of an exchange's fetch, except log lines: they must not be taken for
    /// events of its next fetch.
    pub(crate) fn forget_answer(&mut self, key: SlabKey<ActiveExchange>) {
        self.queue.retain(|(woken, wake)| {
            *woken != key
                || !matches!(wake, Wake::Origin(news) if !matches!(news, OriginNews::Log(_)))
        });
    }

    /// Wakes the exchanges that wait for a fill, on any worker.
    pub(crate) fn post(&mut self, wakes: Wakes) {
        for waiter in wakes.0 {
            if waiter.worker == self.number {
                self.wake(SlabKey::from_bits(waiter.exchange), Wake::Filled);
                continue;
            }
            debug_assert!(usize::from(waiter.worker) < self.posts.len(), "a waiter has a worker");
            let Some(post) = self.posts.get(usize::from(waiter.worker)) else { continue };
            if post.send(Mail::FillProgress { exchange: waiter.exchange }).is_err() {
                self.unsent.push(waiter);
            }
        }
    }

    /// Posts these wakes, and those that did not fit into a mailbox before.
    #[inline]
    pub(crate) fn post_again(&mut self, mut wakes: Wakes) {
        if !(wakes.0.is_empty() && self.unsent.is_empty()) {
            wakes.0.append(&mut self.unsent);
            self.post(wakes);
        }
    }
}
