//! Failed requests and handshakes, in total and by server, for the watch over a new configuration
//! (`reload_watch`). It only adds up the counters of workers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::process::SharedFigures;
use super::rows::{CLASSES, RequestSums, RowSum};
use crate::counters::{RequestTallies, WorkerCount};

/// The status class that counts as failure: 5xx.
const FAILED: usize = CLASSES.len() - 1;

/// Events of one kind, and how many of them failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCount {
    /// All of them.
    pub all: u64,
    /// Those that failed.
    pub failed: u64,
}

impl EventCount {
    /// The difference since `earlier`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        // Counters of restarted workers begin at zero.
        let all = self.all.saturating_sub(earlier.all);
        Self { all, failed: self.failed.saturating_sub(earlier.failed) }
    }

    const fn add(&mut self, more: Self) {
        self.all += more.all;
        self.failed += more.failed;
    }
}

/// The totals so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceCounts {
    /// TLS and QUIC handshakes; those that either side refused count as failed. Abandoned ones do
    /// not: scanners cause them under any configuration.
    pub handshakes: EventCount,
    /// Requests; those with 5xx count as failed.
    pub requests: EventCount,
    /// Requests by the first name of the server.
    pub servers: BTreeMap<Arc<str>, EventCount>,
}

impl ServiceCounts {
    /// Adds up the counters of workers.
    #[must_use]
    pub fn read(tallies: &RequestTallies, figures: &SharedFigures) -> Self {
        use WorkerCount as Of;
        let good = [
            Of::Tls12Full,
            Of::Tls12Resumed,
            Of::Tls13Full,
            Of::Tls13Resumed,
            Of::QuicFull,
            Of::QuicResumed,
        ];
        let sum = |counts: &[Of]| counts.iter().map(|one| tallies.total(*one)).sum::<u64>();
        let failed = sum(&[Of::TlsRefused, Of::QuicRefused]);
        let handshakes = EventCount { all: sum(&good) + failed, failed };
        let mut counts = Self { handshakes, ..Self::default() };
        let names = figures.names();
        for (at, (server, _)) in names.rows().iter().enumerate() {
            let mut sums = RequestSums::default();
            tallies.each().for_each(|tally| tally.rows.add(at, &mut sums, &mut RowSum::default()));
            let all = sums.iter().flatten().sum();
            let more = EventCount { all, failed: sums[FAILED].iter().sum() };
            counts.requests.add(more);
            if all > 0 {
                counts.servers.entry(server.clone()).or_default().add(more);
            }
            debug_assert!(more.failed <= more.all, "what failed is among all");
        }
        debug_assert!(handshakes.failed <= handshakes.all, "what failed is among all");
        counts
    }

    /// The sum with another count.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.handshakes.add(other.handshakes);
        self.requests.add(other.requests);
        for (name, count) in &other.servers {
            self.servers.entry(name.clone()).or_default().add(*count);
        }
        self
    }

    /// The difference since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let of_server = |(name, count): (&Arc<str>, &EventCount)| {
            let before = earlier.servers.get(name).copied().unwrap_or_default();
            (name.clone(), count.since(before))
        };
        Self {
            handshakes: self.handshakes.since(earlier.handshakes),
            requests: self.requests.since(earlier.requests),
            servers: self.servers.iter().map(of_server).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{EventCount, FAILED, ServiceCounts};
    use crate::counters::{ConnProtocol, RequestTallies, Tally, WorkerCount};
    use crate::metrics::SharedFigures;
    use crate::metrics::rows::{CLASSES, CountedRequest};

    #[test]
    fn answers_of_5xx_and_broken_handshakes_of_all_workers_are_failures() {
        assert_eq!(CLASSES[FAILED], "5xx");
        let figures = SharedFigures::new(String::new());
        let row = figures.names().row(&"a".into(), &"/".into());
        let other = figures.names().row(&"b".into(), &"/".into());
        let tallies = RequestTallies::new((0..2).map(|_| Arc::new(Tally::default())));
        let count = |worker, row, status| {
            let protocol = ConnProtocol::H1;
            let request = CountedRequest { status, protocol, nanos: 1, bytes_in: 1, bytes_out: 1 };
            let _ = tallies.clone().of(worker).own().rows.count(row, &request);
        };
        count(0, row, 200);
        let earlier = ServiceCounts::read(&tallies, &figures);
        count(0, row, 502);
        count(1, row, 404);
        count(1, other, 500);
        tallies.clone().of(0).own().count(WorkerCount::Tls13Full, 3);
        tallies.clone().of(1).own().count(WorkerCount::QuicRefused, 1);
        let since = ServiceCounts::read(&tallies, &figures).since(&earlier);
        assert_eq!(since.requests, EventCount { all: 3, failed: 2 });
        assert_eq!(since.handshakes, EventCount { all: 4, failed: 1 });
        assert_eq!(since.servers["a"], EventCount { all: 2, failed: 1 });
        assert_eq!(since.servers["b"], EventCount { all: 1, failed: 1 });
    }
}
