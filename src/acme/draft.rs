//! The certificates of a draft configuration: its plan of orders, and the slots of its handshakes.
//! No order and no slot in force knows of it before [`IssuedCertificates::commit`] takes it.

use std::collections::HashMap;

use bolide_acme::{AcmeInbox, AcmeOrder, AcmePlan, OrderId, kept};
use bolide_conf::model::{Config, IssuedId};
use bolide_tls::{CertSlot, LoadedCertificate};

use super::demanded::{DemandedCertificates, IssuedPlace, NamesOnDemand};
use super::plan::{self, PlannedPlace};
use crate::stapling::StapleRule;

use super::{AcmeState, IssuedCertificates, IssuedSlot, by_name};

/// The orders of a draft, and where its handshakes find their certificates.
#[derive(Debug, Default)]
pub(crate) struct IssuedDraft {
    pub(super) plan: AcmePlan,
    places: Vec<PlannedPlace>,
    /// Those in force, and new ones.
    slots: HashMap<OrderId, IssuedSlot>,
    /// What slots without a certificate start with.
    loaded: Vec<(OrderId, FirstCertificate)>,
    demands: HashMap<OrderId, DemandedCertificates>,
    rules: HashMap<OrderId, Vec<StapleRule>>,
    inbox: AcmeInbox,
}

/// The certificate that a slot has until its order is carried out.
#[derive(Debug)]
struct FirstCertificate {
    certificate: LoadedCertificate,
    /// Whether it is another order's.
    is_borrowed: bool,
}

impl IssuedCertificates {
    /// Begins a draft: new orders start with the certificate that an earlier process stored, or
    /// with that of an order in force for one of their names.
    pub(crate) fn draft(&self, config: &Config) -> IssuedDraft {
        let (plan, places) = plan::of(config);
        let state = self.desk.state();
        let inbox = self.desk.inbox.clone();
        let mut draft = IssuedDraft { places, inbox, ..IssuedDraft::default() };
        let demanded = plan.demands.iter().flat_map(|demand| {
            let orders = bolide_acme::demanded(&plan, demand).into_iter();
            orders.map(|order| (order, Some(&demand.id)))
        });
        let written = plan.orders.iter().map(|order| (order.clone(), None));
        let all: Vec<(AcmeOrder, Option<&OrderId>)> = written.chain(demanded).collect();
        let mut known: Option<HashMap<String, LoadedCertificate>> = None;
        for (order, demand) in &all {
            let mut own = state.slots.get(&order.id).cloned().unwrap_or_default();
            own.names.clone_from(&order.names);
            own.demand = demand.cloned();
            let has_one = own.slot.certificate().is_some();
            draft.slots.insert(order.id.clone(), own);
            if has_one {
                continue;
            }
            let found = kept(&plan, order);
            let found = found
                .and_then(|kept| LoadedCertificate::from_pem(&kept.chain, &kept.key, &[]).ok());
            let is_borrowed = found.is_none();
            let found = found.or_else(|| {
                // A certificate on demand is only for its own name.
                if demand.is_some() {
                    return None;
                }
                let known = known.get_or_insert_with(|| draft.by_name(&state));
                order.names.iter().find_map(|name| known.get(name)).cloned()
            });
            if let Some(certificate) = found {
                let first = FirstCertificate { certificate, is_borrowed };
                draft.loaded.push((order.id.clone(), first));
            }
        }
        for demand in &plan.demands {
            let known = state.demands.get(&demand.id).cloned().unwrap_or_default();
            draft.demands.insert(demand.id.clone(), known);
        }
        drop(all);
        draft.plan = plan;
        draft
    }
}

impl IssuedDraft {
    /// The slot of a certificate, and its identity in TLS sessions.
    pub(crate) fn place(&self, id: IssuedId) -> IssuedPlace {
        match self.places.get(id.index()) {
            Some(PlannedPlace::Order(id)) => {
                let slot = self.slots.get(id).map(|known| known.slot.clone());
                IssuedPlace::Slot(slot.unwrap_or_default(), id.0.clone())
            }
            Some(PlannedPlace::Demand(id)) => IssuedPlace::ByName(NamesOnDemand {
                id: id.clone(),
                certificates: self.demands.get(id).cloned().unwrap_or_default(),
                inbox: self.inbox.clone(),
            }),
            None => IssuedPlace::Slot(CertSlot::default(), String::new()),
        }
    }

    /// Has a server's certificate stapled.
    pub(crate) fn staple(&mut self, id: IssuedId, rule: &StapleRule) {
        let Some(PlannedPlace::Order(id) | PlannedPlace::Demand(id)) = self.places.get(id.index())
        else {
            return;
        };
        let rules = self.rules.entry(id.clone()).or_default();
        if !rules.contains(rule) {
            rules.push(rule.clone());
        }
    }

    /// The certificates that can be borrowed, by name.
    fn by_name(&self, state: &AcmeState) -> HashMap<String, LoadedCertificate> {
        let mut all = by_name(&state.slots);
        for (id, first) in &self.loaded {
            for name in self.slots.get(id).into_iter().flat_map(|own| &own.names) {
                all.entry(name.clone()).or_insert_with(|| first.certificate.clone());
            }
        }
        all
    }

    /// Makes the slots of the draft those in force.
    pub(super) fn commit(self, state: &mut AcmeState) {
        let Self { plan, slots, loaded, demands, rules, .. } = self;
        state.rules = rules;
        state.demands.extend(demands);
        for (id, own) in slots {
            // The order may have been carried out meanwhile.
            let known = state.slots.entry(id.clone()).or_insert_with(|| own.clone());
            (known.names, known.demand) = (own.names, own.demand);
        }
        for (id, FirstCertificate { certificate, is_borrowed }) in loaded {
            let Some(known) = state.slots.get_mut(&id) else { continue };
            if known.slot.certificate().is_none() {
                known.end = certificate.end().map(|(end, _)| end).filter(|_| !is_borrowed);
                known.is_borrowed = is_borrowed;
                // It is stapled with the start of its orders.
                known.slot.set(certificate, Vec::new());
            }
        }
        for known in state.slots.values() {
            if let Some(certificates) = known.demand.as_ref().and_then(|id| state.demands.get(id)) {
                known.names.iter().for_each(|name| certificates.add(name, known.slot.clone()));
            }
        }
        state.active = plan;
    }
}
