//! Faults of the machine of a server with a disk cache: it crashes, its disk is full or flips bits,
//! files are deleted, its clock jumps.

use crate::client::SimClient;
use crate::time::MILLI;

use super::World;
use super::server::{ServerSetup, SimServer};

/// Crashes per phase, at most.
pub(super) const DEATHS_MAX: u64 = 6;
/// Phases of a run: in each one, new clients come to a restarted server.
const PHASES: u64 = 3;

impl World {
    /// Injects a random fault of the machine.
    pub(super) fn inject_machine_fault(&mut self, now: u64) {
        self.next_event = now + 20 * MILLI + self.chance.below(2000 * MILLI);
        match self.chance.below(16) {
            0..=2 if self.deaths_left > 0 => {
                let loses_power = self.chance.one_in(2);
                self.restart(loses_power);
            }
            3..=5 if self.deaths_left > 0 => {
                let calls = self.chance.size(64) as u64;
                self.kernel.borrow_mut().dies_in = Some(calls);
            }
            6 => self.fill_disk(2000 * MILLI),
            7..=9 => {
                let mut kernel = self.kernel.borrow_mut();
                if let Some(path) = kernel.disk.flip(&mut self.chance) {
                    kernel.fault_record.damaged_files += 1;
                    kernel.trace(|| format!("a bit of {path} flips"));
                }
            }
            10..=12 if self.layout.number < 6 => self.reload(now),
            13 => self.jump(),
            14 => {
                let mut kernel = self.kernel.borrow_mut();
                if let Some(path) = kernel.disk.delete(&mut self.chance) {
                    kernel.trace(|| format!("{path} is deleted"));
                }
            }
            _ => {}
        }
    }

    /// The disk is full for a while.
    fn fill_disk(&mut self, longest: u64) {
        let full = self.chance.below(longest);
        let mut kernel = self.kernel.borrow_mut();
        kernel.full_until = kernel.nanos + full;
        kernel.trace(|| format!("the disk is full for {full} ns"));
    }

    /// The server crashes and restarts.
    pub(super) fn restart(&mut self, loses_power: bool) {
        self.deaths += 1;
        self.deaths_left = self.deaths_left.saturating_sub(1);
        self.recalls += self.server.sockets.store().stats().recalled;
        {
            let mut kernel = self.kernel.borrow_mut();
            kernel.kill_server();
            if loses_power {
                kernel.trace(|| "power is lost".to_owned());
                kernel.disk.lose_power(&mut self.chance);
                kernel.fault_record.damaged_files += 1;
                let now = kernel.nanos;
                kernel.pages.lose_power(now);
            }
        }
        if self.chance.one_in(8) {
            self.fill_disk(3000 * MILLI);
        }
        let setup = ServerSetup {
            descriptors: &self.descriptors,
            limits: self.limits,
            layout: &self.layout,
            has_disk_cache: self.scenario.has_disk_cache(),
            seed: self.seed,
            instance: self.deaths,
        };
        match SimServer::start(&setup, &self.kernel) {
            Ok(server) => self.server = server,
            Err(problem) => self.violations.push(problem),
        }
        let newest = self.epochs.len() - 1;
        let now = self.kernel.borrow().nanos;
        self.epochs[..newest]
            .iter_mut()
            .for_each(|epoch| epoch.superseded_at = epoch.superseded_at.min(now));
    }

    /// The civil time jumps forwards or backwards, by milliseconds or by days.
    pub(super) fn jump(&mut self) {
        let bits = self.chance.between(4, 29);
        let by = self.chance.below(1 << bits).cast_signed();
        let by = if self.chance.one_in(2) { by } else { -by };
        let mut kernel = self.kernel.borrow_mut();
        kernel.skew += by;
        kernel.trace(|| format!("the clock jumps by {by} ms"));
    }

    /// After all clients have left: starts the next phase with new clients and a restarted server
    /// that finds the files of the previous one. Returns false after the last phase.
    pub(super) fn begin_phase(&mut self) -> bool {
        if !self.scenario.has_disk_cache() || self.phase + 1 == PHASES {
            return false;
        }
        self.phase += 1;
        self.deaths_left = DEATHS_MAX;
        let loses_power = self.chance.one_in(4);
        if !loses_power && self.chance.one_in(2) {
            self.server.quit(&self.kernel);
        }
        if self.phase + 1 == PHASES {
            // The last phase only reads.
            self.next_event = 0;
            let mut kernel = self.kernel.borrow_mut();
            (kernel.fault_rates.store_in, kernel.full_until) = (0, 0);
        }
        if self.phase + 1 == PHASES || self.chance.one_in(2) {
            self.profile.mix = self.profile.mix.without_purges();
        }
        self.restart(loses_power);
        let first = self.clients.len();
        let numbers = first..first + self.profile.clients;
        let (seed, profile) = (self.seed, self.profile);
        self.clients.extend(numbers.map(|number| SimClient::new(number, seed, profile)));
        true
    }
}
