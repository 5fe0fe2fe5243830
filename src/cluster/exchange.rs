//! The second thread of a cluster: shares everything besides purges and pages, such as the keys of
//! TLS tickets.
//!
//! It has connections of its own, so that a failure does not stop purges. Workers never wait for
//! it: it stores its results where they look. Without Valkey each server continues with what it
//! has. Easiest to break: the results of a thread are removed when it ends, and its successor waits
//! for that. The keys of tickets are not: a successor inherits them, so that a reload costs no
//! session.

mod certificates;
mod keys;
mod limits;
mod log;
mod setup;
#[cfg(test)]
mod simulated;
mod status;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bolide_conf::model::{Config, LogLevel};
use bolide_engine::Zones;
use bolide_valkey::{Connector, Line};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::clock::NodeClock;
use crate::account::{WorkerAccount, give_up_rights};
use crate::acme::{FleetState, IssuedCertificates};
use crate::control_log::ControlLog;
use crate::tls_setup::TicketRings;
use certificates::{CertificateShare, ShareMemory};
use keys::TicketKeys;
use limits::{LimitLife, LimitShare, ReportDesk};
use log::{ExchangeLog, Topic};
use setup::ExchangeSetup;
pub(crate) use setup::common_secret;
#[cfg(test)]
pub(super) use simulated::SimulatedExchange;
pub(crate) use status::{ExchangeBoard, ExchangeStatus};

/// The pause before the next attempt to connect: at first, doubled each time, and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// A connection that lasts this long resets the pause.
const LASTING: Duration = Duration::from_secs(5);

/// The parts of the server that use shared state.
#[derive(Clone, Debug)]
pub(crate) struct ExchangeParts {
    /// The ticket keys.
    pub(crate) rings: TicketRings,
    /// The ACME certificates.
    pub(crate) issued: IssuedCertificates,
    /// The zones of limits, some of which are shared.
    pub(crate) zones: Zones,
}

/// The thread, if anything is shared.
#[derive(Debug)]
pub(crate) struct ExchangeThread {
    parts: ExchangeParts,
    log: Arc<ExchangeLog>,
    limit_life: Arc<LimitLife>,
    board: ExchangeBoard,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: Option<Running>,
    /// Threads that were told to end. The next one waits for them, however many configurations
    /// without one are between.
    leaving: Vec<JoinHandle<()>>,
}

/// What a draft configuration shares, if anything.
#[derive(Debug, Default)]
pub(crate) struct ExchangeDraft(Option<Arc<ExchangeSetup>>);

impl ExchangeDraft {
    /// Whether it shares anything.
    pub(crate) const fn shares(&self) -> bool {
        self.0.is_some()
    }
}

#[derive(Debug)]
struct Running {
    setup: Arc<ExchangeSetup>,
    end: Arc<EndMark>,
    thread: JoinHandle<()>,
}

/// Tells a thread to end.
#[derive(Debug, Default)]
struct EndMark {
    is_requested: AtomicBool,
    /// Whether a successor shares the same secrets.
    has_heir: AtomicBool,
    bell: Notify,
}

impl EndMark {
    fn request(&self, has_heir: bool) {
        self.has_heir.store(has_heir, Ordering::Release);
        self.is_requested.store(true, Ordering::Release);
        self.bell.notify_one();
    }

    fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::Acquire)
    }
}

impl ExchangeThread {
    pub(crate) fn new(parts: ExchangeParts) -> Self {
        let limit_life = Arc::new(LimitLife::new());
        let (log, board) = (Arc::default(), ExchangeBoard::default());
        Self { parts, log, limit_life, board, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what a draft shares by this thread, and its files.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or other accounts may read it.
    pub(crate) fn load(&self, config: &Config) -> Result<ExchangeDraft, String> {
        let next = config.http.as_ref().map(ExchangeSetup::read).transpose()?.flatten();
        Ok(ExchangeDraft(next.map(Arc::new)))
    }

    /// Logs to another file from now on: the old one may have been moved away.
    pub(crate) fn log_to(&self, log: ControlLog) {
        self.log.set_target(log);
    }

    /// Puts the draft in force.
    pub(crate) fn settle(
        &self,
        ExchangeDraft(next): ExchangeDraft,
        log: ControlLog,
        account: Option<&WorkerAccount>,
    ) {
        self.log_to(log);
        let mut state = self.state();
        let is_same = match (&next, &state.running) {
            (Some(next), Some(running)) => {
                *running.setup == **next && !running.thread.is_finished()
            }
            (None, None) => true,
            _ => false,
        };
        if is_same {
            return;
        }
        if let Some(running) = state.running.take() {
            running.end.request(next.as_ref().is_some_and(|next| next.inherits(&running.setup)));
            state.leaving.push(running.thread);
        }
        state.leaving.retain(|thread| !thread.is_finished());
        let board = self.board.begin(next.as_ref().map(|setup| setup.status()));
        let Some(setup) = next else { return };
        let before = std::mem::take(&mut state.leaving);
        if setup.vault.is_some() {
            // Nothing is ordered until it is known whether other servers do.
            self.parts.issued.fleet().turn(FleetState::Joining);
        }
        let end = Arc::new(EndMark::default());
        let exchange = Exchange {
            setup: setup.clone(),
            parts: self.parts.clone(),
            log: self.log.clone(),
            limit_life: self.limit_life.clone(),
            board,
            clock: NodeClock::default(),
            end: end.clone(),
        };
        let account = account.cloned();
        let body = move || {
            before.into_iter().for_each(|thread| drop(thread.join()));
            if exchange.end.is_requested() {
                return exchange.leave();
            }
            exchange.run(account);
        };
        match std::thread::Builder::new().name("exchange".to_owned()).spawn(body) {
            Ok(thread) => state.running = Some(Running { setup, end, thread }),
            Err(error) => {
                let text = format!("cluster: cannot start a thread: {error}");
                self.log.write(LogLevel::Alert, &text);
                self.parts.rings.clear();
            }
        }
    }

    /// The status for `bolide cluster status`.
    pub(crate) fn board(&self) -> ExchangeBoard {
        self.board.clone()
    }

    /// The process ends.
    pub(crate) fn end(&self) {
        if let Some(running) = self.state().running.take() {
            running.end.request(false);
        }
    }
}

/// The running thread.
struct Exchange {
    setup: Arc<ExchangeSetup>,
    parts: ExchangeParts,
    log: Arc<ExchangeLog>,
    limit_life: Arc<LimitLife>,
    board: ExchangeBoard,
    clock: NodeClock,
    end: Arc<EndMark>,
}

impl Exchange {
    fn run(self, account: Option<WorkerAccount>) {
        if self.setup.vault.is_some() {
            self.parts.issued.fleet().turn(FleetState::Joining);
        }
        let made = give_up_rights(account).and_then(|()| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            Ok((runtime, Connector::new(self.setup.settings.clone())?))
        });
        match made {
            Ok((runtime, connector)) => runtime.block_on(self.live(&connector)),
            Err(why) => self.log.write(LogLevel::Emerg, &format!("cluster: {why}")),
        }
        self.leave();
    }

    /// Removes the results of the thread.
    fn leave(&self) {
        if !self.end.has_heir.load(Ordering::Acquire) {
            // Without a thread, no key is replaced when its time is over.
            self.parts.rings.clear();
        }
        self.parts.issued.fleet().turn(FleetState::Off);
    }

    async fn live(&self, connector: &Connector) {
        let mut failures = 0;
        // Survives connections, so that known keys are not requested again.
        let memory = Arc::new(ShareMemory::new());
        let keys = self.setup.vault.as_ref().map(|vault| {
            let (rings, log) = (self.parts.rings.clone(), self.log.clone());
            let (board, clock) = (self.board.clone(), self.clock.clone());
            let keys = TicketKeys::new(vault.clone(), rings, log, board, clock, memory.clone());
            Arc::new(keys)
        });
        while !self.end.is_requested() {
            let start = tokio::time::Instant::now();
            match connector.open().await {
                Ok(lines) => {
                    let place = lines.1.place().to_string();
                    self.board.update(|status| {
                        (status.connected, status.last_fault) = (Some(place), None);
                    });
                    self.work(lines, keys.as_ref(), &memory).await;
                    self.board.update(|status| status.connected = None);
                }
                Err(fault) => {
                    self.board.record_fault(&fault.text);
                    self.parts.issued.fleet().turn(FleetState::Alone);
                    let text = format!(
                        "cluster: nothing but what is known here is used of what servers share: \
                         {fault}"
                    );
                    self.log.write_limited(Topic::Unreachable, LogLevel::Error, &text);
                }
            }
            if start.elapsed() >= LASTING {
                failures = 0;
            }
            let pause = RETRY.0.saturating_mul(1 << failures.min(8)).min(RETRY.1);
            failures += 1;
            let _elapsed = tokio::time::timeout(pause, self.end.bell.notified()).await;
        }
    }

    /// Shares on a pair of connections, until one of them fails or the thread is told to end.
    async fn work(
        &self,
        (other, line): (Line, Line),
        keys: Option<&Arc<TicketKeys>>,
        memory: &Arc<ShareMemory>,
    ) {
        let mut tasks = JoinSet::new();
        let end = self.end.clone();
        tasks.spawn(async move {
            while !end.is_requested() {
                end.bell.notified().await;
            }
        });
        if let Some(keys) = keys.cloned() {
            let own = line.clone();
            tasks.spawn(async move { keys.share(&own).await });
        }
        if let Some(vault) = &self.setup.vault {
            let share = CertificateShare {
                line: line.clone(),
                vault: vault.clone(),
                issued: self.parts.issued.clone(),
                node: self.setup.node.clone(),
                memory: memory.clone(),
                board: self.board.clone(),
                log: self.log.clone(),
            };
            tasks.spawn(share.share());
        }
        if self.setup.shares_limits {
            let desk = ReportDesk {
                vault: self.setup.vault.clone(),
                cluster: self.setup.settings.namespace.as_bytes().into(),
                node: self.setup.node.as_bytes().into(),
                life: self.limit_life.clone(),
            };
            let (zones, log) = (self.parts.zones.clone(), self.log.clone());
            let board = self.board.clone();
            let share = LimitShare { line: other.clone(), zones, desk, log, board };
            tasks.spawn(share.share());
        }
        tasks.spawn(async move {
            while line.is_open() && other.is_open() {
                sleep(Duration::from_secs(1)).await;
            }
        });
        // If one task ends, all end.
        let _first = tasks.join_next().await;
    }
}
