//! Transfers lookups and offers of shared objects between the store and Valkey.
//!
//! Owns whether Valkey is asked at all: after several consecutive faults it is not, until it
//! answers in time again. The store checks the received objects. A fault of this connection does
//! not concern purges.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bolide_base::limits::{
    SHARED_DESK_MS, SHARED_FAULTS_MAX, SHARED_FULL_MS, SHARED_HELD_MAX, SHARED_KEEP_MAX_MS,
    SHARED_LOOK_MS, SHARED_ORDERS_MAX, SHARED_PURGE_STEP_MS, SHARED_PURGE_WAIT_MS, SHARED_REST_MS,
    SHARED_VARY_KEEP_MS,
};
use bolide_cache::disk::format::HEAD_MAX;
use bolide_cache::{
    SharedOffer, SharedOrder, SharedQuestion, SharedUnfit, Sharing, SharingCount, Store,
};
use bolide_valkey::{
    Connector, Line, ObjectAsk, ObjectFound, ObjectOffer, ValkeyFault, ValkeyFaultKind,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::ClusterMail;
use super::clock::NodeClock;
use super::session::Report;
use super::setup::ClusterSetup;

/// Transfers objects, on a connection of its own, so that purges do not depend on it.
pub(super) struct Carrier {
    pub(super) connector: Arc<Connector>,
    pub(super) clock: NodeClock,
    /// A connection to the server with the keys, to be duplicated.
    pub(super) like: Line,
    pub(super) store: Arc<Store>,
    pub(super) setup: Arc<ClusterSetup>,
    /// Process and number of the last lease: no other lease has the same.
    pub(super) life: u64,
    pub(super) leases: Arc<AtomicU64>,
    pub(super) mail: mpsc::Sender<ClusterMail>,
    pub(super) number: u64,
}

/// Transfers objects on one connection.
struct Porter {
    line: Line,
    clock: NodeClock,
    store: Arc<Store>,
    setup: Arc<ClusterSetup>,
    life: u64,
    leases: Arc<AtomicU64>,
    /// Consecutive faults.
    faults: AtomicU32,
    /// Lookups in progress, and those of them that wait for another node.
    asks: AtomicUsize,
    held: AtomicUsize,
    /// Offers in progress.
    offers: AtomicUsize,
    /// Until when nothing is offered.
    full_until: std::sync::Mutex<Option<Instant>>,
    mail: mpsc::Sender<ClusterMail>,
    number: u64,
}

/// While it exists, Valkey may be asked.
struct Answering(Arc<Store>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.sharing().set_answering(false);
    }
}

/// One of a limited number, while it exists.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn among(count: &'a AtomicUsize, most: usize) -> Option<Self> {
        let more = |count: usize| (count < most).then_some(count + 1);
        let counted = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        counted.is_ok().then_some(Self(count))
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The result of a lookup.
enum Looked {
    /// The question was answered.
    Answered,
    /// Look up again at once: the bytes may have changed.
    Again(SharedQuestion),
    /// Look up again later.
    Later(SharedQuestion),
}

impl Carrier {
    /// Transfers while the connection for purges lasts.
    pub(super) async fn carry(self) -> Option<Report> {
        let _closed_at_the_end = Answering(self.store.clone());
        loop {
            match self.connector.another(&self.like).await {
                Ok(line) => {
                    let porter = Arc::new(self.porter(line));
                    porter.carry().await;
                    self.store.sharing().set_answering(false);
                }
                Err(fault) => report_fault(&self.mail, self.number, fault),
            }
            sleep(Duration::from_millis(SHARED_REST_MS)).await;
        }
    }

    fn porter(&self, line: Line) -> Porter {
        Porter {
            line,
            clock: self.clock.clone(),
            store: self.store.clone(),
            setup: self.setup.clone(),
            life: self.life,
            leases: self.leases.clone(),
            faults: AtomicU32::new(0),
            asks: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            offers: AtomicUsize::new(0),
            full_until: std::sync::Mutex::default(),
            mail: self.mail.clone(),
            number: self.number,
        }
    }
}

/// Reports a fault to the node. If its channel is full, one more fault does not matter.
fn report_fault(mail: &mpsc::Sender<ClusterMail>, number: u64, fault: ValkeyFault) {
    let _full = mail.try_send(ClusterMail::Session(number, Report::Objects(fault)));
}

impl Porter {
    fn sharing(&self) -> &Sharing {
        self.store.sharing()
    }

    /// Transfers until the connection fails.
    async fn carry(self: &Arc<Self>) {
        let mut tasks = JoinSet::new();
        loop {
            self.faults.store(0, Ordering::Relaxed);
            self.sharing().set_answering(true);
            self.carry_while_it_answers(&mut tasks).await;
            // Meanwhile lookups and offers are returned.
            while let Err(fault) = self.look().await {
                if fault.kind != ValkeyFaultKind::Late {
                    return report_fault(&self.mail, self.number, fault);
                }
            }
        }
    }

    async fn carry_while_it_answers(self: &Arc<Self>, tasks: &mut JoinSet<()>) {
        loop {
            while tasks.try_join_next().is_some() {}
            let order = std::future::poll_fn(|context| self.sharing().poll_order(context)).await;
            let Some(order) = order else { return };
            let porter = self.clone();
            // Offers are bounded by themselves, and releases of leases by the lookups before them:
            // other nodes wait for releases, so they do not wait themselves.
            match order {
                SharedOrder::Ask(question) => drop(tasks.spawn(async move {
                    porter.ask(question).await;
                })),
                SharedOrder::Offer(offer) => drop(tasks.spawn(async move {
                    porter.offer(offer).await;
                })),
                SharedOrder::Release(key, token) => drop(tasks.spawn(async move {
                    let released = porter.line.release(key, &token).await;
                    released.unwrap_or_else(|fault| porter.fail(fault));
                })),
                SharedOrder::Move(from, to, token) => drop(tasks.spawn(async move {
                    let time = porter.setup.conf.objects_lease_time;
                    let moved = porter.line.move_lease((from, to), &token, time).await;
                    moved.unwrap_or_else(|fault| porter.fail(fault));
                })),
            }
        }
    }

    /// Whether Valkey answers in time.
    async fn look(&self) -> Result<(), ValkeyFault> {
        sleep(Duration::from_millis(SHARED_REST_MS)).await;
        self.line.look(self.setup.conf.objects_timeout).await
    }

    /// Looks up an object until there is an answer or a timeout. A lookup over the limit, or one
    /// that was queued for too long, is returned.
    async fn ask(&self, mut question: SharedQuestion) {
        let conf = &self.setup.conf;
        let began = question.asked().unwrap_or_else(|| self.clock.now().mono);
        let waited = || self.clock.now().mono.since(began);
        let Some(_one) = Counted::among(&self.asks, SHARED_ORDERS_MAX) else { return };
        if waited() > conf.objects_timeout.max(Duration::from_millis(SHARED_DESK_MS)) {
            return self.sharing().count(SharingCount::Late);
        }
        let number = self.leases.fetch_add(1, Ordering::Relaxed);
        let token = format!("{:016x}-{number:x}", self.life);
        let (mut mark, mut pause, mut rounds) = (Vec::new(), SHARED_LOOK_MS.0, 0);
        let mut held = None;
        while waited() < conf.objects_lease_time && question.is_wanted() {
            let asked = ObjectAsk {
                key: question.key(),
                base: question.base(),
                token: token.as_bytes(),
                lease: conf.objects_lease_time,
                mark: &mark,
                size_max: conf.objects_max_size + HEAD_MAX as u64 + (1 << 17),
                min_uses: conf.objects_min_uses,
            };
            let found = match self.line.ask_object(asked, conf.objects_timeout).await {
                Ok(found) => found,
                Err(fault) => return self.give_up(question, &token, fault).await,
            };
            self.faults.store(0, Ordering::Relaxed);
            let looked = match found {
                ObjectFound::Bytes(bytes) => {
                    let is_patient = waited().as_millis() < SHARED_PURGE_WAIT_MS.into();
                    self.take(question, bytes, is_patient, (&mut mark, &mut rounds))
                }
                ObjectFound::Held => Looked::Later(question),
                ObjectFound::Leased => {
                    question.give_back(Some(token.as_bytes().into()));
                    Looked::Answered
                }
                ObjectFound::Alone => Looked::Answered,
            };
            question = match looked {
                Looked::Answered => return,
                Looked::Again(question) => question,
                Looked::Later(question) => {
                    // If many wait for it, it is better fetched from the application.
                    held = held.or_else(|| Counted::among(&self.held, SHARED_HELD_MAX));
                    if held.is_none() {
                        return;
                    }
                    sleep(Duration::from_millis(pause)).await;
                    pause = (pause * 2).min(SHARED_LOOK_MS.1);
                    question
                }
            };
        }
    }

    /// Answers with an object, if it can be used.
    fn take(
        &self,
        question: SharedQuestion,
        bytes: Vec<u8>,
        is_patient: bool,
        (mark, rounds): (&mut Vec<u8>, &mut u32),
    ) -> Looked {
        let (now_ms, bytes) = (self.clock.now().unix_millis, bytes.into());
        match question.take(&bytes, self.setup.conf.namespace.as_bytes(), now_ms) {
            Ok(()) => Looked::Answered,
            Err((open, SharedUnfit::Ahead)) if is_patient => Looked::Later(open),
            Err((open, _)) => {
                *mark = SharedQuestion::mark(&bytes).to_vec();
                *rounds += 1;
                if *rounds == 1 { Looked::Again(open) } else { Looked::Later(open) }
            }
        }
    }

    async fn give_up(&self, question: SharedQuestion, token: &str, fault: ValkeyFault) {
        let key = question.key();
        // The next lookup is not sent if this one exceeded the limit.
        self.fail(fault);
        drop(question);
        // The lease may be granted to this node when Valkey gets to it, and then no node would
        // fetch.
        let _lost = self.line.release(key, token.as_bytes()).await;
    }

    /// Offers an object, once other nodes have received the purges before its fill.
    async fn offer(&self, offer: SharedOffer) {
        let Some(_one) = Counted::among(&self.offers, SHARED_ORDERS_MAX) else { return };
        let start = Instant::now();
        while offer.is_ahead() && start.elapsed().as_millis() < SHARED_PURGE_WAIT_MS.into() {
            sleep(Duration::from_millis(SHARED_PURGE_STEP_MS)).await;
        }
        let is_full =
            self.full_until.lock().is_ok_and(|until| until.is_some_and(|at| at > Instant::now()));
        let now_ms = self.clock.now().unix_millis;
        let bytes = offer.bytes(self.setup.conf.namespace.as_bytes(), now_ms);
        let Some((bytes, keep_ms)) = bytes.filter(|_| !is_full) else { return };
        let most = if offer.is_vary() { SHARED_VARY_KEEP_MS } else { SHARED_KEEP_MAX_MS };
        let (keep_ms, key) = (keep_ms.clamp(1, most), offer.key());
        let (lease, min_uses) = (offer.lease(), self.setup.conf.objects_min_uses);
        let offered = ObjectOffer { key, bytes: &bytes, keep_ms, lease, min_uses };
        let taken = match offer.is_vary() {
            true => self.line.offer_vary(offered).await.map(|()| true),
            false => self.line.offer_object(offered).await,
        };
        match taken {
            Ok(taken) => {
                offer.settle();
                if taken {
                    self.sharing().count(SharingCount::Offered);
                }
            }
            Err(fault) => {
                if fault.kind == ValkeyFaultKind::Full
                    && let Ok(mut until) = self.full_until.lock()
                {
                    *until = Some(Instant::now() + Duration::from_millis(SHARED_FULL_MS));
                }
                self.fail(fault);
            }
        }
    }

    /// Valkey was late or refused: after several consecutive faults, or without a connection, it is
    /// not asked. If it is out of memory, it still answers lookups.
    fn fail(&self, fault: ValkeyFault) {
        if fault.kind == ValkeyFaultKind::Late {
            self.sharing().count(SharingCount::Late);
        }
        if fault.kind != ValkeyFaultKind::Full {
            let faults = self.faults.fetch_add(1, Ordering::Relaxed) + 1;
            if faults >= SHARED_FAULTS_MAX || !self.line.is_connected() {
                self.sharing().set_answering(false);
            }
        }
        report_fault(&self.mail, self.number, fault);
    }
}
