//! Requests by server and location: the rows of labels, and each worker's counters.
//!
//! A row gets its number when a configuration is compiled and keeps it in all later ones, so
//! counters survive reloads. Easiest to break: a number is never reused for other labels.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::counters::{ConnProtocol, OwnCounter};
use crate::metrics::slow::SLOW_NANOS;

/// LIMIT: pairs of server and location with a row of their own, over all configurations; the rest
/// counts as `other`.
pub(crate) const ROWS_MAX: usize = 1024;

/// The label of requests beyond the limit.
const OTHER: &str = "other";

/// Upper bounds of the buckets of durations, in nanoseconds.
pub(crate) const BOUNDS_NANOS: [u64; 7] =
    [1_000_000, 5_000_000, 25_000_000, 100_000_000, 500_000_000, 2_500_000_000, 10_000_000_000];
/// The same in seconds.
pub(crate) const BOUNDS: [f64; 7] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0];
const BUCKETS: usize = BOUNDS.len() + 1;

/// Status classes; the first one is for statuses in no class.
pub(crate) const CLASSES: [&str; 6] = ["other", "1xx", "2xx", "3xx", "4xx", "5xx"];
/// The protocols of requests.
pub(crate) const PROTOCOLS: [ConnProtocol; 3] =
    [ConnProtocol::H1, ConnProtocol::H2, ConnProtocol::H3];

/// The label of a server without a name.
const NAMELESS: &str = "_";

/// The label of a server.
pub(crate) const fn server_label(name: &str) -> &str {
    if name.is_empty() { NAMELESS } else { name }
}

/// The row of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetricRow(u16);

/// The labels of rows, by number. The first row is for those beyond the limit.
#[derive(Debug)]
pub(crate) struct RowNames {
    rows: Vec<(Arc<str>, Arc<str>)>,
    known: HashMap<(Arc<str>, Arc<str>), u16>,
}

impl Default for RowNames {
    fn default() -> Self {
        let other: Arc<str> = OTHER.into();
        Self { rows: vec![(other.clone(), other)], known: HashMap::new() }
    }
}

impl RowNames {
    /// The row of a location, created if there is room.
    pub(crate) fn row(&mut self, server: &Arc<str>, location: &Arc<str>) -> MetricRow {
        let key = (Arc::clone(server), Arc::clone(location));
        let row = match self.known.get(&key) {
            Some(&known) => known,
            None if self.rows.len() < ROWS_MAX => {
                let row = self.rows.len() as u16;
                self.rows.push(key.clone());
                self.known.insert(key, row);
                row
            }
            None => 0,
        };
        debug_assert!(self.rows.len() <= ROWS_MAX, "numbers of rows are bounded");
        debug_assert!(usize::from(row) < self.rows.len(), "a row has a name");
        MetricRow(row)
    }

    /// Servers and locations, by row.
    pub(crate) fn rows(&self) -> &[(Arc<str>, Arc<str>)] {
        &self.rows
    }
}

/// A finished request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedRequest {
    pub(crate) status: u16,
    pub(crate) protocol: ConnProtocol,
    pub(crate) nanos: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

/// The counters of one row.
#[derive(Debug, Default)]
struct RowCount {
    /// By class and protocol.
    requests: [[OwnCounter; PROTOCOLS.len()]; CLASSES.len()],
    buckets: [OwnCounter; BUCKETS],
    nanos: OwnCounter,
    bytes_in: OwnCounter,
    bytes_out: OwnCounter,
}

/// The sums of a row by class and protocol.
pub(crate) type RequestSums = [[u64; PROTOCOLS.len()]; CLASSES.len()];

/// The other sums of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowSum {
    pub(crate) buckets: [u64; BUCKETS],
    pub(crate) nanos: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

/// Rows per chunk; a chunk is allocated at its first count.
const CHUNK: usize = 32;

/// Chunks that are allocated when they are used.
#[derive(Debug)]
struct Chunks<T, const N: usize>([OnceLock<Box<[T; CHUNK]>>; N]);

impl<T: Default, const N: usize> Default for Chunks<T, N> {
    fn default() -> Self {
        Self([const { OnceLock::new() }; N])
    }
}

impl<T: Default, const N: usize> Chunks<T, N> {
    #[inline]
    fn make(&self, at: usize) -> &T {
        let make = || Box::new(std::array::from_fn(|_| T::default()));
        &self.0[at / CHUNK % N].get_or_init(make)[at % CHUNK]
    }

    fn get(&self, at: usize) -> Option<&T> {
        Some(&self.0.get(at / CHUNK)?.get()?[at % CHUNK])
    }
}

/// The counters of one worker.
#[derive(Debug, Default)]
pub(crate) struct RowCounts(Chunks<RowCount, { ROWS_MAX / CHUNK }>);

impl RowCounts {
    /// Counts a request; returns whether it was slow. Only the owning worker may call this.
    #[inline]
    #[must_use]
    pub(crate) fn count(&self, at: MetricRow, request: &CountedRequest) -> bool {
        debug_assert!(request.protocol != ConnProtocol::Unknown, "a request has a version");
        let class = match request.status / 100 {
            class @ 1..=5 => usize::from(class),
            _ => 0,
        };
        let protocol = (request.protocol as usize).saturating_sub(1);
        let row = self.0.make(at.0.into());
        row.requests[class][protocol].add(1);
        row.nanos.add(request.nanos);
        row.bytes_in.add(request.bytes_in);
        row.bytes_out.add(request.bytes_out);
        // Most requests are answered in the turn in which they arrived.
        if request.nanos <= BOUNDS_NANOS[0] {
            row.buckets[0].add(1);
            false
        } else {
            let bucket = BOUNDS_NANOS.iter().position(|bound| request.nanos <= *bound);
            row.buckets[bucket.unwrap_or(BUCKETS - 1)].add(1);
            request.nanos >= SLOW_NANOS
        }
    }

    /// Adds the counters of a row to `requests` and `sum`.
    pub(crate) fn add(&self, row: usize, requests: &mut RequestSums, sum: &mut RowSum) {
        let Some(counts) = self.0.get(row) else { return };
        for (sums, counts) in requests.iter_mut().zip(&counts.requests) {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count.read());
        }
        sum.buckets.iter_mut().zip(&counts.buckets).for_each(|(sum, count)| *sum += count.read());
        sum.nanos += counts.nanos.read();
        sum.bytes_in += counts.bytes_in.read();
        sum.bytes_out += counts.bytes_out.read();
    }
}

#[cfg(test)]
mod tests {
    use super::{BOUNDS, BOUNDS_NANOS, CountedRequest, ROWS_MAX, RowCounts, RowNames, RowSum};
    use crate::counters::ConnProtocol;

    #[test]
    fn names_keep_their_rows_and_those_beyond_the_limit_share_the_first() {
        let mut names = RowNames::default();
        let first = names.row(&"a".into(), &"/".into());
        let second = names.row(&"a".into(), &"/b".into());
        assert_eq!((first.0, second.0), (1, 2));
        for number in 0..2 * ROWS_MAX {
            names.row(&format!("s{number}").into(), &"/".into());
        }
        assert_eq!(names.rows().len(), ROWS_MAX);
        assert_eq!(names.row(&"late".into(), &"/".into()).0, 0);
        let (server, location) = &names.rows()[0];
        assert_eq!((&**server, &**location), ("other", "other"));
        assert_eq!(names.row(&"a".into(), &"/b".into()), second);
    }

    #[test]
    fn a_request_is_counted_once_in_each_place() {
        assert!(BOUNDS.iter().zip(BOUNDS_NANOS).all(|(s, ns)| (s * 1e9).round() as u64 == ns));
        let (counts, mut names) = (RowCounts::default(), RowNames::default());
        let row = names.row(&"a".into(), &"/".into());
        let times = [(200, 1_000_000), (204, 1_000_001), (999, 20_000_000_000), (0, 0)];
        for (status, nanos) in times {
            let protocol = ConnProtocol::H2;
            let request = CountedRequest { status, protocol, nanos, bytes_in: 10, bytes_out: 5 };
            assert_eq!(counts.count(row, &request), nanos > 1_000_000_000);
        }
        let (mut requests, mut sum) = ([[0; 3]; 6], RowSum::default());
        counts.add(1, &mut requests, &mut sum);
        assert_eq!(requests, [[0, 2, 0], [0; 3], [0, 2, 0], [0; 3], [0; 3], [0; 3]]);
        let buckets = [2, 1, 0, 0, 0, 0, 0, 1];
        let nanos = 20_002_000_001;
        assert_eq!(sum, RowSum { buckets, nanos, bytes_in: 40, bytes_out: 20 });
    }
}
