//! The task of an attempt: its parts, the files that it writes, and the report of its end.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::accounts::AccountFile;
use crate::certificate::{self, ChainFacts};
use crate::client::{AcmeAttempt, IssuedCertificate};
use crate::host::AcmeLogLevel;
use crate::local;
use crate::plan::{AcmeAuthority, AcmeIssuer, AcmeOrder, OrderId};
use crate::schedule::AttemptFailure;
use crate::service::{KeepFault, KeepRule, Shared};
use crate::state::AcmeStore;

/// Results of attempts, with their numbers.
pub(crate) type AttemptResults =
    Arc<Mutex<Vec<(OrderId, u64, Result<ChainFacts, AttemptFailure>)>>>;

/// Reports the end of an attempt, even if it panics.
pub(crate) struct Unreported {
    pub(crate) done: AttemptResults,
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: OrderId,
    pub(crate) number: u64,
    pub(crate) result: Option<Result<ChainFacts, AttemptFailure>>,
}

impl Drop for Unreported {
    fn drop(&mut self) {
        let failed = || {
            let why = "the attempt broke off".to_owned();
            Err(AttemptFailure { why, was_ordered: true, ..AttemptFailure::default() })
        };
        let result = self.result.take().unwrap_or_else(failed);
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.push((self.id.clone(), self.number, result));
        drop(done);
        self.shared.bell.notify_one();
    }
}

/// The parts of an attempt without a connection yet.
pub(crate) struct AttemptParts {
    pub(crate) issuer: AcmeIssuer,
    pub(crate) order: AcmeOrder,
    pub(crate) store: Arc<AcmeStore>,
    pub(crate) stem: String,
    pub(crate) account: AccountFile,
    pub(crate) replaces: Option<(Vec<u8>, Vec<u8>)>,
}

impl AttemptParts {
    pub(crate) async fn run(self, shared: &Shared) -> Result<ChainFacts, AttemptFailure> {
        let failed = |why: String| AttemptFailure { why, ..AttemptFailure::default() };
        if let AcmeAuthority::Local { lifetime } = self.issuer.authority {
            return self.issue_here(shared, lifetime).map_err(failed);
        }
        let transport = shared.transport(&self.issuer).map_err(failed)?;
        let attempt = AcmeAttempt {
            issuer: self.issuer,
            order: self.order,
            transport,
            store: self.store,
            stem: self.stem,
            account: self.account,
            used: OnceLock::new(),
            host: shared.host.clone(),
            clock: shared.unix_clock(),
            replaces: self.replaces,
            was_ordered: AtomicBool::new(false),
            was_resumed: AtomicBool::new(false),
        };
        let issued = attempt.run().await?;
        attempt.transport.step("certificate known").await;
        let refused =
            |why: String| AttemptFailure { why, was_ordered: true, ..AttemptFailure::default() };
        // The order stays pending, so that a restart can fetch the certificate again.
        let kept = keep(shared, &attempt.store, &attempt.order, &issued);
        if matches!(kept, Err(KeepFault::Unusable(_))) {
            attempt.forget_pending();
        }
        kept.map_err(|fault| refused(fault.text()))?;
        attempt.transport.step("certificate kept").await;
        attempt.forget_pending();
        Ok(issued.facts)
    }

    /// Issues the certificate by the authority of this server.
    fn issue_here(self, shared: &Shared, lifetime: Duration) -> Result<ChainFacts, String> {
        let now = (shared.setting.clock)().unix;
        let made = local::issue(&self.account.store, &self.order, lifetime, now)?;
        if let Some(why) = made.new_root {
            let text = format!(
                "acme: the authority \"{}\" has a new root, as {why}; clients have to trust {}",
                self.issuer.name,
                self.account.store.shown(local::ROOT)
            );
            shared.host.log(AcmeLogLevel::Warn, &text);
        }
        keep(shared, &self.store, &self.order, &made.issued).map_err(KeepFault::text)?;
        Ok(made.issued.facts)
    }
}

/// Installs a certificate and stores it in its file.
fn keep(
    shared: &Shared,
    store: &AcmeStore,
    order: &AcmeOrder,
    issued: &IssuedCertificate,
) -> Result<bool, KeepFault> {
    // Text between the certificates is omitted.
    let bundle = certificate::bundle(issued.chain.as_bytes(), &issued.key);
    shared.keep_certificate(store, order, (&bundle, &issued.facts), KeepRule::Always)
}
