//! One worker's own table of objects that it served lately: hits without a lock.
//!
//! An object here may have left the index or been purged; its marks and tags say so at each look,
//! and [`Front::tend`] lets go of it. It owns no truth: what is not plainly good goes to the store.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::decisions::{DecisionClass, DecisionNote, DecisionRing, DecisionTallies};
use bolide_http::FieldMap;
use bytes::Bytes;

use crate::fills::failed;
use crate::growing::{GrowingObject, Wakes};
use crate::key::CacheKey;
use crate::object::{Object, ObjectKind};
use crate::store::{Freshness, Lookup, Store, judge};
use crate::whole::Whole;

/// Objects larger than this are always asked for at the store, so that tables pin little memory.
const FRONT_OBJECT_MAX: u64 = 1024 * 1024;

/// LIMIT: forms of one object's answer that a worker remembers: as many as there are codings.
const MEMOS_MAX: usize = 4;

/// How an object was answered last time, for who answers with it again: the caller's business.
#[derive(Clone, Debug)]
pub struct Memo {
    /// Under which circumstances.
    pub tag: [u64; 2],
    /// The fields of the answer.
    pub fields: FieldMap,
    /// Whether `Date` among them is the server's own, to be written anew.
    pub own_date: bool,
    /// Its body.
    pub body: Bytes,
    /// For a page that is put together: what came of it.
    pub whole: Option<Arc<Whole>>,
}

/// The kept answer that stands at a place of a page, as it was found a moment ago.
#[derive(Debug)]
struct Shortcut {
    at: (u32, [u64; 2]),
    until_ms: u64,
    object: Arc<Object>,
}

/// LIMIT: shortcuts of one page that a worker remembers.
const SHORTCUTS_MAX: usize = 64;

#[derive(Debug, Default)]
struct FrontSlot {
    object: Option<Arc<Object>>,
    hits: u32,
    memos: Vec<Memo>,
    shortcuts: Vec<Shortcut>,
}

impl FrontSlot {
    fn clear(&mut self) {
        if let Some(object) = self.object.take() {
            object.add_hits(self.hits);
        }
        self.hits = 0;
        self.memos = Vec::new();
        self.shortcuts = Vec::new();
    }

    /// Lets go of what others have let go of.
    fn shed(&mut self) {
        if self.object.as_ref().is_some_and(|object| object.is_retired()) {
            return self.clear();
        }
        self.shortcuts.retain(|shortcut| !shortcut.object.is_retired());
        for memo in &mut self.memos {
            memo.whole.take_if(|whole| whole.is_retired());
        }
    }
}

/// One worker's table of hits.
#[derive(Debug)]
pub struct Front {
    store: Arc<Store>,
    worker: u16,
    slots: Vec<FrontSlot>,
    cursor: usize,
    hits: u64,
    stale: u64,
    /// Whether its look-ups leave no trace.
    is_dry: bool,
    ring: Arc<DecisionRing>,
    tallies: DecisionTallies,
}

impl Front {
    pub(crate) fn new(store: Arc<Store>, worker: u16, ring: Arc<DecisionRing>) -> Self {
        let size = store.limits.front_entries.next_power_of_two().max(2);
        let slots = (0..size).map(|_| FrontSlot::default()).collect();
        let tallies = DecisionTallies::default();
        Self { store, worker, slots, cursor: 0, hits: 0, stale: 0, is_dry: false, ring, tallies }
    }

    /// One that only looks. It holds nothing, so that every look-up goes to the store.
    pub(crate) fn dry(store: Arc<Store>, worker: u16) -> Self {
        let mut dry = Self::new(store, worker, Arc::new(DecisionRing::new()));
        dry.slots.truncate(2);
        dry.is_dry = true;
        dry
    }

    /// Remembers what became of a request, and counts it for its namespace.
    #[inline]
    pub fn note(&mut self, note: &DecisionNote<'_>, class: DecisionClass) {
        self.ring.write(note);
        self.tallies.count(note.namespace, class);
    }

    /// The store behind it.
    #[must_use]
    pub const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Whether it only looks: nothing is changed through it.
    #[must_use]
    pub const fn is_dry(&self) -> bool {
        self.is_dry
    }

    /// The worker whose it is.
    #[must_use]
    pub const fn worker(&self) -> u16 {
        self.worker
    }

    /// Looks for `key` at `now_ms`, milliseconds of a clock that all callers share. A warm hit
    /// takes no lock and allocates nothing.
    #[inline]
    pub fn lookup(&mut self, key: &CacheKey<'_>, now_ms: u64) -> Lookup {
        let first = key.hash[1] as usize & (self.slots.len() - 1);
        for at in [first, first ^ 1] {
            let slot = &mut self.slots[at];
            let Some(object) = &slot.object else { continue };
            if !object.is_named(key) {
                continue;
            }
            assert!(object.is_for(key.session), "a private object answers its own session only");
            match judge(object, &self.store.tags, now_ms) {
                Freshness::Fresh => {
                    object.touch(now_ms);
                    slot.hits = slot.hits.saturating_add(1);
                    return match object.kind() {
                        ObjectKind::Content => {
                            self.hits += 1;
                            Lookup::Hit(Arc::clone(object))
                        }
                        ObjectKind::Vary => Lookup::Vary(Arc::clone(object)),
                        ObjectKind::Pass => Lookup::Pass,
                        ObjectKind::Failed => failed(object),
                    };
                }
                Freshness::Stale if object.is_refreshing() => {
                    self.stale += 1;
                    return Lookup::Stale(Arc::clone(object), None);
                }
                Freshness::Stale => {}
                Freshness::Old | Freshness::Gone => slot.clear(),
            }
            break;
        }
        self.ask(key, now_ms)
    }

    /// What is there under `key` and fresh, an answer or names of fields; for who would not ask
    /// an origin. A session without private objects costs no lock.
    pub fn find_fresh(&mut self, key: &CacheKey<'_>, now_ms: u64) -> Option<Arc<Object>> {
        let first = key.hash[1] as usize & (self.slots.len() - 1);
        for at in [first, first ^ 1] {
            let slot = &mut self.slots[at];
            let Some(object) = slot.object.as_ref().filter(|object| object.is_named(key)) else {
                continue;
            };
            assert!(object.is_for(key.session), "a private object answers its own session only");
            if judge(object, &self.store.tags, now_ms) == Freshness::Fresh {
                object.touch(now_ms);
                slot.hits = slot.hits.saturating_add(1);
                self.hits += u64::from(object.kind() == ObjectKind::Content);
                return Some(Arc::clone(object));
            }
            break;
        }
        if self.is_dry {
            return match self.store.peek(key, now_ms) {
                Lookup::Hit(object) | Lookup::Vary(object) => Some(object),
                _ => None,
            };
        }
        let object = self.store.find_fresh(key, now_ms)?;
        self.hits += u64::from(object.kind() == ObjectKind::Content);
        if object.charge() <= FRONT_OBJECT_MAX {
            self.keep(key, &object);
        }
        Some(object)
    }

    /// How `object` was answered under the circumstances of `tag`, if this worker remembers.
    #[inline]
    #[must_use]
    pub fn memo(&self, object: &Arc<Object>, tag: [u64; 2]) -> Option<&Memo> {
        let slot = &self.slots[self.place_of(object)?];
        slot.memos.iter().find(|memo| memo.tag == tag)
    }

    /// Remembers how `object` was answered, for as long as it has a place here; the first answer
    /// is not worth it.
    pub fn remember(&mut self, object: &Arc<Object>, memo: impl FnOnce() -> Memo) {
        let Some(place) = self.place_of(object) else { return };
        let slot = &mut self.slots[place];
        if slot.hits == 0 {
            return;
        }
        if slot.memos.len() >= MEMOS_MAX {
            slot.memos.remove(0);
        }
        slot.memos.push(memo());
    }

    /// How `page` was put together under the circumstances of `tag`, if it would be now.
    pub fn whole(&mut self, page: &Arc<Object>, tag: [u64; 2], now_ms: u64) -> Option<Arc<Whole>> {
        let place = self.place_of(page)?;
        let memo = self.slots[place].memos.iter_mut().find(|memo| memo.tag == tag)?;
        let whole = memo.whole.as_ref()?;
        if !whole.is_good(&self.store.tags, now_ms) {
            memo.whole = None;
            return None;
        }
        whole.touch(now_ms);
        self.hits += whole.count();
        Some(Arc::clone(whole))
    }

    /// Remembers how `page` was put together; its answer must be remembered already.
    pub fn keep_whole(&mut self, page: &Arc<Object>, tag: [u64; 2], whole: &Arc<Whole>) {
        let Some(place) = self.place_of(page) else { return };
        if let Some(memo) = self.slots[place].memos.iter_mut().find(|memo| memo.tag == tag) {
            memo.whole = Some(Arc::clone(whole));
        }
    }

    /// The fresh answer that stands at a place of `page` (which one, and under which
    /// circumstances), and until when that may be relied upon.
    pub fn shortcut(
        &mut self,
        page: &Arc<Object>,
        at: (u32, [u64; 2]),
        now_ms: u64,
    ) -> Option<(Arc<Object>, u64)> {
        let place = self.place_of(page)?;
        let found = self.slots[place].shortcuts.iter().find(|shortcut| shortcut.at == at)?;
        let is_good = now_ms < found.until_ms
            && found.object.session().is_none()
            && judge(&found.object, &self.store.tags, now_ms) == Freshness::Fresh;
        let (object, until_ms) = is_good.then(|| (Arc::clone(&found.object), found.until_ms))?;
        object.touch(now_ms);
        self.hits += 1;
        Some((object, until_ms))
    }

    /// Remembers that `object` stands at a place of `page`, until then.
    pub fn keep_shortcut(
        &mut self,
        page: &Arc<Object>,
        at: (u32, [u64; 2]),
        until_ms: u64,
        object: Arc<Object>,
    ) {
        let Some(place) = self.place_of(page) else { return };
        let shortcuts = &mut self.slots[place].shortcuts;
        let shortcut = Shortcut { at, until_ms, object };
        match shortcuts.iter().position(|known| known.at == at) {
            Some(known) => shortcuts[known] = shortcut,
            None if shortcuts.len() < SHORTCUTS_MAX => shortcuts.push(shortcut),
            None => shortcuts.clear(),
        }
    }

    #[inline]
    fn place_of(&self, object: &Arc<Object>) -> Option<usize> {
        let first = object.slot_hash() as usize & (self.slots.len() - 1);
        [first, first ^ 1].into_iter().find(|at| {
            self.slots[*at].object.as_ref().is_some_and(|other| Arc::ptr_eq(other, object))
        })
    }

    /// Lets the next look-up fetch what somebody else has fetched for too long. What that brings is
    /// kept all the same.
    pub fn supersede(&self, growing: &Arc<GrowingObject>) {
        if !self.is_dry {
            self.store.end_joining(growing);
        }
    }

    #[cold]
    fn ask(&mut self, key: &CacheKey<'_>, now_ms: u64) -> Lookup {
        if self.is_dry {
            return self.store.peek(key, now_ms);
        }
        let found = self.store.lookup(key, now_ms);
        if let Lookup::Hit(object) | Lookup::Vary(object) = &found
            && object.charge() <= FRONT_OBJECT_MAX
        {
            self.keep(key, object);
        }
        found
    }

    fn keep(&mut self, key: &CacheKey<'_>, object: &Arc<Object>) {
        let first = key.hash[1] as usize & (self.slots.len() - 1);
        let pair = [first, first ^ 1];
        let same = pair
            .into_iter()
            .find(|at| self.slots[*at].object.as_ref().is_none_or(|other| other.is_named(key)));
        let at = same.unwrap_or_else(|| {
            let colder = usize::from(self.slots[pair[1]].hits < self.slots[pair[0]].hits);
            let warmer = &mut self.slots[pair[1 - colder]];
            // What was hot once must not stay for ever.
            let hits = warmer.hits / 2;
            if let Some(object) = &warmer.object {
                object.add_hits(warmer.hits - hits);
            }
            warmer.hits = hits;
            pair[colder]
        });
        self.slots[at].clear();
        self.slots[at].object = Some(Arc::clone(object));
    }

    /// Looks at up to `budget` of its entries, lets go of those that left the index, and tells the
    /// store what it counted. Call it once per turn with a few.
    pub fn tend(&mut self, budget: usize) {
        for _ in 0..budget.min(self.slots.len()) {
            self.cursor = (self.cursor + 1) & (self.slots.len() - 1);
            self.slots[self.cursor].shed();
        }
        let counters = &self.store.counters;
        for (own, shared) in [(&mut self.hits, &counters.hits), (&mut self.stale, &counters.stale)]
        {
            if *own > 0 {
                shared.fetch_add(std::mem::take(own), Ordering::Relaxed);
            }
        }
        let store = &self.store;
        self.tallies.drain(|namespace, counts| store.tally(namespace, counts));
    }

    /// Waiters of permits that were dropped anywhere: post them by mail. Ask in every turn, after
    /// everything else; it costs one load when there are none.
    #[must_use = "these waiters are registered nowhere any more; wake them"]
    pub fn poll_orphans(&self) -> Wakes {
        self.store.poll_orphans()
    }
}
