//! The watchdog of one worker: it checks the worker's heartbeat periodically.
//!
//! Owns the state of one worker between two checks. Easiest to break: the process, or the whole
//! machine, may have been stopped for a while, and then no worker hung. So the time between checks
//! counts, but no more of it than the normal interval.

use std::sync::Arc;
use std::time::Duration;

use bolide_base::Instant;
use bolide_worker::{Beat, Doing, Pulse};

/// How long one turn of a worker may last before it is logged.
const STAND_MAX: Duration = Duration::from_millis(bolide_base::limits::STAND_MS);

/// The longest time between two checks that counts.
const GAP_MAX: Duration = Duration::from_secs(1);

/// The state of one worker.
#[derive(Debug)]
pub(super) struct WorkerWatch {
    pulse: Arc<Pulse>,
    seen: Beat,
    looked: Instant,
    stood: Duration,
    is_logged: bool,
}

impl WorkerWatch {
    /// Starts the watch.
    pub(super) fn new(pulse: Arc<Pulse>, now: Instant) -> Self {
        let seen = pulse.beat();
        Self { pulse, seen, looked: now, stood: Duration::ZERO, is_logged: false }
    }

    /// Checks. Returns the worker's current activity when one turn has lasted too long; once.
    pub(super) fn look(&mut self, now: Instant) -> Option<Doing> {
        let gap = now.since(self.looked).min(GAP_MAX);
        self.looked = now;
        let before = std::mem::replace(&mut self.seen, self.pulse.beat());
        if self.seen.turn != before.turn || self.seen.doing == Doing::Waiting {
            (self.stood, self.is_logged) = (Duration::ZERO, false);
            return None;
        }
        self.stood += gap;
        let is_news = self.stood >= STAND_MAX && !self.is_logged;
        self.is_logged |= is_news;
        is_news.then_some(self.seen.doing)
    }

    /// Whether the turn of the last check had lasted too long.
    pub(super) const fn is_standing(&self) -> bool {
        self.is_logged
    }

    /// The worker's current activity.
    pub(super) fn doing(&self) -> Doing {
        self.pulse.beat().doing
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bolide_base::Instant;
    use bolide_worker::{Doing, Inbox};

    use super::WorkerWatch;

    #[test]
    fn a_hanging_turn_is_reported_once_and_a_stopped_process_is_not() {
        let (post, _inbox) = Inbox::new().unwrap();
        let mut now = Instant::from_nanos(0);
        let mut watch = WorkerWatch::new(post.pulse(), now);
        let mut look = |millis| {
            now = now.after(Duration::from_millis(millis));
            watch.look(now)
        };
        // A waiting worker may wait for any time.
        assert!((0..100).all(|_| look(500).is_none()));
        post.pulse().note(1, Doing::Reading);
        assert_eq!(look(500), None);
        // No check in between: the process was stopped.
        assert_eq!(look(3_600_000), None);
        post.pulse().note(1, Doing::QuicDeadline);
        let logged: Vec<_> = (0..100).filter_map(|_| look(500)).collect();
        assert_eq!(logged, [Doing::QuicDeadline]);
        post.pulse().note(2, Doing::Logs);
        assert_eq!((0..11).filter_map(|_| look(500)).collect::<Vec<_>>(), [Doing::Logs]);
    }
}
