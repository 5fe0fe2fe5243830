//! Purges of tags by name, by prefix and by what their texts say.

use std::sync::atomic::Ordering;

use super::{
    Prefix, TagPurge, TagRoot, TagScope, TagSlot, TagTable, TagVerdict, Tags, begun_by, lock, name,
    root_name,
};
use crate::key::{NamespaceId, SessionKey};

/// LIMIT: prefix purges remembered for fills in progress. Above it those fills are not stored.
const PREFIXES_MAX: usize = 64;

impl TagTable {
    fn strike(slot: &TagSlot, generation: u64, how: TagPurge) -> u64 {
        match how {
            TagPurge::Dead => {
                let before = slot.purged.swap(generation, Ordering::AcqRel);
                debug_assert!(before < generation, "the generations of purges increase");
                let mut word = slot.live.load(Ordering::Acquire);
                loop {
                    let next = (word >> 32).wrapping_add(1) << 32;
                    match slot.live.compare_exchange_weak(
                        word,
                        next,
                        Ordering::AcqRel,
                        Ordering::Acquire,
                    ) {
                        Ok(_) => return u64::from(word as u32),
                        Err(seen) => word = seen,
                    }
                }
            }
            TagPurge::Stale => {
                slot.stale.store(generation, Ordering::Release);
                u64::from(slot.live.load(Ordering::Acquire) as u32)
            }
        }
    }

    fn purge_name(&self, text: &[u8], how: TagPurge, note: impl FnOnce(u64)) -> u64 {
        let _one_at_a_time = lock(&self.recent);
        let generation = self.generation.load(Ordering::Acquire) + 1;
        note(generation);
        let mut map = lock(self.stripe(text));
        // An unknown tag is inserted: a fill in progress may have it.
        let id = self.enter(text, &mut map);
        let hit =
            id.and_then(|id| self.slot(id)).map_or(0, |slot| Self::strike(slot, generation, how));
        drop(map);
        self.publish(generation);
        hit
    }

    /// Purges one tag. Returns the number of objects that had it. `note` gets the generation before
    /// the purge takes effect.
    pub(crate) fn purge(
        &self,
        namespace: NamespaceId,
        scope: TagScope<'_>,
        tag: &[u8],
        how: TagPurge,
        note: impl FnOnce(u64),
    ) -> u64 {
        let mut text = Vec::with_capacity(64);
        name(namespace, scope, tag, &mut text);
        self.purge_name(&text, how, note)
    }

    /// Purges all objects under `root`.
    pub(crate) fn purge_root(
        &self,
        namespace: NamespaceId,
        root: &TagRoot<'_>,
        how: TagPurge,
        note: impl FnOnce(u64),
    ) -> u64 {
        let mut text = Vec::with_capacity(64);
        root_name(namespace, root, &mut text);
        self.purge_name(&text, how, note)
    }

    /// Raises the generation to `at` at least.
    pub(crate) fn raise_generation(&self, at: u64) {
        let _one_at_a_time = lock(&self.recent);
        self.generation.fetch_max(at, Ordering::AcqRel);
    }

    /// Purges every tag with this prefix. An object with several such tags counts for each.
    pub(crate) fn purge_prefix(
        &self,
        namespace: NamespaceId,
        scope: TagScope<'_>,
        prefix: &[u8],
        how: TagPurge,
        note: impl FnOnce(u64),
    ) -> u64 {
        let mut start = Vec::with_capacity(64);
        name(namespace, scope, prefix, &mut start);
        let mut recent = lock(&self.recent);
        let generation = self.generation.load(Ordering::Acquire) + 1;
        note(generation);
        let recent = &mut *recent;
        if recent.prefixes.len() < PREFIXES_MAX {
            recent.prefixes.push(Prefix { generation, start: start.clone(), how });
        } else {
            recent.forgotten = generation;
        }
        let mut hit = 0;
        for stripe in &self.stripes {
            let map = lock(stripe);
            for slot in begun_by(&map, &start).filter_map(|(_, id)| self.slot(id)) {
                hit += Self::strike(slot, generation, how);
            }
        }
        self.publish(generation);
        hit
    }

    /// Purges every public tag that `is_meant` selects. An object with several such tags counts for
    /// each. It visits all public tags of the namespace.
    pub(crate) fn purge_where(
        &self,
        namespace: NamespaceId,
        is_meant: impl Fn(&[u8]) -> bool,
        how: TagPurge,
        note: impl FnOnce(u64),
    ) -> u64 {
        let mut start = Vec::with_capacity(8);
        name(namespace, TagScope::Public, b"", &mut start);
        debug_assert!(start.ends_with(b"pt"), "no root and no session begins so");
        self.purge_by(|generation| {
            note(generation);
            let mut hit = 0;
            for stripe in &self.stripes {
                let map = lock(stripe);
                let meant = begun_by(&map, &start).filter(|(tag, _)| is_meant(tag));
                for slot in meant.filter_map(|(_, id)| self.slot(id)) {
                    hit += Self::strike(slot, generation, how);
                }
            }
            hit
        })
    }

    /// Assigns a generation to a purge that `act` executes by other means.
    pub(crate) fn purge_by(&self, act: impl FnOnce(u64) -> u64) -> u64 {
        let _one_at_a_time = lock(&self.recent);
        let generation = self.generation.load(Ordering::Acquire) + 1;
        let hit = act(generation);
        self.publish(generation);
        hit
    }

    /// Publishes the generation of a purge that has taken effect.
    fn publish(&self, generation: u64) {
        let before = self.generation.swap(generation, Ordering::AcqRel);
        assert_eq!(before + 1, generation, "purges take effect one at a time");
    }

    /// The effect of prefix purges after `known` on a response whose tags had no slots then.
    pub(crate) fn prefix_verdict(
        &self,
        namespace: NamespaceId,
        session: Option<SessionKey<'_>>,
        tags: &Tags,
        known: u64,
    ) -> TagVerdict {
        let recent = lock(&self.recent);
        if recent.forgotten > known {
            return TagVerdict::Dead;
        }
        let mut found = TagVerdict::Good;
        let mut text = Vec::new();
        let own = session.map_or(TagScope::Public, TagScope::Session);
        for purge in recent.prefixes.iter().filter(|purge| purge.generation > known) {
            let hit = tags.iter().any(|(tag, public)| {
                name(namespace, if public { TagScope::Public } else { own }, tag, &mut text);
                text.starts_with(&purge.start)
            });
            match purge.how {
                TagPurge::Dead if hit => return TagVerdict::Dead,
                TagPurge::Stale if hit => found = TagVerdict::Stale,
                TagPurge::Dead | TagPurge::Stale => {}
            }
        }
        found
    }
}
