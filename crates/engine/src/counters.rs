//! The counters of each worker: connections and requests for `stub_status` and `$connections_*`,
//! and everything else that [`crate::metrics`] reports.
//!
//! A tally has one writer, its worker; a reader adds up those of all workers. Sums are not exact
//! while workers run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bolide_http::HttpVersion;

use crate::metrics::rows::RowCounts;
use crate::metrics::slow::SlowRequests;

/// The counters by protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TallyCount {
    /// Connections that were accepted.
    Accepted,
    /// Accepted connections that were not refused for lack of room.
    Handled,
    /// Connections whose protocol is known, or that ended without one.
    Settled,
    /// Requests, including invalid ones.
    Requests,
    /// Open connections.
    Active,
    /// Connections that read a request head.
    Reading,
    /// Connections or streams that process a request or send a response.
    Writing,
    /// Idle connections.
    Waiting,
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnProtocol {
    /// Not known yet.
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
    /// All protocols, in order of their numbers.
    pub(crate) const ALL: [Self; 4] = [Self::Unknown, Self::H1, Self::H2, Self::H3];

    /// The protocol of a request.
    #[inline]
    #[must_use]
    pub const fn of(version: HttpVersion) -> Self {
        match version {
            HttpVersion::Http09 | HttpVersion::Http10 | HttpVersion::Http11 => Self::H1,
            HttpVersion::Http2 => Self::H2,
            HttpVersion::Http3 => Self::H3,
        }
    }

    /// The value of the `protocol` label.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::H1 => "h1",
            Self::H2 => "h2",
            Self::H3 => "h3",
        }
    }
}

/// The counters without a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerCount {
    /// Turns (iterations of the event loop).
    Turns,
    /// Nanoseconds by which the last deadline of the latest turn was late.
    LagNanos,
    /// Full TLS 1.2 handshakes over TCP.
    Tls12Full,
    /// Resumed TLS 1.2 handshakes over TCP.
    Tls12Resumed,
    /// Full TLS 1.3 handshakes over TCP.
    Tls13Full,
    /// Resumed TLS 1.3 handshakes over TCP.
    Tls13Resumed,
    /// Full handshakes over QUIC.
    QuicFull,
    /// Resumed handshakes over QUIC.
    QuicResumed,
    /// Handshakes over TCP that the server or the client refused.
    TlsRefused,
    /// Handshakes over TCP that were garbage, or that the client abandoned silently.
    TlsAbandoned,
    /// Handshakes over QUIC that the server or the client refused.
    QuicRefused,
    /// Handshakes over QUIC that were garbage, or that the client abandoned silently.
    QuicAbandoned,
    /// Received datagrams.
    DatagramsIn,
    /// Bytes of received datagrams.
    DatagramBytesIn,
    /// Sent datagrams.
    DatagramsOut,
    /// Bytes of sent datagrams.
    DatagramBytesOut,
    /// Lost packets of closed QUIC connections.
    PacketsLost,
    /// Sent datagrams of closed QUIC connections.
    PacketsSent,
    /// Closed QUIC connections with a measured round-trip time.
    RoundTrips,
    /// The sum of their last smoothed round-trip times, in microseconds.
    RoundTripMicros,
}

const WORKER_COUNTS: usize = WorkerCount::RoundTripMicros as usize + 1;
const TALLY_COUNTS: usize = TallyCount::Waiting as usize + 1;
const PROTOCOLS: usize = ConnProtocol::ALL.len();

/// A counter with one writer.
#[derive(Debug, Default)]
pub(crate) struct OwnCounter(AtomicU64);

impl OwnCounter {
    /// Adds `more`. Only the owning worker may call this.
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

/// The numbers of reasons and of results of cache decisions.
pub(crate) const DECISION_REASONS: usize = 23;
pub(crate) const DECISION_RESULTS: usize = 4;

/// Requests by cache decision and reason.
#[derive(Debug, Default)]
pub(crate) struct DecisionCounts(pub(crate) [[OwnCounter; DECISION_RESULTS]; DECISION_REASONS]);

/// One worker's counters, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Tally {
    conns: [[OwnCounter; PROTOCOLS]; TALLY_COUNTS],
    own: [OwnCounter; WORKER_COUNTS],
    /// Requests by server and location.
    pub(crate) rows: RowCounts,
    /// Requests by cache decision.
    pub(crate) decisions: DecisionCounts,
    /// The slowest requests.
    pub(crate) slow: SlowRequests,
}

impl Tally {
    /// Adds one.
    #[inline]
    pub fn add(&self, count: TallyCount, of: ConnProtocol) {
        self.conns[count as usize][of as usize].add(1);
    }

    /// Subtracts one.
    #[inline]
    pub fn remove(&self, count: TallyCount, of: ConnProtocol) {
        self.conns[count as usize][of as usize].add(u64::MAX);
    }

    /// Adds `more`.
    #[inline]
    pub fn count(&self, count: WorkerCount, more: u64) {
        self.own[count as usize].add(more);
    }

    /// Sets the value of a gauge.
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
    /// The tallies of all workers, in order of their numbers.
    #[must_use]
    pub fn new(all: impl Iterator<Item = Arc<Tally>>) -> Self {
        Self { all: all.collect(), own: Arc::default(), number: 0 }
    }

    /// The same tallies for the worker with this number, which writes its own one. An unknown
    /// number writes to a tally that is never read.
    #[must_use]
    pub fn of(mut self, worker: u16) -> Self {
        self.own = self.all.get(usize::from(worker)).cloned().unwrap_or_default();
        self.number = worker;
        self
    }

    /// The number of this worker.
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// The tally of this worker.
    #[inline]
    #[must_use]
    pub const fn own(&self) -> &Arc<Tally> {
        &self.own
    }

    /// The tallies of all workers, by number.
    pub(crate) fn each(&self) -> impl ExactSizeIterator<Item = &Tally> + Clone {
        self.all.iter().map(|tally| &**tally)
    }

    /// The sum over all workers and protocols.
    #[must_use]
    pub fn sum(&self, count: TallyCount) -> u64 {
        ConnProtocol::ALL.into_iter().fold(0, |sum, of| sum.wrapping_add(self.sum_of(count, of)))
    }

    /// The sum over all workers for one protocol.
    pub(crate) fn sum_of(&self, count: TallyCount, of: ConnProtocol) -> u64 {
        let one = |tally: &Tally| tally.conns[count as usize][of as usize].read();
        self.each().map(one).fold(0, u64::wrapping_add)
    }

    /// The sum over all workers.
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
