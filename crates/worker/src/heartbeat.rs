//! What a worker does right now, told to who watches it from another thread.
//!
//! Owns one word per worker, which the worker alone writes, without a lock. Easiest to break: it is
//! written on the way of every request, so writing is one relaxed store and nothing else.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bolide_base::Instant;

/// What a worker does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Doing {
    /// It waits for something to do, however long that takes.
    #[default]
    Waiting,
    /// It has begun a turn.
    Beginning,
    /// It reads its mail: configurations, orders, results.
    Mail,
    /// It takes new clients.
    Accepting,
    /// It reads from a client's stream socket, and does what that leads to.
    Reading,
    /// It writes to stream sockets of clients.
    Writing,
    /// It takes datagrams, and does what they lead to.
    Datagrams,
    /// It sends what QUIC connections have to say.
    Quic,
    /// It talks to origins, and does what they lead to.
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
    /// It does what the store of kept answers is owed.
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

    /// As it is told in the log, behind "while".
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

/// The word, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Pulse(AtomicU64);

/// What the word said at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    /// Counts turns.
    pub turn: u64,
    /// What the worker did.
    pub doing: Doing,
}

impl Pulse {
    /// The worker does this in this turn.
    #[inline]
    pub fn note(&self, turn: u64, doing: Doing) {
        self.0.store(turn << 8 | doing as u64, Ordering::Relaxed);
    }

    /// What the worker did last.
    #[must_use]
    pub fn beat(&self) -> Beat {
        let word = self.0.load(Ordering::Relaxed);
        let doing = Doing::ALL.get((word & 0xff) as usize).copied().unwrap_or_default();
        Beat { turn: word >> 8, doing }
    }
}

/// Whether turns ask for one another although nothing happens: a fault of ours that must not cost
/// others the core. A connection that moves bytes reports an event now and then, so the
/// bound is far above what a right worker comes to.
#[derive(Debug, Default)]
pub(crate) struct BusyLoop {
    /// Turns in a row that were asked for at once, and to which nothing was reported.
    turns: u32,
}

/// Turns after which a worker rests between two of them.
const BUSY_TURNS_MAX: u32 = 1 << 20;
/// How long it rests.
const REST: Duration = Duration::from_millis(1);

impl BusyLoop {
    /// When the next turn begins that was asked for at once.
    #[inline]
    pub(crate) fn next_turn(&self, now: Instant) -> Instant {
        if self.turns < BUSY_TURNS_MAX { now } else { now.after(REST) }
    }

    /// Notes how a turn began; whether from now on the worker rests between two.
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
