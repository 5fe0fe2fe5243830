//! Log files: opened by the control thread, written by workers; and lines about connections.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use base::FileRef;
use conf::model::{Level, LogTarget as Target};
use engine::{Buffering, ConnInfo, Due, LogTarget};
use io::Io;

use crate::Generation;
use crate::worker::Worker;

/// Open log files by absolute path; shared by all workers, replaced as a whole.
pub type OpenLogs = Arc<HashMap<Vec<u8>, FileRef>>;

/// Files that a worker opened itself, for paths made of variables.
const OWN_FILES_MAX: usize = 512;

/// The log files one worker writes to.
#[derive(Debug)]
pub(crate) struct LogFiles {
    shared: OpenLogs,
    own: HashMap<Vec<u8>, FileRef>,
    stderr: Option<FileRef>,
}

impl LogFiles {
    pub(crate) fn new(generation: &Generation) -> Self {
        let stderr = io::file::standard_error().ok();
        Self { shared: generation.logs.clone(), own: HashMap::new(), stderr }
    }

    pub(crate) fn replace(&mut self, shared: OpenLogs) {
        self.shared = shared;
        self.own.clear();
    }

    fn find(&mut self, target: LogTarget<'_>) -> Option<FileRef> {
        let path = match target {
            LogTarget::Stderr => return self.stderr.clone(),
            LogTarget::File(path) => path,
        };
        if let Some(file) = self.shared.get(path).or_else(|| self.own.get(path)) {
            return Some(file.clone());
        }
        if self.own.len() >= OWN_FILES_MAX {
            self.own.clear();
        }
        let file = io::file::open_append(path).ok()?;
        self.own.insert(path.to_vec(), file.clone());
        Some(file)
    }
}

impl<I: Io> Worker<I> {
    /// Writes log lines that are due.
    pub(crate) fn write_logs(&mut self, due: Due) {
        while let Some(id) = self.core.logs.poll_write(self.now.mono, due) {
            let (target, lines) = self.core.logs.batch(id);
            if let Some(file) = self.log_files.find(target) {
                self.io.append(&file, lines);
            }
            self.core.logs.written(id);
        }
    }

    /// Logs something about the server itself.
    pub(crate) fn log_server(&mut self, level: Level, text: &str) {
        self.log_line(level, None, text);
    }

    /// Logs something about a connection, with its client and the address that it reached.
    pub(crate) fn log_conn(&mut self, level: Level, info: &ConnInfo, text: &str) {
        self.log_line(level, Some(info), text);
    }

    fn log_line(&mut self, level: Level, info: Option<&ConnInfo>, text: &str) {
        let site = self.site.clone();
        let config = site.config();
        let logs = config.http.as_ref().map_or(&config.main.error_log, |h| &h.settings.error_log);
        for log in logs.iter().filter(|log| level <= log.level) {
            let path;
            let target = match &log.target {
                Target::File(file) => {
                    path = file.as_os_str().as_bytes();
                    LogTarget::File(path)
                }
                Target::Stderr | Target::Syslog(_) => LogTarget::Stderr,
            };
            let (pid, tid) = (self.core.logs.pid(), self.core.logs.tid());
            let clock = &self.clock;
            self.core.logs.line(target, Buffering::default(), self.now.mono, |out| {
                out.extend_from_slice(clock.error_log());
                let head = match info {
                    Some(info) => {
                        format!(" [{}] {pid}#{tid}: *{} {text}", level.text(), info.serial)
                    }
                    None => format!(" [{}] {pid}#{tid}: {text}", level.text()),
                };
                out.extend_from_slice(head.as_bytes());
                if let Some(info) = info {
                    let ends = format!(
                        ", client: {}, server: {}",
                        name(&info.remote),
                        address(&info.local)
                    );
                    out.extend_from_slice(ends.as_bytes());
                }
                out.push(b'\n');
            });
        }
    }
}

fn name(peer: &engine::Peer) -> String {
    match peer {
        engine::Peer::Inet(at) => at.ip().to_string(),
        engine::Peer::Unix => "unix:".to_owned(),
    }
}

fn address(peer: &engine::Peer) -> String {
    match peer {
        engine::Peer::Inet(at) => at.to_string(),
        engine::Peer::Unix => "unix:".to_owned(),
    }
}
