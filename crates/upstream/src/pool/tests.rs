//! Places and turns among workers that run concurrently.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use bolide_base::Now;
use bolide_base::prng::Prng;
use bolide_wire::OriginEvent;

use crate::tests::support::{head, limited, queueing, request, settings};
use crate::{
    Fetch, FetchCtx, FetchEffect, FetchWake, Left, LinkPools, Notice, Turns, UpstreamGroups,
};

const WORKERS: usize = 4;
const FETCHES: u64 = 200;
const AT_ONCE: usize = 2;
const PLACES: u32 = 1;
/// Rounds without an event after which a worker counts as forgotten.
const ROUNDS_MAX: u32 = 1_000_000;

/// The workers' shared state.
struct Shared {
    groups: UpstreamGroups,
    mail: Vec<Mutex<Vec<u32>>>,
    /// Fetches that have not ended yet.
    remaining: AtomicU32,
    settings: bolide_conf::model::OriginSettings,
}

/// One worker. Its time stands still, so that no fetch checks for a free place on its own.
struct Worker<'a> {
    shared: &'a Shared,
    pools: LinkPools,
    prng: Prng,
    fetches: Vec<(u64, Fetch)>,
    asked: Vec<u64>,
    begun: u64,
}

impl Worker<'_> {
    fn step(&mut self, name: u64, wake: FetchWake) {
        let Some(at) = self.fetches.iter().position(|(known, _)| *known == name) else { return };
        let mut effects = Vec::new();
        let mut ctx = FetchCtx {
            now: Now::default(),
            me: name,
            prng: &mut self.prng,
            groups: &self.shared.groups,
            pools: &mut self.pools,
            effects: &mut effects,
        };
        self.fetches[at].1.step(wake, &mut ctx);
        for effect in effects {
            match effect {
                FetchEffect::Connect(_) => {
                    let served = self.shared.groups.iter().map(|group| group.conns());
                    assert!(served.max() <= Some(PLACES), "no more than there are places");
                    self.asked.push(name);
                }
                FetchEffect::Finish => {
                    self.fetches.remove(at);
                    self.shared.remaining.fetch_sub(1, Ordering::SeqCst);
                    return;
                }
                _ => {}
            }
        }
    }

    /// One round; returns whether an event happened.
    fn round(&mut self, me: usize) -> bool {
        let mut busy = false;
        if self.begun < FETCHES && self.fetches.len() < AT_ONCE && self.prng.below(2) == 0 {
            busy = true;
            self.begun += 1;
            let fetch = Fetch::new(request(self.shared.settings.clone()));
            self.fetches.push((self.begun, fetch));
            self.step(self.begun, FetchWake::Start);
        }
        if !self.asked.is_empty() && self.prng.below(2) == 0 {
            busy = true;
            let at = self.prng.below(self.asked.len() as u64) as usize;
            self.answer(at);
        }
        if self.fetches.len() > self.asked.len() && self.prng.below(8) == 0 {
            busy = true;
            let waiting = self.fetches.iter().map(|(name, _)| *name);
            let first = waiting.into_iter().find(|name| !self.asked.contains(name));
            self.step(first.unwrap_or_default(), FetchWake::Abandoned);
        }
        for group in std::mem::take(&mut *self.shared.mail[me].lock().unwrap()) {
            busy = true;
            self.pools.handle_notice(group);
        }
        let mut turns = Turns::default();
        self.pools.take_turns(&mut turns);
        for notice in turns.notices {
            self.shared.mail[notice.worker].lock().unwrap().push(notice.group);
        }
        for name in turns.wake {
            busy = true;
            self.step(name, FetchWake::Turn);
        }
        busy
    }

    fn answer(&mut self, at: usize) {
        let name = self.asked.swap_remove(at);
        self.step(name, FetchWake::Connected(1));
        if self.prng.below(3) == 0 {
            return self.step(name, FetchWake::Abandoned);
        }
        self.step(name, FetchWake::Sent { bytes: 1, left: Left::Nothing });
        self.step(name, FetchWake::Event(head(200)));
        self.step(name, FetchWake::Event(OriginEvent::End { app_status: 0 }));
    }
}

#[test]
fn no_request_waits_for_a_free_place_under_concurrency() {
    let group = queueing(vec![limited(1, PLACES)], 1000);
    let shared = Shared {
        groups: UpstreamGroups::new(&[group], None),
        mail: (0..WORKERS).map(|_| Mutex::default()).collect(),
        remaining: AtomicU32::new(WORKERS as u32 * FETCHES as u32),
        settings: settings(),
    };
    std::thread::scope(|scope| {
        for me in 0..WORKERS {
            let shared = &shared;
            scope.spawn(move || {
                let mut worker = Worker {
                    shared,
                    pools: LinkPools::new(me),
                    prng: Prng::new(me as u64),
                    fetches: Vec::new(),
                    asked: Vec::new(),
                    begun: 0,
                };
                let mut quiet = 0;
                while shared.remaining.load(Ordering::SeqCst) > 0 {
                    let happened = worker.round(me) || worker.fetches.is_empty();
                    quiet = if happened { 0 } else { quiet + 1 };
                    assert!(quiet < ROUNDS_MAX, "an exchange waits and no server is asked");
                    std::thread::yield_now();
                }
            });
        }
    });
    let group = shared.groups.iter().next().unwrap();
    assert_eq!((group.conns(), group.waiting()), (0, 0));
}

#[test]
fn a_late_turn_passes_to_a_worker_with_waiting_requests() {
    let groups = UpstreamGroups::new(&[queueing(vec![limited(1, 1)], 10)], None);
    let group = &groups.iter().next().unwrap();
    let (mut here, mut there) = (LinkPools::new(0), LinkPools::new(1));
    assert_eq!(here.join(group, 7, 10), Ok(0));
    assert_eq!(there.join(group, 8, 10), Ok(1));
    here.leave(group, 7);
    here.handle_notice(group.number);
    let mut turns = Turns::default();
    here.take_turns(&mut turns);
    let notice = Notice { worker: 1, group: group.number };
    assert_eq!((turns.wake, turns.notices), (vec![], vec![notice]));
    there.handle_notice(notice.group);
    let mut turns = Turns::default();
    there.take_turns(&mut turns);
    assert_eq!((turns.wake, turns.notices), (vec![8], vec![]));
    there.leave(group, 8);
    there.release(group);
    there.handle_notice(notice.group);
    let mut turns = Turns::default();
    there.take_turns(&mut turns);
    assert_eq!((turns.wake, turns.notices, group.waiting()), (vec![], vec![], 0));
}
