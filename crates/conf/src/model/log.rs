//! The targets and formats of logs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::vars::Template;

/// The severity of a message; the order is nginx's, most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// `emerg`
    Emerg,
    /// `alert`
    Alert,
    /// `crit`
    Crit,
    /// `error`
    Error,
    /// `warn`
    Warn,
    /// `notice`
    Notice,
    /// `info`
    Info,
    /// `debug`
    Debug,
}

impl LogLevel {
    /// As in a log line.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Emerg => "emerg",
            Self::Alert => "alert",
            Self::Crit => "crit",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Notice => "notice",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }

    /// The level that `text` names.
    #[must_use]
    pub const fn parse(text: &[u8]) -> Option<Self> {
        Some(match text {
            b"emerg" => Self::Emerg,
            b"alert" => Self::Alert,
            b"crit" => Self::Crit,
            b"error" => Self::Error,
            b"warn" => Self::Warn,
            b"notice" => Self::Notice,
            b"info" => Self::Info,
            b"debug" => Self::Debug,
            _ => return None,
        })
    }
}

/// One `error_log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorLog {
    /// The target of the lines.
    pub target: LogTargetConf,
    /// The least severe level that is logged.
    pub level: LogLevel,
}

/// The target of an error log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTargetConf {
    /// Appended to a file.
    File(PathBuf),
    /// Standard error.
    Stderr,
    /// A syslog server.
    Syslog(Arc<Syslog>),
    /// `memory:`: a buffer for debuggers in nginx; discarded here.
    Memory,
}

/// A `syslog:` target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Syslog {
    /// The server.
    pub server: SyslogServer,
    /// Facility number (`kern` 0 … `local7` 23).
    pub facility: u8,
    /// Severity number (`emerg` 0 … `debug` 7).
    pub severity: u8,
    /// The tag, `nginx` by default.
    pub tag: String,
    /// Whether the host name is omitted.
    pub nohostname: bool,
}

/// The target of syslog datagrams.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SyslogServer {
    /// UDP.
    Inet(SocketAddr),
    /// A unix datagram socket.
    Unix(PathBuf),
}

/// A named `log_format`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFormat {
    /// Its name.
    pub name: String,
    /// How values of variables are escaped.
    pub escape: Escape,
    /// One line, without the line end.
    pub line: Template,
}

/// How values of variables are escaped in a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// `"`, `\`, below 0x20 and from 0x7f as `\xHH`; an absent value is `-`.
    Default,
    /// As inside a JSON string; bytes above 0x7f pass as they are; an absent value is empty.
    Json,
    /// As [`Escape::Json`], and what is no UTF-8 becomes U+FFFD, so that each line is JSON.
    StrictJson,
    /// Not at all; an absent value is empty.
    None,
}

/// The access logs of a location.
pub type AccessLogs = Arc<Vec<AccessLog>>;

/// One `access_log`. `access_log off` is an empty list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// The target of the lines.
    pub target: AccessTarget,
    /// Index of the format in [`super::Http::log_formats`].
    pub format: u32,
    /// `if=`: log unless it is empty or `0`.
    pub condition: Option<Template>,
}

/// The target of an access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessTarget {
    /// A file with a fixed path (absolute).
    File(Arc<PathBuf>),
    /// A file whose absolute path contains variables.
    Variable(Template),
    /// A syslog server.
    Syslog(Arc<Syslog>),
    /// Standard error, the meaning of an empty name.
    Stderr,
}

/// `buffer=`, `flush=` and `gzip=` of a file; they apply to every access log with that file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogBuffer {
    /// The file.
    pub path: Arc<PathBuf>,
    /// Bytes gathered before they are written.
    pub size: usize,
    /// The longest a gathered line waits.
    pub flush: Option<Duration>,
    /// gzip level of the output.
    pub gzip: Option<u8>,
}

/// `open_log_file_cache`: open files whose names contain variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogFileCache {
    /// `max=`: how many.
    pub max: usize,
    /// `inactive=`: how long without a line.
    pub inactive: Duration,
    /// `valid=`: how often the server checks whether the name still means the same file.
    pub valid: Duration,
    /// `min_uses=`: lines within `inactive` that keep a file open.
    pub min_uses: u32,
}
