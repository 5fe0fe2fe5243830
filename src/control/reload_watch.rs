//! The comparison of a new configuration with the one before: which counters, and the rule.
//!
//! It reads no clock and no counter. Easiest to break: a few errors, or chance, decide nothing.

use std::fmt;
use std::time::Duration;

use bolide_base::Instant;
use bolide_engine::metrics::{EventCount, ServiceCounts};

/// The least number of failures since the reload for a verdict.
const FAILURES_MIN: u64 = 10;
/// The least number of earlier events for a comparison.
const BEFORE_MIN: u64 = 10;
/// The least increase of the failure rate.
const RISE_MIN: f64 = 0.05;
/// The least increase in standard errors of the difference of two rates. Chance reaches it once in
/// thirty thousand times, and every server is checked twice a second.
const DEVIATIONS_MIN: f64 = 4.0;
/// Counts of at least this long ago, and at most twice as long, count as "before".
const PERIOD: Duration = Duration::from_mins(5);

/// The recent counts of the configuration in force.
#[derive(Debug, Default)]
pub(super) struct ServiceRecord {
    /// The counts of the previous period.
    earlier: ServiceCounts,
    /// The counters at the beginning of the current period.
    mark: ServiceCounts,
    begun: Instant,
}

impl ServiceRecord {
    /// Begins a period at `counts`; `earlier` are the counts of the previous one.
    pub(super) fn begin(&mut self, earlier: ServiceCounts, counts: ServiceCounts, now: Instant) {
        *self = Self { earlier, mark: counts, begun: now };
    }

    /// Whether the current period is over.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now.since(self.begun) >= PERIOD
    }

    /// Begins the next period.
    pub(super) fn turn(&mut self, counts: ServiceCounts, now: Instant) {
        let earlier = counts.since(&self.mark);
        self.begin(earlier, counts, now);
    }

    /// The recent counts up to `counts`.
    pub(super) fn until(&self, counts: &ServiceCounts) -> ServiceCounts {
        counts.since(&self.mark).with(&self.earlier)
    }
}

/// The failures that increased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WorseService {
    subject: WorseSubject,
    before: EventCount,
    after: EventCount,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum WorseSubject {
    Handshakes,
    Requests,
    Server(String),
}

impl fmt::Display for WorseService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, before, after } = self;
        write!(f, "{} of {} ", after.failed, after.all)?;
        match subject {
            WorseSubject::Handshakes => f.write_str("handshakes failed")?,
            WorseSubject::Requests => f.write_str("requests ended with 5xx")?,
            WorseSubject::Server(name) => {
                write!(f, "requests to server \"{}\" ended with 5xx", name.escape_debug())?;
            }
        }
        write!(f, ", {} of {} before", before.failed, before.all)
    }
}

/// What is clearly worse since the reload, if anything is.
pub(super) fn judge(before: &ServiceCounts, after: &ServiceCounts) -> Option<WorseService> {
    let found = |subject, before, after| {
        is_worse(before, after).then_some(WorseService { subject, before, after })
    };
    found(WorseSubject::Requests, before.requests, after.requests)
        .or_else(|| found(WorseSubject::Handshakes, before.handshakes, after.handshakes))
        .or_else(|| {
            after.servers.iter().find_map(|(name, after)| {
                let before = before.servers.get(name).copied().unwrap_or_default();
                found(WorseSubject::Server(name.to_string()), before, *after)
            })
        })
}

/// The rule: at least ten failures, at least ten events before; the share of failures rose by five
/// of a hundred, and by four standard errors.
pub(crate) fn is_worse(before: EventCount, after: EventCount) -> bool {
    if after.failed < FAILURES_MIN || before.all < BEFORE_MIN {
        return false;
    }
    let share = |of: EventCount| of.failed as f64 / of.all as f64;
    let rise = share(after) - share(before);
    let pooled = (before.failed + after.failed) as f64 / (before.all + after.all) as f64;
    let spread = pooled * (1.0 - pooled) * (1.0 / before.all as f64 + 1.0 / after.all as f64);
    rise >= RISE_MIN && rise >= DEVIATIONS_MIN * spread.sqrt()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bolide_base::Instant;
    use bolide_engine::metrics::{EventCount, ServiceCounts};

    use super::{PERIOD, ServiceRecord, is_worse, judge};

    const fn of(failed: u64, all: u64) -> EventCount {
        EventCount { all, failed }
    }

    #[test]
    fn few_errors_and_chance_decide_nothing() {
        for (before, after, worse) in [
            // One error, and nine of nine.
            (of(0, 1000), of(1, 1), false),
            (of(0, 1000), of(9, 9), false),
            (of(0, 1000), of(10, 10), true),
            // Nothing to compare with.
            (of(0, 0), of(1000, 1000), false),
            (of(0, 9), of(1000, 1000), false),
            (of(0, 10), of(10, 10), true),
            // A tenth of what few clients ask may be chance, of what many ask it is not.
            (of(0, 20), of(10, 100), false),
            (of(0, 1000), of(10, 100), true),
            // Much traffic: less than five of a hundred is left to people.
            (of(0, 1_000_000), of(49_000, 1_000_000), false),
            (of(0, 1_000_000), of(51_000, 1_000_000), true),
            // What failed before may go on to fail.
            (of(500, 1000), of(500, 1000), false),
            (of(500, 1000), of(520, 1000), false),
            (of(1000, 1000), of(1000, 1000), false),
            (of(500, 1000), of(700, 1000), true),
            // Better than before.
            (of(500, 1000), of(100, 1000), false),
        ] {
            assert_eq!(is_worse(before, after), worse, "{before:?} {after:?}");
        }
    }

    #[test]
    fn one_bad_server_among_many_is_found_and_named() {
        let counts = |requests, bad, handshakes| {
            let servers = [("good".into(), of(0, 10_000)), ("bad".into(), bad)];
            ServiceCounts { handshakes, requests, servers: servers.into() }
        };
        let before = counts(of(0, 10_050), of(0, 50), of(1, 500));
        assert_eq!(judge(&before, &before), None);
        let verdict = |after| judge(&before, &after).map(|worse| worse.to_string());
        assert_eq!(
            verdict(counts(of(50, 10_050), of(50, 50), of(1, 500))).unwrap(),
            "50 of 50 requests to server \"bad\" ended with 5xx, 0 of 50 before"
        );
        assert_eq!(
            verdict(counts(of(0, 10_050), of(0, 50), of(40, 40))).unwrap(),
            "40 of 40 handshakes failed, 1 of 500 before"
        );
        // A server that was not there before.
        let mut after = counts(of(50, 10_050), of(0, 50), of(1, 500));
        after.servers.insert("new".into(), of(50, 50));
        assert_eq!(judge(&before, &after), None);
    }

    #[test]
    fn what_came_in_the_last_minutes_is_what_was_before() {
        let counts = |all| ServiceCounts { requests: of(0, all), ..ServiceCounts::default() };
        let (mut record, start) = (ServiceRecord::default(), Instant::from_nanos(0));
        record.begin(counts(7), counts(100), start);
        assert_eq!(record.until(&counts(130)).requests.all, 37);
        assert!(!record.is_due(start.after(PERIOD - Duration::from_secs(1))));
        assert!(record.is_due(start.after(PERIOD)));
        record.turn(counts(150), start.after(PERIOD));
        assert_eq!(record.until(&counts(151)).requests.all, 51);
        // Workers that were started again count from zero.
        assert_eq!(record.until(&counts(3)).requests.all, 50);
    }
}
