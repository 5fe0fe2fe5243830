//! Questions, offers and leases for the cluster thread.

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
use crate::key::CacheKey;
use crate::object::{Object, ObjectKind};
use crate::permit::FillPermit;
use crate::store::Store;
use crate::tags::TagVerdict;

/// An order for the cluster thread.
#[derive(Debug)]
pub enum SharedOrder {
    /// Ask the shared store for this object.
    Ask(SharedQuestion),
    /// Send this object to the shared store.
    Offer(SharedOffer),
    /// A fill failed: release the lease, so that waiting nodes continue. The key, and the token of
    /// the lease.
    Release(u128, Box<[u8]>),
    /// A fill continues under another key: move its lease there, so that nodes which do not ask
    /// for that key continue. Both keys, and the token of the lease.
    Move(u128, u128, Box<[u8]>),
}

impl SharedOrder {
    /// The number of kinds.
    pub(super) const KINDS: usize = 3;

    /// The index of its kind.
    pub(super) const fn kind(&self) -> usize {
        match self {
            Self::Ask(_) => 0,
            Self::Offer(_) => 1,
            Self::Release(..) | Self::Move(..) => 2,
        }
    }
}

/// Which other nodes ask for the key to which a fill moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedBy {
    /// Those that wait for the fill, once they know what varies: it is a variant of their key.
    Waiting,
    /// Others, later.
    Others,
    /// None.
    NoNode,
}

/// The result of a question.
#[derive(Debug)]
pub enum SharedAnswer {
    /// The object is in memory now, or was purged meanwhile: look up again, and wake these.
    Kept(Wakes),
    /// The caller has to fetch the object.
    Absent(Box<FillPermit>),
}

/// Why an object of another node is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedUnfit {
    /// Its fill is later than purges that this node has not received yet.
    Ahead,
    /// It is foreign, damaged, too old, or purged as far as this node knows.
    Useless,
}

type Reply = Box<dyn FnOnce(SharedAnswer) + Send>;

/// A question, shared by the asking worker and the cluster thread.
struct Slot {
    /// Present until the question is answered or withdrawn, except during an answer.
    parts: Mutex<Option<Box<(FillPermit, Reply)>>>,
    /// When it was sent, in nanoseconds; zero before.
    asked: AtomicU64,
}

impl Slot {
    fn take(&self) -> Option<Box<(FillPermit, Reply)>> {
        super::lock(&self.parts).take()
    }
}

/// The handle of the asking worker.
pub struct SharedAsk {
    slot: Arc<Slot>,
    patience: Duration,
    /// When it times out.
    until: Instant,
}

impl fmt::Debug for SharedAsk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedAsk").field("until", &self.until).finish_non_exhaustive()
    }
}

impl SharedAsk {
    /// Records when it was sent; returns when it times out.
    pub fn mark_sent(&mut self, now: Instant) -> Instant {
        self.slot.asked.store(now.as_nanos().max(1), Ordering::Relaxed);
        self.until = now.after(self.patience);
        self.until
    }

    /// When it times out.
    #[must_use]
    pub const fn until(&self) -> Instant {
        self.until
    }

    /// Withdraws the question; `None` if it is answered or being answered.
    #[must_use]
    pub fn take_back(&self) -> Option<Box<FillPermit>> {
        self.slot.take().map(|parts| Box::new(parts.0))
    }
}

/// A miss for which the shared store may have an object.
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

/// The right to fill an object for all nodes, until `Sharing::take_leases`. Dropping it releases
/// it.
#[derive(Debug)]
pub struct SharedLease {
    store: Arc<Store>,
    key: u128,
    token: Box<[u8]>,
}

impl SharedLease {
    fn new(store: Arc<Store>, key: u128, token: Box<[u8]>) -> Self {
        super::lock(&store.sharing.leases).insert(token.clone(), key);
        Self { store, key, token }
    }

    /// Whether it is not released yet.
    fn is_held(&self) -> bool {
        super::lock(&self.store.sharing.leases).contains_key(&self.token)
    }

    /// It has ended. Returns whether it was held.
    fn end(&self) -> bool {
        super::lock(&self.store.sharing.leases).remove(&self.token).is_some()
    }

    /// The same lease for this key of the store.
    pub(crate) fn at(mut self, store: &Store, key: &CacheKey<'_>) -> Self {
        debug_assert!(key.session().is_none(), "other nodes do not wait for private objects");
        let name = store.namespaces.name(key.namespace()).unwrap_or_default();
        let to = file_hash(name, key.url(), key.vary(), b"");
        if to != self.key && self.end() {
            store.sharing.push(SharedOrder::Move(self.key, to, self.token.clone()));
            super::lock(&store.sharing.leases).insert(self.token.clone(), to);
            self.key = to;
        }
        self
    }
}

impl Drop for SharedLease {
    fn drop(&mut self) {
        if self.end() {
            let token = std::mem::take(&mut self.token);
            self.store.sharing.push(SharedOrder::Release(self.key, token));
        }
    }
}

/// An object that is offered to other nodes.
#[derive(Debug)]
pub struct SharedOffer {
    store: Arc<Store>,
    write: DiskWrite,
    /// The reserved bytes.
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
    /// The key of the object in the shared store.
    #[must_use]
    pub const fn key(&self) -> u128 {
        self.key
    }

    /// The key of the page of which the object is a variant.
    #[must_use]
    pub const fn base(&self) -> Option<u128> {
        self.base
    }

    /// When it was sent, if it was.
    #[must_use]
    pub fn asked(&self) -> Option<Instant> {
        let nanos = self.slot.asked.load(Ordering::Relaxed);
        (nanos > 0).then(|| Instant::from_nanos(nanos))
    }

    /// Whether the asking worker still waits.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        super::lock(&self.slot.parts).is_some()
    }

    /// Answers with the bytes of the shared store, if they are this object, fresh, and not hit by a
    /// purge that this node knows. Otherwise the question remains open.
    ///
    /// # Errors
    ///
    /// The question, and why the bytes were not accepted.
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
                // One that is ahead is checked again later.
                if unfit == SharedUnfit::Useless {
                    figures.unfit.fetch_add(1, Ordering::Relaxed);
                }
                *super::lock(&self.slot.parts) = Some(parts);
                return Err((self, unfit));
            }
        };
        // A list of vary names is not a page.
        if read.record.kind != ObjectKind::Vary {
            figures.taken.fetch_add(1, Ordering::Relaxed);
        }
        let (permit, reply) = *parts;
        reply(SharedAnswer::Kept(permit.restore(&read.record, TagVerdict::Good, read.body)));
        Ok(())
    }

    fn judge<'a>(
        &self,
        permit: &FillPermit,
        bytes: &'a Bytes,
        cluster: &[u8],
        now_ms: u64,
    ) -> Result<SharedRecord<'a>, SharedUnfit> {
        let sharing = &self.store.sharing;
        let read = record::read(bytes, cluster, |body_len| sharing.has_size(body_len));
        let read = read.ok_or(SharedUnfit::Useless)?;
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
        // The lock of the log is released: bans are evaluated without it.
        if bans.iter().any(|ban| ban.hits(record)) {
            return Err(SharedUnfit::Useless);
        }
        Ok(read)
    }

    /// The part of the bytes that distinguishes them from other objects under the same key, so that
    /// the same bytes are not sent twice.
    #[must_use]
    pub fn mark(bytes: &[u8]) -> &[u8] {
        record::mark(bytes)
    }

    /// The shared store has nothing. With a token this node has the lease and fetches for all
    /// nodes.
    pub fn give_back(self, token: Option<Box<[u8]>>) {
        let Some(token) = token else { return };
        let (store, key) = (Arc::clone(&self.store), self.key);
        let lease = SharedLease::new(store, key, token);
        match &mut *super::lock(&self.slot.parts) {
            Some(parts) => parts.0.lease = Some(lease),
            // It was withdrawn: no other node should wait for its fill.
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
    /// The key of the object in the shared store.
    #[must_use]
    pub fn key(&self) -> u128 {
        self.write.hash()
    }

    /// Whether it is a list of vary names instead of a page.
    #[must_use]
    pub fn is_vary(&self) -> bool {
        self.write.object.kind() == ObjectKind::Vary
    }

    /// Whether purges before its fill have not reached the other nodes yet: until then they would
    /// not accept it.
    #[must_use]
    pub fn is_ahead(&self) -> bool {
        super::lock(&self.store.sharing.log).is_ahead(self.write.sequence)
    }

    /// The key and token of the lease.
    #[must_use]
    pub fn lease(&self) -> Option<(u128, &[u8])> {
        let held = self.lease.as_ref().filter(|lease| lease.is_held());
        held.map(|lease| (lease.key, &*lease.token))
    }

    /// The bytes for the shared store, and their lifetime in milliseconds. `None` if the place of
    /// its fill among the purges is unknown, or the object is not usable any more.
    #[must_use]
    pub fn bytes(&self, cluster: &[u8], now_ms: u64) -> Option<(Vec<u8>, u64)> {
        let object = &self.write.object;
        let until = object.times().stale_until_ms();
        let place = super::lock(&self.store.sharing.log).place_of(self.write.sequence)?;
        let is_good = now_ms < object.times().expires_ms && !object.is_softly_purged();
        let bytes = is_good.then(|| record::write(cluster, place, &self.write))??;
        Some((bytes, until.saturating_sub(now_ms)))
    }

    /// The shared store has processed the offer and its lease.
    pub fn settle(self) {
        if let Some(lease) = &self.lease {
            lease.end();
        }
    }
}

impl FillPermit {
    /// Whether other nodes may have its object.
    #[must_use]
    pub fn may_be_shared(&self) -> bool {
        let key = self.key();
        self.store.sharing.is_answering()
            && key.session().is_none()
            && self.store.namespaces.may_share(key.namespace())
    }

    /// Asks other nodes. The reply comes from another thread, or at once; none comes if the
    /// question is withdrawn.
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
