//! Figures of the whole process, which the control thread finds out and everything else reads.
//!
//! Owns the place between them. Its lock is held for a copy, and no request but a scrape takes it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::rows::RowNames;

/// What the control thread knows.
#[derive(Clone, Debug, Default)]
pub struct ProcessFigures {
    /// Its number.
    pub pid: u32,
    /// When the process started, in seconds since 1970.
    pub started: f64,
    /// Time of all cores that it used, in seconds; none if the system does not tell.
    pub cpu_seconds: Option<f64>,
    /// Bytes of memory that are resident.
    pub resident_bytes: Option<u64>,
    /// Bytes of address space.
    pub virtual_bytes: Option<u64>,
    /// Open descriptors.
    pub descriptors: u64,
    /// How many there may be.
    pub descriptors_max: u64,
    /// The number of the configuration in force.
    pub configuration: u64,
    /// What became of reloads.
    pub reloads: ReloadFigures,
    /// Why the last order failed or was taken back, if so: the first lines.
    pub reload_errors: Vec<String>,
    /// Ends of certificates by file, in seconds since 1970.
    pub certificates: Vec<(String, i64)>,
    /// Certificates that are ordered from issuers.
    pub orders: Vec<OrderFigures>,
    /// Pools of PHP.
    pub pools: Vec<PoolFigures>,
    /// Certificates of issuers.
    pub acme: AcmeFigures,
    /// What is shared with other nodes; none without a cluster.
    pub cluster: Option<ClusterFigures>,
    /// How often a worker was found to stand still.
    pub stalls: u64,
}

/// What became of certificates that issuers are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcmeFigures {
    /// Certificates that came since the start.
    pub issued: u64,
    /// Attempts that failed since the last success of their orders.
    pub failed_attempts: u64,
    /// Orders with a certificate that has not expired.
    pub valid: u64,
    /// Orders without one.
    pub missing: u64,
    /// Orders whose last attempt failed.
    pub failing: u64,
    /// When an issuer is asked next, in seconds since 1970; 0 if none is.
    pub next_attempt: u64,
}

/// Purges between this node of a cluster and the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterFigures {
    /// Whether it is connected.
    pub is_connected: bool,
    /// Purges of this process that others can hear of.
    pub sent: u64,
    /// Purges of others that it carried out.
    pub received: u64,
    /// Purges that wait to be sent.
    pub waiting: u64,
    /// How often everything was dropped, as purges may have been missed.
    pub losses: u64,
    /// Objects; none if they are not shared.
    pub objects: Option<SharedObjectFigures>,
}

/// Objects that nodes of a cluster share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedObjectFigures {
    /// Whether Valkey is asked.
    pub is_answering: bool,
    /// Misses that Valkey was asked about.
    pub asked: u64,
    /// Pages of other nodes that were taken.
    pub taken: u64,
    /// Objects that were of no use.
    pub unfit: u64,
    /// Objects of this node that Valkey took.
    pub offered: u64,
    /// Commands or questions that had no answer in time.
    pub late: u64,
}

/// What became of orders to reload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReloadFigures {
    /// Configurations that were put in force.
    pub good: u64,
    /// Configurations that were refused.
    pub failed: u64,
    /// When one was last put in force, in seconds since 1970; the start counts.
    pub last_good: u64,
    /// When one was last refused or taken back, in seconds since 1970; 0 if none was.
    pub last_failed: u64,
    /// Whether the last order failed, or was taken back.
    pub has_failed: bool,
    /// Configurations that were taken back, as more failed under them than before.
    pub taken_back: u64,
    /// Whether the last one was.
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
}

/// One pool of PHP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolFigures {
    /// Its name.
    pub name: String,
    /// Whether it takes requests.
    pub is_up: bool,
    /// How it is, in a word.
    pub state: &'static str,
    /// Its master process, if one runs.
    pub pid: Option<u32>,
    /// The age of that, in seconds.
    pub seconds: u64,
    /// Its processes that run scripts.
    pub children: u64,
    /// How many there may be.
    pub children_max: u64,
    /// Processes that ended though they should not have.
    pub ended: u64,
    /// Older processes that finish their requests.
    pub finishing: u64,
}

/// What all configurations of a process share: its figures, and the names that are counted by.
#[derive(Clone, Debug, Default)]
pub struct SharedFigures(Arc<SharedState>);

#[derive(Debug, Default)]
struct SharedState {
    /// What the console's own page knows and no other page.
    token: String,
    /// Whether requests are counted in any case.
    counts: bool,
    /// Whether the server wants no new requests, as it is about to end.
    is_leaving: AtomicBool,
    process: Mutex<ProcessFigures>,
    names: Mutex<RowNames>,
}

impl SharedFigures {
    /// From now on the server says that it wants no new requests.
    pub fn leave(&self) {
        self.0.is_leaving.store(true, Ordering::Relaxed);
    }

    /// Whether it does.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.0.is_leaving.load(Ordering::Relaxed)
    }

    /// Those of a process with this secret, as text that a header field can have; without one, no
    /// action of the console is carried out.
    #[must_use]
    pub fn new(token: String) -> Self {
        Self(Arc::new(SharedState { token, ..SharedState::default() }))
    }

    /// The same, with requests counted whatever the configuration says.
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

    /// The figures, to be changed.
    pub fn process(&self) -> MutexGuard<'_, ProcessFigures> {
        self.0.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn names(&self) -> MutexGuard<'_, RowNames> {
        self.0.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
