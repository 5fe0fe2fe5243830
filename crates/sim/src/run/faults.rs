//! Faults of the machine of a server with a disk cache: it dies, its disk is full or flips bits,
//! its clock jumps.

use crate::client::SimClient;
use crate::scenario::MILLI;

use super::World;
use super::server::{Birth, SimServer};

/// Servers of one act that die.
pub(super) const DEATHS_MAX: u64 = 6;
/// Acts of a run: in each, others come to a server that was just started.
const ACTS: u64 = 3;

impl World {
    /// Something happens to the machine.
    pub(super) fn harm(&mut self, now: u64) {
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
                    kernel.deeds.broken_files += 1;
                    kernel.tell(|| format!("a bit of {path} flips"));
                }
            }
            10..=12 if self.layout.number < 6 => self.reload(now),
            13 => self.jump(),
            _ => {}
        }
    }

    /// Nothing can be written for a while.
    fn fill_disk(&mut self, longest: u64) {
        let full = self.chance.below(longest);
        let mut kernel = self.kernel.borrow_mut();
        kernel.full_until = kernel.nanos + full;
        kernel.tell(|| format!("the disk is full for {full} ns"));
    }

    /// The server dies, and another one starts.
    pub(super) fn restart(&mut self, loses_power: bool) {
        self.deaths += 1;
        self.deaths_left = self.deaths_left.saturating_sub(1);
        self.recalls += self.server.sockets.store().stats().recalled;
        {
            let mut kernel = self.kernel.borrow_mut();
            kernel.bury();
            if loses_power {
                kernel.tell(|| "power is lost".to_owned());
                kernel.disk.lose_power(&mut self.chance);
                kernel.deeds.broken_files += 1;
                let now = kernel.nanos;
                kernel.pages.lose_power(now);
            }
        }
        if self.chance.one_in(8) {
            self.fill_disk(3000 * MILLI);
        }
        let birth = Birth {
            anchor: &self.anchor,
            limits: self.limits,
            layout: &self.layout,
            has_trees: self.scenario.has_trees(),
            seed: self.seed,
            life: self.deaths,
        };
        match SimServer::start(&birth, &self.kernel) {
            Ok(server) => self.server = server,
            Err(problem) => self.complaints.push(problem),
        }
        let newest = self.eras.len() - 1;
        let now = self.kernel.borrow().nanos;
        self.eras[..newest].iter_mut().for_each(|era| era.over = era.over.min(now));
    }

    /// Civil time jumps, forwards or backwards, a little or by days.
    pub(super) fn jump(&mut self) {
        let bits = self.chance.between(4, 29);
        let by = self.chance.below(1 << bits).cast_signed();
        let by = if self.chance.one_in(2) { by } else { -by };
        let mut kernel = self.kernel.borrow_mut();
        kernel.skew += by;
        kernel.tell(|| format!("the clock jumps by {by} ms"));
    }

    /// When all have left: whether others come, to another server that finds what the last one
    /// has written.
    pub(super) fn begin_act(&mut self) -> bool {
        if !self.scenario.has_trees() || self.act + 1 == ACTS {
            return false;
        }
        self.act += 1;
        self.deaths_left = DEATHS_MAX;
        let loses_power = self.chance.one_in(4);
        if !loses_power && self.chance.one_in(2) {
            self.server.quit(&self.kernel);
        }
        if self.act + 1 == ACTS {
            // The last ones look at what is there.
            self.next_event = 0;
            let mut kernel = self.kernel.borrow_mut();
            (kernel.faults.store_in, kernel.full_until) = (0, 0);
        }
        if self.act + 1 == ACTS || self.chance.one_in(2) {
            self.habits.weights = self.habits.weights.without_purges();
        }
        self.restart(loses_power);
        let first = self.clients.len();
        let numbers = first..first + self.habits.clients;
        let (seed, habits) = (self.seed, self.habits);
        self.clients.extend(numbers.map(|number| SimClient::new(number, seed, habits)));
        true
    }
}
