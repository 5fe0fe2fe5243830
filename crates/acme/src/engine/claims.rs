//! Claims of orders among servers: every claim is released, whatever happens.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Engine, HOLD};
use crate::host::OrderClaim;
use crate::plan::{AcmeAuthority, AcmeIssuer, OrderId};
use crate::schedule::AcmeNow;
use crate::service::Shared;

/// Seconds until an order is examined again while its claim is undecided.
const CLAIM_HOLD: u64 = 1;
/// Seconds after which an undecided claim of an order that is no longer examined is released.
const ASKED_LIFE: u64 = 2 * HOLD;

/// A claimed order; released on drop.
pub(super) struct OrderLease {
    shared: Arc<Shared>,
    id: OrderId,
}

impl Drop for OrderLease {
    fn drop(&mut self) {
        self.shared.host.unclaim(&self.id);
    }
}

/// Undecided claims, and when they were made.
pub(super) type AskedClaims = BTreeMap<OrderId, (u64, OrderLease)>;

impl Engine {
    /// Claims an order; if that fails, it is examined again later.
    pub(super) fn claim(
        &mut self,
        id: &OrderId,
        issuer: &AcmeIssuer,
        now: AcmeNow,
    ) -> Option<OrderLease> {
        let asked = self.asked.remove(id);
        let lease = || OrderLease { shared: self.shared.clone(), id: id.clone() };
        if issuer.authority != AcmeAuthority::Remote {
            return Some(lease());
        }
        let claimed = self.shared.host.claim(id);
        let lease = asked.map_or_else(lease, |(_, lease)| lease);
        match claimed {
            OrderClaim::Mine => return Some(lease),
            OrderClaim::Asked => {
                self.asked.insert(id.clone(), (now.unix, lease));
                self.hold_for(CLAIM_HOLD, id, now);
            }
            OrderClaim::Elsewhere => self.hold(id, now),
        }
        None
    }

    /// Releases undecided claims that are no longer needed, for example because the certificate was
    /// received another way.
    pub(super) fn forget_asked(&mut self, now: AcmeNow) {
        self.asked.retain(|_, (when, _)| when.saturating_add(ASKED_LIFE) > now.unix);
    }
}
