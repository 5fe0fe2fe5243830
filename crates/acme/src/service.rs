//! The ACME thread, and its handle.

mod keeper;
mod report;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::Notify;

use crate::certificate::{self, BUNDLE_MAX, ChainFacts};
use crate::demand::{is_demanded_name, parse_names};
use crate::engine::Engine;
use crate::host::{AcmeHost, AcmeLogLevel};
use crate::inbox::AcmeInbox;
use crate::local;
use crate::plan::{AcmeDemand, AcmeIssuer, AcmeOrder, AcmePlan, OrderId};
use crate::schedule::{AcmeNow, Validity};
use crate::state::{AcmeStore, file_stem};
use crate::tls::TlsConnect;
use crate::transport::{AcmeConnect, AcmeTransport, CrashHook};
pub use keeper::AcmeKeeper;
pub use report::{AcmeOrderReport, KeptCertificate};

/// LIMIT: bytes of a file of names.
const NAMES_MAX: usize = 4 << 20;
/// The interval of checks of files and clocks.
const TICK: Duration = Duration::from_secs(10);

/// Reads the stored certificate of an order, if chain and key match, and have all names and the
/// kind of key of the order. An expired one is returned as well: it is better than none.
#[must_use]
pub fn kept(plan: &AcmePlan, order: &AcmeOrder) -> Option<KeptCertificate> {
    let issuer = plan.issuers.get(*order.issuers.first()?)?;
    let store = AcmeStore::new(issuer.state_path.as_deref());
    read_kept(&store, order).ok().flatten().map(|(kept, _)| kept)
}

/// The orders for on-demand names that were allowed in earlier processes.
#[must_use]
pub fn demanded(plan: &AcmePlan, demand: &AcmeDemand) -> Vec<AcmeOrder> {
    let first = demand.issuers.first().and_then(|at| plan.issuers.get(*at));
    let store = first.map(|issuer| AcmeStore::new(issuer.state_path.as_deref()));
    let names = store.and_then(|store| read_names(&store, demand).ok()).unwrap_or_default();
    names.iter().map(|name| order_of(demand, name)).collect()
}

/// The order for one of these names.
pub(crate) fn order_of(demand: &AcmeDemand, name: &str) -> AcmeOrder {
    AcmeOrder {
        id: OrderId(format!("{} {name}", demand.id.0)),
        issuers: demand.issuers.clone(),
        names: vec![name.to_owned()],
        key: demand.key,
    }
}

/// The order with this id: a configured one, or one for an on-demand name.
fn order_with(plan: &AcmePlan, id: &OrderId) -> Option<AcmeOrder> {
    if let Some(written) = plan.orders.iter().find(|known| known.id == *id) {
        return Some(written.clone());
    }
    plan.demands.iter().find_map(|demand| {
        let name = id.0.strip_prefix(&*demand.id.0)?.strip_prefix(' ')?;
        is_demanded_name(name).then(|| order_of(demand, name))
    })
}

/// The file of the names that a directive has orders for.
pub(crate) fn names_file(demand: &OrderId) -> String {
    format!("{}.names", file_stem(&demand.0))
}

pub(crate) fn read_names(store: &AcmeStore, demand: &AcmeDemand) -> Result<Vec<String>, String> {
    let name = names_file(&demand.id);
    let Some(content) = store.read(&name, NAMES_MAX)? else { return Ok(Vec::new()) };
    let text = String::from_utf8(content).ok();
    let names = text.and_then(|text| parse_names(&text, demand.names_max));
    names.ok_or_else(|| format!("{} is damaged", store.shown(&name)))
}

/// Creates the state directories of a plan with mode 0700 and changes their owner to `owner`, the
/// account of the thread. Called as root, before privileges are dropped.
///
/// # Errors
///
/// One cannot be created, or others can write to it.
pub fn prepare_directories(plan: &AcmePlan, owner: Option<(u32, u32)>) -> Result<(), String> {
    plan.issuers
        .iter()
        .try_for_each(|issuer| AcmeStore::new(issuer.state_path.as_deref()).prepare(owner))
}

/// Why a stored certificate cannot be used.
#[derive(Debug)]
pub(crate) enum KeptFault {
    /// Its file cannot be read now; it may be valid.
    Unreadable(String),
    /// It is damaged, or does not match the order.
    Unfit(String),
}

/// The stored certificate of an order, if there is one.
pub(crate) fn read_kept(
    store: &AcmeStore,
    order: &AcmeOrder,
) -> Result<Option<(KeptCertificate, ChainFacts)>, KeptFault> {
    let name = format!("{}.pem", file_stem(&order.id.0));
    let content = store.read(&name, BUNDLE_MAX).map_err(KeptFault::Unreadable)?;
    let Some(content) = content else { return Ok(None) };
    let unfit = |why: &str| KeptFault::Unfit(format!("\"{name}\": {why}"));
    let (chain, key) =
        certificate::unbundle(&content).ok_or_else(|| unfit("no chain with one key"))?;
    let facts = certificate::check(&chain, &key, order.key, &order.names);
    let facts = facts.map_err(|why| unfit(&why))?;
    Ok(Some((KeptCertificate { chain, key: key.into_bytes() }, facts)))
}

/// Parts that tests replace.
#[derive(Clone)]
pub struct AcmeSetting {
    /// Both clocks.
    pub clock: Arc<dyn Fn() -> AcmeNow + Send + Sync>,
    /// How to connect to issuers; `None`: by TCP and TLS as configured.
    pub connect: Option<Arc<dyn AcmeConnect>>,
    /// The step at which the process crashes, in tests.
    pub crash_hook: Option<CrashHook>,
    /// The interval of checks of files and clocks.
    pub tick: Duration,
    /// Requests of other threads.
    pub inbox: AcmeInbox,
}

impl fmt::Debug for AcmeSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcmeSetting").field("tick", &self.tick).finish_non_exhaustive()
    }
}

impl Default for AcmeSetting {
    fn default() -> Self {
        let clock = || {
            let now = bolide_io::process::now();
            AcmeNow { unix: now.unix_seconds(), mono: now.mono.as_nanos() / 1_000_000_000 }
        };
        Self {
            clock: Arc::new(clock),
            connect: None,
            crash_hook: None,
            tick: TICK,
            inbox: AcmeInbox::default(),
        }
    }
}

/// The key of an issuer's store: its name and directory.
type StoreKey = (String, Option<PathBuf>);

/// State shared by the thread and its handle.
pub(crate) struct Shared {
    pub(crate) host: Arc<dyn AcmeHost>,
    pub(crate) setting: AcmeSetting,
    pub(crate) bell: Arc<Notify>,
    wanted: Mutex<Wanted>,
    reports: Mutex<Vec<AcmeOrderReport>>,
    /// Stores in memory have to survive a new plan.
    stores: Mutex<BTreeMap<StoreKey, Arc<AcmeStore>>>,
    /// Held while a certificate is replaced.
    replacing: Mutex<()>,
}

/// Why a certificate does not replace the stored one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepFault {
    /// It cannot be used.
    Unusable(String),
    /// It cannot be stored now: the directory is unusable, or another process holds its lock too
    /// long.
    Unkept(String),
}

impl KeepFault {
    /// The text for a log.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Unusable(why) | Self::Unkept(why) => why,
        }
    }
}

/// The condition under which a certificate replaces the stored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeepRule {
    /// None.
    Always,
    /// It is newer, or the stored one has expired or is of an authority of this server.
    IfNewer,
}

#[derive(Default)]
struct Wanted {
    plan: Arc<AcmePlan>,
    version: u64,
    ends: bool,
}

impl Shared {
    pub(crate) fn new(host: Arc<dyn AcmeHost>, setting: AcmeSetting) -> Self {
        Self {
            host,
            bell: setting.inbox.bell(),
            setting,
            wanted: Mutex::default(),
            reports: Mutex::default(),
            stores: Mutex::default(),
            replacing: Mutex::default(),
        }
    }

    /// The current plan if it has another version; the outer `None`: the thread has to end.
    pub(crate) fn newer(&self, version: u64) -> Option<Option<(Arc<AcmePlan>, u64)>> {
        let wanted = locked(&self.wanted);
        if wanted.ends {
            return None;
        }
        Some((wanted.version != version).then(|| (wanted.plan.clone(), wanted.version)))
    }

    pub(crate) fn store(&self, issuer: &AcmeIssuer) -> Arc<AcmeStore> {
        let key = (issuer.name.clone(), issuer.state_path.clone());
        let mut stores = locked(&self.stores);
        let new = || {
            let store = AcmeStore::new(issuer.state_path.as_deref());
            store.sweep((self.setting.clock)().unix);
            Arc::new(store)
        };
        stores.entry(key).or_insert_with(new).clone()
    }

    /// A transport to an issuer, not connected yet.
    pub(crate) fn transport(&self, issuer: &AcmeIssuer) -> Result<AcmeTransport, String> {
        let connect: Arc<dyn AcmeConnect> = match &self.setting.connect {
            Some(connect) => connect.clone(),
            None => Arc::new(TlsConnect::new(issuer)?),
        };
        Ok(AcmeTransport::new(connect, self.setting.crash_hook.clone(), self.unix_clock()))
    }

    /// Seconds since 1970.
    pub(crate) fn unix_clock(&self) -> Arc<dyn Fn() -> u64 + Send + Sync> {
        let both = self.setting.clock.clone();
        Arc::new(move || both().unix)
    }

    /// The only place that installs a certificate and stores it in its file: no other thread or
    /// process replaces it meanwhile, and an unusable one replaces nothing. Returns whether it is
    /// stored.
    ///
    /// # Errors
    ///
    /// It cannot be used, or not be written.
    pub(crate) fn keep_certificate(
        &self,
        store: &AcmeStore,
        order: &AcmeOrder,
        (bundle, facts): (&[u8], &ChainFacts),
        rule: KeepRule,
    ) -> Result<bool, KeepFault> {
        let parted = certificate::unbundle(bundle);
        let (chain, key) = parted.ok_or_else(|| KeepFault::Unusable("no PEM".to_owned()))?;
        // The wait for other processes must not block threads of this one.
        let mut processes = store.lock_replacing().map_err(KeepFault::Unkept);
        let _threads = self.hold_kept();
        if rule == KeepRule::IfNewer {
            processes = Ok(processes?);
            let known = read_kept(store, order).ok().flatten();
            if let Some(known) = known.filter(|known| !self.gives_way(known, facts.validity)) {
                if certificate::leaf(&known.0.chain) == certificate::leaf(&chain) {
                    // Another process may have written it, or the server could not use it then.
                    let installed = self.host.install(&order.id, &known.0.chain, &known.0.key);
                    installed.map_err(KeepFault::Unusable)?;
                }
                return Ok(false);
            }
        }
        let installed = self.host.install(&order.id, &chain, key.as_bytes());
        installed.map_err(KeepFault::Unusable)?;
        // If it cannot be written, it is in use all the same.
        let _processes = processes?;
        let name = format!("{}.pem", file_stem(&order.id.0));
        store.write(&name, bundle).map_err(KeepFault::Unkept)?;
        Ok(true)
    }

    /// While it is held, no thread of this process replaces a certificate: one that is read from
    /// the file and installed meanwhile is not older than the one in use.
    pub(crate) fn hold_kept(&self) -> MutexGuard<'_, ()> {
        locked(&self.replacing)
    }

    /// Whether what is kept gives way to another server's certificate.
    fn gives_way(&self, (kept, known): &(KeptCertificate, ChainFacts), to: Validity) -> bool {
        let known = known.validity;
        match known.until > (self.setting.clock)().unix {
            // It helps out until one comes that others have signed.
            true if local::is_local(&kept.chain) => known.until < to.until,
            true => known < to,
            false => true,
        }
    }

    pub(crate) fn publish(&self, reports: Vec<AcmeOrderReport>) {
        *locked(&self.reports) = reports;
    }

    fn settle(&self, plan: AcmePlan) {
        let reports = plan.orders.iter().filter_map(|order| self.install(&plan, order));
        *locked(&self.reports) = reports.collect();
        let mut wanted = locked(&self.wanted);
        wanted.plan = Arc::new(plan);
        wanted.version += 1;
        drop(wanted);
        self.bell.notify_one();
    }

    /// Installs what is kept of an order.
    fn install(&self, plan: &AcmePlan, order: &AcmeOrder) -> Option<AcmeOrderReport> {
        let issuer = plan.issuers.get(*order.issuers.first()?)?;
        let store = self.store(issuer);
        let _kept = self.hold_kept();
        let found = read_kept(&store, order).ok().flatten();
        if let Some((kept, _)) = &found
            && let Err(why) = self.host.install(&order.id, &kept.chain, &kept.key)
        {
            self.host.log(AcmeLogLevel::Error, &format!("acme: \"{}\": {why}", order.id.0));
        }
        Some(AcmeOrderReport {
            id: order.id.clone(),
            names: order.names.clone(),
            issuer: issuer.name.clone(),
            expires: found.map(|(_, facts)| facts.validity.until),
            next_attempt: (self.setting.clock)().unix,
            is_ordering: false,
            last_error: None,
            failures: 0,
            revoked: None,
            root: local::root(issuer),
        })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread of this crate. Dropping it ends the thread where it stands, as a crash would.
pub struct AcmeService {
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

impl fmt::Debug for AcmeService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcmeService").finish_non_exhaustive()
    }
}

impl AcmeService {
    /// Starts the thread. `prepare` runs first in it (gives up root's rights); if it fails, the
    /// reason is logged and nothing is ordered.
    ///
    /// # Errors
    ///
    /// The system has no thread.
    pub fn start(
        host: Arc<dyn AcmeHost>,
        inbox: AcmeInbox,
        prepare: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> io::Result<Self> {
        Self::start_with(host, prepare, AcmeSetting { inbox, ..AcmeSetting::default() })
    }

    /// The same with another clock and network.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub fn start_with(
        host: Arc<dyn AcmeHost>,
        prepare: impl FnOnce() -> Result<(), String> + Send + 'static,
        setting: AcmeSetting,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(host, setting));
        let own = shared.clone();
        let body = move || {
            let runtime = || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.map_err(|error| error.to_string())
            };
            match prepare().and_then(|()| runtime()) {
                Ok(runtime) => {
                    runtime.block_on(Engine::new(own).run());
                    // A look-up of a name may take long, and nothing waits for it.
                    runtime.shutdown_background();
                }
                Err(why) => {
                    let text = format!("acme: no certificate will be ordered: {why}");
                    own.host.log(AcmeLogLevel::Error, &text);
                }
            }
        };
        let thread = thread::Builder::new().name("acme".to_owned()).spawn(body)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The same without a thread: the future does what the thread would do.
    pub fn detached(
        host: Arc<dyn AcmeHost>,
        setting: AcmeSetting,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let shared = Arc::new(Shared::new(host, setting));
        let engine = Engine::new(shared.clone());
        (Self { shared, thread: None }, engine.run())
    }

    /// A new configuration is in force: orders that it no longer has end, new ones begin, and
    /// certificates that the state directories hold are installed before this returns. A server
    /// that no longer gets connections settles an empty plan.
    pub fn settle(&self, plan: AcmePlan) {
        self.shared.settle(plan);
    }

    /// Who keeps certificates of other servers; it waits for nothing of this handle.
    #[must_use]
    pub fn keeper(&self) -> AcmeKeeper {
        AcmeKeeper::new(self.shared.clone())
    }

    /// One report for each order of the plan in force, in its order.
    #[must_use]
    pub fn report(&self) -> Vec<AcmeOrderReport> {
        locked(&self.shared.reports).clone()
    }
}

impl Drop for AcmeService {
    fn drop(&mut self) {
        locked(&self.shared.wanted).ends = true;
        self.shared.bell.notify_one();
        if let Some(thread) = self.thread.take() {
            // Its panic was logged where it happened.
            let _panic = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
