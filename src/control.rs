//! The control thread: signals, reloads, upgrades, the end.

mod cache_zones;
mod change_watch;
mod console;
mod crew;
mod figures;
mod leaving;
mod reading_aside;
mod reload;
mod reload_watch;
mod standing;
mod start_only;
mod taking_back;
mod upgrading;
mod watch;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bolide_conf::Outline;
use bolide_conf::model::{Config, LogLevel};
use bolide_io::Io as _;
use bolide_io::epoll::Epoll;
use bolide_io::signal::{Signal, Signals, Taken};
use bolide_quic::Admits;
use bolide_worker::{ConsoleDesk, Mail};

use crate::account::WorkerAccount;
use crate::admin::{self, AdminClient, CommandThreads};
use crate::assemble::{self, PartDrafts, SharedParts};
use crate::cluster::ClusterDraft;
use crate::control_log::ControlLog;
use crate::disk_writer_thread::{self, DiskWriterThread};
use crate::invocation::Invocation;
use crate::php::{self, PhpDesk, PhpPools};
use crate::pid::PidFile;
use crate::retired::Retired;
use crate::service_manager::ServiceManager;
use crate::sockets::{OpenSocket, SocketNames};
use crate::start;
use crate::tls_setup::{CertificateEnds, ReadCertificates};
use change_watch::ChangeWatch;
use crew::{Crew, CrewOrder, Orders};
use leaving::Leaving;
pub(crate) use reload_watch::is_worse;
use start_only::StartOnly;
use taking_back::ReloadWatching;

/// How often the control thread wakes from waiting for signals.
const TICK: Duration = Duration::from_millis(500);

/// The shortest such wait: a deadline that a mistake left in the past does not cost a core.
const TICK_MIN: Duration = Duration::from_millis(5);

/// How long workers may take to stop; the others end with the process.
const STOP_MAX: Duration = Duration::from_millis(bolide_base::limits::STOP_MS);

/// Exit status that requests a restart (EX_SOFTWARE of sysexits.h).
const RESTART_STATUS: i32 = 70;

/// Whether the server went to the background. In the foreground a terminal resize sends WINCH,
/// which must not stop it from accepting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    Fore,
    Back,
}

/// The event that ends the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Serving,
    Ending,
}

/// Everything the control thread holds while the server runs.
#[derive(Debug)]
pub(crate) struct ControlThread<'a> {
    invocation: &'a Invocation,
    shared: SharedParts,
    open: OpenSocket,
    config: Arc<Config>,
    outline: Outline,
    generation: Arc<bolide_worker::Generation>,
    certificate_ends: CertificateEnds,
    /// The certificates that were read for the configuration in force, if reloads are watched.
    certificates: ReadCertificates,
    reload_watch: ReloadWatching,
    crew: Crew,
    life: Life,
    /// How long to wait for workers that were told to stop.
    stops_by: Option<bolide_base::Instant>,
    ground: Ground,
    /// `None` when the server runs without a configuration file, so that a reload has none to read.
    pid: Option<PidFile>,
    successor: Option<Child>,
    log: ControlLog,
    pools: PhpPools,
    command_threads: CommandThreads,
    /// The account that workers run as.
    account: Option<WorkerAccount>,
    start_only: StartOnly,
    door: Epoll,
    signals: Signals,
    /// Signals to handle once the new configuration is read.
    deferred: VecDeque<Taken>,
    /// Whether a new configuration is being read.
    is_reading: bool,
    disk_writer: DiskWriterThread,
    console: ConsoleDesk,
    /// Configurations no longer in force.
    retired: Retired,
    /// When the metrics of the process were last updated.
    figures_refreshed: bolide_base::Instant,
    manager: ServiceManager,
    changes: ChangeWatch,
    leaving_word: Leaving,
}

/// The parts that the control thread owns.
pub(crate) struct ControlParts<'a> {
    pub(crate) invocation: &'a Invocation,
    pub(crate) shared: SharedParts,
    pub(crate) open: OpenSocket,
    pub(crate) config: Arc<Config>,
    pub(crate) outline: Outline,
    pub(crate) generation: Arc<bolide_worker::Generation>,
    pub(crate) certificate_ends: CertificateEnds,
    pub(crate) certificates: ReadCertificates,
    pub(crate) ground: Ground,
    pub(crate) log: ControlLog,
    pub(crate) pools: PhpPools,
    pub(crate) account: Option<WorkerAccount>,
    pub(crate) manager: ServiceManager,
    /// The files that the configuration in force was read from.
    pub(crate) files: Vec<PathBuf>,
}

impl<'a> ControlThread<'a> {
    /// The control thread before it runs anything.
    ///
    /// # Errors
    ///
    /// No descriptor is available.
    pub(crate) fn new(parts: ControlParts<'a>) -> std::io::Result<Self> {
        let (mut door, signals) = (Epoll::new()?, Signals::open()?);
        door.watch(signals.fd(), php::SIGNALS, bolide_io::Interest::Level);
        let console = ConsoleDesk::new()?;
        door.watch(console.bell().fd(), console::ORDERS, bolide_io::Interest::Level);
        let mut thread = Self {
            invocation: parts.invocation,
            start_only: StartOnly::of(&parts.config.main),
            open: parts.open,
            config: parts.config,
            outline: parts.outline,
            generation: parts.generation,
            certificate_ends: parts.certificate_ends,
            certificates: parts.certificates,
            reload_watch: ReloadWatching::default(),
            crew: Crew::default(),
            life: Life::Serving,
            stops_by: None,
            ground: parts.ground,
            pid: None,
            successor: None,
            log: parts.log,
            pools: parts.pools,
            command_threads: CommandThreads::new(parts.shared.cluster.desk(&parts.shared.exchange)),
            shared: parts.shared,
            account: parts.account,
            door,
            signals,
            deferred: VecDeque::new(),
            is_reading: false,
            disk_writer: DiskWriterThread::new()?,
            console,
            retired: Retired::default(),
            figures_refreshed: bolide_base::Instant::default(),
            manager: parts.manager,
            changes: ChangeWatch::default(),
            leaving_word: Leaving::default(),
        };
        thread.watch_files(parts.files, Vec::new());
        Ok(thread)
    }

    /// Starts pools and workers.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub(crate) fn begin(
        &mut self,
        plan: php::PoolPlan,
        mut parts: PartDrafts,
    ) -> Result<(), Vec<String>> {
        let groups = self.generation.groups.clone();
        self.commit(plan, &groups, &Weak::new());
        self.begin_figures();
        // With our rights, which workers give up.
        let _ = bolide_io::file::standard_error();
        let cluster = std::mem::take(&mut parts.cluster);
        self.man(assemble::worker_count(&self.config), cluster)?;
        self.begin_record();
        self.settle_threads(parts);
        self.manager.ready("Serving");
        Ok(())
    }

    /// Puts the other threads to work for the configuration in force: OCSP queries, ACME orders,
    /// GeoIP databases, traces.
    fn settle_threads(&self, parts: PartDrafts) {
        let log = || ControlLog::new(&self.config, self.log.open());
        self.shared.tls.stapling.settle(parts.stapling, log(), self.account.as_ref());
        // Before any order: other servers may order the same.
        self.shared.exchange.settle(parts.exchange, log(), self.account.as_ref());
        self.shared.tls.issued.resume(log(), self.account.as_ref());
        self.shared.geo.settle(parts.geo, log(), self.account.as_ref());
        self.shared.otel.settle(parts.otel, log(), self.account.as_ref());
    }

    /// Shares purges as the configuration in force says. The cache's trees are open, so missed
    /// purges apply to their files.
    fn settle_cluster(&self, draft: ClusterDraft) {
        let log = ControlLog::new(&self.config, self.log.open());
        let store = self.generation.site.store();
        self.shared.cluster.settle(draft, store, log, self.account.as_ref());
    }

    /// In the background, redirects standard error to the log.
    fn settle_terminal(&self) {
        if self.ground == Ground::Back {
            start::leave_terminal(&self.config, self.log.open());
        }
    }

    /// Starts a crew.
    fn man(&mut self, workers: u16, cluster: ClusterDraft) -> Result<(), Vec<String>> {
        let log = ControlLog::new(&self.config, self.log.open());
        self.disk_writer.settle(&self.generation, self.account.as_ref(), log)?;
        self.settle_cluster(cluster);
        let orders = Orders {
            workers,
            generation: &self.generation,
            account: self.account.as_ref(),
            disk_writer: self.disk_writer.bell(),
            console: &self.console,
        };
        self.crew = Crew::start(&orders, &self.log)?;
        Ok(())
    }

    /// Runs the pools of a configuration.
    fn commit(
        &mut self,
        plan: php::PoolPlan,
        groups: &bolide_upstream::UpstreamGroups,
        old: &Weak<bolide_engine::Site>,
    ) {
        let mut desk = PhpDesk { door: &mut self.door, log: &self.log };
        self.pools.commit(plan, groups, old, &mut desk);
    }

    /// Waits for a signal, and serves the pools meanwhile. A successor is left to the caller.
    fn wait(
        &mut self,
        until: bolide_base::Instant,
        ready: &mut Vec<bolide_io::Readiness>,
    ) -> Option<Taken> {
        let soonest = bolide_io::process::now().mono.after(TICK_MIN);
        let until = self.pools.deadline().map_or(until, |at| at.min(until)).max(soonest);
        let heir = self.successor.as_ref().map(Child::id);
        ready.clear();
        let _ = self.door.wait(Some(until), ready);
        let mut desk = PhpDesk { door: &mut self.door, log: &self.log };
        for one in ready.iter().filter(|one| one.token != php::SIGNALS) {
            self.pools.handle_ready(one.token, &mut desk);
        }
        let now = bolide_io::process::now().mono;
        self.pools.tick(now, heir, &mut desk);
        debug_assert!(
            self.pools.deadline().is_none_or(|at| at > now),
            "what is due is done, so the next deadline is later"
        );
        for (client, words) in self.pools.take_orders() {
            let client = AdminClient::Command(client);
            if words.command == admin::reload::COMMAND {
                self.reload_by_command(client, &words);
                continue;
            }
            if words.command == admin::drain::COMMAND {
                self.drain_by_command(client, &words);
                continue;
            }
            if words.command == admin::service::COMMAND {
                client.reply(Ok(admin::service::text(&self.service_counts())));
                continue;
            }
            let scene = self.scene_for(&words);
            self.command_threads.handle(
                client,
                words,
                &self.generation,
                self.account.as_ref(),
                scene,
            );
        }
        self.signals.take()
    }

    /// Handles signals until the workers have ended.
    pub(crate) fn obey(mut self, pid: Option<PidFile>) {
        self.pid = pid;
        let mut ready = Vec::new();
        while !self.is_over() && !self.is_late() {
            let tick = bolide_io::process::now().mono.after(self.manager.tick(TICK));
            let taken = self.wait(tick, &mut ready);
            self.look_after();
            self.serve_consoles();
            if let Some(taken) = taken {
                self.handle(taken);
            }
            while let Some(taken) = self.deferred.pop_front() {
                self.handle(taken);
            }
        }
        let is_left = !self.is_over();
        self.crew.give_up(&self.log);
        // A worker left behind may hold a lock that the disk writer waits for.
        self.disk_writer.end(if is_left { Duration::ZERO } else { disk_writer_thread::PATIENCE });
        self.wind_up();
        if is_left {
            bolide_io::process::end(0);
        }
    }

    /// The last action of the process.
    fn wind_up(&mut self) {
        self.shared.cluster.end();
        self.shared.exchange.end();
        self.shared.otel.end();
        self.pools.shutdown();
        // Before the last line: its reader may start the next server.
        self.pid = None;
        self.log.write(LogLevel::Notice, "exit");
        self.leaving_word.end();
    }

    /// Whether workers have not stopped in time.
    fn is_late(&self) -> bool {
        self.stops_by.is_some_and(|by| bolide_io::process::now().mono >= by)
    }

    /// Whether the server is finished: told to end, or every worker has failed.
    fn is_over(&self) -> bool {
        self.crew.is_over()
    }

    fn look_after(&mut self) {
        let time = bolide_io::process::now();
        for text in self.certificate_ends.daily(time) {
            self.log.write(LogLevel::Warn, &text);
        }
        let now = time.mono;
        self.refresh_due_figures(time);
        self.crew.look_after(now, &self.log);
        self.watch_workers(now);
        self.look_at_service(time);
        self.leave_if_due(now);
        self.reload_if_changed(now);
        if self.retired.sweep() {
            self.log.write(LogLevel::Notice, "the replaced configuration is no longer in use");
            self.crew.post_all(|| Mail::Tidy);
        }
        self.open.succeed(&self.shared.quic_keys);
        self.look_at_successor();
    }

    /// Handles a signal, and logs it in nginx's words.
    fn handle(&mut self, taken: Taken) {
        let has_file = self.pid.is_some();
        let is_rival = self.successor.is_some() || self.open.has_elder();
        let action = match taken.signal {
            Signal::Stop => ", exiting",
            Signal::Quit => ", shutting down",
            Signal::Reload => ", reconfiguring",
            Signal::Reopen => ", reopening logs",
            Signal::Drain if self.ground == Ground::Back => ", stop accepting connections",
            Signal::Upgrade if is_rival => ", ignoring",
            Signal::Upgrade => ", changing binary",
            Signal::Drain => "",
            Signal::Child => return,
        };
        let (number, name) = (taken.number, taken.name());
        let from =
            if taken.sender == 0 { String::new() } else { format!(" from {}", taken.sender) };
        let text = format!("signal {number} ({name}) received{from}{action}");
        self.log.write(LogLevel::Notice, &text);
        match taken.signal {
            Signal::Stop => {
                self.end_service();
                self.stops_by.get_or_insert(bolide_io::process::now().mono.after(STOP_MAX));
                self.crew.post_all(|| Mail::Stop);
                self.close();
            }
            Signal::Quit => self.quit(),
            Signal::Drain if self.ground == Ground::Back => self.drain(CrewOrder::Yield),
            // The error was logged.
            Signal::Reload if self.has_yielded() => self.return_to_service(),
            Signal::Reload if has_file && self.life == Life::Serving => self.reload_by_signal(),
            Signal::Reopen => self.reopen(),
            Signal::Upgrade if has_file && !is_rival => self.upgrade(),
            Signal::Upgrade if is_rival => self.log.write(
                LogLevel::Crit,
                "the changing binary signal is ignored: you should shutdown or terminate before \
                 either old or new binary's process",
            ),
            Signal::Reload | Signal::Upgrade | Signal::Drain | Signal::Child => {}
        }
    }

    /// Ends as soon as all requests have ended.
    fn quit(&mut self) {
        self.end_service();
        self.drain(CrewOrder::End);
        self.close();
    }

    /// The server ends; a successor, if there is one, continues the service.
    fn end_service(&mut self) {
        self.life = Life::Ending;
        self.shared.figures.leave();
        self.end_watch("the server ends");
        match &self.successor {
            Some(successor) => self.manager.hand_over(successor.id()),
            None => self.manager.stopping(),
        }
    }

    /// Completes all requests.
    fn drain(&mut self, order: CrewOrder) {
        let now = bolide_io::process::now().mono;
        let limit = self.config.main.worker_shutdown_timeout;
        self.shared.tls.issued.rest();
        self.open.steer_admission(&self.shared.quic_keys, Admits::Elder);
        self.crew.drain(order, now, limit, &self.log);
    }

    /// Closes the addresses, and waits a moment for workers that end at once.
    fn close(&mut self) {
        let is_shared = self.successor.is_some() || self.open.has_elder();
        self.open.close(if is_shared { SocketNames::Keep } else { SocketNames::Remove });
        self.crew.hasten();
        self.look_after();
    }

    /// Opens the logs again; those that cannot be opened stay as they are.
    fn reopen(&mut self) {
        self.log.write(LogLevel::Notice, "reopening logs");
        // Requests of replaced configurations log to their files.
        let replaced = self.retired.configs();
        let configs: Vec<&Config> = std::iter::once(&*self.config).chain(replaced).collect();
        let (logs, failed) = assemble::reopen_logs(&configs, self.log.open());
        for text in failed {
            self.log.write(LogLevel::Emerg, &text);
        }
        let closed = self.log.replace(logs.clone());
        self.retired.keep_logs(closed);
        self.settle_terminal();
        self.shared.tls.stapling.log_to(ControlLog::new(&self.config, &logs));
        self.shared.tls.issued.log_to(ControlLog::new(&self.config, &logs));
        self.shared.geo.log_to(ControlLog::new(&self.config, &logs));
        self.shared.otel.log_to(ControlLog::new(&self.config, &logs));
        self.shared.cluster.log_to(ControlLog::new(&self.config, &logs));
        self.shared.exchange.log_to(ControlLog::new(&self.config, &logs));
        self.disk_writer.log_to(ControlLog::new(&self.config, &logs));
        self.crew.post_all(|| Mail::Reopen(logs.clone()));
    }
}
