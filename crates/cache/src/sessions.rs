//! Counts of private objects by the hash of their session. Most sessions have none, which they
//! show without a lock.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::key::{NamespaceId, SessionKey, url_hash};

/// LIMIT: counters; sessions share them.
const BUCKETS: usize = 4096;

/// The number of private objects of each group of sessions.
#[derive(Debug)]
pub(crate) struct SessionCounts(Vec<AtomicU32>);

impl SessionCounts {
    pub(crate) fn new() -> Self {
        Self((0..BUCKETS).map(|_| AtomicU32::new(0)).collect())
    }

    fn bucket(&self, session: SessionKey<'_>) -> &AtomicU32 {
        &self.0[url_hash(NamespaceId(0), None, session.text()) as usize % BUCKETS]
    }

    /// Whether a session may have private objects.
    pub(crate) fn may_have(&self, session: SessionKey<'_>) -> bool {
        self.bucket(session).load(Ordering::Relaxed) > 0
    }

    /// Counts an object in, before the index has it.
    pub(crate) fn add(&self, session: SessionKey<'_>) {
        self.bucket(session).fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an object out that the index has no more.
    pub(crate) fn remove(&self, session: SessionKey<'_>) {
        let before = self.bucket(session).fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "no private object is denied");
    }
}
