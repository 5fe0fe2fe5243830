//! The cost of objects, hits, purges and evictions, in counts instead of times.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

use bolide_base::prng::Prng;
use bolide_cache::{
    KeyBuilder, Lookup, ObjectHead, Store, StoreLimits, TagPurge, TagScope, Tags, Times,
};
use bolide_http::{FieldMap, Name};
use bytes::Bytes;

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

fn note(count: u64, bytes: i64) {
    COUNT.with(|cell| cell.set(cell.get() + count));
    BYTES.with(|cell| cell.set(cell.get() + bytes));
}

#[allow(unsafe_code, reason = "an allocator that counts has to be an allocator")]
// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size() as i64);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(0, -(layout.size() as i64));
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(1, size as i64 - layout.size() as i64);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn fill(store: &std::sync::Arc<Store>, keys: &KeyBuilder, tags: &Tags, body: &Bytes) {
    let Lookup::Miss(mut permit) = store.lookup(&keys.public(), 0) else { panic!("no miss") };
    let mut fields = FieldMap::new();
    fields.push(Name::ContentType, b"text/html; charset=utf-8");
    let times = Times { expires_ms: 1 << 40, ..Times::default() };
    let head = ObjectHead { status: 200, fields, times, ..ObjectHead::default() };
    let _ = permit.begin(head, tags);
    let _ = permit.append(body.clone());
    let _ = permit.commit();
}

#[test]
fn an_object_costs_at_most_200_bytes_beyond_what_it_stores() {
    const OBJECTS: usize = 100_000;
    let limits = StoreLimits { bytes: 1 << 32, front_entries: 2, ..StoreLimits::default() };
    let store = Store::new(limits, 7);
    let site = store.namespace(b"a");
    let mut keys = KeyBuilder::default();
    let mut tags = Tags::default();
    tags.push(b"tag");
    let body = Bytes::from(vec![b'x'; 2048]);
    let path = |index: usize| format!("https://a.test/{index:016}");
    let mut make = |index: usize| {
        keys.start(site);
        keys.push_url(path(index).as_bytes());
        fill(&store, &keys, &tags, &body);
    };
    make(OBJECTS);
    let before = BYTES.with(Cell::get);
    (0..OBJECTS).for_each(make);
    let used = BYTES.with(Cell::get) - before;
    let mut part = 0;
    // The first share of a body allocates its reference count.
    while store.index().list(part, &mut |object| drop(object.body())) {
        part += 1;
    }
    let shared = BYTES.with(Cell::get) - before;
    let field = 6 + "Content-Type".len() + "text/html; charset=utf-8".len();
    let content = 2048 + path(0).len() + field;
    let each = used as usize / OBJECTS - content;
    let served = shared as usize / OBJECTS - content;
    println!("{each} bytes of overhead each, {served} once it was served");
    assert!(each <= served && served <= 200, "{served} bytes");
    assert_eq!(store.stats().evicted, 0);
}

#[test]
fn a_warm_hit_allocates_nothing_and_nor_does_one_after_a_purge() {
    let store = Store::new(StoreLimits::default(), 7);
    let site = store.namespace(b"a");
    let mut front = store.front(0);
    let mut keys = KeyBuilder::default();
    let mut tags = Tags::default();
    ["a", "b", "c"].iter().for_each(|tag| tags.push(tag.as_bytes()));
    let mut fields = FieldMap::new();
    let mut ask = |front: &mut bolide_cache::Front, fields: &mut FieldMap| {
        keys.start(site);
        keys.push_url(b"https://a.test/");
        keys.push_url(b"page");
        keys.push_vary(b"mobile");
        let Lookup::Hit(object) = front.lookup(&keys.public(), 5) else { return None };
        fields.clear();
        object.fields(fields);
        object.body().map(|body| body.len())
    };
    let mut first = KeyBuilder::default();
    first.start(site);
    first.push_url(b"https://a.test/page");
    first.push_vary(b"mobile");
    fill(&store, &first, &tags, &Bytes::from(vec![1; 30_000]));
    for _ in 0..3 {
        assert_eq!(ask(&mut front, &mut fields), Some(30_000));
    }
    store.purge_tag(site, TagScope::Public, b"other", TagPurge::Dead);
    let before = COUNT.with(Cell::get);
    for _ in 0..100 {
        assert_eq!(ask(&mut front, &mut fields), Some(30_000));
        front.tend(16);
    }
    assert_eq!(COUNT.with(Cell::get) - before, 0);
}

#[test]
fn a_purged_tag_of_many_objects_is_one_write() {
    let limits = StoreLimits { bytes: 1 << 32, ..StoreLimits::default() };
    let store = Store::new(limits, 7);
    let site = store.namespace(b"a");
    let mut keys = KeyBuilder::default();
    let mut tags = Tags::default();
    tags.push(b"tag");
    for index in 0..20_000 {
        keys.start(site);
        keys.push_url(format!("/{index}").as_bytes());
        fill(&store, &keys, &tags, &Bytes::from_static(b"x"));
    }
    let before = COUNT.with(Cell::get);
    assert_eq!(store.purge_tag(site, TagScope::Public, b"tag", TagPurge::Dead), 20_000);
    assert!(COUNT.with(Cell::get) - before <= 4);
    assert_eq!(store.stats().objects, 20_000, "nothing was walked");
    let freed = store.sweep(1_000, 0);
    assert!((900..=1_000).contains(&freed), "{freed}");
}

/// The hits of a trace in a least-recently-used cache of `size` objects.
fn lru(trace: &[u64], size: usize) -> usize {
    let (mut used, mut order) = (HashMap::new(), BTreeMap::new());
    let mut hits = 0;
    for (time, item) in trace.iter().enumerate() {
        if let Some(last) = used.insert(*item, time) {
            order.remove(&last);
            hits += 1;
        }
        order.insert(time, *item);
        if used.len() > size {
            let (_, oldest) = order.pop_first().expect("as many as are used");
            used.remove(&oldest);
        }
    }
    hits
}

fn ours(trace: &[u64], size: usize) -> usize {
    let overhead = 200 + 8 + 8 + 4;
    let limits = StoreLimits {
        bytes: (size * (overhead + 256 + 42)) as u64,
        front_entries: 64,
        ..StoreLimits::default()
    };
    let store = Store::new(limits, 7);
    let site = store.namespace(b"a");
    let mut front = store.front(0);
    let mut keys = KeyBuilder::default();
    let body = Bytes::from(vec![0; 256]);
    let mut hits = 0;
    for item in trace {
        keys.start(site);
        keys.push_url(&item.to_le_bytes());
        match front.lookup(&keys.public(), 0) {
            Lookup::Hit(_) => hits += 1,
            found => {
                drop(found);
                fill(&store, &keys, &Tags::default(), &body);
            }
        }
    }
    let held = store.stats().objects as usize;
    assert!(held <= size + size / 20, "{held} objects where the other has {size}");
    hits
}

/// Requests for `items` by Zipf(0.9), with a scan of `scan` new ones after every `between`
/// requests.
fn trace(items: usize, len: usize, between: usize, scan: usize) -> Vec<u64> {
    let mut sums = Vec::with_capacity(items);
    let mut sum = 0.0;
    for rank in 1..=items {
        sum += 1.0 / (rank as f64).powf(0.9);
        sums.push(sum);
    }
    let mut chance = Prng::new(1);
    let (mut trace, mut fresh) = (Vec::with_capacity(len), 1 << 40);
    while trace.len() < len {
        for _ in 0..between {
            let at = (chance.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 * sum;
            trace.push(sums.partition_point(|sum| *sum < at) as u64);
        }
        trace.extend(fresh..fresh + scan as u64);
        fresh += scan as u64;
    }
    trace
}

#[test]
fn scans_do_not_wash_out_what_is_used() {
    for (name, scan) in [("zipf 0.9", 0), ("zipf 0.9 with scans", 1000)] {
        for size in [200, 1000, 2000] {
            let trace = trace(20_000, 60_000, 2000, scan);
            let (own, least_recent) = (ours(&trace, size), lru(&trace, size));
            let share = |hits: usize| hits as f64 * 100.0 / trace.len() as f64;
            println!("{name}, {size}: {:.1} % to {:.1} %", share(own), share(least_recent));
            assert!(own > least_recent, "{name}, {size}: {own} hits, {least_recent} with LRU");
        }
    }
}
