//! The current activity of a worker, for the watchdog on another thread.
//!
//! Owns one word per worker, which only the worker writes, without a lock. Easiest to break: it is
//! written for every request, so writing is one relaxed store and nothing else.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bolide_base::Instant;

/// The activity of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Doing {
    /// It waits for events, however long.
    #[default]
    Waiting,
    /// It has begun a turn.
    Beginning,
    /// It reads its mail: configurations, orders, results.
    Mail,
    /// It accepts connections.
    Accepting,
    /// It reads from a client's stream socket and processes the bytes.
    Reading,
    /// It writes to clients' stream sockets.
    Writing,
    /// It receives and processes datagrams.
    Datagrams,
    /// It sends for QUIC connections.
    Quic,
    /// It communicates with upstreams.
    Origins,
    /// A deadline of a stream connection.
    ConnDeadline,
    /// A deadline of a QUIC connection.
    QuicDeadline,
    /// A deadline of a request or its body.
    RequestDeadline,
    /// A deadline of a request to an origin, or of a connection to one.
    OriginDeadline,
    /// Any other deadline.
    OtherDeadline,
    /// It does the cache's regular work.
    Cache,
    /// It writes logs.
    Logs,
}

impl Doing {
    const ALL: [Self; 16] = [
        Self::Waiting,
        Self::Beginning,
        Self::Mail,
        Self::Accepting,
        Self::Reading,
        Self::Writing,
        Self::Datagrams,
        Self::Quic,
        Self::Origins,
        Self::ConnDeadline,
        Self::QuicDeadline,
        Self::RequestDeadline,
        Self::OriginDeadline,
        Self::OtherDeadline,
        Self::Cache,
        Self::Logs,
    ];

    /// The text for the log, after "while".
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Waiting => "waiting for events",
            Self::Beginning => "beginning a turn",
            Self::Mail => "reading its mail",
            Self::Accepting => "accepting clients",
            Self::Reading => "reading from a client",
            Self::Writing => "sending to clients",
            Self::Datagrams => "receiving datagrams",
            Self::Quic => "sending over QUIC",
            Self::Origins => "talking to upstreams",
            Self::ConnDeadline => "handling a timer of a connection",
            Self::QuicDeadline => "handling a timer of a QUIC connection",
            Self::RequestDeadline => "handling a timer of a request",
            Self::OriginDeadline => "handling a timer of an upstream",
            Self::OtherDeadline => "handling a timer",
            Self::Cache => "tending the cache",
            Self::Logs => "writing logs",
        }
    }
}

/// The word, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Pulse(AtomicU64);

/// The value of the word at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    /// Counts turns.
    pub turn: u64,
    /// The activity.
    pub doing: Doing,
}

impl Pulse {
    /// Sets the current activity and turn.
    #[inline]
    pub fn note(&self, turn: u64, doing: Doing) {
        self.0.store(turn << 8 | doing as u64, Ordering::Relaxed);
    }

    /// Reads the last activity.
    #[must_use]
    pub fn beat(&self) -> Beat {
        let word = self.0.load(Ordering::Relaxed);
        let doing = Doing::ALL.get((word & 0xff) as usize).copied().unwrap_or_default();
        Beat { turn: word >> 8, doing }
    }
}

/// Detects a busy loop: turns that request one another although nothing happens, a bug that must
/// not cost other processes the core. A connection that moves bytes reports an event now and then,
/// so the bound is far above what a correct worker reaches.
#[derive(Debug, Default)]
pub(crate) struct BusyLoop {
    /// Consecutive turns that were requested immediately, and to which nothing was reported.
    turns: u32,
}

/// Turns after which a worker pauses between two of them.
const BUSY_TURNS_MAX: u32 = 1 << 20;
/// The pause.
const REST: Duration = Duration::from_millis(1);

impl BusyLoop {
    /// When the next turn begins that was requested immediately.
    #[inline]
    pub(crate) fn next_turn(&self, now: Instant) -> Instant {
        if self.turns < BUSY_TURNS_MAX { now } else { now.after(REST) }
    }

    /// Records how a turn began; returns whether the worker begins to pause now.
    #[inline]
    pub(crate) fn note(&mut self, is_restless: bool) -> bool {
        self.turns = if is_restless { self.turns.saturating_add(1) } else { 0 };
        debug_assert!(
            self.turns < BUSY_TURNS_MAX,
            "turns follow one another though nothing happens"
        );
        self.turns == BUSY_TURNS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::{Beat, Doing, Pulse};

    #[test]
    fn a_beat_tells_the_turn_and_what_is_done_in_it() {
        let pulse = Pulse::default();
        assert_eq!(pulse.beat(), Beat { turn: 0, doing: Doing::Waiting });
        for (turn, doing) in (1..).zip(Doing::ALL) {
            assert_eq!(Doing::ALL[doing as usize], doing);
            pulse.note(turn, doing);
            assert_eq!(pulse.beat(), Beat { turn, doing });
        }
    }
}
