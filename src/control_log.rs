//! Lines of the control thread in the main error log.

use std::os::unix::ffi::OsStrExt;

use bolide_conf::model::{Config, ErrorLog, LogLevel, LogTargetConf, Syslog, SyslogServer};
use bolide_worker::OpenLogs;

use crate::messages::err;
use crate::reading::HELP;

/// The log of the control thread.
#[derive(Debug)]
pub(crate) struct ControlLog {
    logs: Vec<ErrorLog>,
    open: OpenLogs,
}

impl ControlLog {
    /// The main error log of a configuration whose logs are open.
    pub(crate) fn new(config: &Config, open: &OpenLogs) -> Self {
        Self { logs: config.main.error_log.to_vec(), open: open.clone() }
    }

    /// Its open files.
    pub(crate) const fn open(&self) -> &OpenLogs {
        &self.open
    }

    /// Switches to other files; returns the old ones.
    pub(crate) const fn replace(&mut self, open: OpenLogs) -> OpenLogs {
        std::mem::replace(&mut self.open, open)
    }

    /// Writes one line to every log that accepts its level.
    pub(crate) fn write(&self, level: LogLevel, text: &str) {
        self.write_for(std::process::id(), level, text);
    }

    /// As [`Self::write`], and on the terminal, as errors that stop a start are.
    pub(crate) fn write_loudly(&self, level: LogLevel, text: &str) {
        self.write(level, text);
        if self.logs.iter().all(|log| !matches!(log.target, LogTargetConf::Stderr)) {
            err(&format!("bolide: [{}] {text}", level.text()));
        }
    }

    /// Writes a line for the thread with this number.
    pub(crate) fn write_for(&self, thread: u32, level: LogLevel, text: &str) {
        let line = line_for(thread, level, text);
        for log in self.logs.iter().filter(|log| level <= log.level) {
            match &log.target {
                LogTargetConf::File(path) => {
                    if let Some(log) = self.open.get(path.as_os_str().as_bytes()) {
                        bolide_io::file::append(log.file(), line.as_bytes());
                    }
                }
                LogTargetConf::Stderr => {
                    // A slow reader of the terminal may miss a line; it blocks nothing.
                    if let Ok(file) = bolide_io::file::standard_error() {
                        bolide_io::file::append_shared(&file, line.as_bytes());
                    }
                }
                LogTargetConf::Syslog(server) => send(server, level, line.trim_end()),
                LogTargetConf::Memory => {}
            }
        }
    }
}

/// Sends a line to a syslog server; a failure is ignored.
fn send(to: &Syslog, level: LogLevel, line: &str) {
    let callee = match &to.server {
        SyslogServer::Inet(at) => bolide_io::Callee::Inet(*at),
        SyslogServer::Unix(path) => bolide_io::Callee::Unix(path.as_os_str().as_bytes()),
    };
    let host = match to.nohostname {
        true => String::new(),
        false => format!("{} ", bolide_io::process::hostname().to_ascii_lowercase()),
    };
    let priority = u32::from(to.facility) * 8 + level as u32;
    let time = clock().syslog();
    let time = String::from_utf8_lossy(&time);
    let message = format!("<{priority}>{time} {host}{}: {line}", to.tag);
    let _ = bolide_io::file::send_datagram(callee, message.as_bytes());
}

fn clock() -> bolide_http::date::DateClock {
    let now = bolide_io::process::now();
    bolide_http::date::DateClock::new(
        now,
        bolide_io::process::utc_offset_seconds(now.unix_seconds()),
    )
}

/// One line of an error log, of the main thread.
pub(crate) fn line(level: LogLevel, text: &str) -> String {
    line_for(std::process::id(), level, text)
}

fn line_for(thread: u32, level: LogLevel, text: &str) -> String {
    let text = text.split(HELP).next().unwrap_or_default();
    let time = String::from_utf8_lossy(clock().error_log()).into_owned();
    let pid = std::process::id();
    let mut line = format!("{time} [{}] {pid}#{thread}: {text}", level.text()).into_bytes();
    bolide_http::escape::escape_controls(&mut line, 0);
    line.push(b'\n');
    String::from_utf8_lossy(&line).into_owned()
}
