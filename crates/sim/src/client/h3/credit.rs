//! The flow-control credit of a client: when it grants credit, and how long it does not.
//!
//! The library grants credit in steps of an eighth of a window (RFC 9000 §4.2 leaves that to the
//! receiver), so a client that reads slowly from a large window grants nothing for a long time. The
//! server cannot distinguish it from a client that reads nothing.

/// Bytes read from a window for which no credit was granted so far.
#[derive(Debug, Default)]
pub(super) struct Credit {
    window: u64,
    pending: u64,
}

impl Credit {
    pub(super) fn new(window: u32) -> Self {
        Self { window: u64::from(window), pending: 0 }
    }

    /// Counts `bytes`. Returns whether the client grants credit now.
    pub(super) const fn read(&mut self, bytes: usize) -> bool {
        self.pending += bytes as u64;
        let grants = self.pending > 0 && self.pending >= self.window / 8;
        if grants {
            self.pending = 0;
        }
        grants
    }
}

/// The longest time without a grant of credit.
#[derive(Clone, Copy, Debug)]
pub(super) struct CreditGap {
    since: u64,
    longest: u64,
}

impl CreditGap {
    pub(super) const fn new(since: u64) -> Self {
        Self { since, longest: 0 }
    }

    /// The client grants credit now.
    pub(super) fn end(&mut self, now: u64) {
        *self = Self { since: now, longest: self.longest(now) };
    }

    /// The longest gap in nanoseconds.
    pub(super) fn longest(self, now: u64) -> u64 {
        self.longest.max(now.saturating_sub(self.since))
    }
}
