//! The body of an answer that somebody else's fetch brings, read while it comes.

use base::SendChain;
use bytes::Bytes;
use cache::{Follower, Read, Waited, Waiter};

use super::Piece;

/// A reader of a fill.
#[derive(Debug)]
pub(crate) struct Growth {
    follower: Follower,
    waiter: Waiter,
    /// What was read and has not left.
    rest: Bytes,
    /// There was nothing at the last look.
    is_waiting: bool,
}

impl Growth {
    /// Reads what `follower` shows; `waiter` is woken when there is more.
    pub(crate) const fn new(follower: Follower, waiter: Waiter) -> Self {
        Self { follower, waiter, rest: Bytes::new(), is_waiting: false }
    }

    /// Whether the client waits for us.
    pub(crate) const fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    pub(super) fn pull(&mut self, max: usize, out: &mut SendChain) -> Piece {
        self.is_waiting = false;
        loop {
            if !self.rest.is_empty() {
                let piece = self.rest.split_to(self.rest.len().min(max));
                out.push_owned(piece);
                return Piece::More;
            }
            match self.follower.read() {
                Read::Bytes(bytes) => self.rest = bytes,
                Read::End => return Piece::End,
                Read::Broken => return Piece::Broken,
                Read::Pending => match self.follower.wait(self.waiter) {
                    Waited::Registered => {
                        self.is_waiting = true;
                        return Piece::Pending;
                    }
                    Waited::Moved => {}
                },
            }
        }
    }
}
