//! The cluster: a thread transfers purges between the store and Valkey, and nothing waits for it.
//!
//! ```text
//!   load (draft) ──settle (in force)──▶ thread ──connected──▶ purges out and in
//! ```
//!
//! Easiest to break: a configuration that changes the block ends one thread and starts another,
//! while the store's outbox continues to collect purges.

mod clock;
mod exchange;
mod mark;
mod node;
mod objects;
mod report;
mod session;
mod setup;
#[cfg(test)]
mod sim;

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bolide_cache::Store;
use bolide_cluster::EntryMark;
use bolide_conf::model::{ClusterConf, Config, LogLevel, SharedObjects};
use bolide_engine::metrics::SharedObjectFigures;
use tokio::sync::mpsc;

use crate::account::WorkerAccount;
use crate::control_log::ControlLog;
use exchange::ExchangeBoard;
pub(crate) use exchange::{
    ExchangeDraft, ExchangeParts, ExchangeStatus, ExchangeThread, common_secret,
};
use mark::LifeMark;
pub(crate) use report::{ClusterPeer, ClusterPurge, ClusterStatus};
use setup::ClusterSetup;

/// LIMIT: orders waiting for the thread.
const MAIL_MAX: usize = 64;
/// How long unsent purges may delay the end of the process.
const PATIENCE: Duration = Duration::from_secs(2);

/// The cluster's thread, and its status.
#[derive(Debug, Default)]
pub(crate) struct ClusterThread(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    status: Mutex<ClusterStatus>,
    /// Signals that the status has changed.
    changed: Condvar,
    mark: Mutex<LifeMark>,
}

#[derive(Debug, Default)]
struct State {
    running: Option<Running>,
    /// Threads that were told to end. The next one waits for them, however many configurations
    /// without a cluster are between.
    leaving: Vec<JoinHandle<()>>,
    log: Option<Arc<ControlLog>>,
}

/// The setup of a draft configuration, if it has a cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterDraft(Option<Arc<ClusterSetup>>);

#[derive(Debug)]
struct Running {
    setup: Arc<ClusterSetup>,
    store: Arc<Store>,
    mail: mpsc::Sender<ClusterMail>,
    /// The reserved channel slot for the last order.
    last: mpsc::OwnedPermit<ClusterMail>,
    thread: JoinHandle<()>,
}

/// Orders and queries for the thread.
#[derive(Debug)]
enum ClusterMail {
    /// Queries up to which number purges of this process are in the stream, and the node's
    /// position.
    Progress(SyncSender<CommandResult<(u64, EntryMark)>>),
    /// Queries the last reports of all nodes, and whether they say that the nodes have this entry.
    Peers(Option<EntryMark>, SyncSender<CommandResult<Vec<ClusterPeer>>>),
    /// The newest entries.
    Purges(usize, SyncSender<CommandResult<Vec<ClusterPurge>>>),
    /// Send the remaining purges, and end.
    End,
    /// End at once, because another thread replaces this one.
    Replace,
    /// A report of a connection, by its number.
    Session(u64, session::Report),
}

type CommandResult<T> = Result<T, String>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClusterThread {
    /// Reads the `cluster` block of a draft, and its files.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub(crate) fn load(&self, config: &Config) -> Result<ClusterDraft, String> {
        let conf = config.http.as_ref().and_then(|http| http.cluster.as_ref());
        let made = conf.map(ClusterSetup::read).transpose()?;
        Ok(ClusterDraft(made.map(Arc::new)))
    }

    /// Logs to another file from now on: the old one may have been moved away.
    pub(crate) fn log_to(&self, log: ControlLog) {
        lock(&self.0.state).log = Some(Arc::new(log));
    }

    /// The process begins with this draft, and no purges yet. `dir` has the file that records its
    /// end.
    pub(crate) fn begin(&self, draft: &ClusterDraft, dir: &Path) {
        *lock(&self.0.mark) = LifeMark::begin(dir, draft.0.is_some());
    }

    /// Puts the draft in force. If there are cached pages of an earlier process, the first thread
    /// gets a moment to receive missed purges: they are carried out before the first request.
    pub(crate) fn settle(
        &self,
        draft: ClusterDraft,
        store: Option<&Arc<Store>>,
        log: ControlLog,
        account: Option<&WorkerAccount>,
    ) {
        self.log_to(log);
        let wanted = draft.0.zip(store);
        let is_same = match (&wanted, &lock(&self.0.state).running) {
            (Some((setup, _)), Some(running)) => {
                *running.setup == **setup && !running.thread.is_finished()
            }
            (None, None) => return,
            _ => false,
        };
        if is_same {
            return;
        }
        let mut state = lock(&self.0.state);
        let is_first = state.running.is_none();
        if let Some(running) = state.running.take() {
            running.last.send(ClusterMail::Replace);
            state.leaving.push(running.thread);
        }
        state.leaving.retain(|thread| !thread.is_finished());
        drop(state);
        let Some((setup, store)) = wanted else {
            store.into_iter().for_each(|store| {
                store.outbox().close();
                store.sharing().close();
            });
            *lock(&self.0.status) = ClusterStatus::default();
            return;
        };
        open(store, &setup.conf);
        let timeout = setup.conf.reply_timeout;
        self.start(setup, store, account.cloned());
        let has_pages = store.disk().trees().iter().any(|tree| !tree.is_off());
        if is_first && has_pages {
            let waiting = lock(&self.0.status);
            let is_open = |status: &mut ClusterStatus| !status.has_tried();
            drop(self.0.changed.wait_timeout_while(waiting, timeout, is_open));
        }
    }

    fn start(&self, setup: Arc<ClusterSetup>, store: &Arc<Store>, account: Option<WorkerAccount>) {
        let (mail, orders) = mpsc::channel(MAIL_MAX);
        // An empty channel has room.
        let Ok(last) = mail.clone().try_reserve_owned() else { return };
        *lock(&self.0.status) = ClusterStatus::new(&setup);
        let (shared, own) = (self.0.clone(), mail.clone());
        let (of_thread, store) = (setup.clone(), store.clone());
        let own_store = store.clone();
        let before = std::mem::take(&mut lock(&self.0.state).leaving);
        let body = move || {
            // Two threads that take purges would leave gaps in the numbers of both.
            before.into_iter().for_each(|thread| drop(thread.join()));
            node::run(shared, of_thread, store, (own, orders), account);
        };
        let mut state = lock(&self.0.state);
        match std::thread::Builder::new().name("cluster".to_owned()).spawn(body) {
            Ok(thread) => {
                state.running = Some(Running { setup, store: own_store, mail, last, thread });
            }
            Err(error) => {
                let text = format!("cluster: cannot start a thread: {error}");
                state.log.iter().for_each(|log| log.write(LogLevel::Alert, &text));
            }
        }
    }

    /// Sends the remaining purges, for the last time.
    pub(crate) fn end(&self) {
        let Some(running) = lock(&self.0.state).running.take() else { return };
        running.last.send(ClusterMail::End);
        let step = Duration::from_millis(5);
        for _ in 0..PATIENCE.as_millis() / step.as_millis() {
            if running.thread.is_finished() {
                return;
            }
            std::thread::park_timeout(step);
        }
    }

    /// The desk for queries of commands, about the second thread as well.
    pub(crate) fn desk(&self, exchange: &ExchangeThread) -> ClusterDesk {
        ClusterDesk { shared: self.0.clone(), exchange: exchange.board() }
    }

    /// The status of this node; `None` without a cluster.
    pub(crate) fn status(&self) -> Option<ClusterStatus> {
        self.0.status()
    }
}

impl Shared {
    fn status(&self) -> Option<ClusterStatus> {
        let store = lock(&self.state).running.as_ref().map(|running| running.store.clone());
        let status = lock(&self.status);
        let objects = store.as_ref().filter(|store| store.sharing().is_open()).map(objects);
        status.is_on().then(|| ClusterStatus { objects, ..status.clone() })
    }
}

/// Has the purges and objects of a store shared as the configuration says.
fn open(store: &Store, conf: &ClusterConf) {
    store.outbox().open(conf.purge_queue as usize);
    match conf.objects {
        SharedObjects::Off => store.sharing().close(),
        SharedObjects::Public => {
            store.sharing().set_patience(conf.objects_timeout + conf.objects_lease_time);
            store.sharing().open(conf.objects_max_size);
        }
    }
}

fn objects(store: &Arc<Store>) -> SharedObjectFigures {
    let sharing = store.sharing();
    let counts = sharing.counts();
    SharedObjectFigures {
        is_answering: sharing.is_answering(),
        asked: counts.asked,
        taken: counts.taken,
        unfit: counts.unfit,
        offered: counts.offered,
        late: counts.late,
    }
}

/// Answers queries of commands about the cluster.
#[derive(Clone, Debug)]
pub(crate) struct ClusterDesk {
    shared: Arc<Shared>,
    exchange: ExchangeBoard,
}

/// How long the thread may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

impl ClusterDesk {
    /// The status of this node; `None` if it shares no purges.
    pub(crate) fn status(&self) -> Option<ClusterStatus> {
        self.shared.status()
    }

    /// The status of shared secrets and limits; `None` if it shares none.
    pub(crate) fn exchange(&self) -> Option<ExchangeStatus> {
        self.exchange.read()
    }

    /// The last reports of all nodes, and whether they say that the nodes have this entry.
    pub(crate) fn peers(&self, entry: Option<EntryMark>) -> CommandResult<Vec<ClusterPeer>> {
        self.ask(|reply| ClusterMail::Peers(entry, reply))
    }

    /// The newest entries, the newest first.
    pub(crate) fn purges(&self, count: usize) -> CommandResult<Vec<ClusterPurge>> {
        self.ask(|reply| ClusterMail::Purges(count, reply))
    }

    /// Up to which number purges of this process are in the stream, and the node's position.
    pub(crate) fn progress(&self) -> CommandResult<(u64, EntryMark)> {
        self.ask(ClusterMail::Progress)
    }

    fn ask<T>(
        &self,
        mail: impl FnOnce(SyncSender<CommandResult<T>>) -> ClusterMail,
    ) -> CommandResult<T> {
        let (reply, answer): (_, Receiver<CommandResult<T>>) = sync_channel(1);
        let sender = lock(&self.shared.state).running.as_ref().map(|running| running.mail.clone());
        let sender = sender.ok_or("the server has no cluster: there is no \"cluster\" block")?;
        sender.try_send(mail(reply)).map_err(|_| "the cluster's thread is busy".to_owned())?;
        match answer.recv_timeout(ANSWER_TIMEOUT) {
            Ok(result) => result,
            Err(_) => Err("the cluster's thread does not answer".to_owned()),
        }
    }
}
