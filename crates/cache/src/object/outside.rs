//! A body that stays in its file.

use std::sync::Arc;

use bolide_base::{ChainStamp, FileRef};

use crate::disk::DiskTree;
use crate::disk::format::{CHUNK, sum};

/// A body that stays in its file, of an object made for one response.
#[derive(Clone, Debug)]
pub struct Outside {
    /// The open file.
    pub file: FileRef,
    /// The stamp of the file.
    pub stamp: ChainStamp,
    /// The offset of the body in the file.
    pub at: u64,
    /// Bytes of the body.
    pub len: u64,
    /// The checksum of each [`crate::disk::format::CHUNK`] of the body.
    pub sums: Box<[u8]>,
    /// The disk tree that the file belongs to.
    pub tree: Arc<DiskTree>,
    /// The name of the file.
    pub hash: u128,
}

impl Outside {
    /// Bytes that one checksum covers.
    pub const CHUNK: u64 = CHUNK as u64;

    /// Bytes of the chunk with this number.
    #[must_use]
    pub const fn chunk_len(&self, number: u64) -> u64 {
        let left = self.len.saturating_sub(number.saturating_mul(Self::CHUNK));
        if left < Self::CHUNK { left } else { Self::CHUNK }
    }

    /// Removes the file: it is corrupt.
    pub fn condemn(&self) {
        self.tree.condemn(self.hash);
    }

    /// Whether a chunk of the body has the right checksum.
    #[must_use]
    pub fn is_good(&self, number: u64, bytes: &[u8]) -> bool {
        let (sums, _) = self.sums.as_chunks::<8>();
        let stored = usize::try_from(number).ok().and_then(|number| sums.get(number));
        bytes.len() as u64 == self.chunk_len(number)
            && stored.is_some_and(|stored| sum(bytes).to_le_bytes() == *stored)
    }
}
