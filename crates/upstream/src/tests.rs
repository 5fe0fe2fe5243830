//! Many fetches at once, on several workers, against servers that behave in every possible way.
//!
//! Each seed is a history: the next wake is drawn, the fetches' effects are checked and performed,
//! and at the end every fetch must have finished.

pub(crate) mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bolide_base::prng::Prng;
use bolide_base::spool::{Retain, Spool, SpoolLimits};
use bolide_base::{Instant, Now};
use bolide_conf::model::{Balance, OriginSettings, Queue, Upstream, UpstreamId, UpstreamKind};
use bolide_wire::{OriginError, OriginEvent};
use bytes::Bytes;

use crate::{
    CallHindrance, Fetch, FetchCtx, FetchEffect, FetchFate, FetchWake, Left, LinkPools,
    NameVerdict, Notice, OriginNews, OriginRequest, PassTarget, Turns, UpstreamGroups,
    UpstreamNames,
};
use support::{
    body, by_name, head, limited, queueing, request, resolved, server, settings, unix, upstream,
    weighted,
};

const WORKERS: usize = 3;
const GROUPS: u64 = 6;
const STEPS: u64 = 400;

/// The connection of a fetch, as its worker sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Nothing,
    /// A new connection was requested.
    Fresh,
    Idle(u64),
    Stands(u64),
}

/// The observed state of a fetch.
#[derive(Debug)]
struct Life {
    worker: usize,
    fetch: Fetch,
    held: Held,
    /// Where the connection that was asked for leads.
    dialled: String,
    deadlines: BTreeSet<Instant>,
    has_head: bool,
    terminal: bool,
    abandoned: bool,
}

/// Several workers and the system around them.
struct World {
    seed: u64,
    prng: Prng,
    now: Now,
    groups: UpstreamGroups,
    upstreams: Vec<Upstream>,
    server_names: UpstreamNames,
    /// Where connections lead.
    links: BTreeMap<u64, String>,
    pools: Vec<LinkPools>,
    idle: Vec<BTreeSet<u64>>,
    lives: BTreeMap<u64, Life>,
    mail: Vec<Notice>,
    settings: OriginSettings,
    names: u64,
    finished: u64,
}

fn upstreams() -> Vec<Upstream> {
    let named = |name: &str, upstream: Upstream| Upstream { name: name.into(), ..upstream };
    let mut backup = server(4);
    backup.backup = true;
    let plain = vec![weighted(1, 3), server(2), unix("/three"), backup];
    let mut tireless = limited(7, 2);
    tireless.max_fails = 0;
    let mut shaky = vec![limited(8, 1), limited(9, 2)];
    shaky[0].fail_timeout = Duration::from_secs(1);
    let mut least = vec![limited(10, 3), limited(11, 3), limited(12, 3)];
    least[2].max_fails = 2;
    let short = Some(Queue { len: 5, timeout: Duration::from_secs(2) });
    let ours = Upstream {
        kind: UpstreamKind::Pool(0),
        request_timeout: Some(Duration::from_secs(2)),
        ..queueing(vec![limited(14, 2)], 10)
    };
    vec![
        named("plain", upstream(Balance::RoundRobin, plain)),
        named("pool", queueing(vec![tireless], 10)),
        named("shaky", queueing(shaky, 20)),
        named("least", Upstream { queue: short, ..upstream(Balance::LeastConn, least) }),
        named("ours", ours),
        named("names", resolved(queueing(vec![by_name("a.test:80", 1), limited(13, 1)], 10))),
    ]
}

impl World {
    fn new(seed: u64, defaults: &OriginSettings) -> Self {
        let upstreams = upstreams();
        let mut settings = defaults.clone();
        settings.next_upstream.error = true;
        settings.next_upstream.timeout = true;
        settings.next_upstream.http_500 = true;
        settings.next_upstream.http_404 = true;
        let groups = UpstreamGroups::new(&upstreams, None);
        let now = Now { mono: Instant::from_nanos(3_600_000_000_000), unix_millis: 0 };
        Self {
            seed,
            prng: Prng::new(seed),
            now,
            server_names: UpstreamNames::claim(&groups, now.mono),
            groups,
            upstreams,
            links: BTreeMap::new(),
            pools: (0..WORKERS).map(LinkPools::new).collect(),
            idle: vec![BTreeSet::new(); WORKERS],
            lives: BTreeMap::new(),
            mail: Vec::new(),
            settings,
            names: 0,
            finished: 0,
        }
    }

    fn chance(&mut self, of: u64) -> bool {
        self.prng.below(of) == 0
    }

    fn name(&mut self) -> u64 {
        self.names += 1;
        self.names
    }

    fn begin(&mut self) {
        let mut settings = self.settings.clone();
        settings.keep_conn = self.chance(2);
        settings.ignore_client_abort = self.chance(3);
        settings.next_upstream.non_idempotent = self.chance(3);
        let mut asked: Box<OriginRequest> = request(settings);
        asked.target = match self.prng.below(GROUPS + 1) {
            GROUPS => PassTarget::Address(server(20).addresses[0].clone()),
            group => PassTarget::Group(UpstreamId(group as u32)),
        };
        asked.is_idempotent = self.chance(2);
        if self.chance(3) {
            let retain = if self.chance(2) { Retain::Yes } else { Retain::No };
            asked.body = Spool::new(SpoolLimits { memory: 10, file: 0 }, retain);
            asked.body.push(Bytes::from_static(b"body"));
            if !self.chance(4) {
                asked.body.finish();
            }
        }
        let worker = self.prng.below(WORKERS as u64) as usize;
        let name = self.name();
        let life = Life {
            worker,
            fetch: Fetch::new(asked),
            held: Held::Nothing,
            dialled: String::new(),
            deadlines: BTreeSet::new(),
            has_head: false,
            terminal: false,
            abandoned: false,
        };
        self.lives.insert(name, life);
        self.step(name, FetchWake::Start);
    }

    /// Wakes a fetch, and performs its effects.
    fn step(&mut self, name: u64, wake: FetchWake) {
        let Some(life) = self.lives.get_mut(&name) else { return };
        let woken_by = format!("{wake:?}");
        let now_abandoned = matches!(wake, FetchWake::Abandoned);
        settle_link(life, &wake, &mut self.links);
        let mut effects = Vec::new();
        let mut ctx = FetchCtx {
            now: self.now,
            me: name,
            prng: &mut self.prng,
            groups: &self.groups,
            pools: &mut self.pools[life.worker],
            effects: &mut effects,
        };
        life.fetch.step(wake, &mut ctx);
        let context = format!("seed {}, {name} woken by {woken_by}: {effects:?}", self.seed);
        let mut is_finished = false;
        for effect in effects {
            assert!(!is_finished, "nothing follows the end; {context}");
            let idle = &mut self.idle[life.worker];
            match effect {
                FetchEffect::Finish => is_finished = true,
                effect => life.check(effect, idle, &self.links, now_abandoned, &context),
            }
        }
        life.abandoned |= now_abandoned;
        assert_eq!(is_finished, life.fetch.is_over(), "{context}");
        if is_finished {
            assert_eq!(life.held, Held::Nothing, "the connection was let go; {context}");
            assert!(life.terminal || life.abandoned, "an exchange waits for an end; {context}");
            self.lives.remove(&name);
            self.finished += 1;
        }
    }

    /// An event that may happen to a fetch now.
    fn wake_of(&mut self, held: Held) -> FetchWake {
        if self.chance(25) {
            return FetchWake::Abandoned;
        }
        if self.chance(25) {
            return match self.prng.below(4) {
                0 => FetchWake::Turn,
                1 => FetchWake::Paused,
                2 => FetchWake::Resumed,
                _ => FetchWake::Deadline,
            };
        }
        match held {
            Held::Nothing => FetchWake::Turn,
            Held::Fresh | Held::Idle(_) if self.chance(4) => match held {
                Held::Idle(_) => FetchWake::Gone,
                _ if self.chance(3) => FetchWake::NotCalled(self.hindrance()),
                _ => FetchWake::ConnectFailed([2, 11, 13, 101, 111][self.prng.below(5) as usize]),
            },
            Held::Fresh => FetchWake::Connected(self.name()),
            Held::Idle(link) => FetchWake::Connected(link),
            Held::Stands(_) => self.talk(),
        }
    }

    fn hindrance(&mut self) -> CallHindrance {
        match self.prng.below(4) {
            0 => CallHindrance::Socket(24),
            1 => CallHindrance::Bind(99),
            2 => CallHindrance::Watch,
            _ => CallHindrance::Full,
        }
    }

    fn talk(&mut self) -> FetchWake {
        match self.prng.below(16) {
            0 => FetchWake::Sent { bytes: 1, left: Left::Blocked },
            1 => FetchWake::Sent { bytes: 0, left: Left::Unready },
            2..=5 => FetchWake::Sent { bytes: 7, left: Left::Nothing },
            6 => FetchWake::Received(self.prng.below(100)),
            7..=9 => {
                let status = [0, 103, 200, 404, 500, 503][self.prng.below(6) as usize];
                FetchWake::Event(head(status))
            }
            10 => FetchWake::Event(body("text")),
            11 => FetchWake::Event(OriginEvent::Stderr(Bytes::from_static(b"warning\n"))),
            12 => FetchWake::Broken(match self.prng.below(3) {
                0 => OriginError::ClosedBeforeHead,
                1 => OriginError::HeadTooBig,
                _ => OriginError::ClosedWithinBody,
            }),
            13 if self.chance(2) => FetchWake::ReceiveFailed(104),
            13 => FetchWake::SendFailed(32),
            _ => FetchWake::Event(OriginEvent::End { app_status: 0 }),
        }
    }

    fn happen(&mut self) {
        match self.prng.below(40) {
            0..=7 => self.begin(),
            8 => {
                let time = Duration::from_millis(self.prng.below(1500));
                self.pass(time);
            }
            9 => self.lose_idle(),
            10 if self.chance(6) => self.reload(),
            11..=14 => self.carry_mail(),
            15 => self.answer_name(),
            _ => {
                let at = self.prng.below(self.lives.len().max(1) as u64) as usize;
                let Some((&name, life)) = self.lives.iter().nth(at) else { return };
                let held = life.held;
                let wake = self.wake_of(held);
                self.step(name, wake);
            }
        }
        if self.chance(2) {
            self.give_turns();
        }
    }

    /// The end of a worker's turn.
    fn give_turns(&mut self) {
        for worker in 0..WORKERS {
            loop {
                let mut turns = Turns::default();
                self.pools[worker].take_turns(&mut turns);
                if turns.wake.is_empty() && turns.notices.is_empty() {
                    break;
                }
                self.mail.append(&mut turns.notices);
                for name in turns.wake {
                    self.step(name, FetchWake::Turn);
                }
            }
        }
    }

    fn carry_mail(&mut self) {
        if !self.mail.is_empty() {
            let at = self.prng.below(self.mail.len() as u64) as usize;
            let notice = self.mail.swap_remove(at);
            self.pools[notice.worker].handle_notice(notice.group);
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now.mono.after(time);
        loop {
            let due = self.lives.iter().filter_map(|(name, life)| {
                life.deadlines.first().filter(|at| **at <= end).map(|at| (*at, *name))
            });
            let Some((at, name)) = due.min() else { break };
            self.now.mono = self.now.mono.max(at);
            self.lives.get_mut(&name).unwrap().deadlines.remove(&at);
            self.step(name, FetchWake::Deadline);
        }
        self.now.mono = end;
        for (worker, pools) in self.pools.iter_mut().enumerate() {
            while let Some(link) = pools.expire(end) {
                assert!(self.idle[worker].remove(&link), "seed {}: kept {link}", self.seed);
            }
        }
    }

    /// A server closes an idle connection.
    fn lose_idle(&mut self) {
        let worker = self.prng.below(WORKERS as u64) as usize;
        if let Some(link) = self.idle[worker].pop_first() {
            self.pools[worker].forget(link);
        }
    }

    /// The name of a server is answered, with other addresses or none.
    fn answer_name(&mut self) {
        let of = |bits: u64| (0..3).filter(move |bit| bits >> bit & 1 == 1);
        let verdict = match self.prng.below(10) {
            8 => NameVerdict::NotFound(String::new()),
            9 => NameVerdict::Failed(String::new()),
            bits => NameVerdict::Found(of(bits).map(|bit| [10, 0, 0, bit].into()).collect()),
        };
        self.server_names.handle_verdict(0, &verdict, self.now.mono);
    }

    fn reload(&mut self) {
        if self.chance(2) {
            self.upstreams[0].servers.rotate_left(1);
        } else {
            self.upstreams[3].servers[0].max_conns = 1 + self.prng.below(4) as u32;
        }
        self.groups = UpstreamGroups::new(&self.upstreams, Some(&self.groups));
        self.server_names = UpstreamNames::claim(&self.groups, self.now.mono);
    }

    /// Answers every request that is at a server, and lets all other fetches take turns.
    fn settle(&mut self) {
        loop {
            let busy = self.lives.iter().find(|(_, life)| life.held != Held::Nothing);
            let Some((&name, life)) = busy else { break };
            let wakes = match life.held {
                Held::Idle(link) => vec![FetchWake::Connected(link)],
                Held::Fresh => vec![FetchWake::Connected(self.names + 1)],
                _ => vec![
                    FetchWake::Sent { bytes: 1, left: Left::Nothing },
                    FetchWake::Event(head(200)),
                    FetchWake::Event(OriginEvent::End { app_status: 0 }),
                ],
            };
            self.names += 1;
            for wake in wakes {
                self.step(name, wake);
            }
            self.exchange_mail();
        }
    }

    fn exchange_mail(&mut self) {
        self.give_turns();
        while !self.mail.is_empty() {
            self.carry_mail();
            self.give_turns();
        }
    }

    fn check_end(&mut self) {
        self.exchange_mail();
        self.settle();
        let pool = self.groups.group(UpstreamId(1)).unwrap();
        assert_eq!(
            pool.waiting(),
            0,
            "seed {}: nobody is left waiting for a free place",
            self.seed
        );
        for _ in 0..10 {
            self.pass(Duration::from_secs(1));
            self.exchange_mail();
            self.settle();
        }
        assert!(self.lives.is_empty(), "seed {}: {:?}", self.seed, self.lives.keys());
        for group in self.groups.iter() {
            assert_eq!((group.conns(), group.waiting()), (0, 0), "seed {}", self.seed);
        }
        for (pools, idle) in self.pools.iter().zip(&self.idle) {
            assert_eq!((pools.queued(), pools.idle()), (0, idle.len()), "seed {}", self.seed);
        }
    }
}

impl Life {
    fn check(
        &mut self,
        effect: FetchEffect,
        idle: &mut BTreeSet<u64>,
        links: &BTreeMap<u64, String>,
        now_abandoned: bool,
        context: &str,
    ) {
        match effect {
            FetchEffect::Resolve(_) => panic!("no name is asked for; {context}"),
            FetchEffect::Connect(address) => {
                assert_eq!(self.held, Held::Nothing, "{context}");
                self.dialled = address.to_string();
                self.held = Held::Fresh;
            }
            FetchEffect::Reuse(link) => {
                assert_eq!(self.held, Held::Nothing, "{context}");
                assert!(idle.remove(&link), "only what is kept is used again; {context}");
                self.dialled = links[&link].clone();
                self.held = Held::Idle(link);
            }
            FetchEffect::Send => assert!(matches!(self.held, Held::Stands(_)), "{context}"),
            FetchEffect::Deadline(at) => {
                self.deadlines.insert(at);
            }
            FetchEffect::Release(fate) => {
                assert_ne!(self.held, Held::Nothing, "{context}");
                if let (FetchFate::Keep, Held::Stands(link)) = (fate, self.held) {
                    assert!(idle.insert(link), "{context}");
                } else {
                    assert_ne!(fate, FetchFate::Keep, "{context}");
                }
                self.held = Held::Nothing;
            }
            FetchEffect::Evict(link) => assert!(idle.remove(&link), "{context}"),
            FetchEffect::Notify(news) => {
                if let (OriginNews::Attempt(attempt), true) = (&news, self.held != Held::Nothing) {
                    assert_eq!(
                        *attempt.peer, *self.dialled,
                        "the attempt is of the server that was dialled; {context}"
                    );
                }
                self.check_news(&news, now_abandoned, context);
            }
            FetchEffect::Linger => assert!(matches!(self.held, Held::Stands(_)), "{context}"),
            FetchEffect::Finish => {}
        }
    }

    fn check_news(&mut self, news: &OriginNews, now_abandoned: bool, context: &str) {
        assert!(!self.terminal, "no news follow the end; {context}");
        assert!(!self.abandoned, "no news without an audience; {context}");
        assert!(!now_abandoned || matches!(news, OriginNews::Attempt(_)), "{context}");
        match news {
            OriginNews::Head(_) => {
                assert!(!self.has_head, "one head; {context}");
                self.has_head = true;
            }
            OriginNews::Early(_) | OriginNews::Unused(_) => assert!(!self.has_head, "{context}"),
            OriginNews::Body(_) | OriginNews::Trailers(_) => assert!(self.has_head, "{context}"),
            OriginNews::End => {
                assert!(self.has_head, "{context}");
                self.terminal = true;
            }
            OriginNews::Failed(_) => self.terminal = true,
            OriginNews::Attempt(_) | OriginNews::Log(_) => {}
        }
    }
}

/// The worker answers `Connect` and `Reuse` before it wakes with their results.
fn settle_link(life: &mut Life, wake: &FetchWake, links: &mut BTreeMap<u64, String>) {
    match (wake, life.held) {
        (FetchWake::Connected(link), Held::Fresh | Held::Idle(_)) => {
            life.held = Held::Stands(*link);
            links.insert(*link, life.dialled.clone());
        }
        (FetchWake::ConnectFailed(_) | FetchWake::NotCalled(_) | FetchWake::Gone, _) => {
            life.held = Held::Nothing;
        }
        _ => {}
    }
}

#[test]
fn whatever_happens_every_fetch_ends_once_and_nothing_is_left_behind() {
    let defaults = settings();
    let mut finished = 0;
    for seed in 0..300 {
        let mut world = World::new(seed, &defaults);
        for _ in 0..STEPS {
            world.happen();
        }
        world.check_end();
        finished += world.finished;
    }
    assert!(finished > 10_000, "{finished}");
}
