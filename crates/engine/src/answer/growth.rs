//! A body that another exchange's fill provides, read while it grows.

use bolide_base::SendChain;
use bolide_cache::{Follower, GrowthRead, Waited, Waiter};
use bytes::Bytes;

use super::BodyPiece;

/// The result of a read.
#[derive(Debug)]
pub(crate) enum Grown {
    /// The next bytes.
    Bytes(Bytes),
    /// Nothing yet; a wake follows.
    Pending,
    /// The body is complete.
    End,
    /// The rest will not arrive.
    Broken,
}

/// A reader of a fill.
#[derive(Debug)]
pub(crate) struct Growth {
    follower: Follower,
    waiter: Waiter,
    /// Bytes that were read and not sent.
    rest: Bytes,
    /// Whether the last read found nothing.
    is_waiting: bool,
}

impl Growth {
    /// Reads from `follower`; `waiter` is woken when there is more.
    pub(crate) const fn new(follower: Follower, waiter: Waiter) -> Self {
        Self { follower, waiter, rest: Bytes::new(), is_waiting: false }
    }

    /// Whether the client waits for the fill.
    pub(crate) const fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    pub(super) fn pull(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        self.is_waiting = false;
        debug_assert!(max > 0, "a pull has room");
        loop {
            if !self.rest.is_empty() {
                let piece = self.rest.split_to(self.rest.len().min(max));
                out.push_owned(piece);
                return BodyPiece::More;
            }
            match self.read() {
                Grown::Bytes(bytes) => self.rest = bytes,
                Grown::End => return BodyPiece::End,
                Grown::Broken => return BodyPiece::Broken,
                Grown::Pending => {
                    self.is_waiting = true;
                    return BodyPiece::Pending;
                }
            }
        }
    }

    /// Reads on; without bytes, registers for a wake.
    pub(super) fn read(&mut self) -> Grown {
        loop {
            match self.follower.read() {
                GrowthRead::Bytes(bytes) => return Grown::Bytes(bytes),
                GrowthRead::End => return Grown::End,
                GrowthRead::Broken => return Grown::Broken,
                GrowthRead::Pending => match self.follower.wait(self.waiter) {
                    Waited::Registered => return Grown::Pending,
                    Waited::Moved => {}
                },
            }
        }
    }
}
