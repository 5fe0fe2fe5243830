//! The permit to fill one key. One exchange of one worker holds it.
//!
//! INVARIANT: the end of a permit wakes its waiters, and only after the index has the result. The
//! waiters of a dropped permit are woken in the next turn.

use std::collections::HashSet;
use std::sync::Arc;

use bolide_base::Instant;
use bytes::Bytes;

use crate::disk::format::{Record, pack_tags};
use crate::fills::{FillMoment, Rival};
use crate::growing::{Follower, GrowingObject, Waited, Waiter, Wakes};
use crate::key::CacheKey;
use crate::object::{Object, ObjectHead, ObjectParts, pack_head};
use crate::shared::{AskedBy, SharedLease, offer};
use crate::store::Store;
use crate::tags::{TAGS_MAX, TagPurge, TagVerdict, Tags, lock};

/// LIMIT: bytes of a stored `ETag`.
const ETAG_SIZE_MAX: usize = 1024;
/// LIMIT: bytes of a body that is stored where the memory of the store is short.
const SMALL: u64 = 64 << 10;

/// Why a fill was abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbandonReason {
    /// The response is uncacheable: lookups of this key pass until then.
    Uncacheable {
        /// The end of the marker, in the caller's milliseconds.
        until_ms: u64,
    },
    /// The upstream failed: a stale object is served without another revalidation until then.
    Failed {
        /// The current time.
        now_ms: u64,
        /// The end of the suspension.
        rest_until_ms: u64,
    },
    /// The upstream failed: lookups of this key get this status until then.
    Refused {
        /// The status to send.
        status: u16,
        /// The end of the marker, in the caller's milliseconds.
        until_ms: u64,
    },
    /// No result: the next lookup gets a permit.
    Gone,
}

impl AbandonReason {
    /// Until when lookups pass, if they do.
    #[must_use]
    pub const fn until_ms(self) -> Option<u64> {
        match self {
            Self::Uncacheable { until_ms } => Some(until_ms),
            Self::Failed { .. } | Self::Refused { .. } | Self::Gone => None,
        }
    }
}

/// The result of a fill.
#[derive(Debug)]
pub struct Committed {
    /// The object, if it was stored: not purged meanwhile and not too large.
    pub object: Option<Arc<Object>>,
    /// The waiters to wake.
    pub wakes: Wakes,
}

/// A fill that continues under another key.
#[derive(Debug)]
pub struct Moved {
    /// `None` if another fill of that key is in progress: send the response and store nothing.
    pub permit: Option<FillPermit>,
    /// The followers of the old key, who look up again.
    pub wakes: Wakes,
}

/// The permit, and the duty, to fetch one object. Dropping it abandons the fill.
#[must_use = "others wait for this fill"]
#[derive(Debug)]
pub struct FillPermit {
    pub(crate) store: Arc<Store>,
    growing: Arc<GrowingObject>,
    spent: bool,
    overflown: bool,
    /// See [`Self::pass_on`].
    passes_on: bool,
    /// Other nodes wait for this fill.
    pub(crate) lease: Option<SharedLease>,
    /// No other node asks for its key: the object is not offered.
    stays_here: bool,
}

impl FillPermit {
    pub(crate) const fn new(store: Arc<Store>, growing: Arc<GrowingObject>) -> Self {
        Self {
            store,
            growing,
            spent: false,
            overflown: false,
            passes_on: false,
            lease: None,
            stays_here: false,
        }
    }

    /// The same permit for a key that no other node asks for.
    pub(crate) fn here(mut self) -> Self {
        self.stays_here = true;
        self
    }

    /// A follower of this fill, for the exchange with the permit.
    #[must_use]
    pub fn follow(&self) -> Follower {
        Follower::new(Arc::clone(&self.growing), self.growing.generation)
    }

    /// Records when the request was sent upstream, by a monotonic clock. Only the first call
    /// counts.
    pub fn mark_sent(&self, at: Instant) {
        self.growing.mark_sent(at);
    }

    /// Registers a waiter as [`Follower::wait`] does before the first read.
    pub fn join(&self, waiter: Waiter) -> Waited {
        self.follow().wait(waiter)
    }

    /// The object under this key that is too old for a hit: to revalidate, or to serve on an error
    /// within stale-if-error.
    #[must_use]
    pub fn stale(&self) -> Option<&Arc<Object>> {
        self.growing.stale.as_ref()
    }

    /// The part of the fill that followers share.
    #[must_use]
    pub const fn growing(&self) -> &Arc<GrowingObject> {
        &self.growing
    }

    /// Whether a follower on any worker reads the fill.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.growing.is_followed()
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> CacheKey<'_> {
        self.growing.key.key()
    }

    /// Whether size, tags and purges still allow to store the response.
    #[must_use]
    pub fn is_storable(&self) -> bool {
        let limit = self.store.limits.object_bytes;
        let expected = self.growing.head().and_then(|head| head.length).unwrap_or(0);
        !(self.overflown || self.passes_on)
            && expected.max(self.growing.size()) <= limit
            && (self.growing.size() <= SMALL || self.store.memory.has_room())
            && !self.growing.is_killed(&self.store.tags)
    }

    /// Continues the fill without storing it: the response is too large, or a purge hit it. No
    /// request is coalesced with it from now on. Its followers read on, and bytes that all of
    /// them have are freed. Returns false if it has no reader.
    #[must_use]
    pub fn pass_on(&mut self, until_ms: Option<u64>) -> bool {
        debug_assert!(!self.spent, "an ended permit fills nothing");
        if !self.passes_on {
            self.passes_on = true;
            self.lease = None;
            if let Some(until_ms) = until_ms {
                self.store.remember_pass(&self.growing.key.key(), until_ms);
            }
            self.store.end_storing(&self.growing);
            self.growing.pass_on();
        }
        self.growing.settle(&self.store.memory);
        self.growing.is_followed()
    }

    /// Whether no more of a response that is not stored is to be read now: the memory of the store
    /// is short, and a follower has not taken what has come. One that takes nothing for ten seconds
    /// is cut off. Ask again soon.
    #[must_use]
    pub fn awaits_followers(&self, now: Instant) -> bool {
        self.passes_on && self.growing.awaits_followers(&self.store.memory, now)
    }

    /// The response has begun; followers may read it. Only the first call counts.
    pub fn begin(&mut self, head: ObjectHead, tags: &Tags) -> Wakes {
        if self.growing.head().is_none() {
            self.take_tags(tags, &[]);
        }
        self.heed_size(head.length.unwrap_or(0));
        self.growing.begin(head)
    }

    /// Other nodes do not wait for what is too large for them.
    fn heed_size(&mut self, bytes: u64) {
        if self.lease.is_some() && !self.store.sharing.has_size(bytes) {
            self.lease = None;
        }
    }

    /// Takes the tags of a response, and references to those that its body had before.
    fn take_tags(&mut self, tags: &Tags, before: &[u32]) {
        if self.growing.tags.get().is_some() {
            return;
        }
        let (table, growing) = (&self.store.tags, Arc::clone(&self.growing));
        let key = growing.key.key();
        let (namespace, session) = (key.namespace, key.session);
        let generation = self.growing.generation;
        let ids = table.intern_all(namespace, session, tags);
        if ids.is_none() || tags.is_overflown() {
            self.overflown = true;
        }
        let mut ids = ids.unwrap_or_default();
        let named = ids.len();
        let known: HashSet<u32> = ids.iter().copied().collect();
        for id in before {
            match known.contains(id) {
                true => table.release(*id),
                false => ids.push(*id),
            }
        }
        self.overflown |= ids.len() > TAGS_MAX;
        // A file, or another node, must have all of them, by their names.
        let has_names = ids.len() == named;
        if has_names
            && (self.store.namespaces.has_disk_tree(namespace) || self.store.sharing.is_open())
        {
            let _ = self.growing.packed_tags.set(pack_tags(tags).into());
        }
        if self.growing.tags.set(ids).is_err() {
            return;
        }
        // After the tags have slots, because later purges write there.
        match table.prefix_verdict(namespace, session, tags, generation) {
            TagVerdict::Dead => self.growing.doom(),
            TagVerdict::Stale => self.growing.soften(),
            TagVerdict::Good => {}
        }
        let _ = self.growing.is_killed(table);
    }

    /// Appends to the body. `bytes` must own its memory, not be a slice of a receive buffer.
    pub fn append(&mut self, bytes: Bytes) -> Wakes {
        debug_assert!(!self.spent, "an ended permit fills nothing");
        let wakes = self.growing.append(self.store.memory.add(bytes));
        self.heed_size(self.growing.size());
        wakes
    }

    /// The response is complete: stores it, unless a purge has hit it since the permit was granted.
    #[must_use = "others wait for this fill"]
    pub fn commit(mut self) -> Committed {
        let object = self.keep();
        self.spent = true;
        self.store.end_fill(&self.growing);
        let wakes = self.growing.finish(self.growing.head().is_some());
        Committed { object, wakes }
    }

    /// The response is complete and is not stored: followers get the rest of it.
    #[must_use = "others wait for this fill"]
    pub fn finish(mut self) -> Wakes {
        self.spent = true;
        self.release_tags();
        self.store.end_fill(&self.growing);
        self.growing.finish(self.growing.head().is_some())
    }

    fn keep(&mut self) -> Option<Arc<Object>> {
        if !self.is_storable() {
            self.release_tags();
            return None;
        }
        let head = self.growing.head()?;
        debug_assert!(
            head.length.is_none_or(|length| length == self.growing.size()),
            "a stored body has its declared length"
        );
        let object = self.keep_as(head, self.growing.body())?;
        // Without its tags, purges would miss its file, and what other nodes have of it. What was
        // written of the object that was validated stays: it has the tags, and is validated again.
        if let Some(tags) = self.growing.packed_tags.get() {
            let lease = self.lease.take();
            self.store.spill(&object, self.growing.generation, tags.clone());
            if !self.stays_here {
                offer(&self.store, &object, self.growing.generation, tags, lease);
            }
        }
        Some(object)
    }

    /// Inserts an object from disk or of another node, unless a purge has hit it since the permit
    /// was granted.
    pub(crate) fn restore_content(
        mut self,
        record: &Record<'_>,
        verdict: TagVerdict,
        body: Bytes,
        tags: &Tags,
    ) -> Wakes {
        self.take_tags(tags, &[]);
        if verdict == TagVerdict::Stale {
            self.growing.soften();
        }
        if let Some(tags) = self.growing.tags.get().filter(|_| self.is_storable()) {
            let object = Arc::new(Object::new(ObjectParts {
                key: self.growing.key.key(),
                status: record.status,
                head: record.head,
                etag: record.etag,
                times: record.times,
                tags,
                known: self.growing.generation,
                body: vec![body],
                held: Some(&self.store.memory.held),
            }));
            self.store.put_fill(&object, &self.growing);
        } else {
            self.release_tags();
        }
        self.spent = true;
        self.store.end_fill(&self.growing);
        self.growing.finish(false)
    }

    fn keep_as(&self, head: &ObjectHead, body: Vec<Bytes>) -> Option<Arc<Object>> {
        let key = self.growing.key.key();
        let tags = self.growing.tags.get()?;
        let packed = pack_head(head);
        let object = Arc::new(Object::new(ObjectParts {
            key,
            status: head.status,
            head: &packed,
            etag: if head.etag.len() <= ETAG_SIZE_MAX { &head.etag } else { &[] },
            times: head.times,
            tags,
            known: self.growing.generation,
            body,
            held: Some(&self.store.memory.held),
        }));
        self.store.put_fill(&object, &self.growing).then_some(object)
    }

    fn release_tags(&self) {
        for id in self.growing.tags.get().into_iter().flatten() {
            self.store.tags.release(*id);
        }
    }

    /// The upstream has validated [`Self::stale`] (304): stores its body and status with the new
    /// head (RFC 9111 §4.3.4), under the new tags and its own: what a tag is about is in the body,
    /// which stays. Not if a purge has hit the old object meanwhile. The fill must not have begun.
    #[must_use = "others wait for this fill"]
    pub fn freshen(mut self, mut head: ObjectHead, tags: &Tags) -> Committed {
        let Some(old) = self.growing.stale.clone() else {
            return Committed { object: None, wakes: self.abandon(AbandonReason::Gone) };
        };
        assert!(self.growing.head().is_none(), "a validated object is stored without a new body");
        head.status = old.status();
        head.length = Some(old.body_len());
        let Some(own) = self.store.inherit_tags(&self.growing.key.key(), &old) else {
            return Committed { object: None, wakes: self.abandon(AbandonReason::Gone) };
        };
        self.take_tags(tags, &own);
        if self.overflown {
            // The next request fetches it whole, with the tags that it has then.
            self.store.strike_url(&self.growing.key.key(), TagPurge::Dead);
            return Committed { object: None, wakes: self.abandon(AbandonReason::Gone) };
        }
        let mut wakes = self.begin(head, tags);
        let mut offset = 0;
        while let Some(piece) = old.piece_at(offset) {
            offset += piece.len() as u64;
            wakes.join(self.append(piece));
        }
        let mut committed = self.commit();
        committed.wakes.join(wakes);
        committed
    }

    /// Abandons the fill. Followers who have read nothing look up again; the others fail.
    pub fn abandon(mut self, why: AbandonReason) -> Wakes {
        self.end(why)
    }

    fn end(&mut self, why: AbandonReason) -> Wakes {
        assert!(!self.spent, "a permit ends once");
        self.spent = true;
        self.release_tags();
        let key = self.growing.key.key();
        match why {
            AbandonReason::Uncacheable { until_ms } => {
                if !self.growing.is_killed(&self.store.tags) {
                    self.store.remember_pass(&key, until_ms);
                }
            }
            AbandonReason::Failed { now_ms, rest_until_ms } => {
                let shard = self.store.index.shard(key.url_hash);
                lock(shard).rest(&key, rest_until_ms, now_ms);
            }
            AbandonReason::Refused { status, until_ms } => {
                if !self.growing.is_killed(&self.store.tags) {
                    self.store.remember_failure(&key, status, until_ms);
                }
            }
            AbandonReason::Gone => {}
        }
        self.store.end_fill(&self.growing);
        self.growing.finish(false)
    }

    /// Continues the fill under the key where the response belongs (it set a vary cookie, or has a
    /// new `Vary`), with the generation it has. The fill must not have begun. Other nodes that wait
    /// for the old key continue.
    #[must_use = "others wait for this fill"]
    pub fn move_to(self, key: &CacheKey<'_>, asked_by: AskedBy) -> Moved {
        self.go_to(key, asked_by, Rival::Heeded)
    }

    /// As [`Self::move_to`], even if another fill of that key is in progress: the last one is
    /// stored.
    #[must_use = "others wait for this fill"]
    pub fn move_over(self, key: &CacheKey<'_>, asked_by: AskedBy) -> Moved {
        self.go_to(key, asked_by, Rival::Ignored)
    }

    /// When its request began.
    #[must_use]
    pub fn moment(&self) -> FillMoment {
        let _floor_waits = lock(&self.store.moves);
        FillMoment::of(&self.store, self.key().namespace(), self.generation())
    }

    pub(crate) fn generation(&self) -> u64 {
        self.growing.generation
    }

    /// The same fill as of an earlier moment.
    #[must_use = "others wait for this fill"]
    pub fn since(self, moment: &FillMoment) -> Moved {
        let permit = moment.grant(&self.key());
        let wakes = self.abandon(AbandonReason::Gone);
        Moved { permit, wakes }
    }

    fn go_to(mut self, key: &CacheKey<'_>, asked_by: AskedBy, rival: Rival) -> Moved {
        debug_assert!(self.growing.head().is_none(), "a fill moves before it begins");
        let store = Arc::clone(&self.store);
        let _floor_waits = lock(&store.moves);
        let mut permit = self.store.regrant(key, self.growing.generation, rival);
        // A purge of the URL marks fills, not tags. From here on a purge marks both.
        if let Some(permit) = &mut permit {
            permit.stays_here = asked_by == AskedBy::NoNode;
            let lease = self.lease.take().filter(|_| asked_by == AskedBy::Waiting);
            permit.lease = lease.map(|lease| lease.at(&store, key));
            self.growing.asked().into_iter().for_each(|at| permit.mark_sent(at));
            let is_purged = |session| self.growing.is_doomed_for(session);
            if self.growing.is_doomed() || key.session.is_some_and(is_purged) {
                permit.growing.doom();
            }
            if self.growing.is_softened() {
                permit.growing.soften();
            }
        }
        let wakes = self.end(AbandonReason::Gone);
        Moved { permit, wakes }
    }
}

impl Drop for FillPermit {
    fn drop(&mut self) {
        if !self.spent {
            let wakes = self.end(AbandonReason::Gone);
            self.store.orphans.leave(wakes);
        }
    }
}
