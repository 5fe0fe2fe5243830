//! Lines of the control thread in the main error log.

use std::os::unix::ffi::OsStrExt;

use conf::model::{ErrorLog, Level, LogTarget};
use worker::{Generation, OpenLogs};

use crate::messages::err;

/// Where the control thread's lines go.
#[derive(Debug)]
pub(crate) struct ControlLog {
    logs: Vec<ErrorLog>,
    open: OpenLogs,
}

impl ControlLog {
    pub(crate) fn new(generation: &Generation) -> Self {
        let logs = generation.site.config().main.error_log.to_vec();
        Self { logs, open: generation.logs.clone() }
    }

    pub(crate) fn replace(&mut self, open: OpenLogs) {
        self.open = open;
    }

    /// Writes one line to every log that takes its level.
    pub(crate) fn write(&self, level: Level, text: &str) {
        let now = io::process::now();
        let offset = io::process::utc_offset_seconds(now.unix_seconds());
        let clock = http::date::Clock::new(now, offset);
        let time = String::from_utf8_lossy(clock.error_log()).into_owned();
        let pid = std::process::id();
        let line = format!("{time} [{}] {pid}#{pid}: {text}\n", level.text());
        for log in self.logs.iter().filter(|log| level <= log.level) {
            match &log.target {
                LogTarget::File(path) => {
                    if let Some(file) = self.open.get(path.as_os_str().as_bytes()) {
                        io::file::append(file, line.as_bytes());
                    }
                }
                LogTarget::Stderr | LogTarget::Syslog(_) => err(line.trim_end()),
            }
        }
    }
}
