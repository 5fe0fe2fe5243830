//! The right and the duty to fetch one object: held by one exchange of one worker at a time.
//!
//! The rule that is easiest to break: whatever ends a permit wakes its waiters, and only after the
//! index says what they should find; a permit that is dropped leaves them to the next turn.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bolide_base::Instant;
use bytes::Bytes;

use crate::disk::format::{Record, pack_tags};
use crate::fills::Rival;
use crate::growing::{Follower, GrowingObject, Waited, Waiter, Wakes};
use crate::key::CacheKey;
use crate::object::{Object, ObjectHead, ObjectParts, pack_head};
use crate::store::Store;
use crate::tags::{TagVerdict, Tags};

/// LIMIT: bytes of an `ETag` that is kept.
const ETAG_SIZE_MAX: usize = 1024;
/// Bytes that all answers under way may take before those that are not kept are given up, however
/// small the store is.
const PASSING_MIN: u64 = 1 << 20;

/// Why a fill came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbandonReason {
    /// The answer may not be kept: until then look-ups of this key pass.
    Uncacheable {
        /// End of that memory, in the caller's milliseconds.
        until_ms: u64,
    },
    /// The origin failed: until then a stale object is served without another try.
    Failed {
        /// Now.
        now_ms: u64,
        /// End of the rest.
        rest_until_ms: u64,
    },
    /// The origin failed: until then look-ups of this key are told so.
    Refused {
        /// What is answered.
        status: u16,
        /// End of that memory, in the caller's milliseconds.
        until_ms: u64,
    },
    /// Nothing is known: the next one to look up tries again.
    Gone,
}

impl AbandonReason {
    /// Until when look-ups pass, if they do.
    #[must_use]
    pub const fn until_ms(self) -> Option<u64> {
        match self {
            Self::Uncacheable { until_ms } => Some(until_ms),
            Self::Failed { .. } | Self::Refused { .. } | Self::Gone => None,
        }
    }
}

/// How a fill ended.
#[derive(Debug)]
pub struct Committed {
    /// The object, if it was kept: a purge may have overtaken it, or it is too large.
    pub object: Option<Arc<Object>>,
    /// Whom to wake.
    pub wakes: Wakes,
}

/// A fill that goes on under another key.
#[derive(Debug)]
pub struct Moved {
    /// None if that key is being filled by somebody else: pass the answer on and keep nothing.
    pub permit: Option<FillPermit>,
    /// Followers of the old key, who look up again.
    pub wakes: Wakes,
}

/// The right and the duty to fetch one object. Dropping it abandons the fill.
#[must_use = "others wait for this fill"]
#[derive(Debug)]
pub struct FillPermit {
    pub(crate) store: Arc<Store>,
    growing: Arc<GrowingObject>,
    spent: bool,
    overflown: bool,
    /// See [`Self::pass_on`].
    passes_on: bool,
}

impl FillPermit {
    pub(crate) const fn new(store: Arc<Store>, growing: Arc<GrowingObject>) -> Self {
        Self { store, growing, spent: false, overflown: false, passes_on: false }
    }

    /// A reader of what this permit will fetch, for the exchange that got it.
    #[must_use]
    pub fn follow(&self) -> Follower {
        Follower::new(Arc::clone(&self.growing), self.growing.generation)
    }

    /// Notes when the origin is asked, by a clock that nobody sets; only the first call counts.
    pub fn note_asked(&self, at: Instant) {
        self.growing.note_asked(at);
    }

    /// Registers a waiter as [`Follower::wait`] does before it has read anything.
    pub fn join(&self, waiter: Waiter) -> Waited {
        self.follow().wait(waiter)
    }

    /// What the index has under this key, too old to be a hit: to be revalidated, or to be served
    /// in place of an error within its window.
    #[must_use]
    pub fn stale(&self) -> Option<&Arc<Object>> {
        self.growing.stale.as_ref()
    }

    /// What others see of this fill.
    #[must_use]
    pub const fn growing(&self) -> &Arc<GrowingObject> {
        &self.growing
    }

    /// Whether a follower on any worker reads the fill.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.growing.is_followed()
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> CacheKey<'_> {
        self.growing.key.key()
    }

    /// Whether the answer can still be kept, as far as its size, its tags and purges go.
    #[must_use]
    pub fn is_storable(&self) -> bool {
        let limit = self.store.limits.object_bytes;
        let expected = self.growing.head().and_then(|head| head.length).unwrap_or(0);
        !(self.overflown || self.passes_on)
            && expected.max(self.growing.size()) <= limit
            && !self.growing.is_killed(&self.store.tags)
    }

    /// Notes that the answer will not be kept though it goes on: it has grown too large, or a purge
    /// has hit it. Nobody joins it any more, and who has joined reads on. Says whether anybody
    /// reads it at all; if not, or if it takes memory that the store does not have, it is to be
    /// given up.
    #[must_use]
    pub fn pass_on(&mut self, until_ms: Option<u64>) -> bool {
        if !self.passes_on {
            self.passes_on = true;
            if let Some(until_ms) = until_ms {
                self.store.remember_pass(&self.growing.key.key(), until_ms);
            }
            self.store.end_joining(&self.growing);
        }
        let is_read = Arc::strong_count(&self.growing) > 1;
        let bytes_max = self.store.limits.bytes.max(PASSING_MIN);
        is_read && self.store.filling.load(Ordering::Relaxed) <= bytes_max
    }

    /// The origin has answered; followers may read from here on. Only the first call counts.
    pub fn begin(&mut self, head: ObjectHead, tags: &Tags) -> Wakes {
        if self.growing.head().is_none() {
            self.take_tags(tags);
        }
        self.growing.begin(head)
    }

    fn take_tags(&mut self, tags: &Tags) {
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
        if self.store.has_disk_tree(namespace) {
            let _ = self.growing.packed_tags.set(pack_tags(tags).into());
        }
        if self.growing.tags.set(ids.unwrap_or_default()).is_err() {
            return;
        }
        // After the tags have slots: what comes later writes there.
        match table.prefix_verdict(namespace, session, tags, generation) {
            TagVerdict::Dead => self.growing.doom(),
            TagVerdict::Stale => self.growing.soften(),
            TagVerdict::Good => {}
        }
        let _ = self.growing.is_killed(table);
    }

    /// More of the body. Give bytes that own their memory, not slices of receive buffers.
    pub fn append(&mut self, bytes: Bytes) -> Wakes {
        self.store.filling.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.growing.append(bytes)
    }

    /// The answer is whole: keeps it, unless a purge has hit it since the permit was given.
    #[must_use = "others wait for this fill"]
    pub fn commit(mut self) -> Committed {
        let object = self.keep();
        self.spent = true;
        self.store.end_fill(&self.growing);
        let wakes = self.growing.finish(self.growing.head().is_some());
        Committed { object, wakes }
    }

    /// The answer is whole, and nothing is kept of it: followers get what there is.
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
        let object = self.keep_as(head, self.growing.body())?;
        let tags = self.growing.packed_tags.get().cloned().unwrap_or_default();
        self.store.spill(&object, self.growing.generation, tags);
        Some(object)
    }

    /// Puts what is on disk into the index, unless a purge has hit it since the permit was given.
    pub(crate) fn restore_content(
        mut self,
        record: &Record<'_>,
        verdict: TagVerdict,
        body: Bytes,
        tags: &Tags,
    ) -> Wakes {
        self.take_tags(tags);
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
            }));
            self.store.put_fill(&object, &self.growing);
            self.store.counters.recalled.fetch_add(1, Ordering::Relaxed);
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
        }));
        self.store.put_fill(&object, &self.growing).then_some(object)
    }

    fn release_tags(&self) {
        for id in self.growing.tags.get().into_iter().flatten() {
            self.store.tags.release(*id);
        }
    }

    /// The origin says that [`Self::stale`] is still good (304): keeps its body and status under
    /// the new head and tags (RFC 9111 §4.3.4), or its own tags if there are no new ones. Nothing
    /// may have begun.
    #[must_use = "others wait for this fill"]
    pub fn freshen(mut self, mut head: ObjectHead, tags: &Tags) -> Committed {
        let Some(old) = self.growing.stale.clone() else {
            return Committed { object: None, wakes: self.abandon(AbandonReason::Gone) };
        };
        head.status = old.status();
        head.length = Some(old.body_len());
        if tags.is_empty() {
            let Some(ids) = self.store.inherit_tags(&self.growing.key.key(), &old) else {
                return Committed { object: None, wakes: self.abandon(AbandonReason::Gone) };
            };
            if self.growing.tags.set(ids).is_err() {
                return Committed { object: None, wakes: self.abandon(AbandonReason::Gone) };
            }
            let _ = self.growing.is_killed(&self.store.tags);
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

    /// Gives the fill up. Followers who have read nothing look up again; others break off.
    pub fn abandon(mut self, why: AbandonReason) -> Wakes {
        self.end(why)
    }

    fn end(&mut self, why: AbandonReason) -> Wakes {
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
                self.store.rest(&key, rest_until_ms, now_ms);
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

    /// The answer belongs under another key (it set a vary cookie, or named a new `Vary`): the fill
    /// goes on there, as old as it is. Nothing may have begun.
    #[must_use = "others wait for this fill"]
    pub fn move_to(self, key: &CacheKey<'_>) -> Moved {
        self.go_to(key, Rival::Heeded)
    }

    /// As [`Self::move_to`], also if that key is being filled: what comes last is kept.
    #[must_use = "others wait for this fill"]
    pub fn move_over(self, key: &CacheKey<'_>) -> Moved {
        self.go_to(key, Rival::Ignored)
    }

    fn go_to(mut self, key: &CacheKey<'_>, rival: Rival) -> Moved {
        let permit = self.store.regrant(key, self.growing.generation, rival);
        // A purge of the URL marks fills, not tags. One that comes from here on marks both.
        if let Some(permit) = &permit {
            self.growing.asked().into_iter().for_each(|at| permit.note_asked(at));
            if self.growing.is_doomed() {
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
            self.store.leave(wakes);
        }
    }
}
