//! Upgrades of the binary, and the way back.
//!
//! ```text
//!   USR2 ─▶ both serve ──QUIT──▶ the successor alone
//!              │ WINCH
//!              ▼
//!           the successor serves ──HUP, or it ends──▶ this process serves again
//! ```
//!
//! Easiest to break: on the way back no file is read. It may have been changed for the new binary,
//! and addresses that it added are taken.

use bolide_conf::model::LogLevel;
use bolide_quic::Admits;

use super::{ControlThread, Life};
use crate::control_log::ControlLog;
use crate::upgrade;

impl ControlThread<'_> {
    /// Starts the successor.
    pub(super) fn upgrade(&mut self) {
        self.log.write(LogLevel::Notice, "changing binary");
        let Some(pid) = &mut self.pid else { return };
        let (keys, workers) = (&self.shared.quic_keys, usize::from(self.crew.size()));
        let (directory, reports) = (&self.invocation.directory, (&self.manager, &self.log));
        self.successor =
            upgrade::start_successor(&self.open, keys, workers, pid, directory, reports);
        if self.successor.is_some() {
            self.shared.tls.issued.rest();
            self.leave_upkeep(true);
        }
    }

    /// Resumes the whole service when the successor has ended.
    pub(super) fn look_at_successor(&mut self) {
        let Some(pid) = &mut self.pid else { return };
        let had_one = self.successor.is_some();
        upgrade::watch_successor(&mut self.successor, pid, &self.log);
        if !had_one || self.successor.is_some() || self.life == Life::Ending {
            return;
        }
        self.leave_upkeep(false);
        if self.crew.has_yielded() {
            self.return_to_service();
        } else {
            let log = ControlLog::new(&self.config, self.log.open());
            self.shared.tls.issued.resume(log, self.account.as_ref());
        }
    }

    /// Lets the successor manage the files of the cache, or manages them again.
    fn leave_upkeep(&self, leaves: bool) {
        if let Some(store) = self.generation.site.store() {
            store.disk().leave_upkeep(leaves);
        }
        self.disk_writer.bell().ring();
    }

    /// Whether a successor serves in place of this process's workers.
    pub(super) fn has_yielded(&self) -> bool {
        self.successor.is_some() && self.crew.has_yielded()
    }

    /// Serves again under the configuration in force.
    pub(super) fn return_to_service(&mut self) {
        let log = ControlLog::new(&self.config, self.log.open());
        let write_log = |level, text: &str| log.write(level, text);
        let (workers, keys) = (self.crew.size(), &self.shared.quic_keys);
        // The error is in the log.
        let Ok(sockets) = self.open.apply(&self.config, workers, keys, write_log) else { return };
        self.generation.sockets.refill(sockets);
        self.crew.resume(&self.log);
        self.open.steer_admission(keys, Admits::Successor);
        // All other threads have gone on.
        let log = ControlLog::new(&self.config, self.log.open());
        self.shared.tls.issued.resume(log, self.account.as_ref());
    }
}
