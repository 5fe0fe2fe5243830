//! Nodes of a cluster with a simulated Valkey, in simulated time: all work of their threads, seeded
//! faults, and the invariants that hold in every history.
//!
//! ```text
//!   visitors ──▶ stores ──▶ nodes ══ connections that are late, cut, still ══▶ server ── keeper
//!                  └───────────── what they serve ──▶ checks ◀── what nodes report
//! ```
//! Checked: no node serves a page after it reported the purge of it; no visitor gets another
//! visitor's private page, and no private page is in Valkey; each purge is carried out once; no
//! lookup exceeds its timeout; and once faults end, all nodes are connected, receive all purges,
//! and only one of them fetches each page. `sim/common.rs` simulates the other shared state.
//! `BOLIDE_CLUSTER_SEED=7` runs one history, `BOLIDE_CLUSTER_SEEDS=20000` as many.

mod alike;
mod checks;
mod common;
mod faults;
mod keeper;
mod member;
mod server;
mod visits;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bolide_base::prng::Prng;
use bolide_base::{Instant as Mono, Now};
use tokio::time::{Instant, sleep};

use checks::Tally;
use common::CommonSeen;
use member::Member;
use server::Server;

/// Nodes at most; a history has two to four.
const NODES: usize = 4;
/// Pages for all visitors, and visitors with a page of their own.
const PAGES: usize = 4;
const VISITORS: usize = 2;
const SUBJECTS: usize = PAGES + VISITORS;
/// The time at which a history begins.
const EPOCH_MS: u64 = 1_700_000_000_000;
/// Histories of a test run.
const SEEDS: u64 = 40;

/// Time that passes as the runtime has it, with a clock on the wall that may be wrong.
#[derive(Debug)]
pub(super) struct SimulatedClock {
    /// When the history began, and the process.
    epoch: Instant,
    start: Instant,
    skew_ms: AtomicI64,
}

impl SimulatedClock {
    fn new(epoch: Instant, skew_ms: i64) -> Arc<Self> {
        Arc::new(Self { epoch, start: Instant::now(), skew_ms: AtomicI64::new(skew_ms) })
    }

    /// Sets the skew.
    fn set(&self, skew_ms: i64) {
        self.skew_ms.store(skew_ms, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> Now {
        let passed = self.start.elapsed();
        let skew = self.skew_ms.load(Ordering::Relaxed);
        let unix_millis = EPOCH_MS + self.epoch.elapsed().as_millis() as u64;
        let unix_millis = unix_millis.saturating_add_signed(skew);
        Now { mono: Mono::from_nanos(1 + passed.as_nanos() as u64), unix_millis }
    }
}

fn below(chance: &mut Prng, bound: u64) -> u64 {
    chance.below(bound)
}

/// A history.
struct World {
    seed: u64,
    chance: RefCell<Prng>,
    server: Arc<Server>,
    members: RefCell<Vec<Member>>,
    /// Numbers fetches and purges in their order.
    ticks: Cell<u64>,
    lives: Cell<u64>,
    fetches: Cell<u64>,
    tally: RefCell<Tally>,
    common: RefCell<CommonSeen>,
    plan: Plan,
    /// Faults have ended.
    is_over: Cell<bool>,
    /// Since when all nodes are up to date.
    calm_since: Cell<Option<Instant>>,
    start: Instant,
    is_shown: bool,
    dir: bolide_testkit::site::TempDir,
}

/// The parameters of a history.
#[derive(Clone, Copy, Debug)]
struct Plan {
    nodes: usize,
    keep_ms: u64,
    keep_count: u32,
    queue: u32,
    objects_ms: u64,
    lease_ms: u64,
    min_uses: u32,
    /// Whether the first node has another key than all others.
    has_stranger: bool,
}

impl Plan {
    fn new(chance: &mut Prng) -> Self {
        let mut one_of = |choices: &[u64]| choices[below(chance, choices.len() as u64) as usize];
        Self {
            nodes: one_of(&[2, 3, 3, 4]) as usize,
            keep_ms: one_of(&[2_000, 10_000, 600_000]),
            keep_count: one_of(&[1, 2, 4, 20, 20, 20, 1000, 1000, 1000]) as u32,
            queue: one_of(&[3, 50, 1000]) as u32,
            objects_ms: one_of(&[2, 20]),
            lease_ms: one_of(&[1_000, 2_000]),
            min_uses: one_of(&[1, 1, 1, 2]) as u32,
            has_stranger: one_of(&[0, 0, 0, 0, 0, 1]) == 1,
        }
    }

    /// Whether the stream has room for the entries that nodes add at once. Without it they drop
    /// their objects again and again, but serve nothing that was purged; real configurations have
    /// room.
    const fn has_room(&self) -> bool {
        self.keep_count as usize > 2 * self.nodes
    }

    /// The longest wait of a visitor for other nodes, with a margin for timers.
    const fn patience(&self) -> Duration {
        Duration::from_millis(self.objects_ms + self.lease_ms + 5)
    }
}

impl World {
    fn below(&self, bound: u64) -> u64 {
        below(&mut self.chance.borrow_mut(), bound)
    }

    /// Prints an event, if only one history runs.
    fn say(&self, what: impl FnOnce() -> String) {
        if self.is_shown {
            println!("{:>9.3} {}", self.start.elapsed().as_secs_f64(), what());
        }
    }

    fn tick(&self) -> u64 {
        self.ticks.set(self.ticks.get() + 1);
        self.ticks.get()
    }

    /// Waits for something that has to happen.
    async fn await_that(&self, ms: u64, what: &str, is_so: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_millis(ms);
        while !is_so() {
            assert!(Instant::now() < until, "seed {}: {what}: {}", self.seed, self.describe());
            sleep(Duration::from_millis(5)).await;
        }
    }

    fn describe(&self) -> String {
        let members = self.members.borrow();
        let lines: Vec<_> = members.iter().map(|one| format!("{:?}", one.status())).collect();
        lines.join("\n")
    }
}

async fn history(seed: u64) -> Tally {
    let mut chance = Prng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x00c1_0573);
    let plan = Plan::new(&mut chance);
    let world = Rc::new(World {
        seed,
        chance: RefCell::new(chance),
        server: Server::new(seed),
        members: RefCell::default(),
        ticks: Cell::new(0),
        lives: Cell::new(0),
        fetches: Cell::new(0),
        tally: RefCell::default(),
        common: RefCell::default(),
        plan,
        is_over: Cell::new(false),
        calm_since: Cell::new(None),
        start: Instant::now(),
        is_shown: std::env::var_os("BOLIDE_CLUSTER_SHOW").is_some(),
        dir: bolide_testkit::site::TempDir::new(),
    });
    for at in 0..plan.nodes {
        let member = world.begin(at, None);
        world.members.borrow_mut().push(member);
    }
    let mut visitors = Vec::new();
    for at in 0..plan.nodes {
        visitors.push(tokio::task::spawn_local(world.clone().visit(at)));
        visitors.push(tokio::task::spawn_local(world.clone().use_tickets(at)));
        visitors.push(tokio::task::spawn_local(world.clone().order_often(at)));
    }
    world.clone().inject_faults().await;
    if plan.has_room() {
        world.calm().await;
    }
    world.is_over.set(true);
    for visitor in visitors {
        visitor.await.expect("visitors see no fault");
    }
    if plan.has_room() {
        world.check_calm().await;
        world.check_common().await;
        world.end_all().await;
    }
    world.tally.take()
}

/// Runs one history in a runtime of its own.
fn run(seed: u64) -> Tally {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, history(seed))
}

/// Runs the histories of these seeds.
fn run_all(seeds: impl Iterator<Item = u64>) -> Tally {
    let mut all = Tally::default();
    for seed in seeds {
        match std::panic::catch_unwind(|| run(seed)) {
            Ok(tally) => all.add(&tally),
            Err(fault) => {
                println!("BOLIDE_CLUSTER_SEED={seed} failed");
                std::panic::resume_unwind(fault);
            }
        }
    }
    all
}

#[test]
fn what_is_promised_holds_whatever_happens() {
    let read = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = read("BOLIDE_CLUSTER_SEED") {
        run(seed);
        return;
    }
    let count = read("BOLIDE_CLUSTER_SEEDS").unwrap_or(SEEDS);
    let first = read("BOLIDE_CLUSTER_FIRST").unwrap_or(1);
    let mut all = Tally::default();
    std::thread::scope(|scope| {
        // Two halves side by side, as many as there are cores on small machines.
        let half = |from| scope.spawn(move || run_all((from..first + count).step_by(2)));
        for half in [half(first), half(first + 1)] {
            match half.join() {
                Ok(tally) => all.add(&tally),
                Err(fault) => std::panic::resume_unwind(fault),
            }
        }
    });
    println!("{count} histories: {all:?}");
    all.assert_rich(count);
}
