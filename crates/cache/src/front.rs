//! One worker's table of objects that it served recently: hits without a lock.
//!
//! An object here may be purged or removed from the index. Its marks and tags show that on each
//! lookup, and [`Front::tend`] drops it. The table is only a cache of the store: every lookup that
//! is not a plain hit goes to the store.

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

/// LIMIT: bytes of an object in a table, so that tables pin little memory. Larger ones are looked
/// up in the store.
const FRONT_OBJECT_MAX: u64 = 1024 * 1024;

/// LIMIT: memos of one object: as many as there are codings.
const MEMOS_MAX: usize = 4;

/// A response as the caller sent it for an object, to send again.
#[derive(Clone, Debug)]
pub struct Memo {
    /// A hash of the circumstances under which it was sent.
    pub tag: [u64; 2],
    /// The fields of the response.
    pub fields: FieldMap,
    /// Whether the server generated `Date`, so that it must be generated again.
    pub own_date: bool,
    /// The body.
    pub body: Bytes,
    /// The assembled page, for ESI.
    pub whole: Option<Arc<Whole>>,
}

/// The cached fragment at a place of a page, as a recent lookup found it.
#[derive(Debug)]
struct Shortcut {
    at: (u32, [u64; 2]),
    until_ms: u64,
    object: Arc<Object>,
}

/// LIMIT: shortcuts of one page.
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

    /// Drops objects that were removed from the index.
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
    /// How many objects had left the index when it was looked last.
    retired: u64,
    /// Slots that were not visited since.
    unvisited: usize,
    hits: u64,
    stale: u64,
    /// Whether lookups have no side effects.
    is_dry: bool,
    ring: Arc<DecisionRing>,
    tallies: DecisionTallies,
}

impl Front {
    pub(crate) fn new(store: Arc<Store>, worker: u16, ring: Arc<DecisionRing>) -> Self {
        let size = store.limits.front_entries.next_power_of_two().max(2);
        let slots = (0..size).map(|_| FrontSlot::default()).collect();
        let tallies = DecisionTallies::default();
        Self {
            store,
            worker,
            slots,
            cursor: 0,
            retired: 0,
            unvisited: 0,
            hits: 0,
            stale: 0,
            is_dry: false,
            ring,
            tallies,
        }
    }

    /// A read-only table without entries, so that every lookup goes to the store.
    pub(crate) fn dry(store: Arc<Store>, worker: u16) -> Self {
        let mut dry = Self::new(store, worker, Arc::new(DecisionRing::new()));
        dry.slots.truncate(2);
        dry.is_dry = true;
        dry
    }

    /// Records the decision for a request, and counts it for its namespace.
    #[inline]
    pub fn note(&mut self, note: &DecisionNote<'_>, class: DecisionClass) {
        self.ring.write(note);
        self.tallies.count(note.namespace, class);
    }

    /// The store.
    #[must_use]
    pub const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Whether it is read-only.
    #[must_use]
    pub const fn is_dry(&self) -> bool {
        self.is_dry
    }

    /// The number of its worker.
    #[must_use]
    pub const fn worker(&self) -> u16 {
        self.worker
    }

    /// Looks up `key` at `now_ms`, milliseconds of a clock that all callers share. A repeated hit
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
                Freshness::Stale if object.marks().is_refreshing() => {
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

    /// The fresh response under `key`; a miss gives no permit.
    pub fn find_fresh(&mut self, key: &CacheKey<'_>, now_ms: u64) -> Option<Arc<Object>> {
        self.find_known(key, now_ms).filter(|object| object.kind() == ObjectKind::Content)
    }

    /// What is known under `key` now: a fresh response, or the names of a `Vary`; a miss gives no
    /// permit. A session without private objects takes no lock.
    pub fn find_known(&mut self, key: &CacheKey<'_>, now_ms: u64) -> Option<Arc<Object>> {
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
        let object = self.store.find_known(key, now_ms)?;
        self.hits += u64::from(object.kind() == ObjectKind::Content);
        if object.charge() <= FRONT_OBJECT_MAX {
            self.keep(key, &object);
        }
        Some(object)
    }

    /// The memo of `object` for the circumstances of `tag`, if this worker has it.
    #[inline]
    #[must_use]
    pub fn memo(&self, object: &Arc<Object>, tag: [u64; 2]) -> Option<&Memo> {
        let slot = &self.slots[self.place_of(object)?];
        slot.memos.iter().find(|memo| memo.tag == tag)
    }

    /// Stores a memo for `object`, for as long as it has a place here. The first hit stores none.
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

    /// The assembled form of `page` for the circumstances of `tag`, if it is still valid.
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

    /// Stores the assembled form of `page`, whose memo must exist.
    pub fn keep_whole(&mut self, page: &Arc<Object>, tag: [u64; 2], whole: &Arc<Whole>) {
        let Some(place) = self.place_of(page) else { return };
        if let Some(memo) = self.slots[place].memos.iter_mut().find(|memo| memo.tag == tag) {
            memo.whole = Some(Arc::clone(whole));
        }
    }

    /// The fresh fragment at a place of `page` under the given circumstances, and until when the
    /// shortcut is valid.
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

    /// Stores the fragment `object` at a place of `page`, valid until `until_ms`.
    pub fn keep_shortcut(
        &mut self,
        page: &Arc<Object>,
        at: (u32, [u64; 2]),
        until_ms: u64,
        object: Arc<Object>,
    ) {
        let Some(place) = self.place_of(page) else { return };
        let shortcuts = &mut self.slots[place].shortcuts;
        debug_assert!(object.session().is_none(), "a private fragment is looked up by its session");
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

    /// Requests are not coalesced with a slow fill any more, so that the next lookup fetches. Its
    /// response is still stored.
    pub fn supersede(&self, growing: &Arc<GrowingObject>) {
        if !self.is_dry {
            self.store.supersede(growing);
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
            // An object that was hot once must not stay for ever.
            let hits = warmer.hits / 2;
            if let Some(object) = &warmer.object {
                object.add_hits(warmer.hits - hits);
            }
            warmer.hits = hits;
            pair[colder]
        });
        debug_assert!(object.is_named(key), "an object is in the slots of its own key");
        self.slots[at].clear();
        self.slots[at].object = Some(Arc::clone(object));
    }

    /// Visits up to `budget` entries, if objects were removed from the index since all were
    /// visited, drops those objects, and adds its counts to the store's. Call it once per turn with
    /// a small budget.
    #[inline]
    pub fn tend(&mut self, budget: usize) {
        let retired = self.store.retired.load(Ordering::Relaxed);
        if self.unvisited > 0 || retired != self.retired {
            self.visit(retired, budget);
        }
        let counters = &self.store.counters;
        for (own, shared) in [(&mut self.hits, &counters.hits), (&mut self.stale, &counters.stale)]
        {
            if *own > 0 {
                shared.fetch_add(std::mem::take(own), Ordering::Relaxed);
            }
        }
        let store = &self.store;
        self.tallies.drain(|namespace, counts| store.namespaces.tally(namespace, counts));
    }

    #[cold]
    fn visit(&mut self, retired: u64, budget: usize) {
        if retired != self.retired {
            (self.retired, self.unvisited) = (retired, self.slots.len());
        }
        debug_assert!(self.slots.len().is_power_of_two(), "a place is a part of a hash");
        debug_assert!(self.unvisited <= self.slots.len(), "no slot is visited twice");
        for _ in 0..budget.min(self.unvisited) {
            self.cursor = (self.cursor + 1) & (self.slots.len() - 1);
            self.slots[self.cursor].shed();
            self.unvisited -= 1;
        }
    }

    /// The waiters of dropped permits; post them by mail. Call it at the end of every turn. Without
    /// waiters it costs one load.
    #[must_use = "these waiters are registered nowhere any more; wake them"]
    pub fn poll_orphans(&self) -> Wakes {
        self.store.orphans.take()
    }
}
