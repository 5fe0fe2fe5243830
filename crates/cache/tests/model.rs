//! Random operations on a small store against a simple model: several workers, concurrent fills,
//! purges of every kind, evictions and time. `threads` does the same with real threads.

#[path = "model/threads.rs"]
mod threads;

use std::collections::HashMap;

use bolide_base::prng::Prng;
use bolide_cache::{
    AbandonReason, FillPermit, Follow, Follower, Front, GrowthRead, KeyBuilder, Lookup,
    NamespaceId, Object, ObjectHead, SessionKey, Store, StoreLimits, TagPurge, TagScope, Tags,
    Times, Waited, Waiter, Wakes,
};
use bytes::Bytes;

const SITES: u64 = 2;
const URLS: u64 = 6;
const TAGS: u64 = 4;
const SESSIONS: [&[u8]; 2] = [b"ann", b"bob"];
const LIFE_MS: u64 = 400;

/// The target of a fill; session 0 is public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Target {
    site: u64,
    url: u64,
    vary: u64,
    session: usize,
}

impl Target {
    fn any(chance: &mut Prng) -> Self {
        Self {
            site: chance.below(SITES),
            url: chance.below(URLS),
            vary: chance.below(2),
            session: chance.below(3) as usize,
        }
    }

    fn session(self) -> Option<SessionKey<'static>> {
        SessionKey::new(SESSIONS[self.session.checked_sub(1)?])
    }

    fn keys(self, store: &Store) -> (KeyBuilder, NamespaceId) {
        let site = store.namespace(&[b'a' + self.site as u8]);
        let mut keys = KeyBuilder::default();
        keys.start(site);
        keys.push_url(format!("/{}", self.url).as_bytes());
        keys.push_vary(&[self.vary as u8]);
        (keys, site)
    }

    fn look(self, front: &mut Front, now: u64) -> Lookup {
        let (keys, _) = self.keys(front.store());
        let key = match self.session() {
            Some(session) => keys.private(session),
            None => keys.public(),
        };
        front.lookup(&key, now)
    }
}

/// A fill in progress, and the number of events when its permit was granted.
struct Fill {
    target: Target,
    permit: FillPermit,
    born: u64,
    tag: u64,
    begun: bool,
    doomed: bool,
    /// Another fill of its key may begin.
    superseded: bool,
}

/// A body contains its target, its tag, and the birth of its fill.
fn body(target: Target, tag: u64, born: u64) -> Bytes {
    let Target { site, url, vary, session } = target;
    Bytes::from(format!("{site} {url} {vary} {session} {tag} {born}"))
}

fn parse(bytes: &[u8]) -> (Target, u64, u64) {
    let text = std::str::from_utf8(bytes).expect("text");
    let n: Vec<u64> = text.split(' ').map(|number| number.parse().expect("a number")).collect();
    let target = Target { site: n[0], url: n[1], vary: n[2], session: n[3] as usize };
    (target, n[4], n[5])
}

#[derive(Default)]
struct World {
    /// The number of events; it orders purges and births.
    events: u64,
    /// When each (site, session, tag), (site, session) and (site, session, url) was last purged.
    tags: HashMap<(u64, usize, u64), u64>,
    all: HashMap<(u64, usize), u64>,
    urls: HashMap<(u64, usize, u64), u64>,
}

impl World {
    fn purged(&self, target: Target, tag: u64) -> u64 {
        let Target { site, url, session, .. } = target;
        let of = |found: Option<&u64>| found.copied().unwrap_or(0);
        of(self.tags.get(&(site, session, tag)))
            .max(of(self.all.get(&(site, session))))
            .max(of(self.urls.get(&(site, session, url))))
    }

    fn check(&self, bytes: &[u8], asked: Target) {
        let (target, tag, born) = parse(bytes);
        assert_eq!(target, asked, "the wrong object");
        assert!(self.purged(target, tag) < born, "a dead object");
    }

    fn purge(&mut self, store: &Store, chance: &mut Prng) {
        self.events += 1;
        let target = Target::any(chance);
        let (keys, site) = target.keys(store);
        let scope = target.session().map_or(TagScope::Public, TagScope::Session);
        let tag = chance.below(TAGS);
        let key = match target.session() {
            Some(session) => keys.private(session),
            None => keys.public(),
        };
        if chance.below(3) == 0 {
            let tag = format!("tag{tag}");
            store.purge_tag(site, scope, tag.as_bytes(), TagPurge::Stale);
            return;
        }
        match chance.below(8) {
            0 => {
                store.purge_tag(site, scope, b"*", TagPurge::Dead);
                self.all.insert((target.site, target.session), self.events);
            }
            1 => {
                store.purge_tag(site, scope, b"ta*", TagPurge::Dead);
                for tag in 0..TAGS {
                    self.tags.insert((target.site, target.session, tag), self.events);
                }
            }
            2 | 3 => {
                store.purge_url(&key, TagPurge::Dead);
                self.urls.insert((target.site, target.session, target.url), self.events);
            }
            _ => {
                store.purge_tag(site, scope, format!("tag{tag}").as_bytes(), TagPurge::Dead);
                self.tags.insert((target.site, target.session, tag), self.events);
            }
        }
    }
}

fn begin(fill: &mut Fill, now: u64) -> Wakes {
    fill.begun = true;
    let mut tags = Tags::default();
    tags.push(format!("tag{}", fill.tag).as_bytes());
    let times =
        Times { created_ms: now, expires_ms: now + LIFE_MS, stale_seconds: 1, error_seconds: 2 };
    let mut wakes =
        fill.permit.begin(ObjectHead { status: 200, times, ..ObjectHead::default() }, &tags);
    wakes.join(fill.permit.append(body(fill.target, fill.tag, fill.born)));
    wakes
}

/// Ends a fill without a response.
fn give_up(permit: FillPermit, now_ms: u64, chance: &mut Prng) -> Wakes {
    let until_ms = now_ms + 50;
    match chance.below(4) {
        0 => permit.abandon(AbandonReason::Uncacheable { until_ms }),
        1 => permit.abandon(AbandonReason::Failed { now_ms, rest_until_ms: until_ms }),
        2 => permit.abandon(AbandonReason::Gone),
        // Its waiters are found by the next poll.
        _ => {
            drop(permit);
            Wakes::default()
        }
    }
}

struct Waiting {
    follower: Follower,
    target: Target,
    since: u64,
    registered: bool,
}

#[test]
fn random_lives_agree_with_the_model() {
    let mut kept = 0;
    for seed in 0..60 {
        kept += live(seed);
    }
    assert!(kept > 1000, "{kept} objects kept: the lives show nothing");
}

fn live(seed: u64) -> u64 {
    let mut chance = Prng::new(seed);
    let limits = StoreLimits { bytes: 9000, front_entries: 8, ..StoreLimits::default() };
    let store = Store::new(limits, 1);
    let mut fronts: Vec<Front> = (0..3).map(|worker| store.front(worker)).collect();
    let (mut world, mut fills, mut now) = (World::default(), Vec::<Fill>::new(), 0);
    let mut waiting: HashMap<u64, Waiting> = HashMap::new();
    let mut kept = 0;
    for step in 0..2500 {
        let mut wakes = Wakes::default();
        match chance.below(20) {
            0..=8 => {
                world.events += 1;
                let target = Target::any(&mut chance);
                let front = chance.below(3) as usize;
                let found = target.look(&mut fronts[front], now);
                let permit = match found {
                    Lookup::Hit(object) => {
                        served(&world, &object, target);
                        None
                    }
                    Lookup::Stale(object, permit) => {
                        served(&world, &object, target);
                        permit
                    }
                    Lookup::Miss(permit) => Some(permit),
                    Lookup::Join(follower) => {
                        let (since, registered) = (world.events, false);
                        waiting.insert(step, Waiting { follower, target, since, registered });
                        None
                    }
                    Lookup::Pass | Lookup::Failed(_) | Lookup::Vary(_) => None,
                };
                if let Some(permit) = permit {
                    let beside = |other: &&Fill| other.target == target && !other.superseded;
                    for other in fills.iter().filter(beside) {
                        let killed = world.purged(target, other.tag) > other.born;
                        assert!(killed, "two fills of one key");
                    }
                    let (born, tag) = (world.events, chance.below(TAGS));
                    let (begun, doomed, superseded) = (false, false, false);
                    fills.push(Fill { target, permit, born, tag, begun, doomed, superseded });
                }
            }
            9..=14 if !fills.is_empty() => {
                let at = chance.below(fills.len() as u64) as usize;
                if fills[at].begun {
                    let mut fill = fills.swap_remove(at);
                    fill.doomed = world.purged(fill.target, fill.tag) > fill.born;
                    let committed = fill.permit.commit();
                    assert_eq!(
                        committed.object.is_none(),
                        fill.doomed,
                        "kept exactly if not purged"
                    );
                    kept += u64::from(committed.object.is_some());
                    wakes.join(committed.wakes);
                } else {
                    wakes.join(begin(&mut fills[at], now));
                }
            }
            15 if !fills.is_empty() && chance.below(3) == 0 => {
                let at = chance.below(fills.len() as u64) as usize;
                fronts[0].supersede(fills[at].permit.growing());
                fills[at].superseded = true;
            }
            15 if !fills.is_empty() => {
                let at = chance.below(fills.len() as u64) as usize;
                wakes.join(give_up(fills.swap_remove(at).permit, now, &mut chance));
            }
            15 => {}
            16 => world.purge(&store, &mut chance),
            17 => now += chance.below(100),
            18 => {
                store.sweep(500, now);
            }
            _ => fronts.iter_mut().for_each(|front| front.tend(8)),
        }
        wakes.join(fronts[0].poll_orphans());
        for waiter in wakes.0 {
            if let Some(woken) = waiting.get_mut(&waiter.exchange) {
                woken.registered = false;
            }
        }
        waiting.retain(|id, waiting| follow(&world, *id, waiting));
    }
    end(&store, fills, waiting, &mut fronts);
    kept
}

fn served(world: &World, object: &Object, asked: Target) {
    assert!(object.is_for(asked.session()));
    world.check(&object.body().expect("one piece"), asked);
}

/// Continues one follower; false once it is done.
fn follow(world: &World, id: u64, waiting: &mut Waiting) -> bool {
    if waiting.registered {
        return true;
    }
    loop {
        match waiting.follower.poll() {
            Follow::Again => return false,
            Follow::Head => match waiting.follower.read() {
                GrowthRead::Bytes(bytes) => {
                    let (target, tag, born) = parse(&bytes);
                    assert_eq!(target, waiting.target);
                    let purged = world.purged(target, tag);
                    assert!(purged < born || purged > waiting.since, "joined after the purge");
                    continue;
                }
                GrowthRead::Pending => {}
                GrowthRead::End | GrowthRead::Broken => return false,
            },
            Follow::Waiting => {}
        }
        match waiting.follower.wait(Waiter { worker: 0, exchange: id }) {
            Waited::Registered => {
                waiting.registered = true;
                return true;
            }
            Waited::Moved => {}
        }
    }
}

fn end(store: &Store, fills: Vec<Fill>, mut waiting: HashMap<u64, Waiting>, fronts: &mut [Front]) {
    drop(fills);
    for waiter in fronts[0].poll_orphans().0 {
        waiting.remove(&waiter.exchange);
    }
    assert!(waiting.is_empty(), "stranded");
    let bytes: u64 = store.namespaces().stats().iter().map(|account| account.bytes).sum();
    assert_eq!(bytes, store.bytes());
    assert!(store.bytes() <= 9000);
    for _ in 0..256 {
        store.sweep(100_000, u64::MAX - 1);
    }
    let stats = store.stats();
    assert_eq!((stats.fills, stats.filling_bytes, stats.objects, stats.bytes), (0, 0, 0, 0));
    assert_eq!(stats.tags, 0);
}
