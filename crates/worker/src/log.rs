//! Log lines leave: each batch to where it belongs; and lines about connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bolide_conf::model::LogLevel;
use bolide_engine::{ConnInfo, Due};
use bolide_io::Io;

use crate::Generation;
use crate::worker::Worker;

mod files;

pub use files::LogFile;
pub(crate) use files::{LogFiles, describe};

/// Open log files by absolute path; shared by all workers, replaced as a whole.
pub type OpenLogs = Arc<HashMap<Vec<u8>, LogFile>>;

/// How long a worker that ends waits for slow readers of its logs.
const FAREWELL: Duration = Duration::from_secs(1);

impl<I: Io> Worker<I> {
    /// Writes log lines that are due.
    pub(crate) fn write_logs(&mut self, due: Due) {
        let now = self.now.mono;
        let mut bound = bolide_base::Bound::new();
        while bound.goes_on()
            && let Some(id) = self.core.logs.poll_write(now, due)
        {
            let batch = self.core.logs.batch(id);
            let report = self.log_files.write(&mut self.io, batch, now);
            let lost = match &report.packed {
                Some(rest) => {
                    self.core.logs.written_packed(id, rest, now);
                    0
                }
                None => self.core.logs.written(id, report.bytes, now),
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

    /// Writes what is left; who reads too slowly is waited for a moment.
    pub(crate) fn write_last_logs(&mut self) {
        let end = self.now.mono.after(FAREWELL);
        let mut ready = Vec::new();
        loop {
            self.write_logs(Due::Everything);
            if self.core.logs.is_empty() || self.now.mono >= end {
                return;
            }
            let until = self.core.logs.next_deadline().map_or(end, |at| at.min(end));
            ready.clear();
            self.now = self.io.wait(Some(until), &mut ready);
        }
    }

    /// Logs something about the server itself.
    pub(crate) fn log_server(&mut self, level: LogLevel, text: &str) {
        self.log_server_bytes(level, None, text.as_bytes());
    }

    fn log_server_bytes(&mut self, level: LogLevel, serial: Option<u64>, text: &[u8]) {
        self.site.log_server(level, serial, text, self.now, &self.clock, &mut self.core.logs);
    }

    /// Logs something about a connection, with its client and the address that it reached.
    pub(crate) fn log_conn(&mut self, level: LogLevel, subject: &Subject, text: &str) {
        let Subject { info, generation } = subject;
        let logs = &mut self.core.logs;
        generation.site.log_conn(info, level, text, self.now, &self.clock, logs);
    }
}

/// A connection that something is logged about, and the configuration that it goes by: what it
/// listens on has its number and its logs there.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    info: Box<ConnInfo>,
    generation: Arc<Generation>,
}

impl Subject {
    pub(crate) fn of(info: &ConnInfo, generation: &Arc<Generation>) -> Self {
        Self { info: Box::new(info.clone()), generation: generation.clone() }
    }

    pub(crate) fn info(&self) -> &ConnInfo {
        &self.info
    }
}
