//! The targets of one worker's log lines: files that the control thread opened, files whose names
//! have variables, and sockets to syslog servers.
//!
//! It never waits: what a slow reader does not take is offered again.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bolide_base::errno::{ENOTDIR, reason};
use bolide_base::{FileRef, Instant};
use bolide_conf::model::{LogFileCache, LogLevel, Syslog, SyslogServer};
use bolide_engine::{Batch, LogTarget, Site, VariableFile, datagrams};
use bolide_io::{Callee, FileFailure, Io, OpenRequest, SymlinkRule};

use crate::generation::Generation;

/// LIMIT: logged failures that are remembered, so that they are not logged again.
const TROUBLES_MAX: usize = 512;
/// The interval of log lines about a file that cannot be written.
const WRITE_TOLD: Duration = Duration::from_secs(60);
/// The interval of log lines about a syslog server that cannot be reached.
const SEND_TOLD: Duration = Duration::from_secs(1);
/// Bytes that a pipe takes completely or not at all (PIPE_BUF).
const PIPE_PIECE: usize = 4096;

/// Open log files by absolute path; shared by all workers, replaced as a whole.
pub type OpenLogs = Arc<HashMap<Vec<u8>, LogFile>>;

/// A log that is open.
#[derive(Clone, Debug)]
pub struct LogFile {
    file: FileRef,
    is_regular: bool,
}

impl LogFile {
    /// An open file; one that is not regular takes lines one by one.
    #[must_use]
    pub const fn new(file: FileRef, is_regular: bool) -> Self {
        Self { file, is_regular }
    }

    /// Opens a log for appending, and creates it if it is missing.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub fn open(path: &[u8]) -> std::io::Result<Self> {
        let file = bolide_io::file::open_append(path)?;
        let is_regular = bolide_io::file::is_regular(&file);
        Ok(Self { file, is_regular })
    }

    /// The open file.
    #[must_use]
    pub const fn file(&self) -> &FileRef {
        &self.file
    }
}

/// An error of a log, for the error log.
#[derive(Debug)]
pub(super) struct LogFileTrouble {
    pub(super) level: LogLevel,
    /// The connection's number.
    pub(super) serial: Option<u64>,
    pub(super) text: Vec<u8>,
}

/// The result of writing a batch.
#[derive(Debug, Default)]
pub(super) struct LogFileReport {
    /// Bytes that need not be offered again.
    pub(super) bytes: usize,
    /// For a compressed batch: the part without room.
    pub(super) packed: Option<Vec<u8>>,
    pub(super) trouble: Option<LogFileTrouble>,
}

/// A file whose name has variables.
#[derive(Debug)]
struct Own {
    log: Option<LogFile>,
    /// Device and inode.
    identity: (u64, u64),
    uses: u32,
    used: Instant,
    checked: Instant,
}

/// The log files and sockets that one worker writes to.
#[derive(Debug)]
pub(crate) struct LogFiles {
    shared: OpenLogs,
    /// Those of configurations that requests still use.
    older: Vec<(Weak<Site>, OpenLogs)>,
    own: HashMap<Vec<u8>, Own>,
    sockets: HashMap<SyslogServer, FileRef>,
    stderr: Option<FileRef>,
    logged: HashMap<Vec<u8>, Instant>,
}

impl LogFiles {
    pub(crate) fn new(shared: OpenLogs) -> Self {
        Self {
            shared,
            older: Vec::new(),
            own: HashMap::new(),
            sockets: HashMap::new(),
            stderr: bolide_io::file::standard_error().ok(),
            logged: HashMap::new(),
        }
    }

    /// Replaces the files by reopened ones. Other files of older configurations stay open.
    pub(crate) fn reopen(&mut self, shared: OpenLogs) {
        self.replace(shared);
        for (_, logs) in &mut self.older {
            let others = logs.iter().filter(|(path, _)| !self.shared.contains_key(*path));
            *logs = Arc::new(others.map(|(path, log)| (path.clone(), log.clone())).collect());
        }
    }

    fn replace(&mut self, shared: OpenLogs) {
        self.tidy();
        self.shared = shared;
        self.own.clear();
        self.sockets.clear();
        // Its replacement may have been replaced, too.
        self.stderr = bolide_io::file::standard_error().ok();
    }

    /// Uses the files of the next configuration; requests that began before it may still log to the
    /// others.
    pub(crate) fn configure(&mut self, old: &Generation, logs: OpenLogs) {
        self.older.push((Arc::downgrade(&old.site), self.shared.clone()));
        self.replace(logs);
    }

    /// Releases files that no request can log to any more.
    pub(crate) fn tidy(&mut self) {
        self.older.retain(|(site, _)| site.strong_count() > 0);
    }

    /// Writes a batch as far as possible without waiting.
    pub(super) fn write(
        &mut self,
        io: &mut impl Io,
        batch: Batch<'_>,
        now: Instant,
    ) -> LogFileReport {
        let opened = match batch.target {
            LogTarget::Syslog(server) => return self.send(io, server, batch.lines, now),
            LogTarget::Stderr => {
                let Some(file) = &self.stderr else { return LogFileReport::all(batch.lines) };
                let done = io.append_shared(file, batch.lines);
                // The log for the error message is the one that failed.
                let bytes = if done.errno.is_some() { batch.lines.len() } else { done.bytes };
                return LogFileReport { bytes, ..LogFileReport::default() };
            }
            LogTarget::File(path) => match self.find(io, path) {
                // The message may belong into the very file that cannot be opened.
                Err(_) if !self.may_tell(path, WRITE_TOLD, now) => {
                    return LogFileReport::all(batch.lines);
                }
                found => found,
            },
            LogTarget::Variable(file) => self.find_own(io, &file, now),
        };
        match opened {
            Ok(log) => self.append(io, &log, &batch, now),
            Err(trouble) => {
                LogFileReport { trouble: Some(trouble), ..LogFileReport::all(batch.lines) }
            }
        }
    }

    fn append(
        &mut self,
        io: &mut impl Io,
        log: &LogFile,
        batch: &Batch<'_>,
        now: Instant,
    ) -> LogFileReport {
        let packed = batch.gzip.map(|level| {
            let coding = bolide_http::negotiate::Coding::Gzip;
            bolide_files::encode::compress(coding, level as i8, batch.lines).unwrap_or_default()
        });
        let bytes = packed.as_deref().unwrap_or(batch.lines);
        let (done, errno) = append_lines(io, log, bytes);
        let mut report = LogFileReport::default();
        match packed {
            Some(bytes) => {
                let rest = if errno.is_some() { &[] } else { &bytes[done..] };
                report.packed = Some(rest.to_vec());
            }
            None => report.bytes = if errno.is_some() { batch.lines.len() } else { done },
        }
        let path = match batch.target {
            LogTarget::File(path) => path,
            LogTarget::Variable(file) => file.path,
            LogTarget::Syslog(_) | LogTarget::Stderr => b"",
        };
        if let Some(errno) = errno
            && self.may_tell(path, WRITE_TOLD, now)
        {
            let failure = FileFailure { errno, call: "write" };
            report.trouble =
                Some(LogFileTrouble::with_file(LogLevel::Alert, "write() to", path, failure));
        }
        report
    }

    /// An open file of the configuration.
    fn find(&self, io: &mut impl Io, path: &[u8]) -> Result<LogFile, LogFileTrouble> {
        let older = self.older.iter().rev().map(|(_, logs)| logs);
        let mut known = std::iter::once(&self.shared).chain(older);
        match known.find_map(|logs| logs.get(path)) {
            Some(log) => Ok(log.clone()),
            None => open(io, path).map(|(log, _)| log).map_err(|failure| {
                LogFileTrouble::with_file(LogLevel::Crit, "open()", path, failure)
            }),
        }
    }

    /// The file whose name has variables.
    fn find_own(
        &mut self,
        io: &mut impl Io,
        file: &VariableFile<'_>,
        now: Instant,
    ) -> Result<LogFile, LogFileTrouble> {
        if let Some(log) = file.cache.and_then(|cache| self.recall(io, file.path, cache, now)) {
            return Ok(log);
        }
        let about = |mut trouble: LogFileTrouble| {
            trouble.serial = Some(file.serial);
            trouble.text.extend_from_slice(file.context);
            trouble
        };
        test_root(io, file.root)
            .map_err(|failure| about(LogFileTrouble::with_root(file.root, failure)))?;
        let (log, identity) = open(io, file.path).map_err(|failure| {
            about(LogFileTrouble::with_file(LogLevel::Crit, "open()", file.path, failure))
        })?;
        if let Some(cache) = file.cache {
            self.keep(file.path, cache, (&log, identity), now);
        }
        Ok(log)
    }

    /// A file that was kept open, if its name still refers to it.
    fn recall(
        &mut self,
        io: &mut impl Io,
        path: &[u8],
        cache: LogFileCache,
        now: Instant,
    ) -> Option<LogFile> {
        self.own.retain(|_, own| own.used.after(cache.inactive) >= now);
        let own = self.own.get_mut(path)?;
        own.used = now;
        own.uses = own.uses.saturating_add(1);
        if own.checked.after(cache.valid) < now {
            let seen = io.open(&look(path)).ok()?.stat;
            if (seen.device, seen.inode) != own.identity {
                own.log = None;
            }
            own.checked = now;
        }
        own.log.clone()
    }

    fn keep(
        &mut self,
        path: &[u8],
        cache: LogFileCache,
        (log, identity): (&LogFile, (u64, u64)),
        now: Instant,
    ) {
        if !self.own.contains_key(path) {
            while self.own.len() >= cache.max {
                let oldest = self.own.iter().min_by_key(|(_, own)| own.used);
                let Some(oldest) = oldest.map(|(path, _)| path.clone()) else { break };
                self.own.remove(&oldest);
            }
        }
        let fresh = Own { log: None, identity, uses: 1, used: now, checked: now };
        let own = self.own.entry(path.to_vec()).or_insert(fresh);
        debug_assert!(own.checked <= now, "a name was looked at in the past");
        (own.identity, own.checked) = (identity, now);
        own.log = (own.uses >= cache.min_uses).then(|| log.clone());
    }

    fn send(
        &mut self,
        io: &mut impl Io,
        to: &Arc<Syslog>,
        batch: &[u8],
        now: Instant,
    ) -> LogFileReport {
        let mut report = LogFileReport::default();
        for (datagram, end) in datagrams(batch) {
            match self.send_one(io, to, datagram) {
                Ok(true) => {}
                Ok(false) => return report,
                Err(failure) => {
                    let key = format!("{:?}", to.server);
                    if report.trouble.is_none() && self.may_tell(key.as_bytes(), SEND_TOLD, now) {
                        report.trouble = Some(LogFileTrouble::with_server(&to.server, failure));
                    }
                }
            }
            report.bytes = end;
        }
        report
    }

    /// Whether there was room for it.
    fn send_one(
        &mut self,
        io: &mut impl Io,
        to: &Arc<Syslog>,
        datagram: &[u8],
    ) -> Result<bool, FileFailure> {
        if !self.sockets.contains_key(&to.server) {
            let callee = match &to.server {
                SyslogServer::Inet(at) => Callee::Inet(*at),
                SyslogServer::Unix(path) => Callee::Unix(path.as_os_str().as_bytes()),
            };
            self.sockets.insert(to.server.clone(), io.open_datagrams(callee)?);
        }
        let done = io.append(&self.sockets[&to.server], datagram);
        match done.errno {
            Some(errno) => {
                // The next message uses a socket without an error.
                self.sockets.remove(&to.server);
                Err(FileFailure { errno, call: "send" })
            }
            None => Ok(done.bytes == datagram.len()),
        }
    }

    fn may_tell(&mut self, what: &[u8], every: Duration, now: Instant) -> bool {
        if self.logged.get(what).is_some_and(|logged| logged.after(every) > now) {
            return false;
        }
        if self.logged.len() >= TROUBLES_MAX {
            self.logged.clear();
        }
        self.logged.insert(what.to_vec(), now);
        debug_assert!(self.logged.len() <= TROUBLES_MAX, "troubles are forgotten in time");
        true
    }
}

impl LogFileReport {
    fn all(lines: &[u8]) -> Self {
        Self { bytes: lines.len(), ..Self::default() }
    }
}

impl LogFileTrouble {
    /// `open() "/a" failed (2: No such file or directory)`.
    fn with_file(level: LogLevel, what: &str, path: &[u8], failure: FileFailure) -> Self {
        let mut text = format!("{what} \"").into_bytes();
        // Requests may have contributed to the path.
        bolide_http::escape::push_log(&mut text, path);
        text.extend_from_slice(format!("\" failed ({})", reason(failure.errno)).as_bytes());
        Self { level, serial: None, text }
    }

    fn with_root(root: &[u8], failure: FileFailure) -> Self {
        let mut text = b"testing \"".to_vec();
        bolide_http::escape::push_log(&mut text, root);
        let why = format!("\" existence failed ({})", reason(failure.errno));
        text.extend_from_slice(why.as_bytes());
        Self { level: LogLevel::Error, serial: None, text }
    }

    fn with_server(server: &SyslogServer, failure: FileFailure) -> Self {
        let server = match server {
            SyslogServer::Inet(at) => at.to_string(),
            SyslogServer::Unix(path) => format!("unix:{}", path.display()),
        };
        let is_absent = std::io::Error::from_raw_os_error(failure.errno).kind();
        let level = match is_absent {
            std::io::ErrorKind::ConnectionRefused
            | std::io::ErrorKind::NetworkUnreachable
            | std::io::ErrorKind::HostUnreachable => LogLevel::Error,
            _ => LogLevel::Alert,
        };
        let FileFailure { errno, call } = failure;
        let text = format!(
            "{call}() failed ({}) while logging to syslog, server: {server}",
            reason(errno)
        );
        Self { level, serial: None, text: text.into_bytes() }
    }
}

const fn look(path: &[u8]) -> OpenRequest<'_> {
    OpenRequest { path, symlinks: SymlinkRule::Follow, content_max: 0, stat_only: true }
}

fn open(io: &mut impl Io, path: &[u8]) -> Result<(LogFile, (u64, u64)), FileFailure> {
    let file = io.open_log(path)?;
    let stat = io.stat(&file)?;
    Ok((LogFile { file, is_regular: stat.is_regular }, (stat.device, stat.inode)))
}

/// A name with variables needs a document root: nothing is opened for a site whose root does not
/// exist.
fn test_root(io: &mut impl Io, root: &[u8]) -> Result<(), FileFailure> {
    if io.open(&look(root))?.stat.is_dir {
        Ok(())
    } else {
        Err(FileFailure { errno: ENOTDIR, call: "stat" })
    }
}

/// Appends whole lines, because other processes may append at the same time; returns the bytes
/// written, and the error that ended it.
fn append_lines(io: &mut impl Io, log: &LogFile, bytes: &[u8]) -> (usize, Option<i32>) {
    if log.is_regular {
        let done = io.append(&log.file, bytes);
        return (done.bytes, done.errno);
    }
    let mut taken = 0;
    while taken < bytes.len() {
        let rest = &bytes[taken..];
        let within = &rest[..rest.len().min(PIPE_PIECE)];
        let end = within.iter().rposition(|byte| *byte == b'\n').unwrap_or(within.len() - 1);
        let done = io.append(&log.file, &rest[..=end]);
        taken += done.bytes;
        if done.errno.is_some() || done.bytes <= end {
            return (taken, done.errno);
        }
    }
    (taken, None)
}
