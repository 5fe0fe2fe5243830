//! Workers that hang: logs them, and applies the configured reaction.

use bolide_conf::model::{LogLevel, Watchdog};

use super::{ControlThread, RESTART_STATUS};
use crate::sockets::SocketNames;

impl ControlThread<'_> {
    /// Logs workers that hang, and applies the configured reaction.
    pub(super) fn watch_workers(&mut self, now: bolide_base::Instant) {
        let standing = self.crew.look_at_pulses(now);
        self.shared.figures.process().stalls += standing.len() as u64;
        for (id, doing) in &standing {
            let (seconds, doing) = (bolide_base::limits::STAND_MS / 1000, doing.text());
            let text = format!("worker process {id} stands still for {seconds}s while {doing}");
            self.log.write(LogLevel::Alert, &text);
        }
        if !self.crew.has_standing() {
            self.manager.keep_alive(now);
        }
        match self.config.main.worker_watchdog {
            _ if standing.is_empty() => {}
            Watchdog::Log => {}
            Watchdog::Abort => std::process::abort(),
            Watchdog::Restart => {
                self.log.write(LogLevel::Alert, "exiting to be started again");
                let is_shared = self.successor.is_some() || self.open.has_elder();
                self.open.close(if is_shared { SocketNames::Keep } else { SocketNames::Remove });
                self.wind_up();
                bolide_io::process::end(RESTART_STATUS);
            }
        }
    }
}
