//! The readers of a fill, and what a fill that will not be stored holds for them.
//!
//! Such a fill holds a piece until every reader has taken it; where memory is short, it waits for
//! its slowest reader before it takes more from the upstream. Easiest to break: a reader takes each
//! piece once, and one that leaves gives up all that it has not taken.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use bolide_base::Instant;
use bytes::Bytes;

use crate::tags::lock;

/// LIMIT: how long a fill waits for a reader that takes nothing, where memory is short.
const READER_PATIENCE: Duration = Duration::from_secs(10);

/// A piece for one reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TakenPiece {
    Piece(Bytes),
    /// It has not come.
    Pending,
    /// The reader took nothing for [`READER_PATIENCE`].
    Gone,
}

/// The readers of one fill.
#[derive(Debug, Default)]
pub(crate) struct Readers(Mutex<ReadersState>);

#[derive(Debug, Default)]
struct ReadersState {
    count: usize,
    /// How many of them lack a piece that is gone: they get no more.
    lost: usize,
    passing: Option<Passing>,
    /// Bytes that are not held any more, and how many of these are settled.
    freed: u64,
    settled: u64,
}

/// The pieces that are not stored.
#[derive(Debug)]
struct Passing {
    /// The index of the first one.
    first: usize,
    pieces: VecDeque<HeldPiece>,
    /// The bytes of all of them.
    held: u64,
    /// Readers whose next piece lies before this one get no more; 0 without such readers.
    gone: usize,
    /// The index of the first piece when the fill began to wait for it, and since when.
    waits: Option<(usize, Instant)>,
}

#[derive(Debug)]
struct HeldPiece {
    bytes: Bytes,
    /// The readers that have not taken it.
    left: usize,
}

impl ReadersState {
    /// One reader less waits for the piece at `index`.
    fn release(&mut self, index: usize) {
        let Some(passing) = &mut self.passing else { return };
        let Some(piece) = passing.pieces.get_mut(index) else { return };
        debug_assert!(piece.left > 0, "a reader takes a piece once");
        piece.left = piece.left.saturating_sub(1);
        if piece.left == 0 {
            let size = std::mem::take(&mut piece.bytes).len() as u64;
            (passing.held, self.freed) = (passing.held - size, self.freed + size);
        }
    }

    /// Drops the oldest piece, and what is held for the readers that lack it.
    fn lose_slowest(&mut self) {
        let Some(passing) = &mut self.passing else { return };
        let Some(oldest) = passing.pieces.pop_front() else { return };
        passing.first += 1;
        passing.gone = passing.first;
        self.lost += oldest.left;
        debug_assert!(self.lost <= self.count, "a reader is lost once");
        let mut freed = oldest.bytes.len() as u64;
        for piece in &mut passing.pieces {
            debug_assert!(piece.left >= oldest.left, "who lacks a piece lacks those after it");
            piece.left = piece.left.saturating_sub(oldest.left);
            if piece.left == 0 {
                freed += std::mem::take(&mut piece.bytes).len() as u64;
            }
        }
        (passing.held, self.freed) = (passing.held - freed, self.freed + freed);
        self.drop_taken();
    }

    fn drop_taken(&mut self) {
        let Some(passing) = &mut self.passing else { return };
        while passing.pieces.pop_front_if(|piece| piece.left == 0).is_some() {
            passing.first += 1;
        }
        debug_assert!(
            passing.held == 0 || !passing.pieces.is_empty(),
            "the bytes that are held are those of the pieces"
        );
    }
}

impl Readers {
    pub(crate) fn join(&self) {
        let mut state = lock(&self.0);
        debug_assert!(state.passing.is_none(), "no reader joins a fill that is not stored");
        state.count += 1;
    }

    /// A reader leaves that would have taken piece `at` next.
    pub(crate) fn leave(&self, at: usize) {
        let mut state = lock(&self.0);
        debug_assert!(state.count > 0, "every reader has joined");
        state.count = state.count.saturating_sub(1);
        let Some(passing) = &state.passing else { return };
        if at < passing.gone {
            state.lost = state.lost.saturating_sub(1);
            return;
        }
        for index in at.saturating_sub(passing.first)..passing.pieces.len() {
            state.release(index);
        }
        state.drop_taken();
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.0).count
    }

    /// From piece `first` on the fill is not stored.
    pub(crate) fn pass_on(&self, first: usize) {
        let mut state = lock(&self.0);
        state.passing.get_or_insert_with(|| Passing {
            first,
            pieces: VecDeque::new(),
            held: 0,
            gone: 0,
            waits: None,
        });
    }

    /// Holds a piece for all readers; false if the fill may be stored.
    pub(crate) fn push(&self, bytes: &Bytes) -> bool {
        let mut state = lock(&self.0);
        let left = state.count - state.lost;
        let Some(passing) = &mut state.passing else { return false };
        let held = if left == 0 { Bytes::new() } else { bytes.clone() };
        passing.held += held.len() as u64;
        passing.pieces.push_back(HeldPiece { bytes: held, left });
        if left == 0 {
            state.freed += bytes.len() as u64;
            state.drop_taken();
        }
        true
    }

    /// A reader has taken a stored piece: it is on its way to those that are not stored.
    pub(crate) fn count_stored(&self) {
        if let Some(passing) = &mut lock(&self.0).passing {
            passing.waits = None;
        }
    }

    /// Piece `at`, for a reader that has taken all before it.
    pub(crate) fn take(&self, at: usize) -> TakenPiece {
        let mut state = lock(&self.0);
        let Some(passing) = &state.passing else { return TakenPiece::Pending };
        let Some(index) = at.checked_sub(passing.first) else { return TakenPiece::Gone };
        let Some(piece) = passing.pieces.get(index) else { return TakenPiece::Pending };
        let bytes = piece.bytes.clone();
        state.release(index);
        state.drop_taken();
        TakenPiece::Piece(bytes)
    }

    /// Whether more than `bytes_max` are held, so that the fill waits for its slowest reader. One
    /// that has taken nothing for [`READER_PATIENCE`] gets no more.
    pub(crate) fn are_behind(&self, bytes_max: u64, now: Instant) -> bool {
        let mut state = lock(&self.0);
        let Some(passing) = &mut state.passing else { return false };
        if passing.held <= bytes_max {
            passing.waits = None;
            return false;
        }
        match passing.waits {
            Some((first, since)) if first == passing.first => {
                if now.since(since) < READER_PATIENCE {
                    return true;
                }
            }
            _ => {
                passing.waits = Some((passing.first, now));
                return true;
            }
        }
        passing.waits = None;
        state.lose_slowest();
        false
    }

    /// The bytes that were freed since the last call.
    pub(crate) fn settle(&self) -> u64 {
        let mut state = lock(&self.0);
        let fresh = state.freed - state.settled;
        state.settled = state.freed;
        fresh
    }

    /// All bytes that [`Self::settle`] has reported.
    pub(crate) fn settled(&self) -> u64 {
        lock(&self.0).settled
    }
}

#[cfg(test)]
mod tests {
    use bolide_base::Instant;
    use bytes::Bytes;

    use super::{Readers, TakenPiece};

    fn piece(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn a_piece_is_held_until_its_last_reader_has_it() {
        let readers = Readers::default();
        readers.join();
        readers.join();
        assert!(!readers.push(&piece("kept")), "a fill that may be stored keeps its pieces");
        readers.pass_on(1);
        assert!(readers.push(&piece("one")) && readers.push(&piece("three")));
        assert_eq!(readers.take(1), TakenPiece::Piece(piece("one")));
        assert_eq!(readers.settle(), 0);
        assert_eq!(readers.take(1), TakenPiece::Piece(piece("one")));
        assert_eq!((readers.settle(), readers.settle(), readers.settled()), (3, 0, 3));
        assert_eq!(readers.take(2), TakenPiece::Piece(piece("three")));
        assert_eq!(readers.take(3), TakenPiece::Pending);
        // The other one leaves in front of the last piece.
        readers.leave(2);
        assert_eq!((readers.settle(), readers.count()), (5, 1));
        assert!(readers.push(&piece("four")));
        assert_eq!(readers.take(3), TakenPiece::Piece(piece("four")));
        assert_eq!(readers.settle(), 4);
        readers.leave(4);
        assert!(readers.push(&piece("five")));
        assert_eq!(readers.settle(), 4, "without readers nothing is held");
    }

    #[test]
    fn a_reader_of_stored_pieces_is_not_one_that_takes_nothing() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let readers = Readers::default();
        readers.join();
        readers.pass_on(3);
        assert!(readers.push(&piece("first")));
        for seconds in [0, 9, 18] {
            assert!(readers.are_behind(4, at(seconds)));
            readers.count_stored();
        }
        assert!(readers.are_behind(4, at(27)) && readers.are_behind(4, at(36)));
        assert!(!readers.are_behind(4, at(37)), "it takes nothing any more");
        assert_eq!(readers.take(3), TakenPiece::Gone);
    }

    #[test]
    fn a_fill_waits_for_slow_readers_and_those_that_take_nothing_lose_the_oldest_pieces() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let readers = Readers::default();
        readers.join();
        readers.join();
        readers.pass_on(0);
        assert!(!readers.are_behind(4, at(0)));
        for text in ["one", "two", "six"] {
            assert!(readers.push(&piece(text)));
        }
        assert!(readers.are_behind(4, at(1)));
        assert_eq!(readers.take(0), TakenPiece::Piece(piece("one")));
        assert!(readers.are_behind(4, at(10)), "the other one has not taken it");
        assert_eq!(readers.take(0), TakenPiece::Piece(piece("one")));
        assert!(readers.are_behind(4, at(12)), "the slowest has moved");
        assert_eq!(readers.take(1), TakenPiece::Piece(piece("two")));
        assert!(readers.are_behind(4, at(21)));
        assert_eq!(readers.settle(), 3);
        assert!(!readers.are_behind(4, at(22)), "it took nothing for too long");
        assert_eq!(readers.settle(), 3);
        assert_eq!(readers.take(1), TakenPiece::Gone);
        assert_eq!(readers.take(2), TakenPiece::Piece(piece("six")));
        readers.leave(0);
        assert_eq!((readers.settle(), readers.take(3)), (3, TakenPiece::Pending));
    }
}
