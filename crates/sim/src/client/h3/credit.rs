//! The flow-control credit that a client grants: when it does, and how long it does not.
//!
//! The library grants an eighth of a window at a time (RFC 9000 §4.2 leaves that to the receiver),
//! so a client that reads slowly from a large window is silent for long. The server cannot
//! distinguish it from one that reads nothing.

/// What was read of a window, and not yet said.
#[derive(Debug, Default)]
pub(super) struct Credit {
    window: u64,
    unsaid: u64,
}

impl Credit {
    pub(super) fn new(window: u32) -> Self {
        Self { window: u64::from(window), unsaid: 0 }
    }

    /// So many bytes were read; whether the server is told of the room.
    pub(super) const fn read(&mut self, bytes: usize) -> bool {
        self.unsaid += bytes as u64;
        let is_told = self.unsaid > 0 && self.unsaid >= self.window / 8;
        if is_told {
            self.unsaid = 0;
        }
        is_told
    }
}

/// How long the server was told nothing of room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    since: u64,
    longest: u64,
}

impl Silence {
    pub(super) const fn new(since: u64) -> Self {
        Self { since, longest: 0 }
    }

    /// The server is told now.
    pub(super) fn end(&mut self, now: u64) {
        *self = Self { since: now, longest: self.longest(now) };
    }

    /// Nanoseconds of the longest one.
    pub(super) fn longest(self, now: u64) -> u64 {
        self.longest.max(now.saturating_sub(self.since))
    }
}
