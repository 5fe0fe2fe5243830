//! Figures of the whole process, set by the control thread.
//!
//! Its lock is held for a copy; among requests, only a scrape takes it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::rows::RowNames;

/// The figures of the control thread.
#[derive(Clone, Debug, Default)]
pub struct ProcessFigures {
    /// The process id.
    pub pid: u32,
    /// When the process started, in seconds since 1970.
    pub started: f64,
    /// CPU time of the process in seconds; none if the system does not report it.
    pub cpu_seconds: Option<f64>,
    /// Bytes of memory that are resident.
    pub resident_bytes: Option<u64>,
    /// Bytes of address space.
    pub virtual_bytes: Option<u64>,
    /// Open descriptors.
    pub descriptors: u64,
    /// The limit of descriptors.
    pub descriptors_max: u64,
    /// The number of the configuration in force.
    pub configuration: u64,
    /// The results of reloads.
    pub reloads: ReloadFigures,
    /// Why the last reload failed or was taken back, if so: the first lines.
    pub reload_errors: Vec<String>,
    /// Expiry times of certificates by file, in seconds since 1970.
    pub certificates: Vec<(String, i64)>,
    /// Certificates ordered by ACME.
    pub orders: Vec<OrderFigures>,
    /// PHP pools.
    pub pools: Vec<PoolFigures>,
    /// The ACME totals.
    pub acme: AcmeFigures,
    /// The cluster figures; none without a cluster.
    pub cluster: Option<ClusterFigures>,
    /// How often a worker was found stuck.
    pub stalls: u64,
}

/// Totals of ACME orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcmeFigures {
    /// Certificates issued since the start.
    pub issued: u64,
    /// Attempts that failed since the last success of their orders.
    pub failed_attempts: u64,
    /// Orders with a certificate that has not expired.
    pub valid: u64,
    /// Orders without one.
    pub missing: u64,
    /// Orders whose last attempt failed.
    pub failing: u64,
    /// Orders whose certificate in use was revoked by its issuer.
    pub revoked: u64,
    /// The next attempt in seconds since 1970; 0 if there is none.
    pub next_attempt: u64,
}

/// Purges that this node exchanges with the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterFigures {
    /// Whether it is connected.
    pub is_connected: bool,
    /// Purges of this process that were sent.
    pub sent: u64,
    /// Purges of other nodes that were carried out.
    pub received: u64,
    /// Purges that wait to be sent.
    pub waiting: u64,
    /// How often everything was purged because purges may have been missed.
    pub losses: u64,
    /// Objects; none if they are not shared.
    pub objects: Option<SharedObjectFigures>,
}

/// Objects that nodes of a cluster share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedObjectFigures {
    /// Whether Valkey answers.
    pub is_answering: bool,
    /// Misses that Valkey was asked about.
    pub asked: u64,
    /// Objects of other nodes that were used.
    pub taken: u64,
    /// Objects that could not be used.
    pub unfit: u64,
    /// Objects of this node that Valkey stored.
    pub offered: u64,
    /// Commands or lookups without an answer in time.
    pub late: u64,
}

/// The results of reloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReloadFigures {
    /// Configurations that came into force.
    pub good: u64,
    /// Configurations that were refused.
    pub failed: u64,
    /// When one last came into force, in seconds since 1970; the start counts.
    pub last_good: u64,
    /// When one was last refused or taken back, in seconds since 1970; 0 if none was.
    pub last_failed: u64,
    /// Whether the last order failed, or was taken back.
    pub has_failed: bool,
    /// Configurations that were taken back, because more requests failed than before.
    pub taken_back: u64,
    /// Whether the last one was taken back.
    pub was_taken_back: bool,
    /// Until when the configuration in force is watched, in seconds since 1970; 0 if it is not.
    pub watched_until: u64,
}

/// One certificate that is ordered by ACME (RFC 8555).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderFigures {
    /// The names of the certificate.
    pub names: Vec<String>,
    /// The issuer that is asked next.
    pub issuer: String,
    /// When the certificate in use expires, in seconds since 1970; none without one.
    pub expires: Option<u64>,
    /// When the issuer is asked next, in seconds since 1970.
    pub next_attempt: u64,
    /// Whether an order is under way.
    pub is_ordering: bool,
    /// Tries that failed since the last success.
    pub failures: u32,
    /// Why the last try failed; none after a success.
    pub last_error: Option<String>,
    /// Why the issuer revoked the certificate in use; none if it did not.
    pub revoked: Option<&'static str>,
}

/// One PHP pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolFigures {
    /// Its name.
    pub name: String,
    /// Whether it takes requests.
    pub is_up: bool,
    /// Its state, as one word.
    pub state: &'static str,
    /// Its master process, if one runs.
    pub pid: Option<u32>,
    /// The age of the master process, in seconds.
    pub seconds: u64,
    /// Processes that run scripts.
    pub children: u64,
    /// The limit of these processes.
    pub children_max: u64,
    /// Processes that ended unexpectedly.
    pub ended: u64,
    /// Processes of older generations that finish their requests.
    pub finishing: u64,
}

/// The state that all configurations of a process share: figures, and rows of labels.
#[derive(Clone, Debug, Default)]
pub struct SharedFigures(Arc<SharedState>);

#[derive(Debug, Default)]
struct SharedState {
    /// The secret of the console's page.
    token: String,
    /// Whether requests are always counted by location.
    counts: bool,
    /// Whether the readiness probe fails, because the server is about to end.
    is_leaving: AtomicBool,
    process: Mutex<ProcessFigures>,
    names: Mutex<RowNames>,
}

impl SharedFigures {
    /// Makes the readiness probe fail from now on.
    pub fn leave(&self) {
        self.0.is_leaving.store(true, Ordering::Relaxed);
    }

    /// Whether the server is about to end.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.0.is_leaving.load(Ordering::Relaxed)
    }

    /// The state of a process with this secret, which must be valid in a header field; without one,
    /// no action of the console is executed.
    #[must_use]
    pub fn new(token: String) -> Self {
        Self(Arc::new(SharedState { token, ..SharedState::default() }))
    }

    /// Makes requests counted by location, whatever the configuration says.
    #[must_use]
    pub fn counting(self) -> Self {
        let token = self.0.token.clone();
        Self(Arc::new(SharedState { token, counts: true, ..SharedState::default() }))
    }

    pub(crate) fn counts_requests(&self) -> bool {
        self.0.counts
    }

    pub(crate) fn token(&self) -> &str {
        &self.0.token
    }

    /// The figures, mutable.
    pub fn process(&self) -> MutexGuard<'_, ProcessFigures> {
        self.0.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn names(&self) -> MutexGuard<'_, RowNames> {
        self.0.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
