//! Carries questions about shared objects, and offers of them, between the store and Valkey.
//!
//! Owns whether Valkey is asked at all: after some late answers in a row it is not, until it
//! answers in time again. What is read is judged by the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use bolide_base::limits::{
    SHARED_FULL_MS, SHARED_HEED_MS, SHARED_KEEP_MAX_MS, SHARED_LATE_MAX, SHARED_LOOK_MS,
    SHARED_ORDERS_MAX, SHARED_REST_MS, SHARED_VARY_KEEP_MS,
};
use bolide_cache::disk::format::HEAD_MAX;
use bolide_cache::{
    SharedOffer, SharedOrder, SharedQuestion, SharedUnfit, Sharing, SharingCount, Store,
};
use bolide_valkey::{Line, ObjectAsk, ObjectFound, ObjectOffer, ValkeyFault, ValkeyFaultKind};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::ClusterMail;
use super::session::Report;
use super::setup::ClusterSetup;

/// What carries objects on one connection.
pub(super) struct Carrier {
    pub(super) line: Line,
    pub(super) store: Arc<Store>,
    pub(super) setup: Arc<ClusterSetup>,
    /// The process and the number of the last lease: no other lease has the same.
    pub(super) life: u64,
    pub(super) leases: Arc<AtomicU64>,
    /// Late answers in a row.
    pub(super) late: AtomicU32,
    /// Until when nothing is offered.
    pub(super) full_until: std::sync::Mutex<Option<Instant>>,
    pub(super) mail: mpsc::Sender<ClusterMail>,
    pub(super) number: u64,
}

/// While it is there, Valkey may be asked.
struct Answering(Arc<Store>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.sharing().set_answering(false);
    }
}

impl Carrier {
    fn sharing(&self) -> &Sharing {
        self.store.sharing()
    }

    /// Carries until the connection ends, or is of no use.
    pub(super) async fn carry(self) -> Option<Report> {
        let carrier = Arc::new(self);
        let _closed_at_the_end = Answering(carrier.store.clone());
        let mut tasks = JoinSet::new();
        loop {
            carrier.late.store(0, Ordering::Relaxed);
            carrier.sharing().set_answering(true);
            carrier.carry_while_it_answers(&mut tasks).await;
            // What it is asked and offered goes back meanwhile.
            while let Err(fault) = carrier.look().await {
                if fault.kind != ValkeyFaultKind::Late {
                    return Some(Report::Broken(fault));
                }
            }
        }
    }

    async fn carry_while_it_answers(self: &Arc<Self>, tasks: &mut JoinSet<()>) {
        loop {
            while tasks.try_join_next().is_some() {}
            if tasks.len() >= SHARED_ORDERS_MAX {
                let _one_is_done = tasks.join_next().await;
                continue;
            }
            let order = std::future::poll_fn(|context| self.sharing().poll_order(context)).await;
            let Some(order) = order else { return };
            let carrier = self.clone();
            match order {
                SharedOrder::Ask(question) => {
                    tasks.spawn(async move { carrier.ask(question).await });
                }
                SharedOrder::Offer(offer) => {
                    tasks.spawn(async move { carrier.offer(offer).await });
                }
                SharedOrder::Release(key, token) => {
                    tasks.spawn(async move {
                        if let Err(fault) = carrier.line.release(key, &token).await {
                            carrier.fail(fault).await;
                        }
                    });
                }
            }
        }
    }

    /// Whether Valkey answers in time.
    async fn look(&self) -> Result<(), ValkeyFault> {
        sleep(Duration::from_millis(SHARED_REST_MS)).await;
        self.line.look(self.setup.conf.objects_timeout).await
    }

    /// Asks for an object until there is an answer, or it has taken too long.
    async fn ask(&self, mut question: SharedQuestion) {
        let conf = &self.setup.conf;
        let number = self.leases.fetch_add(1, Ordering::Relaxed);
        let token = format!("{:016x}-{number:x}", self.life);
        let start = Instant::now();
        let (mut mark, mut pause, mut rounds) = (Vec::new(), SHARED_LOOK_MS.0, 0);
        let size_max = conf.objects_max_size + HEAD_MAX as u64 + (1 << 17);
        while start.elapsed() < conf.objects_lease_time {
            let asked = ObjectAsk {
                key: question.key(),
                base: question.base(),
                token: token.as_bytes(),
                lease: conf.objects_lease_time,
                mark: &mark,
                size_max,
            };
            match self.line.ask_object(asked, conf.objects_timeout).await {
                Ok(found) => {
                    self.late.store(0, Ordering::Relaxed);
                    match found {
                        ObjectFound::Bytes(bytes) => {
                            let bytes = bytes.into();
                            let now_ms = bolide_io::process::now().unix_millis;
                            match question.take(&bytes, conf.namespace.as_bytes(), now_ms) {
                                Ok(()) => return,
                                Err((open, SharedUnfit::Ahead))
                                    if start.elapsed().as_millis() < SHARED_HEED_MS.into() =>
                                {
                                    question = open;
                                }
                                Err((open, _)) => {
                                    question = open;
                                    mark = SharedQuestion::mark(&bytes).to_vec();
                                    rounds += 1;
                                    if rounds == 1 {
                                        continue;
                                    }
                                }
                            }
                        }
                        ObjectFound::Held => {}
                        ObjectFound::Leased => {
                            return question.give_back(Some(token.into_bytes().into()));
                        }
                        ObjectFound::Alone => return,
                    }
                }
                Err(fault) => {
                    let key = question.key();
                    // The next question is not asked if this one was one too many.
                    self.weigh(&fault);
                    drop(question);
                    self.tell(fault).await;
                    // The lease may be this node's once Valkey gets to it, and no node fetches.
                    let _unheard = self.line.release(key, token.as_bytes()).await;
                    return;
                }
            }
            sleep(Duration::from_millis(pause)).await;
            pause = (pause * 2).min(SHARED_LOOK_MS.1);
        }
    }

    /// Offers an object, once others have heard of the purges before its fill.
    async fn offer(&self, offer: SharedOffer) {
        let start = Instant::now();
        while offer.is_ahead() && start.elapsed().as_millis() < SHARED_HEED_MS.into() {
            sleep(Duration::from_millis(SHARED_LOOK_MS.0)).await;
        }
        let is_full =
            self.full_until.lock().is_ok_and(|until| until.is_some_and(|at| at > Instant::now()));
        let now_ms = bolide_io::process::now().unix_millis;
        let bytes = offer.bytes(self.setup.conf.namespace.as_bytes(), now_ms);
        let Some((bytes, keep_ms)) = bytes.filter(|_| !is_full) else { return };
        let most = if offer.is_vary() { SHARED_VARY_KEEP_MS } else { SHARED_KEEP_MAX_MS };
        let (keep_ms, key) = (keep_ms.clamp(1, most), offer.key());
        let offered = ObjectOffer { key, bytes: &bytes, keep_ms, lease: offer.lease() };
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
                self.fail(fault).await;
            }
        }
    }

    /// Valkey was late or refused.
    async fn fail(&self, fault: ValkeyFault) {
        self.weigh(&fault);
        self.tell(fault).await;
    }

    /// After some faults in a row Valkey is not asked.
    fn weigh(&self, fault: &ValkeyFault) {
        if fault.kind == ValkeyFaultKind::Late {
            self.sharing().count(SharingCount::Late);
        }
        let late = self.late.fetch_add(1, Ordering::Relaxed) + 1;
        if late >= SHARED_LATE_MAX && fault.kind != ValkeyFaultKind::Full {
            self.sharing().set_answering(false);
        }
    }

    async fn tell(&self, fault: ValkeyFault) {
        let report = Report::Objects(fault);
        let _ended = self.mail.send(ClusterMail::Session(self.number, report)).await;
    }
}
