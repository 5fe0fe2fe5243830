//! One run: workers and clients take turns until all clients have left, then the invariants are
//! checked.

mod chores;
mod faults;
mod invariants;
mod quic;
pub(crate) mod server;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::mpsc::Receiver;

use bolide_worker::{Holdings, Mail, Worker};

use bolide_cache::StoreLimits;

use crate::ask::Weights;
use crate::chance::Chance;
use crate::client::{SimAct, SimClient};
use crate::dav;
use crate::gates::GATES;
use crate::kernel::Kernel;
use crate::kernel::dearth::DoorCall;
use crate::kernel::disk::{STORES, is_stored};
use crate::names;
use crate::origin::SimUpstream;
use crate::scenario::{Habits, MILLI, Scenario};
use crate::scenario_log::Telling;
use crate::sim_io::{Anchor, SharedKernel, SimIo};
use crate::site::{self, Layout};
use crate::site_files::{self, DIRECTORIES, FILES};
use crate::truth::Era;
use server::{Birth, SimServer};

/// Rounds after which a run is called endless.
const ROUNDS_MAX: u32 = 200_000;
/// Simulated time after which everything must be over, whatever timeouts run.
const END_AFTER: u64 = 900 * 1000 * MILLI;

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct RunReport {
    /// What went wrong; empty for a good run.
    pub complaints: Vec<String>,
    /// Complete and right answers.
    pub answered: usize,
    /// Requests that were owed no answer.
    pub forgiven: usize,
    /// Answers that were taken from files of the cache; in plays, those that were kept.
    pub recalls: u64,
    /// Calls of the door that failed for want of something.
    pub struck: BTreeSet<DoorCall>,
    /// The transcript, if it was wanted.
    pub text: String,
}

/// Puts `seed` into the world of `scenario` and lets it run to its end.
#[must_use]
pub fn run(scenario: Scenario, seed: u64, telling: Telling) -> RunReport {
    if scenario == Scenario::Audiences {
        return crate::audiences::run(seed, telling);
    }
    match World::new(scenario, seed, telling) {
        Ok(mut world) => world.live(),
        Err(problem) => RunReport { complaints: vec![problem], ..RunReport::default() },
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
        Scenario::CacheDisk => StoreLimits {
            bytes: 2_000 + chance.size(100_000) as u64,
            object_bytes: 100_000,
            front_entries: 2,
        },
        Scenario::CacheOrigin | Scenario::CacheChange | Scenario::CacheEsi => {
            StoreLimits { front_entries: 4, ..all }
        }
        _ => all,
    }
}

/// Has the disk hold what is served.
fn furnish(kernel: &mut Kernel, scenario: Scenario, chance: &mut Chance) {
    for directory in DIRECTORIES.iter().chain(&STORES) {
        kernel.disk.make_directory(directory);
    }
    for path in FILES {
        kernel.disk.replace(path, site_files::content(path, chance), 0);
    }
    kernel.disk.remove("/www/missing", 0);
    if scenario.has_dav() {
        let seed = kernel.seed;
        dav::prepare(kernel, seed);
    }
}

/// What came of one round.
#[derive(Debug, Default)]
struct Round {
    /// Something happened.
    any: bool,
    /// No client has anything left to do.
    all_left: bool,
    /// When the next thing happens.
    next: Option<u64>,
    /// When the disk writer's next turn is due, which delays no client.
    looks_after: Option<u64>,
}

impl Round {
    fn sooner(&mut self, at: u64) {
        self.next = Some(self.next.map_or(at, |known| known.min(at)));
    }
}

struct World {
    scenario: Scenario,
    habits: Habits,
    kernel: SharedKernel,
    chance: Chance,
    anchor: Anchor,
    seed: u64,
    server: SimServer,
    /// Servers that have died.
    deaths: u64,
    /// Deaths that are left in this act.
    deaths_left: u64,
    /// Counts clients that come after all others have left.
    act: u64,
    limits: StoreLimits,
    layout: Layout,
    eras: Vec<Era>,
    clients: Vec<SimClient>,
    origin: SimUpstream,
    complaints: Vec<String>,
    /// Answers that servers which have died took from files.
    recalls: u64,
    next_change: u64,
    next_event: u64,
    /// What workers will tell of themselves.
    told: Vec<(usize, Receiver<Holdings>)>,
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
        let has_trees = scenario.has_trees();
        if has_trees {
            kernel.faults.store_in = [0, 1000, 8000][chance.index(3)];
            habits.rest_max = [100, 300, 1000][chance.index(3)] * MILLI;
        }
        kernel.age_max = if has_trees { 300 } else { 3 };
        furnish(&mut kernel, scenario, &mut chance);
        let words = |error: std::io::Error| error.to_string();
        let anchor = Anchor::new().map_err(words)?;
        let extra =
            ["sendfile on;", "keepalive_requests 3;", "open_file_cache off;", "sendfile off;"];
        let extra = extra[chance.index(extra.len())].to_owned();
        let page_path = if has_trees { site::page_path(&mut chance) } else { "" };
        let is_tight = scenario == Scenario::Clients && chance.one_in(3);
        let connections = if is_tight { 3 } else { 512 };
        kernel.is_tight = is_tight;
        let quic = quic::Offer::any(scenario, seed, &mut kernel);
        if scenario.has_upkeep() {
            chores::prepare(&mut kernel, seed);
        }
        let layout = Layout {
            number: 1,
            ports: vec![8080, 8081],
            workers: count,
            connections,
            // Harder than a turn compresses, so that a job does.
            gzip_level: if scenario == Scenario::CacheTight { 9 } else { 1 },
            extra,
            page_path,
            keeps_long: has_trees,
            speech: scenario.speech(),
            quic_ports: quic.ports,
            quic: quic.words,
            early_data: quic.early_data,
            has_gates: scenario.has_gates(),
            has_upkeep: scenario.has_upkeep(),
            has_dav: scenario.has_dav(),
            names: if scenario.has_names() { names::directives(seed) } else { String::new() },
            own: None,
        };
        let kernel = Rc::new(RefCell::new(kernel));
        let birth =
            Birth { anchor: &anchor, limits: store, layout: &layout, has_trees, seed, life: 0 };
        let server = SimServer::start(&birth, &kernel)?;
        if scenario == Scenario::Dearth {
            let mut kernel = kernel.borrow_mut();
            kernel.dearth.once_in = [10, 40, 200, 1000][kernel.chance.index(4)];
        }
        let clients =
            (0..habits.clients).map(|number| SimClient::new(number, seed, habits)).collect();
        let (mut ports, quic_ports) = (layout.ports.clone(), layout.quic_ports.clone());
        if layout.has_gates {
            ports.extend(GATES.map(|gate| gate.port));
        }
        let first = Era { number: 1, ports, quic_ports, told: 0, over: u64::MAX };
        let next_event = 5 * MILLI + chance.below(400 * MILLI);
        Ok(Self {
            scenario,
            habits,
            kernel,
            chance,
            anchor,
            seed,
            server,
            deaths: 0,
            deaths_left: faults::DEATHS_MAX,
            act: 0,
            limits: store,
            layout,
            eras: vec![first],
            clients,
            origin: SimUpstream::new(seed, scenario.speech()),
            complaints: Vec::new(),
            recalls: 0,
            next_change: 10 * MILLI,
            next_event,
            told: Vec::new(),
        })
    }

    fn live(&mut self) -> RunReport {
        for round in 0.. {
            if round > ROUNDS_MAX || self.kernel.borrow().nanos > END_AFTER {
                self.complaints.push("the run does not end".to_owned());
                break;
            }
            let rested = self.round();
            if rested == Some(None) && !self.begin_act() {
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
        let mut report = RunReport { text: kernel.story.text().to_owned(), ..RunReport::default() };
        report.recalls = self.recalls + self.server.sockets.store().stats().recalled;
        report.complaints = std::mem::take(&mut self.complaints);
        report.struck.clone_from(&kernel.dearth.seen);
        for client in &self.clients {
            let base = client.base();
            report.complaints.extend(base.complaints.iter().cloned());
            report.answered += base.answered;
            report.forgiven += base.forgiven;
        }
        report
    }

    /// Lets some of what could happen happen. When nothing could: the time of the next thing, or
    /// nothing when all have left.
    fn round(&mut self) -> Option<Option<u64>> {
        let mut round = Round { all_left: true, any: self.disturb(), ..Round::default() };
        let mut order: Vec<usize> = (0..self.clients.len() + self.server.turners()).collect();
        self.chance.shuffle(&mut order);
        for who in order {
            let passes = self.chance.one_in(self.habits.passes_in);
            if who < self.clients.len() {
                self.ask(who, passes, &mut round);
            } else if !self.serve(who - self.clients.len(), passes, &mut round) {
                let loses_power = self.chance.one_in(2);
                self.restart(loses_power);
                return None;
            }
        }
        match self.origin.act(&mut self.kernel.borrow_mut()) {
            SimAct::Worked => round.any = true,
            SimAct::Waits(at) => at.into_iter().for_each(|at| round.sooner(at)),
            SimAct::Done => {}
        }
        {
            let mut kernel = self.kernel.borrow_mut();
            round.any |= kernel.serve_names();
            kernel.names.next(kernel.nanos).into_iter().for_each(|at| round.sooner(at));
        }
        // A request of a client that left may end later, as one that asks other nodes does, and a
        // QUIC connection whose client vanished waits for its idle timeout.
        let is_over = |worker: &Worker<SimIo>| {
            let waits = worker.live_origins().0 + worker.live().1;
            waits == 0 && worker.live_quic() == (0, 0)
        };
        round.all_left &= self.server.workers.iter().all(is_over);
        self.kernel.borrow().net.next_arrival().into_iter().for_each(|at| round.sooner(at));
        if self.chance.one_in(3) && self.server.compute(&self.kernel) {
            round.any = true;
        }
        if round.any || self.server.compute(&self.kernel) {
            return None;
        }
        // Only when all have left do timers and changes not matter any more.
        if round.all_left {
            return Some(None);
        }
        if self.habits.change_every > 0 {
            round.sooner(self.next_change);
        }
        if self.next_event > 0 && (self.scenario.reloads() || self.scenario.drains()) {
            round.sooner(self.next_event);
        }
        let Some(next) = round.next else {
            self.complaints.push("all wait for an event that never happens".to_owned());
            return Some(None);
        };
        Some(Some(round.looks_after.map_or(next, |at| next.min(at))))
    }

    /// Lets a client do something.
    fn ask(&mut self, client: usize, passes: bool, round: &mut Round) {
        if passes {
            (round.any, round.all_left) = (true, false);
            return;
        }
        match self.clients[client].act(&mut self.kernel.borrow_mut(), &self.eras) {
            SimAct::Worked => (round.any, round.all_left) = (true, false),
            SimAct::Waits(at) => {
                round.all_left = false;
                at.into_iter().for_each(|at| round.sooner(at));
            }
            SimAct::Done => {}
        }
    }

    /// Lets a worker or the disk writer take a turn if there is work; false if the server
    /// dies of it.
    fn serve(&mut self, number: usize, passes: bool, round: &mut Round) -> bool {
        let (is_due, deadline) = {
            let kernel = self.kernel.borrow();
            (kernel.is_due(number), kernel.deadline(number))
        };
        if is_due {
            round.any = true;
            if !passes {
                self.server.turn(number, &self.kernel);
                self.hear_holdings();
            }
            return !self.kernel.borrow().is_dead;
        }
        if number == self.server.workers.len() {
            round.looks_after = deadline;
        } else {
            deadline.into_iter().for_each(|at| round.sooner(at));
        }
        true
    }

    /// Files, configurations and the network change.
    fn disturb(&mut self) -> bool {
        let now = self.kernel.borrow().nanos;
        self.kernel.borrow_mut().change_weather();
        let mut any = self.kernel.borrow_mut().deliver();
        if self.habits.change_every > 0 && now >= self.next_change {
            self.next_change = now + self.chance.below(2 * self.habits.change_every);
            self.change_file(now);
            any = true;
        }
        let generation = self.server.sockets.store().generation();
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
        let bytes = site_files::content(path, &mut self.chance);
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
            Scenario::CacheDisk => self.harm(now),
            Scenario::QuicDeath if self.deaths_left > 0 && self.chance.one_in(2) => {
                self.kernel.borrow_mut().net.deaths += 1;
                self.restart(false);
            }
            scenario if scenario.has_upkeep() && self.layout.number < 6 => self.keep_up(now),
            scenario if scenario.reloads() && self.layout.number < 6 => self.reload(now),
            scenario if scenario.drains() => {
                self.next_event = 0;
                self.server.tell_all(&self.kernel, "quit", || Mail::Quit);
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

    fn reload(&mut self, now: u64) {
        self.layout.number += 1;
        let (old, old_quic) = (self.layout.ports.clone(), self.layout.quic_ports.clone());
        self.layout.ports = match self.chance.below(4) {
            0 => vec![8081, 8080],
            1 => vec![8080],
            2 => vec![8082, 8080, 8081],
            _ => vec![8080, 8081],
        };
        if self.scenario.has_quic() {
            let (port_8443, has_other) = (8443, self.chance.one_in(2));
            let mut kernel = self.kernel.borrow_mut();
            kernel.has_lost_ports |= self.layout.quic_ports.len() > 1 && !has_other;
            self.layout.quic_ports =
                if has_other { vec![port_8443, 8444] } else { vec![port_8443] };
        }
        if self.scenario.has_trees() {
            let has_path = !self.chance.one_in(3);
            self.layout.page_path = if has_path { site::page_path(&mut self.chance) } else { "" };
        }
        let generation =
            self.server.sockets.generation(&self.layout, &mut self.kernel.borrow_mut());
        match generation {
            Ok(generation) => {
                self.server.settle(&generation);
                let logs = self.server.sockets.logs();
                let mail = || Mail::Configure(generation.clone(), logs.clone());
                self.server.tell_all(&self.kernel, "reload", mail);
                let ports = self.layout.ports.clone();
                let (number, quic_ports) = (self.layout.number, self.layout.quic_ports.clone());
                self.eras.push(Era { number, ports, quic_ports, told: now, over: u64::MAX });
                for port in old.iter().filter(|port| !self.layout.ports.contains(port)) {
                    self.server.sockets.forget(*port);
                    self.kernel.borrow_mut().close_port(*port);
                }
                // Workers hold what is left until the last connection there has ended.
                let has_gone = |port: &&u16| !self.layout.quic_ports.contains(port);
                for port in old_quic.iter().filter(has_gone) {
                    self.server.sockets.forget(*port);
                }
            }
            Err(problem) => self.complaints.push(problem),
        }
    }

    /// Once all mail is read, only the newest configuration is in force.
    fn end_eras(&mut self, now: u64) {
        if self.kernel.borrow().all_mail_is_read() {
            self.kernel.borrow_mut().logs.settle();
            let newest = self.eras.len() - 1;
            for era in &mut self.eras[..newest] {
                era.over = era.over.min(now);
            }
        }
    }

    /// No name is looked up any more.
    fn finish_names(&mut self) {
        if self.scenario.has_names() {
            self.layout.names.clear();
            let now = self.kernel.borrow().nanos;
            self.reload(now);
        }
    }

    /// All have left: nothing may be left of them.
    fn check(&mut self) {
        for (number, worker) in self.server.workers.iter().enumerate() {
            let live = worker.live();
            if live != (0, 0) {
                self.complaints.push(format!(
                    "worker {number}: {} connections and {} exchanges are left",
                    live.0, live.1
                ));
            }
        }
        self.kernel.borrow_mut().dies_in = None;
        self.finish_chores();
        self.finish_names();
        // Timers of what is gone fire into nothing and are not set again.
        for _ in 0..1000 {
            // A request of a client that left before it was accepted may wait for a job.
            while self.server.compute(&self.kernel) {}
            let kernel = self.kernel.borrow();
            let workers = 0..self.server.workers.len();
            let next = workers.clone().filter_map(|number| kernel.deadline(number)).min();
            let due = workers.filter(|number| kernel.is_due(*number)).collect::<Vec<_>>();
            drop(kernel);
            for number in &due {
                self.server.workers[*number].turn();
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
        if let Some(at) = (0..self.server.workers.len()).find_map(|number| kernel.deadline(number))
        {
            self.complaints.push(format!("a timer is left, due at {at}"));
        }
        for (number, worker) in self.server.workers.iter().enumerate() {
            let (fetches, links, idle) = worker.live_origins();
            if (fetches, links, idle) != (0, 0, 0) {
                self.complaints.push(format!(
                    "worker {number}: {fetches} fetches, {links} links, {idle} idle are left"
                ));
            }
        }
        let open = kernel.names.open_sockets();
        if open > 0 {
            self.complaints.push(format!("{open} sockets to name servers are left"));
        }
        let counted = self.server.sockets.zones().held();
        if counted > 0 {
            self.complaints.push(format!("{counted} keys are counted though nobody is in work"));
        }
        for socket in kernel.open_sockets() {
            self.complaints.push(format!("#{} was never closed", socket.number));
        }
        let held: Vec<_> = kernel.disk.held().map(|(path, n)| (path.to_owned(), n)).collect();
        drop(kernel);
        let most = self.server.workers.len();
        for (path, holders) in held {
            // A journal is held by its tree, and by who looks after it.
            let is_whole = !is_stored(&path) || path.contains("/bolide.");
            if holders <= most.max(2) && is_whole {
                continue;
            }
            self.complaints.push(format!("{path} is held open {holders} times"));
        }
        let lines = self.kernel.borrow();
        self.complaints.extend(invariants::check(
            self.server.sockets.store(),
            self.limits.bytes,
            &lines.pages,
        ));
        self.complaints.extend(invariants::check_files(&lines.disk, &lines.pages));
        if self.scenario.has_dav() {
            self.complaints.extend(dav::check(&lines));
        }
        if self.scenario.has_upkeep() {
            self.complaints.extend(self.check_chores(&lines));
        }
        let log = &lines.access_log;
        let logged =
            log.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"A ")).count();
        let answered: usize = self.clients.iter().map(|client| client.base().answered).sum();
        // What was not written yet when a server died is lost.
        if logged < answered && self.deaths == 0 && !lines.dearth.is_felt() {
            self.complaints.push(format!("{answered} answers, {logged} lines in the log"));
        }
    }
}
