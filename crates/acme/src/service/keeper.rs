//! The way of other servers' certificates into use: beside the thread that orders, as who brings
//! one waits for the lock of the directory.

use std::fmt;
use std::sync::Arc;

use super::{KeepFault, KeepRule, Shared, locked, order_with};
use crate::certificate;
use crate::plan::OrderId;

/// Keeps certificates that other servers have.
#[derive(Clone)]
pub struct AcmeKeeper {
    shared: Arc<Shared>,
}

impl fmt::Debug for AcmeKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcmeKeeper").finish_non_exhaustive()
    }
}

impl AcmeKeeper {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Another server has this certificate for an order: it is kept and in use if it is
    /// newer than the one that is there. Returns whether it is.
    ///
    /// # Errors
    ///
    /// It does not fit the order, or cannot be kept now.
    pub fn take_over(&self, order: &OrderId, chain: &[u8], key: &str) -> Result<bool, KeepFault> {
        let plan = locked(&self.shared.wanted).plan.clone();
        let Some(order) = order_with(&plan, order) else { return Ok(false) };
        let first = order.issuers.first().and_then(|at| plan.issuers.get(*at));
        let Some(issuer) = first else { return Ok(false) };
        let facts = certificate::check(chain, key, order.key, &order.names);
        let facts = facts.map_err(KeepFault::Unusable)?;
        let now = (self.shared.setting.clock)().unix;
        certificate::check_time(facts.validity, now).map_err(KeepFault::Unusable)?;
        let store = self.shared.store(issuer);
        let bundle = certificate::bundle(chain, key);
        let rule = KeepRule::IfNewer;
        let is_kept = self.shared.keep_certificate(&store, &order, (&bundle, &facts), rule)?;
        // The thread takes over what changes after it has looked first, which may be behind this.
        self.shared.bell.notify_one();
        Ok(is_kept)
    }
}
