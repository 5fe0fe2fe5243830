//! The main loop: executes the schedule and keeps the state directory up to date.
//!
//! Easiest to break: the record of an attempt must be written before the issuer gets the order, and
//! only the process with the lock may evaluate the attempt of another one.

mod claims;
mod demands;
mod locks;
mod records;
mod renewal;
mod reports;
mod rollovers;
mod statuses;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::accounts::{AccountFile, account_stem};
use crate::attempt::{AttemptParts, AttemptResults, Unreported};
use crate::certificate::{BUNDLE_MAX, ChainFacts};
use crate::host::AcmeLogLevel;
use crate::pending::PendingOrder;
use crate::plan::{AcmeIssuer, AcmeOrder, AcmePlan, OrderId};
use crate::questions::AllRenewalAnswers;
use crate::schedule::{AcmeNow, AttemptEnd, OrderSlot, Schedule, renewal};
use crate::service::{KeptFault, Shared, read_kept};
use crate::state::{AcmeStore, FileStamp, StoreLock, file_stem};
use claims::{AskedClaims, OrderLease};
use demands::Demands;
use rollovers::EndedRollovers;
use statuses::Statuses;

/// Seconds until a start that was impossible is retried: another process orders, or a directory is
/// not writable.
const HOLD: u64 = 10;
/// The minimum time between two passes: each pass examines the files of all orders, and any client
/// may ring the bell with a name.
const PASS_MIN: Duration = Duration::from_millis(100);

/// The files of an order, as last read.
struct OrderFiles {
    order: AcmeOrder,
    store: Arc<AcmeStore>,
    stem: String,
    stamp: Option<FileStamp>,
    facts: Option<ChainFacts>,
}

/// A running attempt.
struct RunningAttempt {
    number: u64,
    handle: AbortHandle,
    issuer: AcmeIssuer,
    order: AcmeOrder,
    locks: Vec<PathBuf>,
    /// The claim of the order among servers, held while the attempt runs.
    _lease: OrderLease,
}

pub(crate) struct Engine {
    shared: Arc<Shared>,
    plan: Arc<AcmePlan>,
    version: u64,
    schedule: Schedule,
    files: BTreeMap<OrderId, OrderFiles>,
    gates: BTreeMap<String, Arc<tokio::sync::Mutex<()>>>,
    running: BTreeMap<OrderId, RunningAttempt>,
    numbers: u64,
    done: AttemptResults,
    locks: BTreeMap<PathBuf, (StoreLock, usize)>,
    /// Running questions about renewals, by the issuer's name, with their numbers.
    asking: BTreeMap<String, (u64, AbortHandle)>,
    answers: AllRenewalAnswers,
    asked: AskedClaims,
    demands: Demands,
    rolled: EndedRollovers,
    statuses: Statuses,
}

impl Engine {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            plan: Arc::default(),
            version: 0,
            schedule: Schedule::default(),
            files: BTreeMap::new(),
            gates: BTreeMap::new(),
            running: BTreeMap::new(),
            numbers: 0,
            done: AttemptResults::default(),
            locks: BTreeMap::new(),
            asking: BTreeMap::new(),
            answers: AllRenewalAnswers::default(),
            asked: AskedClaims::default(),
            demands: Demands::default(),
            rolled: EndedRollovers::default(),
            statuses: Statuses::default(),
        }
    }

    /// Runs until the handle is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            let next = Instant::now() + PASS_MIN.min(self.shared.setting.tick);
            match self.shared.newer(self.version) {
                None => break,
                Some(None) => {}
                Some(Some((plan, version))) => {
                    self.version = version;
                    self.settle(&plan);
                }
            }
            self.collect();
            self.handle_permissions();
            self.take_wishes();
            self.watch();
            self.handle_answers();
            self.handle_statuses();
            self.roll_over();
            self.start();
            self.ask();
            self.check_statuses();
            self.shared.publish(self.reports());
            let _rung = timeout(self.pause(), self.shared.bell.notified()).await;
            sleep_until(next).await;
        }
        for (_, running) in self.running {
            running.handle.abort();
        }
        for (_, handle) in self.asking.into_values() {
            handle.abort();
        }
    }

    fn now(&self) -> AcmeNow {
        (self.shared.setting.clock)()
    }

    fn log(&self, level: AcmeLogLevel, text: &str) {
        self.shared.host.log(level, &format!("acme: {}", text.replace(char::is_control, " ")));
    }

    /// The time until the next order is due, at most a tick.
    fn pause(&self) -> Duration {
        let now = self.now().unix;
        let waiting = self.schedule.orders.values().filter(|slot| slot.running.is_none());
        let due = waiting.map(OrderSlot::due).chain(self.statuses.book.due());
        let due = due.filter(|due| *due > now).min();
        let tick = self.shared.setting.tick;
        due.map_or(tick, |due| tick.min(Duration::from_secs(due - now)))
    }

    /// Applies a new plan; attempts that it still contains continue.
    fn settle(&mut self, plan: &Arc<AcmePlan>) {
        let now = self.now();
        let plan = &self.with_demanded(plan);
        let unwanted = self.running.iter().filter(|(id, running)| {
            let wanted = plan.orders.iter().find(|order| order.id == **id);
            let issuer = plan.issuers.contains(&running.issuer);
            !issuer || wanted != Some(&running.order)
        });
        let unwanted: Vec<OrderId> = unwanted.map(|(id, _)| id.clone()).collect();
        for id in unwanted {
            if let Some(running) = self.running.remove(&id) {
                running.handle.abort();
                self.unlock(&running.locks);
                self.schedule.ended(&id, AttemptEnd::Dropped, now);
                self.keep(&id, Some(&running.issuer));
            }
        }
        self.ask_no_more();
        self.schedule.accounts = plan
            .issuers
            .iter()
            .map(|issuer| (issuer.name.clone(), self.account_record(issuer)))
            .collect();
        let mut before = std::mem::take(&mut self.schedule.orders);
        self.plan = plan.clone();
        self.files.clear();
        for order in &plan.orders {
            self.take_order(order, before.remove(&order.id));
        }
        let files = &self.files;
        self.statuses.book.retain(|id| files.contains_key(id));
    }

    /// Adds an order, with its earlier state.
    fn take_order(&mut self, order: &AcmeOrder, before: Option<OrderSlot>) {
        let named = order.issuers.iter().filter_map(|at| self.plan.issuers.get(*at));
        let issuers: Vec<String> = named.clone().map(|issuer| issuer.name.clone()).collect();
        let Some(store) = named.map(|issuer| self.shared.store(issuer)).next() else { return };
        let stem = file_stem(&order.id.0);
        let files = OrderFiles { order: order.clone(), store, stem, stamp: None, facts: None };
        self.files.insert(order.id.clone(), files);
        let mut slot = before.unwrap_or_default();
        slot.issuers = issuers;
        if slot.running.is_none() {
            slot.record = self.order_record(&order.id);
            slot.is_unclear = slot.record.started.is_some();
        }
        self.schedule.orders.insert(order.id.clone(), slot);
        self.look(&order.id, false);
    }

    /// Reads the certificate of an order, and installs it.
    fn look(&mut self, id: &OrderId, installs: bool) {
        let shared = self.shared.clone();
        let _kept = shared.hold_kept();
        let Some(files) = self.files.get_mut(id) else { return };
        let name = format!("{}.pem", files.stem);
        files.stamp = files.store.stamp(&name);
        let found = read_kept(&files.store, &files.order);
        if let Err(KeptFault::Unreadable(why)) = &found {
            // The certificate in use stays in use, and the file remains.
            return self.log(AcmeLogLevel::Error, &format!("\"{}\": {why}", id.0));
        }
        files.facts = None;
        let mut complaint = None;
        match found {
            Ok(None) => {}
            Ok(Some((kept, facts))) => {
                let host = &self.shared.host;
                let installed =
                    if installs { host.install(id, &kept.chain, &kept.key) } else { Ok(()) };
                match installed {
                    Ok(()) => files.facts = Some(facts),
                    Err(why) => complaint = Some(why),
                }
            }
            Err(KeptFault::Unfit(why) | KeptFault::Unreadable(why)) => complaint = Some(why),
        }
        let validity = files.facts.as_ref().map(|facts| facts.validity);
        if let Some(why) = complaint {
            let aside = files.store.set_aside(&name);
            files.stamp = files.store.stamp(&name);
            let aside = aside.map_or_else(|why| why, |()| "it is set aside".to_owned());
            self.log(AcmeLogLevel::Error, &format!("\"{}\": {why}; {aside}", id.0));
        }
        if let Some(slot) = self.schedule.orders.get_mut(id) {
            slot.validity = validity;
        }
        self.follow(id);
    }

    /// Writes the records of an order and of the account.
    fn keep(&self, id: &OrderId, issuer: Option<&AcmeIssuer>) -> bool {
        let mut written = Ok(());
        if let (Some(files), Some(slot)) = (self.files.get(id), self.schedule.orders.get(id)) {
            let name = format!("{}.state", files.stem);
            written = files.store.write(&name, slot.record.text().as_bytes());
        }
        if let Some(issuer) = issuer
            && let Some(record) = self.schedule.accounts.get(&issuer.name)
        {
            let name = format!("{}.state", account_stem(issuer));
            let store = self.shared.store(issuer);
            written = written.and(store.write(&name, record.text().as_bytes()));
        }
        if let Err(why) = &written {
            self.log(AcmeLogLevel::Error, why);
        }
        written.is_ok()
    }

    /// Handles the results of attempts.
    fn collect(&mut self) {
        let done = std::mem::take(&mut *self.done.lock().unwrap_or_else(PoisonError::into_inner));
        for (id, number, result) in done {
            let is_current = self.running.get(&id).is_some_and(|running| running.number == number);
            // The result of an attempt that a reload ended must not end its successor.
            let running = if is_current { self.running.remove(&id) } else { None };
            let Some(running) = running else { continue };
            let now = self.now();
            match result {
                Ok(facts) => {
                    self.schedule.ended(&id, AttemptEnd::Issued(facts.validity), now);
                    let text = format!("\"{}\": issued by \"{}\"", id.0, running.issuer.name);
                    self.log(AcmeLogLevel::Notice, &text);
                    if renewal(facts.validity, None) <= now.unix {
                        let text = format!("\"{}\" is due for renewal: is the clock right?", id.0);
                        self.log(AcmeLogLevel::Warn, &text);
                    }
                    if let Some(files) = self.files.get_mut(&id) {
                        files.stamp = files.store.stamp(&format!("{}.pem", files.stem));
                        files.facts = Some(facts);
                    }
                    self.follow(&id);
                }
                Err(failure) => {
                    let why = failure.why.clone();
                    self.schedule.ended(&id, AttemptEnd::Failed(failure), now);
                    self.log_failure(&id, &running.issuer.name, &why, now);
                }
            }
            self.keep(&id, Some(&running.issuer));
            self.unlock(&running.locks);
        }
    }

    /// Logs a failed attempt; the level depends on the remaining life of the certificate in use.
    fn log_failure(&self, id: &OrderId, issuer: &str, why: &str, now: AcmeNow) {
        let slot = self.schedule.orders.get(id);
        let (level, state) = match slot.and_then(|slot| slot.validity) {
            Some(_) if slot.is_some_and(|slot| slot.revoked().is_some()) => {
                (AcmeLogLevel::Error, "the certificate in use is revoked".to_owned())
            }
            None => (AcmeLogLevel::Error, "there is no certificate".to_owned()),
            Some(validity) if validity.until <= now.unix => {
                (AcmeLogLevel::Error, "the certificate in use has expired".to_owned())
            }
            Some(validity) => {
                let left = validity.until - now.unix;
                let is_late = left < validity.until.saturating_sub(validity.from) / 6;
                let level = if is_late { AcmeLogLevel::Error } else { AcmeLogLevel::Warn };
                (level, format!("the certificate in use expires in {} h", left / 3600))
            }
        };
        let next = self.schedule.next_attempt(id, now).saturating_sub(now.unix);
        let text = format!("\"{}\": \"{issuer}\": {why}; {state}; next try in {next} s", id.0);
        self.log(level, &text);
    }

    /// Installs certificates that another process wrote to the directory.
    fn watch(&mut self) {
        let changed = self.files.iter().filter(|(id, files)| {
            let is_new = files.store.stamp(&format!("{}.pem", files.stem)) != files.stamp;
            is_new && !self.running.contains_key(id)
        });
        let changed: Vec<OrderId> = changed.map(|(id, _)| id.clone()).collect();
        for id in changed {
            self.look(&id, true);
            let record = self.order_record(&id);
            if let Some(slot) = self.schedule.orders.get_mut(&id) {
                slot.record = record;
                slot.is_unclear = slot.record.started.is_some();
            }
        }
    }

    /// Starts all attempts that may start.
    fn start(&mut self) {
        let now = self.now();
        let mut fresh = BTreeSet::new();
        while let Some((id, name)) = self.schedule.pick(now) {
            if !self.may_begin(&id, now) {
                self.hold(&id, now);
                continue;
            }
            let issuer = self.plan.issuers.iter().find(|issuer| issuer.name == name).cloned();
            if issuer.is_none() && self.schedule.orders.get(&id).is_some_and(|slot| slot.is_unclear)
            {
                // An attempt at an issuer that is no longer configured.
                self.clear_up(&id, now);
                continue;
            }
            let Some(issuer) = issuer else {
                self.hold(&id, now);
                continue;
            };
            // On every early exit below, the claim is released for other servers.
            let Some(lease) = self.claim(&id, &issuer, now) else { continue };
            let Some(locks) = self.lock(&id, &issuer) else {
                self.hold(&id, now);
                continue;
            };
            // Another process may have ordered since the last read.
            let is_known = !fresh.insert(id.clone()) || self.is_current(&id, &issuer);
            let is_unclear = self.schedule.orders.get(&id).is_some_and(|slot| slot.is_unclear);
            if !is_known || is_unclear {
                if is_unclear {
                    self.clear_up(&id, now);
                }
                self.unlock(&locks);
                continue;
            }
            self.schedule.begin(&id, &issuer.name, now);
            if !self.keep(&id, None) {
                // Without a record, each restart would order again.
                self.schedule.ended(&id, AttemptEnd::Dropped, now);
                self.hold(&id, now);
                self.unlock(&locks);
                continue;
            }
            self.spawn(&id, issuer, locks, lease);
        }
        self.forget_asked(now);
    }

    fn hold(&mut self, id: &OrderId, now: AcmeNow) {
        self.hold_for(HOLD, id, now);
    }

    fn hold_for(&mut self, seconds: u64, id: &OrderId, now: AcmeNow) {
        if let Some(slot) = self.schedule.orders.get_mut(id) {
            slot.hold = now.unix.saturating_add(seconds);
        }
    }

    /// Whether the files match the state of this process; otherwise the state is updated.
    fn is_current(&mut self, id: &OrderId, issuer: &AcmeIssuer) -> bool {
        let (record, account) = (self.order_record(id), self.account_record(issuer));
        let stamp = self.files.get(id).map(|files| {
            let is_same = files.store.stamp(&format!("{}.pem", files.stem)) == files.stamp;
            (is_same, files.stem.clone())
        });
        let mut is_current = true;
        if stamp.is_some_and(|(is_same, _)| !is_same) {
            self.look(id, true);
            is_current = false;
        }
        if let Some(known) = self.schedule.accounts.get_mut(&issuer.name)
            && known.text() != account.text()
        {
            *known = account;
            is_current = false;
        }
        if let Some(slot) = self.schedule.orders.get_mut(id)
            && slot.record.text() != record.text()
        {
            slot.is_unclear = record.started.is_some();
            slot.record = record;
            is_current = false;
        }
        is_current
    }

    /// Evaluates an attempt that no process runs any more.
    fn clear_up(&mut self, id: &OrderId, now: AcmeNow) {
        let Some(files) = self.files.get(id) else { return };
        let Some(slot) = self.schedule.orders.get_mut(id) else { return };
        slot.is_unclear = false;
        let Some((when, issuer)) = slot.record.started.clone() else { return };
        let pending = files.store.read(&format!("{}.pending", files.stem), BUNDLE_MAX);
        let pending = pending.ok().flatten().and_then(|text| String::from_utf8(text).ok());
        let pending = pending.and_then(|text| PendingOrder::parse(&text));
        let written = files.store.stamp(&format!("{}.pem", files.stem));
        let is_kept = written.is_some_and(|(_, time, _)| {
            u64::try_from(time / 1_000_000_000).is_ok_and(|time| time >= when)
        });
        if let Some(validity) = slot.validity.filter(|_| is_kept) {
            // It succeeded, but the record was not written.
            slot.running = Some(issuer);
            self.schedule.ended(id, AttemptEnd::Issued(validity), now);
            self.follow(id);
            self.keep(id, None);
        } else if pending.is_some_and(|pending| pending.issuer == issuer)
            && slot.issuers.contains(&issuer)
            && slot.may_resume()
        {
            slot.is_resumable = true;
        } else {
            self.schedule.lost(id, now);
            let issuer = self.plan.issuers.iter().find(|known| known.name == issuer).cloned();
            self.keep(id, issuer.as_ref());
        }
    }

    fn spawn(&mut self, id: &OrderId, issuer: AcmeIssuer, locks: Vec<PathBuf>, lease: OrderLease) {
        let Some(files) = self.files.get(id) else { return };
        self.numbers += 1;
        let (number, done, shared) = (self.numbers, self.done.clone(), self.shared.clone());
        let slot = self.schedule.orders.get(id);
        let issued_by = slot.and_then(|slot| slot.record.issued_by.as_ref());
        let replaces = files.facts.as_ref().and_then(|facts| facts.renewal_id.clone());
        let parts = AttemptParts {
            order: files.order.clone(),
            store: files.store.clone(),
            stem: files.stem.clone(),
            replaces: replaces.filter(|_| issued_by == Some(&issuer.name)),
            account: AccountFile {
                host: self.shared.host.clone(),
                store: self.shared.store(&issuer),
                gate: self.gates.entry(account_stem(&issuer)).or_default().clone(),
            },
            issuer: issuer.clone(),
        };
        let order = files.order.clone();
        let own = id.clone();
        let task = tokio::spawn(async move {
            let mut report = Unreported { done, shared, id: own, number, result: None };
            report.result = Some(parts.run(&report.shared).await);
        });
        let handle = task.abort_handle();
        let running = RunningAttempt { number, handle, issuer, order, locks, _lease: lease };
        self.running.insert(id.clone(), running);
    }
}
