//! Converts between our time and the library's, which counts from a reading of the system's
//! monotonic clock. The caller takes that reading once.

#![expect(clippy::disallowed_types, reason = "the library's vocabulary; no clock is read here")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bolide_base::{Instant, Now};
use quinn_proto::TimeSource;

/// Converts between [`bolide_base::Instant`] and the library's instants.
#[derive(Clone, Copy, Debug)]
pub struct QuicClock(std::time::Instant);

impl QuicClock {
    /// `epoch` corresponds to `Instant::from_nanos(0)`. Any reading is valid, as long as all
    /// endpoints of the process use the same one.
    #[must_use]
    pub const fn starting_at(epoch: std::time::Instant) -> Self {
        Self(epoch)
    }

    pub(crate) fn library(self, at: Instant) -> std::time::Instant {
        self.0 + Duration::from_nanos(at.as_nanos())
    }

    pub(crate) fn ours(self, at: std::time::Instant) -> Instant {
        Instant::from_nanos(0).after(at.saturating_duration_since(self.0))
    }
}

/// The civil time for the expiry of tokens, as the worker last set it.
#[derive(Debug, Default)]
pub(crate) struct CivilTime(AtomicU64);

impl CivilTime {
    pub(crate) fn set(&self, now: Now) {
        self.0.store(now.unix_millis, Ordering::Relaxed);
    }
}

impl TimeSource for CivilTime {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}
