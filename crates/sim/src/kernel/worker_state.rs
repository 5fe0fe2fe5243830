//! What a worker waits for, and how its last waits ended.

use std::collections::BTreeMap;

use bolide_base::Instant;

/// The kernel's state for one worker.
#[derive(Debug, Default)]
pub(super) struct WorkerState {
    pub(super) bell: Option<(i32, u64)>,
    pub(super) is_ringing: bool,
    pub(super) listening: BTreeMap<i32, u64>,
    /// Connections that the worker watches, ascending, and some that it has closed since.
    pub(super) watched: Vec<i32>,
    pub(super) until: Option<Instant>,
    pub(super) is_settled: bool,
    /// Consecutive waits that ended at once, without an event and without a call in between.
    pub(super) idle_waits: u32,
    pub(super) had_events: bool,
    /// Consecutive waits with events that no call followed.
    pub(super) deaf_waits: u32,
}

impl WorkerState {
    /// Adds a connection to watch.
    pub(super) fn watch(&mut self, fd: i32) {
        if let Err(place) = self.watched.binary_search(&fd) {
            self.watched.insert(place, fd);
        }
    }
}
