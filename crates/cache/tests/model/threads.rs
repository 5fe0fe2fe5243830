//! Four threads on one small store, each a worker with a mailbox.
//!
//! A body contains its creation time by a shared logical clock. So each thread can check that no
//! purge which returned before its lookup was lost.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, MutexGuard};

use bolide_base::prng::Prng;
use bolide_cache::{
    AbandonReason, FillPermit, Follow, Follower, Front, GrowthRead, Lookup, ObjectHead, Store,
    StoreLimits, TagPurge, TagScope, Tags, Times, Waited, Waiter, Wakes,
};
use bytes::Bytes;

use super::{LIFE_MS, SITES, TAGS, Target, URLS, parse};

const WORKERS: usize = 4;
const STEPS: u64 = 1_500;
const SPACES: usize = (SITES * 3) as usize;

/// The state that all threads share.
struct World {
    store: Arc<Store>,
    clock: AtomicU64,
    /// When the last purge that returned had begun, by namespace and tag, by namespace and URL, by
    /// namespace.
    tags: Vec<AtomicU64>,
    urls: Vec<AtomicU64>,
    all: Vec<AtomicU64>,
    /// The purges that have begun and those that have returned, by namespace.
    begun: Vec<AtomicU64>,
    returned: Vec<AtomicU64>,
    /// The fills by target, and how many purges had returned before their lookup.
    holders: Mutex<HashMap<Target, (usize, u64)>>,
    mail: Vec<Mutex<Vec<u64>>>,
    finish: Barrier,
}

impl World {
    fn new(bytes: u64) -> Self {
        let limits = StoreLimits { bytes, front_entries: 8, ..StoreLimits::default() };
        let many = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        Self {
            store: Store::new(limits, 1),
            clock: AtomicU64::new(1),
            tags: many(SPACES * TAGS as usize),
            urls: many(SPACES * URLS as usize),
            all: many(SPACES),
            begun: many(SPACES),
            returned: many(SPACES),
            holders: Mutex::default(),
            mail: (0..WORKERS).map(|_| Mutex::default()).collect(),
            finish: Barrier::new(WORKERS),
        }
    }

    fn space(target: Target) -> usize {
        target.site as usize * 3 + target.session
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Objects with this tag that are older than this must be gone.
    fn floors(&self, target: Target) -> Floors {
        let space = Self::space(target);
        let at = |all: &[AtomicU64], index: usize| all[index].load(Ordering::SeqCst);
        let url = at(&self.urls, space * URLS as usize + target.url as usize);
        let whole = url.max(at(&self.all, space));
        let tags = (0..TAGS as usize).map(|tag| at(&self.tags, space * TAGS as usize + tag));
        Floors { whole, tags: tags.collect() }
    }

    fn post(&self, wakes: Wakes) {
        for waiter in wakes.0 {
            lock(&self.mail[usize::from(waiter.worker)]).push(waiter.exchange);
        }
    }

    /// Purges first, and then publishes it.
    fn purge(&self, chance: &mut Prng) {
        let target = Target::any(chance);
        let (space, began) = (Self::space(target), self.tick());
        self.begun[space].fetch_add(1, Ordering::SeqCst);
        let (keys, site) = target.keys(&self.store);
        let scope = target.session().map_or(TagScope::Public, TagScope::Session);
        let tag = chance.below(TAGS);
        let name = format!("tag{tag}");
        let done = match chance.below(8) {
            0 => {
                self.store.purge_tag(site, scope, b"*", TagPurge::Dead);
                &self.all[space..=space]
            }
            1 => {
                self.store.purge_tag(site, scope, b"ta*", TagPurge::Dead);
                &self.tags[space * TAGS as usize..(space + 1) * TAGS as usize]
            }
            2..=4 => {
                let session = target.session();
                let key = session.map_or(keys.public(), |session| keys.private(session));
                self.store.purge_url(&key, TagPurge::Dead);
                let at = space * URLS as usize + target.url as usize;
                &self.urls[at..=at]
            }
            5 => {
                self.store.purge_tag(site, scope, name.as_bytes(), TagPurge::Stale);
                &[]
            }
            _ => {
                self.store.purge_tag(site, scope, name.as_bytes(), TagPurge::Dead);
                let at = space * TAGS as usize + tag as usize;
                &self.tags[at..=at]
            }
        };
        done.iter().for_each(|floor| {
            floor.fetch_max(began, Ordering::SeqCst);
        });
        self.returned[space].fetch_add(1, Ordering::SeqCst);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("a thread that panics ends the test")
}

#[derive(Clone, Debug)]
struct Floors {
    whole: u64,
    tags: Vec<u64>,
}

impl Floors {
    fn check(&self, bytes: &[u8], asked: Target) {
        let (found, tag, born) = parse(bytes.strip_suffix(b" whole").expect("all of it"));
        assert_eq!(found, asked, "the wrong object");
        assert!(born > self.whole.max(self.tags[tag as usize]), "a dead object: {born} {self:?}");
    }
}

/// A fill of one of the workers.
struct Fill {
    target: Target,
    permit: FillPermit,
    tag: u64,
    is_begun: bool,
}

/// A follower of a fill.
struct Reader {
    follower: Follower,
    target: Target,
    floors: Floors,
    bytes: Vec<u8>,
    sleeps: bool,
}

struct Worker<'a> {
    world: &'a World,
    number: usize,
    chance: Prng,
    front: Front,
    now: u64,
    fills: Vec<Fill>,
    readers: HashMap<u64, Reader>,
    kept: u64,
}

impl Worker<'_> {
    fn step(&mut self, step: u64) {
        match self.chance.below(20) {
            0..=8 => self.look_up(step),
            9..=14 => self.fill(),
            15 => self.give_up(),
            16 => self.world.purge(&mut self.chance),
            17 => self.now += self.chance.below(60),
            18 => {
                self.world.store.sweep(300, self.now);
            }
            _ => self.front.tend(4),
        }
        self.hear();
    }

    fn look_up(&mut self, step: u64) {
        let world = self.world;
        let target = Target::any(&mut self.chance);
        let returned = world.returned[World::space(target)].load(Ordering::SeqCst);
        let floors = world.floors(target);
        let permit = match target.look(&mut self.front, self.now) {
            Lookup::Hit(object) => {
                floors.check(&object.body().expect("one piece"), target);
                None
            }
            Lookup::Stale(object, permit) => {
                floors.check(&object.body().expect("one piece"), target);
                permit
            }
            Lookup::Miss(permit) => Some(permit),
            Lookup::Join(follower) => {
                let bytes = Vec::new();
                let reader = Reader { follower, target, floors, bytes, sleeps: false };
                self.readers.insert(step, reader);
                None
            }
            Lookup::Pass | Lookup::Failed(_) | Lookup::Vary(_) => None,
        };
        let Some(permit) = permit else { return };
        let mut holders = lock(&world.holders);
        if let Some((_, before)) = holders.insert(target, (self.number, returned)) {
            let later = world.begun[World::space(target)].load(Ordering::SeqCst);
            // A purge may have killed either of the two.
            assert!(later > before.min(returned), "{target:?} is filled twice at once");
        }
        let tag = self.chance.below(TAGS);
        self.fills.push(Fill { target, permit, tag, is_begun: false });
    }

    /// From here on another fill is allowed.
    fn release(&self, target: Target) {
        let mut holders = lock(&self.world.holders);
        if holders.get(&target).is_some_and(|(number, _)| *number == self.number) {
            holders.remove(&target);
        }
    }

    fn any_fill(&mut self) -> Option<usize> {
        let count = self.fills.len() as u64;
        (count > 0).then(|| self.chance.below(count) as usize)
    }

    fn fill(&mut self) {
        let Some(at) = self.any_fill() else { return };
        if !self.fills[at].is_begun {
            let (born, now) = (self.world.tick(), self.now);
            let fill = &mut self.fills[at];
            fill.is_begun = true;
            let mut tags = Tags::default();
            tags.push(format!("tag{}", fill.tag).as_bytes());
            let times = Times {
                created_ms: now,
                expires_ms: now + LIFE_MS,
                stale_seconds: 1,
                error_seconds: 2,
            };
            let head = ObjectHead { status: 200, times, ..ObjectHead::default() };
            let mut wakes = fill.permit.begin(head, &tags);
            wakes.join(fill.permit.append(super::body(fill.target, fill.tag, born)));
            return self.world.post(wakes);
        }
        match self.chance.below(6) {
            0 => {
                self.release(self.fills[at].target);
                // Its followers read on.
                let _is_read = self.fills[at].permit.pass_on(None);
            }
            // It goes on beside the next fill of its key.
            1 => {
                self.release(self.fills[at].target);
                return self.front.supersede(self.fills[at].permit.growing());
            }
            _ => {}
        }
        let mut fill = self.fills.swap_remove(at);
        let wakes = fill.permit.append(Bytes::from_static(b" whole"));
        self.world.post(wakes);
        self.release(fill.target);
        let committed = fill.permit.commit();
        self.kept += u64::from(committed.object.is_some());
        self.world.post(committed.wakes);
    }

    fn give_up(&mut self) {
        let Some(at) = self.any_fill() else { return };
        let Fill { target, permit, .. } = self.fills.swap_remove(at);
        self.release(target);
        let now_ms = self.now;
        let wakes = match self.chance.below(4) {
            0 => permit.abandon(AbandonReason::Uncacheable { until_ms: now_ms + 20 }),
            1 => permit.abandon(AbandonReason::Failed { now_ms, rest_until_ms: now_ms + 20 }),
            2 => permit.abandon(AbandonReason::Gone),
            // The next poll of any worker finds its waiters.
            _ => return drop(permit),
        };
        self.world.post(wakes);
    }

    /// Takes the mail and continues the followers.
    fn hear(&mut self) {
        self.world.post(self.front.poll_orphans());
        for exchange in std::mem::take(&mut *lock(&self.world.mail[self.number])) {
            if let Some(reader) = self.readers.get_mut(&exchange) {
                reader.sleeps = false;
            }
        }
        let worker = self.number as u16;
        self.readers.retain(|exchange, reader| {
            reader.sleeps || read(reader, Waiter { worker, exchange: *exchange })
        });
    }
}

/// Reads on; false at the end.
fn read(reader: &mut Reader, waiter: Waiter) -> bool {
    loop {
        match reader.follower.poll() {
            Follow::Again => return false,
            Follow::Waiting => {}
            Follow::Head => match reader.follower.read() {
                GrowthRead::Bytes(bytes) => {
                    reader.bytes.extend_from_slice(&bytes);
                    continue;
                }
                GrowthRead::Pending => {}
                GrowthRead::Broken => return false,
                GrowthRead::End => {
                    reader.floors.check(&reader.bytes, reader.target);
                    return false;
                }
            },
        }
        if reader.follower.wait(waiter) == Waited::Registered {
            reader.sleeps = true;
            return true;
        }
    }
}

/// The meetings at the end that a thread still has to come to: one that panics comes, too, so that
/// the others end and the test tells why.
struct Meetings<'a>(&'a Barrier, u32);

impl Meetings<'_> {
    fn wait(&mut self) {
        self.1 -= 1;
        self.0.wait();
    }
}

impl Drop for Meetings<'_> {
    fn drop(&mut self) {
        while self.1 > 0 {
            self.wait();
        }
    }
}

fn live(world: &World, number: usize, seed: u64) -> u64 {
    let mut meetings = Meetings(&world.finish, 2);
    let mut worker = Worker {
        world,
        number,
        chance: Prng::new(seed * WORKERS as u64 + number as u64),
        front: world.store.front(number as u16),
        now: 0,
        fills: Vec::new(),
        readers: HashMap::new(),
        kept: 0,
    };
    (0..STEPS).for_each(|step| worker.step(step));
    // No fill remains after this, and then no mail.
    while !worker.fills.is_empty() {
        worker.give_up();
    }
    meetings.wait();
    worker.hear();
    meetings.wait();
    worker.hear();
    assert!(worker.readers.is_empty(), "{} are stranded", worker.readers.len());
    worker.kept
}

#[test]
fn threads_lose_no_permit_and_no_waiter_and_get_no_dead_object() {
    let wanted = std::env::var("BOLIDE_SIM_SEEDS").ok();
    let seeds = wanted.map_or(100, |wanted| wanted.parse().expect("a number"));
    let mut kept = 0;
    for seed in 0..seeds {
        let world = World::new(if seed % 2 == 0 { 6_000 } else { 60_000 });
        kept += std::thread::scope(|scope| {
            let world = &world;
            let all: Vec<_> =
                (0..WORKERS).map(|number| scope.spawn(move || live(world, number, seed))).collect();
            all.into_iter().map(|one| one.join().expect("no panic")).sum::<u64>()
        });
        end(&world);
    }
    assert!(kept > 200 * seeds, "{kept} objects kept: the lives show nothing");
}

fn end(world: &World) {
    let store = &world.store;
    let (mut front, mut chance) = (store.front(0), Prng::new(1));
    for _ in 0..100 {
        let found = Target::any(&mut chance).look(&mut front, 0);
        assert!(!matches!(found, Lookup::Join(_)), "a permit is lost");
    }
    assert!(store.front(0).poll_orphans().0.is_empty());
    let bytes: u64 = store.namespaces().stats().iter().map(|account| account.bytes).sum();
    assert_eq!(bytes, store.bytes());
    for _ in 0..256 {
        store.sweep(100_000, u64::MAX - 1);
    }
    let stats = store.stats();
    assert_eq!((stats.fills, stats.filling_bytes, stats.objects, stats.bytes), (0, 0, 0, 0));
}
