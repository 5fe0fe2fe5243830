//! The thread of the cluster: connects, sends the store's purges, and carries out those of others.
//!
//! Owns the state machine. Every event is a message, so that they are handled one by one.

mod answers;
mod joining;
mod receiving;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::Poll;
use std::time::Duration;

use bolide_base::Instant;
use bolide_cache::{Store, StreamPlace};
use bolide_cluster::{ClusterMachine, EntryId, EntryMark, LastLife, Peer};
use bolide_conf::model::LogLevel;
use bolide_io::epoll::Epoll;
use bolide_valkey::{Connector, ValkeyFault, ValkeyFaultKind};
use tokio::sync::mpsc;

use super::clock::NodeClock;
use super::session::{ReadSize, Report, Session};
use super::setup::ClusterSetup;
use super::{ClusterMail, Shared, lock};
use crate::account::{WorkerAccount, give_up_rights};
use joining::Strike;

/// LIMIT: bytes of purges in an entry; one that is larger is alone in its entry.
const RECORD_MAX: usize = 64 << 10;
/// The interval of equal log messages.
const REPEAT_INTERVAL: Duration = Duration::from_mins(1);
/// The pause before the next attempt to connect: at first, doubled each time, and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Beats after which a connection resets the pause.
const LASTING: u64 = 5;
/// Beats between two trims of the stream.
const TIDY: u64 = 10;
/// The stream gets a new entry after this fraction of the retention time.
const YOUNG: u32 = 4;
/// Nodes that were silent for this many retention times are forgotten.
const FORGET: u32 = 2;

/// The kinds of log lines that appear at most once a minute each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Topic {
    Unreachable,
    Full,
    Joining,
    Connected,
    Loss,
    Objects,
    Elsewhere,
    NoSpace,
    Overflow,
    TooLarge,
}

/// Whether the thread continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Going,
    /// It sends the remaining purges, then ends.
    Ending,
    /// It ends at once.
    Replaced,
}

/// The parts of a node.
pub(super) struct NodeParts {
    pub(super) shared: Arc<Shared>,
    pub(super) setup: Arc<ClusterSetup>,
    pub(super) store: Arc<Store>,
    pub(super) connector: Connector,
    pub(super) clock: NodeClock,
    /// A random id of the process.
    pub(super) life: u64,
    pub(super) mail: mpsc::Sender<ClusterMail>,
    pub(super) orders: mpsc::Receiver<ClusterMail>,
}

/// A running node.
pub(super) struct ClusterNode {
    shared: Arc<Shared>,
    setup: Arc<ClusterSetup>,
    store: Arc<Store>,
    connector: Arc<Connector>,
    clock: NodeClock,
    machine: ClusterMachine,
    door: Epoll,
    mail: mpsc::Sender<ClusterMail>,
    orders: mpsc::Receiver<ClusterMail>,
    /// Messages that arrived while it was connecting.
    kept: VecDeque<ClusterMail>,
    session: Option<Session>,
    /// The number of connections so far.
    sessions: u64,
    life: Life,
    beats: u64,
    /// Valkey's clock at the last beat.
    server_ms: u64,
    /// Valkey is out of memory: nothing is sent until the next beat.
    is_full: bool,
    /// The next connection skips an entry that is too large.
    has_oversize: bool,
    /// The position at which a reply was too large.
    strike: Strike,
    read_size: ReadSize,
    /// The last read of the stream did not find its position.
    is_astray: bool,
    /// Whether the acknowledgment of this node is being sent, and whether another one has to
    /// follow.
    is_acknowledging: bool,
    acknowledge_again: bool,
    overflows: u64,
    /// The number of a purge that others have to receive before this node acknowledges its
    /// position: if it ends before, its successor finds out again what is to be sent.
    owes: Option<u64>,
    logged: Vec<(Topic, Instant)>,
    /// The record of the previous process on this machine.
    last: LastLife,
    /// Before this entry, purges of earlier processes of this node may be missing.
    fence: EntryId,
    /// The purges of the past have to be read, for shared objects.
    has_past: bool,
    /// Leases of this process so far.
    leases: Arc<AtomicU64>,
}

/// Runs until told to end.
pub(super) fn run(
    shared: Arc<Shared>,
    setup: Arc<ClusterSetup>,
    store: Arc<Store>,
    (mail, orders): (mpsc::Sender<ClusterMail>, mpsc::Receiver<ClusterMail>),
    account: Option<WorkerAccount>,
) {
    let fail = |shared: &Shared, why: &str| {
        log(shared, LogLevel::Emerg, why);
        lock(&shared.status).last_fault = Some(why.to_owned());
        shared.changed.notify_all();
    };
    if let Err(why) = give_up_rights(account) {
        return fail(&shared, &why);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let connector = match Connector::new(setup.settings.clone()) {
        Ok(connector) => connector,
        Err(why) => return fail(&shared, &format!("cluster: {why}")),
    };
    let (clock, life) = (NodeClock::default(), bolide_tls::random_seed());
    let own = shared.clone();
    let parts = NodeParts { shared, setup, store, connector, clock, life, mail, orders };
    match runtime.and_then(|runtime| Ok((runtime, ClusterNode::new(parts)?))) {
        Ok((runtime, node)) => runtime.block_on(node.live()),
        Err(error) => fail(&own, &format!("cluster: {error}")),
    }
}

/// The place of an entry in the store's terms.
const fn place(of: EntryMark) -> StreamPlace {
    StreamPlace { ms: of.id.ms, number: of.id.number, sum: of.sum }
}

/// The least place of an entry with this id.
const fn place_from(id: EntryId) -> StreamPlace {
    place(EntryMark { id, sum: 0 })
}

fn log(shared: &Shared, level: LogLevel, text: &str) {
    let log = lock(&shared.state).log.clone();
    log.into_iter().for_each(|log| log.write(level, text));
}

impl ClusterNode {
    /// A node that has received nothing yet.
    pub(super) fn new(parts: NodeParts) -> std::io::Result<Self> {
        let NodeParts { shared, setup, store, connector, clock, life, mail, orders } = parts;
        let (cluster, node) = (setup.conf.namespace.as_bytes(), setup.node.as_bytes());
        let machine = ClusterMachine::new(cluster, node, life);
        let overflows = store.outbox().counts().overflows;
        let last = lock(&shared.mark).take_last();
        Ok(Self {
            shared,
            connector: Arc::new(connector),
            clock,
            machine,
            door: Epoll::new()?,
            mail,
            orders,
            kept: VecDeque::new(),
            session: None,
            sessions: 0,
            life: Life::Going,
            beats: 0,
            server_ms: 0,
            is_full: false,
            has_oversize: false,
            strike: Strike::default(),
            read_size: ReadSize::default(),
            is_astray: false,
            is_acknowledging: false,
            acknowledge_again: false,
            overflows,
            owes: None,
            logged: Vec::new(),
            last,
            fence: EntryId::ZERO,
            has_past: false,
            leases: Arc::default(),
            setup,
            store,
        })
    }

    /// Runs until it is told to end.
    pub(super) async fn live(mut self) {
        let mut failures = 0;
        loop {
            self.set_time();
            let opened = self.open().await;
            lock(&self.shared.status).attempts += 1;
            while let Some(mail) = self.kept.pop_front() {
                self.handle(Some(mail));
            }
            if let Err(fault) = opened
                && self.life == Life::Going
            {
                self.break_off(&fault);
            }
            while self.session.is_some() && !self.is_done() {
                let mail = self.next().await;
                self.handle(mail);
            }
            match self.life {
                Life::Going => {}
                Life::Ending => {
                    self.publish_end().await;
                    return self.leave();
                }
                Life::Replaced => {
                    self.release_leases().await;
                    return self.hand_over();
                }
            }
            // A connection that fails at once counts as a failed attempt.
            if std::mem::take(&mut self.beats) >= LASTING {
                failures = 0;
            }
            let pause = RETRY.0.saturating_mul(1 << failures.min(8)).min(RETRY.1);
            failures += 1;
            self.rest(pause).await;
        }
    }

    /// Whether everything was sent that has to be sent before the end.
    fn is_done(&self) -> bool {
        match self.life {
            Life::Going => false,
            Life::Ending => !self.machine.is_sending() && self.store.outbox().counts().waiting == 0,
            Life::Replaced => true,
        }
    }

    /// Purges in transit may be lost, and the successor does not know of them.
    fn hand_over(&self) {
        if self.machine.is_sending() {
            self.store.outbox().push_everything();
        }
    }

    fn leave(&self) {
        let waiting = self.store.outbox().counts().waiting;
        if waiting > 0 || self.machine.is_sending() {
            let text = format!(
                "cluster: the end comes before {} could be sent: other nodes may have pages that \
                 were purged here",
                if waiting > 0 {
                    format!("{waiting} purges")
                } else {
                    "the last purges".to_owned()
                }
            );
            log(&self.shared, LogLevel::Warn, &text);
        }
    }

    /// The next message, or a notice that purges can be sent.
    async fn next(&mut self) -> Option<ClusterMail> {
        let may_send = !self.is_full && !self.machine.is_sending();
        let (orders, outbox) = (&mut self.orders, self.store.outbox());
        std::future::poll_fn(|context| {
            if let Poll::Ready(mail) = orders.poll_recv(context) {
                return Poll::Ready(mail);
            }
            match may_send && outbox.poll_waiting(context).is_ready() {
                true => Poll::Ready(None),
                false => Poll::Pending,
            }
        })
        .await
    }

    /// Waits without a connection.
    async fn rest(&mut self, pause: Duration) {
        let end = tokio::time::Instant::now() + pause;
        while let Ok(Some(mail)) = tokio::time::timeout_at(end, self.orders.recv()).await {
            self.handle(Some(mail));
            self.set_time();
            if self.life != Life::Going {
                return;
            }
        }
    }

    fn set_time(&self) {
        self.store.outbox().set_time(self.clock.now().unix_millis);
    }

    fn handle(&mut self, mail: Option<ClusterMail>) {
        match mail {
            None => self.send(),
            Some(ClusterMail::End) => self.life = Life::Ending,
            Some(ClusterMail::Replace) => self.life = Life::Replaced,
            Some(ClusterMail::Progress(reply)) => {
                let _gone = reply.try_send(self.progress());
            }
            Some(ClusterMail::Peers(entry, reply)) => self.answer_peers(entry, reply),
            Some(ClusterMail::Purges(count, reply)) => self.answer_purges(count, reply),
            Some(ClusterMail::Session(number, report)) => {
                let current = self.session.as_ref().map(Session::number);
                if current == Some(number) {
                    self.handle_report(report);
                }
            }
        }
        self.publish();
    }

    fn handle_report(&mut self, report: Report) {
        match report {
            Report::News(entries) => {
                self.is_astray = false;
                self.read_size.grow();
                self.receive(&entries);
            }
            Report::CaughtUp => {
                self.is_astray = false;
                self.read_size.grow();
                self.strike.forget();
                self.machine.handle_end();
                self.send();
                self.acknowledge();
                lock(&self.shared.status).is_caught_up = true;
                self.shared.changed.notify_all();
            }
            Report::Astray(facts) => self.go_astray(&facts),
            Report::Added(Ok(id)) => {
                self.machine.handle_added(id);
                self.send();
            }
            Report::Added(Err(fault)) if fault.kind == ValkeyFaultKind::Full => {
                self.machine.send_again();
                self.is_full = true;
                let text = format!("cluster: purges wait to be sent: {fault}");
                self.log_limited(Topic::Full, LogLevel::Error, &text);
                lock(&self.shared.status).last_fault = Some(fault.text);
            }
            Report::Added(Err(fault)) | Report::Broken(fault) => self.break_off(&fault),
            Report::LateRead(fault) => {
                self.reduce_reads();
                self.break_off(&fault);
            }
            Report::Acknowledged => {
                self.is_acknowledging = false;
                if std::mem::take(&mut self.acknowledge_again) {
                    self.acknowledge();
                }
            }
            Report::Objects(fault) => {
                let text = format!("cluster: objects are not shared: {fault}");
                self.log_limited(Topic::Objects, LogLevel::Error, &text);
                lock(&self.shared.status).last_fault = Some(fault.text);
            }
            Report::Beat(server_ms) => self.beat(server_ms),
        }
    }

    /// Sends the next purges, if none are in transit.
    fn send(&mut self) {
        let Some(session) = &mut self.session else { return };
        if self.is_full {
            return;
        }
        let outbox = self.store.outbox();
        if let Some(record) = self.machine.poll_record(|| outbox.take(RECORD_MAX)) {
            session.add(record, self.setup.conf.purge_keep_count.into());
        }
    }

    /// Whether others still have to receive a loss that concerns them.
    fn is_owing(&self) -> bool {
        self.owes.is_some_and(|number| number > self.machine.confirmed())
    }

    /// Reports the position of this node to others.
    fn acknowledge(&mut self) {
        if self.is_owing() {
            return;
        }
        let Some(session) = &mut self.session else { return };
        if self.is_acknowledging {
            self.acknowledge_again = true;
            return;
        }
        let Some(position) = self.machine.mark() else { return };
        self.is_acknowledging = true;
        let (life, seen_ms, fence) = (self.machine.life(), self.server_ms, self.fence);
        let peer = Peer { life, position, seen_ms, fence, has_ended: false };
        session.acknowledge(self.setup.node.clone(), peer.line());
    }

    fn beat(&mut self, server_ms: u64) {
        self.server_ms = server_ms;
        self.is_full = false;
        self.beats += 1;
        self.set_time();
        self.acknowledge();
        self.send();
        let keep = self.setup.conf.purge_keep_time;
        let ago = |time: Duration| server_ms.saturating_sub(time.as_millis() as u64);
        let Some(session) = &mut self.session else { return };
        let at = self.machine.position().map_or(0, |position| position.ms);
        if at < ago(keep / YOUNG) {
            session.greet(self.machine.hello(), self.setup.conf.purge_keep_count.into());
        }
        // After a jump of the clock the new entry comes first.
        if self.beats.is_multiple_of(TIDY) && at >= ago(keep) {
            session.trim(ago(keep));
            let (line, oldest) = (session.line().clone(), ago(keep * FORGET));
            session.run(async move {
                for (name, text) in line.nodes().await.ok()? {
                    if Peer::read(&text).is_some_and(|peer| peer.seen_ms < oldest) {
                        line.forget_node(&name).await.ok()?;
                    }
                }
                None
            });
        }
        let overflows = self.store.outbox().counts().overflows;
        self.log_overflows(overflows);
    }

    fn log_overflows(&mut self, overflows: u64) {
        if overflows > self.overflows {
            self.overflows = overflows;
            let text = "cluster: more purges waited than \"purge_queue\" allows: everything is \
                        purged on all nodes";
            self.log_limited(Topic::Overflow, LogLevel::Warn, text);
        }
    }

    /// Ends the connection.
    fn break_off(&mut self, fault: &ValkeyFault) {
        self.has_oversize |= fault.kind == ValkeyFaultKind::TooLarge;
        self.session = None;
        let text = format!("cluster: this node goes on alone: {fault}");
        self.log_limited(Topic::Unreachable, LogLevel::Error, &text);
        self.log_overflows(self.store.outbox().counts().overflows);
        let mut status = lock(&self.shared.status);
        status.connected = None;
        status.is_caught_up = false;
        status.last_fault = Some(fault.text.clone());
        drop(status);
        self.shared.changed.notify_all();
    }

    /// Logs, unless the same was logged recently.
    fn log_limited(&mut self, topic: Topic, level: LogLevel, text: &str) {
        let now = self.clock.now().mono;
        let known = self.logged.iter_mut().find(|(other, _)| *other == topic);
        match known {
            Some((_, again)) if now < *again => return,
            Some((_, again)) => *again = now.after(REPEAT_INTERVAL),
            None => self.logged.push((topic, now.after(REPEAT_INTERVAL))),
        }
        log(&self.shared, level, text);
    }

    fn publish(&self) {
        let counts = self.store.outbox().counts();
        let mut status = lock(&self.shared.status);
        status.position = self.machine.position().unwrap_or_default();
        status.sent = self.machine.confirmed();
        status.waiting = counts.waiting as u64;
        status.overflows = counts.overflows;
    }
}
