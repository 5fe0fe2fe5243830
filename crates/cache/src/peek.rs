//! Read-only lookups, and explanations of objects, for the command line.
//!
//! It counts nothing, records no use and grants nothing. INVARIANT: a permit from here is not in
//! the index, so nothing that happens to it has an effect.

use std::collections::HashSet;
use std::sync::Arc;

use crate::decisions::DecisionRecord;
use crate::fills::failed;
use crate::front::Front;
use crate::growing::{Follower, GrowingObject};
use crate::key::{CacheKey, KEY_SIZE_MAX};
use crate::object::{Object, ObjectKind};
use crate::permit::FillPermit;
use crate::store::{Freshness, Lookup, Store, judge};
use crate::tags::{TagTable, lock};

/// The worker number of a [`Store::dry_front`], which belongs to no worker.
const NO_WORKER: u16 = u16::MAX;

/// One tag, or all tags with a prefix, in any namespace and session.
#[derive(Clone, Debug)]
pub struct Tagged(HashSet<u32>);

impl Tagged {
    /// Whether an object has such a tag.
    #[must_use]
    pub fn covers(&self, object: &Object) -> bool {
        object.tags().any(|id| self.0.contains(&id))
    }
}

impl Store {
    /// A table for dry runs: its lookups return what a [`Front`] would, without side effects. Its
    /// permits have no effect.
    #[must_use]
    pub fn dry_front(self: &Arc<Self>) -> Front {
        Front::dry(Arc::clone(self), NO_WORKER)
    }

    /// The result that [`Store::lookup`] would have.
    pub(crate) fn peek(self: &Arc<Self>, key: &CacheKey<'_>, now_ms: u64) -> Lookup {
        if key.text.len() > KEY_SIZE_MAX {
            return Lookup::Pass;
        }
        let generation = self.generation();
        let permit = |stale: Option<Arc<Object>>| {
            let growing = Arc::new(GrowingObject::new(key, generation, stale));
            FillPermit::new(Arc::clone(self), growing)
        };
        let shard = lock(self.index.shard(key.url_hash));
        let fill = shard.fills.joinable(key);
        let is_killed = |growing: &Arc<GrowingObject>| growing.is_killed(&self.tags);
        let mut old = None;
        if let Some(object) = shard.find(key).and_then(|place| shard.at(place)).cloned() {
            match judge(&object, &self.tags, now_ms) {
                Freshness::Fresh => {
                    return match object.kind() {
                        ObjectKind::Content => Lookup::Hit(object),
                        ObjectKind::Vary => Lookup::Vary(object),
                        ObjectKind::Pass => Lookup::Pass,
                        ObjectKind::Failed => failed(&object),
                    };
                }
                Freshness::Gone => {}
                Freshness::Stale => {
                    let busy = match fill {
                        Some(growing) => !is_killed(growing),
                        None => shard.is_resting(key, now_ms),
                    };
                    let refresh = (!busy).then(|| permit(Some(object.clone())));
                    drop(shard);
                    return Lookup::Stale(object, refresh);
                }
                Freshness::Old => old = Some(object),
            }
        }
        match fill {
            Some(growing) if !growing.is(key) => return Lookup::Pass,
            // A fill that never proceeds, so that the real one gets no waiter.
            Some(growing) if !is_killed(growing) => {
                let still = Arc::new(GrowingObject::new(key, generation, None));
                return Lookup::Join(Follower::new(still, generation));
            }
            _ => {}
        }
        Lookup::Miss(permit(old))
    }

    /// Visits the recent decisions of all workers, in no order.
    pub fn decisions(&self, mut visit: impl FnMut(DecisionRecord)) {
        let rings = lock(&self.rings).clone();
        rings.iter().for_each(|ring| ring.read(&mut visit));
    }
}

impl TagTable {
    /// The tags by which purges have hit an object since it was last known to be good; `*` means a
    /// purge of everything. It scans the whole table, so it is for the command line only.
    #[must_use]
    pub fn purged_by(&self, object: &Object) -> Vec<Vec<u8>> {
        let struck = self.struck(object.tags(), object.known());
        if struck.is_empty() {
            return Vec::new();
        }
        let mut texts = self.texts(&struck);
        if texts.is_empty() {
            texts.push(b"*".to_vec());
        }
        texts
    }

    /// The tags of each of `objects` as text. It scans the whole table once, so it is for the
    /// command line only.
    #[must_use]
    pub fn texts_of_all(&self, objects: &[Arc<Object>]) -> Vec<Vec<Vec<u8>>> {
        let ids: HashSet<u32> = objects.iter().flat_map(|object| object.tags()).collect();
        let names = self.names(|id, _| ids.contains(&id));
        let names_of = |object: &Arc<Object>| {
            let mut texts: Vec<_> =
                object.tags().filter_map(|id| names.get(&id).cloned()).collect();
            texts.sort_unstable();
            texts
        };
        objects.iter().map(names_of).collect()
    }

    /// Selects objects with the tag `text` in any namespace and session. It scans the whole table,
    /// so it is for the command line only.
    #[must_use]
    pub fn tagged(&self, text: &[u8]) -> Tagged {
        let (start, is_prefix) = match text.split_last() {
            Some((b'*', start)) => (start, true),
            _ => (text, false),
        };
        let fits = |tag: &[u8]| if is_prefix { tag.starts_with(start) } else { tag == start };
        Tagged(self.names(|_, tag| fits(tag)).into_keys().collect())
    }

    /// The tags of an object as text. It scans the whole table, so it is for the command line only.
    #[must_use]
    pub fn texts_of(&self, object: &Object) -> Vec<Vec<u8>> {
        self.texts(&object.tags().collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::NO_WORKER;
    use crate::{
        AbandonReason, KeyBuilder, Lookup, ObjectHead, Store, StoreLimits, TagPurge, TagScope,
        Tags, Times,
    };

    fn filled(store: &Arc<Store>, keys: &KeyBuilder, times: Times) {
        let Lookup::Miss(mut permit) = store.lookup(&keys.public(), 0) else { panic!("a miss") };
        let mut tags = Tags::default();
        tags.push(b"a");
        tags.push(b"b");
        let head = ObjectHead { status: 200, times, ..ObjectHead::default() };
        let _nobody = permit.begin(head, &tags);
        assert!(permit.commit().object.is_some());
    }

    #[test]
    fn a_dry_look_up_finds_what_a_real_one_would_and_moves_nothing() {
        let store = Store::new(StoreLimits::default(), 1);
        let mut keys = KeyBuilder::default();
        keys.start(store.namespace(b"site"));
        keys.push_url(b"/a");
        let mut dry = store.dry_front();
        assert_eq!(dry.worker(), NO_WORKER);
        let before = store.stats();
        let Lookup::Miss(permit) = dry.lookup(&keys.public(), 0) else { panic!("a miss") };
        let Lookup::Miss(other) = dry.lookup(&keys.public(), 0) else { panic!("still a miss") };
        assert!(permit.abandon(AbandonReason::Gone).0.is_empty());
        drop(other);
        assert_eq!(store.stats(), before);
        let Lookup::Miss(real) = store.lookup(&keys.public(), 0) else { panic!("a real miss") };
        assert!(matches!(dry.lookup(&keys.public(), 0), Lookup::Join(_)));
        drop(real);
        let times = Times { expires_ms: 1000, stale_seconds: 1, ..Times::default() };
        filled(&store, &keys, times);
        assert!(matches!(dry.lookup(&keys.public(), 999), Lookup::Hit(_)));
        for _ in 0..2 {
            assert!(matches!(dry.lookup(&keys.public(), 1500), Lookup::Stale(_, Some(_))));
        }
        let Lookup::Stale(_, Some(refresh)) = store.lookup(&keys.public(), 1500) else {
            panic!("the refresh is still to be had")
        };
        assert!(matches!(dry.lookup(&keys.public(), 1500), Lookup::Stale(_, None)));
        drop(refresh);
        let Lookup::Miss(permit) = dry.lookup(&keys.public(), 3000) else { panic!("too old") };
        assert!(permit.stale().is_some());
    }

    #[test]
    fn the_tag_that_killed_an_object_is_named() {
        let store = Store::new(StoreLimits::default(), 1);
        let site = store.namespace(b"site");
        let mut keys = KeyBuilder::default();
        keys.start(site);
        keys.push_url(b"/a");
        let fresh = Times { expires_ms: u64::MAX, ..Times::default() };
        filled(&store, &keys, fresh);
        let object = store.index().copies(&keys.public()).remove(0);
        assert!(store.tags().purged_by(&object).is_empty());
        store.purge_tag(site, TagScope::Public, b"b", TagPurge::Dead);
        assert_eq!(store.tags().purged_by(&object), [b"b".to_vec()]);
        filled(&store, &keys, fresh);
        let object = store.index().copies(&keys.public()).remove(0);
        store.purge_all(site, TagPurge::Dead);
        assert_eq!(store.tags().purged_by(&object), [b"*".to_vec()]);
    }
}
