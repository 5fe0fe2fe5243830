//! Counts the bytes of bodies for as long as anything refers to them: the index, a fill, or a
//! response to a slow client that outlives both.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

/// LIMIT: bytes of all fills in progress, at least, and what one that will not be stored holds for
/// slow readers where memory is short.
pub(crate) const FILLING_MIN: u64 = 1 << 20;
/// Pieces with fewer bytes are not counted: what refers to them has more.
const COUNTED_MIN: usize = 1024;

/// The bytes that are referred to.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldBytes(Arc<AtomicU64>);

#[derive(Debug)]
struct CountedPiece {
    bytes: Bytes,
    held: HeldBytes,
}

impl AsRef<[u8]> for CountedPiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for CountedPiece {
    fn drop(&mut self) {
        let size = self.bytes.len() as u64;
        let before = self.held.0.fetch_sub(size, Ordering::Relaxed);
        debug_assert!(before >= size, "a piece was counted when it came");
    }
}

/// What bodies may occupy, and what they do.
#[derive(Debug)]
pub(crate) struct FillMemory {
    /// LIMIT: bytes of all objects in the index.
    objects_max: u64,
    /// Bytes of fills in progress.
    filling: AtomicU64,
    /// The bytes of all bodies, also of those that have left the index.
    pub(crate) held: HeldBytes,
}

impl FillMemory {
    pub(crate) fn new(objects_max: u64) -> Self {
        Self { objects_max, filling: AtomicU64::new(0), held: HeldBytes::default() }
    }

    /// Counts a piece of a fill.
    pub(crate) fn add(&self, bytes: Bytes) -> Bytes {
        self.filling.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.held.count(bytes)
    }

    /// A fill does not hold these bytes any more.
    pub(crate) fn free(&self, bytes: u64) {
        let before = self.filling.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "the bytes of fills are those of their bodies");
    }

    pub(crate) fn filling(&self) -> u64 {
        self.filling.load(Ordering::Relaxed)
    }

    /// Whether there is room for more bytes of fills. Slow clients may hold bodies that have left
    /// the index.
    pub(crate) fn has_room(&self) -> bool {
        let max = self.objects_max;
        self.filling() <= max.max(FILLING_MIN) && self.held.bytes() <= max + max / 2 + FILLING_MIN
    }
}

impl HeldBytes {
    /// The same bytes, counted until their last reference is dropped.
    pub(crate) fn count(&self, bytes: Bytes) -> Bytes {
        if bytes.len() < COUNTED_MIN {
            return bytes;
        }
        self.0.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Bytes::from_owner(CountedPiece { bytes, held: self.clone() })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{COUNTED_MIN, HeldBytes};

    #[test]
    fn a_piece_counts_until_its_last_reference_is_gone() {
        let held = HeldBytes::default();
        let piece = held.count(Bytes::from(vec![7; COUNTED_MIN]));
        let part = piece.slice(3..9);
        assert_eq!(held.bytes(), COUNTED_MIN as u64);
        drop(piece);
        assert_eq!((&*part, held.bytes()), (&[7; 6][..], COUNTED_MIN as u64));
        drop(part);
        assert_eq!(held.bytes(), 0);
        let small = held.count(Bytes::from_static(b"small"));
        assert_eq!((&*small, held.bytes()), (&b"small"[..], 0));
    }
}
