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
        let line = line(level, text);
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

/// One line of an error log.
fn line(level: Level, text: &str) -> String {
    let now = io::process::now();
    let offset = io::process::utc_offset_seconds(now.unix_seconds());
    let clock = http::date::Clock::new(now, offset);
    let time = String::from_utf8_lossy(clock.error_log()).into_owned();
    let pid = std::process::id();
    format!("{time} [{}] {pid}#{pid}: {text}\n", level.text())
}

/// Writes mistakes to a log that no configuration has named yet. A log that cannot be opened is
/// not worth a second message: the same texts stand on the terminal.
pub(crate) fn write_early(path: &std::path::Path, level: Level, texts: &[String]) {
    if let Ok(file) = io::file::open_append(path.as_os_str().as_bytes()) {
        for text in texts {
            // What helps a person at the terminal is no part of a log's line.
            let text = text.lines().next().unwrap_or_default();
            io::file::append(&file, line(level, text).as_bytes());
        }
    }
}
