//! The health of one server, for all workers: its connections, its failures, its availability.
//!
//! Owns the counters and the rule of `max_fails` and `fail_timeout`; the balancer chooses. Easiest
//! to break: a count that was taken is given back exactly once, which [`Lease`] ensures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use bolide_base::Instant;

/// The rule of `max_fails` and `fail_timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthRule {
    /// Failures that make it unavailable; 0 disables the rule.
    pub max_fails: u32,
    /// How long it is unavailable, and the period in which failures count.
    pub fail_timeout: Duration,
}

/// Counters of one server, shared by workers and by the configurations that name it.
#[derive(Debug, Default)]
pub struct Health {
    conns: AtomicU32,
    fails: AtomicU32,
    /// When it failed last.
    accessed: AtomicU64,
    /// When it failed last or was chosen as a probe.
    checked: AtomicU64,
    /// Requests and failures since the start.
    requests: AtomicU64,
    failures: AtomicU64,
}

impl Health {
    /// Requests that it serves now.
    #[must_use]
    pub fn conns(&self) -> u32 {
        self.conns.load(Ordering::SeqCst)
    }

    /// Failures that count.
    #[must_use]
    pub fn fails(&self) -> u32 {
        self.fails.load(Ordering::SeqCst)
    }

    /// Requests that it was given since the start.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Its failures since the start.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Whether it is unavailable now.
    pub(crate) fn is_resting(&self, rule: HealthRule, now: Instant) -> bool {
        self.is_suspect(rule) && !self.is_check_old(rule, now)
    }

    /// Records that it was chosen; false when it has failed and another request just became its
    /// probe.
    pub(crate) fn claim(&self, rule: HealthRule, now: Instant) -> bool {
        let checked = self.checked.load(Ordering::SeqCst);
        if now.since(Instant::from_nanos(checked)) <= rule.fail_timeout {
            return !self.is_suspect(rule);
        }
        let won = self.checked.compare_exchange(
            checked,
            now.as_nanos(),
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        won.is_ok() || !self.is_suspect(rule)
    }

    /// Records a failure; true when it is unavailable from now on.
    pub(crate) fn record_failure(&self, rule: HealthRule, now: Instant) -> bool {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let fails = self.fails.fetch_add(1, Ordering::SeqCst).saturating_add(1);
        self.accessed.store(now.as_nanos(), Ordering::SeqCst);
        self.checked.store(now.as_nanos(), Ordering::SeqCst);
        rule.max_fails > 0 && fails >= rule.max_fails
    }

    /// Records a success: a server chosen as a probe after its last failure is available again.
    pub(crate) fn record_success(&self) {
        if self.accessed.load(Ordering::SeqCst) < self.checked.load(Ordering::SeqCst) {
            self.fails.store(0, Ordering::SeqCst);
        }
    }

    fn is_suspect(&self, rule: HealthRule) -> bool {
        rule.max_fails > 0 && self.fails() >= rule.max_fails
    }

    fn is_check_old(&self, rule: HealthRule, now: Instant) -> bool {
        let checked = Instant::from_nanos(self.checked.load(Ordering::SeqCst));
        now.since(checked) > rule.fail_timeout
    }
}

/// One request that a server handles; counted until it is dropped.
#[derive(Debug)]
pub struct Lease(Arc<Health>);

impl Lease {
    /// Counts one more, unless `max_conns` are active already; 0 is no limit.
    pub(crate) fn take(health: &Arc<Health>, max_conns: u32) -> Option<Self> {
        let one_more = |conns: u32| (max_conns == 0 || conns < max_conns).then(|| conns + 1);
        let taken = health.conns.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more);
        taken.is_ok().then(|| {
            health.requests.fetch_add(1, Ordering::Relaxed);
            Self(Arc::clone(health))
        })
    }

    /// The counters of its server.
    pub(crate) fn health(&self) -> &Health {
        &self.0
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.conns.fetch_sub(1, Ordering::SeqCst);
    }
}
