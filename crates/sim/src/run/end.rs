//! The invariants at the end of a run: all clients have left, and nothing of them remains.

use super::{World, invariants};
use crate::kernel::disk::is_stored;
use crate::webdav;

impl World {
    /// Checks the invariants after all clients have left.
    pub(super) fn check(&mut self) {
        for (number, worker) in self.server.workers.iter().enumerate() {
            let live = worker.live();
            if live != (0, 0) {
                self.violations.push(format!(
                    "worker {number}: {} connections and {} exchanges are left",
                    live.0, live.1
                ));
            }
        }
        self.kernel.borrow_mut().dies_in = None;
        self.finish_administration();
        self.remove_resolver();
        // Deadlines without an owner expire without effect and are not set again.
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
        self.check_groups();
        let kernel = self.kernel.borrow();
        if let Some(at) = (0..self.server.workers.len()).find_map(|number| kernel.deadline(number))
        {
            self.violations.push(format!("a timer is left, due at {at}"));
        }
        for (number, worker) in self.server.workers.iter().enumerate() {
            let (fetches, links, idle) = worker.live_origins();
            if (fetches, links, idle) != (0, 0, 0) {
                self.violations.push(format!(
                    "worker {number}: {fetches} fetches, {links} links, {idle} idle are left"
                ));
            }
        }
        let open = kernel.dns.open_sockets();
        if open > 0 {
            self.violations.push(format!("{open} sockets to name servers are left"));
        }
        let counted = self.server.sockets.zones().held();
        if counted > 0 {
            self.violations.push(format!("{counted} keys are counted without a request in work"));
        }
        for socket in kernel.open_sockets() {
            self.violations.push(format!("#{} was never closed", socket.number));
        }
        let held: Vec<_> = kernel.disk.held().map(|(path, n)| (path.to_owned(), n)).collect();
        drop(kernel);
        let most = self.server.workers.len();
        for (path, holders) in held {
            // A journal is open in its tree and in the disk writer.
            let is_whole = !is_stored(&path) || path.contains("/bolide.");
            if holders <= most.max(2) && is_whole {
                continue;
            }
            self.violations.push(format!("{path} is held open {holders} times"));
        }
        let lines = self.kernel.borrow();
        self.violations.extend(invariants::check(
            self.server.sockets.store(),
            self.limits.bytes,
            &lines.pages,
        ));
        self.violations.extend(invariants::check_files(&lines.disk, &lines.pages));
        if self.scenario.has_dav() {
            self.violations.extend(webdav::check(&lines));
        }
        if self.scenario.has_upkeep() {
            self.violations.extend(self.check_administration(&lines));
        }
        let log = &lines.access_log;
        let logged =
            log.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"A ")).count();
        let answered: usize = self.clients.iter().map(|client| client.base().answered).sum();
        // A crash loses log lines that were not written.
        if logged < answered && self.deaths == 0 && !lines.syscall_faults.any_failed() {
            self.violations.push(format!("{answered} answers, {logged} lines in the log"));
        }
    }

    /// Checks that no request has a place in an upstream group, or waits for one.
    fn check_groups(&mut self) {
        let groups = self.server.sockets.groups().into_iter().flat_map(|groups| groups.iter());
        for group in groups {
            let (taken, waiting) = (group.conns(), group.waiting());
            if (taken, waiting) != (0, 0) {
                let name = group.name();
                self.violations
                    .push(format!("{name}: {taken} places are taken, {waiting} requests wait"));
            }
        }
    }

    /// Reloads without a resolver.
    fn remove_resolver(&mut self) {
        if self.scenario.has_resolver() {
            self.layout.resolver.clear();
            let now = self.kernel.borrow().nanos;
            self.reload(now);
        }
    }
}
