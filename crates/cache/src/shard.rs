//! One part of the index: two chained tables over one slab, and S3-FIFO over the same entries.
//!
//! ```text
//!            new                       used meanwhile
//!   insert ───────▶ small (10 %) ──────────────────────▶ main ──▶ again while it was used
//!      │                └── not used ──▶ ghost               └──▶ evicted when it was not
//!      └── its ghost exists ───────────────────────────▶ main
//! ```
//! A scan passes through the small queue and leaves the main queue alone.
//!
//! INVARIANT: the bytes of a queue change only together with its entries, and the charge of an
//! entry changes only under the lock of its shard.

use std::collections::HashMap;
use std::sync::Arc;

use crate::fills::ShardFills;
use crate::key::{CacheKey, NamespaceId, url_hash};
use crate::object::{Object, ObjectKind};

const NONE: u32 = u32::MAX;
/// LIMIT: variants of one URL, per session and for the public cache.
const COPIES_MAX: usize = 512;
/// LIMIT: failed revalidations that are not retried at once.
const RESTING_MAX: usize = 256;
/// LIMIT: entries that one search for a victim of a namespace visits.
const VICTIM_SEARCH: usize = 256;

#[derive(Debug)]
struct ShardEntry {
    object: Option<Arc<Object>>,
    /// The next entry of the bucket; for a free entry, the next free one.
    chain: u32,
    url: u32,
    older: u32,
    newer: u32,
}

#[derive(Debug)]
struct Queue {
    oldest: u32,
    newest: u32,
    bytes: u64,
}

impl Queue {
    const EMPTY: Self = Self { oldest: NONE, newest: NONE, bytes: 0 };
}

/// One part of the index, with its own lock.
#[derive(Debug)]
pub(crate) struct Shard {
    entries: Vec<ShardEntry>,
    free: u32,
    count: usize,
    buckets: Vec<u32>,
    urls: Vec<u32>,
    small: Queue,
    main: Queue,
    /// Fingerprints of objects that the small queue evicted unused.
    ghosts: Vec<u32>,
    pub(crate) fills: ShardFills,
    resting: HashMap<[u64; 2], u64>,
}

impl Shard {
    pub(crate) fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: NONE,
            count: 0,
            buckets: vec![NONE; 8],
            urls: vec![NONE; 8],
            small: Queue::EMPTY,
            main: Queue::EMPTY,
            ghosts: Vec::new(),
            fills: ShardFills::default(),
            resting: HashMap::new(),
        }
    }

    /// The number of entries, unswept ones included.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// The number of places, taken or free, for walks over all of them.
    pub(crate) const fn places(&self) -> usize {
        self.entries.len()
    }

    /// Bytes charged for its entries.
    pub(crate) const fn bytes(&self) -> u64 {
        self.small.bytes + self.main.bytes
    }

    /// The object at a place.
    pub(crate) fn at(&self, place: u32) -> Option<&Arc<Object>> {
        self.entries.get(place as usize)?.object.as_ref()
    }

    const fn bucket(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    const fn url_bucket(&self, hash: u64) -> usize {
        hash as usize & (self.urls.len() - 1)
    }

    /// The place of the object with this key.
    pub(crate) fn find(&self, key: &CacheKey<'_>) -> Option<u32> {
        let mut place = self.buckets[self.bucket(key.hash[1])];
        while place != NONE {
            let entry = &self.entries[place as usize];
            if entry.object.as_ref().is_some_and(|object| object.is_named(key)) {
                return Some(place);
            }
            place = entry.chain;
        }
        None
    }

    /// The places of all variants of the URL of `key`.
    pub(crate) fn copies(&self, key: &CacheKey<'_>) -> Vec<u32> {
        let mut found = Vec::new();
        let mut place = self.urls[self.url_bucket(key.url_hash)];
        while place != NONE {
            let entry = &self.entries[place as usize];
            if entry.object.as_ref().is_some_and(|object| object.is_at(key)) {
                found.push(place);
            }
            place = entry.url;
        }
        found
    }

    /// Inserts `object`. Returns the object that it replaces, and the variant that it evicts if its
    /// URL has too many.
    pub(crate) fn insert(
        &mut self,
        object: Arc<Object>,
        url_hash: u64,
    ) -> [Option<Arc<Object>>; 2] {
        let key = object.key(url_hash);
        let replaced = self.find(&key).map(|place| {
            let old = self.take(place);
            object.set_warmth(old.warmth());
            if old.marks().is_main() {
                object.marks().set_main();
            }
            old
        });
        debug_assert!(self.find(&key).is_none(), "a key has one entry");
        let copies = if key.vary().is_empty() { Vec::new() } else { self.copies(&key) };
        // The oldest variant, but not the entry with the names of the fields.
        let is_copy =
            |place: &u32| self.at(*place).is_some_and(|o| o.kind() == ObjectKind::Content);
        let surplus = (copies.len() >= COPIES_MAX)
            .then(|| copies.iter().rev().copied().find(is_copy))
            .flatten();
        let surplus = surplus.map(|place| self.take(place));
        if replaced.is_none() && self.haunts(object.hash()) {
            object.marks().set_main();
        }
        self.enter(object, url_hash);
        [replaced, surplus]
    }

    fn enter(&mut self, object: Arc<Object>, url_hash: u64) {
        if self.count >= self.buckets.len() * 2 {
            self.rehash();
        }
        let (bucket, url_bucket) = (self.bucket(object.hash()), self.url_bucket(url_hash));
        let entry = ShardEntry {
            object: Some(object),
            chain: self.buckets[bucket],
            url: self.urls[url_bucket],
            older: NONE,
            newer: NONE,
        };
        let place = if self.free == NONE {
            if self.entries.len() == self.entries.capacity() {
                // An eighth instead of double, because unused places count as overhead.
                self.entries.reserve_exact(self.entries.len() / 8 + 16);
            }
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        } else {
            let place = self.free;
            self.free = self.entries[place as usize].chain;
            self.entries[place as usize] = entry;
            place
        };
        self.buckets[bucket] = place;
        self.urls[url_bucket] = place;
        self.count += 1;
        self.queue(place);
    }

    /// Doubles both tables.
    fn rehash(&mut self) {
        let size = self.buckets.len() * 2;
        self.buckets = vec![NONE; size];
        self.urls = vec![NONE; size];
        for place in 0..self.entries.len() {
            let Some(object) = &self.entries[place].object else { continue };
            let bucket = self.bucket(object.hash());
            let url = url_hash(object.namespace(), object.session(), object.url());
            let url_bucket = self.url_bucket(url);
            self.entries[place].chain = std::mem::replace(&mut self.buckets[bucket], place as u32);
            self.entries[place].url = std::mem::replace(&mut self.urls[url_bucket], place as u32);
        }
    }

    /// Removes the object at `place`, which must be taken, and retires it: a purge that finds it no
    /// more under this lock returns, and then no table of hits may serve it.
    pub(crate) fn take(&mut self, place: u32) -> Arc<Object> {
        self.unqueue(place);
        let object = self.entries[place as usize].object.take();
        let object = object.expect("a place that was found or queued holds an object");
        assert!(!object.is_retired(), "no shard has what was retired");
        object.marks().retire();
        let bucket = self.bucket(object.hash());
        let url = url_hash(object.namespace(), object.session(), object.url());
        let url_bucket = self.url_bucket(url);
        let entry = &self.entries[place as usize];
        let (chain, url_next) = (entry.chain, entry.url);
        if self.buckets[bucket] == place {
            self.buckets[bucket] = chain;
        } else {
            let mut before = self.buckets[bucket] as usize;
            while self.entries[before].chain != place {
                before = self.entries[before].chain as usize;
            }
            self.entries[before].chain = chain;
        }
        if self.urls[url_bucket] == place {
            self.urls[url_bucket] = url_next;
        } else {
            let mut before = self.urls[url_bucket] as usize;
            while self.entries[before].url != place {
                before = self.entries[before].url as usize;
            }
            self.entries[before].url = url_next;
        }
        self.entries[place as usize].chain = self.free;
        self.free = place;
        self.count -= 1;
        debug_assert!(
            self.count > 0 || self.bytes() == 0 && self.small.oldest == self.main.oldest,
            "an empty shard has no bytes and empty queues"
        );
        object
    }

    /// Appends a place to the queue of its object.
    fn queue(&mut self, place: u32) {
        let Some(object) = &self.entries[place as usize].object else { return };
        let queue = if object.marks().is_main() { &mut self.main } else { &mut self.small };
        queue.bytes += object.charge();
        let newest = std::mem::replace(&mut queue.newest, place);
        if newest == NONE {
            queue.oldest = place;
        } else {
            self.entries[newest as usize].newer = place;
        }
        let entry = &mut self.entries[place as usize];
        debug_assert!(newest != place, "an entry is in one queue, once");
        (entry.older, entry.newer) = (newest, NONE);
    }

    fn unqueue(&mut self, place: u32) {
        let entry = &self.entries[place as usize];
        let (older, newer) = (entry.older, entry.newer);
        let Some(object) = &entry.object else { return };
        let queue = if object.marks().is_main() { &mut self.main } else { &mut self.small };
        assert!(queue.bytes >= object.charge(), "the bytes of a queue are those of its entries");
        queue.bytes -= object.charge();
        if older == NONE {
            queue.oldest = newer;
        } else {
            self.entries[older as usize].newer = newer;
        }
        let queue =
            if self.entries[place as usize].object.as_ref().is_some_and(|o| o.marks().is_main()) {
                &mut self.main
            } else {
                &mut self.small
            };
        if newer == NONE {
            queue.newest = older;
        } else {
            self.entries[newer as usize].older = older;
        }
    }

    /// Adds to the charge of a queue. The caller has just made the object larger by as much.
    pub(crate) const fn enlarge(&mut self, is_main: bool, bytes: u64) {
        if is_main {
            self.main.bytes += bytes;
        } else {
            self.small.bytes += bytes;
        }
    }

    /// Evicts an object by S3-FIFO.
    pub(crate) fn evict(&mut self) -> Option<Arc<Object>> {
        // An entry is requeued at most once per step of its warmth, which other threads may raise.
        let mut patience = self.count * 4 + 4;
        loop {
            let total = self.bytes();
            let from_small = self.small.oldest != NONE
                && (self.small.bytes * 10 > total || self.main.oldest == NONE);
            let place = if from_small { self.small.oldest } else { self.main.oldest };
            let object = self.at(place)?;
            let warmth = object.warmth();
            patience = patience.saturating_sub(1);
            if warmth == 0 || patience == 0 {
                let object = self.take(place);
                if from_small && object.kind() == ObjectKind::Content {
                    self.haunt(object.hash());
                }
                return Some(object);
            }
            let object = Arc::clone(object);
            self.unqueue(place);
            if from_small {
                object.set_warmth(0);
                object.marks().set_main();
            } else {
                object.set_warmth(warmth - 1);
            }
            self.queue(place);
        }
    }

    /// Evicts one of the oldest objects of a namespace.
    pub(crate) fn evict_of(&mut self, namespace: NamespaceId) -> Option<Arc<Object>> {
        for oldest in [self.small.oldest, self.main.oldest] {
            let mut place = oldest;
            for _ in 0..VICTIM_SEARCH {
                let Some(entry) = self.entries.get(place as usize) else { break };
                let newer = entry.newer;
                if entry.object.as_ref().is_some_and(|object| object.namespace() == namespace) {
                    return Some(self.take(place));
                }
                place = newer;
            }
        }
        None
    }

    const fn fingerprint(hash: u64) -> u32 {
        (hash as u32) | 1
    }

    fn haunt(&mut self, hash: u64) {
        let size = self.count.next_power_of_two().max(64);
        if self.ghosts.len() < size {
            self.ghosts = vec![0; size];
        }
        let at = (hash >> 32) as usize & (self.ghosts.len() - 1);
        self.ghosts[at] = Self::fingerprint(hash);
    }

    fn haunts(&self, hash: u64) -> bool {
        let at = (hash >> 32) as usize & self.ghosts.len().wrapping_sub(1);
        self.ghosts.get(at) == Some(&Self::fingerprint(hash))
    }

    /// Whether a revalidation of this key has failed recently.
    pub(crate) fn is_resting(&self, key: &CacheKey<'_>, now_ms: u64) -> bool {
        self.resting.get(&key.hash).is_some_and(|until| now_ms < *until)
    }

    /// Suspends revalidations of this key until `until_ms`.
    pub(crate) fn rest(&mut self, key: &CacheKey<'_>, until_ms: u64, now_ms: u64) {
        if self.resting.len() >= RESTING_MAX {
            self.resting.retain(|_, until| now_ms < *until);
        }
        debug_assert!(self.resting.len() <= RESTING_MAX, "suspended keys are bounded");
        if self.resting.len() < RESTING_MAX {
            self.resting.insert(key.hash, until_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::key::KeyBuilder;
    use crate::object::{ObjectHead, Times};
    use crate::store::{Lookup, Store, StoreLimits};
    use crate::tags::{Tags, lock};

    /// Another thread is between taking an object out and releasing it, and a purge of its URL,
    /// which does not find it any more, has returned.
    #[test]
    fn no_table_of_hits_serves_what_a_shard_gave_up() {
        let store = Store::new(StoreLimits::default(), 1);
        let mut keys = KeyBuilder::default();
        keys.start(store.namespace(b"site"));
        keys.push_url(b"/");
        let (key, mut front) = (keys.public(), store.front(0));
        let Lookup::Miss(mut permit) = front.lookup(&key, 0) else { panic!("a miss") };
        let times = Times { expires_ms: 10, ..Times::default() };
        let head = ObjectHead { status: 200, times, ..ObjectHead::default() };
        let _none_waits = permit.begin(head, &Tags::default());
        assert!(permit.commit().object.is_some());
        assert!(matches!(front.lookup(&key, 0), Lookup::Hit(_)));
        let taken = {
            let mut shard = lock(store.index.shard(key.url_hash));
            let place = shard.find(&key).expect("an entry");
            shard.take(place)
        };
        assert!(matches!(front.lookup(&key, 0), Lookup::Miss(_)));
        store.let_go(&taken);
    }
}
