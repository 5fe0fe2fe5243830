//! Whether the origin of an object still confirms it.

use std::sync::atomic::Ordering;

use super::Object;

impl Object {
    /// Records that its origin, asked to confirm it, confirmed another response.
    pub fn disown(&self) {
        self.extra.get_or_init(Box::default).is_disowned.store(true, Ordering::Relaxed);
    }

    /// Whether its origin does not confirm it, so that it is asked for in full.
    #[must_use]
    pub fn is_disowned(&self) -> bool {
        self.extra.get().is_some_and(|extra| extra.is_disowned.load(Ordering::Relaxed))
    }
}
