//! Questions, offers and leases on their way to the thread of the cluster.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::record::{self, SharedRecord};
use super::{Sharing, StreamPlace};
use crate::AbandonReason;
use crate::disk::format::unpack_tags;
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
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Offer(offer) => offer.charge,
            Self::Ask(_) | Self::Release(..) => 0,
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

/// A miss that other nodes may have an object for.
pub struct SharedQuestion {
    /// There until the question is answered.
    parts: Option<Box<(FillPermit, Reply)>>,
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
    /// Its bytes when it was offered, which compressed forms raise.
    charge: u64,
    lease: Option<SharedLease>,
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

    /// Answers with bytes of the store of the cluster, if they are this object, fresh, and no purge
    /// that this node knows has hit it. Otherwise the question is still open.
    ///
    /// # Errors
    ///
    /// The question, and why the bytes are of no use.
    pub fn take(
        mut self,
        bytes: &Bytes,
        cluster: &[u8],
        now_ms: u64,
    ) -> Result<(), (Self, SharedUnfit)> {
        let Some(parts) = self.parts.take() else { return Ok(()) };
        let (permit, reply) = *parts;
        let store = Arc::clone(&permit.store);
        let figures = &store.sharing.figures;
        let read = match self.judge(&permit, bytes, cluster, now_ms) {
            Ok(read) => read,
            Err(unfit) => {
                figures.unfit.fetch_add(1, Ordering::Relaxed);
                self.parts = Some(Box::new((permit, reply)));
                return Err((self, unfit));
            }
        };
        figures.taken.fetch_add(1, Ordering::Relaxed);
        let wakes = match read.record.kind {
            ObjectKind::Vary => {
                let names: Vec<&[u8]> = read.record.head.split(|byte| *byte == b',').collect();
                permit.store.restore_vary(&permit.key(), &names);
                permit.abandon(AbandonReason::Gone)
            }
            _ => {
                let tags = unpack_tags(read.record.tags);
                permit.restore_content(&read.record, TagVerdict::Good, read.body(bytes), &tags)
            }
        };
        reply(SharedAnswer::Kept(wakes));
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
        let log = super::lock(&permit.store.sharing.log);
        match log.spares(read.place, record) {
            true => Ok(read),
            false if log.last().is_some_and(|last| last < read.place) => Err(SharedUnfit::Ahead),
            false => Err(SharedUnfit::Useless),
        }
    }

    /// What tells these bytes from others under the same key, so that they are not sent again.
    #[must_use]
    pub fn mark(bytes: &[u8]) -> &[u8] {
        record::mark(bytes)
    }

    /// Nothing is there. With a token this node fetches it for all.
    pub fn give_back(mut self, token: Option<Box<[u8]>>) {
        if let (Some(parts), Some(token)) = (&mut self.parts, token) {
            let (store, key) = (Arc::clone(&parts.0.store), self.key);
            parts.0.lease = Some(SharedLease { store, key, token });
        }
    }
}

impl Drop for SharedQuestion {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
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

impl Sharing {
    /// The place of the last entry; for tests and reports.
    #[must_use]
    pub fn place(&self) -> Option<StreamPlace> {
        super::lock(&self.log).last()
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

    /// Asks other nodes. The reply comes from another thread, or at once.
    pub fn ask_nodes(self, reply: impl FnOnce(SharedAnswer) + Send + 'static) {
        let (store, key) = (Arc::clone(&self.store), self.key());
        let name = store.namespaces.name(key.namespace()).unwrap_or_default();
        let of = |vary: &[u8]| file_hash(name, key.url(), vary, b"");
        let base = (!key.vary().is_empty()).then(|| of(b""));
        let (hash, namespace) = (of(key.vary()), Box::from(name));
        let parts = Some(Box::new((self, Box::new(reply) as Reply)));
        store.sharing.figures.asked.fetch_add(1, Ordering::Relaxed);
        store.sharing.push(SharedOrder::Ask(SharedQuestion { parts, namespace, key: hash, base }));
    }
}

/// Offers an object to other nodes, if objects are shared. `tags` are packed.
pub(crate) fn offer(
    store: &Arc<Store>,
    object: &Arc<Object>,
    sequence: u64,
    tags: Box<[u8]>,
    lease: Option<SharedLease>,
) {
    let sharing = &store.sharing;
    let is_meant = sharing.is_answering()
        && object.session().is_none()
        && store.namespaces.may_share(object.namespace())
        && object.body_len() <= sharing.size_max.load(Ordering::Relaxed)
        && object.outside().is_none();
    let Some(namespace) = store.namespaces.name(object.namespace()).filter(|_| is_meant) else {
        return;
    };
    debug_assert!(sequence <= store.generation(), "a fill began after purges that there were");
    let (object, namespace) = (Arc::clone(object), namespace.into());
    let (store, charge) = (Arc::clone(store), object.charge());
    let write = DiskWrite { object, sequence, tags, namespace };
    sharing.push(SharedOrder::Offer(SharedOffer { store, write, charge, lease }));
}
