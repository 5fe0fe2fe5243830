//! Streams whose client is late though its connection is alive: it gives an answer no room in its
//! windows (`send_timeout`), or does not end the head of a request (`client_header_timeout`).
//!
//! Owns what was seen of such streams when they were looked at last. Over HTTP/1 the connection is
//! the measure; where one has several streams, those that move say nothing of the others. They are
//! looked at a few times within a timeout, and not whenever something moves, so that it costs
//! nothing; a stream is ended when its timeout has passed and a quarter of it at most. Easiest to
//! break: who takes a little now and then is slow and not late.

use std::time::Duration;

use bolide_base::Instant;
use bolide_quic::Transferred;
use bolide_wire::{Awaiting, StreamId, StreamOwner};

use crate::settings::WorkerLimits;

/// Looks within one timeout.
const LOOKS: u32 = 4;
/// Time between two looks.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The same where timeouts are long.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What is known of the streams of one connection.
#[derive(Debug, Default)]
pub(crate) struct Lateness {
    /// They will be looked at.
    is_armed: bool,
    seen: Vec<Seen>,
    /// What had moved then, over QUIC.
    moved: Transferred,
}

/// The streams of a connection that wait for the client.
#[derive(Debug)]
pub(crate) struct WaitingStreams {
    pub(crate) all: Vec<Awaiting>,
    /// The connection has no stream at all.
    pub(crate) is_idle: bool,
    /// What has moved so far, over QUIC.
    pub(crate) moved: Transferred,
}

/// A stream that waited for its client at the last look.
#[derive(Clone, Copy, Debug)]
struct Seen {
    stream: StreamId,
    progress: u64,
    since: Instant,
}

impl Lateness {
    /// Since when a stream waits like this, as far as was seen.
    fn since(&self, one: &Awaiting, now: Instant) -> Instant {
        let is_it = |seen: &&Seen| seen.stream == one.stream && seen.progress == one.progress;
        self.seen.iter().find(is_it).map_or(now, |seen| seen.since)
    }
}

/// How long after a look the next one is.
fn pause(timeout: Duration) -> Duration {
    (timeout / LOOKS).clamp(PAUSE_MIN, PAUSE_MAX)
}

impl Lateness {
    /// Sees to it that the streams of a connection are looked at while there are any: when, unless
    /// that is settled.
    #[inline]
    pub(crate) fn watch(&mut self, limits: &WorkerLimits, now: Instant) -> Option<Instant> {
        if std::mem::replace(&mut self.is_armed, true) {
            return None;
        }
        let timeout = limits.manners.send_timeout.min(limits.header_timeout);
        Some(now.after(pause(timeout)))
    }

    /// What is known after a look at these streams, and when to look again; which of them are late
    /// is added to `late`.
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
        // Its client takes what it was sent, and cannot give more room for what it was not.
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
