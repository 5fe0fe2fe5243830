//! Which orders of a plan are shared with other servers, and with which accounts.

use std::collections::{BTreeMap, HashMap};

use bolide_acme::{AccountName, AcmeAuthority, AcmeIssuer, AcmeOrder, AcmePlan, OrderId, kept};
use bolide_tls::LoadedCertificate;

use super::AcmeDesk;

impl AcmeDesk {
    /// Shares the orders of a plan with other servers, including those on demand, but not those of
    /// a local authority, whose root belongs to this server.
    pub(super) fn share(&self, plan: &AcmePlan) {
        let account = |issuers: &[usize]| {
            let first = issuers.first().and_then(|at| plan.issuers.get(*at));
            first
                .filter(|issuer| issuer.authority == AcmeAuthority::Remote)
                .map(AcmeIssuer::account_name)
        };
        let written = plan.orders.iter();
        let mut all: BTreeMap<OrderId, Option<AccountName>> = written
            .filter_map(|order| Some((order.id.clone(), account(&order.issuers)?)))
            .collect();
        let demands = plan.demands.iter();
        let shared: HashMap<OrderId, Option<AccountName>> =
            demands.filter_map(|one| Some((one.id.clone(), account(&one.issuers)?))).collect();
        let mut state = self.state();
        let demanded = state.slots.iter().filter_map(|(id, known)| {
            Some((id.clone(), shared.get(known.demand.as_ref()?)?.clone()))
        });
        all.extend(demanded);
        state.shared.clone_from(&shared);
        drop(state);
        self.fleet.want(all.into_iter());
        for demand in plan.demands.iter().filter(|one| shared.contains_key(&one.id)) {
            for order in bolide_acme::demanded(plan, demand) {
                if !self.fleet.has_certificate(&order.id) {
                    self.record_kept(plan, &order);
                }
            }
        }
    }

    /// Reports the stored certificate of an order from an earlier process.
    fn record_kept(&self, plan: &AcmePlan, order: &AcmeOrder) {
        let Some(kept) = kept(plan, order) else { return };
        if LoadedCertificate::from_pem(&kept.chain, &kept.key, &[]).is_ok() {
            self.fleet.record_certificate(&order.id, &kept.chain, &kept.key);
        }
    }
}
