//! Orders for on-demand names: names come from handshakes, permissions from the operator's program,
//! and [`DemandBook`] limits both.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Engine;
use crate::ask::ask;
use crate::demand::{DemandAnswer, DemandBook, DemandStep};
use crate::host::AcmeLogLevel;
use crate::plan::{AcmeDemand, AcmeOrder, AcmePlan, OrderId};
use crate::schedule::{AcmeNow, OrderSlot};
use crate::service::{names_file, order_of, read_names};
use crate::state::AcmeStore;

/// Answers of the program: the directive, the name, the answer, and why there is none.
type DemandAnswers = Arc<Mutex<Vec<(OrderId, String, DemandAnswer, Option<String>)>>>;

/// The directives, and the directive of each order.
#[derive(Default)]
pub(super) struct Demands {
    all: BTreeMap<OrderId, Demanded>,
    /// The directive and the name of an order.
    owners: BTreeMap<OrderId, (OrderId, String)>,
    answers: DemandAnswers,
}

struct Demanded {
    demand: AcmeDemand,
    store: Arc<AcmeStore>,
    book: DemandBook,
}

impl Engine {
    /// The plan with the orders for names that are allowed already.
    pub(super) fn with_demanded(&mut self, plan: &Arc<AcmePlan>) -> Arc<AcmePlan> {
        let mut before = std::mem::take(&mut self.demands.all);
        self.demands.owners.clear();
        let mut whole = AcmePlan::clone(plan);
        for demand in &plan.demands {
            let first = demand.issuers.first().and_then(|at| plan.issuers.get(*at));
            let Some(store) = first.map(|issuer| self.shared.store(issuer)) else { continue };
            let known = before.remove(&demand.id).map(|known| known.book);
            let mut book = known.unwrap_or_else(|| {
                let names = read_names(&store, demand).unwrap_or_else(|why| {
                    self.log(AcmeLogLevel::Error, &why);
                    Vec::new()
                });
                DemandBook::new(demand.rate, demand.names_max, names.into_iter())
            });
            book.limit(demand.rate, demand.names_max);
            for name in book.names() {
                let order = order_of(demand, name);
                let owner = (demand.id.clone(), name.to_owned());
                self.demands.owners.insert(order.id.clone(), owner);
                whole.orders.push(order);
            }
            let demanded = Demanded { demand: demand.clone(), store, book };
            self.demands.all.insert(demand.id.clone(), demanded);
        }
        Arc::new(whole)
    }

    /// Asks about the names that clients requested.
    pub(super) fn take_wishes(&mut self) {
        let now = self.now();
        for (id, name) in self.shared.setting.inbox.take_wishes() {
            let Some(known) = self.demands.all.get_mut(&id) else { continue };
            if known.book.wish(&name, now) == DemandStep::Ask {
                self.question(&id, name);
            }
        }
    }

    /// Whether an order may begin: that of an on-demand name needs a permission.
    pub(super) fn may_begin(&mut self, id: &OrderId, now: AcmeNow) -> bool {
        // An attempt of an earlier process had the permission; it is only cleared up.
        let is_begun = self.schedule.orders.get(id).is_some_and(OrderSlot::is_begun);
        let owner = self.demands.owners.get(id).filter(|_| !is_begun).cloned();
        let Some((demand, name)) = owner else { return true };
        let Some(known) = self.demands.all.get_mut(&demand) else { return true };
        match known.book.renewal(&name, now) {
            Ok(()) => true,
            Err(step) => {
                if step == DemandStep::Ask {
                    self.question(&demand, name);
                }
                false
            }
        }
    }

    fn question(&self, id: &OrderId, name: String) {
        let Some(known) = self.demands.all.get(id) else { return };
        let (url, id) = (known.demand.ask.clone(), id.clone());
        let (shared, answers) = (self.shared.clone(), self.demands.answers.clone());
        tokio::spawn(async move {
            let (answer, why) = ask(&url, &name).await;
            let mut all = answers.lock().unwrap_or_else(PoisonError::into_inner);
            all.push((id, name, answer, why));
            drop(all);
            shared.bell.notify_one();
        });
    }

    /// Handles the answers of the program.
    pub(super) fn handle_permissions(&mut self) {
        let mut answers = self.demands.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = std::mem::take(&mut *answers);
        drop(answers);
        let now = self.now();
        for (id, name, answer, why) in ended {
            let Some(known) = self.demands.all.get_mut(&id) else { continue };
            let has_changed = known.book.answered(&name, answer, now);
            let (order, url) = (order_of(&known.demand, &name), known.demand.ask.clone());
            if has_changed {
                let kept = known.store.write(&names_file(&id), known.book.text().as_bytes());
                if let Err(why) = kept {
                    self.log(AcmeLogLevel::Error, &why);
                }
            }
            match (answer, has_changed) {
                (DemandAnswer::Allowed, true) => self.add(&id, &order, &name),
                (DemandAnswer::Allowed, false) => {
                    // A renewal waited for it.
                    if let Some(slot) = self.schedule.orders.get_mut(&order.id) {
                        slot.hold = 0;
                    }
                }
                (DemandAnswer::Refused, true) => self.forget(&id, &order, &name),
                // The rate of questions limits these lines.
                (DemandAnswer::Refused, false) => {
                    let text = format!("\"{url}\" refuses a certificate for \"{name}\"");
                    self.log(AcmeLogLevel::Notice, &text);
                }
                (DemandAnswer::Silent, _) => {}
            }
            if let Some(why) = why {
                let text = format!("\"{}\" does not tell about \"{name}\": {why}", url);
                self.log(AcmeLogLevel::Error, &text);
            }
        }
    }

    fn add(&mut self, demand: &OrderId, order: &AcmeOrder, name: &str) {
        self.log(
            AcmeLogLevel::Notice,
            &format!("\"{name}\" is allowed, its certificate is ordered"),
        );
        self.shared.host.demanded(demand, order);
        self.demands.owners.insert(order.id.clone(), (demand.clone(), name.to_owned()));
        let mut plan = AcmePlan::clone(&self.plan);
        plan.orders.push(order.clone());
        self.plan = Arc::new(plan);
        self.take_order(order, None);
        self.look(&order.id, true);
    }

    /// The program no longer allows a name: removes its certificate.
    fn forget(&mut self, demand: &OrderId, order: &AcmeOrder, name: &str) {
        let text = format!("\"{name}\" is refused now, its certificate is forgotten");
        self.log(AcmeLogLevel::Notice, &text);
        self.shared.host.forgotten(demand, order);
        self.demands.owners.remove(&order.id);
        if let Some(running) = self.running.remove(&order.id) {
            running.handle.abort();
            self.unlock(&running.locks);
        }
        self.schedule.orders.remove(&order.id);
        self.statuses.book.retain(|id| *id != order.id);
        if let Some(files) = self.files.remove(&order.id) {
            for end in ["pem", "state", "pending"] {
                if let Err(why) = files.store.remove(&format!("{}.{end}", files.stem)) {
                    self.log(AcmeLogLevel::Error, &why);
                }
            }
        }
        let mut plan = AcmePlan::clone(&self.plan);
        plan.orders.retain(|known| known.id != order.id);
        self.plan = Arc::new(plan);
    }
}
