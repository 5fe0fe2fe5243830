//! Monotonic and civil time as values. Code here never reads a clock.

use std::time::Duration;

/// Monotonic time in nanoseconds since the process's epoch. Only `io` reads a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// Nanoseconds from `earlier` to this; 0 if it is not earlier.
    #[must_use]
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// A point `nanos` after the epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The point `delay` later; saturates rather than wraps.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }

    /// Time passed since `earlier`; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// The clocks as the worker read them once, at the start of a turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// Drives every timer.
    pub mono: Instant,
    /// Civil time in milliseconds since 1970; drives `Date`, freshness and log lines.
    pub unix_millis: u64,
}

impl Now {
    /// Civil time in whole seconds since 1970.
    #[must_use]
    pub const fn unix_seconds(self) -> u64 {
        self.unix_millis / 1000
    }

    /// The moment `earlier`, by this clock.
    #[must_use]
    pub fn at(self, earlier: Instant) -> Self {
        let millis = self.mono.since(earlier).as_millis() as u64;
        Self { mono: earlier, unix_millis: self.unix_millis.saturating_sub(millis) }
    }
}
