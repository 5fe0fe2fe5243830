//! One run: workers and clients take turns until all clients have left, then the invariants are
//! checked.

mod administration;
mod changes;
mod end;
mod invariants;
mod machine_faults;
mod quic;
pub(crate) mod server;
mod start;

use std::collections::BTreeSet;
use std::sync::mpsc::Receiver;

use bolide_cache::StoreLimits;
use bolide_worker::{Holdings, Mail, Worker};

use crate::chance::Chance;
use crate::client::{SimClient, StepResult};
use crate::kernel::syscall_faults::IoCall;
use crate::oracle::ConfigEpoch;
use crate::run_trace::TraceMode;
use crate::scenario::{ClientProfile, Scenario};
use crate::sim_io::{DescriptorSource, SharedKernel, SimIo};
use crate::site::Layout;
use crate::time::MILLI;
use crate::upstream::SimUpstream;
use server::SimServer;

/// Rounds after which a run counts as endless.
const ROUNDS_MAX: u32 = 200_000;
/// Simulated nanoseconds after which a run counts as endless.
const END_AFTER: u64 = 900 * 1000 * MILLI;

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct RunReport {
    /// Violated invariants; empty if the run is correct.
    pub violations: Vec<String>,
    /// Complete and correct responses.
    pub answered: usize,
    /// Requests without a response that the server did not owe.
    pub excused: usize,
    /// Responses from cache files; with the audience oracle, responses from the cache.
    pub recalls: u64,
    /// Calls of `Io` that failed by an injected fault.
    pub failed_calls: BTreeSet<IoCall>,
    /// The trace, if it was recorded.
    pub text: String,
}

/// Runs `scenario` with `seed` to its end.
#[must_use]
pub fn run(scenario: Scenario, seed: u64, trace_mode: TraceMode) -> RunReport {
    if scenario == Scenario::Audiences {
        return crate::audiences::run(seed, trace_mode);
    }
    match World::new(scenario, seed, trace_mode) {
        Ok(mut world) => world.run(),
        Err(problem) => RunReport { violations: vec![problem], ..RunReport::default() },
    }
}

/// The progress of one round.
#[derive(Debug, Default)]
struct Round {
    /// There was progress.
    any: bool,
    /// No client has anything left to do.
    all_left: bool,
    /// When the next event is due.
    next: Option<u64>,
    /// When the disk writer's next turn is due. It delays no client.
    disk_writer_due: Option<u64>,
}

impl Round {
    fn sooner(&mut self, at: u64) {
        self.next = Some(self.next.map_or(at, |known| known.min(at)));
    }
}

struct World {
    scenario: Scenario,
    profile: ClientProfile,
    kernel: SharedKernel,
    chance: Chance,
    descriptors: DescriptorSource,
    seed: u64,
    server: SimServer,
    /// Crashes of the server.
    deaths: u64,
    /// Crashes left in this phase.
    deaths_left: u64,
    /// The phase of the run: further clients start when all others have left.
    phase: u64,
    limits: StoreLimits,
    layout: Layout,
    epochs: Vec<ConfigEpoch>,
    clients: Vec<SimClient>,
    upstream: SimUpstream,
    violations: Vec<String>,
    /// Responses from cache files of earlier servers.
    recalls: u64,
    next_change: u64,
    next_event: u64,
    /// Requests for holdings that workers have not answered.
    pending_holdings: Vec<(usize, Receiver<Holdings>)>,
}

impl World {
    fn run(&mut self) -> RunReport {
        for round in 0.. {
            if round > ROUNDS_MAX || self.kernel.borrow().nanos > END_AFTER {
                self.violations.push("the run does not end".to_owned());
                break;
            }
            let rested = self.round();
            if rested == Some(None) && !self.begin_phase() {
                break;
            }
            if let Some(Some(until)) = rested {
                let mut kernel = self.kernel.borrow_mut();
                kernel.nanos = kernel.nanos.max(until);
            }
        }
        self.check();
        let kernel = self.kernel.borrow();
        self.violations.extend(kernel.violations.iter().cloned());
        let mut report =
            RunReport { text: kernel.run_trace.text().to_owned(), ..RunReport::default() };
        report.recalls = self.recalls + self.server.sockets.store().stats().recalled;
        report.violations = std::mem::take(&mut self.violations);
        report.failed_calls.clone_from(&kernel.syscall_faults.failed);
        for client in &self.clients {
            let base = client.base();
            report.violations.extend(base.violations.iter().cloned());
            report.answered += base.answered;
            report.excused += base.excused;
        }
        report
    }

    /// One round in random order. Without progress: the time of the next event, or `Some(None)`
    /// when all clients have left.
    fn round(&mut self) -> Option<Option<u64>> {
        let mut round = Round { all_left: true, any: self.inject_faults(), ..Round::default() };
        let mut order: Vec<usize> = (0..self.clients.len() + self.server.turners()).collect();
        self.chance.shuffle(&mut order);
        for actor in order {
            let skips = self.chance.one_in(self.profile.skip_in);
            if actor < self.clients.len() {
                self.request(actor, skips, &mut round);
            } else if !self.serve(actor - self.clients.len(), skips, &mut round) {
                let loses_power = self.chance.one_in(2);
                self.restart(loses_power);
                return None;
            }
        }
        match self.upstream.step(&mut self.kernel.borrow_mut()) {
            StepResult::Worked => round.any = true,
            StepResult::Waits(at) => at.into_iter().for_each(|at| round.sooner(at)),
            StepResult::Done => {}
        }
        {
            let mut kernel = self.kernel.borrow_mut();
            round.any |= kernel.serve_dns();
            kernel.dns.next(kernel.nanos).into_iter().for_each(|at| round.sooner(at));
        }
        // A request of a client that has left may end later, for example one that waits for other
        // nodes, and a QUIC connection without its client waits for the idle timeout.
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
        // Deadlines and changes matter until all clients have left.
        if round.all_left {
            return Some(None);
        }
        if self.profile.change_every > 0 {
            round.sooner(self.next_change);
        }
        if self.next_event > 0 && (self.scenario.reloads() || self.scenario.drains()) {
            round.sooner(self.next_event);
        }
        let Some(next) = round.next else {
            self.violations.push("all wait for an event that never happens".to_owned());
            return Some(None);
        };
        Some(Some(round.disk_writer_due.map_or(next, |at| next.min(at))))
    }

    /// One step of a client.
    fn request(&mut self, client: usize, skips: bool, round: &mut Round) {
        if skips {
            (round.any, round.all_left) = (true, false);
            return;
        }
        match self.clients[client].step(&mut self.kernel.borrow_mut(), &self.epochs) {
            StepResult::Worked => (round.any, round.all_left) = (true, false),
            StepResult::Waits(at) => {
                round.all_left = false;
                at.into_iter().for_each(|at| round.sooner(at));
            }
            StepResult::Done => {}
        }
    }

    /// A worker or the disk writer takes a turn if it has work. Returns false if the server crashes
    /// in it.
    fn serve(&mut self, number: usize, skips: bool, round: &mut Round) -> bool {
        let (is_due, deadline) = {
            let kernel = self.kernel.borrow();
            (kernel.is_due(number), kernel.deadline(number))
        };
        if is_due {
            round.any = true;
            if !skips {
                self.server.turn(number, &self.kernel);
                self.check_holdings();
            }
            return !self.kernel.borrow().is_dead;
        }
        if number == self.server.workers.len() {
            round.disk_writer_due = deadline;
        } else {
            deadline.into_iter().for_each(|at| round.sooner(at));
        }
        true
    }

    /// Injects changes of files, configurations and the network.
    fn inject_faults(&mut self) -> bool {
        let now = self.kernel.borrow().nanos;
        self.kernel.borrow_mut().apply_net_conditions();
        let mut any = self.kernel.borrow_mut().deliver();
        if self.profile.change_every > 0 && now >= self.next_change {
            self.next_change = now + self.chance.below(2 * self.profile.change_every);
            self.change_file(now);
            any = true;
        }
        let generation = self.server.sockets.store().generation();
        self.kernel.borrow_mut().pages.record_generation(generation, now);
        let cut_in = self.kernel.borrow().fault_rates.cut_in;
        if self.chance.one_in(cut_in) {
            let mut kernel = self.kernel.borrow_mut();
            if let Some(fd) = kernel.any_socket() {
                kernel.cut(fd);
                any = true;
            }
        }
        if self.next_event > 0 && now >= self.next_event {
            self.next_event = now + 20 * MILLI + self.chance.below(500 * MILLI);
            any |= self.run_command(now);
        }
        self.end_epochs(now);
        any
    }

    /// Runs a random command of the administrator.
    fn run_command(&mut self, now: u64) -> bool {
        match self.scenario {
            Scenario::CacheChange if self.chance.one_in(2) => self.jump(),
            Scenario::CacheDisk => self.inject_machine_fault(now),
            Scenario::QuicDeath if self.deaths_left > 0 && self.chance.one_in(2) => {
                self.kernel.borrow_mut().net.deaths += 1;
                self.restart(false);
            }
            scenario if scenario.has_upkeep() && self.layout.number < 6 => self.administer(now),
            scenario if scenario.reloads() && self.layout.number < 6 => self.reload(now),
            scenario if scenario.drains() => {
                self.next_event = 0;
                self.server.send_all(&self.kernel, "quit", || Mail::Quit);
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
}
