//! Units of simulated time.

/// A millisecond in nanoseconds.
pub const MILLI: u64 = 1_000_000;
