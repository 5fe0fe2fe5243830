//! Files that this process has unlinked itself, until the events of that have come: what is not
//! among them others have deleted.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// LIMIT: own unlinks whose events are awaited.
const UNLINKED_MAX: usize = 64 * 1024;

/// How often each file was unlinked.
#[derive(Debug, Default)]
pub(super) struct Unlinked(Mutex<HashMap<u128, u32>>);

impl Unlinked {
    fn all(&self) -> MutexGuard<'_, HashMap<u128, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file is about to be unlinked.
    pub(super) fn note(&self, hash: u128) {
        let mut all = self.all();
        if all.len() >= UNLINKED_MAX {
            all.clear();
        }
        *all.entry(hash).or_default() += 1;
        debug_assert!(all.len() <= UNLINKED_MAX, "awaited events are bounded");
    }

    /// One event of a file is not awaited any more; whether it was.
    pub(super) fn take(&self, hash: u128) -> bool {
        let mut all = self.all();
        let Some(count) = all.get_mut(&hash) else { return false };
        debug_assert!(*count > 0, "a file is known as long as an event is awaited");
        *count -= 1;
        if *count == 0 {
            all.remove(&hash);
        }
        true
    }

    /// Events were lost: none is awaited.
    pub(super) fn clear(&self) {
        self.all().clear();
    }
}
