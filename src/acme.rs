//! ACME certificates: the orders of a configuration, and the server's side of the ordering thread.
//!
//! ```text
//!   draft ──commit (in force)──▶ slots for handshakes ──resume──▶ orders ──install──▶ slots
//! ```
//!
//! Easiest to break: a slot belongs to an order and not to a configuration, so that a reload in the
//! middle of an order loses nothing; and a draft may be dropped.

mod demanded;
mod draft;
mod fleet;
mod plan;
mod sharing;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bolide_acme::{
    AccountName, AcmeHost, AcmeInbox, AcmeLogLevel, AcmeOrder, AcmeOrderReport, AcmePlan,
    AcmeService, Challenge, KeepFault, OrderClaim, OrderId,
};
use bolide_base::Now;
use bolide_conf::model::{Config, IssuedId, LogLevel};
use bolide_engine::metrics::AcmeFigures;
use bolide_engine::{CertifiedNames, HttpChallenges};
use bolide_tls::{CertSlot, LoadedCertificate, TlsChallenges};

use crate::account::{WorkerAccount, give_up_rights};
use crate::control_log::ControlLog;
use crate::stapling::{IssuedStapling, StapleRule};
use demanded::DemandedCertificates;
pub(crate) use demanded::IssuedPlace;
pub(crate) use draft::IssuedDraft;
pub(crate) use fleet::{AcmeFleet, FleetAccount, FleetCertificate, FleetState, KnownAccount};
pub(crate) use plan::check as check_issuers;

/// LIMIT: names in one log line about missing certificates.
const NAMES_SHOWN: usize = 10;

/// Certificates by order, pending challenges, and the ordering thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct IssuedCertificates {
    desk: Arc<AcmeDesk>,
    service: Arc<Mutex<Option<AcmeService>>>,
}

/// The state that the control thread and the ordering thread share.
#[derive(Debug, Default)]
struct AcmeDesk {
    http: HttpChallenges,
    tls: TlsChallenges,
    inbox: AcmeInbox,
    certified: CertifiedNames,
    state: Mutex<AcmeState>,
    /// The state that is shared with other servers.
    fleet: AcmeFleet,
    /// OCSP responses for certificates in use.
    stapling: IssuedStapling,
}

#[derive(Debug, Default)]
struct AcmeState {
    slots: HashMap<OrderId, IssuedSlot>,
    /// Certificates on demand, by their directive.
    demands: HashMap<OrderId, DemandedCertificates>,
    /// Such directives whose certificates are shared with other servers, with their accounts.
    shared: HashMap<OrderId, Option<AccountName>>,
    /// How servers staple the certificates of a directive.
    rules: HashMap<OrderId, Vec<StapleRule>>,
    /// The plan of the configuration in force.
    active: AcmePlan,
    log: Option<Arc<ControlLog>>,
    /// Certificates issued since the start.
    issued: u64,
}

/// The slot of one order's certificate.
#[derive(Clone, Debug, Default)]
struct IssuedSlot {
    slot: CertSlot,
    names: Vec<String>,
    /// The expiry of its certificate, in seconds since 1970.
    end: Option<i64>,
    /// Whether it holds another order's certificate until its own is issued.
    is_borrowed: bool,
    /// The directive of an order on demand.
    demand: Option<OrderId>,
}

impl IssuedCertificates {
    /// No certificates yet; those that come are stapled by `stapling`.
    pub(crate) fn new(stapling: IssuedStapling) -> Self {
        let desk = AcmeDesk { stapling, ..AcmeDesk::default() };
        Self { desk: Arc::new(desk), service: Arc::default() }
    }

    /// The challenges of `http-01`.
    pub(crate) fn http_challenges(&self) -> &HttpChallenges {
        &self.desk.http
    }

    /// The challenges of `tls-alpn-01`.
    pub(crate) fn tls_challenges(&self) -> &TlsChallenges {
        &self.desk.tls
    }

    /// The names with issued certificates.
    pub(crate) fn certified(&self) -> &CertifiedNames {
        &self.desk.certified
    }

    /// Stops ordering: a server that no longer gets all connections cannot prove names.
    pub(crate) fn rest(&self) {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(service) = &*service {
            service.settle(AcmePlan::default());
        }
    }

    /// The inbox for key rollovers of accounts; none while nothing is ordered.
    pub(crate) fn accounts(&self) -> Option<AcmeInbox> {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        service.as_ref().map(|_| self.desk.inbox.clone())
    }

    /// Logs to another file from now on: the old one may have been moved away.
    pub(crate) fn log_to(&self, log: ControlLog) {
        self.desk.state().log = Some(Arc::new(log));
    }

    /// Puts the draft in force: from now on handshakes find its certificates.
    pub(crate) fn commit(&self, draft: IssuedDraft) {
        draft.commit(&mut self.desk.state());
    }

    /// Orders what the configuration in force has: also after [`Self::rest`]. The thread runs as
    /// `account`, so that data of issuers is parsed without privileges.
    pub(crate) fn resume(&self, log: ControlLog, account: Option<&WorkerAccount>) {
        let log = Arc::new(log);
        let mut state = self.desk.state();
        state.log = Some(log.clone());
        let plan = state.active.clone();
        let wanted: HashSet<OrderId> = plan.orders.iter().map(|order| order.id.clone()).collect();
        let demands: HashSet<OrderId> = plan.demands.iter().map(|one| one.id.clone()).collect();
        state.demands.retain(|id, _| demands.contains(id));
        state.slots.retain(|id, known| match &known.demand {
            Some(demand) => demands.contains(demand),
            None => wanted.contains(id),
        });
        let has_one =
            |known: &&IssuedSlot| known.slot.certificate().is_some() && !known.is_borrowed;
        let certified = state.slots.values().filter(has_one).flat_map(|known| &known.names);
        self.desk.certified.replace(certified.map(String::as_str));
        state.staple_all(&self.desk.stapling);
        drop(state);
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        let wants_some = !plan.orders.is_empty() || !plan.demands.is_empty();
        if service.is_none() && wants_some {
            let account = account.cloned();
            match AcmeService::start(self.desk.clone(), self.desk.inbox.clone(), move || {
                give_up_rights(account)
            }) {
                Ok(started) => *service = Some(started),
                Err(error) => {
                    log.write(LogLevel::Alert, &format!("no certificates are ordered: {error}"));
                }
            }
        }
        self.desk.share(&plan);
        if let Some(service) = &*service {
            service.settle(plan);
        }
        self.desk.log_missing(&log);
    }

    /// The state that is shared with other servers.
    pub(crate) fn fleet(&self) -> &AcmeFleet {
        &self.desk.fleet
    }

    /// Takes a certificate of another server for this order; returns whether it is used.
    ///
    /// # Errors
    ///
    /// It cannot be used here, or cannot be stored now.
    pub(crate) fn take_over(
        &self,
        order: &OrderId,
        certificate: &FleetCertificate,
    ) -> Result<bool, KeepFault> {
        // The lock may wait for another process and for the disk; callers of the service do not.
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        let keeper = service.as_ref().map(AcmeService::keeper);
        drop(service);
        let taken = keeper.map(|it| it.take_over(order, &certificate.chain, &certificate.key));
        taken.unwrap_or(Ok(false))
    }

    /// Answers a challenge of another server from now on.
    pub(crate) fn present_for_others(&self, challenge: &Challenge) {
        self.desk.show(challenge);
    }

    /// Stops answering a challenge of another server.
    pub(crate) fn withdraw_for_others(&self, challenge: &Challenge) {
        self.desk.hide(challenge);
    }

    /// The orders in force.
    pub(crate) fn report(&self) -> Vec<AcmeOrderReport> {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        service.as_ref().map(AcmeService::report).unwrap_or_default()
    }

    /// The totals of orders.
    pub(crate) fn figures(&self, now: Now) -> AcmeFigures {
        let (orders, issued) = (self.report(), self.desk.state().issued);
        let (seconds, all) = (now.unix_seconds(), orders.len() as u64);
        let is_valid = |order: &&AcmeOrderReport| order.expires.is_some_and(|end| end > seconds);
        let valid = orders.iter().filter(is_valid).count() as u64;
        let failing = orders.iter().filter(|order| order.last_error.is_some()).count() as u64;
        let revoked = orders.iter().filter(|order| order.revoked.is_some()).count() as u64;
        AcmeFigures {
            issued,
            failed_attempts: orders.iter().map(|order| u64::from(order.failures)).sum(),
            valid,
            missing: all - valid,
            failing,
            revoked,
            next_attempt: orders.iter().map(|order| order.next_attempt).min().unwrap_or(0),
        }
    }

    /// The expiry of certificates in use, in seconds since 1970, by their names in metrics.
    pub(crate) fn ends(&self, config: &Config) -> Vec<(String, i64)> {
        let Some(http) = &config.http else { return Vec::new() };
        let state = self.desk.state();
        let ids = (0..http.acme.certificates.len()).map(|at| IssuedId(at as u32));
        let end = |id: IssuedId| state.slots.get(&plan::id_of(&http.acme, id))?.end;
        ids.filter_map(|id| Some((http.acme.label(id), end(id)?))).collect()
    }
}

impl AcmeState {
    /// Lets handshakes for the name of an order on demand find its slot.
    fn add_demanded(&mut self, demand: &OrderId, order: &AcmeOrder, slot: &CertSlot) {
        let certificates = self.demands.entry(demand.clone()).or_default();
        order.names.iter().for_each(|name| certificates.add(name, slot.clone()));
    }

    /// Puts a certificate into the slot of its order, where servers that staple find its form.
    fn fill(&self, stapling: &IssuedStapling, id: &OrderId, made: LoadedCertificate) {
        let Some(known) = self.slots.get(id) else { return };
        let words = known.demand.as_ref().unwrap_or(id);
        let rules = self.rules.get(words).map(Vec::as_slice).unwrap_or_default();
        let stapled = stapling.join(id, words, rules, &made);
        known.slot.set(made, stapled);
    }

    /// Staples the certificates in use as the configuration in force says.
    fn staple_all(&self, stapling: &IssuedStapling) {
        stapling.retain(|id| self.slots.contains_key(id));
        for (id, known) in &self.slots {
            if let Some(certificate) = known.slot.certificate() {
                self.fill(stapling, id, certificate);
            }
        }
    }
}

/// The certificates in use, by name.
fn by_name(slots: &HashMap<OrderId, IssuedSlot>) -> HashMap<String, LoadedCertificate> {
    // In order of their ids, so that among several the choice is stable.
    let ordered: BTreeMap<_, _> = slots.iter().collect();
    let mut found = HashMap::new();
    for (_, known) in ordered {
        let Some(certificate) = known.slot.certificate() else { continue };
        for name in &known.names {
            found.entry(name.clone()).or_insert_with(|| certificate.clone());
        }
    }
    found
}

impl AcmeDesk {
    fn state(&self) -> MutexGuard<'_, AcmeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs which handshakes fail for lack of a certificate.
    fn log_missing(&self, log: &ControlLog) {
        let state = self.state();
        let is_missing = |known: &&IssuedSlot| known.slot.certificate().is_none();
        let missing = state.slots.values().filter(|known| known.demand.is_none());
        let missing = missing.filter(is_missing);
        let mut names: Vec<String> = missing.map(|known| known.names.join(" ")).collect();
        drop(state);
        if names.is_empty() {
            return;
        }
        names.sort();
        let count = names.len();
        names.truncate(NAMES_SHOWN);
        let more = if count > NAMES_SHOWN { ", and others" } else { "" };
        let text = format!(
            "handshakes are refused until certificates come, {count} in all: {}{more}",
            names.join(", ")
        );
        log.write(LogLevel::Error, &text);
    }
}

impl AcmeDesk {
    fn show(&self, challenge: &Challenge) {
        match challenge {
            Challenge::Http01 { name, token, key_authorization } => {
                self.http.present(name, token, key_authorization);
            }
            Challenge::TlsAlpn01 { name, digest } => {
                if let Err(why) = self.tls.present(name, digest) {
                    let text = format!("no certificate can be made to prove \"{name}\": {why}");
                    self.log(AcmeLogLevel::Error, &text);
                }
            }
        }
    }

    fn hide(&self, challenge: &Challenge) {
        match challenge {
            Challenge::Http01 { name, token, key_authorization } => {
                self.http.withdraw(name, token, key_authorization);
            }
            Challenge::TlsAlpn01 { name, digest } => self.tls.withdraw(name, digest),
        }
    }
}

impl AcmeHost for AcmeDesk {
    fn present(&self, challenge: &Challenge) {
        self.show(challenge);
        self.fleet.present(challenge);
    }

    fn withdraw(&self, challenge: &Challenge) {
        self.hide(challenge);
        self.fleet.withdraw(challenge);
    }

    fn claim(&self, order: &OrderId) -> OrderClaim {
        self.fleet.claim(order)
    }

    fn unclaim(&self, order: &OrderId) {
        self.fleet.unclaim(order);
    }

    fn account(&self, name: &AccountName) -> Option<Vec<u8>> {
        self.fleet.account(name)
    }

    fn record_account(&self, name: &AccountName, now: &[u8], before: Option<&[u8]>) {
        self.fleet.record_account(name, now, before);
    }

    fn forget_account(&self, name: &AccountName, credentials: &[u8]) {
        self.fleet.forget_account(name, credentials);
    }

    fn spreading(&self) -> Duration {
        self.fleet.spreading()
    }

    fn install(&self, order: &OrderId, chain: &[u8], key: &[u8]) -> Result<(), String> {
        let made = LoadedCertificate::from_pem(chain, key, &[]).map_err(|why| why.to_string())?;
        let end = made.end().map(|(end, _)| end);
        let mut state = self.state();
        // An order that is no longer configured has no use for it.
        if let Some(known) = state.slots.get_mut(order) {
            (known.end, known.is_borrowed) = (end, false);
            self.fleet.record_certificate(order, chain, key);
            let is_in_use = |now: LoadedCertificate| now.leaf() == made.leaf();
            self.certified.add(known.names.iter().map(String::as_str));
            if !known.slot.certificate().is_some_and(is_in_use) {
                state.fill(&self.stapling, order, made);
                state.issued += 1;
            }
        }
        Ok(())
    }

    fn demanded(&self, demand: &OrderId, order: &AcmeOrder) {
        let mut state = self.state();
        let own = state.slots.entry(order.id.clone()).or_default();
        own.names.clone_from(&order.names);
        own.demand = Some(demand.clone());
        let slot = own.slot.clone();
        state.add_demanded(demand, order, &slot);
        if let Some(account) = state.shared.get(demand) {
            self.fleet.want_too(&order.id, account.clone());
        }
    }

    fn forgotten(&self, demand: &OrderId, order: &AcmeOrder) {
        let mut state = self.state();
        state.slots.remove(&order.id);
        self.stapling.retain(|id| *id != order.id);
        self.fleet.want_no_more(&order.id);
        if let Some(certificates) = state.demands.get(demand) {
            order.names.iter().for_each(|name| certificates.remove(name));
        }
    }

    fn log(&self, level: AcmeLogLevel, text: &str) {
        let level = match level {
            AcmeLogLevel::Alert => LogLevel::Alert,
            AcmeLogLevel::Error => LogLevel::Error,
            AcmeLogLevel::Warn => LogLevel::Warn,
            AcmeLogLevel::Notice => LogLevel::Notice,
            AcmeLogLevel::Info => LogLevel::Info,
        };
        let log = self.state().log.clone();
        if let Some(log) = log {
            log.write(level, text);
        }
    }
}

/// Creates the directories of ACME state for that account.
///
/// # Errors
///
/// In nginx's words: a directory cannot be created.
pub(crate) fn make_directories(config: &Config, owner: Option<(u32, u32)>) -> Result<(), String> {
    let Some(http) = &config.http else { return Ok(()) };
    let make = |path: &Path, mode| {
        bolide_io::file::make_owned_directory(path, mode, owner).map_err(|(call, error)| {
            let why = bolide_base::errno::describe(&error);
            format!("{call} \"{}\" failed ({why})", path.display())
        })
    };
    for issuer in &http.acme.issuers {
        let Some(path) = &issuer.state_path else { continue };
        if let Some(parent) = issuer.state_parent.as_ref().filter(|parent| !parent.exists()) {
            make(parent, 0o750)?;
        }
        make(path, 0o700)?;
    }
    Ok(())
}
