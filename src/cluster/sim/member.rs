//! Nodes: their processes begin, end, are killed, and get another thread by a reload.

use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use bolide_cache::{NamespaceId, Store, StoreLimits};
use bolide_conf::model::{ClusterAddress, ClusterConf, SharedObjects};
use bolide_valkey::{Connector, ValkeyPlace, ValkeySettings};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::common::Common;
use super::{Plan, SUBJECTS, SimulatedClock, World};
use crate::cluster::clock::NodeClock;
use crate::cluster::mark::LifeMark;
use crate::cluster::node::{ClusterNode, NodeParts};
use crate::cluster::setup::ClusterSetup;
use crate::cluster::{ClusterMail, ClusterStatus, MAIL_MAX, PATIENCE, Shared, State, lock, open};

/// How long Valkey may take to reply.
const REPLY: Duration = Duration::from_millis(400);

/// A node.
pub(super) struct Member {
    shared: Arc<Shared>,
    pub(super) store: Arc<Store>,
    pub(super) clock: Arc<SimulatedClock>,
    /// The thread.
    pub(super) life: u64,
    pub(super) mail: mpsc::Sender<ClusterMail>,
    last: Option<mpsc::OwnedPermit<ClusterMail>>,
    task: JoinHandle<()>,
    /// By subject: responses from before this tick were purged, by a purge that the node has
    /// reported.
    pub(super) purged: [u64; SUBJECTS],
    /// The thread beside it, which a reload leaves alone.
    pub(super) common: Rc<Common>,
    pub(super) common_life: u64,
}

pub(super) fn name(at: usize) -> String {
    format!("node-{at}")
}

impl Member {
    pub(super) fn status(&self) -> ClusterStatus {
        lock(&self.shared.status).clone()
    }

    pub(super) fn site(&self) -> NamespaceId {
        self.store.namespace(b"page:shop")
    }

    pub(super) fn record_purged(&mut self, subjects: &[usize], tick: u64) {
        for subject in subjects {
            self.purged[*subject] = self.purged[*subject].max(tick);
        }
    }
}

/// How every node reaches Valkey.
pub(super) fn settings() -> ValkeySettings {
    ValkeySettings {
        places: vec![ValkeyPlace::Tcp("valkey".to_owned(), 1)],
        master: None,
        authorities: None,
        user: None,
        password: None,
        timeout: REPLY,
        namespace: "sim".to_owned(),
    }
}

fn setup(plan: &Plan, at: usize) -> ClusterSetup {
    let ms = Duration::from_millis;
    let hosts = vec![("valkey".to_owned(), 1)];
    let conf = ClusterConf {
        address: ClusterAddress::Tcp { hosts, is_secure: false, master: None },
        namespace: "sim".to_owned(),
        node: Some(name(at)),
        user: None,
        password: None,
        password_file: None,
        trusted_certificate: None,
        reply_timeout: REPLY,
        purge_keep_time: ms(plan.keep_ms),
        purge_keep_count: plan.keep_count,
        purge_queue: plan.queue,
        objects: SharedObjects::Public,
        objects_timeout: ms(plan.objects_ms),
        objects_lease_time: ms(plan.lease_ms),
        objects_max_size: 1 << 16,
        objects_min_uses: plan.min_uses,
        secrets_keys: Vec::new(),
    };
    ClusterSetup { conf, settings: settings(), node: name(at) }
}

impl World {
    /// A process begins.
    pub(super) fn begin(self: &Rc<Self>, at: usize, before: Option<&Member>) -> Member {
        let dir = self.dir.join(name(at));
        if before.is_none() {
            std::fs::create_dir(&dir).expect("a directory");
        }
        let limits = StoreLimits { front_entries: 16, ..StoreLimits::default() };
        let store = Store::new(limits, self.seed);
        let shared = Arc::new(Shared {
            state: Mutex::new(State::default()),
            status: Mutex::new(ClusterStatus::default()),
            changed: Condvar::new(),
            mark: Mutex::new(LifeMark::begin(&dir, true)),
        });
        let conf = setup(&self.plan, at).conf;
        open(&store, &conf);
        let skew_ms = self.below(4001) as i64 - 2000;
        let purged = before.map_or([0; SUBJECTS], |before| before.purged);
        let clock = SimulatedClock::new(self.start, skew_ms);
        let common = Rc::new(self.begin_common(at, &clock));
        self.start(at, (shared, store), (clock, common, None), purged)
    }

    /// A thread begins.
    fn start(
        self: &Rc<Self>,
        at: usize,
        (shared, store): (Arc<Shared>, Arc<Store>),
        (clock, common, common_life): (Arc<SimulatedClock>, Rc<Common>, Option<u64>),
        purged: [u64; SUBJECTS],
    ) -> Member {
        self.lives.set(self.lives.get() + 1);
        let (life, setup) = (self.lives.get(), Arc::new(setup(&self.plan, at)));
        *lock(&shared.status) = ClusterStatus::new(&setup);
        let server = self.server.clone();
        let dial = Box::new(move |_: &ValkeyPlace| server.dial(at));
        let (mail, orders) = mpsc::channel(MAIL_MAX);
        let last = mail.clone().try_reserve_owned().ok();
        let node = ClusterNode::new(NodeParts {
            shared: shared.clone(),
            connector: Connector::dialing(setup.settings.clone(), dial),
            setup,
            store: store.clone(),
            clock: NodeClock::simulated(clock.clone()),
            life,
            mail: mail.clone(),
            orders,
        });
        let node = node.expect("a descriptor");
        let task = tokio::task::spawn_local(node.live());
        let common_life = common_life.unwrap_or(life);
        Member { shared, store, clock, life, mail, last, task, purged, common, common_life }
    }

    /// The process ends or is killed, and another one begins after a while.
    pub(super) async fn replace_process(self: &Rc<Self>, at: usize, is_kill: bool, ms: u64) {
        let task = {
            let mut members = self.members.borrow_mut();
            let member = &mut members[at];
            let last = member.last.take().filter(|_| !is_kill);
            // Who visits finds no server meanwhile.
            member.life = 0;
            member.common.end();
            match last {
                Some(last) => drop(last.send(ClusterMail::End)),
                None => member.task.abort(),
            }
            std::mem::replace(&mut member.task, tokio::task::spawn_local(async {}))
        };
        self.finish(task, is_kill).await;
        sleep(Duration::from_millis(ms)).await;
        let next = {
            let members = self.members.borrow();
            self.begin(at, members.get(at))
        };
        self.members.borrow_mut()[at] = next;
    }

    async fn finish(&self, mut task: JoinHandle<()>, is_kill: bool) {
        match timeout(PATIENCE, &mut task).await {
            Ok(Ok(())) => {}
            Ok(Err(fault)) if fault.is_cancelled() && is_kill => {}
            Ok(Err(fault)) => panic!("seed {}: a node failed: {fault}", self.seed),
            Err(_) => {
                // The process ends all the same.
                assert!(!self.is_over.get(), "seed {}: a node does not end", self.seed);
                task.abort();
            }
        }
    }

    /// A reload changes the block: another thread takes over.
    pub(super) async fn replace_thread(self: &Rc<Self>, at: usize) {
        let task = {
            let mut members = self.members.borrow_mut();
            let member = &mut members[at];
            let Some(last) = member.last.take() else { return };
            last.send(ClusterMail::Replace);
            std::mem::replace(&mut member.task, tokio::task::spawn_local(async {}))
        };
        let is_over = timeout(Duration::from_secs(2), task).await;
        let is_over = is_over.unwrap_or_else(|_| panic!("seed {}: it goes on", self.seed));
        is_over.unwrap_or_else(|fault| panic!("seed {}: a node failed: {fault}", self.seed));
        let mut members = self.members.borrow_mut();
        let member = &mut members[at];
        let parts = (member.shared.clone(), member.store.clone());
        let common = (member.clock.clone(), member.common.clone(), Some(member.common_life));
        let next = self.start(at, parts, common, member.purged);
        *member = next;
    }

    /// All processes end in order.
    pub(super) async fn end_all(self: &Rc<Self>) {
        let all: Vec<_> = self.members.borrow_mut().drain(..).collect();
        for mut member in all {
            if let Some(last) = member.last.take() {
                last.send(ClusterMail::End);
            }
            self.finish(member.task, false).await;
        }
    }
}
