//! Tags and purges: a purge writes one number, and every object compares it with its own.
//!
//! The generation counts purges. A tag stores the generation of its last purge, an object the
//! generation at which it was last known to be good. An object is dead if one of its tags has the
//! greater number.
//!
//! INVARIANT: a purge writes its slot before it publishes the generation. So a reader that sees the
//! new generation and finds no purged tag may store that result.

mod purging;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::bans::{BanKind, Bans};
use crate::key::{Hash, NamespaceId, SessionKey};
use crate::segments::Segments;

/// LIMIT: tags of one object.
pub const TAGS_MAX: usize = 32 * 1024;
/// LIMIT: bytes of all tags of one object.
pub const TAGS_SIZE_MAX: usize = 1024 * 1024;
const STRIPES: usize = 256;

/// The effect of a purge on the objects that it hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagPurge {
    /// They are removed.
    Dead,
    /// They may be served while one request revalidates them (a soft purge).
    Stale,
}

/// The objects whose tags are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagScope<'a> {
    /// Public objects, and the `public:` tags of private objects.
    Public,
    /// The private objects of one session.
    Session(SessionKey<'a>),
}

/// The tags of one response. Clearing keeps the memory.
#[derive(Clone, Debug, Default)]
pub struct Tags {
    text: Vec<u8>,
    /// The end of each tag, and whether it is public regardless of the object.
    ends: Vec<(u32, bool)>,
    overflown: bool,
}

impl Tags {
    /// Clears the list and keeps its memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.overflown = false;
    }

    /// Adds a tag in the scope of the object (public, or its session). It may be empty.
    pub fn push(&mut self, tag: &[u8]) {
        self.add(tag, false);
    }

    /// Adds a tag that public purges reach even in a private object (`public:`).
    pub fn push_public(&mut self, tag: &[u8]) {
        self.add(tag, true);
    }

    fn add(&mut self, tag: &[u8], public: bool) {
        if self.ends.len() >= TAGS_MAX || self.text.len() + tag.len() > TAGS_SIZE_MAX {
            self.overflown = true;
            return;
        }
        self.text.extend_from_slice(tag);
        self.ends.push((self.text.len() as u32, public));
    }

    /// Adds the tags of `more` that are not here yet.
    pub fn extend(&mut self, more: &Self) {
        let known: HashSet<(&[u8], bool)> = self.iter().collect();
        let new: Vec<_> = more.iter().filter(|tag| !known.contains(tag)).collect();
        for (tag, public) in new {
            self.add(tag, public);
        }
        self.overflown |= more.overflown;
    }

    /// Whether a tag exceeded the limit. Such a response is not stored, because purges could miss
    /// it.
    #[must_use]
    pub const fn is_overflown(&self) -> bool {
        self.overflown
    }

    /// Whether there are no tags.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty() && !self.overflown
    }

    /// The tags, and whether each was added as public.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], bool)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|end| end.0));
        starts
            .zip(&self.ends)
            .map(|(start, &(end, public))| (&self.text[start as usize..end as usize], public))
    }
}

/// The ids of tags by their names, in order, so that a purge by prefix visits those that it hits.
type TagIds = BTreeMap<Box<[u8]>, u32>;

/// The purge state of a tag. All zero: never purged.
#[derive(Debug, Default)]
pub(crate) struct TagSlot {
    purged: AtomicU64,
    stale: AtomicU64,
    /// The upper half counts purges, the lower half the objects that none of them hit.
    live: AtomicU64,
    /// References of objects in the index and of fills.
    references: AtomicU32,
}

/// The effect of purges on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagVerdict {
    /// No purge hit it.
    Good,
    /// A soft purge hit it.
    Stale,
    /// A purge hit it.
    Dead,
}

#[derive(Debug)]
struct Prefix {
    generation: u64,
    start: Vec<u8>,
    how: TagPurge,
}

#[derive(Debug, Default)]
struct Recent {
    prefixes: Vec<Prefix>,
    /// Fills that began before this generation are not stored.
    forgotten: u64,
}

/// All tags of the process.
#[derive(Debug)]
pub struct TagTable {
    stripes: [Mutex<TagIds>; STRIPES],
    slots: Segments<TagSlot>,
    next: AtomicU32,
    free: Mutex<Vec<u32>>,
    generation: AtomicU64,
    /// Held during a whole purge.
    recent: Mutex<Recent>,
    pub(crate) bans: Bans,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the name of a tag in the table: namespace, session if there is one, text.
fn name(namespace: NamespaceId, scope: TagScope<'_>, tag: &[u8], to: &mut Vec<u8>) {
    to.clear();
    to.extend_from_slice(&namespace.0.to_le_bytes());
    match scope {
        TagScope::Public => to.push(b'p'),
        TagScope::Session(session) => {
            to.push(b's');
            to.extend_from_slice(&(session.text().len() as u16).to_le_bytes());
            to.extend_from_slice(session.text());
        }
    }
    to.push(b't');
    to.extend_from_slice(tag);
}

/// A name for all objects of a kind; no tag has such a name.
pub(crate) enum TagRoot<'a> {
    /// All public objects of a namespace.
    Public,
    /// All private objects of a namespace.
    Private,
    /// All private objects of a session.
    Session(SessionKey<'a>),
}

fn root_name(namespace: NamespaceId, root: &TagRoot<'_>, to: &mut Vec<u8>) {
    to.clear();
    to.extend_from_slice(&namespace.0.to_le_bytes());
    match root {
        TagRoot::Public => to.push(b'*'),
        TagRoot::Private => to.push(b'+'),
        TagRoot::Session(session) => {
            to.push(b'-');
            to.extend_from_slice(session.text());
        }
    }
}

impl TagTable {
    pub(crate) fn new() -> Self {
        Self {
            stripes: std::array::from_fn(|_| Mutex::default()),
            slots: Segments::new(1024),
            next: AtomicU32::new(0),
            free: Mutex::default(),
            generation: AtomicU64::new(1),
            recent: Mutex::default(),
            bans: Bans::default(),
        }
    }

    /// The number of purges plus one.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn slot(&self, id: u32) -> Option<&TagSlot> {
        self.slots.get(id as usize)
    }

    fn stripe(&self, name: &[u8]) -> &Mutex<TagIds> {
        let mut hash = Hash::new(0);
        hash.add(name);
        &self.stripes[(hash.finish()[0] >> 40) as usize % STRIPES]
    }

    /// The slot of `name`, created if needed. The caller holds the lock of the stripe.
    fn enter(&self, name: &[u8], map: &mut TagIds) -> Option<u32> {
        if let Some(id) = map.get(name) {
            return Some(*id);
        }
        let free = lock(&self.free).pop();
        let id = free.unwrap_or_else(|| self.next.fetch_add(1, Ordering::Relaxed));
        self.slots.make(id as usize)?;
        map.insert(name.into(), id);
        Some(id)
    }

    fn intern(&self, name: &[u8]) -> Option<u32> {
        let mut map = lock(self.stripe(name));
        let id = self.enter(name, &mut map)?;
        self.slot(id)?.references.fetch_add(1, Ordering::Relaxed);
        Some(id)
    }

    /// Resolves the tags of a response and its roots to slots, with a reference to each. `None` if
    /// the table is full.
    pub(crate) fn intern_all(
        &self,
        namespace: NamespaceId,
        session: Option<SessionKey<'_>>,
        tags: &Tags,
    ) -> Option<Vec<u32>> {
        let mut text = Vec::with_capacity(128);
        let mut ids = Vec::with_capacity(tags.ends.len() + 2);
        let mut add = |text: &[u8]| {
            let id = self.intern(text);
            ids.extend(id);
            id.is_some()
        };
        let mut whole = true;
        match session {
            None => {
                root_name(namespace, &TagRoot::Public, &mut text);
                whole &= add(&text);
            }
            Some(session) => {
                root_name(namespace, &TagRoot::Private, &mut text);
                whole &= add(&text);
                root_name(namespace, &TagRoot::Session(session), &mut text);
                whole &= add(&text);
            }
        }
        let own = session.map_or(TagScope::Public, TagScope::Session);
        for (tag, public) in tags.iter() {
            name(namespace, if public { TagScope::Public } else { own }, tag, &mut text);
            whole &= add(&text);
        }
        ids.sort_unstable();
        let mut kept = 0;
        for index in 0..ids.len() {
            if index > 0 && ids[index] == ids[kept - 1] {
                self.release(ids[index]);
            } else {
                ids[kept] = ids[index];
                kept += 1;
            }
        }
        ids.truncate(kept);
        debug_assert!(ids.is_sorted_by(|one, next| one < next), "an object has a tag once");
        if !whole {
            ids.iter().for_each(|id| self.release(*id));
            return None;
        }
        Some(ids)
    }

    /// Adds a reference to a tag that has one already.
    pub(crate) fn retain(&self, id: u32) {
        if let Some(slot) = self.slot(id) {
            let before = slot.references.fetch_add(1, Ordering::Relaxed);
            debug_assert!(before > 0, "a retained tag has a reference already");
        }
    }

    /// Releases a reference.
    pub(crate) fn release(&self, id: u32) {
        if let Some(slot) = self.slot(id) {
            let before = slot.references.fetch_sub(1, Ordering::Release);
            assert!(before > 0, "a tag is released as often as it is retained");
        }
    }

    /// The effect of purges on an object with the tags `ids` that was good at generation `known`.
    #[inline]
    pub(crate) fn verdict(&self, ids: impl Iterator<Item = u32>, known: u64) -> TagVerdict {
        let mut verdict = TagVerdict::Good;
        for slot in ids.filter_map(|id| self.slot(id)) {
            if slot.purged.load(Ordering::Acquire) > known {
                return TagVerdict::Dead;
            }
            if slot.stale.load(Ordering::Acquire) > known {
                verdict = TagVerdict::Stale;
            }
        }
        verdict
    }

    /// The tags among `ids` that were purged after generation `known`.
    pub(crate) fn struck(&self, ids: impl Iterator<Item = u32>, known: u64) -> Vec<u32> {
        let is_struck = |slot: &TagSlot| {
            slot.purged.load(Ordering::Acquire) > known
                || slot.stale.load(Ordering::Acquire) > known
        };
        ids.filter(|id| self.slot(*id).is_some_and(is_struck)).collect()
    }

    /// Whether a purge after generation `known` killed a response with these tags.
    pub(crate) fn is_killed(&self, ids: &[u32], known: u64) -> bool {
        self.generation() > known && self.verdict(ids.iter().copied(), known) == TagVerdict::Dead
    }

    /// Counts an object in or out of its tags, unless a purge has counted it out.
    pub(crate) fn count(&self, ids: impl Iterator<Item = u32>, known: u64, change: TagCount) {
        for slot in ids.filter_map(|id| self.slot(id)) {
            let mut word = slot.live.load(Ordering::Acquire);
            while slot.purged.load(Ordering::Acquire) <= known {
                let next = match change {
                    TagCount::In => word + 1,
                    TagCount::Out => word - u64::from(word as u32 != 0),
                };
                match slot.live.compare_exchange_weak(
                    word,
                    next,
                    Ordering::AcqRel,
                    Ordering::Acquire,
                ) {
                    Ok(_) => break,
                    Err(seen) => word = seen,
                }
            }
        }
    }

    /// Removes tags and purges that cannot affect any object, nor a fill begun at `floor` or later,
    /// from the part of the table that `turn` selects.
    pub(crate) fn reclaim(&self, floor: u64, turn: usize) {
        lock(&self.recent).prefixes.retain(|purge| purge.generation > floor);
        lock(&self.stripes[turn % STRIPES]).retain(|_, id| {
            let Some(slot) = self.slot(*id) else { return true };
            let used = slot.references.load(Ordering::Acquire) != 0;
            let recent = slot.purged.load(Ordering::Acquire) > floor
                || slot.stale.load(Ordering::Acquire) > floor;
            debug_assert!(
                slot.purged.load(Ordering::Acquire) <= self.generation() + 1,
                "only a purge in progress is ahead of the generation"
            );
            if !used && !recent {
                slot.live.store(0, Ordering::Release);
                lock(&self.free).push(*id);
            }
            used || recent
        });
    }

    /// The bans that an object in memory may not have seen yet: namespace, kind, text and effect.
    #[must_use]
    pub fn pending_bans(&self) -> Vec<(NamespaceId, BanKind, Box<[u8]>, TagPurge)> {
        self.bans.list()
    }

    /// The number of tags, used or not.
    pub(crate) fn len(&self) -> usize {
        self.stripes.iter().map(|stripe| lock(stripe).len()).sum()
    }

    /// The tags that `wanted` selects by id and text. It scans the whole table, so it is for the
    /// command line only.
    pub(crate) fn names(&self, wanted: impl Fn(u32, &[u8]) -> bool) -> HashMap<u32, Vec<u8>> {
        let mut found = HashMap::new();
        for stripe in &self.stripes {
            for (name, id) in lock(stripe).iter() {
                if let Some(tag) = text_of(name)
                    && wanted(*id, tag)
                {
                    found.insert(*id, tag.to_vec());
                }
            }
        }
        found
    }

    /// The texts of the tags among `ids`. It scans the whole table, so it is for the command line
    /// only.
    pub(crate) fn texts(&self, ids: &[u32]) -> Vec<Vec<u8>> {
        let mut found: Vec<_> = self.names(|id, _| ids.contains(&id)).into_values().collect();
        found.sort_unstable();
        found
    }
}

/// The names that begin with `start`, by what follows it, with their ids.
fn begun_by<'m>(map: &'m TagIds, start: &[u8]) -> impl Iterator<Item = (&'m [u8], u32)> {
    map.range::<[u8], _>((Bound::Included(start), Bound::Unbounded))
        .map_while(move |(name, id)| Some((name.strip_prefix(start)?, *id)))
}

/// The tag in a name; `None` for a root.
fn text_of(name: &[u8]) -> Option<&[u8]> {
    match name.get(4)? {
        b'p' => name.get(6..),
        b's' => {
            let len = name.get(5..7)?;
            name.get(8 + usize::from(len[0]) + (usize::from(len[1]) << 8)..)
        }
        _ => None,
    }
}

/// The direction of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagCount {
    In,
    Out,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_are_found_by_what_they_begin_with(
            names in vec(vec(prop_oneof![Just(0), Just(1), Just(0xff)], 0..5), 0..40),
            start in vec(prop_oneof![Just(0), Just(1), Just(0xff)], 0..4),
        ) {
            let numbered = (0..).zip(&names);
            let map: TagIds = numbered.map(|(id, name)| (name.as_slice().into(), id)).collect();
            let found: Vec<_> = begun_by(&map, &start).map(|(_, id)| id).collect();
            let wanted = map.iter().filter(|(name, _)| name.starts_with(&start));
            prop_assert_eq!(found, wanted.map(|(_, id)| *id).collect::<Vec<_>>());
        }
    }
}
