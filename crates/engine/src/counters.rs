//! What each worker counts: connections and requests for `stub_status` and `$connections_*`, and
//! everything else that [`crate::metrics`] tells.
//!
//! A tally belongs to one worker, which alone writes it; a reader adds up those of all. Nothing
//! here is exact while others are at work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bolide_http::HttpVersion;

use crate::metrics::rows::RowCounts;
use crate::metrics::slow::SlowRequests;

/// What is counted by protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TallyCount {
    /// Connections that were accepted.
    Accepted,
    /// Those of them that were taken.
    Handled,
    /// Those whose protocol is known, or that ended without one.
    Settled,
    /// Requests, those that could not be read included.
    Requests,
    /// Open connections.
    Active,
    /// Connections that read a request head.
    Reading,
    /// Requests that are answered.
    Writing,
    /// Idle connections.
    Waiting,
}

/// What a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnProtocol {
    /// That is not known yet.
    #[default]
    Unknown,
    /// HTTP/1.1 and older.
    H1,
    /// HTTP/2
    H2,
    /// HTTP/3
    H3,
}

impl ConnProtocol {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 4] = [Self::Unknown, Self::H1, Self::H2, Self::H3];

    /// The one that a request came by.
    #[inline]
    #[must_use]
    pub const fn of(version: HttpVersion) -> Self {
        match version {
            HttpVersion::Http09 | HttpVersion::Http10 | HttpVersion::Http11 => Self::H1,
            HttpVersion::Http2 => Self::H2,
            HttpVersion::Http3 => Self::H3,
        }
    }

    /// As labels have it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::H1 => "h1",
            Self::H2 => "h2",
            Self::H3 => "h3",
        }
    }
}

/// What is counted once for all protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerCount {
    /// Turns of the worker.
    Turns,
    /// Nanoseconds by which the last deadline of a turn was late.
    LagNanos,
    /// Handshakes over TCP with TLS 1.2 from the beginning.
    Tls12Full,
    /// The same that took a session up again.
    Tls12Resumed,
    /// Handshakes over TCP with TLS 1.3 from the beginning.
    Tls13Full,
    /// The same that took a session up again.
    Tls13Resumed,
    /// Handshakes over QUIC from the beginning.
    QuicFull,
    /// The same that took a session up again.
    QuicResumed,
    /// Handshakes over TCP that the server or the client refused.
    TlsRefused,
    /// Those that were garbage, or that the client left without a word.
    TlsAbandoned,
    /// Handshakes over QUIC that the server or the client refused.
    QuicRefused,
    /// Those that were garbage, or that the client left without a word.
    QuicAbandoned,
    /// Datagrams that came.
    DatagramsIn,
    /// Their bytes.
    DatagramBytesIn,
    /// Datagrams that left.
    DatagramsOut,
    /// Their bytes.
    DatagramBytesOut,
    /// Packets of ended QUIC connections that were lost.
    PacketsLost,
    /// Datagrams that ended QUIC connections had sent.
    PacketsSent,
    /// Ended QUIC connections of which a round trip was measured.
    RoundTrips,
    /// Their last smoothed round trips, in microseconds together.
    RoundTripMicros,
}

const WORKER_COUNTS: usize = WorkerCount::RoundTripMicros as usize + 1;
const TALLY_COUNTS: usize = TallyCount::Waiting as usize + 1;
const PROTOCOLS: usize = ConnProtocol::ALL.len();

/// A counter of one writer.
#[derive(Debug, Default)]
pub(crate) struct OwnCounter(AtomicU64);

impl OwnCounter {
    /// So many more. Only the worker that owns it may call this.
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        // One writer: a load and a store do, without a locked instruction.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Reasons of decisions about the cache, and what came of them.
pub(crate) const DECISION_REASONS: usize = 23;
pub(crate) const DECISION_RESULTS: usize = 4;

/// Requests by what the cache did for them, and why.
#[derive(Debug, Default)]
pub(crate) struct DecisionCounts(pub(crate) [[OwnCounter; DECISION_RESULTS]; DECISION_REASONS]);

/// One worker's counts, in cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Tally {
    conns: [[OwnCounter; PROTOCOLS]; TALLY_COUNTS],
    own: [OwnCounter; WORKER_COUNTS],
    /// Requests by server and location.
    pub(crate) rows: RowCounts,
    /// What the cache did for them.
    pub(crate) decisions: DecisionCounts,
    /// Those of them that took longest.
    pub(crate) slow: SlowRequests,
}

impl Tally {
    /// One more.
    #[inline]
    pub fn add(&self, count: TallyCount, of: ConnProtocol) {
        self.conns[count as usize][of as usize].add(1);
    }

    /// One less.
    #[inline]
    pub fn remove(&self, count: TallyCount, of: ConnProtocol) {
        self.conns[count as usize][of as usize].add(u64::MAX);
    }

    /// So many more.
    #[inline]
    pub fn count(&self, count: WorkerCount, more: u64) {
        self.own[count as usize].add(more);
    }

    /// What it is now.
    #[inline]
    pub fn set(&self, count: WorkerCount, value: u64) {
        self.own[count as usize].set(value);
    }

    pub(crate) fn read(&self, count: WorkerCount) -> u64 {
        self.own[count as usize].read()
    }
}

/// The tallies of all workers.
#[derive(Clone, Debug, Default)]
pub struct RequestTallies {
    all: Arc<[Arc<Tally>]>,
    own: Arc<Tally>,
    number: u16,
}

impl RequestTallies {
    /// Those of all workers, by number.
    #[must_use]
    pub fn new(all: impl Iterator<Item = Arc<Tally>>) -> Self {
        Self { all: all.collect(), own: Arc::default(), number: 0 }
    }

    /// The same for the worker of this number, which writes its own one; one that is never read,
    /// if there is no such.
    #[must_use]
    pub fn of(mut self, worker: u16) -> Self {
        self.own = self.all.get(usize::from(worker)).cloned().unwrap_or_default();
        self.number = worker;
        self
    }

    /// The number of the worker that holds this.
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// The tally of the worker that holds this.
    #[inline]
    #[must_use]
    pub const fn own(&self) -> &Arc<Tally> {
        &self.own
    }

    /// Every worker's, by number.
    pub(crate) fn each(&self) -> impl ExactSizeIterator<Item = &Tally> + Clone {
        self.all.iter().map(|tally| &**tally)
    }

    /// What all have counted, over all protocols.
    #[must_use]
    pub fn sum(&self, count: TallyCount) -> u64 {
        ConnProtocol::ALL.into_iter().fold(0, |sum, of| sum.wrapping_add(self.sum_of(count, of)))
    }

    /// What all have counted of one protocol.
    pub(crate) fn sum_of(&self, count: TallyCount, of: ConnProtocol) -> u64 {
        let one = |tally: &Tally| tally.conns[count as usize][of as usize].read();
        self.each().map(one).fold(0, u64::wrapping_add)
    }

    /// What all have counted.
    pub(crate) fn total(&self, count: WorkerCount) -> u64 {
        self.each().map(|tally| tally.read(count)).fold(0, u64::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{ConnProtocol, RequestTallies, Tally, TallyCount, WorkerCount};

    #[test]
    fn what_all_workers_counted_is_added_up() {
        let tallies = RequestTallies::new((0..2).map(|_| Arc::new(Tally::default())));
        let [first, second, none] = [0, 1, 9].map(|number| tallies.clone().of(number));
        first.own().add(TallyCount::Active, ConnProtocol::H1);
        second.own().add(TallyCount::Active, ConnProtocol::H2);
        second.own().add(TallyCount::Active, ConnProtocol::H2);
        first.own().remove(TallyCount::Active, ConnProtocol::H1);
        none.own().add(TallyCount::Active, ConnProtocol::H1);
        second.own().count(WorkerCount::Turns, 3);
        assert_eq!((tallies.sum(TallyCount::Active), tallies.sum(TallyCount::Reading)), (2, 0));
        let by_protocol = ConnProtocol::ALL.map(|of| tallies.sum_of(TallyCount::Active, of));
        assert_eq!((by_protocol, tallies.total(WorkerCount::Turns)), ([0, 0, 2, 0], 3));
    }
}
