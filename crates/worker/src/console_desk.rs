//! Orders of consoles for the control thread, and the replies.
//!
//! Owns the bounded queue between workers and control thread. Easiest to break: an exchange waits
//! for its reply, so an order that is dropped replies as well.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bolide_engine::console::{ConsoleAction, ConsoleOutcome};
use bolide_io::wake::Bell;

use crate::mail::{Mail, Post};

/// LIMIT: orders waiting for the control thread.
const ORDERS_MAX: usize = 16;

/// The exchange that waits for the result of an order.
#[derive(Debug)]
pub struct ConsoleReply {
    post: Post,
    exchange: u64,
    is_sent: bool,
}

/// One order.
#[derive(Debug)]
pub struct ConsoleOrder {
    /// The action.
    pub action: ConsoleAction,
    /// Where to send the result.
    pub reply: ConsoleReply,
}

/// The queue; a clone is cheap.
#[derive(Clone, Debug)]
pub struct ConsoleDesk {
    waiting: Arc<Mutex<VecDeque<ConsoleOrder>>>,
    bell: Bell,
}

impl ConsoleReply {
    pub(crate) const fn new(post: Post, exchange: u64) -> Self {
        Self { post, exchange, is_sent: false }
    }

    /// Sends the result of the order.
    pub fn send(mut self, outcome: ConsoleOutcome) {
        self.post(outcome);
    }

    fn post(&mut self, outcome: ConsoleOutcome) {
        self.is_sent = true;
        let exchange = self.exchange;
        // A mailbox accepts every reply, even if it is full.
        let _ = self.post.send(Mail::Commanded { exchange, outcome: Box::new(outcome) });
    }
}

impl Drop for ConsoleReply {
    fn drop(&mut self) {
        if !self.is_sent {
            self.post(Err("the server did not carry that out".to_owned()));
        }
    }
}

impl ConsoleDesk {
    /// An empty queue.
    ///
    /// # Errors
    ///
    /// No descriptor is left for the bell.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { waiting: Arc::default(), bell: Bell::new()? })
    }

    /// The bell that rings for orders.
    #[must_use]
    pub const fn bell(&self) -> &Bell {
        &self.bell
    }

    /// All orders that wait, the oldest first.
    #[must_use]
    pub fn take(&self) -> VecDeque<ConsoleOrder> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Queues an order; if the queue is full, it replies with an error.
    pub(crate) fn submit(&self, order: ConsoleOrder) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= ORDERS_MAX {
            drop(waiting);
            return order.reply.send(Err("too many orders wait".to_owned()));
        }
        waiting.push_back(order);
        debug_assert!(waiting.len() <= ORDERS_MAX, "no more orders wait than may");
        drop(waiting);
        self.bell.ring();
    }
}

#[cfg(test)]
mod tests {
    use bolide_engine::console::ConsoleAction;

    use super::{ConsoleDesk, ConsoleOrder, ConsoleReply, ORDERS_MAX};
    use crate::mail::{Inbox, Mail};

    #[test]
    fn each_order_gets_one_reply_and_the_queue_is_bounded() {
        let (post, inbox) = Inbox::new().unwrap();
        let desk = ConsoleDesk::new().unwrap();
        for exchange in 0..=ORDERS_MAX as u64 {
            let reply = ConsoleReply::new(post.clone(), exchange);
            desk.submit(ConsoleOrder { action: ConsoleAction::Reload, reply });
        }
        let replies = || match inbox.take() {
            Some(Mail::Commanded { exchange, outcome }) => Some((exchange, outcome.is_ok())),
            _ => None,
        };
        assert_eq!((replies(), replies()), (Some((ORDERS_MAX as u64, false)), None));
        assert!(desk.bell().has_rung());
        let mut all = desk.take();
        assert_eq!((all.len(), desk.take().len()), (ORDERS_MAX, 0));
        all.pop_front().unwrap().reply.send(Ok("done".to_owned()));
        all.truncate(1);
        drop(all);
        assert_eq!(replies(), Some((0, true)));
        let dropped: Vec<_> = std::iter::from_fn(replies).collect();
        assert_eq!(dropped.len(), ORDERS_MAX - 1);
        assert!(dropped.iter().all(|(_, is_done)| !is_done));
    }
}
