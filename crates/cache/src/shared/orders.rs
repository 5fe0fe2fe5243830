//! Questions, offers and leases on their way to the thread of the cluster.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bolide_base::Instant;
use bolide_base::limits::SHARED_COPIES;
use bytes::Bytes;

use super::record::{self, SharedRecord};
use crate::disk::{DiskWrite, file_hash};
use crate::growing::Wakes;
use crate::object::{Object, ObjectKind};
use crate::permit::FillPermit;
use crate::store::Store;
use crate::tags::TagVerdict;

/// An order to the thread.
#[derive(Debug)]
pub enum SharedOrder {
    /// Has the store of the cluster this object?
    Ask(SharedQuestion),
    /// It may have this one.
    Offer(SharedOffer),
    /// A fill came to nothing: those who wait for it go on. The key, and the token of the lease.
    Release(u128, Box<[u8]>),
}

impl SharedOrder {
    /// How many kinds there are.
    pub(super) const KINDS: usize = 3;

    /// The number of its kind.
    pub(super) const fn kind(&self) -> usize {
        match self {
            Self::Ask(_) => 0,
            Self::Offer(_) => 1,
            Self::Release(..) => 2,
        }
    }
}

/// What came of a question.
#[derive(Debug)]
pub enum SharedAnswer {
    /// The object is in memory now, or was purged meanwhile: look up again, and wake these.
    Kept(Wakes),
    /// It is to be fetched.
    Absent(Box<FillPermit>),
}

/// Why bytes of the store of the cluster are not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedUnfit {
    /// Their fill has heard of purges that this node has yet to hear of.
    Ahead,
    /// They are foreign, damaged, old, or purged as far as this node can tell.
    Useless,
}

type Reply = Box<dyn FnOnce(SharedAnswer) + Send>;

/// What a question is about, for both of its sides.
struct Slot {
    /// There until the question is answered or taken back, and not while it is being answered.
    parts: Mutex<Option<Box<(FillPermit, Reply)>>>,
    /// When it was asked, in nanoseconds; zero before that is noted.
    asked: AtomicU64,
}

impl Slot {
    fn take(&self) -> Option<Box<(FillPermit, Reply)>> {
        super::lock(&self.parts).take()
    }
}

/// The side of who has asked.
pub struct SharedAsk {
    slot: Arc<Slot>,
    patience: Duration,
    /// When it is waited for no longer.
    until: Instant,
}

impl fmt::Debug for SharedAsk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedAsk").field("until", &self.until).finish_non_exhaustive()
    }
}

impl SharedAsk {
    /// Notes when it was asked; until when it is waited for.
    pub fn note_asked(&mut self, now: Instant) -> Instant {
        self.slot.asked.store(now.as_nanos().max(1), Ordering::Relaxed);
        self.until = now.after(self.patience);
        self.until
    }

    /// When it is waited for no longer.
    #[must_use]
    pub const fn until(&self) -> Instant {
        self.until
    }

    /// Takes the question back; none if it is answered, or just being answered.
    #[must_use]
    pub fn take_back(&self) -> Option<Box<FillPermit>> {
        self.slot.take().map(|parts| Box::new(parts.0))
    }
}

/// A miss that other nodes may have an object for.
pub struct SharedQuestion {
    slot: Arc<Slot>,
    store: Arc<Store>,
    namespace: Box<[u8]>,
    key: u128,
    base: Option<u128>,
}

impl fmt::Debug for SharedQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedQuestion").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The right to fill an object for all nodes. Dropping it lets others go on.
#[derive(Debug)]
pub struct SharedLease {
    store: Arc<Store>,
    key: u128,
    token: Box<[u8]>,
}

impl Drop for SharedLease {
    fn drop(&mut self) {
        let token = std::mem::take(&mut self.token);
        if !token.is_empty() {
            self.store.sharing.push(SharedOrder::Release(self.key, token));
        }
    }
}

/// An object that other nodes may want.
#[derive(Debug)]
pub struct SharedOffer {
    store: Arc<Store>,
    write: DiskWrite,
    /// The room that it has.
    charge: u64,
    lease: Option<SharedLease>,
}

impl Drop for SharedOffer {
    fn drop(&mut self) {
        let all = self.store.sharing.offered.fetch_sub(self.charge, Ordering::Relaxed);
        debug_assert!(all >= self.charge, "an offer has its room");
    }
}

impl SharedQuestion {
    /// What names the object in the store of the cluster.
    #[must_use]
    pub const fn key(&self) -> u128 {
        self.key
    }

    /// What names the page of which the object is a variant.
    #[must_use]
    pub const fn base(&self) -> Option<u128> {
        self.base
    }

    /// When it was asked, once that is noted.
    #[must_use]
    pub fn asked(&self) -> Option<Instant> {
        let nanos = self.slot.asked.load(Ordering::Relaxed);
        (nanos > 0).then(|| Instant::from_nanos(nanos))
    }

    /// Whether an answer is still wanted.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        super::lock(&self.slot.parts).is_some()
    }

    /// Answers with bytes of the store of the cluster, if they are this object, fresh, and no purge
    /// that this node knows has hit it. Otherwise the question is still open.
    ///
    /// # Errors
    ///
    /// The question, and why the bytes are of no use.
    pub fn take(
        self,
        bytes: &Bytes,
        cluster: &[u8],
        now_ms: u64,
    ) -> Result<(), (Self, SharedUnfit)> {
        let Some(parts) = self.slot.take() else { return Ok(()) };
        debug_assert!(parts.0.key().session().is_none(), "private objects are not asked for");
        let figures = &self.store.sharing.figures;
        let read = match self.judge(&parts.0, bytes, cluster, now_ms) {
            Ok(read) => read,
            Err(unfit) => {
                // One that is ahead is looked at again.
                if unfit == SharedUnfit::Useless {
                    figures.unfit.fetch_add(1, Ordering::Relaxed);
                }
                *super::lock(&self.slot.parts) = Some(parts);
                return Err((self, unfit));
            }
        };
        // What a page varies by is no page.
        if read.record.kind != ObjectKind::Vary {
            figures.taken.fetch_add(1, Ordering::Relaxed);
        }
        let (permit, reply) = *parts;
        reply(SharedAnswer::Kept(permit.restore(&read.record, TagVerdict::Good, read.body(bytes))));
        Ok(())
    }

    fn judge<'a>(
        &self,
        permit: &FillPermit,
        bytes: &'a [u8],
        cluster: &[u8],
        now_ms: u64,
    ) -> Result<SharedRecord<'a>, SharedUnfit> {
        let read = record::read(bytes, cluster).ok_or(SharedUnfit::Useless)?;
        let (record, key) = (&read.record, permit.key());
        let is_asked = *record.namespace == *self.namespace
            && record.url == key.url()
            && record.vary == key.vary()
            && record.session.is_empty();
        let is_fresh = record.kind == ObjectKind::Vary || now_ms < record.times.expires_ms;
        if !is_asked || !is_fresh || record.is_stale {
            return Err(SharedUnfit::Useless);
        }
        let bans = {
            let log = super::lock(&permit.store.sharing.log);
            log.spares(read.place, record).ok_or_else(|| {
                match log.last().is_some_and(|last| last < read.place) {
                    true => SharedUnfit::Ahead,
                    false => SharedUnfit::Useless,
                }
            })?
        };
        // Purges note themselves in the log, and do not wait for expressions.
        if bans.iter().any(|ban| ban.hits(record)) {
            return Err(SharedUnfit::Useless);
        }
        Ok(read)
    }

    /// What tells these bytes from others under the same key, so that they are not sent again.
    #[must_use]
    pub fn mark(bytes: &[u8]) -> &[u8] {
        record::mark(bytes)
    }

    /// Nothing is there. With a token this node fetches it for all.
    pub fn give_back(self, token: Option<Box<[u8]>>) {
        let Some(token) = token else { return };
        let (store, key) = (Arc::clone(&self.store), self.key);
        let lease = SharedLease { store, key, token };
        match &mut *super::lock(&self.slot.parts) {
            Some(parts) => parts.0.lease = Some(lease),
            // It was taken back: no other node waits for its fill.
            None => drop(lease),
        }
    }
}

impl Drop for SharedQuestion {
    fn drop(&mut self) {
        if let Some(parts) = self.slot.take() {
            let (permit, reply) = *parts;
            reply(SharedAnswer::Absent(Box::new(permit)));
        }
    }
}

impl SharedOffer {
    /// What names the object in the store of the cluster.
    #[must_use]
    pub fn key(&self) -> u128 {
        self.write.hash()
    }

    /// Whether it says what a page varies by.
    #[must_use]
    pub fn is_vary(&self) -> bool {
        self.write.object.kind() == ObjectKind::Vary
    }

    /// Whether others have yet to hear of purges that came before its fill: until then they would
    /// not take it.
    #[must_use]
    pub fn is_ahead(&self) -> bool {
        super::lock(&self.store.sharing.log).is_ahead(self.write.sequence)
    }

    /// The key and token of the lease.
    #[must_use]
    pub fn lease(&self) -> Option<(u128, &[u8])> {
        self.lease.as_ref().map(|lease| (lease.key, &*lease.token))
    }

    /// The bytes for the store of the cluster, and for how many milliseconds they are of use. None
    /// if it is not known where among purges its fill began, or it is of no use any more.
    #[must_use]
    pub fn bytes(&self, cluster: &[u8], now_ms: u64) -> Option<(Vec<u8>, u64)> {
        let object = &self.write.object;
        let until = object.times().stale_until_ms();
        let place = super::lock(&self.store.sharing.log).place_of(self.write.sequence)?;
        let is_good = now_ms < object.times().expires_ms && !object.is_softly_purged();
        let bytes = is_good.then(|| record::write(cluster, place, &self.write))??;
        Some((bytes, until.saturating_sub(now_ms)))
    }

    /// The store of the cluster has dealt with it, its lease included.
    pub fn settle(mut self) {
        if let Some(lease) = &mut self.lease {
            lease.token = Box::default();
        }
    }
}

impl FillPermit {
    /// Whether other nodes may have an object for it.
    #[must_use]
    pub fn may_be_shared(&self) -> bool {
        let key = self.key();
        self.store.sharing.is_answering()
            && key.session().is_none()
            && self.store.namespaces.may_share(key.namespace())
    }

    /// Asks other nodes. The reply comes from another thread, or at once, unless the question is
    /// taken back.
    pub fn ask_nodes(self, reply: impl FnOnce(SharedAnswer) + Send + 'static) -> SharedAsk {
        let (store, key) = (Arc::clone(&self.store), self.key());
        let name = store.namespaces.name(key.namespace()).unwrap_or_default();
        let of = |vary: &[u8]| file_hash(name, key.url(), vary, b"");
        let base = (!key.vary().is_empty()).then(|| of(b""));
        let (hash, namespace) = (of(key.vary()), Box::from(name));
        let parts = Mutex::new(Some(Box::new((self, Box::new(reply) as Reply))));
        let slot = Arc::new(Slot { parts, asked: AtomicU64::new(0) });
        let sharing = &store.sharing;
        let patience = Duration::from_millis(sharing.patience_ms.load(Ordering::Relaxed));
        let asked = SharedAsk { slot: slot.clone(), patience, until: Instant::default() };
        sharing.figures.asked.fetch_add(1, Ordering::Relaxed);
        let own = Arc::clone(&store);
        let question = SharedQuestion { slot, store: own, namespace, key: hash, base };
        sharing.push(SharedOrder::Ask(question));
        asked
    }
}

/// Offers an object to other nodes, if objects are shared. `tags` are packed.
pub(crate) fn offer(
    store: &Arc<Store>,
    object: &Arc<Object>,
    sequence: u64,
    tags: &[u8],
    lease: Option<SharedLease>,
) {
    let sharing = &store.sharing;
    let is_meant = sharing.is_answering()
        && object.session().is_none()
        && store.namespaces.may_share(object.namespace())
        && sharing.has_size(object.body_len())
        && object.outside().is_none();
    let Some(namespace) = store.namespaces.name(object.namespace()).filter(|_| is_meant) else {
        return;
    };
    debug_assert!(sequence <= store.generation(), "a fill began after purges that there were");
    let (object, namespace) = (Arc::clone(object), namespace.into());
    let charge = object.charge().saturating_add(SHARED_COPIES.saturating_mul(object.body_len()));
    if !sharing.take_room(charge) {
        return;
    }
    let store = Arc::clone(store);
    let write = DiskWrite { object, sequence, tags: tags.into(), namespace };
    let offer = SharedOffer { store: Arc::clone(&store), write, charge, lease };
    store.sharing.push(SharedOrder::Offer(offer));
}
