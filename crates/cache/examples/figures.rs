//! Measures the store with large numbers of objects: `cargo run --release -p cache --example
//! figures`. No test depends on it.
#![expect(clippy::print_stdout, reason = "it is a program that prints figures")]
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "it measures time")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bolide_cache::{
    Front, KeyBuilder, Lookup, ObjectHead, Store, StoreLimits, TagPurge, TagScope, Tags, Times,
};
use bolide_http::{FieldMap, Name};
use bytes::Bytes;

const OBJECTS: usize = 1_000_000;
const TAGGED: usize = 100_000;
const HOT: usize = 64;

fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}

fn fill(store: &Arc<Store>, keys: &KeyBuilder, tags: &Tags, body: &Bytes) {
    let Lookup::Miss(mut permit) = store.lookup(&keys.public(), 0) else { return };
    let mut fields = FieldMap::new();
    fields.push(Name::ContentType, b"text/html; charset=utf-8");
    let times = Times { expires_ms: 1 << 40, ..Times::default() };
    let head = ObjectHead { status: 200, fields, times, ..ObjectHead::default() };
    drop(permit.begin(head, tags));
    drop(permit.append(body.clone()));
    drop(permit.commit());
}

/// Nanoseconds of a repeated hit among a few hot pages.
fn hit(front: &mut Front, keys: &mut [KeyBuilder], rounds: usize) -> f64 {
    let start = Instant::now();
    for round in 0..rounds {
        let found = front.lookup(&keys[round % HOT].public(), 1);
        assert!(matches!(found, Lookup::Hit(_)), "hot pages stay");
    }
    start.elapsed().as_nanos() as f64 / rounds as f64
}

fn main() {
    let limits = StoreLimits { bytes: 1 << 33, ..StoreLimits::default() };
    let store = Store::new(limits, 7);
    let site = store.namespace(b"a");
    let body = Bytes::from(vec![b'x'; 2048]);
    let (mut plain, mut tagged) = (Tags::default(), Tags::default());
    plain.push(b"other");
    tagged.push(b"tag");
    let key = |index: usize| {
        let mut keys = KeyBuilder::default();
        keys.start(site);
        keys.push_url(format!("https://a.test/{index:016}").as_bytes());
        keys
    };
    let before = resident_mib();
    let start = Instant::now();
    for index in 0..OBJECTS {
        fill(&store, &key(index), if index < TAGGED { &tagged } else { &plain }, &body);
    }
    let seconds = start.elapsed().as_secs_f64();
    let grown = resident_mib() - before;
    let each = grown * 1024.0 * 1024.0 / OBJECTS as f64;
    println!("{OBJECTS} objects of 2 KB in {seconds:.1} s: {grown:.0} MiB, {each:.0} bytes each");

    let mut front = store.front(0);
    let mut hot: Vec<KeyBuilder> = (TAGGED..TAGGED + HOT).map(key).collect();
    hit(&mut front, &mut hot, 1_000_000);
    println!("a warm hit: {:.1} ns", hit(&mut front, &mut hot, 10_000_000));

    let start = Instant::now();
    let count = store.purge_tag(site, TagScope::Public, b"tag", TagPurge::Dead);
    println!(
        "a tag of {count} objects purged in {:.1} us",
        start.elapsed().as_nanos() as f64 / 1e3
    );

    // Purges of another tag in a loop, and sweeps of the objects purged before.
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, over) = (&store, &over);
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                store.purge_tag(site, TagScope::Public, b"tag", TagPurge::Dead);
                store.sweep(64, 1);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        println!("a warm hit meanwhile: {:.1} ns", hit(&mut front, &mut hot, 10_000_000));
        over.store(true, Ordering::Relaxed);
    });
}
