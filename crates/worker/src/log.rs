//! Writes log lines: each batch to its target.

use std::time::Duration;

use bolide_conf::model::LogLevel;
use bolide_engine::Due;
use bolide_io::Io;

use crate::env::WorkerEnv;

mod files;

pub(crate) use files::LogFiles;
pub use files::{LogFile, OpenLogs};

/// How long an ending worker waits for slow readers of its logs.
const FAREWELL: Duration = Duration::from_secs(1);

impl<I: Io> WorkerEnv<I> {
    /// Writes log lines that are due.
    #[inline]
    pub(crate) fn write_logs(&mut self, due: Due) {
        if !self.logs.is_empty() {
            self.write_some_logs(due);
        }
    }

    // PERF: out of line, as most turns have no lines.
    #[inline(never)]
    fn write_some_logs(&mut self, due: Due) {
        let now = self.now.mono;
        let mut bound = bolide_base::Bound::new();
        while bound.goes_on()
            && let Some(id) = self.logs.poll_write(now, due)
        {
            let batch = self.logs.batch(id);
            let report = self.log_files.write(&mut self.io, batch, now);
            let lost = match &report.packed {
                Some(rest) => {
                    self.logs.written_packed(id, rest, now);
                    0
                }
                None => self.logs.written(id, report.bytes, now),
            };
            if lost > 0 {
                let text = format!("{lost} lines of a log were lost, as it took no more");
                self.log_server(LogLevel::Alert, &text);
            }
            if let Some(trouble) = report.trouble {
                let (level, serial) = (trouble.level, trouble.serial);
                self.log_server_bytes(level, serial, &trouble.text);
            }
        }
    }

    /// Writes the remaining lines, waiting a moment for slow readers.
    pub(crate) fn write_last_logs(&mut self) {
        let end = self.now.mono.after(FAREWELL);
        let mut ready = Vec::new();
        loop {
            self.write_logs(Due::Everything);
            if self.logs.is_empty() || self.now.mono >= end {
                return;
            }
            let until = self.logs.next_deadline().map_or(end, |at| at.min(end));
            ready.clear();
            self.now = self.io.wait(Some(until), &mut ready);
        }
    }
}
