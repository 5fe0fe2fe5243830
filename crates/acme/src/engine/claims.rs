//! Whose an order is among servers: what was claimed is given back on every way out.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Engine, HOLD};
use crate::host::OrderClaim;
use crate::plan::{AcmeAuthority, AcmeIssuer, OrderId};
use crate::schedule::AcmeNow;
use crate::service::Shared;

/// Seconds until an order is looked at again, of which it is not known yet whether another server
/// has begun it.
const CLAIM_HOLD: u64 = 1;
/// Seconds after which an order that is not looked at again is asked for no more.
const ASKED_LIFE: u64 = 2 * HOLD;

/// An order that was claimed; given back when this is dropped.
pub(super) struct OrderLease {
    shared: Arc<Shared>,
    id: OrderId,
}

impl Drop for OrderLease {
    fn drop(&mut self) {
        self.shared.host.unclaim(&self.id);
    }
}

/// Orders that were asked for without an answer so far, and when.
pub(super) type AskedClaims = BTreeMap<OrderId, (u64, OrderLease)>;

impl Engine {
    /// An order that may be begun here; else it is looked at again later.
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

    /// Gives back what was asked for and is not wanted any more, such as an order whose certificate
    /// came by another way.
    pub(super) fn forget_asked(&mut self, now: AcmeNow) {
        self.asked.retain(|_, (when, _)| when.saturating_add(ASKED_LIFE) > now.unix);
    }
}
