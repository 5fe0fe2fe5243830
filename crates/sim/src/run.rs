//! One run: workers and clients take turns until everybody has left, then the books are checked.

mod books;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use worker::{Inbox, Jobs, Mail, Post, Startup, Worker};

use cache::StoreLimits;

use crate::ask::{Era, Weights};
use crate::chance::Chance;
use crate::client::{Act, Client};
use crate::door::{Anchor, Shared, SimIo};
use crate::kernel::Kernel;
use crate::origin::Origin;
use crate::scenario::{Habits, MILLI, Scenario};
use crate::site::{self, DIRECTORIES, FILES, Layout, Sockets};
use crate::story::Telling;

/// Rounds after which a run is called endless.
const ROUNDS_MAX: u32 = 200_000;
/// Simulated time after which everything must be over, whatever timeouts run.
const END_AFTER: u64 = 900 * 1000 * MILLI;

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What went wrong; empty for a good run.
    pub complaints: Vec<String>,
    /// Complete and right answers.
    pub answered: usize,
    /// Requests that nobody owed an answer.
    pub forgiven: usize,
    /// The transcript, if it was wanted.
    pub text: String,
}

/// Puts `seed` into the world of `scenario` and lets it run to its end.
#[must_use]
pub fn run(scenario: Scenario, seed: u64, telling: Telling) -> Report {
    match World::new(scenario, seed, telling) {
        Ok(mut world) => world.live(),
        Err(problem) => Report { complaints: vec![problem], ..Report::default() },
    }
}

/// How much may be kept.
fn store_limits(scenario: Scenario, chance: &mut Chance) -> StoreLimits {
    let all = StoreLimits::default();
    match scenario {
        Scenario::CacheTight => StoreLimits {
            bytes: 2_000 + chance.size(200_000) as u64,
            object_bytes: 20_000 + chance.size(100_000) as u64,
            front_entries: 2,
        },
        Scenario::CacheOrigin | Scenario::CacheChange | Scenario::CacheEsi => {
            StoreLimits { front_entries: 4, ..all }
        }
        _ => all,
    }
}

struct World {
    scenario: Scenario,
    habits: Habits,
    kernel: Shared,
    chance: Chance,
    workers: Vec<Worker<SimIo>>,
    posts: Arc<Vec<Post>>,
    jobs: Jobs,
    sockets: Sockets,
    layout: Layout,
    eras: Vec<Era>,
    clients: Vec<Client>,
    origin: Origin,
    complaints: Vec<String>,
    next_change: u64,
    next_event: u64,
    bytes_max: u64,
}

impl World {
    fn new(scenario: Scenario, seed: u64, telling: Telling) -> Result<Self, String> {
        let mut chance = Chance::new(seed, 2);
        let mut habits = scenario.habits();
        let count = if scenario.is_cache() { 2 + chance.index(3) } else { 1 + chance.index(2) };
        if scenario == Scenario::Cache && chance.one_in(3) {
            // Where nothing is dropped, nothing may be asked for twice at once.
            habits.weights = Weights::Pages { purges: false, wholes: false };
        }
        let store = store_limits(scenario, &mut chance);
        let mut kernel = Kernel::new(seed, count, scenario.faults(), telling);
        for directory in DIRECTORIES {
            kernel.disk.make_directory(directory);
        }
        for path in FILES {
            kernel.disk.replace(path, site::content(path, &mut chance), 0);
        }
        kernel.disk.remove("/www/missing", 0);
        let words = |error: std::io::Error| error.to_string();
        let anchor = Anchor::new().map_err(words)?;
        let mut sockets = Sockets::new(anchor.clone(), store).map_err(words)?;
        let extra =
            ["sendfile on;", "keepalive_requests 3;", "open_file_cache off;", "sendfile off;"];
        let extra = extra[chance.index(extra.len())].to_owned();
        let is_tight = scenario == Scenario::Clients && chance.one_in(3);
        let connections = if is_tight { 3 } else { 512 };
        kernel.is_tight = is_tight;
        let layout =
            Layout { number: 1, ports: vec![8080, 8081], workers: count, connections, extra };
        let generation = sockets.generation(&layout, &mut kernel)?;
        let kernel = Rc::new(RefCell::new(kernel));
        let (mut posts, mut inboxes) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (post, inbox) = Inbox::new().map_err(words)?;
            posts.push(post);
            inboxes.push(inbox);
        }
        let posts = Arc::new(posts);
        let jobs = Jobs::without_thread();
        let epoch = quic::Clock::starting_at(io::process::epoch());
        let librarian = io::wake::Bell::new().map_err(words)?;
        let workers = inboxes.into_iter().enumerate().map(|(number, inbox)| {
            Worker::new(Startup {
                number: number as u16,
                io: SimIo::new(kernel.clone(), number, anchor.clone()),
                generation: generation.clone(),
                inbox,
                posts: posts.clone(),
                jobs: jobs.clone(),
                seed: seed ^ number as u64,
                ids: (1, number as u32),
                clock: epoch,
                librarian: librarian.clone(),
            })
        });
        let workers = workers.collect();
        let clients = (0..habits.clients).map(|number| Client::new(number, seed, habits)).collect();
        let first = Era { number: 1, ports: layout.ports.clone(), told: 0, over: u64::MAX };
        let next_event = 5 * MILLI + chance.below(400 * MILLI);
        Ok(Self {
            scenario,
            habits,
            kernel,
            chance,
            workers,
            posts,
            jobs,
            sockets,
            layout,
            eras: vec![first],
            clients,
            origin: Origin::new(seed),
            complaints: Vec::new(),
            next_change: 10 * MILLI,
            next_event,
            bytes_max: store.bytes,
        })
    }

    fn live(&mut self) -> Report {
        for round in 0.. {
            if round > ROUNDS_MAX || self.kernel.borrow().nanos > END_AFTER {
                self.complaints.push("the run does not end".to_owned());
                break;
            }
            let rested = self.round();
            if rested == Some(None) {
                break;
            }
            if let Some(Some(until)) = rested {
                let mut kernel = self.kernel.borrow_mut();
                kernel.nanos = kernel.nanos.max(until);
            }
        }
        self.check();
        let kernel = self.kernel.borrow();
        self.complaints.extend(kernel.offences.iter().cloned());
        let mut report = Report { text: kernel.story.text().to_owned(), ..Report::default() };
        report.complaints = std::mem::take(&mut self.complaints);
        for client in &self.clients {
            let base = client.base();
            report.complaints.extend(base.complaints.iter().cloned());
            report.answered += base.answered;
            report.forgiven += base.forgiven;
        }
        report
    }

    /// Lets some of what could happen happen. When nothing could: the time of the next thing, or
    /// nothing when everybody has left.
    fn round(&mut self) -> Option<Option<u64>> {
        let mut any = self.disturb();
        let mut next: Option<u64> = None;
        let mut sooner = |at: u64| next = Some(next.map_or(at, |known: u64| known.min(at)));
        let mut order: Vec<usize> = (0..self.clients.len() + self.workers.len()).collect();
        self.chance.shuffle(&mut order);
        let mut all_left = true;
        for who in order {
            let passes = self.chance.one_in(self.habits.passes_in);
            if let Some(client) = self.clients.get_mut(who) {
                if passes {
                    (any, all_left) = (true, false);
                    continue;
                }
                match client.act(&mut self.kernel.borrow_mut(), &self.eras) {
                    Act::Worked => (any, all_left) = (true, false),
                    Act::Waits(at) => {
                        all_left = false;
                        at.into_iter().for_each(&mut sooner);
                    }
                    Act::Done => {}
                }
                continue;
            }
            let number = who - self.clients.len();
            if self.kernel.borrow().is_due(number) {
                any = true;
                if !passes {
                    self.workers[number].turn();
                    self.ring_bells();
                }
            } else {
                self.kernel.borrow().deadline(number).into_iter().for_each(&mut sooner);
            }
        }
        match self.origin.act(&mut self.kernel.borrow_mut()) {
            Act::Worked => any = true,
            Act::Waits(at) => at.into_iter().for_each(&mut sooner),
            Act::Done => {}
        }
        // What a client that left has begun may be finished.
        all_left &= self.workers.iter().all(|worker| worker.live_origins().0 == 0);
        if self.chance.one_in(3) && self.compute() {
            any = true;
        }
        if any {
            return None;
        }
        if self.compute() {
            return None;
        }
        // Only when everybody has left do timers and changes not matter any more.
        if all_left {
            return Some(None);
        }
        if self.habits.change_every > 0 {
            sooner(self.next_change);
        }
        if self.next_event > 0 && (self.scenario.reloads() || self.scenario == Scenario::Drain) {
            sooner(self.next_event);
        }
        if next.is_none() {
            self.complaints.push("everybody waits for something that never happens".to_owned());
            return Some(None);
        }
        Some(next)
    }

    /// Files, configurations and the network change.
    fn disturb(&mut self) -> bool {
        let now = self.kernel.borrow().nanos;
        let mut any = false;
        if self.habits.change_every > 0 && now >= self.next_change {
            self.next_change = now + self.chance.below(2 * self.habits.change_every);
            self.change_file(now);
            any = true;
        }
        let generation = self.sockets.store().generation();
        self.kernel.borrow_mut().pages.note_generation(generation, now);
        let cut_in = self.kernel.borrow().faults.cut_in;
        if self.chance.one_in(cut_in) {
            let mut kernel = self.kernel.borrow_mut();
            if let Some(fd) = kernel.any_socket() {
                kernel.cut(fd);
                any = true;
            }
        }
        if self.next_event > 0 && now >= self.next_event {
            self.next_event = now + 20 * MILLI + self.chance.below(500 * MILLI);
            any |= self.command(now);
        }
        self.end_eras(now);
        any
    }

    fn change_file(&mut self, now: u64) {
        let path = FILES[self.chance.index(FILES.len())];
        let bytes = site::content(path, &mut self.chance);
        let mut kernel = self.kernel.borrow_mut();
        let kind = self.chance.below(4);
        kernel.tell(|| {
            format!("disk: {path} {}", ["vanishes", "is rewritten"][usize::from(kind > 0)])
        });
        match kind {
            0 => kernel.disk.remove(path, now),
            1 => kernel.disk.replace(path, bytes, now),
            2 => kernel.disk.rewrite(path, bytes, now),
            _ => {
                let short = bytes.len() / 3;
                kernel.disk.rewrite(path, bytes[..short].to_vec(), now);
            }
        }
    }

    /// The administrator does something.
    fn command(&mut self, now: u64) -> bool {
        match self.scenario {
            Scenario::CacheChange if self.chance.one_in(2) => self.jump(),
            scenario if scenario.reloads() && self.layout.number < 6 => self.reload(now),
            Scenario::Drain => {
                self.next_event = 0;
                self.tell_all("quit", || Mail::Quit);
                let mut kernel = self.kernel.borrow_mut();
                kernel.draining = true;
                for port in &self.layout.ports {
                    kernel.close_port(*port);
                }
            }
            _ => {
                self.next_event = 0;
                return false;
            }
        }
        true
    }

    /// Civil time jumps, forwards or backwards, a little or by days.
    fn jump(&mut self) {
        let bits = self.chance.between(4, 29);
        let by = self.chance.below(1 << bits).cast_signed();
        let by = if self.chance.one_in(2) { by } else { -by };
        let mut kernel = self.kernel.borrow_mut();
        kernel.skew += by;
        kernel.tell(|| format!("the clock jumps by {by} ms"));
    }

    fn reload(&mut self, now: u64) {
        self.layout.number += 1;
        let old = self.layout.ports.clone();
        self.layout.ports = match self.chance.below(4) {
            0 => vec![8081, 8080],
            1 => vec![8080],
            2 => vec![8082, 8080, 8081],
            _ => vec![8080, 8081],
        };
        let generation = self.sockets.generation(&self.layout, &mut self.kernel.borrow_mut());
        match generation {
            Ok(generation) => {
                self.tell_all("reload", || Mail::Configure(generation.clone()));
                let ports = self.layout.ports.clone();
                let number = self.layout.number;
                self.eras.push(Era { number, ports, told: now, over: u64::MAX });
                for port in old.iter().filter(|port| !self.layout.ports.contains(port)) {
                    self.sockets.forget(*port);
                    self.kernel.borrow_mut().close_port(*port);
                }
            }
            Err(problem) => self.complaints.push(problem),
        }
    }

    /// Tells the kernel of mail that a worker sent to others.
    fn ring_bells(&self) {
        for (worker, post) in self.posts.iter().enumerate() {
            if post.has_mail() {
                self.kernel.borrow_mut().ring(worker);
            }
        }
    }

    fn tell_all(&self, what: &str, mail: impl Fn() -> Mail) {
        for (worker, post) in self.posts.iter().enumerate() {
            let mut kernel = self.kernel.borrow_mut();
            kernel.tell(|| format!("worker {worker} is told: {what}"));
            // A box holds thousands of notes.
            let _ = post.send(mail());
            kernel.ring(worker);
        }
    }

    /// Once all mail is read, only the newest configuration is in force.
    fn end_eras(&mut self, now: u64) {
        if self.kernel.borrow().all_mail_is_read() {
            let newest = self.eras.len() - 1;
            for era in &mut self.eras[..newest] {
                era.over = era.over.min(now);
            }
        }
    }

    /// Lets the thread of long computations do one.
    fn compute(&self) -> bool {
        let Some(worker) = self.jobs.compute_one(&self.posts) else { return false };
        let mut kernel = self.kernel.borrow_mut();
        kernel.tell(|| format!("worker {worker} is told: compressed"));
        kernel.ring(usize::from(worker));
        true
    }

    /// Everybody has left: nothing may be left of them.
    fn check(&mut self) {
        for (number, worker) in self.workers.iter().enumerate() {
            let live = worker.live();
            if live != (0, 0) {
                self.complaints.push(format!(
                    "worker {number}: {} connections and {} exchanges are left",
                    live.0, live.1
                ));
            }
        }
        // Timers of what is gone fire into nothing and are not set again.
        for _ in 0..1000 {
            let kernel = self.kernel.borrow();
            let workers = 0..self.workers.len();
            let next = workers.clone().filter_map(|number| kernel.deadline(number)).min();
            let due = workers.filter(|number| kernel.is_due(*number)).collect::<Vec<_>>();
            drop(kernel);
            for number in &due {
                self.workers[*number].turn();
            }
            match next {
                _ if !due.is_empty() => {}
                None => break,
                Some(at) => {
                    let mut kernel = self.kernel.borrow_mut();
                    kernel.nanos = kernel.nanos.max(at);
                }
            }
        }
        let kernel = self.kernel.borrow();
        if let Some(at) = (0..self.workers.len()).find_map(|number| kernel.deadline(number)) {
            self.complaints.push(format!("a timer is left, due at {at}"));
        }
        for (number, worker) in self.workers.iter().enumerate() {
            let (fetches, links, idle) = worker.live_origins();
            if (fetches, links, idle) != (0, 0, 0) {
                self.complaints.push(format!(
                    "worker {number}: {fetches} fetches, {links} links, {idle} idle are left"
                ));
            }
        }
        for socket in kernel.open_sockets() {
            self.complaints.push(format!("#{} was never closed", socket.number));
        }
        let held: Vec<_> = kernel.disk.held().map(|(path, n)| (path.to_owned(), n)).collect();
        drop(kernel);
        let most = self.workers.len();
        for (path, holders) in held.into_iter().filter(|(_, holders)| *holders > most) {
            self.complaints.push(format!("{path} is held open {holders} times"));
        }
        let lines = self.kernel.borrow();
        self.complaints.extend(books::check(self.sockets.store(), self.bytes_max, &lines.pages));
        let log = &lines.access_log;
        let logged =
            log.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"A ")).count();
        let answered: usize = self.clients.iter().map(|client| client.base().answered).sum();
        if logged < answered {
            self.complaints.push(format!("{answered} answers, {logged} lines in the log"));
        }
    }
}
