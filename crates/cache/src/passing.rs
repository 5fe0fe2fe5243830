//! The bytes of a fill: what may be stored, and what only passes by once it will not be.
//!
//! ```text
//!   piece   0 ......... begun | begun ......... come
//!           kept pieces       | pieces that pass by
//! ```
//! Kept pieces are read without a lock; they are freed when the fill and its last reader before
//! `begun` have let go of them. A piece that passes by is freed when its last reader has it.
//! INVARIANT: `left` of a piece counts the readers that have not read it yet, and no other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;

use crate::segments::Segments;
use crate::tags::lock;

/// Bytes that a piece costs beside its own.
const PIECE_COST: u64 = 64;

/// What one fill holds, as a part of what all fills hold.
#[derive(Debug)]
pub(crate) struct Held {
    all: Arc<AtomicU64>,
    /// None once the fill has ended.
    own: Mutex<Option<u64>>,
}

impl Held {
    pub(crate) fn new(all: Arc<AtomicU64>) -> Arc<Self> {
        Arc::new(Self { all, own: Mutex::new(Some(0)) })
    }

    pub(crate) fn add(&self, bytes: u64) {
        if let Some(own) = &mut *lock(&self.own) {
            *own += bytes;
            self.all.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn release(&self, bytes: u64) {
        if let Some(own) = &mut *lock(&self.own) {
            debug_assert!(*own >= bytes, "what is let go was held");
            *own -= bytes;
            self.all.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// The fill has ended: what is left of it belongs to its readers, or to the store.
    pub(crate) fn end(&self) {
        if let Some(own) = lock(&self.own).take() {
            let before = self.all.fetch_sub(own, Ordering::Relaxed);
            assert!(before >= own, "the bytes of fills are those of their bodies");
        }
    }
}

/// The pieces of a fill that may be stored.
#[derive(Debug)]
pub(crate) struct KeptPieces {
    pub(crate) cells: Segments<OnceLock<Bytes>>,
    size: AtomicU64,
    held: Arc<Held>,
}

impl KeptPieces {
    pub(crate) fn new(held: Arc<Held>) -> Arc<Self> {
        Arc::new(Self { cells: Segments::new(8), size: AtomicU64::new(0), held })
    }

    /// Sets the piece at `index`, which has none.
    pub(crate) fn set(&self, index: usize, bytes: Bytes) {
        self.size.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let set = self.cells.make(index).is_some_and(|cell| cell.set(bytes).is_ok());
        debug_assert!(set, "one writer, and memory ends before the rows do");
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Bytes> {
        self.cells.get(index)?.get()
    }
}

impl Drop for KeptPieces {
    fn drop(&mut self) {
        self.held.release(self.size.load(Ordering::Relaxed));
    }
}

#[derive(Debug)]
struct PassingPiece {
    bytes: Bytes,
    /// Readers that have not read it.
    left: usize,
}

/// The part of a fill that its lock guards: its readers, and what passes by to them.
#[derive(Debug)]
pub(crate) struct Passage {
    /// Until the fill passes by.
    pub(crate) kept: Option<Arc<KeptPieces>>,
    /// The index of the first piece in `pieces`; readers before it are cut off, unless they read
    /// kept pieces still.
    first: usize,
    /// Readers at pieces before this one were cut off, and are not counted.
    cut: usize,
    pieces: VecDeque<PassingPiece>,
    readers: usize,
    bytes: u64,
}

/// What a reader finds at a piece that passes by.
#[derive(Debug)]
pub(crate) enum Passed {
    Piece(Bytes),
    NotCome,
    /// It stood still for too long.
    CutOff,
}

impl Passage {
    pub(crate) const fn new(kept: Arc<KeptPieces>) -> Self {
        let pieces = VecDeque::new();
        Self { kept: Some(kept), first: 0, cut: 0, pieces, readers: 0, bytes: 0 }
    }

    /// One more reader, and the pieces to begin with; none for one that comes too late.
    pub(crate) fn join(&mut self) -> Option<Arc<KeptPieces>> {
        self.readers += usize::from(self.kept.is_some());
        self.kept.clone()
    }

    /// From piece `come` on, nothing is kept.
    pub(crate) fn begin(&mut self, come: usize) {
        if self.kept.take().is_some() {
            self.first = come;
        }
    }

    pub(crate) fn has_readers(&self) -> bool {
        self.readers > 0
    }

    /// Bytes that wait for the slowest reader, the cost of their pieces included.
    pub(crate) const fn waiting(&self) -> u64 {
        self.bytes
    }

    /// Whether a reader has read everything that came.
    pub(crate) fn is_read_to_the_end(&self) -> bool {
        self.pieces.back().is_some_and(|last| last.left < self.readers)
    }

    pub(crate) fn push(&mut self, bytes: Bytes, held: &Held) {
        debug_assert!(self.kept.is_none(), "a piece is kept or passes by");
        if self.readers == 0 {
            self.first += 1;
            return;
        }
        held.add(bytes.len() as u64);
        self.bytes += bytes.len() as u64 + PIECE_COST;
        self.pieces.push_back(PassingPiece { bytes, left: self.readers });
    }

    /// The piece at `index` for a reader that has read all before it.
    pub(crate) fn read(&mut self, index: usize, held: &Held) -> Passed {
        if index < self.cut || index < self.first {
            return Passed::CutOff;
        }
        let Some(piece) = self.pieces.get_mut(index - self.first) else { return Passed::NotCome };
        debug_assert!(piece.left > 0, "a reader that has not read it is counted");
        piece.left -= 1;
        let bytes = piece.bytes.clone();
        self.free(held);
        Passed::Piece(bytes)
    }

    /// A reader that did not come too late, and whose next piece is `index`, has gone.
    pub(crate) fn leave(&mut self, index: usize, held: &Held) {
        if self.kept.is_none() && index < self.cut {
            return;
        }
        debug_assert!(self.readers > 0, "every reader is counted");
        self.readers -= 1;
        for piece in self.pieces.iter_mut().skip(index.saturating_sub(self.first)) {
            piece.left -= 1;
        }
        self.free(held);
    }

    /// Cuts off the readers that have not read the first half of what waits.
    pub(crate) fn cut_slowest(&mut self, held: &Held) {
        debug_assert!(self.kept.is_none(), "kept pieces hold no reader up");
        let most = self.bytes / 2;
        let mut slow = 0;
        while self.bytes > most
            && let Some(piece) = self.pieces.pop_front()
        {
            slow = piece.left;
            self.drop_piece(&piece, held);
        }
        if slow > 0 {
            self.cut = self.first;
            self.readers -= slow;
            self.pieces.iter_mut().for_each(|piece| piece.left -= slow);
            self.free(held);
        }
    }

    fn free(&mut self, held: &Held) {
        while self.pieces.front().is_some_and(|piece| piece.left == 0)
            && let Some(piece) = self.pieces.pop_front()
        {
            self.drop_piece(&piece, held);
        }
    }

    fn drop_piece(&mut self, piece: &PassingPiece, held: &Held) {
        self.first += 1;
        self.bytes -= piece.bytes.len() as u64 + PIECE_COST;
        held.release(piece.bytes.len() as u64);
    }
}
