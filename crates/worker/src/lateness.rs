//! Streams whose client stalls though its connection is alive: it opens no window for a response
//! (`send_timeout`), or does not complete a request head (`client_header_timeout`).
//!
//! Owns the state of such streams at the last check. HTTP/1 is timed by connection; on a connection
//! with several streams, progress of one says nothing about the others. Streams are checked a few
//! times within a timeout, not whenever one progresses, so that it costs nothing; a stream ends
//! between its timeout and a quarter of it later. Easiest to break: a client that takes a little
//! now and then is slow, not late.

use std::time::Duration;

use bolide_base::Instant;
use bolide_quic::Transferred;
use bolide_wire::{Awaiting, StreamId, StreamOwner};

use crate::settings::WorkerLimits;

/// Checks within one timeout.
const LOOKS: u32 = 4;
/// The least time between two checks.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The most time between two checks.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The state of one connection's streams.
#[derive(Debug, Default)]
pub(crate) struct Lateness {
    /// Whether a check is scheduled.
    is_armed: bool,
    seen: Vec<Seen>,
    /// The QUIC progress at the last check.
    moved: Transferred,
}

/// The streams of a connection that wait for the client.
#[derive(Debug)]
pub(crate) struct WaitingStreams {
    pub(crate) all: Vec<Awaiting>,
    /// Whether the connection has no stream at all.
    pub(crate) is_idle: bool,
    /// The QUIC progress so far.
    pub(crate) moved: Transferred,
}

/// A stream that waited for its client at the last check.
#[derive(Clone, Copy, Debug)]
struct Seen {
    stream: StreamId,
    progress: u64,
    since: Instant,
}

impl Lateness {
    /// Since when a stream has been waiting without progress, as far as checks have seen.
    fn since(&self, one: &Awaiting, now: Instant) -> Instant {
        let is_it = |seen: &&Seen| seen.stream == one.stream && seen.progress == one.progress;
        self.seen.iter().find(is_it).map_or(now, |seen| seen.since)
    }
}

/// The time between two checks.
fn pause(timeout: Duration) -> Duration {
    (timeout / LOOKS).clamp(PAUSE_MIN, PAUSE_MAX)
}

impl Lateness {
    /// Schedules checks of a connection's streams while there are any; returns when, unless one is
    /// scheduled.
    #[inline]
    pub(crate) fn watch(&mut self, limits: &WorkerLimits, now: Instant) -> Option<Instant> {
        if std::mem::replace(&mut self.is_armed, true) {
            return None;
        }
        let timeout = limits.manners.send_timeout.min(limits.header_timeout);
        Some(now.after(pause(timeout)))
    }

    /// Checks these streams; returns the time of the next check. Late ones are added to `late`.
    pub(crate) fn look(
        &self,
        streams: WaitingStreams,
        limits: &WorkerLimits,
        now: Instant,
        timeout_of: impl Fn(StreamOwner) -> Option<Duration>,
        late: &mut Vec<Awaiting>,
    ) -> (Self, Option<Instant>) {
        let WaitingStreams { all, is_idle, moved } = streams;
        let header_timeout = limits.header_timeout;
        let mut next = limits.manners.send_timeout.min(header_timeout);
        // Its client takes what it was sent, and cannot open windows for what it was not.
        let is_drained = moved.only_drained(&self.moved);
        let mut after = Self { is_armed: !is_idle, seen: Vec::new(), moved };
        for one in all {
            let timeout = one.user.and_then(&timeout_of).unwrap_or(header_timeout);
            let since = self.since(&one, now);
            debug_assert!(since <= now, "a stream waits since a moment that has come");
            if now.since(since) >= timeout && !is_drained {
                late.push(one);
            } else {
                after.seen.push(Seen { stream: one.stream, progress: one.progress, since });
                next = next.min(timeout);
            }
        }
        (after, (!is_idle).then(|| now.after(pause(next))))
    }
}
