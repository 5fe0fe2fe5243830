//! Which of two processes with the same trees evicts their files.

use std::sync::atomic::Ordering;

use super::DiskTier;

impl DiskTier {
    /// Leaves evictions, and what others delete, to another process, or takes them over: in an
    /// upgrade the successor knows which files are used.
    pub fn leave_upkeep(&self, leaves: bool) {
        self.leaves_upkeep.store(leaves, Ordering::Release);
        self.call();
    }

    /// Whether another process evicts, and handles deletions.
    #[must_use]
    pub fn leaves_upkeep(&self) -> bool {
        self.leaves_upkeep.load(Ordering::Acquire)
    }
}
