//! What the engine tells about orders.

use super::Engine;
use crate::local;
use crate::plan::AcmeOrder;
use crate::service::AcmeOrderReport;

impl Engine {
    pub(super) fn reports(&self) -> Vec<AcmeOrderReport> {
        let now = self.now();
        let report = |order: &AcmeOrder| {
            let slot = self.schedule.orders.get(&order.id)?;
            let issuer = slot.running.as_ref().or(slot.record.issuer.as_ref());
            Some(AcmeOrderReport {
                id: order.id.clone(),
                names: order.names.clone(),
                issuer: issuer.or(slot.issuers.first())?.clone(),
                expires: slot.validity.map(|validity| validity.until),
                next_attempt: self.schedule.next_attempt(&order.id, now),
                is_ordering: slot.running.is_some(),
                last_error: slot.record.last_error.clone(),
                failures: slot.record.consecutive,
                revoked: slot.revoked().cloned(),
                root: self.plan.issuers.get(*order.issuers.first()?).and_then(local::root),
            })
        };
        self.plan.orders.iter().filter_map(report).collect()
    }
}
